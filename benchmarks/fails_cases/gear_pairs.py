"""Pairs of gears of every kind, drawn anywhere: tooth forces and bearings by text-book formulas.

In simple axes (gear a about z, driven by a torque T, its teeth at the pitch point moving along y
or, of a worm, along −x) the forces are written as in R. G. Budynas and J. K. Nisbett, Shigley's
Mechanical Engineering Design, sections 13-14 to 13-17; then all is turned and shifted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import jaxmbd as mbd
from fails_cases.judged import Judged, compare, or_crash

PER_CASE = 8
_SHIGLEY = "tooth forces of text books in simple axes, turned and shifted, in NumPy"
NUMBERS = {
    "ToothForce": _SHIGLEY,
    "ToothForce, float32": _SHIGLEY,
    "joint_reactions, gear pairs": f"free bodies of {_SHIGLEY}",
    "joint_reactions, gear pairs, float32": f"free bodies of {_SHIGLEY}",
}
KINDS = ("external", "internal", "bevel", "worm", "rack")
SHAPES = {
    "external": (18, 45), "internal": (45, 17), "bevel": (17, 31), "worm": (3, 41),
    "rack": (17, 17),
}  # fmt: skip
PARTS = ("tangential", "radial", "axial")


def judged(seed: int, size: int) -> Iterator[Judged]:
    """One batch of each kind in double and in single precision."""
    n = max(4, size // PER_CASE)
    for i, kind in enumerate(KINDS):
        rng = np.random.default_rng((seed, i))
        x = _drawn(rng, kind, n)
        for rough in (False, True):
            text = f"{kind}, default_rng({(seed, i)})"
            number = "ToothForce, float32" if rough else "ToothForce"
            yield from or_crash(number, _cases(kind, x, rough, text), text)


def _drawn(rng: Any, kind: str, n: int) -> dict[str, Any]:
    """Places, numbers and loads of n pairs, and the forces on their gears b."""
    turn = np.linalg.qr(rng.normal(size=(n, 3, 3)))[0]
    turn *= np.linalg.det(turn)[:, None, None]
    m, shift = 10.0 ** rng.uniform(-4.0, -1.0, n), rng.uniform(-1.0, 1.0, (n, 3))
    alpha, beta = rng.uniform(0.15, 0.5, n), rng.uniform(-0.7, 0.7, n)
    beta = np.where(rng.random(n) < 0.3, 0.0, beta)
    za, zb = SHAPES[kind]
    torque = m * rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-2.0, 4.0, n)
    if kind == "bevel":
        beta *= 0.0
    if kind == "worm":
        beta = np.pi / 2 - rng.uniform(0.05, 0.5, n)
    helix, press = np.tan(beta), np.tan(alpha) / np.cos(beta)
    ra, rb = m * za / 2 / np.cos(beta), m * zb / 2 / np.cos(beta)
    o, one = np.zeros(n), np.ones(n)
    x, y, z = (np.stack(v, axis=1) for v in ((one, o, o), (o, one, o), (o, o, one)))
    u_b, x_b, p = z, x * (ra + rb)[:, None], x * ra[:, None]
    force, size = torque / ra, np.abs(torque / ra)
    parts = force, size * press, -force * helix
    on_b = np.stack([size * press, force, -force * helix], axis=1)
    if kind == "internal":  # the ring drives, and pushes the pinion towards its axis
        x_b = x * (ra - rb)[:, None]
        on_b[:, 0] *= -1.0
    if kind == "bevel":
        cone = np.arctan2(za, zb)
        u_b, x_b = x, 0.0 * x
        p = x * ra[:, None] + z * (ra / np.tan(cone))[:, None]
        on_b[:, 0], on_b[:, 2] = (size * press * f for f in (np.cos(cone), -np.sin(cone)))
    if kind == "worm":  # the wheel's diameter is of the lead angle
        rb = m * zb / 2 / np.sin(beta)
        u_b, x_b, p = x, y * (ra + rb)[:, None], y * ra[:, None]
        on_b = np.stack([-force, size * press, -force * helix], axis=1)
    way = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    if kind == "rack":  # it moves along the teeth of the pinion, or its coordinate against them
        u_b = y * way[:, None]

    def placed(v: Any) -> Any:
        return np.einsum("nij,nj->ni", turn, v)

    bad = rng.random(n) < 0.05
    return {
        "m": m, "alpha": np.where(bad, np.nan, alpha), "beta": beta, "torque": torque, "bad": bad,
        "radius": way * ra,
        "u": np.stack([placed(z), placed(u_b)], axis=1),
        "x": np.stack([shift, placed(x_b) + shift], axis=1), "p": placed(p) + shift,
        "on_b": placed(on_b), "parts": np.stack(parts, axis=1), "shift": rng.uniform(-3, 3, (n, 2)),
    }  # fmt: skip


def _cases(kind: str, x: dict[str, Any], rough: bool, text: str) -> Iterator[Judged]:
    size = np.float32 if rough else np.float64
    at = x["x"] + (x["shift"] * x["m"][:, None])[..., None] * x["u"]  # bearings beside the gears
    moments = np.stack(
        [np.cross(x["p"] - at[:, i], f) for i, f in enumerate((-x["on_b"], x["on_b"]))], axis=1
    )
    load = -np.einsum("nij,nij->ni", moments, x["u"])  # along both axes, for equilibrium
    felt = -moments - load[..., None] * x["u"]
    held = np.stack([x["on_b"], -x["on_b"]], axis=1)
    slides = kind == "rack"
    if slides:
        load[:, 1] = np.sum(held[:, 1] * x["u"][:, 1], axis=1)
        held[:, 1] -= load[:, 1, None] * x["u"][:, 1]
        felt[:, 1] = -moments[:, 1]

    def engine(
        x_a: Any, x_b: Any, u: Any, p: Any, m: Any, alpha: Any, beta: Any, tau: Any, radius: Any
    ) -> Any:
        teeth: Any = {"at": p, "pressure_angle": alpha, "helix": beta}
        if slides:
            mesh: Any = mbd.RackAndPinion("a", "b", radius, **teeth)
        else:
            mesh = mbd.GearMesh("a", "b", *SHAPES[kind], kind=kind, module=m, **teeth)
        second = mbd.Prismatic if slides else mbd.Revolute
        mech = mbd.Mechanism(
            {n: mbd.Body(1.0, c, m * m * np.ones(3)) for n, c in (("a", x_a), ("b", x_b))},
            {
                "a": mbd.Revolute("ground", "a", at=x_a, axis=u[0]),
                "b": second("ground", "b", at=x_b, axis=u[1]),
            },
            couplings={"mesh": mesh},
            gravity=0.0 * x_a,
        )
        q, inputs = 0.0 * tau, {"a": tau[0], "b": tau[1]}
        vdot, lam = mbd.forward_dynamics(mech, q, q, inputs=inputs)
        snapshot = mbd.observe.Snapshot(mech, q, q, inputs=inputs, multipliers=lam, vdot=vdot)
        forces = [mbd.observe.ToothForce("mesh", part).value(snapshot) for part in PARTS]
        return forces, [snapshot.reactions[n] for n in ("a", "b")]

    given = at[:, 0], at[:, 1], x["u"], x["p"], x["m"], x["alpha"], x["beta"], load, x["radius"]
    found, wrenches = mbd.lanes.vmap(engine)(*(np.asarray(v, size) for v in given))
    found, wrenches = np.stack(found, 1), np.stack(wrenches, 1)
    # Places are of metres, and single precision knows no better what is between them.
    reach = 1.0 + np.abs(x["x"]).max(axis=(1, 2)) / x["m"]
    limit = (3e-6 if rough else 1e-14) * reach
    mark = ", float32" if rough else ""
    for i in range(len(load)):
        said = f"sample {i}, {text}"
        scale = np.abs(x["on_b"][i]).max()
        wanted = x["parts"][i].copy()
        wanted[1] = np.nan if x["bad"][i] else wanted[1]
        yield compare(
            f"ToothForce{mark}", found[i], wanted, limit=limit[i], scale=scale, detail=said
        )
        for j in (0, 1):
            force = np.full(3, np.nan) if x["bad"][i] else held[i, j]
            here = f"gear {'ab'[j]}, {said}"
            yield compare(
                f"joint_reactions, gear pairs{mark}", wrenches[i, j, 3:], force,
                limit=limit[i], scale=scale, detail=here,
            )  # fmt: skip
            moment = np.full(3, np.nan) if x["bad"][i] else felt[i, j]
            yield compare(
                f"joint_reactions, gear pairs{mark}", wrenches[i, j, :3], moment,
                limit=limit[i], scale=scale * np.linalg.norm(x["p"][i] - at[i, j]), detail=here,
            )  # fmt: skip
