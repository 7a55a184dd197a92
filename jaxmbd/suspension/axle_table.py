"""Tables of an axle on a rig: heave, roll, opposite travel, steering, and any sequence of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxmbd.analysis import Key, Status
from jaxmbd.model import Mechanism
from jaxmbd.observe import (
    Axis,
    Curves,
    Declaration,
    Experiment,
    Sweep,
    called,
    stays_open,
)
from jaxmbd.plumbing import unknown
from jaxmbd.suspension.axle_characteristics import (
    AXLE_CHARACTERISTICS,
    AxleCharacteristic,
    axle_names,
)
from jaxmbd.suspension.carried_load import warn_of_pull
from jaxmbd.suspension.corner import Corner
from jaxmbd.suspension.kinematics_table import Kinematics, failure_text
from jaxmbd.suspension.motions import held_joints
from jaxmbd.suspension.reachable_travel import reach_text
from jaxmbd.suspension.rig import RIG, corner_pair, on_rig
from jaxmbd.variables import shown

Values = float | Sequence[float]
Load = Sequence[float] | Mapping[str, Sequence[float]] | None
LOADS = {
    "lateral": Axis((), "N", "side force on a contact, positive: to the left"),
    "braking": Axis((), "N", "braking force on a contact, positive: rearwards"),
    "driving": Axis((), "N", "driving force on a contact, positive: forwards"),
    "aligning": Axis(
        (), "N m", "moment on a contact about the road's normal, positive: to the left"
    ),
}
"""Loads of an event, with unit and sign."""
_STRAIGHT = 1e-12
"""How far moved coordinates may be off a straight line, as a share of their largest value."""


@dataclass(frozen=True)
class _Course(Sweep):
    """A sweep whose axis need not be one of the coordinates that it moves."""

    places: Axis = Axis(())  # noqa: RUF009, never changed

    __hash__ = Experiment.__hash__

    def axis_values(self, mech: Mechanism) -> Axis:
        """The places of the event."""
        return self.places


@dataclass(frozen=True)
class AxleSweep(Sweep):
    """A sweep of an axle on its rig, as a function of the axle itself.

    Attributes:
        over, observe, dim, known, settle, inputs: those of `Sweep`, on `on_rig`'s mechanism.
        corners: roles of the left and the right wheel.
        steer: travel at which the rack is held, where there is one [m].
        tyre_rate: vertical stiffness of a tyre [N/m], or None for rigid wheels.
        places: values of the axis, where they are not those of the first that moves.

    Events of as many places are one structure, whichever coordinates of the rig and the rack move:
    their numbers share a compiled program (`split`).

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> car = suspension.axle(mbd.zoo.double_wishbone_kinematic(), shared=["rack"])
        >>> roles = suspension.axle_corners(
        ...     car, suspension.zoo_corner("double_wishbone_kinematic"))
        >>> sweep = suspension.axle_sweep(roles, roll=[0.0, 0.02], observe=["track"])
        >>> sweep(car)["track"].shape
        (2,)
    """

    corners: tuple[Corner, ...] = ()
    steer: float = 0.0
    tyre_rate: float | tuple[float, float] | None = None
    places: Any = None

    __hash__ = Experiment.__hash__

    def on(self, car: Mechanism) -> tuple[Sweep, Mechanism]:
        """The plain sweep and the axle on its rig."""
        known: dict[Any, Any] = {}
        for corner in self.corners:
            known |= held_joints(car, corner)
            if corner.slides(car) and corner.steering not in self.over:
                known[corner.steering] = self.steer
        known |= dict(self.known)
        rig = on_rig(car, self.corners, tyre_rate=self.tyre_rate)
        return Sweep(self.over, self.observe, self.dim, known, self.settle, self.inputs), rig

    def _course(self, car: Mechanism) -> tuple[Sweep, Mechanism]:
        """The sweep in which all coordinates of the rig and the racks move, and the axle on it."""
        sweep, rig = self.on(car)
        fixed = [c.steering for c in self.corners if not c.slides(car)]
        moved, rest = self._moved(dict(sweep.known) | dict(sweep.over))
        over = {joint: x for joint, x in moved.items() if joint not in fixed}
        observed: Any = dict(observe=self.observe, dim=self.dim, inputs=self.inputs)
        places = self.axis_values(car)
        return _Course(over, known=rest, settle=self.settle, places=places, **observed), rig

    def _moved(self, given: Mapping[Any, Any]) -> tuple[dict[str, Any], dict[Any, Any]]:
        """Values (n,) of the rig's coordinates and of racks in one order, and what else is held."""
        joints = (*RIG.values(), *dict.fromkeys(c.steering for c in self.corners))
        count, rest = len(self.kept()), dict(given)
        moved = {str(j): rest.pop(j) for j in joints if j in given}

        def everywhere(x: Any) -> Any:
            return jnp.full(count, x) if isinstance(x, Tracer) else (x,) * count

        return {j: x if np.ndim(x) else everywhere(x) for j, x in moved.items()}, rest

    def split(self) -> tuple[Any, Any]:
        """Its structure, the same for all motions, and its numbers."""
        racks = dict.fromkeys(c.steering for c in self.corners if c.steering)
        given = dict.fromkeys(racks, self.steer) | dict(self.known) | dict(self.over)
        moved, rest = self._moved(given)
        rate = self.tyre_rate
        rates = None if rate is None else np.broadcast_to(np.asarray(rate, float), (2,))
        places = self.places
        if places is None:
            places = next(iter((self.over or self.inputs).values()))
        whole = replace(self, over=moved, known=rest, dim="", steer=0.0, places=None)
        blank, numbers = Sweep.split(whole)
        blank = replace(blank, tyre_rate=None if rate is None else (0.0, 0.0))
        return blank, (numbers, rates, np.asarray(places, float))

    def with_numbers(self, numbers: Any) -> Any:
        """The same with other numbers, which may be traced."""
        values, rates, places = numbers
        return replace(Sweep.with_numbers(self, values), tyre_rate=rates, places=places)

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        """The held coordinates."""
        sweep, rig = self._course(mech)
        return sweep.keys(rig)

    def axis_values(self, mech: Mechanism) -> Axis:
        """The first coordinate that moves, or the load."""
        if self.places is not None:
            return Axis(self.places)
        sweep, rig = self.on(mech)
        found = sweep.axis_values(rig)
        return found if self.over else LOADS[str(self.dim)]._replace(values=found.values)

    def curves(self, mech: Mechanism, *, states: bool) -> Curves:
        """The whole course, with states of the axle on its rig."""
        sweep, rig = self._course(mech)
        return sweep.curves(rig, states=states)

    def own_problems(self, mech: Mechanism) -> list[str]:
        """Steering that cannot be moved, and what `Sweep` finds."""
        rods = [c.steering for c in self.corners if c.steering and not c.slides(mech)]
        if rods and (self.steer or set(rods) & set(self.over)):
            kind = type(mech.joint(rods[0])).__name__
            return [
                f"steering={rods[0]!r} is a {kind}, which cannot be moved by a value; describe the "
                "axle with a rack (Prismatic)"
            ]
        sweep, rig = self.on(mech)
        return sweep.own_problems(rig)

    def declare(self, mech: Mechanism) -> Declaration:
        """Outputs and coordinates."""
        sweep, rig = self._course(mech)
        found, axis = sweep.declare(rig), self.axis_values(mech)
        return found._replace(coords=found.coords | {self.axis: axis})

    def warn(self, mech: Mechanism) -> None:
        """Warn of degrees of freedom that nothing holds."""
        sweep, rig = self._course(mech)
        sweep.warn(rig)


