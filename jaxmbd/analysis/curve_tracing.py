"""A curve of configurations, followed by its arc length: linkages with one freedom.

With R(x) the rows of the constraints, the curve's tangent is the null vector of R. A step goes
along it, and Newton's method of least norm leads back (pseudo-arclength continuation; Allgower &
Georg 1990, "Numerical Continuation Methods"). The rank of R is one less than the speeds that move;
redundant rows add none, so that singular values beyond it are left out.

The smallest singular value that counts, σ, is about the distance from where curves cross. A step is
short enough not to halve or double it: so a curve that bends just before another one is followed
round, and only what is nearer than `_LEAST` is a crossing. There σ is passed in one leap, along the
smooth curve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis.all_assemblies import joint_places
from jaxmbd.analysis.driven import spin_lines, spin_rows
from jaxmbd.analysis.known import (
    JointCoordinate,
    Key,
    Problem,
    closing_rows,
    known_rows,
    known_values,
)
from jaxmbd.analysis.programs import program
from jaxmbd.graph import topology
from jaxmbd.kinematics import mechanism_length, speed_units, step_coordinates
from jaxmbd.model import Mechanism

_FIRST, _LONGEST, _LEAST = 0.02, 0.08, 1e-5
"""Steps [rad, and travels in lengths of the mechanism]: the first, the longest, the shortest."""
_TURN = 0.15
"""Largest angle [rad] between tangents of neighbouring points."""
_NEWTON, _STRAY = 8, 0.3
"""Newton's steps to the curve, and how far they may lead, over the step that they correct."""
_SAME = 1e-6
"""Points whose places differ by less than this are one."""
_FAR = 20.0
"""A curve that goes so many lengths of the mechanism away is not followed to its end."""
_ROUNDS = 40.0
"""Arc length per square root of the number of speeds, after which a curve is given up."""


class Point(NamedTuple):
    """A point of a curve.

    Attributes:
        q: coordinates (nq,).
        places: what tells configurations apart (f,), of order one.
        values: watched coordinates (k,) [rad, m].
        rows: of the constraints (n, m), of speeds that move.
        watched: rows of the watched coordinates (k, m) [rad, m].
        tangent: unit vector (m,), travels in lengths of the mechanism.
        span: the directions (n, m − 1) that the rows have.
        softest: smallest singular value that counts, over the largest.
    """

    q: np.ndarray
    places: np.ndarray
    values: np.ndarray
    rows: np.ndarray
    watched: np.ndarray
    tangent: np.ndarray
    span: np.ndarray
    softest: float

    @property
    def slopes(self) -> np.ndarray:
        """Changes of the watched coordinates along the curve (k,)."""
        return self.watched @ self.tangent

    def along(self, direction: np.ndarray) -> Point:
        """The same with its tangent in the direction (m,), or against it."""
        return self._replace(tangent=-self.tangent) if self.tangent @ direction < 0.0 else self

    def side(self, span: np.ndarray) -> float:
        """The sign of the determinant of rows and tangent: it changes where curves cross."""
        return float(np.linalg.slogdet(np.vstack([span.T @ self.rows, self.tangent]))[0])


class Located(NamedTuple):
    """A point, and the step [rad] along the tangent that leads to it."""

    step: float
    point: Point


class Traced(NamedTuple):
    """A curve.

    Attributes:
        points: along it; the last is the first again if it is closed.
        steps: along the tangent of each to the next, or a little beyond.
        crossings: indices of the points at which curves cross.
        closed: whether it returns.
    """

    points: list[Point]
    steps: list[float]
    crossings: list[int]
    closed: bool

    def back(self) -> Traced:
        """The curve the other way; its steps lead a little beyond the next points."""
        last = len(self.points) - 1
        points = [p._replace(tangent=-p.tangent) for p in self.points[::-1]]
        steps = [1.2 * step for step in self.steps[::-1]]
        return Traced(points, steps, [last - k for k in self.crossings[::-1]], self.closed)


