"""Distributions, designs and samplers: quantiles in SciPy, counts, strata, drawn moments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from fails_cases.judged import CRASHED, REFUSED, WRONG, Judged, compare
from jaxmbd import sampling as s

SHARE = 4.0
PER_CASE = 14
NUMBERS = {
    f"sampling.{name}.{question}": oracle
    for name, how in {
        "Normal": "SciPy's distribution",
        "TruncatedNormal": "SciPy's distribution; between close limits Simpson's rule",
        "Uniform": "SciPy's distribution",
        "LogNormal": "SciPy's distribution",
        "Triangular": "SciPy's distribution",
        "Choice": "a loop over the values",
        "Empirical": "a loop over the values, NumPy's quantile between them",
        "FromSciPy": "closed forms of Weibull, exponential and Gumbel distributions",
        "Scaled": "distances from the nominal value of its base's oracle",
    }.items()
    for question, oracle in {
        "quantile": how,
        "from_normal": f"{how}, at the normal law's probability or its complement",
        "std": f"{how}: its standard deviation",
    }.items()
} | {
    "sampling.MonteCarlo.count": "what was asked for",
    "sampling.MonteCarlo.unit_samples": "test of Kolmogorov and Smirnov, correlation of columns",
    "sampling.LatinHypercube.count": "what was asked for",
    "sampling.LatinHypercube.unit_samples": "one sample in each of its intervals",
    "sampling.Sobol.count": "what was asked for",
    "sampling.Sobol.unit_samples": "one sample in each elementary interval",
    "sampling.Grid.count": "itertools.product",
    "sampling.Grid.unit_samples": "itertools.product",
    "sampling.FullFactorial.count": "itertools.product",
    "sampling.FullFactorial.rows": "itertools.product",
    "sampling.Given.count": "the table itself",
    "sampling.Given.rows": "the table itself",
    "sampling.Saltelli.count": "d + 2 or 2 d + 2 rows a base sample",
    "sampling.Saltelli.rows_per_base": "d + 2 or 2 d + 2",
    "sampling.Saltelli.unit_samples": "rows that exchange one factor of a pair, strata of Sobol's",
    "sampling.Sampler.count": "what was asked for",
    "sampling.Sampler.dimensions": "the numbers of the inputs",
    "sampling.Sampler.draw": "test of Kolmogorov and Smirnov, drawn rank correlations, other cuts",
    "sampling.Sampler.std": "SciPy's distributions",
    "sampling.Sampler.std, covariance": "closed forms of jointly normal and log-normal numbers",
}  # fmt: skip
UNLIKELY = 3.4
"""√n D of Kolmogorov and Smirnov, which has a probability of 2 exp(-2 · 3.4²) = 2e-10."""


class Law(NamedTuple):
    """A distribution and its oracle.

    Attributes:
        name: of its class.
        law: the distribution.
        ppf, isf: values of the probabilities below and above.
        cdf: probabilities; None where values repeat.
        std: standard deviation.
        size: what errors are relative to.
        nominal: nominal value.
        steps: probabilities at which the value jumps.
    """

    name: str
    law: Any
    ppf: Callable[[Any], Any]
    isf: Callable[[Any], Any]
    cdf: Callable[[Any], Any] | None
    std: float
    size: float
    nominal: float
    steps: tuple[float, ...] = ()


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Distributions, and samplers of several of them with one of the designs."""
    for k in range(max(1, round(size / PER_CASE))):
        text = f"default_rng([{seed}, {k}])"
        rng = np.random.default_rng([seed, k])
        for judge in (_distribution, _design, _sampler, _covariance)[: 4 if k % 4 == 0 else 2]:
            try:
                yield from judge(rng, text)
            except Exception as error:
                said = f"{judge.__name__}: {type(error).__name__}: {error}"[:250]
                yield Judged("sampling.Sampler.draw", CRASHED, math.nan, f"{said} | {text}")


def law_of(rng: np.random.Generator, name: str) -> Law:
    """A random distribution of a class, some of them degenerate."""
    size = 10.0 ** rng.uniform(-6, 3)
    nominal = float(rng.choice([0.0, 1.0, -1.0]) * size * 10.0 ** rng.uniform(0, 3))
    return _LAWS[name](rng, nominal, float(size))


