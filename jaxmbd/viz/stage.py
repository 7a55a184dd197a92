"""Where a scene is seen from, and the grid on its ground."""

from __future__ import annotations

import numpy as np

from jaxmbd.viz.scene import Scene
from jaxmbd.viz.solids import frame_along

_EYE = np.array([0.55, -0.75, 0.38])
"""Direction from the middle of the scene to the camera: along two axes across `up`, and `up`."""
FIELD = np.radians(32.0)
"""Vertical field of view of the camera [rad]."""
_ASPECT, _MARGIN = 1.5, 1.05
"""Width of the picture over its height, and the room around what is seen."""


def eye(scene: Scene) -> np.ndarray:
    """Where a camera sees the whole scene from (3,) [m]: along the normal of a planar one."""
    up = scene.up
    across = np.eye(3)[0] if abs(up[0]) < 0.9 else np.eye(3)[1]
    across = across - (across @ up) * up
    across /= np.linalg.norm(across)
    axes = np.stack([across, np.cross(up, across), up])
    back = np.eye(3)[2] if scene.mech.structure.planar else _EYE / np.linalg.norm(_EYE) @ axes
    right = np.cross(up, back)
    right /= np.linalg.norm(right)
    wide, high, deep = (np.abs(x) @ scene.half for x in (right, np.cross(back, right), back))
    away = _MARGIN * max(high, wide / _ASPECT) / np.tan(0.5 * FIELD) + deep
    return scene.centre + away * back


def below(scene: Scene) -> np.ndarray:
    """The point (3,) [m] of the ground under the middle of the scene."""
    return scene.centre + (scene.floor - scene.centre @ scene.up) * scene.up


def cell_size(scene: Scene) -> float:
    """Spacing of the grid on the ground [m]."""
    return round_number(scene.size / 8.0)


def grid_lines(scene: Scene, cells: int = 8) -> np.ndarray:
    """The grid's lines (n, 2, 3) [m]."""
    step, x = cell_size(scene), np.linspace(-1.0, 1.0, 2 * cells + 1)
    ends = np.stack([np.stack([x, -np.ones_like(x)], 1), np.stack([x, np.ones_like(x)], 1)], 1)
    both = cells * step * np.concatenate([ends, ends[..., ::-1]])
    return below(scene) + both @ frame_along(scene.up)[:, :2].T


def round_number(x: float) -> float:
    """1, 2 or 5 times a power of ten, the greatest that is not above x.

    Example:
        >>> from jaxmbd.viz.stage import round_number
        >>> round_number(0.34)
        0.2
    """
    power = 10.0 ** np.floor(np.log10(x))
    return float(power * max(k for k in (1.0, 2.0, 5.0) if k * power <= x * (1.0 + 1e-9)))
