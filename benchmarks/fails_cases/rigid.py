"""Rigid bodies in NumPy: the oracle of the mechanical families. It shares no code with the package.

It reads a mechanism's plain numbers (`jaxmbd.io.to_dict`), of many samples of one topology at once,
and which joints are in the tree and where their coordinates stand (`jaxmbd.topology`). Points and
directions are pairs of a value and its rate (`Dual`); everything is analytic, so that second
derivatives follow by complex steps (Squire and Trapp, SIAM Review 40, 1998), exact to rounding.
Arrays have the samples along the last axis but one of components: ``(..., samples, 3)``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

H = 1e-30  # complex step


class Dual(NamedTuple):
    """A quantity and its rate."""

    v: Any
    d: Any

    def minus(self, other: Dual) -> Dual:
        return Dual(self.v - other.v, self.d - other.d)

    def plus(self, other: Dual) -> Dual:
        return Dual(self.v + other.v, self.d + other.d)

    def dot(self, o: Dual) -> Dual:
        return Dual(_sum(self.v * o.v), _sum(self.d * o.v + self.v * o.d))

    def cross(self, o: Dual) -> Dual:
        return Dual(np.cross(self.v, o.v), np.cross(self.d, o.v) + np.cross(self.v, o.d))

    def times(self, c: Any) -> Dual:
        return Dual(self.v * c, self.d * c)

    def length(self) -> Dual:
        length = np.sqrt(_sum(self.v * self.v))
        return Dual(length, _sum(self.v * self.d) / length)


def _sum(x: Any) -> Any:
    return np.sum(x, axis=-1, keepdims=True)


def mul(r: Any, x: Any) -> Any:
    """Matrices times vectors."""
    return np.einsum("...ij,...j->...i", r, x)


def turned(r: Dual, x: Any) -> Dual:
    """A rotation (value and rate) of a fixed vector."""
    return Dual(mul(r.v, x), mul(r.d, x))


def product(a: Dual, b: Dual) -> Dual:
    return Dual(a.v @ b.v, a.d @ b.v + a.v @ b.d)


def transposed(a: Dual) -> Dual:
    return Dual(np.swapaxes(a.v, -1, -2), np.swapaxes(a.d, -1, -2))


def skew(a: Any) -> Any:
    o = np.zeros_like(a[..., 0])
    x, y, z = np.moveaxis(a, -1, 0)
    return np.stack([np.stack(r, -1) for r in ((o, -z, y), (z, o, -x), (-y, x, o))], -2)


def vee(m: Any) -> Any:
    """Half the axial vector: ``vee(skew(a)) = a``."""
    return 0.5 * np.stack(
        [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]], -1
    )


def unit(a: Any) -> Any:
    return a / np.sqrt(_sum(a * a))


def about(axis: Any, angle: Any) -> Any:
    """Rodrigues' rotation."""
    k = skew(axis)
    s, c = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    return np.eye(3) + s * k + (1.0 - c) * (k @ k)


def of_quaternion(p: Any) -> Any:
    p = p / np.sqrt(_sum(p * p))
    e0, e = p[..., 0], p[..., 1:]
    eye = np.eye(3) * (2.0 * e0 * e0 - 1.0)[..., None, None]
    return eye + 2.0 * e[..., :, None] * e[..., None, :] + 2.0 * skew(e * e0[..., None])


def between(u: Any, w: Any) -> Any:
    """The least rotation of a unit vector onto another."""
    x = np.cross(u, w)
    c = _sum(u * w)[..., None]
    return c * np.eye(3) + skew(x) + x[..., :, None] * x[..., None, :] / (1.0 + c)


def angle(y: Any, x: Any) -> Any:
    """``atan2``, also one complex step away from real numbers."""
    real = np.arctan2(y.real, x.real)
    if not (np.iscomplexobj(y) or np.iscomplexobj(x)):
        return real
    square = x.real**2 + y.real**2
    return real + 1j * (x.real * y.imag - y.real * x.imag) / square


def log(r: Any) -> Any:
    """Rotation vector, below half a turn."""
    w, c = vee(r), 0.5 * (np.trace(r, axis1=-2, axis2=-1)[..., None] - 1.0)
    square = _sum(w * w)
    small = square.real < 1e-10
    s = np.sqrt(np.where(small, 1.0, square))
    factor = np.where(small & (c.real > 0.0), 1.0 + square / 6.0, angle(s, c) / s)
    return w * factor


class Unsupported(Exception):
    """The oracle does not know a part."""


