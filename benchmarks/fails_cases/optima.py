"""Minima that are known: quadratic programs by their active sets, wells, measures of samples.

A quadratic program ``½ (x − c)ᵀ H (x − c)`` within ``l ≤ A x ≤ u`` has one minimum, at which some
rows are at a limit: of all such sets of rows the oracle solves ``H (x − c) = A_sᵀ μ, A_s x = b``,
and keeps the solution whose x is within all limits and whose μ push inwards.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import FLAGGED, REFUSED, WRONG, Judged, compare, or_crash
from fails_cases.sample_statistics import mean_of, quantile_of, std_of
from jaxmbd import design
from jaxmbd.sampling import Normal

PER_CASE = 15
_SETS = "active sets of a quadratic program, one by one"
_CLOSED = "the objective in NumPy, at the design that was found"
_EXACT = "exact sums of fractions; loops over the sorted samples"
_SLOPE = "derivatives of moments and of weights of sorted samples in closed form"
MEASURES = ("Mean", "Variance", "Deviation", "Quantile", "Tail")
NUMBERS = {
    "minimize": f"{_SETS}; two wells, whose minima are roots of a cubic",
    "design.Optimum.values": _SETS,
    "design.Optimum.objective": f"{_SETS}; {_CLOSED}",
    "design.Optimum.before": "the start that was given",
    "design.Optimum.objective_before": "the objective in NumPy, at the start",
    "design.Optimum.constraints": "rows of the program, at its minimum",
    "design.Optimum.multipliers": f"{_SETS}: their μ",
    "design.Optimum.kkt": "gradient less multiples of the rows in NumPy, over that at the start",
    "design.Optimum.history": "the objective at the start and at the minimum",
    "design.Optimum.designs": "the objective in NumPy must be that of each start",
    "design.Optimum.objectives": "the objective in NumPy, at what each start ended with",
    "design.Optimum.reached": "a loop over the starts",
    "design.Optimum.evaluations": "calls that are counted; a store that holds all of them",
    "design.Optimum.computed": "calls that are counted; a store that holds all of them",
    "design.Optimum.idle": "which columns of the program are zero",
    "minimize, scatter": "the mean and the tail of quadratic functions of the drawn samples",
} | {f"design.{n}.of": _EXACT for n in MEASURES} | {
    f"design.{n}.of, {way} derivative": _SLOPE for n in MEASURES for way in ("forward", "reverse")
}  # fmt: skip
TOLERANCE = 1e-8
"""Of `minimize`, by default: of the gradient over that at the start, and of scaled limits."""


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Programs, wells, impossible limits, scatter; and measures, compiled once for each size."""
    for k in range(max(1, round(size / PER_CASE))):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        judges: list[Any] = [_program, _measures]
        judges += [(_wells, _impossible, _scattered, _stored)[k % 4]]
        for judge in judges:
            yield from or_crash("minimize", judge(rng, text), f"{judge.__name__} | {text}")


class Program(NamedTuple):
    """``½ (x − c)ᵀ H (x − c) + k`` within ``low ≤ rows x ≤ high``; the first rows are x itself."""

    hessian: np.ndarray
    centre: np.ndarray
    constant: float
    rows: np.ndarray
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    idle: np.ndarray

    def value(self, x: np.ndarray) -> float:
        """The objective at x."""
        return float(0.5 * (x - self.centre) @ self.hessian @ (x - self.centre) + self.constant)

    def slope(self, x: np.ndarray) -> np.ndarray:
        """Its gradient."""
        return self.hessian @ (x - self.centre)


def drawn(rng: np.random.Generator) -> Program:
    """Unknowns of one unit, some of which may change nothing."""
    n, m = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    axes, _ = np.linalg.qr(rng.normal(size=(n, n)))
    hessian = axes @ np.diag(10.0 ** rng.uniform(-1, 1, n)) @ axes.T
    more = rng.normal(size=(m, n))
    idle = np.zeros(n, bool)
    if n > 1 and rng.random() < 0.3:
        idle[rng.integers(n)] = True
        hessian[idle] = hessian[:, idle] = more[:, idle] = 0.0
    start = rng.uniform(-0.5, 0.5, n)
    middle = more @ start + rng.uniform(-0.5, 0.5, m)
    half = rng.choice([0.0, 0.3, np.inf], m)
    low = np.where(rng.random(m) < 0.5, middle - half, middle)
    high = middle + half
    if n - idle.sum() < 2:
        low, high = np.full(m, -np.inf), np.where(high - low > 0, high, np.inf)
    return Program(
        hessian, rng.uniform(-2, 2, n), float(rng.normal()), np.concatenate([np.eye(n), more]),
        np.concatenate([-np.ones(n), low]), np.concatenate([np.ones(n), high]), start, idle,
    )  # fmt: skip


