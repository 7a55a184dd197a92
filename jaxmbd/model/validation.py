"""Validation of a description: every problem, each with the part, the finding and the remedy.

Traced numbers cannot be checked and pass.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np

from jaxmbd.model.body import Body, settled
from jaxmbd.model.coupling import BaseCoupling
from jaxmbd.model.description import Description, drawn_in_space, is_planar, plane_problems
from jaxmbd.model.drive import Drive, PointDrive
from jaxmbd.model.forces import ForceElement
from jaxmbd.model.joints import Joint
from jaxmbd.model.joints.base import with_directions
from jaxmbd.model.numbers import GROUND, ComRef, PointRef, Toward, is_concrete
from jaxmbd.plumbing import warn_user


def _name_problems(given: Description) -> list[str]:
    """Names that are used twice."""
    joints, drives = given.joints, given.drives
    found = [
        f"{kind} '{name}' has the name of a {other}; give it one of its own, for example "
        f"'{name}_{kind}'"
        for kind, elements in (("drive", drives), ("coupling", given.couplings))
        for name in elements
        for other, names in (("joint", joints), ("drive", drives))
        if name in names and kind != other
    ]
    taken = {name: f"the point '{name}'" for name in given.points}
    pointed = (("joint", joints), ("force", given.forces), ("drive", drives))
    for kind, elements in (*pointed, ("coupling", given.couplings)):
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


def reached_bodies(edges: Iterable[Any], start: Iterable[str] = (GROUND,)) -> set[str]:
    """Bodies that some chain of joints connects to some others, by default to the ground."""
    edges, reached, grew = list(edges), set(start), True
    while grew:
        grew = False
        for joint in edges:
            if (joint.a in reached) != (joint.b in reached):
                reached |= {joint.a, joint.b}
                grew = True
    return reached


def _tree_joints(given: Description) -> dict[str, Joint]:
    return {n: j for n, j in given.joints.items() if isinstance(j, Joint) and j.can_be_in_tree}


def _connection_problems(given: Description) -> list[str]:
    """Bodies that no chain of joints connects to the ground."""
    reached = reached_bodies(_tree_joints(given).values())
    return [
        f"body '{name}' is not connected to the ground (rods do not count); add a joint, for "
        f"example Free('ground', '{name}')"
        for name in given.bodies
        if name not in reached
    ]


def _cut_problems(given: Description) -> list[str]:
    """Problems of `cut`: unknown joints, remaining loops, bodies cut off from the ground."""
    joints, cut, found = given.joints, given.cut, []
    if cut is None:
        return []
    for name in cut:
        if name not in joints:
            found.append(f"cut= names the joint '{name}', which does not exist: {list(joints)}")
        elif not joints[name].can_be_cut:
            kind = type(joints[name]).__name__
            found.append(f"cut= names '{name}', but a {kind} joint cannot be cut")
    tree = _tree_joints(given)
    whole = reached_bodies(tree.values())
    tree = {n: j for n, j in tree.items() if n not in cut}
    reached = reached_bodies(tree.values())
    off = [b for b in given.bodies if b in whole and b not in reached]
    if off:
        found.append(f"cut={list(cut)} cuts the bodies {off} off from the ground; cut fewer joints")
    elif len(tree) > len(reached) - 1:
        found.append(
            f"cut={list(cut)} leaves loops among the joints {list(tree)}; cut one joint in each "
            "loop"
        )
    return found


def _coordinate_problems(
    what: str, joint: Any, index: Any, joints: dict[str, Any], acts: str = "acts on"
) -> list[str]:
    """Problems of a joint name and coordinate index: unknown joint, or no such coordinate."""
    if joint not in joints:
        return [f"{what} names the joint '{joint}', which does not exist: {list(joints)}"]
    kind = joints[joint]
    if not isinstance(kind, Joint):
        return []
    if not kind.can_be_in_tree:
        return [
            f"{what} {acts} '{joint}', but a {type(kind).__name__} is a constraint and has no "
            "coordinates"
        ]
    if not kind.scalar_coordinates:
        return [
            f"{what} {acts} one coordinate of '{joint}', whose q is set as a whole: "
            f"{kind.coordinates_text}"
        ]
    if not isinstance(index, int) or not 0 <= index < kind.nv:
        return [f"{what}: index {index} is outside the {kind.nv} coordinates of '{joint}'"]
    return []


def _drive_problems(name: str, drive: Any, given: Description) -> list[str]:
    """Problems of a drive: wrong type, unknown body or joint, no function."""
    what = f"drive '{name}'"
    if not isinstance(drive, (Drive, PointDrive)):
        where = " (points are given in points=)" if isinstance(drive, (tuple, list)) else ""
        return [f"{what} is a {type(drive).__name__}; give a Drive or a PointDrive{where}"]
    found = []
    if not callable(drive.function):
        found.append(f"{what}: function is {drive.function!r}; give a function of (t, params)")
    elif not _takes(drive.function, 2):
        found.append(f"{what}: function does not take (t, params); give lambda t, params: …")
    if isinstance(drive, Drive):
        return found + _coordinate_problems(what, drive.joint, drive.index, given.joints)
    if drive.body not in given.bodies:
        found.append(
            f"{what} names the body '{drive.body}', which does not exist or does not move; known: "
            f"{list(given.bodies)}"
        )
    if drive.axis not in ("x", "y", "z"):
        found.append(f"{what}: axis is {drive.axis!r}; give 'x', 'y' or 'z'")
    return found + _point_problems(f"{what}: at", drive.at, given)


def _takes(function: Any, count: int) -> bool:
    """Whether a function may be called with so many arguments, as far as one can tell."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin that does not say
        return True
    return True


