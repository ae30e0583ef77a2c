# SPDX-License-Identifier: Apache-2.0
"""The list of queries, and one query in detail, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from wbscope.engine.result import unit_of
from wbscope.engine.sqlfile import Metric, SqlFile

__all__ = ["details_text", "list_text", "metric_records", "metric_text"]

_DIRECTIONS = {"lower": "lower is better", "higher": "higher is better", "neutral": ""}


def list_text(queries: Sequence[SqlFile], width: int) -> str:
    """Name and summary, one query a line where it fits."""
    indent = max((len(query.name) for query in queries), default=0) + 2
    lines = [_hang(q.name.ljust(indent), q.summary, indent, width) for q in queries]
    return "\n".join(lines) + "\n"


def details_text(query: SqlFile, width: int) -> str:
    """All that a user needs to know before running it."""
    events = ", ".join(" or ".join(group) for group in query.events)
    facts = (
        ("one row", query.grain),
        ("needs", events or "no event"),
        ("better with", ", ".join(event.replace("|", " or ") for event in query.optional)),
        ("read", query.read),
        ("source", query.source),
    )
    lines = [query.name, textwrap.indent(textwrap.fill(query.summary, width - 2), "  ")]
    lines += [_hang(f"  {label}: ", text, 4, width) for label, text in facts if text]
    indent = max((len(column.name) for column in query.columns), default=0) + 4
    for column in query.columns:
        head = f"  {column.name}".ljust(indent)
        lines.append(_hang(head, f"{column.type}, {column.description}", indent, width))
    lines += [_hang("  metric: ", metric_text(metric), 4, width) for metric in query.metrics]
    return "\n".join(lines) + "\n"


def metric_text(metric: Metric) -> str:
    """A metric's name, unit, direction and meaning, as one line."""
    facts = (unit_of(metric.column), _DIRECTIONS[metric.better])
    known = ", ".join(fact for fact in facts if fact)
    return f"{metric.column}{f' ({known})' if known else ''}: {metric.meaning}"


def metric_records(query: SqlFile) -> list[dict[str, str | None]]:
    """A query's metrics for a JSON document."""
    return [
        {
            "column": metric.column,
            "unit": unit_of(metric.column),
            "better": metric.better,
            "meaning": metric.meaning,
        }
        for metric in query.metrics
    ]


def _hang(head: str, text: str, indent: int, width: int) -> str:
    return textwrap.fill(
        text,
        max(width, indent + 20),
        initial_indent=head,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )
