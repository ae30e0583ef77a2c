# SPDX-License-Identifier: Apache-2.0
"""Counters of /proc: vmstat before and after, samples of it, and procps."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from wbscope.base.units import unit_of_text
from wbscope.measure.document import bad, decimal, scaled, shown
from wbscope.measure.metric import Scalars, Told, counters, known, metric, names_of, sampled

_FIX = "record it with: cat /proc/vmstat > vmstat.before (and vmstat.after at the end)"

# (ns, counters) of each time that the file was read, in order.
Samples = Sequence[tuple[int, Mapping[str, int]]]


def parse_vmstat(text: str, subject: str, first_line: int = 1) -> dict[str, int]:
    """Counter -> value of one reading of /proc/vmstat.

    Raises: InputError.
    """
    if not text.endswith("\n"):
        raise bad(subject, "is cut off: its last line has no end", _FIX)
    values: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), first_line):
        if not line.strip():
            continue
        name, _, count = line.partition(" ")
        if not name or len(count) > 20 or not (count.isascii() and count.isdecimal()):
            problem = f"found {shown(line)}, wanted a name and a count"
            raise bad(subject, problem, _FIX, at=f"line {number}")
        if name in values:
            raise bad(subject, f"has {name} twice", _FIX, at=f"line {number}")
        values[name] = int(count)
    if not values:
        raise bad(subject, "is empty", _FIX)
    return values


def vmstat_gains(before: Mapping[str, int], after: Mapping[str, int], source: str) -> Scalars:
    """The metrics vmstat.*: after minus before, of counters that both have.

    Raises: InputError when a counter went back, which it does not before 2**64.
    """
    scalars = Scalars()
    for name, entry in _named(before, counters()):
        if name not in after:
            continue
        gained = after[name] - before[name]
        if gained < 0:
            numbers = f"{name} is {before[name]} before and {after[name]} after the run"
            raise bad(source, f"{numbers}: the two are of two boots, or swapped", _FIX)
        scalars.add(metric("vmstat", name, entry, source), float(gained))
    return scalars


def vmstat_levels(samples: Samples, source: str) -> Scalars:
    """The metrics vmstat.NAME.mean and .max; the mean is over time, not over samples.

    Raises: InputError when the samples are not in order.
    """
    scalars = Scalars()
    if len(samples) < 2:
        return scalars
    for (earlier, _), (later, _) in pairwise(samples):
        if later <= earlier:
            raise bad(source, f"has a sample of {later} ns after one of {earlier} ns", _FIX)
    for name, entry in _named(samples[0][1], sampled()):
        if not all(name in values for _, values in samples):
            continue
        for which, value, words in (
            ("mean", _mean(samples, name), "on average over time"),
            ("max", float(max(values[name] for _, values in samples)), "at most"),
        ):
            said = Told(entry.unit, entry.better, f"{entry.meaning}, {words}.")
            scalars.add(metric("vmstat", f"{name}.{which}", said, source), value)
    return scalars


def _mean(samples: Samples, name: str) -> float:
    """Between two samples the level is taken to go straight."""
    area = sum(
        (later - earlier) * (old[name] + new[name]) / 2
        for (earlier, old), (later, new) in pairwise(samples)
    )
    return area / (samples[-1][0] - samples[0][0])


def _named(
    values: Mapping[str, int], entries: Iterator[tuple[str, Told]]
) -> Iterator[tuple[str, Told]]:
    """Each name that the catalogue knows, once; an exact name goes before a pattern."""
    told = dict(entries)
    for name in values:
        if name in told:
            yield name, told[name]
        else:
            pattern = next((key for key in told if fnmatchcase(name, key)), None)
            if pattern is not None:
                yield name, told[pattern]


_SAMPLES_FIX = "write `# ts=NS` before each copy of /proc/vmstat, as wbscope record does"
_STAMP = re.compile(r"# ts=([0-9]{1,19})")


def parse_samples(text: str, subject: str = "vmstat.samples") -> Samples:
    """(ns of the trace clock, counters) of each sample.

    A recorder that is killed cuts the last sample off: that one is left out.

    Raises: InputError.
    """
    pieces: list[tuple[int, int, list[str]]] = []  # ns, number of the first line, lines
    for number, line in enumerate(text.split("\n"), 1):
        if match := _STAMP.fullmatch(line):
            pieces.append((int(match[1]), number + 1, []))
        elif line.strip() and not pieces:
            problem = f"found {shown(line)}, wanted # ts=NS"
            raise bad(subject, problem, _SAMPLES_FIX, at=f"line {number}")
        elif line.strip():
            pieces[-1][2].append(f"{line}\n")
    if not pieces:
        raise bad(subject, "has no sample", _SAMPLES_FIX)
    whole = len(pieces[0][2])
    if len(pieces) > 1 and (len(pieces[-1][2]) < whole or not text.endswith("\n")):
        pieces.pop()
    return [(ts, parse_vmstat("".join(lines), subject, first)) for ts, first, lines in pieces]


_PROCPS_FIX = "record it with: vmstat -n 1 > vmstat.txt (without -S, -d, -s)"
_GROUPS = re.compile(r"(?:procs|-+procs-+) -+memory-+ .*")
_PROCPS_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
# What the text has of a metric's unit.
_UNITS = {"bytes": "KiB", "bytes/s": "KiB/s", "ratio": "%", "count": "", "1/s": ""}


def parse_procps(text: str, subject: str = "vmstat.txt") -> Scalars:
    """The metrics procps.*; the first line is over all the time since boot and is left out.

    Raises: InputError.
    """
    columns, rows = _table(text, subject)
    if len(rows) < 2:
        raise bad(subject, "has no sample but the one since boot", _PROCPS_FIX)
    scalars = Scalars()
    for index, name in enumerate(columns):
        entry = known("procps", name)
        values = [row[index] for row in rows[1:]]
        value = max(values) if name == "swpd" else math.fsum(values) / len(values)
        scale = unit_of_text(_UNITS[entry.unit])[1]
        scalars.add(metric("procps", name, entry, subject), scaled(value, scale))
    return scalars


def _table(text: str, subject: str) -> tuple[list[str], list[Sequence[float]]]:
    """Names of the columns, and the numbers of each line; headings come again and again."""
    columns: list[str] = []
    has_stamp = False
    rows: list[Sequence[float]] = []
    for number, line in enumerate(text.split("\n"), 1):
        at = f"line {number}"
        words = line.split()
        if not words or _GROUPS.fullmatch(line):
            continue
        if words[0] == "r":
            # With -t, the last heading is the time zone.
            names = [word for word in words if word in names_of("procps")]
            has_stamp = len(words) == len(names) + 1
            once = len(set(names)) == len(names)
            if words[: len(names)] != names or len(words) > len(names) + 1 or not once:
                raise bad(subject, f"found the columns {shown(line.strip())}", _PROCPS_FIX, at=at)
            if columns and names != columns:
                raise bad(subject, "has other columns than before", _PROCPS_FIX, at=at)
            columns = names
            continue
        stamp = " ".join(words[-2:]) if has_stamp else ""
        numbers = [decimal(word) for word in words[: len(columns)]]
        whole = len(words) == len(columns) + (2 if has_stamp else 0) and None not in numbers
        if not columns or not whole or (has_stamp and not _PROCPS_STAMP.fullmatch(stamp)):
            wanted = f"wanted {len(columns)} numbers" if columns else "wanted the names of columns"
            raise bad(subject, f"found {shown(line.strip())}, {wanted}", _PROCPS_FIX, at=at)
        rows.append([value for value in numbers if value is not None])
    if not columns:
        raise bad(subject, "is empty", _PROCPS_FIX)
    return columns, rows