def _coupling_problems(name: str, coupling: Any, given: Description) -> list[str]:
    """Problems of a coupling: wrong type, coordinates that do not exist, or its own."""
    what, joints = f"coupling '{name}'", given.joints
    if not isinstance(coupling, BaseCoupling):
        return [
            f"{what} is a {type(coupling).__name__}; give a Gear, a GearMesh, a RackAndPinion or "
            "a Coupling"
        ]
    found, terms = [], coupling.terms
    for joint, index in terms:
        found += _coordinate_problems(what, joint, index, joints, "couples")
    if len(set(terms)) < len(terms) or not terms:
        found.append(f"{what} couples {list(terms)}; name each coordinate once, and at least one")
    for field in coupling.units:
        if getattr(coupling, field) is not None:
            found += _number_problems(f"{what}: {field}", getattr(coupling, field), ((),))
    for field, ref in coupling.points.items():
        found += _point_problems(f"{what}: {field}", ref, given)
    return found or _own_problems(what, coupling, [joint for joint, _ in terms], given)


def _own_problems(what: str, element: Any, names: Iterable[str], given: Description) -> list[str]:
    """What a coupling or a force element says of itself and of the joints that it is on."""

    def drawn(ref: Any) -> Any:
        if isinstance(ref, ComRef):
            return drawn(given.bodies[ref.body].com)
        return given.points[ref.name] if isinstance(ref, PointRef) else ref

    found = element.problems(given.joints)
    if not found and not any(_joint_problems("", given.joints[n], given) for n in names):
        joints = {n: with_directions(given.joints[n], lambda x: given.points[x]) for n in names}
        points = [drawn(ref) for x in (element, *joints.values()) for ref in x.points.values()]
        if all(map(is_concrete, jax.tree_util.tree_leaves((element, joints, points)))):
            found = element.problems_as_drawn(joints, drawn)
    return [f"{what}: {problem}" for problem in found]


def check_dictionaries(**parts: Any) -> None:
    """Check that all parts of a description are named.

    Raises:
        ValueError: something is no dictionary, or a name is no text.
    """
    for kind, elements in parts.items():
        if elements is not None and not isinstance(elements, Mapping):
            raise ValueError(
                f"{kind}= is a {type(elements).__name__}; give a dictionary, {{'a name': …}}"
            )
        if wrong := [name for name in elements or {} if not isinstance(name, str)]:
            raise ValueError(f"{kind}= has the name {wrong[0]!r}; names are texts")


