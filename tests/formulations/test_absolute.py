"""Newton-Euler in absolute coordinates: closed forms, a worked example, Pinocchio's numbers."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from repository import DATA

import jaxmbd as mbd
from jaxmbd.formulations import (
    absolute_accelerations,
    absolute_forward_dynamics,
    constraint_matrix_reactions,
)
from jaxmbd.formulations.absolute_coordinates import StateMotion, constraint

Z = np.zeros(3)


def skew(a):
    return np.cross(a, np.eye(3)).T


def turned(axis, angle):
    """Rotation matrix by Rodrigues' formula."""
    k = skew(np.asarray(axis) / np.linalg.norm(axis))
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def random_turn(rng):
    return turned(rng.normal(size=3), rng.uniform(-2, 2))


def test_pendulum():
    m, length, angle, spin = 1.3, 0.7, 0.4, 2.0
    inertia = np.array([0.01, 0.05, 0.05])
    mech = mbd.Mechanism(
        {"bob": mbd.Body(m, (length, 0, 0), inertia)},
        {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0))},
    )
    r = turned([0, 1, 0], angle)
    x, omega = r @ [length, 0, 0], np.array([0, spin, 0])
    sol = absolute_accelerations(mech, {"bob": (r, x, omega, np.cross(omega, x))})

    alpha = m * 9.81 * length * np.cos(angle) / (inertia[1] + m * length**2)
    a = np.cross([0, alpha, 0], x) - spin**2 * x
    np.testing.assert_allclose(sol.accelerations["bob"], [0, alpha, 0, *a], rtol=0, atol=1e-12)
    hinge = m * (a - [0, 0, -9.81])
    np.testing.assert_allclose(sol.reactions["hinge"], [0, 0, 0, *hinge], rtol=0, atol=1e-12)
    assert sol.rank == 5
    assert max(sol.velocity_residual, sol.imbalance) < 1e-14
    assert np.abs(sol.residual["hinge"]).max() < 1e-15


def test_free_body_obeys_eulers_equations():
    rng = np.random.default_rng(0)
    inertia = np.diag([1.0, 2.0, 2.5])
    torque, push = np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, 3.0])
    mech = mbd.Mechanism(
        {"top": mbd.Body(2.0, (0.1, 0.2, 0.3), inertia)},
        {"float": mbd.Free("ground", "top")},
        {
            "torque": mbd.Torque("ground", "top", torque),
            "push": mbd.PointForce("top", at=(1, 0, 0), force=push),
        },
    )
    r, omega = random_turn(rng), rng.normal(size=3)
    sol = absolute_accelerations(mech, {"top": (r, Z, omega, Z)})

    body = r.T @ omega  # Euler's equations in the body's axes
    moment = r.T @ (torque + np.cross(r @ [0.9, -0.2, -0.3], push))
    rate = np.linalg.solve(inertia, moment - np.cross(body, inertia @ body))
    expected = [*(r @ rate), *(push / 2 - [0, 0, 9.81])]
    np.testing.assert_allclose(sol.accelerations["top"], expected, rtol=1e-12)
    assert sol.rank == 0


def test_spinning_top_precesses_steadily():
    # m g l = (C s − A Ω cos θ) Ω: s the spin about the figure axis, A and C about the tip.
    m, length, a, c, theta, precession = 0.8, 0.3, 0.02, 0.01, 0.6, 3.0
    about_point = a + m * length**2
    s = (m * 9.81 * length / precession + about_point * precession * np.cos(theta)) / c
    mech = mbd.Mechanism(
        {"top": mbd.Body(m, (0, 0, length), (a, a, c))},
        {"tip": mbd.Spherical("ground", "top", (0, 0, 0))},
    )
    r = turned([0, 1, 0], theta)
    figure = r @ [0, 0, 1]
    up = np.array([0.0, 0, 1])
    omega = s * figure + precession * (up - np.cos(theta) * figure)
    x = length * figure
    sol = absolute_accelerations(mech, {"top": (r, x, omega, np.cross(omega, x))})
    expected = np.cross(precession * up, omega)  # a steady motion turns ω with the precession
    np.testing.assert_allclose(sol.accelerations["top"][:3], expected, rtol=1e-11, atol=1e-11)


