"""Mechanisms made from a whole other one: drawn in space, mirrored, with a joint softened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import jax.numpy as jnp

from jaxmbd.model.body import Body
from jaxmbd.model.description import drawn_in_space
from jaxmbd.model.drive import PointDrive
from jaxmbd.model.forces import ForceElement, SoftJoint, SpringDamper
from jaxmbd.model.forces.base import RubbingElement
from jaxmbd.model.joints import Free, Joint
from jaxmbd.model.mechanism import Mechanism, declared
from jaxmbd.model.numbers import ComRef, PointRef, Reflection, changed, number
from jaxmbd.model.points import CheckedPoints
from jaxmbd.model.validation import reached_bodies
from jaxmbd.plumbing import refuse

Model = Literal["directional", "single", "three"]


def in_space(mech: Mechanism) -> Mechanism:
    """The same mechanism drawn in space: points with z = 0, axes along z.

    It moves like the planar one, with the same q and v. Its cut joints have the rows of spatial
    joints, of which those out of the plane are redundant (`mobility` names them); a `Free` joint
    becomes a `Planar` one. The inertia about z is used about all axes: those about x and y have no
    effect.

    Args:
        mech: the mechanism; a spatial one is returned unchanged.

    Example:
        >>> import jaxmbd as mbd
        >>> flat = mbd.Mechanism(
        ...     bodies={"arm": mbd.Body(2.0, com=(0.5, 0.0), inertia=0.1)},
        ...     joints={"hinge": mbd.Revolute("ground", "arm", at=(0.0, 0.0))},
        ... )
        >>> mbd.in_space(flat).point("hinge.at").tolist()
        [0.0, 0.0, 0.0]
    """
    if not mech.structure.planar:
        return mech
    drawn = drawn_in_space(declared(mech))
    return Mechanism(*drawn._replace(points=CheckedPoints(drawn.points, earlier=mech)))


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
    if mech.structure.planar:
        raise ValueError("this mechanism is planar; mirror in_space(mech)")
    reflection = Reflection("xyz".index(plane))
    refuse("it has no mirror image", _mirror_problems(mech, plane))
    own = declared(mech)
    points = {n: reflection.polar(x) for n, x in own.points.items()}
    image = own._replace(
        bodies={n: _body(body, reflection) for n, body in own.bodies.items()},
        joints={n: _image(f"joint '{n}'", x, reflection) for n, x in own.joints.items()},
        forces={n: _image(f"force '{n}'", x, reflection) for n, x in own.forces.items()},
        couplings={n: x.mirror_image(reflection) for n, x in own.couplings.items()},
        points=CheckedPoints(points, image=True),
        gravity=reflection.polar(mech.gravity),
    )
    return Mechanism(*image)


def _body(body: Body, reflection: Reflection) -> Body:
    com = body.com
    com = com if isinstance(com, (PointRef, ComRef)) else reflection.polar(com)
    return changed(body, com=com, inertia=reflection.tensor(body.inertia))


def _image(what: str, element: Any, reflection: Reflection) -> Any:
    image: Callable[[Reflection], Any] = element.mirror_image
    try:
        return image(reflection)
    except ValueError as error:
        raise ValueError(f"{what} has no mirror image: {error}") from None


def _mirror_problems(mech: Mechanism, plane: str) -> list[str]:
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


def soften(
    mech: Mechanism,
    joint: str,
    stiffness: Any,
    damping: Any = 0.0,
    *,
    model: Model = "directional",
    reach: Any = None,
) -> Mechanism:
    """The mechanism with one joint replaced by springs and dampers (Urbaś 2016).

    A joint that closed a loop is removed; a joint that was the only connection of its body to the
    ground becomes a `Free` joint of the same name. The choice of tree and cut joints may change
    (`topology`). The force element that replaces the joint has its name. With growing stiffness
    the motion tends to that of the joint, with an error proportional to 1/stiffness.

    A ball joint has the three models of the paper's figure 1:

    * ``"directional"`` (its figure 1c, and the model of every other joint type): a `SoftJoint`,
      one spring and one damper along each constraint row.
    * ``"single"`` (1a): one `SpringDamper` of zero free length between the two centres. Its spring
      force is that of the directional model; its damper acts along the line of the centres only,
      so that a circular motion of the ball in its socket is not damped.
    * ``"three"`` (1b): three `SpringDamper`, each from the ball's centre to a point of a at the
      distance `reach` along a global axis as drawn. They agree with the directional model to first
      order in displacement over reach.

    Args:
        mech: the mechanism.
        joint: name of the joint.
        stiffness: a number for all rows [N/m, N·m/rad], or (2,) ``[N·m/rad; N/m]``.
        damping: a number for all rows [N·s/m, N·m·s/rad], or (2,), angular first.
        model: replacement model of a ball joint.
        reach: length of the springs of ``model="three"`` [m].

    Raises:
        ValueError: there is no such joint, it has no constraint rows, force elements or drives act
            on it, or the model is not for its type.

    Example:
        >>> import jaxmbd as mbd
        >>> soft = mbd.soften(mbd.zoo.rssr(), joint="B", stiffness=1e6, damping=1e3)
        >>> mbd.topology(soft).nc, soft.forces["B"].bodies
        (0, ('coupler', 'rocker'))
    """
    _check_softening(mech, joint, model, reach)
    s, old = mech.structure, mech.joints[joint]
    cut = None if s.cut is None else tuple(n for n in s.cut if n != joint)
    others = [j for n, j in mech.joints.items() if n not in (joint, *(cut or ()))]
    reached = reached_bodies([j for j in others if j.can_be_in_tree])
    free = None
    if not (old.a in reached and old.b in reached):
        free = Free(old.a, old.b) if old.a in reached else Free(old.b, old.a)
    springs = _replacement(mech, joint, stiffness, damping, model, reach)
    return mech.replace(joints={joint: free}, forces=springs, cut=cut)


def _replacement(
    mech: Mechanism, name: str, stiffness: Any, damping: Any, model: Model, reach: Any
) -> dict[str, ForceElement]:
    """The force elements that take the joint's place."""
    joint: Joint = mech.joints[name]
    if model == "directional":
        return {name: SoftJoint(joint, stiffness, damping)}
    k, c = (_along_forces(x) for x in (stiffness, damping))
    start, end = joint.point_a, joint.point_b
    if model == "single":
        spring = SpringDamper(joint.a, joint.b, start, end, stiffness=k, damping=c, free_length=0.0)
        return {name: spring}
    centre = mech.point(start)
    return {
        f"{name}_{axis}": SpringDamper(
            joint.a, joint.b, centre + reach * e, end, stiffness=k, damping=c, free_length=reach
        )
        for axis, e in zip("xyz", jnp.eye(3, dtype=mech.dtype), strict=True)
    }


