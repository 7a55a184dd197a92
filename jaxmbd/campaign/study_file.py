"""Studies as TOML files, of mechanisms in files and in the zoo.

The tables of a file, each a part of `Study`::

    format = 2
    title = "Bump steer of the multi-link corner"
    samples = 20000
    seed = 1
    design = "sobol"                      # or { design = "grid", levels = 5 }

    [mechanism]
    zoo = "multi_link"                    # or file = "corner.json", beside this file
    arguments = { wheel_load = 8000.0 }   # of the zoo's function
    set = { "forces/spring/stiffness" = "130 N/mm" }

    [tolerances]                          # build scatter: each part has offsets of its own
    of = ["sph_ua", "tierod"]             # by default of all joints and springs

    [inputs]
    "offsets/*" = { distribution = "normal", sigma = "0.3 mm" }
    "points/wheel_centre" = { distribution = "normal", sigma = "1 mm" }
    "forces/shock/damping" = { distribution = "uniform", half_width = 0.1, relative = true }

    [experiment]
    type = "Sweep"
    over = { "upright/wheel_centre/dz" = { from = "-60 mm", to = "60 mm", count = 13 } }

    [experiment.observe]
    toe = { type = "Toe", body = "upright" }
    toe_range = { type = "Toe", body = "upright", reduce = "span" }

A table of an experiment has a `type`, a name of `jaxmbd.observe`, and its arguments by name.
A coordinate is a text: ``"crank"``, ``"joint/1"``, ``"upright/wheel_centre/dz"`` for the travel of
a body's point from where it is drawn, or, in a file with ``format = 2``,
``"upright/wheel_centre/z"`` for its absolute position. In files that name no format the latter is a
travel too, as before.
Numbers may be texts with units ("10 mm").
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd import observe, sampling, zoo
from jaxmbd.analysis import PointCoordinate, PointTravel
from jaxmbd.campaign.model import Input
from jaxmbd.campaign.study import Study
from jaxmbd.graph import topology
from jaxmbd.io import check_depth, load, read_toml
from jaxmbd.model import Mechanism
from jaxmbd.plumbing import unknown, warn_user
from jaxmbd.sampling import Covariance, RankCorrelation
from jaxmbd.tolerances import split
from jaxmbd.variables import in_si, set_variables, variables

FORMAT = 2
"""The newest format of a study's file."""

EXPERIMENTS = {
    name: getattr(observe, name) for name in ("Sweep", "Configuration", "Settle", "Motion")
}
OBSERVABLES: dict[str, Callable[..., Any]] = {
    name: getattr(observe, name)
    for name in (
        "Position Travel Velocity Acceleration Distance DistanceRate Coordinate CoordinateRate "
        "DirectionAngle Camber Toe AngleBetween Element Reaction DriveEffort HoldingEffort "
        "DrivingPower ShakingForce ShakingMoment Energy ClosureError"
    ).split()
}
Problems = list[str]


class Reader:
    """Reads tables for one mechanism; what cannot be read is None, with a line in `problems`."""

    def __init__(self, mech: Mechanism, problems: Problems, format_: int = FORMAT):
        self.mech, self.problems, self.format = mech, problems, format_

    def wrong(self, where: str, *texts: str) -> None:
        """Note problems of a place in the file."""
        self.problems += [f"{where}: {text}" for text in texts]

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
            f"{text!r} is no coordinate; give a joint of {joints}, 'joint/1', 'body/point/dx' for "
            "a travel, or 'body/point/x' for a position",
        )
        return None, ""

    def held(self, where: str, table: Any, per: str = "") -> dict[Any, float]:
        """Held coordinates, or with `per` "/s" their speeds."""
        found = {}
        for text, x in self._table(where, table).items():
            key, unit = self.coordinate(where, text)
            if key is not None:
                found[key] = self.quantity(f"{where}.{text}", x, unit + per)
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
                return self.wrong(
                    where, "'of' is a list of tables of observables, and stands alone"
                )
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
            return self.wrong(where, *unknown("reduction", how, observe.REDUCTIONS))
        if whole.problems(self.mech):  # which the caller reports
            return whole
        unit = axis_unit if how in ("at", "slope") else whole.about(self.mech).unit
        unit = "" if how == "rise" else unit
        numbers = [self.quantity(f"{where}.reduce", x, unit) for x in arguments]
        return whole.reduced(how, *numbers)

    def _made(self, where: str, table: dict[str, Any], types: Mapping[str, Any], noun: str) -> Any:
        kind = table.pop("type", None)
        if kind not in types:
            return self.wrong(where, *unknown(noun, kind, types))
        if "coordinate" in table:
            table["coordinate"], _ = self.coordinate(f"{where}.coordinate", table["coordinate"])
        known = list(inspect.signature(types[kind]).parameters)
        if wrong := [p for name in table for p in unknown(f"argument of {kind}", name, known)]:
            return self.wrong(where, *wrong)
        try:
            return types[kind](**table)
        except (TypeError, ValueError) as error:
            return self.wrong(where, str(error))

    def _observe(self, where: str, table: Any, axis_unit: str) -> dict[str, Any]:
        found = {}
        for name, x in self._table(f"{where}.observe", table).items():
            before = len(self.problems)
            what = self.observable(f"{where}.observe.{name}", x, axis_unit)
            problems = [] if what is None else what.problems(self.mech)
            self.wrong(f"{where}.observe.{name}", *problems)
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
                rest["speeds"] = self.held(f"{where}.speeds", rest["speeds"], "/s")
        if "known" in rest:
            rest["known"] = self.held(f"{where}.known", rest["known"])
        rest["observe"] = self._observe(where, wanted, axis_unit)
        if len(self.problems) > before:
            return None
        return self._made(where, rest, EXPERIMENTS, "experiment")


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


