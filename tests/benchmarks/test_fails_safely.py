"""What is broken is refused or flagged: a few of the cases of ``benchmarks/fails_safely.py``."""

import fails_safely
import numpy as np
import pytest
from fails_cases import descriptions

import jaxmbd as mbd

pytestmark = pytest.mark.filterwarnings("ignore")
PLAIN = [mbd.io.to_dict(mbd.zoo.rssr()), mbd.io.to_dict(mbd.zoo.multi_link())]


def test_broken_descriptions_are_refused_with_a_sentence():
    rng, refused = np.random.default_rng(1), 0
    for i in range(400):
        data, change = descriptions.broken(PLAIN[i % 2], rng)
        mech, why = descriptions.build(data)
        assert not why.startswith("crashed"), (change, why)
        refused += mech is None
    assert 200 < refused < 400  # a change may be harmless


def test_broken_numbers_and_states_are_not_reported_as_ok():
    found = fails_safely.judge_batch("RSSR", mbd.zoo.rssr(), 27, seed=3)
    outcomes = [outcome for _, outcome, _ in found]
    assert not [x for x in found if x[1] not in ("right", "flagged")]
    assert outcomes.count("right") > 15 and outcomes.count("flagged") > 15


def test_the_judge_sees_what_is_wrong():
    m = mbd.zoo.rssr(gravity=9.81)
    q = np.asarray(mbd.assemble(m).q)
    v = np.zeros(5)
    vdot = np.asarray(mbd.forward_dynamics(m, q, v)[0])
    batch = fails_safely.jax.tree_util.tree_map(lambda x: np.stack([x, x, x]), m)
    shifts = 1e-3 * np.eye(1, 6), 1e-3 * np.max(np.abs(vdot)) * np.eye(1, 5)
    states = (np.stack([q, q + shifts[0][0], q]), np.stack([v] * 3))
    errors = fails_safely.judge.errors(batch, *states, np.stack([vdot, vdot, vdot + shifts[1][0]]))
    faults = [fails_safely.judge.wrong(e) for e in errors]
    assert not faults[0]
    assert any("position" in x for x in faults[1])
    assert any("acceleration" in x or "balance" in x for x in faults[2])
