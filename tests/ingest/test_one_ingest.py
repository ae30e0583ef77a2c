# SPDX-License-Identifier: Apache-2.0
"""Several commands on one cold cache: the trace is ingested once, whoever is killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.runs import REPOSITORY
from support.tools import ingester_path, wbscope_path

TRACE = REPOSITORY / "examples/gate/runs/before-2/trace.dat"
Start = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def start(tmp_path: Path, cache: Path) -> Start:
    """Starts one command; each start of the ingester is a line in `starts`, and takes a second."""
    program = tmp_path / "ingester"
    program.write_text(
        f'#!/bin/sh\necho started >> {tmp_path}/starts\nsleep 1\nexec {ingester_path()} "$@"\n'
    )
    program.chmod(0o755)
    cache.mkdir(0o700)
    env = dict(os.environ, WBSCOPE_CACHE_DIR=str(cache), WBSCOPE_INGEST=str(program))
    command = [str(wbscope_path()), "query", "fairness", str(TRACE), "--json"]
    return lambda: subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


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
    running = [start() for _ in range(4)]
    answers = {process.communicate(timeout=120)[0] for process in running}
    assert [process.returncode for process in running] == [0] * 4
    assert (len(answers), starts(tmp_path)) == (1, 1)
    assert len(runs(cache)) == 1
    assert locks(cache) == []


def test_one_that_was_killed_blocks_nobody(start: Start, tmp_path: Path, cache: Path) -> None:
    first = start()
    end = time.monotonic() + 60
    while starts(tmp_path) < 1 and time.monotonic() < end:
        time.sleep(0.02)
    second = start()
    first.send_signal(signal.SIGKILL)
    first.communicate(timeout=60)
    out, err = second.communicate(timeout=120)
    assert (second.returncode, bool(out)) == (0, True), err
    assert starts(tmp_path) == 2
    assert locks(cache) == []
    third = start()
    assert third.communicate(timeout=60)[0] == out
    assert starts(tmp_path) == 2


def test_one_that_waits_hears_a_signal(start: Start, tmp_path: Path, cache: Path) -> None:
    first = start()
    end = time.monotonic() + 60
    while starts(tmp_path) < 1 and time.monotonic() < end:
        time.sleep(0.02)
    first.send_signal(signal.SIGSTOP)
    try:
        second = start()
        time.sleep(1)  # until it waits
        second.send_signal(signal.SIGTERM)
        second.communicate(timeout=10)
        assert second.returncode == 130
    finally:
        first.send_signal(signal.SIGCONT)
    first.communicate(timeout=60)
    assert (first.returncode, locks(cache)) == (0, [])
