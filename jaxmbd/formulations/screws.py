"""Screw matrix S and constraint matrix Λ of every joint type, in the global frame.

Ghaedrahmati et al. 2019, appendix, (29)-(46): the twist ``[ω; v]`` of b relative to a, at b's
joint point, is ``S q̇``; the wrenches ``[n; f]`` on b that the joint transmits there are ``Λ λ`` and
do no work on it: ``Λᵀ S = 0``. With u the joint's axis and e1, e2 perpendicular to it, all turning
with a,

    revolute     S = [u; 0]                  Λ = [0 0 0 e1 e2; 1 1 1 0 0]   (three unit forces)
    prismatic    S = [0; u]                  Λ = [0 0 1 1 1; e1 e2 0 0 0]   (three unit moments)
    helical      S = [u; p u]                Λ = [0 0 −p u e1 e2; e1 e2 u 0 0]
    cylindrical  S = [u 0; 0 u]              Λ = [0 0 e1 e2; e1 e2 0 0]
    universal    S = [u u'; 0 0]             Λ = [0 0 0 u×u'; 1 1 1 0]
    spherical    S = [1 1 1; 0 0 0]          Λ = [0 0 0; 1 1 1]
    planar       S = [u 0 0; 0 e1 e2]        Λ = [0 e1 e2; u 0 0]
    rod          S = [1 1 1 0 0; 0 0 0 e e'] Λ = [0; d]       (e, e' perpendicular to the rod d)
    fixed        S empty, Λ all six;  free   S all six, Λ empty
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.formulations.constraints import FORCE_ROWS, Pose, Sketch, points
from jaxmbd.model import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)
from jaxmbd.spatial import perpendicular_pair


def _columns(*pairs: tuple[Array, Array]) -> Array:
    """(6, n) from pairs of (angular or moment, linear or force) directions."""
    return jnp.stack([jnp.concatenate(p) for p in pairs], axis=1)


def _directions(joint: Joint, s: Sketch, a: Pose, b: Pose) -> tuple[Array, ...]:
    """u, e1, e2 of a joint, then the zero and the three unit vectors."""
    triad = a.rotation @ s.triad_a
    if isinstance(joint, Rod):
        start, end = points(s, a, b)
        u = (end - start) / jnp.linalg.norm(end - start)
        triad = jnp.stack([u, *perpendicular_pair(u)], axis=1)
    return *triad.T, jnp.zeros(3, triad.dtype), *jnp.eye(3, dtype=triad.dtype)


def screw_matrix(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "6 f"]:
    """S: unit twists [ω; v] of b relative to a at b's joint point, world axes.

    Args:
        joint: the joint, of which type and numbers are used.
        s: the joint as drawn.
        a: pose of the first body.
        b: pose of the second body.

    Raises:
        TypeError: the joint type has no screw matrix here.
    """
    if type(joint) not in FORCE_ROWS:
        known = [kind.__name__ for kind in FORCE_ROWS]
        raise TypeError(f"no screw matrix for a {type(joint).__name__} joint; there are {known}")
    u, e1, e2, zero, x, y, z = _directions(joint, s, a, b)
    turns, shifts = [(w, zero) for w in (x, y, z)], [(zero, w) for w in (x, y, z)]
    match joint:
        case Revolute():
            return _columns((u, zero))
        case Prismatic():
            return _columns((zero, u))
        case Helical():
            return _columns((u, jnp.asarray(joint.pitch) * u))
        case Cylindrical():
            return _columns((u, zero), (zero, u))
        case Universal():
            return _columns((u, zero), (b.rotation @ s.triad_b[:, 0], zero))
        case Spherical():
            return _columns(*turns)
        case Planar():
            return _columns((u, zero), (zero, e1), (zero, e2))
        case Rod():
            return _columns(*turns, (zero, e1), (zero, e2))
        case Free():
            return _columns(*turns, *shifts)
        case Fixed():
            return jnp.zeros((6, 0), u.dtype)
    raise AssertionError(type(joint))


def constraint_matrix(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "6 rows"]:
    """Λ: unit wrenches [n; f] of a on b at b's joint point, world axes; ``Λᵀ S = 0``.

    A joint type that is not in the list above, and the planar form of a joint, uses the wrenches
    that it defines itself.

    Args:
        joint: the joint, of which type and numbers are used.
        s: the joint as drawn.
        a: pose of the first body.
        b: pose of the second body.
    """
    if type(joint) not in FORCE_ROWS:
        start, end = points(s, a, b)
        return joint.wrenches(a.rotation, b.rotation, end - start)
    u, e1, e2, zero, x, y, z = _directions(joint, s, a, b)
    forces, moments = [(zero, w) for w in (x, y, z)], [(w, zero) for w in (x, y, z)]
    across = [(zero, e1), (zero, e2)]
    tilts = [(e1, zero), (e2, zero)]
    match joint:
        case Revolute():
            return _columns(*forces, *tilts)
        case Prismatic():
            return _columns(*across, *moments)
        case Helical():
            return _columns(*across, (-jnp.asarray(joint.pitch) * u, u), *tilts)
        case Cylindrical():
            return _columns(*across, *tilts)
        case Universal():
            normal = jnp.cross(u, b.rotation @ s.triad_b[:, 0])
            return _columns(*forces, (normal / jnp.linalg.norm(normal), zero))
        case Spherical():
            return _columns(*forces)
        case Planar():
            return _columns((zero, u), *tilts)
        case Rod():
            return _columns((zero, u))
        case Free():
            return jnp.zeros((6, 0), u.dtype)
        case Fixed():
            return _columns(*forces, *moments)
    raise AssertionError(type(joint))
