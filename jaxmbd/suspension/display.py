"""Units in which suspension engineers read numbers, and plain tables of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

_SHOWN = {"rad": ("deg", 180.0 / np.pi), "m": ("mm", 1e3), "N/m": ("N/mm", 1e-3)}


def shown(unit: str) -> tuple[str, float]:
    """The unit in which a number is shown, and the factor from SI.

    Angles in degrees, lengths in millimetres, rates in N/mm; derivatives per metre, per degree.

    Example:
        >>> from jaxmbd.suspension.display import shown
        >>> shown("m"), shown("rad/m")[0], shown("m/m")[0]
        (('mm', 1000.0), 'deg/m', 'mm/m')
    """
    if unit in _SHOWN:
        return _SHOWN[unit]
    top, slash, below = unit.partition("/")
    name, factor = _SHOWN.get(top, (top, 1.0))
    if below == "rad":
        return f"{name}/deg", factor / _SHOWN["rad"][1]
    return f"{name}{slash}{below}", factor


def number(x: float) -> str:
    """A number with four significant digits, as short as it can be."""
    if not np.isfinite(x):
        return "–" if np.isnan(x) else f"{x:g}"
    if abs(x) < 5e-7:
        return "0"
    return f"{x:.0f}" if 1e4 <= abs(x) < 1e7 else f"{x:.4g}"


def meaning(name: str, text: str) -> str:
    """A quantity's text beside its name and printed unit: without repeating either.

    Example:
        >>> from jaxmbd.suspension.display import meaning
        >>> meaning("toe", "toe [rad], positive: toe-in")
        'positive: toe-in'
        >>> meaning("toe_gradient", "its derivative along wheel travel: toe")
        'its derivative along wheel travel'
    """
    if name.endswith("_gradient"):
        return text.partition(":")[0]
    text = re.sub(r" \[[^\]]*\]", "", text)
    said = "[_ -]".join(map(re.escape, name.split("_")))
    return re.sub(rf"^{said}(?![\w-])[,:]? *", "", text) or text


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table of texts: the first `left` columns and the last to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        last = len(row) - 1
        cells = [
            x.ljust(w) if i < left or i == last else x.rjust(w)
            for i, (x, w) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join(map(line, [head, *rows]))
