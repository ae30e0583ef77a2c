# SPDX-License-Identifier: Apache-2.0
"""Writes the record stream that `wbscope-ingest records` reads.

Its form is told in ingest/src/records/record_stream.h.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

__all__ = ["SEVERITIES", "FieldSpec", "RecordStream"]

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
