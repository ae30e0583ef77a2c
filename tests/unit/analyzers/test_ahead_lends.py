# SPDX-License-Identifier: Apache-2.0
"""Two threads make tables of one another: what is claimed, lent and borrowed."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.waits import GUARD_SECONDS
from wbscope.library import ahead
from wbscope.library.definitions import Definition


def table_of(name: str, select: str) -> Definition:
    create, insert = f"CREATE TEMP TABLE {name} (n)", f"INSERT INTO {name}\n{select}"
    return Definition(name, (create, insert), is_table=True)


@pytest.fixture
def slow_to_begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """After the first table nothing is begun until this is set."""
    go_on = threading.Event()
    publish = ahead.Ahead._publish

    def wait(self: ahead.Ahead, *given: object) -> None:
        publish(self, *given)
        go_on.wait()

    monkeypatch.setattr(ahead.Ahead, "_publish", wait)
    yield go_on
    go_on.set()


NAMES = ["first", "second", "last", "base"]
NEEDS = {"first": [], "step": [], "second": ["step"], "base": ["ground"], "last": ["base"]}


def work_of(database: Path) -> ahead.Ahead:
    """`step` and `ground` cannot be made: they would end the work."""
    made = [
        table_of("first", "SELECT 1"),
        Definition("step", ("CREATE TEMP TABLE step AS SELECT * FROM nowhere",)),
        table_of("second", "SELECT n FROM step"),
        Definition("ground", ("CREATE TEMP TABLE ground AS SELECT * FROM nowhere",)),
        table_of("base", "SELECT n FROM ground"),
        table_of("last", "SELECT n + 1 FROM base"),
    ]
    return begun(ahead.Ahead(database, "run.db", made, NAMES, NEEDS | {"ground": []}))


def begun(working: ahead.Ahead) -> ahead.Ahead:
    working.start()
    return working


def claim_both(working: ahead.Ahead) -> None:
    assert working.claim(["second"]) == ("second", False)
    assert working.claim(["base"]) == ("base", True)


def rows_of(ready: ahead.Ready | None, name: str) -> list[Any]:
    assert ready is not None
    with contextlib.closing(sqlite3.connect(ready.uri, uri=True)) as memory:
        return memory.execute(f"SELECT n FROM {name}").fetchall()


def test_what_is_claimed_and_what_only_that_needs_is_not_made_here(
    database: Path, slow_to_begin: threading.Event
) -> None:
    working = work_of(database)
    try:
        assert working.table("first")
        assert working.claim(["first"]) is None, "begun"
        assert working.claim(["first", "second", "base"]) == ("second", False)
        assert working.claim(["second"]) is None, "once"
        assert working.claim(["first", "base"]) == ("base", True), "for another one"
        slow_to_begin.set()
        with contextlib.closing(sqlite3.connect(":memory:", uri=True)) as here:
            ready = ahead.published(here, table_of("base", "SELECT 2"), time.monotonic_ns())
            assert here.execute("SELECT n FROM base").fetchall() == [(2,)]
            working.lend("base", ready)
            assert rows_of(working.table("last"), "last") == [(3,)]
        assert working.table("second") is None
    finally:
        slow_to_begin.set()
        working.stop()


def test_what_is_made_of_a_table_that_cannot_be_lent_is_not_made_here(
    database: Path, slow_to_begin: threading.Event
) -> None:
    working = work_of(database)
    try:
        claim_both(working)
        slow_to_begin.set()
        working.lend("base", None)
        assert working.table("last") is None
    finally:
        slow_to_begin.set()
        working.stop()


def test_nobody_waits_for_what_is_never_lent(
    database: Path, slow_to_begin: threading.Event
) -> None:
    """Who claimed it was stopped by Ctrl-C, say."""
    working = work_of(database)
    claim_both(working)
    slow_to_begin.set()
    stopping = threading.Thread(target=working.stop, daemon=True)
    stopping.start()
    stopping.join(GUARD_SECONDS)
    assert not stopping.is_alive()
    assert not working._thread.is_alive()


def test_others_are_made_while_one_is_awaited(
    database: Path, slow_to_begin: threading.Event
) -> None:
    """But what is made of that one waits with it."""
    made = [
        table_of("first", "SELECT 1"),
        table_of("base", "SELECT n FROM nowhere"),
        table_of("last", "SELECT n + 1 FROM base"),
        table_of("end", "SELECT n + 1 FROM last"),
        table_of("other", "SELECT 7"),
    ]
    names = ["first", "base", "last", "end", "other"]
    needs = {"first": [], "base": [], "last": ["base"], "end": ["last"], "other": []}
    working = begun(ahead.Ahead(database, "run.db", made, names, needs))
    try:
        assert working.table("first")
        assert working.claim(["base"]) == ("base", True)
        slow_to_begin.set()
        assert rows_of(working.table("other"), "other") == [(7,)]
        assert not working._told["last"].is_set()
        assert not working._told["end"].is_set()
        with contextlib.closing(sqlite3.connect(":memory:", uri=True)) as here:
            working.lend(
                "base", ahead.published(here, table_of("base", "SELECT 2"), time.monotonic_ns())
            )
            assert rows_of(working.table("end"), "end") == [(4,)]
    finally:
        slow_to_begin.set()
        working.stop()


def test_a_table_that_is_too_large_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_MOST_PAGES", 3)
    many = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 100000)"
    large = table_of("large", f"{many} SELECT n FROM c")
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as here:
        with pytest.raises(sqlite3.OperationalError, match="full"):
            ahead.published(here, large, time.monotonic_ns())
        assert not here.in_transaction
        assert [row[1] for row in here.execute("PRAGMA database_list")] == ["main"]


def test_time_that_is_waited_for_a_lent_table_is_no_time_of_a_question(
    database: Path, slow_to_begin: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    within: list[str] = []
    now = [1]
    waits = threading.Event()

    @contextlib.contextmanager
    def noted(_: sqlite3.Connection) -> Iterator[None]:
        within.append("in")
        yield
        within.append("out")

    class Awaited(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.set()
            return super().wait(timeout)

    monkeypatch.setattr(ahead, "stoppable", noted)
    monkeypatch.setattr(ahead, "time", SimpleNamespace(monotonic_ns=lambda: now[0]))
    working = work_of(database)
    try:
        claim_both(working)
        working._told["base"] = Awaited()
        slow_to_begin.set()
        assert waits.wait(GUARD_SECONDS)
        now[0] += 10**12
        assert within.count("in") == within.count("out")
        with contextlib.closing(sqlite3.connect(":memory:", uri=True)) as here:
            ready = ahead.published(here, table_of("base", "SELECT 2"), now[0])
            working.lend("base", ready)
            told = working.table("last")
            assert told is not None
            assert told.elapsed_ns == 0, "of its own work only"
    finally:
        working.stop()


def many(database: Path, needs: Mapping[str, Sequence[str]]) -> ahead.Ahead:
    """Tables, each of the number that its needs make it."""
    made = []
    for name, parts in needs.items():
        joined = " CROSS JOIN ".join(parts) or "(SELECT 0)"
        made.append(table_of(name, f"SELECT 1 + count(*) FROM {joined}"))
    return begun(ahead.Ahead(database, "run.db", made, list(needs), needs))


def test_more_tables_than_can_be_attached(database: Path) -> None:
    """What nothing else is made of is let go, and can be read all the same."""
    names = [f"t{number}" for number in range(40)]
    needs = {name: [names[0], names[max(n - 1, 1)]] for n, name in enumerate(names) if n > 1}
    working = many(database, {names[0]: [], names[1]: [], **needs})
    try:
        for name in names:
            assert rows_of(working.table(name), name) == [(2,)]
    finally:
        working.stop()
    assert all(working.table(name) is None for name in names)


def test_a_table_made_of_more_than_can_be_attached(database: Path) -> None:
    """It is not made here, and nobody waits for it."""
    names = [f"t{number}" for number in range(12)]
    working = many(database, {**dict.fromkeys(names, ()), "all": names, "other": []})
    try:
        assert rows_of(working.table("t9"), "t9") == [(2,)]
        assert working.table("all") is None
    finally:
        working.stop()


def test_all_tables_together_have_so_much_memory(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "_ALL_PAGES", 8)
    names = [f"t{number}" for number in range(8)]
    working = many(database, dict.fromkeys(names, ()))
    try:
        assert rows_of(working.table("t1"), "t1") == [(2,)]
        assert working.table("t7") is None
    finally:
        working.stop()


def test_another_file_than_was_meant_is_not_read(database: Path) -> None:
    """And nobody waits for what is not made of it."""
    made = [table_of("first", "SELECT 1")]
    working = begun(
        ahead.Ahead(database, "run.db", made, ["first"], {"first": []}, is_same=lambda: False)
    )
    try:
        assert working.table("first") is None
        working._thread.join(GUARD_SECONDS)
        assert working.has_ended
        assert working.claim(["first"]) is None
    finally:
        working.stop()
