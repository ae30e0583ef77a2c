# SPDX-License-Identifier: Apache-2.0
"""Long answers on a terminal of their own (pty) go through a pager, and nothing else does."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen

import pexpect
import pytest
from support.waits import GUARD_SECONDS, close, spawn

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]")
_LINES = 12
# What less waits at.
_PROMPT = "\n:"
# What `throttle_by_task` prints: a heading of three lines and a line for each task.
_LONG = 43

Terminal = Callable[..., "pexpect.spawn[str]"]


@pytest.fixture
def many_tasks(database: Path) -> Path:
    with sqlite3.connect(database) as connection:
        rows = [(1_500_000_000 + tid, tid) for tid in range(100, 138)]
        event = "INSERT INTO ev_balance_dirty_pages VALUES (?, 0, ?, 0, '8:0', 20, 7, 99)"
        connection.executemany(event, rows)
    return database


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A program that says how many lines it got, and from where on."""
    path = tmp_path / "pager"
    path.write_text('#!/bin/sh\nread -r first\necho "PAGED $(wc -l) $first"\n')
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    started: list[pexpect.spawn[str]] = []

    def start(*words: object, **more: str | None) -> pexpect.spawn[str]:
        known = {
            **os.environ,
            "TERM": "xterm",
            "PAGER": None,
            "COLUMNS": None,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **more,
        }
        env = {name: value for name, value in known.items() if value is not None}
        program = (sys.executable, "-m", "wbscope", *map(str, words))
        started.append(spawn(*program, env=env, size=(_LINES, 100)))
        return started[-1]

    yield start
    for process in started:
        close(process, kill=True)


def _end(process: pexpect.spawn[str]) -> tuple[str, int | None]:
    process.expect(pexpect.EOF)
    close(process)
    return _ESCAPES.sub("", process.before or ""), process.exitstatus


def _quit(process: pexpect.spawn[str]) -> tuple[str, int | None]:
    """Leave less. A key that comes while it still handles a signal is lost."""
    for _ in range(int(GUARD_SECONDS)):
        process.send("q")
        if process.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=1) == 0:
            break
    shown = process.before or ""
    close(process)
    return _ESCAPES.sub("", shown), process.exitstatus


def test_long_text_goes_through_the_pager(terminal: Terminal, many_tasks: Path, pager: str) -> None:
    for variables in ({"WBSCOPE_PAGER": pager, "PAGER": "false"}, {"PAGER": pager}):
        shown, code = _end(terminal("query", "throttle_by_task", many_tasks, **variables))
        # A warning is the first line of what is read.
        assert f"PAGED {_LONG} warning[lower-bound]: pages" in shown
        assert shown.count("lower-bound") == 1
        assert code == 0


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["--limit", "3"], {}),
        (["--no-pager"], {}),
        (["--json"], {}),
        (["--csv"], {}),
        ([], {"WBSCOPE_PAGER": "cat"}),
        ([], {"WBSCOPE_PAGER": ""}),
        ([], {"TERM": "dumb"}),
        ([], {"TERM": None}),
    ],
)
def test_no_pager(
    terminal: Terminal,
    many_tasks: Path,
    pager: str,
    words: list[str],
    variables: dict[str, str | None],
) -> None:
    more = {"PAGER": pager, **variables}
    shown, code = _end(terminal("query", "throttle_by_task", many_tasks, *words, **more))
    assert "PAGED" not in shown
    assert "11" in shown
    assert code == 0


def test_no_pager_for_a_file_or_a_pipe(
    terminal: Terminal, start: Callable[..., Popen[bytes]], many_tasks: Path, pager: str
) -> None:
    to_file = many_tasks.with_suffix(".txt")
    asked = ("query", "throttle_by_task", many_tasks)
    shown, _ = _end(terminal(*asked, "-o", to_file, PAGER=pager))
    assert "PAGED" not in shown
    assert len(to_file.read_text().splitlines()) == _LONG
    out, _ = start(*asked, env={**os.environ, "PAGER": pager}).communicate()
    assert len(out.splitlines()) == _LONG


def test_less_is_what_there_is(terminal: Terminal, many_tasks: Path) -> None:
    process = terminal("query", "throttle_by_task", many_tasks, LESS=None)
    process.expect("lower-bound")
    process.expect(_PROMPT)
    process.send("G")
    process.expect("137")
    assert _quit(process)[1] == 0


def test_ctrl_c_is_for_the_pager(terminal: Terminal, many_tasks: Path) -> None:
    process = terminal("query", "throttle_by_task", many_tasks)
    process.expect("lower-bound")
    process.expect(_PROMPT)
    process.sendintr()
    shown, code = _quit(process)
    assert code == 0
    assert "interrupted" not in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize("command", ["true", "head -n 1"])
def test_left_before_the_end(terminal: Terminal, many_tasks: Path, command: str) -> None:
    with sqlite3.connect(many_tasks) as connection:
        rows = [(1_500_000_000 + tid, tid) for tid in range(1000, 9000)]
        event = "INSERT INTO ev_balance_dirty_pages VALUES (?, 0, ?, 0, '8:0', 20, 7, 99)"
        connection.executemany(event, rows)
    shown, code = _end(terminal("query", "throttle_by_task", many_tasks, PAGER=command))
    assert code == 0
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize("variables", [{"PAGER": "no-such-pager"}, {"PATH": "/nonexistent"}])
def test_without_the_program_the_text_is_there(
    terminal: Terminal, many_tasks: Path, variables: dict[str, str]
) -> None:
    shown, code = _end(terminal("query", "throttle_by_task", many_tasks, **variables))
    assert "137" in shown
    assert "lower-bound" in shown
    assert code == 0


def test_the_exit_code_is_as_without(
    terminal: Terminal, many_tasks: Path, new_database: Callable[..., Path], pager: str
) -> None:
    other = new_database("none.db")
    with sqlite3.connect(other) as connection:
        connection.execute("DELETE FROM event_format")
    shown, code = _end(terminal("query", "throttle_by_task", many_tasks, other, PAGER=pager))
    assert "PAGED" in shown
    assert code == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_kill_ends_both(terminal: Terminal, many_tasks: Path, number: signal.Signals) -> None:
    process = terminal("query", "throttle_by_task", many_tasks)
    process.expect("lower-bound")
    process.expect(":")
    process.kill(number)
    assert _end(process)[1] == 130
