"""Linkages and platforms of the zoo against their closed forms and published numbers."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from repository import REFERENCES

import jaxmbd as mbd
from jaxmbd import zoo
from jaxmbd.spatial import bryant_rotation


def walk(mech, joint, values):
    """Coordinates with a joint held at each of `values` in turn, each from the last."""
    q, out = mbd.neutral(mech), []
    for value in values:
        q = mbd.assemble(mech, known={joint: float(value)}, guess=q).q
        out.append(q)
    return out


@pytest.mark.parametrize("crank", [0.2, 0.5])
def test_quick_return_in_closed_form(crank):
    """A swinging arm, and Whitworth's turning one."""
    pivots, arm, link = 0.4, 0.8, 1.7
    mech = zoo.quick_return(crank=crank, arm=arm, link=link)
    turns = np.linspace(0.0, 2 * np.pi, 25)
    for turn, q in zip(turns, walk(mech, "C", turns), strict=True):
        alpha = np.pi / 2 + turn
        psi = np.arctan2(pivots + crank * np.sin(alpha), crank * np.cos(alpha))
        end = arm * np.array([np.cos(psi), np.sin(psi), 0.0])
        np.testing.assert_allclose(mbd.point_position(mech, q, "arm", "E"), end, rtol=0, atol=1e-12)
        ram = end[0] + np.sqrt(link**2 - (arm - end[1]) ** 2)
        np.testing.assert_allclose(
            mbd.point_position(mech, q, "ram", "F"), [ram, arm, 0.0], rtol=0, atol=1e-12
        )


def test_quick_return_is_quick_in_one_direction():
    """The arm turns back where the crank is across it: (π + 2δ)/(π − 2δ), sin δ = crank/pivots."""
    mech = zoo.quick_return(crank=0.2, pivots=0.4)
    place = mbd.topology(mech).layout["O"].v
    delta = np.arcsin(0.5)
    for turn in (np.pi / 2 + delta, -np.pi / 2 - delta):  # from the drawn, upright crank
        q = walk(mech, "C", [turn / 2, turn])[-1]
        v = mbd.assemble_velocity(mech, q, {"C": 1.0})
        assert abs(float(v[place][0])) < 1e-12
        assert abs(float(mbd.joint_coordinates(mech, q)["O"][0])) == pytest.approx(delta, abs=1e-12)


def test_five_bar_inverse_kinematics():
    mech = zoo.five_bar()
    place = mbd.topology(mech).layout
    assert np.abs(mbd.constraint_residual(mech, mbd.neutral(mech))).max() < 1e-15
    drawn = zoo.five_bar_angles((0.1, 0.45))
    for tip in ((0.15, 0.42), (0.02, 0.5), (0.1, 0.4)):
        left, right = zoo.five_bar_angles(tip)
        held = {"A": float(left - drawn[0]), "E": float(right - drawn[1])}
        q = mbd.assemble(mech, known=held).q
        found = mbd.point_position(mech, q, "left_distal", "C")
        np.testing.assert_allclose(found, [*tip, 0.0], rtol=0, atol=1e-12)
        # Speeds: the derivative of the closed form.
        slope = jax.jacfwd(lambda x: jnp.stack(zoo.five_bar_angles(x)))(jnp.array(tip))
        rates = slope @ np.array([0.3, -0.2])
        v = mbd.assemble_velocity(mech, q, {"A": rates[0], "E": rates[1]})
        speed = mbd.point_velocity(mech, q, v, "right_distal", "C")
        np.testing.assert_allclose(speed, [0.3, -0.2, 0.0], rtol=0, atol=1e-12)
    assert place["C"].rows is not None and mbd.mobility(mech).kutzbach == 2


