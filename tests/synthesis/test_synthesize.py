"""Linkages that are found do their tasks, keep their conditions, and are optimal."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.design import Within
from jaxmbd.synthesis import (
    FunctionGeneration,
    MotionGeneration,
    PathGeneration,
    Problem,
    Synthesis,
    follow,
    massless_four_bar,
    massless_rssr,
    synthesize,
)
from jaxmbd.synthesis.search import random_starts, search_simultaneously
from jaxmbd.synthesis.synthesis import outputs_of

LINE = np.array([[1.0, 3.0], [1.4, 3.3], [1.8, 3.2], [2.2, 3.3], [2.6, 3.0], [3.0, 3.2]])
POINTS = {f"points/{name}": Within(2.0) for name in "ABCDP"}


@pytest.fixture(scope="module")
def path():
    """Six points and few freedoms: links are bounded, so that they are not met exactly."""
    task = PathGeneration("A", body="coupler", point="P", targets=LINE)
    lengths = {("A", "B"): (0.5, 1.0), ("B", "C"): (1.0, 2.0), ("C", "D"): (1.0, 2.0)}
    problem = Problem(massless_four_bar(), task, POINTS, lengths=lengths, least_transmission=0.3)
    return problem, synthesize(problem, starts=32, finishes=2)


def test_errors_are_those_of_the_linkage(path):
    problem, found = path
    q = follow(found.mechanism, "A", found.inputs).q
    at = [mbd.point_position(found.mechanism, x, "coupler", "P") for x in q]
    assert np.sum((np.asarray(at)[:, :2] - LINE) ** 2) == pytest.approx(found.error, rel=1e-9)
    assert found.error == pytest.approx(np.nanmin(found.optimum.objectives) * problem.task.size**2)
    assert isinstance(found, Synthesis)
    assert found.defects.sound and "no defect" in str(found)
    assert np.all(np.diff(found.inputs) > 0.0)


def test_conditions_are_kept(path):
    problem, found = path
    points = found.mechanism.points
    for (a, b), (least, greatest) in problem.lengths.items():
        length = np.linalg.norm(points[a] - points[b])
        assert least - 1e-6 <= length <= greatest + 1e-6
    index = np.asarray(follow(found.mechanism, "A", found.inputs).index)
    assert np.min(np.abs(index)) > 0.3 - 1e-6 and len(set(np.sign(index))) == 1


def test_it_is_a_local_minimum(path):
    """No step of some size that keeps the conditions has a smaller error."""
    problem, found = path
    z = np.array(list(found.optimum.values.values()))
    low, high = problem.limits
    drawn = np.random.default_rng(0).standard_normal((400, len(z)))
    near = jnp.asarray(np.clip(z + 1e-4 * drawn, low, high))
    out = jax.jit(mbd.lanes.vmap(lambda z: outputs_of(problem, z)))(near)
    keeps = (out["kept"].min(axis=1) >= 0.0) & (out["transmission"].min(axis=1) >= 0.0)
    assert int(keeps.sum()) > 0 and found.error > 1e-6
    best = np.nanmin(np.where(keeps, out["error"], np.inf)) * problem.task.size**2
    assert best > found.error * (1.0 - 1e-6)


def test_the_same_seed_starts_alike(path):
    problem, _ = path
    first, again, other = (random_starts(problem, 8, seed=s).z for s in (5, 5, 6))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert np.all(first >= problem.limits[0]) and np.all(first <= problem.limits[1])


def test_search_closes_and_keeps_conditions(path):
    problem, _ = path
    found = search_simultaneously(problem, random_starts(problem, 32))
    closes = found.closure < 1e-4
    assert np.mean(closes) > 0.8
    assert np.mean(found.margin[closes] > -1e-4) > 0.8


@pytest.mark.slow
def test_a_function_is_generated_in_space():
    """What a known RSSR does is found again, as a function of its crank."""
    inputs = np.linspace(0.0, 1.2, 6)
    truth = massless_rssr(
        {"A": (0.9, 0.2, 0.0), "B": (2.0, 1.8, 1.9), "rocker_pivot": (2.0, 2.8, 0.4)}
    )
    q = np.asarray(follow(truth, "crank", inputs).q)
    values = q[:, mbd.topology(truth).layout["rocker"].q][:, 0]
    task = FunctionGeneration("crank", inputs, output="rocker", values=values)
    names = ("A/x", "A/y", "B/y", "B/z")
    problem = Problem(massless_rssr(), task, {f"points/{n}": Within(0.8) for n in names})
    found = synthesize(problem, starts=16, finishes=2)
    assert found.root_mean_square < 1e-5
    assert found.defects.sound


@pytest.mark.slow
def test_a_body_is_guided_through_poses():
    """Four poses, prescribed timing left free: met exactly by many four-bars."""
    poses = {"targets": [[0, 0], [1, 0.6], [2.2, 0.9], [3.1, 0.7]]}
    turned = np.deg2rad([0.0, -15.0, -40.0, -70.0])
    task = MotionGeneration("A", body="coupler", point="P", **poses, rotations=turned)
    begin = {"A": [-1.0, -2.0], "B": [-1.0, 0.0], "C": [1.0, 0.5], "D": [1.0, -2.0]}
    vary = {f"points/{n}": Within(6.0, start=x) for n, x in begin.items()}
    vary["points/P"] = Within(0.1, start=[0.0, 0.0])
    found = synthesize(Problem(massless_four_bar(), task, vary, span=np.pi), starts=64)
    assert found.root_mean_square < 1e-6
    assert found.defects.sound


@pytest.mark.slow
def test_a_distance_to_the_dead_centre_is_kept():
    task = PathGeneration("A", body="coupler", point="P", targets=LINE)
    lengths = {("A", "B"): (0.5, 1.0), ("B", "C"): (1.0, 2.0), ("C", "D"): (1.0, 2.0)}
    problem = Problem(massless_four_bar(), task, POINTS, lengths=lengths, least_margin=0.3)
    found = synthesize(problem, starts=32, finishes=2)
    q = follow(found.mechanism, "A", found.inputs).q
    margins = [
        mbd.closure_margin(found.mechanism, {"A": u}, guess=x)
        for u, x in zip(found.inputs, q, strict=True)
    ]
    assert min(map(float, margins)) > 0.3 - 1e-6


@pytest.mark.slow
def test_the_transmission_angle_is_kept_all_the_way_round(path):
    """Of a four-bar it is least where the crank is aligned with the ground link."""
    problem = replace(path[0], least_transmission=np.sin(np.deg2rad(17.5)), full_turn=True)
    found = synthesize(problem, starts=16, finishes=2)
    p = found.mechanism.points
    ground, crank, b, c = (
        np.linalg.norm(p[x] - p[y]) for x, y in (("A", "D"), ("A", "B"), ("B", "C"), ("C", "D"))
    )
    cosines = (b**2 + c**2 - (ground + np.array([-crank, crank])) ** 2) / (2.0 * b * c)
    sine = np.sqrt(1.0 - np.max(np.abs(cosines)) ** 2)
    assert sine >= problem.least_transmission - 1e-6
    assert found.defects.sound and found.defects.turn_transmission == pytest.approx(sine, abs=1e-8)
    assert f"{sine:.3f} over the full turn" in str(found)


@pytest.mark.slow
def test_what_cannot_be_done_is_told():
    crank = np.linspace(0.0, 0.2, 3)
    task = FunctionGeneration("A", crank, output="D", values=0.9 * crank)
    vary = {f"points/C/{axis}": Within(0.5) for axis in "xy"}
    problem = Problem(massless_four_bar(), task, vary, lengths={("A", "B"): (50.0, 60.0)})
    with pytest.raises(ValueError, match="no linkage keeps its conditions"):
        synthesize(problem, starts=8, steps=1)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"least_transmission": 30.0}, "least_transmission=30.0; give an index"),
        ({"lengths": {("A", "B"): (2.0, 1.0)}}, "a greatest that is not below it"),
    ],
)
def test_limits_that_nothing_can_keep_are_refused(given, text):
    task = PathGeneration("A", body="coupler", point="P", targets=[[1.0, 3.0], [1.4, 3.1]])
    with pytest.raises(ValueError, match=text):
        Problem(massless_four_bar(), task, {"points/*": Within(1.0)}, **given)
