"""Printed numbers and closed forms, computed by the engine itself."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd


def test_two_bodies_of_the_lecture_text():
    """Nikravesh's planar example: two bodies and a revolute joint; the print is rounded to 1 %."""
    phi_i, phi_j = np.deg2rad([34.32, 11.47])
    # Angular speeds that give the printed γ = (0.0017, −0.0002).
    w_i, w_j = np.sqrt([0.000502, 0.001037])

    def turned(phi, x, y):
        return np.array([x * np.cos(phi) - y * np.sin(phi), x * np.sin(phi) + y * np.cos(phi), 0])

    arm_i, arm_j = turned(phi_i, 0.9, 0.7), turned(phi_j, -1.3, 1.0)
    com_i, com_j = -arm_i, -arm_j  # the joint is the origin
    plane = (0.0, 0.0, 1.0)
    mech = mbd.Mechanism(
        bodies={
            "i": mbd.Body(1.2, com_i, (2.5, 2.5, 2.5)),
            "j": mbd.Body(2.0, com_j, (4.0, 4.0, 4.0)),
        },
        joints={
            "i": mbd.Planar("ground", "i", at=com_i, normal=plane),
            "j": mbd.Planar("ground", "j", at=com_j, normal=plane),
            "pin": mbd.Revolute("j", "i", at=(0, 0, 0), axis=plane),
        },
        forces={
            "on i": mbd.PointForce("i", com_i, (-10.0, 0, 0)),
            "on j": mbd.PointForce("j", com_j, (10.0, 0, 0)),
        },
        gravity=(0, -9.81, 0),
        cut=("pin",),
    )
    q = mbd.neutral(mech)
    # The pin holds the points together: v_i + ω_i × arm_i = v_j + ω_j × arm_j; let j's COM rest.
    vx = w_i * arm_i[1] - w_j * arm_j[1]
    vy = -w_i * arm_i[0] + w_j * arm_j[0]
    top = mbd.topology(mech)
    v = np.zeros(top.nv)
    v[top.layout["i"].v], v[top.layout["j"].v] = (w_i, vx, vy), (w_j, 0, 0)
    np.testing.assert_allclose(mbd.gamma(mech, q, v)[:2], [0.0017, -0.0002], rtol=0, atol=2e-5)
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    acc = {b: np.asarray(a) for b, a in mbd.body_accelerations(mech, q, v, vdot).items()}
    np.testing.assert_allclose(acc["i"][[3, 4, 2]], [-2.571, -10.154, -3.061], rtol=0.01)
    # The print has 1.534 for 1.543 = (10 − 6.915)/2.
    np.testing.assert_allclose(acc["j"][[3, 4, 2]], [1.543, -9.604, 1.096], rtol=0.01)
    force = np.asarray(lam[top.layout["pin"].rows])[:2]
    np.testing.assert_allclose(force, [6.915, -0.413], rtol=0.01)
    assert float(acc["j"][3]) == pytest.approx((10 - force[0]) / 2.0, rel=1e-12)


def test_slider_crank_in_closed_form():
    """Crank 200 mm, rod 500 mm, driver φ = 5.76 − 1.2 t: positions, speeds, accelerations."""
    l, r, rate = 0.2, 0.5, -1.2
    mech = mbd.zoo.slider_crank()
    top = mbd.topology(mech)
    slider, crank = top.layout["T"].q, top.layout["O"].q
    assert slider is not None and crank is not None
    for t in np.linspace(0.0, 5.0, 11):
        phi = 5.76 + rate * t
        angle = (phi + np.pi) % (2 * np.pi) - np.pi
        guess = np.array(mbd.neutral(mech))
        guess[crank] = angle
        # Start the rod on its open branch: the drawn position is a dead centre.
        guess[top.layout["B"].q] = -angle - np.arcsin(l * np.sin(angle) / r)
        q = mbd.assemble(mech, known={"O": angle}, guess=guess).q
        beta = np.arcsin(l * np.sin(phi) / r)
        x = l * np.cos(phi) + r * np.cos(beta)
        place = mbd.point_position(mech, q, "slider", "A")
        np.testing.assert_allclose(place, [x, 0, 0], rtol=0, atol=1e-12)
        v = mbd.assemble_velocity(mech, q, {"O": rate})
        beta_rate = l * np.cos(phi) * rate / (r * np.cos(beta))
        x_rate = -l * np.sin(phi) * rate - r * np.sin(beta) * beta_rate
        np.testing.assert_allclose(
            mbd.point_velocity(mech, q, v, "slider", "A"), [x_rate, 0, 0], rtol=0, atol=1e-12
        )
        beta_acc = (-l * np.sin(phi) * rate**2 / r + np.sin(beta) * beta_rate**2) / np.cos(beta)
        x_acc = (
            -l * np.cos(phi) * rate**2
            - r * np.cos(beta) * beta_rate**2
            - r * np.sin(beta) * beta_acc
        )
        vdot = mbd.assemble_acceleration(mech, q, v, {"O": 0.0})
        acc = mbd.body_accelerations(mech, q, v, vdot)["slider"]
        np.testing.assert_allclose(acc[3:], [x_acc, 0, 0], rtol=0, atol=1e-12)
        held = mbd.PointCoordinate("slider", "A", "x")
        np.testing.assert_allclose(
            mbd.assemble_acceleration(mech, q, v, {held: x_acc})[top.layout["O"].v],
            0,
            rtol=0,
            atol=1e-10,
        )