def _frozen(name: str, law: Any, base: Any, size: float, nominal: float) -> Law:
    return Law(name, law, base.ppf, base.isf, base.cdf, float(base.std()), size, nominal)


def _point(name: str, law: Any, at: float, nominal: float) -> Law:
    """All of the probability at one value."""

    def value(u: Any) -> Any:
        return np.full(np.shape(u), at)

    return Law(name, law, value, value, None, 0.0, 1e-12, nominal)


def _normal(rng: Any, nominal: float, size: float) -> Law:
    if rng.random() < 0.15:
        return _point("Normal", s.Normal(0.0), nominal, nominal)
    if nominal and rng.random() < 0.3:
        base = stats.norm(nominal, 0.2 * abs(nominal))
        return _frozen("Normal", s.Normal(0.2, relative=True), base, abs(nominal), nominal)
    mean = float(rng.normal() * size)
    return _frozen("Normal", s.Normal(size, mean=mean), stats.norm(mean, size), size, nominal)


def _truncated(rng: Any, nominal: float, size: float) -> Law:
    a = float(rng.choice([-math.inf, rng.uniform(-5.0, 4.0)]))
    b = float(rng.choice([math.inf, max(a, -5.0) + 10.0 ** rng.uniform(-3, 0.7)]))
    if math.isinf(a) and math.isinf(b):
        half = float(10.0 ** rng.uniform(-3, 1))
        base = stats.truncnorm(-half, half, nominal, size)
        law = s.TruncatedNormal(size, half * size)
        return _frozen("TruncatedNormal", law, base, size, nominal)
    low, high = nominal + a * size, nominal + b * size
    law = s.TruncatedNormal(
        size, low=None if math.isinf(a) else low, high=None if math.isinf(b) else high
    )
    base = stats.truncnorm((low - nominal) / size, (high - nominal) / size, nominal, size)
    found = _frozen("TruncatedNormal", law, base, size, nominal)
    if high - low > 0.1 * size:
        return found
    # SciPy's moments cancel: Simpson's rule about the middle.
    x, middle = np.linspace(-0.5, 0.5, 2001) * (high - low), 0.5 * (low + high) - nominal
    mass = (
        np.exp(-x * (middle + 0.5 * x) / size**2) * np.r_[1.0, np.tile([4.0, 2.0], 1000)[:-1], 1.0]
    )
    mass /= mass.sum()
    std = math.sqrt(float(mass @ (x - mass @ x) ** 2))
    return found._replace(std=std)


def _uniform(rng: Any, nominal: float, size: float) -> Law:
    if rng.random() < 0.15:
        return _point("Uniform", s.Uniform(0.0), nominal, nominal)
    if rng.random() < 0.5:
        low = float(rng.normal() * size)
        base = stats.uniform(low, size)
        return _frozen("Uniform", s.Uniform(low=low, high=low + size), base, size, nominal)
    base = stats.uniform(nominal - size, 2.0 * size)
    return _frozen("Uniform", s.Uniform(size), base, size, nominal)


def _log_normal(rng: Any, nominal: float, size: float) -> Law:
    median = float(rng.choice([size, -size, nominal or size]))
    sigma = float(10.0 ** rng.uniform(-3, 0.3))
    law, base = s.LogNormal(sigma, median=median), stats.lognorm(sigma, scale=abs(median))
    scale = float(abs(median) * np.exp(5.0 * sigma) * sigma)
    if median > 0.0:
        return _frozen("LogNormal", law, base, scale, nominal)
    return Law(
        "LogNormal", law, lambda u: -base.isf(u), lambda u: -base.ppf(u), lambda x: base.sf(-x),
        float(base.std()), scale, nominal,
    )  # fmt: skip


def _triangular(rng: Any, nominal: float, size: float) -> Law:
    if rng.random() < 0.15:
        return _point("Triangular", s.Triangular(0.0), nominal, nominal)
    low, at = float(rng.normal() * size), float(rng.choice([0.0, 1.0, rng.random()]))
    mode = min(low + at * size, low + size)
    law = s.Triangular(low=low, high=low + size, mode=mode)
    base = stats.triang(min((mode - low) / size, 1.0), low, size)
    return _frozen("Triangular", law, base, size, nominal)


