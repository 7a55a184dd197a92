"""Meshes of solids: their volume, which also says that all faces are outward."""

import numpy as np
import pytest

from jaxmbd.viz import solids


def volume(mesh):
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    return np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0


def prism(sides):
    """The area of a regular polygon over that of its circle."""
    return sides / (2.0 * np.pi) * np.sin(2.0 * np.pi / sides)


def test_volumes():
    assert volume(solids.box([0.5, 1.0, 1.5])) == pytest.approx(6.0)
    disc = np.pi * 0.3**2
    assert volume(solids.cylinder(0.3, -1.0, 2.0, 24)) == pytest.approx(3.0 * disc * prism(24))
    assert volume(solids.sphere(1.0, 200)) == pytest.approx(4.0 / 3.0 * np.pi, rel=1e-3)
    half = np.array([1.0, 2.0, 0.5])
    assert volume(solids.ellipsoid(half, 200)) == pytest.approx(4.0 / 3.0 * np.pi, rel=1e-3)
    assert volume(solids.capsule(1.0, 2.0, 200)) == pytest.approx(16.0 / 3.0 * np.pi, rel=1e-3)
    torus = 2.0 * np.pi**2 * 0.1**2 * prism(12)
    assert volume(solids.ring(1.0, 0.1, 400)) == pytest.approx(torus, rel=1e-3)
    corners = [(0, 0, 1), (2, 0, 1), (2, 3, 1), (0, 3, 1), (1, 1, 1)]
    assert volume(solids.plate(corners, 0.1)) == pytest.approx(0.6)
    around = 2.0 * np.pi * np.arange(1000) / 1000
    path = np.stack([np.cos(around), np.sin(around), 0.0 * around], axis=1)
    closed = solids.swept(np.concatenate([path, path[:1]]), 0.1, 12, closed=True)
    assert volume(closed) == pytest.approx(torus, rel=1e-3)


def test_a_tube_reaches_from_point_to_point():
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.5, 1.0, 2.0])
    mesh = solids.tube(a, b, 0.01)
    along = (b - a) / np.linalg.norm(b - a)
    height = (mesh.vertices - a) @ along
    assert height.min() == pytest.approx(0.0, abs=1e-12)
    assert height.max() == pytest.approx(np.linalg.norm(b - a))
    off = np.linalg.norm(mesh.vertices - a - height[:, None] * along, axis=1)
    assert off.max() == pytest.approx(0.01)


def test_points_in_no_plane_or_in_a_line_make_no_plate():
    line = [(0, 0, 0), (1, 0, 0), (2, 0.01, 0)]
    assert solids.plate(line, 0.1) is None
    assert solids.plate([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], 0.1) is None
    assert solids.plate(line[:2], 0.1) is None


def test_frames_are_right_handed():
    for axis in (*np.eye(3), *-np.eye(3), (1.0, 2.0, -3.0)):
        frame = solids.frame_along(axis)
        np.testing.assert_allclose(frame.T @ frame, np.eye(3), rtol=0, atol=1e-15)
        assert np.linalg.det(frame) == pytest.approx(1.0)
        np.testing.assert_allclose(frame[:, 2], np.asarray(axis) / np.linalg.norm(axis))