def axle_sweep(
    corners: Sequence[Corner],
    *,
    heave: Values | None = 0.0,
    roll: Values = 0.0,
    left: Values = 0.0,
    right: Values = 0.0,
    steer: Values = 0.0,
    lateral: Load = None,
    braking: Load = None,
    driving: Load = None,
    aligning: Load = None,
    observe: str | Iterable[str] | None = None,
    gradients: str | Iterable[str] = (),
    tyre_rate: float | tuple[float, float] | None = None,
    settle: bool | None = None,
) -> AxleSweep:
    """The experiment of `axle_kinematics`: a pure function of the axle.

    It can be batched by `lanes.vmap`, differentiated, and observed in a `Study` or by `minimize`.
    The arguments are those of `axle_kinematics`.

    Raises:
        ValueError: nothing moves, numbers of values differ, or a name is unknown.

    Example:
        >>> from jaxmbd import suspension
        >>> roles = suspension.zoo_corner("macpherson_steering")
        >>> other = suspension.zoo_corner("macpherson_steering", "right")
        >>> suspension.axle_sweep((roles, other), left=[-0.01, 0.01], right=[0.01, -0.01]).dim
        'left'
    """
    pair = corner_pair(corners)
    rig: dict[str, Any] = {"heave": heave, "roll": roll, "left": left, "right": right}
    loads = dict(lateral=lateral, braking=braking, driving=driving, aligning=aligning)
    over, held = _motions(pair, rig, steer)
    inputs = _inputs(pair, loads)
    sizes = {len(x) for x in (*over.values(), *inputs.values())}
    if len(sizes) != 1:
        raise ValueError(
            "give lists of values, all of one length, of what moves: heave=, roll=, left=, right=, "
            f"steer=, or of a load; found {sorted(sizes) or 'none'} values"
        )
    if settle is None:
        settle = heave is None or tyre_rate is not None or bool(inputs)
    if heave is None and not settle:
        raise ValueError("heave=None lets the axle rise until its load is that drawn: settle=True")
    moved = [n for n, x in (rig | {"steer": steer}).items() if np.ndim(x)]
    moved += [n for n, x in loads.items() if x is not None]
    return AxleSweep(
        over,
        _observed(pair, observe, gradients, over, bool(inputs)),
        moved[0],
        held,
        settle,
        inputs,
        corners=pair,
        steer=0.0 if np.ndim(steer) else float(np.asarray(steer)),
        tyre_rate=tyre_rate,
    )


