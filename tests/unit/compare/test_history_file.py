# SPDX-License-Identifier: Apache-2.0
"""The file of a history: what it keeps, what it refuses, and that it is whole or as before."""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from support.rundata import LEVEL, RATE, TIME, WRITES, lost, metric, run
from wbscope.base.errors import InputError, SetupError, UsageError, WbscopeError
from wbscope.compare.history import Place, add_runs, parse_date, read_history
from wbscope.compare.rundata import RunData, Session

DAY = datetime(2026, 11, 3, 14, tzinfo=timezone(timedelta(hours=2)))
PLACE = Place("abc1234", DAY, "main")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def a_run(name: str = "a", **more: Any) -> RunData:
    return run(name, {TIME: 1.5e9, RATE: 1e6, LEVEL: None}, **more)


def test_a_run_comes_back_as_it_was_but_for_what_nobody_knows(file: Path) -> None:
    given = a_run(
        definitions={"time.txt": "0123"},
        zeros={"stalls.count": 0.0},
        session=Session("boot:1", 5),
        **lost(),
    )
    assert add_runs(file, [given], PLACE) == ([given], [])
    (entry,) = read_history(file)
    assert entry.place == Place("abc1234", DAY.astimezone(UTC), "main")
    assert entry.session == "boot:1"
    back = entry.run
    assert dict(back.scalars) == {
        TIME.name: (TIME, 1.5e9),
        RATE.name: (RATE, 1e6),
    }
    assert (back.name, back.source_id) == (given.name, given.source_id)
    assert (back.fingerprint, back.zeros) == (given.fingerprint, given.zeros)
    assert (back.definitions, back.warnings) == (given.definitions, given.warnings)


def test_what_sqlite_reads_without_wbscope(file: Path) -> None:
    add_runs(file, [a_run(facts={"kernel": "6.12"})], PLACE)
    with sqlite3.connect(file) as database:
        rows = database.execute(
            "SELECT commit_id, date, kernel, metric.name, unit, value FROM value"
            " JOIN run ON run.id = run JOIN metric ON metric.id = metric ORDER BY 4"
        ).fetchall()
        (mode,) = database.execute("PRAGMA journal_mode").fetchone()
    day = "2026-11-03T12:00:00+00:00"
    assert rows == [
        ("abc1234", day, "6.12", RATE.name, "bytes/s", 1e6),
        ("abc1234", day, "6.12", TIME.name, "ns", 1.5e9),
    ]
    assert mode == "delete"
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_by_date_and_then_as_they_were_added(file: Path) -> None:
    for name, day in (("b", 2), ("a", 1), ("c", 2)):
        add_runs(file, [a_run(name)], Place(name, datetime(2026, 1, day, tzinfo=UTC)))
    assert [one.place.commit for one in read_history(file)] == ["a", "b", "c"]


def test_the_same_run_is_told_and_stored_once(file: Path) -> None:
    first, second = a_run("a"), a_run("b")
    add_runs(file, [first], PLACE)
    before = file.read_bytes()
    again = a_run("other name", source_id=first.source_id)
    assert add_runs(file, [again], Place("def", DAY)) == ([], [(again, "abc1234")])
    assert file.read_bytes() == before
    assert add_runs(file, [first, second], Place("def", DAY))[0] == [second]
    assert add_runs(file, [a_run("c"), a_run("c")], PLACE)[1] == [(a_run("c"), "abc1234")]


def test_a_copy_in_another_folder_is_the_same_run(file: Path) -> None:
    values = {metric(f"ops.m{n}"): 1234.567891 + n for n in range(3)}
    others = {metric(f"ops.m{n}"): 1111.987654 + n for n in range(3)}
    add_runs(file, [run("a", values, source_id="aa.1"), run("b", others, source_id="bb.2")], PLACE)
    assert add_runs(file, [run("copy", values, source_id="aa.9")], PLACE)[0] == []
    assert len(read_history(file)) == 2


def test_all_or_none(file: Path) -> None:
    """The second of two has a name that is no text."""
    add_runs(file, [a_run("a")], PLACE)
    before = file.read_bytes()
    for name, left in (("history.db", before), ("new.db", None)):
        path = file.with_name(name)
        with pytest.raises(UnicodeEncodeError):
            add_runs(path, [a_run("b"), a_run("c\udcff", source_id="c")], PLACE)
        assert (path.read_bytes() if path.exists() else None) == left


def test_what_a_kill_left_of_a_new_file_is_begun_again(file: Path) -> None:
    file.touch()
    add_runs(file, [a_run()], PLACE)
    assert len(read_history(file)) == 1


def _other_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE ev_x (ts)")


