"""Which components of joint forces the equations of motion determine."""

from __future__ import annotations

from typing import Any

import numpy as np

import jaxmbd as mbd


def determinate_forces(mech: mbd.Mechanism, joint: str, states: Any) -> np.ndarray:
    """Whether the force of a joint is determined: (3,) booleans, x, y, z, at every one of `states`.

    A set of joint wrenches that loads no body may be added to any solution; a component is
    determined where no such set touches it.
    """
    return np.all([_at(mech, joint, q) for q in states], axis=0)


def _at(mech: mbd.Mechanism, joint: str, q: Any) -> np.ndarray:
    poses = {n: tuple(map(np.asarray, p)) for n, p in mbd.poses(mech, q).items()}
    bodies = [n for n in poses if n != "ground"]
    length = max(float(np.ptp([np.asarray(x) for x in mech.points.values()], axis=0).max()), 1e-9)
    columns, own = [], []
    for name in mech.joints:
        wrenches, point = _wrenches(mech, name, poses, q)
        block = np.zeros((6 * len(bodies), wrenches.shape[1]))
        j = mech.joints[name]
        for body, sign in ((j.b, 1.0), (j.a, -1.0)):
            if body == "ground":
                continue
            arm = point - poses[body][1]
            moment = wrenches[:3] + np.cross(arm, wrenches[3:], axisb=0, axisc=0)
            rows = 6 * bodies.index(body)
            block[rows : rows + 6] += sign * np.concatenate([moment / length, wrenches[3:]])
        columns.append(block)
        own.append(wrenches[3:] if name == joint else np.zeros((3, wrenches.shape[1])))
    matrix, force = np.concatenate(columns, axis=1), np.concatenate(own, axis=1)
    _, sizes, vh = np.linalg.svd(matrix)
    rank = int(np.sum(sizes > 1e-9 * sizes.max()))
    return np.max(np.abs(force @ vh[rank:].T), axis=1, initial=0.0) < 1e-6


def _wrenches(
    mech: mbd.Mechanism, name: str, poses: dict[str, Any], q: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Constraint wrenches (6, n) ``[n; f]`` of a joint, and the point of b that they act at."""
    joint = mech.joint(name)
    a, b = (
        np.asarray(mbd.point_position(mech, q, body, at))
        for body, at in ((joint.a, joint.point_a), (joint.b, joint.point_b))
    )
    if not joint.rows:
        return np.zeros((6, 0)), b
    return np.asarray(joint.wrenches(poses[joint.a][0], poses[joint.b][0], b - a)), b
