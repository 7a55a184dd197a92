"""A Rosenbrock-Wanner method with adaptive steps, for stiff systems."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.linalg import block_diag

from jaxmbd.analysis.methods.adaptive import Adaptive, Attempt, table
from jaxmbd.analysis.methods.method import Equations
from jaxmbd.graph import topology
from jaxmbd.kinematics import coordinate_rates
from jaxmbd.model import Joint
from jaxmbd.numerics import PivotedLU, lu_solve, pivoted_lu, unpivoted_lu

GAMMA = 0.21193756319429014
_A = [
    [],
    [3.0],
    [2.849394379747939, 0.45842242204463923],
    [-6.954028509809101, 2.489845061869568, -10.358996098473584],
    [2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641],
    [-7.502846399306121, 2.561846144803919, -11.627539656261098, -0.18268767659942256,
     0.030198172008377946],
]  # fmt: skip
_C = [
    [],
    [-14.155112264123755],
    [-17.97296035885952, -2.859693295451294],
    [147.12150275711716, -1.41221402718213, 71.68940251302358],
    [165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306],
    [24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125,
     -0.6610691825249471],
    [30.91273214028599, -3.1208243349937974, 77.79954646070892, 34.28646028294783,
     -19.097331116725623, -28.087943162872662],
    [37.80277123390563, -3.2571969029072276, 112.26918849496327, 66.9347231244047,
     -40.06618937091002, -54.66780262877968, -9.48861652309627],
]  # fmt: skip
_TIMES = [0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664]
_RATES = [GAMMA, -0.42387512638858027, -0.3384627126235924, 1.8046452872882734, 2.325825639765069]


def _coefficients() -> tuple[np.ndarray, ...]:
    """a, c (8, 8), times and rates (8,); the last stages start from the sum of those before."""
    a, c = np.zeros((8, 8)), np.zeros((8, 8))
    for rows, square in ((_A, a), (_C, c)):
        for i, row in enumerate(rows):
            square[i, : len(row)] = row
    for i in (6, 7):
        a[i] = a[i - 1]
        a[i, i - 1] += 1.0
    return a, c, np.array([*_TIMES, 1.0, 1.0, 1.0]), np.array([*_RATES, 0.0, 0.0, 0.0])


class Linear(NamedTuple):
    """``1/(γh) − ∂f/∂y`` of the equations, factored, and ``∂f/∂t``.

    With ``q̇ = N v``, a = 1/(γh), ``A = a − ∂(N v)/∂q`` and ``∂v̇/∂q = S N⁺`` (forces do not depend
    on the length of quaternions, which N⁺ leaves out) the coordinates are eliminated: of
    ``A x_q − N x_v = r_q`` and ``(a − ∂v̇/∂v) x_v − S N⁺ x_q = r_v``.

    Attributes:
        own: A⁻¹ (nq, nq), which is 1/a but for quaternions.
        moved: ``A⁻¹ N`` (nq, nv).
        back: ``N⁺ A⁻¹`` (nv, nq).
        soft: S (nv, nv), ``∂v̇/∂q`` along the speeds.
        rest: factors of ``a − ∂v̇/∂v − S N⁺ A⁻¹ N`` (nv, nv).
        drift: ``∂v̇/∂t`` (nv,).
    """

    own: Array
    moved: Array
    back: Array
    soft: Array
    rest: PivotedLU
    drift: Array

    def solve(self, r_q: Array, r_v: Array) -> tuple[Array, Array]:
        """(x_q, x_v)."""
        x_v = self.rest.solve(r_v + self.soft @ (self.back @ r_q))
        return self.own @ r_q + self.moved @ x_v, x_v


def linear(equations: Equations, t: Array, q: Array, v: Array, a: Array) -> Linear:
    """The factored derivatives at a state."""
    mech, top = equations.mech, topology(equations.mech)
    assert equations.slopes is not None
    soft, damping, drift = equations.slopes(t, q, v)
    found, responses = [(jnp.zeros((0, 0), q.dtype),) * 3], [jnp.zeros((v.shape[0], 0), v.dtype)]
    for name in top.tree:
        place, joint = top.layout[name], mech.joint(name)
        if joint.nv:
            *blocks, along = _coordinates(joint, q[place.q], v[place.v], a)
            responses.append(soft[:, place.v] @ along)
            found.append(tuple(blocks))
    own, moved, back = (block_diag(*x) for x in zip(*found, strict=True))
    rest = a * jnp.eye(v.shape[0], dtype=v.dtype) - damping - jnp.concatenate(responses, axis=1)
    return Linear(own, moved, back, soft, pivoted_lu(rest), drift)


def _coordinates(joint: Joint, q: Array, v: Array, a: Array) -> tuple[Array, ...]:
    """``A⁻¹``, ``A⁻¹ N``, ``N⁺ A⁻¹`` and ``N⁺ A⁻¹ N`` of one joint's coordinates (`Linear`)."""
    eye = jnp.eye(q.shape[0], dtype=q.dtype)
    if type(joint).rate is Joint.rate:
        return (eye / a,) * 4
    turned, rates = jax.jacfwd(joint.rate, argnums=(0, 1))(q, v)
    factors = unpivoted_lu(a * eye - turned)
    own = jnp.stack([lu_solve(*factors, x) for x in eye], axis=1)
    back = jnp.stack([joint.speeds_of_rate(q, x) for x in own.T], axis=1)
    return own, own @ rates, back, back @ rates


