# SPDX-License-Identifier: Apache-2.0
"""How a bisection ended, as text and as one JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from wbscope.base.result import Result
from wbscope.base.units import counted
from wbscope.lab.judging import Confirmed, Plan
from wbscope.lab.search import Found
from wbscope.measure.metric import Metric
from wbscope.render.changes import amount_text, better_text, interval_text, p_text, value_text
from wbscope.render.jsondoc import document, rows_body
from wbscope.render.printable import folded, printable
from wbscope.render.table import PAGE_WIDTH, table_text
from wbscope.stats.shift import Shift

__all__ = ["bisect_json", "bisect_text"]


def bisect_text(
    found: Found[str],
    metric: Metric | None,
    plan: Plan,
    titles: Mapping[str, str],
    width: int = PAGE_WIDTH,
) -> str:
    """The answer first, then the border, then each point that was looked at."""
    lines = [folded(line, width) for line in _answer(found, titles)]
    if metric is not None:
        lines.append(folded(printable(f"by {metric.name} ({better_text(metric)})"), width))
        told_of = {"between the two, by fresh runs": found.border, "between the ends": found.ends}
        for what, compared in told_of.items():
            if compared is not None and compared.shift is not None:
                lines.append(folded(_compared(what, metric, compared, compared.shift), width))
    if found.tests:
        rows = [
            (
                printable(titles.get(test.point, test.point)),
                len(test.values),
                "-" if metric is None else _median(metric, test.values),
                test.verdict,
                printable(test.why),
            )
            for test in found.tests
        ]
        result = Result("bisect", ("point", "runs", "median", "verdict", "why"), {}, rows)
        lines += ["", table_text(result, width).rstrip("\n")]
    told = f"{counted(found.runs, 'run')} counted."
    if found.ends is not None and found.ends.shift is not None:
        told += (
            f" A wrong one is named in at most {100 * plan.alpha:g} % of such searches, when all"
            f" points before the border are as the good end and all behind it as the bad end;"
            f" worse is by more than {100 * plan.margin:g} %, and one comparison is decided at"
            f" p {plan.level:.2g}."
        )
    return "\n".join([*lines, "", folded(told, width)]) + "\n"


def _answer(found: Found[str], titles: Mapping[str, str]) -> list[str]:
    good, bad = (titles.get(one, one) for one in (found.last_good, found.first_bad))
    ends = [f"good end: {good}", f"bad end: {bad}"]
    match found.status:
        case "found":
            return [f"first bad: {bad}", f"last good: {good}"]
        case "nothing":
            return [f"nothing to find: {found.why}", *ends]
        case "unmeasured":
            return [f"no answer, an end could not be measured: {found.why}", *ends]
        case "unconfirmed":
            return [
                f"not confirmed: {found.why}",
                f"it pointed at {bad}, after {good}",
            ]
    if found.ends is None:
        return [f"not decided whether they differ: {found.why}", *ends]
    return [f"not decided: {found.why}", f"the first bad one is behind {good}, up to {bad}"]


def _compared(what: str, metric: Metric, compared: Confirmed, shift: Shift) -> str:
    change = amount_text(metric, shift, shift.estimate)
    interval = interval_text(metric, shift)
    told = "" if interval == "-" else f" ({interval})"
    return f"{what}: {change}{told}, p {p_text(shift.p)}, {compared.runs} runs of each"


def _median(metric: Metric, values: tuple[float, ...]) -> str:
    return value_text(metric, float(np.median(values))) if values else "-"


def bisect_json(found: Found[str], metric: Metric | None, plan: Plan) -> str:
    """`rows`: one for each point that was looked at, in that order."""
    head: dict[str, Any] = {
        "status": found.status,
        "first_bad": found.first_bad if found.status == "found" else None,
        "last_good": found.last_good if found.status == "found" else None,
        "range": [found.last_good, found.first_bad],
        "why": found.why or None,
        "metric": None if metric is None else metric.name,
        "unit": None if metric is None else metric.unit or None,
        "runs": found.runs,
        "alpha": plan.alpha,
        "level": plan.level,
        "margin": plan.margin,
        "looks": list(plan.looks),
        "ends": _record(found.ends),
        "border": _record(found.border),
    }
    rows = [
        {
            "point": test.point,
            "verdict": test.verdict,
            "why": test.why,
            "of_runs": list(test.values),
        }
        for test in found.tests
    ]
    return document("lab-bisect", head, rows_body(rows, ()))


def _record(compared: Confirmed | None) -> dict[str, Any] | None:
    if compared is None or compared.shift is None:
        return None
    return {
        "worse": compared.is_worse,
        "runs": compared.runs,
        "scale": compared.shift.scale,
        "estimate": compared.shift.estimate,
        "low": compared.shift.low,
        "high": compared.shift.high,
        "p": compared.shift.p,
    }
