"""Equivalent particles: masses, point coordinates against DeNOC, the serial recursion."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import (
    random_body,
    random_joint,
    random_mechanism,
    random_motion,
    random_state,
)

import jaxmbd as mbd
from jaxmbd.formulations import (
    chain_accelerations,
    dependent_particle,
    equivalent_particles,
    invariants,
    least_forms,
    mass_distribution,
    particle_accelerations,
    particle_accelerations_of_state,
    particle_count,
)

Z = np.zeros(3)


def turned(rng):
    r, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return r * np.linalg.det(r)


def moments(points, masses):
    """Mass, first moments and inertia about the origin of masses at points."""
    masses, points = np.asarray(masses), np.asarray(points)
    square = np.einsum("n,ni,nj->ij", masses, points, points)
    return masses.sum(), masses @ points, np.trace(square) * np.eye(3) - square


def about_origin(mass, com, inertia):
    com = np.asarray(com)
    return mass, mass * com, inertia + mass * (com @ com * np.eye(3) - np.outer(com, com))


# --- masses ---------------------------------------------------------------------------------


def bodies_of_each_kind(rng):
    """(primary particles, mass, com, inertia) of a general body, a flat one, a rod, a point."""
    r, com = turned(rng), rng.normal(size=3)
    body = random_body(rng, com)
    yield rng.normal(size=(4, 3)), float(body.mass), com, np.asarray(body.inertia)
    flat = r @ np.diag([0.2, 0.5, 0.7]) @ r.T  # z is the normal
    corners = com + rng.normal(size=(3, 2)) @ r[:, :2].T
    yield corners, 1.5, com, flat
    rod = r @ np.diag([0.0, 0.4, 0.4]) @ r.T
    yield com + np.outer([-0.3, 0.9], r[:, 0]), 1.5, com, rod
    yield com[None], 1.5, com, np.zeros((3, 3))


def test_particles_have_the_bodys_moments_and_kinetic_energy():
    rng = np.random.default_rng(0)
    for points, mass, com, inertia in bodies_of_each_kind(rng):
        found = jax.jit(equivalent_particles)(points, mass, com, inertia)
        k = len(points)
        assert len(found.masses) == k * (k + 1) // 2
        for i, (a, b) in enumerate(itertools.combinations(range(k), 2)):
            np.testing.assert_allclose(found.points[k + i], (points[a] + points[b]) / 2)
        for ours, wanted in zip(
            moments(found.points, found.masses), about_origin(mass, com, inertia), strict=True
        ):
            np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-12)
        # by the barycentric route: the pseudo-inertia is P M Pᵀ with P = [points; 1]
        p = np.concatenate([points.T, np.ones((1, k))])
        second = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(com, com)
        pseudo = np.block([[second, mass * com[:, None]], [mass * com[None], mass]])
        matrix = np.linalg.pinv(p) @ pseudo @ np.linalg.pinv(p).T
        np.testing.assert_allclose(found.matrix, matrix, rtol=0, atol=1e-11 * np.abs(matrix).max())
        # kinetic energy of a rigid motion
        omega, v = rng.normal(size=(2, 3))
        speeds = v + np.cross(omega, points - com)
        energy = 0.5 * np.einsum("ij,ix,jx->", found.matrix, speeds, speeds)
        np.testing.assert_allclose(energy, 0.5 * (mass * v @ v + omega @ inertia @ omega))


def test_a_body_is_told_what_it_is():
    kinds = {
        "general": (0.3, 0.4, 0.5),
        "flat": (0.1, 0.2, 0.3),
        "rod": (0.0, 0.2, 0.2),
        "point": (0.0, 0.0, 0.0),
    }
    r = turned(np.random.default_rng(1))
    for kind, principal in kinds.items():
        assert mass_distribution(mbd.Body(2.0, Z, r @ np.diag(principal) @ r.T)) == kind
    assert mass_distribution(mbd.Body(0.0, Z)) == "massless"
    assert mass_distribution(mbd.Body(1.0, Z, (0.1, 0.1, 0.21))) == "general"
    with pytest.raises(ValueError, match="outside jit"):
        jax.jit(lambda m: mass_distribution(mbd.Body(m, Z)) and m)(1.0)


@pytest.mark.parametrize(
    ("points", "inertia", "message"),
    [
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.0]], (1, 2, 3), "lie in a plane"),
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0.0]], (0, 1, 1), "lie in a line"),
        ([[1, 0, 0], [1, 0, 0.0]], (0, 1, 1), "lie in a point"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]], (1, 1, 1.5), "no flat body"),
        ([[0, 0, 1], [1, 0, 1], [0, 1, 1.0]], (1, 1, 2.0), "no flat body"),
        ([[-1, 0, 0], [1, 0, 0.0]], (0.1, 1, 1), "no rod"),
        ([[0, 0, 0.0]], (0.1, 0.1, 0.1), "no point mass"),
        ([[0, 0, 0.0]] * 5, (1, 1, 1), "k = 1 to 4"),
    ],
)
def test_masses_that_cannot_be_are_refused(points, inertia, message):
    with pytest.raises(ValueError, match=message):
        equivalent_particles(points, 1.0, Z, inertia)


def test_masses_that_cannot_be_are_nan_where_traced():
    square = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]])
    inertias = jnp.array([[1.0, 2.0, 3.0], [1.0, 2.0, 2.5]])
    masses = jax.vmap(lambda i: equivalent_particles(square, 1.0, Z, i).masses)(inertias)
    assert np.isfinite(masses[0]).all()
    assert np.isnan(masses[1]).all()


def test_the_dependent_particle_keeps_its_side():
    rng = np.random.default_rng(2)
    x, r, shift = rng.normal(size=(4, 3)), turned(rng), rng.normal(size=3)
    i = invariants(*jnp.asarray(x))
    mirrored = x.copy()
    mirrored[3] -= 2 * i.side * np.cross(x[1] - x[0], x[2] - x[0])
    other = invariants(*jnp.asarray(mirrored))
    np.testing.assert_allclose([other.side, other.mu, other.tau], [-i.side, i.mu, i.tau])
    moved = x @ r.T + shift
    np.testing.assert_allclose(
        dependent_particle(i, *jnp.asarray(moved[:3])), moved[3], rtol=0, atol=1e-14
    )
    # the paper's λ̄ (10.1), a distance from the plane, but for its sign
    normal = np.cross(x[1] - x[0], x[2] - x[0])
    distance = (x[3] - x[0]) @ normal / np.linalg.norm(normal)
    np.testing.assert_allclose(i.side * np.linalg.norm(normal), distance)


# --- accelerations --------------------------------------------------------------------------


def agree(mech, q, v, forms=4, t=0.0, inputs=None):
    """Compare with DeNOC: accelerations to 1e-9 of the largest; the solution comes back."""
    vdot, lam = mbd.forward_dynamics(mech, q, v, t, inputs)
    wanted = mbd.body_accelerations(mech, q, v, vdot)
    solve = jax.jit(partial(particle_accelerations, forms=forms))
    found = solve(mech, q, v, t, inputs)
    size = max(float(jnp.abs(a).max()) for a in wanted.values())
    for body, a in wanted.items():
        np.testing.assert_allclose(found.accelerations[body], a, rtol=0, atol=1e-9 * size)
    assert max(found.residual, found.velocity_residual) < 1e-11
    assert found.imbalance < 1e-9 * size
    return found, lam


@pytest.mark.parametrize(
    ("seed", "forms"),
    [
        (4, 3),  # universal, planar, fixed, prismatic; cut: cylindrical, rod
        pytest.param(5, 4, marks=pytest.mark.slow),
    ],
)
def test_agrees_with_denoc_on_random_mechanisms(seed, forms):
    mech = random_mechanism(seed)
    found, _ = agree(mech, *random_motion(mech, seed), forms)
    count = particle_count(mech, forms=forms)
    assert found.rank <= count.constraints
    jacobian = mbd.constraint_jacobian(mech, mbd.neutral(mech))
    freedom = jacobian.shape[1] - np.linalg.matrix_rank(jacobian)
    assert count.coordinates - found.rank == freedom


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_agrees_with_denoc_on_more_random_mechanisms(seed):
    mech = random_mechanism(seed)
    q, v = random_motion(mech, seed)
    for forms in (4, 3, {"b0": 3}):
        agree(mech, q, v, forms)


def speeds(mech, q, seed=0, t=0.0):
    """Random speeds that the constraints allow, drives at their rates."""
    jacobian, top = np.asarray(mbd.constraint_jacobian(mech, q)), mbd.topology(mech)
    wanted = np.zeros(top.nc)
    for name in top.drives:
        wanted[top.layout[name].rows] = mech.drives[name].value(jnp.asarray(t))[1]
    v = np.random.default_rng(seed).normal(size=top.nv)
    return v - np.linalg.lstsq(jacobian, jacobian @ v - wanted, rcond=1e-9)[0]


@pytest.mark.slow
@pytest.mark.parametrize("forms", [4, 3])
@pytest.mark.parametrize("name", ["rssr", "double_wishbone", "macpherson", "multi_link"])
def test_agrees_with_denoc_on_published_mechanisms(name, forms):
    mech = getattr(mbd.zoo, name)()
    q = mbd.assemble(mech).q
    found, lam = agree(mech, q, speeds(mech, q), forms)
    for cut in mbd.topology(mech).cut:
        rows = mbd.topology(mech).layout[cut].rows
        if len(lam[rows]) in (1, 3):  # rods and balls: their conditions are those of the engine
            size = float(jnp.abs(lam).max())
            np.testing.assert_allclose(found.multipliers[cut], lam[rows], rtol=0, atol=1e-9 * size)


def test_couplings_drives_of_points_and_conditions_on_axes():
    joints = {
        "j0": mbd.Spherical("ground", "b0", Z),
        "j1": mbd.Spherical("b1", "b0", (1, 0, 0.2)),
        "j2": mbd.Revolute("b1", "b2", (2, 0, 0), (0.1, 1, 0.3)),
        "j3": mbd.Universal("b2", "b3", (3, 0, 0), (0, 1, 0.2), (0, 0.3, 1)),
        "line": mbd.PointOnLine("ground", "b3", (4, 0, 0), (1, 2, 0.5)),
        "plane": mbd.PointOnPlane("b0", "b1", (2, 0, 0), (1, 0.2, 0), at_b=(1.94, 0.3, -1.5)),
        "parallel": mbd.ParallelAxes("b0", "b2", (0.3, 0, 1)),
        "upright": mbd.PerpendicularAxes("b1", "b3", (0, 0, 1), (1, 0, 0)),
    }
    rng = np.random.default_rng(4)
    coms = [(i + 0.5, *rng.uniform(-0.2, 0.2, 2)) for i in range(4)]
    mech = mbd.Mechanism(
        {f"b{i}": random_body(rng, np.array(com)) for i, com in enumerate(coms)},
        joints,
        {"hinge": mbd.TorsionSpring("j2", stiffness=3.0, damping=0.2)},
        drives={"lift": mbd.PointDrive("b0", (1, 0.1, 0), "z", lambda t, p: p * t * t, 0.7)},
        couplings={"gear": mbd.Gear("j2", "j3", 0.5, index_b=1)},
    )
    q = mbd.neutral(mech)
    found, lam = agree(mech, q, speeds(mech, q), inputs={"j3": np.array([0.2, -0.3]), "j0": 0.1})
    layout = mbd.topology(mech).layout
    for name in ("plane", "line", "gear", "lift"):
        ours, theirs = found.multipliers[name], lam[layout[name].rows]
        # e1, e2 of the line are the same; joints of directions have theirs at an arm
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_planar_mechanisms():
    mech = mbd.Mechanism(
        {"a": mbd.Body(1.0, (0.5, 0.1), 0.2), "b": mbd.Body(2.0, (1.3, 0.0), 0.1)},
        {
            "j": mbd.Revolute("ground", "a", (0.0, 0.0)),
            "k": mbd.Revolute("a", "b", (1.0, 0.0)),
            "rod": mbd.Rod("ground", "b", (2.0, 1.0), (1.6, 0.1)),
        },
    )
    q = mbd.neutral(mech)
    agree(mech, q, speeds(mech, q), forms=3)


def rod_linkage(spin_inertia):
    """A crank and a rocker, connected by a rod on balls, with a spring on the rod."""
    a, b = np.array([0.3, 0.1, 0.2]), np.array([1.1, 0.5, 0.4])
    u = (b - a) / np.linalg.norm(b - a)
    inertia = 0.05 * (np.eye(3) - np.outer(u, u)) + spin_inertia * np.outer(u, u)
    rng = np.random.default_rng(7)
    return mbd.Mechanism(
        {
            "crank": random_body(rng, np.array([0.1, 0.0, 0.1])),
            "rod": mbd.Body(0.8, a + 0.4 * (b - a), inertia),
            "rocker": random_body(rng, np.array([1.0, 0.2, 0.2])),
        },
        {
            "hinge": mbd.Revolute("ground", "crank", Z, (0, 1, 1)),
            "A": mbd.Spherical("crank", "rod", a),
            "B": mbd.Spherical("rod", "rocker", b),
            "pivot": mbd.Revolute("ground", "rocker", (1, 0, 0), (0.2, 1, 0)),
        },
        {"spring": mbd.SpringDamper("ground", "rod", (0, 0, 2), a + 0.7 * (b - a), 40.0, 0.5)},
        cut="B",
    )


def test_a_rod_takes_two_particles():
    thin, thick = rod_linkage(0.0), rod_linkage(1e-3)
    forms = least_forms(thin)
    assert forms == {"crank": 3, "rod": 2, "rocker": 3}
    assert least_forms(thick)["rod"] == 3
    assert particle_count(thin, forms=forms).coordinates == 9
    # With no spin the inertia about the rod's axis does nothing, so the thick one compares.
    q = mbd.neutral(thick)
    v = speeds(thick, q)
    top, u = mbd.topology(thick), np.asarray(thick.point("B.at") - thick.point("A.at"))
    spin = mbd.body_velocities(thick, q, v)["rod"][:3] @ u / (u @ u) * u
    v[top.layout["A"].v] -= spin
    vdot, _ = mbd.forward_dynamics(thick, q, v)
    wanted = mbd.body_accelerations(thick, q, v, vdot)
    found = jax.jit(partial(particle_accelerations, forms=forms))(thin, q, v)
    size = max(float(jnp.abs(a).max()) for a in wanted.values())
    for body, part in (("crank", slice(6)), ("rocker", slice(6)), ("rod", slice(3, 6))):
        np.testing.assert_allclose(
            found.accelerations[body][part], wanted[body][part], rtol=0, atol=1e-9 * size
        )


@pytest.mark.slow
def test_a_massless_link_of_two_particles_is_a_rod():
    """A quarter car as the paper's: a link and four rods hold the knuckle, 21 unknowns."""
    bodies = {
        "chassis": mbd.Body(456.0, (0, 0, 0.6), (570, 2320, 2715)),
        "knuckle": mbd.Body(11.8, (0, 0.75, 0.35), 0.5),
        "wheel": mbd.Body(25.0, (0, 0.8, 0.35), (1, 2, 1)),
    }
    ends = [
        ((0.0, 0.3, 0.2), (0.02, 0.7, 0.2)),
        ((0.2, 0.3, 0.25), (0.1, 0.7, 0.25)),
        ((-0.2, 0.3, 0.25), (-0.1, 0.7, 0.25)),
        ((0.15, 0.35, 0.55), (0.05, 0.7, 0.5)),
        ((-0.15, 0.35, 0.5), (-0.1, 0.68, 0.45)),
    ]
    joints = {
        "slide": mbd.Prismatic("ground", "chassis", (0, 0, 0.6), (0, 0, 1)),
        "axle": mbd.Revolute("knuckle", "wheel", (0, 0.8, 0.35), (0, 1, 0)),
    }
    rods = {f"rod{i}": mbd.Rod("chassis", "knuckle", *ends[i]) for i in range(5)}
    forces = {
        "spring": mbd.SpringDamper("chassis", "knuckle", (0, 0.4, 0.9), ends[0][1], 51.1e3, 1600),
        "tyre": mbd.Tyre("wheel", (0, 0.8, 0.35), 6e6, 1e4, 0.355),
    }
    free = {"free": mbd.Free("ground", "knuckle")}
    five = mbd.Mechanism(bodies, {**joints, **free, **rods}, forces)
    q = mbd.neutral(five)
    v = speeds(five, q)
    found, lam = agree(five, q, v, forms=3)

    # the first rod as a massless body on balls, as the paper draws its lower link
    middle = 0.5 * (np.array(ends[0][0]) + ends[0][1])
    link = mbd.Mechanism(
        {**bodies, "lower": mbd.Body(0.0, middle)},
        {
            **joints,
            "in": mbd.Spherical("chassis", "lower", ends[0][0]),
            "out": mbd.Spherical("lower", "knuckle", ends[0][1]),
            **{n: rods[n] for n in list(rods)[1:]},
        },
        forces,
    )
    forms = least_forms(link)
    assert forms == {"chassis": 3, "knuckle": 3, "wheel": 3, "lower": 2}
    count = particle_count(link, forms=forms)
    assert (count.coordinates, count.constraints, count.differential) == (21, 18, 3)
    place, twist = mbd.poses(five, q), mbd.body_velocities(five, q, v)
    state = {b: (*place[b], twist[b][:3], twist[b][3:]) for b in bodies}
    start = mbd.point_velocity(five, q, v, "chassis", ends[0][0])
    end = mbd.point_velocity(five, q, v, "knuckle", ends[0][1])
    axis = np.array(ends[0][1]) - ends[0][0]
    turning = np.cross(axis, end - start) / (axis @ axis)
    state["lower"] = (np.eye(3), middle, turning, 0.5 * (start + end))
    again = particle_accelerations_of_state(link, state, forms=forms)
    size = max(float(jnp.abs(a).max()) for a in found.accelerations.values())
    for body, a in found.accelerations.items():
        np.testing.assert_allclose(again.accelerations[body], a, rtol=0, atol=1e-9 * size)
    rows = [mbd.topology(five).layout[n].rows for n in list(rods)[1:]]
    for name, part in zip(list(rods)[1:], rows, strict=True):
        np.testing.assert_allclose(again.multipliers[name], lam[part], rtol=1e-8)


