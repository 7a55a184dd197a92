"""Member loads: forces of rods, joints, bushings and springs over a table of load cases.

At a *held* ride height the geometry is that of a wheel travel, and each spring is a strut that
keeps the length that it has there: its force is what balances the case. So loads on the wheel give
the loads of the members without a spring rate. What else is elastic, as bushings are, gives way
about that place. At a *settled* one the springs carry the case by their own laws, and the wheel
goes to where they do.

All is statics: speeds and inertia are none, weights and loads of the mechanism itself count.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxmbd.analysis import Key, Status, equilibrium, parse_known
from jaxmbd.graph import neutral, topology
from jaxmbd.kinematics import point_position
from jaxmbd.model import (
    AntiRollBar,
    Bushing,
    ForceElement,
    Joint,
    Mechanism,
    Rod,
    SoftJoint,
    SpringDamper,
    TorsionBar,
    TorsionSpring,
    changed,
)
from jaxmbd.observe import (
    AxialForce,
    Axis,
    Configuration,
    Curves,
    Element,
    Experiment,
    HoldingEffort,
    Observable,
    Output,
    Reaction,
    Reduced,
    Snapshot,
    called,
    is_rod,
    settled_failure,
    status_text,
)
from jaxmbd.plumbing import refuse, text_table, unknown
from jaxmbd.suspension.bracket_loads import bracket_loads, mount_loads
from jaxmbd.suspension.corner import Corner, find_corner
from jaxmbd.suspension.corner_sweep import name_list
from jaxmbd.suspension.kinematics_table import number, write_csv
from jaxmbd.suspension.motions import held_joints, wheel_key
from jaxmbd.suspension.sensitivity_table import Sensitivities, sensitivities_of
from jaxmbd.suspension.wheel_loads import WHEEL_LOADS, Cases, case_loads, wheel_loads
from jaxmbd.variables import Parametrization, mechanism_of

_POINTS: dict[str, Any] = {
    "max": lambda y: jnp.max(y, axis=0),
    "min": lambda y: jnp.min(y, axis=0),
    "span": lambda y: jnp.max(y, axis=0) - jnp.min(y, axis=0),
    "peak": lambda y: jnp.max(jnp.abs(y), axis=0),
    "first": lambda y: y[0],
    "last": lambda y: y[-1],
}
"""Reductions over cases, which are no curve: there is nothing between them."""
_FORCES: dict[type, str] = {
    SpringDamper: "force",
    AntiRollBar: "force",
    TorsionBar: "torque",
    TorsionSpring: "effort",
}
"""The force of elements that are members and have one."""


@dataclass(frozen=True)
class LoadSweep(Experiment):
    """Load cases as an experiment: a function of the corner or axle to loads of its members.

    Extrema over the cases, as ``AxialForce("tierod").peak()``, are those of the cases.

    Attributes:
        corners: roles of the wheels.
        cases: names of the load cases.
        loads: (cases, wheels, loads) in the order of `WHEEL_LOADS` [N, N·m].
        observe: name to observable; `member_loads` has those of all members.
        travel: of the wheel centres at which the ride height is held [m], of all or of each; None
            lets springs carry the loads.
        steer: travel at which the racks are held [m].

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> from jaxmbd.observe import AxialForce
        >>> stop = suspension.load_sweep(
        ...     suspension.zoo_corner("multi_link"), {"stop": {"vertical": 5e3, "braking": 5e3}},
        ...     observe={"tierod": AxialForce("tierod")})
        >>> stop(mbd.zoo.multi_link(wheel_load=0.0))["tierod"].shape
        (1,)
    """

    corners: tuple[Corner, ...]
    cases: tuple[str, ...]
    loads: tuple[tuple[tuple[float, ...], ...], ...]
    observe: Mapping[str, Any] = field(default_factory=dict)
    travel: tuple[float, ...] | None = ()
    steer: float = 0.0

    axis: ClassVar[str] = "case"  # type: ignore[misc]

    __hash__ = Experiment.__hash__

    def axis_values(self, mech: Mechanism) -> Axis:
        """The names of the cases."""
        return Axis(self.cases, "", "load case")

    def kept(self) -> np.ndarray:
        """All cases."""
        return np.arange(len(self.cases))

    def split(self) -> tuple[Any, Any]:
        """Its structure, and loads, travels and steering as numbers."""
        travel = None if self.travel is None else np.asarray(self.travel, float)
        none = None if travel is None else (0.0,) * len(travel)
        blank = replace(self, loads=(), travel=none, steer=0.0)
        return blank, (np.asarray(self.loads, float), travel, np.asarray(self.steer, float))

    def with_numbers(self, numbers: Any) -> Any:
        """The same with other numbers, which may be traced."""
        loads, travel, steer = numbers
        return replace(self, loads=loads, travel=travel, steer=steer)

    def keys(self, mech: Mechanism) -> tuple[Key, ...]:
        """What is held in every case."""
        return parse_known(mech, self.held(mech))[0]

    def held(self, mech: Mechanism) -> dict[Any, float]:
        """Racks, and the joints of `Corner.hold`."""
        known: dict[Any, float] = {}
        for corner in self.corners:
            known |= held_joints(mech, corner)
            if corner.slides(mech):
                known[corner.steering] = self.steer
        return known

    def on(self, mech: Mechanism) -> Mechanism:
        """The mechanism with loads on its wheels and, where it is held as drawn, locked springs."""
        loaded = self._loaded(mech)
        return loaded if self.travel is None else self._locked(loaded, None)

    def _names(self) -> list[str]:
        return [f"load_case_{corner.side}" for corner in self.corners]

    def _loaded(self, mech: Mechanism) -> Mechanism:
        none = np.zeros(len(WHEEL_LOADS))
        pairs = zip(self._names(), self.corners, strict=True)
        forces = {name: wheel_loads(mech, corner, none) for name, corner in pairs}
        return mech.replace(forces=forces)

    def _locked(self, mech: Mechanism, q: Array | None) -> Mechanism:
        """Springs replaced by rods of the length that they have at q (nq,), or as drawn."""
        rods: dict[str, Rod] = {}
        for name in dict.fromkeys(c.spring for c in self.corners):
            assert name is not None
            spring: Any = mech.forces[name]
            length = None
            if q is not None:
                ends = [(spring.a, spring.at_a), (spring.b, spring.at_b)]
                start, end = (point_position(mech, q, *place) for place in ends)
                length = jnp.sqrt((end - start) @ (end - start))
            rods[name] = Rod(spring.a, spring.b, spring.at_a, spring.at_b, length)
        chosen = mech.structure.cut
        cut = None if chosen is None else (*chosen, *rods)
        return mech.replace(joints=rods, forces=dict.fromkeys(rods), cut=cut)

    def own_problems(self, mech: Mechanism) -> list[str]:
        """Roles that do not fit, no spring to hold the ride height by, reductions along cases."""
        found = [text for corner in self.corners for text in corner.problems(mech)]
        taken = [n for n in self._names() if n in (*mech.forces, *mech.joints)]
        found += [f"{n!r} is a name of the load cases; rename it" for n in taken]
        if self.travel is not None:
            found += [t for c in self.corners for t in _spring_problems(mech, c)]
        if self.steer and not any(c.slides(mech) for c in self.corners):
            found.append("steer= moves a rack; name one, Corner(steering=)")
        curves = [n for n, w in self.observe.items() if isinstance(w, Reduced)]
        found += [
            f"{n!r}: {self.observe[n].how} is along a curve; load cases have {list(_POINTS)}"
            for n in curves
            if self.observe[n].how not in _POINTS
        ]
        return found

    def problems(self, mech: Mechanism) -> list[str]:
        """All mistakes; observables are those of the mechanism with locked springs."""
        found = self.own_problems(mech)
        return found or Configuration({}, self.observe).problems(self.on(mech))

    def declare(self, mech: Mechanism) -> Any:
        """Outputs, and the cases as their coordinate."""
        return Experiment.declare(self, self.on(mech))

    def computed(self, mech: Mechanism) -> dict[str, Array]:
        """All outputs while tracing."""
        reduced = {n: w for n, w in self.observe.items() if isinstance(w, Reduced)}
        plain = {n: getattr(w, "observable", w) for n, w in self.observe.items()}
        found = Experiment.computed(replace(self, observe=plain), mech)
        return found | {n: _POINTS[w.how](found[n]) for n, w in reduced.items()}

    def curves(self, mech: Mechanism, *, states: bool) -> Curves:
        """Members' loads in each case, each found from the state without its loads."""
        car, held, start = self._loaded(mech), self.held(mech), jnp.asarray(neutral(mech))
        start, status = jnp.asarray(start, mech.dtype), jnp.asarray(int(Status.OK))
        if self.travel is not None:
            heights = {wheel_key(c): x for c, x in zip(self.corners, self._travels(), strict=True)}
            placed, failure = Configuration(held | heights, {}, settle=True).place(car)
            status = failure.status
            start = jnp.where(status == Status.OK, placed.q, start)
            car = self._locked(car, start)
        keys, values = parse_known(car, held)
        every, names = self.observed(), self._names()

        def at(loads: Array) -> Any:
            pairs = zip(names, loads, strict=True)
            elements = {name: changed(car.forces[name], values=x) for name, x in pairs}
            now = car.replace(forces=elements)
            rest = equilibrium(now, known=held, guess=start, throw=False, backend="xla")
            multipliers = jnp.concatenate([rest.lam, rest.held])
            held_by: Any = dict(keys=keys, values=values, moving=False, multipliers=multipliers)
            snap = Snapshot(now, rest.q, **held_by)
            return rest.q, rest.status, [what.value(snap) for what in every], snap.undetermined

        q, statuses, rows, undetermined = lax.map(at, jnp.asarray(self.loads, mech.dtype))
        x = jnp.arange(len(self.cases), dtype=mech.dtype)
        first = jnp.argmax(statuses != Status.OK)
        placing = status != Status.OK
        now = jnp.asarray(jnp.where(placing, status, statuses[first]), jnp.int32)
        nowhere = jnp.full_like(start, jnp.nan)
        where = jnp.where(placing, -1.0, x[first])
        failed = settled_failure(car, keys, values, now, nowhere, where)
        observed = dict(zip(every, rows, strict=True))
        v = jnp.zeros((len(self.cases), topology(car).nv), mech.dtype)
        return Curves(x, q, v, observed, self.judged(failed, x, observed, undetermined))

    def _travels(self) -> tuple[float, ...]:
        assert self.travel is not None
        return self.travel


