"""Mechanisms at rest: poses, sweeps, equilibria, static reactions, holding efforts, reductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import instants, mechanisms, observed
from fails_cases.judged import FLAGGED, Judged, compare
from fails_cases.rigid import H
from fails_cases.rigid_dynamics import Dynamics

SHARE = 30.0
VIRTUAL = "virtual work along the motions that the conditions allow, in NumPy"
REDUCED = "the same of the curve in NumPy"
NUMBERS = (
    {
        "Sweep": "closure errors of rigid bodies in NumPy with the coordinate held",
        "Configuration": "closure errors of rigid bodies in NumPy with the coordinate held",
        "Settle": VIRTUAL,
        "HoldingEffort": instants.MAXIMAL,
        "Reaction, at rest": instants.MAXIMAL,
        "Reaction, settled": instants.MAXIMAL,
        "Equilibrium.q": VIRTUAL,
        "Equilibrium.residual": VIRTUAL,
        "Equilibrium.lam": "balance of generalised forces, by NumPy",
        "Equilibrium.held": instants.MAXIMAL,
        "Equilibrium.status": "stiffness along the free motions, by complex steps",
        "Modes.eigenvalues": "generalised eigenvalues of masses and complex-step stiffnesses",
        "Linearization.A": "generalised eigenvalues of masses and complex-step stiffnesses",
        "Linearization.motions": "conditions of rigid bodies by complex steps",
        "Modes.damping_ratios": "generalised eigenvalues of masses and complex-step stiffnesses",
        "Modes.frequencies": "generalised eigenvalues of masses and complex-step stiffnesses",
    }
    | {
        f"reduction {n}": REDUCED
        for n in (
            "max",
            "min",
            "first",
            "last",
            "span",
            "peak",
            "mean",
            "rms",
            "at",
            "slope",
            "crossing",
            "rise",
        )
    }
    | {f"{n}, in a sweep": oracle for n, oracle in observed.ORACLES.items()}
)
STATIONS = 5
PLACE, LEVEL, SHARE_OF_END = 0.37, 0.5, 0.9  # shares of reach, and of a curve's range


def judged(seed: int, size: int) -> Iterator[Judged]:
    """Sweeps of what a coordinate determines, equilibria of what settles."""
    kinds = mechanisms.KINDS
    samples = max(3, round(size / 250 / len(kinds)))
    for name, kind in kinds.items():
        b = mechanisms.batch(name, samples, seed)
        if kind.hold is not None:
            yield from judge_sweep(b)
            yield from judge_pose(b)
        if kind.settles:
            yield from judge_equilibrium(b)
        jax.clear_caches()


def _text(b: mechanisms.Batch, i: int, where: str = "") -> str:
    return f"{b.name}, sample {i} of {len(b.dicts)}{where}, {b.sizes[i]:.2g} m, seed {b.seed}"


def _coordinates(at: Any) -> Any:
    return at.q


def _numpy(tree: Any) -> Any:
    return jax.tree_util.tree_map(np.asarray, tree)


# Sweeps.


def reduced(what: Any, x: Any) -> dict[str, Any]:
    """Every reduction of an observable, along an axis."""
    place = float(PLACE * x[-1])
    return {
        "max": what.max(),
        "min": what.min(),
        "first": what.first(),
        "last": what.last(),
        "span": what.span(),
        "peak": what.peak(),
        "mean": what.mean(),
        "rms": what.rms(),
        "at": what.at(place),
        "slope": what.slope(place),
        "crossing": what.crossing(0.01),
        "rise": what.rise(SHARE_OF_END),
    }


def reductions(x: Any, y: Any) -> dict[str, float]:
    """The same of a curve."""
    place = PLACE * x[-1]
    mean = np.sum(0.5 * np.diff(x) * (y[1:] + y[:-1])) / (x[-1] - x[0])
    square = np.sum(0.5 * np.diff(x) * (y[1:] ** 2 + y[:-1] ** 2)) / (x[-1] - x[0])
    k = min(max(int(np.argmin(np.abs(x - place))), 1), len(x) - 2)
    parabola = np.polyfit(x[k - 1 : k + 2], y[k - 1 : k + 2], 2)
    return {
        "max": y.max(),
        "min": y.min(),
        "first": y[0],
        "last": y[-1],
        "span": np.ptp(y),
        "peak": np.abs(y).max(),
        "mean": mean,
        "rms": np.sqrt(square),
        "at": float(np.interp(place, x, y)),
        "slope": float(np.polyval(np.polyder(parabola), place)),
        "crossing": _first(x, y, 0.01),
        "rise": _first(x, y, SHARE_OF_END * y[-1]),
    }


def _first(x: Any, y: Any, level: float) -> float:
    """Where a polygon first meets a level."""
    if y[0] == level:
        return float(x[0])
    for k in range(1, len(x)):
        if (y[k - 1] - level) * (y[k] - level) <= 0.0:
            share = (level - y[k - 1]) / (y[k] - y[k - 1])
            return float(x[k - 1] + share * (x[k] - x[k - 1]))
    return np.nan


def judge_sweep(b: mechanisms.Batch) -> Iterator[Judged]:
    """A sweep of the held coordinate: each station at rest, and all reductions of two curves."""
    watched = [
        w for w in observed.kinematic(b.mech) if w.number not in ("DistanceRate", "Velocity")
    ]
    watched += observed.reactions(b.mech)
    x = np.linspace(-b.kind.reach, b.kind.reach, STATIONS)
    held = mbd.observe.HoldingEffort(b.kind.hold)
    outputs: dict[str, Any] = {f"w{k}": w.what for k, w in enumerate(watched)}
    outputs |= {"effort": held, "q": mbd.observe.Function(_coordinates)}
    curves = {"turn": _last_angle(b), "effort": held}
    for name, what in curves.items():
        outputs[f"{name} curve"] = what
        outputs |= {f"{name} {how}": r for how, r in reduced(what, x).items()}
    sweep = mbd.observe.Sweep({b.kind.hold: x}, outputs)
    found = _numpy(mbd.lanes.vmap(sweep.computed)(b.stacked))
    ok = found["status"] == 0
    yield from _stations(b, x, watched, found, ok, "Sweep")
    for i in range(len(ok)):
        for name in curves:
            y = found[f"{name} curve"][i]
            if not ok[i] or np.any(np.isnan(y)):
                continue
            for how, expected in reductions(x, y).items():
                scale = _reduced_scale(how, x, y)
                got = found[f"{name} {how}"][i]
                text = _text(b, i, f", {name}")
                if how in ("crossing", "rise") and not _clear(x, y, how):
                    continue
                yield compare(
                    f"reduction {how}", got, expected, limit=1e-9, scale=scale, detail=text
                )


def _last_angle(b: mechanisms.Batch) -> Any:
    body = b.mech.structure.bodies[-1]
    return mbd.observe.DirectionAngle(body, (1.0, 0.2, 0.1), (0.0, 1.0, 0.1), (1.0, 0.0, 0.2))


def _reduced_scale(how: str, x: Any, y: Any) -> float:
    size = float(np.max(np.abs(y)))
    return {"slope": size / float(np.min(np.diff(x))), "crossing": 1.0, "rise": 1.0}.get(how, size)


def _clear(x: Any, y: Any, how: str) -> bool:
    """Whether rounding cannot change where a level is first reached."""
    level = 0.01 if how == "crossing" else SHARE_OF_END * y[-1]
    size = float(np.max(np.abs(y))) or 1.0
    return bool(
        np.min(np.abs(y - level)) > 1e-6 * size and np.min(np.abs(np.diff(y))) > 1e-6 * size
    )


def _stations(
    b: mechanisms.Batch, x: Any, watched: Any, found: Any, ok: Any, number: str
) -> Iterator[Judged]:
    """The states of a sweep, each as an instant at rest."""
    r = Dynamics(b.dicts, mbd.topology(b.mech))
    neutral = np.tile(np.asarray(mbd.neutral(b.mech), float), (r.n, 1))
    k = r.top.layout[b.kind.hold].q.start
    held = [(b.kind.hold, 0)]
    for station in range(len(x)):
        q = found["q"][:, station]
        good = ok & np.all(np.isfinite(q), axis=1)
        q = np.where(good[:, None], q, neutral)
        s = instants._State(r, q, np.zeros((r.n, r.nv)), 0.0, 1e-6 if b.kind.rough else 1e-8)
        fixed = np.zeros((r.n, 1, r.nv))
        fixed[:, 0, r.top.layout[b.kind.hold].v.start] = 1.0
        singular = np.array(
            [
                np.any((sv > 1e-8) & (sv < 1e-4))
                for sv in map(instants._singular, np.concatenate([s.rows, fixed], 1))
            ]
        )
        cases = instants._Cases(b, good, s.near_rank | singular)
        allowed = max(1e-9, 10.0 * b.kind.rough)
        yield from cases(number, s.error, 0.0 * s.error, limit=allowed)
        yield from cases(number, q[:, k], np.full(r.n, x[station]), 1.0, 1e-9)
        rest = np.zeros((r.n, r.nv))
        forces = r.joint_forces(q, rest, rest, 0.0, held=held)
        at = observed.Instant(r, q, rest, s.placed, np.zeros((r.n, len(r.bodies), 6)), forces)
        balanced = np.array([f.missing < 1e-6 for f in forces])
        size = observed._force(at) + 1e-7 * s.length * np.array(
            [instants._stiffest(d) for d in b.dicts]
        )
        for w, name in zip(watched, (f"w{j}" for j in range(len(watched))), strict=True):
            if w.number != "Reaction":
                yield from cases(
                    f"{w.number}, in a sweep",
                    found[name][:, station],
                    w.oracle(at),
                    w.size(at),
                    1e-8,
                )
                continue
            unit = s.length if w.what.part == "moment" else 1.0
            want = w.oracle(at)
            want = np.where(balanced.reshape(-1, *[1] * (want.ndim - 1)), want, np.nan)
            yield from cases("Reaction, at rest", found[name][:, station], want, size * unit, 1e-5)
        want = np.array(
            [f.efforts["held 0"][0] if f.efforts["held 0"][1] else np.nan for f in forces]
        )
        want = np.where(balanced, want, np.nan)
        yield from cases("HoldingEffort", found["effort"][:, station], want, size * s.length, 1e-5)


def judge_pose(b: mechanisms.Batch) -> Iterator[Judged]:
    """The middle of a sweep as a pose, alone and settled."""
    x = 0.5 * b.kind.reach
    outputs = {
        "q": mbd.observe.Function(_coordinates),
        "effort": mbd.observe.HoldingEffort(b.kind.hold),
    }
    watched = observed.reactions(b.mech)
    outputs |= {f"w{k}": w.what for k, w in enumerate(watched)}
    for number, settle in (("Configuration", False), ("Settle", True)):
        pose = mbd.observe.Configuration({b.kind.hold: x}, outputs, settle=settle)
        found = _numpy(mbd.lanes.vmap(pose.computed)(b.stacked))
        along = {n: v[:, None] for n, v in found.items()}
        yield from _stations(b, np.array([x]), watched, along, found["status"] == 0, number)


# Equilibria.


def judge_equilibrium(b: mechanisms.Batch) -> Iterator[Judged]:
    """Equilibria and the modes about them."""

    def engine(mech: mbd.Mechanism) -> Any:
        found = mbd.equilibrium(mech, throw=False)
        watched = [w.what for w in observed.reactions(mech)]
        at = mbd.observe.Snapshot(mech, found.q, moving=False, multipliers=found.lam)
        return found, [w.value(at) for w in watched], mbd.constraint_jacobian(mech, found.q)

    found, reactions, jacobian = _numpy(mbd.lanes.vmap(engine)(b.stacked))
    r = Dynamics(b.dicts, mbd.topology(b.mech))
    neutral = np.tile(np.asarray(mbd.neutral(b.mech), float), (r.n, 1))
    ok = (found.status == 0) & np.all(np.isfinite(found.q), axis=1)
    q, rest = np.where(ok[:, None], found.q, neutral), np.zeros((r.n, r.nv))
    s = instants._State(r, q, rest, 0.0, 1e-6 if b.kind.rough else 1e-8)
    cases = instants._Cases(b, ok, s.near_rank)
    allowed = max(1e-9, 10.0 * b.kind.rough)
    yield from cases("Equilibrium.q", s.error, 0.0 * s.error, limit=allowed)
    h = r.bias(q, rest)
    loads = np.abs(r.loads(q, rest)[0]).reshape(r.n, -1)
    columns = np.abs(r.twist_columns(q))
    stiff = np.array([instants._stiffest(d) for d in b.dicts])
    far = observed._reach(observed.Instant(r, q, rest, s.placed, rest, []))
    size = instants._size(r.units * (np.einsum("skv,sk->sv", columns, loads) + np.abs(h)))
    rounded = 1e-16 * 1e3 * stiff * far / np.maximum(size, 1e-300)
    work = [np.max(np.abs(n.T @ f), initial=0.0) for n, f in zip(s.null, r.units * h, strict=True)]
    yield from cases("Equilibrium.q", np.array(work), 0.0 * size, size, 1e-7 + rounded)
    # What is ok is balanced, and what is left is not more than is said.
    told = found.residual
    yield from cases("Equilibrium.residual", told, 0.0 * size, 1.0, 1e-6 + 1e3 * rounded)
    over = np.maximum(np.array(work) / np.maximum(size, 1e-300) - 10.0 * told, 0.0)
    yield from cases("Equilibrium.residual", over, 0.0 * size, 1.0, 1e-9 + rounded)
    if r.top.nc:
        left = r.units * (h - np.einsum("srv,sr->sv", jacobian, found.lam))
        yield from cases("Equilibrium.lam", instants._size(left), 0.0 * size, size, 1e-6 + rounded)
    forces = r.joint_forces(q, rest, rest)
    at = observed.Instant(r, q, rest, s.placed, rest, forces)
    for w, value in zip(observed.reactions(b.mech), reactions, strict=True):
        unit = s.length if w.what.part == "moment" else 1.0
        scale = (observed._force(at) + 1e-7 * stiff * far) * unit
        yield from cases("Reaction, settled", value, w.oracle(at), scale, 1e-5)
    yield from _modes(b, r, s, found, cases)


def _modes(b: mechanisms.Batch, r: Dynamics, s: Any, found: Any, cases: Any) -> Iterator[Judged]:
    """Stability, and natural frequencies of the first samples."""
    stiffness = tangent(r, s)
    mass = r.mass_matrix(s.q)
    damping = damped(r, s)
    linear = linearized(b, s, found.q)
    for i in range(r.n):
        if not cases.ok[i] or s.near_rank[i]:
            continue
        n, u = s.null[i], r.units[i]
        k = n.T @ (u[:, None] * stiffness[i] * u) @ n
        m = n.T @ (u[:, None] * mass[i] * u) @ n
        c = n.T @ (u[:, None] * damping[i] * u) @ n
        low = np.linalg.eigvalsh(0.5 * (k + k.T))
        least = low.min(initial=0.0) / max(np.abs(low).max(initial=0.0), 1e-300)
        unstable = float(least < -1e-5)
        yield compare("Equilibrium.status", unstable, 0.0, limit=0.0, detail=_text(b, i))
        if linear is None or n.shape[1] != s.null[0].shape[1]:
            continue  # of a change point, where there are more motions
        if not np.all(np.isfinite(linear.A[i])):
            yield Judged("Linearization.A", FLAGGED, float("nan"), _text(b, i))
            continue
        heavy = np.linalg.eigvalsh(m)
        if heavy.min(initial=1.0) < 1e-7 * heavy.max(initial=1.0):
            continue
        n_free = len(m)
        a = np.block(
            [[np.zeros_like(m), np.eye(n_free)], [-np.linalg.solve(m, k), -np.linalg.solve(m, c)]]
        )
        expected = _sorted(np.linalg.eigvals(a))
        modes = jax.tree_util.tree_map(lambda x, i=i: jnp.asarray(x[i]), linear).modes()
        got = _sorted(np.asarray(modes.eigenvalues))
        top = float(np.max(np.abs(expected), initial=0.0))
        off = _farthest(got, expected)
        # a double root moves by the square root of rounding
        limit = 1e-5 if _apart(expected) > 1e-3 * top else 1e-2
        yield compare("Modes.eigenvalues", off, 0.0, scale=top, limit=limit, detail=_text(b, i))
        lin = jax.tree_util.tree_map(lambda x, i=i: np.asarray(x[i]), linear)
        off = _farthest(np.linalg.eigvals(lin.A), expected)
        yield compare("Linearization.A", off, 0.0, scale=top, limit=limit, detail=_text(b, i))
        free = s.rows[i] @ (lin.motions / u[:, None])
        size = float(np.max(np.abs(lin.motions / u[:, None]), initial=0.0))
        left = float(np.max(np.abs(free), initial=0.0))
        yield compare(
            "Linearization.motions", left, 0.0, scale=size, limit=1e-8, detail=_text(b, i)
        )
        if _apart(expected) > 1e-3 * top and np.min(np.abs(expected)) > 1e-3 * top:
            ratios = np.sort(np.asarray(modes.damping_ratios))
            wanted = np.sort(-expected.real / np.abs(expected))
            yield compare(
                "Modes.damping_ratios", ratios, wanted, scale=1.0, limit=limit, detail=_text(b, i)
            )
        hertz = np.sort(np.asarray(modes.frequencies))
        wanted = np.sort(np.abs(expected)) / (2.0 * np.pi)
        yield compare("Modes.frequencies", hertz, wanted, limit=limit, detail=_text(b, i))


def linearized(b: mechanisms.Batch, s: Any, q: Any) -> Any:
    """The linearisations of all samples; None where a drive moves, which is not at rest."""
    if s.r.drives:
        return None
    left, chosen = s.null[0].copy(), []
    for _ in range(left.shape[1]):  # the largest pivot of each column
        k = int(np.argmax(np.linalg.norm(left, axis=1)))
        chosen.append(s.r.top.speed_names[k])
        row = left[k] / np.linalg.norm(left[k])
        left = left - np.outer(left @ row, row)

    def engine(mech: mbd.Mechanism, q: Any) -> Any:
        return mbd.linearize(mech, q, independent=chosen)

    return mbd.lanes.vmap(engine)(b.stacked, q)


def _sorted(x: Any) -> Any:
    return x[np.lexsort((x.imag, x.real, np.round(np.abs(x), 9)))]


def _farthest(found: Any, expected: Any) -> float:
    """The farthest that an expected root is from the nearest that was found."""
    if len(found) != len(expected):
        return np.inf
    return float(np.max(np.min(np.abs(found[:, None] - expected), axis=0), initial=0.0))


def _apart(x: Any) -> float:
    d = np.abs(x[:, None] - x) + np.diag(np.full(len(x), np.inf))
    return float(np.min(d, initial=np.inf))


def tangent(r: Dynamics, s: Any) -> Any:
    """K (samples, nv, nv): minus the rate of ``Tᵀf + Jᵀλ`` along each speed, λ fixed."""
    rest = np.zeros((r.n, r.nv))
    lam = [
        np.linalg.lstsq(x.T, h, 1e-9)[0]
        for x, h in zip(s.rows, r.units * r.bias(s.q, rest), strict=True)
    ]
    lam = np.stack(lam) if r.n else np.zeros((0, 0))
    out = np.zeros((r.n, r.nv, r.nv))
    for k in range(r.nv):
        e = np.zeros((r.n, r.nv))
        e[:, k] = 1.0
        out[:, :, k] = _unbalanced(r, s.q + 1j * H * r.rates(s.q, e), lam).imag / H
    return out


def _unbalanced(r: Dynamics, q: Any, lam: Any) -> Any:
    """``h − Jᵀλ`` at rest."""
    each = []
    wrenches, efforts = r.loads(q, np.zeros((r.n, r.nv)))
    for k in range(r.nv):
        e = np.zeros((r.n, r.nv))
        e[:, k] = 1.0
        twist = r.twists(r.place(q, e))
        work = np.sum(twist * wrenches, axis=(-1, -2)) + efforts[:, k]
        rate = r.conditions(q, e).d - r.conditions(q, 0.0 * e).d
        each.append(-work - np.sum(rate * lam, axis=-1))
    return np.stack(each, -1)


def damped(r: Dynamics, s: Any) -> Any:
    """C (samples, nv, nv): the rate of h along each speed."""
    out = np.zeros((r.n, r.nv, r.nv))
    columns = r.twist_columns(s.q)
    for k in range(r.nv):
        v = np.zeros((r.n, r.nv), complex)
        v[:, k] = 1j * H
        wrenches, efforts = r.loads(s.q, v)
        flat = wrenches.imag.reshape(r.n, -1) / H
        out[:, :, k] = -np.einsum("skv,sk->sv", columns, flat) - efforts.imag / H
    return out
