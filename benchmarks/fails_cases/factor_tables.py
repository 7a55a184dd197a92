"""Effects and interactions of hardpoints on the recession of a swing arm's wheel, in closed form.

With the arm's hinge through p along a and the wheel's centre c, ``N = a × (c − p)`` is the path of
the centre, and its recession per metre of travel as drawn ``−N_x / N_z``: N is linear in both
points, so that the derivatives of the quotient are those of two linear functions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import jaxmbd as mbd
from fails_cases.judged import Judged, compare, or_crash
from jaxmbd import suspension
from jaxmbd.suspension import Corner, hardpoint_sensitivities

PER_CASE = 60
_QUOTIENT = "first and second derivatives of a quotient of linear functions"
NUMBERS = {
    "suspension.Sensitivities.effects": f"{_QUOTIENT}, times steps",
    "suspension.Sensitivities.interactions": f"{_QUOTIENT}, times both steps",
}


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Swing arms with random hinges."""
    for k in range(max(1, round(size / PER_CASE))):
        rng, text = np.random.default_rng([seed, k]), f"default_rng([{seed}, {k}])"
        yield from or_crash("suspension.Sensitivities.effects", _arm(rng, text), text)


def _arm(rng: np.random.Generator, text: str) -> Iterator[Judged]:
    hinge, centre = rng.uniform(-0.2, 0.2, 3), np.array([0.0, 0.8, 0.0]) + rng.uniform(-0.1, 0.1, 3)
    axis = np.array([1.0, rng.uniform(-0.6, 0.6), rng.uniform(-0.3, 0.3)])
    mech = mbd.Mechanism(
        {"arm": mbd.Body(10.0, com=(0.0, 0.4, 0.0))},
        {"hinge": mbd.Revolute("ground", "arm", at="hinge", axis=axis)},
        points={"hinge": hinge, "wheel": centre},
    )
    roles = Corner("arm", "wheel", 0.3, spindle=(0.0, 1.0, 0.0))
    sweep = suspension.kinematics_sweep(
        roles, travel=[0.0], observe="recession", gradients="recession"
    )
    steps = rng.uniform(1e-3, 1e-2, 6)
    paths = [f"points/{n}/{x}" for n in ("hinge", "wheel") for x in "xyz"]
    found = hardpoint_sensitivities(
        mech, sweep, paths, steps=dict(zip(paths, steps, strict=True)), interactions=True
    )
    assert found.interactions is not None
    key, place = "suspension.Sensitivities.", found.outputs.index("recession_gradient")
    n = np.cross(axis, centre - hinge)
    ways = np.cross(axis, np.concatenate([-np.eye(3), np.eye(3)]))  # derivatives of N (6, 3)
    u, w, du, dw = n[0], n[2], ways[:, 0], ways[:, 2]
    slope = -(du / w - u * dw / w**2)
    bend = np.outer(du, dw) / w**2
    bend = bend + bend.T - 2.0 * u * np.outer(dw, dw) / w**3
    size = float(np.max(np.abs(slope)))
    yield compare(
        f"{key}effects", found.effects[0, place], slope * steps,
        limit=1e-9, scale=size * float(steps.max()), detail=text,
    )  # fmt: skip
    yield compare(
        f"{key}interactions", found.interactions[0, place], bend * np.outer(steps, steps),
        limit=1e-9, scale=size * float(steps.max()) ** 2, detail=text,
    )  # fmt: skip