def _spring_problems(mech: Mechanism, corner: Corner) -> list[str]:
    if corner.spring is None:
        return [
            f"the {corner.side} wheel has no spring that carries it: name it, Corner(spring=); or "
            "let what is elastic carry the loads, travel=None"
        ]
    if any(e.name == corner.spring for e in mech.structure.joints):
        return [f"a joint has the name of the spring {corner.spring!r} too; rename one of them"]
    return []


def load_sweep(
    corners: Corner | Sequence[Corner],
    cases: Cases,
    *,
    observe: Mapping[str, Any],
    travel: float | Sequence[float] | None = 0.0,
    steer: float = 0.0,
) -> LoadSweep:
    """The experiment of `load_cases`: a pure function of the corner or axle.

    It can be batched by `lanes.vmap`, differentiated, and observed in a `Study` or by `minimize`.
    The arguments are those of `load_cases`, `observe` a mapping from names to observables.

    Raises:
        ValueError: a load is unknown, given twice or no number.

    Example:
        >>> from jaxmbd import suspension
        >>> from jaxmbd.observe import AxialForce
        >>> roles = suspension.zoo_corner("multi_link")
        >>> worst = {"tierod": AxialForce("tierod").peak()}
        >>> suspension.load_sweep(roles, {"kerb": {"lateral": 4e3}}, observe=worst).cases
        ('kerb',)
    """
    wheels = (corners,) if isinstance(corners, Corner) else tuple(corners)
    names, loads = case_loads(wheels, cases)
    at = None
    if travel is not None:
        at = tuple(float(x) for x in np.broadcast_to(np.asarray(travel, float), (len(wheels),)))
    rows = tuple(tuple(tuple(wheel) for wheel in case) for case in loads.tolist())
    return LoadSweep(wheels, names, rows, dict(observe), at, float(steer))


