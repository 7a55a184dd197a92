"""Interface of joint types: motion as a tree joint, constraint rows as a cut joint.

A joint connects body `a` to body `b`. Everything is written in the axes of `a` as drawn, which
are the global axes at the drawn configuration. With `R_a`, `R_b` the rotations of the two bodies
from their drawn orientation and ``d`` the vector from `a`'s half of the joint point to `b`'s:

* as a *tree* joint its coordinates q give ``R_b = R_a · rotation(q)`` and
  ``d = R_a · translation(q)``, its speeds v the relative twist ``[ω; v] = R_a · subspace(q) v``
  at `b`'s point;
* as a *cut* joint the complement Λ of that subspace (Ghaedrahmati et al. 2019: ``Λᵀ S = 0``)
  gives the rows ``residual = 0`` and ``wrenchesᵀ · (relative twist) = 0``.

Force rows come before moment rows. No code outside a joint type's own file depends on its type: all
that the rest of the package needs is an attribute or method of `Joint`, so that a new joint type is
one new file. Its author defines the fields but a and b, `nq`, `nv`, `speeds`, `rows` and

* to be in the tree `rotation`, `translation`, `subspace`, `coordinates` (and `moving_subspace`);
* to be cut `residual` and `wrenches`; a type that has these alone is a `Condition`;

and overrides whatever else differs from the defaults. `rotation`, `translation`, `subspace`, `rate`
and `wrenches` are called on joints without names and points (None), so that joints of one type
are traced once: they depend on the type's other fields and their arguments only.

`Look` is what a joint's picture is made of, without its geometry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import equinox as eqx
import numpy as np
from jax import Array

from jaxmbd.model.numbers import Reflection, Toward, Units, changed, lifted
from jaxmbd.model.part import Part

Form = Literal[
    "ball",
    "bar",
    "block",
    "cross",
    "cube",
    "curve",
    "foot",
    "housing",
    "nut",
    "pin",
    "rail",
    "rod",
    "roller",
    "screw",
    "shaft",
    "sheet",
    "sleeve",
]


class Look(NamedTuple):
    """A part of a joint's picture, at the joint point of one of its bodies.

    Attributes:
        form: what it is; a "rod" reaches from a's point to b's.
        on: the body that it moves with.
        axis: direction (3,) as drawn that it is about, along or normal to; None for a form that
            has none.
        detail: the radius of a "roller" [m], the points (n, 3) [m] of a "curve" from a's point.
    """

    form: Form
    on: Literal["a", "b"]
    axis: Any = None
    detail: Any = None


Closing = Literal["points", "axes", "bodies", "point on line", "distance"]
"""What a cut joint holds together: two points, two axes with a point each, two bodies as drawn, a
point and a line, two points at a distance."""


class Elementary(NamedTuple):
    """One of the motions, one after the other, that a tree joint is made of (`Joint.elementary`).

    Attributes:
        kind: a "turn" about and a "travel" along `axis` have the coordinate ``factor · q[index]``;
            a "ball" has the quaternion ``q[index : index + 4]``, a "free" body also the
            displacement that follows.
        index: first of its coordinates. Where two motions have the same one, the second follows.
        axis: (3,), in the axes of `a`.
        factor: of the coordinate.
        suffix: of its name after the joint's.
    """

    kind: Literal["turn", "travel", "ball", "free"]
    index: int
    axis: Any = (0.0, 0.0, 0.0)
    factor: Any = 1.0
    suffix: str = ""


Bearing = Literal["journal", "guide", "sleeve", "ball"]
"""Kind of bearing, for friction: a shaft that turns, slides or does both, or a ball."""


class Joint(Part):
    """Base of all joint types; the module docstring explains its methods.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.model.joints import Joint
        >>> issubclass(mbd.Helical, Joint), mbd.Helical.rows
        (True, ('force', 'force', 'force', 'moment', 'moment'))
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)

    nq: ClassVar[int]
    nv: ClassVar[int]
    speeds: ClassVar[tuple[str, ...]] = ()
    """Kind of each speed: "angle" [rad/s] or "travel" [m/s]."""
    rows: ClassVar[tuple[str, ...]]
    """Kind of each constraint row: "force" [N, m] or "moment" [N·m, rad]."""
    row_texts: ClassVar[tuple[str, ...]] = ()
    """Names of the rows, if not "force 1", "moment 1" and so on."""
    coordinates_text: ClassVar[str] = ""
    can_be_cut: ClassVar[bool] = True
    can_be_in_tree: ClassVar[bool] = True
    moving_subspace: ClassVar[bool] = False
    """Whether the subspace depends on q."""
    scalar_coordinates: ClassVar[bool] = True
    """Whether the rate of each coordinate is the speed of the same index, so that coordinates can
    be held, driven or coupled one by one. A q with a quaternion can only be held as a whole."""
    ball: ClassVar[bool] = False
    """Whether the bodies turn freely about the joint point: a body held by two such joints only
    can spin idly about the line through both points."""
    bearing: ClassVar[Bearing | None] = None
    """The kind of bearing that `JointFriction` uses; None if the joint allows no friction."""
    closing: ClassVar[Closing | None] = None
    """What it holds together as a cut joint, if it is something that other programs have too."""
    directions: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that are directions and must not be zero."""
    axial: ClassVar[tuple[str, ...]] = ()
    """Those of them about which coordinates are angles: their mirror image is reversed, so that the
    joint's mirror image has the same coordinates."""
    reversed_in_mirror: ClassVar[tuple[int, ...]] = ()
    """Indices of the coordinates for which that is not possible."""
    directions_in_plane: ClassVar[tuple[str, ...]] = ()
    """Those of them that are given in a planar mechanism, with two components."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that are one number, or None."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that may be None although they have no default."""
    units: ClassVar[Units] = {}
    """Units of the fields that are numbers, without points [m] and directions."""

    @property
    def points(self) -> dict[str, Any]:
        """Field name to point, for the halves that are given."""
        names = ("at", "at_a", "at_b")
        return {n: getattr(self, n) for n in names if getattr(self, n, None) is not None}

    @property
    def point_a(self) -> Any:
        """The joint point on `a`."""
        return self.at_a if hasattr(self, "at_a") else self.at  # type: ignore[attr-defined]

    @property
    def point_b(self) -> Any:
        """The joint point on `b`; the same as on `a` unless the halves are drawn separately."""
        other = self.at_b  # type: ignore[attr-defined]
        return self.point_a if other is None else other

    @property
    def attachments(self) -> tuple[tuple[str, Any], tuple[str, Any]]:
        """Each body with the joint point on it, a first."""
        return (self.a, self.point_a), (self.b, self.point_b)

    def missing(self) -> list[str]:
        """Names of the fields that must be given and are not."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        needed = [f.name for f in fields if f.default is dataclasses.MISSING]
        return [n for n in needed if n not in self.optional and getattr(self, n) is None]

    def problems(self, points: Mapping[str, Any]) -> list[str]:
        """Problems of its own numbers and functions, each with its remedy.

        Args:
            points: the mechanism's hardpoints by name, in space.
        """
        return []

    def implied(self, drawn: Callable[[Any], Array]) -> dict[str, Any]:
        """The numbers that fields stand for where they are None; `drawn` finds a point (3,)."""
        return {}

    def looks(self) -> tuple[Look, ...]:
        """What its picture is made of; directions are given as components."""
        return (Look("ball", "b"),)

    # In a planar mechanism, whose points and directions have two components.

    def in_plane(self) -> Joint | None:
        """The joint that moves like this one in a planar mechanism, with in-plane rows only.

        None if the type cannot be used there.
        """
        return None

    def problems_in_plane(self) -> list[str]:
        """What it must not have in a planar mechanism, each problem with its remedy."""
        return []

    def in_space(self) -> Joint:
        """The spatial joint for one of a planar description, with the same coordinates."""
        return lifted(self, (*self.points, *self.directions))

    def mirror_image(self, reflection: Reflection) -> Self:
        """The joint that moves like this one in a mirror; `Mechanism.points` are mirrored too."""
        changes = {
            f: reflection.axial(x) if f in self.axial else reflection.polar(x)
            for f in self.directions
            if (x := getattr(self, f)) is not None
        }
        return changed(self, **changes)

    # As a tree joint.

    def neutral(self) -> np.ndarray:
        """Coordinates (nq,) as drawn."""
        return np.zeros(self.nq)

    def rotation(self, q: Array) -> Array | None:
        """(3, 3) from b's drawn axes to a's, or None if the joint does not turn."""
        raise TypeError(f"{type(self).__name__} is a constraint row and has no coordinates")

    def translation(self, q: Array) -> Array | None:
        """(3,) [m] from a's joint point to b's, in a's axes; None if it is always zero."""
        return None

    def subspace(self, q: Array) -> tuple[Array, Array]:
        """Angular and linear columns S, each (3, nv), of the relative twist in a's axes."""
        raise TypeError(f"{type(self).__name__} is a constraint row and has no coordinates")

    def effort_columns(self, q: Array) -> tuple[Array, Array]:
        """Moment and force columns E, each (3, nv), in a's axes, at b's joint point.

        Efforts τ along the speeds act on b as the wrench ``E (EᵀE)⁻¹ τ``: any E with
        ``SᵀE = EᵀE`` gives the power ``τ · v``.
        """
        return self.subspace(q)

    def elementary(self) -> list[Elementary]:
        """The elementary motions from a to b of which it consists, for formats that have no others.

        Raises:
            TypeError: it is of no such motions.
        """
        raise TypeError(f"a {type(self).__name__} is not made of turns and travels")

    def rate(self, q: Array, v: Array) -> Array:
        """q̇ (nq,) for the speeds v (nv,)."""
        return v

    def speeds_of_rate(self, q: Array, rate: Array) -> Array:
        """The speeds v (nv,) with ``rate(q, v) = rate``."""
        return rate

    def step(self, q: Array, change: Array) -> Array:
        """Coordinates after a small `change` (nv,) along the speeds' directions."""
        return q + change

    def change(self, start: Array, q: Array) -> Array:
        """The change (nv,) with ``step(start, change) = q``; zero only if they agree."""
        return q - start

    def normalized(self, q: Array) -> Array:
        """Coordinates with quaternions at unit length."""
        return q

    def coordinates(self, r: Array, d: Array) -> Array:
        """Coordinates (nq,) from the relative rotation `r` and offset `d` in a's axes."""
        raise TypeError(f"{type(self).__name__} is a constraint row and has no coordinates")

    def with_unit_axes(self) -> Self:
        """The same joint with axes of which it is known that their length is one."""
        return self

    def bearing_axis(self) -> Array | None:
        """Unit vector (3,) along the bearing in a's axes; None if there is no single axis."""
        return None

    # As a cut joint.

    def residual(self, r_a: Array, r_b: Array, d: Array, drawn: Array) -> Array:
        """Closure error, one entry per row; `d` in world axes, `drawn` its drawn value."""
        raise TypeError(f"{type(self).__name__} joints cannot be cut")

    def load_directions(self, r_a: Array) -> Array | None:
        """Directions (3, 3) that turn with `a`, one a row, in place of the world's axes; or None.

        They are for the first three rows, if these are forces along the world's axes. In a loop of
        parallel axes on a moving body two of the world's axes may come to be parallel within the
        plane of motion, and the rows along them to be nearly dependent. No two of these do, and
        none is along the axis, where its row would be short.
        """
        return None

    def wrenches(self, r_a: Array, r_b: Array, d: Array) -> Array:
        """(6, rows) ``[n; f]`` at b's point, world axes: the joint's constraint wrenches."""
        raise TypeError(f"{type(self).__name__} joints cannot be cut")


class Condition(Joint):
    """Base of the types that have rows alone, and are never in the tree."""

    nq: ClassVar[int] = 0
    coordinates_text: ClassVar[str] = "none: constraint rows"
    can_be_in_tree: ClassVar[bool] = False


J = TypeVar("J", bound=Joint)


def with_directions(joint: J, drawn: Callable[[str], Array]) -> J:
    """`joint` with the directions given by two points as components (3,); `drawn` finds a point."""
    refs = {f: getattr(joint, f) for f in joint.directions}
    refs = {f: r for f, r in refs.items() if isinstance(r, Toward)}
    return changed(joint, **{f: drawn(r.end) - drawn(r.start) for f, r in refs.items()})
