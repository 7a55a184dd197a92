"""The engine's functions by lanes and by XLA alone: equal values and derivatives."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import random_mechanism, random_motion

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics.forward import _accelerations
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.scales import own_jacobian
from jaxmbd.lanes.backend import compiled

ZOO = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in (
        "rssr",
        "double_wishbone",
        "four_bar",
        "slider_crank",
        "multi_link",
        "macpherson",
        "double_pendulum",
    )
]
FAST = (40,)  # a small one with a loop closed by a rod
REST = range(16)  # XLA takes ten seconds for each
WORST = 1e-8
"""However badly conditioned a mechanism is, the compilers agree to this."""
seeds = pytest.mark.parametrize(
    "seed", [*FAST, *(pytest.param(s, marks=pytest.mark.slow) for s in REST)]
)


@jax.jit
def kkt_parts(mech, q):
    return mbd.mass_matrix(mech, q), own_jacobian(motion_state(mech, q))


def condition(mech, q):
    """Condition number of the KKT system without its redundant rows."""
    mass, rows = map(np.asarray, kkt_parts(mech, q))
    kkt = np.block([[mass, rows.T], [rows, np.zeros((len(rows),) * 2)]])
    values = np.linalg.svd(kkt, compute_uv=False)
    return values[0] / values[values > 1e-9 * values[0]].min()


def agree(a, b, tolerance):
    """Check agreement leaf by leaf, relative to the norm."""
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert np.array_equal(np.isfinite(x), np.isfinite(y))
        size = max(np.linalg.norm(y[np.isfinite(y)]), 1.0)
        assert np.linalg.norm((x - y)[np.isfinite(y)]) <= tolerance * size


def dynamics(mech, q, v):
    return _accelerations(mech, q, v, 0.0, None)[0]


def check_dynamics(mech, q, v):
    """Compare v̇ and the gradient of a sum of it between both compilers."""
    mech = jax.tree.map(jnp.asarray, mech)
    weights = np.cos(np.arange(v.size))

    def loss(mech, q, v, backend):
        return weights @ compiled(backend, dynamics, mech, q, v)

    both = jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)), static_argnums=3)
    found, expected = (both(mech, q, v, backend) for backend in ("lanes", "xla"))
    k = condition(mech, q)
    agree(found[0], expected[0], min(1e-13 * k, WORST))
    agree(found[1], expected[1], min(1e-13 * k**2, WORST))


@pytest.mark.parametrize("name", ZOO)
def test_forward_dynamics_of_the_zoo(name):
    mech = getattr(mbd.zoo, name)()
    q = mbd.assemble(mech).q
    rng = np.random.default_rng(0)
    v = mbd.assemble_velocity(mech, q, guess=rng.normal(size=mbd.topology(mech).nv))
    check_dynamics(mech, q, v)


@seeds
def test_forward_dynamics_of_random_mechanisms(seed):
    mech = random_mechanism(seed)
    check_dynamics(mech, *random_motion(mech, seed))


LINKAGES = {
    "simple_pendulum": mbd.zoo.simple_pendulum,
    "double_pendulum": mbd.zoo.double_pendulum,
    "parallelogram": partial(mbd.zoo.n_four_bar, 1, planar=True),
    "rssr": mbd.zoo.rssr,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINKAGES)
def test_rollouts_and_their_gradients(name):
    mech = LINKAGES[name]()
    q = mbd.assemble(mech).q
    rng = np.random.default_rng(1)
    v = mbd.assemble_velocity(mech, q, guess=rng.normal(size=mbd.topology(mech).nv))
    points = jax.tree.map(lambda x: x + 1e-4 * rng.normal(size=(3, *x.shape)), mech.points)

    def final(points, backend):
        moved = eqx.tree_at(lambda m: m.points, mech, points)
        q0 = mbd.assemble(moved, guess=q, throw=False, backend=backend).q
        v0 = mbd.assemble_velocity(moved, q0, guess=v)
        s = mbd.simulate(moved, q0, v0, t1=0.1, dt=1e-3, throw=False, backend=backend)
        return jnp.sum(s.q[-1] ** 2) + jnp.sum(s.v[-1]), (s.q, s.status)

    def run(backend):
        one = jax.value_and_grad(lambda p: final(p, backend), has_aux=True)
        return jax.jit(jax.vmap(one))(points)

    (loss, (path, status)), gradient = run("lanes")
    (loss_x, (path_x, status_x)), gradient_x = run("xla")
    assert not np.asarray(status).any() and not np.asarray(status_x).any()
    agree((loss, path), (loss_x, path_x), 1e-10)
    agree(gradient, gradient_x, 1e-8)


def test_a_batch_is_one_kernel_wherever_vmap_stands():
    mech = mbd.zoo.rssr()
    q = mbd.assemble(mech).q
    speeds = jnp.linspace(0.0, 1.0, 9)
    motions = jax.vmap(lambda w: mbd.assemble_velocity(mech, q, {"crank": w}))(speeds)
    run = lambda v: mbd.forward_dynamics(mech, q, v)[0]  # noqa: E731
    text = str(jax.make_jaxpr(jax.vmap(run))(motions))
    assert text.count("= lanes[") == 1 and "size=9" in text
    np.testing.assert_allclose(jax.vmap(run)(motions), lanes.vmap(run)(motions), rtol=0, atol=1e-13)


def test_the_backend_is_checked():
    mech = mbd.zoo.simple_pendulum()
    with pytest.raises(ValueError, match="'auto', 'lanes', 'xla'"):
        mbd.forward_dynamics(mech, [0.0], [0.0], backend="fast")
    with pytest.raises(ValueError, match="'auto', 'lanes', 'xla'"):
        mbd.simulate(mech, [0.0], t1=0.1, dt=0.01, backend="fast")
