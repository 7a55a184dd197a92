"""Templates of linkages, and tasks beyond paths, functions and motions."""

from dataclasses import replace
from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.design import Within
from jaxmbd.kinematics import motion_state
from jaxmbd.observe import HoldingEffort, Position
from jaxmbd.synthesis import (
    FunctionGeneration,
    Mixed,
    ObservableGeneration,
    PathGeneration,
    Problem,
    StraightLine,
    VelocityGeneration,
    dwell,
    finish,
    follow,
    massless_five_ss,
    massless_four_bar,
    massless_geared_five_bar,
    massless_inverted_slider_crank,
    massless_linkage,
    massless_rssp,
    massless_rssr,
    massless_six_bar,
    massless_slider_crank,
    massless_spherical_four_bar,
    synthesize,
)
from jaxmbd.synthesis.following import _determinant

SIX_BARS = {
    "Watt I": "AD AB BCE CDF EGP FG",
    "Watt II": "ADG AB BC CDE EFP FG",
    "Stephenson I": "AD ABE BC CDF EGP FG",
    "Stephenson II": "AG ABE BC EF CFDP DG",
    "Stephenson III": "ADG AB BCE CD EFP FG",
}
INPUTS = np.linspace(0.0, 1.0, 5)


def places(linkage, q, body, points):
    at = jax.vmap(lambda q: jnp.stack([mbd.point_position(linkage, q, body, n) for n in points]))
    return np.asarray(at(q))


def held_together(linkage, found, links):
    """Every link keeps the distances of its points, and pins stay together."""
    where = {}
    for body, names in links.items():
        at = places(linkage, found.q, body, names)
        for i, j in combinations(range(len(names)), 2):
            apart = np.linalg.norm(at[:, i] - at[:, j], axis=1)
            assert apart == pytest.approx(apart[0], abs=1e-9)
        for name, x in zip(names, np.swapaxes(at, 0, 1), strict=True):
            assert x == pytest.approx(where.setdefault(name, x), abs=1e-8)
    return where


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind == "Stephenson II" else pytest.mark.slow)
        for kind in SIX_BARS
    ],
)
def test_six_bars_have_the_links_of_the_books_and_turn_fully(kind):
    linkage = massless_six_bar(kind)
    links = {
        body: [n for n, joint in linkage.joints.items() if body in (joint.a, joint.b)]
        for body in ("ground", *linkage.structure.bodies)
    }
    wanted = [frozenset(letters) - {"P"} for letters in SIX_BARS[kind].split()]
    assert sorted(map(sorted, links.values())) == sorted(map(sorted, wanted))
    found = follow(linkage, "A", np.linspace(0.0, 2.0 * np.pi, 73))
    assert np.all(found.closed) and len(set(np.sign(found.index))) == 1
    held_together(linkage, found, links)


def test_sliders_follow_their_closed_forms():
    at = {"A": (0.1, 0.2), "B": (0.4, 0.9), "C": (3.0, 0.5), "D": (5.0, 0.5), "P": (1.5, 2.0)}
    linkage = massless_slider_crank(at)
    found = follow(linkage, "A", INPUTS)
    angle = np.arctan2(0.7, 0.3) + INPUTS
    x, y = 0.1 + np.hypot(0.3, 0.7) * np.cos(angle), 0.2 + np.hypot(0.3, 0.7) * np.sin(angle)
    slide = x + np.sqrt(2.6**2 + 0.4**2 - (y - 0.5) ** 2)
    assert places(linkage, found.q, "slider", "C")[:, 0, 0] == pytest.approx(slide, abs=1e-10)
    inverted = massless_inverted_slider_crank({"C": (3.0, 0.0)})  # the slot points at the pivot
    found = follow(inverted, "A", INPUTS)
    arm = places(inverted, found.q, "arm", "P")[:, 0, :2] - [3.0, 0.0]
    pin = np.stack([-np.sin(INPUTS), np.cos(INPUTS)], axis=1) - [3.0, 0.0]
    turned = np.arctan2(*arm.T[::-1]) - np.arctan2(*pin.T[::-1])
    assert np.unwrap(turned) == pytest.approx(turned[0], abs=1e-10)


