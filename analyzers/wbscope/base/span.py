# SPDX-License-Identifier: Apache-2.0
"""A part of the time of a run, in the words of every command that takes one.

`2s` counts from the run's first event; `@12.5s` is a time of the trace clock. Without a unit,
`@5712345678901` is in ns, as JSON and CSV have it, and `@5712.345678` in s, as trace-cmd prints it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from wbscope.base.errors import Argument, Phrase, UsageError
from wbscope.base.units import format_value, parse_duration

_MOST_NS = 2**63 - 1


@dataclass(frozen=True)
class Moment:
    """ns from the first event of a run, or on the trace clock; `text` is how it was written."""

    ns: int
    on_clock: bool
    text: str

    def place(self, first_ns: int) -> int:
        """On the trace clock."""
        return min(self.ns + (0 if self.on_clock else first_ns), _MOST_NS)

    def machine(self) -> str:
        """As wbscope-ingest takes it."""
        return f"{'' if self.on_clock else '+'}{self.ns}"


@dataclass(frozen=True)
class Span:
    """`start` is in it, `end` is not; None is the first event, or the time after the last.

    `as_one` when it was written as one argument, time_range.
    """

    start: Moment | None = None
    end: Moment | None = None
    as_one: bool = False

    def __bool__(self) -> bool:
        return self.start is not None or self.end is not None

    def said(self, start: Moment | None, end: Moment | None) -> Phrase:
        """A span in the words in which this one was written."""
        texts = ["" if moment is None else moment.text for moment in (start, end)]
        if self.as_one:
            return Phrase(Argument("time_range", "..".join(texts)))
        return _listed([Argument(n, t) for n, t in zip(("start", "end"), texts, strict=True) if t])

    def words(self) -> Phrase:
        """Itself, as it was written."""
        return self.said(self.start, self.end)

    def options(self) -> tuple[tuple[str, str], ...]:
        """As a command takes it: --from and --to, as far as they are there."""
        ends = (("--from", self.start), ("--to", self.end))
        return tuple((option, moment.text) for option, moment in ends if moment is not None)

    def machine(self) -> str:
        """As wbscope-ingest takes it: `+2000000000..+4000000000`, `123456000000..`."""
        ends = ("" if moment is None else moment.machine() for moment in (self.start, self.end))
        return "..".join(ends)

    def on_clock(self, first_ns: int, last_ns: int) -> tuple[int | None, int | None]:
        """First time and end on the trace clock of a run with these first and last events.

        Raises: UsageError when no event can be in it.
        """
        t0 = None if self.start is None else self.start.place(first_ns)
        t1 = None if self.end is None else self.end.place(first_ns)
        if self.start is not None and t0 is not None and t0 > last_ns:
            raise self._after_the_last(self.start, first_ns, last_ns)
        if self.end is not None and self.end.on_clock and self.end.ns <= first_ns:
            raise self._before_the_first(self.end, first_ns)
        if (first_ns if t0 is None else t0) >= (last_ns + 1 if t1 is None else t1):
            raise self._empty(swap=t0 != t1)
        return t0, t1

    def outside(self, first_ns: int, last_ns: int) -> tuple[Phrase, ...]:
        """What of it lies outside of a run with these first and last events, in words."""
        start, end = self.start, self.end
        told = []
        if start is not None and start.place(first_ns) < first_ns:
            given = self.said(start, None).parts
            where = f"which is at @{first_ns}: the part begins with it"
            told.append(Phrase(*given, f" is before the first event, {where}"))
        if end is not None and end.place(first_ns) > last_ns + 1:
            given = self.said(None, end).parts
            where = f"which is {_last(end, first_ns, last_ns)}: the part ends with it"
            told.append(Phrase(*given, f" is after the last event, {where}"))
        return tuple(told)

    def _after_the_last(self, start: Moment, first_ns: int, last_ns: int) -> UsageError:
        return UsageError(
            "empty-range",
            self.words() if self.as_one else self.said(start, None),
            f"is after the last event, which is {_last(start, first_ns, last_ns)}",
            fix=self.said(Moment(0, False, "0s"), None),
        )

    def _before_the_first(self, end: Moment, first_ns: int) -> UsageError:
        return UsageError(
            "empty-range",
            self.words() if self.as_one else self.said(None, end),
            f"ends before the first event, which is at @{first_ns}",
            fix=self.said(None, Moment(0, False, "1s")),
        )

    def _empty(self, *, swap: bool) -> UsageError:
        """Its end is not after its start."""
        if self.as_one:
            subject = self.words()
            message: str = "holds nothing, wanted its end after its start"
        else:
            subject = self.said(None, self.end)
            start = self.start or Moment(0, False, "0s")
            message = Phrase("leaves nothing: wanted a time after ", Argument("start", start.text))
        if self.start is None:
            fix = self.said(None, Moment(0, False, "1s"))
        elif swap:
            fix = self.said(self.end, self.start)
        else:
            fix = self.said(self.start, None)
        return UsageError("empty-range", subject, message, fix=fix)


WHOLE = Span()


def parse_span(
    start: str | None = None, end: str | None = None, time_range: str | None = None
) -> Span:
    """A span from `start` and `end`, or from `time_range`, which is 'FROM..TO'.

    Raises: UsageError for what is no time, an end that is not after its start, and both forms.
    """
    if time_range is None:
        return _checked(
            Span(
                None if start is None else parse_moment("start", start),
                None if end is None else parse_moment("end", end),
            )
        )
    if start is not None or end is not None:
        given = [Argument("start", start)] if start is not None else []
        given += [Argument("end", end)] if end is not None else []
        given.append(Argument("time_range", time_range))
        raise UsageError(
            "two-choices",
            _listed(given),
            "say the same in two ways, wanted one",
            fix=Phrase(given[-1]),
        )
    if not isinstance(time_range, str):
        parse_moment("time_range", time_range)
    first, dots, last = time_range.partition("..")
    if not dots or not (first or last):
        raise UsageError(
            "bad-range",
            Phrase(Argument("time_range", time_range)),
            "is not a range, wanted FROM..TO; one of them may be left out",
            fix=Phrase(Argument("time_range", "2s..4s")),
        )
    fix = Phrase(Argument("time_range", "2s..4s"))
    return _checked(
        Span(
            parse_moment("time_range", first, fix) if first else None,
            parse_moment("time_range", last, fix) if last else None,
            as_one=True,
        )
    )


def parse_moment(argument: str, text: str, fix: Phrase | None = None) -> Moment:
    """'2s' or '@12.5s', '@5712345678901' (ns), '@5712.345678' (s).

    Raises: UsageError.
    """
    on_clock = isinstance(text, str) and text.startswith("@")
    length = text[1:] if on_clock else text
    if on_clock and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", length):
        length += "s" if "." in length else "ns"
    try:
        return Moment(parse_duration(argument, length), on_clock, text)
    except UsageError as error:
        error.subject = Phrase(Argument(argument, text))
        if fix is not None:
            error.fix = fix
        elif on_clock:
            error.fix = Phrase(Argument(argument, "@12.5s"))
        raise


def _last(asked: Moment, first_ns: int, last_ns: int) -> str:
    """When the last event was, on the clock that somebody asked with, too."""
    # As tables show times: from the first event, with the digits that tell them apart.
    where = f"{format_value('ts', 'ns', last_ns - first_ns)} after the first"
    return f"at @{last_ns}, {where}" if asked.on_clock else where


def _listed(given: list[Argument]) -> Phrase:
    return Phrase(*[part for one in given for part in (" ", one)][1:])


def _checked(span: Span) -> Span:
    """Of two kinds of time, only the trace tells which is first."""
    start, end = span.start, span.end
    if start and end and start.on_clock == end.on_clock and start.ns >= end.ns:
        raise span._empty(swap=start.ns != end.ns)
    return span
