"""All assemblies of a mechanism with some coordinates held: found from many starts.

Newton's method from random coordinates ends in any of the configurations that close the loops, each
with a share of the starts. The share of the starts that would end in one that was not seen is about
``f₁ / N``, with N the starts that closed and f₁ the assemblies found only once (Good 1953, "The
population frequencies of species and the estimation of population parameters").

Where as many rows as speeds close the loops, the sign of their determinant tells assemblies apart
that no motion joins without a singular configuration: on the way it would have to pass zero.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.analysis.assembly import assemble, attempt
from jaxmbd.analysis.driven import spin_lines, spin_rows
from jaxmbd.analysis.known import JointCoordinate, Key, Known, closing_rows, parse_known
from jaxmbd.analysis.status import Status
from jaxmbd.graph import Topology, neutral, topology
from jaxmbd.kinematics import MotionState, motion_state, speed_units, step_coordinates
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import refuse

_SAME = 1e-5
"""Assemblies whose joints lie nearer than this times their reach are one."""
_REACH = 1.5
"""Travels of random starts, over the mechanism's length."""
_OPEN = 1e-7
"""Singular values below this, over the largest, are freedoms that nothing holds."""


class Assemblies(NamedTuple):
    """The configurations in which a mechanism closes, nearest to the drawn one first.

    Attributes:
        q: coordinates (k, nq).
        hits: how many starts ended in each (k,).
        sign: of the determinant of the closing rows (k,), −1 or 1: assemblies of different signs
            are parted by singular configurations. Zero where redundant rows have no determinant, or
            where links turned about their own line make it either.
        starts: how many starts there were.
        unseen: estimated share of closing starts that would end in an assembly not listed.

    Example:
        >>> import jaxmbd as mbd
        >>> found = mbd.assemblies(mbd.zoo.rssr(), {"crank": 0.3}, starts=64)
        >>> len(found.q), found.unseen
        (2, 0.0)
    """

    q: np.ndarray
    hits: np.ndarray
    sign: np.ndarray
    starts: int
    unseen: float

    def __str__(self) -> str:
        count, closed = len(self.q), int(self.hits.sum())
        # No event in N trials: at most 3 / N with a confidence of 95 %.
        others = f"about {self.unseen:.1%}" if self.unseen else f"fewer than {3 / closed:.2%}"
        lines = [
            f"{count} assembl{'y' if count == 1 else 'ies'}; {closed} of {self.starts} starts "
            f"closed, of which {others} would end in others"
        ]
        for k, (hits, sign) in enumerate(zip(self.hits, self.sign, strict=True)):
            told = {1: "+", -1: "−"}.get(int(sign), "0")
            lines.append(f"{k:3d}: sign {told}, {int(hits)} starts")
        return "\n".join(lines)


def assemblies(
    mech: Mechanism, known: Known | None = None, *, t: Any = 0.0, starts: int = 256, seed: int = 0
) -> Assemblies:
    """All configurations that close the loops with coordinates held, from many random starts.

    A list is complete with a likelihood only: `Assemblies.unseen` estimates what is missing. One
    assembly are those in which the joints' points and axes and the markers lie alike, however a
    link is turned about its own line. Coordinates that no loop depends on stay as drawn.

    Args:
        mech: the mechanism.
        known: held coordinates, with the keys of `assemble` [rad, m]; as many as leave no freedom.
        t: time [s] at which drives are evaluated.
        starts: number of starts; the first is the drawn configuration.
        seed: of the random ones.

    Raises:
        ValueError: `known` names what is not there or leaves a freedom open (the message says how
            many), or no start closes the loops.

    Example:
        >>> import jaxmbd as mbd
        >>> print(mbd.assemblies(mbd.zoo.slider_crank(), {"O": 1.0}, starts=32).sign.shape)
        (2,)
    """
    if starts < 1:
        raise ValueError(f"starts={starts}; give one or more")
    keys, values = parse_known(mech, known)
    top = topology(mech)
    guesses = random_starts(mech, keys, values, starts, seed)
    args = jax.tree_util.tree_map(jnp.asarray, (mech, values, jnp.asarray(t, mech.dtype)))
    close = lanes.vmap(partial(closed_from, keys), in_axes=(None, None, None, 0))
    q, status, places, rows = map(np.asarray, close(*args, guesses))
    ok = status == Status.OK
    if not np.any(ok):
        assemble(mech, known, t=t)  # says which joint stays open
        raise ValueError(f"none of {starts} starts closes the loops; give more starts=")
    q, places, rows = q[ok], places[ok], rows[ok][:, :, bound_speeds(top)]
    sizes = np.linalg.svd(rows, compute_uv=False)
    free = rows.shape[2] - np.sum(sizes > _OPEN * sizes[:, :1], axis=1)
    if np.min(free, initial=rows.shape[2]) > 0:
        refuse("assemblies", [f"known= leaves {free.min()} freedom(s) open; hold as many more"])
    square = rows.shape[1] == rows.shape[2]
    signs = np.linalg.slogdet(rows)[0] if square else np.zeros(len(rows))
    alike = _alike(places)
    drawn = motion_state(mech, jnp.asarray(neutral(mech), mech.dtype), t=t)
    far = np.abs(places - np.asarray(joint_places(drawn))).max(axis=(1, 2))
    alike = sorted(alike, key=lambda some: far[some[0]])
    hits = np.array([len(some) for some in alike])
    sign = [signs[some[0]] if np.ptp(signs[some]) == 0.0 else 0.0 for some in alike]
    return Assemblies(
        q=q[[some[0] for some in alike]],
        hits=hits,
        sign=np.array(sign).round().astype(int),
        starts=starts,
        unseen=float(np.sum(hits == 1) / hits.sum()),
    )


