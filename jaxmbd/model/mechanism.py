"""`Mechanism`: bodies, joints, forces and hardpoints as one pytree."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd.model.body import Body
from jaxmbd.model.drive import Drive
from jaxmbd.model.forces import ForceElement
from jaxmbd.model.joints import Joint
from jaxmbd.model.numbers import ComRef, PointRef, Toward, number
from jaxmbd.model.table import mechanism_table
from jaxmbd.model.validation import lacks_inertia, validate


class Edge(NamedTuple):
    """A joint as an edge of the graph."""

    name: str
    kind: type[Joint]
    a: str
    b: str


class Structure(NamedTuple):
    """The static part of a mechanism: everything but its numbers. Hashable."""

    bodies: tuple[str, ...]
    joints: tuple[Edge, ...]
    forces: tuple[str, ...]
    drives: tuple[tuple[str, str, int], ...]
    cut: tuple[str, ...] | None
    light: tuple[str, ...]
    """Bodies whose inertia is, or for all that is known may be, incomplete (massless links, point
    masses, traced numbers)."""
    points: tuple[str, ...]


class Mechanism(eqx.Module):
    """A mechanism, drawn in global coordinates.

    Its leaves are its numbers (they may be traced), its static part its topology. Coordinates
    given where a name could be become points named ``joint.at``, so every hardpoint is one leaf
    with a name, shared by all that meet there.

    Attributes:
        bodies: name to `Body`; ``"ground"`` is the fixed body and is not listed.
        joints: name to joint.
        forces: name to force element.
        drives: name to `Drive`.
        points: name to hardpoint as drawn, (3,) [m].
        gravity: (3,) [m/s²].
        structure: names, types and connectivity in the order of declaration.

    Raises:
        ValueError: lists all that is wrong with the description, each with its cure.

    Example:
        >>> import jaxmbd as mbd
        >>> pendulum = mbd.Mechanism(
        ...     bodies={"bob": mbd.Body(mass=1.0, com=(1, 0, 0))},
        ...     joints={"hinge": mbd.Revolute("ground", "bob", at=(0, 0, 0), axis=(0, 1, 0))},
        ... )
        >>> list(pendulum.points)
        ['hinge.at']
    """

    bodies: dict[str, Body]
    joints: dict[str, Joint]
    forces: dict[str, ForceElement]
    drives: dict[str, Drive]
    points: dict[str, Any]
    gravity: Any
    structure: Structure = eqx.field(static=True)

    def __init__(
        self,
        bodies: Mapping[str, Body],
        joints: Mapping[str, Joint],
        forces: Mapping[str, ForceElement] | None = None,
        drives: Mapping[str, Drive] | None = None,
        points: Mapping[str, Any] | None = None,
        gravity: Any = (0.0, 0.0, -9.81),
        cut: tuple[str, ...] | list[str] | str | None = None,
    ):
        bodies, joints = dict(bodies), dict(joints)
        forces, drives = dict(forces or {}), dict(drives or {})
        named = {name: number(x) for name, x in (points or {}).items()}
        gravity = number(gravity)
        cut = (cut,) if isinstance(cut, str) else None if cut is None else tuple(cut)
        validate(bodies, joints, forces, drives, named, gravity, cut)
        joints = _name_points(joints, named)
        forces = _name_points(forces, named)
        parts = (bodies, joints, forces, drives, named, gravity)
        dtype = _dtype(parts)
        self.bodies, self.joints, self.forces, self.drives, self.points, self.gravity = (
            _cast_all(part, dtype) for part in parts
        )
        self.structure = Structure(
            bodies=tuple(bodies),
            joints=tuple(Edge(n, type(j), j.a, j.b) for n, j in joints.items()),
            forces=tuple(forces),
            drives=tuple((n, d.joint, d.index) for n, d in drives.items()),
            cut=cut,
            light=tuple(n for n, body in bodies.items() if lacks_inertia(body)),
            points=tuple(named),
        )

    @property
    def dtype(self) -> Any:
        """The floating type of its numbers."""
        return jnp.result_type(self.gravity)

    def astype(self, dtype: Any) -> Mechanism:
        """The same mechanism with all its numbers in `dtype`."""
        return jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), self)

    def replace(self, **parts: Any) -> Mechanism:
        """A mechanism with some parts changed or added; names keep their order of declaration.

        Args:
            **parts: ``bodies=``, ``joints=``, ``forces=``, ``drives=``, ``points=`` are merged by
                name over what is there; ``gravity=`` and ``cut=`` replace it.

        Example:
            >>> import jaxmbd as mbd
            >>> m = mbd.zoo.simple_pendulum()
            >>> driven = m.replace(forces={"motor": mbd.JointTorque("hinge", torque=1.0)})
            >>> list(driven.forces)
            ['motor']
        """
        s = self.structure
        order = {
            "bodies": s.bodies,
            "joints": [e.name for e in s.joints],
            "forces": s.forces,
            "drives": [d[0] for d in s.drives],
            "points": s.points,
        }
        old = {key: {n: getattr(self, key)[n] for n in names} for key, names in order.items()}
        new: dict[str, Any] = {key: {**old[key], **parts.pop(key, {})} for key in order}
        new |= {"gravity": self.gravity, "cut": s.cut} | parts
        return Mechanism(**new)

    def point(self, ref: Any) -> Array:
        """Drawn coordinates (3,) [m] of a point given by name, reference or coordinates."""
        if isinstance(ref, str):
            ref = PointRef(ref)
        if isinstance(ref, PointRef):
            return jnp.asarray(self.points[ref.name])
        if isinstance(ref, ComRef):
            return self.com(ref.body)
        return jnp.asarray(ref)

    def joint(self, name: str) -> Joint:
        """A joint with its directions as components (3,), where they are given by two points."""
        joint = self.joints[name]
        refs = {f: getattr(joint, f) for f in joint.directions}
        refs = {f: r for f, r in refs.items() if isinstance(r, Toward)}
        if refs:
            joint = copy(joint)
            for field, ref in refs.items():
                value = self.point(ref.end) - self.point(ref.start)
                object.__setattr__(joint, field, value)
        return joint

    def com(self, body: str) -> Array:
        """Drawn centre of mass (3,) [m] of a body."""
        return self.point(self.bodies[body].com)

    def __repr__(self) -> str:
        return mechanism_table(self)

    __str__ = __repr__


def _name_points(elements: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Move literal coordinates into `named`, leaving references behind."""
    out = {}
    for name, element in elements.items():
        for field, value in element.points.items():
            if isinstance(value, (PointRef, ComRef)):
                continue
            key = f"{name}.{field}"
            named[key] = value
            element = eqx.tree_at(lambda e, f=field: getattr(e, f), element, PointRef(key))
        out[name] = element
    return out


def _dtype(parts: Any) -> Any:
    """float32 as soon as one number is given as a float32 array, else float64."""
    leaves = jax.tree_util.tree_leaves(parts)
    types = {np.dtype(getattr(x, "dtype", np.float64)) for x in leaves}
    if np.dtype(np.float32) in types:
        return np.dtype(np.float32)
    if not jax.config.read("jax_enable_x64"):
        raise ValueError(
            "this mechanism's numbers are float64, but JAX runs in 32 bits. Either switch on "
            "double precision before anything else, jax.config.update('jax_enable_x64', True), "
            "or ask for single precision by giving a number as a float32 array, for example "
            "gravity=jax.numpy.array([0, 0, -9.81], dtype='float32')"
        )
    return np.dtype(np.float64)


def _cast_all(part: Any, dtype: Any) -> Any:
    if isinstance(part, dict):  # tree_map would sort the names
        return {name: _cast_all(x, dtype) for name, x in part.items()}
    return jax.tree_util.tree_map(lambda x: _cast(x, dtype), part)


def _cast(x: Any, dtype: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x.astype(dtype)
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return np.asarray(x, dtype)
    return x.astype(dtype) if isinstance(x, jax.Array) else x