KEYS = (
    "format title samples seed design chunk mechanism tolerances inputs correlation experiment "
    "experiments"
).split()


def load_study(path: str | Path) -> Study:
    """The study of a TOML file.

    Raises:
        ValueError: the file is no TOML, or lists all that is wrong in it.
        OSError: it cannot be read.

    Example:
        >>> import tempfile, pathlib, jaxmbd as mbd
        >>> from jaxmbd.campaign.study_file import load_study
        >>> text = '''
        ... samples = 100
        ... mechanism = { zoo = "rssr" }
        ... inputs = { "points/B" = { distribution = "normal", sigma = "0.1 mm" } }
        ... [experiment]
        ... type = "Configuration"
        ... known = { crank = "10 deg" }
        ... observe = { rocker = { type = "Coordinate", joint = "rocker" } }
        ... '''
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "study.toml")
        ...     _ = path.write_text(text)
        ...     load_study(path).samples
        100
    """
    path = Path(path)
    return read_study(read_toml(path), path.parent, source=str(path))


def read_study(data: Mapping[str, Any], folder: Path, *, source: str = "this study") -> Study:
    """The study that a file's data describe.

    Args:
        data: its tables.
        folder: to which the names of files in it are relative.
        source: its name in messages.
    """
    check_depth(data, source)
    problems: Problems = [p for key in data for p in unknown("entry", key, KEYS)]

    def part(name: str, read: Callable[..., Any], *given: Any) -> Any:
        """A table as `read`; a value that cannot be read is a problem of that table."""
        try:
            return read(*given, problems)
        except (TypeError, ValueError, AttributeError, LookupError, OverflowError) as error:
            problems.append(f"{name} has a value that does not fit ({error}); see its form in docs")
            return None

    mech = part("mechanism", _mechanism, data.get("mechanism"), folder)
    if mech is None:
        raise _error(source, problems)
    model = part("tolerances", _split, mech, data.get("tolerances"))
    inputs = part("inputs", _inputs, data.get("inputs"))
    drawn: Any = model({}) if callable(model) else mech
    observe = part("experiment", read_experiments, data, drawn)
    parts = {
        "design": part("design", _design, data.get("design", "monte_carlo"), folder),
        "correlation": part("correlation", _correlation, data.get("correlation")),
        "samples": _whole(data, "samples", problems),
        "seed": _whole(data, "seed", problems) or 0,
        "chunk": _whole(data, "chunk", problems),
        "title": str(data.get("title", "")),
    }
    if problems:
        raise _error(source, problems)
    try:
        return Study(model, inputs, observe=observe, **parts)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{source}: {error}") from None


def _error(source: str, problems: Problems) -> ValueError:
    count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
    return ValueError(f"{source} has {count}:\n" + "\n".join(f"  - {p}" for p in problems))


def _whole(data: Mapping[str, Any], name: str, problems: Problems) -> int | None:
    x = data.get(name)
    if x is not None and (not isinstance(x, int) or isinstance(x, bool)):
        problems.append(f"{name} = {x!r}; give a whole number")
        return None
    return x


