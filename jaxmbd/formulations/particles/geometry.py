"""A body's particles as drawn, and points of the body as combinations of them.

A body's frame is particle 1 and edges to three more, orthogonal and of equal length ℓ (for a rod:
one edge). Any of its points is ``r = r_1 + Σ c_k (r_k − r_1)`` with constant c, linear in the
particles. Directions are differences of points.

One of four particles can be eliminated (Attia, (10)-(15), particle 3):

    r_3 = r_1 + λ r_21 × r_41 + μ r_41 + τ r_21

with invariants λ, μ, τ. The printed (10.1) takes the absolute value of λ and so loses on which side
of the plane of 1, 2, 4 particle 3 lies; the norms of (10.2)-(10.4) lose the signs of μ and τ if its
projection lies outside the angle of r_21 and r_41. Here all three keep their signs. (The mirror
image has the same six distances of four particles, but no motion leads to it.)
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from jaxmbd.spatial import cross, skew


class Frame(NamedTuple):
    """Particles of one body as drawn."""

    base: Float[Array, "3"]
    """Particle 1 [m]."""
    edges: Float[Array, "e 3"]
    """From it to the others [m]: three orthogonal edges of equal length, or one for a rod."""

    @property
    def points(self) -> Float[Array, "{len(self.edges)+1} 3"]:
        """All particles as drawn."""
        return jnp.concatenate([self.base[None], self.base + self.edges])

    @property
    def square(self) -> Float[Array, ""]:
        """ℓ² [m²]."""
        return self.edges[0] @ self.edges[0]

    def of_direction(self, u: Float[Array, "3"]) -> Float[Array, "{len(self.edges)+1}"]:
        """Coefficients that give a body-fixed vector, drawn as `u`, from the particles."""
        c = self.edges @ u / self.square
        return jnp.concatenate([-jnp.sum(c)[None], c])

    def of_point(self, x: Float[Array, "3"]) -> Float[Array, "{len(self.edges)+1}"]:
        """Coefficients (their sum is one) of the point of the body drawn at `x`."""
        c = self.edges @ (x - self.base) / self.square
        return jnp.concatenate([(1.0 - jnp.sum(c))[None], c])

    def misses(self, x: Float[Array, "3"]) -> Float[Array, ""]:
        """Distance over ℓ of a drawn point from the particles' line (rod), else zero."""
        off = x - self.of_point(x) @ self.points
        return jnp.sqrt(off @ off / self.square)


class Invariants(NamedTuple):
    """λ [1/m], μ, τ of particle 3 over particles 1, 2 and 4 (Attia, (12)); λ is signed.

    Example:
        >>> from jaxmbd.formulations import Invariants
        >>> Invariants(side=0.5, mu=0.0, tau=1.0).tau
        1.0
    """

    side: Float[Array, ""]
    mu: Float[Array, ""]
    tau: Float[Array, ""]


def invariants(r1: Array, r2: Array, r4: Array, r3: Array) -> Invariants:
    """The invariants of (12): components of r_31 along r_21 × r_41, r_41 and r_21.

    Args:
        r1: position (3,) [m] of particle 1.
        r2: of particle 2.
        r4: of particle 4, not on a line with 1 and 2.
        r3: of particle 3.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jax.numpy as jnp
        >>> from jaxmbd.formulations import invariants
        >>> x = jnp.eye(3)
        >>> [float(c) for c in invariants(jnp.zeros(3), x[0], x[1], -x[2])]
        [-1.0, 0.0, 0.0]
    """
    a, b, x = r2 - r1, r4 - r1, r3 - r1
    normal = cross(a, b)
    square = normal @ normal
    return Invariants(
        side=x @ normal / square,
        mu=cross(a, x) @ normal / square,
        tau=cross(x, b) @ normal / square,
    )


def dependent_particle(i: Invariants, r1: Array, r2: Array, r4: Array) -> Float[Array, "3"]:
    """Particle 3 (3,) [m] from the others, (12).

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import jax.numpy as jnp
        >>> from jaxmbd.formulations import dependent_particle, invariants
        >>> x = jnp.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0.3, 0.4, -0.5]])
        >>> i = invariants(*x)
        >>> bool(jnp.allclose(dependent_particle(i, *x[:3]), x[3]))
        True
    """
    a, b = r2 - r1, r4 - r1
    return r1 + i.side * cross(a, b) + i.mu * b + i.tau * a


def dependent_acceleration(
    i: Invariants, r: Float[Array, "3 3"], v: Float[Array, "3 3"]
) -> tuple[tuple[Array, Array, Array], Float[Array, "3"]]:
    """Matrices of r̈_1, r̈_2, r̈_4 in r̈_3, and its velocity part: (15) with the last term of (14).

    Args:
        i: invariants.
        r: positions of particles 1, 2, 4 [m].
        v: their velocities [m/s].
    """
    eye = jnp.eye(3, dtype=r.dtype)
    a, b = r[1] - r[0], r[2] - r[0]
    first = (1.0 - i.mu - i.tau) * eye + i.side * skew(b - a)
    second = i.tau * eye - i.side * skew(b)
    fourth = i.mu * eye + i.side * skew(a)
    return (first, second, fourth), 2.0 * i.side * cross(v[1] - v[0], v[2] - v[0])


def spin(r: Float[Array, "n 3"], v: Float[Array, "n 3"]) -> Float[Array, "3"]:
    """ω of particles with the edges of a `Frame`; without the part along a rod's axis.

    ``Σ d × (ω × d) = (e − 1) ℓ² ω`` over e = 3 edges of length ℓ at right angles.
    """
    d, rate = r[1:] - r[0], v[1:] - v[0]
    return jnp.sum(cross(d, rate), axis=0) / couple_stiffness(d)


def couple_stiffness(d: Float[Array, "e 3"]) -> Float[Array, ""]:
    """``(e − 1) ℓ²`` of three edges, ``ℓ²`` of one [m²]."""
    return (2.0 if d.shape[0] == 3 else 1.0) * (d[0] @ d[0])


def distribute(
    r: Float[Array, "n 3"], force: Float[Array, "3"], moment: Float[Array, "3"]
) -> Float[Array, "n 3"]:
    """Forces on the particles with the virtual power of a force and a moment about particle 1.

    ``f_k = G_1 × d_k / ((e − 1) ℓ²)``, and on particle 1 the remainder of the force. A moment along
    a rod's axis has no effect.
    """
    d = r[1:] - r[0]
    others = cross(jnp.broadcast_to(moment, d.shape), d) / couple_stiffness(d)
    return jnp.concatenate([(force - jnp.sum(others, axis=0))[None], others])
