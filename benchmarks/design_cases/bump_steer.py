"""Bump steer of a published corner: its tie rod and lateral link may move, and must keep apart.

Toe over 120 mm of travel, its mean square relative to the published corner's, plus a thousandth of
the mean square movement of the hardpoints (relative to their limits): many designs have next to no
bump steer, and this chooses the one near the published. The links keep the distance that they have.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd.design import AtLeast, Within
from jaxmbd.observe import Sweep, Toe

TRAVEL = np.linspace(-0.06, 0.06, 13)
LIMIT = 0.015  # [m]
MOVED = ("tierod_inboard", "tierod_outboard", "lateral_inboard", "lateral_ball")
PREFERENCE = 1e-3
SWEEP = Sweep({mbd.PointTravel("upright", "wheel_centre", "z"): TRAVEL}, {"toe": Toe("upright")})


def clearance(points: Any) -> Any:
    """Distance [m] between the lines of the two links, ``|n·(c − a)|/|n|``."""
    a, b, c, d = (jnp.asarray(points[name]) for name in MOVED)
    normal = jnp.cross(b - a, d - c)
    return jnp.abs(normal @ (c - a)) / jnp.linalg.norm(normal)


class BumpSteer:
    """The problem: model, unknowns, objective and constraint.

    Args:
        limit: how far each coordinate may move [m].
    """

    def __init__(self, limit: float = LIMIT):
        self.model = mbd.zoo.multi_link()
        self.vary = {f"points/{name}": Within(limit) for name in MOVED}
        self.published = np.asarray(SWEEP(self.model)["toe"])
        self.apart = float(clearance(self.model.points))
        self.constraints = {"clearance": AtLeast("clearance", self.apart)}
        self.places = {name: np.asarray(self.model.points[name]) for name in MOVED}

    def observe(self, mech: mbd.Mechanism) -> dict[str, Any]:
        moves = [(mech.point(name) - self.places[name]) / LIMIT for name in MOVED]
        return {
            "toe": SWEEP(mech)["toe"],
            "clearance": clearance(mech.points),
            "movement": jnp.mean(jnp.concatenate(moves) ** 2),
        }

    def objective(self, seen: dict[str, Any]) -> Any:
        bump = jnp.mean(seen["toe"] ** 2) / np.mean(self.published**2)
        return bump + PREFERENCE * seen["movement"]

    def root_mean_square(self, mech: mbd.Mechanism) -> float:
        """Bump steer [deg]."""
        return float(np.sqrt(np.mean(np.degrees(np.asarray(SWEEP(mech)["toe"])) ** 2)))
