"""Driven motions against free bodies in NumPy: motion, efforts, power, reactions, shaking."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.observe import (
    Acceleration,
    Configuration,
    Coordinate,
    DriveEffort,
    Driven,
    DrivingPower,
    Energy,
    HoldingEffort,
    Position,
    Reaction,
    ShakingForce,
    ShakingMoment,
    SpeedRatio,
    Together,
    Velocity,
    constant_speed,
)
from tests.helpers.free_bodies import FreeBodies

TIMES = (0.0, 0.1, 0.27, 0.4)
ABOUT = (0.3, -0.2, 0.1)
Z = (0.0, 0.0, 1.0)


def course(t):
    """A coordinate that starts as drawn, with a speed."""
    return 1.3 * t + 0.4 * np.sin(3.0 * t) if np.iscomplexobj(t) else _traced(t)


def _traced(t):
    return 1.3 * t + 0.4 * jnp.sin(3.0 * t)


def planar(links, joints, points, **more):
    """Bodies by mass, centre of mass and inertia; joints by type, bodies, point and axis."""
    make = {
        "R": lambda a, b, at: mbd.Revolute(a, b, at=at),
        "P": lambda a, b, at, axis: mbd.Prismatic(a, b, at=at, axis=axis),
    }
    return mbd.Mechanism(
        bodies={n: mbd.Body(mass, com, inertia) for n, (mass, com, inertia) in links.items()},
        joints={n: make[kind](*rest) for n, (kind, *rest) in joints.items()},
        points=points,
        **more,
    )


def four_bar(coupler_mass=1.2, **more):
    return planar(
        {
            "crank": (0.8, (0.05, 0.06), 0.01),
            "coupler": (coupler_mass, (0.4, 0.35), 0.04 if coupler_mass else 0.0),
            "rocker": (1.0, (0.75, 0.2), 0.03),
        },
        {
            "crank": ("R", "ground", "crank", "A0"),
            "A": ("R", "crank", "coupler", "A"),
            "B": ("R", "coupler", "rocker", "B"),
            "rocker": ("R", "ground", "rocker", "B0"),
        },
        {"A0": (0.0, 0.0), "A": (0.1, 0.15), "B": (0.65, 0.45), "B0": (0.8, 0.0)},
        **more,
    )


def slider_crank():
    return planar(
        {
            "crank": (0.8, (0.05, 0.06), 0.01),
            "rod": (1.2, (0.4, 0.1), 0.04),
            "slider": (2.0, (0.73, 0.0), 0.01),
        },
        {
            "crank": ("R", "ground", "crank", "A0"),
            "A": ("R", "crank", "rod", "A"),
            "B": ("R", "rod", "slider", "B"),
            "slide": ("P", "ground", "slider", "B", (1.0, 0.1)),
        },
        {"A0": (0.0, 0.0), "A": (0.1, 0.15), "B": (0.7, -0.05)},
    )


def inverted_slider_crank():
    return planar(
        {
            "crank": (0.8, (0.05, 0.06), 0.01),
            "block": (0.4, (0.12, 0.16), 0.001),
            "lever": (2.0, (0.3, -0.1), 0.06),
        },
        {
            "crank": ("R", "ground", "crank", "A0"),
            "A": ("R", "crank", "block", "A"),
            "slide": ("P", "block", "lever", "A", (0.35, -0.4)),
            "lever": ("R", "ground", "lever", "B0"),
        },
        {"A0": (0.0, 0.0), "A": (0.1, 0.15), "B0": (0.45, -0.25)},
    )


def scotch_yoke():
    return planar(
        {
            "crank": (0.8, (0.05, 0.06), 0.01),
            "block": (0.4, (0.1, 0.15), 0.001),
            "yoke": (2.0, (0.3, 0.05), 0.06),
        },
        {
            "crank": ("R", "ground", "crank", "A0"),
            "A": ("R", "crank", "block", "A"),
            "slot": ("P", "block", "yoke", "A", (0.2, 1.0)),
            "guide": ("P", "ground", "yoke", "A0", (1.0, 0.0)),
        },
        {"A0": (0.0, 0.0), "A": (0.1, 0.15)},
    )


def six_bar(stephenson):
    """A Watt or a Stephenson linkage: the four-bar with a dyad on rocker or coupler and ground."""
    on, at = ("coupler", "C1") if stephenson else ("rocker", "C2")
    return planar(
        {
            "crank": (0.8, (0.05, 0.06), 0.01),
            "coupler": (1.2, (0.4, 0.35), 0.04),
            "rocker": (1.0, (0.75, 0.2), 0.03),
            "link": (0.7, (0.9, 0.55), 0.02),
            "output": (0.9, (1.2, 0.3), 0.02),
        },
        {
            "crank": ("R", "ground", "crank", "A0"),
            "A": ("R", "crank", "coupler", "A"),
            "B": ("R", "coupler", "rocker", "B"),
            "rocker": ("R", "ground", "rocker", "B0"),
            "C": ("R", on, "link", at),
            "D": ("R", "link", "output", "D"),
            "output": ("R", "ground", "output", "D0"),
        },
        {
            **{"A0": (0.0, 0.0), "A": (0.1, 0.15), "B": (0.65, 0.45), "B0": (0.8, 0.0)},
            **{"C1": (0.5, 0.6), "C2": (0.85, 0.4), "D": (1.2, 0.5), "D0": (1.3, -0.05)},
        },
    )


def spatial_loop(kinds, seed=7):
    """A loop of three links between a driven revolute joint and three more, drawn at random."""
    rng = np.random.default_rng(seed)
    at = np.array([(0, 0, 0), (0.1, 0.05, 0.2), (0.7, 0.2, 0.3), (0.8, 0.1, -0.1)])
    axes = rng.normal(size=(4, 3)) + np.array([(0, 2.5, 0.5), (0, 1, 2), (1, 2, 0), (0, 2, 1)])
    links = ["ground", "crank", "coupler", "output", "ground"]
    names = ("crank", "A", "B", "output")
    make = {"R": mbd.Revolute, "C": mbd.Cylindrical, "S": mbd.Spherical}
    joints = {}
    for k, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        a, b = (links[k], links[k + 1]) if k < 3 else ("ground", "output")
        more = {} if kind == "S" else {"axis": axes[k]}
        joints[name] = make[kind](a, b, at=f"P{k}", **more)
    bodies = {}
    for k, name in enumerate(links[1:4]):
        com = 0.5 * (at[k] + at[k + 1]) + 0.05 * rng.normal(size=3)
        size = rng.uniform(0.1, 0.3, 3)
        inertia = 0.1 * (size @ size - size**2)
        if kinds[k : k + 2] == "SS":  # of revolution about the line, along which it may spin
            com, along = 0.4 * at[k] + 0.6 * at[k + 1], at[k + 1] - at[k]
            inertia = 0.02 * np.eye(3) - 0.015 * np.outer(along, along) / (along @ along)
        bodies[name] = mbd.Body(rng.uniform(0.5, 2.0), com, inertia)
    points = {f"P{k}": x for k, x in enumerate(at)}
    return mbd.Mechanism(bodies, joints, points=points)


MECHANISMS = {
    "four-bar": (four_bar, {}),
    "massless coupler": (lambda: four_bar(0.0), {}),
    "slider-crank": (slider_crank, {}),
    "inverted slider-crank": (inverted_slider_crank, {}),
    "scotch yoke": (scotch_yoke, {}),
    "Watt": (lambda: six_bar(False), {}),
    "Stephenson": (lambda: six_bar(True), {}),
    "RSSR": (lambda: spatial_loop("RSSR"), {"coupler": ("P1", "P2")}),
    "RSRC": (lambda: spatial_loop("RSRC"), {}),
    "RCCC": (lambda: spatial_loop("RCCC", 15), {}),
    "RSUP": (mbd.zoo.spatial_slider_crank, {}),
}
QUICK = ("RSSR",)


def experiment(mech):
    """All that is compared, by names that `expected` uses."""
    observe = {}
    for name in mech.structure.bodies:
        com = mech.bodies[name].com
        com = com.name if hasattr(com, "name") else com
        observe |= {
            f"x {name}": Position(name, com),
            f"v {name}": Velocity(name, com),
            f"a {name}": Acceleration(name, com),
        }
    for name in mech.joints:
        observe |= {f"f {name}": Reaction(name), f"n {name}": Reaction(name, "moment")}
    about = ABOUT[:2] if mech.structure.planar else ABOUT
    return Driven(
        {"crank": course},
        TIMES,
        {
            **observe,
            "effort": HoldingEffort("crank"),
            "power": DrivingPower("crank"),
            "shaking": ShakingForce(),
            "moment": ShakingMoment(about),
            "ground": ShakingForce(weight=True),
            "ground moment": ShakingMoment(about, weight=True),
        },
    )


def expected(bodies, t):
    """The same by free bodies."""
    at, names = bodies.at(t), bodies.names
    found = {}
    for n in names:
        found |= {f"x {n}": at.x[n], f"v {n}": at.v[n], f"a {n}": at.a[n]}
    for n, wrench in at.wrench.items():
        found |= {f"f {n}": wrench[3:], f"n {n}": wrench[:3]}
    force = -sum(bodies.mass[n] * at.a[n] for n in names)
    about = np.array([*ABOUT[:2], 0.0 if bodies.mech.structure.planar else ABOUT[2]])
    moment = np.zeros(3)
    for n in names:
        inertia = at.r[n] @ bodies.inertia[n] @ at.r[n].T
        moment -= inertia @ at.alpha[n] + np.cross(at.w[n], inertia @ at.w[n])
        moment -= np.cross(at.x[n] - about, bodies.mass[n] * at.a[n])
    weight = [(at.x[n] - about, bodies.mass[n] * bodies.gravity) for n in names]
    rate = np.imag(course(t + 1e-30j)) / 1e-30
    return found | {
        "effort": at.effort,
        "power": at.effort * rate,
        "shaking": force,
        "moment": moment,
        "ground": force + sum(w for _, w in weight),
        "ground moment": moment + sum(np.cross(x, w) for x, w in weight),
    }


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in MECHANISMS],
)
def test_every_quantity_is_that_of_free_bodies(name):
    build, idle = MECHANISMS[name]
    mech = build()
    found = experiment(mech)(mech)
    assert int(found["status"]) == mbd.Status.OK
    bodies = FreeBodies(mech, "crank", course, idle)
    wanted = [expected(bodies, t) for t in TIMES]
    in_plane = mech.structure.planar
    for key in wanted[0]:
        got, want = np.asarray(found[key]), np.array([row[key] for row in wanted])
        if in_plane and key[:2] in ("f ", "n "):
            # Redundant out of the plane, where the package's planar joints have no rows.
            some = slice(0, 2) if key[0] == "f" else slice(2, 3)
            got, want = got[:, some], want[:, some]
        if in_plane and key in ("moment", "ground moment"):
            got, want = got[:, 2], want[:, 2]
        np.testing.assert_allclose(
            got, want, rtol=0, atol=1e-9 * max(1.0, np.abs(want).max()), err_msg=key
        )


TURN = Driven(
    {"crank": constant_speed(2.0, 0.1)},
    np.linspace(0.0, 0.3, 7),
    {
        "torque": HoldingEffort("crank").peak(),
        "work": DrivingPower("crank").mean(),
        "pin": Reaction("B", axis="norm").rms(),
        "shaking": ShakingForce("norm").max(),
    },
)


@pytest.mark.slow
def test_derivatives_are_those_of_differences():
    """Of all outputs by a hardpoint and a mass, forward in a direction, and reverse."""
    mech = four_bar()

    def outputs(x):
        changed = mech.replace(points=mech.points | {"B": mech.points["B"] + x[:2]})
        found = TURN(mbd.set_variables(changed, {"bodies/coupler/mass": 1.2 + x[2]}))
        return jnp.stack([found[n] for n in TURN.observe])

    still, step, weights = np.zeros(3), 1e-5, np.array([1.0, 2.0, 3.0, 4.0])
    along = np.array([0.3, -0.2, 0.5])
    value = lanes.jit(outputs)
    columns = [(value(still + e) - value(still - e)) / (2 * step) for e in step * np.eye(3)]
    wanted = np.array(columns).T
    forward = lanes.jit(lambda x: jax.jvp(outputs, (x,), (jnp.asarray(along),))[1])(still)
    np.testing.assert_allclose(forward, wanted @ along, rtol=0, atol=1e-6 * np.abs(wanted).max())
    reverse = lanes.jit(jax.grad(lambda x: outputs(x) @ weights))(still)
    np.testing.assert_allclose(reverse, weights @ wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())


def test_speeds_and_times_are_numbers_of_one_program():
    """Other ones compile nothing; the speed has a derivative: inertia goes with its square."""
    mech = four_bar(gravity=(0.0, 0.0))

    def turning(speed, share=1.0):
        return Driven(
            {"crank": (_line, speed)}, share * np.array(TIMES), {"e": HoldingEffort("crank")}
        )

    def torque(speed, share=1.0):
        return turning(speed, share)(mech)["e"]

    (one, _), (other, _) = turning(1.0).split(), turning(2.0, 0.5).split()
    assert one == other and hash(one) == hash(other)
    first = torque(1.0)
    np.testing.assert_allclose(torque(2.0, 0.5), 4.0 * first, rtol=1e-9, atol=1e-12)
    slope = lanes.jit(jax.grad(lambda w: torque(w)[0]))(1.0)
    np.testing.assert_allclose(slope, 2.0 * first[0], rtol=1e-9)


def test_a_drive_of_the_mechanism_gives_the_same():
    mech = four_bar()
    observe = {"pin": Reaction("A"), "shaking": ShakingForce()}
    own = {"e": HoldingEffort("crank"), "p": DrivingPower("crank")}
    want = Driven({"crank": (_line, 1.5)}, TIMES, observe | own)(mech)
    driven = mech.replace(drives={"motor": mbd.Drive("crank", _line, 1.5)})
    motor = {"e": DriveEffort("motor"), "p": DrivingPower("motor")}
    got = Driven({}, TIMES, observe | motor)(driven)
    for name in (*observe, *own):
        np.testing.assert_allclose(got[name], want[name], rtol=0, atol=1e-10)


def test_a_force_that_drives_a_point_acts_in_the_reactions():
    """Ground reactions, the driving force and all inertia and weight are in balance."""
    mech = four_bar()
    key = mbd.PointTravel("rocker", "B", "x")
    pins = {n: Reaction(n) for n in ("crank", "rocker")}
    more = {"force": HoldingEffort(key), "all": ShakingForce(weight=True), "p": DrivingPower(key)}
    found = Driven({key: (_line, -0.2)}, TIMES, pins | more)(mech)
    assert int(found["status"]) == mbd.Status.OK
    pull = np.outer(found["force"], (1.0, 0.0, 0.0))
    assert np.abs(pull).max() > 1.0
    np.testing.assert_allclose(
        found["all"] + pull, -(found["crank"] + found["rocker"]), rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(found["p"], -0.2 * found["force"], rtol=1e-12)


def _line(t, speed):
    return speed * t


def test_other_joints_can_produce_the_motion():
    mech = four_bar()
    observe = {"pin": Reaction("A"), "rocker": Reaction("rocker"), "f": ShakingForce(weight=True)}
    found = Driven({"crank": (_line, 1.5)}, TIMES, observe, actuated="rocker")(mech)
    run = mbd.simulate_driven(mech, {"crank": (_line, 1.5)}, t=TIMES, actuated="rocker")
    k = -1
    inputs = {"rocker": run.effort[k]}
    want = mbd.joint_reactions(mech, run.q[k], run.v[k], run.vdot[k], run.lam[k], inputs=inputs)
    np.testing.assert_allclose(found["pin"][k], want["A"][3:], rtol=1e-12, atol=1e-12)


def test_the_effort_of_an_actuated_joint_and_its_power():
    """Power is the rate of kinetic energy and weight; the driven crank has no effort of its own."""
    mech = four_bar()
    observe = {
        "torque": HoldingEffort("rocker"),
        "power": DrivingPower("rocker"),
        "energy": Energy("total"),
        "ratio": SpeedRatio("rocker", "crank"),
    }
    step, middle = 1e-4, np.array([0.1, 0.35, 0.8])
    times = np.sort(np.concatenate([middle - step, middle, middle + step]))
    found = Driven({"crank": (_line, 1.5)}, times, observe, actuated="rocker")(mech)
    by_crank = Driven(
        {"crank": (_line, 1.5)},
        times,
        {"torque": HoldingEffort("crank"), "ratio": observe["ratio"]},
    )(mech)
    rate = (found["energy"][2::3] - found["energy"][::3]) / (2.0 * step)
    np.testing.assert_allclose(found["power"][1::3], rate, rtol=1e-6)
    np.testing.assert_allclose(
        found["torque"] * by_crank["ratio"], by_crank["torque"], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(found["ratio"], by_crank["ratio"], rtol=1e-12)
    with pytest.raises(ValueError, match="not held here; held or actuated are .*rocker"):
        Driven({"crank": (_line, 1.5)}, times, {"f": HoldingEffort("crank")}, actuated="rocker")(
            mech
        )


def test_a_failure_names_joint_and_time():
    """A slider-crank whose rod is shorter than the crank's height stops on its way."""
    mech = slider_crank()
    crank = Driven({"slide": (_line, 1.0)}, np.linspace(0.0, 0.4, 9), {"q": Coordinate("slide")})
    found = crank(mech)
    assert int(found["status"]) == mbd.Status.NOT_ASSEMBLED
    flags = crank.declare(mech).outputs["open_joint"].flags
    assert flags[int(found["open_joint"])] in mech.joints
    assert 0.0 < float(found["failed_at"]) < 0.4 and float(found["open_distance"]) > 0.0
    assert np.isnan(found["q"]).all()


