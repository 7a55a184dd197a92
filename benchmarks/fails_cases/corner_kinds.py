"""Random suspension corners: double wishbones, a strut, five links and a swing arm.

Each kind is a drawing of hardpoints in metres, a mechanism of the package and the same corner for
`wheel_oracle`. Every sample has its own hardpoints and size; some have parallel arms, arms and
links in one plane, balls drawn off closure, or a wheel axis along y.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxmbd as mbd
from fails_cases import wheel_oracle as oracle
from fails_cases.mechanisms import body
from fails_cases.rigid import unit
from jaxmbd.suspension import Corner

Points = dict[str, np.ndarray]

WISHBONES: Points = {
    "uf": np.array([0.2, 0.45, 0.55]),
    "ur": np.array([-0.2, 0.45, 0.52]),
    "ub": np.array([-0.02, 0.7, 0.55]),
    "lf": np.array([0.22, 0.38, 0.2]),
    "lr": np.array([-0.2, 0.38, 0.22]),
    "lb": np.array([0.01, 0.75, 0.18]),
}
WHEEL: Points = {
    "ti": np.array([0.15, 0.38, 0.25]),
    "to": np.array([0.16, 0.72, 0.24]),
    "wheel": np.array([0.0, 0.8, 0.33]),
    "inner": np.array([0.0, 0.65, 0.34]),
    "top": np.array([0.02, 0.5, 0.8]),
    "bottom": np.array([0.0, 0.6, 0.21]),
}
LINKS = ("1", "2", "3", "4")
FIVE: Points = {
    "i1": np.array([0.2, 0.45, 0.55]),
    "o1": np.array([0.03, 0.68, 0.56]),
    "i2": np.array([-0.25, 0.45, 0.54]),
    "o2": np.array([-0.04, 0.69, 0.55]),
    "i3": np.array([0.25, 0.35, 0.2]),
    "o3": np.array([0.05, 0.74, 0.19]),
    "i4": np.array([-0.3, 0.36, 0.22]),
    "o4": np.array([-0.06, 0.73, 0.18]),
}
LEFT = np.array([1.0, -1.0, 1.0])


class Kind(NamedTuple):
    """A kind of corner.

    Attributes:
        points: drawing of a left corner with a tyre of 0.33 m.
        make: of points, springs and a random generator, the mechanism.
        drawn: of points (n, 3) and springs of all samples, the oracle's corner.
        roles: of `Corner`, beside the tyre's radius; "side" says where the drawing goes.
        steer: travel of the rack, over the size.
    """

    points: Points
    make: Callable[[Points, dict[str, float], Any], mbd.Mechanism]
    drawn: Callable[[Points, dict[str, Any]], oracle.Drawn]
    roles: dict[str, Any]
    steer: float = 0.04


Made = tuple[
    Callable[[Points, dict[str, float], Any], mbd.Mechanism],
    Callable[[Points, dict[str, Any]], oracle.Drawn],
]
"""`Kind.make` and `Kind.drawn`."""


class Batch(NamedTuple):
    """Samples of a kind: as `mechanisms.Batch`, with their points and springs."""

    name: str
    kind: Kind
    corner: Corner
    mechs: list[mbd.Mechanism]
    stacked: Any
    points: Points
    springs: dict[str, Any]
    sizes: np.ndarray
    seed: int

    @property
    def roles(self) -> oracle.Roles:
        c = self.corner
        share = 1.0 if c.brake_share is None else c.brake_share
        return oracle.Roles(
            c.sign, c.tyre_radius, c.axle, c.wheelbase or 1.0, c.cg_height or 1.0, c.brakes,
            c.drive, share, c.drive_share, c.held_in_steering,
        )  # fmt: skip

    def text(self, i: int, where: str = "") -> str:
        return f"corner {self.name!r}{where}, sample {i}, {self.sizes[i]:.2g}, seed {self.seed}"


def batch(name: str, samples: int, seed: int) -> Batch:
    """Samples of a kind, on tyres of one radius from micrometres to two metres."""
    kind = KINDS[name]
    rng = np.random.default_rng([seed, list(KINDS).index(name)])
    radius = min(2.0, float(10.0 ** rng.uniform(-6.0, 0.4)))
    sizes = radius / 0.33 * 10.0 ** rng.uniform(-0.4, 0.4, samples)
    sides = LEFT if kind.roles["side"] == "right" else np.ones(3)
    each = [{n: size * sides * x for n, x in _shaken(kind, rng).items()} for size in sizes]
    springs = [
        {
            "stiffness": 300.0 / size * 10.0 ** rng.uniform(-0.5, 0.5),
            "free": size * rng.uniform(0.4, 0.7),
            "preload": float(rng.choice([0.0, 20.0])),
        }
        for size in sizes
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechs = [kind.make(*x, rng) for x in zip(each, springs, strict=True)]
    stacked = jax.tree_util.tree_map(lambda *x: np.stack([np.asarray(y) for y in x]), *mechs)
    points = {n: np.stack([p[n] for p in each]) for n in each[0]}
    joined = {n: np.array([s[n] for s in springs]) for n in springs[0]}
    sizes_of = {
        "wheelbase": 8.0 * radius,
        "cg_height": 1.7 * radius,
        "steering_gear": 0.02 * radius,
    }
    corner = Corner("upright", "wheel", radius, **sizes_of, **kind.roles)
    return Batch(name, kind, corner, mechs, stacked, points, joined, sizes, seed)


def _shaken(kind: Kind, rng: Any) -> Points:
    """The drawing with all points moved, sometimes to a special place."""
    p = {n: x + 0.025 * rng.normal(size=3) for n, x in kind.points.items()}
    special = rng.choice(["", "", "", "parallel", "flat", "straight"])
    if special == "parallel" and "ub" in p:
        for end in "frb":
            p[f"u{end}"] = p[f"l{end}"] + [0.0, 0.0, 0.35]
    elif special == "flat" and "ub" in p:  # arms and rod level, hinges along x
        for a, b in (("uf", "ur"), ("lf", "lr")):
            p[b][1:] = p[a][1:]
        p["ub"][2], p["lb"][2], p["to"][2] = p["uf"][2], p["lf"][2], p["ti"][2]
    elif special == "straight" and "inner" in p:
        p["inner"] = p["wheel"] - [0.0, 0.15, 0.0]
    if "ub" in p:
        gap = rng.choice([0.0, 0.0, 0.005])
        p["ub2"] = p["ub"] + gap * rng.normal(size=3)
    return p


def _bodies(p: Points, rng: Any, **middles: str) -> dict[str, mbd.Body]:
    """Bodies about a point each."""
    size = float(np.max(np.abs(p["wheel"])))
    return {n: body(rng, np.array(p[x]), size) for n, x in middles.items()}


def _spring(p: Points, k: dict[str, float], on: str, top: str = "top") -> dict[str, Any]:
    return {
        "spring": mbd.SpringDamper(
            "ground", on, top, "bottom", stiffness=k["stiffness"], free_length=k["free"],
            preload=k["preload"],
        )
    }  # fmt: skip


RACK = (0.1, 1.0, 0.05)


def _steering(rack: bool) -> dict[str, Any]:
    rod = mbd.Rod("rack" if rack else "ground", "upright", "ti", "to")
    slide = {"rack": mbd.Prismatic("ground", "rack", "ti", RACK)} if rack else {}
    return {**slide, "rod": rod}


def _wishbones(rack: bool, hub: bool, on: str) -> Made:
    def make(p: Points, k: dict[str, float], rng: Any) -> mbd.Mechanism:
        bodies = _bodies(p, rng, upper="ub", lower="lb", upright="wheel")
        bodies |= _bodies(p, rng, rack="ti") if rack else {}
        bodies |= _bodies(p, rng, hub="wheel") if hub else {}
        joints = {
            "upper": mbd.Revolute("ground", "upper", "uf", ("ur", "uf")),
            "lower": mbd.Revolute("ground", "lower", "lf", ("lr", "lf")),
            "upper_ball": mbd.Spherical("upper", "upright", "ub", at_b="ub2"),
            "lower_ball": mbd.Spherical("lower", "upright", "lb"),
            **_steering(rack),
        }
        if hub:
            joints["bearing"] = mbd.Revolute("upright", "hub", "wheel", ("wheel", "inner"))
        return mbd.Mechanism(bodies, joints, _spring(p, k, on), points=p)

    def drawn(p: Points, k: dict[str, Any]) -> oracle.Drawn:
        arms = {"upper_arm": ("uf", "ur", "ub", "ub2"), "lower_arm": ("lf", "lr", "lb", "lb")}
        links = [
            oracle.Link(p[other], p[end], _far(p[own], p[end]))
            for f, r, own, other in arms.values()
            for end in (f, r)
        ]
        return oracle.Drawn(
            p["wheel"], unit(p["wheel"] - p["inner"]), (*links, _rod(p, rack)),
            rack=_rack(p), arms={n: tuple(p[x] for x in a) for n, a in arms.items()},
            kingpin=[("upright", p["lb"]), ("upright", p["ub2"])],
            spring=_spring_of(p, k, {"lower": "lower_arm", "upper": "upper_arm"}.get(on, on)),
        )  # fmt: skip

    return make, drawn


def _far(a: Any, b: Any) -> Any:
    return np.sqrt(np.sum((a - b) ** 2, axis=-1))


def _rack(p: Points) -> Any:
    return unit(np.broadcast_to(RACK, p["ti"].shape))


def _rod(p: Points, rack: bool) -> oracle.Link:
    return oracle.Link(p["to"], p["ti"], _far(p["to"], p["ti"]), "rack" if rack else "length")


def _spring_of(p: Points, k: dict[str, Any], on: str, top: str = "top") -> oracle.Spring:
    return oracle.Spring(p[top], p["bottom"], on, k["stiffness"], k["free"], k["preload"])


def _strut() -> Made:
    def make(p: Points, k: dict[str, float], rng: Any) -> mbd.Mechanism:
        bodies = _bodies(p, rng, lower="lb", upright="wheel", strut="top", rack="ti")
        line = p["top"] - p["foot"]
        joints = {
            "lower": mbd.Revolute("ground", "lower", "lf", ("lr", "lf")),
            "lower_ball": mbd.Spherical("lower", "upright", "lb"),
            "top": mbd.Universal(
                "ground", "strut", "top", (1.0, 0.0, 0.0), (0.0, line[2], -line[1])
            ),
            "strut": mbd.Cylindrical("upright", "strut", "top", ("foot", "top")),
            **_steering(True),
        }
        return mbd.Mechanism(bodies, joints, _spring(p, k, "upright"), points=p)

    def drawn(p: Points, k: dict[str, Any]) -> oracle.Drawn:
        links = [oracle.Link(p["lb"], p[end], _far(p["lb"], p[end])) for end in ("lf", "lr")]
        spin = np.broadcast_to([0.0, 1.0, 0.0], p["wheel"].shape)
        return oracle.Drawn(
            p["wheel"], spin, (*links, _rod(p, True)),
            sleeves=((p["top"], unit(p["top"] - p["foot"]), p["top"]),), rack=_rack(p),
            arms={"lower_arm": tuple(p[x] for x in ("lf", "lr", "lb", "lb"))},
            kingpin=[("upright", p["lb"]), ("ground", p["top"])],
            strut=[("upright", p["foot"]), ("ground", p["top"])],
            spring=_spring_of(p, k, "upright"),
        )  # fmt: skip

    return make, drawn


DIRECTION = (0.03, -1.0, 0.05)


def _five_links() -> Made:
    def make(p: Points, k: dict[str, float], rng: Any) -> mbd.Mechanism:
        joints = {n: mbd.Rod("ground", "upright", f"i{n}", f"o{n}") for n in LINKS}
        joints = {"upright": mbd.Free("ground", "upright"), **joints, **_steering(True)}
        bodies = _bodies(p, rng, upright="wheel", rack="ti")
        return mbd.Mechanism(bodies, joints, _spring(p, k, "upright"), points=p)

    def drawn(p: Points, k: dict[str, Any]) -> oracle.Drawn:
        ends = [(p[f"o{n}"], p[f"i{n}"]) for n in LINKS]
        links = [oracle.Link(a, b, _far(a, b)) for a, b in ends]
        spin = unit(np.broadcast_to(DIRECTION, p["wheel"].shape))
        return oracle.Drawn(
            p["wheel"], spin, (*links, _rod(p, True)), rack=_rack(p),
            spring=_spring_of(p, k, "upright"),
        )  # fmt: skip

    return make, drawn


def _swing_arm() -> Made:
    def make(p: Points, k: dict[str, float], rng: Any) -> mbd.Mechanism:
        bodies = _bodies(p, rng, upright="wheel")
        joints = {"arm": mbd.Revolute("ground", "upright", "af", ("ar", "af"))}
        return mbd.Mechanism(bodies, joints, _spring(p, k, "upright"), points=p)

    def drawn(p: Points, k: dict[str, Any]) -> oracle.Drawn:
        axis = unit(p["af"] - p["ar"])
        across = oracle.across(axis)
        pins = [(p["af"], e) for e in (axis, *across)] + [(p["ar"], e) for e in across]
        return oracle.Drawn(
            p["wheel"], unit(p["wheel"] - p["inner"]), pins=tuple(pins),
            spring=_spring_of(p, k, "upright"),
        )  # fmt: skip

    return make, drawn


_ARMS = {
    "kingpin": ("lb", "ub2"),
    "upper_arm": ("uf", "ur", "ub2"),
    "lower_arm": ("lf", "lr", "lb"),
}
_TRAILING: Points = {"af": np.array([0.4, 0.6, 0.36]), "ar": np.array([0.3, 0.3, 0.33])}
KINDS = {
    "wishbones on a rack": Kind(
        WISHBONES | WHEEL,
        *_wishbones(True, False, "lower"),
        {**_ARMS, "side": "left", "spindle": ("inner", "wheel"), "steering": "rack",
         "spring": "spring"},
    ),
    "wishbones with a track rod": Kind(
        WISHBONES | WHEEL,
        *_wishbones(False, True, "upper"),
        {**_ARMS, "side": "right", "axle": "rear", "steering": "rod", "spring": "spring",
         "brakes": "inboard", "drive": "outboard", "held_in_steering": "lower_ball",
         "drive_share": 0.7},
        0.0,
    ),
    "strut": Kind(
        {n: x for n, x in (WISHBONES | WHEEL).items() if n[0] != "u"}
        | {"foot": np.array([0.0, 0.66, 0.45]), "bottom": np.array([0.01, 0.65, 0.4])},
        *_strut(),
        {"side": "left", "kingpin": ("lb", ("ground", "top")), "lower_arm": ("lf", "lr", "lb"),
         "strut": ("foot", "top"), "steering": "rack", "spring": "spring",
         "held_in_steering": "spring", "brakes": "inboard", "drive": "outboard"},
    ),
    "five links": Kind(
        FIVE | WHEEL,
        *_five_links(),
        {"side": "right", "axle": "rear", "steering": "rack", "spring": "spring",
         "spindle": DIRECTION, "brake_share": 0.35},
    ),
    "swing arm": Kind(
        WHEEL | _TRAILING,
        *_swing_arm(),
        {"side": "left", "axle": "rear", "spindle": ("inner", "wheel"), "spring": "spring"},
        0.0,
    ),
}  # fmt: skip
