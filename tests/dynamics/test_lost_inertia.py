"""Inertia taken away from a mechanism that was built with it."""

import equinox as eqx
import numpy as np
import pytest

import jaxmbd as mbd


def test_a_body_that_lost_its_inertia_is_named_and_cured():
    built = mbd.zoo.four_bar()
    body = built.bodies["coupler"]
    link = mbd.Body(0.0, body.com, np.zeros((3, 3)))
    stale = eqx.tree_at(lambda m: m.bodies["coupler"], built, link)
    q = mbd.assemble(built, {"A": 0.4}).q
    v = mbd.assemble_velocity(built, q, {"A": 2.0})
    with pytest.raises(ValueError, match=r"lost its inertia since .* mech.replace\(\)"):
        mbd.forward_dynamics(stale, q, v)
    found, _ = mbd.forward_dynamics(stale.replace(), q, v)
    expected, _ = mbd.forward_dynamics(built.replace(bodies={"coupler": link}), q, v)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, expected)
