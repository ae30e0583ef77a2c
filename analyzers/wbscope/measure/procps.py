# SPDX-License-Identifier: Apache-2.0
"""vmstat.txt: what vmstat(8) of procps printed, a line for each interval."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from wbscope.measure.bad import bad, decimal, scaled, shown
from wbscope.measure.known_metrics import known, metric, names_of
from wbscope.measure.metric import Scalars
from wbscope.measure.tool_units import unit_of_text

__all__ = ["parse_procps"]

_FIX = "record it with: vmstat -n 1 > vmstat.txt (without -S, -d, -s)"
_GROUPS = re.compile(r"(?:procs|-+procs-+) -+memory-+ .*")
_STAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
# What the text has of a metric's unit.
_UNITS = {"bytes": "KiB", "bytes/s": "KiB/s", "ratio": "%", "count": "", "1/s": ""}


def parse_procps(text: str, subject: str = "vmstat.txt") -> Scalars:
    """The metrics procps.*; the first line is over all the time since boot and is left out.

    Raises: InputError.
    """
    columns, rows = _table(text, subject)
    if len(rows) < 2:
        raise bad(subject, "has no sample but the one since boot", _FIX)
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
                raise bad(subject, f"found the columns {shown(line.strip())}", _FIX, at=at)
            if columns and names != columns:
                raise bad(subject, "has other columns than before", _FIX, at=at)
            columns = names
            continue
        stamp = " ".join(words[-2:]) if has_stamp else ""
        numbers = [decimal(word) for word in words[: len(columns)]]
        whole = len(words) == len(columns) + (2 if has_stamp else 0) and None not in numbers
        if not columns or not whole or (has_stamp and not _STAMP.fullmatch(stamp)):
            wanted = f"wanted {len(columns)} numbers" if columns else "wanted the names of columns"
            raise bad(subject, f"found {shown(line.strip())}, {wanted}", _FIX, at=at)
        rows.append([value for value in numbers if value is not None])
    if not columns:
        raise bad(subject, "is empty", _FIX)
    return columns, rows
