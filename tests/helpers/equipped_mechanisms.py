"""Random mechanisms that carry every kind of element beside their joints.

To a random mechanism come two arms, a slide and a free body, and on these a coupling, a drive of a
joint and one of a point, two conditions, and a force element of each kind, all of them active.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from random_mechanisms import random_body, random_mechanism

import jaxmbd as mbd

FREQUENCY = 3.0


def swing(t, p):
    """A driven coordinate, from its drawn value at t = 0: ``p₀ + p₁ sin 3 t``."""
    return p[0] + p[1] * jnp.sin(FREQUENCY * t)


class Equipped(NamedTuple):
    """A mechanism with everything on it, and a motion of it at t = 0."""

    mech: mbd.Mechanism
    q: np.ndarray
    v: np.ndarray
    inputs: dict[str, np.ndarray]
    """Efforts on joints, one of them in the tree and, where there is one, one cut."""
    rates: np.ndarray
    """What the drives ask of ``J v`` (nc,)."""


def equipped_mechanism(seed: int, *, friction: bool = True) -> Equipped:
    """Everything on a random mechanism with at most one loop, in its drawn position."""
    rng = np.random.default_rng(seed + 5000)
    mech = random_mechanism(seed, loops=1)
    last, coms = list(mech.structure.bodies)[-1], rng.uniform(-1, 1, (4, 3))
    names = ("arm", "forearm", "carriage", "rider")
    arm, fore, slide, ride = coms
    joints = {
        "shoulder": mbd.Revolute("ground", "arm", arm + 0.3, rng.normal(size=3)),
        "elbow": mbd.Revolute("arm", "forearm", fore + 0.2, rng.normal(size=3)),
        "rail": mbd.Prismatic("b0", "carriage", slide, rng.normal(size=3)),
        "float": mbd.Free("ground", "rider"),
        "on plane": mbd.PointOnPlane("forearm", "rider", ride + 0.1, rng.normal(size=3)),
        "square": mbd.PerpendicularAxes(last, "rider", (1, 0, 0), (0, 1, 0.2)),
    }
    corner = ride - np.array([0.2, 0.1, 0.3])
    forces = {
        "bushing": mbd.Bushing(
            "carriage", "rider", ride, rng.uniform(5, 9, 6), rng.uniform(0.1, 0.3, 6)
        ),
        "torsion": mbd.TorsionSpring("shoulder", stiffness=4.0, damping=0.2, free_angle=0.3),
        "buffer": mbd.BumpStop("forearm", "rider", fore, ride, gap=-0.2, stiffness=9.0),
        "limit": mbd.JointLimit("elbow", lower=0.1, stiffness=7.0),
        "tyre": mbd.Tyre("rider", corner, 90.0, 3.0, road=corner[2] - 0.25),
        "wheel": mbd.PacejkaTyre("carriage", slide, 200.0, 2.0, road=slide[2] - 0.25),
        "bar": mbd.AntiRollBar("arm", "forearm", arm, fore, stiffness=8.0, damping=0.1),
        "rotor": mbd.Armature("elbow", inertia=0.4),
        "rotors": mbd.Armature("float", inertia=[0.2, 0.3, 0.1, 0.5, 0.6, 0.4]),
        "soft": mbd.SoftJoint(mbd.Spherical("arm", "carriage", arm - 0.2), 30.0, 0.2),
    }
    if friction:
        forces["rub"] = mbd.JointFriction("shoulder", 0.05, 0.02, viscous=0.1, velocity_scale=0.3)
    mech = mech.replace(
        bodies={n: random_body(rng, com) for n, com in zip(names, coms, strict=True)},
        joints=joints,
        forces=forces,
        couplings={"gear": mbd.Gear("shoulder", "elbow", ratio=rng.uniform(0.5, 2.0))},
        drives={
            "motor": mbd.Drive("rail", swing, np.array([0.0, 0.1])),
            "lift": mbd.PointDrive("rider", ride, "z", swing, np.array([ride[2], 0.2])),
        },
        cut=(*mbd.topology(mech).cut, "on plane", "square"),
    )
    top = mbd.topology(mech)
    rates = np.zeros(top.nc)
    rates[top.layout["motor"].rows], rates[top.layout["lift"].rows] = (
        FREQUENCY * 0.1,
        FREQUENCY * 0.2,
    )
    q = np.asarray(mbd.neutral(mech))
    jacobian, v = np.asarray(jax.jit(mbd.constraint_jacobian)(mech, q)), rng.normal(size=top.nv)
    v = v + np.linalg.lstsq(jacobian, rates - jacobian @ v, rcond=1e-9)[0]
    cut = [n for n in top.cut if mech.joints[n].can_be_in_tree and mech.joints[n].nv]
    inputs = {n: rng.normal(size=mech.joints[n].nv) for n in ("elbow", "float", *cut)}
    return Equipped(mech, q, v, inputs, rates)
