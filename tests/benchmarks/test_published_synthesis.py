"""The published linkages do what is printed of them, by the followers that judge ours."""

import numpy as np
import pytest
from synthesis_cases import spherical
from synthesis_cases.published import (
    HOEKEN,
    TURNED,
    chebyshev,
    hoeken,
    jansen,
    klann,
    leg,
    path,
    walker,
)


@pytest.mark.parametrize("degrees", HOEKEN)
def test_printed_lines_are_those_of_the_printed_ratios(degrees):
    ground, coupler, travel, percent = HOEKEN[degrees]
    found = hoeken(ground, coupler, degrees)
    assert found == pytest.approx((travel, percent), abs=6e-4)


def test_the_follower_tells_what_does_not_close():
    points = {"A": 0j, "B": 1j, "C": 2.0 + 1.5j, "D": 4.0 + 0j, "P": 1.0 + 2j}
    _, room = path(points, np.linspace(0.0, 2.0 * np.pi, 181))
    assert room[0] > 0.0 > room.min()  # at 4 + 1 the two links are too short


def test_lines_and_feet_are_where_they_are_known_to_be():
    """Chebyshev's line in its middle and at its end, Klann's stride; the legs lift their feet."""
    line, foot = chebyshev(), klann()
    middle = np.arctan2(4.0, 3.0) - np.angle(line["B"])
    at, room = path(line, np.array([middle, np.deg2rad(TURNED[1])]))
    assert np.allclose(at, [2.0 + 4.0j, 4.0j], atol=1e-12) and np.all(room > 0.0)
    assert abs(foot["T"] - foot["S"]) == pytest.approx(1.0, abs=1e-4)
    turn = np.deg2rad(np.arange(0.0, 360.0, 10.0))
    (step, clear), (lift, wide) = leg(jansen(), turn), walker(foot, turn)
    assert np.min(clear) > 0.0 and np.min(wide) > 0.0
    assert np.ptp(np.imag(step)) > 15.0 and np.ptp(np.imag(lift)) > 0.4


def test_the_published_spherical_path_is_that_of_the_published_linkage():
    """To the digits that are printed, with the printed arcs; a hair's change of an arc is seen."""
    points = spherical.printed()
    at, room = spherical.on_sphere(points, spherical.TURN)
    assert np.max(np.abs(at - spherical.PATH)) < 7e-5 and np.min(room) > 0.0
    arcs = {"alpha1": "AD", "alpha2": "AB", "alpha3": "BC", "alpha4": "CD"}
    for name, (first, second) in arcs.items():
        arc = np.arccos(points[first] @ points[second])
        assert arc == pytest.approx(spherical.PRINTED[name], abs=1e-12)
    away = points | {"D": spherical.turned(points["D"], points["A"], 1e-3)}
    assert spherical.missed(away, spherical.TURN) > 1e-4


def test_the_follower_on_the_sphere_tells_what_does_not_close():
    """C, 18° from both B and D, is in reach as long as these are less than 36° apart."""
    a, d = np.array([1.0, 0.0, 0.0]), np.array([0.5, np.sqrt(0.75), 0.0])
    b = np.array([0.0, 1.0, 0.0])
    c, room = spherical.third(b, d, np.pi / 10, np.pi / 10, 1.0)
    assert room > 0.0
    assert np.allclose([c @ b, c @ d, c @ c], [np.cos(np.pi / 10)] * 2 + [1.0])
    turn = np.linspace(0.0, np.pi, 181)
    _, room = spherical.on_sphere({"A": a, "B": b, "C": c, "D": d, "P": c}, turn)
    pins = spherical.turned(b, a, turn)
    assert np.array_equal(room > 0.0, np.arccos(pins @ d) < np.pi / 5)
