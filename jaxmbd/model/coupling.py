"""Couplings: conditions between joint coordinates, such as a fixed ratio.

`jaxmbd.model.gear_mesh` has gears whose tooth forces load the bearings, and
`jaxmbd.model.rack_and_pinion` racks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.base import Effort, ElementMotion, Load, effort_along
from jaxmbd.model.numbers import Reflection, Units, functions_static, number
from jaxmbd.model.part import Part

Term = tuple[str, int]
"""A joint, and which of its coordinates."""


class BaseCoupling(Part):
    """A row ``f(q1, q2, …) = 0`` between coordinates of tree joints.

    Its multiplier λ applies the effort ``λ ∂f/∂q_i`` along each of them.
    """

    units: ClassVar[Units] = {}
    """Units of the fields that are numbers."""

    def kinds(self, joints: dict[str, Any]) -> tuple[str, ...]:
        """Kind, "angle" or "travel", of the coordinates that its units refer to, the last first."""
        return tuple(joints[name].speeds[index] for name, index in reversed(self.terms))

    @property
    def terms(self) -> tuple[Term, ...]:
        """The coordinates that it couples."""
        raise NotImplementedError

    @property
    def points(self) -> dict[str, Any]:
        """Field name to point."""
        at = getattr(self, "at", None)
        return {} if at is None else {"at": at}

    def problems(self, joints: Mapping[str, Any]) -> list[str]:
        """Further problems, each with its remedy."""
        return []

    def problems_as_drawn(
        self, joints: Mapping[str, Any], drawn: Callable[[Any], Array]
    ) -> list[str]:
        """Those of a drawing whose numbers are all known; `drawn` finds a point (3,)."""
        return []

    def mirror_image(self, reflection: Reflection) -> Self:
        """The coupling of the same coordinates in a mirror."""
        return self

    def placed(self, joints: Mapping[str, Any], drawn: Callable[[Any], Array]) -> BaseCoupling:
        """The coupling with all that it takes from the drawing; `drawn` finds a point (3,)."""
        return self

    def condition(self, q: Array) -> Array:
        """``f`` for the coordinates of `terms` (n,)."""
        raise NotImplementedError

    def slope(self, q: Array) -> Array:
        """``∂f/∂q`` (n,)."""
        return jax.jacfwd(self.condition)(q)

    def pitch_radii(self, distance: float) -> tuple[float | None, float | None] | None:
        """Radii of the pitch circles about the two joints of `terms` [m], for pictures.

        None stands for a joint that has none, as a rack's; all None if there are no wheels.

        Args:
            distance: of the joints' axes as drawn [m].
        """
        return None

    def curvature(self, q: Array, v: Array) -> Array:
        """``vᵀ (∂²f/∂q²) v``, the part of f̈ due to the speeds `v` (n,)."""
        return jax.jvp(lambda x: self.slope(x) @ v, (q,), (v,))[1]

    @property
    def couples_alone(self) -> bool:
        """Whether its efforts are all that bodies feel, so that reactions are linear in λ."""
        return type(self).loads is BaseCoupling.loads

    def efforts(self, motion: ElementMotion, effort: Array) -> list[Effort]:
        """The efforts ``λ ∂f/∂q_i`` for the multiplier `effort`."""
        joints = {joint: motion.joint(joint) for joint, _ in self.terms}
        slope = self.slope(jnp.stack([joints[joint][0][i] for joint, i in self.terms]))
        return [
            effort_along(joint, i, effort * slope[k], joints[joint][1].shape[0])
            for k, (joint, i) in enumerate(self.terms)
        ]

    def loads(self, motion: ElementMotion, effort: Array) -> Sequence[Load | Effort]:
        """What bodies and bearings feel of them: by default pure couples along the coordinates."""
        return self.efforts(motion, effort)


class Gear(BaseCoupling):
    """Two joint coordinates in a fixed ratio: ``q_b − ratio · q_a = offset``.

    For angles about axes of the same sense, a pair of external gears of radii r_a and r_b has the
    ratio −r_a/r_b, a belt or chain +r_a/r_b. λ is the effort on `joint_b` along +q_b [N·m or N];
    `joint_a` has −ratio · λ.

    It acts as a pure couple on each shaft: bearings feel no tooth force and no pull of a belt. For
    these take `GearMesh` and `Belt`.

    Attributes:
        joint_a, joint_b: names of the two joints; they stay in the tree.
        ratio: of q_b to q_a; negative if they turn in opposite senses.
        offset: ``q_b − ratio · q_a`` [rad or m]; zero if the gear is drawn in mesh.
        index_a, index_b: which coordinate of each joint.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Gear("input", "output", ratio=-0.5).terms
        (('input', 0), ('output', 0))
    """

    joint_a: str = eqx.field(static=True)
    joint_b: str = eqx.field(static=True)
    ratio: Any = eqx.field(converter=number)
    offset: Any = eqx.field(converter=number, default=0.0)
    index_a: int = eqx.field(static=True, default=0)
    index_b: int = eqx.field(static=True, default=0)

    units: ClassVar[Units] = {"ratio": "ratio", "offset": "coordinate"}

    @property
    def terms(self) -> tuple[Term, ...]:
        """Those of `joint_a` and `joint_b`."""
        return (self.joint_a, self.index_a), (self.joint_b, self.index_b)

    def condition(self, q: Array) -> Array:
        """``q_b − ratio · q_a − offset``."""
        return q[1] - self.ratio * q[0] - self.offset

    def pitch_radii(self, distance: float) -> tuple[float | None, float | None] | None:
        """Circles that roll on each other from outside, or the pulleys of a belt.

        ``r_a/r_b = |ratio|``; ``r_a + r_b = distance`` for a negative ratio, half of it for a belt.
        """
        size = abs(float(self.ratio))
        if not (distance > 0.0 and size > 0.0):
            return None
        r_b = distance * (1.0 if self.ratio < 0.0 else 0.5) / (1.0 + size)
        return size * r_b, r_b


class Coupling(BaseCoupling):
    """Any condition between joint coordinates: ``function(q, params) = 0``.

    Attributes:
        joints: names of the joints, or pairs (name, which coordinate), in the order of `q`.
        function: ``function(q, params)`` → one number, for the coordinates (n,) [rad or m]; twice
            differentiable. A differential is ``q[0] + q[1] - 2 * q[2]``.
        params: a pytree of numbers handed to `function`.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Coupling(("left", "right", "case"), lambda q, p: q[0] + q[1] - 2.0 * q[2]).terms
        (('left', 0), ('right', 0), ('case', 0))
    """

    joints: tuple[Any, ...] = eqx.field(static=True, converter=tuple)
    function: Callable[[Array, Any], Array] = eqx.field(static=True, metadata={"function": True})
    params: Any = eqx.field(converter=functions_static, default=None)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Those of `joints`, the first of each where none is given."""
        return tuple((j, 0) if isinstance(j, str) else tuple(j) for j in self.joints)

    def condition(self, q: Array) -> Array:
        """``function(q, params)``."""
        return jnp.asarray(self.function(q, self.params))


COUPLING_TYPES: dict[str, type[BaseCoupling]] = {cls.__name__: cls for cls in (Gear, Coupling)}
