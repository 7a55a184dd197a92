"""Gears, pulleys and belts in pictures: what couplings and belts stand for, with its meshes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.model import Belt, GearMesh, Mechanism, PlacedMesh, with_directions
from jaxmbd.viz.glyphs import PIN, RUBBER, Solid, Span
from jaxmbd.viz.solids import box, cylinder, frame_along, joined, ring, swept

WORM = 2.5
"""Length of a worm over its pitch radius."""


class GearWheel(NamedTuple):
    """A gear, a pinion or a pulley.

    Attributes:
        of: name of the coupling or belt.
        body: that it is part of.
        frame: the body that bears it.
        at: its centre as drawn (3,) [m].
        bearing: the point of its joint (3,) [m].
        axis: of its rotation (3,).
        radius: of its pitch circle [m].
        apex: of its pitch cone (3,) [m], of bevel gears.
        thread: of a worm, how far it advances in a turn [m], negative if left-handed.
        hollow: whether it is a ring.
    """

    of: str
    body: str
    frame: str
    at: np.ndarray
    bearing: np.ndarray
    axis: np.ndarray
    radius: float
    apex: np.ndarray | None = None
    thread: float | None = None
    hollow: bool = False


class Loop(NamedTuple):
    """A belt or chain over two pulleys."""

    name: str
    a: GearWheel
    b: GearWheel
    crossed: bool


def gear_wheels(mech: Mechanism) -> list[GearWheel]:
    """The wheels that couplings and belts stand for, in space; what several share comes once."""
    joints = _joints(mech)
    every = [x for n in mech.couplings for x in _of_coupling(mech, joints, n)]
    every += [x for loop in _belts(mech, joints) for x in (loop.a, loop.b)]
    found: list[GearWheel] = []
    for x in every:
        same = (y for y in found if y.body == x.body and abs(y.radius - x.radius) < 1e-6 * x.radius)
        if all(np.linalg.norm(y.at - x.at) > 1e-6 * x.radius for y in same):
            found.append(x)
    return found


def belt_loops(mech: Mechanism) -> list[Loop]:
    """Belts that stretch, and those that couplings with a positive ratio stand for, in space."""
    joints = _joints(mech)
    found = list(_belts(mech, joints))
    for name in mech.couplings:
        pair = _of_coupling(mech, joints, name)
        if len(pair) == 2 and not isinstance(mech.couplings[name], GearMesh):
            a, b = pair
            length = float(np.linalg.norm(np.cross(a.axis, b.at - a.at)))
            gaps = np.abs([a.radius + b.radius - length, abs(a.radius - b.radius) - length])
            if min(gaps) > 1e-6 * length and length > abs(a.radius - b.radius):
                found.append(Loop(name, a, b, crossed=False))
    return found


class Rack(NamedTuple):
    """A rack in mesh with its pinion.

    Attributes:
        body: that it is part of.
        pinion: its gear.
        at: where the pitch line touches the pitch circle, as drawn (3,) [m].
        along: direction of its motion (3,).
    """

    body: str
    pinion: GearWheel
    at: np.ndarray
    along: np.ndarray


def racks(mech: Mechanism) -> Iterator[Rack]:
    """The racks of a mechanism: where teeth press, or on the side where the rack's joint is."""
    joints = _joints(mech)
    for name, coupling in mech.couplings.items():
        own, pair = _of_coupling(mech, joints, name), [joints[n] for n, _ in coupling.terms]
        if len(own) != 1:
            continue
        pinion, joint = own[0], next(x for x in pair if own[0].body not in (x.a, x.b))
        along = np.asarray(joint.looks()[0].axis)
        placed: Any = mech.coupling(name)
        side = np.cross(along, pinion.axis)
        if isinstance(placed, PlacedMesh):
            towards = np.asarray(placed.pitch.apart)
        else:
            towards = np.asarray(mech.point(joint.point_b)) - pinion.at
        if (size := float(np.linalg.norm(side))) > 1e-6:
            away = side / np.copysign(size, side @ towards)
            body = joint.a if joint.b == pinion.frame else joint.b
            yield Rack(body, pinion, pinion.at + pinion.radius * away, along)


