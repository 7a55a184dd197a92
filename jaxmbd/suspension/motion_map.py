"""Maps: all characteristics over two motions at once, as travel and rack, by one call.

The places are visited in rows of the first axis, every other one backwards, so that each is found
from its neighbour: one sweep, and so one compiled function.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxmbd.analysis import Status
from jaxmbd.model import Mechanism
from jaxmbd.observe import Output, Sweep, called, status_text
from jaxmbd.plumbing import optional, text_table, unknown
from jaxmbd.suspension.axle_table import axle_sweep
from jaxmbd.suspension.corner import Corner, find_corner
from jaxmbd.suspension.corner_sweep import CornerSweep, kinematics_sweep, name_list, of_mechanism
from jaxmbd.suspension.kinematics_table import evenly, meaning, number, write_csv
from jaxmbd.suspension.motions import wheel_key
from jaxmbd.suspension.wheel_characteristics import Characteristic
from jaxmbd.suspension.wheel_reach import reach
from jaxmbd.variables import shown

_PRINTED = 5
_ROLL = "roll"


@dataclass(frozen=True)
class KinematicsMap:
    """Characteristics over two motions; printed as tables, written as CSV.

    Attributes:
        axes: the two motions, each with its values [m, in roll rad].
        columns: characteristic to values (n, m), of vectors (n, m, 3), in SI units; derivatives
            along a motion are ``<name>_<motion>_gradient``.
        about: characteristic to its `Output`: unit and text with sign.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> found = suspension.kinematics_map(
        ...     mbd.zoo.double_wishbone_kinematic(), travel=[-0.02, 0.0, 0.02],
        ...     steer=[-0.01, 0.01], observe=["toe"])
        >>> list(found.axes), found["toe"].shape
        (['travel', 'steer'], (3, 2))
    """

    axes: dict[str, np.ndarray]
    columns: dict[str, np.ndarray]
    about: dict[str, Output] = field(repr=False)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def shown(self, name: str) -> tuple[np.ndarray, str]:
        """Values in the unit in which they are printed, and that unit."""
        unit, factor = shown(self.about[name].unit)
        return factor * self.columns[name], unit

    def _axis(self, name: str) -> tuple[np.ndarray, str]:
        unit, factor = shown("rad" if name == _ROLL else "m")
        return factor * self.axes[name], unit

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one row for each place: both axes, then all columns, in their printed units."""
        head, series = [], []
        scales = {n: self._axis(n) for n in self.axes}
        places = np.meshgrid(*(x for x, _ in scales.values()), indexing="ij")
        for (name, (_, unit)), values in zip(scales.items(), places, strict=True):
            head.append(f"{name} [{unit}]")
            series.append(values.ravel())
        for name in self.columns:
            values, unit = self.shown(name)
            ends = [""] if values.ndim == 2 else ["_x", "_y", "_z"]
            head += [f"{name}{end} [{unit}]" for end in ends]
            series += list(values.reshape(-1, len(ends)).T)
        write_csv(path, head, np.stack(series, axis=1).tolist())

    def to_xarray(self) -> Any:
        """The map as an `xarray.Dataset` in SI units, with units and texts as attributes."""
        xarray = optional("xarray", "campaign", "an xarray.Dataset")
        dims = tuple(self.axes)
        units = {n: "rad" if n == _ROLL else "m" for n in dims}
        found = {}
        for name, values in self.columns.items():
            about = self.about[name]
            along = dims if values.ndim == 2 else (*dims, "axis")
            found[name] = (along, values, {"units": about.unit, "long_name": about.text})
        coords: dict[str, Any] = {n: (n, x, {"units": units[n]}) for n, x in self.axes.items()}
        if any(x.ndim == 3 for x in self.columns.values()):
            coords["axis"] = ["x", "y", "z"]
        return xarray.Dataset(found, coords)

    def table(self, name: str, places: int | None = _PRINTED) -> str:
        """One column as a table, the first axis downwards.

        Args:
            name: of a column with one number at each place.
            places: how many places of either axis, evenly chosen; None for all.

        Raises:
            ValueError: there is no such column, or it is one of vectors.
        """
        scalars = [n for n, x in self.columns.items() if x.ndim == 2]
        if problems := unknown("column of numbers", name, scalars):
            raise ValueError(problems[0])
        values, unit = self.shown(name)
        (down, (y, y_unit)), (along, (x, x_unit)) = ((n, self._axis(n)) for n in self.axes)
        rows, columns = (evenly(len(v), places) for v in (y, x))
        head = [f"{down} [{y_unit}] \\ {along} [{x_unit}]", *(f"{x[j]:+.5g}" for j in columns)]
        body = [[f"{y[i]:+.5g}", *(number(values[i, j]) for j in columns)] for i in rows]
        text = meaning(name, self.about[name].text)
        return f"{name} [{unit or '1'}]: {text}\n{text_table(head, body, (), rule=False)}"

    def __str__(self) -> str:
        return "\n\n".join(self.table(n) for n, x in self.columns.items() if x.ndim == 2)


