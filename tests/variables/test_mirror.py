"""Left and right moved together: what is symmetric stays so, whatever is set."""

import jax
import numpy as np
import pytest

import jaxmbd as mbd

FLIP = np.array([1.0, -1.0, 1.0])


@pytest.fixture(scope="module")
def axle():
    """Both sides of a steering axle, with track rods that are constraints and a roll bar."""
    mech = mbd.zoo.macpherson_steering()
    ends = {
        s: ("rack", f"{s}_upright", f"{s}_tie_inner", f"{s}_tie_outer") for s in ("left", "right")
    }
    return mech.replace(
        joints={f"{s}_rod": mbd.Rod(*at) for s, at in ends.items()},
        forces={
            "bar": mbd.AntiRollBar(
                "left_arm", "right_arm", "left_arm_ball", "right_arm_ball", stiffness=2e4
            )
        },
    )


def assert_symmetric(mech):
    for side, other in (("left", "right"), ("right", "left")):
        for name, x in mech.points.items():
            if name.startswith(side):
                image = mech.points[other + name.removeprefix(side)]
                np.testing.assert_allclose(image, x * FLIP, rtol=0, atol=1e-12)
        for name, body in mech.bodies.items():
            if name.startswith(side):
                image = mech.bodies[other + name.removeprefix(side)]
                np.testing.assert_allclose(image.com, body.com * FLIP, rtol=0, atol=1e-12)
                turned = body.inertia * (FLIP[:, None] * FLIP)
                np.testing.assert_allclose(image.inertia, turned, rtol=0, atol=1e-12)
                assert image.mass == body.mass


def test_every_value_moves_both_sides(axle):
    pair = mbd.mirrored(axle)
    known = pair.variables
    assert not [path for path in known if "/right" in path]
    assert {"forces/bar/stiffness", "drives/steer/params/period", "gravity"} <= set(known)
    rng = np.random.default_rng(0)
    values = {}
    for path, x in known.items():
        if "/left" in path and not path.endswith("inertia"):
            values[path] = x.value * (1.0 + 0.01 * rng.normal(size=np.shape(x.value)))
    values["bodies/left_upright/inertia/xy"] = 0.02
    values["joints/left_rod/length"] = 0.4
    moved = pair(values)
    assert len(values) > 30
    assert_symmetric(moved)
    assert moved.bodies["left_upright"].inertia[1, 0] == 0.02
    for field in ("stiffness", "cornering_stiffness", "trail", "belt"):
        left, right = (getattr(moved.forces[f"{s}_tyre"], field) for s in ("left", "right"))
        np.testing.assert_allclose(right, left, rtol=1e-12)
        assert np.any(left != getattr(axle.forces["left_tyre"], field))
    lengths = [moved.joints[f"{s}_rod"].length for s in ("left", "right")]
    np.testing.assert_allclose(lengths, 0.4, rtol=1e-12)
    # A spindle's direction keeps its sense: what turns it forward on the left does so on the right.
    left, right = (moved.forces[f"{s}_tyre"].axis for s in ("left", "right"))
    np.testing.assert_allclose(right, left * -FLIP, rtol=0, atol=1e-12)


def test_pairs_by_position_and_what_has_no_pair():
    def bar(name, y):
        return {
            name: mbd.Body(1.0, (0.0, y, 0.0), 0.1),
            f"{name}hinge": mbd.Revolute("ground", name, (0.0, y, 0.5), (1, 0, 0)),
        }

    parts = bar("one", 0.4) | bar("two", -0.4) | bar("third", -0.7)
    mech = mbd.Mechanism(
        {n: x for n, x in parts.items() if isinstance(x, mbd.Body)},
        {n: x for n, x in parts.items() if not isinstance(x, mbd.Body)},
    )
    pair = mbd.mirrored(mech)
    points = [path for path in pair.variables if path.startswith("points")]
    assert points == ["points/onehinge.at", "points/thirdhinge.at"]
    moved = jax.jit(lambda y: pair({"points/onehinge.at/y": y}).points)(0.45)
    assert moved["twohinge.at"][1] == -0.45 and moved["thirdhinge.at"][1] == -0.7
    for values, words in (
        ({"points/twohinge.at/y": 1.0}, "follows 'points/onehinge.at'"),
        ({"points/onehinge.at/w": 1.0}, "components.*'x', 'y', 'z'"),
    ):
        with pytest.raises(ValueError, match=words):
            pair(values)
    with pytest.raises(ValueError, match="nothing has a mirror image in the plane normal to x"):
        mbd.mirrored(mech, "x")
    with pytest.raises(ValueError, match="plane='side'"):
        mbd.mirrored(mech, "side")
