"""All kinematic characteristics of a corner over its travel or its steering, by one call."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.model import Mechanism
from jaxmbd.observe import Output, Sweep, called, status_text, stays_open
from jaxmbd.plumbing import text_table, unknown, warn_user
from jaxmbd.suspension.corner import Corner, find_corner
from jaxmbd.suspension.corner_sweep import TRAVEL, kinematics_sweep, name_list, of_mechanism
from jaxmbd.suspension.reachable_travel import reach_text, sweep_reach
from jaxmbd.variables import Parametrization, mechanism_of, shown

_PRINTED = 5


def number(x: float) -> str:
    """A number with four significant digits, as short as it can be."""
    if not np.isfinite(x):
        return "–" if np.isnan(x) else f"{x:g}"
    if abs(x) < 5e-7:
        return "0"
    return f"{x:.0f}" if 1e4 <= abs(x) < 1e7 else f"{x:.4g}"


def meaning(name: str, text: str) -> str:
    """A quantity's text beside its name and printed unit: without repeating either.

    Example:
        >>> from jaxmbd.suspension.kinematics_table import meaning
        >>> meaning("toe", "toe [rad], positive: toe-in")
        'positive: toe-in'
        >>> meaning("toe_gradient", "its derivative along wheel travel: toe")
        'its derivative along wheel travel'
    """
    if name.endswith("_gradient"):
        return text.partition(":")[0]
    text = re.sub(r" \[[^\]]*\]", "", text)
    words = "[_ -]".join(map(re.escape, name.split("_")))
    return re.sub(rf"^{words}(?![\w-])[,:]? *", "", text) or text


def evenly(n: int, places: int | None) -> list[int]:
    """Indices of some of n places, evenly chosen; of all for None."""
    count = n if places is None else min(max(places, 2), n)
    return sorted({round(k * (n - 1) / max(count - 1, 1)) for k in range(count)})


def write_csv(path: str | os.PathLike[str], head: Iterable[str], rows: Iterable[Any]) -> None:
    """Write a table with a row of titles."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


