"""Poses: one configuration, held or in equilibrium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis import Key, attempt, equilibrium, parse_known
from jaxmbd.graph import neutral, topology
from jaxmbd.model import Mechanism
from jaxmbd.observe.experiment import (
    Curves,
    Experiment,
    Failure,
    frozen_values,
    known_problems,
    settled_failure,
)
from jaxmbd.observe.outputs import Axis
from jaxmbd.observe.snapshot import Snapshot


class Placed(NamedTuple):
    """One configuration.

    Attributes:
        q: coordinates (nq,); NaN where it failed.
        status: a `Status` number.
        closest: where the search ended (nq,).
        multipliers: λ and the holding efforts; None where they are to be computed.
    """

    q: Array
    status: Array
    closest: Array
    multipliers: Array | None


def place(
    mech: Mechanism, keys: tuple[Key, ...], values: list[Array], guess: Array, settle: bool
) -> Placed:
    """Assemble with held coordinates, or find the equilibrium with them held."""
    if not settle:
        found = attempt(keys, mech, values, jnp.zeros((), mech.dtype), guess)
        return Placed(found.q, found.status, found.closest, None)
    known = {_asked(key): value for key, value in zip(keys, values, strict=True)}
    rest = equilibrium(mech, known=known, guess=guess, throw=False, backend="xla")
    nowhere = jnp.full_like(rest.q, jnp.nan)
    return Placed(rest.q, rest.status, nowhere, jnp.concatenate([rest.lam, rest.held]))


def _asked(key: Any) -> Any:
    """A held coordinate in the form that `equilibrium` takes."""
    if not hasattr(key, "joint"):
        return key
    return key.joint if key.index is None else (key.joint, key.index)


@dataclass(frozen=True)
class Configuration(Experiment):
    """One configuration with coordinates held, assembled from the drawn one.

    Attributes:
        known: held coordinates, with the keys of `assemble`: joints [rad, m], a `PointCoordinate`,
            whose value is absolute [m], or a `PointTravel`, from where the point is drawn [m].
        observe: name to observable.
        settle: whether the freedoms that are not held come to rest (`equilibrium`).

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Coordinate, Configuration
        >>> turned = Configuration({"crank": 0.1}, {"rocker": Coordinate("rocker")})
        >>> sorted(turned(mbd.zoo.rssr()))
        ['failed_at', 'open_distance', 'open_joint', 'rocker', 'status']
    """

    known: Mapping[Any, Any] = field(default_factory=dict)
    observe: Mapping[str, Any] = field(default_factory=dict)
    settle: bool = False

    has_axis: ClassVar[bool] = False

    __hash__ = Experiment.__hash__

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", frozen_values(self.known))
        object.__setattr__(self, "observe", dict(self.observe))

    @property
    def axis(self) -> str:
        return "pose"

    def axis_values(self, mech: Mechanism) -> Axis:
        return Axis((0.0,), "", "pose")

    def kept(self) -> np.ndarray:
        return np.zeros(1, int)

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        return parse_known(mech, self.known)[0]

    def own_problems(self, mech: Mechanism) -> list[str]:
        return known_problems(mech, self.known)

    def place(self, mech: Mechanism) -> tuple[Placed, Failure]:
        """The configuration, and how the search for it ended."""
        keys, values = parse_known(mech, self.known)
        placed = place(mech, keys, values, jnp.asarray(neutral(mech), mech.dtype), self.settle)
        return placed, settled_failure(mech, keys, values, placed.status, placed.closest, 0.0)

    def curves(self, mech: Mechanism, *, states: bool) -> Curves:
        placed, failure = self.place(mech)
        keys, values = parse_known(mech, self.known)
        at = Snapshot(
            mech,
            placed.q,
            keys=keys,
            values=values,
            moving=False,
            multipliers=placed.multipliers,
        )
        observed = {what: what.value(at)[None] for what in self.observed()}
        v, x = jnp.zeros((1, topology(mech).nv), mech.dtype), jnp.zeros(1, mech.dtype)
        failure = self.judged(failure, x, observed, at.undetermined)
        return Curves(x, placed.q[None], v, observed, failure)


def Settle(
    known: Mapping[Any, Any] | None = None, observe: Mapping[str, Any] | None = None
) -> Configuration:
    """The static equilibrium, with coordinates held or none.

    Example:
        >>> from jaxmbd.observe import Coordinate, Settle
        >>> import jaxmbd as mbd
        >>> rest = Settle(observe={"angle": Coordinate("hinge")})
        >>> round(float(rest(mbd.zoo.simple_pendulum())["angle"]), 6)
        1.570796
    """
    return Configuration(known or {}, observe or {}, settle=True)
