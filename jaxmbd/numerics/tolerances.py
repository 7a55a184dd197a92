"""All tolerances of the engine, derived from the machine epsilon ε of the floating-point type.

``ε = 2⁻⁵²`` in double precision, ``2⁻²³`` in single. Each tolerance is a function of the type; its
docstring gives its value in double precision and what is compared with it. Rounding errors
themselves are bounded by multiples of ε where they arise (`rounding`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp


def rounding(dtype: Any, operations: float = 1.0) -> float:
    """ε times the number of rounded operations: relative rounding error of a sum."""
    return operations * float(jnp.finfo(dtype).eps)


def redundancy(dtype: Any) -> float:
    """1e-10: squared sine of the angle below which a row lies in the span of the previous ones.

    It is ``ε^0.64``. Rows computed from coordinates are not accurate to ε themselves, so that a
    sine of ``√(ε^0.64)`` = 1e-5 is the least that counts as an independent direction.
    """
    return rounding(dtype) ** 0.64


def consistency(dtype: Any) -> float:
    """1e-5: residual of a skipped row relative to its terms, below which it is satisfied.

    The square root of `redundancy`: a row within that angle of the others may miss by as much.
    """
    return redundancy(dtype) ** 0.5


TURNED_BY_OPENING = 30.0
"""Angle by which constraint rows turn [rad], at most, where loops are open by one length of the
mechanism: loops have links of about that length, and rows of short ones turn more."""

CONTRADICTION = 1e-6
"""Closure error relative to the mechanism's length that redundant rows may keep: drawings with the
digits of single precision contradict themselves by a tenth of it."""

MOST_TURNED = 0.03
"""Most that counts: independent rows of mechanisms in use are farther apart."""


def faintness(dtype: Any) -> float:
    """2e-16: squared relative length of a row, below which half of its digits are rounding error.

    The length is relative to the longest row. In single precision 1e-10.
    """
    return min(rounding(dtype), 1e-10)


def closing(dtype: Any) -> float:
    """7e-11: closure error relative to the mechanism's length, of an assembled configuration."""
    return rounding(dtype) ** 0.65


def balance(dtype: Any) -> float:
    """7e-11: unbalanced force relative to the loads, of a mechanism in equilibrium."""
    return closing(dtype)


def agreement(dtype: Any) -> float:
    """1.5e-8: residual of an equation relative to its terms, below which it is satisfied.

    Solving a consistent but singular system leaves half of the digits.
    """
    return rounding(dtype) ** 0.5


def carrying(dtype: Any) -> float:
    """5e-7: relative part of a load that actuators and constraints may leave unbalanced."""
    return rounding(dtype) ** 0.4


def rank(dtype: Any) -> float:
    """4e-10: singular value relative to the largest, below which it counts as zero."""
    return rounding(dtype) ** 0.6


def separation(dtype: Any) -> float:
    """1e-4: rounding error of an eigenvalue relative to its distance from the nearest other one.

    It is ``ε^¼``. Eigenvectors, and with them the derivative, lose as many digits; above that the
    eigenvalue does not count as simple.
    """
    return rounding(dtype) ** 0.25


class StepTolerances(NamedTuple):
    """Tolerances of an adaptive integrator, or of the Newton iteration of an implicit one."""

    rtol: Any
    atol: Any


def nearness(dtype: Any) -> float:
    """6e-6: relative error of a derivative at an approximate solution, above which it has none.

    It is ``ε^⅓``: near a dead centre the closure error that remains moves the derivative.
    """
    return rounding(dtype) ** (1.0 / 3.0)


def integration(dtype: Any, rtol: Any = None, atol: Any = None) -> StepTolerances:
    """Error of one adaptive step: 1e-10 relative and 1e-12 absolute, unless given."""
    return StepTolerances(
        rounding(dtype) ** 0.64 if rtol is None else rtol,
        rounding(dtype) ** 0.77 if atol is None else atol,
    )


def newton(steps: StepTolerances) -> StepTolerances:
    """Size of the last Newton update: by quadratic convergence the next is within the steps'."""
    return StepTolerances(steps.rtol**0.5, steps.atol**0.5)
