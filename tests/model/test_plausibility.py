"""Descriptions that are valid and look wrong: told once with the number; none of ours is."""

import inspect
import warnings

import jax
import numpy as np
import pytest
from equipped_mechanisms import equipped_mechanism
from repository import REFERENCES

import jaxmbd as mbd
from jaxmbd.io import read_gt_mech
from jaxmbd.model import declared
from jaxmbd.model.plausibility import implausible


def moved(mech, **points):
    return mech.replace(points=points)


def corner(scale=1.0, **changes):
    """A quarter of a car, with points of its own as in a user's file."""
    p = {n: scale * np.asarray(x) for n, x in mbd.zoo.multi_link().points.items()} | changes
    return mbd.zoo.multi_link(p, free_length=0.339 * scale)


def spring(**changes):
    mech = mbd.zoo.multi_link()
    s = mech.forces["spring"]
    given = {"stiffness": 1e5, "free_length": 0.34} | changes
    return mech.replace(forces={"spring": mbd.SpringDamper(s.a, s.b, s.at_a, s.at_b, **given)})


def stop(gap):
    mech = mbd.zoo.multi_link()
    at = "ground", "trailing", "shock_top", "shock_bottom"
    return mech.replace(forces={"stop": mbd.BumpStop(*at, gap=gap, stiffness=1e5)})


def crossed():
    """Both track rods of a car lead to the rack's far end."""
    mech = mbd.zoo.macpherson_steering()
    at = {side: f"{side}_tie_outer" for side in ("left", "right")}
    rods = {
        f"{side}_rod": mbd.Rod("rack", f"{side}_upright", f"{other}_tie_inner", at[side])
        for side, other in (("left", "right"), ("right", "left"))
    }
    return mech.replace(joints=rods)


def swapped():
    points = mbd.zoo.macpherson_steering().points
    pair = {
        "left_tie_inner": points["right_tie_inner"],
        "right_tie_inner": points["left_tie_inner"],
    }
    return moved(mbd.zoo.macpherson_steering(), **pair)


def one_sided():
    p = mbd.zoo.multi_link().points["tierod_inboard"] * np.array([1, -1, 1])
    return mbd.zoo.multi_link({"tierod_inboard": p})


WRONG = {
    "millimetres": (lambda: corner(1000.0), "is [0-9.]+ m long as drawn: are the points in milli"),
    "kilometres": (
        lambda: mbd.zoo.simple_pendulum(length=5e-4),
        "largest body, 'bob', is 0.0005 m long",
    ),
    "inertia in kg mm²": (
        lambda: mbd.zoo.simple_pendulum().replace(
            bodies={"bob": mbd.Body(2.0, (1.0, 0.0, 0.0), (5e4, 5e4, 5e4))}
        ),
        "body 'bob': an inertia of 5e\\+04 kg m² is that of 2 kg at a radius of 158",
    ),
    "a point far off": (
        lambda: corner(tierod_inboard=(-257.0, 0.32, -0.116)),
        "point 'tierod_inboard' is 256.* m away from all others.*\\(-257, 0.32, -0.116\\)",
    ),
    "free length in millimetres": (
        lambda: spring(free_length=339.0),
        "force 'spring': free_length is 339 m, and its ends are drawn 0.2754 m",
    ),
    "negative free length": (lambda: spring(free_length=-0.3), "free_length is -0.3 m"),
    "negative stiffness": (lambda: spring(stiffness=-2e4), "stiffness is -2e\\+04, which is neg"),
    "negative damping": (lambda: spring(damping=-3.0), "damping is -3, which is negative"),
    "gap in millimetres": (lambda: stop(50.0), "force 'stop': gap is 50 m, more than"),
    "crossed rods": (crossed, "rods 'left_rod' and 'right_rod' from 'rack'.*cross.*y = 0 m"),
    "swapped pair": (swapped, "'left_tie_inner' and 'right_tie_inner' have y.*swapped"),
    "one rod across": (one_sided, "rod 'tierod' ends at 'tierod_inboard' with y = -0.32 m"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_looks_wrong_is_told_once_with_the_number(what):
    build, text = WRONG[what]
    with pytest.warns(UserWarning, match=text) as seen:
        mech = build()
    told = [w for w in seen if "triangle" not in str(w.message)]
    assert len({str(w.message) for w in told}) == len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mech.replace(gravity=(0.0, 0.0, -1.0))  # known already
        jax.jit(lambda m: m.replace().gravity)(mech)


def ours():
    built = {n: getattr(mbd.zoo, n) for n in mbd.zoo.__all__}
    for name, function in built.items():
        needed = inspect.signature(function).parameters.values()
        if inspect.isfunction(function) and all(p.default is not p.empty for p in needed):
            yield name, function
    for path in sorted(REFERENCES.glob("*quarter.json")):
        yield path.stem, lambda path=path: read_gt_mech(path)
    for seed in range(6):
        yield f"equipped {seed}", lambda seed=seed: equipped_mechanism(seed).mech
    yield "many bars", lambda: mbd.zoo.n_four_bar(40)


def test_no_false_alarm():
    count = 0
    for name, build in ours():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mech = build()
        if isinstance(mech, mbd.Mechanism):
            found = implausible(declared(mech))
            assert not found, (name, found)
            count += 1
    assert count > 30


def test_large_and_small_machines_are_fine():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mbd.zoo.simple_pendulum(length=80.0)  # a crane's jib
        mbd.zoo.simple_pendulum(length=2e-3)  # a watch's wheel
        mbd.Mechanism(
            {"ring": mbd.Body(1.0, (0.0, 0.0, 0.0), 0.1)},
            {"hinge": mbd.Revolute("ground", "ring", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))},
        )  # no extension at all
