"""An active suspension on random roads, ready to learn on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmbd.ml.environment import Environment
from jaxmbd.model import (
    Actuator,
    Body,
    JointLimit,
    Mechanism,
    Prismatic,
    Revolute,
    SpringDamper,
    Tyre,
    WavyRoad,
)
from jaxmbd.observe import Acceleration, CoordinateRate, Element, Function, Position, Velocity
from jaxmbd.sampling import Uniform

_GRAVITY = 9.81
_BODY, _WHEEL, _ARM = 400.0, 40.0, 4.0  # masses [kg]
_REST = (_BODY + _WHEEL + 2.0 * _ARM) * _GRAVITY  # load on the tyre [N]


def _corner(road: Any) -> Mechanism:
    """A quarter of a car on a double wishbone, seen from behind, at rest as drawn.

    With the arms level, a unit of wheel travel moves the spring by half, which stands halfway
    along the lower arm: its force is ``2 (W − (m_wheel + m_arm) g)``, W the load on the tyre.
    """
    points = {
        **{"lower_hinge": (0.35, 0.25), "lower_ball": (0.75, 0.25)},
        **{"upper_hinge": (0.40, 0.50), "upper_ball": (0.70, 0.50)},
        **{"spring_top": (0.55, 0.65), "spring_bottom": (0.55, 0.25), "hub": (0.80, 0.31)},
    }
    spring, tyre = 8e4, 2e5
    force = 2.0 * (_REST - (_WHEEL + _ARM) * _GRAVITY)
    slender = _ARM / 12.0
    return Mechanism(
        bodies={
            "body": Body(_BODY, com=(0.0, 0.6), inertia=1.0),
            "lower_arm": Body(_ARM, com=(0.55, 0.25), inertia=slender * 0.4**2),
            "upright": Body(_WHEEL, com="hub", inertia=1.0),
            "upper_arm": Body(_ARM, com=(0.55, 0.50), inertia=slender * 0.3**2),
        },
        joints={
            "heave": Prismatic("ground", "body", at=(0.0, 0.6), axis=(0.0, 1.0)),
            "lower_hinge": Revolute("body", "lower_arm", at="lower_hinge"),
            "lower_ball": Revolute("lower_arm", "upright", at="lower_ball"),
            "upper_hinge": Revolute("body", "upper_arm", at="upper_hinge"),
            "upper_ball": Revolute("upper_arm", "upright", at="upper_ball"),
        },
        forces={
            "spring": SpringDamper(
                "body", "lower_arm", "spring_top", "spring_bottom", stiffness=spring,
                damping=6e3, free_length=0.4 + force / spring,
            ),
            "tyre": Tyre(
                "upright", at="hub", stiffness=tyre, damping=100.0, radius=0.31,
                road=_REST / tyre, up=(0.0, 1.0), law=road,
            ),
            "stop": JointLimit(
                "lower_hinge", lower=-0.2, upper=0.2, stiffness=4e3, progression=4e4,
                dissipation=0.1,
            ),
            "motor": Actuator("lower_hinge", control_range=(-1000.0, 1000.0)),
        },
        points=points,
        gravity=(0.0, -_GRAVITY),
    )  # fmt: skip


def active_corner(
    grade: str = "C", speed: float = 20.0, preview: Sequence[float] = (), **options: Any
) -> Environment:
    """A quarter of a car on a rough road, with a motor at the lower wishbone of ±1 kN·m.

    A planar double wishbone, a closed loop, carries 400 kg; a wheel of 40 kg runs over a `WavyRoad`
    of ISO 8608, each lane and episode over one of its own. Spring, damper and stops are those of a
    passive car, which the action zero leaves it to be; 1 kN·m is 2.5 kN at the wheel. The numbers
    are ours, of a middle-sized car: 1.1 Hz of the body, 11 Hz of the wheel.

    A step of 10 ms gives ``-(a/1 m/s²)² - (F/1 kN)² - (s/50 mm)² - (M/2 kN·m)²``, with a the mean
    vertical acceleration of the body in the step, F the dynamic part of the tyre's load, s the
    travel of the wheel, and M the moment. An episode starts at rest, at the road's
    height, and is truncated after 300 steps.

    Observed is what sensors of a car measure: the body's vertical speed [m/s] and acceleration
    [m/s²], the wheel's acceleration, its travel from rest [m] and the travel's rate [m/s]; and
    with `preview`, as by a camera, how much higher the road is at each place ahead than at the one
    before, from that under the wheel on [m].

    Args:
        grade: the road's class, "A" to "H".
        speed: of the car [m/s].
        preview: times to the places ahead [s], in order.
        **options: of `Environment`, in place of these.

    Example:
        >>> import jax
        >>> from jaxmbd import ml
        >>> ml.active_corner(preview=(0.1, 0.2)).reset(jax.random.key(0)).observation.shape
        (7,)
    """
    road = WavyRoad.iso8608(grade, speed)
    load, heave = Element("tyre", "normal"), CoordinateRate("heave")
    travel = Position("upright", "hub", "y") - Position("body", (0.0, 0.31), "y")

    def reward(before: Any, action: Any, after: Any) -> Any:
        comfort = (heave.value(after) - heave.value(before)) / (after.t - before.t)
        grip = 1e-3 * (load.value(after) - _REST)
        moved = travel.value(after) / 0.05
        return -(comfort**2) - grip**2 - moved**2 - (action[0] / 2000.0) ** 2

    def height(mech: Any, t: Any) -> Any:
        return mech.forces["tyre"].law(t)

    def ahead(at: Any) -> Any:
        return jnp.diff(height(at.mech, at.t + jnp.array([0.0, *preview])))

    def on_the_road(mech: Mechanism, key: Any) -> dict[str, Any]:
        return {"heave": height(mech, 0.0)}

    given: dict[str, Any] = {
        "observe": {
            "heave_rate": heave,
            "heave_acceleration": Acceleration("body", (0.0, 0.31), "y"),
            "wheel_acceleration": Acceleration("upright", "hub", "y"),
            "travel": travel,
            "travel_rate": Velocity("upright", "hub", "y") - heave,
        },
        "reward": reward,
        "start": on_the_road,
        "randomize": {
            "forces/tyre/law/phases": Uniform(low=0.0, high=2.0 * np.pi),
            "forces/tyre/law/waves": Uniform(road.half_band, relative=True),
        },
        "substeps": 3,
        "horizon": 300,
    }
    if preview:
        given["observe"]["ahead"] = Function(ahead, "m", "the road ahead")
    return Environment(_corner(road), 0.01, **{**given, **options})
