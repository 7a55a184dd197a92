"""The variational method: its form, momenta, energy, loops, stiffness, derivatives, batches."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parallelograms import (
    check_a_bad_sample_leaves_its_neighbours_alone,
    numbers,
    parallelogram,
    swinging,
)

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.analysis.equations import equations_of
from jaxmbd.analysis.methods import chosen
from jaxmbd.kinematics import speeds_of_rates
from jaxmbd.numerics import pivoted_lu

AT = np.array([-2.0, -1.0, 1.0, 2.0])
WEIGHTS = np.array([1.0, -8.0, 8.0, -1.0]) / 12.0
"""Places and weights of a difference of fourth order, of places one apart."""


def top(gravity=9.81):
    """A body on a ball, its centre of mass off all axes."""
    body = mbd.Body(1.0, (0.08, 0.0, -0.2), np.diag([0.05, 0.08, 0.03]))
    joint = mbd.Spherical("ground", "body", (0.0, 0.0, 0.0))
    return mbd.Mechanism({"body": body}, {"ball": joint}, gravity=(0.0, 0.0, -gravity))


def floating():
    """Two bodies on a hinge that float without weight."""
    bodies = {
        "hull": mbd.Body(2.0, (0.1, 0.2, 0.0), np.diag([0.05, 0.08, 0.03])),
        "arm": mbd.Body(1.0, (0.5, 0.2, 0.1), np.diag([0.02, 0.03, 0.04])),
    }
    joints = {
        "hull": mbd.Free("ground", "hull"),
        "hinge": mbd.Revolute("hull", "arm", (0.3, 0.2, 0.0), (0.0, 1.0, 0.0)),
    }
    start = [0.8, 0.6, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4], [3.0, -2.0, 4.0, 1.0, 0.0, -0.5, 2.0]
    return mbd.Mechanism(bodies, joints, gravity=(0.0, 0.0, 0.0)), *map(np.array, start)


@cache
def flow(kind, order):
    """Coordinates and momenta after a step of h, from changes (n, 2 nv) of those at a start."""
    mech = {"pendulums": mbd.zoo.double_pendulum, "top": top}[kind]()
    equations, method = equations_of(mech, None), mbd.Variational(order)

    @jax.jit
    @partial(lanes.vmap, in_axes=(None, None, 0, None))
    def step(q, p, change, h):
        moved, pushed = jnp.split(change, 2)
        q = mbd.step_coordinates(mech, q, moved)
        v = pivoted_lu(mbd.mass_matrix(mech, q)).solve(p + pushed)
        found = method.step(equations, jnp.zeros(()), q, v, h, method.first_memory(v))
        return found.q, mbd.mass_matrix(mech, found.q) @ found.v

    return mech, step


STARTS = {
    "pendulums": (np.array([0.4, 0.9]), np.array([2.0, 1.0])),
    "top": (np.array([0.8, 0.0, 0.6, 0.0]), np.array([0.2, -0.2, 0.4])),
}


@pytest.mark.parametrize(
    ("kind", "order"),
    [*(pytest.param("pendulums", k, marks=pytest.mark.slow) for k in (2, 6)), ("top", 2)],
)
def test_a_step_is_symplectic_and_symmetric(kind, order):
    """It keeps the form ``dp ∧ dq``, in the moving axes of a ball with ``p·(dq × dq)`` more.

    And a step back undoes it.
    """
    (mech, step), (q, p) = flow(kind, order), STARTS[kind]
    n, small = 2 * len(p), 1e-3
    changes = [k * small * x for x in np.eye(n) for k in (0.0, *AT)]
    ends = [np.reshape(x, (n, 5, -1)) for x in step(q, p, np.array(changes), 0.1)]
    rates = [np.einsum("k,nki->ni", WEIGHTS / small, x[:, 1:]) for x in ends]
    q_new, p_new = (x[0, 0] for x in ends)

    def form(p, turns, pushes):
        found = pushes @ turns.T
        if kind == "top":
            found = found + 0.5 * np.cross(turns[:, None], turns[None]) @ p
        return found - found.T

    turns = np.stack([speeds_of_rates(mech, q_new, jnp.asarray(x)) for x in rates[0]])
    before = form(p, *np.split(np.eye(n), 2, axis=1))
    np.testing.assert_allclose(form(p_new, turns, rates[1]), before, rtol=0, atol=1e-9)
    back = step(q_new, p_new, np.zeros((5 * n, n)), -0.1)
    np.testing.assert_allclose(back[0][0], q, rtol=0, atol=2e-14)
    np.testing.assert_allclose(back[1][0], p, rtol=0, atol=2e-14)


def energies(mech, run):
    each = jax.vmap(lambda q, v: mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q))
    return np.asarray(jax.jit(each)(run.q, run.v))


@pytest.mark.slow
def test_energy_of_a_top_does_not_drift():
    """In 200 000 steps; that of Kutta's goes down all the time."""
    mech, q, v = top(), [1.0, 0.0, 0.0, 0.0], [1.5, 1.5, 3.0]
    options = {"dt": 0.02, "steps": 200_000, "save_every": 50, "accuracy": 1e9}
    found, lost = (
        energies(mech, mbd.simulate(mech, q, v, method=x, **options))
        for x in (mbd.Variational(), mbd.RK4())
    )
    largest = [np.abs(x - found[0]).max() for x in np.split(found[1:], 4)]
    assert max(largest) < 1.1 * min(largest) < 1e-3
    parts = [np.mean(np.reshape(x[1:], (4, -1)), axis=1) for x in (found, lost)]
    assert np.ptp(parts[0]) < 0.1 * min(largest)
    assert np.all(np.diff(parts[1]) < -0.3 * min(largest))


