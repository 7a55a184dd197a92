"""Euler and Bryant angles against products of single turns, differences and singular values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd.spatial import (
    bryant_angles,
    bryant_rates,
    bryant_rotation,
    bryant_velocity,
    euler_angles,
    euler_rates,
    euler_rotation,
    euler_velocity,
)
from jaxmbd.spatial.rotations import axis_rotation

X, Y, Z = np.eye(3)
EULER = (euler_rotation, euler_angles, euler_velocity, euler_rates, (Z, X, Z))
BRYANT = (bryant_rotation, bryant_angles, bryant_velocity, bryant_rates, (X, Y, Z))
both = pytest.mark.parametrize("kind", [EULER, BRYANT], ids=["euler", "bryant"])
# Of the second angle: regular ones, then near and at the singular ones (offset by π/2 for Bryant).
SECOND = [0.4, 1.3, 2.9, 1e-4, 1e-9, 1e-12, 0.0, np.pi - 1e-9, np.pi]


def samples(kind):
    """Angles (n, 3) and angular velocities (n, 3), within the range that `*_angles` gives."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(-3.0, 3.0, (len(SECOND), 3))
    angles[:, 1] = np.array(SECOND) - (np.pi / 2 if kind is BRYANT else 0.0)
    return jnp.asarray(angles), jnp.asarray(rng.normal(size=(len(SECOND), 3)))


@both
def test_rotation_is_the_product_of_three_turns(kind):
    rotation, axes = kind[0], kind[4]
    for angles in samples(kind)[0]:
        expected = np.eye(3)
        for axis, angle in zip(axes, angles, strict=True):
            expected = expected @ axis_rotation(jnp.asarray(axis), angle)
        np.testing.assert_allclose(rotation(angles), expected, rtol=0, atol=1e-15)


@both
def test_angles_give_their_rotation_back_everywhere(kind):
    rotation, read = kind[:2]
    angles, _ = samples(kind)
    found = jax.jit(jax.vmap(lambda a: read(rotation(a))))(angles)
    np.testing.assert_allclose(
        jax.vmap(rotation)(found.values), jax.vmap(rotation)(angles), rtol=0, atol=3e-15
    )
    apart = np.abs(np.sin(SECOND))
    np.testing.assert_array_equal(found.singular, apart < 1e-8)
    regular = apart > 1e-3
    np.testing.assert_allclose(found.values[regular], angles[regular], rtol=0, atol=1e-11)


@both
def test_velocity_is_the_derivative_of_the_rotation(kind):
    """``Ȧ = A ω̃`` with ω in the body's axes; to first order by differences too."""
    rotation, _, velocity, _, _ = kind
    for angles, rates in zip(*samples(kind), strict=True):
        r, change = jax.jvp(rotation, (angles,), (rates,))
        turn = np.asarray(r.T @ change)
        omega = velocity(angles, rates)
        np.testing.assert_allclose([turn[2, 1], turn[0, 2], turn[1, 0]], omega, rtol=0, atol=1e-14)
        np.testing.assert_allclose(turn, -turn.T, rtol=0, atol=1e-14)
        h = 1e-6
        difference = (rotation(angles + h * rates) - rotation(angles - h * rates)) / (2 * h)
        np.testing.assert_allclose(r.T @ difference, turn, rtol=0, atol=1e-8)


@both
def test_rates_invert_the_velocity(kind, compared):
    _, _, velocity, rates_of, _ = kind
    for angles, omega in zip(*samples(kind), strict=True):
        found = rates_of(angles, omega)
        assert np.all(np.isfinite(found.values))
        matrix = jax.jacfwd(lambda r, a=angles: velocity(a, r))(jnp.zeros(3))
        if compared("rates of regular angles", not found.singular, 0.3):
            size = 1.0 + np.linalg.norm(found.values)
            np.testing.assert_allclose(
                velocity(angles, found.values), omega, rtol=0, atol=1e-14 * size
            )
        else:
            expected = np.linalg.pinv(matrix, rcond=1e-7) @ omega
            np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-7)