class Rodas(Adaptive):
    """Rodas5P (Steinebach 2023): linearly implicit of order 5, L-stable, with adaptive steps.

    For stiff systems: bushings, stops, contacts and dampers whose own motion is much faster than
    what is looked for. Each step has one Jacobian of the accelerations by derivatives of inverse
    dynamics, one factorisation of its nv rows and eight evaluations:
    ``W kᵢ = f(t + cᵢ h, y + Σ aᵢⱼ kⱼ) + Σ cᵢⱼ kⱼ/h + dᵢ h ∂f/∂t`` with ``W = 1/(γ h) − ∂f/∂y``
    (G. Steinebach, "Construction of Rosenbrock-Wanner method Rodas5P", BIT 63, 27 (2023)). The
    embedded method of order 4 has the last k for its error.

    Attributes:
        rtol, atol, most: as of every adaptive method (`jaxmbd.analysis.methods.adaptive.Adaptive`).

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> run = mbd.simulate(m, [0.1], t1=1.0, dt=0.1, method=mbd.Rodas(rtol=1e-6))
        >>> run.status.item()
        0
    """

    order: ClassVar[int] = 5

    def attempt(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Any = None
    ) -> Attempt:
        """All stages are one loop; the Jacobian is another, over directions."""
        at = linear(equations, t, q, v, 1.0 / (GAMMA * h))
        a, c, times, rates = (table(x, q.dtype) for x in _coefficients())

        def stage(k: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[Any, Array]:
            from_before, coupled, time, rate, place = row
            x, u = (y + from_before @ ky for y, ky in zip((q, v), k, strict=True))
            f_q = coordinate_rates(equations.mech, x, u)
            f_v = equations.acceleration(t + time * h, equations.normalised(x, u), u)
            found = at.solve(
                f_q + (coupled @ k[0]) / h, f_v + (coupled @ k[1]) / h + rate * h * at.drift
            )
            return tuple(ky + place[:, None] * y for ky, y in zip(k, found, strict=True)), f_v

        none = tuple(jnp.zeros((8, x.shape[0]), x.dtype) for x in (q, v))
        rows = (a, c, times, rates, jnp.eye(8, dtype=q.dtype))
        (kq, kv), slopes = lax.scan(stage, none, rows)
        # The last stage is at the new state less k₈, whose part ∂f/∂y k₈ of v̇ its equation has.
        ends = slopes[0], (kv[7] / GAMMA - c[7] @ kv) / h
        return Attempt(q + a[7] @ kq + kq[7], v + a[7] @ kv + kv[7], kq[7], kv[7], ends)