def _changed(sql: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        add_runs(path, [a_run()], PLACE)
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA ignore_check_constraints = ON")
            database.execute(sql)

    return change


@pytest.mark.parametrize(
    ("make", "slug"),
    [
        (lambda path: path.write_text('{"schema": "wbscope.baseline/1"}\n' * 40), "not-a-history"),
        (_other_database, "not-a-history"),
        (lambda path: path.mkdir(), "not-a-history"),
        (lambda path: os.mkfifo(path), "not-a-history"),
        (_changed("PRAGMA user_version = 9"), "history-version"),
        (_changed("PRAGMA application_id = 9"), "not-a-history"),
        (_changed("CREATE VIEW v AS SELECT 1"), "not-a-history"),
        (
            _changed("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM value; END"),
            "not-a-history",
        ),
        (_changed("ALTER TABLE run ADD COLUMN more TEXT AS (name)"), "not-a-history"),
        (_changed("UPDATE run SET date = 'yesterday'"), "damaged-history"),
        (_changed("UPDATE run SET fingerprint = '[1'"), "damaged-history"),
        (_changed("UPDATE run SET zeros = '[]'"), "damaged-history"),
        (_changed("UPDATE run SET zeros = '{\"ops\": NaN}'"), "damaged-history"),
        (_changed("UPDATE run SET zeros = '{\"ops\": 1e999}'"), "damaged-history"),
        (_changed("UPDATE run SET warnings = '[[1, 2, 3]]'"), "damaged-history"),
        (_changed(f"UPDATE run SET fingerprint = '{'[' * 100_000}'"), "damaged-history"),
        (_changed("UPDATE run SET commit_id = CAST(x'61ff' AS TEXT)"), "damaged-history"),
        (_changed("UPDATE metric SET source = CAST(x'ff' AS TEXT)"), "damaged-history"),
        (_changed("UPDATE run SET source_id = CAST(x'61ff' AS TEXT)"), "damaged-history"),
        (_changed("UPDATE value SET value = 9e999"), "damaged-history"),
        (_changed("UPDATE metric SET better = 'up'"), "damaged-history"),
        (_changed("UPDATE metric SET name = 'a b'"), "damaged-history"),
    ],
)
def test_a_file_that_is_no_history(file: Path, make: Callable[[Path], Any], slug: str) -> None:
    make(file)
    before = file.read_bytes() if file.is_file() else None
    for use in (
        read_history,
        lambda path: add_runs(path, [a_run("b", source_id="bb.2")], PLACE),
    ):
        with pytest.raises(WbscopeError) as caught:
            use(file)
        assert caught.value.slug == slug
        assert caught.value.fix
        assert isinstance(caught.value, InputError)
    assert (file.read_bytes() if file.is_file() else None) == before


def test_a_cut_file_is_refused_or_whole(file: Path) -> None:
    many = {metric(f"ops.m{n}"): float(n) for n in range(300)}
    add_runs(file, [run("a", {**many, WRITES: 1.0})], PLACE)
    whole = file.read_bytes()
    for size in (1, 50, 100, 4096, len(whole) // 2, len(whole) - 4096):
        file.write_bytes(whole[:size])
        with pytest.raises(InputError):
            read_history(file)


def test_a_file_that_is_not_there(file: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_history(file)
    assert caught.value.slug == "no-file"
    assert not file.exists()
    with pytest.raises(SetupError):
        add_runs(file.parent / "no folder" / "history.db", [a_run()], PLACE)


def test_another_writer_is_waited_for(file: Path) -> None:
    add_runs(file, [a_run()], PLACE)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(SetupError) as caught:
        add_runs(file, [a_run("b")], PLACE, wait_seconds=0.1)
    assert caught.value.slug == "busy-history"
    assert len(read_history(file)) == 1  # readers need not wait
    other.close()


def test_a_new_history_takes_the_place_of_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command was faster, and what lies beside it is not ours."""
    for name in ("history.db-journal", ".history.db.mine", "other.db"):
        (file.parent / name).write_text("mine")
    link = os.link

    def slower(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        add_runs(file, [a_run("first")], PLACE)
        link(source, target)

    # SQLite would take the journal for that of the history.
    (file.parent / "history.db-journal").unlink()
    monkeypatch.setattr(os, "link", slower)
    new, known = add_runs(file, [a_run("second")], PLACE)
    assert ([one.name for one in new], known) == (["second"], [])
    assert [one.run.name for one in read_history(file)] == ["first", "second"]
    assert sorted(path.name for path in file.parent.iterdir()) == [
        ".history.db.mine",
        "history.db",
        "other.db",
    ]


def test_a_file_system_without_hard_links(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_names: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuses)
    add_runs(file, [a_run()], PLACE)
    add_runs(file, [a_run("b")], PLACE)
    assert len(read_history(file)) == 2
    assert [path.name for path in file.parent.iterdir()] == ["history.db"]


def test_errors_of_a_new_history_name_it(file: Path) -> None:
    """As on a full disk, in the middle of it."""
    many = {metric(f"ops.m{n}"): float(n) for n in range(300)}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (32 << 10, limits[1]))
    try:
        with pytest.raises(SetupError) as caught:
            add_runs(file, [run("a", many)], PLACE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.subject == str(file)
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-03", datetime(2026, 11, 3, tzinfo=UTC)),
        ("2026-11-03T14:00:00+02:00", datetime(2026, 11, 3, 12, tzinfo=UTC)),
        ("2026-11-03 12:00:00Z", datetime(2026, 11, 3, 12, tzinfo=UTC)),
    ],
)
def test_dates(text: str, wanted: datetime) -> None:
    assert parse_date("--date", text) == wanted


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "0001-01-01T00:00:00+14:00"])
def test_no_dates(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_date("--date", text)
    assert caught.value.slug == "bad-date"


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "x" * 201])
def test_no_commits(name: str) -> None:
    with pytest.raises(UsageError):
        Place(name, DAY)
