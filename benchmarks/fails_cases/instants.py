"""Single states of mechanisms: positions, speeds, equations, accelerations, forces, observables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from fails_cases import mechanisms, observed, state_parts
from fails_cases.judge import LIMITS
from fails_cases.judged import Judged, compare
from fails_cases.rigid_dynamics import RANK, Dynamics

SHARE = 12.0
BODIES = "rigid bodies in NumPy"
MAXIMAL = "Newton-Euler equations in maximal coordinates by SVD"
NUMBERS = (
    {
        "Assembly.q": f"closure errors of all joints of {BODIES}",
        "Assembly.residual": f"closure errors of all joints of {BODIES}",
        "assemble_velocity": f"rates of the closure errors of {BODIES}",
        "assemble_acceleration": "second rates of the closure errors, by complex steps",
        "Pose.rotation": BODIES,
        "Pose.position": BODIES,
        "point_position": BODIES,
        "point_velocity": f"{BODIES}, rates of positions",
        "body_velocities": f"{BODIES}, rates of positions",
        "body_accelerations": f"{BODIES}, complex steps along the motion",
        "body_jacobian": f"{BODIES}, rates of positions",
        "centre_of_mass": BODIES,
        "momentum": f"momenta of {BODIES}",
        "coordinate_rates": "the quaternion's product in NumPy",
        "joint_coordinates": "the coordinates of the state",
        "constraint_residual": f"distances of joint halves of {BODIES}",
        "constraint_jacobian": "motions that the conditions of rigid bodies allow, by SVD",
        "gamma": "accelerations by complex steps",
        "mass_matrix": f"momenta of {BODIES}",
        "bias": f"Newton-Euler equations of {BODIES}, complex steps",
        "kinetic_energy": f"momenta of {BODIES}",
        "potential_energy": f"heights and springs of {BODIES}",
        "forward_dynamics": "Gauss's principle on rigid bodies in NumPy, by SVD",
        "forward_dynamics, conditions": "second rates of the closure errors, by complex steps",
        "forward_dynamics, multipliers": "balance of generalised forces, by NumPy",
        "inverse_dynamics": "virtual work along the motions that the conditions allow",
        "joint_reactions": MAXIMAL,
        "StateCheck.residual": f"closure errors of all joints of {BODIES}",
        "StateCheck.slip": f"rates of the closure errors of {BODIES}",
        "Snapshot.vdot": "Gauss's principle on rigid bodies in NumPy, by SVD",
        "denoc_equations": f"momenta and Newton-Euler equations of {BODIES}",
        "DeNOC.twist": f"{BODIES}, rates of positions",
        "neutral": f"{BODIES} where they are drawn",
        "Mobility.kutzbach": "the count of bodies and freedoms",
        "Mobility.rank": "singular values of complex-step Jacobians",
        "Mobility.dof": "singular values of complex-step Jacobians",
    }
    | observed.ORACLES
    | state_parts.ORACLES
)

T = 0.4
SPACE = {
    "Revolute": 5, "Prismatic": 5, "Helical": 5, "Fixed": 6, "Cylindrical": 4, "Universal": 4,
    "Spherical": 3, "Planar": 3, "Free": 0, "Rod": 1, "PointOnLine": 2, "PointOnPlane": 1,
    "ParallelAxes": 2, "PerpendicularAxes": 1,
}  # fmt: skip
"""Freedoms that each joint takes from a body."""
PLANE = {"Revolute": 2, "Prismatic": 2, "PointOnLine": 1, "Planar": 0, "Rod": 1, "Fixed": 3}
ACCELERATION = LIMITS["acceleration"]


class Answer(NamedTuple):
    """What the engine says of one sample's state."""

    q: Any
    v: Any
    vdot: Any
    ok: Any
    numbers: dict[str, Any]
    watched: list[Any]


