"""What an animation shows, frame by frame: samples on their courses, traces, force arrows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicHermiteSpline

from jaxmbd import lanes
from jaxmbd.analysis import Key, assemble, efforts_at, parse_inputs
from jaxmbd.dynamics import forward_dynamics, joint_reactions
from jaxmbd.graph import topology
from jaxmbd.io import Imported
from jaxmbd.kinematics import MotionState, Pose, motion_state, poses
from jaxmbd.model import GROUND, Load, Mechanism, RubbingElement
from jaxmbd.observe import Experiment, Reaction, Snapshot, unknown_point
from jaxmbd.plumbing import unknown
from jaxmbd.suspension import Corner
from jaxmbd.viz.glyphs import Wheel
from jaxmbd.viz.scene import Colour, Scene, point_bodies, round_number
from jaxmbd.viz.solids import bounding_corners
from jaxmbd.viz.suspension_lines import suspension_lines

FRAMES_PER_SECOND = 30.0
LONGEST = 900
"""Frames of an animation at most."""
_SWEEP = 3.0
"""Length of a course that has no times, one way [s]."""
_BLINK = 0.5
"""Motions that last less are shown slower, unless a speed is given [s]."""
_MOST_PLACES = 1000
"""Of a path."""


class Track(NamedTuple):
    """A motion of one mechanism, sampled where it was computed.

    Attributes:
        q: coordinates (n, nq).
        t: times (n,) [s], or None: then it is played to and fro.
        v, vdot, lam, tau: speeds, accelerations, multipliers, efforts along the speeds, if known.
        held: at rest, the coordinates that are held; None in motion.
        experiment, row: the experiment in motion that it is the course of, and rows of that (n,).
    """

    q: np.ndarray
    t: np.ndarray | None = None
    v: np.ndarray | None = None
    vdot: np.ndarray | None = None
    lam: np.ndarray | None = None
    tau: np.ndarray | None = None
    held: tuple[Key, ...] | None = None
    experiment: Experiment | None = None
    row: np.ndarray | None = None

    def frames(self, rows: np.ndarray) -> Track:
        """The same at some of its rows."""
        arrays = {n: x[rows] for n, x in self._asdict().items() if isinstance(x, np.ndarray)}
        return self._replace(**arrays)


class Course(NamedTuple):
    """A mechanism's poses, frame by frame; `clock` (n,) [s] is when each frame is shown."""

    clock: np.ndarray
    track: Track
    where: dict[str, Pose]

    @staticmethod
    def of(mech: Mechanism, track: Track, speed: float = 1.0, rate: float | None = None) -> Course:
        """The course of one motion, at a speed of playback and a rate of frames [1/s]."""
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
        return np.arange(len(rows)) * _SWEEP / (speed * (n - 1)), rows
    length = float(track.t[-1] - track.t[0]) / speed
    rate = min(FRAMES_PER_SECOND, LONGEST / length) if rate is None else rate
    clock = np.arange(max(2, int(length * rate * (1.0 + 1e-9)) + 1)) / rate
    ends = 0.5 * (track.t[1:] + track.t[:-1])
    return clock, np.searchsorted(ends, track.t[0] + clock * speed)


def tracks(mech: Mechanism, solution: Any) -> list[Track]:
    """The motions of a solution, one for each sample of a batch; `animation` says of what.

    Raises:
        ValueError: it has coordinates of another mechanism, or none that are finite, or times that
            run backwards.
    """
    if solution is None:
        solution = assemble(mech)
    if isinstance(solution, Experiment):
        solution = solution.trajectory(mech)
    if isinstance(solution, (str, os.PathLike)):
        raise ValueError(f"{str(solution)!r} is no motion; name the file by path=")
    q, nq = np.asarray(getattr(solution, "q", solution), float), topology(mech).nq
    if q.ndim not in (1, 2, 3) or q.shape[-1] != nq:
        raise ValueError(
            f"the solution has coordinates of shape {q.shape}; this mechanism takes ({nq},),"
            f" (n, {nq}) or (samples, n, {nq})"
        )
    parts = {name: getattr(solution, name, None) for name in ("v", "vdot", "lam", "tau")}
    if q.ndim > 1 and getattr(solution, "axis", "t") == "t":
        parts["t"] = getattr(solution, "t", getattr(solution, "x", None))
    given = {"q": q} | {n: np.asarray(x, float) for n, x in parts.items() if x is not None}
    for _ in range(3 - q.ndim):  # a pose is a motion of one row, a motion a batch of one
        given = {n: x[None] for n, x in given.items()}
    if "t" in given and given["t"].ndim == 1:
        given["t"] = np.broadcast_to(given["t"], (len(q), len(given["t"])))
    held, own = getattr(solution, "held_keys", None), getattr(solution, "experiment", None)
    if own is not None and own.moving:
        given["row"] = np.arange(given["q"].shape[1])[None]
    else:
        own = None
    found = [
        _finite({n: x[k] for n, x in given.items()})._replace(held=held, experiment=own)
        for k in range(len(given["q"]))
    ]
    if all(len(track.q) == 0 for track in found):
        raise ValueError("no coordinates of the solution are finite: it failed from the start")
    return found


