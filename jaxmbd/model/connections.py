"""Validation of names, of the connection of bodies to the ground, and of cuts."""

from __future__ import annotations

from typing import Any

from jaxmbd.model.joints import Joint
from jaxmbd.model.numbers import GROUND, ComRef, PointRef


def name_problems(
    joints: dict[str, Any],
    forces: dict[str, Any],
    drives: dict[str, Any],
    points: dict[str, Any],
    couplings: dict[str, Any],
) -> list[str]:
    """Names that are used twice."""
    found = [
        f"{kind} '{name}' has the name of a {other}; give it one of its own, for example "
        f"'{name}_{kind}'"
        for kind, elements in (("drive", drives), ("coupling", couplings))
        for name in elements
        for other, names in (("joint", joints), ("drive", drives))
        if name in names and kind != other
    ]
    taken = {name: f"the point '{name}'" for name in points}
    for kind, elements in (("joint", joints), ("force", forces), ("drive", drives)):
        for name, element in elements.items():
            for field, value in getattr(element, "points", {}).items():
                key = f"{name}.{field}"
                if isinstance(value, (PointRef, ComRef)):
                    continue
                if key in taken:
                    found.append(
                        f"{kind} '{name}': its {field} would become the point '{key}', which "
                        f"{taken[key]} already is; rename one of them"
                    )
                taken[key] = f"that of {kind} '{name}'"
    return found


def reached_bodies(edges: list[Any]) -> set[str]:
    """Bodies that some chain of joints connects to the ground."""
    reached, grew = {GROUND}, True
    while grew:
        grew = False
        for joint in edges:
            if (joint.a in reached) != (joint.b in reached):
                reached |= {joint.a, joint.b}
                grew = True
    return reached


def connection_problems(bodies: dict[str, Any], joints: dict[str, Any]) -> list[str]:
    """Bodies that no chain of joints connects to the ground."""
    reached = reached_bodies(
        [j for j in joints.values() if isinstance(j, Joint) and j.can_be_in_tree]
    )
    return [
        f"body '{name}' is not connected to the ground (rods do not count); add a joint, for "
        f"example Free('ground', '{name}')"
        for name in bodies
        if name not in reached
    ]


def cut_problems(
    bodies: dict[str, Any], joints: dict[str, Any], cut: tuple[str, ...] | None
) -> list[str]:
    """Problems of `cut`: unknown joints, remaining loops, bodies cut off from the ground."""
    if cut is None:
        return []
    found = []
    for name in cut:
        if name not in joints:
            found.append(f"cut= names the joint '{name}', which does not exist: {list(joints)}")
        elif not joints[name].can_be_cut:
            kind = type(joints[name]).__name__
            found.append(f"cut= names '{name}', but a {kind} joint cannot be cut")
    tree = {n: j for n, j in joints.items() if isinstance(j, Joint) and j.can_be_in_tree}
    whole = reached_bodies(list(tree.values()))
    tree = {n: j for n, j in tree.items() if n not in cut}
    reached = reached_bodies(list(tree.values()))
    off = [b for b in bodies if b in whole and b not in reached]
    if off:
        found.append(f"cut={list(cut)} cuts the bodies {off} off from the ground; cut fewer joints")
    elif len(tree) > len(reached) - 1:
        found.append(
            f"cut={list(cut)} leaves loops among the joints {list(tree)}; cut one joint in each "
            "loop"
        )
    return found
