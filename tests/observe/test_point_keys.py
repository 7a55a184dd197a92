"""A `PointCoordinate` is absolute and a `PointTravel` a displacement, wherever one is held."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.campaign.study_file import read_study
from jaxmbd.identification.measured import held_values
from jaxmbd.observe import Configuration, HoldingEffort, Motion, Position, Settle, Sweep

PLACE, TRAVEL = mbd.PointCoordinate("lift", "top", "z"), mbd.PointTravel("lift", "top", "z")
DRAWN, RISE = 0.3, 0.05
SEEN = {"z": Position("lift", "top", "z")}
KEYS = pytest.mark.parametrize(("key", "drawn"), [(PLACE, DRAWN), (TRAVEL, 0.0)])


def lift(drawn=DRAWN):
    """A sprung slider along z, with a point drawn somewhere else than at zero."""
    return mbd.Mechanism(
        bodies={"lift": mbd.Body(2.0, com=(0.0, 0.1, 0.2), inertia=np.eye(3))},
        joints={"guide": mbd.Prismatic("ground", "lift", at=(0, 0, 0), axis=(0, 0, 1))},
        forces={"spring": mbd.TorsionSpring("guide", stiffness=500.0)},
        points={"top": jnp.stack([0.1, 0.0, drawn])},
    )


MECH = lift()


@KEYS
def test_a_key_means_the_same_in_all_functions(key, drawn):
    value = drawn + RISE
    q = {
        "assemble": mbd.assemble(MECH, {key: value}).q,
        "equilibrium": mbd.equilibrium(MECH, known={key: value}).q,
        "driven": mbd.simulate_driven(MECH, {key: lambda t: value + t}, t=[0.0]).q[0],
        "constant": mbd.simulate_driven(MECH, {key: value}, t=[0.0]).q[0],
    }
    for name, found in q.items():
        assert found[0] == pytest.approx(RISE, abs=1e-12), name
    assert mbd.assemble_velocity(MECH, jnp.zeros(1), {key: 2.0})[0] == pytest.approx(2.0)


@KEYS
def test_a_key_means_the_same_in_all_experiments(key, drawn):
    value = drawn + RISE
    effort = {"effort": HoldingEffort(PLACE), "same": HoldingEffort(TRAVEL)}
    motion = Motion(1e-3, 1e-3, SEEN, start=Configuration({key: value}), speeds={key: 0.0})
    found = {
        "pose": Configuration({key: value}, SEEN | effort)(MECH)["z"],
        "settle": Settle({key: value}, SEEN | effort)(MECH)["z"],
        "sweep": Sweep({key: (value, drawn)}, SEEN | effort)(MECH)["z"][0],
        "motion": motion(MECH)["z"][0],
    }
    for name, z in found.items():
        assert z == pytest.approx(DRAWN + RISE, abs=1e-12), name
    seen = Sweep({key: (value, drawn)}, effort, settle=True)(MECH)
    right = np.array([500.0 * RISE, 0.0]) + 2.0 * 9.81
    np.testing.assert_allclose([seen["effort"], seen["same"]], [right, right], rtol=1e-12)


def test_the_axis_of_a_sweep_says_what_its_values_are():
    about = {}
    for key in (PLACE, TRAVEL):
        sweep = Sweep({key: (0.1, 0.2)}, SEEN)
        about[sweep.axis] = sweep.axis_values(MECH).text
    assert about == {"z": "z of top", "travel": "z of top from where it is drawn"}


@KEYS
@pytest.mark.parametrize("how", ["assemble", pytest.param("driven", marks=pytest.mark.slow)])
def test_derivatives_by_the_drawing(key, drawn, how):
    """A travel does not change with the point's place; a position is the less of it."""

    def travel(place):
        mech, value = lift(place), drawn + RISE
        if how == "assemble":
            return mbd.assemble(mech, {key: value}).q[0]
        return mbd.simulate_driven(mech, {key: lambda t: value}, t=jnp.zeros(1)).q[0, 0]

    slope = -1.0 if key is PLACE else 0.0
    assert jax.jvp(travel, (DRAWN,), (1.0,))[1] == pytest.approx(slope, abs=1e-12)


def test_both_names_of_one_coordinate_are_told_apart_and_refused_together():
    assert PLACE != TRAVEL and len({PLACE, TRAVEL}) == 2
    with pytest.raises(ValueError, match="z of top on 'lift' is named twice"):
        mbd.assemble(MECH, {PLACE: 0.3, TRAVEL: 0.0})
    held = held_values(Configuration({PLACE: 0.3}), MECH) | held_values(
        Configuration({TRAVEL: 0.1}), MECH
    )
    assert {p: x.unit for p, x in held.items()} == {
        "known/lift/top/z": "m",
        "known/lift/top/dz": "m",
    }


def _study(text, tmp_path, **given):
    mbd.save(MECH, tmp_path / "lift.json")
    data = {
        "samples": 4,
        "mechanism": {"file": "lift.json"},
        "inputs": {"points/top/x": {"distribution": "normal", "sigma": "1 mm"}},
        "experiment": {
            "type": "Sweep",
            "over": {text: ["50 mm"]},
            "observe": {"z": {"type": "Position", "body": "lift", "point": "top", "axis": "z"}},
        },
    }
    return read_study(data | given, tmp_path).model.observe.over


def test_a_study_file_says_which_is_meant(tmp_path):
    assert list(_study("lift/top/z", tmp_path, format=2)) == [PLACE]
    assert list(_study("lift/top/dz", tmp_path, format=2)) == [TRAVEL]
    assert list(_study("lift/top/dz", tmp_path)) == [TRAVEL]
    with pytest.warns(UserWarning, match=r"names no format; write 'lift/top/dz'"):
        assert list(_study("lift/top/z", tmp_path)) == [TRAVEL]  # as files without format did
    with pytest.raises(ValueError, match="format = 3"):
        _study("lift/top/z", tmp_path, format=3)
