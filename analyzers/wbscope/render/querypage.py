# SPDX-License-Identifier: Apache-2.0
"""The list of queries, and one query in detail, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from wbscope.base.result import unit_of
from wbscope.library.library import Library
from wbscope.library.profiles import profile_of
from wbscope.library.sqlfile import Metric, SqlFile

__all__ = [
    "by_subject",
    "details_text",
    "facts",
    "filter_options",
    "list_text",
    "metric_records",
    "metric_text",
    "profile_text",
]

_DIRECTIONS = {
    "lower": "lower is better",
    "higher": "higher is better",
    "neutral": "neither way is better",
}
_FILTERS = {
    "window": ("--window",),
    "range": ("--from", "--to"),
    "bdi": ("--bdi",),
    "tid": ("--tid",),
    "task": ("--task",),
    "cgroup": ("--cgroup",),
}

# In which order a list of queries has them.
_SUBJECTS = (
    "What is wrong.",
    "Throttled tasks.",
    "Fairness between writers.",
    "Where tasks waited.",
    "Dirty pages and their limits.",
    "Disks and flushers.",
    "Reclaim.",
    "Counters that were sampled.",
    "The run itself.",
)


def by_subject(queries: Sequence[SqlFile]) -> dict[str, list[SqlFile]]:
    """The queries under what their files say that they are about."""
    known = dict.fromkeys(_SUBJECTS)
    found: dict[str, list[SqlFile]] = {}
    for subject in [*known, *dict.fromkeys(q.subject for q in queries if q.subject not in known)]:
        if of_subject := [query for query in queries if query.subject == subject]:
            found[subject.rstrip(".")] = of_subject
    return found


def list_text(queries: Sequence[SqlFile], width: int) -> str:
    """Name and title, one query a line where it fits, under what they are about."""
    indent = max((len(query.name) for query in queries), default=0) + 2
    parts = []
    for subject, of_subject in by_subject(queries).items():
        lines = [f"{subject}:"] if subject else []
        margin = "  " if subject else ""
        lines += [
            _hang(margin + q.name.ljust(indent), q.title or q.summary, indent + len(margin), width)
            for q in of_subject
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def facts(query: SqlFile, library: Library) -> list[tuple[str, str]]:
    """What there is to say about a query besides its columns; the same everywhere."""
    known = (
        ("How to read it", query.read),
        ("One row", query.grain),
        ("Options", _options(query)),
        ("Made of", ", ".join(query.needs) if query.kind != "query" else ""),
        ("Needs", _all_of(query.events) or ("no event" if query.kind == "query" else "")),
        ("Better with", _all_of(_groups(query))),
        ("Record profile", profile_text(query, library)),
        ("Evidence", f"--explain adds {query.explain}" if query.explain else ""),
        ("Source", query.source),
    )
    return [(label, text) for label, text in known if text]


def filter_options(query: SqlFile) -> list[str]:
    """The options of `wbscope query` that restrict it."""
    return [option for name in query.filters for option in _FILTERS.get(name, (f"--{name}",))]


def _options(query: SqlFile) -> str:
    if query.kind != "query":
        return ""
    return ", ".join(filter_options(query)) or "none: it covers the whole run"


def profile_text(query: SqlFile, library: Library) -> str:
    """The smallest profiles with what it needs, and with all that makes it better."""
    if not library.profiles or not (query.events or query.optional):
        return ""
    needed = profile_of(query.events, library.profiles)
    if needed is None:
        return "none: kernels in use have no such event"
    if not query.events:
        needed = None
    whole = profile_of([*query.events, *_groups(query)], library.profiles)
    words = [needed.name] if needed else []
    if whole is not None and whole != needed:
        words.append(f"{whole.name} for all that makes it better")
    return ", ".join(words)


def details_text(query: SqlFile, library: Library, width: int) -> str:
    """All that a user needs to know before running it."""
    lines = [query.name, textwrap.indent(textwrap.fill(query.summary, width - 2), "  ")]
    lines += [
        _hang(f"  {label.lower()}: ", text, 4, width) for label, text in facts(query, library)
    ]
    indent = max((len(column.name) for column in query.columns), default=0) + 4
    for column in query.columns:
        head = f"  {column.name}".ljust(indent)
        unit = unit_of(column.name)
        kind = column.type if unit is None else f"{column.type}, {unit}"
        lines.append(_hang(head, f"{kind}: {column.description}", indent, width))
    lines += [_hang("  metric: ", metric_text(metric), 4, width) for metric in query.metrics]
    return "\n".join(lines) + "\n"


def metric_text(metric: Metric) -> str:
    """A metric's name, unit, direction and meaning, as one line."""
    known = (unit_of(metric.column), _DIRECTIONS[metric.better])
    about = ", ".join(fact for fact in known if fact)
    return f"{metric.column}{f' ({about})' if about else ''}: {metric.meaning}"


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


def _groups(query: SqlFile) -> list[tuple[str, ...]]:
    return [tuple(event.split("|")) for event in query.optional]


def _all_of(groups: Sequence[tuple[str, ...]]) -> str:
    return ", ".join(" or ".join(group) for group in groups)


def _hang(head: str, text: str, indent: int, width: int) -> str:
    return textwrap.fill(
        text,
        max(width, indent + 20),
        initial_indent=head,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )
