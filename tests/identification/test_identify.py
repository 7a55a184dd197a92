"""`identify` against linear regression, differences, and the truth behind synthetic data."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.design import Between, MovedTogether, Within
from jaxmbd.identification import (
    Identifiability,
    Identified,
    Interval,
    Measured,
    ResidualCheck,
    identifiability,
    identify_each,
)
from jaxmbd.identification.measured import Predictor, nominal_mechanism, records, unknowns_of
from jaxmbd.observe import Configuration, Coordinate, CoordinateRate, HoldingEffort, Motion, Sweep
from jaxmbd.observe import Together as Both

ANGLES = np.linspace(0.0, 1.2, 13)
WEIGH = Sweep({"hinge": ANGLES}, {"torque": HoldingEffort("hinge")})
PENDULUM = mbd.zoo.simple_pendulum()
MASS = "bodies/bob/mass"
WEIGHED = {MASS: Within(0.9), "offset/torque": Within(5.0)}
X = np.stack([np.cos(ANGLES) * 9.81, np.ones(13)], axis=1)
"""The torque is mass times the first column, plus the offset."""
SIGN = float(np.sign(WEIGH(PENDULUM)["torque"][0]))


def weighed(mass, rng=None, sigma=0.2):
    """Torques with an offset of 0.7, and noise."""
    y = SIGN * X[:, 0] * mass + 0.7
    return y if rng is None else y + sigma * rng.normal(size=13)


SPRUNG = PENDULUM.replace(
    forces={
        "spring": mbd.TorsionSpring("hinge", stiffness=20.0, damping=0.0),
        "friction": mbd.JointFriction("hinge", radius=0.01, viscous=0.3),
    }
)


def swing(start=0.3, speed=0.0):
    outputs = {"angle": Coordinate("hinge"), "rate": CoordinateRate("hinge")}
    held = Configuration({"hinge": start})
    return Motion(1.0, 0.01, outputs, held, {"hinge": speed}, save_every=2, keep=None)


SWING_VARY = {
    "bodies/bob/com/x": Within(0.3),
    "forces/spring/stiffness": Within(0.5, relative=True),
    "forces/friction/viscous": Between(0.0, 2.0),
    "first/start/hinge": Within(0.2),
    "second/speeds/hinge": Within(1.0),
    "gain/rate": Within(0.2),
}
TRUE = (-1.1, 23.0, 0.45, 0.35, -0.4, 1.05)
OWN_TIMES = np.linspace(0.0, 1.0, 38)


@pytest.fixture(scope="module")
def swings():
    """Noise-free measurements of two swings, the second at times of its own, and a predictor."""
    true = mbd.set_variables(SPRUNG, dict(zip(list(SWING_VARY)[:3], TRUE[:3], strict=True)))
    first, second = (e(true) for e in (swing(0.35), replace(swing(-0.2, -0.4), save_every=1)))
    grid = np.linspace(0.0, 1.0, 101)
    there = {n: np.interp(OWN_TIMES, grid, second[n]) for n in ("angle", "rate")}
    measured = [
        Measured(swing(0.3), {n: np.array(first[n]) for n in ("angle", "rate")}, "first"),
        Measured(swing(-0.2, 0.0), {"t": OWN_TIMES, **there}, "second"),
    ]
    for one in measured:
        one.data["rate"] = 1.05 * one.data["rate"]
    measured[0].data["angle"][10:20] = np.nan
    known = records(SPRUNG, measured)
    unknowns = unknowns_of(SPRUNG, SWING_VARY, known)
    return measured, Predictor(unknowns, nominal_mechanism(SPRUNG), known)


def test_weighing_is_linear_regression():
    """Estimates, errors, intervals and predictions, with known and with estimated noise."""
    y = weighed(1.3, np.random.default_rng(3))
    y[4] = np.nan
    here = np.isfinite(y)
    x = X * [SIGN, 1.0]
    by_hand, rest = np.linalg.lstsq(x[here], y[here], rcond=None)[:2]
    spread = np.linalg.inv(x[here].T @ x[here])
    for noise in ({"torque": "0.2 N m"}, None):
        found = mbd.identify(PENDULUM, WEIGHED, {"torque": y}, WEIGH, noise=noise)
        sigma = 0.2 if noise else np.sqrt(rest[0] / 10)
        assert isinstance(found, Identified)
        assert found.converged and found.degrees_of_freedom == 10
        np.testing.assert_allclose(found.estimates, by_hand, rtol=1e-6)
        np.testing.assert_allclose(found.covariance, sigma**2 * spread, rtol=1e-6)
        assert found.noise_levels["torque"] == pytest.approx(sigma, rel=1e-6)
        factor = found.quantile(0.9)
        assert factor == pytest.approx(1.6448536 if noise else 1.8124611, rel=1e-6)
        low, high = found.intervals(0.9)[MASS]
        assert high - low == pytest.approx(2.0 * factor * found.errors[MASS], rel=1e-12)
        band = found.predict(level=0.9)["torque"]
        assert isinstance(band, Interval) and np.array_equal(band.places, ANGLES)
        sure = sigma * np.sqrt(np.sum((x @ spread) * x, axis=1))
        np.testing.assert_allclose(band.high - band.value, factor * sure, rtol=1e-5)
        whole = factor * np.hypot(sure, sigma)
        np.testing.assert_allclose(band.value - band.lowest, whole, rtol=1e-5)
    check = found.checks[0]
    assert isinstance(check, ResidualCheck) and (check.count, check.missing) == (12, 1)
    assert check.rms == pytest.approx(np.sqrt(np.nanmean(found.residuals**2)), rel=1e-12)
    text = str(found)
    assert "noise of torque" in text and "estimated" in text and MASS in text
    # Another experiment, whose noise is that of the channel.
    far = found.predict(replace(WEIGH, over={"hinge": (0.0, 1.4)}))["torque"]
    at = np.array([[SIGN * 9.81 * np.cos(a), 1.0] for a in (0.0, 1.4)])
    np.testing.assert_allclose(far.value, at @ by_hand, rtol=1e-6)
    sure = sigma * np.sqrt(np.sum((at @ spread) * at, axis=1))
    np.testing.assert_allclose(far.high - far.value, found.quantile(0.95) * sure, rtol=1e-5)


def test_truth_within_two_standard_errors():
    """In a hundred repetitions as one batch; each is what it would be alone."""
    rng = np.random.default_rng(0)
    sets = [{"torque": weighed(1.3, rng)} for _ in range(100)]
    found = identify_each(PENDULUM, WEIGHED, sets, WEIGH, noise={"torque": 0.2})
    off = [(x.estimates - [1.3, 0.7]) / x.standard_errors for x in found]
    rates = np.mean(np.abs(off) <= 2.0, axis=0)
    assert np.all((rates >= 0.9) & (rates <= 0.99)), rates
    alone = mbd.identify(PENDULUM, WEIGHED, sets[7], WEIGH, noise={"torque": 0.2})
    np.testing.assert_allclose(found[7].estimates, alone.estimates, rtol=1e-12)


def test_outliers_hardly_move_a_robust_fit():
    y = weighed(1.3, np.random.default_rng(5), 0.05)
    y[[2, 9]] += (8.0, -15.0)
    plain, robust = (
        mbd.identify(PENDULUM, WEIGHED, {"torque": y}, WEIGH, loss=loss)
        for loss in ("linear", "huber")
    )
    assert abs(robust.values[MASS] - 1.3) < 3.0 * robust.errors[MASS] < 0.1
    assert plain.errors[MASS] > 3.0 * robust.errors[MASS]
    assert robust.checks[0].outliers == 2


def test_derivatives_of_predictions(swings):
    """Model, start, speed and gain, through spline interpolation, against differences."""
    predictor, h = swings[1], 1e-5
    x = np.array([0.1, -0.2, 0.1, 0.2, -0.1, 0.3])
    steps = h * np.eye(6)
    near = predictor(np.concatenate([x + steps, x - steps])).y
    np.testing.assert_allclose(
        predictor(x).jacobian[0].T, (near[:6] - near[6:]) / (2.0 * h), rtol=0, atol=2e-7
    )


def test_motions_share_a_kernel_and_give_back_the_truth(swings):
    """Two swings that differ in what they hold, one with samples at times of its own."""
    measured, predictor = swings
    assert len(predictor.evaluations) == 1
    found = mbd.identify(SPRUNG, SWING_VARY, measured, noise={"angle": 1e-3, "rate": 1e-3})
    assert found.converged and not found.ambiguities
    np.testing.assert_allclose(found.estimates, TRUE, rtol=2e-3)  # interpolated data
    assert found.checks[0].missing == 10
    # Without noise and interpolation the truth is exact.
    exact = mbd.identify(
        SPRUNG,
        {n.removeprefix("first/"): x for n, x in SWING_VARY.items() if "second" not in n},
        measured[0].data,
        measured[0].experiment,
    )
    np.testing.assert_allclose(exact.estimates, [*TRUE[:4], TRUE[5]], rtol=1e-8)


def test_what_motion_alone_cannot_tell_is_named():
    """Twice the mass, stiffness and friction move alike: only ratios matter."""
    vary = dict.fromkeys((MASS, "forces/spring/stiffness", "forces/friction/viscous"), Within(0.2))
    told = identifiability(SPRUNG, vary, swing(), {"angle": 1e-3, "rate": 1e-3})
    assert not np.isfinite(list(told.errors.values())).any()
    [one] = told.ambiguities
    assert len(one.determined) == 2 and len(one.open) == 1
    assert all(c.product for c in one.determined)
    assert "undetermined" in str(told) and "not identifiable" in str(told)
    # One number given, the others are determined, as well as the information matrix says.
    told = identifiability(
        SPRUNG, dict(list(vary.items())[1:]), swing(), {"angle": 1e-3, "rate": 1e-3}
    )
    assert isinstance(told, Identifiability) and not told.ambiguities
    jacobian = told.information.jacobian
    errors = np.sqrt(np.diag(np.linalg.inv(jacobian.T @ jacobian))) * told.predictor.unknowns.scale
    np.testing.assert_allclose(list(told.errors.values()), errors, rtol=1e-9)
    assert told.without["rate"]["forces/spring/stiffness"] > told.errors["forces/spring/stiffness"]


def test_forms_of_data():
    xarray, pandas = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    y, over = weighed(1.2), ANGLES[::-1]
    forms = [
        {"hinge": over, "torque": y[::-1]},
        xarray.Dataset({"torque": ("hinge", y[::-1])}, {"hinge": over, "run": 7.0}),
        pandas.DataFrame({"torque": y[::-1]}, index=pandas.Index(over, name="hinge")),
    ]
    for data in forms:
        [record] = records(PENDULUM, [Measured(WEIGH, data)])
        [channel] = record.channels
        np.testing.assert_allclose(channel.resampled(y), y[::-1], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(channel.values, y[::-1])
    both = Both({"near": WEIGH, "far": replace(WEIGH, over={"hinge": (1.3, 1.4)})})
    names = [r.name for r in records(PENDULUM, [Measured(both, {"far/torque": [1.0, 2.0]})])]
    assert names == ["far"]


def test_numbers_that_move_together_and_functions_as_experiments():
    """Two masses that are one unknown, weighed by a function of one's own."""
    mech = mbd.zoo.double_pendulum()

    def scales(m):
        first, second = m.bodies["bob_1"].mass, m.bodies["bob_2"].mass
        return {"sum": first + 3.0 * second}

    vary = {"added": MovedTogether("bodies/*/mass", Within(0.5))}
    found = mbd.identify(mech, vary, {"sum": 4.8}, scales, noise={"sum": 0.1})
    assert found.values["added"] == pytest.approx(0.2, abs=1e-9)
    assert found.errors["added"] == pytest.approx(0.1 / 4.0, rel=1e-9)
    weights = {b: float(x.mass) for b, x in found.model.bodies.items()}
    assert weights == pytest.approx({"bob_1": 1.2, "bob_2": 1.2})


