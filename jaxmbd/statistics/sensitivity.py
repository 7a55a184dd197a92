"""What drives an output: exact gradients and the scatter they predict; Sobol indices, by SALib."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd import lanes
from jaxmbd.plumbing import hint, listed, optional, text_table, warn_user
from jaxmbd.sampling import (
    Covariance,
    Saltelli,
    Space,
    components,
    indefinite,
    numbers_of,
    std_and_correlation,
)
from jaxmbd.statistics.samples import counted

_PRINTED = 12
"""Numbers that a printed sensitivity shows at most."""


class Sensitivity(NamedTuple):
    """Gradient of an output (…) at the nominal inputs.

    Attributes:
        names: of the inputs' numbers that scatter (d,).
        owners: the input of each number (d,).
        nominal: value of the output (…).
        gradient: derivative with respect to each number (…, d); NaN where there is no value.
        std: standard deviations of the numbers (d,).
        correlation: their linear correlations (d, d); None if they are independent.

    Example:
        >>> from jaxmbd.statistics import sensitivities
        >>> std = {"a": 0.1, "b": 0.1}
        >>> found = sensitivities(lambda x: {"y": 3.0 * x["a"] + x["b"]}, {"a": 1.0, "b": 0.0}, std)
        >>> found["y"].gradient, found["y"].shares.round(2)
        (array([3., 1.]), array([0.9, 0.1]))
        >>> print(found["y"])
        nominal 3, standard deviation 0.3162 to first order
        input  gradient  its std   share
        a             3      0.1  90.0 %
        b             1      0.1  10.0 %
    """

    names: tuple[str, ...]
    owners: tuple[str, ...]
    nominal: np.ndarray
    gradient: np.ndarray
    std: np.ndarray
    correlation: np.ndarray | None = None

    def __str__(self) -> str:
        """The numbers that drive the output most; of a curve, where it scatters most."""
        spread = np.asarray(self.spread)
        at = np.unravel_index(np.argmax(np.nan_to_num(spread)), spread.shape)
        where = f"at {list(map(int, at))} of {spread.shape}, where it scatters most: " if at else ""
        shares, gradient = self.shares[at], self.gradient[at]
        order = np.argsort(-np.abs(np.nan_to_num(shares)), kind="stable")[:_PRINTED]
        rows = [
            (self.names[i], f"{gradient[i]:.4g}", f"{self.std[i]:.3g}", f"{100 * shares[i]:.1f} %")
            for i in order
        ]
        more = [f"and {len(shares) - _PRINTED} more"] if len(shares) > _PRINTED else []
        head = f"nominal {self.nominal[at]:.4g}, standard deviation {spread[at]:.4g} to first order"
        table = text_table(("input", "gradient", "its std", "share"), rows, left=(0,), rule=False)
        return "\n".join([where + head, table, *more])

    @property
    def parts(self) -> np.ndarray:
        """Standard deviation that each number alone causes, with its sign (…, d)."""
        return self.gradient * self.std

    @property
    def contributions(self) -> np.ndarray:
        """Covariance of what each number causes with the output (…, d): the variance is their sum.

        Of independent numbers the squares of `parts`; of correlated ones it may be negative.
        """
        parts = self.parts
        return parts * (parts if self.correlation is None else parts @ self.correlation)

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation of the output (…), to first order."""
        return np.sqrt(np.maximum(np.sum(self.contributions, axis=-1), 0.0))

    @property
    def shares(self) -> np.ndarray:
        """Share of each number in the variance (…, d); zeros where nothing scatters but rounding.

        Rounding is a spread below 1e-13 of the largest value and spread of the output.

        Of correlated numbers the covariance with the output over its variance (Li et al., J. Phys.
        Chem. A 114 (2010) 6022): the shares sum to one, and may be negative. NaN where one of the
        derivatives does not exist: what it adds to the variance is unknown.
        """
        contributions = self.contributions
        variance = np.sum(contributions, axis=-1, keepdims=True)
        variance = np.where(np.isfinite(variance), variance, np.nan)
        sizes = np.abs(np.append(np.ravel(self.nominal), np.ravel(self.spread)))
        rounding = 1e-13 * np.max(sizes[np.isfinite(sizes)], initial=0.0)
        none = np.zeros_like(contributions)
        return np.divide(contributions, variance, out=none, where=~(variance <= rounding**2))

    @property
    def without_derivative(self) -> tuple[str, ...]:
        """Names of the numbers by which a finite value of the output has no derivative."""
        finite = np.isfinite(self.nominal)[..., None]
        absent = (~np.isfinite(self.gradient) & finite).reshape(-1, len(self.names))
        return tuple(name for name, none in zip(self.names, absent.T, strict=True) if none.any())


