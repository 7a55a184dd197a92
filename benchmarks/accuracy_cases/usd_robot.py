"""Robots of revolute joints with frames as a USD file stores them, in single precision.

The axes of a planar loop then differ by 1e-7, and its redundant rows contradict each other. `build`
takes them as they are, or with axes that nearly agree made parallel and both halves of a joint at
their mean, as the reference results have them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.report import Row, compare

BASE = "base"
NEARLY_PARALLEL = 1e-6
RELATIVE = 1e-10
"""Of accelerations; the reference's own accuracy is 6e-13."""


def detect(data: dict[str, Any]) -> bool:
    joints = data.get("joints")
    named = joints if isinstance(joints, dict) else {}
    return bool(named) and all("localRot0_wxyz" in joint for joint in named.values())


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    del folder
    case = data["name"]
    mech = build(data)
    states = data["states"]
    q, v = (jnp.stack(x) for x in zip(*(state_of(mech, s) for s in states), strict=True))
    efforts = [{n: jnp.asarray(x) for n, x in s["joint_torque"].items()} for s in states]

    @jax.jit
    def accelerations(q: Any, v: Any, inputs: Any) -> Any:
        return mbd.forward_dynamics(mech, q, v, inputs=inputs)[0]

    found = [accelerations(*x) for x in zip(q, v, efforts, strict=True)]
    layout = mbd.topology(mech).layout
    names = [n for n in data["joints"] if layout[n].v is not None]
    ours = [[vdot[layout[n].v][0] for n in names] for vdot in found]
    theirs = np.array([[s["joint_acceleration"][n] for n in names] for s in states])
    allowed = RELATIVE * np.max(np.abs(theirs))
    text = f"accelerations of {len(names)} joints ({len(states)} states)"
    return [
        compare(case, text, ours, theirs, allowed=allowed, basis=f"{RELATIVE:g} of the largest")
    ]


def build(
    data: dict[str, Any], *, stored: bool = False, cut: tuple[str, ...] | None = None
) -> mbd.Mechanism:
    """The robot on a free base.

    Args:
        data: the file's content.
        stored: frames with the digits of the file, which contradict each other.
        cut: as of `Mechanism`; armatures are left out then, since they keep joints in the tree.
    """
    bodies, joints, forces = {}, {}, {}
    for name, body in data["bodies"].items():
        turn = rotation(body["principalAxes_wxyz"])
        inertia = turn @ np.diag(body["diagonalInertia"]) @ turn.T
        bodies[name] = mbd.Body(body["mass"], origin(data, name) + body["com"], inertia)
    carrying = {j["body1"] for j in data["joints"].values()}
    root = next(n for n in bodies if n not in carrying)
    joints[BASE] = mbd.Free("ground", root)
    axes = stored_axes(data) if stored else parallel_axes(data)
    armature = data["states"][0]["armature"]
    for name, joint in data["joints"].items():
        a, b = joint["body0"], joint["body1"]
        at, at_b = origin(data, a) + joint["localPos0"], origin(data, b) + joint["localPos1"]
        if stored:
            axis_b = rotation(joint["localRot1_wxyz"])[:, 0]
            joints[name] = mbd.Revolute(a, b, at, axes[name], at_b=at_b, axis_b=axis_b)
        else:
            joints[name] = mbd.Revolute(a, b, (at + at_b) / 2.0, axes[name])
        if joint["driven"] and cut is None:
            forces[f"rotor_{name}"] = mbd.Armature(name, armature)
    return mbd.Mechanism(bodies, joints, forces, gravity=data["gravity"], cut=cut)


def origin(data: dict[str, Any], body: str) -> np.ndarray:
    """Origin (3,) [m] of a body's frame as drawn; all are drawn without rotation."""
    return np.array(data["bodies"][body]["translate"])


def stored_axes(data: dict[str, Any]) -> dict[str, np.ndarray]:
    """World axis (3,) of each joint as drawn: the x-axis of its first frame."""
    return {n: rotation(j["localRot0_wxyz"])[:, 0] for n, j in data["joints"].items()}


def parallel_axes(data: dict[str, Any]) -> dict[str, np.ndarray]:
    """The same, those that nearly agree made parallel."""
    found: dict[str, np.ndarray] = {}
    for name, axis in stored_axes(data).items():
        signed = (np.sign(axis @ other) * other for other in found.values())
        near = (x for x in signed if np.linalg.norm(axis - x) < NEARLY_PARALLEL)
        found[name] = next(near, axis)
    return found


def rotation(wxyz: Any) -> np.ndarray:
    """(3, 3) of a quaternion."""
    w, *xyz = np.asarray(wxyz, float) / np.linalg.norm(wxyz)
    x = np.array(xyz)
    cross = np.cross(np.eye(3), x)
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross


def state_of(mech: mbd.Mechanism, state: dict[str, Any]) -> tuple[Any, Any]:
    """q and v of one of the file's states."""
    top = mbd.topology(mech)
    q, v = np.zeros(top.nq), np.zeros(top.nv)
    root = mech.joints[BASE].b
    place = top.layout[BASE]
    quaternion = np.array(state["base_quat_wxyz"])
    q[place.q] = [
        *quaternion / np.linalg.norm(quaternion),
        *np.subtract(state["base_com"], mech.com(root)),
    ]
    v[place.v] = [*state["base_omega_world"], *state["base_v_world"]]
    for name in top.tree:
        if name != BASE:
            q[top.layout[name].q] = state["joint_angle"][name]
            v[top.layout[name].v] = state["joint_rate"][name]
    return jnp.asarray(q), jnp.asarray(v)
