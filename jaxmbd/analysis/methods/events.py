"""Events: times at which a function of the motion passes zero, found within adaptive steps.

Finding one is a kind of rejection: a step in which a function changes its sign is not taken, and
the next one that is tried ends where the cubic through values and rates at both ends (Hermite's)
has its first zero. The code of a step occurs once, and each sample of a batch searches alone.
Once the end of a step is within `RESOLUTION` of a zero, one Newton step ``δ = −g/ġ`` moves the
state onto it; its derivative is that of the implicit function theorem, while lengths of steps have
none. One event acts at a time: another at the same time does so in the next step, of no length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.methods.method import Equations
from jaxmbd.dynamics import kkt_system, solve_kkt
from jaxmbd.kinematics import coordinate_rates, motion_state, speed_units, step_coordinates
from jaxmbd.numerics import nan_where

where: Callable[[Any, Any, Any], Array] = jnp.where  # with one type of result

RESOLUTION = 1e-12
"""Share of a step within which its end must be of a zero: the error of the event's derivatives."""
ZENO = 1e-7
"""Share of a step after which the same event happens again at once: heights of impacts are only
rounding then, as they go with the square."""
GRAZING = 1e-5
"""Share of the largest rate of a function so far, below which its zero has no derivative."""
NARROW = 1e-2
"""Share of the step that errors allow, below which hidden pairs of zeros are not looked for."""
BY_RATE = 2.0
"""Side of zero that follows from the rate."""
START = 3.0
"""Side of a gap at the start of a run: it is open, though it may be zero but for rounding."""
AT_ONCE = 1e-7
"""Share of a step within which a gap must close at the start to be zero."""

BLOCKED = 1e-9
"""Share of a gap's direction within which it is rounding what the constraints leave of it."""


class Event(eqx.Module):
    """A time at which a function of the motion passes zero, and what happens then.

    By `restitution` e the function is the gap φ(t, q) between two bodies, and speeds change by
    Newton's law of impact, ``φ̇⁺ = −e φ̇⁻``: with ``n = ∂φ/∂q`` along the speeds, and w of
    ``M w = n + Jᵀ μ, J w = 0``,

        v⁺ = v − (1 + e) φ̇/(n·w) w

    (Pfeiffer and Glocker, *Multibody Dynamics with Unilateral Contacts*, 1996, without friction).
    With neither `restitution` nor `jump` the time is only recorded. A gap that is zero at the start
    of a run and closing is an impact at once; one that is negative is none before it was positive.
    With e = 0 the next impact follows at once: such a run ends as ZENO there. A gap that the
    constraints close, as a drive does, cannot bounce: that sample fails. Second derivatives
    through an event are not those of the motion.

    Attributes:
        function: of (t [s], q (nq,), v (nv,)): a number, whose zeros are looked for; with
            `restitution` a length or an angle that does not depend on v.
        direction: −1 for zeros at which it falls, +1 for those at which it rises, 0 for both.
        stop: whether the sample ends there.
        restitution: coefficient e of an impact, from 0 to 1, which may be differentiated.
        jump: a function of (t, q, v) that returns (q, v) after the event, which are then projected
            onto the constraints.
        keep: how many times are recorded, the first ones.

    Raises:
        ValueError: the direction is not −1, 0 or 1, `keep` is less than one, both `restitution` and
            `jump` are given, a function cannot be called, or e is not from 0 to 1.

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

    def __check_init__(self) -> None:
        for name, x in (("function", self.function), ("jump", self.jump)):
            if not (callable(x) or (name == "jump" and x is None)):
                raise ValueError(f"Event: {name}={x!r}; give a function of (t, q, v)")
        if self.direction not in (-1, 0, 1):
            raise ValueError(f"Event: direction={self.direction!r}; give -1 (falling), 1 or 0")
        if isinstance(self.keep, bool) or not isinstance(self.keep, int) or self.keep < 1:
            raise ValueError(f"Event: keep={self.keep!r}; give a whole number, at least one")
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
        return self.restitution is not None or self.jump is not None


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
    """

    side: Array
    last: Array
    pace: Array
    count: Array
    times: Array
    halted: Array
    zeno: Array

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


