"""Laws with parameters, and the registry of the names that mechanism files use for laws.

`DamperCurve` is a shock absorber's measured curve, separately for bump and rebound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.numbers import FunctionLaw, Units, is_concrete, number
from jaxmbd.model.part import Part
from jaxmbd.model.sampled import Sampled, piecewise_linear, sampled

LAWS: dict[str, Any] = {}
"""The laws that `register_law` named, by name."""

T = TypeVar("T")


def register_law(name: str) -> Callable[[T], T]:
    """Register the name of a law (a function, or a module class with parameters) in JSON files.

    Example:
        >>> import jaxmbd as mbd
        >>> @mbd.register_law("stiffening")
        ... def stiffening(extension, rate):
        ...     return 1e5 * extension**3
    """

    def register(thing: T) -> T:
        if name in LAWS and LAWS[name] is not thing:
            old = LAWS[name]
            same = getattr(old, "__qualname__", 0) == getattr(thing, "__qualname__", 1)
            if not same:
                raise ValueError(f"law name {name!r} is taken by {old!r}; choose another")
        LAWS[name] = thing
        return thing

    return register


def law_name(value: Any) -> str | None:
    """The registered name of a law or of its class, or None.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.model.forces import law_name
        >>> law_name(mbd.SignedSquare(1.0)), law_name(lambda x, rate: x)
        ('signed_square', None)
    """
    thing = value.function if isinstance(value, FunctionLaw) else type(value)
    return next((name for name, known in LAWS.items() if known is thing), None)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def law_energy(value: Any, extension: Array) -> Array:
    """``∫₀ˣ law(s, 0) ds`` by 16-point Gauss-Legendre (exact for polynomials to degree 31)."""
    total = jnp.zeros_like(extension)
    zero = jnp.zeros_like(extension)
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        total = total + weight * value(0.5 * extension * (1.0 + node), zero)
    return 0.5 * extension * total


register_law("sampled")(Sampled)
register_law("sampled_function")(sampled)


@register_law("signed_square")
class SignedSquare(Part):
    """``coefficient · |x| x``: a progressive spring [N/m²].

    Example:
        >>> import jaxmbd as mbd
        >>> float(mbd.SignedSquare(10.0)(-2.0, 0.0))
        -40.0
    """

    coefficient: Any = eqx.field(converter=number)

    units: ClassVar[Units] = {"coefficient": "effort/coordinate²"}

    def __call__(self, extension: Array, rate: Array) -> Array:
        return self.coefficient * jnp.abs(extension) * extension


@register_law("reflected")
class Reflected(Part):
    """``−law(−x, −ẋ)``: a law along a direction that a mirror reverses.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.model.forces import Reflected
        >>> float(Reflected(mbd.Table([0.0, 1.0], [0.0, 50.0]))(-0.5, 0.0))
        -25.0
    """

    law: Any

    def __call__(self, extension: Array, rate: Array) -> Array:
        return -self.law(-jnp.asarray(extension), -jnp.asarray(rate))


@register_law("table")
class Table(Part):
    """Piecewise-linear force over extension, or over its rate, held constant beyond the ends.

    Attributes:
        x: increasing breakpoints (n,) [m], or [m/s] where `of_rate`.
        y: forces (n,) [N].
        of_rate: whether `x` is the rate of extension (a damper's table).

    Raises:
        ValueError: lists differ in length, breakpoints do not increase, or a number is not finite.

    Example:
        >>> import jaxmbd as mbd
        >>> float(mbd.Table([0.0, 1.0], [0.0, 50.0])(0.5, 0.0))
        25.0
    """

    x: Any = eqx.field(converter=number)
    y: Any = eqx.field(converter=number)
    of_rate: bool = eqx.field(static=True, default=False)

    @property
    def units(self) -> Units:
        """Of the breakpoints and of the forces."""
        return {"x": "coordinate/s" if self.of_rate else "coordinate", "y": "effort"}

    def __check_init__(self) -> None:
        x, y = self.x, self.y
        if np.ndim(x) != 1 or np.shape(x) != np.shape(y) or not np.size(x):
            raise ValueError(
                f"table: x has shape {np.shape(x)} and y {np.shape(y)}; give two equal lists"
            )
        for name, numbers in (("x", x), ("y", y)):
            if is_concrete(numbers) and not np.all(np.isfinite(numbers)):
                raise ValueError(f"table: {name} is {np.asarray(numbers).tolist()}, not all finite")
        if is_concrete(x) and not np.all(np.diff(x) > 0.0):
            raise ValueError(
                f"table: breakpoints x {np.asarray(x).tolist()} must increase; sort both lists"
            )

    def __call__(self, extension: Array, rate: Array) -> Array:
        return piecewise_linear(rate if self.of_rate else extension, self.x, self.y)


@register_law("damper_curve")
class DamperCurve(Part):
    """Piecewise-linear damper force over speed, as printed on damper data sheets, all positive.

    A law for a `SpringDamper` (tension over the rate of extension) or a `TorsionSpring`: from
    (0, 0) through the given points, extrapolated with the last slope. Rebound is extension, bump is
    compression. The dissipated power ``F v`` is never negative.

    Attributes:
        bump_speeds, bump_forces: increasing positive speeds (n,) [m/s], and forces [N].
        rebound_speeds, rebound_forces: the same in extension (m,).

    Raises:
        ValueError: lists differ in length, speeds do not increase from zero, a force is negative
            or a curve falls at its end.

    Example:
        >>> import jaxmbd as mbd
        >>> curve = mbd.DamperCurve([0.1, 1.0], [300, 900], [0.1, 1.0], [800, 2600])
        >>> float(curve(0.0, 0.1)), float(curve(0.0, -2.0))
        (800.0, -1566.6666666666665)
    """

    bump_speeds: Any = eqx.field(converter=number)
    bump_forces: Any = eqx.field(converter=number)
    rebound_speeds: Any = eqx.field(converter=number)
    rebound_forces: Any = eqx.field(converter=number)

    units: ClassVar[Units] = {
        "bump_speeds": "coordinate/s",
        "bump_forces": "effort",
        "rebound_speeds": "coordinate/s",
        "rebound_forces": "effort",
    }

    def __check_init__(self) -> None:
        for side in ("bump", "rebound"):
            speeds, forces = getattr(self, f"{side}_speeds"), getattr(self, f"{side}_forces")
            if is_concrete(speeds) and is_concrete(forces):
                _check_curve(side, np.asarray(speeds, float), np.asarray(forces, float))

    def __call__(self, extension: Array, rate: Array) -> Array:
        out, back = jnp.maximum(rate, 0.0), jnp.maximum(-rate, 0.0)
        rebound = _curve(out, self.rebound_speeds, self.rebound_forces)
        return rebound - _curve(back, self.bump_speeds, self.bump_forces)


def _curve(speed: Array, speeds: Any, forces: Any) -> Array:
    """The sum over the segments of slope times the part of `speed` in them."""
    x, y = jnp.asarray(speeds), jnp.asarray(forces)
    total, start, height, n = jnp.zeros_like(speed), 0.0, 0.0, x.shape[0]
    for i in range(n):
        slope = (y[i] - height) / (x[i] - start)
        part = jnp.maximum(speed - start, 0.0)
        part = part if i == n - 1 else jnp.minimum(part, x[i] - start)
        total = total + slope * part
        start, height = x[i], y[i]
    return total


def _check_curve(side: str, x: np.ndarray, y: np.ndarray) -> None:
    what = f"damper curve, {side}"
    if x.ndim != 1 or x.shape != y.shape or x.size == 0:
        raise ValueError(f"{what}: speeds {x.shape} and forces {y.shape}; give two equal lists")
    if not (x[0] > 0.0 and np.all(np.diff(x) > 0.0)):
        raise ValueError(
            f"{what}: speeds {x.tolist()} must increase from above zero; (0, 0) is understood"
        )
    if not np.all(y >= 0.0):
        raise ValueError(f"{what}: forces {y.tolist()} must be positive: a damper takes energy out")
    if y[-1] < (y[-2] if y.size > 1 else 0.0):
        raise ValueError(f"{what}: the forces fall at the end, where the last slope is continued")
