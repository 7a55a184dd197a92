"""Characteristics of corners with bushings: motions of the equilibrium, not of the rows alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.observe import HoldingEffort, Settle, Sweep
from jaxmbd.suspension import Characteristic, Corner, kinematics_sweep, zoo_corner

ROLES = Corner("arm", "wheel", 0.3, spring="spring", spindle=(0.02, 1.0, 0.03))
HEIGHT = mbd.PointTravel("arm", "wheel", "z")
STEP = 1e-3
PLACES = tuple(STEP * np.arange(-2, 3))
FIRST, SECOND = np.array([1, -8, 0, 8, -1]) / 12, np.array([-1, 16, -30, 16, -1]) / 12
MOTION = ("roll_centre_height", "motion_ratio", "wheel_rate", "side_centre_z")


def swing_arm(stiffness=None):
    """A wheel on an arm, sprung and loaded: on two bushings, or on a hinge."""
    forces = {
        "spring": mbd.SpringDamper(
            "ground", "arm", "top", "low", stiffness=3e4, free_length=0.55, damping=0.0
        ),
        "load": mbd.PointForce("arm", "wheel", force=(100.0, -300.0, 3500.0)),
    }
    joint = mbd.Revolute("ground", "arm", at="front", axis=("rear", "front"))
    if stiffness is not None:
        joint = mbd.Free("ground", "arm")
        k = stiffness * np.array([0.0, 0.0, 0.0, 1.0, 0.6, 1.4])
        forces |= {n: mbd.Bushing("ground", "arm", at=n, stiffness=k) for n in ("front", "rear")}
    return mbd.Mechanism(
        bodies={"arm": mbd.Body(20.0, com=(0.0, 0.5, 0.02), inertia=np.diag([0.5, 0.8, 1.0]))},
        joints={"joint": joint},
        forces=forces,
        points={
            "front": (0.35, 0.25, 0.05),
            "rear": (-0.25, 0.35, 0.0),
            "wheel": (0.0, 0.75, 0.0),
            "low": (0.02, 0.6, 0.05),
            "top": (0.0, 0.5, 0.45),
        },
    )


SOFT = swing_arm(2e5)


def observed(names=MOTION, roles=ROLES):
    """Characteristics, and the gradient of toe."""
    return {n: Characteristic(roles, n) for n in names} | {
        "toe_gradient": Characteristic(roles, "toe", "travel")
    }


def differences(mech, sweep, roles):
    """The same of neighbouring settled poses, from places of points alone."""
    q = sweep.trajectory(mech).q

    def at(body, point):
        return np.stack([mbd.point_position(mech, x, body, point) for x in q])

    def d(y):
        return FIRST @ y / STEP

    centre = at(roles.upright, roles.wheel_centre)
    turn = np.stack([mbd.poses(mech, x)[roles.upright].rotation for x in q])
    spin = turn @ (np.asarray(roles.spindle) / np.linalg.norm(roles.spindle))
    down = spin[2] * spin[2, 2] - [0, 0, 1]
    arm = roles.tyre_radius * down / np.linalg.norm(down)
    contact, u = centre[2] + arm, d(centre) + d(turn.reshape(5, 9)).reshape(3, 3) @ turn[2].T @ arm
    spring = mech.forces[roles.spring]
    length = np.linalg.norm(at("ground", "top") - at(spring.b, "low"), axis=1)
    energy = 0.5 * spring.stiffness * (length - spring.free_length) ** 2
    rate = d(turn.reshape(5, 9)).reshape(3, 3) @ turn[2].T
    v = d(centre)
    return {
        "roll_centre_height": contact[1] * u[1] / u[2],
        "motion_ratio": -d(length),
        "wheel_rate": SECOND @ energy / STEP**2,
        "side_centre_z": centre[2, 2] - v[0] / rate[0, 2] - contact[2],
        "toe_gradient": d(np.arctan2(spin[:, 0], spin[:, 1])),
    }


def test_motions_of_a_corner_with_bushings_are_those_of_its_equilibria():
    sweep = Sweep({HEIGHT: PLACES}, observed(), settle=True)
    found, right = sweep(SOFT), differences(SOFT, sweep, ROLES)
    assert int(found["status"]) == 0
    for name, value in right.items():
        np.testing.assert_allclose(found[name][2], value, rtol=1e-7, err_msg=name)


@pytest.mark.slow
def test_stiff_bushings_are_a_hinge():
    hinged, stiff = (
        Sweep({HEIGHT: (0.0, 0.02)}, observed(), settle=True)(mech)
        for mech in (swing_arm(), swing_arm(5e9))
    )
    for name in (*MOTION, "toe_gradient"):
        np.testing.assert_allclose(stiff[name], hinged[name], rtol=1e-4, err_msg=name)


@pytest.mark.slow
def test_an_equilibrium_whose_wheel_is_free_travels_alike():
    """With the load carried, the wheel's height held where it is changes nothing."""
    rest = Settle({}, observed() | {"z": Characteristic(ROLES, "wheel_travel")})(SOFT)
    held = Sweep({HEIGHT: (float(rest["z"]),)}, observed(), settle=True)(SOFT)
    for name in (*MOTION, "toe_gradient"):
        np.testing.assert_allclose(rest[name], held[name][0], rtol=1e-9, err_msg=name)