def test_driven_linkage_with_gradients_in_a_batch():
    drive = mbd.Drive("hinge", lambda t, p: p * t + 2.0 * t * t, 3.0)
    linkage = rod_linkage(1e-3).replace(drives={"motor": drive})
    q = mbd.neutral(linkage)
    v = speeds(linkage, q)

    def loads(mass):
        rocker = mbd.Body(mass, linkage.com("rocker"), mass * linkage.inertia("rocker"))
        found = particle_accelerations(linkage.replace(bodies={"rocker": rocker}), q, v, forms=3)
        return found.multipliers["motor"][0], found.multipliers["B"]

    masses, h = jnp.array([0.7, 1.0, 1.0 + 1e-4, 1.0 - 1e-4]), 1e-4
    solve = mbd.lanes.vmap(jax.value_and_grad(loads, has_aux=True))
    (torque, at_b), slope = solve(masses)
    np.testing.assert_allclose(slope[1], (torque[2] - torque[3]) / (2 * h), rtol=1e-7)
    heavy = linkage.replace(
        bodies={"rocker": mbd.Body(0.7, linkage.com("rocker"), 0.7 * linkage.inertia("rocker"))}
    )
    _, lam = mbd.forward_dynamics(heavy, q, v)
    layout = mbd.topology(linkage).layout
    np.testing.assert_allclose(torque[0], lam[layout["motor"].rows][0], rtol=1e-9)
    np.testing.assert_allclose(at_b[0], lam[layout["B"].rows], rtol=1e-8)


