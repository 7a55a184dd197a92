"""What a corner's drawing contradicts: a spring of no length, millimetres taken for metres."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.observe import Configuration
from jaxmbd.suspension import Characteristic, kinematics, kinematics_sweep, zoo_corner

ROLES = zoo_corner("double_wishbone")
RATES = ("motion_ratio", "wheel_force", "wheel_rate")
pytestmark = pytest.mark.filterwarnings("ignore:.*triangle inequality")


def drawn(**points):
    return mbd.zoo.double_wishbone(points=points)


def test_a_spring_drawn_without_length_is_an_error():
    flat = drawn(spring_bottom=drawn().points["spring_top"])
    with pytest.raises(ValueError, match="'spring_top' and 'spring_bottom' are drawn at one place"):
        kinematics(flat, observe=["wheel_rate"], travel=[-0.01, 0.0, 0.01])
    with pytest.raises(ValueError, match="correct one of them, or leave spring="):
        Configuration({}, {"rate": Characteristic(ROLES, "wheel_rate")}).check(flat)
    kinematics(flat, replace(ROLES, spring=None), observe=["toe"], travel=[0.0, 0.01])
    with pytest.raises(
        ValueError, match="'road' is a .*, which has no length; name a SpringDamper"
    ):
        replace(ROLES, spring="road").check(
            drawn().replace(forces={"road": mbd.PointForce("upright", "wheel_centre", (0, 0, 1))})
        )


@pytest.mark.parametrize("how", [mbd.lanes.vmap, pytest.param(jax.vmap, marks=pytest.mark.slow)])
def test_a_sample_whose_spring_has_no_length_says_so(how):
    """Alone in a batch: no number of 1e21 and OK; its neighbours are as they are alone."""
    sweep = kinematics_sweep(ROLES, observe=["toe", *RATES], travel=[-0.01, 0.0, 0.01])
    top, bottom = (jnp.asarray(drawn().points[f"spring_{end}"]) for end in ("top", "bottom"))
    ends = top + jnp.asarray([1.0, 0.0, 1e-15, 1e-9, 1e-2])[:, None] * (bottom - top)
    found = jax.jit(how(lambda x: sweep(drawn(spring_bottom=x))))(ends)
    assert found["status"].tolist() == [0, 4, 4, 4, 0]
    assert found["failed_at"][1:4].tolist() == [0.0] * 3
    for name in RATES:
        assert np.isnan(found[name][1:4]).all() and np.isfinite(found[name][::4]).all()
    alone = sweep(drawn())
    np.testing.assert_allclose(found["wheel_rate"][0], alone["wheel_rate"], rtol=1e-9)


@pytest.mark.slow
def test_a_course_through_a_spring_of_no_length_names_the_place():
    """Drawn long enough, it vanishes on the way."""
    mech, z = drawn(), 0.01
    q = kinematics_sweep(ROLES, observe=["toe"], travel=[0.0, z]).trajectory(mech).q[-1]
    met = mbd.point_position(mech, q, "lca", "spring_bottom")
    flat = drawn(spring_top=np.asarray(met))
    with pytest.raises(ValueError, match=r"the spring has no length at travel \+10.0 mm"):
        kinematics(flat, observe=["wheel_rate"], travel=[0.0, z])


@pytest.mark.parametrize(("factor", "unit"), [(1e-3, "m"), (1e3, "mm")])
def test_a_drawing_of_another_size_than_its_tyre(factor, unit):
    points = {n: factor * np.asarray(x) for n, x in drawn().points.items()}
    with pytest.raises(ValueError, match=f"were .* read as .*give units='{unit}' to read_hard"):
        kinematics(drawn(**points), observe=["toe"], travel=[-0.01, 0.0, 0.01])
    small = {n: 0.1 * np.asarray(x) for n, x in drawn().points.items()}  # of a model car
    corner = replace(ROLES, tyre_radius=0.1 * ROLES.tyre_radius)
    kinematics(drawn(**small), corner, observe=["toe"], travel=[0.0, 0.001])
