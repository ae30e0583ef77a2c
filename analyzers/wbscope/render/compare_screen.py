# SPDX-License-Identifier: Apache-2.0
"""A comparison at a glance, as Markdown, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from wbscope.base.result import Notice
from wbscope.compare.comparison import (
    Comparison,
    FindingChange,
    Row,
    Sample,
    Side,
    finding_changes,
    sample_of,
)
from wbscope.compare.gate import GateResult, Verdict
from wbscope.compare.pass_rate import SelfCheck
from wbscope.compare.ranking import FALSE_SHARE, Told, matter_most, tally
from wbscope.compare.sameness import Difference
from wbscope.measure.metric import Metric
from wbscope.render.changes import (
    FACES,
    better_text,
    change_text,
    described_text,
    interval_text,
    median_text,
    row_p,
    runs_text,
    verdict_lines,
)
from wbscope.render.compare import (
    constant_text,
    doubt_lines,
    group_name,
    how_to_read,
    is_tested,
    is_untested,
    laid_out,
    left_out,
    level_text,
    one_run_each,
    short_metric,
    shown_rows,
    tests_text,
    title_line,
    verdict_first,
    warned_text,
)
from wbscope.render.json import document, notices
from wbscope.render.text import PAGE_WIDTH, folded, plain, printable
from wbscope.stats.estimates import Shift

# Of the metrics that surely changed.
MOST_TOLD = 10
_ONCE = "keys of one metric once where they moved in the same direction"


def is_short(comparison: Comparison) -> bool:
    """Whether all metrics are no more than would be told."""
    sides = (side.name for side in comparison.sides[1:])
    return all(len(shown_rows(comparison.of_side(name))) <= MOST_TOLD for name in sides)


def glance_text(comparison: Comparison, width: int = PAGE_WIDTH, faces: bool = True) -> str:
    """A screen; all metrics are a `--full` away."""
    lines = verdict_first(comparison, width)
    for side in comparison.sides[1:]:
        if len(comparison.sides) > 2:
            words = verdict_lines(comparison, side.name)
            lines += ["", *(folded(line, width) for line in words)]
        lines += _glance(comparison, side.name, width, faces)
    lines += ["", folded(" ".join(_how_to_read(comparison, faces)), width)]
    lines.append(folded("All metrics: --full. A page with a dot for each run: --html FILE.", width))
    return "\n".join(lines) + "\n"


def _glance(comparison: Comparison, side: str, width: int, faces: bool) -> list[str]:
    """Of one side what matters most by evidence."""
    lines: list[str] = []
    told = matter_most(comparison.of_side(side), MOST_TOLD)
    if not told:
        return lines
    heads = ["", "", comparison.base.name, side, "change", "interval", "p"]
    table = [[printable(head) for head in heads], *(_cells(one, faces) for one in told)]
    head, *body = laid_out(table, width)
    if told[0].row.is_untested:
        lines += ["", "The largest changes, as they are:"]
    lines += ["", head]
    each = len(body) // len(told)  # a row is one line, or two
    for place, one in enumerate(told):
        lines += body[place * each : (place + 1) * each]
        if one.alike:
            names = ", ".join(row.metric.name for row in one.alike)
            lines.append(_shortened(printable(f"    and alike: {names}"), width))
    return lines


def _cells(one: Told, faces: bool) -> list[str]:
    row = one.row
    return [
        FACES[row.outcome] if faces else "",
        printable(row.metric.name),
        median_text(row.metric, row.base_sample),
        median_text(row.metric, row.sample),
        change_text(row),
        interval_text(row.metric, row.shift),
        row_p(row),
    ]


def _how_to_read(comparison: Comparison, faces: bool) -> Iterable[str]:
    if not is_tested(comparison):
        if is_untested(comparison):
            yield from one_run_each(comparison)
            yield f"Listed are the largest changes, {_ONCE}."
        return
    yield (
        "Medians of runs; change is the Hodges-Lehmann shift, interval what it can be with"
        f" {level_text(comparison)} confidence."
    )
    yield (
        f"Listed is what {tests_text(comparison, 'an')} tells from chance among all these metrics"
        f" (Benjamini-Hochberg: at most {FALSE_SHARE * 100:g} % of it is expected to be chance),"
        f" metrics with the same order of runs and {_ONCE}."
    )
    if is_untested(comparison):
        yield "Of metrics with one run each, which nothing tests, it is the largest changes."
    margin = f"{comparison.margin * 100:g} %"
    if faces:
        yield f":) better and :( worse by more than {margin} as estimated."
    yield f"same: within {margin}, whatever the interval allows; cannot tell: all else."


def _shortened(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 4].rpartition(',')[0]}, ..."


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
    table = [heads, marks, *(_markdown_cells(row, faces, name(row)) for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in table]


def _markdown_cells(row: Row, faces: bool, name: str) -> Iterable[str]:
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


def compare_json(comparison: Comparison) -> str:
    """`wbscope.compare/1`: a row for each metric and side; the units are in the rows."""
    head = {
        "base": comparison.base.name,
        "sides": [_side(side) for side in comparison.sides],
        "alpha": comparison.alpha,
        "margin_ratio": comparison.margin,
        "differing": [_difference(difference) for difference in comparison.differing],
        "unknown": list(comparison.unknown),
        "findings": {
            side.name: [_finding(one) for one in finding_changes(comparison, side.name)]
            for side in comparison.sides[1:]
        },
        "counts": {side.name: _counts(comparison, side) for side in comparison.sides[1:]},
    }
    body = {
        "units": {},
        "rows": [row_record(row) for row in comparison.rows],
        "warnings": notices(comparison.warnings),
    }
    return document("compare", head, body)


def gate_json(result: GateResult, checked: SelfCheck | None = None) -> str:
    """`wbscope.gate/1`: a row for each declared metric.

    Of a self-check, `result` is what decides, and `self_check` has both verdicts.
    """
    head = {
        "status": result.status,
        "exit_code": result.exit_code(),
        "sides": [_side(side) for side in (result.side, result.base) if side is not None],
        "alpha": result.policy.alpha,
        "compared_count": result.compared,
        "differs": list(result.policy.differs),
        "unknown": list(result.unknown),
        "refusals": [
            {"slug": refusal.slug, "message": refusal.message, "fix": refusal.fix}
            for refusal in result.refusals
        ],
        "self_check": None if checked is None else _self_check(checked),
    }
    body = {
        "units": {},
        "rows": [verdict_record(verdict, result.side) for verdict in result.verdicts],
        "warnings": notices(_unique(result.warnings)),
    }
    return document("gate", head, body)


def _self_check(checked: SelfCheck) -> dict[str, Any]:
    """Runs against themselves, and second half against first; null = too few for halves."""
    return {
        "status": checked.status,
        "decided_by": "same" if checked.decisive is checked.same else "halves",
        "same": _verdicts(checked.same),
        "halves": None if checked.halves is None else _verdicts(checked.halves),
        "predicted_pass_ratio": None
        if checked.predicted is None
        else checked.predicted.passed / checked.predicted.trials,
    }


def _verdicts(result: GateResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "rows": [verdict_record(verdict, result.side) for verdict in result.verdicts],
    }


def _finding(one: FindingChange) -> dict[str, Any]:
    """A finding that more runs of one side have."""
    return {
        "id": one.id,
        "title": one.title,
        "is_new": one.is_new,
        "runs_count": one.runs,
        "of_count": one.of,
        "base_runs_count": one.base_runs,
        "base_of_count": one.base_of,
        "q": one.q,
    }


def _counts(comparison: Comparison, side: Side) -> dict[str, int]:
    counted = tally(comparison.of_side(side.name), comparison.alpha)
    told = {str(outcome): count for outcome, count in counted.counts.items()}
    return {**told, "constant": counted.constant, "all": counted.all}


def row_record(row: Row) -> dict[str, Any]:
    """One metric of one side against the base; values are in `unit`."""
    return {
        **_metric(row.metric),
        "side": row.side,
        "base": row.base,
        "outcome": row.outcome,
        "reason": row.reason or None,
        "shift": _shift(row.shift),
        "p": None if row.shift is None else row.shift.p,
        "p_method": None if row.shift is None else row.shift.method,
        "q": row.q,
        "of_side": _sample(row.sample),
        "of_base": _sample(row.base_sample),
    }


def verdict_record(verdict: Verdict, side: Side) -> dict[str, Any]:
    """One declared metric; margin, detectable and shift are on the scale of shift."""
    row = verdict.row
    sample = sample_of(verdict.metric.name, side) if row is None else row.sample
    return {
        **_metric(verdict.metric),
        "status": verdict.status,
        "reasons": list(verdict.reasons),
        "margin": verdict.margin or None,
        "budgets": list(verdict.budgets),
        "far_runs": list(verdict.far_runs),
        "p_far": verdict.p_far,
        "shift": _shift(verdict.shift),
        "delta": verdict.delta,
        "p": None if verdict.shift is None else verdict.shift.p,
        "p_adjusted": verdict.p_adjusted,
        "detectable": verdict.detectable,
        "runs_needed": verdict.runs_needed,
        "of_side": _sample(sample),
        "of_base": None if row is None else _sample(row.base_sample),
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "metric": metric.name,
        "unit": metric.unit or None,
        "better": metric.better,
        "meaning": metric.meaning,
        "source": metric.source,
    }


def _side(side: Side) -> dict[str, Any]:
    runs = [
        {
            "name": run.name,
            "source_id": run.source_id,
            "fingerprint": dict(run.fingerprint),
            "lacking": dict(run.lacking),
        }
        for run in side.runs
    ]
    return {"name": side.name, "runs": runs}


def _sample(sample: Sample) -> dict[str, Any]:
    told = sample.description
    return {
        "n": told.n,
        "values": list(sample.values),
        "missing": list(sample.missing),
        "median": told.median,
        "mean": told.mean,
        "sd": told.sd,
        "min": told.least,
        "max": told.most,
        "trimmed_mean": told.trimmed_mean,
        "trimmed_sd": told.trimmed_sd,
    }


def _shift(found: Shift | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "scale": found.scale,
        "estimate": found.estimate,
        "low": found.low,
        "high": found.high,
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "fact": difference.fact,
        "values": [{"value": v, "runs": list(runs)} for v, runs in difference.values.items()],
    }


def _unique(warnings: tuple[Notice, ...]) -> list[Notice]:
    return list(dict.fromkeys(warnings))
