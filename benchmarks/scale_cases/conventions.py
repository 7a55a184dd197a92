"""Speeds of balls and of free bodies: in a's axes here, in b's own axes in Pinocchio."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from throughput_cases.tree import Tree

from jaxmbd.spatial.rotations import rotation_matrix


def rotations(tree: Tree, q: np.ndarray) -> dict[int, tuple[str, np.ndarray]]:
    """First speed of each ball and free body, with its kind and its rotation (3, 3)."""
    found, at, row = {}, 0, 0
    for link in tree.links:
        size, count = {"revolute": (1, 1), "spherical": (4, 3), "free": (7, 6)}[link.kind]
        if link.kind != "revolute":
            found[row] = link.kind, np.asarray(rotation_matrix(jnp.asarray(q[at : at + 4])))
        at, row = at + size, row + count
    return found


def speeds_for_peer(tree: Tree, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Speeds (batch, nv) in Pinocchio's convention; of a free body the linear part comes first."""
    v = v.copy()
    for row, (kind, turn) in rotations(tree, q).items():
        parts = [v[:, row + k : row + k + 3] @ turn for k in ((3, 0) if kind == "free" else (0,))]
        v[:, row : row + 3 * len(parts)] = np.concatenate(parts, axis=1)
    return v


def accelerations_of_peer(tree: Tree, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Pinocchio's accelerations (batch, nv) in ours; `v` are our speeds."""
    a = a.copy()
    for row, (kind, turn) in rotations(tree, q).items():
        if kind == "spherical":
            a[:, row : row + 3] = a[:, row : row + 3] @ turn.T
            continue
        linear, angular = a[:, row : row + 3] @ turn.T, a[:, row + 3 : row + 6] @ turn.T
        omega, u = v[:, row : row + 3], v[:, row + 3 : row + 6]
        a[:, row : row + 6] = np.concatenate([angular, linear + np.cross(omega, u)], axis=1)
    return a
