"""`Mechanism`: bodies, joints, forces and hardpoints as one pytree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from jaxmbd.model.body import Body, inertia_in_space, settled
from jaxmbd.model.coupling import BaseCoupling, Term
from jaxmbd.model.description import Description, is_planar
from jaxmbd.model.drive import Drive, PointDrive
from jaxmbd.model.forces import Armature, ForceElement
from jaxmbd.model.joints import Joint
from jaxmbd.model.joints.base import with_directions
from jaxmbd.model.numbers import ComRef, PointRef, changed, number, vector_in_space
from jaxmbd.model.part import Part
from jaxmbd.model.parts import merged
from jaxmbd.model.plausibility import warn_of_implausible
from jaxmbd.model.points import CheckedPoints, TablePoints, named_points, warn_of_new_points
from jaxmbd.model.table import mechanism_table
from jaxmbd.model.validation import check_dictionaries, validate
from jaxmbd.plumbing import meant, warn_user

_SWITCH = "jax.config.update('jax_enable_x64', True)"
_ASK = "for example a body's mass=jax.numpy.array(1.0, dtype='float32')"


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
    drives: tuple[tuple[str, str | None, int], ...]
    """Name, joint (None for a drive on a point), coordinate."""
    cut: tuple[str, ...] | None
    points: tuple[str, ...]
    planar: bool = False
    """Whether the mechanism is drawn in the plane xy, with points of two coordinates."""
    couplings: tuple[tuple[str, tuple[Term, ...]], ...] = ()
    """Name, and the coordinates that are coupled."""
    armatures: tuple[tuple[str, str], ...] = ()
    """Name and joint of each `Armature`, which keeps its joint in the tree."""


class Mechanism(Part):
    """A mechanism, drawn in global coordinates.

    A pytree whose leaves are its numbers (which may be traced) and whose static part is its
    topology. A hardpoint given by coordinates becomes a point named ``joint.at``, so that every
    hardpoint is one named leaf, shared by all elements that refer to it.

    If the points have two coordinates, the mechanism is planar: it lies in the plane xy, a
    `Revolute` turns about z and has no axis, directions and gravity have two components, an
    inertia is one number. Joints then have in-plane rows only, and motion out of the plane costs
    nothing; results still have three components (see `in_space`).

    Attributes:
        bodies: name to `Body`; ``"ground"`` is the fixed body and is not listed.
        joints: name to joint.
        forces: name to force element.
        drives: name to `Drive` or `PointDrive`.
        points: name to hardpoint as drawn, (3,) [m], or all (2,). Points that no element uses are
            kept for output (`point_position`).
        gravity: (3,) [m/s²], by default 9.81 along −z; in a planar mechanism (2,), along −y.
        couplings: name to `Gear`, `GearMesh`, `RackAndPinion` or `Coupling`.
        structure: names, types and connectivity in the order of declaration.

    Raises:
        ValueError: lists all problems of the description, each with its remedy.

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
    drives: dict[str, Drive | PointDrive]
    points: dict[str, Any]
    gravity: Any
    couplings: dict[str, BaseCoupling]
    structure: Structure = eqx.field(static=True)

    def __init__(
        self,
        bodies: Mapping[str, Body],
        joints: Mapping[str, Joint],
        forces: Mapping[str, ForceElement] | None = None,
        drives: Mapping[str, Drive | PointDrive] | None = None,
        points: Mapping[str, Any] | None = None,
        gravity: Any = None,
        cut: tuple[str, ...] | list[str] | str | None = None,
        couplings: Mapping[str, BaseCoupling] | None = None,
    ):
        cut = (cut,) if isinstance(cut, str) else None if cut is None else tuple(cut)
        check_dictionaries(
            bodies=bodies,
            joints=joints,
            forces=forces,
            drives=drives,
            points=points,
            couplings=couplings,
        )
        given = Description(
            dict(bodies),
            dict(joints),
            dict(forces or {}),
            dict(drives or {}),
            {name: number(x) for name, x in (points or {}).items()},
            gravity,
            cut,
            dict(couplings or {}),
        )
        planar = is_planar(given)
        if gravity is None:
            gravity = (0.0, -9.81) if planar else (0.0, 0.0, -9.81)
        given = given._replace(gravity=number(gravity))
        validate(given)
        named = dict(given.points)
        given = given._replace(
            bodies={n: settled(body, planar) for n, body in given.bodies.items()},
            joints=_name_points(given.joints, named),
            forces=_name_points(given.forces, named),
            drives=_name_points(given.drives, named),
            couplings=_name_points(given.couplings, named),
            points=named,
        )
        if not getattr(points, "image", False):
            earlier = getattr(points, "earlier", None)
            warn_of_implausible(given, earlier and declared(earlier))
        dtype = _dtype(given, given.gravity)
        self.bodies, self.joints, self.forces, self.drives, self.points, self.gravity = (
            _cast_all(part, dtype) for part in given[:6]
        )
        self.couplings = _cast_all(given.couplings, dtype)
        self.structure = Structure(
            bodies=tuple(given.bodies),
            joints=tuple(
                Edge(n, type(_form(j, planar)), j.a, j.b) for n, j in given.joints.items()
            ),
            forces=tuple(given.forces),
            drives=tuple(
                (n, None, d.component) if isinstance(d, PointDrive) else (n, d.joint, d.index)
                for n, d in given.drives.items()
            ),
            cut=cut,
            points=tuple(named),
            planar=planar,
            couplings=tuple((n, c.terms) for n, c in given.couplings.items()),
            armatures=tuple(
                (n, f.joint) for n, f in given.forces.items() if isinstance(f, Armature)
            ),
        )

    @property
    def dtype(self) -> Any:
        """The floating type of its numbers, as JAX computes with them."""
        dtype = jnp.result_type(self.gravity)
        if dtype != self.gravity.dtype:
            warn_user(
                "this mechanism's numbers are float64, but JAX runs in 32 bits and cuts them to "
                f"{dtype}. Switch on double precision before anything else, {_SWITCH}, or take "
                "mechanism.astype('float32') where single precision is meant"
            )
        return dtype

    def astype(self, dtype: Any) -> Mechanism:
        """The same mechanism with all its numbers in `dtype`."""
        return jax.tree_util.tree_map(lambda x: jnp.asarray(x, dtype), self)

    def replace(self, **parts: Any) -> Mechanism:
        """A mechanism with some parts changed, added or removed; names keep their order.

        Args:
            **parts: ``bodies=``, ``joints=``, ``forces=``, ``drives=``, ``points=``,
                ``couplings=`` are merged by name over what is there, where None removes a part;
                ``gravity=`` and ``cut=`` replace it. Points that were made of a part's literal
                coordinates go with the part. A warning names new points that no element uses.

        Raises:
            ValueError: a part to be removed is not there, or others still refer to it; points read
                from a table lack some of the mechanism's, or have another scale.

        Example:
            >>> import jaxmbd as mbd
            >>> m = mbd.zoo.simple_pendulum()
            >>> driven = m.replace(forces={"motor": mbd.JointTorque("hinge", torque=1.0)})
            >>> list(driven.forces), list(driven.replace(forces={"motor": None}).forces)
            (['motor'], [])
        """
        if isinstance(points := parts.get("points"), TablePoints):
            points.check(self.points, named_points(self))
        old = declared(self)._asdict()
        fixed = {kind: parts.pop(kind, old.pop(kind)) for kind in ("gravity", "cut")}
        new = merged(old, {kind: parts.pop(kind, None) or {} for kind in old}) | fixed
        elements = [part for kind, part in new.items() if kind != "points"]
        warn_of_new_points([n for n in new["points"] if n not in self.points], elements)
        new["points"] = CheckedPoints(new["points"], earlier=self)
        return Mechanism(**new, **parts)

    def point(self, ref: Any) -> Array:
        """Drawn coordinates (3,) [m] of a point given by name, reference or coordinates.

        Raises:
            ValueError: there is no point of that name.
        """
        if isinstance(ref, ComRef):
            return self.com(ref.body)
        name = ref.name if isinstance(ref, PointRef) else ref
        if isinstance(name, str):
            if name not in self.points:
                raise ValueError(f"there is no point {name!r}{meant(name, self.structure.points)}")
            ref = self.points[name]
        x = ref if isinstance(ref, Array) else jnp.asarray(ref)
        return vector_in_space(x) if self.structure.planar else x

    def joint(self, name: str) -> Joint:
        """A joint with directions as components; in a planar mechanism its planar form."""
        joint = with_directions(self.joints[name], self.point)
        return _form(joint, self.structure.planar)

    def coupling(self, name: str) -> BaseCoupling:
        """A coupling with all that it takes from the drawing."""
        coupling = self.couplings[name]
        return coupling.placed({n: self.joint(n) for n, _ in coupling.terms}, self.point)

    def com(self, body: str) -> Array:
        """Drawn centre of mass (3,) [m] of a body."""
        return self.point(self.bodies[body].com)

    def field(self) -> Array:
        """Gravity (3,) [m/s²]."""
        return vector_in_space(jnp.asarray(self.gravity))

    def inertia(self, body: str) -> Array:
        """Inertia (3, 3) [kg m²] of a body about its centre of mass, global axes as drawn."""
        return inertia_in_space(jnp.asarray(self.bodies[body].inertia))

    def __repr__(self) -> str:
        return mechanism_table(declared(self))

    __str__ = __repr__