@pytest.mark.slow
def test_gears_and_balls_hold_what_they_hold():
    linkage = massless_geared_five_bar(ratio=-2.0)
    found = follow(linkage, "A", INPUTS)
    where = held_together(linkage, found, {"crank": "AB", "coupler": "BCP", "link": "CD",
                                           "follower": "DE", "ground": "AE"})  # fmt: skip
    turned = np.arctan2(*(where["D"] - where["E"])[:, :2].T[::-1]) - np.pi / 2
    assert turned == pytest.approx(-2.0 * INPUTS, abs=1e-10)
    slider = massless_rssp()
    found = follow(slider, "crank", INPUTS)
    ball = places(slider, found.q, "slider", ["B"])[:, 0]
    rod = np.linalg.norm(ball - places(slider, found.q, "crank", ["A"])[:, 0], axis=1)
    assert rod == pytest.approx(rod[0]) and ball[:, 1:] == pytest.approx(np.full((5, 2), 0.5))
    platform = massless_five_ss()
    found = follow(platform, ("leg", 0), 0.4 * INPUTS)
    assert np.all(found.closed)
    outer = places(platform, found.q, "platform", [f"B{i}" for i in range(1, 6)])
    inner = np.array([platform.points[f"A{i}"] for i in range(1, 6)])
    legs = np.linalg.norm(outer - inner, axis=2)
    assert legs == pytest.approx(np.tile(legs[0], (5, 1)), abs=1e-10)
    assert np.ptp(outer[:, 0, 2]) > 0.5


def test_a_spherical_four_bar_keeps_its_arcs_and_is_an_rssr_whose_axes_meet():
    linkage, turn = massless_spherical_four_bar(), np.linspace(0.0, 2.0 * np.pi, 9)
    found = follow(linkage, "A", turn)
    assert np.all(found.closed) and len(set(np.sign(found.index))) == 1
    at = places(linkage, found.q, "coupler", "BCP")
    a, d = (linkage.points[n] / np.linalg.norm(linkage.points[n]) for n in "AD")
    b, c, p = np.swapaxes(at / np.linalg.norm(at, axis=2, keepdims=True), 0, 1)
    for x, y in ((a, b), (b, c), (c, d), (b, p), (c, p)):
        assert np.ptp(np.sum(x * y, axis=-1)) < 1e-10
    sine, cosine = np.cross(b[0], b) @ a, b @ b[0] - (b @ a) * (b[0] @ a)
    assert np.cos(turn) == pytest.approx(cosine / cosine[0], abs=1e-10)
    assert np.sin(turn) == pytest.approx(sine / cosine[0], abs=1e-10)

    on_axes = {"crank_pivot": 0 * a, "A": b[0], "B": c[0], "rocker_pivot": 0 * a}
    other = massless_rssr(on_axes, crank_axis=a, rocker_axis=d)
    rocker = np.asarray(follow(other, "crank", turn).q)[:, 1]
    rocked = c[0] * np.cos(rocker)[:, None] + np.cross(d, c[0]) * np.sin(rocker)[:, None]
    rocked += d * (d @ c[0]) * (1.0 - np.cos(rocker))[:, None]
    assert np.ptp(rocker) > 0.3 and c == pytest.approx(rocked, abs=1e-10)


@pytest.mark.parametrize("n", [1, 3, 5, 8])
def test_determinant(n):
    found, a = jax.jit(_determinant), np.random.default_rng(n).standard_normal((n, n))
    assert float(found(a)) == pytest.approx(np.linalg.det(a), rel=1e-10)
    a[0, 0] = 0.0
    if n in (3, 5):  # no pivot is needed where there is none
        assert float(found(a)) == pytest.approx(np.linalg.det(a), rel=1e-10)


