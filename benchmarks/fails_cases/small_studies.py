"""Small studies, some of whose samples fail or have no value, against direct evaluation."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import CRASHED, REFUSED, Judged, compare
from jaxmbd import statistics as st
from jaxmbd.campaign import Input, spread_table
from jaxmbd.observe import HoldingEffort, Sweep
from jaxmbd.sampling import LatinHypercube, Normal, Sobol, Uniform

PER_CASE = 18
NUMBERS = {
    "campaign.Study": "the function of the stored inputs in NumPy; a pendulum's closed form",
    "HoldingEffort, study": "a pendulum's torque in closed form",
    "reduction max, study": "the largest of a pendulum's torques in closed form",
    "campaign.spread_table": "sums over the samples that have a value, to the digits shown",
    "statistics.nominal_value": "the function of the nominal inputs in NumPy",
    "statistics.succeeded": "the limit below which the function fails",
}
ANGLES = np.linspace(0.0, 1.5, 4)


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Studies of a function, and one of a pendulum."""
    for k in range(max(1, min(round(size / PER_CASE), 12))):
        text, rng = f"default_rng([{seed}, {k}])", np.random.default_rng([seed, k])
        for judge in (_function, _pendulum)[: 2 if k % 3 == 0 else 1]:
            try:
                with tempfile.TemporaryDirectory() as folder:
                    yield from judge(rng, f"{folder}/study.zarr", text)
            except Exception as error:
                said = f"{judge.__name__}: {type(error).__name__}: {error}"[:250]
                yield Judged("campaign.Study", CRASHED, math.nan, f"{said} | {text}")


def _function(rng: np.random.Generator, folder: str, text: str) -> Iterator[Judged]:
    limit, scale = float(rng.choice([-9.0, 0.3, 9.0])), float(rng.normal())
    nominal, n = float(rng.uniform(0.1, 1.0)), int(rng.choice([1, 2, 33]))

    def model(s: Any) -> Any:
        y = jnp.sqrt(s["x"]) * scale  # NaN of negative numbers
        status = jnp.where(s["x"] < limit, 2, 0)
        return {"y": y, "z": jnp.stack([s["x"], s["k"] * s["x"], 0.0 * s["k"]]), "status": status}

    inputs = {"x": Input(Normal(0.4), nominal=nominal), "k": Input(Uniform(0.5), nominal=2.0)}
    design = [None, LatinHypercube(), Sobol()][rng.integers(3)]
    chunk = int(rng.choice([1, 5, 64]))
    study = mbd.Study(
        model, inputs, samples=n, design=design, seed=int(rng.integers(99)), chunk=chunk
    )
    text = f"limit {limit}, {n} samples, chunks of {chunk}, {text}"
    try:
        results = study.run(folder, progress=False)
    except ValueError as error:  # not even the nominal sample has a value
        outcome = REFUSED if nominal < limit else CRASHED
        yield Judged("campaign.Study", outcome, math.nan, f"{error} | {text}")
        return
    x, k = (np.asarray(results[name]) for name in ("x", "k"))
    drawn = study.sampler.draw(0, n)
    yield compare("campaign.Study", x, drawn["x"], limit=0.0, detail=f"inputs, {text}")
    good = x >= limit
    yield compare("statistics.succeeded", st.succeeded(results), good, limit=0.0, detail=text)
    with np.errstate(invalid="ignore"):
        y = np.where(good, np.sqrt(x) * scale, np.nan)
    z = np.where(good[:, None], np.stack([x, k * x, 0.0 * k], axis=1), np.nan)
    for name, wanted in (("y", y), ("z", z)):
        shown = np.asarray(results[name])
        # A sample that failed may keep its numbers beside its status.
        shown = np.where(good.reshape(-1, *[1] * (shown.ndim - 1)), shown, np.nan)
        yield compare("campaign.Study", shown, wanted, limit=1e-14, detail=f"{name}, {text}")
    values = st.output_values(results, "z", reduce="range")
    wanted = np.where(good, z.max(axis=1) - z.min(axis=1), np.nan)
    values = np.where(good, values, np.nan)
    yield compare("campaign.Study", values, wanted, limit=1e-13, detail=f"range of z, {text}")
    if nominal >= limit:
        wanted = math.sqrt(nominal) * scale
        found = st.nominal_value(results, "y")
        yield compare("statistics.nominal_value", found, wanted, limit=1e-14, detail=text)
    yield from _table(spread_table(results), y[np.isfinite(y)], n, text)


def _table(shown: str, y: np.ndarray, n: int, text: str) -> Iterator[Judged]:
    """The line of y: output, nominal, values [of all], mean, std, min, max, farthest, sample."""
    line = next(x for x in shown.splitlines() if x.split()[:1] == ["y"])
    words = line.replace(" of ", "-of-").split()
    # Without unit, the first number is the nominal value.
    counted = str(len(y)) if len(y) == n else f"{len(y)}-of-{n}"
    yield compare(
        "campaign.spread_table", counted in words, True, limit=0.0, detail=f"{line} | {text}"
    )
    if len(y) < 2 or np.ptp(y) == 0.0:
        return
    at = words.index(counted, 1) + 1
    found = np.array([float(w) for w in words[at : at + 4]])
    mean = math.fsum(y) / len(y)
    std = math.sqrt(math.fsum((y - mean) ** 2) / (len(y) - 1))
    wanted = [mean, std, float(y.min()), float(y.max())]
    yield compare(
        "campaign.spread_table", found, wanted, limit=6e-3, scale=std, detail=f"{line} | {text}"
    )


def _pendulum(rng: np.random.Generator, folder: str, text: str) -> Iterator[Judged]:
    weigh = Sweep(
        {"hinge": ANGLES},
        {"torque": HoldingEffort("hinge"), "most": HoldingEffort("hinge").max()},
    )
    n = int(rng.integers(2, 20))
    study = mbd.Study(
        mbd.zoo.simple_pendulum(), {"bodies/bob/mass": Normal(0.2)}, observe=weigh, samples=n,
        seed=int(rng.integers(99)),
    )  # fmt: skip
    results = study.run(folder, progress=False)
    mass = st.input_values(results)["bodies/bob/mass"]
    wanted = -9.81 * mass[:, None] * np.cos(ANGLES)
    torque = np.asarray(results["torque"])
    text = f"{n} pendulums, {text}"
    yield compare("HoldingEffort, study", torque, wanted, limit=1e-12, detail=text)
    yield compare("campaign.Study", torque, wanted, limit=1e-12, detail=text)
    # Between the angles a curve follows its stations: the largest is that of a cosine's end.
    most = np.asarray(results["most"])
    yield compare(
        "reduction max, study", most, wanted.max(axis=1), limit=1e-9, scale=9.81, detail=text
    )
