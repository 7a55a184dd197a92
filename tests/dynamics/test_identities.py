"""Identities on random mechanisms of all joint types, trees and loops, in motion.

Three formulations must agree: the recursion that is used, the dense DeNOC matrices, and
Newton-Euler in absolute coordinates, which shares no kinematics with them.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from random_mechanisms import random_mechanism, random_motion

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics.bias_forces import applied_loads
from jaxmbd.dynamics.forward import _accelerations
from jaxmbd.formulations import absolute_accelerations
from jaxmbd.kinematics import motion_state
from jaxmbd.model.numbers import changed

SEEDS = range(52)
FAST = (5, 11, 15, 43, 46, 48)
"""Small ones that have each joint type in the tree and cut, nine loops, and three with unique
reactions."""
forward_dynamics = partial(_accelerations, t=0.0, inputs=None)
TOLERANCE = 1e-10


def close(a, b, scale=None, tolerance=TOLERANCE):
    """Agreement relative to the larger of the two, or to `scale` where that is larger."""
    a, b = np.asarray(a), np.asarray(b)
    size = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0), scale or 0.0, 1e-300)
    worst = np.abs(a - b).max(initial=0.0) / size
    assert worst < tolerance, f"relative difference {worst:.2e}"


class Instant(NamedTuple):
    """What the engine says of a mechanism in motion, by one kernel."""

    vdot: Array
    lam: Array
    mass: Array
    bias: Array
    jacobian: Array
    gamma: Array
    energy: tuple[Array, Array]
    """Kinetic energy and its rate of change."""
    required: tuple[Array, Array]
    """Efforts and multipliers by inverse dynamics."""
    dense: tuple[Array, Array]
    """Mass matrix and generalised forces by the DeNOC matrices."""
    powers: Array
    """Of each applied load and each weight."""
    held: tuple[Array, Array]
    """Work of the forces that have a potential along `way`, and the slope of the potential."""
    bodies: dict[str, tuple[Array, ...]]
    """Rotation, centre of mass, angular velocity and velocity of each body."""
    accelerations: dict[str, Array]
    reactions: dict[str, Array]


def instant(mech, way):
    """The function of (q, v) that gives the `Instant`."""
    # potential forces are the gradient of the potential energy
    conservative = eqx.tree_at(lambda x: x.forces["twist"].torque, mech, np.zeros(3))

    def of(q, v):
        m = motion_state(mech, q, v)
        vdot, lam = forward_dynamics(mech, q, v)
        qdot = mbd.coordinate_rates(mech, q, v)
        energy = jax.jvp(lambda a, b: mbd.kinetic_energy(mech, a, b), (m.q, m.v), (qdot, vdot))
        powers = [
            load.force @ m.velocity_at(load.body, load.point)
            + load.moment @ m.angular_velocity(load.body)
            for load in applied_loads(m, None)[0]
        ]
        for body, velocity in zip(m.top.bodies, m.vel.linear, strict=True):
            powers.append(mech.bodies[body].mass * (mech.gravity @ velocity))
        change = mbd.coordinate_rates(mech, q, way)
        _, slope = jax.jvp(lambda x: mbd.potential_energy(conservative, x), (m.q,), (change,))
        return Instant(
            vdot,
            lam,
            mbd.mass_matrix(mech, q),
            mbd.bias(mech, q, v),
            mbd.constraint_jacobian(mech, q),
            mbd.gamma(mech, q, v),
            energy,
            mbd.inverse_dynamics(mech, q, v, vdot),
            mbd.denoc_equations(mech, q, v),
            jnp.stack(powers),
            (way * mbd.bias(conservative, q, np.zeros(m.top.nv)), slope),
            {
                body: (m.rotation(body), m.pos.com[i], m.vel.angular[i], m.vel.linear[i])
                for i, body in enumerate(m.top.bodies)
            },
            mbd.body_accelerations(mech, q, v, vdot),
            mbd.joint_reactions(mech, q, v, vdot, lam),
        )

    return of


@pytest.fixture(
    scope="module",
    params=[s if s in FAST else pytest.param(s, marks=pytest.mark.slow) for s in SEEDS],
)
def case(request):
    """A mechanism with a motion and the `Instant` of that."""
    mech = random_mechanism(request.param)
    q, v = random_motion(mech, request.param)
    way = np.random.default_rng(request.param).normal(size=v.size)
    found = lanes.jit(instant(mech, way), strict=True)(q, v)
    return mech, q, v, jax.tree.map(np.asarray, found)


@pytest.mark.parametrize("seeds, least, loops", [(FAST, 1, 8), (SEEDS, 2, 30)], ids=["fast", "all"])
def test_all_joint_types_occur(seeds, least, loops):
    kinds = {"tree": Counter(), "cut": Counter()}
    for seed in seeds:
        mech = random_mechanism(seed)
        top = mbd.topology(mech)
        kinds["tree"].update({type(mech.joints[n]).__name__ for n in top.tree})
        kinds["cut"].update({type(mech.joints[n]).__name__ for n in top.cut})
        loops -= len(top.cut)
    types = {"Revolute", "Prismatic", "Helical", "Cylindrical", "Universal", "Spherical", "Planar"}
    assert min(kinds["tree"][t] for t in types | {"Free", "Fixed"}) >= least
    assert min(kinds["cut"][t] for t in types | {"Fixed", "Rod"}) >= least
    assert loops < 0


def largest(arrays):
    return max((np.abs(x).max(initial=0.0) for x in arrays), default=0.0)


def test_identities(case):
    _, _, v, at = case
    mass, jacobian, gamma, vdot = at.mass, at.jacobian, at.gamma, at.vdot
    close(mass, mass.T)
    close(0.5 * v @ mass @ v, at.energy[0])
    size = largest([vdot])
    close(jacobian @ vdot, gamma, size)
    close(jacobian @ v, 0 * gamma, 1.0)
    # inverse ∘ forward
    force = mass @ vdot + at.bias
    tau, again = at.required
    scale = largest([force]) + largest([mass]) * size
    close(tau, 0 * tau, scale)
    close(jacobian.T @ again, force, scale)
    close(again, at.lam, scale)
    # dense DeNOC = recursion
    dense_mass, dense_force = at.dense
    close(dense_mass, mass)
    close(dense_force, -at.bias)


def test_power_and_energy(case):
    *_, at = case
    close(at.energy[1], at.powers.sum(), np.abs(at.powers).sum())
    work, slope = at.held
    close(work.sum(), slope, largest([work]))


def test_absolute_coordinates_agree(case, compared):
    mech, _, _, at = case
    other = jax.jit(absolute_accelerations)(mech, at.bodies)
    size = largest(at.accelerations.values())
    for body in at.bodies:
        close(at.accelerations[body], other.accelerations[body], size)
    rows = sum(len(e.kind.rows) for e in mech.structure.joints)
    if compared("determinate reactions", other.rank == rows, 0.3):
        size = largest(at.reactions.values())
        for name, wrench in at.reactions.items():
            close(wrench, other.reactions[name], size)


def test_a_joint_is_the_same_in_the_tree_and_cut(case, compared):
    mech, q, v, at = case
    other = _other_cuts(mech)
    determined = () if other is None else _determined_reactions(mech, q, v, at)
    compared("reactions under other cuts", bool(determined), 0.2)
    if not compared("other cuts", other is not None, 0.3):
        return
    cut = mbd.topology(other).cut
    assert set(cut) != set(mbd.topology(mech).cut)

    @partial(lanes.jit, strict=True)
    def again(q, v):
        m = motion_state(mech, q, v)
        coordinates, speeds = zip(*(m.joint(n) for n in mbd.topology(other).tree), strict=True)
        q2, v2 = jnp.concatenate(coordinates), jnp.concatenate(speeds)
        vdot2, lam2 = forward_dynamics(other, q2, v2)
        reactions = mbd.joint_reactions(other, q2, v2, vdot2, lam2)
        return mbd.body_accelerations(other, q2, v2, vdot2), reactions

    accelerations, reactions = again(q, v)
    size = largest(at.accelerations.values())
    for body in at.bodies:
        close(at.accelerations[body], accelerations[body], size)
    size = largest(at.reactions.values())
    for name in determined:
        close(at.reactions[name], reactions[name], size)


def _determined_reactions(mech, q, v, at):
    """The joints whose reactions no solution of redundant constraint equations changes."""
    left, size, _ = np.linalg.svd(at.jacobian)
    idle = left[:, np.sum(size > 1e-9 * size.max(initial=0.0)) :]
    if not idle.shape[1]:
        return tuple(at.reactions)
    scale = max(largest(at.reactions.values()), largest([at.lam]), 1.0)
    lam = at.lam + scale * idle @ np.random.default_rng(0).normal(size=idle.shape[1])
    reactions = lanes.jit(partial(mbd.joint_reactions, mech), strict=True)(q, v, at.vdot, lam)
    return tuple(
        name
        for name, wrench in at.reactions.items()
        if largest([np.asarray(reactions[name]) - wrench]) < 1e-6 * scale
    )


def _other_cuts(mech):
    """The same mechanism with one cut joint put into the tree and another of its loop cut."""
    top = mbd.topology(mech)
    for name in top.cut:
        if not mech.joints[name].can_be_in_tree:
            continue
        for instead in top.tree:
            if not mech.joints[instead].can_be_cut:
                continue
            cut = tuple(instead if n == name else n for n in top.cut)
            structure = mech.structure._replace(cut=cut)
            other = changed(mech, structure=structure)
            try:
                mbd.topology(other)
            except ValueError:
                continue
            return other
    return None
