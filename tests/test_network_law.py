"""A law that is a module with a network: everywhere the same as its plain function."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

RNG = np.random.default_rng(0)


class Law(eqx.Module):
    """A spring's tension by a network, whose activation is a leaf that is no number."""

    net: eqx.nn.MLP

    def __call__(self, x: Any, rate: Any) -> Any:
        """The tension."""
        return self.net(jnp.stack([x, rate]))


def network() -> eqx.nn.MLP:
    net = eqx.nn.MLP(2, "scalar", 3, 1, jax.nn.silu, key=jax.random.key(0))
    return jax.tree_util.tree_map(
        lambda x: jnp.asarray(RNG.normal(size=x.shape)) if eqx.is_array(x) else x, net
    )


def mass(law: Any) -> mbd.Mechanism:
    return mbd.Mechanism(
        bodies={"mass": mbd.Body(mass=2.0)},
        joints={"guide": mbd.Prismatic("ground", "mass", at=(0, 0, 0), axis=(0, 0, 1))},
        forces={"spring": mbd.TorsionSpring("guide", stiffness=900.0, damping=3.0, law=law)},
    )


NET = network()
NETWORK, PLAIN = mass(Law(NET)), mass(lambda x, rate: NET(jnp.stack([x, rate])))


@pytest.mark.parametrize(
    "call",
    [
        lambda m: mbd.simulate(m, [0.1], t1=0.02, dt=0.005).q,
        lambda m: mbd.assemble(m, {"guide": 0.1}).q,
        lambda m: mbd.equilibrium(m).q,
        lambda m: mbd.linearize(m, [0.1]).A,
        lambda m: mbd.simulate_driven(m, {"guide": lambda t: 0.1 * t}, t=[0.0, 0.1]).tau,
    ],
    ids=["simulate", "assemble", "equilibrium", "linearize", "simulate_driven"],
)
def test_a_network_law_is_its_function(call: Any) -> None:
    np.testing.assert_allclose(call(NETWORK), call(PLAIN), rtol=1e-12, atol=1e-12)


def test_a_network_law_keeps_its_type_and_has_gradients() -> None:
    law = NETWORK.forces["spring"].law
    assert isinstance(law, Law)
    assert all(eqx.is_array_like(x) for x in jax.tree_util.tree_leaves(NETWORK))

    def force(m: mbd.Mechanism) -> jax.Array:
        return mbd.forward_dynamics(m, jnp.array([0.1]), jnp.array([0.2]))[0][0]

    slope = jax.jit(jax.grad(force))(NETWORK).forces["spring"].law.net.layers[-1].bias
    np.testing.assert_allclose(slope, -0.5, rtol=1e-12)  # v̇ = (… − law)/m, ∂law/∂bias = 1