def test_lecture_example_of_two_planar_bodies():
    # 004, (4.16)-(4.18); φ and ω from papers/README.md and γ; printed numbers are rounded.
    si, sj = np.array([0.9, 0.7, 0]), np.array([-1.3, 1.0, 0])
    mech = mbd.Mechanism(
        {"i": mbd.Body(1.2, (0, 0, 0), (2, 2, 2.5)), "j": mbd.Body(2.0, si - sj, (3, 3, 4))},
        {"float": mbd.Free("ground", "i"), "pin": mbd.Revolute("j", "i", si, (0, 0, 1))},
        {
            "left": mbd.PointForce("i", (0, 0, 0), (-10, 0, 0)),
            "right": mbd.PointForce("j", si - sj, (10, 0, 0)),
        },
        gravity=(0, -9.81, 0),
    )
    ri, rj = (turned([0, 0, 1], np.radians(x)) for x in (34.32, 11.47))
    wi, wj = np.array([0, 0, np.sqrt(0.000502)]), np.array([0, 0, np.sqrt(0.001037)])
    state = {
        "i": (ri, Z, wi, Z),
        "j": (rj, ri @ si - rj @ sj, wj, np.cross(wi, ri @ si) - np.cross(wj, rj @ sj)),
    }
    sol = absolute_accelerations(mech, state)
    planar = [2, 3, 4]  # angular about z, then x, y
    np.testing.assert_allclose(
        np.take(sol.accelerations["i"], planar), [-3.061, -2.571, -10.154], rtol=0.01
    )
    np.testing.assert_allclose(
        np.take(sol.accelerations["j"], planar), [1.096, 1.543, -9.604], rtol=0.01
    )
    np.testing.assert_allclose(sol.multipliers["pin"][:2], [6.915, -0.413], rtol=0.01)
    assert sol.velocity_residual < 1e-14


def fourbar(data):
    bodies, l = data["bodies"], data["lengths"]
    xa, xb, xd = (np.array(bodies[n]["placement_p"]) for n in "ABD")
    y = (0, 1, 0)
    make = {
        n: mbd.Body(b["mass"], x + np.array(b["com"]), np.array(b["inertia_com"]))
        for (n, b), x in zip(bodies.items(), (xa, xa + xb, xd), strict=True)
    }
    joints = {
        "A": mbd.Revolute("ground", "A", xa, y),
        "B": mbd.Revolute("A", "B", xa + xb, y),
        "D": mbd.Revolute("ground", "D", xd, y),
        "close": mbd.Revolute(
            "D", "B", xd + [l["rocker"], 0, 0], y, at_b=xa + xb + [l["coupler"], 0, 0]
        ),
    }
    return mbd.Mechanism(make, joints)


def fourbar_state(data, q, v):
    bodies, y, out = data["bodies"], np.array([0.0, 1, 0]), {}
    for name, turn, spin in (("A", q[0], v[0]), ("D", q[2], v[2])):
        r, w = turned(y, turn), spin * y
        arm = r @ bodies[name]["com"]
        out[name] = (r, np.array(bodies[name]["placement_p"]) + arm, w, np.cross(w, arm))
    r, w = turned(y, q[0] + q[1]), (v[0] + v[1]) * y
    pin = out["A"][0] @ bodies["B"]["placement_p"]
    arm = r @ bodies["B"]["com"]
    out["B"] = (r, pin + arm, w, np.cross(out["A"][2], pin) + np.cross(w, arm))
    return out


def test_fourbar_of_pinocchio():
    data = json.loads((DATA / "closedloop_fourbar_pin.json").read_text())
    mech = fourbar(data)
    solve = jax.jit(absolute_accelerations)
    for s in data["states"]:
        efforts = {n: np.array([tau]) for n, tau in zip("ABD", s["tau"], strict=True)}
        sol = solve(mech, fourbar_state(data, s["q"], s["v"]), 0.0, efforts)
        spin = {n: a[1] for n, a in sol.accelerations.items()}
        qdd = [spin["A"], spin["B"] - spin["A"], spin["D"]]
        np.testing.assert_allclose(qdd, s["qdd"], rtol=1e-9, atol=1e-9)
        force = np.take(sol.reactions["close"], [3, 5])
        np.testing.assert_allclose(force, s["lambda_world_on_first_body"], rtol=1e-9, atol=1e-9)
        assert sol.rank == 17  # one DOF in 3-D: three of the twenty rows are redundant
        assert np.abs(sol.residual["close"]).max() < 1e-12
        assert max(sol.velocity_residual, sol.imbalance) < 1e-11


