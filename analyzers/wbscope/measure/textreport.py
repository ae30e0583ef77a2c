# SPDX-License-Identifier: Apache-2.0
"""Results of time and perf stat in any text: a log, a mail, what a script printed.

3.0:                              a heading, or a setting as sysctl prints it, names
 Performance counter stats ...    the part; counters of /proc/vmstat go with it
nr_vmscan_write 667839

vm.dirty_write_behind = 0
COPY                              a word of capitals names the step, where a part
real 0m3.629s                     has several
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wbscope.measure.bad import bad, decimal
from wbscope.measure.filerun import FileRuns, repetitions
from wbscope.measure.known_metrics import known, metric, names_of
from wbscope.measure.metric import Scalars
from wbscope.measure.perfstat import perf_block, perf_header
from wbscope.measure.shelltime import TimeResult, has_shell_time, time_results

__all__ = ["is_text_report", "parse_text_report", "unquoted"]

_FIX = "save what belongs to one test in a file of its own, and give that"
_QUOTE = re.compile(r"(?:>\s?)+")
_HEADING = re.compile(r"(?P<name>\S[^:]{0,59}):")
_MOST_WORDS = 4
_SETTING = re.compile(r"(?P<name>[a-z][\w./-]{1,80}) = (?P<value>\S.{0,60})")
_STEP = re.compile(r"[A-Z][A-Z0-9_.-]{1,30}")
_COUNTER = re.compile(r"([a-z][a-z0-9_]{3,60})[ \t]+([0-9]{1,20})")
# "run 3:", "#2:", "iteration 4 of 5:" tell repetitions, not parts.
_REPEAT = re.compile(
    r"(?:=+ *|-+ *)?(?:run|iteration|iter|pass|test|trial|rep|repeat)?"
    r" *#?[0-9]+(?: *(?:/|of) *[0-9]+)?",
    re.IGNORECASE,
)
# Every /proc/vmstat has it: a text with it has all counters, which are no gains.
_OF_A_DUMP = "nr_free_pages"
_START = "(before the first heading)"


@dataclass
class _Place:
    """Where in the text we are."""

    heading: str = ""
    settings: list[str] = field(default_factory=list)
    is_used: bool = False  # a result was found since the last setting
    step: str = ""

    @property
    def part(self) -> str:
        return ", ".join(filter(None, [self.heading, *self.settings]))

    def read(self, line: str) -> None:
        """Take in a line that is no result."""
        if match := _SETTING.fullmatch(line):
            if self.is_used:
                self.settings = []
            self.is_used = False
            self.settings.append(f"{match['name']} = {match['value']}")
        elif (match := _HEADING.fullmatch(line)) and len(line.split()) <= _MOST_WORDS:
            if not _REPEAT.fullmatch(match["name"]):
                self.heading, self.settings = match["name"], []
        elif _STEP.fullmatch(line):
            self.step = line


@dataclass(frozen=True)
class _Result:
    line: int
    part: str
    step: str
    time: TimeResult | None
    scalars: Scalars


def unquoted(text: str) -> list[str]:
    """The lines, without the > of a mail; all in one line again in lines of their own."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if line.count(" > ") > 4 and len(line) > 500:
            lines += re.split(r"\s(?:>\s)+", line)
        else:
            lines.append(_QUOTE.sub("", line, count=1) if line.startswith(">") else line)
    return lines


def is_text_report(lines: Sequence[str]) -> bool:
    """True when a result of perf stat or of time is in it."""
    return any(map(perf_header, lines)) or has_shell_time(lines)


def parse_text_report(text: str, subject: str) -> FileRuns:
    """Each part of the text with its runs.

    Raises: InputError, also when results of a part are not of one thing.
    """
    lines = unquoted(text)
    results = list(_results(lines, subject))
    if not results:
        raise bad(subject, "has no result of time or perf stat", _FIX)
    parts = {}
    names = list(dict.fromkeys(result.part for result in results))
    for part in names:
        mine = [result for result in results if result.part == part]
        steps = {result.step for result in mine if result.time is not None}
        named = len(steps) > 1 and "" not in steps
        told = [
            (
                result.line,
                result.scalars
                if result.time is None
                else result.time.scalars(subject, result.step if named else ""),
            )
            for result in mine
        ]
        parts[part or (_START if len(names) > 1 else "")] = repetitions(told, subject, _FIX)
    whole = next(iter(parts.values())) if len(parts) == 1 else None
    return FileRuns(parts, whole)


def _results(lines: Sequence[str], subject: str) -> Iterator[_Result]:
    place = _Place()
    times = {result.first: result for result in time_results(lines, subject)}
    has_dump = any(line.startswith(f"{_OF_A_DUMP} ") for line in lines)
    counted = set(names_of("vmstat"))
    index = 0
    while index < len(lines):
        line = lines[index].strip()
        counter = None if has_dump else _COUNTER.fullmatch(line)
        if perf_header(lines[index]):
            scalars, end = perf_block(lines, index, subject)
            yield _Result(index + 1, place.part, "", None, scalars)
            index, place.is_used = end, True
            continue
        if index in times:
            found = times[index]
            yield _Result(index + 1, place.part, found.step or place.step, found, Scalars())
            index, place.is_used = found.last, True
        elif counter is not None and counter[1] in counted:
            scalars = Scalars()
            made = metric("vmstat", counter[1], known("vmstat", counter[1]), subject)
            scalars.add(made, decimal(counter[2]))
            yield _Result(index + 1, place.part, "", None, scalars)
            place.is_used = True
        else:
            place.read(line)
        index += 1
