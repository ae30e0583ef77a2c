# SPDX-License-Identifier: Apache-2.0
"""What changed in a history, as text, as JSON and as a table for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wbscope.base.result import Result
from wbscope.compare.changepoints import LEAST_VALUES
from wbscope.compare.trend import FDR, Change, Trend, Trends
from wbscope.render.changes import FACES, amount_text, p_text, value_text
from wbscope.render.csvtable import csv_text
from wbscope.render.jsondoc import document, rows_body
from wbscope.render.messages import warning_text
from wbscope.render.printable import folded, printable
from wbscope.render.table import table_text

__all__ = [
    "change_sentence",
    "changed_text",
    "head_text",
    "history_csv",
    "history_json",
    "history_text",
    "how_sure",
    "summary_text",
]

# On the first screen; --full has the others.
_FIRST = 10
_COLUMNS = (
    "metric", "unit", "better", "outcome", "commit", "date", "commit_before", "level_before",
    "level", "change_ratio", "p", "p_adjusted", "commits_count", "differing",
)  # fmt: skip


def history_text(found: Trends, file: str, width: int, full: bool = False) -> str:
    """What changed, the most evident first; then a table of it, and how sure it is."""
    sure, unsure = found.changes(), found.changes(sure=False)
    lines = [folded(f"{file}: {head_text(found)}", width)]
    lines += [folded(warning_text(notice), width) for notice in found.warnings]
    lines.append(folded(summary_text(found), width))
    shown = sure if full else sure[:_FIRST]
    if shown:
        lines += ["", *(folded(f"{FACES[c.outcome]} {_sentence(found, c)}", width) for c in shown)]
        lines += ["", table_text(_table(shown), width, whole=True).rstrip("\n")]
    if len(shown) < len(sure):
        lines.append(f"{len(sure) - len(shown)} more changes: --full")
    lines += [folded(told, width) for told in _told_below(found, unsure)]
    if sure or unsure:
        lines += ["", folded(how_sure(found), width)]
    return "\n".join(lines) + "\n"


def head_text(found: Trends) -> str:
    """30 commits, 90 runs, 2026-10-01 to 2026-11-03, branch main, Linux 6.1."""
    first, last = found.commits[0], found.commits[-1]
    days = dict.fromkeys(commit.date.date().isoformat() for commit in (first, last))
    told = [
        _count(len(found.commits), "commit"),
        _count(found.runs_count, "run"),
        " to ".join(days),
    ]
    told += [f"branch {found.branch}"] if found.branch else []
    ends = dict.fromkeys(k for commit in (first, last) for k in commit.kernels)
    told += [f"Linux {' to '.join([*ends][:: max(1, len(ends) - 1)])}"] if ends else []
    return ", ".join(told)


def summary_text(found: Trends) -> str:
    """2 changes in 2 of 41 metrics; or that there is none."""
    sure = found.changes()
    count = len(found.trends)
    if not sure:
        commits = _count(len(found.commits), "commit")
        told = "found" if len(found.commits) >= LEAST_VALUES else "can be told"
        return f"no change {told} in {_count(count, 'metric')} of {commits}"
    changed = len({change.metric.name for change in sure})
    worse = sum(change.outcome == "worse" for change in sure)
    better = sum(change.outcome == "better" for change in sure)
    told = f"{_count(len(sure), 'change')} in {changed} of {_count(count, 'metric')}"
    return f"{told}: worse {worse}, better {better}, neither {len(sure) - worse - better}"


def change_sentence(change: Change, commits: int) -> str:
    """fio.write.bw fell by 12.0 % at abc1234 (2026-11-03), p = 0.0002, last 30 commits"""
    day = change.commit.date.date().isoformat()
    p = p_text(change.p)
    told = f"{change.metric.name} {_moved_text(change)} at {change.commit.short} ({day}),"
    told += f" p {p if p.startswith('<') else f'= {p}'}, last {commits} commits"
    if change.differing:
        told += f"; differs there too: {', '.join(_few(change.differing))}"
    return printable(told)


def how_sure(found: Trends) -> str:
    """What p says, and how many of the changes may be false."""
    told = (
        "p: how often commits in any other order would show so clear a step anywhere, or the"
        " rank test's p of both levels where that is larger. A commit counts once, as the"
        " median of its runs."
    )
    told += (
        f" Of the changes told, {FDR * 100:g} % are false by chance at most, over"
        f" {_count(found.tested_count, 'metric')} that may have changed (adj. p,"
        " Benjamini-Hochberg); a slow drift and a machine that changes look like a step as well."
    )
    if found.earliest is not None:
        told += (
            f" A new level of one metric is told after {found.earliest} commits at the earliest."
        )
    return told


def changed_text(change: Change) -> str:
    """-12.0 %, x25, +34 pages."""
    return amount_text(change.metric, change.moved, change.moved.estimate)


def history_json(found: Trends, file: str) -> str:
    """`wbscope.history/1`: a row for each change, told apart or not, and all series."""
    head = {
        "file": file,
        "branch": found.branch or None,
        "commits": [
            {
                "commit": commit.name,
                "date": commit.date.isoformat(),
                "kernels": list(commit.kernels),
                "runs": [run.name for run in commit.runs],
            }
            for commit in found.commits
        ],
        "fdr": FDR,
    }
    rows = [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(found)]
    body = rows_body(rows, found.warnings, {"change_ratio": "ratio"})
    series = [_series(trend) for trend in found.trends]
    return document("history", head, {**body, "series": series})


def history_csv(found: Trends) -> str:
    """A line for each change, told apart or not; levels in the metric's unit."""
    rows = [(*row[:-1], " ".join(row[-1])) for row in _rows(found)]
    return csv_text(Result("history", _COLUMNS, {}, rows))


