"""Which hardpoint moves what: exact derivatives of characteristics by a mechanism's numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxmbd import lanes
from jaxmbd.analysis import Status
from jaxmbd.lanes import host_jit
from jaxmbd.model import Mechanism
from jaxmbd.observe import Experiment, Output, status_text
from jaxmbd.plumbing import text_table, unknown
from jaxmbd.suspension.corner import Corner, find_corner
from jaxmbd.suspension.corner_sweep import GRADIENTS, kinematics_sweep, name_list, of_mechanism
from jaxmbd.suspension.kinematics_table import number
from jaxmbd.suspension.wheel_characteristics import available
from jaxmbd.variables import (
    Parametrization,
    Variable,
    find_variables,
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
        places: what they are at, where it is no travel: load cases, in the order of the first axis.

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

    def of(self, output: str, variable: str, travel: int = 0) -> float:
        """One derivative, in SI units, at a travel by its index."""
        i, j = self._output(output), place_of("variable", variable, self.variables)
        return float(self.derivatives[travel, i, j])

    def ranked(self, output: str, travel: int = 0) -> list[tuple[str, float]]:
        """Variables by the size of their effect on one characteristic, as the table prints it.

        In degrees, millimetres and their like (`about` has the SI unit), per mm, degree or 1 %.
        """
        i = self._output(output)
        row = shown(self.about[output].unit)[1] * self.derivatives[travel, i] * self._steps()
        order = np.argsort(-np.abs(row))
        return [(self.variables[j], float(row[j])) for j in order]

    def _output(self, name: str) -> int:
        return place_of("characteristic", name, self.outputs)

    def _steps(self) -> np.ndarray:
        """The change of each variable that the printed table is for, in SI units."""
        sizes = {"m": 1e-3, "rad": np.pi / 180.0}
        pairs = zip(self.units, self.nominal, strict=True)
        return np.array([sizes.get(unit, _SHARE * abs(x)) for unit, x in pairs])

    def __str__(self) -> str:
        per = {"m": "mm", "rad": "deg"}
        scale = [shown(self.about[n].unit) for n in self.outputs]
        blocks = []
        for k, place in enumerate(self.travel):
            change = self.derivatives[k] * self._steps()
            rows = [
                [
                    path,
                    *(number(f * change[i, j]) for i, (_, f) in enumerate(scale)),
                    f"per {per.get(self.units[j], '1 %')}",
                ]
                for j, path in enumerate(self.variables)
                if np.any(change[:, j])
            ]
            head = ["", *self.outputs, ""]
            units = ["", *(unit for unit, _ in scale), ""]
            title = f"change at {self.places[k] if self.places else f'travel {1e3 * place:+g} mm'}"
            none = [x for j, x in enumerate(self.variables) if not np.any(change[:, j])]
            rest = f"\nwithout effect: {', '.join(none)}" if none else ""
            blocks.append(f"{title}\n{text_table(head, [units, *rows], rule=False)}{rest}")
        return "\n\n".join(blocks)


def hardpoint_sensitivities(
    model: Mechanism | Parametrization,
    corner: Corner | None = None,
    vary: str | Iterable[str] = "points/*",
    *,
    observe: str | Iterable[str] | None = None,
    gradients: str | Iterable[str] | None = None,
    travel: float | Sequence[float] = 0.0,
    steer: float = 0.0,
) -> Sensitivities:
    """Exact derivatives of a corner's characteristics by hardpoints and other numbers.

    They are those of the design: where a hardpoint moves in the drawing, all parts are made to fit,
    so that camber and toe as drawn change with the spindle's points only. One kernel evaluates one
    directional derivative for each variable, eight at a time.

    Args:
        model: the mechanism, or a parametrisation (`mirrored`, one's own) whose variables vary.
        corner: the roles; by default those of a corner of the zoo with its names.
        vary: path or pattern, or several, of the variables.
        observe: name or names of characteristics; by default those of `OBSERVED` that it has.
        gradients: of which the derivative along the travel is wanted as well; by default those of
            `GRADIENTS` that are observed.
        travel: at which wheel travels [m].
        steer: travel of the rack [m].

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
    corner = find_corner(mech) if corner is None else corner
    has = available(corner)
    names = [n for n in OBSERVED if n in has] if observe is None else name_list(observe)
    slopes = [n for n in GRADIENTS if n in names] if gradients is None else name_list(gradients)
    places = [float(x) for x in np.ravel(travel)]
    sweep = kinematics_sweep(corner, travel=places, steer=steer, observe=names, gradients=slopes)
    sweep = of_mechanism(sweep, mech)
    table, status = sensitivities_of(sweep, model, vary, np.asarray(places))
    if status != Status.OK:
        raise ValueError(
            f"the corner does not reach one of the travels {places} m "
            f"({status_text(status)}); see `kinematics` for where"
        )
    return table


def sensitivities_of(
    sweep: Experiment,
    model: Mechanism | Parametrization,
    vary: str | Iterable[str],
    travel: np.ndarray,
    places: tuple[str, ...] = (),
) -> tuple[Sensitivities, int]:
    """The derivatives of an experiment's curves, each of numbers, and its `Status`."""
    mech = mechanism_of(model)
    paths, units, nominal = _unknowns(model, vary)
    x = jnp.asarray(nominal, mech.dtype)
    if isinstance(model, Parametrization):
        values, columns, status = _columns(*sweep.split(), model, paths, None, x)
    else:
        values, columns, status = _compiled(*sweep.split(), set_variables, paths, mech, x)
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
    )
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