class Joint(NamedTuple):
    name: str
    type: str
    a: str
    b: str
    x: dict[str, Any]  # numbers, samples first


class Rigid:
    """Mechanisms of one topology, from their dictionaries; see the module's docstring.

    Attributes:
        length: (samples, 1) RMS distance of points and centres of mass from their mean [m].
        nq, nv: numbers of coordinates and speeds.
        units: (samples, nv) 1/length for angles, 1 for travels.
    """

    def __init__(self, dicts: list[dict[str, Any]], top: Any):
        first, self.top = dicts[0], top
        self.planar, self.n = len(first["gravity"]) == 2, len(dicts)
        self.nq, self.nv = top.nq, top.nv
        self.gravity = self._vectors([d["gravity"] for d in dicts])
        self.points = {
            p["name"]: self._vectors([d["points"][i]["at"] for d in dicts])
            for i, p in enumerate(first["points"])
        }
        self.bodies = [b["name"] for b in first["bodies"]]
        listed = list(zip(*(d["bodies"] for d in dicts), strict=True))
        self.mass = np.array([[b["mass"] for b in x] for x in listed]).T
        self.com = {
            n: self._place([b.get("com", [0.0] * 3) for b in x])
            for n, x in zip(self.bodies, listed, strict=True)
        }
        self.inertia = np.stack([self._inertia(x) for x in listed], 1)
        parts = {k: list(zip(*(d[k] for d in dicts), strict=True)) for k in KINDS}
        self.joints = {x[0]["name"]: self._joint(x) for x in parts["joints"]}
        self.forces, self.drives, self.couplings = (
            {x[0]["name"]: (x[0].get("type", "Drive"), list(x)) for x in parts[k]}
            for k in ("forces", "drives", "couplings")
        )
        spread = np.stack([*self.points.values(), *self.com.values()])
        spread = spread - spread.mean(axis=0)
        self.length = np.sqrt(np.mean(np.sum(spread**2, -1), axis=0))[:, None]
        self.length[self.length == 0.0] = 1.0
        turns = np.array([kind == "angle" for kind in top.speed_kinds])
        self.units = np.where(turns, 1.0 / self.length, 1.0)

    # Numbers.

    def _vectors(self, rows: list[Any]) -> Any:
        x = np.array(rows, float)
        return np.concatenate([x, 0.0 * x[:, :1]], 1) if x.shape[1] == 2 else x

    def _place(self, rows: list[Any]) -> Any:
        if isinstance(rows[0], str):
            return self.points[rows[0]]
        if isinstance(rows[0], dict):
            return self.com[rows[0]["com_of"]]
        return self._vectors(rows)

    def _direction(self, rows: list[Any]) -> Any:
        if isinstance(rows[0][0], str):
            return self.points[rows[0][1]] - self.points[rows[0][0]]
        return self._vectors(rows)

    def _inertia(self, bodies: Any) -> Any:
        x = np.array(
            [
                np.broadcast_to(b.get("inertia", 0.0), (3, 3))
                if not self.planar
                else np.diag([0.0, 0.0, float(b.get("inertia", 0.0))])
                for b in bodies
            ]
        )
        return x

    def numbers(self, parts: list[Any], name: str, default: Any = 0.0) -> Any:
        """A field that is a number or an array, of all samples."""
        return np.array([p.get(name, default) for p in parts], float)

    def _joint(self, rows: Any) -> Joint:
        first, x = rows[0], {}
        for key in ("at", "at_a", "at_b"):
            if key in first:
                x[key] = self._place([r[key] for r in rows])
        for key in ("axis", "axis_a", "axis_b", "normal", "x_axis"):
            if key in first:
                x[key] = unit(self._direction([r[key] for r in rows]))
        for key in ("pitch", "length", "angle"):
            if key in first:
                x[key] = self.numbers(list(rows), key)[:, None]
        kind = first["type"]
        if kind not in TYPES:
            raise Unsupported(kind)
        if self.planar:
            z = np.broadcast_to([0.0, 0.0, 1.0], (self.n, 3))
            if kind in ("Revolute", "Planar"):
                x["axis" if kind == "Revolute" else "normal"] = z
            if kind in ("Free", "Planar"):
                x.setdefault("x_axis", np.broadcast_to([1.0, 0.0, 0.0], (self.n, 3)))
                kind, x["normal"] = "Planar", z
        if kind == "Planar":
            n, along = x["normal"], x["x_axis"]
            x["x"] = unit(along - _sum(n * along) * n)
            x["y"] = np.cross(n, x["x"])
        if first["type"] == "Free":
            x["at"] = self.com[first["b"]]
        if "at_a" in x:
            x["p"], x["pb"] = x["at_a"], x["at_b"]
        elif "at" in x:
            x["p"] = x["at"]
            x["pb"] = x.get("at_b", x["at"])
        return Joint(first["name"], kind, first["a"], first["b"], x)

    # Motion of the bodies.

    def rates(self, q: Any, v: Any) -> Any:
        """q̇."""
        out = np.zeros(np.broadcast_shapes(q.shape[:-1], v.shape[:-1]) + (self.nq,), q.dtype)
        out = out.astype(np.result_type(q, v))
        for name in self.top.tree:
            place, j = self.top.layout[name], self.joints[name]
            p, w = q[..., place.q], v[..., place.v]
            if j.type in ("Spherical", "Free"):
                e0, e, o = p[..., :1], p[..., 1:4], w[..., :3]
                out[..., place.q][..., :1] = -0.5 * _sum(o * e)
                out[..., place.q][..., 1:4] = 0.5 * (e0 * o + np.cross(o, e))
                if j.type == "Free":
                    out[..., place.q][..., 4:] = w[..., 3:]
            elif w.shape[-1]:
                out[..., place.q] = w
        return out

    def _relative(self, j: Joint, q: Any, v: Any) -> tuple[Dual, Dual]:
        """Rotation and translation of b relative to a, in a's axes."""
        x, shape = j.x, q.shape[:-1]
        eye, zero = np.broadcast_to(np.eye(3), (*shape, 3, 3)), np.zeros((*shape, 3))
        rot, spin, trans = eye, zero, Dual(zero, zero)
        axis = x.get("axis", x.get("normal"))
        match j.type:
            case "Revolute" | "Cylindrical" | "Helical" | "Planar":
                rot, spin = about(axis, q[..., 0]), axis * v[..., :1]
            case "Universal":
                first = about(x["axis_a"], q[..., 0])
                rot = first @ about(x["axis_b"], q[..., 1])
                spin = x["axis_a"] * v[..., :1] + mul(first, x["axis_b"]) * v[..., 1:]
            case "Spherical" | "Free":
                rot, spin = of_quaternion(q[..., :4]), v[..., :3]
        match j.type:
            case "Prismatic":
                trans = Dual(axis * q[..., :1], axis * v[..., :1])
            case "Cylindrical":
                trans = Dual(axis * q[..., 1:], axis * v[..., 1:])
            case "Helical":
                trans = Dual(axis * x["pitch"] * q[..., :1], axis * x["pitch"] * v[..., :1])
            case "Planar":
                trans = Dual(
                    x["x"] * q[..., 1:2] + x["y"] * q[..., 2:],
                    x["x"] * v[..., 1:2] + x["y"] * v[..., 2:],
                )
            case "Free":
                trans = Dual(q[..., 4:], v[..., 3:])
        r = Dual(rot, skew(spin) @ rot)
        if j.type != "Universal" and "axis_b" in x and "axis" in x:
            r = product(r, Dual(drawn := between(x["axis_b"], x["axis"]), 0.0 * drawn))
        return r, trans

    def place(self, q: Any, v: Any) -> dict[str, tuple[Dual, Dual]]:
        """Rotation R and shift s of each body: a point drawn at X is at ``R X + s``."""
        shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], (self.n,))
        q = np.broadcast_to(q, (*shape, self.nq))
        v = np.broadcast_to(v, (*shape, self.nv))
        eye, zero = np.broadcast_to(np.eye(3), (*shape, 3, 3)), np.zeros((*shape, 3))
        out = {"ground": (Dual(eye, 0.0 * eye), Dual(zero, zero))}
        for name in self.top.tree:
            j, place = self.joints[name], self.top.layout[name]
            rel, trans = self._relative(j, q[..., place.q], v[..., place.v])
            tip = Dual(j.x["p"] + trans.v, trans.d)  # b's point in a's axes
            if j.a in out:
                r_a, s_a = out[j.a]
                r_b = product(r_a, rel)
                at = turned(r_a, tip.v).plus(Dual(s_a.v, s_a.d + mul(r_a.v, tip.d)))
                out[j.b] = r_b, at.minus(turned(r_b, j.x["pb"]))
            else:
                r_b, s_b = out[j.b]
                r_a = product(r_b, transposed(rel))
                at = turned(r_b, j.x["pb"]).plus(s_b)
                moved = turned(r_a, tip.v)
                moved = Dual(moved.v, moved.d + mul(r_a.v, tip.d))
                out[j.a] = r_a, at.minus(moved)
        return out

    def point(self, placed: Any, body: str, at: Any) -> Dual:
        r, s = placed[body]
        return turned(r, at).plus(s)

    def twists(self, placed: Any) -> Any:
        """(..., samples, bodies, 6): angular velocity, velocity of the centre of mass."""
        out = []
        for n in self.bodies:
            r, _ = placed[n]
            spin = vee(r.d @ np.swapaxes(r.v, -1, -2))
            out.append(np.concatenate([spin, self.point(placed, n, self.com[n]).d], -1))
        return np.stack(out, -2)

    # Conditions.

    def conditions(self, q: Any, v: Any, t: Any = 0.0) -> Dual:
        """Closure errors of all cut joints, couplings and drives [m], and their rates.

        There may be more of them than are independent; angles are multiplied by the length.
        """
        placed, rows = self.place(q, v), []
        for name in self.top.cut:
            rows += [
                row if travel else row.times(self.length)
                for row, travel in self._closure(placed, self.joints[name])
            ]
        for kind, parts in self.couplings.values():
            rows.append(self._coupling(kind, parts, q, v))
        for kind, parts in self.drives.values():
            rows.append(self._drive(kind, parts, placed, q, v, t))
        shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], (self.n,))
        if not rows:
            none = np.zeros((*shape, 0))
            return Dual(none, none)
        wide = [[np.broadcast_to(x, (*shape, x.shape[-1])) for x in r] for r in rows]
        return Dual(*(np.concatenate(x, -1) for x in zip(*wide, strict=True)))

    def _closure(self, placed: Any, j: Joint) -> list[tuple[Dual, bool]]:  # noqa: C901 - joints
        """Rows, and whether they are lengths."""
        x, r_a, r_b = j.x, placed[j.a][0], placed[j.b][0]
        a: Any = None
        b: Any = None
        d: Any = None
        if "p" in x:
            d = self.point(placed, j.b, x["pb"]).minus(self.point(placed, j.a, x["p"]))
        axis = x.get("axis", x.get("normal"))
        if axis is not None:
            a, b = turned(r_a, axis), turned(r_b, x.get("axis_b", axis))
        match j.type:
            case "Spherical":
                return [(d, True)]
            case "Revolute":
                return [(d, True), (a.cross(b), False)]
            case "Cylindrical":
                return [(a.cross(d), True), (a.cross(b), False)]
            case "Prismatic":
                return [(a.cross(d), True), (self._twisted(placed, j), False)]
            case "Fixed":
                return [(d, True), (self._twisted(placed, j), False)]
            case "Helical":
                m = self._misturned(placed, j)
                sine, cosine = _sum(x["axis"] * vee(m.v)), _trace(m.v)
                turn = angle(sine, 0.5 * (cosine - 1.0))
                rate = _sum(x["axis"] * vee(m.d @ np.swapaxes(m.v, -1, -2)))
                along = a.dot(d).minus(Dual(x["pitch"] * turn, x["pitch"] * rate))
                return [(a.cross(d), True), (along, True), (a.cross(b), False)]
            case "Universal":
                drawn = _sum(x["axis_a"] * x["axis_b"])
                row = turned(r_a, x["axis_a"]).dot(turned(r_b, x["axis_b"]))
                return [(d, True), (Dual(row.v - drawn, row.d), False)]
            case "Planar":
                if self.planar:
                    return []
                return [(a.dot(d), True), (a.cross(b), False)]
            case "Rod":
                length = d.length()
                wanted = x.get("length")
                if wanted is None:
                    wanted = np.sqrt(_sum((x["pb"] - x["p"]) ** 2))
                return [(Dual(length.v - wanted, length.d), True)]
            case "PointOnLine":
                return [(a.cross(d), True)]
            case "PointOnPlane":
                return [(a.dot(d), True)]
            case "ParallelAxes":
                return [(a.cross(b), False)]
            case "PerpendicularAxes":
                row = turned(r_a, x["axis_a"]).dot(turned(r_b, x["axis_b"]))
                return [(Dual(row.v - np.cos(x.get("angle", 0.5 * np.pi)), row.d), False)]
        return []

    def _misturned(self, placed: Any, j: Joint) -> Dual:
        """Rotation of b relative to a without the turn that is drawn, in a's axes."""
        m = product(transposed(placed[j.a][0]), placed[j.b][0])
        if "axis_b" in j.x and "axis" in j.x:
            drawn = np.swapaxes(between(j.x["axis_b"], j.x["axis"]), -1, -2)
            m = product(m, Dual(drawn, 0.0 * drawn))
        return m

    def _twisted(self, placed: Any, j: Joint) -> Dual:
        m = self._misturned(placed, j)
        return Dual(vee(m.v), vee(m.d))

    def coordinate(self, joint: str, index: int, q: Any, v: Any) -> Dual:
        """A coordinate of a tree joint."""
        place = self.top.layout[joint]
        if place.q is None or self.joints[joint].type in ("Spherical", "Free"):
            raise Unsupported(f"coordinate of {joint}")
        iq, iv = place.q.start + index, place.v.start + index
        return Dual(q[..., iq : iq + 1], v[..., iv : iv + 1])

    def _coupling(self, kind: str, parts: list[Any], q: Any, v: Any) -> Dual:
        f, p = parts[0], parts
        if kind == "Gear":
            names, ratio = ("joint_a", "index_a", "joint_b", "index_b"), self.numbers(p, "ratio")
        elif kind == "RackAndPinion":
            names, ratio = (
                ("pinion", "index_pinion", "rack", "index_rack"),
                self.numbers(p, "radius"),
            )
        else:
            raise Unsupported(kind)
        a = self.coordinate(f[names[0]], f.get(names[1], 0), q, v)
        b = self.coordinate(f[names[2]], f.get(names[3], 0), q, v)
        row = b.minus(a.times(ratio[:, None]))
        row = Dual(row.v - self.numbers(p, "offset")[:, None], row.d)
        turns = kind == "Gear" and self._turns(f[names[2]], f.get(names[3], 0))
        return row.times(self.length) if turns else row

    def _turns(self, joint: str, index: int) -> bool:
        return self.top.speed_kinds[self.top.layout[joint].v.start + index] == "angle"

    def _drive(self, kind: str, parts: list[Any], placed: Any, q: Any, v: Any, t: Any) -> Dual:
        f = parts[0]
        if f["function"] not in TIMES:
            raise Unsupported(f["function"])
        params = self.numbers(parts, "params")[:, None]
        value, rate = TIMES[f["function"]](t, params)
        if kind == "PointDrive":
            at = self._place([p["at"] for p in parts])
            k = "xyz".index(f["axis"])
            x = self.point(placed, f["body"], at)
            return Dual(x.v[..., k : k + 1] - value, x.d[..., k : k + 1] - rate)
        x = self.coordinate(f["joint"], f.get("index", 0), q, v)
        row = Dual(x.v - value, x.d - rate)
        return row.times(self.length) if self._turns(f["joint"], f.get("index", 0)) else row

    # Derivatives along the motion.

    def jacobian(self, q: Any, t: Any = 0.0) -> tuple[Any, Any]:
        """J (samples, rows, nv) and b (samples, rows) of ``J v = b``."""
        still = self.conditions(q, np.zeros((1, self.nv)), t).d
        each = self.conditions(q, np.eye(self.nv)[:, None, :], t).d - still
        return np.moveaxis(each, 0, -1), -still

    def gamma(self, q: Any, v: Any, t: Any = 0.0) -> Any:
        """γ (samples, rows) of ``J v̇ = γ``."""
        moved = q + 1j * H * self.rates(q, v)
        return -self.conditions(moved, v, t + 1j * H).d.imag / H

    def twist_columns(self, q: Any) -> Any:
        """T (samples, 6 bodies, nv) of ``twists = T v``."""
        each = self.twists(self.place(q, np.eye(self.nv)[:, None, :]))
        return np.moveaxis(each.reshape(self.nv, -1, 6 * len(self.bodies)), 0, -1)

    def convective(self, q: Any, v: Any) -> Any:
        """Accelerations (samples, 6 bodies) at v̇ = 0."""
        moved = q + 1j * H * self.rates(q, v)
        found = self.twists(self.place(moved, v)).imag / H
        return found.reshape(*found.shape[:-2], -1)


def _trace(m: Any) -> Any:
    return np.trace(m, axis1=-2, axis2=-1)[..., None]


KINDS = ("joints", "forces", "drives", "couplings")
TYPES = frozenset(
    "Revolute Prismatic Helical Cylindrical Universal Spherical Planar Free Fixed Rod PointOnLine "
    "PointOnPlane ParallelAxes PerpendicularAxes".split()
)
TIMES: dict[str, Any] = {
    "judge: sine": lambda t, p: (p * np.sin(3.0 * t), 3.0 * p * np.cos(3.0 * t)),
    "judge: ramp": lambda t, p: (p * t + 0.0 * p, p + 0.0 * t),
}
"""Functions of time of drives by registered name, with their rates."""
