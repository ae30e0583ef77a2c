# SPDX-License-Identifier: Apache-2.0
"""Reads the text of `trace-cmd report -t`, the independent view of a trace."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .tools import require_program

__all__ = [
    "ReportEvent",
    "count_events",
    "event_systems",
    "key_values",
    "parse_report",
    "report_lines",
]

# comm-tid, [cpu], seconds.nanoseconds, event, text; a comm may hold spaces, dashes and colons
_LINE = re.compile(
    r"^\s*(?P<comm>.*)-(?P<tid>\d+)\s+\[(?P<cpu>\d+)\]\s+"
    r"(?P<s>\d+)\.(?P<ns>\d{9}): (?P<name>\w+): +(?P<text>.*)$"
)
_NAME = re.compile(r"\[\d+\]\s+\d+\.\d{9}: (\w+):")
_PAIR = re.compile(r"(\w+)=(-?\w+)")


@dataclass(frozen=True, slots=True)
class ReportEvent:
    """One line of the report. ts in ns."""

    ts: int
    cpu: int
    tid: int
    comm: str
    name: str
    text: str


def report_lines(trace: Path) -> Iterator[str]:
    """The lines of the report, read while trace-cmd writes them.

    Raises: RuntimeError when trace-cmd ends with an error.
    """
    command = [require_program("trace-cmd"), "report", "-t", str(trace)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield from process.stdout
    if process.returncode != 0:
        raise RuntimeError(f"trace-cmd report ended with {process.returncode} on {trace.name}")


def parse_report(lines: Iterable[str], names: Collection[str] = ()) -> Iterator[ReportEvent]:
    """The events of the report, or only those of the given names, in the order of its lines."""
    for line in lines:
        if names:
            found = _NAME.search(line)
            if found is None or found[1] not in names:
                continue
        match = _LINE.match(line.rstrip("\n"))
        if match is not None:
            ts = int(match["s"]) * 1_000_000_000 + int(match["ns"])
            yield ReportEvent(
                ts,
                int(match["cpu"]),
                int(match["tid"]),
                match["comm"],
                match["name"],
                match["text"],
            )


def count_events(lines: Iterable[str]) -> Counter[str]:
    """How many lines each event name has."""
    return Counter(found[1] for line in lines if (found := _NAME.search(line)) is not None)


def key_values(text: str) -> dict[str, str]:
    """The key=value pairs of an event's text."""
    return dict(_PAIR.findall(text))


def event_systems(trace: Path) -> dict[str, set[str]]:
    """Event name -> systems that declare it, by the file's own formats, ftrace's included."""
    counts = re.findall(
        r"^\s+(\S+) (\d+) \[system, events\]", _dump(trace, "--systems"), re.MULTILINE
    )
    names = iter(re.findall(r"^name: (\S+)$", _dump(trace, "--events"), re.MULTILINE))
    systems: dict[str, set[str]] = {}
    for system, count in counts:
        for name in itertools.islice(names, int(count)):
            systems.setdefault(name, set()).add(system)
    for name in re.findall(r"^name: (\S+)$", _dump(trace, "--ftrace-events"), re.MULTILINE):
        systems.setdefault(name, set()).add("ftrace")
    return systems


def _dump(trace: Path, what: str) -> str:
    command = [require_program("trace-cmd"), "dump", what, str(trace)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