def _along_forces(x: Any) -> Any:
    """The number that belongs to force rows."""
    x = number(x)
    return x[1] if getattr(x, "shape", ()) == (2,) else x


def _check_softening(mech: Mechanism, name: str, model: str, reach: Any) -> None:
    known = [e.name for e in mech.structure.joints]
    if name not in known:
        raise ValueError(f"there is no joint '{name}' to soften; known: {known}")
    joint = mech.joints[name]
    if mech.structure.planar:
        raise ValueError(
            "this mechanism is planar, and a softened joint would have springs out of the plane; "
            "draw it in space, with points of 3 coordinates"
        )
    if not joint.rows:
        raise ValueError(f"joint '{name}' is a {type(joint).__name__}: it constrains nothing")
    on_it = [n for n, f in mech.forces.items() if name in f.joints]
    on_it += [n for n, driven, _ in mech.structure.drives if driven == name]
    on_it += [n for n, terms in mech.structure.couplings if name in {joint for joint, _ in terms}]
    if on_it:
        raise ValueError(
            f"{on_it} act on the coordinates of joint '{name}', which has none once it is "
            "softened; act on the bodies instead (Torque, PointForce, SpringDamper)"
        )
    if name in mech.forces:
        raise ValueError(
            f"a force element is named '{name}' too, the name that the springs replacing the joint "
            "would get; rename one of them"
        )
    if model not in get_args(Model):
        raise ValueError(f"model={model!r}; give one of {list(get_args(Model))}")
    if model != "directional" and joint.bearing != "ball":
        raise ValueError(
            f"model={model!r} is for ball joints, but '{name}' is a {type(joint).__name__}; "
            "leave it 'directional'"
        )
    if (model == "three") != (reach is not None):
        raise ValueError("model='three' needs reach=, the length of its springs [m]; others do not")
