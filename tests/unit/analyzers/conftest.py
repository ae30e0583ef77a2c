# SPDX-License-Identifier: Apache-2.0
"""A tiny database, a tiny SQL library and a fake ingester for the Python tests."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wbscope.library.database import SCHEMA_VERSION
from wbscope.library.library import Library, load_library

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value);
CREATE TABLE event_counts(event TEXT, id INTEGER, count INTEGER, loaded_count INTEGER,
                          table_name TEXT);
CREATE TABLE event_format(event TEXT, id INTEGER, table_name TEXT, status TEXT, format TEXT);
CREATE TABLE buffer (id INTEGER PRIMARY KEY, name TEXT, clock TEXT, subbuf_bytes INTEGER);
CREATE TABLE lost_events(ts INTEGER, cpu INTEGER, buffer INTEGER, count INTEGER);
CREATE TABLE task(tid INTEGER PRIMARY KEY, comm TEXT);
CREATE TABLE ev_balance_dirty_pages(ts INTEGER, cpu INTEGER, tid INTEGER, buffer INTEGER,
                                    bdi TEXT, pause INTEGER, wb_setpoint INTEGER, "limit" INTEGER);
"""
PAUSES = [(1_000_000_000, 11, 200), (2_000_000_000, 13, 100), (3_000_000_000, 11, 23)]

