"""Correlated inputs: as drawn, within three standard errors of what was asked; what cannot be."""

import re

import numpy as np
import pytest
from scipy import stats

from jaxmbd.sampling import (
    Choice,
    Covariance,
    Empirical,
    LogNormal,
    MonteCarlo,
    Normal,
    RankCorrelation,
    Saltelli,
    Sampler,
    Sobol,
    TruncatedNormal,
    Uniform,
)

COUNT = 40_000
# Standard error of a correlation coefficient is at most 1/√n, less if it is far from zero.
THREE_ERRORS = 3.0 / np.sqrt(COUNT)


def test_a_covariance_is_drawn():
    wanted = np.array([[4.0, 1.5, -0.6], [1.5, 1.0, 0.0], [-0.6, 0.0, 0.25]])
    inputs = {"p": ([1.0, 2.0, 3.0], None), "a": (5.0, None), "u": (0.0, Uniform(1.0))}
    sampler = Sampler(inputs, count=COUNT, correlation=Covariance(["a", "p/z", "p/x"], wanted))
    assert not sampler.problems()
    drawn = sampler.draw(0, COUNT)
    x = np.stack([drawn["a"], drawn["p"][:, 2], drawn["p"][:, 0], drawn["u"]])
    errors = np.sqrt((wanted**2 + np.outer(np.diag(wanted), np.diag(wanted))) / COUNT)
    np.testing.assert_array_less(np.abs(np.cov(x[:3]) - wanted), 3.0 * errors)
    np.testing.assert_array_less(
        np.abs(x[:3].mean(axis=1) - [5.0, 3.0, 1.0]), 3.0 * np.sqrt(np.diag(wanted) / COUNT)
    )
    assert np.all(np.abs(np.corrcoef(x)[3, :3]) < THREE_ERRORS)
    np.testing.assert_array_equal(drawn["p"][:, 1], 2.0)


def test_a_matrix_of_rank_correlations_is_its_pairs():
    matrix = [[1.0, 0.5, 0.0], [0.5, 1.0, -0.2], [0.0, -0.2, 1.0]]
    pairs = {("a", "b"): 0.5, ("a", "c"): 0.0, ("b", "c"): -0.2}
    assert RankCorrelation.of_matrix("abc", matrix) == RankCorrelation(pairs)
    with pytest.raises(ValueError, match="ones on its diagonal"):
        RankCorrelation.of_matrix("ab", [[1.0, 0.5], [0.5, 2.0]])


@pytest.mark.parametrize("design", [MonteCarlo(), Sobol()], ids=repr)
def test_rank_correlations_of_any_distributions_are_drawn(design):
    """Of normal, truncated and discrete inputs; moments stay those of each distribution."""
    kinds = {
        "normal": (1.0, Normal(0.2)),
        "truncated": (1.0, TruncatedNormal(0.5, 0.3)),
        "log": (1.0, LogNormal(0.5)),
        "choice": (2.0, Choice([1.0, 2.0, 3.0], [0.5, 0.2, 0.3])),
        "coin": (0.0, Choice([0.0, 1.0])),
        "measured": (0.0, Empirical([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])),
    }
    pairs = {
        ("normal", "truncated"): 0.6,
        ("normal", "log"): -0.4,
        ("truncated", "choice"): 0.5,
        ("choice", "measured"): 0.3,
        ("coin", "measured"): -0.5,
    }
    sampler = Sampler(kinds, design, count=COUNT, seed=3, correlation=pairs)
    assert not sampler.problems()
    drawn = sampler.draw(0, COUNT)
    for (a, b), rho in pairs.items():
        found = stats.spearmanr(drawn[a], drawn[b]).statistic
        assert found == pytest.approx(rho, abs=THREE_ERRORS), (a, b)
    alone = Sampler(kinds, design, count=COUNT, seed=4).draw(0, COUNT)
    for name, (nominal, given) in kinds.items():
        assert stats.ks_2samp(drawn[name], alone[name]).pvalue > 1e-3, name
        std = given.std(np.array(nominal))
        assert drawn[name].mean() == pytest.approx(alone[name].mean(), abs=4.3 * std / COUNT**0.5)


