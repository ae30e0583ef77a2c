# SPDX-License-Identifier: Apache-2.0
"""The verdicts of a gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from wbscope.base.result import Result
from wbscope.base.units import counted
from wbscope.compare.comparison import Row, is_published
from wbscope.compare.gate import GateResult, Status, Verdict
from wbscope.compare.pass_rate import SelfCheck
from wbscope.compare.sameness import facts_text
from wbscope.render.blocks import Block, Document, Heading, Table, Text, blocks_text, table_of
from wbscope.render.changes import (
    amount_text,
    better_text,
    interval_text,
    median_text,
    p_text,
    runs_text,
    share_text,
)
from wbscope.render.compare_json import gate_json, verdict_record
from wbscope.render.text import PAGE_WIDTH, printable, warning_text

_FACES: dict[Status, str] = {
    "PASS": ":)",
    "FAIL": ":(",
    "WORSE": ":(",
    "INCONCLUSIVE": ":|",
    "REFUSED": ":|",
}
# What has to be looked at first.
_ORDER: tuple[Status, ...] = ("FAIL", "REFUSED", "WORSE", "INCONCLUSIVE", "PASS")
# Of a terminal that nobody has made larger.
_SCREEN_LINES = 24


def gate_document(
    result: GateResult, checked: SelfCheck | None = None, faces: bool = True
) -> Document:
    """The verdict, doubts, then each metric with its evidence, the worst first."""
    rows = [verdict_record(verdict, result.side) for verdict in result.verdicts]
    return Document(
        lambda: gate_blocks(result, faces),
        lambda: gate_json(result, checked),
        lambda: table_of("gate", rows),
        lambda width: gate_text(result, width, faces),
        warnings=result.warnings,
    )


def gate_text(result: GateResult, width: int = PAGE_WIDTH, faces: bool = True) -> str:
    """The blocks; the verdict also stands last where they are longer than a screen."""
    head, *rest = gate_blocks(result, faces, "gate")
    text = blocks_text([head, *rest], width)
    is_long = text.count("\n") > _SCREEN_LINES
    return text + blocks_text([head], width) if is_long else text


def gate_blocks(
    result: GateResult, faces: bool = True, name: str = "wbscope gate"
) -> Iterator[Block]:
    """The verdict first: it is what a summary is opened for."""
    yield Heading(f"{name}: {summary_text(result)}", 1)
    yield from (Text(doubt, is_doubt=True) for doubt in _doubts(result))
    columns = ("", "verdict", "metric", "why", "evidence", "what it says")
    rows = [
        (
            _FACES[verdict.status] if faces else "",
            verdict.status,
            verdict.metric.name,
            "; ".join(verdict.reasons),
            "\n".join(evidence_text(verdict)),
            _meaning(verdict),
        )
        for verdict in _by_status(result)
    ]
    if rows:
        metrics = Result("gate", columns, {}, rows, keys=columns[:3])
        yield Table(metrics, "Metrics", layout="stacked")


def _by_status(result: GateResult) -> list[Verdict]:
    """Else in the order of the policy."""
    return sorted(result.verdicts, key=lambda verdict: _ORDER.index(verdict.status))


def summary_text(result: GateResult) -> str:
    """The verdict over all, in one line."""
    if result.refusals:
        slugs = Counter(refusal.slug for refusal in result.refusals).items()
        why = (slug if count == 1 else f"{count} x {slug}" for slug, count in slugs)
        return f"REFUSED, nothing was judged: {', '.join(why)}"
    counts = [f"{count} {status}" for status in _ORDER if (count := result.count(status))]
    told = f" (counted as {result.counted.lower()})" if result.counted != result.status else ""
    of = counted(len(result.verdicts), "metric")
    return f"{result.status}{told}: {', '.join(counts)} of {of}"


def evidence_text(verdict: Verdict) -> list[str]:
    """The numbers behind a verdict, a line for each subject."""
    row, found = verdict.row, verdict.shift
    if row is None:
        return []
    medians = [median_text(row.metric, sample) for sample in (row.base_sample, row.sample)]
    what = "published means" if is_published(row.shift) else "medians"
    lines = [f"{row.base} {medians[0]}, {row.side} {medians[1]} ({what})"]
    if found is None:
        return lines
    lines[0] += (
        f", change {amount_text(row.metric, found, found.estimate)}"
        f" ({interval_text(row.metric, found)}), margin {verdict.margin},"
        f" p {p_text(found.p)}, adjusted {p_text(verdict.p_adjusted)},"
        f" n {runs_text(row.sample, row.base_sample)}"
    )
    if verdict.status in ("INCONCLUSIVE", "WORSE") and verdict.delta is not None:
        lines.append(_plan(verdict, row))
    return lines


def _plan(verdict: Verdict, row: Row) -> str:
    """What these runs could have shown, and how many would do."""
    sizes = [len(s.values) for s in (row.sample, row.base_sample)]
    if max(sizes) < 2:
        return "one run a side does not tell how much runs spread, nor how many would do"
    if verdict.shift is not None and verdict.shift.method == "sessions":
        return "more sessions decide, not more runs; or record both sides in turns"
    least = "none" if verdict.detectable is None else _worsening(verdict, verdict.detectable)
    if verdict.delta == 0:
        needed = "no number of runs confirms a margin of 0: give one in the metric's unit"
    elif verdict.runs_needed is None:
        needed = "more than 200 runs a side would be needed; make the runs steadier or longer"
    elif verdict.runs_needed <= min(sizes):
        needed = "as many runs mostly pass unchanged code: this is a narrow case, add runs"
    else:
        is_blocked = verdict.shift is not None and verdict.shift.method.startswith("blocks")
        where = " in sessions like these" if is_blocked else ""
        runs = f"{verdict.runs_needed} runs a side{where}"
        needed = f"with {runs} unchanged code would pass 4 times in 5"
    first = "look at the outlier runs first; " if verdict.far_runs else ""
    return f"{first}smallest regression that these runs can detect: {least}; {needed}"


def _worsening(verdict: Verdict, value: float) -> str:
    if verdict.shift is not None and verdict.shift.scale == "ratio":
        return share_text(value if verdict.metric.better == "lower" else -value)
    assert verdict.shift is not None
    signed = value if verdict.metric.better == "lower" else -value
    return amount_text(verdict.metric, verdict.shift, signed)


def _meaning(verdict: Verdict) -> str:
    return f"{verdict.metric.meaning} ({better_text(verdict.metric)})"


def _doubts(result: GateResult) -> list[str]:
    lines = [
        printable(f"refused[{refusal.slug}]: {refusal.message}  fix: {refusal.fix}")
        for refusal in result.refusals
    ]
    lines += [warning_text(notice) for notice in dict.fromkeys(result.warnings)]
    if result.unknown:
        told = printable(facts_text(result.unknown))
        lines.append(f"not recorded for every run, so not compared: {told}")
    return lines
