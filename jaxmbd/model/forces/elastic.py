"""Elastic connections: deformation δ of two bodies' relative pose, its energy and dissipation.

With R_a, R_b the bodies' rotations and d the vector from a's point to b's, a connection is given
by ``δ(R_a, R_b, d)`` alone. Energy ``E = ½ δᵀ K δ`` and Rayleigh's function ``R = ½ δ̇ᵀ B δ̇``
(Urbaś 2016, (13)) give the efforts ``−∂E/∂q − ∂R/∂q̇`` (14), that is
``−(∂δ/∂pose)ᵀ (K δ + B δ̇)`` on either body. The derivative is exact, so the power of the loads is
``−dE/dt − 2 R`` at any deformation, small or large.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.base import Effort, ElementMotion, ForceElement, Load
from jaxmbd.spatial import skew


class ElasticConnection(ForceElement):
    """Base of the force elements that resist a deformation of two bodies' relative pose."""

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
