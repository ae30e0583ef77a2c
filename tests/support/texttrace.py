# SPDX-License-Identifier: Apache-2.0
"""Traces that are text: databases made from them, and rows to compare."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from wbscope.ingest.program import reference_formats
from wbscope.library.library import load_library

from .tools import ingester_path, plan_option, run

__all__ = ["Loaded", "load", "load_binary", "load_lines", "refusal", "table_rows"]

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
