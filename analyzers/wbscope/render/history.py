# SPDX-License-Identifier: Apache-2.0
"""What changed in a history, and what a baseline holds: text, JSON and HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from wbscope.base.result import Amount, Result
from wbscope.base.units import counted, prefix_step
from wbscope.compare.changepoints import LEAST_VALUES
from wbscope.compare.comparison import Side, metrics_of, sample_of
from wbscope.compare.rundata import RunData
from wbscope.compare.trend import FDR, Change, Point, Trend, Trends
from wbscope.measure.metric import Metric
from wbscope.plot.dots import Column, Step, trend_svg
from wbscope.render.blocks import (
    Block,
    Document,
    Figure,
    Heading,
    Table,
    Text,
    blocks_text,
    doubts,
    table_of,
)
from wbscope.render.changes import (
    FACES,
    amount_text,
    better_text,
    described_text,
    p_text,
    value_text,
)
from wbscope.render.json import document, rows_body
from wbscope.render.text import printable

if TYPE_CHECKING:
    from wbscope.compare.history import Place


# On the first screen; --full has the others.
_FIRST = 10
_COLUMNS = (
    "metric", "unit", "better", "outcome", "commit", "date", "commit_before", "level_before",
    "level", "change_ratio", "p", "p_adjusted", "commits_count", "differing",
)  # fmt: skip


def history_document(found: Trends, file: str, full: bool = False) -> Document:
    """What changed, the most evident first; then a table of it, and how sure it is."""
    table = Result(
        "history", _COLUMNS, {}, [(*row[:-1], " ".join(row[-1])) for row in _rows(found)]
    )
    return Document(
        lambda: (*_blocks(found, file, None), *_figures(found)),
        lambda: history_json(found, file),
        lambda: table,
        lambda width: blocks_text(_blocks(found, file, None if full else _FIRST), width),
        warnings=found.warnings,
    )


def _blocks(found: Trends, file: str, most: int | None) -> Iterator[Block]:
    sure, unsure = found.changes(), found.changes(sure=False)
    yield Heading(f"{file}: {head_text(found)}", 1)
    yield from doubts(found.warnings)
    yield Text(summary_text(found))
    shown = sure[:most]
    for place, change in enumerate(shown):
        yield Text(f"{FACES[change.outcome]} {_sentence(found, change)}", apart=place == 0)
    if shown:
        yield Table(_table(shown), "What changed, the most evident first")
    if len(shown) < len(sure):
        yield Text(f"{len(sure) - len(shown)} more changes: --full")
    yield from (Text(told, apart=True) for told in _told_below(found, unsure))
    if sure or unsure:
        yield Text(how_sure(found), is_aside=True, apart=True)


def _figures(found: Trends) -> Iterator[Block]:
    """What changed comes first."""
    changed = [change.metric.name for change in (*found.changes(), *found.changes(sure=False))]
    trends = {trend.metric.name: trend for trend in found.trends}
    others = [name for name in trends if name not in changed]
    for name in [*dict.fromkeys(changed), *others]:
        if name in others[:1]:
            yield Text(f"Metrics without a change: {len(others)}", apart=True)
        metric, left_out = trends[name].metric, trends[name].left_out
        told = f"{metric.name}: {metric.meaning} ({better_text(metric)})"
        if left_out:
            told += f"; {left_out} older runs count another thing"
        yield Figure(_plot(trends[name]), told)


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
        yield printable(f"not told from chance over all metrics: {', '.join(named)}{more}")
    apart = [trend.metric.name for trend in found.trends if trend.left_out]
    if apart:
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


def _plot(trend: Trend) -> str:
    if not trend.points:
        return ""
    metric, points = trend.metric, trend.points
    steps = [
        Step(one.index, one.level, printable(one.commit.short), one.outcome)
        for one in trend.changes
    ]
    changes = trend.changes
    first = changes[0].level_before if changes else median(point.median for point in points)
    return trend_svg(
        [Column(point.values, printable(_told(metric, point))) for point in points],
        first,
        steps,
        (_end(points[0]), _end(points[-1]) if len(points) > 1 else ""),
        lambda value: _tick(metric, value),
        prefix_step(metric.unit),
    )


def _told(metric: Metric, point: Point) -> str:
    commit = point.commit
    values = ", ".join(value_text(metric, value) for value in point.values)
    kernels = "".join(f", Linux {kernel}" for kernel in commit.kernels)
    return f"{commit.short}, {commit.date.date().isoformat()}{kernels}: {values}"


def _end(point: Point) -> str:
    return printable(f"{point.commit.short}, {point.commit.date.date().isoformat()}")


def _tick(metric: Metric, value: float) -> str:
    """10 MiB, not 10.0 MiB: ticks are round."""
    return re.sub(r"(\.\d*?)0+(?= )", r"\1", value_text(metric, value)).replace(". ", " ")


def saved_json(output: str, runs: Sequence[RunData]) -> str:
    """`wbscope.baseline-save/1`: the file that was written."""
    return document("baseline-save", {"runs": [run.name for run in runs]}, _written(output, runs))


def merged_json(output: str, runs: Sequence[RunData]) -> str:
    """`wbscope.baseline-merge/1`: the same."""
    return document("baseline-merge", {"runs": [run.name for run in runs]}, _written(output, runs))


def added_runs_json(
    file: str, place: Place, new: Sequence[RunData], known: Sequence[tuple[RunData, str]]
) -> str:
    """`wbscope.history-add/1`: what came of each run, and at which commit it is."""
    told = [
        *((run, "added", place.commit) for run in new),
        *((run, "known", at) for run, at in known),
    ]
    rows = [
        {"run": run.name, "outcome": outcome, "commit": at, "metrics_count": len(run.scalars)}
        for run, outcome, at in told
    ]
    head = {
        "file": file,
        "commit": place.commit,
        "date": place.date.isoformat(),
        "branch": place.branch or None,
        "added_count": len(new),
        "known_count": len(known),
    }
    warnings = [notice for run, _, _ in told for notice in run.named_warnings]
    return document("history-add", head, rows_body(rows, warnings, {"metrics_count": "count"}))


def _written(output: str, runs: Sequence[RunData]) -> dict[str, Any]:
    row = {
        "output": output,
        "runs_count": len(runs),
        "metrics_count": len({name for run in runs for name in run.scalars}),
    }
    warnings = [notice for run in runs for notice in run.named_warnings]
    return rows_body([row], warnings, dict.fromkeys(("runs_count", "metrics_count"), "count"))


def baseline_document(runs: Sequence[RunData]) -> Document:
    """Runs, facts that they have in common, and the middle of each metric."""
    return Document(
        lambda: _baseline_blocks(runs),
        lambda: baseline_json(runs),
        lambda: table_of("baseline", _baseline_rows(runs)),
        warnings=[notice for run in runs for notice in run.warnings],
    )


def _baseline_blocks(runs: Sequence[RunData]) -> Iterator[Block]:
    yield Heading(f"{counted(len(runs), 'run')}: {', '.join(run.name for run in runs)}", 1)
    yield from doubts(notice for run in runs for notice in run.warnings)
    yield from (Text(f"{name}: {fact}") for name, fact in _facts(runs).items())
    side = Side("baseline", tuple(runs))
    rows = []
    for metric in metrics_of(runs):
        sample = sample_of(metric.name, side)
        rows.append(
            (
                metric.name,
                Amount(value_text(metric, sample.description.median)),
                described_text(metric, sample),
                len(sample.values),
                better_text(metric),
            )
        )
    columns = ("metric", "median", "mean ± s.d. (trimmed)", "n", "direction")
    yield Table(Result("baseline", columns, {}, rows), "Metrics", most=len(rows))


def _baseline_rows(runs: Sequence[RunData]) -> list[dict[str, Any]]:
    side = Side("baseline", tuple(runs))
    rows = []
    for metric in metrics_of(runs):
        described = sample_of(metric.name, side).description
        rows.append(
            {
                "metric": metric.name,
                "unit": metric.unit or None,
                "better": metric.better,
                "n": described.n,
                "median": described.median,
                "mean": described.mean,
                "sd": described.sd,
            }
        )
    return rows


def baseline_json(runs: Sequence[RunData]) -> str:
    """`wbscope.baseline-summary/1`: a row for each metric."""
    head = {"runs": [run.name for run in runs], "fingerprint": _facts(runs)}
    warnings = [notice for run in runs for notice in run.warnings]
    return document("baseline-summary", head, rows_body(_baseline_rows(runs), warnings))


def _facts(runs: Sequence[RunData]) -> dict[str, str]:
    """Those that all runs tell and have in common."""
    found: dict[str, str] = {}
    for name, fact in (runs[0].fingerprint if runs else {}).items():
        values = {run.fingerprint.get(name) for run in runs}
        if values == {fact} and fact not in (None, ""):
            found[name] = str(fact)
    return found
