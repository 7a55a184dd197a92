"""Distributions: their moments, their limits, what is refused, and that descriptions say all."""

import json
import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from jaxmbd import lanes
from jaxmbd.sampling import (
    Choice,
    Covariance,
    Distribution,
    Empirical,
    FromSciPy,
    LogNormal,
    Normal,
    Sampler,
    Scaled,
    Triangular,
    TruncatedNormal,
    Uniform,
    as_distribution,
    distribution_of,
)

# One of each, about a nominal value of 2, beside the same of scipy.stats.
REFERENCES = [
    (Normal(0.3), stats.norm(2.0, 0.3)),
    (Normal(0.3, mean=1.0), stats.norm(1.0, 0.3)),
    (Normal(0.1, relative=True), stats.norm(2.0, 0.2)),
    (TruncatedNormal(0.5, 0.4), stats.truncnorm(-0.8, 0.8, 2.0, 0.5)),
    (TruncatedNormal(0.5, low=1.9), stats.truncnorm(-0.2, np.inf, 2.0, 0.5)),
    (TruncatedNormal(0.5, low=4.0, high=5.0), stats.truncnorm(4.0, 6.0, 2.0, 0.5)),
    (Uniform(0.4), stats.uniform(1.6, 0.8)),
    (Uniform(0.1, relative=True), stats.uniform(1.8, 0.4)),
    (Uniform(low=-1.0, high=3.0), stats.uniform(-1.0, 4.0)),
    (LogNormal(0.3), stats.lognorm(0.3, scale=2.0)),
    (Triangular(0.5), stats.triang(0.5, 1.5, 1.0)),
    (Triangular(low=1.0, high=5.0), stats.triang(0.25, 1.0, 4.0)),
    (Triangular(low=1.0, mode=5.0, high=5.0), stats.triang(1.0, 1.0, 4.0)),
    (Scaled(Uniform(0.4), 0.5), stats.uniform(1.8, 0.4)),
    (as_distribution(stats.weibull_min(2.0, scale=3.0)), stats.weibull_min(2.0, scale=3.0)),
]
DISCRETE = [
    Choice([3.0, 1.0, 2.0], [0.2, 0.3, 0.5]),
    Empirical([1.0, 4.0, 2.0, 2.0]),
    as_distribution(stats.binom(4, 0.3)),
]


def ids(pair):
    return repr(pair[0] if isinstance(pair, tuple) else pair)


def test_kernels_draw_the_same():
    """Whatever is not SciPy's, of numbers and of whole rows, about a nominal value per sample."""
    ours = [d for d, _ in REFERENCES if not isinstance(d, FromSciPy)]
    ours += [DISCRETE[0], DISCRETE[1], Empirical([1.0, 4.0, 2.0], offsets=True, interpolate=True)]
    ours += [Choice([[1.0, 2.0], [3.0, 4.0]], [0.3, 0.7]), Uniform((0.5, 0.1))]
    u = np.concatenate([[1e-12, 0.2, 1.0], np.linspace(0.01, 0.999, 34)])
    nominal = np.tile([2.0, 2.5], (len(u), 1))

    def drawn(u, nominal):
        shapes = [d.unit_shape((2,)) for d in ours]
        return [
            d.quantile(jnp.broadcast_to(u, s), nominal) for d, s in zip(ours, shapes, strict=True)
        ]

    u = np.clip(u, 1e-12, 1.0 - 1e-6)
    found = lanes.vmap(drawn, strict=True)(jnp.asarray(u), jnp.asarray(nominal))
    for d, x in zip(ours, found, strict=True):
        each = np.stack([u, u], 1) if d.unit_shape((2,)) else u
        expected = d.quantile(each, nominal[0])
        np.testing.assert_allclose(x, expected, rtol=1e-10, err_msg=str(d))
    with pytest.raises(TypeError, match="SciPy's, which JAX cannot trace; take one of"):
        lanes.vmap(lambda u: REFERENCES[-1][0].quantile(u, 0.0))(jnp.ones(2))


