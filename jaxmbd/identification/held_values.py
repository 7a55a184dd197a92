"""Numbers that an experiment holds, as its initial state, which may be unknown too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jaxmbd.analysis.known import PointCoordinate, PointTravel
from jaxmbd.model.forces.measure import coordinate_units
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.observe import Motion, Pose, Sweep
from jaxmbd.variables import Variable

_TEXTS = {
    "start": ("where {} starts", 0),
    "speeds": ("speed of {} at the start", 1),
    "inputs": ("effort on {}", 2),
    "known": ("where {} is held", 0),
}
"""Path's first part to text and index into the units of a coordinate, its speed and its effort."""


def held_values(experiment: Any, mech: Mechanism) -> dict[str, Variable]:
    """The single numbers that an experiment holds, by path.

    Of a `Motion` these are ``start/JOINT``, ``speeds/JOINT`` and ``inputs/JOINT``, of a `Pose` or
    `Sweep` ``known/JOINT``; ``JOINT/i`` where one coordinate of a joint is held, and
    ``BODY/POINT/z`` for a `PointCoordinate`, ``BODY/POINT/dz`` for a `PointTravel`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.identification.held_values import held_values
        >>> from jaxmbd.observe import Coordinate, Motion, Pose
        >>> start = Pose({"hinge": 0.2})
        >>> swing = Motion(1.0, 1e-3, {"angle": Coordinate("hinge")}, start, {"hinge": 0.0})
        >>> {p: x.unit for p, x in held_values(swing, mbd.zoo.simple_pendulum()).items()}
        {'start/hinge': 'rad', 'speeds/hinge': 'rad/s'}
    """
    found = {}
    for kind, held in _held(experiment).items():
        text, which = _TEXTS[kind]
        for key, value in held.items():
            if not isinstance(value, tuple):
                path = f"{kind}/{_name(key)}"
                found[path] = Variable(path, value, _units(mech, key)[which], text.format(key))
    return found


def with_held(experiment: Any, values: Mapping[str, Any]) -> Any:
    """The experiment with some of these numbers replaced, which may be traced."""
    new = {
        kind: {key: values.get(f"{kind}/{_name(key)}", x) for key, x in held.items()}
        for kind, held in _held(experiment).items()
    }
    if not isinstance(experiment, Motion):
        return replace(experiment, known=new["known"]) if new else experiment
    inputs = new.get("inputs", experiment.inputs)
    start = replace(experiment.start, known=new["start"])
    return replace(experiment, start=start, speeds=new["speeds"], inputs=inputs)


def _held(experiment: Any) -> dict[str, Mapping[Any, Any]]:
    if isinstance(experiment, Motion):
        found = {"start": experiment.start.known, "speeds": experiment.speeds}
        if isinstance(experiment.inputs, Mapping):
            found["inputs"] = experiment.inputs
        return found
    return {"known": experiment.known} if isinstance(experiment, (Pose, Sweep)) else {}


def _name(key: Any) -> str:
    if isinstance(key, PointTravel):
        return f"{key.body}/{key.point}/d{key.axis}"
    return key if isinstance(key, str) else "/".join(map(str, key))


def _units(mech: Mechanism, key: Any) -> tuple[str, str, str]:
    if isinstance(key, (PointCoordinate, PointTravel)):
        return "m", "m/s", "N"
    joint, index = key if isinstance(key, tuple) else (key, 0)
    return coordinate_units({joint: mech.joint(joint)}, joint, index)
