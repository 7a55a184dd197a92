"""Joint reactions by constraint matrices: all joint wrenches and actuation efforts at once.

Ghaedrahmati et al. 2019 (appendix): the twists that a joint allows at its point are ``S q̇`` with
the screw matrix S (6, f); the wrenches it transmits are ``Λ λ`` with the constraint matrix Λ
(6, 6 − f), its complement, ``Λᵀ S = 0``. With the 6×6 transfer X that moves a wrench from the
joint's point to the centre of mass of a body,

    A_bj = X_bj Λ_j (j's second body),  A_aj = −X_aj Λ_j (its first),  A λ + B τ = M ṫ − f

is the Newton-Euler equation of all bodies in the one global frame: A is the constraint transfer
matrix of the mechanism, B the same for unit efforts along the actuated coordinates. It is linear
in λ and τ and solved for all bodies at once, without recursion.

If A has a null space (an over-constrained mechanism), λ is the solution of least norm, in newtons
(moments over the mechanism's length); with redundant actuation τ is of least norm too.

With u the joint's axis and e1, e2 perpendicular to it, all turning with its first body a, the
matrices are (29)-(46)

    revolute     S = [u; 0]                  Λ = [0 0 0 e1 e2; 1 1 1 0 0]   (three unit forces)
    prismatic    S = [0; u]                  Λ = [0 0 1 1 1; e1 e2 0 0 0]   (three unit moments)
    helical      S = [u; p u]                Λ = [0 0 −p u e1 e2; e1 e2 u 0 0]
    cylindrical  S = [u 0; 0 u]              Λ = [0 0 e1 e2; e1 e2 0 0]
    universal    S = [u u'; 0 0]             Λ = [0 0 0 u×u'; 1 1 1 0]
    spherical    S = [1 1 1; 0 0 0]          Λ = [0 0 0; 1 1 1]
    planar       S = [u 0 0; 0 e1 e2]        Λ = [0 e1 e2; u 0 0]
    rod          S = [1 1 1 0 0; 0 0 0 e e'] Λ = [0; d]       (e, e' perpendicular to the rod d)
    fixed        S empty, Λ all six;  free   S all six, Λ empty
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Float

from jaxmbd.formulations.absolute import (
    Rows,
    beside_couples,
    body_loads,
    body_masses,
    coordinate_rows,
    coupling_rows,
    drive_rows,
    state_motion,
    wrench_units,
)
from jaxmbd.formulations.absolute_coordinates import (
    TEXTBOOK,
    Sketch,
    StateMotion,
    effort_directions,
    points,
)
from jaxmbd.graph import topology
from jaxmbd.kinematics import Pose, body_accelerations
from jaxmbd.model import (
    Cylindrical,
    Fixed,
    Free,
    Helical,
    Joint,
    Mechanism,
    Planar,
    Prismatic,
    Revolute,
    Rod,
    Spherical,
    Universal,
)
from jaxmbd.numerics import AnyArray, tolerances
from jaxmbd.spatial import perpendicular_pair


def _columns(*pairs: tuple[Array, Array]) -> Array:
    """(6, n) from pairs of (angular or moment, linear or force) directions."""
    return jnp.stack([jnp.concatenate(p) for p in pairs], axis=1)


def _directions(joint: Joint, s: Sketch, a: Pose, b: Pose) -> tuple[Array, ...]:
    """u, e1, e2 of a joint, then the zero and the three unit vectors."""
    triad = a.rotation @ s.triad_a
    if isinstance(joint, Rod):
        start, end = points(s, a, b)
        u = (end - start) / jnp.linalg.norm(end - start)
        triad = jnp.stack([u, *perpendicular_pair(u)], axis=1)
    return *triad.T, jnp.zeros(3, triad.dtype), *jnp.eye(3, dtype=triad.dtype)


def screw_matrix(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "6 f"]:
    """S: unit twists [ω; v] of b relative to a at b's joint point, world axes.

    They span what efforts along the coordinates do work in, and are the same for most joints.

    Raises:
        TypeError: the joint type has no screw matrix here.
    """
    if type(joint) not in TEXTBOOK:
        known = [kind.__name__ for kind in TEXTBOOK]
        raise TypeError(f"no screw matrix for a {type(joint).__name__} joint; there are {known}")
    efforts = effort_directions(joint, s, a, b)
    u, e1, e2, zero, *axes = _directions(joint, s, a, b)
    match joint:
        case Helical():
            return _columns((u, jnp.asarray(joint.pitch) * u))
        case Universal():
            return _columns((u, zero), (b.rotation @ s.triad_b[:, 0], zero))
        case Rod():
            return _columns(*((w, zero) for w in axes), (zero, e1), (zero, e2))
    return efforts


def constraint_matrix(joint: Joint, s: Sketch, a: Pose, b: Pose) -> Float[Array, "6 rows"]:
    """Λ: unit wrenches [n; f] of a on b at b's joint point, world axes; ``Λᵀ S = 0``.

    A joint type that is not in the list above, and the planar form of a joint, uses the wrenches
    that it defines itself.
    """
    if type(joint) not in TEXTBOOK:
        start, end = points(s, a, b)
        return joint.wrenches(a.rotation, b.rotation, end - start)
    u, e1, e2, zero, x, y, z = _directions(joint, s, a, b)
    forces, moments = [(zero, w) for w in (x, y, z)], [(w, zero) for w in (x, y, z)]
    across = [(zero, e1), (zero, e2)]
    tilts = [(e1, zero), (e2, zero)]
    match joint:
        case Revolute():
            return _columns(*forces, *tilts)
        case Prismatic():
            return _columns(*across, *moments)
        case Helical():
            return _columns(*across, (-jnp.asarray(joint.pitch) * u, u), *tilts)
        case Cylindrical():
            return _columns(*across, *tilts)
        case Universal():
            normal = jnp.cross(u, b.rotation @ s.triad_b[:, 0])
            return _columns(*forces, (normal / jnp.linalg.norm(normal), zero))
        case Spherical():
            return _columns(*forces)
        case Planar():
            return _columns((zero, u), *tilts)
        case Rod():
            return _columns((zero, u))
        case Free():
            return jnp.zeros((6, 0), u.dtype)
        case Fixed():
            return _columns(*forces, *moments)
    raise AssertionError(type(joint))


Actuated = Sequence[str | tuple[str, int]]
"""Joints, or one coordinate of a joint as (joint, i)."""


class ConstraintWrenches(NamedTuple):
    """Joint reactions and efforts that produce a motion.

    Example:
        >>> from jaxmbd.formulations import ConstraintWrenches
        >>> ConstraintWrenches._fields
        ('reactions', 'efforts', 'multipliers', 'imbalance')
    """

    reactions: dict[str, Float[Array, "6"]]
    """Joint to the constraint wrench [n; f] [N·m, N] on b about b's joint point, world axes."""
    efforts: dict[str, Float[Array, "nv"]]
    """Actuated joint to its efforts along +q [N·m or N], zero on coordinates not actuated."""
    multipliers: dict[str, Float[Array, ""]]
    """Coupling or drive to its λ: a drive's is its effort along +q [N·m or N]."""
    imbalance: Array
    """Largest unbalanced wrench, relative to the largest wrench on a body."""


