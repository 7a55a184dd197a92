"""Validation of parts that act on coordinates: drives, couplings, efforts on one coordinate."""

from __future__ import annotations

from typing import Any

from jaxmbd.model.coupling import BaseCoupling
from jaxmbd.model.drive import Drive, PointDrive
from jaxmbd.model.joints import Joint


def coordinate_problems(
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


def drive_problems(
    name: str, drive: Any, bodies: dict[str, Any], joints: dict[str, Any]
) -> list[str]:
    """Problems of a drive: wrong type, unknown body or joint, no function."""
    what = f"drive '{name}'"
    if not isinstance(drive, (Drive, PointDrive)):
        return [f"{what} is a {type(drive).__name__}; give a Drive or a PointDrive"]
    found = []
    if not callable(drive.function):
        found.append(f"{what}: function is {drive.function!r}; give a function of (t, params)")
    if isinstance(drive, Drive):
        return found + coordinate_problems(what, drive.joint, drive.index, joints)
    if drive.body not in bodies:
        found.append(
            f"{what} names the body '{drive.body}', which does not exist or does not move; known: "
            f"{list(bodies)}"
        )
    if drive.axis not in ("x", "y", "z"):
        found.append(f"{what}: axis is {drive.axis!r}; give 'x', 'y' or 'z'")
    return found


def coupling_problems(name: str, coupling: Any, joints: dict[str, Any]) -> list[str]:
    """Problems of a coupling: wrong type, or coordinates that do not exist."""
    what = f"coupling '{name}'"
    if not isinstance(coupling, BaseCoupling):
        return [
            f"{what} is a {type(coupling).__name__}; give a Gear, a RackAndPinion or a Coupling"
        ]
    found, terms = [], coupling.terms
    for joint, index in terms:
        found += coordinate_problems(what, joint, index, joints, "couples")
    if len(set(terms)) < len(terms) or not terms:
        found.append(f"{what} couples {list(terms)}; name each coordinate once, and at least one")
    return found
