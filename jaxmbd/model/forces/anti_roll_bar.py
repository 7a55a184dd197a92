"""Anti-roll bars: elastic couplings of the two sides of an axle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

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
from jaxmbd.model.numbers import Units, number, point, vector_in_space
from jaxmbd.spatial import cross


class AntiRollBar(ForceElement):
    """A bar that resists the difference of two points' travels along a chassis direction.

    With u the direction `up`, which turns with the chassis, and ``x = u · (x_a − x_b)`` minus its
    drawn value, the drop links apply ``−(stiffness x + damping ẋ) u`` to a and the opposite to b;
    the chassis takes the reactions at the same points, so that the resultant force and moment are
    zero. The power is ``−dV/dt − damping ẋ²`` with ``V = ½ stiffness x²`` for any chassis motion.

    Attributes:
        a, b: names of the two sides' bodies.
        at_a, at_b: attachment points of the drop links, (3,) [m] as drawn or names of points.
        stiffness: force per difference of travel [N/m]: k_t/r² for a bar of torsional stiffness
            k_t with arms of length r.
        damping: [N·s/m].
        chassis: name of the body that carries the bar.
        up: direction of the drop links, (3,) as drawn, a unit vector.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.AntiRollBar("left", "right", (0, 0.6, 0), (0, -0.6, 0), stiffness=2e4).chassis
        'ground'
    """

    a: str = eqx.field(static=True)
    b: str = eqx.field(static=True)
    at_a: Any = eqx.field(converter=point)
    at_b: Any = eqx.field(converter=point)
    stiffness: Any = eqx.field(converter=number)
    damping: Any = eqx.field(converter=number, default=0.0)
    chassis: str = eqx.field(static=True, default="ground")
    up: Any = eqx.field(converter=number, default=(0.0, 0.0, 1.0))

    vectors: ClassVar[tuple[str, ...]] = ("up",)
    units: ClassVar[Units] = {"stiffness": "N/m", "damping": "N s/m", "up": ""}

    @property
    def bodies(self) -> tuple[str, ...]:
        return self.a, self.b, self.chassis

    def _twist(self, motion: ElementMotion) -> tuple[Array, Array, Array, Array, Array]:
        """Ends, direction, x and ẋ."""
        x_a, v_a = motion.point(self.a, self.at_a)
        x_b, v_b = motion.point(self.b, self.at_b)
        drawn = vector_in_space(jnp.asarray(self.up))
        u, apart = motion.rotation(self.chassis) @ drawn, x_a - x_b
        x = u @ apart - drawn @ (motion.drawn(self.at_a) - motion.drawn(self.at_b))
        carried = cross(motion.angular_velocity(self.chassis), apart)
        return x_a, x_b, u, x, u @ (v_a - v_b - carried)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        x_a, x_b, u, x, rate = self._twist(motion)
        force = (self.stiffness * x + self.damping * rate) * u
        none = jnp.zeros_like(force)
        return [
            Load(self.a, x_a, -force, none),
            Load(self.b, x_b, force, none),
            Load(self.chassis, x_a, force, none),
            Load(self.chassis, x_b, -force, none),
        ]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        _, _, _, x, rate = self._twist(motion)
        force = self.stiffness * x + self.damping * rate
        return {
            "force": Measure(force, "N", f"force on {self.b} along up; the opposite on {self.a}"),
            "travel": Measure(x, "m", f"travel of {self.a} over that of {self.b}"),
            "rate": Measure(rate, "m/s", "rate of that difference"),
        }

    def energy(self, motion: ElementMotion) -> Array | float:
        x = self._twist(motion)[3]
        return 0.5 * self.stiffness * x * x


class TorsionBar(ForceElement):
    """A torsion spring-damper between two joint coordinates: an anti-roll bar at the hinges.

    With ``x = q_a − ratio q_b − offset`` the efforts are ``−T`` along q_a and ``ratio T`` along
    q_b, ``T = stiffness x + damping ẋ``; ``V = ½ stiffness x²``. Arms whose hinges are declared
    with opposite axes (mirror images) roll at equal coordinates: then ``ratio=-1``.

    Attributes:
        joint_a, joint_b: names of the joints.
        stiffness: [N·m/rad], or [N/m] between travels.
        damping: [N·m·s/rad or N·s/m].
        ratio: the bar is free of load at ``q_a = ratio q_b + offset``.
        offset: see there [rad or m].
        index_a, index_b: which coordinate of each joint.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.TorsionBar("left_arm", "right_arm", stiffness=800.0).joints
        ('left_arm', 'right_arm')
    """

    joint_a: str = eqx.field(static=True)
    joint_b: str = eqx.field(static=True)
    stiffness: Any = eqx.field(converter=number)
    damping: Any = eqx.field(converter=number, default=0.0)
    ratio: Any = eqx.field(converter=number, default=1.0)
    offset: Any = eqx.field(converter=number, default=0.0)
    index_a: int = eqx.field(static=True, default=0)
    index_b: int = eqx.field(static=True, default=0)

    units: ClassVar[Units] = {
        "stiffness": "effort/coordinate",
        "damping": "effort s/coordinate",
        "ratio": "ratio",
        "offset": "coordinate",
    }

    @property
    def joints(self) -> tuple[str, ...]:
        return self.joint_a, self.joint_b

    @property
    def coordinates(self) -> tuple[tuple[str, int], ...]:
        return (self.joint_a, self.index_a), (self.joint_b, self.index_b)

    def kinds(self, joints: dict[str, Any]) -> tuple[str, ...]:
        return tuple(joints[name].speeds[index] for name, index in self.coordinates)

    def _difference(self, motion: ElementMotion) -> tuple[Array, Array]:
        (q_a, v_a), (q_b, v_b) = motion.joint(self.joint_a), motion.joint(self.joint_b)
        x = q_a[self.index_a] - self.ratio * q_b[self.index_b] - self.offset
        return x, v_a[self.index_a] - self.ratio * v_b[self.index_b]

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        x, rate = self._difference(motion)
        torque = self.stiffness * x + self.damping * rate
        return [
            effort_along(joint, index, share * torque, motion.joint(joint)[1].shape[0])
            for (joint, index), share in zip(self.coordinates, (-1.0, self.ratio), strict=True)
        ]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        x, rate = self._difference(motion)
        length, speed, unit = coordinate_units(joints, self.joint_a, self.index_a)
        torque = self.stiffness * x + self.damping * rate
        return {
            "torque": Measure(torque, unit, f"effort against +q of {self.joint_a}"),
            "twist": Measure(x, length, "twist of the bar"),
            "rate": Measure(rate, speed, "rate of the twist"),
        }

    def energy(self, motion: ElementMotion) -> Array | float:
        x, _ = self._difference(motion)
        return 0.5 * self.stiffness * x * x