def test_log_normal_values_below_zero_rise_with_what_they_are_correlated_with():
    sampler = Sampler(
        {"x": (-10.0, LogNormal(0.2)), "y": (1.0, Normal(0.1))},
        count=COUNT,
        correlation={("x", "y"): 0.8},
    )
    drawn = sampler.draw(0, COUNT)
    assert abs(stats.spearmanr(drawn["x"], drawn["y"]).statistic - 0.8) < THREE_ERRORS
    logs = np.log(-drawn["x"] / 10.0)
    assert abs(logs.mean()) < 3.0 * 0.2 / np.sqrt(COUNT)
    assert abs(logs.std() - 0.2) < 3.0 * 0.2 / np.sqrt(2.0 * COUNT)


def test_a_common_shift_is_exact():
    inputs = {n: (0.0, Normal(s)) for n, s in {"a": 1.0, "b": 2.0, "c": 1.0}.items()}
    pairs = {("a", "b"): 1.0, ("b", "c"): -1.0, ("a", "c"): -1.0}
    drawn = Sampler(inputs, count=100, correlation=pairs).draw(0, 100)
    np.testing.assert_allclose(drawn["b"], 2.0 * drawn["a"])
    np.testing.assert_allclose(drawn["c"], -drawn["a"])


def test_the_covariance_is_that_of_what_is_drawn():
    """Of every kind of distribution, and of arrays drawn as a whole, which share their number."""
    inputs = {
        "normal": (1.0, Normal(0.2)),
        "truncated": (1.0, TruncatedNormal(0.5, 0.3)),
        "log": (1.0, LogNormal(0.5)),
        "choice": (2.0, Choice([1.0, 2.0, 3.0], [0.5, 0.2, 0.3])),
        "rows": ([0.0, 0.0], Choice([[1.0, 2.0], [3.0, -1.0], [4.0, 4.0]], [0.2, 0.3, 0.5])),
        "u": ([0.0, 0.0], Uniform([1.0, 2.0])),
    }
    pairs = {("normal", "truncated"): 0.5, ("normal", "log"): -0.4, ("truncated", "choice"): 0.7}
    sampler = Sampler(inputs, Sobol(), count=2**17, correlation=pairs | {("rows", "u/0"): 0.5})
    assert not sampler.independent
    found = sampler.covariance()
    drawn = sampler.draw(0, sampler.count)
    x = np.concatenate([drawn[n].reshape(sampler.count, -1) for n in inputs], axis=1)
    std = x.std(axis=0)
    errors = np.abs(np.array(found.matrix) - np.cov(x.T)) / np.outer(std, std)
    assert found.names[4:6] == ("rows/0", "rows/1") and errors.max() < 3e-3
    again = Sampler(inputs, Sobol(), count=2**17, correlation=sampler.rank_correlation())
    np.testing.assert_allclose(again.covariance().matrix, found.matrix, rtol=0, atol=1e-9)
    uniform = Sampler({"a": (0.0, Uniform(1.0)), "b": (0.0, Uniform(3.0))}, count=2)
    assert uniform.independent and uniform.rank_correlation() is None


def test_covariances_in_closed_form():
    """Pearson's coefficient of uniform inputs is Spearman's; that of log-normal ones is known."""
    inputs = {n: (1.0, d) for n, d in (("a", Uniform(1.0)), ("b", Uniform(3.0)))}
    found = Sampler(inputs, count=2, correlation={("a", "b"): 0.7}).covariance()
    np.testing.assert_allclose(found.matrix, [[1 / 3, 0.7], [0.7, 3.0]], rtol=1e-6)
    inputs = {n: (1.0, LogNormal(s)) for n, s in (("a", 0.4), ("b", 0.6))}
    found = Sampler(inputs, count=2, correlation={("a", "b"): 0.7}).covariance()
    r = 2.0 * np.sin(np.pi * 0.7 / 6.0)
    expected = np.exp(0.5 * (0.4**2 + 0.6**2)) * np.expm1(r * 0.4 * 0.6)
    assert found.matrix[0][1] == pytest.approx(expected, rel=1e-9)


