"""Random mechanisms of two to eight bodies, with every joint and condition, and bad laws."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd

KINDS = ("space", "plane", "hostile")
TREE = (
    "Revolute", "Prismatic", "Helical", "Cylindrical", "Universal", "Spherical", "Planar", "Free",
    "Fixed",
)  # fmt: skip
CUT = (
    "Spherical", "Universal", "Cylindrical", "Planar", "Rod", "Revolute", "Prismatic", "Helical",
    "Fixed", "PointOnLine", "PointOnPlane", "PointOnCurve", "Cam", "FlatFollower",
    "ParallelAxes", "PerpendicularAxes",
)  # fmt: skip
DRIVEN = ("Revolute", "Prismatic", "Helical", "Cylindrical", "Universal", "Planar")
RUBBING = ("Revolute", "Prismatic", "Cylindrical")


class Structure(NamedTuple):
    """A random mechanism and its properties.

    Attributes:
        mech: the mechanism.
        conservative: whether its energy is constant.
        rubbing: whether there is friction, which the judge's equations do not include.
        text: description of its parts.
    """

    mech: mbd.Mechanism
    conservative: bool
    rubbing: bool
    text: str


def circle(u: Any, p: Any) -> Any:
    """A circle of radius p about the origin in the plane of x and y."""
    return p * jnp.stack([jnp.cos(u), jnp.sin(u), 0.0 * u])


def cubic(x: Any, _: Any) -> Any:
    """A stiffening spring."""
    return 3.0 * x**3


def motor(t: Any, amplitude: Any) -> Any:
    """A vibrating drive."""
    return amplitude * jnp.sin(3.0 * t)


HOSTILE = {
    "root": lambda x, _: jnp.sqrt(x),
    "logarithm": lambda x, _: jnp.log(x),
    "inverse": lambda x, _: 1.0 / x,
    "jump": lambda x, _: jnp.where(x > 0.0, 50.0, -50.0),
    "dry friction": lambda _, rate: 30.0 * jnp.sign(rate),
    "rigid": lambda x, _: 1e12 * x,
    "exponential": lambda x, _: jnp.expm1(200.0 * x),
    "driving damper": lambda _, rate: -5.0 * rate,
    "NaN beyond 0.3": lambda x, _: jnp.where(jnp.abs(x) > 0.3, jnp.nan, x),
    "stairs": lambda x, _: jnp.floor(20.0 * x),
}
"""Laws of (extension, rate) that are not finite, not smooth, or not stable."""


def structure(seed: int, kind: str) -> Structure:
    """The random mechanism of a seed, of one of `KINDS`."""
    return _Builder(np.random.default_rng([seed, KINDS.index(kind)]), kind).build()


class _Builder:
    """Draws one mechanism; `freedom` is the freedom of its tree minus the number of rows."""

    def __init__(self, rng: np.random.Generator, kind: str):
        self.rng, self.kind, self.plane = rng, kind, kind == "plane"
        self.size = 2 if self.plane else 3
        n = int(rng.choice(np.arange(2, 9), p=[0.22, 0.22, 0.2, 0.14, 0.1, 0.07, 0.05]))
        self.coms = rng.uniform(-1.0, 1.0, (n, self.size))
        self.names = [f"body{i}" for i in range(n)]
        self.joints: dict[str, Any] = {}
        self.freedom = 0

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def build(self) -> Structure:
        bodies = {n: self.body(i) for i, n in enumerate(self.names)}
        single = self.tree()
        cut = self.loops()
        couplings, drives = self.conditions(single)
        forces, damped, rubbing = self.forces(single)
        gravity = np.array([1.0, -2.0, -9.0])[-self.size :]
        mech = mbd.Mechanism(
            bodies,
            self.joints,
            forces,
            drives=drives,
            couplings=couplings,
            gravity=gravity,
            cut=cut,
        )
        parts = [type(j).__name__ for j in self.joints.values()]
        text = f"{self.kind}, {len(bodies)} bodies, {parts}, {[*couplings, *drives, *forces]}"
        driven = bool(drives) or self.kind == "hostile"
        return Structure(mech, not (damped or driven), rubbing, text)

    def body(self, i: int) -> mbd.Body:
        """A rigid body, a point mass or a massless body; the last one is a rigid body."""
        rng, com = self.rng, self.coms[i]
        draw = rng.random() if i + 1 < len(self.names) else 1.0
        if draw < 0.15:
            return mbd.Body(0.0, com)
        mass = rng.uniform(0.5, 3.0)
        if self.plane:
            return mbd.Body(mass, com, rng.uniform(0.01, 0.2))
        if draw < 0.3:
            return mbd.Body(mass, com)
        square = rng.uniform(0.1, 0.5, 3) ** 2
        axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        return mbd.Body(mass, com, axes @ np.diag(mass / 12.0 * (square.sum() - square)) @ axes.T)

    def tree(self) -> list[str]:
        """A joint from each body to an earlier one; returns those that may be driven."""
        rng, single = self.rng, []
        kinds = ("Revolute", "Revolute", "Prismatic", "Free", "Fixed") if self.plane else TREE
        for i, name in enumerate(self.names):
            kind = str(rng.choice(kinds if i else kinds[:2]))
            parent = "ground" if i == 0 or self.chance(0.25) else str(rng.choice(self.names[:i]))
            forward = kind == "Free" or self.chance(0.6)
            a, b = (parent, name) if forward else (name, parent)
            joint = self.joint(kind, a, b, self.coms[i] + 0.4 * rng.normal(size=self.size))
            self.joints[f"tree{i}"] = joint
            mech_freedom = 3 if kind == "Free" and self.plane else joint.nv
            self.freedom += mech_freedom
            if kind in DRIVEN:
                single.append(f"tree{i}")
        return single

    def loops(self) -> tuple[str, ...]:
        """Up to three cut joints, some with halves drawn apart, some duplicated."""
        rng, wanted, cut = self.rng, int(self.rng.integers(0, 4)), []
        kinds = ("Revolute", "Prismatic", "Rod", "PointOnLine") if self.plane else CUT
        for k in range(14):
            if len(cut) >= wanted:
                break
            kind, at = str(rng.choice(kinds)), rng.uniform(-1.0, 1.0, self.size)
            a, b = (str(x) for x in rng.choice(["ground", *self.names], 2, replace=False))
            joint = self.joint(kind, a, b, at, apart=self.chance(0.5))
            rows = 2 if self.plane and kind in ("Revolute", "Prismatic") else len(joint.rows)
            rows = 1 if self.plane and kind == "PointOnLine" else rows
            if rows >= self.freedom:
                continue
            self.freedom -= rows
            for name in (f"cut{k}", f"again{k}")[: 2 if self.chance(0.15) else 1]:
                cut.append(name)
                self.joints[name] = joint
        return tuple(cut)

    def joint(self, kind: str, a: str, b: str, at: Any, apart: bool = False) -> Any:
        rng, n = self.rng, self.size
        axis = np.eye(n)[rng.integers(n)] if self.chance(0.3) else rng.normal(size=n)
        other = at + rng.normal(size=n)
        make = getattr(mbd, kind)
        if kind == "Free":
            return make(a, b)
        if kind == "Rod":
            return make(a, b, at, other)
        if kind == "Fixed" or (self.plane and kind == "Revolute"):
            return make(a, b, at)
        if self.plane:
            return make(a, b, at, axis)
        across = np.cross(axis, rng.normal(size=n))
        match kind:
            case "Spherical":
                return make(a, b, at, **({"at_b": at + 0.02 * across} if apart else {}))
            case "Helical":
                return make(a, b, at, axis, rng.uniform(-0.3, 0.3))
            case "Universal" | "Planar":
                return make(a, b, at, axis, across + 0.2 * axis * (kind == "Universal"))
            case "PointOnCurve":
                return make(a, b, at, at + [0.7, 0, 0], circle, 0.7, samples=12)
            case "Cam":
                where = at + [0.6, 0, 0.1]
                return make(a, b, at, where, circle, 0.5, normal=(0, 0, 1), radius=0.1, samples=12)
            case "FlatFollower":
                where = at + [0.1, 0.5, 0.2]
                return make(a, b, at, where, circle, 0.5, normal=(0, 1, 0), samples=12)
            case "ParallelAxes":
                return make(a, b, axis)
            case "PerpendicularAxes":
                return make(a, b, axis, axis_b=across)
        return make(a, b, at, axis)

    def conditions(self, single: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """A gear and a drive, if enough freedom is left."""
        rng, couplings, drives = self.rng, {}, {}
        if len(single) >= 2 and self.freedom > 1 and self.chance(0.3):
            x, y = (str(s) for s in rng.choice(single, 2, replace=False))
            couplings["gear"] = mbd.Gear(x, y, ratio=rng.uniform(-2.0, 2.0))
            self.freedom -= 1
        if single and self.freedom > 1 and self.chance(0.3):
            drives["motor"] = mbd.Drive(str(rng.choice(single)), motor, rng.uniform(-0.3, 0.3))
        return couplings, drives

    def forces(self, single: list[str]) -> tuple[dict[str, Any], bool, bool]:
        """Springs and other forces; whether they dissipate, and whether there is friction."""
        rng, names, coms = self.rng, self.names, self.coms
        damping = 0.7 if self.chance(0.3) else 0.0
        top = 2.0 * np.eye(self.size)[-1]
        forces: dict[str, Any] = {
            "spring": mbd.SpringDamper(
                "ground", names[-1], top, coms[-1], stiffness=20.0, damping=damping
            ),
            "cubic": mbd.SpringDamper(
                names[0], names[1], coms[0] + 0.1, coms[1] - 0.2, stiffness=9.0, law=cubic
            ),
        }
        if single and self.chance(0.5):
            joint = str(rng.choice(single))
            forces["torsion"] = mbd.TorsionSpring(joint, stiffness=5.0, damping=damping)
        if self.chance(0.3):
            push = rng.normal(size=self.size)
            forces["push"] = mbd.PointForce(names[1], coms[1] + 0.3, push)
        rubbing = [s for s in single if type(self.joints[s]).__name__ in RUBBING]
        if not self.plane and rubbing and self.chance(0.15):
            forces["friction"] = mbd.JointFriction(
                str(rng.choice(rubbing)), coefficient=0.2, radius=0.02, length=0.1, viscous=0.05
            )
        if self.kind == "hostile":
            name, law = list(HOSTILE.items())[rng.integers(len(HOSTILE))]
            forces[name] = mbd.SpringDamper("ground", names[0], top / 2, coms[0], 1.0, law=law)
        return forces, damping > 0.0 or "friction" in forces, "friction" in forces