def test_linkages_that_are_none_are_told():
    with pytest.raises(ValueError, match="kinds are .*'Watt I'"):
        massless_six_bar("Watt III")
    with pytest.raises(ValueError, match="(?s)no link is 'ground'.*'B' is on a, b, c"):
        massless_linkage({"a": "AB", "b": "BC", "c": "BA"}, {x: (0, 0) for x in "ABC"})


def test_a_line_counts_across_and_along():
    linkage = massless_linkage(
        {"ground": "ADST", "crank": "AB", "coupler": "BCP", "rocker": "CD"},
        dict(A=(0, 0), B=(0, 1), C=(3, 2), D=(3, 0), P=(1.5, 3), S=(1.0, 3.0), T=(1.0, 9.0)),
    )
    m = motion_state(linkage, jnp.zeros(3))
    line = {"body": "coupler", "point": "P", "start": "S", "end": "T", "length": 2.0}
    free = StraightLine("A", **line, stations=5)
    assert free.error(m, free.rows[1]) == pytest.approx([0.5, -0.5])
    across = StraightLine("A", INPUTS, **line, steady=False)
    assert across.error(m, across.rows[1]) == pytest.approx([0.5, 0.0])
    assert across.error(m, across.rows[4]) == pytest.approx([0.5, -2.0])
    with pytest.raises(ValueError, match="give length="):
        print(StraightLine("A", body="coupler", point="P", start="S", end="T").size)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("linkage", "joint", "body"),
    [
        (massless_six_bar("Watt I"), "A", "link"),
        (mbd.zoo.rssr(), "crank", "coupler"),  # idle spin: more speeds than conditions
    ],
    ids=["Watt I", "balls"],
)
def test_velocities_are_differences(linkage, joint, body):
    h, point = 1e-4, {"A": "P", "crank": "B"}[joint]
    q = follow(linkage, joint, [0.3 - h, 0.3, 0.3 + h]).q
    at = places(linkage, q, body, [point])[:, 0]
    task = VelocityGeneration(joint, [0.0], body=body, point=point, velocities=np.zeros((1, 3)))
    found = task.error(motion_state(linkage, q[1]), task.rows[0])
    assert np.asarray(found) == pytest.approx((at[2] - at[0]) / (2.0 * h), abs=1e-6)


@pytest.mark.slow
def test_observables_are_those_at_rest():
    """What holds the crank of a loaded linkage is the slope of its energy."""
    bar = mbd.zoo.four_bar()
    joint, h = next(iter(bar.joints)), 1e-4
    q = follow(bar, joint, [0.3 - h, 0.3, 0.3 + h]).q
    energy = [float(mbd.potential_energy(bar, x)) for x in q]
    task = ObservableGeneration(joint, [0.3], observable=HoldingEffort(joint), values=[0.0])
    found = float(task.error(motion_state(bar, q[1]), task.rows[0])[0])
    assert abs(found) > 1e-3
    assert found == pytest.approx((energy[2] - energy[0]) / (2.0 * h), rel=1e-5)


def tasks():
    path = PathGeneration(
        "A", [0, 0.3, 0.6], body="coupler", point="P", targets=[[1.5, 3], [1.2, 3.1], [0.9, 3.1]]
    )
    return path, FunctionGeneration("A", [0, 0.2, 0.6], output="D", values=[0, 0.1, 0.2])


