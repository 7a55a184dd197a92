"""Curves that are wanted, as residuals of least squares: a target, or a band to lie in.

Of a curve y with n places the residuals are ``d / (s √n)``, with the deviation ``d = y − target``,
or of a band ``d = y − min(max(y, lower), upper)``, and the scale s: their squares sum up to the
mean square of the deviations in units of s, so that curves of any number of places count alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.design.goals import What, value_of


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve that `minimize` brings near to a target, or into a band.

    Attributes:
        what: the name of an output, as of a column over wheel travel, or a function of the subject.
        target: wanted values, one for all places or one for each, in SI units.
        lower, upper: instead of a target the band in which the curve may lie, likewise; infinite
            where there is no limit, and either may be left out.
        scale: the deviation that counts as one, positive, of all places or of each; infinite where
            the curve does not matter. Give it where curves of different units are wanted.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> from jaxmbd.design import Curve, Within
        >>> bump = suspension.kinematics_sweep(
        ...     suspension.zoo_corner("multi_link"), travel=[-0.05, 0.0, 0.05],
        ...     observe=["toe", "camber"], gradients=())
        >>> wanted = [Curve("toe", 0.0, scale=1e-3), Curve("camber", lower=-0.03, scale=1e-2)]
        >>> found = mbd.minimize(
        ...     wanted, mbd.zoo.multi_link(), {"points/tierod_inboard": Within("10 mm")},
        ...     observe=bump)
        >>> found.method, found.objective < 0.2 * found.objective_before
        ('least-squares', True)
    """

    what: What
    target: Any = None
    lower: Any = None
    upper: Any = None
    scale: Any = 1.0

    def __post_init__(self) -> None:
        banded = self.lower is not None or self.upper is not None
        if banded == (self.target is not None):
            raise ValueError(f"{self._name}: give a target, or lower= and upper= of a band")
        for name in ("target", "lower", "upper", "scale"):
            given = getattr(self, name)
            if given is None:
                continue
            if isinstance(given, str) or np.any(np.isnan(x := np.asarray(given, np.float64))):
                raise ValueError(f"{self._name}: {name}={given!r} must be numbers in SI units")
            object.__setattr__(self, name, x)
        if not np.all(self.scale > 0.0):
            raise ValueError(f"{self._name}: scale={self.scale.tolist()} must be positive")
        if self.lower is not None and self.upper is not None and np.any(self.lower > self.upper):
            raise ValueError(f"{self._name}: its lower limit is above its upper one at some place")

    @property
    def _name(self) -> str:
        return f"curve {self.what!r}" if isinstance(self.what, str) else "a Curve"

    def deviation(self, subject: Any) -> Array:
        """How far the curve is from its target, or beyond its band, at each place.

        Args:
            subject: outputs by name, as an experiment gives them, or what `what` takes.

        Returns:
            In the shape and the unit of the curve, positive where it is too high; zero in a band.

        Raises:
            ValueError: target, band or scale have another shape than the curve.

        Example:
            >>> import numpy as np
            >>> from jaxmbd.design import Curve
            >>> Curve("toe", upper=1e-3).deviation({"toe": np.array([0.0, 3e-3])}).tolist()
            [0.0, 0.002]
        """
        y = value_of(self.what, subject, self._name)
        for name in ("target", "lower", "upper", "scale"):
            given = getattr(self, name)
            if given is not None and given.shape not in ((), y.shape):
                raise ValueError(
                    f"{self._name} has shape {y.shape}, its {name} {given.shape}: give one number, "
                    "or one for each place"
                )
        if self.target is not None:
            return y - self.target
        low = -np.inf if self.lower is None else self.lower
        return y - jnp.clip(y, low, np.inf if self.upper is None else self.upper)

    def residuals(self, subject: Any) -> Array:
        """The deviations over `scale √n`, one after the other (n,)."""
        found = self.deviation(subject) / self.scale
        return jnp.ravel(found) / np.sqrt(found.size)


Curves = Curve | Sequence[Curve]


def as_curves(objective: Any) -> tuple[Curve, ...]:
    """The curves of an objective; none if it is of another kind.

    Raises:
        ValueError: a sequence of which not all are curves.
    """
    if isinstance(objective, Curve):
        return (objective,)
    if not isinstance(objective, (list, tuple)):
        return ()
    if not objective or not all(isinstance(x, Curve) for x in objective):
        raise ValueError(f"a list as objective is one of Curve(…), not {objective!r}")
    return tuple(objective)


def residuals_of(curves: Sequence[Curve], subject: Any) -> Array:
    """The residuals of all curves, one after the other."""
    return jnp.concatenate([curve.residuals(subject) for curve in curves])


def misfit_of(curves: Sequence[Curve], subject: Any) -> Array:
    """The sum of the mean squares of all deviations, each in units of its scale."""
    return jnp.sum(residuals_of(curves, subject) ** 2)
