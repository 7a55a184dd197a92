"""Driven simulation: closed forms, rates, power, redundancy, gradients, batches, bad input."""

from __future__ import annotations

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import lanes

W = 2 * np.pi / 0.6


def wobbling(t):
    """A crank angle that is no polynomial of the time."""
    return W * t + 0.3 * jnp.sin(3 * W * t)


@pytest.fixture(scope="module")
def rssr():
    return mbd.zoo.rssr()


@pytest.fixture(scope="module")
def turn(rssr):
    return mbd.simulate_driven(rssr, {"crank": wobbling}, t=np.linspace(0.0, 0.6, 61))


def imbalance(mech, run):
    """``M v̇ + h − τ − Jᵀ λ``."""

    def at(q, v, vdot, tau, lam):
        force = mbd.mass_matrix(mech, q) @ vdot + mbd.bias(mech, q, v)
        return force - tau - mbd.constraint_jacobian(mech, q).T @ lam

    return np.abs(lanes.vmap(at)(run.q, run.v, run.vdot, run.tau, run.lam)).max()


def test_rssr_is_the_closed_form(rssr, turn):
    """Position over a turn, and both rates of the closed form by differentiation in time."""
    place = mbd.topology(rssr).layout["rocker"]

    def theta(t):
        return mbd.zoo.rssr_theta(wobbling(t)) - mbd.zoo.rssr_theta(0.0)

    rate = jax.grad(theta)
    np.testing.assert_allclose(
        turn.q[:, place.q][:, 0], lanes.vmap(theta)(turn.t), rtol=0, atol=1e-12
    )
    np.testing.assert_allclose(
        turn.v[:, place.v][:, 0], lanes.vmap(rate)(turn.t), rtol=0, atol=1e-10
    )
    second = lanes.vmap(jax.grad(rate))(turn.t)
    np.testing.assert_allclose(turn.vdot[:, place.v][:, 0], second, rtol=0, atol=1e-8)
    assert float(turn.residual.max()) < 1e-14
    np.testing.assert_array_equal(turn.status, mbd.Status.OK)


def test_effort_meets_the_equations_and_the_power(rssr, turn):
    assert imbalance(rssr, turn) < 1e-14

    def energy_rate(q, v, vdot):
        rates = mbd.coordinate_rates(rssr, q, v), vdot
        return jax.jvp(lambda q, v: mbd.kinetic_energy(rssr, q, v), (q, v), rates)[1]

    crank = mbd.topology(rssr).layout["crank"].v.start
    power = turn.effort[:, 0] * turn.v[:, crank]
    np.testing.assert_allclose(
        power, lanes.vmap(energy_rate)(turn.q, turn.v, turn.vdot), rtol=0, atol=1e-12
    )
    assert float(jnp.abs(power).max()) > 1.0
    others = np.delete(np.asarray(turn.tau), crank, axis=1)
    np.testing.assert_array_equal(others, 0.0)


