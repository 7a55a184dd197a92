"""Stages of USD as mechanisms: `load_usd`.

What a mechanism cannot have of a stage is listed in `Imported.left_out`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from jaxmbd.graph import neutral, topology
from jaxmbd.io.conversion import (
    Imported,
    LeftOut,
    LeftOutNotes,
    LeftOutTable,
    State,
    UniqueNames,
    joined,
    stops,
)
from jaxmbd.io.coordinates import FileCoordinates, FileJoint
from jaxmbd.io.usd.joints import Coordinate, Joints
from jaxmbd.io.usd.shapes import shapes_of, undrawn
from jaxmbd.io.usd.stage import (
    Drawn,
    bodies_of,
    choice,
    gravity,
    names_of,
    numbers,
    open_stage,
    usd,
)
from jaxmbd.model import (
    GROUND,
    Actuator,
    Armature,
    ForceElement,
    Free,
    Joint,
    JointDrag,
    Mechanism,
)

KINDS: dict[int, Any] = {4: "ball", 7: "free"}
"""Joints that the stage has by a quaternion, by the number of their coordinates."""
EFFECTS = (
    *("PhysxTendon", "PhysxMimic", "PhysxForce", "PhysxDeformable", "PhysxVehicle"),
    *("PhysxParticle", "NewtonMimic"),
)
"""Beginnings of the names of schemas by which more acts on bodies."""


def load_usd(
    source: Any,
    *,
    strict: bool = False,
    limit_stiffness: float | None = None,
    velocity_scale: float = 1e-2,
) -> Imported:
    """A stage of USD with UsdPhysics as a mechanism, drawn where the stage is.

    usd-core (the extra ``usd``) composes the stage: references are followed wherever they lead.
    Rigid bodies need their mass, centre and principal inertias (MassAPI); densities are not read.
    Joints may close loops: those that are excluded from articulations are cut. Generic joints (D6)
    become the type that leaves the same axes free. Bodies that no joint holds float. Drives become
    actuators (`Actuator`), whose control is their target in SI units (a position, a velocity where
    there is no stiffness, an effort where there is no damping either); PhysX's armatures and
    friction efforts are read too.

    Units become SI, and a stage with y up is turned so that z is: (x, y, z) is then (x, −z, y).
    Joint frames that agree to the digits of single precision become one point and parallel axes;
    the changes, and what a mechanism does not have (contacts first of all), are in the table
    `Imported.left_out`. Bodies are named after their prims, or by the path of one whose name is
    another's; `Imported.bodies` has them by path.

    Args:
        source: path of the file, its text (that starts with "#usda"), or an open `pxr.Usd.Stage`.
        strict: whether to refuse a stage of which something is left out, changes in digits apart.
        limit_stiffness: of a `JointLimit` at each end of a range [N·m/rad or N/m]; without it
            ranges are only listed (`Imported.limits`).
        velocity_scale: of the friction efforts [rad/s or m/s], as of `JointDrag`.

    Raises:
        ValueError: USD refuses the stage; a body leaves its mass to its shapes; a joint or a
            transform is none of a mechanism's, named by its path; with `strict`, something is left
            out.
        FileNotFoundError: there is no such file.
        ImportError: usd-core is not installed.

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.io.load_usd('''#usda 1.0
        ... (metersPerUnit = 1
        ...  upAxis = "Z")
        ... def Xform "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
        ...   float physics:mass = 2
        ...   point3f physics:centerOfMass = (0.5, 0, 0)
        ... }
        ... def PhysicsRevoluteJoint "hinge" {
        ...   rel physics:body1 = </arm>
        ...   uniform token physics:axis = "Y"
        ... }''')
        >>> model
        imported: 1 bodies, 1 joints, 1 states
        nothing is left out
        >>> q = model.states["reference"].q
        >>> round(float(mbd.forward_dynamics(model.mechanism, q, 0 * q)[0][0]), 6)
        19.62
    """
    drawn = Drawn(open_stage(source), LeftOutNotes())
    bodies, made = bodies_of(drawn), Joints(drawn)
    tree, cut = _cut(made, bodies)
    joints = joined(_floating(drawn, made, bodies, tree), made.joints)
    forces, actuators = _forces(drawn, made, cut, velocity_scale)
    limits = _limits(drawn, made)
    if limit_stiffness is not None:
        forces |= stops(limits, limit_stiffness)
    else:
        for name in limits:
            drawn.left.add("joint limits", "listed in .limits, without stops", name)
    mech = Mechanism(bodies, joints, forces, gravity=gravity(drawn), cut=cut or None)
    _unsupported(drawn, made)
    table = LeftOutTable(drawn.left.rows())
    table.refuse(strict, "a mechanism has no equal for all of this stage")
    places = _coordinates(drawn, made, mech)
    return Imported(
        mechanism=mech,
        states={"reference": State(neutral(mech), np.zeros(places.nv), {}, 0.0)},
        actuators=actuators,
        bodies={"world": GROUND} | drawn.bodies,
        sites={},
        limits=limits,
        shapes=shapes_of(drawn),
        left_out=LeftOutTable([*table, *(LeftOut(*row) for row in made.changes())]),
        coordinates=places,
    )


class _Groups:
    """Bodies that joints connect."""

    def __init__(self, bodies: Iterable[str]):
        self._above = {name: name for name in (GROUND, *bodies)}

    def of(self, body: str) -> str:
        """What stands for all that are connected with a body."""
        while self._above[body] != body:
            body = self._above[body]
        return body

    def connect(self, a: str, b: str) -> bool:
        """Connect two bodies, unless they are."""
        a, b = self.of(a), self.of(b)
        self._above[b] = a
        return a != b


def _excluded(prim: Any) -> bool:
    return bool(choice(prim, "physics:excludeFromArticulation", False))


def _cut(made: Joints, bodies: Iterable[str]) -> tuple[_Groups, tuple[str, ...]]:
    """What joints connect, and those that are cut; none where articulations have loops."""
    groups, cut, loops = _Groups(bodies), [], False
    for name in sorted(made.joints, key=lambda n: _excluded(made.prims[n])):
        joint = made.joints[name]
        if not joint.can_be_in_tree or not groups.connect(joint.a, joint.b):
            cut.append(name)
            loops |= joint.can_be_in_tree and not _excluded(made.prims[name])
    return groups, () if loops else tuple(cut)


def _floating(
    drawn: Drawn, made: Joints, bodies: Iterable[str], groups: _Groups
) -> dict[str, Joint]:
    """Free joints of the roots of what no joint holds."""
    roots = usd("UsdPhysics").ArticulationRootAPI
    articulated = {
        name for p, name in drawn.bodies.items() if drawn.stage.GetPrimAtPath(p).HasAPI(roots)
    }
    carried = {j.b for n, j in made.joints.items() if not _excluded(made.prims[n])}
    names, found = UniqueNames(made.joints), {}
    for body in sorted(bodies, key=lambda b: (b not in articulated, b in carried)):
        if groups.connect(GROUND, body):
            found[names.unique(f"{body}.free", "root")] = Free(GROUND, body)
    return found


def _forces(
    drawn: Drawn, made: Joints, cut: tuple[str, ...], velocity_scale: float
) -> tuple[dict[str, ForceElement], dict[str, str]]:
    """Actuators, friction and rotors of the joints' coordinates, and the drives by name."""
    out: dict[str, ForceElement] = {}
    actuators = {}
    for c in made.coordinates:
        name = f"{c.joint}.{c.names[-1]}" if c.joint in made.screws else c.joint
        motor = _motor(drawn, c)
        if motor is not None:
            actuators[name] = f"{name}.drive"
            out[f"{name}.drive"] = motor
        efforts = ("dynamicFrictionEffort", "staticFrictionEffort", "viscousFrictionCoefficient")
        dry, still, viscous = (c.number(f"physxJointAxis:*:{n}", 0.0) * c.effort for n in efforts)
        rotor = c.number("physxJointAxis:*:armature", numbers(c.prim, "physxJoint:armature", 0.0))
        if still > dry:
            drawn.left.add("static friction efforts", "the dynamic ones alone", name)
        if (rotor or dry or viscous) and (c.joint in made.screws or c.joint in cut):
            drawn.left.add("friction and armature of loop joints and screws", "absent", name)
            continue
        if dry or viscous:
            out[f"{name}.drag"] = JointDrag(c.joint, dry, viscous / c.unit, velocity_scale)
        if rotor:
            out[f"{name}.rotor"] = Armature(c.joint, rotor * c.effort / (c.unit**c.slides))
    return out, actuators


