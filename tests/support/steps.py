# SPDX-License-Identifier: Apache-2.0
"""What sessions say, and which steps they have and keep."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

from wbscope.base.errors import EvidenceError, UsageError
from wbscope.library.library import Library
from wbscope.library.params import Params
from wbscope.library.session import Session
from wbscope.library.sqlite import SqliteEngine

__all__ = [
    "QUESTIONS",
    "answer_of",
    "answers",
    "findings",
    "kept",
    "names_in",
    "tables_of",
    "workers",
]

QUESTIONS = ("stalls", "stalls_by_task", "dirty_position", "fairness", "throttle_by_task")


def workers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "wbscope-steps"]


def kept(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.db"))


def tables_of(cache: Path) -> set[str]:
    names: set[str] = set()
    for path in kept(cache):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            names |= names_in(connection)
    return names


def names_in(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def answer_of(session: Session, name: str, params: Params | None = None) -> object:
    try:
        found = session.query(name, params)
        return repr((found.rows, found.warnings))  # types, too: 1 is not 1.0
    except (EvidenceError, UsageError) as error:
        return error.slug


def answers(
    path: Path, library: Library, params: Params | None = None, *, announced: bool = False
) -> tuple[dict[str, object], frozenset[str]]:
    """What some queries say, or all that are announced, and the steps that were there before."""
    engine = SqliteEngine(path, "run.db", library)
    engine.use(params or Params())
    given = engine.given
    session = Session(engine, library, "run.db")
    names = [query.name for query in library.queries()]
    order = session.expect(names, params) if announced else QUESTIONS
    assert not announced or sorted(order) == sorted(names)
    told = {name: answer_of(session, name, params) for name in order}
    engine.close()
    return told, given


def findings(path: Path, library: Library) -> object:
    engine = SqliteEngine(path, "run.db", library)
    found = Session(engine, library, "run.db").findings()
    engine.close()
    return found
