"""Run by `test_sharding.py` in a process with two host devices: prints a line for each check."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.numerics import small_arrays

jax.config.update("jax_enable_x64", True)
AUTO = jax.make_mesh((2,), ("b",), axis_types=(AxisType.Auto,))
EXPLICIT = jax.make_mesh((2,), ("b",), axis_types=(AxisType.Explicit,))
X = jnp.linspace(0.1, 0.8, 4)
SLOPE = float(jnp.sum(X * jnp.cos(X)))  # of Σ sin(l x) in l, at l = 1
PENDULUM = mbd.zoo.simple_pendulum()
Q = jnp.linspace(0.1, 0.4, 4)[:, None]


def done(name):
    print("ok", name, flush=True)


def total(scale, x):
    return lanes.vmap(lambda s, x: jnp.sin(s * x), in_axes=(None, 0))(scale, x).sum()


def closing_over(scale, x):
    return lanes.vmap(lambda x: jnp.sin(scale * x))(x).sum()


def through_scan(scale, x):
    def one(s, x):
        return jax.lax.scan(lambda c, _: (jnp.sin(s * c), None), x, None, length=1)[0]

    return lanes.vmap(one, in_axes=(None, 0))(scale, x).sum()


def through_xla(scale, x):  # complex numbers have no kernel
    def one(s, x):
        return jnp.sin(s * jnp.real(jax.lax.complex(x, x)))

    return lanes.vmap(one, in_axes=(None, 0))(scale, x).sum()


def over_shards(fn):
    """The sum over all samples, by partial sums of each device."""
    return jax.shard_map(
        lambda s, x: jax.lax.psum(fn(s, x), "b"), mesh=AUTO, in_specs=(P(), P("b")), out_specs=P()
    )


def gradients_under_shard_map():
    for fn in (total, closing_over, through_scan, through_xla):
        outside = jax.jit(jax.grad(over_shards(fn)))(1.0, X)
        np.testing.assert_allclose(outside, SLOPE, rtol=1e-12, err_msg=fn.__name__)
    np.testing.assert_allclose(jax.grad(over_shards(total))(1.0, X), SLOPE, rtol=1e-12)
    done("grad of shard_map")
    for fn in (total, closing_over):
        inside = jax.jit(
            jax.shard_map(
                lambda s, x, fn=fn: jax.grad(fn)(s, x), mesh=AUTO, in_specs=(P(), P("b")),
                out_specs=P(),
            )
        )(1.0, X)  # fmt: skip
        np.testing.assert_allclose(inside, SLOPE, rtol=1e-12, err_msg=fn.__name__)
    _, push = jax.jvp(lambda s: over_shards(total)(s, X), (1.0,), (1.0,))
    np.testing.assert_allclose(push, SLOPE, rtol=1e-12)
    done("grad inside shard_map")


def mechanisms_under_shard_map():
    def end(m, q):
        run = jax.vmap(lambda q: mbd.simulate(m, q, jnp.zeros(1), t1=0.02, dt=0.02, throw=False))
        s = run(q)
        accelerations = jax.vmap(lambda q, v: mbd.forward_dynamics(m, q, v)[0])(
            s.q[:, -1], s.v[:, -1]
        )
        return s.q.sum() + accelerations.sum()

    value, slope = jax.jit(jax.value_and_grad(end))(PENDULUM, Q)
    given, over = jax.jit(jax.value_and_grad(over_shards(end)))(PENDULUM, Q)
    np.testing.assert_allclose(given, value, rtol=1e-12)
    np.testing.assert_allclose(over.gravity, slope.gravity, rtol=1e-9, atol=1e-12)
    done("mechanisms")


def long_sums_under_shard_map():
    """Sums that are loops, over rows that vary from device to device and over rows that do not."""
    small_arrays.MANY = 8  # so that a loop needs no hundreds of rows
    weights = jnp.cos(jnp.arange(8.0))

    def of_rows(scale, x):
        return small_arrays.row_sum(list(scale * weights * x))

    def of_terms(scale, x):
        return small_arrays.row_sum(list(scale * weights), lambda row: row * x)

    expected = float(jnp.sum(weights) * jnp.sum(X))
    for mapped in (lanes.vmap, jax.vmap):
        for fn in (of_rows, of_terms):
            sums = mapped(fn, (None, 0))
            over = over_shards(lambda s, x, sums=sums: sums(s, x).sum())
            value, slope = jax.jit(jax.value_and_grad(over))(1.0, X)
            np.testing.assert_allclose([value, slope], expected, rtol=1e-12, err_msg=fn.__name__)
    done("long sums")


def batches_stay_sharded():
    fn = jax.jit(lambda s, x: lanes.vmap(lambda s, x: (jnp.sin(s * x), x.sum()), (None, 0))(s, x))
    many = jnp.linspace(0.1, 0.8, 32).reshape(8, 4)
    scales = jnp.arange(1.0, 5.0)
    halves = jax.device_put(many, NamedSharding(AUTO, P("b")))
    for s in (scales, jax.device_put(scales, NamedSharding(AUTO, P("b")))):
        out = fn(s, halves)
        assert all(y.sharding.spec == P("b") for y in out), out[0].sharding
        np.testing.assert_allclose(out[0], np.sin(scales * many), rtol=1e-12)
    assert "all-gather" not in fn.lower(scales, halves).compile().as_text()
    columns = jax.device_put(many, NamedSharding(AUTO, P(None, "b")))
    np.testing.assert_allclose(fn(scales, columns)[0], np.sin(scales * many), rtol=1e-12)
    odd = jax.jit(lambda s, x: fn(s, jax.lax.with_sharding_constraint(x, halves.sharding)))
    np.testing.assert_allclose(odd(scales, many[:7])[0], np.sin(scales * many[:7]), rtol=1e-12)
    slope = jax.jit(jax.grad(lambda s, x: fn(s, x)[0].sum()))
    np.testing.assert_allclose(slope(scales, halves), slope(scales, many), rtol=1e-12)
    done("jit keeps shards")


def explicit_shards_stay():
    with jax.set_mesh(EXPLICIT):
        x = jax.device_put(X, P("b"))
        y = jax.jit(lanes.vmap(lambda s, x: jnp.sin(s * x), (None, 0)))(2.0, x)
        assert jax.typeof(y).sharding.spec == P("b"), jax.typeof(y)
        np.testing.assert_allclose(y, jnp.sin(2.0 * X), rtol=1e-12)
        y = jax.jit(jax.vmap(lanes.jit(lambda x: jnp.sin(2.0 * x))))(x)
        assert jax.typeof(y).sharding.spec == P("b"), jax.typeof(y)
    done("explicit shards")


if __name__ == "__main__":
    gradients_under_shard_map()
    mechanisms_under_shard_map()
    long_sums_under_shard_map()
    batches_stay_sharded()
    explicit_shards_stay()
