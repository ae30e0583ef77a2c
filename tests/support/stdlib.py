# SPDX-License-Identifier: Apache-2.0
"""ui/perfetto-stdlib and macros of ui/ in the engine."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .pftrace import PerfettoEngine
from .runs import REPOSITORY

__all__ = [
    "DIFF_TESTS",
    "ENDLESS",
    "EXTENSION",
    "FTRACE_EVENTS",
    "HOME",
    "OBJECTS",
    "PUBLIC",
    "SOURCE",
    "SOURCES",
    "STDLIB",
    "TRACES",
    "DataPath",
    "Drawn",
    "Object",
    "StdlibEngine",
    "as_csv",
    "code_of",
    "load_file",
    "macros",
    "run_macro",
    "runs_a_statement",
    "sql_modules",
    "trace_of",
]


# ui/perfetto-stdlib for tests: its modules in the real engine, its diff tests, its objects.

HOME = REPOSITORY / "ui" / "perfetto-stdlib"
STDLIB = HOME / "src" / "trace_processor" / "perfetto_sql" / "stdlib"
SUITE = HOME / "test/trace_processor/diff_tests/stdlib/linux/writeback_tests.py"
TRACES = HOME / "test" / "data"
FTRACE_EVENTS = HOME / "src/tools/ftrace_proto_gen/event_list.additions"
SOURCES = {
    ".".join(path.relative_to(STDLIB).with_suffix("").parts): path.read_text()
    for path in sorted(STDLIB.rglob("*.sql"))
}
# What includes all the others.
TOPS = ("linux.writeback.fairness", "linux.writeback.reclaim")


class StdlibEngine(PerfettoEngine):
    """With our modules in place of the package `linux` that the engine has."""

    def open(self, trace: Path) -> None:
        """Forget the trace before and all that was made of it."""
        methods = self._protos.TraceProcessorRpc
        self._call(methods.TPM_RESET_TRACE_PROCESSOR)
        self.load(trace)
        message = self._protos.TraceProcessorRpcStream()
        request = message.msg.add(request=methods.TPM_REGISTER_SQL_PACKAGE)
        arguments = request.register_sql_package_args
        arguments.package_name = "linux"
        arguments.allow_override = True
        for name, sql in SOURCES.items():
            arguments.modules.add(name=name, sql=sql)
        self._send(message)
        assert not self._receive().register_sql_package_result.error

    def include_all(self) -> None:
        for module in TOPS:
            self.query(f"INCLUDE PERFETTO MODULE {module}")


@dataclass
class TextProto:
    contents: str


@dataclass
class DataPath:
    filename: str


@dataclass
class Csv:
    contents: str


@dataclass
class DiffTestBlueprint:
    trace: TextProto | DataPath
    query: str
    out: Csv


class TestSuite:
    __test__ = False  # for pytest


def load_file(path: Path) -> Any:
    """A Python file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_suite() -> Any:
    """The class of the diff tests; what they import from Perfetto's tree is stood in for."""
    names = ["python", "python.generators", "python.generators.diff_tests"]
    stand_in = ModuleType(f"{names[-1]}.testing")
    for part in (TextProto, DataPath, Csv, DiffTestBlueprint, TestSuite):
        setattr(stand_in, part.__name__, part)
    modules = {**{name: ModuleType(name) for name in names}, stand_in.__name__: stand_in}
    with pytest.MonkeyPatch.context() as patch:
        for name, module in modules.items():
            patch.setitem(sys.modules, name, module)
        return load_file(SUITE).LinuxWriteback()


DIFF_TESTS: dict[str, Callable[[], DiffTestBlueprint]] = {
    name: method
    for name, method in inspect.getmembers(load_suite(), inspect.ismethod)
    if name.startswith("test_")
}


def trace_of(blueprint: DiffTestBlueprint, folder: Path) -> Path:
    if isinstance(blueprint.trace, DataPath):
        return TRACES / blueprint.trace.filename
    from google.protobuf import text_format
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace = text_format.Parse(blueprint.trace.contents, protos.Trace())
    file = folder / "trace.pftrace"
    file.write_bytes(trace.SerializeToString())
    return file


def as_csv(columns: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    """As trace_processor_shell prints an answer."""

    def cell(value: Any) -> str:
        if value is None:
            return '"[NULL]"'
        if isinstance(value, float):
            return f"{value:f}"
        return str(value) if isinstance(value, int) else f'"{value}"'

    return [",".join(map(cell, row)) for row in [tuple(columns), *rows]]


@dataclass(frozen=True)
class Object:
    """A CREATE PERFETTO of a module, with its documentation."""

    kind: str
    name: str
    description: str
    columns: dict[str, tuple[str, str]]
    """By name: type and comment; arguments, of a macro."""

    @property
    def is_public(self) -> bool:
        return not self.name.startswith("_")


_CREATE = re.compile(
    r"((?:^--.*\n)*)^CREATE PERFETTO (TABLE|VIEW|FUNCTION|MACRO) (\w+)(?:\(\n([\s\S]*?)^\))?",
    re.MULTILINE,
)
_COLUMN = re.compile(r"((?:^  -- .*\n)*)^  (\w+) ([\w.()]+),?\n", re.MULTILINE)


def objects(sql: str) -> list[Object]:
    made = []
    for comment, kind, name, schema in _CREATE.findall(sql):
        columns = {column: (type_, text) for text, column, type_ in _COLUMN.findall(schema)}
        assert "".join("".join(found) for found in _COLUMN.findall(schema)) or not schema
        assert len(re.findall(r"^  \w", schema, re.MULTILINE)) == len(columns)
        made.append(Object(kind, name, comment, columns))
    return made


OBJECTS = {module: objects(sql) for module, sql in SOURCES.items()}
PUBLIC = [made for found in OBJECTS.values() for made in found if made.is_public]


def code_of(sql: str) -> str:
    return re.sub(r"--.*", "", sql)


# The extension server's files as the Perfetto UI reads them, and what it does with a command.

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


# A statement without an end, and whether it runs.

# UNION knows all rows so far: after the first some ten thousand SQLite writes them to a file.
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT max(i) FROM n"


def runs_a_statement(pid: int) -> bool:
    """Whether a process is so far in that statement that SQLite has such a file."""
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        with suppress(OSError):  # a file that was closed meanwhile
            if "etilqs_" in os.readlink(f"{folder}/{name}"):
                return True
    return False
