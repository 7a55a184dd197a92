"""Batches: a bad sample is flagged and spoils nothing, transforms agree, one compilation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

N, BAD = 1000, 417
GUESS = np.array([-1.0, 0.5, -1.5])
HELD = {"A": -0.8}
OTHERS = np.arange(N) != BAD


def build(coupler=0.8, stiffness=50.0, gravity=9.81):
    """A four-bar with a torsion spring at its rocker."""
    mech = mbd.zoo.four_bar(coupler=coupler, gravity=gravity)
    spring = mbd.TorsionSpring("D", stiffness=stiffness, damping=0.1)
    return mech.replace(forces={"spring": spring})


def assemble(coupler):
    a = mbd.assemble(build(coupler), HELD, guess=GUESS)
    return a.q, a.status, a.residual


def run(coupler, stiffness, q, v):
    s = mbd.simulate(build(coupler, stiffness), q, v, t1=0.015, dt=0.005)
    return s.q, s.v, s.status, s.drift


@pytest.fixture(scope="module")
def batch():
    """Compiled batch functions, a thousand couplers and their assembled positions."""
    couplers = np.linspace(0.7, 0.9, N)
    assemble_all = jax.jit(jax.vmap(assemble))
    run_all = jax.jit(jax.vmap(run))
    q, status, _ = assemble_all(couplers)
    assert np.all(np.asarray(status) == mbd.Status.OK)
    return assemble_all, run_all, couplers, np.asarray(q)


def same_bits(a, b):
    for x, y in zip(a, b, strict=True):
        x, y = np.asarray(x)[OTHERS], np.asarray(y)[OTHERS]
        assert np.isfinite(x).all()
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("coupler", "status"),
    [
        (5.0, mbd.Status.NOT_ASSEMBLED),
        (0.0, mbd.Status.NOT_ASSEMBLED),
        (1e9, mbd.Status.NOT_ASSEMBLED),
        (np.nan, mbd.Status.NON_FINITE),
        (np.inf, mbd.Status.NON_FINITE),
    ],
)
def test_one_impossible_length_leaves_the_others_bit_for_bit(batch, coupler, status):
    assemble_all, _, couplers, _ = batch
    good = assemble_all(couplers)
    bad = assemble_all(np.where(OTHERS, couplers, coupler))
    same_bits(good, bad)
    assert bad[1][BAD] == status
    assert np.isnan(bad[0][BAD]).all()
    assert not float(bad[2][BAD]) < 1e-6


@pytest.mark.parametrize(
    ("what", "status"),
    [
        ("nan stiffness", {mbd.Status.DIVERGED, mbd.Status.NON_FINITE}),
        ("unassembled", {mbd.Status.NOT_ASSEMBLED}),
        ("speeds off the constraints", {mbd.Status.NOT_ASSEMBLED}),
        ("nan start", {mbd.Status.NON_FINITE}),
        ("impossible length", {mbd.Status.NOT_ASSEMBLED}),
    ],
)
def test_one_failing_run_leaves_the_others_bit_for_bit(batch, what, status):
    _, run_all, couplers, q = batch
    args = [couplers, np.linspace(1.0, 100.0, N), q, np.zeros((N, 3))]
    good = run_all(*args)
    assert np.all(np.asarray(good[2]) == mbd.Status.OK)
    index, value = {
        "nan stiffness": (1, np.nan),
        "unassembled": (2, q[BAD] + 0.1),
        "speeds off the constraints": (3, np.ones(3)),
        "nan start": (2, np.full(3, np.nan)),
        "impossible length": (0, 5.0),
    }[what]
    args[index] = args[index].copy()
    args[index][BAD] = value
    bad = run_all(*args)
    same_bits(good, bad)
    assert int(bad[2][BAD]) in status
    assert np.isnan(bad[0][BAD, -1]).all() and np.isnan(bad[1][BAD, -1]).all()


def test_gradient_of_shared_leaves_through_assemble_ignores_a_bad_sample():
    """Hardpoints shared by a batch of crank angles, of which some are out of reach."""

    def loss(rocker, couplers):
        def one(coupler):
            mech = mbd.zoo.four_bar(coupler=coupler, rocker=rocker)
            a = mbd.assemble(mech, HELD, guess=GUESS)
            return jnp.where(a.status == mbd.Status.OK, jnp.sum(a.q**2), 0.0)

        return jnp.sum(jax.vmap(one)(couplers))

    gradient = jax.jit(jax.grad(loss))
    couplers = np.array([0.75, 0.8, 0.85, 0.9])
    alone = sum(float(gradient(0.6, couplers[[i] * 4])) / 4 for i in (0, 1, 3))
    assert abs(alone) > 0.1
    for wrong in (5.0, 0.0, np.nan, np.inf):
        spoiled = couplers.copy()
        spoiled[2] = wrong
        np.testing.assert_allclose(gradient(0.6, spoiled), alone, rtol=1e-12, err_msg=str(wrong))
    h = 1e-6
    difference = [sum(_loss_of(loss, 0.6 + s, couplers[[0, 1, 3]])) for s in (h, -h)]
    np.testing.assert_allclose((difference[0] - difference[1]) / (2 * h), alone, rtol=1e-6)


def _loss_of(loss, rocker, couplers):
    compiled = jax.jit(loss)
    return [float(compiled(rocker, couplers))]


def test_gradient_of_shared_leaves_through_simulate_ignores_a_bad_sample(batch):
    """Stiffness and gravity are shared; samples differ in their start, one of them is wrong."""
    q_good = batch[3][[100, 400, 800]]
    couplers = batch[2][[100, 400, 800]]

    def loss(shared, couplers, q, v):
        def one(coupler, q, v):
            mech = build(coupler, shared["stiffness"], shared["gravity"])
            s = mbd.simulate(mech, q, v, t1=0.015, dt=0.005)
            return jnp.where(s.status == mbd.Status.OK, jnp.sum(s.q[-1] ** 2), 0.0)

        return jnp.sum(jax.vmap(one)(couplers, q, v))

    gradient = jax.jit(jax.grad(loss))
    shared = {"stiffness": 50.0, "gravity": jnp.array([0.0, 0.0, -9.81])}
    v = np.zeros((3, 3))
    parts = [gradient(shared, couplers[[i] * 3], q_good[[i] * 3], v) for i in (0, 2)]
    expected = jax.tree_util.tree_map(lambda a, b: (a + b) / 3, *parts)
    assert abs(float(expected["stiffness"])) > 1e-6
    open_q, slip, nan_q = q_good.copy(), v.copy(), q_good.copy()
    open_q[1] += 0.1
    slip[1] = 1.0
    nan_q[1] = np.nan
    long = np.where(np.arange(3) == 1, 5.0, couplers)
    for case in (
        (couplers, open_q, v),
        (couplers, q_good, slip),
        (couplers, nan_q, v),
        (long, q_good, v),
    ):
        found = gradient(shared, *case)
        for name in shared:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-10, atol=1e-14)


def test_vmap_is_a_loop(batch):
    assemble_all, run_all, couplers, q = batch
    pick = [3, 996]
    together = assemble_all(couplers)
    for i in pick:
        alone = assemble(couplers[i])
        np.testing.assert_allclose(together[0][i], alone[0], rtol=1e-13)
    stiffness, v = np.linspace(1.0, 100.0, N), np.zeros((N, 3))
    together = run_all(couplers, stiffness, q, v)
    alone = [run(couplers[i], stiffness[i], q[i], v[i]) for i in pick]
    for i, one in zip(pick, alone, strict=True):
        np.testing.assert_allclose(together[0][i], one[0], rtol=1e-12)
        np.testing.assert_allclose(together[1][i], one[1], rtol=1e-11, atol=1e-12)

    def dynamics(coupler, q, v):
        return mbd.forward_dynamics(build(coupler), q, v)

    speeds = np.array([mbd.assemble_velocity(build(couplers[i]), q[i], {"A": 3.0}) for i in pick])
    batched = jax.jit(jax.vmap(dynamics))(couplers[pick], q[pick], speeds)
    for k, i in enumerate(pick):
        one = dynamics(couplers[i], q[i], speeds[k])
        for a, b in zip(batched, one, strict=True):
            np.testing.assert_allclose(a[k], b, rtol=1e-10, atol=1e-10)


def test_the_pieces_are_the_same_eager_and_compiled():
    mech = mbd.zoo.rssr(gravity=9.81)
    q = mbd.neutral(mech)
    v = np.array([1.0, 0.3, -0.2, 0.5, 2.0])
    pieces = {
        "mass": lambda: mbd.mass_matrix(mech, q),
        "bias": lambda: mbd.bias(mech, q, v),
        "jacobian": lambda: mbd.constraint_jacobian(mech, q),
        "gamma": lambda: mbd.gamma(mech, q, v),
    }
    eager = {name: piece() for name, piece in pieces.items()}
    compiled = jax.jit(lambda: {name: piece() for name, piece in pieces.items()})()
    for name, expected in eager.items():
        size = float(jnp.abs(expected).max())
        assert size > 0.0
        np.testing.assert_allclose(compiled[name], expected, rtol=0, atol=1e-14 * size)


def test_a_mechanism_is_made_inside_vmap_and_grad():
    def acceleration(mass, length):
        hinge = mbd.Revolute("ground", "arm", at=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))
        arm = mbd.Body(mass, com=(length, 0.0, 0.0), inertia=mass * 0.1)
        mech = mbd.Mechanism({"arm": arm}, {"hinge": hinge})
        return mbd.forward_dynamics(mech, jnp.zeros(1), jnp.zeros(1))[0][0]

    masses, lengths = np.array([0.5, 1.0, 4.0]), np.array([0.2, 0.7, 1.3])
    expected = 9.81 * lengths / (lengths**2 + 0.1)  # about +y a weight on +x turns forward
    found = jax.vmap(acceleration)(jnp.asarray(masses), jnp.asarray(lengths))
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    slopes = jax.vmap(jax.grad(acceleration, argnums=(0, 1)))(masses, lengths)
    np.testing.assert_allclose(slopes[0], 0.0, rtol=0, atol=1e-13)
    exact = 9.81 * (0.1 - lengths**2) / (lengths**2 + 0.1) ** 2
    np.testing.assert_allclose(slopes[1], exact, rtol=1e-12)


def test_a_batch_of_mechanisms_is_one_pytree():
    mechs = jax.vmap(lambda m: mbd.zoo.simple_pendulum(mass=m))(jnp.array([1.0, 2.0, 3.0]))
    assert mechs.bodies["bob"].mass.shape == (3,)
    one = jax.tree_util.tree_map(lambda x: x[1], mechs)
    assert float(one.bodies["bob"].mass) == 2.0 and one.structure == mechs.structure


def test_nothing_is_compiled_again_when_only_numbers_change():
    traces = []

    @jax.jit
    def energy(mech, q, v):
        traces.append(1)
        return mbd.kinetic_energy(mech, q, v) + mbd.forward_dynamics(mech, q, v)[0][0]

    for k in range(4):
        mech = mbd.zoo.simple_pendulum(length=1.0 + 0.1 * k, mass=1.0 + k, gravity=9.0 + k)
        energy(mech, jnp.full(1, 0.1 * k), jnp.full(1, -0.2 * k))
    assert len(traces) == 1 and energy._cache_size() == 1


def test_host_calls_are_not_traced_again_when_only_numbers_change():
    """The entry points compile themselves; a user's loop over designs must not pay for it twice."""
    calls = []

    def outputs(t, q, v):
        calls.append(1)
        return q[0]

    def once(k):
        mech = mbd.zoo.simple_pendulum(length=1.0 + 0.1 * k, mass=1.0 + k)
        mbd.forward_dynamics(mech, jnp.full(1, 0.1 * k), jnp.full(1, 0.2))
        mbd.simulate(mech, np.full(1, 0.1), np.full(1, 0.2 * k), t1=0.02, dt=0.01, outputs=outputs)
        bar = mbd.zoo.four_bar(coupler=0.8 + 0.01 * k)
        mbd.assemble(bar, {"A": -0.8 + 0.01 * k}, guess=GUESS)

    from jaxmbd.analysis.assembly import _jitted

    once(0)
    seen, size = len(calls), _jitted._cache_size()
    once(1)
    once(2)
    assert len(calls) == seen
    assert _jitted._cache_size() == size


def test_time_and_inputs_are_numbers_too():
    """Another t or effort must not trace, and so compile, again on the host."""
    traces = []

    def law(t, q, v):
        traces.append(1)
        return t * jnp.ones_like(v)

    mech = mbd.zoo.simple_pendulum().replace(forces={"law": mbd.JointTorque("hinge", law=law)})
    q, rest = mbd.neutral(mech), np.zeros(1)
    first = float(mbd.forward_dynamics(mech, q, rest, 0.0, {"hinge": 0.0})[0][0])
    seen = len(traces)
    second = float(mbd.forward_dynamics(mech, q, rest, 0.2, {"hinge": 0.1})[0][0])
    assert second == pytest.approx(first + 0.3, rel=1e-12)
    assert len(traces) == seen
