# SPDX-License-Identifier: Apache-2.0
"""Parts that several documents of --json have, in the short form of render/schemas.py."""

from __future__ import annotations

from typing import TypeAlias

__all__ = ["CHANGE", "PARTS", "TABLE", "Shape"]

Shape: TypeAlias = "str | list[Shape] | dict[str, Shape]"

_METRIC: dict[str, Shape] = {
    "metric": "str",
    "unit": "str|null",
    "better": "str",
    "meaning": "str",
    "source": "str",
}
CHANGE: dict[str, Shape] = {
    **_METRIC,
    "side": "str",
    "base": "str",
    "outcome": "str",
    "reason": "str|null",
    "shift": "$shift|null",
    "p": "num|null",
    "p_method": "str|null",
    "q": "num|null",
    "of_side": "$sample",
    "of_base": "$sample",
}
_SECTION: dict[str, Shape] = {
    "query": "str",
    "title": "str|null",
    "read": "str|null",
    "metrics": ["$column_metric"],
    "units?": "$units",
    "rows?": ["$row"],
    "warnings?": ["$warning"],
    "skipped?": {"slug": "str", "message": "str"},
}
TABLE: dict[str, Shape] = {"units": "$units", "rows": ["$row"], "warnings": ["$warning"]}
PARTS: dict[str, tuple[str, Shape]] = {
    "units": ("Column: its unit (ns, bytes, bytes_per_s, count, ratio).", {"*": "str"}),
    "cell": ("Null was not recorded; it is never 0.", "num|str|bool|null"),
    "row": ("Column: its value, a raw number in the unit of `units`.", {"*": "$cell"}),
    "warning": (
        "A reason to read the rows with care; `slug` never changes its meaning.",
        {"run?": "str", "slug": "str", "message": "str"},
    ),
    "evidence": (
        "A query whose rows show it, and the facts that it gives; `id` is FINDING/NUMBER.",
        {"id": "str", "query": "str", "command": "str", "facts": ["str"]},
    ),
    "finding": (
        "Something worth telling; times count from the first event.",
        {
            "id": "str",
            "title": "str",
            "severity": "str",
            "confidence": "=measured|inferred|cannot tell",
            "cost_task_ns": "int",
            "text": "str",
            "first_ns": "int|null",
            "last_ns": "int|null",
            "facts": {"*": "$cell"},
            "told": ["str"],
            "evidence": ["$evidence"],
            "advice": "$advice|null",
        },
    ),
    "advice": (
        "What to change, what that costs, and how to try and undo it.",
        {
            "text": "str",
            "settings": [{"knob": "str", "value": "str"}],
            "now": ["str"],
            "costs": "str|null",
            "expect": "str|null",
            "try": ["str"],
            "undo": ["str"],
        },
    ),
    "section": ("One query of a report: its rows, or why it was not answered.", _SECTION),
    "section_of_run": ("The same, and the run that it is of.", {"run": "str", **_SECTION}),
    "column_metric": (
        "A column that is a metric, and which way of it is better.",
        {"column": "str", "unit": "str|null", "better": "str", "meaning": "str"},
    ),
    "shift": (
        "From base to side, with its interval; on `scale`: ratio or difference.",
        {"scale": "str", "estimate": "num", "low": "num|null", "high": "num|null"},
    ),
    "sample": (
        "The values of the runs of a side, in the metric's unit; `missing` has no value.",
        {
            "n": "int",
            "values": ["num"],
            "missing": ["str"],
            "median": "num|null",
            "mean": "num|null",
            "sd": "num|null",
            "min": "num|null",
            "max": "num|null",
            "trimmed_mean": "num|null",
            "trimmed_sd": "num|null",
        },
    ),
    "side": (
        "The runs of a side, what they were recorded on, and which queries could not be asked.",
        {
            "name": "str",
            "runs": [
                {
                    "name": "str",
                    "source_id": "str",
                    "fingerprint": {"*": "$cell"},
                    "lacking": {"*": "str"},
                }
            ],
        },
    ),
    "change": ("One metric of one side against the base.", CHANGE),
    "judged": (
        "One declared metric; margin, detectable and shift are on the scale of shift.",
        {
            **_METRIC,
            "status": "=PASS|FAIL|WORSE|INCONCLUSIVE|REFUSED",
            "reasons": ["str"],
            "margin": "str|null",
            "budgets": ["str"],
            "far_runs": ["str"],
            "p_far": "num|null",
            "shift": "$shift|null",
            "delta": "num|null",
            "p": "num|null",
            "p_adjusted": "num|null",
            "detectable": "num|null",
            "runs_needed": "int|null",
            "of_side": "$sample",
            "of_base": "$sample|null",
        },
    ),
    "verdicts": (
        "Runs that were judged against themselves.",
        {"status": "str", "rows": ["$judged"]},
    ),
    "self_check": (
        "Runs against themselves, and the second half against the first; null: too few for halves.",
        {
            "status": "str",
            "decided_by": "=same|halves",
            "same": "$verdicts",
            "halves": "$verdicts|null",
            "predicted_pass_ratio": "num|null",
        },
    ),
    "confirmed": (
        "Runs of two points, compared.",
        {
            "worse": "bool",
            "runs": "int",
            "scale": "str",
            "estimate": "num",
            "low": "num|null",
            "high": "num|null",
            "p": "num|null",
        },
    ),
}
