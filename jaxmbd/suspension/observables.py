"""Characteristics as observables, for sweeps, studies, optimisation: by name, with derivatives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from jax import Array

from jaxmbd.model import Mechanism
from jaxmbd.observe import Observable, Output, Snapshot
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.motions import CornerState, Held, corner_state, state_rates
from jaxmbd.suspension.registry import (
    CHARACTERISTICS,
    Instant,
    available,
    name_problems,
)

_known: WeakKeyDictionary[Snapshot, dict[Any, Any]] = WeakKeyDictionary()
"""What was found for a snapshot, so that its characteristics share one solution."""


def instant(at: Snapshot, corner: Corner) -> Instant:
    """A corner as its characteristics see it, in a snapshot.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Snapshot
        >>> from jaxmbd.suspension import CHARACTERISTICS, instant, zoo_corner
        >>> mech = mbd.zoo.double_wishbone_kinematic()
        >>> at = instant(Snapshot(mech, mbd.neutral(mech)), zoo_corner("double_wishbone_kinematic"))
        >>> abs(float(CHARACTERISTICS["half_track_change"].fn(at))) < 1e-12
        True
    """
    found, held = _known.setdefault(at, {}), Held(at.keys, at.settled)

    def rates(along: str) -> CornerState:
        key = corner, along
        if key not in found:
            now = found[corner]
            speeds = now.speeds if along == "travel" else now.steering
            if speeds is None:
                raise ValueError("this corner has no steering; name its rack or rod: steering=")
            found[key] = state_rates(at.mech, corner, at.q, speeds, held)
        return found[key]

    if corner not in found:
        found[corner] = corner_state(at.mech, corner, at.q, held)
    return Instant(corner, found[corner], rates)


@dataclass(frozen=True)
class Characteristic(Observable):
    """A characteristic of a corner, or its exact derivative along the travel or the steering.

    Attributes:
        corner: the roles of the corner's parts.
        name: of `jaxmbd.suspension.CHARACTERISTICS`.
        along: "travel" for the derivative per metre of wheel travel, "steer" for that per metre of
            the rack; None for the value itself.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Configuration
        >>> from jaxmbd.suspension import Characteristic, zoo_corner
        >>> roles = zoo_corner("double_wishbone_kinematic")
        >>> drawn = Configuration({}, {"kpi": Characteristic(roles, "kingpin_inclination")})
        >>> round(float(drawn(mbd.zoo.double_wishbone_kinematic())["kpi"]), 4)  # atan(150/300)
        0.4636
    """

    corner: Corner
    name: str
    along: str | None = None

    def value(self, at: Snapshot) -> Array:
        """Its value at an instant, or its derivative."""
        now = instant(at, self.corner)
        if self.along is None:
            return CHARACTERISTICS[self.name].fn(now)
        return now.gradient(self.name, self.along)

    @property
    def partial(self) -> bool:
        """A swing arm that steers nowhere has no steering axis; a spring without length fails."""
        return self.name not in CHARACTERISTICS or "spring" not in CHARACTERISTICS[self.name].needs

    def about(self, mech: Mechanism) -> Output:
        """Its unit, meaning and dimensions."""
        what = CHARACTERISTICS[self.name]
        dims = ("axis",) if what.vector else ()
        if self.along is None:
            return Output(what.unit, what.text, dims)
        motion = "wheel travel" if self.along == "travel" else "travel of the rack"
        return Output(f"{what.unit or '1'}/m", f"its derivative along {motion}: {what.name}", dims)

    def problems(self, mech: Mechanism) -> list[str]:
        """Roles that do not fit the mechanism or are missing, each with its remedy."""
        found = self.corner.problems(mech) or name_problems(self.corner, self.name)
        if self.along not in (None, "travel", "steer"):
            found.append(f"along={self.along!r}; give 'travel', 'steer' or None")
        elif self.along == "steer" and self.corner.steering is None:
            found.append("along='steer': this corner has no steering=")
        elif not found and self.along is not None and CHARACTERISTICS[self.name].second:
            found.append(f"{self.name} has second derivatives already; leave along out")
        return found


def characteristics(
    corner: Corner, names: Iterable[str] | None = None, gradients: Iterable[str] = ()
) -> dict[str, Characteristic]:
    """Observables of a corner by name, to be used as ``observe=`` of any experiment.

    Args:
        corner: the roles.
        names: of characteristics; by default all that the corner has.
        gradients: those whose derivatives along the wheel's travel are wanted as well; their names
            get the suffix ``_gradient``.

    Example:
        >>> from jaxmbd.suspension import characteristics, zoo_corner
        >>> list(characteristics(zoo_corner("multi_link"), ["toe"], gradients=["toe"]))
        ['toe', 'toe_gradient']
    """
    chosen = list(available(corner) if names is None else names)
    found = {name: Characteristic(corner, name) for name in chosen}
    return found | {f"{n}_gradient": Characteristic(corner, n, "travel") for n in gradients}
