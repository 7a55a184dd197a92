"""Observables of forces and energies: elements, reactions, drives, holding efforts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxmbd.analysis import (
    Key,
    PointCoordinate,
    closure_error,
    held_name,
    is_angle,
    parse_known,
    point_of,
)
from jaxmbd.dynamics import kinetic_energy, potential_energy
from jaxmbd.graph import neutral, topology
from jaxmbd.model import (
    BaseCoupling,
    GearMesh,
    Joint,
    Measure,
    Mechanism,
    PointDrive,
    RackAndPinion,
    ToothForces,
)
from jaxmbd.observe.experiment import known_problems
from jaxmbd.observe.observable import Observable, Output
from jaxmbd.observe.points import AXES, axis_dims, axis_problems, component, of_axis
from jaxmbd.observe.snapshot import Snapshot
from jaxmbd.plumbing import unknown


def measure_table(mech: Mechanism, element: str) -> dict[str, Measure]:
    """The measures of a force element, of which only unit, text and shape mean something."""

    def found(mech: Mechanism) -> dict[str, Measure]:
        return Snapshot(mech, jnp.asarray(neutral(mech))).measures(element)

    return jax.eval_shape(found, mech)


@dataclass(frozen=True)
class Element(Observable):
    """A force, deflection or energy of a force element, by name.

    ``element_measures(mech, q)`` and the list in the message about an unknown name have all names:
    of a `SpringDamper` "force" (positive in tension), "spring", "damper", "extension", "rate",
    "length", "energy".

    Attributes:
        element: name of the force element.
        measure: name of the measure.
        axis: of a vector, "x", "y", "z", "norm", or None for all three components.

    Example:
        >>> from jaxmbd.observe import Element
        >>> (-Element("shock", "damper")).peak().how  # positive in compression
        'peak'
    """

    element: str
    measure: str = "force"
    axis: str | None = None

    def value(self, at: Snapshot) -> Array:
        x = jnp.asarray(at.measures(self.element)[self.measure].value, at.q.dtype)
        return component(x, self.axis) if x.ndim else x

    def about(self, mech: Mechanism) -> Output:
        found = measure_table(mech, self.element)[self.measure]
        text = f"{self.element}: {found.text}"
        if not found.value.shape:
            return Output(found.unit, text)
        return Output(found.unit, of_axis(text, self.axis), axis_dims(self.axis))

    def problems(self, mech: Mechanism) -> list[str]:
        if found := unknown("force element", self.element, mech.structure.forces):
            return found
        table = measure_table(mech, self.element)
        if found := unknown(f"measure of {self.element!r}", self.measure, table):
            return [f"{found[0]}; it has {list(table)}"]
        if self.axis is not None and not table[self.measure].value.shape:
            return [f"{self.measure} of {self.element!r} is a number; leave axis out"]
        return axis_problems(self.axis)


@dataclass(frozen=True)
class Reaction(Observable):
    """The reaction of a joint on its body b, about b's joint point, world axes.

    In a sweep or at rest it is the static one, for which no inertia counts: the idle spin of a link
    between two balls is held by a moment about their line. It is NaN, with the status SINGULAR,
    where a load acts along a motion of the loops that nothing holds. If redundant constraints
    leave a component indeterminate, it is that of least norm in the cut joints, so another choice
    of cuts gives another one, and the status is OK: `mobility` names the redundant rows, and
    `formulations.determinate_projections` says which components are unique.

    Attributes:
        joint: name of the joint; of a rod the force along it.
        part: "force" [N] or "moment" [N·m].
        axis: "x", "y", "z", "norm", or None for all three components.

    Example:
        >>> from jaxmbd.observe import Reaction
        >>> Reaction("sph_ua", axis="norm").peak().how
        'peak'
    """

    joint: str
    part: str = "force"
    axis: str | None = None

    def __post_init__(self) -> None:
        if self.part not in ("force", "moment"):
            raise ValueError(f"Reaction: part={self.part!r}; give 'force' or 'moment'")

    def value(self, at: Snapshot) -> Array:
        wrench = at.reactions[self.joint]
        return component(wrench[3:] if self.part == "force" else wrench[:3], self.axis)

    def about(self, mech: Mechanism) -> Output:
        unit = "N" if self.part == "force" else "N m"
        text = f"reaction {self.part} of {self.joint} on {mech.joints[self.joint].b}"
        return Output(unit, of_axis(text, self.axis), axis_dims(self.axis))

    def problems(self, mech: Mechanism) -> list[str]:
        found = unknown("joint", self.joint, [e.name for e in mech.structure.joints])
        return found + axis_problems(self.axis)


def is_rod(kind: type[Joint]) -> bool:
    """Whether a type of joint holds one distance, by a force along it."""
    return kind.closing == "distance"


@dataclass(frozen=True)
class AxialForce(Observable):
    """The force along a rod [N], positive in tension, as that of a `SpringDamper`.

    In a sweep or at rest it is the static one; `Reaction` says when it is not determined.

    Example:
        >>> from jaxmbd.observe import AxialForce
        >>> AxialForce("tierod").peak().how
        'peak'
    """

    rod: str

    def value(self, at: Snapshot) -> Array:
        return -at.effort(self.rod)

    def about(self, mech: Mechanism) -> Output:
        return Output("N", f"axial force of {self.rod}, positive in tension")

    def problems(self, mech: Mechanism) -> list[str]:
        return unknown("rod", self.rod, [e.name for e in mech.structure.joints if is_rod(e.kind)])


def is_contact(kind: type[Joint]) -> bool:
    """Whether a type of joint holds by one push between its bodies, at a surface."""
    return kind.rows == ("force",) and not is_rod(kind)


@dataclass(frozen=True)
class ContactForce(Observable):
    """The push of a on b along the normal of a contact [N]; a real one opens where it is negative.

    Of a cam and its follower, or of any joint that is one force row but a rod. In a sweep or at
    rest it is the static one; `Reaction` says when it is not determined.

    Example:
        >>> from jaxmbd.observe import ContactForce
        >>> ContactForce("contact").min().how
        'min'
    """

    joint: str

    def value(self, at: Snapshot) -> Array:
        return at.effort(self.joint)

    def about(self, mech: Mechanism) -> Output:
        return Output("N", f"push of {self.joint}, positive where it presses")

    def problems(self, mech: Mechanism) -> list[str]:
        contacts = [e.name for e in mech.structure.joints if is_contact(e.kind)]
        return unknown("contact", self.joint, contacts)


@dataclass(frozen=True)
class DriveEffort(Observable):
    """The effort of a drive of the mechanism [N·m or N], along its coordinate.

    Example:
        >>> from jaxmbd.observe import DriveEffort
        >>> DriveEffort("motor").peak().how
        'peak'
    """

    drive: str

    def value(self, at: Snapshot) -> Array:
        return at.effort(self.drive)

    def about(self, mech: Mechanism) -> Output:
        rows = topology(mech).layout[self.drive].rows
        turns = rows is not None and topology(mech).row_kinds[rows.start] == "moment"
        return Output("N m" if turns else "N", f"effort of {self.drive}")

    def problems(self, mech: Mechanism) -> list[str]:
        return unknown("drive", self.drive, [d[0] for d in mech.structure.drives])


@dataclass(frozen=True)
class ToothForce(Observable):
    """A part of the force [N] between the teeth of a `GearMesh`, or of a `RackAndPinion` as gear b.

    Attributes:
        mesh: name of the gear mesh, or of a rack and pinion with a pressure angle.
        part: "tangential" (on gear b, positive along the motion of gear a's teeth for a positive
            angle of its joint), "radial" (pushes the gears apart, never negative) or "axial" (on
            gear b along gear a's axis, of bevel gears along the common element of the cones).

    Example:
        >>> from jaxmbd.observe import ToothForce
        >>> ToothForce("first", "radial").peak().how
        'peak'
    """

    mesh: str
    part: str = "tangential"

    def value(self, at: Snapshot) -> Array:
        mesh: Any = at.mech.coupling(self.mesh)
        return getattr(mesh.tooth_forces(at.effort(self.mesh)), self.part)

    def about(self, mech: Mechanism) -> Output:
        return Output("N", f"{self.part} tooth force of {self.mesh}")

    def problems(self, mech: Mechanism) -> list[str]:
        meshes = [n for n, x in mech.couplings.items() if _has_teeth(x)]
        if isinstance(mech.couplings.get(self.mesh), RackAndPinion) and self.mesh not in meshes:
            return [f"'{self.mesh}' is a pure couple; give the RackAndPinion a pressure_angle"]
        found = unknown("gear mesh", self.mesh, meshes)
        if self.part not in ToothForces._fields:
            found.append(f"part={self.part!r}; give one of {list(ToothForces._fields)}")
        return found


def _has_teeth(coupling: BaseCoupling) -> bool:
    """Whether a coupling knows the force of its teeth."""
    rack = isinstance(coupling, RackAndPinion) and coupling.pressure_angle is not None
    return rack or isinstance(coupling, GearMesh)


def single_key(mech: Mechanism, coordinate: Any) -> Key:
    """A coordinate in the form of `assemble` as the key of one held coordinate."""
    return parse_known(mech, {coordinate: 0.0})[0][0]


@dataclass(frozen=True)
class HoldingEffort(Observable):
    """The effort [N·m or N] that holds a held coordinate, or drives a driven one, along it.

    Where other joints produce a driven motion (``Driven(actuated=…)``) it is that of one of them.

    Attributes:
        coordinate: one of the experiment's: a joint, ``(joint, i)``, or a `PointCoordinate` or
            `PointTravel`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.observe import HoldingEffort
        >>> height = mbd.PointTravel("upright", "wheel_centre", "z")
        >>> HoldingEffort(height).coordinate.axis
        'z'
    """

    coordinate: Any

    def value(self, at: Snapshot) -> Array:
        return at.holding(single_key(at.mech, self.coordinate))

    def about(self, mech: Mechanism) -> Output:
        key = single_key(mech, self.coordinate)
        linear = isinstance(key, PointCoordinate) or not is_angle(topology(mech), key)
        return Output("N" if linear else "N m", f"effort that holds {held_name(mech, key)}")

    def problems(self, mech: Mechanism) -> list[str]:
        return known_problems(mech, {self.coordinate: 0.0})


@dataclass(frozen=True)
class DrivingPower(Observable):
    """The power [W] of the effort that drives a coordinate, positive where it does work.

    Attributes:
        driven: a coordinate that the experiment drives or actuates, as of `HoldingEffort`, or the
            name of a drive of the mechanism.

    Example:
        >>> from jaxmbd.observe import DrivingPower
        >>> DrivingPower("crank").max().how
        'max'
    """

    driven: Any

    def value(self, at: Snapshot) -> Array:
        if not self._is_drive(at.mech):
            key = single_key(at.mech, self.driven)
            return at.holding(key) * _rate(at, key)
        drive = at.mech.drives[self.driven]
        if isinstance(drive, PointDrive):
            rate = at.motion.point(drive.body, drive.at)[1][drive.component]
        else:
            rate = _rate(at, single_key(at.mech, (drive.joint, drive.index)))
        return at.effort(self.driven) * rate

    def about(self, mech: Mechanism) -> Output:
        if self._is_drive(mech):
            return Output("W", f"power of {self.driven}")
        return Output("W", f"power that drives {held_name(mech, single_key(mech, self.driven))}")

    def problems(self, mech: Mechanism) -> list[str]:
        return [] if self._is_drive(mech) else known_problems(mech, {self.driven: 0.0})

    def _is_drive(self, mech: Mechanism) -> bool:
        return isinstance(self.driven, str) and self.driven in mech.drives


def _rate(at: Snapshot, key: Key) -> Array:
    """The speed of a held or driven coordinate [rad/s or m/s]."""
    if isinstance(key, PointCoordinate):
        return at.motion.point(key.body, point_of(key))[1][AXES.index(key.axis)]
    return at.v[topology(at.mech).layout[key.joint].v][key.index or 0]


@dataclass(frozen=True)
class Energy(Observable):
    """The energy of the whole mechanism [J].

    Attributes:
        kind: "kinetic", "potential" (weight and force elements) or "total".

    Example:
        >>> from jaxmbd.observe import Energy
        >>> Energy("total").span().how
        'span'
    """

    kind: str = "total"

    def value(self, at: Snapshot) -> Array:
        total = jnp.zeros((), at.q.dtype)
        if self.kind != "potential":
            total = total + kinetic_energy(at.mech, at.q, at.v)
        if self.kind != "kinetic":
            total = total + potential_energy(at.mech, at.q, at.t)
        return total

    def about(self, mech: Mechanism) -> Output:
        return Output("J", f"{self.kind} energy")

    def problems(self, mech: Mechanism) -> list[str]:
        if self.kind in ("kinetic", "potential", "total"):
            return []
        return [f"kind={self.kind!r}; give 'kinetic', 'potential' or 'total'"]


@dataclass(frozen=True)
class ClosureError(Observable):
    """The largest closure error [m; moment rows times the mechanism's length].

    Example:
        >>> from jaxmbd.observe import ClosureError
        >>> ClosureError().max().how
        'max'
    """

    def value(self, at: Snapshot) -> Array:
        return closure_error(at.motion)

    def about(self, mech: Mechanism) -> Output:
        return Output("m", "closure error")


@dataclass(frozen=True)
class Function(Observable):
    """Any function of a `Snapshot` that gives a number, or an array (3,).

    Attributes:
        function: of the snapshot: `at.mech`, `at.q`, `at.v`, `at.t`, `at.motion`, `at.reactions`,
            `at.measures(element)`, …; a function of a module, so that a study can be pickled.
        unit: SI unit of the result.
        text: what it is.
        vector: whether it has three components in world axes.

    Example:
        >>> from jaxmbd.observe import Function
        >>> Function(lambda at: at.q[0] ** 2, "rad^2", "square of the first angle").unit
        'rad^2'
    """

    function: Callable[[Snapshot], Any]
    unit: str = ""
    text: str = ""
    vector: bool = False

    def value(self, at: Snapshot) -> Array:
        return jnp.asarray(self.function(at))

    def about(self, mech: Mechanism) -> Output:
        text = self.text or getattr(self.function, "__name__", "a function")
        return Output(self.unit, text, ("axis",) if self.vector else ())
