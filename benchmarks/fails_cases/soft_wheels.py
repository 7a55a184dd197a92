"""Wheels on bushings in NumPy: equilibria of rigid bodies in maximal coordinates.

Every body has a rotation and a place; forces and moments of springs, bushings and loads on it,
with those of rods, balls and of the held wheel, sum up to nothing:

    Σ F + Aᵀ λ = 0,   c = 0.

Newton's method solves for poses and multipliers, with derivatives by complex steps. The slow
motions of an equilibrium, and its compliance, are solutions of the same linear system: the right
side is what moves, the height of the wheel, the rack, or a load. It shares no code with the
package. Arrays have the samples first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fails_cases.rigid import H, log, mul, skew
from fails_cases.wheel_oracle import cayley, dot


class Bushing(NamedTuple):
    """From the ground to a body: rates (n, 6, 6) in the axes (n, 3, 3) of a frame."""

    body: str
    at: Any
    rates: Any
    frame: Any
    small: bool


class Spring(NamedTuple):
    """From a point of the ground to one of a body."""

    top: Any
    body: str
    end: Any
    stiffness: Any
    free: Any
    preload: Any


class Rod(NamedTuple):
    """A distance (n,) of a point of a body from one of the ground, or of the rack."""

    body: str
    at: Any
    end: Any
    length: Any
    steers: str = ""


class Soft(NamedTuple):
    """What hangs on what; points as drawn (n, 3).

    Attributes:
        bodies: name to a point of each, the wheel centre of the upright.
        forces: (body, point, force).
        balls: (body, body, point).
        rack: direction in which the rack moves.
        size, force: a length and a force (n,) to compare with.
    """

    bodies: dict[str, Any]
    bushings: tuple[Bushing, ...]
    springs: tuple[Spring, ...]
    forces: tuple[tuple[str, Any, Any], ...]
    rods: tuple[Rod, ...]
    balls: tuple[tuple[str, str, Any], ...]
    rack: Any
    size: Any
    force: Any

    @property
    def count(self) -> int:
        """Of conditions beside the held wheel."""
        return len(self.rods) + 3 * len(self.balls)

    def repeated(self, k: int) -> Soft:
        """Every sample k times, one after the other."""

        def more(x: Any) -> Any:
            if isinstance(x, np.ndarray):
                return np.repeat(x, k, axis=0)
            if isinstance(x, dict):
                return {n: more(y) for n, y in x.items()}
            if isinstance(x, tuple):
                items = [more(y) for y in x]
                return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
            return x

        return more(self)


class Rest(NamedTuple):
    """Poses and multipliers: turns (n, bodies, 3, 3), places (n, bodies, 3), loads (n, rows)."""

    turn: Any
    place: Any
    load: Any


class Held(NamedTuple):
    """What is prescribed: height of the wheel (None: free), rack, wrench at the wheel centre."""

    z: Any
    rack: Any
    wrench: Any


def at(s: Soft, x: Rest, body: str, point: Any) -> Any:
    """Where a point of a body is."""
    k = list(s.bodies).index(body)
    return x.place[:, k] + mul(x.turn[:, k], point - s.bodies[body])


def residual(s: Soft, x: Rest, held: Held) -> Any:
    """Moments and forces on every body about its point, then conditions (n, rows)."""
    names = list(s.bodies)
    total: list[Any] = [0.0] * len(names)
    rows: list[Any] = []

    def push(body: str, where: Any, force: Any, moment: Any = 0.0) -> None:
        k = names.index(body)
        turning = np.cross(where - x.place[:, k], force) + moment
        total[k] = total[k] + np.concatenate([turning, force], -1)

    for f in s.bushings:
        k = names.index(f.body)
        where = at(s, x, f.body, f.at)
        force, moment = bushing(f, x.turn[:, k], where - f.at)
        push(f.body, where, force, moment)
    for f in s.springs:
        where = at(s, x, f.body, f.end)
        away = where - f.top
        length = np.sqrt(dot(away, away))
        pull = f.preload + f.stiffness * (length - f.free)
        push(f.body, where, -(pull / length)[:, None] * away)
    for body, point, force in s.forces:
        push(body, at(s, x, body, point), force + 0.0 * x.place[:, 0])
    for row, r in enumerate(s.rods):
        end = r.end + (held.rack[:, None] * s.rack if r.steers == "rack" else 0.0)
        length = r.length + (held.rack if r.steers == "length" else 0.0)
        where = at(s, x, r.body, r.at)
        away = (where - end) / r.length[:, None]
        rows.append(0.5 * (dot(where - end, where - end) - length**2) / r.length)
        push(r.body, where, x.load[:, row, None] * away)
    for k, (a, b, point) in enumerate(s.balls):
        place = len(s.rods) + 3 * k
        first, second = at(s, x, a, point), at(s, x, b, point)
        rows += list(np.moveaxis(second - first, -1, 0))
        carried = x.load[:, place : place + 3]
        push(b, second, carried)
        push(a, first, -carried)
    wheel = names.index("upright")
    up = np.zeros_like(x.place[:, wheel])
    centre = x.place[:, wheel]
    if held.z is not None:
        up[:, 2] = 1.0
        push("upright", centre, x.load[:, -1:] * up)
        rows.append(centre[:, 2] - s.bodies["upright"][:, 2] - held.z)
    push("upright", centre, held.wrench[:, 3:] + 0.0 * up, held.wrench[:, :3])
    return np.concatenate([*total, np.stack(rows, -1) if rows else np.zeros((len(up), 0))], -1)


def bushing(f: Bushing, turn: Any, away: Any) -> tuple[Any, Any]:
    """Force and moment on the body at its point: those of ``½ δᵀ K δ``, world axes.

    With S the rotation in the frame's axes, ρ its vector, or (S_32, S_13, S_21), and a small
    rotation ω on the left of S, ``δρ = B ω``.
    """
    back = np.swapaxes(f.frame, -1, -2)
    s, d = back @ turn @ f.frame, mul(back, away)
    if f.small:
        rho = np.stack([s[:, 2, 1], s[:, 0, 2], s[:, 1, 0]], -1)
        moved = [skew(np.eye(3)[i]) @ s for i in range(3)]
        b = np.stack([np.stack([m[:, 2, 1], m[:, 0, 2], m[:, 1, 0]], -1) for m in moved], -1)
    else:
        rho = log(s)
        k, square = skew(rho), dot(rho, rho)[:, None, None]
        little = np.abs(square) < 1e-6
        angle = np.sqrt(np.where(little, 1.0, square))
        whole = 1.0 / angle**2 - (1.0 + np.cos(angle)) / (2.0 * angle * np.sin(angle))
        series = 1.0 / 12.0 + square / 720.0 + square**2 / 30240.0
        b = np.eye(3) - 0.5 * k + np.where(little, series, whole) * (k @ k)
    effort = -mul(f.rates, np.concatenate([rho, d], -1))
    moment = mul(np.swapaxes(b, -1, -2), effort[:, :3])
    return mul(f.frame, effort[:, 3:]), mul(f.frame, moment)


def stepped(s: Soft, x: Rest, step: Any) -> Rest:
    """Poses and multipliers after twists (n, 6 bodies) and changes of the multipliers."""
    n, bodies = x.place.shape[:2]
    twist = step[:, : 6 * bodies].reshape(n, bodies, 6)
    turn = cayley(twist[..., :3]) @ x.turn
    return Rest(turn, x.place + twist[..., 3:], x.load + step[:, 6 * bodies :])


def units(s: Soft, rows: int) -> Any:
    """Of twists and multipliers (n, rows + 6 bodies)."""
    size, force, none = s.size[:, None], s.force[:, None], np.ones((len(s.size), 3))
    twist = np.concatenate([none, size * none], 1)
    return np.concatenate([np.tile(twist, len(s.bodies)), np.tile(force, rows)], 1)


def stiffness(s: Soft, x: Rest, held: Held) -> Any:
    """Derivatives of the residual by scaled twists and multipliers, by complex steps."""
    rows = x.load.shape[1]
    scale = units(s, rows)
    n, m = scale.shape
    steps = (1j * H * scale[:, None, :] * np.eye(m)).reshape(n * m, m)
    wide = Rest(*(np.repeat(y, m, axis=0) for y in x))
    more = Held(*(None if y is None else np.repeat(y, m, axis=0) for y in held))
    big = s.repeated(m)
    found = residual(big, stepped(big, wide, steps), more).imag / H
    return np.swapaxes(found.reshape(n, m, m), 1, 2)


def _over(s: Soft, rows: int) -> Any:
    """Sizes of the residual's rows."""
    size, force, one = s.size[:, None], s.force[:, None], np.ones((len(s.size), 3))
    wrench = np.concatenate([size * force * one, force * one], 1)
    return np.concatenate([np.tile(wrench, len(s.bodies)), np.tile(size, rows)], 1)