def _motor(drawn: Drawn, c: Coordinate) -> Actuator | None:
    """A drive: ``effort = k (u − (q + start)) + c (rate − v)``, u its target."""
    kind = next((n for n in c.names if c.prim.HasAPI(usd("UsdPhysics").DriveAPI, n)), None)
    if kind is None:
        return None
    drive = f"drive:{kind}:physics"
    if choice(c.prim, f"{drive}:type", "force") != "force":
        drawn.left.add("drives of accelerations", "absent", c.joint)
        return None
    gains, targets = ("stiffness", "damping"), ("targetPosition", "targetVelocity")
    k, damping = (float(numbers(c.prim, f"{drive}:{n}", 0.0)) * c.effort / c.unit for n in gains)
    target, rate = (float(numbers(c.prim, f"{drive}:{n}", 0.0)) * c.unit for n in targets)
    most = float(numbers(c.prim, f"{drive}:maxForce", np.inf)) * c.effort
    return Actuator(
        c.joint,
        gain=k or damping or 1.0,
        bias=(damping * rate * bool(k) - k * c.start, -k, -damping),
        control=target if k else rate if damping else 0.0,
        force_range=(-most, most) if np.isfinite(most) else None,
        index=c.index,
    )


def _limits(drawn: Drawn, made: Joints) -> dict[str, tuple[float, float]]:
    """Ranges of joints with one coordinate, from the drawn one."""
    out = {}
    for c in made.coordinates:
        lower, upper = (
            c.number(f"limit:*:physics:{low}", float(numbers(c.prim, f"physics:{end}Limit", none)))
            for low, end, none in (("low", "lower", -np.inf), ("high", "upper", np.inf))
        )
        if lower > upper:
            raise ValueError(
                f"{c.prim.GetPath()}: its lower limit {lower:g} is over the upper {upper:g}; give "
                "the lower one first, or use a fixed joint"
            )
        if np.isinf(lower) and np.isinf(upper):
            continue
        if c.joint in made.screws:
            drawn.left.add("ranges of joints with several coordinates", "absent", c.joint)
        else:
            out[c.joint] = (lower * c.unit - c.start, upper * c.unit - c.start)
    return out


