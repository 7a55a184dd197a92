"""Information, combinations and losses, against linear regression and known forms."""

import numpy as np
import pytest

from jaxmbd.identification import Ambiguity, Combination
from jaxmbd.identification.combinations import ambiguities
from jaxmbd.identification.fit import LOSSES, Noise, fitted, loss_of
from jaxmbd.identification.identified import residual_check
from jaxmbd.identification.information import information, precision

T = np.linspace(0.1, 1.0, 20)


def named(predict, values, units):
    """The ambiguities of a closed form of some values."""
    p = np.array(values)
    steps = 1e-6 * np.diag(np.maximum(np.abs(p), 1e-3))
    jacobian = np.array([(predict(p + h) - predict(p - h)) / (2.0 * h.sum()) for h in steps]).T
    scale = np.maximum(np.abs(p), 0.1)
    found = information(1e3 * jacobian * scale)  # the noise is a thousandth

    def felt(every):
        return np.array([np.linalg.norm(predict(x) - predict(p)) for x in every])

    null, names = scale[:, None] * found.null, tuple("abcde"[: len(p)])
    covariance = found.covariance * np.outer(scale, scale)
    return ambiguities(null, p, names, units, scale, covariance, felt)


@pytest.mark.parametrize(
    ("predict", "values", "units", "text"),
    [
        (lambda p: np.cos((p[0] + p[1]) * T) + p[2] * T, (1.0, 1.3, 0.5), ("kg",) * 3,
         "only a + b is determined; a - b is not"),
        (lambda p: np.cos(np.sqrt(p[0] / p[1]) * T), (1e5, 1.3), ("N/m", "kg"),
         "only a / b is determined; a · b is not"),
        # Equal values: sum and product agree to first order.
        (lambda p: np.cos((p[0] + p[1]) * T), (1.0, 1.0), ("kg", "kg"),
         "only a + b is determined; a - b is not"),
        (lambda p: np.cos(p[0] * p[1] * T), (1.0, 1.0), ("m", "m"),
         "only a · b is determined; a / b is not"),
        (lambda p: np.cos(p[0] * p[1] ** 2 * T), (2.0, 0.5), ("kg", "m"),
         "only a · b^2 is determined; a^2 / b is not"),
        (lambda p: np.cos((p[0] - 2.0 * p[1]) * T), (1.0, 3.0), ("kg", "kg"),
         "only a - 2·b is determined; 2·a + b is not"),
        (lambda p: np.cos(p[0] * T), (1.0, 2.0), ("kg", "m"),
         "the data say nothing about b"),
        (lambda p: np.cos((p[0] + p[1] + 2 * p[2]) * T) * p[3] / p[4], (1.0, 1.0, 3.0, 2.0, 5.0),
         ("m", "m", "m", "N", "kg"), "only a + b + 2·c is determined; 2·a - c and 2·b - c are not"),
    ],
)  # fmt: skip
def test_what_is_determined_is_named(predict, values, units, text):
    found = named(predict, values, units)
    assert str(found[0]) == text
    for combination in (c for one in found for c in one.determined):
        p = np.array([values["abcde".index(n)] for n in combination.names])
        c = np.array(combination.coefficients)
        true = np.prod(p**c) if combination.product else c @ p
        assert combination.value == pytest.approx(true, rel=1e-9)
        assert 0.0 < combination.error < abs(true)


def test_two_groups_are_two_ambiguities():
    form = lambda p: np.cos((p[0] + p[1]) * T) * p[2] / p[3]  # noqa: E731
    found = named(form, (1.0, 2.0, 3.0, 4.0), ("m", "m", "N", "kg"))
    assert [x.names for x in found] == [("a", "b"), ("c", "d")]
    assert all(isinstance(x, Ambiguity) for x in found)


def test_combinations_in_words():
    def said(coefficients, product=False):
        return str(Combination(("a", "b", "c"), coefficients, product, 1.0, 0.1))

    assert said((1.0, -2.0, 0.5)) == "a - 2·b + 0.5·c"
    assert said((-1.0, 1.0, 1.0)) == "-a + b + c"
    assert said((1.0, 2.0, -1.0), product=True) == "a · b^2 / c"
    assert said((-1.0, -1.0, -2.0), product=True) == "1 / (a · b · c^2)"


def test_an_identifiable_problem_has_no_ambiguity():
    assert named(lambda p: p[0] * T + p[1], (1.0, 2.0), ("kg", "m")) == ()