def rack_solid(rack: Rack, size: float) -> Solid:
    """A bar along the pitch line, four pitch radii long."""
    away = (rack.at - rack.pinion.at) / rack.pinion.radius
    frame = np.stack([away, np.cross(rack.along, away), rack.along], axis=1)
    half = np.array([0.5 * size, size, 2.0 * rack.pinion.radius])
    mesh = box(half).moved(frame, rack.at + 0.5 * size * away)
    return Solid(rack.pinion.of, rack.body, mesh, PIN)


def _joints(mech: Mechanism) -> dict[str, Any]:
    """Joints by name, with directions as components."""
    return {n: with_directions(x, mech.point) for n, x in mech.joints.items()}


def _belts(mech: Mechanism, joints: dict[str, Any]) -> Iterator[Loop]:
    for name, belt in mech.forces.items():
        if isinstance(belt, Belt):
            pair = [joints[n] for n in belt.joints]
            middle = mech.point(pair[0].point_a if belt.at is None else belt.at)
            wheels = [
                _wheel(name, mech, joint, joint.b, middle)._replace(radius=float(radius))
                for joint, radius in zip(pair, (belt.radius_a, belt.radius_b), strict=True)
            ]
            yield Loop(name, *wheels, crossed=belt.crossed)


def _of_coupling(mech: Mechanism, joints: dict[str, Any], name: str) -> list[GearWheel]:
    """The wheels of a coupling: of teeth by their pitch point, else by `pitch_radii`."""
    placed: Any = mech.coupling(name)
    if isinstance(placed, PlacedMesh):
        return _in_mesh(mech, joints, name, placed)
    pair = [joints[joint] for joint, _ in placed.terms]
    turns = [joints[joint].speeds[i] == "angle" for joint, i in placed.terms]
    axes = [x.bearing_axis() if turn else None for x, turn in zip(pair, turns, strict=True)]
    if len(pair) != 2 or all(axis is None for axis in axes):
        return []
    centres = [np.asarray(mech.point(joint.point_a)) for joint in pair]
    across = next(np.asarray(axis) for axis in axes if axis is not None)
    distance = float(np.linalg.norm(np.cross(across, centres[1] - centres[0])))
    radii = placed.pitch_radii(distance) or (None, None)
    carrier = {pair[0].a, pair[0].b} & {pair[1].a, pair[1].b}
    return [
        _wheel(name, mech, joint, joint.a if joint.b in carrier else joint.b, at)._replace(
            radius=radius
        )
        for joint, axis, at, radius in zip(pair, axes, centres, radii, strict=True)
        if radius is not None and axis is not None
    ]


def _in_mesh(
    mech: Mechanism, joints: dict[str, Any], name: str, placed: PlacedMesh
) -> list[GearWheel]:
    """The wheels on whose pitch circles the pitch point is."""
    mesh, pitch = placed.mesh, np.asarray(placed.pitch.point)
    pair = [joints[placed.terms[0][0]], joints[placed.terms[-1][0]]]
    found = []
    for joint, body in zip(pair, (placed.gear_a, placed.gear_b), strict=True):
        if joint.bearing == "journal":  # a rack is no wheel
            found.append(_wheel(name, mech, joint, body, pitch))
    kind = getattr(mesh, "kind", "")
    if kind == "bevel":
        (a, b), (u, w) = [x.at for x in found], [x.axis for x in found]
        normal = np.cross(u, w)
        apex = a + u * (np.cross(b - a, w) @ normal / (normal @ normal))
        found = [x._replace(apex=apex) for x in found]
    elif kind == "internal":
        ring_ = max(found, key=lambda x: x.radius)
        found = [x._replace(hollow=x is ring_) for x in found]
    elif kind == "worm" and abs(mesh.helix) > 0.25 * np.pi:
        advance = 2.0 * np.pi * found[0].radius / np.tan(float(mesh.helix))
        found[0] = found[0]._replace(thread=float(advance))
    return found


