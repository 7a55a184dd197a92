"""Published motions under one call: errors, closure, and what a run costs.

Each is ``simulate(mech, q0, v0, t=times, method=DormandPrince(rtol))`` without a first step or any
hint of the constraints' index; the governor, which is stiff, also by `Rodas`. The error is the
largest at the reference's times.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from accuracy_cases import andrews, car_axis, iftomm
from accuracy_cases.gt_mech import described_columns, observer, with_points
from accuracy_cases.integrate import initial_state
from accuracy_cases.report import read_series
from papers.iftomm import symmetric_governor

import jaxmbd as mbd
from integration_cases.andrews_reference import AT_30_MS, published_multipliers
from integration_cases.timing import by_turns, once
from jaxmbd import lanes
from jaxmbd.io import gt_velocities, read_gt_mech

DATA = Path(__file__).parents[2] / "tests" / "data" / "groundtruth"
LANES = 1000
DENSE = 10  # times between two saved ones at which the closure is looked at
SCATTER = 1e-3  # of the first speeds of lanes [rad/s, 1/s of the length], along a free motion

Errors = Callable[[Any, Any, Any], dict[str, float]]
"""Of times, coordinates and speeds at the reference's times."""


class Reference(NamedTuple):
    """A published motion.

    Attributes:
        mech, q, v: the mechanism and its start.
        times: of the reference [s].
        errors: by quantity, given the states there.
        methods: names and methods.
        lanes: how many runs are one batch.
        conserved: whether the energy is.
        every: the longest interval between saved times in the test of the closure [s].
        dt: step of RK4 [s].
    """

    mech: mbd.Mechanism
    q: Any
    v: Any
    times: np.ndarray
    errors: Errors
    methods: dict[str, Any]
    every: float
    lanes: int = LANES
    conserved: bool = False
    dt: float | None = None

    def step(self, method: Any) -> dict[str, float | None]:
        """The argument of `simulate` that belongs to the method."""
        return {"dt": self.dt} if isinstance(method, mbd.RK4) else {}


def pairs(*rtols: float, kind: Any = mbd.DormandPrince, **options: Any) -> dict[str, Any]:
    return {f"{kind.__name__}, {r:g}": kind(rtol=r, atol=1e-2 * r, **options) for r in rtols}


