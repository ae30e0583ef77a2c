# SPDX-License-Identifier: Apache-2.0
"""Runs wbscope-ingest on a file and opens what it wrote."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from .tools import ingester_path, run
from .tracedat import Trace

__all__ = ["Ingested", "refused"]


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