def drawn(s: Soft, holds: bool) -> Rest:
    """The drawing, without loads."""
    n, names = len(s.size), list(s.bodies)
    turn = np.tile(np.eye(3), (n, len(names), 1, 1))
    load = np.zeros((n, s.count + (1 if holds else 0)))
    return Rest(turn, np.stack([s.bodies[k] for k in names], 1), load)


def solved(s: Soft, x: Rest, held: Held, rounds: int = 40) -> tuple[Rest, Any]:
    """The equilibrium next to a state, and which samples have come to it (n,)."""
    rows = x.load.shape[1]
    over, scale = _over(s, rows), units(s, rows)
    for _ in range(rounds):
        matrix = stiffness(s, x, held) / over[:, :, None]
        step = np.linalg.solve(matrix, -(residual(s, x, held) / over)[..., None])[..., 0]
        longest = np.max(np.abs(step[:, : 6 * len(s.bodies)]), axis=1, initial=0.0)
        short = np.minimum(1.0, 0.1 / np.maximum(longest, 1e-300))[:, None]
        x = stepped(s, x, step * scale * short)
        if np.all(longest < 1e-13):
            break
    return x, longest < 1e-9


def responses(s: Soft, x: Rest, held: Held, moves: Any) -> Any:
    """Twists (n, bodies, 6) of slow motions; `moves` are derivatives of the residual (n, rows, k).

    The last axis counts the motions.
    """
    rows = x.load.shape[1]
    matrix = stiffness(s, x, held) / _over(s, rows)[:, :, None]
    found = np.linalg.solve(matrix, -moves / _over(s, rows)[:, :, None])
    found = found * units(s, rows)[:, :, None]
    n, bodies = x.place.shape[:2]
    return found[:, : 6 * bodies].reshape(n, bodies, 6, -1)


def travel_and_steering(s: Soft, x: Rest, held: Held) -> Any:
    """Twists (n, bodies, 6, 2) as the wheel rises by one metre, and as the rack moves by one."""
    up = Held(held.z + 1j * H, held.rack, held.wrench)
    side = Held(held.z, held.rack + 1j * H, held.wrench)
    moves = [residual(s, x, h).imag / H for h in (up, side)]
    return responses(s, x, held, np.stack(moves, -1))


def compliance(s: Soft, x: Rest, held: Held) -> Any:
    """Twists of the upright (n, 6, 6) by moments and forces on it at the wheel centre."""
    moves = []
    for k in range(6):
        wrench = held.wrench + 1j * H * np.eye(6)[k]
        moves.append(residual(s, x, held._replace(wrench=wrench)).imag / H)
    found = responses(s, x, held, np.stack(moves, -1))
    return found[:, list(s.bodies).index("upright")]
