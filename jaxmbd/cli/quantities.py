"""Quantities with units on the command line."""

from __future__ import annotations

from collections.abc import Sequence


def limits_of(texts: Sequence[str] | None) -> tuple[float, float] | None:
    """The two ends of ``--range``, angles or lengths, in SI units; None without them.

    Raises:
        ValueError: a text is no quantity, or the first end is not below the second.
    """
    if texts is None:
        return None
    from jaxmbd.variables.units import parsed

    low, high = (float(parsed(x, "--range").to_base_units().magnitude) for x in texts)
    if not low < high:
        raise ValueError(f"--range: {texts[0]} is not below {texts[1]}")
    return low, high
