"""Joint reactions by constraint matrices, against the recursion and the absolute coordinates."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import random_body, random_joint, random_mechanism, random_motion

import jaxmbd as mbd
from jaxmbd.dynamics.forward import _accelerations
from jaxmbd.formulations import (
    absolute_forward_dynamics,
    constraint_matrix_reactions,
    determinate_projections,
)
from jaxmbd.formulations.absolute_coordinates import StateMotion, constraint, linearised, points
from jaxmbd.formulations.constraint_matrices import constraint_matrix, screw_matrix
from jaxmbd.model.joints import Joint

TOLERANCE = 1e-10
AT, U, V = (0.3, -0.2, 0.5), (1.0, 2.0, -0.5), (0.3, 1.0, 0.8)
JOINTS = {
    "revolute": mbd.Revolute("a", "b", AT, U),
    "prismatic": mbd.Prismatic("a", "b", AT, U),
    "helical": mbd.Helical("a", "b", AT, U, 0.05),
    "cylindrical": mbd.Cylindrical("a", "b", AT, U),
    "universal": mbd.Universal("a", "b", AT, U, V),
    "spherical": mbd.Spherical("a", "b", AT),
    "planar": mbd.Planar("a", "b", AT, U, V),
    "fixed": mbd.Fixed("a", "b", AT),
    "free": mbd.Free("a", "b"),
    "rod": mbd.Rod("a", "b", AT, (1.0, 0.4, 0.2)),
}


def apart(first, second, keep=None):
    """Largest difference of two sets of wrenches over their size; `keep` projects them first."""
    size = max(float(jnp.abs(w).max()) for w in first.values())
    keep = keep or {name: np.eye(6) for name in first}
    return max(float(jnp.abs(keep[n] @ (first[n] - second[n])).max()) for n in first) / size


def whole(projections):
    return all(np.allclose(p, np.eye(6), atol=1e-6) for p in projections.values())


@pytest.mark.parametrize("kind", JOINTS)
def test_wrenches_are_the_complement_of_the_screws(kind):
    """ΛᵀS = 0, together they span all, and Λ spans the gradients of the constraint functions."""
    rng = np.random.default_rng(1)
    bodies = {n: random_body(rng, rng.normal(size=3)) for n in ("a", "b")}
    joints = {"base": mbd.Free("ground", "a"), "j": JOINTS[kind]}
    if kind == "rod":  # which holds no body alone
        joints["float"] = mbd.Free("ground", "b")
    mech = mbd.Mechanism(bodies, joints)
    q = mbd.neutral(mech)
    if kind != "rod":
        q = mbd.step_coordinates(mech, q, rng.uniform(-1, 1, mbd.topology(mech).nv))
        place = mbd.poses(mech, q)
    else:  # b turns about its rod end
        turn, com = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.asarray(bodies["b"].com)
        turn, end = turn * np.linalg.det(turn), np.array((1.0, 0.4, 0.2))
        place = {"a": (np.eye(3), bodies["a"].com), "b": (turn, end + turn @ (com - end))}
    still = (np.zeros(3), np.zeros(3))
    motion = StateMotion(mech, {n: (*place[n], *still) for n in ("a", "b")})
    joint, s, a, b = motion.halves("j")
    screws, wrenches = screw_matrix(joint, s, a, b), constraint_matrix(joint, s, a, b)
    assert screws.shape[1] + wrenches.shape[1] == 6
    assert np.abs(wrenches.T @ screws).max(initial=0.0) < 1e-15
    assert np.linalg.matrix_rank(np.hstack([screws, wrenches]), 1e-6) == 6

    _, rows, _ = linearised(partial(constraint, joint, s), a, b, jnp.zeros(12))
    arm = points(s, a, b)[1] - b.position
    at_joint = np.array([[*(w[:3] - jnp.cross(arm, w[3:])), *w[3:]] for w in rows[:, 6:]])
    at_joint = at_joint.reshape(-1, 6)
    assert np.abs(at_joint @ screws).max(initial=0.0) < 1e-14
    assert np.linalg.matrix_rank(at_joint, 1e-6) == wrenches.shape[1]


def star(rng):
    """Every type of tree joint from the ground to a body of its own, and a rod between two."""
    kinds = [n for n in JOINTS if n != "rod"]
    coms = dict(zip(kinds, rng.uniform(-1, 1, (len(kinds), 3)), strict=True))
    joints: dict[str, Joint] = {}
    for i, kind in enumerate(kinds):
        a, b = ("ground", kind) if i % 2 or kind == "free" else (kind, "ground")
        joints[kind] = random_joint(rng, kind, a, b, coms[kind] + 0.3 * rng.normal(size=3))
    joints["rod"] = mbd.Rod("spherical", "free", coms["spherical"], coms["free"])
    bodies = {n: random_body(rng, com) for n, com in coms.items()}
    return mbd.Mechanism(bodies, joints, gravity=(1.0, -2.0, -9.0))


@pytest.mark.slow
def test_every_joint_type_with_efforts_on_all():
    rng = np.random.default_rng(7)
    mech = star(rng)
    q, v = random_motion(mech, 7)
    taking = [e for e in mech.structure.joints if e.kind not in (mbd.Rod, mbd.Fixed)]
    efforts = {e.name: rng.normal(size=e.kind.nv) for e in taking}
    vdot, lam = _accelerations(mech, q, v, 0.0, efforts)
    first = mbd.joint_reactions(mech, q, v, vdot, lam, 0.0, efforts)
    # The efforts are to be found too, one joint coordinate by coordinate. Those of the two bodies
    # that the rod connects are given: with all of them the actuation would be redundant.
    given = {n: efforts.pop(n) for n in ("spherical", "free")}
    names = [n for n in efforts if n != "planar"] + [("planar", i) for i in (2, 0, 1)]
    compiled = jax.jit(partial(constraint_matrix_reactions, actuated=names))
    second = compiled(mech, q, v, vdot, 0.0, given)
    assert apart(first, second.reactions) < TOLERANCE
    assert second.efforts.keys() == efforts.keys()
    for name, effort in second.efforts.items():
        np.testing.assert_allclose(effort, efforts[name], atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_random_mechanisms(seed, compared):
    mech = random_mechanism(seed)
    q, v = random_motion(mech, seed)
    vdot, lam = _accelerations(mech, q, v, 0.0, None)
    first = mbd.joint_reactions(mech, q, v, vdot, lam)
    second = constraint_matrix_reactions(mech, q, v, vdot)
    assert float(second.imbalance) < 1e-13
    keep = determinate_projections(mech, q)
    assert apart(first, second.reactions, keep) < TOLERANCE
    accelerations, third = absolute_forward_dynamics(mech, q, v)
    assert apart(first, third.reactions, keep) < TOLERANCE
    np.testing.assert_allclose(accelerations, vdot, atol=TOLERANCE * np.abs(vdot).max())
    rows = sum(len(e.kind.rows) for e in mech.structure.joints)
    # Reactions are determinate where no row is redundant.
    assert compared("whole wrenches", whole(keep), 0.3) == (int(third.rank) == rows)


@pytest.fixture(scope="module")
def four_bar():
    mech = mbd.zoo.four_bar()
    q = mbd.assemble(mech, known={"A": 0.4}).q
    v = mbd.assemble_velocity(mech, q, {"A": 3.0})
    return mech, q, v


def test_redundant_four_bar(four_bar):
    """Drawn in space: loads across the plane are indeterminate, those in it are not."""
    mech, q, v = four_bar
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    first = mbd.joint_reactions(mech, q, v, vdot, lam)
    second = constraint_matrix_reactions(mech, q, v, vdot).reactions
    keep = determinate_projections(mech, q)
    in_plane = np.diag([0.0, 1, 0, 1, 0, 1])
    for p in keep.values():
        np.testing.assert_allclose(p, in_plane, rtol=0, atol=1e-12)
    assert apart(first, second, keep) < TOLERANCE

    # A load across the plane: no joint's share of it is determinate, their balance is.
    pushed = mech.replace(
        forces={"push": mbd.PointForce("coupler", mech.com("coupler"), (0, 5.0, 0))}
    )
    third = constraint_matrix_reactions(pushed, q, v, vdot).reactions
    assert apart(first, third, keep) < TOLERANCE
    assert float(abs(third["A"][4])) > 0.1
    np.testing.assert_allclose(third["B"][4] - third["C"][4], -5.0, rtol=1e-12)
    np.testing.assert_allclose(third["A"][4] + third["D"][4], -5.0, rtol=1e-12)


def test_least_norm_among_all_solutions(four_bar):
    """Any other set of wrenches that carries the motion is larger, in newtons."""
    mech, q, v = four_bar
    pushed = mech.replace(
        forces={"push": mbd.PointForce("coupler", mech.com("coupler"), (0, 5.0, 0))}
    )
    vdot, lam = mbd.forward_dynamics(pushed, q, v)
    least = constraint_matrix_reactions(pushed, q, v, vdot).reactions
    other = mbd.joint_reactions(pushed, q, v, vdot, lam)
    arms = [mech.point(j.point_b) - mech.com(j.b) for j in mech.joints.values()]
    arms += [mech.point(j.point_a) for j in mech.joints.values() if j.a == "ground"]
    arms += [mech.point(j.point_a) - mech.com(j.a) for j in mech.joints.values() if j.a != "ground"]
    length = max(float(np.linalg.norm(x)) for x in arms)

    def size(wrenches):
        moments = sum(float(w[:3] @ w[:3]) for w in wrenches.values()) / length**2
        return moments + sum(float(w[3:] @ w[3:]) for w in wrenches.values())

    keep = determinate_projections(pushed, q)
    assert apart(other, least, keep) < TOLERANCE
    assert apart(other, least) > 0.01
    assert size(least) < size(other)


@pytest.mark.slow
def test_actuation(four_bar):
    mech, q, v = four_bar
    vdot = mbd.assemble_acceleration(mech, q, v, {"A": -7.0})
    layout = mbd.topology(mech).layout
    for actuated in (("A",), ("A", "D")):  # the second is redundant: the least of all efforts
        tau, _ = mbd.inverse_dynamics(mech, q, v, vdot, actuated=actuated)
        found = constraint_matrix_reactions(mech, q, v, vdot, actuated=actuated)
        for name in actuated:
            np.testing.assert_allclose(found.efforts[name], tau[layout[name].v], rtol=1e-9)
    once = jax.jit(partial(constraint_matrix_reactions, actuated=("A", ("D", 0))))
    assert list(once(mech, q, v, vdot).efforts) == ["A", "D"]
    # A cut joint may be actuated as well; its power is the same.
    found = constraint_matrix_reactions(mech, q, v, vdot, actuated=("C",))
    spin = mbd.body_velocities(mech, q, v)
    rate = (spin["rocker"] - spin["coupler"])[1]
    tau, _ = mbd.inverse_dynamics(mech, q, v, vdot, actuated=("A",))
    np.testing.assert_allclose(found.efforts["C"][0] * rate, tau[0] * v[0], rtol=1e-9)


def test_a_motion_that_nothing_causes_is_refused(four_bar):
    mech, q, v = four_bar
    vdot = mbd.assemble_acceleration(mech, q, v, {"A": -7.0})
    with pytest.raises(ValueError, match="cannot carry this motion.*actuate a joint"):
        constraint_matrix_reactions(mech, q, v, vdot)
    inside = jax.jit(constraint_matrix_reactions)(mech, q, v, vdot)
    assert np.isnan(np.asarray(inside.reactions["A"])).all() and float(inside.imbalance) > 1e-3
    with pytest.raises(ValueError, match="'knee', no joint here"):
        constraint_matrix_reactions(mech, q, v, vdot, actuated=("knee",))
    with pytest.raises(ValueError, match="has 1 coordinates, not 1"):
        constraint_matrix_reactions(mech, q, v, vdot, actuated=(("A", 1),))


@pytest.mark.slow
def test_transforms_of_a_redundant_mechanism(four_bar):
    """jit, vmap and gradients through the null space; derivatives against differences."""
    mech, q, v = four_bar
    vdot = mbd.assemble_acceleration(mech, q, v, {"A": 0.0})

    def outputs(mass):
        bodies = {"coupler": mbd.Body(mass, mech.com("coupler"), mech.inertia("coupler"))}
        heavy = mech.replace(bodies=bodies)
        found = constraint_matrix_reactions(heavy, q, v, vdot, actuated=("A",))
        return jnp.concatenate([found.efforts["A"], found.reactions["C"]])

    masses = jnp.array([2.0, 2.4, 3.0])
    batch = jax.jit(jax.vmap(outputs))(masses)
    np.testing.assert_allclose(batch[1], outputs(masses[1]), rtol=1e-12, atol=1e-12)
    slope = jax.jit(jax.jacfwd(outputs))(masses[1])
    np.testing.assert_allclose(slope, (batch[2] - batch[0]) / 1.0, rtol=1e-9, atol=1e-11)
    back = jax.jit(jax.grad(lambda m: outputs(m)[0]))(masses[1])
    np.testing.assert_allclose(back, slope[0], rtol=1e-10)
