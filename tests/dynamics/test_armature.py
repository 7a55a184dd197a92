"""Rotor inertia along the speeds of joints, in every route to the equations of motion."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import random_mechanism, random_motion, random_state

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics.forward import applied_efforts
from jaxmbd.dynamics.kkt import kkt_system, least_norm, mass_operator, solve_kkt
from jaxmbd.formulations import absolute_forward_dynamics, lagrange_efforts
from jaxmbd.kinematics import motion_state

CLOSE = 1e-10


def close(a, b, tolerance=CLOSE):
    size = np.max(np.abs(np.asarray(b)), initial=1e-300)
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * size)


def geared(seed, loops=1):
    """A random mechanism with a rotor of a different size at every speed of its tree."""
    mech, rng = random_mechanism(seed, loops=loops), np.random.default_rng(seed)
    top = mbd.topology(mech)
    rotors = {
        f"rotor of {n}": mbd.Armature(n, rng.uniform(0.1, 2.0, mech.joint(n).nv))
        for n in top.tree
        if mech.joint(n).nv
    }
    mech = mech.replace(forces=rotors, cut=top.cut)
    a = np.concatenate([mech.forces[name].inertia for name in rotors])
    return mech, a


def chain(n):
    """Revolutes in general directions; every third one is geared."""
    rng = np.random.default_rng(n)
    bodies, joints, forces = {}, {}, {}
    for i in range(n):
        bodies[f"b{i}"] = mbd.Body(1.0 + 0.1 * i, [i + 0.5, 0.1, 0.2], np.diag([0.2, 0.3, 0.4]))
        below = f"b{i - 1}" if i else "ground"
        joints[f"j{i}"] = mbd.Revolute(below, f"b{i}", [float(i), 0.1, 0.0], rng.normal(size=3))
        if i % 3 == 0:
            forces[f"r{i}"] = mbd.Armature(f"j{i}", 0.1 * i + 0.2)
    return mbd.Mechanism(bodies, joints, forces, gravity=(0.0, 0.0, -9.81))


@pytest.mark.parametrize("seed", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_it_is_the_diagonal_of_the_mass_matrix(seed):
    mech, a = geared(seed)
    bare = mech.replace(forces=dict.fromkeys(name for name, _ in mech.structure.armatures))
    q, v = random_motion(mech, seed)

    @lanes.jit
    def terms(q, v):
        m = motion_state(mech, q)
        both = [mass_operator(m, recursive=recursive) for recursive in (False, True)]
        operators = [(x.array(), x.diagonal()) for x in both]
        engine = [
            (mbd.mass_matrix(x, q), mbd.bias(x, q, v), mbd.kinetic_energy(x, q, v))
            for x in (mech, bare)
        ]
        return *engine, mbd.denoc_equations(mech, q, v), operators

    (mass, force, energy), (bare_mass, bare_force, bare_energy), dense, operators = terms(q, v)
    np.testing.assert_allclose(mass - bare_mass, np.diag(a), rtol=0, atol=1e-11)
    close(force, bare_force)
    close(energy - bare_energy, 0.5 * a @ v**2)
    dense_mass, dense_force = dense
    close(dense_mass, mass)
    close(dense_force, -force)
    for array, diagonal in operators:
        close(array, dense_mass)
        close(diagonal, np.diagonal(dense_mass))


SEEDS = [(4, 0), *(pytest.param(s, 1, marks=pytest.mark.slow) for s in range(20))]


@pytest.mark.parametrize(("seed", "loops"), SEEDS)
def test_formulations_agree(seed, loops):
    """Newton-Euler in absolute coordinates, the reactions of a tree, and inverse dynamics."""
    mech, _ = geared(seed, loops)
    q, v = random_motion(mech, seed)

    @partial(lanes.jit, strict=True)
    def ours(q, v):
        vdot, lam = mbd.forward_dynamics(mech, q, v)
        tau = mbd.inverse_dynamics(mech, q, v, vdot)[0]
        return vdot, tau, mbd.bias(mech, q, v), mbd.joint_reactions(mech, q, v, vdot, lam)

    vdot, tau, bias, reactions = ours(q, v)
    theirs, solution = jax.jit(absolute_forward_dynamics)(mech, q, v)
    close(vdot, theirs, 1e-8)
    np.testing.assert_allclose(tau, 0.0, rtol=0, atol=1e-8 * float(jnp.max(jnp.abs(bias))))
    for name, wrench in reactions.items():
        if not loops:  # those of a loop may be indeterminate
            close(wrench, solution.reactions[name], 1e-8)


@pytest.mark.parametrize("n", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_the_recursion_in_loops_over_bodies(n):
    """Forty bodies are visited in a loop, of which some have no rotor; values and tangents."""
    mech = chain(n)
    q, v = random_state(mech, 1)
    assert any(len(run) > 1 for run in mbd.topology(mech).runs) == (n == 40)
    along = jax.tree.map(jnp.ones_like, mech.forces)

    def accelerations(forces, recursive):
        m = motion_state(mech.replace(forces=forces), q, v)
        force, rhs = applied_efforts(m, None)
        system = kkt_system(m, recursive=recursive)
        vdot, lam = solve_kkt(system, force[:, None], rhs[:, None])
        return vdot[:, 0] + jnp.sum(least_norm(system, lam[:, 0]))

    def both(forces):
        pair = (partial(accelerations, recursive=x) for x in (True, False))
        return [jax.jvp(fn, (forces,), (along,)) for fn in pair]

    for recursive, dense in zip(*jax.jit(both)(mech.forces), strict=True):
        close(recursive, dense, 1e-9)


def test_a_rotor_of_a_grounded_hinge_is_an_inertia_of_its_body():
    """About a fixed axis both turn alike."""
    axis = np.array([0.6, 0.0, 0.8])
    inertia, a = np.diag([0.2, 0.3, 0.4]), 0.1

    def arm(extra, forces):
        return mbd.Mechanism(
            {
                "arm": mbd.Body(1.3, (0.5, 0.1, 0.2), inertia + extra * np.outer(axis, axis)),
                "bob": mbd.Body(0.4, (1.0, 0.3, 0.2), 0.1 * inertia),
            },
            {
                "hinge": mbd.Revolute("ground", "arm", (0, 0, 0), axis),
                "elbow": mbd.Revolute("arm", "bob", (0.9, 0.1, 0.2), (0, 1, 0)),
            },
            forces,
        )

    q, v = np.array([0.4, -0.7]), np.array([1.1, 0.6])
    rotor = arm(0.0, {"rotor": mbd.Armature("hinge", a)})
    for found, expected in zip(
        mbd.forward_dynamics(rotor, q, v), mbd.forward_dynamics(arm(a, {}), q, v), strict=True
    ):
        close(found, expected)
    close(mbd.mass_matrix(rotor, q), mbd.mass_matrix(arm(a, {}), q))


def test_massless_links_that_carry_a_rotor_have_inertia():
    """The pivot of a massless link is the rotor's alone."""
    mech = mbd.Mechanism(
        {"dial": mbd.Body(0.0, (0, 0, 0), 0.0)},
        {"hinge": mbd.Revolute("ground", "dial", (0, 0, 0), (0, 0, 1))},
        {"rotor": mbd.Armature("hinge", 0.25)},
    )
    for backend in ("lanes", "xla"):
        vdot, _ = mbd.forward_dynamics(
            mech, jnp.zeros(1), jnp.zeros(1), inputs={"hinge": 2.0}, backend=backend
        )
        close(vdot, [8.0])


