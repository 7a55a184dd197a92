"""The judge of every public number: its table, its oracles, a few cases of `fails_safely.py`."""

import json
from argparse import Namespace

import fails_safely
import jax
import numpy as np
import pytest
from fails_cases import (
    broken_mechanisms,
    closed_forms,
    corner_kinds,
    descriptions,
    families,
    judge,
    mechanisms,
    motions,
    numbers,
    rigid_dynamics,
    runs,
    soft_kinds,
    soft_wheels,
    statics,
    structures,
    wheel_oracle,
)
from fails_cases.judged import BAD, Judged, compare
from fails_cases.public_numbers import public_numbers

import jaxmbd as mbd

pytestmark = pytest.mark.filterwarnings("ignore")
PLAIN = [mbd.io.to_dict(mbd.zoo.rssr()), mbd.io.to_dict(mbd.zoo.multi_link())]


def test_broken_descriptions_are_refused_with_a_sentence():
    rng, refused = np.random.default_rng(1), 0
    for i in range(400):
        data, change = descriptions.broken(PLAIN[i % 2], rng)
        mech, why = descriptions.build(data)
        assert not why.startswith("crashed"), (change, why)
        refused += mech is None
    assert 200 < refused < 400  # a change may be harmless


def test_broken_numbers_and_states_are_not_reported_as_ok():
    found = broken_mechanisms.judge_batch("RSSR", mbd.zoo.rssr(), 27, seed=3)
    outcomes = [case.outcome for case in found]
    assert not [x for x in found if x[1] not in ("right", "flagged")]
    assert outcomes.count("right") > 15 and outcomes.count("flagged") > 15


def test_the_judge_sees_what_is_wrong():
    m = mbd.zoo.rssr(gravity=9.81)
    q = np.asarray(mbd.assemble(m).q)
    v = np.zeros(5)
    vdot = np.asarray(mbd.forward_dynamics(m, q, v)[0])
    batch = jax.tree_util.tree_map(lambda x: np.stack([x, x, x]), m)
    shifts = 1e-3 * np.eye(1, 6), 1e-3 * np.max(np.abs(vdot)) * np.eye(1, 5)
    states = (np.stack([q, q + shifts[0][0], q]), np.stack([v] * 3))
    errors = judge.errors(batch, *states, np.stack([vdot, vdot, vdot + shifts[1][0]]))
    faults = [judge.wrong(e) for e in errors]
    assert not faults[0]
    assert any("position" in x for x in faults[1])
    assert any("acceleration" in x or "balance" in x for x in faults[2])


def test_the_judge_follows_travels_far_longer_than_the_drawing():
    """A drawing of micrometres, its carriage 0.1 m away: all rows count, the answer is right."""
    inertia = 1e-13 * np.diag([2.0, 3.0, 4.0])
    mech = mbd.Mechanism(
        {
            "carriage": mbd.Body(1.0, (-1e-7, 1e-7, 3e-7), inertia),
            "arm": mbd.Body(0.5, (-7e-7, 0.0, -5e-7), inertia),
        },
        {
            "rail": mbd.Prismatic("carriage", "ground", (-5e-7, -1e-7, 3e-7), (0, 1, 0)),
            "sleeve": mbd.Cylindrical("carriage", "arm", (-9e-7, -5e-7, 0.0), (-0.1, -1.0, 0.6)),
        },
        gravity=(1.0, -2.0, -9.0),
    )
    q, v = np.array([-0.13, 0.28, -0.06]), np.array([1e-6, -1e-6, 2e-6])
    vdot = np.asarray(mbd.forward_dynamics(mech, q, v)[0])
    batch = jax.tree_util.tree_map(lambda x: np.stack([x]), mech)
    assert not judge.wrong(judge.errors(batch, q[None], v[None], vdot[None])[0])


@pytest.fixture(scope="module")
def judged_vibration():
    """Faults of `motions.STEPS` steps of a mass on a spring from where it rests, of a length."""
    mech = mbd.Mechanism(
        {"mass": mbd.Body(1.0, (0.1, 0, 0), np.eye(3))},
        {"slide": mbd.Prismatic("ground", "mass", (0, 0, 0), (1, 0, 0))},
        {"spring": mbd.TorsionSpring("slide", 4.0, free_angle=-0.1)},
        gravity=(0, 0, 0),
    )
    drawn = structures.Structure(mech, conservative=True, rubbing=False, text="")
    start = mech, np.zeros(1), np.zeros(1)

    def judged(dt):
        end = jax.tree_util.tree_map(np.asarray, motions.run(*start, dt))
        end["finer"] = np.asarray(motions.finer(*start, dt))
        return bool(end["ok"]), motions._run_faults(drawn, end, 0.01)

    return judged