def _mechanism(table: Any, folder: Path, problems: Problems) -> Mechanism | None:
    if not isinstance(table, Mapping) or ("zoo" in table) == ("file" in table):
        problems.append('[mechanism] needs zoo = "NAME" or file = "NAME.json"')
        return None
    before = len(problems)
    keys = ("zoo", "arguments", "set") if "zoo" in table else ("file", "set")
    for name in table:
        problems += [f"mechanism: {p}" for p in unknown("entry", name, keys)]
    try:
        if "file" in table:
            mech = load(folder / str(table["file"]))
        else:
            mech = _from_zoo(table["zoo"], table.get("arguments", {}), problems)
    except (ValueError, TypeError, OSError) as error:
        problems.append(f"mechanism: {error}")
        return None
    if mech is None or len(problems) > before:
        return None
    return _changed(mech, table.get("set", {}), problems)


def _from_zoo(name: Any, arguments: Any, problems: Problems) -> Mechanism | None:
    found = unknown("mechanism in the zoo", name, zoo.__all__)
    function = None if found else getattr(zoo, name)
    if function is not None:
        known = inspect.signature(function).parameters
        for argument in arguments:
            found += unknown(f"argument of {name}", argument, known)
    problems += [f"mechanism: {p}" for p in found]
    if found or function is None:
        return None
    mech = function(**arguments)
    if not isinstance(mech, Mechanism):
        problems.append(f"mechanism: zoo.{name} is no mechanism")
        return None
    return mech


def _changed(mech: Mechanism, values: Any, problems: Problems) -> Mechanism | None:
    """The mechanism with variables set to quantities."""
    numbers = {}
    for path, x in values.items():
        try:
            [variable] = variables(mech, path).values()
            numbers[path] = in_si(x, variable.unit, path) if isinstance(x, str) else x
        except ValueError as error:
            problems.append(f"mechanism.set: {error}")
    if len(numbers) < len(values):
        return None
    try:
        return set_variables(mech, numbers) if numbers else mech
    except ValueError as error:
        problems.append(f"mechanism.set: {error}")
        return None


def _split(mech: Mechanism, table: Any, problems: Problems) -> Any:
    """The mechanism, or its parametrisation by the tolerances of its parts."""
    if table is None:
        return mech
    before = len(problems)
    if not isinstance(table, Mapping):
        problems.append("[tolerances] must be a table; it may be empty, for all parts")
        return mech
    problems += [f"tolerances: {p}" for n in table for p in unknown("entry", n, ("of", "brackets"))]
    if len(problems) > before:
        return mech
    try:
        return split(mech, *table.get("of", ()), brackets=table.get("brackets"))
    except (ValueError, TypeError) as error:
        problems.append(f"tolerances: {error}")
        return mech


def _inputs(table: Any, problems: Problems) -> dict[str, Any]:
    if not isinstance(table, Mapping) or not table:
        problems.append('[inputs] is missing: "points/p" = { distribution = "normal", … }')
        return {}
    inputs: dict[str, Any] = {}
    for name, entry in table.items():
        if not isinstance(entry, Mapping):
            inputs[name] = Input(nominal=entry)
            continue
        rest = dict(entry)
        about = {key: rest.pop(key) for key in ("nominal", "unit", "text") if key in rest}
        try:
            inputs[name] = Input(sampling.distribution_of(rest) if rest else None, **about)
        except ValueError as error:
            problems.append(f"inputs.{name}: {error}")
    return inputs


def _correlation(given: Any, problems: Problems) -> Any:
    """Rank correlations as ``[[name, name, number], …]``, or ``{ names, covariance }``."""
    if given is None:
        return None
    try:
        if isinstance(given, Mapping):
            return Covariance(given["names"], given["covariance"])
        return RankCorrelation([tuple(row) for row in given])
    except (ValueError, TypeError, KeyError) as error:
        problems.append(
            f"correlation: {error}; give [[name, name, rank correlation], …] or {{ names = […], "
            "covariance = [[…]] }"
        )
        return None


def _design(given: Any, folder: Path, problems: Problems) -> Any:
    rest = dict(given) if isinstance(given, Mapping) else {"design": given}
    if rest.get("design") == sampling.Given.kind and "file" in rest:
        rest["table"] = read_table(folder / rest.pop("file"), problems)
    try:
        return sampling.design_of(rest)
    except (TypeError, ValueError) as error:
        problems.append(f"design: {error}")
        return None


def read_table(path: Path, problems: Problems) -> dict[str, np.ndarray]:
    """The columns of a CSV file with a line of names."""
    try:
        rows = np.genfromtxt(path, delimiter=",", dtype=str, encoding="utf-8")
        names, numbers = [n.strip().strip('"') for n in rows[0]], rows[1:].astype(float)
    except (OSError, ValueError, IndexError) as error:
        problems.append(f"design: {path} is no table of numbers with a line of names: {error}")
        return {}
    return {name: numbers[:, k] for k, name in enumerate(names)}
