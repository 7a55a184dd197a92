"""A kernel in a program of many nested functions is the typed FFI call that it is alone."""

import jax
import jax.numpy as jnp
import numpy as np
from random_mechanisms import random_mechanism

import jaxmbd as mbd
from jaxmbd import lanes


def test_pieces_of_the_equations_of_motion_and_a_kernel_in_one_program():
    mech = random_mechanism(2)
    q = mbd.neutral(mech)
    v = jnp.linspace(-0.1, 0.1, mbd.topology(mech).nv)

    def pieces(mech, q, v):
        return mbd.mass_matrix(mech, q), mbd.bias(mech, q, v), mbd.constraint_jacobian(mech, q)

    (m, h, j), (vdot, lam) = jax.jit(
        lambda *args: (pieces(*args), mbd.forward_dynamics(*args, backend="lanes"))
    )(mech, q, v)
    size = np.abs(m @ vdot).max()
    np.testing.assert_allclose(m @ vdot + h, j.T @ lam, rtol=0, atol=1e-10 * size)


def test_the_call_is_typed_before_any_pass_of_xla():
    fn = jax.jit(lanes.vmap(lambda x: 2.0 * jnp.sin(x)))
    (line,) = (x for x in fn.lower(jnp.ones(4)).as_text().splitlines() if "@lanes_" in x)
    assert "api_version = 4" in line and "mhlo.backend_config" not in line