LIBRARY = {
    "adapters/sqlite/raw_balance_dirty_pages.sql": """
-- @raw      raw_balance_dirty_pages
-- @summary  Every balance_dirty_pages event.
-- @event    writeback:balance_dirty_pages
-- @from     _ev_balance_dirty_pages
-- @fields   bdi, pause, wb_setpoint,
--           bdi_setpoint, limit
CREATE VIEW raw_balance_dirty_pages AS
SELECT ts, tid, bdi, pause, coalesce(wb_setpoint, bdi_setpoint) AS wb_setpoint,
       "limit" AS limit_pages
FROM _ev_balance_dirty_pages;
""",
    "adapters/sqlite/raw_write.sql": """
-- @raw      raw_write
-- @event    vmscan:mm_vmscan_write_folio | vmscan:mm_vmscan_writepage
-- @from     _ev_write
-- @fields   pfn
CREATE VIEW raw_write AS SELECT ts, pfn FROM _ev_write;
""",
    "adapters/sqlite/raw_task.sql": """
-- @raw      raw_task
-- @table    task
-- @from     _task
-- @fields   tid, comm
CREATE VIEW raw_task AS SELECT tid, comm FROM _task;
""",
    "adapters/sqlite/raw_meta.sql": """
-- @raw      raw_meta
-- @table    meta
-- @from     _meta
-- @fields   key, value
CREATE VIEW raw_meta AS SELECT key, value FROM _meta;
""",
    "views/wb_params.sql": """
-- @view     wb_params
CREATE VIEW wb_params AS
SELECT NULL AS t0_ns, NULL AS t1_ns, 2000000000 AS window_ns,
       NULL AS bdi, NULL AS tid, NULL AS comm_glob, NULL AS cgroup_ino;
""",
    "views/wb_throttle.sql": """
-- @view     wb_throttle
-- @summary  One row for each pause.
-- @materialize
CREATE VIEW wb_throttle AS
SELECT e.ts, e.tid, t.comm, e.bdi, e.pause * 1000000 AS pause_ns
FROM raw_balance_dirty_pages AS e
LEFT JOIN raw_task AS t ON t.tid = e.tid
CROSS JOIN wb_params AS p
WHERE (p.bdi IS NULL OR e.bdi = p.bdi)
  AND (p.tid IS NULL OR e.tid = p.tid)
  AND (p.comm_glob IS NULL OR t.comm GLOB p.comm_glob)
  AND (p.t0_ns IS NULL OR e.ts >= p.t0_ns)
  AND (p.t1_ns IS NULL OR e.ts < p.t1_ns);
""",
    "views/wb_thread.sql": """
-- @view     wb_thread
CREATE VIEW wb_thread AS
SELECT tid, tid AS pid, comm, comm AS process_comm FROM raw_task;
""",
    "views/wb_warning.sql": """
-- @view     wb_warning
CREATE VIEW wb_warning AS
SELECT '' AS scope, '' AS slug, '' AS message WHERE 0;
""",
    "warnings/run.sql": """
-- @warning  lost_events_of_the_run
-- @slug     lost-events
-- @scope    *
-- @sentence {count} events were lost
SELECT value AS count FROM raw_meta WHERE key = 'lost_events_count' AND value > 0;

-- @warning  lower_bound
-- @scope    throttle_by_task
-- @sentence pages are a lower bound
SELECT value FROM raw_meta WHERE key = 'schema_version';
""",
    "views/wb_timeline_order.sql": """
-- @view     wb_timeline_order
CREATE VIEW wb_timeline_order AS
SELECT 'Pauses' AS group_name, 1 AS place, 1 AS is_top
UNION ALL SELECT 'Unknown', 2, 1;
""",
    "queries/run_summary.sql": """
-- @query    run_summary
-- @summary  The run in a few lines.
SELECT 'kernel' AS key, value FROM raw_meta WHERE key = 'kernel_release'
UNION ALL
SELECT 'length_ns', 2000000000;
""",
    "queries/throttle_by_task.sql": """
-- @query    throttle_by_task
-- @title    Who was throttled
-- @order    2
-- @summary  Pauses of each task.
-- @grain    task, bdi
-- @read     A long pause is a wait that the kernel ordered.
-- @filters  range, bdi, tid, task
-- @events   writeback:balance_dirty_pages
-- @optional sched:sched_switch
-- @column   tid INTEGER            thread
-- @column   pause_total_ns INTEGER intended pauses,
--           in total
-- @metric   pause_total_ns lower: time that the kernel
--   held the task up
SELECT tid, comm, bdi, COUNT(*) AS pauses_count, SUM(pause_ns) AS pause_total_ns
FROM wb_throttle GROUP BY tid, comm, bdi ORDER BY tid;
""",
    "queries/windows.sql": """
-- @query    windows
-- @title    The window length
-- @summary  The window length in force.
-- @filters  window, range, bdi, tid, task, cgroup
SELECT window_ns, t0_ns, t1_ns, bdi, tid, cgroup_ino FROM wb_params;
""",
    "queries/reclaim_writes.sql": """
-- @query    reclaim_writes
-- @title    Did reclaim write
-- @order    3
-- @summary  Pages that reclaim wrote.
-- @events   vmscan:mm_vmscan_write_folio | vmscan:mm_vmscan_writepage
SELECT COUNT(*) AS events_count FROM raw_write;
""",
    "timelines/tl_pauses.sql": """
-- @timeline tl_pauses
-- @order    20
-- @group    Pauses: Who paused.
-- @level    One disk
-- @track    dd* [time]: pauses of dd
-- @track    *: pauses of another
-- @flat
-- @filters  range, bdi, tid
-- @events   writeback:balance_dirty_pages
-- @column   arg_bdi TEXT backing device
CREATE VIEW tl_pauses AS
SELECT ts, pause_ns AS dur, comm AS track, 'pause' AS name, NULL AS value,
       NULL AS unit, bdi AS arg_bdi
FROM wb_throttle;
""",
    "timelines/tl_writes.sql": """
-- @timeline tl_writes
-- @order    10
-- @group    Reclaim
-- @events   vmscan:mm_vmscan_write_folio|vmscan:mm_vmscan_writepage
CREATE VIEW tl_writes AS
SELECT ts, NULL AS dur, 'reclaim' AS track, 'write' AS name, NULL AS value,
       NULL AS unit
FROM raw_write;
""",
}

FAKE_INGESTER = """#!{python}
import json, os, shutil, signal, sys, time
arguments = sys.argv[1:]
output = arguments[arguments.index("-o") + 1]
say = lambda **message: print(json.dumps(message), file=sys.stderr, flush=True)
listed = []
for option in ("--events-file", "--setup"):
    if option in arguments:
        name = arguments[arguments.index(option) + 1]
        listed = (sys.stdin if name == "-" else open(name)).read().splitlines()
with open("{log}", "a") as log:
    log.write(json.dumps({{"arguments": arguments, "listed": listed}}) + "\\n")
mode = os.environ.get("FAKE_INGESTER", "good")
open(output + ".tmp", "w").write("half")
if mode.startswith("error"):
    slug = os.environ.get("FAKE_INGESTER_SLUG", "truncated-page")
    say(type="error", slug=slug, object=output, message="holds 5 of 9 bytes",
        at="offset 0x10", fix="record it again")
    sys.exit(int(mode.removeprefix("error")))
if mode.startswith("signal"):
    print("==1==ERROR: AddressSanitizer", file=sys.stderr, flush=True)
    os.kill(os.getpid(), int(mode.removeprefix("signal")))
if mode.startswith("exit"):
    sys.exit(int(mode.removeprefix("exit")))
if mode == "hang":
    open("{log}.hanging", "w").close()
    time.sleep(1000)
say(type="progress", done_bytes=10, total_bytes=20)
if mode == "damaged":
    say(type="warning", slug="damaged-trace", object="trace.dat", message="ends early",
        at="offset 0x20")
if mode != "nothing":
    shutil.copyfile("{database}", output)
os.unlink(output + ".tmp")
say(type="done", events_count=3, loaded_count=2, damaged=int(mode == "damaged"), output=output)
"""


