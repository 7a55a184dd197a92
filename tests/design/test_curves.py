"""`Curve`: targets and bands, against closed forms, of rigid, settled and loaded columns."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.design import AtLeast, Between, Curve, Evaluation, Scatter, Unknowns, Within
from jaxmbd.design.curves import misfit_of
from jaxmbd.design.minimization import closing_of
from jaxmbd.observe import Sweep, Together
from jaxmbd.sampling import Normal

X = np.linspace(-1.0, 1.0, 7)
LINE = {"a": Between(-5.0, 5.0, start=0.3), "b": Between(-5.0, 5.0, start=-0.2)}


MIXED: Any = [Curve("a", 0.0), "b"]


def line(x):
    return x["a"] + x["b"] * X


def test_targets_are_weighed_least_squares():
    """Two curves of one line, with scales by place and a place that does not matter."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=7), rng.normal(size=3)
    scale = np.append(rng.uniform(0.5, 2.0, 6), np.inf)
    wanted = [Curve(line, first, scale=scale), Curve(lambda x: line(x)[:3], second, scale=0.1)]
    found = mbd.minimize(wanted, None, LINE)
    rows = np.stack([np.ones(7), X], axis=1)
    weights = [1.0 / scale / np.sqrt(7), np.full(3, 10.0) / np.sqrt(3)]
    whole = [np.concatenate([weights[0][:, None] * rows, weights[1][:, None] * rows[:3]])]
    whole += [np.concatenate([weights[0] * first, weights[1] * second])]
    best, left, *_ = np.linalg.lstsq(*whole, rcond=None)
    assert found.method == "least-squares" and found.status == "optimal"
    assert list(found.values.values()) == pytest.approx(best.tolist(), abs=1e-9)
    assert found.objective == pytest.approx(left.item(), rel=1e-12)
    assert wanted[1].deviation(found.values) == pytest.approx(rows[:3] @ best - second, abs=1e-9)


def test_bands_are_one_sided_or_two_sided_by_place():
    lower = np.array([-np.inf, -np.inf, 0.0, 0.0, 0.5, 0.5, 1.1])
    band = Curve(line, lower=lower, upper=np.append(np.full(6, 1.0), np.inf))
    y = np.array([-9.0, 1.25, -0.5, 0.5, 0.75, 2.0, 0.5])
    wanted = [0.0, 0.25, -0.5, 0.0, 0.0, 1.0, -0.6]
    assert np.asarray(band.deviation({"a": y, "b": 0.0})) == pytest.approx(wanted, abs=1e-15)
    found = mbd.minimize(band, None, LINE)
    assert found.objective < 1e-16 and found.status == "optimal"
    ends = line(found.values)
    assert np.all(ends >= lower - 1e-7) and np.all(ends[:6] <= 1.0 + 1e-7)


def test_with_constraints_and_scatter_the_squares_are_one_number():
    goal = Curve(line, np.zeros(7))
    held = mbd.minimize(goal, None, LINE, constraints={"low": AtLeast(lambda x: x["a"], 0.5)})
    assert held.method == "slsqp" and held.objective == pytest.approx(0.25, abs=1e-9)
    assert held.multipliers["low"] == pytest.approx(1.0, abs=1e-6)
    rod, noise = mbd.zoo.simple_pendulum(), Scatter({"bodies/bob/mass": Normal(0.1)}, samples=16)
    mass = Curve(lambda mech: mech.bodies["bob"].mass, 2.0)
    scattered = mbd.minimize(mass, rod, {"bodies/bob/mass": Between(0.5, 4.0)}, scatter=noise)
    deviations = next(iter(noise.drawn(rod).values()))
    assert scattered.method == "slsqp"
    assert scattered.objective == pytest.approx(np.var(deviations), rel=1e-6)


