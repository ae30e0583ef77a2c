# SPDX-License-Identifier: Apache-2.0
"""ops.txt: lines `name value unit` of any benchmark, as memcachetest in mmtests gives them.

A name that stands on several lines is one benchmark that ran several times: in a run
folder the run counts once and has the mean; a file that is given by itself has as many
runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from wbscope.measure.bad import bad, scaled, shown
from wbscope.measure.filerun import FileRun
from wbscope.measure.known_metrics import Told, metric
from wbscope.measure.metric import BETTER, Better, Metric, Scalars, is_sane
from wbscope.measure.tool_units import unit_of_text

__all__ = ["PRINTED", "direction", "is_ops", "most_repeated", "ops_runs", "parse_ops"]

# The end of the meaning of a value of which nothing else is known.
PRINTED = "as the benchmark printed it."
_FIX = "write each line as: NAME VALUE UNIT [lower|higher|neutral]"
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
        raise bad(subject, f"{problem}: which run is which cannot be told", _FIX)
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
            raise bad(subject, problem, _FIX, at=line.at)
        others.append(line)
    if not found:
        raise bad(subject, "has no lines", _FIX)
    seen: set[str] = set()
    for name, lines in found.items():
        unit, scale = unit_of_text(lines[0].unit)
        meaning = f"{name} {PRINTED}"
        if len(lines) > 1 and not iterations:
            meaning = f"{name} as the benchmark printed it, the mean of its lines."
        entry = Told(unit, direction(lines[0].better, unit), meaning)
        made = metric("ops", name, entry, subject)
        if made.name in seen:
            raise bad(subject, f"{name} has the name of another line with its unit", _FIX)
        seen.add(made.name)
        yield made, scale, lines


def _lines(text: str, subject: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n"), 1):
        at = f"line {number}"
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) not in (3, 4):
            raise bad(subject, f"found {shown(line.strip())}", _FIX, at=at)
        name, value, unit = words[:3]
        better = words[3] if len(words) == 4 else None
        for word, pattern, what in (
            (name, _NAME, "a name"),
            (value, _VALUE, "a number"),
            (unit, _UNIT, "a unit"),
        ):
            if pattern.fullmatch(word) is None:
                raise bad(subject, f"found {shown(word)}, wanted {what}", _FIX, at=at)
        if better is not None and better not in BETTER:
            raise bad(subject, f"found {shown(better)}, wanted {', '.join(BETTER)}", _FIX, at=at)
        yield _Line(name, _finite(value, subject, at), unit, better, at)


def _finite(text: str, subject: str, at: str) -> float:
    value = float(text)
    if not is_sane(value):
        raise bad(subject, f"found {shown(text)}, which is too large", _FIX, at=at)
    return value


def direction(told: str | None, unit: str) -> Better:
    """Which way is good: as told, else by the unit."""
    for better in BETTER:
        if told == better:
            return better
    if unit == "ns":
        return "lower"
    return "higher" if unit.endswith(("/s", "/sec")) else "neutral"
