"""A rack and its pinion, whose tooth force may load their bearings.

The rack moves along w and the pinion turns about u, both as drawn. With e from the pinion's axis to
the rack, across u and w, ``t = u × e`` and the helix angle β of the pinion, teeth press along
``t − tan β u``, as in `jaxmbd.model.gear_mesh`. Equal velocities along it give the pitch radius
``r_p = radius w · (t − tan β u)``, which is the radius itself where the rack moves across the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.coupling import COUPLING_TYPES, BaseCoupling, Term
from jaxmbd.model.gear_mesh import MISDRAWN, Pitch, PlacedMesh, common_body, gear_axis, other_body
from jaxmbd.model.numbers import (
    Reflection,
    Units,
    changed,
    is_concrete,
    number,
    optional_number,
    point,
)
from jaxmbd.spatial import cross, unit


class RackAndPinion(BaseCoupling):
    """A pinion's angle and its rack's travel: ``x − radius · φ = offset``.

    λ is the force on the rack along +x [N]; the pinion has the torque −radius · λ. Without a
    pressure angle the pinion's bearing feels that torque as a pure couple, and the rack's guide the
    force alone. With one, the teeth press at the pitch point: the pinion's bearing carries their
    force, and the rack is pushed away from the pinion and along its axis; the rack's side follows
    from the axes and the sign of the radius. Flanks have no friction.

    Attributes:
        pinion: name of the pinion's joint, whose coordinate is an angle [rad].
        rack: name of the rack's joint, whose coordinate is a travel [m].
        radius: of the pinion, the travel of the rack for one radian [m]; negative if a positive
            angle moves the rack backward.
        offset: ``x − radius · φ`` [m].
        index_pinion, index_rack: which coordinate of each joint.
        pressure_angle: in the normal section [rad], for teeth that load the bearings: of a
            `Revolute` and a `Prismatic` that have one body in common. None is for a pure couple.
        helix: helix angle β of the pinion [rad], positive if it is right-handed.
        at: a point in the middle of the face width, (3,) [m] as drawn or the name of one: its place
            along the pinion's axis matters alone; by default the point of the pinion's joint.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.RackAndPinion("pinion", "rack", radius=0.012).terms
        (('pinion', 0), ('rack', 0))
    """

    pinion: str = eqx.field(static=True)
    rack: str = eqx.field(static=True)
    radius: Any = eqx.field(converter=number)
    offset: Any = eqx.field(converter=number, default=0.0)
    index_pinion: int = eqx.field(static=True, default=0)
    index_rack: int = eqx.field(static=True, default=0)
    pressure_angle: Any = eqx.field(converter=optional_number, default=None, kw_only=True)
    helix: Any = eqx.field(converter=number, default=0.0, kw_only=True)
    at: Any = eqx.field(converter=point, default=None, kw_only=True)

    units: ClassVar[Units] = {
        "radius": "m",
        "offset": "m",
        "pressure_angle": "rad",
        "helix": "rad",
    }

    @property
    def terms(self) -> tuple[Term, ...]:
        """The pinion's angle and the rack's travel."""
        return (self.pinion, self.index_pinion), (self.rack, self.index_rack)

    def condition(self, q: Array) -> Array:
        """``x − radius · φ − offset``."""
        return q[1] - self.radius * q[0] - self.offset

    def pitch_radii(self, distance: float) -> tuple[float | None, float | None] | None:
        """That of the pinion; a rack has none."""
        return abs(float(self.radius)), None

    def placed(self, joints: Mapping[str, Any], drawn: Callable[[Any], Array]) -> BaseCoupling:
        """The coupling itself, or with the pitch point of its teeth."""
        if self.pressure_angle is None:
            return self
        found = _pitch(self, joints, drawn)
        factors = jnp.stack([-self.radius, jnp.ones_like(self.radius)])
        *bodies, turning, _ = _bodies(self, joints)
        lever = found.moves @ found.pitch.across
        return PlacedMesh(self, factors, lever, found.pitch, *bodies, turning, offset=self.offset)

    def mirror_image(self, reflection: Reflection) -> Self:
        """The same teeth with the other hand."""
        return changed(self, helix=-self.helix)

    def problems(self, joints: Mapping[str, Any]) -> list[str]:
        """Joints between which there are no teeth, numbers that none have."""
        if self.pressure_angle is None:
            return []
        if joints[self.pinion].bearing != "journal" or joints[self.rack].bearing != "guide":
            return [
                f"teeth need a Revolute '{self.pinion}' and a Prismatic '{self.rack}'; change the "
                "joints, or leave pressure_angle out"
            ]
        try:
            _bodies(self, joints)
        except ValueError as error:
            return [str(error)]
        found = []
        for name in ("pressure_angle", "helix"):
            x = getattr(self, name)
            if is_concrete(x) and not abs(x) < np.pi / 2:
                found.append(f"{name} is {float(x):g} rad; give an angle below 90°, in radians")
        return found

    def problems_as_drawn(
        self, joints: Mapping[str, Any], drawn: Callable[[Any], Array]
    ) -> list[str]:
        """A rack that moves along the pinion's axis, or along its teeth."""
        if self.pressure_angle is None:
            return []
        found = _pitch(self, joints, drawn)
        if not float(found.radius) > MISDRAWN * abs(float(self.radius)):
            return [
                f"the rack of '{self.rack}' moves along the axis of '{self.pinion}', or along its "
                "teeth; turn an axis, or give another radius or helix"
            ]
        return []


def _bodies(rack: RackAndPinion, joints: Mapping[str, Any]) -> tuple[str, str, str, float, float]:
    """Names of pinion, rack and what carries both; the senses in which they move for +q."""
    turns, slides = joints[rack.pinion], joints[rack.rack]
    carrier = common_body(rack.pinion, rack.rack, joints)
    pinion, bar = other_body(turns, carrier), other_body(slides, carrier)
    turning, sliding = (1.0 if x == j.b else -1.0 for x, j in ((pinion, turns), (bar, slides)))
    return pinion, bar, carrier, turning, sliding


class _Found(NamedTuple):
    """Where teeth meet.

    Attributes:
        pitch: the pitch point, and directions there.
        moves: velocity of the rack (3,) for a unit rate of its coordinate.
        radius: of the pitch circle [m].
    """

    pitch: Pitch
    moves: Array
    radius: Array


def _pitch(rack: RackAndPinion, joints: Mapping[str, Any], drawn: Callable[[Any], Array]) -> _Found:
    *_, turning, sliding = _bodies(rack, joints)
    u, x = gear_axis(joints[rack.pinion], drawn)
    w = sliding * jnp.asarray(joints[rack.rack].unit_axis(), x.dtype)
    e = turning * jnp.sign(rack.radius) * unit(cross(w, u))
    t = cross(u, e)
    across = t - jnp.tan(rack.helix) * u
    radius = turning * rack.radius * (w @ across)
    along = 0.0 if rack.at is None else u @ (jnp.asarray(drawn(rack.at)) - x)
    return _Found(Pitch(x + along * u + radius * e, t, u, e, across), w, radius)


COUPLING_TYPES[RackAndPinion.__name__] = RackAndPinion
