"""Identities on random mechanisms of all joint types, trees and loops, in motion.

Three formulations must agree: the recursion that is used, the dense DeNOC matrices, and
Newton-Euler in absolute coordinates, which shares no kinematics with them.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import random_mechanism, random_motion

import jaxmbd as mbd
from jaxmbd.dynamics.bias_forces import applied_loads
from jaxmbd.dynamics.forward import _accelerations
from jaxmbd.formulations import absolute_accelerations
from jaxmbd.kinematics import motion_state

SEEDS = range(52)
FAST = (3, 5, 7, 14, 15, 17, 40, 43, 45, 46)  # every joint type twice in the tree, twice cut
# One call a mechanism: not worth compiling.
forward_dynamics = partial(_accelerations, t=0.0, inputs=None)
TOLERANCE = 1e-10


def close(a, b, scale=None, tolerance=TOLERANCE):
    """Agreement relative to the larger of the two, or to `scale` where that is larger."""
    a, b = np.asarray(a), np.asarray(b)
    size = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0), scale or 0.0, 1e-300)
    worst = np.abs(a - b).max(initial=0.0) / size
    assert worst < tolerance, f"relative difference {worst:.2e}"


@pytest.fixture(
    scope="module",
    params=[s if s in FAST else pytest.param(s, marks=pytest.mark.slow) for s in SEEDS],
)
def case(request):
    """A mechanism in motion with its accelerations and multipliers."""
    mech = random_mechanism(request.param)
    q, v = random_motion(mech, request.param)
    m = motion_state(mech, q, v)
    vdot, lam = forward_dynamics(mech, q, v)
    return request.param, mech, q, v, vdot, lam, m


@pytest.mark.parametrize("seeds, loops", [(FAST, 10), (SEEDS, 30)], ids=["fast", "all"])
def test_all_joint_types_occur(seeds, loops):
    kinds = {"tree": Counter(), "cut": Counter()}
    for seed in seeds:
        mech = random_mechanism(seed)
        top = mbd.topology(mech)
        kinds["tree"].update({type(mech.joints[n]).__name__ for n in top.tree})
        kinds["cut"].update({type(mech.joints[n]).__name__ for n in top.cut})
        loops -= len(top.cut)
    types = {"Revolute", "Prismatic", "Helical", "Cylindrical", "Universal", "Spherical", "Planar"}
    assert min(kinds["tree"][t] for t in types | {"Free", "Fixed"}) >= 2
    assert min(kinds["cut"][t] for t in types | {"Fixed", "Rod"}) >= 2
    assert loops < 0


def test_identities(case):
    _, mech, q, v, vdot, lam, m = case
    mass = mbd.mass_matrix(mech, q)
    close(mass, mass.T)
    close(0.5 * v @ mass @ v, mbd.kinetic_energy(mech, q, v))
    jacobian, gamma = mbd.constraint_jacobian(mech, q), mbd.gamma(mech, q, v)
    size = float(jnp.abs(vdot).max())
    close(jacobian @ vdot, gamma, size)
    close(jacobian @ v, 0 * gamma, 1.0)
    # inverse ∘ forward
    force = mass @ vdot + mbd.bias(mech, q, v)
    tau, again = mbd.inverse_dynamics(mech, q, v, vdot)
    scale = float(jnp.abs(force).max()) + float(jnp.abs(mass).max()) * size
    close(tau, 0 * tau, scale)
    close(jacobian.T @ again, force, scale)
    close(again, lam, scale)
    # dense DeNOC = recursion
    dense_mass, dense_force = mbd.denoc_equations(mech, q, v)
    close(dense_mass, mass)
    close(dense_force, -mbd.bias(mech, q, v))


def test_power_and_energy(case):
    seed, mech, q, v, vdot, lam, m = case
    qdot = mbd.coordinate_rates(mech, q, v)
    _, rate = jax.jvp(lambda a, b: mbd.kinetic_energy(mech, a, b), (m.q, m.v), (qdot, vdot))
    power, size = 0.0, 0.0
    for load in applied_loads(m, None)[0]:
        velocity = m.velocity_at(load.body, load.point)
        part = load.force @ velocity + load.moment @ m.angular_velocity(load.body)
        power, size = power + part, size + abs(float(part))
    for body, com_velocity in zip(m.top.bodies, m.vel.linear, strict=True):
        part = mech.bodies[body].mass * (mech.gravity @ com_velocity)
        power, size = power + part, size + abs(float(part))
    close(rate, power, size)
    # potential forces are the gradient of the potential energy
    conservative = eqx.tree_at(lambda x: x.forces["twist"].torque, mech, np.zeros(3))
    w = np.random.default_rng(seed).normal(size=m.top.nv)
    qdot = mbd.coordinate_rates(mech, q, w)
    _, slope = jax.jvp(lambda x: mbd.potential_energy(conservative, x), (m.q,), (qdot,))
    held = mbd.bias(conservative, q, np.zeros(m.top.nv))
    close(w @ held, slope, float(jnp.abs(w * held).max()))


def test_absolute_coordinates_agree(case, compared):
    _, mech, q, v, vdot, lam, m = case
    state = {
        body: (m.rotation(body), m.pos.com[i], m.vel.angular[i], m.vel.linear[i])
        for i, body in enumerate(m.top.bodies)
    }
    other = absolute_accelerations(mech, state)
    ours = mbd.body_accelerations(mech, q, v, vdot)
    size = max(float(jnp.abs(a).max()) for a in ours.values())
    for body in m.top.bodies:
        close(ours[body], other.accelerations[body], size)
    rows = sum(len(e.kind.rows) for e in mech.structure.joints)
    if compared("determinate reactions", other.rank == rows, 0.3):
        reactions = mbd.joint_reactions(mech, q, v, vdot, lam)
        size = max(float(jnp.abs(w).max()) for w in reactions.values())
        for name, wrench in reactions.items():
            close(wrench, other.reactions[name], size)


def test_a_joint_is_the_same_in_the_tree_and_cut(case, compared):
    _, mech, q, v, vdot, lam, m = case
    other = _other_cuts(mech)
    if not compared("other cuts", other is not None, 0.3):
        return
    top = mbd.topology(other)
    assert set(top.cut) != set(m.top.cut)
    joints = [m.joint(name) for name in top.tree]
    q2 = jnp.concatenate([x for x, _ in joints])
    v2 = jnp.concatenate([x for _, x in joints])
    vdot2, lam2 = forward_dynamics(other, q2, v2)
    a, b = mbd.body_accelerations(mech, q, v, vdot), mbd.body_accelerations(other, q2, v2, vdot2)
    size = max(float(jnp.abs(x).max()) for x in a.values())
    for body in m.top.bodies:
        close(a[body], b[body], size)
    if not compared("reactions under other cuts", not mbd.mobility(mech, q).redundant, 0.2):
        return
    first = mbd.joint_reactions(mech, q, v, vdot, lam)
    second = mbd.joint_reactions(other, q2, v2, vdot2, lam2)
    size = max(float(jnp.abs(w).max()) for w in first.values())
    for name in first:
        close(first[name], second[name], size)


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
            other = eqx.tree_at(lambda x: x.gravity, mech, mech.gravity)
            object.__setattr__(other, "structure", structure)
            try:
                mbd.topology(other)
            except ValueError:
                continue
            return other
    return None
