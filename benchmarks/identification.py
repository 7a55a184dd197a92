"""Identification from noisy synthetic data: how often is the truth within two standard errors?

    python benchmarks/identification.py [--repetitions 400] [--json FILE]

Each case draws many sets of data from a mechanism of known numbers and identifies them all in one
batch, from a start that is wrong by tens of per cent. Counted is how often the truth lies within
two standard errors: 95.4 % of normal estimates do. In some cases the noise is correlated along the
axis, each sample's that of the one before times 0.5 or 0.8 and something new. Two further cases
have unknowns that the data cannot tell apart; the combination that they do determine must be named,
and hold the truth.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import _script

_script.start()

import numpy as np  # noqa: E402

import jaxmbd as mbd  # noqa: E402
from jaxmbd.design import Between, Within  # noqa: E402
from jaxmbd.identification import identify_each  # noqa: E402
from jaxmbd.identification.measured import with_held  # noqa: E402
from jaxmbd.observe import Camber, Configuration, Coordinate, Motion, Reaction, Sweep, Toe, Travel  # noqa: E402

LOW, HIGH = 0.90, 0.99
"""Shares of repetitions with the truth within two standard errors that pass, of every unknown."""

TIGHT_LOW, TIGHT_HIGH = 0.915, 0.975
"""The same where errors are said to be correlated: 92 to 97 %, to whole per cents."""

JUDGED = 100
"""Fewer repetitions say too little."""


@dataclass
class Case:
    """What is identified.

    Attributes:
        start: the mechanism as it is thought to be.
        truth: path to true value; the rest is as thought.
        vary: path to range.
        experiment: what is measured.
        sigma: channel to true noise.
        options: of `identify`.
        spoil: what else happens to the data of a repetition, in place.
        correlation: of the noise of neighbours, which then is that of an autoregression.
        band: shares of repetitions with the truth within two standard errors that pass.
    """

    start: Any
    truth: dict[str, float]
    vary: dict[str, Any]
    experiment: Any
    sigma: dict[str, float]
    options: dict[str, Any]
    spoil: Callable[[dict[str, np.ndarray], np.random.Generator], None] | None = None
    correlation: float = 0.0
    band: tuple[float, float] = (LOW, HIGH)

    def true_outputs(self) -> dict[str, np.ndarray]:
        own = mbd.variables(self.start)
        numbers = {p: x for p, x in self.truth.items() if p.rpartition("/")[0] in own or p in own}
        found = with_held(self.experiment, self.truth)(mbd.set_variables(self.start, numbers))
        if int(found["status"]) != 0:
            raise SystemExit("the true mechanism fails")
        return {n: np.asarray(found[n]) + self.truth.get(f"offset/{n}", 0.0) for n in self.sigma}


def linkage(springs: int = 1) -> mbd.Mechanism:
    """A four-bar linkage on a torsion spring, with friction in a bearing."""
    spring = mbd.TorsionSpring("A", stiffness=30.0 / springs, damping=0.0, free_angle=0.3)
    names = ["spring"] if springs == 1 else [f"spring_{i + 1}" for i in range(springs)]
    friction = mbd.JointFriction("D", radius=0.02, viscous=0.1, drag=0.3)
    forces = dict.fromkeys(names, spring) | {"friction": friction}
    # Wide links: their inertia about the axis may be any.
    wide = {f"bodies/{body}/inertia/{i}": 0.2 for body in ("crank", "rocker") for i in ("xx", "zz")}
    return mbd.set_variables(mbd.zoo.four_bar(), wide).replace(forces=forces)


def linkage_motion() -> Motion:
    """Two seconds after a release: the crank's angle and forces in its and the rocker's bearing."""
    outputs = {
        "angle": Coordinate("A"),
        "force": Reaction("A", axis="z"),
        "thrust": Reaction("D", axis="x"),
    }
    return Motion(2.0, 2e-3, outputs, Configuration({"A": 0.1}), save_every=10, keep=None)


LINKAGE_TRUTH = {
    "bodies/coupler/mass": 2.9,
    "bodies/rocker/inertia/yy": 0.075,
    "forces/spring/stiffness": 36.0,
    "forces/friction/drag": 0.42,
    "forces/friction/viscous": 0.16,
    "points/D/x": 0.71,
    "start/A": 0.13,
    "offset/angle": 0.02,
}

LINKAGE_VARY = {
    "bodies/coupler/mass": Within(0.5, relative=True),
    "bodies/rocker/inertia/yy": Between(0.0, 0.3),
    "forces/spring/stiffness": Within(0.5, relative=True),
    "forces/friction/drag": Between(0.0, 2.0),
    "forces/friction/viscous": Between(0.0, 1.0),
    "points/D/x": Within("30 mm"),
    "start/A": Within("10 deg"),
    "offset/angle": Within("5 deg"),
}

LINKAGE_NOISE = {"angle": 2e-3, "force": 0.3, "thrust": 0.3}


def spoiled(data: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """A gap of a fifth of the force, a tenth of all samples missing, a twentieth wrong."""
    data["force"][20:40] = np.nan
    for name, x in data.items():
        x[rng.uniform(size=len(x)) < 0.1] = np.nan
        wrong = rng.uniform(size=len(x)) < 0.05
        x[wrong] += rng.normal(size=wrong.sum()) * 20.0 * LINKAGE_NOISE[name]


def corner_case() -> Case:
    """Hardpoints of a multi-link corner from toe, camber and track over wheel travel."""
    height = mbd.PointTravel("upright", "wheel_centre", "z")
    outputs = {
        "toe": Toe("upright"),
        "camber": Camber("upright"),
        "track": Travel("upright", "wheel_centre", "y"),
    }
    corner = mbd.zoo.multi_link()
    moved = {
        "points/tierod_inboard/z": 0.004,
        "points/lateral_inboard/z": -0.003,
        "points/upper_arm_ball/z": 0.005,
        "points/upper_arm_front/z": -0.006,
    }
    truth = {p: float(x) + moved[p] for p, x in mbd.get_variables(corner, moved).items()}
    sweep = Sweep({height: np.linspace(-0.08, 0.08, 41)}, outputs)
    sigma = {"toe": np.radians(0.01), "camber": np.radians(0.01), "track": 5e-5}
    vary = dict.fromkeys(moved, Within("15 mm"))
    return Case(corner, truth, vary, sweep, sigma, {"noise": sigma})


def cases() -> dict[str, Case]:
    """All cases by name."""
    same = (linkage(), LINKAGE_TRUTH, LINKAGE_VARY, linkage_motion(), LINKAGE_NOISE)
    pair = {f"forces/spring_{i}/stiffness": 18.0 for i in (1, 2)}
    springs = {p: Within(0.5, relative=True) for p in pair} | {
        "bodies/coupler/mass": LINKAGE_VARY["bodies/coupler/mass"]
    }
    mass = {"bodies/coupler/mass": 2.9}
    spring = mbd.TorsionSpring("hinge", stiffness=30.0, damping=0.0)
    bob = mbd.zoo.simple_pendulum(gravity=0.0).replace(forces={"spring": spring})
    free = Motion(
        2.0, 2e-3, {"angle": Coordinate("hinge")}, Configuration({"hinge": 0.3}), save_every=20
    )
    swing = {"bodies/bob/mass": 1.2, "forces/spring/stiffness": 36.0}
    apart = {"errors": "autocorrelated"}
    wandering = {
        f"linkage, noise correlated by {x}": Case(
            *same, apart, correlation=x, band=(TIGHT_LOW, TIGHT_HIGH)
        )
        for x in (0.0, 0.5, 0.8)
    }
    return {
        "linkage, noise estimated": Case(*same, {}),
        **wandering,
        "linkage, missing samples and outliers": Case(*same, {"loss": "huber"}, spoiled),
        "corner, hardpoints, noise known": corner_case(),
        "two springs side by side": Case(
            linkage(2), pair | mass, springs, linkage_motion(), LINKAGE_NOISE, {}
        ),
        "mass on a spring, from its motion": Case(
            bob, swing, dict.fromkeys(swing, Within(0.5, relative=True)), free, {"angle": 2e-3}, {}
        ),
    }


def measured(case: Case, count: int, seed: Any) -> list[dict[str, np.ndarray]]:
    """Sets of noisy data."""
    rng, true, found = np.random.default_rng(seed), case.true_outputs(), []
    for _ in range(count):
        data = {n: x + case.sigma[n] * noise(case, x, rng) for n, x in true.items()}
        if case.spoil is not None:
            case.spoil(data, rng)
        found.append(data)
    return found


def noise(case: Case, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Noise of variance one for a series (n,)."""
    found = rng.normal(size=x.shape)
    found[1:] *= np.sqrt(1.0 - case.correlation**2)
    for i in range(1, len(found) if case.correlation else 0):
        found[i] += case.correlation * found[i - 1]
    return found


