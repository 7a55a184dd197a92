"""Models of others: MJCF and URDF as mechanisms, through MuJoCo's own reader.

What a mechanism cannot have of a model is listed in `Imported.left_out`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxmbd.graph import Topology, neutral, topology
from jaxmbd.io.conversion import (
    Imported,
    LeftOut,
    LeftOutTable,
    State,
    UniqueNames,
    joined,
    stops,
)
from jaxmbd.io.coordinates import FileCoordinates, FileJoint
from jaxmbd.io.mujoco.bodies import (
    Drawn,
    bodies_of,
    drawn_model,
    joint_kind,
    joints_of,
    names_of,
    shapes_of,
)
from jaxmbd.io.mujoco.compile import (
    Compiled,
    Source,
    compiled,
    given_inertias,
    read_spec,
    read_urdf,
)
from jaxmbd.io.mujoco.equalities import equalities
from jaxmbd.io.mujoco.forces import (
    Forces,
    disabled,
    floats,
    joint_springs,
    limits_of,
    motors,
    passive_forces,
    springs,
    tendons_left_out,
)
from jaxmbd.model import GROUND, Joint, Mechanism, Spherical, changed
from jaxmbd.plumbing import unknown


def _unsupported(drawn: Drawn) -> list[LeftOut]:
    """Contacts, tendons, flexible bodies, fluids and all else that acts on the bodies."""
    model = drawn.model
    return [
        _contacts(drawn),
        *tendons_left_out(drawn),
        LeftOut("flexible bodies", names_of(model, "flex", model.nflex), "absent"),
        LeftOut("plugins", names_of(model, "plugin", model.nplugin), "absent"),
        LeftOut("ranges of balls", _ball_ranges(drawn), "absent"),
        LeftOut("sensors", names_of(model, "sensor", model.nsensor), "use jaxmbd.observe"),
        LeftOut("mocap bodies", _mocap(drawn), "they stay where they are drawn"),
        LeftOut("media", _media(model), "no forces of air or water"),
        LeftOut("weights that actuators carry", _compensating(drawn), "carried by a force"),
    ]


def _contacts(drawn: Drawn) -> LeftOut:
    """Shapes of which some can touch another, as MuJoCo decides it without exclusions."""
    model, text = drawn.model, "bodies pass through each other and the ground"
    if disabled(model, "CONTACT"):
        return LeftOut("contact shapes", (), text)
    kind, affinity = model.geom_contype, model.geom_conaffinity
    meets = (kind[:, None] & affinity[None, :]) | (kind[None, :] & affinity[:, None])
    carrier = model.body_weldid[model.geom_bodyid]
    touching = (meets.astype(bool) & (carrier[:, None] != carrier[None, :])).any(axis=1)
    touching[model.pair_geom1] = touching[model.pair_geom2] = True
    names = names_of(model, "geom", model.ngeom)
    return LeftOut("contact shapes", tuple(names[i] for i in np.flatnonzero(touching)), text)


def _ball_ranges(drawn: Drawn) -> tuple[str, ...]:
    model = drawn.model
    if disabled(model, "LIMIT"):
        return ()
    ranged = [j for j in range(model.njnt) if joint_kind(model, j) == "ball"]
    return tuple(drawn.joints[j] for j in ranged if model.jnt_limited[j])


def _mocap(drawn: Drawn) -> tuple[str, ...]:
    names = names_of(drawn.model, "body", drawn.model.nbody)
    return tuple(names[i] for i in np.flatnonzero(drawn.model.body_mocapid >= 0))


def _media(model: Any) -> tuple[str, ...]:
    return tuple(n for n in ("density", "viscosity") if getattr(model.opt, n))


def _compensating(drawn: Drawn) -> tuple[str, ...]:
    flags = np.flatnonzero(drawn.model.jnt_actgravcomp)
    return tuple(drawn.joints[j] for j in flags) if drawn.model.body_gravcomp.any() else ()


def load_mjcf(
    source: Source,
    *,
    strict: bool = False,
    limit_stiffness: float | None = None,
    velocity_scale: float = 1e-2,
    within: str | os.PathLike[str] | None = None,
) -> Imported:
    """A MuJoCo model (MJCF) as a mechanism, drawn at the model's reference configuration.

    MuJoCo (the extra ``io``) resolves defaults, includes and inertias from shapes. Bodies without
    joints become part of what carries them; several joints on a body are one after the other, with
    massless bodies between. `connect` and `weld` become exact cut joints (assemble the mechanism
    where they do not hold as drawn), equalities of joints and of fixed tendons couplings, joint
    springs, dampers, armatures and friction losses force elements, actuators of joints and fixed
    tendons `Actuator`, those of sites and balls `BodyActuator`, gravity compensation a constant
    force, tendons between two sites springs and dampers, or rods where an equality holds their
    length, sites named points. Meshes are not needed where inertias are given: what is drawn is
    read when `Imported.shapes` is asked for.

    A friction loss is regularised (`JointDrag`), where MuJoCo has a soft constraint that sticks.
    What a mechanism does not have, contacts first of all, is in the table `Imported.left_out`.

    Args:
        source: path of the file, or its text.
        strict: whether to refuse a model of which something is left out.
        limit_stiffness: of a `JointLimit` at each end of a range [N·m/rad or N/m]; without it
            ranges are only listed (`Imported.limits`).
        velocity_scale: of the friction losses [rad/s or m/s].
        within: folder in which meshes and height fields are looked up, wherever the model names
            them. By default that is the model's own folder, and names that are absolute or climb
            out of it are not looked up, with a warning.

    Raises:
        ValueError: MuJoCo refuses the model, or no file can have a name that it gives; with
            `strict`, something is left out.
        FileNotFoundError: there is no such file.
        ImportError: MuJoCo is not installed.

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.io.load_mjcf('''<mujoco>
        ...   <worldbody><body name="arm">
        ...     <joint name="hinge" axis="0 1 0" armature="0.1"/>
        ...     <geom size="0.02" pos="0.5 0 0" contype="0" conaffinity="0"/>
        ...   </body></worldbody>
        ...   <actuator><motor name="motor" joint="hinge" gear="50"/></actuator>
        ... </mujoco>''')
        >>> model
        imported: 1 bodies, 1 joints, 1 actuators, 1 states
        nothing is left out
        >>> q = model.states["reference"].q
        >>> vdot, _ = mbd.forward_dynamics(model.mechanism, q, 0 * q, inputs={"motor": 0.1})
    """
    found = compiled(read_spec(source), within)
    return _imported(found, strict, limit_stiffness, velocity_scale, {})


def load_urdf(
    source: Source,
    *,
    loops: Mapping[str, tuple[str, str] | Joint] | None = None,
    floating: bool = False,
    strict: bool = False,
    limit_stiffness: float | None = None,
    velocity_scale: float = 1e-2,
    within: str | os.PathLike[str] | None = None,
) -> Imported:
    """A robot described in URDF as a mechanism; mimic joints become couplings.

    As `load_mjcf`, by MuJoCo's reader. A link's inertia is the one that is given, and zero without;
    meshes are for pictures alone, and need not be there.

    URDF has no loops; `loops` closes them, by joints that are cut.

    Args:
        source: path of the file, or its text.
        loops: joints by name that close loops. A pair of links becomes a ball that brings their
            frames' origins together, as of descriptions that mark closures by pairs of frames;
            a joint between two links stands as it is, drawn where the robot is.
        floating: whether the root link floats; else it is fixed to the ground.
        strict: whether to refuse a model of which something is left out.
        limit_stiffness: as of `load_mjcf`.
        velocity_scale: as of `load_mjcf`.
        within: as of `load_mjcf`; names as ``package://part/…`` may lead out of it, into the
            package that the description is in, or one beside it.

    Raises:
        ValueError: MuJoCo refuses the model, or no file can have a name that it gives; with
            `strict`, something is left out; `loops` name a link that is not there, or one body.
        FileNotFoundError: there is no such file.
        ImportError: MuJoCo is not installed.

    Example:
        >>> import jaxmbd as mbd
        >>> model = mbd.io.load_urdf('''<robot name="arm">
        ...   <link name="base"/>
        ...   <link name="arm"><inertial><mass value="1"/><origin xyz="0.5 0 0"/>
        ...     <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        ...   <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/>
        ...     <axis xyz="0 1 0"/></joint>
        ... </robot>''')
        >>> list(model.mechanism.joints)
        ['hinge']
    """
    spec, unseen, files = read_urdf(source, within)
    spec.compiler.fusestatic = False
    inertias, left = given_inertias(spec)
    if floating:
        root = next(iter(spec.worldbody.bodies))
        root.add_freejoint(name="root")
    found = compiled(spec, within, inertias_from_shapes=False, known=files)
    found = found._replace(inertias=inertias, left_out=[*left, *unseen, *found.left_out])
    return _imported(found, strict, limit_stiffness, velocity_scale, loops or {})


def _loop(drawn: Drawn, name: str, ends: tuple[str, str] | Joint) -> Joint:
    """A joint between the bodies that two links are parts of."""
    links = names_of(drawn.model, "body", drawn.model.nbody, (GROUND,))
    pair = (ends.a, ends.b) if isinstance(ends, Joint) else tuple(ends)
    if len(pair) != 2:
        raise ValueError(f"loops[{name!r}] is {ends!r}; give two links, or a joint between two")
    if problems := [text for n in pair if n != GROUND for text in unknown("link", n, links)]:
        raise ValueError(f"loops[{name!r}]: {'; '.join(problems)}")
    numbers = [0 if n == GROUND else links.index(n) for n in pair]
    a, b = (drawn.bodies[i] for i in numbers)
    if a == b:
        raise ValueError(f"loops[{name!r}]: {' and '.join(pair)} are parts of one rigid body, {a}")
    if isinstance(ends, Joint):
        return changed(ends, a=a, b=b)
    at, at_b = (drawn.data.xpos[i].copy() for i in numbers)
    near = np.abs(at - at_b).max() <= 1e-12 * (1.0 + np.abs(at).max())
    return Spherical(a, b, at, at_b=None if near else at_b)


def _imported(
    found: Compiled,
    strict: bool,
    stiffness: float | None,
    velocity_scale: float,
    loops: Mapping[str, Any],
) -> Imported:
    model, left = found.model, list(found.left_out)
    drawn = drawn_model(model, found.inertias)
    closing, limits = equalities(drawn), limits_of(drawn)
    closing.joints.update(joined(closing.joints, {n: _loop(drawn, n, x) for n, x in loops.items()}))
    passive, more = passive_forces(drawn, velocity_scale)
    actuators, own_names, unmoved = motors(drawn)
    # MuJoCo's names differ within one kind of part only; actuators, which have inputs, keep theirs.
    names = UniqueNames([*drawn.joints, *actuators])
    forces: Forces = names.renamed(passive, "joint") | actuators
    forces |= names.renamed(joined(springs(drawn), joint_springs(drawn)), "tendon")
    forces |= names.renamed(floats(drawn), "body")
    if stiffness is not None:
        forces |= names.renamed(stops(limits, stiffness), "joint")
    elif limits:
        left.append(LeftOut("joint limits", tuple(limits), "listed in .limits, without stops"))
    left += [*closing.left_out, *more, *unmoved, *_unsupported(drawn)]
    table = LeftOutTable(left)
    table.refuse(strict, "a mechanism has no equal for all of this model")
    sites = names_of(model, "site", model.nsite)
    mech = Mechanism(
        bodies_of(drawn),
        joined(joints_of(drawn), closing.joints),
        forces,
        points={n: x.copy() for n, x in zip(sites, drawn.data.site_xpos, strict=True)},
        gravity=(0.0, 0.0, 0.0) if disabled(model, "GRAVITY") else model.opt.gravity.copy(),
        couplings=closing.couplings,
        cut=tuple(closing.joints) or None,
    )
    places = coordinates_of(drawn, mech)
    return Imported(
        mechanism=mech,
        states=_states(drawn, mech, places, own_names),
        actuators=own_names,
        bodies=dict(
            zip(names_of(model, "body", model.nbody, (GROUND,)), drawn.bodies, strict=True)
        ),
        sites={n: drawn.bodies[b] for n, b in zip(sites, model.site_bodyid, strict=True)},
        limits=limits,
        shapes=shapes_of(found.drawn, drawn.bodies),
        left_out=table,
        coordinates=places,
    )


def coordinates_of(drawn: Drawn, mech: Mechanism) -> FileCoordinates:
    """The model's coordinates in those of the mechanism."""
    top, model = topology(mech), drawn.model
    found = tuple(_place(drawn, mech, top, j) for j in range(model.njnt))
    return FileCoordinates(found, top.nq, top.nv)