@dataclass(frozen=True)
class Kinematics:
    """Characteristics over wheel travel, steering or roll; printed as a table, written as CSV.

    Attributes:
        axis: "travel" or "steer"; of an axle what `axle_kinematics` moves.
        x: wheel travels, or travels of the rack (n,) [m]; angles [rad] in roll.
        columns: characteristic to values (n,) in SI units; derivatives are ``<name>_gradient``.
        about: characteristic to its `Output`: unit and text with sign.
        title: what it is of.
        unit: SI unit of x.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import kinematics
        >>> table = kinematics(mbd.zoo.multi_link(), observe=["toe"], travel=[-0.01, 0.0, 0.01])
        >>> round(float(table["toe_gradient"][1]), 6), table.about["toe_gradient"].unit
        (0.039914, 'rad/m')
    """

    axis: str
    x: np.ndarray
    columns: dict[str, np.ndarray]
    about: dict[str, Output] = field(repr=False)
    title: str = ""
    unit: str = "m"

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def at(self, x: float) -> dict[str, float]:
        """All scalar values at a place of the axis, linearly interpolated.

        Raises:
            ValueError: the place is outside the range of the table.
        """
        low, high = float(np.min(self.x)), float(np.max(self.x))
        slack = 1e-9 * max(abs(low), abs(high))
        if not low - slack <= x <= high + slack:
            unit, factor = shown(self.unit)
            raise ValueError(
                f"{self.axis} {factor * x:+g} {unit} is outside the table, which goes from "
                f"{factor * low:+g} to {factor * high:+g} {unit} (x is in {self.unit})"
            )
        order = np.argsort(self.x)
        scalars = {n: y for n, y in self.columns.items() if y.ndim == 1}
        return {n: float(np.interp(x, self.x[order], y[order])) for n, y in scalars.items()}

    def shown(self, name: str) -> tuple[np.ndarray, str]:
        """Values in the unit in which they are printed, and that unit."""
        unit, factor = shown(self.about[name].unit)
        return factor * self.columns[name], unit

    def _parts(self, name: str) -> dict[str, np.ndarray]:
        """A column as it is printed, or the columns of a vector's components."""
        values = self.shown(name)[0]
        if values.ndim == 1:
            return {name: values}
        return {f"{name}_{end}": x for end, x in zip("xyz", values.T, strict=True)}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all columns with their printed units as heading, one row for each place."""
        unit, factor = shown(self.unit)
        head, series = [f"{self.axis} [{unit}]"], [factor * self.x]
        for name in self.columns:
            for label, values in self._parts(name).items():
                head.append(f"{label} [{self.shown(name)[1]}]")
                series.append(values)
        write_csv(path, head, np.stack(series, axis=1).tolist())

    def table(self, columns: Iterable[str] | None = None, places: int | None = _PRINTED) -> str:
        """The table that is printed, whole or in part.

        Args:
            columns: names of the columns, by default all but vectors; one line each.
            places: how many places of the axis, evenly chosen; None for all.

        Raises:
            ValueError: a name is unknown.
        """
        scalars = [n for n, y in self.columns.items() if y.ndim == 1]
        names = scalars if columns is None else name_list(columns)
        if problems := [t for n in names for t in unknown("column", n, self.columns)]:
            raise ValueError("; ".join(problems))
        n = len(self.x)
        chosen = evenly(n, places)
        unit, factor = shown(self.unit)
        head = [self.axis, *(f"{factor * self.x[k]:+.5g}" for k in chosen), unit, ""]
        rows = []
        for name in names:
            unit, text = self.shown(name)[1], meaning(name, self.about[name].text)
            for label, y in self._parts(name).items():
                rows.append([label, *(number(y[k]) for k in chosen), unit, text])
        rest = ""
        if len(chosen) < n:
            rest = f"\n{len(chosen)} of {n} places are shown; "
            rest += ".table(places=None) and .to_csv(path) have all"
        return (self.title + "\n" if self.title else "") + text_table(head, rows, rule=False) + rest

    def __str__(self) -> str:
        return self.table()


def kinematics(
    model: Mechanism | Parametrization,
    corner: Corner | None = None,
    *,
    travel: float | Sequence[float] | None = None,
    steer: float | Sequence[float] = 0.0,
    observe: str | Iterable[str] | None = None,
    gradients: str | Iterable[str] | None = None,
    settle: bool = False,
) -> Kinematics:
    """Kinematic characteristics of a corner with their exact derivatives, over travel or steering.

    One kernel assembles every position from the last, solves both motions of the corner there
    (`jaxmbd.suspension.motions`) and evaluates all characteristics and derivatives.

    Args:
        model: the mechanism, or a parametrisation (`mirrored`, one's own), whose nominal one is it.
        corner: the roles of its parts; by default those of a corner of the zoo with its names.
        travel: of the wheel centre upwards, from where it is drawn [m]; by default `TRAVEL`, or as
            much of it as is reached, of which a warning tells; 0 where `steer` has several values.
        steer: travel of the rack along its axis, from where it is drawn [m], or angle of the pitman
            arm [rad]; a list instead of that of `travel` for a steering sweep.
        observe: name or names of characteristics; by default all that the corner has.
        gradients: names of those whose derivatives along the axis are wanted; by default those of
            `GRADIENTS` that are observed.
        settle: whether what is not held, as bushings are not, comes to rest: all is then of
            equilibria, under the loads of the mechanism.

    Raises:
        ValueError: roles or names do not fit, or a position cannot be reached (the message says
            which joint stays open and where).

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import kinematics
        >>> bump = kinematics(mbd.zoo.multi_link(), observe=["toe"], travel=[-0.01, 0.0, 0.01])
        >>> toe, unit = bump.shown("toe")
        >>> round(float(toe[2]), 3), unit
        (0.023, 'deg')
    """
    mech = mechanism_of(model)
    corner = find_corner(mech) if corner is None else corner
    sweep = kinematics_sweep(
        corner, travel=travel, steer=steer, observe=observe, gradients=gradients, settle=settle
    )
    sweep = of_mechanism(sweep, mech)
    found = {n: np.asarray(x) for n, x in called(sweep, mech).items()}
    if int(found["status"]) == Status.NOT_ASSEMBLED and travel is None and not np.ndim(steer):
        sweep = _as_far_as_reached(mech, sweep)
        found = {n: np.asarray(x) for n, x in called(sweep, mech).items()}
    if int(found["status"]) != Status.OK:
        _raise(mech, sweep, found)
    about = sweep.declare(mech).outputs
    columns = {n: found[n] for n in sweep.observe}
    axis = sweep.axis_values(mech)
    return Kinematics(str(sweep.dim), np.asarray(axis.values), columns, about, unit=axis.unit)


_REACHED = 0.98
"""Share of the reachable travel that a table has by default: at its very end nothing is finite."""


def _as_far_as_reached(mech: Mechanism, sweep: Sweep) -> Sweep:
    """The sweep over as much of `TRAVEL` as is reached; itself where that cannot be told."""
    try:
        found = sweep_reach(replace(sweep, settle=False), mech, "travel")
    except ValueError:
        return sweep
    low, high = max(TRAVEL[0], _REACHED * found.low), min(TRAVEL[-1], _REACHED * found.high)
    warn_user(f"the table is over {1e3 * low:+.1f} to {1e3 * high:+.1f} mm: {found}")
    [key] = sweep.over
    return replace(sweep, over={key: np.linspace(low, high, len(TRAVEL))})


def failure_text(status: int) -> str:
    """Why a table failed; of equilibria INACCURATE means that there is hardly a load."""
    lost = ": its loads are lost in rounding; give a wheel load, gravity or a preload"
    return status_text(status) + (lost if status == Status.INACCURATE else "")


def _raise(mech: Mechanism, sweep: Sweep, found: dict[str, np.ndarray]) -> None:
    status, (unit, factor) = Status(int(found["status"])), shown(sweep.axis_values(mech).unit)
    where = factor * float(found["failed_at"])
    how = failure_text(status)
    if open_ := stays_open(sweep.declare(mech).outputs, found):
        how += f", {open_}"
    if (
        status == Status.NON_FINITE
        and not np.isnan(where)
        and not all(what.partial for what in sweep.observed())
    ):
        raise ValueError(
            f"the spring has no length at {sweep.dim} {where:+.1f} {unit}, and so no motion ratio "
            "or rate; check the hardpoints of its ends, or leave its columns out of observe="
        )
    raise ValueError(
        f"the corner does not reach {sweep.dim} {where:+.1f} {unit} ({how})"
        f"{reach_text(sweep, mech)}. Give a smaller range of {sweep.dim}, or check the hardpoints"
    )