def constraint_matrix_reactions(
    mech: Mechanism,
    q: AnyArray,
    v: AnyArray,
    vdot: AnyArray,
    t: Any = 0.0,
    inputs: Mapping[str, Any] | None = None,
    actuated: Actuated = (),
) -> ConstraintWrenches:
    """Joint reactions and actuation efforts of a motion by constraint matrices.

    Args:
        mech: the mechanism.
        q: coordinates (nq,), on the constraints.
        v: speeds (nv,), on the constraints.
        vdot: accelerations (nv,), on the constraints.
        t: time [s].
        inputs: further efforts, by joint, one number or (nv,) [N·m or N].
        actuated: joints, in the tree or cut, whose efforts are to be found, or one coordinate of
            a joint as ``(joint, i)``; none for a motion caused by loads and drives alone.

    Returns:
        Reactions, efforts, the λ of couplings and drives, and the imbalance. Efforts are of least
        norm if the actuation is redundant (moments divided by the mechanism's length), then
        reactions if they are indeterminate. Inside `jit` all are NaN if no efforts of `actuated`
        produce the motion.

    Raises:
        ValueError: `actuated` or `inputs` names no joint; outside `jit`, the actuated joints
            cannot produce the motion.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> from jaxmbd.formulations import constraint_matrix_reactions
        >>> m, rest = mbd.zoo.simple_pendulum(), jnp.zeros(1)
        >>> held = constraint_matrix_reactions(m, rest, rest, rest, actuated=("hinge",))
        >>> round(float(held.efforts["hinge"][0]), 6), round(float(held.reactions["hinge"][4]), 6)
        (-9.81, 9.81)
    """
    motion = state_motion(mech, q, v, t)
    bodies = mech.structure.bodies
    twist_rates = body_accelerations(mech, *map(jnp.asarray, (q, v, vdot)))
    rate = jnp.concatenate([twist_rates[n] for n in bodies])
    inertia, loads = body_masses(motion) @ rate, body_loads(motion, inputs)
    unit = wrench_units(len(bodies), motion.length)
    efforts = _unknown_efforts(motion, actuated)
    transfer = constraint_transfer_matrix(motion) / unit[:, None]
    pushes = jnp.concatenate([e.columns for e in efforts], axis=1) / unit[:, None]
    units = jnp.concatenate([e.units for e in efforts])
    needed = (inertia - loads) / unit
    size = jnp.max(jnp.abs(inertia / unit)) + jnp.max(jnp.abs(loads / unit))
    lam, tau = _least(transfer, pushes * units, needed)
    left = (needed - transfer @ lam - pushes @ (units * tau)) / jnp.where(size > 0.0, size, 1.0)
    imbalance = jnp.max(jnp.abs(left), initial=0.0)
    carried = imbalance < tolerances.carrying(left.dtype)
    if not isinstance(carried, Tracer) and not bool(carried):
        raise ValueError(_uncarried(bodies, np.asarray(left), actuated))
    lam, tau = jnp.where(carried, lam, jnp.nan), jnp.where(carried, units * tau, jnp.nan)
    ends = np.cumsum([0, *(e.columns.shape[1] for e in efforts)])
    parts = [tau[i:j] for i, j in zip(ends[:-1], ends[1:], strict=True)]
    named = list(zip(efforts, parts, strict=True))[1:]
    n = len(actuated)
    multipliers = {e.name: x[0] for e, x in named[n:]}
    if (beside := beside_couples(motion, multipliers)) is not None:
        lam = lam - _pinv(transfer) @ (beside / unit)
    return ConstraintWrenches(
        reactions=_wrenches(motion, lam),
        efforts=_by_joint(motion, named[:n]),
        multipliers=multipliers,
        imbalance=imbalance,
    )


