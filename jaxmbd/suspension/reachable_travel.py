"""How far a corner or an axle can be moved: travel and rack travel as numbers.

From the drawing the moved coordinate s is followed in steps that shrink at the end, until the last
place that assembles and the first that does not are as near to each other as asked. A place counts
as reached if it is on the branch of the last one: the change of the coordinates q is at most three
times ``|dq/ds| Δs`` (towards a dead centre, where q goes as a square root, it is up to twice that).

At the end the row of the moved coordinate is a combination of the rows of the loops and of all else
that is held, ``a = Aᵀλ``: the cut joints whose λ is not small are those that limit it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import Key, Status, asked_rows, attempt, parse_known, places
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import mechanism_length, motion_state, speed_units
from jaxmbd.lanes import compiled, host_jit
from jaxmbd.model import Mechanism
from jaxmbd.numerics import tolerances
from jaxmbd.observe import Sweep
from jaxmbd.plumbing import listed
from jaxmbd.variables import shown

_PLACES = 16
_FARTHEST = 4.0
"""Where the search ends, in lengths of the mechanism, or whole turns."""
_FAR = 20.0
"""How many times farther a value is than what is reached, so that it is taken for another unit."""
_SHARE = 0.05
"""Of the largest λ, above which a joint counts as one that limits the travel."""


@dataclass(frozen=True)
class Reach:
    """How far a coordinate can be moved from where it is drawn.

    Attributes:
        of: what is moved: "travel" or "steer"; of an axle "heave", "roll", "left", "right".
        low, high: the limits [m, in roll rad]; infinite where there is none.
        limited_by: names of the joints whose loops end it, at either limit.
        accuracy: how far beyond a limit the mechanism may still reach [m, rad].
        unit: SI unit.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> print(suspension.reach(mbd.zoo.double_wishbone_kinematic(), of="steer"))
        steer reaches from -101.6 mm (trackrod) to +224.1 mm (trackrod, upper_ball)
    """

    of: str
    low: float
    high: float
    limited_by: tuple[tuple[str, ...], tuple[str, ...]]
    accuracy: float
    unit: str = "m"

    def __str__(self) -> str:
        unit, factor = shown(self.unit)

        def end(x: float, joints: tuple[str, ...]) -> str:
            if not np.isfinite(x):
                return "any distance"
            by = f" ({listed(joints)})" if joints else ""
            return f"{factor * x:+.1f} {unit}{by}"

        low, high = (
            end(x, by) for x, by in zip((self.low, self.high), self.limited_by, strict=True)
        )
        return f"{self.of} reaches from {low} to {high}"


def sweep_reach(sweep: Sweep, mech: Mechanism, of: str, *, accuracy: float | None = None) -> Reach:
    """How far all that a sweep moves can be moved together, in the proportion of its values.

    Args:
        sweep: its moved coordinates, the first of which the limits are of, and what it holds.
        mech: the mechanism.
        of: the name of what is moved.
        accuracy: see `reach`.

    Raises:
        ValueError: it does not assemble as drawn.
    """
    moves = np.array(list(sweep.over.values()), float)
    last = moves[:, np.argmax(np.abs(moves[0]))]
    rates = last / last[0] if last[0] else np.ones(len(moves))
    path = _Path.of(mech, sweep, rates)
    unit = str(sweep.axis_values(mech).unit)
    length = float(mechanism_length(mech))
    size = 2.0 * np.pi if unit == "rad" else length
    accuracy = accuracy or _share(mech) * size
    ends = [_end(path, sign, size, accuracy) for sign in (-1.0, 1.0)]
    low, high = (end for end, _ in ends)
    return Reach(of, low, high, (ends[0][1], ends[1][1]), accuracy, unit)


def reach_text(sweep: Sweep, mech: Mechanism) -> str:
    """How far a sweep reaches that failed, as the end of a sentence; empty where that is not known.

    It is of sweeps in which nothing gives way, and which move along one straight line from the
    drawing.
    """
    moves = np.array(list(sweep.over.values()), float)
    if sweep.settle or not len(moves) or np.linalg.matrix_rank(moves) != 1:
        return ""
    try:
        found = sweep_reach(sweep, mech, sweep.axis)
    except ValueError:
        return ""
    far = np.abs(moves[0]).max() > _FAR * max(-found.low, found.high)
    cure = "30 mm is 0.03" if found.unit == "m" else "2 deg is 0.035"
    return f": {found}" + (f" (values are in {found.unit}: {cure})" if far else "")


def _share(mech: Mechanism) -> float:
    """1e-6, in single precision what it can tell."""
    return max(1e-6, 10.0 * tolerances.agreement(mech.dtype))


class _Path(NamedTuple):
    """Held coordinates as functions of the distance s.

    Attributes:
        keys: held coordinates, the moved ones first.
        mech: the mechanism.
        values: of the keys at s = 0.
        rates: of the moved ones by s.
    """

    keys: tuple[Key, ...]
    mech: Mechanism
    values: list[Array]
    rates: Array

    @staticmethod
    def of(mech: Mechanism, sweep: Sweep, rates: np.ndarray) -> _Path:
        keys, values = parse_known(mech, dict.fromkeys(sweep.over, 0.0) | dict(sweep.known))
        return _Path(keys, mech, values, jnp.asarray(rates, mech.dtype))

    def at(self, s: Array) -> list[Array]:
        n = len(self.rates)
        return [x + s * self.rates[i] if i < n else x for i, x in enumerate(self.values)]


class _Front(NamedTuple):
    """The last place that was reached.

    Attributes:
        q: coordinates (nq,).
        rate: of q by s.
        s: the place.
        alive: whether no later one was tried in vain.
    """

    q: Array
    rate: Array
    s: Array
    alive: Array


def _place(path: _Path, front: _Front, s: Array) -> _Front:
    """The front after a further place is tried."""
    none = jnp.zeros((), path.mech.dtype)

    def found(s: Array) -> tuple[Array, Array]:
        end = attempt(path.keys, path.mech, path.at(s), none, front.q)
        return end.q, end.status

    q, rate, status = jax.jvp(found, (s,), (jnp.ones_like(s),), has_aux=True)
    change = q - front.q
    most = 3.0 * jnp.abs(s - front.s) * jnp.sqrt(front.rate @ front.rate)
    slack = tolerances.agreement(path.mech.dtype)
    near = (s == front.s) | (jnp.sqrt(change @ change) <= most + slack)
    ok = front.alive & (status == Status.OK) & near & jnp.all(jnp.isfinite(rate))
    new = _Front(q, rate, s, ok)
    return jax.tree_util.tree_map(lambda a, b: jnp.where(ok, a, b), new, front._replace(alive=ok))


@host_jit
def _followed(path: _Path, front: _Front, steps: Array) -> _Front:
    def run(path: _Path, front: _Front, steps: Array) -> _Front:
        return lax.scan(lambda f, s: (_place(path, f, s), None), front, steps)[0]

    return compiled("auto", run, path, front, steps)


def _end(path: _Path, sign: float, size: float, accuracy: float) -> tuple[float, tuple[str, ...]]:
    """The limit in one direction, and the joints that limit it."""
    dtype = path.mech.dtype
    q = jnp.asarray(neutral(path.mech), dtype)
    zero = jnp.zeros((), dtype)
    front = _Front(q, jnp.zeros_like(q), zero, jnp.asarray(True))
    front = _followed(path, front, jnp.zeros(_PLACES, dtype))
    if not front.alive:
        raise ValueError("the mechanism does not assemble as drawn, with what is held")
    stride = 0.25 * size / _PLACES
    while abs(float(front.s)) < _FARTHEST * size:
        steps = float(front.s) + sign * stride * np.arange(1, _PLACES + 1)
        front = _followed(path, front._replace(alive=jnp.asarray(True)), jnp.asarray(steps, dtype))
        if not front.alive:
            if stride <= accuracy:
                return float(front.s), _limiting(path, front.q)
            stride = max(stride / _PLACES, 0.9 * accuracy)
    return sign * np.inf, ()


def _limiting(path: _Path, q: Array) -> tuple[str, ...]:
    """Cut joints and others whose rows determine the moved coordinate, the strongest first."""
    m = motion_state(path.mech, q)
    rows = np.asarray(asked_rows(m, path.keys).matrix) * np.asarray(speed_units(path.mech))
    top, n = topology(path.mech), len(path.rates)
    moved = top.nc + np.arange(n)
    target = np.asarray(path.rates) @ rows[moved]
    others = np.delete(rows, moved, axis=0)
    pull = np.linalg.lstsq(others.T, target, rcond=1e-12)[0]
    names = places(path.mech, ())
    sizes = {name: np.max(np.abs(pull[top.layout[name].rows])) for name in names}
    most = max(sizes.values(), default=0.0)
    some = [n for n, x in sizes.items() if x > _SHARE * most]
    return tuple(sorted(some, key=lambda n: -sizes[n]))
