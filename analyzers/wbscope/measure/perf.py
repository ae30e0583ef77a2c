# SPDX-License-Identifier: Apache-2.0
"""What perf stat writes: text, CSV and JSON.

With -r each value is a mean, and perf prints its standard error as a share of it:
stddev_stats() in tools/perf/util/stat.c divides the s.d. by the root of n.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wbscope.base.units import unit_of_text
from wbscope.measure.document import Node, bad, decimal, load, scaled, shown
from wbscope.measure.metric import Scalars, Spread, Told, known, metric, told

_CSV_FIX = "record it with: perf stat -x';' -o perf-stat.txt COMMAND"
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
                raise bad(subject, f"found {shown(told)}, {wanted}", _CSV_FIX, at=at)
            continue
        if match["before"] is not None:
            what = "prints each interval (-I)" if "." in match["before"] else "counts by parts"
            fix = f"{_CSV_FIX}, without -I, -A, --per-socket, --per-thread and the like"
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
        raise bad(subject, f"found {found}, {wanted}", _CSV_FIX, at=at)


def _value(text: str, subject: str, at: str) -> float | None:
    if text in _NOT_COUNTED:
        return None
    value = decimal(text.replace(",", "."))
    if value is None:
        raise bad(subject, f"found {shown(text)}, wanted a decimal number", _CSV_FIX, at=at)
    return value


_JSON_FIX = "record it with: perf stat -j -o perf-stat.txt COMMAND"
_PARTS = ("interval", "cpu", "core", "die", "socket", "node", "thread", "cgroup", "cluster")


def json_counts(text: str, subject: str) -> Iterator[tuple[str, str, str, float | None]]:
    """(place, event, unit, value); the value of an event that could not be counted is None.

    Raises: InputError.
    """
    found = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        at = f"line {number}"
        value, end = load(line.strip(), subject, _JSON_FIX, at)
        if line.strip()[end:]:
            raise bad(
                subject, f"found {shown(line.strip()[end:])} after an object", _JSON_FIX, at=at
            )
        event = Node(value, at, subject, _JSON_FIX)
        for part in _PARTS:
            if event.has(part):
                fix = f"{_JSON_FIX}, without -I, -A, --per-socket, --per-thread and the like"
                raise bad(subject, f"counts by {part}, wanted sums of the whole run", fix, at=at)
        if not event.has("counter-value"):  # more metrics of the event before
            event["metric-value"]
            continue
        yield at, event["event"].text(), event["unit"].text(), _json_value(event["counter-value"])
        found = True
    if not found:
        raise bad(subject, "has no event", _JSON_FIX)


def _json_value(node: Node) -> float | None:
    text = node.text()
    if text in _NOT_COUNTED:
        return None
    value = decimal(text)
    if value is None:
        raise node.wrong("a decimal number")
    return value


_FIX = "record it with: LC_ALL=C perf stat -o perf-stat.txt COMMAND"

_HEADER = re.compile(
    r" *Performance counter stats for (?P<what>.*?)(?: \((?P<runs>[0-9]{1,9}) runs\))?:\s*"
)
# ( +- 23.22% ) of -r, (49.87%) of an event that shared a counter with others; up to
# Linux 4.0 that was [49.87%], before 2.6.39 (scaled from 49.87%)
_SPREAD = (
    r"(?:\s+\(\s*\+-\s*(?P<sem>[0-9.]+)%\s*\))?"
    r"(?:\s+[(\[]\s*(?:scaled from )?[0-9.]+%\s*[)\]])?"
)
_COUNT = re.compile(
    r"\s*(?P<value><not supported>|<not counted>|[0-9][0-9.,']*)\s+"
    r"(?:(?P<unit>[A-Za-z%]+)\s+)?(?P<event>[^\s(]\S*)(?P<msec> \(msec\))?"
    rf"(?:\s+#(?P<more>.*)|{_SPREAD})\s*"
)
_SEM_AFTER = re.compile(r"\(\s*\+-\s*([0-9.]+)%\s*\)")
_TIME = re.compile(
    r"\s*(?P<value>[0-9][0-9.,']*)(?:\s+\+-\s+(?P<error>[0-9.]+))?\s+seconds"
    rf" (?P<which>time elapsed|user|sys){_SPREAD}\s*"
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
# Names of before 2.6.39; clocks were in msec without saying so up to 3.16.
_OLD_NAMES = {
    "CPU-migrations": "cpu-migrations",
    "task-clock-msecs": "task-clock",
    "cpu-clock-msecs": "cpu-clock",
}
_CLOCKS = ("task-clock", "cpu-clock")
_OLD_DECIMALS = 6


@dataclass(frozen=True)
class _Count:
    """One event; value is None where perf could not count it.

    sem  standard error as a share of the value, of -r
    """

    event: str
    unit: str
    value: float | None
    sem: float | None = None


def parse_perf_stat(text: str, subject: str = "perf-stat.txt") -> Scalars:
    """The metrics perf.* of a file with one result; with -r means with their spread.

    Raises: InputError.
    """
    results = perf_results(text, subject)
    if len(results) > 1:
        at = f"line {results[1][0]}"
        raise bad(subject, f"holds {len(results)} results of perf stat, wanted one", _FIX, at=at)
    return results[0][1]


def perf_results(text: str, subject: str) -> list[tuple[int, Scalars]]:
    """(line, metrics) of each result, of files that were appended to; one or more.

    Raises: InputError.
    """
    lines = text.split("\n")
    started = next((line for line in lines if line.strip() and line[:1] != "#"), "")
    if started.startswith("{"):
        return _of_fields(json_counts(text, subject), subject)
    if is_perf_csv(text):
        return _of_fields(csv_counts(text, subject), subject)
    headers = [index for index, line in enumerate(lines) if _HEADER.fullmatch(line)]
    if not headers:
        for number, line in enumerate(lines, 1):
            if re.match(r"#\s+time\s+(?:\S+\s+)?counts unit events", line):
                problem = "is of perf stat -I, wanted the sums of the whole run"
                raise bad(subject, problem, _FIX, at=f"line {number}")
        raise bad(subject, 'has no line "Performance counter stats for ..."', _FIX)
    borders = [*headers[1:], len(lines)]
    found = []
    for header, border in zip(headers, borders, strict=True):
        scalars, end = perf_block(lines[:border], header, subject)
        # What another result's command printed itself is before that one.
        for number, line in enumerate(lines[end:border], end + 1):
            if border == len(lines) and not _IGNORED.fullmatch(line):
                found_text = f"found {shown(line.strip())}, wanted a count"
                raise bad(subject, found_text, _FIX, at=f"line {number}")
        found.append((header + 1, scalars))
    return found


def perf_header(line: str) -> bool:
    """True for the line above the counts."""
    return _HEADER.fullmatch(line) is not None


def perf_block(lines: Sequence[str], header: int, subject: str) -> tuple[Scalars, int]:
    """The metrics below the header at this index, and the index where they end.

    Raises: InputError.
    """
    match = _HEADER.fullmatch(lines[header])
    runs = int(match["runs"]) if match is not None and match["runs"] else None
    scalars = Scalars()
    if runs is not None:
        scalars.add(metric("perf", "repeats", known("perf", "repeats"), subject), float(runs))
    ended = False
    end = len(lines)
    for index in range(header + 1, len(lines)):
        line = lines[index]
        if ended and not _TIME.fullmatch(line) and not _IGNORED.fullmatch(line):
            end = index
            break
        _add_line(scalars, line, f"line {index + 1}", runs, subject)
        ended = ended or "perf.time_elapsed_ns" in scalars
    if not ended:
        raise bad(subject, 'is cut off: has no line "seconds time elapsed"', _FIX)
    return scalars, end


def _of_fields(
    counts: Iterator[tuple[str, str, str, float | None]], subject: str
) -> list[tuple[int, Scalars]]:
    """A new result begins where the first event comes again."""
    results: list[tuple[int, Scalars]] = []
    first = ""
    for at, event, unit, value in counts:
        if not results or event == first:
            first = event
            results.append((int(at.rpartition(" ")[2]), Scalars()))
        _add(results[-1][1], _Count(event, unit, value), None, subject, at)
    sizes = [len(scalars) for _, scalars in results]
    if len(set(sizes)) > 1:
        line = results[1][0]
        raise bad(subject, f"counts {shown(first)} twice", _FIX, at=f"line {line}")
    return results


def _add_line(scalars: Scalars, line: str, at: str, runs: int | None, subject: str) -> None:
    if match := _TIME.fullmatch(line):
        name = _TIMES[match["which"]]
        value = scaled(_number(match["value"], 9, at, subject), unit_of_text("s")[1])
        made = metric("perf", name, known("perf", name), subject)
        if made.name in scalars:
            raise bad(subject, f"says {shown(match['which'])} twice", _FIX, at=at)
        sem = None if match["sem"] is None else _share(match["sem"])
        if match["error"] is not None and value:  # has more digits
            sem = (decimal(match["error"]) or 0.0) * unit_of_text("s")[1] / value
        scalars.add(made, value, _spread(value, sem, runs))
    elif _BY_CPU.fullmatch(line.strip()):
        fix = f"{_FIX}, without -A, --per-socket, --per-thread and the like"
        raise bad(subject, "counts each CPU or thread by itself, wanted sums", fix, at=at)
    elif match := _COUNT.fullmatch(line):
        _add(scalars, _count(match, at, subject), runs, subject, at)
    elif not _IGNORED.fullmatch(line):
        raise bad(subject, f"found {shown(line.strip())}, wanted a count", _FIX, at=at)


def _count(match: re.Match[str], at: str, subject: str) -> _Count:
    event, unit = match["event"], match["unit"] or ""
    decimals = 2 if unit else 0
    base = event.partition(":")[0]
    text = match["value"]
    fraction = len(text.partition(".")[2])
    is_old_clock = not unit and base in _CLOCKS and fraction == _OLD_DECIMALS
    if match["msec"] or is_old_clock or base.endswith("-clock-msecs"):
        unit, decimals = "msec", _OLD_DECIMALS
    event = _OLD_NAMES.get(base, base) + event[len(base) :]
    sem = match["sem"]
    if match["more"] is not None and (after := _SEM_AFTER.search(match["more"])):
        sem = after[1]
    value = None if text.startswith("<") else _number(text, decimals, at, subject)
    return _Count(event, unit, value, None if sem is None else _share(sem))


def _share(text: str) -> float:
    return (decimal(text) or 0.0) * unit_of_text("%")[1]


def _spread(value: float | None, sem: float | None, runs: int | None) -> Spread | None:
    if value is None or sem is None or runs is None or runs < 2:
        return None
    return Spread(abs(value) * sem * math.sqrt(runs), runs)


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


def _add(
    scalars: Scalars, count: _Count, runs: int | None, subject: str, at: str | None = None
) -> None:
    unit, scale = unit_of_text(count.unit)
    base = re.sub(r":[ukhGHIpPSDWeb]+$", "", count.event)
    entry = told("perf", base)
    if entry is None or entry.unit != unit:
        # "The event NAME" may be anything: nobody knows which way is good.
        entry = Told(unit, "neutral", f"What perf counted for the event {base}.")
    made = metric("perf", count.event, entry, subject)
    if made.name in scalars:
        raise bad(subject, f"counts {shown(count.event)} twice", _FIX, at=at)
    value = None if count.value is None else scaled(count.value, scale)
    scalars.add(made, value, _spread(value, count.sem, runs))