AT, AT_B, U, V = (0.3, -0.2, 0.5), (0.35, -0.1, 0.45), (1.0, 2.0, -0.5), (0.3, 1.0, 0.8)
APART = {"at_b": AT_B, "axis_b": (1.2, 1.8, -0.1)}
JOINTS = {
    "revolute": mbd.Revolute("a", "b", AT, U, **APART),
    "prismatic": mbd.Prismatic("a", "b", AT, U, **APART),
    "helical": mbd.Helical("a", "b", AT, U, 0.05, **APART),
    "cylindrical": mbd.Cylindrical("a", "b", AT, U, **APART),
    "universal": mbd.Universal("a", "b", AT, U, V, at_b=AT_B),
    "spherical": mbd.Spherical("a", "b", AT, at_b=AT_B),
    "planar": mbd.Planar("a", "b", AT, U, V, at_b=AT_B),
    "fixed": mbd.Fixed("a", "b", AT, at_b=AT_B),
    "free": mbd.Free("a", "b"),
}


@pytest.mark.parametrize("kind", JOINTS)
def test_constraints_agree_with_the_motion_that_the_joint_type_allows(kind):
    """The joint types' own tree motion satisfies the rows here; coordinates and power agree."""
    joint, rng = JOINTS[kind], np.random.default_rng(3)
    bodies = {
        "a": mbd.Body(1.0, (0.1, 0, 0.2), (1, 1, 1)),
        "b": mbd.Body(2.0, (1, 1, 0), (1, 2, 2)),
    }
    joints = {"float": mbd.Free("ground", "a"), "j": joint}
    mech = mbd.Mechanism(bodies, joints)
    q = joint.step(jnp.asarray(joint.neutral()), jnp.asarray(rng.uniform(-1.2, 1.2, joint.nv)))
    v = rng.normal(size=joint.nv)
    ra, xa, wa, va = random_turn(rng), *rng.normal(size=(3, 3))
    com_a, com_b = mech.com("a"), mech.com("b")
    at_a, at_b = (mech.point(mech.joints["j"].point_a), mech.point(mech.joints["j"].point_b))
    turn, shift, (angular, linear) = joint.rotation(q), joint.translation(q), joint.subspace(q)
    rb = ra if turn is None else ra @ turn
    end = xa + ra @ (at_a - com_a + (0 if shift is None else shift))
    wb, xb = wa + ra @ angular @ v, end - rb @ (at_b - com_b)
    vb = va + np.cross(wa, end - xa) + ra @ linear @ v + np.cross(wb, xb - end)
    state = {"a": (ra, xa, wa, va), "b": (rb, xb, wb, vb)}
    tau = rng.normal(size=joint.nv)
    sol = absolute_accelerations(mech, state, efforts={"j": tau})

    assert np.abs(sol.residual["j"]).max(initial=0) < 1e-14
    assert sol.velocity_residual < 1e-14
    assert sol.rank == len(sol.multipliers["j"]) == len(joint.rows) == 6 - joint.nv
    got_q, got_v = StateMotion(mech, state).joint("j")
    np.testing.assert_allclose(got_q, q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(got_v, v, rtol=0, atol=1e-13)
    # The reaction does no work on the joint's motions.
    n, f = np.split(np.asarray(sol.reactions["j"]), 2)
    assert np.abs((ra @ angular).T @ n + (ra @ linear).T @ f).max(initial=0) < 1e-13

    # Power: efforts and gravity change the kinetic energy, constraints do not.
    power = tau @ v
    for name, (r, _, w, u) in state.items():
        body, acc = bodies[name], np.asarray(sol.accelerations[name])
        inertia = r @ body.inertia @ r.T
        power -= w @ inertia @ acc[:3] + body.mass * u @ (acc[3:] - np.array([0, 0, -9.81]))
    assert abs(power) < 1e-12

    # Along the motion with these accelerations the rows stay zero to third order.
    def later(h):
        def at(n):
            r, x, w, u = state[n]
            acc = sol.accelerations[n]
            turn = jax.scipy.linalg.expm(skew(w * h + acc[:3] * h * h / 2))
            return turn @ r, x + u * h + acc[3:] * h * h / 2, w, u

        moved = {n: at(n) for n in state}
        return np.asarray(constraint(*StateMotion(mech, moved).halves("j")))

    h = 1e-3
    second = (later(h) + later(-h)) / h**2
    assert np.abs(second).max(initial=0) < 2e-3


def test_rod_pushes_apart_and_massless_links_are_allowed():
    # A mass on a vertical rod, and the same rod as a massless body with two balls.
    rod = mbd.Mechanism(
        {"m": mbd.Body(2.0, (0, 0, 1), 0.1)},
        {"f": mbd.Free("ground", "m"), "rod": mbd.Rod("ground", "m", (0, 0, 0), (0, 0, 1))},
    )
    still = (np.eye(3), np.array([0.0, 0, 1]), Z, np.array([0.5, 0, 0]))
    sol = absolute_accelerations(rod, {"m": still})
    # centripetal 0.25 m/s² towards the pivot leaves m (g − v²/l) for the rod
    np.testing.assert_allclose(sol.multipliers["rod"], [2.0 * (9.81 - 0.25)], rtol=1e-13)
    link = mbd.Mechanism(
        {"m": mbd.Body(2.0, (0, 0, 1), 0.1), "link": mbd.Body(0.0, (0, 0, 0.5))},
        {
            "low": mbd.Spherical("ground", "link", (0, 0, 0)),
            "high": mbd.Spherical("link", "m", (0, 0, 1)),
        },
    )
    omega = np.array([0, 0.5, 0])
    state = {"m": still, "link": (np.eye(3), np.array([0, 0, 0.5]), omega, np.array([0.25, 0, 0]))}
    both = absolute_accelerations(link, state)
    np.testing.assert_allclose(both.accelerations["m"], sol.accelerations["m"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.reactions["low"][3:], [0, 0, 19.12], rtol=0, atol=1e-12)
    assert both.imbalance < 1e-13


def test_driven_pendulum():
    """The drive's effort holds the weight and turns the bob as prescribed."""
    m, length, t = 1.3, 0.7, 0.6
    mech = mbd.Mechanism(
        {"bob": mbd.Body(m, (length, 0, 0), (0.01, 0.05, 0.05))},
        {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0))},
        drives={"motor": mbd.Drive("hinge", lambda t, p: p * t**2, 2.0)},
    )
    angle, spin = 2.0 * t**2, np.array([0, 4.0 * t, 0])
    r = turned([0, 1, 0], angle)
    x = r @ [length, 0, 0]
    sol = absolute_accelerations(mech, {"bob": (r, x, spin, np.cross(spin, x))}, t)
    effort = (0.05 + m * length**2) * 4.0 - m * 9.81 * length * np.cos(angle)
    np.testing.assert_allclose(sol.multipliers["motor"], [effort], rtol=1e-12)
    np.testing.assert_allclose(sol.accelerations["bob"][:3], [0, 4.0, 0], rtol=0, atol=1e-12)
    assert abs(float(sol.reactions["hinge"][1])) < 1e-12, "the effort is no part of the reaction"
    assert sol.rank == 6 and abs(float(sol.residual["motor"][0])) < 1e-15
    assert float(sol.velocity_residual) < 1e-14


