"""Files of Pinocchio's values at given states: ``joints`` in a tree and ``states``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.missing_axes import find_missing_axes
from accuracy_cases.pin_tree import Link, UnknownJoint, build, displaced, read_links, to_engine
from accuracy_cases.report import Row, compare, note, unsupported

GIVEN = ("q", "v", "tau", "a")


def detect(data: dict[str, Any]) -> bool:
    joints = data.get("joints")
    return bool(joints) and "states" in data and "idx_q" in joints[0] and "closing" not in data


def check(data: dict[str, Any], folder: Path) -> list[Row]:
    case = data.get("name", "robot")
    try:
        links = read_links(data["joints"])
        links, notes = find_missing_axes(links, data)
    except UnknownJoint as error:
        return [unsupported(case, str(error))]
    rows = [note(case, text) for text in notes]
    mech = build(links, data.get("gravity", [0.0, 0.0, -9.81]))
    state_of = jax.jit(lambda s: values(mech, links, s))
    derivatives_of = jax.jit(lambda s: derivatives(mech, links, s))
    ours, theirs = [], []
    for state in data["states"]:
        given = {k: jnp.asarray(state[k], float) for k in GIVEN if k in state}
        found = dict(state_of(given))
        if {"dqdd_dq", "dqdd_dv"} & set(state):
            found |= derivatives_of(given)
        ours.append(jax.tree_util.tree_map(np.asarray, found))
        theirs.append(_flat(state))
    if "total_mass" in data:
        total = sum(float(b.mass) for b in mech.bodies.values())
        rows.append(compare(case, "total_mass", total, data["total_mass"]))
    stated = data.get("mujoco_cross_check") or {}
    limits = {"M": stated.get("max_abs_M"), "nle": stated.get("max_abs_bias")}
    for key in dict.fromkeys(k for s in theirs for k in s if k not in GIVEN):
        pairs = [(o.get(key), t[key]) for o, t in zip(ours, theirs, strict=True) if key in t]
        if pairs[0][0] is None:
            rows.append(unsupported(case, f"unknown quantity '{key}'"))
            continue
        a, b = (np.stack([np.asarray(x, float) for x in part]) for part in zip(*pairs, strict=True))
        limit = limits.get(key)
        basis = "stated cross-check" if limit else ""
        rows.append(compare(case, f"{key} ({len(a)} states)", a, b, allowed=limit, basis=basis))
    return rows


def _flat(state: dict[str, Any]) -> dict[str, Any]:
    out = {}
    for key, value in state.items():
        if isinstance(value, dict):
            out |= {f"{key}.{k}": v for k, v in value.items()}
        else:
            out[key] = value
    return out


def values(mech: mbd.Mechanism, links: list[Link], given: dict[str, Any]) -> dict[str, Any]:
    """All quantities that a state may list, by the file's names."""
    q, v = given["q"], given["v"]
    s = to_engine(mech, links, q, v)
    mass, h = mbd.mass_matrix(mech, s.q), mbd.bias(mech, s.q, s.v)
    out = {
        "M": s.turn.T @ mass @ s.turn,
        "nle": s.turn.T @ (mass @ s.drift + h),
        "gravity": s.turn.T @ mbd.bias(mech, s.q, jnp.zeros_like(s.v)),
        "T": mbd.kinetic_energy(mech, s.q, s.v),
        "V": mbd.potential_energy(mech, s.q),
        "com": _centre(mech, s.q),
        "centroidal_momentum_lin_ang": _momentum(mech, s.q, s.v),
    }
    if "a" in given:
        vdot = s.turn @ given["a"] + s.drift
        out["rnea"] = s.turn.T @ mbd.inverse_dynamics(mech, s.q, s.v, vdot)[0]
    if "tau" in given:
        out["aba_qdd"] = accelerations(mech, links, q, v, given["tau"])[0]
    last = links[-1]
    rotation, _ = mbd.poses(mech, s.q)[last.name]
    jacobian = jax.jacfwd(lambda u: _last_twist(mech, last, s.q, u))(s.v)
    out |= {
        "last_joint.pos": mbd.point_position(mech, s.q, last.name, last.origin),
        "last_joint.R": rotation @ last.frame,
        "last_joint.jacobian_lin_ang_world_aligned": jacobian @ s.turn,
    }
    return out


def accelerations(
    mech: mbd.Mechanism, links: list[Link], q: Any, v: Any, tau: Any
) -> tuple[Any, Any]:
    """Pinocchio's accelerations under its torques, and λ."""
    s = to_engine(mech, links, q, v)
    effort = jnp.linalg.solve(s.turn.T, tau)
    layout = mbd.topology(mech).layout
    inputs = {link.name: effort[layout[link.name].v] for link in links}
    vdot, lam = mbd.forward_dynamics(mech, s.q, s.v, inputs=inputs)
    return jnp.linalg.solve(s.turn, vdot - s.drift), lam


def derivatives(mech: mbd.Mechanism, links: list[Link], given: dict[str, Any]) -> dict[str, Any]:
    """Derivatives of the accelerations along Pinocchio's tangent directions."""
    q, v, tau = given["q"], given["v"], given["tau"]

    def moved(change: Any) -> Any:
        return accelerations(mech, links, displaced(links, q, change), v, tau)[0]

    return {
        "dqdd_dq": jax.jacfwd(moved)(jnp.zeros_like(v)),
        "dqdd_dv": jax.jacfwd(lambda u: accelerations(mech, links, q, u, tau)[0])(v),
    }


def _last_twist(mech: mbd.Mechanism, last: Link, q: Any, v: Any) -> Any:
    linear = mbd.point_velocity(mech, q, v, last.name, last.origin)
    return jnp.concatenate([linear, mbd.body_velocities(mech, q, v)[last.name][:3]])


def _centre(mech: mbd.Mechanism, q: Any) -> Any:
    poses = mbd.poses(mech, q)
    total = sum(b.mass for b in mech.bodies.values())
    return sum(b.mass * poses[n].position for n, b in mech.bodies.items()) / total


def _momentum(mech: mbd.Mechanism, q: Any, v: Any) -> Any:
    poses, twists, centre = mbd.poses(mech, q), mbd.body_velocities(mech, q, v), _centre(mech, q)
    linear, angular = jnp.zeros(3), jnp.zeros(3)
    for name, body in mech.bodies.items():
        r, x = poses[name]
        omega, velocity = twists[name][:3], twists[name][3:]
        linear = linear + body.mass * velocity
        angular = angular + r @ (body.inertia @ (r.T @ omega))
        angular = angular + body.mass * jnp.cross(x - centre, velocity)
    return jnp.concatenate([linear, angular])