def declared(mech: Mechanism) -> Description:
    """What a mechanism is made of, in the order of declaration."""
    s = mech.structure
    return Description(
        bodies={n: mech.bodies[n] for n in s.bodies},
        joints={e.name: mech.joints[e.name] for e in s.joints},
        forces={n: mech.forces[n] for n in s.forces},
        drives={n: mech.drives[n] for n, _, _ in s.drives},
        points={n: mech.points[n] for n in s.points},
        gravity=mech.gravity,
        cut=s.cut,
        couplings={n: mech.couplings[n] for n, _ in s.couplings},
    )


def _form(joint: Joint, planar: bool) -> Joint:
    """The joint, or in a planar mechanism its planar form, which validation has checked exists."""
    return (joint.in_plane() or joint) if planar else joint


def _name_points(elements: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Move literal coordinates into `named`, leaving references behind."""
    out = {}
    for name, element in elements.items():
        literal = {
            field: x for field, x in element.points.items() if not isinstance(x, (PointRef, ComRef))
        }
        named.update({f"{name}.{field}": x for field, x in literal.items()})
        references = {field: PointRef(f"{name}.{field}") for field in literal}
        replaced = getattr(element, "replaced_joint", None)
        if replaced is not None:
            references = {"replaced": changed(replaced, **references)}
        out[name] = changed(element, **references)
    return out


def _dtype(parts: Any, gravity: Any) -> Any:
    """float32 if any number is given as a float32 array, else float64."""
    leaves = jax.tree_util.tree_leaves(parts)
    single = [x for x in leaves if getattr(x, "dtype", None) == np.float32]
    if not single and not jax.config.read("jax_enable_x64"):
        raise ValueError(
            "this mechanism's numbers are float64, but JAX runs in 32 bits. Either switch on "
            f"double precision before anything else, {_SWITCH}, "
            f"or ask for single precision by giving a number as a float32 array, {_ASK}"
        )
    if not jax.config.read("jax_enable_x64") and gravity.dtype == np.float64:
        if all(isinstance(x, Tracer) for x in single):
            warn_user(
                "this mechanism computes in float32, only because numbers that are traced (by "
                "jit, vmap or grad) came so: JAX runs in 32 bits and cuts float64 arguments. "
                f"Switch on double precision before anything else, {_SWITCH}, "
                f"or ask for single precision, {_ASK}"
            )
    return np.dtype(np.float32 if single else np.float64)


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
