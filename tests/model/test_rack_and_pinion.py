"""A rack whose teeth load the bearings: free bodies in NumPy, motion, energy, refusals."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import formulations, lanes
from jaxmbd.observe import Driven, Snapshot, ToothForce, constant_speed

X, Y, Z = np.eye(3)
ALPHA = np.deg2rad(20.0)
MASS, INERTIA, RADIUS = 3.0, 2e-4, 0.012


def steering(beta=0.0, tilt=0.0, radius=RADIUS, turned=None, swap=(False, False), alpha=ALPHA):
    """A pinion about z and a rack along x, on its side −y for a positive radius; tilted rack.

    The rack's guide and its centre of mass are off the pitch point; all may be turned.
    """
    r = np.eye(3) if turned is None else turned
    w = np.cos(tilt) * X + np.sin(tilt) * Z
    at, guide = np.array([0.01, 0.02, 0.05]), np.array([0.1, -0.03, 0.02])
    ends = [(n, "ground") if s else ("ground", n) for n, s in zip(("p", "r"), swap, strict=True)]
    return mbd.Mechanism(
        {
            "p": mbd.Body(0.5, r @ at, np.full(3, INERTIA)),
            "r": mbd.Body(MASS, r @ (guide + 0.01 * Y), np.full(3, 1e-3)),
        },
        {
            "p": mbd.Revolute(*ends[0], at=r @ at, axis=r @ Z),
            "r": mbd.Prismatic(*ends[1], at=r @ guide, axis=r @ w),
        },
        couplings={
            "teeth": mbd.RackAndPinion(
                *("p", "r", radius, 0.003),
                **{"pressure_angle": alpha, "helix": beta, "at": r @ (at + 0.04 * Z)},
            )
        },
        gravity=np.zeros(3),
    )


@jax.jit
def dynamics(mech, q, v, inputs):
    vdot, lam = mbd.forward_dynamics(mech, q, v, inputs=inputs)
    return vdot, lam, mbd.joint_reactions(mech, q, v, vdot, lam, inputs=inputs)


def free_bodies(torque, push, beta, radius=RADIUS):
    """Acceleration of the pinion, and bearing and guide wrenches, from the tooth force alone.

    The tooth force on the rack is ``F (x − tan β z) − |F| tan α / cos β y`` for a rack on −y.
    """
    a = (torque + radius * push) / (INERTIA + radius**2 * MASS)
    force = (MASS * radius * a - push) / np.sign(radius)  # along the motion of the teeth
    side = -np.sign(radius)
    teeth = np.array([np.sign(radius) * force, 0.0, -np.tan(beta) * force])
    teeth[1] = side * abs(force) * np.tan(ALPHA) / np.cos(beta)
    at, guide = np.array([0.01, 0.02, 0.05]), np.array([0.1, -0.03, 0.02])
    p = at + 0.04 * Z + side * abs(radius) * Y
    bearing = np.concatenate([np.cross(p - at, teeth), teeth])  # on the pinion from the ground
    bearing[2] = 0.0  # this is the torque's part
    moved = np.array([0.003 + radius * 0.3, 0.0, 0.0])
    along = MASS * radius * a * X - push * X
    hold = along - teeth
    com = guide + moved + 0.01 * Y
    # Moments about the guide's point, which moves with the rack.
    moment = np.cross(com - guide - moved, MASS * radius * a * X) - np.cross(
        p - guide - moved, teeth
    )
    return a, force, bearing, np.concatenate([moment, hold])


@pytest.mark.parametrize(("beta", "radius"), [(0.0, RADIUS), (0.4, RADIUS), (-0.3, -RADIUS)])
def test_bearing_and_guide_are_those_of_free_bodies(beta, radius):
    mech = steering(beta, radius=radius)
    q, v = np.array([0.3, 0.003 + radius * 0.3]), np.array([2.0, 2.0 * radius])
    for torque, push in ((4.0, -30.0), (-1.0, 900.0)):
        vdot, lam, found = dynamics(mech, q, v, {"p": torque, "r": push})
        a, force, bearing, guide = free_bodies(torque, push, beta, radius)
        np.testing.assert_allclose(vdot, [a, radius * a], rtol=1e-10)
        at = Snapshot(mech, q, v, inputs={"p": torque, "r": push}, multipliers=lam, vdot=vdot)
        parts = [float(ToothForce("teeth", p).value(at)) for p in ("tangential", "radial", "axial")]
        wanted = [force, abs(force) * np.tan(ALPHA) / np.cos(beta), -force * np.tan(beta)]
        np.testing.assert_allclose(parts, wanted, rtol=1e-9, atol=1e-9)
        size = 1e-9 * abs(force)
        np.testing.assert_allclose(found["p"], bearing, rtol=0, atol=size)
        np.testing.assert_allclose(found["r"], guide, rtol=0, atol=size)


def test_other_formulations_oblique_racks_and_declarations_agree():
    """Newton-Euler in absolute coordinates has the tooth force itself, so its power must vanish."""
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    # A wheel of 25° with a rack that moves 15° off, as in a car.
    one = steering(0.44, 0.26, turned=turn)
    v, inputs = np.array([3.0, 3.0 * RADIUS]), {"p": 2.0, "r": -50.0}
    q = np.array([0.5, 0.003 + 0.5 * RADIUS])
    vdot, lam, found = dynamics(one, q, v, inputs)
    power = 2.0 * v[0] - 50.0 * v[1]
    rate = INERTIA * v[0] * vdot[0] + MASS * v[1] * vdot[1]
    np.testing.assert_allclose(rate, power, rtol=1e-10)
    other, solution = formulations.absolute_forward_dynamics(one, q, v, inputs=inputs)
    np.testing.assert_allclose(other, vdot, rtol=1e-9)
    for name, wrench in found.items():
        size = 1e-9 * np.abs(wrench).max()
        np.testing.assert_allclose(solution.reactions[name], wrench, rtol=0, atol=size)
    # the same bodies, declared the other way round: both coordinates change their sign
    swapped = steering(0.44, 0.26, turned=turn, swap=(True, True))
    swapped = swapped.replace(
        couplings={
            "teeth": mbd.RackAndPinion(
                *("p", "r", RADIUS, -0.003),
                **{"pressure_angle": ALPHA, "helix": 0.44, "at": one.couplings["teeth"].at},
            )
        }
    )
    again = dynamics(swapped, -q, -v, {"p": -2.0, "r": 50.0})
    forces = [
        ToothForce("teeth").value(Snapshot(m, s * q, s * v, multipliers=x[1], vdot=x[0]))
        for m, s, x in ((one, 1.0, (vdot, lam)), (swapped, -1.0, again))
    ]
    np.testing.assert_allclose(forces[1], -forces[0], rtol=1e-9)
    np.testing.assert_allclose(again[0], -vdot, rtol=1e-9)
    np.testing.assert_allclose(again[2]["p"][3:], -found["p"][3:], rtol=1e-9)
    # a mirror image
    image = dynamics(mbd.mirror(one, "y"), q, v, inputs)
    np.testing.assert_allclose(image[0], vdot, rtol=1e-9)
    signs = np.array([-1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
    size = 1e-9 * np.abs(found["p"]).max()
    np.testing.assert_allclose(image[2]["p"], signs * found["p"], rtol=0, atol=size)


def test_without_a_pressure_angle_it_is_a_pure_couple():
    mech = steering(alpha=None)
    q, v = np.array([0.3, 0.003 + RADIUS * 0.3]), np.array([2.0, 2.0 * RADIUS])
    _, _, found = dynamics(mech, q, v, {"p": 4.0, "r": -30.0})
    np.testing.assert_allclose(found["p"][3:], 0.0, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="'teeth' is a pure couple; give the Rack"):
        Driven({"p": constant_speed(1.0)}, [0.0, 1.0], {"f": ToothForce("teeth")})(mech)


def test_files_keep_the_teeth_and_old_files_are_pure_couples():
    mech = steering(0.3)
    data = mbd.io.to_dict(mech)
    assert mbd.io.from_dict(data) == mech
    (fields,) = data["couplings"]
    for name in ("pressure_angle", "helix", "at"):
        del fields[name]
    old = mbd.io.from_dict(data).couplings["teeth"]
    assert old.pressure_angle is None and old.radius == RADIUS


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"pressure_angle": 20.0}, "pressure_angle is 20 rad; give an angle below 90°"),
        ({"rack": "hinge"}, "teeth need a Revolute 'p' and a Prismatic 'hinge'"),
        ({"rack": "far"}, "have no bodies in common"),
        ({"rack": "along"}, "moves along the axis of 'p'"),
        ({"rack": "slant", "helix": -0.9}, "moves along the axis of 'p', or along its teeth"),
    ],
)
def test_what_has_no_teeth_is_refused(change, text):
    given = {"pinion": "p", "rack": "r", "radius": 0.01, "pressure_angle": ALPHA} | change
    with pytest.raises(ValueError, match=f"coupling 'teeth'.*{text}"):
        mbd.Mechanism(
            {n: mbd.Body(1.0, 0 * X, np.ones(3)) for n in "prhasf"},
            {
                "p": mbd.Revolute("ground", "p", at=0 * X, axis=Z),
                "r": mbd.Prismatic("ground", "r", at=0 * X, axis=X),
                "hinge": mbd.Revolute("ground", "h", at=0 * X, axis=X),
                "along": mbd.Prismatic("ground", "a", at=0 * X, axis=Z),
                "slant": mbd.Prismatic("ground", "s", at=0 * X, axis=X - Z),
                "far": mbd.Prismatic("r", "f", at=0 * X, axis=X),
            },
            couplings={"teeth": mbd.RackAndPinion(**given)},
        )


def test_derivatives_and_batches_of_the_bearing_load():
    """The radial force is ``F tan α`` of straight teeth, ``F = T / radius`` where all rests."""
    q = np.array([0.0, 0.003])

    def side(alpha, radius):
        mech = steering(alpha=alpha, radius=radius)
        inputs = {"p": 2.0, "r": -2.0 / radius}
        vdot, lam = mbd.forward_dynamics(mech, q, 0.0 * q, inputs=inputs)
        return mbd.joint_reactions(mech, q, 0.0 * q, vdot, lam, inputs=inputs)["p"][4]

    alphas, radii = np.array([0.2, 0.35]), np.array([0.012, 0.02])
    found = lanes.vmap(side)(alphas, radii)
    np.testing.assert_allclose(found, -2.0 / radii * np.tan(alphas), rtol=1e-10)
    slopes = jax.jacfwd(side, (0, 1))(alphas[0], radii[0])
    force = 2.0 / radii[0]
    wanted = -force / np.cos(alphas[0]) ** 2, force / radii[0] * np.tan(alphas[0])
    np.testing.assert_allclose(slopes, wanted, rtol=1e-9)
