# SPDX-License-Identifier: Apache-2.0
"""Timeline views that wbscope-ingest asks for on a second connection: same file, same errors."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from support.progress import wait_for_work, waits_in
from support.runs import example
from support.tools import ingester_path, run
from support.waits import GUARD_SECONDS, wait_until

_COLUMNS = "NULL AS unit, NULL AS rank, NULL AS tid, NULL AS flows, NULL AS arg_a"
# Slices with arguments of all types and arrows, instants, counters of both types.
_SLICES = """
CREATE TEMP VIEW slices AS
SELECT e.ts, 1000 AS dur, 'a/' || e.cpu AS track, 'slice ' || (e.seq % 7) AS name, NULL AS value,
  NULL AS unit, e.cpu AS rank, CASE WHEN e.seq % 3 = 0 THEN e.tid END AS tid,
  e.seq || ', ' || (e.seq + 1) AS flows, e.seq AS arg_whole, e.seq / 4.0 AS arg_part,
  CASE WHEN e.seq % 2 THEN 'odd' END AS arg_text, 'x=' || e.seq || char(10) || 'y=b' AS arg_more
FROM ev_balance_dirty_pages AS e;
"""
_INSTANTS = """
CREATE TEMP VIEW instants AS
SELECT e.ts, NULL AS dur, 'b' AS track, 'at' AS name, NULL AS value, NULL AS unit, e.pause AS arg_a
FROM ev_balance_dirty_pages AS e;
"""
_COUNTERS = """
CREATE TEMP VIEW counters AS
SELECT e.ts, NULL AS dur, 'c' AS track, NULL AS name, e.dirtied AS value, 'pages' AS unit
FROM ev_balance_dirty_pages AS e
UNION ALL
SELECT e.ts, NULL, 'd', NULL, e.pause / 3.0, 'ratio' FROM ev_balance_dirty_pages AS e
UNION ALL
SELECT e.ts, NULL, 'd', NULL, NULL, 'ratio' FROM ev_balance_dirty_pages AS e;
"""
_ENDLESS = f"""
CREATE TEMP VIEW endless AS
WITH RECURSIVE c(ts) AS (SELECT 1 UNION ALL SELECT ts + 1 FROM c)
SELECT c.ts, NULL AS dur, 'a' AS track, 'b' AS name, NULL AS value, {_COLUMNS} FROM c;
"""
_SILENT = _ENDLESS.replace("SELECT c.ts", "SELECT count(*) AS ts").replace("endless", "silent")
_NO_TIMELINE = "CREATE TEMP VIEW other AS SELECT 1 AS ts, 1 AS dur;"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "run.db"
    done = run([ingester_path(), "sqlite", example("four-equal-writers").trace, "-o", path,
                "--events", "writeback:*"])  # fmt: skip
    assert done.returncode == 0, done.stderr
    return path


def _start(
    database: Path, setup: str, *lanes: tuple[str, str], views: str, threads: int = 2
) -> subprocess.Popen[bytes]:
    """The set-up is written; a lane is its script, '-' for one from stdin, and its views."""
    words: list[str | Path] = []
    for number, (script, names) in enumerate(lanes):
        path = Path("-")
        if script != "-":
            path = database.with_name(f"lane{number}.sql")
            path.write_text(script)
        words += ["--lane", path, *_named("--lane-view", names)]
    output = database.with_name("out.pftrace")
    process = subprocess.Popen(
        [ingester_path(), "timeline", database, "--setup", "-", *_named("--view", views), *words,
         "-o", output, "--threads", str(threads), "--force", "--json-lines"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(setup.encode())
    process.stdin.flush()
    return process


def _named(option: str, names: str) -> list[str]:
    return [word for name in names.split() for word in (option, name)]


def _drawn(process: subprocess.Popen[bytes], database: Path) -> bytes:
    _, err = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, err
    return database.with_name("out.pftrace").read_bytes()


def _error(process: subprocess.Popen[bytes]) -> str:
    _, err = process.communicate(timeout=GUARD_SECONDS)
    (slug,) = (
        line["slug"] for line in map(json.loads, err.splitlines()) if line["type"] == "error"
    )
    return str(slug)


def _no_output(database: Path) -> bool:
    return not any("out.pftrace" in path.name for path in database.parent.iterdir())


@pytest.mark.parametrize("threads", [1, 2])
def test_the_file_is_the_same(database: Path, threads: int) -> None:
    """Whatever gives the rows, and whatever comes from stdin."""
    views = "counters slices instants"
    whole = _SLICES + _INSTANTS + _COUNTERS
    alone = _drawn(_start(database, whole, views=views), database)
    assert len(alone) > 10_000
    lanes = [(_INSTANTS + _COUNTERS, "counters instants")]
    assert (
        _drawn(_start(database, _SLICES, *lanes, views=views, threads=threads), database) == alone
    )
    lanes = [("-", "instants"), (_SLICES, "slices"), ("-", "")]
    scripts = f"{_COUNTERS}\0{_INSTANTS}\0SELECT 1"
    assert (
        _drawn(_start(database, scripts, *lanes, views=views, threads=threads), database) == alone
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_a_lane_reads_what_one_before_has_made(database: Path, threads: int) -> None:
    made = "CREATE TEMP TABLE made AS SELECT * FROM ev_balance_dirty_pages;"
    read = _INSTANTS.replace("ev_balance_dirty_pages", "made")
    views = "slices instants"
    alone = _drawn(_start(database, _SLICES + _INSTANTS, views=views), database)
    lanes = [(made + _SLICES, "slices"), ("-", "instants")]
    there = _drawn(_start(database, f"\0{read}", *lanes, views=views, threads=threads), database)
    assert there == alone


def test_lanes_that_are_asked_for_in_another_order(database: Path) -> None:
    """More rows than wait for their turn: those of the second lane are drawn first."""
    many = _INSTANTS.replace("AS e;", "AS e CROSS JOIN (VALUES " + "(1)," * 199 + "(2)) AS f;")
    alone = _drawn(_start(database, many + _SLICES, views="slices instants"), database)
    lanes = [(many, "instants"), (_SLICES, "slices")]
    assert _drawn(_start(database, "", *lanes, views="slices instants"), database) == alone


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("script", "slug"),
    [("nonsense;", "cannot-read-database"), (_NO_TIMELINE, "not-a-timeline")],
)
def test_error_of_a_lane(database: Path, script: str, slug: str, threads: int) -> None:
    process = _start(database, _SLICES, (script, "other"), views="slices other", threads=threads)
    assert _error(process) == slug
    assert _no_output(database)


def test_error_of_a_lane_before_the_set_up_has_come(database: Path) -> None:
    """Who asks for the set-up meanwhile may take long."""
    process = _start(database, "", (_NO_TIMELINE, "other"), views="other")
    assert process.wait(GUARD_SECONDS) == 2  # its stdin is open still
    assert _error(process) == "not-a-timeline"


@pytest.mark.parametrize("lane", ["endless", "silent"])
def test_error_of_the_set_up_ends_the_lane(database: Path, lane: str) -> None:
    script = {"endless": _ENDLESS, "silent": _SILENT}[lane]
    process = _start(database, "nonsense;", (script, lane), views=lane)
    assert _error(process) == "cannot-read-database"
    assert _no_output(database)


def test_time_limit_of_a_lane(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WBSCOPE_TIMEOUT", "0.5")
    assert _error(_start(database, "", (_SILENT, "silent"), views="silent")) == "time-limit"


@pytest.mark.parametrize("lane", ["endless", "silent", "-"])
@pytest.mark.parametrize("is_told", [True, False], ids=["told", "waiting"])
def test_signal(database: Path, lane: str, is_told: bool) -> None:
    """While the set-up is waited for, and while the lane is."""
    script = {"endless": _ENDLESS, "silent": _SILENT, "-": "-"}[lane]
    view = "endless" if lane == "endless" else "silent"
    process = _start(database, f"\0{_SILENT}", (script, view), views=view)
    if is_told and process.stdin is not None:
        process.stdin.close()
        process.stdin = None
    if is_told or lane != "-":  # else there is nothing to do yet
        wait_for_work(process, database)
    else:
        wait_until(
            lambda: waits_in(process.pid, "pipe_read", "poll") or process.poll() is not None, "asks"
        )
    process.send_signal(signal.SIGTERM)
    process.wait(GUARD_SECONDS)
    process.communicate()
    assert process.returncode == 130
    assert _no_output(database)


def test_error_of_a_view_beside_the_lanes(database: Path) -> None:
    """It has a thread, too: the lane before it has no end."""
    process = _start(database, _NO_TIMELINE, (_SILENT, "silent"), views="silent other")
    assert _error(process) == "not-a-timeline"
    assert _no_output(database)


def test_signal_while_both_threads_work(database: Path) -> None:
    process = _start(database, _ENDLESS, (_SILENT, "silent"), views="silent endless")
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    wait_for_work(process, database)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 130
    assert _no_output(database)
