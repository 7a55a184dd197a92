"""Which hardpoint moves what: exact derivatives of characteristics by a mechanism's numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.analysis import Status
from jaxmbd.lanes import host_jit
from jaxmbd.model import Mechanism
from jaxmbd.observe import Experiment, Output, Sweep, status_text
from jaxmbd.plumbing import text_table, unknown
from jaxmbd.suspension.corner import Corner, find_corner
from jaxmbd.suspension.corner_sweep import GRADIENTS, kinematics_sweep, name_list, of_mechanism
from jaxmbd.suspension.kinematics_table import number, write_csv
from jaxmbd.suspension.wheel_characteristics import available
from jaxmbd.variables import (
    Parametrization,
    Variable,
    find_variables,
    in_si,
    mechanism_of,
    set_variables,
    shown,
)

OBSERVED = (
    "camber",
    "toe",
    "caster",
    "kingpin_inclination",
    "caster_trail",
    "scrub_radius",
    "virtual_caster",
    "roll_centre_height",
    "anti_dive",
    "anti_lift_braking",
    "anti_squat",
    "motion_ratio",
)
"""Characteristics of the table unless others are asked for, as far as the corner has them."""

_SHARE = 0.01


@dataclass(frozen=True)
class Sensitivities:
    """Derivatives of characteristics by variables; printed per mm, per degree or per 1 %.

    Attributes:
        outputs: names of the characteristics.
        variables: paths of the numbers, components one by one.
        travel: wheel travels at which they are [m] (n,).
        values: of the characteristics (n, outputs), SI units.
        derivatives: (n, outputs, variables), SI units.
        about: characteristic to its `Output`.
        units: SI units of the variables.
        nominal: values of the variables.
        places: what they are at, where it is no travel: load cases, or places of an event, in the
            order of the first axis.
        steps: changes of the variables that effects are for (k,), SI units; by default 1 mm, 1° or
            1 % of the value.
        interactions: ``∂²y/∂a ∂b`` times both steps (n, outputs, k, k): by how much the effect of
            one factor differs with another at its step; of one with itself twice the bend. None
            unless they were asked for.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import hardpoint_sensitivities
        >>> corner, points = mbd.zoo.multi_link(), "points/tierod_inboard"
        >>> moved = hardpoint_sensitivities(corner, vary=points, observe=["toe"])
        >>> moved.variables[2], round(moved.of("toe_gradient", "points/tierod_inboard/z"), 3)
        ('points/tierod_inboard/z', 10.321)
    """

    outputs: tuple[str, ...]
    variables: tuple[str, ...]
    travel: np.ndarray
    values: np.ndarray
    derivatives: np.ndarray
    about: dict[str, Output]
    units: tuple[str, ...]
    nominal: np.ndarray
    places: tuple[str, ...] = ()
    steps: np.ndarray | None = None
    interactions: np.ndarray | None = None

    @property
    def effects(self) -> np.ndarray:
        """Changes by one step of each variable, to first order (n, outputs, variables), SI."""
        return self.derivatives * self._steps()

    def of(self, output: str, variable: str, travel: int = 0) -> float:
        """One derivative, in SI units, at a travel by its index."""
        i, j = self._output(output), place_of("variable", variable, self.variables)
        return float(self.derivatives[travel, i, j])

    def ranked(self, output: str, travel: int = 0) -> list[tuple[str, float]]:
        """Variables by the size of their effect on one characteristic, as the table prints it.

        In degrees, millimetres and their like (`about` has the SI unit), per step.
        """
        i = self._output(output)
        row = shown(self.about[output].unit)[1] * self.effects[travel, i]
        order = np.argsort(-np.abs(row))
        return [(self.variables[j], float(row[j])) for j in order]

    def _output(self, name: str) -> int:
        return place_of("characteristic", name, self.outputs)

    def _steps(self) -> np.ndarray:
        """The change of each variable that the printed table is for, in SI units."""
        if self.steps is not None:
            return self.steps
        sizes = {"m": 1e-3, "rad": np.pi / 180.0}
        pairs = zip(self.units, self.nominal, strict=True)
        return np.array([sizes.get(unit, _SHARE * abs(x)) for unit, x in pairs])

    def _per(self, j: int) -> str:
        """The step of a variable, in words."""
        if self.steps is None:
            return {"m": "mm", "rad": "deg"}.get(self.units[j], "1 %")
        unit, factor = shown(self.units[j])
        return f"{factor * self.steps[j]:.4g} {unit}".strip()

    def _place(self, k: int) -> str:
        return self.places[k] if self.places else f"travel {1e3 * self.travel[k]:+g} mm"

    def factor_table(self, smallest: float = 0.05) -> str:
        """Factors by responses: the effect of each factor's step, and interactions, if there are.

        A response has the effect at the place nearest to the drawing, and where there are several
        places the largest of all. Rows are sorted by the largest share of a response's largest
        effect that they have.

        Args:
            smallest: share of a response's largest effect below which a row is left out.

        Example:
            >>> import jaxmbd as mbd
            >>> from jaxmbd.suspension import hardpoint_sensitivities
            >>> found = hardpoint_sensitivities(
            ...     mbd.zoo.multi_link(), vary="points/tierod_inboard", observe=["toe"],
            ...     travel=[-0.03, 0.0, 0.03], steps={"points/*": "2 mm"})
            >>> print(found.factor_table().splitlines()[2][:29])  # moves toe most
            points/tierod_inboard/z  2 mm
        """
        head, rows = self.factor_rows(smallest)
        return text_table(
            head, [[x if isinstance(x, str) else number(x) for x in r] for r in rows], rule=False
        )

    def factor_rows(self, smallest: float = 0.05) -> tuple[list[str], list[list[Any]]]:
        """Head and rows of `factor_table`, its numbers as numbers; the first row has the units.

        Args:
            smallest: as of `factor_table`.

        Example:
            >>> import jaxmbd as mbd
            >>> from jaxmbd.suspension import hardpoint_sensitivities
            >>> found = hardpoint_sensitivities(
            ...     mbd.zoo.multi_link(), vary="points/tierod_inboard", observe=["toe"],
            ...     travel=[0.0], steps={"points/*": "2 mm"})
            >>> head, rows = found.factor_rows()
            >>> head[:3], rows[0][:3]
            (['factor', 'step', 'toe'], ['', '', 'deg'])
        """
        rows = _Rows.of(self)
        at = int(np.argmin(np.abs(self.travel)))
        columns, heads, units = [], [], []
        for i, name in enumerate(self.outputs):
            unit, factor = shown(self.about[name].unit)
            several = len(self.travel) > 1
            largest = np.take_along_axis(
                rows.effects[:, i], np.argmax(np.abs(rows.effects[:, i]), axis=0)[None], axis=0
            )[0]
            columns += [factor * rows.effects[at, i]] + [factor * largest] * several
            heads += [name] + [f"{name}, largest"] * several
            units += [unit] * (1 + several)
        size = np.abs(rows.effects).max(axis=0)
        most = size.max(axis=1, keepdims=True)
        share = (size / np.where(most > 0.0, most, 1.0)).max(axis=0)
        order = [j for j in np.argsort(-share, kind="stable") if share[j] >= smallest]
        table = [[rows.names[j], rows.steps[j], *(float(c[j]) for c in columns)] for j in order]
        return ["factor", "step", *heads], [["", "", *units], *table]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write effects as comma-separated values: a row for each factor or pair, response, place.

        Args:
            path: the file, which is replaced; units are those of the printed table.
        """
        rows = _Rows.of(self)
        head = ["factor", "step", "response", "unit", "place", "effect"]
        table = []
        for i, name in enumerate(self.outputs):
            unit, factor = shown(self.about[name].unit)
            for j, label in enumerate(rows.names):
                table += [
                    [label, rows.steps[j], name, unit, self._place(k), factor * row[j]]
                    for k, row in enumerate(rows.effects[:, i])
                ]
        write_csv(path, head, table)

    def __str__(self) -> str:
        scale = [shown(self.about[n].unit) for n in self.outputs]
        blocks = []
        for k in range(len(self.travel)):
            change = self.effects[k]
            rows = [
                [
                    path,
                    *(number(f * change[i, j]) for i, (_, f) in enumerate(scale)),
                    f"per {self._per(j)}",
                ]
                for j, path in enumerate(self.variables)
                if np.any(change[:, j])
            ]
            head = ["", *self.outputs, ""]
            units = ["", *(unit for unit, _ in scale), ""]
            title = f"change at {self._place(k)}"
            none = [x for j, x in enumerate(self.variables) if not np.any(change[:, j])]
            rest = f"\nwithout effect: {', '.join(none)}" if none else ""
            blocks.append(f"{title}\n{text_table(head, [units, *rows], rule=False)}{rest}")
        return "\n\n".join(blocks)


