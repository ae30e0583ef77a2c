# SPDX-License-Identifier: Apache-2.0
"""Several commands on one cold cache: the trace is ingested once, whoever is killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.progress import waits_in
from support.runs import REPOSITORY
from support.tools import ingester_path, wbscope_path
from support.waits import GUARD_SECONDS, wait_until

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
