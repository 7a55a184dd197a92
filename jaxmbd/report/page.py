"""The page of a report: headings, tables and figures in one HTML file that needs no network."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

from jaxmbd.numerics.extras import optional

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 1180px; margin: 2em auto;
       padding: 0 1.5em; }
h1 { font-size: 1.6em; margin-bottom: .2em; }
h2 { font-size: 1.2em; margin-top: 2.2em; border-bottom: 1px solid #ddd; padding-bottom: .2em; }
p.note { color: #555; max-width: 60em; }
table { border-collapse: collapse; margin: .8em 0; font-size: .9em; display: block;
        overflow-x: auto; }
th, td { padding: .25em .7em; border-bottom: 1px solid #e4e4e4; text-align: right; }
th:first-child, td:first-child, td.text { text-align: left; }
th { border-bottom: 1px solid #999; font-weight: 600; }
figure { margin: 0 1.2em 1em 0; display: inline-block; vertical-align: top; }
details { margin: .8em 0; }
pre { background: #f6f6f6; padding: 1em; overflow-x: auto; font-size: .85em; }
.vega-bind { margin: .2em 1em .2em 0; display: inline-block; }
.vega-bind select { max-width: 26em; }
.bad { color: #b3400a; font-weight: 600; }
"""


class Page:
    """A page that grows from the top.

    Args:
        title: of the page.
    """

    def __init__(self, title: str):
        self.title = title
        self._body: list[str] = [f"<h1>{html.escape(title)}</h1>"]
        self._specs: list[dict[str, Any]] = []

    def heading(self, text: str) -> None:
        """A section begins."""
        self._body.append(f"<h2>{html.escape(text)}</h2>")

    def note(self, text: str, *, bad: bool = False) -> None:
        """A paragraph."""
        kind = "note bad" if bad else "note"
        self._body.append(f'<p class="{kind}">{html.escape(text)}</p>')

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """A table; numbers with five digits."""
        head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
        lines = ["".join(map(_cell, row)) for row in rows]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        self._body.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def figure(self, chart: Any) -> None:
        """An Altair chart."""
        name = f"figure{len(self._specs)}"
        self._specs.append(chart.to_dict())
        self._body.append(f'<figure id="{name}"></figure>')

    def details(self, summary: str, data: Any) -> None:
        """Data that is shown when it is asked for."""
        text = html.escape(json.dumps(data, indent=1, ensure_ascii=False, default=str))
        title = html.escape(summary)
        self._body.append(f"<details><summary>{title}</summary><pre>{text}</pre></details>")

    def html(self) -> str:
        """The file: the plotting library, the tables, and the figures' descriptions."""
        library = optional("vl_convert", "report", "a report").javascript_bundle()
        options = json.dumps({"mode": "vega-lite", "renderer": "svg", "actions": False})
        calls = "\n".join(
            f'vegaEmbed("#figure{i}", {_in_script(spec)}, {options}).catch(console.error);'
            for i, spec in enumerate(self._specs)
        )
        title = html.escape(self.title)
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n"
            f'<script type="text/javascript">{library}</script>\n</head>\n<body>\n'
            + "\n".join(self._body)
            + f'\n<script type="text/javascript">\n{calls}\n</script>\n</body>\n</html>\n'
        )


def number(x: float) -> str:
    """A number with five digits, a dash for none.

    Example:
        >>> from jaxmbd.report.page import number
        >>> number(0.00123456), number(float("nan")), number(150000.0)
        ('0.0012346', '–', '1.5e+05')
    """
    return "–" if x != x else f"{x:.5g}"


def _cell(x: Any) -> str:
    if isinstance(x, str):
        return f'<td class="text">{html.escape(x)}</td>'
    shown = "–" if x is None else number(x) if isinstance(x, float) else str(x)
    return f"<td>{html.escape(shown)}</td>"


def _in_script(spec: Any) -> str:
    """JSON that may stand in a script element."""
    text = json.dumps(spec, separators=(",", ":"), ensure_ascii=False)
    return text.replace("</", "<\\/").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
