"""Experiments against single calls and closed forms; failures with their reason."""

import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import jaxmbd as mbd
from jaxmbd import lanes, observe
from jaxmbd.observe import (
    Configuration,
    Coordinate,
    CoordinateRate,
    Element,
    Energy,
    HoldingEffort,
    Motion,
    Position,
    Reaction,
    Settle,
    Sweep,
    Together,
)
from jaxmbd.observe.unheld import unheld_joints, warn_of_unheld

TURN = tuple(np.linspace(-1.0, 2.0, 7).tolist())
ROCKER = Coordinate("rocker")
SWEEP = Sweep(
    {"crank": TURN},
    {
        "rocker": ROCKER,
        "range": ROCKER.span(),
        "middle": ROCKER.at(0.25),
        "end": Position("coupler", "B").last(),
    },
)


def theta(psi, **numbers):
    return mbd.zoo.rssr_theta(np.asarray(psi), **numbers) - mbd.zoo.rssr_theta(0.0, **numbers)


def test_a_sweep_is_the_closed_form():
    found = SWEEP(mbd.zoo.rssr())
    np.testing.assert_allclose(found["rocker"], theta(TURN), rtol=0, atol=1e-10)
    assert found["range"] == pytest.approx(np.ptp(theta(TURN)), abs=1e-10)
    middle = np.interp(0.25, TURN, theta(TURN))
    assert found["middle"] == pytest.approx(middle, abs=1e-10)
    assert found["end"].shape == (3,) and found["status"] == 0 and found["open_joint"] == -1
    declared = SWEEP.declare(mbd.zoo.rssr())
    assert declared.outputs["rocker"].dims == ("crank",)
    assert declared.outputs["end"].dims == ("axis",) and declared.outputs["range"].unit == "rad"
    assert declared.coords["crank"].values == TURN and declared.coords["crank"].unit == "rad"
    for name, about in declared.outputs.items():
        sizes = tuple(len(declared.coords[d].values) for d in about.dims)
        assert found[name].shape == sizes, name


def test_derivatives_of_a_sweep_are_exact():
    """Through the assembly: rocker angle over the coupler's drawn length, against differences."""

    def end(x):
        mech = mbd.zoo.rssr(lengths=(0.05, x, 0.1))
        return SWEEP(mech)["rocker"][-1]

    slope = lanes.jit(jax.grad(end))(0.11)
    h = 1e-5
    far = [theta(TURN[-1], lengths=(0.05, 0.11 + s * h, 0.1)) for s in (-1, 1)]
    assert slope == pytest.approx((far[1] - far[0]) / (2 * h), rel=1e-7)


def test_failures_say_what_stayed_open_and_where():
    """A batch: in order, with a coupler too short for the last angle, and not a number."""
    lengths = [0.110, 0.050, np.nan]
    with np.errstate(invalid="ignore"):
        reach = theta(TURN, lengths=(0.05, lengths[1], 0.1))
    assert np.isnan(reach).tolist() == [False] * 6 + [True]
    found = lanes.vmap(lambda x: SWEEP(mbd.zoo.rssr(lengths=(0.05, x, 0.1))))(jnp.array(lengths))
    ok, short, broken = (mbd.Status(int(x)).name for x in found["status"])
    assert (ok, short, broken) == ("OK", "NOT_ASSEMBLED", "NON_FINITE")
    flags = SWEEP.declare(mbd.zoo.rssr()).outputs["open_joint"].flags
    assert found["open_joint"][0] == found["open_joint"][2] == -1
    assert flags[int(found["open_joint"][1])] in ("B", "'crank'")
    assert 1e-4 < found["open_distance"][1] < 0.1 and found["failed_at"][1] == 2.0
    assert np.isfinite(found["rocker"][0]).all() and np.isnan(found["rocker"][1:]).all()


@pytest.mark.parametrize(
    ("settle", "vmap"),
    [
        (False, lanes.vmap),
        *(pytest.param(s, jax.vmap, marks=pytest.mark.slow) for s in (False, True)),
    ],
)
def test_a_failed_sample_leaves_the_gradient_of_shared_numbers_alone(settle, vmap):
    turn = Sweep({"crank": (0.5, 2.0)}, {"rocker": ROCKER}, settle=settle)

    def loss(rocker, lengths):
        def one(x):
            found = turn(mbd.zoo.rssr(lengths=(0.05, x, rocker)))
            return jnp.where(found["status"] == 0, found["rocker"][-1], 0.0)

        return jnp.sum(vmap(one)(lengths))

    both, alone = (jax.jit(jax.grad(loss))(0.1, jnp.array(x)) for x in ([0.11, 0.05], [0.11, 0.11]))
    assert both == pytest.approx(float(alone) / 2.0, rel=1e-9) and both != 0.0


