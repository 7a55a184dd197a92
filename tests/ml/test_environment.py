"""Environments: a hand-made loop is the oracle of their steps, a number for each promise."""

import re
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes, ml
from jaxmbd.observe import Coordinate, CoordinateRate
from jaxmbd.sampling import Normal, Triangular, Uniform

ANGLE = {"angle": Coordinate("hinge"), "rate": CoordinateRate("hinge")}


def pendulum(**options):
    """A pendulum with a torque; it starts anywhere below, and has a mass of its own."""
    given = {
        "actions": {"hinge": (-2.0, 2.0)},
        "observe": ANGLE,
        "reward": lambda before, action, after: -(after.q[0] ** 2) - 0.1 * action @ action,
        "start": {"hinge": Uniform(low=0.5, high=2.0)},
        "randomize": {"bodies/bob/mass": Uniform(0.2, relative=True)},
        "substeps": 2,
        "horizon": 8,
    }
    mech = options.pop("mechanism", mbd.zoo.simple_pendulum())
    return ml.Environment(mech, 0.05, **{**given, **options})


@cache
def swinging():
    """By lanes alone: what a kernel cannot have raises."""
    return pendulum(backend="lanes")


def policy(weights, observation, key):
    return weights @ jnp.tanh(observation) + 0.1 * jax.random.normal(key, (1,))


WEIGHTS = jnp.array([[0.4, -0.3]])


@cache
def runs(count, first=0, steps=20):
    """Rollouts of lanes of the pendulum."""
    run = partial(ml.rollout, swinging(), policy, WEIGHTS, steps=steps)
    return jax.vmap(run)(ml.lane_keys(5, count, first))


def plain(tree):
    keyed = jax.dtypes.prng_key
    return [
        np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, keyed) else x)
        for x in jax.tree_util.tree_leaves(tree)
    ]


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(plain(a), plain(b), strict=True))


def lane(tree, k):
    return jax.tree_util.tree_map(lambda x: x[k], tree)


def test_a_step_is_a_run_of_simulate():
    env, key = swinging(), ml.lane_keys(5, 1)[0]
    state, action = env.reset(key), np.array([0.7])
    mech = env.with_variables(state.variables)
    run = mbd.simulate(
        mech, state.end.q, state.end.v, t1=0.05, dt=0.025, inputs={"hinge": action[0]}
    )
    after = env.step(state, action)
    np.testing.assert_allclose(after.end.q, run.q[-1], rtol=1e-14)
    np.testing.assert_allclose(after.observation, [run.q[-1, 0], run.v[-1, 0]], rtol=1e-13)
    np.testing.assert_allclose(after.reward, -(run.q[-1, 0] ** 2) - 0.049, rtol=1e-13)
    mass = float(state.variables["bodies/bob/mass"])
    assert 0.8 < mass < 1.2 and mass != 1.0 and 0.5 < state.end.q[0] < 2.0


def test_actions_are_cut_to_their_limits():
    env = swinging()
    state = env.reset(jax.random.key(0))
    assert same(env.step(state, [7.0]).end, env.step(state, [2.0]).end)
    assert not same(env.step(state, [1.0]).end, env.step(state, [2.0]).end)


def test_a_run_goes_on_to_the_bit_from_its_state():
    whole, half = runs(6), runs(6, 0, 10)
    rest = jax.vmap(partial(ml.rollout, swinging(), policy, WEIGHTS, steps=10))(half.end)
    assert isinstance(whole, ml.Rollout) and isinstance(whole.end, ml.EnvState)
    assert same(whole.end, rest.end)
    assert same(whole.reward[:, 10:], rest.reward)
    assert int(whole.end.episode[0]) == 2 and int(whole.end.steps[0]) == 4


def test_a_lane_does_the_same_in_any_batch():
    assert same(lane(runs(6), slice(4, 6)), runs(2, 4))
    alone = ml.rollout(swinging(), policy, WEIGHTS, ml.lane_keys(5, 6)[3], 20)
    assert same(lane(runs(6), 3), alone)


def test_steps_one_by_one_are_those_of_a_rollout():
    env, whole = swinging(), runs(6)
    state = jax.vmap(env.reset)(ml.lane_keys(5, 6))
    for k in range(10):
        seen = state.observation
        state = lanes.vmap(env.step)(state, whole.action[:, k])
        row = (seen, state.reward, state.truncated, state.final_observation)
        names = ("observation", "reward", "truncated", "next_observation")
        assert same(row, [getattr(whole, name)[:, k] for name in names]), k