def _motions(
    pair: tuple[Corner, Corner], rig: Mapping[str, Any], steer: Values
) -> tuple[dict[str, Any], dict[str, float]]:
    """Joints that move with their values, and those of the rig that are held at a number."""
    over: dict[str, Any] = {RIG[n]: tuple(np.ravel(x)) for n, x in rig.items() if np.ndim(x)}
    held = {RIG[n]: float(x) for n, x in rig.items() if x is not None and not np.ndim(x)}
    racks = {c.steering for c in pair if c.steering is not None}
    if np.any(np.asarray(steer)) and len(racks) != 1:
        found = sorted(racks) or "none"
        raise ValueError(f"steer= moves one rack of both corners, Corner(steering=); found {found}")
    if np.ndim(steer):
        over |= dict.fromkeys(racks, tuple(np.ravel(steer)))
    return over, held


def _observed(
    pair: tuple[Corner, Corner],
    observe: str | Iterable[str] | None,
    gradients: str | Iterable[str],
    over: Mapping[str, Any],
    loaded: bool,
) -> dict[str, AxleCharacteristic]:
    """Columns and their derivatives along what moves."""
    names, slopes = axle_names(observe, pair), axle_names(gradients, pair)
    problems = [t for n in (*names, *slopes) for t in unknown("column", n, AXLE_CHARACTERISTICS)]
    if problems:
        raise ValueError("; ".join(dict.fromkeys(problems)))
    if slopes and loaded:
        raise ValueError("gradients= are along motions; those along loads are `compliance`'s")
    along = _rates(over) if slopes else None
    values = {n: AxleCharacteristic(pair, n) for n in names}
    return values | {f"{n}_gradient": AxleCharacteristic(pair, n, along) for n in slopes}


def _inputs(pair: tuple[Corner, Corner], loads: Mapping[str, Load]) -> dict[str, np.ndarray]:
    """Efforts of the rig's actuators: forces on the contacts, and torques that are on uprights."""
    found: dict[str, Any] = {}

    def add(name: str, values: Any) -> None:
        found[name] = found.get(name, 0.0) + values

    for load, given in loads.items():
        if given is None:
            continue
        both = dict.fromkeys(("left", "right"), given)
        sides: Any = given if isinstance(given, Mapping) else both
        if problems := [text for n in sides for text in unknown("side", n, both)]:
            raise ValueError(f"{load}: {problems[0]}")
        for corner in pair:
            if corner.side not in sides:
                continue
            force, rig = np.ravel(np.asarray(sides[corner.side], float)), RIG[corner.side]
            add(f"{rig}_{load}", force)
            if load in ("braking", "driving"):
                sign = corner.sign if load == "braking" else -corner.sign
                torque = sign * corner.tyre_radius * force
                add(f"{rig}_torque", torque)
                if getattr(corner, "brakes" if load == "braking" else "drive") == "inboard":
                    add(f"{rig}_shaft", -torque)
    return found


def _rates(over: Mapping[str, tuple[float, ...]]) -> tuple[tuple[str, float], ...]:
    """Rates of what moves per unit of the first of it, where all move along a straight line."""
    values = np.array(list(over.values()))
    moved = values - values[:, :1]
    last = np.argmax(np.abs(moved[0]))
    rates = moved[:, last] / moved[0, last] if moved[0, last] else np.full(len(over), np.nan)
    off = np.max(np.abs(moved - rates[:, None] * moved[0]))
    if not off <= _STRAIGHT * np.max(np.abs(values)):
        raise ValueError(
            f"gradients along {list(over)} need one direction in which they move together; they "
            "turn on the way: leave gradients= out, or give each part by itself"
        )
    return tuple(zip(over, rates.tolist(), strict=True))