def _listed(
    name: str, law: Any, values: np.ndarray, p: np.ndarray, size: float, nominal: float
) -> Law:
    order = np.argsort(values, kind="stable")
    x, p = values[order], p[order]

    def value(u: float) -> float:
        total = 0.0
        for one, chance in zip(x, p, strict=True):
            total += chance
            if chance and total >= u:
                return float(one)
        return float(x[np.flatnonzero(p)[-1]])

    ppf = np.vectorize(value, otypes=[float])
    mean = math.fsum(p * x)
    std = math.sqrt(math.fsum(p * (x - mean) ** 2))
    steps = tuple(np.cumsum(p))
    return Law(name, law, ppf, lambda u: ppf(1.0 - u), None, std, size, nominal, steps)


def _choice(rng: Any, nominal: float, size: float) -> Law:
    m = int(rng.integers(1, 6))
    values = size * rng.choice([-1.0, 0.0, 1.0, 2.5], m)
    if rng.random() < 0.5:
        return _listed("Choice", s.Choice(values), values, np.full(m, 1.0 / m), size, nominal)
    p = rng.random(m) * (rng.random(m) < 0.8) + 1e-3
    p[rng.integers(m)] += 0.5
    p = np.where(rng.random(m) < 0.2, 0.0, p) if m > 2 else p
    p = p / p.sum() if p.sum() else np.full(m, 1.0 / m)
    return _listed("Choice", s.Choice(values, p), values, p, size, nominal)


def _empirical(rng: Any, nominal: float, size: float) -> Law:
    m = int(rng.choice([1, 2, 3, 7, 100, 6000]))
    values = size * rng.normal(size=m)
    values[rng.random(m) < 0.1] = size
    if m > 100:
        values[0] = 100.0 * size  # one far away
    offsets = bool(rng.random() < 0.5)
    shift = nominal if offsets else 0.0
    if m > 1 and rng.random() < 0.4:
        law = s.Empirical(values, offsets=offsets, interpolate=True)
        x = np.sort(values)
        # Straight pieces of probability 1/m between neighbours, half of one at both ends.
        a, b = x[:-1], x[1:]
        weight = np.concatenate([np.full(m - 1, 1.0 / m), [0.5 / m, 0.5 / m]])
        middle = np.concatenate([0.5 * (a + b), [x[0], x[-1]]])
        own = np.concatenate([(b - a) ** 2 / 12.0, [0.0, 0.0]])
        mean = math.fsum(weight * middle)
        std = math.sqrt(math.fsum(weight * ((middle - mean) ** 2 + own)))

        def between(u: Any) -> Any:
            return shift + np.quantile(x, u, method="hazen")

        return Law("Empirical", law, between, lambda u: between(1.0 - u), None, std, size, nominal)
    law = s.Empirical(values, offsets=offsets)
    listed = _listed("Empirical", law, values + shift, np.full(m, 1.0 / m), size, nominal)
    return listed._replace(std=_listed("", law, values, np.full(m, 1.0 / m), size, nominal).std)


def _from_scipy(rng: Any, nominal: float, size: float) -> Law:
    kind = rng.choice(["weibull", "exponential", "gumbel"])
    if kind == "weibull":
        c = float(rng.uniform(0.7, 5.0))
        law, mean = stats.weibull_min(c, scale=size), math.gamma(1.0 + 1.0 / c)
        variance = math.gamma(1.0 + 2.0 / c) - mean**2
        return _closed(
            law, lambda logs: size * (-logs) ** (1.0 / c), lambda x: -np.expm1(-((x / size) ** c)),
            size * math.sqrt(variance), size, nominal, upper=True,
        )  # fmt: skip
    if kind == "exponential":
        law = stats.expon(scale=size)
        return _closed(
            law, lambda logs: -size * logs, lambda x: -np.expm1(-x / size), size, size, nominal,
            upper=True,
        )  # fmt: skip
    law = stats.gumbel_r(scale=size)
    return _closed(
        law, lambda logs: -size * np.log(-logs), lambda x: np.exp(-np.exp(-x / size)),
        size * math.pi / math.sqrt(6.0), size, nominal, upper=False,
    )  # fmt: skip


def _closed(
    law: Any, of_log: Any, cdf: Any, std: float, size: float, nominal: float, *, upper: bool
) -> Law:
    """By the logarithm of the probability above, or below."""

    def ppf(u: Any) -> Any:
        return of_log(np.log1p(-np.asarray(u)) if upper else np.log(u))

    def isf(u: Any) -> Any:
        return of_log(np.log(u) if upper else np.log1p(-np.asarray(u)))

    return Law("FromSciPy", s.as_distribution(law), ppf, isf, cdf, std, size, nominal)