def bound_speeds(top: Topology) -> np.ndarray:
    """The speeds that loops depend on."""
    return np.unique([i for row in top.row_speeds for i in row]).astype(int)


def random_starts(
    mech: Mechanism, keys: tuple[Key, ...], values: list[Any], count: int, seed: int
) -> Array:
    """Coordinates (count, nq): the drawn ones, then random ones where loops allow it."""
    top, rng = topology(mech), np.random.default_rng(seed)
    drawn = np.asarray(neutral(mech), float)
    moves = np.isin(np.arange(top.nv), bound_speeds(top))
    for key, value in zip(keys, values, strict=True):
        if not isinstance(key, JointCoordinate):
            continue  # where points are follows from the joints
        place: Any = top.layout[key.joint]
        some = slice(None) if key.index is None else slice(key.index, key.index + 1)
        drawn[place.q][some] = np.asarray(value)
        moves[place.v][some] = False
    steps = rng.uniform(-np.pi, np.pi, (count, top.nv))
    travels = np.array([kind == "travel" for kind in top.speed_kinds], bool)
    steps = np.where(moves, np.where(travels, _REACH / np.pi, 1.0) * steps, 0.0)
    steps[0] = 0.0

    def moved(step: Array) -> Array:
        return step_coordinates(mech, jnp.asarray(drawn, mech.dtype), speed_units(mech) * step)

    return lanes.vmap(moved)(jnp.asarray(steps, mech.dtype))


def closed_from(
    keys: tuple[Key, ...], mech: Mechanism, values: list[Array], t: Array, guess: Array
) -> tuple[Array, Array, Array, Array]:
    """Coordinates, status, places that tell assemblies apart, and scaled rows with idle spins."""
    found = attempt(keys, mech, values, t, guess)
    m = motion_state(mech, jnp.where(found.status == Status.OK, found.q, guess), t=t)
    rows = [closing_rows(m, keys, values)[1], spin_rows(m, spin_lines(m))]
    return found.q, found.status, joint_places(m), jnp.concatenate(rows) * speed_units(mech)


def joint_places(m: MotionState) -> Array:
    """World positions (n, 3) of joints, of points on their axes, and of markers."""
    found = []
    for name in m.mech.joints:
        joint = m.mech.joint(name)
        for body, ref in joint.attachments:
            found.append(m.position(body, ref))
        axis = joint.bearing_axis()
        if axis is not None:
            reach = jnp.max(speed_units(m.mech), initial=1.0)
            found.append(found[-2] + reach * (m.rotation(joint.a) @ jnp.asarray(axis)))
    for name, body in m.mech.bodies.items():
        found += [m.position(name, ref) for ref in body.markers or ()]
    return jnp.stack(found)


def _alike(places: np.ndarray) -> list[list[int]]:
    """Lists of the indices of those that are one assembly."""
    reach = max(float(np.ptp(places, axis=(0, 1)).max()), 1e-300)
    found: list[list[int]] = []
    for i, place in enumerate(places):
        same = (some for some in found if np.abs(place - places[some[0]]).max() < _SAME * reach)
        if (some := next(same, None)) is None:
            found.append([i])
        else:
            some.append(i)
    return found
