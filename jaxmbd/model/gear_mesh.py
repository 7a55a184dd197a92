"""Gear pairs whose tooth forces load the bearings: spur, helical, internal, bevel and worm gears.

Both gears turn about axes that are fixed in their carrier (the frame, or the arm of a planetary
set), and roll on each other at the pitch point P, which is fixed in the carrier too. With u the
axis of gear a and r the arm from it to P, teeth at P run along ``cos β l + sin β t`` in the pitch
plane: ``t = u × r / |r|``, l along the pitch surface (u itself, or the common element of two
cones), β the helix angle. Frictionless flanks press along their normal. Its part in the pitch plane
is ``F (t − tan β l)``, F the tangential force; its part across it pushes the gears apart, whichever
flank presses, by ``|F| tan α / cos β`` with the pressure angle α in the normal section. (R. G.
Budynas and J. K. Nisbett, Shigley's Mechanical Engineering Design, 8th ed., sections 13-14 to
13-17.)

Equal velocities along ``t − tan β l`` are the condition of the coupling: the teeth passing P,
``z_a ω_a`` and ``z_b ω_b`` relative to the carrier, are equal in number (Willis).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.coupling import COUPLING_TYPES, BaseCoupling, Term
from jaxmbd.model.forces.base import Effort, ElementMotion, Load
from jaxmbd.model.joints import Joint
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

Kind = Literal["external", "internal", "bevel", "worm"]

MISDRAWN = 5e-3
"""Angle [rad] of axes, and distance of those that should meet over their size, that is refused."""
BESIDE = 0.05
"""Distance of bevel gears' point from their cones, over that from the apex, that is refused."""
MODULES = 0.1
"""Error of a centre distance in modules that is refused; one tooth too many makes half a module."""


class ToothForces(NamedTuple):
    """The parts of the force of one gear's teeth on the other's.

    Attributes:
        tangential: on gear b [N], positive along the motion of gear a's teeth for a positive angle
            of its joint, as where gear a drives that way.
        radial: what pushes the gears apart [N], never negative.
        axial: on gear b along gear a's axis [N], of bevel gears along the common element of the
            pitch cones.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.model.gear_mesh import ToothForces
        >>> ToothForces(100.0, 36.4, 0.0).radial
        36.4
    """

    tangential: Array
    radial: Array
    axial: Array


