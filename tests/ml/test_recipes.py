"""The recipes among the examples: their functions, and what the committed learning curves say."""

import json
import runpy
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from repository import ROOT

from jaxmbd import ml

pytest.importorskip("matplotlib")
SEEDS = [f"seed {k}" for k in range(3)]


@cache
def recipe(number):
    """The functions of an example."""
    (path,) = (ROOT / "examples").glob(f"{number}_*.py")
    return runpy.run_path(str(path))


def differences(fn, x, h):
    """Central differences of a function of a vector, along its last axis."""
    return jnp.stack([(fn(x + h * e) - fn(x - h * e)) / (2 * h) for e in jnp.eye(len(x))], axis=-1)


@pytest.mark.slow
def test_a_network_law_takes_energy_at_any_weights_and_has_their_gradient():
    own = recipe(15)
    net = eqx.nn.MLP("scalar", "scalar", 12, 2, jnp.tanh, key=jax.random.key(3))
    law = own["NetworkLaw"](net)
    rates = jnp.linspace(-3.0, 3.0, 31)
    power = jax.vmap(lambda rate: law(0.1, rate) * rate)(rates)
    assert power[15] == 0.0 and np.all(np.delete(power, 15) > 0.0)
    assert own["error"](own["true_law"], own["SEEN"]) == 0.0

    @jax.jit
    def moved(bias):
        changed = eqx.tree_at(lambda law: law.net.layers[-1].bias, law, bias)
        return jnp.sum(own["motions"](changed)[:, 40:] ** 2)

    bias = law.net.layers[-1].bias.reshape(())
    slope, h = jax.jit(jax.grad(moved))(bias), 1e-5
    np.testing.assert_allclose(slope, (moved(bias + h) - moved(bias - h)) / (2 * h), rtol=1e-7)


def test_what_is_measured_is_the_true_motion_with_noise():
    own = recipe(15)
    found = own["measured"](1) - own["measured"](2)
    assert found.shape == (6, 101)
    np.testing.assert_allclose(np.std(found), np.sqrt(2.0) * own["NOISE"], rtol=0.1)


@pytest.mark.slow
def test_a_plan_is_the_optimum_and_its_derivatives_are_those_of_differences():
    own = recipe(17)
    state, weights = jnp.array([0.3, 0.1, 0.0, -0.3]), own["TRUE"]
    plan = jax.jit(own["best_plan"])
    assert jnp.max(jnp.abs(own["slope"](plan(state, weights), state, weights))) < 1e-12
    exact = jax.jit(jax.jacfwd(own["best_plan"], (0, 1)))(state, weights)
    others = partial(plan, weights=weights), partial(plan, state)
    for found, fn, x in zip(exact, others, (state, weights), strict=True):
        np.testing.assert_allclose(found, differences(fn, x, 1e-4), atol=1e-6)


@pytest.mark.slow
def test_a_gradient_has_lengths_and_weights():
    own = recipe(16)
    net = eqx.nn.MLP(8, 2, 16, 1, jnp.tanh, key=jax.random.key(0))
    keys = ml.lane_keys(0, 8)
    (_, status), slope = own["improved"]((jnp.zeros(3), net), keys)
    assert int(status) == 0
    found = differences(lambda x: own["measured"]((x, net), keys)[0], jnp.zeros(3), 1e-5)
    np.testing.assert_allclose(slope[0], found, rtol=1e-7, atol=1e-7)
    layer = slope[1].layers[0].bias
    assert layer.shape == (16,) and np.all(np.isfinite(layer)) and np.any(layer != 0.0)


@cache
def committed():
    return json.loads((ROOT / "benchmarks" / "results" / "recipes.json").read_text("utf-8"))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_committed_curves_say_what_the_examples_do(seed):
    """Networks fit to the noise; arm and network beat the network alone; forces as the expert's."""
    damper, arm, mpc = (committed()[name][seed] for name in ("damper", "arm", "mpc"))
    assert damper["curve"]["value"][-1] < 1.2 < damper["curve"]["value"][0]
    inside, beyond = damper["error of the network [N]"]
    assert inside < 12.0 and inside < beyond  # of forces to 900 N
    alone, both = (
        arm[name]["cost for unseen targets"] for name in ("network alone", "arm and network")
    )
    assert both < alone
    assert mpc["curve"]["value"][-1][0] < 1.1 * mpc["noise [N]"] < mpc["curve"]["value"][0][0]
