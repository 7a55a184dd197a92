"""Gears that look wrong are told: undercut pinions, planets that do not fit or overlap."""

import warnings

import numpy as np
import pytest

import jaxmbd as mbd

Z = (0.0, 0.0, 1.0)


def planetary(teeth, angles, m=2e-3, space=True):
    """Sun, carrier, planets at angles [rad], and a ring that is part of the ground."""
    sun, planet, ring = teeth
    a, n = m * (sun + planet) / 2, 3 if space else 2
    axis, inertia = ({"axis": Z}, np.ones(3)) if space else ({}, 1.0)
    bodies = {x: mbd.Body(1.0, np.zeros(n), inertia) for x in ("sun", "carrier")}
    joints = {
        "sun": mbd.Revolute("ground", "sun", at=np.zeros(n), **axis),
        "arm": mbd.Revolute("ground", "carrier", at=np.zeros(n), **axis),
    }
    couplings = {}
    for i, x in enumerate(angles):
        name, spot = f"p{i}", a * np.array([np.cos(x), np.sin(x), 0.0])[:n]
        bodies[name] = mbd.Body(1.0, spot, inertia)
        joints[name] = mbd.Revolute("carrier", name, at=spot, **axis)
        couplings[f"in{i}"] = mbd.GearMesh("sun", name, sun, planet, carrier="arm", module=m)
        couplings[f"out{i}"] = mbd.GearMesh(name, "arm", planet, ring, kind="internal", module=m)
    return mbd.Mechanism(bodies, joints, couplings=couplings)


def told(make, *args, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        mech = make(*args, **options)
    return [str(x.message) for x in found], mech


@pytest.mark.parametrize("space", [True, False])
def test_equal_planets_fit_if_their_number_divides_the_teeth(space):
    for sun, planet, n in ((20, 16, 3), (20, 16, 4), (22, 16, 4), (21, 15, 3), (24, 15, 3)):
        ring = sun + 2 * planet
        found, _ = told(planetary, (sun, planet, ring), 2 * np.pi * np.arange(n) / n, space=space)
        assert bool(found) == bool((sun + ring) % n), (sun, planet, n)
        assert all("do not meet gaps" in x for x in found)


def test_other_planets_fit_where_the_sun_has_moved_by_whole_teeth():
    """Planets are put in at one place, one after the other; the arm turns between."""
    teeth = sun, _, _ = (19, 17, 53)
    bare = planetary(teeth, [0.0])
    fits = []
    for degrees in (100.0, 103.0, 110.0, 182.5, 244.0, 245.0):
        angle = np.deg2rad(degrees)
        q = mbd.joint_coordinates(bare, mbd.assemble(bare, known={"arm": angle}).q)
        moved = float(q["sun"][0]) * sun / (2 * np.pi)
        found, _ = told(planetary, teeth, [0.3, 0.3 + angle])
        assert bool(found) == (abs(moved - round(moved)) > 1e-9), degrees
        fits.append(not found)
    assert any(fits) and not all(fits)
    (text,), _ = told(planetary, teeth, [0.0, np.deg2rad(107.0)])
    assert "'p0' and 'p1' on 'carrier' are 107° apart" in text
    assert "steps of 360°/72; place it at 105° or 110°" in text


def test_neighbouring_planets_overlap():
    for sun, planet, n in ((18, 24, 4), (18, 30, 4), (24, 24, 4), (36, 24, 5), (16, 24, 4)):
        ring = sun + 2 * planet
        found, _ = told(planetary, (sun, planet, ring), 2 * np.pi * np.arange(n) / n)
        overlap = [x for x in found if "overlap" in x]
        free = (sun + planet) * np.sin(np.pi / n) > planet + 2
        assert len(overlap) == (0 if free else n), (sun, planet, n)


def pair(teeth, **mesh):
    """A pair on axes as far apart as module and teeth say."""
    m = 2e-3
    sign = -1 if mesh.get("kind") == "internal" else 1
    centre = m * abs(teeth[0] + sign * teeth[1]) / 2 / np.cos(mesh.get("helix", 0.0))
    given = {"module": m} | mesh
    return mbd.Mechanism(
        {n: mbd.Body(1.0, (x, 0, 0), np.ones(3)) for n, x in (("a", 0.0), ("b", centre))},
        {n: mbd.Revolute("ground", n, (x, 0, 0), Z) for n, x in (("a", 0.0), ("b", centre))},
        couplings={"mesh": mbd.GearMesh("a", "b", *teeth, **given)},
    )


@pytest.mark.parametrize(
    ("degrees", "helix", "least"),
    [(20.0, 0.0, 14), (14.5, 0.0, 26), (25.0, 0.0, 9), (20.0, 30.0, 9)],
)
def test_undercut_pinions(degrees, helix, least):
    """Free from 17.1, 31.9 and 11.2 teeth on, helical ones from 17.1 times nearly cos³ β."""
    options = {"pressure_angle": np.deg2rad(degrees), "helix": np.deg2rad(helix)}
    (text,), _ = told(pair, (least - 1, 60), **options)
    assert text.startswith(f"coupling 'mesh': a gear of {least - 1} teeth is undercut")
    assert told(pair, (60, least - 1), **options)[0]
    assert not told(pair, (least, 60), **options)[0]
    assert not told(pair, (least - 1, 60), module=None, **options)[0]


def test_a_ring_is_not_undercut_and_its_pinion_is():
    assert not told(pair, (50, 14), kind="internal")[0]
    assert told(pair, (13, 50), kind="internal")[0]


@pytest.mark.parametrize("teeth", [(20.5, 40), (20, 39.5)])
def test_teeth_are_whole(teeth):
    with pytest.raises(ValueError, match=r"coupling 'mesh': teeth_[ab] is \d+.5; give a whole"):
        pair(teeth)
