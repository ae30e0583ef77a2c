# SPDX-License-Identifier: Apache-2.0
"""What runs the library's SQL over one run: SQLite, or Perfetto's trace processor."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from wbscope.library.database import Recorded
from wbscope.library.params import Params

__all__ = [
    "EVENTS",
    "FINDINGS",
    "PARAMS",
    "WARNINGS",
    "Engine",
    "Rows",
    "Script",
]

# The view that holds the filters, and the one that tells what to know of the rows.
PARAMS = "wb_params"
WARNINGS = "wb_warning"
# The view that holds the findings in words, which no SQL makes.
FINDINGS = "wb_finding"
# The view of the events of all tables.
EVENTS = "event"

Rows = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""Names of the columns, and the rows."""


@dataclass(frozen=True)
class Script:
    """What makes views on another connection, and the names of all that is there then."""

    statements: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()


class Engine(Protocol):
    """One run, and the filters that the views are made with.

    `database` is the run's, or what takes its place, and `facts` a connection to it; `shown` is
    what the user calls the run. `recorded` tells which events there are.
    Errors are WbscopeError: no other layer knows those of an engine.
    """

    database: Path
    shown: str

    @property
    def facts(self) -> sqlite3.Connection:
        """The tables that are not events: files of the run folder, cgroups."""

    @property
    def recorded(self) -> Recorded:
        """Which events were recorded, how many, and the run's meta data."""

    def use(self, params: Params) -> None:
        """Answer with these filters from now on; before the first call there are none."""

    def put(self, name: str, select: str) -> None:
        """Let this view be that SELECT, until other filters are used."""

    def expect(self, needs: Mapping[str, Iterable[str]]) -> list[str]:
        """These questions will be asked, each of these views: an engine may begin with them.

        Returns the questions in the order in which what they need will be there.
        Raises: nothing; whatever is wrong with a view is told when it is asked for.
        """

    def answered(self, query: str) -> str | None:
        """What reads the rows of a query that expect() has begun with; the filters are the same."""

    def answer(
        self, about: str, names: Iterable[str], tables: Iterable[str], selects: Sequence[str]
    ) -> list[Rows]:
        """Make these views and give the rows of each SELECT, as one question that can be stopped.

        Of `tables` and what these need, views may be made tables first. `about` is what the
        question is called in an error.
        """

    def script(self, names: Iterable[str], *, kept: bool = False) -> Script:
        """What makes these views elsewhere, over the same run.

        With `kept` they may read tables that this engine has made in files.
        """

    def close(self) -> None:
        """Let go of the run; once is enough."""
