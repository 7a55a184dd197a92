"""An imported model against MuJoCo: mass matrix, bias, accelerations, closed loops.

MuJoCo computes without what a mechanism does not have (contacts, ranges, dry friction, tendons,
actuators that are left out), the mechanism without its regularised dry friction.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.io.mujoco.bodies import names_of
from jaxmbd.io.mujoco.compile import compiled, read_spec

# Everything in double precision, and no rows but equalities.
NO_ROWS = (
    mujoco.mjtDisableBit.mjDSBL_CONTACT
    | mujoco.mjtDisableBit.mjDSBL_LIMIT
    | mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS
)


def model_of(path):
    """MuJoCo's own model of a file; where files are missing, what is left of it without them."""
    try:
        return mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        found = compiled(read_spec(path))
    model = found.model
    for name, own in found.inertias.items():
        assert not own.mass
        model.body_mass[model.body(name).id] = model.body_inertia[model.body(name).id] = 0.0
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def simplified(model, imported):
    """Remove from a compiled model, in place, what the import left out."""
    model.opt.disableflags |= int(NO_ROWS)
    model.opt.density = model.opt.viscosity = 0.0
    model.jnt_stiffnesspoly[:] = model.dof_dampingpoly[:] = 0.0
    model.tendon_armature[:] = model.tendon_frictionloss[:] = 0.0
    absent = {x.what: x.names for x in imported.left_out}
    for i in range(model.ntendon):
        if model.tendon(i).name in absent.get("springs of tendons", ()):
            model.tendon_stiffness[i] = model.tendon_stiffnesspoly[i] = 0.0
        if model.tendon(i).name in absent.get("dampers of tendons", ()):
            model.tendon_damping[i] = model.tendon_dampingpoly[i] = 0.0
    model.actuator_dampingpoly[:] = 0.0
    for j in np.flatnonzero(model.jnt_type <= 1):
        model.jnt_stiffness[j] = 0.0
        size = 6 if model.jnt_type[j] == 0 else 3
        if model.jnt_type[j] == 0:
            own = slice(model.jnt_dofadr[j], model.jnt_dofadr[j] + size)
            lost = [x for x in imported.left_out if x.what.startswith("free joints' own")]
            if lost:
                model.dof_damping[own] = model.dof_armature[own] = 0.0
    s = imported.mechanism.structure
    held = {e.name for e in s.joints} | {name for name, _ in s.couplings}
    joints = names_of(model, "joint", model.njnt)
    for i, name in enumerate(names_of(model, "equality", model.neq, joints)):
        model.eq_active0[i] &= name in held
    names = [model.actuator(i).name.replace("/", ".") or f"actuator{i}" for i in range(model.nu)]
    for i, name in enumerate(names):
        if name not in imported.actuators:
            model.actuator_gainprm[i] = model.actuator_biasprm[i] = 0.0
            model.actuator_gaintype[i] = mujoco.mjtGain.mjGAIN_FIXED
            model.actuator_biastype[i] = mujoco.mjtBias.mjBIAS_NONE
    return names


def without_dry_friction(mech):
    drags = {n: f for n, f in mech.forces.items() if isinstance(f, mbd.JointDrag)}
    smooth = {n: mbd.JointDrag(f.joint, 0.0, f.viscous) for n, f in drags.items()}
    return mech.replace(forces=smooth) if smooth else mech


def full_mass(model, data):
    mass = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, data, mass)
    except TypeError:  # before MuJoCo 4
        mujoco.mj_fullM(model, mass, data.qM)
    return mass


def random_state(model, rng, size=0.5, start=None):
    """qpos near the reference configuration or `start`, qvel, and a control for each actuator."""
    qpos = np.array(model.qpos0 if start is None else start)
    mujoco.mj_integratePos(model, qpos, size * rng.normal(size=model.nv), 1.0)
    return qpos, rng.normal(size=model.nv), rng.uniform(-0.5, 0.5, model.nu)


def at_state(model, qpos, qvel, controls):
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.ctrl[:] = qpos, qvel, controls
    for i in np.flatnonzero(model.actuator_actnum):
        data.act[model.actuator_actadr[i] + model.actuator_actnum[i] - 1] = controls[i]
    mujoco.mj_forward(model, data)
    return data


def ours(imported, mech, names, places=None):
    """A compiled function: what of the mechanism is compared, in the coordinates `places`."""
    places = imported.coordinates if places is None else places
    used = [n for n in names if n in imported.actuators]
    index = [names.index(n) for n in used]

    def of(q, qvel, qacc, controls):
        inputs = {imported.actuators[n]: controls[i] for n, i in zip(used, index, strict=True)}

        def speeds(q, qvel):
            return places.v(places.qpos(q), qvel)

        v = speeds(q, qvel)
        rates = mbd.coordinate_rates(mech, q, v)
        slip = jax.jvp(speeds, (q, qvel), (rates, jnp.zeros_like(qvel)))[1]
        theirs = jax.jvp(speeds, (q, qvel), (rates, qacc))[1]
        turn = jax.jacfwd(lambda v: places.qvel(q, v))(v)
        vdot, lam = mbd.forward_dynamics(mech, q, v, 0.0, inputs)
        mass = mbd.mass_matrix(mech, q)
        needed, _ = mbd.inverse_dynamics(mech, q, v, slip, 0.0, inputs) if not lam.size else (v, 0)
        return {"v": v, "turn": turn, "vdot": vdot, "theirs": theirs, "mass": mass, "bias": needed}

    return lanes.jit(of)


