# SPDX-License-Identifier: Apache-2.0
"""The prompt of `wbscope sql RUN`: on a terminal (pty), and its dot commands without one."""

from __future__ import annotations

import os
import re
import resource
import signal
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pytest
import wbscope
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from support.stdlib import ENDLESS, runs_a_statement
from support.waits import close, spawn, wait_until
from wbscope.cli.shell import Shell
from wbscope.cli.shell_commands import Objects, SqlCompleter, answer

# The prompt of `wbscope sql RUN`, on a terminal of its own (pty).

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
Terminal = Callable[..., "Screen"]


class Screen:
    """A terminal with wbscope in it."""

    def __init__(
        self, words: list[str], env: dict[str, str], lines: int, file_bytes: int | None
    ) -> None:
        def limit() -> None:
            """Writing more than that to a file fails, as on a disk that is full."""
            if file_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

        program = (sys.executable, "-m", "wbscope", *words)
        self.process = spawn(*program, env=env, size=(lines, 100), preexec_fn=limit)

    def prompt(self) -> str:
        """What was shown until the prompt is there again."""
        self.process.expect(r"wbscope>[^\r\n]*\x1b\[\?25h")
        return _ESCAPES.sub("", self.process.before or "")

    def ask(self, line: str) -> str:
        """Type a line; what is shown until the next prompt."""
        self.process.send(line + "\r")
        # The line itself is drawn several times before it is taken.
        self.process.expect(r"\x1b\[\?2004l")
        return self.prompt()

    def interrupt(self) -> None:
        """Ctrl-C while the statement runs."""
        wait_until(lambda: runs_a_statement(self.process.pid), "rows of the statement on the disk")
        self.process.sendintr()
        self.process.expect("stopped")

    def end(self) -> int | None:
        self.process.expect(pexpect.EOF)
        close(self.process)
        return self.process.exitstatus


@pytest.fixture
def terminal(database: Path, tmp_path: Path) -> Iterator[Terminal]:
    screens: list[Screen] = []

    def start(
        *words: str,
        lines: int = 40,
        run: Path = database,
        file_bytes: int | None = None,
        **more: str,
    ) -> Screen:
        env = {
            **os.environ,
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "TERM": "xterm",
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **more,
        }
        screens.append(Screen(["sql", str(run), *words], env, lines, file_bytes))
        return screens[-1]

    yield start
    for screen in screens:
        close(screen.process, kill=True)


def test_statements_of_one_line_and_of_several(terminal: Terminal) -> None:
    screen = terminal()
    assert ".help lists the commands" in screen.prompt()
    assert screen.ask("SELECT 7 AS a;") == "a\r\n-\r\n7\r\n"
    screen.process.send("SELECT 8 AS b,\r")
    screen.process.expect(r"\.\.\.>")
    assert screen.ask("9 AS c;") == "b  c\r\n-  -\r\n8  9\r\n"
    assert screen.ask("SELECT 1 AS x; SELECT 2 AS y;").count("-\r\n") == 2
    assert screen.ask("").strip() == ""


def test_ctrl_d_and_quit_leave(terminal: Terminal) -> None:
    screen = terminal()
    screen.prompt()
    screen.process.sendeof()
    assert screen.end() == 0
    for word in (".quit", "quit", "exit;"):  # no statement, as sqlite3 and psql have it
        screen = terminal()
        screen.prompt()
        screen.process.send(f"{word}\r")
        assert screen.end() == 0


def test_a_dumb_terminal_will_do(terminal: Terminal) -> None:
    screen = terminal(TERM="dumb")
    screen.process.expect("wbscope> ")
    screen.process.send("SELECT 7 AS a;\r")
    screen.process.expect("a\r\n-\r\n7\r\n")
    screen.process.expect("wbscope> ")
    screen.process.send(".quit\r")
    assert screen.end() == 0


def test_ctrl_c_stops_the_statement_and_the_prompt_is_back(terminal: Terminal) -> None:
    screen = terminal()
    screen.prompt()
    screen.process.send(ENDLESS + ";\r")
    screen.process.expect(r"\x1b\[\?2004l")
    screen.interrupt()
    screen.prompt()
    assert screen.ask("SELECT 7 AS a;") == "a\r\n-\r\n7\r\n"