def engine(
    watched: Any, mech: mbd.Mechanism, change: Any, speeds: Any, y: Any, unit: Any
) -> Answer:
    """All numbers of one state near the drawn one."""
    guess = mbd.step_coordinates(mech, jnp.asarray(mbd.neutral(mech), mech.dtype), change)
    found = mbd.assemble(mech, guess=guess, t=T, throw=False)
    q = found.q
    v = mbd.assemble_velocity(mech, q, guess=speeds, t=T)
    check = mbd.check_state(mech, q, v, t=T)
    vdot, lam = mbd.forward_dynamics(mech, q, v, T)
    wanted = mbd.assemble_acceleration(mech, q, v, guess=y, t=T)
    body, point = mech.structure.bodies[-1], mech.structure.points[-1]
    at = mbd.observe.Snapshot(mech, q, v, T)
    numbers = {
        "Assembly.residual": found.residual,
        "assemble_acceleration": wanted,
        "poses": mbd.poses(mech, q),
        "point_position": mbd.point_position(mech, q, body, point),
        "point_velocity": mbd.point_velocity(mech, q, v, body, point),
        "body_velocities": mbd.body_velocities(mech, q, v),
        "body_accelerations": mbd.body_accelerations(mech, q, v, y),
        "body_jacobian": mbd.body_jacobian(mech, q, body, point),
        "centre_of_mass": mbd.centre_of_mass(mech, q),
        "momentum": mbd.momentum(mech, q, v),
        "coordinate_rates": mbd.coordinate_rates(mech, q, v),
        "joint_coordinates": mbd.joint_coordinates(mech, q),
        "constraint_residual": mbd.constraint_residual(mech, guess, T),
        "guess": guess,
        "constraint_jacobian": mbd.constraint_jacobian(mech, q),
        "gamma": mbd.gamma(mech, q, v, T),
        "mass_matrix": mbd.mass_matrix(mech, q),
        "bias": mbd.bias(mech, q, v, T),
        "kinetic_energy": mbd.kinetic_energy(mech, q, v),
        "potential_energy": mbd.potential_energy(mech, q, T),
        "lam": lam,
        "inverse": mbd.inverse_dynamics(mech, q, v, wanted, T),
        "joint_reactions": mbd.joint_reactions(mech, q, v, vdot, lam, T),
        "StateCheck.residual": check.residual,
        "StateCheck.slip": check.slip,
        "Snapshot.vdot": at.vdot,
        "denoc_equations": mbd.denoc_equations(mech, q, v, T),
        "DeNOC.twist": mbd.denoc(mech, q, v).twist,
    }
    numbers |= state_parts.numbers(mech, q, v, T, check, guess, y, unit)
    ok = (found.status == 0) & (check.status == 0)
    return Answer(q, v, vdot, ok, numbers, [w.what.value(at) for w in watched])


def judged(seed: int, size: int) -> Iterator[Judged]:
    """All numbers of some samples of every kind of mechanism."""
    samples = max(3, round(size / 55 / len(mechanisms.KINDS)))
    for name in mechanisms.KINDS:
        b = mechanisms.batch(name, samples, seed)
        watched = observed.kinematic(b.mech) + observed.dynamic(b.mech)
        yield from judge_states(b, watched, answers(b, watched))
        yield from _mobility(b)
        jax.clear_caches()


def answers(b: mechanisms.Batch, watched: Any) -> Answer:
    """The engine's answers for random states of a batch, as NumPy arrays."""
    rng, top, n = np.random.default_rng([b.seed, 7]), mbd.topology(b.mech), len(b.dicts)
    turns = np.array([k == "angle" for k in top.speed_kinds])
    units = np.where(turns, 1.0, b.sizes[:, None])
    change = 0.1 * units * rng.normal(size=(n, top.nv)) * rng.choice([0.0, 1.0, 1.0], size=(n, 1))
    speeds = units * rng.normal(size=(n, top.nv)) * 10.0 ** rng.uniform(-3, 1, (n, 1))
    y = units * rng.normal(size=(n, top.nv))
    called = mbd.lanes.vmap(lambda *x: engine(watched, *x))
    found = called(b.stacked, change, speeds, y, np.broadcast_to(units, y.shape))
    found = jax.tree_util.tree_map(np.asarray, found)
    return found._replace(numbers=found.numbers | {"y": y})


