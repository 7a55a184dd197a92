"""Does it fail safely? Thousands of broken descriptions, numbers and states; counts of outcomes.

    python benchmarks/fails_safely.py [--descriptions 700] [--numbers 54] [--structures 30]
        [--samples 90] [--seed 0] [--json PATH [--resume]]

An answer that is reported as ok is judged by Newton-Euler equations in absolute coordinates
(`fails_cases.judge`), and random structures also by energy, inverse dynamics and shorter steps
(`fails_cases.motions`). Accelerations are exact unless `check_state` calls the state inaccurate;
those at such an end of a run that is reported as ok are held to the run's accuracy. Nothing may be
wrong and reported as ok, and no description may raise anything but a ValueError that says what is
wrong. Exits with 1 otherwise.

The run consists of pieces: the descriptions, the samples of each mechanism, and each random
structure. The results file is written after each; `--resume` keeps and counts the pieces that it
holds, so that a run may be continued, or other seeds be added.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import _script

_script.start()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from fails_cases import descriptions, judge, motions, numbers, structures  # noqa: E402
from throughput_cases.machine import commit  # noqa: E402

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
BAD = ("CRASHED", "WRONG, reported as ok")
OUTCOMES = ("right", "flagged", "refused", *BAD)


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
        "state exact": mbd.check_state(mech, q, v).status != mbd.Status.INACCURATE,
        "started": (started.status == 0) & jnp.all(jnp.isfinite(bad_vdot)),
        "bad state": (bad_q, bad_v, bad_vdot),
        "bad state exact": mbd.check_state(mech, bad_q, bad_v).status != mbd.Status.INACCURATE,
    }


def judge_batch(name: str, mech: mbd.Mechanism, n: int, seed: int) -> list[tuple[str, str, str]]:
    """(what was broken, outcome, detail) of `n` samples, each from its own numbers and state."""
    kinds, batch = numbers.batch(mech, n, seed)
    bad_q, bad_v = numbers.states(mech, np.tile(mbd.neutral(mech), (n, 1)), seed)
    found = jax.tree_util.tree_map(np.asarray, jax.jit(jax.vmap(answers))(batch, bad_q, bad_v))
    out = []
    for ok, state, label in (("ok", "state", "{}"), ("started", "bad state", "{}, state")):
        exactness, errors = found[f"{state} exact"], judge.errors(batch, *found[state])
        for kind, said, exact, error in zip(kinds, found[ok], exactness, errors, strict=True):
            faults = judge.wrong(error, judge.LIMITS if exact else judge.RUN_LIMITS) if said else []
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
            status = mbd.Status(int(mbd.check_state(mech, q, v).status))
    except ValueError as error:
        return ("flagged", str(error)) if len(str(error)) > 30 else ("CRASHED", str(error))
    except Exception as error:
        return "CRASHED", f"{type(error).__name__}: {error}"
    if status:
        return "flagged", status.name
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


def run_structure(samples: int, seed: int) -> list[tuple[str, str, str]]:
    """Outcomes of `samples` instants, and of three runs from each, of one random structure."""
    drawn = structures.structure(seed, structures.KINDS[seed % len(structures.KINDS)])
    found = motions.judge_structure(drawn, samples, seed)
    jax.clear_caches()
    return [(asked, outcome, f"structure {seed}, {text}") for asked, outcome, text in found]


def pieces(options: Any) -> Iterator[tuple[str, Callable[[], list[tuple[str, str, str]]]]]:
    """Name of each piece of the run, with its size and seed, and the function that runs it."""
    n, m, seed = options.numbers, options.samples, options.seed
    if options.descriptions:
        yield (
            f"{options.descriptions} descriptions, seed {seed}",
            partial(run_descriptions, options.descriptions, seed),
        )
    for name in options.only:
        yield f"{name}, {n}, seed {seed}", partial(judge_batch, name, MECHANISMS[name](), n, seed)
    for s in range(seed, seed + options.structures):
        yield f"structure {s}, {m}", partial(run_structure, m, s)


def run(options: Any) -> dict[str, Any]:
    """Run all pieces, writing the results after each: counts of outcomes, and what is bad."""
    found: dict[str, Any] = {}
    if options.resume and options.json and options.json.exists():
        found = json.loads(options.json.read_text(encoding="utf-8")).get("pieces", {})
    wanted = dict(pieces(options))
    for k, (name, judged) in enumerate(wanted.items(), 1):
        if name not in found:
            start = time.monotonic()
            piece = summary(judged()) | {"commit": commit()}
            found[name] = piece | {"seconds": round(time.monotonic() - start)}
            _script.write(options.json, {"all": totals(found), "pieces": found})
        piece = found[name]
        cases = sum(sum(counts.values()) for counts in piece["counts"].values())
        print(
            f"{k}/{len(wanted)} {name}: {cases} cases, {len(piece['bad'])} bad, "
            f"{piece['seconds']} s",
            file=sys.stderr,
            flush=True,
        )
    return found


def summary(found: list[tuple[str, str, str]]) -> dict[str, Any]:
    """Counts of outcomes by what was broken or asked, and the text of what must not be."""
    counts: dict[str, Counter[str]] = {}
    for kind, outcome, _ in found:
        counts.setdefault(kind, Counter())[outcome] += 1
    bad = [f"{k}, {o}: {text[:300]}" for k, o, text in found if o in BAD]
    return {"counts": counts, "bad": bad}


def totals(found: dict[str, Any]) -> dict[str, Counter[str]]:
    """Counts of outcomes of all pieces, by what was broken."""
    table: dict[str, Counter[str]] = {}
    for piece in found.values():
        for kind, counts in piece["counts"].items():
            table.setdefault(kind, Counter()).update(counts)
    return table | {"all": sum(table.values(), Counter())}


def report(found: dict[str, Any]) -> int:
    """Print the counts by what was broken, and what is bad; the number of the bad."""
    table = totals(found)
    print(f"{'broken':26s}" + "".join(f"{o:>24s}" for o in OUTCOMES))
    for kind, counts in table.items():
        print(f"{kind:26s}" + "".join(f"{counts[o]:24d}" for o in OUTCOMES))
    bad = [text for piece in found.values() for text in piece["bad"]]
    print(*(f"  {text}" for text in bad), sep="\n")
    print(f"{table['all'].total()} cases, {len(bad)} of them wrong or crashed")
    return len(bad)


def main() -> int:
    parser = _script.parser(__doc__)
    parser.add_argument("--descriptions", type=int, default=700)
    parser.add_argument("--numbers", type=int, default=54, help="samples of each mechanism")
    parser.add_argument("--structures", type=int, default=30, help="random mechanisms")
    parser.add_argument("--samples", type=int, default=90, help="of each random mechanism")
    parser.add_argument("--only", nargs="*", default=list(MECHANISMS), help="mechanisms")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="keep the pieces in the JSON file")
    return int(report(run(parser.parse_args())) > 0)


if __name__ == "__main__":
    sys.exit(main())
