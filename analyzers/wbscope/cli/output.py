# SPDX-License-Identifier: Apache-2.0
"""stdout carries the result; everything else goes to stderr."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from wbscope.base.errors import SetupError
from wbscope.base.result import Notice
from wbscope.cli.colours import coloured, has_colours
from wbscope.cli.wording import warnings_in_options
from wbscope.render.messages import warning_text
from wbscope.render.printable import printable
from wbscope.render.progress import ProgressBar
from wbscope.render.table import PAGE_WIDTH

__all__ = [
    "cannot_write_stdout",
    "closed_stdout",
    "drop_output",
    "note",
    "page_width",
    "progress_bar",
    "show_warnings",
    "table_width",
    "write_stderr",
    "write_stdout",
]

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


def progress_bar(source: str, hidden: bool) -> ProgressBar:
    """A bar for an ingest of `source`, drawn only on a terminal."""
    title = printable(f"reading {Path(source).name or source}")
    return ProgressBar(sys.stderr, title, enabled=not hidden)
