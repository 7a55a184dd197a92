"""Interface of force elements: loads on bodies and efforts on joints, from an instant's motion.

A `Measure` is a quantity of an element that can be output by name, with unit and sign.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.joints.base import Bearing
from jaxmbd.model.numbers import (
    Reflection,
    Units,
    changed,
    is_concrete,
)
from jaxmbd.model.part import Part
from jaxmbd.spatial import cross, skew


class Measure(Part):
    """A quantity of a force element at an instant.

    Attributes:
        value: a number, or (3,) components.
        unit: SI unit.
        text: what it is, with its sign.

    Example:
        >>> from jaxmbd.model.forces.base import Measure
        >>> Measure(250.0, "N", "force, positive in tension").unit
        'N'
    """

    value: Any
    unit: str = eqx.field(static=True)
    text: str = eqx.field(static=True)


def is_travel(joints: Mapping[str, Any], joint: str, index: int) -> bool:
    """Whether a joint coordinate is a travel [m] rather than an angle [rad]."""
    return joints[joint].speeds[index] == "travel"


def coordinate_units(joints: Mapping[str, Any], joint: str, index: int) -> tuple[str, str, str]:
    """Units of a joint coordinate, of its rate, and of the effort along it."""
    return ("m", "m/s", "N") if is_travel(joints, joint, index) else ("rad", "rad/s", "N m")


def effort_measures(
    joint: str, effort: Array, joints: Mapping[str, Any], what: str = "effort"
) -> dict[str, Measure]:
    """An effort (nv,) along a joint's coordinates, each by name."""
    found = {}
    for i in range(effort.shape[0]):
        along = joint if effort.shape[0] == 1 else f"coordinate {i} of {joint}"
        name = what if effort.shape[0] == 1 else f"{what}_{i}"
        unit = coordinate_units(joints, joint, i)[2]
        found[name] = Measure(effort[i], unit, f"{what} along {along}, positive along +q")
    return found


class Load(NamedTuple):
    """A wrench on one body, world axes: `force` [N] at the world `point` [m], `moment` [N·m].

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.model.forces import Load
        >>> weight = Load("bob", jnp.zeros(3), jnp.array([0.0, 0.0, -9.81]), jnp.zeros(3))
        >>> weight.body
        'bob'
    """

    body: str
    point: Array
    force: Array
    moment: Array


class Effort(NamedTuple):
    """An effort, the generalised force (nv,) along the speeds of a joint [N·m or N].

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.model.forces import Effort
        >>> Effort("hinge", jnp.array([2.0])).joint
        'hinge'
    """

    joint: str
    value: Array


def effort_along(joint: str, index: int, effort: Array, size: int) -> Effort:
    """An effort along one of the `size` coordinates of a joint."""
    parts = [effort if i == index else jnp.zeros_like(effort) for i in range(size)]
    return Effort(joint, jnp.stack(parts))


class ElementMotion(Protocol):
    """The motion at an instant, as force elements see it.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.kinematics import motion_state
        >>> mech = mbd.zoo.simple_pendulum()
        >>> motion = motion_state(mech, mbd.neutral(mech))  # what an element's `loads` is given
        >>> q, v = motion.joint("hinge")
        >>> q.shape, v.shape
        ((1,), (1,))
    """

    mech: Any
    t: Any

    def point(self, body: str, at: Any) -> tuple[Array, Array]:
        """World position [m] and velocity [m/s] of the point of `body` drawn at `at`."""
        ...

    def drawn(self, at: Any) -> Array:
        """Drawn coordinates of a point."""
        ...

    def rotation(self, body: str) -> Array:
        """Rotation (3, 3) of `body` from its drawn orientation."""
        ...

    def angular_velocity(self, body: str) -> Array:
        """Angular velocity of `body` [rad/s], world axes."""
        ...

    def joint(self, name: str) -> tuple[Array, Array]:
        """Coordinates and speeds of a joint, in the tree or cut."""
        ...

    def declared(self, name: str) -> Any:
        """The joint itself, with directions as components."""
        ...


