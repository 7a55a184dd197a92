"""What else is known of a state: DeNOC blocks, snapshots, statuses, projections, measures.

Part of the family `instants`, whose states and rigid bodies it uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import observed
from fails_cases.judged import Judged
from fails_cases.rigid import skew
from jaxmbd.observe import element_measures

_BODIES = "rigid bodies in NumPy"
_MAXIMAL = "Newton-Euler equations in maximal coordinates by SVD"
ORACLES = {
    "DeNOC.mass": f"inertias of {_BODIES}",
    "DeNOC.gyro": f"angular velocities of {_BODIES}",
    "DeNOC.n_d": f"twists of {_BODIES} for unit speeds",
    "DeNOC.n_l": f"places of {_BODIES}, and which of them a joint moves",
    "Snapshot.accelerations": f"{_BODIES}, complex steps along the motion",
    "Snapshot.lam": "balance of generalised forces, by NumPy",
    "Snapshot.reactions": _MAXIMAL,
    "Snapshot.settled": "that the mechanism moves",
    "Snapshot.undetermined": "whether multipliers can balance the loads at rest, by NumPy",
    "StateCheck.status": f"closure errors of {_BODIES}; accelerations by SVD",
    "StateCheck.conditioning": "errors of accelerations, against those by SVD",
    "step_coordinates": "rotations that are multiplied, in NumPy",
    "project": f"closure errors of {_BODIES}, and the metric of their momenta",
    "element_measures": f"springs between {_BODIES}",
}
OFF = 1e-6
"""How far off the constraints states are that are projected, as at the end of a step."""
SMALL = 1e-3
"""A small step of coordinates."""


def numbers(
    mech: mbd.Mechanism, q: Any, v: Any, t: float, check: Any, guess: Any, y: Any, unit: Any
) -> dict[str, Any]:
    """The engine's numbers at a state, and at states off the constraints.

    Args:
        mech: the mechanism.
        q, v, t: the state.
        check: what `check_state` says of it.
        guess: coordinates that may be off closure.
        y: a random change (nv,) of the speeds.
        unit: sizes (nv,) of changes of the coordinates.
    """
    top, d = mbd.topology(mech), mbd.denoc(mech, q, v)
    at = mbd.observe.Snapshot(mech, q, v, t)
    rest = mbd.observe.Snapshot(mech, q, moving=False)
    held = rest.lam
    moved = mbd.step_coordinates(mech, q, OFF * unit * jnp.cos(jnp.arange(top.nv) + 1.0))
    both = at.accelerations
    brought = mbd.project(mech, moved, v + OFF * y, t)
    return {
        "DeNOC.mass": d.mass,
        "DeNOC.gyro": d.gyro,
        "DeNOC.n_l": d.n_l,
        "DeNOC.n_d": d.n_d,
        "Snapshot.accelerations": jnp.stack(
            [jnp.concatenate(x) for x in zip(both.angular, both.linear, strict=True)]
        ),
        "Snapshot.lam": at.lam,
        "Snapshot.reactions": at.reactions,
        "Snapshot.settled": jnp.asarray(at.settled),
        "Snapshot.undetermined": rest.undetermined,
        "lam at rest": held,
        "StateCheck.conditioning": check.conditioning,
        "StateCheck.status": mbd.check_state(mech, guess, t=t).status,
        "step": mbd.step_coordinates(mech, q, SMALL * y),
        "step back": mbd.step_coordinates(mech, mbd.step_coordinates(mech, q, y), -y),
        "moved": moved,
        "moved speeds": v + OFF * y,
        "project": brought,
        "project said": mbd.check_state(mech, *brought, t=t).status,
        "element_measures": {
            n: {k: m.value for k, m in x.items()}
            for n, x in element_measures(mech, q, v, t).items()
        },
    }


def judge(r: Any, s: Any, found: Any, cases: Any, ok: Any) -> Iterator[Judged]:
    """The cases of a batch, of the samples that are ok."""
    x = found.numbers
    yield from _denoc(r, s, x, cases)
    yield from _snapshot(r, s, x, found, cases)
    yield from _rest(r, s, x, cases)
    yield from _off(r, s, x, cases, ok)
    yield from _measures(r, s, x, cases)


def _size(x: Any) -> Any:
    return np.max(np.abs(x.reshape(len(x), -1)), axis=1, initial=0.0)


def _denoc(r: Any, s: Any, x: Any, cases: Any) -> Iterator[Judged]:
    """``n_l`` takes a body's twist to the bodies that it carries, ``n_d`` speeds to twists."""
    top, n = r.top, len(r.top.bodies)
    order = [r.bodies.index(name) for name in top.bodies]
    columns = r.twist_columns(s.q).reshape(r.n, n, 6, r.nv)[:, order]
    com = np.stack([r.point(s.placed, b, r.com[b]).v for b in top.bodies], 1)
    n_l, n_d = np.zeros((r.n, 6 * n, 6 * n)), np.zeros((r.n, 6 * n, r.nv))
    child = {top.bodies[i]: i for i in range(n)}
    above = {}
    for i, joint in enumerate(top.tree):
        j, body = r.joints[joint], top.bodies[i]
        above[i] = child.get(j.a if j.b == body else j.b)
        n_d[:, 6 * i : 6 * i + 6, top.layout[joint].v] = columns[:, i][..., top.layout[joint].v]
        k = i
        while k is not None:
            block = np.broadcast_to(np.eye(6), (r.n, 6, 6)).copy()
            block[:, 3:, :3] = -skew(com[:, i] - com[:, k])
            n_l[:, 6 * i : 6 * i + 6, 6 * k : 6 * k + 6] = block
            k = above[k]
    reach = observed._reach(observed.Instant(r, s.q, s.v, s.placed, s.v, []))
    yield from cases("DeNOC.n_l", x["DeNOC.n_l"], n_l, 1.0 + reach, 1e-12)
    yield from cases("DeNOC.n_d", x["DeNOC.n_d"], n_d, 1.0 + reach, 1e-11)
    mass, gyro = np.zeros((r.n, 6 * n, 6 * n)), np.zeros((r.n, 6 * n, 6 * n))
    inertia, twists = r.inertias(s.placed)[:, order], r.twists(s.placed)[:, order]
    for i, k in enumerate(order):
        turn, move = slice(6 * i, 6 * i + 3), slice(6 * i + 3, 6 * i + 6)
        mass[:, turn, turn] = inertia[:, i]
        mass[:, move, move] = r.mass[:, k, None, None] * np.eye(3)
        gyro[:, turn, turn] = gyro[:, move, move] = skew(twists[:, i, :3])
    for part in (slice(0, 3), slice(3, 6)):  # moments of inertia, then masses
        at = np.concatenate([np.arange(6 * i, 6 * i + 6)[part] for i in range(n)])
        pick = np.ix_(np.arange(r.n), at, at)
        yield from cases("DeNOC.mass", x["DeNOC.mass"][pick], mass[pick], limit=1e-12)
    yield from cases("DeNOC.gyro", x["DeNOC.gyro"], gyro, _size(s.v), 1e-10)