def test_driven_crank_follows_and_its_multiplier_is_the_effort():
    """A drive's λ equals the effort that inverse dynamics asks of the crank."""
    mech = mbd.zoo.rssr().replace(
        drives={"motor": mbd.Drive("crank", lambda t, p: p["a"] * jnp.sin(p["w"] * t), PARAMS)}
    )
    q = mbd.assemble(mech).q
    run = mbd.simulate(mech, q, t1=0.2, dt=1e-3, save_every=50)
    place = mbd.topology(mech).layout
    angle = PARAMS["a"] * np.sin(PARAMS["w"] * np.asarray(run.t))
    np.testing.assert_allclose(run.q[:, place["crank"].q][:, 0], angle, rtol=0, atol=1e-13)
    q, v, t = run.q[-1], run.v[-1], float(run.t[-1])
    vdot, lam = mbd.forward_dynamics(mech, q, v, t)
    assert float(vdot[place["crank"].v][0]) == pytest.approx(
        -PARAMS["a"] * PARAMS["w"] ** 2 * np.sin(PARAMS["w"] * t), rel=1e-12
    )
    undriven = mbd.zoo.rssr()
    tau, _ = mbd.inverse_dynamics(undriven, q, v, vdot, actuated=["crank"])
    assert float(lam[place["motor"].rows][0]) == pytest.approx(float(tau[0]), rel=1e-9)
    assert abs(float(tau[0])) > 1e-6


PARAMS = {"a": 0.5, "w": 9.0}


def test_massless_links_and_point_masses():
    """A point mass on a massless link, and a massless link that ends a branch of a loop."""
    pendulum = mbd.zoo.double_pendulum()
    vdot, _ = mbd.forward_dynamics(pendulum, mbd.neutral(pendulum), np.zeros(2))
    assert np.all(np.isfinite(vdot))
    # A massless coupler of balls between two pendulums acts as the rod of its length.
    bob = mbd.Body(1.0, (0, 0, -1), (0.1, 0.1, 0.1))
    other = mbd.Body(2.0, (0.5, 0, -1), (0.1, 0.1, 0.1))
    link = mbd.Body(0.0, (0.25, 0, -1))
    hinges = {
        "left": mbd.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0)),
        "right": mbd.Revolute("ground", "other", (0.5, 0.1, 0), (0.1, 1, 0)),
    }
    ends = {"P": (0.0, 0, -1), "Q": (0.5, 0.3, -1)}
    rod = mbd.Mechanism(
        {"bob": bob, "other": other},
        {**hinges, "rod": mbd.Rod("bob", "other", "P", "Q")},
        points=ends,
    )
    balls = {
        "P": mbd.Universal("bob", "link", "P", (0, 0, 1), (0, 1, 0)),
        "Q": mbd.Spherical("link", "other", "Q"),
    }
    linked = mbd.Mechanism(
        {"bob": bob, "other": other, "link": link}, {**hinges, **balls}, points=ends
    )
    v = mbd.assemble_velocity(rod, mbd.neutral(rod), {"left": 2.0})
    first, lam = mbd.forward_dynamics(rod, mbd.neutral(rod), v)
    q = mbd.neutral(linked)
    v = mbd.assemble_velocity(linked, q, {"left": 2.0})
    vdot, lam2 = mbd.forward_dynamics(linked, q, v)
    place, place1 = mbd.topology(linked).layout, mbd.topology(rod).layout
    for name in ("left", "right"):
        np.testing.assert_allclose(vdot[place[name].v], first[place1[name].v], rtol=1e-9)
    force = mbd.joint_reactions(linked, q, v, vdot, lam2)["Q"][3:]
    assert float(jnp.linalg.norm(force)) == pytest.approx(abs(float(lam[0])), rel=1e-9)
