# SPDX-License-Identifier: Apache-2.0
"""A comparison as text: one table for each query, its sentences below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len

from wbscope.compare.comparison import Comparison, Row, Side
from wbscope.compare.differences import facts_text
from wbscope.compare.marks import FALSE_SHARE, is_constant
from wbscope.compare.published import is_published
from wbscope.measure.metric import split_name
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
from wbscope.render.comparewords import verdict_lines
from wbscope.render.messages import warning_text
from wbscope.render.printable import folded, printable
from wbscope.render.table import PAGE_WIDTH

__all__ = [
    "compare_text",
    "constant_text",
    "doubt_lines",
    "folded",
    "group_name",
    "how_sure",
    "how_to_read",
    "is_tested",
    "is_untested",
    "laid_out",
    "left_out",
    "level_text",
    "one_run_each",
    "short_metric",
    "shown_rows",
    "tests_text",
    "title_line",
    "verdict_first",
    "warned_text",
]

_GAP = "  "
_INDENT = "    "


def compare_text(
    comparison: Comparison, width: int = PAGE_WIDTH, faces: bool = True, describe: bool = False
) -> str:
    """The verdict and what makes it doubtful, then the tables of each side against the base.

    `describe` adds means and standard deviations, which decide nothing.
    """
    lines = verdict_first(comparison, width)
    for side in comparison.sides[1:]:
        if len(comparison.sides) > 2:
            title = printable(f"{side.name} against {comparison.base.name}")
            lines += ["", title, "=" * len(title), ""]
            lines += [folded(line, width) for line in verdict_lines(comparison, side.name)]
        rows = shown_rows(comparison.of_side(side.name))
        for group, members in groupby(rows, key=group_name):
            lines += ["", *_group_lines(group, list(members), width, faces, describe)]
        if told := constant_text(comparison.of_side(side.name)):
            lines += ["", folded(told, width)]
        for told in left_out(comparison.of_side(side.name)):
            lines += ["", folded(told, width)]
    told = " ".join(["How to read it.", *how_to_read(comparison, faces)])
    return "\n".join([*lines, "", folded(told, width)]) + "\n"


def title_line(comparison: Comparison) -> str:
    """Who against whom."""
    sides = ", ".join(_runs_of(side) for side in comparison.sides[1:])
    return printable(f"wbscope compare: {sides}, against {_runs_of(comparison.base)}")


def verdict_first(comparison: Comparison, width: int) -> list[str]:
    """What it comes to, how sure that is, and behind both all that makes the numbers doubtful.

    Of one side all its words; of several the verdict of each, as their words stand at their tables.
    """
    told = [verdict_lines(comparison, side.name) for side in comparison.sides[1:]]
    lines = [*(words[0] for words in told), how_sure(comparison)]
    lines += told[0][1:] if len(told) == 1 else []
    doubts = doubt_lines(comparison, width)
    return [folded(line, width) for line in lines] + (["", *doubts] if doubts else [])


def how_sure(comparison: Comparison) -> str:
    """A: 6 runs, B: 6 runs; warnings below: 2 x not-the-same."""
    base, *others = comparison.sides
    runs = printable(", ".join(_runs_of(side) for side in (*others, base)))
    warned = warned_text(comparison)
    return f"{runs}; {warned}." if warned else f"{runs}."


def warned_text(comparison: Comparison) -> str:
    """What stands below as lines, in one: it is known before the first number; or nothing."""
    slugs = [notice.slug for notice in comparison.warnings]
    slugs += ["not-the-same" for _ in comparison.differing]
    doubts = [slug if n == 1 else f"{n} x {slug}" for slug, n in Counter(slugs).items()]
    if comparison.unknown:
        doubts.append("unknown facts")
    return printable(f"warnings below: {', '.join(doubts)}") if doubts else ""


def doubt_lines(comparison: Comparison, width: int) -> list[str]:
    """All that makes the numbers doubtful."""
    lines = [folded(warning_text(notice), width) for notice in comparison.warnings]
    for difference in comparison.differing:
        lines.append(folded(f"warning[not-the-same]: {difference.text()}", width))
    if comparison.unknown:
        told = "not known of all runs, so nobody can say that it is the same: "
        told += printable(facts_text(comparison.unknown))
        lines.append(folded(told, width))
    return lines


def shown_rows(rows: Iterable[Row]) -> list[Row]:
    """Those that both sides have, and in which there is something to see."""
    there = (row for row in rows if row.sample.values and row.base_sample.values)
    return [row for row in there if not is_constant(row)]


def constant_text(rows: Iterable[Row]) -> str:
    """What is one value in all runs of both sides; empty when nothing is."""
    told = [
        f"{row.metric.name} {median_text(row.metric, row.sample)}"
        for row in rows
        if is_constant(row)
    ]
    return printable(f"the same in all runs: {', '.join(told)}") if told else ""


def group_name(row: Row) -> str:
    """The query, or the tool, that a metric is from."""
    return row.metric.name.partition(".")[0]


def short_metric(row: Row) -> str:
    """The metric without its group; the unit is in each cell."""
    return row.metric.name.partition(".")[2] or row.metric.name


def _runs_of(side: Side) -> str:
    count = len(side.runs)
    return f"{side.name}: {count} run{'' if count == 1 else 's'}"


def _group_lines(group: str, rows: list[Row], width: int, faces: bool, describe: bool) -> list[str]:
    heads = [
        "",
        "",
        printable(rows[0].base),
        printable(rows[0].side),
        "change",
        "interval",
        "p",
        "n",
    ]
    table = [heads] + [_cells(row, faces) for row in rows]
    lines = [group, "-" * len(group), *laid_out(table, width)]
    lines += [folded(f"* {sentence}", width) for sentence in _sentences(rows)]
    return lines + (_described(rows, width) if describe else [])


def _described(rows: list[Row], width: int) -> list[str]:
    lines = ["not the test, mean ± s.d. (trimmed: without the smallest and the largest):"]
    for row in rows:
        sides = ((row.base, row.base_sample), (row.side, row.sample))
        told = (f"{side} {described_text(row.metric, sample)}" for side, sample in sides)
        lines.append(folded(f"  {short_metric(row)}: {', '.join(told)}", width))
    return lines


def _cells(row: Row, faces: bool) -> list[str]:
    return [
        FACES[row.outcome] if faces else "",
        printable(short_metric(row)),
        median_text(row.metric, row.base_sample),
        median_text(row.metric, row.sample),
        change_text(row),
        interval_text(row.metric, row.shift),
        row_p(row),
        runs_text(row.sample, row.base_sample),
    ]


def laid_out(table: list[list[str]], width: int) -> list[str]:
    """Face, name and numbers; the name on a line of its own where that is too long for the page."""
    sizes = [max(cell_len(row[index]) for row in table) for index in range(len(table[0]))]
    used = [index for index, size in enumerate(sizes) if size]
    for gap in (_GAP, " "):
        if sum(sizes[index] for index in used) + len(gap) * (len(used) - 1) <= width:
            return [_line(row, used, sizes, gap) for row in table]
    numbers = [index for index in used if index > 1]
    lines = [_INDENT + _line(table[0], numbers, sizes)]
    for row in table[1:]:
        lines.append(f"{row[0]} {row[1]}".strip() if row[0] else row[1])
        lines.append(_INDENT + _line(row, numbers, sizes))
    return lines


def _line(row: list[str], used: Sequence[int], sizes: list[int], gap: str = _GAP) -> str:
    padded = []
    for index in used:
        space = " " * (sizes[index] - cell_len(row[index]))
        padded.append(row[index] + space if index == 1 else space + row[index])
    return gap.join(padded).rstrip()


def _sentences(rows: Iterable[Row]) -> list[str]:
    """Once for all keys of a family that say the same; with the key where they do not."""
    metrics = {row.metric.meaning: row.metric for row in reversed(list(rows))}
    families = Counter(split_name(metric.name)[0] for metric in metrics.values())
    told = []
    for meaning, metric in reversed(metrics.items()):
        family = split_name(metric.name)[0]
        name = family if families[family] == 1 else metric.name
        label = printable(name.partition(".")[2] or name)
        told.append(f"{label} ({better_text(metric)}): {meaning}")
    return told


def left_out(rows: Iterable[Row]) -> Iterator[str]:
    """Metrics that one side has not, by the reason, and those that are refused."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.shift is None:
            reasons.setdefault(row.reason, []).append(printable(row.metric.name))
    for reason, names in reasons.items():
        yield f"not judged, {reason}: {', '.join(names)}"