def test_episodes_and_lanes_differ_and_draw_what_the_distribution_says():
    env = pendulum(horizon=1)
    run = jax.jit(jax.vmap(env.reset))(ml.lane_keys(1, 4000))
    mass = np.asarray(run.variables["bodies/bob/mass"])
    np.testing.assert_allclose([mass.mean(), mass.std()], [1.0, 0.2 / 3**0.5], atol=0.01)
    again = jax.vmap(env.restart)(lane(run, slice(0, 3))).variables["bodies/bob/mass"]
    assert len({*mass[:3].tolist(), *np.asarray(again).tolist()}) == 6


def test_what_is_random_does_not_depend_on_what_else_is():
    other = pendulum(randomize={"gravity/y": Normal(0.1), "bodies/bob/mass": Uniform(0.2)})
    key = jax.random.key(4)
    drawn = other.reset(key)
    assert drawn.variables["bodies/bob/mass"] == swinging().reset(key).variables["bodies/bob/mass"]
    assert drawn.end.q == swinging().reset(key).end.q


def test_values_bootstrapped_from_final_observations_have_no_bias():
    """A wheel that slows down by c ω, rewarded by its speed: of the next speed a ω, V = w ω.

    ``V = a ω + γ V(a ω)`` gives ``w = a/(1 − γ a)``, whatever the horizon that truncates it.
    """
    drag = mbd.JointDrag("hinge", viscous=1.0)
    env = rotor(
        forces={"drag": drag}, horizon=5, speeds={"hinge": Uniform(low=0.5, high=2.0)},
        observe={"speed": CoordinateRate("hinge")}, reward=lambda before, action, after: after.v[0],
    )  # fmt: skip
    run = ml.rollout(env, lambda p, o, key: jnp.zeros(1), None, jax.random.key(0), 40)
    assert np.flatnonzero(run.truncated).tolist() == list(range(4, 40, 5))
    assert not run.terminated.any()
    seen, gain = np.asarray(run.observation[:, 0]), 0.9
    ends = np.asarray(run.truncated)
    after_reset = np.append(seen[1:], run.end.observation)

    def learned(following):
        """w of least squares of temporal differences."""
        return seen @ np.asarray(run.reward) / (seen @ (seen - gain * following))

    a = 1.0 - 0.1 + 0.1**2 / 2 - 0.1**3 / 6 + 0.1**4 / 24
    true = a / (1.0 - gain * a)
    final = np.asarray(run.next_observation[:, 0])
    np.testing.assert_allclose(learned(final), true, rtol=1e-12)
    assert abs(learned(after_reset) / true - 1.0) > 0.1
    assert np.array_equal(final[~ends], after_reset[~ends]) and np.all(final[ends] < seen[ends])


def test_termination_is_no_truncation():
    env = pendulum(terminate=lambda at: at.q[0] > 1.5, horizon=6, randomize={})
    run = jax.vmap(partial(ml.rollout, env, policy, WEIGHTS, steps=40))(ml.lane_keys(2, 16))
    over = np.asarray(run.next_observation[..., 0]) > 1.5
    assert np.array_equal(run.terminated, over) and over.any() and not over.all()
    assert run.truncated.any() and not (run.terminated & run.truncated).any()
    ends = np.asarray(run.terminated | run.truncated)
    assert np.array_equal(run.end.episode, ends.sum(axis=1))


def test_termination_counts_where_the_horizon_is_reached_too():
    env = pendulum(terminate=lambda at: at.t > 0.19, horizon=4)
    run = ml.rollout(env, policy, WEIGHTS, jax.random.key(0), 4)
    assert run.terminated.tolist() == [False] * 3 + [True] and not run.truncated.any()


@cache
def failing():
    """A pendulum on a spring whose law is no number beyond an angle of 1.2."""

    def law(extension, rate):
        return jnp.sqrt(1.2 - extension)

    spring = mbd.TorsionSpring("hinge", stiffness=0.0, law=law)
    return pendulum(
        mechanism=mbd.zoo.simple_pendulum().replace(forces={"spring": spring}),
        start={"hinge": Uniform(low=0.2, high=1.0)},
        randomize={},
        horizon=50,
    )


