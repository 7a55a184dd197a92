"""Bushing rates of an axle from side forces on a rig and where its wheels go."""

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.design import Within

K = np.array([0.0, 0.0, 0.0, 2e5, 1.2e5, 2.8e5])
RATES = ("left_front", "left_rear", "right_front")
PATHS = [f"forces/{n}/stiffness/y" for n in RATES]
TRUE = np.array([0.9e5, 1.6e5, 1.3e5])
NOISE = {"left_half_track": 2e-5, "left_steer_angle": 5e-5, "right_steer_angle": 5e-5}
SIDE = 500.0 * np.arange(-2.0, 3.0)


def arms():
    """An axle of two arms, each on two bushings, sprung and loaded."""
    forces = {
        "spring": mbd.SpringDamper("ground", "arm", "top", "low", 3e4, free_length=0.55),
        "load": mbd.PointForce("arm", "wheel", force=(100.0, -300.0, 3500.0)),
    }
    forces |= {n: mbd.Bushing("ground", "arm", at=n, stiffness=K) for n in ("front", "rear")}
    points = {
        "front": (0.35, 0.25, 0.05), "rear": (-0.25, 0.35, 0.0), "wheel": (0.0, 0.75, 0.0),
        "low": (0.02, 0.6, 0.05), "top": (0.0, 0.5, 0.45),
    }  # fmt: skip
    body = mbd.Body(20.0, com=(0.0, 0.5, 0.02), inertia=np.diag([0.5, 0.8, 1.0]))
    arm = mbd.Mechanism({"arm": body}, {"joint": mbd.Free("ground", "arm")}, forces, points=points)
    car = suspension.axle(arm)
    roles = suspension.Corner("arm", "wheel", 0.3, spring="spring", spindle=(0.02, 1.0, 0.03))
    return car, suspension.axle_corners(car, roles)


@pytest.mark.slow
def test_bushing_rates_of_an_axle_with_their_intervals():
    """Standard errors are those of differences of the rig's table; intervals have the truth."""
    car, roles = arms()
    loads = {"left": SIDE, "right": 0.5 * SIDE}
    rig = suspension.axle_sweep(roles, lateral=loads, observe=list(NOISE))

    def measured(rates):
        found = rig(mbd.set_variables(car, dict(zip(PATHS, rates, strict=True))))
        return {n: np.asarray(found[n]) for n in NOISE}

    exact, rng = measured(TRUE), np.random.default_rng(5)
    data = {n: y + NOISE[n] * rng.normal(size=y.shape) for n, y in exact.items()}
    vary = {path: Within(0.7, relative=True) for path in PATHS}
    found = mbd.identify(car, vary, data, rig, noise=NOISE)
    assert found.converged
    slopes = []
    for step in 1e-3 * np.diag(found.estimates):
        up, down = measured(found.estimates + step), measured(found.estimates - step)
        rise = [(up[n] - down[n]) / NOISE[n] for n in NOISE]
        slopes.append(np.concatenate(rise) / (2.0 * np.max(step)))
    covariance = np.linalg.inv(np.array(slopes) @ np.transpose(slopes))
    size = np.max(covariance)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-4, atol=1e-9 * size)
    assert np.all(np.abs(found.estimates - TRUE) < 3.0 * found.standard_errors)
    assert np.all(found.standard_errors < 0.01 * TRUE)
    for path, rate in zip(PATHS, TRUE, strict=True):
        low, high = found.intervals(0.999)[path]
        assert low < rate < high