def _snapshot(r: Any, s: Any, x: Any, found: Any, cases: Any) -> Iterator[Judged]:
    given = np.where(np.isfinite(found.vdot), found.vdot, 0.0)
    rate = r.convective(s.q, s.v) + np.einsum("skv,sv->sk", r.twist_columns(s.q), given)
    rate = rate.reshape(r.n, -1, 6)
    order = [r.bodies.index(name) for name in r.top.bodies]
    yield from cases("Snapshot.accelerations", x["Snapshot.accelerations"], rate[:, order])
    carried = np.einsum("srv,sr->sv", x["constraint_jacobian"], x["Snapshot.lam"])
    h = r.bias(s.q, s.v, s.t) + np.einsum("svw,sw->sv", r.mass_matrix(s.q), given)
    columns = np.abs(r.twist_columns(s.q))
    loads = np.abs(r.loads(s.q, s.v, s.t)[0]).reshape(r.n, -1)
    size = _size(r.units * np.einsum("skv,sk->sv", columns, loads))
    size = np.maximum(np.maximum(size, _size(r.units * h)), _size(r.units * carried))
    yield from cases("Snapshot.lam", _size(r.units * (h - carried)), np.zeros(r.n), size, 1e-6)
    yield from cases("Snapshot.settled", x["Snapshot.settled"], np.zeros(r.n), limit=0.0)
    forces = r.joint_forces(s.q, s.v, given, s.t)
    at = observed.Instant(r, s.q, s.v, s.placed, rate, forces)
    force = observed._force(at) + 1e-7 * s.length * np.array([_stiffest(d) for d in cases.b.dicts])
    for name in r.joints:
        expected, got = observed._wrench(at, name), x["Snapshot.reactions"][name]
        for part, unit in ((slice(0, 3), s.length), (slice(3, 6), 1.0)):
            number = "Snapshot.reactions"
            yield from cases(number, got[:, part], expected[:, part], force * unit, 1e-6)
    # The error of accelerations is about ε over the conditioning.
    kept, known = x["StateCheck.conditioning"], np.isfinite(s.vdot)
    off = _size(np.where(known, (found.vdot - s.vdot) / r.units, 0.0))
    swift = _size(np.nan_to_num(s.vdot) / r.units)
    claim = 1e5 * np.finfo(float).eps / np.maximum(kept, 1e-300)
    limit = claim + s.slack / np.maximum(swift, 1e-300) + 1e3 * s.error
    # At a change point with speeds that no path has v̇ is a compromise between rows.
    skipped = cases.skipped | s.changing | _unclear(r, s.q, s.t)
    clear = type(cases)(cases.b, cases.ok, skipped)
    yield from clear("StateCheck.conditioning", off, np.zeros(r.n), swift, limit)
    inside = (kept >= 0.0) & (kept <= 1.0 + 1e-12)
    yield from cases("StateCheck.conditioning", inside, np.ones(r.n), limit=0.0)


