"""`lanes.flagged`: a tangent with a test, forward and transposed, compiled and not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from jaxmbd import lanes


@jax.custom_jvp
def doubled(x):
    """2x, whose derivative exists only in directions with equal first and second components."""
    return 2.0 * x


@doubled.defjvp
def _doubled_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return doubled(x), lanes.flagged(2.0 * dx, dx[:1] - dx[1:2], dx, 1e-6)


X = jnp.arange(6.0).reshape(2, 3)
TOGETHER, APART = jnp.array([1.0, 1.0, 5.0]), jnp.array([1.0, 2.0, 0.0])


def push(x, way):
    return jax.jvp(doubled, (x,), (way,))[1]


@pytest.mark.parametrize("vmap", [jax.vmap, lanes.vmap])
def test_forward_it_tests_each_sample(vmap):
    found = jax.jit(vmap(push))(X, jnp.stack([TOGETHER, APART]))
    np.testing.assert_array_equal(found, [2.0 * TOGETHER, np.full(3, np.nan)])
    shared = jax.jit(vmap(push, in_axes=(0, None)))(X, TOGETHER)
    np.testing.assert_array_equal(shared, np.tile(2.0 * TOGETHER, (2, 1)))


@pytest.mark.parametrize("vmap", [jax.vmap, lanes.vmap])
def test_transposed_it_is_the_identity(vmap):
    weights = jnp.array([1.0, -3.0, 0.5])
    found = jax.jit(jax.grad(lambda x: jnp.sum(vmap(doubled)(x) @ weights)))(X)
    np.testing.assert_array_equal(found, np.tile(2.0 * weights, (2, 1)))
    inside = jax.jit(vmap(jax.grad(lambda x: doubled(x) @ weights)))(X)
    np.testing.assert_array_equal(inside, found)


def test_differentiated_again_the_flag_stays():
    def twice(way):
        return jax.jvp(lambda s: push(s * X[1], way * s**2), (1.0,), (1.0,))[1]

    np.testing.assert_array_equal(twice(TOGETHER), 4.0 * TOGETHER)
    assert np.isnan(twice(APART)).all()


def test_under_shard_map_it_varies_as_its_operands():
    mesh = jax.make_mesh((1,), ("b",), axis_types=(jax.sharding.AxisType.Auto,))

    def loss(scale, x):
        total = jnp.sum(jax.vmap(lambda y: doubled(scale * y))(x))
        return jax.lax.psum(total, "b")

    mapped = jax.shard_map(loss, mesh=mesh, in_specs=(P(), P("b")), out_specs=P())
    assert float(jax.jit(jax.grad(mapped))(1.0, X)) == float(2.0 * X.sum())
