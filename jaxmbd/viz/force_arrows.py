"""Arrows of reactions and forces along a course."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbd import lanes
from jaxmbd.analysis import efforts_at, parse_inputs
from jaxmbd.dynamics import forward_dynamics, joint_reactions
from jaxmbd.graph import topology
from jaxmbd.kinematics import MotionState, motion_state
from jaxmbd.model import GROUND, Load, Mechanism, RubbingElement
from jaxmbd.observe import Snapshot, unknown
from jaxmbd.viz.course import Track

GROUPS = ("reactions", "forces")
_READABLE = 0.1
"""Arrows that are usually shorter than this share of the longest could not be read."""


def chosen_arrows(mech: Mechanism, names: Iterable[str] | str | None) -> tuple[str, ...]:
    """The joints and force elements of which arrows are drawn.

    Args:
        mech: the mechanism.
        names: of joints and force elements; "reactions" and "forces" are all of them.

    Raises:
        ValueError: a name is unknown.
    """
    names = (names,) if isinstance(names, str) else tuple(names or ())
    joints = [n for n in mech.joints if "force" in mech.joint(n).rows]
    forces = [n for n, f in mech.forces.items() if not isinstance(f, RubbingElement)]
    for name in names:
        if problems := unknown("joint or force element", name, (*GROUPS, *joints, *forces)):
            raise ValueError(problems[0])
    found: list[str] = []
    for name in names:
        found += {"reactions": joints, "forces": forces}.get(name, [name])
    return tuple(dict.fromkeys(found))


def arrows_along(
    mech: Mechanism, track: Track, names: tuple[str, ...], inputs: Any = None
) -> np.ndarray:
    """Feet (m, 3) [m] and forces (m, 3) [N] of arrows, (frames, m, 2, 3).

    A joint's arrow is the force of its reaction on b; a force element has one for each force on a
    body, none for those on the ground. Reactions of what is held at rest are the static ones, as of
    `jaxmbd.observe.Reaction`; else accelerations and multipliers that the track lacks are computed.

    Args:
        mech: the mechanism.
        track: its motion at the frames; without speeds it is taken at rest.
        names: of joints and force elements (`chosen_arrows`).
        inputs: efforts on joints during the motion, as of `simulate`.

    Raises:
        ValueError: a force is not determined.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.viz.course import Track
        >>> from jaxmbd.viz.force_arrows import arrows_along
        >>> mech = mbd.zoo.simple_pendulum()
        >>> hanging = Track(np.full((1, 1), np.pi / 2))
        >>> arrows_along(mech, hanging, ("hinge",))[0, 0, 1].round(6).tolist()
        [0.0, 9.81, 0.0]
    """
    rows = len(track.q)
    v = np.zeros((rows, topology(mech).nv)) if track.v is None else track.v
    t = np.zeros(rows) if track.t is None else track.t
    known: Any = (track.vdot, track.lam, track.tau)
    known = None if any(x is None for x in known) else known
    given, jointed = parse_inputs(mech, inputs), any(n in mech.joints for n in names)

    def instant(mech: Mechanism, q: Any, v: Any, t: Any, known: Any) -> Any:
        if track.held is not None:
            values = [jnp.zeros_like(t)] * len(track.held)  # reactions do not depend on them
            efforts = efforts_at(given, t, q, v)
            at = Snapshot(
                mech, q, t=t, inputs=efforts, keys=track.held, values=values, moving=False
            )
            return _arrows(at.motion, names, at.reactions if jointed else {})
        if known is None:
            efforts = efforts_at(given, t, q, v)
            vdot, lam = forward_dynamics(mech, q, v, t, efforts)
        else:
            vdot, lam, tau = known
            efforts = _by_joint(mech, tau)
        found = joint_reactions(mech, q, v, vdot, lam, t, efforts) if jointed else {}
        return _arrows(motion_state(mech, q, v, t), names, found)

    along = lanes.vmap(instant, in_axes=(None, 0, 0, 0, 0))
    found = np.asarray(along(mech, track.q, v, t, known))
    if not np.all(np.isfinite(found)):
        frame = int(np.argmin(np.all(np.isfinite(found), axis=(1, 2, 3))))
        raise ValueError(
            f"force arrows: in frame {frame} forces are not determined or not finite: give bodies "
            "that spin idly an inertia, hold what nothing holds, or show a sweep or driven motion"
        )
    return found


def arrow_scale(forces: np.ndarray, longest: float) -> tuple[np.ndarray, str]:
    """Factors that make arrows of forces, and the legend that tells their scale.

    Lengths are in proportion to the forces, unless some of these are usually below a tenth of the
    greatest: then to their square roots, so that a hundredth is still a tenth as long.

    Args:
        forces: (frames, m, 3) [N], zero where there is nothing to draw.
        longest: length of the greatest force's arrow [m].

    Returns:
        Factors (frames, m) [m/N] of the forces, and the legend.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.viz.force_arrows import arrow_scale
        >>> forces = np.array([[[4e3, 0, 0], [0, 40.0, 0]]])
        >>> factors, legend = arrow_scale(forces, longest=0.2)
        >>> (factors[..., None] * forces).max(axis=-1).round(6).tolist()
        [[0.2, 0.02]]
        >>> legend
        'longest arrow: 4 kN, half as long: 1 kN (lengths grow as the square root)'
    """
    sizes = np.linalg.norm(forces, axis=-1)
    greatest = float(sizes.max(initial=0.0))
    if greatest == 0.0:
        return sizes, "no forces"
    usual = [float(np.median(x[x > 0.0])) for x in sizes.T if np.any(x)]
    if min(usual) >= _READABLE * greatest:
        return np.full(sizes.shape, longest / greatest), f"longest arrow: {_newtons(greatest)}"
    factors = longest / np.sqrt(greatest * np.where(sizes > 0.0, sizes, greatest))
    half = f"half as long: {_newtons(0.25 * greatest)} (lengths grow as the square root)"
    return factors, f"longest arrow: {_newtons(greatest)}, {half}"


def _newtons(x: float) -> str:
    return f"{x / 1e3:.3g} kN" if x >= 1e3 else f"{x:.3g} N"


def _by_joint(mech: Mechanism, tau: Any) -> dict[str, Any]:
    layout = topology(mech).layout
    return {n: tau[layout[n].v] for n in topology(mech).tree if layout[n].v}


def _arrows(m: MotionState, names: tuple[str, ...], reactions: dict[str, Any]) -> Any:
    mech, found = m.mech, []
    for name in names:
        if name in mech.joints:
            joint = mech.joint(name)
            found.append((m.position(joint.b, joint.point_b), reactions[name][3:]))
            continue
        for load in mech.forces[name].loads(m):
            if isinstance(load, Load) and load.body != GROUND:
                found.append((load.point, load.force))
    return jnp.stack([jnp.stack(x) for x in found]) if found else jnp.zeros((0, 2, 3))