def test_a_run_that_fails_is_truncated_and_counted():
    env = failing()
    run = jax.vmap(partial(ml.rollout, env, policy, WEIGHTS, steps=30))
    found = run(ml.lane_keys(0, 4))
    bad = np.asarray(found.status) != mbd.Status.OK
    assert bad.any() and not bad.all()
    assert np.array_equal(found.truncated, bad) and np.all(found.reward[bad] == 0.0)
    counts = np.asarray(found.end.failures)
    assert np.array_equal(counts.sum(axis=1), bad.sum(axis=1))
    assert np.array_equal(counts[:, mbd.Status.DIVERGED], bad.sum(axis=1))
    assert all(np.all(np.isfinite(x)) for x in jax.tree_util.tree_leaves(found._replace(end=None)))
    # The observation of a failed step is that before it.
    assert np.array_equal(found.next_observation[bad], found.observation[bad])


def test_a_design_that_does_not_assemble_is_truncated_and_counted():
    env = ml.Environment(
        mbd.zoo.four_bar,
        0.01,
        observe={"crank": Coordinate("A")},
        actions={"A": (-1.0, 1.0)},
        reward=lambda before, action, after: 1.0,
        start={"A": 1.0},
        randomize={"coupler": Uniform(low=0.1, high=1.2)},
    )
    state = jax.vmap(env.reset)(ml.lane_keys(0, 24))
    bad = np.asarray(state.status) != mbd.Status.OK
    drawn = np.asarray(state.variables["coupler"])
    # Crank at 1 rad from upright: the distance between its end and D.
    x, z = 0.3 * np.sin(1.0), 0.3 * np.cos(1.0)
    apart = np.hypot(0.7 - x, z)
    assert bad.any() and not bad.all()
    assert np.all(np.abs(drawn[~bad] - 0.6) < apart) and np.all(drawn[bad] == 0.8)
    after = jax.vmap(env.step)(state, jnp.zeros((24, 1)))
    assert np.array_equal(after.truncated, bad) and np.array_equal(after.reward, ~bad)
    assert np.array_equal(after.failures[:, mbd.Status.NOT_ASSEMBLED], bad)
    assert np.all(np.isfinite(after.observation)) and np.all(np.isfinite(after.final_observation))
    assert np.array_equal(after.episode, bad)


def test_numbers_that_are_none_are_a_failure():
    """Of a sensor (a square root of what is below zero), and of a reward."""
    for options in (
        {"observe": {"root": lambda t, q, v: jnp.sqrt(q[0] - 0.5)}},
        {"reward": lambda before, action, after: jnp.log(after.q[0] - 0.5)},
    ):
        env = rotor(start={"hinge": 0.6}, speeds={"hinge": -0.45}, **options)
        run = ml.rollout(env, lambda p, o, key: jnp.zeros(1), None, jax.random.key(0), 4)
        bad = [0, 0, mbd.Status.NON_FINITE, 0]  # 0.555, 0.51, 0.465, and anew
        assert run.status.tolist() == bad and run.truncated.tolist() == [x > 0 for x in bad]
        assert run.end.failures[mbd.Status.NON_FINITE] == 1 and run.reward[2] == 0.0
        assert np.all(np.isfinite(run.next_observation)) and np.all(np.isfinite(run.reward))
    never = rotor(observe={"none": lambda t, q, v: jnp.sqrt(q[0] - 1.0)})
    first = never.reset(jax.random.key(0))
    assert first.status == mbd.Status.NON_FINITE and first.observation == 0.0
    after = never.step(first, [0.0])
    assert after.truncated and after.status == mbd.Status.NON_FINITE and after.observation == 0.0


def test_gradients_are_those_of_xla_and_of_differences():
    """Over the end of an episode, too."""
    env, keys = pendulum(substeps=1), ml.lane_keys(5, 3)

    def total(weights, env=env):
        run = jax.vmap(lambda key: ml.rollout(env, policy, weights, key, 32))(keys)
        return jnp.sum(run.next_observation**2) - jnp.sum(run.reward)

    value, slope = jax.value_and_grad(total)(WEIGHTS)
    xla = partial(total, env=pendulum(substeps=1, backend="xla"))
    found, expected = jax.jit(jax.value_and_grad(xla))(WEIGHTS)
    np.testing.assert_allclose(value, found, rtol=1e-12)
    np.testing.assert_allclose(slope, expected, rtol=1e-10)
    h, direction = 1e-4, jnp.array([[0.6, -0.8]])
    step = jax.jit(total)
    near = [step(WEIGHTS + k * h * direction) for k in (-2, -1, 1, 2)]
    difference = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * h)
    np.testing.assert_allclose(jnp.sum(slope * direction), difference, rtol=1e-8)
    _, forward = jax.jvp(step, (WEIGHTS,), (direction,))
    np.testing.assert_allclose(forward, jnp.sum(slope * direction), rtol=1e-10)