class _Rows(NamedTuple):
    """What a factor table has a row for: variables, then pairs of them."""

    names: list[str]
    steps: list[str]
    effects: np.ndarray  # (places, outputs, rows)

    @classmethod
    def of(cls, table: Sensitivities) -> _Rows:
        """All rows of a table."""
        names, count = list(table.variables), len(table.variables)
        steps = [table._per(j) for j in range(count)]
        if table.interactions is None:
            return cls(names, steps, table.effects)
        a, b = np.triu_indices(count, 1)
        pairs = [f"{names[i]} × {names[j]}" for i, j in zip(a, b, strict=True)]
        both = [f"{steps[i]}, {steps[j]}" for i, j in zip(a, b, strict=True)]
        effects = np.concatenate([table.effects, table.interactions[..., a, b]], axis=-1)
        return cls(names + pairs, steps + both, effects)


def hardpoint_sensitivities(
    model: Mechanism | Parametrization,
    corner: Corner | Sweep | None = None,
    vary: str | Iterable[str] = "points/*",
    *,
    observe: str | Iterable[str] | None = None,
    gradients: str | Iterable[str] | None = None,
    travel: float | Sequence[float] = 0.0,
    steer: float = 0.0,
    steps: Mapping[str, Any] | None = None,
    interactions: bool = False,
) -> Sensitivities:
    """Exact derivatives of a corner's characteristics by hardpoints and other numbers.

    They are those of the design: where a hardpoint moves in the drawing, all parts are made to fit,
    so that camber and toe as drawn change with the spindle's points only. One kernel evaluates one
    directional derivative for each variable, eight at a time.

    Args:
        model: the mechanism, or a parametrisation (`mirrored`, one's own) whose variables vary.
        corner: the roles; by default those of a corner of the zoo with its names. Or a sweep whose
            outputs are curves, as of `axle_sweep` or a settled `kinematics_sweep`: then it says
            itself what is observed and where.
        vary: path or pattern, or several, of the variables, the factors of a design study.
        observe: name or names of characteristics; by default those of `OBSERVED` that it has.
        gradients: of which the derivative along the travel is wanted as well; by default those of
            `GRADIENTS` that are observed.
        travel: at which wheel travels [m].
        steer: travel of the rack [m].
        steps: path or pattern to the change that effects are given for, a tolerance or a move: a
            number in SI units or a text with a unit; for all variables.
        interactions: whether second derivatives are wanted too, by which pairs of factors act
            together (`Sensitivities.factor_table`).

    Raises:
        ValueError: a name does not fit, or a position is not reached.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd.suspension import hardpoint_sensitivities
        >>> corner, points = mbd.zoo.multi_link(), "points/tierod_inboard"
        >>> table = hardpoint_sensitivities(corner, vary=points, observe=["toe"])
        >>> table.ranked("toe_gradient")[0][0]  # the inner end's height moves bump steer most
        'points/tierod_inboard/z'
    """
    mech = mechanism_of(model)
    if isinstance(corner, Sweep):
        if not (observe is None and gradients is None and np.ndim(travel) == 0 == travel == steer):
            raise ValueError(
                "a sweep says itself what is observed, and where: leave out observe=, gradients=, "
                "travel= and steer="
            )
        return _of_sweep(corner, model, vary, steps, interactions)
    corner = find_corner(mech) if corner is None else corner
    has = available(corner)
    names = [n for n in OBSERVED if n in has] if observe is None else name_list(observe)
    slopes = [n for n in GRADIENTS if n in names] if gradients is None else name_list(gradients)
    places = [float(x) for x in np.ravel(travel)]
    sweep = kinematics_sweep(corner, travel=places, steer=steer, observe=names, gradients=slopes)
    sweep = of_mechanism(sweep, mech)
    table, status = sensitivities_of(
        sweep, model, vary, np.asarray(places), steps=steps, interactions=interactions
    )
    if status != Status.OK:
        raise ValueError(
            f"the corner does not reach one of the travels {places} m "
            f"({status_text(status)}); see `kinematics` for where"
        )
    return table


