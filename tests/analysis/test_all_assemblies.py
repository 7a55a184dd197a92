"""All assemblies, against closed forms and known counts."""

from __future__ import annotations

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import synthesis
from jaxmbd.zoo import rssr_theta
from tests.observe.test_driven_motion import six_bar


def both_angles(mech, turn):
    """Angles of the rocker of a planar four-bar from its drawing, where two circles meet."""
    a, b, c, d = (complex(*mech.points[n]) for n in "ABCD")
    at_b = a + (b - a) * np.exp(1j * turn)
    span, coupler, rocker = d - at_b, abs(c - b), abs(c - d)
    along = (coupler**2 - rocker**2 + abs(span) ** 2) / (2 * abs(span))
    across = np.sqrt(coupler**2 - along**2)
    at_c = [at_b + span / abs(span) * (along + s * 1j * across) for s in (1, -1)]
    return sorted(float(np.angle((x - d) / (c - d))) for x in at_c)


def test_a_four_bar_has_two():
    mech = synthesis.massless_four_bar()
    place = mbd.topology(mech).layout["D"].q
    found = mbd.assemblies(mech, {"A": 0.4}, starts=32)
    angles = sorted(np.angle(np.exp(1j * found.q[:, place][:, 0])))
    np.testing.assert_allclose(angles, both_angles(mech, 0.4), rtol=0, atol=1e-9)
    assert sorted(found.sign) == [-1, 1]
    assert found.hits.sum() <= found.starts == 32 and found.unseen == 0.0
    assert "2 assemblies" in str(found)
    drawn = mbd.assemble(mech, {"A": 0.4}).q
    np.testing.assert_allclose(found.q[0], drawn, rtol=0, atol=1e-9)


def test_an_rssr_has_two():
    """The drawn one is the closed form; the other closes as well, and is another."""
    mech = mbd.zoo.rssr()
    found = mbd.assemblies(mech, {"crank": 0.3}, starts=32)
    place = mbd.topology(mech).layout["rocker"].q
    assert len(found.q) == 2 and isinstance(found, mbd.Assemblies)
    want = rssr_theta(0.3) - rssr_theta(0.0)
    np.testing.assert_allclose(found.q[0, place][0], want, rtol=0, atol=1e-9)
    assert abs(found.q[1, place][0] - want) > 0.1
    for q in found.q:
        assert np.abs(mbd.constraint_residual(mech, q)).max() < 1e-10


@pytest.mark.parametrize("stephenson", [False, True])
def test_six_bars_have_four(stephenson):
    """Of Watt's and Stephenson's chains with a crank of the four-bar held: two dyads, two each."""
    found = mbd.assemblies(six_bar(stephenson), {"crank": 0.2}, starts=64)
    assert len(found.q) == 4
    assert sorted(found.sign) == [-1, -1, 1, 1]


@pytest.mark.slow
def test_a_platform_has_pairs():
    """Of two planar plates each assembly has a mirror image in the base; the share is told."""
    mech = mbd.zoo.stewart_gough()
    legs = {f"leg_{k}": 0.0 for k in range(1, 7)}
    found = mbd.assemblies(mech, legs, starts=256)
    assert len(found.q) == 8 and found.unseen < 0.02
    heights = [float(mbd.point_position(mech, q, "platform", "platform_1")[2]) for q in found.q]
    np.testing.assert_allclose(np.sort(heights), -np.sort(heights)[::-1], rtol=0, atol=1e-7)


def test_what_is_open_or_closes_nowhere_is_told():
    mech = synthesis.massless_four_bar()
    with pytest.raises(ValueError, match=r"leaves 1 freedom\(s\) open"):
        mbd.assemblies(mech, starts=16)
    with pytest.raises(ValueError, match="no joint|does not exist|crnk"):
        mbd.assemblies(mech, {"crnk": 0.0})
    short = synthesis.massless_four_bar({"C": (0.2, 1.1), "D": (0.3, 1.2)})
    with pytest.raises(ValueError, match="is open by"):
        mbd.assemblies(short, {"A": 3.0}, starts=16)
    with pytest.raises(ValueError, match="starts=0"):
        mbd.assemblies(mech, {"A": 0.1}, starts=0)


def test_what_no_loop_depends_on_stays_drawn():
    """The swing of a pendulum beside the loop, and an open chain alone."""
    mech = mbd.zoo.double_pendulum()
    found = mbd.assemblies(mech, starts=8)
    np.testing.assert_array_equal(found.q, [mbd.neutral(mech)])


# Dietmaier, The Stewart-Gough platform of general geometry can have 40 real postures, Advances in
# Robot Kinematics, 1998: feet, platform's joints, legs.
FEET = np.array([
    (0.0, 0.0, 0.0), (1.107915, 0.0, 0.0), (0.549094, 0.756063, 0.0),
    (0.735077, -0.223935, 0.525991), (0.514188, -0.526063, -0.368418),
    (0.590473, 0.094733, -0.205018),
])  # fmt: skip
ENDS = np.array([
    (0.0, 0.0, 0.0), (0.542805, 0.0, 0.0), (0.956919, -0.528915, 0.0),
    (0.665885, -0.353482, 1.402538), (0.478359, 1.158742, 0.107672),
    (-0.137087, -0.235121, 0.353913),
])  # fmt: skip
LEGS = np.array([1.0, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071])


@pytest.mark.slow
def test_a_platform_of_forty_postures():
    """The most that there can be; two of them end a start in ten thousand only."""
    ends = ENDS + [0.3, 0.2, 0.9]
    legs = {
        f"leg{i}": mbd.Rod("ground", "platform", at_a=FEET[i], at_b=ends[i], length=LEGS[i])
        for i in range(6)
    }
    mech = mbd.Mechanism(
        bodies={"platform": mbd.Body(1.0, ends.mean(axis=0), 0.1)},
        joints={"free": mbd.Free("ground", "platform"), **legs},
        gravity=(0.0, 0.0, 0.0),
    )
    found = mbd.assemblies(mech, starts=128_000)
    assert len(found.q) == 40 and found.hits.min() < 20
    assert sorted(found.sign) == [-1] * 20 + [1] * 20  # the degree of the legs' lengths is zero
    for q in found.q:
        placed = np.array([mbd.point_position(mech, q, "platform", x) for x in ends])
        np.testing.assert_allclose(np.linalg.norm(placed - FEET, axis=1), LEGS, atol=1e-9)
