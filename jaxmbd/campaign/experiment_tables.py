"""Experiments and observables out of the tables of a study's file.

A table has a `type`, a name of `jaxmbd.observe`, and its arguments by name.
A coordinate is a text: ``"crank"``, ``"joint/1"``, ``"upright/wheel_centre/dz"`` for the travel of
a body's point from where it is drawn, or, in a file with ``format = 2``,
``"upright/wheel_centre/z"`` for its absolute position. In files that name no format the latter is a
travel too, as before.
Numbers may be texts with units ("10 mm").
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxmbd import observe
from jaxmbd.analysis import PointCoordinate, PointTravel
from jaxmbd.graph import topology
from jaxmbd.model import Mechanism
from jaxmbd.model.user_warning import warn_user
from jaxmbd.observe.names import unknown
from jaxmbd.variables import in_si

FORMAT = 2
"""The newest format of a study's file."""

EXPERIMENTS = {name: getattr(observe, name) for name in ("Sweep", "Pose", "Settle", "Motion")}
OBSERVABLES: dict[str, Callable[..., Any]] = {
    name: getattr(observe, name)
    for name in (
        "Position Travel Velocity Acceleration Distance DistanceRate Coordinate CoordinateRate "
        "DirectionAngle Camber Toe AngleBetween Element Reaction DriveEffort HoldingEffort Energy "
        "ClosureError"
    ).split()
}
Problems = list[str]