def _data(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def squeezer() -> Reference:
    """Andrews' squeezer at 0.03 s: angles, and multipliers as forces between K2 and the others."""
    data, mech = _data("andrews_squeezer"), mbd.zoo.andrews_squeezer()
    published, layout = data["published_reference_t0_03"], mbd.topology(mech).layout
    place = np.array([layout[joint].q.start for joint in andrews.ANGLES.values()])
    start = np.array([data["initial_angles"][n] for n in andrews.ANGLES])
    there = np.array([published[n] for n in andrews.ANGLES])
    forces = np.array([published[f"lambda{i}"] for i in range(1, 7)])

    @jax.jit
    def multipliers(q: Any, v: Any) -> Any:
        vdot, lam = mbd.forward_dynamics(mech, q, v)
        pull = mbd.joint_reactions(mech, q, v, vdot, lam)
        return jnp.concatenate([pull[name][3:5] for name in andrews.CLOSURES])

    def errors(t: Any, q: Any, v: Any) -> dict[str, float]:
        angles, lam = start + q[-1][place], np.asarray(multipliers(q[-1], v[-1]))
        return {
            "position": float(np.max(np.abs(angles - there))),
            "position, extended precision": float(np.max(np.abs(angles - AT_30_MS["angle"]))),
            "multipliers, relative": float(np.max(np.abs(lam / forces - 1.0))),
            "multipliers, relative, extended precision": float(
                np.max(np.abs(lam / AT_30_MS["multiplier"] - 1.0))
            ),
        }

    times, v = np.array([0.0, 0.03]), np.zeros(7)
    methods = pairs(1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
    return Reference(mech, mbd.neutral(mech), v, times, errors, methods, every=1e-4)


def axle() -> Reference:
    """The car axis at 3 s: the published positions, speeds and multipliers of both masses."""
    data = _data("car_axis_dae")
    mech, s, length = car_axis.mechanism(data), data["initial"], data["parameters"]["L"]
    q = mbd.assemble(mech, known={"across": 0.0, "right": 0.0}).q
    known = {"left": s["yl_d"], "across": s["xr_d"], "right": s["yr_d"]}
    v = mbd.assemble_velocity(mech, q, known)
    published = np.asarray(data["published_reference_t3"])

    @jax.jit
    def all_ten(t: Any, q: Any, v: Any) -> Any:
        where, twist = mbd.poses(mech, q), mbd.body_velocities(mech, q, v)
        vdot, lam = mbd.forward_dynamics(mech, q, v, t)
        pull = mbd.joint_reactions(mech, q, v, vdot, lam, t)
        rod = where["right"].position - where["left"].position
        along = where["arm"].rotation[:, 0]
        forces = along @ pull["left"][3:] / length, pull["link"][3:] @ rod / (2.0 * length**2)
        ends = ("left", "right")
        places = [where[n].position[:2] for n in ends] + [twist[n][3:5] for n in ends]
        return jnp.concatenate([*places, jnp.stack(forces)])

    def errors(t: Any, q: Any, v: Any) -> dict[str, float]:
        off = np.abs(np.asarray(all_ten(t[-1], q[-1], v[-1])) - published)
        last = {"position": off[:4], "speed": off[4:8], "multipliers": off[8:]}
        return {name: float(np.max(x)) for name, x in last.items()}

    times, methods = np.array([0.0, 3.0]), pairs(1e-6, 1e-8, 1e-10)
    more = pairs(1e-10, most=2**14)  # than the tried steps that are allowed between two saved times
    methods |= {f"{name}, most={method.most}": method for name, method in more.items()}
    return Reference(mech, q, v, times, errors, methods, every=0.01)


def _series(name: str, methods: dict[str, Any], **options: Any) -> Reference:
    """A mechanism file of the reference data, with the positions of its series."""
    data = _data(name)
    series, mech = read_series(DATA / data["series"]), read_gt_mech(data)
    q, v, _ = initial_state(mech, gt_velocities(data))
    data = with_points(data, series)
    columns = described_columns(data, series.columns)
    columns = {k: names for k, names in columns.items() if k.startswith("position")}
    watch = jax.jit(jax.vmap(observer(data, mech, columns)))

    def errors(t: Any, q: Any, v: Any) -> dict[str, float]:
        ours = watch(t, q, v)
        off = [np.max(np.abs(ours[k] - series.stack(names))) for k, names in columns.items()]
        return {"position": float(np.max(off))}

    return Reference(mech, q, v, series.times, errors, methods, **options)


def slider_crank() -> Reference:
    """The library's spatial slider-crank over 5 s; the two references differ by 1.3e-8 m."""
    return _series("iftomm_spatial_slider_crank", pairs(1e-6, 1e-8, 1e-10), every=0.01)


def bricard() -> Reference:
    """A04 over 10 s; the two references differ by 4e-11 m."""
    methods = pairs(1e-6, 1e-8, 1e-10)
    return _series("iftomm_A04_bricard", methods, every=0.02, conserved=True)


def pendulum() -> Reference:
    """A01 over 10 s, against elliptic functions."""
    series = read_series(DATA / "iftomm_A01_simple_pendulum.csv")
    kept = series.times <= 10.0 + 1e-9
    exact = series.stack(["x_exact", "y_exact"])[kept]
    start = _data("iftomm_A01_simple_pendulum")["initial"]
    mech = mbd.Mechanism(
        {"bob": mbd.Body(1.0, (start["x"], start["y"], 0.0))},
        {"hinge": mbd.Revolute("ground", "bob", (0.0, 0.0, 0.0), iftomm.AXIS)},
        gravity=(0.0, -9.81, 0.0),
    )
    watch = jax.jit(jax.vmap(lambda q: mbd.poses(mech, q)["bob"].position[:2]))

    def errors(t: Any, q: Any, v: Any) -> dict[str, float]:
        return {"position": float(np.max(np.abs(watch(q) - exact)))}

    times, methods = series.times[kept], pairs(1e-6, 1e-8, 1e-10)
    start = mbd.neutral(mech), np.zeros(1)
    return Reference(mech, *start, times, errors, methods, every=0.05, conserved=True)


def four_bars() -> Reference:
    """A02 with two loops over 20 s, 20 times through positions where both are singular."""
    data, series = _data("iftomm_A02_nfourbar"), read_series(DATA / "iftomm_A02_nfourbar.csv")
    exact, mech = series.stack(["N2_x_closed", "N2_y_closed"]), iftomm.n_four_bar(data, 2)
    start = {b: np.array([0, 0, -1.0, 0.5, 0, 0]) for b in mech.structure.bodies}
    start |= {b: np.array([0, 0, 0, 1.0, 0, 0]) for b in start if b.startswith("across")}
    q, v, _ = initial_state(mech, start)
    watch = jax.jit(jax.vmap(lambda q: mbd.point_position(mech, q, "up0", (0.0, 1.0))))

    def errors(t: Any, q: Any, v: Any) -> dict[str, float]:
        return {"position": float(np.max(np.abs(watch(q)[:, :2] - exact)))}

    methods = pairs(1e-6, 1e-8, 1e-10) | {"RK4, 0.0005 s": mbd.RK4()}
    options = {"every": 0.05, "conserved": True, "dt": 5e-4}
    return Reference(mech, q, v, series.times, errors, methods, **options)


def governor() -> Reference:
    """A05 over 10 s: the height of the slider, against Radau's method on three equations."""
    mech = mbd.zoo.flyball_governor()
    q = mbd.neutral(mech)
    v = mbd.assemble_velocity(mech, q, {"shaft": 2.0 * np.pi})
    place, times = mbd.topology(mech).layout["slide"].q.start, np.linspace(0.0, 10.0, 51)
    exact = symmetric_governor(times)

    def errors(t: Any, q: Any, v: Any) -> dict[str, float]:
        return {"position": float(np.max(np.abs(0.5 + q[:, place] - exact)))}

    methods = pairs(1e-4, 1e-6, 1e-8, kind=mbd.Rodas) | pairs(1e-6, most=2**17)
    return Reference(mech, q, v, times, errors, methods, every=0.02, lanes=64)


REFERENCES: dict[str, Callable[[], Reference]] = {
    "Andrews' squeezer (A03)": squeezer,
    "car axis": axle,
    "spatial slider-crank": slider_crank,
    "simple pendulum (A01)": pendulum,
    "two four-bars (A02)": four_bars,
    "Bricard (A04)": bricard,
    "flyball governor (A05)": governor,
}


def free_motion(case: Reference) -> np.ndarray:
    """Speeds (nv,) of a motion that the constraints allow, the largest of which is one."""
    rows = np.asarray(mbd.constraint_jacobian(case.mech, case.q))
    if not len(rows):
        return np.ones(rows.shape[1])
    _, _, across = np.linalg.svd(rows)
    return across[-1] / np.max(np.abs(across[-1]))


def closure(case: Reference, method: Any) -> dict[str, Any]:
    """The largest residual at saved times and between them, the change of energy, the status.

    Saved times are close, so that most accepted steps end at one.
    """
    end = case.times[-1]
    saved = np.linspace(0.0, end, max(2, round(end / case.every) + 1))
    options = {"method": method, "throw": False, **case.step(method)}
    run = mbd.simulate(case.mech, case.q, case.v, t=saved, **options)
    share = np.arange(1, DENSE) / DENSE
    between = (saved[:-1, None] + np.diff(saved)[:, None] * share).ravel()
    q, _ = mbd.states_at(case.mech, run, between)

    def residual(t: Any, q: Any) -> Any:
        return jnp.nanmax(jnp.abs(mbd.constraint_residual(case.mech, q, t)), initial=0.0)

    def energy(t: Any, q: Any, v: Any) -> Any:
        return mbd.kinetic_energy(case.mech, q, v) + mbd.potential_energy(case.mech, q, t)

    largest = jax.jit(lambda t, q: jnp.max(jax.vmap(residual)(t, q)))
    found: dict[str, Any] = {
        "status": mbd.Status(int(run.status)).name,
        "times": len(saved) + len(between),
        "saved": float(largest(run.t, run.q)),
        "between": float(largest(jnp.asarray(between), q)),
    }
    if case.conserved:
        e = np.asarray(jax.jit(jax.vmap(energy))(run.t, run.q, run.v))
        found["energy change [J]"] = float(np.max(np.abs(e - e[0])))
    return found


def rows(case: Reference, quick: bool = False) -> list[dict[str, Any]]:
    """A row for each method: errors, closure, and costs."""
    scatter = SCATTER * np.linspace(-1.0, 1.0, 8 if quick else case.lanes)
    starts = jnp.asarray(case.v) + jnp.asarray(scatter[:, None] * free_motion(case))

    def run(v: Any, method: Any) -> Any:
        options = {"method": method, "throw": False, **case.step(method)}
        return mbd.simulate(case.mech, case.q, v, t=case.times, **options)

    @jax.jit
    def compiled(v: Any, method: Any) -> Any:
        found = run(v, method)
        return found.q[-1], found.v[-1], found.status

    batch = jax.jit(lanes.vmap(compiled, in_axes=(0, None)))
    found = []
    for name, method in case.methods.items():
        first, solution = once(lambda m=method: run(case.v, m))
        statuses = np.asarray(batch(starts, method)[2])
        compiled(case.v, method)
        cost = by_turns(
            {
                "call": lambda m=method: run(case.v, m),
                "compiled": lambda m=method: compiled(case.v, m),
                "batch": lambda m=method: batch(starts, m),
            },
            rounds=2 if quick else 5,
        )
        closed = closure(case, method)
        found.append(
            {
                "method": name,
                "errors": case.errors(*map(np.asarray, (solution.t, solution.q, solution.v))),
                "closure": closed,
                "status": mbd.Status(int(solution.status)).name,
                "estimate": float(solution.error),
                "steps": int(solution.steps),
                "rejected": int(solution.rejected),
                "first_call_s": round(first.cpu, 2),
                "call_ms": 1e3 * cost["call"].cpu,
                "one_lane_ms": 1e3 * cost["compiled"].cpu,
                "per_lane_ms": 1e3 * cost["batch"].cpu / len(starts),
                "per_lane_wall_ms": 1e3 * cost["batch"].wall / len(starts),
                "lanes": len(starts),
                "lanes_ok": int(np.sum(statuses == mbd.Status.OK)),
            }
        )
    return found


def measured(quick: bool = False, names: Any = None) -> dict[str, Any]:
    """The rows of each motion, and what the published multipliers of the squeezer are off by."""
    found = {name: rows(REFERENCES[name](), quick) for name in names or REFERENCES}
    return {"motions": found, "multipliers": published_multipliers()}
