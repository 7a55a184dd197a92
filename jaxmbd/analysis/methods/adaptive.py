"""Adaptive steps: as long as the estimated error of each allows, each sample with its own."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis.methods.corners import inside, next_corner
from jaxmbd.analysis.methods.event_search import Search, Tried, outcome
from jaxmbd.analysis.methods.events import Seen
from jaxmbd.analysis.methods.method import Equations, Method, Step
from jaxmbd.graph import neutral
from jaxmbd.kinematics import coordinate_change, speed_units
from jaxmbd.lanes import bounded_while

SAFETY, LEAST, MOST = 0.9, 0.1, 5.0
"""Aim for this share of the tolerance; limits of the ratio of a step to the one before."""

SHORT = 1e-3
"""Share of a fixed step below which what a cut one would pass on to the next is rounding."""

KINK = 10.0
"""What the estimate of a step in which a force has a kink or a jump may be short of."""


def table(numbers: np.ndarray, dtype: Any) -> Array:
    """Coefficients as an array that is put together from single numbers where it is used.

    As an array in the program they would be an input of the loop of steps, and derivatives would
    keep a copy of them for each step.
    """
    if numbers.ndim == 0:
        return jnp.asarray(numbers.item(), dtype)
    return jnp.stack([table(row, dtype) for row in numbers])


class Attempt(NamedTuple):
    """A step before it is accepted.

    Attributes:
        q, v: the state after it.
        error_q, error_v: estimates of their errors, by embedded methods of lower order.
        slopes: v̇ at its begin and its end; the latter counts where events are looked for.
        memory: what is passed on to the next step (k,); all numbers are finite.
    """

    q: Array
    v: Array
    error_q: Array
    error_v: Array
    slopes: tuple[Array, Array]
    memory: Any = None


class Progress(NamedTuple):
    """How far a sample is between two times.

    Attributes:
        gone: the time since the first [s].
        q, v: the state.
        h: length of the next step, unless one of the times is nearer [s].
        before: size of the error of the last accepted step, in tolerances.
        estimates: sums of the absolute errors of accepted steps in v, and the largest absolute
            speeds since the first time (2, nv).
        accepted, rejected: steps so far in the run.
        seen, search: of events, if there are any.
        late: zero, with the derivative of `gone`, which has none.
        jumped: by how much events have changed the speeds since the first time (nv,).
        memory: of the step before, of methods that have one (k,).
    """

    gone: Array
    q: Array
    v: Array
    h: Array
    before: Array
    estimates: Array
    accepted: Array
    rejected: Array
    seen: Seen | None = None
    search: Search | None = None
    late: Array | None = None
    jumped: Array | None = None
    memory: Array | None = None


class Adaptive(Method):
    """A method with an embedded one of lower order, whose difference sets the steps.

    A step is accepted if its estimated error e, with tolerances ``aᵢ = atol uᵢ + rtol |yᵢ|`` and
    units u of one radian and of the mechanism's length for travels, has
    ``ε = √(mean((eᵢ/aᵢ)²)) ≤ 1``, of coordinates and of speeds. Steps then follow a
    proportional-integral controller (Gustafsson 1991; Hairer & Wanner II, IV.2): the next is
    ``0.9 ε^(−0.7/k) ε₋^(0.4/k)`` times as long, with ε₋ of the accepted step before and k the
    order of the error. Saved times are met exactly. Accepted states are projected onto the
    constraints. Derivatives are those of the steps taken, whose lengths are held.

    Attributes:
        rtol, atol: relative and absolute error of a step; by default 1e-10 and 1e-12 (4e-5 and
            5e-6 in float32).
        most: tried steps between two saved times, above which a run fails; at least four for each
            corner of `Sampled` functions of time, at which steps end.
    """

    rtol: Any = None
    atol: Any = None
    most: int = eqx.field(static=True, default=4096)

    order: ClassVar[int]
    """Order k of the error of a step in its length."""
    whole: ClassVar[bool] = False
    """Whether nothing but an event that happens may end a step early, so that the search for it
    changes no step."""

    @abc.abstractmethod
    def attempt(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Any = None
    ) -> Attempt:
        """A step of length h [s], with the estimated error."""

    def placed(self, equations: Equations, tried: Attempt, t: Array) -> tuple[Array, Array]:
        """The state on the constraints after an attempt that ends at t."""
        return equations.projected(equations.normalised(tried.q, tried.v), tried.v, t)

    def moved(
        self, equations: Equations, t: Array, h: Array, p: Progress
    ) -> Callable[[Array], tuple[Array, Array]] | None:
        """`Tried.moved` of a step of length h [s] from t on."""
        return None

    def first_memory(self, v: Array) -> Array:
        """Length of the next step, ε₋, accepted and rejected steps, when it gave up (1, 5)."""
        never = jnp.finfo(v.dtype).max
        return jnp.array([[jnp.inf, 1.0, 0.0, 0.0, never]], v.dtype)

    def taken(self, memory: Array, steps: Array) -> Array:
        """How many steps were accepted."""
        return memory[0, 2]

    def rejected(self, memory: Array) -> Array:
        """How many steps were not."""
        return memory[0, 3]

    def reached(self, memory: Array, t: Array) -> Array:
        """T, or when it gave up before."""
        return jnp.minimum(t, memory[0, 4])

    def step(
        self, equations: Equations, t: Array, q: Array, v: Array, h: Array, memory: Any
    ) -> Step:
        """The state at t + h, by as many steps as that takes; NaN if it takes more than `most`.

        If an event ends the sample before, the state is that at the event.
        """
        tiny = 16.0 * jnp.finfo(q.dtype).eps * jnp.maximum(jnp.abs(t), h)
        zero, never = jnp.zeros((), q.dtype), jnp.full((), jnp.inf, q.dtype)
        watched: Any = ()
        if equations.events:
            memory, seen = memory
            watched = seen, Search(never, never, zero, zero), zero, 0.0 * v, memory[0, 5:]

        def short(p: Progress) -> Array:
            before = p.gone < h
            return before if p.seen is None else before & ~p.seen.over

        def going(p: Progress) -> Array:
            return short(p) & (p.h > tiny)

        length, before, accepted, rejected, _ = memory[0, :5]
        none = self._first_estimates(v)
        start = Progress(zero, q, v, length, before, none, accepted, rejected, *watched)
        most = max(self.most, 4 * sum(x.shape[0] for x in equations.corners))
        end = bounded_while(going, lambda p: self._next(equations, t, h, tiny, p), start, most)
        lost = short(end)
        q, v = (jnp.asarray(jnp.where(lost, jnp.nan, x)) for x in (end.q, end.v))
        # Finite, as a step that gives what is not has failed.
        reached = jnp.asarray(jnp.where(lost, t + end.gone, jnp.finfo(q.dtype).max))
        memory = jnp.stack([end.h, end.before, end.accepted, end.rejected, reached])[None]
        memory = lax.stop_gradient(memory)
        if end.memory is not None:
            memory = jnp.concatenate([memory, end.memory[None]], axis=1), end.seen
        return Step(q, v, lax.stop_gradient(end.estimates), memory, end.jumped)

    def _next(
        self, equations: Equations, t: Array, until: Array, tiny: Array, p: Progress
    ) -> Progress:
        """Try a step; two of equal length are left rather than a long one and a short."""
        wish = lax.stop_gradient(jnp.minimum(p.h, until))
        if equations.corners:
            corner = next_corner(equations.corners, lax.stop_gradient(t + p.gone) + tiny) - t
            until = jnp.where(corner < until - tiny, corner, until)
        rest = until - p.gone
        h = jnp.where(wish >= rest, rest, jnp.where(2.0 * wish > rest, 0.5 * rest, wish))
        begin, late, uncut = t + p.gone, p.late, h
        if p.search is not None and late is not None:
            h = jnp.minimum(h, p.search.aim - p.gone)
            begin = begin + late
        whole = h
        if late is not None:  # the step ends at a time without derivatives
            h = h - late
        end = begin + h
        equations = self._within(equations, p, begin, end, tiny)
        tried = self.attempt(equations, begin, p.q, p.v, h, p.memory)
        size = lax.stop_gradient(self._size(equations.mech, p, tried))
        q, v = self.placed(equations, tried, end)
        fine = size <= 1.0  # not if NaN
        size = jnp.where(size < jnp.inf, jnp.maximum(size, 1e-4), jnp.inf)
        grown = SAFETY * size ** (-0.7 / self.order) * p.before ** (0.4 / self.order)
        shrunk = jnp.minimum(SAFETY * size ** (-1.0 / self.order), SAFETY)
        ratio = jnp.where(fine, jnp.minimum(grown, MOST), jnp.maximum(shrunk, LEAST))
        following = lax.stop_gradient(whole) * ratio
        # A step that was cut short by a saved time says little of how long the next may be.
        following = jnp.where(fine & (whole < wish), jnp.maximum(following, wish), following)
        gone = jnp.where(whole >= rest, until, p.gone + whole)
        seen, search, jumped, memory = p.seen, p.search, p.jumped, p.memory
        if seen is not None and search is not None:
            own = Tried(
                p.gone,
                whole,
                begin=(begin, p.q, p.v, tried.slopes[0]),
                end=(end, q, v, tried.slopes[1]),
                until=until,
                wish=wish,
                tiny=tiny,
                cut=self.whole & (whole < uncut),
                moved=self.moved(equations, begin, h, p),
            )
            found = outcome(equations, own, seen, search)
            usable, fine = fine & found.finite, fine & found.taken
            following = jnp.where(fine | ~usable, following, wish)
            following = jnp.where(usable, following, LEAST * whole)
            held = lax.stop_gradient(found.delay)
            assert jumped is not None
            jumped = jumped + lax.stop_gradient(found.v - v)
            anew = found.acted | (whole < SHORT * wish)
            new = memory if tried.memory is None else tried.memory
            memory = jnp.where(anew, self.first_memory(v)[0, 5:], new)
            q, v, gone, late = found.q, found.v, gone + held, found.delay - held
            late, jumped, memory = jax.tree_util.tree_map(
                lambda new, old: jnp.where(fine, new, old),
                (late, jumped, memory),
                (p.late, p.jumped, p.memory),
            )
            seen, search = jax.tree_util.tree_map(
                lambda new, old: jnp.where(usable, new, old),
                (found.seen, found.search),
                (seen, search),
            )
        estimates = lax.stop_gradient(self._estimates(p, tried, v, size))
        took = jnp.where(fine, 1.0, 0.0).astype(q.dtype)
        return Progress(
            gone=jnp.where(fine, gone, p.gone),
            q=jnp.where(fine, q, p.q),
            v=jnp.where(fine, v, p.v),
            h=following,
            before=jnp.where(fine, size, p.before),
            estimates=jnp.where(fine, estimates, p.estimates),
            accepted=p.accepted + took,
            rejected=p.rejected + (1.0 - took),
            seen=seen,
            search=search,
            late=late,
            jumped=jumped,
            memory=memory,
        )

    def _within(
        self, equations: Equations, p: Progress, begin: Array, end: Array, tiny: Array
    ) -> Equations:
        """Those of a step, with its switches, and at whose ends there may be corners.

        At a corner of a drive the state after the step is that on the constraints behind it.
        """
        switches = p.seen.switches if p.seen else {}
        moved = inside(begin, end, tiny) if equations.corners else lambda t: t
        more = (switches,) if switches else ()

        def within(function: Any) -> Any:
            return function and (lambda t, q, v: function(moved(t), q, v, *more))

        def projected(q: Array, v: Array, t: Any) -> tuple[Array, Array]:
            return equations.projected(q, v, t + tiny if equations.corners else t)

        return equations._replace(
            acceleration=within(equations.acceleration),
            slopes=within(equations.slopes),
            projected=projected,
        )

    def _size(self, mech: Any, p: Progress, tried: Attempt) -> Array:
        """ε, the larger of that of coordinates and of speeds."""
        units, drawn = speed_units(mech), jnp.asarray(neutral(mech))
        error_q = coordinate_change(mech, tried.q - tried.error_q, tried.q)
        reach = jnp.abs(coordinate_change(mech, drawn, p.q))
        speed = jnp.maximum(jnp.abs(p.v), jnp.abs(tried.v))
        sizes = [
            jnp.sum((error / (self.atol * units + self.rtol * size)) ** 2)
            for error, size in ((error_q, reach), (tried.error_v, speed))
        ]
        return jnp.sqrt(jnp.maximum(*sizes) / max(units.shape[0], 1))

    def _first_estimates(self, v: Array) -> Array:
        return jnp.stack([jnp.zeros_like(v), jnp.abs(v)])

    def _estimates(self, p: Progress, tried: Attempt, v: Array, size: Array) -> Array:
        """`Progress.estimates` after a step."""
        kink = KINK ** jnp.maximum(1.0 - 3.0 * p.before / size, 0.0)
        errors, fastest = p.estimates
        errors = errors + kink * jnp.abs(tried.error_v)
        return jnp.stack([errors, jnp.maximum(fastest, jnp.abs(v))])

    def own_error(
        self, sizes: tuple[Array, Array], before: Array, change: Array, scale: Array, fastest: Array
    ) -> Array:
        """The errors of the steps added up, as a share of the fastest motion.

        Each step is held to its tolerances, so none is ruined, and in motion slower than atol all
        are errors.
        """
        errors, speeds = sizes
        return errors * scale / jnp.maximum(fastest, speeds)
