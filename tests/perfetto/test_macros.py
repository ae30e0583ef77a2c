# SPDX-License-Identifier: Apache-2.0
"""Every macro of ui/ on traces as Perfetto's recorder writes them, in the real engine.

What a macro draws is compared with the same SQL over the run's SQLite database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from support.macros import SOURCE, Drawn, macros, run_macro, sql_modules
from support.parity import assert_same
from support.perfetto_engine import PerfettoEngine
from support.runs import REPOSITORY
from support.twins import Twin
from wbscope.library.library import load_library
from wbscope.perfetto.package import PACKAGE
from wbscope.run.run import Run, open_run

MACROS = macros()
LIBRARY = load_library(REPOSITORY / "sql")
EXAMPLES = ("deep", "reclaim-writes")
# What must be there to see in some example.
WITHOUT_TRACKS = {f"{PACKAGE}.Doubts"}
OWN_NAME = re.compile(rf"\b{PACKAGE}_(\w+)\b")


@dataclass(frozen=True)
class Recorded:
    """A trace by Perfetto in the engine, with the extension server's modules."""

    engine: PerfettoEngine
    sqlite: Run
    drawn: dict[str, list[Drawn]]


@pytest.fixture(scope="module", params=EXAMPLES)
def recorded(request: pytest.FixtureRequest, twin_of: Callable[[str], Twin]) -> Iterator[Recorded]:
    twin = twin_of(request.param)
    with open_run(twin.recorded_db) as run, PerfettoEngine() as engine:
        engine.load(twin.trace)
        engine.register(PACKAGE, sql_modules())
        yield Recorded(engine, run, {id: run_macro(engine, MACROS[id]) for id in MACROS})


def sources(name: str) -> list[dict[str, Any]]:
    """The steps of a macro's source."""
    (entry,) = (entry for entry in SOURCE["macro"] if f"{PACKAGE}.{entry['id']}" == name)
    steps: list[dict[str, Any]] = entry["steps"]
    return steps


def portable(sql: str) -> str:
    """For SQLite: the queries and the macros' own views are made of their SELECTs."""
    needed: dict[str, str] = {}
    waiting = OWN_NAME.findall(sql)
    while waiting:
        name = waiting.pop()
        select = own_select(name)
        if name not in needed:
            needed[name] = select
            waiting += OWN_NAME.findall(select)
    if not needed:
        return sql.strip()
    made = ",\n".join(f"{PACKAGE}_{name} AS ({needed[name]})" for name in reversed(needed))
    return f"WITH {made}\n{sql.strip()}"


def own_select(name: str) -> str:
    if name in LIBRARY.files:
        return LIBRARY.files[name].select
    for module in SOURCE["module"]:
        head = rf"CREATE PERFETTO (?:VIEW|TABLE) {PACKAGE}_{name}\(.*?\n\) AS\n(.*);"
        if found := re.search(head, module["sql"], re.DOTALL):
            return found[1]
    raise AssertionError(f"{PACKAGE}_{name} is no query and no view of a macro")


@pytest.mark.parametrize("name", MACROS)
def test_draws_what_sqlite_answers(recorded: Recorded, name: str) -> None:
    for step, drawn in zip(sources(name), recorded.drawn[name], strict=True):
        if "table" in step:
            assert drawn.title == step["table"]
            continue
        columns = "ts, dur, name" if "slices" in step else "ts, value"
        sql = f"SELECT {columns}, {step['each']} FROM (\n{portable(step['sql'])}\n)"
        theirs = sorted(recorded.sqlite.sql(sql).rows)
        assert_same(drawn.columns, sorted(drawn.rows), theirs)


@pytest.mark.parametrize("name", MACROS)
def test_tables_are_the_queries(recorded: Recorded, name: str) -> None:
    """Their rows are compared in test_parity.py."""
    tables = [drawn for drawn in recorded.drawn[name] if drawn.command == "RunQueryAndShowTab"]
    assert tables
    assert all(table.columns for table in tables)


@pytest.mark.parametrize("name", MACROS)
def test_tracks_have_names_and_times(recorded: Recorded, name: str) -> None:
    for drawn in recorded.drawn[name]:
        if drawn.command == "RunQueryAndShowTab":
            continue
        for row in drawn.rows:
            assert isinstance(row[0], int)
            assert row[-1], "a track without a name stops the UI"
            if drawn.command.startswith("AddDebugSlice"):
                assert row[1] >= 0
                assert row[2]
            else:
                assert isinstance(row[1], float)


def test_there_is_something_to_see(recorded: Recorded) -> None:
    """Each macro draws something, but what this run has not."""
    empty = {
        name
        for name, drawn in recorded.drawn.items()
        if not any(d.rows for d in drawn if d.command != "RunQueryAndShowTab")
    }
    assert empty - WITHOUT_TRACKS <= {f"{PACKAGE}.{n}" for n in ("Reclaim", "BlockRequests")}