@contextmanager
def keyboard(
    database: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[PipeInput, wbscope.Run]]:
    """Keys for a prompt of this process; signals are handled as before at the end."""
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with (
            create_pipe_input() as keys,
            create_app_session(input=keys, output=DummyOutput()),
            wbscope.open(database) as run,
        ):
            yield keys, run
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def test_ctrl_c_while_the_prompt_is_taken_down(
    database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The statement is not run, and the user is told so."""
    whole = PromptSession.prompt
    broken = []

    def prompt(session: PromptSession[str], **given: Any) -> str:
        text = whole(session, **given)
        if not broken:
            broken.append(text)
            raise KeyboardInterrupt
        return text

    monkeypatch.setattr(PromptSession, "prompt", prompt)
    with keyboard(database, tmp_path, monkeypatch) as (keys, run):
        keys.send_text("SELECT 7 AS lucky;\r.quit\r")
        Shell(run, None, False).run()
    assert broken == ["SELECT 7 AS lucky;"]
    told = capsys.readouterr()
    assert "stopped" in told.err.splitlines()
    assert "lucky" not in told.out


def test_a_kill_takes_no_callback_of_the_prompt_with_it(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception within its event loop did, once in fifty times, and the loop waited for it."""
    whole = PromptSession.prompt
    went_on = []

    def prompt(session: PromptSession[str], *, pre_run: Callable[[], None]) -> str:
        def begin() -> None:
            pre_run()
            os.kill(os.getpid(), signal.SIGTERM)  # its handler runs before the next line
            went_on.append(True)

        return whole(session, pre_run=begin)

    monkeypatch.setattr(PromptSession, "prompt", prompt)
    with keyboard(database, tmp_path, monkeypatch) as (_, run), pytest.raises(KeyboardInterrupt):
        Shell(run, None, False).run()
    assert went_on == [True]


def test_ctrl_c_at_the_prompt_clears_the_line(terminal: Terminal) -> None:
    screen = terminal()
    screen.prompt()
    screen.process.send("SELECT nonsense")
    screen.process.expect("nonsense")
    screen.process.sendintr()
    screen.prompt()
    assert screen.ask("SELECT 7 AS a;") == "a\r\n-\r\n7\r\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("busy", [True, False])
def test_a_kill_ends_it(terminal: Terminal, number: signal.Signals, busy: bool) -> None:
    screen = terminal()
    screen.prompt()
    if busy:
        screen.process.send(ENDLESS + ";\r")
        screen.process.expect(r"\x1b\[\?2004l")
    screen.process.kill(number)
    assert screen.end() == 130


def test_a_time_limit_stops_it(terminal: Terminal) -> None:
    screen = terminal("--timeout", "1s")  # SELECT 7: a millisecond
    screen.prompt()
    assert "error[time-limit]" in screen.ask(ENDLESS + ";")
    assert screen.ask("SELECT 7 AS a;") == "a\r\n-\r\n7\r\n"


def test_nothing_can_be_written(terminal: Terminal, database: Path) -> None:
    before = database.read_bytes()
    screen = terminal()
    screen.prompt()
    assert "error[not-a-select]" in screen.ask("DELETE FROM meta;")
    assert "error[not-a-select]" in screen.ask("ATTACH '/etc/passwd' AS other;")
    assert "error[read-only]" in screen.ask("WITH x AS (SELECT 1) DELETE FROM meta;")
    assert "error[sql-error]" in screen.ask("SELECT nonsense;")
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "fix", "found"),
    [
        ("SELECT nonsense;", ".tables", "wb_throttle"),
        ("SELECT nonsense FROM task;", ".schema task", "comm"),
        ("SELECT * FROM wb_throtle;", ".tables", "wb_throttle"),
    ],
)
def test_the_fix_can_be_typed_where_one_is(
    terminal: Terminal, statement: str, fix: str, found: str
) -> None:
    screen = terminal()
    screen.prompt()
    assert f"fix: {fix}\r\n" in screen.ask(statement)
    assert found in screen.ask(fix)


def test_dot_commands(terminal: Terminal) -> None:
    screen = terminal()
    screen.prompt()
    helped = screen.ask(".help")
    assert all(name in helped for name in (".tables", ".schema", ".quit"))
    tables = screen.ask(".tables")
    assert all(name in tables for name in ("event_counts", "throttle_by_task", "wb_throttle"))
    assert "raw_task" not in tables
    assert "raw_task" in screen.ask(".tables --all")
    some = screen.ask(".tables wb_*")
    assert "wb_throttle" in some
    assert "event_counts" not in some
    assert "error[no-such-table]" in screen.ask(".tables x*")
    schema = screen.ask(".schema wb_throttle")
    assert "One row for each pause." in schema
    assert "CREATE VIEW wb_throttle AS" in schema
    assert "CREATE TABLE task(tid INTEGER" in screen.ask(".schema task")
    wrong = screen.ask(".schema wb_throtle")
    assert "error[no-such-table]" in wrong
    assert "have: wb_throttle" in wrong
    assert "error[usage]: .nonsense" in screen.ask(".nonsense")


def test_completion(terminal: Terminal) -> None:
    screen = terminal()
    screen.prompt()
    screen.process.send("SELECT name FROM event_f\t")
    screen.process.expect("ormat")
    screen.process.send(" AS f WHERE f.tab\t")
    screen.process.expect("le_name")
    screen.process.send(" IS NOT nul\t")
    screen.process.expect("l")
    screen.process.sendintr()
    screen.prompt()
    screen.process.send(".sch\t")
    screen.process.expect("ema")
    screen.process.send(" wb_thro\t")
    screen.process.expect("ttle")
    assert "CREATE VIEW wb_throttle" in screen.ask("")


def test_history_is_kept_for_the_next_session(terminal: Terminal, tmp_path: Path) -> None:
    screen = terminal()
    screen.prompt()
    screen.ask("SELECT 7 AS kept;")
    screen.process.sendeof()
    assert screen.end() == 0
    kept = tmp_path / "state" / "wbscope" / "sql_history"
    assert "SELECT 7 AS kept;" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    screen = terminal()
    screen.prompt()
    screen.process.send("\x1b[A")  # up
    screen.process.expect("SELECT 7 AS kept;")
    assert "kept" in screen.ask("")


