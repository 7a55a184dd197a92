"""What looks wrong in gears: pinions that are undercut, planets that do not fit or overlap.

A planet of z_p teeth between a sun and a ring of z_s and z_r teeth meets gaps of both where
``(z_s + z_r) φ`` is a whole number of turns, φ being its angle from another planet on the carrier;
with equal angles the sum of teeth divides by the number of planets. (J. J. Uicker, G. R. Pennock,
J. E. Shigley, Theory of Machines and Mechanisms; H. W. Müller, Die Umlaufgetriebe.) In general it
is the difference of the central gears' teeth, a ring's counted as negative.

A rack cuts into the root of a gear with fewer than ``2 cos β / sin² α_t`` teeth of full depth,
``tan α_t = tan α / cos β``. Five sixths of it serve in practice (DIN 3960: 14 instead of 17 teeth).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmbd.model.description import Description, drawn_in_space, is_planar
from jaxmbd.model.gear_mesh import GearMesh, gear_axis, mesh_roles
from jaxmbd.model.joints.base import with_directions
from jaxmbd.model.numbers import is_concrete

IN_PRACTICE = 5.0 / 6.0
"""Share of the least number of teeth without undercut that is told."""
BESIDE = 0.05
"""Share of a tooth by which a planet may miss its gap, as by tolerances of the drawing."""
COAXIAL = 1e-3
"""Distance of two axes over that of a planet from them, below which they are one."""


def gear_doubts(given: Description) -> Iterator[str]:
    """What looks wrong in the gears of a valid description, all of whose points are known."""
    if not any(isinstance(x, GearMesh) for x in given.couplings.values()):
        return
    given = drawn_in_space(given) if is_planar(given) else given
    meshes = {n: x for n, x in given.couplings.items() if isinstance(x, GearMesh) and _known(x)}
    for name, mesh in meshes.items():
        for text in _undercut(mesh):
            yield f"coupling '{name}': {text}; it is used as given"
    yield from _planet_doubts(given, list(meshes.values()))


def _known(parts: Any) -> bool:
    return all(map(is_concrete, jax.tree_util.tree_leaves(parts)))


def _undercut(mesh: GearMesh) -> Iterator[str]:
    """Gears with too few teeth, where a module says that profiles are not shifted."""
    if mesh.module is None or mesh.kind not in ("external", "internal"):
        return
    teeth = sorted([float(mesh.teeth_a), float(mesh.teeth_b)])
    teeth = teeth[:1] if mesh.kind == "internal" else teeth
    cos = float(np.cos(mesh.helix))
    least = 2.0 * cos / np.sin(np.arctan(np.tan(float(mesh.pressure_angle)) / cos)) ** 2
    enough = np.floor(IN_PRACTICE * least)
    for z in teeth:
        if z < enough:
            yield (
                f"a gear of {z:g} teeth is undercut, for teeth of full depth are sound from "
                f"{least:.3g} on, and well enough from {enough:g} on: take more teeth, or shift "
                "its profile, leave module out and give the working pressure angle"
            )


class _Side(NamedTuple):
    """A gear as one of a mesh."""

    teeth: float
    other: str
    """The other gear."""
    counted: float
    """Teeth of the other gear, negative for a ring."""
    arm: np.ndarray
    """From the other's axis to its own, across them (3,) [m]."""
    axis: np.ndarray
    """Direction of the axes (3,)."""
    tips: float
    """Diameter of its tip circle [m]."""


Planet = tuple[str, list[_Side]]
"""A gear and its meshes."""


def _planet_doubts(given: Description, meshes: list[GearMesh]) -> Iterator[str]:
    """Planets of one carrier, between the same gears, that do not fit or overlap."""
    sides: dict[tuple[str, str], list[_Side]] = {}
    for mesh in meshes:
        for carrier, gear, side in _sides(mesh, given):
            sides.setdefault((carrier, gear), []).append(side)
    planets: dict[Any, list[Planet]] = {}
    for (carrier, gear), own in sides.items():
        own = sorted(own, key=lambda x: x.counted)
        if _is_planet(own):
            between = carrier, tuple((x.other, x.counted) for x in own)
            planets.setdefault(between, []).append((gear, own))
    for (carrier, _), group in planets.items():
        for other in group[1:]:
            yield from _beside_gaps(carrier, group[0], other)
        for one, other in combinations(group, 2):
            yield from _overlap(carrier, one, other)


def _sides(mesh: GearMesh, given: Description) -> Iterator[tuple[str, str, _Side]]:
    """Carrier, gear and its side, for both gears of a mesh on parallel axes."""
    joints = {n: with_directions(given.joints[n], given.points.__getitem__) for n, _ in mesh.terms}
    if mesh.kind not in ("external", "internal") or not _known(joints):
        return
    roles = mesh_roles(mesh, joints)
    (u, a), (_, b) = (
        [np.asarray(x, float) for x in gear_axis(joints[n], lambda ref: given.points[ref.name])]
        for n in (mesh.joint_a, mesh.joint_b)
    )
    arm = b - a - u * (u @ (b - a))
    z = float(mesh.teeth_a), float(mesh.teeth_b)
    ring = max(z) if mesh.kind == "internal" else None
    pitch = float(np.linalg.norm(arm)) / abs(z[0] + z[1] if ring is None else z[0] - z[1])
    tips = [2.0 * pitch * (own + 2.0 * float(np.cos(mesh.helix))) for own in z]
    counted = [-x if x == ring else x for x in z]
    yield roles.carrier, roles.gear_a, _Side(z[0], roles.gear_b, counted[1], -arm, u, tips[0])
    yield roles.carrier, roles.gear_b, _Side(z[1], roles.gear_a, counted[0], arm, u, tips[1])


def _is_planet(own: list[_Side]) -> bool:
    """Whether all gears in mesh with one turn about one axis, and it has one number of teeth."""
    first = own[0]
    limit = COAXIAL * float(np.linalg.norm(first.arm))
    return len({x.other for x in own}) > 1 and all(
        x.teeth == first.teeth and np.linalg.norm(x.arm - first.arm) <= limit for x in own
    )


def _beside_gaps(carrier: str, one: Planet, other: Planet) -> Iterator[str]:
    """Another planet that does not meet the gaps which the first one leaves it."""
    (name, (low, *_, high)), (beside, (there, *_)) = one, other
    count = high.counted - low.counted
    cross = low.axis @ np.cross(low.arm, there.arm)
    turn = float(np.arctan2(cross, low.arm @ there.arm)) / (2.0 * np.pi) % 1.0
    teeth = turn * count
    if abs(teeth - round(teeth)) > BESIDE:
        near = [360.0 * k / count for k in (np.floor(teeth), np.ceil(teeth))]
        yield (
            f"planets '{name}' and '{beside}' on '{carrier}' are {360.0 * turn:.5g}° apart, where "
            f"teeth do not meet gaps: '{low.other}' and '{high.other}' leave gaps in steps of "
            f"360°/{count:g}; place it at {near[0]:.6g}° or {near[1]:.6g}°, or take numbers of "
            "teeth whose sum fits"
        )


def _overlap(carrier: str, one: Planet, other: Planet) -> Iterator[str]:
    (name, (first, *_)), (beside, (second, *_)) = one, other
    apart, wide = float(np.linalg.norm(second.arm - first.arm)), 0.5 * (first.tips + second.tips)
    if apart < wide:
        yield (
            f"planets '{name}' and '{beside}' on '{carrier}' overlap: their axes are {apart:.4g} m "
            f"apart, and their tip circles {wide:.4g} m wide; take fewer planets, or smaller ones"
        )
