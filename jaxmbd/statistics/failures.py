"""Where samples fail: which inputs separate them from those that pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.statistics.association import separation
from jaxmbd.statistics.samples import varying


class Separation(NamedTuple):
    """How one number of the inputs differs between failed and passed samples.

    Attributes:
        name: of the number.
        larger: probability that it is larger in a failed sample than in one that passed.
        chance: probability of such a difference by chance.
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

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import failure_map
        >>> x = np.random.default_rng(0).normal(size=(1000, 2))
        >>> found = failure_map({"a": x[:, 0], "b": x[:, 1]}, ok=x[:, 1] < 1.5)
        >>> found[0].name, found[0].larger
        ('b', 1.0)
    """
    ok = np.asarray(ok, bool)
    if ok.all() or not ok.any():
        return []
    found = []
    for name, x in varying(inputs).items():
        larger, chance = separation(x[~ok], x[ok])
        found.append(
            Separation(name, larger, chance, float(np.median(x[~ok])), float(np.median(x[ok])))
        )
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
