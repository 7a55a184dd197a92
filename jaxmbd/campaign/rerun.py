"""One sample of a study again, outside of the batch."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from jaxmbd.campaign.fields import array_name
from jaxmbd.campaign.model import Model

if TYPE_CHECKING:
    from jaxmbd.sampling import Sampler


class Rerun(NamedTuple):
    """One sample of a study, evaluated again by itself.

    Attributes:
        sample: its number.
        inputs: name to value.
        outputs: name to value.
        stored: the outputs in the store.
        mechanism: its mechanism; None for a study of a function.
        trajectory: its `jaxmbd.observe.Trajectory`: every observable over the experiment's whole
            axis, also where the study keeps one number of it. Of `Together` with names it is a
            dictionary by their names; None where the study observes by a function.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Normal
        >>> inputs = {"x": Input(Normal(0.1), nominal=1.0)}
        >>> study = mbd.Study(lambda s: {"y": s["x"] ** 2}, inputs, samples=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = study.run(folder + "/s.zarr", progress=False)
        ...     again = study.rerun(folder + "/s.zarr", 3)
        ...     bool(again.outputs["y"] == again.stored["y"])
        True
    """

    sample: int
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    stored: dict[str, np.ndarray]
    mechanism: Any
    trajectory: Any


class Evaluates(Protocol):
    """What a sample is evaluated by: a `Study`."""

    model: Model
    sampler: Sampler

    @property
    def nominal(self) -> dict[str, np.ndarray]:
        """The nominal sample."""
        ...

    def evaluate(self, samples: dict[str, np.ndarray], /) -> dict[str, np.ndarray]:
        """Outputs of samples (n, …)."""
        ...


def rerun(study: Evaluates, store: str | Path, sample: int) -> Rerun:
    """`Study.rerun`."""
    from jaxmbd.campaign.store import StudyStore

    opened = StudyStore.open(store)
    count, chunk = opened.layout.count, opened.layout.chunk
    sample = operator.index(sample)
    if not 0 <= sample < count:
        raise ValueError(f"there is no sample {sample} in {store}: it has 0 to {count - 1}")
    if not opened.done()[sample // chunk]:
        raise ValueError(f"sample {sample} is not computed yet in {store}: resume the study first")
    stored = {name: x[sample % chunk] for name, x in opened.read(sample // chunk).items()}
    inputs = {name: np.asarray(stored[array_name(name)]) for name in study.sampler.sampled}
    rows = study.evaluate({name: x[None] for name, x in inputs.items()})
    outputs = {name: x[0] for name, x in rows.items()}
    before = {name: np.asarray(stored[array_name(name)]) for name in outputs}
    observe = study.model.observe
    mechanism = None if observe is None else study.model.mechanism(study.nominal | inputs)
    show = getattr(observe, "trajectory", None)
    trajectory = show(mechanism) if show is not None else None
    return Rerun(sample, inputs, outputs, before, mechanism, trajectory)
