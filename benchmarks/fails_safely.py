"""Does it fail safely? Thousands of broken descriptions, numbers and states; counts of outcomes.

    python benchmarks/fails_safely.py [--descriptions 700] [--numbers 54] [--structures 24]
        [--samples 90] [--json PATH]

An answer that is reported as ok is judged by Newton-Euler equations in absolute coordinates
(`fails_cases.judge`), and random structures also by energy and inverse dynamics
(`fails_cases.motions`). Nothing may be wrong and reported as ok, and no description may raise
anything but a ValueError that says what is wrong. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parent))  # a checkout that is not installed

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    jax.config.update("jax_compilation_cache_dir", str(HERE.parent / ".cache" / "jax"))

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from fails_cases import descriptions, judge, motions, numbers, structures  # noqa: E402

import jaxmbd as mbd  # noqa: E402

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
    return {
        "ok": ok & jnp.all(jnp.isfinite(vdot)),
        "state": (q, v, vdot),
        "started": (started.status == 0) & jnp.all(jnp.isfinite(bad_vdot)),
        "bad state": (bad_q, bad_v, bad_vdot),
    }


def judge_batch(name: str, mech: mbd.Mechanism, n: int, seed: int) -> list[tuple[str, str, str]]:
    """(what was broken, outcome, detail) of `n` samples, each from its own numbers and state."""
    kinds, batch = numbers.batch(mech, n, seed)
    bad_q, bad_v = numbers.states(mech, np.tile(mbd.neutral(mech), (n, 1)), seed)
    found = jax.tree_util.tree_map(np.asarray, jax.jit(jax.vmap(answers))(batch, bad_q, bad_v))
    out = []
    for ok, state, label in (("ok", "state", "{}"), ("started", "bad state", "{}, state")):
        for kind, said, error in zip(
            kinds, found[ok], judge.errors(batch, *found[state]), strict=True
        ):
            faults = judge.wrong(error) if said else []
            outcome = "WRONG, reported as ok" if faults else "right" if said else "flagged"
            out.append((label.format(kind), outcome, f"{name}: {', '.join(faults)}"))
    return out


def judge_description(data: dict[str, Any]) -> tuple[str, str]:
    """Outcome and detail of one description on the host."""
    mech, why = descriptions.build(data)
    if mech is None:
        return ("refused", why) if why == "refused" else ("CRASHED", why)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            q = mbd.assemble(mech).q
            v = mbd.assemble_velocity(mech, q)
            vdot, _ = mbd.forward_dynamics(mech, q, v)
    except ValueError as error:
        return ("flagged", str(error)) if len(str(error)) > 30 else ("CRASHED", str(error))
    except Exception as error:
        return "CRASHED", f"{type(error).__name__}: {error}"
    one = jax.tree_util.tree_map(lambda x: np.asarray(x)[None], (mech, q, v, vdot))
    faults = judge.wrong(judge.errors(*one)[0])
    return ("WRONG, reported as ok", ", ".join(faults)) if faults else ("right", "")


def run_descriptions(n: int, seed: int) -> list[tuple[str, str, str]]:
    """Outcomes of `n` broken descriptions."""
    rng = np.random.default_rng(seed)
    plain = {name: mbd.io.to_dict(make()) for name, make in MECHANISMS.items()}
    out = []
    for _ in range(n):
        name = list(plain)[rng.integers(len(plain))]
        data, change = descriptions.broken(plain[name], rng)
        outcome, detail = judge_description(data)
        out.append(("description", outcome, f"{name}, {change}: {detail}"))
    return out


def run_structures(count: int, samples: int, seed: int) -> list[tuple[str, str, str]]:
    """Outcomes of `samples` instants, and of three runs from each, of random structures."""
    out = []
    for i in range(count):
        start = time.monotonic()
        found = motions.judge_structure(
            structures.structure(seed + i, structures.KINDS[i % 3]), samples, seed + i
        )
        out += [(asked, outcome, f"structure {seed + i}, {text}") for asked, outcome, text in found]
        wrong = sum(outcome.startswith("WRONG") for _, outcome, _ in found)
        took = time.monotonic() - start
        print(f"structure {seed + i}: {wrong} wrong, {took:.0f} s", file=sys.stderr, flush=True)
        jax.clear_caches()
    return out


def report(found: list[tuple[str, str, str]]) -> dict[str, dict[str, int]]:
    """Print and return the counts by what was broken; list what must not be."""
    outcomes = ["right", "flagged", "refused", "CRASHED", "WRONG, reported as ok"]
    table: dict[str, Counter[str]] = {}
    for kind, outcome, _ in found:
        table.setdefault(kind, Counter())[outcome] += 1
    print(f"{'broken':26s}" + "".join(f"{o:>24s}" for o in outcomes))
    total = sum(table.values(), Counter())
    for kind, counts in [*table.items(), ("all", total)]:
        print(f"{kind:26s}" + "".join(f"{counts[o]:24d}" for o in outcomes))
    for kind, outcome, detail in found:
        if outcome.isupper() or outcome.startswith("WRONG"):
            print(f"  {kind}, {outcome}: {detail[:300]}")
    return {k: {o: c[o] for o in outcomes} for k, c in [*table.items(), ("all", total)]}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--descriptions", type=int, default=700)
    parser.add_argument("--numbers", type=int, default=54, help="samples of each mechanism")
    parser.add_argument("--structures", type=int, default=24, help="random mechanisms")
    parser.add_argument("--samples", type=int, default=90, help="of each random mechanism")
    parser.add_argument("--only", nargs="*", default=list(MECHANISMS), help="mechanisms")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the counts to this file")
    options = parser.parse_args()
    found = run_descriptions(options.descriptions, options.seed)
    for name in options.only:
        found += judge_batch(name, MECHANISMS[name](), options.numbers, options.seed)
        print(f"{name}: done", file=sys.stderr, flush=True)
    found += run_structures(options.structures, options.samples, options.seed)
    counts = report(found)
    if options.json:
        options.json.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    bad = counts["all"]["CRASHED"] + counts["all"]["WRONG, reported as ok"]
    print(f"{len(found)} cases, {bad} of them wrong or crashed")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
