"""The circuits of a linkage: what it passes through without being taken apart, and where it stops.

A circuit is a closed smooth curve of configurations (`jaxmbd.analysis.curve_tracing`). On it the
input turns back where it is stationary: there, at its limits, branches meet. Where another
coordinate is stationary and the input is not, that one turns back, and no effort of the input is
needed to hold it: a toggle. Circuits that cross at change points, as those of a parallelogram do,
are told as circuits that meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbd import lanes
from jaxmbd.analysis.all_assemblies import bound_speeds, closed_from, random_starts
from jaxmbd.analysis.curve_tracing import Curves, Located, Point, Traced, angle_coordinates
from jaxmbd.analysis.driven import spin_lines
from jaxmbd.analysis.known import (
    JointCoordinate,
    Key,
    Known,
    PointCoordinate,
    Problem,
    held_name,
    is_angle,
    key_speeds,
    parse_known,
    problem,
)
from jaxmbd.analysis.status import Status
from jaxmbd.graph import topology
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import refuse

_OPEN = 1e-7
"""Singular values below this, over the largest, are freedoms."""
_SINGULAR = 1e-4
"""Starts whose softest singular value is below this are too near a crossing to be followed from."""
_STILL = 1e-7
"""Coordinates that change less than this [rad, m over the mechanism's length] stand still."""
_BESIDE = 1e-4
"""How far beside a point [rad] ratios are taken that it does not have itself."""
_MEET = 1e-5
"""Crossings whose places differ by less than this are one."""
_TURN = 2.0 * np.pi


class Circuit(NamedTuple):
    """One circuit, as points along it in the order in which it is passed.

    A circuit that the input turns round begins where the input is as drawn, but for whole turns,
    another one at the lowest limit of the input; elsewhere if that is a change point. If it is
    `closed`, the last point is the first again, perhaps with angles that are whole turns on.

    Attributes:
        q: coordinates (n, nq), to rounding; also at limits and change points, which are points.
        input: value of the input (n,) [rad, m]; angles go on beyond a turn.
        outputs: values of the outputs (n, k) [rad, m].
        ratios: changes of the outputs over that of the input (n, k); infinite at limits of the
            input (but of an output that turns back with it), zero at toggles. Their inverse is the
            mechanical advantage.
        turns: whole turns that the input makes in one round.
        closed: whether the curve returns; else it is cut off where the linkage gets very large.
        dead_centres: indices of points at which the input turns back, its limits: branches meet.
        toggles: of each output, the indices of points at which it turns back while the input moves.
        changes: indices of change points, where circuits cross: no rule but chance decides there
            on which one a real linkage goes on.
        branch: number (n,) of the branch that goes on from each point.
        sign: of the determinant of the closing rows on each branch, as of `Assemblies`; zero where
            redundant rows have none, or where links turned about their own line make it either.
        hits: how many starts ended on it.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.circuits(mbd.zoo.slider_crank(), "O", starts=8).circuits[0]
        >>> found.full_turn, len(found.dead_centres), len(found.sign)
        (True, 0, 1)
    """

    q: np.ndarray
    input: np.ndarray
    outputs: np.ndarray
    ratios: np.ndarray
    turns: int
    closed: bool
    dead_centres: np.ndarray
    toggles: tuple[np.ndarray, ...]
    changes: np.ndarray
    branch: np.ndarray
    sign: np.ndarray
    hits: int

    @property
    def full_turn(self) -> bool:
        """Whether the input can drive it round: it makes turns and has no limit."""
        return self.turns != 0 and not len(self.dead_centres)

    @property
    def reach(self) -> tuple[float, float]:
        """The lowest and the highest value of the input [rad, m]."""
        return float(self.input.min()), float(self.input.max())


class Circuits(NamedTuple):
    """The circuits of a linkage, the drawn one first.

    Attributes:
        circuits: one by one.
        meetings: pairs (m, 2) of numbers of circuits that cross at change points.
        names: of the input, then the outputs.
        units: of the same.
        starts: how many starts there were.
        unseen: estimated share of closing starts that would end on a circuit not listed.

    Example:
        >>> import jaxmbd as mbd
        >>> mbd.circuits(mbd.zoo.slider_crank(), "O", starts=8).names
        ("'O'",)
    """

    circuits: tuple[Circuit, ...]
    meetings: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...]
    starts: int
    unseen: float

    def __str__(self) -> str:
        count, closed = len(self.circuits), sum(c.hits for c in self.circuits)
        others = f"about {self.unseen:.1%}" if self.unseen else f"fewer than {3 / closed:.2%}"
        lines = [
            f"{count} circuit{'s' * (count != 1)} with the input {self.names[0]}; {closed} of "
            f"{self.starts} starts used, of which {others} would end on others"
        ]
        for k, circuit in enumerate(self.circuits):
            lines += self._told(k, circuit)
        return "\n".join(lines)

    def _told(self, k: int, c: Circuit) -> list[str]:
        unit, (low, high) = self.units[0], c.reach
        if c.full_turn:
            what = f"the input turns fully ({abs(c.turns)} turn{'s' * (abs(c.turns) != 1)} a round)"
        elif high - low < _STILL:
            what = f"the input stands still at {_text(low)} {unit}"
        else:
            what = f"the input moves from {_text(low, high)} {unit}"
        what += "" if c.closed else "; it does not return and is cut off"
        met = sorted({int(j) for pair in self.meetings if k in pair for j in pair} - {k})
        what += f"; it meets circuit {', '.join(map(str, met))} at change points" if met else ""
        lines = [f"circuit {k} ({c.hits} starts): {what}"]
        for j, sign in enumerate(c.sign):
            ends, told = _ends(c, j), {1: "+", -1: "−"}.get(int(sign), "0")
            lines.append(f"  branch {k}{_letter(j)}: {_text(*sorted(ends))} {unit}, sign {told}")
        lines += [f"  limit of the input at {_text(c.input[i])} {unit}" for i in c.dead_centres]
        for name, its, some, column in zip(
            self.names[1:], self.units[1:], c.toggles, c.outputs.T, strict=True
        ):
            lines += [
                f"  toggle: limit of {name} at {_text(column[i])} {its}, input {_text(c.input[i])}"
                for i in some
            ]
        return lines + [f"  change point at {_text(c.input[i])} {unit}" for i in c.changes]


