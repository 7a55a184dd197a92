"""Random mechanisms with every element: formulations, power, compilers and derivatives agree."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from equipped_mechanisms import equipped_mechanism

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics.bias_forces import applied_loads
from jaxmbd.formulations import absolute_forward_dynamics
from jaxmbd.kinematics import motion_state

TOLERANCE = 1e-9
SEEDS = [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 8))]


def close(a, b, scale=0.0):
    a, b = np.asarray(a), np.asarray(b)
    size = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0), scale)
    np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE * size)


@pytest.fixture(scope="module", params=SEEDS)
def case(request):
    """A mechanism in motion with its accelerations, multipliers and friction efforts."""
    found = equipped_mechanism(request.param)
    mech, q, v, inputs, _ = found

    @partial(lanes.jit, strict=True)
    def solve(q, v, inputs):
        vdot, lam = mbd.forward_dynamics(mech, q, v, 0.0, inputs)
        rubbing = mbd.friction_efforts(mech, q, v, vdot, lam, 0.0, inputs)
        return vdot, lam, rubbing, mbd.inverse_dynamics(mech, q, v, vdot, 0.0, inputs)

    return request.param, found, *solve(q, v, inputs)


def test_every_force_acts(case):
    """An element that idles would test nothing; the random mechanism's own spring may idle."""
    _, (mech, q, v, *_), _, _, rubbing, _ = case
    state = motion_state(mech, q, v)
    for name in set(mech.structure.forces) - {"rub", "rotor", "rotors", "between"}:
        sizes = [
            float(jnp.abs(x).max())
            for load in mech.forces[name].loads(state)
            for x in jax.tree.leaves([getattr(load, k, 0.0) for k in ("force", "moment", "value")])
        ]
        assert max(sizes) > 1e-3, name
    assert abs(float(rubbing["shoulder"][0])) > 1e-3
    np.testing.assert_allclose(mbd.constraint_residual(mech, q), 0.0, rtol=0, atol=1e-14)


def test_the_other_formulation_agrees(case):
    """Newton-Euler in absolute coordinates, with the friction's efforts as further inputs."""
    seed, (_, q, v, inputs, rates), vdot, lam, rubbing, _ = case
    mech = equipped_mechanism(seed, friction=False).mech
    efforts = {n: inputs.get(n, 0.0) + rubbing.get(n, 0.0) for n in {*inputs, *rubbing}}
    ours, sol = jax.jit(absolute_forward_dynamics)(mech, q, v, 0.0, efforts)
    close(ours, vdot)
    assert float(sol.velocity_residual) < 1e-12
    layout, size = mbd.topology(mech).layout, float(np.abs(lam).max())
    for name in ("gear", "motor", "lift"):
        close(sol.multipliers[name], lam[layout[name].rows], size)


def test_inverse_dynamics_needs_nothing_more(case):
    _, (mech, q, v, _, rates), vdot, lam, _, (tau, same) = case
    size = float(np.abs(lam).max())
    close(tau, 0 * tau, size)
    close(jax.jit(mbd.constraint_jacobian)(mech, q) @ v, rates)


def test_power_changes_the_kinetic_energy(case):
    """Loads, efforts, friction and drives do work; joints, conditions and the coupling do none."""
    seed, (_, q, v, inputs, rates), vdot, lam, rubbing, _ = case
    mech = equipped_mechanism(seed, friction=False).mech

    @lanes.jit
    def powers(q, v, vdot, lam):
        m = motion_state(mech, q, v)
        loads, efforts = applied_loads(m, inputs)
        parts = [rates @ lam]
        for load in loads:
            point, turn = m.velocity_at(load.body, load.point), m.angular_velocity(load.body)
            parts.append(load.force @ point + load.moment @ turn)
        for name in {*efforts, *rubbing}:
            parts.append((efforts.get(name, 0.0) + rubbing.get(name, 0.0)) @ m.joint(name)[1])
        for body, velocity in zip(m.top.bodies, m.vel.linear, strict=True):
            parts.append(mech.bodies[body].mass * (mech.gravity @ velocity))
        change = mbd.coordinate_rates(mech, q, v), vdot
        energy = lambda q, v: mbd.kinetic_energy(mech, q, v)  # noqa: E731
        return jax.jvp(energy, (q, v), change)[1], jnp.stack(parts)

    rate, parts = powers(q, v, vdot, lam)
    close(rate, parts.sum(), float(jnp.abs(parts).max()))


def weighted(mech, q, inputs, size, backend):
    """A sum of the accelerations as a function of the speeds."""

    def of(v):
        acc, _ = mbd.forward_dynamics(mech, q, v, 0.0, inputs, backend=backend)
        return np.cos(np.arange(size)) @ acc

    return of


def test_both_directions_of_differentiation_agree(case):
    """Along speeds that the rows allow: others have no derivative where rows are redundant."""
    seed, (mech, q, v, inputs, _), vdot, *_ = case
    fn = weighted(mech, q, inputs, v.size, "lanes")
    rows = jax.jit(mbd.constraint_jacobian)(mech, q)
    way = np.random.default_rng(seed).normal(size=v.size)
    way = way - np.linalg.lstsq(rows, rows @ way, rcond=1e-9)[0]
    value, forward = jax.jit(lambda v: jax.jvp(fn, (v,), (way,)))(v)
    close(value, np.cos(np.arange(v.size)) @ vdot, float(jnp.abs(vdot).max()))
    close(forward, jax.jit(jax.grad(fn))(v) @ way)


@pytest.mark.slow
def test_compilers_agree(case):
    """lanes with XLA alone, and a batch with a loop."""
    _, (mech, q, v, inputs, _), vdot, *_ = case
    size, pair = float(jnp.abs(vdot).max()), jnp.stack([v, 0.5 * v])
    batch = lanes.vmap(weighted(mech, q, inputs, v.size, "lanes"), strict=True)(pair)
    by_xla = jax.jit(weighted(mech, q, inputs, v.size, "xla"))
    close(batch, [by_xla(x) for x in pair], size)
