"""The times of a run: when states are saved, and how many steps lie between."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

AT_END = 1e-6
"""Share of the first interval by which a run may begin beside where the one before ended."""


class TimeGrid(eqx.Module):
    """The times of a run: a pytree of t0, dt and times.

    Attributes:
        saves: number of saved states after the first.
        every: number of steps between two of them.
        t0: start [s].
        dt: step, or its mean [s].
        times: saved times (saves + 1,) [s]; None if they are ``every · dt`` apart.
    """

    saves: int = eqx.field(static=True)
    every: int = eqx.field(static=True)
    t0: Any
    dt: Any
    times: Any = None

    @property
    def t1(self) -> Any:
        """End of the run [s]."""
        return self.t0 + self.saves * self.every * self.dt if self.times is None else self.times[-1]

    def interval(self, n: Array) -> tuple[Array, Array, Array]:
        """Begin and end of saved interval n, and the step in it [s]."""
        if self.times is not None:
            begin, end = self.times[n], self.times[n + 1]
            return begin, end, (end - begin) / self.every
        begin, end = (
            self.t0 + self.dt * (k * self.every).astype(self.t0.dtype) for k in (n, n + 1)
        )
        return begin, end, self.dt


def time_grid(
    begin: Any,
    t: Any,
    t0: Any,
    t1: Any,
    dt: Any,
    steps: Any,
    every: Any,
    *,
    adaptive: bool,
) -> TimeGrid:
    """The times of a run from the arguments of `simulate`.

    `begin` is the time at which the run before ended [s], or None, and `adaptive` says whether the
    method takes steps of its own.

    Raises:
        ValueError: they do not set the times, contradict each other, or are out of range.
    """
    if not (isinstance(every, int) and every >= 1):
        raise ValueError(f"save_every={every!r}; give a whole number, at least one")
    if t is not None:
        also = {"t0": t0, "t1": t1, "steps": steps}
        also = [name for name, x in also.items() if x is not None]
        if also:
            raise ValueError(f"{', '.join(also)} beside t=: the times t are the whole run")
        return _at_times(begin, t, dt, every, adaptive=adaptive)
    first: Any = 0.0 if t0 is None else t0
    first = first if begin is None else begin
    t0 = first if isinstance(first, Tracer) else float(first)
    if (t1 is None) == (steps is None):
        raise ValueError("give one of t1=, steps= and t=: they set the end of the run")
    if dt is None and adaptive and t1 is not None and not isinstance(t1 - t0, Tracer):
        dt = (t1 - t0) / every
    if dt is None and adaptive:
        raise ValueError("the end is traced or by steps=: give dt=, or the saved times as t=")
    if dt is None:
        raise ValueError("give dt=, the step in seconds")
    _check_times(t0, t1, dt, steps)
    if steps is not None:
        if not (isinstance(steps, int) and steps >= 1 and steps % every == 0):
            raise ValueError(f"{steps=}; give a multiple of save_every={every}, at least one")
        return TimeGrid(steps // every, every, t0, dt)
    assert t1 is not None
    if not t1 > t0:
        raise ValueError(f"need t1 > t0; got {t0=}, {t1=}")
    if not dt > 0.0:
        raise ValueError(f"need finite times and dt > 0; got {dt=}")
    saves = max(1, round((t1 - t0) / (dt * every)))
    return TimeGrid(saves, every, t0, (float(t1) - float(t0)) / (saves * every))


def _check_times(t0: Any, t1: Any, dt: Any, steps: Any) -> None:
    for name, x in (("dt", dt), ("t0", t0), ("t1", 1.0 if t1 is None else t1)):
        if isinstance(x, Tracer):
            if steps is None:
                raise ValueError(
                    f"{name} is traced, but sets the number of steps: give steps= in place of t1="
                )
        elif not np.isfinite(x) or (name == "dt" and not x > 0.0 and t1 is None):
            raise ValueError(f"need finite times and dt > 0; got {name}={x}")


def _at_times(begin: Any, t: Any, dt: Any, every: int, *, adaptive: bool) -> TimeGrid:
    """States are saved at the times t."""
    if not isinstance(t, Tracer):
        t = np.asarray(t, float)
        if t.ndim != 1 or t.size < 2 or not np.all(np.isfinite(t)) or np.any(np.diff(t) <= 0.0):
            raise ValueError(f"t= of shape {t.shape}: give two or more finite, increasing times")
        if begin is not None and not isinstance(begin, Tracer):
            ended = float(begin)
            if abs(ended - t[0]) > AT_END * (t[1] - t[0]):
                raise ValueError(f"t[0] = {t[0]} s, but the run before ended at {ended} s")
    elif t.ndim != 1 or t.shape[0] < 2:
        raise ValueError(f"t= of shape {t.shape}: give two or more times")
    saves = t.shape[0] - 1
    if dt is not None:
        if isinstance(dt, Tracer) or isinstance(t, Tracer):
            raise ValueError(
                "dt= beside t= sets the number of steps, so neither may be traced: give "
                "save_every=, the number of steps between two times, in place of dt="
            )
        if not (np.isfinite(dt) and dt > 0.0):
            raise ValueError(f"need finite times and dt > 0; got {dt=}")
        every = 1 if adaptive else max(1, math.ceil(np.diff(t).max() / dt * (1.0 - 1e-9)))
    return TimeGrid(saves, every, t[0], (t[-1] - t[0]) / (saves * every), jnp.asarray(t))