def circuits(
    mech: Mechanism,
    input: Any,
    known: Known | None = None,
    *,
    outputs: Sequence[Any] = (),
    t: Any = 0.0,
    starts: int = 64,
    seed: int = 0,
) -> Circuits:
    """All circuits of a closed linkage with one freedom, with limits, toggles and change points.

    Random starts are closed, and the curve through each is followed to itself. A list is complete
    with a likelihood only: `Circuits.unseen` estimates what is missing. Circuits that pass each
    other nearer than about 1e-4 rad (lengths that miss a change point by 1e-8 of their size) are
    told as crossing, and a coordinate that turns back twice within 0.08 rad of the curve may be
    told as one that does not. Coordinates that no loop depends on stay as drawn.

    Args:
        mech: the mechanism.
        input: the coordinate that drives, a key of `assemble`: a joint, ``(joint, i)`` or a
            `PointCoordinate`.
        known: further coordinates that are held [rad, m], until one freedom is left.
        outputs: coordinates whose limits are wanted.
        t: time [s] at which the mechanism's drives are evaluated.
        starts: number of starts; the first is the drawn configuration.
        seed: of the random ones.

    Raises:
        ValueError: a name is not there, no loop depends on the input, no start closes the loops,
            not one freedom is left (the message says how many), or numbers are of single precision.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.circuits(mbd.zoo.four_bar(), "A", outputs=["D"], starts=8)
        >>> print(*str(found).splitlines()[1:5], sep=chr(10))
        circuit 0 (5 starts): the input turns fully (1 turn a round)
          branch 0a: 0 to 6.28319 rad, sign 0
          toggle: limit of 'D' at 0.442911 rad, input 1.05547
          toggle: limit of 'D' at -0.795603 rad, input 3.71543
    """
    if starts < 1:
        raise ValueError(f"starts={starts}; give one or more")
    if mech.dtype != np.float64:
        raise ValueError(
            "circuits needs double precision; switch it on before anything else, "
            "jax.config.update('jax_enable_x64', True)"
        )
    outputs = [outputs] if isinstance(outputs, (str, PointCoordinate)) else outputs
    watched = _single(mech, input, "input"), *(_single(mech, x, "outputs") for x in outputs)
    p = problem(mech, known, t)
    moves = _moving(mech, p, watched[0])
    curves = Curves(p, watched, moves)
    found: list[Traced] = []
    hits: list[int] = []
    for start in _regular_starts(curves, starts, seed):
        same = (k for k, curve in enumerate(found) if curves.shares(curve, start))
        if (k := next(same, None)) is None:
            found.append(_whole(curves, start))
            hits.append(1)
        else:
            hits[k] += 1
    marked = [_marked(curves, curve) for curve in found]
    each = tuple(_circuit(curves, x, n) for x, n in zip(marked, hits, strict=True))
    top = topology(mech)
    return Circuits(
        each,
        _meetings([[x.points[i].places for i in x.at("change")] for x in marked]),
        tuple(held_name(mech, key) for key in watched),
        tuple("rad" if is_angle(top, key) else "m" for key in watched),
        starts,
        float(sum(n == 1 for n in hits) / sum(hits)),
    )


