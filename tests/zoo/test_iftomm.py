"""Mechanisms of the IFToMM library in the zoo, against the reference files and other equations."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
from papers import iftomm as paper
from repository import REFERENCES

import jaxmbd as mbd
from jaxmbd.io import read_gt_mech


def test_the_squeezer_starts_as_published():
    data = json.loads((REFERENCES / "andrews_squeezer.json").read_text())
    mech = mbd.zoo.andrews_squeezer()
    q, v = mbd.neutral(mech), np.zeros(7)
    assert np.abs(mbd.constraint_residual(mech, q)).max() < 1e-15
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    found = mbd.body_accelerations(mech, q, v, vdot)
    for body, given in data["initial_accelerations_world"].items():
        np.testing.assert_allclose(found[body][:3], given["angular"], atol=1e-7)
        np.testing.assert_allclose(found[body][3:], given["linear"], atol=1e-9)
    forces = mbd.joint_reactions(mech, q, v, vdot, lam)
    np.testing.assert_allclose(forces["E23"][3:5], data["initial_lambda"][:2], rtol=1e-9)
    assert mbd.mobility(mech).redundant == ()


def test_the_squeezer_s_numbers_may_be_traced():
    def pull(rate):
        mech = mbd.zoo.andrews_squeezer(spring_rate=rate, dimensions={"da": 0.0115 * rate / 4530.0})
        return mbd.potential_energy(mech, mbd.neutral(mech)) + mech.com("K2")[0]

    difference = (pull(4540.0) - pull(4520.0)) / 20.0
    np.testing.assert_allclose(jax.grad(pull)(4530.0), difference, rtol=1e-9)


def test_bricard_is_the_reference_file_s():
    data = json.loads((REFERENCES / "iftomm_A04_bricard.json").read_text())
    ours, theirs = mbd.zoo.bricard(), read_gt_mech(data)
    assert ours.structure.bodies == theirs.structure.bodies
    for body in ours.structure.bodies:
        np.testing.assert_allclose(ours.com(body), theirs.com(body), atol=1e-15)
        np.testing.assert_allclose(
            ours.bodies[body].inertia, theirs.bodies[body].inertia, atol=1e-15
        )
    for edge in ours.structure.joints:
        one, other = ours.joint(edge.name), theirs.joint(edge.name)
        assert (one.a, one.b) == (other.a, other.b)
        np.testing.assert_allclose(one.axis, other.axis)
        np.testing.assert_allclose(ours.point(one.at), theirs.point(other.at))


def test_the_governor_moves_as_its_symmetric_equations_say():
    mech = mbd.zoo.flyball_governor()
    q = mbd.neutral(mech)
    v = mbd.assemble_velocity(mech, q, {"shaft": 2.0 * np.pi})
    run = mbd.simulate(mech, q, v, t1=0.04, dt=1e-5, save_every=400)
    place = mbd.topology(mech).layout
    height = 0.5 + run.q[:, place["slide"].q.start]
    expected = paper.symmetric_governor(run.t)
    assert np.ptp(expected) > 1e-3
    np.testing.assert_allclose(height, expected, atol=1e-9)
    # both rods move alike
    np.testing.assert_allclose(
        run.q[:, place["left"].q.start], -run.q[:, place["right"].q.start], atol=1e-12
    )


@pytest.mark.slow
def test_problems_run_their_official_times():
    assert paper.pendulum()["position_error_m"] < 1e-9
    loops = paper.n_four_bar(2, 5e-4)
    assert loops["position_error_m"] < 1e-6 and loops["singular_passes"] == 20
    squeezer = paper.squeezer()
    assert squeezer["angle_error_rad"] < 1e-8 and squeezer["energy_change_J"] < 1e-9
    bricard = paper.bricard()
    assert bricard["energy_change_J"] < 1e-9
    np.testing.assert_allclose(bricard["x_at_0_2.5_5_7.5_10_s"], [1, -1, 1, -1, 1], atol=2e-2)
    assert paper.governor()["slider_error_m"] < 1e-9
