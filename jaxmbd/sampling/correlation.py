"""Inputs that scatter together: a covariance, or rank correlations between any distributions.

Both are a Gaussian copula. Standard normal numbers ``z = L w`` with ``L Lᵀ = R`` take the place of
independent ones ``w``; each input is then the quantile of its own distribution at Φ(z). Of normal
inputs R is the matrix of linear correlations. Spearman's rank correlation ρ of two continuous
inputs has ``r = 2 sin(π ρ / 6)`` (Pearson 1907), whatever their distributions; where values repeat,
ties have the mean of their ranks (`rank_correlation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from jaxmbd.plumbing import hint
from jaxmbd.sampling.designs import Space, component_index, components
from jaxmbd.sampling.distributions import Normal
from jaxmbd.sampling.scatter import Distribution

# Eigenvalues of a correlation matrix above minus this count as zero: it was rounded when typed.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlations of pairs of inputs; all others are independent.

    Attributes:
        pairs: (name, name, correlation); or a mapping {(name, name): correlation}. Names are those
            of scalar inputs or of components (``points/p/z``).

    Example:
        >>> from jaxmbd.sampling import RankCorrelation
        >>> RankCorrelation({("spring", "damper"): 0.7}).pairs
        (('spring', 'damper', 0.7),)
    """

    pairs: Any

    def __post_init__(self) -> None:
        given = self.pairs
        rows = [(*k, v) for k, v in given.items()] if isinstance(given, Mapping) else list(given)
        pairs = tuple((str(a), str(b), float(r)) for a, b, r in rows)
        object.__setattr__(self, "pairs", pairs)
        wrong = [f"{a} – {b}: {r:g}" for a, b, r in pairs if not -1.0 <= r <= 1.0]
        if wrong:
            raise ValueError(f"rank correlations must be between -1 and 1: {', '.join(wrong)}")
        if same := [a for a, b, _ in pairs if a == b]:
            raise ValueError(f"{same[0]} is correlated with itself")

    @classmethod
    def of_matrix(cls, names: Sequence[str], matrix: Any) -> RankCorrelation:
        """Of a whole matrix of rank correlations, its rows and columns in the order of `names`."""
        m = _square(names, matrix)
        if not np.allclose(np.diag(m), 1.0, atol=1e-12):
            raise ValueError("a matrix of correlations has ones on its diagonal")
        order = range(len(names))
        return cls([(names[i], names[j], m[i, j]) for i in order for j in order if i < j])

    def describe(self) -> dict[str, Any]:
        """JSON values that determine it."""
        return {"correlation": "rank", "pairs": [list(pair) for pair in self.pairs]}


@dataclass(frozen=True)
class Covariance:
    """Jointly normal numbers about their nominal values; it takes the place of distributions.

    Attributes:
        names: scalar inputs, components (``points/p/z``), or arrays, which stand for all their
            numbers.
        matrix: covariance (n, n) of those numbers, in products of their units.

    Example:
        >>> from jaxmbd.sampling import Covariance
        >>> Covariance(["x", "y"], [[4.0, 1.0], [1.0, 1.0]]).names
        ('x', 'y')
    """

    names: Any
    matrix: Any

    def __post_init__(self) -> None:
        names = (self.names,) if isinstance(self.names, str) else tuple(map(str, self.names))
        m = np.asarray(self.matrix, np.float64)
        object.__setattr__(self, "names", names)
        if m.ndim != 2 or m.shape[0] != m.shape[1]:
            raise ValueError(f"a covariance must be a square matrix, has shape {m.shape}")
        if not np.all(np.isfinite(m)):
            raise ValueError("a covariance must be finite")
        if not np.allclose(m, m.T, rtol=1e-9, atol=0.0):
            raise ValueError("a covariance must be symmetric")
        if np.any(np.diag(m) < 0.0):
            raise ValueError(f"variances must not be negative, are {np.diag(m).tolist()}")
        object.__setattr__(self, "matrix", tuple(map(tuple, m.tolist())))

    def describe(self) -> dict[str, Any]:
        """JSON values that determine it."""
        matrix = [list(row) for row in self.matrix]
        return {"correlation": "covariance", "names": list(self.names), "matrix": matrix}


Correlation = RankCorrelation | Covariance