def test_says_when_the_state_is_off_the_conditions():
    mech = mbd.Mechanism(
        {"bob": mbd.Body(1.0, (1, 0, 0))},
        {"hinge": mbd.Revolute("ground", "bob", Z, (0, 1, 0))},
    )
    state = {"bob": (np.eye(3), np.array([1.0, 0, 0.1]), Z, np.array([0, 0, 0.2]))}
    found = jax.jit(particle_accelerations_of_state)(mech, state)
    np.testing.assert_allclose(found.residual, 0.1, rtol=1e-9)
    assert found.velocity_residual > 0.01


# --- the serial chain -----------------------------------------------------------------------


def chain(kinds, seed):
    rng = np.random.default_rng(seed)
    bodies, joints, before, x = {}, {}, "ground", np.zeros(3)
    for i, kind in enumerate(kinds):
        name, com = f"b{i}", x + 0.4 * rng.normal(size=3)
        bodies[name] = random_body(rng, com)
        a, b = (before, name) if kind == "free" or i % 2 else (name, before)
        joints[f"j{i}"] = random_joint(rng, kind, a, b, x)
        before, x = name, com + 0.4 * rng.normal(size=3)
    forces = {
        "spring": mbd.SpringDamper("ground", before, (0, 0, 2), x, stiffness=20.0, damping=0.7),
        "twist": mbd.Torque("b0", before, rng.normal(size=3)),
        "motor": mbd.JointTorque("j1", 0.3),
    }
    return mbd.Mechanism(bodies, joints, forces, gravity=(1, -2, -9))