class Curves:
    """The configurations of a problem that leaves one freedom.

    Args:
        problem: the mechanism, with what is held.
        watched: coordinates whose values and rows points have.
        moves: indices of the speeds that move.
    """

    def __init__(self, problem: Problem, watched: tuple[Key, ...], moves: np.ndarray):
        self.problem, self.watched, self.moves = problem, watched, moves
        self._nv = problem.state(problem.start(None)).top.nv

    def _evaluated(self, q: np.ndarray, step: np.ndarray) -> Any:
        whole = np.zeros(self._nv)
        whole[self.moves] = step
        out = program("auto", _evaluated, self.watched, self.problem, q, whole.astype(q.dtype))
        q, residual, rows, places, values, watched = map(np.asarray, out)
        return q, residual, rows[:, self.moves], places, values, watched[:, self.moves]

    def point(self, q: Any, step: Any = None, lost: int = 0) -> Point | None:
        """The point of the curve nearest to a step (m,) from q; None if there is none near it.

        With `lost` = 1 the rank is one less: at a crossing.
        """
        size, strayed = len(self.moves), 0.0
        rank, move = size - 1 - lost, np.zeros(size) if step is None else step
        allowed = np.inf if step is None else _STRAY * np.linalg.norm(step) + _SAME
        q = np.asarray(q, self.problem.mech.dtype)
        for _ in range(_NEWTON):
            q, residual, rows, places, values, watched = self._evaluated(q, move)
            if not np.all(np.isfinite(rows)) or not np.all(np.isfinite(residual)):
                return None
            left, sizes, right = np.linalg.svd(rows)
            if len(sizes) < size - 1 or sizes[rank - 1] == 0.0:
                return None
            move = -right[:rank].T @ (left[:, :rank].T @ residual / sizes[:rank])
            strayed += float(np.linalg.norm(move))
            if strayed > allowed:
                return None
            if np.linalg.norm(move) < 1e-11 + 1e-15 / sizes[rank - 1]:
                soft = float(sizes[size - 2] / sizes[0])
                span, tangent = left[:, : size - 1], right[size - 1]
                return Point(q, places, values, rows, watched, tangent, span, soft)
        return None

    def beyond(self, at: Point, step: float) -> Point | None:
        """The point after a step along the tangent, its tangent in the same sense."""
        found = self.point(at.q, step * at.tangent)
        return None if found is None else found.along(at.tangent)

    def root(self, at: Point, step: float, what: Callable[[Point], Any]) -> Located | None:
        """The point within a step at which a function of points changes sign."""
        found: dict[float, Point] = {0.0: at}

        def value(s: float) -> float:
            if s not in found:
                there = self.beyond(at, s)
                if there is None:
                    raise ValueError("no point there")
                found[s] = there
            return float(what(found[s]))

        from scipy.optimize import brentq  # slow to import, needed here alone

        try:
            s: Any = brentq(value, 0.0, step, xtol=1e-14)
            value(s)
        except ValueError:  # of value, or where rounding leaves no change of sign
            return None
        return Located(s, found[s])

    def turned(self, point: Point, by: np.ndarray) -> Point:
        """The same configuration with coordinates a number of whole turns (nq,) on."""
        layout, values = topology(self.problem.mech).layout, point.values.copy()
        for k, key in enumerate(self.watched):
            if isinstance(key, JointCoordinate):
                values[k] += by[layout[key.joint].q][key.index or 0]
        return point._replace(q=point.q + by, values=values)

    def trace(self, start: Point) -> Traced:
        """The curve from a regular point along its tangent, to itself or as far as it is followed.

        Points are at most `_LONGEST` apart.
        """
        points, steps, crossings, step = [start], [], [], _FIRST
        longest = _ROUNDS * np.sqrt(len(self.moves))
        while sum(steps) < longest:
            at = points[-1]
            new = self.beyond(at, step)
            if new is not None and _follows(at, new):
                if len(points) > 2 and (last := self._return(points, new, step)):
                    return Traced([*points, last.point], [*steps, last.step], crossings, True)
                points.append(new)
                steps.append(step)
                if np.abs(new.places - start.places).max() > _FAR:
                    break
                step = min(1.5 * step, _LONGEST)
            elif step > _LEAST:
                step = max(0.5 * step, _LEAST)
            elif not (leap := self._leap(at)):
                break
            else:
                crossings.append(len(points))
                points += [x.point for x in leap]
                steps += [x.step for x in leap]
                step = 2.0 * _LEAST
        return Traced(points, steps, crossings, False)

    def _return(self, points: list[Point], new: Point, step: float) -> Located | None:
        """The first point again, if it lies on the way from the last to a new one."""
        start, at = points[0].places, points[-1]
        way = points[1].places - start

        def ahead(point: Point) -> float:
            return float((point.places - start) @ way)

        if ahead(at) >= 0.0 or ahead(new) < 0.0:
            return None
        if np.linalg.norm(at.places - start) > 3.0 * np.linalg.norm(new.places - at.places):
            return None
        last = self.root(at, step, ahead)
        same = last is not None and np.abs(last.point.places - start).max() < _SAME
        return last if same else None

    def _leap(self, at: Point) -> list[Located]:
        """A crossing, and a point beyond it on the same smooth curve; none if there is none."""
        for k in range(2, 12):
            step = 2.0**k * _LEAST
            new = self.beyond(at, step)
            if new is None or new.tangent @ at.tangent < 0.99 or new.softest < 0.5 * at.softest:
                continue
            share = at.softest / (at.softest + new.softest)
            middle = self.point(at.q, share * step * at.tangent, lost=1)
            if middle is not None:
                mean = at.tangent + new.tangent
                middle = middle._replace(tangent=mean / np.linalg.norm(mean))
                return [Located(share * step, middle), Located((1.0 - share) * step, new)]
        return []

    def shares(self, curve: Traced, other: Point) -> bool:
        """Whether a point lies on a curve."""
        places = np.array([p.places for p in curve.points])
        away = np.linalg.norm(places - other.places, axis=1)
        gaps = np.linalg.norm(np.diff(places, axis=0), axis=1)
        for k in np.flatnonzero(np.minimum(away[1:], away[:-1]) < 2.0 * gaps + _SAME):
            if np.abs(places[k : k + 2] - other.places).max(axis=1).min() < _SAME:
                return True

            def ahead(point: Point, way: np.ndarray = places[k + 1] - places[k]) -> float:
                return float((point.places - other.places) @ way)

            at, end = curve.points[k : k + 2]
            if k in curve.crossings or ahead(at) > 0.0 or ahead(end) < 0.0:
                continue
            foot = self.root(at, curve.steps[k], ahead)
            if foot is not None and np.abs(foot.point.places - other.places).max() < _SAME:
                return True
        return False