class _Cases:
    """Compares arrays of all samples, and counts the samples that say that they are not ok."""

    def __init__(self, b: mechanisms.Batch, ok: Any, skipped: Any, about: str = ""):
        self.b, self.ok, self.skipped, self.about = b, ok, skipped, about

    def __call__(
        self, number: str, found: Any, expected: Any, scale: Any = 0.0, limit: Any = 1e-9
    ) -> Iterator[Judged]:
        n = len(self.ok)
        scale, limit = np.broadcast_to(scale, n), np.broadcast_to(limit, n)
        for i in range(n):
            if self.skipped[i]:
                continue
            want = np.asarray(expected[i], float)
            if self.ok[i] and np.any(np.isnan(want)):  # indeterminate
                continue
            text = f"{self.b.name}, sample {i} of {n}, {self.b.sizes[i]:.2g} m, seed {self.b.seed}"
            text += self.about
            yield compare(
                number,
                found[i],
                want,
                limit=float(limit[i]),
                detail=text,
                scale=float(scale[i]),
                ok=bool(self.ok[i]),
            )


def judge_states(b: mechanisms.Batch, watched: Any, found: Answer) -> Iterator[Judged]:
    """The cases of a batch."""
    r = Dynamics(b.dicts, mbd.topology(b.mech))
    ok = found.ok & np.all(np.isfinite(found.q), 1) & np.all(np.isfinite(found.v), 1)
    neutral = np.tile(np.asarray(mbd.neutral(b.mech), float), (r.n, 1))
    q, v = np.where(ok[:, None], found.q, neutral), np.where(ok[:, None], found.v, 0.0)
    state = _State(r, q, v, least=RANK if b.kind.rough else 1e-8)
    cases = _Cases(b, ok, state.near_rank)
    yield from _kinematics(b, r, state, found, cases)
    yield from _dynamics(b, r, state, found, cases)
    yield from _watched(state, watched, found, cases)
    yield from state_parts.judge(r, state, found, cases, ok)


class _State:
    """What the oracle knows of the samples' states.

    Attributes:
        error: closure error over the length.
        near_rank: samples whose rows are nearly dependent, of which nothing is asked.
        null: motions that the conditions allow, in scaled speeds.
        slack: by how much rounding may move v̇.
        changing: samples at a change point with speeds that no path has: no v̇ fits.
    """

    def __init__(self, r: Dynamics, q: Any, v: Any, t: float = T, least: float = 1e-8):
        self.r, self.q, self.v, self.t = r, q, v, t
        self.placed = r.place(q, v)
        self.conditions = r.conditions(q, v, t)
        rows, self.still = r.jacobian(q, t)
        self.rows = rows * r.units[:, None, :]
        self.gamma = r.gamma(q, v, t)
        self.solved = r.motion(q, v, t)
        self.vdot = np.stack([s.vdot for s in self.solved])
        self.length = r.length[:, 0]
        self.error = np.max(np.abs(self.conditions.v), axis=1, initial=0.0) / self.length
        sizes = [_singular(x) for x in self.rows]
        self.near_rank = np.array([np.any((s > least) & (s < 1e-4)) for s in sizes])
        self.null = [_null(x) for x in self.rows]
        both = zip(self.rows, self.gamma, strict=True)
        left = [g - a @ np.linalg.lstsq(a, g, RANK)[0] for a, g in both]
        swift = _size(v / r.units) ** 2 / r.length[:, 0]
        self.changing = _size(np.stack(left)) > 1e-9 * (swift + _size(self.gamma))
        self.slack = self._slack()

    def _slack(self) -> Any:
        """How far v̇ moves, in the scaled norm, by a hundred roundings of the state."""
        rng = np.random.default_rng(0)
        out = np.zeros(self.r.n)
        for _ in range(2):
            dq = 1e-9 * rng.normal(size=self.v.shape) / self.r.units * self.r.length**0
            rates = self.r.rates(self.q, dq * self.r.units * 1.0)
            moved = self.r.motion(self.q + rates, self.v * (1.0 + 1e-9 * rng.normal()), self.t)
            vdot = np.stack([s.vdot for s in moved])
            out = np.maximum(out, _size(np.nan_to_num(vdot - self.vdot) / self.r.units))
        return out * np.maximum(1e-2, 1e10 * self.error)