@pytest.mark.parametrize(
    ("kinds", "unknowns"),
    [
        (("spherical", "revolute"), 6 + 3),
        (("free", "spherical"), 9 + 6),  # 6 N + 3 with balls alone
        pytest.param(("revolute", "spherical", "revolute"), 3 + 6 + 3, marks=pytest.mark.slow),
        pytest.param(("free", "revolute", "spherical"), 9 + 3 + 6, marks=pytest.mark.slow),
    ],
)
def test_serial_chain_agrees_with_denoc(kinds, unknowns):
    mech = chain(kinds, 5)
    q, v = random_state(mech, 3)
    inputs = {"j1": 1.7, "j0": 0.9}
    vdot, _ = mbd.forward_dynamics(mech, q, v, 0.0, inputs)
    wanted = mbd.body_accelerations(mech, q, v, vdot)
    found = jax.jit(chain_accelerations)(mech, q, v, 0.0, inputs)
    size = max(float(jnp.abs(a).max()) for a in wanted.values())
    for body, a in wanted.items():
        np.testing.assert_allclose(found[body], a, rtol=0, atol=1e-9 * size)
    count = particle_count(mech, forms=3)
    assert count.coordinates == unknowns
    assert count.differential == mbd.topology(mech).nv


def test_only_serial_chains_have_the_recursion():
    mech = mbd.zoo.rssr()
    q = mbd.neutral(mech)
    with pytest.raises(ValueError, match="'B'.* are constraint rows; a serial chain is open"):
        chain_accelerations(mech, q, np.zeros(mbd.topology(mech).nv))
    mech = random_mechanism(0, loops=0)
    with pytest.raises(ValueError, match="is a Helical; give a Spherical or a Revolute"):
        chain_accelerations(mech, mbd.neutral(mech), np.zeros(mbd.topology(mech).nv))