def _single(mech: Mechanism, x: Any, argument: str) -> Key:
    """The key of one coordinate."""
    try:
        keys, _ = parse_known(mech, {x: 0.0})
    except ValueError as error:
        raise ValueError(str(error).replace("known", argument, 1)) from None
    if len(keys) != 1 or (isinstance(keys[0], JointCoordinate) and keys[0].index is None):
        raise ValueError(f"{argument}: {x!r} is not one coordinate; give (joint, i)")
    return keys[0]


def _moving(mech: Mechanism, p: Problem, key: Key) -> np.ndarray:
    """The speeds that loops, and held points, depend on."""
    top = topology(mech)
    held = [i for k in p.keys if isinstance(k, PointCoordinate) for i in key_speeds(top, k)]
    moves = np.union1d(bound_speeds(top), held).astype(int)
    if not np.isin(list(key_speeds(top, key)), moves).any():
        refuse("circuits", [f"no loop depends on {held_name(mech, key)}; name another input"])
    return moves


def _regular_starts(curves: Curves, count: int, seed: int) -> list[Point]:
    """Points from random starts at which one motion is free.

    Paradoxical linkages also close where nothing moves, or more does: no circuit is there.
    """
    p = curves.problem
    guesses = random_starts(p.mech, p.keys, p.values, count, seed)
    close = lanes.vmap(partial(closed_from, p.keys), in_axes=(None, None, None, 0))
    q, status, _, rows = map(np.asarray, close(p.mech, p.values, p.t, guesses))
    q, rows = q[status == Status.OK], rows[status == Status.OK][:, :, curves.moves]
    if not len(q):
        raise ValueError(f"none of {count} starts closes the loops; give more starts=")
    sizes = np.linalg.svd(rows, compute_uv=False)
    free = len(curves.moves) - np.sum(sizes > _OPEN * sizes[:, :1], axis=1)
    if 1 not in free:
        left = int(np.median(free))
        cure = f"hold {left - 1} more" if left else "nothing moves, hold less"
        refuse("circuits", [f"{left} freedoms are left, not one: {cure} in known="])
    points = [x for y in q[free == 1] if (x := curves.point(y)) and x.softest > _SINGULAR]
    if not points:
        raise ValueError("no start ends at a regular configuration; give more starts=")
    return points


def _whole(curves: Curves, start: Point) -> Traced:
    """The curve through a point, from where a list of its points shall begin."""
    found = curves.trace(start)
    if not found.closed:
        other = curves.trace(start._replace(tangent=-start.tangent)).back()
        before = len(other.points) - 1
        crossings = [*other.crossings, *(k + before for k in found.crossings)]
        points, steps = other.points[:-1] + found.points, other.steps + found.steps
        found = Traced(points, steps, crossings, False)
    net = found.points[-1].values[0] - found.points[0].values[0]
    found = found.back() if net < 0.0 else found
    return _unwound(curves, _rolled(curves, found) if found.closed else found)


def _rolled(curves: Curves, found: Traced) -> Traced:
    """A closed curve from its beginning."""
    (k, begin), n = _begin(curves, found), len(found.points)
    on = np.zeros_like(begin.point.q)
    for i in angle_coordinates(curves.problem.mech):
        on[i] = _TURN * np.round((found.points[-1].q[i] - found.points[0].q[i]) / _TURN)
    before = k if begin.step == 0.0 else k + 1
    late = [curves.turned(p, on) for p in [*found.points[:before], begin.point]]
    steps = found.steps[k:] + found.steps[:k]
    if before > k:
        steps = [steps[0] - begin.step, *steps[1:], begin.step]
    crosses = np.isin(np.arange(n), found.crossings)
    crosses = [False, *crosses[k + 1 : -1], *crosses[:before], False]
    points = [begin.point, *found.points[k + 1 : -1], *late]
    return Traced(points, steps, [int(j) for j in np.flatnonzero(crosses)], True)


