"""Loops embedded, beside the KKT system solved as it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics import embedding, kkt_system, loop_embedding, solve_kkt
from jaxmbd.dynamics.loop_embedding import Embedding, embedded
from jaxmbd.kinematics import motion_state
from jaxmbd.numerics import dense


@pytest.fixture(autouse=True)
def _all_loops(monkeypatch):
    """Embed the loops of small mechanisms as well."""
    monkeypatch.setattr(loop_embedding, "LEAST", 1)


def four_bar(b=(0, 0, 0.4), c=(1.0, 0, 0.9), d=(1.0, 0, 0)):
    """Five rows in space, three of them redundant."""
    points = {"a": (0, 0, 0), "b": b, "c": c, "d": d}
    centres = {"crank": (0, 0, 0.2), "rod": (0.5, 0, 0.6), "rocker": (1.0, 0, 0.4)}
    bodies = {n: mbd.Body(2.0, x, np.diag([0.1, 0.2, 0.15])) for n, x in centres.items()}
    pins = {"A": ("ground", "crank", "a"), "B": ("crank", "rod", "b")}
    pins |= {"C": ("rod", "rocker", "c"), "D": ("ground", "rocker", "d")}
    joints = {n: mbd.Revolute(*x, (0.0, 1.0, 0.0)) for n, x in pins.items()}
    return mbd.Mechanism(bodies, joints, points=points, gravity=(0, 0, -9.81))


MECHANISMS = {"redundant": four_bar, "balls": mbd.zoo.rssr, "platform": mbd.zoo.stewart_gough}


def solved(mech, chosen, q, force, rhs):
    return solve_kkt(kkt_system(motion_state(mech, q)), force, rhs, embedding=chosen)


def only_loop(mech):
    chosen = embedding(mech)
    assert chosen is not None
    return chosen.loops[0]


def relative(x, y):
    return float(jnp.max(jnp.abs(x - y)) / jnp.max(jnp.abs(y)))


def is_fine(mech, chosen, q):
    s = kkt_system(motion_state(mech, q))
    return embedded(chosen, s.mass.array(), dense(s.jacobian), s.units).fine


def state(mech):
    rng, top = np.random.default_rng(1), mbd.topology(mech)
    q = mbd.assemble(mech, guess=mbd.neutral(mech) + 0.1 * rng.normal(size=top.nq)).q
    rhs = mbd.constraint_jacobian(mech, q) @ rng.normal(size=(top.nv, 2))
    return q, jnp.asarray(rng.normal(size=(top.nv, 2))), rhs  # what redundant rows agree on


@pytest.mark.parametrize("name", MECHANISMS)
def test_same_as_kkt(name):
    """Speeds, and forces along them, for right sides of any kind."""
    mech = MECHANISMS[name]()
    chosen, (q, force, rhs) = embedding(mech), state(mech)

    @lanes.jit
    def both(q, force, rhs):
        jacobian = mbd.constraint_jacobian(mech, q)
        runs = [solved(mech, x, q, force, rhs) for x in (chosen, None)]
        return is_fine(mech, chosen, q), [(x, jacobian.T @ lam) for x, lam in runs]

    fine, (found, expected) = both(q, force, rhs)
    assert bool(fine)
    assert max(map(relative, found, expected)) < 1e-10


@pytest.mark.parametrize("name", ["redundant", "balls"])
def test_derivatives(name):
    """Forward along a motion (others contradict redundant rows), reverse by the forces."""
    mech = MECHANISMS[name]()
    q, force, rhs = state(mech)
    motion = mbd.assemble_velocity(mech, q, guess=jnp.ones(len(force)))
    along = mbd.kinematics.coordinate_rates(mech, q, motion)

    @lanes.jit
    def both(q, force, rhs, along):
        def slopes(chosen):
            def run(q, force):
                return solved(mech, chosen, q, force, rhs)[0]

            change = jax.jvp(lambda q: run(q, force), (q,), (along,))[1]
            return change, jax.vjp(lambda f: run(q, f), force)[1](force)[0]

        return slopes(embedding(mech)), slopes(None)

    assert max(map(relative, *both(q, force, rhs, along))) < 1e-10


def test_wrong_choices_are_seen():
    """A row left out that does not follow, and rows that depend on each other."""
    mech = four_bar()
    q, force, rhs = state(mech)
    rows, following = only_loop(mech)
    dependent = tuple(k for k in range(5) if k not in rows)[:2]
    wrong = [Embedding((x,)) for x in ((rows[:1], following[:1]), (dependent, following))]

    @lanes.jit
    def runs(q, force, rhs):
        found = [solved(mech, x, q, force, rhs)[0] for x in (None, *wrong)]
        return found, [is_fine(mech, x, q) for x in wrong]

    (expected, *found), fine = runs(q, force, rhs)
    assert not any(map(bool, fine))
    assert max(relative(x, expected) for x in found) == 0.0


def test_dead_centre():
    """Where crank and rod are in line they do not follow from the rocker: solved as it is."""
    mech = four_bar(b=(0.4, 0, 0), c=(1.5, 0, 0), d=(1.0, 0, -0.8))
    names = mbd.topology(mech).speed_names
    chosen = Embedding(((only_loop(mech)[0], (names.index("A"), names.index("B"))),))

    @lanes.jit
    def at(q):
        force, rhs = jnp.ones((3, 1)), jnp.zeros((5, 1))
        found, expected = (solved(mech, x, q, force, rhs)[0] for x in (chosen, None))
        return is_fine(mech, chosen, q), found, expected

    q, fine = mbd.neutral(mech), []
    for angle in (0.0, 1e-4, 0.05, 0.2):
        q = mbd.assemble(mech, {"A": angle}, guess=q).q
        ok, found, expected = at(q)
        fine.append(bool(ok))
        assert relative(found, expected) < (1e-10 if ok else 1e-15)
    assert fine == [False, False, True, True]


def test_motion_without_inertia_is_nan():
    """A massless link that nothing holds."""
    mech = mbd.zoo.rssr()
    none = np.zeros((3, 3))
    bodies = {n: mbd.Body(0.0, b.com, none) for n, b in mech.bodies.items()}
    light, (q, force, rhs) = mech.replace(bodies=bodies), state(mech)
    chosen = embedding(light)
    run = lanes.jit(lambda q, force, rhs: solved(light, chosen, q, force, rhs)[0])
    assert chosen is not None
    assert bool(jnp.all(jnp.isnan(run(q, force, rhs))))


def test_runs_are_the_same(monkeypatch):
    """By the way that `simulate` chooses, and by the other; traced axes embed nothing."""
    mech = four_bar()
    q = mbd.assemble(mech).q
    v = mbd.assemble_velocity(mech, q, {"A": 2.0})
    found = mbd.simulate(mech, q, v, t1=0.5, dt=0.01)
    monkeypatch.setattr(loop_embedding, "LEAST", 100)
    expected = mbd.simulate(mech, q, v, t1=0.5, dt=0.01)
    np.testing.assert_allclose(found.q, expected.q, atol=1e-11)
    np.testing.assert_allclose(found.v, expected.v, atol=1e-10)
    monkeypatch.setattr(loop_embedding, "LEAST", 1)
    chosen = []
    jax.eval_shape(lambda m: chosen.append(embedding(m)) or 0.0, mech)
    assert chosen == [None]
