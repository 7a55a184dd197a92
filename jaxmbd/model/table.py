"""A mechanism as a readable table."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxmbd.model.description import Description
from jaxmbd.model.numbers import ComRef, PointRef, Toward, is_concrete
from jaxmbd.plumbing import text_table


def mechanism_table(own: Description) -> str:
    """Bodies, joints, forces and hardpoints in the order of declaration."""
    bodies, joints, forces, drives, points, gravity, _, couplings = own
    owner = {ref.name: n for n, b in bodies.items() for ref in b.markers or ()}
    points_head = ("point", "as drawn [m]", *(["of body"] if owner else []))
    sections: dict[tuple[str, ...], list[tuple[str, ...]]] = {
        ("body", "mass [kg]", "COM as drawn [m]", "inertia about COM, diagonal [kg m²]"): [
            (n, _numbers(b.mass), _point(b.com), _numbers(_diagonal(b.inertia)))
            for n, b in bodies.items()
        ],
        ("joint", "type", "a", "b", "at", "axis"): [
            (n, _type(j), j.a, j.b, " ".join(map(_point, j.points.values())), " ".join(_axes(j)))
            for n, j in joints.items()
        ],
        ("force", "type", "acts on", "numbers"): [
            (n, _type(f), " ".join(f.bodies + f.joints), _fields(f)) for n, f in forces.items()
        ],
        ("coupling", "type", "couples", "numbers"): [
            (n, _type(c), " ".join(f"{j}[{i}]" for j, i in c.terms), _fields(c))
            for n, c in couplings.items()
        ],
        ("drive", "of", "function"): [
            (n, _driven(d), _name(d.function)) for n, d in drives.items()
        ],
        points_head: [
            (n, _numbers(x), *([owner.get(n, "")] if owner else [])) for n, x in points.items()
        ],
    }
    head = (
        f"Mechanism: {len(bodies)} bodies, {len(joints)} joints, {len(forces)} forces; "
        f"gravity {_numbers(gravity)} m/s²"
    )
    tables = [text_table(x, rows, range(len(x))) for x, rows in sections.items() if rows]
    return "\n\n".join([head, *tables])


def _type(element: Any) -> str:
    return type(element).__name__


def _driven(drive: Any) -> str:
    if hasattr(drive, "joint"):
        return f"{drive.joint}[{drive.index}]"
    return f"{drive.axis} of {_point(drive.at)} on {drive.body}"


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


_NAMES = ("a", "b", "joint", "joints", "joint_a", "joint_b", "pinion", "rack")


def _numbers(x: Any) -> str:
    if not is_concrete(x):
        return str(getattr(x, "aval", x))
    x = np.asarray(x)
    return f"{x:.6g}" if x.ndim == 0 else "(" + ", ".join(f"{y:.6g}" for y in x.ravel()) + ")"


def _diagonal(inertia: Any) -> Any:
    return np.diagonal(inertia) if is_concrete(inertia) and np.ndim(inertia) == 2 else inertia


def _point(ref: Any) -> str:
    if isinstance(ref, PointRef):
        return ref.name
    return f"COM of {ref.body}" if isinstance(ref, ComRef) else _numbers(ref)


def _axes(joint: Any) -> list[str]:
    values = [(f, getattr(joint, f)) for f in joint.directions]
    texts = [(f, _direction(v)) for f, v in values if v is not None]
    return [text if f == "axis" else f"{f}={text}" for f, text in texts]


def _direction(x: Any) -> str:
    return f"{x.start} -> {x.end}" if isinstance(x, Toward) else _numbers(x)


def _law(value: Any) -> str:
    function = getattr(value, "function", None)
    return type(value).__name__ if function is None else getattr(function, "__name__", "law")


def _fields(element: Any) -> str:
    parts = []
    for field in dataclasses.fields(element):
        name, value = field.name, getattr(element, field.name)
        if name in _NAMES or isinstance(value, PointRef) or value is None:
            continue
        if hasattr(value, "__qualname__"):
            parts.append(f"{name}={_name(value)}")
            continue
        if not jax.tree_util.all_leaves([value]):
            parts.append(f"{name}={_law(value)}")
        elif isinstance(value, (str, int)):
            parts.append(f"{name}={value}")
        else:
            parts.append(f"{name}={_numbers(value)}")
    return " ".join(parts)
