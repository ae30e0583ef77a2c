# SPDX-License-Identifier: Apache-2.0
"""Long text on a terminal goes through a pager, as git's does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable

from rich.cells import cell_len

from wbscope.base.result import Notice
from wbscope.cli.colours import coloured, has_colours, keeps_colours
from wbscope.cli.output import show_warnings, write_stdout
from wbscope.cli.wording import warnings_in_options
from wbscope.render.messages import warning_text

__all__ = ["page"]

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
    """Whether the pager could be run; it may have been left before the end of the text."""
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
