"""Joint friction under the joint's own reaction: closed forms, oracles, dissipation, transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.formulations import absolute_forward_dynamics

G = 9.81
SLOPE = 0.5
DOWN = np.array([np.cos(SLOPE), 0.0, -np.sin(SLOPE)])
FAST = 1e-3  # velocity scale: full friction at the speeds below


def block(height=0.0, **friction):
    """A block on an incline, with its centre of mass `height` over the guide."""
    normal = np.array([np.sin(SLOPE), 0.0, np.cos(SLOPE)])
    return mbd.Mechanism(
        {"block": mbd.Body(2.0, height * normal, (0.1, 0.2, 0.3))},
        {"guide": mbd.Prismatic("ground", "block", (0, 0, 0), DOWN)},
        {"rub": mbd.JointFriction("guide", **friction)},
    )


def accelerate(mech, q, v):
    return mbd.forward_dynamics(mech, jnp.array([q]), jnp.array([v]))[0][0]


@pytest.mark.parametrize("speed", [1.0, -0.7, 0.5 * FAST, 0.0])
def test_block_on_an_incline(speed):
    mech = block(coefficient=0.2, drag=1.5, viscous=0.4, velocity_scale=FAST)
    sign = np.tanh(speed / FAST)
    expected = G * np.sin(SLOPE) - sign * (0.2 * G * np.cos(SLOPE) + 0.75) - 0.2 * speed
    np.testing.assert_allclose(accelerate(mech, 0.0, speed), expected, rtol=1e-13)


@pytest.mark.parametrize("length", [0.3, 0.05])
def test_bearings_carry_the_moment_of_an_offset_block(length):
    """Weight W cos at the centre; the moment about the guide is height times the friction force.

    Two bearings: one is lifted where ``2 μ height > length``, and both then carry more than W cos.
    """
    height, mu = 0.4, 0.1
    mech = block(height, coefficient=mu, length=length, velocity_scale=FAST)
    if 2 * mu * height > length:
        with pytest.raises(ValueError, match="'guide'.*jams.*larger length"):
            accelerate(mech, 0.0, 1.0)
        return
    normal = 2.0 * G * np.cos(SLOPE)
    expected = G * np.sin(SLOPE) - mu * normal / 2.0
    np.testing.assert_allclose(accelerate(mech, 0.0, 1.0), expected, rtol=1e-12)
    tilt = mech.replace(forces={"hand": mbd.Torque("ground", "block", (0, 3.0, 0))})

    def gap(n):  # the moment on the block about the guide point, and the two bearings' sum
        moment = 3.0 + height * mu * n
        each = normal / 2.0, moment / length
        return abs(each[0] + each[1]) + abs(each[0] - each[1]) - n

    n = brentq(gap, 0.0, 1e4, xtol=1e-12)
    assert n > 1.05 * normal
    expected = G * np.sin(SLOPE) - mu * n / 2.0
    np.testing.assert_allclose(accelerate(tilt, 0.0, 1.0), expected, rtol=1e-11)


def test_a_jammed_sample_is_nan_and_spoils_no_other():
    def run(mu):
        return accelerate(block(0.4, coefficient=mu, length=0.1, velocity_scale=FAST), 0.0, 1.0)

    found = jax.jit(jax.vmap(run))(jnp.array([0.05, 0.5, 0.1]))
    normal = G * np.cos(SLOPE)
    expected = [G * np.sin(SLOPE) - mu * normal for mu in (0.05, 0.1)]
    np.testing.assert_allclose(found[jnp.array([0, 2])], expected, rtol=1e-12)
    assert np.isnan(found[1])
    jammed = block(0.4, coefficient=0.5, length=0.1, velocity_scale=FAST)
    end = mbd.simulate(jammed, [0.0], [1.0], t1=0.01, dt=1e-3, throw=False)
    assert end.status == mbd.Status.DIVERGED and np.isnan(end.q[-1, 0])


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0])
def test_pendulum_in_a_journal_bearing(mu):
    """``I α = −m g L cos θ − μ r |F|``, F = m (a − g) from the same α: one scalar equation."""
    mass, length, inertia, radius, rate = 1.5, 0.4, 0.05, 0.2, 3.0
    mech = mbd.Mechanism(
        {"bob": mbd.Body(mass, (length, 0, 0), (inertia,) * 3)},
        {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), (0, -1, 0))},
        {"rub": mbd.JointFriction("hinge", mu, radius, velocity_scale=FAST)},
    )
    angle = 0.8

    def reaction(alpha):
        out = np.array([np.cos(angle), np.sin(angle)])
        across = np.array([-np.sin(angle), np.cos(angle)])
        a = length * (alpha * across - rate**2 * out)
        return mass * np.hypot(a[0], a[1] + G)

    def gap(alpha):
        torque = -mass * G * length * np.cos(angle) - mu * radius * reaction(alpha)
        return (inertia + mass * length**2) * alpha - torque

    expected = brentq(gap, -1e3, 1e3, xtol=1e-13)
    q, v = jnp.array([angle]), jnp.array([rate])
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    np.testing.assert_allclose(vdot[0], expected, rtol=1e-11)
    effort = mbd.friction_efforts(mech, q, v, vdot, lam)["hinge"][0]
    np.testing.assert_allclose(effort, -mu * radius * reaction(expected), rtol=1e-11)


CRANK, ROD = 0.2, 0.5
MASSES, INERTIAS = (1.2, 0.8, 1.5), (0.02, 0.03, 0.01)


def slider_crank(mu):
    """Crank and rod along x as drawn, the slider on the x axis; gravity along −y; planar."""
    ends = (CRANK, 0), (CRANK + ROD, 0)
    coms = (CRANK / 2, 0), (CRANK + ROD / 2, 0), ends[1]
    return mbd.Mechanism(
        {
            n: mbd.Body(m, com, i)
            for n, m, com, i in zip(("crank", "rod", "slider"), MASSES, coms, INERTIAS, strict=True)
        },
        {
            "O": mbd.Revolute("ground", "crank", (0, 0)),
            "A": mbd.Revolute("crank", "rod", ends[0]),
            "B": mbd.Revolute("rod", "slider", ends[1]),
            "guide": mbd.Prismatic("ground", "slider", ends[1], (1, 0)),
        },
        {
            "guide_rub": mbd.JointFriction("guide", mu, velocity_scale=FAST),
            "pin_rub": mbd.JointFriction("A", mu, radius=0.03, velocity_scale=FAST),
        },
        gravity=(0, -G),
    )


def moving(mech, theta=0.9, rate=4.0):
    q = mbd.assemble(mech, known={"O": theta}).q
    return q, mbd.assemble_velocity(mech, q, known={"O": rate})


def slider_crank_by_hand(mu, theta, rate):
    """θ̈ from Newton's and Euler's equations of three planar bodies, friction by iteration."""
    phi = np.arcsin(-CRANK * np.sin(theta) / ROD)
    phi_rate = -CRANK * np.cos(theta) * rate / (ROD * np.cos(phi))
    e, n = np.array([np.cos(theta), np.sin(theta)]), np.array([-np.sin(theta), np.cos(theta)])
    f, k = np.array([np.cos(phi), np.sin(phi)]), np.array([-np.sin(phi), np.cos(phi)])
    # φ̈ = a θ̈ + b from the second derivative of r sin θ + l sin φ = 0
    a = -CRANK * np.cos(theta) / (ROD * np.cos(phi))
    b = (CRANK * np.sin(theta) * rate**2 + ROD * np.sin(phi) * phi_rate**2) / (ROD * np.cos(phi))
    pin = CRANK * n, -CRANK * rate**2 * e  # acceleration as (per θ̈, rest)
    mid = pin[0] + ROD / 2 * a * k, pin[1] + ROD / 2 * (b * k - phi_rate**2 * f)
    end = pin[0] + ROD * a * k, pin[1] + ROD * (b * k - phi_rate**2 * f)
    v_end = (CRANK * n * rate + ROD * k * phi_rate)[0]
    m, i, g = MASSES, INERTIAS, np.array([0, -G])

    def cross(x, y):
        return x[0] * y[1] - x[1] * y[0]

    def solve(push, torque):
        """Unknowns θ̈, A on the rod (2), B on the slider (2), N; friction given."""
        rows = np.zeros((6, 6))
        right = np.zeros(6)
        rows[0, 0] = i[0] + m[0] * CRANK**2 / 4
        rows[0, 1:3] = cross(CRANK * e, (1, 0)), cross(CRANK * e, (0, 1))
        right[0] = cross(CRANK / 2 * e, m[0] * g) - torque
        rows[1:3, 0], right[1:3] = m[1] * mid[0], m[1] * (g - mid[1])
        rows[1:3, 1:3], rows[1:3, 3:5] = -np.eye(2), np.eye(2)
        rows[3, 0], right[3] = i[1] * a, torque - i[1] * b
        arm = ROD / 2 * f
        rows[3, 1:3] = cross(arm, (1, 0)), cross(arm, (0, 1))
        rows[3, 3:5] = rows[3, 1:3]
        rows[4:, 0], right[4:] = m[2] * end[0], m[2] * (g - end[1]) + np.array([push, 0])
        rows[4:, 3:5], rows[5, 5] = -np.eye(2), -1.0
        return np.linalg.solve(rows, right)

    push = torque = 0.0
    for _ in range(400):
        x = solve(push, torque)
        push = -mu * abs(x[5]) * np.tanh(v_end / FAST)
        torque = -mu * 0.03 * np.hypot(x[1], x[2]) * np.tanh((phi_rate - rate) / FAST)
    return x[0], push, torque


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.4])
def test_slider_crank_by_hand(mu):
    mech = slider_crank(mu)
    q, v = moving(mech)
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    expected, push, torque = slider_crank_by_hand(mu, 0.9, 4.0)
    at = mbd.topology(mech).layout["O"].v
    np.testing.assert_allclose(vdot[at], expected, rtol=1e-9)
    efforts = mbd.friction_efforts(mech, q, v, vdot, lam)
    found = [efforts["guide"][0], efforts["A"][0]]
    np.testing.assert_allclose(found, [push, torque], rtol=1e-9, atol=1e-12)
    # its inverse: no effort but the friction is needed
    tau, same = mbd.inverse_dynamics(mech, q, v, vdot)
    size = np.abs(lam).max()
    np.testing.assert_allclose(tau, 0.0, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(same, lam, rtol=0, atol=1e-9 * size)


def test_inverse_dynamics_overcomes_the_friction():
    """The torque of inverse dynamics as an input gives the motion back."""
    mech = slider_crank(0.3)
    q, v = moving(mech)
    asked = mbd.assemble_acceleration(mech, q, v, known={"O": 5.0})
    tau, lam = mbd.inverse_dynamics(mech, q, v, asked, actuated=["O"])
    torque = tau[mbd.topology(mech).layout["O"].v]
    vdot, same = mbd.forward_dynamics(mech, q, v, inputs={"O": torque})
    np.testing.assert_allclose(vdot, asked, rtol=0, atol=1e-8)
    np.testing.assert_allclose(same, lam, rtol=0, atol=1e-9 * np.abs(lam).max())
    without, _ = mbd.inverse_dynamics(slider_crank(0.0), q, v, asked, actuated=["O"])
    assert abs(torque[0] - without.sum()) > 0.1


LAWS = {
    "crank": mbd.JointFriction("crank", 0.2, 0.01, 0.04, 0.02, 0.01, 1e-3, 0.3),
    "A": mbd.JointFriction("A", 0.3, 0.012, velocity_scale=0.3),
    "B": mbd.JointFriction("B", 0.3, 0.008, drag=1e-3, velocity_scale=0.3),
    "rocker": mbd.JointFriction("rocker", 0.2, 0.015, 0.05, velocity_scale=0.3),
}
RSSR = mbd.zoo.rssr(gravity=(0, 0, -G))


@pytest.fixture(scope="module")
def linkage():
    """The RSSR with friction in all joints, one of them cut, and a state in motion."""
    mech = RSSR.replace(forces=LAWS)
    q = mbd.assemble(mech, known={"crank": 0.4}).q
    v = mbd.assemble_velocity(mech, q, known_v={"crank": 9.0})
    return mech, q, v


def bearing_torque(law, mech, q, v, wrench):
    """The friction's size by the element's description, in numpy; the speed it opposes."""
    wrench, joint = np.asarray(wrench), mech.joints[law.joint]
    m, f = wrench[:3], wrench[3:]
    speed = np.asarray(mbd.kinematics.motion.motion_state(mech, q, v).joint(law.joint)[1])
    if isinstance(joint, mbd.Spherical):
        size = law.coefficient * law.radius * np.linalg.norm(f)
    else:
        u = np.asarray(joint.axis) / np.linalg.norm(joint.axis)  # both hinges are on the ground
        across, couple = f - (f @ u) * u, np.cross(u, m) / law.length
        load = sum(np.linalg.norm(across / 2 + s * couple) for s in (1, -1))
        size = law.coefficient * (law.radius * load + law.thrust_radius * abs(f @ u))
    norm = np.linalg.norm(speed)
    return -(size + law.drag) * np.tanh(norm / 0.3) * speed / norm - law.viscous * speed


def test_friction_agrees_with_the_reactions_of_another_formulation(linkage):
    mech, q, v = linkage
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    plain, _ = mbd.forward_dynamics(RSSR, q, v)
    at = mbd.topology(mech).layout["crank"].v.start
    assert abs(vdot[at] - plain[at]) > 0.01 * abs(plain[at])
    efforts = mbd.friction_efforts(mech, q, v, vdot, lam)
    other, solution = jax.jit(absolute_forward_dynamics)(RSSR, q, v, 0.0, efforts)
    np.testing.assert_allclose(other[at], vdot[at], rtol=1e-9)
    power = 0.0
    for name, law in LAWS.items():
        wrench = solution.reactions[name]
        expected = bearing_torque(law, mech, q, v, wrench)
        size = np.abs(expected).max()
        np.testing.assert_allclose(efforts[name], expected, rtol=0, atol=1e-8 * size)
        speed = mbd.kinematics.motion.motion_state(mech, q, v).joint(name)[1]
        assert efforts[name] @ speed < 0.0
        power += efforts[name] @ speed
    reactions = mbd.joint_reactions(mech, q, v, vdot, lam)
    for name in LAWS:
        size = np.abs(solution.reactions[name]).max()
        np.testing.assert_allclose(
            reactions[name], solution.reactions[name], rtol=0, atol=1e-8 * size
        )

    tau, same = mbd.inverse_dynamics(mech, q, v, vdot)
    np.testing.assert_allclose(tau, 0.0, rtol=0, atol=1e-9 * np.abs(lam).max())
    np.testing.assert_allclose(same, lam, rtol=0, atol=1e-9 * np.abs(lam).max())

    def energy(time):  # along the motion
        rates = mbd.coordinate_rates(mech, q, v)
        q_new, v_new = q + time * rates, v + time * vdot
        return mbd.kinetic_energy(mech, q_new, v_new) + mbd.potential_energy(mech, q_new)

    rate = jax.jit(lambda: jax.jvp(energy, (0.0,), (1.0,))[1])()
    np.testing.assert_allclose(rate, power, rtol=1e-8)


def test_transforms_agree():
    mech = slider_crank(0.2)
    q, v = moving(mech)
    at = mbd.topology(mech).layout["O"].v.start

    def crank(mu):
        rub = mbd.JointFriction("guide", mu, velocity_scale=FAST)
        return mbd.forward_dynamics(mech.replace(forces={"guide_rub": rub}), q, v)[0][at]

    mus = jnp.array([0.0, 0.1, 0.5])
    alone = jnp.stack([crank(mu) for mu in mus])
    assert np.ptp(alone) > 0.1
    np.testing.assert_allclose(jax.vmap(crank)(mus), alone, rtol=1e-10)
    np.testing.assert_allclose(lanes.vmap(crank)(mus), alone, rtol=1e-10)
    slope = jax.grad(crank)(0.1)
    h = 1e-4
    np.testing.assert_allclose(slope, (crank(0.1 + h) - crank(0.1 - h)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(crank, (0.1,), (1.0,))[1], slope, rtol=1e-10)


def test_a_block_slides_to_rest_and_creeps_no_faster_than_the_scale():
    """Thrown along the level it stops after v0²/(2 μ g); on a slope within μ it then holds."""
    scale = 1e-2
    level = block(coefficient=0.3, velocity_scale=scale).replace(
        gravity=tuple(-G * np.array([np.sin(SLOPE), 0.0, np.cos(SLOPE)]))
    )
    run = mbd.simulate(level, [0.0], [1.0], t1=0.6, dt=1e-3)
    np.testing.assert_allclose(run.q[-1, 0], 1.0 / (2 * 0.3 * G), rtol=0, atol=1.5 * scale * 0.6)
    half = 0.15
    np.testing.assert_allclose(run.v[150, 0], 1.0 - 0.3 * G * half, rtol=1e-6)
    assert np.all(np.diff(run.v[:, 0]) <= 1e-12) and run.v[-1, 0] >= -1e-12
    steep = block(coefficient=0.8, velocity_scale=scale)
    run = mbd.simulate(steep, [0.0], [0.0], t1=0.3, dt=1e-3)
    expected = scale * np.arctanh(np.tan(SLOPE) / 0.8)
    np.testing.assert_allclose(run.v[-1, 0], expected, rtol=1e-6)


def test_friction_of_a_sliding_and_turning_strut_opposes_its_path():
    """A cylindrical joint: one force against (r θ̇, travel rate), so that turning frees it."""
    radius, mu, load = 0.02, 0.15, 50.0
    mech = mbd.Mechanism(
        {"rod": mbd.Body(1.0, (0, 0, 0), (1e-3,) * 3)},
        {"strut": mbd.Cylindrical("ground", "rod", (0, 0, 0), (0, 0, 1))},
        {
            "side": mbd.PointForce("rod", (0, 0, 0), (load, 0, 0)),
            "rub": mbd.JointFriction("strut", mu, radius, velocity_scale=FAST),
        },
        gravity=(0, 0, 0),
    )
    slide = np.array([radius * 40.0, 0.6])
    vdot, _ = mbd.forward_dynamics(mech, jnp.zeros(2), jnp.array([40.0, 0.6]))
    force = -mu * load * slide / np.linalg.norm(slide)
    np.testing.assert_allclose(vdot, [radius * force[0] / 1e-3, force[1]], rtol=1e-10)


def test_driven_motion_and_baumgarte_know_friction():
    mech = slider_crank(0.3)
    times = jnp.linspace(0.0, 0.4, 5)
    run = mbd.simulate_driven(mech, {"O": lambda t: 0.9 + 4.0 * t}, t=times)
    for k in (1, 4):
        q, v = run.q[k], run.v[k]
        theta = 0.9 + 4.0 * float(times[k])
        torque, _ = mbd.inverse_dynamics(mech, q, v, run.vdot[k], actuated=["O"])
        np.testing.assert_allclose(run.effort[k, 0], torque[mbd.topology(mech).layout["O"].v][0])
        free, *_ = slider_crank_by_hand(0.3, theta, 4.0)
        assert abs(free) > 1.0
        vdot, _ = mbd.forward_dynamics(mech, q, v, inputs={"O": run.effort[k]})
        np.testing.assert_allclose(vdot, run.vdot[k], rtol=0, atol=1e-7)
    point = mbd.PointCoordinate("crank", (0.2, 0.0), "y")
    with pytest.raises(ValueError, match="'guide', 'A'.*actuated="):
        mbd.simulate_driven(mech, {point: lambda t: 0.1 + 0.2 * t}, t=times)
    q, v = moving(mech)
    one = mbd.simulate(mech, q, v, t1=0.1, dt=1e-3, save_every=20)
    two = mbd.simulate(mech, q, v, t1=0.1, dt=1e-3, save_every=20, constraints="baumgarte")
    np.testing.assert_allclose(one.v, two.v, rtol=0, atol=1e-5)


def test_linearised_friction_damps_by_its_slope_at_rest():
    """A hanging pendulum: μ r m g / velocity_scale over m L²."""
    rub = mbd.JointFriction("hinge", 0.1, 0.02, velocity_scale=0.5)
    mech = mbd.zoo.simple_pendulum().replace(forces={"rub": rub})
    state = mbd.linearize(mech, mbd.neutral(mech) + np.pi / 2)
    np.testing.assert_allclose(state.A, [[0, 1], [-G, -0.1 * 0.02 * G / 0.5]], rtol=0, atol=1e-12)


def test_bad_descriptions_are_named():
    with pytest.raises(ValueError) as error:
        mbd.Mechanism(
            {"a": mbd.Body(1.0), "b": mbd.Body(1.0)},
            {
                "ball": mbd.Spherical("ground", "a", (0, 0, 0)),
                "cross": mbd.Universal("a", "b", (0, 0, 1), (1, 0, 0), (0, 1, 0)),
            },
            {
                "none": mbd.JointFriction("missing", 0.1),
                "bare": mbd.JointFriction("ball", 0.1),
                "cross_rub": mbd.JointFriction("cross", 0.1, 0.1),
                "less": mbd.JointFriction("ball", -0.1, 0.1, velocity_scale=0.0),
            },
        )
    text = str(error.value)
    for part in (
        "'missing'",
        "needs radius=",
        "a Universal; give it to a Revolute",
        "velocity_scale is 0.0; it must be positive",
        "coefficient is -0.1; it must not be negative",
    ):
        assert part in text
