"""Loops of very unequal masses in one mechanism: each moves as it does alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd


def loop(prefix, mass):
    """A four-bar in the plane, of links that are rods."""
    a, b, c, d = (0.0, 0.0), (0.1, 0.3), (0.8, 0.5), (0.7, 0.0)
    ends = {"crank": (a, b), "coupler": (b, c), "rocker": (c, d)}
    bodies, joints = {}, {}
    for name, (x, y) in ends.items():
        x, y = np.array(x), np.array(y)
        bodies[prefix + name] = mbd.Body(mass, (x + y) / 2, mass * (y - x) @ (y - x) / 12)
    order = ["ground", *(prefix + name for name in ends), "ground"]
    for k, at in enumerate((a, b, c, d)):
        joints[f"{prefix}{k}"] = mbd.Revolute(order[k], order[k + 1], at=at)
    return bodies, joints, (prefix + "2",)


def accelerations(*loops):
    parts = list(zip(*loops, strict=True))
    bodies, joints = ({k: v for part in some for k, v in part.items()} for some in parts[:2])
    mech = mbd.Mechanism(bodies, joints, cut=tuple(name for some in parts[2] for name in some))
    top = mbd.topology(mech)
    q = mbd.neutral(mech)
    vdot, _ = mbd.forward_dynamics(mech, q, jnp.zeros(top.nv))
    return {name: np.asarray(vdot[top.layout[name].v]) for name in top.tree}


@pytest.mark.parametrize("light", [1e-10, 1e-20])
def test_a_heavy_loop_keeps_its_rows_beside_a_light_one(light):
    together = accelerations(loop("heavy_", 1.0), loop("light_", light))
    alone = accelerations(loop("heavy_", 1.0)) | accelerations(loop("light_", light))
    for name, expected in alone.items():
        np.testing.assert_allclose(together[name], expected, rtol=1e-9)


def cart(far):
    """A cart that drives a wheel; its centre of mass is far away, its wheel and rail are not."""
    bodies = {"cart": mbd.Body(1.0, (far, 0.2), 0.1), "wheel": mbd.Body(1.0, (0.3, 0.0), 0.1)}
    joints = {
        "rail": mbd.Prismatic("ground", "cart", (0.0, 0.0), (1.0, 0.5)),
        "axle": mbd.Revolute("ground", "wheel", (0.3, 0.0)),
    }
    return bodies, joints, ()


@pytest.mark.parametrize("far", [1.0, 1e6])
def test_a_loop_keeps_its_rows_beside_a_gear_of_a_large_mechanism(far):
    """Its length is a ratio [rad/m] times that of the mechanism, twice."""
    bodies, joints, cut = (
        {**x, **y} if isinstance(x, dict) else (*x, *y)
        for x, y in zip(loop("", 1.0), cart(far), strict=True)
    )
    gear = mbd.Gear("rail", "axle", ratio=1.3)
    mech = mbd.Mechanism(bodies, joints, cut=cut, couplings={"gear": gear})
    top, q = mbd.topology(mech), mbd.neutral(mech)
    found, _ = mbd.forward_dynamics(mech, q, jnp.zeros(top.nv))
    for name, expected in accelerations(loop("", 1.0)).items():
        np.testing.assert_allclose(found[top.layout[name].v], expected, rtol=1e-9)
    assert mbd.check_state(mech, q).status == 0
    counted = mbd.mobility(mech, q)
    assert (counted.dof, counted.rank, counted.redundant) == (2, 3, ())


@pytest.mark.parametrize("place", [1e160, 1e300])
def test_a_mechanism_beyond_all_sizes_is_not_ok(place):
    """Squares of its lengths overflow: nothing is computed, and nothing is said to be right."""
    mech = mbd.zoo.four_bar()
    rocker = mech.bodies["rocker"]
    mech = mech.replace(bodies={"rocker": mbd.Body(rocker.mass, (0.1, place, 0.0), rocker.inertia)})
    q = jnp.asarray(mbd.neutral(mech))
    accelerations, _ = jax.jit(lambda q: mbd.forward_dynamics(mech, q, 0.1 * q + 0.1))(q)
    assert np.all(np.isnan(accelerations))
