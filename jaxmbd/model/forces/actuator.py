"""Actuator: the effort of a motor, a servo or a cylinder on a joint coordinate, by its control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.base import Effort, ForceElement, Load, Motion
from jaxmbd.model.forces.measure import Measure, coordinate_units
from jaxmbd.model.numbers import Units, changed, is_concrete, number, optional_number


class Actuator(ForceElement):
    """A motor behind a gear: ``effort = gear · (gain u + bias₀ + bias₁ x + bias₂ ẋ)``.

    ``x = gear · q`` is its own coordinate, u its control. A torque motor has a gain only; a
    position servo ``gain = k``, ``bias = (0, −k, −c)``, a velocity servo ``gain = c``,
    ``bias = (0, 0, −c)``. The control and the force in parentheses are cut to their ranges.

    The control is a number of the mechanism, or is given wherever inputs are, by the actuator's
    name: ``inputs={"motor": u}``, unless a joint has that name too.

    Attributes:
        joint: name of the joint; an angle of a cut joint is taken in (-π, π].
        gear: ratio of the actuator's coordinate to the joint's.
        gain: force for each unit of control.
        bias: (3,), constant force, and the force for each unit of x and of ẋ.
        control: u, where no input replaces it.
        control_range: (2,), least and greatest control, or None.
        force_range: (2,), least and greatest force before the gear, or None.
        index: which coordinate of the joint.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> m = m.replace(forces={"motor": mbd.Actuator("hinge", gear=50.0, gain=0.1)})
        >>> hanging = mbd.neutral(m) + jnp.pi / 2
        >>> vdot, _ = mbd.forward_dynamics(m, hanging, jnp.zeros(1), inputs={"motor": 0.2})
        >>> round(float(vdot[0]), 6)
        1.0
    """

    joint: str = eqx.field(static=True)
    gear: Any = eqx.field(converter=number, default=1.0)
    gain: Any = eqx.field(converter=number, default=1.0)
    bias: Any = eqx.field(converter=number, default=(0.0, 0.0, 0.0))
    control: Any = eqx.field(converter=number, default=0.0)
    control_range: Any = eqx.field(converter=optional_number, default=None)
    force_range: Any = eqx.field(converter=optional_number, default=None)
    index: int = eqx.field(static=True, default=0)

    units: ClassVar[Units] = dict.fromkeys(
        ("gear", "gain", "bias", "control", "control_range", "force_range"), ""
    )

    def shapes(self, joints: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Numbers, the three of the bias, and pairs."""
        found: dict[str, tuple[tuple[int, ...], ...]] = dict.fromkeys(
            ("gear", "gain", "control"), ((),)
        )
        pairs = {n: ((2,),) for n in self._ranges()}
        return found | {"bias": ((3,),)} | pairs

    def _ranges(self) -> dict[str, Any]:
        names = ("control_range", "force_range")
        return {n: x for n in names if (x := getattr(self, n)) is not None}

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """An empty range."""
        return [
            f"{name} is {x.tolist()}; give the lower end first"
            for name, x in self._ranges().items()
            if is_concrete(x) and x.shape == (2,) and x[0] > x[1]
        ]

    def controlled(self, control: Any) -> Actuator:
        """The same actuator with another control."""
        return changed(self, control=control)

    def _state(self, motion: Motion) -> tuple[Array, Array]:
        """The force before the gear, and the joint's speeds."""
        q, v = motion.joint(self.joint)
        u = jnp.asarray(self.control, v.dtype)
        if u.ndim:
            raise ValueError(f"the control of the actuator on '{self.joint}' has shape {u.shape}")
        if self.control_range is not None:
            u = jnp.clip(u, self.control_range[0], self.control_range[1])
        x, rate = self.gear * q[self.index], self.gear * v[self.index]
        force = self.gain * u + self.bias[0] + self.bias[1] * x + self.bias[2] * rate
        if self.force_range is not None:
            force = jnp.clip(force, self.force_range[0], self.force_range[1])
        return force, v

    def loads(self, motion: Motion) -> list[Load | Effort]:
        force, v = self._state(motion)
        effort = self.gear * force
        parts = [effort if i == self.index else jnp.zeros_like(effort) for i in range(v.shape[0])]
        return [Effort(self.joint, jnp.stack(parts))]

    def measures(self, motion: Motion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        force, v = self._state(motion)
        effort, unit = self.gear * force, coordinate_units(joints, self.joint, self.index)[2]
        return {
            "effort": Measure(effort, unit, "effort, positive along +q"),
            "power": Measure(effort * v[self.index], "W", "power given to the joint"),
        }