def run(case: Case, count: int, seed: Any) -> tuple[dict[str, Any], Any]:
    """Figures of all repetitions, and the first result."""
    sets = measured(case, count, seed)
    wall, cpu = time.perf_counter(), time.process_time()
    found = identify_each(case.start, case.vary, sets, case.experiment, **case.options)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    names = found[0].names
    truth = np.array([case.truth[n] for n in names])
    errors = np.array([x.standard_errors for x in found])
    off = (np.array([x.estimates for x in found]) - truth) / errors
    alone = np.isfinite(errors).all(axis=0)
    figures = {
        "repetitions": count,
        "converged": int(sum(x.converged for x in found)),
        "evaluations of a fit": float(np.mean([x.fit.evaluations for x in found])),
        "seconds": wall,
        "CPU seconds": cpu,
        "truth within two standard errors": {
            n: float(np.mean(np.abs(off[:, i]) <= 2.0)) for i, n in enumerate(names) if alone[i]
        },
        "spread over standard error": {
            n: float(np.std(off[:, i])) for i, n in enumerate(names) if alone[i]
        },
        "relative standard error": {
            n: float(np.median(errors[:, i]) / abs(truth[i]))
            for i, n in enumerate(names)
            if alone[i]
        },
    }
    return figures | ambiguous(case, found), found[0]


