# SPDX-License-Identifier: Apache-2.0
"""What is there instead of what the user named: runs in a folder, names like a wrong one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from wbscope.base.children import file_word
from wbscope.base.errors import InputError
from wbscope.base.nearest import nearest

__all__ = ["no_such_file", "report_of", "run_word", "runs_among"]

IsRun = Callable[[Path], bool]

_SHOWN = 8
# Of a folder with more no one is looked for.
_MOST_ENTRIES = 2_000


def report_of(path: Path) -> str:
    """The command that reads this run, whatever was wanted of it."""
    return f"wbscope report {shlex.quote(run_word(path))}"


def run_word(path: Path) -> str:
    """What names this run on a command line; stdin stays what it is."""
    return "-" if str(path) == "-" else file_word(path)


def runs_among(folder: Path, names: Sequence[str], is_run: IsRun) -> list[str]:
    """The entries of a folder that are runs."""
    if len(names) > _MOST_ENTRIES:
        return []
    return [name for name in names if not name.startswith(".") and is_run(folder / name)]


def no_such_file(text: str, is_run: IsRun) -> InputError:
    """With what is like it in the same folder, or what a pattern in quotes would have matched."""
    if re.match(r"(?:https?|ftp)://.", text):
        return InputError(
            "no-such-file",
            text,
            "is an address, wanted a run folder, a trace or a .db",
            fix=f"curl -L {shlex.quote(text)} | wbscope report -",
        )
    path = Path(text)
    folder = path.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    near = [folder / name for name in _like(path.name, folder)] if folder == path.parent else []
    runs = [one for one in near if is_run(one)]
    told = "does not exist, wanted a run folder, a trace or a .db"
    if any(sign in path.name for sign in "*?["):
        met = any(fnmatchcase(one.name, path.name) for one in near)
        told = "is in quotes, so no shell put names for it" if met else "matches no file"
    return InputError(
        "no-such-file",
        text,
        told,
        have=", ".join(map(str, (runs or near)[:_SHOWN])) or None,
        fix=report_of(runs[0]) if runs else f"ls {shlex.quote(str(folder))}",
    )


def _like(name: str, folder: Path) -> list[str]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
    if len(names) > _MOST_ENTRIES:
        return []
    return [one for one in names if fnmatchcase(one, name)] or nearest(name, names)
