"""Runs that fail: what stays of them, when it was, and that an inaccurate one is never OK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd


def vibrating(stiffness, damping=0.0):
    """A mass of 1 kg on a slide and a spring, 0.1 m from where it rests."""
    return mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.1, 0, 0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0, 0, 0), (1, 0, 0))},
        {"spring": mbd.TorsionSpring("slide", stiffness, damping=damping, free_angle=-0.1)},
        gravity=(0, 0, 0),
    )


def test_a_run_that_fails_keeps_what_was_before():
    """A drive that jumps out of reach: the rows before, and when it was."""
    mech = mbd.zoo.four_bar()
    jump = mbd.Drive("A", lambda t, _: 0.1 * t + jnp.where(t > 0.0105, 100.0, 0.0))
    mech = mech.replace(drives={"motor": jump})
    q = mbd.assemble(mech).q
    run = mbd.simulate(mech, q, t1=0.02, dt=1e-3, throw=False)
    assert run.status in (mbd.Status.DIVERGED, mbd.Status.INACCURATE)
    assert run.failed_at == run.t[11] and np.isfinite(run.drift)
    assert np.isfinite(run.q[:11]).all() and np.isfinite(run.v[:11]).all()
    assert np.isnan(run.q[11:]).all() and np.isnan(run.v[11:]).all()
    with pytest.raises(ValueError, match=r"at t = 0\.011 s|from t = 0\.011 s"):
        mbd.simulate(mech, q, t1=0.02, dt=1e-3)
    good = mbd.simulate(mech, q, t1=0.01, dt=1e-3)
    assert good.status == 0 and np.isinf(good.failed_at)
    np.testing.assert_array_equal(good.q, run.q[:11])


def test_numbers_that_are_not_finite_diverge_between_saved_times():
    law = mbd.SpringDamper(
        "ground",
        "bob",
        (1.0, 0, 0),
        (-1.0, 0, 0),
        1.0,
        law=lambda x, rate: jnp.where(x > -0.1, x, jnp.nan),
    )
    mech = mbd.zoo.simple_pendulum().replace(forces={"spring": law})
    run = mbd.simulate(mech, [0.0], t1=1.0, dt=1e-2, save_every=20, throw=False)
    assert run.status == mbd.Status.DIVERGED and 0.0 < run.failed_at < 1.0
    np.testing.assert_array_equal(np.isfinite(run.q[:, 0]), run.t < run.failed_at)
    assert np.isfinite(run.q[0]).all()


def test_an_explosion_is_inaccurate():
    mech = mbd.zoo.flyball_governor()
    run = mbd.simulate(mech, mbd.assemble(mech).q, t1=3e-3, dt=1e-3, throw=False)
    assert run.status in (mbd.Status.INACCURATE, mbd.Status.DIVERGED)
    assert run.fine[0] and not run.fine[-1] and np.isfinite(run.q[0]).all()


@pytest.mark.slow
def test_a_vibration_that_dies_out_is_not_what_counts():
    """A stiff damped beginning is inaccurate for itself, and nothing beside what follows."""
    mech = vibrating(100.0, damping=300.0).replace(gravity=(0, 0, 0))
    short = mbd.simulate(mech, [0.0], [0.0], t1=0.01, dt=5e-3, throw=False)
    assert short.status == mbd.Status.INACCURATE
    push = lambda t: {"slide": 2e4 * t}  # noqa: E731
    run = mbd.simulate(mech, [0.0], [0.0], t1=1.0, dt=5e-3, inputs=push)
    fine = mbd.simulate(mech, [0.0], [0.0], t1=1.0, dt=5e-4, save_every=10, inputs=push)
    np.testing.assert_allclose(run.v[20:], fine.v[20:], rtol=1e-3)


@pytest.mark.parametrize("speed", [-2.7e-7, 1.3e-7, 1e-3])
def test_dry_friction_at_rest_is_inaccurate(speed):
    """Its sign alternates from stage to stage: one embedded method sees nothing of that."""
    mech = mbd.Mechanism(
        {"block": mbd.Body(2.0, (0.5, 0.1), 0.1)},
        {"rail": mbd.Prismatic("ground", "block", (0.0, 0.0), (1.0, 0.0))},
        {
            "rubbing": mbd.SpringDamper(
                "ground", "block", (-1.0, 0.0), (0.5, 0.0), 0.0, law=dry_friction
            )
        },
    )  # fmt: skip
    q, v = mbd.neutral(mech), np.array([speed])
    run = mbd.simulate(mech, q, v, dt=1e-3, steps=20, throw=False)
    assert run.status == mbd.Status.INACCURATE
    fine = mbd.simulate(mech, q, np.array([1.0]), dt=1e-3, steps=20)
    np.testing.assert_allclose(fine.v[-1], 1.0 - 15.0 * 0.02, rtol=1e-12)


def dry_friction(_, rate):
    return 30.0 * jnp.sign(rate)


def test_accuracy_is_an_argument():
    mech = vibrating(1.0)
    for accuracy, status in ((1e-3, 5), (np.inf, 0), (1e-9, 5)):
        run = mbd.simulate(mech, [0.0], t1=20.0, dt=0.5, accuracy=accuracy, throw=False)
        assert run.status == status


def test_rest_in_balance_is_accurate():
    mech = mbd.zoo.simple_pendulum()
    rest = mbd.equilibrium(mech, guess=[1.5]).q
    assert mbd.simulate(mech, rest, t1=1.0, dt=1e-2).status == 0


def test_feedback_of_the_state_is_a_spring_and_a_damper():
    """In runs, and in linear equations: A has it, B does not."""
    bare = mbd.zoo.double_pendulum()
    joint = mbd.topology(bare).tree[0]
    sprung = bare.replace(forces={"pd": mbd.TorsionSpring(joint, 30.0, damping=2.0)})

    def feedback(t, q, v):
        return {joint: -30.0 * q[0] - 2.0 * v[0]}

    q, v = np.array([0.3, 0.1]), np.array([1.0, -1.0])
    given = mbd.simulate(bare, q, v, t1=0.2, dt=1e-2, inputs=feedback)
    wanted = mbd.simulate(sprung, q, v, t1=0.2, dt=1e-2)
    np.testing.assert_allclose(given.q, wanted.q, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match=r"give one of t, or of \(t, q, v\)"):
        mbd.simulate(bare, q, v, t1=0.2, dt=1e-2, inputs=lambda t, q: {})
    with pytest.raises(ValueError, match="that of 'crank' is a function; give samples of it"):
        mbd.simulate(bare, q, v, t1=0.2, dt=1e-2, inputs={"crank": lambda t: t})

    given = mbd.linearize(bare, q, v, inputs=feedback)
    wanted = mbd.linearize(sprung, q, v, inputs=[joint])
    np.testing.assert_allclose(given.A, wanted.A, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(given.B, wanted.B, rtol=1e-11)
    assert given.inputs == wanted.inputs


@pytest.mark.slow
def test_feedback_in_a_driven_motion():
    bare, times = mbd.zoo.rssr(), np.linspace(0.0, 0.2, 3)
    sprung = bare.replace(forces={"pd": mbd.TorsionSpring("crank", 30.0, damping=2.0)})
    known = {"crank": lambda t: jnp.sin(t)}
    wanted = mbd.simulate_driven(sprung, known, t=times)

    @jax.jit
    def driven(stiffness):
        def feedback(t, q, v):
            return {"crank": -stiffness * q[0] - 2.0 * v[0]}

        return mbd.simulate_driven(bare, known, t=times, inputs=feedback, throw=False).effort

    np.testing.assert_allclose(driven(30.0), wanted.effort, rtol=1e-11, atol=1e-12)
    slope = jax.jvp(driven, (30.0,), (1.0,))[1]
    np.testing.assert_allclose(slope[:, 0], wanted.q[:, 0], rtol=1e-11, atol=1e-12)


def test_the_start_may_be_traced_and_steps_stand_for_the_end():
    drive = mbd.Drive("hinge", lambda t, _: jnp.sin(3.0 * t))
    mech = mbd.zoo.simple_pendulum().replace(drives={"motor": drive})

    @jax.jit
    @jax.vmap
    def late(t0):
        q = mbd.assemble(mech, t=t0).q
        run = mbd.simulate(mech, q, t0=t0, dt=1e-2, steps=10, save_every=5, throw=False)
        return run.t, run.q, run.status

    t, q, status = late(jnp.array([0.0, 0.4]))
    assert not status.any() and t.shape == (2, 3)
    np.testing.assert_allclose(q[..., 0], np.sin(3.0 * t), rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="give steps= in place of t1="):
        jax.jit(lambda t0: mbd.simulate(mech, [0.0], t0=t0, t1=1.0, dt=1e-2).q)(0.0)
    for wrong in ({}, {"t1": 1.0, "steps": 3}):
        with pytest.raises(ValueError, match="one of t1=, steps= and t="):
            mbd.simulate(mech, [0.0], dt=1e-2, **wrong)
    with pytest.raises(ValueError, match="multiple of save_every=2"):
        mbd.simulate(mech, [0.0], dt=1e-2, steps=3, save_every=2)


def test_a_quaternion_of_another_length_stands_for_its_direction():
    mech = mbd.zoo.rssr(gravity=9.81)
    q = mbd.assemble(mech).q
    place = mbd.topology(mech).layout["A"].q
    v = mbd.assemble_velocity(mech, q, {"crank": 1.0})

    @jax.jit
    def answers(q):
        run = mbd.simulate(mech, q, v, t1=5e-3, dt=1e-3, throw=False)
        poses = mbd.poses(mech, q)
        return mbd.forward_dynamics(mech, q, v), poses, run.q, run.status

    wanted = answers(q)
    for found in map(answers, (q.at[place].multiply(1.7), q.at[place].multiply(-0.3))):
        assert found[3] == 0
        np.testing.assert_allclose(np.abs(found[2]), np.abs(wanted[2]), rtol=1e-11, atol=1e-13)
        jax.tree_util.tree_map(
            lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12),
            found[:2],
            wanted[:2],
        )
    assert answers(q.at[place].set(0.0))[3] != 0


def test_a_state_says_how_ill_conditioned_it_is():
    """A link that carries ever more inertia: right, less so, not to tell."""

    @jax.jit
    @jax.vmap
    def state(distance):
        inertia = np.diag([1.0, 1.0, 1.0])
        mech = mbd.Mechanism(
            {
                "link": mbd.Body(1.0, (0.5, 0, 0), inertia),
                "far": mbd.Body(
                    1.0, jnp.stack([1.0 + distance, 0 * distance, 0.2 * distance]), inertia
                ),
            },
            {
                "base": mbd.Revolute("ground", "link", (0, 0, 0), (0, 1, 0)),
                "tip": mbd.Revolute("link", "far", (1, 0, 0), (0, 1, 0)),
            },
            gravity=(0, 0, -9.81),
        )
        q, v = jnp.array([0.3, -0.4]), jnp.array([1.0, 2.0])
        vdot, _ = mbd.forward_dynamics(mech, q, v)
        tau, _ = mbd.inverse_dynamics(mech, q, v, vdot)
        size = jnp.max(jnp.abs(mbd.mass_matrix(mech, q)) @ jnp.abs(vdot))
        return mbd.check_state(mech, q, v), jnp.max(jnp.abs(tau)) / size

    check, error = state(10.0 ** np.arange(0.0, 8.0))
    assert check.status[:4].tolist() == [0] * 4 and check.status[-1] != 0
    assert np.all(np.diff(check.conditioning) < 0.0) and check.conditioning[0] > 0.1
    assert np.all(np.asarray(error)[np.asarray(check.status) == 0] < 5e-7)


def test_a_state_off_the_constraints_is_told():
    mech = mbd.zoo.rssr()
    q, v = mbd.neutral(mech), np.zeros(5)
    assert mbd.check_state(mech, q, v).status == 0
    off = mbd.check_state(mech, q, v + np.eye(5)[0])
    assert off.status == mbd.Status.NOT_ASSEMBLED and off.slip > 1e-3
    assert mbd.check_state(mech, q + np.nan, v).status == mbd.Status.NON_FINITE


@pytest.mark.parametrize("size", [1.0, 1e-7])
def test_a_start_off_the_constraints_is_told_at_every_size(size):
    """What speeds may be off by is measured in lengths of the mechanism a second."""
    plain = mbd.zoo.double_parallel_crank()
    points = {n: size * x for n, x in plain.points.items()}
    bodies = {
        n: mbd.Body(b.mass, size * b.com, size**2 * b.inertia) for n, b in plain.bodies.items()
    }
    mech = plain.replace(points=points, bodies=bodies, gravity=size * plain.gravity)
    q, turning = mbd.neutral(mech), np.array([1.0, -1.0, 1.0, 1.0])
    start = [mbd.simulate(mech, q, v, dt=1e-3, steps=1, throw=False).status
             for v in (turning, turning + 0.2 * np.eye(4)[0])]  # fmt: skip
    assert start == [mbd.Status.OK, mbd.Status.NOT_ASSEMBLED]


@pytest.fixture(scope="module")
def crank_turned():
    """Runs of an RSSR linkage whose crank starts at 10 rad/s, by a way to keep it closed."""
    mech = mbd.zoo.rssr()
    q = mbd.assemble(mech).q
    v = mbd.assemble_velocity(mech, q, {"crank": 10.0})

    def run(constraints, method):
        return mbd.simulate(mech, q, v, t1=1.0, dt=0.5, constraints=constraints, method=method)

    return run


@pytest.mark.slow
def test_stages_on_the_constraints_allow_longer_steps(crank_turned):
    exact = crank_turned("project", mbd.DormandPrince8(rtol=1e-11, atol=1e-13)).v
    pair = mbd.DormandPrince(rtol=1e-6, atol=1e-8)
    after, within = (crank_turned(way, pair) for way in ("project", "stages"))
    assert within.drift < 1e-14
    assert within.steps < 0.6 * after.steps
    assert abs(within.v - exact).max() < 0.2 * abs(after.v - exact).max()


@pytest.mark.slow
def test_stages_on_the_constraints_have_derivatives():
    """Forward and reverse, along a direction on the constraints, against differences."""
    mech = mbd.zoo.rssr()
    start = mbd.assemble(mech).q

    @jax.jit
    def end(turn):
        q = mbd.assemble(mech, {"crank": start[0] + turn}).q
        run = mbd.simulate(mech, q, t1=0.2, dt=0.01, constraints="stages", throw=False)
        return run.v[-1, 0]

    exact = jax.jvp(end, (0.1,), (1.0,))[1]
    assert float(jax.grad(end)(0.1)) == pytest.approx(float(exact), rel=1e-10)
    differences = float(end(0.1 + 1e-5) - end(0.1 - 1e-5)) / 2e-5
    assert differences == pytest.approx(float(exact), rel=1e-7)


@pytest.mark.parametrize("method", ["rodas", "generalized_alpha", "semi_implicit_euler"])
def test_methods_without_explicit_stages_project_none(crank_turned, method):
    with pytest.raises(ValueError, match="only RK4 and explicit"):
        crank_turned("stages", method)


@pytest.mark.slow
def test_second_derivatives_of_a_closed_loop():
    """Forward over reverse mode, against differences of the gradient."""
    mech = mbd.zoo.n_four_bar(1, planar=True)
    q = mbd.assemble(mech, known={"ground_0": 2.4}).q

    def end(w):
        v = mbd.assemble_velocity(mech, q, {"ground_0": w})
        return mbd.simulate(mech, q, v, steps=2, dt=0.05, throw=False).q[-1, 0] ** 2

    slope = jax.jit(jax.grad(end))
    second = float(jax.jit(jax.jacfwd(jax.grad(end)))(1.0))
    assert second == pytest.approx(float(slope(1.0 + 1e-5) - slope(1.0 - 1e-5)) / 2e-5, rel=1e-7)
