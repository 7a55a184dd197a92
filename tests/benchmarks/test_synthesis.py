"""The closed form of a four-bar's path, which the benchmark compares with, against the engine."""

import jax
import numpy as np
import pytest
from synthesis_cases.evolution import coupler_points

import jaxmbd as mbd
from jaxmbd.synthesis import follow, massless_four_bar


@pytest.mark.parametrize("branch", [1.0, -1.0])
def test_path_of_a_four_bar(branch):
    x = np.array([4.0, 1.0, 3.0, 2.5, 1.2, 0.7, 0.4, -0.3, 0.6])
    first, turned = 0.5, np.linspace(0.0, 2.0 * np.pi, 13)
    c, s = np.cos(x[8]), np.sin(x[8])
    pivot, frame = x[6:8], np.array([[c, -s], [s, c]])
    b = pivot + frame @ (x[1] * np.array([np.cos(first), np.sin(first)]))
    d = pivot + frame @ np.array([x[0], 0.0])
    points = coupler_points(x, first + turned, branch)
    # With the coupler point at its end, the same form gives the joint to the rocker.
    at_end = np.array([*x[:4], x[2], 0.0, *x[6:]])
    joint = coupler_points(at_end, np.array([first]), branch)[0]
    linkage = massless_four_bar({"A": pivot, "B": b, "C": joint, "D": d, "P": points[0]})
    q = follow(linkage, "A", turned).q
    path = jax.vmap(lambda q: mbd.point_position(linkage, q, "coupler", "P"))(q)
    assert np.asarray(path)[:, :2] == pytest.approx(points, abs=1e-9)
