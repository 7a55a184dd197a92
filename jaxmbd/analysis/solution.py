"""What a run returns: the simulated motion, and where it ended."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis.methods import Occurrences, Record
from jaxmbd.analysis.run_account import Account
from jaxmbd.plumbing import outline


class RunEnd(NamedTuple):
    """Where a run ended; given as `q0`, the next run goes on from there.

    Attributes:
        t: time [s].
        q: coordinates (nq,).
        v: speeds (nv,).
        memory: what the method passes on to its next step.
        weights: of the account's two norms (2, nv).
        account: what the run was wrong by (`jaxmbd.analysis.run_account`).
        status: `Status` number of the initial state.
        events: what was known of each event; None without any. In the next run those of the same
            name go on.
        switches: values of the switches; None without any. They stay in the next run.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> half = mbd.simulate(m, [0.1], t1=0.01, dt=1e-3)
        >>> rest = mbd.simulate(m, half.end, t1=0.02, dt=1e-3)
        >>> whole = mbd.simulate(m, [0.1], t1=0.02, dt=1e-3)
        >>> bool(rest.q[-1] == whole.q[-1])
        True
    """

    t: Array
    q: Array
    v: Array
    memory: Array
    weights: Array
    account: Account
    status: Array
    events: dict[str, Record] | None = None
    switches: dict[str, Array] | None = None


class Solution(NamedTuple):
    """A simulated motion.

    Attributes:
        t: times (n,) [s].
        q: coordinates (n, nq); NaN from the time on at which the run left the constraints or was no
            number any more, and after an event that ended it. Those of an inaccurate run are kept
            (see `fine`). The row at the time of an event is the state after it.
        v: speeds (n, nv); likewise.
        outputs: results of the caller's function at each time, stacked; None without one.
        status: a `Status` number.
        drift: largest closure error at a saved time [m; moment rows times the length].
        failed_at: time at which the run failed or became inaccurate [s]; infinite if it did not.
        error: estimated error of the speeds at the end as a share of the motion, the steps' own
            errors added up (`jaxmbd.analysis.run_account`); NaN by a diffrax solver.
        worst_step: the largest error of a single step, likewise.
        worst_at: the time at which that step ended [s].
        steps: number of steps taken since the start of the first run.
        rejected: number of steps that were tried and not taken, by a method of adaptive steps.
        end: the state in which the run ended, to go on from; `end.t` is the time of the event that
            ended it, if one did.
        events: `Occurrences` of each event by name; None without any.
        forced: one if there were `inputs`, else zero.
        switches: values of the switches (n,) by name; None without any.

    Example:
        >>> import jaxmbd as mbd
        >>> m = mbd.zoo.simple_pendulum()
        >>> mbd.simulate(m, [0.1], t1=0.02, dt=1e-3).status.item()
        0
    """

    t: Array
    q: Array
    v: Array
    outputs: Any
    status: Array
    drift: Array
    failed_at: Array
    error: Array
    worst_step: Array
    worst_at: Array
    steps: Array
    rejected: Array
    end: RunEnd
    events: dict[str, Occurrences] | None = None
    forced: Array | int = 0
    switches: dict[str, Array] | None = None

    __str__ = outline

    @property
    def fine(self) -> Array:
        """Whether each row (n,) is from before `failed_at`; the others are not to be relied on.

        Those after the event that ended a sample are not either.
        """
        fine = self.t < jnp.asarray(self.failed_at)[..., None]
        return fine if self.events is None else fine & (self.t <= self.end.t[..., None])
