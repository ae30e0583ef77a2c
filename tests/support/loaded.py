# SPDX-License-Identifier: Apache-2.0
"""Databases of wbscope-ingest, opened."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
from pathlib import Path
from typing import Any

from .once import Once
from .report import Field, RawReport
from .tools import ingester_path, run
from .tracedat import Trace

__all__ = [
    "Ingested",
    "LoadedRun",
    "Value",
    "address_text",
    "mask_text",
    "recording",
    "refused",
    "same_value",
]


# Reads a run database as a test needs it, and compares values with trace-cmd's words for them.

Value = int | float | str | bytes | None
_BYTES_OF = {
    "char": 1, "u8": 1, "s8": 1, "__u8": 1, "bool": 1, "short": 2, "u16": 2, "s16": 2, "int": 4,
    "unsigned": 4, "u32": 4, "s32": 4, "u64": 8, "s64": 8,
}  # fmt: skip


def recording(folder: Path, once: Once) -> LoadedRun:
    """Every event of the trace in that folder, which is read once for all tests of a run."""

    def ingest(made: Path) -> None:
        command = [ingester_path(), "sqlite", folder / "trace.dat", "--all"]
        result = run([*command, "-o", made / "run.db"])
        assert result.returncode == 0, result.stderr

    return LoadedRun(once.made(f"recording-{folder.name}", ingest) / "run.db")


class LoadedRun:
    """A database that `wbscope ingest` wrote."""

    def __init__(self, database: Path) -> None:
        self._connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        self.meta = self._pairs("SELECT key, value FROM meta")
        self.stats = self._pairs("SELECT name, value FROM ingest_stats")
        tables = "SELECT event, table_name FROM event_counts WHERE table_name IS NOT NULL"
        self.tables = {str(event): str(table) for event, table in self.rows(tables)}
        self.buffers = {
            int(str(key)): str(name) for key, name in self.rows("SELECT id, name FROM buffer")
        }

    def _pairs(self, statement: str) -> dict[str, Value]:
        return {str(key): value for key, value in self.rows(statement)}

    def rows(self, statement: str, *arguments: Value) -> list[tuple[Value, ...]]:
        return self._connection.execute(statement, arguments).fetchall()

    def counts(self) -> dict[str, int]:
        """Event -> rows of its table."""
        return {
            event: int(str(self.rows(f'SELECT COUNT(*) FROM "{table}"')[0][0]))
            for event, table in self.tables.items()
        }

    def is_raw(self, event: str) -> bool:
        """Whether the event's table has the payload alone."""
        return self.rows("SELECT status FROM event_format WHERE event = ?", event) == [("raw",)]

    def records(self, event: str, names: list[str]) -> list[tuple[Value, ...]]:
        """(ts, cpu, tid, buffer name, the named fields...) of each record, in the order of seq."""
        fields = "SELECT field, column_name FROM event_field WHERE event = ?"
        columns = {str(field): str(column) for field, column in self.rows(fields, event)}
        wanted = "".join(f', "{columns[name]}"' for name in names)
        found = self.rows(
            f'SELECT ts, cpu, tid, buffer{wanted} FROM "{self.tables[event]}" ORDER BY seq'
        )
        return [(*row[:3], self.buffers[int(str(row[3]))], *row[4:]) for row in found]


def same_value(report: RawReport, field: Field, text: str, value: Value) -> bool:
    """Whether a column holds what `report -R` prints of that field."""
    if text.startswith("ARRAY["):
        recorded = bytes.fromhex(text[len("ARRAY[") : -1].replace(", ", ""))
        if field.size == 0 and not recorded:  # up to the end of the record: not printed
            return value is not None
        return _same_array(report, field, recorded, value)
    if isinstance(value, int):
        return _same_number(report, field, text, value)
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes):
        return False
    if field.type.startswith("struct ") and len(value) == field.size:  # printed as one number
        order = "big" if report.big_endian else "little"
        return int.from_bytes(value, order) in _readings(text)  # type: ignore[arg-type]
    if field.dynamic and not value:  # trace-cmd prints what lies behind an empty one
        return True
    shown = text.rstrip("\n").encode(errors="surrogateescape")
    stored = value.partition(b"\0")[0].rstrip(b"\n")
    if not field.dynamic and len(stored) == field.size:  # trace-cmd prints on to the next NUL
        return shown.startswith(stored)
    return stored == shown


