# SPDX-License-Identifier: Apache-2.0
"""What of a trace is loaded, and whether what the user chose is in it."""

from __future__ import annotations

import re
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.children import file_word
from wbscope.base.current import absolute
from wbscope.base.errors import UsageError
from wbscope.base.result import Notice
from wbscope.base.span import WHOLE, Moment, Span
from wbscope.ingest.program import run_ingester
from wbscope.run.source import Source

__all__ = ["Choice", "check_glob", "check_selection", "matches", "no_such_event", "saying"]

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