def member_loads(
    mech: Mechanism, corners: Corner | Sequence[Corner], *, travel: Any = 0.0
) -> dict[str, Observable]:
    """The loads of all members of a corner or axle, by name: what `load_cases` has as columns.

    - a `Rod`, and a spring or bar: its name alone;
    - another joint: ``<joint>_force`` and ``<joint>_moment``, the sizes of its reaction about its
      point, and their components ``<joint>_force_x``, …, world axes, on the joint's body b;
    - a bushing: the same, components in its own axes; of a softened joint those along its rows;
    - a hinge through two named points: ``<point>_force`` and its components at either, with half of
      the force along the axis, and ``<joint>_axial``, the whole of that, which statics does not
      share out;
    - where a joint and springs end at one point of the chassis: ``<point>_mount_force`` and its
      components, on the chassis;
    - a rack or another held joint: ``<joint>_effort``, the force or moment that holds it.

    Args:
        mech: the corner or axle.
        corners: roles of its wheel, or of the left and the right one.
        travel: None where springs carry the loads, as of `load_cases`.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> roles = suspension.zoo_corner("double_wishbone")
        >>> found = suspension.member_loads(mbd.zoo.double_wishbone(), roles)
        >>> "tierod" in found, "spring" in found, "rev_lca_force_x" in found
        (True, True, True)
    """
    wheels = (corners,) if isinstance(corners, Corner) else tuple(corners)
    locked = {c.spring for c in wheels} if travel is not None else set()
    found: dict[str, Observable] = {}
    for edge in mech.structure.joints:
        found |= _of_joint(edge.name, edge.kind)
    for name in mech.structure.forces:
        found |= (
            {name: AxialForce(name)} if name in locked else _of_element(name, mech.forces[name])
        )
    for corner in wheels:
        for joint, index in held_joints(mech, corner):
            found[f"{joint}_effort_{index}"] = HoldingEffort((joint, index))
        if corner.slides(mech):
            found[f"{corner.steering}_effort"] = HoldingEffort(corner.steering)
    return bracket_loads(mech) | mount_loads(mech, wheels, locked) | found


