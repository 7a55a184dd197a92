"""A mechanism as a readable table."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxmbd.model.numbers import ComRef, PointRef, Toward, is_concrete


def mechanism_table(mech: Any) -> str:
    """Bodies, joints, forces and hardpoints in the order of declaration."""
    s = mech.structure
    lines = [
        f"Mechanism: {len(s.bodies)} bodies, {len(s.joints)} joints, {len(s.forces)} forces; "
        f"gravity {_numbers(mech.gravity)} m/s²"
    ]
    lines += _section(
        ("body", "mass [kg]", "COM as drawn [m]", "inertia about COM, diagonal [kg m²]"),
        [
            (n, _numbers(b.mass), _point(b.com), _numbers(_diagonal(b.inertia)))
            for n, b in ((n, mech.bodies[n]) for n in s.bodies)
        ],
    )
    lines += _section(
        ("joint", "type", "a", "b", "at", "axis"),
        [
            (
                e.name,
                type(mech.joints[e.name]).__name__,
                e.a,
                e.b,
                " ".join(_point(p) for p in mech.joints[e.name].points.values()),
                " ".join(_axes(mech.joints[e.name])),
            )
            for e in s.joints
        ],
    )
    lines += _section(
        ("force", "type", "acts on", "numbers"),
        [
            (n, type(f).__name__, " ".join(f.bodies + f.joints), _fields(f))
            for n, f in ((n, mech.forces[n]) for n in s.forces)
        ],
    )
    lines += _section(
        ("coupling", "type", "couples", "numbers"),
        [
            (n, type(c).__name__, " ".join(f"{j}[{i}]" for j, i in c.terms), _fields(c))
            for n, c in ((n, mech.couplings[n]) for n, _ in s.couplings)
        ],
    )
    lines += _section(
        ("drive", "of", "function"),
        [(n, _driven(mech.drives[n]), _name(mech.drives[n].function)) for n, _, _ in s.drives],
    )
    lines += _section(("point", "as drawn [m]"), [(n, _numbers(mech.points[n])) for n in s.points])
    return "\n".join(lines)


def _driven(drive: Any) -> str:
    if hasattr(drive, "joint"):
        return f"{drive.joint}[{drive.index}]"
    return f"{drive.axis} of {_point(drive.at)} on {drive.body}"


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


_NAMES = ("a", "b", "joint", "joints", "joint_a", "joint_b", "pinion", "rack")


def _section(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    text = [
        "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip()
        for r in [head, *rows]
    ]
    return ["", text[0], "-" * len(text[0]), *text[1:]]


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
