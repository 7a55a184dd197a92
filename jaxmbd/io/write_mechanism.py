"""Write a mechanism to a JSON file, field by field: a new type needs no code here."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import equinox as eqx
import numpy as np
from jax.core import Tracer

from jaxmbd.io.files import replace_file
from jaxmbd.model import (
    ComRef,
    Drive,
    FunctionLaw,
    Joint,
    Mechanism,
    Part,
    PointRef,
    Toward,
    declared,
    is_concrete,
    is_registered,
    law_name,
)
from jaxmbd.plumbing import refuse

FORMAT = "jaxmbd-mechanism-1"
"""The format that files of mechanisms name first."""
PRECISIONS = ("float64", "float32")


class _Unsavable(Exception):
    """A value that cannot be written to a file; the text has the reason and the remedy."""


def save(mech: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a mechanism to a JSON file, from which `load` restores the same numbers bit by bit.

    Laws are written as their `register_law` names with their parameters, never pickled.

    Args:
        mech: one mechanism with known numbers (not traced, not a batch).
        path: the file; it is replaced only once the new text is complete.

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
    replace_file(path, _text(to_dict(mech)))


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
        "bodies": [_body(n, body, found) for n, body in own.bodies.items()],
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
    return _value(what, x, found)


def _body(name: str, body: Any, found: list[str]) -> dict[str, Any]:
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
            out[name] = _value(f"{what}: {name}", value, found)
    return out


def _value(what: str, value: Any, found: list[str]) -> Any:
    try:
        return _plain(value, what, found)
    except _Unsavable as error:
        found.append(f"{what} {error}")
        return None


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
        return _law(value, what, found)
    if isinstance(value, dict):
        if not all(isinstance(k, str) for k in value):
            raise _Unsavable("is a dictionary whose keys are not all strings; name them")
        return {"dict": {k: _value(f"{what}[{k!r}]", v, found) for k, v in value.items()}}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_value(f"{what}[{i}]", v, found) for i, v in enumerate(value)]}
    return _numbers(value)


def _numbers(value: Any) -> Any:
    if isinstance(value, Tracer):
        raise _Unsavable("is traced; save outside jit, vmap and grad, where it is a number")
    if not is_concrete(value):
        raise _Unsavable(f"is a {type(value).__name__}; a file holds numbers and registered laws")
    array = np.asarray(value, dtype=np.float64)
    if not np.all(np.isfinite(array)):
        raise _Unsavable("is not finite; JSON has no such number")
    return array.tolist()


def _law(value: Any, what: str, found: list[str]) -> dict[str, Any]:
    name = law_name(value)
    if name is None:
        thing = value.function if isinstance(value, FunctionLaw) else type(value)
        raise _Unsavable(_no_name(thing))
    fields = {} if isinstance(value, FunctionLaw) else _fields(what, value, found)
    return {"law": name, **fields}


def _no_name(thing: Any) -> str:
    called = getattr(thing, "__qualname__", repr(thing))
    return (
        f"uses {called}, which has no registered name, and functions are never pickled; "
        f"register it where it is defined: @jaxmbd.register_law('a_name')"
    )
