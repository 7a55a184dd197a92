"""Broken descriptions, broken numbers and broken states of known mechanisms.

An answer that is reported as ok is judged by Newton-Euler equations in absolute coordinates
(`judge`). Accelerations are exact unless `check_state` calls the state inaccurate; those at such an
end of a run that is reported as ok are held to the run's accuracy.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import descriptions, judge, numbers
from fails_cases.judged import CRASHED, FLAGGED, REFUSED, RIGHT, WRONG, Judged
from jaxmbd.kinematics.scales import mechanism_length

SHARE = 2.0
DESCRIPTION, ENDED, STARTED = (
    "forward_dynamics, broken description",
    "forward_dynamics, broken numbers",
    "forward_dynamics, broken state",
)
NUMBERS = dict.fromkeys(
    (DESCRIPTION, ENDED, STARTED), "residuals of Newton-Euler equations in absolute coordinates"
)

zoo = mbd.zoo
MECHANISMS = {
    "pendulum": zoo.simple_pendulum,
    "double pendulum": zoo.double_pendulum,
    "RSSR": zoo.rssr,
    "RSSR of revolutes": zoo.rssr_revolutes,
    "four-bar": zoo.four_bar,
    "slider-crank": zoo.slider_crank,
    "two four-bars": partial(zoo.n_four_bar, 2),
    "parallel crank": zoo.double_parallel_crank,
    "spatial slider-crank": zoo.spatial_slider_crank,
    "five-bar": zoo.five_bar,
    "double wishbone": zoo.double_wishbone,
    "MacPherson": zoo.macpherson,
    "multi-link": zoo.multi_link,
}
STEPS, DT = 20, 1e-3


def answers(mech: mbd.Mechanism, bad_q: Any, bad_v: Any) -> dict[str, Any]:
    """What the engine says of one sample: assembled, moved from rest, and started anywhere."""
    assembly = mbd.assemble(mech, throw=False)
    run = partial(mbd.simulate, mech, dt=DT, outputs_only=True, throw=False)
    moved = run(assembly.q, t1=STEPS * DT)
    q, v = moved.q[-1], moved.v[-1]
    vdot, _ = mbd.forward_dynamics(mech, q, v)
    started = run(bad_q, bad_v, t1=DT)
    bad_vdot, _ = mbd.forward_dynamics(mech, bad_q, bad_v)
    ok = (assembly.status == 0) & (moved.status == 0)
    length = mechanism_length(mech)
    return {
        "state told": mbd.check_state(mech, q, v).contradiction / length,
        "bad state told": mbd.check_state(mech, bad_q, bad_v).contradiction / length,
        "ok": ok & jnp.all(jnp.isfinite(vdot)),
        "state": (q, v, vdot),
        "state exact": mbd.check_state(mech, q, v).status != mbd.Status.INACCURATE,
        "started": (started.status == 0) & jnp.all(jnp.isfinite(bad_vdot)),
        "bad state": (bad_q, bad_v, bad_vdot),
        "bad state exact": mbd.check_state(mech, bad_q, bad_v).status != mbd.Status.INACCURATE,
    }


def judge_batch(name: str, mech: mbd.Mechanism, n: int, seed: int) -> list[Judged]:
    """Cases of `n` samples, each from its own numbers and state."""
    kinds, batch = numbers.batch(mech, n, seed)
    bad_q, bad_v = numbers.states(mech, np.tile(mbd.neutral(mech), (n, 1)), seed)
    found = jax.tree_util.tree_map(np.asarray, jax.jit(jax.vmap(answers))(batch, bad_q, bad_v))
    out = []
    for ok, state, number in (("ok", "state", ENDED), ("started", "bad state", STARTED)):
        exactness, errors = found[f"{state} exact"], judge.errors(batch, *found[state])
        each = zip(kinds, found[ok], exactness, errors, strict=True)
        for i, (kind, said, exact, error) in enumerate(each):
            limits = judge.LIMITS if exact else judge.RUN_LIMITS
            told = found[f"{state} told"][i]  # redundant rows keep it, up to a hundredfold
            limits = limits | {"position": limits["position"] + 1e2 * told}
            faults = judge.wrong(error, limits) if said else []
            outcome = WRONG if faults else RIGHT if said else FLAGGED
            worst = max(error.values()) if said and exact else float("nan")
            text = f"{name}, {kind}, {i} of {n}, seed {seed}: {', '.join(faults)}"
            out.append(Judged(number, outcome, worst, text))
    return out


def judge_description(data: dict[str, Any]) -> tuple[str, str]:
    """Outcome and detail of one description on the host."""
    mech, why = descriptions.build(data)
    if mech is None:
        return (REFUSED, why) if why == "refused" else (CRASHED, why)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            q = mbd.assemble(mech).q
            v = mbd.assemble_velocity(mech, q)
            vdot, _ = mbd.forward_dynamics(mech, q, v)
            status = mbd.Status(int(mbd.check_state(mech, q, v).status))
    except ValueError as error:
        return (FLAGGED, str(error)) if len(str(error)) > 30 else (CRASHED, str(error))
    except Exception as error:
        return CRASHED, f"{type(error).__name__}: {error}"
    if status:
        return FLAGGED, status.name
    one = jax.tree_util.tree_map(lambda x: np.asarray(x)[None], (mech, q, v, vdot))
    faults = judge.wrong(judge.errors(*one)[0])
    return (WRONG, ", ".join(faults)) if faults else (RIGHT, "")


def judge_descriptions(n: int, seed: int) -> Iterator[Judged]:
    """Cases of `n` broken descriptions."""
    rng = np.random.default_rng(seed)
    plain = {name: mbd.io.to_dict(make()) for name, make in MECHANISMS.items()}
    for i in range(n):
        name = list(plain)[rng.integers(len(plain))]
        data, change = descriptions.broken(plain[name], rng)
        outcome, detail = judge_description(data)
        text = f"{name}, {change}, {i} of {n}, seed {seed}: {detail}"
        yield Judged(DESCRIPTION, outcome, float("nan"), text)


def judged(seed: int, size: int) -> Iterator[Judged]:
    """A third of broken descriptions, two thirds of broken numbers and states."""
    yield from judge_descriptions(max(1, size // 3), seed)
    each = max(9, size // 3 // len(MECHANISMS))
    for name, make in MECHANISMS.items():
        yield from judge_batch(name, make(), each, seed)
        jax.clear_caches()
