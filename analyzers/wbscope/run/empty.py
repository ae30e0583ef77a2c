# SPDX-License-Identifier: Apache-2.0
"""Why an answer is empty: a filter that fits none of the rows there would be."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.result import Notice, Result
from wbscope.library.params import Params

__all__ = ["unfiltered", "why_empty"]

_SHOWN = 5

# Filter of wb_params: its argument, the columns that it is compared with, and how.
_Fits = Callable[[Any, Any], bool]
_CHOICES: dict[str, tuple[str, tuple[str, ...], _Fits]] = {
    "bdi": ("bdi", ("bdi", "device"), lambda found, wanted: found == wanted),
    "tid": ("tid", ("tid",), lambda found, wanted: found == wanted),
    "comm_glob": ("task", ("comm",), lambda found, wanted: _glob(found, wanted)),
    "cgroup_ino": ("cgroup", ("cgroup_ino",), lambda found, wanted: found == wanted),
}


def unfiltered(params: Params) -> Params:
    """Without the filters that choose among devices, tasks and cgroups."""
    return replace(params, bdi=None, tid=None, comm_glob=None, cgroup_ino=None)


def why_empty(params: Params, whole: Result) -> tuple[Notice, ...]:
    """A warning for each filter that fits no row of the answer without filters."""
    notices = []
    for name, wanted in params.given().items():
        if name not in _CHOICES:
            continue
        argument, columns, fits = _CHOICES[name]
        index = next((i for i, column in enumerate(whole.columns) if column in columns), None)
        if index is None:
            continue
        found = {row[index] for row in whole.rows} - {None}
        if found and not any(fits(value, wanted) for value in found):
            some = _nearest(str(wanted), {str(value) for value in found})
            message = Phrase(Argument(argument, wanted), f" fits no row; there are {some}")
            notices.append(Notice(f"no-such-{argument}", message))
    return tuple(notices)


def _glob(found: Any, wanted: Any) -> bool:
    """As the queries compare: SQLite's GLOB, where [^a] is what fnmatch calls [!a]."""
    with closing(sqlite3.connect(":memory:")) as connection:
        row = connection.execute("SELECT ? GLOB ?", (found, wanted)).fetchone()
    return bool(row[0])


def _nearest(wanted: str, found: set[str]) -> str:
    close = difflib.get_close_matches(wanted.strip("*"), sorted(found), n=_SHOWN, cutoff=0.5)
    shown = close or sorted(found)[:_SHOWN]
    more = len(found) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