class ForceElement(Part):
    """Base of all force elements.

    Example:
        >>> import jax.numpy as jnp, jaxmbd as mbd
        >>> from jaxmbd.model.forces import ForceElement, Load
        >>> class Breeze(ForceElement):
        ...     '''A force of one newton along x.'''
        ...     b: str
        ...     def loads(self, motion):
        ...         at, _ = motion.point(self.b, (0.0, -1.0, 0.0))
        ...         return [Load(self.b, at, jnp.array([1.0, 0, 0]), jnp.zeros(3))]
        >>> mech = mbd.zoo.simple_pendulum().replace(forces={"breeze": Breeze("bob")})
        >>> mech.structure.forces
        ('breeze',)
    """

    vectors: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that have three components."""
    moments: ClassVar[tuple[str, ...]] = ()
    """Those of them that are moments, one number about z in a planar mechanism."""
    axial: ClassVar[tuple[str, ...]] = ()
    """Those of `vectors` that are no moments but axes of rotation."""
    per_speed: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that are one number, or one for each speed of the joint."""
    serves_in_plane: ClassVar[bool] = True
    """Whether a planar mechanism may have it."""
    units: ClassVar[Units] = {}
    """Units of the fields that are numbers, without points [m]."""
    of_time: ClassVar[bool] = True
    """Whether `Sampled` functions in it are functions of time, at whose corners steps end."""
    joins: ClassVar[bool] = False
    """Whether it joins a point of each of two bodies, and takes nothing from their drawn distance
    but what `implied` lists, so that build tolerances may move either point by itself."""

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies that it acts on."""
        names = (getattr(self, "a", None), getattr(self, "b", None))
        return tuple(n for n in names if n is not None)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that it acts on."""
        name = getattr(self, "joint", None)
        return () if name is None else (name,)

    @property
    def replaced_joint(self) -> Any:
        """The joint that it replaces, which is not one of the mechanism's joints, or None."""
        return None

    @property
    def points(self) -> dict[str, Any]:
        """Field name to point."""
        names = ("at", "at_a", "at_b")
        return {n: getattr(self, n) for n in names if getattr(self, n, None) is not None}

    @property
    def attachments(self) -> list[tuple[str, Any]]:
        """Its points, each with the body that it is on, where that is one of its fields."""
        bodies = {f: getattr(self, "a" if f == "at_a" else "b", None) for f in self.points}
        return [(body, self.points[f]) for f, body in bodies.items() if body is not None]

    def shapes(self, joints: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Allowed shapes of the numeric fields: a number, but for `vectors` and `per_speed`."""
        other = {"a", "b", "joint", "law", "at", "at_a", "at_b"}
        fields = [f for f in dataclasses.fields(self) if not f.metadata.get("static")]
        shapes: dict[str, tuple[tuple[int, ...], ...]] = {
            f.name: ((3,),) if f.name in self.vectors else ((),)
            for f in fields
            if f.name not in other
        }
        speeds = tuple((joints[n].nv,) for n in self.joints if n in joints)
        return shapes | dict.fromkeys(self.per_speed, ((), *speeds))

    def kinds(self, joints: dict[str, Any]) -> tuple[str, ...]:
        """Kind, "angle" or "travel", of each coordinate that its units refer to."""
        index = getattr(self, "index", 0)
        return tuple(joints[n].speeds[index] for n in self.joints if joints[n].speeds)

    def implied(self, drawn: Callable[[Any], Array]) -> dict[str, Any]:
        """The numbers that fields stand for where they are None; `drawn` finds a point (3,)."""
        return {}

    def problems(self, joints: dict[str, Any]) -> list[str]:
        """Further problems of the element, each with its remedy."""
        return []

    def problems_as_drawn(
        self, joints: Mapping[str, Any], drawn: Callable[[Any], Any]
    ) -> list[str]:
        """Those of a drawing whose numbers are all known; `drawn` finds a point (3,)."""
        return []

    def mirror_image(self, reflection: Reflection) -> Self:
        """The element that acts like this one in a mirror; coordinates of joints are the same."""
        axial = (*self.moments, *self.axial)
        changes = {
            f: (reflection.axial if f in axial else reflection.polar)(getattr(self, f))
            for f in self.vectors
        }
        return changed(self, **changes)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        """Loads and efforts at this instant."""
        raise TypeError(f"{type(self).__name__} defines no loads")

    def energy(self, motion: ElementMotion) -> Array | float:
        """Potential energy [J]; zero where the element has none."""
        return 0.0

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        """Its own forces and deflections by name, for output.

        By default the resultant force on each body, the moment about the first point of attack
        there, and the effort along each joint coordinate.
        """
        found: dict[str, Measure] = {}
        origin: dict[str, Array] = {}
        for item in self.loads(motion):
            if isinstance(item, Effort):
                found |= effort_measures(item.joint, item.value, joints)
                continue
            at = origin.setdefault(item.body, item.point)
            moment = item.moment + cross(item.point - at, item.force)
            for name, unit, x in (("force", "N", item.force), ("moment", "N m", moment)):
                key, text = f"{name}_on_{item.body}", f"{name} on {item.body}, world axes"
                x = x + found[key].value if key in found else x
                found[key] = Measure(x, unit, text)
        return found


class RubbingElement(ForceElement):
    """Base of friction elements, whose effort depends on the joint's reaction and changes it."""

    joint: str = eqx.field(static=True)

    def viscous_effort(self, v: Array) -> Array:
        """The part (nv,) that does not depend on the reaction, at the speeds v (nv,)."""
        raise TypeError(f"{type(self).__name__} defines no viscous effort")

    def rubbing(
        self, bearing: Bearing | None, columns: tuple[Array, Array], v: Array, wrench: Array
    ) -> Array:
        """Friction effort (nv,) for a given reaction.

        Args:
            bearing: the joint's kind of bearing (`Joint.bearing`).
            columns: the joint's subspace, angular and linear (3, nv).
            v: its speeds (nv,).
            wrench: the reaction (6,) ``[m; f]`` at the joint point, in a's axes.
        """
        raise TypeError(f"{type(self).__name__} defines no friction effort")


class ElasticConnection(ForceElement):
    """Base of the force elements that resist a deformation of two bodies' relative pose.

    With R_a, R_b the bodies' rotations and d the vector from a's point to b's, it is given by a
    deformation ``δ(R_a, R_b, d)`` alone. Energy ``E = ½ δᵀ K δ`` and Rayleigh's function
    ``R = ½ δ̇ᵀ B δ̇`` (Urbaś 2016, (13)) give the efforts ``−∂E/∂q − ∂R/∂q̇`` (14), that is
    ``−(∂δ/∂pose)ᵀ (K δ + B δ̇)`` on either body. The derivative is exact, so the power of the loads
    is ``−dE/dt − 2 R`` at any deformation, small or large.
    """

    @property
    def connected(self) -> tuple[str, Any, str, Any]:
        """Names of a and b, each followed by its point."""
        raise TypeError(f"{type(self).__name__} connects nothing")

    def measure_pose(self, motion: ElementMotion, r_a: Array, r_b: Array, d: Array) -> Array:
        """The deformation δ (n,) at rotations `r_a`, `r_b` and offset `d`, world axes."""
        raise TypeError(f"{type(self).__name__} defines no deformation")

    def elastic(self, deformation: Array) -> Array:
        """``K δ`` (n,)."""
        raise TypeError(f"{type(self).__name__} defines no stiffness")

    def viscous(self, rate: Array) -> Array:
        """``B δ̇`` (n,)."""
        raise TypeError(f"{type(self).__name__} defines no damping")

    def resistance(self, deformation: Array, rate: Array) -> Array:
        """``−(K δ + B δ̇)`` (n,), the efforts on b along δ."""
        return -(self.elastic(deformation) + self.viscous(rate))

    def deformation(self, motion: ElementMotion) -> tuple[Array, Array]:
        """The deformation δ (n,) and its rate δ̇ (n,)."""
        function, rates, _, _ = self._measure(motion)
        zero = jnp.zeros_like(rates[2])
        return jax.jvp(function, (zero, zero, zero), rates)

    def energy(self, motion: ElementMotion) -> Array | float:
        """``½ δᵀ K δ`` [J]."""
        delta, _ = self.deformation(motion)
        return 0.5 * delta @ self.elastic(delta)

    def dissipation(self, motion: ElementMotion) -> Array:
        """Rayleigh's function ``½ δ̇ᵀ B δ̇`` [W]: half the power that is lost."""
        _, rate = self.deformation(motion)
        return 0.5 * rate @ self.viscous(rate)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        a, _, b, _ = self.connected
        function, rates, x_a, x_b = self._measure(motion)
        zero = jnp.zeros_like(x_a)
        delta, pull = jax.vjp(function, zero, zero, zero)
        _, rate = jax.jvp(function, (zero, zero, zero), rates)
        moment_a, moment_b, force = pull(self.resistance(delta, rate))
        return [Load(a, x_a, -force, moment_a), Load(b, x_b, force, moment_b)]

    def _measure(
        self, motion: ElementMotion
    ) -> tuple[Any, tuple[Array, Array, Array], Array, Array]:
        """δ as a function of small rotations of a, of b and a shift of b; their rates; points."""
        a, at_a, b, at_b = self.connected
        x_a, v_a = motion.point(a, at_a)
        x_b, v_b = motion.point(b, at_b)
        r_a, r_b = motion.rotation(a), motion.rotation(b)

        def measure(turn_a: Array, turn_b: Array, shift: Array) -> Array:
            turned_a, turned_b = r_a + skew(turn_a) @ r_a, r_b + skew(turn_b) @ r_b
            return self.measure_pose(motion, turned_a, turned_b, x_b - x_a + shift)

        rates = motion.angular_velocity(a), motion.angular_velocity(b), v_b - v_a
        return measure, rates, x_a, x_b


def sign_problems(
    element: ForceElement, positive: tuple[str, ...], not_negative: tuple[str, ...] = ()
) -> list[str]:
    """Those of some fields that have the wrong sign; None and traced numbers pass."""
    found = []
    for names, fits, must in (
        (positive, np.greater, "be positive"),
        (not_negative, np.greater_equal, "not be negative"),
    ):
        given = {n: x for n in names if is_concrete(x := getattr(element, n))}
        wrong = {n: x for n, x in given.items() if not np.all(fits(x, 0.0))}
        found += [f"{n} is {np.asarray(x).tolist()}; it must {must}" for n, x in wrong.items()]
    return found
