"""Random structures under numbers of all sizes: an instant of each, and short runs of it.

An instant's answer is judged by the equations (`judge`), by its power (the energy of a conservative
mechanism is constant) and by inverse dynamics, which must ask for no efforts. A run is judged by
the equations at its end, by its energy at each step, relative to the largest kinetic energy (at its
ends a vibration may be at rest), and by the same run in steps of an eighth.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import judge, numbers
from fails_cases.structures import Structure
from jaxmbd.analysis.run_account import norms
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.scales import speed_units

STEPS = 20
SHARES = (1e-4, 1e-2, 1.0)
"""Steps, as shares of the fastest time in which the start's motion changes."""
POWER = EFFORT = judge.LIMITS["balance"]
"""Largest errors of power and efforts."""
ACCURACY = 1e-4
ENERGY = 4.0 * ACCURACY
"""Largest change of energy, of the largest kinetic energy, over steps that resolve the start: twice
the share of the speeds, and where several vibrations are coupled, the account's norm, of M's
diagonal, is not their energy."""
FINER = 8
SPEEDS = 10.0 * ACCURACY
"""Largest error of the speeds at any step, of their root mean square over the run, in each norm of
the account of a run."""

Case = tuple[str, str, str]


def instant(mech: mbd.Mechanism, change: Any, speeds: Any) -> dict[str, Any]:
    """One state near the drawn one: what the engine says of it, and what that is judged by."""
    guess = mbd.step_coordinates(mech, jnp.asarray(mbd.neutral(mech)), change)
    found = mbd.assemble(mech, guess=guess, throw=False)
    q, units = found.q, speed_units(mech)
    v = mbd.assemble_velocity(mech, q, guess=speeds)
    check = mbd.check_state(mech, q, v)
    vdot, _ = mbd.forward_dynamics(mech, q, v)
    tau, _ = mbd.inverse_dynamics(mech, q, v, vdot)
    rates = mbd.coordinate_rates(mech, q, v)
    _, power = jax.jvp(partial(_energy, mech), (q, v), (rates, vdot))
    judged = judge.matrices(mech, q, v, vdot)
    size = sizes(mech, q, v, judged)
    inertia = jnp.diagonal(mbd.mass_matrix(mech, q))
    least = 1e-12 * jnp.max(inertia * units**2) / units**2
    weight = 1.0 / jnp.sqrt(inertia + least)  # light bodies count as heavy ones
    rounded = 8.0 * jnp.finfo(float).eps * jnp.max(jnp.abs(v) / units) * units
    return {
        "ok": (found.status == 0) & (check.status == 0) & jnp.all(jnp.isfinite(vdot)),
        "contradiction": check.contradiction,
        "q": q,
        "v": v,
        "vdot": vdot,
        "tau": tau,
        "weight": weight / jnp.max(weight * size),
        # A held body's speed is the rounding of others': the power of its loads is no error.
        "power": jnp.maximum(jnp.abs(power) - rounded @ size, 0.0) / (jnp.abs(v) @ size),
        "time": 1.0 / (jnp.max(jnp.abs(v) / units) + jnp.sqrt(jnp.max(jnp.abs(vdot) / units))),
        "judged": judged,
    }


def sizes(mech: mbd.Mechanism, q: Any, v: Any, judged: dict[str, Any]) -> Any:
    """Sums (nv,) of the magnitudes of inertia forces and loads, times those of the motions."""

    def twists(v: Any) -> Any:
        found = mbd.body_velocities(mech, q, v)
        return jnp.concatenate([found[n] for n in mech.structure.bodies])

    def norms(x: Any) -> Any:  # of each moment and force, angular and linear part
        return jnp.sqrt(jnp.sum(x.reshape(-1, 3) ** 2, axis=1))

    columns = jnp.stack([norms(twists(e)) for e in jnp.eye(v.size)])
    return columns @ (norms(judged["mass"] @ judged["acceleration"]) + norms(judged["force"]))


def again(mech: mbd.Mechanism, q: Any, v: Any, vdot: Any) -> Any:
    """The efforts of a motion, for a mechanism whose numbers are moved by one rounding."""
    return mbd.inverse_dynamics(mech, q, v, vdot)[0]


def run(mech: mbd.Mechanism, q: Any, v: Any, dt: Any) -> dict[str, Any]:
    """`STEPS` steps from a state, and what they are judged by."""

    def energies(_: Any, q: Any, v: Any) -> Any:
        return mbd.kinetic_energy(mech, q, v), _energy(mech, q, v)

    found = mbd.simulate(
        mech, q, v, dt=dt, steps=STEPS, outputs=energies, throw=False, accuracy=ACCURACY
    )
    last, t = (found.q[-1], found.v[-1]), found.t[-1]
    kinetic, energy = found.outputs
    vdot, _ = mbd.forward_dynamics(mech, *last, t)
    return {
        "ok": found.status == 0,
        "contradiction": mbd.check_state(mech, q, v).contradiction,
        "finite": jnp.all(jnp.isfinite(last[0])) & jnp.all(jnp.isfinite(last[1])),
        "determinate": jnp.all(jnp.isfinite(vdot)),
        "kinetic": kinetic,
        "energy": energy,
        "speeds": found.v,
        "weights": norms(motion_state(mech, q, v)),
        "judged": judge.matrices(mech, *last, vdot, t),
    }


