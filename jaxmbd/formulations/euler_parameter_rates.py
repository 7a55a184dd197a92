"""The ball joint with rates of Euler parameters as speeds (Hanzaki, Saha and Rao 2009).

With ``p = [e0; e]`` of unit length ``ė0 = −e·ė/e0``, so that (their (5), (12), (13))

    ω = 2 G ṗ,   G = [−e, ẽ + e0 1],   ṗ = C ė,   C = [−eᵀ/e0; 1],
    ω = G* ė,    G* = 2 G C = (B + 1)/e0,   P = [G*; 0].

The last equality is theirs; here it follows from ``2 G C = 2 (e eᵀ/e0 + ẽ + e0 1)`` and
``B = (2 e0² − 1) 1 + 2 (e eᵀ + e0 ẽ)``. It is singular at half a turn, ``e0 = 0``, through which
their own example passes; jaxmbd's `Spherical` has the relative angular velocity as speeds and is
regular. This joint is kept for comparison.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from jaxmbd.model import Mechanism, Spherical
from jaxmbd.numerics import AnyArray
from jaxmbd.spatial import normalize_quaternion, rotation_matrix


class EulerParameterBall(Spherical):
    """A ball joint whose speeds are ė, the rates of the Euler parameters' vector part [1/s].

    Coordinates, and the rows as a cut joint, are those of `Spherical`; efforts along the speeds are
    ``G*ᵀ n`` of a moment n. Singular at ``e0 = 0``: results are not finite there, and lose as many
    digits nearby as e0 has leading zeros.

    Attributes:
        a, b: names of the connected bodies.
        at: centre of the ball, (3,) [m] as drawn or the name of a point; `at_b` if b's half is
            drawn elsewhere.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import EulerParameterBall, with_euler_parameter_rates
        >>> mech = with_euler_parameter_rates(mbd.zoo.rssr())
        >>> isinstance(mech.joints["A"], EulerParameterBall)
        True
    """

    moving_subspace: ClassVar[bool] = True

    def subspace(self, q: Array) -> tuple[Array, Array]:
        """G* and zero, both (3, 3)."""
        eye = jnp.eye(3, dtype=q.dtype)
        return (rotation_matrix(q) + eye) / q[0], jnp.zeros((3, 3), q.dtype)

    def rate(self, q: Array, v: Array) -> Array:
        """``[−e·ė/e0; ė]``."""
        return jnp.concatenate([-(q[1:] @ v)[None] / q[0], v])

    def step(self, q: Array, change: Array) -> Array:
        """`q` after a small change of e, at unit length."""
        return normalize_quaternion(q + self.rate(q, change))

    def speeds_of_rate(self, q: Array, rate: Array) -> Array:
        """ė itself."""
        return rate[1:]

    def change(self, start: Array, q: Array) -> Array:
        """The small change of e that takes `start` to `q`."""
        return speeds_from_angular_velocity(start, super().change(start, q))


def with_euler_parameter_rates(mech: Mechanism) -> Mechanism:
    """The mechanism with ė as speeds of all its ball joints.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import with_euler_parameter_rates
        >>> mech = with_euler_parameter_rates(mbd.zoo.rssr())
        >>> mass = [mbd.mass_matrix(m, mbd.neutral(m)) for m in (mech, mbd.zoo.rssr())]
        >>> print(f"{mass[0][2, 2] / mass[1][2, 2]:.3f}")  # ω = 2 ė where e0 = 1
        4.000
    """
    balls = {
        name: EulerParameterBall(joint.a, joint.b, at=joint.at, at_b=joint.at_b)
        for name, joint in mech.joints.items()
        if type(joint) is Spherical
    }
    return mech.replace(joints=balls)


def speeds_from_angular_velocity(p: AnyArray, omega: AnyArray) -> Array:
    """ė (3,) of the relative angular velocity ω (3,) in a's axes: ``ė = ½ (e0 ω − e × ω)``.

    That is the vector part of ``ṗ = ½ (0, ω) ∘ p``, regular everywhere; G* is its inverse.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxmbd.formulations.euler_parameter_rates import speeds_from_angular_velocity
        >>> speeds_from_angular_velocity(jnp.array([1.0, 0, 0, 0]), jnp.array([0, 0, 2.0])).tolist()
        [0.0, 0.0, 1.0]
    """
    e0, e = p[0], p[1:]
    return 0.5 * (e0 * omega - jnp.cross(e, omega))