def test_the_search_comes_back_from_where_the_model_fails():
    """Gauss–Newton's first step from 4 is to below 0.5, where the root is not a number."""
    vary = {MASS: Between(-9.0, 9.0, start=4.0)}
    root = lambda m: {"y": jnp.sqrt(m.bodies["bob"].mass - 0.5)}  # noqa: E731
    found = mbd.identify(PENDULUM, vary, {"y": 0.2}, root, noise={"y": 1e-3})
    assert found.converged and found.values[MASS] == pytest.approx(0.54, abs=1e-8)


def test_of_many_starts_the_best_is_kept():
    """A vibration of twice the frequency that is thought: the nearest minimum is not the one."""
    t = np.linspace(0.0, 1.0, 40)
    vary = {MASS: Between(0.1, 5.0, scale=4.0)}

    def vibration(m):
        return {"y": jnp.cos(20.0 * m.bodies["bob"].mass * t)}

    data = {"y": np.cos(20.0 * 2.1 * t)}
    alone, best = (
        mbd.identify(PENDULUM, vary, data, vibration, noise={"y": 0.1}, starts=n) for n in (1, 60)
    )
    assert abs(alone.values[MASS] - 2.1) > 0.3
    assert best.values[MASS] == pytest.approx(2.1, abs=1e-8)


