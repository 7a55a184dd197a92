"""Belts between a pulley on the ground and one on a carriage, which turns and slides on an arm.

In the plane, in complex numbers: with the line of the centres at ψ, of length c, the strands touch
both pulleys at the normals ``n = e^{iψ} (sin γ ± i cos γ)``, ``sin γ = (r_a − r_b)/c``, with −r_b
for r_b if the belt is crossed. What is on a strand is its straight length and what its pulleys have
wound off, counted from the normal: the pulley's angle less that of n, as far as each has turned.
Loads along coordinates follow by virtual work, ``Q = −Σ T ∂x/∂q``, by complex steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.driven_linkages import Frame, anywhere
from fails_cases.judged import Judged, compare, or_crash

PER_SAMPLE = 3
_STRANDS = "lengths of strands in complex numbers, virtual work by complex steps"
PARTS = ("element_measures", "inverse_dynamics", "joint_reactions")
NUMBERS = {f"{part}, belts{kind}": _STRANDS for part in PARTS for kind in ("", " on turning arms")}
COORDINATES = ("arm", "slide", "sun", "planet")
SAMPLES = 40
STEP = 1e-30


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Open and crossed belts, in one program each."""
    n = min(SAMPLES, max(4, size // (4 * PER_SAMPLE)))
    for i, (crossed, turning) in enumerate((c, t) for c in (False, True) for t in (False, True)):
        rng, text = np.random.default_rng([seed, i]), f"default_rng([{seed}, {i}])"
        kind = " on turning arms" if turning else ""
        said = f"{'crossed' if crossed else 'open'}, {text}"
        cases = _cases([drawn(rng, crossed, turning) for _ in range(n)], rng, kind, said)
        yield from or_crash(f"{PARTS[0]}, belts", cases, said)


def stretches(z: dict[str, Any], q: Any) -> tuple[Any, Any]:
    """Stretches (2,) of the strands at coordinates (4,), and their directions from a to b."""
    r_a, r_b = z["r_a"], -z["r_b"] if z["crossed"] else z["r_b"]
    turned, slid, sun, planet = q
    centre = z["distance"] + slid
    own = turned + z["sense"] * planet  # the planet's angle from the drawing

    def strand(side: float, c: Any, psi: Any, on_a: Any, on_b: Any) -> Any:
        lean = np.arcsin((r_a - r_b) / c)
        normal = psi + side * (0.5 * np.pi - lean)
        return c * np.cos(lean) + side * (r_a * (on_a - normal) - r_b * (on_b - normal))

    found = [
        strand(s, centre, turned, sun, own) - strand(s, z["distance"], 0.0, 0.0, 0.0)
        for s in (1.0, -1.0)
    ]
    lean = np.arcsin((r_a - r_b) / centre)
    return np.array(found), np.exp(1j * (turned + np.array([-lean, lean])))


def loads(z: dict[str, Any]) -> dict[str, np.ndarray]:
    """Tensions and stretches, loads along the coordinates, and the force on the planet."""
    q, v = z["q"], z["v"]
    x, way = stretches(z, q)
    rate = np.imag(stretches(z, q + 1j * STEP * v)[0]) / STEP
    tension = np.maximum(z["pretension"] + z["stiffness"] * x + z["damping"] * rate, 0.0)
    slopes = np.array([
        np.imag(stretches(z, q + 1j * STEP * e)[0]) / STEP for e in np.eye(4)
    ])  # fmt: skip
    pull = -np.sum(tension * way)
    return {
        "measures": np.array([*tension, *x]),
        "along": -slopes @ tension,
        "on planet": np.array([pull.real, pull.imag]),
    }


def drawn(rng: np.random.Generator, crossed: bool, turning: bool) -> dict[str, Any]:
    """A random belt and state."""
    size = 10.0 ** rng.uniform(-2.0, 0.5)
    r_a, r_b = size * rng.uniform(0.1, 1.0, 2)
    distance = (r_a + r_b) * rng.uniform(1.3, 3.0)
    far = rng.uniform(3.5, 20.0) * rng.choice([-1.0, 1.0]) if turning else rng.uniform(-3.0, 3.0)
    sense = float(rng.choice([-1.0, 1.0]))
    slid, slack = 0.1 * distance * rng.uniform(-1.0, 1.0), 0.2 * size * rng.normal()
    ratio = -r_a / r_b if crossed else r_a / r_b
    sun = rng.uniform(-4.0, 4.0)
    planet = sense * (ratio * (sun - far)) + slack / r_b  # nearly without slip
    stiffness = 10.0 ** rng.uniform(1.0, 5.0)
    return {
        "r_a": r_a, "r_b": r_b, "distance": distance, "crossed": crossed, "sense": sense,
        "stiffness": stiffness, "damping": 0.02 * stiffness * rng.uniform(0.0, 1.0),
        "pretension": stiffness * size * rng.uniform(0.0, 0.5),
        "q": np.array([far, slid, sun, planet]),
        "v": rng.normal(size=4) * np.array([1.0, size, 1.0, 1.0]),
    }  # fmt: skip


def machine(z: dict[str, Any], frame: Any, belt: bool) -> mbd.Mechanism:
    """The same for the package."""
    turn, origin = jnp.asarray(frame.turn), jnp.asarray(frame.origin)
    axis, along = turn[:, 2], turn[:, 0]
    end = origin + z["distance"] * along
    heavy = jnp.ones(3) * z["distance"] ** 2
    forces = {
        "belt": mbd.Belt(
            "sun", "planet", z["r_a"], z["r_b"], stiffness=z["stiffness"], damping=z["damping"],
            pretension=z["pretension"], crossed=z["crossed"],
        )
    }  # fmt: skip
    return mbd.Mechanism(
        {
            "arm": mbd.Body(1.0, origin, heavy),
            "carriage": mbd.Body(1.0, end, heavy),
            "pulley_a": mbd.Body(1.0, origin, heavy),
            "pulley_b": mbd.Body(1.0, end, heavy),
        },
        {
            "arm": mbd.Revolute("ground", "arm", at=origin, axis=axis),
            "slide": mbd.Prismatic("arm", "carriage", at=end, axis=along),
            "sun": mbd.Revolute("ground", "pulley_a", at=origin, axis=axis),
            "planet": mbd.Revolute("carriage", "pulley_b", at=end, axis=z["sense"] * axis),
        },
        forces if belt else {},
        gravity=0.0 * axis,
    )


def _cases(
    every: list[dict[str, Any]], rng: np.random.Generator, kind: str, text: str
) -> Iterator[Judged]:
    n, crossed = len(every), every[0]["crossed"]
    frames = [anywhere(rng) for _ in range(n)]
    lost = rng.random(n) < 0.1
    names = [k for k in every[0] if k != "crossed"]
    columns = {k: np.stack([np.asarray(z[k], float) for z in every]) for k in names}
    columns["stiffness"] = np.where(lost, np.nan, columns["stiffness"])

    def engine(z: dict[str, Any], turn: Any, origin: Any) -> Any:
        here = Frame(turn, origin)
        mech, bare = (machine(z | {"crossed": crossed}, here, belt) for belt in (True, False))
        layout: Any = mbd.topology(mech).layout
        place = np.array([layout[name].v.start for name in COORDINATES])
        q, v = (jnp.zeros(4).at[place].set(z[k]) for k in "qv")
        with_belt, without = (mbd.inverse_dynamics(m, q, v, 0.0 * v)[0] for m in (mech, bare))
        felt, unfelt = (
            mbd.joint_reactions(m, q, v, 0.0 * v, jnp.zeros(0))["planet"][3:] for m in (mech, bare)
        )
        found = mbd.observe.element_measures(mech, q, v)["belt"]
        measured = [found[f"{kind}_{i}"].value for kind in ("tension", "stretch") for i in (1, 2)]
        return jnp.stack(measured), (without - with_belt)[place], unfelt - felt

    given = columns, np.stack([f.turn for f in frames]), np.stack([f.origin for f in frames])
    measured, along, on_planet = map(np.asarray, mbd.lanes.vmap(engine)(*given))
    for i, (z, frame) in enumerate(zip(every, frames, strict=True)):
        want, said = loads(z), f"sample {i}, {text}"
        size = z["r_a"] + z["r_b"] + np.abs(z["r_a"] * z["q"][0])
        reach = size * (1.0 + np.linalg.norm(frame.origin) / z["distance"])
        force = z["stiffness"] * reach * (1.0 + z["damping"] / z["stiffness"])
        scale = np.array([force, force, reach, reach])
        wanted = want["measures"] / scale
        wanted[:2] = np.nan if lost[i] else wanted[:2]
        told: dict[str, Any] = {"limit": 1e-11, "scale": 1.0, "detail": said}
        # Centrifugal forces, of a kilogram at the carriage, are subtracted from each other.
        swift = np.max(np.abs(z["v"][[0, 2, 3]])) + abs(z["v"][1]) / z["distance"]
        force += swift**2 * z["distance"]
        arms = np.array([reach, 1.0, reach, reach]) * force
        parts = {
            "inverse_dynamics": (along[i] / arms, want["along"] / arms),
            "joint_reactions": ((on_planet[i] @ frame.turn)[:2] / force, want["on planet"] / force),
        }
        found = measured[i] / scale
        yield compare(f"element_measures, belts{kind}", found, wanted, **told)
        for part, (found, expected) in parts.items():
            expected = np.full(expected.shape, np.nan) if lost[i] else expected
            found = np.where(np.isnan(found).any(), np.nan, found)
            yield compare(f"{part}, belts{kind}", found, expected, **told)
