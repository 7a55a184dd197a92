"""`jax.lax.custom_linear_solve` in a kernel, differentiated backward."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd import lanes


def solution(a, b):
    """Solve ``(a aᵀ + diag(a²)) x = b``: the operator is not linear in its parameters a."""

    def operator(x):
        return a * (a @ x) + a * a * x

    def solve(_, b):
        c = jax.lax.stop_gradient(a)
        return (b / c - jnp.sum(b / c) / (1.0 + len(a))) / c

    return jax.lax.custom_linear_solve(operator, b, solve, symmetric=True)


def test_operators_that_are_not_linear_in_their_parameters():
    a, b = jnp.array([1.0, 2.0, -0.5]), jnp.array([0.3, -1.0, 0.7])
    matrix = jnp.outer(a, a) + jnp.diag(a * a)
    np.testing.assert_allclose(solution(a, b), jnp.linalg.solve(matrix, b), rtol=1e-12)

    def total(a, b):
        return jnp.sum(jnp.sin(lanes.jit(solution)(a, b)))

    def exact(a, b):
        return jnp.sum(jnp.sin(jnp.linalg.solve(jnp.outer(a, a) + jnp.diag(a * a), b)))

    found, expected = (jax.grad(f, argnums=(0, 1))(a, b) for f in (total, exact))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10)