def test_what_is_free_is_singular():
    free = mbd.zoo.double_pendulum()
    first = next(iter(free.joints))
    found = Driven({first: (_line, 1.0)}, TIMES, {"x": Coordinate(first)})(free)
    assert int(found["status"]) == mbd.Status.SINGULAR


@pytest.mark.slow
def test_it_stands_beside_other_experiments():
    mech = four_bar()
    both = Together(
        {"turn": TURN, "pose": Configuration({"crank": 0.1}, {"q": Coordinate("rocker")})}
    )
    found = both(mech)
    np.testing.assert_allclose(found["turn/torque"], TURN(mech)["torque"], rtol=1e-12)
    units = both.declare(mech).outputs
    assert units["turn/torque"].unit == "N m" and units["turn/work"].unit == "W"
    course = TURN.trajectory(mech)
    assert course.q.shape == (7, 3) and course.curves["torque"].shape == (7,)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (dict(known={"crank": 0.1}, t=[0.0]), "two or more times"),
        (dict(known={"crank": 0.1}, t=[0.0, 0.0]), "ascending"),
    ],
)
def test_wrong_times_are_refused(given, told):
    with pytest.raises(ValueError, match=told):
        Driven(**given)


@pytest.mark.parametrize(
    ("known", "observe", "told"),
    [
        ({}, {"x": ShakingForce()}, "name what is driven"),
        ({"crnk": 0.1}, {"x": ShakingForce()}, "crnk"),
        ({"crank": "fast"}, {"x": ShakingForce()}, "give a function of t"),
        ({"crank": 0.1}, {"x": ShakingForce("w")}, "axis='w'"),
        ({"crank": 0.1}, {"x": ShakingMoment("A9")}, "A9"),
        ({"crank": 0.1}, {"x": DrivingPower("motor")}, "motor"),
    ],
)
def test_wrong_names_are_told(known, observe, told):
    problems = Driven(known, TIMES, observe).problems(four_bar())
    assert any(told in text for text in problems), problems


def test_what_is_not_driven_has_no_effort():
    with pytest.raises(ValueError, match="not held here"):
        Driven({"crank": 0.1}, TIMES, {"x": HoldingEffort("rocker")})(four_bar())


@pytest.mark.parametrize(
    ("what", "text"),
    [
        (lambda: Reaction("X"), "there is no joint 'X'"),
        (lambda: Reaction("O", axis="q"), "axis='q'"),
        (lambda: mbd.observe.ContactForce("B"), "there is no contact 'B'"),
        (lambda: mbd.observe.DriveEffort("O"), "there is no drive 'O'"),
        (lambda: Reaction("O", "Force"), "part='Force'"),
    ],
)
def test_a_call_says_what_does_not_fit(what, text):
    mech = mbd.zoo.slider_crank()
    with pytest.raises(ValueError, match=text):
        Driven({"O": constant_speed(2.0)}, [0.0, 0.1], {"x": what()})(mech)
