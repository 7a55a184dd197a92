"""Curves that are wanted of a suspension: `minimize` and quadratic response surfaces.

The wanted curves are those of another design, drawn at random within half the room of every
hardpoint coordinate, so that a perfect design exists. The error is the root of the mean square of
all deviations, in units of 1 mrad of toe and steer, 10 mrad of camber, 1 mm of track. Surfaces of
each place of each curve have (n + 1)(n + 2)/2 unknowns in n coordinates, as many designs are
evaluated; the best design by the surfaces is evaluated truly. `minimize` evaluates a design with
its whole Jacobian, which counts as one; "evaluations to equal error" are those until it is at most
what the surfaces reached, "to a thousandth" those until it is that of the start's. The n + 3 that
tell a minimum from a saddle at the end are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

import jaxmbd as mbd
from jaxmbd import lanes, suspension
from jaxmbd.design import Curve, Within

SEEDS, STEPS = (4, 5, 6), 60
_PLACES = np.linspace(-0.06, 0.06, 13).tolist()
_SCALES = {"toe": 1e-3, "axle_steer": 1e-3, "camber": 1e-2, "left_camber": 1e-2,
           "half_track_change": 1e-3, "track": 1e-3}  # fmt: skip


class Wish(NamedTuple):
    """Curves that are wanted of a mechanism."""

    mech: mbd.Mechanism
    paths: list[str]  # coordinates that move
    room: float  # how far, either way [m]
    names: list[str]  # of the curves
    observe: Callable[[Any], Any]


def rigid_corner(seed: int) -> Wish:
    """Wheel travel of the zoo's double wishbone, all its 24 coordinates."""
    corner = mbd.zoo.double_wishbone_kinematic()
    roles = suspension.zoo_corner("double_wishbone_kinematic")
    points = [n for n in corner.structure.points if not n.startswith("axle_")]
    names = ["toe", "camber", "half_track_change"]
    sweep = suspension.kinematics_sweep(roles, travel=_PLACES, observe=names, gradients=())
    return Wish(corner, _coordinates(points), 0.02, names, sweep)


def rolling_axle(seed: int) -> Wish:
    """Roll of an axle of five-link corners with hardpoints at random, both sides alike."""
    corner, roles = suspension.five_link_corner(_scattered("five_link", seed))
    pair = suspension.axle_corners(suspension.axle(corner), roles)
    names = ["axle_steer", "left_camber", "track"]
    lean = np.linspace(-0.05, 0.05, 9).tolist()
    sweep = suspension.axle_sweep(pair, roll=lean, observe=names)
    points = [n for n in corner.structure.points if n.endswith("_inboard")]

    def rolls(mech: mbd.Mechanism) -> Any:
        return sweep(suspension.axle(mech))

    return Wish(corner, _coordinates(points), 0.01, names, rolls)


def elastic_corner(seed: int) -> Wish:
    """Wheel travel of a strut with random hardpoints whose arm is on bushings, settled."""
    corner, roles = suspension.macpherson_corner(_scattered("macpherson", seed))
    soft = mbd.soften(corner, "lower_arm", (1e4, 5e6))
    names = ["toe", "camber", "half_track_change"]
    places = _PLACES[2:-2]
    sweep = suspension.kinematics_sweep(
        roles, travel=places, observe=names, gradients=(), settle=True
    )
    points = [n for n in corner.structure.points if n.startswith(("lower_arm_", "tierod_"))]
    return Wish(soft, _coordinates(points), 0.01, names, sweep)


PROBLEMS = {
    "rigid corner": rigid_corner,
    "axle in roll": rolling_axle,
    "elastic corner": elastic_corner,
}


