"""Functions given by points, against SciPy's interpolation and finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, interp1d

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.model import prepared


def drawn():
    """Numbers that do not depend on which other tests run."""
    return np.random.default_rng(3)


def points(n, even):
    rng, t = drawn(), np.linspace(-1.0, 2.0, n)
    if not even:
        t += rng.uniform(-1.2, 1.2, n) / (n - 1)
    return t, rng.normal(size=(n, 2))


@pytest.mark.parametrize(
    ("n", "even"),
    [(2, True), (3, False), (60, True)]
    + [pytest.param(*x, marks=pytest.mark.slow) for x in ((4, True), (60, False))],
)
def test_values_and_rates_are_scipys(n, even):
    t, y = points(n, even)
    inside = np.concatenate([t, drawn().uniform(t[0], t[-1], 60)])
    cubic, spline = mbd.Sampled(t, y, "cubic"), CubicSpline(t, y)
    of = np.abs(spline(inside, 2)).max() + np.abs(spline(inside, 1)).max() + 1.0
    np.testing.assert_allclose(cubic(inside), spline(inside), rtol=0, atol=1e-13 * of)
    rate = jax.jit(jax.vmap(jax.jacfwd(cubic)))(inside)
    np.testing.assert_allclose(rate, spline(inside, 1), rtol=0, atol=1e-13 * of)
    bend = jax.jit(jax.vmap(jax.jacfwd(jax.jacfwd(cubic))))(inside)
    np.testing.assert_allclose(bend[n:], spline(inside[n:], 2), rtol=0, atol=1e-11 * of)
    lines, steps = mbd.Sampled(t, y), mbd.Sampled(t, y, "hold")
    np.testing.assert_allclose(
        lines(inside), interp1d(t, y, axis=0)(inside), rtol=1e-12, atol=1e-13
    )
    np.testing.assert_array_equal(steps(inside), interp1d(t, y, kind="previous", axis=0)(inside))


@pytest.mark.parametrize("kind", ["hold", "linear", "cubic"])
def test_points_are_met_and_the_ends_held(kind):
    t, y = points(12, False)
    given = mbd.Sampled(t, y, kind)
    np.testing.assert_array_equal(given(t), y)
    np.testing.assert_array_equal(given([t[0] - 1.0, t[-1] + 1e3]), y[[0, -1]])
    rate = jax.vmap(jax.jacfwd(given))(np.array([t[0] - 1.0, t[-1] + 1.0]))
    np.testing.assert_array_equal(rate, 0.0)
    assert np.all(np.isnan(given(np.nan))) or kind == "hold"
    assert float(mbd.Sampled([0.5], [7.0], kind)(3.0)) == 7.0


def test_rates_at_the_points_and_jumps():
    lines = mbd.Sampled([0.0, 1.0, 3.0], [0.0, 2.0, 0.0])
    rate, second = jax.grad(lines), jax.grad(jax.grad(lines))
    assert [float(rate(t)) for t in (0.0, 0.5, 1.0, 2.0, 3.0)] == [2.0, 2.0, -1.0, -1.0, -1.0]
    assert [float(second(t)) for t in (0.5, 1.0)] == [0.0, 0.0]


@pytest.mark.parametrize("kind", ["hold", "linear", "cubic"])
def test_derivatives_by_values_and_times(kind):
    t, y = points(9, False)
    y, at = y[:, 0], drawn().uniform(t[0] - 0.1, t[-1] + 0.1, 20)

    def total(t, y, at):
        return jnp.sum(jnp.cos(3.0 * at) * mbd.Sampled(t, y, kind)(at))

    found = jax.jit(jax.grad(total, (0, 1)))(t, y, at)
    for k, x in enumerate((t, y)):
        for i in range(len(x)):
            step = 1e-6 * np.eye(len(x))[i]
            moved = [[t, y, at], [t, y, at]]
            moved[0][k], moved[1][k] = x + step, x - step
            slope = (total(*moved[0]) - total(*moved[1])) / 2e-6
            np.testing.assert_allclose(found[k][i], slope, rtol=0, atol=2e-7)


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("kind", ["hold", "linear", "cubic"])
def test_kernels_vmap_and_loops_agree(kind, even):
    t, _ = points(40, even)
    y, at = drawn().normal(size=(5, 40)), drawn().uniform(-1.2, 2.2, 5)

    def both(t, y, at):
        return jax.value_and_grad(lambda y: jnp.sin(mbd.Sampled(t, y, kind)(at)) + y[0])(y)

    found = [jax.jit(f(both, (None, 0, 0)))(t, y, at) for f in (lanes.vmap, jax.vmap)]
    for k in range(5):
        for value, slope in found:
            expected = both(t, y[k], at[k])
            np.testing.assert_allclose(value[k], expected[0], rtol=1e-12, atol=1e-13)
            np.testing.assert_allclose(slope[k], expected[1], rtol=1e-12, atol=1e-13)


def test_a_run_prepares_what_its_tree_holds():
    t, y = points(6, True)
    tree = {"cubic": mbd.Sampled(t, y, "cubic"), "lines": mbd.Sampled(t, y), "other": 1.0}
    ready = prepared(tree)
    assert ready["lines"] is tree["lines"] and ready["other"] == 1.0
    np.testing.assert_array_equal(ready["cubic"](0.3), tree["cubic"](0.3))
    np.testing.assert_array_equal(ready["cubic"].values, y)


def test_single_precision_and_text():
    t, y = (x.astype(np.float32) for x in points(6, True))
    given = mbd.Sampled(t, y, "cubic")
    assert given(jnp.float32(0.3)).dtype == np.float32
    assert repr(given) == "Sampled(6 points of shape (2,) from -1 to 2, kind='cubic')"
    assert "Spline" in repr(given.prepared())
    jax.eval_shape(lambda x: repr(mbd.Sampled(x, x)) and x, t)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 1.0], [1.0]), r"t has shape \(2,\) and values \(1,\)"),
        (([], []), "shape"),
        ((np.ones((2, 2)), np.ones((2, 2))), "inside jax.vmap"),
        (([0.0, 2.0, 1.0], np.ones(3)), "2 at index 1 is followed by 1"),
        (([0.0, 0.0], np.ones(2)), "must increase"),
        (([0.0, np.nan], np.ones(2)), "t is not finite at index 1"),
        (([0.0, 1.0], [[0.0, 1.0], [0.0, np.inf]]), "values is not finite at index 1, 1"),
        (([0.0, 1.0], np.ones(2), "spline"), "kind is 'spline'; give one of"),
    ],
)
def test_wrong_points_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        mbd.Sampled(*arguments)
