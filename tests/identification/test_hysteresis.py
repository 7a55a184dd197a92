"""Rig data: loops of Coulomb friction beside a spring in closed form, and rates of bushings."""

import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.design import Within
from jaxmbd.identification import Hysteresis, LoadingLoop, hysteresis, identify
from jaxmbd.identification.loading_loops import branches, turnings
from jaxmbd.observe import HoldingEffort, Sweep

RATE, REACH = 2e5, 4e-3
CYCLE = REACH * np.sin(np.linspace(0.0, 2.0 * np.pi, 121))


def driven(x, friction, rate=RATE):
    """The force on a spring beside a friction, of a displacement."""
    return rate * x + friction * np.sign(np.gradient(x))


def stuck(force, friction, rate=RATE):
    """The displacement of the same under a force: it stays while the friction holds it."""
    x, now = [], 0.0
    for f in force:
        now = min(max(now, (f - friction) / rate), (f + friction) / rate)
        x.append(now)
    return np.array(x)


@pytest.mark.parametrize("cycles", [1, 3])
def test_a_driven_spring_with_friction(cycles):
    x = REACH * np.sin(np.linspace(0.0, 2.0 * np.pi * cycles, 400 * cycles + 1))
    found = hysteresis(driven(x, 60.0), x)
    assert isinstance(found, Hysteresis) and found.cycles == cycles
    assert found.energy == pytest.approx(4.0 * 60.0 * REACH, rel=1e-3)
    assert found.friction == pytest.approx(60.0, rel=1e-3)
    assert found.stiffness == pytest.approx(RATE, rel=1e-6)
    assert hysteresis(x, driven(x, 60.0)).energy < 0.0  # exchanged


def test_a_spring_with_friction_under_a_force():
    """It moves by (F − f)/k: ``∮ F dx = 4 f (F − f)/k`` in a steady cycle."""
    force = 700.0 * np.sin(np.linspace(0.5 * np.pi, 4.5 * np.pi, 4001))
    x = stuck(force, 80.0)
    found = hysteresis(force[2000:], x[2000:])
    assert found.energy == pytest.approx(4.0 * 80.0 * 620.0 / RATE, rel=1e-5)
    assert found.friction == pytest.approx(80.0, rel=1e-5)


def test_an_ellipse_of_a_damper():
    """``∮ c ẋ dx = π c ω X²``."""
    turn = np.linspace(0.0, 2.0 * np.pi, 2001)
    x = REACH * np.sin(turn)
    found = hysteresis(RATE * x + 30.0 * np.cos(turn), x)
    assert found.energy == pytest.approx(np.pi * 30.0 * REACH, rel=1e-5)


def test_turnings_leave_noise_out():
    rng = np.random.default_rng(0)
    noisy = CYCLE + 0.02 * REACH * rng.normal(size=CYCLE.size)
    assert turnings(CYCLE) == [30, 90] and len(turnings(noisy)) == 2
    assert branches(np.array([0.0, 1.0, 2.0, 1.0, 0.0])).tolist() == [1.0, 1.0, 0.0, -1.0, -1.0]
    assert turnings(np.linspace(0.0, 1.0, 9)) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((CYCLE, CYCLE[:5]), "must be of one length"),
        ((CYCLE, CYCLE * np.nan), "must be finite"),
        ((CYCLE[:20], CYCLE[:20]), "never turns"),
    ],
)
def test_what_is_wrong_is_said(given, text):
    with pytest.raises(ValueError, match=text):
        hysteresis(*given)


def bench(values):
    """A block on a slide and a bushing whose law along x is a table."""
    law = mbd.Table(np.linspace(-2.0, 2.0, 5) * REACH, values)
    rubber = mbd.Bushing("ground", "block", (0, 0, 0), [5, 5, 5, 3e4, 1e5, 1e5], laws={"x": law})
    return mbd.Mechanism(
        {"block": mbd.Body(1.0, com=(0, 0, 0), inertia=np.eye(3) * 1e-3)},
        {"slide": mbd.Prismatic("ground", "block", (0, 0, 0), (1, 0, 0))},
        forces={"rubber": rubber},
        gravity=(0, 0, 0),
    )


TRUTH = np.array([-2100.0, -700.0, 0.0, 900.0, 2500.0])
SWEEP = Sweep({"slide": tuple(CYCLE * 1.9)}, {"force": HoldingEffort("slide")})


def fitted(force, errors="independent"):
    vary = {"forces/rubber/laws/x/y": Within(1500.0)}
    return identify(bench(0.8 * TRUTH), vary, {"force": force}, SWEEP, errors=errors)


def test_a_bushing_law_from_rig_data_with_intervals():
    rng = np.random.default_rng(1)
    found = fitted(np.asarray(SWEEP(bench(TRUTH))["force"]) + 5.0 * rng.normal(size=CYCLE.size))
    assert np.all(np.abs(found.estimates - TRUTH) < 4.0 * found.standard_errors)
    assert np.all(found.standard_errors < 5.0) and found.loops == ()


def test_hysteresis_is_told():
    rng = np.random.default_rng(2)
    sign = np.sign(np.gradient(CYCLE))
    force = np.asarray(SWEEP(bench(TRUTH))["force"]) + 40.0 * sign + 2.0 * rng.normal(size=121)
    with pytest.warns(UserWarning, match="elastic rates alone cannot follow"):
        found = fitted(force, "autocorrelated")
    [loop] = found.loops
    assert isinstance(loop, LoadingLoop)
    assert loop.width == pytest.approx(80.0, rel=0.03) and loop.share > 0.9
    assert loop.work is not None and loop.work.friction == pytest.approx(40.0, rel=0.05)
    assert "hysteresis of force: " in str(found) and "as of a friction of" in str(found)