# --- counting and refusing ------------------------------------------------------------------


def test_counts():
    rssr = mbd.zoo.rssr()
    four, three = particle_count(rssr), particle_count(rssr, forms=3)
    # crank and rocker share two particles with the ground, the coupler one with the crank
    assert four[:] == (7, 21, 5 + 6 + 5, 3, 0)
    assert three[:] == (4, 12, 2 + 3 + 2, 3, 0)
    assert four.differential == three.differential == 2  # the turn and the coupler's idle spin
    assert four.with_multipliers == 21 + 19
    driven = rssr.replace(drives={"d": mbd.Drive("crank", lambda t, p: t)})
    assert particle_count(driven).held == 1


def wobbling(joint):
    return mbd.Mechanism(
        {"a": mbd.Body(1.0, Z, 0.1), "b": mbd.Body(1.0, (1, 0, 0), 0.1)},
        {"float": mbd.Free("ground", "a"), "j": joint},
    )


def test_what_points_cannot_express_is_refused():
    ball = wobbling(mbd.Spherical("a", "b", (0.5, 0, 0)))
    hinge = wobbling(mbd.Revolute("a", "b", (0.5, 0, 0), (0, 0, 1)))
    q = mbd.neutral(ball)
    solve = particle_accelerations

    def v(mech):
        return np.zeros(mbd.topology(mech).nv)

    with pytest.raises(ValueError, match="2, 3 or 4 primary particles"):
        solve(ball, q, v(ball), forms=5)
    with pytest.raises(ValueError, match=r"names \['c'\], which are no bodies"):
        particle_count(ball, forms={"c": 3})
    with pytest.raises(ValueError, match="'b' has two particles, but it is carried by joint 'j'"):
        particle_count(hinge, forms={"b": 2})
    with pytest.raises(ValueError, match="'a' has two particles and so no directions"):
        particle_count(hinge, forms={"a": 2})
    with pytest.raises(ValueError, match="body 'b': the body is no rod"):
        solve(ball, q, v(ball), forms={"b": 2})
    with pytest.raises(ValueError, match="inputs on"):
        solve(ball, q, v(ball), inputs={"knee": 1.0})
    with pytest.raises(ValueError, match="effort on joint 'j' has shape"):
        solve(ball, q, v(ball), inputs={"j": np.ones(2)})
    with pytest.raises(ValueError, match="no entry for"):
        particle_accelerations_of_state(ball, {})
    rubs = hinge.replace(forces={"rubs": mbd.JointFriction("j", 0.1, 0.01)})
    with pytest.raises(ValueError, match="friction 'rubs' needs the reaction of joint 'j'"):
        solve(rubs, mbd.neutral(rubs), v(rubs))
    curve = mbd.PointOnCurve("ground", "b", Z, (1, 0, 0), circle)
    mech = ball.replace(joints={"slot": curve})
    with pytest.raises(ValueError, match="'slot' is a PointOnCurve, which has no conditions"):
        particle_count(mech)


def circle(u, params):
    return jnp.stack([jnp.cos(u), jnp.sin(u), 0.0 * u])
