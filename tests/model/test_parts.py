"""Points that nothing uses: a change that adds one may be misspelt; a description may have any."""

import warnings

import pytest

import jaxmbd as mbd

BOB = {"bob": mbd.Body(1.0, com=(1.0, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))}
HINGE = {"hinge": mbd.Revolute("ground", "bob", at="pivot", axis=("pivot", "beside"))}
POINTS = {"pivot": (0.0, 0.0, 0.0), "beside": (0.0, 1.0, 0.0)}
CHANGE = "points \\['pivt'\\] are new.*in use: \\['beside', 'pivot'\\]"


def pendulum(**points):
    return mbd.Mechanism(BOB, HINGE, points=POINTS | points)


def test_a_misspelt_point_is_named_at_the_line_that_changes_it():
    with pytest.warns(UserWarning, match=CHANGE) as seen:
        mech = pendulum().replace(points={"pivt": (0.1, 0.0, 0.0)})
    assert len(seen) == 1 and seen[0].filename == __file__
    assert "pivt" in mech.points


def test_points_of_a_description_need_not_be_used():
    """Roles, observables and drawings use points as well."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        marked = pendulum(tip=(2.0, 0.0, 0.0))
        assert "tip" in marked.replace(gravity=(0.0, 0.0, -1.0)).points
        assert "tip" in marked.replace(points={"tip": (2.1, 0.0, 0.0)}).points
        assert "tip" in mbd.soften(marked, joint="hinge", stiffness=1e6, damping=1e3).points
        at_tip = {"push": mbd.PointForce("bob", "tip", (0.0, 0.0, 1.0))}
        pendulum().replace(forces=at_tip, points={"tip": (2.0, 0.0, 0.0)})
