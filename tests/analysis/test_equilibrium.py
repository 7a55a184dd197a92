"""Static equilibrium: against closed forms, damped simulation, differences, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import jaxmbd as mbd

pytestmark = pytest.mark.filterwarnings("ignore:.*triangle inequality:UserWarning")

SPINDLE = ("spindle", "wheel_centre")


def hanging(stiffness=981.0, mass=2.0, law=None):
    """A mass on a vertical guide and a spring."""
    return mbd.Mechanism(
        bodies={"mass": mbd.Body(mass=mass)},
        joints={"guide": mbd.Prismatic("ground", "mass", at=(0, 0, 0), axis=(0, 0, 1))},
        forces={"spring": mbd.TorsionSpring("guide", stiffness=stiffness, law=law)},
    )


def spring_four_bar(cut=None, stiffness=4.0):
    """A four-bar on two torsion springs, and the same numbers whichever joint is cut."""
    m = mbd.zoo.four_bar()
    crank, rocker = (m.structure.joints[k].name for k in (0, -1))
    return m.replace(
        forces={
            "a": mbd.TorsionSpring(crank, stiffness=stiffness, free_angle=0.2),
            "b": mbd.TorsionSpring(rocker, stiffness=3.0, free_angle=-0.1),
        },
        gravity=(0.0, -9.81, 0.0),
        **({} if cut is None else {"cut": (cut,)}),
    )


@pytest.mark.parametrize("start", [0.0, 2.5, -1.5, -np.pi / 2], ids=str)
def test_a_pendulum_hangs_down_from_anywhere(start):
    """The last start is the unstable balance, upright: it is left."""
    found = mbd.equilibrium(mbd.zoo.simple_pendulum(), guess=[start])
    assert found.status == mbd.Status.OK
    turn = (found.q[0] - np.pi / 2) / (2 * np.pi)
    np.testing.assert_allclose(turn, np.round(turn), rtol=0, atol=1e-12)


def test_a_double_pendulum_hangs_down_from_upright():
    m = mbd.zoo.double_pendulum()
    q = mbd.equilibrium(m, guess=[np.pi, 0.0]).q
    np.testing.assert_allclose(mbd.potential_energy(m, q), -9.81 * 3.0, rtol=1e-13)


def test_a_spring_carries_its_weight():
    found = mbd.equilibrium(hanging())
    np.testing.assert_allclose(found.q, [-2.0 * 9.81 / 981.0], rtol=1e-14)
    assert found.residual < 1e-14


def test_a_progressive_spring_carries_its_weight():
    """``c x³ = −m g`` without any stiffness where the search begins."""
    m = hanging(stiffness=0.0, law=lambda x, rate: 1e4 * x**3)
    np.testing.assert_allclose(
        mbd.equilibrium(m).q[0], -((2.0 * 9.81 / 1e4) ** (1 / 3)), rtol=1e-10
    )


def test_it_falls_onto_its_tyre():
    """Nothing pulls back until the tyre, half a metre below, is met."""
    m = mbd.Mechanism(
        bodies={"hub": mbd.Body(mass=30.0, com=(0, 0, 1))},
        joints={"guide": mbd.Prismatic("ground", "hub", at=(0, 0, 0), axis=(0, 0, 1))},
        forces={"tyre": mbd.Tyre("hub", at=(0, 0, 1), stiffness=2e5, radius=0.5)},
    )
    np.testing.assert_allclose(mbd.equilibrium(m).q, [-0.5 - 30.0 * 9.81 / 2e5], rtol=1e-12)


def test_inputs_and_time_act():
    m = hanging()
    still = mbd.equilibrium(m, inputs={"guide": 2.0 * 9.81}).q
    np.testing.assert_allclose(still, [0.0], rtol=0, atol=1e-15)
    lifted = mbd.equilibrium(m, t=2.0, inputs=lambda t: {"guide": 9.81 * t}).q
    np.testing.assert_allclose(lifted, still, rtol=0, atol=1e-15)


@pytest.mark.slow
def test_the_cut_does_not_matter():
    drawn = spring_four_bar()
    q = mbd.equilibrium(drawn).q
    vdot, lam = mbd.forward_dynamics(drawn, q, jnp.zeros(3))
    np.testing.assert_allclose(vdot, 0.0, atol=1e-11)
    np.testing.assert_allclose(mbd.equilibrium(drawn).lam, lam, rtol=1e-9, atol=1e-11)
    angles = mbd.joint_coordinates(drawn, q)
    joints = [e.name for e in drawn.structure.joints]
    other = spring_four_bar(cut=joints[1])
    assert mbd.topology(other).cut != mbd.topology(drawn).cut
    for name, x in mbd.joint_coordinates(other, mbd.equilibrium(other).q).items():
        np.testing.assert_allclose(x, angles[name], atol=1e-11)


def damped_linkage():
    """A planar loop that springs and dampers bring to rest."""
    spring = mbd.TorsionSpring("ground_0", stiffness=90.0, damping=16.0, free_angle=0.3)
    return mbd.zoo.n_four_bar(1, planar=True).replace(forces={"spring": spring})


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((damped_linkage, ("coupler_1", "B_1")), id="linkage"),
        pytest.param((mbd.zoo.double_wishbone, SPINDLE), id="corner", marks=pytest.mark.slow),
    ],
)
def rest(request):
    """A mechanism, a point of it, and its equilibrium."""
    m = request.param[0]()
    return m, request.param[1], mbd.equilibrium(m)


def test_it_rests_where_its_damped_motion_ends(rest):
    m, point, found = rest
    start = mbd.assemble(m).q
    run = mbd.simulate(m, start, t1=6.0, dt=1e-3, save_every=1000)
    rests, ends, starts = (mbd.point_position(m, q, *point) for q in (found.q, run.q[-1], start))
    np.testing.assert_allclose(rests, ends, rtol=0, atol=1e-10)
    assert np.linalg.norm(rests - starts) > 0.01
    if point == SPINDLE:
        np.testing.assert_allclose(found.q[5], start[5], atol=1e-14)  # the wheel's spin is idle


def test_multipliers_are_those_of_rest(rest):
    m, _, found = rest
    vdot, lam = mbd.forward_dynamics(m, found.q, jnp.zeros(mbd.topology(m).nv))
    np.testing.assert_allclose(vdot, 0.0, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.lam, lam, rtol=1e-10, atol=1e-7)


def test_what_is_held_takes_the_force_left_over():
    """The effort that holds a coordinate is the slope of the energy over it."""
    m = mbd.zoo.double_pendulum()
    tip = mbd.PointCoordinate("bob_2", (0.0, -2.0, 0.0), "x")

    def energy(key, x):
        held = mbd.equilibrium(m, known={key: x})
        return mbd.potential_energy(m, held.q), held.held[0]

    slope, effort = jax.grad(lambda x: energy(tip, x), has_aux=True)(0.7)
    np.testing.assert_allclose(effort, slope, rtol=1e-10)
    torque = energy("hinge_1", 0.4)[1]
    np.testing.assert_allclose(torque, 9.81 * 2.0 * np.sin(0.4), rtol=1e-12)


def resting(x):
    """Angles and a multiplier of a four-bar on springs, for its stiffness and a load."""
    m = spring_four_bar(stiffness=x[0])
    found = mbd.equilibrium(m, inputs={m.structure.joints[0].name: x[1]})
    return jnp.concatenate([found.q, found.lam[:2]]), found.status


@pytest.mark.slow
def test_derivatives_are_those_of_differences():
    """Moment rows of a planar loop are redundant: the force rows' multipliers are determinate."""
    x, h = jnp.array([4.0, 0.3]), 1e-5
    slope = jax.jacrev(resting, has_aux=True)(x)[0]
    steps = [(resting(x + h * e)[0] - resting(x - h * e)[0]) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(slope, np.stack(steps, axis=1), rtol=0, atol=1e-8)


@pytest.mark.slow
def test_derivatives_of_a_corner_by_its_hardpoints():
    base = mbd.zoo.double_wishbone().points["tierod_inboard"]

    def toe(x):
        m = mbd.zoo.double_wishbone(
            points={"tierod_inboard": base + x[:3]}, wheel_load=8e3 * (1 + x[3])
        )
        found = mbd.equilibrium(m)
        return mbd.zoo.toe_angle(mbd.poses(m, found.q)["upright"].rotation[:, 1])

    h = 1e-5
    steps = [(toe(h * e) - toe(-h * e)) / (2 * h) for e in np.eye(4)]
    slope = jax.grad(toe)(jnp.zeros(4))
    np.testing.assert_allclose(slope, steps, atol=1e-8)
    np.testing.assert_allclose(jax.jacfwd(toe)(jnp.zeros(4)), slope, atol=1e-11)


def test_a_bad_sample_spoils_no_other():
    """A batch equals its samples one by one; a NaN among them has a status and no gradient."""

    def total(x, shift):
        values, status = jax.vmap(resting)(x + shift)
        return jnp.sum(jnp.where(status[:, None] == 0, values, 0.0)), (values, status)

    x = jnp.array([[4.0, 0.3], [6.0, -0.5], [jnp.nan, 0.0]])
    slope = jax.jit(jax.grad(total, argnums=1, has_aux=True))
    got, (values, status) = slope(x, 0.0)
    assert status[:2].tolist() == [0, 0] and status[2] != mbd.Status.OK
    for k in range(2):
        np.testing.assert_allclose(values[k], resting(x[k])[0], rtol=0, atol=1e-12)
    assert np.isnan(values[2]).all()
    np.testing.assert_allclose(
        got, slope(x.at[2].set(x[1]), 0.0)[0] - slope(x.at[:].set(x[1]), 0.0)[0] / 3.0, rtol=1e-9
    )


def test_what_nothing_loads_stays():
    m = mbd.Mechanism(
        bodies={"rotor": mbd.Body(1.0, inertia=(1, 1, 1))},
        joints={"shaft": mbd.Revolute("ground", "rotor", at=(0, 0, 0), axis=(0, 0, 1))},
    )
    assert mbd.equilibrium(m, guess=[0.3]).q.tolist() == [0.3]
    with pytest.raises(ValueError, match=r"1 N·m along 'shaft'; nothing holds that motion"):
        mbd.equilibrium(m, inputs={"shaft": 1.0})


def test_failures_say_what_is_not_in_balance():
    falling = hanging(stiffness=0.0)
    with pytest.raises(ValueError, match=r"singular.*-19.6 N along 'guide'"):
        mbd.equilibrium(falling)
    missed = mbd.equilibrium(falling, throw=False)
    assert missed.status == mbd.Status.SINGULAR and np.isnan(missed.q).all()
    with pytest.raises(ValueError, match="known names the joint 'nothing'"):
        mbd.equilibrium(falling, known={"nothing": 0.0})
    with pytest.raises(ValueError, match="inputs name 'nothing', which is no joint"):
        mbd.equilibrium(falling, inputs={"nothing": 0.0})
    with pytest.raises(ValueError, match=r"guess has shape \(2,\)"):
        mbd.equilibrium(falling, guess=[0.0, 0.0])
    with pytest.raises(ValueError, match="does not assemble"):
        far = {mbd.PointCoordinate("coupler_1", "B_1", "x"): 9.0}
        mbd.equilibrium(mbd.zoo.n_four_bar(1, planar=True), known=far)
    endless = hanging(law=lambda x, rate: jnp.log(x - 1.0))
    with pytest.raises(ValueError, match="not finite"):
        mbd.equilibrium(endless)


@pytest.mark.slow
@pytest.mark.parametrize("stiffness", [1e8, 1e12])
def test_what_is_very_stiff_comes_to_rest(stiffness):
    """Rounding of the coordinates alone then makes more force than the balance leaves elsewhere."""
    mass, com, axis = 2.0, np.array([0.6, 0.1, -0.3]), np.array([0.1, 1.0, 0.2])
    ends = np.array([0.9, 0.0, 1.1]), np.array([0.8, 0.0, 0.1])

    def at_rest(stiffness):
        mech = mbd.Mechanism(
            bodies={"bob": mbd.Body(mass, com, (0.1, 0.2, 0.3))},
            joints={"hinge": mbd.Revolute("ground", "bob", at=(0, 0, 0), axis=axis)},
            forces={"spring": mbd.SpringDamper("ground", "bob", *ends, stiffness=stiffness)},
        )
        return mbd.equilibrium(mech, throw=False)

    found = at_rest(stiffness)
    axis = axis / np.linalg.norm(axis)
    along = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    weight = axis @ np.cross(com, [0.0, 0.0, -9.81 * mass])
    lever = axis @ np.cross(ends[1], along)
    expected = weight / (stiffness * lever**2)
    assert int(found.status) == 0
    np.testing.assert_allclose(found.q[0], expected, rtol=2e3 / stiffness, atol=1e-15)
    slope = jax.jit(jax.grad(lambda k: at_rest(k).q[0]))(stiffness)
    np.testing.assert_allclose(slope, -expected / stiffness, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [1e5, 5.6e5, 1e6])
def test_soft_motions_come_to_rest_beside_stiff_ones(rate):
    """As the arm tilts on its rubber the stiff forces grow at first, in single precision too."""

    def at_rest(dtype):
        mech = mbd.Mechanism(
            bodies={"arm": mbd.Body(2.0, (0.3, 0.1, 0.0), (0.01, 0.01, 0.01))},
            joints={"free": mbd.Free("ground", "arm")},
            forces={"rubber": mbd.Bushing("ground", "arm", (0, 0, 0), [140.0] * 3 + [rate] * 3)},
        )
        return mbd.equilibrium(jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), mech))

    single, double = at_rest(jnp.float32), at_rest(jnp.float64)
    assert single.status == mbd.Status.OK
    # Places of the size of the arm 0.32 m are rounded: so much of the stiff forces tilts it.
    rounding = np.finfo(np.float32).eps * 0.32 * rate * 0.32 / 140.0
    np.testing.assert_allclose(single.q[1:4], double.q[1:4], rtol=0, atol=rounding)