@pytest.mark.slow
def test_momenta_of_a_floating_mechanism_are_kept():
    mech, q, v = floating()
    run = mbd.simulate(mech, q, v, dt=0.01, steps=4000, save_every=40, method="variational")
    about = partial(mbd.momentum, mech, about=(0.0, 0.0, 0.0))
    each = np.asarray(jax.jit(jax.vmap(about))(run.q, run.v))
    size = np.abs(run.q[-1, 4:7]).max() * np.abs(each[0, 3:]).max()  # of what cancels
    np.testing.assert_allclose(
        each[:, :3], each[:1, :3] + 0.0 * each[:, :3], rtol=0, atol=5e-14 * size
    )
    np.testing.assert_allclose(each[:, 3:], each[:1, 3:] + 0.0 * each[:, 3:], rtol=0, atol=2e-13)
    found = energies(mech, run)
    assert np.abs(found[50:] - found[0]).max() < 1.5 * np.abs(found[:50] - found[0]).max()


@pytest.mark.slow
def test_energy_and_closure_of_a_four_bar_in_space():
    """Its loop has redundant rows; 20 000 steps, on the constraints at each that is saved."""
    mech = mbd.zoo.n_four_bar(1, length=0.5)
    q = mbd.assemble(mech, known={"ground_0": 2.0}).q
    options = {"dt": 0.01, "steps": 20_000, "save_every": 4, "accuracy": 1e9}
    run = mbd.simulate(mech, q, method=mbd.Variational(4), **options)
    found = energies(mech, run)
    first, later = (np.abs(x - found[0]).max() for x in np.split(found[1:], [250]))
    assert later < 1.2 * first < 1e-4 and run.drift < 1e-14
    residual = jax.jit(jax.vmap(partial(mbd.constraint_residual, mech)))(run.q)
    assert np.abs(residual).max() < 1e-14


