"""A robot described in URDF against Pinocchio: mass matrix, bias and accelerations.

Pinocchio knows neither dampers nor friction nor mimic joints of a URDF, so that the mechanism is
compared without them.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pinocchio

from import_cases.against_mujoco import ours, relative
from jaxmbd.spatial.rotations import rotation_matrix

try:
    import pinocchio
except ImportError:  # the benchmark's extra is not installed
    pinocchio = None


def version():
    """Pinocchio's version, or None where it is not installed."""
    return None if pinocchio is None else pinocchio.__version__


class PinocchioSpeeds:
    """Pinocchio's speeds in place of MuJoCo's qvel; a root's linear part is in its own axes.

    Both have the position and orientation of the root's frame, and the angular velocity in its
    axes.
    """

    def __init__(self, places, order, *, floating):
        self.places, self.floating = places, floating
        self.order = np.asarray(order)  # index in Pinocchio's v of each of qvel

    def qpos(self, q):
        return self.places.qpos(q)

    def v(self, qpos, speeds):
        qvel = speeds[self.order]
        if self.floating:
            qvel = jnp.concatenate([rotation_matrix(qpos[3:7]) @ qvel[:3], qvel[3:]])
        return self.places.v(qpos, qvel)

    def qvel(self, q, v):
        qpos, qvel = self.places.qpos(q), self.places.qvel(q, v)
        if self.floating:
            qvel = jnp.concatenate([rotation_matrix(qpos[3:7]).T @ qvel[:3], qvel[3:]])
        return qvel[np.argsort(self.order)]


def model_of(path, *, floating):
    """Pinocchio's model of a URDF file."""
    if not floating:
        return pinocchio.buildModelFromUrdf(str(path))
    return pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())


def orders(imported, model, *, floating):
    """For each joint of the import but the root: its index in qpos, and its Pinocchio joint."""
    names = [e.name for e in imported.mechanism.structure.joints if e.name != "root"]
    places = [j for j in imported.coordinates.joints if j.kind != "free"]
    assert len(names) == len(places) and floating + len(names) + 1 == model.njoints
    return [(j, model.getJointId(n)) for n, j in zip(names, places, strict=True)]


def pinocchio_q(model, pairs, qpos, *, floating):
    q = pinocchio.neutral(model)
    if floating:
        q[:7] = np.concatenate([qpos[:3], qpos[4:7], qpos[3:4]])
    for place, joint in pairs:
        start, x = model.idx_qs[joint], qpos[place.qpos]
        q[start : start + model.nqs[joint]] = (
            [np.cos(x), np.sin(x)] if model.nqs[joint] == 2 else [x]
        )
    return q


def errors(imported, model, *, floating, states=3, seed=0):
    """Largest relative errors of M, bias and accelerations."""
    mech = imported.mechanism.replace(
        forces=dict.fromkeys(imported.mechanism.forces),
        couplings=dict.fromkeys(imported.mechanism.couplings),
    )
    pairs = orders(imported, model, floating=floating)
    order = list(range(6 * floating)) + [0] * len(pairs)
    for place, joint in pairs:
        order[place.dof] = model.idx_vs[joint]
    places = PinocchioSpeeds(imported.coordinates, order, floating=floating)
    rng, found, data = np.random.default_rng(seed), [], model.createData()
    compute = ours(imported, mech, [], places)
    model.gravity.linear[:] = np.asarray(mech.gravity)
    for _ in range(states):
        qpos = np.zeros(len(pairs) + 7 * floating)
        if floating:
            turn = rng.normal(size=4)
            qpos[:7] = [*rng.normal(size=3), *(turn / np.linalg.norm(turn))]
        qpos[7 * floating :] = rng.uniform(-1, 1, len(pairs))
        speeds = rng.normal(size=model.nv)
        q = pinocchio_q(model, pairs, qpos, floating=floating)
        theirs = pinocchio.aba(model, data, q, speeds, np.zeros(model.nv))
        given = imported.coordinates.q(qpos), speeds, theirs, np.zeros(0)
        x = {k: np.asarray(y) for k, y in compute(*given).items()}
        crba = pinocchio.crba(model, data, q)
        mass = np.triu(crba) + np.triu(crba, 1).T
        mass = x["turn"].T @ mass @ x["turn"]
        bias = x["turn"].T @ pinocchio.nonLinearEffects(model, data, q, speeds)
        scale = np.sqrt(np.diag(mass))
        found.append(
            {
                "mass": np.abs((x["mass"] - mass) / np.outer(scale, scale)).max(),
                "bias": relative(x["bias"], bias),
                "acceleration": relative(x["vdot"], x["theirs"]),
                "condition": np.linalg.cond(mass / np.outer(scale, scale)),
            }
        )
    return {key: float(max(e[key] for e in found)) for key in found[0]}
