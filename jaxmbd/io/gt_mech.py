"""Mechanisms in the reference format gt-mech-1.

World coordinates at t = 0; a body's inertia is about its centre of mass in body axes, which ``R0``
rotates to the world axes. See `read_gt_mech`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmbd.io.files import check_depth, read_json
from jaxmbd.model import (
    GROUND,
    Body,
    Cylindrical,
    Fixed,
    Free,
    Joint,
    Mechanism,
    ParallelAxes,
    PerpendicularAxes,
    Planar,
    PointForce,
    PointOnLine,
    Prismatic,
    Revolute,
    Rod,
    SignedSquare,
    Spherical,
    SpringDamper,
    Torque,
    Universal,
    reached_bodies,
)

Source = dict[str, Any] | str | os.PathLike[str]
_TEXTS = ("name", "type", "A", "B")


class UnsupportedConstraint(ValueError):
    """The file has a joint of an unsupported type, named in the text.

    Example:
        >>> from jaxmbd.io import UnsupportedConstraint
        >>> issubclass(UnsupportedConstraint, ValueError)
        True
    """


def read_gt_mech(source: Source) -> Mechanism:
    """The mechanism of a gt-mech-1 file.

    Joint types: spherical, revolute, universal, prismatic, cylindrical, fixed, planar, distance
    (a `Rod`), pointline (`PointOnLine`), parallel (`ParallelAxes`) and perp (`PerpendicularAxes`).
    A body connected by constraint rows only, or not at all, gets a `Free` joint ``free_<body>``.
    Springs become `SpringDamper`, forces `PointForce`, torques `Torque`.

    Args:
        source: path of the file, or its content; with or without the outer level.

    Raises:
        UnsupportedConstraint: lists all joints of other types.
        ValueError: lists all other problems of the description.

    Example:
        >>> from jaxmbd.io import read_gt_mech
        >>> described = {
        ...     "bodies": [{"name": "bob", "mass": 1, "com0": [1, 0, 0], "inertia": [0, 1, 1]}],
        ...     "joints": [{"type": "spherical", "A": "ground", "B": "bob", "point": [0, 0, 0]}],
        ... }
        >>> read_gt_mech(described).structure.bodies
        ('bob',)
    """
    data = _mechanism(source)
    bodies = {b["name"]: _built("body", b, lambda b=b: _body(b)) for b in _named(data, "bodies")}
    joints = _joints(data)
    for body in _loose(bodies, joints):
        joints[_new_name(f"free_{body}", joints)] = Free(GROUND, body)
    return Mechanism(
        bodies=bodies,
        joints=joints,
        forces=_forces(data),
        gravity=_built(
            "gravity", None, lambda: np.asarray(data.get("gravity", (0.0, 0.0, 0.0)), float)
        ),
    )


def gt_velocities(source: Source) -> dict[str, np.ndarray]:
    """Body name to its velocity at t = 0, (6,) ``[ω; v of the COM]``, world axes.

    Example:
        >>> from jaxmbd.io import gt_velocities
        >>> gt_velocities({"bodies": [{"name": "bob", "w0": [0, 2, 0]}], "joints": []})
        {'bob': array([0., 2., 0., 0., 0., 0.])}
    """

    def velocity(b: _Entry) -> np.ndarray:
        parts = [np.asarray(b.get(k, np.zeros(3)), float) for k in ("w0", "v0")]
        if any(x.shape != (3,) for x in parts):
            raise ValueError("w0 and v0 must have three components each")
        return np.concatenate(parts)

    entries = _named(_mechanism(source), "bodies")
    return {b["name"]: _built("body", b, lambda b=b: velocity(b)) for b in entries}


def _mechanism(source: Source) -> dict[str, Any]:
    where = "this data"
    if not isinstance(source, dict):
        where = str(source)
        source = read_json(source)
    data = source.get("mechanism", source) if isinstance(source, dict) else {}
    data = data if isinstance(data, dict) else {}
    check_depth(data, where)
    missing = [key for key in ("bodies", "joints") if key not in data]
    if missing:
        raise ValueError(
            f"{where} is no gt-mech-1 mechanism: it has no {' and no '.join(map(repr, missing))}"
        )
    return data


class _Entry(dict[str, Any]):
    """A body, joint, spring, … of the file; a missing field is an error that names it."""

    def __missing__(self, key: str) -> Any:
        raise ValueError(f"'{self['name']}' has no {key!r}, only {sorted(self.keys())}")


def _built(kind: str, entry: _Entry | None, build: Callable[[], Any]) -> Any:
    """What `build` gives; its errors name the entry."""
    try:
        return build()
    except (TypeError, ValueError, OverflowError) as error:
        name = "" if entry is None else f" {entry['name']!r}"
        raise ValueError(f"{kind}{name}: {error}") from None


def _named(data: dict[str, Any], key: str) -> list[_Entry]:
    """The entries of one list, which must have different names."""
    listed = data.get(key) or []
    if not (isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed)):
        raise ValueError(f"{key} is not a list of objects, one for each")
    for i, entry in enumerate(listed):
        for field in _TEXTS:
            if not isinstance(entry.get(field, ""), str | None):
                raise ValueError(f"{key}[{i}]: {field!r} is {entry[field]!r}; give a text")
    one = {"bodies": "body"}.get(key, key.removesuffix("s"))
    entries = [
        _Entry(entry, name=entry.get("name") or f"{one}_{i}") for i, entry in enumerate(listed)
    ]
    names = [entry["name"] for entry in entries]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ValueError(f"{key}: the names {twice} are given twice; rename one of each")
    return entries


def _new_name(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _body(data: dict[str, Any]) -> Body:
    turn = np.asarray(data.get("R0", np.eye(3)), float)
    inertia = np.asarray(data["inertia"], float)
    if inertia.ndim == 1:
        inertia = np.diag(inertia)
    turned = turn @ inertia @ turn.T
    return Body(mass=data["mass"], com=data["com0"], inertia=0.5 * (turned + turned.T))


def _joints(data: dict[str, Any]) -> dict[str, Joint]:
    joints, unknown = {}, []
    for entry in _named(data, "joints"):
        build = JOINTS.get(entry["type"])
        if build is None:
            unknown.append(f"joint '{entry['name']}' is of type {entry['type']!r}")
            continue
        joints[entry["name"]] = _built(
            "joint", entry, lambda make=build, j=entry: make(j["A"], j["B"], j)
        )
    if unknown:
        raise UnsupportedConstraint(
            f"{'; '.join(unknown)}: jaxmbd does not build these; known types: {sorted(JOINTS)}"
        )
    return joints


JOINTS = {
    "spherical": lambda a, b, j: Spherical(a, b, j["point"]),
    "revolute": lambda a, b, j: Revolute(a, b, j["point"], j["axis"]),
    "universal": lambda a, b, j: Universal(a, b, j["point"], j["axis"], j["axis2"]),
    "prismatic": lambda a, b, j: Prismatic(a, b, j["point"], j["axis"]),
    "cylindrical": lambda a, b, j: Cylindrical(a, b, j["point"], j["axis"]),
    "fixed": lambda a, b, j: Fixed(a, b, j["point"]),
    "distance": lambda a, b, j: Rod(a, b, j["pA"], j["pB"], length=j.get("length")),
    "planar": lambda a, b, j: Planar(a, b, j["point"], j["axis"]),
    "pointline": lambda a, b, j: PointOnLine(a, b, j["point"], j["axis"]),
    "parallel": lambda a, b, j: ParallelAxes(a, b, j["axis"], axis_b=j.get("axis2")),
    "perp": lambda a, b, j: PerpendicularAxes(a, b, j["axis"], j["axis2"]),
}


def _loose(bodies: dict[str, Body], joints: dict[str, Joint]) -> list[str]:
    """One body of each group that only constraint rows, if any, connect to the ground."""
    edges = [j for j in joints.values() if j.can_be_in_tree]
    reached, loose = reached_bodies(edges), []
    for body in bodies:
        if body not in reached:
            loose.append(body)
            reached = reached_bodies(edges, {*reached, body})
    return loose


def _forces(data: dict[str, Any]) -> dict[str, Any]:
    forces: dict[str, Any] = {}
    for s in _named(data, "springs"):
        forces[s["name"]] = _built("spring", s, lambda s=s: _spring(s))
    for f in _named(data, "forces"):
        forces[_new_name(f["name"], forces)] = _built(
            "force", f, lambda f=f: PointForce(f["B"], f["point"], f["F"])
        )
    for t in _named(data, "torques"):
        forces[_new_name(t["name"], forces)] = _built(
            "torque", t, lambda t=t: Torque(t.get("A", GROUND), t["B"], t["T"])
        )
    return forces


def _spring(s: _Entry) -> SpringDamper:
    square = s.get("k2abs", 0.0)
    return SpringDamper(
        s["A"],
        s["B"],
        s["pA"],
        s["pB"],
        stiffness=s.get("k", 0.0),
        damping=s.get("c", 0.0),
        free_length=s.get("L0"),
        preload=s.get("f0", 0.0),
        law=SignedSquare(square) if square else None,
    )