def test_a_failed_lane_spoils_no_gradient():
    def loss(weights, key):
        run = ml.rollout(failing(), policy, weights, key, 12)
        return jnp.sum(run.reward), jnp.any(run.status != mbd.Status.OK)

    slope, failed = jax.vmap(jax.grad(loss, has_aux=True), (None, 0))(WEIGHTS, ml.lane_keys(0, 4))
    assert failed.any() and np.all(np.isfinite(slope)) and np.all(slope != 0.0)


@pytest.mark.slow
def test_such_gradients_are_the_same_without_a_kernel():
    """Of a sum over lanes by `jax.vmap`, with draws in every episode."""

    def total(length, key):
        env = pendulum(mechanism=mbd.zoo.simple_pendulum(length), horizon=2)
        return jnp.sum(ml.rollout(env, policy, WEIGHTS, key, 3).reward)

    def slope(vmap):
        keys = ml.lane_keys(0, 2)
        return jax.jit(jax.grad(lambda x: jnp.sum(vmap(total, (None, 0))(x, keys))))(1.0)

    np.testing.assert_allclose(slope(jax.vmap), slope(lanes.vmap), rtol=1e-10)


def test_gradients_with_respect_to_a_number_of_the_mechanism():
    """That a whole environment is made of, inside of what is differentiated."""

    def loss(length):
        mech = mbd.zoo.simple_pendulum(length)
        env = ml.Environment(
            mech, 0.05, observe=ANGLE, actions={"hinge": (-2.0, 2.0)}, start={"hinge": 1.0},
            reward=lambda before, action, after: after.q[0],
        )  # fmt: skip
        return jnp.sum(ml.rollout(env, policy, WEIGHTS, jax.random.key(0), 5).reward)

    h = 1e-4
    values, slopes = lanes.vmap(jax.value_and_grad(loss))(1.0 + h * jnp.arange(-2.0, 3.0))
    difference = (values[0] - 8 * values[1] + 8 * values[3] - values[4]) / (12 * h)
    np.testing.assert_allclose(slopes[2], difference, rtol=1e-8)


def torque_in(env, actions):
    """Increments of momentum of a free rotor, which are the torques that it feels."""
    state, found = env.reset(jax.random.key(0)), []
    for action in actions:
        after = env.step(state, [action])
        found.append(float(after.end.v[0] - state.end.v[0]) / 0.1)
        state = after
    return found


def rotor(forces=None, **options):
    body = mbd.Body(0.0, com=(0.0, 0.0), inertia=1.0)
    hinge = mbd.Revolute("ground", "wheel", at=(0.0, 0.0))
    mech = mbd.Mechanism({"wheel": body}, {"hinge": hinge}, forces or {})
    given = {"observe": ANGLE, "actions": {"hinge": (-9.0, 9.0)}, "reward": lambda *_: 0.0}
    return ml.Environment(mech, 0.1, **{**given, **options})


def test_actions_are_held_or_lie_on_a_line_and_come_late():
    given = [1.0, 3.0, -2.0]
    np.testing.assert_allclose(torque_in(rotor(), given), given, rtol=1e-12)
    means = [0.5, 2.0, 0.5]
    np.testing.assert_allclose(torque_in(rotor(hold="linear"), given), means, rtol=1e-12)
    np.testing.assert_allclose(torque_in(rotor(delay=1), given), [0.0, 1.0, 3.0], atol=1e-12)
    late = torque_in(rotor(delay=2, hold="linear"), given)
    np.testing.assert_allclose(late, [0.0, 0.0, 0.5], atol=1e-12)