def sensitivities(
    function: Callable[[dict[str, Any]], Mapping[str, Any]],
    nominal: Mapping[str, Any],
    std: Mapping[str, Any] | Covariance,
) -> dict[str, Sensitivity]:
    """Derivatives of all outputs of a function with respect to all inputs that scatter.

    One directional derivative for each number, all of them as one batch of `lanes.vmap`. Outputs
    that are not real numbers (a status) have none.

    Args:
        function: one sample (name to value) to its outputs.
        nominal: the inputs at which to differentiate.
        std: standard deviations by name (`Sampler.std`) of independent inputs; or the covariance
            of correlated ones (`Sampler.covariance`). Inputs without one are held fixed, and so
            are numbers whose deviation is zero.

    Returns:
        name of output to its sensitivity.

    Raises:
        ValueError: a name is no input, nothing scatters, or no numbers have that covariance.

    Example:
        >>> from jaxmbd.statistics import sensitivities
        >>> nominal = {"p": [3.0, 4.0, 0.0], "k": 2.0}
        >>> std = {"p": [0.1, 0.1, 0.0], "k": 0.05}
        >>> found = sensitivities(lambda s: {"y": s["k"] * s["p"][0]}, nominal, std)["y"]
        >>> found.names, found.gradient.tolist(), round(float(found.spread), 3)
        (('p/x', 'p/y', 'k'), [2.0, 0.0, 3.0], 0.25)
    """
    values = {n: jnp.asarray(x, float) for n, x in nominal.items()}
    labels, matrix = {}, None
    if isinstance(std, Covariance):
        std, labels, matrix = _correlated(values, std)
    names, owners, deviations, directions = _directions(values, std)
    if not names:
        raise ValueError("no input scatters: there is nothing to differentiate with respect to")

    def real(varied: dict[str, Any]) -> dict[str, Any]:
        found = function({**values, **varied})
        return {n: x for n, x in found.items() if jnp.issubdtype(jnp.result_type(x), jnp.floating)}

    at = {n: values[n] for n in directions}

    def directional(direction: dict[str, Any]) -> Any:
        return jax.jvp(real, (at,), (direction,))

    outputs, tangents = lanes.finished(jax.jit(lanes.vmap(directional))(directions))
    if matrix is not None:
        order = [labels[n] for n in names]
        matrix = matrix[np.ix_(order, order)]
    found = {}
    for name, values_ in outputs.items():
        gradient = np.moveaxis(np.asarray(tangents[name]), 0, -1)
        value = np.asarray(values_)[0]
        gradient = np.where(np.isfinite(value)[..., None], gradient, np.nan)
        found[name] = Sensitivity(names, owners, value, gradient, deviations, matrix)
    _tell_of_absent(found)
    return found


def _tell_of_absent(found: Mapping[str, Sensitivity]) -> None:
    if none := [n for n, x in found.items() if not np.all(np.isfinite(x.nominal))]:
        warn_user(
            f"no value of {listed(none, 4)} at the nominal inputs: the gradient, its spread and "
            "its shares are NaN there. Choose nominal inputs that have one, as of a crossing a "
            "level that the curve reaches"
        )
    absent = dict.fromkeys(n for x in found.values() for n in x.without_derivative)
    if absent:
        outputs = ", ".join(name for name, x in found.items() if x.without_derivative)
        warn_user(
            f"no derivative of {outputs} by {listed([*absent], 4)}: their shares are "
            "NaN. Usually a loop cannot close once a part is displaced in that direction, as that "
            "of parallel hinges out of its plane: redundancy(mech) names its rows. Hold these "
            "numbers, or give the loop a joint that lets them differ (a ball, a universal joint)"
        )


def _correlated(
    values: Mapping[str, jax.Array], covariance: Covariance
) -> tuple[dict[str, np.ndarray], dict[str, int], np.ndarray]:
    """Standard deviations by input, and the rows of the correlations by number."""
    labels, std, problems = numbers_of(covariance, values)
    if problems:
        raise ValueError("; ".join(problems))
    _, correlation = std_and_correlation(covariance.matrix)
    if wrong := indefinite(correlation, labels, lambda i, j, r: r):
        raise ValueError(wrong[0])
    return std, {n: k for k, n in enumerate(labels)}, correlation


def _directions(
    values: Mapping[str, jax.Array], std: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray, dict[str, np.ndarray]]:
    """Names, owners and deviations of the numbers that scatter, and unit vectors along them."""
    if unknown := [n for n in std if n not in values]:
        raise ValueError(
            f"{unknown[0]!r} has a standard deviation, but is no input; {hint(unknown[0], values)}"
        )
    sizes = {n: np.broadcast_to(np.asarray(s, float), values[n].shape) for n, s in std.items()}
    if wrong := [n for n, s in sizes.items() if not np.all(s >= 0.0)]:
        raise ValueError(
            f"the standard deviation of {wrong[0]!r} must not be negative or NaN, is "
            f"{sizes[wrong[0]].tolist()}"
        )
    names, deviations, places = [], [], []
    for name, s in sizes.items():
        for i, label in enumerate(components(name, s.shape)):
            if s.flat[i] > 0.0:
                names.append(label)
                deviations.append(s.flat[i])
                places.append((name, i))
    directions = {n: np.zeros((len(places), values[n].size), values[n].dtype) for n, _ in places}
    for k, (name, i) in enumerate(places):
        directions[name][k, i] = 1.0
    shaped = {n: d.reshape(-1, *values[n].shape) for n, d in directions.items()}
    return tuple(names), tuple(n for n, _ in places), np.array(deviations), shaped


