"""The noise of each channel: standard deviations that are known, or estimated from residuals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.identification.measured import Record
from jaxmbd.plumbing import meant
from jaxmbd.variables import in_si

LEAST = 1e-12
"""The least estimated noise, as a share of the channel's largest number."""

_MAD = 1.482602218505602  # standard deviation of normal errors over their median magnitude


class Noise(NamedTuple):
    """Standard deviations of all samples, and which of them are to be estimated.

    Attributes:
        known: (N,) in the channels' units; NaN where unknown.
        groups: channel to its samples (N,), true or false; a channel of this name in several
            measurements is one group.
        least: channel to the least standard deviation.
    """

    known: np.ndarray
    groups: dict[str, np.ndarray]
    least: dict[str, float]

    @property
    def estimated(self) -> tuple[str, ...]:
        """Channels of unknown noise."""
        return tuple(n for n, rows in self.groups.items() if np.isnan(self.known[rows]).any())

    def from_residuals(
        self, misfit: np.ndarray, leverage: np.ndarray, *, robust: bool
    ) -> np.ndarray:
        """Standard deviations (N,), those unknown from the residuals of their channel.

        Args:
            misfit: measured minus predicted (N,), NaN where missing.
            leverage: how much of each sample's error the fit takes up (N,), in [0, 1].
            robust: by the median magnitude instead of the root mean square.
        """
        sigma = self.known.copy()
        for name in self.estimated:
            rows = self.groups[name] & np.isfinite(misfit)
            r, count = misfit[rows], int(rows.sum())
            left = count - float(leverage[rows].sum())
            if robust:
                found = _MAD * np.median(np.abs(r)) * np.sqrt(count / max(left, 1.0))
            else:
                found = np.sqrt(np.sum(r**2) / max(left, 1.0))
            sigma[self.groups[name]] = max(float(found), self.least[name])
        return sigma


def noise_of(known: list[Record], given: Mapping[str, Any] | None) -> Noise:
    """The noise of the measurements' channels.

    Args:
        known: the measurements.
        given: channel (or measurement/channel) to standard deviation: a number, a text with a
            unit, or an array of the data's shape. What is not named is to be estimated.

    Raises:
        ValueError: a name that is no channel; a standard deviation that is not positive.
    """
    given, used = dict(given or {}), set()
    parts, rows, units = [], {}, {}
    end, total = 0, sum(c.values.size for r in known for c in r.channels)
    for record in known:
        for channel in record.channels:
            names = [f"{record.name}/{channel.name}", channel.name]
            name = next((n for n in names if n in given), channel.name)
            used |= {n for n in names if n in given}
            sigma = _sigma(given.get(name), channel.values.shape, channel.about.unit, name)
            if not np.isnan(sigma).any() and not np.all((sigma > 0.0) & np.isfinite(sigma)):
                raise ValueError(f"noise of {name!r} must be positive, is {given[name]!r}")
            parts.append(sigma.ravel())
            group = rows.setdefault(channel.name, np.zeros(total, bool))
            group[end : end + channel.values.size] = True
            size = np.nanmax(np.abs(channel.values))
            units[channel.name] = max(units.get(channel.name, 0.0), LEAST * (size or 1.0))
            end += channel.values.size
    if unknown := sorted(given.keys() - used):
        raise ValueError(f"noise: no channel {unknown[0]!r}{meant(unknown[0], rows)}; {list(rows)}")
    return Noise(np.concatenate(parts), rows, units)


def _sigma(given: Any, shape: tuple[int, ...], unit: str, name: str) -> np.ndarray:
    if given is None:
        return np.full(shape, np.nan)
    number = in_si(given, unit, f"noise of {name!r}") if isinstance(given, str) else given
    return np.broadcast_to(np.asarray(number, np.float64), shape)