def _of_joint(name: str, kind: type[Joint]) -> dict[str, Observable]:
    if is_rod(kind):
        return {name: AxialForce(name)}
    parts = [part for part in ("force", "moment") if part in kind.rows]
    return {n: Reaction(name, part, axis) for part in parts for n, axis in _components(name, part)}


def _of_element(name: str, element: ForceElement) -> dict[str, Observable]:
    if isinstance(element, Bushing):
        parts = ("force", "moment")
        return {n: Element(name, p, axis) for p in parts for n, axis in _components(name, p)}
    if isinstance(element, SoftJoint):
        rows = element.replaced.rows
        measures = [f"{p}_{k + 1}" for p in ("force", "moment") for k in range(rows.count(p))]
        return {f"{name}_{measure}": Element(name, measure) for measure in measures}
    measure = _FORCES.get(type(element))
    return {name: Element(name, measure)} if measure else {}


def _components(name: str, part: str) -> list[tuple[str, str]]:
    """Names of a vector's size and components, and which they are."""
    whole = f"{name}_{part}"
    return [(whole, "norm"), *((f"{whole}_{axis}", axis) for axis in "xyz")]


@dataclass(frozen=True)
class LoadTable:
    """Loads of members over load cases; printed as a table, written as CSV.

    Attributes:
        cases: names of the load cases.
        columns: member load to its values (cases,) [N, N·m].
        about: member load to its `Output`: unit and text with sign.
        title: what it is of.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> cases = {"stop": {"vertical": 5e3, "braking": 5e3}, "turn": {"lateral": 4e3}}
        >>> corner = mbd.zoo.multi_link(wheel_load=0.0)
        >>> table = suspension.load_cases(corner, cases=cases, observe=["tierod", "spring"])
        >>> table.worst("spring")[0], table["tierod"].shape
        ('stop', (2,))
    """

    cases: tuple[str, ...]
    columns: dict[str, np.ndarray]
    about: dict[str, Output] = field(repr=False)
    title: str = ""

    def __getitem__(self, name: str) -> np.ndarray:
        if found := unknown("member load", name, self.columns):
            raise ValueError(f"{found[0]} in this table")
        return self.columns[name]

    def at(self, case: str) -> dict[str, float]:
        """All loads of one case.

        Raises:
            ValueError: there is no such case.
        """
        if found := unknown("load case", case, self.cases):
            raise ValueError(found[0])
        k = self.cases.index(case)
        return {name: float(x[k]) for name, x in self.columns.items()}

    def worst(self, name: str) -> tuple[str, float]:
        """The case in which a load is largest in magnitude, and its value there.

        Raises:
            ValueError: there is no such load.
        """
        k = int(np.argmax(np.abs(self[name])))
        return self.cases[k], float(self.columns[name][k])

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a row for each case, with names and units of the loads as titles."""
        head = ["case", *(f"{n} [{self.about[n].unit}]" for n in self.columns)]
        rows = np.stack([*self.columns.values()], axis=1).tolist()
        write_csv(path, head, ([name, *row] for name, row in zip(self.cases, rows, strict=True)))

    def table(self, columns: Iterable[str] | None = None) -> str:
        """The table that is printed: a line for each load, with its worst case last.

        Args:
            columns: names of loads; by default all but components of vectors.

        Raises:
            ValueError: a name is unknown.
        """
        sizes = [n for n in self.columns if n[-2:] not in ("_x", "_y", "_z")]
        names = sizes if columns is None else name_list(columns)
        head = ["", *self.cases, "unit", "largest", "in case"]
        rows = []
        for name in names:
            case, value = self.worst(name)
            values = (number(x) for x in self.columns[name])
            rows.append([name, *values, self.about[name].unit, number(value), case])
        return (self.title + "\n" if self.title else "") + text_table(head, rows, left=(0,))

    def __str__(self) -> str:
        return self.table()


def load_cases(
    model: Mechanism | Parametrization,
    corners: Corner | Sequence[Corner] | None = None,
    cases: Cases = {},  # noqa: B006, never changed
    *,
    travel: float | Sequence[float] | None = 0.0,
    steer: float = 0.0,
    observe: str | Iterable[str] | Mapping[str, Any] | None = None,
) -> LoadTable:
    """Loads of rods, joints, bushings and springs of a corner or an axle over load cases.

    Loads of a case, by the names of `WHEEL_LOADS`, act on the wheel, on both of an axle alike;
    ``left_`` or ``right_`` in front of a name says on which one. They add to weights and loads that
    the mechanism has itself, as `wheel_load` of the zoo's corners.

    Args:
        model: the corner or axle, or a parametrisation, whose nominal one is it.
        corners: roles of the wheel, or of the left and the right one (`axle_corners`); by default
            those of a corner of the zoo with its names.
        cases: name to loads [N, N·m], or a CSV file (`read_load_cases`).
        travel: of the wheel centre, of each of an axle (2,), from where it is drawn [m]: the ride
            height at which springs keep their lengths, whatever the case. None lets the springs
            carry the case by their own laws, so that the wheel goes to where they do.
        steer: travel at which the rack is held [m].
        observe: names of member loads (`member_loads`), or a mapping from names to observables; by
            default all.

    Raises:
        ValueError: roles, cases or names do not fit, or a case has no equilibrium.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> stop = {"stop": {"vertical": 5e3, "braking": 5e3}}
        >>> corner = mbd.zoo.multi_link(wheel_load=0.0)
        >>> table = suspension.load_cases(corner, cases=stop, observe=["spring"])
        >>> bool(table["spring"][0] < 0.0)  # in compression
        True
    """
    mech, sweep = _prepared(model, corners, cases, travel, steer, observe)
    found = {n: np.asarray(x) for n, x in called(sweep, mech).items()}
    if int(found["status"]) != Status.OK:
        _raise(sweep, found)
    about = sweep.declare(mech).outputs
    return LoadTable(sweep.cases, {n: found[n] for n in sweep.observe}, about, _title(sweep))


def load_sensitivities(
    model: Mechanism | Parametrization,
    corners: Corner | Sequence[Corner] | None = None,
    cases: Cases = {},  # noqa: B006, never changed
    *,
    vary: str | Iterable[str] = "points/*",
    travel: float | Sequence[float] | None = 0.0,
    steer: float = 0.0,
    observe: str | Iterable[str] | Mapping[str, Any] | None = None,
) -> Sensitivities:
    """Exact derivatives of member loads by hardpoints and other numbers, in each load case.

    The arguments are those of `load_cases`, and `vary`: path or pattern, or several, of the
    variables. All parts are made to fit where a hardpoint moves in the drawing.

    Raises:
        ValueError: a name does not fit, or a case has no equilibrium.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> stop = {"stop": {"vertical": 5e3, "braking": 5e3}}
        >>> corner = mbd.zoo.multi_link(wheel_load=0.0)
        >>> table = suspension.load_sensitivities(
        ...     corner, cases=stop, vary="points/tierod_inboard", observe=["tierod"])
        >>> table.derivatives.shape
        (1, 1, 3)
    """
    mech, sweep = _prepared(model, corners, cases, travel, steer, observe)
    places = tuple(f"case {name}" for name in sweep.cases)
    table, status = sensitivities_of(sweep, model, vary, np.zeros(len(places)), places)
    if status != Status.OK:
        raise ValueError(
            f"a load case has no equilibrium ({status_text(status)}); see `load_cases` for which"
        )
    return table


def _prepared(
    model: Any, corners: Any, cases: Cases, travel: Any, steer: float, observe: Any
) -> tuple[Mechanism, LoadSweep]:
    """The mechanism and the experiment, checked."""
    mech = mechanism_of(model)
    wheels = find_corner(mech) if corners is None else corners
    sweep = load_sweep(wheels, cases, observe={}, travel=travel, steer=steer)
    refuse("load cases", sweep.own_problems(mech))
    if not isinstance(observe, Mapping):
        every = member_loads(mech, wheels, travel=travel)
        names = [*every] if observe is None else name_list(observe)
        refuse("observe", [t for n in names for t in unknown("member load", n, every)])
        observe = {n: every[n] for n in names}
    sweep = replace(sweep, observe=dict(observe))
    sweep.check(mech)
    return mech, sweep


def _title(sweep: LoadSweep) -> str:
    if sweep.travel is None:
        return "member loads; springs carry the loads"
    places = ", ".join(f"{1e3 * x:+g} mm" for x in dict.fromkeys(sweep.travel))
    return f"member loads at ride height {places}; springs keep their lengths"


def _raise(sweep: LoadSweep, found: Mapping[str, np.ndarray]) -> None:
    how, place = status_text(found["status"]), int(found["failed_at"])
    if place < 0:
        raise ValueError(
            f"the wheels do not reach the travel {sweep.travel} m ({how}); give a smaller one"
        )
    cure = "see that every motion is held or sprung: name racks in Corner(steering=), others in "
    cure += "Corner(hold=)"
    if sweep.travel is None:
        cure += "; or hold the ride height, travel=0.0"
    raise ValueError(f"load case {sweep.cases[place]!r} has no equilibrium ({how}); {cure}")
