"""Derivatives with respect to the description: reverse = forward = finite differences."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

LEAVES = {
    "a hardpoint": (lambda m: m.points["trailing_ball"], (2,), 1e-4),
    "a hardpoint on an axis": (lambda m: m.points["upper_arm_rear"], (2,), 1e-4),
    "a mass": (lambda m: m.bodies["trailing"].mass, (), 1e-2),
    "a spring rate": (lambda m: m.forces["spring"].stiffness, (), 10.0),
    "the end of a rod": (lambda m: m.points["B"], (0,), 1e-5),
    "the rod's mass": (lambda m: m.bodies["coupler"].mass, (), 1e-2),
    "a soft spring's rate": (lambda m: m.forces["spring"].stiffness, (), 1e-2),
}


def sprung_linkage():
    """A spatial loop with an idle spin, on a spring."""
    mech = mbd.zoo.rssr(gravity=9.81)
    return mech.replace(forces={"spring": mbd.TorsionSpring("rocker", stiffness=2.0, damping=0.1)})


@pytest.fixture(scope="module")
def corner():
    return jax.tree_util.tree_map(jnp.asarray, mbd.zoo.multi_link())


def moved(mech, leaf, index, step):
    where, _, _ = LEAVES[leaf]
    x = np.array(where(mech))
    x[index] += step
    return eqx.tree_at(where, mech, jnp.asarray(x))


def direction(mech, leaf):
    where, index, _ = LEAVES[leaf]
    x = np.zeros(np.shape(where(mech)))
    x[index] = 1.0
    zero = jax.tree_util.tree_map(jnp.zeros_like, mech)
    return eqx.tree_at(where, zero, jnp.asarray(x))


def check_derivatives(function, mech, leaves, *, differences=1e-6):
    """Reverse = forward to 1e-9, both = central differences (fourth order) to `differences`."""
    reverse = jax.jit(jax.grad(function))(mech)
    forward = jax.jit(lambda m, d: jax.jvp(function, (m,), (d,)))  # gives the values as well
    for leaf in leaves:
        where, index, h = LEAVES[leaf]
        way = direction(mech, leaf)
        back = float(np.asarray(where(reverse))[index])
        ahead = float(forward(mech, way)[1])

        def slope(step, leaf=leaf, index=index, way=way):
            sides = [forward(moved(mech, leaf, index, s * step), way)[0] for s in (1, -1)]
            return float(sides[0] - sides[1]) / (2 * step)

        numeric = (4 * slope(h / 2) - slope(h)) / 3
        assert abs(numeric) > 1e-12, f"{leaf} does not matter"
        assert back == pytest.approx(ahead, rel=1e-9), leaf
        assert back == pytest.approx(numeric, rel=differences), leaf


def test_assembled_position(corner):
    """Toe-like: where the outer end of the tie rod goes when the wheel is raised."""
    raised = mbd.PointCoordinate("spindle", "wheel_centre", "z")

    def lateral(mech):
        q = mbd.assemble(mech, known={raised: 0.04}).q
        return mbd.point_position(mech, q, "upright", "tierod_outboard")[1]

    check_derivatives(lateral, corner, ["a hardpoint", "a hardpoint on an axis"])


def test_simulation():
    """Height of a rod's end after 0.1 s of free response."""
    linkage = jax.tree_util.tree_map(jnp.asarray, sprung_linkage())

    def height(mech):
        run = mbd.simulate(mech, mbd.neutral(mech), t1=0.1, dt=2e-3, save_every=50, throw=False)
        return mbd.point_position(mech, run.q[-1], "rocker", "B")[0]

    check_derivatives(
        height, linkage, ["the end of a rod", "the rod's mass", "a soft spring's rate"]
    )


@pytest.mark.slow
def test_simulation_of_a_corner(corner):
    """Height of the wheel after 0.2 s of free response."""

    def height(mech):
        q = mbd.assemble(mech).q
        run = mbd.simulate(mech, q, t1=0.2, dt=2e-3, save_every=100)
        return mbd.point_position(mech, run.q[-1], "spindle", "wheel_centre")[2]

    leaves = ["a hardpoint", "a hardpoint on an axis", "a mass", "a spring rate"]
    check_derivatives(height, corner, leaves)


def test_derivative_of_the_rssr_is_the_closed_form():
    mech = mbd.zoo.rssr()
    place = mbd.topology(mech).layout["rocker"].q

    def rocker(psi):
        return mbd.assemble(mech, known={"crank": psi}).q[place][0]

    slopes = [jax.jit(derivative(rocker)) for derivative in (jax.grad, jax.jacfwd)]
    closed = jax.jit(jax.grad(mbd.zoo.rssr_theta))
    for psi in (0.4, 2.0):
        for slope in slopes:
            assert float(slope(psi)) == pytest.approx(float(closed(psi)), rel=1e-10)


def test_second_derivative_through_the_kkt_solve():
    """Hessian-vector products of an acceleration against differences of the gradient."""
    mech = mbd.zoo.rssr()
    q = mbd.neutral(mech)

    def acceleration(v):
        return mbd.forward_dynamics(mech, q, v)[0][0]

    v = mbd.assemble_velocity(mech, q, {"crank": 3.0})
    w = jnp.array([0.3, -0.2, 0.5, 0.1, 0.4])
    gradient = jax.jit(jax.grad(acceleration))
    exact = jax.jit(lambda v: jax.jvp(jax.grad(acceleration), (v,), (w,))[1])(v)
    numeric = (gradient(v + 1e-4 * w) - gradient(v - 1e-4 * w)) / 2e-4
    np.testing.assert_allclose(exact, numeric, rtol=1e-7, atol=1e-9)


def test_gradient_with_respect_to_parameters_of_laws_and_inputs():
    """Parameters that a law or the inputs close over are differentiated too."""
    mech = mbd.zoo.simple_pendulum()

    def swing(c):
        damped = mech.replace(forces={"d": mbd.JointTorque("hinge", law=lambda t, q, v: -c * v)})
        run = mbd.simulate(damped, [0.3], t1=0.2, dt=1e-2, inputs=lambda t: {"hinge": c * t})
        return run.q[-1, 0]

    h = 1e-4
    numeric = (swing(0.5 + h) - swing(0.5 - h)) / (2 * h)
    assert float(jax.grad(swing)(0.5)) == pytest.approx(float(numeric), rel=1e-6)
    assert float(jax.jacfwd(swing)(0.5)) == pytest.approx(float(numeric), rel=1e-6)