def _begin(curves: Curves, found: Traced) -> tuple[int, Located]:
    """Where the input is as drawn, on a curve on which it turns; else its lowest limit.

    It is that far beyond a point with a number.
    """
    values = np.array([p.values[0] for p in found.points])
    slopes = np.array([p.slopes[0] for p in found.points])
    softest = int(np.argmax([p.softest for p in found.points[:-1]]))
    turns = values[-1] - values[0] > 1.0
    level = _TURN * np.ceil(values.min() / _TURN)
    some = values - level if turns else slopes
    changing = np.flatnonzero((some[:-1] > 0.0) != (some[1:] > 0.0))
    if np.ptp(values) < _STILL:
        return softest, Located(0.0, found.points[softest])
    if not len(changing):  # rounding hides the change at the first point
        return 0, Located(0.0, found.points[0])
    k = int(changing[0] if turns else min(changing, key=lambda k: values[k]))
    there = curves.root(
        found.points[k], found.steps[k], lambda p: p.values[0] - level if turns else p.slopes[0]
    )
    if there is None or there.point.softest < _SINGULAR:
        return softest, Located(0.0, found.points[softest])
    return k, there


def _unwound(curves: Curves, found: Traced) -> Traced:
    """The curve with angles less whole turns, so that they are about zero."""
    every, first = np.array([p.q for p in found.points]), found.points[0]
    by = np.zeros_like(first.q)
    for i in angle_coordinates(curves.problem.mech):
        x = every[:, i]
        middle = x[0] if abs(x[-1] - x[0]) > 1.0 else 0.5 * (x.min() + x.max())
        by[i] = -_TURN * np.round(middle / _TURN - 1e-6)
    moved = curves.point(first.q + by) if by.any() else None
    if moved is None or np.abs(moved.places - first.places).max() > _MEET:
        return found  # a whole turn of a gear is not one of its mate
    return found._replace(points=[curves.turned(p, by) for p in found.points])


class _Marked(NamedTuple):
    """Points of a curve with the limits among them, and what each is."""

    points: list[Point]
    marks: list[set[int | str]]
    closed: bool

    def at(self, mark: int | str) -> np.ndarray:
        """Indices of the points with a mark: "change", or the number of a watched coordinate."""
        return np.array([k for k, some in enumerate(self.marks) if mark in some], int)


def _marked(curves: Curves, found: Traced) -> _Marked:
    """The curve with limits of the watched coordinates as further points."""
    between: dict[int, list[tuple[Located, int]]] = {}
    marks: list[set[int | str]] = [set() for _ in found.points]
    count = len(found.points) - found.closed
    for k in found.crossings:
        marks[k].add("change")
    for i in range(len(curves.watched)):
        at, inside = _turnings(found, i)
        for k in inside:
            there = curves.root(found.points[k], found.steps[k], lambda p, i=i: p.slopes[i])
            if there is None or _one(there.point, found.points[k]):
                at.append(k)
            elif _one(there.point, found.points[k + 1]):
                at.append((k + 1) % count)
            else:
                between.setdefault(k, []).append((there, i))
        for k in at:
            marks[k].add(i)
    points: list[Point] = []
    told: list[set[int | str]] = []
    for k, (point, some) in enumerate(zip(found.points, marks, strict=True)):
        points.append(point)
        told.append(some)
        for there, i in sorted(between.get(k, []), key=lambda x: x[0].step):
            if not _one(there.point, points[-1]):
                points.append(there.point)
                told.append(set())
            told[-1].add(i)
    return _Marked(points, told, found.closed)


def _one(p: Point, q: Point) -> bool:
    """Whether two points are one but for rounding."""
    return bool(np.abs(p.places - q.places).max() < _STILL)