@pytest.mark.slow
def test_order_in_space():
    """Of the RSSR, with an idle spin, against a far finer run."""
    mech = mbd.zoo.rssr()
    q = mbd.assemble(mech).q
    v = mbd.assemble_velocity(mech, q, {"crank": 10.0})
    best = mbd.simulate(mech, q, v, t1=0.2, method=mbd.DormandPrince8(rtol=1e-12, atol=1e-14))

    def wrong(order, dt):
        method = mbd.Variational(order)
        run = mbd.simulate(mech, q, v, t1=0.2, dt=dt, method=method, accuracy=1e9)
        return [np.abs(x[-1] - y[-1]).max() for x, y in ((run.q, best.q), (run.v, best.v))]

    for order in (2, 4):
        slopes = np.log2(np.divide(wrong(order, 2e-3), wrong(order, 1e-3)))
        np.testing.assert_allclose(slopes, order, rtol=0, atol=0.1)


def pushed(t, q, v):
    return {"ground_0": jnp.sin(20.0 * t) - 0.3 * v[0]}


swings = swinging(20, method="variational", inputs=pushed, accuracy=1e-2)


@pytest.mark.slow
def test_lanes_agree_with_xla():
    runs = (swings(*numbers(), backend=x)[1:3] for x in ("lanes", "xla"))
    for x, y in zip(*runs, strict=True):
        np.testing.assert_allclose(x[:3], y[:3], rtol=0, atol=1e-12)


def test_batches():
    """A bad sample leaves the others alone; what is stiff stays bounded."""
    good = swings(*numbers())
    check_a_bad_sample_leaves_its_neighbours_alone(swings)
    assert np.asarray(good.status[:3]).tolist() == [mbd.Status.OK] * 3
    assert np.all(np.abs(good.q[3, :, 0]) < 1.1e-3) and np.all(np.asarray(good.drift) < 1e-14)
    assert good.status[3] == mbd.Status.INACCURATE  # of the vibration nothing is right


@pytest.mark.slow
def test_derivatives_in_both_modes():
    """With respect to a stiffness and the start of a closed loop, against differences."""
    at, along = np.array([30.0, 0.7, 1.0]), np.array([5.0, 0.1, -0.2])

    def end(x):
        run = swings(*x[:, None], jnp.full(1, 0.01))
        return jnp.concatenate([run.q[0, -1], run.v[0, -1]])

    _, slope = jax.jit(lambda x, d: jax.jvp(end, (x,), (d,)))(at, along)
    weights = np.array([1.0, -2.0, 0.5, 0.1, 0.3, -0.2])
    pulled = jax.jit(jax.grad(lambda x: weights @ end(x)))(at)
    np.testing.assert_allclose(pulled @ along, weights @ slope, rtol=1e-10)
    h = 1e-3 * AT
    run = swings(*(at + h[:, None] * along).T, np.full(4, 0.01))
    ends = np.concatenate([run.q[:, -1], run.v[:, -1]], axis=1)
    np.testing.assert_allclose(
        slope, WEIGHTS @ ends / 1e-3, rtol=0, atol=1e-9 * np.abs(slope).max()
    )


@pytest.mark.slow
def test_damper_and_input_against_a_finer_run():
    mech, options = parallelogram(3.0, 2.0), {"t1": 1.0, "inputs": {"ground_0": 4.0}}
    start = [1.0, -1.0, 1.0], [0.5, -0.5, 0.5]
    best = mbd.simulate(mech, *start, method=mbd.DormandPrince8(rtol=1e-12, atol=1e-14), **options)
    run = mbd.simulate(mech, *start, dt=0.05, method=mbd.Variational(6), **options)
    np.testing.assert_allclose(run.v[-1], best.v[-1], rtol=0, atol=1e-7)


def test_what_does_not_converge_is_not_ok():
    """Of a turn of the crank in a step there is no solution."""
    mech = mbd.zoo.n_four_bar(1, planar=True)
    q = mbd.assemble(mech).q
    v = mbd.assemble_velocity(mech, q, {"ground_0": 60.0})
    run = mbd.simulate(mech, q, v, dt=0.1, steps=20, method="variational", throw=False)
    assert run.status != mbd.Status.OK


def test_orders_and_names():
    assert chosen("variational", float) == mbd.Variational(order=2)
    with pytest.raises(ValueError, match="order=3; give 2, 4 or 6"):
        mbd.Variational(3)
