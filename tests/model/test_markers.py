"""Points that belong to bodies: coupler points, markers, holes."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import io, suspension
from jaxmbd.viz.glyphs import attachments, link_shape


def marked(**more):
    """A planar four-bar whose coupler has a point of its own."""
    four = mbd.zoo.four_bar()
    name = four.structure.bodies[1]
    body = four.bodies[name]
    own = mbd.Body(body.mass, body.com, body.inertia, markers=["P"])
    at = np.asarray(four.com(name)) + np.array([0.02, 0.3, 0.0])
    return name, at, four.replace(bodies={name: own}, points={"P": at}, **more)


def test_they_are_used_and_change_nothing_else():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        name, at, mech = marked()
    plain = mbd.zoo.four_bar()
    assert len(jax.tree.leaves(mech)) == len(jax.tree.leaves(plain)) + 1
    q = mbd.assemble(mech).q
    np.testing.assert_allclose(q, mbd.assemble(plain).q, rtol=0, atol=1e-9)
    place = mbd.point_position(mech, mbd.neutral(mech), name, "P")
    np.testing.assert_allclose(place, at, rtol=0, atol=1e-14)
    assert "of body" not in str(plain)
    [row] = [line for line in str(mech).splitlines() if line.startswith("P ")]
    assert row.rstrip().endswith(name)


def test_links_are_drawn_through_them():
    name, at, mech = marked()
    reached = attachments(mech)[name]
    assert np.abs(reached - at).max(axis=1).min() < 1e-12
    assert len(reached) == len(attachments(mbd.zoo.four_bar())[name]) + 1
    mesh = link_shape(mech, name, reached, 0.01, ())
    assert np.linalg.norm(mesh.vertices - at, axis=1).min() < 0.03


def test_files_mirror_images_and_axles_keep_them(tmp_path):
    name, _, mech = marked()
    io.save(mech, tmp_path / "marked.json")
    again = io.load(tmp_path / "marked.json")
    assert [p.name for p in again.bodies[name].markers] == ["P"]
    assert '"markers"' not in (tmp_path / "marked.json").read_text().split("crank")[0]
    assert [p.name for p in mbd.mirror(mech).bodies[name].markers] == ["P"]

    corner = mbd.zoo.double_wishbone_kinematic()
    upright = corner.bodies["upright"]
    own = mbd.Body(upright.mass, upright.com, upright.inertia, markers="axle_outboard")
    car = suspension.axle(corner.replace(bodies={"upright": own}))
    names = [car.bodies[f"{side}_upright"].markers[0].name for side in ("left", "right")]
    assert names == ["left_axle_outboard", "right_axle_outboard"]


def test_planar_mechanisms_have_them():
    arm = mbd.Mechanism(
        bodies={"arm": mbd.Body(2.0, com=(0.5, 0.0), inertia=0.1, markers=("tip",))},
        joints={"hinge": mbd.Revolute("ground", "arm", at=(0.0, 0.0))},
        points={"tip": (1.0, 0.2)},
    )
    assert mbd.in_space(arm).bodies["arm"].markers == arm.bodies["arm"].markers
    tip = mbd.point_position(arm, np.array([np.pi / 2]), "arm", "tip")
    np.testing.assert_allclose(tip, (-0.2, 1.0, 0.0), atol=1e-15)


def test_what_is_no_name_or_no_point_is_told():
    with pytest.raises(ValueError, match="markers of a Body are names"):
        mbd.Body(1.0, (0.0, 0.0, 0.0), markers=[(1.0, 0.0, 0.0)])
    name, _, mech = marked()
    body = mech.bodies[name]
    wrong = mbd.Body(body.mass, body.com, body.inertia, markers=["Q"])
    with pytest.raises(ValueError, match=f"body '{name}': markers names the point 'Q'"):
        mech.replace(bodies={name: wrong})