def _finite(parts: dict[str, Any]) -> Track:
    """A motion until its first row that is not finite, or all finite rows of what has no times.

    Parts of other lengths, and times that stand still, are left out.

    Raises:
        ValueError: times run backwards.
    """
    q = parts["q"]
    fit = {n: x for n, x in parts.items() if len(x) == len(q)}
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
    return Track(**{n: x[good] for n, x in fit.items()})


def samples(mech: Mechanism, count: int) -> Sequence[Mechanism]:
    """The mechanism of each of `count` samples, from a batch or from one that all share."""
    batch = np.shape(mech.gravity)[:-1]
    if batch == ():
        return [mech] * count
    if batch != (count,):
        raise ValueError(f"a batch of {batch} mechanisms, but {count} motions")
    return [jax.tree.map(lambda x, k=k: np.asarray(x)[k], mech) for k in range(count)]


# Force arrows

GROUPS = ("reactions", "forces")
_READABLE = 0.1
"""Arrows that are usually shorter than this share of the longest could not be read."""


def chosen_arrows(mech: Mechanism, names: Iterable[str] | str | None) -> tuple[str, ...]:
    """The joints and force elements of which arrows are drawn; `GROUPS` are many."""
    names = (names,) if isinstance(names, str) else tuple(names or ())
    joints = [n for n in mech.joints if "force" in mech.joint(n).rows]
    forces = [n for n, f in mech.forces.items() if not isinstance(f, RubbingElement)]
    found: list[str] = []
    for name in names:
        if problems := unknown("joint or force element", name, (*GROUPS, *joints, *forces)):
            raise ValueError(problems[0])
        found += {"reactions": joints, "forces": forces}.get(name, [name])
    return tuple(dict.fromkeys(found))


def arrows_along(
    mech: Mechanism, track: Track, names: tuple[str, ...], inputs: Any = None
) -> np.ndarray:
    """Feet (m, 3) [m] and forces (m, 3) [N] of arrows, (frames, m, 2, 3).

    A joint's arrow is the force of its reaction on b; a force element has one for each force on a
    body, none for those on the ground. Reactions of what is held at rest are the static ones, as of
    `jaxmbd.observe.Reaction`, those of an experiment's course what the experiment itself observes;
    else accelerations and multipliers that the track lacks are computed, with `inputs` as of
    `simulate`. A track without speeds is taken at rest.

    Raises:
        ValueError: a force is not determined.
    """
    rows, top = len(track.q), topology(mech)
    v = np.zeros((rows, top.nv)) if track.v is None else track.v
    t = np.zeros(rows) if track.t is None else track.t
    known: Any = (track.vdot, track.lam, track.tau)
    known = None if any(x is None for x in known) else known
    given, joints = parse_inputs(mech, inputs), [n for n in names if n in mech.joints]
    jointed, observed = bool(joints), None
    if track.experiment is not None:
        observed = _observed_reactions(mech, track, joints)

    def instant(mech: Mechanism, q: Any, v: Any, t: Any, known: Any, observed: Any) -> Any:
        if observed is not None:
            return _arrows(motion_state(mech, q, v, t), names, observed)
        efforts = efforts_at(given, t, q, v)
        if track.held is not None:
            values = [jnp.zeros_like(t)] * len(track.held)  # reactions do not depend on them
            at = Snapshot(
                mech, q, t=t, inputs=efforts, keys=track.held, values=values, moving=False
            )
            return _arrows(at.motion, names, at.reactions if jointed else {})
        if known is None:
            vdot, lam = forward_dynamics(mech, q, v, t, efforts)
        else:
            vdot, lam, tau = known
            efforts = {n: tau[top.layout[n].v] for n in top.tree if top.layout[n].v}
        found = joint_reactions(mech, q, v, vdot, lam, t, efforts) if jointed else {}
        return _arrows(motion_state(mech, q, v, t), names, found)

    along = lanes.vmap(instant, in_axes=(None, 0, 0, 0, 0, 0))
    found = np.asarray(along(mech, track.q, v, t, known, observed))
    if not np.all(np.isfinite(found)):
        frame = int(np.argmin(np.all(np.isfinite(found), axis=(1, 2, 3))))
        raise ValueError(
            f"force arrows: in frame {frame} forces are not determined or not finite: give bodies "
            "that spin idly an inertia, hold what nothing holds, or show a sweep or driven motion"
        )
    return found


