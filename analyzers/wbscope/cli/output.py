# SPDX-License-Identifier: Apache-2.0
"""stdout carries the result, through a pager on a terminal; everything else goes to stderr."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from rich.cells import cell_len

from wbscope.base.errors import Argument, SetupError, WbscopeError
from wbscope.base.result import Notice, Result
from wbscope.render.text import PAGE_WIDTH, printable, warning_text

if TYPE_CHECKING:
    from rich.progress import Progress

_RED, _GREEN, _YELLOW, _CYAN, _BOLD = "1;31", "32", "33", "36", "1"
# What a line begins with, and its colour. Values are of no colour: they may be anything.
_RULES = tuple(
    (re.compile(pattern, re.MULTILINE), colour)
    for pattern, colour in (
        (r"^error\[[\w-]+\]", _RED),
        (r"^warning\[[\w-]+\]", _YELLOW),
        (r"^severe(?=  )", _RED),
        (r"^warning(?=  )", _YELLOW),
        (r"^note(?=  )", _CYAN),
        (r"^ok(?=  )", _GREEN),
        (r"(?<=^  )fix(?=: )", _GREEN),
        (r"^To do(?=: )", _BOLD),
        (r"^:\( (?:FAIL|WORSE)\b|(?<=^gate: )(?:FAIL|WORSE|REFUSED)\b", _RED),
        (r"^:\) PASS\b|(?<=^gate: )PASS\b", _GREEN),
        (r"(?<=^gate: )INCONCLUSIVE\b", _YELLOW),
        (r"^\S.*(?=\n={3,}$)", _BOLD),
    )
)


def has_colours(stream: TextIO | None) -> bool:
    """Whether what is written there is seen in colours: https://no-color.org."""
    if stream is None or os.environ.get("NO_COLOR") or not stream.isatty():
        return False
    return os.environ.get("TERM", "dumb") != "dumb"


def keeps_colours(pager: str) -> bool:
    """Whether a pager shows them: less does, where its options say so."""
    program, _, options = pager.partition(" ")
    if os.path.basename(program) != "less":
        return False
    return "R" in f"{options} {os.environ.get('LESS', 'FRX')}"


def coloured(text: str) -> str:
    """The text with the escapes of its colours, and nothing else changed."""
    for pattern, colour in _RULES:
        text = pattern.sub(f"\x1b[{colour}m\\g<0>\x1b[0m", text)
    return text


# What is not called as its argument is.
_OPTIONS = {
    "end": "--to",
    "metrics": "--metric",
    "output": "-o",
    "start": "--from",
}


def option(argument: Argument) -> str:
    """The option for an argument, with its value as a shell takes it; repeated for a list."""
    name = _OPTIONS.get(argument.name) or f"--{argument.name.replace('_', '-')}"
    if argument.value is None or argument.value is True:
        return name
    values = argument.value if isinstance(argument.value, list | tuple) else [argument.value]
    return " ".join(f"{name} {shlex.quote(str(value))}" for value in values)


def error_in_options(error: WbscopeError) -> WbscopeError:
    """The error as it is shown on a command line."""
    return error.spoken(option)


def warnings_in_options(warnings: Iterable[Notice]) -> tuple[Notice, ...]:
    """The warnings as they are shown on a command line."""
    return tuple(notice.spoken(option) for notice in warnings)


def answer_in_options(result: Result) -> Result:
    """The result with such warnings."""
    return result.spoken(option)


# On less, words do not fit.
_LEAST_WIDTH = 20


def closed_stdout() -> SetupError:
    return SetupError("no-stdout", "stdout", "is closed, so there is nowhere to write")


