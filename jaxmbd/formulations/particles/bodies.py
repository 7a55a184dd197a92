"""A body as particles: their places and masses, and points of the body as combinations of them.

A body's frame is particle 1 and edges to three more, orthogonal and of equal length ℓ (for a rod:
one edge). Any of its points is ``r = r_1 + Σ c_k (r_k − r_1)`` with constant c, linear in the
particles. Directions are differences of points.

One of four particles can be eliminated (Attia, (10)-(15), particle 3):

    r_3 = r_1 + λ r_21 × r_41 + μ r_41 + τ r_21

with invariants λ, μ, τ. The printed (10.1) takes the absolute value of λ and so loses on which side
of the plane of 1, 2, 4 particle 3 lies; the norms of (10.2)-(10.4) lose the signs of μ and τ if its
projection lies outside the angle of r_21 and r_41. Here all three keep their signs. (The mirror
image has the same six distances of four particles, but no motion leads to it.)

Dynamically equivalent particles of a rigid body (Attia, section 2.1).

k primary particles and one secondary particle midway between each pair carry masses that match
the body's mass, first and second moments: ten masses for four primary particles, six for the
three of a flat body, three for the two of a rod (section 2.3). The system is linear:

    Σ m_i = m,   Σ m_i r_i = m r_C,   Σ m_i r_i r_iᵀ = ∫ r rᵀ dm,

the last being (1.3)-(1.8), as ``∫ r rᵀ dm = ½ tr(I) 1 − I`` for the inertia I about the same
point. With midpoints ``r_ij = (r_i + r_j)/2`` the kinetic energy is ``½ Σ M_ij ṙ_i·ṙ_j``,

    M_ii = m_i + ¼ Σ_j m_ij,   M_ij = ¼ m_ij,

the m̄̄_i of (9) and the ¼ m_ij of (8); its row sums are the m̄_i of (7). Some of the masses may be
negative: only their moments have a physical meaning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from jaxmbd.model import Body, is_concrete
from jaxmbd.numerics import tolerances
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
    """Matrices of r̈_1, r̈_2, r̈_4 (rows of r) in r̈_3, and its velocity part: (15), (14)."""
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


# Second moments, relative to the largest, that count as zero: inertias are given to a few digits
# more than single precision.
_FLAT = 1e-9


class EquivalentParticles(NamedTuple):
    """Particles with the mass, centre of mass and inertia of a rigid body.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> from jaxmbd.formulations import equivalent_particles
        >>> rod = equivalent_particles([[0, 0, 0], [1, 0, 0]], 6.0, [0.5, 0, 0], [0, 0.5, 0.5])
        >>> [round(float(m), 12) for m in rod.masses]  # Simpson's rule
        [1.0, 1.0, 4.0]
    """

    points: Float[Array, "n 3"]
    """Primary particles, then the midpoints of the pairs (1, 2), (1, 3), … [m]."""
    masses: Float[Array, "n"]
    """[kg], in the same order; any of them may be negative."""
    matrix: Float[Array, "k k"]
    """M of the primary particles: kinetic energy ``½ Σ M_ij ṙ_i·ṙ_j`` [kg]."""


def second_moment(inertia: Float[Array, "3 3"]) -> Float[Array, "3 3"]:
    """``∫ r rᵀ dm = ½ tr(I) 1 − I`` [kg m²]."""
    return 0.5 * jnp.trace(inertia) * jnp.eye(3, dtype=inertia.dtype) - inertia


def equivalent_particles(points: Any, mass: Any, com: Any, inertia: Any) -> EquivalentParticles:
    """The masses of primary and secondary particles that replace a rigid body: (1) solved.

    Args:
        points: primary particles (k, 3) [m]: for any body four that are not in one plane, for a
            flat body three in its plane that are not on one line, for a rod two on its axis, for a
            point mass one.
        mass: [kg].
        com: centre of mass (3,) [m].
        inertia: about the centre of mass, (3, 3), or (3,) for a diagonal, or a number [kg m²].

    Returns:
        Points, masses, and the mass matrix of the primary particles. Where such particles
        cannot represent the body and its numbers are traced, the masses are NaN.

    Raises:
        ValueError: the primary particles are in one plane, on one line or coincide, or the body is
            not flat, not a rod, or does not lie in their plane or on their line.

    Example:
        >>> import jax; jax.config.update("jax_enable_x64", True)
        >>> import numpy as np
        >>> from jaxmbd.formulations import equivalent_particles
        >>> corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
        >>> body = equivalent_particles(corners, 2.0, [0.2, 0.1, 0.3], [0.3, 0.4, 0.5])
        >>> len(body.masses), round(float(body.masses.sum()), 12)
        (10, 2.0)
    """
    concrete = all(is_concrete(x) or isinstance(x, (list, tuple)) for x in (points, mass, com))
    points, mass, com, inertia = (jnp.asarray(x) for x in (points, mass, com, inertia))
    dtype = jnp.result_type(points, mass, com, inertia, jnp.float32)
    points, mass, com, inertia = (x.astype(dtype) for x in (points, mass, com, inertia))
    inertia = _matrix(inertia)
    k = points.shape[0]
    if points.ndim != 2 or points.shape[1] != 3 or not 1 <= k <= 4:
        raise ValueError(f"primary particles have shape {points.shape}; give (k, 3), k = 1 to 4")
    i, j = np.triu_indices(k, 1)
    everyone = jnp.concatenate([points, 0.5 * (points[i] + points[j])])
    size = _size(points, mass, com, inertia)
    rows = _moments((everyone - com) / size)
    right = jnp.concatenate(
        [mass[None], jnp.zeros(3, mass.dtype), _upper(second_moment(inertia) / size**2)]
    )
    solve = jnp.linalg.solve if k == 4 else lambda a, b: jnp.linalg.lstsq(a, b)[0]
    masses = solve(rows, right)
    scale = jnp.max(jnp.abs(right))
    miss = jnp.max(jnp.abs(rows @ masses - right)) / jnp.where(scale > 0.0, scale, 1.0)
    flat = max(_FLAT, tolerances.rounding(rows.dtype, 1e4))
    fine = (miss < flat) & (_spread(points) > tolerances.rounding(rows.dtype, 1e3))
    if concrete and is_concrete(fine) and not bool(fine):
        raise ValueError(_refusal(np.asarray(points), float(miss), np.asarray(inertia)))
    masses = jnp.where(fine, masses, jnp.nan)
    quarter = jnp.zeros((k, k), masses.dtype).at[i, j].set(0.25 * masses[k:])
    quarter = quarter + quarter.T
    matrix = quarter + jnp.diag(masses[:k] + jnp.sum(quarter, axis=1))
    return EquivalentParticles(everyone, masses, matrix)


def mass_distribution(body: Body) -> str:
    """The kind of a body's mass distribution: "general", "flat", "rod", "point" or "massless".

    It follows from the rank of the second moments about the centre of mass: three, two, one, zero.
    A general body takes four primary particles, a flat one three, a rod two.

    Raises:
        ValueError: for traced numbers, because the result determines array shapes.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.formulations import mass_distribution
        >>> mass_distribution(mbd.Body(1.0, (0, 0, 0), (0.1, 0.2, 0.3)))
        'flat'
    """
    if not (is_concrete(body.mass) and is_concrete(body.inertia)):
        raise ValueError("mass_distribution needs known numbers, not traced ones: call outside jit")
    inertia = np.asarray(_matrix(jnp.asarray(body.inertia)), float)
    # Published inertias may break the triangle inequality: a moment below zero counts too.
    moments = np.abs(np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia))
    rank = int(np.sum(moments > _FLAT * moments.max()))
    if rank == 0:
        return "point" if float(body.mass) > 0.0 else "massless"
    return ("rod", "flat", "general")[rank - 1]


def _matrix(inertia: Array) -> Float[Array, "3 3"]:
    """An inertia as a matrix: one number is the same about all axes, three are a diagonal."""
    if inertia.ndim == 2:
        return inertia
    return jnp.diag(jnp.broadcast_to(inertia, (3,)))


def _upper(m: Array) -> Float[Array, "6"]:
    """xx, yy, zz, xy, xz, yz of a symmetric matrix."""
    return jnp.stack([m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2]])


def _moments(x: Float[Array, "n 3"]) -> Float[Array, "10 n"]:
    """One row for each moment: 1, x, y, z, then the six products."""
    products = [x[:, a] * x[:, b] for a, b in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return jnp.stack([jnp.ones_like(x[:, 0]), *x.T, *products])


def _size(points: Array, mass: Array, com: Array, inertia: Array) -> Array:
    """A length of the body: the farthest primary particle or its radius of gyration [m]."""
    arms = points - com
    far = jnp.max(jnp.sum(arms * arms, axis=1))
    gyration = jnp.where(mass > 0.0, jnp.trace(inertia) / jnp.where(mass > 0.0, mass, 1.0), 0.0)
    square = jnp.maximum(far, gyration)
    return jnp.sqrt(jnp.where(square > 0.0, square, 1.0))


def _spread(points: Float[Array, "k 3"]) -> Array:
    """Volume, area or length spanned by the particles over that of equal orthogonal edges."""
    edges = points[1:] - points[:1]
    if edges.shape[0] == 0:
        return jnp.ones((), points.dtype)
    gram = jnp.linalg.det(edges @ edges.T)
    longest = jnp.max(jnp.sum(edges * edges, axis=1)) ** edges.shape[0]
    return jnp.sqrt(jnp.maximum(gram, 0.0) / jnp.where(longest > 0.0, longest, 1.0))


def _refusal(points: np.ndarray, miss: float, inertia: np.ndarray) -> str:
    k = len(points)
    edges = points[1:] - points[0]
    rank = np.linalg.matrix_rank(edges, tol=1e-9 * max(np.abs(edges).max(initial=0.0), 1e-300))
    if rank < k - 1:
        shape = ("a point", "a line", "a plane")[rank]
        return (
            f"the {k} primary particles lie in {shape}, so their masses are not determined; "
            f"move one out of it, or give {rank + 1} where the body itself lies in it"
        )
    moments = np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    body = {2: "rod on the line", 3: "flat body in the plane", 1: "point mass at the place"}[k]
    return (
        f"the body is no {body} of its {k} primary particles: second moments about its centre of "
        f"mass are {moments} kg m², and a part {miss:.1e} of its moments is not represented; give "
        "four particles that are not in a plane"
    )
