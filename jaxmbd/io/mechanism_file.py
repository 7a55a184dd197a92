"""Mechanisms as JSON files, field by field: a new type needs no code here.

Numbers are written with the digits that restore their bits; files are read with all their problems
in one message.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from jax.core import Tracer

from jaxmbd.io.files import check_depth, read_json, replace_file
from jaxmbd.model import (
    COUPLING_TYPES,
    DRIVE_TYPES,
    FORCE_TYPES,
    JOINT_TYPES,
    LAWS,
    Body,
    ComRef,
    Description,
    Drive,
    Fixed,
    FunctionLaw,
    Joint,
    Mechanism,
    Part,
    PointRef,
    Toward,
    declared,
    description_problems,
    is_concrete,
    is_planar,
    is_registered,
    law_name,
    problems_text,
)
from jaxmbd.plumbing import meant, refuse

FORMAT = "jaxmbd-mechanism-1"
"""The format that files of mechanisms name first."""
PRECISIONS = ("float64", "float32")


class _Refused(Exception):
    """A value that cannot be written or read; the text has the reason and the remedy."""


def attempt(what: str, convert: Callable[[], Any], problems: list[str]) -> Any:
    """The result of `convert`; None, and a line in `problems`, if the value is refused."""
    try:
        return convert()
    except _Refused as error:
        problems.append(f"{what} {error}")
        return None


def save(
    mech: Mechanism, path: str | os.PathLike[str], *, notes: dict[str, Any] | None = None
) -> None:
    """Write a mechanism to a JSON file, from which `load` restores the same numbers bit by bit.

    Laws are written as their `register_law` names with their parameters, never pickled.

    Args:
        mech: one mechanism with known numbers (not traced, not a batch).
        path: the file; it is replaced only once the new text is complete.
        notes: what else the file is to hold, as JSON values by name, for `load_notes`.

    Raises:
        ValueError: lists what cannot be saved, each part with the remedy.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> mech = mbd.Mechanism(
        ...     bodies={"bob": mbd.Body(mass=1.0, com=(1, 0, 0))},
        ...     joints={"hinge": mbd.Revolute("ground", "bob", at=(0, 0, 0), axis=(0, 1, 0))},
        ... )
        >>> from jaxmbd.io import load, save
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(mech, f"{folder}/pendulum.json")
        ...     again = load(f"{folder}/pendulum.json")
        >>> again.structure == mech.structure
        True
    """
    replace_file(path, _text(to_dict(mech) | ({"notes": notes} if notes else {})))


def _text(data: dict[str, Any]) -> str:
    """JSON with one body, joint, force or point per line."""
    parts = []
    for key, value in data.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines = ",\n".join("  " + json.dumps(item, allow_nan=False) for item in value)
            parts.append(f" {json.dumps(key)}: [\n{lines}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def to_dict(mech: Mechanism) -> dict[str, Any]:
    """The mechanism as dictionaries, lists, numbers and strings, ready for `json.dumps`.

    Numbers are Python floats, whose decimal text restores the same bits, for float32 too. Bodies,
    joints, forces, drives, couplings and points are lists of objects with a ``"name"``, in the
    order of declaration. Types are written by class name, points by name, a direction between two
    points by their names, laws and other functions by their `register_law` names.

    Raises:
        ValueError: lists all that cannot be saved (a law or drive whose function has no
            registered name, traced or batched numbers), each with its remedy.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.io import to_dict
        >>> to_dict(mbd.zoo.simple_pendulum())["joints"][0]["type"]
        'Revolute'
    """
    found: list[str] = []
    precision = str(np.dtype(mech.dtype))
    if precision not in PRECISIONS:
        found.append(f"its numbers are {precision}; convert them first: mech.astype('float32')")
    own, vector = declared(mech), (2,) if mech.structure.planar else (3,)
    data = {
        "format": FORMAT,
        "dtype": precision,
        "gravity": _checked("gravity", mech.gravity, vector, found),
        "points": [
            {"name": n, "at": _checked(f"point '{n}'", x, vector, found)}
            for n, x in own.points.items()
        ],
        "bodies": [_written_body(n, body, found) for n, body in own.bodies.items()],
        "joints": [_element("joint", n, x, found) for n, x in own.joints.items()],
        "forces": [_element("force", n, x, found) for n, x in own.forces.items()],
        "drives": [_drive(n, x, found) for n, x in own.drives.items()],
        "couplings": [_element("coupling", n, x, found) for n, x in own.couplings.items()],
    }
    if own.cut is not None:
        data["cut"] = list(own.cut)
    refuse("this mechanism cannot be saved", found)
    return data


def _checked(what: str, x: Any, shape: tuple[int, ...], found: list[str]) -> Any:
    """The numbers of `x`, which must have the shape of one mechanism, not of a batch."""
    if getattr(x, "shape", shape) != shape:
        found.append(
            f"{what} has shape {x.shape} where one mechanism has {shape}; a batch is saved one by "
            "one: save(jax.tree.map(lambda x: x[i], mechs), path)"
        )
        return None
    return _written(what, x, found)


def _written_body(name: str, body: Any, found: list[str]) -> dict[str, Any]:
    what = f"body '{name}'"
    _checked(f"{what}: mass", body.mass, (), found)
    return {"name": name, **_fields(what, body, found)}


def _element(kind: str, name: str, element: Any, found: list[str]) -> dict[str, Any]:
    return {"name": name, **_typed(f"{kind} '{name}'", element, found)}


def _typed(what: str, element: Any, found: list[str]) -> dict[str, Any]:
    kind = type(element).__name__
    if not is_registered(element):
        found.append(
            f"{what} is a {kind}, which files do not know; put @jaxmbd.register_type over the class"
        )
    return {"type": kind, **_fields(what, element, found)}


def _drive(name: str, drive: Any, found: list[str]) -> dict[str, Any]:
    """A drive; one on a joint has no "type", as in older files."""
    element = _element("drive", name, drive, found)
    if element["type"] == Drive.__name__:
        del element["type"]
    return element


def _fields(what: str, module: Any, found: list[str]) -> dict[str, Any]:
    """Field name to value; fields that are None are omitted, functions are written by name."""
    out: dict[str, Any] = {}
    for field in dataclasses.fields(module):
        name, value = field.name, getattr(module, field.name)
        if field.metadata.get("function"):
            out[name] = law_name(FunctionLaw(value))
            if out[name] is None:
                found.append(f"{what}: {_no_name(value)}")
        elif value is not None:
            out[name] = _written(f"{what}: {name}", value, found)
    return out


def _written(what: str, value: Any, found: list[str]) -> Any:
    return attempt(what, lambda: _plain(value, what, found), found)


def _plain(value: Any, what: str, found: list[str]) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, PointRef):
        return value.name
    if isinstance(value, Toward):
        return [value.start, value.end]
    if isinstance(value, ComRef):
        return {"com_of": value.body}
    if isinstance(value, Joint):
        return _typed(what, value, found)
    if isinstance(value, (Part, eqx.Module)):
        return _written_law(value, what, found)
    if isinstance(value, dict):
        if not all(isinstance(k, str) for k in value):
            raise _Refused("is a dictionary whose keys are not all strings; name them")
        return {"dict": {k: _written(f"{what}[{k!r}]", v, found) for k, v in value.items()}}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_written(f"{what}[{i}]", v, found) for i, v in enumerate(value)]}
    return _numbers(value)


def _numbers(value: Any) -> Any:
    if isinstance(value, Tracer):
        raise _Refused("is traced; save outside jit, vmap and grad, where it is a number")
    if not is_concrete(value):
        raise _Refused(f"is a {type(value).__name__}; a file holds numbers and registered laws")
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise _Refused("is not finite; JSON has no such number")
    return array.tolist()


def _written_law(value: Any, what: str, found: list[str]) -> dict[str, Any]:
    name = law_name(value)
    if name is None:
        thing = value.function if isinstance(value, FunctionLaw) else type(value)
        raise _Refused(_no_name(thing))
    fields = {} if isinstance(value, FunctionLaw) else _fields(what, value, found)
    return {"law": name, **fields}


def _no_name(thing: Any) -> str:
    called = getattr(thing, "__qualname__", repr(thing))
    return (
        f"uses {called}, which has no registered name, and functions are never pickled; "
        f"register it where it is defined: @jaxmbd.register_law('a_name')"
    )


def _read_typed(types: dict[str, type], noun: str) -> Callable[..., Any]:
    def read(what: str, fields: dict[str, Any], dtype: Any, problems: list[str]) -> Any:
        kind = fields.pop("type", None)
        if not isinstance(kind, str) or kind not in types:
            found = (
                'has no "type"'
                if kind is None
                else f"has the unknown type {kind!r}{meant(kind, types)}"
            )
            problems.append(f"{what} {found}; {noun} types: {list(types)}")
            return None
        return _build(what, types[kind], fields, dtype, problems)

    return read


def _read_body(what: str, fields: dict[str, Any], dtype: Any, problems: list[str]) -> Any:
    if isinstance(fields.get("com"), dict):
        problems.append(f"{what}: com is an object; give 3 coordinates, or the name of a point")
        return None
    return _build(what, Body, fields, dtype, problems)


def _read_point(what: str, fields: dict[str, Any], dtype: Any, problems: list[str]) -> Any:
    if set(fields) != {"at"}:
        problems.append(f'{what} must have "at" with its 3 coordinates, and nothing else')
        return None
    return attempt(what, lambda: numbers(fields["at"], dtype), problems)


def _read_drive(what: str, fields: dict[str, Any], dtype: Any, problems: list[str]) -> Any:
    return _read_typed(DRIVE_TYPES, "drive")(
        what, {"type": Drive.__name__, **fields}, dtype, problems
    )


def _build(what: str, cls: type, given: dict[str, Any], dtype: Any, problems: list[str]) -> Any:
    """`cls` from its fields by name; None if there is a problem."""
    before = len(problems)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    values = {}
    for name, value in given.items():
        if name not in fields:
            problems.append(
                f"{what}: {cls.__name__} has no {name!r}{meant(name, fields)}; its fields: "
                f"{list(fields)}"
            )
            continue
        static = fields[name].metadata.get("static", False)
        reader = _static if static else _value
        values[name] = attempt(
            f"{what}: {name}", lambda r=reader, v=value, f=fields[name]: r(v, f, dtype), problems
        )
    missing = [n for n in _required(cls) if n not in given]
    if missing:
        problems.append(f"{what}: {cls.__name__} needs {', '.join(missing)}; add to its object")
    if len(problems) > before:
        return None
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        problems.append(f"{what}: {error}")
        return None


def _required(cls: type) -> list[str]:
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in parameters if p.default is p.empty and p.kind in kinds]


def _static(value: Any, field: Any, dtype: Any) -> Any:
    if field.metadata.get("function"):
        if not isinstance(value, str) or value not in LAWS:
            raise _Refused(_unknown_law(value))
        return LAWS[value]
    wanted = {"str": str, "int": int, "bool": bool}.get(
        str(getattr(field.type, "__name__", field.type))
    )
    if wanted is not None and type(value) is not wanted:
        raise _Refused(f"is {value!r}; expected {wanted.__name__}")
    return _tuples(value)


def _tuples(value: Any) -> Any:
    """Lists, and tuples in their written form, as tuples."""
    if isinstance(value, dict) and set(value) == {"tuple"}:
        value = value["tuple"]
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def _value(value: Any, field: Any, dtype: Any) -> Any:
    if value is None:
        return None
    if field.name == "law" and not (isinstance(value, dict) and "law" in value):
        raise _Refused(f'is {value!r:.60}; give an object with "law", the name of one')
    if isinstance(value, str):
        return PointRef(value)
    if isinstance(value, list) and len(value) == 2 and all(isinstance(n, str) for n in value):
        return Toward(*value)
    if not isinstance(value, dict):
        return numbers(value, dtype)
    if "law" in value:
        return _law(value, dtype)
    if "type" in value:
        return _nested_joint(value, dtype)
    if set(value) == {"com_of"} and isinstance(value["com_of"], str):
        return ComRef(value["com_of"])
    if set(value) == {"dict"} and isinstance(value["dict"], dict):
        return {k: _value(v, field, dtype) for k, v in value["dict"].items()}
    for kind, make in (("tuple", tuple), ("list", list)):
        if set(value) == {kind} and isinstance(value[kind], list):
            return make(_value(v, field, dtype) for v in value[kind])
    raise _Refused(
        f"is an object with {sorted(value)}; expected numbers, the name of a point, or an object "
        'with "law", "type", "com_of", "dict", "tuple" or "list"'
    )


def numbers(value: Any, dtype: Any) -> np.ndarray:
    """`value`, a number or nested lists of them, as an array."""

    def check(x: Any) -> None:
        if isinstance(x, list):
            for y in x:
                check(y)
        elif isinstance(x, bool) or not isinstance(x, (int, float, np.number)):
            raise _Refused(f"holds {x!r} where a number belongs")

    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, tuple):
        value = list(value)
    check(value)
    try:
        return np.asarray(value, dtype=dtype)
    except ValueError:
        raise _Refused("has rows of different lengths") from None
    except OverflowError:
        raise _Refused("holds an integer larger than any floating-point number") from None


def _nested_joint(value: dict[str, Any], dtype: Any) -> Any:
    problems: list[str] = []
    joint = PARTS["joints"][1]("a joint", dict(value), dtype, problems)
    if problems:
        raise _Refused("holds " + "; ".join(problems))
    return joint


def _law(value: dict[str, Any], dtype: Any) -> Any:
    name = value["law"]
    if not isinstance(name, str) or name not in LAWS:
        raise _Refused(_unknown_law(name))
    thing = LAWS[name]
    parameters = {k: v for k, v in value.items() if k != "law"}
    if not (isinstance(thing, type) and issubclass(thing, (Part, eqx.Module))):
        if parameters:
            raise _Refused(
                f"law {name!r} is a function without parameters; remove {list(parameters)}"
            )
        return FunctionLaw(thing)
    problems: list[str] = []
    built = _build(f"law {name!r}", thing, parameters, dtype, problems)
    if problems:
        raise _Refused("; ".join(problems))
    return built


def _unknown_law(name: Any) -> str:
    return (
        f"names the law {name!r}{meant(str(name), LAWS)}, which is not registered; import the code "
        f"that defines it with @jaxmbd.register_law({name!r}) before loading; known: {sorted(LAWS)}"
    )


PARTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "bodies": ("body", _read_body),
    "joints": ("joint", _read_typed(JOINT_TYPES, "joint")),
    "forces": ("force", _read_typed(FORCE_TYPES, "force")),
    "drives": ("drive", _read_drive),
    "points": ("point", _read_point),
    "couplings": ("coupling", _read_typed(COUPLING_TYPES, "coupling")),
}
"""Each list's kind of part, and what reads one of them."""
KEYS = ("format", "dtype", "gravity", "cut", "notes", *PARTS)