@pytest.mark.slow
def test_the_reason_is_that_of_the_error_on_the_host():
    bar = mbd.zoo.four_bar(coupler=0.8, ground=2.0)  # its links do not reach
    experiment = Configuration({}, {"crank": Coordinate("A")})
    found = experiment(bar)
    place = experiment.declare(bar).outputs["open_joint"].flags[int(found["open_joint"])]
    with pytest.raises(ValueError) as error:
        mbd.assemble(bar)
    assert mbd.Status(int(found["status"])).name == "NOT_ASSEMBLED" and np.isnan(found["crank"])
    assert f"joint '{place}' is open by {found['open_distance']:.3g} m" in str(error.value)
    # 2 m apart with 0.3 + 0.8 + 0.6 m of links leave 0.3 m.
    assert found["open_distance"] == pytest.approx(0.3, abs=1e-3)


def test_a_held_coordinate_out_of_reach_is_the_reason():
    mech = mbd.zoo.rssr()
    height = mbd.PointTravel("crank", "A", "y")
    lift = Sweep({height: (0.0, -0.02, 0.3)}, {"crank": Coordinate("crank")})
    found = lift(mech)
    name = lift.declare(mech).outputs["open_joint"].flags[int(found["open_joint"])]
    assert found["failed_at"] == 0.3 and np.isnan(found["crank"]).all()
    assert name in ("B", "y of A on 'crank'")
    assert found["open_distance"] > 0.01


def test_holding_efforts_are_the_slope_of_the_energy():
    """Static: the effort that holds a coordinate is the derivative of the potential along it."""
    mech = mbd.zoo.rssr(gravity=9.81)
    angles = tuple(np.linspace(0.3, 0.5, 21).tolist())
    curves = {"effort": HoldingEffort("crank"), "energy": Energy("potential")}
    found = Sweep({"crank": angles}, curves)(mech)
    slope = np.gradient(found["energy"], angles, edge_order=2)
    np.testing.assert_allclose(found["effort"][1:-1], slope[1:-1], rtol=1e-3, atol=1e-6)
    # The ground carries all the weight.
    feet = Configuration({"crank": 0.4}, {n: Reaction(n, axis="z") for n in ("crank", "rocker")})(
        mech
    )
    weight = 9.81 * sum(float(b.mass) for b in mech.bodies.values())
    assert feet["crank"] + feet["rocker"] == pytest.approx(weight, rel=1e-9)


def test_a_settled_sweep_is_in_equilibrium():
    """A double pendulum whose first link is turned: the second hangs, and the moment is m g x."""
    mech = mbd.zoo.double_pendulum()
    first, second = (e.name for e in mech.structure.joints)
    hang = Sweep(
        {first: (0.2, 0.9)},
        {"second": Coordinate(second), "moment": HoldingEffort(first), "e": Energy("potential")},
        settle=True,
    )
    found = hang(mech)
    total = np.array([0.2, 0.9]) + np.asarray(found["second"])
    np.testing.assert_allclose(total, 0.0, rtol=0, atol=1e-9)  # drawn hanging
    h = 1e-4
    near = Sweep({first: (0.9 - h, 0.9 + h)}, {"e": Energy("potential")}, settle=True)(mech)["e"]
    assert found["moment"][1] == pytest.approx(float(near[1] - near[0]) / (2 * h), rel=1e-6)


SWING = Motion(
    0.5,
    2e-3,
    {
        "angle": Coordinate("hinge"),
        "last": Coordinate("hinge").last(),
        "fastest": CoordinateRate("hinge").peak(),
        "pull": Reaction("hinge", axis="norm").max(),
        "half": Coordinate("hinge").crossing(0.5),
        "rise": Coordinate("hinge").rise(0.5),
        "total": Energy("total").span(),
    },
    keep=10,
)


def test_a_motion_is_the_simulation():
    mech = mbd.zoo.simple_pendulum()
    found, run = SWING(mech), mbd.simulate(mech, [0.0], [0.0], t1=0.5, dt=2e-3)
    t = np.array(SWING.declare(mech).coords["t"].values)
    assert len(t) == 11
    np.testing.assert_allclose(found["angle"], np.interp(t, run.t, run.q[:, 0]), rtol=0, atol=1e-12)
    assert found["last"] == found["angle"][-1] == pytest.approx(float(run.q[-1, 0]))
    assert found["fastest"] == pytest.approx(float(np.abs(run.v).max()))
    # A pendulum from the level: angle φ below it gives φ̇² = 2 g sin φ / l, pull = 3 m g sin φ
    # along the arm and m g cos φ − m l φ̈ = 0 across it.
    angle = float(run.q[-1, 0])
    assert found["pull"] == pytest.approx(3 * 9.81 * np.sin(angle), rel=1e-6)
    for name, level in (("half", 0.5), ("rise", 0.5 * angle)):
        # φ = x² makes the time, the integral of dφ/φ̇, one of a smooth function.
        rate = lambda x: 2.0 / np.sqrt(2 * 9.81 * np.sinc(x * x / np.pi))  # noqa: E731
        expected = quad(rate, 0.0, np.sqrt(level), epsabs=1e-13)[0]
        assert found[name] == pytest.approx(expected, abs=1e-9), name
    assert found["total"] < 1e-9
    course = SWING.trajectory(mech)
    np.testing.assert_allclose(course.q, run.q, rtol=0, atol=1e-12)
    assert course.curves["angle"].shape == (251,) and course.status == 0


