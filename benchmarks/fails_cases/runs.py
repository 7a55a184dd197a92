"""Motions of mechanisms: free ones against steps of rigid bodies in NumPy, driven ones by their
equations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import instants, mechanisms, observed
from fails_cases.judged import Judged, compare
from fails_cases.rigid_dynamics import Dynamics
from fails_cases.statics import _coordinates, _numpy, _text

SHARE = 6.0
STEPPED = "Runge-Kutta steps of rigid bodies in NumPy, at two lengths"
RHEONOMIC = "closure errors of rigid bodies in NumPy and their rates, with the drive"
NUMBERS = {
    "Solution.q": STEPPED,
    "Solution.v": STEPPED,
    "Solution.t": "equal steps",
    "Solution.drift": "closure errors of rigid bodies in NumPy",
    "Motion": STEPPED,
    "Energy, of a motion": STEPPED,
    "DrivenMotion.q": RHEONOMIC,
    "DrivenMotion.v": RHEONOMIC,
    "DrivenMotion.vdot": RHEONOMIC + ", complex steps",
    "DrivenMotion.effort": instants.MAXIMAL,
    "DrivenMotion.tau": instants.MAXIMAL,
    "DrivenMotion.lam": "balance of generalised forces, by NumPy",
    "DrivenMotion.residual": "closure errors of rigid bodies in NumPy",
    "Driven": instants.MAXIMAL,
    "DrivingPower": instants.MAXIMAL,
    "Trajectory.x": "the values that were asked for",
    "Trajectory.q": "closure errors of rigid bodies in NumPy with the coordinate held",
    "Trajectory.curves": "rigid bodies in NumPy",
}
STEPS, SHARES = 10, 0.02
METHODS = (mbd.RK4(), mbd.DormandPrince(rtol=1e-7, atol=1e-9), mbd.Rodas(rtol=1e-7, atol=1e-9))
TIMES = np.linspace(0.0, 0.5, 4)


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Free and driven motions of all kinds."""
    samples = max(3, round(size / 60 / len(mechanisms.KINDS)))
    for name, kind in mechanisms.KINDS.items():
        b = mechanisms.batch(name, samples, seed)
        yield from judge_motion(b)
        if kind.hold is not None:
            yield from judge_driven(b)
            yield from judge_trajectory(b)
        jax.clear_caches()


# Free motions.


def _state(mech: mbd.Mechanism, change: Any, speeds: Any) -> Any:
    guess = mbd.step_coordinates(mech, jnp.asarray(mbd.neutral(mech), mech.dtype), change)
    found = mbd.assemble(mech, guess=guess, throw=False)
    v = mbd.assemble_velocity(mech, found.q, guess=speeds)
    check = mbd.check_state(mech, found.q, v)
    return found.q, v, (found.status == 0) & (check.status == 0)


def drawn_start(b: mechanisms.Batch, salt: int) -> Any:
    """Random states of all samples: rigid bodies, (q, v), whether they are usable, the instant."""
    rng, top, n = np.random.default_rng([b.seed, salt]), mbd.topology(b.mech), len(b.dicts)
    turns = np.array([k == "angle" for k in top.speed_kinds])
    units = np.where(turns, 1.0, b.sizes[:, None])
    change = 0.1 * units * rng.normal(size=(n, top.nv))
    speeds = units * rng.normal(size=(n, top.nv))
    q, v, ok = _numpy(mbd.lanes.vmap(_state)(b.stacked, change, speeds))
    r = Dynamics(b.dicts, top)
    ok = ok & np.all(np.isfinite(q), 1) & np.all(np.isfinite(v), 1)
    neutral = np.tile(np.asarray(mbd.neutral(b.mech), float), (n, 1))
    q, v = np.where(ok[:, None], q, neutral), np.where(ok[:, None], v, 0.0)
    return r, q, v, ok, instants._State(r, q, v, 0.0, 1e-6 if b.kind.rough else 1e-8)


