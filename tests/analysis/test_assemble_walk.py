"""The walk of `assemble` to a far target: steps of at most 5°, or a status that says no."""

import numpy as np
import pytest

import jaxmbd as mbd


def test_forty_turns_are_walked_in_steps_of_five_degrees():
    mech, turns = mbd.zoo.four_bar(), 40
    top = mbd.topology(mech)
    joint = top.tree[0]
    near = mbd.assemble(mech, {joint: 0.1})
    far = mbd.assemble(mech, {joint: 0.1 + 2 * np.pi * turns})
    assert int(far.iterations) >= turns * 72
    place = top.layout[joint].q
    assert float(far.q[place][0]) == pytest.approx(0.1 + 2 * np.pi * turns)
    for body, pose in mbd.poses(mech, near.q).items():  # the same branch
        np.testing.assert_allclose(
            mbd.poses(mech, far.q)[body].position, pose.position, rtol=0, atol=1e-9
        )


def test_a_target_too_far_to_walk_is_not_assembled():
    mech = mbd.zoo.four_bar()
    joint = mbd.topology(mech).tree[0]
    far = mbd.assemble(mech, {joint: 1e6}, throw=False)
    assert int(far.status) == mbd.Status.NOT_ASSEMBLED
    assert np.isnan(far.q).all() and int(far.iterations) == 0
    with pytest.raises(ValueError, match="too far to walk"):
        mbd.assemble(mech, {joint: 1e6})


def test_redundant_loops_close_near_a_guess_off_the_constraints():
    """Cranks in parallel are at one angle θ, the platform between them at −θ: a line in q."""
    mech, line = mbd.zoo.double_parallel_crank(), np.array([1.0, -1.0, 1.0, 1.0])
    guesses = 0.2 * np.random.default_rng(4).normal(size=(50, 4))
    found = mbd.lanes.vmap(lambda g: mbd.assemble(mech, guess=g, throw=False))(guesses)
    angles = np.asarray(found.q)[:, :1]
    np.testing.assert_allclose(found.q, angles * line, rtol=0, atol=1e-7)
    nearest = guesses @ line[:, None] / 4.0 * line
    least = np.linalg.norm(guesses - nearest, axis=1)
    assert np.all(np.linalg.norm(found.q - guesses, axis=1) < 2.0 * least)
    assert int(np.max(found.iterations)) < 10
