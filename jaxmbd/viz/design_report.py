"""One HTML file about a corner or an axle: tables, curves before and after, an animation."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxmbd.model import Mechanism
from jaxmbd.report import ReportPage
from jaxmbd.suspension import (
    Corner,
    Kinematics,
    Sensitivities,
    axle_kinematics,
    axle_sweep,
    hardpoint_sensitivities,
    kinematics,
    kinematics_sweep,
    steering,
)
from jaxmbd.variables import shown
from jaxmbd.viz.curves import ackermann_figure, kinematics_figure
from jaxmbd.viz.glyphs import corner_wheel
from jaxmbd.viz.viser_scene import page

_PLACES = 25
_TRAVEL, _ROLL = (-0.06, 0.06), (-0.05, 0.05)
_STEER = (-0.03, 0.03), (-0.5, 0.5)
"""Of a rack, of a pitman arm."""
_LISTED = 30
_ROUNDING = 1e-9
_CURVES = {
    "travel": (
        "toe camber half_track_change wheelbase_change virtual_caster roll_centre_height "
        "motion_ratio wheel_rate"
    ),
    "heave": "left_toe left_camber left_half_track_change left_wheelbase_change roll_centre_height",
    "roll": (
        "left_camber left_camber_to_road axle_steer track roll_centre_height roll_centre_lateral "
        "load_transfer roll_moment"
    ),
    "steer": (
        "steer_angle camber caster virtual_mechanical_trail left_steer_angle right_steer_angle "
        "left_camber track"
    ),
}


def suspension_report(
    path: str | os.PathLike[str],
    mech: Mechanism,
    corners: Corner | Sequence[Corner],
    *,
    before: Mechanism | None = None,
    travel: tuple[float, float] = _TRAVEL,
    roll: tuple[float, float] = _ROLL,
    steer: tuple[float, float] | None = None,
    settle: bool = False,
    factors: Sensitivities | None = None,
    title: str = "Suspension",
    animate: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write a report on a corner or an axle as one HTML file, which needs no network.

    It has the characteristics as drawn, the hardpoints, curves over wheel travel and the rack's
    travel, of an axle over roll, too, what each hardpoint changes (of a rigid corner), all tables,
    and an animation. Curves of an earlier design are drawn beside, by which the tables tell what
    has changed.

    Args:
        path: the file.
        mech: the corner or the axle.
        corners: the roles of its parts, of a corner one, of an axle the left and the right wheel's.
        before: the same mechanism with other numbers, an earlier design.
        travel: range of the wheel travel, of an axle of parallel travel [m].
        roll: range of an axle's roll [rad].
        steer: range of the rack's travel [m], or of the pitman arm's angle [rad], where there is
            one; by default ±30 mm, or ±0.5 rad.
        settle: whether bushings come to rest (`suspension.kinematics`, `axle_kinematics`).
        factors: a table of factors by responses to be shown (`suspension.hardpoint_sensitivities`
            with ``steps=``).
        title: of the page.
        animate: whether there is an animation, of some megabytes.
        overwrite: whether a file that is there may be replaced.

    Returns:
        the file's path.

    Raises:
        FileExistsError: there is such a file, and `overwrite` is not set.
        ImportError: matplotlib, or viser for the animation, is not installed.
        ValueError: roles do not fit, or a range is not reached.

    Example:
        >>> import tempfile, jaxmbd as mbd
        >>> from jaxmbd.viz import suspension_report
        >>> corner = mbd.zoo.multi_link()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     suspension_report(folder + "/rear.html", corner,
        ...         mbd.suspension.zoo_corner("multi_link"), animate=False).name
        'rear.html'
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists; overwrite=True replaces it")
    roles = (corners,) if isinstance(corners, Corner) else tuple(corners)
    designs = {"": mech} if before is None else {"before": before, "after": mech}
    ranges = {"travel": travel, "roll": roll, "steer": steer or _STEER[roles[0].turns(mech)]}
    events = {
        what: {name: _table(one, roles, what, ranges, settle) for name, one in designs.items()}
        for what in _events(mech, roles, settle)
    }
    sheet = ReportPage(title)
    _as_drawn(sheet, next(iter(events.values())))
    _hardpoints(sheet, mech, before)
    for what, tables in events.items():
        _curves(sheet, what, tables)
    if len(roles) == 1 and not settle:
        _what_moves(sheet, hardpoint_sensitivities(mech, roles[0]))
    if factors is not None:
        sheet.heading("Factors and responses")
        sheet.table(*factors.factor_rows())
        sheet.note("Each effect is that of its factor's step.")
    if animate:
        sheet.heading("Motion")
        sheet.raw(_animation(mech, roles, travel, settle))
    _all_numbers(sheet, events)
    target.write_text(sheet.html(), encoding="utf-8")
    return target


def _events(mech: Mechanism, roles: Sequence[Corner], settle: bool) -> Iterator[str]:
    """What is moved, the first being the wheel travel; angles of both wheels are rigid ones."""
    yield "travel"
    if len(roles) == 2:
        yield "roll"
    if roles[0].slides(mech):
        yield "steer"
        alone = len(roles) == 1 and roles[0].turns(mech)
        if roles[0].wheelbase and not settle and not alone:
            yield "angles"


def _places(ends: tuple[float, float]) -> list[float]:
    """Values over a range, among them that nearest to zero, which becomes zero."""
    found = np.linspace(*ends, _PLACES).round(9)
    if ends[0] <= 0.0 <= ends[1]:
        found[np.argmin(np.abs(found))] = 0.0
    return found.tolist()


def _table(
    mech: Mechanism,
    roles: Sequence[Corner],
    what: str,
    ranges: Mapping[str, tuple[float, float]],
    settle: bool,
) -> Kinematics:
    """The table of an event; "angles" are both wheels', of a corner that is mirrored."""
    if what == "angles":
        return steering(mech, *roles, steer=_places(ranges["steer"]))
    values = _places(ranges[what])
    if len(roles) == 1:
        moved: dict[str, Any] = {what: values}
        return kinematics(mech, roles[0], settle=settle, **moved)
    moved = {"heave" if what == "travel" else what: values}
    return axle_kinematics(mech, roles, settle=settle or None, **moved)