def constraint_transfer_matrix(motion: StateMotion) -> Float[Array, "twists rows"]:
    """The constraint transfer matrix A: from all joints' λ to the wrenches on the bodies.

    Returns:
        Rows [n; f] about each body's COM in world axes, bodies in the order of declaration;
        columns joint by joint, each a multiple of force: λ is in newtons throughout.
    """
    return jnp.concatenate(
        [motion.on_bodies(n, _basis(motion, n)) for n in motion.sketches], axis=1
    )


def determinate_projections(
    mech: Mechanism, q: AnyArray, actuated: Actuated = ()
) -> dict[str, Float[Array, "6 6"]]:
    """Which part of each joint's wrench the equations of motion determine.

    Sets of joint wrenches (and efforts of `actuated` joints, couplings and drives) with zero
    resultant on every body may be added to any solution: they are the null space of the transfer
    matrix. The projection P of a joint removes what such sets contribute to its wrench: ``P w`` is
    the same for all solutions w, and P is the unit matrix if the whole wrench is determinate. In
    the scalar product, moments are divided by the mechanism's length. Components below 1e-6 of a
    null direction count as rounding.

    Args:
        mech: the mechanism.
        q: coordinates (nq,), on the constraints.
        actuated: joints whose efforts are unknown too.

    Returns:
        Joint to P (6, 6), for wrenches [n; f] about b's joint point in world axes.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.formulations import determinate_projections
        >>> m = mbd.zoo.four_bar()  # drawn in space: loads across its plane are indeterminate
        >>> p = determinate_projections(m, mbd.assemble(m, known={"A": 0.3}).q)
        >>> {name: int(round(float(np.trace(x)))) for name, x in p.items()}
        {'A': 3, 'B': 3, 'D': 3, 'C': 3}
    """
    motion = state_motion(mech, q, jnp.zeros(topology(mech).nv, mech.dtype))
    unit = wrench_units(len(mech.structure.bodies), motion.length)
    efforts = [e.columns * e.units for e in _unknown_efforts(motion, actuated)]
    whole = jnp.concatenate([constraint_transfer_matrix(motion), *efforts], axis=1) / unit[:, None]
    null = jnp.eye(whole.shape[1], dtype=whole.dtype) - _pinv(whole) @ whole
    own, out, start = wrench_units(1, motion.length), {}, 0
    for name in motion.sketches:
        block = _basis(motion, name)
        loose = (block / own[:, None]) @ null[start : start + block.shape[1]]
        sizes, axes = jnp.linalg.eigh(loose @ loose.T)
        fixed = (axes * jnp.where(sizes > 1e-12, 0.0, 1.0)) @ axes.T
        out[name] = own[:, None] * fixed / own
        start += block.shape[1]
    return out


class _Effort(NamedTuple):
    """An unknown effort, in addition to the joints' wrenches."""

    name: str
    indices: list[int]  # which coordinates of a joint
    columns: Array  # (6n, k): wrenches on the bodies of unit efforts
    units: Array  # (k,): the length for torques, one for forces