def _observed_reactions(
    mech: Mechanism, track: Track, joints: Sequence[str]
) -> dict[str, np.ndarray]:
    """Reaction forces (n, 3) [N] of joints, as the experiment of a track observes them."""
    assert track.experiment is not None
    if not joints:
        return {}
    observing: Any = replace(track.experiment, observe={n: Reaction(n) for n in joints})  # type: ignore[type-var]
    return {n: x[track.row] for n, x in observing.trajectory(mech).curves.items()}


def _arrows(m: MotionState, names: tuple[str, ...], reactions: dict[str, Any]) -> Any:
    mech, found = m.mech, []
    for name in names:
        if name in mech.joints:
            joint = mech.joint(name)
            found.append((m.position(joint.b, joint.point_b), reactions[name][-3:]))
            continue
        for load in mech.forces[name].loads(m):
            if isinstance(load, Load) and load.body != GROUND:
                found.append((load.point, load.force))
    return jnp.stack([jnp.stack(x) for x in found]) if found else jnp.zeros((0, 2, 3))


def arrow_scale(forces: np.ndarray, longest: float) -> tuple[np.ndarray, str]:
    """Factors (frames, m) [m/N] that make arrows of forces (frames, m, 3) [N], and their legend.

    Lengths are in proportion to the forces, unless some of these are usually below a tenth of the
    greatest: then to their square roots, so that a hundredth is still a tenth as long.
    """
    sizes = np.linalg.norm(forces, axis=-1)
    greatest = float(sizes.max(initial=0.0))
    if greatest == 0.0:
        return sizes, "no forces"
    usual = [float(np.median(x[x > 0.0])) for x in sizes.T if np.any(x)]
    if min(usual) >= _READABLE * greatest:
        return np.full(sizes.shape, longest / greatest), f"longest arrow: {_newtons(greatest)}"
    factors = longest / np.sqrt(greatest * np.where(sizes > 0.0, sizes, greatest))
    half = f"half as long: {_newtons(0.25 * greatest)} (lengths grow as the square root)"
    return factors, f"longest arrow: {_newtons(greatest)}, {half}"


def _newtons(x: float) -> str:
    return f"{x / 1e3:.3g} kN" if x >= 1e3 else f"{x:.3g} N"


# All that is shown

GHOST: Colour = (0.42, 0.48, 0.55, 0.16)
WORST: Colour = (0.82, 0.18, 0.24, 0.5)
TRACE: Colour = (0.10, 0.45, 0.75, 1.0)
ARROW: Colour = (0.78, 0.08, 0.52, 1.0)
MOST_GHOSTS = 24
_LONGEST_ARROW = 0.3
"""As a share of the scene."""
_NOTHING = 1e-9
"""Forces below this share of the weight are rounding errors."""


class Actor(NamedTuple):
    """One mechanism on its course; `colour` is that of a ghost, None for its own colours."""

    sample: int
    scene: Scene
    course: Course
    colour: Colour | None
    traces: tuple[np.ndarray, ...]


class Cast(NamedTuple):
    """All that is shown.

    Attributes:
        actors: the sample that is drawn in full, then its ghosts.
        stage: the first one's scene, with a middle, a size and a ground for the whole course.
        arrows: of the first actor (frames, m, 2, 3), feet [m] and vectors [m].
        notes: what the picture shows, for its caption.
        lines: of a suspension of the first actor (frames, m, 2, 3), ends [m]; NaN where not drawn.
        kinds: of the lines, in `suspension_lines.COLOURS`.
        labels: named points of the first actor with their bodies.
    """

    actors: tuple[Actor, ...]
    stage: Scene
    arrows: np.ndarray
    notes: tuple[str, ...]
    lines: np.ndarray
    kinds: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def clock(self) -> np.ndarray:
        """When each frame is shown [s], of the longest course."""
        return max((a.course.clock for a in self.actors), key=len)


