# SPDX-License-Identifier: Apache-2.0
"""Lists as text: queries, figures, and what the doctor found."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from wbscope.base.errors import WbscopeError
from wbscope.base.result import unit_of
from wbscope.doctor.checks import Check, Status
from wbscope.doctor.tracing import EventState
from wbscope.library.catalog import profile_of
from wbscope.library.library import Library
from wbscope.library.sqlfile import Metric, SqlFile
from wbscope.plot.figures import Figure
from wbscope.render.text import printable

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


_INDENT = 2


def figure_list(
    figures: Sequence[Figure], reasons: Sequence[WbscopeError | None] | None, width: int
) -> str:
    """A block of lines for each figure; `reasons` says of each why the run cannot have it."""
    lines: list[str] = []
    for number, figure in enumerate(figures):
        reason = None if reasons is None else reasons[number]
        lines.append(f"{figure.name}{'' if reason is None else ': not in this run'}")
        lines += _hung(f"{figure.title}. Query {figure.query}.", width)
        if reason is not None:
            lines += _hung(reason.message, width)
    return "\n".join(lines) + "\n"


def _hung(text: str, width: int) -> list[str]:
    indent = " " * _INDENT
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


_MARKS = {Status.ok: "ok", Status.missing: "-", Status.fails: "FAILS"}
_MARK_WIDTH = max(len(mark) for mark in _MARKS.values())


def checks_text(checks: Sequence[Check], width: int) -> str:
    """What follows from all of them; then a line each, the fix below it."""
    names = max(len(check.name) for check in checks)
    lines = [*_verdict(checks, width), ""]
    for check in checks:
        head = f"{_MARKS[check.status]:<{_MARK_WIDTH}}  {check.name:<{names}}  "
        lines += _wrapped(head, check.found, width)
        if check.fix is not None:
            # A command is not broken: it is there to be copied.
            lines.append(" " * len(head) + f"fix: {printable(check.fix)}")
    return "\n".join(lines) + "\n"


def states_text(states: Sequence[EventState]) -> str:
    """Profile, event, and its name here."""
    width = max(len(state.event) for state in states)
    lines = []
    for state in states:
        here = "missing" if state.name_here is None else "ok"
        if state.name_here not in (None, state.event):
            here = f"as {state.name_here}"
        lines.append(f"{state.profile:<10}{state.event:<{width}}  {here}\n")
    return "".join(lines)


def _verdict(checks: Sequence[Check], width: int) -> list[str]:
    """Whether anything can be recorded, what first helps if not, and what is not there if so."""
    failing = [check for check in checks if check.status is Status.fails]
    if not failing:
        missing = ", ".join(check.name for check in checks if check.status is Status.missing)
        without = f" Missing, with fixes below: {missing}." if missing else ""
        return _wrapped("", f"wbscope record works here.{without}", width)
    names = ", ".join(check.name for check in failing)
    lines = _wrapped("", f"wbscope record does not work here: {names}.", width)
    fix = next((check.fix for check in failing if check.fix is not None), None)
    return lines if fix is None else [*lines, f"To do: {printable(fix)}"]


def _wrapped(head: str, text: str, width: int) -> list[str]:
    room = max(width - len(head), 20)
    parts = textwrap.wrap(printable(text), room, break_long_words=False) or [""]
    return [head + parts[0], *(" " * len(head) + part for part in parts[1:])]