@pytest.mark.slow
def test_what_is_held_in_place_of_the_wheel_is_let_go_with_its_effort():
    low = mbd.PointTravel("arm", "low", "z")
    seen = observed() | {"effort": HoldingEffort(low), "z": Characteristic(ROLES, "wheel_travel")}
    lifted = Settle({low: 0.02}, seen)(SOFT)
    push = mbd.PointForce("arm", "low", force=(0.0, 0.0, float(lifted["effort"])))
    loaded = SOFT.replace(forces={**SOFT.forces, "push": push})
    same = Settle({HEIGHT: float(lifted["z"])}, observed())(loaded)
    for name in (*MOTION, "toe_gradient"):
        np.testing.assert_allclose(lifted[name], same[name], rtol=1e-8, err_msg=name)


@pytest.mark.slow
def test_derivatives_of_settled_characteristics_are_those_of_differences():
    names = ("roll_centre_height", "wheel_rate", "toe_gradient")
    settled = Settle({HEIGHT: 0.01}, observed())

    def column(x):
        rear = jnp.array([0.0, 0.0, 0.0, 1.0, 0.6, 1.4]) * (2e5 + 1e5 * x[3])
        front = SOFT.points["front"] + x[:3]
        numbers = {"points/front": front, "forces/rear/stiffness": rear}
        found = settled(mbd.set_variables(SOFT, numbers))
        return sum(found[n] * size for n, size in zip(names, (1.0, 1e-4, 0.1), strict=True))

    x, direction, h = jnp.zeros(4), jnp.array([0.3, -0.5, 0.7, 0.4]), 1e-4
    slope = mbd.lanes.vmap(lambda d: jax.jvp(column, (x,), (d,))[1])(direction[None])[0]
    by = mbd.lanes.vmap(column)(h * np.arange(-2, 3)[:, None] * direction)
    np.testing.assert_allclose(slope, FIRST @ np.asarray(by) / h, rtol=1e-7)
    gradient = mbd.lanes.vmap(jax.grad(column))(x[None])[0]
    np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-9)


@pytest.mark.slow
def test_a_steered_corner_with_soft_arms():
    """The published double wishbone, its arms' hinges soft: gradients along travel and rack."""
    mech, roles = mbd.zoo.double_wishbone_kinematic(), zoo_corner("double_wishbone_kinematic")
    hinges = [n for n, j in mech.joints.items() if "wishbone" in n and j.a == "ground"]
    assert len(hinges) == 2
    for joint in hinges:
        mech = mbd.soften(mech, joint, (500.0, 5e5))
    load = mbd.PointForce("upright", "axle_outboard", force=(200.0, -900.0, 0.0))
    mech = mech.replace(forces={**mech.forces, "load": load})
    for along in ("travel", "steer"):
        places = {along: PLACES, {"travel": "steer", "steer": "travel"}[along]: 0.01}
        sweep = kinematics_sweep(roles, **places, observe=["toe", "caster"], settle=True)
        found = sweep(mech)
        assert int(found["status"]) == 0
        for name in ("toe", "caster"):
            right = FIRST @ np.asarray(found[name]) / STEP
            np.testing.assert_allclose(found[f"{name}_gradient"][2], right, rtol=1e-6)
