"""Events: times at which a function of the motion passes zero, and what is remembered of them.

How they are found is in `jaxmbd.analysis.methods.event_search`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis.status import Status

where: Callable[[Any, Any, Any], Array] = jnp.where  # with one type of result

BY_RATE = 2.0
"""Side of zero that follows from the rate."""
START = 3.0
"""Side of a gap at the start of a run: it is open, though it may be zero but for rounding."""


class Event(eqx.Module):
    """A time at which a function of the motion passes zero, and what happens then.

    By `restitution` e the function is the gap φ(t, q) between two bodies, and speeds change by
    Newton's law of impact, ``φ̇⁺ = −e φ̇⁻``: with ``n = ∂φ/∂q`` along the speeds, and w of
    ``M w = n + Jᵀ μ, J w = 0``,

        v⁺ = v − (1 + e) φ̇/(n·w) w

    (Pfeiffer and Glocker, *Multibody Dynamics with Unilateral Contacts*, 1996, without friction).
    With `sets` switches change, numbers that the efforts on joints may depend on: see `simulate`.
    With none of these the time is only recorded. A gap that is zero at the start
    of a run and closing is an impact at once; one that is negative is none before it was positive.
    With e = 0 the next impact follows at once: such a run ends as ZENO there. Speeds by
    `SemiImplicitEuler` are those of half a step before, which impacts take for those of their time.
    A gap that the constraints close, as a drive does, or that depends on v, cannot bounce: that
    sample fails.
    Second derivatives through an event are not those of the motion.

    Attributes:
        function: of (t [s], q (nq,), v (nv,)): a number, whose zeros are looked for; with
            `restitution` a length or an angle that does not depend on v.
        direction: −1 for zeros at which it falls, +1 for those at which it rises, 0 for both.
        stop: whether the sample ends there.
        restitution: coefficient e of an impact, from 0 to 1, which may be differentiated.
        jump: a function of (t, q, v) that returns (q, v) after the event, which are then projected
            onto the constraints.
        keep: how many times are recorded, the first ones.
        sets: switches that have other values from the event on, ``{name: value}``, or a function of
            (t, q, v, switches), the state after the event, that returns such a dictionary.
        when: values of switches, ``{name: value}``, with which alone the event is looked for.

    Raises:
        ValueError: the direction is not −1, 0 or 1, `keep` is less than one, both `restitution` and
            `jump` are given, a function cannot be called, `sets` or `when` is no dictionary, or e
            is not from 0 to 1.

    Example:
        >>> import jaxmbd as mbd
        >>> ball = mbd.Mechanism(
        ...     {"ball": mbd.Body(1.0, (0.0, 0.0, 0.0), [[0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])},
        ...     {"fall": mbd.Prismatic("ground", "ball", (0, 0, 0), (0, 0, 1))},
        ... )
        >>> floor = mbd.Event(lambda t, q, v: q[0], direction=-1, restitution=0.5)
        >>> run = mbd.simulate(ball, [0.1], t1=0.4, method="dormand_prince", events={"hit": floor})
        >>> run.events["hit"].count.item(), run.events["hit"].t[:2].round(4).tolist()
        (4, [0.1428, 0.2856])
    """

    function: Any
    direction: int = eqx.field(static=True, default=0)
    stop: bool = eqx.field(static=True, default=False)
    restitution: Any = None
    jump: Any = None
    keep: int = eqx.field(static=True, default=16)
    sets: Any = None
    when: Any = None

    def __check_init__(self) -> None:
        for name, x in (("function", self.function), ("jump", self.jump)):
            if not (callable(x) or (name == "jump" and x is None)):
                raise ValueError(f"Event: {name}={x!r}; give a function of (t, q, v)")
        if self.direction not in (-1, 0, 1):
            raise ValueError(f"Event: direction={self.direction!r}; give -1 (falling), 1 or 0")
        if isinstance(self.keep, bool) or not isinstance(self.keep, int) or self.keep < 1:
            raise ValueError(f"Event: keep={self.keep!r}; give a whole number, at least one")
        if not (self.sets is None or isinstance(self.sets, Mapping) or callable(self.sets)):
            raise ValueError(f"Event: sets={self.sets!r}; give {{switch: value}} or a function")
        if not (self.when is None or isinstance(self.when, Mapping)):
            raise ValueError(f"Event: when={self.when!r}; give {{switch: value}}")
        if self.restitution is None:
            return
        if self.jump is not None:
            raise ValueError("Event: an impact (restitution=) or a jump=, not both")
        known = isinstance(self.restitution, int | float | np.ndarray)
        if known and not np.all((np.asarray(self.restitution) >= 0.0) & (self.restitution <= 1.0)):
            raise ValueError(f"Event: restitution={self.restitution!r}; give a number from 0 to 1")

    @property
    def acts(self) -> bool:
        """Whether the motion changes at the event."""
        return not (self.restitution is None and self.jump is None and self.sets is None)

    def active(self, switches: dict[str, Array]) -> Array:
        """Whether it is looked for."""
        return jnp.all(jnp.array([switches[n] == x for n, x in (self.when or {}).items()], bool))

    def switched(
        self, t: Array, q: Array, v: Array, switches: dict[str, Array]
    ) -> dict[str, Array]:
        """The switches after it."""
        given: Any = self.sets(t, q, v, switches) if callable(self.sets) else self.sets
        sets: dict[str, Any] = dict(given or {})
        if unknown := set(sets) - set(switches):
            raise ValueError(f"an event sets {sorted(unknown)}; the switches are {list(switches)}")
        for name, x in sets.items():
            _check_number(f"an event sets {name!r}, which", x)
        return {n: jnp.asarray(sets.get(n, x), x.dtype) for n, x in switches.items()}


class Occurrences(NamedTuple):
    """How often an event happened, and when.

    Attributes:
        count: how often so far.
        t: the first times (keep,) [s]; NaN where there are fewer.
        acts: whether the motion changes there.

    Example:
        >>> import jaxmbd as mbd
        >>> half, m = mbd.Event(lambda t, q, v: t - 0.5), mbd.zoo.simple_pendulum()
        >>> run = mbd.simulate(m, [0.1], t1=1.0, method="dormand_prince", events={"half": half})
        >>> run.events["half"].count.item(), run.events["half"].t[:2].tolist()
        (1, [0.5, nan])
    """

    count: Array
    t: Array
    acts: Array


class Seen(NamedTuple):
    """What is known of n events, from one step and run to the next. All numbers are finite.

    Attributes:
        side: sign of a function (n,) that is zero but for rounding, `BY_RATE`, or 0 if its value
            has it.
        last: when it last happened (n,) [s].
        pace: its largest rate so far (n,).
        count: how often it happened (n,).
        times: the first times (n, keep) [s].
        halted: when the sample ended [s], as an event says; the largest number if it did not.
        zeno: one if that is because the same event happened again at once.
        switches: values of the switches.
    """

    side: Array
    last: Array
    pace: Array
    count: Array
    times: Array
    halted: Array
    zeno: Array
    switches: dict[str, Array]

    @property
    def over(self) -> Array:
        """Whether the sample has ended."""
        return self.halted < jnp.finfo(self.halted.dtype).max


class Record(NamedTuple):
    """`Seen` of one event, as it is handed on to the next run."""

    side: Array
    last: Array
    pace: Array
    count: Array
    times: Array


class Watch(eqx.Module):
    """The events of a run, and what the run asks of them; empty it changes nothing.

    With events what a method passes on to its next step is a pair, its own and `Seen`.

    Attributes:
        names: of the events, in the order in which they were given.
        events: the events.
    """

    names: tuple[str, ...] = eqx.field(static=True, default=())
    events: tuple[Event, ...] = ()

    def begun(self, own: Array, before: Any, switches: dict[str, Array]) -> Any:
        """The memory at the start of a run.

        Events that the run before had too go on by their `Record` in `before`, ``{name: …}``.
        """
        if not self.events:
            return own
        dtype = own.dtype
        keep = max(e.keep for e in self.events)
        never = jnp.asarray(jnp.finfo(dtype).max, dtype)
        zero, none = jnp.zeros((), dtype), jnp.zeros(keep, dtype)
        rows = []
        for name, event in zip(self.names, self.events, strict=True):
            old = (before or {}).get(name)
            new = Record(zero, -never, zero, zero, none)
            if old is not None:
                new = old._replace(times=none.at[: len(old.times)].set(old.times[:keep]))
            if event.restitution is not None:
                # Beyond its zero is where an event that did not act, as a stop, left the gap.
                fresh = old is None or (new.side == event.direction) & (new.side != 0.0)
                fresh = jnp.asarray(fresh)
                side, last = where(fresh, START, new.side), where(fresh, -never, new.last)
                new = new._replace(side=side.astype(dtype), last=last)
            rows.append(new)
        side, last, pace, count, times = (jnp.stack(x) for x in zip(*rows, strict=True))
        return own, Seen(side, last, pace, count, times, never, zero, switches)

    def own(self, memory: Any) -> Any:
        """The method's own memory."""
        return memory[0] if self.events else memory

    def switches(self, memory: Any, held: dict[str, Array]) -> dict[str, Array]:
        """The values of switches now; without events they are those `held`."""
        return memory[1].switches if self.events else held

    def unless_over(self, memory: Any, new: Any, old: Any) -> Any:
        """New values, or the old ones if an event has ended the sample."""
        if not self.events:
            return new
        over = memory[1].over
        return jax.tree_util.tree_map(lambda x, y: where(over, y, x), new, old)

    def ended(
        self, memory: Any, status: Array, failed_at: Array, t: Array
    ) -> tuple[Array, Array, Array]:
        """`Status`, time of failure and end of a run that an event may have ended before t."""
        if not self.events:
            return status, failed_at, t
        seen = memory[1]
        zeno = seen.over & (seen.zeno > 0.0) & (status == Status.OK)
        status = where(zeno, Status.ZENO, status).astype(jnp.int32)
        failed_at = where(zeno, seen.halted, failed_at)
        return status, failed_at, where(seen.over, seen.halted, t)

    def records(self, memory: Any) -> dict[str, Record] | None:
        """What is handed on to the next run."""
        if not self.events:
            return None
        x = memory[1]
        each = enumerate(zip(self.names, self.events, strict=True))
        return {
            name: Record(x.side[i], x.last[i], x.pace[i], x.count[i], x.times[i, : event.keep])
            for i, (name, event) in each
        }

    def told(self, records: dict[str, Record] | None) -> dict[str, Occurrences] | None:
        """What a run tells of its events."""
        found = {}
        for name, event in zip(self.names, self.events, strict=True):
            x = (records or {})[name]
            times = where(jnp.arange(event.keep) < x.count, x.times, jnp.nan)
            found[name] = Occurrences(x.count.astype(jnp.int32), times, jnp.asarray(event.acts))
        return found or None


def _check_number(what: str, x: Any) -> None:
    if np.shape(x) != ():
        raise ValueError(f"{what} has the shape {np.shape(x)}; a switch is one number")


def checked_events(events: Any, switches: Any, dtype: Any) -> Watch:
    """The events with their numbers as arrays, or an error that says what is wrong."""
    for name, x in switches.items():
        _check_number(f"switches: {name!r}", x)
    if not events:
        if switches:
            raise ValueError("switches= without events=: give an Event(…, sets=…) that changes one")
        return Watch()
    if not isinstance(events, Mapping):
        raise ValueError("events: give a dictionary {name: mbd.Event(function, …)}")
    given = dict(events)
    wrong = [name for name, x in given.items() if not isinstance(x, Event)]
    if wrong:
        raise ValueError(f"events: {wrong[0]!r} is no event; give mbd.Event(function, …)")
    for name, x in given.items():
        used = {*(x.when or {}), *(() if callable(x.sets) else x.sets or {})}
        if unknown := used - set(switches):
            raise ValueError(
                f"events: {name!r} has a switch {min(unknown)!r} without a value at the start; "
                f"give switches={{{min(unknown)!r}: …}}"
            )
        for values in (x.when, None if callable(x.sets) else x.sets):
            for switch, value in (values or {}).items():
                _check_number(f"events: {name!r}: switch {switch!r}", value)

    def numbers(x: Any) -> Any:
        """Arrays, so that another number is no other program."""
        return x if callable(x) else jax.tree_util.tree_map(lambda y: jnp.asarray(y, dtype), x)

    changed = ("restitution", "sets", "when")
    found = [replace(x, **{n: numbers(getattr(x, n)) for n in changed}) for x in given.values()]
    return Watch(tuple(given), tuple(found))