def test_mixed_tasks_count_where_they_are_asked():
    path, turn = tasks()
    both = Mixed(tasks=(path, turn), weights=(1.0, 4.0))
    assert both.inputs == pytest.approx([0.0, 0.2, 0.3, 0.6])
    linkage = massless_four_bar()
    m = motion_state(linkage, follow(linkage, "A", [0.2]).q[0])
    errors = np.array([both.error(m, jnp.asarray(row)) for row in both.rows])
    assert np.all((errors != 0.0) == [[1, 1, 1], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    assert errors[2, :2] == pytest.approx(path.error(m, path.rows[1]) / path.size)
    assert errors[1, 2:] == pytest.approx(2.0 * turn.error(m, turn.rows[1]) / turn.size)
    with pytest.raises(ValueError, match="(?s)weights=.*some tasks have inputs"):
        free = PathGeneration("A", body="coupler", point="P", targets=path.targets)
        Mixed(tasks=(free, turn), weights=(1.0,))


def test_dwells_and_problems_that_are_none_are_told():
    with pytest.raises(ValueError, match="beyond over"):
        dwell("A", "D", over=1.0, stroke=0.5, at=0.5)
    slider = massless_slider_crank()
    path = PathGeneration("slide", body="coupler", point="P", targets=[[0, 0], [1, 1]])
    with pytest.raises(ValueError, match="is a travel; leave full_turn out"):
        Problem(slider, path, {"points/*": Within(1.0)}, full_turn=True)
    with pytest.raises(ValueError, match="within: .* is a vector"):
        Problem(
            massless_four_bar(), tasks()[0], {"points/*": Within(1.0)},
            within={Position("coupler", "C"): (0, 1)},
        )  # fmt: skip


@pytest.mark.slow
def test_a_mixed_task_with_a_box_is_done():
    path, turn = tasks()
    left = Position("coupler", "C", "x")
    problem = Problem(
        massless_four_bar(),
        Mixed(tasks=(path, turn)),
        {f"points/{n}": Within(1.0) for n in "ABCDP"},
        within={left: (None, 2.9)},
    )
    found = synthesize(problem, starts=8, finishes=2)
    q = follow(found.mechanism, "A", found.inputs).q
    right = places(found.mechanism, q, "coupler", "C")[:, 0, 0].max()
    assert right == pytest.approx(2.9, abs=1e-6)  # the box is what holds it
    points = places(found.mechanism, q, "coupler", "P")[:, 0, :2]  # at 0, 0.2, 0.3 and 0.6
    turned = np.asarray(q)[:, mbd.topology(found.mechanism).layout["D"].q][:, 0]
    missed = np.sum((points[[0, 2, 3]] - path.targets) ** 2) / path.size**2
    missed += np.sum((turned[[0, 1, 3]] - turn.values) ** 2) / turn.size**2
    assert found.error == pytest.approx(missed, rel=1e-6) and missed < 0.2


@pytest.mark.slow
def test_a_mechanism_with_masses_and_sliders_is_a_template():
    """The effort on a quick return's crank is made nine tenths of what it was."""
    given, inputs = mbd.zoo.quick_return(), np.linspace(0.0, 1.0, 4)
    effort = ObservableGeneration("C", inputs, observable=HoldingEffort("C"), values=np.zeros(4))
    q = follow(given, "C", inputs).q
    was = [float(effort.error(motion_state(given, x), jnp.zeros(1))[0]) for x in q]
    task = replace(effort, values=0.9 * np.array(was))
    vary = {"points/P": Within(0.1), "points/E": Within(0.1), "points/C": Within(0.1)}
    found = synthesize(Problem(given, task, vary), starts=8, finishes=1)
    assert found.root_mean_square < 1e-6 * task.size and found.defects.sound


@pytest.mark.slow
def test_a_point_that_leaves_its_plane_is_told():
    """A planar four-bar in space does not close then, and has no derivative."""
    bar, inputs = mbd.zoo.four_bar(), np.linspace(0.0, 0.4, 3)
    turn = FunctionGeneration("A", inputs, output="D", values=0.8 * inputs)
    problem = Problem(bar, turn, {"points/C_coupler": Within(0.1)})
    with pytest.raises(ValueError, match=r"\['points/C_coupler/y'\]"):
        finish(problem, np.zeros((1, 3)))
