"""What a motion derives on demand is kept only where it is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.dynamics.inertia import world_inertias
from jaxmbd.kinematics import motion_state

MECH = mbd.zoo.rssr()
DERIVED = {
    "wrenches": lambda m: m.wrenches("B")[0],
    "offset": lambda m: m.offset("B")[2],
    "columns": lambda m: m.angular_columns(),
    "inertias": lambda m: jnp.stack(list(world_inertias(m))),
}


def state():
    return motion_state(MECH, jnp.asarray(mbd.neutral(MECH)), jnp.arange(5.0))


@pytest.mark.parametrize("derived", DERIVED.values(), ids=DERIVED)
def test_a_motion_is_used_inside_a_trace_and_again_outside(derived):
    m, right = state(), derived(state())
    for _ in range(2):
        inside = jax.jit(lambda x: x * derived(m))(2.0)
        np.testing.assert_allclose(inside, 2.0 * right, rtol=1e-14)
    np.testing.assert_allclose(derived(m), right, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(lambda: derived(m))(), right, rtol=1e-14)


@pytest.mark.parametrize("derived", DERIVED.values(), ids=DERIVED)
def test_a_motion_of_a_trace_is_used_in_a_loop_and_again_after_it(derived):
    @jax.jit
    def both():
        m = state()
        _, inside = jax.lax.scan(lambda c, x: (c, x * derived(m)), 0.0, jnp.array([2.0, 3.0]))
        return inside, derived(m)

    inside, after = both()
    right = np.asarray(derived(state()))
    np.testing.assert_allclose(inside, np.stack([2.0 * right, 3.0 * right]), rtol=1e-14)
    np.testing.assert_allclose(after, right, rtol=1e-14)


def test_it_is_derived_once_for_all_uses_that_may_share_it():
    m, found = state(), []

    def loop(x):
        found.extend([m.offset("A"), m.offset("A")])
        return x * found[-1][2]

    jax.make_jaxpr(lambda: jax.lax.map(loop, jnp.ones(2)))()
    first = m.offset("A")
    assert found[0] is found[1] and found[0] is not first and m.offset("A") is first
    found.clear()
    jax.make_jaxpr(lambda: jax.lax.map(loop, jnp.ones(2)))()
    assert found[0] is first