def test_noise_is_about_the_reading_and_new_at_each_step():
    env = rotor(noise={"angle": Normal(0.1), "rate": Uniform(0.5, relative=True)}, horizon=1000)
    run = ml.rollout(env, lambda p, o, key: jnp.ones(1), None, jax.random.key(1), 500)
    t = 0.1 * np.arange(1, 501)
    errors = np.asarray(run.next_observation) - np.stack([0.5 * t * t, t], 1)
    assert abs(errors[:, 0].mean()) < 0.02 and abs(errors[:, 0].std() - 0.1) < 0.02
    share = errors[:, 1] / t
    assert np.abs(share).max() <= 0.5 and abs(share.std() - 0.5 / 3**0.5) < 0.03
    assert len(set(errors[:, 0].tolist())) == 500
    np.testing.assert_allclose(run.end.end.v[0], 50.0, rtol=1e-12)  # the motion has none


def test_rewards_see_the_states_before_and_after():
    env = rotor(reward=lambda before, action, after: after.v[0] - before.v[0] - 0.1 * action[0])
    state = env.step(env.step(env.reset(jax.random.key(0)), [3.0]), [-2.0])
    assert abs(state.reward) < 1e-14 and state.end.v[0] > 0.0


def test_starts_by_a_function_and_speeds():
    def hanging(mech, key):
        return {"hinge": 0.5 + mech.bodies["bob"].mass * jax.random.uniform(key)}

    env = pendulum(start=hanging, speeds={"hinge": Triangular(low=1.0, high=2.0, mode=1.5)})
    state = jax.vmap(env.reset)(ml.lane_keys(0, 50))
    assert np.all((state.end.v > 1.0) & (state.end.v < 2.0)) and np.ptp(state.end.v) > 0.1
    assert np.all((state.end.q > 0.5) & (state.end.q < 1.7)) and np.ptp(state.end.q) > 0.1


