"""Explicit Runge-Kutta pairs with adaptive steps."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.methods.adaptive import Adaptive, Attempt
from jaxmbd.analysis.methods.method import Equations


class Tableau(NamedTuple):
    """Coefficients of a pair: stages at ``t + c h`` from ``y + h A k``, ``y' = y + h b·k``.

    Attributes:
        a: A (s, s), strictly lower triangular.
        b: weights (s,).
        e: weights of the error, b minus those of the embedded method (s,).
        c: times (s,).
    """

    a: np.ndarray
    b: np.ndarray
    e: np.ndarray
    c: np.ndarray


def _tableau(a: list[list[float]], b: Any, e: Any, c: Any) -> Tableau:
    square = np.zeros((len(a), len(a)))
    for i, row in enumerate(a):
        square[i, : len(row)] = row
    return Tableau(square, np.array(b), np.array(e), np.array(c))


_FIFTH = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
_EMBEDDED = [5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]


class DormandPrince(Adaptive):
    """The explicit pair 5(4) of Dormand and Prince (1980), with adaptive steps.

    The method of choice where nothing is stiff. A bushing, stop or contact whose vibration is much
    faster than the motion makes it slow: see `Rodas`.

    Attributes:
        rtol, atol, most: as of every adaptive method (`jaxmbd.analysis.methods.adaptive`): error of
            a step, by default 1e-10 and 1e-12, and tried steps between two saved times.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> run = mbd.simulate(m, [0.1], t1=1.0, dt=0.1, method=mbd.DormandPrince(rtol=1e-6))
        >>> run.status.item(), run.q.shape
        (0, (11, 1))
    """

    order: ClassVar[int] = 5
    tableau: ClassVar[Tableau] = _tableau(
        _FIFTH,
        [*_FIFTH[-1], 0.0],
        np.array([*_FIFTH[-1], 0.0]) - _EMBEDDED,
        [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1],
    )

    def attempt(self, equations: Equations, t: Array, q: Array, v: Array, h: Array) -> Attempt:
        """All stages are one loop, so that the dynamics is compiled once."""
        a, b, e, c = (jnp.asarray(x, q.dtype) for x in self.tableau)

        def stage(k: tuple[Array, Array], row: tuple[Array, Array, Array]) -> tuple[Any, None]:
            weights, time, place = row
            rates = equations.rates(t + time * h, *(
                x + h * (weights @ kx) for x, kx in zip((q, v), k, strict=True)
            ))  # fmt: skip
            return tuple(kx + place[:, None] * x for kx, x in zip(k, rates, strict=True)), None

        none = tuple(jnp.zeros((b.shape[0], x.shape[0]), x.dtype) for x in (q, v))
        (kq, kv), _ = lax.scan(stage, none, (a, c, jnp.eye(b.shape[0], dtype=q.dtype)))
        ends = kv[0], kv[-1]  # the last stage is at the new state
        return Attempt(q + h * (b @ kq), v + h * (b @ kv), h * (e @ kq), h * (e @ kv), ends)
