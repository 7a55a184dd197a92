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
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd import sampling, zoo
from jaxmbd.campaign.experiment_tables import Problems, read_experiments
from jaxmbd.campaign.inputs import Input
from jaxmbd.campaign.study import Study
from jaxmbd.io import load
from jaxmbd.io.data_file import check_depth, read_toml
from jaxmbd.model import Mechanism
from jaxmbd.observe.names import unknown
from jaxmbd.sampling import Covariance, RankCorrelation
from jaxmbd.tolerances import split
from jaxmbd.variables import in_si, set_variables, variables

KEYS = (
    "format title samples seed design chunk mechanism tolerances inputs correlation experiment "
    "experiments"
).split()
DESIGNS: dict[str, type] = {
    cls.kind: cls
    for cls in (
        sampling.MonteCarlo,
        sampling.Sobol,
        sampling.LatinHypercube,
        sampling.Grid,
        sampling.FullFactorial,
        sampling.Given,
        sampling.Saltelli,
    )
}


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
        ... type = "Pose"
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
        """What a table says; values of which nothing can be made are a problem of that table."""
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
            inputs[name] = Input(sampling.distribution(rest) if rest else None, **about)
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
    kind = rest.pop("design", None)
    if found := unknown("design", kind, DESIGNS):
        problems += found
        return None
    if kind == sampling.Given.kind and "file" in rest:
        rest["table"] = read_table(folder / rest.pop("file"), problems)
    try:
        return DESIGNS[kind](**rest)
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