class SobolIndices(NamedTuple):
    """Shares of the variance of an output.

    Attributes:
        names: of the factors (d,).
        first: share of each factor alone (d,).
        first_error: half width of its confidence interval.
        total: share of each factor and of its interactions with others (d,).
        total_error: half width of its confidence interval.
        second: share of the interaction of each pair (d, d), in the upper triangle; else None.
        second_error: half width of its confidence interval.
        base: number of base samples that count.
        left_out: number of those left out because one of their rows failed.

    Example:
        >>> from jaxmbd.sampling import Saltelli, Sampler, Uniform
        >>> from jaxmbd.statistics import sobol_indices
        >>> sampler = Sampler({"x": (0.0, Uniform(1.0)), "y": (0.0, Uniform(1.0))}, Saltelli(64))
        >>> output = sampler.draw(0, sampler.count)["x"]
        >>> found = sobol_indices(sampler.design, sampler.space, output)
        >>> found.names, found.base
        (('x', 'y'), 64)
    """

    names: tuple[str, ...]
    first: np.ndarray
    first_error: np.ndarray
    total: np.ndarray
    total_error: np.ndarray
    second: np.ndarray | None
    second_error: np.ndarray | None
    base: int
    left_out: int


def sobol_indices(
    design: Saltelli,
    space: Space,
    output: Any,
    ok: Any = None,
    *,
    confidence: float = 0.95,
    resamples: int = 100,
    seed: int = 0,
) -> SobolIndices:
    """Sobol indices of an output of a study that has a `Saltelli` design.

    A base sample counts only if all its rows succeeded. An output that does not vary has indices
    of zero.

    Args:
        design: of the study.
        space: of its sampler (`Sampler.space`).
        output: values (n,), in the order of the samples.
        ok: which samples succeeded; all by default.
        confidence: of the intervals, which are found by resampling.
        resamples: how often.
        seed: of the resampling.

    Raises:
        ImportError: SALib is not installed.
        ValueError: the number of values does not fit the design, or too few base samples count.

    Example:
        >>> from jaxmbd.sampling import Saltelli, Sampler, Uniform
        >>> from jaxmbd.statistics import sobol_indices
        >>> inputs = {"x": (0.0, Uniform(1.0)), "y": (0.0, Uniform(2.0))}
        >>> sampler = Sampler(inputs, Saltelli(512))
        >>> drawn = sampler.draw(0, sampler.count)
        >>> found = sobol_indices(sampler.design, sampler.space, drawn["x"] + drawn["y"])
        >>> found.names, found.first.round(2)
        (('x', 'y'), array([0.2, 0.8]))
    """
    names, rows = design.factors(space), design.rows_per_base(space)
    values = np.asarray(output, np.float64)
    if values.shape != (design.base * rows,):
        raise ValueError(
            f"{design} of {len(names)} factors has {design.base * rows} samples, "
            f"the output has shape {values.shape}"
        )
    whole = np.all(counted(values, ok).reshape(-1, rows), axis=1, keepdims=True)[:, 0]
    kept = values.reshape(-1, rows)[whole]
    if len(kept) < 2:
        raise ValueError(f"of {len(whole)} base samples {len(kept)} have no failed row: too few")
    found = _analyse(names, kept.ravel(), design.second_order, confidence, resamples, seed)
    first, first_error, total, total_error = (
        np.asarray(found[k]) for k in ("S1", "S1_conf", "ST", "ST_conf")
    )
    pairs = [np.asarray(found[k]) if design.second_order else None for k in ("S2", "S2_conf")]
    left_out = int(len(whole) - len(kept))
    return SobolIndices(
        names, first, first_error, total, total_error, pairs[0], pairs[1], len(kept), left_out
    )


def _analyse(
    names: tuple[str, ...],
    values: np.ndarray,
    second: bool,
    confidence: float,
    resamples: int,
    seed: int,
) -> dict[str, Any]:
    count = len(names)
    if np.ptp(values) == 0.0:
        zero, square = np.zeros(count), np.zeros((count, count))
        found: dict[str, Any] = dict.fromkeys(("S1", "S1_conf", "ST", "ST_conf"), zero)
        return found | {"S2": square, "S2_conf": square}
    sobol = optional("SALib.analyze.sobol", "campaign", "Sobol indices")
    problem = {"num_vars": count, "names": list(names), "bounds": [[0.0, 1.0]] * count}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A seed of 0 means none to SALib.
        return sobol.analyze(
            problem,
            values,
            calc_second_order=second,
            num_resamples=resamples,
            conf_level=confidence,
            seed=seed + 1,
        )
