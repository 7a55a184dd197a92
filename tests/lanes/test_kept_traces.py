"""Functions that are traced once give what they give untraced, derivatives included."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.kinematics import motion_state
from jaxmbd.lanes.caching import KEPT, traced_once
from jaxmbd.lanes.ir.graph import live_nodes
from jaxmbd.lanes.kernel import Kernel

X = jnp.array([0.3, -0.4, 0.5])


def counted():
    """A function, and how often it has been run."""
    runs = []

    def fn(x, *, power=2):
        runs.append(x)
        return {"a": x**power, "b": None, "c": jnp.zeros(2)}

    return traced_once(fn, static=("power",)), runs


def test_once_per_type_and_static_argument():
    fn, runs = counted()

    def use(x, y):
        return fn(x)["a"] + fn(2.0 * x)["a"] + fn(x, power=3)["a"], fn(y)["a"]

    found = jax.jit(use)(X, X[:2])
    assert len(runs) == 3
    np.testing.assert_allclose(found[0], 5.0 * X**2 + X**3, rtol=1e-15)


def test_concrete_arguments_run_as_they_are():
    fn, runs = counted()
    assert fn(X)["b"] is None and fn(X)["c"].tolist() == [0.0, 0.0]
    assert len(runs) == 2 and runs[0] is X


@pytest.mark.parametrize("transform", [jax.jacfwd, jax.jacrev, jax.hessian])
def test_derivatives(transform):
    def plain(x):
        return jnp.sin(x) * jnp.roll(x, 1) / (x @ x)

    once = traced_once(plain)
    want = transform(lambda x: plain(plain(x)))(X)
    np.testing.assert_allclose(transform(lambda x: once(once(x)))(X), want, rtol=1e-12, atol=1e-14)


def test_joints_of_one_type_are_traced_once():
    """The equations of a chain's kinematics grow by a few calls for each body."""

    def equations(n):
        bodies = {f"b{i}": mbd.Body(1.0, com=[i + 0.5, 0.1, 0]) for i in range(n)}
        names = ["ground", *bodies]
        joints = {
            f"j{i}": mbd.Revolute(names[i], names[i + 1], at=[float(i), 0, 0], axis=[0, 0, 1])
            for i in range(n)
        }
        mech = mbd.Mechanism(bodies, joints)

        def both(m, q, v):
            state = motion_state(m, q, v)
            return state.pos.com, state.vel.linear

        jaxpr = jax.make_jaxpr(both)(mech, jnp.zeros(n), jnp.ones(n))
        return sum(len(e.params["jaxpr"].eqns) for e in jaxpr.eqns if "jaxpr" in e.params)

    assert equations(8) - equations(7) <= 20


def test_calls_with_equal_operands_are_one_in_a_kernel():
    once = traced_once(lambda x: jnp.sin(x) @ jnp.cos(x))

    def operations(fn):
        return len(live_nodes(Kernel(jax.make_jaxpr(fn)(X), (True,)).graph))

    single = operations(once)
    assert operations(lambda x: once(x) + once(x)) == single + 1
    assert operations(lambda x: once(x) + once(2.0 * x)) > 2 * single


def test_traces_of_few_structures_are_kept(few_objects):
    """JAX keeps the traces of a function as long as it lives, for every type of arguments."""
    once = traced_once(lambda x: jnp.sin(x["one"]))
    traces = []
    for k in range(KEPT + 8):
        outer = jax.make_jaxpr(lambda x, k=k: once({"one": x, f"other {k}": x}))(1.0)
        traces.append(weakref.ref(outer.eqns[0].params["jaxpr"].jaxpr))
        del outer
    gc.collect()
    alive = [trace() is not None for trace in traces]
    assert alive[-1] and sum(alive) <= KEPT
