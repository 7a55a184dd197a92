"""Results of an identification as text."""

from __future__ import annotations

from typing import Any

import numpy as np

CLOSE = 0.95
"""Correlations above this are told."""


def identified_text(found: Any) -> str:
    """What `identify` found: a table of the unknowns, the noise, and what to beware of."""
    here = int(np.isfinite(found.residuals).sum())
    head = f"{len(found.names)} unknowns from {here} samples, {found.fit.evaluations} evaluations"
    if not found.converged:
        head += f"; NOT CONVERGED: {found.fit.message}"
    scale, units = found.predictor.unknowns.scale, found.predictor.unknowns.units
    ends = found.intervals(0.95)
    rows = [("unknown", "estimate", "standard error", "95 % from", "to", "start", "unit")]
    every = zip(found.names, found.estimates, found.standard_errors, units, strict=True)
    for i, (name, value, error, unit) in enumerate(every):
        digits = _digits(value, error if np.isfinite(error) else scale[i])
        low, high = (f"{x:.{digits}g}" if np.isfinite(x) else "-" for x in ends[name])
        said = f"{error:.2g}" if np.isfinite(error) else "undetermined"
        start = f"{found.predictor.unknowns.start[i]:.4g}"
        rows.append((name, f"{value:.{digits}g}", said, low, high, start, unit))
    lines = [head, *table(rows)]
    lines += [f"{name} is at a limit of its range" for name in found.at_limit]
    for channel, sigma in found.noise_levels.items():
        how = "estimated" if channel in found.noise.estimated else "given"
        lines.append(f"noise of {channel}: {sigma:.3g} ({how})")
    lines += [f"residuals of {check}" for check in found.checks]
    lines += open_text(found.ambiguities)
    lines += weak_text(found.names, found.information)
    return "\n".join(lines + close_text(found.names, found.correlation))


def open_text(ambiguities: Any) -> list[str]:
    """What cannot be told apart."""
    return [f"not identifiable: {x}" for x in ambiguities]


def weak_text(names: tuple[str, ...], information: Any) -> list[str]:
    """Combinations that the data determine worse than the ranges already do."""
    sizes, vectors = np.linalg.eigh(information.covariance)
    lines = []
    for size, v in zip(np.sqrt(np.maximum(sizes, 0.0)), vectors.T, strict=True):
        if size > 1.0:
            v = v / v[np.argmax(np.abs(v))]
            parts = [f"{c:+.2g}·({n})" for c, n in zip(v, names, strict=True) if abs(c) > 0.1]
            lines.append(
                f"weakly determined: {' '.join(parts)}, in units of their ranges, has a standard "
                f"error of {size:.2g}"
            )
    return lines


def close_text(names: tuple[str, ...], correlation: np.ndarray) -> list[str]:
    """Pairs that are hard to tell apart."""
    n = len(names)
    pairs = [(i, j) for i in range(n) for j in range(i) if abs(correlation[i, j]) > CLOSE]
    return [f"correlation {correlation[i, j]:+.3f} of {names[j]} and {names[i]}" for i, j in pairs]


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows in columns, numbers to the right."""
    last = len(rows[0]) - 1
    widths = [max(len(r[i]) for r in rows) for i in range(last + 1)]
    lines = [
        "  ".join(
            c.ljust(w) if i in (0, last) else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _digits(value: float, error: float) -> int:
    """Significant digits that show two digits of the error."""
    if not (error > 0.0 and value):
        return 6
    return int(np.clip(np.ceil(np.log10(abs(value) / error)) + 2, 3, 15))
