"""An axle from one corner."""

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import suspension

S = np.array([1.0, -1.0, 1.0])


def test_a_rack_is_shared_and_both_wheels_steer():
    car = suspension.axle(mbd.zoo.double_wishbone_kinematic(), shared=["rack"])
    assert [b for b in car.structure.bodies if "rack" in b] == ["rack"]
    assert float(car.bodies["rack"].com[1]) == 0.0
    assert int(mbd.mobility(car).dof) == 3
    held = {"rack": 0.01, "left_lower_wishbone": 0.0, "right_lower_wishbone": 0.0}
    q = mbd.assemble(car, held).q
    left, right = (
        mbd.point_position(car, q, f"{side}_upright", f"{side}_axle_outboard")
        for side in ("left", "right")
    )
    assert (
        float(left[0] - car.points["left_axle_outboard"][0])
        * float(right[0] - car.points["right_axle_outboard"][0])
        < 0.0
    )
    q = mbd.assemble(car, held | {"rack": -0.01}).q
    other = mbd.point_position(car, q, "right_upright", "right_axle_outboard")
    np.testing.assert_allclose(other, S * np.asarray(left), rtol=0, atol=1e-12)


def test_a_bar_loads_opposite_travel_only():
    """By the energy at positions of the axle without it, which are its own too."""
    corner = mbd.zoo.macpherson()
    plain = suspension.axle(corner)
    hinges = [f"{side}_rev_lca" for side in ("left", "right")]
    still = {f"{side}_rev_spindle": 0.0 for side in ("left", "right")}
    places = [
        mbd.assemble(plain, dict(zip(hinges, angles, strict=True)) | still).q
        for angles in ((0.05, 0.05), (0.05, -0.05))
    ]
    for bar in (
        mbd.AntiRollBar("lca", "lca", "lower_arm_ball", "lower_arm_ball", stiffness=2e4),
        mbd.TorsionBar("rev_lca", "rev_lca", stiffness=2e3),
    ):
        car = suspension.axle(corner, anti_roll_bar=bar)
        extra = [
            float(mbd.potential_energy(car, q) - mbd.potential_energy(plain, q)) for q in places
        ]
        assert abs(extra[0]) < 1e-10
        assert extra[1] > 1.0


def test_variables_of_an_axle_move_both_sides_and_gradients_flow():
    corner = mbd.zoo.macpherson()
    car = suspension.axle(corner)
    both = mbd.mirrored(car)
    assert not [n for n in both.variables if "/right_" in n]
    moved = both({"points/left_tierod_outboard/y": 0.7, "forces/left_spring/stiffness": 2e5})
    built = suspension.axle(
        mbd.set_variables(corner, {"points/tierod_outboard/y": 0.7, "forces/spring/stiffness": 2e5})
    )
    for a, b in zip(jax.tree.leaves(moved), jax.tree.leaves(built), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)

    def right(y):
        return suspension.axle(mbd.set_variables(corner, {"points/tierod_outboard/y": y})).points[
            "right_tierod_outboard"
        ][1]

    assert float(jax.grad(right)(0.7)) == -1.0


def test_a_right_corner_gives_the_same_axle():
    left = mbd.zoo.double_wishbone()
    one, two = suspension.axle(left), suspension.axle(mbd.mirror(left))
    assert one.structure == two.structure
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_array_equal(a, b)


def test_errors_name_what_was_meant():
    with pytest.raises(ValueError, match="did you mean 'rack'"):
        suspension.axle(mbd.zoo.five_link_kinematic(), shared=["rak"])