def _animation(
    mech: Mechanism, roles: Sequence[Corner], travel: tuple[float, float], settle: bool
) -> str:
    """A frame that plays the wheel travel."""
    if len(roles) == 1:
        sweep: Any = kinematics_sweep(
            roles[0], travel=_places(travel), observe=["camber"], gradients=(), settle=settle
        )
    else:
        whole = axle_sweep(roles, heave=_places(travel), observe=["track"], settle=settle or None)
        sweep, mech = whole.on(mech)
    wheels = [corner_wheel(mech, corner) for corner in roles]
    # The roll centre of an axle takes twenty seconds to compile.
    lines = roles if len(roles) == 1 and not settle else ()
    return page(mech, sweep.trajectory(mech), wheels=wheels, corners=lines)._repr_html_()


def _seen(x: Any) -> float:
    """A number in millimetres, degrees and their like, without the rounding of zero."""
    return 0.0 if abs(x) < _ROUNDING else float(x)


def _as_drawn(sheet: ReportPage, tables: Mapping[str, Kinematics]) -> None:
    """The characteristics nearest to where the wheel is drawn."""
    sheet.heading("As drawn")
    last = list(tables.values())[-1]
    k = int(np.argmin(np.abs(last.x)))
    rows = []
    for name, y in last.columns.items():
        if y.ndim > 1:
            continue
        values = [float(t.shown(name)[0][k]) for t in tables.values()]
        values += [values[1] - values[0]] if len(values) == 2 else []
        unit, text = last.shown(name)[1], re.sub(r" \[[^\]]*\]", "", last.about[name].text)
        rows.append([name.replace("_", " "), *map(_seen, values), unit or "–", text])
    head = ["before", "after", "change"] if len(tables) == 2 else ["value"]
    sheet.table(["characteristic", *head, "unit", ""], rows)


def _hardpoints(sheet: ReportPage, mech: Mechanism, before: Mechanism | None) -> None:
    """Coordinates in mm, and by how much they moved."""
    sheet.heading("Hardpoints")
    rows = []
    for name in mech.structure.points:
        x = 1e3 * np.asarray(mech.points[name], float)
        moved = [] if before is None else x - 1e3 * np.asarray(before.points[name], float)
        rows.append([name, *x.tolist(), *map(_seen, moved)])
    moved = [] if before is None else ["Δx", "Δy", "Δz"]
    sheet.table(["mm", "x", "y", "z", *moved], rows)
    sheet.note("x forward, y left, z up.")


def _curves(sheet: ReportPage, what: str, tables: Mapping[str, Kinematics]) -> None:
    titles = {
        "travel": "Wheel travel", "roll": "Roll", "steer": "Steering", "angles": "Steering angles",
    }  # fmt: skip
    sheet.heading(titles[what])
    one = next(iter(tables.values()))
    wanted = _CURVES.get(one.axis, "").split() if what != "angles" else list(one.columns)[:4]
    names = [n for n in wanted if n in one.columns]
    turns = what == "angles" and any(np.isfinite(one["ackermann_share"]))
    figure = ackermann_figure(tables) if turns else kinematics_figure(tables, names or None)
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    text = picture.getvalue()
    sheet.raw(text[text.index("<svg") :])


def _what_moves(sheet: ReportPage, found: Sensitivities) -> None:
    """Changes of each characteristic per mm, the strongest numbers first."""
    sheet.heading("What the hardpoints change")
    changes = {n: dict(found.ranked(n)) for n in found.outputs}
    largest = {n: max(map(abs, row.values()), default=0.0) or 1.0 for n, row in changes.items()}
    weight = {v: max(abs(changes[n][v]) / largest[n] for n in changes) for v in found.variables}
    chosen = sorted((v for v in weight if weight[v] > 0.0), key=lambda v: -weight[v])
    units = [f"{n} [{shown(found.about[n].unit)[0]}]" for n in found.outputs]
    rows = [[v, *(_seen(changes[n][v]) for n in found.outputs)] for v in chosen[:_LISTED]]
    sheet.table(["per mm", *(u.replace("_", " ") for u in units)], rows)
    rest, idle = max(len(chosen) - _LISTED, 0), len(weight) - len(chosen)
    sheet.note(f"{rest} more have less effect; {idle} have none.")


def _all_numbers(sheet: ReportPage, events: Mapping[str, Mapping[str, Kinematics]]) -> None:
    sheet.heading("All numbers")
    for what, tables in events.items():
        for name, table in tables.items():
            unit, factor = shown(table.unit)
            data = {f"{table.axis} [{unit}]": (factor * table.x).round(9).tolist()}
            for column in table.columns:
                values, of = table.shown(column)
                data[f"{column} [{of}]"] = np.asarray(values).round(9).tolist()
            sheet.details(" ".join(filter(None, (what, name))), data)
