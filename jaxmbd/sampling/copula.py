"""From correlations by name to the matrix that links the numbers of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jaxmbd.sampling.continuous import Normal
from jaxmbd.sampling.correlation import (
    Correlation,
    Covariance,
    RankCorrelation,
    cholesky,
    indefinite,
)
from jaxmbd.sampling.names import Space, component_index, components, near
from jaxmbd.sampling.scatter import Distribution
from jaxmbd.sampling.tied_ranks import (
    largest_rank_correlation,
    latent_correlation,
    rank_correlation,
)

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
    problems, shapes = [], {n: x.shape for n, x in nominal.items()}
    for covariance in correlations:
        if not isinstance(covariance, Covariance):
            continue
        numbers, missing = numbers_of(covariance.names, shapes)
        problems += missing
        if missing:
            continue
        if len(numbers) != len(covariance.matrix):
            size = len(covariance.matrix)
            problems.append(f"a covariance of {len(numbers)} numbers has {size} rows")
            continue
        for (name, index), variance in zip(numbers, np.diag(covariance.matrix), strict=True):
            sigma = sigmas.setdefault(name, np.zeros(shapes[name]))
            sigma[index] = np.sqrt(variance)
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
            most = largest_rank_correlation(*steps, sign=-1 if rho < 0.0 else 1)
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
    numbers, _ = numbers_of(covariance.names, {n: x.shape for n, x in nominal.items()})
    m = np.asarray(covariance.matrix)
    if len(numbers) != len(m):
        return [], []  # reported by covariance_scatter
    names = [
        components(n, nominal[n].shape)[int(np.ravel_multi_index(i, nominal[n].shape)) if i else 0]
        for n, i in numbers
    ]
    at = [space.columns.index(n) for n in names]
    sigma = np.sqrt(np.diag(m))
    scale = np.outer(sigma, sigma)
    r = np.divide(m, scale, out=np.zeros_like(m), where=scale > 0.0)
    found, problems = [], []
    for i in range(len(m)):
        for j in range(i):
            if scale[i, j] == 0.0 and m[i, j] != 0.0:
                problems.append(f"{names[i]} and {names[j]}: a covariance, but no variance")
            found.append(((at[i], at[j]), float(r[i, j])))
    return found, problems


def numbers_of(
    names: Sequence[str], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[list[tuple[str, tuple[int, ...]]], list[str]]:
    """(input, index) of each number that the names stand for, and the unknown names."""
    found, problems = [], []
    for name in names:
        if name in shapes:
            found += [(name, index) for index in np.ndindex(shapes[name])]
        elif (number := component_index(name, shapes)) is not None:
            found.append(number)
        else:
            problems.append(f"a covariance names {name!r}, which is no input; {near(name, shapes)}")
    if len(set(found)) != len(found):
        problems.append(f"a covariance names a number twice: {', '.join(names)}")
    return found, problems


def _unknown(name: str, space: Space, nominal: Nominals) -> str:
    start = f"a correlation names {name!r}, which"
    if name in space.owners:
        own = [c for c, owner in zip(space.columns, space.owners, strict=True) if owner == name]
        return f"{start} has several numbers: say which, {', '.join(own[:3])}"
    if name in nominal:
        return f"{start} has no distribution"
    return f"{start} is no input that scatters; {near(name, space.columns)}"
