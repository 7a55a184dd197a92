"""Compliance of an axle: how its wheels move under small loads on them.

Signs are those of ISO 8855: x forward, y left, z up, of forces, moments and displacements alike.

What is held, and what is not:

* Loads act on the upright: the wheel is locked to it, so the wheel's free spin plays no part. A
  brake torque is carried by the upright ("outboard") or the chassis ("inboard").
* Ride height: by default it is not held, springs carry a change of load, and vertical compliance is
  that of the springs too; what carries no load sags to where it hangs. ``travel=0.0`` holds the
  wheel centres at the height at which they are drawn, as a rig does that drives heights.
* A rack is held; ``steer=None`` lets it go, against the springs that are on it.
* Tyres deform only if the model has them.

The heading of a printed table tells which of these it is, and how far the wheels are from where
they are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.analysis import Known, Status, equilibrium, flexibility
from jaxmbd.kinematics import point_position, poses
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import text_table
from jaxmbd.spatial import cross, skew
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.kinematics_table import write_csv
from jaxmbd.suspension.motions import contact_point, drawn_wheel, held_joints, wheel_key
from jaxmbd.variables import shown

LOADS = ("lateral", "braking", "traction", "vertical", "aligning")
"""Of one newton or newton metre each; `Compliance.coefficients` has their directions."""
RESPONSES = ("steer", "toe", "camber", "windup", "x", "y", "z", "patch_x", "patch_y", "patch_z")


class Compliance(eqx.Module):
    """The compliance of one wheel or of an axle at an equilibrium; see `compliance`.

    Attributes:
        matrix: C (6 n, 6 n) of n wheels: for each three rotations [rad] of the upright and three
            displacements [m] of its wheel centre, per three moments [N·m] and three forces [N] on
            it there, world axes.
        centre: wheel centres (n, 3) [m].
        spin: unit vectors (n, 3) along the wheels' axes, outwards.
        patch: lowest points (n, 3) of the wheels' middle planes [m]: contact patches.
        q: coordinates (nq,) of the equilibrium.
        status: a `Status` number; all is NaN unless it is OK, or INACCURATE, as where there is
            hardly a load.
        sides: "left" or "right" of each wheel.
        brakes, drive: "outboard" or "inboard", of each wheel.
        rise: heights (n,) of the wheel centres over where they are drawn [m].
        held: what is held, in words.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> strut = mbd.soften(mbd.zoo.macpherson(wheel_load=4000.0), "rev_lca", (1e4, 5e6))
        >>> suspension.compliance(strut, suspension.zoo_corner("macpherson")).matrix.shape
        (6, 6)
    """

    matrix: Array
    centre: Array
    spin: Array
    patch: Array
    q: Array
    status: Array
    sides: tuple[str, ...] = eqx.field(static=True)
    brakes: tuple[str, ...] = eqx.field(static=True)
    drive: tuple[str, ...] = eqx.field(static=True)
    rise: Array
    held: tuple[str, ...] = eqx.field(static=True)

    def coefficients(self) -> dict[str, Array]:
        """Responses (n,) of the wheels per unit load by ``"load/pattern/response"``, in SI units.

        Loads, of 1 N or 1 N·m on each wheel:

        * lateral: +y at the contact patch.
        * braking: −x at the contact patch; with inboard brakes at the wheel centre, since the
          brake torque then does not act on the upright.
        * traction: +x at the wheel centre; with a motor on the upright at the contact patch.
        * vertical: +z at the wheel centre.
        * aligning: a moment about +z.

        Patterns: "parallel", both wheels alike; "opposed", the right wheel the opposite; of a
        single wheel "single".

        Responses: steer angle [rad], positive to the left (about +z) on both sides; toe [rad],
        positive inwards at the front; camber [rad], positive with the top outwards; windup [rad],
        rotation of the upright about its wheel's axis, positive about +y, which adds to the caster
        angle with a reversed sign; x, y, z [m] of the wheel centre, and of the upright's point at
        the contact patch.

        Example:
            >>> from jaxmbd.suspension.compliance_matrix import LOADS, RESPONSES
            >>> len(LOADS), len(RESPONSES)
            (5, 10)
        """
        patterns = {"single": (1.0,)}
        if len(self.sides) == 2:
            patterns = {"parallel": (1.0, 1.0), "opposed": (1.0, -1.0)}
        moved = [_responses(*x) for x in zip(self.spin, self._arms(), self.sides, strict=True)]
        found = {}
        for load in LOADS:
            wrenches = [self._wrench(load, k) for k in range(len(self.sides))]
            for pattern, signs in patterns.items():
                both = jnp.concatenate([s * w for s, w in zip(signs, wrenches, strict=True)])
                twists = (self.matrix @ both).reshape(-1, 6)
                rows = [m @ twist for m, twist in zip(moved, twists, strict=True)]
                for i, response in enumerate(RESPONSES):
                    found[f"{load}/{pattern}/{response}"] = jnp.stack([row[i] for row in rows])
        return found

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the printed table: a row for each wheel and response, a column for each load."""
        head, rows = _rows(self)
        write_csv(path, ["wheel", "response", "unit", *head], rows)

    def _arms(self) -> Array:
        return self.patch - self.centre

    def _wrench(self, load: str, k: int) -> Array:
        """Moment and force at the wheel centre (6,)."""
        x, y, z = jnp.eye(3, dtype=self.matrix.dtype)
        if load == "aligning":
            return jnp.concatenate([z, 0.0 * z])
        force = {"lateral": y, "braking": -x, "traction": x, "vertical": z}[load]
        places = {"lateral": "outboard", "braking": self.brakes[k], "traction": self.drive[k]}
        at_patch = places.get(load) == "outboard"
        return jnp.concatenate([cross(self._arms()[k], force) if at_patch else 0.0 * z, force])

    def __str__(self) -> str:
        return _table(self)


