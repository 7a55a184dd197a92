"""Roads of a given roughness, as laws of tyres.

ISO 8608 describes a road by the power spectral density of its height over the wave number n,
``G(n) = G₀ (n/n₀)⁻²`` with ``n₀ = 0.1 cycles/m``; its classes A to H have, in the middle of each,
``G₀ = 16·10⁻⁶ m³ · 4ᵏ``, k = 0 for A. A sum of waves has that density in the mean where each has
the variance of its band from n₁ to n₂, ``Aᵢ²/2 = ∫ G dn = G₀ n₀² (1/n₁ − 1/n₂)``, and any phase.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.forces.laws import register_law
from jaxmbd.model.numbers import Units, number
from jaxmbd.model.part import Part

CLASSES = "ABCDEFGH"
_MIDDLE_OF_A, _REFERENCE = 16e-6, 0.1  # [m³], [1/m]


@register_law("wavy_road")
class WavyRoad(Part):
    """A road's height over time at a constant speed: ``Σ Aᵢ sin(2π nᵢ s t + φᵢ)``, s the speed.

    Attributes:
        waves: wave numbers nᵢ (n,) [1/m].
        amplitudes: Aᵢ (n,) [m].
        phases: φᵢ (n,) [rad].
        speed: of the car [m/s].

    Example:
        >>> import jax, jaxmbd as mbd
        >>> road = mbd.WavyRoad([0.1], [0.01], [0.0], speed=20.0)
        >>> round(float(road(0.125)), 6), round(float(jax.grad(road)(0.0)), 6)
        (0.01, 0.125664)
    """

    waves: Any = eqx.field(converter=number)
    amplitudes: Any = eqx.field(converter=number)
    phases: Any = eqx.field(converter=number)
    speed: Any = eqx.field(converter=number)

    units: ClassVar[Units] = {
        "waves": "1/m",
        "amplitudes": "m",
        "phases": "rad",
        "speed": "m/s",
    }

    @classmethod
    def iso8608(
        cls,
        grade: str = "C",
        speed: Any = 20.0,
        *,
        count: int = 24,
        between: tuple[float, float] = (0.02, 1.5),
        seed: int = 0,
    ) -> Self:
        """A road of a class of ISO 8608, by waves in bands of equal ratio.

        Another one of its class has other phases, and wave numbers anywhere in their bands
        (`half_band`), so that the spectrum of many roads has no gaps.

        Args:
            grade: "A" to "H".
            speed: of the car [m/s].
            count: number of waves.
            between: limits of the wave numbers [1/m]; with the speed, of frequencies.
            seed: of the phases.

        Raises:
            ValueError: there is no such class, or no band.

        Example:
            >>> import jax, jax.numpy as jnp, jaxmbd as mbd
            >>> road = mbd.WavyRoad.iso8608("C", 20.0)
            >>> height = jax.vmap(road)(jnp.linspace(0.0, 1e3, 20000))
            >>> round(1e3 * float(jnp.std(height)), 1)  # √(256·10⁻⁸ m³/m² · (50 − 2/3) m) = 11.2
            11.2
        """
        if grade not in CLASSES or len(grade) != 1:
            raise ValueError(f"road class {grade!r}: give one of {', '.join(CLASSES)}")
        low, high = between
        if not (0.0 < low < high and count >= 2):
            raise ValueError(
                f"between={between}, count={count}: give wave numbers 0 < low < high and count ≥ 2"
            )
        ends = np.geomspace(low, high, count + 1)
        density = _MIDDLE_OF_A * 4.0 ** CLASSES.index(grade) * _REFERENCE**2
        amplitudes = np.sqrt(2.0 * density * (1.0 / ends[:-1] - 1.0 / ends[1:]))
        phases = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, count)
        return cls((ends[:-1] + ends[1:]) / 2.0, amplitudes, phases, speed)

    @property
    def half_band(self) -> float:
        """Half the width of a band of `iso8608`, as a share of its wave number."""
        ratio = float(self.waves[-1] / self.waves[-2])
        return (ratio - 1.0) / (ratio + 1.0)

    def __call__(self, t: Array, *others: Any) -> Array:
        """The height at time `t` [s], or the heights at times of any shape [m]."""
        angle = 2.0 * jnp.pi * self.speed * jnp.asarray(t)[..., None] * self.waves + self.phases
        return jnp.sum(self.amplitudes * jnp.sin(angle), axis=-1)
