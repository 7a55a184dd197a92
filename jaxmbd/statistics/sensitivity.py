"""First-order sensitivities: exact gradients at the nominal inputs, the scatter they predict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd import lanes
from jaxmbd.model.user_warning import warn_user
from jaxmbd.numerics.near_names import listed
from jaxmbd.sampling import components


class Sensitivity(NamedTuple):
    """Gradient of an output (…) at the nominal inputs.

    Attributes:
        names: of the inputs' numbers that scatter (d,).
        owners: the input of each number (d,).
        nominal: value of the output (…).
        gradient: derivative with respect to each number (…, d).
        std: standard deviations of the numbers (d,).

    Example:
        >>> from jaxmbd.statistics import sensitivities
        >>> std = {"a": 0.1, "b": 0.1}
        >>> found = sensitivities(lambda x: {"y": 3.0 * x["a"] + x["b"]}, {"a": 1.0, "b": 0.0}, std)
        >>> found["y"].gradient, found["y"].shares.round(2)
        (array([3., 1.]), array([0.9, 0.1]))
    """

    names: tuple[str, ...]
    owners: tuple[str, ...]
    nominal: np.ndarray
    gradient: np.ndarray
    std: np.ndarray

    @property
    def parts(self) -> np.ndarray:
        """Standard deviation that each number alone causes, with its sign (…, d)."""
        return self.gradient * self.std

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation of the output (…), of independent inputs, to first order."""
        return np.sqrt(np.sum(self.parts**2, axis=-1))

    @property
    def shares(self) -> np.ndarray:
        """Share of each number in the variance (…, d); zeros where nothing scatters.

        NaN where one of the derivatives does not exist: what it adds to the variance is unknown.
        """
        variance = np.sum(self.parts**2, axis=-1, keepdims=True)
        variance = np.where(np.isfinite(variance), variance, np.nan)
        none = np.zeros_like(self.parts)
        return np.divide(self.parts**2, variance, out=none, where=variance != 0.0)

    @property
    def without_derivative(self) -> tuple[str, ...]:
        """Names of the numbers by which a finite value of the output has no derivative."""
        finite = np.isfinite(self.nominal)[..., None]
        absent = (~np.isfinite(self.gradient) & finite).reshape(-1, len(self.names))
        return tuple(name for name, none in zip(self.names, absent.T, strict=True) if none.any())


def sensitivities(
    function: Callable[[dict[str, Any]], Mapping[str, Any]],
    nominal: Mapping[str, Any],
    std: Mapping[str, Any],
) -> dict[str, Sensitivity]:
    """Derivatives of all outputs of a function with respect to all inputs that scatter.

    One directional derivative for each number, all of them as one batch of `lanes.vmap`. Outputs
    that are not real numbers (a status) have none.

    Args:
        function: one sample (name to value) to its outputs.
        nominal: the inputs at which to differentiate.
        std: standard deviations by name (`Sampler.std`); inputs without one are held fixed, and so
            are numbers whose deviation is zero.

    Returns:
        name of output to its sensitivity.

    Example:
        >>> from jaxmbd.statistics import sensitivities
        >>> nominal = {"p": [3.0, 4.0, 0.0], "k": 2.0}
        >>> std = {"p": [0.1, 0.1, 0.0], "k": 0.05}
        >>> found = sensitivities(lambda s: {"y": s["k"] * s["p"][0]}, nominal, std)["y"]
        >>> found.names, found.gradient.tolist(), round(float(found.spread), 3)
        (('p/x', 'p/y', 'k'), [2.0, 0.0, 3.0], 0.25)
    """
    values = {n: jnp.asarray(x, float) for n, x in nominal.items()}
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
    found = {}
    for name, values_ in outputs.items():
        gradient = np.moveaxis(np.asarray(tangents[name]), 0, -1)
        found[name] = Sensitivity(names, owners, np.asarray(values_)[0], gradient, deviations)
    _tell_of_absent(found)
    return found


def _tell_of_absent(found: Mapping[str, Sensitivity]) -> None:
    absent = dict.fromkeys(n for x in found.values() for n in x.without_derivative)
    if absent:
        outputs = ", ".join(name for name, x in found.items() if x.without_derivative)
        warn_user(
            f"no derivative of {outputs} by {listed([*absent], 4)}: their shares are "
            "NaN. Usually a loop cannot close once a part is displaced in that direction, as that "
            "of parallel hinges out of its plane: redundancy(mech) names its rows. Hold these "
            "numbers, or give the loop a joint that lets them differ (a ball, a universal joint)"
        )


def _directions(
    values: Mapping[str, jax.Array], std: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray, dict[str, np.ndarray]]:
    """Names, owners and deviations of the numbers that scatter, and unit vectors along them."""
    if unknown := [n for n in std if n not in values]:
        raise ValueError(f"{unknown[0]!r} has a standard deviation, but is no input")
    sizes = {n: np.broadcast_to(np.asarray(s, float), values[n].shape) for n, s in std.items()}
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
