"""Run by `test_sharding.py` in a process with four host devices: prints a line for each check."""

import re
import sys
from functools import partial
from unittest import mock

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
FOUR = jax.make_mesh((2, 2), ("b", "c"), axis_types=(AxisType.Auto,) * 2)
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


COLLECTIVE = re.compile(
    r" (all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("
)


def collectives(fn, *args):
    """The operations between devices in a compiled program; also checks its results."""
    compiled = jax.jit(fn).lower(*args).compile()
    alone = jax.jit(fn)(*jax.device_get(args))
    for found, expected in zip(
        jax.tree.leaves(compiled(*args)), jax.tree.leaves(alone), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    return sorted(COLLECTIVE.findall(compiled.as_text()))


def scaled(scale, x, y, shift):
    """Two of the arguments, not the first, are shared by the batch, and one is a number."""
    return jnp.sin(x) * scale.sum() * y + shift, x.sum()


def nothing_is_gathered():
    many = jnp.linspace(0.1, 0.8, 48).reshape(16, 3)
    scale, shift = jnp.arange(1.0, 4.0), jnp.array(0.5)
    fn = lanes.vmap(scaled, (None, 0, 0, None))

    def loss(scale, x, y, shift):
        return sum((z**2).sum() for z in fn(scale, x, y, shift))

    def curved(scale, x, y, shift):
        return (jax.grad(loss, 1)(scale, x, y, shift) * x).sum()

    for spec in (P("c"), P(("b", "c"))):
        x, y = jax.device_put((many, many[:, 0]), NamedSharding(FOUR, spec))
        args = scale, x, y, shift
        assert collectives(fn, *args) == []
        assert all(z.sharding.spec == spec for z in jax.jit(fn)(*args))
        assert collectives(lanes.vmap(jnp.cos), y) == []
        assert collectives(jax.grad(loss, (1, 2)), *args) == []
        assert set(collectives(jax.grad(loss, (0, 1, 2, 3)), *args)) == {"all-reduce"}
    assert collectives(jax.grad(curved, 1), *args) == []
    done("nothing is gathered")


def mechanisms_are_not_gathered():
    def end(m, q):
        q = mbd.simulate(m, q, q, t1=0.02, dt=0.01, throw=False).q[-1]
        return mbd.forward_dynamics(m, q, q)[0]

    def total(m, q):
        return jax.vmap(end, (None, 0))(m, q).sum()

    q = jnp.linspace(0.1, 0.4, 8)[:, None]
    q = jax.device_put(q, NamedSharding(FOUR, P(("b", "c"))))
    assert collectives(jax.vmap(end, (None, 0)), PENDULUM, q) == []
    assert set(collectives(jax.grad(total, (0, 1)), PENDULUM, q)) == {"all-reduce"}
    assert collectives(jax.vmap(jax.jacrev(end, 1), (None, 0)), PENDULUM, q) == []
    pairs = jnp.stack([q, 2 * q], axis=1)  # nested batches, the outer one split
    assert collectives(jax.vmap(jax.vmap(end, (None, 0)), (None, 0)), PENDULUM, pairs) == []
    done("mechanisms are not gathered")


def parts_of_a_mesh():
    """Axes of a mesh that are split by hand, by `jax.shard_map`, beside others that XLA splits."""
    many = jnp.linspace(0.1, 0.8, 24).reshape(8, 3)
    scale, shift = jnp.arange(1.0, 4.0), jnp.array(0.5)
    fn = lanes.vmap(scaled, (None, 0, 0, None))
    x, y = jax.device_put((many, many[:, 0]), NamedSharding(FOUR, P(("b", "c"))))
    for axes in ({"b"}, {"b", "c"}):
        split = P(tuple(sorted(axes)))
        inside = jax.shard_map(
            fn, mesh=FOUR, in_specs=(P(), split, split, P()), out_specs=split, axis_names=axes
        )
        assert collectives(inside, scale, x, y, shift) == []

    def both(scale, x, y, shift):  # equal calls, of which one is inside
        halves = jax.shard_map(
            fn, mesh=AUTO, in_specs=(P(), P("b"), P("b"), P()), out_specs=P("b")
        )(scale, x, y, shift)
        return halves, fn(scale, x[:4], y[:4], shift), fn(scale, x, y, shift)

    x, y = jax.device_put((many, many[:, 0]), NamedSharding(AUTO, P("b")))
    halves, half, whole = jax.jit(both)(scale, x, y, shift)
    for a, b, c in zip(halves, half, whole, strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, c[:4])
    done("parts of a mesh")


def uneven_shards():
    """A batch of which some devices get less, or nothing: samples may be gathered, never lost."""
    scale, shift = jnp.arange(1.0, 4.0), jnp.array(0.5)

    def total(mapped, scale, x, y):
        return sum((z**2).sum() for z in mapped(scaled, (None, 0, 0, None))(scale, x, y, shift))

    def split(scale, x, y):
        place = NamedSharding(FOUR, P(("b", "c")))
        return total(lanes.vmap, scale, *jax.lax.with_sharding_constraint((x, y), place))

    for size in (1, 3, 6):
        x = jnp.linspace(0.1, 0.8, 3 * size).reshape(size, 3)
        found = jax.jit(jax.value_and_grad(split, (0, 1, 2)))(scale, x, x[:, 0])
        plain = jax.jit(jax.value_and_grad(partial(total, jax.vmap), (0, 1, 2)))
        expected = plain(scale, x, x[:, 0])
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, err_msg=f"{size} samples")
    done("uneven shards")