def test_derivatives_with_respect_to_the_inertia():
    mech, _ = geared(5)
    q, v = random_motion(mech, 5)
    name = mech.structure.armatures[0][0]

    def total(scale):
        path = {f"forces/{name}/inertia": scale * mech.forces[name].inertia}
        vdot, _ = mbd.forward_dynamics(mbd.set_variables(mech, path), q, v)
        return jnp.sum(jnp.sin(vdot))

    slope, step = jax.jit(jax.grad(total))(1.0), 1e-6
    fn = jax.jit(total)
    difference = (fn(1.0 + step) - fn(1.0 - step)) / (2 * step)
    assert abs(slope) > 1e-6
    close(slope, difference, 1e-6)


def test_lagrange_has_the_rotors_energy():
    mech = mbd.zoo.double_pendulum()
    joints = [e.name for e in mech.structure.joints]
    mech = mech.replace(forces={n: mbd.Armature(n, 0.3 + i) for i, n in enumerate(joints)})
    s, rate, acceleration = np.random.default_rng(0).normal(size=(3, 2))

    def poses(q):
        return {n: (p.rotation, p.position) for n, p in mbd.poses(mech, q).items()}

    found = jax.jit(lambda *x: lagrange_efforts(mech, poses, *x))(s, rate, acceleration)
    close(found, mbd.inverse_dynamics(mech, s, rate, acceleration)[0])


def test_a_joint_with_a_rotor_stays_in_the_tree():
    mech = mbd.zoo.rssr()
    cut = mbd.topology(mech).cut[0]
    held = mech.replace(forces={"rotor": mbd.Armature(cut, 0.1)})
    assert cut not in mbd.topology(held).cut
    with pytest.raises(ValueError, match=f"armature 'rotor' is on the cut joint '{cut}'"):
        mbd.topology(held.replace(cut=cut))


@pytest.mark.parametrize(
    ("joint", "inertia", "text"),
    [
        ("hinge", -0.1, "must not be negative"),
        ("hinge", [0.1, 0.2], "inertia is of shape"),
        ("weld", 0.1, "a Fixed has no speeds"),
        ("nowhere", 0.1, "nowhere"),
    ],
)
def test_refused(joint, inertia, text):
    bodies = {"a": mbd.Body(1.0, (1, 0, 0)), "b": mbd.Body(1.0, (1, 0, 0))}
    joints = {
        "hinge": mbd.Revolute("ground", "a", (0, 0, 0), (0, 1, 0)),
        "weld": mbd.Fixed("a", "b", (0, 0, 0)),
    }
    with pytest.raises(ValueError, match=text):
        mbd.Mechanism(bodies, joints, {"rotor": mbd.Armature(joint, inertia)})