def first_seen(names: tuple[str, ...], events: tuple[Event, ...], before: Any, dtype: Any) -> Seen:
    """At the start of a run; events that the run before had too, by their names, go on."""
    keep, never = max(e.keep for e in events), jnp.asarray(jnp.finfo(dtype).max, dtype)
    zero, none = jnp.zeros((), dtype), jnp.zeros(keep, dtype)
    rows = []
    for name, event in zip(names, events, strict=True):
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
    return Seen(side, last, pace, count, times, never, zero)


def last_seen(
    names: tuple[str, ...], events: tuple[Event, ...], seen: Seen
) -> tuple[dict[str, Record], dict[str, Occurrences]]:
    """At the end of a run: what is handed on, and what is told."""
    records, told = {}, {}
    for i, (name, event) in enumerate(zip(names, events, strict=True)):
        times = seen.times[i, : event.keep]
        records[name] = Record(seen.side[i], seen.last[i], seen.pace[i], seen.count[i], times)
        known = jnp.arange(event.keep) < seen.count[i]
        told[name] = Occurrences(
            seen.count[i].astype(jnp.int32),
            where(known, times, jnp.nan),
            jnp.asarray(event.acts),
        )
    return records, told


class Search(NamedTuple):
    """Where zeros are looked for, in times since the last saved time [s].

    Attributes:
        aim: end of the next step to try, infinite if none is wanted.
        end: the first time behind which a function is known to have passed zero; likewise.
        tries: steps tried since then.
    """

    aim: Array
    end: Array
    tries: Array


class Outcome(NamedTuple):
    """What becomes of a step that the error control would accept.

    Attributes:
        finite: whether all functions are finite at its end.
        taken: whether it is accepted, since no zero lies within it.
        delay: time from its end to the event (derivatives: of the event), or zero [s].
        q, v: the state then.
        seen, search: for the next step.
    """

    finite: Array
    taken: Array
    delay: Array
    q: Array
    v: Array
    seen: Seen
    search: Search


class Tried(NamedTuple):
    """A step that was tried, its end on the constraints.

    Attributes:
        gone: when it began since the saved time, without derivatives [s].
        h: its length, likewise [s].
        begin, end: (t, q, v, v̇) there.
        until: the next saved time, counted as `gone` [s].
        wish: the length that errors allow [s].
        tiny: a time that is only rounding [s].
    """

    gone: Array
    h: Array
    begin: tuple[Array, Array, Array, Array]
    end: tuple[Array, Array, Array, Array]
    until: Array
    wish: Array
    tiny: Array


def functions(events: tuple[Event, ...], t: Array, q: Array, v: Array) -> Array:
    """The values of all functions (n,)."""
    values = []
    for event in events:
        value = jnp.asarray(event.function(t, q, v), q.dtype)
        if value.shape != ():
            raise ValueError(
                f"an event's function gives an array of shape {value.shape}; give one number"
            )
        values.append(value)
    return jnp.stack(values)


def with_rates(equations: Equations, t: Array, q: Array, v: Array, a: Array) -> Any:
    """The values of all functions, and their rates."""
    along = jnp.ones_like(t), coordinate_rates(equations.mech, q, v), a
    return jax.jvp(lambda *at: functions(equations.events, *at), (t, q, v), along)


class Cubic(NamedTuple):
    """Polynomials ``c₀ + c₁ s + c₂ s² + c₃ s³`` in s from 0 to 1, each (n,)."""

    c0: Array
    c1: Array
    c2: Array
    c3: Array

    def __call__(self, s: Array) -> Array:
        """The values at s."""
        return self.c0 + s * (self.c1 + s * (self.c2 + s * self.c3))

    def slope(self, s: Array) -> Array:
        """Derivatives by s."""
        return self.c1 + s * (2.0 * self.c2 + 3.0 * s * self.c3)

    def turns(self) -> tuple[Array, Array]:
        """The two places between 0 and 1 at which the slope is zero, or an end."""
        tiny = jnp.finfo(self.c0.dtype).tiny
        root = jnp.sqrt(jnp.maximum(self.c2**2 - 3.0 * self.c3 * self.c1, 0.0))
        w = -(self.c2 + where(self.c2 < 0.0, -root, root))
        places = [
            where(jnp.abs(b) < jnp.abs(a), b / where(jnp.abs(a) > tiny, a, 1.0), 1.0)
            for a, b in ((3.0 * self.c3, w), (w, self.c1))
        ]
        first, second = (jnp.clip(x, 0.0, 1.0) for x in places)
        return jnp.minimum(first, second), jnp.maximum(first, second)