def cast_of(
    model: Mechanism | Imported,
    solution: Any = None,
    *,
    wheels: Iterable[Wheel] = (),
    traces: Iterable[tuple[str, Any]] = (),
    arrows: Iterable[str] | str | None = None,
    corners: Corner | Sequence[Corner] = (),
    labels: bool | Iterable[str] = False,
    inputs: Any = None,
    full: int = 0,
    worst: int | None = None,
    ghosts: int = 12,
    speed: float | None = None,
    rate: float | None = None,
) -> Cast:
    """Everything that an animation shows; `animation` explains the arguments."""
    mech = model.mechanism if isinstance(model, Imported) else model
    batch = np.shape(mech.gravity)[:-1]
    given = tracks(samples(mech, batch[0] if batch else 1)[0], solution)
    mechs = samples(mech, len(given))
    wheels, traces = tuple(wheels), checked_traces(mech, traces)
    speed = _pace(given) if speed is None else speed
    _check_numbers(len(given), full, worst, speed, rate)
    actors = []
    for k in _chosen(len(given), full, worst, ghosts):
        if len(given[k].q):
            drawn = model if k == full and isinstance(model, Imported) else mechs[k]
            scene = Scene.of(drawn, wheels=wheels, marked=traces)
            course = Course.of(mechs[k], given[k], speed, rate)
            colour = None if k == full else WORST if k == worst else GHOST
            lines = paths_along(mechs[k], given[k].q, traces)
            actors.append(Actor(k, scene if k == full else scene.ghost(), course, colour, lines))
    if not actors or actors[0].sample != full:
        raise ValueError(f"sample {full} failed from the start; choose another with full=")
    names = chosen_arrows(mech, arrows)
    fields = arrows_along(mechs[full], actors[0].course.track, names, inputs)
    fields, legend = _drawn_arrows(fields, mechs[full], actors[0].scene.size)
    notes = _notes(actors, given, full, worst, legend if names else "", speed)
    q, size = actors[0].course.track.q, actors[0].scene.size
    roles = (corners,) if isinstance(corners, Corner) else tuple(corners)
    lines, kinds = np.zeros((len(q), 0, 2, 3)), ()
    if roles:
        lines, kinds = suspension_lines(mechs[full], roles, q, size)
    stage = _stage(actors, fields)
    return Cast(tuple(actors), stage, fields, notes, lines, kinds, _labelled(mech, labels))


def _pace(given: Sequence[Track]) -> float:
    """Speed of the playback: real time, but slower for motions that are over in a blink."""
    lengths = [float(x.t[-1] - x.t[0]) for x in given if x.t is not None and len(x.t) > 1]
    longest = max(lengths, default=_BLINK)
    return 1.0 if longest >= _BLINK else 1.0 / round_number(_SWEEP / longest)