@pytest.mark.slow
def test_a_motion_starts_from_equilibrium_or_with_a_speed():
    mech = mbd.zoo.simple_pendulum()
    rate = {"rate": CoordinateRate("hinge").peak()}
    assert Motion(0.05, 1e-3, rate, start=Settle())(mech)["rate"] < 1e-9
    pushed = Motion(0.05, 1e-3, rate, start=Settle(), speeds={"hinge": 0.1})(mech)["rate"]
    assert pushed == pytest.approx(0.1, rel=1e-6)


def test_together_the_first_failure_counts():
    mech = mbd.zoo.four_bar(ground=2.0)
    fails = Configuration({}, {"a": Coordinate("A")})
    with pytest.raises(ValueError, match="two experiments have an output 'a'"):
        Together([fails, fails]).check(mech)
    both = Together({"one": fails, "two": Configuration({}, {"b": Energy("potential")})})
    found = both(mech)
    assert found["status"] == 1 and np.isnan(found["two/b"])
    flags = both.declare(mech).outputs["open_joint"].flags
    assert flags[int(found["open_joint"])] == "one: C" and len(flags) == 2
    assert set(found) == set(both.declare(mech).outputs)
    whole = Together([SWEEP, Configuration({"crank": 0.3}, {"angle": ROCKER})])
    assert whole(mbd.zoo.rssr())["angle"] == pytest.approx(float(theta(0.3)))


def test_mistakes_are_named_all_at_once():
    wrong = Sweep(
        {"crank": (0.0, 0.1)},
        {
            "x": Coordinate("rokcer"),
            "y": Position("coupler", "C", "q"),
            "z": Element("spring"),
            "w": Coordinate("rocker").reduced("maximum"),
            "status": ROCKER,
        },
    )
    with pytest.raises(ValueError) as error:
        wrong.check(mbd.zoo.rssr())
    for text in ("did you mean 'rocker'", "no point 'C'", "axis='q'", "no force element 'spring'"):
        assert text in str(error.value)
    for text in ("no reduction 'maximum'", "output 'status' of its own"):
        assert text in str(error.value)
    assert "B" in Sweep({"B": (0.0, 0.1)}, {"x": ROCKER}).problems(mbd.zoo.rssr())[0]
    with pytest.raises(ValueError, match="part='norm'; give 'force' or 'moment'"):
        Sweep({"crank": (0.0, 0.1)}, {"x": Reaction("B", "norm")}).trajectory(mbd.zoo.rssr())
    names = Element("spring", "tension").problems(mbd.zoo.multi_link())[0]
    assert "'force'" in names and "'extension'" in names


@pytest.mark.parametrize(
    ("turns", "what", "says"),
    [
        ((0.0, 0.5, 1.0), ROCKER.at(1.2), "at crank = 1.2, but it runs from 0 to 1"),
        ((1.0, 0.5, 0.0), ROCKER.slope(-0.1), "slope crank = -0.1"),
        ((0.0, 1.0, 0.5), ROCKER.at(0.7), "rising or falling order"),
        ((0.5,), ROCKER.mean(), "two or more values"),
    ],
)
def test_places_that_an_axis_does_not_reach_are_refused(turns, what, says):
    [problem] = Sweep({"crank": turns}, {"y": what}).problems(mbd.zoo.rssr())
    assert problem.startswith("'y': ") and says in problem
    assert not Sweep({"crank": (0.0, 0.5, 1.0)}, {"y": ROCKER.at(1.0)}).problems(mbd.zoo.rssr())


