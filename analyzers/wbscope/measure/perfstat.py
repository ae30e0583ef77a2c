# SPDX-License-Identifier: Apache-2.0
"""perf-stat.txt: what perf stat -o wrote, as text or as JSON (-j), of one or -r repeated runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from wbscope.measure.bad import bad, decimal, scaled, shown
from wbscope.measure.known_metrics import Told, known, metric, told
from wbscope.measure.metric import Scalars
from wbscope.measure.perfjson import json_counts
from wbscope.measure.tool_units import unit_of_text

__all__ = ["parse_perf_stat"]

_FIX = "record it with: LC_ALL=C perf stat -o perf-stat.txt COMMAND"

_HEADER = re.compile(
    r" Performance counter stats for (?P<what>.*?)(?: \((?P<runs>[0-9]{1,9}) runs\))?:"
)
# ( +- 23.22% ) of -r, (49.87%) of an event that shared a counter with others
_SPREAD = r"(?:\s+\(\s*\+-\s*[0-9.]+%\s*\))?(?:\s+\(\s*[0-9.]+%\s*\))?"
_COUNT = re.compile(
    r"\s*(?P<value><not supported>|<not counted>|[0-9][0-9.,']*)\s+"
    rf"(?:(?P<unit>[A-Za-z%]+)\s+)?(?P<event>[^\s(]\S*)(?:\s+#.*|{_SPREAD})\s*"
)
_TIME = re.compile(
    r"\s*(?P<value>[0-9][0-9.,']*)(?:\s+\+-\s+[0-9.]+)?\s+seconds (?P<which>time elapsed|user|sys)"
    rf"{_SPREAD}\s*"
)
# More metrics of the event above, the table of single runs (--table), and hints.
_IGNORED = re.compile(
    r"\s*|\s*#.*|\s+[0-9.]+ \([+-][0-9.]+\).*"
    r"|Some events weren't counted\. Try disabling the NMI watchdog:"
    r"|\techo [01] > .*|\tperf stat .*"
    r"|The events in group usually have to be from the same PMU\..*"
)
_BY_CPU = re.compile(r"(?:CPU[0-9]+|S[0-9]+-?\S*|N[0-9]+)\s+.*|\S+-[0-9]+\s+[0-9<].*")
_TIMES = {"time elapsed": "time_elapsed", "user": "user", "sys": "sys"}


@dataclass(frozen=True)
class _Count:
    """One event; value is None where perf could not count it."""

    event: str
    unit: str
    value: float | None


def parse_perf_stat(text: str, subject: str = "perf-stat.txt") -> Scalars:
    """The metrics perf.*; with -r, each is the mean over perf's own repeats.

    Raises: InputError.
    """
    started = next((line for line in text.split("\n") if line.strip() and line[:1] != "#"), "")
    scalars = Scalars()
    if started.startswith("{"):
        for at, event, unit, value in json_counts(text, subject):
            _add(scalars, _Count(event, unit, value), subject, at)
        return scalars
    lines = text.split("\n")
    header, runs = _find_header(lines, subject)
    if runs is not None:
        scalars.add(metric("perf", "repeats", known("perf", "repeats"), subject), float(runs))
    for number, line in enumerate(lines[header + 1 :], header + 2):
        _add_line(scalars, line, f"line {number}", subject)
    if "perf.time_elapsed_ns" not in scalars:
        raise bad(subject, 'is cut off: has no line "seconds time elapsed"', _FIX)
    return scalars


def _find_header(lines: list[str], subject: str) -> tuple[int, int | None]:
    """Where the counts begin; what the command printed itself goes before."""
    found = [(index, _HEADER.fullmatch(line)) for index, line in enumerate(lines)]
    headers = [(index, match) for index, match in found if match is not None]
    if len(headers) == 1:
        index, match = headers[0]
        return index, None if match["runs"] is None else int(match["runs"])
    if headers:
        raise bad(subject, f"holds {len(headers)} results of perf stat, wanted one", _FIX)
    for number, line in enumerate(lines, 1):
        if re.match(r"#\s+time\s+(?:\S+\s+)?counts unit events", line):
            problem = "is of perf stat -I, wanted the sums of the whole run"
        elif re.match(r"[0-9.<][^,;]*[,;][^,;]*[,;][A-Za-z]", line):
            problem = "is of perf stat -x, wanted plain text or JSON (-j)"
        else:
            continue
        raise bad(subject, problem, _FIX, at=f"line {number}")
    raise bad(subject, 'has no line "Performance counter stats for ..."', _FIX)


def _add_line(scalars: Scalars, line: str, at: str, subject: str) -> None:
    if match := _TIME.fullmatch(line):
        name = _TIMES[match["which"]]
        value = scaled(_number(match["value"], 9, at, subject), unit_of_text("s")[1])
        made = metric("perf", name, known("perf", name), subject)
        if made.name in scalars:
            raise bad(subject, f"says {shown(match['which'])} twice", _FIX, at=at)
        scalars.add(made, value)
    elif _BY_CPU.fullmatch(line.strip()):
        fix = f"{_FIX}, without -A, --per-socket, --per-thread and the like"
        raise bad(subject, "counts each CPU or thread by itself, wanted sums", fix, at=at)
    elif match := _COUNT.fullmatch(line):
        unit = match["unit"] or ""
        value = None
        if not match["value"].startswith("<"):
            value = _number(match["value"], 0 if not unit else 2, at, subject)
        _add(scalars, _Count(match["event"], unit, value), subject, at)
    elif not _IGNORED.fullmatch(line):
        raise bad(subject, f"found {shown(line.strip())}, wanted a count", _FIX, at=at)


def _number(text: str, decimals: int, at: str, subject: str) -> float:
    """perf groups digits as the locale does: commas are taken, where they can be told.

    A count of an event that is scaled has two decimals, others none: 1.234 is
    1234 in another locale.
    """
    plain = text
    if re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?", text):
        plain = text.replace(",", "")
    value = decimal(plain)
    digits = len(plain.partition(".")[2])
    if value is None or (decimals < 9 and digits not in (decimals, 2)):
        raise bad(subject, f"found the number {shown(text)}, wanted one of locale C", _FIX, at=at)
    return value


def _add(scalars: Scalars, count: _Count, subject: str, at: str | None = None) -> None:
    unit, scale = unit_of_text(count.unit)
    base = re.sub(r":[ukhGHIpPSDWeb]+$", "", count.event)
    entry = told("perf", base)
    if entry is None or entry.unit != unit:
        # "The event NAME" may be anything: nobody knows which way is good.
        entry = Told(unit, "neutral", f"What perf counted for the event {base}.")
    made = metric("perf", count.event, entry, subject)
    if made.name in scalars:
        raise bad(subject, f"counts {shown(count.event)} twice", _FIX, at=at)
    scalars.add(made, None if count.value is None else scaled(count.value, scale))