def _stiffest(data: dict[str, Any]) -> float:
    return max([float(np.max(f.get("stiffness", 0.0))) for f in data["forces"]], default=0.0)


def _rest(r: Any, s: Any, x: Any, cases: Any) -> Iterator[Judged]:
    """At rest, of the speeds that a loop depends on: can ``Jᵀ λ`` be what the loads ask for?"""
    if not r.top.nc:
        yield from cases("Snapshot.undetermined", x["Snapshot.undetermined"], np.zeros(r.n), 1.0)
        return
    still = np.zeros_like(s.v)
    h = r.bias(s.q, still) * r.units
    columns = np.abs(r.twist_columns(s.q))
    loads = np.abs(r.loads(s.q, still)[0]).reshape(r.n, -1)
    size = _size(r.units * np.einsum("skv,sk->sv", columns, loads)) + _size(h)
    free = np.zeros(r.n)
    for i in range(r.n):
        bound = np.max(np.abs(s.rows[i]), axis=0) > 1e-9 * np.max(np.abs(s.rows[i]))
        rows, asked = s.rows[i][:, bound], h[i, bound]
        lam = np.linalg.lstsq(rows.T, asked, 1e-9)[0]
        free[i] = np.max(np.abs(asked - rows.T @ lam), initial=0.0) / max(size[i], 1e-300)
    lost = np.asarray(x["Snapshot.undetermined"], bool)
    nothing = np.any(np.isnan(x["lam at rest"]), axis=1)
    yield from cases("Snapshot.undetermined", lost, nothing.astype(float), limit=0.0)
    # Spins of links between balls are held by friction up to a hundredth of the loads.
    wanted = np.where(free > 0.05, 1.0, np.where(free < 1e-9, 0.0, np.nan))
    yield from cases("Snapshot.undetermined", lost, wanted, limit=0.0)


