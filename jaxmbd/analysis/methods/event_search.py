"""The search for events within a step, by rejecting steps, and the state after one.

A step in which a function changes its sign is not taken, and the next one that is tried ends where
the cubic through values and rates at both ends (Hermite's) has its first zero. The code of a step
occurs once, and each sample of a batch searches alone. Once the end of a step is within
`RESOLUTION` of a zero, one Newton step ``δ = −g/ġ`` moves the state onto it; its derivative is that
of the implicit function theorem, while lengths of steps have none. One event acts at a time:
another at the same time does so in the next step, of no length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxmbd.analysis.methods.events import BY_RATE, START, Event, Seen
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
NOISE = 0.25
"""Share of what times are rounded to: rounding keeps impacts going that move a gap by less."""
GRAZING = 1e-5
"""Share of the largest rate of a function so far, below which its zero has no derivative."""
NARROW = 1e-2
"""Share of the step that errors allow, below which hidden pairs of zeros are not looked for."""
AT_ONCE = 1e-7
"""Share of a step within which a gap must close at the start to be zero."""
BLOCKED = 1e-9
"""Share of a gap's direction within which it is rounding what the constraints leave of it."""


class Search(NamedTuple):
    """Where zeros are looked for, in times since the last saved time [s].

    Attributes:
        aim: end of the next step to try, infinite if none is wanted.
        end: the first time behind which a function is known to have passed zero; likewise.
        tries: steps tried since then.
        low: the last time before `end` at which a step ended that was given up (`Tried.cut`).
    """

    aim: Array
    end: Array
    tries: Array
    low: Array


