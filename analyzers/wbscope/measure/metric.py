# SPDX-License-Identifier: Apache-2.0
"""Metrics of files: names, units, directions, and the runs that they are of."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal

from wbscope.base.errors import InputError, InternalError, UsageError
from wbscope.base.result import Notice
from wbscope.measure.document import bad

Better = Literal["lower", "higher", "neutral"]
BETTER: tuple[Better, ...] = ("lower", "higher", "neutral")

# What is in brackets tells the numbers of one family apart.
_NAME = re.compile(r"(?P<family>[^\[\]\s]+)(?:\[(?P<keys>[^\[\]\n]+)\])?")
# Squares of numbers up to this, and sums of them, are finite.
_MOST = 1e100
_NOT_IN_A_KEY = re.compile(r"[\[\],=\s\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Metric:
    """One number of a run: its name, its unit, and how to read it.

    name     QUERY.COLUMN, or QUERY.COLUMN[key=value,...] where a run has several;
             other measurements begin with their kind: fio.write.bw_bytes_per_s
    unit     as engine.result.unit_of() has them: ns, bytes, bytes/s, pages/s,
             count, ratio; "" when it has none
    better   which way is good; neutral = neither, it is never judged
    meaning  one plain sentence, for somebody without context
    source   where the number is from: a query, a file of the run folder
    not_across  kernel release from which on the number means another thing, such
             as 6.16 for nr_vmscan_write; runs before and after are not compared
    """

    name: str
    unit: str
    better: Better
    meaning: str
    source: str
    not_across: str = ""

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise InputError(
                "bad-metric-name",
                repr(self.name),
                "is no name of a metric, wanted FAMILY or FAMILY[key=value,...] without spaces",
                at=self.source,
                fix="throttle_by_task.throttled_ratio[comm=dd]",
            )


@dataclass(frozen=True)
class Spread:
    """Of a number that is a mean: s.d. of what it is the mean of, and of how many.

    sd  with n - 1, in the unit of the metric; n is 2 or more
    """

    sd: float
    n: int


class Scalars(dict[str, tuple[Metric, float | None]]):
    """All numbers of one run by name; None = the run cannot tell, which is not 0.

    spreads  of numbers that whoever measured them gave as mean and s.d. of several
    """

    def __init__(self) -> None:
        super().__init__()
        self.spreads: dict[str, Spread] = {}

    def add(self, metric: Metric, value: float | None, spread: Spread | None = None) -> None:
        """Take in a number that has no name-sake; what is not finite is not known."""
        if metric.name in self:
            raise InputError(
                "same-metric-twice",
                metric.name,
                f"comes from {self[metric.name][0].source} and from {metric.source}",
                fix="leave one of the two out",
            )
        known = value is not None and math.isfinite(value)
        self[metric.name] = (metric, float(value) if known and value is not None else None)
        if spread is not None and known:
            self.spreads[metric.name] = spread

    def add_all(self, others: Scalars) -> None:
        """Take in all numbers of another source of the same run."""
        for name, (metric, value) in others.items():
            self.add(metric, value, others.spreads.get(name))


def is_sane(value: float) -> bool:
    """True for a number that can be computed with; NaN and infinity are none."""
    return abs(value) <= _MOST


def better_of(text: str, subject: str) -> Better:
    """A direction as written in a file or an option."""
    for better in BETTER:
        if text == better:
            return better
    raise UsageError(
        "bad-direction",
        subject,
        f"is better when {text!r}, wanted one of {', '.join(BETTER)}",
        fix='better = "lower"',
    )


def join_name(family: str, keys: Mapping[str, str]) -> str:
    """The metric's name; signs that would end a key or a value, or are not shown, become `_`."""
    if not keys:
        return family
    told = (f"{key}={_NOT_IN_A_KEY.sub('_', _shown(value))}" for key, value in keys.items())
    return f"{family}[{','.join(told)}]"


