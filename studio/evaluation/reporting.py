"""A report of text, tables and a plot, in Markdown and HTML.

matplotlib is imported when the plot is drawn.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sleuth.studio.evaluation.run_folder import REPORT, write
from sleuth.studio.evaluation.scoring import Interval
from sleuth.tools.text import markdown_table

Rows = Sequence[Sequence[str]]
"""A table: the first row is its header."""

_STYLE = "\n".join(
    (
        "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}",
        "table{border-collapse:collapse;margin:1em 0;font-size:13px;font-variant-numeric:tabular-nums}",
        "th,td{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}",
        "pre{background:#f5f5f5;padding:.7em;overflow-x:auto}figure{margin:1em 0}svg{max-width:100%;height:auto}",
        "summary{cursor:pointer;font-weight:600}",
        "p.label{background:#fff3cd;border:1px solid #e0c36a;padding:.6em}",
    )
)


class Page:
    """A report, written from its beginning to its end, in Markdown and as one HTML page without external files.

    All texts are plain. Pictures and folded tables are in the HTML page only.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._markdown: list[str] = []
        self._html: list[str] = []
        self.heading(1, title)

    def heading(self, level: int, text: str) -> None:
        """Add a heading; the level counts from 1."""
        self._add(f"{'#' * level} {text}", f"<h{level}>{escape(text)}</h{level}>")

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self._add(text, f"<p>{escape(text)}</p>")

    def label(self, text: str) -> None:
        """Add a highlighted paragraph."""
        self._add(f"**{text}**", f'<p class="label">{escape(text)}</p>')

    def table(self, rows: Rows) -> None:
        """Add a table."""
        self._add(markdown_table(rows), _html_table(rows))

    def folded_table(self, title: str, rows: Rows) -> None:
        """Add a table that is folded below its title."""
        self._html.append(f"<details><summary>{escape(title)}</summary>\n{_html_table(rows)}</details>")

    def code(self, text: str) -> None:
        """Add commands to copy."""
        self._add(f"```sh\n{text}\n```", f"<pre>{escape(text)}</pre>")

    def picture(self, title: str, svg: str) -> None:
        """Add a picture above its title."""
        self._html.append(f"<figure>{svg}<figcaption>{escape(title)}</figcaption></figure>")

    def to_markdown(self) -> str:
        """Return the report in Markdown."""
        return "\n\n".join(self._markdown) + "\n"

    def to_html(self) -> str:
        """Return a page with its style and pictures inside."""
        head = f'<meta charset="utf-8"><title>{escape(self._title)}</title><style>{_STYLE}</style>'
        body = "\n".join(self._html)
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'

    def _add(self, markdown: str, html: str) -> None:
        self._markdown.append(markdown)
        self._html.append(html)


def write_report(folder: Path, page: Page, report: Mapping[str, Any]) -> None:
    """Write the report as JSON, Markdown and HTML. Blocks."""
    write(folder / "report.md", page.to_markdown())
    write(folder / "report.html", page.to_html())
    write(folder / REPORT, to_json(report, indent=2).decode() + "\n")


def _html_table(rows: Rows) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows[1:])
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{lines}</tbody></table>"


def draw_costs(lines: Mapping[str, Mapping[str, Interval]], label: str) -> str:
    """Draw the quality of each system against its tokens, as a point with its intervals, with a label above all.

    Returns:
        The plot as SVG, the same for the same numbers.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "sleuth", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8.0, 4.5), layout="constrained")
        axes = figure.subplots()
        points = [(name, line["tokens"], line["f1"]) for name, line in lines.items() if line["f1"]["n"]]
        for at, (name, tokens, f1) in enumerate(points):
            x, y = tokens["mean"] or 0, 100 * (f1["mean"] or 0)
            spread = [[x - (tokens["low"] or 0)], [(tokens["high"] or 0) - x]]
            height = [[y - 100 * (f1["low"] or 0)], [100 * (f1["high"] or 0) - y]]
            axes.errorbar(x, y, xerr=spread, yerr=height, fmt="o", capsize=2, color=f"C{at}")
            place = (6, -11 if at % 2 else 5)
            axes.annotate(name, (x, y), textcoords="offset points", xytext=place, fontsize=8)
        axes.set(xlabel="tokens per question (prompt and completion)", ylabel="F1 in percent")
        axes.set_xlim(left=0)
        axes.set_title(label, fontsize=9, color="darkred")
        axes.grid(visible=True, alpha=0.3)
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"^.*?(?=<svg)", "", written.getvalue(), flags=re.DOTALL)