def test_single_precision_is_refused():
    single = mbd.zoo.simple_pendulum(mass=np.array(1.0, np.float32))
    with pytest.raises(ValueError, match="double precision"):
        mbd.identify(single, {MASS: Within(0.1)}, {"torque": np.zeros(13)}, WEIGH)


def test_an_estimate_at_its_limit_is_told():
    y = weighed(1.3, np.random.default_rng(3))
    tight = WEIGHED | {MASS: Within(0.1)}
    found = mbd.identify(PENDULUM, tight, {"torque": y}, WEIGH, noise={"torque": 0.2})
    assert found.at_limit == (MASS,) and "at a limit" in str(found)
    assert found.values[MASS] == pytest.approx(1.1, abs=1e-4)


BAD = {
    "did you mean 'torque'": {"data": {"torqe": np.zeros(13)}},
    "keep=None": {"data": {"torque": np.zeros(12)}},
    "must be numbers from 0 to 1.2": {"data": {"torque": np.zeros(2), "hinge": [0.0, 9.0]}},
    "all samples are missing": {"data": {"torque": np.full(13, np.nan)}},
    "must be positive": {"noise": {"torque": -1.0}},
    "did you mean 'torque'?": {"noise": {"torqe": 1.0}},
    "errors='white'": {"errors": "white"},
    "give observe=": {"observe": None},
    "no variable": {"vary": {"bodies/bab/mass": Within(0.1)}},
    "none of the outputs": {"data": {}},
    "a float": {"data": 3.0},
}