@pytest.mark.parametrize("start", [0.0, 0.5, -0.3])
def test_no_change_point_is_taken_for_an_equilibrium(start):
    """Three parallel arms are drawn on one line, where they could turn apart but for second order.

    Near it, 1e-6 rad off the line, forces of 1e7 N in pins that are open by 1e-12 m balance loads
    of 20 N.
    """
    feet = {"first": 0.0, "second": 0.7, "third": 1.5}
    bodies = {n: mbd.Body(2.0, (x + 0.5, 0.0), 0.1) for n, x in feet.items()}
    bodies["platform"] = mbd.Body(1.5, (1.7, 0.0), 0.1)
    joints = {n + "_foot": mbd.Revolute("ground", n, (x, 0.0)) for n, x in feet.items()}
    joints |= {n + "_top": mbd.Revolute(n, "platform", (x + 1.0, 0.0)) for n, x in feet.items()}
    spring = mbd.TorsionSpring("first_foot", 60.0)
    mech = mbd.Mechanism(bodies, joints, {"spring": spring}, gravity=(0.0, -9.81))
    top = mbd.topology(mech)
    guess = start * np.where([n.endswith("foot") for n in top.speed_names], 1.0, -1.0)
    found = mbd.equilibrium(mech, guess=guess, throw=False)
    if start < 0.0:
        assert found.status == 0
    if found.status:
        assert found.status in (mbd.Status.SINGULAR, mbd.Status.DIVERGED)
        return
    # Half the weight of three arms and that of the platform turn the first arm by 1 m.
    weight = 9.81 * (3 * 2.0 / 2 + 1.5)
    angle = brentq(lambda x: 60.0 * x + weight * np.cos(x), -1.5, 0.0)
    for name in feet:
        np.testing.assert_allclose(found.q[top.layout[name + "_foot"].q], angle, rtol=1e-9)
