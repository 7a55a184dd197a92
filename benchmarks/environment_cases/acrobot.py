"""The acrobot: a double pendulum with a motor at its elbow, to swing its tip up."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

import jaxmbd as mbd
from jaxmbd import ml
from jaxmbd.observe import Position
from jaxmbd.sampling import Uniform


def acrobot(**options: Any) -> ml.Environment:
    """Sutton's acrobot: two links of 1 m and 1 kg with 1 kg·m² about their middles.

    Source: Sutton, "Generalization in reinforcement learning: successful examples using sparse
    coarse coding", NIPS 8 (1996): the numbers, four steps of 50 ms in a control step, the end where
    the tip is 1 m above the shoulder. The torque within ±1 N·m is continuous here, and nothing
    bounds the speeds. Observed are cosines and sines of both angles, and their rates.
    """
    mech = mbd.Mechanism(
        bodies={
            "upper": mbd.Body(1.0, com=(0.0, -0.5), inertia=1.0),
            "lower": mbd.Body(1.0, com=(0.0, -1.5), inertia=1.0),
        },
        joints={
            "shoulder": mbd.Revolute("ground", "upper", at=(0.0, 0.0)),
            "elbow": mbd.Revolute("upper", "lower", at=(0.0, -1.0)),
        },
        forces={"motor": mbd.Actuator("elbow", control_range=(-1.0, 1.0))},
        points={"tip": (0.0, -2.0)},
        gravity=(0.0, -9.8),
    )
    tip, near = Position("lower", "tip", "y"), {"shoulder": Uniform(0.1), "elbow": Uniform(0.1)}
    given = {
        "observe": {
            "cosines": lambda t, q, v: jnp.cos(q),
            "sines": lambda t, q, v: jnp.sin(q),
            "rates": lambda t, q, v: v,
        },
        "reward": lambda before, action, after: -1.0,
        "terminate": lambda at: tip.value(at) > 1.0,
        "start": near,
        "speeds": near,
        "horizon": 500,
        "substeps": 4,
    }
    return ml.Environment(mech, 0.2, **{**given, **options})
