"""The explorer's curves: one chart for each output, with the given design and the kept variants."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxmbd.suspension.display import shown
from jaxmbd.viz.explorer.exploration import Exploration
from jaxmbd.viz.fan import LINE

GIVEN = "#a8b1ba"
KEPT = ("#d9a441", "#5fa777", "#9a7fb5", "#c9767f", "#6fa8c9")
"""Colours of the given design, and of kept variants in turn."""

_HEIGHT, _LABEL = 122, 18
_ROOM = 0.15
"""Heights of a chart and of the last one's label [px]; free share above and below the curves."""


def variant_colour(k: int) -> str:
    """The colour of a kept variant."""
    return KEPT[k % len(KEPT)]


class Charts:
    """Charts in viser, one below the other, in the container that is open.

    Args:
        gui: `viser.ViserServer.gui`.
        design: whose curves they are.
    """

    def __init__(self, gui: Any, design: Exploration):
        self._gui, self._design = gui, design
        live = design.live
        self._unit, self._factor = shown(live.unit)
        self._order = np.argsort(live.x, kind="stable")
        self.axis = self._factor * live.x[self._order]
        self._kept = 0
        self._spans: dict[str, tuple[float, float]] = {}
        self._charts = {name: self._chart(name) for name in live.about}

    def _chart(self, name: str) -> Any:
        unit, _ = shown(self._design.live.about[name].unit)
        data = self._data(name, None)
        axis: dict[str, Any] = {"size": 24}
        if last := name == list(self._design.live.about)[-1]:
            axis |= {"label": f"{self._design.live.axis} [{self._unit or '–'}]", "labelSize": 14}
        return self._gui.add_uplot(
            data,
            self._series(),
            title=f"{name.replace('_', ' ')} [{unit or '–'}]",
            scales=self._scales(name, data),
            axes=(axis, {"size": 52}),
            legend={"show": False},
            padding=(8, 14, 0, 0),
            height=_HEIGHT + (_LABEL if last else 0),
        )

    def _scales(self, name: str, data: tuple[np.ndarray, ...]) -> dict[str, Any]:
        """Scales that hold the curves; the same object while they do, for an axis that stands."""
        every = np.concatenate(data[1:])
        every = every[np.isfinite(every)]
        low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
        old = self._spans.get(name)
        if old is None or low < old[0] or high > old[1]:
            room = _ROOM * (high - low) or 0.5 * abs(high) or 1.0
            self._spans[name] = low - room, high + room
        return {"x": {"time": False}, "y": {"range": self._spans[name]}}

    def _series(self) -> tuple[dict[str, Any], ...]:
        """The axis, the given design, kept variants, the design at hand, and where it is shown."""
        plain = {"points": {"show": False}, "pxAlign": 0}
        kept = [
            {"label": v.name, "stroke": variant_colour(k), "width": 1.5} | plain
            for k, v in enumerate(self._design.variants)
        ]
        return (
            {"label": self._design.live.axis},
            {"label": "given", "stroke": GIVEN, "width": 1.5} | plain,
            *kept,
            {"label": "now", "stroke": LINE, "width": 2.5} | plain,
            {"label": "shown", "stroke": LINE, "width": 0, "points": _DOT},
        )

    def _data(self, name: str, place: int | None) -> tuple[np.ndarray, ...]:
        design = self._design
        row = list(design.live.about).index(name)
        factor = shown(design.live.about[name].unit)[1]
        every = [design.given, *design.variants, design.response]
        rows = [factor * np.asarray(x.curves[row])[self._order] for x in every]
        here = np.full(len(self.axis), np.nan)
        if place is not None:
            k = int(np.flatnonzero(self._order == place)[0])
            here[k] = rows[-1][k]
        return (self.axis, *rows, here)

    def update(self, place: int | None) -> None:
        """Draw the curves of the design at hand, with a dot at a place of the axis."""
        series = None
        if self._kept != len(self._design.variants):
            self._kept, series = len(self._design.variants), self._series()
        for name, chart in self._charts.items():
            data, before = self._data(name, place), self._spans[name]
            scales = self._scales(name, data)
            if series is not None:
                chart.series = series
            if self._spans[name] != before:
                chart.scales = scales
            chart.data = data

    def shown(self, name: str) -> tuple[np.ndarray, ...]:
        """What a chart shows: its axis, the given design, variants, the design, and the dot."""
        return self._charts[name].data


_DOT = {"show": True, "size": 9, "width": 2, "stroke": LINE, "fill": "#ffffff"}
