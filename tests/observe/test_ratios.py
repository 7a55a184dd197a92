"""Speed ratio and mechanical advantage: by differences, by virtual power, by statics."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import synthesis
from jaxmbd.analysis import JointCoordinate
from jaxmbd.observe import MechanicalAdvantage, Snapshot, SpeedRatio, Sweep
from jaxmbd.zoo import rssr_theta

BAR = synthesis.massless_four_bar()
ANGLES = (0.0, 0.8, 2.0, 4.0)
OBSERVED = {"ratio": SpeedRatio("D", "A"), "gain": MechanicalAdvantage("A", "D")}


def sides(mech, q):
    """Speed ratio of a four-bar by the sines of its angles at the crank and the rocker."""
    b, c = (np.asarray(mbd.point_position(mech, q, "coupler", n))[:2] for n in "BC")
    a, d = (np.asarray(mech.points[n]) for n in "AD")

    def area(x, y):
        return x[0] * y[1] - x[1] * y[0]

    return area(b - a, c - b) / area(c - d, c - b)


def test_the_ratio_of_a_four_bar_and_its_inverse():
    found = Sweep({"A": ANGLES}, OBSERVED)(BAR)
    qs = [mbd.assemble(BAR, {"A": x}).q for x in ANGLES]
    np.testing.assert_allclose(found["ratio"], [sides(BAR, q) for q in qs], rtol=1e-9, atol=0)
    np.testing.assert_allclose(found["gain"] * found["ratio"], 1.0, rtol=1e-12, atol=0)


def test_statics_need_the_effort_that_the_advantage_says():
    """A torque on the rocker, held by one of the crank."""
    q, key = mbd.assemble(BAR, {"A": 0.8}).q, JointCoordinate("A", 0)

    @jax.jit
    def found(q):
        at = Snapshot(BAR, q, keys=(key,), values=[0.8], inputs={"D": -3.0}, moving=False)
        return OBSERVED["gain"].value(at), at.holding(key)

    gain, effort = found(q)
    np.testing.assert_allclose(effort, 3.0 / gain, rtol=1e-9, atol=0)


def test_toggles_and_limits():
    """Drawn in line: the output stands still, or moves alone."""
    points = {"A": (0.0, 0.0), "B": (1.0, 0.0), "C": (3.0, 0.0), "D": (3.5, -1.5)}
    toggle = synthesis.massless_four_bar(points)
    swapped = SpeedRatio("A", "D"), MechanicalAdvantage("D", "A")

    @jax.jit
    def found(q):
        at = Snapshot(toggle, q)
        return [x.value(at) for x in (*OBSERVED.values(), *swapped)]

    ratio, gain, inverse, loss = found(jnp.asarray(mbd.neutral(toggle)))
    assert abs(ratio) < 1e-14 and abs(gain) > 1e14
    assert np.isinf(inverse) and float(loss) == 0.0


@pytest.mark.slow
def test_a_freedom_that_nothing_holds_is_open():
    five = mbd.zoo.five_bar()
    q = mbd.assemble(five).q
    assert np.isnan(SpeedRatio("B", "A").value(Snapshot(five, q)))
    held = Snapshot(five, q, keys=(JointCoordinate("E", 0),), values=[q[2]])
    e = 1e-5
    known = [{"A": q[0] + x, "E": q[2]} for x in (-e, e)]
    low, high = (mbd.assemble(five, k, guess=q).q for k in known)
    slope = (high[1] - low[1]) / (2.0 * e)
    np.testing.assert_allclose(SpeedRatio("B", "A").value(held), slope, rtol=1e-7, atol=0)


@pytest.mark.slow
def test_of_balls_points_and_own_drives():
    rssr = mbd.zoo.rssr()
    found = Sweep({"crank": (0.3,)}, {"ratio": SpeedRatio("rocker", "crank")})(rssr)
    slope = (rssr_theta(0.3 + 1e-5) - rssr_theta(0.3 - 1e-5)) / 2e-5
    np.testing.assert_allclose(found["ratio"], [slope], rtol=1e-8, atol=0)
    slider = mbd.zoo.slider_crank()
    x = mbd.PointCoordinate("slider", "B", "x")
    driven = slider.replace(drives={"motor": mbd.Drive("O", lambda t, p: 1.0 + 2.0 * t)})
    q = mbd.assemble(slider, {"O": 1.0}).q
    forth = [mbd.assemble(slider, {"O": 1.0 + e}).q for e in (-1e-5, 1e-5)]
    low, high = (float(mbd.point_position(slider, y, "slider", "B")[0]) for y in forth)
    slope = (high - low) / 2e-5
    for mech in (slider, driven):
        at = Snapshot(mech, q)
        np.testing.assert_allclose(SpeedRatio(x, "O").value(at), slope, rtol=1e-7, atol=0)
        np.testing.assert_allclose(SpeedRatio("O", x).value(at), 1.0 / slope, rtol=1e-7, atol=0)
    assert SpeedRatio(x, "O").about(slider).unit == "m/rad"
    assert MechanicalAdvantage("O", x).about(slider).unit == "rad/m"


@pytest.mark.slow
def test_the_gradient_is_that_of_differences():
    @jax.jit
    def ratio(q, x):
        mech = BAR.replace(points={"C": x})
        return OBSERVED["ratio"].value(Snapshot(mech, q))

    q, at, e = mbd.assemble(BAR, {"A": 0.8}).q, jnp.array([3.0, 2.0]), 1e-6
    for k, x in enumerate((q, at)):
        found = jax.jit(jax.grad(ratio, argnums=k))(q, at)
        both = [[y + s * d if j == k else y for j, y in enumerate((q, at))]
                for d in np.eye(len(x)) for s in (e, -e)]  # fmt: skip
        values = np.array([ratio(*y) for y in both])
        np.testing.assert_allclose(found, (values[::2] - values[1::2]) / (2.0 * e), rtol=1e-6)


def test_names_that_do_not_exist_are_told():
    with pytest.raises(ValueError, match="nobody"):
        Sweep({"A": ANGLES}, {"x": SpeedRatio("nobody", "A")}).check(BAR)
    assert "takes 4 numbers" in SpeedRatio("A", "crank").problems(mbd.zoo.rssr())[0]