def test_spatial_slider_crank_of_the_library():
    data = json.loads((REFERENCES / "iftomm_spatial_slider_crank.json").read_text())
    mech = zoo.spatial_slider_crank()
    q = mbd.neutral(mech)
    v = mbd.assemble_velocity(mech, q, {"crank": 6.0})
    found = mbd.body_velocities(mech, q, v)
    np.testing.assert_allclose(found["rod"][:3], [1.92, -0.96, 0.48], rtol=0, atol=1e-12)
    assert float(mbd.kinetic_energy(mech, q, v)) == pytest.approx(data["initial_energy"]["T"])
    assert float(mbd.potential_energy(mech, q)) == pytest.approx(data["initial_energy"]["V"])
    vdot, _ = mbd.forward_dynamics(mech, q, v)
    acc = mbd.body_accelerations(mech, q, v, vdot)
    for name, published in data["initial_accelerations_world"].items():
        ours = acc["rod" if name == "conrod" else name]
        np.testing.assert_allclose(ours[:3], published["angular"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(ours[3:], published["linear"], rtol=0, atol=1e-9)
    for turn, q in zip((0.5, 1.5, 3.0), walk(mech, "crank", (0.5, 1.5, 3.0)), strict=True):
        y, z = 0.1 - 0.08 * np.sin(turn), 0.12 + 0.08 * np.cos(turn)
        slider = mbd.point_position(mech, q, "slider", "C")
        np.testing.assert_allclose(
            slider, [np.sqrt(0.09 - y * y - z * z), 0, 0], rtol=0, atol=1e-12
        )


def stewart_gough_lengths(rotation, translation, base=0.6, platform=0.35, height=0.8):
    """Lengths (6,) of the legs: ``|c + t + R (p_i − c) − b_i|``, c the platform's drawn centre."""
    low = np.radians([-15.0, 15.0, 105.0, 135.0, 225.0, 255.0])  # pairs 30° and 20° apart
    high = np.radians([-50.0, 50.0, 70.0, 170.0, 190.0, 290.0])
    feet = base * np.stack([np.cos(low), np.sin(low), np.zeros(6)], axis=1)
    tops = platform * np.stack([np.cos(high), np.sin(high), np.zeros(6)], axis=1)
    legs = jnp.array([0.0, 0.0, height]) + translation + tops @ rotation.T - feet
    return jnp.sqrt(jnp.sum(legs * legs, axis=1))


def test_stewart_gough_lengths_give_the_pose():
    """Inverse kinematics in closed form, direct by assembling with the legs held."""
    mech = zoo.stewart_gough()
    drawn = stewart_gough_lengths(np.eye(3), np.zeros(3))
    top = mbd.topology(mech)
    assert (top.nv, top.nc) == (21, 15) and mbd.mobility(mech).kutzbach == 6
    shift, angles = np.array([0.05, -0.03, 0.06]), jnp.array([0.1, -0.15, 0.2])
    rotation = bryant_rotation(angles)
    legs = stewart_gough_lengths(rotation, shift) - drawn
    q = mbd.assemble(mech, known={f"leg_{i + 1}": legs[i] for i in range(6)}).q
    pose = mbd.poses(mech, q)["platform"]
    np.testing.assert_allclose(pose.position, shift + [0, 0, 0.8], rtol=0, atol=1e-11)
    np.testing.assert_allclose(pose.rotation, rotation, rtol=0, atol=1e-11)
    # Speeds of the legs for a twist: L̇_i = u_i · (v + ω × r_i), by differentiating the lengths.
    rate = jax.jvp(
        lambda t: stewart_gough_lengths(rotation, jnp.asarray(shift) + t),
        (jnp.zeros(3),), (jnp.array([0.1, 0.2, -0.3]),),
    )[1]  # fmt: skip
    v = mbd.assemble_velocity(mech, q, {f"leg_{i + 1}": rate[i] for i in range(6)})
    twist = mbd.body_velocities(mech, q, v)["platform"]
    np.testing.assert_allclose(twist, [0, 0, 0, 0.1, 0.2, -0.3], rtol=0, atol=1e-11)


@pytest.mark.slow
def test_stewart_gough_carries_its_weight():
    """At rest, the legs' efforts balance the weight: virtual work of a vertical motion."""
    mech = zoo.stewart_gough()
    q, top = mbd.neutral(mech), mbd.topology(mech)
    rest = np.zeros(top.nv)
    names = [f"leg_{i}" for i in range(1, 7)]
    tau, _ = mbd.inverse_dynamics(mech, q, rest, rest, actuated=names)
    efforts = np.array([float(tau[top.layout[n].v][0]) for n in names])
    np.testing.assert_allclose(efforts, efforts[0], rtol=1e-9)

    def height(z):
        return stewart_gough_lengths(jnp.eye(3), jnp.array([0.0, 0.0, 1.0]) * z)

    rise = jax.jvp(height, (jnp.array(0.0),), (jnp.array(1.0),))[1]
    v = mbd.assemble_velocity(mech, q, {n: rise[i] for i, n in enumerate(names)})
    lifted = sum(
        float(mech.bodies[b].mass) * float(twist[5]) * 9.81
        for b, twist in mbd.body_velocities(mech, q, v).items()
    )
    assert float(efforts @ np.asarray(rise)) == pytest.approx(lifted, rel=1e-10)
    assert efforts[0] > 0.0


def delta_robot_angles(position, radii=(0.2, 0.05), arm=0.25, rod=0.6):
    """Shoulder angles (3,) below the horizontal for a position (3,) of the platform.

    Let (x, z) be the platform's position in an arm's plane relative to the shoulder, minus the
    difference of the radii, and y the coordinate across. ``|(x − a cos θ, y, z + a sin θ)| = rod``
    then means ``−x cos θ + z sin θ = K`` with ``K = (rod² − a² − x² − y² − z²)/(2 a)``. Its roots
    are ``θ = −atan2(z, x) ± arccos(−K/|(x, z)|)``; the minus sign has the elbow outward.
    """
    turn = 2.0 * np.pi / 3.0 * np.arange(3)
    x = position[0] * np.cos(turn) + position[1] * np.sin(turn) + radii[1] - radii[0]
    y, z = position[1] * np.cos(turn) - position[0] * np.sin(turn), position[2]
    k = (rod**2 - arm**2 - x * x - y * y - z * z) / (2.0 * arm)
    return -jnp.arctan2(z, x) - jnp.arccos(-k / jnp.sqrt(x * x + z * z))


def test_delta_robot_inverse_kinematics():
    mech = zoo.delta_robot()
    q0 = mbd.neutral(mech)
    assert np.abs(mbd.constraint_residual(mech, q0)).max() < 1e-15
    drawn = mbd.poses(mech, q0)["platform"].position
    np.testing.assert_allclose(delta_robot_angles(drawn), 0.2, rtol=0, atol=1e-12)
    place = np.array([0.08, -0.05, float(drawn[2]) - 0.04])
    angles = np.asarray(delta_robot_angles(place)) - 0.2
    q = mbd.assemble(mech, known={f"shoulder_{i + 1}": angles[i] for i in range(3)}).q
    pose = mbd.poses(mech, q)["platform"]
    np.testing.assert_allclose(pose.position, place, rtol=0, atol=1e-12)
    np.testing.assert_allclose(pose.rotation, np.eye(3), rtol=0, atol=1e-12)
    slope = jax.jacfwd(delta_robot_angles)(jnp.asarray(place))
    rates = slope @ np.array([0.2, 0.1, -0.3])
    v = mbd.assemble_velocity(mech, q, {f"shoulder_{i + 1}": rates[i] for i in range(3)})
    twist = mbd.body_velocities(mech, q, v)["platform"]
    np.testing.assert_allclose(twist, [0, 0, 0, 0.2, 0.1, -0.3], rtol=0, atol=1e-12)
    # Torques at rest carry the weight: τ = ∂V/∂θ through the inverse of the closed form's slope.
    rest = np.zeros(mbd.topology(mech).nv)
    names = [f"shoulder_{i + 1}" for i in range(3)]
    tau, _ = mbd.inverse_dynamics(mech, q, rest, rest, actuated=names)
    layout = mbd.topology(mech).layout
    found = np.array([float(tau[layout[n].v][0]) for n in names])
    arms = -0.5 * 9.81 * 0.125 * np.cos(angles + 0.2)
    platform = 0.4 * 9.81 * np.linalg.inv(slope)[2]
    np.testing.assert_allclose(found, arms + platform, rtol=1e-9)


@pytest.mark.parametrize(
    "build",
    [
        "quick_return",
        *(pytest.param(b, marks=pytest.mark.slow) for b in ("five_bar", "delta_robot")),
    ],
)
def test_energy_is_kept(build):
    mech = getattr(zoo, build)()
    q = mbd.neutral(mech)

    def energy(t, q, v):
        return mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q)

    first = {"quick_return": {"C": 3.0}, "five_bar": {"A": 0.5}, "delta_robot": {"shoulder_1": 1.0}}
    v = mbd.assemble_velocity(mech, q, first[build])
    run = mbd.simulate(mech, q, v, t1=0.2, dt=5e-4, save_every=20, outputs=energy)
    swing = float(np.ptp([mbd.kinetic_energy(mech, *x) for x in zip(run.q, run.v, strict=True)]))
    assert swing > 1e-2 and float(np.ptp(run.outputs)) < 1e-8 * swing
