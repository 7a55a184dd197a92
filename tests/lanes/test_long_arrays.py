"""Arrays too long to be held as scalars: combined with their own rows and columns."""

import jax.numpy as jnp
import numpy as np

from jaxmbd import lanes


def test_outer_products_of_rows_and_columns():
    """A product of axes of length one, as JAX writes it without broadcasting first."""
    x = np.random.default_rng(0).normal(size=(2, 40, 41))

    def eliminated(a):
        """Gaussian elimination of the first column, and the rows and columns on their own."""
        outer = a[1:, :1] / a[0, 0] * a[None, 0, 1:]
        rest = a[1:, 1:] - outer
        return jnp.sum(rest * (a[:1, 1:] + a[1:, :1]), axis=0), jnp.max(outer, axis=1)

    found = lanes.vmap(eliminated, strict=True)(x)
    for k in range(len(x)):
        for got, want in zip(found, eliminated(jnp.asarray(x[k])), strict=True):
            np.testing.assert_allclose(got[k], want, rtol=1e-12)