@both
def test_conditioning_is_that_of_the_rate_matrix(kind):
    rotation, read, velocity, rates_of, _ = kind
    for angles, omega in zip(*samples(kind), strict=True):
        matrix = jax.jacfwd(lambda r, a=angles: velocity(a, r))(jnp.zeros(3))
        sizes = np.linalg.svd(matrix, compute_uv=False)
        expected = sizes[-1] / sizes[0]
        for found in (rates_of(angles, omega), read(rotation(angles))):
            assert float(found.conditioning) == pytest.approx(expected, rel=1e-6, abs=1e-15)


@both
def test_derivatives_are_finite_where_they_are_singular(kind):
    rotation, read, velocity, rates_of, _ = kind
    angles, omega = samples(kind)
    at = angles[SECOND.index(0.0)]
    slopes = jax.jit(jax.jacfwd(lambda a: read(rotation(a)).values))(at)
    slopes_back = jax.jit(jax.jacrev(lambda a: read(rotation(a)).values))(at)
    np.testing.assert_allclose(slopes, slopes_back, rtol=0, atol=1e-12)
    assert np.all(np.isfinite(slopes))
    assert np.all(np.isfinite(jax.jacrev(lambda a: rates_of(a, omega[0]).values)(at)))


@both
def test_singular_angles_raise_where_asked(kind):
    rotation, read, _, rates_of, _ = kind
    angles, omega = samples(kind)
    at = angles[SECOND.index(0.0)]
    with pytest.raises(ValueError, match=r"singular at .*use Euler parameters"):
        read(rotation(at), throw=True)
    with pytest.raises(ValueError, match="angles are singular: their reciprocal condition"):
        rates_of(at, omega[0], throw=True)
    assert bool(jax.jit(lambda r: read(r, throw=True))(rotation(at)).singular)
    assert not bool(read(rotation(angles[0]), throw=True).singular)


def test_lecture_text_formulas():
    """(5.2) and (5.6) as printed, away from their singularities, and its θ = 0 (corrected)."""
    angles = jnp.array([0.3, 0.7, -1.1])
    a = np.asarray(euler_rotation(angles))
    s = np.sin(0.7)
    printed = [a[2, 2], -a[1, 2] / s, a[0, 2] / s, a[2, 1] / s, a[2, 0] / s]
    expected = [np.cos(0.7), np.cos(0.3), np.sin(0.3), np.cos(-1.1), np.sin(-1.1)]
    np.testing.assert_allclose(printed, expected, rtol=0, atol=1e-15)
    a, c = np.asarray(bryant_rotation(angles)), np.cos(0.7)
    printed = [a[0, 2], -a[1, 2] / c, a[2, 2] / c, -a[0, 1] / c, a[0, 0] / c]
    expected = [np.sin(0.7), np.sin(0.3), np.cos(0.3), np.sin(-1.1), np.cos(-1.1)]
    np.testing.assert_allclose(printed, expected, rtol=0, atol=1e-15)
    both_turns = 0.3 - 1.1
    c, s = np.cos(both_turns), np.sin(both_turns)
    np.testing.assert_allclose(
        euler_rotation(jnp.array([0.3, 0.0, -1.1])),
        [[c, -s, 0], [s, c, 0], [0, 0, 1]],
        rtol=0,
        atol=1e-15,
    )


def test_float32_and_lanes():
    from jaxmbd import lanes

    angles = jnp.array([[0.3, 0.7, -1.1], [1.0, 0.0, 0.4]])
    one = euler_angles(euler_rotation(angles[0].astype("float32")))
    assert one.values.dtype == jnp.float32 and not bool(one.singular)
    found = lanes.vmap(lambda a: euler_angles(euler_rotation(a)))(angles)
    expected = jax.jit(jax.vmap(lambda a: euler_angles(euler_rotation(a))))(angles)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(found.singular, [False, True])