def _turnings(found: Traced, i: int) -> tuple[list[int], list[int]]:
    """Points at which a watched coordinate turns back, and those after which it does."""
    count = len(found.points) - found.closed
    values = np.array([p.values[i] for p in found.points])
    slopes = np.array([p.slopes[i] for p in found.points[:count]])
    moving = np.flatnonzero(np.abs(slopes) > 1e-9)
    if np.ptp(values) < _STILL or not len(moving):
        return [], []
    ends = np.append(moving[1:], moving[0] + count) if found.closed else moving[1:]
    at: list[int] = []
    inside: list[int] = []
    for a, b in zip(moving, ends, strict=False):
        if slopes[a] * slopes[b % count] < 0.0:
            (inside if b == a + 1 else at).append(int(a if b == a + 1 else (a + b) // 2 % count))
    return at, inside


def _circuit(curves: Curves, x: _Marked, hits: int) -> Circuit:
    values = np.array([p.values for p in x.points])
    slopes = np.array([p.slopes for p in x.points])
    limits, changes = x.at(0), x.at("change")
    toggles = tuple(np.setdiff1d(x.at(i), limits) for i in range(1, values.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = slopes[:, 1:] / slopes[:, :1]
    for i, some in enumerate(toggles):
        ratios[some, i] = 0.0
    ratios[limits] = np.inf
    for i in range(1, values.shape[1]):
        for k in np.intersect1d(limits, x.at(i)):
            ratios[k, i - 1] = _shared_ratio(curves, x.points[k], i)
    if x.closed:
        ratios[-1] = ratios[0]
    branch = _branches(_cuts(limits, changes), len(x.points), x.closed)
    clear = np.array([p.softest for p in x.points]) * np.abs(slopes[:, 0])
    clearest = [int(np.argmax(clear * (branch == j))) for j in range(branch.max() + 1)]
    angle = is_angle(topology(curves.problem.mech), curves.watched[0])
    return Circuit(
        q=np.array([p.q for p in x.points]),
        input=values[:, 0],
        outputs=values[:, 1:],
        ratios=ratios,
        turns=round((values[-1, 0] - values[0, 0]) / _TURN) if x.closed and angle else 0,
        closed=x.closed,
        dead_centres=limits,
        toggles=toggles,
        changes=changes,
        branch=branch,
        sign=np.array([_sign(curves, x.points[k]) for k in clearest], int),
        hits=hits,
    )


def _shared_ratio(curves: Curves, at: Point, i: int) -> float:
    """The ratio where input and output both turn back, by its mean beside that point."""
    beside = [curves.beyond(at, step) for step in (-_BESIDE, _BESIDE)]
    return float(np.mean([np.nan if p is None else p.slopes[i] / p.slopes[0] for p in beside]))


def _cuts(limits: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Indices of the points that part branches."""
    return np.union1d(limits, changes).astype(int)


def _branches(cuts: np.ndarray, count: int, closed: bool) -> np.ndarray:
    """The branch (count,) that goes on from each point."""
    branch = np.searchsorted(cuts, np.arange(count), side="right")
    if closed and len(cuts):
        branch = (branch - 1) % len(cuts)
        branch[-1] = branch[0]
    return branch


def _sign(curves: Curves, at: Point) -> int:
    """The sign of the determinant of the closing rows with the input held, where there is one."""
    p = curves.problem
    if len(at.rows) != len(curves.moves) - 1 or spin_lines(p.state(jnp.asarray(at.q))):
        return 0
    return int(np.linalg.slogdet(np.vstack([at.rows, at.watched[:1]]))[0])


def _meetings(places: list[list[np.ndarray]]) -> np.ndarray:
    """Pairs of circuits (m, 2) of which some change points are one."""
    pairs = {
        (i, j)
        for i, mine in enumerate(places)
        for j in range(i + 1, len(places))
        if any(np.abs(x - y).max() < _MEET for x in mine for y in places[j])
    }
    return np.array(sorted(pairs), int).reshape(-1, 2)


def _ends(c: Circuit, branch: int) -> tuple[float, float]:
    """The values of the input at the ends of a branch, between which it moves in one direction."""
    cuts = _cuts(c.dead_centres, c.changes)
    if c.closed and len(cuts):
        after = branch + 1 == len(cuts)
        end = c.input[cuts[0 if after else branch + 1]]
        return float(c.input[cuts[branch]]), float(end + after * (c.input[-1] - c.input[0]))
    cuts = np.array([0, *cuts, len(c.input) - 1])
    return float(c.input[cuts[branch]]), float(c.input[cuts[branch + 1]])


def _text(*values: Any) -> str:
    """Numbers without their rounding."""
    return " to ".join(f"{round(x, 9) + 0.0:.6g}" for x in values)


def _letter(k: int) -> str:
    """One of a to z, then aa, ab, and so on."""
    return (_letter(k // 26 - 1) if k >= 26 else "") + chr(ord("a") + k % 26)
