"""Body actuator: a force and a moment that turn with a body, by control: a propeller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.actuator import Controlled
from jaxmbd.model.forces.base import Effort, ElementMotion, Load, Measure
from jaxmbd.model.numbers import GROUND, Units, number, optional_number, point


class BodyActuator(Controlled):
    """A motor that pushes and twists a body along directions that move with it.

    With ``s = gain u + bias``, u its control, it exerts the force ``s · force`` at a point of b and
    the moment ``s · moment``; their reaction acts on a. A propeller pushes against the ground's
    air and twists its body; the motor of a ball joint has a moment only, with its reaction on
    the body below. Control and s are cut to their ranges.

    Attributes:
        b: name of the body.
        at: the point, (3,) [m] as drawn or the name of a point.
        force: on b for s = 1, (3,) [N], turning with b.
        moment: on b for s = 1, (3,) [N·m], turning with b.
        a: name of the body that takes the reaction.
        gain: s for each unit of control.
        bias: s without control.
        control: u, where no input replaces it: by the actuator's name, as of `Actuator`.
        control_range: (2,), least and greatest control, or None.
        force_range: (2,), least and greatest s, or None.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> drone = mbd.Mechanism(
        ...     {"drone": mbd.Body(1.5, (0, 0, 0), 0.02)}, {"free": mbd.Free("ground", "drone")},
        ...     {"rotor": mbd.BodyActuator("drone", (0, 0, 0), force=(0, 0, 1.0))})
        >>> hover = {"rotor": 1.5 * 9.81}
        >>> vdot, _ = mbd.forward_dynamics(drone, mbd.neutral(drone), jnp.zeros(6), inputs=hover)
        >>> bool(abs(vdot).max() < 1e-12)
        True
    """

    b: str = eqx.field(static=True)
    at: Any = eqx.field(converter=point)
    force: Any = eqx.field(converter=number, default=(0.0, 0.0, 0.0))
    moment: Any = eqx.field(converter=number, default=(0.0, 0.0, 0.0))
    a: str = eqx.field(static=True, default=GROUND)
    gain: Any = eqx.field(converter=number, default=1.0)
    bias: Any = eqx.field(converter=number, default=0.0)
    control: Any = eqx.field(converter=number, default=0.0)
    control_range: Any = eqx.field(converter=optional_number, default=None)
    force_range: Any = eqx.field(converter=optional_number, default=None)

    vectors: ClassVar[tuple[str, ...]] = ("force", "moment")
    axial: ClassVar[tuple[str, ...]] = ("moment",)
    serves_in_plane: ClassVar[bool] = False
    units: ClassVar[Units] = {"force": "N", "moment": "N m"} | dict.fromkeys(
        ("gain", "bias", "control", "control_range", "force_range"), ""
    )

    def shapes(self, joints: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Two vectors, numbers and pairs."""
        found: dict[str, tuple[tuple[int, ...], ...]] = dict.fromkeys(self.vectors, ((3,),))
        found |= dict.fromkeys(("gain", "bias", "control"), ((),))
        return found | dict.fromkeys(self.ranges(), ((2,),))

    def _wrench(self, motion: ElementMotion) -> tuple[Array, Array, Array]:
        """Point, force and moment on b, world axes."""
        x, _ = motion.point(self.b, self.at)
        turn = motion.rotation(self.b)
        size = self.cut(self.gain * self.commanded(self.b, x.dtype) + self.bias)
        return x, turn @ (size * jnp.asarray(self.force)), turn @ (size * jnp.asarray(self.moment))

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        x, force, moment = self._wrench(motion)
        return [Load(self.a, x, -force, -moment), Load(self.b, x, force, moment)]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        _, force, moment = self._wrench(motion)
        return {
            "force": Measure(force, "N", f"force on {self.b}, world axes"),
            "moment": Measure(moment, "N m", f"moment on {self.b}, world axes"),
        }
