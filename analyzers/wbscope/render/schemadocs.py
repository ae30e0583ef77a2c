# SPDX-License-Identifier: Apache-2.0
"""What is in each document that --json prints, in the short form of render/schemas.py."""

from __future__ import annotations

from dataclasses import dataclass

from wbscope.render.schemaparts import CHANGE, TABLE, Shape


@dataclass(frozen=True)
class Document:
    """One kind: its name, the verb that prints it, what it is."""

    name: str
    verb: str
    about: str
    shape: dict[str, Shape]


_REPORT: dict[str, Shape] = {
    "run": "str",
    "part_ns?": ["int|null"],
    "verdict": ["$finding"],
    "units": "$units",
    "summary": [{"key": "str", "value": "num|str|null"}],
    "rows": ["$section"],
    "warnings": ["$warning"],
}
_BASELINE: dict[str, Shape] = {"output": "str", "runs_count": "int", "metrics_count": "int"}


def _rows(head: dict[str, Shape], row: dict[str, Shape]) -> dict[str, Shape]:
    return {**head, "units": "$units", "rows": [row], "warnings": ["$warning"]}


DOCUMENTS: tuple[Document, ...] = (
    Document(
        "error",
        "",
        "What every verb prints on stderr, in one line, when it fails with --json.",
        {
            "error": {
                "slug": "str",
                "object": "str",
                "message": "str",
                "at?": "str",
                "have?": "str",
                "effect?": "str",
                "fix?": "str",
                "exit_code": "int",
            }
        },
    ),
    Document(
        "record",
        "record",
        "The run folder, how the recording ended, and what is known of it.",
        {"units": "$units", "rows": [{"*": "any"}], "warnings": ["$warning"]},
    ),
    Document(
        "doctor",
        "doctor",
        "What this machine can record.",
        _rows(
            {}, {"name": "str", "status": "=ok|missing|fails", "found": "str", "fix": "str|null"}
        ),
    ),
    Document(
        "doctor_events",
        "doctor",
        "Every event of the profiles, and what it is called here; null: it is not there.",
        _rows({}, {"profile": "str", "event": "str", "name_here": "str|null"}),
    ),
    Document(
        "lab",
        "lab run",
        "The runs of a matrix: with --list those to come, else those that were made.",
        _rows(
            {},
            {
                "place?": "int",
                "run": "str",
                "cell?": "str",
                "values": {"*": "str"},
                "number?": "int",
                "failed?": "str|null",
                "kernel_source?": "str",
            },
        ),
    ),
    Document(
        "lab-report",
        "lab report",
        "A row for each cell and metric; `pairs` differ in one axis.",
        _rows(
            {
                "title": "str",
                "digest": "str",
                "wbscope_version": "str",
                "alpha": "num",
                "axes": {"*": ["str"]},
                "wanted_runs": "int",
                "undecidable": "str|null",
                "cells": [
                    {
                        "cell": "str",
                        "values": {"*": "str"},
                        "runs": ["str"],
                        "failed": [{"number": "int", "why": "str"}],
                        "missing": ["int"],
                    }
                ],
                "pairs": [
                    {
                        "axis": "str",
                        "cell": "str",
                        "against": "str",
                        "differing": "str",
                        "changes": [{**CHANGE, "over_noise": "num|null", "decided": "bool"}],
                    }
                ],
            },
            {
                "cell": "str",
                "values": {"*": "str"},
                "metric": "str",
                "unit": "str|null",
                "better": "str",
                "n": "int",
                "median": "num|null",
                "low": "num|null",
                "high": "num|null",
                "of_runs": ["num"],
                "missing": ["str"],
            },
        ),
    ),
    Document(
        "lab-bisect",
        "lab bisect",
        "From which point on a metric is worse; a row for each that was looked at.",
        _rows(
            {
                "status": "str",
                "first_bad": "str|null",
                "last_good": "str|null",
                "range": ["str"],
                "why": "str|null",
                "metric": "str|null",
                "unit": "str|null",
                "runs": "int",
                "alpha": "num",
                "level": "num",
                "margin": "any",
                "looks": ["int"],
                "ends": "$confirmed|null",
                "border": "$confirmed|null",
            },
            {"point": "str", "verdict": "str", "why": "str", "of_runs": ["num"]},
        ),
    ),
    Document(
        "ingest",
        "ingest",
        "The database that was written.",
        _rows(
            {"source": "str"},
            {"output": "str", "events_count": "int", "loaded_count": "int", "damaged": "bool"},
        ),
    ),
    Document(
        "query",
        "query",
        "The rows of a canned query; of several runs each row has its `run`.",
        {
            "query": "str",
            "run?": "str",
            "runs?": ["str"],
            **TABLE,
            "explain?": {"query": "str", **TABLE},
        },
    ),
    Document("sql", "sql", "The rows of one statement.", {"sql": "str", "run": "str", **TABLE}),
    Document(
        "sql-script",
        "sql",
        "A row for each statement, with the rows of its answer.",
        _rows(
            {"source": "str", "run": "str"},
            {"line": "int", "sql": "str", "units": "$units", "rows": ["$row"]},
        ),
    ),
    Document(
        "queries",
        "queries",
        "The canned queries, what each needs, and its columns.",
        _rows(
            {},
            {
                "name": "str",
                "title": "str|null",
                "subject": "str",
                "summary": "str",
                "read": "str|null",
                "grain": "str|null",
                "events": [["str"]],
                "optional": ["str"],
                "profile": "str|null",
                "options": ["str"],
                "explain": "str|null",
                "source": "str|null",
                "columns": [
                    {"name": "str", "type": "str", "description": "str", "unit": "str|null"}
                ],
                "metrics": ["$column_metric"],
            },
        ),
    ),
    Document("report", "report", "The verdict of a run, and a row for each table.", _REPORT),
    Document(
        "reports",
        "report",
        "A row for each table of each run, and `runs` with the whole report of each.",
        {
            "runs": [_REPORT],
            "units": "$units",
            "rows": ["$section_of_run"],
            "warnings": ["$warning"],
        },
    ),
    Document(
        "explain",
        "explain",
        "A row for each finding, what matters most first, then facts.",
        {
            "run": "str",
            "is_whole": "bool",
            "part_ns?": ["int|null"],
            "units": "$units",
            "rows": ["$finding"],
            "warnings": ["$warning"],
        },
    ),
    Document(
        "stall",
        "explain",
        "With --stall: one wait, told step by step.",
        {
            "run": "str",
            "stall_id": "int",
            "finding": "str|null",
            "units": "$units",
            "facts": {"*": "$cell"},
            "rows": [{"at_ns": "int", "text": "str"}],
            "warnings": ["$warning"],
        },
    ),
    Document(
        "check",
        "check",
        "A row for each number that another source has, too.",
        {"run": "str", "verdict": "str", "passed": "bool", **TABLE},
    ),
    Document(
        "plot",
        "plot",
        "The pictures that were written.",
        _rows(
            {"run": "str"},
            {"figure": "str", "query": "str", "window": "str|null", "rows": "int", "output": "str"},
        ),
    ),
    Document(
        "figures",
        "plot",
        "With --list: the figures; of a run whether it has what they need.",
        _rows(
            {"run?": "str"},
            {
                "name": "str",
                "title": "str",
                "query": "str",
                "is_there?": "bool",
                "why_not?": "str|null",
            },
        ),
    ),
    Document(
        "timeline",
        "timeline",
        "The Perfetto trace that was written, and the views in it.",
        _rows({"run": "str", "against?": "str"}, {"output": "str", "views": ["str"]}),
    ),
    Document(
        "convert",
        "convert",
        "The Perfetto trace that was written.",
        _rows(
            {"sources": ["str"]},
            {"output": "str", "events_count": "int", "converted_count": "int", "damaged": "bool"},
        ),
    ),
    Document(
        "open",
        "open",
        "The links that a browser can open; printed before it waits.",
        _rows(
            {"run": "str", "against?": "str"},
            {"link": "str", "short_link": "str", "trace": "str", "origin": "str|null"},
        ),
    ),
    Document(
        "compare",
        "compare",
        "A row for each metric and side, against the base.",
        {
            "base": "str",
            "sides": ["$side"],
            "alpha": "num",
            "margin_ratio": "num",
            "differing": [{"fact": "str", "values": [{"value": "any", "runs": ["str"]}]}],
            "unknown": ["str"],
            "findings": {
                "*": [
                    {
                        "id": "str",
                        "title": "str",
                        "is_new": "bool",
                        "runs_count": "int",
                        "of_count": "int",
                        "base_runs_count": "int",
                        "base_of_count": "int",
                        "q": "num|null",
                    }
                ]
            },
            "counts": {"*": {"*": "int"}},
            "units": "$units",
            "rows": ["$change"],
            "warnings": ["$warning"],
        },
    ),
    Document(
        "gate",
        "gate",
        "The verdict; a row for each declared metric.",
        {
            "status": "=PASS|FAIL|WORSE|INCONCLUSIVE|REFUSED",
            "exit_code": "int",
            "sides": ["$side"],
            "alpha": "num",
            "compared_count": "int",
            "differs": ["str"],
            "unknown": ["str"],
            "refusals": [{"slug": "str", "message": "str", "fix": "str|null"}],
            "self_check": "$self_check|null",
            "units": "$units",
            "rows": ["$judged"],
            "warnings": ["$warning"],
        },
    ),
    Document(
        "baseline-save",
        "baseline save",
        "The baseline that was written.",
        _rows({"runs": ["str"]}, _BASELINE),
    ),
    Document(
        "baseline-summary",
        "baseline show",
        "What is in baselines: a row for each metric.",
        _rows(
            {"runs": ["str"], "fingerprint": {"*": "$cell"}},
            {
                "metric": "str",
                "unit": "str|null",
                "better": "str",
                "n": "int",
                "median": "num|null",
                "mean": "num|null",
                "sd": "num|null",
            },
        ),
    ),
    Document(
        "baseline-merge",
        "baseline merge",
        "The baseline that was written.",
        _rows({"runs": ["str"]}, _BASELINE),
    ),
    Document(
        "history-add",
        "history add",
        "What came of each run, and the commit that it is at.",
        _rows(
            {
                "file": "str",
                "commit": "str",
                "date": "str",
                "branch": "str|null",
                "added_count": "int",
                "known_count": "int",
            },
            {
                "run": "str",
                "outcome": "=added|known",
                "commit": "str",
                "metrics_count": "int",
            },
        ),
    ),
    Document(
        "history",
        "history show",
        "A row for each change, and all series.",
        {
            **_rows(
                {
                    "file": "str",
                    "branch": "str|null",
                    "commits": [
                        {"commit": "str", "date": "str", "kernels": ["str"], "runs": ["str"]}
                    ],
                    "fdr": "num",
                },
                {
                    "metric": "str",
                    "unit": "str|null",
                    "better": "str",
                    "outcome": "str",
                    "commit": "str",
                    "date": "str",
                    "commit_before": "str",
                    "level_before": "num|null",
                    "level": "num|null",
                    "change_ratio": "num|null",
                    "p": "num|null",
                    "p_adjusted": "num|null",
                    "commits_count": "int",
                    "differing": ["str"],
                },
            ),
            "series": [
                {
                    "metric": "str",
                    "unit": "str|null",
                    "better": "str",
                    "left_out_runs": "int",
                    "points": [{"commit": "str", "median": "num", "values": ["num"]}],
                }
            ],
        },
    ),
    Document(
        "fleet-ingest",
        "fleet ingest",
        "What came of each source of a dataset.",
        _rows(
            {
                "dataset": "str",
                "added_count": "int",
                "known_count": "int",
                "failed_count": "int",
            },
            {
                "source": "str",
                "outcome": "=added|known|failed",
                "run": "str|null",
                "error": "str|null",
            },
        ),
    ),
    Document(
        "fleet-sql",
        "fleet sql",
        "The rows of one statement on a dataset.",
        {"sql": "str", "dataset": "str", **TABLE},
    ),
    Document(
        "fleet-report",
        "fleet report",
        "One row of totals, and a section for each table.",
        {
            "dataset": "str",
            "title": "str",
            **TABLE,
            "sections": [{"name": "str", "title": "str", "units": "$units", "rows": ["$row"]}],
        },
    ),
    Document(
        "sql-package",
        "sql-package",
        "The folder of modules that was written.",
        _rows({}, {"output": "str", "package": "str", "modules_count": "int"}),
    ),
)
