"""A biped of six loops that floats, whose servos follow random targets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from accuracy_cases import usd_robot

import jaxmbd as mbd
from jaxmbd import ml
from jaxmbd.observe import Coordinate, CoordinateRate

DATA = Path(__file__).resolve().parents[2] / "tests/data/groundtruth/six_loop_biped.json"
MOST = 3.1  # of the servos [N·m]
REACH = 0.6  # of their targets [rad], within the joints' limits


def biped(**options: Any) -> ml.Environment:
    """31 bodies, 36 hinges and a free base: 30 rows close six loops, 12 of them are redundant.

    Actions are targets of its 12 servos of 15 N·m/rad and 0.6 N·m·s/rad, as of the reference data,
    within ±3.1 N·m. Five steps of 4 ms make a control step; nothing is touched. Observed are angles
    and rates of the driven joints; the reward is minus the squared rate of the base.
    """
    data = json.loads(DATA.read_text(encoding="utf-8"))
    mech, state = usd_robot.build(data), data["states"][0]
    stiffness, damping = state["kp"], state["kd"]
    driven = {n: j for n, j in data["joints"].items() if j["driven"]}
    servos = {
        f"servo_{name}": mbd.Actuator(
            name,
            gain=stiffness,
            bias=(0.0, -stiffness, -damping),
            control_range=np.clip(np.radians([j["lower_deg"], j["upper_deg"]]), -REACH, REACH),
            force_range=(-MOST, MOST),
        )
        for name, j in driven.items()
    }
    base = mbd.topology(mech).layout[usd_robot.BASE].v
    given = {
        "observe": {
            **{f"angle_{name}": Coordinate(name) for name in driven},
            **{f"rate_{name}": CoordinateRate(name) for name in driven},
        },
        "reward": lambda before, action, after: -jnp.sum(after.v[base][:3] ** 2),
        "horizon": 100,
        "substeps": 5,
    }
    return ml.Environment(mech.replace(forces=servos), 0.02, **{**given, **options})
