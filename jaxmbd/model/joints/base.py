"""What a joint type is: its motion as a tree joint, its wrenches as a cut joint.

A joint connects body `a` to body `b`. Everything is written in the axes of `a` as drawn, which
are the global axes at the drawn configuration. With `R_a`, `R_b` the rotations of the two bodies
from their drawn orientation and ``d`` the vector from `a`'s half of the joint point to `b`'s:

* as a *tree* joint its coordinates q give ``R_b = R_a · rotation(q)`` and
  ``d = R_a · translation(q)``, its speeds v the relative twist ``[ω; v] = R_a · subspace(q) v``
  at `b`'s point;
* as a *cut* joint the complement Λ of that subspace (Ghaedrahmati et al. 2019: ``Λᵀ S = 0``)
  gives the rows ``residual = 0`` and ``wrenchesᵀ · (relative twist) = 0``.

Force rows come before moment rows.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.numbers import GROUND, ComRef, Toward, direction, point
from jaxmbd.spatial.rotations import alignment, perpendicular_pair, rotation_between, unit


class Joint(eqx.Module):
    """Base of all joint types; see the module's text for what its methods mean."""

    a: eqx.AbstractVar[str]
    b: eqx.AbstractVar[str]

    nq: ClassVar[int]
    nv: ClassVar[int]
    speeds: ClassVar[tuple[str, ...]] = ()
    """Kind of each speed: "angle" [rad/s] or "travel" [m/s]."""
    rows: ClassVar[tuple[str, ...]]
    """Kind of each constraint row: "force" [N, m] or "moment" [N·m, rad]."""
    row_texts: ClassVar[tuple[str, ...]] = ()
    """What to call the rows, where not "force 1", "moment 1" and so on."""
    coordinates_text: ClassVar[str] = ""
    can_be_cut: ClassVar[bool] = True
    can_be_in_tree: ClassVar[bool] = True
    moving_subspace: ClassVar[bool] = False
    """Whether the subspace depends on q."""
    directions: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that are directions and must not be zero."""
    serves_in_plane: ClassVar[bool] = False
    """Whether it serves as it is in a planar mechanism; others have a form in `in_plane`."""

    @property
    def points(self) -> dict[str, Any]:
        """Field name to point, for the halves that are given."""
        names = ("at", "at_a", "at_b")
        return {n: getattr(self, n) for n in names if getattr(self, n, None) is not None}

    @property
    def point_a(self) -> Any:
        """The joint point on `a`."""
        return self.at  # type: ignore[attr-defined]

    @property
    def point_b(self) -> Any:
        """The joint point on `b`; the same as on `a` unless the halves are drawn apart."""
        other = self.at_b  # type: ignore[attr-defined]
        return self.point_a if other is None else other

    def problems(self) -> list[str]:
        """What is wrong with its own numbers and functions, each with the cure."""
        return []

    def neutral(self) -> np.ndarray:
        """Coordinates (nq,) as drawn."""
        return np.zeros(self.nq)

    def rotation(self, q: Array) -> Array | None:
        """(3, 3) from b's drawn axes to a's, or None where the joint does not turn."""
        raise TypeError(f"{type(self).__name__} is a constraint row and has no coordinates")

    def translation(self, q: Array) -> Array | None:
        """(3,) [m] from a's joint point to b's, in a's axes; None where it is zero."""
        return None

    def subspace(self, q: Array) -> tuple[Array, Array]:
        """Angular and linear columns, each (3, nv), of the relative twist in a's axes."""
        raise TypeError(f"{type(self).__name__} is a constraint row and has no coordinates")

    def rate(self, q: Array, v: Array) -> Array:
        """q̇ (nq,) for the speeds v (nv,)."""
        return v

    def step(self, q: Array, change: Array) -> Array:
        """Coordinates after a small `change` (nv,) along the speeds' directions."""
        return q + change

    def coordinates(self, r: Array, d: Array) -> Array:
        """Coordinates (nq,) from the relative rotation `r` and offset `d` in a's axes."""
        raise TypeError(f"{type(self).__name__} is a constraint row and has no coordinates")

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        """Closure error, one entry a row; `d` in world axes, `drawn` the same as drawn."""
        raise TypeError(f"{type(self).__name__} joints cannot be cut")

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        """(6, rows) ``[n; f]`` at b's point, world axes: the joint's constraint wrenches."""
        raise TypeError(f"{type(self).__name__} joints cannot be cut")