def _text(b: mechanisms.Batch, i: int, where: str) -> str:
    return f"{b.name}, sample {i} of {len(b.dicts)}{where}, {b.sizes[i]:.2g} m, seed {b.seed}"


def _singular(rows: Any) -> Any:
    s = np.linalg.svd(rows, compute_uv=False) if rows.size else np.ones(1)
    return s / max(s.max(initial=0.0), 1e-300)


def _null(rows: Any) -> Any:
    if not rows.size:
        return np.eye(rows.shape[1])
    _, s, vt = np.linalg.svd(rows)
    return vt[int(np.sum(s > RANK * s[0])) :].T


def _size(x: Any) -> Any:
    return np.max(np.abs(x), axis=1, initial=0.0)


def _kinematics(b: Any, r: Dynamics, s: _State, found: Answer, cases: _Cases) -> Iterator[Judged]:
    x, length, zero = found.numbers, s.length, np.zeros(r.n)
    allowed = max(1e-9, 10.0 * b.kind.rough)
    yield from cases("Assembly.q", s.error, zero, limit=allowed)
    yield from cases("Assembly.residual", x["Assembly.residual"] / length, zero, limit=allowed)
    yield from cases("StateCheck.residual", x["StateCheck.residual"] / length, zero, limit=allowed)
    swift = _size(s.v / r.units)
    slip = _size(s.conditions.d)
    yield from cases("StateCheck.slip", x["StateCheck.slip"], zero, swift, allowed)
    yield from cases("assemble_velocity", slip, zero, swift + _size(s.still), allowed)
    still = np.einsum("srv,sv->sr", s.rows, x["assemble_acceleration"] / r.units) - s.gamma
    # The guess too, as it is changed least: it may be far larger than what is left of it.
    size = _size(x["assemble_acceleration"] / r.units) + _size(s.gamma) + _size(x["y"] / r.units)
    none = np.any(np.isnan(x["assemble_acceleration"]), axis=1) & s.changing
    expected = np.where(none, np.nan, 0.0)
    yield from cases("assemble_acceleration", _size(still), expected, size, allowed)
    reach = observed._reach(observed.Instant(r, s.q, s.v, s.placed, zero, []))
    for n in r.bodies:
        pose = x["poses"][n]
        yield from cases("Pose.rotation", pose.rotation, s.placed[n][0].v)
        com = r.point(s.placed, n, r.com[n]).v
        yield from cases("Pose.position", pose.position, com, reach)
    body, point = b.mech.structure.bodies[-1], b.mech.structure.points[-1]
    there = r.point(s.placed, body, r.points[point])
    far = np.max(np.abs(s.v), axis=1) * (1.0 + reach)
    yield from cases("point_position", x["point_position"], there.v, reach)
    yield from cases("point_velocity", x["point_velocity"], there.d, far)
    twists = r.twists(s.placed)
    rate = r.convective(s.q, s.v) + np.einsum("skv,sv->sk", r.twist_columns(s.q), x["y"])
    rate = rate.reshape(twists.shape)
    push = np.max(np.abs(rate), axis=(1, 2))
    for i, n in enumerate(r.bodies):
        yield from cases("body_velocities", x["body_velocities"][n], twists[:, i], far)
        yield from cases("body_accelerations", x["body_accelerations"][n], rate[:, i], push)
    columns = r.twist_columns(s.q).reshape(r.n, len(r.bodies), 6, -1)[:, r.bodies.index(body)]
    arm = (there.v - r.point(s.placed, body, r.com[body]).v)[:, :, None]
    moved = columns[:, 3:] + np.cross(columns[:, :3], arm, axis=1)
    jacobian = np.concatenate([columns[:, :3], moved], 1)
    scaled = np.max(np.abs(jacobian * r.units[:, None, :]), axis=(1, 2)) * (1.0 + reach)
    yield from cases(
        "body_jacobian",
        x["body_jacobian"] * r.units[:, None, :],
        jacobian * r.units[:, None, :],
        scaled,
    )
    yield from _momenta(r, s, x, twists, reach, cases)
    order = [r.bodies.index(n) for n in r.top.bodies]
    twist = twists[:, order].reshape(r.n, -1)
    yield from cases("DeNOC.twist", x["DeNOC.twist"].reshape(r.n, -1), twist, far)
    yield from cases("coordinate_rates", x["coordinate_rates"], r.rates(s.q, s.v))
    for n in r.top.tree:
        place = r.top.layout[n]
        if place.q.stop > place.q.start:
            yield from cases("joint_coordinates", x["joint_coordinates"][n], s.q[:, place.q])
    yield from _rows(r, s, found, cases)


