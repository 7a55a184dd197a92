"""Verification of a run by two others: with finer steps, and by a method of another kind.

What a run is wrong by at a coordinate is, to leading order, its difference from a run by half the
step or a tenth of the tolerance; errors that such a run shares, as of a method that does not suit
the problem, show against another kind of method. Differences are taken along the speeds
(`coordinate_change`), with one radian and the mechanism's length as units, and

    digits = −log10 (largest difference / largest motion),

the motion being the change of coordinates since the start, or the speeds.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.analysis.method_choice import choose_method
from jaxmbd.analysis.methods import (
    Adaptive,
    DiffraxSolver,
    DormandPrince,
    Method,
    Rodas,
    chosen,
)
from jaxmbd.analysis.methods.runge_kutta import ExplicitPair
from jaxmbd.analysis.simulation import simulate
from jaxmbd.analysis.solution import RunEnd, Solution
from jaxmbd.analysis.status import Status
from jaxmbd.analysis.time_grid import TimeGrid, time_grid
from jaxmbd.graph import topology
from jaxmbd.kinematics import coordinate_change, speed_units
from jaxmbd.model import Mechanism
from jaxmbd.numerics import tolerances

COARSE = 2.0
"""Digits below which a run is called coarse."""
TRIES = 400_000
"""Steps which the method of another kind may try in all, at least."""


@dataclass(frozen=True)
class Difference:
    """The largest difference of two runs, in coordinates or in speeds.

    Attributes:
        digits: that agree, relative to the largest motion, at least zero; NaN if no row after the
            start can be compared.
        value: the difference [rad, m; per second of speeds].
        t: the time of it [s].
        name: the coordinate along which it is, as in ``topology(mech).speed_names``; empty if none
            is known.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> found = mbd.verify(m, [0.1], t1=0.5, dt=0.05)
        >>> found.finer.v.name, found.finer.v.value < 1e-4
        ('hinge', True)
    """

    digits: float
    value: float
    t: float
    name: str


@dataclass(frozen=True)
class Agreement:
    """How far a run agrees with another.

    Attributes:
        by: what the other did: "half the step", "a tenth of the tolerance", or a method.
        q: largest difference of coordinates.
        v: largest difference of speeds.
        until: time until which both have rows [s].

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.verify(mbd.zoo.simple_pendulum(), [0.1], t1=0.5, dt=0.05).finer.by
        'half the step'
    """

    by: str
    q: Difference
    v: Difference
    until: float


@dataclass(frozen=True)
class Verification:
    """A run, and how many of its digits two other runs confirm (`verify`); `print` sums it up.

    Attributes:
        solution: the run that was asked for.
        finer: agreement with a run by half the step or a tenth of the tolerance.
        other: agreement with a method of another kind.
        digits_q: digits of the coordinates that agree in all of them; zero if the run diverges, NaN
            if no other has states to compare.
        digits_v: digits of the speeds, likewise.
        summary: all this in a sentence.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.verify(mbd.zoo.simple_pendulum(), [0.1], t1=1.0, dt=0.01)
        >>> found.solution.q.shape, 6 < found.digits_v < found.digits_q
        ((101, 1), True)
    """

    solution: Solution
    finer: Agreement
    other: Agreement
    digits_q: float
    digits_v: float
    summary: str

    def __str__(self) -> str:
        return self.summary


def verify(mech: Mechanism, q0: Any, v0: Any = None, **options: Any) -> Verification:
    """Run a simulation and two others like it, and tell how many digits agree.

    The others have half the step (of fixed steps) or a tenth of the tolerances (of adaptive ones),
    and a method of another kind: `DormandPrince` beside fixed steps and `Rodas`, `Rodas` beside
    explicit adaptive ones and solvers of diffrax. Digits are relative to the largest motion of any
    coordinate, in radians and lengths of the mechanism (`jaxmbd.analysis.verification`), so a small
    coordinate beside large ones may have fewer. Where a motion is chaotic, digits are lost with
    time by every method.

    A run that fails or is inaccurate does not raise: its status is told. `outputs` are evaluated in
    the run that was asked for alone.

    Args:
        mech: the mechanism.
        q0: coordinates (nq,), or the end of another run, as for `simulate`.
        v0: speeds (nv,), likewise.
        **options: all other arguments of `simulate`.

    Raises:
        ValueError: an argument is out of range, the initial state is not on the constraints, or
            numbers are traced, as inside `jit`, `vmap` or `grad`.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.verify(mbd.zoo.simple_pendulum(), [0.1], t1=2.0, dt=0.2, throw=False)
        >>> found.digits_v < 3, found.summary.startswith("2.")
        (True, True)
    """
    if any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves((mech, q0, v0, options))):
        raise ValueError(_TRACED)
    method, grid = _asked(mech, q0, v0, options)
    same = {k: x for k, x in options.items() if k not in ("method", "rtol", "atol", "throw")}
    run = simulate(mech, q0, v0, **same, method=method, throw=False)
    if isinstance(run.status, Tracer):
        raise ValueError(_TRACED)
    if not np.all(np.isfinite(run.q[0])) or int(run.status) == Status.NOT_ASSEMBLED:
        simulate(mech, q0, v0, **same, method=method)  # says why
    same = {k: x for k, x in same.items() if k not in _TIMES and k != "outputs"}
    same["t"] = np.asarray(run.t)
    if same.get("baumgarte_rate") is None:
        same["baumgarte_rate"] = 0.1 / grid.dt
    by, finer, every = _finer(method, grid)
    finely = simulate(mech, q0, v0, **same, method=finer, save_every=every, throw=False)
    kind = _other(method, mech, grid)
    if same.get("constraints") == "stages" and not kind.explicit:
        same["constraints"] = "project"
    differently = simulate(mech, q0, v0, **same, method=kind, throw=False)
    agree = _agreement(mech, run, finely, by), _agreement(mech, run, differently, _named(kind))
    digits_q, digits_v = (min(_known(getattr(a, x).digits for a in agree)) for x in "qv")
    if int(run.status) == Status.DIVERGED:
        digits_q = digits_v = 0.0
    return Verification(run, *agree, digits_q, digits_v, _summary(run, agree, digits_q, digits_v))


_TRACED = (
    "verify compares numbers, which are traced here (inside jit, vmap or grad): call it outside, "
    "for single samples"
)
_TIMES = ("t", "t0", "t1", "dt", "steps", "save_every")


def _asked(mech: Mechanism, q0: Any, v0: Any, options: dict[str, Any]) -> tuple[Method, TimeGrid]:
    """The method and the times that the options ask for."""
    goes_on, every = isinstance(q0, RunEnd), options.get("save_every", 1)
    begin, given = q0.t if goes_on else None, options.get
    times = begin, given("t"), given("t0"), given("t1"), given("dt"), given("steps"), every
    method = options.get("method", "rk4")
    within: dict[str, Any] = {x: options.get(x) for x in ("rtol", "atol")}
    if isinstance(method, str) and method == "auto":
        grid = time_grid(*times, adaptive=True)
        start, before = ((q0.q, q0.v), q0.switches or {}) if goes_on else ((q0, v0), {})
        within |= {"t0": grid.t0, "t1": grid.t1, "inputs": given("inputs")}
        within["switches"] = {**before, **(given("switches") or {})}
        return choose_method(mech, *start, **within).method, grid
    method = chosen(method, mech.dtype, **within)
    return method, time_grid(*times, adaptive=isinstance(method, Adaptive))


def _finer(method: Method, grid: TimeGrid) -> tuple[str, Method, int]:
    """What is finer, the method, and its steps between two saved times."""
    if isinstance(method, Adaptive | DiffraxSolver):
        tenth = {"rtol": 0.1 * method.rtol, "atol": 0.1 * method.atol}
        return "a tenth of the tolerance", dataclasses.replace(method, **tenth), 1
    return "half the step", method, 2 * grid.every


def _other(method: Method, mech: Mechanism, grid: TimeGrid) -> Method:
    """A method of another kind, of which more is asked."""
    implicit = isinstance(method, ExplicitPair | DiffraxSolver)
    kind = Rodas if implicit else DormandPrince
    most = max(kind().most, 4 * grid.every, TRIES // grid.saves)
    usual = tolerances.integration(mech.dtype)
    if not isinstance(method, Adaptive | DiffraxSolver):
        return kind(rtol=usual.rtol, atol=usual.atol, most=most)
    if implicit:
        return kind(rtol=0.1 * method.rtol, atol=0.1 * method.atol, most=most)
    # Of a stiff motion Rodas is right to far more than its tolerances, an explicit method is not.
    share = max(1e-2, tolerances.rounding(mech.dtype, 16) / usual.rtol)
    return kind(rtol=share * usual.rtol, atol=share * usual.atol, most=most)


def _named(method: Any) -> str:
    return f"{type(method).__name__}(rtol={float(method.rtol):.1g})"


def _agreement(mech: Mechanism, run: Solution, other: Solution, by: str) -> Agreement:
    """How far two runs with the same saved times agree, as far as both have rows."""
    t = np.asarray(run.t if len(run.q) == len(run.t) else run.t[jnp.array([0, -1])])
    rows = (run.q, run.v), (other.q, other.v)
    fine = np.all([np.isfinite(x).all(axis=1) for pair in rows for x in pair], axis=0)
    found = [np.asarray(x)[fine] for x in _differences(mech, *rows)]
    names, floor = topology(mech).speed_names, tolerances.integration(mech.dtype).atol
    units, t = np.asarray(speed_units(mech)), t[fine]
    return Agreement(by, *(_largest(x, size, units, t, names, floor)
                           for x, size in (found[:2], found[2:])),
                     until=float(t[-1]) if t.size else math.nan)  # fmt: skip


@jax.jit
def _differences(
    mech: Mechanism, rows: tuple[Array, Array], others: tuple[Array, Array]
) -> tuple[Array, ...]:
    """Differences of q and the motion in q (n, nv), and of v (n, nv)."""
    (q, v), (other_q, other_v) = rows, others

    def change(a: Array, b: Array) -> Array:
        return coordinate_change(mech, a, b)

    # Of a quaternion the change is 2 tan(angle/2), which has no bound.
    moved = jnp.clip(jax.vmap(change, (None, 0))(q[0], q), -1e3, 1e3)
    return jax.vmap(change)(q, other_q), moved, other_v - v, v


def _largest(
    difference: np.ndarray,
    motion: np.ndarray,
    units: np.ndarray,
    t: np.ndarray,
    names: tuple[str, ...],
    floor: float,
) -> Difference:
    """The largest of differences (n, nv), relative to the largest motion (n, nv)."""
    if len(t) < 2:  # the start is the same
        return Difference(math.nan, math.nan, math.nan, "")
    least = float(np.finfo(difference.dtype).eps)
    if not units.size:  # nothing moves
        return Difference(-math.log10(least), 0.0, float(t[-1]), "")
    shares = np.abs(difference) / units
    if not names:  # nothing can move
        return Difference(-math.log10(np.finfo(difference.dtype).eps), 0.0, float(t[-1]), "")
    k, i = np.unravel_index(np.argmax(shares), shares.shape)
    size = max(float(np.max(np.abs(motion) / units)), floor)
    digits = -math.log10(min(max(float(shares[k, i]) / size, least), 1.0))
    return Difference(digits, float(abs(difference[k, i])), float(t[k]), names[i])


def _known(digits: Any) -> list[float]:
    """Those that are known; NaN alone if none is."""
    return [x for x in digits if not math.isnan(x)] or [math.nan]


def _summary(
    run: Solution, agree: tuple[Agreement, Agreement], digits_q: float, digits_v: float
) -> str:
    told = f"{digits_q:.1f} digits of q and {digits_v:.1f} of v agree"
    if not min(digits_q, digits_v) >= COARSE:
        told = f"the run is too coarse: {told}"
    for a in agree:
        if math.isnan(a.v.digits):
            told += f"; by {a.by} there is no state to compare"
            continue
        told += f"; by {a.by} {a.q.digits:.1f} and {a.v.digits:.1f}"
        if a.until < run.t[-1]:
            told += f" (until t = {a.until:.4g} s)"
    if known := [a.v for a in agree if a.v.name]:
        worst = min(known, key=lambda x: x.digits)
        told += f"; the largest difference of speeds is {worst.value:.2g} of '{worst.name}'"
        told += f" at t = {worst.t:.4g} s"
    status = Status(int(run.status))
    if status != Status.OK:
        told = f"{status.name} from t = {float(run.failed_at):.4g} s on; {told}"
    return told
