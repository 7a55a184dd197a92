"""`Study`: a model, what varies and what is observed; run into a store that survives kills."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmbd.campaign.model import (
    Input,
    Model,
    Program,
    Sample,
    array_name,
    axes_of,
    chunk_rows,
    fixed_arrays,
    read_inputs,
    sampled_fields,
    settled_outputs,
    taken_twice,
)
from jaxmbd.campaign.origin import provenance, versions
from jaxmbd.campaign.run import (
    judge,
    run_study,
    verify_study,
    warn_of_jamming,
    warn_of_odd_draws,
    warn_of_unused,
)
from jaxmbd.campaign.session import Damage
from jaxmbd.campaign.store_layout import Layout
from jaxmbd.campaign.study_store import StudyStore
from jaxmbd.observe import Axis, Output
from jaxmbd.plumbing import plain, refuse
from jaxmbd.sampling import MonteCarlo, Sampler
from jaxmbd.statistics import Sensitivity, sensitivities

FORMAT = "jaxmbd-study-1"
_LOOKED_AT = 1024
"""Samples whose inputs are looked at before a run."""
_ALONE = 8
"""Samples for each input from which on inputs are varied one by one before a run."""
_COMPARED = 4
"""Samples whose outputs tell a program that calls back to Python from another one."""


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


class Study:
    """Many samples of one model: inputs with distributions, a design, outputs.

    Args:
        model: a `Mechanism`, whose inputs are variables by path (`jaxmbd.variables`); or a function
            of one sample, ``{name: value} -> {name: array}``, in plain JAX; with `observe` a
            function ``{name: value} -> Mechanism``, such as a `jaxmbd.Parametrization` or what
            `jaxmbd.tolerances.split` returns. An output `status` (0: OK) marks failures.
        inputs: name to distribution (`jaxmbd.sampling`, or a frozen one of `scipy.stats`), to
            `Input` (nominal value, unit, …) or to a number, which is fixed. For a mechanism, names
            may be patterns such as ``"points/*"``.
        observe: what to observe of a mechanism: an experiment of `jaxmbd.observe` or a function
            ``Mechanism -> {name: array}``.
        outputs: name to `Output` (unit, text, dims); by default as the experiment declares them.
        coords: axis to `Axis` (values, unit, text).
        design: how samples are chosen, of `jaxmbd.sampling`; by default `MonteCarlo()`.
        samples: number of samples; not given if the design determines it.
        seed: of the random numbers; the same seed gives the same samples.
        correlation: rank correlations ``{(name, name): 0.7}`` of scalar inputs or of components
            (``points/p/z``), or `jaxmbd.sampling.Covariance`; or a list of such. They are of the
            signed values: of a negative preload a stronger one is a smaller value.
        title: what is studied.
        chunk: samples computed and stored at a time; by default chosen by memory, and so that all
            chunks are equal where that is possible.

    Raises:
        ValueError: lists all problems of the description.

    Example:
        >>> import jax, tempfile, jaxmbd as mbd
        >>> from jaxmbd.campaign import Input
        >>> from jaxmbd.sampling import Normal
        >>> study = mbd.Study(
        ...     lambda s: {"period": 2 * jax.numpy.pi * jax.numpy.sqrt(s["length"] / 9.81)},
        ...     {"length": Input(Normal(1e-3), nominal=0.25, unit="m")},
        ...     outputs={"period": mbd.observe.Output("s", "period of small swings")},
        ...     samples=1000,
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = study.run(folder + "/pendulum.zarr", progress=False)
        ...     round(float(results.period.std()), 4)
        0.002
    """

    def __init__(
        self,
        model: Any,
        inputs: Mapping[str, Any],
        *,
        observe: Any = None,
        outputs: Mapping[str, Output] | None = None,
        coords: Mapping[str, Axis] | None = None,
        design: Any = None,
        samples: int | None = None,
        seed: int = 0,
        correlation: Any = None,
        title: str = "",
        chunk: int | None = None,
    ):
        found: list[str] = []
        self.model = Model(model, observe)
        self._given = tuple(inputs)
        self.inputs: dict[str, Input] = read_inputs(inputs, self.model.find, found)
        if not found:
            self.model.declare(self.nominal, found)
        self.outputs = self.model.outputs | dict(outputs or {})
        self.coords = self.model.coords | dict(coords or {})
        self.title, self.seed, self.chunk = title, seed, chunk
        if not inputs:
            found.append("a study needs inputs")
        if chunk is not None and (type(chunk) is not int or chunk < 1):
            found.append(f"chunk={chunk!r} must be a whole number of at least 1")
        found += taken_twice([*self.inputs, *self.outputs])
        self.sampler = Sampler(
            {name: (x.nominal, x.distribution) for name, x in self.inputs.items()},
            design or MonteCarlo(),
            seed=seed,
            count=samples,
            correlation=correlation,
        )
        if self.inputs or not found:  # else there is nothing to draw because of what was found
            found += self.sampler.problems()
        refuse("this study cannot be run", found)

    def __getstate__(self) -> dict[str, Any]:
        made = ("program", "_settled")
        return {name: x for name, x in self.__dict__.items() if name not in made}

    @property
    def samples(self) -> int:
        """Number of samples."""
        return self.sampler.count

    @property
    def nominal(self) -> dict[str, np.ndarray]:
        """The nominal sample: name to value."""
        return {name: x.nominal for name, x in self.inputs.items()}

    @cached_property
    def program(self) -> Program:
        """The compiled model."""
        if not jax.config.read("jax_enable_x64"):
            raise ValueError(
                "studies are computed in double precision; switch it on before anything else: "
                "jax.config.update('jax_enable_x64', True)"
            )
        nominal, drawn = self.nominal, self.sampler.sampled
        fixed = {name: x for name, x in nominal.items() if name not in drawn}
        model = self.model
        return Program(lambda s: model({**fixed, **s}), {n: nominal[n] for n in drawn})

    @cached_property
    def _settled(self) -> dict[str, Output]:
        shapes = self.program.outputs
        about = {"status": Output("", "outcome of the sample")} | self.outputs
        return settled_outputs(shapes, about, self.coords, self.inputs)

    def draw(self, start: int = 0, stop: int | None = None) -> dict[str, np.ndarray]:
        """Inputs of the samples from `start` to `stop` that vary: name to array (n, …)."""
        return self.sampler.draw(start, self.samples if stop is None else stop)

    def evaluate(self, samples: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs of samples, given by the inputs that vary: name to array (n, …)."""
        return self.program(samples)

    def prepare(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Inputs of the samples from `start` to `stop` as the store holds them."""
        return {array_name(name): x for name, x in self.draw(start, stop).items()}

    def compute(
        self, start: int, stop: int, prepared: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """All arrays of the store for the samples from `start` to `stop`."""
        inputs = self.prepare(start, stop) if prepared is None else prepared
        drawn = self.sampler.sampled
        outputs = self.evaluate({name: inputs[array_name(name)] for name in drawn})
        return {**inputs, **{array_name(name): x for name, x in outputs.items()}}

    def check(self) -> dict[str, np.ndarray]:
        """Trace the model and judge the nominal sample.

        Outputs of which it has no value are warned of, inputs that scatter by more than the
        mechanism suggests, and those on which no output depends.

        Returns:
            the nominal outputs: name to value.

        Raises:
            ValueError: outputs do not fit their description, or the nominal sample fails.
        """
        outputs = self._settled
        nominal = self.nominal
        drawn = self.draw(0, min(self.samples, _LOOKED_AT))
        mech = None if self.model.observe is None else self.model.mechanism(nominal)
        warn_of_odd_draws(self.inputs, drawn, mech)
        # Beside the nominal sample, in the same call: each input by itself, unless that costs much.
        alone = list(drawn) if _ALONE * len(drawn) <= self.samples else []
        rows = self.evaluate(_each_alone(nominal, drawn, alone))
        if alone:
            results = {n: x for n, x in rows.items() if n not in self._reasons}
            warn_of_unused(self._given, alone, results)
            warn_of_jamming(alone, rows["status"], mech)
        found = {name: rows[name][0] for name in outputs}
        judge(found, self.outputs, partial(self.model.observed, nominal))
        return found

    def sensitivities(self) -> dict[str, Sensitivity]:
        """Exact derivatives of all outputs by all inputs that scatter, at the nominal sample.

        Returns:
            output to `jaxmbd.statistics.Sensitivity`: gradient, spread, shares, of inputs that are
            correlated as the study has them.
        """
        sampler = self.sampler
        scatter = sampler.std() if sampler.independent else sampler.covariance()
        reasons = self._reasons

        def outputs(sample: Sample) -> dict[str, Any]:
            return {n: x for n, x in self.model(sample).items() if n not in reasons}

        return sensitivities(outputs, self.nominal, scatter)

    @property
    def _reasons(self) -> frozenset[str]:
        """Names of the outputs that say why a sample failed."""
        return frozenset(n for n, x in self.outputs.items() if x.role == "reason")

    def describe(self) -> dict[str, Any]:
        """What determines the results, as plain data: two equal ones give equal stores."""
        drawn, known = self.sampler.describe(), versions()
        inputs = {
            name: {"unit": x.unit, "text": x.text, "dims": x.dims, **drawn["inputs"][name]}
            for name, x in self.inputs.items()
        }
        about = {
            "format": FORMAT,
            "title": self.title,
            **drawn,
            "inputs": inputs,
            "outputs": {
                name: {"unit": x.unit, "text": x.text, "dims": x.dims}
                for name, x in self._settled.items()
            },
            "coords": {
                name: {"values": x.values, "unit": x.unit} for name, x in self._axes.items()
            },
            "program": self.program.digest or self._digest_of_outputs(),
            "versions": {name: known[name] for name in ("jaxmbd", "jax")},
        }
        return plain(about)

    def _digest_of_outputs(self) -> str:
        """What a program that calls back to Python is known by: outputs of its first samples.

        In single precision, so that last bits of another processor make no difference.
        """
        found = self.evaluate(self.draw(0, min(self.samples, _COMPARED)))
        single = [x.astype(np.float32) for _, x in sorted(found.items())]
        digest = hashlib.blake2b(b"".join(x.tobytes() for x in single), digest_size=20)
        return f"outputs {digest.hexdigest()}"

    @property
    def _axes(self) -> dict[str, Axis]:
        return axes_of(self.inputs, self._settled, self.coords)

    def layout(self) -> Layout:
        """The arrays of the study's store, with coordinates and nominal values."""
        nominal = self.nominal | self.check()
        drawn = {name: self.inputs[name] for name in self.sampler.sampled}
        fields = sampled_fields(drawn, self._settled, self.program.outputs)
        fixed = fixed_arrays(self.inputs, self._settled, self._axes, nominal)
        each = sum(int(np.prod(f.shape)) * np.dtype(f.dtype).itemsize for f in fields.values())
        chunk = min(self.chunk or chunk_rows(self.samples, each), self.samples)
        return Layout(self.samples, chunk, fields, fixed)

    def attributes(self) -> dict[str, Any]:
        """Attributes of the study's store: title, description and provenance."""
        return {"title": self.title, "study": self.describe(), "provenance": provenance()}

    def run(self, store: str | Path, *, executor: Any = None, progress: Any = True) -> Any:
        """Compute all samples that the store does not have yet.

        Freedoms of a sweep that nothing holds are warned of, and the nominal sample is judged
        first: if it fails nothing is run, and outputs of which it has no value are warned of, as
        are inputs that scatter by more than the mechanism's size, or that no output uses. A run
        that is killed, or stopped by Ctrl-C, is continued by the same call; nothing is computed
        twice but the chunk that was in work, and the store ends with the same bytes.

        Args:
            store: folder of the store (``"corner.zarr"``).
            executor: a `concurrent.futures.Executor` whose workers see the same folder, such as
                ``dask.distributed.Client(…).get_executor()``; by default all cores, or GPUs, of
                this process.
            progress: whether to show a progress bar; or a function that is called with a report
                (``chunk``, ``rows``, ``failures``, …) after every chunk.

        Returns:
            an `xarray.Dataset`, opened lazily. Its arrays have the names of the inputs and outputs
            with dots for slashes (``"open/peak"`` is ``results["open.peak"]``), those of the
            nominal sample ``nominal.`` before them. `jaxmbd.statistics` takes both spellings.

        Raises:
            ValueError: the nominal sample fails, or the store is of another study (`StoreDiffers`,
                which lists the differences).
            StoreError: an OSError: another process works on the store, or the disk is full or
                cannot be written.
            RuntimeError: workers died too often.
        """
        self.model.warn()
        return run_study(self, store, executor=executor, progress=progress)

    def verify(self, store: str | Path, *, progress: Any = True) -> list[Damage]:
        """Check every file of a store, and mend what is damaged.

        Returns:
            what was found (``chunk``, ``file``, ``reason``): chunks are computed again, files of
            the description written again.
        """
        return verify_study(self, store, progress=progress)

    def rerun(self, store: str | Path, sample: int) -> Rerun:
        """Evaluate one sample of a store again, by itself, with its trajectory."""
        opened = StudyStore.open(store)
        count, chunk = opened.layout.count, opened.layout.chunk
        sample = operator.index(sample)
        if not 0 <= sample < count:
            raise ValueError(f"there is no sample {sample} in {store}: it has 0 to {count - 1}")
        if not opened.done()[sample // chunk]:
            raise ValueError(
                f"sample {sample} is not computed yet in {store}: resume the study first"
            )
        stored = {name: x[sample % chunk] for name, x in opened.read(sample // chunk).items()}
        inputs = {name: np.asarray(stored[array_name(name)]) for name in self.sampler.sampled}
        rows = self.evaluate({name: x[None] for name, x in inputs.items()})
        outputs = {name: x[0] for name, x in rows.items()}
        before = {name: np.asarray(stored[array_name(name)]) for name in outputs}
        observe = self.model.observe
        mechanism = None if observe is None else self.model.mechanism(self.nominal | inputs)
        show = getattr(observe, "trajectory", None)
        trajectory = show(mechanism) if show is not None else None
        return Rerun(sample, inputs, outputs, before, mechanism, trajectory)


def _each_alone(
    nominal: Sample, drawn: Mapping[str, np.ndarray], alone: list[str]
) -> dict[str, np.ndarray]:
    """The nominal sample, then two for each input of `alone`, in which only that one differs.

    It has the drawn values that are farthest below and above its nominal one.
    """
    rows = {name: np.stack([nominal[name]] * (1 + 2 * len(alone))) for name in drawn}
    for k, name in enumerate(alone):
        off = (drawn[name] - nominal[name]).reshape(len(drawn[name]), -1)
        rows[name][1 + 2 * k] = drawn[name][np.argmin(off.min(axis=1))]
        rows[name][2 + 2 * k] = drawn[name][np.argmax(off.max(axis=1))]
    return rows
