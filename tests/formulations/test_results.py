"""Results of the formulations as a whole, of a pendulum whose motion is known in closed form."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd.formulations import (
    AbsoluteSolution,
    ConstraintWrenches,
    EquivalentParticles,
    Invariants,
    ParticleCount,
    ParticleSolution,
    absolute_accelerations,
    constraint_matrix_reactions,
    equivalent_particles,
    invariants,
    particle_accelerations,
    particle_count,
)

# A bob of 1 kg that hangs sideways from a hinge along y, at rest: it starts to fall.
BOB = np.array([1.0, 0.0, 0.0])
FALL = np.array([0.0, 9.81, 0.0, 0.0, 0.0, -9.81])
NOTHING = np.zeros(6)


def pendulum():
    return mbd.Mechanism(
        {"bob": mbd.Body(1.0, BOB)},
        {"hinge": mbd.Revolute("ground", "bob", (0, 0, 0), (0, 1, 0))},
    )


def same(found, expected, atol=1e-9):
    """Whether both are results of one kind with the same numbers."""
    jax.tree_util.tree_map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=0, atol=atol), found, expected
    )


def test_a_falling_bob_in_absolute_coordinates():
    found = absolute_accelerations(pendulum(), {"bob": (np.eye(3), BOB, np.zeros(3), np.zeros(3))})
    expected = AbsoluteSolution(
        accelerations={"bob": FALL},
        multipliers={"hinge": np.zeros(5)},
        reactions={"hinge": NOTHING},
        rank=5,
        residual={"hinge": np.zeros(5)},
        velocity_residual=0.0,
        imbalance=0.0,
    )
    same(found, expected)


def test_a_falling_bob_as_particles():
    """Particles at a + b, with a the bob's place: each accelerates as its point of the body."""
    found = particle_accelerations(pendulum(), jnp.zeros(1), jnp.zeros(1))
    assert isinstance(found, ParticleSolution)
    same(found.accelerations, {"bob": FALL})
    assert int(found.rank) == 3 * particle_count(pendulum()).particles - 1
    same((found.residual, found.velocity_residual, found.imbalance), (0.0, 0.0, 0.0))


def test_a_bob_that_is_held_by_constraint_matrices():
    rest = jnp.zeros(1)
    found = constraint_matrix_reactions(pendulum(), rest, rest, rest, actuated=("hinge",))
    weight = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 9.81])
    expected = ConstraintWrenches({"hinge": weight}, {"hinge": np.array([-9.81])}, {}, 0.0)
    same(found, expected)


def test_particles_of_a_rod_are_those_of_simpsons_rule():
    found = equivalent_particles([[0, 0, 0], [1, 0, 0]], 6.0, [0.5, 0, 0], [0, 0.5, 0.5])
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0.5, 0, 0]])
    matrix = np.array([[2.0, 1.0], [1.0, 2.0]])  # a uniform rod of linear velocity: m/3, m/6
    same(found, EquivalentParticles(points, np.array([1.0, 1.0, 4.0]), matrix), atol=1e-12)


def test_invariants_keep_the_side_of_the_plane():
    x = jnp.eye(3)
    same(invariants(jnp.zeros(3), x[0], x[1], -x[2]), Invariants(-1.0, 0.0, 0.0))


def test_the_count_of_a_pendulum():
    """Two particles on the hinge are shared; three distances but that of the shared ones."""
    assert particle_count(pendulum(), forms=3) == ParticleCount(1, 3, 2, 0, 0)
    assert particle_count(pendulum(), forms=3).differential == 1
