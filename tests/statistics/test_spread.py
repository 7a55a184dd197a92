"""Envelopes, convergence, capability, worst samples: against closed forms and by counting."""

import numpy as np
import pytest
from scipy import stats

from jaxmbd.sampling import Normal, Sampler
from jaxmbd.statistics import (
    Association,
    Capability,
    Convergence,
    Envelope,
    Separation,
    Worst,
    capability,
    convergence_of_mean,
    convergence_of_quantile,
    correlation_table,
    correlations,
    envelope,
    failure_counts,
    failure_map,
    proportion_interval,
    varying,
    worst,
)

RNG = np.random.default_rng(1)


def test_failed_samples_are_left_out_and_counted():
    x = np.array([1.0, 2.0, np.nan, 4.0, 100.0])
    ok = np.array([True, True, True, True, False])
    found = envelope(x, ok, levels=[0.5])
    assert (found.count, found.left_out, found.quantiles[0], found.high) == (3, 2, 2.0, 4.0)
    assert found.std == pytest.approx(np.std([1.0, 2.0, 4.0], ddof=1))
    held = capability(x, ok, high=3.0)
    assert (held.count, held.left_out, held.passed) == (3, 2, 2)
    assert (held.least, held.most) == proportion_interval(2, 5)
    assert (held.fraction, held.mean) == pytest.approx((2 / 5, 7 / 3))
    extreme = worst(x, ok, nominal=2.0, low=0.0, high=3.5)
    assert extreme[:4] == (3, 0, 3, 3) and extreme.left_out == 2
    inputs = {"a": np.arange(5.0)}
    associated = correlations(inputs, x, ok)
    assert (associated.count, associated.left_out) == (3, 2)
    for settled in (convergence_of_mean(x, ok), convergence_of_quantile(x, 0.5, ok)):
        assert (settled.counts[-1], settled.left_out) == (3, 2)
    with pytest.raises(ValueError, match="none of 5"):
        envelope(x, np.zeros(5, bool))
    with pytest.raises(ValueError, match="truth values"):
        envelope(x, np.zeros(5, int))


def test_a_yield_is_of_all_that_is_built():
    """Of parts without a value none is good, whether some, none or all have one."""
    x = np.where(np.arange(4000) < 788, np.linspace(-1.1, 1.1, 4000), np.nan)
    held = capability(x, low=-1.0, high=1.0)
    good = np.count_nonzero(np.abs(x) <= 1.0)
    assert (held.fraction, held.left_out) == (good / 4000, 3212)
    assert held.least < good / 4000 < held.most < 0.25
    none = capability(np.full(50, np.nan), low=-1.0, method="exact")
    assert (none.fraction, none.left_out, none.least) == (0.0, 50, 0.0) and np.isnan(none.mean)
    assert "yield 0.00 % (0.00 to " in str(none) and "nan" not in str(none)
    assert f": {good} of 4000 samples are within the limits; 3212 have no value" in str(held)
    assert str(held).endswith(f"; Cp {held.cp:.2f}, Cpk {held.cpk:.2f}")
    with pytest.raises(ValueError, match="no samples"):
        capability([], low=0.0)


def test_curves_have_their_quantiles_point_by_point():
    curves = RNG.normal(size=(4000, 3)) * [1.0, 2.0, 0.0] + [0.0, 5.0, 1.0]
    found = envelope(curves, levels=[0.05, 0.95])
    expected = np.array([0.0, 5.0, 1.0]) + np.outer(stats.norm.ppf([0.05, 0.95]), [1.0, 2.0, 0.0])
    # Standard error of a quantile: √(p(1 − p)/n) / density.
    error = 3.0 * np.sqrt(0.05 * 0.95 / 4000) / stats.norm.pdf(stats.norm.ppf(0.05))
    np.testing.assert_allclose(found.quantiles, expected, rtol=0, atol=2.0 * error)


def test_confidence_intervals_have_their_confidence():
    """Of many repetitions, as many intervals have the truth as they promise, within 3 errors."""
    trials, n, level = 600, 200, 0.9
    samples = RNG.exponential(size=(trials, n))
    mean = quantile = 0
    for x in samples:
        a = convergence_of_mean(x, points=3)
        b = convergence_of_quantile(x, level, points=3)
        mean += a.low[-1] < 1.0 < a.high[-1]
        quantile += b.low[-1] < -np.log(1.0 - level) < b.high[-1]
    error = np.sqrt(0.95 * 0.05 / trials)
    assert mean / trials == pytest.approx(0.95, abs=3.0 * error + 0.01)  # n = 200 of a skew one
    assert 0.95 - 3.0 * error < quantile / trials < 0.985


def test_convergence_ends_at_the_estimate_of_all():
    x = 1e6 + RNG.normal(size=5000)
    found = convergence_of_mean(x)
    assert found.counts[-1] == 5000
    assert found.estimate[-1] == pytest.approx(x.mean(), rel=1e-14)
    width = stats.norm.ppf(0.975) * x.std(ddof=1) / np.sqrt(5000)
    assert found.high[-1] - found.estimate[-1] == pytest.approx(width, rel=1e-6)
    few = convergence_of_quantile(x, 0.99)
    assert few.estimate[-1] == pytest.approx(np.quantile(x, 0.99))
    assert np.isinf(few.high[0]) and np.isfinite(few.high[-1])


