"""Texts of the explorer's page, as HTML and Markdown."""

from __future__ import annotations

from html import escape

from jaxmbd.suspension.display import number, shown
from jaxmbd.viz.explorer.charts import GIVEN, variant_colour
from jaxmbd.viz.explorer.exploration import Exploration
from jaxmbd.viz.explorer.goals import GOALS
from jaxmbd.viz.fan import LINE, WORST


def trouble_box(text: str) -> str:
    """What is wrong, marked."""
    return (
        f'<div style="margin:0.4em 1em;padding:0.5em 0.7em;border-left:4px solid {WORST};'
        f'background:#fbeef0;color:#7a1f2b;font-size:0.85em">{escape(text)}</div>'
    )


def legend(design: Exploration) -> str:
    """The colours of the curves."""
    kept = [(v.name, variant_colour(k)) for k, v in enumerate(design.variants)]
    parts = (
        f'<span style="color:{colour};font-weight:600">■</span> {escape(name)}'
        for name, colour in (("given", GIVEN), *kept, ("now", LINE))
    )
    return f'<div style="padding:0.3em 1em;font-size:0.85em">{" &nbsp; ".join(parts)}</div>'


def goal_text(design: Exploration) -> str:
    """The goal's value and what it is."""
    value, _ = design.improvement()
    unit, factor = shown(design.live.about[design.curve].unit)
    return f"**{number(factor * value)} {unit}** · {GOALS[design.goal].text}"


def changes_table(design: Exploration) -> str:
    """The changes as a table."""
    rows = []
    for x in design.changes():
        unit, factor = shown(x.unit)
        by = factor * (x.after - x.before)
        rows.append(f"| {x.path} | {number(factor * x.after)} | {by:+.3g} {unit} |")
    if not rows:
        return "as given"
    return "\n".join(["| number | now | change |", "|---|---|---|", *rows])
