"""The five-point suspension of Attia: its counts, its rest, its motion by three formulations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.formulations import (
    absolute_forward_dynamics,
    particle_accelerations,
    particle_count,
)

WEIGHT = (456.0 + 11.8 + 25.0) * 9.81


@pytest.fixture(scope="module")
def car():
    m = mbd.zoo.five_point()
    return m, mbd.equilibrium(m)


def test_it_is_cut_and_counted_as_in_the_paper():
    m = mbd.zoo.five_point()
    top, rods = mbd.topology(m), ("upper_front_link", "upper_rear_link", "lower_front_link")
    assert top.cut == (*rods, "steering_rod")
    assert top.bodies == ("chassis", "lower_link", "knuckle", "wheel")
    mobility = mbd.mobility(m)
    assert (mobility.kutzbach, mobility.dof, mobility.redundant) == (3, 3, ())
    assert (top.nv, top.nc) == (7, 4)
    four, three = (particle_count(m, forms=k) for k in (4, 3))
    assert (four.particles, four.differential) == (12, 3)
    assert three.coordinates < 27


def test_it_falls_freely_when_released():
    m = mbd.zoo.five_point()
    vdot, lam = mbd.forward_dynamics(m, mbd.neutral(m), jnp.zeros(7))
    np.testing.assert_allclose(vdot, [-9.81, 0, 0, 0, 0, 0, 0], atol=1e-10)
    np.testing.assert_allclose(lam, 0.0, atol=1e-10)


@pytest.mark.slow
def test_its_rest_is_carried_by_the_tyre(car):
    m, rest = car
    centre = mbd.point_position(m, rest.q, "wheel", "axle_outboard")[2]
    np.testing.assert_allclose(6e6 * (0.316 - centre), WEIGHT, rtol=1e-9)
    assert -0.2 < rest.q[0] < -0.05


@pytest.mark.slow
def test_the_spring_carries_what_virtual_work_says(car):
    """With the wheel held, ``k x ∂l/∂z = m g`` over the chassis' travel z."""
    m, rest = car
    n = mbd.linearize(m, rest.q, independent=("chassis", "link[0]", "bearing")).motions
    # The motion that keeps the wheel's centre at its height, per unit of the chassis' travel.
    up = [mbd.point_velocity(m, rest.q, n[:, k], "wheel", "axle_outboard")[2] for k in range(2)]
    v = n[:, 0] - n[:, 1] * up[0] / up[1]
    ends = [("chassis", "spring_top"), ("lower_link", "strut_bottom")]
    a, b = (mbd.point_position(m, rest.q, *end) for end in ends)
    da, db = (mbd.point_velocity(m, rest.q, v, *end) for end in ends)
    length = jnp.linalg.norm(b - a)
    shortening = -(b - a) @ (db - da) / length
    knuckle = mbd.point_velocity(m, rest.q, v, "knuckle", m.bodies["knuckle"].com)
    force = 5.11e4 * (0.3512 - length)
    work = 456.0 * 9.81 * v[0] + 11.8 * 9.81 * knuckle[2]
    np.testing.assert_allclose(-force * shortening, work, rtol=1e-9)


@pytest.mark.slow
def test_three_formulations_agree(car):
    m, rest = car
    v = mbd.assemble_velocity(m, rest.q, {"chassis": 0.3, ("link", 0): 0.8, "bearing": 5.0})
    vdot, _ = mbd.forward_dynamics(m, rest.q, v)
    bodies = mbd.body_accelerations(m, rest.q, v, vdot)
    size = max(float(jnp.abs(x).max()) for x in bodies.values())
    absolute, particles = jax.jit(
        lambda q, v: (
            absolute_forward_dynamics(m, q, v)[0],
            particle_accelerations(m, q, v, forms=3).accelerations,
        )
    )(rest.q, v)
    np.testing.assert_allclose(absolute, vdot, atol=1e-10 * size)
    for name, x in bodies.items():
        np.testing.assert_allclose(particles[name], x, atol=1e-9 * size)


@pytest.mark.slow
def test_its_free_response_ends_at_rest(car):
    """The rest of the vibration after 8 s is what the slowest mode leaves."""
    m, rest = car
    run = mbd.simulate(m, mbd.neutral(m), t1=8.0, dt=5e-4, save_every=200)
    z, slow = np.asarray(run.q[:, 0]), mbd.linearize(m, rest.q).eigenvalues()[2]
    assert z.min() < 1.3 * rest.q[0] and abs(z[-1] - rest.q[0]) < 1e-5
    np.testing.assert_allclose(slow.real, -1.43, atol=0.01)
    late, later = (np.abs(z[k : k + 20] - rest.q[0]).max() for k in (40, 60))
    np.testing.assert_allclose(np.log(later / late) / 2.0, slow.real, rtol=0.1)