class GearMesh(BaseCoupling):
    """Two gears in mesh, whose tooth force loads their bearings; the ratio follows from the teeth.

    The gears are the bodies that `joint_a` and `joint_b` do not have in common, the body that they
    have in common carries both:

    * on fixed axes ``GearMesh("pinion", "wheel", …)`` with both joints on the ground;
    * the planet on the fixed ring of a planetary set ``GearMesh("arm", "planet", kind="internal",
      …)``: seen from the carrier, the arm's joint turns the ground, and the ring with it;
    * a sun or ring that has its own bearing on the ground, and a planet on the carrier
      ``GearMesh("sun", "planet", carrier="arm", …)``, with the joint between carrier and ground.

    The ratio is that of the teeth. Pitch point and working pitch circles follow from the drawn
    axes: a change of a hardpoint changes the forces and not the ratio. λ is the effort on `joint_b`
    along +q_b [N·m]; `observe.ToothForce` gives the forces [N]. Flanks have no friction.

    Without `module` the pitch circles are those that fit the drawn axes. With profile shift leave
    it out, and give the working pressure angle.

    Attributes:
        joint_a, joint_b: names of the two joints, each a `Revolute`; they stay in the tree.
        teeth_a, teeth_b: numbers of teeth, which are whole; of a worm that of its threads.
        kind: "external" or "internal" (parallel axes, the ring being the one with more teeth),
            "bevel" (axes that meet), "worm" (axes that cross: a worm and its wheel, or two helical
            gears).
        carrier: name of the joint between the carrier and the body that gear a's bearing is on, if
            gear a is not borne by the carrier.
        at: a point in the middle of the face width, (3,) [m] as drawn or the name of one: for
            parallel axes its place along them matters alone (by default `joint_a`'s point), for
            bevel gears its distance from the apex, for worms nothing.
        module: normal module [m], to be checked against the drawn axes; of bevel gears the mean
            one, at `at`.
        pressure_angle: in the normal section [rad].
        helix: helix angle β of gear a [rad], positive if it is right-handed; gear b's follows. Of a
            worm it is 90° minus the lead angle.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.GearMesh("sun", "planet", 20, 35, carrier="arm").terms
        (('sun', 0), ('arm', 0), ('planet', 0))
    """

    joint_a: str = eqx.field(static=True)
    joint_b: str = eqx.field(static=True)
    teeth_a: Any = eqx.field(converter=number)
    teeth_b: Any = eqx.field(converter=number)
    kind: str = eqx.field(static=True, default="external", kw_only=True)
    carrier: str | None = eqx.field(static=True, default=None, kw_only=True)
    at: Any = eqx.field(converter=point, default=None, kw_only=True)
    module: Any = eqx.field(converter=optional_number, default=None, kw_only=True)
    pressure_angle: Any = eqx.field(converter=number, default=np.deg2rad(20.0), kw_only=True)
    helix: Any = eqx.field(converter=number, default=0.0, kw_only=True)

    units: ClassVar[Units] = {
        "teeth_a": "",
        "teeth_b": "",
        "module": "m",
        "pressure_angle": "rad",
        "helix": "rad",
    }

    @property
    def terms(self) -> tuple[Term, ...]:
        """The angles of `joint_a`, of the carrier if it has a joint here, and of `joint_b`."""
        names = (self.joint_a, self.carrier, self.joint_b)
        return tuple((name, 0) for name in names if name is not None)

    def pitch_radii(self, distance: float) -> tuple[float | None, float | None] | None:
        """Of parallel axes, in the ratio of the teeth; their sum or difference is the distance."""
        z_a, z_b = float(self.teeth_a), float(self.teeth_b)
        if self.kind not in ("external", "internal") or not distance > 0.0:
            return None
        each = distance / (z_a + z_b if self.kind == "external" else abs(z_a - z_b))
        return each * z_a, each * z_b

    def placed(self, joints: Mapping[str, Any], drawn: Callable[[Any], Array]) -> PlacedMesh:
        """Signs of the ratios, and the pitch point."""
        roles = mesh_roles(self, joints)
        pitch = _pitch(self, joints, drawn)
        rates = [_rate_at(joints[name], drawn, pitch) for name, _ in self.terms]
        teeth = [self.teeth_a] * (len(rates) - 1) + [self.teeth_b]
        passing = [s * jnp.sign(x) * z for s, x, z in zip(roles.senses, rates, teeth, strict=True)]
        factors = jnp.stack([*(-x for x in passing[:-1]), passing[-1]]) / passing[-1]
        lever = roles.senses[-1] * rates[-1]
        bodies = roles.gear_a, roles.gear_b, roles.carrier
        return PlacedMesh(self, factors, lever, pitch, *bodies, roles.senses[0])

    def mirror_image(self, reflection: Reflection) -> Self:
        """The same gears with the other hand."""
        return changed(self, helix=-self.helix)

    def problems(self, joints: Mapping[str, Any]) -> list[str]:
        """Joints that carry no gear pair, numbers that none has."""
        if self.kind not in get_args(Kind):
            return [f"kind={self.kind!r}; give one of {list(get_args(Kind))}"]
        wrong = [name for name, _ in self.terms if joints[name].bearing != "journal"]
        if wrong:
            return [f"{wrong} must be Revolute joints, for gears turn about fixed axes"]
        try:
            mesh_roles(self, joints)
        except ValueError as error:
            return [str(error)]
        return _number_problems(self)

    def problems_as_drawn(
        self, joints: Mapping[str, Any], drawn: Callable[[Any], Array]
    ) -> list[str]:
        """Axes that are not as the kind of pair needs them, or do not fit the module."""
        return _axis_problems(self, joints, drawn)


