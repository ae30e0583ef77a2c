# SPDX-License-Identifier: Apache-2.0
"""Tables of numbers: CSV, and units of operations in them.

A name that stands on several lines is one benchmark that ran several times: in a run
folder the run counts once and has the mean; a file that is given by itself has as many
runs.

A column side (or kernel, version, config) tells parts apart, a column run repetitions.
Separators are commas, semicolons or tabs; with semicolons a number may have a decimal comma.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from wbscope.base.result import Notice
from wbscope.base.units import unit_of_text
from wbscope.measure.document import bad, scaled, shown
from wbscope.measure.metric import (
    BETTER,
    Better,
    FileRun,
    FileRuns,
    Metric,
    Scalars,
    Spread,
    Told,
    is_sane,
    metric,
)

# The end of the meaning of a value of which nothing else is known.
PRINTED = "as the benchmark printed it."
_OPS_FIX = "write each line as: NAME VALUE UNIT [lower|higher|neutral]"
_NAME = re.compile(r"[A-Za-z0-9_][^\s\[\]]{0,99}")
_VALUE = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
_UNIT = re.compile(r"[A-Za-z%][A-Za-z0-9%/_.*^-]{0,29}")


@dataclass(frozen=True)
class _Line:
    name: str
    value: float
    unit: str
    better: str | None
    at: str


def parse_ops(text: str, subject: str = "ops.txt") -> Scalars:
    """The metrics ops.*; times are better lower, what is by the second better higher.

    Raises: InputError.
    """
    scalars = Scalars()
    for made, scale, lines in _by_metric(text, subject):
        mean = math.fsum(line.value for line in lines) / len(lines)
        scalars.add(made, scaled(mean, scale))
    return scalars


def ops_runs(text: str, subject: str) -> tuple[FileRun, ...]:
    """The k-th line of each name is of run k.

    Raises: InputError, also when one name stands on more lines than another.
    """
    found = list(_by_metric(text, subject, iterations=True))
    counts = {len(lines): lines[-1] for _, _, lines in found}
    if len(counts) > 1:
        few, many = min(counts), max(counts)
        problem = f"{counts[few].name} stands on {few} lines and {counts[many].name} on {many}"
        raise bad(subject, f"{problem}: which run is which cannot be told", _OPS_FIX)
    runs = []
    for index in range(next(iter(counts))):
        scalars = Scalars()
        for made, scale, lines in found:
            scalars.add(made, scaled(lines[index].value, scale))
        runs.append(FileRun(str(index + 1), scalars))
    return tuple(runs)


def most_repeated(text: str, subject: str) -> tuple[str, int]:
    """The name that stands on most lines, and on how many."""
    name, _, lines = max(_by_metric(text, subject), key=lambda one: len(one[2]))
    return name.name, len(lines)


def is_ops(text: str) -> bool:
    """True when every line is one of these."""
    lines = [line.split() for line in text.split("\n")]
    lines = [words for words in lines if words and not words[0].startswith("#")]
    return bool(lines) and all(
        len(words) in (3, 4)
        and _NAME.fullmatch(words[0])
        and _VALUE.fullmatch(words[1])
        and _UNIT.fullmatch(words[2])
        for words in lines
    )


def _by_metric(
    text: str, subject: str, iterations: bool = False
) -> Iterator[tuple[Metric, float, list[_Line]]]:
    """Each metric, with the scale of its lines."""
    found: dict[str, list[_Line]] = {}
    for line in _lines(text, subject):
        others = found.setdefault(line.name, [])
        if others and (line.unit, line.better) != (others[0].unit, others[0].better):
            wanted = " ".join(filter(None, (others[0].unit, others[0].better)))
            given = " ".join(filter(None, (line.unit, line.better)))
            problem = f"{line.name} is in {shown(given)}, and in {shown(wanted)} before"
            raise bad(subject, problem, _OPS_FIX, at=line.at)
        others.append(line)
    if not found:
        raise bad(subject, "has no lines", _OPS_FIX)
    seen: set[str] = set()
    for name, lines in found.items():
        unit, scale = unit_of_text(lines[0].unit)
        meaning = f"{name} {PRINTED}"
        if len(lines) > 1 and not iterations:
            meaning = f"{name} as the benchmark printed it, the mean of its lines."
        entry = Told(unit, direction(lines[0].better, unit), meaning)
        made = metric("ops", name, entry, subject)
        if made.name in seen:
            raise bad(subject, f"{name} has the name of another line with its unit", _OPS_FIX)
        seen.add(made.name)
        yield made, scale, lines


def _lines(text: str, subject: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n"), 1):
        at = f"line {number}"
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) not in (3, 4):
            raise bad(subject, f"found {shown(line.strip())}", _OPS_FIX, at=at)
        name, value, unit = words[:3]
        better = words[3] if len(words) == 4 else None
        for word, pattern, what in (
            (name, _NAME, "a name"),
            (value, _VALUE, "a number"),
            (unit, _UNIT, "a unit"),
        ):
            if pattern.fullmatch(word) is None:
                raise bad(subject, f"found {shown(word)}, wanted {what}", _OPS_FIX, at=at)
        if better is not None and better not in BETTER:
            raise bad(
                subject, f"found {shown(better)}, wanted {', '.join(BETTER)}", _OPS_FIX, at=at
            )
        yield _Line(name, _finite(value, subject, at), unit, better, at)


def _finite(text: str, subject: str, at: str) -> float:
    value = float(text)
    if not is_sane(value):
        raise bad(subject, f"found {shown(text)}, which is too large", _OPS_FIX, at=at)
    return value


def direction(told: str | None, unit: str) -> Better:
    """Which way is good: as told, else by the unit."""
    for better in BETTER:
        if told == better:
            return better
    if unit == "ns":
        return "lower"
    return "higher" if unit.endswith(("/s", "/sec")) else "neutral"


_FIX = "begin it with: run,metric,value,unit (or metric,mean,sd,n,unit, or a column a metric)"
_ROLES = {
    "side": ("side", "kernel", "version", "config"),
    "run": ("run", "iteration", "iter", "repetition", "rep", "trial"),
    "metric": ("metric", "name", "benchmark"),
    "value": ("value",),
    "unit": ("unit", "units"),
    "better": ("better",),
    "mean": ("mean", "average", "avg"),
    "sd": ("sd", "s.d.", "stddev", "stdev", "std"),
    "n": ("n", "runs", "count", "samples"),
}
_NOT_KNOWN = ("", "-", "na", "n/a", "nan", "null", "none")
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
# 1,002 is 1002 to some and 1.002 to others; of 0,002 and 12,50 there is no doubt.
_WITH_COMMAS = re.compile(r"[+-]?[0-9]{1,30}(?:,[0-9]{1,30})+(?:\.[0-9]{1,30})?")
_MAY_BE_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]{1,30})?")
_COMMA_FIX = "write numbers with a point and without thousands: 1002 or 1.002, and not 1,002"
_MOST_COLUMNS = 1000
_MOST_LINES = 20_000
_SECOND = {"sec": "s", "secs": "s", "seconds": "s", "msec": "ms", "usec": "us", "nsec": "ns"}
# time_s, "time (s)", "time [s]"; ops_per_s
_UNIT_IN_NAME = re.compile(
    r"(?P<name>.*\S)(?:\s*[(\[](?P<told>[^()\[\]]{1,30})[)\]]|_(?P<end>[A-Za-z]{1,10}))"
)
_PER_SECOND = re.compile(r"(?P<name>.*?)_?(?P<what>[A-Za-z]+)_per_s(?:ec|econd)?")


@dataclass(frozen=True)
class _Table:
    """A header and its lines: cells by column, with the number of the line."""

    names: tuple[str, ...]
    roles: Mapping[str, int]
    lines: Sequence[tuple[int, Sequence[str]]]
    comma: bool  # of decimals, with semicolons between cells
    subject: str

    @cached_property
    def is_decimal_comma(self) -> bool:
        """True when a number of the table has a comma that parts no thousands."""
        words = {self.roles[role] for role in ("side", "run", "metric") if role in self.roles}
        return self.comma and any(
            _WITH_COMMAS.fullmatch(cell) and not _MAY_BE_THOUSANDS.fullmatch(cell)
            for _, cells in self.lines
            for column, cell in enumerate(cells)
            if column not in words
        )


def header_kind(line: str) -> str | None:
    """What a table with this first line is: long, summary or wide; None for no header."""
    return _kind(_cells(line)[0])


def _kind(cells: Sequence[str]) -> str | None:
    if len(cells) < 2 or not all(re.match(r"[A-Za-z]", cell) for cell in cells):
        return None
    if len(set(cells)) < len(cells) or any(len(cell) > 100 for cell in cells):
        return None
    roles = _roles(cells)
    if {"metric", "mean", "sd", "n"} <= roles.keys():
        return "summary"
    if {"metric", "value"} <= roles.keys():
        return "long"
    return "wide"


def parse_csv(text: str, subject: str) -> FileRuns:
    """Each part with its runs; of means with s.d. and n, one run with its spreads.

    Raises: InputError.
    """
    table = _read(text, subject)
    kind = _kind(table.names)
    if kind is None:
        raise bad(subject, f"has no header: found {shown(','.join(table.names))}", _FIX)
    if {"command", "mean", "stddev", "median"} <= set(table.names):
        fix = "export single times: hyperfine --export-json FILE.json COMMAND"
        raise bad(subject, "is hyperfine's CSV, which has no single times", fix, at="line 1")
    read = {"summary": _of_means, "long": _long, "wide": _wide}[kind]
    notices: list[Notice] = []
    parts: dict[str, list[FileRun]] = {}
    for side in dict.fromkeys(_cell(table, cells, "side") for _, cells in table.lines):
        mine = [(at, cells) for at, cells in table.lines if _cell(table, cells, "side") == side]
        parts[side] = read(table, mine, notices)
    found = {side: tuple(runs) for side, runs in parts.items()}
    whole = next(iter(found.values())) if len(found) == 1 else None
    column = table.names[table.roles["side"]] if "side" in table.roles else "part"
    return FileRuns(found, whole, f"values of {column}", tuple(dict.fromkeys(notices)))


def _read(text: str, subject: str) -> _Table:
    plain = text.lstrip("\ufeff")
    first = next((line for line in plain.split("\n") if line.strip() and line[0] != "#"), "")
    _, delimiter = _cells(first)
    rows = csv.reader(plain.splitlines(), delimiter=delimiter, skipinitialspace=True, strict=True)
    names: tuple[str, ...] = ()
    lines: list[tuple[int, list[str]]] = []
    try:
        for row in rows:
            cells = [cell.strip() for cell in row]
            if not any(cells) or (cells[0].startswith("#") and not names):
                continue
            if not names:
                names = tuple(cells)
                continue
            if len(cells) != len(names):
                problem = f"has {len(cells)} cells, wanted the {len(names)} of the header"
                raise bad(subject, problem, _FIX, at=f"line {rows.line_num}")
            if len(lines) == _MOST_LINES:
                problem = f"has more than {_MOST_LINES} lines, wanted a line a run or a number"
                raise bad(subject, problem, _FIX, at=f"line {rows.line_num}")
            lines.append((rows.line_num, cells))
    except csv.Error as error:
        raise bad(subject, f"is no table: {error}", _FIX, at=f"line {rows.line_num}") from error
    if not lines or len(names) > _MOST_COLUMNS:
        found = "no line below its header" if not lines else f"{len(names)} columns"
        raise bad(subject, f"has {found}", _FIX)
    return _Table(names, _roles(names), lines, delimiter == ";", subject)


def _cells(line: str) -> tuple[list[str], str]:
    delimiter = max(",;\t", key=line.count)
    try:
        rows = list(csv.reader([line.rstrip("\r")], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return [], delimiter
    return [cell.strip() for cell in (rows[0] if rows else [])], delimiter


def _roles(names: Sequence[str]) -> dict[str, int]:
    """Role -> column; the first that has one of its names."""
    lower = [name.lower() for name in names]
    found = {}
    for role, words in _ROLES.items():
        column = next((lower.index(word) for word in words if word in lower), None)
        if column is not None:
            found[role] = column
    return found


def _cell(table: _Table, cells: Sequence[str], role: str) -> str:
    return cells[table.roles[role]] if role in table.roles else ""


def _long(
    table: _Table, lines: Sequence[tuple[int, Sequence[str]]], _notices: list[Notice]
) -> list[FileRun]:
    """A line a number; without a column run, the k-th line of a metric is of run k.

    Lines that another column tells apart may be no repetitions.
    """
    used = {column for role, column in table.roles.items() if role != "n"}
    others = [column for column in range(len(table.names)) if column not in used]
    runs: dict[str, Scalars] = {}
    counted: Counter[str] = Counter()
    first: dict[str, Metric] = {}
    cells_of: dict[str, Sequence[str]] = {}
    for line, cells in lines:
        at = f"line {line}"
        made, scale = _metric(table, cells, at)
        had_cells = cells_of.setdefault(made.name, cells)
        apart = next((column for column in others if cells[column] != had_cells[column]), None)
        value = _number(table, _cell(table, cells, "value"), at)
        if "run" in table.roles:
            run = _cell(table, cells, "run")
            if not run:
                raise bad(table.subject, "has no run in its column", _FIX, at=at)
        elif apart is not None:
            here, before = shown(cells[apart]), shown(had_cells[apart])
            problem = f"has {made.name} with {table.names[apart]} {here}, and {before} before,"
            raise bad(table.subject, f"{problem} and no column run", _key_fix(table, apart), at=at)
        else:
            counted[made.name] += 1
            run = str(counted[made.name])
        scalars = runs.setdefault(run, Scalars())
        if made.name in scalars:
            problem = f"has {made.name} of run {shown(run)} twice"
            fix = _FIX if apart is None else _key_fix(table, apart)
            raise bad(table.subject, problem, fix, at=at)
        had = first.setdefault(made.name, made)
        if had != made:  # the name has the unit only where wbscope knows it
            told = f"{made.unit} {made.better}, and {had.unit} {had.better} before"
            raise bad(table.subject, f"{made.name} is in {told}", _FIX, at=at)
        scalars.add(made, None if value is None else scaled(value, scale))
    return [FileRun(name, scalars) for name, scalars in runs.items()]


def _key_fix(table: _Table, column: int) -> str:
    name = table.names[column]
    fix = f"write what {name} tells apart into the names of metrics, as time_{name}_8"
    if "run" in table.roles:
        return fix
    return f"{fix}; or name the column run if it numbers repetitions, or leave it out"


def _of_means(
    table: _Table, lines: Sequence[tuple[int, Sequence[str]]], _notices: list[Notice]
) -> list[FileRun]:
    scalars = Scalars()
    for line, cells in lines:
        at = f"line {line}"
        made, scale = _metric(table, cells, at)
        if made.name in scalars:
            raise bad(table.subject, f"has {made.name} twice", _FIX, at=at)
        mean, sd, n = (_number(table, _cell(table, cells, one), at) for one in ("mean", "sd", "n"))
        if mean is None:
            raise bad(table.subject, "found no mean", _FIX, at=at)
        spread = None
        if n is not None and (n < 1 or n != int(n)):
            problem = f"found n {shown(_cell(table, cells, 'n'))}, wanted how many runs"
            raise bad(table.subject, problem, _FIX, at=at)
        if sd is not None and sd < 0:
            raise bad(table.subject, f"found the s.d. {sd:g}, wanted 0 or more", _FIX, at=at)
        if sd is not None and n is not None and n >= 2:
            spread = Spread(scaled(sd, scale), int(n))
        scalars.add(made, scaled(mean, scale), spread)
    return [FileRun("means", scalars)]


def _wide(
    table: _Table, lines: Sequence[tuple[int, Sequence[str]]], notices: list[Notice]
) -> list[FileRun]:
    """A line a run."""
    taken = {table.roles[role] for role in ("side", "run") if role in table.roles}
    columns = [column for column in range(len(table.names)) if column not in taken]
    texts = [column for column in columns if _is_text(table, column)]
    columns = [column for column in columns if column not in texts]
    if not columns:
        raise bad(table.subject, "has no column of numbers", _FIX)
    if texts:
        named = ", ".join(table.names[column] for column in texts)
        notices.append(Notice("columns-left-out", f"columns without numbers: {named}"))
    made = {}
    for column in columns:
        name, unit, scale = _name_and_unit(table.names[column])
        made[column] = _made(name, unit, "", table.subject, "line 1"), scale
    runs = []
    for number, (line, cells) in enumerate(lines, 1):
        scalars = Scalars()
        for column, (one, scale) in made.items():
            value = _number(table, cells[column], f"line {line}")
            scalars.add(one, None if value is None else scaled(value, scale))
        runs.append(FileRun(_cell(table, cells, "run") or str(number), scalars))
    seen: set[str] = set()
    for run, (line, _) in zip(runs, lines, strict=True):
        if run.name in seen:
            raise bad(table.subject, f"has run {shown(run.name)} twice", _FIX, at=f"line {line}")
        seen.add(run.name)
    return runs


def _is_text(table: _Table, column: int) -> bool:
    """No cell of it is a number."""
    cells = [cells[column] for _, cells in table.lines]
    return not any(_NUMBER.fullmatch(cell) or _WITH_COMMAS.fullmatch(cell) for cell in cells)


def _metric(table: _Table, cells: Sequence[str], at: str) -> tuple[Metric, float]:
    text = _cell(table, cells, "unit")
    unit, scale = unit_of_text(text) if text else ("", 1.0)
    better = _cell(table, cells, "better").lower()
    if better and better not in BETTER:
        raise bad(table.subject, f"found {shown(better)}, wanted {', '.join(BETTER)}", _FIX, at=at)
    return _made(_cell(table, cells, "metric"), unit, better, table.subject, at), scale


def _made(name: str, unit: str, better: str, subject: str, at: str) -> Metric:
    if not re.match(r"[A-Za-z0-9_]", name) or len(name) > 100:
        raise bad(subject, f"found {shown(name)}, wanted the name of a metric", _FIX, at=at)
    entry = Told(unit, direction(better or None, unit), f"{name} as the table has it.")
    return metric("ops", name, entry, subject)


def _name_and_unit(column: str) -> tuple[str, str, float]:
    """time_s is time in ns; of what is no known unit, the name is the whole."""
    if match := _PER_SECOND.fullmatch(column):
        name, (unit, scale) = match["name"], unit_of_text(f"{match['what']}/s")
        return name or match["what"], unit, scale
    if match := _UNIT_IN_NAME.fullmatch(column):
        text = match["told"] or match["end"]
        unit, scale = unit_of_text(_SECOND.get(text, text))
        if match["told"] or unit in ("ns", "bytes"):
            return match["name"], unit, scale
        if text in ("percent", "pct"):
            return match["name"], *unit_of_text("%")
        if text == "ratio":
            return match["name"], "ratio", 1.0
    return column, "", 1.0


def _number(table: _Table, text: str, at: str) -> float | None:
    if text.lower() in _NOT_KNOWN:
        return None
    plain = text.replace(",", ".") if table.comma and "." not in text else text
    if _NUMBER.fullmatch(plain) is None or not is_sane(float(plain)):
        fix = _COMMA_FIX if _WITH_COMMAS.fullmatch(text) else _FIX
        wanted = "wanted a number"
        if fix == _COMMA_FIX and not table.comma:
            wanted += ": commas are decimals only where semicolons part the columns"
        raise bad(table.subject, f"found {shown(text)}, {wanted}", fix, at=at)
    if _MAY_BE_THOUSANDS.fullmatch(text) and not table.is_decimal_comma:
        problem = f"found {shown(text)}, which is {text.replace(',', '')} or {plain}: no comma of"
        problem += " the table tells which"
        raise bad(table.subject, problem, _COMMA_FIX, at=at)
    return float(plain)
