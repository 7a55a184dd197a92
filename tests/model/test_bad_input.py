"""Wrong descriptions and wrong calls: each names the part and the cure, none gives a number."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

NAN = float("nan")
ORIGIN, X, Y = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
GUESS = np.array([-1.0, 0.5, -1.5])


def arm(**changes):
    """A valid pendulum with something added or replaced."""
    parts = {
        "bodies": {"arm": mbd.Body(1.0, (0.5, 0, 0), (0.1, 0.1, 0.1))},
        "joints": {"hinge": mbd.Revolute("ground", "arm", at=ORIGIN, axis=Y)},
    }
    for key, value in changes.items():
        parts[key] = {**parts[key], **value} if key in parts else value
    return mbd.Mechanism(**parts)


def body(*args):
    return {"bodies": {"arm": mbd.Body(*args)}}


def hinge(joint):
    return {"joints": {"hinge": joint}}


def extra(joint):
    return {"joints": {"extra": joint}}


def force(element):
    return {"forces": {"load": element}}


def spring(**changes):
    ends = {"a": "ground", "b": "arm", "at_a": ORIGIN, "at_b": X, "stiffness": 1.0}
    return force(mbd.SpringDamper(**{**ends, **changes}))


LOOP = {
    "bodies": {"end": mbd.Body(1.0, X)},
    "joints": {
        "middle": mbd.Revolute("arm", "end", at=X, axis=Y),
        "last": mbd.Revolute("ground", "end", at=(2.0, 0, 0), axis=Y),
    },
}

# What is wrong, and the words that the message must hold: the part, then the finding or the cure.
DESCRIPTIONS = {
    "unknown body": (
        lambda: extra(mbd.Revolute("arm", "nobody", at=ORIGIN, axis=Y)),
        ["joint 'extra'", "'nobody'", "known: ['ground', 'arm']"],
    ),
    "body not connected": (
        lambda: {"bodies": {"loose": mbd.Body(1.0)}},
        ["body 'loose'", "not connected to the ground", "Free('ground', 'loose')"],
    ),
    "body connected by rods alone": (
        lambda: {
            "bodies": {"loose": mbd.Body(1.0)},
            "joints": {"rod": mbd.Rod("ground", "loose", ORIGIN, X)},
        },
        ["body 'loose'", "rods do not count", "Free('ground', 'loose')"],
    ),
    "two bodies on each other alone": (
        lambda: {
            "bodies": {"p": mbd.Body(1.0), "q": mbd.Body(1.0)},
            "joints": {"pq": mbd.Revolute("p", "q", at=ORIGIN, axis=Y)},
        },
        ["body 'p'", "body 'q'", "not connected"],
    ),
    "self joint": (
        lambda: extra(mbd.Revolute("arm", "arm", at=ORIGIN, axis=Y)),
        ["joint 'extra'", "'arm' to itself", "two bodies"],
    ),
    "zero axis": (
        lambda: hinge(mbd.Revolute("ground", "arm", at=ORIGIN, axis=ORIGIN)),
        ["joint 'hinge'", "axis is zero", "nonzero"],
    ),
    "nan axis": (
        lambda: hinge(mbd.Revolute("ground", "arm", at=ORIGIN, axis=(0, NAN, 0))),
        ["joint 'hinge'", "axis", "finite"],
    ),
    "axis missing": (
        lambda: hinge(mbd.Revolute("ground", "arm", at=ORIGIN, axis=None)),
        ["joint 'hinge'", "axis"],
    ),
    "point missing": (
        lambda: hinge(mbd.Revolute("ground", "arm", at=None, axis=Y)),
        ["joint 'hinge'", "at"],
    ),
    "axis between equal points": (
        lambda: {
            "points": {"p": X, "q": X},
            **hinge(mbd.Revolute("ground", "arm", at=ORIGIN, axis=("p", "q"))),
        },
        ["joint 'hinge'", "'p' and 'q' coincide"],
    ),
    "halves turned apart": (
        lambda: hinge(mbd.Revolute("ground", "arm", ORIGIN, Y, axis_b=(0, -1, 0))),
        ["joint 'hinge'", "axis_b", "turn one round"],
    ),
    "unknown point of a joint": (
        lambda: {
            "points": {"here": X},
            **hinge(mbd.Revolute("ground", "arm", at="there", axis=Y)),
        },
        ["joint 'hinge'", "'there'", "['here']"],
    ),
    "unknown point of a body": (lambda: body(1.0, "there"), ["body 'arm'", "com", "'there'"]),
    "unknown point of a spring": (lambda: spring(at_a="there"), ["force 'load'", "'there'"]),
    "wrong shape of a point": (
        lambda: hinge(mbd.Revolute("ground", "arm", at=(0.0, 0.0), axis=Y)),
        ["joint 'hinge'", "at", "(2,)", "3 numbers"],
    ),
    "wrong shape of an axis": (
        lambda: hinge(mbd.Revolute("ground", "arm", at=ORIGIN, axis=(0, 1))),
        ["joint 'hinge'", "axis", "(2,)", "3 numbers"],
    ),
    "words in an axis": (
        lambda: hinge(mbd.Revolute("ground", "arm", at=ORIGIN, axis="y")),
        ["joint 'hinge'", "axis is 'y'", "3 numbers", "names of two points"],
    ),
    "nan point": (lambda: {"points": {"p": (0, NAN, 0)}}, ["point 'p'", "finite"]),
    "nan mass": (lambda: body(NAN), ["body 'arm'", "mass is nan", "finite"]),
    "infinite mass": (lambda: body(float("inf")), ["body 'arm'", "mass", "finite"]),
    "negative mass": (lambda: body(-1.0), ["body 'arm'", "mass is -1 kg", "at least zero"]),
    "mass of two numbers": (lambda: body((1.0, 2.0)), ["body 'arm'", "mass", "one number"]),
    "negative inertia": (
        lambda: body(1.0, ORIGIN, (0.1, -0.2, 0.1)),
        ["body 'arm'", "negative eigenvalue -0.2", "positive semidefinite", "about the COM"],
    ),
    "unsymmetric inertia": (
        lambda: body(1.0, ORIGIN, ((1, 0.1, 0), (0, 1, 0), (0, 0, 1))),
        ["body 'arm'", "not symmetric", "both sides"],
    ),
    "nan inertia": (lambda: body(1.0, ORIGIN, (NAN, 1, 1)), ["body 'arm'", "inertia", "finite"]),
    "inertia of six numbers": (
        lambda: body(1.0, ORIGIN, (1, 1, 1, 0, 0, 0)),
        ["body 'arm'", "inertia", "(3, 3)"],
    ),
    "parallel universal axes": (
        lambda: hinge(mbd.Universal("ground", "arm", ORIGIN, axis_a=Y, axis_b=(0, -2, 0))),
        ["joint 'hinge'", "axis_a and axis_b are parallel", "span a plane"],
    ),
    "planar axis along its normal": (
        lambda: hinge(mbd.Planar("ground", "arm", ORIGIN, Y, x_axis=Y)),
        ["joint 'hinge'", "normal and x_axis are parallel"],
    ),
    "ground as a body": (
        lambda: {"bodies": {"ground": mbd.Body(1.0)}},
        ["'ground'", "fixed body", "another name"],
    ),
    "ground floats": (
        lambda: {
            "bodies": {"f": mbd.Body(1.0)},
            "joints": {"float": mbd.Free("f", "ground")},
        },
        ["joint 'float'", "Free('ground', 'f')"],
    ),
    "unknown cut": (lambda: {"cut": ["nothing"]}, ["cut=", "'nothing'", "['hinge']"]),
    "a cut that leaves a loop": (
        lambda: {**LOOP, "cut": []},
        ["cut=[]", "loops", "cut one joint in each loop"],
    ),
    "a cut that cuts a body off": (
        lambda: {"cut": ["hinge"]},
        ["cut=['hinge']", "['arm']", "the ground"],
    ),
    "a cut through a free joint": (
        lambda: {
            "bodies": {"f": mbd.Body(1.0)},
            "joints": {"float": mbd.Free("ground", "f")},
            "cut": ["float"],
        },
        ["cut=", "'float'", "cannot be cut"],
    ),
    "spring on an unknown body": (
        lambda: spring(b="nobody"),
        ["force 'load'", "'nobody'", "known: ['ground', 'arm']"],
    ),
    "nan stiffness": (lambda: spring(stiffness=NAN), ["force 'load'", "stiffness", "finite"]),
    "stiffness of three numbers": (
        lambda: spring(stiffness=(1.0, 2.0, 3.0)),
        ["force 'load'", "stiffness"],
    ),
    "stiffness in words": (lambda: spring(stiffness="soft"), ["force 'load'", "stiffness"]),
    "force of two numbers": (
        lambda: force(mbd.PointForce("arm", ORIGIN, (0.0, 1.0))),
        ["force 'load'", "force"],
    ),
    "torsion spring on a ball": (
        lambda: {
            **hinge(mbd.Spherical("ground", "arm", at=ORIGIN)),
            **force(mbd.TorsionSpring("hinge", stiffness=1.0)),
        },
        ["force 'load'", "'hinge'", "quaternion"],
    ),
    "torsion spring on a coordinate that is not there": (
        lambda: force(mbd.TorsionSpring("hinge", stiffness=1.0, index=1)),
        ["force 'load'", "index 1", "1 coordinates of 'hinge'"],
    ),
    "torsion spring on an unknown joint": (
        lambda: force(mbd.TorsionSpring("nothing", stiffness=1.0)),
        ["force 'load'", "'nothing'", "['hinge']"],
    ),
    "rod of no length": (
        lambda: extra(mbd.Rod("ground", "arm", X, X)),
        ["joint 'extra'", "both ends in one point", "Spherical"],
    ),
    "rod of negative length": (
        lambda: extra(mbd.Rod("ground", "arm", ORIGIN, X, length=-1.0)),
        ["joint 'extra'", "length is -1 m", "positive"],
    ),
    "nan pitch": (
        lambda: hinge(mbd.Helical("ground", "arm", ORIGIN, Y, NAN)),
        ["joint 'hinge'", "pitch"],
    ),
    "gravity of two numbers": (
        lambda: {"gravity": (0.0, -9.81)},
        ["gravity", "(2,)", "3 numbers"],
    ),
    "gravity of one number": (lambda: {"gravity": -9.81}, ["gravity", "3 numbers"]),
    "drive of an unknown joint": (
        lambda: {"drives": {"motor": mbd.Drive("nothing", lambda t, p: t)}},
        ["drive 'motor'", "'nothing'", "['hinge']"],
    ),
    "drive with a joint's name": (
        lambda: {"drives": {"hinge": mbd.Drive("hinge", lambda t, p: t)}},
        ["drive 'hinge'"],
    ),
    "drive of a cut joint": (
        lambda: {**LOOP, "cut": ["last"], "drives": {"motor": mbd.Drive("last", lambda t, p: t)}},
        ["drive 'motor'", "cut joint 'last'", "cut="],
    ),
    "drive by a function of time alone": (
        lambda: {"drives": {"motor": mbd.Drive("hinge", lambda t: t)}},
        ["drive 'motor'", "lambda t, params"],
    ),
    "points where drives belong": (
        lambda: {"drives": {"p": X}},
        ["drive 'p'", "points="],
    ),
    "bodies without names": (lambda: {"couplings": [mbd.Body(1.0)]}, ["couplings=", "list"]),
    "a number for a name": (lambda: {"points": {7: X}}, ["points=", "7"]),
    "a number for a joint": (lambda: hinge(3.0), ["joint 'hinge'", "float", "joint types"]),
    "a number for a body": (lambda: {"bodies": {"arm": 3.0}}, ["body 'arm'", "float"]),
    "a number for a force": (lambda: force(3.0), ["force 'load'", "float"]),
    "a number for a drive": (lambda: {"drives": {"motor": 3.0}}, ["drive 'motor'", "float"]),
}


@pytest.mark.parametrize("case", DESCRIPTIONS)
def test_a_wrong_description_is_refused(case):
    changes, words = DESCRIPTIONS[case]
    with pytest.raises(ValueError) as caught:
        mbd.topology(arm(**changes()))
    for word in words:
        assert word in str(caught.value)


def test_all_problems_come_in_one_message():
    with pytest.raises(ValueError) as caught:
        arm(
            bodies={"arm": mbd.Body(-1.0, (0, NAN, 0)), "loose": mbd.Body(1.0)},
            joints={"extra": mbd.Revolute("arm", "nobody", at="there", axis=ORIGIN)},
            forces={"load": mbd.SpringDamper("ground", "zz", ORIGIN, X, stiffness=1.0)},
            drives={"motor": mbd.Drive("nothing", lambda t, p: t)},
            gravity=(1.0, 2.0),
            cut=["zzz"],
        )
    text = str(caught.value)
    parts = ["com", "mass", "nobody", "there", "axis", "'zz'", "motor", "gravity", "loose", "zzz"]
    assert "10 problems" in text
    assert [p for p in parts if p not in text] == []
    assert len(re.findall(r"^  - ", text, re.MULTILINE)) == 10


def test_wrong_cuts_come_with_the_other_problems():
    with pytest.raises(ValueError) as caught:
        arm(cut=["hinge"], gravity=(1.0, 2.0))
    assert "gravity" in str(caught.value) and "cut=['hinge']" in str(caught.value)


def test_traced_numbers_pass_but_traced_shapes_do_not():
    jax.eval_shape(lambda m: arm(**body(m)), -1.0)  # may be anything: not looked at
    with pytest.raises(ValueError, match="gravity"):
        jax.eval_shape(lambda g: arm(gravity=g), jnp.zeros(2))


def test_triangle_inequality_is_a_warning():
    with pytest.warns(UserWarning, match="body 'arm'.*triangle inequality"):
        arm(**body(1.0, ORIGIN, (0.1, 0.1, 0.3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arm(**body(1.0, ORIGIN, (0.1, 0.2, 0.3)))  # a flat body: at the limit
        arm(**body(1.0, ORIGIN, (0.0, 0.2, 0.2)))
        arm(**body(0.0))


def test_a_users_point_is_not_overwritten_by_a_joints():
    joints = {
        "hinge": mbd.Revolute("ground", "arm", at=ORIGIN, axis=Y),
        "elbow": mbd.Revolute("arm", "end", at="hinge.at", axis=Y),
    }
    parts = {"bodies": {"end": mbd.Body(1.0)}, "joints": joints, "points": {"hinge.at": X}}
    try:
        mech = arm(**parts)
    except ValueError as error:
        assert "hinge.at" in str(error)
    else:
        np.testing.assert_array_equal(mech.point(mech.joints["elbow"].at), X)


def test_a_stop_that_never_pushes_is_a_warning():
    with pytest.warns(UserWarning, match="force 'load'.*never pushes"):
        arm(**force(mbd.JointLimit("hinge", lower=-1.0, upper=1.0)))


# What is handed to a function that takes something else, and the cure.
CALLS = {
    "an assembly for q0": (
        lambda m, q: mbd.simulate(m, mbd.assemble(m), t1=1.0, dt=0.5),
        "found.q",
    ),
    "a run for q0": (
        lambda m, q: mbd.simulate(m, mbd.simulate(m, q, t1=0.1, dt=0.1), t1=1.0, dt=0.5),
        "run.end",
    ),
    "names for q0": (lambda m, q: mbd.simulate(m, {"hinge": 0.1}, t1=1.0, dt=0.5), "assemble"),
    "a number for inputs": (
        lambda m, q: mbd.simulate(m, q, t1=1.0, dt=0.5, inputs=1.0),
        "inputs={'a joint': value}",
    ),
    "a function of a number for inputs": (
        lambda m, q: mbd.simulate(m, q, t1=1.0, dt=0.5, inputs=lambda t: 1.0),
        "{joint: value}",
    ),
    "inputs in the place of time": (
        lambda m, q: mbd.forward_dynamics(m, q, q, {"hinge": 1.0}),
        "inputs={",
    ),
    "a list for known": (lambda m, q: mbd.assemble(m, known=[0.1]), "known={'a joint': value}"),
    "a run to be saved": (
        lambda m, q: mbd.io.save_run_end(mbd.simulate(m, q, t1=0.1, dt=0.1), "never.npz"),
        "run.end",
    ),
    "a condition for an event": (
        lambda m, q: mbd.simulate(
            m, q, t1=0.1, dt=0.1, events={"low": mbd.Event(lambda t, q, v: q[0] > 0.0)}
        ),
        "passes zero",
    ),
    "no mechanism": (lambda m, q: mbd.assemble({"hinge": 0.1}), "jaxmbd.Mechanism"),
    "observables without names": (
        lambda m, q: mbd.observe.Sweep({"hinge": [0.0, 0.1]}, mbd.observe.Coordinate("hinge")),
        "{'a name': …}",
    ),
    "a study of an observable": (
        lambda m, q: mbd.Study(m, {}, observe=mbd.observe.Coordinate("hinge"), samples=1),
        "Sweep",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_wrong_argument_is_told_with_the_cure(case):
    call, cure = CALLS[case]
    with pytest.raises((ValueError, TypeError), match=re.escape(cure)):
        call(arm(), np.zeros(1))


def test_states_off_the_constraints_name_the_open_joint_alone():
    bars = mbd.zoo.slider_crank()
    q = np.asarray(mbd.neutral(bars))
    with pytest.raises(ValueError, match="the speeds violate") as caught:
        mbd.simulate(bars, q, np.eye(len(q))[0], t1=0.1, dt=0.05)
    assert "is open" not in str(caught.value)


# --- Dynamics -----------------------------------------------------------------------------------


def test_a_motion_of_neither_inertia_nor_constraint():
    mech = arm(**body(0.0, (0.5, 0, 0)))
    zero = np.zeros(1)
    with pytest.raises(ValueError, match=r"\['hinge'\] has neither inertia nor constraint"):
        mbd.forward_dynamics(mech, zero, zero)
    with pytest.raises(ValueError, match=r"\['hinge'\] has neither inertia nor constraint"):
        mbd.simulate(mech, zero, zero, t1=0.1, dt=0.05)
    inside = jax.jit(lambda q: mbd.forward_dynamics(mech, q, zero)[0])(zero)
    assert np.isnan(inside).all()
    failed = mbd.simulate(mech, zero, zero, t1=0.1, dt=0.05, throw=False)
    assert failed.status != mbd.Status.OK and np.isnan(failed.q[-1]).all()


def test_a_point_mass_on_the_axis_has_no_inertia():
    with pytest.raises(ValueError, match="hinge"):
        mbd.forward_dynamics(arm(**body(1.0, (0, 0.5, 0))), np.zeros(1), np.zeros(1))


def test_a_massless_link_that_carries_a_mass_is_fine():
    mech = arm(
        bodies={"arm": mbd.Body(0.0), "end": mbd.Body(1.0, (2.0, 0, 0))},
        joints={"weld": mbd.Fixed("arm", "end", at=X)},
    )
    vdot, _ = mbd.forward_dynamics(mech, np.zeros(1), np.zeros(1))
    np.testing.assert_allclose(vdot, 9.81 / 2.0)


@pytest.mark.parametrize("nq", [0, 2])
def test_wrong_shapes_of_a_state(nq):
    mech, wrong, right = arm(), np.zeros(nq), np.zeros(1)
    for call in (
        lambda: mbd.forward_dynamics(mech, wrong, right),
        lambda: mbd.forward_dynamics(mech, right, wrong),
        lambda: mbd.inverse_dynamics(mech, right, right, wrong),
        lambda: mbd.mass_matrix(mech, wrong),
    ):
        with pytest.raises(ValueError, match=re.escape(f"({nq},)")):
            call()


def test_under_actuation():
    mech = mbd.zoo.double_pendulum()
    state = np.zeros(2), np.zeros(2), np.ones(2)
    with pytest.raises(ValueError, match=r"nothing drives \['hinge_2'\]; actuate"):
        mbd.inverse_dynamics(mech, *state, actuated=["hinge_1"])
    with pytest.raises(ValueError, match=r"'nothing'.*\['hinge_1', 'hinge_2'\]"):
        mbd.inverse_dynamics(mech, *state, actuated=["nothing"])
    tau, _ = jax.jit(lambda a: mbd.inverse_dynamics(mech, *state[:2], a, actuated=["hinge_1"]))(
        state[2]
    )
    assert np.isnan(tau).all()


# --- Assembly -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def four_bar():
    mech = mbd.zoo.four_bar()
    q = mbd.assemble(mech, {"A": -0.8}, guess=GUESS).q
    return mech, np.asarray(q)


def test_a_loop_that_cannot_close_says_which_and_by_how_much():
    mech = mbd.zoo.four_bar(coupler=5.0)
    with pytest.raises(ValueError) as caught:
        mbd.assemble(mech, guess=GUESS)
    found = re.search(r"joint 'C' is open by ([\d.e+-]+) m", str(caught.value))
    assert found and 3.3 < float(found[1]) < 4.1  # 5 − (0.3 + 0.7 + 0.6) at best
    assert "hardpoints" in str(caught.value) and "guess" in str(caught.value)
    quiet = mbd.assemble(mech, guess=GUESS, throw=False)
    assert quiet.status == mbd.Status.NOT_ASSEMBLED and np.isnan(quiet.q).all()


WRONG_KNOWN = {
    "cut joint": ({"C": 0.1}, ["'C'", "cut=", "'A'", "'B'", "'D'"]),
    "unknown joint": ({"nothing": 0.1}, ["'nothing'", "['A', 'B', 'D', 'C']"]),
    "coordinate out of range": ({("A", 1): 0.1}, ["'A'", "coordinate 1"]),
    "negative coordinate": ({("A", -1): 0.1}, ["'A'", "coordinate -1"]),
    "too many values": ({"A": (0.1, 0.2)}, ["'A'"]),
    "unknown body": ({mbd.PointCoordinate("nobody", "B", "x"): 0.0}, ["nobody", "'crank'"]),
    "unknown point": ({mbd.PointCoordinate("crank", "there", "x"): 0.0}, ["there", "'B'"]),
    "unknown axis": ({mbd.PointCoordinate("crank", "B", "w"): 0.0}, ["'w'", "x, y, z"]),
}


@pytest.mark.parametrize("case", WRONG_KNOWN)
def test_known_that_names_nothing(four_bar, case):
    known, words = WRONG_KNOWN[case]
    with pytest.raises(ValueError) as caught:
        mbd.assemble(four_bar[0], known, guess=GUESS)
    for word in words:
        assert word in str(caught.value)
    if "joint" in case or case == "coordinate out of range":
        with pytest.raises(ValueError):
            mbd.assemble_velocity(four_bar[0], four_bar[1], known)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        pytest.param({"D": 3.0}, ["joint 'C' is open"], marks=pytest.mark.slow),
        (
            {"A": -0.8, "D": 0.0},
            ["joint 'C' is open", "2 coordinates are held", "'A' and 'D' follow"],
        ),
        ({mbd.PointCoordinate("crank", "B", "x"): 0.5}, ["1 coordinate is held", "reach"]),
    ],
)
def test_known_value_out_of_reach(four_bar, known, words):
    with pytest.raises(ValueError, match="does not assemble") as caught:
        mbd.assemble(four_bar[0], known, guess=GUESS)
    assert [w for w in words if w not in str(caught.value)] == []
    too_many = "Too many coordinates are held" in str(caught.value)
    assert too_many == (len(known) == 2) != ("hardpoints and lengths" in str(caught.value))


def test_nothing_moves_out_of_the_plane_of_a_planar_mechanism():
    mech = mbd.zoo.n_four_bar(1, planar=True)
    height = mbd.PointTravel(mech.structure.bodies[0], mech.structure.points[1], "z")
    with pytest.raises(ValueError, match="lies in the plane; axes are x, y$"):
        mbd.assemble(mech, {height: 0.1})


def test_speeds_that_contradict_each_other_are_too_many(four_bar):
    with pytest.raises(ValueError, match="Too many .* 'A' and 'D' .* 1 degree of freedom. Leave 1"):
        mbd.assemble_velocity(*four_bar, {"A": 1.0, "D": 0.0})


def test_known_value_out_of_reach_without_a_loop():
    height = mbd.PointCoordinate("bob", (-1.0, 0.0, 0.0), "y")
    with pytest.raises(ValueError, match=r"'bob'.* instead of 1\.5.*reach"):
        mbd.assemble(mbd.zoo.simple_pendulum(), {height: 1.5})
    q = mbd.assemble(mbd.zoo.simple_pendulum(), {height: -0.5}).q
    np.testing.assert_allclose(np.sin(q), [0.5], rtol=0, atol=1e-12)


def test_known_value_that_is_not_finite(four_bar):
    with pytest.raises(ValueError, match="'A'"):
        mbd.assemble(four_bar[0], {"A": NAN}, guess=GUESS)


def test_wrong_shape_of_a_guess(four_bar):
    with pytest.raises(ValueError, match="guess"):
        mbd.assemble(four_bar[0], guess=np.zeros(5))


def test_held_speeds_that_contradict_each_other(four_bar):
    """Of two speeds of a mechanism of one freedom the second must not be dropped in silence."""
    mech, q = four_bar
    alone = jax.jit(lambda v: mbd.assemble_velocity(mech, q, {"A": v}))(1.0)
    rate = float(alone[mbd.topology(mech).layout["D"].v][0])
    both = jax.jit(lambda a, d: mbd.assemble_velocity(mech, q, {"A": a, "D": d}))
    np.testing.assert_allclose(both(1.0, rate), alone, rtol=0, atol=1e-9)
    assert np.isnan(both(1.0, rate - 5.0)).all()
    assert np.isnan(both(1.0, rate + 1e-3)).all()
    with pytest.raises(ValueError, match="'D'|'A'"):
        mbd.assemble_velocity(mech, q, {"A": 1.0, "D": rate - 5.0})


def test_a_half_turned_weld_is_not_assembled():
    """A guess that is half a turn away may fail, but is never reported as closed."""
    mech = arm(
        joints={
            "hinge": mbd.Spherical("ground", "arm", at=ORIGIN),
            "weld": mbd.Fixed("ground", "arm", at=ORIGIN),
        },
        cut=["weld"],
    )
    axes = np.random.default_rng(0).normal(size=(100, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    guesses = np.concatenate([np.zeros((100, 1)), axes], axis=1)
    a = jax.jit(jax.vmap(lambda g: mbd.assemble(mech, guess=g)))(guesses)
    ok = np.asarray(a.status) == mbd.Status.OK
    turned = np.abs(np.asarray(a.q)[:, 0]) < 0.999
    assert not (ok & turned).any(), f"{(ok & turned).sum()} of 100 wrong welds reported as ok"


# --- Simulation ---------------------------------------------------------------------------------


def run(mech, q, v, **changes):
    return mbd.simulate(mech, q, v, **{"t1": 0.1, "dt": 0.05, **changes})


def test_simulate_from_an_open_position(four_bar):
    mech, q = four_bar
    with pytest.raises(ValueError, match=r"joint 'C' is open by 0\.\d+ m.*assemble\("):
        run(mech, np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError) as caught:
        run(mech, q, np.ones(3))
    text = str(caught.value)
    assert "'C" in text and "assemble_velocity" in text
    slip = np.abs(np.asarray(mbd.constraint_jacobian(mech, q)) @ np.ones(3)).max()
    assert f"{slip:.3g} m/s" in text


@pytest.mark.parametrize(("q", "v"), [((5, 3), (5, 3)), ((4,), (3,)), ((3,), (2,))])
def test_wrong_shapes_of_a_start(four_bar, q, v):
    with pytest.raises(ValueError) as caught:
        run(four_bar[0], np.zeros(q), np.zeros(v))
    text = str(caught.value)
    assert str(q) in text and str(v) in text and "(3,)" in text and "jax.vmap" in text


BAD_OPTIONS = {
    "unknown method": ({"method": "rk5"}, "'rk5'.*rk4"),
    "no method": ({"method": None}, "method"),
    "zero dt": ({"dt": 0.0}, "dt > 0"),
    "negative dt": ({"dt": -0.1}, "dt > 0"),
    "nan dt": ({"dt": NAN}, "dt > 0"),
    "end before start": ({"t1": -1.0}, "t1 > t0"),
    "no end": ({"t1": float("inf")}, "t1"),
    "saves nothing": ({"save_every": 0}, "save_every"),
    "saves between steps": ({"save_every": 1.5}, "save_every"),
    "unknown constraints": ({"constraints": "hope"}, "'hope'.*'project'"),
    "unknown input": ({"inputs": {"nothing": 1.0}}, r"'nothing'.*\['A', 'B', 'D', 'C'\]"),
    "unknown input of a function": ({"inputs": lambda t: {"nothing": t}}, "'nothing'.*'A'"),
    "input of two numbers": ({"inputs": {"A": (1.0, 2.0)}}, "'A'"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_wrong_options_of_simulate(four_bar, case):
    options, message = BAD_OPTIONS[case]
    with pytest.raises(ValueError, match=message):
        run(*four_bar, np.zeros(3), **options)


def test_unknown_input_of_the_dynamics(four_bar):
    with pytest.raises(ValueError, match="'nothing'.*'A'"):
        mbd.forward_dynamics(*four_bar, np.zeros(3), inputs={"nothing": 1.0})


# --- Without double precision -------------------------------------------------------------------

WITHOUT_X64 = """
import jax, jax.numpy as jnp, numpy as np
import jaxmbd as mbd
assert not jax.config.read("jax_enable_x64")
try:
    mbd.zoo.simple_pendulum()
except ValueError as error:
    assert "jax_enable_x64" in str(error) and "float32" in str(error), error
else:
    raise SystemExit("a float64 mechanism was built")
m = mbd.zoo.simple_pendulum(gravity=jnp.array([0, -9.81, 0], dtype="float32"))
s = mbd.simulate(m, mbd.neutral(m), [0.0], t1=0.1, dt=0.01)
assert s.q.dtype == "float32" and int(s.status) == 0
assert abs(float(s.q[-1, 0]) - 0.5 * 9.81 * 0.01) < 1e-4, s.q
assert not jax.config.read("jax_enable_x64")
print("fine")
"""


def test_without_double_precision_in_a_fresh_process():
    environment = {k: v for k, v in os.environ.items() if k != "JAX_ENABLE_X64"}
    done = subprocess.run(
        [sys.executable, "-W", "error:Explicitly requested dtype:UserWarning", "-c", WITHOUT_X64],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == "fine", done.stderr[-2000:]