def _momenta(
    r: Dynamics, s: _State, x: Any, twists: Any, reach: Any, cases: Any
) -> Iterator[Judged]:
    """Centre of mass and momentum, where a body has a mass."""
    mass = r.mass[:, :, None]
    total = np.sum(mass, axis=1)
    coms = np.stack([r.point(s.placed, n, r.com[n]).v for n in r.bodies], 1)
    turns = np.stack([s.placed[n][0].v for n in r.bodies], 1)
    with np.errstate(all="ignore"):
        centre = np.sum(mass * coms, axis=1) / total
    push = mass * twists[..., 3:]
    inertia = turns @ r.inertia @ np.swapaxes(turns, -1, -2)
    spin = np.einsum("sbij,sbj->sbi", inertia, twists[..., :3])
    arms = np.cross(coms - centre[:, None], push)
    found = np.concatenate([np.sum(spin + arms, axis=1), np.sum(push, axis=1)], -1)
    size = np.max(np.abs(push), axis=(1, 2)) * (1.0 + reach) + np.max(np.abs(spin), axis=(1, 2))
    yield from cases("centre_of_mass", x["centre_of_mass"], centre, reach)
    yield from cases("momentum", x["momentum"], found, size)


def _rows(r: Dynamics, s: _State, found: Answer, cases: _Cases) -> Iterator[Judged]:
    """Residual, Jacobian and γ, whose rows the oracle has in another form."""
    x = found.numbers
    kinds = np.array([k == "moment" for k in r.top.row_kinds], bool)
    rows = x["constraint_jacobian"] * np.where(kinds, r.length, 1.0)[:, :, None]
    rows = np.where(cases.ok[:, None, None], rows * r.units[:, None, :], 0.0)
    if not kinds.size:
        return
    size = np.max(np.abs(rows), axis=(1, 2))
    left = [np.max(np.abs(a @ n), initial=0.0) for a, n in zip(rows, s.null, strict=True)]
    ranks = [
        np.sum(_singular(a) > RANK) == a.shape[1] - n.shape[1]
        for a, n in zip(rows, s.null, strict=True)
    ]
    wrong = np.where(ranks, left, np.inf)
    slack = 1e-8 + 1e3 * s.error
    yield from cases("constraint_jacobian", wrong, 0.0 * size, size, slack)
    scaled = x["gamma"] * np.where(kinds, r.length, 1.0)
    vdot = np.nan_to_num(s.vdot) / r.units
    swift = _size(s.v / r.units) ** 2 / s.length
    miss = np.einsum("srv,sv->sr", rows, vdot) - scaled
    scale = _size(vdot) * size + _size(scaled) + swift
    keep = ~np.any(np.isnan(s.vdot), axis=1) & ~s.changing
    yield from cases(
        "gamma", np.where(keep, _size(miss), np.nan), np.where(keep, 0.0, np.nan), scale, slack
    )
    still = np.zeros_like(s.v)
    guess = np.where(cases.ok[:, None], x["guess"], s.q)
    placed = r.place(guess, still)
    for name in r.top.cut:
        j, place = r.joints[name], r.top.layout[name].rows
        if j.type not in ("Spherical", "Universal", "Revolute", "Rod", "PointOnPlane"):
            continue
        row = r._closure(placed, j)[0][0].v
        force = np.arange(place.start, place.stop)[~kinds[place]]
        sizes = np.linalg.norm(x["constraint_residual"][:, force], axis=1)
        reach = np.max(np.abs(placed[j.b][1].v), axis=1) + s.length
        yield from cases("constraint_residual", sizes, np.linalg.norm(row, axis=1), reach)


