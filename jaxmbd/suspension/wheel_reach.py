"""How far a wheel, a rack or an axle can be moved, by what they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmbd.model import Mechanism
from jaxmbd.plumbing import unknown
from jaxmbd.suspension.axle_table import axle_sweep
from jaxmbd.suspension.corner import Corner, find_corner
from jaxmbd.suspension.corner_sweep import kinematics_sweep, of_mechanism
from jaxmbd.suspension.reachable_travel import Reach, sweep_reach


def reach(
    mech: Mechanism,
    corners: Corner | Sequence[Corner] | None = None,
    *,
    of: str = "travel",
    accuracy: float | None = None,
    **held: float,
) -> Reach:
    """How far a wheel, a rack or an axle on its rig can be moved, from where it is drawn.

    It is the motion in which nothing gives way; stops and bushings do not end it.

    Args:
        mech: the corner, or the axle.
        corners: roles of a corner, or of the left and the right one of an axle; by default those of
            a corner of the zoo with its names.
        of: what is moved: of a corner "travel" (of the wheel centre) or "steer" (the rack); of an
            axle "heave", "roll", "left", "right" or "steer", as in `axle_kinematics`.
        accuracy: of the limits [m, in roll rad]; by default a millionth of the mechanism's length
            (RMS distance of its points from their middle).
        **held: where the others of these are held, ``steer=0.01``; by default as drawn.

    Raises:
        ValueError: names or roles do not fit, or it does not assemble as drawn or held.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> found = suspension.reach(mbd.zoo.double_wishbone_kinematic())
        >>> round(found.low, 4), round(found.high, 4), found.limited_by[1]
        (-0.2704, 0.4511, ('trackrod', 'upper_ball'))
    """
    roles = find_corner(mech) if corners is None else corners
    of_corner = isinstance(roles, Corner)
    known = ("travel", "steer") if of_corner else ("heave", "roll", "left", "right", "steer")
    problems = [text for n in (of, *held) for text in unknown("motion", n, known)]
    if of in held:
        problems.append(f"{of!r} is moved and held at once")
    if problems:
        raise ValueError("; ".join(problems))
    if isinstance(roles, Corner):
        options: Any = {"travel": 0.0, of: [0.0], **held}
        sweep = kinematics_sweep(roles, **options, observe="camber", gradients=())
        return sweep_reach(of_mechanism(sweep, mech), mech, of, accuracy=accuracy)
    options = {of: [0.0], **held}
    axle = axle_sweep(roles, **options, observe=["track"], settle=False)
    axle.check(mech)
    return sweep_reach(*axle.on(mech), of, accuracy=accuracy)
