"""Runs of a hanging parallelogram with a spring, of which a batch has several numbers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import lanes


def parallelogram(stiffness=0.0, damping=0.1):
    spring = {"spring": mbd.TorsionSpring("ground_0", stiffness, damping=damping)}
    return mbd.zoo.n_four_bar(1, planar=True).replace(forces=spring)


def swinging(steps, **options):
    """A compiled function of runs, one after another at each number, by options of `simulate`."""

    @partial(jax.jit, static_argnames=("backend", "steps"))
    def swings(stiffness, turn, speed, dt, backend="lanes", steps=steps):
        def one(stiffness, turn, speed, dt):
            mech = parallelogram(stiffness)
            q = turn * jnp.array([1.0, -1.0, 1.0])
            v = speed * jnp.array([1.0, -1.0, 1.0])
            return mbd.simulate(mech, q, v, dt=dt, steps=steps, throw=False, **options)

        return (lanes.vmap if backend == "lanes" else jax.vmap)(one)(stiffness, turn, speed, dt)

    return swings


def numbers(**changed):
    """Stiffness, turn, speed and step of four samples; the last one is very stiff."""
    found = {
        "stiffness": np.array([30.0, 10.0, 1.0, 1e9]),
        "turn": np.array([0.7, 1.0, -0.4, 1e-3]),
        "speed": np.array([1.0, -2.0, 0.0, 0.0]),
        "dt": np.array([0.01, 0.02, 0.005, 0.01]),
    }
    return list((found | changed).values())


def check_a_bad_sample_leaves_its_neighbours_alone(swings):
    good = swings(*numbers())
    bad = swings(*numbers(stiffness=np.array([30.0, np.nan, 1.0, 1e9])))
    assert bad.status[1] != mbd.Status.OK and not np.isfinite(bad.q[1, -1]).any()
    for k in (0, 2, 3):
        np.testing.assert_array_equal(bad.q[k], good.q[k])
        np.testing.assert_array_equal(bad.error[k], good.error[k])
