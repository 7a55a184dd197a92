"""`lanes.explain`: counts of small programs that can be counted by hand."""

import jax.numpy as jnp

from jaxmbd import lanes


def test_counts():
    def fn(x, a):
        return jnp.sin(x) @ x + 0.0 * a, x[0] / 3.0

    report = lanes.explain(fn, jnp.ones(3), 1.0)
    assert isinstance(report, lanes.Explanation)
    assert report.kinds == {"mul": 1, "sin": 3, "fma": 2, "div": 1}
    assert report.operations == 7 and report.flops == 3 * 20 + 3 + 2 + 1
    assert report.asked > report.operations and report.instructions and report.unsupported is None
    assert "falls back" not in str(report)


def test_what_is_not_supported():
    report = lanes.explain(lambda x: jnp.linalg.eigvals(x), jnp.ones((3, 3)))
    assert report.unsupported is not None and "'eig'" in report.unsupported
    assert __file__ in report.unsupported, "the user's line"
    assert "falls back to XLA" in str(report)
