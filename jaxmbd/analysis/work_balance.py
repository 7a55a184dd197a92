"""Balance of energy of a run: what its energy has changed by, against the work of all that acts.

With kinetic energy T, potential energy V of weight and force elements, and the power P of element i
beyond what its own potential V_i gives, ``P_i = (power of its loads) + dV_i/dt``, of inputs and of
drives,

    T + V − (T + V at the start) = Σ ∫ P dt + (changes by impacts) + missing.

P_i of a spring is zero, of a damper what it takes, of a tyre also what a moving road gives it.
Reactions do no work; a drive's power is ``λ ḟ``, its effort times the rate that it prescribes. What
is missing is an error of the run: energy that it gained (+) or lost (−) without a cause.

Powers are integrated from saved state to saved state on the dense output of the run
(`jaxmbd.analysis.dense_output`) by the Kronrod extension of the four-point rule of Lobatto, of
order 10 with seven points. Its difference from that rule, of order 6, tells how well powers are
resolved (W. Gander, W. Gautschi, "Adaptive Quadrature - Revisited", BIT 40, 84 (2000), (2.1)-(2.3),
there by an interval of half-length one).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.dense_output import (
    Interval,
    Rows,
    Sudden,
    changes_within,
    check_rows,
    inputs_forgotten,
    rows_of,
    sudden_changes,
)
from jaxmbd.analysis.known import AnyInputs, efforts_at, parse_inputs
from jaxmbd.analysis.programs import program
from jaxmbd.analysis.solution import Solution
from jaxmbd.dynamics import (
    forward_dynamics,
    kinetic_energy,
    potential_energy,
    reactions_and_friction,
    rubbing_effort,
    rubbing_joints,
)
from jaxmbd.kinematics import MotionState, closure_velocity, coordinate_rates, motion_state
from jaxmbd.lanes import check_backend, guarded
from jaxmbd.model import Controlled, Effort, Load, Mechanism, RubbingElement, prepared

Works = dict[str, dict[str, Array]]
"""By kind ("forces", "inputs", "drives") and name: powers [W] or works [J]."""


class EnergyBalance(NamedTuple):
    """The balance of energy of a run (`energy_balance`), each at the saved times (n,).

    Attributes:
        t: times [s].
        kinetic: kinetic energy [J].
        potential: potential energy of weight and force elements [J].
        forces: work since the start that each force element did beyond what its potential gave [J],
            by name: what dampers and friction took is negative, what actuators and moving roads
            gave is positive; springs have none.
        inputs: work of each joint's input [J]; that of an actuator's control is its own.
        drives: work of each drive [J].
        impacts: changes of energy across impacts and jumps (`Event`) [J], each with all work in the
            interval between saved times in which it lies.
        missing: what the run has gained (+) or lost (−) without a cause [J].
        share: `missing` as a share of the largest energy in the run: kinetic, a change of the
            potential one, or a work.
        work_error: estimated error of all works by their integration [J]; where it is as large as
            `missing`, states are saved too seldom to tell.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> m = m.replace(forces={"drag": mbd.JointDrag("hinge", viscous=0.5)})
        >>> found = mbd.energy_balance(m, mbd.simulate(m, [0.1], t1=0.5, dt=1e-2))
        >>> gone = found.kinetic + found.potential - found.potential[0]
        >>> bool(abs(gone[-1] - found.forces["drag"][-1] - found.missing[-1]) < 1e-14)
        True
    """

    t: Array
    kinetic: Array
    potential: Array
    forces: dict[str, Array]
    inputs: dict[str, Array]
    drives: dict[str, Array]
    impacts: Array
    missing: Array
    share: Array
    work_error: Array


def energy_balance(
    mech: Mechanism, solution: Solution, *, inputs: Any = None, backend: str = "auto"
) -> EnergyBalance:
    """The balance of energy of a run: its change against the work of all that acts.

    The equations of motion keep this balance exactly, so what is `missing` is what the run's steps
    are wrong by, and needs no second run. It sees the energy only: an error of the phase of a
    vibration has none. Works are integrated between saved states: save every step where forces
    change within a few (`EnergyBalance.work_error` tells).

    An interval in which an impact or a jump lies counts as a whole to the impacts; after more of
    them than an `Event` keeps times of, all is NaN. So it is from a NaN row on.

    One run; a batch by `jax.vmap` or `lanes.vmap`. Differentiable, forward and reverse.

    Args:
        mech: the mechanism of the run.
        solution: the run, with its saved states (not by ``outputs_only=True``).
        inputs: efforts on joints, as those of the run (`simulate`).
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Raises:
        ValueError: the run has saved no states on the way, or it had inputs and none are given
            (inside `jit` the result is NaN then).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> for steps in (10, 20):
        ...     run = mbd.simulate(m, [0.1], t1=1.0, dt=1.0 / steps)
        ...     print(f"{mbd.energy_balance(m, run).share[-1]:.0e}")
        -1e-04
        -4e-06
    """
    check_backend(backend)
    check_rows(solution)
    forgotten, (t, q, v, switches) = inputs_forgotten(solution, inputs), rows_of(solution)
    rows = t, q, where(forgotten, jnp.nan, v), switches
    sudden, inputs = sudden_changes(solution), parse_inputs(mech, inputs)
    return program(backend, _balance, mech, rows, sudden, inputs)


where: Callable[[Any, Any, Any], Array] = jnp.where  # with one type of result
_INNER = np.sqrt([2.0 / 3.0, 1.0 / 5.0])
NODES = 0.5 + 0.5 * np.array([-1.0, -_INNER[0], -_INNER[1], 0.0, _INNER[1], _INNER[0], 1.0])
"""Places in an interval of length one (7,)."""
WEIGHTS = np.array([77.0, 432.0, 625.0, 672.0, 625.0, 432.0, 77.0]) / 2940.0
LOBATTO = np.array([1.0, 0.0, 5.0, 0.0, 5.0, 0.0, 1.0]) / 12.0


def _balance(mech: Mechanism, rows: Rows, sudden: list[Sudden], inputs: AnyInputs) -> EnergyBalance:
    mech = jax.tree_util.tree_map(jnp.asarray, prepared(mech))
    kinetic, potential = lax.map(
        lambda row: (kinetic_energy(mech, *row[1:]), potential_energy(mech, row[1], row[0])),
        rows[:3],
    )
    ends = jax.tree_util.tree_map(lambda x: x[:2], rows)
    integral, hoisted = jax.closure_convert(partial(_works, mech, inputs), ends)
    names = jax.eval_shape(partial(_works, mech, inputs), ends)[0]
    zero = jnp.zeros((), rows[0].dtype)
    begin = kinetic[0] + potential[0]
    start = jax.tree_util.tree_map(lambda _: zero, names), zero, zero, kinetic[0]

    def interval(carry: tuple[Works, Array, Array, Array], k: Array) -> Any:
        works, impacts, error, largest = carry
        ends = jax.tree_util.tree_map(lambda x: lax.dynamic_slice_in_dim(x, k, 2), rows)
        done, doubt = guarded(integral, ends, *hoisted)
        kin, pot = (lax.dynamic_slice_in_dim(x, k, 2) for x in (kinetic, potential))
        changed, unknown = jnp.zeros((), bool), jnp.zeros((), bool)
        for happened, untold in (changes_within(x, ends[0]) for x in sudden):
            changed, unknown = changed | happened, unknown | untold
        change, doubtful = kin[1] - kin[0] + (pot[1] - pot[0]), where(unknown, jnp.nan, 0.0)
        works, error = jax.tree_util.tree_map(
            lambda x, y: x + where(changed, 0.0, y) + doubtful, (works, error), (done, doubt)
        )
        impacts = impacts + where(changed, change, 0.0 * change) + doubtful
        each = jnp.stack([*jax.tree_util.tree_leaves(works), zero, impacts])
        missing = kin[1] + pot[1] - begin - jnp.sum(each)
        size = jnp.max(jnp.abs(jnp.append(each, jnp.stack([kin[1], pot[1] - potential[0]]))))
        largest = where(size > largest, size, largest)  # not where it is NaN
        return (works, impacts, error, largest), (works, impacts, error, missing)

    last, later = lax.scan(interval, start, jnp.arange(rows[0].shape[0] - 1))
    largest = where(last[-1] > 0.0, last[-1], 1.0)
    works, impacts, error, missing = jax.tree_util.tree_map(
        lambda x: jnp.concatenate([0.0 * begin[None], x]), later
    )
    share = lax.map(lambda x: x / largest, missing)
    return EnergyBalance(rows[0], kinetic, potential, **works, impacts=impacts, missing=missing,
                         share=share, work_error=error)  # fmt: skip


def _works(mech: Mechanism, inputs: AnyInputs, ends: Rows) -> tuple[Works, Array]:
    """The works [J] in an interval by its ends, and the estimated error of all."""
    piece, switches = Interval.between(mech, inputs, ends), {n: x[0] for n, x in ends[3].items()}

    def at(share: Array) -> Works:
        t = piece.t + share * piece.h
        return powers(mech, inputs, t, *piece.state(mech, t), switches)

    found = lax.map(at, jnp.asarray(NODES, piece.t.dtype))
    weights, others = (jnp.asarray(x, piece.t.dtype) for x in (WEIGHTS, WEIGHTS - LOBATTO))
    works = jax.tree_util.tree_map(lambda x: piece.h * (weights @ x), found)
    doubt = jax.tree_util.tree_map(lambda x: jnp.abs(piece.h * (others @ x)), found)
    return works, sum(jax.tree_util.tree_leaves(doubt), jnp.zeros_like(piece.t))


def powers(
    mech: Mechanism, inputs: AnyInputs, t: Array, q: Array, v: Array, switches: Any = None
) -> Works:
    """Powers [W] of force elements beyond those of their potentials, of inputs, and of drives."""
    m, efforts = motion_state(mech, q, v, t), dict(efforts_at(inputs, t, q, v, switches) or {})
    lam, wrenches = jnp.zeros(0, q.dtype), {}
    if mech.structure.drives or rubbing_joints(mech):
        vdot, lam = forward_dynamics(mech, q, v, t, efforts, backend="xla")
        if rubbing_joints(mech):
            wrenches = reactions_and_friction(m, m.accelerations(vdot), lam, efforts)[0]

    def stored(q: Array, t: Array) -> Array:
        at = motion_state(mech, q, t=t)
        energies = [mech.forces[n].energy(at) for n in mech.structure.forces]
        return jnp.stack([jnp.asarray(x, q.dtype) for x in energies])

    forces: dict[str, Array] = {}
    if mech.structure.forces:
        along = coordinate_rates(mech, q, v), jnp.ones_like(t)
        _, released = jax.jvp(stored, (q, t), along)
        for k, name in enumerate(mech.structure.forces):
            element = mech.forces[name]
            if name in efforts and name not in mech.joints and isinstance(element, Controlled):
                element = element.controlled(efforts.pop(name))
            loads = element.loads(m)
            if isinstance(element, RubbingElement):
                dry = rubbing_effort(m, element, wrenches[element.joint])
                loads = [*loads, Effort(element.joint, dry)]
            forces[name] = sum((_power(m, x) for x in loads), released[k])
    acting = {
        name: _power(
            m, Effort(name, jnp.broadcast_to(jnp.asarray(x, q.dtype), (mech.joint(name).nv,)))
        )
        for name, x in efforts.items()
    }
    rates = closure_velocity(m)
    driven = {
        name: lam[m.top.layout[name].rows] @ rates[m.top.layout[name].rows] for name in m.top.drives
    }
    return {"forces": forces, "inputs": acting, "drives": driven}


def _power(m: MotionState, acts: Load | Effort) -> Array:
    """The power of a load or an effort [W]."""
    if isinstance(acts, Effort):
        return acts.value @ m.joint(acts.joint)[1]
    turning = acts.moment @ m.angular_velocity(acts.body)
    return turning + acts.force @ m.velocity_at(acts.body, acts.point)
