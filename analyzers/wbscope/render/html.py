# SPDX-License-Identifier: Apache-2.0
"""A result as a table of HTML, for notebooks."""

from __future__ import annotations

from html import escape

from wbscope.base.result import Result, converter
from wbscope.render.arrange import arranged
from wbscope.render.cells import body, headings, is_text
from wbscope.render.messages import warning_text

__all__ = ["html_table"]

# A notebook keeps what it shows in its file: more rows are for to_pandas().
_SHOWN = 100


@converter
def html_table(result: Result) -> str:
    """Warnings, the first rows with times from the run's start, meanings as tooltips."""
    result = arranged(result.from_start())
    meanings = result.descriptions()
    told = "".join(f"<p><b>{escape(warning_text(n))}</b></p>" for n in result.warnings)
    heads = "".join(
        f'<th title="{escape(_tooltip(result, name, meanings))}">{escape(heading)}</th>'
        for name, heading in zip(result.columns, headings(result), strict=True)
    )
    sides = ["left" if text else "right" for text in is_text(result)]
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side}">{escape(cell)}</td>'
            for side, cell in zip(sides, row, strict=True)
        )
        + "</tr>"
        for row in body(result)[:_SHOWN]
    )
    hidden = len(result.rows) - _SHOWN
    more = f"<p>{hidden} more rows</p>" if hidden > 0 else ""
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<div>{told}{table}{more}</div>"


def _tooltip(result: Result, name: str, meanings: dict[str, str]) -> str:
    unit = result.units.get(name)
    return f"{name}{f' ({unit})' if unit else ''}: {meanings.get(name, '')}".rstrip(": ")
