"""Displacement programmes against text-book factors, integrals of accelerations, and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from scipy.interpolate import make_interp_spline

import jaxmbd as mbd
from jaxmbd.cams import (
    RISE_LAWS,
    Dwell,
    Jump,
    PeriodicProgramme,
    Programme,
    ProgrammeRates,
    Return,
    Rise,
    SplineProgramme,
    spline_programme,
)
from jaxmbd.observe import DriveEffort, Driven, HoldingEffort

X = np.linspace(0.0, 1.0, 8001)
UNIFORM = np.arange(24) * np.pi / 12

# Largest velocity h/β, acceleration h/β², jerk h/β³: R. L. Norton, Cam Design and Manufacturing
# Handbook, table of chapter 3.
FACTORS = {
    "harmonic": (np.pi / 2, np.pi**2 / 2, np.pi**3 / 2),
    "cycloidal": (2.0, 2 * np.pi, 4 * np.pi**2),
    "3-4-5": (1.875, 10 / np.sqrt(3), 60.0),
    "4-5-6-7": (2.1875, 7.5132, 52.5),
    "modified sine": (1.7596, 5.5280, 69.466),
    "modified trapezoidal": (2.0, 4.8881, 61.426),
    "parabolic": (2.0, 4.0, 0.0),
    "uniform": (1.0, 0.0, 0.0),
}


def modified_sine(x):
    middle = np.sin((4 * np.pi * x + np.pi) / 3)
    return np.where((x < 1 / 8) | (x > 7 / 8), np.sin(4 * np.pi * x), middle)


def modified_trapezoidal(x):
    first = np.minimum(x, 1 - x)
    ramp = np.where(first < 1 / 8, np.sin(4 * np.pi * first), 1.0)
    ramp = np.where(first > 3 / 8, np.cos(4 * np.pi * (first - 3 / 8)), ramp)
    return np.where(x < 0.5, ramp, -ramp)


def one_rise(law):
    """A rise of 1 in 1 rad, so that rates are the text books' factors."""
    return Programme([Rise(1.0, 1.0, law), Return(1.0, 1.0, law), Dwell()])


@pytest.mark.parametrize("law", RISE_LAWS)
def test_laws_have_the_factors_of_text_books(law):
    rates = one_rise(law).rates(X[:-1])
    for found, wanted in zip(rates[1:], FACTORS[law], strict=True):
        np.testing.assert_allclose(np.abs(found).max(), wanted, rtol=3e-5, atol=1e-12)
    np.testing.assert_allclose(rates.displacement[0], 0.0, atol=1e-15)
    np.testing.assert_allclose(one_rise(law)(1.0), 1.0, rtol=1e-14)
    np.testing.assert_allclose(one_rise(law)(0.5), 0.5, rtol=1e-14)


