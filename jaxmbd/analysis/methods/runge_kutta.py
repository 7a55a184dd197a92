"""Explicit Runge-Kutta methods with embedded ones and adaptive steps."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.methods.adaptive import Adaptive, Attempt, table
from jaxmbd.analysis.methods.method import Equations


class Tableau(NamedTuple):
    """Coefficients of a pair: stages at ``t + c h`` from ``y + h A k``, ``y' = y + h b·k``.

    The last stage is at the new state.

    Attributes:
        a: A (s, s), strictly lower triangular.
        b: weights (s,).
        e: weights of the error, b minus those of an embedded method; those of a second, coarser
            one, if there is one, are another row (1 or 2, s).
        c: times (s,).
    """

    a: np.ndarray
    b: np.ndarray
    e: np.ndarray
    c: np.ndarray

    def of_a_step(self) -> Tableau:
        """Without a last stage that no weight asks for."""
        n = 1 + np.flatnonzero(np.abs([self.b, *self.e]).max(axis=0))[-1]
        return Tableau(self.a[:n, :n], self.b[:n], self.e[:, :n], self.c[:n])


def _tableau(a: list[list[float]], e: list[Any], c: Any) -> Tableau:
    """Of the rows of A below its diagonal, the last of which is b, and of the errors."""
    square = np.zeros((len(a), len(a)))
    for i, row in enumerate(a):
        square[i, : len(row)] = row
    return Tableau(square, square[-1], np.array(e), np.array(c))


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

# Of Hairer's program dop853.f.
_EIGHTH = [
    [],
    [0.05260015195876773],
    [0.0197250569845379, 0.0591751709536137],
    [0.02958758547680685, 0.0, 0.08876275643042054],
    [0.2413651341592667, 0.0, -0.8845494793282861, 0.924834003261792],
    [0.037037037037037035, 0.0, 0.0, 0.17082860872947386, 0.12546768756682242],
    [0.037109375, 0.0, 0.0, 0.17025221101954405, 0.06021653898045596, -0.017578125],
    [0.03709200011850479, 0.0, 0.0, 0.17038392571223998, 0.10726203044637328,
     -0.015319437748624402, 0.008273789163814023],
    [0.6241109587160757, 0.0, 0.0, -3.3608926294469414, -0.868219346841726, 27.59209969944671,
     20.154067550477894, -43.48988418106996],
    [0.47766253643826434, 0.0, 0.0, -2.4881146199716677, -0.590290826836843,
     21.230051448181193, 15.279233632882423, -33.28821096898486, -0.020331201708508627],
    [-0.9371424300859873, 0.0, 0.0, 5.186372428844064, 1.0914373489967295, -8.149787010746927,
     -18.52006565999696, 22.739487099350505, 2.4936055526796523, -3.0467644718982196],
    [2.273310147516538, 0.0, 0.0, -10.53449546673725, -2.0008720582248625, -17.9589318631188,
     27.94888452941996, -2.8589982771350235, -8.87285693353063, 12.360567175794303,
     0.6433927460157636],
    [0.054293734116568765, 0.0, 0.0, 0.0, 0.0, 4.450312892752409, 1.8915178993145003,
     -5.801203960010585, 0.3111643669578199, -0.1521609496625161, 0.20136540080403034,
     0.04471061572777259],
]  # fmt: skip
_EIGHTH_TIMES = [
    0.0, 0.05260015195876773, 0.0789002279381516, 0.1183503419072274, 0.2816496580927726,
    0.3333333333333333, 0.25, 0.3076923076923077, 0.6512820512820513, 0.6, 0.8571428571428571,
    1.0, 1.0,
]  # fmt: skip
_COARSE = {0: 0.2440944881889764, 8: 0.7338466882816119, 11: 0.022058823529411766}
_EIGHTH_ERROR = [
    0.01312004499419488, 0.0, 0.0, 0.0, 0.0, -1.2251564463762044, -0.4957589496572502,
    1.6643771824549864, -0.35032884874997366, 0.3341791187130175, 0.08192320648511571,
    -0.022355307863886294, 0.0,
]  # fmt: skip


class ExplicitPair(Adaptive):
    """An explicit Runge-Kutta method with one or two embedded ones."""

    tableau: ClassVar[Tableau]
    explicit: ClassVar[bool] = True

    def attempt(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Any = None
    ) -> Attempt:
        """All stages are one loop, so that the dynamics is compiled once."""
        tableau = self.tableau if equations.events else self.tableau.of_a_step()
        a, b, e, c = (table(x, q.dtype) for x in tableau)

        def stage(k: tuple[Array, Array], row: tuple[Array, Array, Array]) -> tuple[Any, None]:
            weights, time, place = row
            rates = equations.rates(t + time * h, *(
                x + h * (weights @ kx) for x, kx in zip((q, v), k, strict=True)
            ))  # fmt: skip
            return tuple(kx + place[:, None] * x for kx, x in zip(k, rates, strict=True)), None

        none = tuple(jnp.zeros((b.shape[0], x.shape[0]), x.dtype) for x in (q, v))
        (kq, kv), _ = lax.scan(stage, none, (a, c, jnp.eye(b.shape[0], dtype=q.dtype)))
        error_q, error_v = (_combined(*(h * (e @ lax.stop_gradient(k)))) for k in (kq, kv))
        return Attempt(q + h * (b @ kq), v + h * (b @ kv), error_q, error_v, (kv[0], kv[-1]))


def _combined(fine: Array, coarse: Array | None = None) -> Array:
    """The error f, or with a coarser one g ``f |f| / √(f² + 0.01 g²)``."""
    if coarse is None:
        return fine
    ratio = 0.1 * coarse / jnp.where(fine == 0.0, 1.0, fine)
    return fine / jnp.sqrt(1.0 + ratio * ratio)


class DormandPrince(ExplicitPair):
    """The explicit pair 5(4) of Dormand and Prince (1980), with adaptive steps.

    The method of choice where nothing is stiff. A bushing, stop or contact whose vibration is much
    faster than the motion makes it slow: see `Rodas`.

    Attributes:
        rtol, atol, most: as of every adaptive method (`jaxmbd.analysis.methods.adaptive.Adaptive`).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> run = mbd.simulate(m, [0.1], t1=1.0, dt=0.1, method=mbd.DormandPrince(rtol=1e-6))
        >>> run.status.item(), run.q.shape
        (0, (11, 1))
    """

    order: ClassVar[int] = 5
    tableau: ClassVar[Tableau] = _tableau(
        _FIFTH, [np.array([*_FIFTH[-1], 0.0]) - _EMBEDDED], [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1]
    )


class DormandPrince8(ExplicitPair):
    """The explicit method of order 8 by Dormand and Prince, DOP853, with adaptive steps.

    For smooth motions at high precision: a step has 12 evaluations in place of the 7 of
    `DormandPrince`, and fewer steps make up for that from about seven digits on. Forces with kinks
    or jumps take that away.

    The coefficients, of methods of order 8, 5 and 3, and the error ``e5² / √(e5² + 0.01 e3²)``,
    which is of order 8 in the step, are Hairer's (Hairer, Nørsett & Wanner, Solving ODEs I, II.10;
    the program dop853.f). It is taken of each coordinate and each speed.

    Attributes:
        rtol, atol, most: as of every adaptive method (`jaxmbd.analysis.methods.adaptive.Adaptive`).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> run = mbd.simulate(m, [0.1], t1=1.0, dt=0.5, method=mbd.DormandPrince8(rtol=1e-9))
        >>> run.status.item(), run.q.shape
        (0, (3, 1))
    """

    order: ClassVar[int] = 8
    tableau: ClassVar[Tableau] = _tableau(
        _EIGHTH,
        [_EIGHTH_ERROR, np.array([*_EIGHTH[-1], 0.0]) - [_COARSE.get(i, 0.0) for i in range(13)]],
        _EIGHTH_TIMES,
    )