def tree_errors(imported, model, *, states=3, seed=0):
    """Largest relative errors of M, bias and accelerations of a model; its equalities are open."""
    mech, names = without_dry_friction(imported.mechanism), simplified(model, imported)
    s = mech.structure
    closing = [e.name for e in s.joints if e.name in (s.cut or ())]
    mech = mech.replace(
        joints=dict.fromkeys(closing), couplings=dict.fromkeys(mech.couplings), cut=None
    )
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    rng, found, compute = np.random.default_rng(seed), [], ours(imported, mech, names)
    for _ in range(states):
        qpos, qvel, controls = random_state(model, rng)
        data = at_state(model, qpos, qvel, controls)
        q = imported.coordinates.q(qpos)
        x = {k: np.asarray(y) for k, y in compute(q, qvel, data.qacc.copy(), controls).items()}
        mass = x["turn"].T @ full_mass(model, data) @ x["turn"]
        scale = np.sqrt(np.diag(mass))
        forces = data.qfrc_bias - data.qfrc_passive - data.qfrc_actuator
        bias = x["turn"].T @ forces
        back = np.asarray(imported.coordinates.qpos(q))
        found.append(
            {
                "mass": np.abs((x["mass"] - mass) / np.outer(scale, scale)).max(),
                "bias": relative(x["bias"], bias),
                "acceleration": relative(x["vdot"], x["theirs"]),
                "coordinates": relative(back, qpos),
                "condition": np.linalg.cond(mass / np.outer(scale, scale)),
            }
        )
    return {key: float(max(e[key] for e in found)) for key in found[0]}


def relative(a, b, scale=1e-300):
    return float(np.abs(a - b).max() / max(np.abs(b).max(), scale))


def loop_errors(imported, model, *, seed=0):
    """Relative errors of a closed mechanism in motion, against dense equations of MuJoCo's own.

    At an assembled state without slip MuJoCo's rows have neither stiffness nor damping left, so
    that its reference acceleration is ``−J̇ v`` (from MuJoCo 3.7 on also for `connect`; that of
    joints and tendons is added here). The state is near the first keyframe, if there is one.
    Accelerations are relative to the largest of them, or of those without the loops' forces, which
    are what is left where the loops hold a mechanism almost still.
    """
    mech, names = without_dry_friction(imported.mechanism), simplified(model, imported)
    places, rng = imported.coordinates, np.random.default_rng(seed)
    start = model.key_qpos[0] if model.nkey else None
    qpos, qvel, controls = random_state(model, rng, 0.05, start)
    guess = places.q(qpos)
    closed = mbd.assemble(mech, guess=guess)
    q = closed.q
    jacobian = np.asarray(mbd.constraint_jacobian(mech, q))
    v = np.asarray(places.v(qpos, qvel))
    v = v - np.linalg.pinv(jacobian, rcond=1e-9) @ (jacobian @ v)
    inputs = {
        imported.actuators[n]: c
        for n, c in zip(names, controls, strict=True)
        if n in imported.actuators
    }
    vdot, _ = mbd.forward_dynamics(mech, q, v, 0.0, inputs)
    data = at_state(model, np.asarray(places.qpos(q)), np.asarray(places.qvel(q, v)), controls)
    rows = equality_rows(model, data)
    force = data.qfrc_passive + data.qfrc_actuator - data.qfrc_bias
    mass = full_mass(model, data)
    free = np.linalg.solve(mass, force)
    response = np.linalg.solve(mass, rows.T)
    wanted = data.efc_aref[: len(rows)] + polynomial_curvature(model, data)
    push = np.linalg.lstsq(rows @ response, wanted - rows @ free, rcond=1e-10)[0]
    own = places.qvel(q, v)
    theirs = accelerations_of(imported, mech, q, own, free + response @ push)
    scale = np.abs(accelerations_of(imported, mech, q, own, free)).max()
    return {
        "closure": float(np.abs(mbd.constraint_residual(mech, q)).max()),
        "their closure": float(np.abs(data.efc_pos[: len(rows)]).max()),
        "acceleration": relative(np.asarray(vdot), np.asarray(theirs), scale),
        "rows": len(rows),
    }


def equality_rows(model, data):
    """MuJoCo's J (rows, nv) of the equalities."""
    rows = np.zeros((data.nefc, model.nv))
    if mujoco.mj_isSparse(model):
        mujoco.mju_sparse2dense(
            rows, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind
        )
    else:
        rows = np.asarray(data.efc_J).reshape(data.nefc, model.nv)
    return rows[: data.ne]


def polynomial_curvature(model, data):
    """``−J̇ v`` of equalities of joints and tendons, ``Σ k (k − 1) c_k x^(k−2) ẋ²``; else zero."""
    out = np.zeros(data.ne)
    for row, i in enumerate(data.efc_id[: data.ne]):
        other, kind = model.eq_obj2id[i], int(model.eq_type[i])
        if other < 0 or kind not in (mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtEq.mjEQ_TENDON):
            continue
        if kind == mujoco.mjtEq.mjEQ_JOINT:
            place = model.jnt_qposadr[other]
            x, rate = data.qpos[place] - model.qpos0[place], data.qvel[model.jnt_dofadr[other]]
        else:
            x, rate = data.ten_length[other] - model.tendon_length0[other], data.ten_velocity[other]
        second = np.polynomial.polynomial.polyder(model.eq_data[i, :5], 2)
        out[row] = np.polynomial.polynomial.polyval(x, second) * rate**2
    return out


def accelerations_of(imported, mech, q, qvel, qacc):
    """v̇ of a mechanism for MuJoCo's qacc."""
    places = imported.coordinates

    def speeds(q, qvel):
        return places.v(places.qpos(q), qvel)

    v = speeds(q, qvel)
    rates = mbd.coordinate_rates(mech, q, v)
    return jax.jvp(speeds, (q, jnp.asarray(qvel)), (rates, jnp.asarray(qacc)))[1]
