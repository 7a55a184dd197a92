"""Random mechanisms that mix all joint types, trees and loops, for identities."""

from __future__ import annotations

import numpy as np

import jaxmbd as mbd
from jaxmbd import lanes

TREE_TYPES = (
    "revolute",
    "prismatic",
    "helical",
    "cylindrical",
    "universal",
    "spherical",
    "planar",
    "free",
    "fixed",
)
CUT_TYPES = (
    "spherical",
    "universal",
    "cylindrical",
    "planar",
    "rod",
    "revolute",
    "prismatic",
    "helical",
    "fixed",
)


def random_body(rng: np.random.Generator, com: np.ndarray) -> mbd.Body:
    """A solid body: three positive principal moments that obey the triangle inequality."""
    mass = rng.uniform(0.5, 3.0)
    a = rng.uniform(0.1, 0.5, 3)
    principal = (
        mass / 12 * np.array([a[1] ** 2 + a[2] ** 2, a[0] ** 2 + a[2] ** 2, a[0] ** 2 + a[1] ** 2])
    )
    r, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return mbd.Body(mass, com, r @ np.diag(principal) @ r.T)


def random_joint(rng: np.random.Generator, kind: str, a: str, b: str, at: np.ndarray):
    """A joint of the named kind through `at` with random directions."""
    axis = rng.normal(size=3)
    other = np.cross(axis, rng.normal(size=3)) + 0.2 * axis
    match kind:
        case "revolute":
            return mbd.Revolute(a, b, at, axis)
        case "prismatic":
            return mbd.Prismatic(a, b, at, axis)
        case "helical":
            return mbd.Helical(a, b, at, axis, rng.uniform(0.05, 0.3))
        case "cylindrical":
            return mbd.Cylindrical(a, b, at, axis)
        case "universal":
            return mbd.Universal(a, b, at, axis, other)
        case "spherical":
            return mbd.Spherical(a, b, at)
        case "planar":
            return mbd.Planar(a, b, at, axis, other)
        case "free":
            return mbd.Free(a, b)
        case "fixed":
            return mbd.Fixed(a, b, at)
        case "rod":
            return mbd.Rod(a, b, at, at + rng.normal(size=3))
    raise ValueError(kind)


def random_mechanism(seed: int, *, loops: int | None = None) -> mbd.Mechanism:
    """Three to five bodies on a random tree, closed by as many loops as leave mobility >= 1.

    Joints are declared in either direction. Two springs, a point force, a torque and a joint
    torque act on it.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    coms = rng.uniform(-1, 1, (n, 3))
    names = [f"b{i}" for i in range(n)]
    bodies = {name: random_body(rng, com) for name, com in zip(names, coms, strict=True)}
    joints, freedom = {}, 0
    for i in range(n):
        kind = TREE_TYPES[(seed + 2 * i) % len(TREE_TYPES)] if i else TREE_TYPES[seed % 8]
        parent = "ground" if i == 0 else str(rng.choice([*names[:i], "ground"], p=None))
        forward = kind == "free" or rng.random() < 0.6
        a, b = (parent, names[i]) if forward else (names[i], parent)
        joint = random_joint(rng, kind, a, b, coms[i] + 0.4 * rng.normal(size=3))
        joints[f"t{i}"] = joint
        freedom += joint.nv
    wanted = int(rng.integers(0, 3)) if loops is None else loops
    cuts = []
    for k in range(8):
        if len(cuts) == wanted:
            break
        kind = CUT_TYPES[(seed + 3 * k) % len(CUT_TYPES)]
        a, b = (str(x) for x in rng.choice(["ground", *names], 2, replace=False))
        joint = random_joint(rng, kind, a, b, rng.uniform(-1, 1, 3))
        if len(joint.rows) >= freedom:
            continue
        freedom -= len(joint.rows)
        cuts.append(f"c{k}")
        joints[f"c{k}"] = joint
    forces = {
        "spring": mbd.SpringDamper(
            "ground", names[-1], (0.0, 0.0, 2.0), coms[-1], stiffness=20.0, damping=0.7
        ),
        "between": mbd.SpringDamper(
            names[0], names[1], coms[0] + 0.1, coms[1] - 0.2, stiffness=9.0, law=cubic
        ),
        "push": mbd.PointForce(names[1], coms[1] + 0.3, rng.normal(size=3)),
        "twist": mbd.Torque(names[0], names[-1], rng.normal(size=3)),
    }
    return mbd.Mechanism(bodies, joints, forces, gravity=(1.0, -2.0, -9.0), cut=tuple(cuts))


def cubic(extension, rate):
    """A stiffening spring with some damping."""
    return 3.0 * extension**3 + 0.2 * rate


def random_state(mech: mbd.Mechanism, seed: int, spread: float = 0.5):
    """Random tree coordinates and speeds, off the constraints where there are loops."""
    rng = np.random.default_rng(seed + 1000)
    top = mbd.topology(mech)
    q = mbd.step_coordinates(mech, mbd.neutral(mech), spread * rng.normal(size=top.nv))
    return np.asarray(q), rng.normal(size=top.nv)


def random_motion(mech: mbd.Mechanism, seed: int, spread: float = 0.3):
    """A random moving state on the constraints, found without `assemble`.

    From the drawn configuration, which satisfies the constraints, it takes a step along an allowed
    velocity and closes the loops again by least squares.
    """

    @lanes.jit
    def step(q, change):
        """The configuration a step further, its constraints' residual and Jacobian."""
        q = mbd.step_coordinates(mech, q, change)
        return q, mbd.constraint_residual(mech, q), mbd.constraint_jacobian(mech, q)

    def moved(q, change):
        return [np.asarray(x) for x in step(q, change)]

    rng = np.random.default_rng(seed + 1000)
    top = mbd.topology(mech)
    q, _, jacobian = moved(mbd.neutral(mech), np.zeros(top.nv))
    q, residual, jacobian = moved(q, spread * _allowed(jacobian, rng))
    for _ in range(30):
        if np.abs(residual).max(initial=0.0) < 1e-14:
            break
        q, residual, jacobian = moved(q, -np.linalg.lstsq(jacobian, residual, rcond=1e-9)[0])
    assert np.abs(residual).max(initial=0.0) < 1e-12
    v = _allowed(jacobian, rng)
    assert top.nv and np.linalg.norm(v) > 0.1, "the mechanism must move"
    return q, v


def _allowed(jacobian: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random speeds of unit size on the constraints."""
    v = rng.normal(size=jacobian.shape[1])
    if jacobian.shape[0]:
        _, sizes, vh = np.linalg.svd(jacobian)
        null = vh[int(np.sum(sizes > 1e-9)) :]
        v = null.T @ (null @ v)
    return v / np.linalg.norm(v)
