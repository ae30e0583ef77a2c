# SPDX-License-Identifier: Apache-2.0
"""A trace to a database or to Perfetto: what of it is loaded, and who writes it."""

from __future__ import annotations

import re
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from wbscope.base.errors import Argument, InputError, Phrase, UsageError
from wbscope.base.outputs import check_output, private_output
from wbscope.base.result import Notice
from wbscope.base.span import WHOLE, Moment, Span
from wbscope.base.system import absolute, file_word, passed_text
from wbscope.ingest.program import Observer, reference_formats, run_ingester
from wbscope.library.database import check_database
from wbscope.library.library import Library
from wbscope.source.plain_files import report_of
from wbscope.source.source import Kind, Source, find_source

_MOST_NEAR = 5
_WANTED = "writeback"  # the system that most people ask for
# "[" and its "]"; one right behind "[", "[!" or "[^" is a member.
_BRACKETS = re.compile(r"\[(?:[!^].|[^!^])[^]]*\]", re.DOTALL)


@dataclass(frozen=True)
class Choice:
    """The library's events and those that match `events`, or all of them.

    `span` is the part that is read; `limit` is of loaded rows; with `unpack_limit`, a trace of
    which far more comes out than is in it is refused.
    """

    events: Sequence[str] = ()
    load_all: bool = False
    span: Span = WHOLE
    limit: int | None = None
    unpack_limit: bool = True

    @property
    def time_range(self) -> str | None:
        """The span as wbscope-ingest takes it."""
        return self.span.machine() if self.span else None

    @property
    def is_part(self) -> bool:
        """Whether not all of the trace is read."""
        return bool(self.span) or self.limit is not None


def check_glob(glob: str) -> None:
    """UsageError for a pattern that can match no event."""
    if not glob or "[" in _BRACKETS.sub("", glob):
        raise UsageError(
            "bad-glob",
            Phrase(Argument("events", [glob])),
            "is no pattern, wanted one such as sched:* or sched_switch",
            fix=Phrase(Argument("events", ["sched:*"])),
        )


@contextmanager
def saying(span: Span) -> Iterator[None]:
    """Within, only the ingester can tell that @5s..1s is empty: say so in the user's words."""
    try:
        yield
    except UsageError as error:
        if error.slug == "empty-range" and span:
            error.subject = span.words()
        raise


def check_selection(source: Source, database: Path, choice: Choice) -> list[Notice]:
    """What of the choice found nothing in the new database.

    Raises: UsageError for a pattern that fits no event, not even one that never occurred, and
    for a part without a record.
    """
    if not choice.events and not choice.span:
        return []
    with closing(sqlite3.connect(f"{absolute(database).as_uri()}?mode=ro", uri=True)) as opened:
        events = [str(name) for (name,) in opened.execute("SELECT event FROM event_counts")]
        formats = [str(name) for (name,) in opened.execute("SELECT event FROM event_format")]
    if not events:
        if choice.span:
            raise _empty_range(source, database, choice)
        return []
    notices = []
    for glob in choice.events:
        if any(matches(glob, event) for event in events):
            continue
        if not choice.is_part and not any(matches(glob, event) for event in formats):
            raise no_such_event(glob, events)
        where = "the part that was read" if choice.is_part else "this trace"
        notices.append(_not_met(glob, events, where))
    return notices


def matches(glob: str, event: str) -> bool:
    """As fnmatch(3) does in the ingester, on SYSTEM:NAME or NAME."""
    if "[[:" in glob or "\\" in glob:
        return True  # Python knows neither; no warning is better than a wrong one
    pattern = glob.replace("[^", "[!")
    system, colon, name = event.rpartition(":")
    if pattern == system:
        return True
    if ":" not in pattern or not (colon and system):
        return fnmatchcase(name, pattern.partition(":")[2] or pattern)
    return fnmatchcase(event, pattern)


def no_such_event(glob: str, events: Sequence[str]) -> UsageError:
    """The error for a pattern that fits none of these, as the ingester has it."""
    near = _near(glob, events)
    systems = sorted({event.partition(":")[0] for event in events if ":" in event})
    some = [_WANTED] if _WANTED in systems else [*systems, "*"]
    offered = near or ([f"systems {', '.join(systems)}"] if systems else [])
    return UsageError(
        "no-such-event",
        Phrase(Argument("events", [glob])),
        f"matches none of the {len(events)} events of this trace",
        have=", ".join(offered) or None,
        effect="nothing was written",
        fix=Phrase(Argument("events", [(near or some)[0]])),
    )


def _not_met(glob: str, events: Sequence[str], where: str) -> Notice:
    near = _near(glob, events)
    told = f": {shlex.quote(glob)} matches none of the {len(events)} events of {where}"
    told += f"; have: {', '.join(near)}" if near else ""
    return Notice("no-such-event", Phrase(Argument("events"), told))


def _near(glob: str, events: Sequence[str]) -> list[str]:
    system, colon, name = glob.partition(":")
    if not colon:
        words = sorted({word for event in events for word in event.split(":")})
        return get_close_matches(glob, words, _MOST_NEAR)
    systems = sorted({e.partition(":")[0] for e in events if ":" in e})
    near = [f"{s}:{name}" for s in get_close_matches(system, systems, _MOST_NEAR)]
    there = [glob for glob in near if any(matches(glob, event) for event in events)]
    return (there + get_close_matches(glob, events, _MOST_NEAR))[:_MOST_NEAR]


