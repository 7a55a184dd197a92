"""Loads, motion, statics and joint forces of `rigid` bodies: the oracle's second half.

Accelerations are those of Gauss's least constraint; forces in the joints are the least-norm
solution, by SVD, of the Newton-Euler equations of all bodies in maximal coordinates, with a column
for each constraint wrench of each joint, and its null space says which of them are indeterminate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fails_cases.rigid import (
    H,
    Dual,
    Rigid,
    Unsupported,
    _sum,
    log,
    mul,
    product,
    skew,
    transposed,
    turned,
    unit,
    vee,
)

RANK = 1e-6  # share of the largest singular value below which a row or a motion counts as none


class Solved(NamedTuple):
    """What holds one sample's state in motion or at rest.

    Attributes:
        vdot: accelerations (nv,); NaN along what is not determinate.
        idle: (nv, k) motions that have neither inertia nor constraint, in scaled speeds.
        residual: what the equations of such motions leave, relative to the loads.
    """

    vdot: np.ndarray
    idle: np.ndarray
    residual: float


class Forces(NamedTuple):
    """Joint forces of one sample.

    Attributes:
        wrenches: joint to its constraint wrench (6,) on b, about b's point.
        determinate: joint to whether the equations determine it.
        efforts: of couplings, drives and held coordinates, with whether it is determinate.
        missing: largest force that no joint can carry, relative to the largest force.
        scale: the largest force [N].
    """

    wrenches: dict[str, np.ndarray]
    determinate: dict[str, bool]
    efforts: dict[str, tuple[float, bool]]
    missing: float
    scale: float


class Dynamics(Rigid):
    """`Rigid` with inertia and loads."""

    # Loads.

    def loads(self, q: np.ndarray, v: np.ndarray, t: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Wrenches about the centres of mass (..., bodies, 6), gravity's too; efforts (..., nv)."""
        placed = self.place(q, v)
        shape = placed["ground"][1].v.shape[:-1]
        kind = np.result_type(q, v, float)
        wrenches = np.zeros((*shape, len(self.bodies), 6), kind)
        wrenches[..., 3:] += self.mass[:, :, None] * self.gravity[:, None, :]
        efforts = np.zeros((*shape, self.nv), kind)

        def push(body: str, at: np.ndarray, force: Any, moment: Any = 0.0) -> None:
            if body != "ground":
                arm = at - self.point(placed, body, self.com[body]).v
                i = self.bodies.index(body)
                wrenches[..., i, :3] += np.cross(arm, force) + moment
                wrenches[..., i, 3:] += force

        for kind, parts in self.forces.values():
            self._load(kind, parts, placed, q, v, push, efforts)
        return wrenches, efforts

    def _load(
        self, kind: str, p: list[Any], placed: Any, q: Any, v: Any, push: Any, efforts: Any
    ) -> None:
        f, get = p[0], lambda name, default=0.0: self.numbers(p, name, default)
        match kind:
            case "SpringDamper":
                x_a, x_b, length, free = self._span(placed, p)
                n = x_b.minus(x_a).v / length.v
                tension = self._tension(p, length, free)
                push(f["a"], x_a.v, tension * n)
                push(f["b"], x_b.v, -tension * n)
            case "TorsionSpring":
                if "law" in f:
                    raise Unsupported("law")
                x = self.coordinate(f["joint"], f.get("index", 0), q, v)
                effort = get("stiffness")[:, None] * (x.v - get("free_angle")[:, None])
                effort = effort + get("damping")[:, None] * x.d
                k = self.top.layout[f["joint"]].v.start + f.get("index", 0)
                efforts[..., k : k + 1] -= effort
            case "PointForce":
                if "law" in f:
                    raise Unsupported("law")
                at = self.point(placed, f["b"], self._place([x["at"] for x in p]))
                push(f["b"], at.v, self._vectors([x["force"] for x in p]))
            case "Torque":
                if "law" in f:
                    raise Unsupported("law")
                torque = get("torque")
                if self.planar:
                    torque = torque.reshape(-1, 1) * np.array([0.0, 0.0, 1.0])
                nowhere = np.zeros(3)
                for body, sign in ((f["b"], 1.0), (f["a"], -1.0)):
                    push(body, nowhere, 0.0 * torque, sign * torque)
            case "JointTorque":
                if "law" in f:
                    raise Unsupported("law")
                place = self.top.layout[f["joint"]].v
                torque = get("torque")
                efforts[..., place] += torque[:, None] if torque.ndim == 1 else torque
            case "Bushing":
                x_b, force, moment, _ = self.bushing(p, placed)
                push(f["b"], x_b, force, moment)
                push(f["a"], x_b, -force, -moment)
            case _:
                raise Unsupported(kind)

    def _span(self, placed: Any, p: list[Any]) -> tuple[Dual, Dual, Dual, np.ndarray]:
        f = p[0]
        at_a, at_b = (self._place([x[k] for x in p]) for k in ("at_a", "at_b"))
        x_a, x_b = self.point(placed, f["a"], at_a), self.point(placed, f["b"], at_b)
        drawn = np.sqrt(_sum((at_b - at_a) ** 2))
        free = self.numbers(p, "free_length")[:, None] if "free_length" in f else drawn
        return x_a, x_b, x_b.minus(x_a).length(), free

    def _tension(self, p: list[Any], length: Dual, free: np.ndarray) -> np.ndarray:
        x = length.v - free
        k, c, f0 = (self.numbers(p, n)[:, None] for n in ("stiffness", "damping", "preload"))
        law = p[0].get("law")
        if law is None:
            return f0 + k * x + c * length.d
        if law.get("law") != "judge: cubic":
            raise Unsupported(str(law))
        return f0 + k * x + c * length.d + 3.0 * x**3

    def bushing(self, p: list[Any], placed: Any) -> tuple[Any, Any, Any, Any]:
        """b's point, force and moment on b there, world axes; the deformation."""
        f = p[0]
        at = self._place([x["at"] for x in p])
        at_b = self._place([x["at_b"] for x in p]) if "at_b" in f else at
        frame = np.broadcast_to(np.eye(3), (self.n, 3, 3))
        if "frame" in f:
            given = self.numbers(p, "frame")
            if given.shape[1:] == (3, 3):
                frame = given
            else:
                x, z = unit(given[:, 0]), unit(np.cross(given[:, 0], given[:, 1]))
                frame = np.stack([x, np.cross(z, x), z], -1)
        (r_a, _), (r_b, _) = placed[f["a"]], placed[f["b"]]
        x_a, x_b = self.point(placed, f["a"], at), self.point(placed, f["b"], at_b)
        axes = turned_matrix(r_a, frame)  # world axes of the bushing, that turn with a
        s = product(transposed(axes), turned_matrix(r_b, frame))
        d = x_b.minus(x_a)
        offset = _apply(transposed(axes), d)
        spin = vee(s.d @ np.swapaxes(s.v, -1, -2))
        if f.get("measure", "finite") == "small":
            rho = np.stack([s.v[..., 2, 1], s.v[..., 0, 2], s.v[..., 1, 0]], -1)
            each = [skew(np.broadcast_to(e, rho.shape)) @ s.v for e in np.eye(3)]
            b = np.stack(
                [np.stack([m[..., 2, 1], m[..., 0, 2], m[..., 1, 0]], -1) for m in each], -1
            )
        else:
            rho = log(s.v)
            k, square = skew(rho), _sum(rho * rho)[..., None]
            small = square.real < 1e-6
            theta = np.sqrt(np.where(small, 1.0, square))
            factor = 1.0 / theta**2 - (1.0 + np.cos(theta)) / (2.0 * theta * np.sin(theta))
            series = 1.0 / 12.0 + square / 720.0 + square**2 / 30240.0
            b = np.eye(3) - 0.5 * k + np.where(small, series, factor) * (k @ k)
        delta = np.concatenate([rho, offset.v], -1)
        rate = np.concatenate([mul(b, spin), offset.d], -1)
        effort = -_along(self.numbers(p, "stiffness"), delta)
        effort = effort - _along(self.numbers(p, "damping", [0.0] * 6), rate)
        moment = mul(axes.v, mul(np.swapaxes(b, -1, -2), effort[..., :3]))
        return x_b.v, mul(axes.v, effort[..., 3:]), moment, delta

    def energies(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Kinetic and potential energy (samples,) [J]."""
        placed = self.place(q, v)
        w = self.twists(placed)
        momenta = self.momenta(placed, w)
        kinetic = 0.5 * np.sum(momenta * w, axis=(-1, -2))
        potential = np.zeros_like(kinetic)
        for i, n in enumerate(self.bodies):
            height = np.sum(self.point(placed, n, self.com[n]).v * self.gravity, -1)
            potential = potential - self.mass[:, i] * height
        for kind, p in self.forces.values():
            f, get = p[0], lambda name, p=p: self.numbers(p, name)
            match kind:
                case "SpringDamper":
                    _, _, length, free = self._span(placed, p)
                    x = (length.v - free)[..., 0]
                    potential = potential + get("preload") * x + 0.5 * get("stiffness") * x * x
                    potential = potential + (0.75 * x**4 if "law" in f else 0.0)
                case "TorsionSpring":
                    x = self.coordinate(f["joint"], f.get("index", 0), q, v).v[..., 0]
                    potential = potential + 0.5 * get("stiffness") * (x - get("free_angle")) ** 2
                case "PointForce":
                    at = self.point(placed, f["b"], self._place([x["at"] for x in p])).v
                    force = self._vectors([x["force"] for x in p])
                    potential = potential - np.sum(force * at, -1)
                case "Bushing":
                    delta = self.bushing(p, placed)[3]
                    along = _along(self.numbers(p, "stiffness"), delta)
                    potential = potential + 0.5 * np.sum(along * delta, -1)
        return kinetic, potential

    # Motion.

    def inertias(self, placed: Any) -> np.ndarray:
        """World inertias (..., bodies, 3, 3)."""
        r = np.stack([placed[n][0].v for n in self.bodies], -3)
        return r @ self.inertia @ np.swapaxes(r, -1, -2)

    def momenta(self, placed: Any, twists: np.ndarray) -> np.ndarray:
        turning = mul(self.inertias(placed), twists[..., :3])
        return np.concatenate([turning, self.mass[:, :, None] * twists[..., 3:]], -1)

    def required(self, q: Any, v: Any, twist_rate: Any, t: Any = 0.0) -> np.ndarray:
        """Inertia forces minus loads (samples, 6 bodies) about the centres of mass."""
        placed = self.place(q, v)
        w = self.twists(placed)
        rate = self.momenta(placed, twist_rate.reshape(w.shape))
        rate[..., :3] += np.cross(w[..., :3], self.momenta(placed, w)[..., :3])
        missing = rate - self.loads(q, v, t)[0]
        return missing.reshape(*missing.shape[:-2], -1)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """TᵀMT (samples, nv, nv)."""
        columns = self.twist_columns(q)
        placed = self.place(q, np.zeros((1, self.nv)))
        each = columns.reshape(self.n, len(self.bodies), 6, self.nv)
        turning = self.inertias(placed) @ each[:, :, :3]
        moving = self.mass[:, :, None, None] * each[:, :, 3:]
        momenta = np.concatenate([turning, moving], 2).reshape(self.n, -1, self.nv)
        return np.swapaxes(columns, 1, 2) @ momenta

    def bias(self, q: np.ndarray, v: np.ndarray, t: Any = 0.0) -> np.ndarray:
        """h (samples, nv) of ``M v̇ + h = τ + Jᵀλ``."""
        missing = self.required(q, v, self.convective(q, v), t)
        columns = self.twist_columns(q)
        return np.einsum("skv,sk->sv", columns, missing) - self.loads(q, v, t)[1]

    def motion(self, q: np.ndarray, v: np.ndarray, t: Any = 0.0, tau: Any = 0.0) -> list[Solved]:
        """Accelerations of each sample."""
        mass, h = self.mass_matrix(q), self.bias(q, v, t)
        rows, gamma = self.jacobian(q, t)[0], self.gamma(q, v, t)
        tau = np.broadcast_to(tau, h.shape)
        return [
            solve(mass[i], tau[i] - h[i], rows[i], gamma[i], self.units[i]) for i in range(self.n)
        ]

    # Joint forces.

    def columns(self, q: np.ndarray, t: Any = 0.0, held: Any = ()) -> list[Any]:
        """(name, point on b or None, columns (samples, 6 bodies, k), wrenches (samples, 6, k)).

        Of the constraint wrenches of every joint, and of the efforts of couplings, drives and held
        coordinates: ``(joint, index)`` or ``(body, point, axis)``.
        """
        still = np.zeros((1, self.nv))
        placed, out = self.place(q, still), []
        for name, j in self.joints.items():
            basis = self._wrenches(placed, j)
            x_b = self.point(placed, j.b, j.x["pb"]).v if "pb" in j.x else np.zeros((self.n, 3))
            out.append((name, self._spread(placed, j, x_b, basis), basis))
        for name, (kind, p) in self.couplings.items():
            f = p[0]
            keys = ("joint_a", "joint_b", "index_a", "index_b", "ratio")
            if kind != "Gear":
                keys = ("pinion", "rack", "index_pinion", "index_rack", "radius")
            a, b = ((f[keys[i]], f.get(keys[2 + i], 0)) for i in (0, 1))
            column = self._effort(placed, *b)
            column = column - self.numbers(p, keys[4])[:, None, None] * self._effort(placed, *a)
            out.append((name, column, None))
        for name, (kind, p) in self.drives.items():
            f = p[0]
            if kind == "PointDrive":
                key = (f["body"], self._place([x["at"] for x in p]), f["axis"])
            else:
                key = (f["joint"], f.get("index", 0))
            out.append((name, self._held(placed, key), None))
        for i, key in enumerate(held):
            out.append((f"held {i}", self._held(placed, key), None))
        return out

    def _held(self, placed: Any, key: Any) -> np.ndarray:
        if len(key) == 2:
            return self._effort(placed, *key)
        body, at, axis = key
        force = np.zeros((self.n, 6, 1))
        force[:, 3 + "xyz".index(axis)] = 1.0
        return self._on(placed, body, self.point(placed, body, at).v, force)

    def _on(self, placed: Any, body: str, at: np.ndarray, wrench: np.ndarray) -> np.ndarray:
        """A wrench about a point as column of all bodies."""
        out = np.zeros((self.n, len(self.bodies), 6, wrench.shape[-1]))
        if body != "ground":
            i, arm = self.bodies.index(body), at - self.point(placed, body, self.com[body]).v
            out[:, i, 3:] = wrench[:, 3:]
            out[:, i, :3] = wrench[:, :3] + skew(arm) @ wrench[:, 3:]
        return out.reshape(self.n, 6 * len(self.bodies), wrench.shape[-1])

    def _spread(self, placed: Any, j: Any, at: np.ndarray, wrench: np.ndarray) -> np.ndarray:
        return self._on(placed, j.b, at, wrench) - self._on(placed, j.a, at, wrench)

    def motions(self, placed: Any, j: Any) -> np.ndarray:
        """Twists (samples, 6, nv) of b against a at b's point that a joint allows, world axes."""
        x, r_a, r_b = j.x, placed[j.a][0].v, placed[j.b][0].v
        zero = np.zeros((self.n, 3))
        axis = x.get("axis", x.get("normal"))
        a = mul(r_a, axis) if axis is not None else zero
        each: list[tuple[Any, Any]] = []
        match j.type:
            case "Revolute":
                each = [(a, zero)]
            case "Prismatic":
                each = [(zero, a)]
            case "Cylindrical":
                each = [(a, zero), (zero, a)]
            case "Helical":
                each = [(a, x["pitch"] * a)]
            case "Universal":
                each = [(mul(r_a, x["axis_a"]), zero), (mul(r_b, x["axis_b"]), zero)]
            case "Spherical" | "Free":
                each = [(r_a[..., i], zero) for i in range(3)]
                each += [(zero, r_a[..., i]) for i in range(3) if j.type == "Free"]
            case "Planar":
                each = [(a, zero), (zero, mul(r_a, x["x"])), (zero, mul(r_a, x["y"]))]
        if not each:
            return np.zeros((self.n, 6, 0))
        return np.stack([np.concatenate(s, -1) for s in each], -1)

    def _wrenches(self, placed: Any, j: Any) -> np.ndarray:
        """Constraint wrenches (samples, 6, k) on b about b's point, world axes."""
        r_a, r_b, x = placed[j.a][0].v, placed[j.b][0].v, j.x
        zero = np.zeros((self.n, 3))
        match j.type:
            case "Rod":
                d = self.point(placed, j.b, x["pb"]).v - self.point(placed, j.a, x["p"]).v
                found = [(zero, unit(d))]
            case "PointOnPlane":
                found = [(zero, mul(r_a, x["normal"]))]
            case "PointOnLine":
                found = [(zero, e) for e in _across(mul(r_a, x["axis"]), self.planar)]
            case "ParallelAxes":
                found = [(e, zero) for e in _across(mul(r_a, x["axis"]), self.planar)]
            case "PerpendicularAxes":
                found = [(np.cross(mul(r_b, x["axis_b"]), mul(r_a, x["axis_a"])), zero)]
            case _:
                return self._complement(self.motions(placed, j))
        return np.stack([np.concatenate(w, -1) for w in found], -1)

    def _complement(self, motions: np.ndarray) -> np.ndarray:
        """Wrenches that do no work along motions, moments over the length."""
        out, along = [], [2, 3, 4] if self.planar else range(6)
        for s, length in zip(motions, self.length[:, 0], strict=True):
            scale = np.array([length] * 3 + [1.0] * 3)
            free = (s * scale[:, None])[along]
            u, sizes, _ = np.linalg.svd(free, full_matrices=True)
            w = np.zeros((6, len(along) - free.shape[1]))
            w[along] = u[:, free.shape[1] :]
            assert free.shape[1] == 0 or sizes[free.shape[1] - 1] > 1e-9 * sizes[0]
            out.append(w * scale[:, None])
        return np.stack(out)

    def _effort(self, placed: Any, joint: str, index: int) -> np.ndarray:
        j = self.joints[joint]
        s = self.motions(placed, j)
        if j.type == "Helical":
            s = s * np.array([1.0] * 3 + [0.0] * 3)[:, None]
        e = s @ np.linalg.inv(np.swapaxes(s, 1, 2) @ s)
        x_b = self.point(placed, j.b, j.x["pb"]).v
        return self._spread(placed, j, x_b, e[..., index : index + 1])

    def joint_efforts(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Wrenches (samples, 6 bodies) of efforts along all speeds of tree joints."""
        placed = self.place(q, np.zeros((1, self.nv)))
        out = np.zeros((self.n, 6 * len(self.bodies)))
        for name in self.top.tree:
            place = self.top.layout[name].v
            for i in range(place.stop - place.start):
                k = place.start + i
                if np.any(tau[:, k]):
                    out += tau[:, k : k + 1] * self._effort(placed, name, i)[..., 0]
        return out

    def joint_forces(
        self, q: Any, v: Any, vdot: Any, t: Any = 0.0, tau: Any = None, held: Any = ()
    ) -> list[Forces]:
        """Joint forces of each sample, in motion, or at rest with held coordinates."""
        rate = self.convective(q, v) + np.einsum("skv,sv->sk", self.twist_columns(q), vdot)
        missing = self.required(q, v, rate, t)
        efforts = self.loads(q, v, t)[1] + (0.0 if tau is None else tau)
        missing = missing - self.joint_efforts(q, efforts)
        every = self.columns(q, t, held)
        sizes = np.abs(self.loads(q, v, t)[0]).reshape(self.n, -1)
        return [
            _carried(
                [(name, a[i], None if w is None else w[i]) for name, a, w in every],
                missing[i],
                float(self.length[i, 0]),
                np.maximum(sizes[i], np.abs(missing[i])),
                self.planar,
            )
            for i in range(self.n)
        ]


def _carried(
    every: list[Any], missing: np.ndarray, length: float, sizes: np.ndarray, planar: bool
) -> Forces:
    row = np.where(np.arange(len(missing)) % 6 < 3, 1.0 / length, 1.0)
    if planar:
        row = row * np.isin(np.arange(len(missing)) % 6, (2, 3, 4))
    a = np.concatenate([x for _, x, _ in every], 1) * row[:, None]
    weight = np.maximum(np.linalg.norm(a, axis=0), 1e-300)
    u, s, vt = np.linalg.svd(a / weight, full_matrices=True)
    rank = int(np.sum(s > RANK * max(s[0], 1e-300))) if len(s) else 0
    null = vt[rank:].T
    wanted = row * missing
    found = vt[:rank].T @ ((u[:, :rank].T @ wanted) / s[:rank]) / weight
    scale = max(float(np.max(row * sizes, initial=0.0)), float(np.max(np.abs(wanted), initial=0.0)))
    left = float(np.max(np.abs(a @ found - wanted), initial=0.0)) / (scale or 1.0)
    wrenches, determinate, efforts, k = {}, {}, {}, 0
    for name, x, w in every:
        part = slice(k, k + x.shape[1])
        sure = bool(np.max(np.abs(null[part]), initial=0.0) < 1e-6)
        if w is None:
            efforts[name] = (float(found[k]), sure)
        else:
            wrenches[name], determinate[name] = w @ found[part], sure
        k += x.shape[1]
    return Forces(wrenches, determinate, efforts, left, scale)


def _across(axis: np.ndarray, planar: bool) -> list[np.ndarray]:
    """Two directions across an axis; in the plane one."""
    if planar:
        return [np.cross([0.0, 0.0, 1.0], axis)]
    least = np.eye(3)[np.argmin(np.abs(axis), axis=-1)]
    first = unit(np.cross(axis, least))
    return [first, np.cross(axis, first)]


def solve(
    mass: np.ndarray, force: np.ndarray, rows: np.ndarray, gamma: np.ndarray, units: np.ndarray
) -> Solved:
    """v̇ with ``J v̇ = γ`` and ``Nᵀ (M v̇ − f) = 0`` for N the null space of J."""
    mass, force, rows = units[:, None] * mass * units, units * force, rows * units
    u, s, vt = np.linalg.svd(rows) if len(rows) else (None, np.zeros(0), np.eye(len(force)))
    rank = int(np.sum(s > RANK * max(s.max(initial=0.0), 1e-300)))
    null = vt[rank:].T
    first = vt[:rank].T @ ((u[:, :rank].T @ gamma) / s[:rank]) if rank else np.zeros(len(force))
    inner, wanted = null.T @ mass @ null, null.T @ (force - mass @ first)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    size = max(float(np.max(np.abs(np.diag(mass)), initial=0.0)), 1e-300)
    heavy = values > 1e-11 * size
    along = vectors[:, heavy] @ ((vectors[:, heavy].T @ wanted) / values[heavy])
    lost = vectors[:, ~heavy]
    left = float(np.max(np.abs(lost.T @ wanted), initial=0.0))
    idle = null @ lost
    vdot = first + null @ along
    vdot = np.where(np.max(np.abs(idle), axis=1, initial=0.0) > 1e-6, np.nan, vdot)
    scale = max(float(np.max(np.abs(force), initial=0.0)), 1e-300)
    return Solved(units * vdot, idle, left / scale)


def turned_matrix(r: Dual, m: np.ndarray) -> Dual:
    return Dual(r.v @ m, r.d @ m)


def _apply(r: Dual, x: Dual) -> Dual:
    return Dual(mul(r.v, x.v), mul(r.d, x.v) + mul(r.v, x.d))


def _along(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    return c * x if c.ndim == 2 else mul(0.5 * (c + np.swapaxes(c, -1, -2)), x)


__all__ = ["H", "Dynamics", "Forces", "Solved", "turned"]
