"""Lines of a suspension in its picture: instant axes, steering axes, and the roll centre.

The *instant axis* is the screw axis of an upright as its wheel rises with the rack, and the other
wheel of an axle, held. The *steering axis* is the kingpin, or where there is none the instantaneous
one of the steering motion, from the ground up. Lines from the contacts run to the *roll centre*: of
a corner to that of a symmetric axle in parallel travel, of an axle on its rig
(`suspension.on_rig`) to that of the roll motion, by geometry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.analysis import Key, PointTravel, parse_known
from jaxmbd.graph import topology
from jaxmbd.model import Mechanism
from jaxmbd.observe import Snapshot, unheld_joints
from jaxmbd.suspension import (
    RIG,
    AxleCharacteristic,
    Characteristic,
    Corner,
    available,
)
from jaxmbd.viz.glyphs import Colour

COLOURS: dict[str, Colour] = {
    "instant axis": (0.85, 0.33, 0.10, 1.0),
    "steering axis": (0.10, 0.55, 0.35, 1.0),
    "roll centre": (0.35, 0.25, 0.65, 1.0),
}
"""Kinds of lines."""
_HALF, _FAR, _TALL = 0.3, 2.0, 2.2
"""Half an instant axis, and how far from a wheel a line may be to be drawn, in sizes of the scene;
height of a steering axis in radii of the tyre."""


def suspension_lines(
    mech: Mechanism, corners: Sequence[Corner], q: np.ndarray, size: float
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Ends (n, m, 2, 3) [m] of lines at coordinates q (n, nq), and the kind of each in `COLOURS`.

    A line that does not exist, or is too far away, is NaN.

    Args:
        mech: a corner or an axle.
        corners: the roles of one wheel, or of the left and the right one.
        q: coordinates.
        size: of the scene [m].

    Raises:
        ValueError: roles do not fit.
    """
    for corner in corners:
        corner.check(mech)
    heights = [PointTravel(*c.placed("upright", c.wheel_centre), "z") for c in corners]
    held = dict.fromkeys([*heights, *_still(mech, corners)], 0.0)
    keys, rig = parse_known(mech, held)[0], ()
    if len(corners) == 2 and set(RIG.values()) <= set(mech.joints):
        joints = dict.fromkeys([*RIG.values(), *_still(mech, corners)], 0.0)
        rig = parse_known(mech, joints)[0]
    soft = bool(unheld_joints(mech, keys)[0])
    kinds: list[str] = []

    def lines(mech: Mechanism, q: Array) -> Array:
        found = []
        at = _instant(mech, q, keys, soft)
        for corner in corners:
            found += _of_wheel(corner, at, _HALF * size, alone=len(corners) == 1)
        if rig:
            found += _to_roll_centre((corners[0], corners[1]), at, _instant(mech, q, rig, soft))
        kinds[:] = [kind for kind, _ in found]
        return jnp.stack([jnp.stack(ends) for _, ends in found])

    ends = np.array(lanes.vmap(lines, in_axes=(None, 0))(mech, np.asarray(q)))
    wheels = [np.asarray(mech.point(c.placed("upright", c.wheel_centre)[1])) for c in corners]
    away = np.min([np.linalg.norm(ends - x, axis=-1).max(axis=-1) for x in wheels], axis=0)
    ends[~(away < _FAR * size)] = np.nan
    return ends, tuple(kinds)


def _still(mech: Mechanism, corners: Sequence[Corner]) -> list[Any]:
    """Steering and other joints that are held."""
    racks = [c.steering for c in corners if c.slides(mech)]
    held = [(n, i) for c in corners for n in c.hold for i in range(mech.joint(n).nv)]
    return list(dict.fromkeys([*racks, *held]))


def _instant(mech: Mechanism, q: Array, keys: tuple[Key, ...], soft: bool) -> Snapshot:
    """The mechanism at rest; what is soft gives way in its motions, whatever its multipliers."""
    none = jnp.zeros(topology(mech).nc + len(keys), q.dtype) if soft else None
    values = [jnp.zeros((), q.dtype)] * len(keys)
    return Snapshot(mech, q, keys=keys, values=values, moving=False, multipliers=none)


def _of_wheel(
    corner: Corner, at: Snapshot, half: float, alone: bool
) -> list[tuple[str, tuple[Array, Array]]]:
    def of(name: str) -> Array:
        return Characteristic(corner, name).value(at)

    contact = of("contact")
    point, way = of("instant_axis_point"), half * of("instant_axis_direction")
    found = [("instant axis", (point - way, point + way))]
    prefix = "" if corner.kingpin is not None else "virtual_"
    if f"{prefix}caster" in available(corner):
        zero = jnp.zeros_like(contact[0])
        trail, scrub = of(f"{prefix}caster_trail"), of(f"{prefix}scrub_radius")
        foot = contact + jnp.stack([trail, -corner.sign * scrub, zero])
        lean = [-jnp.tan(of(f"{prefix}caster")),
                -corner.sign * jnp.tan(of(f"{prefix}kingpin_inclination")), zero + 1.0]  # fmt: skip
        found.append(("steering axis", (foot, foot + _TALL * corner.tyre_radius * jnp.stack(lean))))
    if alone:
        height = contact[2] + of("roll_centre_height")
        middle = jnp.stack([contact[0], jnp.zeros_like(height), height])
        found.append(("roll centre", (contact, middle)))
    return found


def _to_roll_centre(
    corners: tuple[Corner, Corner], at: Snapshot, on_rig: Snapshot
) -> list[tuple[str, tuple[Array, Array]]]:
    """From both contacts in front view, whose line is the ground."""
    left, right = (Characteristic(c, "contact").value(at) for c in corners)
    height, lateral = (
        AxleCharacteristic(corners, f"roll_centre_{x}").value(on_rig) for x in ("height", "lateral")
    )
    along = (left - right)[1:] / jnp.sqrt((left - right)[1:] @ (left - right)[1:])
    # On the line at this height over the ground line, where y is `lateral`.
    share = (lateral + height * along[1] - left[1]) / along[0]
    z = left[2] + share * along[1] + height * along[0]
    centre = jnp.stack([0.5 * (left[0] + right[0]), lateral, z])
    return [("roll centre", (x, centre)) for x in (left, right)]