def _of_sweep(
    sweep: Sweep,
    model: Mechanism | Parametrization,
    vary: str | Iterable[str],
    steps: Mapping[str, Any] | None,
    interactions: bool,
) -> Sensitivities:
    """The derivatives of a sweep's curves at its places."""
    mech = mechanism_of(model)
    sweep.check(mech)
    declared, axis = sweep.declare(mech), sweep.axis_values(mech)
    outputs = {n: declared.outputs[n] for n in sweep.observe}
    if wrong := [n for n, x in outputs.items() if x.dims != (sweep.axis,)]:
        raise ValueError(f"{wrong} are no curves of numbers over {sweep.axis!r}; leave them out")
    unit, factor = shown(axis.unit)
    values = np.asarray(axis.values, float)
    places = tuple(f"{sweep.axis} {factor * x:+.4g} {unit}".strip() for x in values)
    table, status = sensitivities_of(
        sweep, model, vary, values, places, steps=steps, interactions=interactions
    )
    if status != Status.OK:
        raise ValueError(
            f"the {type(sweep).__name__} over {sweep.axis!r} fails ({status_text(status)})"
        )
    return table


def sensitivities_of(
    sweep: Experiment,
    model: Mechanism | Parametrization,
    vary: str | Iterable[str],
    travel: np.ndarray,
    places: tuple[str, ...] = (),
    *,
    steps: Mapping[str, Any] | None = None,
    interactions: bool = False,
) -> tuple[Sensitivities, int]:
    """The derivatives of an experiment's curves, each of numbers, and its `Status`."""
    mech = mechanism_of(model)
    paths, units, nominal = _unknowns(model, vary)
    sizes = None if steps is None else _sizes(model, paths, units, steps)
    x = jnp.asarray(nominal, mech.dtype)
    if isinstance(model, Parametrization):
        values, columns, status = _columns(*sweep.split(), model, paths, None, x)
    else:
        values, columns, status = _compiled(*sweep.split(), set_variables, paths, mech, x)
    mixed = _mixed(sweep, model, paths, x) if interactions else None
    table = Sensitivities(
        tuple(sweep.observe),
        paths,
        travel,
        np.asarray(values[0]),
        np.moveaxis(np.asarray(columns), 0, -1),
        sweep.declare(mech).outputs,
        units,
        nominal,
        places,
        sizes,
    )
    if mixed is not None:
        both = np.multiply.outer(table._steps(), table._steps())
        table = replace(table, interactions=mixed * both)
    return table, int(status[0])