@pytest.mark.parametrize("method", ["semi_implicit_euler", "generalized_alpha", "dormand_prince"])
def test_methods_of_simulate(method):
    """Runs that go on are one run, with the memory of the method."""
    env = pendulum(method=method, substeps=4, horizon=None, randomize={}, accuracy=1.0)
    run = ml.rollout(env, lambda p, o, key: jnp.zeros(1), None, jax.random.key(0), 10)
    start = run.observation[0]
    whole = mbd.simulate(
        env.mechanism, start[:1], start[1:], t1=0.5, dt=0.0125, save_every=4, method=method,
        accuracy=1.0,
    )  # fmt: skip
    np.testing.assert_allclose(run.next_observation[:, 0], whole.q[1:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.end.end.account.share, whole.error, rtol=1e-6)


def test_single_precision():
    mech = jax.tree_util.tree_map(lambda x: np.asarray(x, np.float32), mbd.zoo.simple_pendulum())
    given = {"observe": ANGLE, "actions": {"hinge": (-2.0, 2.0)}, "start": {"hinge": Uniform(1.0)}}
    env = ml.Environment(
        mech, 0.05, reward=lambda before, action, after: after.q[0], substeps=2,
        noise={"angle": Normal(1e-3)}, randomize={"bodies/bob/mass": Uniform(0.2)}, **given,
    )  # fmt: skip
    run = ml.rollout(env, policy, jnp.asarray(WEIGHTS, jnp.float32), jax.random.key(0), 5)
    kinds = {x.dtype for x in (run.observation, run.reward, run.end.end.q, run.end.actions)}
    assert kinds == {np.dtype(np.float32)} and np.all(run.status == 0)


def test_a_closed_loop_keeps_its_loop_closed():
    env = ml.five_bar_reach()
    aim = jnp.array([0.2, 0.2])

    def towards(gain, observation, key):
        left, right = mbd.zoo.five_bar_angles(observation[6:8])
        drawn = jnp.stack(mbd.zoo.five_bar_angles(jnp.array([0.1, 0.45])))
        return gain * (jnp.stack([left, right]) - drawn - observation[:2]) - aim * observation[2:4]

    run = jax.vmap(partial(ml.rollout, env, towards, 2.0, steps=100))(ml.lane_keys(0, 8))
    assert np.all(run.status == 0) and np.all(run.truncated[:, -1])
    tip, target = run.next_observation[:, -1, 4:6], run.next_observation[:, -1, 6:8]
    assert np.linalg.norm(tip - target, axis=1).max() < 2e-3
    left, right = mbd.zoo.five_bar_angles(tip)  # that the tip is where the angles say
    drawn = mbd.zoo.five_bar_angles((0.1, 0.45))
    angles = np.stack([left - drawn[0], right - drawn[1]], 1)
    np.testing.assert_allclose(angles, run.next_observation[:, -1, :2], atol=1e-8)


def test_cart_pole_by_a_linear_law():
    def law(gains, observation, key):
        return (gains @ observation)[None]

    gains = jnp.array([1.0, 2.0, -30.0, -5.0])
    run = jax.vmap(partial(ml.rollout, ml.cart_pole(), law, gains, steps=500))(ml.lane_keys(0, 8))
    assert not run.terminated.any() and np.all(run.reward == 1.0)
    assert np.array_equal(run.truncated.sum(axis=1), np.ones(8))
    fallen = jax.vmap(partial(ml.rollout, ml.cart_pole(), law, 0.0 * gains, steps=500))
    assert fallen(ml.lane_keys(0, 8)).terminated.any(axis=1).all()


def test_the_names_of_what_is_observed():
    env = pendulum(observe={**ANGLE, "bob": mbd.observe.Position("bob", "pivot")})
    assert env.size == 5 and env.sensors["bob"] == slice(2, 5)
    assert env.names == ("hinge",) and env.high.tolist() == [2.0]


@pytest.mark.parametrize(
    "options, told",
    [
        ({"observe": {"angle": Coordinate("hing")}}, "'angle'.*'hing'.*did you mean 'hinge'"),
        ({"observe": {"angle": 3.0}}, "'angle' is 3.0; give an observable"),
        ({"observe": {}}, "observe= is empty"),
        ({"actions": ("hing",)}, "'hing'; did you mean 'hinge'"),
        ({"actions": ("hinge",)}, r"'hinge' has no limits; give actions=\{'hinge': \(low, high\)"),
        ({"actions": {"hinge": (1.0, -1.0)}}, "limits of 'hinge' are .*low below high"),
        ({"actions": None}, "nothing to act on: give the mechanism an Actuator"),
        ({"noise": {"angel": Normal(0.1)}}, "'angel'; did you mean 'angle'"),
        ({"noise": {"angle": 0.1}}, "noise: 'angle' is 0.1; give a distribution"),
        ({"randomize": {"bodies/bob/mas": Normal(0.1)}}, "did you mean 'bodies/bob/mass'"),
        ({"randomize": {"gravity/x": Normal(0.1, relative=True)}}, "'gravity/x': a fraction"),
        ({"start": {"hing": 0.1}}, "'hing', which does not exist"),
        ({"substeps": 0}, "substeps=0: give a whole number, at least 1"),
        ({"horizon": 0.5}, "horizon=0.5"),
        ({"hold": "cubic"}, "hold='cubic': give 'hold' or 'linear'"),
        ({"backend": "cuda"}, "backend='cuda'"),
    ],
)
def test_errors_name_the_part_and_the_cure(options, told):
    with pytest.raises(ValueError, match=told):
        pendulum(**options)


def after(fn):
    return lambda before, action, after: fn(after)


@pytest.mark.parametrize(
    "options, told",
    [
        (
            {"reward": after(lambda x: x.q)},
            r"reward= returns float64 of shape \(1,\); give one",
        ),
        ({"reward": after(lambda x: (x.q[0], {}))}, "reward= returns a tuple; give one real"),
        ({"reward": after(lambda x: None)}, "reward= returns nothing; give one real"),
        ({"reward": after(lambda x: 1j * x.q[0])}, r"complex128 of shape \(\); give one real"),
        ({"terminate": lambda x: x.q[0]}, r"float64 of shape \(\); give one truth value"),
        ({"terminate": lambda x: x.q > 1.0}, r"bool of shape \(1,\); give one truth value"),
        ({"terminate": lambda x: 1}, "terminate= returns int64 of"),
        (
            {"observe": {"a": lambda t, q, v: {"q": q}}},
            "observe: 'a' returns a dict; give real",
        ),
        ({"observe": {"a": lambda t, q, v: None}}, "observe: 'a' returns nothing; give real num"),
        (
            {"start": lambda mech, key: [1.0]},
            r"start= returns .*\[1.0\]; name what",
        ),
        (
            {"start": lambda mech, key: {"hing": 0.0}},
            "start= .* joint 'hing', which does not",
        ),
        (
            {"speeds": lambda mech, key: {"hinge": np.ones(2)}},
            r"speeds= .* shape \(2,\)",
        ),
    ],
)
def test_what_functions_return_is_checked_before_the_first_step(options, told):
    with pytest.raises(ValueError, match=told):
        pendulum(**options)


@pytest.mark.parametrize(
    "options, error, note",
    [
        ({"reward": lambda x: 0.0}, TypeError, r"reward=.* as reward\(before, action, after\)"),
        ({"reward": after(lambda x: 1.0 if x.q[0] > 0 else 0.0)}, TypeError, "jnp.where for an if"),
        ({"reward": after(Coordinate("hing").value)}, KeyError, "raised by reward= of"),
        ({"terminate": lambda x: x.angle > 1}, AttributeError, r"terminate=.* as f\(after\)"),
        ({"observe": {"a": lambda t, q: q}}, TypeError, r"observe: 'a' .* as f\(t, q, v\)"),
        ({"start": lambda key: {}}, TypeError, r"start=.* as start\(mechanism, key\)"),
    ],
)
def test_what_functions_raise_names_them(options, error, note):
    with pytest.raises(error) as found:
        pendulum(**options)
    assert re.search(note, "\n".join(found.value.__notes__))


def test_all_that_is_wrong_with_functions_is_told_at_once():
    with pytest.raises(ValueError, match="reward= returns(.|\n)*terminate= returns"):
        pendulum(reward=after(lambda x: x.q), terminate=lambda x: 0.0)
    flags = {"observe": {"low": lambda t, q, v: q < 0}, "terminate": lambda x: np.False_}
    env = pendulum(reward=after(lambda x: True), **flags)
    assert env.step(env.reset(jax.random.key(0)), [0.0]).reward == 1.0


def test_more_errors():
    import scipy.stats

    with pytest.raises(ValueError, match="no kernel can draw; take one of jaxmbd.sampling"):
        pendulum(noise={"angle": scipy.stats.norm(0.0, 1.0)})
    with pytest.raises(ValueError, match="'masses'|argument 'lenght'; did you mean 'length'"):
        ml.Environment(
            mbd.zoo.simple_pendulum, 0.1, observe=ANGLE, reward=lambda *_: 0.0,
            actions={"hinge": (-1, 1)}, randomize={"lenght": Uniform(0.1)},
        )  # fmt: skip
    ball = mbd.Mechanism(
        {"ball": mbd.Body(1.0, (0, 0, 0), 0.1)}, {"free": mbd.Free("ground", "ball")}
    )
    with pytest.raises(ValueError, match="'free' has 6 speeds: act by an Actuator"):
        ml.Environment(
            ball, 0.1, observe={"z": lambda t, q, v: q[6]}, reward=lambda *_: 0.0,
            actions={"free": (-1.0, 1.0)},
        )  # fmt: skip
    motor = mbd.zoo.simple_pendulum().replace(
        forces={"motor": mbd.Actuator("hinge", control_range=(-1.0, 1.0))}
    )

    def inside(mech):
        return ml.Environment(mech, 0.1, observe=ANGLE, reward=lambda *_: 0.0).low

    with pytest.raises(ValueError, match="limits of 'motor' are traced; give numbers: actions="):
        jax.jit(inside)(motor)
    env = swinging()
    with pytest.raises(ValueError, match=r"shape \(2,\); give one number for each of \['hinge'\]"):
        env.step(env.reset(jax.random.key(0)), [1.0, 2.0])


def test_actuators_limit_their_controls():
    mech = mbd.zoo.double_pendulum().replace(
        forces={
            "motor": mbd.Actuator("hinge_1", gain=2.0, force_range=(-6.0, 6.0)),
            "servo": mbd.Actuator("hinge_2", bias=(0.0, -5.0, 0.0), force_range=(-6.0, 6.0)),
        }
    )
    given = {"observe": {"q": lambda t, q, v: q}, "reward": lambda *_: 0.0}
    with pytest.raises(ValueError, match="'servo' has no limits; give control_range= of the actu"):
        ml.Environment(mech, 0.1, **given)
    env = ml.Environment(mech, 0.1, actions={"servo": (-1.0, 2.0), "motor": None}, **given)
    assert env.names == ("servo", "motor")
    assert env.low.tolist() == [-1.0, -3.0] and env.high.tolist() == [2.0, 3.0]
