"""`identify`: unknown numbers of a mechanism from measured series; `identifiability` beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.design import failure_of, in_step
from jaxmbd.identification.combinations import Ambiguity
from jaxmbd.identification.fit import Fit, Loss, Noise, fitted, loss_of, noise_of
from jaxmbd.identification.identified import (
    Identified,
    ambiguities_of,
    data_of,
    doubts,
    identified,
)
from jaxmbd.identification.information import ERRORS, Information, information
from jaxmbd.identification.measured import (
    Measured,
    Predictor,
    Record,
    blank,
    nominal_mechanism,
    places,
    records,
    unknowns_of,
)
from jaxmbd.plumbing import text_table


class Settings(NamedTuple):
    """How to identify: the loss, what is assumed of the errors, evaluations, starts, their seed."""

    loss: Loss
    errors: str
    max_evaluations: int
    starts: int
    seed: int


def identify(
    model: Any,
    vary: Mapping[str, Any],
    data: Any,
    observe: Any = None,
    *,
    noise: Mapping[str, Any] | None = None,
    loss: str = "linear",
    errors: str = "independent",
    starts: int = 1,
    seed: int = 0,
    max_evaluations: int = 200,
) -> Identified:
    """Identify numbers of a mechanism from measured series, with standard errors.

    Maximum likelihood: ``Σ ρ((measured − predicted) / σ)`` is least, by Gauss–Newton steps in a
    trust region, with exact derivatives and within the ranges.

    Args:
        model: a `Mechanism` or a `Parametrization`.
        vary: what is unknown: path or pattern to `design.Within`, `Between` or `MovedTogether`.
            Beside the model's numbers: numbers that an experiment holds, ``start/JOINT``,
            ``speeds/JOINT`` and ``inputs/JOINT`` of a `Motion`, ``known/JOINT`` of a
            `Configuration` or `Sweep` (after ``NAME/`` of the measurement, if there are several),
            and errors of the instruments, ``offset/CHANNEL`` and ``gain/CHANNEL``.
        data: channel to series (a dictionary of arrays, an xarray `Dataset`, a pandas
            `DataFrame`), or a list of `Measured`, each with an experiment of its own.
        observe: the experiment whose outputs were measured, unless `data` are `Measured`.
        noise: channel to standard deviation, SI or text with a unit; a channel that is not named
            has its noise estimated from the residuals.
        loss: "linear" for normal errors; "huber" or "cauchy" where there are outliers.
        errors: what standard errors assume of the residuals: "independent", "sandwich" (of any
            size) or "autocorrelated" (of any size, correlated along the axis).
        starts: number of points to start from, the others at random within the ranges; the best
            fit is kept.
        seed: of these.
        max_evaluations: of the model, for each start.

    Raises:
        ValueError: data that do not fit the experiments; a model that fails at the start.

    Example:
        >>> import jax, numpy as np, jaxmbd as mbd
        >>> jax.config.update("jax_enable_x64", True)
        >>> from jaxmbd.design import Within
        >>> from jaxmbd.observe import HoldingEffort, Sweep
        >>> weigh = Sweep({"hinge": np.linspace(0.0, 1.0, 5)}, {"torque": HoldingEffort("hinge")})
        >>> measured = weigh(mbd.zoo.simple_pendulum(mass=1.2))
        >>> found = mbd.identify(
        ...     mbd.zoo.simple_pendulum(),
        ...     {"bodies/bob/mass": Within(0.5)},
        ...     {"torque": measured["torque"]},
        ...     weigh,
        ...     noise={"torque": "0.1 N m"},
        ... )
        >>> round(found.values["bodies/bob/mass"], 6), round(found.errors["bodies/bob/mass"], 4)
        (1.2, 0.0054)
    """
    return identify_each(
        model,
        vary,
        [data],
        observe,
        noise=noise,
        loss=loss,
        errors=errors,
        starts=starts,
        seed=seed,
        max_evaluations=max_evaluations,
    )[0]


def identify_each(
    model: Any,
    vary: Mapping[str, Any],
    datasets: Sequence[Any],
    observe: Any = None,
    *,
    noise: Mapping[str, Any] | None = None,
    loss: str = "linear",
    errors: str = "independent",
    starts: int = 1,
    seed: int = 0,
    max_evaluations: int = 200,
) -> list[Identified]:
    """`identify` for many sets of data at once, as of a series of specimens.

    All fits run in step: the models that they ask for at a time are one batch.

    Args:
        model: as of `identify`, like all that follows `datasets`.
        vary: what is unknown.
        datasets: what `identify` takes as `data`, each of the same shapes.
        observe: the experiment.
        noise: channel to standard deviation.
        loss: of a residual.
        errors: what is assumed of them.
        starts: number of points to start from.
        seed: of these.
        max_evaluations: of the model, for each fit.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.identification import identify_each
        >>> identify_each(mbd.zoo.rssr(), {}, [])
        []
    """
    if not len(datasets):
        return []
    if errors not in ERRORS:
        raise ValueError(f"errors={errors!r}; give one of {list(ERRORS)}")
    mech = nominal_mechanism(model)
    every = [records(mech, _measurements(data, observe)) for data in datasets]
    if len({_shape(known) for known in every}) > 1:
        raise ValueError("the data sets differ in their channels or in their numbers of samples")
    settings = Settings(loss_of(loss), errors, max_evaluations, starts, seed)
    predictor = Predictor(unknowns_of(model, vary, every[0]), mech, every[0])
    noises = [noise_of(known, noise) for known in every]
    fits = _fits(predictor, [data_of(known) for known in every], noises, settings)
    return [
        identified(predictor, known, fit, its, settings)
        for known, fit, its in zip(every, fits, noises, strict=True)
    ]


def _measurements(data: Any, observe: Any) -> list[Measured]:
    if observe is not None:
        return [Measured(observe, data)]
    listed = [data] if isinstance(data, Measured) else data
    if isinstance(listed, Sequence) and listed and all(isinstance(x, Measured) for x in listed):
        return list(listed)
    raise ValueError("give observe=, the experiment that was measured, or a list of Measured")


def _shape(known: list[Record]) -> Any:
    return tuple((r.name, tuple((c.name, c.values.shape) for c in r.channels)) for r in known)


def _fits(
    predictor: Predictor, data: list[np.ndarray], noises: list[Noise], settings: Settings
) -> list[Fit]:
    """The best fit of each data set, all starts of all of them in step."""
    points, limits = start_points(predictor, settings), predictor.unknowns.limits
    jobs = [(i, x) for i in range(len(data)) for x in points]

    def task(job: int, ask: Any) -> Fit:
        i, x = jobs[job]
        most = settings.max_evaluations
        return fitted(ask, x, limits, data[i], noises[i], settings.loss, most)

    def answers(asked: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        found = predictor(np.array(asked))
        return list(zip(found.y, found.jacobian, strict=True))

    found = in_step(task, len(jobs), answers)
    own = [found[len(points) * i : len(points) * (i + 1)] for i in range(len(data))]
    return [min(fits, key=lambda fit: fit.likelihood) for fits in own]


def start_points(predictor: Predictor, settings: Settings) -> list[np.ndarray]:
    """The starts at which the model does not fail; the first is that of the ranges.

    Raises:
        ValueError: the model fails at the first.
    """
    n = len(predictor.unknowns)
    low, high = predictor.unknowns.limits
    u = np.random.default_rng(settings.seed).uniform(size=(max(settings.starts, 1) - 1, n))
    points = np.vstack(
        [np.zeros((1, n)), np.maximum(low, -1.0) * (1 - u) + np.minimum(high, 1) * u]
    )
    y = predictor(points).y
    check_start(predictor, y[0])
    return list(points[np.isfinite(y).all(axis=1)])


def check_start(predictor: Predictor, y: np.ndarray) -> None:
    """Raise a ValueError if the model fails at the start, of which these are the predictions."""
    sizes = [sum(c.values.size for c in record.channels) for record in predictor.records]
    parts = np.split(y, np.cumsum(sizes)[:-1])
    start = predictor.unknowns.model(np.zeros(len(predictor.unknowns)))
    for record, part in zip(predictor.records, parts, strict=True):
        if not np.isfinite(part).all():
            where = f" of measurement {record.name!r}" if record.name else ""
            why = failure_of(record.experiment, start) or "an output is not finite"
            raise ValueError(
                f"the model fails at the start{where}: {why}; give start= in the ranges of vary, "
                "where the model works"
            )


@dataclass(frozen=True, eq=False)
class Identifiability:
    """What data would tell about unknowns, to first order; printed as a table.

    Attributes:
        predictor: the model of the measurements.
        information: about the scaled unknowns, of all channels.
        sigma: standard deviations of the noise (N,).

    Example:
        >>> from jaxmbd.identification import Identifiability
        >>> Identifiability.__name__
        'Identifiability'
    """

    predictor: Predictor
    information: Information
    sigma: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """Paths of the unknowns (n,)."""
        return self.predictor.unknowns.names

    @property
    def errors(self) -> dict[str, float]:
        """Path to the standard error to expect, SI; infinite where not determined."""
        return self._named(self.information)

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the estimates (n, n); NaN where one is not determined."""
        return self.information.correlation()

    @cached_property
    def without(self) -> dict[str, dict[str, float]]:
        """Channel to the standard errors that the other channels alone would give."""
        names, rows = places(self.predictor.records)
        found = {}
        for name, part in zip(names, rows, strict=True):
            if len(names) > 1:
                others = np.delete(self.information.jacobian, part, axis=0)
                found[name] = self._named(information(others))
        return found

    @cached_property
    def ambiguities(self) -> tuple[Ambiguity, ...]:
        """Unknowns that the data could not tell apart, with what they determine of them."""
        here = np.zeros(len(self.names))
        return ambiguities_of(self.predictor, here, self.information, self.sigma)

    def _named(self, found: Information) -> dict[str, float]:
        errors = found.errors() * self.predictor.unknowns.scale
        return dict(zip(self.names, map(float, errors), strict=True))

    def __str__(self) -> str:
        without = self.without
        others = [f"without {c}" for c in without]
        head, rows = ("unknown", "value", "expected error", *others, "unit"), []
        start, units = self.predictor.unknowns.start, self.predictor.unknowns.units
        for name, value, unit in zip(self.names, start, units, strict=True):
            errors = [self.errors[name], *(x[name] for x in without.values())]
            said = [f"{x:.2g}" if np.isfinite(x) else "undetermined" for x in errors]
            rows.append((name, f"{value:.4g}", *said, unit))
        doubted = doubts(self.names, self.information, self.ambiguities)
        return "\n".join([text_table(head, rows), *doubted])


