"""The plane in which a mechanism moves, and views on a plane."""

from __future__ import annotations

import re
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbd.graph import topology
from jaxmbd.model import Mechanism

_SAME = 1e-9
"""Greatest part of a unit vector in a direction in which it has none."""


class View(NamedTuple):
    """A view along the normal of a plane.

    Attributes:
        axes: unit vectors (2, 3) to the right and upwards.
    """

    axes: np.ndarray

    @property
    def normal(self) -> np.ndarray:
        """Unit vector (3,) towards the viewer."""
        return np.cross(*self.axes)

    def flat(self, x: np.ndarray) -> np.ndarray:
        """Components (…, 2) of vectors (…, 3)."""
        return np.asarray(x) @ self.axes.T

    def names(self) -> tuple[str, str]:
        """The two axes by name, as "x" and "−y"; empty where one is along no axis."""
        found = []
        for axis in self.axes:
            k = int(np.argmax(np.abs(axis)))
            along = abs(axis[k]) > 1.0 - _SAME
            found.append(f"{'−' if axis[k] < 0.0 else ''}{'xyz'[k]}" if along else "")
        return found[0], found[1]


def normal_of_motion(mech: Mechanism) -> np.ndarray | None:
    """The normal (3,) of the plane in which all of a mechanism moves; None where there is none.

    All joints of the spanning tree turn about it, or slide across it; what the others hold together
    takes no motion out of the plane.
    """
    if mech.structure.planar:
        return np.eye(3)[2]
    turns, slides = [np.zeros((0, 3))], [np.zeros((0, 3))]
    for name in topology(mech).tree:
        joint = mech.joint(name)
        about, along = joint.subspace(jnp.asarray(joint.neutral()))
        turns.append(np.asarray(about).T)
        slides.append(np.asarray(along).T)
    about, along = np.concatenate(turns), np.concatenate(slides)
    about = about[np.linalg.norm(about, axis=1) > _SAME]
    if not len(about):
        return None
    normal = about[0] / np.linalg.norm(about[0])
    tilted = np.linalg.norm(np.cross(about, normal), axis=1)
    if np.any(tilted > _SAME) or np.any(np.abs(along @ normal) > _SAME):
        return None
    return normal


def view_on(mech: Mechanism, plane: str | None) -> View:
    """The view on a plane, by default on that in which the mechanism moves.

    Args:
        mech: the mechanism.
        plane: two axes, to the right and upwards, each with a minus for its opposite: "xz", "-yz".

    Raises:
        ValueError: `plane` is no such text, or not given and the mechanism moves in none.
    """
    if plane is not None:
        found = re.fullmatch(r"(-?)([xyz])(-?)([xyz])", plane)
        if found is None or found[2] == found[4]:
            raise ValueError(
                f"plane={plane!r}: name the axes to the right and upwards, as 'xz' or '-yz'"
            )
        signs = [-1.0 if sign else 1.0 for sign in (found[1], found[3])]
        rows = ["xyz".index(found[k]) for k in (2, 4)]
        return View(np.array(signs)[:, None] * np.eye(3)[rows])
    normal = normal_of_motion(mech)
    if normal is None:
        raise ValueError(
            "this mechanism does not move in a plane: name the plane of the view, as 'xz' or '-yz'"
        )
    return _upright(normal, np.asarray(mech.field()))


def _upright(normal: np.ndarray, gravity: np.ndarray) -> View:
    """The view along a normal with gravity downwards, else z or y upwards; x to the right."""
    for up in (-gravity, *np.eye(3)[[2, 1]]):
        up = up - (up @ normal) * normal
        if np.linalg.norm(up) > 1e-3 * max(1.0, float(np.linalg.norm(gravity))):
            break
    up = up / np.linalg.norm(up)
    right = np.cross(up, normal)
    return View(np.stack([right if right[np.argmax(np.abs(right))] > 0.0 else -right, up]))
