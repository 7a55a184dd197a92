"""The programs: batched functions of a mechanism, all numbers of which are arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import lanes

BATCH = 1024
STEPS = 10
VALUE, GRADIENT = "value", "gradient"
SIZES = (3, 5, 10, 20, 40, 60)


class Program(NamedTuple):
    """A mechanism and what is computed of it, forward dynamics or a rollout of ten steps."""

    make: Callable[[], mbd.Mechanism]
    rollout: bool


def open_chain(bodies: int) -> mbd.Mechanism:
    """An open chain of revolutes about the three axes in turn."""
    axes = np.eye(3)[::-1]
    parts = {
        f"body_{i}": mbd.Body(1.0, com=[i + 0.5, 0.1 * i, 0.0], inertia=np.diag([0.1, 0.2, 0.3]))
        for i in range(bodies)
    }
    names = ["ground", *parts]
    joints = {
        f"joint_{i}": mbd.Revolute(names[i], names[i + 1], at=[float(i), 0, 0], axis=axes[i % 3])
        for i in range(bodies)
    }
    return mbd.Mechanism(parts, joints)


PROGRAMS = {f"chain{n}": Program(partial(open_chain, n), False) for n in SIZES} | {
    "multi_link": Program(mbd.zoo.multi_link, False),
    "multi_link_rollout": Program(mbd.zoo.multi_link, True),
}


def function(program: Program, work: str) -> Callable[..., Any]:
    """``(mechanism, q, v)``, q and v with a batch axis → accelerations or final speeds, or the
    gradient of their sum of squares by all numbers of the mechanism."""

    def one(mech: mbd.Mechanism, q: Any, v: Any) -> Any:
        if not program.rollout:
            return mbd.forward_dynamics(mech, q, v)[0]
        return mbd.simulate(mech, q, v, t1=STEPS * 1e-3, dt=1e-3, throw=False).v[-1]

    value = lanes.vmap(one, in_axes=(None, 0, 0))
    if work == VALUE:
        return jax.jit(value)
    return jax.jit(jax.grad(lambda mech, q, v: jnp.sum(value(mech, q, v) ** 2)))


def arguments(mech: mbd.Mechanism, batch: int = BATCH) -> tuple[Any, ...]:
    """The mechanism at rest as drawn, `batch` times."""
    q = jnp.tile(mbd.neutral(mech), (batch, 1))
    return mech, q, jnp.zeros((batch, mbd.topology(mech).nv))


def other_numbers(mech: mbd.Mechanism) -> mbd.Mechanism:
    """The same structure with another mass."""
    name = mech.structure.bodies[-1]
    body = mech.bodies[name]
    heavier = mbd.Body(1.01 * body.mass, com=body.com, inertia=body.inertia)
    return mech.replace(bodies={name: heavier})


def other_structure(mech: mbd.Mechanism) -> mbd.Mechanism:
    """Another structure of the same size: one more force element."""
    name = mech.structure.bodies[-1]
    load = mbd.PointForce(name, at=mech.bodies[name].com, force=(0.0, 0.0, 1.0))
    return mech.replace(forces={"added load": load})
