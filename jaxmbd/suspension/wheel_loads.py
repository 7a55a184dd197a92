"""Loads on a wheel: their names and signs, tables of load cases, and the force element they make.

The wheel is locked to the upright, so its spin plays no part. With n = z the road's normal, s the
wheel's axis to the left, m the wheel centre and c the contact (`contact_point`), the heading is
``h = s × n / |…|``, *across* is ``n × h``. Loads on the contact go with it, and so do their
directions. A brake or motor on the upright leaves it the moment ``(c − m) × f`` of a longitudinal
force f; of one on the chassis ("inboard", `Corner.brakes`, `Corner.drive`) this moment, which is
along s, acts on the chassis instead, so that f works as at the wheel centre.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model import ForceElement, Load, Mechanism, Units, number, point
from jaxmbd.plumbing import refuse, unknown
from jaxmbd.spatial import cross, unit
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.motions import contact_point, drawn_wheel

WHEEL_LOADS = {
    "vertical": ("N", "force on the contact, upwards"),
    "lateral": ("N", "force on the contact across the wheel, to the left"),
    "braking": ("N", "force on the contact along the wheel, rearwards; its torque by the brake"),
    "driving": ("N", "force on the contact along the wheel, forwards; its torque by the motor"),
    "aligning": ("N m", "moment about the road's normal, to the left"),
    "overturning": ("N m", "moment about the wheel's heading, which lowers its right side"),
    "torque": ("N m", "moment on the upright about the wheel's axis to the left, as of a brake"),
    "centre_x": ("N", "force on the wheel centre, forwards"),
    "centre_y": ("N", "force on the wheel centre, to the left"),
    "centre_z": ("N", "force on the wheel centre, upwards"),
}
"""Loads of a load case: name to unit and meaning, with the positive sense."""

Cases = Mapping[str, Mapping[str, float]] | str | os.PathLike[str]
_UNITS = {"n": (1.0, "N"), "kn": (1e3, "N"), "nm": (1.0, "N m"), "knm": (1e3, "N m")}
_TITLE = re.compile(r"(.*?)\s*[\[(](.*)[\])]\s*")


def read_load_cases(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    r"""Load cases of a CSV file: a row for each case, a column for each load.

    The first column has the names of the cases. Titles of the others are those of `WHEEL_LOADS`, of
    one wheel of an axle with ``left_`` or ``right_`` in front, and may end in a unit:
    ``vertical [kN]``; without one they are in N and N m.

    Args:
        path: the file.

    Returns:
        case to load to its value in SI units.

    Raises:
        ValueError: lists all that is wrong: unknown columns or units, a case that is there twice or
            has no name, and what is no number.

    Example:
        >>> import tempfile, pathlib
        >>> from jaxmbd.suspension import read_load_cases
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "cases.csv"
        ...     _ = file.write_text("case,vertical [kN],braking\nstop,5.2,4800\n")
        ...     print(read_load_cases(file))
        {'stop': {'vertical': 5200.0, 'braking': 4800.0}}
    """
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = [[x.strip() for x in row] for row in csv.reader(file) if any(map(str.strip, row))]
    if len(rows) < 2 or len(rows[0]) < 2:
        raise ValueError(
            f"{os.fspath(path)} has no load cases; give a row of titles, 'case' and names of "
            f"loads ({', '.join(WHEEL_LOADS)}), and a row for each case, separated by commas"
        )
    problems: list[str] = []
    columns = [_column(title, problems) for title in rows[0][1:]]
    names = [name for name, _ in columns]
    problems += [f"column {n!r} is there twice" for n in dict.fromkeys(names) if names.count(n) > 1]
    found: dict[str, dict[str, float]] = {}
    for i, (case, *cells) in enumerate(rows[1:], start=2):
        if not case or case in found:
            problems.append(f"row {i}: case {case!r}: " + ("again" if case else "give it a name"))
        if len(cells) != len(columns):
            problems.append(f"row {i} has {len(cells)} loads, the titles {len(columns)}")
            continue
        found[case] = {
            name: factor * _value(cell, f"row {i}, {name}", problems)
            for (name, factor), cell in zip(columns, cells, strict=True)
        }
    refuse(os.fspath(path), problems)
    return found


def _column(title: str, problems: list[str]) -> tuple[str, float]:
    """Name and factor to SI units of a column."""
    parts = _TITLE.fullmatch(title)
    name, given = (parts[1], parts[2]) if parts else (title, "")
    base = name.removeprefix("left_").removeprefix("right_")
    if base not in WHEEL_LOADS:
        problems += unknown("load", base, WHEEL_LOADS)
        return name, 1.0
    wanted = WHEEL_LOADS[base][0]
    bare = re.sub(r"[\s·*.]", "", given or wanted).lower()
    factor, kind = _UNITS.get(bare, (1.0, ""))
    if kind != wanted:
        problems.append(f"column {title!r}: {name} is in {wanted} or k{wanted}, not in {given!r}")
    return name, factor


def _value(cell: str, where: str, problems: list[str]) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        problems.append(f"{where}: {cell!r} is no number; write 0 where there is no load")
    return value


def case_loads(corners: Sequence[Corner], cases: Cases) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the cases, and their loads (cases, wheels, loads) in the order of `WHEEL_LOADS`.

    Raises:
        ValueError: lists all that is wrong, as a load that does not exist or is given twice.
    """
    given = cases if isinstance(cases, Mapping) else read_load_cases(cases)
    if not given:
        raise ValueError("give one load case or more: {'name': {'vertical': 4000.0, …}, …}")
    wheels, loads = [c.side for c in corners], list(WHEEL_LOADS)
    out, problems = np.zeros((len(given), len(wheels), len(loads))), []
    for row, (case, values) in zip(out, given.items(), strict=True):
        seen: set[tuple[int, int]] = set()
        for name, value in values.items():
            side, base = _side_and_load(name)
            if side is not None and side not in wheels:
                problems.append(f"case {case!r}: {name}: there is no {side} wheel, only {wheels}")
                continue
            if found := unknown("load", base, loads):
                problems.append(f"case {case!r}: {found[0]}")
                continue
            if np.ndim(value) or not np.isfinite(value):
                problems.append(f"case {case!r}: {name} is {value!r}; give one number")
                continue
            for k in range(len(wheels)) if side is None else [wheels.index(side)]:
                place = k, loads.index(base)
                if place in seen:
                    problems.append(
                        f"case {case!r}: {base} of the {wheels[k]} wheel is given twice"
                    )
                seen.add(place)
                row[place] = value
    refuse("load cases", problems)
    return tuple(map(str, given)), out


