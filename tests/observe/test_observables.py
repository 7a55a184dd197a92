"""Observables of an instant against the closed form of a driven and of a free pendulum."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.observe import (
    REASONS,
    Acceleration,
    ClosureError,
    Coordinate,
    Declaration,
    DirectionAngle,
    Distance,
    DistanceRate,
    DriveEffort,
    Experiment,
    Function,
    Observable,
    Output,
    Reduced,
    Snapshot,
    Sweep,
    Trajectory,
    Travel,
    Velocity,
)

ANGLE, SPEED, LENGTH, MASS, G = 0.7, 1.3, 0.8, 2.0, 9.81
ALONG = np.array([-np.cos(ANGLE), -np.sin(ANGLE), 0.0])  # from the pivot to the bob
ACROSS = np.array([np.sin(ANGLE), -np.cos(ANGLE), 0.0])  # its change with the angle
ANCHOR = (0.3, 0.4, 0.0)
BOB = "bob", (-LENGTH, 0.0, 0.0)


@dataclass(frozen=True)
class Square(Observable):
    """An observable of a user's own."""

    def value(self, at):
        return at.q[0] ** 2

    def about(self, mech):
        return Output("rad^2", "square of the first coordinate")


def swinging(t, params):
    return params["start"] + params["speed"] * t + params["half"] * t**2


@pytest.fixture(scope="module")
def pendulum():
    return mbd.zoo.simple_pendulum(length=LENGTH, mass=MASS)


@pytest.fixture(scope="module")
def free(pendulum):
    """Values of observables of the pendulum that swings freely."""
    observed = {
        "velocity": Velocity(*BOB),
        "speed": Velocity(*BOB, "norm"),
        "acceleration": Acceleration(*BOB),
        "still": Acceleration("ground", ANCHOR),
        "travel": Travel(*BOB),
        "apart": Distance("ground", ANCHOR, *BOB),
        "parting": DistanceRate("ground", ANCHOR, *BOB),
        "turned": DirectionAngle("bob", (1, 0, 0), up=(0, 1, 0), along=(1, 0, 0)),
        "square": Function(lambda at: at.q[0] ** 2, "rad^2"),
        "own": 2.0 * Square() - 1.0,
    }

    @jax.jit
    def values(q, v):
        at = Snapshot(pendulum, q, v)
        return {name: what.value(at) for name, what in observed.items()}

    return values(jnp.array([ANGLE]), jnp.array([SPEED]))


def test_points_of_a_pendulum_move_in_a_circle(free):
    np.testing.assert_allclose(free["velocity"], LENGTH * SPEED * ACROSS, rtol=1e-13, atol=1e-13)
    assert free["speed"] == pytest.approx(LENGTH * SPEED, rel=1e-13)
    turning = G * np.cos(ANGLE) / LENGTH
    expected = LENGTH * (turning * ACROSS - SPEED**2 * ALONG)
    np.testing.assert_allclose(free["acceleration"], expected, rtol=1e-12, atol=1e-12)
    assert not np.any(free["still"])
    drawn = LENGTH * (ALONG - [-1.0, 0.0, 0.0])
    np.testing.assert_allclose(free["travel"], drawn, rtol=0, atol=1e-14)


def test_the_rate_of_a_distance(free):
    line = LENGTH * ALONG - ANCHOR
    assert free["apart"] == pytest.approx(np.linalg.norm(line), rel=1e-13)
    rate = line @ (LENGTH * SPEED * ACROSS) / np.linalg.norm(line)
    assert free["parting"] == pytest.approx(rate, rel=1e-12)


def test_angles_and_functions(free):
    assert free["turned"] == pytest.approx(ANGLE, rel=1e-13)
    assert free["square"] == pytest.approx(ANGLE**2, rel=1e-13)
    assert free["own"] == pytest.approx(2.0 * ANGLE**2 - 1.0, rel=1e-13)


def test_the_effort_of_a_drive_accelerates_and_carries(pendulum):
    half = 1.7
    law = {"start": ANGLE, "speed": SPEED, "half": half}
    mech = pendulum.replace(drives={"motor": mbd.Drive("hinge", swinging, law)})
    at = Snapshot(mech, jnp.array([ANGLE]), jnp.array([SPEED]))
    expected = MASS * LENGTH**2 * 2.0 * half - MASS * G * LENGTH * np.cos(ANGLE)
    assert DriveEffort("motor").value(at) == pytest.approx(expected, rel=1e-12)
    assert DriveEffort("motor").about(mech).unit == "N m"
    assert "did you mean 'motor'" in DriveEffort("moter").problems(mech)[0]


def test_the_closure_error_of_an_open_drawing():
    """The halves of the joint are drawn 0.1 m across and 0.3 m along the vertical apart."""
    bar = mbd.zoo.four_bar(coupler=0.8, ground=0.7)
    open_ = ClosureError().value(Snapshot(bar, mbd.neutral(bar)))
    assert open_ == pytest.approx(0.3, rel=1e-12)
    assert ClosureError().value(Snapshot(bar, mbd.assemble(bar).q)) < 1e-12


def test_an_experiment_declares_what_it_yields():
    sweep = Sweep({"crank": [0.0, 0.2]}, {"angle": Coordinate("crank")})
    mech = mbd.zoo.rssr()
    found, declared = sweep(mech), sweep.declare(mech)
    assert isinstance(sweep, Experiment) and isinstance(declared, Declaration)
    assert tuple(declared.outputs) == ("angle", "status", *REASONS)
    assert found.keys() == declared.outputs.keys()
    place, distance, at = (found[name] for name in REASONS)
    assert place == -1 and np.isnan(distance) and np.isnan(at)
    course = sweep.trajectory(mech)
    assert isinstance(course, Trajectory) and course.axis == "crank"
    np.testing.assert_allclose(course.curves["angle"], course.x, rtol=0, atol=1e-14)


def test_reductions_of_a_parabola():
    x = jnp.linspace(-1.0, 3.0, 401)
    y = (x - 1.0) ** 2
    expected = {"max": 4.0, "min": 0.0, "span": 4.0, "mean": 4.0 / 3.0}
    for how, number in expected.items():
        found = Reduced(Coordinate("hinge"), how).value(x, y)
        assert abs(found - number) < 1e-4, how


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e3])
def test_no_size_of_a_mechanism_hides_that_nothing_balances_a_load(size):
    """A spring of the slide turns a free crank at rest, from micrometres to kilometres."""
    free = mbd.zoo.slider_crank(0.2 * size, 0.5 * size, 0.3 * size, gravity=0.0)
    q = mbd.assemble(free, known={"O": 1.0}).q
    loaded = free.replace(forces={"spring": mbd.TorsionSpring("T", stiffness=10.0 / size)})
    assert np.all(np.isnan(Snapshot(loaded, q, moving=False).lam))
    assert np.all(Snapshot(free, q, moving=False).lam == 0.0)
