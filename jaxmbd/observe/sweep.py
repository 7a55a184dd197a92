"""Sweeps: coordinates moved step by step, each configuration assembled from the last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import (
    Key,
    PointCoordinate,
    PointTravel,
    Status,
    drawn_value,
    is_angle,
    parse_known,
)
from jaxmbd.graph import neutral, topology
from jaxmbd.model import Mechanism
from jaxmbd.observe.experiment import (
    Curves,
    Experiment,
    frozen_values,
    known_problems,
    settled_failure,
)
from jaxmbd.observe.outputs import Axis
from jaxmbd.observe.pose import place
from jaxmbd.observe.snapshot import Snapshot
from jaxmbd.observe.unheld import warn_of_unheld


@dataclass(frozen=True)
class Sweep(Experiment):
    """Curves over coordinates that move step by step, as wheel travel in a kinematic test.

    Each configuration is found from the last, the first from that in which the moved coordinates
    are as drawn. Velocities are zero; forces and reactions are the static ones. A freedom that
    nothing holds stays where the search leaves it; calling the sweep with a mechanism warns of it.

    Attributes:
        over: moved coordinate to its values (n,): a joint or ``(joint, i)`` [rad, m], a
            `PointTravel`, whose values are displacements from where the point is drawn [m], or a
            `PointCoordinate`, whose values are absolute [m]. Several move together.
        observe: name to observable or reduced observable.
        dim: name of the axis; by default that of the first coordinate: the joint's name, "travel",
            or the letter of a `PointCoordinate`.
        known: further coordinates, held at one value.
        settle: whether freedoms that are not held come to rest at each step (`equilibrium`).

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.observe import Sweep, Toe
        >>> height = mbd.PointTravel("upright", "wheel_centre", "z")
        >>> travel = np.linspace(-0.05, 0.05, 3)
        >>> bump = Sweep({height: travel}, {"toe": Toe("upright"), "range": Toe("upright").span()})
        >>> bump(mbd.zoo.multi_link())["toe"].shape
        (3,)
    """

    over: Mapping[Any, Any]
    observe: Mapping[str, Any] = field(default_factory=dict)
    dim: str | None = None
    known: Mapping[Any, Any] = field(default_factory=dict)
    settle: bool = False

    __hash__ = Experiment.__hash__

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", frozen_values(self.over))
        object.__setattr__(self, "known", frozen_values(self.known))
        object.__setattr__(self, "observe", dict(self.observe))
        sizes = {np.size(x) for x in self.over.values()}
        if len(sizes) != 1 or any(np.ndim(x) != 1 or not np.size(x) for x in self.over.values()):
            raise ValueError(
                "Sweep: over needs one or more coordinates with lists of values, all of one length"
            )

    @property
    def axis(self) -> str:
        if self.dim is not None:
            return self.dim
        first = next(iter(self.over))
        if isinstance(first, PointTravel):
            return "travel"
        if isinstance(first, PointCoordinate):
            return first.axis
        return first if isinstance(first, str) else first[0]

    def axis_values(self, mech: Mechanism) -> Axis:
        first, values = next(iter(self.over.items()))
        [key] = parse_known(mech, {first: 0.0})[0]
        if isinstance(key, PointCoordinate):
            start = " from where it is drawn" if isinstance(first, PointTravel) else ""
            return Axis(values, "m", f"{key.axis} of {key.point}{start}")
        return Axis(values, "rad" if is_angle(topology(mech), key) else "m", str(key.joint))

    def kept(self) -> np.ndarray:
        return np.arange(len(next(iter(self.over.values()))))

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        return parse_known(mech, self._held())[0]

    def _held(self) -> dict[Any, Any]:
        """The held coordinates, those that move first and at zero."""
        return dict.fromkeys(self.over, 0.0) | dict(self.known)

    def own_problems(self, mech: Mechanism) -> list[str]:
        found = known_problems(mech, self._held())
        if both := [str(key) for key in self.over if key in self.known]:
            found.append(f"{both} are moved and held at once; leave them out of known")
        return found

    def __call__(self, mech: Mechanism) -> dict[str, Array]:
        """All outputs for one mechanism; warns of freedoms that nothing holds."""
        self.warn(mech)
        return super().__call__(mech)

    def warn(self, mech: Mechanism) -> None:
        """Warn of freedoms that nothing holds, unless they come to rest by themselves."""
        if not self.settle:
            warn_of_unheld(mech, self.keys(mech))

    def curves(self, mech: Mechanism, *, states: bool) -> Curves:
        keys, zero = parse_known(mech, self._held())
        every, dtype, count = self.observed(), mech.dtype, len(self.over)
        moves = jnp.asarray([list(x) for x in self.over.values()], dtype).T
        # Drawn are zero, or the coordinate of a point where values are absolute.
        absolute = [isinstance(key, PointCoordinate) for key in self.over]
        places = [
            drawn_value(mech, x) if y else 0.0 for x, y in zip(self.over, absolute, strict=True)
        ]
        drawn = jnp.asarray(places, dtype)

        def held(step: Array) -> list[Array]:
            return [x + step[i] if i < count else x for i, x in enumerate(zero)]

        def at(carry: Any, step: Array) -> Any:
            guess, failed = carry
            values = held(step)
            placed = place(mech, keys, values, guess, self.settle)
            snap = Snapshot(
                mech,
                placed.q,
                keys=keys,
                values=values,
                moving=False,
                multipliers=placed.multipliers,
            )
            ok = placed.status == Status.OK
            now = (placed.status, placed.closest, step)
            failed = tuple(
                jnp.where(failed[0] == Status.OK, x, y) for x, y in zip(now, failed, strict=True)
            )
            found = placed.q, [what.value(snap) for what in every], snap.undetermined
            return (jnp.where(ok, placed.q, guess), failed), found

        start = jnp.asarray(neutral(mech), dtype)
        # The drawn configuration comes first, so that the search for it is compiled only once.
        steps = jnp.concatenate([drawn[None], moves])
        first = (jnp.zeros((), jnp.int32), start, steps[0])
        (_, failed), found = lax.scan(at, (start, first), steps)
        status, closest, step = failed
        failure = settled_failure(mech, keys, held(step), status, closest, step[0])
        q, rows, undetermined = jax.tree_util.tree_map(lambda y: y[1:], found)
        v = jnp.zeros((q.shape[0], topology(mech).nv), dtype)
        observed = dict(zip(every, rows, strict=True))
        failure = self.judged(failure, moves[:, 0], observed, undetermined)
        return Curves(moves[:, 0], q, v, observed, failure)