def _unsupported(drawn: Drawn, made: Joints) -> None:
    """Note contacts and all else that acts in the stage."""
    api, names = usd("UsdPhysics"), names_of(drawn.prims)
    for error in drawn.stage.GetCompositionErrors():
        asset = str(error).split("@")[1:2] or [str(error)]
        drawn.left.add("references that USD cannot follow", "absent", asset[0])
    for prim in drawn.prims:
        kind, schemas = prim.GetTypeName(), [*prim.GetAppliedSchemas(), prim.GetTypeName()]
        own = prim.GetAuthoredPropertyNames()
        speeds = [numbers(prim, f"physics:{n}", 0.0) for n in ("velocity", "angularVelocity")]
        damped = [numbers(prim, f"physxRigidBody:{n}Damping", 0.0) for n in ("linear", "angular")]
        breaks = [numbers(prim, f"physics:break{n}", np.inf) for n in ("Force", "Torque")]
        touches = prim.HasAPI(api.CollisionAPI) and choice(prim, "physics:collisionEnabled", True)
        for (what, consequence), applies in {
            ("contact shapes", "bodies pass through each other and the ground"): touches,
            ("shapes of other kinds", "not drawn"): undrawn(prim),
            ("tendons, mimic joints and other effects", "absent"): any(
                s.startswith(EFFECTS) for s in schemas
            ),
            ("joints of PhysX alone", "absent"): kind.startswith("Physx") and "Joint" in kind,
            ("attributes of MuJoCo or Newton", "not read"): any(
                n.startswith(("mjc:", "newton:")) for n in own
            ),
            ("media", "no forces of air or water"): any(damped),
            ("initial velocities", "at rest"): any(np.any(x) for x in speeds),
            ("bodies without gravity", "it acts on them"): choice(
                prim, "physxRigidBody:disableGravity", False
            ),
            ("loads at which joints break", "they never do"): min(breaks) < np.inf,
            ("friction coefficients of joints", "absent: give a JointFriction"): numbers(
                prim, "physxJoint:jointFriction", 0.0
            ),
        }.items():
            if applies:
                drawn.left.add(what, consequence, names[str(prim.GetPath())])
    for name, joint in made.joints.items():
        prim = made.prims[name]
        cone = [numbers(prim, f"physics:coneAngle{k}Limit", -1.0) for k in (0, 1)]
        driven = any(s.startswith("PhysicsDriveAPI") for s in prim.GetAppliedSchemas())
        if joint.ball and joint.nq and (max(cone) >= 0.0 or driven):
            drawn.left.add("ranges and drives of balls", "absent", name)


def _coordinates(drawn: Drawn, made: Joints, mech: Mechanism) -> FileCoordinates:
    """Coordinates of the stage: of free bodies, then of joints in its order, in SI units."""
    top, found = topology(mech), []
    frames = {n: drawn.frame(drawn.stage.GetPrimAtPath(p)) for p, n in drawn.bodies.items()}
    qpos = dof = 0
    by_joint: dict[str, list[Coordinate]] = {}
    for c in made.coordinates:
        by_joint.setdefault(c.joint, []).append(c)
    for name, joint in mech.joints.items():
        place = top.layout[name]
        if place.q is None or place.v is None:
            continue
        kind = KINDS.get(joint.nq)
        if kind:
            on = joint.b if joint.b != GROUND else joint.a
            frame = frames[on]
            quaternion = np.roll(Rotation.from_matrix(frame.axes).as_quat(), 1)
            arm = frame.axes.T @ (np.asarray(mech.com(on)) - frame.origin)
            first = qpos, dof, place.q.start, place.v.start
            back = joint.b == GROUND
            found.append(FileJoint(kind, *first, frame.origin, 1.0, back, quaternion, arm))
            qpos, dof = qpos + joint.nq, dof + joint.nv
        for c in by_joint.get(name, []):
            q, v = place.q.start + c.index, place.v.start + c.index
            found.append(FileJoint("scalar", qpos, dof, q, v, start=np.array([c.start])))
            qpos, dof = qpos + 1, dof + 1
    return FileCoordinates(tuple(found), top.nq, top.nv)
