"""Which samples count, and inputs as columns: what all statistics begin with.

A sample has a value of an output if it did not fail and all numbers of the output are finite: a
reduction may have none, as the place of a crossing that there is none of. Means, quantiles and the
like are of the samples that have a value, and are given with their number; yields are of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jaxmbd.sampling import components

_ROWS_READ = 16384


def counted(values: Any, ok: Any = None) -> np.ndarray:
    """Which samples (n,) of values (n, …) count: those that are ok and have no NaN or infinity.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import counted
        >>> counted(np.array([1.0, np.nan, 3.0]), ok=[True, True, False])
        array([ True, False, False])
    """
    values = np.asarray(values)
    finite = np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    if ok is None:
        return finite
    ok = np.asarray(ok)
    if ok.shape != finite.shape or ok.dtype != bool:
        raise ValueError(f"ok must be {len(finite)} truth values, is {ok.dtype} {ok.shape}")
    return finite & ok


def pieces(variable: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows and values of an array of a study, so many samples at a time that memory stays small.

    Args:
        variable: of an `xarray.Dataset`.
    """
    count = variable.sizes["sample"]
    chunks = variable.encoding.get("chunks") or variable.encoding.get("preferred_chunks")
    step = chunks[0] if isinstance(chunks, tuple) else _ROWS_READ
    for start in range(0, count, step):
        rows = slice(start, min(start + step, count))
        yield rows, np.asarray(variable.isel(sample=rows))


def varying(inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Inputs (n, …) as one column (n,) for each of their numbers that is not always the same.

    They have the names of `jaxmbd.sampling.components`.

    Example:
        >>> import numpy as np
        >>> from jaxmbd.statistics import varying
        >>> list(varying({"p": np.array([[0.0, 1.0], [0.0, 2.0]]), "k": np.ones(2)}))
        ['p/1']
    """
    found = {}
    for name, values in inputs.items():
        values = np.asarray(values)
        flat = values.reshape(len(values), -1)
        found |= dict(zip(components(name, values.shape[1:]), flat.T, strict=True))
    return {n: x for n, x in found.items() if len(x) and np.any(x != x[0])}