def test_a_history_that_cannot_be_kept_is_no_reason_to_stop(
    terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("in the way")
    screen = terminal()
    assert "statements are not kept" in screen.prompt()
    assert "7" in screen.ask("SELECT 7;")


def test_a_disk_that_is_full_behind_the_history(terminal: Terminal) -> None:
    screen = terminal(file_bytes=0)
    screen.prompt()
    assert "the statement is not kept" in screen.ask("SELECT 7 AS a;")
    assert screen.ask("SELECT 8 AS b;").endswith("b\r\n-\r\n8\r\n")


def test_a_long_answer_goes_through_the_pager(terminal: Terminal, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED $(wc -l)\n")
    pager.chmod(0o755)
    screen = terminal(lines=12, PAGER=str(pager))
    screen.prompt()
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {})"
    assert "PAGED" not in screen.ask(numbers.format(3) + " SELECT i FROM n;")
    assert "PAGED 32" in screen.ask(numbers.format(30) + " SELECT i FROM n;")


def test_endless_rows_are_cut(terminal: Terminal) -> None:
    screen = terminal(PAGER="wc -l")
    screen.prompt()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;"
    shown = screen.ask(endless)
    assert "10002" in shown
    assert "warning[cut-short]: only the first 10000 rows" in shown


def test_lost_events_come_before_any_number(
    terminal: Terminal, new_database: Callable[..., Path]
) -> None:
    screen = terminal(run=new_database("lost.db", lost_events_count=5))
    assert "warning[lost-events]: 5 events were lost" in screen.prompt()
    assert "lost-events" not in screen.ask("SELECT 7;")


@pytest.mark.parametrize("option", ["--json", "--csv", "--markdown"])
def test_the_prompt_prints_tables_only(terminal: Terminal, option: str) -> None:
    screen = terminal(option)
    screen.process.expect("no-statement")
    assert screen.end() == 2


# Dot commands and completion of the prompt, without a terminal.


@pytest.fixture
def objects(database: Path) -> Iterator[Objects]:
    with wbscope.open(database) as run:
        yield Objects(run)


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("SELECT * FROM event_f", ["event_format"]),
        ("SELECT * FROM wb_", ["wb_params", "wb_throttle", "wb_warning"]),
        ("SELECT * FROM task AS t WHERE t.", ["tid", "comm"]),
        ("SELECT * FROM task JOIN meta AS m ON m.k", ["key"]),
        ("SELECT tid FROM task WHERE co", ["comm", "coalesce", "count"]),
        (".sch", [".schema"]),
        (".schema wb_thr", ["wb_throttle"]),
        (".schema nothing", []),
        ("SELECT * FROM nowhere AS n WHERE n.x", []),
    ],
)
def test_completion_without_a_terminal(objects: Objects, text: str, some: list[str]) -> None:
    completer = SqlCompleter(objects)
    found = completer.get_completions(Document(text), CompleteEvent())
    names = [completion.text for completion in found]
    assert [name for name in names if name in some] == some
    if not some:
        assert names == []


def test_completion_of_columns_knows_tables_after_the_cursor(objects: Objects) -> None:
    document = Document("SELECT co FROM task", cursor_position=len("SELECT co"))
    found = SqlCompleter(objects).get_completions(document, CompleteEvent())
    assert next(iter(found)).text == "comm"


def test_completion_replaces_what_was_typed(objects: Objects) -> None:
    found = SqlCompleter(objects).get_completions(Document("SELECT * FROM TAS"), CompleteEvent())
    assert [(c.text, c.start_position) for c in found] == [("task", -3)]


def test_schema_has_type_unit_and_meaning(objects: Objects) -> None:
    schema = answer(".schema tl_pauses", objects, 80).splitlines()
    assert schema[0] == "timeline tl_pauses"
    assert any(
        line.split() == ["ts", "INTEGER", "ns", "start,", "trace", "clock"] for line in schema
    )
    assert "  made of: wb_throttle" in schema


def test_columns_are_those_that_a_select_gives(database: Path) -> None:
    with wbscope.open(database) as run:
        objects = Objects(run)
        for name in ("tl_pauses", "task", "event_counts"):
            assert objects.columns(name) == list(run.sql(f"SELECT * FROM {name}").columns)


def test_names_of_a_strangers_database_cannot_steer_the_terminal(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE \"a\x1b[2Jb\" (x TEXT DEFAULT '\x1b[2J')")
    with wbscope.open(database) as run:
        objects = Objects(run)
        shown = answer(".tables", objects, 80) + answer(".schema a\x1b[2Jb", objects, 80)
    assert "\\x1b[2Jb" in shown
    assert "\x1b" not in shown


def test_help_fits_the_page(objects: Objects) -> None:
    for width in (60, 80):
        shown = answer(".help", objects, width)
        assert all(len(line) <= width for line in shown.splitlines())