def test_half_a_vibration_is_right_though_both_ends_are_at_rest(judged_vibration):
    ok, faults = judged_vibration(np.pi / 2.0 / motions.STEPS)
    assert ok and not faults


def test_the_judge_sees_steps_that_are_too_long(judged_vibration, monkeypatch):
    monkeypatch.setattr(motions, "ACCURACY", 1.0)
    ok, faults = judged_vibration(0.6)
    assert ok
    assert [f.split()[0] for f in faults] == ["energy", "speeds"]


def test_numbers_are_moved_by_one_rounding():
    x = np.array([1.0, -3.0, 0.0, np.inf, 1e300])
    moved = numbers.rounded({"x": x, "n": np.arange(3)}, np.random.default_rng(0))
    step = np.abs(moved["x"][[0, 1, 4]] / x[[0, 1, 4]] - 1.0)
    assert np.all((step > 0.0) & (step < 3e-16))
    np.testing.assert_array_equal(moved["x"][2:4], x[2:4])
    np.testing.assert_array_equal(moved["n"], np.arange(3))


def test_a_run_is_written_piece_by_piece_and_resumed(tmp_path, monkeypatch):
    calls, number = [], next(iter(families.oracles()))

    def piece(name, seed, size):
        calls.append((name, seed))
        outcomes = {"one": ("right", "flagged"), "two": BAD}[name]
        found = fails_safely.summary(Judged(number, o, 0.5, "text") for o in outcomes)
        return found | {"seed": seed, "seconds": 1}

    def run(resume, seed, *names):
        monkeypatch.setattr(fails_safely, "in_process", piece)
        path = tmp_path / "found.json"
        options = Namespace(resume=resume, json=path, only=names, seed=seed, size=1, processes=1)
        return fails_safely.report(fails_safely.run(options))

    assert run(False, [7, 8], "one") == 0
    assert run(True, None, "one", "two") == 4
    assert calls == [("one", 7), ("one", 8), ("two", 7), ("two", 8)]
    written = json.loads((tmp_path / "found.json").read_text())
    line = written["table"][number]
    assert [line[o] for o in ("right", "flagged", "refused", *BAD)] == [2, 2, 0, 2, 2]
    assert line["worst"] == 0.5 and line["cases"] == 8
    assert written["all"]["all"]["right"] == 2
    assert [(one["cases"], one["seconds"]) for one in written["runs"].values()] == [(4, 2)] * 2


def test_seeds_are_new_at_each_run(monkeypatch):
    monkeypatch.setattr(fails_safely, "pieces", lambda *_: [])

    def seeds():
        options = Namespace(
            resume=False, json=None, only=["x"], seed=None, size=1, processes=1, runs=2
        )
        return list(fails_safely.run(options)["runs"])

    assert len({*seeds(), *seeds()}) == 4


def test_an_error_of_the_package_is_a_crash(monkeypatch):
    def judged(seed, size):
        yield Judged("x", "right", 0.0, "")
        raise RuntimeError("broken")

    monkeypatch.setattr(families, "family", lambda _: Namespace(NUMBERS={"x": ""}, judged=judged))
    found = list(families.run("any", 1, 10))
    assert [case.outcome for case in found] == ["right", "CRASHED"]
    assert "RuntimeError: broken" in found[1].detail


def test_comparison_sees_errors_nan_and_what_should_not_be_there():
    def outcome(found, expected, **options):
        return compare("x", found, expected, limit=1e-6, detail="", **options).outcome

    assert outcome([1.0, 2.0], [1.0, 2.0 + 1e-7]) == "right"
    assert outcome([1.0, 2.0], [1.0, 2.1]) == "WRONG, reported as ok"
    assert outcome([1.0, np.nan], [1.0, 2.0]) == "WRONG, reported as ok"
    assert outcome([1.0, np.inf], [1.0, 2.0]) == "WRONG, reported as ok"
    assert outcome(1.0, np.nan) == "WRONG, reported as ok"
    assert outcome(np.nan, np.nan) == "flagged"
    assert outcome(1.0, 2.0, ok=False) == "flagged"
    assert outcome([1.0], 1.0) == "WRONG, reported as ok"


