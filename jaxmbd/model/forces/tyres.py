"""Tyres: a vertical spring and damper, and one with all forces by the magic formula.

Pacejka (Tire and Vehicle Dynamics, chapter 4, the basic form with load-dependent peak and slope):
with slip s, either κ or tan α,

    F = D sin(C atan(B s − E (B s − atan B s))),   D = μ N,   B C D = c1 sin(2 atan(N / c2)),

and ``μ = μ0 (1 − sensitivity (N/N0 − 1))``, not below a fifth of μ0. The two slips act together
through the normalised slip ``σ = √((B_x κ)² + (B_y tan α)²)``: with the shape
``g(σ) = sin(C atan(σ − E (σ − atan σ)))`` of each direction,

    F_x = D_x g_x(σ) B_x κ/σ,    F_y = D_y g_y(σ) B_y tan α/σ,

which reduces to the formula in pure slip and always stays within the friction ellipse
``(F_x/D_x)² + (F_y/D_y)² ≤ 1``. The aligning moment is ``M_z = −t F_y`` with the pneumatic trail
``t = D_t cos(C_t atan(B_t tan α))``.

Slips are taken at the contact point C, the lowest point of the wheel plane: with V the velocity of
the wheel's material there relative to the road and v_x the forward speed of the centre,
``κ = −V_x / u``, ``tan α = −V_y / u``, ``u = √(v_x² + low_speed²)``. At standstill the tyre acts as
a viscous damper, so that the force is differentiable there, but a parked wheel creeps. The
free-rolling radius is the loaded radius.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.model.forces.base import Effort, ElementMotion, ForceElement, Load, Measure
from jaxmbd.model.numbers import Units, functions_static, number, point, vector_in_space
from jaxmbd.spatial import cross, unit


def road_height(tyre: Any, motion: ElementMotion, dtype: Any) -> tuple[Array, Array]:
    """Height of the road along `up` [m] and its rate [m/s]."""
    height = jnp.asarray(tyre.road, dtype)
    if tyre.law is None:
        return height, jnp.zeros_like(height)
    t = jnp.asarray(motion.t, dtype)
    more, rise = jax.jvp(lambda s: jnp.asarray(tyre.law(s), dtype), (t,), (jnp.ones_like(t),))
    return height + more, rise


class Tyre(ForceElement):
    """A spring-damper between the road and a wheel centre, along `up`; it never pulls.

    With δ = radius − (height of the centre above the road), the force on the wheel is
    ``max(0, stiffness·δ + damping·δ̇)`` where δ > 0, and zero where the wheel has lifted off.

    Attributes:
        b: name of the wheel's body.
        at: wheel centre, (3,) [m] as drawn or the name of a point.
        stiffness: [N/m].
        damping: [N·s/m].
        radius: unloaded radius [m].
        road: height of the road along `up` [m].
        up: unit vector out of the road (3,), (2,) in a planar mechanism.
        law: a function of t [s] giving further road height [m] (its rate is taken by `jax.jvp`);
            a `Sampled` for a measured road.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.Tyre("hub", at=(0, 0.9, 0.3), stiffness=2e5, damping=100.0, radius=0.31).b
        'hub'
    """

    b: str = eqx.field(static=True)
    at: Any = eqx.field(converter=point)
    stiffness: Any = eqx.field(converter=number)
    damping: Any = eqx.field(converter=number, default=0.0)
    radius: Any = eqx.field(converter=number, default=0.3)
    road: Any = eqx.field(converter=number, default=0.0)
    up: Any = eqx.field(converter=number, default=(0.0, 0.0, 1.0))
    law: Any = eqx.field(converter=functions_static, default=None)

    vectors: ClassVar[tuple[str, ...]] = ("up",)
    units: ClassVar[Units] = {
        "stiffness": "N/m",
        "damping": "N s/m",
        "radius": "m",
        "road": "m",
        "up": "",
    }

    def _compression(self, motion: ElementMotion) -> tuple[Array, Array, Array, Array]:
        x, velocity = motion.point(self.b, self.at)
        up = vector_in_space(jnp.asarray(self.up))
        height, rise = road_height(self, motion, x.dtype)
        return x, up, self.radius - (up @ x - height), rise - up @ velocity

    def _normal(self, depth: Array, rate: Array) -> Array:
        push = jnp.maximum(self.stiffness * depth + self.damping * rate, 0.0)
        return jnp.where(depth > 0.0, push, 0.0)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        x, up, depth, rate = self._compression(motion)
        force = self._normal(depth, rate) * up
        return [Load(self.b, x, force, jnp.zeros_like(force))]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        _, _, depth, rate = self._compression(motion)
        return {
            "normal": Measure(self._normal(depth, rate), "N", "force of the road on the wheel"),
            "deflection": Measure(depth, "m", "deflection, negative off the road"),
            "rate": Measure(rate, "m/s", "rate of deflection"),
        }

    def energy(self, motion: ElementMotion) -> Array | float:
        _, _, depth, _ = self._compression(motion)
        return 0.5 * self.stiffness * jnp.maximum(depth, 0.0) ** 2


class Contact(NamedTuple):
    """The contact of a wheel with the road.

    Attributes:
        point: contact point (3,) [m].
        forward, left, up: unit vectors of the road at the wheel (3,).
        deflection: deflection of the tyre in the wheel plane [m], negative off the ground.
        normal: force N along `up` [N].
        slip: κ.
        slip_angle: tan α.
    """

    point: Array
    forward: Array
    left: Array
    up: Array
    deflection: Array
    normal: Array
    slip: Array
    slip_angle: Array


class PacejkaTyre(ForceElement):
    """A tyre on a plane road: spring-damper, magic formula and aligning moment.

    The module docstring has the formulas. The spring acts in the wheel plane, so that camber is
    exact: with δ the deflection and γ the camber, ``N = max(0, stiffness δ + damping δ̇) / cos γ``
    at C has the potential ``½ stiffness δ²``. Signs: forces act on the wheel, forward along `axis`
    × `up`, left along `axis`; κ > 0 drives forward, tan α > 0 pushes left. The default coefficients
    are plausible for a passenger car's tyre, but not measured.

    Attributes:
        b: name of the wheel's body, the one that spins.
        at: wheel centre, (3,) [m] as drawn or the name of a point.
        stiffness: vertical stiffness [N/m].
        damping: vertical damping [N·s/m].
        radius: unloaded radius [m].
        axis: spin axis fixed in b, (3,) as drawn, pointing left of travel.
        longitudinal: C, μ0, E of F_x (3,).
        lateral: C, μ0, E of F_y (3,).
        slip_stiffness: c1 [N], c2 [N] of F_x (2,): the slope at zero slip, c1 sin(2 atan(N/c2)).
        cornering_stiffness: c1 [N/rad], c2 [N] of F_y (2,).
        nominal_load: N0 [N].
        load_sensitivity: relative loss of μ per N0 of load.
        trail: B_t, C_t, D_t [m] (3,); no aligning moment where D_t = 0.
        low_speed: speed of the regularisation [m/s].
        road: height of the road along `up` [m].
        up: unit vector out of the road (3,).
        law: a function of t [s] giving further road height [m] (its rate is taken by `jax.jvp`);
            a `Sampled` for a measured road.
        belt: velocity of the road surface (3,) [m/s], to model a moving car with a chassis at
            rest.
        free_rolling: whether κ = 0 is assumed; b then need not spin and may be the upright that
            carries the wheel.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.PacejkaTyre("wheel", at=(0, 0.8, 0.3), stiffness=2e5, radius=0.31).b
        'wheel'
    """

    b: str = eqx.field(static=True)
    at: Any = eqx.field(converter=point)
    stiffness: Any = eqx.field(converter=number)
    damping: Any = eqx.field(converter=number, default=0.0)
    radius: Any = eqx.field(converter=number, default=0.3)
    axis: Any = eqx.field(converter=number, default=(0.0, 1.0, 0.0))
    longitudinal: Any = eqx.field(converter=number, default=(1.65, 1.0, 0.0))
    lateral: Any = eqx.field(converter=number, default=(1.3, 0.95, -1.0))
    slip_stiffness: Any = eqx.field(converter=number, default=(1.2e5, 8e3))
    cornering_stiffness: Any = eqx.field(converter=number, default=(7e4, 6e3))
    nominal_load: Any = eqx.field(converter=number, default=4000.0)
    load_sensitivity: Any = eqx.field(converter=number, default=0.1)
    trail: Any = eqx.field(converter=number, default=(10.0, 1.2, 0.0))
    low_speed: Any = eqx.field(converter=number, default=0.5)
    road: Any = eqx.field(converter=number, default=0.0)
    up: Any = eqx.field(converter=number, default=(0.0, 0.0, 1.0))
    law: Any = eqx.field(converter=functions_static, default=None)
    belt: Any = eqx.field(converter=number, default=(0.0, 0.0, 0.0))
    free_rolling: bool = eqx.field(static=True, default=False)

    vectors: ClassVar[tuple[str, ...]] = ("up", "axis", "belt")
    axial: ClassVar[tuple[str, ...]] = ("axis",)
    units: ClassVar[Units] = {
        "stiffness": "N/m",
        "damping": "N s/m",
        "radius": "m",
        "axis": "",
        "longitudinal": "",
        "lateral": "",
        "slip_stiffness": "N",
        "cornering_stiffness": ("N/rad", "N"),
        "nominal_load": "N",
        "load_sensitivity": "",
        "trail": ("", "", "m"),
        "low_speed": "m/s",
        "road": "m",
        "up": "",
        "belt": "m/s",
    }

    def shapes(self, joints: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Numbers, directions and coefficients."""
        sized = {"longitudinal": 3, "lateral": 3, "trail": 3, "slip_stiffness": 2}
        sized["cornering_stiffness"] = 2
        return super().shapes(joints) | {name: ((n,),) for name, n in sized.items()}

    def contact(self, motion: ElementMotion) -> Contact:
        """The contact of the wheel with the road."""
        x, velocity = motion.point(self.b, self.at)
        up = jnp.asarray(self.up)
        axis = motion.rotation(self.b) @ unit(jnp.asarray(self.axis))
        forward = unit(cross(axis, up))
        down = cross(axis, forward)  # from the centre to the contact, in the wheel plane
        cosine = -(up @ down)
        height, rise = road_height(self, motion, x.dtype)
        loaded = (up @ x - height) / cosine
        arm = loaded * down
        slide = velocity + cross(motion.angular_velocity(self.b), arm)
        deflection = self.radius - loaded
        rate = (rise - up @ slide) / cosine
        push = jnp.maximum(self.stiffness * deflection + self.damping * rate, 0.0) / cosine
        normal = jnp.where(deflection > 0.0, push, 0.0)
        left = cross(up, forward)
        belt = jnp.asarray(self.belt)
        along, over = forward @ (velocity - belt), slide - belt
        speed = jnp.sqrt(along * along + jnp.asarray(self.low_speed) ** 2)
        slip = jnp.zeros_like(speed) if self.free_rolling else -(forward @ over) / speed
        return Contact(x + arm, forward, left, up, deflection, normal, slip, -(left @ over) / speed)

    def forces(self, normal: Array, slip: Array, slip_angle: Array) -> tuple[Array, Array, Array]:
        """F_x [N], F_y [N] and M_z [N·m] at a normal force, κ and tan α."""
        peak_x, b_x = self._peak_and_slope(normal, self.longitudinal, self.slip_stiffness)
        peak_y, b_y = self._peak_and_slope(normal, self.lateral, self.cornering_stiffness)
        x, y = b_x * slip, b_y * slip_angle
        square = x * x + y * y
        slides = square > 0.0
        sigma = jnp.sqrt(jnp.where(slides, square, 1.0))
        f_x = peak_x * x * _secant(sigma, slides, self.longitudinal)
        f_y = peak_y * y * _secant(sigma, slides, self.lateral)
        b, c, d = jnp.asarray(self.trail)
        return f_x, f_y, -d * jnp.cos(c * jnp.arctan(b * slip_angle)) * f_y

    def _peak_and_slope(self, normal: Array, shape: Any, slope: Any) -> tuple[Array, Array]:
        """D = μ N, and B = c1 sin(2 atan(N/c2)) / (C D) without a division by N."""
        (c, mu, _), (c1, c2) = jnp.asarray(shape), jnp.asarray(slope)
        loss = self.load_sensitivity * (normal / self.nominal_load - 1.0)
        mu = mu * jnp.maximum(1.0 - loss, 0.2)
        ratio = normal / c2
        steep = c * jnp.maximum(mu, 1e-9)  # a tyre without friction slides at any slip
        return mu * normal, 2.0 * c1 / (c2 * (1.0 + ratio * ratio) * steep)

    def loads(self, motion: ElementMotion) -> list[Load | Effort]:
        at = self.contact(motion)
        f_x, f_y, moment = self.forces(at.normal, at.slip, at.slip_angle)
        force = at.normal * at.up + f_x * at.forward + f_y * at.left
        return [Load(self.b, at.point, force, moment * at.up)]

    def measures(self, motion: ElementMotion, joints: Mapping[str, Any]) -> dict[str, Measure]:
        at = self.contact(motion)
        f_x, f_y, moment = self.forces(at.normal, at.slip, at.slip_angle)
        return {
            "normal": Measure(at.normal, "N", "force of the road on the wheel, along up"),
            "longitudinal": Measure(f_x, "N", "force on the wheel, positive forward"),
            "lateral": Measure(f_y, "N", "force on the wheel, positive to the left"),
            "aligning": Measure(moment, "N m", "aligning moment on the wheel about up"),
            "deflection": Measure(at.deflection, "m", "deflection, negative off the road"),
            "slip": Measure(at.slip, "", "longitudinal slip, positive when driving"),
            "slip_angle": Measure(
                jnp.arctan(at.slip_angle), "rad", "slip angle, positive: pushes left"
            ),
        }

    def energy(self, motion: ElementMotion) -> Array | float:
        depth = jnp.maximum(self.contact(motion).deflection, 0.0)
        return 0.5 * self.stiffness * depth * depth


def _secant(sigma: Array, slides: Array, shape: Any) -> Array:
    """``g(σ)/σ``; its limit C at zero slip."""
    c, _, e = jnp.asarray(shape)
    g = jnp.sin(c * jnp.arctan(sigma - e * (sigma - jnp.arctan(sigma))))
    return jnp.asarray(jnp.where(slides, g / sigma, c))