def test_evaluations_keep_to_the_steps():
    """A valley that bends: the search is cut short, and nothing beside it is tried."""

    def valley(x):
        return jnp.stack([10.0 * (x["b"] - x["a"] ** 2), 1.0 - x["a"]])

    vary = {"a": Between(-3.0, 3.0, start=-1.9), "b": Between(-3.0, 3.0, start=2.0)}
    for steps in (1, 4):
        found = mbd.minimize(Curve(valley, 0.0), None, vary, steps=steps)
        assert found.evaluations == steps and found.status == "feasible"
    found = mbd.minimize(Curve(valley, 0.0), None, vary)
    assert found.status == "optimal" and found.objective < 1e-20
    assert np.all(np.diff(found.history[:, 2]) >= 0) and found.history[-1, 2] <= found.evaluations


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (lambda: Curve("toe"), "'toe': give a target, or lower= and upper="),
        (lambda: Curve("toe", 0.0, lower=1.0), "give a target, or lower= and upper="),
        (lambda: Curve("toe", "1 mm"), "target='1 mm' must be numbers in SI units"),
        (lambda: Curve("toe", lower=[0.0, np.nan]), "lower=.* must be numbers"),
        (lambda: Curve("toe", 0.0, scale=[1.0, 0.0]), "must be positive"),
        (lambda: Curve("toe", lower=[0.0, 2.0], upper=1.0), "above its upper one at some place"),
        (lambda: mbd.minimize(Curve(line, np.zeros(6)), None, LINE), r"shape \(7,\), its target"),
        (lambda: mbd.minimize(MIXED, None, LINE), "is one of Curve"),
        (lambda: mbd.minimize([], None, LINE), "is one of Curve"),
    ],
)
def test_what_is_wrong_is_said(given, text):
    with pytest.raises(ValueError, match=text):
        given()


def off(goals, model, vary, observe, step):
    """Largest error of the gradient of the curves' misfit, by differences, over the gradient."""
    unknowns = Unknowns.of(model, vary)
    found = Evaluation(unknowns, {"misfit": partial(misfit_of, goals)}, observe)
    x = 0.1 * np.random.default_rng(3).normal(size=len(unknowns))
    moved = x + step * np.concatenate([np.eye(len(x)), -np.eye(len(x))])
    up, down = np.split(found.values(moved)[:, 0], 2)
    _, slope = found.jacobians(x[None])
    slope = slope[0, 0]
    return np.abs(slope - (up - down) / (2.0 * step)).max() / np.abs(slope).max()


def trailing_arm(seed):
    """A trailing arm whose hardpoints are moved at random, and its roles."""
    rng = np.random.default_rng(seed)
    numbers = suspension.example_hardpoints("trailing_arm")
    moved = {n: np.asarray(x) + rng.uniform(-5e-3, 5e-3, 3) for n, x in numbers.items()}
    return suspension.trailing_arm_corner(moved)


@pytest.mark.parametrize("settle", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_columns_of_a_corner_rigid_and_settled(settle):
    corner, roles = trailing_arm(1)
    vary = {"points/wheel_centre": Within("20 mm"), "points/arm_pivot": Within("20 mm")}
    if settle:
        corner = mbd.soften(corner, "arm", (3e3, 2e6))
        vary |= {"forces/arm/stiffness": Within(0.3, relative=True)}
    bump = suspension.kinematics_sweep(
        roles, travel=[-0.04, 0.03], observe=["toe", "camber"], gradients=(), settle=settle
    )
    goals = [Curve("toe", lower=1e-3, upper=2e-3, scale=1e-3), Curve("camber", 0.02, scale=1e-2)]
    assert off(goals, corner, vary, bump, 1e-3) < 1e-6


@pytest.mark.slow
def test_sweeps_of_axles_and_together_have_margins():
    corner, roles = trailing_arm(2)
    car = suspension.axle(corner)
    pair = suspension.axle_corners(car, roles)
    roll = suspension.axle_sweep(pair, roll=[0.01 * x for x in range(-4, 5)], observe="axle_steer")
    load = Sweep({}, {}, inputs={"left_arm": [-1e3, 0.0, 1e3]}, settle=True)
    closing = closing_of(Together({"roll": roll, "load": load}))
    assert closing is not None and jax.eval_shape(closing.margin, car).shape == (6,)


@pytest.mark.slow
def test_columns_of_an_axle_under_load_and_in_roll():
    """Roll steer with side forces, by places and rates of the arms' hinges."""
    corner, roles = trailing_arm(3)
    car = suspension.axle(mbd.soften(corner, "arm", (3e3, 2e6)))
    pair = suspension.axle_corners(car, roles)
    lean = suspension.axle_sweep(
        pair, roll=[-0.02, 0.02], lateral=[2e3, -2e3], observe=["axle_steer", "left_camber"]
    )
    vary = {"points/*_arm_pivot": Within("20 mm"), "forces/*_arm/stiffness": Within(0.3, True)}
    goals = [Curve("axle_steer", [-2e-4, 2e-4]), Curve("left_camber", upper=-1e-2)]
    assert off(goals, car, vary, lean, 1e-3) < 1e-6