@pytest.mark.parametrize(("ours", "reference"), REFERENCES, ids=[ids(p) for p in REFERENCES])
def test_quantiles_and_deviation_are_those_of_scipy(ours, reference):
    u = np.concatenate([[1e-12, 1e-6], np.linspace(0.01, 0.99, 33), [1.0 - 1e-6]])
    nominal = np.array(2.0)
    np.testing.assert_allclose(ours.quantile(u, nominal), reference.ppf(u), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.std(nominal), reference.std(), rtol=2e-3)
    z = np.linspace(-4.0, 4.0, 9)
    expected = ours.quantile(stats.norm.cdf(z), nominal)
    np.testing.assert_allclose(ours.from_normal(z, nominal), expected, rtol=1e-9)


@pytest.mark.parametrize("ours", DISCRETE, ids=ids)
def test_discrete_values_have_their_probabilities(ours):
    u = (np.arange(10_000) + 0.5) / 10_000
    values, counts = np.unique(ours.quantile(u, np.array(0.0)), return_counts=True)
    steps = ours.steps()
    np.testing.assert_allclose(np.cumsum(counts) / 10_000, steps, rtol=0, atol=1e-4)
    expected = np.sqrt(np.cov(values, fweights=counts, ddof=0))
    np.testing.assert_allclose(ours.std(np.array(0.0)), expected, rtol=1e-3)


def test_probabilities_go_with_their_values():
    drawn = Choice([3.0, 1.0, 2.0], [0.2, 0.3, 0.5]).quantile(np.array([0.29, 0.31, 0.79, 0.81]), 0)
    assert drawn.tolist() == [1.0, 2.0, 2.0, 3.0]


def test_an_interpolated_table_keeps_its_mean():
    measured = Empirical([1.0, 4.0, 2.5], interpolate=True)
    mean = integrate.quad(lambda u: float(measured.quantile(np.array(u), 0.0)), 0, 1, limit=200)[0]
    assert mean == pytest.approx(2.5, abs=1e-6)


def test_whole_arrays_are_drawn_together():
    rows = [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]
    for given in (Choice(rows), Empirical(rows)):
        drawn = Sampler({"p": ([0.0, 0.0], given)}, count=50).draw(0, 50)["p"]
        np.testing.assert_array_equal(drawn[:, 1], 10.0 * drawn[:, 0])
        assert set(drawn[:, 0]) == {1.0, 2.0, 3.0}


def test_each_number_of_an_array_has_its_own_sigma():
    sampler = Sampler({"p": ([1.0, 2.0, 3.0], Normal([0.1, 0.2, 0.0]))}, count=20_000)
    drawn = sampler.draw(0, 20_000)["p"]
    np.testing.assert_allclose(drawn.std(axis=0), [0.1, 0.2, 0.0], rtol=3.0 / np.sqrt(40_000))
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 3.0 / np.sqrt(20_000)
    np.testing.assert_array_equal(drawn[:, 2], 3.0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Normal(-0.1), "sigma must not be negative, is -0.1"),
        (lambda: Normal(np.nan), "sigma must be finite, is nan"),
        (lambda: Normal([1.0, -1.0]), r"not be negative, is \[1.0, -1.0\]"),
        (lambda: Uniform(low=2.0, high=1.0), "low must be less than high; they are 2 and 1"),
        (lambda: Uniform(0.1, low=1.0, high=2.0), "half_width, or low and high"),
        (lambda: Uniform(), "half_width, or both"),
        (lambda: Uniform(low=1.0), "half_width, or both"),
        (lambda: TruncatedNormal(0.0, 1.0), "sigma must be positive"),
        (lambda: TruncatedNormal(1.0), "half_width, or low"),
        (lambda: TruncatedNormal(1.0, low=np.nan), "low is NaN"),
        (lambda: Triangular(low=0.0, high=1.0, mode=2.0), "mode must lie between"),
        (lambda: LogNormal(-1.0), "must not be negative"),
        (lambda: Choice([1.0, 2.0], [0.5, 0.6]), "must sum to 1, sum to 1.1"),
        (lambda: Choice([1.0, 2.0], [1.0]), "1 probabilities for 2 values"),
        (lambda: Choice([1.0, 2.0], [1.5, -0.5]), "must not be negative"),
        (lambda: Choice([]), "must be a list"),
        (lambda: Empirical([1.0, np.nan]), "not finite"),
        (lambda: as_distribution(stats.norm(0.0, -1.0)), "allowed ones"),
        (lambda: distribution_of({"distribution": "norml"}), "did you mean 'normal'"),
        (lambda: distribution_of({"distribution": "normal", "sigm": 1.0}), "did you mean 'sigma'"),
        (lambda: distribution_of({"distribution": "normal"}), "sigma"),
        (lambda: distribution_of({"distribution": "scipy.norml"}), "no distribution 'norml'"),
        (lambda: Covariance(["a", "b"], [[1.0, 2.0], [0.0, 1.0]]), "symmetric"),
        (lambda: Covariance(["a"], [[-1.0]]), "variances must not be negative"),
    ],
)
def test_wrong_parameters_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_what_is_no_distribution_is_refused():
    for wrong in (0.1, stats.norm, "normal"):
        with pytest.raises(TypeError, match="is no distribution"):
            as_distribution(wrong)


