# SPDX-License-Identifier: Apache-2.0
"""The extension server's files as the Perfetto UI reads them, and what it does with a command."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import Any

from .perfetto_engine import PerfettoEngine
from .runs import REPOSITORY

__all__ = ["EXTENSION", "SOURCE", "Drawn", "macros", "run_macro", "sql_modules"]

EXTENSION = REPOSITORY / "ui" / "extension"
SOURCE = tomllib.loads((REPOSITORY / "ui" / "macros.toml").read_text(encoding="utf-8"))

_PREFIX = "dev.perfetto."


@dataclass(frozen=True)
class Drawn:
    """What one command shows: a slice or counter track for each pivot value, or a table."""

    command: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def macros() -> dict[str, dict[str, Any]]:
    """The macros by id."""
    text = (EXTENSION / "modules" / "default" / "macros").read_text(encoding="utf-8")
    return {macro["id"]: macro for macro in json.loads(text)["macros"]}


def sql_modules() -> dict[str, str]:
    """The SQL modules by name."""
    text = (EXTENSION / "modules" / "default" / "sql_modules").read_text(encoding="utf-8")
    return {module["name"]: module["sql"] for module in json.loads(text)["sql_modules"]}


def run_macro(engine: PerfettoEngine, macro: dict[str, Any]) -> list[Drawn]:
    """Do what the UI asks its engine for; the tracks, in order."""
    drawn = []
    for command in macro["run"]:
        name = command["id"].removeprefix(_PREFIX)
        sql, *more = command["args"]
        if name == "RunQuery":
            engine.query(sql)
        elif name == "RunQueryAndShowTab":
            columns, rows = engine.table(sql)
            drawn.append(Drawn(name, more[0], tuple(columns), rows))
        elif name == "AddDebugSliceTrackWithPivot":
            drawn.append(_track(engine, name, sql, *more, ["ts", "CAST(dur AS INT)", "name"]))
        elif name == "AddDebugCounterTrackWithPivot":
            drawn.append(_track(engine, name, sql, *more, ["ts", "value"]))
    return drawn


def _track(
    engine: PerfettoEngine, name: str, sql: str, pivot: str, title: str, columns: list[str]
) -> Drawn:
    """A table, as the UI makes it: typed by column, which refuses mixed columns."""
    selected = ", ".join([f"{column} AS c{i}" for i, column in enumerate(columns)])
    engine.query("DROP TABLE IF EXISTS macro_track")
    engine.query(
        f"CREATE PERFETTO TABLE macro_track AS WITH data AS ({sql})"
        f" SELECT {selected}, {pivot} AS pivot FROM data ORDER BY ts"
    )
    shown = ("ts", "dur", "name") if len(columns) == 3 else ("ts", "value")
    _, rows = engine.table("SELECT * FROM macro_track")
    return Drawn(name, title, (*shown, "pivot"), rows)
