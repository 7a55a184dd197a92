"""The mirror image of a mechanism moves as the mechanism does in a mirror."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import tree_leaves

import jaxmbd as mbd

S = np.array([1.0, -1.0, 1.0])


def _rubber(x, rate):
    """Stiffer in one direction than in the other."""
    return 5.0 * x + 9.0 * x * x + rate


def _arm() -> mbd.Mechanism:
    """A chain of every joint with an axis, with elements that have vectors or frames."""
    rng = np.random.default_rng(3)
    body = {
        n: mbd.Body(1.0 + i, com=rng.normal(size=3), inertia=np.diag([2.0, 3.0, 4.0 + 0.1 * i]))
        for i, n in enumerate("abcdef")
    }
    bump = np.diag([2.0, 3, 4, 50, 60, 70]) + 1.0
    frame = np.array([[1.0, 0.2, 0.1], [0.0, 1.0, -0.4]])
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = turned * np.sign(np.linalg.det(turned))
    return mbd.Mechanism(
        bodies=body,
        joints={
            "a": mbd.Revolute("ground", "a", at=(0.1, 0.2, 0.3), axis=(1, 2, 3)),
            "b": mbd.Prismatic("a", "b", at=(1, 0.2, 0.3), axis=("p", "s")),
            "c": mbd.Helical("b", "c", at="p", axis=("s", "p"), pitch=0.3),
            "d": mbd.Universal("c", "d", at=(0, 1, 2), axis_a=(0, 1, 0.2), axis_b=(1, 0, 0.3)),
            "e": mbd.Planar("d", "e", at=(0, 1, 2), normal=(0.3, 1, 0.2), x_axis=(1, 0.1, 0)),
            "f": mbd.Cylindrical("e", "f", at="p", axis=(0.3, 0.4, 1.0)),
        },
        forces={
            "push": mbd.PointForce("f", at="p", force=(3, 4, 5)),
            "twist": mbd.Torque("a", "d", torque=(1, 2, 3)),
            "spring": mbd.SpringDamper("ground", "f", "s", "p", stiffness=30.0, damping=2.0),
            "bushing": mbd.Bushing("a", "d", "p", bump, 0.1 * bump, frame=frame),
            "other": mbd.Bushing("b", "d", "s", bump, 0.1 * bump, frame=turned, measure="small"),
            "third": mbd.Bushing(
                "b", "c", "s", [1, 2, 3, 4, 5, 6.0], laws=dict.fromkeys(("x", "y", "rx"), _rubber)
            ),
            "soft": mbd.SoftJoint(
                mbd.Revolute("ground", "f", at="p", axis=("s", "p")), stiffness=(3.0, 40.0)
            ),
            "hinge": mbd.TorsionSpring("a", stiffness=3.0, free_angle=0.4),
            "stop": mbd.JointLimit("d", upper=0.1, stiffness=20.0, index=1),
            "tyre": mbd.PacejkaTyre("f", "s", stiffness=1e3, road=3.0, belt=(3.0, 0.4, 0.0)),
        },
        points={"p": (0.5, 0.6, 0.7), "s": (1.0, 2.0, 0.1)},
        gravity=(1.0, 2.0, -9.0),
    )


@pytest.mark.slow
def test_the_image_of_a_motion_is_the_motion_of_the_image():
    """The same coordinates give mirrored positions, and the same accelerations."""
    mech = _arm()
    image = mbd.mirror(mech)
    top = mbd.topology(mech)
    rng = np.random.default_rng(5)
    q, v = 0.3 * rng.normal(size=top.nq), rng.normal(size=top.nv)
    turn = top.layout["f"].v.start  # the angle of a cylindrical joint is the opposite
    signs = np.ones(top.nv)
    signs[turn] = -1.0
    seen = mbd.point_position(mech, q, "f", "s")
    there = mbd.point_position(image, q * signs, "f", "s")
    np.testing.assert_allclose(there, S * seen, rtol=1e-12, atol=1e-12)
    vdot, _ = mbd.forward_dynamics(mech, q, v)
    other, _ = mbd.forward_dynamics(image, q * signs, v * signs)
    np.testing.assert_allclose(other * signs, vdot, rtol=1e-9)
    assert np.abs(vdot).min() > 1e-3


@pytest.mark.parametrize("plane", ["x", "y", "z"])
def test_mirrored_twice_is_the_same(plane):
    mech = _arm()
    twice = mbd.mirror(mbd.mirror(mech, plane), plane)
    for a, b in zip(tree_leaves(mech), tree_leaves(twice), strict=True):
        np.testing.assert_array_equal(a, b)
    assert twice.structure == mech.structure


def test_what_has_no_image_is_named():
    mech = mbd.zoo.macpherson().replace(
        forces={"brake": mbd.TorsionSpring("cyl_strut", stiffness=1.0)}
    )
    with pytest.raises(ValueError, match="force 'brake' acts on a coordinate of 'cyl_strut'"):
        mbd.mirror(mech)
    law = mbd.PointForce("lca", at="strut_top", law=lambda t, x, v: jnp.zeros(3))
    with pytest.raises(ValueError, match="force 'wind' has no mirror image: its law"):
        mbd.mirror(mbd.zoo.macpherson().replace(forces={"wind": law}))
    flat = mbd.Mechanism(
        bodies={"arm": mbd.Body(2.0, com=(0.5, 0.0), inertia=0.1)},
        joints={"hinge": mbd.Revolute("ground", "arm", at=(0.0, 0.0))},
    )
    with pytest.raises(ValueError, match="planar"):
        mbd.mirror(flat)