def how_to_read(comparison: Comparison, faces: bool) -> list[str]:
    """What change, interval, ~ and faces are, as sentences."""
    if not is_tested(comparison):
        return one_run_each(comparison) if is_untested(comparison) else []
    level = level_text(comparison)
    count = len({row.metric.name for row in comparison.rows if row.shift is not None})
    words = [
        f"Columns of sides ({comparison.base.name}, ...) are medians of runs."
        f" change is the Hodges-Lehmann shift, interval what it can be with {level} confidence."
        f" ~ stands where {tests_text(comparison, 'the')} cannot tell it from chance (p above"
        f" {comparison.alpha:g})."
    ]
    if is_untested(comparison):
        words.append(
            "Of metrics with one run each, which nothing tests, it is the change as it is."
        )
    if faces:
        words.append(
            ":) better and :( worse: the test is sure that it changed, and the estimate, which is"
            f" not tested, is more than {comparison.margin * 100:g} %; :| anything else."
        )
    if count > 1 and any(row.q is not None for row in comparison.rows):
        words.append(
            f"Of those marked, at most {FALSE_SHARE * 100:g} % are expected to be chance"
            f" (Benjamini-Hochberg over {count} metrics, of which those with the same order of runs"
            " are one): declare those that count in a policy and use wbscope gate."
        )
    elif count > 1:
        words.append(
            f"With {count} metrics at that level, about {count * comparison.alpha:.2g} look changed"
            " by chance alone: declare those that count in a policy and use wbscope gate."
        )
    return words


def one_run_each(comparison: Comparison) -> list[str]:
    """What the numbers are where no test was possible."""
    return [
        f"Columns of sides ({comparison.base.name}, ...) are values of one run each, and change is"
        " from the one to the other. No test is possible with one run each, so there is no interval"
        " and no p, and any change may be chance."
    ]


def is_tested(comparison: Comparison) -> bool:
    """Whether there is a metric that more than one run, or a published mean, tells of."""
    return any(row.shift is not None and not row.is_untested for row in comparison.rows)


def is_untested(comparison: Comparison) -> bool:
    """Whether there is a metric with one run each."""
    return any(row.shift is not None and row.is_untested for row in comparison.rows)


def tests_text(comparison: Comparison, article: str) -> str:
    """The tests that were made."""
    shifts = [row.shift for row in comparison.rows if row.shift and not row.is_untested]
    means = sum(map(is_published, shifts))
    ranks = [f"{article} exact Mann-Whitney test"] if means < len(shifts) else []
    return " or ".join([*ranks, *(["Welch's t of published means"] if means else [])])


def level_text(comparison: Comparison) -> str:
    """95 %"""
    return f"{100 - comparison.alpha * 100:g} %"
