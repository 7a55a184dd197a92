"""Gymnasium's environments: its checker, and its own vectors as the oracle of all modes."""

import importlib
import sys
import warnings
from functools import cache

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import jaxmbd.ml.gymnasium  # noqa: F401  which registers them
from jaxmbd import ml
from jaxmbd.sampling import Uniform

MODES = [mode.value for mode in AutoresetMode]


@cache
def short():
    """Episodes of different lengths: some fall, the others are cut."""
    return ml.cart_pole(horizon=9, speeds={"hinge": Uniform(3.0)})


@pytest.mark.parametrize("name", ["CartPole", "FiveBarReach"])
def test_the_checker_passes(name):
    env = gymnasium.make(f"jaxmbd/{name}-v0", render_mode="rgb_array").unwrapped
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check_env(env)
    said = [str(x.message) for x in told if not issubclass(x.category, DeprecationWarning)]
    advice = ("symmetric and normalized", "infinity", "infinite")
    assert not [text for text in said if not any(x in text for x in advice)]
    image = env.render()
    assert image.dtype == np.uint8 and image.shape[2] == 3 and image.std() > 1.0


def test_a_trace_is_that_of_the_functional_environment():
    env = ml.GymnasiumEnv(short())
    seen, info = env.reset(seed=3)
    state = short().reset(ml.lane_keys(3, 1)[0])
    assert np.array_equal(seen, state.observation) and info == {"status": 0}
    for k in range(9):
        action = np.array([5.0 * np.sin(k)])
        seen, *numbers, info = env.step(action)
        state = short().advance(state, action)
        assert np.array_equal(seen, state.observation)
        assert numbers == [state.reward, state.terminated, state.truncated]
    state = short().restart(state)
    assert np.array_equal(env.reset()[0], state.observation)
    assert not np.array_equal(env.reset(seed=4)[0], env.reset(seed=3)[0])


def vectors(mode):
    """Ours, and Gymnasium's own of our scalar environments."""
    ours = ml.GymnasiumVectorEnv(short(), 3, autoreset_mode=mode)
    make = [lambda: ml.GymnasiumEnv(short())] * 3
    return ours, gymnasium.vector.SyncVectorEnv(make, autoreset_mode=mode)