class Outcome(NamedTuple):
    """What becomes of a step that the error control would accept.

    Attributes:
        finite: whether all functions are finite at its end.
        taken: whether it is accepted, since no zero lies within it.
        delay: time from its end to the event (derivatives: of the event), or zero [s].
        acted: whether the motion changes there.
        q, v: the state then.
        seen, search: for the next step.
    """

    finite: Array
    taken: Array
    delay: Array
    acted: Array
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
        cut: whether it is shorter than the method's own, and is given up unless an event happens.
        moved: of whether an event happens, which else it need not know: the rates of q, along the
            speeds, and of v (nv,) at the end by the length of the step; v and v̇ if it is None.
    """

    gone: Array
    h: Array
    begin: tuple[Array, Array, Array, Array]
    end: tuple[Array, Array, Array, Array]
    until: Array
    wish: Array
    tiny: Array
    cut: Any = False
    moved: Callable[[Array], tuple[Array, Array]] | None = None

    def below(self, search: Search) -> Array:
        """Time from the begin of the step up to which no function passes zero [s]."""
        return jnp.maximum(search.low - self.gone, 0.0)


def functions(events: tuple[Event, ...], t: Array, q: Array, v: Array) -> Array:
    """The values of all functions (n,)."""
    values = []
    for event in events:
        value = jnp.asarray(event.function(t, q, v))
        if value.dtype == bool:
            raise ValueError(
                "an event's function gives True or False; give a number that passes zero there"
            )
        if value.shape != ():
            raise ValueError(
                f"an event's function gives an array of shape {value.shape}; give one number"
            )
        values.append(value.astype(q.dtype))
    return jnp.stack(values)


def with_rates(
    equations: Equations, t: Array, q: Array, v: Array, a: Array, u: Array | None = None
) -> Any:
    """The values of all functions, and their rates, if q moves with u, by default v."""
    along = jnp.ones_like(t), coordinate_rates(equations.mech, q, v if u is None else u), a
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
    """Where (n,) the first zero is that is asked for; how many are; where a turn betrays it.

    Between its turns a cubic is monotonic, so each piece has one zero at most.
    """
    a, b = cubic.turns()
    places = jnp.stack([jnp.zeros_like(a), a, b, jnp.ones_like(a)])
    values = jnp.stack([g0, cubic(a), cubic(b), g1])
    found = passes(direction, values[:-1], values[1:])
    zero, one = jnp.zeros_like(a), jnp.ones_like(a)
    low, high = zero, one
    rising, share = g1 > g0, 0.5 * one
    for i in (2, 1, 0):
        low, high = (where(found[i], places[j], x) for j, x in ((i, low), (i + 1, high)))
        rising = where(found[i], values[i + 1] > values[i], rising)
        ratio = values[i] / (values[i] - values[i + 1])
        share = where(found[i], jnp.sqrt(ratio) if i else ratio, share)
    s = low + share * (high - low)  # of a line, or of a parabola from its turn on
    for _ in range(6):
        value, slope = cubic(s), cubic.slope(s)
        above = (value > 0.0) == rising
        low, high = where(above, low, s), where(above, s, high)
        newton = s - value / where(slope == 0.0, 1.0, slope)
        inside = (newton > low) & (newton < high) & (slope != 0.0)
        s = where(inside, newton, 0.5 * (low + high))
    turn = where(values[1] * jnp.sign(g0) <= 0.0, a, b)
    return s, jnp.sum(found.astype(jnp.int32), axis=0), turn


class Found(NamedTuple):
    """What a tried step shows of each function, without derivatives. All but `turn` are (n,).

    Attributes:
        sign: its sign before the step.
        rate: its rate at the end.
        pace: its largest rate so far.
        finite: whether it is at the end.
        crossed: whether it has another sign there, in a direction asked for.
        ahead: time from the end to the zero that it approaches there; infinite if none [s].
        here: whether the step ends at its zero, but for the resolution.
        delay: time from the end to that zero [s].
        when: time from the begin to its first zero; infinite if none is seen [s].
        turn: the first time from the begin at which a turn may hide a pair of zeros of a function;
            infinite if there is none [s].
    """

    sign: Array
    rate: Array
    pace: Array
    finite: Array
    crossed: Array
    ahead: Array
    here: Array
    delay: Array
    when: Array
    turn: Array


class Choice(NamedTuple):
    """Which event happens at the end of a tried step, and whether the step is taken.

    Attributes:
        event: whether it is this one (n,), at most one.
        happens: whether there is one.
        probing: whether a hidden pair of zeros is looked for first.
        taken: whether the step is accepted.
        early: whether it is not since it ends before any event.
    """

    event: Array
    happens: Array
    probing: Array
    taken: Array
    early: Array


def outcome(equations: Equations, tried: Tried, seen: Seen, search: Search) -> Outcome:
    """Whether a step is taken, and what happens at its end."""
    before = lax.stop_gradient(with_rates(equations, *lax.stop_gradient(tried.begin)))
    value, rate = with_rates(equations, *tried.end)
    after = lax.stop_gradient((value, rate))
    found = _found(equations.events, tried, seen, search, before, after)
    choice = _choice(found, tried)
    t, q, v, shift = _at_event(equations, tried, found, choice, value)
    seen = _remembered(equations.events, tried, found, choice, seen, (t, q, v))
    search = _next_search(tried, found, choice, search, shift)
    acted = jnp.any(choice.event & jnp.array([e.acts for e in equations.events]))
    return Outcome(jnp.all(found.finite), choice.taken, shift, acted, q, v, seen, search)


def _fine_time(tried: Tried) -> Array:
    """The resolution of an event's time [s]."""
    return jnp.maximum(RESOLUTION * tried.wish, tried.tiny)


def _found(
    events: tuple[Event, ...],
    tried: Tried,
    seen: Seen,
    search: Search,
    before: tuple[Array, Array],
    after: tuple[Array, Array],
) -> Found:
    """What values and rates at both ends of a step show."""
    (g0, rate0), (g1, rate1) = before, after
    h, tiny, fine_time = tried.h, tried.tiny, _fine_time(tried)
    direction = jnp.array([e.direction for e in events])
    active = jnp.array([e.active(seen.switches) for e in events])
    g0 = _with_sides(g0, rate0, seen.side, direction, fine_time, AT_ONCE * tried.wish)
    sign = jnp.sign(g0)  # a product with a tiny number may be zero
    m0, m1 = (h * where(jnp.isfinite(x), x, 0.0) for x in (rate0, rate1))
    place, passed, turn = first_zero(hermite(g0, m0, g1, m1), direction, g0, g1)
    pace = jnp.maximum(seen.pace, jnp.maximum(jnp.abs(rate0), jnp.abs(rate1)))
    pace = where(jnp.isfinite(pace), pace, seen.pace)

    crossed = passes(direction, g0, g1) & active
    to_zero = -g1 / where(rate1 == 0.0, 1.0, rate1)
    heading = (sign * rate1 < 0.0) & passes(direction, g0, rate1) & active
    noise = jnp.finfo(g1.dtype).eps * pace * tried.wish
    near = heading & ((jnp.abs(to_zero) <= fine_time) | (jnp.abs(g1) <= noise))
    same = sign * g1 > 0.0
    early = same & (to_zero > 0.0) & (tried.gone + h + to_zero < tried.until)
    # Rounding of g may be more than that of t: what is left between the ends is the zero.
    collapsed = search.end - tried.gone - h <= tiny
    below = tried.below(search)
    forced = ((crossed & (h - below <= tiny)) | (heading & same & collapsed)) & ~near
    here = (near & (crossed | early)) | forced

    # Of a step that is tried again and again the end knows better than a cubic over the whole.
    inside = (passed == 1) & (h + to_zero > below) & (to_zero < 0.0) & tried.cut
    first = where(inside, h + to_zero, place * h)

    delay = where(forced, 0.0, to_zero)
    hidden = (passed > 0) & active & ~crossed & ~here & (h > NARROW * tried.wish)
    hidden = hidden & (turn * h > below + tiny)
    return Found(
        sign=sign,
        rate=rate1,
        pace=pace,
        finite=jnp.isfinite(g1),
        crossed=crossed,
        ahead=where(heading & same, to_zero, jnp.inf),
        here=here,
        delay=delay,
        when=where(here, h + delay, where(crossed, first, jnp.inf)),
        turn=jnp.min(where(hidden, turn * h, jnp.inf)),
    )


