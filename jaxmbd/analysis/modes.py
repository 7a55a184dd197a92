"""A linear state space of a mechanism: eigenvalues, modes, damping, frequency response."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.numerics import tolerances
from jaxmbd.numerics.consistency import nan_where


class Modes(NamedTuple):
    """Natural modes ``Re(c e^{λt} shape)``, slowest first, complex pairs next to each other.

    Attributes:
        eigenvalues: λ (2 nd,) [1/s], complex.
        frequencies: ``|λ|/2π`` (2 nd,) [Hz].
        damping_ratios: ``−Re λ/|λ|`` (2 nd,): ±1 for a real λ, zero where λ is zero.
        shapes: mode shapes (nv, 2 nd) along all speeds; the largest component of each is one.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.double_pendulum()
        >>> mbd.linearize(m, mbd.equilibrium(m).q).modes().shapes.shape
        (2, 4)
    """

    eigenvalues: Array
    frequencies: Array
    damping_ratios: Array
    shapes: Array


class Linearization(eqx.Module):
    """``ẋ = A x + B u``, ``w = C x + D u``: the result of `linearize`, a pytree of its matrices.

    Attributes:
        A: (2 nd, 2 nd); x are changes of the independent coordinates, then of their speeds.
        B: (2 nd, nu); u are changes of the efforts [N, N·m] that `inputs` names.
        C: (nw, 2 nd).
        D: (nw, nu).
        motions: N (nv, nd): all speeds as functions of the independent ones.
        independent: names of the independent speeds.
        inputs: names of the columns of B.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.linearize(m, mbd.equilibrium(m).q, inputs="hinge").B.tolist()
        [[0.0], [1.0]]
    """

    A: Array
    B: Array
    C: Array
    D: Array
    motions: Array
    independent: tuple[str, ...] = eqx.field(static=True)
    inputs: tuple[str, ...] = eqx.field(static=True)

    def eigenvalues(self) -> Array:
        """λ (2 nd,) [1/s] of A, smallest modulus first.

        Differentiable where they are simple. A repeated or defective one, such as the double zero
        of a free motion, has no derivative: it is NaN, and the others' are not affected.
        """
        values = _eigenvalues(self.A)
        return values[jnp.argsort(jnp.abs(jax.lax.stop_gradient(values)), stable=True)]

    def frequencies(self) -> Array:
        """Natural frequencies (2 nd,) [Hz], ``|λ|/2π`` in the order of `eigenvalues`.

        Derivatives are NaN where those of the eigenvalue are, but for a frequency that is exactly
        zero in reverse mode: it adds nothing to a gradient. Leave out free motions by their index.
        """
        return _modulus(self.eigenvalues()) / (2.0 * jnp.pi)

    def damping_ratios(self) -> Array:
        """``−Re λ/|λ|`` (2 nd,) in the order of `eigenvalues`; zero where λ is zero."""
        values = self.eigenvalues()
        size = _modulus(values)
        return jnp.where(size > 0.0, -values.real / jnp.where(size > 0.0, size, 1.0), 0.0)

    def modes(self) -> Modes:
        """Eigenvalues with mode shapes along all speeds; the shapes are not differentiated."""
        a = jax.lax.stop_gradient(self.A)
        values, vectors = jnp.linalg.eig(a)
        order = jnp.argsort(jnp.abs(values), stable=True)
        nd = self.motions.shape[1]
        vectors = vectors[:, order]
        shapes = jax.lax.stop_gradient(self.motions).astype(vectors.dtype) @ vectors[:nd]
        if shapes.size:
            largest = jnp.argmax(jnp.abs(shapes), axis=0)
            peak = shapes[largest, jnp.arange(shapes.shape[1])]
            shapes = shapes / jnp.where(jnp.abs(peak) > 0.0, peak, 1.0)
        return Modes(self.eigenvalues(), self.frequencies(), self.damping_ratios(), shapes)

    def response(self, omega: Array) -> Array:
        """Frequency response ``C (iω − A)⁻¹ B + D`` (…, nw, nu), complex, at ω (…) [rad/s]."""
        omega = jnp.asarray(omega, self.A.dtype)
        eye = jnp.eye(self.A.shape[0], dtype=self.A.dtype)
        return (
            self.C @ jnp.linalg.solve(1j * omega[..., None, None] * eye - self.A, self.B + 0j)
            + self.D
        )


def _modulus(x: Array) -> Array:
    """``|x|``; at zero the derivative is zero, or NaN where x has none."""
    square = x.real**2 + x.imag**2
    size = jnp.sqrt(jnp.where(square > 0.0, square, 1.0))
    return jnp.where(square > 0.0, size, 0.0 * x.real)


@jax.custom_jvp
def _eigenvalues(a: Array) -> Array:
    return jnp.linalg.eigvals(a) if a.size else jnp.zeros(0, np.result_type(a.dtype, np.complex64))


@_eigenvalues.defjvp
def _eigenvalues_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """``λ̇_k = y_kᴴ Ȧ x_k / y_kᴴ x_k``, x and y the right and left eigenvectors of A.

    Stewart and Sun, Matrix Perturbation Theory, section IV.2. Each eigenvalue is differentiated by
    its own vectors, so a defective one (the free spin of a wheel) costs the others nothing.

    An eigenvalue that is not simple to working precision has no derivative: its tangent is NaN, and
    so is its cotangent unless that is zero. Rounding A's elements moves λ_k by up to
    ``δ_k = ε |y_k|ᵀ |A| |x_k| / |y_kᴴ x_k|`` and vectors by δ_k over the distance to the next
    eigenvalue, which therefore must exceed ``δ_k/tolerances.separation``; A itself is computed with
    rounding, so that it must exceed ``100 ε max|λ|`` too.
    """
    (a,), (dot,) = primals, tangents
    if not a.size:
        out = _eigenvalues(a)
        return out, jnp.zeros_like(out)
    values, y, x = jax.lax.linalg.eig(a)
    dual = y.conj().T
    overlap = jnp.sum(y.conj() * x, axis=0)
    moved = tolerances.rounding(a.dtype) * jnp.sum(jnp.abs(y) * (jnp.abs(a) @ jnp.abs(x)), axis=0)
    distance = jnp.abs(values[:, None] - values) + jnp.diag(jnp.full(values.shape, jnp.inf))
    nearest = jnp.min(distance, axis=0)
    near = nearest * jnp.abs(overlap) <= moved / tolerances.separation(a.dtype)
    near |= nearest <= tolerances.rounding(a.dtype, 100) * jnp.max(jnp.abs(values))
    rates = jnp.sum((dual @ dot.astype(x.dtype)).T * x, axis=0) / jnp.where(near, 1.0, overlap)
    return values, nan_where(near, rates)