def _by_joint(motion: StateMotion, named: list[tuple[_Effort, Array]]) -> dict[str, Array]:
    out: dict[str, Array] = {}
    for effort, tau in named:
        size = len(motion.mech.joint(effort.name).speeds)
        whole = jnp.zeros(size, tau.dtype).at[np.array(effort.indices, int)].set(tau)
        out[effort.name] = out.get(effort.name, 0.0) + whole
    return out


def _unknown_efforts(motion: StateMotion, actuated: Actuated) -> list[_Effort]:
    """None, then the actuated joints, the couplings and the drives."""
    structure, dtype = motion.mech.structure, motion.mech.dtype
    none = jnp.zeros((6 * len(structure.bodies), 0), dtype)
    found = [_Effort("", [], none, jnp.zeros(0, dtype))]
    for entry in actuated:
        name, index = entry if isinstance(entry, tuple) else (entry, None)
        if name not in motion.sketches:
            raise ValueError(f"actuated names '{name}', no joint here: {list(motion.sketches)}")
        every = range(len(motion.mech.joint(name).speeds))
        if index is not None and index not in every:
            raise ValueError(f"actuated: '{name}' has {len(every)} coordinates, not {index}")
        indices = list(every) if index is None else [index]
        rows = [coordinate_rows(motion, name, i) for i in indices]
        found.append(_effort(motion, name, indices, rows))
    for name, _ in structure.couplings:
        found.append(_effort(motion, name, [], [coupling_rows(motion, name)]))
    for name, _, _ in structure.drives:
        found.append(_effort(motion, name, [], [drive_rows(motion, name)]))
    return found


def _effort(motion: StateMotion, name: str, indices: list[int], rows: list[Rows]) -> _Effort:
    bodies = motion.mech.structure.bodies
    none = jnp.zeros((0, 6 * len(bodies)), motion.mech.dtype)
    columns = jnp.concatenate([none, *(r.of(bodies) for r in rows)]).T
    forces = np.concatenate([np.zeros(0, bool), *(r.lengths for r in rows)])
    return _Effort(name, indices, columns, jnp.where(forces, 1.0, motion.length))


def _basis(motion: StateMotion, name: str) -> Float[Array, "6 rows"]:
    """Λ of a joint with moments in units of N times the mechanism's length."""
    matrix = constraint_matrix(*motion.halves(name))
    sizes = jnp.sum((matrix / wrench_units(1, motion.length)[:, None]) ** 2, axis=0)
    return matrix / jnp.sqrt(sizes)


def _pinv(matrix: Array, size: Array | None = None) -> Array:
    """Moore-Penrose inverse; singular values under eps^0.6 of the largest (or `size`) are zero."""
    if 0 in matrix.shape:
        return matrix.T
    tolerance = tolerances.rank(matrix.dtype)
    if size is not None:
        own = jax.lax.stop_gradient(jnp.asarray(jnp.linalg.norm(matrix, 2)))
        tolerance = tolerance * size / jnp.where(own > 0.0, own, 1.0)
    return jnp.linalg.pinv(matrix, rtol=tolerance)


def _least(transfer: Array, pushes: Array, needed: Array) -> tuple[Array, Array]:
    """Least τ, then least λ, with ``A λ + B τ`` = `needed` as nearly as can be."""
    inverse = _pinv(transfer)

    def beside(x: Array) -> Array:
        """The part of `x` that the joints' wrenches cannot balance."""
        return x - transfer @ (inverse @ x)

    size = jax.lax.stop_gradient(jnp.max(jnp.abs(pushes), initial=0.0))
    tau = _pinv(beside(pushes), size) @ beside(needed)
    lam = inverse @ (needed - pushes @ tau)
    return lam + inverse @ (needed - pushes @ tau - transfer @ lam), tau


def _wrenches(motion: StateMotion, lam: Array) -> dict[str, Array]:
    out, start = {}, 0
    for name in motion.sketches:
        basis = _basis(motion, name)
        out[name] = basis @ lam[start : start + basis.shape[1]]
        start += basis.shape[1]
    return out


def _uncarried(bodies: tuple[str, ...], left: np.ndarray, actuated: Actuated) -> str:
    worst = np.abs(left).reshape(-1, 6).max(axis=1)
    names = [n for n, x in zip(bodies, worst, strict=True) if x > 0.1 * worst.max()]
    return (
        f"the joints and actuated={list(actuated)} cannot carry this motion: {worst.max():.1e} of "
        f"the largest load is left over on {names}; actuate a joint that moves them, or take vdot "
        "from forward_dynamics"
    )