def _place(drawn: Drawn, mech: Mechanism, top: Topology, j: int) -> FileJoint:
    model, place = drawn.model, top.layout[drawn.joints[j]]
    kind, body = joint_kind(model, j), int(model.jnt_bodyid[j])
    assert place.q is not None and place.v is not None
    start, arm = int(model.jnt_qposadr[j]), np.zeros(3)
    if kind == "free":
        com = np.asarray(mech.com(drawn.bodies[body]))
        arm = drawn.frame(body).T @ (com - drawn.data.xpos[body])
    first = {"free": 3, "ball": 0}.get(kind, 1)
    return FileJoint(
        kind if kind in ("free", "ball") else "scalar",  # pyright: ignore[reportArgumentType]
        start,
        int(model.jnt_dofadr[j]),
        place.q.start,
        place.v.start,
        start=model.qpos0[start : start + first].copy(),
        drawn=drawn.data.xquat[body].copy(),
        arm=arm,
    )


def _states(
    drawn: Drawn, mech: Mechanism, places: FileCoordinates, actuators: dict[str, str]
) -> dict[str, State]:
    model = drawn.model
    out = {"reference": State(neutral(mech), np.zeros(places.nv), {}, 0.0)}
    own = names_of(model, "actuator", model.nu)
    convert = jax.jit(lambda qpos, qvel: (places.q(qpos), places.v(qpos, qvel)))
    for k, name in enumerate(names_of(model, "key", model.nkey, tuple(out))):
        controls = {
            actuators[n]: float(model.key_ctrl[k, model.actuator_ctrladr[i]])
            for i, n in enumerate(own)
            if n in actuators
        }
        qpos = model.key_qpos[k].copy()
        for j in places.joints:  # as MuJoCo, which normalises the quaternions of keyframes
            if j.kind != "scalar":
                first = j.qpos + 3 * (j.kind == "free")
                qpos[first : first + 4] /= np.linalg.norm(qpos[first : first + 4])
        q, v = convert(qpos, model.key_qvel[k])
        out[name] = State(np.asarray(q), np.asarray(v), controls, float(model.key_time[k]))
    return out