def axle_kinematics(
    car: Mechanism,
    corners: Sequence[Corner],
    *,
    heave: Values | None = 0.0,
    roll: Values = 0.0,
    left: Values = 0.0,
    right: Values = 0.0,
    steer: Values = 0.0,
    lateral: Load = None,
    braking: Load = None,
    driving: Load = None,
    aligning: Load = None,
    observe: str | Iterable[str] | None = None,
    gradients: str | Iterable[str] = (),
    tyre_rate: float | tuple[float, float] | None = None,
    settle: bool | None = None,
) -> Kinematics:
    """Characteristics of an axle whose wheels stand on a rig (`on_rig`), over an event.

    What has a list of values moves, all lists together; the rest is held at its number:

    - parallel travel: ``heave=[…]``;
    - opposite travel: ``left=[…], right=[…]`` of opposite signs; of a single wheel ``left=[…]``;
    - roll: ``roll=[…]``, about the middle of the road at a constant height of it, or with
      ``heave=None`` at a constant load, as a body that rolls freely has it;
    - steering at any height: ``steer=[…], heave=0.02``; sequences: lists of several;
    - loads on the contacts: ``lateral=[…]`` on both alike, ``lateral={"left": […]}`` on one,
      ``{"left": f, "right": -f}`` opposed; the pads hold the contacts' heights.

    Columns are those of `AXLE_CHARACTERISTICS`. A derivative along the event has the suffix
    ``_gradient``: roll stiffness is ``gradients=["roll_moment"]`` in roll, roll steer that of
    ``axle_steer``, ride rate that of ``axle_load`` in heave.

    Args:
        car: the axle.
        corners: roles of the left and the right wheel (`axle_corners`).
        heave: rise of the road in the middle [m], positive: bump; None lets it rise until the load
            on both pads is none, beyond what the mechanism carries by itself.
        roll: of the body on the road [rad], positive: right side down.
        left: rise of the left pad along the road's normal [m].
        right: that of the right one [m].
        steer: travel of the rack along its axis, from where it is drawn [m].
        lateral: side force on the contacts [N], across the wheels, positive: to the left.
        braking: braking force on them [N], along the wheels; its torque is on the upright or, with
            inboard brakes, on the body (`Corner.brakes`).
        driving: driving force on them [N], likewise (`Corner.drive`).
        aligning: moment on them about the road's normal [N·m], positive: to the left.
        observe: name or names of columns; by default all that the axle has.
        gradients: names of those whose derivatives along the event are wanted.
        tyre_rate: vertical stiffness of a tyre [N/m], of both or of each (2,), counted from the
            drawing; by default wheels are rigid.
        settle: whether what is not held, as bushings are not, comes to rest; by default with
            loads, tyres or ``heave=None``.

    Raises:
        ValueError: roles or names do not fit, nothing moves, or a place cannot be reached.

    Example:
        >>> import numpy as np, jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> car = suspension.axle(mbd.zoo.double_wishbone_kinematic(), shared=["rack"])
        >>> roles = suspension.axle_corners(
        ...     car, suspension.zoo_corner("double_wishbone_kinematic"))
        >>> table = suspension.axle_kinematics(
        ...     car, roles, roll=np.deg2rad([-2.0, 0.0, 2.0]), observe=["roll_centre_height"])
        >>> table.axis, table.unit, bool(table["roll_centre_height"][1] > 0.0)
        ('roll', 'rad', True)
    """
    options: dict[str, Any] = dict(heave=heave, roll=roll, left=left, right=right, steer=steer)
    options |= dict(lateral=lateral, braking=braking, driving=driving, aligning=aligning)
    options |= dict(observe=observe, gradients=gradients, tyre_rate=tyre_rate, settle=settle)
    sweep = axle_sweep(corners, **options)
    sweep.check(car)
    sweep.warn(car)
    found = {n: np.asarray(x) for n, x in called(sweep, car).items()}
    about, axis = sweep.declare(car).outputs, sweep.axis_values(car)
    if int(found["status"]) != Status.OK:
        unit, factor = shown(axis.unit)
        how = failure_text(int(found["status"]))
        if open_ := stays_open(about, found):
            how += f", {open_}"
        raise ValueError(
            f"the axle does not reach {sweep.dim} {factor * float(found['failed_at']):+.1f} {unit} "
            f"({how}){reach_text(*sweep.on(car))}. Give a smaller range of {sweep.dim}, or check "
            "the hardpoints"
        )
    columns = {n: found[n] for n in sweep.observe}
    table = Kinematics(str(sweep.dim), np.asarray(axis.values), columns, about, unit=axis.unit)
    if heave is None:
        warn_of_pull(car, sweep.corners, table)
    return table
