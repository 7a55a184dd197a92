"""The benchmark of time integration: its references and its parts, on small sizes."""

import integration
import numpy as np
import pytest
from integration_cases import (
    andrews_reference,
    event_costs,
    peer_exudyn,
    references,
    run_estimates,
    work_precision,
)

import jaxmbd as mbd


def test_the_squeezers_equations_keep_its_conditions():
    """Their second derivatives along a motion are zero, and the data file's start is right."""
    p, data = andrews_reference.numbers()
    start = np.array(
        [andrews_reference.LONG(data["initial_angles"][n]) for n in andrews_reference.ANGLES]
    )
    vdot, lam = andrews_reference.motion(p, start, 0 * start)
    given = data["initial_accelerations"]
    np.testing.assert_allclose(vdot[:2].astype(float), list(given.values()), rtol=1e-12)
    np.testing.assert_allclose(lam[:2].astype(float), data["initial_lambda"][:2], rtol=1e-12)


def test_the_squeezers_multipliers_are_those_of_its_equations():
    """Of jaxmbd, by extended precision; the published ones contradict the published motion."""
    mech, exact = mbd.zoo.andrews_squeezer(), andrews_reference.AT_30_MS
    p, _ = andrews_reference.numbers()
    state = (np.array(exact[k], andrews_reference.LONG) for k in ("angle", "rate"))
    lam = andrews_reference.motion(p, *state)[1].astype(float)
    np.testing.assert_allclose(lam, exact["multiplier"], rtol=1e-10)
    off = andrews_reference.published_multipliers()
    assert (
        off["published"] > 1e-6 and off["by the equations at the published angles and rates"] < 3e-9
    )
    method = mbd.DormandPrince(rtol=1e-10, atol=1e-12)
    run = mbd.simulate(mech, mbd.neutral(mech), t1=0.03, method=method)
    case = references.squeezer()
    errors = case.errors(*map(np.asarray, (run.t, run.q, run.v)))
    assert errors["position, extended precision"] < 1e-10
    assert errors["multipliers, relative, extended precision"] < 1e-9


def test_a_published_motion_has_a_row_for_each_method():
    found = references.rows(references.pendulum(), quick=True)
    assert [r["status"] for r in found] == ["OK"] * 3 and all(r["lanes_ok"] == 8 for r in found)
    errors = [r["errors"]["position"] for r in found]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 1e-8
    assert all(r["closure"]["between"] == 0.0 and r["per_lane_ms"] > 0.0 for r in found)


def test_the_pendulums_closed_form():
    run = mbd.simulate(mbd.zoo.simple_pendulum(), [0.0], t1=2.0, dt=1e-3)
    assert abs(run.q[-1, 0] - work_precision.exact_pendulum(2.0)) < 1e-9


@pytest.mark.skipif(peer_exudyn.version() is None, reason="Exudyn is not installed")
def test_exudyn_has_the_same_mechanisms():
    """Its errors fall with the square of the step, and with the fourth power."""
    exact = work_precision.exact_pendulum(1.0)
    pendulum = [abs(peer_exudyn.pendulum(1.0, n, "RK44", None)[1] - exact) for n in (100, 200)]
    assert pendulum[1] < 1e-8 and 10.0 < pendulum[0] / pendulum[1] < 20.0
    one, two, four = (peer_exudyn.squeezer(0.003, n, 3)[1] for n in (100, 200, 400))
    assert 3.0 < np.abs(one - two).max() / np.abs(two - four).max() < 5.0
    mech = mbd.zoo.andrews_squeezer()
    run = mbd.simulate(mech, mbd.neutral(mech), t1=0.003, dt=1e-5)
    crank = four[0] + (four[0] - two[0]) / 3.0
    assert abs(run.q[-1, mbd.topology(mech).layout["O"].q.start] - crank) < 1e-5


def test_points_are_compared_with_the_best_that_is_as_accurate():
    def row(engine, error, cpu, lane=None):
        return {
            "engine": engine,
            "method": "",
            "error": error,
            "cpu_ms": cpu,
            "per_lane_cpu_ms": lane,
        }

    ours = [row("jaxmbd", 1e-3, 1.0, 0.1), row("jaxmbd", 1e-6, 2.0, 0.2)]
    theirs = [row("Exudyn", 1e-4, 10.0), row("Exudyn", 1e-2, 5.0), row("Exudyn", 1e-9, 5.0)]
    found = work_precision.compared(ours + theirs)
    assert [(r["one"], r["batch"]) for r in found] == [(5.0, 50.0), (5.0, 50.0)]


def test_events_are_counted_and_timed():
    found = event_costs.measured(quick=True)
    assert [found[k]["events"] for k in ("recorded", "impacts")] == [[1, 6], [0, 6]]
    assert found["recorded"]["one lane, ratio"] > 0.0


def test_shares_of_runs():
    x = {
        "status": np.array([0, 0, 3, 0]),
        "estimate": np.array([1e-3, 1e-6, 0.1, 1e-3]),
        "true": np.array([2e-3, 1e-3, 0.2, 0.05]),
        "growth": np.array([1.0, 1.0, 1.0, 1e2]),
        "told": np.array([1e-3, 1e-5, np.nan, np.nan]),
    }
    x["status"][2] = mbd.Status.INACCURATE
    found = run_estimates.shares(x)
    assert (found["ok"], found["inaccurate"], found["ok and beyond accuracy"]) == (3, 1, 1)
    assert found["of them by errors that grow"] == 1
    assert found["estimate within factor"] == 0.5 and found["estimate too small"] == 0.5
    assert (found["verified"], found["verify within factor"]) == (2, 0.5)


@pytest.mark.slow
def test_a_quick_run_goes_through_all_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(integration, "keep_nothing", lambda: None)
    found = integration.main(["--quick", "--json", str(tmp_path / "found.json")])
    assert set(integration.PARTS) <= found.keys()
    assert found["account"]["multi_link"]["apart"] < 1e-12
    assert all(r["other_states"] == 0 for r in found["cut runs"]["rows"])
    assert all(found["gradients"][kind]["finite"] for kind in ("hardpoints", "road", "network"))
