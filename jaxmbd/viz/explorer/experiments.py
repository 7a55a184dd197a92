"""What is observed of a mechanism by default: the curves of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaxmbd.analysis import held_name, parse_known
from jaxmbd.graph import topology
from jaxmbd.kinematics import mechanism_length
from jaxmbd.model import Mechanism
from jaxmbd.observe import (
    Coordinate,
    HoldingEffort,
    Motion,
    Position,
    Sweep,
    unheld_joints,
    unknown_point,
)
from jaxmbd.plumbing import unknown
from jaxmbd.suspension import (
    CHARACTERISTICS,
    AxleSweep,
    Corner,
    available,
    axle_available,
    axle_sweep,
    find_corner,
    kinematics_sweep,
)

CURVES = (
    "toe",
    "camber",
    "half_track_change",
    "caster",
    "roll_centre_height",
    "motion_ratio",
    "wheel_rate",
    "anti_dive",
)
"""Characteristics of a corner that are shown unless others are asked for."""

POINTS = 41
"""Places of the axis unless others are asked for."""

AXLE_CURVES = {
    "roll": "left_camber_to_road axle_steer track roll_centre_height roll_moment load_transfer",
    "steer": "left_steer_angle right_steer_angle left_camber right_camber track",
    "": "left_toe left_camber right_toe right_camber track roll_centre_height_forces",
}
"""Columns of an axle that are shown unless others are asked for, by what moves."""

EVENTS = {"heave": 0.06, "roll": 0.06, "left": 0.06, "right": 0.06, "opposite": 0.06, "steer": 0.04}
"""What an axle's rig moves, with its range unless another is asked for [m, rad]."""

_PITMAN = 0.5
_MOST = 6
_TRAVEL = 0.06
_MOVES = 1e-6
_STEP = 1e-3


def undriven(mech: Mechanism) -> Mechanism:
    """The mechanism without its drives where that makes it a corner with names of the zoo.

    A driven rack could not be held.
    """
    if not mech.structure.drives:
        return mech
    free = mech.replace(drives=dict.fromkeys(mech.drives))
    return free if _corner(free) is not None else mech


def usual_experiment(
    mech: Mechanism,
    over: str | None = None,
    limits: tuple[float, float] | None = None,
    observe: Sequence[str] | None = None,
    stops: Mapping[str, tuple[float, float]] | None = None,
    corner: Corner | Sequence[Corner] | None = None,
) -> Sweep:
    """The sweep that is shown unless another is asked for.

    Of a corner the wheel travel; of an axle parallel travel on its rig; of any other mechanism its
    first joint that can be moved, a full turn or its own length, with the coordinates of the other
    joints.

    Args:
        mech: the mechanism.
        over: the joint that is moved, or "travel"; of an axle one of `EVENTS`.
        limits: from where to where [rad or m]; by default as far as the loops close.
        observe: names of characteristics of the corner, or of joints, or points of bodies as
            ``body:point``.
        stops: joint to the range that its own stops leave it [rad or m], beyond which it is not
            moved unless `limits` says so.
        corner: the roles of a corner's parts, or of an axle's left and right wheel; by default
            those of a corner of the zoo with its names.

    Raises:
        ValueError: a name is unknown, or no joint can be moved.
    """
    if corner is not None and not isinstance(corner, Corner):
        if over in (None, "travel", *EVENTS):
            event = "heave" if over in (None, "travel") else str(over)
            return _axle_sweep(mech, corner, event, limits, observe)
        corner = None
    corner = (corner or _corner(mech)) if over in (None, "travel") else None
    if corner is None:
        return _joint_sweep(mech, over, limits, observe, stops or {})
    names = observe or [n for n in CURVES if n in available(corner)][:_MOST]
    low, high = limits or (-_TRAVEL, _TRAVEL)
    points = _points(mech, CHARACTERISTICS, names)
    sweep = kinematics_sweep(
        corner,
        travel=_places(low, high),
        observe=[n for n in names if n not in points],
        gradients=(),
    )
    sweep = replace(sweep, observe=dict(sweep.observe) | points)
    sweep.check(mech)
    if limits is not None:
        return sweep
    reached = _reached(mech, sweep)
    [key] = sweep.over
    return sweep if reached is None else replace(sweep, over={key: _places(*reached)})


def _axle_sweep(
    mech: Mechanism,
    corners: Sequence[Corner],
    event: str,
    limits: tuple[float, float] | None,
    observe: Sequence[str] | None,
) -> Sweep:
    """An event of an axle on its rig, as far as it is reached."""
    far = _PITMAN if event == "steer" and corners[0].turns(mech) else EVENTS[event]
    usual = AXLE_CURVES.get(event, AXLE_CURVES[""]).split()
    names = observe or [n for n in usual if n in axle_available((corners[0], corners[1]))]

    def sweep(ends: tuple[float, float]) -> AxleSweep:
        x = _places(*ends)
        moved: dict[str, Any] = {event: x}
        if event == "opposite":
            moved = {"left": x, "right": [-y for y in x]}
        return axle_sweep(corners, observe=names, **moved)

    found = sweep(limits or (-far, far))
    found.check(mech)
    if limits is not None:
        return found
    reached = _reached(mech, found)
    return found if reached is None else sweep(reached)