def assert_same(ours, theirs):
    """Arrays of numbers or objects, in dictionaries or not."""
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        for name in theirs:
            assert_same(ours[name], theirs[name])
        return
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape and (ours.dtype == object) == (theirs.dtype == object)
    for x, y in zip(ours.ravel(), theirs.ravel(), strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("mode", MODES)
def test_modes_are_those_of_gymnasium(mode):
    """All that is returned is to the bit what its vector of scalar environments returns."""
    ours, theirs = vectors(mode)
    assert ours.metadata["autoreset_mode"] is AutoresetMode(mode)
    for a, b in zip(ours.reset(seed=5), theirs.reset(seed=5), strict=True):
        assert_same(a, b)
    ours.action_space.seed(0)
    ends = np.zeros(3, int)
    for _ in range(40):
        action = ours.action_space.sample()
        found, expected = ours.step(action), theirs.step(action)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
        ended = found[2] | found[3]
        ends += ended
        if mode == "Disabled" and ended.any():
            with pytest.raises(ValueError, match="have ended: reset"):
                ours.step(action)
            for a, b in zip(
                *(x.reset(options={"reset_mask": ended.copy()}) for x in (ours, theirs)),
                strict=True,
            ):
                assert_same(a, b)
    assert ends.min() > 2 and len(set(ends.tolist())) > 1, "lanes end at different times"


def test_seeds_of_lanes():
    ours, theirs = vectors("NextStep")
    for seed in (7, [3, 1, 4]):
        assert_same(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
    assert_same(ours.reset()[0], theirs.reset()[0])  # the next episodes
    fixed = ours.reset(seed=[3, None, 4])[0]
    again = ours.reset(seed=[3, None, 4])[0]
    assert np.array_equal(fixed[0], again[0]) and not np.array_equal(fixed[1], again[1])


def test_what_was_returned_never_changes():
    ours, _ = vectors("SameStep")
    kept = [ours.reset(seed=0)[0]]
    copies = [kept[0].copy()]
    for _ in range(12):
        kept += ours.step(ours.action_space.sample())[:4]
        copies += [x.copy() for x in kept[-4:]]
    assert all(np.array_equal(x, y) for x, y in zip(kept, copies, strict=True))
    assert all(x.flags.writeable for x in kept)
    kept[-4][:] = 7.0  # nor does what the caller does to it change the environment
    assert np.all(ours.state.observation != 7.0)


def test_spaces_are_the_limits():
    envs = gymnasium.make_vec("jaxmbd/FiveBarReach-v0", 4, horizon=7)
    assert envs.spec.id == "jaxmbd/FiveBarReach-v0" and envs.env.horizon == 7
    assert envs.single_action_space.high.tolist() == [1.0, 1.0]
    assert envs.action_space.shape == (4, 2) and envs.observation_space.shape == (4, 8)
    seen, _ = envs.reset(seed=0)
    assert seen in envs.observation_space and seen.dtype == envs.observation_space.dtype
    assert isinstance(envs, ml.GymnasiumVectorEnv)


def test_a_failure_is_in_the_infos():
    def nothing(t, q, v):
        return q

    env = ml.cart_pole(observe={"q": nothing}, accuracy=1e-12, substeps=1)
    envs = ml.GymnasiumVectorEnv(env, 2)
    envs.reset(seed=0)
    _, reward, terminated, truncated, infos = envs.step(np.full((2, 1), 10.0))
    assert truncated.all() and not terminated.any() and np.all(reward == 0.0)
    assert infos["status"].tolist() == [5, 5], "INACCURATE"


def test_a_start_that_fails_is_told():
    env = ml.cart_pole(observe={"never": lambda t, q, v: q * jnp.nan})
    with pytest.warns(UserWarning, match="2 of 2 lanes failed to start .NON_FINITE.: check start="):
        ml.GymnasiumVectorEnv(env, 2).reset(seed=0)


def test_pictures_of_lanes():
    envs = ml.GymnasiumVectorEnv("cart_pole", 2, render_mode="rgb_array")
    envs.reset(seed=0)
    first, second = envs.render()
    assert first.shape == second.shape and not np.array_equal(first, second)
    assert ml.GymnasiumVectorEnv(short(), 2).render() is None


def test_errors_name_the_cure():
    with pytest.raises(ValueError, match=r"call reset\(\) first"):
        ml.GymnasiumEnv(short()).step([0.0])
    envs = ml.GymnasiumVectorEnv(short(), 2)
    with pytest.raises(ValueError, match=r"call reset\(\) first"):
        envs.step(np.zeros((2, 1)))
    with pytest.raises(ValueError, match="3 seeds for 2 lanes"):
        envs.reset(seed=[1, 2, 3])
    with pytest.raises(ValueError, match="give booleans of shape"):
        envs.reset(options={"reset_mask": np.zeros(2, bool)})
    with pytest.raises(ValueError, match="horizon: give these where the environment is made"):
        ml.GymnasiumEnv(short(), horizon=3)
    with pytest.raises(ValueError, match="NextSte"):
        ml.GymnasiumVectorEnv(short(), 2, autoreset_mode="NextSte")
    envs.reset(seed=0)
    with pytest.raises(ValueError, match=r"have shape \(1, 1\); give \(2, 1\)"):
        envs.step(np.zeros((1, 1)))


def test_the_vector_is_the_functional_environment():
    envs = ml.GymnasiumVectorEnv(short(), 3, autoreset_mode="SameStep")
    seen, _ = envs.reset(seed=11)
    keys = jnp.stack([ml.lane_keys(11 + k, 1)[0] for k in range(3)])
    state = jax.vmap(short().reset)(keys)
    assert np.array_equal(seen, state.observation)
    step = jax.vmap(short().step)
    for _ in range(15):
        action = envs.action_space.sample()
        seen, reward, terminated, truncated, _ = envs.step(action)
        state = step(state, action)
        told = (state.observation, state.reward, state.terminated, state.truncated)
        assert all(
            np.array_equal(x, y)
            for x, y in zip((seen, reward, terminated, truncated), told, strict=True)
        )


def test_where_gymnasium_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "jaxmbd.ml.gymnasium")
    with pytest.raises(ImportError, match=r"pip install 'jaxmbd\[gym\]'"):
        importlib.import_module("jaxmbd.ml.gymnasium")
