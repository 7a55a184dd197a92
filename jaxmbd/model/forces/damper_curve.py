"""A shock absorber's measured curve: force over speed, separately for bump and rebound."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.forces.laws import register_law
from jaxmbd.model.numbers import Units, is_concrete, number
from jaxmbd.model.part import Part


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
