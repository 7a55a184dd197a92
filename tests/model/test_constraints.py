"""Constraint rows between two bodies: points on lines, planes and curves, axes, cams."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_mechanisms import random_body

import jaxmbd as mbd
from jaxmbd import lanes
from jaxmbd.dynamics.forward import _accelerations
from jaxmbd.formulations import absolute_accelerations
from jaxmbd.kinematics import motion_state
from jaxmbd.model.joints.flat_follower import extreme_parameter
from jaxmbd.model.joints.point_on_curve import nearest_parameter

A, B = (0.1, -0.3, 0.2), (0.6, 0.2, 0.5)


def helix(u, pitch):
    return jnp.stack([0.5 * jnp.cos(u), 0.5 * jnp.sin(u), pitch * u])


def ellipse(u, axes):
    return jnp.stack([axes[0] * jnp.cos(u), axes[1] * jnp.sin(u), 0.0 * u])


def eccentric(u, p):
    """A circle of radius `r` about a centre `e` off the shaft."""
    return jnp.stack([p["e"] + p["r"] * jnp.cos(u), p["r"] * jnp.sin(u), 0.0 * u])


HELIX_POINT = tuple(np.add(A, np.asarray(helix(jnp.array(0.7), 0.2))))
# Outside the ellipse at u = 0.4, a roller's radius along the normal.
NORMAL = np.array([0.4 * np.cos(0.4), 0.7 * np.sin(0.4)]) / np.hypot(
    0.4 * np.cos(0.4), 0.7 * np.sin(0.4)
)
ROLLER = tuple(
    np.add(A, [0.7 * np.cos(0.4) + 0.05 * NORMAL[0], 0.4 * np.sin(0.4) + 0.05 * NORMAL[1], 0.0])
)
FACE = np.array([np.cos(0.9), np.sin(0.9), 0.2])
AT_FACE = np.arctan2(0.4 * FACE[1], 0.7 * FACE[0])  # where the ellipse is farthest along it
ON_FACE = tuple(
    np.add(A, [0.7 * np.cos(AT_FACE), 0.4 * np.sin(AT_FACE), 0.0]) + np.cross(FACE, (0.1, 0.3, 0.2))
)
ROWS = {
    "perpendicular": lambda: mbd.PerpendicularAxes("a", "b", (1, 0, 0.2), (-0.2, 0.5, 1)),
    "angle": lambda: mbd.PerpendicularAxes("a", "b", (0, 0, 1), (0, 1, 1), angle=np.pi / 4),
    "parallel": lambda: mbd.ParallelAxes("a", "b", (1, 2, 3)),
    "line": lambda: mbd.PointOnLine("a", "b", A, (1, 2, -1)),
    "line, apart": lambda: mbd.PointOnLine("a", "b", A, (1, 0, 0), at_b=(0.9, A[1], A[2])),
    "plane": lambda: mbd.PointOnPlane("a", "b", A, (1, 2, -1)),
    "curve": lambda: mbd.PointOnCurve("a", "b", A, HELIX_POINT, helix, 0.2),
    "cam": lambda: mbd.Cam("a", "b", A, ROLLER, ellipse, jnp.array([0.7, 0.4]), radius=0.05),
    "flat": lambda: mbd.FlatFollower(
        "a", "b", A, ON_FACE, ellipse, jnp.array([0.7, 0.4]), normal=FACE
    ),
}


def two_bodies(row):
    """A body on a skew hinge, a floating one, and the row between them."""
    rng = np.random.default_rng(3)
    return mbd.Mechanism(
        {"a": random_body(rng, np.array(A) + 0.2), "b": random_body(rng, np.array(B))},
        {
            "hinge": mbd.Revolute("ground", "a", (0, 0, 0), (1, -2, 2)),
            "float": mbd.Free("ground", "b"),
            "row": row,
        },
        gravity=(1.0, -2.0, -9.0),
    )


@lanes.jit
def _velocity(mech, q, guess):
    return mbd.assemble_velocity(mech, q, guess=guess)


def motion(mech, seed):
    """A random state on the constraints, moving."""
    rng, nv = np.random.default_rng(seed), mbd.topology(mech).nv
    guess = mbd.step_coordinates(mech, mbd.neutral(mech), 0.2 * rng.normal(size=nv))
    q = mbd.assemble(mech, guess=guess).q
    return q, _velocity(mech, q, jnp.asarray(rng.normal(size=nv)))


LONGER = ("angle", "cam", "line", "line, apart", "parallel")


@pytest.mark.parametrize(
    "kind", [pytest.param(n, marks=pytest.mark.slow if n in LONGER else ()) for n in ROWS]
)
def test_the_rows_are_the_derivatives_of_the_residual(kind):
    mech = two_bodies(ROWS[kind]())
    assert np.abs(mbd.constraint_residual(mech, mbd.neutral(mech))).max() < 1e-15
    q, v = motion(mech, 5)
    qdot = mbd.coordinate_rates(mech, q, v)
    rng = np.random.default_rng(0)

    @lanes.jit
    def check(q, v, any_speed):
        # φ̇ for any speeds where φ = 0
        _, rate = jax.jvp(
            lambda x: mbd.constraint_residual(mech, x),
            (q,),
            (mbd.coordinate_rates(mech, q, any_speed),),
        )
        jacobian = mbd.constraint_jacobian(mech, q)
        vdot, lam = _accelerations(mech, q, v, 0.0, None)
        _, second = jax.jvp(lambda x, w: mbd.constraint_jacobian(mech, x) @ w, (q, v), (qdot, vdot))
        return rate - jacobian @ any_speed, second, jacobian @ vdot - mbd.gamma(mech, q, v), lam

    first, second, third, lam = check(q, v, jnp.asarray(rng.normal(size=v.shape)))
    assert np.abs(first).max() < 1e-12
    assert np.abs(second).max() < 1e-11  # φ̈ along the motion of the mechanism
    assert np.abs(third).max() < 1e-11
    assert np.all(np.isfinite(lam))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["perpendicular", "cam", "flat"])
def test_absolute_coordinates_agree(kind):
    """Newton-Euler in absolute coordinates differentiates the residual: it knows no wrenches."""
    mech = two_bodies(ROWS[kind]())
    q, v = motion(mech, 11)
    m = motion_state(mech, q, v)
    state = {
        body: (m.rotation(body), m.pos.com[i], m.vel.angular[i], m.vel.linear[i])
        for i, body in enumerate(m.top.bodies)
    }
    other = jax.jit(absolute_accelerations)(mech, state)
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    ours = mbd.body_accelerations(mech, q, v, vdot)
    wrenches = mbd.joint_reactions(mech, q, v, vdot, lam)
    for body in ours:
        np.testing.assert_allclose(ours[body], other.accelerations[body], rtol=0, atol=1e-10)
    for name in ("hinge", "row"):
        np.testing.assert_allclose(wrenches[name], other.reactions[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "kinds",
    [
        ("cam",),
        pytest.param(("perpendicular", "plane"), marks=pytest.mark.slow),
        pytest.param(("parallel", "line"), marks=pytest.mark.slow),
    ],
)
def test_energy_is_kept(kinds):
    mech = two_bodies(ROWS[kinds[0]]())
    mech = mech.replace(joints={kind: ROWS[kind]() for kind in kinds[1:]})
    q, v = motion(mech, 7)

    def energy(t, q, v):
        return mbd.kinetic_energy(mech, q, v) + mbd.potential_energy(mech, q)

    run = mbd.simulate(mech, q, 2.0 * v, t1=0.2, dt=2e-3, outputs=energy)
    assert float(run.drift) < 1e-10
    change = np.abs(run.outputs - run.outputs[0]).max()
    assert change < 1e-8 * np.ptp(np.asarray(run.q)) + 1e-9 * abs(float(run.outputs[0]))


def test_a_point_on_a_line_and_an_axis_make_a_cylindrical_joint():
    rng = np.random.default_rng(1)
    body = random_body(rng, np.array(B))

    def mechanism(joints):
        return mbd.Mechanism({"a": body}, joints, gravity=(0, -2, -9))

    direct = mechanism({"slide": mbd.Cylindrical("ground", "a", A, (1, 2, 2))})
    rows = mechanism(
        {
            "float": mbd.Free("ground", "a"),
            "line": mbd.PointOnLine("ground", "a", A, (1, 2, 2)),
            "axis": mbd.ParallelAxes("ground", "a", (1, 2, 2)),
        }
    )
    assert mbd.mobility(rows).dof == 2
    v = np.array([0.7, -0.4])
    u = np.array([1, 2, 2]) / 3
    twist = np.concatenate([0.7 * u, -0.4 * u + np.cross(0.7 * u, np.subtract(B, A))])
    expected = mbd.body_accelerations(
        direct, mbd.neutral(direct), v, mbd.forward_dynamics(direct, mbd.neutral(direct), v)[0]
    )
    q = mbd.neutral(rows)
    vdot, lam = mbd.forward_dynamics(rows, q, twist)
    found = mbd.body_accelerations(rows, q, twist, vdot)
    np.testing.assert_allclose(found["a"], expected["a"], rtol=0, atol=1e-12)
    # the two constraints together carry what the joint carries
    reaction = mbd.joint_reactions(rows, q, twist, vdot, lam)
    one = mbd.joint_reactions(
        direct, mbd.neutral(direct), v, mbd.forward_dynamics(direct, mbd.neutral(direct), v)[0], []
    )["slide"]
    np.testing.assert_allclose(reaction["line"][3:], one[3:], rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        reaction["axis"][:3] + reaction["line"][:3], one[:3], rtol=0, atol=1e-11
    )


def test_a_pitch_curve_is_that_of_the_rollers_centre():
    """A circle of radius r under a roller of radius s, and its pitch circle of radius r + s."""
    start = (0.0, 0.4, 0.0)

    def height(cam):
        parts = {"shaft": mbd.Body(1.0), "valve": mbd.Body(0.3, start)}
        joints = {
            "bearing": mbd.Revolute("ground", "shaft", (0, 0, 0), (0, 0, 1)),
            "guide": mbd.Prismatic("ground", "valve", start, (0, 1, 0)),
            "cam": cam,
        }
        mech = mbd.Mechanism(parts, joints)
        return mbd.assemble(mech, known={"bearing": 1.0}).q[1], mech.joints["cam"].looks()

    ends = ("shaft", "valve", (0, 0, 0), start, eccentric)
    by_profile, looks = height(mbd.Cam(*ends, {"r": 0.3, "e": 0.12}, radius=0.05))
    by_pitch, same = height(mbd.Cam(*ends, {"r": 0.35, "e": 0.12}, radius=0.05, pitch=True))
    np.testing.assert_allclose(by_pitch, by_profile, rtol=0, atol=1e-14)
    np.testing.assert_allclose(same[0].detail, looks[0].detail, rtol=0, atol=1e-15)
    assert same[1].detail == looks[1].detail == 0.05


def test_a_flat_face_fails_safely_where_its_contact_is_not_found():
    """A corner of the curve: its tangent jumps across the one that is sought."""

    def corner(u, params):
        return jnp.stack([jnp.cos(u), jnp.sin(u) - 0.5 * jnp.abs(jnp.cos(u)), 0.0 * u])

    n = jnp.array([0.0, 1.0, 0.0])
    assert jnp.isnan(extreme_parameter(corner, (0.0, 2 * np.pi, 33), n, None))
    found = extreme_parameter(ellipse, (0.0, 2 * np.pi, 33), n, jnp.array([0.7, 0.1]))
    np.testing.assert_allclose(found, np.pi / 2, rtol=1e-14)


@pytest.mark.slow
def test_a_bead_slides_down_a_helix():
    """``s̈ = −g sin α`` along the wire: z falls by ½ g sin²α t², with tan α the slope."""
    pitch = 0.3
    bead = mbd.Mechanism(
        {"bead": mbd.Body(0.2, (0.5, 0, 0), (1e-3, 1e-3, 1e-3))},
        {
            "float": mbd.Free("ground", "bead"),
            "wire": mbd.PointOnCurve(
                "ground",
                "bead",
                (0, 0, 0),
                (0.5, 0, 0),
                helix,
                pitch,
                interval=(-20.0, 1.0),
                samples=80,
            ),
        },
    )
    run = mbd.simulate(bead, mbd.neutral(bead), t1=0.5, dt=1e-3, save_every=100)
    sine = pitch / np.hypot(pitch, 0.5)
    height = run.q[:, 6]
    np.testing.assert_allclose(height, -0.5 * 9.81 * sine**2 * np.asarray(run.t) ** 2, atol=1e-9)
    np.testing.assert_allclose(run.q[:, 4] + 0.5, 0.5 * np.cos(height / pitch), atol=1e-9)


# A cam and its follower ----------------------------------------------------------------------


def valve(p, radius=0.05):
    """An eccentric circle about z turns under a follower that slides along y."""
    start = np.array([0.0, 0.4, 0.0])
    return mbd.Mechanism(
        {"shaft": mbd.Body(1.0, (0, 0, 0), (0.1, 0.1, 0.1)), "valve": mbd.Body(0.3, start)},
        {
            "bearing": mbd.Revolute("ground", "shaft", (0, 0, 0), (0, 0, 1)),
            "guide": mbd.Prismatic("ground", "valve", start, (0, 1, 0)),
            "cam": mbd.Cam("shaft", "valve", (0, 0, 0), start, eccentric, p, radius=radius),
        },
        gravity=(0, -9.81, 0),
    )


P = {"r": 0.3, "e": 0.12}


def lift(angle, p, radius):
    """Height of the follower over an eccentric circle, from the triangle of the two centres."""
    reach, off = p["r"] + radius, p["e"] * jnp.cos(angle)
    return p["e"] * jnp.sin(angle) + jnp.sqrt(reach**2 - off**2)


def height(angle, p, radius):
    mech = valve(p, radius)
    found = mbd.assemble(mech, known={"bearing": angle})
    return mbd.point_position(mech, found.q, "valve", (0.0, 0.4, 0.0))[1]


def test_a_cam_lifts_its_follower():
    for angle in (0.0, -2.0):
        np.testing.assert_allclose(height(angle, P, 0.05), lift(angle, P, 0.05), rtol=0, atol=1e-14)
    found = jax.jit(jax.grad(height, argnums=(0, 1, 2)))(1.0, P, 0.05)
    wanted = jax.grad(lift, argnums=(0, 1, 2))(1.0, P, 0.05)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_driven_cam():
    """Positions, speeds, accelerations and the contact force over a turn, from the closed form."""
    mech = valve(P).replace(drives={"motor": mbd.Drive("bearing", lambda t, p: 5.0 * t)})
    rows = mbd.topology(mech).layout["cam"].rows

    @jax.jit
    def at(t):
        q = mbd.assemble(mech, t=t, backend="xla").q
        v = mbd.assemble_velocity(mech, q, t=t)
        vdot, lam = mbd.forward_dynamics(mech, q, v, t, backend="xla")
        return q[1], v[1], vdot[1], lam

    def closed(t):
        return lift(5.0 * t, P, 0.05) - 0.4

    for t in (0.3, 0.9):
        x, v, a, lam = at(jnp.asarray(t))
        np.testing.assert_allclose(x, closed(t), atol=1e-13)
        np.testing.assert_allclose(v, jax.grad(closed)(t), atol=1e-12)
        acceleration = jax.grad(jax.grad(closed))(t)
        np.testing.assert_allclose(a, acceleration, atol=1e-11)
        # The contact force acts along the line from the circle's centre to the roller.
        centre = P["e"] * np.array([np.cos(5 * t), np.sin(5 * t)])
        line = np.array([0.0, x + 0.4]) - centre
        upward = lam[rows][0] * line[1] / np.linalg.norm(line)
        np.testing.assert_allclose(upward, 0.3 * (acceleration + 9.81), atol=1e-10)


@pytest.mark.slow
def test_lanes_and_vmap_give_the_same():
    angles = jnp.linspace(-1.0, 1.0, 5)

    def found(angle, r):
        mech = valve({"r": r, "e": 0.12})
        q = jnp.stack([angle, lift(angle, {"r": r, "e": 0.12}, 0.05) - 0.4])
        v = mbd.assemble_velocity(mech, q, {"bearing": 2.0})
        return mbd.forward_dynamics(mech, q, v, backend="xla")

    ours = lanes.vmap(found)(angles, jnp.linspace(0.25, 0.35, 5))
    theirs = jax.jit(jax.vmap(found))(angles, jnp.linspace(0.25, 0.35, 5))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)


def test_the_nearest_parameter_and_its_derivatives():
    search = (0.0, 2.0 * np.pi, 32)
    axes = jnp.array([0.7, 0.4])

    @jax.jit
    def u(x, axes):
        return nearest_parameter(ellipse, search, x, axes)

    gradient = jax.jit(jax.grad(lambda x: u(x, axes)))
    x = jnp.array([0.6, 0.5, 0.0])
    fine = np.linspace(0.0, 2.0 * np.pi, 200_001)
    points = np.stack([0.7 * np.cos(fine), 0.4 * np.sin(fine)], axis=1)
    nearest = fine[np.argmin(np.linalg.norm(points - np.asarray(x[:2]), axis=1))]
    assert abs(float(u(x, axes)) - nearest) < 1e-4
    step = 1e-6
    slope = jax.jit(jax.jacfwd(u))(x, axes)
    bend = jax.jit(jax.jacfwd(gradient))(x)
    for i in range(2):
        e = jnp.zeros(3).at[i].set(step)
        np.testing.assert_allclose(
            slope[i], (u(x + e, axes) - u(x - e, axes)) / (2 * step), rtol=1e-8
        )
        difference = (gradient(x + e) - gradient(x - e)) / (2 * step)
        np.testing.assert_allclose(bend[i], difference, rtol=1e-6, atol=1e-9)


def test_a_planar_loop_closed_by_a_point_on_a_line_is_not_redundant():
    whole = mbd.zoo.four_bar()
    pins = {n: j for n, j in whole.joints.items() if n != "C"}
    order = ("A", "B", "D")
    mech = mbd.Mechanism(
        whole.bodies,
        {n: pins[n] for n in order}
        | {"C": mbd.PointOnLine("coupler", "rocker", "C_coupler", axis=(0, 1, 0), at_b="C_rocker")},
        points={n: whole.points[n] for n in whole.structure.points},
        gravity=whole.gravity,
    )
    q = mbd.assemble(whole).q
    held = mbd.assemble(mech, known={"A": q[0]}).q
    np.testing.assert_allclose(held, q, rtol=0, atol=1e-12)
    v = mbd.assemble_velocity(whole, q, {"A": 2.0})
    assert not mbd.mobility(mech, q).redundant and mbd.mobility(whole, q).redundant
    a, lam = mbd.forward_dynamics(mech, q, v)
    b, whole_lam = mbd.forward_dynamics(whole, q, v)
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-10)
    force = mbd.joint_reactions(mech, q, v, a, lam)["C"][3:]
    np.testing.assert_allclose(
        force, mbd.joint_reactions(whole, q, v, b, whole_lam)["C"][3:], rtol=0, atol=1e-9
    )


# Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (lambda: mbd.PerpendicularAxes("a", "b", (0, 0, 0), (1, 0, 0)), "axis_a is zero"),
        (lambda: mbd.PerpendicularAxes("a", "b", (0, 0, 1), (1, 0, 0), angle=0.0), "inside (0, π)"),
        (lambda: mbd.ParallelAxes("a", "b", (1, 0, 0), axis_b=(-1, 0, 0)), "turn one round"),
        (lambda: mbd.PointOnLine("a", "c", A, (1, 0, 0)), "names the body 'c'"),
        (lambda: mbd.PointOnPlane("a", "b", "nowhere", (1, 0, 0)), "names the point 'nowhere'"),
        (lambda: mbd.PointOnCurve("a", "b", A, B, 3.0), "give a function of (u, params)"),
        (lambda: mbd.PointOnCurve("a", "b", A, B, lambda u, p: u), "must give a point (3,)"),
        (lambda: mbd.Cam("a", "b", A, B, ellipse, np.ones(2), interval=(1.0, 0.0)), "increasing"),
        (lambda: mbd.Cam("a", "b", A, B, ellipse, np.ones(2), samples=2), "at least 3"),
        (lambda: mbd.Cam("a", "b", A, B, ellipse, np.ones(2), radius=np.nan), "must be finite"),
        (lambda: mbd.FlatFollower("a", "b", A, B, ellipse, np.ones(2), samples=2), "at least 3"),
    ],
)
def test_bad_rows_are_refused(row, text):
    with pytest.raises(ValueError, match="problem") as error:
        two_bodies(row())
    assert text in str(error.value) and "'row'" in str(error.value)


def test_rows_carry_no_body_and_take_no_effort():
    with pytest.raises(ValueError, match="not connected to the ground"):
        mbd.Mechanism({"a": mbd.Body(1.0)}, {"row": mbd.PointOnPlane("ground", "a", A, (0, 0, 1))})
    mech = two_bodies(ROWS["line"]())
    with pytest.raises(ValueError, match="has no coordinates"):
        mech.replace(forces={"motor": mbd.JointTorque("row", torque=1.0)})
    assert "row" not in mbd.joint_coordinates(mech, mbd.neutral(mech))
    m = motion_state(mech, mbd.neutral(mech))
    with pytest.raises(TypeError, match="has no coordinates"):
        m.coordinates("row")
