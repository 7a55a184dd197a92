"""Which method of adaptive steps suits a motion: an explicit one, or one for stiff systems.

An explicit method must take steps of a length that the fastest eigenvalue λ of the linearised
equations allows, even where that part of the motion has died out: of Dormand and Prince's pair
``|λ| h`` is at most about 3.3 (Hairer & Wanner, Solving ODEs II, IV.2). A linearly implicit one
takes as many as the motion needs, each of them dearer. Both numbers are found from a trial run by
`Rodas` with loose tolerances and from the eigenvalues at states along it, of the motions that the
constraints leave:

    explicit:  7 max(∫ |λ| dt / 3.3, n)  evaluations,     Rodas:  (nq + nv + 20) n,

n being the steps of the trial run, times the ratio of the tolerances to the power −1/5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from jaxmbd.analysis.equations import equations_of
from jaxmbd.analysis.known import AnyInputs, parse_inputs
from jaxmbd.analysis.methods import Adaptive, DormandPrince, Rodas, chosen, normalise
from jaxmbd.analysis.programs import program
from jaxmbd.analysis.velocity import assemble_velocity
from jaxmbd.dynamics import check_determinate
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    check_shape,
    closure_jacobian,
    coordinate_rates,
    motion_state,
    speed_units,
    speeds_of_rates,
)
from jaxmbd.lanes import check_backend
from jaxmbd.model import BumpStop, JointLimit, Mechanism, prepared
from jaxmbd.numerics import jacobian, tolerances

INTERVALS = 16
"""Parts of the trial run, at whose ends eigenvalues are taken."""
LOOSE = 1e-4
"""Relative tolerance of the trial run."""
STABLE = 3.3
"""``|λ| h`` of a step of Dormand and Prince at the bound of stability, for a negative λ."""


@dataclass(frozen=True)
class MethodChoice:
    """A method of integration, and why it was chosen (`choose_method`).

    Attributes:
        method: the method, with its tolerances; for ``simulate(method=…)``.
        reason: why, in a sentence.
        fastest: largest modulus of an eigenvalue at a state of the trial run [1/s]; NaN if none is
            known.
        steps_of_stability: steps that an explicit method must take because of eigenvalues.
        steps_of_motion: estimate of the steps that the motion needs; NaN if the trial run failed.
        untouched: names of the stops that no state of the trial run touches: their stiffness is not
            among the eigenvalues.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.choose_method(mbd.zoo.simple_pendulum(), [0.1], t1=1.0)
        >>> type(found.method).__name__, round(found.fastest, 1), found.untouched
        ('DormandPrince', 3.1, ())
    """

    method: Adaptive
    reason: str
    fastest: float
    steps_of_stability: float
    steps_of_motion: float
    untouched: tuple[str, ...]


class Trial(NamedTuple):
    """A trial run.

    Attributes:
        finite: whether each state (n + 1,) is a number.
        slopes: derivatives (n + 1, 2 nv, 2 nv) of (q̇, v̇) by (q, v), all along the speeds.
        rows: of the constraints (n + 1, nc, nv), by scaled speeds.
        steps: accepted and rejected ones before each state (n + 1,).
        touched: whether each stop is touched, (n + 1,) by name.
    """

    finite: Array
    slopes: Array
    rows: Array
    steps: Array
    touched: dict[str, Array]


def choose_method(
    mech: Mechanism,
    q0: Any,
    v0: Any = None,
    *,
    t1: Any,
    t0: Any = 0.0,
    inputs: Any = None,
    switches: dict[str, Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    backend: str = "auto",
) -> MethodChoice:
    """`DormandPrince` or `Rodas`, whichever is expected to take less time for a motion.

    The choice is that of ``simulate(method="auto")``. It is made from a trial run with loose
    tolerances and from eigenvalues along it (`jaxmbd.analysis.method_choice`), without events. Both
    methods are right to their tolerances; the choice concerns the time only. A contact that the
    trial run does not have, or has only between the states that are looked at, is not seen: it
    names the stops that are not touched.

    Args:
        mech: the mechanism.
        q0: coordinates (nq,), assembled.
        v0: speeds (nv,); by default at rest except for the motion of drives.
        t1: end time [s].
        t0: start time [s].
        inputs: efforts on joints, as for `simulate`.
        switches: what inputs depend on, as for `simulate`; in the trial run they stay as given.
        rtol: relative error of a step, as for `simulate`.
        atol: absolute error of a step, likewise.
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Raises:
        ValueError: numbers are traced, as inside `jit`, `vmap` or `grad`; ``t1 <= t0``; or a motion
            has neither inertia nor constraint.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> stiff = m.replace(forces={"drag": mbd.JointDrag("hinge", viscous=1e6)})
        >>> found = mbd.choose_method(stiff, [0.1], t1=1.0, rtol=1e-6)
        >>> type(found.method).__name__, found.fastest > 1e5
        ('Rodas', True)
    """
    check_backend(backend)
    given = mech, q0, v0, t0, t1, switches
    if any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves(given)):
        raise ValueError(_TRACED)
    if not t1 > t0:
        raise ValueError(f"need t1 > t0; got {t0=}, {t1=}")
    top, q0 = topology(mech), jnp.asarray(q0, mech.dtype)
    check_shape("q0", q0, top.nq)
    if v0 is not None:
        v0 = jnp.asarray(v0, mech.dtype)
        check_shape("v0", v0, top.nv)
    rodas, explicit = (chosen(name, mech.dtype, rtol, atol) for name in ("rodas", "dormand_prince"))
    assert isinstance(rodas, Rodas) and isinstance(explicit, DormandPrince)
    looser = max(1.0, LOOSE / rodas.rtol)
    loose = Rodas(rtol=looser * rodas.rtol, atol=looser * rodas.atol)
    times = jnp.linspace(t0, t1, INTERVALS + 1, dtype=mech.dtype)
    loose = jax.tree_util.tree_map(lambda x: jnp.asarray(x, mech.dtype), loose)
    now = {name: jnp.asarray(x, mech.dtype) for name, x in switches.items()} if switches else None
    given = mech, q0, v0, times, loose, parse_inputs(mech, inputs), now
    trial = program(backend, _trial, *given)
    if isinstance(trial.finite, Tracer):
        raise ValueError(_TRACED)
    if not np.all(trial.finite):
        check_determinate(mech, q0)
    size = top.nq + top.nv
    return _weighed(jax.device_get(trial), np.asarray(times), rodas, explicit, looser, size)


_TRACED = (
    "method='auto' and choose_method look at numbers, which are traced here (inside jit, vmap or "
    "grad): call mbd.choose_method(mech, q0, t1=...) outside, for a typical sample, and give its "
    ".method as method="
)


def _weighed(
    trial: Trial,
    times: np.ndarray,
    rodas: Rodas,
    explicit: DormandPrince,
    looser: float,
    size: int,
) -> MethodChoice:
    """The choice after a trial run of a mechanism with so many coordinates and speeds."""
    count = int(np.argmin(np.append(trial.finite, False)))  # states before the first that is none
    if not count:
        raise ValueError("q0 or v0 is not finite: take them from assemble and assemble_velocity")
    fine = np.all(np.isfinite(trial.slopes[:count]), axis=(1, 2))
    rates = np.array(
        [_fastest(*at) if ok else np.nan
         for *at, ok in zip(trial.slopes[:count], trial.rows[:count], fine, strict=True)]
    )  # fmt: skip
    known = rates[fine] if fine.any() else np.full(1, np.nan)
    fastest, mean = float(known.max()), float(known.mean())
    span = times[-1] - times[0]
    stability = mean * span / STABLE
    whole = count == len(times)
    motion = float(trial.steps[-1]) * looser ** (1.0 / rodas.order) if whole else np.nan
    untouched = tuple(n for n, x in trial.touched.items() if not np.any(x[:count]))
    stiff = 7.0 * max(stability, motion) > (size + 20.0) * motion if whole else True
    method = rodas if stiff else explicit
    told = f"{type(method).__name__}: the fastest eigenvalue, {fastest:.2g} 1/s, "
    if not whole:
        told += (
            f"at states before t = {times[count]:.4g} s, where a trial run with loose tolerances "
            "failed: the method that is safe for stiff systems"
        )
    elif stiff:
        told += (
            f"would hold an explicit method to about {stability:.2g} steps in {span:.4g} s, where "
            f"the motion needs about {motion:.2g}"
        )
    else:
        told += (
            f"asks for about {stability:.2g} steps in {span:.4g} s, the motion itself for about "
            f"{motion:.2g}: steps of Rodas, which are dearer, would save too few"
        )
    if untouched:
        told += (
            f"; not counted are stops that none of {count} states touches: {', '.join(untouched)}"
        )
    return MethodChoice(method, told, fastest, stability, motion, untouched)


def _fastest(slopes: np.ndarray, rows: np.ndarray) -> float:
    """The largest modulus of an eigenvalue of the motions that the constraints leave.

    What is beside the constraints is projected away, and is no motion.
    """
    _, sizes, vh = np.linalg.svd(rows)
    lost = tolerances.agreement(rows.dtype) * sizes.max(initial=0.0)
    free = vh[int(np.sum(sizes > lost)) :]
    basis = np.kron(np.eye(2), free)
    return float(np.abs(np.linalg.eigvals(basis @ slopes @ basis.T)).max(initial=0.0))


def _trial(
    mech: Mechanism,
    q0: Array,
    v0: Array | None,
    times: Array,
    method: Rodas,
    inputs: AnyInputs,
    switches: dict[str, Array] | None,
) -> Trial:
    mech = jax.tree_util.tree_map(jnp.asarray, prepared(mech))
    v0 = assemble_velocity(mech, q0, t=times[0]) if v0 is None else v0
    q0 = normalise(mech, q0, v0)

    equations = equations_of(mech, inputs, held=switches)

    def interval(carry: tuple[Array, Array, Array], ends: Array) -> Any:
        step = method.step(equations, ends[0], *carry[:2], ends[1] - ends[0], carry[2])
        carry = step.q, step.v, step.memory
        return carry, carry

    start = q0, v0, method.first_memory(v0)
    _, later = lax.scan(interval, start, jnp.stack([times[:-1], times[1:]], axis=1))
    rows = jax.tree_util.tree_map(lambda x, y: jnp.concatenate([x[None], y]), start, later)

    units = speed_units(mech)

    def slopes(t: Array, q: Array, v: Array) -> Array:
        """Derivatives of scaled q̇ and v̇ by scaled changes of q along the speeds and of v."""
        assert equations.slopes is not None
        soft, damping, _ = equations.slopes(t, q, v)

        def turned(x: Array) -> Array:
            near = q + coordinate_rates(mech, q, x)
            return speeds_of_rates(mech, q, coordinate_rates(mech, near, v))

        none, one = jnp.zeros_like(v), jnp.eye(v.shape[0], dtype=v.dtype)
        scaled = [x * units / units[:, None] for x in (jacobian(turned, none), one, soft, damping)]
        return jnp.block([scaled[:2], scaled[2:]])

    def seen(at: tuple[Array, tuple[Array, Array, Array]]) -> Trial:
        t, (q, v, memory) = at

        state = jnp.concatenate([q, v])
        m = motion_state(mech, q, v, t)
        stops = {n: f for n, f in mech.forces.items() if isinstance(f, BumpStop | JointLimit)}
        touched = {
            n: jnp.any(jnp.stack([depth >= 0.0 for depth, _ in f.contacts(m)]))
            for n, f in stops.items()
        }
        steps = method.taken(memory, t) + method.rejected(memory)
        rows = closure_jacobian(m) * units
        return Trial(jnp.all(jnp.isfinite(state)), slopes(t, q, v), rows, steps, touched)

    return lax.map(seen, (times, rows))
