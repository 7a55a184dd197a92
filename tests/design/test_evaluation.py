"""Goals with their derivatives, what is taken of scatter, and bounds, against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.design import (
    AtLeast,
    AtMost,
    Between,
    Bounded,
    Deviation,
    Equals,
    Evaluation,
    InRange,
    Mean,
    Optimum,
    Quantile,
    Scatter,
    Statistic,
    Tail,
    Unknowns,
    Variance,
)
from jaxmbd.sampling import Normal

PAIR = Unknowns.of(None, {"a": Between(-2.0, 2.0), "b": Between(-1.0, 3.0)})
X = np.array([[0.1, -0.4], [0.5, 0.2], [-0.3, 0.7]])
SCALED = dict(zip("ab", PAIR.numbers(X).T, strict=True))


def test_values_and_derivatives_of_goals():
    goals = {"product": lambda x: x["a"] * x["b"] ** 2, "pair": lambda x: jnp.sin(x["a"]) * X[0]}
    found = Evaluation(PAIR, goals)
    a, b = SCALED["a"], SCALED["b"]
    rows = np.stack([a * b**2, X[0, 0] * np.sin(a), X[0, 1] * np.sin(a)], axis=1)
    np.testing.assert_allclose(found.values(X), rows, rtol=1e-14)
    by_a = np.stack([b**2, X[0, 0] * np.cos(a), X[0, 1] * np.cos(a)], axis=1)
    by_b = np.stack([2.0 * a * b, 0.0 * a, 0.0 * a], axis=1)
    slopes = np.stack([by_a, by_b], axis=2) * PAIR.scale
    np.testing.assert_allclose(found.jacobians(X)[1], slopes, rtol=1e-14)
    np.testing.assert_allclose(found.gradients(X)[1], slopes[:, 0], rtol=1e-14)
    weights = np.tile([1.0, 0.0, 3.0], (3, 1))
    entries = [[-3.0 * X[0, 1] * np.sin(a), 2.0 * b], [2.0 * b, 2.0 * a]]
    expected = np.moveaxis(entries, 2, 0) * np.outer(PAIR.scale, PAIR.scale)
    np.testing.assert_allclose(found.hessians(X, weights)[0], expected, rtol=1e-13)


def test_any_number_of_designs():
    found = Evaluation(PAIR, {"sum": lambda x: x["a"] + 2.0 * x["b"]})
    for count in (1, 5, 70, 2100):
        x = np.random.default_rng(count).uniform(-1.0, 1.0, (count, 2))
        np.testing.assert_allclose(found.values(x)[:, 0], PAIR.numbers(x) @ [1.0, 2.0], atol=1e-14)


def test_cases_stand_side_by_side():
    powers = {"power": np.array([1.0, 2.0, 3.0])}
    found = Evaluation(
        PAIR, {"y": "y"}, lambda x, case: {"y": x["a"] + x["b"] * case["power"]}, cases=powers
    )
    values, slopes = found.jacobians(X)
    expected = SCALED["a"][:, None] + SCALED["b"][:, None] * powers["power"]
    np.testing.assert_allclose(values, expected, rtol=1e-14)
    np.testing.assert_allclose(slopes[0], np.stack([np.ones(3), powers["power"]], 1) * PAIR.scale)


SAMPLES = np.random.default_rng(0).normal(size=(41, 3))


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (Mean(), SAMPLES.mean(axis=0)),
        (Mean(-1.5), SAMPLES.mean(axis=0) - 1.5 * SAMPLES.std(axis=0, ddof=1)),
        (Deviation(), SAMPLES.std(axis=0, ddof=1)),
        (Variance(), SAMPLES.var(axis=0, ddof=1)),
        (Quantile(0.93), np.quantile(SAMPLES, 0.93, axis=0)),
        (Quantile(1.0), SAMPLES.max(axis=0)),
        (Tail(0.1), np.sort(SAMPLES, axis=0)[-4:].mean(axis=0)),
        (Tail(0.1, smallest=True), np.sort(SAMPLES, axis=0)[:4].mean(axis=0)),
    ],
    ids=str,
)
def test_statistics_of_samples_and_their_derivatives(statistic, expected):
    np.testing.assert_allclose(statistic.of(jnp.asarray(SAMPLES)), expected, rtol=1e-12)
    way, h = np.random.default_rng(1).normal(size=SAMPLES.shape), 1e-6
    slope = jax.jvp(statistic.of, (jnp.asarray(SAMPLES),), (jnp.asarray(way),))[1]
    ends = [statistic.of(jnp.asarray(SAMPLES + s * way)) for s in (h, -h)]
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2.0 * h), rtol=0, atol=1e-8)


def test_the_deviation_of_what_does_not_scatter_has_no_slope():
    assert np.array_equal(jax.jacfwd(Deviation().of)(jnp.ones((5, 2))), np.zeros((2, 5, 2)))
    for wrong in (lambda: Tail(0.0), lambda: Quantile(1.1)):
        with pytest.raises(ValueError, match="share"):
            wrong()


class Spread(Statistic):
    """Largest less smallest."""

    def of(self, samples):
        return jnp.max(samples, axis=0) - jnp.min(samples, axis=0)


def test_a_statistic_of_ones_own():
    path, model = "bodies/bob/mass", mbd.zoo.simple_pendulum()
    scatter = Scatter({path: Normal(0.1, relative=True)}, samples=16)

    def mass(m):
        return m.bodies["bob"].mass

    limit = {"spread": AtMost(mass, 0.9, over=Spread())}
    vary = {path: Between(0.5, 8.0)}
    found = mbd.minimize(
        lambda m: -mass(m), model, vary, scatter=scatter, constraints=limit, over=Mean()
    )
    factors = scatter.drawn(model)[path]
    np.testing.assert_allclose(found.values[path], 0.9 / np.ptp(factors), rtol=1e-8)


def test_bounds_of_all_kinds_hold_and_have_a_price():
    assert AtMost("x", 3.0) == Bounded("x", -np.inf, 3.0)
    assert (InRange("x", 1.0, 2.0).lower, Equals("x", 1.0).upper) == (1.0, 1.0)
    assert AtLeast("x", 3.0, over=Tail(0.1)).over == Tail(0.1, smallest=True)
    with pytest.raises(ValueError, match="from 2.0 to 1.0"):
        InRange("x", 2.0, 1.0)
    vary = {"a": Between(-3.0, 3.0, start=0.3), "b": Between(-3.0, 3.0, start=0.1)}
    found = mbd.minimize(
        lambda x: (x["a"] - 4.0) ** 2 + x["b"] ** 2,
        None,
        vary,
        constraints={
            "both": InRange(lambda x: jnp.stack([x["a"], x["b"]]), [-1.0, 0.5], [2.0, 1.0])
        },
    )
    assert isinstance(found, Optimum) and found.status == "optimal"
    assert found.values == pytest.approx({"a": 2.0, "b": 0.5}, rel=1e-9)
    assert found.multipliers["both[0]"] == pytest.approx(-4.0, rel=1e-7)
    assert found.multipliers["both[1]"] == pytest.approx(1.0, rel=1e-7)
    assert found.objective == pytest.approx(4.25) and found.objective_before == pytest.approx(13.70)
    assert "binds, multiplier -4" in str(found) and "optimal, KKT residual" in str(found)
