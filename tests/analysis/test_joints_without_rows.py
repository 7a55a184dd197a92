"""A joint that is cut and constrains nothing: a `Free` one beside others of its body."""

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.observe import Position, Sweep


def linkage(length=None):
    """Two hinged bars, a rod that bounds them, and a needless Free joint."""
    rod = mbd.Rod("ground", "b", at_a=(0, 2, 0), at_b=(1, 2, 0), length=length)
    return mbd.Mechanism(
        bodies={"a": mbd.Body(1.0, (0.5, 0, 0)), "b": mbd.Body(1.0, (1, 1, 0))},
        joints={
            "o": mbd.Revolute("ground", "a", at=(0, 0, 0), axis=(0, 0, 1)),
            "p": mbd.Revolute("a", "b", at=(1, 0, 0), axis=(0, 0, 1)),
            "air": mbd.Free("ground", "b"),
            "rod": rod,
        },
    )


def test_what_stays_open_is_named_beside_it():
    mech = linkage(length=30.0)
    assert "air" in mbd.topology(mech).cut
    with pytest.raises(ValueError, match=r"joint 'rod' is open by 25"):
        mbd.assemble(mech)
    assert int(mbd.assemble(mech, throw=False).status) != 0


def test_a_sweep_beyond_its_reach_names_the_joint():
    mech = linkage()
    sweep = Sweep({"o": np.linspace(0.0, 0.2, 3)}, {"p": Position("b", (1.0, 1.0, 0.0))})
    assert np.all(np.isfinite(sweep(mech)["p"]))
    far = linkage(length=4.9)
    found = sweep(far)
    assert int(found["status"]) != 0 and np.isfinite(found["open_distance"]).all()