def test_capability_of_a_normal_output():
    x = 10.0 + 0.1 * stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    found = capability(x, low=9.8, high=10.3)
    assert found.cp == pytest.approx(0.5 / 0.6, rel=1e-3)
    assert found.cpk == pytest.approx(2.0 / 3.0, rel=1e-3)
    assert found.fraction == pytest.approx(stats.norm.cdf(3) - stats.norm.cdf(-2), abs=1e-5)
    one = capability(x, low=9.8)
    assert np.isnan(one.cp) and one.cpk == pytest.approx(found.cpk)
    for wrong in ({}, {"low": 2.0, "high": 1.0}):
        with pytest.raises(ValueError, match="limit|less than"):
            capability(x, **wrong)


@pytest.mark.parametrize(("k", "n"), [(0, 50), (3, 50), (50, 50)])
def test_intervals_of_a_yield(k, n):
    low, high = proportion_interval(k, n, method="exact")
    assert (low == 0.0) == (k == 0) and (high == 1.0) == (k == n)
    if k > 0:
        assert stats.binom.sf(k - 1, n, low) == pytest.approx(0.025, rel=1e-6)
    if k < n:
        assert stats.binom.cdf(k, n, high) == pytest.approx(0.025, rel=1e-6)
    wilson = proportion_interval(k, n)
    assert low <= wilson[0] + 0.02 and wilson[1] <= high + 0.02


def test_correlations_find_what_drives():
    n = 20_000
    inputs = {"p": ([0.0, 0.0, 0.0], Normal(1.0)), "k": (0.0, Normal(2.0)), "c": (1.0, None)}
    drawn = Sampler(inputs, count=n).draw(0, n)
    y = 3.0 * drawn["p"][:, 1] - 2.0 * drawn["k"]
    y[::7] = np.nan
    found = correlations({**drawn, "fixed": np.ones(n)}, y, ranks=False)
    assert found.names[:2] == ("k", "p/y") and "fixed" not in found.names
    np.testing.assert_allclose(found.values[:2], [-4 / 5, 3 / 5], rtol=0, atol=found.noise)
    assert np.all(np.abs(found.values[2:]) < found.noise)
    assert found.count == np.isfinite(y).sum()
    ranks = correlations(drawn, np.exp(3.0 * drawn["k"]))
    assert ranks.values[0] == pytest.approx(1.0)


def test_a_failure_map_finds_the_input_that_fails():
    inputs = {"a": RNG.normal(size=3000), "p": RNG.normal(size=(3000, 2))}
    ok = inputs["p"][:, 1] > -1.5
    first, *others = failure_map(inputs, ok)
    assert (first.name, first.larger) == ("p/1", 0.0)
    assert first.failed < -1.5 < first.passed
    assert first.chance < 1e-10 < min(x.chance for x in others)
    expected = stats.mannwhitneyu(inputs["a"][~ok], inputs["a"][ok], method="asymptotic")
    of_a = next(x for x in others if x.name == "a")
    assert of_a.chance == pytest.approx(expected.pvalue, rel=0.01)
    assert failure_map(inputs, np.ones(3000, bool)) == []
    with pytest.raises(ValueError, match="truth values"):
        failure_map(inputs, np.where(ok, 0, 3))  # a status, which is zero of those that passed
    assert failure_counts([0, 0, 3, 1, 3], {1: "singular"}) == {"status 3": 2, "singular": 1}


def test_statistics_of_four_numbers_by_hand():
    x = [1.0, 2.0, 4.0, 9.0]
    found = envelope(x, levels=[0.5])
    assert isinstance(found, Envelope) and found[:6] == (4, 0, 4.0, np.sqrt(38 / 3), 1.0, 9.0)
    held = capability(x, low=0.0, high=8.0)
    assert isinstance(held, Capability) and (held.passed, held.fraction) == (3, 0.75)
    assert (held.cp, held.cpk) == pytest.approx((4.0 / 3.0 / held.std, 4.0 / 3.0 / held.std))
    assert worst(x, nominal=3.0, low=0.0, high=8.0) == Worst(3, 0, 3, 3, -1.0, 0)
    settled = convergence_of_mean(x, points=2)
    assert isinstance(settled, Convergence) and settled.estimate.tolist() == [4.0]
    assert settled.high - settled.low == pytest.approx(2.0 * 1.959964 * held.std / 2.0)


def test_associations_and_separations_are_those_of_scipy():
    """Also of numbers that repeat, whose ranks are shared."""
    x = RNG.normal(size=(300, 2)).round(1)
    y = x[:, 1] ** 3 + RNG.normal(size=300).round(0)
    inputs = {"p": x, "same": np.ones(300)}
    assert list(varying(inputs)) == ["p/0", "p/1"]
    for ranks, reference in ((True, stats.spearmanr), (False, stats.pearsonr)):
        found = correlation_table(inputs, {"y": y}, ranks=ranks)["y"]
        assert isinstance(found, Association) and found.names == ("p/1", "p/0")
        expected = [reference(x[:, k], y).statistic for k in (1, 0)]
        np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    ok = y < 1.0
    best = failure_map(inputs, ok)[0]
    test = stats.mannwhitneyu(x[~ok, 1], x[ok, 1], use_continuity=False, method="asymptotic")
    pairs = x[~ok, 1][:, None] - x[ok, 1]
    larger = np.mean(np.where(pairs == 0.0, 0.5, pairs > 0.0))
    medians = np.median(x[~ok, 1]), np.median(x[ok, 1])
    assert isinstance(best, Separation) and best.name == "p/1"
    assert best[1:] == pytest.approx((larger, test.pvalue, *medians), rel=1e-12)