def test_every_public_number_has_a_line_in_the_table():
    """A new public number needs an oracle, or stands among those without one.

    ``python benchmarks/fails_safely.py --list`` renews the list of those.
    """
    covered = {number.partition(", ")[0] for number in families.oracles()}
    public = set(public_numbers())
    without = set(families.without_oracle())
    assert not sorted(public - covered - without), (
        "no line: add an oracle, or to without_oracle.txt"
    )
    assert not sorted(without & covered), "these have an oracle by now"
    assert not sorted((covered | without) - public), "no such public number"


def test_a_drawing_that_locks_is_flagged_by_its_state():
    """A joint axis turned along the links: a limit of reach that closes within tolerance."""
    data = mbd.io.to_dict(mbd.zoo.four_bar())
    data["joints"][3]["axis"] = [1e300, 1.0, 0.0]
    outcome, detail = broken_mechanisms.judge_description(data)
    assert outcome == "flagged" and detail == "INACCURATE"


@pytest.fixture(scope="module")
def pendulum():
    """The oracle's pendulum: 2 kg at 0.5 m, drawn horizontal, one sample."""
    mech = mbd.zoo.simple_pendulum(0.5, 2.0, 10.0)
    return rigid_dynamics.Dynamics([mbd.io.to_dict(mech)], mbd.topology(mech))


def test_the_oracle_has_a_pendulum_s_closed_forms(pendulum):
    q, v = np.array([[0.3]]), np.array([[2.0]])
    [solved] = pendulum.motion(q, v)
    assert solved.vdot[0] == pytest.approx(10.0 / 0.5 * np.cos(0.3), rel=1e-13)
    [forces] = pendulum.joint_forces(q, v, solved.vdot[None])
    along = np.array([np.cos(0.3), np.sin(0.3), 0.0])  # towards the hinge
    pull = forces.wrenches["hinge"][3:] @ along
    assert forces.determinate["hinge"] and forces.missing < 1e-12
    assert pull == pytest.approx(2.0 * (0.5 * 4.0 + 10.0 * np.sin(0.3)), rel=1e-12)
    kinetic, potential = pendulum.energies(q, v)
    drawn = pendulum.energies(0.0 * q, 0.0 * v)[1]
    assert kinetic[0] == pytest.approx(0.5 * 2.0 * (0.5 * 2.0) ** 2, rel=1e-13)
    assert potential[0] - drawn[0] == pytest.approx(-2.0 * 10.0 * 0.5 * np.sin(0.3), rel=1e-12)


def test_the_oracle_s_steps_keep_the_energy(pendulum):
    q, v = np.array([[0.3]]), np.array([[2.0]])
    *end, lost = runs.stepped(pendulum, q, v, np.array([0.01]), 50, 1)
    assert abs(end[0][0, 0] - 0.3) > 1.0 and not lost[0]
    assert runs.stepped(pendulum, q, 1e13 * v, np.array([0.01]), 2, 1)[2][0]
    assert sum(pendulum.energies(*end))[0] == pytest.approx(
        sum(pendulum.energies(q, v))[0], rel=1e-7
    )


def test_the_oracle_s_loops_agree_with_differences():
    """Rates of conditions and their second rates, on a loop with rods and balls, off closure."""
    batch = mechanisms.batch("corner", 3, 4)
    rigid = rigid_dynamics.Dynamics(batch.dicts, mbd.topology(batch.mech))
    rng, h = np.random.default_rng(0), 1e-6
    q = np.tile(mbd.neutral(batch.mech), (3, 1)) + 0.1 * rng.normal(size=(3, rigid.nq))
    q[:, 1:5] /= np.linalg.norm(q[:, 1:5], axis=1, keepdims=True)
    v = rng.normal(size=(3, rigid.nv))
    rates = rigid.rates(q, v)
    ahead, behind = (rigid.conditions(q + s * h * rates, v) for s in (1.0, -1.0))
    scale = np.max(np.abs(ahead.v))
    np.testing.assert_allclose(
        (ahead.v - behind.v) / (2 * h), rigid.conditions(q, v).d, atol=1e-7 * scale
    )
    np.testing.assert_allclose(
        -(ahead.d - behind.d) / (2 * h), rigid.gamma(q, v), atol=1e-6 * scale
    )
    rows, still = rigid.jacobian(q)
    moved = np.einsum("srv,sv->sr", rows, v) - still
    np.testing.assert_allclose(moved, rigid.conditions(q, v).d, atol=1e-12 * scale)


