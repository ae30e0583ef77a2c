# SPDX-License-Identifier: Apache-2.0
"""Writes the record stream that `wbscope-ingest records` reads.

Its form is told in ingest/src/records/record_stream.h.

A Perfetto trace has names and numbers of fields only. The captured formats tell the system of an
event, the C types of its fields, and words for numbers where the kernels around the traced one
agree on them.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO, Final

from wbscope.ingest.program import Format, captured

_MAGIC: Final = b"WBREC\0\0\1"
_META, _EVENT, _ROWS, _TASK, _LOST, _LABEL, _STAT, _CPU_STAT, _DAMAGE, _END = range(1, 11)
_INT64_MAX: Final = (1 << 63) - 1
_INT64_MIN: Final = -(1 << 63)

SEVERITIES: Final = {"info": 0, "notice": 0, "error": 1, "data_loss": 2}


@dataclass(frozen=True)
class FieldSpec:
    """A column: the kernel's name and C type ("" = not known)."""

    name: str
    type: str
    is_device: bool = False


class RecordStream:
    """Frames, in any order that has an event before its rows; end() makes it whole."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._events = 0
        out.write(_MAGIC)

    def meta(self, key: str, value: str | int) -> None:
        """A row of meta."""
        if isinstance(value, str):
            self._frame(_META, _text(key) + b"\1" + _text(value))
        else:
            self._frame(_META, _text(key) + b"\0" + _integer(value))

    def event(self, system: str, name: str, count: int, fields: Sequence[FieldSpec] = ()) -> int:
        """Declare an event; the number to name it by."""
        parts = [_text(system), _text(name), struct.pack("<QI", count, len(fields))]
        for field in fields:
            parts += [_text(field.name), _text(field.type), bytes([field.is_device])]
        self._frame(_EVENT, b"".join(parts))
        self._events += 1
        return self._events - 1

    def rows(self, event: int, batch: bytes) -> None:
        """A CellsBatch with the columns seq, ts, cpu, tid and the event's fields."""
        self._frame(_ROWS, struct.pack("<I", event), batch)

    def task(self, tid: int, comm: str, first_ts: int, last_ts: int, count: int) -> None:
        """A thread and its records."""
        self._frame(_TASK, struct.pack("<iqqQ", tid, first_ts, last_ts, count) + _text(comm))

    def lost(self, ts: int, cpu: int | None, count: int | None) -> None:
        """A place where records are missing."""
        numbers = (ts, -1 if cpu is None else cpu, -1 if count is None else count)
        self._frame(_LOST, b"".join(map(_integer, numbers)))

    def label(self, event: int, field: str, value: int, label: str, is_flag: bool) -> None:
        """A word for a value."""
        body = struct.pack("<I", event) + _text(field) + _integer(value)
        self._frame(_LABEL, body + _text(label) + bytes([is_flag]))

    def stat(self, name: str, severity: str, value: int, description: str) -> None:
        """A row of ingest_stats."""
        body = _text(name) + bytes([SEVERITIES.get(severity, 1)])
        self._frame(_STAT, body + _integer(value) + _text(description))

    def cpu_stat(self, cpu: int, key: str, value: int) -> None:
        """A row of cpu_stat."""
        self._frame(_CPU_STAT, struct.pack("<I", cpu) + _text(key) + _integer(value))

    def damage(self, text: str) -> None:
        """What could not be read."""
        self._frame(_DAMAGE, _text(text))

    def end(self) -> None:
        """Nothing is kept without it."""
        self._frame(_END)
        self._out.flush()

    def _frame(self, kind: int, *parts: bytes) -> None:
        self._out.write(struct.pack("<BI", kind, sum(map(len, parts))))
        for part in parts:
            self._out.write(part)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", errors="replace")
    return struct.pack("<I", len(data)) + data


def _integer(value: int) -> bytes:
    return struct.pack("<q", max(min(value, _INT64_MAX), _INT64_MIN))


_FIELD = re.compile(r"^\s*field:(?P<declaration>[^;]+);")
_DECLARED = re.compile(r"^(?P<type>.*?)(?P<name>\w+)(?P<array>\[[^\]]*\])?$")
_NUMBER = r"-?(?:0[xX][0-9a-fA-F]+|\d+)"
_PAIR = re.compile(rf'\{{\s*(?P<value>{_NUMBER})[uUlL]*\s*,\s*"(?P<label>[^"]*)"\s*\}}')
_TABLE = re.compile(
    rf"__print_(?P<kind>symbolic|flags)\(\s*REC->(?P<field>\w+)\s*,"
    rf'(?:\s*"[^"]*"\s*,)?(?P<pairs>(?:\s*\{{\s*{_NUMBER}[uUlL]*\s*,\s*"[^"]*"\s*\}}\s*,?)+)\s*\)'
)
_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")