def hermite(g0: Array, m0: Array, g1: Array, m1: Array) -> Cubic:
    """The cubic with given values and slopes at 0 and 1."""
    return Cubic(g0, m0, 3.0 * (g1 - g0) - 2.0 * m0 - m1, 2.0 * (g0 - g1) + m0 + m1)


def passes(direction: Array, before: Array, after: Array) -> Array:
    """Whether values pass zero, in the directions asked for."""
    down = ((before > 0.0) & (after <= 0.0)) | ((before >= 0.0) & (after < 0.0))
    up = ((before < 0.0) & (after >= 0.0)) | ((before <= 0.0) & (after > 0.0))
    return (down & (direction <= 0)) | (up & (direction >= 0))


def first_zero(cubic: Cubic, direction: Array, g0: Array, g1: Array) -> tuple[Array, Array, Array]:
    """Where (n,) the first zero is that is asked for; whether one is, and where a turn betrays it.

    Between its turns a cubic is monotonic, so each piece has one zero at most.
    """
    a, b = cubic.turns()
    places = jnp.stack([jnp.zeros_like(a), a, b, jnp.ones_like(a)])
    values = jnp.stack([g0, cubic(a), cubic(b), g1])
    found = passes(direction, values[:-1], values[1:])
    zero, one = jnp.zeros_like(a), jnp.ones_like(a)
    low, high = zero, one
    rising = g1 > g0
    for i in (2, 1, 0):
        low, high = (where(found[i], places[j], x) for j, x in ((i, low), (i + 1, high)))
        rising = where(found[i], values[i + 1] > values[i], rising)
    s = 0.5 * (low + high)
    for _ in range(6):
        value, slope = cubic(s), cubic.slope(s)
        above = (value > 0.0) == rising
        low, high = where(above, low, s), where(above, s, high)
        newton = s - value / where(slope == 0.0, 1.0, slope)
        inside = (newton > low) & (newton < high) & (slope != 0.0)
        s = where(inside, newton, 0.5 * (low + high))
    turn = where(values[1] * g0 <= 0.0, a, b)
    return s, jnp.any(found, axis=0), turn