def _scaled(rng: Any, nominal: float, size: float) -> Law:
    name = str(rng.choice(["Normal", "Triangular", "LogNormal", "Choice", "Uniform"]))
    base, factor = _LAWS[name](rng, nominal, size), float(rng.choice([0.0, 0.05, 0.5, 1.0, 2.0]))

    def of(values: Any) -> Any:
        return nominal + factor * (values - nominal)

    def back(x: Any) -> Any:
        assert base.cdf is not None
        return base.cdf(nominal + (x - nominal) / factor)

    return base._replace(
        name="Scaled", law=s.Scaled(base.law, factor), ppf=lambda u: of(base.ppf(u)),
        isf=lambda u: of(base.isf(u)), cdf=back if factor and base.cdf else None,
        std=factor * base.std, size=max(factor * base.size, 1e-12),
    )  # fmt: skip


_LAWS: dict[str, Callable[..., Law]] = {
    "Normal": _normal,
    "TruncatedNormal": _truncated,
    "Uniform": _uniform,
    "LogNormal": _log_normal,
    "Triangular": _triangular,
    "Choice": _choice,
    "Empirical": _empirical,
    "FromSciPy": _from_scipy,
    "Scaled": _scaled,
}


def _distribution(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    for name in _LAWS:
        x = law_of(rng, name)
        about, at = f"{str(x.law)[:150]} about {x.nominal}, {text}", np.array(x.nominal)
        key = f"sampling.{name}."
        if problems := x.law.problems(at):
            right = not np.isfinite(x.ppf(0.5)) or name == "TruncatedNormal"
            yield Judged(f"{key}quantile", REFUSED if right else WRONG, math.nan, str(problems))
            continue
        u = np.concatenate([rng.random(6), [1e-9, 1e-3, 0.5, 1.0 - 1e-9]])
        u = u[[min((abs(v - p) for p in x.steps), default=1.0) > 1e-10 for v in u]]
        z = np.concatenate([rng.normal(size=4), [-5.0, 5.0]])
        p = stats.norm.cdf(z)
        z = z[[min((abs(v - q) for q in x.steps), default=1.0) > 1e-10 for v in p]]
        size = x.size + 1e-6 * abs(x.nominal)  # 1e-16 of what the distances are taken from
        found = x.law.quantile(u, at)
        yield compare(f"{key}quantile", found, x.ppf(u), limit=1e-8, scale=size, detail=about)
        wanted = np.where(z > 0.0, x.isf(stats.norm.sf(z)), x.ppf(stats.norm.cdf(z)))
        found = x.law.from_normal(z, at)
        yield compare(f"{key}from_normal", found, wanted, limit=1e-8, scale=size, detail=about)
        yield compare(
            f"{key}std", x.law.std(at), x.std, limit=1e-6, scale=1e-6 * size, detail=about
        )


def _space(rng: np.random.Generator) -> Any:
    shapes = [("a", ()), ("b", (3,)), ("c", (2,))][: int(rng.integers(1, 4))]
    return (
        s.Sampler({n: (np.zeros(shape), s.Uniform(1.0)) for n, shape in shapes}, count=4).space,
        sum(int(np.prod(shape)) for _, shape in shapes),
        len(shapes),
    )


def _strata(u: np.ndarray, parts: int) -> bool:
    """Whether each column has as many numbers in each of so many equal intervals."""
    each = len(u) // parts
    return all(
        (np.bincount((column * parts).astype(int), minlength=parts) == each).all()
        for column in u.T
    )  # fmt: skip


def _design(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    space, d, inputs = _space(rng)
    n, seed = int(2 ** rng.integers(1, 9)), int(rng.integers(1000))
    cut = int(rng.integers(0, n + 1))
    for name in ("MonteCarlo", "LatinHypercube", "Sobol"):
        design: Any = getattr(s, name)()
        if name == "Sobol" and rng.random() < 0.5:
            design = s.Sobol(scramble=False)
        key, about = f"sampling.{name}.", f"{design}, {n} of {d}, seed {seed}, {text}"
        yield compare(f"{key}count", design.count(n, space), n, limit=0.0, detail=about)
        u = design.unit_samples(0, n, space, seed=seed, count=n)
        parts = [
            design.unit_samples(a, b, space, seed=seed, count=n) for a, b in ((0, cut), (cut, n))
        ]
        right = np.array_equal(np.concatenate(parts), u) and u.min() > 0.0 and u.max() < 1.0
        if name == "MonteCarlo":
            many = design.unit_samples(0, 2000, space, seed=seed, count=2000)
            off = max(stats.kstest(c, "uniform").statistic for c in many.T) * math.sqrt(2000.0)
            r = np.corrcoef(many, rowvar=False) if d > 1 else np.eye(1)
            right &= off < UNLIKELY and np.max(np.abs(r - np.eye(d))) < 6.5 / math.sqrt(2000.0)
        else:
            right &= _strata(u, n)
        if name == "Sobol" and d > 1 and n >= 4:  # the first two columns: boxes of any shape
            for k in range(int(math.log2(n)) + 1):
                boxes = (u[:, 0] * 2**k).astype(int) * (n >> k) + (u[:, 1] * (n >> k)).astype(int)
                right &= len(set(boxes.tolist())) == n
        yield compare(f"{key}unit_samples", right, True, limit=0.0, detail=about)
    yield from _tables(rng, space, d, text)
    yield from _pairs(rng, space, d, inputs, text)


def _tables(rng: np.random.Generator, space: Any, d: int, text: str) -> Iterator[Judged]:
    levels = {c: int(rng.integers(1, 4)) for c in space.columns}
    grid, rows = s.Grid(levels), list(itertools.product(*(range(m) for m in levels.values())))
    yield compare("sampling.Grid.count", grid.count(None, space), len(rows), limit=0.0, detail=text)
    a = int(rng.integers(len(rows)))
    found = grid.unit_samples(a, len(rows), space, seed=0, count=len(rows))
    wanted = (np.array(rows, float)[a:] + 0.5) / np.array(list(levels.values()))
    yield compare("sampling.Grid.unit_samples", found, wanted, limit=1e-15, detail=text)
    values = {f"x{i}": rng.normal(size=int(rng.integers(1, 4))) for i in range(3)}
    full = s.FullFactorial(values)
    product = np.array(list(itertools.product(*values.values())))
    count = full.count(None, space)
    yield compare("sampling.FullFactorial.count", count, len(product), limit=0.0, detail=text)
    a = int(rng.integers(len(product)))
    got = np.stack(list(full.rows(a, len(product)).values()), axis=1)
    yield compare("sampling.FullFactorial.rows", got, product[a:], limit=0.0, detail=text)
    table = {"x": rng.normal(size=7), "y": rng.normal(size=7)}
    given = s.Given(table)
    yield compare("sampling.Given.count", given.count(None, space), 7, limit=0.0, detail=text)
    got = np.stack(list(given.rows(2, 5).values()))
    wanted = np.stack([x[2:5] for x in table.values()])
    yield compare("sampling.Given.rows", got, wanted, limit=0.0, detail=text)


def _pairs(
    rng: np.random.Generator, space: Any, d: int, inputs: int, text: str
) -> Iterator[Judged]:
    base, second = int(2 ** rng.integers(1, 6)), bool(rng.random() < 0.5)
    by = str(rng.choice(["input", "number"]))
    design = s.Saltelli(base, second_order=second, by=by)
    factors = list(dict.fromkeys(space.owners if by == "input" else space.columns))
    owners = space.owners if by == "input" else space.columns
    per = (2 if second else 1) * len(factors) + 2
    key, about = "sampling.Saltelli.", f"{design} of {d} in {inputs}, {text}"
    yield compare(f"{key}rows_per_base", design.rows_per_base(space), per, limit=0.0, detail=about)
    yield compare(f"{key}count", design.count(None, space), per * base, limit=0.0, detail=about)
    u = design.unit_samples(0, per * base, space, seed=3, count=per * base)
    rows = u.reshape(base, per, d)
    a, b = rows[:, 0], rows[:, -1]
    right = _strata(np.hstack([a, b]), base)
    for i, factor in enumerate(factors):
        own = np.array([o == factor for o in owners])
        right &= np.array_equal(rows[:, 1 + i], np.where(own, b, a))
        if second:
            right &= np.array_equal(rows[:, 1 + len(factors) + i], np.where(own, a, b))
    cut = int(rng.integers(per * base))
    tail = design.unit_samples(cut, per * base, space, seed=3, count=per * base)
    right &= np.array_equal(tail, u[cut:])
    yield compare(f"{key}unit_samples", right, True, limit=0.0, detail=about)


def _sampler(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Three inputs, two of them correlated, drawn by one of the designs, in two cuts."""
    names = [str(x) for x in rng.choice(["Normal", "Uniform", "LogNormal", "Triangular"], 3)]
    laws = [law_of(rng, n) for n in names]
    laws = [x if x.cdf else _LAWS["Normal"](rng, x.nominal, 1.0) for x in laws]
    laws = [x for x in laws if x.cdf]
    n, seed = 2048, int(rng.integers(1000))
    design = [s.MonteCarlo(), s.LatinHypercube(), s.Sobol()][rng.integers(3)]
    rho = float(rng.choice([-1.0, -0.7, 0.0, 0.5, 0.95]))
    linked = {("x0", "x1"): rho} if len(laws) > 1 else None
    inputs = {f"x{i}": (x.nominal, x.law) for i, x in enumerate(laws)} | {"held": (1.0, None)}
    sampler = s.Sampler(inputs, design, count=n, seed=seed, correlation=linked)
    about = f"{[str(x.law)[:80] for x in laws]}, {design}, rho {rho}, seed {seed}, {text}"
    key = "sampling.Sampler."
    if not laws:
        return
    yield compare(f"{key}count", sampler.count, n, limit=0.0, detail=about)
    yield compare(f"{key}dimensions", sampler.dimensions, len(laws), limit=0.0, detail=about)
    std = [sampler.std()[f"x{i}"] for i in range(len(laws))]
    wanted = np.array([x.std for x in laws])
    yield compare(f"{key}std", std / wanted, wanted / wanted, limit=1e-9, detail=about)
    drawn, cut = sampler.draw(0, n), int(rng.integers(n))
    tail = sampler.draw(cut, n)
    right = all(np.array_equal(tail[k], x[cut:]) for k, x in drawn.items())
    u = [np.asarray(x.cdf(drawn[f"x{i}"])) for i, x in enumerate(laws) if x.cdf]
    off = max(float(stats.kstest(c, "uniform").statistic) for c in u) * math.sqrt(n)
    right &= off < UNLIKELY and "held" not in drawn
    if linked:
        r = float(np.corrcoef(stats.rankdata(u[0]), stats.rankdata(u[1]))[0, 1])
        right &= abs(r - rho) < 6.5 * (1.0 - rho * rho) / math.sqrt(n) + 1e-3 + 0.02 * (1 - rho**2)
        about = f"rank correlation {r:.4f}, {about}"
    yield compare(f"{key}draw", right, True, limit=0.0, detail=f"KS {off:.2f}, {about}")


def _covariance(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    """Of linked normal and log-normal numbers."""
    sigma, r = 10.0 ** rng.uniform(-2, 0, 3), float(rng.choice([-1.0, -0.6, 0.0, 0.4, 0.99]))
    rho = 6.0 / math.pi * math.asin(0.5 * r)
    inputs = {
        "x": (1.0, s.Normal(sigma[0])),
        "y": (2.0, s.LogNormal(sigma[1])),
        "z": (3.0, s.LogNormal(sigma[2])),
    }
    pair = ("x", "y") if rng.random() < 0.5 else ("y", "z")
    found = s.Sampler(inputs, count=8, correlation={pair: rho}).covariance()
    a, b = sigma[1], sigma[2]

    def logs(k: float, m: float, c: float, f: float, g: float) -> float:
        return f * g * math.exp(0.5 * (k * k + m * m)) * math.expm1(c * k * m)

    wanted = np.diag([sigma[0] ** 2, logs(a, a, 1.0, 2.0, 2.0), logs(b, b, 1.0, 3.0, 3.0)])
    if pair == ("x", "y"):
        wanted[0, 1] = wanted[1, 0] = r * sigma[0] * a * 2.0 * math.exp(0.5 * a * a)
    else:
        wanted[1, 2] = wanted[2, 1] = logs(a, b, r, 2.0, 3.0)
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    yield compare(
        "sampling.Sampler.std, covariance", np.array(found.matrix) / scale, wanted / scale,
        limit=1e-6, detail=f"sigma {sigma}, {pair} {r}, {text}",
    )  # fmt: skip