@pytest.mark.parametrize(
    ("nominal", "given", "says"),
    [
        (0.0, Normal(0.1, relative=True), "fraction of a nominal value of 0"),
        (0.0, LogNormal(0.1), "median of 0"),
        (50.0, TruncatedNormal(1.0, low=0.0, high=1.0), "nothing is left"),
        ([1.0, 0.0], TruncatedNormal(0.1, 0.2, relative=True), "a fraction of 0 is no sigma"),
        (5.0, Triangular(low=0.0, high=1.0), "give the mode"),
        ([1.0, 2.0], Normal([1.0, 1.0, 1.0]), r"shape \(3,\), the input \(2,\)"),
        ([1.0, 2.0], Choice([[1.0, 2.0, 3.0]]), r"shape \(3,\), the input \(2,\)"),
        (1.0, Normal("1 mm"), "no unit to convert"),
    ],
)
def test_what_does_not_fit_the_nominal_value_is_a_problem(nominal, given, says):
    (problem,) = Sampler({"x": (nominal, given)}, count=1).problems()
    assert problem.startswith("x: ")
    assert says.replace("\\", "") in problem


def test_texts_become_numbers_in_the_unit_of_the_input():
    def convert(text):
        return float(text.removesuffix(" mm")) * 1e-3

    assert Normal("2 mm").in_units(convert) == Normal(2e-3)
    assert Uniform(low="1 mm", high="3 mm").in_units(convert) == Uniform(low=1e-3, high=3e-3)
    with pytest.raises(ValueError, match="number without unit"):
        Normal("2 mm", relative=True).in_units(convert)
    with pytest.raises(ValueError, match="not be negative"):
        Normal("-2 mm").in_units(convert)


@pytest.mark.parametrize("ours", [*[p[0] for p in REFERENCES], *DISCRETE], ids=ids)
def test_a_description_says_all(ours: Distribution):
    said = json.loads(json.dumps(ours.describe()))
    u, nominal = np.linspace(0.05, 0.95, 7), np.array(2.0)
    copies = [pickle.loads(pickle.dumps(ours))]
    copies += [] if isinstance(ours, Scaled) else [distribution_of(said)]
    for copy in copies:
        assert copy.describe() == said
        np.testing.assert_array_equal(copy.quantile(u, nominal), ours.quantile(u, nominal))


def test_descriptions_of_different_ones_differ():
    many = np.arange(5000.0)
    for a, b in [
        (Normal(0.1), Normal(0.1, relative=True)),
        (Normal(0.1), Normal(0.2)),
        (Empirical(many), Empirical(many + 1e-9)),
        (as_distribution(stats.norm(1.0)), as_distribution(stats.norm(1.0, 2.0))),
        (as_distribution(stats.norm(1.0)), as_distribution(stats.logistic(1.0))),
    ]:
        assert a.describe() != b.describe()
        assert a != b