@pytest.mark.parametrize("name", corner_kinds.KINDS)
def test_the_oracle_s_corners_move_as_their_positions(name):
    """Both motions are the differences of neighbouring positions."""
    b = corner_kinds.batch(name, 2, 3)
    d, h = b.kind.drawn(b.points, b.springs), 1e-5 * b.sizes
    z, rack = 0.1 * b.sizes, b.kind.steer * b.sizes

    def at(dz, dr):
        pose, miss, _ = wheel_oracle.reached(d, z + dz, rack + dr)
        assert np.max(miss / b.sizes) < 1e-14
        return wheel_oracle.state(d, b.roles, pose, z + dz, rack + dr)

    here = at(0.0, 0.0)
    for twist, way in ((here.travel, (h, 0.0 * h)), (here.steer, (0.0 * h, h))):
        if twist is None:
            continue
        ahead, behind = at(*way), at(*(-x for x in way))
        moved = (ahead.pose.m - behind.pose.m) / (2.0 * h[:, None])
        turned = (ahead.spin - behind.spin) / (2.0 * h[:, None])
        np.testing.assert_allclose(moved, twist[:, 3:], atol=1e-7)
        spun = np.cross(twist[:, :3], here.spin) * b.sizes[:, None]
        np.testing.assert_allclose(turned * b.sizes[:, None], spun, atol=1e-7)


@pytest.mark.parametrize("small", [False, True])
def test_the_oracle_s_bushing_has_a_potential(small):
    rng, h = np.random.default_rng(5), 1e-6
    root = rng.normal(size=(6, 6))
    frame, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    law = soft_wheels.Bushing(
        "b", None, (root @ root.T)[None], (frame * np.linalg.det(frame))[None], small
    )
    turn, away = wheel_oracle.cayley(0.3 * rng.normal(size=(1, 3))), rng.normal(size=(1, 3))

    def energy(turn, away):
        s = np.swapaxes(law.frame, 1, 2)[0] @ turn[0] @ law.frame[0]
        rho = np.array([s[2, 1], s[0, 2], s[1, 0]]) if small else soft_wheels.log(s[None])[0]
        delta = np.concatenate([rho, law.frame[0].T @ away[0]])
        return 0.5 * delta @ law.rates[0] @ delta

    force, moment = soft_wheels.bushing(law, turn, away)
    for e in np.eye(3):
        up, down = (energy(wheel_oracle.cayley(s * h * e[None]) @ turn, away) for s in (1, -1))
        assert (down - up) / (2 * h) == pytest.approx(moment[0] @ e, abs=1e-7)
        up, down = (energy(turn, away + s * h * e) for s in (1, -1))
        assert (down - up) / (2 * h) == pytest.approx(force[0] @ e, abs=1e-7)


def test_the_oracle_s_stiff_bushings_are_a_hinge():
    """The arm on bushings of 1e8 times the spring's rate is a rigid double wishbone."""
    b = soft_kinds.batch("arm on bushings", 3, 1)
    numbers = b.numbers | {
        "rates": 1e8 * b.numbers["rate"][:, None, None] * np.diag([1e-9] * 3 + [1] * 3)
    }
    p, z = b.points, 0.1 * b.sizes
    s = b.kind.oracle(p, numbers)
    x, there = soft_wheels.solved(
        s, soft_wheels.drawn(s, True), soft_wheels.Held(z, 0.0 * z, np.zeros((3, 6)))
    )
    assert there.all()
    ends = ("ub", "uf"), ("ub", "ur"), ("lb", "lf"), ("lb", "lr"), ("to", "ti")
    links = [wheel_oracle.Link(p[a], p[e], soft_kinds.far(p[a], p[e])) for a, e in ends]
    rigid = wheel_oracle.Drawn(p["wheel"], p["wheel"], tuple(links))
    pose, _, _ = wheel_oracle.reached(rigid, z, 0.0 * z)
    np.testing.assert_allclose(x.turn[:, 1], pose.r, atol=1e-6)
    np.testing.assert_allclose(x.place[:, 1], pose.m, atol=1e-6 * b.sizes.max())


def test_reductions_of_the_oracle_know_what_a_curve_shows():
    x = np.linspace(0.0, 2.0, 5)
    found = statics.reductions(x, 3.0 * x - 1.0)
    assert found["slope"] == pytest.approx(3.0) and found["mean"] == pytest.approx(2.0)
    assert found["crossing"] == pytest.approx(1.01 / 3.0) and found["span"] == 6.0


@pytest.mark.slow
def test_closed_forms_are_right():
    found = list(closed_forms.judged(3, 60))
    assert not [case for case in found if case.outcome in BAD]
    assert sum(case.outcome == "right" for case in found) > 20
