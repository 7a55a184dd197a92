"""Linearised equations of motion in independent coordinates, about an equilibrium or a motion.

Let S select the independent speeds, and let N (nv, nd) be the motions that the constraints allow
(``J N = 0``, ``S N = 1``). A state near (q0, v0) has ``q = q0 ⊕ N y`` and the v with
``J(q) v = b``, ``S v = S v0 + z``. In the chart (y, z) the constrained vector field is
``ẏ = S d(q ⊖ q0)/dt``, ``ż = S v̇``. Its derivative at (0, 0) needs the curve q(y) to first order
only, since a derivative along a manifold depends on the tangent of the curve alone.

The state space that results has eigenvalues, modes, damping and a frequency response.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.flatten_util import ravel_pytree

from jaxmbd.analysis.freedoms import mobility
from jaxmbd.analysis.known import efforts_at, parse_inputs
from jaxmbd.analysis.programs import program
from jaxmbd.analysis.velocity import assemble_velocity
from jaxmbd.dynamics import applied_efforts, check_determinate, solve_motion
from jaxmbd.graph import topology
from jaxmbd.kinematics import (
    MotionState,
    check_shape,
    closure_jacobian,
    closure_velocity,
    coordinate_change,
    coordinate_rates,
    motion_state,
    own_jacobian,
    own_rows,
    speed_units,
    step_coordinates,
)
from jaxmbd.lanes import given
from jaxmbd.model import Mechanism, Sampled, finite_numbers
from jaxmbd.numerics import factor_rows, jacobian, nan_where, tolerances
from jaxmbd.plumbing import meant


class Modes(NamedTuple):
    """Natural modes ``Re(c e^{λt} shape)``, slowest first, complex pairs next to each other.

    Attributes:
        eigenvalues: λ (2 nd,) [1/s], complex.
        frequencies: ``|λ|/2π`` (2 nd,) [Hz].
        damping_ratios: ``−Re λ/|λ|`` (2 nd,): ±1 for a real λ, zero where λ is zero.
        shapes: mode shapes (nv, 2 nd) along all speeds; the largest component of each is one.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.double_pendulum()
        >>> mbd.linearize(m, mbd.equilibrium(m).q).modes().shapes.shape
        (2, 4)
    """

    eigenvalues: Array
    frequencies: Array
    damping_ratios: Array
    shapes: Array


class Linearization(eqx.Module):
    """``ẋ = A x + B u``, ``w = C x + D u``: the result of `linearize`, a pytree of its matrices.

    Attributes:
        A: (2 nd, 2 nd); x are changes of the independent coordinates, then of their speeds.
        B: (2 nd, nu); u are changes of the efforts [N, N·m] that `inputs` names.
        C: (nw, 2 nd).
        D: (nw, nu).
        motions: N (nv, nd): all speeds as functions of the independent ones.
        independent: names of the independent speeds.
        inputs: names of the columns of B.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.linearize(m, mbd.equilibrium(m).q, inputs="hinge").B.tolist()
        [[0.0], [1.0]]
    """

    A: Array
    B: Array
    C: Array
    D: Array
    motions: Array
    independent: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)

    def eigenvalues(self) -> Array:
        """λ (2 nd,) [1/s] of A, smallest modulus first.

        Differentiable where they are simple. A repeated or defective one, such as the double zero
        of a free motion, has no derivative: it is NaN, and the others' are not affected.
        """
        values = _eigenvalues(self.A)
        return values[jnp.argsort(jnp.abs(jax.lax.stop_gradient(values)), stable=True)]

    def frequencies(self) -> Array:
        """Natural frequencies (2 nd,) [Hz], ``|λ|/2π`` in the order of `eigenvalues`.

        Derivatives are NaN where those of the eigenvalue are, but for a frequency that is exactly
        zero in reverse mode: it adds nothing to a gradient. Leave out free motions by their index.
        """
        return _modulus(self.eigenvalues()) / (2.0 * jnp.pi)

    def damping_ratios(self) -> Array:
        """``−Re λ/|λ|`` (2 nd,) in the order of `eigenvalues`; zero where λ is zero."""
        values = self.eigenvalues()
        size = _modulus(values)
        ratio = -values.real / jnp.where(size > 0.0, size, 1.0)
        return jnp.asarray(jnp.where(size > 0.0, ratio, 0.0))

    def modes(self) -> Modes:
        """Eigenvalues with mode shapes along all speeds; the shapes are not differentiated."""
        return _modes(self)

    def response(self, omega: Array) -> Array:
        """Frequency response ``C (iω − A)⁻¹ B + D`` (…, nw, nu), complex, at ω (…) [rad/s]."""
        omega = jnp.asarray(omega, self.A.dtype)
        eye = jnp.eye(self.A.shape[0], dtype=self.A.dtype)
        return (
            self.C @ jnp.linalg.solve(1j * omega[..., None, None] * eye - self.A, self.B + 0j)
            + self.D
        )


@jax.jit
def _modes(found: Linearization) -> Modes:
    """`Linearization.modes`, as one program."""
    a = jax.lax.stop_gradient(found.A)
    values, vectors = jnp.linalg.eig(a)
    order = jnp.argsort(jnp.abs(values), stable=True)
    nd = found.motions.shape[1]
    vectors = vectors[:, order]
    shapes = jax.lax.stop_gradient(found.motions).astype(vectors.dtype) @ vectors[:nd]
    if shapes.size:
        largest = jnp.argmax(jnp.abs(shapes), axis=0)
        peak = shapes[largest, jnp.arange(shapes.shape[1])]
        shapes = shapes / jnp.where(jnp.abs(peak) > 0.0, peak, 1.0)
    return Modes(found.eigenvalues(), found.frequencies(), found.damping_ratios(), shapes)


def _modulus(x: Array) -> Array:
    """``|x|``; at zero the derivative is zero, or NaN where x has none."""
    square = x.real**2 + x.imag**2
    size = jnp.sqrt(jnp.where(square > 0.0, square, 1.0))
    return jnp.where(square > 0.0, size, 0.0 * x.real)


@jax.custom_jvp
def _eigenvalues(a: Array) -> Array:
    return jnp.linalg.eigvals(a) if a.size else jnp.zeros(0, np.result_type(a.dtype, np.complex64))


@_eigenvalues.defjvp
def _eigenvalues_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """``λ̇_k = y_kᴴ Ȧ x_k / y_kᴴ x_k``, x and y the right and left eigenvectors of A.

    Stewart and Sun, Matrix Perturbation Theory, section IV.2. Each eigenvalue is differentiated by
    its own vectors, so a defective one (the free spin of a wheel) costs the others nothing.

    An eigenvalue that is not simple to working precision has no derivative: its tangent is NaN, and
    so is its cotangent unless that is zero. Rounding A's elements moves λ_k by up to
    ``δ_k = ε |y_k|ᵀ |A| |x_k| / |y_kᴴ x_k|`` and vectors by δ_k over the distance to the next
    eigenvalue, which therefore must exceed ``δ_k/tolerances.separation``; A itself is computed with
    rounding, so that it must exceed ``100 ε max|λ|`` too.
    """
    (a,), (dot,) = primals, tangents
    if not a.size:
        out = _eigenvalues(a)
        return out, jnp.zeros_like(out)
    values, y, x = jax.lax.linalg.eig(a)
    dual = y.conj().T
    overlap = jnp.sum(y.conj() * x, axis=0)
    moved = tolerances.rounding(a.dtype) * jnp.sum(jnp.abs(y) * (jnp.abs(a) @ jnp.abs(x)), axis=0)
    distance = jnp.abs(values[:, None] - values) + jnp.diag(jnp.full(values.shape, jnp.inf))
    nearest = jnp.min(distance, axis=0)
    near = nearest * jnp.abs(overlap) <= moved / tolerances.separation(a.dtype)
    near |= nearest <= tolerances.rounding(a.dtype, 100) * jnp.max(jnp.abs(values))
    rates = jnp.sum((dual @ dot.astype(x.dtype)).T * x, axis=0) / jnp.where(near, 1.0, overlap)
    return values, nan_where(near, rates)


Outputs = Callable[..., Any]


def linearize(
    mech: Mechanism,
    q: Any,
    v: Any = None,
    t: Any = 0.0,
    inputs: Any = None,
    *,
    outputs: Outputs | None = None,
    independent: Sequence[str] | None = None,
    backend: str = "auto",
) -> Linearization:
    """Linear state space ``ẋ = A x + B u``, ``w = C x + D u`` of the constrained motion at a state.

    x = (y, z): small changes of the independent coordinates and of their speeds. About an
    equilibrium the eigenvalues of A do not depend on the choice of independent speeds; about a
    motion A is the derivative of the vector field in these coordinates at that instant. A, B, C
    and D are differentiable with respect to all numbers.

    Args:
        mech: the mechanism.
        q: coordinates (nq,), on the constraints (see `equilibrium`, `assemble`).
        v: speeds (nv,), on the constraints; by default at rest.
        t: time [s].
        inputs: efforts that act, ``{joint: value or Sampled}``: u are small changes of them. A
            sequence of names means efforts that are zero. A function of t or (t, q, v) may return
            the dictionary; u is added to its values, and A includes the feedback.
        outputs: a function of (t, q, v, v̇) whose value, flattened, is w; by default w has no
            components.
        independent: names of independent speeds as in ``topology(mech).speed_names``
            (``"hinge"``, ``"ball[0]"``), as many as there are degrees of freedom. By default
            chosen from the Jacobian's numbers; must be given where those are traced.
        backend: "auto", "lanes" or "xla" (`jaxmbd.lanes.backend`).

    Returns:
        `Linearization`: the matrices, with `eigenvalues()`, `frequencies()`, `damping_ratios()`,
        `modes()` and `response(omega)`.

    Raises:
        ValueError: `inputs` or `independent` names an unknown part, or `independent` does not fit
            the constraints; outside `jit`, a motion has neither inertia nor constraint.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum(length=2.0)
        >>> state = mbd.linearize(m, mbd.equilibrium(m).q)
        >>> round(float(state.A[1, 0]), 6)
        -4.905
    """
    top = topology(mech)
    mech = jax.tree_util.tree_map(jnp.asarray, mech)
    q, t = given(q, mech.dtype), given(t, mech.dtype)
    check_shape("q", q, top.nq)
    if v is not None:
        v = jnp.asarray(v, mech.dtype)
        check_shape("v", v, top.nv)
    changing = isinstance(inputs, dict) and any(isinstance(x, Sampled) for x in inputs.values())
    parsed = callable(inputs) or changing
    inputs = parse_inputs(mech, inputs) if parsed else _efforts(mech, inputs)
    chosen = _independent(mech, q, independent)
    names = tuple(top.speed_names[i] for i in chosen)
    asked = chosen, outputs, mech, q, v, t, inputs
    a, b, c, d, motions, fits = program(backend, _matrices, *asked)
    _check(mech, q, v, t, fits & jnp.all(jnp.isfinite(a)), names)
    at = jnp.zeros(top.nv, mech.dtype) if v is None else v  # only names and shapes are read
    efforts = _efforts(mech, efforts_at(inputs, t, q, at))
    return Linearization(a, b, c, d, motions, names, _input_names(efforts))


def _efforts(mech: Mechanism, inputs: Any) -> dict[str, Array]:
    """Each input joint's efforts (nv,)."""
    if isinstance(inputs, str):
        inputs = (inputs,)
    if inputs is not None and not isinstance(inputs, dict):
        inputs = dict.fromkeys(inputs, 0.0)
    out = {}
    for name, value in (inputs or {}).items():
        if name not in mech.joints or not mech.joint(name).can_be_in_tree:
            known = [e.name for e in mech.structure.joints if e.kind.can_be_in_tree]
            raise ValueError(
                f"inputs name '{name}', which is no joint that takes an effort"
                f"{meant(name, known)}; joints that do: {known}"
            )
        out[name] = jnp.broadcast_to(jnp.asarray(value, mech.dtype), (mech.joint(name).nv,))
    return out


