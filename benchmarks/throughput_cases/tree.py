"""A mechanism in numbers, for other engines: a tree of joints, and balls that close loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

import jaxmbd as mbd
from throughput_cases.case import Case, Design


@dataclass(frozen=True)
class Link:
    """A body with the joint that carries it; all in global axes as drawn."""

    name: str
    parent: int
    kind: str  # "revolute", "spherical", or "free" at its centre of mass
    at: np.ndarray
    axis: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True)
class Ball:
    """A point that two links share."""

    a: int
    b: int
    at: np.ndarray


@dataclass(frozen=True)
class Tree:
    """Links in the order of jaxmbd's speeds, parents first."""

    links: tuple[Link, ...]
    balls: tuple[Ball, ...]
    gravity: np.ndarray


def sample(batch: Any, i: int) -> Any:
    """Sample `i` of a batch, as numpy arrays."""
    return jax.tree_util.tree_map(lambda x: np.asarray(x)[i], batch)


def tree(case: Case, design: Design) -> Tree:
    """One design of a case."""
    return of_mechanism(case.mechanism(design))


def of_mechanism(mech: mbd.Mechanism) -> Tree:
    """A mechanism in numbers.

    Raises:
        ValueError: the mechanism has parts that are not translated for other engines here.
    """
    top = mbd.topology(mech)
    if mech.structure.forces or mech.structure.drives:
        raise ValueError("force elements are not translated for other engines")
    links = []
    for i, (body, name) in enumerate(zip(top.bodies, top.tree, strict=True)):
        joint, part = mech.joint(name), mech.bodies[body]
        kind = type(joint).__name__.lower()
        if kind not in ("revolute", "spherical", "free") or top.reversed_[i]:
            raise ValueError(f"joint '{name}' is not translated for other engines")
        axis = np.asarray(getattr(joint, "axis", (0.0, 0.0, 1.0)))
        links.append(
            Link(
                body,
                top.parent[i],
                kind,
                np.asarray(mech.point(joint.point_b)),
                axis / np.linalg.norm(axis),
                float(part.mass),
                np.asarray(mech.com(body)),
                np.asarray(part.inertia),
            )
        )
    balls = []
    for name in top.cut:
        joint = mech.joint(name)
        if type(joint) is not mbd.Spherical:
            raise ValueError(f"cut joint '{name}' is not translated for other engines")
        balls.append(Ball(top.index(joint.a), top.index(joint.b), np.asarray(mech.point(joint.at))))
    return Tree(tuple(links), tuple(balls), np.asarray(mech.gravity))


def scalar_last(q: np.ndarray, links: tuple[Link, ...]) -> np.ndarray:
    """Coordinates with quaternions' scalar last (jaxmbd's and MuJoCo's is first).

    Of a free body the displacement comes first, as in Pinocchio.
    """
    out, at = [], 0
    for link in links:
        n = {"revolute": 1, "spherical": 4, "free": 7}[link.kind]
        part = q[at : at + n]
        if n == 7:
            part = np.concatenate([part[4:], np.roll(part[:4], -1)])
        out.append(np.roll(part, -1) if n == 4 else part)
        at += n
    return np.concatenate(out)
