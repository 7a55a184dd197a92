"""What drives an output, and what to tighten: Sobol indices, gradients, tolerance allocation."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from jaxmbd.sampling import Covariance, Normal, Saltelli, Sampler, Sobol, Uniform
from jaxmbd.statistics import (
    Allocation,
    Limit,
    Sensitivity,
    SobolIndices,
    allocate,
    capability,
    sensitivities,
    sobol_indices,
    sobol_of,
)

PI = np.pi


def ishigami(a=7.0, b=0.1):
    """The function of Ishigami and Homma (1990), and the closed form of its Sobol indices."""
    v1, v2 = 0.5 * (1.0 + b * PI**4 / 5.0) ** 2, a**2 / 8.0
    v13 = b**2 * PI**8 * (1.0 / 18.0 - 1.0 / 50.0)
    variance = v1 + v2 + v13
    first = np.array([v1, v2, 0.0]) / variance
    total = np.array([v1 + v13, v2, v13]) / variance

    def function(x):
        return np.sin(x["x1"]) + a * np.sin(x["x2"]) ** 2 + b * x["x3"] ** 4 * np.sin(x["x1"])

    return function, first, total, v13 / variance


@pytest.mark.parametrize("second", [False, True])
def test_sobol_indices_of_the_ishigami_function(second):
    pytest.importorskip("SALib")
    function, first, total, interaction = ishigami()
    inputs = {n: (0.0, Uniform(PI)) for n in ("x1", "x2", "x3")}
    sampler = Sampler(inputs, Saltelli(2048, second_order=second), seed=2)
    y = function(sampler.draw(0, sampler.count))
    found = sobol_indices(sampler.design, sampler.space, y, resamples=50)
    assert isinstance(found, SobolIndices) and found.names == ("x1", "x2", "x3")
    # Half widths of 95 % intervals, of which six should hold: three standard errors.
    np.testing.assert_array_less(np.abs(found.first - first), 1.53 * found.first_error + 1e-9)
    np.testing.assert_array_less(np.abs(found.total - total), 1.53 * found.total_error + 1e-9)
    assert found.first_error.max() < 0.15
    if second:
        error = found.second_error[0, 2]
        assert found.second[0, 2] == pytest.approx(interaction, abs=1.53 * error)


def test_an_array_is_one_factor_and_failed_base_samples_are_left_out():
    pytest.importorskip("SALib")
    xarray = pytest.importorskip("xarray")
    inputs = {"p": ([0.0, 0.0, 0.0], Normal(1.0)), "k": (0.0, Normal(2.0))}
    sampler = Sampler(inputs, Saltelli(512))
    drawn = sampler.draw(0, sampler.count)
    y = drawn["p"].sum(axis=1) + drawn["k"]
    status = np.zeros(sampler.count, np.int32)
    status[[3, 4, 401]] = 1  # of two base samples, of four rows each
    y[status != 0] = np.nan
    dataset = xarray.Dataset(
        {
            "y": ("sample", y, {"role": "output", "path": "y"}),
            "status": ("sample", status, {"role": "status"}),
        },
        attrs={"study": sampler.describe()},
    )
    found = sobol_of(dataset, "y")
    assert (found.names, found.base, found.left_out) == (("p", "k"), 509, 3)
    np.testing.assert_allclose(found.first, [3 / 7, 4 / 7], rtol=0, atol=0.05)


def test_outputs_that_do_not_vary_and_samples_that_do_not_fit():
    pytest.importorskip("SALib")
    sampler = Sampler({"x": (0.0, Uniform(1.0))}, Saltelli(4))
    found = sobol_indices(sampler.design, sampler.space, np.ones(12))
    assert found.first.tolist() == [0.0]
    with pytest.raises(ValueError, match="has 12 samples"):
        sobol_indices(sampler.design, sampler.space, np.ones(11))
    with pytest.raises(ValueError, match="too few"):
        sobol_indices(sampler.design, sampler.space, np.full(12, np.nan))


def model(s):
    x, k = s["p"], s["k"]
    curve = jnp.stack([x[0] * k, jnp.sin(x[1]) + k**2])
    return {"curve": curve, "y": 2.0 * x[0] - 3.0 * k, "status": jnp.int32(0)}


def test_gradients_are_those_of_the_function_and_predict_the_spread():
    nominal = {"p": np.array([1.0, 0.5, 9.0]), "k": 2.0}
    scatter = {"p": Normal([0.1, 0.2, 0.0]), "k": Normal(0.05)}
    sampler = Sampler({n: (nominal[n], scatter[n]) for n in nominal}, count=20_000)
    found = sensitivities(model, nominal, sampler.std())
    assert set(found) == {"curve", "y"}
    curve = found["curve"]
    assert (curve.names, curve.owners) == (("p/x", "p/y", "k"), ("p", "p", "k"))
    np.testing.assert_allclose(curve.nominal, [2.0, np.sin(0.5) + 4.0])
    np.testing.assert_allclose(curve.gradient, [[2.0, 0.0, 1.0], [0.0, np.cos(0.5), 4.0]])
    drawn = sampler.draw(0, 20_000)
    y = 2.0 * drawn["p"][:, 0] - 3.0 * drawn["k"]
    assert found["y"].spread == pytest.approx(y.std(), rel=3.0 / np.sqrt(40_000))
    np.testing.assert_allclose(found["y"].shares, [0.64, 0.0, 0.36], rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="no input scatters"):
        sensitivities(model, nominal, {"k": 0.0})


def sensitivity(parts, nominal=0.0):
    names = tuple(f"x{i}" for i in range(len(parts)))
    return Sensitivity(names, names, np.array(nominal), np.array(parts), np.ones(len(parts)))


def test_allocation_of_one_limit_is_the_closed_form():
    """Where no factor is at its end, f_i ∝ (cost_i / v_i)^⅓, and the yield is met exactly."""
    parts, cost = np.array([3.0, 2.0, 4.0]), {"x0": 1.0, "x1": 0.5, "x2": 4.0}
    found = allocate([Limit(sensitivity(parts), -6.0, 6.0)], 0.99, cost=cost)
    shape = np.cbrt(np.array(list(cost.values())) / parts**2)
    std = 6.0 / stats.norm.ppf(0.995)
    expected = shape * std / np.sqrt(np.sum((parts * shape) ** 2))
    assert np.all(expected < 1.0)
    np.testing.assert_allclose(list(found.factors.values()), expected, rtol=1e-6)
    assert found.after[0] == pytest.approx(0.99, abs=1e-6)
    assert found.before[0] == pytest.approx(2.0 * stats.norm.cdf(6.0 / np.sqrt(29.0)) - 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_allocation_of_several_limits_is_the_cheapest(seed):
    rng = np.random.default_rng(seed)
    parts, prices = rng.exponential(size=(3, 8)), rng.uniform(0.5, 2.0, size=8)
    parts[:, 2] *= 0.1  # it cannot be tightened
    limits = [Limit(sensitivity(p), -2.5, 2.0) for p in parts]
    names = limits[0].sensitivity.names
    found = allocate(limits, 0.98, cost=dict(zip(names, prices, strict=True)), fixed=["x2"])
    f = np.array(list(found.factors.values()))
    assert f[2] == 1.0
    assert 1.0 - sum(1.0 - y for y in found.after) >= 0.98 - 1e-9
    stds = [
        optimize.brentq(
            lambda s: stats.norm.cdf(2.0 / s) - stats.norm.cdf(-2.5 / s) - 1.0 + 0.02 / 3, 0.1, 5.0
        )
    ] * 3
    other = optimize.minimize(
        lambda f: prices @ (1.0 / f - 1.0),
        np.full(8, 0.2),
        bounds=[(0.05, 1.0)] * 2 + [(1.0, 1.0)] + [(0.05, 1.0)] * 5,
        constraints={"type": "ineq", "fun": lambda f: np.square(stds) - parts**2 @ f**2},
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 500},
    )
    assert found.cost == pytest.approx(other.fun, rel=1e-5)


def test_the_allocated_scatter_gives_the_wanted_yield():
    inputs = {"p": (np.zeros(3), Normal(1.0)), "k": (0.0, Uniform(4.0))}
    gradient = {"p": np.array([1.0, 0.5, 2.0]), "k": 1.0}
    sampler = Sampler(inputs, count=40_000)
    found = sensitivities(
        lambda s: {"y": s["p"] @ gradient["p"] + s["k"] * gradient["k"]},
        {n: x for n, (x, _) in inputs.items()},
        sampler.std(),
    )["y"]
    plan = allocate([Limit(found, -3.0, 3.0)], 0.95)
    tight = plan.apply(sampler.scatter)
    again = Sampler({n: (x, tight[n]) for n, (x, _) in inputs.items()}, count=40_000)
    drawn = again.draw(0, 40_000)
    y = drawn["p"] @ gradient["p"] + drawn["k"]
    # The sum of a uniform and a normal number is not normal: a point of tolerance for that.
    assert capability(y, low=-3.0, high=3.0).fraction == pytest.approx(0.95, abs=0.013)
    loose = sampler.draw(0, 40_000)
    y = loose["p"] @ gradient["p"] + loose["k"]
    assert capability(y, low=-3.0, high=3.0).fraction < 0.8


@pytest.mark.parametrize(
    ("limit", "options", "says"),
    [
        (Limit(sensitivity([1.0], nominal=3.0), -2.0, 2.0), {}, "move the nominal value"),
        (Limit(sensitivity([1.0])), {}, "give a limit"),
        (Limit(sensitivity([1.0]), -1.0, 1.0), {"fixed": ["x0"]}, "gives a yield of 0.6827"),
        (Limit(sensitivity([1.0]), -1.0, 1.0), {"wanted": 99.0}, "between 0 and 1"),
        (Limit(sensitivity([1.0, np.nan]), -1.0, 1.0), {}, "gradient .* is not finite"),
        (Limit(sensitivity([1.0]), -1.0, 1.0), {"fixed": ["x00"]}, "'x00', which .* mean 'x0'"),
        (Limit(sensitivity([1.0]), -1.0, 1.0), {"fixed": "y*"}, r"'y\*', which .* there are x0"),
        (Limit(sensitivity([1.0]), -1.0, 1.0), {"cost": {"xO": 2.0}}, "cost names 'xO'"),
        (Limit(sensitivity([1.0]), -1.0, 1.0), {"cost": {"x0": -2.0}}, "'x0' must be a positive"),
        (Limit(sensitivity([1.0]), -1.0, 1.0), {"cost": {"x0": np.nan}}, "must be a positive"),
        (Limit(sensitivity([1.0]), -1.0, 1.0), {"cost": {"x0": 1.0, "x*": 2.0}}, "by 'x0' and by"),
        (Limit(sensitivity([1.0]), -1.0, 1.0), {"least": 0.0}, "between 0 and 1"),
    ],
)
def test_what_cannot_be_allocated_is_said(limit, options, says):
    with pytest.raises(ValueError, match=says):
        allocate([limit], **{"wanted": 0.99, **options})


def test_names_of_what_is_fixed_and_costs_may_be_patterns():
    limits = [Limit(sensitivity([1.0, 2.0, 3.0]), -5.0, 5.0)]
    listed = allocate(limits, 0.95, fixed=["x0", "x1"], cost={"x2": 5.0})
    assert allocate(limits, 0.95, fixed="x[01]", cost={"x[!01]": 5.0}) == listed
    assert [listed.factors["x0"], listed.factors["x1"]] == [1.0, 1.0]
    with pytest.raises(ValueError, match="'x.' is a pattern that fits x0, x1, x2"):
        listed.apply({"x?": Normal(1.0)})
    with pytest.raises(ValueError, match="'x2' is to be tightened, and has no distribution"):
        listed.apply({"x0": Normal(1.0), "x2": None})


PARTS = {"a": 1.0, "b": -0.6, "p": np.array([0.5, 1.0]), "k": 1.0}


def of_parts(s):
    return {"y": s["a"] * PARTS["a"] + s["b"] * PARTS["b"] + s["p"] @ PARTS["p"] + s["k"]}


@pytest.mark.parametrize(
    "correlation",
    [
        {("a", "p/1"): 0.7, ("a", "b"): -0.4, ("p/0", "p/1"): 0.4, ("k", "a"): 0.2},
        Covariance(
            ["a", "p", "b"],
            [
                [1.0, 0.3, 1.2, 0.0],
                [0.3, 1.0, 0.2, 0.1],
                [1.2, 0.2, 2.0, -0.4],
                [0, 0.1, -0.4, 1.0],
            ],
        ),
    ],
    ids=["rank correlations", "covariance"],
)
def test_correlated_inputs_give_the_yield_that_is_promised(correlation):
    """Drawn, which knows nothing of gradients: spread, yields before and after."""
    nominal, count = {"a": 0.0, "b": 0.0, "p": np.zeros(2), "k": 0.0}, 2**16
    scatter = {"a": Normal(1.0), "b": Normal(1.0), "p": Normal([1.0, 1.4]), "k": Normal(0.5)}
    if isinstance(correlation, Covariance):
        scatter = {"k": scatter["k"]}
    inputs = {n: (x, scatter.get(n)) for n, x in nominal.items()}
    sampler = Sampler(inputs, Sobol(), count=count, correlation=correlation)
    found = sensitivities(of_parts, nominal, sampler.covariance())["y"]
    y = np.asarray(of_parts_of(sampler.draw(0, count)))
    assert found.spread == pytest.approx(y.std(), rel=2e-3)
    assert found.shares.sum() == pytest.approx(1.0)
    plan = allocate([Limit(found, -6.0, 6.0)], 0.999, cost={"a": 3.0}, fixed=["k"])
    assert plan.before[0] == pytest.approx(np.mean(np.abs(y) <= 6.0), abs=2e-3)
    tight = plan.apply(sampler.scatter)
    again = Sampler(
        {n: (x, tight[n]) for n, x in nominal.items()},
        Sobol(),
        count=count,
        correlation=sampler.rank_correlation(),
    )
    y = of_parts_of(again.draw(0, count))
    assert np.mean(np.abs(y) <= 6.0) == pytest.approx(0.999, abs=4e-4) and plan.after[0] > 0.9989


def of_parts_of(drawn):
    return sum(np.reshape(x, (len(x), -1)) @ np.atleast_1d(PARTS[n]) for n, x in drawn.items())


def test_shares_of_correlated_inputs_are_covariances_with_the_output():
    nominal, std = {"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 2.0}
    joint = Covariance(["b", "a"], [[4.0, -1.0], [-1.0, 1.0]])
    found = sensitivities(lambda s: {"y": 2.0 * s["a"] + s["b"]}, nominal, joint)["y"]
    # cov(2a, 2a + b) = 4 − 2, cov(b, 2a + b) = 4 − 2
    assert dict(zip(found.names, found.contributions, strict=True)) == {"a": 2.0, "b": 2.0}
    assert found.spread == pytest.approx(2.0)
    alone = sensitivities(lambda s: {"y": 2.0 * s["a"] + s["b"]}, nominal, std)["y"]
    assert alone.spread == pytest.approx(np.sqrt(8.0))
    with pytest.raises(ValueError, match="contradict each other"):
        sensitivities(model, {"p": 0.0, "k": 0.0}, Covariance(["p", "k"], [[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="'kk', which is no input; did you mean 'k'"):
        sensitivities(model, {"p": 0.0, "k": 0.0}, Covariance(["p", "kk"], np.eye(2)))
    with pytest.raises(ValueError, match="must not be negative or NaN"):
        sensitivities(model, {"p": 0.0, "k": 0.0}, {"k": np.nan})


def test_to_tighten_one_of_two_that_cancel_makes_it_worse():
    """y = a − b with correlation 0.9: alone, a is best left near 0.9 of what it is."""
    r = np.array([[1.0, 0.9], [0.9, 1.0]])
    y = sensitivity([1.0, -1.0])._replace(correlation=r)
    assert y.spread == pytest.approx(np.sqrt(0.2))
    with pytest.raises(ValueError, match="gives a yield of 0.9782"):  # 1/σ = 1/√0.19
        allocate([Limit(y, -1.0, 1.0)], 0.98, fixed=["x1"])
    found = allocate([Limit(y, -1.0, 1.0)], 0.99)
    assert found.factors["x0"] == pytest.approx(found.factors["x1"])
    std = 1.0 / stats.norm.ppf(0.995)
    assert found.factors["x0"] == pytest.approx(std / np.sqrt(0.2), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("correlated", [False, True])
def test_allocation_is_the_cheapest_of_any_size(correlated, seed):
    """Effects over three decades; another method, from the answer, finds nothing cheaper."""
    rng = np.random.default_rng(seed + 10)
    n = 9
    r = np.corrcoef(rng.normal(size=(n, n + 2))) if correlated else None
    prices = rng.uniform(0.1, 5.0, size=n)
    limits = []
    for _ in range(3):
        y = sensitivity(rng.normal(size=n) * rng.exponential(size=n) ** 2)
        y = y._replace(correlation=r)
        limits.append(Limit(y, *(2.0 * y.spread * rng.uniform(0.6, 1.2) * np.array([-1, 1]))))
    names = limits[0].sensitivity.names
    found = allocate(limits, 0.99, cost=dict(zip(names, prices, strict=True)))
    f = np.array(list(found.factors.values()))
    assert np.all(np.array(found.after) > 1.0 - 0.01 / 3.0 - 1e-9)
    share = stats.norm.ppf(1.0 - 0.01 / 6.0)
    matrix = np.eye(n) if r is None else r

    def slack(f):
        parts = [x.sensitivity.parts * f for x in limits]
        return np.array(
            [x.high**2 - share**2 * p @ matrix @ p for x, p in zip(limits, parts, strict=True)]
        )

    other = optimize.minimize(
        lambda f: (prices @ (1.0 / f - 1.0), -prices / f**2),
        f,
        jac=True,
        bounds=[(0.05, 1.0)] * n,
        constraints={"type": "ineq", "fun": slack},
        method="SLSQP",
        options={"ftol": 1e-10, "maxiter": 300},
    )
    assert found.cost == pytest.approx(other.fun, rel=1e-5) or found.cost < other.fun


def test_without_limits_there_is_nothing_to_allocate():
    with pytest.raises(ValueError, match="give limits"):
        allocate([], 0.99)


def test_what_need_not_be_tightened_is_left():
    found = allocate([Limit(sensitivity([1.0, 0.1]), -9.0, 9.0)], 0.99)
    assert (found.cost, found.factors) == (0.0, {"x0": 1.0, "x1": 1.0})


def test_without_a_derivative_shares_are_nan_and_inputs_are_named():
    def root(x):  # no derivative by b at 0, where it has a value
        return {"y": x["a"] + jnp.sqrt(x["b"])}

    with pytest.warns(UserWarning, match="no derivative of y by .*b:"):
        found = sensitivities(root, {"a": 1.0, "b": 0.0}, {"a": 0.1, "b": 0.1})["y"]
    assert "b" in found.without_derivative
    assert np.isnan(found.shares).all()


def test_one_input_is_tightened_to_the_quantile_of_the_yield():
    y = Sensitivity(("a",), ("a",), np.array(0.0), np.ones(1), np.array([3.0]))
    found = allocate([Limit(y, low=-5.0, high=5.0)], wanted=0.99, cost={"a": 2.0})
    factor = 5.0 / 3.0 / stats.norm.ppf(0.995)
    assert isinstance(found, Allocation) and found.factors["a"] == pytest.approx(factor)
    assert found.cost == pytest.approx(2.0 * (1.0 / factor - 1.0))
    before = 1.0 - 2.0 * stats.norm.sf(5.0 / 3.0)
    assert (*found.before, *found.after) == pytest.approx((before, 0.99))


def test_rounding_drives_nothing():
    """Of a curve whose first point is fixed but for rounding, and of a number that is not used."""
    from jaxmbd.statistics import Sensitivity

    nominal, std = np.array([2.0, 3.0]), np.ones(2)
    gradient = np.array([[1e-18, -2e-17], [0.3, 0.4]])
    found = Sensitivity(("a", "b"), ("a", "b"), nominal, gradient, std).shares
    assert np.allclose(found, [[0.0, 0.0], [0.36, 0.64]])
    alone = Sensitivity(("a",), ("a",), np.array(0.5), np.array([6.9e-34]), np.ones(1)).shares
    assert alone.tolist() == [0.0]
