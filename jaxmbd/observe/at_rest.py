"""Mechanisms at rest: one configuration, or a sweep of them; held, or in equilibrium."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import (
    Key,
    PointCoordinate,
    PointTravel,
    Status,
    attempt,
    drawn_value,
    equilibrium,
    is_angle,
    parse_known,
)
from jaxmbd.graph import neutral, topology
from jaxmbd.model import Mechanism
from jaxmbd.observe.experiment import (
    Axis,
    Curves,
    Experiment,
    Failure,
    frozen_values,
    known_problems,
    named_observables,
    settled_failure,
    split_fields,
    with_fields,
)
from jaxmbd.observe.snapshot import Snapshot
from jaxmbd.observe.unheld import warn_of_unheld
from jaxmbd.plumbing import unknown


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
    mech: Mechanism,
    keys: tuple[Key, ...],
    values: list[Array],
    guess: Array,
    settle: bool,
    inputs: Any = None,
) -> Placed:
    """Assemble with held coordinates, or find the equilibrium with them held."""
    if not settle:
        found = attempt(keys, mech, values, jnp.zeros((), mech.dtype), guess)
        return Placed(found.q, found.status, found.closest, None)
    known = {_asked(key): value for key, value in zip(keys, values, strict=True)}
    options: Any = dict(guess=guess, inputs=inputs, throw=False, backend="xla")
    rest = equilibrium(mech, known=known, **options)
    nowhere = jnp.full_like(rest.q, jnp.nan)
    return Placed(rest.q, rest.status, nowhere, jnp.concatenate([rest.lam, rest.held]))


def _resting(
    mech: Mechanism,
    placed: Placed,
    keys: tuple[Key, ...],
    values: list[Array],
    inputs: Any = None,
) -> Snapshot:
    """What observables see of a configuration."""
    return Snapshot(
        mech,
        placed.q,
        inputs=inputs,
        keys=keys,
        values=values,
        moving=False,
        multipliers=placed.multipliers,
    )


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
        settle: whether degrees of freedom that are not held come to rest (`equilibrium`).

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
        object.__setattr__(self, "observe", named_observables(self.observe))

    @property
    def axis(self) -> str:
        return "pose"

    def axis_values(self, mech: Mechanism) -> Axis:
        return Axis((0.0,), "", "pose")

    def kept(self) -> np.ndarray:
        return np.zeros(1, int)

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        return parse_known(mech, self.known)[0]

    def split(self) -> tuple[Any, Any]:
        return split_fields(self, "known")

    def with_numbers(self, numbers: Any) -> Any:
        return with_fields(self, ("known",), numbers)

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
        at = _resting(mech, placed, keys, values)
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


_NUMBERS = ("over", "known", "inputs")
"""Dictionaries of numbers of a `Sweep`."""


@dataclass(frozen=True)
class Sweep(Experiment):
    """Curves over coordinates that move step by step, as wheel travel in a kinematic test.

    Each configuration is found from the last, the first from that in which the moved coordinates
    are as drawn. Velocities are zero; forces and reactions are the static ones. A degree of
    freedom that nothing holds stays where the search leaves it; calling the sweep with a mechanism
    warns of it.

    Attributes:
        over: moved coordinate to its values (n,): a joint or ``(joint, i)`` [rad, m], a
            `PointTravel`, whose values are displacements from where the point is drawn [m], or a
            `PointCoordinate`, whose values are absolute [m]. Several move together; none where
            only `inputs` change.
        observe: name to observable or reduced observable.
        dim: name of the axis; by default that of the first coordinate: the joint's name, "travel",
            or the letter of a `PointCoordinate`.
        known: further coordinates, held at one value.
        settle: whether degrees of freedom that are not held come to rest at each step
            (`equilibrium`).
        inputs: efforts on joints, or controls of actuators, with a value for each step, (n,) or of
            a joint with nv speeds (n, nv) [N, N·m].

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
    inputs: Mapping[str, Any] = field(default_factory=dict)

    __hash__ = Experiment.__hash__

    def __post_init__(self) -> None:
        object.__setattr__(self, "over", frozen_values(self.over))
        object.__setattr__(self, "known", frozen_values(self.known))
        object.__setattr__(self, "inputs", frozen_values(self.inputs))
        object.__setattr__(self, "observe", named_observables(self.observe))
        lists = [*self.over.values(), *self.inputs.values()]
        sizes = {np.shape(x)[:1] for x in lists}
        if (
            len(sizes) != 1
            or not sizes.isdisjoint({(), (0,)})
            or any(np.ndim(x) != 1 for x in self.over.values())
        ):
            raise ValueError(
                "Sweep: over needs one or more coordinates with lists of values, all of one length "
                "(and of the length of those of inputs)"
            )

    def on(self, mech: Mechanism) -> tuple[Sweep, Mechanism]:
        """The plain sweep and the mechanism that it is of: others hold more, or add a rig."""
        return self, mech

    @property
    def axis(self) -> str:
        if self.dim is not None:
            return self.dim
        first = next(iter(self.over or self.inputs))
        if isinstance(first, PointTravel):
            return "travel"
        if isinstance(first, PointCoordinate):
            return first.axis
        return first if isinstance(first, str) else first[0]

    def axis_values(self, mech: Mechanism) -> Axis:
        if not self.over:
            name, efforts = next(iter(self.inputs.items()))
            return Axis(tuple(np.reshape(efforts, (len(efforts), -1))[:, 0]), "", f"input {name}")
        first, values = next(iter(self.over.items()))
        [key] = parse_known(mech, {first: 0.0})[0]
        if isinstance(key, PointCoordinate):
            start = " from where it is drawn" if isinstance(first, PointTravel) else ""
            return Axis(values, "m", f"{key.axis} of {key.point}{start}")
        return Axis(values, "rad" if is_angle(topology(mech), key) else "m", str(key.joint))

    def kept(self) -> np.ndarray:
        return np.arange(len(next(iter((self.over or self.inputs).values()))))

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        return parse_known(mech, self._held())[0]

    def _held(self) -> dict[Any, Any]:
        """The held coordinates, those that move first and at zero."""
        return dict.fromkeys(self.over, 0.0) | dict(self.known)

    def split(self) -> tuple[Any, Any]:
        return split_fields(replace(self, dim=self.axis), *_NUMBERS)

    def with_numbers(self, numbers: Any) -> Any:
        return with_fields(self, _NUMBERS, numbers)

    def describe(self) -> dict[str, Any]:
        found = super().describe()
        return found if self.inputs else {n: x for n, x in found.items() if n != "inputs"}

    def own_problems(self, mech: Mechanism) -> list[str]:
        found = known_problems(mech, self._held())
        names = [e.name for e in mech.structure.joints] + list(mech.structure.forces)
        found += [f"inputs: {t}" for n in self.inputs for t in unknown("joint", n, names)]
        if both := [str(key) for key in self.over if key in self.known]:
            found.append(f"{both} are moved and held at once; leave them out of known")
        return found

    def warn(self, mech: Mechanism) -> None:
        """Warn of degrees of freedom that nothing holds, unless they come to rest by themselves."""
        if not self.settle:
            warn_of_unheld(mech, self.keys(mech))

    def curves(self, mech: Mechanism, *, states: bool) -> Curves:
        keys, zero = parse_known(mech, self._held())
        every, dtype, count = self.observed(), mech.dtype, len(self.over)
        axis = jnp.asarray(self.axis_values(mech).values, dtype)
        moves = jnp.asarray([*self.over.values()], dtype).reshape(count, len(axis)).T
        # Drawn are zero, or the coordinate of a point where values are absolute.
        absolute = [isinstance(key, PointCoordinate) for key in self.over]
        places = [
            drawn_value(mech, x) if y else 0.0 for x, y in zip(self.over, absolute, strict=True)
        ]
        drawn = jnp.asarray(places, dtype)

        def held(step: Array) -> list[Array]:
            return [x + step[i] if i < count else x for i, x in enumerate(zero)]

        shapes: list[Any] = []  # of what is observed at one step, which are one row there

        def at(carry: Any, row: Any) -> Any:
            (guess, failed), (x, step, inputs) = carry, row
            values = held(step)
            placed = place(mech, keys, values, guess, self.settle, inputs)
            # A configuration does not depend on its guess: the carry needs no derivative.
            last = lax.stop_gradient(placed)
            snap = _resting(mech, placed, keys, values, inputs)
            ok = placed.status == Status.OK
            now = (last.status, last.closest, step, x)
            failed = tuple(
                jnp.where(failed[0] == Status.OK, a, b) for a, b in zip(now, failed, strict=True)
            )
            seen = [jnp.asarray(what.value(snap), dtype) for what in every]
            shapes[:] = [y.shape for y in seen]
            row = jnp.concatenate([jnp.ravel(y) for y in seen] or [placed.q[:0]])
            found = placed.q, row, snap.undetermined
            return (jnp.where(ok, last.q, guess), failed), found

        start = jnp.asarray(neutral(mech), dtype)
        # The drawn configuration comes first, so that the search for it is compiled only once.
        steps = jnp.concatenate([drawn[None], moves])
        inputs = {n: jnp.asarray(x, dtype) for n, x in self.inputs.items()}
        inputs = {n: jnp.concatenate([0.0 * x[:1], x]) for n, x in inputs.items()}
        x = jnp.concatenate([drawn[:1] if count else 0.0 * axis[:1], axis])
        first = (jnp.zeros((), jnp.int32), start, steps[0], x[0])
        (_, failed), found = lax.scan(at, (start, first), (x, steps, inputs))
        status, closest, step, place_of = failed
        failure = settled_failure(mech, keys, held(step), status, closest, place_of)
        q, rows, undetermined = jax.tree_util.tree_map(lambda y: y[1:], found)
        v = jnp.zeros((q.shape[0], topology(mech).nv), dtype)
        ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
        observed = {
            what: jnp.reshape(rows[:, end - math.prod(shape) : end], (len(axis), *shape))
            for what, shape, end in zip(every, shapes, ends, strict=True)
        }
        failure = self.judged(failure, axis, observed, undetermined)
        return Curves(axis, q, v, observed, failure)