def test_strong_correlations_of_repeated_values():
    """The largest possible one is drawn too, and what is larger is refused with that number."""
    inputs = {"coin": (0.0, Choice([0.0, 1.0])), "x": (0.0, Uniform(1.0))}
    limit = np.sqrt(0.75)  # of a fair coin and a continuum: cov 1/8, variances 1/16 and 1/12
    for rho in (0.5, 0.85, 0.86, -0.86):
        sampler = Sampler(inputs, count=COUNT, correlation={("coin", "x"): rho})
        drawn = sampler.draw(0, COUNT)
        assert stats.spearmanr(drawn["coin"], drawn["x"]).statistic == pytest.approx(
            rho, abs=THREE_ERRORS / 2
        )
    (problem,) = Sampler(inputs, count=9, correlation={("coin", "x"): 0.9}).problems()
    assert f"at most {limit:.3f}" in problem


def test_correlations_that_contradict_each_other_name_the_pair_and_the_cure():
    inputs = {n: (0.0, Normal(1.0)) for n in "abcd"}
    pairs = {("a", "b"): 0.9, ("b", "c"): 0.9, ("a", "c"): -0.5, ("c", "d"): 0.1}
    (problem,) = Sampler(inputs, count=9, correlation=pairs).problems()
    named = re.search(r"that of (.) and (.) is (\S+); .* may be (\S+) to (\S+)", problem)
    assert named, problem
    pair, (given, low, high) = named.group(1, 2), (float(x) for x in named.group(3, 4, 5))
    assert pairs[pair] == given
    for value, allowed in [(low + 2e-3, True), (high - 2e-3, True), (high + 2e-3, False)]:
        sampler = Sampler(inputs, count=9, correlation={**pairs, pair: value})
        assert (not sampler.problems()) == allowed


@pytest.mark.parametrize(
    ("correlation", "says"),
    [
        ({("a", "bb"): 0.1}, "'bb', which is no input that scatters; did you mean 'b'"),
        ({("a", "p"): 0.1}, "several numbers: say which, p/x, p/y, p/z"),
        ({("a", "fixed"): 0.1}, "'fixed', which has no distribution"),
        ([{("a", "b"): 0.1}, {("b", "a"): 0.1}], "b and a is given twice"),
        (Covariance(["a", "fixed"], np.eye(2)), "a has a distribution and a covariance"),
        (Covariance(["fixd"], [[1.0]]), "did you mean 'fixed'"),
        (Covariance(["fixed"], np.eye(2)), "covariance of 1 numbers has 2 rows"),
        (Covariance(["fixed", "fixed"], np.eye(2)), "names a number twice"),
    ],
)
def test_correlations_that_name_the_wrong_are_problems(correlation, says):
    inputs = {
        "a": (0.0, Normal(1.0)),
        "b": (0.0, Normal(1.0)),
        "p": ([0.0, 0.0, 0.0], Normal(1.0)),
        "fixed": (1.0, None),
    }
    assert says in "\n".join(Sampler(inputs, count=9, correlation=correlation).problems())


def test_a_correlation_is_between_minus_one_and_one():
    with pytest.raises(ValueError, match="between -1 and 1: a – b: 1.2"):
        RankCorrelation({("a", "b"): 1.2})
    inputs = {n: (0.0, Normal(1.0)) for n in "ab"}
    problems = Sampler(inputs, Saltelli(8), correlation={("a", "b"): 0.5}).problems()
    assert "independent inputs" in problems[0]


@pytest.mark.parametrize("steps", [None, np.array([0.3, 0.7, 1.0])])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_one_number_in_two_inputs_correlates_by_one_at_most(steps, sign):
    from jaxmbd.sampling.correlation import rank_correlation

    for r in (sign, sign * (1.0 + 1e-15)):
        found = rank_correlation(r, None, None)
        assert abs(found) <= 1.0 and abs(found - sign) < 1e-12
        assert abs(rank_correlation(r, steps, steps)) <= 1.0
