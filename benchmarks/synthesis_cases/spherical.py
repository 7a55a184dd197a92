"""A closed path of a spherical four-bar: points and a linkage that are published, and its follower.

- Points: 64 of a closed path on the unit sphere, at even angles of the crank, of G. Mullineux,
  Atlas of spherical four-bar mechanisms, Mechanism and Machine Theory 46 (2011) 1811.
- Linkage: the spherical 4R of F. Peñuñuri's programs on the propagation of errors to kinematic
  quantities (Err_prop_SPH4R_Det), who with others wrote Synthesis of spherical 4R mechanism for
  path generation using differential evolution, Mechanism and Machine Theory 57 (2012) 62.

The programs name no path, but the linkage's is these points to the last digit: its root mean square
distance from them, 2e-5, is that of points of five digits from the best of all linkages too.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize_scalar

from jaxmbd import Mechanism, Parametrization
from jaxmbd.design import Between, Within
from jaxmbd.synthesis import PathGeneration, Problem, massless_spherical_four_bar

PATH = np.array([
    (0.85737, -0.18481, 0.48037), (0.82985, -0.20167, 0.52030), (0.80241, -0.21996, 0.55478),
    (0.77567, -0.23967, 0.58389), (0.75011, -0.26056, 0.60785), (0.72607, -0.28244, 0.62693),
    (0.70381, -0.30515, 0.64152), (0.68352, -0.32833, 0.65193), (0.66533, -0.35185, 0.65844),
    (0.64933, -0.37537, 0.66144), (0.63559, -0.39867, 0.66115), (0.62415, -0.42159, 0.65781),
    (0.61504, -0.44389, 0.65167), (0.60833, -0.46541, 0.64293), (0.60396, -0.48596, 0.63170),
    (0.60196, -0.50548, 0.61819), (0.60230, -0.52381, 0.60241), (0.60485, -0.54085, 0.58448),
    (0.60959, -0.55656, 0.56448), (0.61637, -0.57081, 0.54244), (0.62500, -0.58363, 0.51844),
    (0.63530, -0.59489, 0.49248), (0.64700, -0.60456, 0.46467), (0.65989, -0.61259, 0.43507),
    (0.67370, -0.61896, 0.40378), (0.68811, -0.62363, 0.37093), (0.70293, -0.62652, 0.33674),
    (0.71789, -0.62759, 0.30133), (0.73274, -0.62678, 0.26500), (0.74737, -0.62404, 0.22800),
    (0.76167, -0.61933, 0.19059), (0.77544, -0.61256, 0.15307), (0.78870, -0.60370, 0.11578),
    (0.80152, -0.59270, 0.07900), (0.81378, -0.57959, 0.04311), (0.82552, -0.56433, 0.00841),
    (0.83678, -0.54700, -0.02478), (0.84759, -0.52763, -0.05611), (0.85807, -0.50641, -0.08530),
    (0.86819, -0.48344, -0.11200), (0.87804, -0.45889, -0.13596), (0.88763, -0.43304, -0.15689),
    (0.89704, -0.40611, -0.17448), (0.90626, -0.37837, -0.18848), (0.91537, -0.35022, -0.19867),
    (0.92433, -0.32193, -0.20481), (0.93322, -0.29396, -0.20667), (0.94196, -0.26667, -0.20400),
    (0.95052, -0.24048, -0.19667), (0.95885, -0.21581, -0.18441), (0.96685, -0.19315, -0.16707),
    (0.97430, -0.17289, -0.14452), (0.98096, -0.15541, -0.11656), (0.98652, -0.14104, -0.08315),
    (0.99052, -0.13007, -0.04430), (0.99244, -0.12263, -0.00019), (0.99174, -0.11870, 0.04874),
    (0.98774, -0.11822, 0.10185), (0.98000, -0.12085, 0.15807), (0.96819, -0.12626, 0.21604),
    (0.95226, -0.13415, 0.27426), (0.93252, -0.14411, 0.33115), (0.90956, -0.15600, 0.38515),
    (0.88422, -0.16959, 0.43519),
])  # fmt: skip
TURN = np.linspace(0.0, 2.0 * np.pi, len(PATH), endpoint=False)
"""The crank's angles from the first point [rad]."""
PRINTED = {
    "eta1": 1.570814, "phi1": 0.000018, "psi": 0.270544, "alpha1": 0.994839, "alpha2": 0.401429,
    "alpha3": 0.820339, "alpha4": 0.925033, "beta": 0.230678, "gamma": 0.474378,
}  # fmt: skip
"""Angles [rad]: polar and azimuth of A; of the arc AD from the parallel through A; of the arcs AD,
AB, BC and CD; of the arc from B along BC to the foot below P, and from there to P."""


