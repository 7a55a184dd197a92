"""Published motions: Andrews' squeezing mechanism (Mazzia & Magherini 2008; Hairer & Wanner)."""

import json
from pathlib import Path

import numpy as np
import pytest

import jaxmbd as mbd

REFERENCES = Path(__file__).parents[2] / "data" / "groundtruth"
ANGLES = {
    "beta": "O", "Theta": "F", "gamma": "B", "Phi": "G",
    "delta": "A5", "Omega": "H", "epsilon": "A7",
}  # fmt: skip


@pytest.mark.slow
def test_andrews_squeezer():
    """Angles, rates and multipliers at 0.03 s by one call, to the digits that are published.

    Two methods that share no coefficient agree to 1e-11; the published multipliers are off by
    1.3e-6, as the file's own check of them says.
    """
    data = json.loads((REFERENCES / "andrews_squeezer.json").read_text())
    published, mech = data["published_reference_t0_03"], mbd.zoo.andrews_squeezer()
    place = np.array([mbd.topology(mech).layout[joint].q.start for joint in ANGLES.values()])
    start = np.array([data["initial_angles"][n] for n in ANGLES])
    ends = []
    for kind in (mbd.DormandPrince, mbd.Rodas):
        run = mbd.simulate(mech, mbd.neutral(mech), t1=0.03, method=kind(rtol=1e-12, atol=1e-14))
        assert run.drift < 1e-14 and run.error < 1e-8
        ends.append((start + np.asarray(run.q[-1])[place], np.asarray(run.v[-1])[place]))
    (angles, rates), (others, other_rates) = ends
    np.testing.assert_allclose(others, angles, rtol=0, atol=1e-11)
    np.testing.assert_allclose(other_rates, rates, rtol=0, atol=1e-7)
    there = np.array([published[n] for n in ANGLES])
    np.testing.assert_allclose(angles, there, rtol=0, atol=1e-10 * np.abs(there).max())
    there = np.array([published[f"d_{n}"] for n in ANGLES])
    np.testing.assert_allclose(rates, there, rtol=0, atol=5e-8 * np.abs(there).max())
    q, v = run.q[-1], run.v[-1]
    vdot, lam = mbd.forward_dynamics(mech, q, v)
    reactions = mbd.joint_reactions(mech, q, v, vdot, lam)
    forces = np.concatenate([reactions[name][3:5] for name in ("E23", "E24", "E26")])
    np.testing.assert_allclose(forces, [published[f"lambda{i}"] for i in range(1, 7)], rtol=1.3e-6)