def write_stdout(text: str, *, colours: bool = False) -> None:
    """Write and flush, so that a full disk or a closed pipe is met here.

    `colours` are for a page that people read, where it is shown on a terminal.
    """
    if sys.stdout is None:
        raise closed_stdout()
    try:
        sys.stdout.write(coloured(text) if colours and has_colours(sys.stdout) else text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise cannot_write_stdout(error) from error


def cannot_write_stdout(error: OSError) -> SetupError:
    """The error for that; what is left in the stream goes nowhere, as it would fail once more."""
    drop_output(sys.stdout)
    return SetupError("cannot-write", "stdout", f"cannot be written: {error.strerror or error}")


def note(*lines: str) -> None:
    """For the person at the terminal; what cannot be said changes no exit code.

    Names of files and runs in it may be a stranger's: a line feed in one begins no line.
    """
    for line in lines:
        write_stderr(printable(line))


def write_stderr(text: str) -> None:
    """A line as it is."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write((coloured(text) if has_colours(sys.stderr) else text) + "\n")
        sys.stderr.flush()
    except OSError:  # its reader has gone, its disk is full
        drop_output(sys.stderr)


def drop_output(stream: TextIO | None) -> None:
    """It takes nothing more: keep Python from complaining when it flushes at exit."""
    if stream is None:
        return
    with contextlib.suppress(OSError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, stream.fileno())
        os.close(sink)


def show_warnings(warnings: Iterable[Notice]) -> None:
    """On stderr and before the rows."""
    for notice in warnings_in_options(warnings):
        note(warning_text(notice))


def page_width() -> int:
    """For sentences and pages made of them: $COLUMNS, the terminal's width, else 80."""
    return table_width() or PAGE_WIDTH


def table_width(asked: int | None = None, *, to_file: bool = False) -> int | None:
    """What a table has to fit: as asked, $COLUMNS, the terminal's width; None in a pipe or file."""
    return asked or _columns() or (None if to_file else _terminal_width())


def _columns() -> int | None:
    text = os.environ.get("COLUMNS", "")
    return max(_LEAST_WIDTH, int(text)) if re.fullmatch(r"0*[1-9][0-9]{0,6}", text) else None


def _terminal_width() -> int | None:
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    try:
        width = os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return None
    return max(_LEAST_WIDTH, width) if width else None


class ProgressBar:
    """Draws bytes read of bytes to read; leaves the terminal clean.

    Nothing is drawn before the first news: a run that is in the cache has none.
    """

    def __init__(self, stream: TextIO | None, title: str, enabled: bool) -> None:
        self._stream = stream
        self._title = title
        self._enabled = enabled and stream is not None and stream.isatty()
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            with contextlib.suppress(OSError):  # a terminal that has gone changes no exit code
                self._progress.stop()

    def advance(self, done_bytes: int, total_bytes: int) -> None:
        """Show how far the ingester is."""
        if not self._enabled:
            return
        try:
            if self._progress is None:
                self._progress = self._start()
            for task in self._progress.task_ids:
                self._progress.update(task, completed=done_bytes, total=total_bytes)
        except OSError:
            self._enabled = False

    def _start(self) -> Progress:
        # Imported here: most commands never draw.
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(binary_units=True),
            console=Console(file=self._stream),
            transient=True,
        )
        progress.add_task(self._title)
        progress.start()
        return progress


def progress_bar(source: str, hidden: bool) -> ProgressBar:
    """A bar for an ingest of `source`, drawn only on a terminal."""
    title = printable(f"reading {Path(source).name or source}")
    return ProgressBar(sys.stderr, title, enabled=not hidden)


_LESS = "less -FRX"
# What a shell ends with when it cannot run the command.
_NOT_RUN = (126, 127)


def page(
    text: str,
    *,
    warnings: Iterable[Notice] = (),
    pager: bool = True,
    spare_lines: int = 1,
    colours: bool = True,
) -> None:
    """Write to stdout; through the pager when that is a terminal with fewer lines than the text.

    warnings      come before the text: on stderr, or as its first lines in a pager
    pager         whether one is wanted at all
    spare_lines   of the screen, which a prompt takes
    colours       whether it is a page that people read
    """
    told = list(warnings)
    command = _command()
    if not pager or not command or not _is_long(text, spare_lines):
        show_warnings(told)
        write_stdout(text, colours=colours)
        return
    if sys.stderr is not None and sys.stderr.isatty():
        lines = [warning_text(notice) for notice in warnings_in_options(told)]
        text = "".join(f"{line}\n" for line in lines) + text
    else:
        show_warnings(told)
    shown = colours and has_colours(sys.stdout) and keeps_colours(command)
    if not _shown(command, coloured(text) if shown else text):
        write_stdout(text, colours=colours)


def _command() -> str:
    """$WBSCOPE_PAGER, $PAGER or less; none where one of them is empty or cat."""
    chosen = os.environ.get("WBSCOPE_PAGER", os.environ.get("PAGER"))
    if chosen is None:
        chosen = _LESS if shutil.which("less") else ""
    return "" if chosen.strip() == "cat" else chosen.strip()


def _is_long(text: str, spare_lines: int) -> bool:
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return False
    screen = shutil.get_terminal_size()
    room = screen.lines - spare_lines
    if text.count("\n") > room:
        return True
    lines = text.splitlines()
    return sum(max(1, -(-cell_len(line) // screen.columns)) for line in lines) > room


def _shown(command: str, text: str) -> bool:
    """Whether the pager could be run; it may have been left before the end of the text.

    Those of pydoc and click do not tell, and a kill of ours leaves them waiting.
    """
    sys.stdout.flush()
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=environment)
    # Ctrl-C is for the pager: it is started before we turn deaf, and hears.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.communicate(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    return process.returncode not in _NOT_RUN