def line(rng, count, errors):
    """Estimates and claimed errors (count, 2) of a line's slope and height from noisy points."""
    x = np.stack([T, np.ones_like(T)], axis=1)
    noise = Noise(np.ones(20), {"y": np.ones(20, bool)}, {"y": 1e-12})
    estimates, claimed = [], []
    for _ in range(count):
        y = errors["of"](rng)
        found = np.linalg.lstsq(x, y, rcond=None)[0]
        its = precision(x, y - x @ found, noise, [slice(0, 20)], loss_of("linear"), errors["as"])
        estimates.append(found)
        claimed.append(its.errors())
    return np.array(estimates), np.array(claimed)


def wandering(rng):
    """Errors that hang together: each is nine tenths of the one before."""
    e = rng.normal(size=40)
    for i in range(1, 40):
        e[i] += 0.9 * e[i - 1]
    return e[20:]


def growing(rng):
    return rng.normal(size=20) * 6.0 * (T - 0.1) ** 3


@pytest.mark.parametrize(
    ("errors", "ratio"),
    [
        ({"of": lambda rng: rng.normal(size=20), "as": "independent"}, (0.9, 1.1)),
        ({"of": lambda rng: rng.normal(size=20), "as": "sandwich"}, (0.8, 1.15)),
        ({"of": growing, "as": "sandwich"}, (0.75, 1.15)),
    ],
)
def test_claimed_errors_are_those_of_repetitions(errors, ratio):
    estimates, claimed = line(np.random.default_rng(0), 600, errors)
    seen = estimates.std(axis=0)
    share = np.sqrt(np.mean(claimed**2, axis=0)) / seen
    assert np.all((share > ratio[0]) & (share < ratio[1])), share


def test_only_the_sandwich_sees_that_errors_grow():
    """Whatever size is said, it is wrong for the slope, or for the height, or both."""
    seen = line(np.random.default_rng(0), 600, {"of": growing, "as": "sandwich"})[0].std(axis=0)
    plain = information(np.stack([T, np.ones_like(T)], axis=1)).errors()
    assert (
        plain[0] / plain[1] < 0.8 * seen[0] / seen[1]
        or plain[0] / plain[1] > 1.25 * seen[0] / seen[1]
    )


def test_errors_that_hang_together():
    found = {}
    for how in ("independent", "sandwich", "autocorrelated"):
        estimates, claimed = line(np.random.default_rng(0), 300, {"of": wandering, "as": how})
        found[how] = np.sqrt(np.mean(claimed[:, 1] ** 2)) / estimates[:, 1].std()
    # Twenty samples so alike are two or three: better, not enough.
    assert found["independent"] < 0.5 and found["autocorrelated"] > 1.3 * found["sandwich"]


def autoregressive(rng, coefficients, shape):
    """Errors (…, n), each that of those before times coefficients, and something new."""
    n = shape[-1]
    e = rng.normal(size=(*shape[:-1], n + 100))
    for i in range(len(coefficients), n + 100):
        e[..., i] += sum(a * e[..., i - j] for j, a in enumerate(coefficients, 1))
    return e[..., 100:]


def moving(rng, shape):
    """Errors of which neighbours have a part in common."""
    u = rng.normal(size=(*shape[:-1], shape[-1] + 1))
    return u[..., 1:] + 0.8 * u[..., :-1]


CORRELATED = {
    "apart": lambda rng, shape: rng.normal(size=shape),
    "0.5": lambda rng, shape: autoregressive(rng, [0.5], shape),
    "0.8": lambda rng, shape: autoregressive(rng, [0.8], shape),
    "to and fro": lambda rng, shape: autoregressive(rng, [-0.5], shape),
    "swinging": lambda rng, shape: autoregressive(rng, [1.2, -0.5], shape),
    "moving mean": moving,
}


