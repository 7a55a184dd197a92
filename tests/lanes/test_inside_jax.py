"""Kernels within JAX's tools: `disable_jit`, `debug.print`, `export`, serialised programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.experimental import serialize_executable

import jaxmbd as mbd
from jaxmbd import lanes

X = np.linspace(0.1, 0.9, 5)
PENDULUM = mbd.zoo.simple_pendulum()


def test_disable_jit_runs_the_same():
    def run():
        q = mbd.simulate(PENDULUM, [0.1], [0.0], t1=0.02, dt=0.01).q
        return q, mbd.forward_dynamics(PENDULUM, q[-1], q[-1])[0]

    def loop(x):
        return jax.lax.while_loop(lambda y: y < 2.0, lambda y: 2.0 * y, x)

    jitted = run()
    with jax.disable_jit():
        for a, b in zip(run(), jitted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)
        np.testing.assert_array_equal(lanes.vmap(loop)(X), jax.vmap(loop)(X))
        slope = jax.grad(lambda x: lanes.vmap(jnp.sin)(x).sum())(X)
    np.testing.assert_allclose(slope, np.cos(X), rtol=1e-14)


def test_a_print_leaves_the_kernel_and_still_prints(capfd):
    def fn(x):
        jax.debug.print("at {}", x)
        return jnp.sin(x)

    y = jax.jit(lanes.vmap(fn, strict=True))(X)
    jax.effects_barrier()
    np.testing.assert_allclose(y, np.sin(X), rtol=1e-14)
    assert capfd.readouterr().out.count("at 0.") == len(X)


def test_an_exported_program_has_no_kernels():
    def fn(x):
        return lanes.vmap(lambda x: jnp.sin(x) * x)(x)

    assert "lanes_" in jax.jit(fn).lower(X).as_text()
    says = r"cannot export kernels.*; lanes\.export can.*jax\.vmap is used"
    with pytest.warns(UserWarning, match=says):
        made = export.export(jax.jit(fn))(X)
    assert "lanes_" not in made.mlir_module()
    assert "custom_call" not in made.mlir_module()
    np.testing.assert_allclose(made.call(X), np.sin(X) * X, rtol=1e-14)

    def total(x):  # its derivative is a sum over the batch
        return lanes.vmap(lambda x, y: jnp.sin(x) * y, in_axes=(None, 0))(x, X).sum()

    made = export.export(jax.jit(jax.grad(total)))(0.3)
    assert "custom_call" not in made.mlir_module()
    np.testing.assert_allclose(made.call(0.3), np.cos(0.3) * X.sum(), rtol=1e-14)
    with pytest.raises(lanes.Unsupported, match="export"):
        export.export(jax.jit(lanes.vmap(jnp.cos, strict=True)))(X)


def test_a_program_with_kernels_refuses_to_be_serialized():
    compiled = jax.jit(lanes.vmap(lambda x: jnp.tan(x) * x)).lower(X).compile()
    with pytest.raises(TypeError, match=r"lanes\.export.*jax\.export.*backend='xla'"):
        serialize_executable.serialize(compiled)
    np.testing.assert_allclose(compiled(X), np.tan(X) * X, rtol=1e-14)