def outcome(equations: Equations, tried: Tried, seen: Seen, search: Search) -> Outcome:
    """Whether a step is taken, and what happens at its end."""
    events, (gone, h, until) = equations.events, (tried.gone, tried.h, tried.until)
    t, q, v, a = tried.end
    mech, inf = equations.mech, jnp.asarray(jnp.inf, q.dtype)
    direction = jnp.array([e.direction for e in events])
    fine_time = jnp.maximum(RESOLUTION * tried.wish, tried.tiny)

    g0, rate0 = with_rates(equations, *lax.stop_gradient(tried.begin))
    value, rate1 = with_rates(equations, *tried.end)
    g0, rate0, g1, rate1 = lax.stop_gradient((g0, rate0, value, rate1))
    g0 = _with_sides(g0, rate0, seen.side, direction, fine_time, AT_ONCE * tried.wish)
    slopes = (where(jnp.isfinite(x), x, 0.0) for x in (rate0, rate1))
    m0, m1 = (h * x for x in slopes)
    place, pair, turn = first_zero(hermite(g0, m0, g1, m1), direction, g0, g1)

    pace = jnp.maximum(seen.pace, jnp.maximum(jnp.abs(rate0), jnp.abs(rate1)))
    pace = where(jnp.isfinite(pace), pace, seen.pace)
    # Which function is near a zero at the end of the step, and which passed one before.
    crossed = passes(direction, g0, g1)
    to_zero = -g1 / where(rate1 == 0.0, 1.0, rate1)
    heading = (g0 * rate1 < 0.0) & passes(direction, g0, rate1)
    noise = jnp.finfo(q.dtype).eps * pace * tried.wish
    near = heading & ((jnp.abs(to_zero) <= fine_time) | (jnp.abs(g1) <= noise))
    early = (g0 * g1 > 0.0) & (to_zero > 0.0) & (gone + h + to_zero < until)
    # Rounding of g may be more than that of t: what is left between the ends is the zero.
    collapsed = search.end - gone - h <= tried.tiny
    forced = ((crossed & (h <= tried.tiny)) | (heading & (g0 * g1 > 0.0) & collapsed)) & ~near
    here = (near & (crossed | early)) | forced
    delay = where(forced, 0.0, to_zero)
    when = where(here, h + delay, where(crossed, place * h, inf))
    first = jnp.min(when)
    hidden = pair & ~crossed & ~here & (h > NARROW * tried.wish)
    probe = jnp.min(where(hidden, turn * h, inf))
    probing = (probe < jnp.minimum(first, h)) & (probe > 0.0)
    chosen = here & (when <= first + tried.tiny) & ~probing
    chosen = chosen & (jnp.cumsum(chosen.astype(jnp.int32)) == 1)
    happens = jnp.any(chosen)
    finite = jnp.all(jnp.isfinite(g1))
    taken = finite & (happens | ~(jnp.any(crossed) | probing))

    # The state at the event.
    steep = jnp.abs(rate1) > GRAZING * pace  # not if NaN
    mask = where(chosen, 1.0, 0.0).astype(q.dtype)
    grazing = happens & ~jnp.any(chosen & steep)
    rate = jnp.sum(where(chosen & steep, rate1, 0.0))
    rate = where(happens & ~grazing, rate, 1.0)
    moved = jnp.sum(where(chosen, delay, 0.0))
    shift = delayed(jnp.sum(where(chosen, value, 0.0)), moved, rate, grazing)
    shift = where(happens, shift, 0.0)
    t = t + shift
    q = where(happens, step_coordinates(mech, q, shift * v), q)
    v = v + shift * a
    signs = jnp.sign(g0)
    q, v = _acted(equations, mask, jnp.sum(mask * signs), t, q, v)

    # What the next step must know.
    side = where(crossed | here, signs, 0.0)  # those that must wait
    kept = jnp.array([1.0 if e.restitution is not None else -1.0 for e in events], q.dtype)
    moved_on = jnp.array([e.jump is not None for e in events])
    after = where(moved_on, BY_RATE, kept * signs)
    side = where(happens, where(chosen, after, side), 0.0)
    now = lax.stop_gradient(t)
    acts, stops = (jnp.array(x) for x in zip(*((e.acts, e.stop) for e in events), strict=True))
    again = jnp.any(chosen & acts & (now - seen.last < ZENO * tried.wish + tried.tiny))
    halts = again | jnp.any(chosen & stops)
    columns = jnp.arange(seen.times.shape[1])
    written = chosen[:, None] & (columns == seen.count[:, None])
    waiting = happens & jnp.any(here & ~chosen)
    new = Seen(
        side=side,
        last=where(chosen, now, seen.last),
        pace=pace,
        count=seen.count + mask,
        times=where(written, t, seen.times),
        halted=where(happens & halts, t, seen.halted),
        zeno=where(happens & again, 1.0, seen.zeno),
    )
    seen = jax.tree_util.tree_map(lambda x, y: where(taken, x, y), new, seen)

    # Where to look next.
    refused = where(probing, search.end, jnp.minimum(search.end, gone + h))
    end = where(taken, where(happens | (gone + h >= search.end), inf, search.end), refused)
    tries = where(end < inf, search.tries + 1.0, 0.0)
    base = gone + where(taken, h, 0.0)
    newton = jnp.min(where(heading & (g0 * g1 > 0.0), to_zero, inf))
    wanted = where(taken, newton, where(probing, probe, first))
    width = where(taken, end - base, h)
    halve = (tries > 0.0) & (jnp.mod(tries, 4.0) == 0.0)  # where rates mislead
    least = 0.5 * jnp.minimum(fine_time, width)
    wanted = where(halve, 0.5 * width, jnp.clip(wanted, least, width - least))
    looking = where(taken, end < inf, finite)
    aim = where(looking, base + wanted, inf)
    aim = where(waiting & taken, base + lax.stop_gradient(shift) + 0.5 * fine_time, aim)
    return Outcome(finite, taken, shift, q, v, seen, Search(aim, end, tries))


