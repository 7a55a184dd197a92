"""Actuators: efforts on joint coordinates, and pushes of bodies (a propeller), by a control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.base import (
    Effort,
    ElementMotion,
    ForceElement,
    Load,
    Measure,
    coordinate_units,
    effort_along,
)
from jaxmbd.model.numbers import GROUND, Units, changed, is_concrete, number, optional_number, point


class Controlled(ForceElement):
    """Base of the force elements that a control moves, which inputs may give.

    Example:
        >>> from jaxmbd.model.forces import Actuator, Controlled
        >>> motor = Actuator("hinge", gear=50.0, control_range=(-1.0, 1.0))
        >>> isinstance(motor, Controlled), float(motor.controlled(3.0).commanded("hinge", float))
        (True, 1.0)
    """

    if TYPE_CHECKING:  # the fields of every subclass
        control: Any
        control_range: Any
        force_range: Any

    def ranges(self) -> dict[str, Any]:
        """The ranges that are given, by the names of their fields."""
        names = ("control_range", "force_range")
        return {n: x for n in names if (x := getattr(self, n)) is not None}

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """An empty range."""
        return [
            f"{name} is {x.tolist()}; give the lower end first"
            for name, x in self.ranges().items()
            if is_concrete(x) and x.shape == (2,) and x[0] > x[1]
        ]

    def controlled(self, control: Any) -> Self:
        """The same actuator with another control."""
        return changed(self, control=control)

    def commanded(self, acts_on: Any, dtype: Any) -> Array:
        """The control, cut to its range."""
        u = jnp.asarray(self.control, dtype)
        if u.ndim:
            raise ValueError(f"the control of the actuator on '{acts_on}' has shape {u.shape}")
        if self.control_range is None:
            return u
        return jnp.clip(u, self.control_range[0], self.control_range[1])

    def cut(self, force: Array) -> Array:
        """A force, cut to its range."""
        if self.force_range is None:
            return force
        return jnp.clip(force, self.force_range[0], self.force_range[1])


def _joint_names(given: Any) -> str | tuple[str, ...]:
    return given if isinstance(given, str) else tuple(given)


class Actuator(Controlled):
    """A motor behind a gear: ``effort = gear · (gain u + bias₀ + bias₁ x + bias₂ ẋ)``.

    ``x = gear · q`` is its own coordinate, u its control. A torque motor has a gain only; a
    position servo ``gain = k``, ``bias = (0, −k, −c)``, a velocity servo ``gain = c``,
    ``bias = (0, 0, −c)``. The control and the force in parentheses are cut to their ranges.

    One that pulls on several joints, by a tendon or a differential, has a gear for each:
    ``x = Σ gearᵢ qᵢ``, ``effortᵢ = gearᵢ · (…)``.

    The control is a number of the mechanism, zero by default, or is given wherever inputs are, by
    the actuator's name: ``inputs={"motor": u}``, unless a joint has that name too. A position servo
    without an input is therefore not idle: it drives its joint to the coordinate zero.

    Attributes:
        joint: name of the joint, or a tuple of names; an angle of a cut joint is taken in (-π, π].
        gear: ratio of the actuator's coordinate to the joint's; (n,) of n joints.
        gain: force for each unit of control.
        bias: (3,), constant force, and the force for each unit of x and of ẋ.
        control: u, where no input replaces it.
        control_range: (2,), least and greatest control, or None.
        force_range: (2,), least and greatest force before the gear, or None.
        index: which coordinate of each joint.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> m = m.replace(forces={"motor": mbd.Actuator("hinge", gear=50.0, gain=0.1)})
        >>> hanging = mbd.neutral(m) + jnp.pi / 2
        >>> vdot, _ = mbd.forward_dynamics(m, hanging, jnp.zeros(1), inputs={"motor": 0.2})
        >>> round(float(vdot[0]), 6)
        1.0
    """

    joint: str | tuple[str, ...] = eqx.field(static=True, converter=_joint_names)
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

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that it acts on."""
        return (self.joint,) if isinstance(self.joint, str) else self.joint

    def shapes(self, joints: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Numbers, a gear for each of several joints, the three of the bias, and pairs."""
        gear = () if isinstance(self.joint, str) else (len(self.joint),)
        pairs: dict[str, tuple[tuple[int, ...], ...]] = {n: ((2,),) for n in self.ranges()}
        return {"gear": (gear,), "gain": ((),), "control": ((),), "bias": ((3,),)} | pairs

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """An empty range, no joint, or one of them twice."""
        found = super().problems(joints)
        if not self.joints:
            found.append("it acts on no joint; name one")
        if len(set(self.joints)) < len(self.joints):
            found.append(f"it names a joint twice in {self.joints}; add up its gears")
        return found

    def _gears(self) -> list[Any]:
        if isinstance(self.joint, str):
            return [self.gear]
        return [self.gear[i] for i in range(len(self.joint))]

    def _force(self, motion: ElementMotion) -> Array:
        """The force before the gear."""
        x: Any = 0.0
        rate: Any = 0.0
        for gear, name in zip(self._gears(), self.joints, strict=True):
            q, v = motion.joint(name)
            x, rate = x + gear * q[self.index], rate + gear * v[self.index]
        u = self.commanded(self.joint, jnp.result_type(rate))
        return self.cut(self.gain * u + self.bias[0] + self.bias[1] * x + self.bias[2] * rate)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        force, out = self._force(motion), []
        for gear, name in zip(self._gears(), self.joints, strict=True):
            size = motion.joint(name)[1].shape[0]
            out.append(effort_along(name, self.index, gear * force, size))
        return out

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        force, found, power = self._force(motion), {}, 0.0
        for gear, name in zip(self._gears(), self.joints, strict=True):
            effort, unit = gear * force, coordinate_units(joints, name, self.index)[2]
            key = "effort" if isinstance(self.joint, str) else f"effort_on_{name}"
            found[key] = Measure(effort, unit, "effort, positive along +q")
            power = power + effort * motion.joint(name)[1][self.index]
        return found | {"power": Measure(jnp.asarray(power), "W", "power given to the joints")}


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