def load(path: str | os.PathLike[str]) -> Mechanism:
    """Read a mechanism that `save` wrote, or that was written by hand in the same form.

    Raises:
        ValueError: names the file and lists all its problems, each with the part and the remedy.
        FileNotFoundError: there is no such file.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mbd.save(mbd.zoo.rssr(), f"{folder}/rssr.json")
        ...     again = mbd.load(f"{folder}/rssr.json")
        >>> again.structure == mbd.zoo.rssr().structure
        True
    """
    path = Path(path)
    repeated: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [k for k, _ in pairs]
        name = dict(pairs).get("name")
        repeated.extend(
            f"the object{f' of {name!r}' if name else ''} gives {k!r} twice; keep one of them"
            for k in dict.fromkeys(keys)
            if keys.count(k) > 1
        )
        return dict(pairs)

    data = read_json(path, unique)
    return from_dict(data, source=str(path), found=repeated)


def from_dict(
    data: dict[str, Any], *, source: str = "this data", found: Iterable[str] = ()
) -> Mechanism:
    """The mechanism that `to_dict` wrote.

    Args:
        data: see `to_dict`; an omitted field takes its type's default.
        source: the name of `data` in messages.
        found: earlier problems, reported with the others.

    Raises:
        ValueError: lists all problems, each with the part and the remedy.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.io import from_dict, to_dict
        >>> mech = mbd.zoo.four_bar()
        >>> from_dict(to_dict(mech)).structure == mech.structure
        True
    """
    problems = list(found)
    if not isinstance(data, dict):
        raise ValueError(f"{source} holds a {type(data).__name__}; a mechanism is an object")
    check_depth(data, source)
    _check_head(data, problems)
    dtype = np.dtype(data["dtype"]) if data.get("dtype") in PRECISIONS else np.dtype(np.float64)
    broken: set[str] = set()
    parts = {key: _part(key, data.get(key, []), dtype, problems, broken) for key in PARTS}
    gravity = data.get("gravity")
    if gravity is not None:
        gravity = attempt("gravity", lambda: numbers(data["gravity"], dtype), problems)
    cut = data.get("cut")
    if cut is not None and not (isinstance(cut, list) and all(isinstance(n, str) for n in cut)):
        problems.append(f"'cut' is {cut!r}; give a list of joint names, or leave it out")
        cut = None
    if problems:
        problems += _model_problems(parts, gravity, cut, broken)
        raise ValueError(problems_text(f"{source} has", problems))
    try:
        return Mechanism(**parts, gravity=gravity, cut=cut)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _check_head(data: dict[str, Any], problems: list[str]) -> None:
    if data.get("format") != FORMAT:
        hint = (
            "; it looks like a reference mechanism: use read_gt_mech"
            if "mechanism" in data or str(data.get("format", "")).startswith("gt-mech")
            else ""
        )
        problems.append(f"'format' is {data.get('format')!r}; expected {FORMAT!r}{hint}")
    if data.get("dtype", "float64") not in PRECISIONS:
        problems.append(f"'dtype' is {data['dtype']!r}; expected one of {list(PRECISIONS)}")
    for key in data:
        if key not in KEYS:
            problems.append(f"unknown entry {key!r}{meant(key, KEYS)}; known: {list(KEYS)}")