def explicit_shards_stay():
    with jax.set_mesh(EXPLICIT):
        x = jax.device_put(X, P("b"))
        y = jax.jit(lanes.vmap(lambda s, x: jnp.sin(s * x), (None, 0)))(2.0, x)
        assert jax.typeof(y).sharding.spec == P("b"), jax.typeof(y)
        np.testing.assert_allclose(y, jnp.sin(2.0 * X), rtol=1e-12)
        y = jax.jit(jax.vmap(lanes.jit(lambda x: jnp.sin(2.0 * x))))(x)
        assert jax.typeof(y).sharding.spec == P("b"), jax.typeof(y)
    done("explicit shards")


def single_mechanisms_run_on_the_host():
    """As where JAX's default device is a GPU: the second device stands for the host."""
    first, second = jax.devices()[:2]

    def whole():
        return mbd.forward_dynamics(PENDULUM, [0.3], [0.0])[0]

    one = lanes.jit(lambda x: jnp.sin(x) * x)
    batch = jnp.linspace(0.1, 0.8, 4)
    with mock.patch("jax.default_backend", lambda: "gpu"), mock.patch(
        "jax.local_devices", lambda backend: [second] if backend == "cpu" else [first]
    ):  # fmt: skip
        unplaced = {
            "a mechanism": whole(), "a function": one(0.3),
            "kinetic energy": mbd.kinetic_energy(PENDULUM, [0.3], [1.0]),
        }  # fmt: skip
        for name, y in unplaced.items():
            assert y.devices() == {second}, name
            assert not y.committed, name  # so it goes where it is used next
        placed = jax.device_put(PENDULUM, first)
        elsewhere = {
            "placed": mbd.forward_dynamics(placed, [0.3], [0.0])[0],
            "a placed number": one(jax.device_put(0.3, first)),
            "a batch": lanes.vmap(one)(batch),
            "a batch of mechanisms": jax.vmap(lambda q: mbd.forward_dynamics(PENDULUM, q, q)[0])(Q),
            "inside jit": jax.jit(whole)(),
        }
        with jax.default_device(first):
            elsewhere["chosen"] = whole()
        for name, y in elsewhere.items():
            assert y.devices() == {first}, name
    with mock.patch("jax.default_backend", lambda: "gpu"), mock.patch(
        "jax.local_devices", mock.Mock(side_effect=RuntimeError("no platform cpu"))
    ):  # fmt: skip
        assert whole().devices() == {first}
    assert whole().devices() == {first}
    done("single mechanisms on the host")


if __name__ == "__main__":
    for check in sys.argv[1:]:
        globals()[check]()