def turned(x: np.ndarray, axis: np.ndarray, angle: Any) -> np.ndarray:
    """A vector (3,) turned about a unit vector by angles (…,) (Rodrigues), (…, 3)."""
    c, s = np.cos(angle)[..., None], np.sin(angle)[..., None]
    return c * x + s * np.cross(axis, x) + (1.0 - c) * (axis @ x) * axis


def third(b: np.ndarray, d: np.ndarray, bc: Any, cd: Any, side: float) -> tuple[Any, Any]:
    """Unit vectors c (…, 3) at arcs bc and cd from b and d, on a side of their plane, and room.

    ``c = x b + y d + z b × d`` with ``x + g y = cos bc``, ``g x + y = cos cd``, g = b · d, and
    ``x² + y² + 2 g x y + (1 − g²) z² = 1``; without room there is no z.
    """
    g = np.sum(b * d, axis=-1)
    square = 1.0 - g**2
    x, y = (np.cos(bc) - g * np.cos(cd)) / square, (np.cos(cd) - g * np.cos(bc)) / square
    room = 1.0 - (x**2 + y**2 + 2.0 * g * x * y)
    z = side * np.sqrt(np.maximum(room, 0.0) / square)
    return x[..., None] * b + y[..., None] * d + z[..., None] * np.cross(b, d), room


def unit(x: Any) -> np.ndarray:
    """Over its length."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def on_sphere(points: dict[str, Any], inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coupler points (n, 3), and room of the triangle of arcs: two circles meet."""
    a, b, c, d, p = (unit(points[name]) for name in "ABCDP")
    side = float(np.sign(np.cross(b, d) @ c))
    held = np.linalg.solve(np.stack([b, c, np.cross(b, c)], axis=1), p)
    pin = turned(b, a, np.asarray(inputs))
    end, room = third(pin, d, np.arccos(b @ c), np.arccos(c @ d), side)
    return np.stack([pin, end, np.cross(pin, end)], axis=-1) @ held, room


def printed() -> dict[str, np.ndarray]:
    """The published linkage, its crank where it suits the first point, and all others, best."""
    eta, phi, psi, ad, ab, bc, cd, foot, height = PRINTED.values()
    a = np.array([np.cos(phi) * np.sin(eta), np.sin(phi) * np.sin(eta), np.cos(eta)])
    pole = np.cross(a, turned(np.array([-np.sin(phi), np.cos(phi), 0.0]), a, psi))
    d = turned(a, pole, ad)

    def at(start: float) -> dict[str, np.ndarray]:
        b = turned(turned(a, pole, ab), a, start)
        c, _ = third(b, d, bc, cd, 1.0)
        above = unit(np.cross(b, c))
        p = np.cos(height) * turned(b, above, foot) + np.sin(height) * above
        return {"A": a, "B": b, "C": c, "D": d, "P": p}

    best: Any = minimize_scalar(lambda x: missed(at(x), TURN), bounds=(0.3, 0.7), method="bounded",
                           options={"xatol": 1e-10})  # fmt: skip
    return at(float(best.x))


def missed(points: dict[str, Any], inputs: np.ndarray) -> float:
    """Root mean square distance from the points of the path."""
    found, _ = on_sphere(points, inputs)
    return float(np.sqrt(np.mean(np.sum((found - PATH) ** 2, axis=-1))))


def _drawn(**angles: Any) -> Mechanism:
    """Of longitudes and latitudes of its points."""

    def at(x: Any) -> Any:
        lon, lat = x
        return jnp.stack([jnp.cos(lat) * jnp.cos(lon), jnp.cos(lat) * jnp.sin(lon), jnp.sin(lat)])

    return massless_spherical_four_bar({name: at(x) for name, x in angles.items()})


def problem() -> Problem:
    """Every axis within a half of the sphere, whose middle is that of the path."""
    x, y, z = PATH.mean(axis=0)
    middle = np.array([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))])
    away = {"A": (0.1, -0.3), "B": (0.2, 0.1), "C": (-0.5, 0.3), "D": (-0.6, -0.3)}
    first = np.array([np.arctan2(PATH[0, 1], PATH[0, 0]), np.arcsin(PATH[0, 2])])
    starts = {name: middle + at for name, at in away.items()} | {"P": first}
    model = Parametrization.of(_drawn, **{name: (at, "rad") for name, at in starts.items()})
    half = np.array([1.5, 0.0])
    low, high = [middle[0], -1.4] - half, [middle[0], 1.4] + half
    vary: dict[str, Any] = {name: Between(low, high, start=starts[name]) for name in away}
    task = PathGeneration("A", TURN, body="coupler", point="P", targets=PATH)
    return Problem(model, task, vary | {"P": Within(0.01)}, full_turn=True)
