# SPDX-License-Identifier: Apache-2.0
"""/proc/vmstat: what counters gained in the run, and levels where it was sampled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from wbscope.measure.bad import bad, shown
from wbscope.measure.known_metrics import Told, counters, metric, sampled
from wbscope.measure.metric import Scalars

__all__ = ["Samples", "parse_vmstat", "vmstat_gains", "vmstat_levels"]

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