def _input_names(efforts: dict[str, Array]) -> tuple[str, ...]:
    return tuple(
        name if e.shape[0] == 1 else f"{name}[{i}]"
        for name, e in sorted(efforts.items())  # as a dictionary is flattened
        for i in range(e.shape[0])
    )


def _independent(mech: Mechanism, q: Array, names: Sequence[str] | None) -> tuple[int, ...]:
    """Indices of the independent speeds."""
    top = topology(mech)
    if names is not None:
        unknown = [n for n in names if n not in top.speed_names]
        if unknown or len(set(names)) < len(names):
            raise ValueError(
                f"independent={list(names)}: {unknown or 'a name is given twice'}; speeds are "
                f"{list(top.speed_names)}"
            )
        return tuple(top.speed_names.index(n) for n in names)
    m = jax.tree_util.tree_map(jax.lax.stop_gradient, mech)
    rows = _rows_in_units(m, jax.lax.stop_gradient(q)) if top.nc else None
    if isinstance(rows, Tracer):
        raise ValueError(
            "which speeds are independent depends on numbers that are traced here: name them with "
            f"independent=, of {list(top.speed_names)}; mobility(mech).dof is their number, and "
            "linearize(...).independent outside jit and vmap names a choice"
        )
    if rows is None:
        return tuple(range(top.nv))
    dependent = _pivot_columns(np.array(rows))
    return tuple(i for i in range(top.nv) if i not in dependent)