def _side_and_load(name: str) -> tuple[str | None, str]:
    for side in ("left", "right"):
        if name.startswith(f"{side}_"):
            return side, name.removeprefix(f"{side}_")
    return None, name


class WheelLoads(ForceElement):
    """All loads of a load case on one wheel; see the module's text.

    Attributes:
        b: name of the upright.
        a: name of the chassis, which inboard brakes and motors act on.
        at: the wheel centre.
        spin: the wheel's axis to the left, as drawn: a unit vector (3,).
        radius: of the tyre [m].
        values: of the loads, in the order of `WHEEL_LOADS` [N, N·m].
        inboard: those of "braking" and "driving" whose torque acts on a.
    """

    b: str = eqx.field(static=True)
    a: str = eqx.field(static=True)
    at: Any = eqx.field(converter=point)
    spin: Any = eqx.field(converter=number)
    radius: Any = eqx.field(converter=number)
    values: Any = eqx.field(converter=number)
    inboard: tuple[str, ...] = eqx.field(static=True, default=())

    units: ClassVar[Units] = {"spin": "", "radius": "m", "values": ""}

    def shapes(self, joints: dict[str, Any]) -> dict[str, tuple[tuple[int, ...], ...]]:
        """A vector, a number and the loads."""
        return {"spin": ((3,),), "radius": ((),), "values": ((len(WHEEL_LOADS),),)}

    def loads(self, motion: Any) -> list[Load]:
        """Forces at the contact and the wheel centre, and what an inboard torque gives back."""
        centre, _ = motion.point(self.b, self.at)
        left = motion.rotation(self.b) @ jnp.asarray(self.spin)
        up = jnp.asarray(np.eye(3)[2], left.dtype)
        heading = unit(cross(left, up))
        contact = contact_point(centre, left, self.radius)
        x = dict(zip(WHEEL_LOADS, jnp.asarray(self.values), strict=True))
        along = {"braking": -x["braking"], "driving": x["driving"]}
        force = x["vertical"] * up + x["lateral"] * cross(up, heading)
        force = force + sum(along.values()) * heading
        moment = x["aligning"] * up + x["overturning"] * heading + x["torque"] * left
        none: Any = 0.0 * up
        # The moment of a longitudinal force about the wheel centre is −R f along the axis.
        back: Any = sum((-self.radius * along[n] * left for n in self.inboard), none)
        pushed = jnp.stack([x[f"centre_{axis}"] for axis in "xyz"])
        return [
            Load(self.b, contact, force, moment - back),
            Load(self.b, centre, pushed, none),
            Load(self.a, centre, none, back),
        ]


def wheel_loads(mech: Mechanism, corner: Corner, values: Array | np.ndarray) -> WheelLoads:
    """The element of a wheel with its loads (loads,)."""
    _, spin = drawn_wheel(mech, corner)
    body, at = corner.placed("upright", corner.wheel_centre)
    sides = {"braking": corner.brakes, "driving": corner.drive}
    inboard = tuple(n for n, side in sides.items() if side == "inboard")
    left = corner.sign * jnp.asarray(spin)
    return WheelLoads(body, corner.chassis, at, left, corner.tyre_radius, values, inboard)