def judge_motion(b: mechanisms.Batch) -> Iterator[Judged]:
    """Short free motions from random states."""
    r, q, v, ok, s = drawn_start(b, 11)
    pull = np.stack([x.least for x in s.solved]) / r.units / s.length[:, None]
    fast = instants._size(v / r.units / s.length[:, None])
    time = SHARES / np.maximum(fast + np.sqrt(instants._size(pull)), 1e-3)

    coarse, fine = (stepped(r, q, v, time, STEPS * k, k) for k in (1, 2))
    far = np.max(np.abs(fine[0] - coarse[0]), axis=1) + np.max(np.abs(fine[1] - coarse[1]), axis=1)
    converged = far < 1e-5 * (1.0 + np.max(np.abs(fine[0]), axis=1)) * np.maximum(1.0, fast)
    unsure = s.near_rank | s.changing | ~converged | fine[2] | ~ok
    times = time[:, None] * np.arange(STEPS + 1)
    for method in METHODS:
        found = _numpy(mbd.lanes.vmap(partial(engine, method))(b.stacked, q, v, times))
        good = ok & (found.status == 0)
        cases = instants._Cases(b, good, unsure, f", {type(method).__name__}")
        yield from cases("Solution.t", found.t, times)
        yield from cases("Solution.drift", found.drift / s.length, 0.0 * time, 0.0, 1e-6)
        yield from judge_end(r, s, cases, found, good, (q, v), time, fine)
    yield from _experiment(b, r, s)


def engine(method: Any, mech: mbd.Mechanism, q: Any, v: Any, t: Any) -> Any:
    """The run at the times t, one step of fixed length between two of them."""
    return mbd.simulate(mech, q, v, t=t, method=method, throw=False)