def identifiability(
    model: Any,
    vary: Mapping[str, Any],
    observe: Any,
    noise: Mapping[str, Any],
) -> Identifiability:
    """What measuring an experiment would tell about unknowns: Fisher's information beforehand.

    Compare experiments by it before doing them: which unknowns each determines, how well, and what
    every channel is worth.

    Args:
        model: a `Mechanism` or a `Parametrization`, with the values that are expected.
        vary: what is unknown, as of `identify`.
        observe: the experiment, or a list of them; all outputs count as measured, at the places of
            the experiment.
        noise: channel to standard deviation, for each output.

    Example:
        >>> import jax, numpy as np, jaxmbd as mbd
        >>> jax.config.update("jax_enable_x64", True)
        >>> from jaxmbd.design import Within
        >>> from jaxmbd.identification import identifiability
        >>> from jaxmbd.observe import HoldingEffort, Sweep
        >>> weigh = Sweep({"hinge": np.linspace(0.0, 1.0, 5)}, {"torque": HoldingEffort("hinge")})
        >>> unknown = {"bodies/bob/mass": Within(0.5), "bodies/bob/com/x": Within(0.5)}
        >>> told = identifiability(mbd.zoo.simple_pendulum(), unknown, weigh, {"torque": 0.1})
        >>> str(told.ambiguities[0].determined[0])
        'bodies/bob/mass · bodies/bob/com/x'
    """
    mech = nominal_mechanism(model)
    listed = observe if isinstance(observe, (list, tuple)) else [observe]
    known = records(mech, [Measured(x, blank(mech, x)) for x in listed])
    noises = noise_of(known, noise)
    if noises.estimated:
        raise ValueError(f"noise: give the standard deviation of {list(noises.estimated)} too")
    predictor = Predictor(unknowns_of(model, vary, known), mech, known)
    found = predictor(np.zeros(len(predictor.unknowns)))
    check_start(predictor, found.y[0])
    scaled = found.jacobian[0] / noises.known[:, None]
    return Identifiability(predictor, information(scaled), noises.known)
