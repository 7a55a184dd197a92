"""What an animation shows: the sample in full, its ghosts, traces and arrows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmbd.io import Imported
from jaxmbd.kinematics import Pose
from jaxmbd.model import GROUND, Mechanism
from jaxmbd.observe import unknown_point
from jaxmbd.viz.course import Course, samples, tracks
from jaxmbd.viz.force_arrows import arrow_scale, arrows_along, chosen_arrows
from jaxmbd.viz.glyphs import Wheel
from jaxmbd.viz.scene import Colour, Scene
from jaxmbd.viz.solids import bounding_corners

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
    """

    actors: tuple[Actor, ...]
    stage: Scene
    arrows: np.ndarray
    notes: tuple[str, ...]

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
    inputs: Any = None,
    full: int = 0,
    worst: int | None = None,
    ghosts: int = 12,
    speed: float = 1.0,
    rate: float | None = None,
) -> Cast:
    """Everything that an animation shows; `animation` explains the arguments."""
    mech = model.mechanism if isinstance(model, Imported) else model
    one = samples(mech, 1)[0] if np.ndim(mech.gravity) == 1 else None
    given = tracks(one or _first(mech), solution)
    mechs = samples(mech, len(given))
    wheels, traces = tuple(wheels), _checked(mech, traces)
    _check_samples(len(given), full, worst)
    if not speed > 0.0:
        raise ValueError(f"speed={speed}; give a positive number, 1 for real time")
    if rate is not None and not rate > 0.0:
        raise ValueError(f"rate={rate}; give frames for each second, a positive number")
    actors = []
    for k in _chosen(len(given), full, worst, ghosts):
        if len(given[k].q):
            drawn = model if k == full and isinstance(model, Imported) else mechs[k]
            scene, course = (
                Scene.of(drawn, wheels=wheels, marked=traces),
                Course.of(mechs[k], given[k], speed, rate),
            )
            colour = None if k == full else WORST if k == worst else GHOST
            lines = tuple(_trace(scene, course, *point) for point in traces)
            actors.append(Actor(k, scene if k == full else scene.ghost(), course, colour, lines))
    if not actors or actors[0].sample != full:
        raise ValueError(f"sample {full} failed from the start; choose another with full=")
    names = chosen_arrows(mech, arrows)
    fields = arrows_along(mechs[full], actors[0].course.track, names, inputs)
    fields, legend = _drawn_arrows(fields, mechs[full], actors[0].scene.size)
    notes = _notes(actors, given, full, worst, legend if names else "", speed)
    return Cast(tuple(actors), _stage(actors, fields), fields, notes)


def _drawn_arrows(fields: np.ndarray, mech: Mechanism, size: float) -> tuple[np.ndarray, str]:
    """Arrows (frames, m, 2, 3) with lengths [m] in place of forces [N], and their legend."""
    feet, forces = fields[..., 0, :], fields[..., 1, :]
    there = np.linalg.norm(forces, axis=-1) >= _NOTHING * _weight(mech)  # else it falls freely
    forces = np.where(there[..., None], forces, 0.0)
    factors, legend = arrow_scale(forces, _LONGEST_ARROW * size)
    return np.stack([feet, factors[..., None] * forces], axis=-2), legend


def _weight(mech: Mechanism) -> float:
    """The weight of all bodies [N], where there is no gravity under 1 m/s²."""
    mass = sum(float(body.mass) for body in mech.bodies.values())
    return max(float(np.linalg.norm(mech.field())), 1.0) * max(mass, 1e-12)


def _stage(actors: Sequence[Actor], arrows: np.ndarray) -> Scene:
    """The first scene with room for everything during the course, its traces and arrows."""
    feet, tips = arrows[..., 0, :], arrows.sum(axis=-2)
    every = [line for actor in actors for line in actor.traces]
    found = [x[np.all(np.isfinite(x), axis=1)] for x in every]
    found += [x[np.all(np.isfinite(x), axis=-1)] for x in (feet, tips)]
    for actor in actors:
        last = len(actor.course.clock) - 1
        for k in np.unique(np.linspace(0, last, 16).astype(int)):
            poses = actor.course.at(int(k))
            for solid in actor.scene.solids:
                corners = bounding_corners(solid.mesh)
                put = actor.scene.solid_placement(solid.body, poses)
                found.append(corners @ put.rotation.T + put.position)
    return actors[0].scene.reaching(np.concatenate(found))


def _first(mech: Mechanism) -> Mechanism:
    return samples(mech, len(mech.gravity))[0]


def _checked(mech: Mechanism, traces: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    found = tuple(traces)
    for trace in found:
        if isinstance(trace, str) or len(trace) != 2:
            raise ValueError(f"traces has {trace!r}; give pairs (body, point)")
        if problems := unknown_point(mech, *trace):
            raise ValueError(problems[0])
    return found


def _check_samples(count: int, full: int, worst: int | None) -> None:
    for name, k in (("full", full), ("worst", worst)):
        if k is not None and not 0 <= k < count:
            raise ValueError(f"{name}={k}, but the solution has {count} samples")


def _chosen(count: int, full: int, worst: int | None, ghosts: int) -> Sequence[int]:
    """The sample in full, the worst one, and further ones spread over all."""
    spread = np.linspace(0, count - 1, min(count, ghosts, MOST_GHOSTS)).round().astype(int)
    every = [full, *([] if worst is None else [worst]), *spread.tolist()]
    return list(dict.fromkeys(every))


def _trace(scene: Scene, course: Course, body: str, point: Any) -> np.ndarray:
    """The path (frames, 3) [m] of a point."""
    x = np.asarray(scene.mech.point(np.asarray(point) if not isinstance(point, str) else point))
    if body == GROUND:
        return x[None]
    pose: Pose = course.where[body]
    arm = x - np.asarray(scene.mech.com(body))
    return np.asarray(pose.rotation) @ arm + np.asarray(pose.position)


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