def ambiguous(case: Case, found: list[Any]) -> dict[str, Any]:
    """What is not identifiable, and how often the truth of what is lies within its errors."""
    texts = [tuple(map(str, x.ambiguities)) for x in found]
    if not any(texts):
        return {}
    within = []
    for one in found:
        for combination in (c for a in one.ambiguities for c in a.determined):
            p = np.array([case.truth[n] for n in combination.names])
            c = np.array(combination.coefficients)
            true = np.prod(p**c) if combination.product else c @ p
            within.append(abs(combination.value - true) <= 2.0 * combination.error)
    return {
        "not identifiable": list(max(set(texts), key=texts.count)),
        "named alike": max(map(texts.count, texts)) / len(texts),
        "what is determined within two standard errors": float(np.mean(within)),
    }


def passed(figures: dict[str, Any], band: tuple[float, float] = (LOW, HIGH)) -> bool:
    """Whether all rates are those of honest standard errors."""
    rates = list(figures["truth within two standard errors"].values())
    if "not identifiable" in figures:
        rates.append(figures["what is determined within two standard errors"])
        if figures["named alike"] < 1.0:
            return False
    low, high = band
    return figures["converged"] == figures["repetitions"] and all(low <= x <= high for x in rates)


def main() -> None:
    from throughput_cases.machine import machine, versions

    parser = _script.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", help="only cases with this in their name")
    options = parser.parse_args()
    found, wrong = {}, []
    for k, (name, case) in enumerate(cases().items()):
        if options.case and options.case not in name:
            continue
        figures, first = run(case, options.repetitions, (options.seed, k))
        found[name] = figures
        print(f"== {name}\n{first}\n{_script.as_json(figures)}", flush=True)
        if options.repetitions >= JUDGED and not passed(figures, case.band):
            wrong.append(name)
    _script.write(options.json, {"machine": machine(), "versions": versions(), "cases": found})
    if wrong:
        sys.exit(f"outside their bands, or not named: {wrong}")


if __name__ == "__main__":
    main()
