"""Circuits of linkages, against closed forms; more four-bars and six-bars: `benchmarks`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import synthesis
from tests.observe.test_driven_motion import six_bar


def four_bar(crank, coupler, rocker, frame, angle=0.9):
    """A four-bar with its frame along x, drawn with the crank at an angle."""
    at_b = crank * np.exp(1j * angle)
    span = frame - at_b
    along = (coupler**2 - rocker**2 + abs(span) ** 2) / (2.0 * abs(span))
    at_c = at_b + span / abs(span) * (along + 1j * np.sqrt(coupler**2 - along**2))
    points = {"A": 0.0, "B": at_b, "C": at_c, "D": frame, "P": at_b + 0.3j}
    return synthesis.massless_four_bar({n: (np.real(x), np.imag(x)) for n, x in points.items()})


def circuits(mech, input, *outputs, **more):
    return mbd.circuits(mech, input, outputs=outputs, starts=8, **more)


def test_a_grashof_crank_has_two_circuits_and_turns():
    mech = four_bar(1.0, 3.0, 2.5, 3.5)
    found = circuits(mech, "A", "D")
    assert len(found.circuits) == 2 and found.unseen == 0.0 and not len(found.meetings)
    signs = []
    for c in found.circuits:
        assert c.full_turn and c.closed and c.turns == 1 and not len(c.dead_centres)
        np.testing.assert_allclose(c.reach, (0.0, 2.0 * np.pi), rtol=0, atol=1e-9)
        signs += c.sign.tolist()
        # Crank and coupler in line: the distance from A to C is their sum, or their difference.
        swings = np.exp(1j * c.outputs[c.toggles[0], 0])
        rocker = complex(*(mech.points["C"] - mech.points["D"])) / 2.5
        reach = np.abs(3.5 + 2.5 * rocker * swings)
        np.testing.assert_allclose(np.sort(reach), (2.0, 4.0), rtol=0, atol=1e-9)
        slopes = np.gradient(c.outputs[:, 0], c.input)
        near = np.abs(c.ratios[2:-2, 0] - slopes[2:-2])
        assert near.max() < 5e-3 and np.all(c.ratios[c.toggles[0], 0] == 0.0)
    assert sorted(signs) == [-1, 1]
    assert "the input turns fully" in str(found) and str(found).count("toggle") == 4


def test_other_four_bars_swing_between_limits():
    """Coupler and rocker in line; then, of one beyond its other end too, two circuits."""
    found = circuits(four_bar(1.0, 1.2, 1.4, 2.8), "A")
    (c,) = found.circuits
    end = np.arccos((1.0 + 2.8**2 - 2.6**2) / 5.6)
    np.testing.assert_allclose(c.reach, (-end - 0.9, end - 0.9), rtol=0, atol=1e-9)
    assert len(c.dead_centres) == len(c.sign) == 2 and sorted(c.sign) == [-1, 1]
    assert not c.full_turn and c.turns == 0 and np.all(np.isinf(c.ratios[c.dead_centres]))
    assert set(c.branch) == {0, 1} and c.branch[-1] == c.branch[0] == 0
    two = circuits(four_bar(2.0, 0.5, 1.8, 2.2, 1.1), "A")
    ends = np.arccos([(4.0 + 2.2**2 - x * x) / 8.8 for x in (1.3, 2.3)])
    reaches = sorted(c.reach for c in two.circuits)
    np.testing.assert_allclose(reaches, (-ends[::-1] - 1.1, ends - 1.1), rtol=0, atol=1e-9)


def test_circuits_of_a_parallelogram_meet_at_change_points():
    found = circuits(four_bar(1.0, 2.0, 1.0, 2.0), "A", "D")
    assert found.meetings.tolist() == [[0, 1]] and len(found.circuits) == 2
    for c in found.circuits:
        assert c.full_turn and not len(c.dead_centres) and len(c.sign) == 2
        aligned = np.sin(c.input[c.changes] + 0.9)
        np.testing.assert_allclose(aligned, [0.0, 0.0], rtol=0, atol=1e-8)
    parallel = found.circuits[0]
    np.testing.assert_allclose(parallel.outputs[:, 0], parallel.input, rtol=0, atol=1e-9)
    assert "meets circuit 1" in str(found) and "change point" in str(found)


@pytest.mark.slow
def test_a_hair_beside_the_change_point_is_followed_round():
    """Lengths that miss it by 1e-7 turn fully, or not, and no circuits meet."""
    for gap, count in ((1e-7, 2), (-1e-7, 1)):
        found = circuits(four_bar(0.3, 1.0, 1.2, 1.9 - gap), "A")
        assert len(found.circuits) == count and not len(found.meetings)
        assert [c.full_turn for c in found.circuits] == [gap > 0.0] * count


@pytest.mark.slow
def test_a_kite_has_a_circuit_on_which_the_input_stands_still():
    found = circuits(four_bar(1.0, 2.0, 2.0, 1.0), "A")
    turning, still = sorted(found.circuits, key=lambda c: -np.ptp(c.input))
    assert turning.turns == 2 and turning.full_turn and found.meetings.tolist() == [[0, 1]]
    np.testing.assert_allclose(still.input, -0.9, rtol=0, atol=1e-7)
    assert not still.full_turn and not len(still.dead_centres) and "stands still" in str(found)


@pytest.mark.slow
def test_a_six_bar_stops_where_its_second_pair_of_links_is_in_line():
    """There crank and rocker turn back together, with the ratio of their own four-bar."""
    mech = six_bar(False).replace(points={"D0": (1.55, -0.05)})
    (c,) = circuits(mech, "crank", "rocker").circuits
    assert len(c.dead_centres) == 2 and np.all(np.isfinite(c.ratios))
    for k in c.dead_centres:
        p = {n: complex(*mbd.point_position(mech, c.q[k], b, n)[:2]) for b, n in
             (("crank", "A"), ("rocker", "B"), ("link", "C2"), ("link", "D"))}  # fmt: skip
        a0, b0, d0 = (complex(*mech.points[n]) for n in ("A0", "B0", "D0"))
        assert abs((np.conj(p["D"] - p["C2"]) * (d0 - p["D"])).imag) < 1e-9
        bar = np.conj(p["B"] - p["A"])
        ratio = (bar * (p["A"] - a0)).imag / (bar * (p["B"] - b0)).imag
        np.testing.assert_allclose(c.ratios[k, 0], ratio, rtol=1e-6, atol=0)


def planar(bodies, joints, cut):
    made = {n: mbd.Body(0.0, com=at, inertia=0.0) for n, at in bodies.items()}
    return mbd.Mechanism(bodies=made, joints=joints, gravity=(0.0, 0.0), cut=[cut])


@pytest.mark.slow
def test_a_scotch_yoke_driven_at_either_end():
    """The yoke moves as the cosine: its limits are toggles for the crank, dead centres for it."""
    yoke = planar(
        {"crank": (0.5, 0), "die": (1, 0), "yoke": (1, 1)},
        {
            "crank": mbd.Revolute("ground", "crank", at=(0, 0)),
            "pin": mbd.Revolute("crank", "die", at=(1, 0)),
            "slot": mbd.Prismatic("die", "yoke", at=(1, 0), axis=(0, 1)),
            "guide": mbd.Prismatic("ground", "yoke", at=(1, 1), axis=(1, 0)),
        },
        "slot",
    )
    (c,) = circuits(yoke, "crank", "guide").circuits
    np.testing.assert_allclose(c.outputs[:, 0], np.cos(c.input) - 1.0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(c.ratios[:, 0], -np.sin(c.input), rtol=0, atol=1e-8)
    np.testing.assert_allclose(c.outputs[c.toggles[0], 0], (0.0, -2.0), rtol=0, atol=1e-10)
    found = circuits(yoke, "guide", "crank")
    (c,) = found.circuits
    np.testing.assert_allclose(c.input[c.dead_centres], (-2.0, 0.0), rtol=0, atol=1e-10)
    assert found.units == ("m", "rad") and not c.full_turn and not len(c.toggles[0])


@pytest.mark.slow
def test_a_screw_never_returns():
    """Its travel is its angle times the pitch, as far as it is followed."""
    jack = mbd.Mechanism(
        bodies={n: mbd.Body(1.0, at, (1.0, 1.0, 1.0)) for n, at in
                {"screw": (0, 0, 1.0), "nut": (0.5, 0, 1.0)}.items()},
        joints={
            "bearing": mbd.Revolute("ground", "screw", at=(0, 0, 0), axis=(0, 0, 1)),
            "thread": mbd.Helical("screw", "nut", at=(0, 0, 1), axis=(0, 0, 1), pitch=0.01),
            "guide": mbd.Prismatic("ground", "nut", at=(0.5, 0, 1), axis=(0, 0, 1)),
        },
        cut=["guide"],
    )  # fmt: skip
    found = circuits(jack, "thread", "bearing")
    (c,) = found.circuits
    np.testing.assert_allclose(c.outputs[:, 0], -c.input, rtol=0, atol=1e-9)
    assert not c.closed and not c.full_turn and np.ptp(c.input) > 20.0
    assert "does not return" in str(found)


@pytest.mark.parametrize("balls", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_rssr_swings_between_the_zeros_of_its_discriminant(balls):
    """With u, w of the rocker's end across its axis, a cos θ + b sin θ = c: a² + b² = c²."""
    crank, rocker = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    mech = synthesis.massless_rssr({"A": (1.6, 0.0, 0.0), "B": (2.0, 2.0, 2.0)})
    p = {n: np.asarray(x) for n, x in mech.points.items()}
    if balls:
        joints = {n: mech.joint(n) for n in ("crank", "rocker")}
        body = mbd.Body(0.0, p["A"], (0.0, 0.0, 0.0))
        joints["SA"] = mbd.Spherical("crank", "coupler", at="A")
        joints["SB"] = mbd.Spherical("coupler", "rocker", at="B")
        mech = mbd.Mechanism(
            bodies={n: body for n in ("crank", "coupler", "rocker")}, joints=joints,
            points=mech.points, gravity=(0.0, 0.0, 0.0),
        )  # fmt: skip
    arm = p["B"] - p["rocker_pivot"]
    centre = p["rocker_pivot"] + (arm @ rocker) * rocker
    u = p["B"] - centre
    w, square = np.cross(rocker, u), np.sum((p["B"] - p["A"]) ** 2)

    def discriminant(phi):
        x, y = p["A"] - p["crank_pivot"], np.cross(crank, p["A"] - p["crank_pivot"])
        end = p["crank_pivot"] + np.cos(phi) * x + np.sin(phi) * y
        d = centre - end
        c = square - d @ d - u @ u
        return (2.0 * d @ u) ** 2 + (2.0 * d @ w) ** 2 - c**2

    samples = np.fft.fft([discriminant(2.0 * np.pi * k / 9) for k in range(9)]) / 9
    roots = np.roots(np.fft.fftshift(samples)[::-1][2:7])
    ends = np.sort(np.angle(roots[np.abs(np.abs(roots) - 1.0) < 1e-9]))
    found = circuits(mech, "crank", "rocker")
    limits = [x for c in found.circuits for x in np.angle(np.exp(1j * c.input[c.dead_centres]))]
    assert len(ends) >= 2
    np.testing.assert_allclose(np.sort(limits), ends, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_a_bennett_linkage_turns_although_no_count_lets_it():
    """tan(θ/2) tan(φ/2) = sin((β + α)/2)/sin((β − α)/2), with the twists α and β."""
    alpha, beta, drawn = 0.6, 1.1, 1.5
    ratio = np.sin(0.5 * (beta + alpha)) / np.sin(0.5 * (beta - alpha))
    other = 2.0 * np.arctan(ratio / np.tan(0.5 * drawn))
    mech = mbd.zoo.bennett(twists=(alpha, beta), angle=drawn)
    (c,) = circuits(mech, "J0", "J1").circuits
    assert c.full_turn and c.closed and c.turns == 1
    halves = np.tan(0.5 * (c.input + drawn)), np.tan(0.5 * (c.outputs[:, 0] + other))
    regular = np.max(np.abs(halves), axis=0) < 1e3
    np.testing.assert_allclose((halves[0] * halves[1])[regular], ratio, rtol=1e-6, atol=0)
    assert regular.sum() > 100


def test_what_does_not_fit_is_told():
    mech = four_bar(1.0, 3.0, 2.5, 3.5)
    cases: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("crnk", {}, "input names the joint 'crnk'"),
        ("A", {"known": {"D": 0.0}}, "nothing moves"),
        ("A", {"outputs": ["nobody"]}, "outputs names the joint"),
        ("A", {"starts": 0}, "starts=0"),
    )
    for input, more, message in cases:
        with pytest.raises(ValueError, match=message):
            mbd.circuits(mech, input, **{"starts": 4, **more})
    single = jax.tree_util.tree_map(lambda x: jnp.asarray(x, jnp.float32), mech)
    with pytest.raises(ValueError, match="needs double precision"):
        mbd.circuits(single, "A")
    with pytest.raises(ValueError, match="no loop depends on"):
        mbd.circuits(mbd.zoo.simple_pendulum(), "hinge", starts=2)
    with pytest.raises(ValueError, match="2 freedoms are left, not one: hold 1 more"):
        mbd.circuits(mbd.zoo.five_bar(), "A", starts=2)


@pytest.mark.slow
def test_a_five_bar_with_one_crank_held_is_a_four_bar():
    found = circuits(mbd.zoo.five_bar(), "A", known={"E": 0.1})
    place = mbd.topology(mbd.zoo.five_bar()).layout["E"].q
    for c in found.circuits:
        np.testing.assert_allclose(c.q[:, place], 0.1, rtol=0, atol=1e-12)
    assert isinstance(found, mbd.Circuits) and isinstance(found.circuits[0], mbd.Circuit)
