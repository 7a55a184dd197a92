"""Slider-cranks whose rod may be too short to follow: when they stop, and how they say so.

With the crank a at the angle θ its end is at the height ``a sin θ``: a rod of the length r closes
the loop while ``|a sin θ| ≤ r``, and the slider is at ``a cos θ + √(r² − a² sin² θ)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases.judged import CRASHED, FLAGGED, RIGHT, WRONG, Judged, compare
from jaxmbd.observe import Configuration, Motion, Position, Sweep

PER_CASE = 12
_REACH = "reach of the rod in closed form"
NUMBERS = {
    "Solution.status": _REACH,
    "Solution.failed_at": f"{_REACH}: when the rod is too short",
    "Solution.outputs": "the function of times, coordinates and speeds, in NumPy",
    "DrivenMotion.status": _REACH,
    "DrivenMotion.t": "the times that were asked for",
    "Trajectory.status": _REACH,
    "Trajectory.v": "zero at rest; speeds of the crank's function of time",
    "Trajectory.held_keys": "what was asked for",
}
START, SPEED, END = 0.3, 2.0, 0.6  # [rad], [rad/s], [s]
STEP = 5e-3
TIMES = np.linspace(0.0, END, 13)


@mbd.register_law("judge: turning")
def turning(t: Any, p: Any) -> Any:
    """A crank at constant speed."""
    return p[0] + p[1] * t


def judged(seed: int, size: int) -> Iterator[Judged]:
    """One batch of runs, one of driven motions, and courses of some samples."""
    rng, n = np.random.default_rng(seed), max(4, size // PER_CASE)
    crank = 10.0 ** rng.uniform(-5.0, 2.0, n)
    # At the end of the motion the height is a sin 1.5, at its start a sin 0.3.
    rod = crank * rng.uniform(0.35, 1.9, n)
    rod[rng.random(n) < 0.1] = np.nan
    for judge in (_runs, _driven, _courses):
        text = f"{judge.__name__}, default_rng({seed})"
        try:
            yield from judge(crank, rod, text)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"[:250]
            yield Judged("Solution.status", CRASHED, math.nan, f"{said} | {text}")


def _numpy(tree: Any) -> Any:
    return jax.tree_util.tree_map(np.asarray, tree)


def stops(crank: float, rod: float) -> float:
    """The time at which the rod is too short; infinite if it never is, NaN of NaN."""
    if math.isnan(rod):
        return math.nan
    share = rod / crank
    angle = math.asin(share) if share < 1.0 else math.inf
    return (angle - START) / SPEED


def slider(crank: float, rod: float, angle: Any) -> Any:
    """Where the slider is."""
    return crank * np.cos(angle) + np.sqrt(rod**2 - (crank * np.sin(angle)) ** 2)


def _outcome(number: str, said_ok: bool, is_ok: bool, text: str) -> Judged:
    """What fails must be told; what does not may be flagged."""
    outcome = RIGHT if said_ok == is_ok else WRONG if said_ok else FLAGGED
    return Judged(number, outcome, math.nan, text)


def _seen(t: Any, q: Any, v: Any) -> Any:
    return {"a": jnp.sin(q[0]) * t, "b": v * v}


def _runs(crank: Any, rod: Any, text: str) -> Iterator[Judged]:
    """The crank turns by a drive at constant speed."""

    def engine(crank: Any, rod: Any) -> Any:
        mech = mbd.zoo.slider_crank(crank, rod)
        mech = mech.replace(drives={"motor": mbd.Drive("O", turning, jnp.array([START, SPEED]))})
        start = mbd.assemble(mech, throw=False)
        found = mbd.simulate(
            mech, start.q, mbd.assemble_velocity(mech, start.q), t1=END, dt=STEP, outputs=_seen,
            save_every=6, throw=False, accuracy=0.01, keep_inaccurate=False,
        )  # fmt: skip
        return found, mbd.poses(mech, start.q)["slider"].position

    found, _ = _numpy(mbd.lanes.vmap(engine)(crank, rod))
    for i in range(len(crank)):
        said = f"crank {crank[i]:.6g}, rod {rod[i]:.6g} m, sample {i}, {text}"
        when, ok = stops(crank[i], rod[i]), int(found.status[i]) == 0
        t, q, v = found.t[i], found.q[i], found.v[i]
        fine = when > END
        if not abs(when - END) < 0.05:  # or at the very end
            yield _outcome("Solution.status", ok, fine, said)
        at, finite = float(found.failed_at[i]), np.all(np.isfinite(q), axis=1)
        if ok:
            yield compare(
                "Solution.failed_at", at == math.inf, True, limit=0.0, detail=f"{at}, {said}"
            )
            off = q[:, 0] - (START + SPEED * t)
            yield compare("Solution.status", off, 0.0 * off, limit=1e-7, scale=1.0, detail=said)
        elif not math.isnan(when):
            # It may stop before, where speeds grow beyond what the steps resolve, but not later.
            late = at > when + STEP
            yield compare(
                "Solution.failed_at", late, False, limit=0.0, detail=f"{at} for {when}, {said}"
            )
            right = np.array_equal(finite, t < at)
            yield compare(
                "Solution.failed_at", right, True, limit=0.0, detail=f"what is left, {said}"
            )
        seen = {"a": np.sin(q[:, 0]) * t, "b": v * v}
        for name, want in seen.items():
            got = found.outputs[name][i]
            yield compare(
                "Solution.outputs", got[finite], want[finite],
                limit=1e-13, scale=1e-300, detail=f"{name}, {said}",
            )  # fmt: skip
            none = np.all(np.isnan(got[~finite]))
            yield compare("Solution.outputs", none, True, limit=0.0, detail=f"{name}, {said}")


def _driven(crank: Any, rod: Any, text: str) -> Iterator[Judged]:
    """The same without inertia, time by time."""

    def engine(crank: Any, rod: Any) -> Any:
        known = {"O": lambda t: START + SPEED * t}
        mech = mbd.zoo.slider_crank(crank, rod)
        found = mbd.simulate_driven(mech, known, t=TIMES, throw=False)
        places = [mbd.poses(mech, found.q[k])["slider"].position[0] for k in range(len(TIMES))]
        return found, jnp.stack(places)

    found, places = _numpy(mbd.lanes.vmap(engine)(crank, rod))
    for i in range(len(crank)):
        said = f"crank {crank[i]:.6g}, rod {rod[i]:.6g} m, sample {i}, {text}"
        yield compare("DrivenMotion.t", found.t[i], TIMES, limit=0.0, detail=said)
        when = stops(crank[i], rod[i])
        for k, t in enumerate(TIMES):
            here, ok = f"t {t:.3f}, {said}", int(found.status[i, k]) == 0
            if abs(when - t) < 1e-6:
                continue
            yield _outcome("DrivenMotion.status", ok, t < when, here)
            if ok and t < when:
                want = slider(crank[i], rod[i], START + SPEED * t)
                steep = 1.0 / math.sqrt(
                    1.0 - min((crank[i] * math.sin(START + SPEED * t) / rod[i]) ** 2, 1.0)
                )
                yield compare(
                    "DrivenMotion.status", places[i, k], want,
                    limit=1e-9 * steep, scale=crank[i] + rod[i], detail=here,
                )  # fmt: skip


def _courses(crank: Any, rod: Any, text: str) -> Iterator[Judged]:
    """A sweep, and a motion of the crank by its drive, of one mechanism each."""
    angles = np.linspace(START, START + SPEED * END, 5)
    sweep = Sweep({"O": angles}, {"x": Position("slider", "A", "x")})
    moving = Motion(
        0.05, STEP, {"x": Position("slider", "A", "x")}, keep=None, start=Configuration({})
    )
    for i in range(min(8, len(crank))):
        if math.isnan(rod[i]):
            continue
        said = f"crank {crank[i]:.6g}, rod {rod[i]:.6g} m, sample {i}, {text}"
        mech = mbd.zoo.slider_crank(float(crank[i]), float(rod[i]))
        course, when = sweep.trajectory(mech), stops(crank[i], rod[i])
        fine = when > END
        if abs(when - END) > 1e-6:
            yield _outcome("Trajectory.status", course.status == 0, fine, said)
        if course.status == 0:
            zero = np.zeros((5, 3))
            yield compare("Trajectory.v", course.v, zero, limit=0.0, detail=said)
            want = slider(crank[i], rod[i], angles)
            yield compare(
                "Trajectory.status", course.curves["x"], want,
                limit=1e-7, scale=crank[i] + rod[i], detail=said,
            )  # fmt: skip
        names = [getattr(k, "joint", "") for k in course.held_keys or ()]
        right = names == ["O"]
        yield compare("Trajectory.held_keys", right, True, limit=0.0, detail=f"{names}, {said}")
        drive = mbd.Drive("O", turning, np.array([START, SPEED]))
        run = moving.trajectory(mech.replace(drives={"motor": drive}))
        yield compare(
            "Trajectory.held_keys", run.held_keys is None, True, limit=0.0, detail=f"motion, {said}"
        )
        clear = min(when, 0.1) - 0.05
        if abs(clear) < 0.02:
            continue
        yield _outcome("Trajectory.status", run.status == 0, clear > 0.0, f"motion, {said}")
        if run.status == 0 and clear > 0.0:
            turn = START + SPEED * run.x
            leg = np.sqrt(rod[i] ** 2 - (crank[i] * np.sin(turn)) ** 2)
            rate = -SPEED * crank[i] * np.sin(turn) * (1.0 + crank[i] * np.cos(turn) / leg)
            kinds = mbd.topology(mech).speed_names
            for name, want, scale in (("O", SPEED + 0.0 * turn, 1.0), ("T", rate, crank[i])):
                if name in kinds:
                    yield compare(
                        "Trajectory.v", run.v[:, kinds.index(name)], want,
                        limit=1e-6, scale=scale, detail=f"{name}, {said}",
                    )  # fmt: skip