def solved(p: Program) -> list[tuple[np.ndarray, np.ndarray]]:
    """Minimum and multipliers of all sets of rows at their limits that are a solution."""
    live = ~p.idle
    h, a = p.hessian[np.ix_(live, live)], p.rows[:, live]
    here = np.flatnonzero(np.any(a != 0.0, axis=1))
    found = []
    for sides in itertools.product((0, -1, 1), repeat=len(here)):
        at = [i for i, side in zip(here, sides, strict=True) if side]
        ends = [(p.low if s < 0 else p.high)[i] for i, s in zip(here, sides, strict=True) if s]
        if not np.all(np.isfinite(ends)) or len(at) > len(h):
            continue
        if any(p.low[i] == p.high[i] and not s for i, s in zip(here, sides, strict=True)):
            continue  # an equality is always at its limit
        rows = a[at]
        if np.linalg.matrix_rank(rows) < len(at):
            continue
        zero = np.zeros((len(at), len(at)))
        whole = np.linalg.solve(
            np.block([[h, -rows.T], [rows, zero]]), np.concatenate([h @ p.centre[live], ends])
        )
        x, mu = whole[: len(h)], np.zeros(len(p.rows))
        mu[at] = whole[len(h) :]
        inward = np.where(p.low == p.high, 0.0, np.where(np.isin(np.arange(len(mu)), at), mu, 0.0))
        side = np.zeros(len(mu))
        side[here] = sides
        reach = a @ x
        within = np.all(reach[here] >= p.low[here] - 1e-9) & np.all(
            reach[here] <= p.high[here] + 1e-9
        )
        if within and np.all(inward * side <= 1e-9):
            full = p.start.copy()
            full[live] = x
            found.append((full, mu))
    return found


def _posed(p: Program) -> dict[str, Any]:
    n = len(p.centre)
    limits = {
        f"c{i}": design.InRange(lambda s, i=i: p.rows[n + i] @ s["x"], low, high)
        for i, (low, high) in enumerate(zip(p.low[n:], p.high[n:], strict=True))
        if np.isfinite(low) or np.isfinite(high)
    }
    vary = {"x": design.Between(p.low[:n], p.high[:n], start=p.start)}
    away = lambda s: s["x"] - p.centre  # noqa: E731
    return {
        "objective": lambda s: 0.5 * away(s) @ p.hessian @ away(s) + p.constant,
        "model": None,
        "vary": vary,
        "constraints": limits,
    }


