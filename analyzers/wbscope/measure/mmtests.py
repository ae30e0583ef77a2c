# SPDX-License-Identifier: Apache-2.0
"""Tables that mmtests prints, a column a kernel, and those of compare --style mmtests.

    Ops io-duration-715M        12.00 (   0.00%)        7.00 (  41.67%)
    Hmean     1               1234.50 (   0.00%)     1200.25 *  -2.77%*
    Page writes by reclaim    1655843              4009929

The per cent are gains: with the values they tell which way is good.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from wbscope.measure.bad import bad, decimal, scaled, shown
from wbscope.measure.filerun import FileRun, FileRuns
from wbscope.measure.known_metrics import Told, known, metric, names_of
from wbscope.measure.metric import Better, Metric, Scalars
from wbscope.measure.textreport import unquoted
from wbscope.measure.tool_units import unit_of_text

__all__ = ["is_mmtests", "parse_mmtests"]

_FIX = "save what compare-kernels.sh printed as it is, with the two lines of names above the table"
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
            raise bad(subject, problem, _FIX, at=f"line {index + 1}")
        rows.append(row)
    if not rows:
        raise bad(subject, "has no table of mmtests", _FIX)
    ways = _ways(rows)
    parts = {}
    for column, name in enumerate(names):
        scalars = Scalars()
        for row in rows:
            made, scale = _metric(row, column, ways, subject)
            if made.name in scalars:
                raise bad(subject, f"has {shown(row.label)} twice", _FIX, at=f"line {row.line}")
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