def _part(
    key: str, entries: Any, dtype: Any, problems: list[str], broken: set[str]
) -> dict[str, Any]:
    """Name to object of one list; unreadable entries are replaced by stand-ins, in `broken`."""
    kind, read = PARTS[key]
    if not isinstance(entries, list):
        problems.append(f"'{key}' must be a list of objects, each with a \"name\"")
        return {}
    out: dict[str, Any] = {}
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            problems.append(f'{key}[{i}] must be an object with a "name" (a string)')
            continue
        name = entry["name"]
        if name in out:
            first = next(j for j, e in enumerate(entries) if e.get("name") == name)
            problems.append(
                f"{kind} '{name}' is given twice ({key}[{first}] and {key}[{i}]); two "
                f"{key} may not share a name: rename or remove one"
            )
            continue
        before = len(problems)
        fields = {k: v for k, v in entry.items() if k != "name"}
        out[name] = read(f"{kind} '{name}'", fields, dtype, problems)
        if len(problems) > before or out[name] is None:
            broken.add(name)
            out[name] = _stand_in(key, name, fields)
    return out


def _stand_in(key: str, name: str, fields: dict[str, Any]) -> Any:
    """A valid object in place of an unreadable entry, so that the others can be checked.

    It contains no point coordinates, so that it fits planar and spatial mechanisms.
    """
    if key == "bodies":
        return Body(com=ComRef(name))
    if key == "joints" and isinstance(fields.get("a"), str) and isinstance(fields.get("b"), str):
        return Fixed(fields["a"], fields["b"], at=ComRef(fields["b"]))
    return None


def _model_problems(
    parts: dict[str, dict[str, Any]], gravity: Any, cut: Any, broken: set[str]
) -> list[str]:
    """Validation problems of the readable rest, without those caused by unreadable entries."""
    present = {
        key: {n: x for n, x in entries.items() if x is not None} for key, entries in parts.items()
    }
    given = Description(**present, gravity=gravity, cut=None if cut is None else tuple(cut))
    if gravity is None:
        given = given._replace(gravity=np.zeros(2 if is_planar(given) else 3))
    lost = {n for key in PARTS for n in parts[key] if n not in present[key]}
    loose = "is not connected to the ground" if lost & parts["joints"].keys() else None
    return [
        problem
        for problem in description_problems(given)
        if not any(f"'{n}'" in problem for n in broken | lost)
        and not (loose is not None and loose in problem)
    ]
