"""`mirror`: the mirror image of a mechanism, the right side of a car from its left one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxmbd.model.body import Body
from jaxmbd.model.drive import PointDrive
from jaxmbd.model.forces.base import RubbingElement
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import ComRef, PointRef
from jaxmbd.model.parts import CheckedPoints
from jaxmbd.model.reflection import Reflection


def mirror(mech: Mechanism, plane: str = "y") -> Mechanism:
    """The mirror image of a mechanism in a plane through the origin; all names stay.

    Points, centres of mass and forces are mirrored as vectors; axes of rotation are reversed
    besides, so that a joint's image has the same coordinates: the image of a motion has the same
    angles and travels, and springs, stops, drives and couplings of coordinates stay as they are.
    Exceptions are ball and free joints, whose quaternions are mirrored, and the angle of a
    cylindrical joint, which is the opposite; nothing may act on those.

    Args:
        mech: the mechanism, drawn in space; its numbers may be traced.
        plane: the axis normal to the plane: "x", "y" or "z".

    Raises:
        ValueError: it is planar, or has a part whose image is not known (a law that gives a
            vector, a curve, a drive of a coordinate that is reversed), which is named.

    Example:
        >>> import jaxmbd as mbd
        >>> right = mbd.mirror(mbd.zoo.double_wishbone())
        >>> right.points["wheel_centre"].tolist()
        [-0.04, -1.1, -0.026]
    """
    if plane not in ("x", "y", "z"):
        raise ValueError(f"plane={plane!r}; give the axis normal to it: 'x', 'y' or 'z'")
    s = mech.structure
    if s.planar:
        raise ValueError("this mechanism is planar; mirror in_space(mech)")
    reflection = Reflection("xyz".index(plane))
    if found := _problems(mech, plane):
        raise ValueError("it has no mirror image:\n" + "\n".join(f"  - {p}" for p in found))
    return Mechanism(
        bodies={n: _body(mech.bodies[n], reflection) for n in s.bodies},
        joints={
            e.name: _image(f"joint '{e.name}'", mech.joints[e.name], reflection) for e in s.joints
        },
        forces={n: _image(f"force '{n}'", mech.forces[n], reflection) for n in s.forces},
        drives={n: mech.drives[n] for n, _, _ in s.drives},
        points=CheckedPoints({n: reflection.polar(mech.points[n]) for n in s.points}, image=True),
        gravity=reflection.polar(mech.gravity),
        cut=s.cut,
        couplings={n: mech.couplings[n] for n, _ in s.couplings},
    )


def _body(body: Body, reflection: Reflection) -> Body:
    com = body.com
    com = com if isinstance(com, (PointRef, ComRef)) else reflection.polar(com)
    return Body(body.mass, com, reflection.tensor(body.inertia))


def _image(what: str, element: Any, reflection: Reflection) -> Any:
    image: Callable[[Reflection], Any] = element.mirror_image
    try:
        return image(reflection)
    except ValueError as error:
        raise ValueError(f"{what} has no mirror image: {error}") from None


def _problems(mech: Mechanism, plane: str) -> list[str]:
    """Elements that act on coordinates which the mirror reverses."""
    s = mech.structure
    acts: list[tuple[str, str, int | None]] = []
    for name in s.forces:
        force = mech.forces[name]
        index = getattr(force, "index", None)
        if not isinstance(force, RubbingElement):
            terms = getattr(force, "coordinates", [(joint, index) for joint in force.joints])
            acts += [(f"force '{name}'", joint, i) for joint, i in terms]
    acts += [(f"drive '{n}'", joint, i) for n, joint, i in s.drives if joint is not None]
    acts += [(f"coupling '{n}'", joint, i) for n, terms in s.couplings for joint, i in terms]
    found = []
    for what, name, index in acts:
        joint = mech.joints[name]
        reverse = joint.reversed_in_mirror if joint.scalar_coordinates else range(joint.nq)
        if (reverse and index is None) or index in reverse:
            found.append(
                f"{what} acts on a coordinate of '{name}', a {type(joint).__name__}, which the "
                "mirror reverses; take it out and add one of its own to the image"
            )
    for name, drive in mech.drives.items():
        if isinstance(drive, PointDrive) and drive.axis == plane:
            found.append(f"drive '{name}' is along {plane}, normal to the plane; take it out")
    return found