def held_text(mech: Mechanism, sweep: Sweep) -> str:
    """Which coordinates a sweep moves, which it holds, and what nothing holds."""
    if isinstance(sweep, AxleSweep):
        sweep, mech = sweep.on(mech)
    moved = parse_known(mech, dict.fromkeys(sweep.over, 0.0))[0]
    held = [held_name(mech, key) for key in sweep.keys(mech) if key not in moved]
    held += [f"what the drive {name!r} moves" for name in mech.drives]
    names = ", ".join(held_name(mech, key) for key in moved)
    count, loose = (0, []) if sweep.settle else unheld_joints(mech, sweep.keys(mech))
    free = f"; nothing holds {', '.join(map(repr, loose))}" if count else ""
    return f"moves {names}; holds {', '.join(held) or 'nothing else'}{free}"


def usual_motion(mech: Mechanism, time: float, observe: Sequence[str] | None = None) -> Motion:
    """A free motion from the drawn configuration, at rest, for a `time` [s].

    Observed are joints, or points of bodies as ``body:point``; by default the first joints.
    """
    every = {n: Coordinate(*x) for n, x in _coordinates(mech).items()}
    found = _observed(mech, every, observe or list(every)[:_MOST])
    return Motion(time, min(_STEP, 0.1 * time), found)


def _places(low: float, high: float) -> list[float]:
    """Places of the axis, zero among them where it lies between."""
    return np.linspace(low, high, POINTS).round(12).tolist()


def _corner(mech: Mechanism) -> Corner | None:
    try:
        return find_corner(mech)
    except ValueError:
        return None


def _coordinates(mech: Mechanism) -> dict[str, tuple[str, int]]:
    """Labels of the joint coordinates that are numbers, each with its joint and index."""
    names = [n for n in topology(mech).tree if mech.joint(n).scalar_coordinates]
    every = [(n, i) for n in names for i in range(mech.joint(n).nq)]
    return {n if mech.joint(n).nq == 1 else f"{n}[{i}]": (n, i) for n, i in every}


def _named(mech: Mechanism, known: Sequence[str], names: Sequence[str]) -> list[str]:
    problems = [t for n in names for t in unknown("joint coordinate", n, known)]
    if cut := [n for n in names if n in topology(mech).cut]:
        problems = [
            f"{', '.join(cut)}: cut, to open a loop, so without a coordinate that can be moved or "
            "shown; describe the mechanism with cut=(…), another joint of the loop"
        ]
    if problems:
        raise ValueError("; ".join(problems))
    return list(names)


def _points(mech: Mechanism, known: Iterable[str], names: Sequence[str]) -> dict[str, Any]:
    """Positions of those of some names that are points of bodies, ``body:point``."""
    found = {}
    for name in names:
        body, colon, point = name.partition(":")
        if colon and name not in known:
            if problems := unknown_point(mech, body, point):
                raise ValueError("; ".join(problems))
            found[name] = Position(body, point)
    return found


def _observed(mech: Mechanism, every: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Coordinates of joints by their labels, and positions of points."""
    points = _points(mech, every, names)
    joints = _named(mech, list(every), [n for n in names if n not in points])
    return {n: every[n] for n in joints} | points


def _joint_sweep(
    mech: Mechanism,
    over: str | None,
    limits: tuple[float, float] | None,
    observe: Sequence[str] | None,
    stops: Mapping[str, tuple[float, float]],
) -> Sweep:
    """A sweep of a joint, by default of the first that can be moved."""
    every = _coordinates(mech)
    for label in _named(mech, list(every), [over]) if over else every:
        joint, index = every[label]
        key: Any = joint if label == joint else (joint, index)
        others = {n: Coordinate(*x) for n, x in every.items() if n != label}
        effort = {f"effort of {label}": HoldingEffort(key)}
        far = _far(mech, joint, index)
        low, high = limits or stops.get(label, (-far, far))
        trial = Sweep({key: _places(low, high)}, others or effort)
        reached = None if trial.problems(mech) else _reached(mech, trial)
        if reached is None or reached[1] - reached[0] < _MOVES * far:
            if over:
                trial.check(mech)
                raise ValueError(
                    f"explore: joint {over!r} cannot be moved from {low:g} to {high:g}"
                )
            continue
        curves = trial.trajectory(mech).curves
        moved = [n for n, y in curves.items() if n in others and np.ptp(y[np.isfinite(y)]) > _MOVES]
        usual = {n: others[n] for n in moved[:_MOST]} or effort
        found = _observed(mech, others, observe) if observe else usual
        return Sweep({key: _places(*(limits or reached))}, found)
    raise ValueError(
        "explore: no joint of this mechanism can be moved; give experiment=, for example "
        "jaxmbd.observe.Motion(t1, dt, observe={…})"
    )


def _far(mech: Mechanism, joint: str, index: int) -> float:
    """Half a turn, or the mechanism's length."""
    top = topology(mech)
    place = top.layout[joint].v
    assert place is not None
    if top.speed_kinds[place.start + index] == "angle":
        return float(np.pi)
    return float(mechanism_length(mech))


def _reached(mech: Mechanism, sweep: Sweep) -> tuple[float, float] | None:
    """The range about zero in which the sweep closes; None if it does not even there."""
    course = sweep.trajectory(mech)
    x, good = course.x, np.all(np.isfinite(course.q), axis=1)
    low = high = int(np.argmin(np.abs(x)))
    if not good[low]:
        return None
    while low > 0 and good[low - 1]:
        low -= 1
    while high < len(x) - 1 and good[high + 1]:
        high += 1
    return float(x[low]), float(x[high])
