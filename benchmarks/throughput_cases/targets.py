"""The targets for speed, each as measured / target: met at 1 or more."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from _script import BATCH

from throughput_cases.child import in_child
from throughput_cases.columns import LANES, ONE_CORE, PINOCCHIO, PINOCCHIO_ONE, VMAP
from throughput_cases.report import Results, Row
from throughput_cases.work import FORWARD, GRADIENT, ROLLOUT

FIRST_CALLS = (("chain8", FORWARD, 1.5), ("chain24", FORWARD, 5.0), ("multi_link", GRADIENT, 10.0))
MEMORY_STEPS = (1000, 4000, 16_000)
MEMORY_NOISE = 1e6  # bytes: a smaller growth counts as this
GROWTH = 2.5  # growth ratio for four times the steps: 2 for a square root, 4 if linear


@dataclass(frozen=True)
class Target:
    """A target; `least` says whether more is better."""

    text: str
    reached: float | None
    target: float
    least: bool = True
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Measured / target, or its inverse if less is better."""
        if self.reached is None:
            return None
        return self.reached / self.target if self.least else self.target / self.reached

    def line(self) -> str:
        bound = ("≥" if self.least else "≤") + f" {self.target:g}"
        if self.ratio is None:
            return f"  {self.text:76s} {'not run':>9s} {bound:>7s}  {self.note}".rstrip()
        return f"  {self.text:76s} {self.reached:9.3g} {bound:>7s}  {self.ratio:6.2f}  {self.note}"


def first_calls(results: Results, cases: list[str], steps: int) -> None:
    """First calls of lanes, each in a new process with nothing compiled before."""
    for case, work, _ in FIRST_CALLS:
        if case not in cases:
            continue
        batch = BATCH if work == FORWARD else 64
        found = in_child("first", case, work, steps, batch)
        _note(results, results.first_calls, found, dict(case=case, work=work, batch=batch))


def memory(results: Results, cases: list[str], batch: int = 64) -> None:
    """Memory of the gradient of the multi-link rollout over the number of steps."""
    for steps in MEMORY_STEPS if "multi_link" in cases else ():
        found = in_child("memory", "multi_link", GRADIENT, steps, batch)
        facts = dict(case="multi_link", work=GRADIENT, steps=steps, batch=batch)
        _note(results, results.memory, found, facts)


def _note(results: Results, kept: list[Any], found: Any, facts: dict[str, Any]) -> None:
    name = ", ".join(str(x) for x in facts.values())
    if isinstance(found, str):
        results.skip(f"{name}: {found}")
        return
    kept.append(facts | found)
    print(f"    {name}: " + ", ".join(f"{key} {x:.3g}" for key, x in found.items()), flush=True)
    results.save()


def targets(results: Results, cores: int) -> list[Target]:
    """All targets; those whose numbers were not measured have `reached` None."""
    out = []
    for case, bodies, least in (("chain8", 8, 40.0), ("chain24", 24, 25.0)):
        out += _forward(results, case, f"{bodies} revolutes", least, cores)
    out += _rollout(results)
    out.append(_memory(results))
    for case, work, most in FIRST_CALLS:
        seconds = next((f["seconds"] for f in results.first_calls if f["case"] == case), None)
        out.append(Target(f"first call, {case}, {work} [s]", seconds, most, least=False))
    results.targets = [asdict(t) | {"ratio": t.ratio} for t in out]
    return out


def _memory(results: Results) -> Target:
    """Growth with the steps, in which constant parts (the program, buffers) cancel."""
    low, middle, high = MEMORY_STEPS
    text = f"memory of that gradient: growth {middle} to {high} steps over {low} to {middle}"
    found = {m["steps"]: m["bytes"] for m in results.memory}
    if len(found) < len(MEMORY_STEPS):
        return Target(text, None, GROWTH, least=False)
    first = max(found[middle] - found[low], MEMORY_NOISE)
    second = max(found[high] - found[middle], MEMORY_NOISE)
    note = ", ".join(f"{found[n] / 1e6:.1f}" for n in MEMORY_STEPS) + " MB"
    return Target(text, second / first, GROWTH, least=False, note=note)


def _ratio(a: Row | None, b: Row | None) -> float | None:
    return a.per_second / b.per_second if a and b else None


def _forward(results: Results, case: str, name: str, least: float, cores: int) -> list[Target]:
    def find(column: str, batch: int) -> Row | None:
        wanted = dict(case=case, work=FORWARD, dtype="float64", column=column)
        return results.find(**wanted | ({"batch": batch} if batch else {}))

    rows = [r for r in results.rows if r.case == case and r.work == FORWARD and r.batch >= BATCH]
    batches = sorted({r.batch for r in rows if r.dtype == "float64"}) or [BATCH]
    pinocchio = find(PINOCCHIO, 0), find(PINOCCHIO_ONE, 0)
    out = []
    for batch in batches:
        one, all_ = find(ONE_CORE, batch), find(LANES, batch)
        where = f"{name}, batch {batch}"
        text = f"{where}: a core over Pinocchio"
        note = f"{_ratio(one, pinocchio[1]) or 0.0:.1f} over one design that stays in its cache"
        out.append(Target(text, _ratio(one, pinocchio[0]), least, note=note))
        vmap = find(VMAP, batch)
        if vmap or batch == BATCH:
            out.append(Target(f"{where}: machine over jax.vmap", _ratio(all_, vmap), 30.0))
        if cores == 2:
            out.append(Target(f"{where}: both cores over one", _ratio(all_, one), 1.8))
    return out


def _rollout(results: Results) -> list[Target]:
    wanted = dict(case="multi_link", work=ROLLOUT, dtype="float64", batch=10_000)
    text = "multi-link rollout, batch 10000: machine over jax.vmap and scan"
    ratio = _ratio(results.find(column=LANES, **wanted), results.find(column=VMAP, **wanted))
    out = [Target(text, ratio, 20.0)]
    wanted |= dict(work=GRADIENT, column=LANES)
    batches = {r.batch for r in results.rows if (r.case, r.work) == ("multi_link", GRADIENT)}
    both = [
        (
            results.find(**wanted | dict(work=ROLLOUT, batch=b)),
            results.find(**wanted | dict(batch=b)),
        )
        for b in sorted(batches)
    ]
    both = [pair for pair in both if pair[0] and pair[1]]
    last = both[-1] if both else (None, None)
    batch = last[0].batch if last[0] else 0
    text = f"its value and gradient over the rollout alone, batch {batch or 'none'}"
    return [*out, Target(text, _ratio(*last), 7.0, least=False)]


def shares(results: Results, peak: dict[str, float]) -> list[dict[str, Any]]:
    """Share of a core's peak speed reached by forward dynamics, if operations are counted."""
    out = []
    for row in results.rows:
        if row.flops and row.column == ONE_CORE and row.batch >= BATCH:
            share = row.flops * row.per_second / peak[row.dtype]
            out.append(
                dict(case=row.case, dtype=row.dtype, batch=row.batch, flops=row.flops, share=share)
            )
    return out