def validate(given: Description) -> None:
    """Check a whole description.

    Raises:
        ValueError: with all problems in one message.
    """
    if found := description_problems(given):
        raise ValueError(problems_text("this mechanism has", found))


def description_problems(given: Description) -> list[str]:
    """All problems of a description."""
    found: list[str] = []
    if is_planar(given):
        found += plane_problems(given)
        given = drawn_in_space(given)
    if GROUND in given.bodies:
        found.append(
            "body 'ground' is the fixed body and is always there; give this one another name"
        )
    for name, body in given.bodies.items():
        found += _body_problems(name, body, given)
    for name, x in given.points.items():
        found += _vector_problems(f"point '{name}'", x)
    for name, joint in given.joints.items():
        found += _joint_problems(f"joint '{name}'", joint, given)
    for name, element in given.forces.items():
        found += _force_problems(f"force '{name}'", element, given)
    for name, drive in given.drives.items():
        found += _drive_problems(name, drive, given)
    for name, coupling in given.couplings.items():
        found += _coupling_problems(name, coupling, given)
    found += _vector_problems("gravity", given.gravity)
    return found + _name_problems(given) + _connection_problems(given) + _cut_problems(given)


def problems_text(head: str, found: list[str]) -> str:
    """All problems in one message."""
    count = "one problem" if len(found) == 1 else f"{len(found)} problems"
    return f"{head} {count}:\n" + "\n".join(f"  - {p}" for p in found)


def _vector_problems(what: str, x: Any) -> list[str]:
    shape = getattr(x, "shape", None)
    if shape != (3,):
        return [f"{what} {f'is {x!r}' if shape is None else f'has shape {shape}'}; give 3 numbers"]
    if is_concrete(x) and not np.all(np.isfinite(np.asarray(x))):
        return [f"{what} is {np.asarray(x).tolist()}; its coordinates must be finite"]
    return []


def _body_problems(name: str, body: Any, given: Description) -> list[str]:
    what, found = f"body '{name}'", []
    if not isinstance(body, Body):
        return [f"{what} is a {type(body).__name__}; give a Body"]
    if not isinstance(body.com, ComRef):
        found += _point_problems(f"{what}: com", body.com, given)
    for ref in body.markers or ():
        found += _point_problems(f"{what}: markers", ref, given)
    if getattr(body.mass, "shape", None) != ():
        found.append(f"{what}: mass must be one number [kg]")
    elif is_concrete(body.mass) and not (body.mass >= 0.0 and np.isfinite(body.mass)):
        found.append(
            f"{what}: mass is {float(body.mass):g} kg; it must be finite and at least zero"
        )
    inertia = settled(body, planar=False).inertia
    if getattr(inertia, "shape", None) != (3, 3):
        found.append(f"{what}: inertia must be (3, 3), or (3,) for a diagonal [kg m²]")
    elif is_concrete(inertia):
        found += _inertia_problems(what, np.asarray(inertia, float))
    return found


def _inertia_problems(what: str, inertia: np.ndarray) -> list[str]:
    if not np.all(np.isfinite(inertia)):
        return [f"{what}: inertia is not finite"]
    size = np.abs(inertia).max()
    if np.abs(inertia - inertia.T).max() > 1e-6 * size:
        return [f"{what}: inertia is not symmetric; give products of inertia on both sides"]
    eigenvalues = np.linalg.eigvalsh(inertia)
    if eigenvalues[0] < -1e-6 * size:
        return [
            f"{what}: inertia has the negative eigenvalue {eigenvalues[0]:.3g} kg m²; it must be "
            "positive semidefinite (is it about the COM, in global axes as drawn?)"
        ]
    if eigenvalues[2] > (eigenvalues[0] + eigenvalues[1]) * (1 + 1e-6):
        warn_user(
            f"{what}: principal inertias {eigenvalues} break the triangle inequality "
            "(no rigid body has them); they are used as given",
        )
    return []


def _point_problems(what: str, ref: Any, given: Description) -> list[str]:
    if isinstance(ref, PointRef):
        if ref.name in given.points:
            return []
        known = sorted(given.points)
        return [f"{what} names the point '{ref.name}', which is not in points={known}"]
    if isinstance(ref, ComRef):
        if ref.body in given.bodies:
            return []
        return [f"{what} is the COM of '{ref.body}', which is no body; known: {[*given.bodies]}"]
    return _vector_problems(what, ref)


