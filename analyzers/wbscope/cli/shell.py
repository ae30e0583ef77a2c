# SPDX-License-Identifier: Apache-2.0
"""Reads statements and dot commands from a terminal until it is told to stop."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
from pathlib import Path
from types import FrameType

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from wbscope.base.errors import WbscopeError
from wbscope.base.result import Notice
from wbscope.base.watch import time_limit
from wbscope.cli.output import error_in_options, note, page, page_width, show_warnings, write_stderr
from wbscope.cli.shell_commands import QUIT, Objects, SqlCompleter, answer
from wbscope.library.statements import is_complete, split_statements
from wbscope.render.text import error_text, table_text
from wbscope.run.run import Run

_PROMPT = "wbscope> "
_MORE = "    ...> "
# As many as anybody scrolls through; more would only fill the memory.
_MOST_ROWS = 10_000
# Lines of the screen that the prompt takes.
_SPARE = 2


class Shell:
    """One session at the terminal."""

    def __init__(self, run: Run, limit_ns: int | None, pager: bool) -> None:
        self._run = run
        self._limit_ns = limit_ns
        self._pager = pager
        self._objects = Objects(run)
        self._told: tuple[Notice, ...] = ()
        self._ended = False
        self._is_taken = False  # a statement, until the next prompt
        self._is_prompting = False
        self._app: Application[str] | None = None

    def run(self) -> None:
        """Until .quit or Ctrl-D; a signal that ends programs ends it as Ctrl-C does them."""
        session = self._session()
        self._app = session.app
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._end)
        self._told = self._run.warnings()
        show_warnings(self._told)
        note(f"{self._run.name}: .help lists the commands, a statement ends with ';'")
        while True:
            self._is_taken = False
            try:
                text = self._prompted(session)
                # The exception can be lost while a pager runs.
                if self._ended or text.strip() in QUIT:
                    break
                self._tell_of_history(session.history)
                self._answer(text)
                if self._ended:
                    break
            except KeyboardInterrupt:
                if self._ended:
                    raise
                # At the prompt Ctrl-C has cleared the line. It may come while the prompt is taken
                # down, too.
                if self._is_taken:
                    note("stopped")
            except EOFError:
                return
            except WbscopeError as error:
                write_stderr(error_text(_at_the_prompt(error_in_options(error))))
        if self._ended:
            raise KeyboardInterrupt

    def _tell_of_history(self, history: History) -> None:
        if isinstance(history, _KeptHistory) and history.problem:
            note(f"the statement is not kept: {history.problem}")
            history.problem = ""

    def _answer(self, text: str) -> None:
        if text.lstrip().startswith("."):
            self._show(answer(text.strip(), self._objects, page_width()))
            return
        for statement in split_statements(text):
            with time_limit(self._limit_ns):
                result = self._run.select(statement.text, self._limit_ns, _MOST_ROWS)
                text = table_text(result, page_width())
            self._show(text)
            show_warnings(notice for notice in result.warnings if notice not in self._told)

    def _show(self, text: str) -> None:
        page(text, pager=self._pager, spare_lines=_SPARE)

    def _session(self) -> PromptSession[str]:
        return PromptSession(
            _PROMPT,
            multiline=True,
            prompt_continuation=_MORE,
            key_bindings=self._bindings(),
            completer=SqlCompleter(self._objects),
            complete_while_typing=False,
            history=_history(),
            enable_history_search=False,
        )

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("enter")
        def _(event: KeyPressEvent) -> None:
            """Enter ends a statement that has its ';', else it begins a new line."""
            text = event.current_buffer.text
            is_command = text.lstrip().startswith(".") or text.strip() in QUIT
            if is_command or not text.strip() or is_complete(text):
                self._is_taken = True
                event.current_buffer.validate_and_handle()
            else:
                event.current_buffer.insert_text("\n")

        return bindings

    def _prompted(self, session: PromptSession[str]) -> str:
        self._is_prompting = True
        try:
            return session.prompt(pre_run=self._leave)
        finally:
            self._is_prompting = False

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._ended = True
        if not self._is_prompting:
            raise KeyboardInterrupt
        # An exception within the event loop of the prompt can take a callback with it that the
        # loop then waits for: it is asked to end.
        if self._app is not None and self._app.loop is not None:
            with contextlib.suppress(RuntimeError):  # it is closed: the prompt is done
                self._app.loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        """End the prompt if a signal has come, and it has no answer already."""
        app = self._app
        if self._ended and app is not None and app.is_running and not app.is_done:
            app.exit(exception=KeyboardInterrupt)


def _at_the_prompt(error: WbscopeError) -> WbscopeError:
    """With the dot command for a command line that would ask the same of this run."""
    words = shlex.split(error.fix or "", comments=True)
    if len(words) == 4 and words[:2] == ["wbscope", "sql"]:
        error.fix = words[3]
    elif len(words) == 4 and words[:2] == ["wbscope", "query"]:
        error.fix = f".query {words[2]}"
    return error


class _KeptHistory(FileHistory):
    """A disk that is full later on costs the history, not the session."""

    problem = ""

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError as error:
            # The line is still being drawn: the loop says it.
            self.problem = f"{os.fsdecode(self.filename)}: {error.strerror}"


def _history() -> History:
    """In $XDG_STATE_HOME/wbscope, readable by its owner only; in memory where that fails."""
    home = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not home.is_absolute():  # the specification says that it must be
        home = Path("~/.local/state").expanduser()
    path = home / "wbscope" / "sql_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    except OSError as error:
        note(f"statements are not kept: {path}: {error.strerror}")
        return InMemoryHistory()
    return _KeptHistory(str(path))
