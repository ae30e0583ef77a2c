# SPDX-License-Identifier: Apache-2.0
"""The lines of perf stat -x SEP: value, unit, event, [variance], run time, share of time, ..."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wbscope.measure.bad import bad, decimal, shown

__all__ = ["csv_counts", "is_perf_csv"]

_FIX = "record it with: perf stat -x';' -o perf-stat.txt COMMAND"
_VALUE = r"(?:<not counted>|<not supported>|[0-9]+(?:[.,][0-9]+)?)"
_START = re.compile(
    rf"(?:(?P<before>\s*[0-9]+[.,][0-9]+|(?:CPU|S|N|D|C)[0-9]\S*?|[^,;|\t]+-[0-9]+)"
    rf"(?P<first>[,;|\t])(?:[0-9]+(?P=first))?)??"
    rf"(?P<value>{_VALUE})(?P<sep>[,;|\t])(?P<unit>[A-Za-z%]*)(?P=sep)(?P<event>[A-Za-z][^;|\t]*?)"
    rf"(?P=sep)(?P<rest>[0-9].*)"
)
_NOT_COUNTED = ("<not supported>", "<not counted>")


def is_perf_csv(text: str) -> bool:
    """True when a line is one of perf stat -x."""
    return any(_START.fullmatch(line.rstrip("\r")) for line in text.split("\n"))


def csv_counts(text: str, subject: str) -> Iterator[tuple[str, str, str, float | None]]:
    """(place, event, unit, value); the value of an event that could not be counted is None.

    What the command printed itself goes before.  The variance of -r has no use, as
    nothing tells how many runs it is of.

    Raises: InputError.
    """
    separator = ""
    for number, line in enumerate(text.split("\n"), 1):
        at = f"line {number}"
        told = line.rstrip("\r")
        match = _START.fullmatch(told)
        if match is None:
            # Behind the fields of its event, perf prints more metrics of it.
            is_more = separator and re.match(rf"{re.escape(separator)}{{3,}}[0-9.,]*", told)
            if separator and told.strip() and not told.startswith("#") and not is_more:
                wanted = f"wanted VALUE{separator}UNIT{separator}EVENT{separator}..."
                raise bad(subject, f"found {shown(told)}, {wanted}", _FIX, at=at)
            continue
        if match["before"] is not None:
            what = "prints each interval (-I)" if "." in match["before"] else "counts by parts"
            fix = f"{_FIX}, without -I, -A, --per-socket, --per-thread and the like"
            problem = f"{what}: begins with {shown(match['before'])}, wanted sums of the whole run"
            raise bad(subject, problem, fix, at=at)
        separator = match["sep"]
        _check_rest(match["rest"].split(separator), subject, at)
        yield at, match["event"], match["unit"], _value(match["value"], subject, at)


def _check_rest(fields: list[str], subject: str, at: str) -> None:
    """[variance%], run time in ns, share of the time that it was counted."""
    times = [field for field in fields[:2] if re.fullmatch(r"[0-9]+", field)]
    if len(fields) < 2 or not times:
        found = shown(",".join(fields))
        wanted = "wanted the run time in ns and the share of time behind the event"
        raise bad(subject, f"found {found}, {wanted}", _FIX, at=at)


def _value(text: str, subject: str, at: str) -> float | None:
    if text in _NOT_COUNTED:
        return None
    value = decimal(text.replace(",", "."))
    if value is None:
        raise bad(subject, f"found {shown(text)}, wanted a decimal number", _FIX, at=at)
    return value
