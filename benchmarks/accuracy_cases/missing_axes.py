"""Axes that a file omits (Pinocchio's unaligned joints), found from its own values.

Along the chain to the last joint they are columns of its Jacobian. Others are fitted to the mass
matrices, weights and centres of mass of the states, and checked by all other quantities.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from accuracy_cases.pin_tree import Link, UnknownJoint, build, quaternion, to_engine
from jaxmbd.spatial.rotations import axis_rotation, rotation_matrix

STATES = 4
TRIALS = 10


def find_missing_axes(links: list[Link], data: dict[str, Any]) -> tuple[list[Link], list[str]]:
    """The links with all axes, and how each missing one was found."""
    missing = [link.name for link in links if link.axis is None]
    if not missing:
        return links, []
    links, notes = _from_jacobian(links, data["states"][0])
    notes = [f"axis of '{n}' is not in the file: taken from its Jacobian" for n in notes]
    rest = [i for i, link in enumerate(links) if link.axis is None]
    if rest:
        links = _fit(links, rest, data)
        notes += [
            f"axis of '{links[i].name}' is not in the file: fitted to its mass matrices"
            for i in rest
        ]
    return links, notes


def _from_jacobian(links: list[Link], state: dict[str, Any]) -> tuple[list[Link], list[str]]:
    jacobian = (state.get("last_joint") or {}).get("jacobian_lin_ang_world_aligned")
    if jacobian is None:
        return links, []
    jacobian = np.asarray(jacobian)
    by_name = {link.name: i for i, link in enumerate(links)}
    chain, name = [], links[-1].name
    while name in by_name:
        chain.append(by_name[name])
        name = links[by_name[name]].parent
    out, found, turn = list(links), [], np.eye(3)
    for i in reversed(chain):
        link = out[i]
        turn = turn @ np.asarray(link.data["placement_R"], float)
        if link.axis is None:
            rows = slice(0, 3) if link.kind == "prismatic" else slice(3, 6)
            axis = turn.T @ jacobian[rows, link.v.start]
            link = out[i] = replace(link, axis=axis / np.linalg.norm(axis))
            found.append(link.name)
        turn = turn @ _own_rotation(link, np.asarray(state["q"], float)[link.q])
    return out, found


def _own_rotation(link: Link, q: np.ndarray) -> np.ndarray:
    if link.kind == "prismatic":
        return np.eye(3)
    if link.kind in ("free", "spherical"):
        return np.asarray(rotation_matrix(quaternion(jnp.asarray(q[-4:]))))
    angle = q[0] if link.kind == "revolute" else np.arctan2(q[-1], q[-2])
    return np.asarray(axis_rotation(jnp.asarray(link.axis), jnp.asarray(angle)))


def _fit(links: list[Link], rest: list[int], data: dict[str, Any]) -> list[Link]:
    """Gauss-Newton over the unit vectors, from the best of the six coordinate directions."""
    states = data["states"][:STATES]
    known = [k for k in ("M", "gravity", "com") if k in states[0]]
    theirs = jnp.concatenate([jnp.ravel(jnp.asarray(s[k], float)) for s in states for k in known])

    def with_axes(axes: Any) -> list[Link]:
        out = list(links)
        for i, axis in zip(rest, axes, strict=True):
            out[i] = replace(out[i], axis=axis / jnp.linalg.norm(axis))
        return out

    @jax.jit
    def error(axes: Any) -> Any:
        fitted = with_axes(axes)
        mech = build(fitted, data.get("gravity", [0.0, 0.0, -9.81]))
        ours = [_known_values(mech, fitted, jnp.asarray(s["q"], float), known) for s in states]
        return jnp.concatenate(ours) - theirs

    jacobian = jax.jit(jax.jacfwd(error))
    directions = [np.asarray(s) * u for u in np.eye(3) for s in (1.0, -1.0)]
    axes = np.tile([0.0, 0.0, 1.0], (len(rest), 1))
    for i, _ in itertools.product(range(len(rest)), range(2)):
        trials = [np.concatenate([axes[:i], [d], axes[i + 1 :]]) for d in directions]
        axes = min(trials, key=lambda x: float(jnp.linalg.norm(error(x))))
    size, rng = float(jnp.linalg.norm(theirs)), np.random.default_rng(0)
    for _ in range(TRIALS):
        for _ in range(30):
            j = np.asarray(jacobian(axes)).reshape(-1, axes.size)
            step = np.linalg.lstsq(j, np.asarray(error(axes)), rcond=1e-8)[0]
            axes = axes - step.reshape(axes.shape)
            axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        if float(jnp.linalg.norm(error(axes))) < 1e-8 * size:
            break
        axes = rng.normal(size=axes.shape)
    else:
        names = [links[i].name for i in rest]
        raise UnknownJoint(
            f"the file omits the axes of {names}, and its values do not determine them"
        )
    return [replace(link, axis=np.asarray(link.axis)) for link in with_axes(jnp.asarray(axes))]


def _known_values(mech: mbd.Mechanism, links: list[Link], q: Any, known: list[str]) -> Any:
    s = to_engine(mech, links, q, jnp.zeros(links[-1].v.stop))
    poses, total = mbd.poses(mech, s.q), sum(b.mass for b in mech.bodies.values())
    parts = {
        "M": s.turn.T @ mbd.mass_matrix(mech, s.q) @ s.turn,
        "gravity": s.turn.T @ mbd.bias(mech, s.q, jnp.zeros_like(s.v)),
        "com": sum(b.mass * poses[n].position for n, b in mech.bodies.items()) / total,
    }
    return jnp.concatenate([jnp.ravel(parts[k]) for k in known])