def finer(mech: mbd.Mechanism, q: Any, v: Any, dt: Any) -> Any:
    """Speeds (STEPS + 1, nv) at the times of `run`, from shorter steps.

    They are NaN once these fail, as where a law is not defined between the ends of the longer ones,
    which says nothing of the longer ones.
    """
    return mbd.simulate(
        mech, q, v, dt=dt / FINER, steps=STEPS * FINER, save_every=FINER, throw=False,
        accuracy=ACCURACY,
    ).v  # fmt: skip


def _energy(mech: mbd.Mechanism, q: Any, v: Any) -> Any:
    return mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q)


def judge_structure(s: Structure, n: int, seed: int) -> list[Case]:
    """(what was asked, outcome, detail) of `n` samples of a structure."""
    rng, nv = np.random.default_rng([seed, 1]), mbd.topology(s.mech).nv
    kinds, batch = numbers.batch(s.mech, n, seed, numbers.SIZES)
    change = rng.normal(size=(n, nv)) * rng.choice([0.0, 0.1, 0.5, 2.0], size=(n, 1))
    speeds = rng.normal(size=(n, nv)) * 10.0 ** rng.choice([-6, -1, 0, 0, 1, 4], size=(n, 1))
    start = _numpy(mbd.lanes.vmap(instant)(batch, change, speeds))
    motion = (start[k] for k in ("q", "v", "vdot"))
    start["moved"] = _numpy(mbd.lanes.vmap(again)(numbers.rounded(batch, rng), *motion))
    faults = [_instant_faults(s, x) if x["ok"] else None for x in _samples(start, n)]
    cases = [_case("instant", k, s, f) for k, f in zip(kinds, faults, strict=True)]
    runs, time = mbd.lanes.vmap(run), np.where(start["ok"], start["time"], 1.0)
    shorter = mbd.lanes.vmap(finer)
    for share in SHARES:
        given = batch, start["q"], start["v"], share * np.minimum(time, 1e9)
        ends = _numpy(runs(*given)) | {"finer": _numpy(shorter(*given))}
        for kind, ok, end in zip(kinds, start["ok"], _samples(ends, n), strict=True):
            if ok:
                found = _run_faults(s, end, share) if end["ok"] else None
                cases.append(_case(f"run, {share:g}", kind, s, found))
    return cases


def _case(asked: str, kind: str, s: Structure, faults: list[str] | None) -> Case:
    outcome = "flagged" if faults is None else "WRONG, reported as ok" if faults else "right"
    return asked, outcome, f"{kind}: {', '.join(faults or [])} | {s.text}"


def _instant_faults(s: Structure, x: dict[str, Any]) -> list[str]:
    faults = _equations(s, x, _told(x, 1e1))
    if s.conservative and not (x["power"] < POWER or np.isnan(x["power"])):
        faults.append(f"power {x['power']:.1e}")
    moved = x["moved"] - x["tau"]
    for name, efforts in (("effort", x["tau"]), ("effort lost to rounding", moved)):
        error = np.max(np.abs(efforts) * x["weight"], initial=0.0)
        if error > EFFORT:
            faults.append(f"{name} {error:.1e}")
    return faults


def _run_faults(s: Structure, x: dict[str, Any], share: float) -> list[str]:
    if not x["finite"]:
        return ["not finite"]
    faults = _equations(s, x) if x["determinate"] else []
    if x["contradiction"] > 0.0:
        # Redundant rows keep it, up to a hundredfold, and the first step moves q by as much.
        return _equations(s, x, _told(x, 1e2))
    kinetic, energy = np.max(x["kinetic"]), x["energy"]
    change, noise = np.max(np.abs(energy - energy[0])), 2e-12 * np.max(np.abs(energy))
    if s.conservative and share < 1.0 and not change <= ENERGY * kinetic + noise:
        faults.append(f"energy {change / kinetic:.1e} of the kinetic")
    speed, error = (y**2 @ x["weights"].T for y in (x["speeds"], x["finer"] - x["speeds"]))
    error, size = np.nanmax(error, axis=0), np.mean(speed, axis=0)
    if not np.all(error <= SPEEDS**2 * size):
        faults.append(f"speeds {np.sqrt(np.max(error / size)):.1e} off those of shorter steps")
    return faults


def _told(x: dict[str, Any], factor: float) -> dict[str, float]:
    """Limits that allow for a multiple of what redundant rows are said to contradict."""
    told = float(x["contradiction"]) / float(x["judged"]["length"])
    return judge.LIMITS | {"position": judge.LIMITS["position"] + factor * told}


def _equations(
    s: Structure, x: dict[str, Any], limits: dict[str, float] = judge.LIMITS
) -> list[str]:
    found = judge.wrong(judge.backward_errors(x["judged"]), limits)
    return [f for f in found if not (s.rubbing and f.startswith("balance"))]


def _numpy(tree: Any) -> Any:
    return jax.tree_util.tree_map(np.asarray, tree)


def _samples(tree: Any, n: int) -> list[Any]:
    return [jax.tree_util.tree_map(lambda x, i=i: x[i], tree) for i in range(n)]