def _series(trend: Trend) -> dict[str, Any]:
    return {
        "metric": trend.metric.name,
        "unit": trend.metric.unit or None,
        "better": trend.metric.better,
        "left_out_runs": trend.left_out,
        "points": [
            {"commit": point.commit.name, "median": point.median, "values": list(point.values)}
            for point in trend.points
        ],
    }


def _rows(found: Trends) -> Iterator[tuple[Any, ...]]:
    counts = {trend.metric.name: len(trend.points) for trend in found.trends}
    for change in [*found.changes(), *found.changes(sure=False)]:
        moved = change.moved
        yield (
            change.metric.name,
            change.metric.unit or None,
            change.metric.better,
            change.outcome,
            change.commit.name,
            change.commit.date.isoformat(),
            change.before.name,
            change.level_before,
            change.level,
            moved.estimate - 1 if moved.scale == "ratio" else None,
            change.p,
            change.p_adjusted,
            counts[change.metric.name],
            list(change.differing),
        )


def _table(changes: list[Change]) -> Result:
    columns = ("metric", "at", "before", "after", "change", "adj. p")
    rows = [
        (
            printable(change.metric.name),
            printable(change.commit.short),
            value_text(change.metric, change.level_before),
            value_text(change.metric, change.level),
            changed_text(change),
            p_text(change.p_adjusted),
        )
        for change in changes
    ]
    return Result("history", columns, {}, rows)


def _told_below(found: Trends, unsure: list[Change]) -> Iterator[str]:
    if unsure:
        named = [
            f"{one.metric.name} at {one.commit.short} (adjusted p {p_text(one.p_adjusted)})"
            for one in unsure[:3]
        ]
        more = f" and {len(unsure) - 3} more" if len(unsure) > 3 else ""
        yield ""
        yield printable(f"not told from chance over all metrics: {', '.join(named)}{more}")
    apart = [trend.metric.name for trend in found.trends if trend.left_out]
    if apart:
        yield ""
        yield printable(
            "older numbers count another thing (unit, SQL or kernel) and are left out:"
            f" {', '.join(apart[:5])}{f' and {len(apart) - 5} more' if len(apart) > 5 else ''}"
        )


def _sentence(found: Trends, change: Change) -> str:
    trend = next(one for one in found.trends if one.metric.name == change.metric.name)
    return change_sentence(change, len(trend.points))


def _moved_text(change: Change) -> str:
    """fell by 12.0 %, rose to 25 times, rose by 34 pages."""
    verb = "rose" if change.level > change.level_before else "fell"
    size = changed_text(change).lstrip("+-")
    if size.startswith("x"):
        return f"{verb} to {size[1:]} times"
    return f"{verb} by {size}"


def _few(facts: tuple[str, ...]) -> list[str]:
    return [*facts[:3], *([f"{len(facts) - 3} more"] if len(facts) > 3 else [])]


def _count(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