def kinematics_map(
    mech: Mechanism,
    corners: Corner | Sequence[Corner] | None = None,
    *,
    travel: Sequence[float] | float | None = None,
    heave: Sequence[float] | float | None = None,
    roll: Sequence[float] | float | None = None,
    steer: Sequence[float] | float | None = None,
    observe: str | Iterable[str] | None = None,
    gradients: str | Iterable[str] = (),
    settle: bool = False,
) -> KinematicsMap:
    """Characteristics of a corner or an axle over two motions at once, by one compiled function.

    Of a corner the motions are `travel` and `steer`; of an axle two of `heave`, `roll` and `steer`
    have lists of values, the third may have a number. The map is that of `kinematics` or
    `axle_kinematics` at each of its places.

    Args:
        mech: the corner, or the axle.
        corners: roles of a corner, or of the left and the right one of an axle; by default those of
            a corner of the zoo with its names.
        travel: of the wheel centre upwards, from where it is drawn [m].
        heave: rise of the road under an axle [m].
        roll: of the body on the road [rad], positive: right side down.
        steer: travel of the rack from where it is drawn [m].
        observe: name or names of columns; by default all.
        gradients: names of those of a corner's whose derivatives along both motions are wanted.
        settle: whether what is not held, as bushings are not, comes to rest.

    Raises:
        ValueError: names or roles do not fit, not two motions have lists, or a place is not
            reached.

    Example:
        >>> import jaxmbd as mbd
        >>> from jaxmbd import suspension
        >>> found = suspension.kinematics_map(
        ...     mbd.zoo.double_wishbone_kinematic(), travel=[-0.05, 0.0, 0.05],
        ...     steer=[-0.03, 0.0, 0.03], observe=["steer_angle"])
        >>> print(found.table("steer_angle").splitlines()[0])
        steer_angle [deg]: about the vertical, positive: to the left
        >>> round(found.to_xarray()["steer_angle"].sel(travel=0.05, steer=0.0).item(), 4)
        -0.0078
    """
    roles = find_corner(mech) if corners is None else corners
    given = {"travel": travel, "heave": heave, "roll": roll, "steer": steer}
    given = {n: x for n, x in given.items() if x is not None}
    lists = {n: np.asarray(x, float) for n, x in given.items() if np.ndim(x) == 1}
    usual = ("travel", "steer") if isinstance(roles, Corner) else ("heave", "roll", "steer")
    if len(lists) != 2 or not set(given) <= set(usual):
        raise ValueError(
            f"give lists of values of two motions of {', '.join(usual)}; found "
            f"{', '.join(lists) or 'none'}"
            + "".join(f", and {n}= is no motion here" for n in given if n not in usual)
        )
    if not all(len(x) for x in lists.values()):
        raise ValueError(f"{' and '.join(lists)} need at least one value each")
    (first, a), (second, b) = lists.items()
    rows = [b if i % 2 == 0 else b[::-1] for i in range(len(a))]
    flat = {first: np.repeat(a, len(b)).tolist(), second: np.concatenate(rows).tolist()}
    still = {n: float(np.asarray(x)) for n, x in given.items() if n not in lists}
    if isinstance(roles, Corner):
        sweep = _corner_sweep(roles, flat, observe, gradients, settle)
        sweep = of_mechanism(sweep, mech)
    else:
        if name_list(gradients):
            raise ValueError(
                "gradients= of a map are of a corner; those of an axle are its sweep's"
            )
        motions: Any = flat | still
        sweep = axle_sweep(roles, **motions, observe=observe, settle=settle)
        sweep.check(mech)
        sweep.warn(mech)
    found = {n: np.asarray(x) for n, x in called(sweep, mech).items()}
    if int(found["status"]) != Status.OK:
        _raise(mech, roles, sweep, flat, still, Status(int(found["status"])))
    columns = {}
    for name in sweep.observe:
        columns[name] = found[name].reshape(len(a), len(b), *found[name].shape[1:]).copy()
        columns[name][1::2] = columns[name][1::2, ::-1].copy()
    about = sweep.declare(mech).outputs
    return KinematicsMap({first: a, second: b}, columns, {n: about[n] for n in columns})


def _corner_sweep(
    corner: Corner,
    flat: Mapping[str, Sequence[float]],
    observe: str | Iterable[str] | None,
    gradients: str | Iterable[str],
    settle: bool,
) -> CornerSweep:
    """A sweep of a corner in which both motions move."""
    plain = kinematics_sweep(
        corner, travel=0.0, steer=flat["steer"], observe=observe, gradients=(), settle=settle
    )
    wanted = dict(plain.observe)
    for name in name_list(gradients):
        for axis in flat:
            wanted[f"{name}_{axis}_gradient"] = Characteristic(corner, name, axis)
    over = {wheel_key(corner): flat["travel"], corner.steering: flat["steer"]}
    return CornerSweep(over, wanted, dim="place", settle=settle, corner=corner)


def _raise(
    mech: Mechanism,
    roles: Any,
    sweep: Sweep,
    flat: Mapping[str, Sequence[float]],
    still: Mapping[str, float],
    status: Status,
) -> None:
    """Say which place is not reached, and how far the second motion reaches beside it."""
    course = sweep.trajectory(mech)
    beside: Any = dict(still)
    k = int(np.argmax(~np.all(np.isfinite(course.q), axis=1)))
    (first, a), (second, b) = flat.items()
    texts = []
    for name, x in ((first, a[k]), (second, b[k])):
        unit, factor = shown("rad" if name == _ROLL else "m")
        texts.append(f"{name} {factor * x:+.1f} {unit}")
    text = f"{' and '.join(texts)} is not reached ({status_text(status)})"
    if not sweep.settle and status == Status.NOT_ASSEMBLED:
        try:
            text += f": there {reach(mech, roles, of=second, **{first: a[k]}, **beside)}"
        except ValueError:
            text += f": {first} alone is out of reach, {reach(mech, roles, of=first)}"
    raise ValueError(f"{text}. Give smaller ranges, or check the hardpoints")
