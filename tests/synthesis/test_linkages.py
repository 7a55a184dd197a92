"""Transmission index, following and defects of linkages, against closed forms."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.design import Within
from jaxmbd.kinematics import motion_state
from jaxmbd.synthesis import (
    Defects,
    Followed,
    FunctionGeneration,
    MotionGeneration,
    PathGeneration,
    Problem,
    Task,
    defects,
    follow,
    massless_four_bar,
    massless_rssr,
    transmission,
)
from jaxmbd.synthesis.synthesis import outputs_of

TURN = np.linspace(0.0, 2.0 * np.pi, 37)
PATH = PathGeneration("A", TURN, body="coupler", point="P", targets=np.zeros((37, 2)))


def drawn(lengths, angle=0.9, side=1.0):
    """Hardpoints of a four-bar: ground, crank, coupler, rocker; NaN where it cannot be drawn."""
    ground, crank, coupler, rocker = lengths
    b = crank * np.array([np.cos(angle), np.sin(angle)])
    d = np.array([ground, 0.0])
    span = np.linalg.norm(d - b)
    along = (coupler**2 - rocker**2 + span**2) / (2.0 * span)
    with np.errstate(invalid="ignore"):
        across = side * np.sqrt(coupler**2 - along**2)
    u = (d - b) / span
    c = b + along * u + across * np.array([-u[1], u[0]])
    return {"A": np.zeros(2), "B": b, "C": c, "D": d, "P": c + 0.5}


def test_index_of_a_four_bar_is_the_sine_of_its_transmission_angle():
    lengths = (4.0, 1.0, 3.0, 2.5)
    linkage = massless_four_bar(drawn(lengths))
    found = follow(linkage, "A", TURN)
    assert np.all(found.closed)
    for turned, index in zip(TURN, found.index, strict=True):
        points = drawn(lengths, 0.9 + turned)
        a, b = points["B"] - points["C"], points["D"] - points["C"]
        sine = (a[0] * b[1] - a[1] * b[0]) / np.linalg.norm(a) / np.linalg.norm(b)
        assert abs(index) == pytest.approx(abs(sine), abs=1e-9)
    assert len(set(np.sign(found.index))) == 1  # one branch


@pytest.mark.parametrize(
    "linkage",
    [
        pytest.param(mbd.zoo.rssr(), marks=pytest.mark.slow, id="balls"),
        pytest.param(massless_rssr(), id="rod"),
    ],
)
def test_index_of_an_rssr_is_the_cosine_of_its_pressure_angle(linkage):
    q = mbd.assemble(linkage, {"crank": 0.7}).q
    a = mbd.point_position(linkage, q, "crank", "A")
    b = mbd.point_position(linkage, q, "rocker", "B")
    across = jnp.cross(linkage.joints["rocker"].axis, b - linkage.point("rocker_pivot"))
    cosine = (b - a) @ across / jnp.linalg.norm(b - a) / jnp.linalg.norm(across)
    index = transmission(motion_state(linkage, q), "crank")
    assert abs(float(index)) == pytest.approx(abs(float(cosine)), abs=1e-12)


def test_index_vanishes_at_a_dead_centre():
    stretched = massless_four_bar({"A": (0, 0), "B": (1, 0), "C": (3, 0), "D": (5, 0), "P": (2, 1)})
    at = motion_state(stretched, mbd.neutral(stretched))
    assert abs(float(transmission(at, "A"))) < 1e-12
    assert abs(float(transmission(at, "D"))) < 1e-12  # as the input is in line too


@pytest.mark.slow
def test_following_is_differentiable():
    def height(y):
        linkage = massless_four_bar({"D": jnp.stack([3.0, y])})
        q = follow(linkage, "A", [0.0, 0.4, 0.8]).q[-1]
        return mbd.point_position(linkage, q, "coupler", "P")[1]

    f = jax.jit(height)
    slope, step = float(jax.jit(jax.grad(height))(0.1)), 1e-5
    assert slope == pytest.approx(float(f(0.1 + step) - f(0.1 - step)) / (2 * step), rel=1e-7)


def test_rotation_is_the_grashof_condition():
    """The crank turns fully if it is the shortest with the longest, or the ground is."""
    rng, seen = np.random.default_rng(3), {True: 0, False: 0}
    while min(seen.values()) < 8:
        lengths = rng.uniform(1.0, 4.0, 4)
        ground, crank, coupler, rocker = lengths
        reach = coupler + rocker - (ground + crank), abs(ground - crank) - abs(coupler - rocker)
        points = drawn(lengths, rng.uniform(0.0, 6.0))
        if not np.all(np.isfinite(points["C"])) or min(np.abs(reach)) < 0.05:
            continue
        turns = reach[0] > 0.0 and reach[1] > 0.0
        found = defects(massless_four_bar(points), PATH)
        assert found.rotation is not turns, lengths
        assert found.circuit is not turns, lengths
        seen[turns] += 1


def crank_rockers(count):
    """Four-bars whose crank turns, in any position and on both branches, stacked: (count, 2)."""
    rng, found = np.random.default_rng(5), []
    while len(found) < count:
        lengths = ground, crank, coupler, rocker = rng.uniform(1.0, 4.0, 4)
        points = drawn(lengths, rng.uniform(0.0, 6.0), rng.choice([-1.0, 1.0]))
        room = coupler + rocker - ground - crank, abs(ground - crank) - abs(coupler - rocker)
        if min(room) > 0.05 and np.all(np.isfinite(points["C"])):
            found.append(points)
    return {name: jnp.stack([points[name] for points in found]) for name in "ABCDP"}


def least_sine(points):
    """Of the transmission angle over the turn: at one of the cranks aligned with the ground."""

    def length(a, b):
        return jnp.sqrt(jnp.sum((points[a] - points[b]) ** 2))

    ground, crank, b, c = (length(*x) for x in (("A", "D"), ("A", "B"), ("B", "C"), ("C", "D")))
    cosines = [(b**2 + c**2 - (ground + s * crank) ** 2) / (2.0 * b * c) for s in (-1.0, 1.0)]
    return jnp.min(jnp.sqrt(1.0 - jnp.stack(cosines) ** 2))


@pytest.mark.slow
def test_the_limit_holds_over_the_whole_turn():
    """What the finish keeps, of linkages drawn at any angle, is the closed form; so its slopes."""
    points, limit = crank_rockers(24), 0.2
    task = PathGeneration("A", [0.0, 0.1], body="coupler", point="P", targets=[[0, 0], [1, 1]])
    vary = {f"points/{name}": Within(1.0) for name in "ABCD"}
    problem = Problem(massless_four_bar(), task, vary, least_transmission=limit, full_turn=True)
    drawn_as = np.concatenate([problem.nominal.points[name] for name in "ABCD"])

    def kept(z):
        return jnp.min(outputs_of(problem, z)["transmission"])

    def wanted(z):
        return least_sine(dict(zip("ABCD", (z + drawn_as).reshape(4, 2), strict=True))) - limit

    z = jnp.concatenate([points[name] for name in "ABCD"], axis=1) - drawn_as
    found, slopes = jax.jit(mbd.lanes.vmap(jax.value_and_grad(kept)))(z)
    expected, slopes_expected = jax.jit(jax.vmap(jax.value_and_grad(wanted)))(z)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(slopes, slopes_expected, rtol=0, atol=1e-5)


def test_defects_judge_the_transmission_asked_for():
    points = {name: x[0] for name, x in crank_rockers(1).items()}
    linkage, least = massless_four_bar(points), float(least_sine(points))
    task = PathGeneration("A", [0.0, 0.05], body="coupler", point="P", targets=[[0, 0], [1, 1]])
    found = defects(linkage, task)
    assert found.sound and found.turn_transmission == pytest.approx(least, abs=1e-9)
    assert found.transmission > least + 0.01  # the positions lie elsewhere
    assert f"{found.transmission:.3f} between the positions, {least:.3f} over" in str(found)
    for wanted, good in ((least - 1e-4, True), (least + 1e-4, False)):
        judged = defects(linkage, task, least_transmission=wanted, full_turn=True)
        assert judged.sound is good and ("defects of transmission" in str(judged)) is not good
        assert defects(linkage, task, least_transmission=wanted).sound
    assert not defects(linkage, task, least_transmission=found.transmission + 1e-4).sound
    rocks = massless_four_bar(drawn((3.0, 2.0, 2.2, 2.0), 0.5))
    assert defects(rocks, task).sound and not defects(rocks, task, full_turn=True).sound


def test_order_and_branch_are_told():
    lengths = (3.0, 2.0, 2.2, 2.0)  # the crank only rocks
    there = {"body": "coupler", "point": "P", "targets": [[0.0, 0.0]] * 3}
    linkage = massless_four_bar(drawn(lengths, 0.5))
    task = PathGeneration("A", **there)
    assert defects(linkage, task, [0.0, 0.2, 0.1]).order
    assert not defects(linkage, task, [0.0, 0.1, 0.2]).order
    assert defects(linkage, task, [0.0, 0.1, 3.0]).circuit
    with pytest.raises(ValueError, match="give inputs="):
        defects(linkage, task)


@pytest.mark.parametrize("turn", [None, np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2 + 1.0)[0]])
def test_a_change_point_is_a_defect_of_branch_in_the_plane_and_in_space(turn):
    """Of a parallelogram the index is the sine of what is left to the line of its links."""
    flat = massless_four_bar(drawn((1.0, 0.5, 1.0, 0.5), angle=-0.7))
    if turn is None:
        mech = flat
    else:  # rows of a planar loop are redundant in space, and its index has no sign of its own
        put = {n: turn[:, :2] @ np.asarray(x) for n, x in flat.points.items()}
        mech = mbd.Mechanism(
            bodies={n: mbd.Body(0.0, put["A"], 0.0) for n in flat.bodies},
            joints={
                n: mbd.Revolute(j.a, j.b, at=n, axis=turn[:, 2]) for n, j in flat.joints.items()
            },
            points=put,
            cut=["C"],
        )
    angles = np.linspace(0.0, 1.4, 9)
    task = FunctionGeneration("A", angles, output="D", values=np.zeros(9))
    found = defects(mech, task)
    assert found.branch and not found.sound and not found.circuit
    assert found.transmission == 0.0
    before = defects(mech, FunctionGeneration("A", angles[:4], output="D", values=np.zeros(4)))
    assert before.sound and before.transmission == pytest.approx(np.sin(0.7 - angles[3]), abs=1e-9)


def test_errors_of_tasks_on_a_known_linkage():
    linkage = massless_four_bar(drawn((4.0, 1.0, 3.0, 2.5)))
    q = follow(linkage, "A", [0.0, 0.5]).q
    m = motion_state(linkage, q[1])
    point = np.asarray(m.position("coupler", "P"))[:2]
    turned = np.asarray(m.rotation("coupler"))
    angle = np.arctan2(turned[1, 0], turned[0, 0])
    path = PathGeneration("A", body="coupler", point="P", targets=[[0, 0], [1.0, 2.0]])
    assert path.error(m, path.rows[1]) == pytest.approx(point - [1.0, 2.0])
    flat = MotionGeneration("A", **vars_of(path), rotations=[0.0, angle + 0.2], arm=2.0)
    error = np.asarray(flat.error(m, jnp.asarray(flat.rows[1])))
    assert np.linalg.norm(error[2:]) == pytest.approx(2.0 * 2.0 * np.sin(0.1))
    spin = np.array([[np.cos(0.2), -np.sin(0.2), 0], [np.sin(0.2), np.cos(0.2), 0], [0, 0, 1]])
    whole = MotionGeneration("A", **vars_of(path), rotations=[np.eye(3), spin @ turned], arm=2.0)
    error = np.asarray(whole.error(m, jnp.asarray(whole.rows[1])))
    assert np.linalg.norm(error[2:]) == pytest.approx(2.0 * 2.0 * np.sin(0.1))
    rocker = FunctionGeneration("A", [0, 0.5], output="D", values=[1.0, 1.3])
    q_d = m.coordinates("D")[0]
    assert float(rocker.error(m, rocker.rows[1])[0]) == pytest.approx(float(q_d) - 0.3)


@pytest.mark.parametrize("power", [2.0, 16.0])
def test_the_mean_of_the_errors_has_its_power(power):
    linkage = massless_four_bar(drawn((4.0, 1.0, 3.0, 2.5)))
    task = PathGeneration("A", [0, 0.5], body="coupler", point="P", targets=[[0, 0], [1.0, 2.0]])
    q = follow(linkage, "A", task.inputs).q
    points = [np.asarray(mbd.point_position(linkage, x, "coupler", "P"))[:2] for x in q]
    errors = np.linalg.norm(points - task.rows, axis=1) / task.size
    mean = np.mean(errors**power) ** (1.0 / power)
    problem = Problem(linkage, task, {"points/P": Within(0.1)}, power=power)
    assert float(problem.power_mean(linkage, q)) == pytest.approx(2.0 * mean**2, rel=1e-12)


def vars_of(task):
    return {"body": task.body, "point": task.point, "targets": task.targets}


def test_problems_are_told_at_once():
    linkage = massless_four_bar()
    task = PathGeneration("E", body="couple", point="Q", targets=[[0, 0], [1, 1]])
    with pytest.raises(ValueError, match="(?s)'E'.*no body 'couple'.*no point 'Q'.*no point 'X'"):
        Problem(linkage, task, {"points/*": 1}, lengths={("A", "X"): (0, 1)})
    with pytest.raises(ValueError, match="2 positions, but inputs of shape"):
        task = PathGeneration("A", [0, 1, 2], body="coupler", point="P", targets=[[0, 0], [1, 1]])
        Problem(linkage, task, {"points/*": 1})
    with pytest.raises(ValueError, match=r"(?s)positions \[1\] .*not finite.*some inputs"):
        lost = [[0, 0], [1, np.nan]]
        task = PathGeneration("A", [0, np.inf], body="coupler", point="P", targets=lost)
        Problem(linkage, task, {"points/*": 1})
    with pytest.raises(ValueError, match="direction=2"):
        PathGeneration("A", direction=2)
    with pytest.raises(ValueError, match="power=1"):
        task = PathGeneration("A", body="coupler", point="P", targets=[[0, 0], [1, 1]])
        Problem(linkage, task, {"points/*": Within(1.0)}, power=1.0)


@dataclass(frozen=True, eq=False)
class Tilt(Task):
    """A body is to be turned by angles about z: a task of one's own."""

    angles: tuple[float, ...] = ()

    @property
    def rows(self):
        return np.array(self.angles)[:, None]

    def error(self, m, row):
        rotation = m.rotation("rocker")
        return jnp.arctan2(rotation[1, 0], rotation[0, 0])[None] - row


