"""Factor tables: effects and interactions against designs apart, rigid, settled and of axles."""

import csv

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import suspension
from jaxmbd.suspension import hardpoint_sensitivities, kinematics_sweep


def trailing_arm(soft):
    """A trailing arm on a rigid or a soft hinge, its hardpoints moved at random, and its roles."""
    rng = np.random.default_rng(5)
    numbers = suspension.example_hardpoints("trailing_arm")
    moved = {n: np.asarray(x) + rng.uniform(-5e-3, 5e-3, 3) for n, x in numbers.items()}
    corner, roles = suspension.trailing_arm_corner(moved)
    return mbd.soften(corner, "arm", (3e4, 2e6)) if soft else corner, roles


CORNER, ROLES = trailing_arm(soft=False)
FACTORS = ["points/wheel_centre/y", "points/wheel_centre/z", "points/spring_top/y"]
STEPS = {"points/wheel_centre/*": "2 mm", "points/spring_top/y": 5e-3}


def sweep_of(soft):
    return kinematics_sweep(
        ROLES, travel=[-0.02, 0.03], observe=["toe", "camber"], gradients=(), settle=soft
    )


SWEEP = sweep_of(soft=False)


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["rigid", "settled"],
)
def both(request):
    """The table of a corner, and the columns (places, outputs) of one with factors moved."""
    corner, sweep = trailing_arm(request.param)[0], sweep_of(request.param)

    def design(moves):
        now = mbd.get_variables(corner, list(moves))
        found = sweep(mbd.set_variables(corner, {p: now[p] + x for p, x in moves.items()}))
        return np.stack([np.asarray(found[n]) for n in sweep.observe], axis=1)

    found = hardpoint_sensitivities(corner, sweep, FACTORS, steps=STEPS, interactions=True)
    return found, design


@pytest.fixture
def table(both):
    return both[0]


@pytest.fixture
def design(both):
    return both[1]


def test_effects_are_those_of_designs_apart(table, design):
    assert table.places == ("travel -20 mm", "travel +30 mm")
    assert table.steps == pytest.approx([2e-3, 2e-3, 5e-3])
    for j, path in enumerate(FACTORS):
        h = 0.1 * table.steps[j]
        wanted = (8 * (design({path: h}) - design({path: -h}))
                  - (design({path: 2 * h}) - design({path: -2 * h}))) / 1.2  # fmt: skip
        assert table.effects[:, :, j] == pytest.approx(wanted, rel=1e-6, abs=1e-10)


def test_interactions_are_those_of_a_two_level_design(table, design):
    """``(y₊₊ − y₊₋ − y₋₊ + y₋₋)/4`` of both levels of two factors, with small steps."""
    for i, j in ((0, 1), (0, 2)):
        h = 0.2 * table.steps[[i, j]]
        corners = {
            (a, b): design({FACTORS[i]: a * h[0], FACTORS[j]: b * h[1]})
            for a in (1, -1)
            for b in (1, -1)
        }
        wanted = sum(a * b * y for (a, b), y in corners.items()) / 4.0 / 0.04
        found = table.interactions[:, :, i, j]
        assert np.abs(found - wanted).max() < 1e-3 * np.abs(wanted).max() + 1e-10
    y, h = design({FACTORS[0]: 0.0}), 0.2 * table.steps[0]
    bend = (design({FACTORS[0]: h}) - 2.0 * y + design({FACTORS[0]: -h})) / 0.04
    own = table.interactions[:, :, 0, 0]
    assert np.abs(own - bend).max() < 1e-3 * np.abs(bend).max() + 1e-10


def test_a_table_of_factors_is_sorted_and_written(table, tmp_path):
    lines = table.factor_table(0.0).splitlines()
    assert lines[0].split("  ")[0] == "factor" and "toe, largest" in lines[0]
    assert len(lines) == 2 + 3 + 3  # a head, units, factors, pairs
    sizes = np.abs(table.effects).max(axis=0)
    share = (sizes / sizes.max(axis=1, keepdims=True)).max(axis=0)
    told = [line.split("  ")[0] for line in lines[2:] if "×" not in line]
    assert [share[FACTORS.index(n)] for n in told] == sorted(share.tolist(), reverse=True)
    assert len(table.factor_table(0.9999).splitlines()) < len(lines)
    table.to_csv(tmp_path / "factors.csv")
    with open(tmp_path / "factors.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 * 2 * 2
    [one] = [r for r in rows if (r["factor"], r["response"], r["place"])
             == (FACTORS[1], "camber", "travel +30 mm")]  # fmt: skip
    assert (one["step"], one["unit"]) == ("2 mm", "deg")
    assert float(one["effect"]) == pytest.approx(np.rad2deg(table.effects[1, 1, 1]), rel=1e-12)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"steps": {"points/wheel_centre/*": 1e-3}}, r"'points/spring_top/y'\] have none"),
        ({"steps": STEPS | {FACTORS[0]: 1e-3}}, "have none or several"),
        ({"steps": STEPS | {FACTORS[2]: 0.0}}, "must be positive"),
        ({"travel": 0.01}, "a sweep says itself what is observed"),
    ],
)
def test_what_is_wrong_is_said(options, text):
    with pytest.raises(ValueError, match=text):
        hardpoint_sensitivities(CORNER, SWEEP, FACTORS, **options)


@pytest.mark.slow
def test_factors_of_an_axle_in_roll():
    """Of an event of an axle: rates are factors, too; both sides alike by symmetry."""
    car = suspension.axle(trailing_arm(soft=True)[0])
    pair = suspension.axle_corners(car, ROLES)
    lean = suspension.axle_sweep(pair, roll=[-0.02, 0.02], observe="axle_steer", settle=True)
    found = hardpoint_sensitivities(car, lean, "points/*_wheel_centre/z")
    assert found.places == ("roll -1.146 deg", "roll +1.146 deg")
    left, right = found.effects[:, 0, 0], found.effects[:, 0, 1]
    assert left == pytest.approx(-right[::-1], rel=1e-9)
