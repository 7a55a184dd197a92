"""Every tolerance of the engine, derived once from the number type's ε.

``ε = 2⁻⁵²`` in double precision, ``2⁻²³`` in single. Each is a function of the number type, and its
docstring says what is compared and what it is in double precision. Rounding itself is counted in
multiples of ε where it arises (`rounding`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp


def rounding(dtype: Any, operations: float = 1.0) -> float:
    """``ε`` times as many operations as rounded, relative to what was summed."""
    return operations * float(jnp.finfo(dtype).eps)


def redundancy(dtype: Any) -> float:
    """1e-10: squared sine of the angle under which a row lies in the span of those before it.

    Pivots are squares, so half of the digits tell a short pivot from rounding, ``ε^½``; the rest,
    ``ε^0.14``, is what rows that are computed from coordinates have lost themselves.
    """
    return rounding(dtype) ** 0.64


def consistency(dtype: Any) -> float:
    """1e-5: miss of a skipped row over its terms, as the angle explains under which it is skipped.

    The square root of `redundancy`.
    """
    return redundancy(dtype) ** 0.5


def faintness(dtype: Any) -> float:
    """2e-16: squared length of a row beside the longest, under which half of its digits are noise.

    Single precision has no digits to give away and takes 1e-10.
    """
    return min(rounding(dtype), 1e-10)


def closing(dtype: Any) -> float:
    """7e-11: closure error over the mechanism's length of a configuration that is assembled."""
    return rounding(dtype) ** 0.65


def balance(dtype: Any) -> float:
    """7e-11: unbalanced force over the size of the loads of a mechanism that is at rest."""
    return closing(dtype)


def agreement(dtype: Any) -> float:
    """1.5e-8: miss of an equation over the size of its terms that still counts as met.

    A consistent but singular system leaves half of the digits.
    """
    return rounding(dtype) ** 0.5


def carrying(dtype: Any) -> float:
    """5e-7: what actuators and constraints leave over of a load that they carry."""
    return rounding(dtype) ** 0.4


def rank(dtype: Any) -> float:
    """4e-10: singular value over the largest under which a matrix loses rank."""
    return rounding(dtype) ** 0.6


class StepTolerances(NamedTuple):
    """Tolerances of an adaptive integrator and of the Newton passes of an implicit one."""

    rtol: Any
    atol: Any


def integration(dtype: Any, rtol: Any = None, atol: Any = None) -> StepTolerances:
    """1e-10 relative and 1e-12 absolute, or what is asked for: error of one adaptive step."""
    return StepTolerances(
        rounding(dtype) ** 0.64 if rtol is None else rtol,
        rounding(dtype) ** 0.77 if atol is None else atol,
    )


def newton(steps: StepTolerances) -> StepTolerances:
    """Size of an update whose square is below the steps' tolerances: the next one would be."""
    return StepTolerances(steps.rtol**0.5, steps.atol**0.5)
