# SPDX-License-Identifier: Apache-2.0
"""Two sides of a metric as words: values, change, interval, p, face."""

from __future__ import annotations

from dataclasses import replace

from wbscope.base.units import format_value
from wbscope.compare.comparison import Outcome, Row, Sample
from wbscope.compare.published import runs_behind
from wbscope.measure.metric import Metric
from wbscope.stats.shift import Shift

__all__ = [
    "FACES",
    "amount_text",
    "better_text",
    "change_text",
    "described_text",
    "interval_text",
    "mean_text",
    "median_text",
    "p_text",
    "row_p",
    "runs_text",
    "share_text",
    "value_text",
]

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
