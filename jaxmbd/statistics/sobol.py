"""Sobol indices: which share of an output's variance is due to each input, by SALib."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.plumbing import optional
from jaxmbd.sampling import Saltelli, Space
from jaxmbd.statistics.samples import counted


class SobolIndices(NamedTuple):
    """Shares of the variance of an output.

    Attributes:
        names: of the factors (d,).
        first: share of each factor alone (d,).
        first_error: half width of its confidence interval.
        total: share of each factor and of its interactions with others (d,).
        total_error: half width of its confidence interval.
        second: share of the interaction of each pair (d, d), in the upper triangle; else None.
        second_error: half width of its confidence interval.
        base: number of base samples that count.
        left_out: number of those left out because one of their rows failed.

    Example:
        >>> from jaxmbd.sampling import Saltelli, Sampler, Uniform
        >>> from jaxmbd.statistics import sobol_indices
        >>> sampler = Sampler({"x": (0.0, Uniform(1.0)), "y": (0.0, Uniform(1.0))}, Saltelli(64))
        >>> output = sampler.draw(0, sampler.count)["x"]
        >>> found = sobol_indices(sampler.design, sampler.space, output)
        >>> found.names, found.base
        (('x', 'y'), 64)
    """

    names: tuple[str, ...]
    first: np.ndarray
    first_error: np.ndarray
    total: np.ndarray
    total_error: np.ndarray
    second: np.ndarray | None
    second_error: np.ndarray | None
    base: int
    left_out: int


def sobol_indices(
    design: Saltelli,
    space: Space,
    output: Any,
    ok: Any = None,
    *,
    confidence: float = 0.95,
    resamples: int = 100,
    seed: int = 0,
) -> SobolIndices:
    """Sobol indices of an output of a study that has a `Saltelli` design.

    A base sample counts only if all its rows succeeded. An output that does not vary has indices
    of zero.

    Args:
        design: of the study.
        space: of its sampler (`Sampler.space`).
        output: values (n,), in the order of the samples.
        ok: which samples succeeded; all by default.
        confidence: of the intervals, which are found by resampling.
        resamples: how often.
        seed: of the resampling.

    Raises:
        ImportError: SALib is not installed.
        ValueError: the number of values does not fit the design, or too few base samples count.

    Example:
        >>> from jaxmbd.sampling import Saltelli, Sampler, Uniform
        >>> from jaxmbd.statistics import sobol_indices
        >>> inputs = {"x": (0.0, Uniform(1.0)), "y": (0.0, Uniform(2.0))}
        >>> sampler = Sampler(inputs, Saltelli(512))
        >>> drawn = sampler.draw(0, sampler.count)
        >>> found = sobol_indices(sampler.design, sampler.space, drawn["x"] + drawn["y"])
        >>> found.names, found.first.round(2)
        (('x', 'y'), array([0.2, 0.8]))
    """
    names, rows = design.factors(space), design.rows_per_base(space)
    values = np.asarray(output, np.float64)
    if values.shape != (design.base * rows,):
        raise ValueError(
            f"{design} of {len(names)} factors has {design.base * rows} samples, "
            f"the output has shape {values.shape}"
        )
    whole = np.all(counted(values, ok).reshape(-1, rows), axis=1, keepdims=True)[:, 0]
    kept = values.reshape(-1, rows)[whole]
    if len(kept) < 2:
        raise ValueError(f"of {len(whole)} base samples {len(kept)} have no failed row: too few")
    found = _analyse(names, kept.ravel(), design.second_order, confidence, resamples, seed)
    first, first_error, total, total_error = (
        np.asarray(found[k]) for k in ("S1", "S1_conf", "ST", "ST_conf")
    )
    pairs = [np.asarray(found[k]) if design.second_order else None for k in ("S2", "S2_conf")]
    left_out = int(len(whole) - len(kept))
    return SobolIndices(
        names, first, first_error, total, total_error, pairs[0], pairs[1], len(kept), left_out
    )


def _analyse(
    names: tuple[str, ...],
    values: np.ndarray,
    second: bool,
    confidence: float,
    resamples: int,
    seed: int,
) -> dict[str, Any]:
    count = len(names)
    if np.ptp(values) == 0.0:
        zero, square = np.zeros(count), np.zeros((count, count))
        found: dict[str, Any] = dict.fromkeys(("S1", "S1_conf", "ST", "ST_conf"), zero)
        return found | {"S2": square, "S2_conf": square}
    optional("SALib", "campaign", "Sobol indices")
    from SALib.analyze import sobol

    problem = {"num_vars": count, "names": list(names), "bounds": [[0.0, 1.0]] * count}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A seed of 0 means none to SALib.
        return sobol.analyze(
            problem,
            values,
            calc_second_order=second,
            num_resamples=resamples,
            conf_level=confidence,
            seed=seed + 1,
        )