def _follows(at: Point, new: Point) -> bool:
    """Whether a point is surely the next one: no crossing and no sharp bend lies between."""
    return (
        new.tangent @ at.tangent > np.cos(_TURN)
        and 0.5 < new.softest / at.softest < 2.0
        and new.side(at.span) == at.side(at.span)
    )


def _evaluated(watched: tuple[Key, ...], p: Problem, q: Array, step: Array) -> Any:
    """Coordinates after a step, residual, rows, places, watched values and their rows."""
    units = speed_units(p.mech)
    q = step_coordinates(p.mech, q, units * step)
    m, length = p.state(q), mechanism_length(p.mech)
    residual, rows = closing_rows(m, p.keys, p.values)
    spins = spin_rows(m, spin_lines(m))
    residual = jnp.concatenate([residual, jnp.zeros(len(spins), q.dtype)]) / length
    rows = jnp.concatenate([rows, spins]) * units / length
    values = known_values(m, watched)
    _, own = known_rows(m, watched, values, jnp.ones((), q.dtype))
    angles = q[np.array(angle_coordinates(p.mech), int)]
    places = jnp.concatenate(
        [jnp.ravel(joint_places(m)) / length, jnp.cos(angles), jnp.sin(angles)]
    )
    return q, residual, rows, places, jnp.stack([q[0], *values])[1:], own * units


def angle_coordinates(mech: Mechanism) -> list[int]:
    """Indices of coordinates that are angles, of which a whole turn is none."""
    top, found = topology(mech), []
    for name in top.tree:
        place: Any = top.layout[name]
        if mech.joint(name).scalar_coordinates:
            kinds = top.speed_kinds[place.v]
            found += [place.q.start + k for k, kind in enumerate(kinds) if kind == "angle"]
    return found