Version = tuple[int, int, int]


@dataclass(frozen=True)
class Label:
    """A word for a value of a field, or for one bit of it."""

    field: str
    value: int
    label: str
    is_flag: bool


@dataclass(frozen=True)
class Reference:
    """One kernel's format of an event."""

    types: dict[str, str]  # field: C type, in the kernel's order
    labels: frozenset[Label]


class References:
    """The captured formats, those of the kernels next to the traced one first."""

    def __init__(self, files: dict[str, dict[str, dict[Version, Format]]], release: str) -> None:
        self._files = files  # name: system: version
        self._systems = {system for systems in files.values() for system in systems}
        self._version = _version(release)

    def system_of(self, name: str) -> str:
        """The only system with an event of this name, else the system that the name starts with
        (block_touch_buffer), as kernel events are named; an empty text if there is none."""
        systems = list(self._files.get(name, {}))
        if len(systems) == 1:
            return systems[0]
        first = name.partition("_")[0]
        return first if not systems and first in self._systems else ""

    def events_of(self, system: str) -> list[str]:
        """The events of a system in the format folder nearest to the traced kernel."""
        versions = {v for systems in self._files.values() for v in systems.get(system, {})}
        nearest = self._around(versions)[:1]
        return sorted(
            name
            for name, systems in self._files.items()
            if any(version in systems.get(system, {}) for version in nearest)
        )

    def types(self, system: str, name: str) -> dict[str, str]:
        """The C type of each field, from the nearest kernel that has the field."""
        types: dict[str, str] = {}
        for reference in self._ordered(system, name):
            for field, kind in reference.types.items():
                types.setdefault(field, kind)
        return types

    def labels(self, system: str, name: str) -> list[Label]:
        """The words that the kernels on both sides of the traced one agree on."""
        files = self._files.get(name, {}).get(system, {})
        around = self._around(files) if self._version else sorted(files)
        agreed: frozenset[Label] | None = None
        for version in around[:2] if self._version else around:
            labels = _read(files[version]).labels
            agreed = labels if agreed is None else agreed & labels
        return sorted(agreed or (), key=lambda label: (label.field, label.value, label.label))

    def labels_by_version(self, system: str, name: str) -> dict[tuple[int, int], frozenset[Label]]:
        """The words in each captured format, the last one of a release."""
        files = self._files.get(name, {}).get(system, {})
        return {version[:2]: _read(files[version]).labels for version in sorted(files)}

    def _ordered(self, system: str, name: str) -> Iterable[Reference]:
        files = self._files.get(name, {}).get(system, {})
        nearest = self._around(files)
        rest = sorted((v for v in files if v not in nearest), reverse=True)
        return (_read(files[version]) for version in [*nearest, *rest])

    def _around(self, versions: Iterable[Version]) -> list[Version]:
        """One of the traced release alone, else the last one before it and the first after."""
        ordered = sorted(versions)
        if self._version is None:
            return ordered[-1:]
        release = self._version[:2]
        if same := [v for v in ordered if v[:2] == release]:
            return same[-1:]
        before = [v for v in ordered if v[:2] < release]
        after = [v for v in ordered if v[:2] > release]
        return before[-1:] + after[:1]


def load_references(release: str) -> References:
    """For a kernel release as uname -r prints it, "" when it is not known."""
    files: dict[str, dict[str, dict[Version, Format]]] = defaultdict(lambda: defaultdict(dict))
    for found in captured():
        if (version := _version(found.kernel)) is not None:
            files[found.name][found.system][version] = found
    return References({name: dict(systems) for name, systems in files.items()}, release)


def _version(release: str) -> Version | None:
    match = _VERSION.match(release)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


@cache
def _read(found: Format) -> Reference:
    text = found.text
    types: dict[str, str] = {}
    for line in text.splitlines():
        field = _FIELD.match(line)
        declared = _DECLARED.match(field["declaration"].strip()) if field else None
        if declared and not declared["name"].startswith("common_"):
            types[declared["name"]] = declared["type"].strip() + (declared["array"] or "")
    labels = {
        Label(table["field"], int(pair["value"], 0), pair["label"], table["kind"] == "flags")
        for table in _TABLE.finditer(text)
        for pair in _PAIR.finditer(table["pairs"])
    }
    return Reference(types, frozenset(labels))
