# SPDX-License-Identifier: Apache-2.0
"""A comparison as Markdown, to paste into an issue, a mail or a step summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from wbscope.compare.comparison import Comparison, Row
from wbscope.compare.marks import matter_most
from wbscope.render.changes import (
    FACES,
    better_text,
    change_text,
    described_text,
    interval_text,
    median_text,
    row_p,
    runs_text,
)
from wbscope.render.comparepage import (
    constant_text,
    doubt_lines,
    group_name,
    how_to_read,
    left_out,
    short_metric,
    shown_rows,
    title_line,
    warned_text,
)
from wbscope.render.comparescreen import MOST_TOLD
from wbscope.render.comparewords import verdict_lines
from wbscope.render.markdown import plain
from wbscope.render.printable import printable

__all__ = ["compare_markdown"]

_WIDE = 10_000


def compare_markdown(comparison: Comparison, faces: bool = True, full: bool = True) -> str:
    """The verdict of each side and what matters most, then, if `full`, a table for each query.

    What makes numbers doubtful stands between them as quotations.
    """
    lines = [f"## {plain(title_line(comparison))}", ""]
    if warned := warned_text(comparison):
        lines += [f"> {plain(warned)}", ""]
    for side in comparison.sides[1:]:
        verdict, *words = verdict_lines(comparison, side.name)
        lines += [f"## {plain(verdict)}", ""]
        lines += [line for told in words for line in (plain(told), "")]
    for doubt in doubt_lines(comparison, _WIDE):
        lines += [f"> {plain(doubt)}", ""]
    for side in comparison.sides[1:]:
        rows = comparison.of_side(side.name)
        told = [] if full else matter_most(rows, MOST_TOLD)
        if len(comparison.sides) > 2 and (full or told):
            against = printable(f"{side.name} against {comparison.base.name}")
            lines += [f"## {plain(against)}", ""]
        if not full:
            if told:
                lines += [*_table([one.row for one in told], faces, _whole_name), ""]
            continue
        for group, members in groupby(shown_rows(rows), key=group_name):
            lines += [f"### {plain(printable(group))}", "", *_table(list(members), faces), ""]
        if constant := constant_text(rows):
            lines += [plain(constant), ""]
        for reason in left_out(rows):
            lines += [plain(reason), ""]
    lines.append(plain(" ".join(["How to read it.", *how_to_read(comparison, faces)])))
    return "\n".join(lines) + "\n"


def _whole_name(row: Row) -> str:
    return row.metric.name


def _table(rows: list[Row], faces: bool, name: Callable[[Row], str] = short_metric) -> list[str]:
    base, side = (plain(printable(name)) for name in (rows[0].base, rows[0].side))
    heads = ["", "metric", base, side, "change", "interval", "p", "n", "what it says",
             f"{base}: mean ± s.d.", f"{side}: mean ± s.d."]  # fmt: skip
    marks = ["---", "---", *["---:"] * 6, *["---"] * 3]
    table = [heads, marks, *(_cells(row, faces, name(row)) for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in table]


def _cells(row: Row, faces: bool, name: str) -> Iterable[str]:
    cells = [
        FACES[row.outcome] if faces else "",
        name,
        median_text(row.metric, row.base_sample),
        median_text(row.metric, row.sample),
        change_text(row),
        interval_text(row.metric, row.shift),
        row_p(row),
        runs_text(row.sample, row.base_sample),
        f"{row.metric.meaning} ({better_text(row.metric)})",
        described_text(row.metric, row.base_sample),
        described_text(row.metric, row.sample),
    ]
    return [plain(printable(cell)) for cell in cells]