def _wheel(of: str, mech: Mechanism, joint: Any, body: str, near: Any) -> GearWheel:
    """A wheel about a joint's axis in the plane of a point (3,), through which its circle goes."""
    axis, on = np.asarray(joint.bearing_axis()), np.asarray(mech.point(joint.point_a))
    at = on + axis * (axis @ (np.asarray(near) - on))
    frame = joint.b if joint.a == body else joint.a
    return GearWheel(of, body, frame, at, on, axis, float(np.linalg.norm(np.asarray(near) - at)))


def strands(
    x_a: np.ndarray, x_b: np.ndarray, u: np.ndarray, loop: Loop
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Ends (3,) [m] of the straight parts of a belt, at places of its pulleys, u their axis.

    As in `jaxmbd.model.forces.belt`: the radius of the second pulley counts negative if crossed.
    """
    r_a, r_b = loop.a.radius, -loop.b.radius if loop.crossed else loop.b.radius
    across = x_b - x_a
    across = across - u * (u @ across)
    length = float(np.linalg.norm(across))
    e, sine = across / length, (r_a - r_b) / length
    out = [
        np.sqrt(max(1.0 - sine**2, 0.0)) * side * np.cross(u, e) + sine * e for side in (1.0, -1.0)
    ]
    return [(x_a + r_a * n, x_b + r_b * n) for n in out]


def belt_spans(mech: Mechanism, size: float) -> Iterable[Span]:
    """The straight parts of belts, which leave the pulleys where they do as drawn."""
    for loop in belt_loops(mech):
        axis = loop.a.axis / np.linalg.norm(loop.a.axis)
        for k, (a, b) in enumerate(strands(loop.a.at, loop.b.at, axis, loop)):
            mesh = cylinder(0.35 * size, 0.0, float(np.linalg.norm(b - a)))
            label = loop.name if k == 0 else f"{loop.name} {k + 1}"
            yield Span(label, loop.a.frame, a, loop.b.frame, b, mesh, RUBBER, "stretched")


def gear_solid(wheel: GearWheel, size: float) -> Solid:
    """A rim on its pitch circle, with a hub and spokes that show its rotation, or a thread."""
    r = wheel.radius
    if wheel.thread is not None:
        return _worm(wheel, wheel.thread, size)
    rim = [ring(r, 0.5 * size, 96)]
    frame = frame_along(wheel.axis)
    if not wheel.hollow:
        apex = np.zeros(3) if wheel.apex is None else (wheel.apex - wheel.at) @ frame
        for u in 2.0 * np.pi * np.arange(3) / 3:
            way = np.array([r * np.cos(u), r * np.sin(u), 0.0])
            for start in (np.zeros(3), *([apex] if wheel.apex is not None else [])):
                length = float(np.linalg.norm(way - start))
                rod = cylinder(0.35 * size, 0.0, length, 8)
                rim.append(rod.moved(frame_along(way - start), start))
        rim.append(cylinder(1.6 * size, -size, size))
    return Solid(wheel.of, wheel.body, joined(rim).moved(frame, wheel.at), PIN)


def _worm(wheel: GearWheel, advance: float, size: float) -> Solid:
    """A core with a thread on its pitch cylinder."""
    length = WORM * wheel.radius
    z = np.linspace(-0.5 * length, 0.5 * length, 200)
    u = 2.0 * np.pi * z / advance
    path = np.stack([wheel.radius * np.cos(u), wheel.radius * np.sin(u), z], axis=1)
    core = cylinder(0.9 * wheel.radius, z[0], z[-1])
    mesh = joined([core, swept(path, 0.5 * size)])
    return Solid(wheel.of, wheel.body, mesh.moved(frame_along(wheel.axis), wheel.at), PIN)