def _choice(found: Found, tried: Tried) -> Choice:
    """The first event; of several at once that declared first."""
    first = jnp.min(found.when)
    probing = found.turn < jnp.minimum(first, tried.h)
    event = found.here & (found.when <= first + tried.tiny) & ~probing
    event = event & (jnp.cumsum(event.astype(jnp.int32)) == 1)
    happens = jnp.any(event)
    passed = jnp.any(found.crossed) | probing
    finite = jnp.all(found.finite)
    early = finite & ~happens & ~passed & tried.cut
    taken = finite & (happens | ~passed) & ~early
    return Choice(event, happens, probing, taken, early)


def _at_event(
    equations: Equations, tried: Tried, found: Found, choice: Choice, value: Array
) -> tuple[Array, Array, Array, Array]:
    """(t, q, v) at the end of a step or after the event there, and the time between them [s].

    `value` are the functions at the end (n,), with derivatives.
    """
    (t, q, v, a), happens, u = tried.end, choice.happens, tried.end[2]
    rates, delays = found.rate, found.delay
    if tried.moved is not None:
        u, a = tried.moved(happens)
        rates = lax.stop_gradient(with_rates(equations, t, q, v, a, u)[1])
        newton = -lax.stop_gradient(value) / where(rates == 0.0, 1.0, rates)
        delays = where((delays == 0.0) | (rates == 0.0), 0.0, newton)
    steep = choice.event & (jnp.abs(rates) > GRAZING * found.pace)  # not if NaN
    grazing = happens & ~jnp.any(steep)
    rate = where(happens & ~grazing, jnp.sum(where(steep, rates, 0.0)), 1.0)
    delay, zero = (jnp.sum(where(choice.event, x, 0.0)) for x in (delays, value))
    shift = where(happens, delayed(zero, delay, rate, grazing), 0.0)
    t = t + shift
    q = where(happens, step_coordinates(equations.mech, q, shift * u), q)
    v = v + shift * a
    mask = where(choice.event, 1.0, 0.0).astype(q.dtype)
    return t, *_acted(equations, mask, jnp.sum(mask * found.sign), t, q, v), shift