def machine():
    """A geared pair of arms, one of them in a loop with a rod, and a driven point."""
    y = (0, 1, 0)
    return mbd.Mechanism(
        bodies={
            "arm": mbd.Body(1.0, (0.3, 0, 0.1), 0.02),
            "wheel": mbd.Body(0.7, (1.0, 0, 0.2), 0.03),
            "mass": mbd.Body(2.0, (0.5, 0.3, 0.5), 0.05),
        },
        joints={
            "left": mbd.Revolute("ground", "arm", (0, 0, 0), y),
            "right": mbd.Cylindrical("wheel", "ground", (1, 0, 0), (0.1, 1, 0)),
            "ball": mbd.Spherical("arm", "mass", (0.5, 0, 0.4)),
            "rod": mbd.Rod("wheel", "mass", (1.1, 0.1, 0.3), (0.6, 0.4, 0.6)),
        },
        couplings={"gear": mbd.Gear("left", "right", ratio=0.7)},
        drives={
            "lift": mbd.PointDrive("mass", (0.5, 0.3, 0.5), "z", lambda t, p: 0.5 + p * t, 0.2),
            "slide": mbd.Drive("right", lambda t, p: 0.1 * t**2, index=1),
        },
        gravity=(0.3, 0.5, -9.0),
    )