def test_histograms_are_told_apart_frozen_or_not():
    one, other = (stats.rv_histogram((np.array(c), np.arange(3.0))) for c in ([1, 2], [2, 1]))
    for a, b in ((one, other), (one(), other()), (one(loc=1.0), other(loc=1.0))):
        assert as_distribution(a).describe() != as_distribution(b).describe()
    assert as_distribution(one()).describe() == as_distribution(one()).describe()


@pytest.mark.parametrize("sizes", [2, 3, 4])
def test_as_many_parameters_as_rows_do_not_fit_one_number(sizes):
    made = as_distribution(stats.norm(0.0, np.ones(sizes)))
    assert made.problems(np.array(0.0)) == ["its shape does not fit ()"]
    assert not made.problems(np.zeros(sizes))


def test_values_without_probability_scatter_nothing():
    """Also where the probabilities sum to more than one by rounding."""
    shares = (0.4538945241874628, 0.0, 0.5455223802496607, 0.0005830955628766178)
    made = Choice((0.0, 7e-6, 0.0, 0.0), shares)
    assert sum(np.array(shares)[[0, 2, 3, 1]]) > 1.0
    assert made.std(np.array(0.0)) == 0.0
    assert np.all(np.diff(made.steps()) >= 0.0)


def test_spreads_of_truncated_and_measured_values_are_exact():
    """By SciPy, by the values themselves, and by the quantiles of straight lines between them."""
    for low, high in ((1.0, None), (None, 2.0), (-1.0, 1.5), (5.0, 7.0)):
        ends = (-np.inf if low is None else low, np.inf if high is None else high)
        found = TruncatedNormal(1.0, low=low, high=high).std(np.array(0.0))
        np.testing.assert_allclose(found, stats.truncnorm(*ends).std(), rtol=1e-9)
    measured = np.r_[np.zeros(5999), 1000.0]
    np.testing.assert_allclose(Empirical(measured).std(np.array(0.0)), measured.std(), rtol=1e-12)
    lines = Empirical([0.0, 1.0, 5.0], interpolate=True)
    drawn = lines.quantile((np.arange(300_000) + 0.5) / 300_000, np.array(0.0))
    np.testing.assert_allclose(lines.std(np.array(0.0)), drawn.std(), rtol=1e-8)


@pytest.mark.parametrize("centre", [0.0, 2.1])
@pytest.mark.parametrize("width", [1e-12, 1e-6, 1e-4])
def test_standard_deviation_between_limits_that_are_close(centre, width):
    """That of a uniform distribution, to the square of the width."""
    low, high = np.array([centre - 0.5 * width, centre + 0.5 * width])
    found = TruncatedNormal(1.0, low=low, high=high).std(np.array(0.0))
    np.testing.assert_allclose(found, (high - low) / np.sqrt(12.0), rtol=1e-12 + width**2)


def test_a_distribution_of_scipy_is_of_the_value_itself():
    base = stats.weibull_min(2.0, scale=0.1)
    found, u = FromSciPy(base), np.array([0.1, 0.5, 0.9])
    assert found == as_distribution(base) and hash(found) == hash(as_distribution(base))
    np.testing.assert_array_equal(found.quantile(u, np.array(7.0)), base.ppf(u))
    assert found.std(np.array(7.0)) == pytest.approx(base.std()) and found.steps() is None
    np.testing.assert_allclose(FromSciPy(stats.binom(2, 0.5)).steps(), [0.25, 0.75, 1.0])


def test_a_sure_choice_has_no_scatter():
    """Cumulated probabilities round: what is impossible would count by 1e-8 of its distance."""
    law = Choice([*10 * [2.0], 5.0], [*10 * [0.1], 0.0])
    assert law.std(np.array(0.0)) < 1e-14
