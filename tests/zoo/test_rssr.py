"""The RSSR of the first paper: closed form, free motion, power, and its three-revolute twin."""

from __future__ import annotations

from functools import partial

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chained_runs import chain

import jaxmbd as mbd

SPEED = 2 * np.pi / 0.6


@pytest.fixture(scope="module")
def rssr():
    return mbd.zoo.rssr()


def no_idle_spin(mech, q, speed):
    """Speeds on the constraints whose coupler does not turn about its own axis."""
    v = mbd.assemble_velocity(mech, q, {"crank": speed})
    state = mbd.kinematics.motion_state(mech, q, v)
    ends = [state.position("coupler", p) for p in ("A", "B")]
    axis = (ends[1] - ends[0]) / jnp.linalg.norm(ends[1] - ends[0])
    spin = state.angular_velocity("coupler") @ axis
    turned = state.rotation("crank").T @ axis
    return v.at[mbd.topology(mech).layout["A"].v].add(-spin * turned)


@jax.jit
def energies(mech, solution):
    return jax.vmap(partial(mbd.kinetic_energy, mech))(solution.q, solution.v)


# 2000 steps, 101 states saved: one kernel for all tests of free motion, whatever their step.
RUN = {"steps": 2000, "save_every": 20}


def test_closes_as_published(rssr):
    top = mbd.topology(rssr)
    assert top.cut == ("B",) and (top.nv, top.nc) == (5, 3)
    assert float(mbd.assemble(rssr).residual) < 1e-15
    theta = np.rad2deg(float(mbd.zoo.rssr_theta(0.0)))
    assert theta == pytest.approx(122.102, abs=5e-4)
    b = np.asarray(rssr.points["B"])
    assert np.rad2deg(np.arctan2(b[1], b[0])) == pytest.approx(theta, abs=1e-10)


def test_follows_the_closed_form_over_a_turn(rssr):
    place = mbd.topology(rssr).layout
    drawn = float(mbd.zoo.rssr_theta(0.0))
    q, e0, errors = mbd.neutral(rssr), [], []
    for psi in np.deg2rad(np.arange(0, 361, 5)):
        q = mbd.assemble(rssr, known={"crank": psi}, guess=q).q
        errors.append(float(q[place["rocker"].q][0]) - (float(mbd.zoo.rssr_theta(psi)) - drawn))
        e0.append(float(q[place["A"].q][0]))
    assert np.abs(errors).max() < 1e-10
    assert min(e0) < -0.5 and max(e0) > 0.5, "the coupler's e0 must cross zero"


def test_cold_start_keeps_the_branch(rssr):
    place = mbd.topology(rssr).layout["rocker"].q
    drawn = float(mbd.zoo.rssr_theta(0.0))
    for psi in np.deg2rad([-170.0, -90.0, 60.0, 120.0, 179.0]):
        q = mbd.assemble(rssr, known={"crank": psi}).q
        assert float(q[place][0]) == pytest.approx(
            float(mbd.zoo.rssr_theta(psi)) - drawn, abs=1e-10
        )


def test_other_branch_by_guess(rssr):
    """Mirrored about the crank pin the rocker closes the loop a second time."""
    psi, place = 0.3, mbd.topology(rssr).layout
    first = mbd.assemble(rssr, known={"crank": psi}).q
    guess = np.array(mbd.neutral(rssr))
    guess[place["crank"].q] = psi
    guess[place["rocker"].q] = -3.0
    second = mbd.assemble(rssr, known={"crank": psi}, guess=guess)
    assert float(second.residual) < 1e-14
    assert abs(float(second.q[place["rocker"].q][0] - first[place["rocker"].q][0])) > 1.0


def test_free_motion_keeps_energy_at_fourth_order(rssr):
    q = mbd.neutral(rssr)
    v = no_idle_spin(rssr, q, SPEED)
    assert float(jnp.abs(mbd.constraint_jacobian(rssr, q) @ v).max()) < 1e-15
    drift = []
    for runs in (1, 2, 4):  # of two seconds
        path = list(chain(rssr, q, v, runs=runs, dt=1e-3 / runs, **RUN))
        e = np.concatenate([energies(rssr, s) for s in path])
        drift.append(np.abs(e / e[0] - 1).max())
        assert max(float(s.drift) for s in path) < 1e-14
    orders = np.log2(np.array(drift[:-1]) / drift[1:])
    assert np.all(orders > 3.7), (drift, orders)