def place_of(kind: str, name: str, names: Sequence[str]) -> int:
    """The index of a name in a table; an unknown one is refused with those that there are."""
    if found := unknown(kind, name, names):
        raise ValueError(f"{found[0]} in this table")
    return list(names).index(name)


def _columns(
    sweep: Experiment,
    numbers: Any,
    build: Callable[..., Mechanism],
    paths: tuple[str, ...],
    mech: Mechanism | None,
    x: Array,
) -> tuple[Array, Array, Array]:
    """Values, directional derivatives along each component of x, and status, each with an axis."""

    def column(numbers: Any, mech: Any, x: Array, direction: Array) -> tuple[Array, Array, Array]:
        experiment = sweep.with_numbers(numbers)

        def outputs(x: Array) -> tuple[Array, Array]:
            values = dict(zip(paths, x, strict=True))
            found = experiment(build(values) if mech is None else build(mech, values))
            return jnp.stack([found[n] for n in sweep.observe], axis=1), found["status"]

        (value, status), (rate, _) = jax.jvp(outputs, (x,), (direction,))
        return value, rate, status

    along = jnp.eye(x.shape[0], dtype=x.dtype)
    return lanes.vmap(column, in_axes=(None, None, None, 0))(numbers, mech, x, along)


_compiled = host_jit(_columns)