def _shown(value: str) -> str:
    """Without signs that cannot be shown, of which half a surrogate pair cannot even be written."""
    return "".join(char if char.isprintable() else "_" for char in value)


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """Family and keys of a metric's name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return name, {}
    pairs = (match["keys"] or "").split(",")
    return match["family"], dict(pair.split("=", 1) for pair in pairs if "=" in pair)


# What a metric of another tool begins with.
TOOLS = ("fio", "time", "command", "perf", "vmstat", "procps", "hyperfine", "mmtests", "ops")

_SUFFIXES = {
    "ns": "_ns",
    "bytes": "_bytes",
    "bytes/s": "_bytes_per_s",
    "count": "_count",
    "ratio": "_ratio",
}


@dataclass(frozen=True)
class Told:
    """What the catalogue says of one value of one tool."""

    unit: str
    better: Better
    meaning: str


@cache
def _sections() -> dict[str, dict[str, Told]]:
    path = Path(__file__).with_name("metrics.toml")
    read: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        section: {name: Told(**entry) for name, entry in entries.items()}
        for section, entries in read.items()
    }


def told(section: str, name: str) -> Told | None:
    """What is known of this value; a pattern stands for names of one kind."""
    entries = _sections()[section]
    if name in entries:
        return entries[name]
    return next((entry for key, entry in entries.items() if fnmatchcase(name, key)), None)


def known(section: str, name: str) -> Told:
    """What is known of a value that the project itself names."""
    entry = told(section, name)
    if entry is None:
        raise InternalError("no-entry", f"{section}.{name}", "is not in metrics.toml")
    return entry


def names_of(section: str) -> Iterator[str]:
    """The names, or patterns, of a section."""
    yield from _sections()[section]


def counters() -> Iterator[tuple[str, Told]]:
    """The counters of /proc/vmstat that are compared; a name may be a pattern."""
    yield from _sections()["vmstat"].items()


def sampled() -> Iterator[tuple[str, Told]]:
    """The levels in /proc/vmstat that are compared when they were sampled."""
    yield from _sections()["vmstat_level"].items()


def metric(
    tool: str, name: str, entry: Told, source: str, keys: Mapping[str, str] | None = None
) -> Metric:
    """TOOL.NAME; the unit is written in the name, as it is in columns of queries."""
    suffix = _SUFFIXES.get(entry.unit, "")
    if name.endswith(suffix):
        suffix = ""
    family = join_name(f"{tool}.{_word(name)}{suffix}", keys or {})
    return Metric(family, entry.unit, entry.better, entry.meaning, source)


def _word(name: str) -> str:
    """Without the signs that end a metric's name, and those that are not shown."""
    return "".join("_" if char in "[] " or not char.isprintable() else char for char in name)


@dataclass(frozen=True)
class FileRun:
    """A repetition.

    is_sample  one number of one thing of several: what it has no number of, nobody
               asked of it
    """

    name: str
    scalars: Scalars
    is_sample: bool = False


# Part of a file -> its runs; "" where a file has no parts.
Parts = Mapping[str, tuple[FileRun, ...]]


@dataclass(frozen=True)
class FileRuns:
    """The content of a file.

    parts     what can be told from each other by name: kernels, settings, commands
    whole     the runs when no part is named; None = a part must be named
    part_is   what a part is, as a message says it: kernels
    """

    parts: Parts
    whole: tuple[FileRun, ...] | None
    part_is: str = "parts"
    notices: tuple[Notice, ...] = ()


def repetitions(
    results: Sequence[tuple[int, Scalars]], subject: str, fix: str
) -> tuple[FileRun, ...]:
    """Results in the order of the text, with the line of each, as runs.

    A run ends where a name comes again; all must have the same names.

    Raises: InputError when they do not: these are no repetitions of one thing.
    """
    runs: list[tuple[int, Scalars]] = []
    for line, scalars in results:
        if not runs or any(name in runs[-1][1] for name in scalars):
            runs.append((line, Scalars()))
        runs[-1][1].add_all(scalars)
    for line, scalars in runs[1:]:
        if scalars.keys() != runs[0][1].keys():
            odd = sorted(scalars.keys() ^ runs[0][1].keys())
            has, lacks = (line, runs[0][0]) if odd[0] in scalars else (runs[0][0], line)
            problem = f"holds results that are no repetitions: {odd[0]} is in that of line {has},"
            raise bad(subject, f"{problem} not in that of line {lacks}", fix, at=f"line {line}")
    return tuple(FileRun(str(number), one) for number, (_, one) in enumerate(runs, 1))