def test_a_task_of_ones_own():
    linkage, inputs = massless_four_bar(drawn((4.0, 1.0, 3.0, 2.5))), np.linspace(0.0, 0.6, 4)
    found = follow(linkage, "A", inputs)
    assert isinstance(found, Followed) and np.all(found.closed)
    turned = np.asarray(found.q)[:, mbd.topology(linkage).layout["D"].q][:, 0]
    wrong = turned + [0.0, 0.0, 0.01, 0.0]
    judged = defects(linkage, Tilt("A", inputs, angles=tuple(wrong)))
    assert isinstance(judged, Defects) and judged.sound
    assert judged.error == pytest.approx(0.01, abs=1e-9)
    with pytest.raises(TypeError, match="Task defines no task"):
        print(Task("A").rows)


def test_index_of_redundant_rows_beside_an_idle_spin():
    """A four-bar in space that moves a rocker by a link between balls; the coupler as a rod."""
    points = {
        "A": (0, 0, 0), "B": (0, 1, 0), "C": (2.5, 1.8, 0), "D": (2.5, 0, 0),
        "E": (2.5, 0.9, 0.3), "F": (4, 1, 1.2), "G": (4, 0, 1),
    }  # fmt: skip
    bodies = {
        n: mbd.Body(1.0, at, (1e-3,) * 3) for n, at in zip(("a", "b", "c"), "BCF", strict=True)
    }
    bodies["link"] = mbd.Body(1.0, (3.2, 1.0, 0.7), (1e-3,) * 3)
    joints = {
        "A": mbd.Revolute("ground", "a", "A", axis=(0, 0, 1)),
        "D": mbd.Revolute("ground", "b", "D", axis=(0, 0, 1)),
        "E": mbd.Spherical("b", "link", "E"),
        "F": mbd.Spherical("link", "c", "F"),
        "G": mbd.Revolute("ground", "c", "G", axis=(0, 0.2, 1)),
    }
    rod = {"rod": mbd.Rod("a", "b", at_a="B", at_b="C")}
    pins = {
        "B": mbd.Revolute("a", "coupler", "B", axis=(0, 0, 1)),
        "C": mbd.Revolute("coupler", "b", "C", axis=(0, 0, 1)),
    }
    single = mbd.Mechanism(bodies, joints | rod, points=points)
    coupler = {"coupler": mbd.Body(1.0, (1.2, 1.4, 0), (1e-3,) * 3)}
    redundant = mbd.Mechanism(bodies | coupler, joints | pins, points=points)
    of_drawing = jax.jit(lambda m: transmission(motion_state(m, jnp.asarray(mbd.neutral(m))), "A"))
    wanted = float(of_drawing(single))
    assert wanted > 0.3
    assert float(of_drawing(redundant)) == pytest.approx(wanted, rel=1e-9)
