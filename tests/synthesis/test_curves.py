"""Burmester's links, centrodes and cognates, against what defines them."""

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.synthesis import (
    Centrodes,
    Dyads,
    burmester_curve,
    burmester_points,
    centrodes,
    cognates,
    follow,
    massless_four_bar,
)

POINTS = {"A": (0.0, 0.0), "B": (0.3, 0.9), "C": (3.0, 2.2), "D": (3.2, -0.1), "P": (1.4, 3.1)}
POSES = [[0, 0], [1, 0.6], [2.2, 0.9], [3.1, 0.7], [3.4, 0.1]], np.deg2rad([0, -15, -40, -70, -95])


def lengths(links, poses):
    """Of the links at each pose (n, k): the body carries its pin, a rotation and a travel."""
    found, (at, turned) = [], poses
    for place, angle in zip(np.asarray(at, float), turned, strict=True):
        c, s = np.cos(angle - turned[0]), np.sin(angle - turned[0])
        pins = (links.body - np.asarray(at[0])) @ np.array([[c, s], [-s, c]]) + place
        found.append(np.linalg.norm(pins - links.ground, axis=1))
    return np.array(found)


def test_links_through_four_poses_keep_their_length():
    """So the ground's pin is on the perpendicular bisectors of all positions of the body's."""
    poses = POSES[0][:4], POSES[1][:4]
    links = burmester_curve(*poses)
    assert isinstance(links, Dyads) and len(links.body) > 300
    found = lengths(links, poses)
    assert np.abs(found - found[0]).max() < 1e-9 * np.abs(found).max()
    near = found[0] < 20.0
    assert np.abs(found - found[0])[:, near].max() < 1e-12 * 20.0


def drawn_poses(count):
    """Poses of a four-bar's coupler, so that two links are known."""
    linkage, inputs = massless_four_bar(POINTS), np.linspace(0.0, 1.6, count)
    q = follow(linkage, "A", inputs).q
    points = [
        jax.vmap(lambda q, n=n: mbd.point_position(linkage, q, "coupler", n))(q) for n in "PB"
    ]
    at, other = (np.asarray(x)[:, :2] for x in points)
    return at, np.unwrap(np.arctan2(*(other - at).T[::-1]))


def test_links_through_five_poses_of_a_four_bar_are_its_own():
    poses = drawn_poses(5)
    links = burmester_points(*poses)
    assert len(links.body) in (2, 4)
    found = lengths(links, poses)
    assert np.abs(found - found[0]).max() < 1e-8
    for ground, body in ("AB", "DC"):
        apart = np.abs(links.ground - POINTS[ground]) + np.abs(links.body - POINTS[body])
        assert apart.max(axis=1).min() < 1e-8
    found = lengths(burmester_points(*POSES), POSES)
    assert found.shape == (5, 2) and np.ptp(found, axis=0).max() < 1e-8


def test_four_and_five_poses_agree():
    poses = drawn_poses(5)
    five = burmester_points(*poses)
    for ground, body in zip(five.ground, five.body, strict=True):
        c, s = np.cos(poses[1][1] - poses[1][0]), np.sin(poses[1][1] - poses[1][0])
        moved = poses[0][1] + np.array([[c, -s], [s, c]]) @ (body - poses[0][0]) - ground
        turn = np.arctan2(*moved[::-1]) - np.arctan2(*(body - ground)[::-1])
        curve = burmester_curve(poses[0][:4], poses[1][:4], [turn])
        assert np.linalg.norm(curve.ground - ground, axis=1).min() < 1e-7


def test_poses_that_do_not_do_are_told():
    with pytest.raises(ValueError, match="give 4 poses"):
        burmester_curve(*POSES)
    with pytest.raises(ValueError, match="turned alike"):
        burmester_points(POSES[0], [0, 1, 2, 1, 3])


def test_cognates_trace_the_same_curve():
    """The link at A turns as the coupler did."""
    inputs = np.linspace(0.0, 0.6, 7)  # further on the coupler turns back: a dead centre of theirs
    linkage = massless_four_bar(POINTS)
    q = follow(linkage, "A", inputs).q
    path = jax.vmap(lambda q: mbd.point_position(linkage, q, "coupler", "P"))(q)
    coupler = np.asarray(q)[:, :2].sum(axis=1)
    for other in cognates(POINTS):
        same = massless_four_bar({name: np.asarray(x) for name, x in other.items()})
        found = follow(same, "A", coupler)
        assert np.all(found.closed)
        at = jax.vmap(lambda q, m=same: mbd.point_position(m, q, "coupler", "P"))(found.q)
        assert np.asarray(at) == pytest.approx(np.asarray(path), abs=1e-12)


def test_centrodes_are_where_links_meet_and_roll():
    inputs = np.linspace(0.0, 1.0, 401)
    linkage = massless_four_bar(POINTS)
    found = centrodes(linkage, "A", inputs, "coupler")
    assert isinstance(found, Centrodes)
    q = follow(linkage, "A", inputs).q
    places = [
        jax.vmap(lambda q, b=b, n=n: mbd.point_position(linkage, q, b, n)[:2])(q)
        for b, n in (("crank", "B"), ("rocker", "C"))
    ]
    for pivot, place in zip("AD", places, strict=True):  # on the lines of crank and rocker
        link, ray = np.asarray(place) - POINTS[pivot], np.asarray(found.fixed) - POINTS[pivot]
        cross = link[:, 0] * ray[:, 1] - link[:, 1] * ray[:, 0]
        assert np.abs(cross).max() < 1e-9 * np.abs(ray).max()
    steps = [np.linalg.norm(np.diff(np.asarray(x), axis=0), axis=1) for x in found[:2]]
    assert steps[0] == pytest.approx(steps[1], rel=1e-4)  # no slip, to the square of the step
    turned = np.asarray(q)[:, :2].sum(axis=1)
    rate = np.gradient(turned, inputs)
    assert rate[5:-5] == pytest.approx(np.asarray(found.rate)[5:-5], abs=1e-5)