def _program(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    p = drawn(rng)
    method = str(rng.choice(["slsqp", "slsqp", "slsqp", "trust-constr"]))
    starts = 1 if method == "trust-constr" else int(rng.integers(1, 5))
    text = f"{method}, {starts} starts, {text}"
    ends = solved(p)
    found = mbd.minimize(**_posed(p), method=method, starts=starts)
    if not ends:  # the limits exclude each other
        outcome = WRONG if found.status in ("optimal", "feasible") else FLAGGED
        yield Judged("minimize", outcome, math.nan, f"impossible, {text}")
        return
    ok = found.status == "optimal"
    n, (best, mu) = len(p.centre), ends[0]
    live = ~p.idle
    x = np.array(list(found.values.values()))
    gradient = max(float(np.max(np.abs(p.slope(p.start)), initial=0.0)), 1e-300)
    least = np.min(np.linalg.eigvalsh(p.hessian[np.ix_(live, live)]), initial=np.inf)
    # Gradient and limits are kept to the tolerance; a vertex magnifies that by its rows' inverse.
    steep = _steepness(p, mu) * (1.0 + gradient / least)
    limit = 10.0 * TOLERANCE * (1.0 + steep)
    for name in ("minimize", "design.Optimum.values"):
        yield compare(name, x[live], best[live], limit=limit, scale=1.0, detail=text, ok=ok)
    key, size = "design.Optimum.", gradient + abs(p.value(p.start))
    yield compare(
        f"{key}objective", found.objective, p.value(best),
        limit=limit, scale=size * (1.0 + steep), detail=text, ok=ok,
    )  # fmt: skip
    yield compare(
        f"{key}objective", found.objective, p.value(x), limit=1e-12, scale=size, detail=text
    )
    before = list(found.before.values())
    yield compare(f"{key}before", before, p.start, limit=0.0, detail=text)
    yield compare(
        f"{key}objective_before", found.objective_before, p.value(p.start),
        limit=1e-13, scale=size, detail=text,
    )  # fmt: skip
    names = [f"x/{i}" if n > 1 else "x/0" for i in range(n)] + [f"c{i}" for i in range(len(mu) - n)]
    each = [i for i, name in enumerate(names) if name in found.constraints]
    if each:
        got = [found.constraints[names[i]] for i in each]
        yield compare(
            f"{key}constraints", got, p.rows[each] @ x, limit=1e-13, scale=1.0, detail=text
        )
    alike = all(np.max(np.abs(other - mu)) < 1e-9 for _, other in ends)
    if alike:
        got = np.array([found.multipliers.get(name, 0.0) for name in names])
        yield compare(
            f"{key}multipliers", got, mu, limit=limit * 10.0, scale=gradient * (1.0 + steep),
            detail=text, ok=ok,
        )  # fmt: skip
    yield from _optimality(p, found, x, names, gradient, text)
    yield from _course(p, found, gradient, text)
    yield compare(f"{key}idle", found.idle, p.idle, limit=0.0, detail=text)


def _steepness(p: Program, mu: np.ndarray) -> float:
    rows = p.rows[mu != 0.0][:, ~p.idle]
    return 1.0 / float(np.min(np.linalg.svd(rows, compute_uv=False))) if len(rows) else 1.0


def _optimality(
    p: Program, found: Any, x: np.ndarray, names: list[str], gradient: float, text: str
) -> Iterator[Judged]:
    """What is left of the gradient must not be more than what is said."""
    mu = np.array([found.multipliers.get(name, 0.0) for name in names])
    left = float(np.max(np.abs(p.slope(x) - p.rows.T @ mu))) / gradient
    over = max(left - found.kkt, 0.0)
    yield compare("design.Optimum.kkt", over, 0.0, limit=1e-12, scale=1.0, detail=text)
    promised = found.status != "optimal" or found.kkt <= TOLERANCE
    yield compare("design.Optimum.kkt", promised, True, limit=0.0, detail=text)


def _course(p: Program, found: Any, gradient: float, text: str) -> Iterator[Judged]:
    key, size = "design.Optimum.", gradient + abs(p.value(p.start))
    designs, ends = np.asarray(found.designs), np.asarray(found.objectives)
    values = np.array([p.value(x) for x in designs])
    there = np.isfinite(ends)
    yield compare(
        f"{key}objectives", ends[there], values[there], limit=1e-12, scale=size, detail=text
    )
    best = found.status == "infeasible" or np.nanmin(ends) == found.objective
    yield compare(f"{key}designs", best, True, limit=0.0, detail=text)
    gained = max(abs(found.objective), abs(p.value(p.start) - found.objective))
    near = np.array([y - found.objective <= 1e-6 * gained for y in ends])
    sure = np.abs(np.abs(ends - found.objective) - 1e-6 * gained) > 1e-9 * gained
    if np.all(sure):
        yield compare(f"{key}reached", found.reached, near.mean(), limit=1e-12, detail=text)
    history = np.asarray(found.history)
    if found.status != "infeasible":
        # No iteration is better than what was found; Newton's method then adds the last digits.
        off = np.min(history[history[:, 1] <= TOLERANCE, 0], initial=np.inf) - found.objective
        yield compare(f"{key}history", off < -1e-7 * size, False, limit=0.0, detail=text)
        yield compare(f"{key}history", off, 0.0, limit=1e-2, scale=size, detail=text)
    if len(designs) == 1:
        yield compare(
            f"{key}history", history[0, 0], p.value(p.start), limit=1e-12, scale=size, detail=text
        )


def _wells(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """``(y² − 1)² + t y``, also from the top between its two minima: 4 y³ − 4 y + t = 0."""
    t = float(rng.choice([0.0, 0.0, rng.uniform(-1.0, 1.0)]))
    roots = np.roots([4.0, 0.0, -4.0, t])
    flat = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
    minima = [y for y in flat if 12.0 * y * y - 4.0 > 0.0]
    top = [y for y in flat if 12.0 * y * y - 4.0 < 0.0]
    start = float(top[0]) if rng.random() < 0.5 else float(rng.uniform(-1.9, 1.9))
    starts = int(rng.choice([1, 6]))
    found = mbd.minimize(
        lambda s: (s["y"] ** 2 - 1.0) ** 2 + t * s["y"], None,
        {"y": design.Between(-2.0, 2.0, start=start)}, starts=starts,
    )  # fmt: skip
    text = f"two wells, t {t:.3f}, start {start:.6f}, {starts} starts, {text}"
    y = found.values["y"]
    ok = found.status == "optimal"
    nearest = min(minima, key=lambda x: abs(x - y))
    yield compare("minimize", y, nearest, limit=1e-6, scale=1.0, detail=text, ok=ok)
    value = (y * y - 1.0) ** 2 + t * y
    yield compare(
        "design.Optimum.objective", found.objective, value, limit=1e-14, scale=1.0, detail=text
    )
    ends = np.asarray(found.designs)[:, 0]
    wanted = (ends**2 - 1.0) ** 2 + t * ends
    yield compare(
        "design.Optimum.objectives", found.objectives, wanted, limit=1e-13, scale=1.0, detail=text
    )
    gained = max(abs(value), abs((start**2 - 1.0) ** 2 + t * start - value))
    share = np.mean(wanted - value <= 1e-6 * gained)
    yield compare("design.Optimum.reached", found.reached, share, limit=1e-12, detail=text)


def _impossible(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """No design within the limits, or none whose objective is a number."""
    if rng.random() < 0.5:
        a, b = rng.uniform(2.5, 9.0), rng.normal()
        found = mbd.minimize(
            lambda s: (s["x"][0] - b) ** 2 + s["x"][1] ** 2, None,
            {"x": design.Between(-np.ones(2), np.ones(2), start=np.zeros(2))},
            constraints={"sum": design.AtLeast(lambda s: jnp.sum(s["x"]), a)},
        )  # fmt: skip
        outcome = FLAGGED if found.status == "infeasible" else WRONG
        yield Judged("minimize", outcome, math.nan, f"sum of {a:.3f}, {text}")
        return
    a = float(rng.uniform(1.5, 5.0))
    try:
        mbd.minimize(lambda s: jnp.sqrt(s["x"] - a), None, {"x": design.Between(0.0, 1.0)})
        outcome = WRONG
    except ValueError:
        outcome = REFUSED
    yield Judged("minimize", outcome, math.nan, f"root of less than zero, {text}")


def _scattered(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """``(m + d − c)²`` of a mass m over samples d, ``z = m − c``.

    Its mean is least at ``z = −mean d``, its variance ``Var(2 z d + d²)`` at ``−Cov(d, d²) / 2 Var
    d``, and the mean of its worst quarter, which is convex, by golden section.
    """
    c, spread = float(rng.uniform(0.7, 1.3)), float(rng.uniform(0.05, 0.3))
    mech, name = mbd.zoo.simple_pendulum(), "bodies/bob/mass"
    scatter = design.Scatter({name: Normal(spread)}, 32, int(rng.integers(99)))
    d = scatter.drawn(mech)[name]
    kind = str(rng.choice(["mean", "variance", "tail"]))
    over = {"mean": None, "variance": design.Variance(), "tail": design.Tail(0.25)}[kind]
    if kind == "mean":
        z = -float(np.mean(d))
    elif kind == "variance":
        z = -float(np.cov(d, d * d)[0, 1] / (2.0 * np.var(d, ddof=1)))
    else:
        z = _golden(lambda x: float(np.mean(np.sort((x + d) ** 2)[-8:])), -1.0, 1.0)
    found = mbd.minimize(
        lambda m: (m.bodies["bob"].mass - c) ** 2, mech, {name: design.Within(0.9)},
        scatter=scatter, over=over,
    )  # fmt: skip
    squares = (z + d) ** 2
    worst = np.sort(squares)[-8:]
    value = {"mean": squares.mean(), "variance": squares.var(ddof=1), "tail": worst.mean()}[kind]
    text, ok = f"{kind} of a mass, {text}", found.status == "optimal"
    got, number = found.values[name] - c, "minimize, scatter"
    yield compare(number, got, z, limit=1e-6, scale=1.0, detail=text, ok=ok)
    yield compare(number, found.objective, value, limit=1e-9, scale=1.0, detail=text, ok=ok)


def _golden(convex: Any, low: float, high: float) -> float:
    share = 0.5 * (math.sqrt(5.0) - 1.0)
    for _ in range(100):
        a, b = high - share * (high - low), low + share * (high - low)
        low, high = (low, b) if convex(a) < convex(b) else (a, high)
    return 0.5 * (low + high)


def _stored(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """A second run answers from the store what the first one computed."""
    p, key = drawn(rng), "design.Optimum."
    if not solved(p):
        return
    with tempfile.TemporaryDirectory() as folder:
        first = mbd.minimize(**_posed(p), store=f"{folder}/kept")
        again = mbd.minimize(**_posed(p), store=f"{folder}/kept")
    plain = mbd.minimize(**_posed(p))
    text = f"with a store, {text}"
    yield compare(f"{key}computed", again.computed, 0, limit=0.0, detail=text)
    sane = 0 < first.computed <= first.evaluations
    yield compare(f"{key}computed", sane, True, limit=0.0, detail=text)
    for other in (again, plain):
        yield compare(
            f"{key}evaluations", other.evaluations, first.evaluations, limit=0.0, detail=text
        )
        same = list(other.values.values()) == list(first.values.values())
        yield compare(f"{key}values", same, True, limit=0.0, detail=text)


def _measures(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Of samples of any size, some equal, and along a random change of them."""
    n = int(rng.choice([2, 3, 8, 41]))
    x = rng.normal(size=n) * 10.0 ** rng.uniform(-6, 6) + rng.normal() * 10.0 ** rng.uniform(-6, 6)
    kind = str(rng.choice(["plain", "plain", "tied", "equal"]))
    if kind == "tied":
        x = np.round(x / np.ptp(x) * 4.0) * 0.1
    elif kind == "equal":
        x = np.full(n, x[0])
    ordered, share, deviations = (
        sorted(x.tolist()),
        float(rng.uniform(0.01, 1.0)),
        float(rng.normal()),
    )
    if abs(share * n % 1.0 - 0.5) < 1e-6:
        share = 1.0
    count, smallest = max(1, math.floor(share * n + 0.5)), bool(rng.random() < 0.5)
    worst = ordered[:count] if smallest else ordered[-count:]
    std, size = std_of(ordered), max(map(abs, ordered))
    square, mean = std * std, mean_of(ordered)
    fine = std * size + 1e-16 * size**2  # what rounding of the mean adds to a square
    off = x - mean
    turned = off / ((n - 1) * (std or 1.0))
    cases: list[tuple[Any, float, float, np.ndarray]] = [
        (design.Mean(), mean, size, np.full(n, 1.0 / n)),
        (design.Mean(deviations), mean + deviations * std, size, 1.0 / n + deviations * turned),
        (design.Variance(), square, fine, 2.0 * off / (n - 1)),
        (design.Deviation(), std, size, turned),
        (design.Quantile(share), quantile_of(ordered, share), size, _weights(x, share)),
        (design.Tail(share, smallest), mean_of(worst), size, np.isin(x, worst) / count),
    ]  # fmt: skip
    along = rng.normal(size=n)
    for measure, value, scale, slope in cases:
        number, said = f"design.{type(measure).__name__}.of", f"{measure} of {n} {kind}, {text}"
        yield compare(
            number, measure.of(jnp.asarray(x)), value, limit=1e-12, scale=scale, detail=said
        )
        if kind != "plain":  # where samples are equal there is no derivative
            continue
        _, rate = jax.jvp(measure.of, (jnp.asarray(x),), (jnp.asarray(along),))
        limit, most = 1e-12 * (1.0 + size / std), float(np.max(np.abs(slope)))
        yield compare(
            f"{number}, forward derivative", rate, slope @ along, limit=limit,
            scale=most, detail=said,
        )  # fmt: skip
        yield compare(
            f"{number}, reverse derivative", jax.grad(measure.of)(jnp.asarray(x)), slope,
            limit=limit, scale=most, detail=said,
        )  # fmt: skip


def _weights(x: np.ndarray, share: float) -> np.ndarray:
    """By how much each sample counts in a quantile."""
    order, at = np.argsort(x), share * (len(x) - 1)
    below = min(int(at), len(x) - 2)
    weights = np.zeros(len(x))
    weights[order[below]], weights[order[below + 1]] = 1.0 - (at - below), at - below
    return weights
