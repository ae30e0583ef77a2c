# SPDX-License-Identifier: Apache-2.0
"""Which runs are one recording: by its own marks, else by numbers too many to agree by chance.

A run with a trace, or with a file that says when it was made, is known by its content.
Other files may be the same in two runs: 0 pages swapped, 12 s. Such a run is its content,
its path and the time of its files, and a copy is known by what is in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from wbscope.compare.rundata import RunData

__all__ = ["copies_on_both", "copies_within", "folder_id", "may_be_copies"]

_HASH_DIGITS = 12
# What no two recordings have in common: when they began, on which clock.
_STAMPS = {
    "meta.json": re.compile(r'"started_ts_ns": *\d'),
    "fio.json": re.compile(r'"timestamp(_ms)?" *: *\d'),
    "perf-stat.txt": re.compile(r"^# started on \w", re.MULTILINE),
    "vmstat.samples": re.compile(r"^# ts=\d", re.MULTILINE),
}
# So many runs have all their contents on the other side by chance less than once in 100
# times, however coarse the numbers.
_LEAST_CONTENTS = 4
# Of so many runs that are in one order on two sides: 12 s and 13 s are that by chance once in 16.
_LEAST_IN_ORDER = 4
# Digits of a number that say how long a thing takes; the rest is noise, and differs.
_SAME_ANYWAY = 2
# What may be the same each time, to the last digit.
_EXACT = ("count", "bytes", "")
# Of so many digits of noise, two runs have all alike less than once in a million times.
_MOST_BY_CHANCE = 6


def folder_id(folder: Path, texts: Mapping[str, str]) -> str:
    """CONTENT of a recording with a mark of its own, else CONTENT.PLACE."""
    told = "\n".join(f"{name}\n{text}" for name, text in sorted(texts.items()))
    content = _hash(told)
    if any(name in texts and mark.search(texts[name]) for name, mark in _STAMPS.items()):
        return content
    times = [f"{name} {_written(folder / name)}" for name in sorted(texts)]
    return f"{content}.{_hash(repr([str(folder.resolve()), *times]))}"


def copies_on_both(runs: Sequence[RunData], others: Sequence[RunData]) -> list[tuple[str, str]]:
    """The names of each run and of the other one that is the same recording."""
    same = {run.source_id: run.name for run in others}
    found = {run.name: same[run.source_id] for run in runs if run.source_id in same}
    contents = {_content(run): run for run in others if _is_unmarked(run)}
    alike = [(run, contents[_content(run)]) for run in runs if _content(run) in contents]
    alike = [pair for pair in alike if _is_unmarked(pair[0]) and pair[0].name not in found]
    everything = _all_found(runs, others)
    varying = _varying([*runs, *others])
    for run, other in alike:
        if everything or _digits(run, varying) >= _MOST_BY_CHANCE:
            found[run.name] = other.name
    return list(found.items())


def copies_within(runs: Sequence[RunData], others: Sequence[RunData] = ()) -> list[list[RunData]]:
    """The runs of a side that are one recording; other runs tell what varies."""
    groups: dict[str, list[RunData]] = {}
    for run in runs:
        groups.setdefault(run.source_id, []).append(run)
    contents: dict[str, list[RunData]] = {}
    for run in runs:
        if _is_unmarked(run):
            contents.setdefault(_content(run), []).append(run)
    repeated = {content: alike for content, alike in contents.items() if len(alike) > 1}
    varying = _varying([*runs, *others]) if repeated else set()
    every = len(contents) >= _LEAST_CONTENTS and len(repeated) == len(contents)
    for content, alike in repeated.items():
        if every or _digits(alike[0], varying) >= _MOST_BY_CHANCE:
            for run in alike:
                groups.pop(run.source_id, None)
            groups[content] = alike
    return [group for group in groups.values() if len(group) > 1]


def may_be_copies(runs: Sequence[RunData], others: Sequence[RunData]) -> bool:
    """Each run says what the other side's run in its place says, and not all say the same.

    Of coarse numbers that is no proof of a copied folder, and a reason to look.
    """
    sides = [[_content(run) for run in side if _is_unmarked(run)] for side in (runs, others)]
    told, of_others = sides
    are_all = len(told) == len(runs) and len(of_others) == len(others)
    return (
        are_all
        and told == of_others
        and len(told) >= _LEAST_IN_ORDER
        and len(set(told)) > 1
        and not copies_on_both(runs, others)
    )


def _all_found(runs: Sequence[RunData], others: Sequence[RunData]) -> bool:
    """Every run of the smaller side is on the other, and no two of a side are alike."""
    sides = [[_content(run) for run in side if _is_unmarked(run)] for side in (runs, others)]
    few, many = sorted(sides, key=len)
    if len(few) < _LEAST_CONTENTS or any(len(set(side)) < len(side) for side in sides):
        return False
    return set(few) <= set(many)


def _varying(runs: Iterable[RunData]) -> set[str]:
    """Metrics that are not the same in all runs.

    Where none varies, as among copies of one run, all but whole counts and sizes: these may be
    the same each time, a time never is to so many digits.
    """
    seen: dict[str, set[float | None]] = {}
    exact: set[str] = set()
    for run in runs:
        for name, (metric, value) in run.scalars.items():
            seen.setdefault(name, set()).add(value)
            if metric.unit in _EXACT and (value is None or value.is_integer()):
                exact.add(name)
    return {name for name, values in seen.items() if len(values) > 1} or {*seen} - exact


def _digits(run: RunData, varying: set[str]) -> int:
    """How many digits of its numbers are noise, which no other run has."""
    values = (value for name, (_, value) in run.scalars.items() if name in varying)
    return sum(max(_significant(value) - _SAME_ANYWAY, 0) for value in values if value)


def _significant(value: float) -> int:
    """12.340 s are 4 digits, whatever the unit; what conversion leaves is none."""
    return len(f"{abs(value):.11e}".partition("e")[0].rstrip("0").replace(".", ""))


def _is_unmarked(run: RunData) -> bool:
    return "." in run.source_id


def _content(run: RunData) -> str:
    return run.source_id.partition(".")[0]


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # removed since it was read
        return 0


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