def test_couplings_and_drives_as_the_recursion_has_them():
    mech, t = machine(), 0.0
    top, q = mbd.topology(mech), mbd.neutral(mech)
    jacobian = mbd.constraint_jacobian(mech, q)
    rates = np.zeros(top.nc)
    rates[top.layout["lift"].rows] = 0.2
    free = np.random.default_rng(0).normal(size=top.nv)
    v = free + np.linalg.lstsq(jacobian, rates - jacobian @ free)[0]
    inputs = {"ball": np.array([0.2, -0.1, 0.3]), "left": 0.5}

    @jax.jit
    def each(q, v):
        vdot, lam = mbd.forward_dynamics(mech, q, v, t, inputs)
        return (
            (vdot, lam, mbd.joint_reactions(mech, q, v, vdot, lam, t, inputs)),
            absolute_forward_dynamics(mech, q, v, t, inputs),
            constraint_matrix_reactions(mech, q, v, vdot, t, inputs),
        )

    (vdot, lam, reactions), (ours, sol), found = each(q, v)
    np.testing.assert_allclose(ours, vdot, rtol=0, atol=1e-10 * np.abs(vdot).max())
    size = np.abs(lam).max()
    for name in ("gear", "lift", "slide"):
        row = lam[top.layout[name].rows][0]
        np.testing.assert_allclose(sol.multipliers[name][0], row, rtol=0, atol=1e-10 * size)
        np.testing.assert_allclose(found.multipliers[name], row, rtol=0, atol=1e-10 * size)
        assert np.abs(sol.residual[name]).max() < 1e-14
    assert float(sol.velocity_residual) < 1e-13
    for name, wrench in reactions.items():
        np.testing.assert_allclose(sol.reactions[name], wrench, rtol=0, atol=1e-10 * size)
        np.testing.assert_allclose(found.reactions[name], wrench, rtol=0, atol=1e-10 * size)


@pytest.mark.slow
def test_planar_mechanism_and_joint_types_with_rows_of_their_own():
    """Joints in the plane and a point on a line take part with what they define themselves."""
    flat = mbd.Mechanism(
        bodies={
            "crank": mbd.Body(0.5, (0.1, 0.0), 0.01),
            "rod": mbd.Body(0.8, (0.35, 0.05), 0.02),
            "block": mbd.Body(0.3, (0.5, 0.0), 0.01),
        },
        joints={
            "pivot": mbd.Revolute("ground", "crank", (0.0, 0.0)),
            "pin": mbd.Revolute("crank", "rod", (0.2, 0.1)),
            "wrist": mbd.Revolute("rod", "block", (0.5, 0.0)),
            "slot": mbd.Prismatic("ground", "block", (0.5, 0.0), (1.0, 0.0)),
        },
    )
    q = mbd.neutral(flat)
    v = mbd.assemble_velocity(flat, q, {"pivot": 2.0})
    vdot, lam = mbd.forward_dynamics(flat, q, v)
    ours, sol = absolute_forward_dynamics(flat, q, v)
    np.testing.assert_allclose(ours, vdot, rtol=1e-10)
    found = constraint_matrix_reactions(flat, q, v, vdot)
    for name, wrench in mbd.joint_reactions(flat, q, v, vdot, lam).items():
        np.testing.assert_allclose(sol.reactions[name], wrench, atol=1e-10)
        np.testing.assert_allclose(found.reactions[name], wrench, atol=1e-10)


def test_angles_of_several_turns_are_those_of_q():
    """A torsion spring wound up twice: the state alone would lose the turns."""
    mech = mbd.Mechanism(
        {"arm": mbd.Body(1.0, (0, 0, 0), 0.5)},
        {"hinge": mbd.Revolute("ground", "arm", (0, 0, 0), (0, 0, 1))},
        {"spring": mbd.TorsionSpring("hinge", stiffness=0.3)},
    )
    q, rest = np.array([4 * np.pi + 0.1]), np.zeros(1)
    vdot, _ = absolute_forward_dynamics(mech, q, rest)
    np.testing.assert_allclose(vdot, -0.3 * q / 0.5, rtol=1e-12)


def test_refuses_what_it_cannot_do():
    joints = {"hinge": mbd.Revolute("ground", "b", (0, 0, 0), (0, 1, 0))}
    bodies = {"b": mbd.Body(1.0, (1, 0, 0))}
    state = {"b": (np.eye(3), np.array([1.0, 0, 0]), Z, Z)}
    mech = mbd.Mechanism(bodies, joints)
    with pytest.raises(ValueError, match="no entry for"):
        absolute_accelerations(mech, {})
    with pytest.raises(ValueError, match="no joints"):
        absolute_accelerations(mech, state, efforts={"knee": [1.0]})
    with pytest.raises(ValueError, match="shape"):
        absolute_accelerations(mech, state, efforts={"hinge": [1.0, 2.0]})