@pytest.mark.parametrize("text", BAD)
def test_mistakes_are_told(text):
    given = {"data": {"torque": np.zeros(13)}, "observe": WEIGH, "vary": WEIGHED} | BAD[text]
    with pytest.raises(ValueError) as error:
        mbd.identify(PENDULUM, given.pop("vary"), given.pop("data"), given.pop("observe"), **given)
    assert text in str(error.value)


def test_a_model_that_fails_at_the_start_says_what_stays_open():
    bar = mbd.zoo.four_bar(coupler=0.8, ground=2.0)  # its links do not reach
    vary = {"points/D/x": Within(0.1)}
    with pytest.raises(
        ValueError, match=r"not assembled, joint '.*' stays open by 0\.\d+ m or rad; give start="
    ):
        mbd.identify(bar, vary, {"crank": 0.0}, Configuration({}, {"crank": Coordinate("A")}))


def test_held_values_may_be_traced():
    """As initial states are when they are unknown."""
    still = mbd.zoo.simple_pendulum(gravity=0.0)

    def end(speed):
        moved = Motion(0.1, 0.01, {"angle": Coordinate("hinge").last()}, speeds={"hinge": speed})
        return moved.computed(still)["angle"]

    assert jax.jit(jax.grad(end))(2.0) == pytest.approx(0.1, rel=1e-9)
