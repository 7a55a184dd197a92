"""MacPherson suspension with rack steering: topology, symmetry, the force on the rack."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.formulations import absolute_forward_dynamics

AMPLITUDE = 0.06
LEFT, RIGHT, BOTH = ("left",), ("right",), ("left", "right")


def steering(sides, **options):
    return mbd.zoo.macpherson_steering(sides, **{"amplitude": AMPLITUDE, **options})


def state(mech, t, travel, rate):
    """Coordinates and speeds at a time, with the struts' travels and their rates."""
    slides = [e.name for e in mech.structure.joints if e.name.endswith("_slide")]
    known, rates = dict.fromkeys(slides, travel), dict.fromkeys(slides, rate)
    q = mbd.assemble(mech, known=known, t=t).q
    return q, mbd.assemble_velocity(mech, q, known=rates, t=t)


def force(mech, q, v, t):
    """The drive's multiplier; the strut's acceleration."""
    top = mbd.topology(mech)
    vdot, lam = mbd.forward_dynamics(mech, q, v, t)
    slide = next(n for n in top.tree if n.endswith("_slide"))
    return lam[top.layout["steer"].rows][0], vdot[top.layout[slide].v][0]


TIMES = (0.0, 0.3, 0.55)


def test_topology_is_that_of_the_paper():
    """Each half: two loops, cut at the two balls of the upright; no branch over four freedoms."""
    top = mbd.topology(steering(LEFT))
    assert top.cut == ("left_arm_ball", "left_tie_outer")
    assert max(top.cdof.values()) == 4 and len(top.bodies) == 5
    whole = mbd.topology(steering(BOTH))
    assert len(whole.cut) == 4 and max(whole.cdof.values()) == 4 and len(whole.bodies) == 9
    free = steering(BOTH, amplitude=None)
    q = mbd.assemble(free).q
    found = mbd.mobility(free, q)
    assert found.dof == 3 and not len(found.redundant)


def test_the_halves_mirror_each_other():
    left, right = steering(LEFT), steering(RIGHT, amplitude=-AMPLITUDE)
    for t in TIMES:
        one, two = (state(m, t, 0.015, -0.1) for m in (left, right))
        f, a = force(left, *one, t)
        g, b = force(right, *two, t)
        np.testing.assert_allclose([g, b], [-f, a], rtol=1e-9)
        x, y = (
            mbd.point_position(m, s[0], f"{n}_upright", f"{n}_wheel_centre")
            for m, s, n in ((left, one, "left"), (right, two, "right"))
        )
        np.testing.assert_allclose(y, x * np.array([1, -1, 1]), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_both_sides_are_two_halves():
    """The halves meet at the driven rack alone: F(x) = f(x) − f(−x), half the rack in each."""
    mech = steering(BOTH)
    half = {"rack_mass": 0.5 * float(mech.bodies["rack"].mass)}
    one, back = steering(LEFT, **half), steering(LEFT, amplitude=-AMPLITUDE, **half)
    for t in TIMES:
        whole, _ = force(mech, *state(mech, t, 0.015, -0.1), t)
        f, g = (force(m, *state(m, t, 0.015, -0.1), t)[0] for m in (one, back))
        assert t == 0.0 or abs(whole) > 100.0
        np.testing.assert_allclose(whole, f - g, atol=1e-8 * (abs(f) + abs(g)))


def test_force_on_the_rack_by_absolute_coordinates_and_inverse_dynamics():
    mech, free = steering(LEFT), steering(LEFT, amplitude=None)
    rack = mbd.topology(free).layout["rack"].v
    oracle = jax.jit(lambda q, v, t: absolute_forward_dynamics(mech, q, v, t)[1].multipliers)
    for t in TIMES[1:]:
        q, v = state(mech, t, 0.015, -0.1)
        whole, _ = force(mech, q, v, t)
        np.testing.assert_allclose(oracle(q, v, t)["steer"][0], whole, rtol=1e-9)
        vdot, _ = mbd.forward_dynamics(mech, q, v, t)
        tau, _ = mbd.inverse_dynamics(free, q, v, vdot, t, actuated=["rack"])
        np.testing.assert_allclose(tau[rack][0], whole, rtol=1e-9)
        others = np.delete(np.asarray(tau), rack.start)
        assert np.abs(others).max() < 1e-9 * abs(whole)


@pytest.mark.slow
def test_equilibrium_carries_the_axle_and_the_rack_does_the_work():
    """From static equilibrium without friction the drive's work is the gain of energy."""
    quiet = {"speed": 0.0, "damping": 0.0, "tyre_damping": 0.0, "trail": 0.0}
    still = steering(LEFT, **quiet)
    tyre = still.forces["left_tyre"]
    smooth = mbd.PacejkaTyre(
        tyre.b,
        tyre.at,
        tyre.stiffness,
        0.0,
        tyre.radius,
        longitudinal=(1.6, 0, 0),
        lateral=(1.3, 0, 0),
        road=tyre.road,
        free_rolling=True,
    )
    still = still.replace(forces={"left_tyre": smooth})
    q = mbd.equilibrium(still).q
    wheel = mbd.point_position(still, q, "left_upright", "left_wheel_centre")
    assert abs(wheel[2] - still.points["left_wheel_centre"][2]) < 0.02
    v = mbd.assemble_velocity(still, q)

    def output(t, q, v):
        top = mbd.topology(still)
        power = force(still, q, v, t)[0] * v[top.layout["rack"].v][0]
        return power, mbd.kinetic_energy(still, q, v) + mbd.potential_energy(still, q)

    run = mbd.simulate(still, q, v, t1=0.2, dt=1e-3, outputs=output)
    power, energy = map(np.asarray, run.outputs)
    gained = np.sum(power[0:-2:2] + 4 * power[1:-1:2] + power[2::2]) * 1e-3 / 3  # Simpson
    assert np.ptp(energy) > 1.0 and run.drift < 1e-12
    np.testing.assert_allclose(energy[-1] - energy[0], gained, atol=1e-5 * np.ptp(energy))


def test_hardpoints_move_and_bad_sides_are_named():
    mech = mbd.zoo.macpherson_steering(points={"tierod_inboard": (-0.29, 0.5, -0.05)})
    np.testing.assert_array_equal(mech.points["right_tie_inner"], [-0.29, -0.5, -0.05])
    np.testing.assert_array_equal(mech.points["rack"], [-0.29, 0.0, -0.05])
    with pytest.raises(ValueError, match="give 'left', 'right' or both"):
        mbd.zoo.macpherson_steering(("front",))


@pytest.mark.slow
def test_the_force_has_a_gradient_in_the_hardpoints():
    def rack(height):
        points = {"tierod_inboard": jnp.stack([jnp.array(-0.3), jnp.array(0.52), height])}
        mech = steering(LEFT, points=points)
        q = mbd.assemble(mech, known={"left_slide": 0.03}, t=0.3, throw=False).q
        return force(mech, q, jnp.zeros(mbd.topology(mech).nv), 0.3)[0]

    h = 1e-5
    slope = (rack(-0.059 + h) - rack(-0.059 - h)) / (2 * h)
    np.testing.assert_allclose(jax.grad(rack)(-0.059), slope, rtol=1e-5)