def _pivot_columns(rows: np.ndarray) -> set[int]:
    """Columns that determine the rows: Gaussian elimination with complete pivoting, last first."""
    rows, chosen = rows.copy(), set()
    if not rows.size:
        return chosen
    lost = tolerances.agreement(rows.dtype) * np.abs(rows).max()
    for _ in range(min(rows.shape)):
        # Rounding must not decide between equal pivots: the last column within 1 % is taken.
        best = np.abs(rows).max(axis=0)
        if best.max() <= lost:
            break
        j = int(np.flatnonzero(best >= 0.99 * best.max())[-1])
        i = int(np.argmax(np.abs(rows[:, j])))
        pivot = rows[i] / rows[i, j]
        rows = rows - np.outer(rows[:, j], pivot)
        rows[i], rows[:, j] = 0.0, 0.0
        chosen.add(j)
    return chosen


@jax.jit
def _rows_in_units(mech: Mechanism, q: Array) -> Array:
    return own_jacobian(motion_state(mech, q)) * speed_units(mech)


def _rows(m: MotionState, pick: np.ndarray) -> Array:
    """Constraint rows [m], then those that pick the independent speeds, (nc + nd, nv)."""
    chosen = jnp.asarray(np.eye(m.top.nv)[pick], m.q.dtype) / speed_units(m.mech)
    return jnp.concatenate([own_jacobian(m), chosen])