def _labelled(mech: Mechanism, labels: bool | Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Named points with the bodies that they are drawn on: all, or those that are asked for."""
    bodies = point_bodies(mech)
    if isinstance(labels, bool):
        named = [n for n in bodies if "." not in n] if labels else []
    else:
        named = [labels] if isinstance(labels, str) else list(labels)
    if problems := [text for n in named for text in unknown("point", n, bodies)]:
        raise ValueError("; ".join(problems))
    return tuple((n, bodies[n]) for n in named)


def checked_traces(
    mech: Mechanism, traces: Iterable[tuple[str, Any]]
) -> tuple[tuple[str, Any], ...]:
    """Pairs (body, point) that there are.

    Raises:
        ValueError: there are others.
    """
    found = tuple(traces)
    for trace in found:
        if isinstance(trace, str) or len(trace) != 2:
            raise ValueError(f"traces has {trace!r}; give pairs (body, point)")
        if problems := unknown_point(mech, *trace):
            raise ValueError(problems[0])
    return found


def _check_numbers(
    count: int, full: int, worst: int | None, speed: float, rate: float | None
) -> None:
    for name, k in (("full", full), ("worst", worst)):
        if k is not None and not 0 <= k < count:
            raise ValueError(f"{name}={k}, but the solution has {count} samples")
    if not speed > 0.0:
        raise ValueError(f"speed={speed}; give a positive number, 1 for real time")
    if rate is not None and not rate > 0.0:
        raise ValueError(f"rate={rate}; give frames for each second, a positive number")


def _chosen(count: int, full: int, worst: int | None, ghosts: int) -> Sequence[int]:
    """The sample in full, the worst one, and further ones spread over all."""
    spread = np.linspace(0, count - 1, min(count, ghosts, MOST_GHOSTS)).round().astype(int)
    every = [full, *([] if worst is None else [worst]), *spread.tolist()]
    return list(dict.fromkeys(every))


def path_of(mech: Mechanism, where: Any, body: str, point: Any) -> np.ndarray:
    """The path (n, 3) [m] of a point of a body, whose poses are those along a motion."""
    x = np.asarray(mech.point(np.asarray(point) if not isinstance(point, str) else point))
    if body == GROUND:
        return x[None]
    pose = where[body]
    arm = x - np.asarray(mech.com(body))
    return np.asarray(pose.rotation) @ arm + np.asarray(pose.position)


def paths_along(
    mech: Mechanism, q: np.ndarray, traces: Iterable[tuple[str, Any]]
) -> tuple[np.ndarray, ...]:
    """Smooth paths (n, 3) [m] of points of bodies along coordinates (n, nq)."""
    traces = tuple(traces)
    if not traces:
        return ()
    rows = np.unique(np.linspace(0, len(q) - 1, _MOST_PLACES).astype(int))
    where = poses_along(mech, q[rows])
    return tuple(smoothed(path_of(mech, where, *trace)) for trace in traces)


def smoothed(path: np.ndarray) -> np.ndarray:
    """A smooth curve through points (n, 3), closed where they are.

    Cubic between neighbours, over the chords' length, with the tangents of the parabolas through
    each three of them: beyond a right-angled corner it goes by 2/27 of a chord.
    """
    step = np.linalg.norm(np.diff(path, axis=0), axis=1)
    longest = step.max(initial=0.0)
    path = path[np.concatenate([[True], step > 1e-9 * longest])]
    if len(path) < 4:
        return path
    closed = np.linalg.norm(path[-1] - path[0]) < 1e-6 * longest
    around = np.concatenate([path[-2:-1], path, path[1:2]]) if closed else path
    s = np.cumsum(np.linalg.norm(np.diff(around, axis=0, prepend=around[:1]), axis=1))
    curve = CubicHermiteSpline(s, around, np.gradient(around, s, axis=0, edge_order=2))
    inner = s[1:-1] if closed else s
    return curve(np.union1d(inner, np.linspace(inner[0], inner[-1], 400)))


def _drawn_arrows(fields: np.ndarray, mech: Mechanism, size: float) -> tuple[np.ndarray, str]:
    """Arrows (frames, m, 2, 3) with lengths [m] in place of forces [N], and their legend."""
    feet, forces = fields[..., 0, :], fields[..., 1, :]
    mass = max(sum(float(body.mass) for body in mech.bodies.values()), 1e-12)
    weight = mass * max(float(np.linalg.norm(mech.field())), 1.0)  # without gravity of 1 m/s²
    there = np.linalg.norm(forces, axis=-1) >= _NOTHING * weight
    forces = np.where(there[..., None], forces, 0.0)
    factors, legend = arrow_scale(forces, _LONGEST_ARROW * size)
    return np.stack([feet, factors[..., None] * forces], axis=-2), legend


def _stage(actors: Sequence[Actor], arrows: np.ndarray) -> Scene:
    """The first scene with room for everything during the course, its traces and arrows."""
    found = [line for actor in actors for line in actor.traces]
    found += [arrows[..., 0, :].reshape(-1, 3), arrows.sum(axis=-2).reshape(-1, 3)]
    for actor in actors:
        last = len(actor.course.clock) - 1
        for k in np.unique(np.linspace(0, last, 16).astype(int)):
            poses = actor.course.at(int(k))
            for solid in actor.scene.solids:
                placement = actor.scene.solid_placement(solid.body, poses)
                found.append(placement.put(bounding_corners(solid.mesh.vertices)))
    return actors[0].scene.reaching(np.concatenate(found))


def _notes(
    actors: Sequence[Actor],
    given: Sequence[Any],
    full: int,
    worst: int | None,
    legend: str,
    speed: float,
) -> tuple[str, ...]:
    notes = []
    if len(given) > 1:
        ghosts = sum(a.colour == GHOST for a in actors)
        notes.append(f"sample {full} in full, {ghosts} of {len(given)} samples as ghosts")
    if worst is not None and worst != full:
        notes.append(f"worst sample in red: {worst}")
    if failed := sum(len(track.q) == 0 for track in given):
        notes.append(f"{failed} samples failed from the start and are not shown")
    if legend:
        notes.append(legend)
    if speed != 1.0 and actors[0].course.track.t is not None:
        notes.append(f"{1.0 / speed:g} times slower" if speed < 1.0 else f"{speed:g} times faster")
    return tuple(notes)
