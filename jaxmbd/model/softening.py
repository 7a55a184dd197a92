"""`soften`: replace a joint by springs and dampers."""

from __future__ import annotations

from typing import Any, Literal, get_args

import jax.numpy as jnp

from jaxmbd.model.forces import ForceElement, SoftJoint, SpringDamper
from jaxmbd.model.joints import Free, Joint
from jaxmbd.model.mechanism import Mechanism
from jaxmbd.model.numbers import number
from jaxmbd.model.parts import CheckedPoints
from jaxmbd.model.validation import reached_bodies

Model = Literal["directional", "single", "three"]


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
    _check(mech, joint, model, reach)
    s = mech.structure
    old = mech.joints[joint]
    cut = None if s.cut is None else tuple(n for n in s.cut if n != joint)
    joints = {e.name: mech.joints[e.name] for e in s.joints}
    others = [j for n, j in joints.items() if n != joint and j.can_be_in_tree]
    if cut is not None:
        others = [j for n, j in joints.items() if n not in (joint, *cut) and j.can_be_in_tree]
    reached = reached_bodies(others)
    if old.a in reached and old.b in reached:
        del joints[joint]
    else:
        ends = (old.a, old.b) if old.a in reached else (old.b, old.a)
        joints[joint] = Free(*ends)
    forces = {n: mech.forces[n] for n in s.forces}
    forces |= _replacement(mech, joint, stiffness, damping, model, reach)
    return Mechanism(
        bodies={n: mech.bodies[n] for n in s.bodies},
        joints=joints,
        forces=forces,
        drives={n: mech.drives[n] for n, _, _ in s.drives},
        couplings={n: mech.couplings[n] for n, _ in s.couplings},
        points=CheckedPoints({n: mech.points[n] for n in s.points}, earlier=mech),
        gravity=mech.gravity,
        cut=cut,
    )


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


def _check(mech: Mechanism, name: str, model: str, reach: Any) -> None:
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