def _unknown_bodies(what: str, names: tuple[str, ...], bodies: dict[str, Any]) -> list[str]:
    return [
        f"{what} names the body '{n}', which does not exist; known: {[GROUND, *bodies]}"
        for n in names
        if n not in bodies and n != GROUND
    ]


def _joint_problems(what: str, joint: Any, given: Description) -> list[str]:
    if not isinstance(joint, Joint):
        return [f"{what} is a {type(joint).__name__}; give one of jaxmbd's joint types"]
    found = _unknown_bodies(what, (joint.a, joint.b), given.bodies)
    if joint.a == joint.b:
        found.append(f"{what} connects '{joint.a}' to itself; name two bodies")
    found += [f"{what}: {field} is missing" for field in joint.missing()]
    for field, ref in joint.points.items():
        found += _point_problems(f"{what}: {field}", ref, given)
    for field in joint.numbers:
        if getattr(joint, field) is not None:
            found += _number_problems(f"{what}: {field}", getattr(joint, field), ((),))
    for field in joint.directions:
        axis = getattr(joint, field)
        if axis is None:
            continue
        if isinstance(axis, Toward):
            found += _toward_problems(f"{what}: {field}", axis, given.points)
            continue
        problems = _vector_problems(f"{what}: {field}", axis)
        if isinstance(axis, str):
            problems = [f"{problems[0]}, as (0, 1, 0), or the names of two points"]
        if not problems and is_concrete(axis) and not np.any(np.asarray(axis)):
            problems = [f"{what}: {field} is zero; give its direction as a nonzero vector"]
        found += problems
    if not found:
        found += [f"{what}: {problem}" for problem in joint.problems(given.points)]
    return found


def _toward_problems(what: str, axis: Toward, points: dict[str, Any]) -> list[str]:
    missing = [n for n in (axis.start, axis.end) if n not in points]
    if missing:
        return [f"{what} names the points {missing}, which are not in points={sorted(points)}"]
    ends = [points[axis.start], points[axis.end]]
    if all(is_concrete(x) for x in ends) and np.array_equal(ends[0], ends[1]):
        return [f"{what} is zero: the points '{axis.start}' and '{axis.end}' coincide"]
    return []


def _number_problems(what: str, x: Any, shapes: tuple[tuple[int, ...], ...]) -> list[str]:
    shape = getattr(x, "shape", None)
    if shape not in shapes:
        wanted = " or ".join(
            "one number" if s == () else f"{'×'.join(map(str, s))} numbers" for s in shapes
        )
        found = repr(x) if shape is None else f"of shape {shape}"
        return [f"{what} is {found}; give {wanted}"]
    if is_concrete(x) and not np.all(np.isfinite(np.asarray(x))):
        return [f"{what} is {np.asarray(x).tolist()}; it must be finite"]
    return []


def _force_problems(what: str, element: Any, given: Description) -> list[str]:
    if not isinstance(element, ForceElement):
        return [f"{what} is a {type(element).__name__}; give one of jaxmbd's force elements"]
    joints, found = given.joints, []
    if element.replaced_joint is not None:
        found += _joint_problems(f"{what}: replaced", element.replaced_joint, given)
    else:
        found += _unknown_bodies(what, element.bodies, given.bodies)
        for field, ref in element.points.items():
            found += _point_problems(f"{what}: {field}", ref, given)
    for joint in element.joints:
        if joint not in joints:
            found.append(f"{what} names the joint '{joint}', which does not exist: {list(joints)}")
        elif hasattr(element, "index") or not joints[joint].can_be_in_tree:
            index = getattr(element, "index", 0)
            found += _coordinate_problems(what, joint, index, joints)
    for field, shapes in element.shapes(joints).items():
        if getattr(element, field) is not None:
            found += _number_problems(f"{what}: {field}", getattr(element, field), shapes)
    return found or _own_problems(what, element, element.joints, given)
