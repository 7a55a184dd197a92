"""Mechanisms with so many points that sums over them are loops."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.kinematics.scales import mechanism_length
from jaxmbd.model.finite import finite_numbers
from jaxmbd.numerics.small_arrays import MANY

POINTS = np.random.default_rng(2).normal(size=(MANY + 9, 3))


def crowded(points: np.ndarray) -> mbd.Mechanism:
    named = {f"p{k}": x for k, x in enumerate(points)}
    bodies = {"arm": mbd.Body(1.0, [0.3, 0.0, 0.1], np.diag([0.1, 0.2, 0.2]))}
    joints = {"hinge": mbd.Revolute("ground", "arm", "p0", [0.0, 1.0, 0.0])}
    return mbd.Mechanism(bodies, joints, points=named)


def test_length_is_the_distance_from_the_mean():
    mech = crowded(POINTS)
    x = np.concatenate([POINTS, [[0.3, 0.0, 0.1]]])
    expected = np.sqrt(np.mean(np.sum((x - x.mean(axis=0)) ** 2, axis=1)))
    length = lanes.jit(mechanism_length, strict=True)
    np.testing.assert_allclose(mechanism_length(mech), expected, rtol=1e-14)
    np.testing.assert_allclose(length(mech), expected, rtol=1e-14)
    slope = jax.grad(length)(mech).points["p7"]
    wanted = (POINTS[7] - x.mean(axis=0)) / (len(x) * expected)
    np.testing.assert_allclose(slope, wanted, rtol=1e-12)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_number_that_is_not_finite_is_found(wrong):
    check = lanes.jit(finite_numbers, strict=True)
    assert check(crowded(POINTS))
    leaves, tree = jax.tree_util.tree_flatten(crowded(POINTS))
    place = next(k for k, x in enumerate(leaves) if np.array_equal(x, POINTS[MANY // 2]))
    leaves[place] = np.array([0.0, wrong, 0.0])
    assert not check(jax.tree_util.tree_unflatten(tree, leaves))