def _empty_range(source: Source, database: Path, choice: Choice) -> UsageError:
    """With the range that the trace has: a second look at it, which only counts.

    Raises: UsageError, as every question to the whole trace does.
    """
    whole = database.with_name(f"{database.name}.whole")  # the output may have any name
    options = [] if choice.unpack_limit else ["--no-unpack-limit"]
    run_ingester(["sqlite", file_word(source.given), "-o", str(whole), *options])
    with closing(sqlite3.connect(whole)) as opened:
        meta = dict(opened.execute("SELECT key, value FROM meta"))
    whole.unlink()
    have = None
    if (first := meta.get("first_ts")) is not None and (last := meta.get("last_ts")) is not None:
        choice.span.on_clock(first, last)
        have = f"0s..{_seconds(last - first)}, @{_seconds(first)}..@{_seconds(last)}"
    return UsageError(
        "empty-range",
        choice.span.words(),
        "holds no record",
        have=have,
        effect="nothing was written",
        fix=choice.span.said(Moment(0, False, "0s"), None),
    )


def _seconds(ns: int) -> str:
    return f"{'-' if ns < 0 else ''}{abs(ns) // 10**9}.{abs(ns) % 10**9:09d}s"


def trace_to_database(
    run: Source, output: Path, library: Library, choice: Choice, observer: Observer | None
) -> tuple[dict[str, Any], list[Notice]]:
    """As run_ingester: its `done` message and its warnings."""
    # Formats are a megabyte to read, and for text only.
    texts = [] if run.has_formats() else reference_formats()
    with (
        passed_text("".join(f"{event}\n" for event in library.events())) as (listed, events_name),
        passed_text("".join(texts)) as (formats, formats_name),
        passed_text(library.load_plan()) as (plan, plan_name),
    ):
        options = ["--all"] if choice.load_all else ["--events-file", events_name]
        for event in choice.events:
            options += ["--events", event]
        if choice.time_range is not None:
            options += ["--time-range", choice.time_range]
        if choice.limit is not None:
            options += ["--limit", str(choice.limit)]
        if not choice.unpack_limit:
            options += ["--no-unpack-limit"]
        return run_ingester(
            [
                "sqlite",
                file_word(run.given),
                "-o",
                str(output),
                "--formats",
                formats_name,
                "--plan",
                plan_name,
                *options,
            ],
            observer,
            files=[listed, formats, plan],
        )


@dataclass(frozen=True)
class Converted:
    """What was written, and what is to be known of it."""

    output: Path
    events_count: int
    converted_count: int
    damaged: bool
    warnings: tuple[Notice, ...]


def convert(
    sources: Sequence[str],
    output: Path,
    *,
    events: Sequence[str] = (),
    span: Span = WHOLE,
    compat: bool = False,
    force: bool = False,
    unpack_limit: bool = True,
    observer: Observer | None = None,
) -> Converted:
    """Write every event of the traces, the first of the host, the others of its guests.

    unpack_limit: refuse a trace of which far more comes out than is in it.

    Raises: WbscopeError.
    """
    for glob in events:
        check_glob(glob)
    named = [find_source(source) for source in sources]
    for run in named:
        _check_kind(run)
    inputs = [path for run in named for path in (run.path, run.trace)]
    check_output(output, force, inputs, "run.pftrace")
    options = ["--compat"] if compat else []
    if not unpack_limit:
        options.append("--no-unpack-limit")
    for glob in events:
        options += ["--events", glob]
    if span:
        options += ["--time-range", span.machine()]
    with ExitStack() as stack:
        private = stack.enter_context(private_output(output, force=force))
        stack.enter_context(saying(span))
        runs = [stack.enter_context(run.at_hand(limited=unpack_limit)) for run in named]
        for run in runs:
            _check_kind(run)
        done, warnings = run_ingester(
            ["convert", *(file_word(run.given) for run in runs), "-o", str(private), *options],
            observer,
        )
        for run in runs:
            warnings = run.shown(warnings)
        if events and not done["loaded_count"]:
            told = f": of these there is no record among {done['events_count']}"
            warnings.append(Notice("no-such-event", Phrase(Argument("events", list(events)), told)))
    return Converted(
        output=output,
        events_count=done["events_count"],
        converted_count=done["loaded_count"],
        damaged=bool(done["damaged"]),
        warnings=tuple(warnings),
    )


def _check_kind(run: Source) -> None:
    shown = shlex.quote(str(run.path))
    if run.kind is Kind.PERFETTO:
        raise InputError(
            "already-perfetto",
            str(run.path),
            "is a Perfetto trace already, wanted a trace.dat",
            fix=f"{report_of(run.path)}    # or open it in the Perfetto UI as it is",
        )
    if run.kind is Kind.DATABASE:
        check_database(run.trace, str(run.path))
        raise InputError(
            "not-a-trace",
            str(run.path),
            "is a run database, wanted the trace.dat that it was made from",
            fix=f"wbscope timeline {shown} -o run.pftrace    # what the run shows",
        )