def test_arithmetic_and_angles():
    mech = mbd.zoo.rssr()
    twice = 2.0 * ROCKER - ROCKER / 2.0 + 1.0
    found = Configuration({"crank": 0.4}, {"x": ROCKER, "y": twice, "z": abs(-ROCKER)})(mech)
    assert found["y"] == pytest.approx(1.5 * float(found["x"]) + 1.0)
    assert found["z"] == pytest.approx(abs(float(found["x"])))
    mixed = ROCKER + Position("coupler", "B", "x")
    assert "units" in mixed.problems(mech)[0]
    # Turned by q about z, an axis drawn along y leans by q: what is in front comes inward.
    turn = {
        "toe": observe.Toe("bob"),
        "between": observe.AngleBetween("ground", (0, 1, 0), "bob", (0, 1, 0)),
    }
    arm = mbd.Mechanism(
        {"bob": mbd.Body(1.0, (1, 0, 0), np.eye(3))},
        {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), (0, 0, 1))},
    )
    left = Configuration({"hinge": -0.1}, turn)(arm)
    assert left["toe"] == pytest.approx(0.1) and left["between"] == pytest.approx(0.1)
    right = Configuration({"hinge": 0.1}, {"toe": observe.Toe("bob", "right")})(arm)
    assert right["toe"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("how", "arguments", "expected"),
    [
        ("max", (), 4.0),
        ("min", (), 0.0),
        ("span", (), 4.0),
        ("peak", (), 4.0),
        ("mean", (), 4.0 / 3.0),
        ("rms", (), np.sqrt(16.0 / 5.0)),
        ("at", (1.0,), 1.0),
        ("slope", (1.0,), 2.0),
        ("slope", (0.0,), 0.0),
        ("crossing", (1.0,), 1.0),
        ("crossing", (9.0,), np.nan),
        ("rise", (0.25,), 1.0),
    ],
)
def test_reductions_of_a_parabola(how, arguments, expected):
    x = jnp.linspace(0.0, 2.0, 2001)
    kind = observe.REDUCTIONS[how]
    found = kind.function(x, x * x, *arguments)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    if how == "crossing":
        np.testing.assert_allclose(kind.function(x, -x * x, -1.0), 1.0, rtol=0, atol=1e-6)


def test_experiments_are_values():
    again = pickle.loads(pickle.dumps(SWEEP))
    assert again == SWEEP and hash(again) == hash(SWEEP)
    assert again.describe() == SWEEP.describe()
    other = Sweep({"crank": TURN}, {"rocker": -ROCKER})
    assert other != SWEEP and other.describe() != SWEEP.describe()


@pytest.mark.parametrize(
    ("known", "settle", "warned"),
    [({}, False, 1), ({"rack": 0.0}, False, 0), ({}, True, 0)],
)
def test_a_rack_that_nobody_holds_is_warned_of(known, settle, warned):
    """Not the spin of a coupler between two balls, nor what comes to rest by itself."""
    height = mbd.PointTravel("upright", "axle_outboard", "z")
    toe = {"toe": observe.Toe("upright")}
    sweep = Sweep({height: (0.0, 0.01)}, toe, known=known, settle=settle)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sweep(mbd.zoo.double_wishbone_kinematic())
        Sweep({"crank": (0.0, 0.1)}, {"rocker": ROCKER})(mbd.zoo.rssr())
    told = [str(w.message) for w in caught if "not held" in str(w.message)]
    assert len(told) == warned and all("hold 'rack' by known=" in text for text in told)


@pytest.mark.parametrize(
    ("mech", "held", "found"),
    [
        (mbd.zoo.agile_wrist, {"base1": 0.0}, (2, ["base2", "base3"])),
        (mbd.zoo.agile_wrist, {"base1": 0.0, "base2": 0.0, "base3": 0.0}, (0, [])),
        (mbd.zoo.slider_crank, {"O": 0.0}, (0, [])),
        (mbd.zoo.slider_crank, {"T": 0.0}, (0, [])),  # drawn at a dead centre
    ],
)
def test_freedoms_that_nobody_holds_among_redundant_rows(mech, held, found):
    built = mech()
    keys = Configuration(held, {"x": Coordinate(next(iter(held)))}).keys(built)
    assert mbd.mobility(built).redundant and unheld_joints(built, keys) == found


def test_of_a_body_that_is_free_but_for_rods_a_point_is_to_be_held():
    """Its joint takes seven numbers, which nobody knows."""
    with pytest.warns(UserWarning, match="hold 'rack', a PointCoordinate of 'upright' by known="):
        warn_of_unheld(mbd.zoo.five_link_kinematic(), ())


def test_what_stays_open_is_said_of_a_sample_that_failed():
    bar = mbd.zoo.four_bar(ground=2.0)  # its links are 0.3 m short
    whole = Configuration()
    found, outputs = whole(bar), whole.declare(bar).outputs
    assert observe.status_text(found["status"]) == "not assembled"
    assert observe.stays_open(outputs, found) == "joint 'C' stays open by 0.3 m or rad"
    assert observe.stays_open(outputs, whole(mbd.zoo.four_bar())) == ""
    assert observe.stays_open({}, {}) == "" and observe.status_text(99) == "with status 99"
