# SPDX-License-Identifier: Apache-2.0
"""Text traces, and runs that are made of them."""

from __future__ import annotations

import contextlib
import io
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import wbscope
from wbscope.explain.remedy import prove
from wbscope.ingest.program import reference_formats
from wbscope.library.finding import Finding
from wbscope.library.library import load_library

from .tools import ingester_path, plan_option, run

__all__ = [
    "Loaded",
    "TextRun",
    "load",
    "load_binary",
    "load_lines",
    "proven_findings",
    "refusal",
    "sent_archive",
    "table_rows",
]


# Traces that are text: databases made from them, and rows to compare.

Row = dict[str, Any]


class Loaded:
    """A database and what was said while it was made."""

    def __init__(self, path: Path, said: str) -> None:
        self.path = path
        self.said = said

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            return db.execute(statement, values).fetchall()

    def rows(self, event: str) -> list[Row]:
        """The records of an event, in order; [] when it has no table."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            return table_rows(db, event)

    def meta(self) -> dict[str, Any]:
        return dict(self.sql("SELECT key, value FROM meta"))

    def counters(self) -> dict[str, int]:
        return dict(self.sql("SELECT name, value FROM ingest_stats WHERE value > 0"))

    def events(self) -> list[str]:
        rows = self.sql("SELECT event FROM event_counts WHERE count > 0 ORDER BY event")
        return [event for (event,) in rows]


def table_rows(db: sqlite3.Connection, event: str) -> list[Row]:
    found = db.execute(
        "SELECT table_name FROM event_format WHERE event = ? AND table_name IS NOT NULL", (event,)
    ).fetchone()
    if found is None:
        return []
    cursor = db.execute(f'SELECT * FROM "{found[0]}" ORDER BY seq')
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    # A link between rows is no field of a record.
    return [
        {name: row[name] for name in names if name not in ("prev_seq", "repeats_count")}
        for row in rows
    ]


def _ingest(source: Path, database: Path, *options: str) -> Any:
    formats = database.with_suffix(".formats")
    formats.write_text("".join(reference_formats()), encoding="utf-8")
    command = [ingester_path(), "sqlite", source, "-o", database, "--formats", formats]
    plan = plan_option(database, load_library().load_plan())
    return run([*command, *plan, *(options or ("--all",))])


def load(source: Path, database: Path, *options: str) -> Loaded:
    """Ingest a file with the packaged reference formats; every event, unless options say."""
    done = _ingest(source, database, *options)
    assert done.returncode == 0, done.stderr
    return Loaded(database, done.stderr)


def load_binary(source: Path, database: Path, *options: str) -> Loaded:
    """Ingest a trace.dat with the links between rows that queries need."""
    command = [ingester_path(), "sqlite", source, "-o", database]
    plan = plan_option(database, load_library().load_plan())
    done = run([*command, *plan, *(options or ("--all",))])
    assert done.returncode == 0, done.stderr
    return Loaded(database, done.stderr)


def load_lines(lines: list[str] | bytes, folder: Path, *options: str) -> Loaded:
    """Ingest these lines."""
    source = folder / "lines.txt"
    content = lines if isinstance(lines, bytes) else "".join(f"{x}\n" for x in lines).encode()
    source.write_bytes(content)
    return load(source, folder / "lines.db", *options)


def refusal(content: bytes, folder: Path) -> tuple[int, str]:
    """Exit code and message for a file that is no trace; nothing may be left behind."""
    source = folder / "lines.txt"
    source.write_bytes(content)
    done = _ingest(source, folder / "lines.db")
    assert not (folder / "lines.db").exists()
    return done.returncode, done.stderr


# A run written by hand: a trace as text with files beside it, or what another machine sends.

_EVENTS = "tracefs/events"
_HEADER_PAGE = (
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
)
_FACTS = (
    "profile custom",
    'command ["true"]',
    "clock boot",
    "buffer_kib 64",
    "started 100\nended 200",
    "waits synthetic\nwaits_missed 2",
)
_SENT = {
    "facts": "\n".join(_FACTS) + "\n",
    "events": "xhci-hcd:one\n",
    f"{_EVENTS}/header_page": _HEADER_PAGE,
    f"{_EVENTS}/xhci-hcd/one/format": 'name: one\nID: 7\nformat:\n\nprint fmt: ""\n',
    "elf": "\x7fELF\x02\x01",
    "comms": "",
    "saved_cmdlines": "7 dd\n",
    "cpu0.pages": "0" * 4096,
    "cpu2.pages": "2" * 4096,
    "cpu0.stats": "overrun: 3\n",
    "run/uname": "Linux board 6.1.0\n",
}


class TextRun:
    """Events, each at its time in seconds, and files beside them."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, str]] = []
        self.files: dict[str, str] = {}

    def event(self, ts: float, task: str, *told: str) -> None:
        """`told` is the event and its fields, in one text or in two."""
        self._lines.append((ts, f"{task} [000] {ts:.6f}: {': '.join(told)}"))

    def write(self, folder: Path) -> Path:
        made = folder / "run"
        made.mkdir()
        lines = "".join(f"{line}\n" for _, line in sorted(self._lines))
        (made / "trace.txt").write_text(lines)
        for name, text in self.files.items():
            (made / name).write_text(text)
        return made


def proven_findings(path: Path, *, one_each: bool = True) -> dict[str, Finding]:
    """By id, one of each (else the last), and all with numbers that their evidence has."""
    with wbscope.open(path) as run:
        found = run.findings()
        for one in found:
            assert all(proven.holds for proven in prove(run, one)), one
    by_id = {one.id: one for one in found}
    assert len(by_id) == len(found) or not one_each
    return by_id


def sent_archive(**more: str) -> bytes:
    """What the script of record --print writes on a machine with one event, and more files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, text in (_SENT | more).items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()
