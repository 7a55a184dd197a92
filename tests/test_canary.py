"""Fails on a JAX that computes wrong numbers, before anything else is blamed for them.

jax issue 39103: on CPU, jit of a vmapped matrix-vector product followed by a reduction silently
returns wrong rows in jax 0.10.2, from 16 385 rows in float64 and 32 769 in float32.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.parametrize(("dtype", "rows"), [("float64", 16_385), ("float32", 32_769)])
def test_jit_of_vmapped_matvec_then_reduction_is_right(dtype, rows):
    if dtype == "float32" and jax.default_backend() != "cpu":
        pytest.skip("accelerators may round float32 products to fewer bits by design")
    x = np.random.default_rng(0).normal(size=(rows, 3)).astype(dtype)
    matrix = jnp.eye(3, dtype=dtype)
    norms = jax.jit(jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2)))(x)

    assert norms.dtype == dtype
    wrong = ~np.isclose(norms, np.sum(x**2, axis=1), rtol=32 * np.finfo(dtype).eps, atol=0)
    assert not wrong.any(), (
        f"jax {jax.__version__} computes wrong numbers: {wrong.sum()} of {rows} rows of a vmapped "
        "matrix-vector product are wrong (jax issue 39103). No result of this installation can be "
        "trusted; install the version that pyproject.toml asks for."
    )