@pytest.mark.parametrize("acceleration", [modified_sine, modified_trapezoidal])
def test_piecewise_laws_are_integrals_of_their_accelerations(acceleration):
    x = np.linspace(0.0, 1.0, 8 * 1000 + 1)
    velocity = cumulative_simpson(acceleration(x), x=x, initial=0.0)
    y = cumulative_simpson(velocity, x=x, initial=0.0)
    rates = one_rise(acceleration.__name__.replace("_", " ")).rates(x[:-1])
    np.testing.assert_allclose(rates.displacement, (y / y[-1])[:-1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(rates.acceleration, acceleration(x[:-1]) / y[-1], atol=1e-9)


def test_a_programme_rises_dwells_and_returns():
    lift = Programme(
        [Rise(0.03, 1.0), Dwell(0.5), Return(0.01, 1.0, "3-4-5"), Dwell(), Return(0.02, 2.0)]
    )
    starts = [float(x) for x in lift.angles()]
    np.testing.assert_allclose(starts, [0, 1, 1.5, 2.5, 2 * np.pi - 2, 2 * np.pi], rtol=1e-15)
    np.testing.assert_allclose(lift(np.array([0.0, 1.2, 3.0])), [0.0, 0.03, 0.02], atol=1e-17)
    np.testing.assert_allclose(lift(X - 4 * np.pi), lift(X), atol=1e-15)
    assert isinstance(lift, PeriodicProgramme) and isinstance(lift.rates(X), ProgrammeRates)
    assert lift(1).dtype == float and lift(jnp.float32(1.0)).dtype == jnp.float32


def test_rates_are_derivatives_and_differ_by_heights_and_angles():
    def at(height, width):
        rise, down = Rise(height, width, "modified sine"), Return(height, 1.0, "4-5-6-7")
        return Programme([rise, Dwell(0.5), down, Dwell()]).rates(jnp.array([0.4, 1.9, 2.3]))

    step = 1e-5
    rates = Programme([Rise(0.1, 1.3), Return(0.1, 1.0), Dwell()]).rates
    angles = np.array([0.2, 0.9, 1.7])
    higher, lower = rates(angles + step), rates(angles - step)
    for k in range(3):
        difference = (higher[k] - lower[k]) / (2 * step)
        np.testing.assert_allclose(rates(angles)[k + 1], difference, rtol=1e-6, atol=1e-9)
    exact = jax.jacfwd(at, argnums=(0, 1))(0.1, 1.2)
    for i in range(2):
        dx = step * np.eye(2)[i]
        up, down = at(*(np.array([0.1, 1.2]) + dx)), at(*(np.array([0.1, 1.2]) - dx))
        for name in ProgrammeRates._fields:
            difference = (getattr(up, name) - getattr(down, name)) / (2 * step)
            np.testing.assert_allclose(getattr(exact, name)[i], difference, rtol=1e-6, atol=1e-7)


def test_jumps_are_told():
    assert (
        Programme([Rise(1.0, 2.0, "4-5-6-7"), Return(1.0, 2.0, "4-5-6-7"), Dwell()]).jumps() == []
    )
    found = Programme([Rise(1.0, 2.0, "harmonic"), Dwell(1.0), Return(1.0, 2.0), Dwell()]).jumps()
    assert [(j.angle, j.of) for j in found] == [
        (0.0, "acceleration"),
        (2.0, "acceleration"),
        (3.0, "jerk"),
        (5.0, "jerk"),
    ]
    assert isinstance(found[0], Jump)
    np.testing.assert_allclose([found[0].before, found[0].after], [0.0, np.pi**2 / 8])
    middle = Programme(
        [Rise(1.0, 2.0, "parabolic"), Return(1.0, 2.0, "parabolic"), Dwell()]
    ).jumps()
    assert [j.angle for j in middle] == [0.0, 1.0, 3.0, 4.0]
    assert [j.of for j in Programme([Rise(1.0, 3.0, "uniform"), Return(1.0)]).jumps()][
        0
    ] == "velocity"


@pytest.mark.parametrize(
    ("segments", "text"),
    [
        ([Rise(1.0, 3.0), Dwell()], "it ends 1 above its start"),
        ([Rise(1.0, 3.0), Return(1.0, 3.0)], "fill 343.775°, not a turn of 360°; add Dwell()"),
        ([Rise(1.0, 4.0), Return(1.0, 4.0), Dwell()], "leaves nothing for segment 2 (Dwell)"),
        ([Rise(1.0), Return(1.0)], "leave out one angle only"),
        ([Rise(1.0, -1.0), Return(1.0)], "the angle of segment 0 (Rise) is -1 rad"),
        ([Rise(1.0, 3.0, "harmnic"), Return(1.0)], "did you mean 'harmonic'"),
        ([Rise(1.0, 3.0, lambda x: 2 * x), Return(1.0)], "goes from 0 to 2, not from 0 to 1"),
        ([Rise(1.0, 3.0), 1.0], "segment 1 (float) is no segment"),
    ],
)
def test_programmes_that_do_not_close_are_refused(segments, text):
    with pytest.raises(ValueError, match="Programme: ") as error:
        Programme(segments)
    assert text in str(error.value)


def test_a_law_of_ones_own():
    lift = Programme([Rise(2.0, 1.0, by=lambda x: x**3 * (4 - 3 * x)), Return(2.0)])
    np.testing.assert_allclose(lift(0.5), 2 * 0.5**3 * 2.5)


@pytest.mark.parametrize("n", [3, 30])
def test_a_spline_is_that_of_scipy(n):
    rng = np.random.default_rng(n)
    x, y = np.sort(rng.uniform(-1.0, 5.0, n)), rng.normal(size=n)
    found = spline_programme(x, y)
    other = make_interp_spline(
        np.append(x, x[0] + 2 * np.pi), np.append(y, y[0]), k=5, bc_type="periodic"
    )
    at = np.linspace(x[0], x[0] + 6.28, 301)
    rates = found.rates(at)
    for k in range(4):
        wanted = other.derivative(k)(at) if k else other(at)
        np.testing.assert_allclose(rates[k], wanted, rtol=0, atol=1e-7 * np.abs(wanted).max())
    rounding = 4e-16 * (1.0 + np.abs(found.slopes).max())  # of x
    np.testing.assert_allclose(found(x), y, rtol=0, atol=rounding)
    np.testing.assert_allclose(found(at - 4 * np.pi), found(at), rtol=0, atol=1e-9)
    assert isinstance(found, SplineProgramme)


def test_a_spline_differs_by_its_points():
    y = 0.01 * np.sin(UNIFORM)

    def at(y):
        return spline_programme(UNIFORM, y).rates(1.0).acceleration

    exact, step = jax.grad(at)(y), 1e-6
    for i in (0, 4, 20):
        up, down = (at(y + sign * step * np.eye(24)[i]) for sign in (1, -1))
        np.testing.assert_allclose(exact[i], (up - down) / (2 * step), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        ([0.0, 1.0], [0.0, 1.0], "three or more"),
        ([0.0, 1.0, 2.0], [0.0, 1.0], "three or more"),
        ([0.0, 2.0, 1.0], [0.0, 1.0, 2.0], "must increase"),
        ([0.0, 1.0, 2 * np.pi], [0.0, 1.0, 0.0], "leave out the last point"),
    ],
)
def test_bad_points_are_refused(x, y, text):
    with pytest.raises(ValueError, match=text):
        spline_programme(x, y)


def test_a_drive_and_a_driven_motion_follow_a_programme():
    speed, times = 30.0, np.linspace(0.0, 0.2, 13)
    lift = Programme([Rise(0.02, 2.0, "3-4-5"), Return(0.02, 2.0, "modified sine"), Dwell()])
    slider = mbd.Prismatic("ground", "slider", (0, 0, 0), (0, 1, 0))
    mech = mbd.Mechanism({"slider": mbd.Body(0.3)}, {"guide": slider})
    driven = mech.replace(drives={"cam": mbd.Drive("guide", *lift.at_speed(speed, 0.1))})
    wanted = 0.3 * speed**2 * lift.rates(0.1 + speed * times).acceleration
    by_drive = Driven({}, times, {"force": DriveEffort("cam")})(driven)
    by_known = Driven(
        {"guide": lift.at_speed(speed, 0.1)}, times, {"force": HoldingEffort("guide")}
    )
    np.testing.assert_allclose(by_drive["force"], wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(by_known(mech)["force"], wanted, rtol=1e-12, atol=1e-12)
