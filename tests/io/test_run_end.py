"""Where a run ended, from a file: the next run goes on to the bit."""

import jax
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.io import load_run_end, save_run_end

EVENTS = {"a/b": mbd.Event(lambda t, q, v: t - 0.5, sets={"side/1": 1.0})}
GIVEN = {"method": "dormand_prince", "events": EVENTS}


def test_an_end_comes_back_to_the_bit(tmp_path):
    mech = mbd.zoo.simple_pendulum()
    half = mbd.simulate(mech, [0.1], t=[0.0, 1.0], switches={"side/1": -1.0}, **GIVEN)
    save_run_end(half.end, tmp_path / "end.npz")
    end = load_run_end(tmp_path / "end.npz")
    assert jax.tree.structure(end) == jax.tree.structure(half.end)
    for x, y in zip(jax.tree.leaves(end), jax.tree.leaves(half.end), strict=True):
        np.testing.assert_array_equal(x, y)
        assert x.dtype == y.dtype
    whole, rest = (mbd.simulate(mech, x, t=[1.0, 1.5], **GIVEN) for x in (half.end, end))
    np.testing.assert_array_equal(rest.q, whole.q)
    assert end.events["a/b"].count == 1.0 and rest.switches["side/1"][-1] == 1.0


def test_other_files_are_told(tmp_path):
    path = tmp_path / "other.npz"
    path.write_text("no archive")
    with pytest.raises(ValueError, match="is no file of save_run_end"):
        load_run_end(path)
    np.savez(path, format="jaxmbd-run-end-0")
    with pytest.raises(ValueError, match="has format 'jaxmbd-run-end-0'"):
        load_run_end(path)
    with pytest.raises(ValueError, match="traced"):
        end = mbd.simulate(mbd.zoo.simple_pendulum(), [0.1], t1=0.01, dt=1e-2).end
        jax.jit(lambda end: save_run_end(end, path))(end)