def test_an_idle_link_neither_spins_nor_is_spun(rssr, turn):
    def about_line(q, v, vdot):
        m = mbd.kinematics.motion_state(rssr, q, v)
        line = m.position("coupler", "B") - m.position("coupler", "A")
        line = line / jnp.linalg.norm(line)
        spin = mbd.body_velocities(rssr, q, v)["coupler"][:3] @ line
        return spin, mbd.body_accelerations(rssr, q, v, vdot)["coupler"][:3] @ line

    spin, change = lanes.vmap(about_line)(turn.q, turn.v, turn.vdot)
    np.testing.assert_allclose(spin, 0.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(1.53e-6 * change, 0.0, rtol=0, atol=1e-15)


@pytest.mark.slow
def test_a_drive_in_the_mechanism_is_the_same(rssr, turn):
    """Its multiplier is the effort, whoever computes it."""

    def law(t, p):
        return wobbling(t) + p

    mech = rssr.replace(drives={"motor": mbd.Drive("crank", law, 0.0)})
    run = mbd.simulate_driven(mech, t=turn.t[::10])
    rocker = mbd.topology(mech).layout["rocker"].q
    np.testing.assert_allclose(run.q[:, rocker], turn.q[::10, rocker], rtol=0, atol=1e-13)
    np.testing.assert_allclose(run.lam[:, -1], turn.effort[::10, 0], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(run.tau, 0.0)
    q, v, t = run.q[3], run.v[3], run.t[3]
    vdot, lam = mbd.forward_dynamics(mech, q, v, t)
    np.testing.assert_allclose(vdot, run.vdot[3], rtol=0, atol=1e-8)
    np.testing.assert_allclose(lam, run.lam[3], rtol=1e-9, atol=1e-12)
    _, lam = mbd.inverse_dynamics(mech, q, v, vdot, t)
    np.testing.assert_allclose(lam, run.lam[3], rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="'crank' is driven by the mechanism's drive 'motor'"):
        mbd.simulate_driven(mech, {"crank": wobbling}, t=[0.0])


@pytest.mark.slow
def test_inverse_dynamics_gives_the_same_effort(rssr, turn):
    tau, lam = jax.vmap(
        lambda *x: mbd.inverse_dynamics(rssr, *x, actuated=["crank"], backend="xla")
    )(turn.q[::20], turn.v[::20], turn.vdot[::20])
    np.testing.assert_allclose(tau, turn.tau[::20], rtol=0, atol=1e-14)
    np.testing.assert_allclose(lam, turn.lam[::20], rtol=0, atol=1e-12)


# --- The lecture text's slider-crank ------------------------------------------------------------


def lecture(t, p):
    """The crank's driver φ2 = 5.76 − 1.2 t, whose figure is turned by half a turn here."""
    return p[0] - p[1] * t - np.pi


DRIVER = (lecture, np.array([5.76, 1.2]))


def slider_crank(crank=0.2, size=1.0, cut=None):
    """The text's slider-crank, in the plane, stretched along x at angle zero."""
    r, end = size * crank, size * (crank + 0.5)
    return mbd.Mechanism(
        bodies={
            "crank": mbd.Body(1.0, jnp.stack([r / 2, 0 * r]), size**2 * 0.01),
            "rod": mbd.Body(1.5, jnp.stack([r + size * 0.3, 0 * r]), size**2 * 0.03),
            "slider": mbd.Body(1.0, "A", 1e-4),
        },
        joints={
            "O": mbd.Revolute("ground", "crank", at="O"),
            "B": mbd.Revolute("crank", "rod", at="B"),
            "A": mbd.Revolute("rod", "slider", at="A"),
            "T": mbd.Prismatic("ground", "slider", at="A", axis=(1, 0)),
        },
        points={"O": (0, 0), "B": jnp.stack([r, 0 * r]), "A": jnp.stack([end, 0 * end])},
        gravity=(0, 0),
        cut=cut,
    )


@pytest.fixture(scope="module")
def slider():
    return slider_crank()


def test_slider_crank_of_the_lecture(slider):
    """Closed form: x = r cos φ + √(l² − r² sin² φ), crank 200 mm, rod 500 mm."""
    run = mbd.simulate_driven(slider, {"O": DRIVER}, t=np.linspace(0.0, 5.0, 26))

    def x(t):
        phi = lecture(t, (5.76, 1.2))
        return 0.2 * jnp.cos(phi) + jnp.sqrt(0.25 - 0.04 * jnp.sin(phi) ** 2)

    def slide(q, v, vdot):
        place = mbd.point_position(slider, q, "slider", "A")[0]
        speed = mbd.body_velocities(slider, q, v)["slider"][3]
        return place, speed, mbd.body_accelerations(slider, q, v, vdot)["slider"][3]

    found = lanes.vmap(slide)(run.q, run.v, run.vdot)
    for got, exact in zip(found, (x, jax.grad(x), jax.grad(jax.grad(x))), strict=True):
        np.testing.assert_allclose(got, lanes.vmap(exact)(run.t), rtol=0, atol=1e-12)
    assert imbalance(slider, run) < 1e-13


def test_a_driven_point_and_the_actuated_joint(slider):
    """The slider led along x: the force on it, or the crank's torque that does its work."""
    end = mbd.PointCoordinate("slider", "A", "x")
    times, start = np.linspace(0.0, 1.0, 5), mbd.assemble(slider, {"O": 0.8}).q
    known = {end: lambda t: 0.6 + 0.02 * jnp.sin(4.0 * t)}
    led = mbd.simulate_driven(slider, known, t=times, q0=start)
    assert imbalance(slider, led) < 1e-14
    crank = mbd.topology(slider).layout["O"].v.start
    by_crank = mbd.simulate_driven(slider, known, t=times, q0=start, actuated=["O"])
    np.testing.assert_allclose(by_crank.vdot, led.vdot, rtol=0, atol=1e-12)
    work = np.asarray(by_crank.effort[:, 0] * led.v[:, crank])
    speed = 0.08 * np.cos(4.0 * times)
    np.testing.assert_allclose(work, led.effort[:, 0] * speed, rtol=0, atol=1e-14)
    assert np.abs(work).max() > 1e-4


def test_a_dead_centre_and_no_reach(slider):
    """Stretched, the slider cannot drive the crank; farther, it does not assemble."""
    end = mbd.PointCoordinate("slider", "A", "x")
    start = mbd.assemble(slider, {"O": 0.3}).q
    known, times = {end: lambda t: 0.65 + t}, np.array([0.0, 0.05, 0.1])
    run = mbd.simulate_driven(slider, known, t=times, q0=start, throw=False)
    np.testing.assert_array_equal(run.status, [0, mbd.Status.SINGULAR, mbd.Status.NOT_ASSEMBLED])
    assert np.isnan(run.tau[1:]).all() and np.isnan(run.q[2]).all()
    assert np.isfinite(run.q[1]).all() and np.isfinite(run.tau[0]).all()


@pytest.mark.slow
def test_messages_of_motions_that_fail(slider, rssr):
    end = mbd.PointCoordinate("slider", "A", "x")
    known, times = {end: lambda t: 0.65 + t}, np.array([0.0, 0.05, 0.1])
    start = mbd.assemble(slider, {"O": 0.3}).q
    with pytest.raises(ValueError, match=r"at t = 0.05 s.*dead centre"):
        mbd.simulate_driven(slider, known, t=times[:2], q0=start)
    with pytest.raises(ValueError, match=r"at t = 0.1 s.*does not assemble"):
        mbd.simulate_driven(slider, known, t=times[::2], q0=start)
    drawn = float(mbd.zoo.rssr_theta(0.0))
    apart = {
        "crank": lambda t: W * t,
        "rocker": lambda t: mbd.zoo.rssr_theta(W * t) - drawn + 8 * t**3,
    }
    with pytest.raises(ValueError, match=r"(?s)at t = 0.05 s.*does not assemble.*'rocker' is at"):
        mbd.simulate_driven(rssr, apart, t=times)


# --- Redundant, missing, contradictory ------------------------------------------------------------


def test_redundant_actuation_is_of_least_norm(rssr, turn):
    """Crank and rocker share: of all pairs that make the motion, the shortest."""
    times = turn.t[::15]
    run = mbd.simulate_driven(rssr, {"crank": wobbling}, t=times, actuated=["crank", "rocker"])
    assert imbalance(rssr, run) < 1e-14
    rates = np.asarray(run.v[:, [0, 4]])
    alone = np.asarray(turn.effort[::15, 0]) * rates[:, 0]
    shared = np.asarray(run.effort)
    np.testing.assert_allclose((shared * rates).sum(axis=1), alone, rtol=0, atol=1e-12)
    # Of least norm: along the one direction that does work.
    np.testing.assert_allclose(
        shared[:, 0] * rates[:, 1], shared[:, 1] * rates[:, 0], rtol=0, atol=1e-12
    )


@pytest.mark.slow
def test_torque_and_force_share_by_the_mechanisms_length(slider):
    """Scaled by any factor, the sharing of a crank's torque and a slider's force stays itself."""
    shares = []
    for size in (1.0, 100.0):
        mech = slider_crank(size=size, cut="A")  # both are coordinates
        run = mbd.simulate_driven(
            mech, {"O": lambda t: 0.7 + 2.0 * t}, t=[0.0], actuated=["O", "T"]
        )
        shares.append(np.asarray(run.effort[0]) / size ** np.array([2, 1]))
        assert imbalance(mech, run) < 1e-12 * size**2
    np.testing.assert_allclose(*shares, rtol=1e-9)


@pytest.mark.slow
def test_two_cranks_that_agree_and_that_do_not(rssr):
    start = float(mbd.zoo.rssr_theta(0.0))
    times = np.linspace(0.0, 0.1, 3)

    def rocker(t):
        return mbd.zoo.rssr_theta(W * t) - start

    both = {"crank": lambda t: W * t, "rocker": rocker}
    run = mbd.simulate_driven(rssr, both, t=times)
    assert imbalance(rssr, run) < 1e-14 and float(jnp.abs(run.effort[:, 1]).max()) > 1e-4
    # At t = 0 the positions agree, the speeds do not.
    with pytest.raises(ValueError, match=r"at t = 0 s.*contradict"):
        mbd.simulate_driven(rssr, {**both, "rocker": lambda t: rocker(t) + t}, t=[0.0])


def test_too_little_known_names_what_is_free():
    mech = mbd.zoo.double_pendulum()
    one = {"hinge_1": lambda t: 0.3 * t}
    with pytest.raises(ValueError, match=r"leaves 1 freedom\(s\) open, along \['hinge_2'\]"):
        mbd.simulate_driven(mech, one, t=[0.0, 0.1])
    run = mbd.simulate_driven(mech, one, t=[0.0, 0.1], throw=False)
    np.testing.assert_array_equal(run.status, mbd.Status.SINGULAR)
    assert np.isnan(run.v).all() and np.isnan(run.tau).all()
    # A constant holds; then one motor is not enough.
    two = {**one, "hinge_2": 0.2}
    with pytest.raises(ValueError, match=r"nothing drives \['hinge_2'\]"):
        mbd.simulate_driven(mech, two, t=[0.0, 0.1], actuated=["hinge_1"])
    both = mbd.simulate_driven(mech, two, t=[0.0, 0.1])
    np.testing.assert_allclose(both.q[:, 1], 0.2)
    run = mbd.simulate_driven(mech, two, t=[0.0, 0.1], actuated=["hinge_1"], throw=False)
    np.testing.assert_allclose(run.vdot, both.vdot)
    assert np.isnan(run.tau).all()


def test_massless_links_need_no_mass_matrix():
    """Pure kinematics of links without mass, and a force carried by them."""
    mech = mbd.Mechanism(
        bodies={
            "crank": mbd.Body(0.0, (0, 0)),
            "rod": mbd.Body(0.0, (0, 0)),
            "piston": mbd.Body(0.0, "A"),
        },
        joints={
            "O": mbd.Revolute("ground", "crank", at=(0, 0)),
            "B": mbd.Revolute("crank", "rod", at=(0.2, 0)),
            "pin": mbd.Revolute("rod", "piston", at="A"),
            "T": mbd.Prismatic("ground", "piston", at="A", axis=(1, 0)),
        },
        points={"A": (0.7, 0)},
        forces={"gas": mbd.PointForce("piston", "A", force=(-50.0, 0))},
    )
    run = mbd.simulate_driven(mech, {"O": lambda t: 1.0 + t}, t=[0.0, 0.5])
    x_rate = lanes.vmap(lambda q, v: mbd.body_velocities(mech, q, v)["piston"][3])(run.q, run.v)
    np.testing.assert_allclose(run.effort[:, 0], 50.0 * x_rate, rtol=1e-10)


@pytest.mark.slow
def test_a_ball_is_led_by_its_quaternion():
    """The speeds of ``p(t)``, normalised, are its angular velocity."""
    mech = mbd.Mechanism(
        bodies={"top": mbd.Body(2.0, (0, 0, 1), (0.2, 0.3, 0.1))},
        joints={"ball": mbd.Spherical("ground", "top", at=(0, 0, 0))},
    )

    def p(t):
        return jnp.stack([jnp.cos(t), 0.2 * t, jnp.sin(t), 0.5 * t**2])

    run = mbd.simulate_driven(mech, {"ball": p}, t=np.linspace(0.0, 1.0, 3))

    def rotation(t):
        return mbd.spatial.rotations.rotation_matrix(p(t) / jnp.linalg.norm(p(t)))

    def omega(t):
        return mbd.spatial.rotations.vee(jax.jacfwd(rotation)(t) @ rotation(t).T)

    np.testing.assert_allclose(run.v, lanes.vmap(omega)(run.t), rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.vdot, lanes.vmap(jax.jacfwd(omega))(run.t), rtol=0, atol=1e-11)
    assert imbalance(mech, run) < 1e-13 and run.effort.shape == (3, 3)


# --- Transforms -----------------------------------------------------------------------------------


@partial(jax.jit, static_argnames="backend")
def torque(length, speed, backend="auto"):
    run = mbd.simulate_driven(
        slider_crank(length),
        {"O": (lecture, jnp.stack([5.76, speed]))},
        t=np.linspace(0, 1, 3),
        backend=backend,
    )
    return run.effort[:, 0], run.status


def test_gradients_are_differences():
    x = jnp.array([0.2, 1.2])

    def value(x):
        return torque(*x)[0]

    forward = jax.jit(jax.jacfwd(value))(x)
    reverse = jax.jit(jax.grad(lambda x: value(x)[1]))(x)
    np.testing.assert_allclose(reverse, forward[1], rtol=1e-10, atol=1e-13)
    for i, h in enumerate(1e-6 * np.eye(2)):
        differences = (value(x + h) - value(x - h)) / 2e-6
        np.testing.assert_allclose(forward[:, i], differences, rtol=1e-7, atol=1e-8)


def test_batch_and_its_gradient_with_one_that_fails():
    """A crank longer than the rod: flagged, and no harm to the derivative that all share."""
    lengths = jnp.array([0.15, 0.2, 0.9])
    batch = jax.jit(jax.vmap(torque, in_axes=(0, None)))
    efforts, status = batch(lengths, 1.2)
    assert status[:2].max() == 0 and status[2].max() == mbd.Status.NOT_ASSEMBLED
    for k in range(2):
        np.testing.assert_allclose(efforts[k], torque(lengths[k], 1.2)[0], rtol=1e-10)

    def total(scale, lengths):
        return jnp.nansum(jax.vmap(torque, in_axes=(0, None))(scale * lengths, 1.2)[0])

    slope = jax.jit(jax.grad(total))
    np.testing.assert_allclose(slope(1.0, lengths), slope(1.0, lengths[:2]), rtol=1e-10)


@pytest.mark.slow
def test_lanes_agrees_with_xla():
    effort, status = torque(0.2, 1.2, backend="lanes")
    np.testing.assert_allclose(effort, torque(0.2, 1.2, backend="xla")[0], rtol=1e-11)
    assert status.max() == 0


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "options", "message"),
    [
        ({"crank": "fast"}, {}, "'crank' is driven by 'fast'; give a function of t"),
        ({"crank": (wobbling, 1, 2)}, {}, "give a function of t, a pair"),
        ({"B": wobbling}, {}, "which is cut"),
        ({"nothing": wobbling}, {}, "does not exist"),
        ({("crank", 1): wobbling}, {}, "coordinate 1 cannot be held"),
        ({"crank": lambda t: jnp.stack([t, t])}, {}, "has shape (2,)"),
        ({"A": wobbling}, {}, "'A' takes 4 numbers"),
        ({"crank": wobbling}, {"actuated": ["B"]}, "'B' is not in the tree"),
        ({"crank": wobbling}, {"actuated": [("crank", 2)]}, "has 1 coordinates, not 2"),
        ({"crank": wobbling}, {"t": 0.3}, "t has shape ()"),
        ({"crank": wobbling}, {"t": []}, "t has shape (0,)"),
        ({"crank": wobbling}, {"q0": np.zeros(3)}, "q0 has shape (3,)"),
        ({"crank": wobbling}, {"backend": "fast"}, "backend='fast'"),
        ({"crank": lambda t: t / 0.0}, {}, "not_assembled|non_finite"),
    ],
)
def test_bad_input(rssr, known, options, message):
    message = message if "|" in message else re.escape(message)
    with pytest.raises(ValueError, match=message):
        mbd.simulate_driven(rssr, known, **{"t": [0.0], **options})