def std_and_correlation(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations (n,) and linear correlations (n, n), 0 where nothing varies."""
    std = np.sqrt(np.diag(matrix))
    scale = np.outer(std, std)
    return std, np.divide(matrix, scale, out=np.eye(len(std)), where=scale > 0.0)


def as_correlations(given: Any) -> list[Correlation]:
    """None, one, or several correlations, or a mapping of pairs, as a list."""
    if given is None:
        return []
    if isinstance(given, (RankCorrelation, Covariance)):
        return [given]
    if isinstance(given, Mapping):
        return [RankCorrelation(given)]
    if isinstance(given, Iterable):
        return [x for part in given for x in as_correlations(part)]
    raise TypeError(
        f"{given!r} is no correlation: give {{(name, name): 0.7}}, RankCorrelation or Covariance"
    )


def indefinite(
    matrix: np.ndarray, names: Sequence[str], asked: Callable[[int, int, float], float]
) -> list[str]:
    """Why no numbers can have this correlation matrix, and what would do; empty if they can.

    Args:
        matrix: correlations of the normal numbers.
        names: of the numbers.
        asked: makes a correlation of the normal numbers i and j what the user has given.
    """
    value, vector = (x[..., 0] for x in np.linalg.eigh(matrix))
    if value >= -_ROUNDING:
        return []
    text = f"the correlations contradict each other (eigenvalue {value:.3g}): "
    # The pairs that lower the eigenvalue most, vᵀ R v = Σ r_ij v_i v_j; of them, the least change.
    part = np.triu(matrix * np.outer(vector, vector), 1)
    pairs = [divmod(int(k), len(matrix)) for k in np.argsort(part, axis=None)[:12]]
    cures = []
    for i, j in pairs:
        if part[i, j] < 0.0 and (ends := _allowed(matrix, i, j)):
            change = max(ends[0] - matrix[i, j], matrix[i, j] - ends[1])
            cures.append((change, i, j, ends))
    if not cures:
        return [f"{text}all of them times {np.floor(1e3 / (1.0 - value)) / 1e3:g} would do"]
    _, i, j, ends = min(cures)
    low, high = (asked(i, j, r) for r in ends)
    given = f"that of {names[i]} and {names[j]} is {asked(i, j, float(matrix[i, j])):.3g}"
    return [f"{text}{given}; with the others as they are it may be {low:.3f} to {high:.3f}"]


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """Lower triangular L with L Lᵀ = `matrix`, which may be singular (then with zero columns)."""
    rest = np.array(matrix, np.float64)
    lower = np.zeros_like(rest)
    for k in range(len(rest)):
        if rest[k, k] > _ROUNDING:
            lower[k:, k] = rest[k:, k] / np.sqrt(rest[k, k])
            rest -= np.outer(lower[:, k], lower[:, k])
    return lower


def correlated(lower: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``L w`` for each row of `w` (n, k), with zeros of L left out.

    Sums of columns, not a library's matrix product: its rounding may depend on the number of rows.
    """
    z = np.empty_like(w)
    for i, row in enumerate(lower):
        first, *others = np.flatnonzero(row)
        z[:, i] = row[first] * w[:, first]
        for j in others:
            z[:, i] += row[j] * w[:, j]
    return z


def _allowed(matrix: np.ndarray, i: int, j: int) -> tuple[float, float] | None:
    """The correlations that numbers i and j may have, given all others; None if there are none."""
    others = [k for k in range(len(matrix)) if k not in (i, j)]
    if not others:
        return (-1.0, 1.0)
    rest = matrix[np.ix_(others, others)]
    if np.linalg.eigvalsh(rest)[0] <= _ROUNDING:
        return None
    a, b = matrix[others, i], matrix[others, j]
    x, y = np.linalg.solve(rest, a), np.linalg.solve(rest, b)
    free = (1.0 - a @ x) * (1.0 - b @ y)  # of what the others leave of i and of j
    if 1.0 - a @ x < 0.0 or free < 0.0:
        return None
    return float(a @ y - np.sqrt(free)), float(a @ y + np.sqrt(free))


def _square(names: Sequence[str], matrix: Any) -> np.ndarray:
    m = np.asarray(matrix, np.float64)
    if m.shape != (len(names), len(names)):
        raise ValueError(f"{len(names)} names take a square matrix of that size, not {m.shape}")
    if not np.allclose(m, m.T, atol=1e-12):
        raise ValueError("a matrix of correlations must be symmetric")
    return m


Scatter = dict[str, Distribution]
Nominals = Mapping[str, np.ndarray]


class Copula(NamedTuple):
    """The numbers of a sample that are not independent.

    Attributes:
        columns: their places in the space.
        lower: Cholesky factor of the correlation matrix of the normal numbers behind them.
    """

    columns: np.ndarray
    lower: np.ndarray


def covariance_scatter(
    correlations: Sequence[Correlation], nominal: Nominals, scatter: Scatter
) -> tuple[Scatter, list[str]]:
    """The normal distributions that covariances stand for, and what is wrong with them."""
    sigmas: dict[str, np.ndarray] = {}
    problems = []
    for covariance in (c for c in correlations if isinstance(c, Covariance)):
        _, found, wrong = numbers_of(covariance, nominal)
        problems += wrong
        sigmas |= {n: np.maximum(s, sigmas.get(n, 0.0)) for n, s in found.items()}
    for name in sigmas.keys() & scatter.keys():
        problems.append(f"{name} has a distribution and a covariance: give it one of the two")
    return {n: Normal(sigma) for n, sigma in sigmas.items()}, problems


def copula(
    correlations: Sequence[Correlation], space: Space, nominal: Nominals, scatter: Scatter
) -> tuple[Copula | None, list[str]]:
    """The linked numbers of the space, and what is wrong with the correlations."""
    pairs, problems = _pairs(correlations, space, nominal, scatter)
    linked = sorted({column for pair in pairs for column in pair})
    matrix = np.eye(len(linked))
    for (a, b), r in pairs.items():
        i, j = linked.index(a), linked.index(b)
        matrix[i, j] = matrix[j, i] = r
    names = [space.columns[i] for i in linked]
    ranked = {
        tuple(sorted(pair[:2]))
        for c in correlations
        if isinstance(c, RankCorrelation)
        for pair in c.pairs
    }

    def asked(i: int, j: int, r: float) -> float:
        if tuple(sorted((names[i], names[j]))) not in ranked:
            return r
        steps = [scatter[space.owners[linked[k]]].steps() for k in (i, j)]
        return rank_correlation(r, *steps)

    problems += indefinite(matrix, names, asked) if linked else []
    if problems or not linked:
        return None, problems
    return Copula(np.array(linked), cholesky(matrix)), []


def _pairs(
    correlations: Sequence[Correlation], space: Space, nominal: Nominals, scatter: Scatter
) -> tuple[dict[tuple[int, int], float], list[str]]:
    """Correlation of the normal numbers of each pair of columns that has one."""
    found: dict[tuple[int, int], float] = {}
    problems = []
    for part in correlations:
        one = (
            _ranked(part, space, nominal, scatter)
            if isinstance(part, RankCorrelation)
            else (_covarying(part, space, nominal))
        )
        problems += one[1]
        for (i, j), r in one[0]:
            pair = (min(i, j), max(i, j))
            if pair in found:
                a, b = space.columns[i], space.columns[j]
                problems.append(f"the correlation of {a} and {b} is given twice")
            found[pair] = r
    return found, problems


def _ranked(
    correlation: RankCorrelation, space: Space, nominal: Nominals, scatter: Scatter
) -> tuple[list[tuple[tuple[int, int], float]], list[str]]:
    found, problems = [], []
    for a, b, rho in correlation.pairs:
        unknown = [_unknown(n, space, nominal) for n in (a, b) if n not in space.columns]
        if unknown:
            problems += unknown
            continue
        i, j = space.columns.index(a), space.columns.index(b)
        steps = [scatter[space.owners[k]].steps() for k in (i, j)]
        r = latent_correlation(rho, *steps)
        if r is None:
            most = abs(rank_correlation(np.copysign(1.0, rho), *steps))
            problems.append(
                f"the rank correlation of {a} and {b} cannot be {rho:g}: as their values repeat, "
                f"it is at most {most:.3f} in size"
            )
            continue
        found.append(((i, j), float(r)))
    return found, problems


def _covarying(
    covariance: Covariance, space: Space, nominal: Nominals
) -> tuple[list[tuple[tuple[int, int], float]], list[str]]:
    labels, _, wrong = numbers_of(covariance, nominal)
    m, (std, r) = np.asarray(covariance.matrix), std_and_correlation(covariance.matrix)
    if wrong:
        return [], []  # reported by covariance_scatter
    at = [space.columns.index(n) for n in labels]
    pairs = [(i, j) for i in range(len(m)) for j in range(i)]
    problems = [
        f"{labels[i]} and {labels[j]}: a covariance, but no variance"
        for i, j in pairs
        if std[i] * std[j] == 0.0 and m[i, j] != 0.0
    ]
    return [((at[i], at[j]), float(r[i, j])) for i, j in pairs], problems


def numbers_of(
    covariance: Covariance, nominal: Mapping[str, Any]
) -> tuple[list[str], dict[str, np.ndarray], list[str]]:
    """What a covariance is of.

    Returns:
        names of the numbers, standard deviations by input, and what is wrong.
    """
    labels, found, problems = [], [], []
    shapes = {n: np.shape(x) for n, x in nominal.items()}
    for name in covariance.names:
        if name in shapes:
            labels += components(name, shapes[name])
            found += [(name, index) for index in np.ndindex(shapes[name])]
        elif (number := component_index(name, shapes)) is not None:
            labels.append(name)
            found.append(number)
        else:
            problems.append(f"a covariance names {name!r}, which is no input; {hint(name, shapes)}")
    if len(set(found)) != len(found):
        problems.append(f"a covariance names a number twice: {', '.join(covariance.names)}")
    if not problems and len(found) != len(covariance.matrix):
        problems = [f"a covariance of {len(found)} numbers has {len(covariance.matrix)} rows"]
    if problems:
        return labels, {}, problems
    std: dict[str, np.ndarray] = {}
    for (name, index), variance in zip(found, np.diag(covariance.matrix), strict=True):
        std.setdefault(name, np.zeros(shapes[name]))[index] = np.sqrt(variance)
    return labels, std, []


def _unknown(name: str, space: Space, nominal: Nominals) -> str:
    start = f"a correlation names {name!r}, which"
    if name in space.owners:
        own = [c for c, owner in zip(space.columns, space.owners, strict=True) if owner == name]
        return f"{start} has several numbers: say which, {', '.join(own[:3])}"
    if name in nominal:
        return f"{start} has no distribution"
    return f"{start} is no input that scatters; {hint(name, space.columns)}"


def latent_correlation(
    rho: float, steps: np.ndarray | None, other: np.ndarray | None
) -> float | None:
    """Correlation of the normal numbers behind two inputs of rank correlation `rho`.

    Args:
        rho: Spearman's coefficient, ties having the mean of their ranks.
        steps: cumulative probabilities of the first input's values; None if it is a continuum.
        other: those of the second.

    Returns:
        The correlation; None if no correlation makes `rho` so large.
    """
    if steps is None and other is None:
        return 2.0 * np.sin(np.pi * rho / 6.0)
    from scipy import optimize

    end = float(np.copysign(1.0, rho))
    most = rank_correlation(end, steps, other)
    if abs(rho) >= abs(most):
        return end if abs(rho) <= abs(most) + 1e-12 else None
    root: Any = optimize.brentq(
        lambda r: rank_correlation(r, steps, other) - rho, *sorted((0.0, end)), xtol=1e-14
    )
    return float(root)


def rank_correlation(r: float, steps: np.ndarray | None, other: np.ndarray | None) -> float:
    """Spearman's coefficient of two such inputs whose normal numbers have correlation `r`.

    Samples of a discrete input share ranks. With mean ranks the coefficient is the linear
    correlation of g(z) and h(w), where g is Φ for a continuum, and for a discrete distribution the
    step function that has, on each step, the mean of Φ: a sum of jumps δ where z > t. Of two jumps

        cov(1(z > t), 1(w > s)) = Φ₂(t, s; r) − Φ(t) Φ(s),

    and a continuum is one jump of another number: Φ(z) is the probability that (z − x)/√2 > 0 for
    an independent x, and its correlation with w is r/√2.
    """
    (t, jumps, share, variance), (s, others, part, variance_) = _jumps(steps), _jumps(other)
    if variance * variance_ == 0.0:
        return 0.0
    r = np.clip(r, -1.0, 1.0)  # which rounding passes
    both = _both_below(t[:, None], s, r * share * part) - ndtr(t)[:, None] * ndtr(s)
    return float(np.clip(jumps @ both @ others / np.sqrt(variance * variance_), -1.0, 1.0))


def _jumps(steps: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Places and heights of a mean rank's jumps, by what r is multiplied, and its variance."""
    if steps is None:
        return np.zeros(1), np.ones(1), np.sqrt(0.5), 1.0 / 12.0
    ends = np.concatenate([[0.0], steps])
    variance = (1.0 - np.sum(np.diff(ends) ** 3)) / 12.0
    return ndtri(ends[1:-1]), 0.5 * (ends[2:] - ends[:-2]), 1.0, float(variance)


def _both_below(h: np.ndarray, k: np.ndarray, r: float) -> np.ndarray:
    """Φ₂(h, k; r), the probability that z ≤ h and w ≤ k (Owen, Ann. Math. Stat. 27 (1956) 1075)."""
    p, q = ndtr(h), ndtr(k)
    if abs(r) == 1.0:
        return np.minimum(p, q) if r > 0.0 else np.maximum(p + q - 1.0, 0.0)
    h, k = (np.where(x == 0.0, 1e-300, x) for x in (h, k))  # the limits from above
    root = np.sqrt(1.0 - r * r)
    with np.errstate(over="ignore"):
        t = owens_t(h, (k / h - r) / root) + owens_t(k, (h / k - r) / root)
    return 0.5 * (p + q) - t - np.where(h * k < 0.0, 0.5, 0.0)


# Terms of the series; and the points, equally spaced, of the expectations.
_TERMS, _REACH, _POINTS = 400, 8.0, 4001
_NEGLIGIBLE = 1e-12


def drawn_covariance(
    scatter: Mapping[str, Distribution], nominal: Mapping[str, np.ndarray], linked: Copula | None
) -> Covariance:
    """Covariance of all numbers that scatter, by the names of their components.

    A number is a function g(z) of a standard normal number z, its quantile at Φ(z). Of two of them,
    whose normal numbers have correlation r, and with h_k the normalised polynomials (Mehler 1866),

        cov(g(z), f(w)) = Σ_k α_k β_k r^k,   α_k = E[g(z) h_k(z)], β_k = E[f(w) h_k(w)].

    What is left of g after the last term is shared only by numbers that are functions of the same
    z. Each term is positive semidefinite (Schur), and so is the sum. Of normal distributions the
    first term is all there is; where values jump (`Choice`), the rest is a few percent of the
    variance, and is missed in part where such inputs are correlated by more than 0.98.

    What a user's own distribution makes of unit numbers of another shape is taken as uncorrelated.

    Args:
        scatter: distributions by name, in the order in which they take the numbers of a sample.
        nominal: nominal values by name.
        linked: which of the normal numbers behind them are correlated, and how.
    """
    z = np.linspace(-_REACH, _REACH, _POINTS)
    weights = np.exp(-0.5 * z * z)
    weights /= weights.sum()
    basis = _hermite(z)
    names: list[str] = []
    columns: list[int] = []
    series, std, at = [], [], 0
    count = sum(nominal[n].size for n in scatter)
    covariance = np.zeros((count, count))
    for name, distribution in scatter.items():
        shape, size = nominal[name].shape, nominal[name].size
        unit = distribution.unit_shape(shape)
        own = np.arange(len(names), len(names) + size)
        g = np.zeros((len(z), size))
        if unit in (shape, ()):  # numbers of their own, or one for the whole array
            rows = np.broadcast_to(z.reshape(-1, *[1] * len(unit)), (len(z), *unit))
            g = distribution.from_normal(rows, nominal[name]).reshape(len(z), -1)
        g = g - weights @ g
        alpha = (basis * weights) @ g
        rest = g - basis.T @ alpha
        block = (rest.T * weights) @ rest
        covariance[np.ix_(own, own)] = block if unit == () else np.diag(np.diag(block))
        names += components(name, shape)
        columns += range(at, at + size) if unit == shape else [at] * size
        series.append(alpha)
        std.append(np.ravel(distribution.std(nominal[name])))
        at += int(np.prod(unit))
    correlation = np.eye(at)
    if linked is not None:
        correlation[np.ix_(linked.columns, linked.columns)] = linked.lower @ linked.lower.T
    r = correlation[np.ix_(columns, columns)]
    power, deviations = np.ones_like(r), np.concatenate(std)
    for alpha in np.concatenate(series, axis=1):
        power *= r
        if np.any(np.abs(alpha) > _NEGLIGIBLE * deviations):
            covariance += np.outer(alpha, alpha) * power
    # Closed forms of the standard deviations are better than the sums.
    found = np.sqrt(np.diag(covariance))
    scale = np.divide(deviations, found, out=np.zeros(count), where=found > 0.0)
    covariance *= np.outer(scale, scale)
    np.fill_diagonal(covariance, deviations**2)
    return Covariance(tuple(names), 0.5 * (covariance + covariance.T))


def _hermite(z: np.ndarray) -> np.ndarray:
    """h_k(z), k = 1 … _TERMS, of unit variance (k, n)."""
    found = [np.ones_like(z), z]
    for k in range(2, _TERMS + 1):
        found.append((z * found[-1] - np.sqrt(k - 1.0) * found[-2]) / np.sqrt(k))
    return np.stack(found[1:])
