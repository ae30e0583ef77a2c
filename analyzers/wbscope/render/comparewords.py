# SPDX-License-Identifier: Apache-2.0
"""What a comparison comes to, in words: the verdict of a side, and how many metrics are what."""

from __future__ import annotations

from wbscope.compare.comparison import TOO_FEW, Comparison
from wbscope.compare.findingchanges import FindingChange, finding_changes
from wbscope.compare.marks import Tally, tally
from wbscope.compare.tailrule import runs_far_out
from wbscope.render.changes import p_text
from wbscope.render.printable import printable

__all__ = ["verdict_lines"]

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
    return f"far outside of what {comparison.base.name} has: {', '.join(named)}{more}."


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
        return "no change can be told from chance, which is not that there is none"
    return f"the same, within {margin * 100:g} %"


def _counts(counted: Tally) -> str:
    """worse 8, better 2, changed 3, same 31, cannot tell 4; of 48 metrics, 12 constant"""
    words = [
        f"worse {counted.of('worse')}",
        f"better {counted.of('better')}",
        *([f"changed {counted.of('changed')}"] if counted.of("changed") else []),
        f"same {counted.of('same')}",
        f"cannot tell {counted.of('undecided')}{_alone(counted)}",
        *([f"not comparable {counted.of('refused')}"] if counted.of("refused") else []),
    ]
    constant = f", {counted.constant} constant" if counted.constant else ""
    many = "1 metric" if counted.all == 1 else f"{counted.all} metrics"
    return f"{', '.join(words)}; of {many}{constant}"


def _alone(counted: Tally) -> str:
    if not counted.alone:
        return ""
    chance = f"about {counted.by_chance:.0f} would by chance"
    return f" ({counted.alone} of them look changed alone, {chance})"
