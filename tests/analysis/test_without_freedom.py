"""Mechanisms in which nothing can move: runs of no coordinates, and what else may be asked of them.

The reactions are the weights, by hand: a bracket of 2 kg on an arm of 1 kg that is welded to the
ground at the origin, their centres of mass 1.5 and 0.5 m out.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import Status, lanes
from jaxmbd.analysis.methods import METHODS

NONE = jnp.zeros(0)
G = 9.81
ROOT = [0.0, -G * (0.5 + 3.0), 0.0, 0.0, 0.0, 3.0 * G]


def welded(*, mass=1.0, **more):
    bodies = {"arm": mbd.Body(mass, [0.5, 0.0, 0.0], np.eye(3)),
              "bracket": mbd.Body(2.0, [1.5, 0.0, 0.0], np.eye(3))}  # fmt: skip
    joints = {"root": mbd.Fixed("ground", "arm", [0.0, 0.0, 0.0]),
              "weld": mbd.Fixed("arm", "bracket", [1.0, 0.0, 0.0])}  # fmt: skip
    return mbd.Mechanism(bodies, joints | more, gravity=[0.0, 0.0, -G])


def propped(at):
    """The arm held twice: a ball at the ground's point `at`, drawn at (1, 0, 0) on the arm."""
    return welded(prop=mbd.Spherical("ground", "arm", at=at, at_b=[1.0, 0.0, 0.0]))


def driven(inertia):
    """An arm about x, turned at 0.1 rad/s: one coordinate, which a drive takes."""
    arm = mbd.Body(inertia, [0.0, 0.5, 0.0], inertia * np.eye(3))
    hinge = mbd.Revolute("ground", "arm", [0.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    drive = mbd.Drive("hinge", lambda t, p: p * t, 0.1)
    return mbd.Mechanism({"arm": arm}, {"hinge": hinge}, drives={"motor": drive})


WELDED = welded()


def held_by(mech):
    def outputs(t, q, v):
        vdot, lam = mbd.forward_dynamics(mech, q, v, t)
        return mbd.joint_reactions(mech, q, v, vdot, lam, t)["root"]

    return outputs


@pytest.mark.parametrize(
    "method",
    [x if x == "dormand_prince" else pytest.param(x, marks=pytest.mark.slow) for x in METHODS],
)
def test_a_run_of_no_coordinates_has_times_and_reactions(method):
    run = mbd.simulate(WELDED, NONE, t1=0.1, dt=0.05, method=method, outputs=held_by(WELDED))
    assert run.status == Status.OK and run.q.shape == run.v.shape == (3, 0)
    np.testing.assert_allclose(run.t, [0.0, 0.05, 0.1])
    np.testing.assert_allclose(run.outputs, np.tile(ROOT, (3, 1)), atol=1e-13)
    assert run.error == 0.0 and run.steps == 2 and run.rejected == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk4", "generalized_alpha", "rodas"])
def test_events_of_time_and_lanes_of_masses(method):
    late = mbd.Event(lambda t, q, v: t - 0.07, stop=True)

    def run(mass):
        mech = welded(mass=mass)
        return mbd.simulate(mech, NONE, t1=0.1, dt=0.05, method=method, outputs=held_by(mech),
                            events={"late": late})  # fmt: skip

    found = lanes.vmap(run)(np.array([1.0, np.nan, 3.0]))
    np.testing.assert_array_equal(found.status == Status.OK, [True, False, True])
    np.testing.assert_allclose(found.events["late"].t[[0, 2], 0], 0.07)
    np.testing.assert_allclose(found.outputs[[0, 2], :2, 5].T, np.tile([3 * G, 5 * G], (2, 1)))
    assert np.all(np.isnan(found.outputs[[0, 2], 2]))  # after the event


def test_derivatives_of_a_run_by_a_mass():
    def root(mass):
        mech = welded(mass=mass)
        return mbd.simulate(mech, NONE, t1=0.1, dt=0.05, outputs=held_by(mech)).outputs[-1, 5]

    np.testing.assert_allclose(jax.jit(jax.grad(root))(1.0), G)


def test_what_is_asked_of_a_run():
    run = mbd.simulate(WELDED, NONE, t1=0.1, dt=0.05)
    balance = mbd.energy_balance(WELDED, run)
    assert not np.any(balance.kinetic) and not np.any(balance.missing)
    assert [x.shape for x in mbd.states_at(WELDED, run, [0.02, 0.07])] == [(2, 0), (2, 0)]
    found = mbd.verify(WELDED, NONE, t1=0.1, dt=0.05)
    assert found.digits_q == found.digits_v > 15 and found.finer.q.value == 0.0
    assert "of ''" not in found.summary
    assert isinstance(mbd.choose_method(WELDED, NONE, t1=1.0).method, mbd.DormandPrince)
    assert mbd.simulate(WELDED, NONE, t1=0.1, dt=0.05, method="auto").status == Status.OK


def test_statics_and_modes():
    linear = mbd.linearize(WELDED, NONE)
    assert linear.modes().shapes.shape == (0, 0) and linear.frequencies().shape == (0,)
    assert mbd.equilibrium(WELDED).q.shape == (0,)
    assert not np.any(mbd.flexibility(WELDED, NONE, [("bracket", np.array([2.0, 0.0, 0.0]))]))
    assert mbd.simulate_driven(WELDED, t=[0.0, 0.1]).q.shape == (2, 0)


@pytest.mark.parametrize("inertia", [pytest.param(1.0, marks=pytest.mark.slow), 0.0])
def test_all_speeds_driven_with_inertia_or_without(inertia):
    mech = driven(inertia)
    run = mbd.simulate(mech, [0.0], t1=0.1, dt=0.05)
    assert run.status == Status.OK
    np.testing.assert_allclose(run.q[:, 0], [0.0, 0.005, 0.01], atol=1e-15)
    assert mbd.linearize(mech, [0.0], [0.1]).eigenvalues().shape == (0,)


def test_a_loop_of_welds_is_redundant_or_open():
    mech = propped([1.0, 0.0, 0.0])
    assert mbd.mobility(mech).dof == 0 and len(mbd.mobility(mech).redundant) == 3
    assert mbd.simulate(mech, NONE, t1=0.1, dt=0.05).status == Status.OK
    for ask in (mbd.simulate, mbd.verify):
        with pytest.raises(ValueError, match="'prop' is open by 0.2"):
            ask(propped([1.2, 0.0, 0.0]), NONE, t1=0.1, dt=0.05)


@pytest.mark.slow
def test_the_margin_of_a_loop_that_nothing_closes_is_its_gap():
    def margin(at):
        return mbd.closure_margin(propped(at), {})

    at = jnp.array([1.2, 0.3, 0.4])
    value, slope = jax.jit(jax.value_and_grad(margin))(at)
    gap = np.array([0.2, 0.3, 0.4])
    np.testing.assert_allclose(value, -np.linalg.norm(gap))
    np.testing.assert_allclose(slope, -gap / np.linalg.norm(gap))
    assert margin(jnp.array([1.0, 0.0, 0.0])) > 0.0
