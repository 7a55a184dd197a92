"""Observables of how a mechanism passes motion and effort on: speed ratio, mechanical advantage.

With the other held coordinates at rest, speeds follow from ``J v = 0`` and one of the input: the
ratio is that of the output's speed. In a mechanism that stores and loses nothing the power that
comes in goes out: the efforts have the inverse ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.analysis import (
    JointCoordinate,
    Key,
    PointCoordinate,
    asked_rows,
    held_name,
    is_angle,
    is_met,
    parse_known,
)
from jaxmbd.graph import topology
from jaxmbd.kinematics import mechanism_length, placed_numbers, speed_units
from jaxmbd.model import Drive, Mechanism
from jaxmbd.numerics import factor_rows, solution, tolerances
from jaxmbd.observe.experiment import known_problems
from jaxmbd.observe.forces import single_key
from jaxmbd.observe.observable import Observable, Output, per
from jaxmbd.observe.snapshot import Snapshot


@dataclass(frozen=True)
class SpeedRatio(Observable):
    """The speed of an output over that of the input, the other held coordinates at rest.

    Zero at toggles, where the output turns back; infinite where the output, or the loops, can move
    while the input stands still (a limit of the input), or where nothing moves the input. It is NaN
    where a freedom that nothing holds leaves it open.

    Attributes:
        output, input: coordinates with the keys of `assemble`: a joint, ``(joint, i)``, a
            `PointCoordinate` or `PointTravel`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import SpeedRatio, Sweep
        >>> sweep = Sweep({"A": (0.0, 1.0)}, {"ratio": SpeedRatio("D", "A")})
        >>> [f"{x:.3f}" for x in sweep(mbd.zoo.four_bar())["ratio"]]
        ['0.516', '0.063']
    """

    output: Any
    input: Any

    def value(self, at: Snapshot) -> Array:
        return _ratio(at, single_key(at.mech, self.output), single_key(at.mech, self.input))

    def about(self, mech: Mechanism) -> Output:
        (out, unit), (into, other) = (_named(mech, x) for x in (self.output, self.input))
        return Output(per(unit, other), f"speed of {out} over that of {into}")

    def problems(self, mech: Mechanism) -> list[str]:
        return [x for key in (self.output, self.input) for x in _problems(mech, key)]


@dataclass(frozen=True)
class MechanicalAdvantage(Observable):
    """The effort of an output on its load over that of the input, of a mechanism without losses.

    By virtual power the inverse of `SpeedRatio`: efforts are torques [N·m] of angles and forces [N]
    of travels, and masses, springs and friction count nothing. At a toggle it is infinite, as far
    as rounding goes: 1e12 and more, and next to it large with a sign that changes. Over a course
    that passes one, reduce the `SpeedRatio` instead.

    Attributes:
        input, output: as of `SpeedRatio`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import MechanicalAdvantage, Sweep
        >>> sweep = Sweep({"A": (0.0, 1.0)}, {"gain": MechanicalAdvantage("A", "D")})
        >>> [f"{x:.3f}" for x in sweep(mbd.zoo.four_bar())["gain"]]
        ['1.938', '15.778']
    """

    input: Any
    output: Any

    def value(self, at: Snapshot) -> Array:
        return _inverse(SpeedRatio(self.output, self.input).value(at))

    def about(self, mech: Mechanism) -> Output:
        (out, unit), (into, other) = (_named(mech, x) for x in (self.output, self.input))
        return Output(per(other, unit), f"effort of {out} over that of {into}")

    def problems(self, mech: Mechanism) -> list[str]:
        return SpeedRatio(self.output, self.input).problems(mech)


def _named(mech: Mechanism, x: Any) -> tuple[str, str]:
    """A coordinate in words and its unit."""
    key = single_key(mech, x)
    return held_name(mech, key), "rad" if is_angle(topology(mech), key) else "m"


def _problems(mech: Mechanism, x: Any) -> list[str]:
    """What is wrong with one coordinate."""
    if found := known_problems(mech, {x: 0.0}):
        return found
    keys = parse_known(mech, {x: 0.0})[0]
    return [] if len(keys) == 1 else [f"{x!r} is not one coordinate; give (joint, i)"]


def _inverse(x: Array) -> Array:
    still = x == 0.0
    return jnp.where(still, jnp.inf, 1.0 / jnp.where(still, 1.0, x))


def _ratio(at: Snapshot, output: Key, into: Key) -> Array:
    """The change of the output over that of the input."""
    if _drive_rows(at.mech, output):  # which its own drive would hold
        return _inverse(_change(at, into, output))
    return _change(at, output, into)


def _drive_rows(mech: Mechanism, key: Key) -> list[int]:
    """Closure rows of the mechanism's own drives of a coordinate."""
    layout, found = topology(mech).layout, []
    for name, drive in mech.drives.items():
        if isinstance(drive, Drive):
            same = key == JointCoordinate(drive.joint, drive.index)
        else:
            same = key == PointCoordinate(drive.body, drive.at, "xyz"[drive.component])
        if same and (rows := layout[name].rows) is not None:
            found += range(*rows.indices(topology(mech).nc))
    return found


def _change(at: Snapshot, output: Key, into: Key) -> Array:
    """The speed of the output where the input has speed one."""
    m, weight = at.motion, speed_units(at.mech) ** 2
    others = tuple(k for k in (*at.keys, *at.driving) if k not in (output, into))
    asked = asked_rows(m, (into, *others))
    rows = asked.matrix
    ones = np.zeros(rows.shape[0])
    ones[[*_drive_rows(at.mech, into), m.top.nc]] = 1.0
    target = asked.of(jnp.asarray(ones, m.q.dtype))
    factors = factor_rows(rows, weight, doubt=asked.doubt)
    v = factors.solve(target)
    v = v + factors.solve(target - rows @ v)
    terms = [target, mechanism_length(at.mech) * v]
    v = solution(v, rows @ v - target, terms, placed_numbers(at.mech))
    ends = asked_rows(m, (output,))
    own = ends.matrix[-1] / ends.held_scale[-1]
    moved = weight * own
    left = moved - factors.solve(rows @ moved)  # what the conditions leave open of its motion
    most = tolerances.agreement(v.dtype) * jnp.max(jnp.abs(moved))
    found = jnp.where(jnp.max(jnp.abs(left)) > most, jnp.nan, own @ v)
    met = jnp.all(is_met(rows, v, target)) | ~jnp.all(jnp.isfinite(m.q))
    return jnp.asarray(jnp.where(met, found, jnp.inf))