J = TypeVar("J", bound=Joint)


def with_directions(joint: J, drawn: Callable[[str], Array]) -> J:
    """`joint` with the directions given by two points as components (3,); `drawn` finds a point."""
    refs = {f: getattr(joint, f) for f in joint.directions}
    refs = {f: r for f, r in refs.items() if isinstance(r, Toward)}
    if refs:
        joint = copy(joint)
        for field, ref in refs.items():
            object.__setattr__(joint, field, drawn(ref.end) - drawn(ref.start))
    return joint


class AxisJoint(Joint):
    """A joint with one axis, fixed in both bodies.

    Attributes:
        a, b: names of the connected bodies; ``"ground"`` is the fixed one.
        at: the joint point, coordinates (3,) [m] as drawn or the name of a point.
        axis: direction as drawn, (3,), of any length, or the names of two points (from, to): it
            then follows them when they move.
        at_b, axis_b: the half on `b` where it is drawn apart from the half on `a`.
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    at: Any = eqx.field(converter=point)
    axis: Any = eqx.field(converter=direction)
    at_b: Any = eqx.field(converter=point, default=None, kw_only=True)
    axis_b: Any = eqx.field(converter=direction, default=None, kw_only=True)

    directions: ClassVar[tuple[str, ...]] = ("axis", "axis_b")

    def unit_axis(self) -> Array:
        """Unit axis in a's axes."""
        return unit(jnp.asarray(self.axis))

    def unit_axis_b(self) -> Array:
        """Unit axis in b's axes."""
        return self.unit_axis() if self.axis_b is None else unit(jnp.asarray(self.axis_b))

    def drawn_turn(self) -> Array | None:
        """Rotation of `b` that lays its half of the axis on a's; None where drawn together."""
        if self.axis_b is None:
            return None
        return rotation_between(self.unit_axis_b(), self.unit_axis())

    def turned(self, r: Array | None) -> Array | None:
        """`r` after the drawn turn of `b`."""
        drawn = self.drawn_turn()
        if drawn is None or r is None:
            return r if drawn is None else drawn
        return r @ drawn

    def unturned(self, r: Array) -> Array:
        """The rotation `r` of b relative to a without the drawn turn of `b`."""
        drawn = self.drawn_turn()
        return r if drawn is None else r @ drawn.T

    def frame(self, r_a: Array) -> tuple[Array, Array, Array]:
        """World directions (axis, e1, e2) that turn with `a`."""
        axis = self.unit_axis()
        e1, e2 = perpendicular_pair(axis)
        return r_a @ axis, r_a @ e1, r_a @ e2

    def misalignment(self, r_a: Array, r_b: Array) -> Array:
        """Rotation vector, to first order, from a's axis to b's, world axes."""
        return alignment(r_a @ self.unit_axis(), r_b @ self.unit_axis_b())


class AxesCondition(Joint):
    """Rows on directions alone, never a tree joint: where its joint point is does not matter."""

    nq: ClassVar[int] = 0
    can_be_in_tree: ClassVar[bool] = False

    @property
    def point_a(self) -> Any:
        return ComRef(self.a if self.b == GROUND else self.b)

    @property
    def point_b(self) -> Any:
        return self.point_a


def wrench_columns(moments: list[Array], forces: list[Array]) -> Array:
    """(6, len(moments)) from matching lists of moment and force directions."""
    return jnp.concatenate([jnp.stack(moments, axis=1), jnp.stack(forces, axis=1)])