def _same_array(report: RawReport, field: Field, recorded: bytes, value: Value) -> bool:
    if field.is_text and isinstance(value, str):
        return value == recorded.partition(b"\0")[0].decode(errors="replace")
    size = _element_bytes(field, report.long_bytes)
    if not isinstance(value, str):
        return value == recorded and (size == 1 or not recorded)
    order = "big" if report.big_endian else "little"
    numbers = [
        int.from_bytes(recorded[at : at + size], order, signed=field.signed)  # type: ignore[arg-type]
        for at in range(0, len(recorded), size)
    ]
    if re.fullmatch(r"\[[-\d,]*\]", value):
        return size > 1 and [_wrap(n, size) for n in json.loads(value)] == [
            _wrap(n, size) for n in numbers
        ]
    mask = sum(_wrap(number, size) << 8 * size * at for at, number in enumerate(numbers))
    return value in (mask_text(mask, len(recorded)), cpus_text(mask), address_text(recorded))


def mask_text(mask: int, size: int) -> str:
    """A bit mask as the kernel prints it: the highest bits first, a comma after each 32."""
    return ",".join(f"{mask >> 32 * at & 0xFFFFFFFF:08x}" for at in reversed(range(size // 4)))


def cpus_text(mask: int) -> str:
    """A CPU mask as numbers of CPUs, such as 0-3,7."""
    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    starts = [bit for bit in bits if bit - 1 not in bits]
    ends = [bit for bit in bits if bit + 1 not in bits]
    return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in zip(starts, ends, strict=True))


def address_text(recorded: bytes) -> str | None:
    """A sockaddr_in or sockaddr_in6 of a little-endian machine."""
    family, port = int.from_bytes(recorded[:2], "little"), int.from_bytes(recorded[2:4], "big")
    if family == socket.AF_INET:
        return f"{socket.inet_ntop(socket.AF_INET, recorded[4:8])}:{port}"
    if family == socket.AF_INET6:
        return f"[{socket.inet_ntop(socket.AF_INET6, recorded[8:24])}]:{port}"
    return None


def _wrap(number: int, size: int) -> int:
    return number % (1 << 8 * size)


def _same_number(report: RawReport, field: Field, text: str, value: int) -> bool:
    size = field.size or 8
    number = _wrap(value, size)
    if number in {_wrap(reading, size) for reading in _readings(text)}:
        return True
    return text == report.strings.get(number, "\n").rstrip("\n") or text in report.symbols_at(
        number
    )


def _readings(text: str) -> set[int]:
    """The numbers that a text can mean: the report prints as the event's own format does."""
    if text == "(nil)":
        return {0}
    readings = set()
    for base in (8, 10, 16):
        try:
            readings.add(int(text, base))
        except ValueError:
            continue
    return readings


def _element_bytes(field: Field, long_bytes: int) -> int:
    count = re.fullmatch(r"\[(\d+)\]", field.array)
    if count and not field.dynamic:
        return field.size // int(count[1])
    words = re.findall(r"\w+", field.type)
    if "long" in words:
        return long_bytes if words.count("long") == 1 else 8
    return next(_BYTES_OF[word] for word in reversed(words) if word in _BYTES_OF)


# Runs wbscope-ingest on a file and opens what it wrote.


class Ingested:
    """The database of a trace, with all events unless other arguments are given."""

    def __init__(self, source: Path | Trace, folder: Path, *arguments: str) -> None:
        if isinstance(source, Trace):
            source = source.write(folder / "trace.dat")
        database = folder / "ingested.db"
        command: list[str | Path] = [ingester_path(), "sqlite", source]
        command += ["-o", database, "--force", "--json-lines"]
        result = run([*command, *(arguments or ("--all",))])
        assert result.returncode == 0, result.stderr
        self.messages: list[dict[str, Any]] = [
            json.loads(line) for line in result.stderr.splitlines()
        ]
        self._database = sqlite3.connect(database)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._database.execute(statement).fetchall()

    def column(self, statement: str) -> list[Any]:
        """The first column of the rows."""
        return [row[0] for row in self.rows(statement)]

    def meta(self, key: str) -> Any:
        found = self.column(f"SELECT value FROM meta WHERE key = '{key}'")
        return found[0] if found else None

    def counter(self, name: str) -> int:
        (value,) = self.column(f"SELECT value FROM ingest_stats WHERE name = '{name}'")
        assert isinstance(value, int)
        return value


def refused(source: Path, folder: Path) -> dict[str, Any]:
    """The one error of a file that cannot be read; nothing may be written."""
    database = folder / "refused.db"
    command: list[str | Path] = [ingester_path(), "sqlite", source, "-o", database]
    command += ["--all", "--json-lines"]
    result = run(command)
    assert result.returncode == 3, result.stderr
    assert not database.exists()
    (line,) = result.stderr.splitlines()
    error: dict[str, Any] = json.loads(line)
    assert error["type"] == "error"
    return error