@pytest.mark.parametrize(
    ("kind", "missing"), [*((kind, False) for kind in CORRELATED), ("0.5", True), ("0.8", True)]
)
def test_truth_within_two_errors_of_correlated_samples(kind, missing):
    """Two channels, one of them twice as noisy, that share an unknown."""
    rng, count, t = np.random.default_rng(4), 100, np.linspace(0.0, 1.0, 100)
    zero = np.zeros(100)
    first = np.stack([np.ones(100), np.cos(20.0 * t), zero], axis=1)
    second = 0.5 * np.stack([t, zero, np.sin(30.0 * t)], axis=1)
    x, series = np.concatenate([first, second]), [slice(0, 100), slice(100, 200)]
    noise = Noise(np.ones(200), {n: np.arange(200) // 100 == i for i, n in enumerate("ab")}, {})
    within = []
    for e in CORRELATED[kind](rng, (count, 2, 100)).reshape(count, 200):
        here = np.ones(200, bool)
        if missing:
            here = rng.uniform(size=200) > 0.1
            here[120:140] = False
        found = np.linalg.lstsq(x[here], e[here], rcond=None)[0]
        r = np.where(here, e - x @ found, np.nan)
        its = precision(x, r, noise, series, loss_of("linear"), "autocorrelated")
        within.append(np.abs(found) <= 2.0 * its.errors())
    # 92 to 97 %, and two standard deviations of counts of 100 and 300.
    assert np.all(np.mean(within, axis=0) > 0.87), np.mean(within, axis=0)
    assert 0.90 < np.mean(within) < 0.99


def test_a_drift_and_a_few_samples_have_finite_errors():
    """Errors at the edge of what can be told apart from unknowns, and too few to tell anything."""
    for y in (
        np.arange(30.0) ** 2,
        np.tile([1.0, -1.0], 15),
        np.array([0.1, -0.3, 0.2]),
        np.zeros(9),
    ):
        n = len(y)
        noise = Noise(np.ones(n), {"y": np.ones(n, bool)}, {})
        x = np.ones((n, 1))
        linear = loss_of("linear")
        its = precision(x, y - y.mean(), noise, [slice(0, n)], linear, "autocorrelated")
        assert np.all(np.isfinite(its.errors()))


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_of_losses(name):
    loss, r, h = loss_of(name), np.array([-9.0, -2.0, -0.3, 0.7, 3.0, 12.0]), 1e-5
    for i in range(len(r)):
        step = h * np.eye(len(r))[i]
        slope = (loss.value(r + step) - loss.value(r - step)) / (2.0 * h)
        assert slope == pytest.approx(loss.psi(r)[i], abs=1e-7)
        bend = (loss.psi(r + step)[i] - loss.psi(r - step)[i]) / (2.0 * h)
        assert bend == pytest.approx(loss.stiffness(r)[i], abs=1e-7)
    np.testing.assert_allclose(loss.weight(r) * r, loss.psi(r), rtol=1e-14)
    with pytest.raises(ValueError, match="huber"):
        loss_of("hubert")


def test_robust_errors_are_those_of_repetitions():
    """Huber's estimate of a line from points with outliers, with estimated noise."""
    rng, x = np.random.default_rng(1), np.stack([T, np.ones_like(T)], axis=1).repeat(5, axis=0)
    noise = Noise(np.full(100, np.nan), {"y": np.ones(100, bool)}, {"y": 1e-12})
    wide, loss, off = (np.full(2, -9.0), np.full(2, 9.0)), loss_of("huber"), []
    for _ in range(60):
        y = 0.1 * rng.normal(size=100) + (rng.uniform(size=100) < 0.05) * 3.0 * rng.normal(size=100)
        fit = fitted(lambda p: (x @ p, x), np.zeros(2), wide, y, noise, loss, 200)
        r = (y - fit.y) / fit.sigma
        its = precision(x / fit.sigma[:, None], r, noise, [slice(0, 100)], loss, "independent")
        assert fit.converged and 0.05 < fit.sigma[0] < 0.2
        off.append(fit.x / its.errors())
    assert np.all(np.abs(np.std(off, axis=0) - 1.0) < 0.25), np.std(off, axis=0)


def test_residuals_with_a_pattern_are_told():
    rng = np.random.default_rng(0)
    plain = residual_check("y", rng.normal(size=300))
    assert not plain.correlated and abs(plain.rms - 1.0) < 0.15 and not plain.outliers
    wave = residual_check("y", np.sin(np.linspace(0.0, 20.0, 300)) + 0.3 * rng.normal(size=300))
    assert wave.correlated and "pattern" in str(wave)
    gaps = rng.normal(size=300)
    gaps[50:90], gaps[100] = np.nan, 30.0
    found = residual_check("y", gaps)
    assert (found.missing, found.outliers, found.count) == (40, 1, 260) and not found.correlated
