"""The standard normal distribution; SciPy, whose import takes long, is asked only for Φ."""

from __future__ import annotations

from typing import Any

import numpy as np

# Numerators and denominators of `normal_quantile`, highest power first.
_MIDDLE = (
    (
        2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
        13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080,
    ),
    (
        5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
        5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0,
    ),
)  # fmt: skip
_TAIL = (
    (
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
        1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550,
        4.63033784615654529590, 1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
        1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940,
        2.05319162663775882187, 1.0,
    ),
)  # fmt: skip
_FAR_TAIL = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
        2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580,
        5.46378491116411436990, 6.65790464350110377720,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
        7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
        5.99832206555887937690e-1, 1.0,
    ),
)  # fmt: skip


def normal_probability(z: Any) -> np.ndarray:
    """Φ(z), the probability of a standard normal number below z."""
    from scipy import special

    return special.ndtr(z)


def normal_quantile(u: Any) -> np.ndarray:
    """Φ⁻¹(u), the standard normal number of that probability; NaN outside of 0 to 1.

    Rational functions of least greatest error, of the distance from the median, and beyond seven
    eighths of it of √(-ln u): M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988)
    477-484, with a relative accuracy of about 1e-16.
    """
    given = np.asarray(u, np.float64)
    p = given.reshape(-1)
    from_median = p - 0.5
    with np.errstate(all="ignore"):
        z = from_median * _ratio(_MIDDLE, 0.180625 - from_median * from_median)
        outer = np.flatnonzero(~(np.abs(from_median) <= 0.425))
        p = p[outer]
        r = np.sqrt(-np.log(np.minimum(p, 1.0 - p)))
        tail = np.where(r <= 5.0, _ratio(_TAIL, r - 1.6), _ratio(_FAR_TAIL, r - 5.0))
        tail[np.isinf(r)] = np.inf
        z[outer] = np.copysign(tail, from_median[outer])
    return z.reshape(given.shape)[()]


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: np.ndarray) -> np.ndarray:
    """The quotient of two polynomials at x."""
    values = []
    for first, *rest in coefficients:
        value = first * x
        for c in rest[:-1]:
            value += c
            value *= x
        values.append(value + rest[-1])
    return values[0] / values[1]
