# SPDX-License-Identifier: Apache-2.0
"""What trace-cmd report prints: records, and raw values."""

from __future__ import annotations

import itertools
import re
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .tools import require_program
from .waits import GUARD_SECONDS

__all__ = [
    "Field",
    "RawEvent",
    "RawReport",
    "ReportEvent",
    "count_events",
    "event_systems",
    "key_values",
    "parse_report",
    "report_lines",
]


# Reads the text of `trace-cmd report -t`, the independent view of a trace.

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


# Reads `trace-cmd report -t -R`: every field of every record, and what was lost.
#
# Nothing here uses the project's code. What the fields are comes from `trace-cmd dump`.

# With instances: their name and a colon, then the line; `-t` leaves the point out of the time
# of clocks that trace-cmd does not take for ns.
_RAW_LINE = re.compile(
    r"^ *(?:(?P<buffer>\S+): {2,})?(?P<comm>\S.*)-(?P<tid>\d+) +\[(?P<cpu>\d+)\] *"
    r"(?P<ts>\d+(?:\.\d{9})?): (?P<name>[\w-]+): *(?P<text>.*)$"
)
_DROPPED = re.compile(r"^ *(?:(\S+): +)?CPU:(\d+) \[(?:(\d+) )?EVENTS DROPPED\]$")
_FIELD = re.compile(
    r"^\tfield:(?P<type>.+?)(?P<name>\w+)(?P<array>\[[^;]*\])?;\toffset:(?P<offset>\d+);"
    r"\tsize:(?P<size>\d+);\tsigned:(?P<signed>\d);$"
)
_STRING = re.compile(r'^0x([0-9a-f]+) : "(.*)"$', re.MULTILINE)
_SYMBOL = re.compile(r"^([0-9a-f]+) \w (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Field:
    """A field as the kernel declared it."""

    name: str
    type: str
    array: str
    size: int
    signed: bool

    @property
    def dynamic(self) -> bool:
        return self.type.startswith(("__data_loc", "__rel_loc"))

    @property
    def is_text(self) -> bool:
        return bool(self.array or self.dynamic) and re.search(r"\bchar\b", self.type) is not None


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One record. ts in ns or in ticks of its clock; buffer is empty for the top one."""

    ts: int
    cpu: int
    tid: int
    buffer: str
    name: str
    text: str


def _fields(line: str) -> list[Field]:
    """The field that a line of a format declares, if it declares one."""
    match = _FIELD.match(line)
    if match is None or match["name"].startswith("common_"):
        return []
    return [
        Field(
            match["name"],
            match["type"].strip(),
            match["array"] or "",
            int(match["size"]),
            match["signed"] == "1",
        )
    ]


class RawReport:
    """What trace-cmd reads in one file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace
        self.events: list[RawEvent] = []
        self.dropped: list[tuple[str, int, int | None]] = []
        for line in self.trace_cmd("report", "-t", "-R").split("\n"):
            self._line(line)

    def _line(self, line: str) -> None:
        if match := _RAW_LINE.match(line):
            self.events.append(
                RawEvent(
                    ts=int(match["ts"].replace(".", "")),
                    cpu=int(match["cpu"]),
                    tid=int(match["tid"]),
                    buffer=match["buffer"] or "",
                    name=match["name"],
                    text=match["text"],
                )
            )
        elif match := _DROPPED.match(line):
            count = int(match[3]) if match[3] else None
            self.dropped.append((match[1] or "", int(match[2]), count))
        elif line and self.events:  # a string with a newline in it
            last = self.events[-1]
            self.events[-1] = RawEvent(
                last.ts, last.cpu, last.tid, last.buffer, last.name, f"{last.text}\n{line}"
            )

    def time_stamps(self, *options: str) -> list[tuple[int, int]]:
        """(CPU, time) of each line of a report with more options."""
        lines = self.trace_cmd("report", "-t", *options).split("\n")
        matches = [match for line in lines if (match := _RAW_LINE.match(line))]
        return [(int(match["cpu"]), int(match["ts"].replace(".", ""))) for match in matches]

    @cached_property
    def formats(self) -> dict[str, list[Field]]:
        """Event (system:name) -> its fields, without the common ones."""
        found: dict[str, list[Field]] = {}
        systems = re.findall(
            r"^\s+(\S+) (\d+) \[system, events\]", self.trace_cmd("dump", "--systems"), re.MULTILINE
        )
        owners = iter([system for system, count in systems for _ in range(int(count))])
        current: list[Field] = []
        for line in self.trace_cmd("dump", "--events").splitlines():
            if line.startswith("name: "):
                current = found.setdefault(f"{next(owners)}:{line[6:]}", [])
            current += _fields(line)
        for line in self.trace_cmd("dump", "--ftrace-events").splitlines():
            if line.startswith("name: "):
                current = found.setdefault(f"ftrace:{line[6:]}", [])
            current += _fields(line)
        return found

    @cached_property
    def records(self) -> dict[str, list[tuple[RawEvent, dict[str, str]]]]:
        """Event (system:name) -> its records, each with what the report says of its fields."""
        named: dict[str, list[str]] = {}
        for event in self.formats:
            named.setdefault(event.partition(":")[2], []).append(event)
        found: dict[str, list[tuple[RawEvent, dict[str, str]]]] = {}
        for record in self.events:
            for event in named[record.name]:
                if (values := self._values(event, record)) is not None:
                    break
            else:  # a format that trace-cmd does not understand: its record counts
                assert len(named[record.name]) == 1, record
                values = {}
            found.setdefault(event, []).append((record, values))
        return found

    def _values(self, event: str, record: RawEvent) -> dict[str, str] | None:
        names = [field.name for field in self.formats[event]]
        pattern = " ".join(rf"{re.escape(name)}=(.*?)" for name in names)
        match = re.fullmatch(rf"\s*{pattern}\s*", record.text, re.DOTALL)
        return dict(zip(names, match.groups(), strict=True)) if match else None

    @cached_property
    def big_endian(self) -> bool:
        return "[Big endian]" in self.summary

    @cached_property
    def long_bytes(self) -> int:
        return self._number("Bytes in a long")

    @cached_property
    def page_bytes(self) -> int:
        return self._number("Page size, bytes")

    @cached_property
    def summary(self) -> str:
        return self.trace_cmd("dump", "--summary")

    def symbols_at(self, address: int) -> set[str]:
        """How trace-cmd can write the address: function, function and offset."""
        addresses, names = self._symbols
        index = bisect_right(addresses, address) - 1
        if index < 0:
            return set()
        return {names[index], f"{names[index]}+0x{address - addresses[index]:x}"}

    @cached_property
    def _symbols(self) -> tuple[list[int], list[str]]:
        pairs = sorted(
            (int(address, 16), name)
            for address, name in _SYMBOL.findall(self.trace_cmd("dump", "--kallsyms"))
        )
        return [address for address, _ in pairs], [name for _, name in pairs]

    @cached_property
    def strings(self) -> dict[int, str]:
        """Address -> constant string of the kernel (printk_formats)."""
        return {
            int(address, 16): text.encode().decode("unicode_escape")
            for address, text in _STRING.findall(self.trace_cmd("dump", "--printk"))
        }

    def _number(self, what: str) -> int:
        match = re.search(rf"(\d+)\s+\[{what}\]", self.summary)
        assert match is not None, self.summary
        return int(match[1])

    def trace_cmd(self, *arguments: str) -> str:
        """What a command of trace-cmd prints of the file."""
        result = subprocess.run(
            [require_program("trace-cmd"), *arguments, str(self.trace)],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
            timeout=GUARD_SECONDS,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout
