"""What every joint type promises of its motion, its wrenches and its coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from barrel_cam import BarrelCam

import jaxmbd as mbd
from jaxmbd.formulations import EulerParameterBall
from jaxmbd.spatial.rotations import axis_rotation, normalize_quaternion, rotation_matrix, skew

AT, AXIS = (0.1, -0.2, 0.3), (0.3, -0.5, 0.8)
HALVES = {"at_b": (0.12, -0.25, 0.28), "axis_b": (0.35, -0.4, 0.9)}
ENDS = ("ground", "body")
TREE = {
    "revolute": mbd.Revolute(*ENDS, AT, AXIS, **HALVES),
    "prismatic": mbd.Prismatic(*ENDS, AT, AXIS, **HALVES),
    "helical": mbd.Helical(*ENDS, AT, AXIS, 0.07, **HALVES),
    "cylindrical": mbd.Cylindrical(*ENDS, AT, AXIS, **HALVES),
    "universal": mbd.Universal(*ENDS, AT, AXIS, (0.4, 0.7, 0.1)),
    "spherical": mbd.Spherical(*ENDS, AT),
    "planar": mbd.Planar(*ENDS, AT, AXIS, (0.9, 0.1, 0.2)),
    "free": mbd.Free(*ENDS),
    "fixed": mbd.Fixed(*ENDS, AT),
    "barrel cam": BarrelCam(*ENDS, AT, AXIS, 0.07, **HALVES),
    "euler parameters": EulerParameterBall(*ENDS, AT),
    "revolute in the plane": mbd.Revolute(*ENDS, AT[:2]).in_plane(),
    "prismatic in the plane": mbd.Prismatic(*ENDS, AT[:2], AXIS[:2]).in_plane(),
    "planar in the plane": mbd.Planar(*ENDS, AT[:2], x_axis=(0.6, 0.8)).in_plane(),
    "fixed in the plane": mbd.Fixed(*ENDS, AT[:2]).in_plane(),
}
CUT = {n: j for n, j in TREE.items() if j.can_be_cut and j.rows}
each = pytest.mark.parametrize("joint", TREE.values(), ids=TREE)


def coordinates(joint, seed=0):
    rng = np.random.default_rng(seed)
    return joint.normalized(jnp.asarray(joint.neutral() + rng.uniform(-0.6, 0.6, joint.nq)))


def pose(joint, q):
    r, d = joint.rotation(q), joint.translation(q)
    return jnp.eye(3) if r is None else r, jnp.zeros(3) if d is None else d


def moved(joint, q, v):
    """Rate of the pose, ``(Ṙ, ḋ)``, at the speeds v."""
    return jax.jvp(lambda x: pose(joint, x), (q,), (joint.rate(q, v),))


@each
def test_its_numbers_fit(joint):
    assert len(joint.speeds) == joint.nv == joint.nq - (not joint.scalar_coordinates)
    assert joint.neutral().shape == (joint.nq,)
    assert set(joint.speeds) <= {"angle", "travel"}
    kinds = [kind == "moment" for kind in joint.rows]
    assert kinds == sorted(kinds), "force rows come first"
    assert len(joint.row_texts) in (0, len(joint.rows))
    assert set(joint.directions_in_plane) <= set(joint.directions)


@each
def test_its_columns_are_the_motion_of_its_pose(joint):
    q = coordinates(joint)
    v = jnp.asarray(np.random.default_rng(1).normal(size=joint.nv))
    (r, _), (r_dot, d_dot) = moved(joint, q, v)
    turn, slide = joint.subspace(q)
    np.testing.assert_allclose(r_dot, skew(turn @ v) @ r, rtol=0, atol=1e-14)
    np.testing.assert_allclose(d_dot, slide @ v, rtol=0, atol=1e-14)
    if not joint.moving_subspace:
        for here, drawn in zip(joint.subspace(q), joint.subspace(joint.neutral()), strict=True):
            np.testing.assert_allclose(here, drawn, rtol=0, atol=1e-14)


@each
def test_its_coordinates_are_read_back(joint):
    q = coordinates(joint, 2)
    np.testing.assert_allclose(joint.coordinates(*pose(joint, q)), q, rtol=0, atol=1e-14)
    assert float(jnp.max(jnp.abs(joint.normalized(q) - q), initial=0.0)) < 1e-15


@each
def test_steps_and_differences_undo_each_other(joint):
    q, rng = coordinates(joint, 3), np.random.default_rng(4)
    change = jnp.asarray(1e-6 * rng.normal(size=joint.nv))
    # To first order; scalar coordinates exactly.
    np.testing.assert_allclose(joint.change(q, joint.step(q, change)), change, rtol=0, atol=3e-12)
    rate = joint.rate(q, change)
    np.testing.assert_allclose(joint.step(q, change), q + rate, rtol=0, atol=3e-12)
    np.testing.assert_allclose(joint.speeds_of_rate(q, rate), change, rtol=0, atol=1e-20)
    if joint.scalar_coordinates:
        np.testing.assert_array_equal(rate, change)
    else:  # either sign of a quaternion is the same orientation
        other = jnp.concatenate([-q[:4], q[4:]])
        np.testing.assert_allclose(joint.change(q, other), 0.0, rtol=0, atol=1e-15)


@each
def test_efforts_do_their_work_along_the_speeds(joint):
    """``SᵀE = EᵀE``, so that the wrench ``E (EᵀE)⁻¹ τ`` has the power ``τ · v``."""
    q = coordinates(joint, 5)
    s, e = (jnp.concatenate(columns) for columns in (joint.subspace(q), joint.effort_columns(q)))
    np.testing.assert_allclose(s.T @ e, e.T @ e, rtol=0, atol=1e-14)


@pytest.mark.parametrize("joint", CUT.values(), ids=CUT)
def test_its_rows_say_what_its_columns_leave_out(joint):
    """On the joint's own poses φ = 0 and ``Λᵀ S = 0``; Λ is the gradient of φ along a twist."""
    q = coordinates(joint, 6)
    planar = "InPlane" in type(joint).__name__
    base = rotation_matrix(normalize_quaternion(jnp.array([0.7, 0.1, -0.2, 0.4])))
    r_a = axis_rotation(jnp.array([0.0, 0.0, 1.0]), jnp.asarray(0.4)) if planar else base
    r, d = pose(joint, q)
    r_b, d = r_a @ r, r_a @ d
    drawn = jnp.zeros(3)
    np.testing.assert_allclose(joint.residual(r_a, r_b, d, drawn), 0.0, rtol=0, atol=1e-14)
    wrenches = joint.wrenches(r_a, r_b, d)
    assert wrenches.shape == (6, len(joint.rows))
    turn, slide = (r_a @ columns for columns in joint.subspace(q))
    np.testing.assert_allclose(wrenches.T @ jnp.concatenate([turn, slide]), 0.0, rtol=0, atol=1e-14)
    for twist in np.eye(6)[[2, 3, 4]] if planar else np.eye(6):  # ω z and v x, y in the plane
        rate = skew(jnp.asarray(twist[:3])) @ r_b, jnp.asarray(twist[3:])
        _, phi = jax.jvp(lambda r, x: joint.residual(r_a, r, x, drawn), (r_b, d), rate)
        np.testing.assert_allclose(wrenches.T @ twist, phi, rtol=0, atol=1e-13)
    if not planar:
        assert np.linalg.matrix_rank(np.asarray(wrenches)) == 6 - joint.nv


@each
def test_a_bearing_has_its_speeds(joint):
    kinds = {
        "journal": ("angle",),
        "guide": ("travel",),
        "sleeve": ("angle", "travel"),
        "ball": ("angle",) * 3,
    }
    assert joint.bearing is None or joint.speeds == kinds[joint.bearing]
    axis = joint.bearing_axis()
    if axis is not None:  # a twist of the joint turns about it or slides along it
        for column in jnp.concatenate([c.T for c in joint.subspace(coordinates(joint))]):
            np.testing.assert_allclose(jnp.cross(column, axis), 0.0, rtol=0, atol=1e-14)
