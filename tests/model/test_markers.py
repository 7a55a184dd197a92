"""Points that nothing uses: seen once where they are new, silent where they are known markers."""

import warnings

import pytest

import jaxmbd as mbd

BOB = {"bob": mbd.Body(1.0, com=(1.0, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))}
HINGE = {"hinge": mbd.Revolute("ground", "bob", at="pivot", axis=("pivot", "beside"))}
POINTS = {"pivot": (0.0, 0.0, 0.0), "beside": (0.0, 1.0, 0.0)}
CHANGE = "no element uses the points \\['pivt'\\].*in use: \\['beside', 'pivot'\\]"


def pendulum(**points):
    return mbd.Mechanism(BOB, HINGE, points=POINTS | points)


@pytest.mark.parametrize(
    "build",
    [
        lambda: pendulum(pivt=(0.1, 0.0, 0.0)),
        lambda: pendulum().replace(points={"pivt": (0.1, 0.0, 0.0)}),
    ],
    ids=["built", "replaced"],
)
def test_a_misspelt_point_is_named_at_the_line_that_gives_it(build):
    with pytest.warns(UserWarning, match=CHANGE) as seen:
        mech = build()
    assert len(seen) == 1 and seen[0].filename == __file__
    assert "pivt" in mech.points


def test_what_is_used_or_known_to_be_a_marker_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        marked = pendulum(tip=(2.0, 0.0, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "tip" in marked.replace(gravity=(0.0, 0.0, -1.0)).points
        assert "tip" in mbd.soften(marked, joint="hinge", stiffness=1e6, damping=1e3).points
        at_tip = {"push": mbd.PointForce("bob", "tip", (0.0, 0.0, 1.0))}
        pendulum().replace(forces=at_tip, points={"tip": (2.0, 0.0, 0.0)})
        # Its wheel's axle is followed by `point_position` alone.
        assert "axle_outboard" in mbd.zoo.macpherson_kinematic().points