def _dynamics(b: Any, r: Dynamics, s: _State, found: Answer, cases: _Cases) -> Iterator[Judged]:
    x, u = found.numbers, r.units
    mass, h = r.mass_matrix(s.q), r.bias(s.q, s.v, s.t)
    scaled = u[:, :, None] * x["mass_matrix"] * u[:, None, :]
    yield from cases("mass_matrix", scaled, u[:, :, None] * mass * u[:, None, :])
    columns = np.abs(r.twist_columns(s.q))
    loads = np.abs(r.loads(s.q, s.v, s.t)[0]).reshape(r.n, -1)
    force = _size(u * (np.einsum("skv,sk->sv", columns, loads) + np.abs(h)))
    stiff = np.array([_stiffest(d) for d in b.dicts]) * s.length
    yield from cases("bias", u * x["bias"], u * h, np.maximum(force, stiff))
    dense, effort = x["denoc_equations"]
    dense = u[:, :, None] * dense * u[:, None, :]
    yield from cases("denoc_equations", dense, u[:, :, None] * mass * u[:, None, :])
    yield from cases("denoc_equations", u * effort, -u * h, np.maximum(force, stiff))
    kinetic, potential = r.energies(s.q, s.v)
    yield from cases("kinetic_energy", x["kinetic_energy"], kinetic)
    if not any(k == "Torque" for k, _ in r.forces.values()):
        size = np.maximum(force, stiff) * s.length
        yield from cases("potential_energy", x["potential_energy"], potential, size)
    vdot = s.vdot / u
    size = _size(np.nan_to_num(vdot))
    known = np.isfinite(vdot)
    off = np.where(known, found.vdot / u - vdot, 0.0)
    with np.errstate(invalid="ignore"):
        limit = ACCELERATION + s.slack / np.maximum(size, 1e-300)
        yield from cases("forward_dynamics", _size(off), np.zeros(r.n), size, limit)
        same = np.where(known, x["Snapshot.vdot"] / u - vdot, 0.0)
        yield from cases("Snapshot.vdot", _size(same), np.zeros(r.n), size, limit)
    miss = _size(np.einsum("srv,sv->sr", s.rows, found.vdot / u) - s.gamma)
    size = _size(found.vdot / u) + _size(s.gamma) + _size(s.v / u) ** 2 / s.length
    slack = ACCELERATION + 1e3 * s.error
    yield from cases("forward_dynamics, conditions", miss, np.zeros(r.n), size, slack)
    lam, jacobian = x["lam"], x["constraint_jacobian"]
    idle = np.where(np.isfinite(found.vdot), found.vdot, 0.0)
    carried = np.einsum("srv,sr->sv", jacobian, lam)
    inertia = np.einsum("svw,sw->sv", mass, idle)
    left = u * (inertia + h - carried)
    size = np.maximum(np.maximum(force, _size(u * inertia)), _size(u * carried))
    yield from cases("forward_dynamics, multipliers", _size(left), np.zeros(r.n), size, 1e-6)
    tau, _ = x["inverse"]
    wanted = x["assemble_acceleration"]
    needed = np.einsum("svw,sw->sv", mass, wanted) + h - tau
    work = [np.max(np.abs(n.T @ f), initial=0.0) for n, f in zip(s.null, u * needed, strict=True)]
    none = np.any(np.isnan(wanted), axis=1) & s.changing
    size = np.maximum(force, _size(u * (needed + tau)))
    slack = 1e-8 + 1e3 * s.error
    yield from cases("inverse_dynamics", np.array(work), np.where(none, np.nan, 0.0), size, slack)


