"""Random corners on bushings: a wishbone on two, and a trailing arm on two of full matrices.

Each kind is a drawing of hardpoints in metres, a mechanism of the package and the same corner for
`soft_wheels`. The bushings have 1e1 to 1e7 times the rate of the wheel's spring.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxmbd as mbd
from fails_cases import soft_wheels as soft
from fails_cases.corner_kinds import RACK, WHEEL, WISHBONES, Points
from fails_cases.mechanisms import body
from fails_cases.rigid import unit
from jaxmbd.suspension import Corner

GRAVITY = np.array([0.3, -0.2, -9.81])


class Kind(NamedTuple):
    """A kind of corner: drawing, mechanism, oracle of all samples, roles."""

    points: Points
    make: Callable[[Points, Any], mbd.Mechanism]
    oracle: Callable[[Points, Any], soft.Soft]
    roles: dict[str, Any]


Made = tuple[Callable[[Points, Any], mbd.Mechanism], Callable[[Points, Any], soft.Soft]]
"""`Kind.make` and `Kind.oracle`."""


class Batch(NamedTuple):
    """Samples of a kind, with their points, numbers and sizes."""

    name: str
    kind: Kind
    corner: Corner
    mechs: list[mbd.Mechanism]
    stacked: Any
    points: Points
    numbers: dict[str, Any]
    sizes: Any
    seed: int

    def text(self, i: int, where: str = "") -> str:
        stiff = self.numbers["stiff"][i]
        return (
            f"soft corner {self.name!r}{where}, sample {i}, {self.sizes[i]:.2g} m, "
            f"{stiff:.1e} N/m, seed {self.seed}"
        )


def batch(name: str, samples: int, seed: int) -> Batch:
    """Samples of a kind, on tyres of one radius from centimetres to a metre."""
    kind = KINDS[name]
    rng = np.random.default_rng([seed, list(KINDS).index(name), 17])
    radius = float(10.0 ** rng.uniform(-1.5, 0.0))
    sizes = radius / 0.33 * 10.0 ** rng.uniform(-0.3, 0.3, samples)
    points, numbers, mechs = [], [], []
    for size in sizes:
        shaken = {n: x + 0.02 * rng.normal(size=3) for n, x in kind.points.items()}
        p = {n: size * x for n, x in shaken.items()}
        rate = 300.0 / size * 10.0 ** rng.uniform(-0.3, 0.3)
        stiff = rate * 10.0 ** rng.uniform(1.0, 7.0)
        # a matrix: six rates, coupled by a few parts in a hundred
        parts = np.concatenate([size**2 * rng.uniform(0.003, 0.02, 3), rng.uniform(0.5, 1.5, 3)])
        mixed = np.eye(6) + 0.03 * (x := rng.normal(size=(6, 6))) + 0.03 * x.T
        roots = np.sqrt(parts)
        frame, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        k = {
            "rate": rate,
            "free": size * rng.uniform(0.55, 0.65),
            "stiff": stiff,
            "rates": stiff * roots[:, None] * mixed * roots,
            "frame": frame * np.linalg.det(frame),
            "load": rate * size * rng.uniform(-0.03, 0.05, 3),
            "mass": rng.uniform(0.1, 0.5, 2) * rate * size / 30.0 * 0.1,
        }
        points.append(p)
        numbers.append(k)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mechs.append(kind.make(p, k))
    stacked = jax.tree_util.tree_map(lambda *x: np.stack([np.asarray(y) for y in x]), *mechs)
    joined = {n: np.stack([p[n] for p in points]) for n in points[0]}
    together = {n: np.array([k[n] for k in numbers]) for n in numbers[0]}
    more = {"wheelbase": 8.0 * radius, "cg_height": 1.7 * radius}
    corner = Corner("upright", "wheel", radius, **more, **kind.roles)
    return Batch(name, kind, corner, mechs, stacked, joined, together, sizes, seed)


# Kinds.


def _common(p: Points, k: Any, on: str) -> dict[str, Any]:
    return {
        "spring": mbd.SpringDamper(
            "ground", on, "top", "bottom", stiffness=k["rate"], free_length=k["free"]
        ),
        "load": mbd.PointForce("upright", "wheel", k["load"]),
    }


def _body(p: Points, k: Any, i: int, at: str) -> mbd.Body:
    rng, size = np.random.default_rng(0), float(np.linalg.norm(p["wheel"]))
    return body(rng, np.array(p[at]), size, float(k["mass"][i]))


def _made(
    p: Points, k: Any, bodies: dict[str, Any], springs: Any, bushings: Any, rods: Any, balls: Any
) -> soft.Soft:
    weights = [
        (n, p[at], k["mass"][:, i, None] * GRAVITY) for i, (n, at) in enumerate(bodies.items())
    ]
    refs = {n: p["wheel"] if n == "upright" else p[at] for n, at in bodies.items()}
    size = np.linalg.norm(p["wheel"], axis=1)
    return soft.Soft(
        refs, tuple(bushings), tuple(springs),
        (*weights, ("upright", p["wheel"], k["load"])), tuple(rods), tuple(balls),
        unit(np.broadcast_to(RACK, p["wheel"].shape)), size, k["rate"] * size,
    )  # fmt: skip


def far(a: Any, b: Any) -> Any:
    return np.sqrt(np.sum((a - b) ** 2, axis=-1))


def _eyes(k: Any) -> Any:
    return np.tile(np.eye(3), (len(k["rate"]), 1, 1))


def _arm() -> Made:
    """A lower arm on two bushings; upper links and track rod are rigid."""

    def make(p: Points, k: Any) -> mbd.Mechanism:
        joints = {
            "lower": mbd.Free("ground", "lower"),
            "ball": mbd.Spherical("lower", "upright", "lb"),
            "front": mbd.Rod("ground", "upright", "uf", "ub"),
            "rear": mbd.Rod("ground", "upright", "ur", "ub"),
            "rod": mbd.Rod("ground", "upright", "ti", "to"),
        }
        rates = np.diag(k["rates"])
        forces = _common(p, k, "lower") | {
            n: mbd.Bushing("ground", "lower", n, rates) for n in ("lf", "lr")
        }
        bodies = {"lower": _body(p, k, 0, "lb"), "upright": _body(p, k, 1, "wheel")}
        return mbd.Mechanism(bodies, joints, forces, points=p, gravity=GRAVITY)

    def made(p: Points, k: Any) -> soft.Soft:
        rates = k["rates"] * np.eye(6)
        return _made(
            p, k, {"lower": "lb", "upright": "wheel"},
            [soft.Spring(p["top"], "lower", p["bottom"], k["rate"], k["free"], 0.0)],
            [soft.Bushing("lower", p[n], rates, _eyes(k), False) for n in ("lf", "lr")],
            [
                soft.Rod("upright", p[b], p[a], far(p[a], p[b]), "length" if a == "ti" else "")
                for a, b in (("uf", "ub"), ("ur", "ub"), ("ti", "to"))
            ],
            [("lower", "upright", p["lb"])],
        )  # fmt: skip

    return make, made


def _trailing() -> Made:
    """An arm on two bushings with full matrices in a turned frame, steered by a rack."""

    def make(p: Points, k: Any) -> mbd.Mechanism:
        joints = {
            "upright": mbd.Free("ground", "upright"),
            "rack": mbd.Prismatic("ground", "rack", "ti", RACK),
            "rod": mbd.Rod("rack", "upright", "ti", "to"),
        }
        forces = _common(p, k, "upright") | {
            n: mbd.Bushing("ground", "upright", n, k["rates"], frame=k["frame"], measure=m)
            for n, m in (("af", "finite"), ("ar", "small"))
        }
        bodies = {"upright": _body(p, k, 0, "wheel"), "rack": _body(p, k, 1, "ti")}
        return mbd.Mechanism(bodies, joints, forces, points=p, gravity=GRAVITY)

    def made(p: Points, k: Any) -> soft.Soft:
        return _made(
            p, k, {"upright": "wheel"},
            [soft.Spring(p["top"], "upright", p["bottom"], k["rate"], k["free"], 0.0)],
            [
                soft.Bushing("upright", p[n], k["rates"], k["frame"], m)
                for n, m in (("af", False), ("ar", True))
            ],
            [soft.Rod("upright", p["to"], p["ti"], far(p["to"], p["ti"]), "rack")],
            [],
        )  # fmt: skip

    return make, made


_ROLES = {"side": "left", "axle": "rear", "spring": "spring", "spindle": ("inner", "wheel")}
KINDS = {
    "arm on bushings": Kind(
        WISHBONES | WHEEL,
        *_arm(),
        {**_ROLES, "steering": "rod", "kingpin": ("lb", "ub"), "upper_arm": ("uf", "ur", "ub"),
         "lower_arm": ("lf", "lr", "lb")},
    ),
    "trailing arm on bushings": Kind(
        WHEEL | {"af": np.array([0.45, 0.62, 0.36]), "ar": np.array([0.35, 0.3, 0.33]),
                 "to": np.array([0.4, 0.65, 0.5]), "ti": np.array([0.4, 0.3, 0.48])},
        *_trailing(),
        {**_ROLES, "steering": "rack", "held_in_steering": "spring", "brakes": "inboard"},
    ),
}  # fmt: skip