def test_free_motion_ten_seconds(rssr):
    q = mbd.neutral(rssr)
    path = list(chain(rssr, q, no_idle_spin(rssr, q, SPEED), runs=50, dt=1e-4, **RUN))
    e = np.concatenate([energies(rssr, s) for s in path])
    assert np.abs(e / e[0] - 1).max() < 1e-9
    assert all(int(s.status) == mbd.Status.OK for s in path)


@pytest.mark.slow
def test_adaptive_solver_agrees(rssr):
    q = mbd.neutral(rssr)
    v = no_idle_spin(rssr, q, SPEED)
    fine = mbd.simulate(rssr, q, v, dt=1e-4, **RUN)
    adaptive = mbd.simulate(rssr, q, v, t1=0.2, dt=0.01, method=diffrax.Dopri8())
    np.testing.assert_allclose(adaptive.q, fine.q[::5], atol=1e-9)
    np.testing.assert_allclose(adaptive.t, fine.t[::5], atol=1e-12)


def test_power_of_a_torque_law_is_the_change_of_energy(rssr):
    def law(t, q, v):
        return 0.02 * jnp.cos(7.0 * t) - 1e-4 * v

    driven = rssr.replace(forces={"motor": mbd.JointTorque("crank", law=law)})
    q = mbd.neutral(driven)
    place = mbd.topology(driven).layout["crank"]

    def power(t, q, v):
        return law(t, q[place.q], v[place.v])[0] * v[place.v][0]

    s = mbd.simulate(driven, q, no_idle_spin(driven, q, 3.0), t1=0.6, dt=5e-4, outputs=power)
    e, p, h = energies(driven, s), np.asarray(s.outputs), 5e-4
    work = h / 3 * (p[0] + p[-1] + 4 * p[1:-1:2].sum() + 2 * p[2:-1:2].sum())  # Simpson
    assert e[-1] - e[0] == pytest.approx(work, rel=1e-7)
    assert abs(e[-1] / e[0] - 1) > 0.1, "the drive must do work"


def test_semi_implicit_euler_and_baumgarte_converge(rssr):
    q = mbd.neutral(rssr)
    v = no_idle_spin(rssr, q, SPEED)
    exact = mbd.simulate(rssr, q, v, dt=5e-5, **RUN).q[-1]
    place = mbd.topology(rssr).layout["rocker"].q
    euler = {"save_every": 100, "method": "semi_implicit_euler", "accuracy": 1e-2}
    errors = []
    for runs in (1, 2):  # of a tenth of a second
        *_, last = chain(rssr, q, v, runs=runs, steps=100, dt=1e-3 / runs, **euler)
        errors.append(abs(float(last.q[-1][place][0] - exact[place][0])))
    assert 1.6 < errors[0] / errors[1] < 2.5
    soft = mbd.simulate(rssr, q, v, t1=0.1, dt=1e-4, save_every=1000, constraints="baumgarte")
    np.testing.assert_allclose(soft.q[-1], exact, atol=1e-7)


def test_three_revolutes_for_each_ball_move_alike(rssr):
    """Massless links between; the coupler's spin differs, the angles that matter do not."""
    twin = mbd.zoo.rssr_revolutes()
    assert mbd.mobility(twin).dof == mbd.mobility(rssr).dof
    runs = {}
    options = {"ball": RUN, "revolutes": {"steps": 400, "save_every": 40}}
    for name, mech in (("ball", rssr), ("revolutes", twin)):
        q = mbd.neutral(mech)
        v = mbd.assemble_velocity(mech, q, {"crank": SPEED})
        s = mbd.simulate(mech, q, v, dt=0.1 / options[name]["steps"], **options[name])
        place = mbd.topology(mech).layout
        runs[name] = np.stack([s.q[:, place[n].q][:, 0] for n in ("crank", "rocker")])
    np.testing.assert_allclose(runs["ball"][:, ::10], runs["revolutes"], atol=1e-7)
