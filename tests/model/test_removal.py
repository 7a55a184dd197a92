"""`Mechanism.replace` with None: the part goes, with what belongs to it alone."""

import numpy as np
import pytest

import jaxmbd as mbd


def arm():
    return mbd.Mechanism(
        {"arm": mbd.Body(1.0, (0.5, 0, 0), 0.1), "hand": mbd.Body(1.0, (1.5, 0, 0), 0.1)},
        {
            "hinge": mbd.Revolute("ground", "arm", (0, 0, 0), (0, 1, 0)),
            "wrist": mbd.Revolute("arm", "hand", "elbow", (0, 1, 0)),
        },
        {"spring": mbd.SpringDamper("ground", "arm", (0, 0, 1), "elbow", 10.0, free_length=1.0)},
        {"motor": mbd.Drive("hinge", lambda t, p: t)},
        {"elbow": (1.0, 0.0, 0.0), "mark": (2.0, 0.0, 0.0)},
        couplings={"gear": mbd.Gear("hinge", "wrist", 2.0)},
    )


@pytest.fixture(scope="module")
def mech():
    return arm()


def test_each_kind_of_part_can_be_removed(mech):
    bare = mech.replace(
        forces={"spring": None},
        drives={"motor": None},
        couplings={"gear": None},
        points={"mark": None},
    )
    assert not bare.forces and not bare.drives and not bare.couplings
    assert bare.structure.forces == bare.structure.drives == bare.structure.couplings == ()
    assert set(bare.points) == {"elbow", "hinge.at"}
    short = bare.replace(bodies={"hand": None}, joints={"wrist": None})
    assert (short.structure.bodies, mbd.topology(short).nq) == (("arm",), 1)
    np.testing.assert_array_equal(short.bodies["arm"].com, mech.bodies["arm"].com)


def test_literal_points_go_with_their_part_and_come_again(mech):
    assert "spring.at_a" in mech.points
    assert "spring.at_a" not in mech.replace(forces={"spring": None}).points
    other = mbd.SpringDamper("ground", "arm", (0, 0, 2), (1, 0, 0.1), 10.0)
    assert mech.replace(forces={"spring": other}).points["spring.at_a"][2] == 2.0
    shared = mech.replace(forces={"second": mbd.PointForce("arm", "spring.at_a", (0, 0, 1))})
    assert "spring.at_a" in shared.replace(forces={"spring": None}).points


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"forces": {"sprng": None}}, "no 'sprng' among the forces.*'spring'"),
        ({"bodies": {"hand": None}}, "joint 'wrist' names the body 'hand'"),
        ({"points": {"elbow": None}}, "'elbow', which is not in points"),
        ({"joints": {"wrist": None}}, "coupling 'gear' names the joint 'wrist'"),
        ({"joints": {"hinge": None}}, "drive 'motor' names the joint 'hinge'"),
    ],
)
def test_what_is_still_needed_cannot_be_removed(mech, parts, words):
    with pytest.raises(ValueError, match=words):
        mech.replace(**parts)
