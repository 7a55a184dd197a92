"""The recursion's factors of M are those of the dense factorisation."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import random_mechanism, random_motion, random_state

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics.forward import applied_efforts
from jaxmbd.dynamics.inertia import joint_space_inertia
from jaxmbd.dynamics.kkt import kkt_system, least_norm, solve_kkt
from jaxmbd.dynamics.reverse_gaussian_elimination import eliminate, tree_inertia
from jaxmbd.kinematics import motion_state
from jaxmbd.kinematics.scales import own_jacobian
from jaxmbd.numerics.factorisations import ltdl, ltdl_backward, ltdl_forward

CLOSE = 1e-11
"""Relative to the largest element; M of these mechanisms has condition numbers up to 1e5."""


def chain(n):
    """Revolutes in general directions."""
    rng = np.random.default_rng(n)
    bodies, joints = {}, {}
    for i in range(n):
        bodies[f"b{i}"] = mbd.Body(1.0 + 0.1 * i, [i + 0.5, 0.1, 0.2], np.diag([0.2, 0.3, 0.4]))
        below = f"b{i - 1}" if i else "ground"
        joints[f"j{i}"] = mbd.Revolute(below, f"b{i}", [float(i), 0.1, 0.0], rng.normal(size=3))
    return mbd.Mechanism(bodies, joints, gravity=(0.0, 0.0, -9.81))


def both(mech, q, b, along):
    """By recursion and densely: the factors and all products, and what the derivative rule uses."""

    def products(q, b):
        m = motion_state(mech, q)
        return tree_inertia(m) @ b, joint_space_inertia(m) @ b

    m = motion_state(mech, q)
    tree, mass, rows = tree_inertia(m), joint_space_inertia(m), own_jacobian(m).T
    factor, pivots, sound = eliminate(tree)
    lower, dense_pivots, dense_sound = ltdl(mass)
    values, slopes = jax.jvp(products, (q, b), along)
    recursive = {
        "pivots": pivots,
        "sound": sound,
        "backward": factor.backward(b),
        "backward, rows": factor.backward_rows(rows.T),
        "forward": factor.forward(b),
        "product": values[0],
        "product of a vector": tree @ b[:, 0],
        "derivative of the product": slopes[0],
        "diagonal": tree.diagonal(),
    }
    dense = {
        "pivots": dense_pivots,
        "sound": dense_sound,
        "backward": ltdl_backward(lower, b),
        "backward, rows": ltdl_backward(lower, rows),
        "forward": ltdl_forward(lower, b),
        "product": values[1],
        "product of a vector": mass @ b[:, 0],
        "derivative of the product": slopes[1],
        "diagonal": jnp.diagonal(mass),
    }
    return recursive, dense


def check(mech, seed):
    q, _ = random_state(mech, seed)
    rng = np.random.default_rng(seed)
    b = rng.normal(size=(mbd.topology(mech).nv, 2))
    along = (rng.normal(size=q.shape), rng.normal(size=b.shape))
    recursive, dense = lanes.jit(both)(mech, q, b, along)
    for name, found in recursive.items():
        size = np.max(np.abs(dense[name]), initial=1e-300)
        np.testing.assert_allclose(
            found / size, dense[name] / size, rtol=0, atol=CLOSE, err_msg=name
        )


def seeds(count, *fast):
    return [s if s in fast else pytest.param(s, marks=pytest.mark.slow) for s in range(count)]


CASES, MOTIONS = seeds(100, 5, 43), seeds(60, 43)


def accelerations(mech, q, v, recursive):
    m = motion_state(mech, q, v)
    force, rhs = applied_efforts(m, None)
    system = kkt_system(m, recursive=recursive)
    vdot, lam = solve_kkt(system, force[:, None], rhs[:, None])
    return vdot[:, 0], least_norm(system, lam[:, 0])


def both_motions(mech, q, v, along):
    """By recursion and densely: v̇ and λ, and their tangents."""

    def found(recursive):
        return jax.jvp(lambda *x: accelerations(*x, recursive), (mech, q, v), along)

    return found(True), found(False)


def check_motion(mech, seed):
    q, v = random_motion(mech, seed)
    rng = np.random.default_rng(seed)
    along = (no_change(mech), rng.normal(size=q.shape), rng.normal(size=v.shape))
    (values, slopes), (values_, slopes_) = lanes.jit(both_motions)(mech, q, v, along)
    close = CLOSE * lost_digits(mech, q)
    agree((values[0], slopes[0]), (values_[0], slopes_[0]), close)
    agree((values[1], slopes[1]), (values_[1], slopes_[1]), close)


def lost_digits(mech, q):
    """The condition numbers of M and ``J M⁻¹ Jᵀ`` over 1e3, from 1 to 300."""
    rows, mass = map(np.asarray, matrices(mech, q))
    gram = rows @ np.linalg.solve(mass, rows.T)
    sizes = np.linalg.svd(gram, compute_uv=False)
    kept = sizes[sizes > 1e-10 * np.max(sizes, initial=0.0)]
    loops = kept[0] / kept[-1] if kept.size else 1.0
    return np.clip(np.linalg.cond(mass) * loops / 1e3, 1.0, 300.0)


@lanes.jit
def matrices(mech, q):
    m = motion_state(mech, q)
    return own_jacobian(m), joint_space_inertia(m)


def no_change(mech):
    return jax.tree.map(jnp.zeros_like, mech)


def agree(found, reference, close=CLOSE):
    """To a share of the largest number of all."""
    found, reference = jax.tree.leaves(found), jax.tree.leaves(reference)
    size = max((np.max(np.abs(x), initial=0.0) for x in reference), default=0.0)
    for a, b in zip(found, reference, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=close * size)


@pytest.mark.parametrize("seed", CASES)
def test_factors_of_random_mechanisms(seed):
    check(random_mechanism(seed), seed)


@pytest.mark.parametrize("seed", MOTIONS)
def test_motions_of_random_mechanisms(seed):
    check_motion(random_mechanism(seed), seed)


def test_chain_with_several_reference_points():
    mech = chain(6)
    assert mbd.topology(mech).elimination.own_points.count(True) == 2
    check(mech, 0)


def test_gradients_of_kernels():
    """Reverse mode in a kernel, by the derivative rule of the product."""
    mech = chain(3)
    q, v = (jnp.asarray(x) for x in random_state(mech, 0))

    def total(turn, mass, recursive):
        body = mbd.Body(mass, mech.bodies["b1"].com, mech.bodies["b1"].inertia)
        link = mech.replace(bodies={"b1": body})
        return jnp.sum(
            jnp.sin(lanes.jit(partial(accelerations, recursive=recursive))(link, turn, v)[0])
        )

    found, expected = (
        jax.grad(total, argnums=(0, 1))(q, jnp.array(1.3), recursive) for recursive in (True, False)
    )
    agree(found, expected)


def without_inertia(name):
    """Mechanisms of which some pivots vanish, and which."""
    zero = mbd.Body(0.0, [0.0, 0.0, 0.0], 0.0)
    solid = mbd.Body(2.0, [1.0, 0.2, 0.1], np.diag([0.2, 0.3, 0.4]))
    x, y, z = np.eye(3)
    if name == "massless end":
        joints = {
            "A": mbd.Revolute("ground", "a", [0.0, 0, 0], z),
            "B": mbd.Revolute("a", "b", [1.0, 0, 0], y),
        }
        return mbd.Mechanism({"a": solid, "b": zero}, joints), [True, False]
    if name == "balls and a slide":  # the slide has inertia, the balls' centres coincide
        joints = {
            "A": mbd.Spherical("ground", "a", [0.0, 0, 0]),
            "B": mbd.Prismatic("a", "b", [0.0, 0, 0], z),
            "C": mbd.Spherical("b", "c", [0.0, 0, 0]),
        }
        sound = [False] * 3 + [True] * 4
        return mbd.Mechanism({"a": zero, "b": zero, "c": solid}, joints), sound
    joints = {  # the first and the last axis coincide
        "A": mbd.Revolute("ground", "a", [0.0, 0, 0], z),
        "B": mbd.Revolute("a", "b", [0.0, 0, 0], x),
        "C": mbd.Revolute("b", "c", [0.0, 0, 0], z),
    }
    return mbd.Mechanism({"a": zero, "b": zero, "c": solid}, joints), [False, True, True]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["massless end", "gimbal lock", "balls and a slide"])
def test_motions_without_inertia(name, dtype):
    mech, sound = without_inertia(name)
    mech = mech.astype(dtype)

    @lanes.jit
    def pivots_at(along):
        q = mbd.step_coordinates(mech, mbd.neutral(mech), along)
        return eliminate(tree_inertia(motion_state(mech, q)))[1:]

    for turn in (0.0, 0.7):  # rounding leaves something of a pivot
        along = np.zeros(len(sound), dtype)
        along[0] = turn
        along[-1] = turn if name == "balls and a slide" else 0.0
        pivots, found = pivots_at(along)
        np.testing.assert_array_equal(found, sound)
        np.testing.assert_array_equal(np.asarray(pivots)[~np.array(sound)], 1.0)


@pytest.mark.parametrize("straight", [True, False])
def test_thin_rods_on_balls_in_single_precision(straight):
    """A rod's spin about its axis has little inertia, but more than the rounding error."""
    n, rng = 6, np.random.default_rng(0)
    bodies, joints = {}, {}
    for i in range(n):
        bodies[f"b{i}"] = mbd.Body(1.0, [i + 0.5, 0.0, 0.0], np.diag([1e-4, 1 / 12, 1 / 12]))
        joints[f"j{i}"] = mbd.Spherical(f"b{i - 1}" if i else "ground", f"b{i}", [float(i), 0, 0])
    mech = mbd.Mechanism(bodies, joints)
    turn, b = rng.normal(size=(2, 3 * n))
    q = mbd.step_coordinates(mech, mbd.neutral(mech), 0.0 * turn if straight else 0.3 * turn)
    exact, _ = SOLUTION(mech, q, b[:, None])
    found, sound = SOLUTION(mech.astype("float32"), q.astype("f4"), b[:, None].astype("f4"))
    assert np.all(sound)
    assert np.max(np.abs(found - exact)) < 1e-3 * np.max(np.abs(exact))


def solution(mech, q, b):
    factor, pivots, sound = eliminate(tree_inertia(motion_state(mech, q)))
    return factor.forward(factor.backward(b) / pivots[:, None]), sound


SOLUTION = jax.jit(solution)


def operations(n):
    """Of the factors and a solution, per sample, after simplification."""
    mech = chain(n)
    return lanes.explain(solution, mech, mbd.neutral(mech) + 0.1, np.ones((n, 1))).flops


def test_operations_are_linear_in_the_number_of_bodies():
    counts = [operations(n) for n in (20, 40, 60)]
    assert counts[2] - counts[1] == counts[1] - counts[0]
