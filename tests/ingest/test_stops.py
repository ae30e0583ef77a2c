# SPDX-License-Identifier: Apache-2.0
"""wbscope-ingest ends at a signal and its limits, once for all commands, and is reproducible."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.faults import memory_disk
from support.progress import Steps, wait_for_work, waits_in
from support.runs import REPOSITORY, example
from support.tools import ingester_path, run, wbscope_path
from support.waits import GUARD_SECONDS, wait_until

# wbscope-ingest ends at a signal and at its limits, and runs nothing that a database brings.

_COLUMNS = "ts, NULL AS dur, 'a' AS track, 'b' AS name, NULL AS value, NULL AS unit, NULL AS arg_a"
_ENDLESS = "CREATE TEMP VIEW v AS WITH RECURSIVE c(ts) AS (SELECT 1 UNION ALL SELECT ts + 1 FROM c)"
# In an aggregate, so that no row ever comes out.
_NO_ROW = f"{_ENDLESS} SELECT {_COLUMNS} FROM (SELECT count(*) AS ts FROM c);"
# Each of its rows is one more of the timeline.
_ROWS = f"{_ENDLESS} SELECT {_COLUMNS} FROM c;"
# A sort of all rows, in temporary files.
_SORT = (
    f"{_ENDLESS} SELECT {_COLUMNS.replace('NULL AS arg_a', 'filler AS arg_a')} FROM"
    " (SELECT ts, hex(randomblob(200)) AS filler FROM c LIMIT 100000000) ORDER BY filler, ts;"
)
_TEMP_TABLE = f"{_ENDLESS} SELECT {_COLUMNS} FROM c; CREATE TEMP TABLE t AS SELECT * FROM v;"
# What a job does before there is a view: in one step of a statement.
_SET_UP = (
    "CREATE TEMP TABLE t AS SELECT"
    " instr(zeroblob(1000000), CAST(zeroblob(500000) || 'a' AS BLOB)) AS x;" + _ROWS
)
# Each text is short enough, all of them are too many for one row.
_WIDE = "CREATE TEMP TABLE t AS SELECT " + ", ".join(
    f"randomblob(900000) AS x{number}" for number in range(700)
)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "run.db"
    done = run([ingester_path(), "sqlite", example("four-equal-writers").trace, "-o", path])
    assert done.returncode == 0, done.stderr
    return path


def _timeline(database: Path, setup: str, **environment: str) -> subprocess.Popen[str]:
    script = database.with_name("setup.sql")
    script.write_text(setup)
    return subprocess.Popen(
        [
            ingester_path(),
            "timeline",
            database,
            "--setup",
            script,
            "--view",
            "v",
            "-o",
            database.with_name("out.pftrace"),
            "--json-lines",
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SQLITE_TMPDIR": str(database.parent), **environment},
    )


def _said(process: subprocess.Popen[str]) -> dict[str, str]:
    _, err = process.communicate(timeout=GUARD_SECONDS)
    lines = [json.loads(line) for line in err.splitlines()]
    (error,) = (line for line in lines if line["type"] == "error")
    return dict(error)


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.dealt
@pytest.mark.parametrize(
    ("ticks", "number"),
    [(10, signal.SIGTERM), (10, signal.SIGINT), (10, signal.SIGHUP), (100, signal.SIGTERM)],
)
@pytest.mark.parametrize(
    "setup", [_NO_ROW, _ROWS, _SORT, _SET_UP], ids=["no row", "rows", "sort", "set-up"]
)
def test_signal(database: Path, setup: str, number: signal.Signals, ticks: int) -> None:
    """None of them has an end."""
    process = _timeline(database, setup)
    wait_for_work(process, database, ticks)
    process.send_signal(number)
    process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 130
    assert _left(database.parent) == ["run.db", "setup.sql"]


@pytest.mark.parametrize("job", ["sqlite", "convert"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_signal_while_reading(tmp_path: Path, job: str, share: float) -> None:
    arguments = [job, example("deep").trace, "-o", tmp_path / "out"]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [ingester_path(), *arguments, *(["--all"] if job == "sqlite" else [])],
            stderr=subprocess.DEVNULL,
        )

    first = start()
    whole = Steps(first).whole()
    assert first.wait() == 0
    (tmp_path / "out").unlink()
    process = start()
    Steps(process).reach(round(share * whole))
    process.send_signal(signal.SIGTERM)
    code = process.wait(GUARD_SECONDS)
    # Before the program has a handler, the signal ends it as it is.
    assert code in (0, 130, -signal.SIGTERM)
    assert _left(tmp_path) == (["out"] if code == 0 else [])


def test_time_limit(database: Path) -> None:
    process = _timeline(database, _NO_ROW, WBSCOPE_TIMEOUT="0.5")
    error = _said(process)
    assert process.returncode == 3
    assert error["slug"] == "time-limit"
    assert error["message"] == "took more than 0.5 s of SQL"
    assert "WBSCOPE_TIMEOUT=" in error["fix"]
    assert _left(database.parent) == ["run.db", "setup.sql"]


@pytest.mark.parametrize("kind", ["table", "sort"])
def test_temp_limit(database: Path, kind: str) -> None:
    setup = _TEMP_TABLE if kind == "table" else _SORT
    process = _timeline(database, setup, WBSCOPE_TEMP_LIMIT="20000000", WBSCOPE_TIMEOUT="600")
    error = _said(process)
    assert process.returncode == 3
    assert error["slug"] == "temp-limit"
    assert "WBSCOPE_TEMP_LIMIT=" in error["fix"]
    assert _left(database.parent) == ["run.db", "setup.sql"]


@pytest.mark.parametrize("kind", ["table", "sort"])
def test_temp_folder_without_room(database: Path, kind: str) -> None:
    """It is not the limit that is met, whatever SQLite calls both."""
    setup = _TEMP_TABLE if kind == "table" else _SORT
    with memory_disk("size=20m,mode=0777") as disk:
        process = _timeline(database, setup, SQLITE_TMPDIR=str(disk))
        error = _said(process)
        assert process.returncode == 5
        assert (error["slug"], error["object"]) == ("no-room", str(disk))
        assert error["message"].endswith(": No space left on device")
        assert error["at"] == f"reading {database}"
        assert error["fix"].startswith("export SQLITE_TMPDIR=")
        assert _left(disk) == []
    assert _left(database.parent) == ["run.db", "setup.sql"]


def test_memory_limit(database: Path) -> None:
    process = _timeline(database, f"{_WIDE}; {_ROWS}")
    error = _said(process)
    assert process.returncode == 3
    assert error["slug"] == "memory-limit"


@pytest.mark.parametrize("name", ["WBSCOPE_TIMEOUT", "WBSCOPE_TEMP_LIMIT"])
@pytest.mark.parametrize("value", ["x", "-1", "1h", "nan"])
def test_limit_that_is_no_number(database: Path, name: str, value: str) -> None:
    process = _timeline(database, _ROWS, **{name: value})
    error = _said(process)
    assert process.returncode == 2
    assert (error["slug"], error["object"]) == ("bad-limit", name)


# --- a database of somebody else

_GOOD = f"CREATE TEMP VIEW v AS SELECT {_COLUMNS} FROM (SELECT min(value) AS ts FROM meta);"
_ENDLESS_ROWS = (
    "(SELECT count(*) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
    " SELECT x FROM c)) > 0"
)
_HOSTILE = {
    "view": "ALTER TABLE meta RENAME TO meta0;"
    f"CREATE VIEW meta AS SELECT * FROM meta0 WHERE {_ENDLESS_ROWS}",
    "virtual table": "ALTER TABLE meta RENAME TO meta0;"
    "CREATE VIRTUAL TABLE meta USING fts5(key, value)",
}


@pytest.mark.parametrize("kind", _HOSTILE)
def test_what_is_no_plain_table_is_not_run(database: Path, kind: str) -> None:
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.executescript(_HOSTILE[kind])
    process = _timeline(database, _GOOD)
    error = _said(process)
    assert process.returncode == 3
    assert error["slug"] == "not-a-table"
    assert "meta" in error["message"]
    assert _left(database.parent) == ["run.db", "setup.sql"]


def test_views_that_nobody_reads_do_not_matter(database: Path) -> None:
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.executescript(
            f"CREATE VIEW v AS SELECT * FROM meta WHERE {_ENDLESS_ROWS};"
            "CREATE TRIGGER t AFTER DELETE ON task BEGIN DELETE FROM task; END;"
            "CREATE VIRTUAL TABLE f USING fts5(x)"
        )
    process = _timeline(database, _GOOD)  # its view v hides that of the file
    _, err = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, err


# Several commands on one cold cache: the trace is ingested once, whoever is killed.

TRACE = REPOSITORY / "examples/gate/runs/before-2/trace.dat"
Start = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def start(tmp_path: Path, cache: Path) -> Iterator[Start]:
    """Starts one command; each start of the ingester is a line in `starts`, and waits for `go`."""
    program = tmp_path / "ingester"
    program.write_text(
        f"#!/bin/sh\necho started >> {tmp_path}/starts\n"
        f"until test -e {tmp_path}/go; do sleep 0.02; done\n"
        f'exec {ingester_path()} "$@"\n'
    )
    program.chmod(0o755)
    cache.mkdir(0o700)
    env = dict(os.environ, WBSCOPE_CACHE_DIR=str(cache), WBSCOPE_INGEST=str(program))
    command = [str(wbscope_path()), "query", "fairness", str(TRACE), "--json"]
    started: list[subprocess.Popen[bytes]] = []

    def one() -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe))
        return started[-1]

    yield one
    go(tmp_path)
    for process in started:
        process.kill()
        process.communicate()


def go(tmp_path: Path) -> None:
    """Let the ingester go on that has started, or will."""
    (tmp_path / "go").touch()


def wait_for_lock(process: subprocess.Popen[bytes]) -> None:
    """Until it waits for the lock that another one has."""
    wait_until(
        lambda: waits_in(process.pid, "lock_inode_wait") or process.poll() is not None,
        "waits for the lock",
    )
    assert process.poll() is None


def starts(tmp_path: Path) -> int:
    log = tmp_path / "starts"
    return log.read_text().count("started") if log.exists() else 0


def locks(cache: Path) -> list[Path]:
    return list(cache.rglob("*.lock"))


def runs(cache: Path) -> list[Path]:
    """Databases of a run; tables that took long to make are kept beside it."""
    found = []
    for path in cache.rglob("*.db"):
        with closing(sqlite3.connect(path)) as db:
            if db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'event_counts'").fetchone():
                found.append(path)
    return found


def test_parallel_commands_ingest_once(start: Start, tmp_path: Path, cache: Path) -> None:
    first = start()
    wait_until(lambda: starts(tmp_path), "the ingester starts")
    running = [first, *(start() for _ in range(3))]
    for process in running[1:]:
        wait_for_lock(process)
    go(tmp_path)
    answers = {process.communicate(timeout=GUARD_SECONDS)[0] for process in running}
    assert [process.returncode for process in running] == [0] * 4
    assert (len(answers), starts(tmp_path)) == (1, 1)
    assert len(runs(cache)) == 1
    assert locks(cache) == []


def test_one_that_was_killed_blocks_nobody(start: Start, tmp_path: Path, cache: Path) -> None:
    first = start()
    wait_until(lambda: starts(tmp_path), "the ingester starts")
    second = start()
    wait_for_lock(second)
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=GUARD_SECONDS)
    wait_until(lambda: starts(tmp_path) == 2, "the second one starts the ingester")
    go(tmp_path)
    out, err = second.communicate(timeout=GUARD_SECONDS)
    assert (second.returncode, bool(out)) == (0, True), err
    assert starts(tmp_path) == 2
    assert locks(cache) == []
    third = start()
    assert third.communicate(timeout=GUARD_SECONDS)[0] == out
    assert starts(tmp_path) == 2


def test_one_that_waits_hears_a_signal(start: Start, tmp_path: Path, cache: Path) -> None:
    first = start()
    wait_until(lambda: starts(tmp_path), "the ingester starts")
    first.send_signal(signal.SIGSTOP)
    try:
        second = start()
        wait_for_lock(second)
        second.send_signal(signal.SIGTERM)
        second.communicate(timeout=GUARD_SECONDS)
        assert second.returncode == 130
    finally:
        first.send_signal(signal.SIGCONT)
    go(tmp_path)
    first.communicate(timeout=GUARD_SECONDS)
    assert (first.returncode, locks(cache)) == (0, [])


# The same input gives the same bytes: of ingest and convert with any number of threads, of
# timeline.

_RUNS = sorted(path.parent for path in (REPOSITORY / "examples").glob("*/trace.dat"))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("folder", _RUNS, ids=lambda folder: folder.name)
def test_ingest(folder: Path, tmp_path: Path) -> None:
    found = set()
    for turn, threads in enumerate(("1", "2", "2", "7")):
        output = tmp_path / f"{turn}.db"
        command = [ingester_path(), "sqlite", folder, "--all", "-o", output, "--threads", threads]
        done = run(command)
        assert done.returncode == 0, done.stderr
        found.add(_digest(output))
    assert len(found) == 1


@pytest.mark.parametrize("folder", _RUNS, ids=lambda folder: folder.name)
def test_convert(folder: Path, tmp_path: Path) -> None:
    found = set()
    for turn, threads in enumerate(("1", "2", "2", "7")):
        output = tmp_path / f"{turn}.pftrace"
        done = run([ingester_path(), "convert", folder, "-o", output, "--threads", threads])
        assert done.returncode == 0, done.stderr
        found.add(_digest(output))
    assert len(found) == 1


@pytest.mark.parametrize("folder", _RUNS, ids=lambda folder: folder.name)
def test_timeline(wbscope: Wbscope, folder: Path, tmp_path: Path) -> None:
    found = set()
    for turn in range(2):
        output = tmp_path / f"{turn}.pftrace"
        done = wbscope.run("timeline", folder, "-o", output)
        assert done.returncode == 0, done.stderr
        found.add(_digest(output))
    assert len(found) == 1