def _stiffest(data: dict[str, Any]) -> float:
    return max([float(np.max(f.get("stiffness", 0.0))) for f in data["forces"]], default=0.0)


def _watched(s: _State, watched: Any, found: Answer, cases: _Cases) -> Iterator[Judged]:
    r = s.r
    given = np.where(np.isfinite(found.vdot), found.vdot, 0.0)
    rate = r.convective(s.q, s.v) + np.einsum("skv,sv->sk", r.twist_columns(s.q), given)
    forces = r.joint_forces(s.q, s.v, given, s.t)
    at = observed.Instant(r, s.q, s.v, s.placed, rate.reshape(r.n, -1, 6), forces)
    stiff = np.array([_stiffest(d) for d in cases.b.dicts]) * s.length
    for w, value in zip(watched, found.watched, strict=True):
        limit = 1e-6 if w.number in ("Reaction", "DriveEffort") else 1e-8
        size = w.size(at)
        if w.number == "Reaction":
            size = size + stiff * 1e-7 * (s.length if w.what.part == "moment" else 1.0)
        yield from cases(w.number, value, w.oracle(at), size, limit)
    reactions = found.numbers["joint_reactions"]
    force = observed._force(at)
    for name in r.joints:
        expected = observed._wrench(at, name)
        for part, unit in ((slice(0, 3), s.length), (slice(3, 6), 1.0)):
            size = (force + 1e-7 * stiff) * unit
            found_part = reactions[name][:, part]
            yield from cases("joint_reactions", found_part, expected[:, part], size, 1e-6)


def _mobility(b: mechanisms.Batch) -> Iterator[Judged]:
    """Of the first samples, as drawn."""
    r = Dynamics(b.dicts, mbd.topology(b.mech))
    q = np.tile(np.asarray(mbd.neutral(b.mech), float), (r.n, 1))
    rows = r.jacobian(q)[0] * r.units[:, None, :]
    tree = r.place(q, np.zeros((1, r.nv)))
    for i in range(min(4, r.n)):
        text = _text(b, i, ", as drawn")
        off = max(float(np.max(np.abs(t.v[i] - np.eye(3)))) for t, _ in tree.values())
        apart = any("axis_b" in j.x for j in r.joints.values())  # drawn turned
        if not apart:
            yield compare("neutral", off, 0.0, limit=1e-12, detail=text)
        each, held = (3, PLANE) if r.planar else (6, SPACE)
        lost = len(r.couplings) + sum(held[j.type] for j in r.joints.values())
        sizes = _singular(rows[i]) if rows[i].size else np.zeros(0)
        if np.any((sizes > (RANK if b.kind.rough else 1e-8)) & (sizes < 1e-3)):
            continue
        rank = int(np.sum(sizes > RANK))
        mech = jax.tree_util.tree_map(lambda x, i=i: x[i], b.stacked)
        found = mbd.mobility(mech)
        yield compare(
            "Mobility.kutzbach", found.kutzbach, each * len(r.bodies) - lost, limit=0.0, detail=text
        )
        yield compare("Mobility.rank", found.rank, rank, limit=0.0, detail=text)
        yield compare("Mobility.dof", found.dof, r.nv - rank, limit=0.0, detail=text)
