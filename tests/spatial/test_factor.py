"""Small factorisations against numpy, and the identities of rotations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.factorisations import (
    ldlt_rank_revealing,
    ldlt_solve,
    ltdl,
    ltdl_backward,
    ltdl_forward,
    minimum_norm,
    minimum_norm_by_rows,
)
from jaxmbd.spatial import rotations as rot

TOLERANCE = tolerances.redundancy(np.float64)
SIZES = (1, 2, 6)

factor = jax.jit(ldlt_rank_revealing, static_argnums=1)
solve = jax.jit(lambda a, b: ldlt_solve(*ldlt_rank_revealing(a, TOLERANCE), b))


@jax.jit
def least_norm(a, b):
    lower, pivots, kept = ldlt_rank_revealing(a, TOLERANCE)
    x = ldlt_solve(lower, pivots, kept, b[:, None])[:, 0]
    return x, minimum_norm(lower, kept, x)


def rank_deficient(rng, n, rank):
    """Rows (n, n + 2) of which `rank` are independent, none small."""
    rows = rng.normal(size=(rank, n + 2))
    more = rng.normal(size=(n - rank, rank)) @ rows if rank else np.zeros((n, n + 2))
    return rng.permutation(np.concatenate([rows, more]) if rank else more)


# --- LᵀDL -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
def test_ltdl_gives_the_matrix_back_and_solves(n):
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n + 1))
    a = root @ root.T
    lower, pivots, sound = ltdl(jnp.asarray(a))
    assert sound.all()
    np.testing.assert_allclose(lower.T @ jnp.diag(pivots) @ lower, a, rtol=0, atol=1e-12 * a.max())
    np.testing.assert_array_equal(np.triu(lower, 1), 0.0)
    np.testing.assert_array_equal(np.diagonal(lower), 1.0)
    b = rng.normal(size=(n, 3))
    x = ltdl_forward(lower, ltdl_backward(lower, jnp.asarray(b)) / pivots[:, None])
    np.testing.assert_allclose(a @ x, b, rtol=0, atol=1e-9)


def test_what_earlier_pivots_amplify_is_no_pivot():
    """The last two of three vectors in a plane are a thousandth apart.

    Without them nothing is left of the first, but their rounding divided by the square of that.
    """
    rng, error = np.random.default_rng(0), tolerances.rounding(np.float64, 64)
    for _ in range(20):
        first, last, across = rng.normal(size=(3, 2))
        rows = np.stack([first, last + 1e-3 * across, last])
        a = jnp.asarray(rows @ rows.T)
        assert ltdl(a, error * jnp.diagonal(a))[2].tolist() == [False, True, True]


def test_ltdl_does_not_fill_in_between_branches():
    """Coordinates 1, 2 and 3, 4 are two branches on 0: their coupling stays an exact zero."""
    rng = np.random.default_rng(0)
    branches = [np.array([1, 1, 1, 0, 0]), np.array([1, 0, 0, 1, 1])]
    a = sum(r[:, None] * (x @ x.T) * r for r in branches for x in [rng.normal(size=(5, 5))])
    lower, _, _ = ltdl(jnp.asarray(a))
    np.testing.assert_array_equal(lower[3:, 1:3], 0.0)


def test_ltdl_meets_a_zero_pivot_without_nan():
    a = jnp.array([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]])
    lower, pivots, sound = ltdl(a)
    assert np.isfinite(lower).all()
    np.testing.assert_array_equal(sound, [True, False, True])
    np.testing.assert_array_equal(pivots[1], 1.0)
    diagonal = jnp.diag(jnp.where(sound, pivots, 0.0))
    np.testing.assert_allclose(lower.T @ diagonal @ lower, a, rtol=0, atol=1e-15)


def test_ltdl_replaces_pivots_under_their_floor():
    _, pivots, sound = ltdl(jnp.diag(jnp.array([2.0, 1e-3, 3.0])), jnp.full(3, 1e-2))
    np.testing.assert_array_equal(sound, [True, False, True])
    np.testing.assert_array_equal(pivots, [2.0, 1.0, 3.0])


# --- Rank-revealing LDLᵀ ------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (4, 4), (4, 2), (6, 3), (6, 5)])
@pytest.mark.parametrize("scaled", [False, True])
def test_rank_and_solution_of_semidefinite_matrices(n, rank, scaled):
    for seed in range(10):
        rng = np.random.default_rng([n, rank, seed])
        rows = rank_deficient(rng, n, rank)
        d = 10.0 ** rng.uniform(-3, 3, n) if scaled else np.ones(n)
        a = (d[:, None] * rows) @ (d[:, None] * rows).T  # diagonal over 1e-6 … 1e6 where scaled
        lower, pivots, kept = factor(a, TOLERANCE)
        assert int(kept.sum()) == rank == np.linalg.matrix_rank(rows)
        assert np.linalg.matrix_rank(rows[np.asarray(kept)]) == rank
        # The kept rows and columns are factored exactly, in units of their own size.
        k = np.flatnonzero(kept)
        l_kept = np.asarray(lower)[np.ix_(k, k)]
        again = l_kept @ np.diag(np.asarray(pivots)[k]) @ l_kept.T
        np.testing.assert_allclose(
            again / np.outer(d[k], d[k]), a[np.ix_(k, k)] / np.outer(d[k], d[k]), rtol=0, atol=1e-11
        )
        # A consistent right side.
        b = (d[:, None] * rows) @ ((d[:, None] * rows).T @ (rng.normal(size=(n, 2)) / d[:, None]))
        x = solve(a, b)
        np.testing.assert_array_equal(np.asarray(x)[~np.asarray(kept)], 0.0)
        size = np.abs(b / d[:, None]).max()
        np.testing.assert_allclose((a @ x) / d[:, None], b / d[:, None], rtol=0, atol=1e-7 * size)


def test_first_of_dependent_rows_is_kept_whatever_the_order():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(3, 5))
    for order in ([0, 0, 1, 2], [1, 2, 0, 0], [2, 1, 2, 0]):
        a = rows[order] @ rows[order].T
        expected = [i not in order[:k] for k, i in enumerate(order)]
        assert factor(a, TOLERANCE)[2].tolist() == expected


@pytest.mark.parametrize("size", [0.0, 1e-18])
def test_a_row_that_is_zero_or_rounding_adds_no_rank(size):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(4, 6))
    rows[1] *= size
    a = rows @ rows.T
    assert factor(a, TOLERANCE)[2].tolist() == [True, False, True, True]
    b = a @ np.array([1.0, 0.0, 2.0, -1.0])
    b[1] = 1e-18 * size
    x = np.asarray(solve(a, b[:, None])[:, 0])
    np.testing.assert_allclose(x, [1.0, 0.0, 2.0, -1.0], rtol=0, atol=1e-11)


def test_the_zero_matrix_has_rank_zero_and_solution_zero():
    assert not factor(np.zeros((3, 3)), TOLERANCE)[2].any()
    np.testing.assert_array_equal(solve(np.zeros((3, 3)), np.zeros((3, 1))), 0.0)


@pytest.mark.parametrize("angle", [1e-2, 1e-4])
def test_nearly_parallel_rows_are_independent(angle):
    rows = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    a = rows @ rows.T
    assert factor(a, TOLERANCE)[2].all()
    x = np.array([0.3, -0.7])
    np.testing.assert_allclose(solve(a, (a @ x)[:, None])[:, 0], x, rtol=0, atol=1e-14 / angle**2)


@pytest.mark.parametrize(("n", "rank"), [(4, 4), (4, 2), (6, 5), (6, 1)])
def test_least_norm_solution_is_the_pseudo_inverses(n, rank):
    for seed in range(10):
        rng = np.random.default_rng([n, rank, seed, 1])
        rows = rank_deficient(rng, n, rank)
        a = rows @ rows.T
        b = a @ rng.normal(size=n)
        x, least = least_norm(a, b)
        expected = np.linalg.pinv(a, rcond=1e-10) @ b
        condition = np.linalg.cond(rows[np.asarray(factor(a, TOLERANCE)[2])])
        size = np.abs(x).max() * np.clip(condition, 1.0, 1e4)
        np.testing.assert_allclose(a @ x, b, rtol=0, atol=1e-9 * np.abs(a).max() * size)
        np.testing.assert_allclose(least, expected, rtol=0, atol=1e-7 * size)


def test_least_norm_in_loops_over_rows():
    """Of 15 rows of rank 0, 1, 8, 14 and 15, in one batch; a solution that is least stays."""
    rng = np.random.default_rng(0)
    rows = np.stack([rank_deficient(rng, 15, rank) for rank in (0, 1, 8, 14, 15)])
    a, x = rows @ rows.transpose(0, 2, 1), rng.normal(size=(5, 15))

    def by_rows(a, x):
        lower, _, kept = ldlt_rank_revealing(a, TOLERANCE)
        return minimum_norm_by_rows(lower, kept, x)

    for batched in (jax.vmap, lanes.vmap):
        least = jax.jit(batched(by_rows))
        found = least(a, x)
        expected = np.einsum("nij,nj->ni", np.linalg.pinv(a, rcond=1e-10) @ a, x)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(least(a, found), found, rtol=0, atol=1e-12)


def test_least_norm_by_groups_of_rows_without_common_columns():
    """Rows of three independent systems, interleaved; the metric makes the Gram matrix full."""
    rng = np.random.default_rng(5)
    groups, start = [(0, 3, 4, 7), (1,), (2, 5, 6)], 0
    rows, metric = np.zeros((8, 14)), rng.normal(size=(14, 14))
    for group, rank in zip(groups, (2, 1, 2), strict=True):
        part = rank_deficient(rng, len(group), rank)
        rows[list(group), start : start + part.shape[1]] = part
        start += part.shape[1]
    a = rows @ metric @ metric.T @ rows.T
    factors = ldlt_rank_revealing(jnp.asarray(a), TOLERANCE)
    x = ldlt_solve(*factors, jnp.asarray(a @ rng.normal(size=8))[:, None])[:, 0]
    assert np.sum(~np.asarray(factors.kept)) == 3
    expected = np.linalg.pinv(a, rcond=1e-10) @ (a @ x)
    for found in jax.jit(lambda x: [factors.minimum_norm(x, g) for g in (groups, None)])(x):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(x).max())


@pytest.mark.parametrize("rank", [5, 3])
def test_derivatives_of_a_solution_are_those_of_finite_differences(rank):
    """Along a path of matrices of one rank, with a right side in their range."""
    rng = np.random.default_rng(rank)
    rows, change = rank_deficient(rng, 5, rank), rng.normal(size=(7, 7))
    force = rng.normal(size=7)

    @jax.jit
    def applied(s):  # the force x of Jᵀ λ, unique even where λ is not
        j = jnp.asarray(rows) @ (jnp.eye(7) + s * change)
        return j.T @ solve(j @ j.T, (j @ force)[:, None])[:, 0]

    forward, reverse = jax.jit(lambda s: (jax.jacfwd(applied)(s), jax.jacrev(applied)(s)))(0.0)
    h = 1e-5
    difference = (applied(h) - applied(-h)) / (2 * h)
    np.testing.assert_allclose(forward, difference, rtol=0, atol=1e-7 * np.abs(difference).max())
    np.testing.assert_allclose(reverse, forward, rtol=0, atol=1e-10 * np.abs(difference).max())


# --- Rotations ----------------------------------------------------------------------------------


def unit_vectors(seed, shape):
    x = np.random.default_rng(seed).normal(size=shape)
    return jnp.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


matrix = jax.vmap(rot.rotation_matrix)
from_matrix = jax.jit(jax.vmap(rot.quaternion_from_matrix))


def test_cross_skew_and_vee():
    a, b = np.random.default_rng(0).normal(size=(2, 50, 3))
    np.testing.assert_allclose(
        rot.cross(jnp.asarray(a), jnp.asarray(b)), np.cross(a, b), rtol=0, atol=1e-14
    )
    for x, y in zip(a[:5], b[:5], strict=True):
        np.testing.assert_allclose(rot.skew(jnp.asarray(x)) @ y, np.cross(x, y), rtol=0, atol=1e-14)
        np.testing.assert_allclose(rot.vee(rot.skew(jnp.asarray(x))), x, rtol=0, atol=1e-15)


def test_quaternions_multiply_as_their_matrices():
    p, q = unit_vectors(1, (2, 200, 4))
    product = jax.vmap(rot.quaternion_product)(p, q)
    np.testing.assert_allclose(matrix(product), matrix(p) @ matrix(q), rtol=0, atol=1e-14)
    r = np.asarray(matrix(p))
    np.testing.assert_allclose(
        r @ r.transpose(0, 2, 1), np.tile(np.eye(3), (200, 1, 1)), rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(np.linalg.det(r), 1.0, rtol=0, atol=1e-14)


def test_rotation_matrix_turns_about_its_axis_by_its_angle():
    axes = unit_vectors(2, (20, 3))
    angles = jnp.linspace(-3.1, 3.1, 20)
    p = jnp.concatenate([jnp.cos(angles / 2)[:, None], jnp.sin(angles / 2)[:, None] * axes], axis=1)
    turned = jax.vmap(rot.axis_rotation)(axes, angles)
    np.testing.assert_allclose(matrix(p), turned, rtol=0, atol=1e-14)
    np.testing.assert_allclose(jax.vmap(rot.angle_about)(axes, turned), angles, rtol=0, atol=1e-13)
    x = np.cross(axes, unit_vectors(3, (20, 3)))
    y = np.cross(axes, x)
    out = np.einsum("nij,nj->ni", turned, x)
    expected = np.cos(angles)[:, None] * x + np.sin(angles)[:, None] * y
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14)  # right-handed


def test_quaternion_from_matrix_at_all_angles_and_half_turns():
    p = np.asarray(unit_vectors(4, (500, 4)))
    axes = np.asarray(unit_vectors(5, (300, 3)))
    axes = np.concatenate([axes, np.eye(3), -np.eye(3), [[0.6, 0.8, 0.0], [0.0, -0.6, 0.8]]])
    for e0 in (0.0, 1e-300, 1e-12, 1e-6):  # at and near half turns
        half = np.concatenate([np.full((len(axes), 1), e0), np.sqrt(1 - e0**2) * axes], axis=1)
        p = np.concatenate([p, half])
    found = np.asarray(from_matrix(matrix(jnp.asarray(p))))
    assert (found[:, 0] >= 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.abs(np.sum(found * p, axis=1)), 1.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        matrix(jnp.asarray(found)), matrix(jnp.asarray(p)), rtol=0, atol=2e-15
    )


@pytest.mark.parametrize("e0", [0.3, 0.0])
def test_quaternion_from_matrix_has_finite_derivatives(e0):
    axis = np.array([0.6, 0.0, 0.8])
    p = jnp.asarray(np.concatenate([[e0], np.sqrt(1 - e0**2) * axis]))
    spin = jnp.array([0.2, -0.5, 0.3])

    @jax.jit
    def read_back(s):
        return rot.quaternion_from_matrix(rot.rotation_matrix(p + s * rot.quaternion_rate(p, spin)))

    rate = jax.jvp(read_back, (1e-9,), (1.0,))[1]
    expected = rot.quaternion_rate(p, spin)
    sign = np.sign(expected[0]) if e0 == 0.0 else 1.0
    np.testing.assert_allclose(rate, sign * expected, rtol=0, atol=1e-7)


def test_quaternion_rate_is_the_angular_velocity_in_reference_axes():
    p, spin = unit_vectors(6, (4,)), jnp.array([0.4, -1.2, 0.7])
    r, r_rate = jax.jvp(rot.rotation_matrix, (p,), (rot.quaternion_rate(p, spin),))
    np.testing.assert_allclose(r_rate, rot.skew(spin) @ r, rtol=0, atol=1e-14)


def test_quaternion_step_is_first_order_and_never_flips():
    p = jnp.array([-0.5, 0.5, 0.5, 0.5])
    errors = []
    for h in (1e-2, 5e-3):
        turn = h * jnp.array([1.0, -2.0, 0.5])
        step = rot.quaternion_step(p, turn)
        assert float(step @ p) > 0.99 and abs(float(step @ step) - 1.0) < 1e-15
        angle = jnp.linalg.norm(turn)
        exact = rot.axis_rotation(turn / angle, angle) @ rot.rotation_matrix(p)
        errors.append(float(jnp.abs(rot.rotation_matrix(step) - exact).max()))
    assert errors[0] / errors[1] > 3.5  # at least second order in one step


def test_gibbs_vector_and_alignment_have_no_false_zero():
    axis = unit_vectors(7, (3,))

    def check(found, angle):
        # The denominator 4 cos²(angle/2) carries the rounding of numbers of size one.
        rtol = 16 * np.finfo(float).eps * (1 + np.tan(angle / 2) ** 2)
        exact = 2 * np.tan(angle / 2) * np.asarray(axis)
        np.testing.assert_allclose(found, exact, rtol=rtol, atol=1e-15)

    for angle in (1e-8, 1e-3, 1.0, 2.5, 3.0, np.pi - 1e-3, -2.0):
        g = rot.gibbs_vector(rot.axis_rotation(axis, jnp.asarray(angle)))
        check(g, angle)
    side = rot.perpendicular_pair(axis)[0]
    for angle in (1e-8, 1.0, 3.0, np.pi - 1e-3):
        b = np.cos(angle) * side + np.sin(angle) * rot.cross(axis, side)
        check(rot.alignment(side, b), angle)


def test_half_turns_are_never_taken_for_the_identity():
    """At the half turn itself: large or not finite, never small."""
    axes = unit_vectors(8, (200, 3))
    half = matrix(jnp.concatenate([jnp.zeros((200, 1)), axes], axis=1))
    for found in (jax.vmap(rot.alignment)(axes, -axes), jax.vmap(rot.gibbs_vector)(half)):
        small = np.abs(found).max(axis=1) < 1e3  # false for NaN
        assert not small.any(), f"{small.sum()} of 200 half turns have a small residual"


def test_perpendicular_pair_is_orthonormal_and_right_handed():
    axes = jnp.concatenate([unit_vectors(9, (500, 3)), jnp.eye(3), -jnp.eye(3)])
    e1, e2 = jax.vmap(rot.perpendicular_pair)(axes)
    basis = np.stack([axes, e1, e2], axis=1)
    np.testing.assert_allclose(
        basis @ basis.transpose(0, 2, 1), np.tile(np.eye(3), (len(axes), 1, 1)), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(np.linalg.det(basis), 1.0, rtol=0, atol=1e-12)


def test_perpendicular_pair_does_not_jump():
    """Axes that pass all coordinate planes and axes: neighbours have neighbouring pairs."""
    pair = jax.jit(jax.vmap(lambda a: jnp.stack(rot.perpendicular_pair(a))))
    angles = jnp.linspace(0.0, 2 * jnp.pi, 4001)
    zero = 0.0 * angles
    c, s = jnp.cos(angles), jnp.sin(angles)
    for circle in ((c, s, zero), (zero, c, s), (s, zero, c), (c, s / 2**0.5, s / 2**0.5)):
        pairs = pair(jnp.stack(circle, axis=1))
        assert np.abs(np.diff(pairs, axis=0)).max() < 20 * (angles[1] - angles[0])


def test_the_papers_rate_form_of_the_ball_joint():
    """ω = G* ė with G* = (B + 1)/e0 (Hanzaki 2009, corrected), for ė of a unit quaternion."""
    for p in unit_vectors(10, (20, 4)):
        spin = jnp.array([0.3, -0.8, 1.1])
        rate = rot.quaternion_rate(p, spin)
        g_star = (rot.rotation_matrix(p) + jnp.eye(3)) / p[0]
        np.testing.assert_allclose(
            g_star @ rate[1:], spin, rtol=0, atol=1e-12 / float(abs(p[0])) ** 2
        )
