# SPDX-License-Identifier: Apache-2.0
"""Two sides of a metric, and the verdict of a side, in words."""

from __future__ import annotations

from dataclasses import replace

from wbscope.base.units import format_value
from wbscope.compare.comparison import (
    TOO_FEW,
    Comparison,
    FindingChange,
    Outcome,
    Row,
    Sample,
    finding_changes,
    runs_behind,
)
from wbscope.compare.gate_checks import runs_far_out
from wbscope.compare.ranking import Tally, tally
from wbscope.measure.metric import Metric
from wbscope.render.text import printable
from wbscope.stats.estimates import Shift

FACES: dict[Outcome, str] = {
    "better": ":)",
    "worse": ":(",
    "changed": ":|",
    "same": ":|",
    "undecided": ":|",
    "refused": ":|",
}
_NOTHING = "~"
_SAME = "="
# What has prefixes of its own; units of other tools are printed as they are.
_KNOWN = ("ns", "bytes", "bytes/s", "ratio", "count", "pages/s")
# Above this, a factor is easier to read than per cent.
_MANY_TIMES = 10


def value_text(metric: Metric, value: float | None) -> str:
    """A value with its unit; units of other tools as they are."""
    if value is None:
        return "-"
    number = int(value) if value.is_integer() and metric.unit in ("count", "") else value
    return format_value("", metric.unit or None, number)


def median_text(metric: Metric, sample: Sample) -> str:
    """The median of a side in the unit of that side, which may be another than the base's."""
    if len(sample.units) > 1:
        return "-"
    return value_text(_in_its_unit(metric, sample), sample.description.median)


def share_text(share: float) -> str:
    """A change as a share of the base: +12.3 %, -4.0 %, x25."""
    if share >= _MANY_TIMES:
        return f"x{share + 1:.3g}"
    return f"{share * 100:+.1f} %"


def amount_text(metric: Metric, found: Shift, value: float) -> str:
    """A point on the scale of a shift; shares differ by points, not by per cent."""
    if found.scale == "ratio":
        return share_text(value - 1)
    if metric.unit == "ratio":
        return f"{value * 100:+.1f} points"
    text = value_text(metric, value)
    return text if value < 0 or text.startswith("-") else f"+{text}"


def change_text(row: Row) -> str:
    """The estimate; ~ where a test does not tell it apart from chance, = where it is the same."""
    if row.outcome == "same":
        return _SAME
    if row.shift is None or not (row.is_sure or row.is_untested):
        return _NOTHING
    return amount_text(row.metric, row.shift, row.shift.estimate)


def interval_text(metric: Metric, found: Shift | None) -> str:
    """-44.0 to -31.0 %; nothing where so few runs have none."""
    if found is None or found.low is None or found.high is None:
        return "-"
    if found.scale == "ratio" and found.high - 1 < _MANY_TIMES:
        return f"{share_text(found.low - 1).removesuffix(' %')} to {share_text(found.high - 1)}"
    low, high = (amount_text(metric, found, value) for value in (found.low, found.high))
    return f"{low.removesuffix(' points')} to {high}"


def row_p(row: Row) -> str:
    """p, where the row is a test at all."""
    return p_text(None if row.shift is None or row.is_untested else row.shift.p)


def p_text(p: float | None) -> str:
    """Two digits, and never 0."""
    if p is None:
        return "-"
    if p >= 0.095:
        return f"{p:.2f}"
    return f"{p:.2g}" if p >= 0.0001 else "<0.0001"


def runs_text(sample: Sample, base: Sample) -> str:
    """6+6; of published means, the runs that they are of."""
    return f"{runs_behind(sample)}+{runs_behind(base)}"


def better_text(metric: Metric) -> str:
    """Which way is good, as half a sentence."""
    return {"lower": "lower is better", "higher": "higher is better"}.get(
        metric.better, "neither way is better"
    )


def described_text(metric: Metric, sample: Sample) -> str:
    """mean +- s.d., and the same without the smallest and the largest: not the test."""
    told = sample.description
    if told.mean is None or len(sample.units) > 1:
        return "-"
    metric = _in_its_unit(metric, sample)
    text = mean_text(metric, told.mean)
    if told.sd is not None:
        text += f" ± {mean_text(metric, told.sd)}"
    if told.trimmed_mean is not None and told.trimmed_sd is not None:
        text += (
            f" (trimmed {mean_text(metric, told.trimmed_mean)}"
            f" ± {mean_text(metric, told.trimmed_sd)})"
        )
    return text