def judge_end(
    r: Dynamics,
    s: Any,
    cases: Any,
    found: Any,
    good: np.ndarray,
    begin: tuple[np.ndarray, np.ndarray],
    time: np.ndarray,
    fine: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> Iterator[Judged]:
    """Where and how fast the first and the last body are after the last step."""
    q, v = begin
    got = r.place(
        np.where(good[:, None], found.q[:, -1], q), np.where(good[:, None], found.v[:, -1], v)
    )
    want, start = r.place(*fine[:2]), s.placed
    for name in r.bodies[-1:] + r.bodies[:1]:
        for point in list(r.points)[-1:]:
            x = r.points[point]
            there, first = r.point(want, name, x), r.point(start, name, x)
            ended = r.point(got, name, x)
            path = np.max(np.abs(first.d), axis=1) * time * STEPS
            swift = 0.1 * observed._speed(observed.Instant(r, q, v, s.placed, time, []))
            path = path + np.max(np.abs(there.v - first.v), axis=1) + swift * time * STEPS
            yield from cases("Solution.q", ended.v, there.v, path, 1e-4)
            moved = np.max(np.abs(there.d - first.d), axis=1) + np.max(np.abs(first.d), axis=1)
            moved = moved + swift
            yield from cases("Solution.v", ended.d, there.d, moved, 2e-4)


def stepped(r: Dynamics, q: Any, v: Any, time: Any, steps: int, finer: int) -> Any:
    """The state after steps of ``time / finer`` by the classical Runge-Kutta method.

    Also whether such steps were lost, as they are where they are not stable.
    """
    h, lost = (time / finer)[:, None], np.zeros(len(time), bool)

    def rates(q: Any, v: Any, t: Any) -> Any:
        return r.rates(q, v), np.stack([x.least for x in r.motion(q, v, t)])

    with np.errstate(all="ignore"):
        for k in range(steps):
            t = k * h
            a = rates(q, v, t)
            b = rates(q + 0.5 * h * a[0], v + 0.5 * h * a[1], t + 0.5 * h)
            c = rates(q + 0.5 * h * b[0], v + 0.5 * h * b[1], t + 0.5 * h)
            d = rates(q + h * c[0], v + h * c[1], t + h)
            q = q + h / 6.0 * (a[0] + 2.0 * b[0] + 2.0 * c[0] + d[0])
            v = v + h / 6.0 * (a[1] + 2.0 * b[1] + 2.0 * c[1] + d[1])
            lost |= ~(np.all(np.isfinite(q), 1) & np.all(np.abs(v) < 1e12, 1))
            q, v = np.where(lost[:, None], 0.0, q), np.where(lost[:, None], 0.0, v)
    return q, v, lost


def _experiment(b: mechanisms.Batch, r: Dynamics, s: Any) -> Iterator[Judged]:
    """The experiment `Motion` from the drawn state at rest, over steps of its own."""
    unit = [i for i in range(r.n) if b.sizes[i] == 1.0][:6]
    if not unit or b.kind.rough:
        return
    part = jax.tree_util.tree_map(lambda x: x[np.array(unit)], b.stacked)
    body, point = b.mech.structure.bodies[-1], b.mech.structure.points[-1]
    watch = mbd.observe.Position(body, point)
    energy = mbd.observe.Energy()
    outputs = {
        "end": watch.last(),
        "energy": energy.last(),
        "span": energy.span(),
        "kinetic": mbd.observe.Energy("kinetic").peak(),
        "q": mbd.observe.Function(_coordinates),
    }
    dt, steps = 2e-3, 10
    motion = mbd.observe.Motion(steps * dt, dt, outputs)
    found = _numpy(mbd.lanes.vmap(motion.computed)(part))
    few = Dynamics([b.dicts[i] for i in unit], r.top)
    ok = (found["status"] == 0) & np.all(np.isfinite(found["q"][:, 0]), axis=1)
    neutral = np.tile(np.asarray(mbd.neutral(b.mech), float), (few.n, 1))
    q0 = np.where(ok[:, None], found["q"][:, 0], neutral)
    v0 = np.zeros((few.n, few.nv))
    if few.drives:
        return
    time = np.full(few.n, dt)
    coarse, fine = (stepped(few, q0, v0, time, steps * k, k) for k in (1, 2))
    at, rough = few.place(*fine[:2]), few.place(*coarse[:2])
    x = few.points[point]
    end, first = few.point(at, body, x).v, few.point(few.place(q0, v0), body, x).v
    unsure = np.max(np.abs(end - few.point(rough, body, x).v), axis=1)
    path = np.max(np.abs(end - first), axis=1)
    kinetic, potential = few.energies(*fine[:2])
    for i in range(few.n):
        start = instants._State(
            Dynamics([b.dicts[unit[i]]], r.top), q0[i : i + 1], v0[i : i + 1], 0.0
        )
        if fine[2][i] or start.near_rank[0] or not unsure[i] < 1e-6 * path[i] + 1e-12:
            continue
        text = _text(b, unit[i], f", {steps} steps from rest")
        yield compare(
            "Motion",
            found["end"][i],
            end[i],
            limit=1e-4,
            scale=path[i] + 1e-8,
            detail=text,
            ok=bool(ok[i]),
        )
        total = kinetic[i] + potential[i]
        size = float(kinetic[i]) + 1e-9 * abs(float(total))
        if not any(k == "Torque" for k, _ in few.forces.values()):
            yield compare(
                "Energy, of a motion",
                found["energy"][i],
                total,
                limit=1e-3,
                scale=0.0 if size == 0.0 else max(size * 1.0, abs(total) * 1e-6),
                detail=text,
                ok=bool(ok[i]),
            )


# Driven motions.


def driven(b: mechanisms.Batch) -> Any:
    """The held coordinate as a function of time: value, rate and second rate at `TIMES`."""
    amplitude = b.kind.reach * 0.8
    value = amplitude * np.sin(3.0 * TIMES)
    return value, 3.0 * amplitude * np.cos(3.0 * TIMES), -9.0 * value


def judge_driven(b: mechanisms.Batch) -> Iterator[Judged]:
    """`simulate_driven` by the equations at each time."""
    amplitude = b.kind.reach * 0.8

    def engine(mech: mbd.Mechanism) -> Any:
        known = {b.kind.hold: lambda t: amplitude * jnp.sin(3.0 * t)}
        found = mbd.simulate_driven(mech, known, t=TIMES, throw=False)
        rows = jnp.stack([mbd.constraint_jacobian(mech, found.q[k]) for k in range(len(TIMES))])
        return found, rows, mbd.observe.Driven(known, TIMES, watched)(mech)

    observe = mbd.observe
    watched = {f"force {n}": observe.Reaction(n) for n in b.mech.joints}
    watched |= {f"moment {n}": observe.Reaction(n, "moment", "norm") for n in b.mech.joints}
    watched["power"] = observe.DrivingPower(b.kind.hold)
    found, jacobians, turn = _numpy(mbd.lanes.vmap(engine)(b.stacked))
    r = Dynamics(b.dicts, mbd.topology(b.mech))
    neutral = np.tile(np.asarray(mbd.neutral(b.mech), float), (r.n, 1))
    place = r.top.layout[b.kind.hold]
    allowed = max(1e-9, 10.0 * b.kind.rough)
    zero = np.zeros(r.n)
    for k, wanted in enumerate(zip(*driven(b), strict=True)):
        ok = (found.status[:, k] == 0) & np.all(np.isfinite(found.q[:, k]), axis=1)
        q = np.where(ok[:, None], found.q[:, k], neutral)
        v = np.where(ok[:, None], found.v[:, k], 0.0)
        vdot = np.where(ok[:, None], found.vdot[:, k], 0.0)
        s = instants._State(r, q, v, 0.0, 1e-6 if b.kind.rough else 1e-8)
        fixed = np.zeros((r.n, 1, r.nv))
        fixed[:, 0, place.v.start] = 1.0
        rows = np.concatenate([s.rows, fixed], 1)
        singular = np.array(
            [np.any((x > 1e-8) & (x < 1e-4)) for x in map(instants._singular, rows)]
        )
        cases = instants._Cases(b, ok, s.near_rank | singular)
        yield from cases("DrivenMotion.q", s.error, zero, limit=allowed)
        yield from cases(
            "DrivenMotion.residual", found.residual[:, k] / s.length, zero, limit=allowed
        )
        yield from cases("DrivenMotion.q", q[:, place.q.start], zero + wanted[0], 1.0)
        swift = instants._size(v / r.units)
        yield from cases(
            "DrivenMotion.v", instants._size(s.conditions.d), zero, swift, 1e-8 + allowed
        )
        yield from cases("DrivenMotion.v", v[:, place.v.start], zero + wanted[1], 1.0)
        left = np.einsum("srv,sv->sr", s.rows, vdot / r.units) - s.gamma
        size = instants._size(vdot / r.units) + instants._size(s.gamma) + swift**2 / s.length
        yield from cases("DrivenMotion.vdot", instants._size(left), zero, size, 1e-7 + allowed)
        yield from cases("DrivenMotion.vdot", vdot[:, place.v.start], zero + wanted[2], 10.0)
        forces = r.joint_forces(q, v, vdot, 0.0, held=[(b.kind.hold, 0)])
        balanced = np.array([f.missing < 1e-6 and f.efforts["held 0"][1] for f in forces])
        effort = np.array([f.efforts["held 0"][0] for f in forces])
        effort = np.where(balanced, effort, np.nan)
        force = np.array([f.scale for f in forces]) + 1e-7 * s.length * np.array(
            [instants._stiffest(d) for d in b.dicts]
        )
        yield from cases(
            "DrivenMotion.effort", found.effort[:, k, 0], effort, force * s.length, 1e-5
        )
        whole = instants._Cases(b, ok & (turn["status"] == 0), s.near_rank | singular)
        yield from whole(
            "DrivingPower", turn["power"][:, k], effort * wanted[1], force * s.length, 1e-5
        )
        rate = r.convective(q, v) + np.einsum("skv,sv->sk", r.twist_columns(q), vdot)
        at = observed.Instant(r, q, v, s.placed, rate.reshape(r.n, -1, 6), forces)
        for name in b.mech.joints:
            wrench = np.where(balanced[:, None], observed._wrench(at, name), np.nan)
            yield from whole("Driven", turn[f"force {name}"][:, k], wrench[:, 3:], force, 1e-5)
            size = np.linalg.norm(wrench[:, :3], axis=1)
            yield from whole("Driven", turn[f"moment {name}"][:, k], size, force * s.length, 1e-5)
        tau = found.tau[:, k]
        yield from cases("DrivenMotion.tau", tau[:, place.v.start], effort, force * s.length, 1e-5)
        if r.top.nc:
            h = r.bias(q, v) + np.einsum("svw,sw->sv", r.mass_matrix(q), vdot)
            carried = np.einsum("srv,sr->sv", jacobians[:, k], found.lam[:, k])
            miss = instants._size(r.units * (h - tau - carried))
            size = force + instants._size(r.units * h) + instants._size(r.units * carried)
            yield from cases("DrivenMotion.lam", miss, np.where(balanced, 0.0, np.nan), size, 1e-6)


def judge_trajectory(b: mechanisms.Batch) -> Iterator[Judged]:
    """The whole course of a sweep, for one mechanism."""
    watched = observed.kinematic(b.mech)[:4]
    x = np.linspace(0.0, b.kind.reach, 3)
    sweep = mbd.observe.Sweep({b.kind.hold: x}, {f"w{k}": w.what for k, w in enumerate(watched)})
    mech = jax.tree_util.tree_map(lambda y: jnp.asarray(y[0]), b.stacked)
    found = sweep.trajectory(mech)
    text = _text(b, 0, ", trajectory")
    yield compare("Trajectory.x", found.x, x, limit=1e-12, detail=text)
    r = Dynamics(b.dicts[:1], mbd.topology(b.mech))
    for k in range(len(x)):
        if found.status:
            yield compare("Trajectory.q", found.q[k], found.q[k], limit=0.0, detail=text, ok=False)
            continue
        q = found.q[k : k + 1]
        s = instants._State(r, q, np.zeros((1, r.nv)), 0.0)
        allowed = max(1e-9, 10.0 * b.kind.rough)
        yield compare("Trajectory.q", s.error[0], 0.0, limit=allowed, detail=text)
        at = observed.Instant(
            r, q, 0.0 * found.v[k : k + 1], s.placed, np.zeros((1, len(r.bodies), 6)), []
        )
        for j, w in enumerate(watched):
            got, want = found.curves[f"w{j}"][k], w.oracle(at)[0]
            yield compare(
                "Trajectory.curves", got, want, limit=1e-8, scale=float(w.size(at)[0]), detail=text
            )
