"""Belts and chains that stretch, between two pulleys, whose strands pull at the shafts.

With c the distance of the axes in the plane of the belt, ψ the direction of their line and
``Δ = r_a − r_b`` (``r_a + r_b`` for a crossed belt), both strands are ``L = √(c² − Δ²)`` long
between their tangent points and lie at the angle ``γ = asin(Δ/c)`` to the line. A pulley that turns
by θ relative to that line winds ``r θ``, so that the strands are stretched by

    x₁,₂ = L + Δ γ ± (r_a θ_a − r_b θ_b) − (the same as drawn)

(minus r_b for a crossed belt). A strand pulls with ``T = max(0, T₀ + k x + d ẋ)``: where it is
slack it does not push. T acts on both pulleys at the tangent points, so their shafts feel T₁ + T₂
beside the torques ``r (T₂ − T₁)``. The belt has no mass and does not slip.

Turns of the line count, as in a planetary belt drive: against each other the bodies that carry the
pulleys turn by the coordinate of the `Revolute` that joins them, perhaps beside slides. Carriers
joined in another way may let the line turn by less than half a turn from the drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.forces.base import ElementMotion, ForceElement, Load, Measure, sign_problems
from jaxmbd.model.numbers import Units, is_concrete, number, point
from jaxmbd.spatial import cross, unit


class Belt(ForceElement):
    """A belt or chain with stretch over two pulleys; the module docstring has its equations.

    The pulleys are the bodies b of `joint_a` and `joint_b`, whose axes are parallel. Strand 1 is on
    the side of the axis of `joint_a` × (direction from pulley a to b). For a stiff belt without
    stretch, and without a pull at the shafts, see `Gear`.

    Attributes:
        joint_a, joint_b: names of the two joints, each a `Revolute`.
        radius_a, radius_b: pitch radii of the pulleys [m].
        stiffness: k of each strand [N/m], EA / L.
        damping: d of each strand [N·s/m].
        pretension: T₀, as drawn [N]; of a chain usually zero.
        crossed: whether the strands cross, so that the pulleys turn in opposite senses.
        at: a point in the plane of the belt, (3,) [m] as drawn or the name of one; by default
            `joint_a`'s point.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Belt("motor", "fan", 0.04, 0.1, stiffness=2e5, pretension=150.0).joints
        ('motor', 'fan')
    """

    joint_a: str = eqx.field(static=True)
    joint_b: str = eqx.field(static=True)
    radius_a: Any = eqx.field(converter=number)
    radius_b: Any = eqx.field(converter=number)
    stiffness: Any = eqx.field(converter=number)
    damping: Any = eqx.field(converter=number, default=0.0)
    pretension: Any = eqx.field(converter=number, default=0.0)
    crossed: bool = eqx.field(static=True, default=False)
    at: Any = eqx.field(converter=point, default=None)

    of_time: ClassVar[bool] = False
    units: ClassVar[Units] = {
        "radius_a": "m",
        "radius_b": "m",
        "stiffness": "N/m",
        "damping": "N s/m",
        "pretension": "N",
    }

    @property
    def joints(self) -> tuple[str, ...]:
        return self.joint_a, self.joint_b

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """Joints that bear no pulley, numbers that no belt has."""
        wrong = [n for n in self.joints if joints[n].bearing != "journal"]
        if wrong or self.joint_a == self.joint_b:
            return [f"{wrong or self.joint_a} must be two Revolute joints, one for each pulley"]
        found = sign_problems(self, ("radius_a", "radius_b", "stiffness"), ("damping",))
        return found + sign_problems(self, (), ("pretension",))

    def problems_as_drawn(self, joints: dict[str, Any], drawn: Callable[[Any], Any]) -> list[str]:
        """Axes that are not parallel, or pulleys that overlap."""
        pair = [joints[n] for n in self.joints]
        u, w = (np.asarray(j.bearing_axis()) for j in pair)
        between = drawn(pair[1].point_a) - drawn(pair[0].point_a)
        if np.linalg.norm(np.cross(u, w)) > 1e-3:
            return [f"the axes of {list(self.joints)} are not parallel; turn one"]
        distance = np.linalg.norm(np.cross(u, between))
        if is_concrete(radii := self.radius_a + self.radius_b) and distance <= radii:
            return [
                f"the axes of {list(self.joints)} are {distance:.4g} m apart, and the radii are "
                f"{float(radii):.4g} m together; move an axis or give smaller radii"
            ]
        return []

    def loads(self, motion: ElementMotion) -> list[Load]:
        found, (body_a, body_b) = self._strands(motion), self._pulleys(motion)
        none, loads = jnp.zeros(3, found[0].force.dtype), []
        for strand in found:
            loads += [
                Load(body_a, strand.start, strand.force, none),
                Load(body_b, strand.end, -strand.force, none),
            ]
        return loads

    def energy(self, motion: ElementMotion) -> Array | float:
        """``max(0, T₀ + k x)² / (2 k)`` of both strands [J]."""
        pulls = [self.pretension + self.stiffness * s.stretch for s in self._strands(motion)]
        return sum((0.5 * jnp.maximum(x, 0.0) ** 2 / self.stiffness for x in pulls), 0.0)

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        first, second = self._strands(motion)
        return {
            "tension_1": Measure(first.tension, "N", "tension of strand 1, never negative"),
            "tension_2": Measure(second.tension, "N", "tension of strand 2, never negative"),
            "pull": Measure(
                second.tension - first.tension, "N", f"pull along positive angles of {self.joint_a}"
            ),
            "stretch_1": Measure(first.stretch, "m", "stretch of strand 1 since the drawing"),
            "stretch_2": Measure(second.stretch, "m", "stretch of strand 2 since the drawing"),
        }

    def _pulleys(self, motion: ElementMotion) -> tuple[str, str]:
        return motion.declared(self.joint_a).b, motion.declared(self.joint_b).b

    def _line(self, motion: ElementMotion) -> _Line:
        """Where the centres of the pulleys are in the plane of the belt, and what was wound."""
        joints = [motion.declared(n) for n in self.joints]
        u_a, u_b = (jnp.asarray(j.bearing_axis()) for j in joints)
        origin = motion.drawn(joints[0].point_a if self.at is None else self.at)
        start, end = (_foot(motion.drawn(j.point_a), u_a, origin) for j in joints)
        (x_a, v_a), (x_b, v_b) = (
            motion.point(j.b, x) for j, x in zip(joints, (start, end), strict=True)
        )
        u = motion.rotation(joints[0].a) @ u_a
        across = x_b - x_a
        across = across - u * (u @ across)
        r_a, r_b = self._radii()
        line = [_angle(u, motion.rotation(j.a) @ (end - start), across) for j in joints]
        line = _with_turns(motion, joints, (start, end), line)
        wound, rate = jnp.zeros_like(u[0]), jnp.zeros_like(u[0])
        for name, joint, turned, sign, r in zip(
            self.joints, joints, line, (1.0, jnp.sign(u_a @ u_b)), (r_a, -r_b), strict=True
        ):
            wound = wound + r * (sign * motion.joint(name)[0][0] - turned)
            rate = rate + r * (u @ motion.angular_velocity(joint.b))
        grown = _length(across, r_a - r_b) - _length(end - start, r_a - r_b)
        return _Line(x_a, x_b, across, u, v_b - v_a, grown, wound, rate)

    def _radii(self) -> tuple[Any, Any]:
        return self.radius_a, -self.radius_b if self.crossed else self.radius_b

    def _strands(self, motion: ElementMotion) -> list[Strand]:
        line, (r_a, r_b), found = self._line(motion), self._radii(), []
        sine = (r_a - r_b) / jnp.sqrt(line.across @ line.across)
        cosine, e = jnp.sqrt(1.0 - sine * sine), unit(line.across)
        for side in (1.0, -1.0):
            n = side * cross(line.u, e)
            out, along = cosine * n + sine * e, cosine * e - sine * n
            stretch = line.grown + side * line.wound
            speed = along @ line.apart + side * line.rate
            pull = self.pretension + self.stiffness * stretch + self.damping * speed
            tension = jnp.maximum(pull, 0.0)
            ends = line.x_a + r_a * out, line.x_b + r_b * out
            found.append(Strand(stretch, tension, tension * along, *ends))
        return found


class _Line(NamedTuple):
    """The line of the pulleys' centres: (3,) in world axes, and what stretches the strands [m]."""

    x_a: Array
    x_b: Array
    across: Array  # from x_a to x_b, in the plane of the belt
    u: Array  # its normal
    apart: Array  # velocity of x_b from x_a
    grown: Array  # of both strands since the drawing
    wound: Array  # on by pulley a less by pulley b
    rate: Array  # of `wound`, from a line that does not turn


