"""Counterweights against the closed forms of machine design."""

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.design import AtMost, Balance, Between, Counterweight, counterbalance
from jaxmbd.observe import Driven, constant_speed

SPEED = 20.0
TURN = Driven({"O": constant_speed(SPEED)}, np.linspace(0.0, 2 * np.pi / SPEED, 25))


@pytest.fixture(scope="module")
def slider_crank():
    return mbd.zoo.slider_crank(gravity=0.0)


@pytest.fixture(scope="module")
def balanced(slider_crank):
    weight = Counterweight("crank", "O", reach=(0.2, 0.2, 0.0), mass=20.0)
    return counterbalance(slider_crank, TURN, [weight])


@pytest.mark.slow
def test_slider_crank_takes_half_of_the_reciprocating_mass(slider_crank, balanced):
    """Norton, Design of Machinery, 14.5: the piston's first harmonic is m r ω² along its line.

    The least mean square of (A − c)² cos² + c² sin² over a turn is at c = A / 2.
    """
    m = slider_crank
    o, b, a = (np.asarray(m.point(x)) for x in "OBA")
    share = np.linalg.norm(m.com("rod") - b) / np.linalg.norm(a - b)
    rod, piston = float(m.bodies["rod"].mass), float(m.bodies["slider"].mass)
    moment = float(m.bodies["crank"].mass) * np.asarray(m.com("crank") - o)
    moment = moment + (rod * (1 - share) + 0.5 * (piston + rod * share)) * (b - o)
    (mass, place) = balanced.weights["crank_counterweight"]
    assert np.allclose(mass * (place - o), -moment, atol=1e-6 * np.linalg.norm(moment))
    assert balanced.after["force"] < 0.6 * balanced.before["force"]
    assert isinstance(balanced, Balance)
    assert "crank_counterweight" in str(balanced) and "force [N]" in str(balanced)


FOUR_BAR = mbd.zoo.four_bar(gravity=0.0)
PART = Driven({"A": constant_speed(5.0)}, np.linspace(0.0, 0.4, 13))
REACH = (0.4, 0.0, 0.4)
PAIR = [Counterweight("crank", "A", REACH, 20.0), Counterweight("rocker", "D", REACH, 20.0)]


def test_four_bar_forces_vanish():
    """Two weights balance a four-bar's force fully (Berkof and Lowen 1969), by these products."""
    m = FOUR_BAR
    found = counterbalance(m, PART, PAIR)
    assert found.after["force"] < 1e-6 * found.before["force"]
    coupler, (b, c) = m.bodies["coupler"], (np.asarray(m.point(x)) for x in ("B", "C_coupler"))
    share = np.linalg.norm(m.com("coupler") - b) / np.linalg.norm(c - b)
    pin = {"crank": ("A", "B", 1 - share), "rocker": ("D", "C_rocker", share)}
    for body, (bearing, end, part) in pin.items():
        at = np.asarray(m.point(bearing))
        own = float(m.bodies[body].mass) * np.asarray(m.com(body) - at)
        moment = own + part * float(coupler.mass) * np.asarray(m.point(end) - at)
        mass, place = found.weights[f"{body}_counterweight"]
        assert np.allclose(mass * (place - at), -moment, atol=1e-5)


@pytest.mark.slow
def test_torque_and_moment_cost_force():
    """A trade: full force balance costs torque, which falls again where it has a share."""
    force = counterbalance(FOUR_BAR, PART, PAIR, about="A")
    shares = {"force": 1.0, "moment": 0.5, "torque": 2.0}
    trade = counterbalance(FOUR_BAR, PART, PAIR, shares=shares, about="A")
    assert trade.after["force"] > force.after["force"]
    assert trade.after["torque"] < force.after["torque"]
    assert set(trade.after) == {"force", "moment", "torque"}
    weighed = [
        sum(s * (x.after[n] / x.before[n]) ** 2 for n, s in shares.items()) for x in (force, trade)
    ]
    assert weighed[1] == pytest.approx(trade.optimum.objective) and weighed[1] < weighed[0]


@pytest.mark.slow
def test_in_the_plane_with_a_limit():
    points = {"O": (0.0, 0.0), "P": (0.1, 0.0)}
    arm = mbd.Mechanism(
        bodies={"arm": mbd.Body(2.0, "P", 0.01)},
        joints={"O": mbd.Revolute("ground", "arm", at="O")},
        points=points,
        gravity=(0.0, -9.81),
    )
    turn = Driven({"O": constant_speed(3.0)}, np.linspace(0.0, 2 * np.pi / 3.0, 9))
    weight = Counterweight("arm", "O", reach=0.5, mass=3.0)
    free = counterbalance(arm, turn, [weight], shares={"torque": 1.0})
    mass, place = free.weights["arm_counterweight"]
    assert np.allclose(mass * place, [-0.2, 0.0, 0.0], atol=1e-6)
    half = 0.5 * free.before["torque"]
    held = counterbalance(
        arm,
        turn,
        [weight],
        constraints={"enough": AtMost("torque", half)},
        vary={"gravity/y": Between(-9.9, -9.7)},
    )
    assert held.after["torque"] <= half * (1 + 1e-6)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"shares": {"forse": 1.0}}, "force"),
        ({"shares": {"force": -1.0}}, "must be positive"),
        ({"shares": {}}, "shares is empty"),
        ({"shares": {"moment": 1.0}}, "about="),
        ({"weights": []}, "weights is empty"),
        ({"weights": [Counterweight("crnk", "O", 0.1, 1.0)]}, "there is no body 'crnk'"),
        ({"weights": [Counterweight("crank", "Q", 0.1, 1.0)]}, "there is no point 'Q'"),
        ({"weights": [Counterweight("crank", "O", (0.1, 0.1), 1.0)]}, "reach="),
        ({"weights": [Counterweight("crank", "O", 0.1, 0.0)]}, "mass="),
        ({"weights": [Counterweight("crank", "O", 0.1, 1.0)] * 2}, "two counterweights of one"),
    ],
)
def test_what_does_not_fit_is_named(slider_crank, change, text):
    given = {"weights": [Counterweight("crank", "O", 0.1, 1.0)], **change}
    with pytest.raises(ValueError, match=text):
        counterbalance(slider_crank, TURN, given.pop("weights"), **given)


def test_a_motion_that_fails_says_where(slider_crank):
    free = slider_crank.replace(bodies={"slider": mbd.Body(1.0, (9.0, 0.0, 0.0))})
    stuck = Driven({"T": constant_speed(30.0)}, np.linspace(0.0, 1.0, 5))
    with pytest.raises(ValueError, match="Driven fails at"):
        counterbalance(free, stuck, [Counterweight("crank", "O", 0.1, 1.0)])


@pytest.mark.slow
def test_weights_that_change_nothing_are_told(slider_crank):
    """At constant speed a weight on the crank takes no part in its torque."""
    weight = Counterweight("crank", "O", reach=(0.1, 0.1, 0.0), mass=5.0)
    found = counterbalance(slider_crank, TURN, [weight], shares={"torque": 1.0})
    assert "change nothing" in str(found)