def _responses(spin: Array, arm: Array, side: str) -> Array:
    """(10, 6): the `RESPONSES` to the upright's small motion ``[ω; u]``."""
    sign = 1.0 if side == "left" else -1.0
    left = sign * spin  # the wheel's axis to the left
    turned = -skew(left)  # its change per rotation
    steer = (left[0] * turned[1] - left[1] * turned[0]) / (left[0] ** 2 + left[1] ** 2)
    out_y, out_z = spin[1] * sign, spin[2]
    tilt_y, tilt_z = turned[1], sign * turned[2]
    camber = (out_z * tilt_y - out_y * tilt_z) / (out_y**2 + out_z**2)
    angles = jnp.stack([steer, -sign * steer, camber, left])
    eye, none = jnp.eye(3, dtype=spin.dtype), jnp.zeros((4, 3), spin.dtype)
    return jnp.block([[angles, none], [none[:3], eye], [-skew(arm), eye]])


def compliance(
    mech: Mechanism,
    corners: Corner | Sequence[Corner],
    *,
    travel: Any = None,
    steer: Any = 0.0,
    known: Known | None = None,
    guess: Any = None,
    t: Any = 0.0,
    inputs: Any = None,
    throw: bool = True,
    backend: str = "auto",
) -> Compliance:
    """The compliance matrix of a wheel or an axle about its static equilibrium.

    One linear solution gives all of it, for loads on any wheel, with rigid joints, loops and
    bushings (`jaxmbd.soften`, `Bushing`) as the mechanism has them. It is symmetric for loads with
    a potential, and differentiable in every number of the mechanism; one axle, or a batch by
    `jaxmbd.lanes.vmap`. The module's text tells what is held.

    Args:
        mech: the mechanism, with the loads that it carries at rest.
        corners: the roles of one wheel's parts, or of the left and the right wheel's
            (`axle_corners`).
        travel: height at which the wheel centres are held, over where they are drawn [m], one
            number or one for each wheel; None lets them go, so that springs carry the loads.
        steer: travel at which the rack is held (`Corner.steering`, where it is one) [m]; None lets
            it go.
        known: coordinates that are held besides, with the keys of `jaxmbd.equilibrium`.
        guess: coordinates (nq,) to start from; by default as drawn.
        t: time [s] at which drives and laws are evaluated.
        inputs: efforts on joints, ``{joint: value}``.
        throw: raise an error if there is no equilibrium (outside `jit` and `vmap`).
        backend: "auto", "lanes" or "xla".

    Raises:
        ValueError: a corner does not fit the mechanism, or there is no equilibrium.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> strut = mbd.soften(mbd.zoo.macpherson(wheel_load=4000.0), "rev_lca", (1e4, 5e6))
        >>> soft = suspension.compliance(strut, suspension.zoo_corner("macpherson"))
        >>> bool(soft.coefficients()["lateral/single/y"][0] > 1e-7)
        True
        >>> held = suspension.compliance(
        ...     strut, suspension.zoo_corner("macpherson"), travel=0.0)
        >>> bool(abs(held.coefficients()["vertical/single/z"][0]) < 1e-15)
        True
    """
    wheels = (corners,) if isinstance(corners, Corner) else tuple(corners)
    for corner in wheels:
        corner.check(mech)
    known, held = _held(mech, wheels, travel, steer, known or {})
    options: dict[str, Any] = dict(known=known, t=t, inputs=inputs, backend=backend)
    rest = equilibrium(mech, guess=guess, throw=throw, **options)
    places = [corner.placed("upright", corner.wheel_centre) for corner in wheels]
    # Where there is hardly a load, rounding may be more: the place is exact all the same.
    ok = (rest.status == Status.OK) | (rest.status == Status.INACCURATE)
    q = jnp.where(ok, rest.q, jnp.nan)
    matrix = flexibility(mech, q, places, **options)
    found = [_wheel(mech, q, corner) for corner in wheels]
    centre, spin, patch = (jnp.stack(x) for x in zip(*found, strict=True))
    sides, brakes, drive = (
        tuple(getattr(c, n) for c in wheels) for n in ("side", "brakes", "drive")
    )
    drawn = jnp.stack([drawn_wheel(mech, corner)[0] for corner in wheels])
    rise = centre[:, 2] - drawn[:, 2]
    return Compliance(
        matrix, centre, spin, patch, rest.q, rest.status, sides, brakes, drive, rise, held
    )


