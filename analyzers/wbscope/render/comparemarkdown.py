# SPDX-License-Identifier: Apache-2.0
"""A comparison as Markdown, to paste into an issue, a mail or a step summary."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from wbscope.compare.comparison import Comparison, Row
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
    group_name,
    head_lines,
    how_to_read,
    left_out,
    short_metric,
    shown_rows,
)
from wbscope.render.markdown import plain
from wbscope.render.printable import printable

__all__ = ["compare_markdown"]

_WIDE = 10_000


def compare_markdown(comparison: Comparison, faces: bool = True) -> str:
    """A table for each side and query; what makes numbers doubtful as quotations above."""
    first, *doubts = head_lines(comparison, _WIDE)
    lines = [f"## {plain(first)}", ""]
    lines += [line for doubt in doubts for line in (f"> {plain(doubt)}", "")]
    for side in comparison.sides[1:]:
        if len(comparison.sides) > 2:
            lines += [f"## {plain(printable(f'{side.name} against {comparison.base.name}'))}", ""]
        for group, rows in groupby(shown_rows(comparison.of_side(side.name)), key=group_name):
            lines += [f"### {plain(printable(group))}", "", *_table(list(rows), faces), ""]
        for told in left_out(comparison.of_side(side.name)):
            lines += [plain(told), ""]
    lines.append(plain(" ".join(["How to read it.", *how_to_read(comparison, faces)])))
    return "\n".join(lines) + "\n"


def _table(rows: list[Row], faces: bool) -> list[str]:
    base, side = (plain(printable(name)) for name in (rows[0].base, rows[0].side))
    heads = ["", "metric", base, side, "change", "interval", "p", "n", "what it says",
             f"{base}: mean ± s.d.", f"{side}: mean ± s.d."]  # fmt: skip
    marks = ["---", "---", *["---:"] * 6, *["---"] * 3]
    table = [heads, marks, *(_cells(row, faces) for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in table]


def _cells(row: Row, faces: bool) -> Iterable[str]:
    cells = [
        FACES[row.outcome] if faces else "",
        short_metric(row),
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