def _mixed(
    sweep: Experiment, model: Mechanism | Parametrization, paths: tuple[str, ...], x: Array
) -> np.ndarray:
    """Second derivatives (places, outputs, k, k), by two forward derivatives of each pair."""

    def outputs(x: Array) -> Array:
        values = dict(zip(paths, x, strict=True))
        mech = model(values) if isinstance(model, Parametrization) else set_variables(model, values)
        found = sweep(mech)
        return jnp.stack([found[n] for n in sweep.observe], axis=1)

    def entry(a: Array, b: Array, x: Array) -> Array:
        return jax.jvp(lambda y: jax.jvp(outputs, (y,), (b,))[1], (x,), (a,))[1]

    i, j = np.triu_indices(len(paths))
    unit = np.eye(len(paths), dtype=x.dtype)
    found = np.asarray(jax.jit(lanes.vmap(entry, in_axes=(0, 0, None)))(unit[i], unit[j], x))
    mixed = np.zeros((*found.shape[1:], len(paths), len(paths)))
    mixed[..., i, j] = mixed[..., j, i] = np.moveaxis(found, 0, -1)
    return mixed


def _sizes(
    model: Mechanism | Parametrization,
    paths: tuple[str, ...],
    units: tuple[str, ...],
    steps: Mapping[str, Any],
) -> np.ndarray:
    """The step of each variable in SI units.

    Raises:
        ValueError: a variable without a step, with several, or a step that is not positive.
    """
    given: dict[str, list[Any]] = {path: [] for path in paths}
    for pattern, step in steps.items():
        for what in find_variables(model, pattern).values():
            for path in {what.path, *_numbers(what)} & given.keys():
                given[path].append(step)
    if wrong := [path for path, found in given.items() if len(found) != 1]:
        raise ValueError(f"steps=: give one step for each variable; {wrong} have none or several")
    sizes = [
        in_si(step, unit, path) if isinstance(step, str) else float(step)
        for (path, [step]), unit in zip(given.items(), units, strict=True)
    ]
    if wrong := [path for path, size in zip(paths, sizes, strict=True) if not size > 0.0]:
        raise ValueError(f"steps=: those of {wrong} must be positive")
    return np.array(sizes)


def _unknowns(
    model: Mechanism | Parametrization, vary: str | Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    """Paths of single numbers, their units and values."""
    numbers: dict[str, tuple[str, float]] = {}
    for pattern in name_list(vary):
        for what in find_variables(model, pattern).values():
            numbers |= _numbers(what)
    units = tuple(unit for unit, _ in numbers.values())
    return tuple(numbers), units, np.array([value for _, value in numbers.values()])


def _numbers(what: Variable) -> dict[str, tuple[str, float]]:
    """Path to unit and value of each number of a variable."""
    value = np.asarray(what.value, float)
    if not what.components:
        return {what.path: (what.unit, float(value))}
    if value.shape != (len(what.components),):
        raise ValueError(f"{what.path} is a matrix; name its components, as {what.path}/xy")
    units = what.unit.split("; ")
    units = units * len(what.components) if len(units) == 1 else units
    paths = [f"{what.path}/{name}" for name in what.components]
    return dict(zip(paths, zip(units, value.tolist(), strict=True), strict=True))