def _held(
    mech: Mechanism, wheels: tuple[Corner, ...], travel: Any, steer: Any, known: Known
) -> tuple[dict[Any, Any], tuple[str, ...]]:
    """All that is held, and in words."""
    found: dict[Any, Any] = {}
    for corner in wheels:
        found |= held_joints(mech, corner)
    words = [f"{name} as drawn" for name in dict.fromkeys(n for c in wheels for n in c.hold)]
    if steer is not None:
        racks = dict.fromkeys(str(c.steering) for c in wheels if c.slides(mech))
        found |= dict.fromkeys(racks, steer)
        words += racks
    if travel is not None:
        heights = jnp.broadcast_to(jnp.asarray(travel), (len(wheels),))
        found |= {wheel_key(c): x for c, x in zip(wheels, heights, strict=True)}
        words.append("wheel centres")
    words += [f"{key}" for key in known if key not in found]
    return found | dict(known), tuple(words)


def _wheel(mech: Mechanism, q: Array, corner: Corner) -> tuple[Array, Array, Array]:
    """Wheel centre, axis outwards, and contact patch."""
    centre = point_position(mech, q, *corner.placed("upright", corner.wheel_centre))
    spin = poses(mech, q)[corner.upright].rotation @ drawn_wheel(mech, corner)[1]
    return centre, spin, contact_point(centre, spin, corner.tyre_radius)


def _rows(c: Compliance) -> tuple[list[str], list[list[Any]]]:
    """Names of loads with their patterns, and a row for each wheel and response: units of use."""
    found = {path: np.asarray(x) for path, x in c.coefficients().items()}
    cases = list(dict.fromkeys(path.rsplit("/", 1)[0] for path in found))
    sizes = [100.0 if case.startswith("aligning") else 1e3 for case in cases]
    per = [
        f"{case} per {'100 N m' if x == 100.0 else 'kN'}"
        for case, x in zip(cases, sizes, strict=True)
    ]
    rows: list[list[Any]] = []
    for k, side in enumerate(c.sides):
        for response in RESPONSES:
            unit, factor = shown("rad" if response in RESPONSES[:4] else "m")
            pairs = zip(cases, sizes, strict=True)
            values = [factor * x * float(found[f"{case}/{response}"][k]) for case, x in pairs]
            rows.append([side, response, unit, *values])
    return per, rows


def _table(c: Compliance) -> str:
    """The coefficients in the units of the trade, a column for each load and pattern."""
    if isinstance(c.matrix, Tracer) or c.matrix.ndim != 2:
        return repr(c)
    per, rows = _rows(c)
    head = [f"{load[:5]}. {p[:4]}." for load, p in (x.split(" ")[0].split("/") for x in per)]
    below = [
        [f"{side} {response} [{unit}]", *(f"{x:.4f}" for x in values)]
        for side, response, unit, *values in rows
    ]
    unit, factor = shown("m")
    heights = ", ".join(
        f"{side} {factor * float(x):+.1f} {unit}" for side, x in zip(c.sides, c.rise, strict=True)
    )
    free = "" if "wheel centres" in c.held else "; wheel centres go against the springs"
    title = f"held: {', '.join(c.held) or 'nothing'}{free}; from where they are drawn: {heights}"
    head = ["per kN (aligning: per 100 N·m)", *head]
    return "\n".join([title, text_table(head, below, left=(0,))])
