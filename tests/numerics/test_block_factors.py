"""Factors of matrices with zero blocks: those of the full matrix, in constant work per block."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import lanes
from jaxmbd.numerics import tolerances
from jaxmbd.numerics.blocks import (
    BlockRows,
    Sparsity,
    block_ldlt,
    filled,
    largest,
    normal_pattern,
    squared_rows,
)
from jaxmbd.numerics.factorisations import ldlt_rank_revealing

TOLERANCE = tolerances.redundancy(np.float64)


def chain(rng, count, *, redundant=True, arrow=False):
    """Random rows, each block of which touches two neighbouring groups of columns.

    In every block but the last some rows are zero, others combinations of rows before, of the
    block before too. With `arrow` the last block touches all groups.
    """
    columns = tuple(range(2 * k, 2 * k + 2) for k in range(count + 1))
    touched = [(k, k + 1) for k in range(count)] + [tuple(range(count + 1))] * arrow
    sizes = [int(n) for n in rng.integers(2, 5, len(touched))]
    ends = np.cumsum(sizes)
    rows = tuple(range(e - n, e) for e, n in zip(ends, sizes, strict=True))
    blocks = [rng.normal(size=(n, 2 * len(t))) for n, t in zip(sizes, touched, strict=True)]
    for k in range(1, count) if redundant else ():
        shared = blocks[k - 1][:1].copy()
        shared[:, :2] = 0.0  # depends on the group that both blocks touch, and on no other
        blocks[k - 1][:1] = shared
        blocks[k][0, :2], blocks[k][0, 2:] = 2.0 * shared[0, 2:], 0.0
        blocks[k][1] = 0.0 if k % 3 == 0 else blocks[k][1]
    pairs = [
        (i, j)
        for i, a in enumerate(touched)
        for j, b in enumerate(touched)
        if not set(a).isdisjoint(b)
    ]
    sparsity = Sparsity(columns, rows, tuple(touched), filled(sizes, pairs))
    return BlockRows(tuple(jnp.asarray(b) for b in blocks), sparsity)


@lanes.jit
def factors(rows, weight):
    gram = rows.gram(weight)
    pattern = rows.sparsity.gram
    return block_ldlt(gram, pattern, squares=squared_rows(rows), tolerance=TOLERANCE)


@lanes.jit
def full_factors(rows, weight):
    a = rows.array()
    gram = (a / weight) @ a.T
    return gram, ldlt_rank_revealing(gram, squares=jnp.sum(a * a, axis=1))


@lanes.jit
def solution(k, b):
    return k.solve(b)


@lanes.jit
def minimum_norm(k, x):
    return k.minimum_norm(x)


@pytest.mark.parametrize("arrow", [False, True], ids=["chain", "arrow"])
@pytest.mark.parametrize("seed", range(4))
def test_block_rows_are_the_matrix(seed, arrow):
    rng = np.random.default_rng(seed)
    rows = chain(rng, 5, arrow=arrow)
    a = np.asarray(rows.array())
    x, y = rng.normal(size=(a.shape[1], 2)), rng.normal(size=(a.shape[0], 2))
    np.testing.assert_allclose(rows @ jnp.asarray(x), a @ x, rtol=0, atol=1e-13)
    np.testing.assert_allclose(rows.T @ jnp.asarray(y), a.T @ y, rtol=0, atol=1e-13)
    assert (rows.shape, rows.T.shape) == (a.shape, a.T.shape)
    np.testing.assert_allclose(squared_rows(rows), (a * a).sum(axis=1), rtol=1e-14)
    assert float(largest(rows)) == abs(a).max()
    scale = rng.uniform(1, 2, len(a))
    np.testing.assert_allclose(rows.scaled(jnp.asarray(scale)).array(), scale[:, None] * a)


@pytest.mark.parametrize("arrow", [False, True], ids=["chain", "arrow"])
@pytest.mark.parametrize("spread", [0.0, 4.0], ids=["alike", "unequal"])
@pytest.mark.parametrize("seed", range(4))
def test_the_same_rows_are_kept_and_the_solutions_agree(seed, spread, arrow):
    rng = np.random.default_rng(seed)
    rows = chain(rng, 6, arrow=arrow)
    weight = jnp.asarray(10.0 ** rng.uniform(-spread, spread, rows.shape[1]))
    gram, full = full_factors(rows, weight)
    k = factors(rows, weight)
    assert not np.asarray(k.kept).all()
    np.testing.assert_array_equal(k.kept, full.kept)
    assert (abs(k.pivots - full.pivots) <= 1e-9 * jnp.diagonal(gram)).all()
    b = gram @ rng.normal(size=(len(gram), 2))
    size = abs(np.asarray(b)).max()
    x = np.asarray(solution(k, b))
    np.testing.assert_allclose(gram @ x, b, rtol=0, atol=1e-11 * size)
    np.testing.assert_array_equal(x[~np.asarray(k.kept)], 0.0)


@pytest.mark.parametrize("arrow", [False, True], ids=["chain", "arrow"])
@pytest.mark.parametrize("spread", [0.0, 4.0], ids=["alike", "unequal"])
@pytest.mark.parametrize("seed", range(4))
def test_solutions_of_least_norm_are_those_of_the_pseudoinverse(seed, spread, arrow):
    rng = np.random.default_rng(seed)
    rows = chain(rng, 6, arrow=arrow)
    weight = jnp.asarray(10.0 ** rng.uniform(-spread, spread, rows.shape[1]))
    k, a = factors(rows, weight), np.asarray(rows.array())
    x = np.where(k.kept, rng.normal(size=len(a)), 0.0)
    found = np.asarray(minimum_norm(k, x))
    rounding = 3e-13 * 10.0**spread
    right = np.linalg.pinv(a.T, rcond=1e-10) @ (a.T @ x)
    np.testing.assert_allclose(found, right, rtol=0, atol=rounding)
    np.testing.assert_allclose(a.T @ found, a.T @ x, rtol=0, atol=rounding * abs(x).max())


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_are_not_redundant_keep_their_solution(seed):
    rng = np.random.default_rng(seed)
    rows = chain(rng, 6, redundant=False)
    rows = BlockRows(
        tuple(b[:2] for b in rows.blocks),
        rows.sparsity._replace(
            rows=tuple(range(2 * k, 2 * k + 2) for k in range(6)),
            gram=rows.sparsity.gram._replace(sizes=(2,) * 6),
        ),
    )
    k = factors(rows, jnp.asarray(10.0 ** rng.uniform(-4, 4, rows.shape[1])))
    assert np.asarray(k.kept).all()
    x = rng.normal(size=12)
    np.testing.assert_allclose(minimum_norm(k, x), x, rtol=1e-12, atol=1e-13)


def test_symbolic_factorisation_finds_the_fill():
    """Entries (2, 0) and (1, 0) fill (2, 1); nothing else is filled."""
    p = filled((1, 2, 1, 3), [(0, 1), (0, 2), (3, 2)])
    assert p.below == ((1, 2), (2,), (3,), ())
    assert p.multiplications == 4**2 + (3**2 + 2**2) + 4**2 + (3**2 + 2**2 + 1)
    # Columns of L with a common row: (0, 1), (0, 2), (1, 2), (2, 3).
    assert normal_pattern(p).below == p.below
    arrow = filled((1,) * 4, [(3, k) for k in range(3)])
    assert arrow.below == ((3,), (3,), (3,), ())
    assert normal_pattern(arrow).below == ((1, 2, 3), (2, 3), (3,), ())