def measured(wish: Wish, seed: int) -> dict[str, Any]:
    """Evaluations and errors of both ways."""
    start = np.array([float(x) for x in mbd.get_variables(wish.mech, wish.paths).values()])
    n, rng = start.size, np.random.default_rng(seed)

    def curves(x: Any) -> Any:
        moved = mbd.set_variables(wish.mech, dict(zip(wish.paths, x, strict=True)))
        found = wish.observe(moved)
        return jnp.stack([found[name] / _SCALES[name] for name in wish.names])

    run = jax.jit(lanes.vmap(curves))

    def seen(u: np.ndarray) -> np.ndarray:
        """Curves (b, k, places) of designs (b, n), in a batch of one size."""
        size = _surface(n)
        filled = np.concatenate([u, np.repeat(u[-1:], size - len(u), axis=0)])
        return np.asarray(run(start + wish.room * filled))[: len(u)]

    wanted = seen(rng.uniform(-0.5, 0.5, (1, n)))[0]

    def error(u: np.ndarray) -> float:
        return float(np.sqrt(np.mean((seen(u[None])[0] - wanted) ** 2)))

    samples = rng.uniform(-1.0, 1.0, (_surface(n), n))
    best = _of_surfaces(samples, seen(samples) - wanted)
    goals = [
        Curve(name, _SCALES[name] * y, scale=_SCALES[name])
        for name, y in zip(wish.names, wanted, strict=True)
    ]
    vary = {path: Within(wish.room) for path in wish.paths}
    found = mbd.minimize(goals, wish.mech, vary, observe=wish.observe, steps=STEPS)
    before, reached = error(np.zeros(n)), error(best)

    def until(limit: float) -> float:
        """Evaluations until the error is at most this; NaN if it never is."""
        there = np.sqrt(found.history[:, 0] / len(goals)) <= limit
        return float(found.history[there, 2][0]) if there.any() else float("nan")

    return {
        "seed": seed,
        "coordinates": n,
        "before": before,
        "surface evaluations": _surface(n) + 1,
        "surface after": reached,
        "evaluations to equal error": until(reached),
        "evaluations to a thousandth": until(1e-3 * before),
        "evaluations": found.evaluations,
        "after": float(np.sqrt(found.objective / len(goals))),
        "status": found.status,
        "seconds": found.seconds,
        "ratio": (_surface(n) + 1) / until(reached),
    }


def _coordinates(points: list[str]) -> list[str]:
    return [f"points/{n}/{axis}" for n in points for axis in "xyz"]


def _scattered(template: str, seed: int) -> dict[str, np.ndarray]:
    """A template's hardpoints, each coordinate off by up to 5 mm."""
    rng, points = np.random.default_rng(seed), suspension.example_hardpoints(template)
    return {n: np.asarray(x) + rng.uniform(-5e-3, 5e-3, 3) for n, x in points.items()}


def _surface(n: int) -> int:
    """Unknowns of a quadratic in n coordinates."""
    return (n + 1) * (n + 2) // 2


def _of_surfaces(samples: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """The design (n,) of least squares by quadratics through deviations (b, k, places)."""
    flat = deviations.reshape(len(samples), -1)
    fine = np.isfinite(flat).all(axis=1)
    surfaces = np.linalg.lstsq(_quadratic(samples[fine]), flat[fine], rcond=None)[0]
    begun = np.zeros(samples.shape[1])
    limits = (-1.0, 1.0)
    return least_squares(lambda u: (_quadratic(u[None]) @ surfaces)[0], begun, bounds=limits).x


def _quadratic(u: np.ndarray) -> np.ndarray:
    """The terms of a quadratic (m, (n + 1)(n + 2)/2) at points (m, n)."""
    i, j = np.triu_indices(u.shape[1])
    return np.concatenate([np.ones((len(u), 1)), u, u[:, i] * u[:, j]], axis=1)


def target_curves() -> dict[str, Any]:
    """All problems with all seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, problem in PROBLEMS.items():
        for seed in SEEDS:
            found.setdefault(name, []).append(measured(problem(seed), seed))
            print("target curves,", name, found[name][-1], flush=True)
    return found
