"""The KKT system of point coordinates, with redundant conditions or missing masses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.numerics import tolerances


def solve_conditions(
    mass: Float[Array, "n n"], force: Array, jacobian: Float[Array, "rows n"], gamma: Array
) -> tuple[Array, Array, Array, Array]:
    """Accelerations, λ, rank of J and imbalance; of least norm if they are not unique.

    The rows enter through an orthonormal basis V of their row space, ``J = U S Vᵀ``, so that
    redundant ones drop out: λ = U S⁻¹ μ. The pseudo-inverse P of this KKT matrix is held constant
    and the solution is ``x₀ + P (b − K x₀)``: a refinement step whose derivative is the implicit
    one, without differentiating singular values.
    """
    n = force.shape[0]
    held = jax.lax.stop_gradient
    heaviest = jnp.max(jnp.abs(held(mass)))
    heaviest = jnp.where(heaviest > 0.0, heaviest, 1.0)
    u, sigma, vt = jnp.linalg.svd(held(jacobian), full_matrices=False)
    keep = sigma > tolerances.rank(force.dtype) * jnp.max(sigma, initial=0.0)
    inverse = jnp.where(keep, 1.0 / jnp.where(keep, sigma, 1.0), 0.0)
    basis = jnp.where(keep[:, None], vt, 0.0)
    empty = jnp.zeros((basis.shape[0],) * 2, force.dtype)
    kkt = jnp.block([[held(mass) / heaviest, -basis.T], [basis, empty]])
    pseudo = jnp.linalg.pinv(kkt, rtol=tolerances.rounding(force.dtype, 500))

    def left_over(a: Array, lam: Array) -> tuple[Array, Array]:
        return force + jacobian.T @ lam - mass @ a, gamma - jacobian @ a

    def correct(a: Array, lam: Array) -> tuple[Array, Array]:
        push, open_ = left_over(a, lam)
        x = pseudo @ jnp.concatenate([push / heaviest, inverse * (u.T @ open_)])
        return a + x[:n], lam + heaviest * (u @ (inverse * x[n:]))

    a, lam = jnp.zeros_like(force), jnp.zeros_like(gamma)
    for _ in range(2):
        a, lam = held(correct(a, lam))
    a, lam = correct(a, lam)
    push, open_ = left_over(a, lam)
    error = jnp.concatenate([push / heaviest, u @ (keep * (u.T @ open_))])
    return a, lam, jnp.sum(keep), jnp.max(jnp.abs(error))