def _off(r: Any, s: Any, x: Any, cases: Any, ok: Any) -> Iterator[Judged]:
    """States that are off the constraints are told so, and are brought back by `project`.

    `project` has no status: `check_state` says whether its state is on the constraints.
    """
    rest = np.zeros_like(s.v)
    guess = np.where(ok[:, None], x["guess"], s.q)
    off = _size(r.conditions(guess, rest, s.t).v) / s.length
    said = np.asarray(x["StateCheck.status"]) == 0
    # Conditions that contradict each other by a millionth are those of a drawing's digits.
    wrong = np.where(off > 1e-5, said, False)
    yield from cases("StateCheck.status", wrong, np.zeros(r.n), limit=0.0)
    yield from _steps(r, s, x, cases)
    q, v = (np.where(ok[:, None], y, z) for y, z in zip(x["project"], (s.q, s.v), strict=True))
    fine = np.all(np.isfinite(q), axis=1) & np.all(np.isfinite(v), axis=1)
    q, v = np.where(fine[:, None], q, s.q), np.where(fine[:, None], v, s.v)
    skipped = cases.skipped | _unclear(r, s.q, s.t) | _unclear(r, q, s.t)
    cases = type(cases)(cases.b, ok & (x["project said"] == 0), skipped)
    before = _size(r.conditions(np.where(ok[:, None], x["moved"], s.q), rest, s.t).v)
    after = r.conditions(q, v, s.t)
    # Two Newton passes square what was open twice; at what is left of q, speeds see its square.
    allowed = max(1e-9, 10.0 * cases.b.kind.rough) + (before / s.length) ** 2
    none = np.where(fine, 0.0, np.nan)
    yield from cases("project", _size(after.v) / s.length, none, 1.0, allowed)
    swift = _size(v / r.units) + _size(s.still)
    yield from cases("project", _size(after.d), none, swift, allowed + 1e-8)
    rows = r.jacobian(q, s.t)[0] * r.units[:, None, :]
    momentum = np.einsum("svw,sw->sv", r.mass_matrix(q), v - x["moved speeds"]) * r.units
    left = np.zeros(r.n)
    for i in range(r.n):
        if ok[i] and np.all(np.isfinite(momentum[i])):
            left[i] = np.max(np.abs(_null(rows[i]).T @ momentum[i]), initial=0.0)
    changed = _size(np.where(np.isfinite(momentum), momentum, 0.0))
    # Motions without inertia may have any metric.
    sizes = np.linalg.eigvalsh(r.mass_matrix(q) * r.units[:, :, None] * r.units[:, None])
    light = sizes[:, 0] < 1e-6 * sizes[:, -1]
    none = np.where(light, np.nan, none)
    heavy = np.max(np.abs(r.mass_matrix(q)) * r.units[:, :, None] * r.units[:, None], axis=(1, 2))
    scale = changed + 1e-9 * heavy * swift
    yield from cases("project", left, none, scale, 2e-2)


def _unclear(r: Any, q: Any, t: Any) -> Any:
    """Whether conditions are next to dependent (n,): how many motions there are is a convention."""
    rows = r.jacobian(q, t)[0] * r.units[:, None, :]
    if not rows.size:
        return np.zeros(r.n, bool)
    sizes = np.linalg.svd(np.where(np.isfinite(rows), rows, 0.0), compute_uv=False)
    share = sizes / np.maximum(sizes[:, :1], 1e-300)
    return np.any((share > 1e-10) & (share < 1e-4), axis=1)


def _null(rows: Any) -> Any:
    if not rows.size:
        return np.eye(rows.shape[1])
    _, sizes, vt = np.linalg.svd(rows)
    return vt[int(np.sum(sizes > 1e-6 * sizes[0])) :].T


def _steps(r: Any, s: Any, x: Any, cases: Any) -> Iterator[Judged]:
    """A change of angles and travels is added; of balls it is a rotation of its angle."""
    found, back = x["step"], x["step back"]
    wanted = s.q.copy()
    for name in r.top.tree:
        place = r.top.layout[name]
        change = SMALL * x["y"][:, place.v]
        if r.joints[name].type not in ("Spherical", "Free"):
            wanted[:, place.q] += change
            continue
        p, w = s.q[:, place.q][:, :4], change[:, :3]
        turn = np.linalg.norm(w, axis=1, keepdims=True)
        half = np.concatenate([np.cos(0.5 * turn), 0.5 * np.sinc(0.5 * turn / np.pi) * w], axis=1)
        e0, e, f0, f = half[:, :1], half[:, 1:], p[:, :1], p[:, 1:]
        scalar = e0 * f0 - np.sum(e * f, axis=1, keepdims=True)
        wanted[:, place.q][:, :4] = np.concatenate([scalar, e0 * f + f0 * e + np.cross(e, f)], 1)
        wanted[:, place.q][:, 4:] += change[:, 3:]
    # A quaternion's step is one of third order in the angle, and back along the same axis.
    third = _size(SMALL * x["y"]) ** 3
    yield from cases("step_coordinates", found, wanted, 1.0, 1e-12 + third)
    yield from cases("step_coordinates", back, s.q, 1.0, 1e-12)


def _measures(r: Any, s: Any, x: Any, cases: Any) -> Iterator[Judged]:
    zero = np.zeros((r.n, len(r.bodies), 6))
    at = observed.Instant(r, s.q, s.v, s.placed, zero, [])
    for w in observed._elements(cases.b.mech):
        got = x["element_measures"][w.what.element][w.what.measure]
        yield from cases("element_measures", got, w.oracle(at), w.size(at), 1e-8)
