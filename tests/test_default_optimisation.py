"""XLA as users run it: the tests switch its optimisation off, these few switch it on again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

USUAL = {
    "xla_backend_optimization_level": 3,
    "xla_cpu_use_fusion_emitters": True,
    "xla_cpu_parallel_codegen_split_count": 32,
}
"""What the flags of `helpers/small_programs.py` are for users."""
MECH = mbd.zoo.n_four_bar(1, planar=True)
SPEEDS = jnp.linspace(0.5, 2.0, 5)


def accelerations(rate, backend):
    v = rate * jnp.array([1.0, -1.0, 1.0])
    return mbd.forward_dynamics(MECH, jnp.array([0.7, -0.7, 0.7]), v, backend=backend)


def slope(rate, backend):
    """Accelerations and multipliers too."""

    def weighted(w):
        vdot, lam = accelerations(w, backend)
        return vdot @ jnp.arange(1.0, 4.0), (vdot, lam)

    return jax.value_and_grad(weighted, has_aux=True)(rate)


def rollout(rate, backend):
    mech = mbd.zoo.simple_pendulum()
    s = mbd.simulate(mech, [0.3], rate[None], t1=0.1, dt=0.01, throw=False, backend=backend)
    return s.q, s.v, s.status


@pytest.mark.parametrize("backend", ["lanes", pytest.param("xla", marks=pytest.mark.slow)])
@pytest.mark.parametrize("fn", [slope, rollout], ids=lambda f: f.__name__)
def test_optimised_programs_give_the_same(fn, backend):
    batch = jax.jit(jax.vmap(lambda w: fn(w, backend)))
    usual = batch.lower(SPEEDS).compile(compiler_options=USUAL)(SPEEDS)
    for found, plain in zip(jax.tree.leaves(usual), jax.tree.leaves(batch(SPEEDS)), strict=True):
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, plain, rtol=1e-11, atol=1e-12)
