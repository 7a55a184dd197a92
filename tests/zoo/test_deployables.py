"""Linkages that fold: motions and forces against closed forms."""

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

import jaxmbd as mbd
from jaxmbd import zoo
from jaxmbd.observe import Coordinate, HoldingEffort, Position, Sweep


def test_bennett_moves_as_bennett_said():
    mech = zoo.bennett(twists=(0.5, 1.3), angle=1.0)
    turn = np.linspace(-0.6, 2.5, 24)
    found = Sweep({"J0": turn}, {"second": Coordinate("J1"), "third": Coordinate("J3")})(mech)
    wanted = zoo.bennett_angle(1.0 + turn, (0.5, 1.3)) - zoo.bennett_angle(1.0, (0.5, 1.3))
    np.testing.assert_allclose(found["second"], wanted, atol=1e-12)
    np.testing.assert_allclose(found["third"], -wanted, atol=1e-12)  # J3 looks from the ground


def test_bennett_angle_is_where_the_loop_closes():
    """By the distance of the ends of the second and of the opposite link, for some twists."""
    alpha, beta, length = 0.4, 1.0, 0.3
    other = length * np.sin(beta) / np.sin(alpha)

    def gap(phi):
        mech = zoo.bennett(length, (alpha, beta), 1.2)
        assert mech.points["J0"] @ mech.points["J0"] == 0.0
        c, s = np.cos(phi), np.sin(phi)
        axis = np.array([np.sin(1.2) * np.sin(alpha), -np.cos(1.2) * np.sin(alpha), np.cos(alpha)])
        along = np.array([np.cos(1.2), np.sin(1.2), 0.0])
        end = length * along + other * (c * along + s * np.cross(axis, along))
        # The last link of length a ends on the ground's end at J3, seen from J0.
        last = np.asarray(mech.points["J3"])
        return np.linalg.norm(end - last) - length

    found = brentq(gap, *(zoo.bennett_angle(1.2, (alpha, beta)) + np.array([-0.3, 0.25])))
    assert found == pytest.approx(zoo.bennett_angle(1.2, (alpha, beta)), abs=1e-10)


def test_sarrus_goes_straight():
    mech = zoo.sarrus(length=0.25, side=0.15, angle=0.8)
    bend = np.linspace(-0.5, 0.6, 12)
    plate = {"Cx": Position("plate", "Cx"), "Cy": Position("plate", "Cy")}
    found = Sweep({"Ax": -bend}, plate)(mech)
    height, flat = 0.5 * np.sin(0.8 + bend), np.zeros(12)
    np.testing.assert_allclose(found["Cx"], np.stack([flat + 0.15, flat, height], 1), atol=1e-12)
    np.testing.assert_allclose(found["Cy"], np.stack([flat, flat + 0.15, height], 1), atol=1e-12)


def test_scissors_lift_by_virtual_work():
    """Force at the foot dh/dx (load + half the bars), as the bars rise half as far on average."""
    stages, angle = 2, 0.6
    mech = zoo.scissors(stages, 0.8, angle, masses=(3.0, 40.0))
    travel = np.linspace(-0.2, 0.1, 7)
    top = Position("table", "P2", "y")
    found = Sweep({"foot": travel}, {"force": HoldingEffort("foot"), "top": top})(mech)
    at = np.arccos(np.cos(angle) + travel / 0.8)
    np.testing.assert_allclose(found["top"], stages * 0.8 * np.sin(at), atol=1e-12)
    weight = 9.81 * (40.0 + 0.5 * 2 * stages * 3.0)
    np.testing.assert_allclose(found["force"], -weight * stages / np.tan(at), rtol=1e-11)


@pytest.mark.parametrize("build", [zoo.bennett, zoo.sarrus, zoo.scissors])
def test_one_freedom_as_drawn(build):
    mech = build()
    assert mbd.mobility(mech).dof == 1
    np.testing.assert_allclose(mbd.assemble(mech).q, 0.0, atol=1e-12)


def test_the_drawing_has_derivatives():
    slope = jax.jacfwd(lambda x: zoo.bennett(angle=x).points["J2"])(1.5)
    step = 1e-6
    ends = [np.asarray(zoo.bennett(angle=1.5 + s).points["J2"]) for s in (-step, step)]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / (2 * step), atol=1e-9)
