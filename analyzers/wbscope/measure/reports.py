# SPDX-License-Identifier: Apache-2.0
"""Reports of other tools: texts with tables, mmtests and hyperfine.

3.0:                              a heading, or a setting as sysctl prints it, names
 Performance counter stats ...    the part; counters of /proc/vmstat go with it
nr_vmscan_write 667839

vm.dirty_write_behind = 0
COPY                              a word of capitals names the step, where a part
real 0m3.629s                     has several

    Ops io-duration-715M        12.00 (   0.00%)        7.00 (  41.67%)
    Hmean     1               1234.50 (   0.00%)     1200.25 *  -2.77%*
    Page writes by reclaim    1655843              4009929

The per cent are gains: with the values they tell which way is good.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from wbscope.base.result import Notice
from wbscope.base.units import unit_of_text
from wbscope.measure.document import Node, bad, decimal, failed, load, scaled, shown
from wbscope.measure.metric import (
    Better,
    FileRun,
    FileRuns,
    Metric,
    Scalars,
    Told,
    known,
    metric,
    names_of,
    repetitions,
)
from wbscope.measure.perf import perf_block, perf_header
from wbscope.measure.time import TimeResult, has_shell_time, time_results

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


_MMTESTS_FIX = (
    "save what compare-kernels.sh printed as it is, with the two lines of names above the table"
)
_CELL = re.compile(
    r"(?<=\s)(?P<value>-?[0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
    r"(?: (?P<unit>[A-Za-z][\w/]*|%))?\s*[(*]\s*(?P<gain>-?[0-9.]+%|-?nan%|-?inf%|---)\s*[)*]",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"(?<=\s)-?[0-9]+(?:\.[0-9]+)?%?(?=\s|$)")
# The rows of the table of /proc/vmstat that have a good way, as query mmtests_vmstat has them.
_LOWER = (
    *("Minor Faults", "Major Faults", "Swap Ins", "Swap Outs", "Swap total"),
    *("Allocation stalls", "Direct pages scanned", "Kswapd pages scanned", "Kswapd velocity"),
    *("Direct velocity", "Percentage direct scans", "Page writes by reclaim"),
    *("Page writes file", "Page writes anon", "Page reclaim immediate", "Slabs scanned"),
    *("Direct inode steals", "Kswapd inode steals"),
)
_HIGHER = ("Kswapd efficiency", "Direct efficiency")
_NEUTRAL = (
    *("Page Ins", "Page Outs", "Kswapd pages reclaimed", "Direct pages reclaimed"),
    "Page rescued immediate",
)
_UNITS = {"Faults": "faults", "velocity": "pages/s", "efficiency": "%", "scans": "%"}
_MORE_UNITS = {"Page Ins": "KiB", "Page Outs": "KiB", "Allocation stalls": "calls"}
_MORE_UNITS |= {"Slabs scanned": "objects"}
_DURATIONS = ("User", "System", "Elapsed")


@dataclass(frozen=True)
class _Row:
    """A line of a table: values, one a column; gains where it has per cent."""

    line: int
    label: str
    values: tuple[tuple[float, str], ...]  # with the unit, where one is printed
    gains: tuple[str, ...]


def is_mmtests(lines: Sequence[str]) -> bool:
    """True when a line is a row with per cent, of at least one column that has 0.00%."""
    return any((row := _with_gains(line, 0)) and "0.00%" in row.gains for line in lines)


def parse_mmtests(text: str, subject: str) -> FileRuns:
    """Each kernel is a part with one run: its means.

    Raises: InputError.
    """
    lines = unquoted(text)
    rows: list[_Row] = []
    names: list[str] = []
    for index, line in enumerate(lines):
        row = _with_gains(line, index + 1)
        if row is None and names:
            row = _plain(line, index + 1, len(names))
        if row is None:
            continue
        if not names:
            names = _names(lines, index, len(row.values))
        if len(row.values) != len(names):
            problem = f"{row.label} has {len(row.values)} values, wanted {len(names)}"
            raise bad(subject, problem, _MMTESTS_FIX, at=f"line {index + 1}")
        rows.append(row)
    if not rows:
        raise bad(subject, "has no table of mmtests", _MMTESTS_FIX)
    ways = _ways(rows)
    parts = {}
    for column, name in enumerate(names):
        scalars = Scalars()
        for row in rows:
            made, scale = _metric(row, column, ways, subject)
            if made.name in scalars:
                raise bad(
                    subject, f"has {shown(row.label)} twice", _MMTESTS_FIX, at=f"line {row.line}"
                )
            scalars.add(made, scaled(row.values[column][0], scale))
        parts[name] = (FileRun("means", scalars),)
    whole = next(iter(parts.values())) if len(parts) == 1 else None
    return FileRuns(parts, whole, "kernels")


def _with_gains(line: str, number: int) -> _Row | None:
    cells = list(_CELL.finditer(line))
    if not cells or line[cells[-1].end() :].strip():
        return None
    label = " ".join(line[: cells[0].start()].split())
    between = [line[a.end() : b.start()].strip() for a, b in pairwise(cells)]
    if not label or any(between) or not label[0].isalnum():
        return None
    values = []
    for cell in cells:
        value = decimal(cell["value"].replace(",", "").lstrip("-")) or 0.0
        values.append((-value if cell["value"].startswith("-") else value, cell["unit"] or ""))
    return _Row(number, label, tuple(values), tuple(cell["gain"] for cell in cells))


def _plain(line: str, number: int, count: int) -> _Row | None:
    """A row without per cent; only those that mmtests is known to print so."""
    cells = list(_PLAIN.finditer(line))[-count:]
    if len(cells) != count:
        return None
    label = " ".join(line[: cells[0].start()].split())
    label = label.removeprefix("Ops ").removeprefix("Duration ").removesuffix(" %")
    if label not in (*_DURATIONS, *_LOWER, *_HIGHER, *_NEUTRAL):
        return None
    values = tuple((decimal(cell[0].rstrip("%")) or 0.0, "") for cell in cells)
    return _Row(number, label, values, ())


def _names(lines: Sequence[str], first: int, count: int) -> list[str]:
    """The one or two lines above the table, a word a column; mmtests cuts names at a -."""
    above: list[list[str]] = []
    for line in reversed(lines[max(0, first - 4) : first]):
        words = line.split()
        if not words and not above:
            continue
        if len(words) == 2 * count and all(words[i] == words[i + 1] for i in range(0, 2, 2)):
            words = words[::2]
        if len(words) != count or len(above) == 2:
            break
        above.insert(0, words)
    joined = ["-".join(words) for words in zip(*above, strict=True)]
    if len(set(joined)) == count:
        return joined
    return [str(number) for number in range(1, count + 1)]


def _family(label: str) -> str:
    """memcachetest of memcachetest-715M: a benchmark with more or less load."""
    return label.rpartition("-")[0] or label


def _ways(rows: Sequence[_Row]) -> dict[str, Better]:
    """Which way is good, by label: a gain of what grew says higher."""
    told: dict[str, set[Better]] = {}
    for row in rows:
        base = row.values[0][0]
        for (value, _), gain in zip(row.values[1:], row.gains[1:], strict=False):
            percent = decimal(gain.strip("-%"))
            if percent and value != base:
                is_gain = not gain.startswith("-")
                way: Better = "higher" if is_gain == (value > base) else "lower"
                told.setdefault(row.label, set()).add(way)
                told.setdefault(_family(row.label), set()).add(way)
    ways: dict[str, Better] = {}
    for row in rows:
        found = told.get(row.label) or told.get(_family(row.label)) or set()
        ways[row.label] = next(iter(found)) if len(found) == 1 else "neutral"
    return ways


def _metric(
    row: _Row, column: int, ways: Mapping[str, Better], subject: str
) -> tuple[Metric, float]:
    label = row.label.removeprefix("Ops ")
    if row.label in _DURATIONS and row.label in names_of("mmtests"):
        entry = known("mmtests", row.label)
        return metric("mmtests", row.label, entry, subject), unit_of_text("s")[1]
    if not row.gains or label in (*_LOWER, *_HIGHER, *_NEUTRAL):
        way: Better = "lower" if label in _LOWER else "higher" if label in _HIGHER else "neutral"
        unit = _MORE_UNITS.get(label) or _UNITS.get(label.rpartition(" ")[2], "pages")
        name = f"mmtests_vmstat.value[name={label.replace(' ', '_')}]"
        return Metric(name, unit, way, f"{label} as mmtests printed it", subject), 1.0
    unit, scale = unit_of_text(row.values[column][1])
    unit = unit if row.values[column][1] else ""
    entry = Told(unit, ways[row.label], f"{row.label} as mmtests printed it.")
    if label != row.label:
        return metric("ops", label, entry, subject), scale
    statistic, _, operation = label.partition(" ")
    if re.fullmatch(r"\S+\[\S+\]", label) or not operation:
        return metric("mmtests", label, entry, subject), scale
    return metric("mmtests", statistic, entry, subject, {"operation": operation}), scale


_HYPERFINE_FIX = "record it with: hyperfine --export-json FILE.json COMMAND"
_SECONDS = unit_of_text("s")[1]
# One number a run: the list of the document, and the unit of the list in the metric's.
_LISTS = {"times": ("time", _SECONDS), "memory_usage_byte": ("max_rss", 1.0)}


def parse_hyperfine(text: str, subject: str) -> FileRuns:
    """Each command is a part; all of them together have the command in the metric's name.

    Raises: InputError, also when a run ended with a status.
    """
    document, _ = load(text.strip(), subject, _HYPERFINE_FIX)
    root = Node(document, "$", subject, _HYPERFINE_FIX)
    results = list(root["results"])
    if not results:
        raise bad(subject, "has no results", _HYPERFINE_FIX, at="$.results")
    commands = [_named(result) for result in results]
    for index, name in enumerate(commands):
        if name in commands[:index]:
            raise bad(
                subject, f"has the command {shown(name)} twice", _HYPERFINE_FIX, at=f"$[{index}]"
            )
    parts: dict[str, tuple[FileRun, ...]] = {}
    whole: list[FileRun] = []
    several = len(results) > 1
    for number, (name, result) in enumerate(zip(commands, results, strict=True), 1):
        parts[name] = _runs(result, subject, {}, "")
        keys = {"command": name} if several else {}
        whole += _runs(result, subject, keys, f"{number}/" if several else "")
    notices = []
    if several:
        told = f"holds {len(results)} commands, which are metrics of their own; one alone is"
        notices.append(Notice("several-commands", f"{told} named behind #: {shown(commands[0])}"))
    return FileRuns(parts, tuple(whole), "commands", tuple(notices))


def _named(result: Node) -> str:
    """The command; with its parameters where these are not all in it."""
    name = result["command"].text()
    if not result.has("parameters"):
        return name
    told = result["parameters"]
    lacking = [f"{key}={told[key].text()}" for key in told.names() if told[key].text() not in name]
    return " ".join([name, *lacking])


def _runs(result: Node, subject: str, keys: Mapping[str, str], before: str) -> tuple[FileRun, ...]:
    if not result.has("times"):
        raise bad(subject, 'has no "times" of single runs', _HYPERFINE_FIX, at=result.path)
    lists = {name: _numbers(result[name]) for name in _LISTS if result.has(name)}
    count = len(lists["times"])
    if not count:
        raise bad(subject, 'has no times in "times"', _HYPERFINE_FIX, at=result.path)
    if result.has("exit_codes"):
        for number, code in enumerate(result["exit_codes"], 1):
            if code.is_null() or code.number():
                raise failed(subject, f"run {number} of {shown(_named(result))} did not end well")
    runs = []
    for index in range(count):
        scalars = Scalars()
        for key, values in lists.items():
            if len(values) != count:
                continue  # as of versions that measured memory once
            name, scale = _LISTS[key]
            made = metric("hyperfine", name, known("hyperfine", name), subject, keys)
            scalars.add(made, scaled(values[index], scale))
        runs.append(FileRun(f"{before}{index + 1}", scalars, is_sample=bool(keys)))
    return tuple(runs)


def _numbers(node: Node) -> Sequence[float]:
    return [one.number() for one in node]
