"""Random structures (`structures`) under numbers of all sizes: instants and short runs of them."""

from __future__ import annotations

from collections.abc import Iterator

import jax

from fails_cases import motions, structures
from fails_cases.judged import Judged

SHARE = 6.0
NUMBERS = {
    "forward_dynamics, instant": (
        "residuals of Newton-Euler equations in absolute coordinates, power, inverse dynamics"
    ),
} | {
    f"Solution.v, {share:g} of a step": (
        "residuals of Newton-Euler equations at the end, energy at each step, shorter steps"
    )
    for share in motions.SHARES
}
SAMPLES = 90


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Instants of random structures, and three runs from each that is right."""
    numbers = dict(zip(("instant", *(f"run, {s:g}" for s in motions.SHARES)), NUMBERS, strict=True))
    for s in range(seed, seed + max(1, round(size / (3.4 * SAMPLES)))):
        drawn = structures.structure(s, structures.KINDS[s % len(structures.KINDS)])
        for asked, outcome, text in motions.judge_structure(drawn, SAMPLES, s):
            yield Judged(numbers[asked], outcome, float("nan"), f"structure {s}, {text}")
        jax.clear_caches()