def _remembered(
    events: tuple[Event, ...],
    tried: Tried,
    found: Found,
    choice: Choice,
    seen: Seen,
    state: tuple[Array, Array, Array],
) -> Seen:
    """What the next step must know of one that ended, or of an event, at a state (t, q, v)."""
    event, happens, t = choice.event, choice.happens, state[0]
    switches = seen.switches
    for chosen, e in zip(event, events, strict=True):
        if e.sets is not None:
            new = e.switched(*state, seen.switches)
            switches = {n: where(chosen, new[n], x) for n, x in switches.items()}
    # The side of those that are looked for from now on is where they go, if they are at zero.
    active = jnp.array([e.active(switches) for e in events])
    inactive = ~jnp.array([e.active(seen.switches) for e in events]) | ~active
    kept = jnp.array([1.0 if e.restitution is not None else -1.0 for e in events], t.dtype)
    moved_on = jnp.array([e.jump is not None for e in events])
    behind = where(moved_on, BY_RATE, kept * found.sign)
    waiting = where(found.crossed | found.here, found.sign, 0.0)
    now = lax.stop_gradient(t)
    acts, stops = (jnp.array(x) for x in zip(*((e.acts, e.stop) for e in events), strict=True))
    # So late that the function has moved by no more than times are rounded to, too.
    since, moved = now - seen.last, NOISE * found.pace * tried.tiny
    at_once = (since < ZENO * tried.wish + tried.tiny) | (jnp.abs(found.rate) * since < moved)
    again = jnp.any(event & acts & at_once)
    ends = happens & (again | jnp.any(event & stops))
    columns = jnp.arange(seen.times.shape[1])
    side = where(happens, where(event, behind, waiting), 0.0)
    new = Seen(
        side=where(inactive, BY_RATE, side),
        last=where(event, now, seen.last),
        pace=found.pace,
        count=seen.count + where(event, 1.0, 0.0).astype(t.dtype),
        times=where(event[:, None] & (columns == seen.count[:, None]), t, seen.times),
        halted=where(ends, t, seen.halted),
        zeno=where(happens & again, 1.0, seen.zeno),
        switches=switches,
    )
    return jax.tree_util.tree_map(lambda x, y: where(choice.taken, x, y), new, seen)


def _next_search(
    tried: Tried, found: Found, choice: Choice, search: Search, shift: Array
) -> Search:
    """Where to look next: between the times that are known to be too early and too late.

    By Newton's method from a step that ended too early, by the first zero of the cubic from one
    that ended too late, by halves where rates mislead; at the end of an event for others at the
    same time.
    """
    taken, happens, probing, h = choice.taken, choice.happens, choice.probing, tried.h
    fine_time, inf, reached = _fine_time(tried), jnp.inf, tried.gone + h
    onward = taken | choice.early
    refused = where(probing | choice.early, search.end, jnp.minimum(search.end, reached))
    end = where(taken, where(happens | (reached >= search.end), inf, search.end), refused)
    tries = where(end < inf, search.tries + 1.0, 0.0)
    low = where(taken, 0.0, where(choice.early, reached, search.low))
    base = tried.gone + where(onward, h, 0.0)
    least, most = where(onward, 0.0, tried.below(search)), where(onward, end - base, h)
    first = where(probing, found.turn, jnp.min(found.when))
    wanted = where(onward, jnp.min(found.ahead), first)
    halve = (tries > 0.0) & (jnp.mod(tries, 4.0) == 0.0)
    apart = 0.5 * jnp.minimum(fine_time, most - least)
    within = jnp.clip(wanted, least + apart, most - apart)
    wanted = where(halve, least + 0.5 * (most - least), within)
    looking = where(onward, end < inf, jnp.all(found.finite))
    aim = where(looking, base + wanted, inf)
    others = taken & happens & jnp.any(found.here & ~choice.event)
    aim = where(others, base + lax.stop_gradient(shift) + 0.5 * fine_time, aim)
    return Search(aim, end, tries, low)


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
        e = sum(where(m > 0.0, jnp.asarray(x.restitution), 0.0)
                for m, x in zip(mask, events, strict=True)
                if x.restitution is not None)  # fmt: skip

        def gap(t: Array, q: Array, v: Array) -> Array:
            return hits @ functions(events, t, q, v)

        fine = (e >= 0.0) & (e <= 1.0)
        e = where(fine, e, 0.0)  # NaN only at the end, so that derivatives of others stay numbers
        by_time, by_place, by_speeds = jax.grad(gap, (0, 1, 2))(t, q, v)
        normal = jax.grad(lambda x: by_place @ coordinate_rates(mech, q, x))(v)
        m = motion_state(mech, q, v, t)
        zero, system = jnp.zeros((m.top.nc, 1), q.dtype), kkt_system(m)
        w = solve_kkt(system, normal[:, None], zero)[0][:, 0]
        rate, mobility = normal @ v + by_time, normal @ w
        closes = sign * rate < 0.0
        free, units = (system.mass @ w[:, None])[:, 0], speed_units(mech)
        blocked = jnp.sum((units * free) ** 2) <= BLOCKED**2 * jnp.sum((units * normal) ** 2)
        blocked = blocked | jnp.any(by_speeds != 0.0)
        hit = closes & (mobility > 0.0) & ~lax.stop_gradient(blocked)
        speed = where(hit, (1.0 + e) * rate, 0.0) / where(hit, mobility, 1.0)
        v = where(closes & ~(hit & fine), jnp.nan, v - speed * w)
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