def _in_its_unit(metric: Metric, sample: Sample) -> Metric:
    return replace(metric, unit=sample.units[0]) if sample.units else metric


def mean_text(metric: Metric, value: float) -> str:
    """What is computed from runs: three digits, and all those before the point."""
    if metric.unit in _KNOWN and metric.unit not in ("count", "pages/s"):
        return value_text(metric, value)
    group = "" if metric.unit in (*_KNOWN, "") else ","  # as value_text() writes them
    size = abs(value)
    if size >= 1e15:  # digits behind that are no digits of the number
        shown = f"{value:.3g}"
    elif size >= 99.95:
        shown = f"{value:{group}.0f}"
    else:
        shown = f"{value:#.3g}" if size >= 0.001 else f"{value:.3g}"
    unit = "" if metric.unit == "count" else metric.unit
    return f"{shown} {unit}".rstrip()


_MOST_FAR = 5


def verdict_lines(comparison: Comparison, side: str) -> list[str]:
    """The verdict, findings that came or went, and the counts of metrics."""
    rows = comparison.of_side(side)
    counted = tally(rows, comparison.alpha)
    tested = [row for row in rows if row.shift is not None]
    told = _verdict(counted, comparison.margin)
    if not tested:
        told = "no metric of both can be compared"
    elif all(row.is_untested for row in tested):
        told = "no test is possible with one run each: make 6 or more of each"
    elif any(row.reason == TOO_FEW for row in tested):
        told = "so few runs tell no change from chance: make 6 or more of each"
    changes = finding_changes(comparison, side)
    far = _far_text(comparison, side)
    return [
        printable(f"{side} against {comparison.base.name}: {told}."),
        *(printable(_change_text(comparison, side, one)) for one in changes),
        f"{_counts(counted)}.",
        *([printable(far)] if far else []),
    ]


def _far_text(comparison: Comparison, side: str) -> str:
    """Runs that the middle of a side does not show: one in ten stalls."""
    found = runs_far_out(comparison, side)
    if not found:
        return ""
    named = [
        f"{run} ({metrics[0].metric.name}{f' and {len(metrics) - 1} more' if metrics[1:] else ''})"
        for run, metrics in list(found.items())[:_MOST_FAR]
    ]
    more = f", and {len(found) - _MOST_FAR} more runs" if len(found) > _MOST_FAR else ""
    return f"outliers against {comparison.base.name}: {', '.join(named)}{more}."


def _change_text(comparison: Comparison, side: str, one: FindingChange) -> str:
    word = "new" if one.is_new else "gone"
    if one.is_new and one.base_runs:
        word = "more often"
    elif not one.is_new and one.runs:
        word = "less often"
    runs = f"{one.runs} of {one.of} runs of {side}, {one.base_runs} of {one.base_of} of"
    how = "one run each, so nothing tests it" if one.q is None else f"q {p_text(one.q)}"
    return f"{word}: {one.title} ({runs} {comparison.base.name}; {how})"


def _verdict(counted: Tally, margin: float) -> str:
    """What the counts come to."""
    worse, better = counted.of("worse"), counted.of("better")
    if worse and better:
        return "worse in some metrics, better in others"
    if worse or better:
        return "worse" if worse else "better"
    if counted.of("changed"):
        return "changed, though neither better nor worse"
    if counted.of("undecided"):
        return "no significant change, which does not prove that there is none"
    return f"the same, within {margin * 100:g} %"


def _counts(counted: Tally) -> str:
    """worse 8, better 2, changed 3, same 31, undecided 4; of 48 metrics, 12 constant"""
    words = [
        f"worse {counted.of('worse')}",
        f"better {counted.of('better')}",
        *([f"changed {counted.of('changed')}"] if counted.of("changed") else []),
        f"same {counted.of('same')}",
        f"undecided {counted.of('undecided')}{_alone(counted)}",
        *([f"not comparable {counted.of('refused')}"] if counted.of("refused") else []),
    ]
    constant = f", {counted.constant} constant" if counted.constant else ""
    many = "1 metric" if counted.all == 1 else f"{counted.all} metrics"
    return f"{', '.join(words)}; of {many}{constant}"


def _alone(counted: Tally) -> str:
    if not counted.alone:
        return ""
    chance = f"about {counted.by_chance:.0f} would by chance"
    return f" ({counted.alone} of them would look changed if tested alone, {chance})"