class FakeIngester:
    """The calls that the fake ingester has seen."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.hanging = Path(f"{log}.hanging")

    def calls(self) -> list[dict[str, Any]]:
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines()]


def make_database(path: Path, **meta: object) -> Path:
    """Three pauses of two tasks; keyword arguments go to table meta."""
    values = {
        "schema_version": SCHEMA_VERSION,
        "wbscope_version": "0.1.0",
        "source_name": "trace.dat",
        "kernel_release": "6.1.0",
        "first_ts": 1_000_000_000,
        "last_ts": 3_000_000_000,
        "lost_events_count": 0,
        **meta,
    }
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA)
    connection.executemany("INSERT INTO meta VALUES (?, ?)", values.items())
    connection.executemany(
        "INSERT INTO ev_balance_dirty_pages VALUES (?, 0, ?, 0, '8:0', ?, 7, 99)", PAUSES
    )
    event = "writeback:balance_dirty_pages"
    connection.execute(
        "INSERT INTO event_counts VALUES (?, 1, 3, 3, 'ev_balance_dirty_pages')", (event,)
    )
    connection.execute(
        "INSERT INTO event_format VALUES (?, 1, 'ev_balance_dirty_pages', 'parsed', '')", (event,)
    )
    connection.executemany("INSERT INTO task VALUES (?, ?)", [(11, "dd"), (13, "fio")])
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def new_database(tmp_path: Path) -> Callable[..., Path]:
    """make_database(NAME, key=value...) in the test's own folder."""
    return lambda name="run.db", **meta: make_database(tmp_path / name, **meta)


@pytest.fixture
def database(new_database: Callable[..., Path]) -> Path:
    return new_database()


@pytest.fixture(autouse=True)
def sql_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny library, as the one in use."""
    folder = tmp_path_factory.mktemp("sql")
    for name, text in LIBRARY.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("-- SPDX-License-Identifier: Apache-2.0\n" + text.lstrip())
    monkeypatch.setenv("WBSCOPE_SQL_DIR", str(folder))
    return folder


@pytest.fixture
def library(sql_dir: Path) -> Library:
    return load_library()


@pytest.fixture(autouse=True)
def cache_dir(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where entries are."""
    base = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(base))
    return base / "wbscope" / "v1"


@pytest.fixture
def ingester(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> FakeIngester:
    """A program in place of wbscope-ingest; $FAKE_INGESTER says how it behaves."""
    folder = tmp_path_factory.mktemp("fake")
    log = folder / "log"
    program = folder / "wbscope-ingest"
    made = make_database(folder / "made.db")
    program.write_text(FAKE_INGESTER.format(python=sys.executable, log=log, database=made))
    program.chmod(0o755)
    monkeypatch.setenv("WBSCOPE_INGEST", str(program))
    return FakeIngester(log)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.dat"
    path.write_bytes(b"\x17\x08\x44tracing7\x00rest")
    return path


@pytest.fixture
def run_folder(tmp_path: Path, trace: Path) -> Path:
    folder = tmp_path / "my run"
    folder.mkdir()
    trace.rename(folder / "trace.dat")
    (folder / "uname").write_text("Linux\n")
    return folder


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Start a command as a process of its own."""

    def run(*words: object, **options: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "wbscope", *(str(word) for word in words)]
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("env", dict(os.environ))
        # Wherever this test found the package, the process finds it too.
        options["env"]["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        return subprocess.Popen(command, **options)

    return run
