"""What the judge says of one case: the interface of all families of `fails_safely.py`.

A family is a module of this folder with

    NUMBERS: dict[str, str]  # public number, as in `public_numbers`, to its oracle, in one phrase
    SHARE: float = 1.0  # optional: its cases per case that is asked for
    def judged(seed: int, size: int) -> Iterator[Judged]: ...  # about `size` cases

The oracle shares no code with what it judges. What else is asked of a number than its value in
double precision stands behind a comma: ``"forward_dynamics, reverse derivative"``,
``"Sweep, float32"``, ``"Reaction, study"``; such a line is a key of `NUMBERS` of its own.
Everything random comes from the seed. Each family runs in a process of its own, with double
precision enabled; it starts where `jaxmbd` and this folder can be imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

RIGHT, FLAGGED, REFUSED = "right", "flagged", "refused"
WRONG, CRASHED = "WRONG, reported as ok", "CRASHED"
OUTCOMES = (RIGHT, FLAGGED, REFUSED, WRONG, CRASHED)
BAD = (WRONG, CRASHED)


class Judged(NamedTuple):
    """One case.

    Attributes:
        number: the public number, a key of the family's `NUMBERS`.
        outcome: one of `OUTCOMES`. "flagged" is a status that is not OK, "refused" an error that
            says what is wrong.
        error: relative error of the number against its oracle; NaN unless both were compared.
        detail: mechanism, seed and sample: enough to reproduce.
    """

    number: str
    outcome: str
    error: float
    detail: str


def or_crash(number: str, cases: Iterable[Judged], detail: str) -> Iterator[Judged]:
    """The cases; an error among them is a crash of that number, and ends them."""
    try:
        yield from cases
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:300]} | {detail}"
        yield Judged(number, CRASHED, float("nan"), text)


def compare(
    number: str,
    found: Any,
    expected: Any,
    *,
    limit: float,
    detail: str,
    scale: float = 0.0,
    ok: bool = True,
) -> Judged:
    """The case of a number that was found, and reported as ok or not, against its oracle's.

    Args:
        number: a key of the family's `NUMBERS`.
        found: the number, or an array of numbers.
        expected: the same by the oracle. NaN: the oracle says that it is indeterminate, and it must
            be NaN or flagged.
        limit: largest relative error that is right.
        detail: enough to reproduce the case.
        scale: what the error is relative to, if that is larger than the largest expected magnitude:
            what was subtracted from each other on the way.
        ok: whether it was reported as ok. What is not must be NaN to be "flagged" where a number
            stands beside a status; give False to say that it was.
    """
    if not ok:
        return Judged(number, FLAGGED, float("nan"), detail)
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    if found.shape != expected.shape:
        text = f"shape {found.shape} for {expected.shape}"
        return Judged(number, WRONG, float("inf"), f"{text} | {detail}")
    missing = np.isnan(expected)
    size = max(scale, float(np.max(np.abs(expected[~missing]), initial=0.0)))
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(found - expected)[~missing]
    error = float(np.max(off, initial=0.0))
    error = error / size if size > 0.0 else error
    if not np.all(np.isnan(found[missing])):
        return Judged(number, WRONG, float("inf"), f"a number where there is none | {detail}")
    if missing.all() and missing.size:
        return Judged(number, FLAGGED, float("nan"), detail)
    if not error <= limit:  # also NaN
        text = f"{_short(found)} for {_short(expected)}"
        return Judged(number, WRONG, error, f"{text} | {detail}")
    return Judged(number, RIGHT, error, detail)


def _short(x: np.ndarray) -> str:
    return np.array2string(x, precision=7, threshold=8, max_line_width=1000)