def _motions(mech: Mechanism, q: Array, chosen: tuple[int, ...]) -> tuple[Array, Array]:
    """N (nv, nd) with ``J N = 0`` and rows `chosen` the identity; whether N is unique."""
    m = motion_state(mech, q)
    units = speed_units(mech)
    rows = _rows(m, np.array(chosen, int))
    every = factor_rows(rows, units**2)
    wanted = np.zeros((m.top.nc + len(chosen), len(chosen)))
    wanted[m.top.nc :] = np.eye(len(chosen))
    ends = units[np.array(chosen, int)]
    motions = every.solve(jnp.asarray(wanted, q.dtype) / ends)
    miss = jnp.max(jnp.abs((rows @ motions - wanted / ends) * ends), initial=0.0)
    size = 1.0 + jnp.max(jnp.abs(rows @ jnp.diag(units)), initial=0.0)
    full = every.rank > m.top.nv - 0.5
    return motions, full & (miss < tolerances.agreement(q.dtype) * size)


def _matrices(
    chosen: tuple[int, ...],
    outputs: Outputs | None,
    mech: Mechanism,
    q: Array,
    v: Array | None,
    t: Array,
    inputs: Any,
) -> tuple[Array, ...]:
    nd, pick = len(chosen), np.array(chosen, int)
    v = assemble_velocity(mech, q, t=t) if v is None else v
    motions, fits = _motions(mech, q, chosen)
    fits = fits & finite_numbers(mech)

    def field(xu: Array) -> tuple[Array, Array]:
        """(ẏ, ż) and the outputs at the state x with changes u of the efforts."""
        x, u = xu[: 2 * nd], xu[2 * nd :]
        at = step_coordinates(mech, q, motions @ x[:nd])
        m = motion_state(mech, at, t=t)
        speeds = v + motions @ x[nd:]
        if m.top.nc:
            slip = own_rows(m).of(closure_jacobian(m) @ speeds - closure_velocity(m))
            slip = jnp.concatenate([slip, jnp.zeros(nd, q.dtype)])
            speeds = speeds - factor_rows(_rows(m, pick), speed_units(mech) ** 2).solve(slip)
        m = motion_state(mech, at, speeds, t)
        flat, restore = ravel_pytree(_efforts(mech, efforts_at(inputs, t, at, speeds)))
        acting = restore(flat + u)
        force, rhs = applied_efforts(m, acting)
        vdot = solve_motion(m, force, rhs, acting)[0]
        rate = coordinate_rates(mech, at, speeds)
        _, change = jax.jvp(lambda x: coordinate_change(mech, q, x), (at,), (rate,))
        seen = () if outputs is None else outputs(t, at, speeds, vdot)
        seen = jnp.concatenate([jnp.zeros(0, q.dtype), ravel_pytree(seen)[0].astype(q.dtype)])
        return jnp.concatenate([change[pick], vdot[pick]]), seen

    count = ravel_pytree(_efforts(mech, efforts_at(inputs, t, q, v)))[0].shape[0]
    ab, cd = jacobian(field, jnp.zeros(2 * nd + count, q.dtype))
    found = (ab[:, : 2 * nd], ab[:, 2 * nd :], cd[:, : 2 * nd], cd[:, 2 * nd :], motions)
    return *(jnp.where(fits, x, jnp.nan) for x in found), fits


def _check(
    mech: Mechanism, q: Array, v: Array | None, t: Array, fine: Array, names: tuple[str, ...]
) -> None:
    """Raise an error outside `jit` if there are no matrices."""
    if isinstance(fine, Tracer) or bool(np.all(np.asarray(fine))):
        return
    check_determinate(mech, q)
    if v is None:
        assemble_velocity(mech, q, t=t)  # raises where that is what failed
    raise ValueError(
        f"the speeds {list(names)} do not determine all others as the constraints demand: name as "
        f"many independent ones as there are degrees of freedom ({mobility(mech, q).dof}), or "
        "none; or v is not finite"
    )
