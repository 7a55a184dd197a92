"""The explorer's sliders: a handful of numbers, those that matter or those that were looked for."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from jaxmbd.suspension import shown
from jaxmbd.viz.explorer.exploration import Exploration

FEW = 6
MOST = 12
"""Sliders that are shown unless others are looked for, and at most."""

_STEPS = 600
_SAME = 1e-6


class Sliders:
    """Sliders in viser, in a folder of its own.

    Args:
        gui: `viser.ViserServer.gui`.
        design: whose numbers they set.
        changed: called with a path and a value in SI units when a slider was moved.
    """

    def __init__(self, gui: Any, design: Exploration, changed: Callable[[str, float], None]):
        self._gui, self._design, self._changed = gui, design, changed
        self._folder = gui.add_folder("Numbers")
        self._handles: dict[str, Any] = {}
        with self._folder:
            self.search = gui.add_text("find", "", hint="parts of names, or patterns with * and ?")
            self._note = gui.add_markdown("")

    @property
    def paths(self) -> list[str]:
        """Numbers that have a slider."""
        return list(self._handles)

    def handle(self, path: str) -> Any:
        """The slider of a number; its value is in the unit that it shows."""
        return self._handles[path]

    def choose(self) -> None:
        """Put up the sliders of what is looked for; of nothing, of what matters most."""
        paths, note = self._chosen()
        self._note.content = note
        if paths == self.paths:
            return
        for handle in self._handles.values():
            handle.remove()
        with self._folder:
            self._handles = {path: self._slider(path) for path in paths}

    def _chosen(self) -> tuple[list[str], str]:
        names, words = self._design.names, self.search.value.replace(",", " ").split()
        if words:
            fit = [n for n in names if any(_fits(n, word) for word in words)]
            few = fit[:MOST]
            rest = f"; the first {MOST} of them are shown" if len(fit) > MOST else ""
            return few, f"{len(fit)} of {len(names)} numbers{rest}"
        effect = np.abs(self._design.improvement()[1])
        ranked = [k for k in np.argsort(-effect, kind="stable")[:FEW] if effect[k] > 0.0]
        chosen = {x.path for x in self._design.changes()} & set(self.paths)
        chosen |= {names[k] for k in ranked or range(min(FEW, len(names)))}
        few = [n for n in names if n in chosen][:MOST]
        return (
            few,
            f"those of {len(names)} numbers that move *{self._design.curve}* most; lengths in mm",
        )

    def _slider(self, path: str) -> Any:
        unit, factor = shown(self._design.live.unknowns.units[self._design.index(path)])
        low, high, step, _ = self._scale(path)
        handle = self._gui.add_slider(
            label_of(path) + (f" [{unit}]" if unit not in ("", "mm") else ""),
            min=low,
            max=high,
            step=step,
            initial_value=self._value(path),
            hint=path,
        )

        @handle.on_update
        def _(_: Any) -> None:
            if abs(handle.value - self._value(path)) > _SAME * (high - low):
                self._changed(path, handle.value / factor)

        return handle

    def _scale(self, path: str) -> tuple[float, float, float, int]:
        """Limits and step of a slider in the unit that it shows, and the digits of its numbers."""
        k, one = self._design.index(path), self._design.live.unknowns
        factor = shown(one.units[k])[1]
        low, high = factor * float(one.lower[k]), factor * float(one.upper[k])
        step = _step(high - low)
        digits = max(0, -int(np.floor(np.log10(step))))
        return round(low, digits), round(high, digits), step, digits

    def _value(self, path: str) -> float:
        """A number at hand in the unit of its slider."""
        k, one = self._design.index(path), self._design.live.unknowns
        low, high, _, digits = self._scale(path)
        now = shown(one.units[k])[1] * float(self._design.numbers[k])
        return min(max(round(now, digits), low), high)

    def follow(self) -> None:
        """Move the sliders to the numbers at hand."""
        for path, handle in self._handles.items():
            handle.value = self._value(path)


def label_of(path: str) -> str:
    """A number's path as a short label.

    Example:
        >>> from jaxmbd.viz.explorer.sliders import label_of
        >>> label_of("points/tierod_inboard/z"), label_of("forces/spring/stiffness")
        ('tierod inboard z', 'spring stiffness')
    """
    return path.partition("/")[2].replace("/", " ").replace("_", " ") or path


def _fits(path: str, word: str) -> bool:
    return word in path or fnmatchcase(path, word)


def _step(width: float) -> float:
    """A round number, about one of `_STEPS` steps."""
    power = 10.0 ** np.floor(np.log10(width / _STEPS))
    return float(
        round(power * min((1.0, 2.0, 5.0, 10.0), key=lambda k: abs(k - width / _STEPS / power)), 12)
    )