class Reader:
    """Reads tables for one mechanism; what cannot be read is None, with a line in `problems`."""

    def __init__(self, mech: Mechanism, problems: Problems, format_: int = FORMAT):
        self.mech, self.problems, self.format = mech, problems, format_

    def wrong(self, where: str, text: str) -> None:
        """Note a problem."""
        self.problems.append(f"{where}: {text}")

    def quantity(self, where: str, x: Any, unit: str) -> float:
        """A number, or a text with a unit, in SI units; NaN if it is neither."""
        if isinstance(x, (int, float)) and not isinstance(x, bool):
            return float(x)
        if isinstance(x, str):
            try:
                return in_si(x, unit, where)
            except ValueError as error:
                self.problems.append(str(error))
                return float("nan")
        self.wrong(where, f"{x!r} is no number and no text such as '1 {unit or 'mm'}'")
        return float("nan")

    def quantities(self, where: str, x: Any, unit: str) -> tuple[float, ...]:
        """A list of them, or a range ``{from = …, to = …, count = …}``."""
        if isinstance(x, list):
            return tuple(self.quantity(where, y, unit) for y in x)
        if isinstance(x, Mapping) and x.keys() == {"from", "to", "count"}:
            start, stop = (self.quantity(where, x[name], unit) for name in ("from", "to"))
            count = x["count"]
            if isinstance(count, int) and count > 0:
                return tuple(np.linspace(start, stop, count).tolist())
        self.wrong(where, f"{x!r} is no list of numbers and no {{from, to, count}}")
        return ()

    def coordinate(self, where: str, text: Any) -> tuple[Any, str]:
        """A coordinate in the form of `assemble`, and its unit."""
        mech, words = self.mech, text.split("/") if isinstance(text, str) else []
        joints = [e.name for e in mech.structure.joints if e.kind.can_be_in_tree]
        if text in joints or (len(words) == 2 and words[1].isdigit() and words[0] in joints):
            name, index = (text, 0) if text in joints else (words[0], int(words[1]))
            place = topology(mech).layout[name].v
            kinds = () if place is None else topology(mech).speed_kinds[place]
            unit = "m" if len(kinds) > index and kinds[index] == "travel" else "rad"
            return (name if text in joints else (name, index)), unit
        if len(words) >= 3 and words[-1].removeprefix("d") in ("x", "y", "z"):
            body, point, axis = words[0], "/".join(words[1:-1]), words[-1]
            if axis in ("x", "y", "z") and self.format >= 2:
                return PointCoordinate(body, point, axis), "m"
            if axis in ("x", "y", "z"):
                warn_user(
                    f"{where}: {text!r} is counted from where the point is drawn, since the file "
                    f"names no format; write '{body}/{point}/d{axis}' for that, or format = 2 at "
                    "the top of the file for an absolute position"
                )
            return PointTravel(body, point, axis[-1]), "m"
        self.wrong(
            where,
            f"{text!r} is no coordinate; give a joint of {joints}, 'joint/1', 'body/point/dz' for "
            "a travel, or 'body/point/z' for a position",
        )
        return None, ""

    def known(self, where: str, table: Any) -> dict[Any, float]:
        """Held coordinates."""
        found = {}
        for text, x in self._table(where, table).items():
            key, unit = self.coordinate(where, text)
            if key is not None:
                found[key] = self.quantity(f"{where}.{text}", x, unit)
        return found

    def _table(self, where: str, x: Any) -> Mapping[str, Any]:
        if isinstance(x, Mapping):
            return x
        self.wrong(where, f"{x!r} must be a table")
        return {}

    def observable(self, where: str, table: Any, axis_unit: str) -> Any:
        """An observable, scaled and reduced as its table says."""
        rest = dict(self._table(where, table))
        reduce_, factor = rest.pop("reduce", None), rest.pop("factor", 1.0)
        whole: Any = None
        if "of" in rest:  # a combination
            parts = rest.pop("of")
            if rest or not isinstance(parts, list):
                self.wrong(where, "'of' is a list of tables of observables, and stands alone")
                return None
            found = [self.observable(f"{where}.of", part, axis_unit) for part in parts]
            whole = None if not found or None in found else sum(found[1:], found[0])
        else:
            whole = self._made(where, rest, OBSERVABLES, "observable")
        if whole is None:
            return None
        if factor != 1.0:
            whole = whole * self.quantity(f"{where}.factor", factor, "")
        if reduce_ is None:
            return whole
        how, *arguments = reduce_ if isinstance(reduce_, list) else [reduce_]
        if how not in observe.REDUCTIONS:
            self.problems += [
                f"{where}: {p}" for p in unknown("reduction", how, observe.REDUCTIONS)
            ]
            return None
        if whole.problems(self.mech):  # which are told, of what it is a reduction of
            return whole
        unit = axis_unit if how in ("at", "slope") else whole.about(self.mech).unit
        unit = "" if how == "rise" else unit
        numbers = [self.quantity(f"{where}.reduce", x, unit) for x in arguments]
        return whole.reduced(how, *numbers)

    def _made(self, where: str, table: dict[str, Any], types: Mapping[str, Any], noun: str) -> Any:
        kind = table.pop("type", None)
        if kind not in types:
            self.problems += [f"{where}: {p}" for p in unknown(noun, kind, types)]
            return None
        if "coordinate" in table:
            table["coordinate"], _ = self.coordinate(f"{where}.coordinate", table["coordinate"])
        known = list(inspect.signature(types[kind]).parameters)
        if wrong := [p for name in table for p in unknown(f"argument of {kind}", name, known)]:
            self.problems += [f"{where}: {p}" for p in wrong]
            return None
        try:
            return types[kind](**table)
        except (TypeError, ValueError) as error:
            self.wrong(where, str(error))
            return None

    def _observe(self, where: str, table: Any, axis_unit: str) -> dict[str, Any]:
        found = {}
        for name, x in self._table(f"{where}.observe", table).items():
            before = len(self.problems)
            what = self.observable(f"{where}.observe.{name}", x, axis_unit)
            problems = [] if what is None else what.problems(self.mech)
            self.problems += [f"{where}.observe.{name}: {p}" for p in problems]
            if len(self.problems) == before:
                found[name] = what
        return found

    def experiment(self, where: str, table: Any) -> Any:
        """An experiment; None if it cannot be read."""
        rest, before = dict(self._table(where, table)), len(self.problems)
        kind, axis_unit = rest.get("type"), ""
        wanted = rest.pop("observe", {})
        if "over" in rest:
            over = {}
            for text, x in self._table(f"{where}.over", rest["over"]).items():
                key, unit = self.coordinate(f"{where}.over", text)
                if key is not None:
                    over[key] = self.quantities(f"{where}.over.{text}", x, unit)
                axis_unit = axis_unit or unit
            rest["over"] = over
        if kind == "Motion":
            axis_unit = "s"
            for name in ("t1", "dt"):
                if name in rest:
                    rest[name] = self.quantity(f"{where}.{name}", rest[name], "s")
            if "start" in rest:
                rest["start"] = self.experiment(f"{where}.start", rest["start"])
            if "speeds" in rest:
                rest["speeds"] = self._speeds(f"{where}.speeds", rest["speeds"])
        if "known" in rest:
            rest["known"] = self.known(f"{where}.known", rest["known"])
        rest["observe"] = self._observe(where, wanted, axis_unit)
        if len(self.problems) > before:
            return None
        return self._made(where, rest, EXPERIMENTS, "experiment")

    def _speeds(self, where: str, table: Any) -> dict[Any, float]:
        found = {}
        for text, x in self._table(where, table).items():
            key, unit = self.coordinate(where, text)
            if key is not None:
                found[key] = self.quantity(f"{where}.{text}", x, f"{unit}/s")
        return found


def read_experiments(data: Mapping[str, Any], mech: Mechanism, problems: Problems) -> Any:
    """The experiment of a file: its table `experiment`, or all of `experiments` together."""
    given = data.get("format", 1)
    if given not in range(1, FORMAT + 1):
        problems.append(
            f"format = {given!r}; this release reads 1 (as if none is named) to {FORMAT}"
        )
        return None
    reader = Reader(mech, problems, given)
    one, several = data.get("experiment"), data.get("experiments")
    if (one is None) == (several is None):
        problems.append(
            "give either [experiment], a single one, or [experiments.NAME] for several, whose "
            "outputs then are NAME/…"
        )
        return None
    if one is not None:
        return reader.experiment("experiment", one)
    if not isinstance(several, Mapping):
        problems.append("[experiments] needs a name for each: [experiments.bump]")
        return None
    found = {n: reader.experiment(f"experiments.{n}", x) for n, x in several.items()}
    return None if None in found.values() else observe.Together(found)
