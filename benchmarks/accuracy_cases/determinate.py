"""Which part of a joint's force the equations of motion determine."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd


def determinate_part(mech: mbd.Mechanism, joint: str, states: Any) -> np.ndarray:
    """Projections (n, 3, 3) of a joint's force on its unique part, at each of the states (n, nq).

    A set of joint wrenches with zero resultant on every body may be added to any solution: the
    forces of such sets on the joint are not unique.
    """
    maps = jax.jit(lambda qs: jax.lax.map(lambda q: _maps(mech, joint, q), qs))
    loads, forces = (np.asarray(x) for x in maps(jnp.asarray(states)))
    out = []
    for load, force in zip(loads, forces, strict=True):
        _, sizes, vh = np.linalg.svd(load)
        rank = int(np.sum(sizes > 1e-9 * sizes.max(initial=0.0)))
        u, spread, _ = np.linalg.svd(force @ vh[rank:].T)
        loose = u[:, : int(np.sum(spread > 1e-6))]
        out.append(np.eye(3) - loose @ loose.T)
    return np.array(out)


def _maps(mech: mbd.Mechanism, joint: str, q: Any) -> tuple[Any, Any]:
    """Maps of all joints' wrench coordinates to the loads on bodies and to one joint's force."""
    poses = mbd.poses(mech, q)
    bodies = list(mech.structure.bodies)
    points = np.array([np.asarray(x) for x in mech.points.values()])
    length = max(float(np.ptp(points, axis=0).max()), 1e-9) if len(points) else 1.0
    columns, own = [], []
    for edge in mech.structure.joints:
        wrenches, point = _wrenches(mech, edge.name, poses, q)
        block = jnp.zeros((6 * len(bodies), wrenches.shape[1]))
        for body, sign in ((edge.b, 1.0), (edge.a, -1.0)):
            if body in bodies:
                arm = (point - poses[body].position)[:, None]
                moment = wrenches[:3] + jnp.cross(arm, wrenches[3:], axis=0)
                rows = 6 * bodies.index(body) + np.arange(6)
                block = block.at[rows].add(sign * jnp.concatenate([moment / length, wrenches[3:]]))
        columns.append(block)
        own.append(wrenches[3:] * (1.0 if edge.name == joint else 0.0))
    return jnp.concatenate(columns, axis=1), jnp.concatenate(own, axis=1)


def _wrenches(mech: mbd.Mechanism, name: str, poses: Any, q: Any) -> tuple[Any, Any]:
    """Constraint wrenches (6, n) ``[n; f]`` of a joint, and the point of b that they act at."""
    joint = mech.joint(name)
    a = mbd.point_position(mech, q, joint.a, joint.point_a)
    b = mbd.point_position(mech, q, joint.b, joint.point_b)
    if not joint.rows:
        return jnp.zeros((6, 0)), b
    return joint.wrenches(poses[joint.a].rotation, poses[joint.b].rotation, b - a), b
