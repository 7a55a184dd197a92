"""A linkage followed along its input, and how well it transmits the input's motion.

The transmission index is one at best, zero at a dead centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import (
    JointCoordinate,
    Status,
    attempt,
    parse_known,
    spin_lines,
    spin_rows,
)
from jaxmbd.graph import neutral
from jaxmbd.kinematics import MotionState, mechanism_length, motion_state, own_jacobian
from jaxmbd.model import Mechanism
from jaxmbd.numerics import unpivoted_lu
from jaxmbd.observe import Observable, Output, Snapshot


def transmission(m: MotionState, joint: str, index: int = 0) -> Array:
    """Transmission index of a configuration with one joint's coordinate as the input.

    The columns of the closure's Jacobian that belong to the other joints span a volume; each
    joint's columns over the size of what it moves at the cut joints, it is one where nothing is
    lost and zero at a dead centre of the input, where the others can move while the input stands
    still. Of a four-bar, planar or RSSR, it is the sine of the transmission angle: between coupler
    and rocker, or between the coupler and the plane in which its far end moves across. Where there
    are as many conditions as dependent speeds it has a sign, and the sign tells the branches apart;
    otherwise (idle freedoms, redundant rows) it is not negative, and `follow` gives it a sign.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.kinematics import motion_state
        >>> from jaxmbd.synthesis import transmission
        >>> m = mbd.zoo.rssr()
        >>> print(f"{transmission(motion_state(m, mbd.neutral(m)), 'crank'):.3f}")
        0.713
    """
    return _volume(jnp.stack(_scaled_columns(m, joint, index), axis=1))


def _volume(columns: Array) -> Array:
    """What columns K (r, n) span: their determinant, or without sign if r is not n."""
    if columns.shape[0] == columns.shape[1]:
        return _determinant(columns)
    return jnp.sqrt(jnp.maximum(_product(columns, columns), 1e-300))


def _product(a: Array, b: Array) -> Array:
    """``det Aᵀ B`` of columns (r, n), of rows if there are fewer."""
    return _determinant(a @ b.T if a.shape[0] < a.shape[1] else a.T @ b)


def _scaled_columns(m: MotionState, joint: str, index: int) -> list[Array]:
    """The dependent joints' columns, over the size of what each joint moves at the cuts.

    Beside redundant rows, a link that may spin about the line of its balls would leave no volume:
    then each column also has what it spins such links [rad], as if something held them.
    """
    jacobian, moved, top = own_jacobian(m), _moved(m), m.top
    held = top.layout[joint].v
    assert held is not None
    columns: list[Array] = []
    dependent: list[int] = []
    for name in top.tree:
        place = top.layout[name].v
        assert place is not None
        mine = [i for i in range(place.start, place.stop) if i != held.start + index]
        if not mine:
            continue
        part = moved[:, np.array(mine)]
        # A ball's lever has no third column.
        rank = min(len(mine), moved.shape[0], 2 if len(mine) == 3 else len(mine))
        size = jnp.sqrt(jnp.sum(part * part) / rank + 1e-300)
        columns += [jacobian[:, k] / size for k in mine]
        dependent += mine
    lines = spin_lines(m)
    if lines and len(jacobian) > len(columns) - len(lines):
        spins = spin_rows(m, lines) / mechanism_length(m.mech)
        return [jnp.append(x, spins[:, k]) for x, k in zip(columns, dependent, strict=True)]
    return columns


def _moved(m: MotionState) -> Array:
    """What each speed moves at the cuts (k, nv): points, whatever a joint leaves free, and rows."""
    parts = []
    kinds, jacobian = np.array(m.top.row_kinds), own_jacobian(m)
    for name in m.top.cut:
        edge, rows = m.mech.joint(name), m.top.layout[name].rows
        if "force" in kinds[rows]:
            signs = m.moves(edge.a, edge.b)[:, None]
            columns = m.columns_at(m.position(edge.b, edge.point_b))
            parts.append(jnp.where(signs == 0.0, 0.0, signs * columns).T)
        parts.append(jacobian[rows][kinds[rows] == "moment"])
    for name in (*m.top.couplings, *m.top.drives):
        parts.append(jacobian[m.top.layout[name].rows])
    return jnp.concatenate(parts)


_FEW_ROWS = 7


def _determinant(a: Array) -> Array:
    """Determinant, of few rows by minors of the first ones: no pivot, no division (Laplace)."""
    n = a.shape[0]
    if n > _FEW_ROWS:
        _, upper = unpivoted_lu(a)
        return reduce(jnp.multiply, [upper[i, i] for i in range(n)])
    minors: dict[tuple[int, ...], Array] = {(): jnp.ones((), a.dtype)}
    for k in range(n):
        minors = {
            chosen: reduce(
                jnp.add,
                [
                    (-1.0) ** (k - i) * a[k, j] * minors[chosen[:i] + chosen[i + 1 :]]
                    for i, j in enumerate(chosen)
                ],
            )
            for chosen in combinations(range(n), k + 1)
        }
    return minors[tuple(range(n))]


@dataclass(frozen=True)
class Transmission(Observable):
    """Transmission index with a joint as the input: the sine of a four-bar's transmission angle.

    Attributes:
        input: the driving joint, or ``(joint, i)``.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import Sweep
        >>> from jaxmbd.synthesis import Transmission
        >>> sweep = Sweep({"crank": [0.0, 0.5]}, {"worst": Transmission("crank").min()})
        >>> print(f"{sweep(mbd.zoo.rssr())['worst']:.3f}")
        0.713
    """

    input: Any

    def value(self, at: Snapshot) -> Array:
        """Its value at an instant."""
        key = input_key(at.mech, self.input)
        return transmission(at.motion, key.joint, key.index or 0)

    def about(self, mech: Mechanism) -> Output:
        """Its unit and meaning."""
        return Output("", f"transmission index of {self.input} (zero at a dead centre)")

    def problems(self, mech: Mechanism) -> list[str]:
        """Names that the mechanism does not have."""
        return input_problems(mech, self.input)


def input_problems(mech: Mechanism, joint: Any) -> list[str]:
    """What is wrong with an input."""
    try:
        keys, _ = parse_known(mech, {joint: 0.0})
    except ValueError as error:
        return [str(error).replace("known", "input", 1)]
    single = len(keys) == 1 and isinstance(keys[0], JointCoordinate)
    return [] if single else [f"input={joint!r} is not one coordinate of a joint"]


def input_key(mech: Mechanism, joint: Any) -> JointCoordinate:
    """The held coordinate that an input names."""
    key = parse_known(mech, {joint: 0.0})[0][0]
    assert isinstance(key, JointCoordinate)
    return key


_PARTS, _STATIONS = 12, 20
"""Of a course: parts, and stations in each; 1.5° apart in a full turn."""

_TURNED = 1e-13
"""A product of columns, of unit size, that is no rounding."""

_CLOSE = 2e-4
"""Distance of the last three stations, of the whole: rounding and curvature are both far below."""


class Followed(NamedTuple):
    """Configurations along an input.

    Attributes:
        q: coordinates (n, nq); NaN where the loops do not close.
        closest: coordinates (n, nq); there, the nearest to closed that was found.
        closed: whether the loops close (n,).
        index: transmission index at `closest` (n,). Where it has no sign of its own it is positive
            as drawn, and changes its sign at dead centres.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.synthesis import follow
        >>> follow(mbd.zoo.rssr(), "crank", [0.0, 0.5, 1.0]).index.shape
        (3,)
    """

    q: Array
    closest: Array
    closed: Array
    index: Array


def follow(mech: Mechanism, joint: Any, inputs: Any) -> Followed:
    """Follow a linkage from its drawing through values of its input (n,) [rad, m].

    Pure and differentiable (q is); under `lanes.vmap` a batch.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.synthesis import follow
        >>> follow(mbd.zoo.rssr(), "crank", [0.0, 0.5, 1.0]).closed.tolist()
        [True, True, True]
    """

    def step(here: _Here, u: Array) -> Any:
        found, there = _at(mech, joint, u, here)
        return lax.stop_gradient(there), found

    start = lax.stop_gradient(_drawn(mech, joint))
    return lax.scan(step, start, jnp.asarray(inputs, mech.dtype))[1]


class _Here(NamedTuple):
    """A configuration, and what gives the index of the next one its sign.

    Columns that span less than their space, or more than they need, turn little between neighbours:
    ``det Kᵀ K'`` is negative only if they have lost rank between the two.

    Attributes:
        q: coordinates (nq,), the nearest to closed that was found.
        columns: K (r, n); none where the index has a sign of its own.
        side: sign of the index.
    """

    q: Array
    columns: Array
    side: Array


def _drawn(mech: Mechanism, joint: Any) -> _Here:
    """The drawn configuration."""
    q, one = jnp.asarray(neutral(mech), mech.dtype), jnp.ones((), mech.dtype)
    return _Here(q, _signing(_columns(mech, joint, q)), one)


def _columns(mech: Mechanism, joint: Any, q: Array) -> Array:
    """The columns whose volume is the index."""
    key = input_key(mech, joint)
    return jnp.stack(_scaled_columns(motion_state(mech, q), key.joint, key.index or 0), axis=1)


def _signing(columns: Array) -> Array:
    """The columns that the next index gets its sign from."""
    square = columns.shape[0] == columns.shape[1]
    return jnp.zeros((0, 0), columns.dtype) if square else columns


def _at(mech: Mechanism, joint: Any, u: Array, here: _Here) -> tuple[Followed, _Here]:
    """The configuration at an input that is nearest to another one."""
    key = input_key(mech, joint)
    found = attempt((key,), mech, [u], jnp.zeros((), mech.dtype), here.q)
    closed = found.status == Status.OK
    place = jnp.where(closed, found.q, found.closest)  # of the two, q has derivatives
    columns = _columns(mech, joint, place)
    index, side = _volume(columns), here.side
    if (signing := _signing(columns)).size:
        side = jnp.where(_product(here.columns, signing) < -_TURNED, -side, side)
        index = side * index
    there = _Here(found.closest, signing, side)
    return Followed(found.q, found.closest, closed, index), there


class Course(NamedTuple):
    """A linkage over a whole range of its input."""

    least: Array  # transmission index of each part (parts,), negative if not of the drawing's sign
    closed: Array  # whether the loops close everywhere
    last: Array  # coordinates at the end (nq,)


def course(mech: Mechanism, joint: Any, reach: Any) -> Course:
    """Follow a linkage from its drawing until its input has moved by `reach` [rad, m].

    Pure; `least` is differentiable, twice. In each part of the range the least index is found among
    close stations, and then by the parabola through three beside it, whose vertex moves with the
    linkage; one at an end of a part stays there. Each part has its own, so that minima that are
    equally low are told apart.
    """
    reach = jnp.asarray(reach, mech.dtype)
    fixed, far = lax.stop_gradient((mech, reach))

    def station(carry: Any, share: Array) -> Any:
        here, side, best, where, near = carry
        found, there = _at(fixed, joint, share * far, here)
        side = jnp.where(side == 0.0, jnp.where(found.index < 0.0, -1.0, 1.0), side)
        index = side * found.index
        best, where, near = jax.tree_util.tree_map(
            lambda new, old: jnp.where(index < best, new, old),
            (index, share, there),
            (best, where, near),
        )
        return (there, side, best, where, near), found.closed

    def part(carry: Any, shares: Array) -> Any:
        (here, side), low, high = carry, shares[0], shares[-1]
        begin = (here, side, jnp.asarray(jnp.inf, mech.dtype), low, here)
        (last, side, _, where, near), closed = lax.scan(station, begin, shares)

        def vertex(where: Array, size: Array) -> tuple[Array, Array]:
            """Place and height of the lowest point of the parabola through three stations."""
            middle = jnp.clip(where, low + size, high - size)
            three = middle + size * jnp.array([-1.0, 0.0, 1.0])
            index: Array = lax.map(
                lambda x: side * _at(mech, joint, x * reach, near)[0].index, three
            )
            left, height, right = index[0], index[1], index[2]
            slope, bend = 0.5 * (right - left), left - 2.0 * height + right
            steep = jnp.abs(slope) >= bend  # no vertex between them
            at = jnp.where(steep, -jnp.sign(slope), -slope / jnp.where(steep, 1.0, bend))
            where = lax.stop_gradient(middle + size * at)
            return where, height + at * (slope + 0.5 * bend * at)

        sizes = jnp.asarray([1.0 / (_PARTS * _STATIONS), _CLOSE], mech.dtype)
        least = lax.scan(vertex, where, sizes)[1][-1]
        return (last, side), (least, jnp.all(closed))

    shares = np.arange(_PARTS)[:, None] * _STATIONS + np.arange(_STATIONS + 1)
    shares = jnp.asarray(shares / (_PARTS * _STATIONS), mech.dtype)
    begin = lax.stop_gradient(_drawn(mech, joint)), jnp.zeros((), mech.dtype)
    (last, _), (least, closed) = lax.scan(part, begin, shares)
    return Course(least, jnp.all(closed), last.q)