class Strand(NamedTuple):
    """A strand between its tangent points `start` on pulley a and `end` on pulley b (3,) [m].

    `force` (3,) [N] is that on pulley a.
    """

    stretch: Array
    tension: Array
    force: Array
    start: Array
    end: Array


def _foot(x: Array, axis: Array, origin: Array) -> Array:
    """The point of an axis through x in the plane through `origin` across it."""
    return x + axis * (axis @ (origin - x))


def _angle(u: Array, start: Array, end: Array) -> Array:
    """From `start` to `end` about u, in (-π, π]."""
    return jnp.arctan2(u @ cross(start, end), start @ end)


def _with_turns(
    motion: ElementMotion, joints: list[Any], ends: tuple[Array, Array], line: list[Array]
) -> tuple[Array, Array]:
    """The angles of the line of centres a to b against both carriers, with whole turns.

    Their difference is the angle τ by which carrier b has turned against a. The line goes with the
    carrier of the pulley that is drawn farther from the hinge, within a quarter turn.
    """
    hinge = _hinge(motion.mech.structure.joints, *(j.a for j in joints))
    if hinge is None:
        return line[0], line[1]
    name, sense = hinge
    joint, u = motion.declared(name), jnp.asarray(joints[0].bearing_axis())
    away = [cross(u, x - motion.drawn(joint.point_a)) for x in ends]
    tau = sense * jnp.sign(joint.bearing_axis() @ u) * motion.joint(name)[0][0]
    with_b = away[0] @ away[0] < away[1] @ away[1]
    return jnp.where(with_b, line[1] + tau, line[0]), jnp.where(with_b, line[1], line[0] - tau)


def _hinge(edges: Sequence[Any], a: str, b: str) -> tuple[str, float] | None:
    """The Revolute that joins two bodies, perhaps beside slides: its name, and 1 if b is on side b.

    None for bodies that turn together, or that no Revolute joins.
    """
    rigid = [{e.a, e.b} for e in edges if e.kind.can_be_in_tree and "angle" not in e.kind.speeds]

    def turning(body: str) -> set[str]:
        """All that turns with a body."""
        found = {body}
        while more := [pair for pair in rigid if len(pair & found) == 1]:
            found = found.union(*more)
        return found

    with_a, with_b = turning(a), turning(b)
    for e in edges if b not in with_a else ():
        if e.kind.bearing == "journal":
            if e.a in with_a and e.b in with_b:
                return e.name, 1.0
            if e.a in with_b and e.b in with_a:
                return e.name, -1.0
    return None


def _length(between: Array, difference: Array) -> Array:
    """``L + Δ γ``."""
    square = between @ between
    straight = jnp.sqrt(square - difference * difference)
    return straight + difference * jnp.arctan2(difference, straight)