def _with_sides(
    g: Array, rate: Array, side: Array, direction: Array, fine_time: Array, at_once: Array
) -> Array:
    """Values at the begin of a step, with signs where they are zero but for rounding.

    A gap that closes within `at_once` of the start of a run is open there. Where the rate is zero
    too, as of a body that rests on another, an event may happen.
    """
    tiny = jnp.finfo(g.dtype).tiny
    is_open = (side == START) & (jnp.abs(g) <= at_once * jnp.abs(rate)) & (rate != 0.0)
    g = where(is_open, where(direction == 0, -jnp.sign(rate), -direction) * tiny, g)
    by_rate = (g == 0.0) | ((side == BY_RATE) & (jnp.abs(g) <= jnp.abs(rate) * fine_time))
    g = where(by_rate, jnp.sign(where(rate == 0.0, -direction, rate)) * tiny, g)
    wrong = (jnp.abs(side) == 1.0) & (g * side <= 0.0)
    return where(wrong, side * tiny, g)


@jax.custom_jvp
def delayed(value: Array, delay: Array, rate: Array, grazing: Array) -> Array:
    """`delay`, with derivatives ``−ġ⁻¹ ∂g`` of the zero, NaN where the function grazes it."""
    del value, rate, grazing
    return delay


@delayed.defjvp
def _delayed_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    _, delay, rate, grazing = primals
    return delay, nan_where(grazing, (-tangents[0] / rate)[None])[0]  # lanes wants axes


def _acted(
    equations: Equations, mask: Array, sign: Array, t: Array, q: Array, v: Array
) -> tuple[Array, Array]:
    """The state after the event of which `mask` is one, and from whose `sign` zero was reached."""
    events, mech = equations.events, equations.mech
    hits = jnp.array([e.restitution is not None for e in events]) * mask
    if any(e.restitution is not None for e in events):
        e = sum(m * jnp.asarray(x.restitution) for m, x in zip(mask, events, strict=True)
                if x.restitution is not None)  # fmt: skip

        def gap(t: Array, q: Array) -> Array:
            return hits @ functions(events, t, q, v)

        e = where((e >= 0.0) & (e <= 1.0), e, jnp.nan)
        by_time, by_place = jax.grad(gap, (0, 1))(t, q)
        normal = jax.grad(lambda x: by_place @ coordinate_rates(mech, q, x))(v)
        m = motion_state(mech, q, v, t)
        zero, system = jnp.zeros((m.top.nc, 1), q.dtype), kkt_system(m)
        w = solve_kkt(system, normal[:, None], zero)[0][:, 0]
        rate, mobility = normal @ v + by_time, normal @ w
        closes = sign * rate < 0.0
        free, units = (system.mass @ w[:, None])[:, 0], speed_units(mech)
        blocked = jnp.sum((units * free) ** 2) <= BLOCKED**2 * jnp.sum((units * normal) ** 2)
        hit = closes & (mobility > 0.0) & ~lax.stop_gradient(blocked)
        speed = where(hit, (1.0 + e) * rate, 0.0) / where(hit, mobility, 1.0)
        v = where(closes & ~hit, jnp.nan, v - speed * w)
    if any(e.jump is not None for e in events):
        place, speeds = q, v
        for m, x in zip(mask, events, strict=True):
            if x.jump is not None:
                given = x.jump(t, q, v)
                if not (isinstance(given, tuple | list) and len(given) == 2):
                    raise ValueError("an event's jump= must return (q, v)")
                given = (jnp.asarray(y, q.dtype) for y in given)
                place, speeds = (
                    where(m > 0.0, y, old) for y, old in zip(given, (place, speeds), strict=True)
                )
        jumps = jnp.array([e.jump is not None for e in events]) @ mask > 0.0
        place, speeds = equations.projected(equations.normalised(place, speeds), speeds, t)
        q, v = where(jumps, place, q), where(jumps, speeds, v)
    return q, v
