"""Factorisations against NumPy's."""

import jax.numpy as jnp
import numpy as np

from jaxmbd import lanes
from jaxmbd.numerics import pivoted_lu


def test_pivoted_lu_solves_any_regular_matrix():
    draw = np.random.default_rng(7)
    for n in (1, 2, 5, 9):
        a = draw.normal(size=(n, n))
        if n > 1:
            a[0, 0] = a[1, 1] = 0.0
        b = draw.normal(size=n)
        solve = lambda a, b: pivoted_lu(a).solve(b)  # noqa: E731
        for run in (solve, lanes.jit(solve, strict=True)):
            found = run(jnp.asarray(a), jnp.asarray(b))
            np.testing.assert_allclose(found, np.linalg.solve(a, b), rtol=1e-9)
    assert np.isnan(pivoted_lu(jnp.zeros((2, 2))).solve(jnp.ones(2))).all()
