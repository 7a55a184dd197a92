"""Environments that are ready: of a tree, and of a closed loop."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxmbd.ml.environment import Environment
from jaxmbd.model import Actuator, Body, Fixed, Mechanism, Prismatic, Revolute
from jaxmbd.observe import Coordinate, CoordinateRate, Distance, Position
from jaxmbd.sampling import Uniform
from jaxmbd.zoo import five_bar


def cart_pole(**options: Any) -> Environment:
    """A pole on a cart, to be kept upright by a force on the cart within ±10 N.

    Source: Barto, Sutton & Anderson, "Neuronlike adaptive elements that can solve difficult
    learning control problems", IEEE Trans. SMC 13 (1983): the numbers, the start, which is uniform
    within ±0.05 of each coordinate and speed, and the end, beyond ±2.4 m or ±12°. The force is
    continuous here. A step of 20 ms gives a reward of one; after 500 an episode is truncated.

    Observed are the position of the cart [m] and its speed, the angle of the pole from upright
    [rad] and its speed.

    Args:
        **options: of `Environment`, in place of these.

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> ml.cart_pole().reset(jax.random.key(0)).observation.shape
        (4,)
    """
    mech = Mechanism(
        bodies={
            "cart": Body(1.0, com=(0.0, 0.0)),
            "pole": Body(0.1, com=(0.0, 0.5), inertia=0.1 / 12.0),
        },
        joints={
            "rail": Prismatic("ground", "cart", at=(0.0, 0.0), axis=(1.0, 0.0)),
            "hinge": Revolute("cart", "pole", at=(0.0, 0.0)),
        },
        forces={"motor": Actuator("rail", control_range=(-10.0, 10.0))},
        gravity=(0.0, -9.81),
    )
    near = {"rail": Uniform(0.05), "hinge": Uniform(0.05)}
    given = {
        "observe": {
            "position": Coordinate("rail"),
            "speed": CoordinateRate("rail"),
            "angle": Coordinate("hinge"),
            "angular_speed": CoordinateRate("hinge"),
        },
        "reward": _one,
        "terminate": _fallen,
        "start": near,
        "speeds": near,
        "horizon": 500,
    }
    return Environment(mech, 0.02, **{**given, **options})


# Functions of the module, so that environments can be pickled.


def _one(before: Any, action: Any, after: Any) -> Any:
    return 1.0


def _fallen(at: Any) -> Any:
    return (jnp.abs(at.q[0]) > 2.4) | (jnp.abs(at.q[1]) > jnp.deg2rad(12.0))


def _closeness(before: Any, action: Any, after: Any) -> Any:
    return -10.0 * _APART.value(after) - 1e-3 * action @ action


_APART = Distance("left_distal", "C", "target", "target")


def five_bar_reach(**options: Any) -> Environment:
    """The five-bar of `zoo.five_bar`, lying level, whose tip is to reach a point and stay there.

    Motors at both pivots give up to ±1 N·m against a drag of 0.05 N·m·s. The point, point
    `target` of a body of that name, is drawn for each episode 5 cm around (0.1, 0.42). A step of
    20 ms gives minus the distance in decimetres, minus a thousandth of the squared moments; after
    100 steps an episode is truncated.

    Observed are the angles of the pivots [rad], their speeds, the tip and the target [m].

    Args:
        **options: of `Environment`, in place of these.

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> ml.five_bar_reach().reset(jax.random.key(0)).observation.shape
        (8,)
    """
    mech = five_bar(gravity=0.0)
    motors = {
        name: Actuator(joint, control_range=(-1.0, 1.0), bias=(0.0, 0.0, -0.05))
        for name, joint in (("left", "A"), ("right", "E"))
    }
    mech = mech.replace(
        bodies={"target": Body(0.0, com=(0.1, 0.42))},
        joints={"target": Fixed("ground", "target", at="target")},
        forces=motors,
        points={"target": (0.1, 0.42)},
    )
    given = {
        "observe": {
            **{f"angle_{joint}": Coordinate(joint) for joint in "AE"},
            **{f"speed_{joint}": CoordinateRate(joint) for joint in "AE"},
            **{f"tip_{x}": Position("left_distal", "C", x) for x in "xy"},
            **{f"target_{x}": Position("target", "target", x) for x in "xy"},
        },
        "reward": _closeness,
        "randomize": {f"points/target/{x}": Uniform(0.05) for x in "xy"},
        "horizon": 100,
        "substeps": 4,
    }
    return Environment(mech, 0.02, **{**given, **options})
