"""Courses: what a scene goes through, frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmbd import lanes
from jaxmbd.analysis import Key, assemble
from jaxmbd.graph import topology
from jaxmbd.kinematics import Pose, poses
from jaxmbd.model import Mechanism

FRAMES_PER_SECOND = 30.0
LONGEST = 900
"""Frames of an animation at most."""
_SWEEP = 3.0
"""Length of a course that has no times, one way [s]."""


class Track(NamedTuple):
    """A motion of one mechanism, sampled where it was computed.

    Attributes:
        q: coordinates (n, nq).
        t: times (n,) [s], or None: then it is played to and fro.
        v, vdot, lam, tau: speeds, accelerations, multipliers, efforts along the speeds, if known.
        held: at rest, the coordinates that are held; None in motion.
    """

    q: np.ndarray
    t: np.ndarray | None = None
    v: np.ndarray | None = None
    vdot: np.ndarray | None = None
    lam: np.ndarray | None = None
    tau: np.ndarray | None = None
    held: tuple[Key, ...] | None = None

    def frames(self, rows: np.ndarray) -> Track:
        """The same at some of its rows."""
        arrays = {n: x[rows] for n, x in self._asdict().items() if isinstance(x, np.ndarray)}
        return self._replace(**arrays)


class Course(NamedTuple):
    """A mechanism's poses, frame by frame.

    Attributes:
        clock: when each frame is shown (n,) [s].
        track: the motion at the frames.
        where: pose of every body, its arrays with the frames first.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd.viz.course import Course, tracks
        >>> mech = mbd.zoo.simple_pendulum()
        >>> [track] = tracks(mech, mbd.simulate(mech, [0.1], t1=0.5, dt=1e-2))
        >>> Course.of(mech, track).where["bob"].position.shape
        (16, 3)
    """

    clock: np.ndarray
    track: Track
    where: dict[str, Pose]

    @staticmethod
    def of(mech: Mechanism, track: Track, speed: float = 1.0, rate: float | None = None) -> Course:
        """The course of one motion.

        Args:
            mech: the mechanism.
            track: its motion.
            speed: of the playback, 1 for real time, 0.1 for ten times slower.
            rate: frames for each second of playback, by default 30, fewer where they would be
                more than 900.
        """
        clock, rows = _frames(track, speed, rate)
        shown = track.frames(rows)
        return Course(clock, shown, jax.tree.map(np.asarray, poses_along(mech, shown.q)))

    def at(self, frame: int) -> dict[str, Pose]:
        """The poses of a frame."""
        return {body: Pose(*(x[frame] for x in pose)) for body, pose in self.where.items()}


poses_along = lanes.vmap(poses, in_axes=(None, 0))
"""Poses of all bodies of a mechanism at coordinates (n, nq)."""


def _frames(track: Track, speed: float, rate: float | None) -> tuple[np.ndarray, np.ndarray]:
    """When each frame is shown [s], and which row it is."""
    n = len(track.q)
    if n == 1:
        return np.zeros(1), np.zeros(1, int)
    if track.t is None:
        there = np.arange(n)
        rows = np.concatenate([there, there[-2:0:-1]])
        clock = np.arange(len(rows)) * _SWEEP / (speed * max(n - 1, 1))
        return clock, rows
    length = float(track.t[-1] - track.t[0]) / speed
    rate = min(FRAMES_PER_SECOND, LONGEST / length) if rate is None else rate
    clock = np.arange(max(2, int(length * rate * (1.0 + 1e-9)) + 1)) / rate
    ends = 0.5 * (track.t[1:] + track.t[:-1])
    return clock, np.searchsorted(ends, track.t[0] + clock * speed)


def tracks(mech: Mechanism, solution: Any) -> list[Track]:
    """The motions of a solution, one for each sample of a batch.

    Args:
        mech: the mechanism.
        solution: what has coordinates ``q`` and perhaps times ``t`` (a `Solution`, `DrivenMotion`,
            `Assembly`, `Trajectory`, `State`), or coordinates (nq,), (n, nq) or (samples, n, nq);
            None for the assembled pose.

    Raises:
        ValueError: it has coordinates of another mechanism, or none that are finite, or times that
            run backwards.
    """
    if solution is None:
        solution = assemble(mech)
    q, nq = np.asarray(getattr(solution, "q", solution), float), topology(mech).nq
    if q.ndim not in (1, 2, 3) or q.shape[-1] != nq:
        raise ValueError(
            f"the solution has coordinates of shape {q.shape}; this mechanism takes ({nq},),"
            f" (n, {nq}) or (samples, n, {nq})"
        )
    batch = q.ndim == 3
    parts = {name: getattr(solution, name, None) for name in ("v", "vdot", "lam", "tau")}
    parts["t"] = _times(solution)
    found = []
    for k in range(len(q) if batch else 1):
        own = {n: None if x is None else np.asarray(x, float) for n, x in parts.items()}
        if batch:
            own = {
                n: x[k] if x is not None and not (n == "t" and x.ndim == 1) else x
                for n, x in own.items()
            }
        track = _finite(q[k] if batch else np.atleast_2d(q), own, q.ndim == 1)
        found.append(track._replace(held=getattr(solution, "held_keys", None)))
    if all(len(track.q) == 0 for track in found):
        raise ValueError("no coordinates of the solution are finite: it failed from the start")
    return found


def _times(solution: Any) -> Any:
    if getattr(solution, "axis", "t") != "t":
        return None
    return getattr(solution, "t", getattr(solution, "x", None))


def _finite(q: np.ndarray, parts: dict[str, Any], one: bool) -> Track:
    """A motion until its first row that is not finite, or all finite rows of what has no times.

    Parts of other lengths, and times that stand still, are left out.

    Raises:
        ValueError: times run backwards.
    """
    if one:
        parts = {n: None if x is None else x[None] for n, x in parts.items() if n != "t"}
    fit = {n: x for n, x in parts.items() if x is not None and len(x) == len(q)}
    good = np.all(np.isfinite(q), axis=1)
    if "t" in fit:
        timed = np.logical_and.accumulate(good & np.isfinite(fit["t"]))
        t = fit["t"][timed]
        if np.any(back := np.diff(t) < 0.0):
            k = int(np.argmax(back))
            raise ValueError(
                f"times run backwards: t[{k + 1}] = {t[k + 1]:g} s comes after {t[k]:g} s; turn "
                "the motion round, or give its coordinates alone"
            )
        if len(t) > 1 and not t[-1] > t[0]:
            del fit["t"]
        else:
            good = timed
    rows = np.logical_and.accumulate(good) if "t" in fit else good
    return Track(q[rows], **{n: x[rows] for n, x in fit.items()})


def samples(mech: Mechanism, count: int) -> Sequence[Mechanism]:
    """The mechanism of each of `count` samples, from a batch or from one that all share.

    Raises:
        ValueError: it is a batch of another size.
    """
    batch = np.shape(mech.gravity)[:-1]
    if batch == ():
        return [mech] * count
    if batch != (count,):
        raise ValueError(f"a batch of {batch} mechanisms, but {count} motions")
    return [jax.tree.map(lambda x, k=k: np.asarray(x)[k], mech) for k in range(count)]
