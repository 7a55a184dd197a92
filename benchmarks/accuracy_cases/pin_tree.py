"""Trees in Pinocchio's form: joint frames, the mechanism, and the map between speeds.

Pinocchio's coordinates are zero at our drawn configuration. Its free flyer has q = (x, y, z,
quaternion xyzw) of the joint's frame and v = (linear, angular) in the body's axes; ours has the
quaternion scalar first, the displacement of the COM, and speeds in the parent's axes. With
``v_ours = T(q) v_pin`` its equations are ``M_pin = Tᵀ M T``, ``h_pin = Tᵀ (M Ṫ v_pin + h)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

import jaxmbd as mbd
from jaxmbd.spatial.rotations import cross, rotation_matrix

AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
UNALIGNED = {
    "RevoluteUnaligned": "revolute",
    "RevoluteUnboundedUnaligned": "unbounded",
    "PrismaticUnaligned": "prismatic",
}
ALIGNED = {"R": "revolute", "RUB": "unbounded", "P": "prismatic"}
OTHERS = {"FreeFlyer": "free", "Spherical": "spherical", "Planar": "planar"}


class UnknownJoint(ValueError):
    """A joint type that is not supported here."""


@dataclass(frozen=True)
class Link:
    """A joint and the body it carries; `frame` and `origin` are its frame in the world as drawn."""

    name: str
    parent: str
    kind: str
    q: slice
    v: slice
    frame: np.ndarray
    origin: np.ndarray
    axis: np.ndarray | None
    com: np.ndarray
    data: dict[str, Any]


class EngineState(NamedTuple):
    """Our coordinates and speeds, T (nv, nv), and Ṫ v_pin (nv,)."""

    q: Array
    v: Array
    turn: Array
    drift: Array


def read_links(joints: list[dict[str, Any]]) -> list[Link]:
    """The joints in order; `axis` is None where the file leaves it out."""
    links: dict[str, Link] = {}
    for j in joints:
        parent = links.get(j["parent"])
        frame, origin = (parent.frame, parent.origin) if parent else (np.eye(3), np.zeros(3))
        kind, axis = _kind(j)
        links[j["name"]] = Link(
            name=j["name"],
            parent=j["parent"] if parent else "ground",
            kind=kind,
            q=slice(j["idx_q"], j["idx_q"] + j["nq"]),
            v=slice(j["idx_v"], j["idx_v"] + j["nv"]),
            frame=frame @ np.asarray(j["placement_R"], float),
            origin=origin + frame @ np.asarray(j["placement_p"], float),
            axis=axis,
            com=np.asarray(j["com"], float),
            data=j,
        )
    return list(links.values())


def _kind(joint: dict[str, Any]) -> tuple[str, np.ndarray | None]:
    model = joint["type"].removeprefix("JointModel")
    if model in UNALIGNED:
        axis = joint.get("axis")
        return UNALIGNED[model], None if axis is None else np.asarray(axis, float)
    if model in OTHERS:
        return OTHERS[model], np.array([0.0, 0.0, 1.0])
    if model[:-1] in ALIGNED and model[-1:] in AXES:
        return ALIGNED[model[:-1]], np.asarray(AXES[model[-1]])
    raise UnknownJoint(f"joint '{joint['name']}' is of type {joint['type']!r}")


def build(links: list[Link], gravity: Any, **closing: Any) -> mbd.Mechanism:
    """The mechanism, its bodies named as their joints; `closing` holds further joints, cut."""
    bodies, joints = {}, {}
    for link in links:
        w = link.frame
        bodies[link.name] = mbd.Body(
            mass=link.data["mass"],
            com=link.origin + w @ link.com,
            inertia=w @ np.asarray(link.data["inertia_com"], float) @ w.T,
        )
        joints[link.name] = _joint(link)
    return mbd.Mechanism(bodies, {**joints, **closing}, gravity=gravity, cut=tuple(closing) or None)


def _joint(link: Link) -> Any:
    a, b, w = link.parent, link.name, link.frame
    if link.kind == "free":
        return mbd.Free(a, b)
    if link.kind == "spherical":
        return mbd.Spherical(a, b, link.origin)
    if link.kind == "planar":
        return mbd.Planar(a, b, link.origin, normal=w[:, 2], x_axis=w[:, 0])
    axis = w @ link.axis
    if link.kind == "prismatic":
        return mbd.Prismatic(a, b, link.origin, axis)
    return mbd.Revolute(a, b, link.origin, axis)


def quaternion(xyzw: Any) -> Array:
    """Scalar first from scalar last."""
    return jnp.stack([xyzw[3], xyzw[0], xyzw[1], xyzw[2]])


def to_engine(mech: mbd.Mechanism, links: list[Link], q: Array, v: Array) -> EngineState:
    """Pinocchio's coordinates and speeds in ours."""
    top = mbd.topology(mech)
    ours, turn, drift = jnp.zeros(top.nq), jnp.zeros((top.nv, top.nv)), jnp.zeros(top.nv)
    for link in links:
        place = top.layout[link.name]
        part, block, rate = _map(link, q[link.q], v[link.v])
        ours = ours.at[place.q].set(part)
        turn = turn.at[place.v, link.v].set(block)
        drift = drift.at[place.v].set(rate)
    return EngineState(ours, turn @ v, turn, drift)