class PlacedMesh(BaseCoupling):
    """A gear mesh, or a pinion with its rack as gear b, with what follows from the drawing.

    Attributes:
        mesh: the description, with `terms`, `pressure_angle` and `helix`.
        factors: (n,) of the coordinates in its condition, that of the last joint being one.
        lever: effort λ along the last coordinate for a tangential force of one, with its sense [m];
            of a rack a number.
        pitch: the pitch point, as drawn.
        gear_a, gear_b, carrier: names of the bodies.
        sense: −1.0 if a positive angle of the first joint turns gear a backward about its axis.
        offset: of the condition [rad or m].
    """

    mesh: Any
    factors: Array
    lever: Array
    pitch: Pitch
    gear_a: str = eqx.field(static=True)
    gear_b: str = eqx.field(static=True)
    carrier: str = eqx.field(static=True)
    sense: float = eqx.field(static=True)
    offset: Any = eqx.field(default=0.0, kw_only=True)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Those of the mesh."""
        return self.mesh.terms

    def condition(self, q: Array) -> Array:
        """``factors · q − offset``: q_b, plus q_a (and the carrier's angle) times a ratio."""
        return self.factors @ q - self.offset

    def slope(self, q: Array) -> Array:
        """`factors`."""
        return self.factors

    def curvature(self, q: Array, v: Array) -> Array:
        """None."""
        return jnp.zeros_like(q[0])

    def tooth_forces(self, effort: Array) -> ToothForces:
        """The parts of the tooth force for the effort λ along q_b."""
        force = effort / self.lever
        apart = jnp.tan(self.mesh.pressure_angle) / jnp.cos(self.mesh.helix)
        axial = -force * jnp.tan(self.mesh.helix)
        return ToothForces(self.sense * force, jnp.abs(force) * apart, axial)

    def loads(self, motion: ElementMotion, effort: Array) -> list[Load | Effort]:
        """The tooth force on gear b at the pitch point, and the opposite one on gear a."""
        found, pitch = self.tooth_forces(effort), self.pitch
        force = self.sense * found.tangential * pitch.t + found.axial * pitch.l
        force = force + found.radial * pitch.apart
        force = motion.rotation(self.carrier) @ force
        x, _ = motion.point(self.carrier, pitch.point)
        none = jnp.zeros_like(force)
        return [Load(self.gear_b, x, force, none), Load(self.gear_a, x, -force, none)]


class Roles(NamedTuple):
    """The bodies of a mesh, and whether q of each term turns them about +axis (1) or −axis (−1).

    That of joint b turns gear b relative to the carrier, all others turn gear a relative to it.
    """

    gear_a: str
    gear_b: str
    carrier: str
    senses: tuple[float, ...]


def mesh_roles(mesh: GearMesh, joints: Mapping[str, Any]) -> Roles:
    """Who is who in a mesh.

    Raises:
        ValueError: the joints carry no two gears of one carrier.
    """
    a, b = joints[mesh.joint_a], joints[mesh.joint_b]
    if mesh.carrier is None:
        carrier = common_body(mesh.joint_a, mesh.joint_b, joints)
        turned = [(a, other_body(a, carrier))]
    else:
        arm = joints[mesh.carrier]
        carrier = common_body(mesh.carrier, mesh.joint_b, joints)
        frame = other_body(arm, carrier)
        if frame not in (a.a, a.b):
            raise ValueError(
                f"carrier='{mesh.carrier}' joins '{carrier}' and '{frame}', but '{mesh.joint_a}' "
                f"bears its gear on neither; name the joint between the body that bears the gear "
                f"of '{mesh.joint_b}' and the one that bears that of '{mesh.joint_a}'"
            )
        turned = [(a, other_body(a, frame)), (arm, frame)]
    gear_a, gear_b = turned[0][1], other_body(b, carrier)
    if gear_a in (gear_b, carrier):
        raise ValueError(f"'{gear_a}' would be in mesh with itself; name the joints of two gears")
    senses = tuple(1.0 if body == j.b else -1.0 for j, body in [*turned, (b, gear_b)])
    return Roles(gear_a, gear_b, carrier, senses)


def common_body(first: str, second: str, joints: Mapping[str, Any]) -> str:
    """The one body that two joints have in common."""
    ends = [{joints[n].a, joints[n].b} for n in (first, second)]
    shared = ends[0] & ends[1]
    if len(shared) != 1:
        raise ValueError(
            f"the joints '{first}' ({joints[first].a}, {joints[first].b}) and '{second}' "
            f"({joints[second].a}, {joints[second].b}) have {len(shared) or 'no'} bodies in "
            "common, but one body carries the axes of both gears; if gear a is borne elsewhere, "
            "name the carrier's joint in carrier="
        )
    return shared.pop()


def other_body(joint: Joint, body: str) -> str:
    """The other one of the two bodies of a joint."""
    return joint.b if joint.a == body else joint.a


class Pitch(NamedTuple):
    """The pitch point of a mesh as drawn; the module docstring explains its directions.

    Attributes:
        point: P (3,) [m].
        t, l: unit vectors (3,) in the pitch plane.
        apart: unit vector (3,) across it, along which gear b is pushed from gear a.
        across: the direction ``t − tan β l`` (3,) along which the gears have equal velocities.
    """

    point: Array
    t: Array
    l: Array  # noqa: E741
    apart: Array
    across: Array


def gear_axis(joint: Any, drawn: Callable[[Any], Array]) -> tuple[Array, Array]:
    """Unit vector along an axis, and a point on it."""
    x = jnp.asarray(drawn(joint.point_a))
    return jnp.asarray(joint.bearing_axis(), x.dtype), x


def _rate_at(joint: Any, drawn: Callable[[Any], Array], pitch: Pitch) -> Array:
    """Velocity along `across` of the pitch point, for a unit speed of the joint [m]."""
    u, x = gear_axis(joint, drawn)
    return pitch.across @ cross(u, pitch.point - x)


def _pitch(mesh: GearMesh, joints: Mapping[str, Any], drawn: Callable[[Any], Array]) -> Pitch:
    a = gear_axis(joints[mesh.joint_a], drawn)
    b = gear_axis(joints[mesh.joint_b], drawn)
    at = a[1] if mesh.at is None else jnp.asarray(drawn(mesh.at))
    if mesh.kind == "bevel":
        x, l, e = _on_cones(mesh, a, b, at)  # noqa: E741
    elif mesh.kind == "worm":
        x, l, e = _on_crossed(mesh, a, b)  # noqa: E741
    else:
        x, l, e = _on_circles(mesh, a, b, at)  # noqa: E741
    arm = x - a[1]
    t = unit(cross(a[0], arm))
    sign = -1.0 if mesh.kind == "internal" else 1.0
    return Pitch(x, t, l, sign * e, t - jnp.tan(mesh.helix) * l)


Axis = tuple[Array, Array]
Found = tuple[Array, Array, Array]
"""Pitch point, l, and the normal of the pitch plane from gear a to gear b."""


def _on_circles(mesh: GearMesh, a: Axis, b: Axis, at: Array) -> Found:
    """Parallel axes: P divides the distance of the axes by the numbers of teeth."""
    (u, x_a), (_, x_b) = a, b
    centre = x_a + u * (u @ (at - x_a))
    between = x_b - centre
    between = between - u * (u @ between)
    teeth_b = -mesh.teeth_b if mesh.kind == "internal" else mesh.teeth_b
    return centre + between * (mesh.teeth_a / (mesh.teeth_a + teeth_b)), u, unit(between)


def _on_cones(mesh: GearMesh, a: Axis, b: Axis, at: Array) -> Found:
    """Axes that meet: the sines of the cones' angles are as the numbers of teeth."""
    apex = _nearest(a, b)
    u_a, u_b = (u * jnp.sign(u @ (at - apex)) for u, _ in (a, b))
    element = unit(mesh.teeth_b * u_a + mesh.teeth_a * u_b)
    x = apex + element * (element @ (at - apex))
    e = unit(u_b - element * (element @ u_b))
    return x, element * jnp.sign(a[0] @ element), e


def _on_crossed(mesh: GearMesh, a: Axis, b: Axis) -> Found:
    """Axes that cross: P is on their common normal, radii are as ``z / cos β``."""
    start, end = _nearest(a, b), _nearest(b, a)
    e = unit(end - start)
    share_a, share_b = _crossed_shares(mesh, a[0], b[0], e)
    return start + (end - start) * (share_a / (share_a + share_b)), a[0], e


def _crossed_shares(mesh: GearMesh, u_a: Array, u_b: Array, e: Array) -> tuple[Array, Array]:
    """Pitch diameters in normal modules, ``z / cos β``."""
    trace = jnp.cos(mesh.helix) * u_a + jnp.sin(mesh.helix) * cross(u_a, e)
    return mesh.teeth_a / jnp.cos(mesh.helix), mesh.teeth_b / jnp.abs(trace @ u_b)


def _nearest(a: Axis, b: Axis) -> Array:
    """The point on axis a that is nearest to axis b."""
    (u, x), (w, y) = a, b
    normal = cross(u, w)
    return x + u * (cross(y - x, w) @ normal / (normal @ normal))


def _number_problems(mesh: GearMesh) -> list[str]:
    found = []
    for name in ("teeth_a", "teeth_b", "module"):
        x = getattr(mesh, name)
        if x is not None and is_concrete(x) and not x > 0.0:
            found.append(f"{name} is {float(x):g}; it must be positive")
        elif x is not None and is_concrete(x) and name != "module" and x != np.round(x):
            found.append(f"{name} is {float(x):g}; give a whole number")
    for name in ("pressure_angle", "helix"):
        x = getattr(mesh, name)
        if is_concrete(x) and not abs(x) < np.pi / 2:
            found.append(f"{name} is {float(x):g} rad; give an angle below 90°, in radians")
    if mesh.kind == "bevel" and mesh.at is None:
        found.append("at is missing; give the point in the middle of the bevel gears' face width")
    teeth = mesh.teeth_a, mesh.teeth_b
    if mesh.kind == "internal" and all(map(is_concrete, teeth)) and teeth[0] == teeth[1]:
        found.append("an internal pair has equal numbers of teeth; the ring must have more")
    return found


def _axis_problems(
    mesh: GearMesh, joints: Mapping[str, Any], drawn: Callable[[Any], Array]
) -> list[str]:
    """Axes that are not as the kind of pair needs them, or not as far apart as the module says."""
    a, b = (gear_axis(joints[n], drawn) for n in (mesh.joint_a, mesh.joint_b))
    names, angle = f"'{mesh.joint_a}' and '{mesh.joint_b}'", _angle(a, b)
    if mesh.carrier is not None:
        arm = gear_axis(joints[mesh.carrier], drawn)
        apart = _length(cross(a[0], arm[1] - a[1]))
        if _angle(a, arm) > MISDRAWN or apart > MISDRAWN * _length(b[1] - a[1]):
            return [
                f"'{mesh.carrier}' and '{mesh.joint_a}' must turn about one axis, but theirs are "
                f"{apart:.3g} m and {np.degrees(_angle(a, arm)):.3g}° apart; draw them on one line"
            ]
    parallel = mesh.kind in ("external", "internal")
    if parallel != (angle < MISDRAWN):
        others = "'bevel' or 'worm'" if parallel else "'external' or 'internal'"
        return [
            f"the axes of {names} are {np.degrees(angle):.4g}° apart, which no pair of "
            f"kind={mesh.kind!r} has; turn an axis, or give kind={others}"
        ]
    between = cross(a[0], b[1] - a[1]) if parallel else _nearest(b, a) - _nearest(a, b)
    distance = _length(between)
    size = _length(drawn(mesh.at) - _nearest(a, b)) if mesh.kind == "bevel" else distance
    if (distance <= MISDRAWN * size) != (mesh.kind == "bevel") or size == 0.0:
        return [
            f"the axes of {names} are {distance:.6g} m apart, but those of bevel gears meet, away "
            "from at, and those of other pairs do not; move an axis"
        ]
    if mesh.kind == "bevel":
        x = _pitch(mesh, joints, drawn).point
        if _length(drawn(mesh.at) - x) > BESIDE * size:
            where = ", ".join(f"{float(y):.6g}" for y in x)
            return [
                "at is not on the common element of the two pitch cones, where bevel gears touch; "
                f"the nearest point of it is ({where})"
            ]
    return [] if mesh.module is None else _module_problems(mesh, joints, drawn, distance)


def _module_problems(
    mesh: GearMesh, joints: Mapping[str, Any], drawn: Callable[[Any], Array], distance: float
) -> list[str]:
    a, b = (gear_axis(joints[n], drawn) for n in (mesh.joint_a, mesh.joint_b))
    what, cure = f"the axes of '{mesh.joint_a}' and '{mesh.joint_b}' are", "move an axis"
    teeth = (mesh.teeth_a + mesh.teeth_b) / np.cos(mesh.helix)
    if mesh.kind == "internal":
        teeth = abs(mesh.teeth_a - mesh.teeth_b) / np.cos(mesh.helix)
    elif mesh.kind == "worm":
        teeth = sum(_crossed_shares(mesh, a[0], b[0], unit(_nearest(b, a) - _nearest(a, b))))
    elif mesh.kind == "bevel":
        what, cure = f"at and the axis of '{mesh.joint_a}' are", "move at"
        distance = _length(cross(a[0], _pitch(mesh, joints, drawn).point - a[1]))
        teeth = mesh.teeth_a / np.cos(mesh.helix)
    wanted = 0.5 * float(mesh.module * teeth)
    if abs(distance - wanted) <= MODULES * float(mesh.module):
        return []
    return [
        f"{what} {distance:.6g} m apart, but module and teeth give {wanted:.6g} m; {cure}, or "
        "leave module out and give the working pressure angle"
    ]


def _angle(a: Axis, b: Axis) -> float:
    """Between two axes, whichever way they point [rad]."""
    return float(np.arcsin(min(_length(cross(a[0], b[0])), 1.0)))


def _length(x: Array) -> float:
    return float(jnp.linalg.norm(x))


COUPLING_TYPES[GearMesh.__name__] = GearMesh
