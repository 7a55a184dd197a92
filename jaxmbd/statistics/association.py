"""What drives an output, and what makes samples fail.

Correlation and rank correlation with each input; which inputs separate failed samples from others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.statistics.samples import counted, varying


class Association(NamedTuple):
    """Correlation of an output with each number of the inputs, the strongest first.

    Attributes:
        names: of the inputs' numbers, as `jaxmbd.sampling.components` has them.
        values: correlation coefficients.
        noise: coefficients smaller than this may be chance (3/√n).
        count: number of samples that count.
        left_out: number of those without a value of the output.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import correlations
        >>> correlations({"a": np.arange(100.0)}, -np.arange(100.0)).values
        array([-1.])
    """

    names: tuple[str, ...]
    values: np.ndarray
    noise: float
    count: int
    left_out: int


def correlations(
    inputs: Mapping[str, Any], output: Any, ok: Any = None, *, ranks: bool = True
) -> Association:
    """Correlation of an output with each number of the inputs.

    Args:
        inputs: values (n, …) by name; numbers that do not vary are left out.
        output: values (n,).
        ok: which samples succeeded; all by default.
        ranks: Spearman's coefficient, of ranks, which sees any monotone relation; otherwise
            Pearson's, of the values.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import correlations
        >>> x = np.random.default_rng(0).normal(size=(500, 3))
        >>> found = correlations({"p": x, "k": np.ones(500)}, np.exp(x[:, 1]))
        >>> found.names[0], round(float(found.values[0]), 3)
        ('p/y', 1.0)
    """
    return correlation_table(inputs, {"": output}, ok, ranks=ranks)[""]


def correlation_table(
    inputs: Mapping[str, Any], outputs: Mapping[str, Any], ok: Any = None, *, ranks: bool = True
) -> dict[str, Association]:
    """Correlation of several outputs with each number of the inputs, as `correlations`.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import correlation_table
        >>> x = np.random.default_rng(0).normal(size=(500, 2))
        >>> found = correlation_table({"p": x}, {"sum": x.sum(axis=1), "last": x[:, 1]})
        >>> {n: a.names[0] for n, a in found.items()}["last"]
        'p/1'
    """
    numbers = varying(inputs)
    # Inputs are ranked once for all outputs that have the same failed samples.
    ranked: dict[bytes, dict[str, np.ndarray]] = {}
    found = {}
    for output, values in outputs.items():
        kept = counted(values, ok)
        key = kept.tobytes()
        if key not in ranked:
            ranked[key] = {n: _standard(x[kept], ranks) for n, x in numbers.items()}
        y = _standard(np.asarray(values, np.float64)[kept], ranks)
        # Elementwise: threads of a library's dot product cost more than they win.
        each = {n: float(np.sum(x * y)) for n, x in ranked[key].items()}
        names = sorted(each, key=lambda n: -abs(each[n]))
        count = int(kept.sum())
        coefficients, noise = np.array([each[n] for n in names]), 3.0 / np.sqrt(max(count, 1))
        found[output] = Association(tuple(names), coefficients, noise, count, len(kept) - count)
    return found


def _standard(x: np.ndarray, ranks: bool) -> np.ndarray:
    """Values or their ranks about their mean, of length one; zeros if they are all the same."""
    if ranks:
        from scipy import stats

        x = stats.rankdata(x)
    x = x - x.mean() if len(x) else x
    length = np.sqrt(np.sum(x * x))
    return x / length if length > 0.0 else np.zeros_like(x)


class Separation(NamedTuple):
    """How one number of the inputs differs between failed and passed samples.

    Attributes:
        name: of the number.
        larger: probability that it is larger in a failed sample than in one that passed.
        chance: probability of such a difference by chance (Mann–Whitney).
        failed, passed: median among each.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import failure_map
        >>> x = np.arange(100.0)
        >>> failure_map({"x": x}, ok=x < 90)[0].larger
        1.0
    """

    name: str
    larger: float
    chance: float
    failed: float
    passed: float


def failure_map(inputs: Mapping[str, Any], ok: Any) -> list[Separation]:
    """Numbers of the inputs by how well they separate failed from passed samples, best first.

    Args:
        inputs: values (n, …) by name.
        ok: which samples passed (n,).

    Returns:
        One entry for each number that varies; none if all samples failed or all passed.

    Raises:
        ValueError: `ok` is not of truth values, as a status is not, which is zero where a sample
            passed.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import failure_map
        >>> x = np.random.default_rng(0).normal(size=(1000, 2))
        >>> found = failure_map({"a": x[:, 0], "b": x[:, 1]}, ok=x[:, 1] < 1.5)
        >>> found[0].name, found[0].larger
        ('b', 1.0)
    """
    from scipy import stats

    ok = np.asarray(ok)
    if ok.dtype != bool or ok.ndim != 1:
        raise ValueError(f"ok must be truth values (n,), is {ok.dtype} {ok.shape}")
    if ok.all() or not ok.any():
        return []
    found = []
    for name, x in varying(inputs).items():
        failed, passed = x[~ok], x[ok]
        test = stats.mannwhitneyu(failed, passed, use_continuity=False, method="asymptotic")
        larger = float(test.statistic) / (len(failed) * len(passed))
        medians = float(np.median(failed)), float(np.median(passed))
        found.append(Separation(name, larger, float(test.pvalue), *medians))
    return sorted(found, key=lambda s: -abs(s.larger - 0.5))


def failure_counts(status: Any, reasons: Mapping[int, str] | None = None) -> dict[str, int]:
    """How many samples ended with each status or reason, the most frequent first.

    Args:
        status: whole numbers (n,), 0 where the sample passed.
        reasons: what they mean.

    Example:
        >>> from jaxmbd.statistics import failure_counts
        >>> failure_counts([0, 1, 0, 2, 1], {1: "not assembled", 2: "singular"})
        {'not assembled': 2, 'singular': 1}
    """
    values, counts = np.unique(np.asarray(status), return_counts=True)
    names = {int(v): (reasons or {}).get(int(v), f"status {v}") for v in values}
    order = sorted(zip(counts.tolist(), values.tolist(), strict=True), key=lambda x: (-x[0], x[1]))
    return {names[v]: n for n, v in order if v != 0}