def _map(link: Link, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """One joint's coordinates, its block of T, and its part of Ṫ v."""
    one, zero = jnp.eye(link.v.stop - link.v.start), jnp.zeros_like(v)
    if link.kind in ("revolute", "prismatic"):
        return q, one, zero
    if link.kind == "unbounded":
        return jnp.arctan2(q[1], q[0])[None], one, zero
    if link.kind == "planar":
        c, s = q[2], q[3]
        block = jnp.array([[0.0, 0, 1], [0, 0, 0], [0, 0, 0]])
        block = block.at[1:, :2].set(jnp.array([[c, -s], [s, c]]))
        spun = block @ jnp.stack([-v[2] * v[1], v[2] * v[0], 0.0 * v[2]])
        return jnp.stack([jnp.arctan2(s, c), q[0], q[1]]), block, spun
    w = jnp.asarray(link.frame)
    if link.kind == "spherical":
        p = quaternion(q)
        return _turned(w, p), w @ rotation_matrix(p), zero
    p = quaternion(q[3:])
    r = rotation_matrix(p)
    move = w @ (q[:3] + r @ link.com - link.com)
    arm = -_skew(link.com)
    block = jnp.block([[jnp.zeros((3, 3)), w @ r], [w @ r, w @ r @ arm]])
    linear = v[:3] + cross(v[3:], jnp.asarray(link.com))
    return (
        jnp.concatenate([_turned(w, p), move]),
        block,
        jnp.concatenate([jnp.zeros(3), w @ r @ cross(v[3:], linear)]),
    )


def _turned(w: Array, p: Array) -> Array:
    """Quaternion of ``W R(p) Wᵀ``."""
    return jnp.concatenate([p[:1], w @ p[1:]])


def _skew(x: Any) -> Array:
    a, b, c = x
    return jnp.asarray([[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]])


def displaced(links: list[Link], q: Array, change: Array) -> Array:
    """``q ⊕ change``, to first order in the change, along Pinocchio's speeds."""
    out = q
    for link in links:
        here, d = q[link.q], change[link.v]
        if link.kind in ("revolute", "prismatic"):
            new = here + d
        elif link.kind == "unbounded":
            new = jnp.stack([here[0] - here[1] * d[0], here[1] + here[0] * d[0]])
        elif link.kind == "planar":
            x, y, c, s = here
            new = jnp.stack(
                [x + c * d[0] - s * d[1], y + s * d[0] + c * d[1], c - s * d[2], s + c * d[2]]
            )
        elif link.kind == "spherical":
            new = _spun(here, d)
        else:
            r = rotation_matrix(quaternion(here[3:]))
            new = jnp.concatenate([here[:3] + r @ d[:3], _spun(here[3:], d[3:])])
        out = out.at[link.q].set(new)
    return out


def _spun(xyzw: Array, angle: Array) -> Array:
    """``p ∘ (1, angle/2)``, scalar last."""
    u, s = xyzw[:3], xyzw[3]
    half = 0.5 * angle
    return jnp.concatenate([u + s * half + cross(u, half), (s - u @ half)[None]])
