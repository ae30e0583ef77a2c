# SPDX-License-Identifier: Apache-2.0
"""A history: the numbers of runs by commit, in one small SQLite file."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wbscope.base.errors import Argument, InputError, Phrase, SetupError, UsageError, WbscopeError
from wbscope.base.outputs import check_parent, private_folder
from wbscope.base.result import Notice
from wbscope.base.system import absolute
from wbscope.base.version import __version__
from wbscope.compare.rundata import RunData
from wbscope.compare.sameness import copies_on_both
from wbscope.measure.metric import Metric, Scalars, better_of, is_sane

HISTORY_SCHEMA = 1

_APPLICATION = 0x77624869  # "wbHi", by which file(1) and this program know it
_FIX = "wbscope history add NEW.db RUN...    # makes one"
# Another writer is waited for as long.
_WAIT_SECONDS = 30.0
_MOST_CHARACTERS = 200
# Other errors of SQLite are the file's.
_OF_THE_DISK = (
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
)  # fmt: skip
_TABLES = {
    "run": """CREATE TABLE run (
  id INTEGER PRIMARY KEY,
  source_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  date TEXT NOT NULL,
  branch TEXT NOT NULL,
  kernel TEXT,
  session TEXT,
  wbscope_version TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  zeros TEXT NOT NULL,
  warnings TEXT NOT NULL
) STRICT""",
    "metric": """CREATE TABLE metric (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  unit TEXT NOT NULL,
  better TEXT NOT NULL,
  meaning TEXT NOT NULL,
  source TEXT NOT NULL,
  not_across TEXT NOT NULL,
  definition TEXT NOT NULL,
  UNIQUE (name, unit, better, meaning, source, not_across, definition)
) STRICT""",
    "value": """CREATE TABLE value (
  run INTEGER NOT NULL REFERENCES run,
  metric INTEGER NOT NULL REFERENCES metric,
  value REAL NOT NULL,
  PRIMARY KEY (run, metric)
) STRICT, WITHOUT ROWID""",
}


@dataclass(frozen=True)
class Place:
    """Where in the code's history runs belong.

    date  of the commit, with its time zone: commits are in the order of it
    """

    commit: str
    date: datetime
    branch: str = ""

    def __post_init__(self) -> None:
        for option, text in (("commit", self.commit), ("branch", self.branch)):
            if len(text) > _MOST_CHARACTERS or not text.isprintable() or " " in text:
                told = f"is no name: wanted up to {_MOST_CHARACTERS} characters without spaces"
                raise UsageError("bad-name", f"{option} {text[:40]!r}", told, fix="abc1234")
        if not self.commit:
            raise UsageError("bad-name", "commit", "is empty", fix="abc1234")


@dataclass(frozen=True)
class Entry:
    """One run of a history, with its place; runs of one commit and date are its repetitions."""

    run: RunData
    place: Place
    session: str | None = None


def parse_date(subject: str, text: str) -> datetime:
    """2026-11-03, or with a time as git writes it; without a zone it is UTC.

    Raises: UsageError
    """
    try:
        date = datetime.fromisoformat(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            "bad-date",
            f"{subject} {text[:40]!r}",
            "is no date",
            fix="2026-11-03    # or 2026-11-03T14:00:00+01:00",
        ) from error


def add_runs(
    path: Path, runs: Sequence[RunData], place: Place, *, wait_seconds: float = _WAIT_SECONDS
) -> tuple[list[RunData], list[tuple[RunData, str]]]:
    """Store runs, all or none; the file is made where there is none.

    wait_seconds  how long another writer is waited for

    -> those that are new, and those that the history has, each with the commit it is at.

    Raises: InputError for a file that is no history, UsageError for a second date of a commit,
    SetupError where it cannot be written.
    """
    check_parent(path)
    if not os.path.lexists(path):
        with private_folder(path, held=True) as folder:
            own = folder / path.name
            try:
                told = _added(own, runs, place, wait_seconds)
            except WbscopeError as error:
                raise error.with_path(str(own), str(path)) from error
            if _gets_name(own, path):
                return told
    return _added(path, runs, place, wait_seconds)


def _gets_name(own: Path, path: Path) -> bool:
    """A new history is there whole or not at all, and never in the place of another's."""
    try:
        os.link(own, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            return False
        os.rename(own, path)
    return True


def _added(
    path: Path, runs: Sequence[RunData], place: Place, wait_seconds: float
) -> tuple[list[RunData], list[tuple[RunData, str]]]:
    new: list[RunData] = []
    known: list[tuple[RunData, str]] = []
    with _opened(path, write=True, wait_seconds=wait_seconds) as database:
        places = dict(database.execute("SELECT source_id, commit_id FROM run").fetchall())
        _check_date(database, place)
        # By its content, as a run that is known by its place may have been copied.
        has_unmarked = any("." in run.source_id for run in runs)
        stored = _entries(path, database) if has_unmarked else []
        for run in runs:
            commit = places.get(run.source_id) or _copied(run, stored)
            if commit is not None:
                known.append((run, commit))
                continue
            _insert(database, run, place)
            places[run.source_id] = place.commit
            stored.append(Entry(run, place))
            new.append(run)
    return new, known


def _check_date(database: sqlite3.Connection, place: Place) -> None:
    """A commit has one date: with two its runs would be told under the first."""
    find = "SELECT date FROM run WHERE commit_id = ? LIMIT 1"
    told = database.execute(find, (place.commit,)).fetchall()
    asked = place.date.astimezone(UTC).date().isoformat()
    for (text,) in told:
        there = text[: len(asked)]  # as it is stored, in UTC; a damaged one is told elsewhere
        if there != asked and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", there):
            raise UsageError(
                "two-dates",
                place.commit,
                f"is of {there} in the history, and of {asked} here",
                fix=Phrase(Argument("date", there), "    # or another commit"),
            )


def read_history(path: Path) -> list[Entry]:
    """All runs, by the date of their commits.

    Raises: InputError for a file that is no history, or a damaged one.
    """
    with _opened(path, write=False, wait_seconds=_WAIT_SECONDS) as database:
        return sorted(_entries(path, database), key=lambda entry: entry.place.date)


def _copied(run: RunData, stored: Sequence[Entry]) -> str | None:
    """The commit of the run that this one is a copy of."""
    if "." not in run.source_id:
        return None
    named = [replace(one.run, name=str(number)) for number, one in enumerate(stored)]
    copies = copies_on_both([run], named)
    return stored[int(copies[0][1])].place.commit if copies else None


@contextmanager
def _opened(path: Path, *, write: bool, wait_seconds: float) -> Iterator[sqlite3.Connection]:
    """In one transaction: what fails leaves the file as it was."""
    name = str(path)
    if path.exists() and not path.is_file():
        raise InputError("not-a-history", name, "is no file", fix=_FIX)
    if not path.exists() and not write:
        raise InputError("no-file", name, "does not exist", fix=_FIX)
    mode = "rwc" if write else "ro"
    uri = f"file:{quote(os.fsencode(absolute(path)))}?mode={mode}"
    try:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=wait_seconds, isolation_level=None)
        ) as database:
            database.text_factory = _text
            # Before any statement reads what somebody may have put there.
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA foreign_keys = ON")
            if write:
                database.execute("PRAGMA journal_mode = DELETE")  # one file, to copy and to send
                database.execute("BEGIN IMMEDIATE")
                if not path.stat().st_size:
                    _create(database)
            _check(path, database)
            yield database
            if write:
                database.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        raise _told(name, error, wait_seconds) from error
    except UnicodeDecodeError as error:
        raise _damaged(path, error) from error


def _text(data: bytes) -> str:
    """SQLite keeps any bytes as a text.  Raises: UnicodeDecodeError."""
    return data.decode("utf-8")


def _told(name: str, error: sqlite3.DatabaseError, wait_seconds: float) -> InputError | SetupError:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        told = f"is being written by another command, for more than {wait_seconds:g} s"
        return SetupError("busy-history", name, told, fix="try again")
    # Python's own errors have no code. A header can say that a file is not to be written.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    is_damaged = code == sqlite3.SQLITE_READONLY and os.access(name, os.W_OK)
    if code in _OF_THE_DISK and not is_damaged:
        return SetupError("cannot-write", name, f"cannot be opened or written: {error}",
                          fix=f"ls -l {shlex.quote(name)}")  # fmt: skip
    return InputError("not-a-history", name, f"is no history: {error}", fix=_FIX)


def _create(database: sqlite3.Connection) -> None:
    for statement in _TABLES.values():
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {_APPLICATION}")
    database.execute(f"PRAGMA user_version = {HISTORY_SCHEMA}")


def _check(path: Path, database: sqlite3.Connection) -> None:
    """A stranger's file: nothing but these tables, so that reading runs no SQL of theirs."""
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION:
        told = "is an SQLite file of something else, wanted a history"
        raise InputError("not-a-history", str(path), told, fix=_FIX)
    if version != HISTORY_SCHEMA:
        raise InputError(
            "history-version",
            str(path),
            f"has schema {version}, this wbscope reads {HISTORY_SCHEMA}",
            fix="pip install -U wbscope    # or add the runs to a new file",
        )
    found = database.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    if dict(found.fetchall()) != _TABLES:
        told = "has other tables than a history: something else has written to it"
        raise InputError("not-a-history", str(path), told, fix=_FIX)


def _insert(database: sqlite3.Connection, run: RunData, place: Place) -> None:
    kernel = run.fingerprint.get("kernel")
    warnings = [[notice.slug, notice.message] for notice in run.warnings]
    row = (
        run.source_id,
        run.name,
        place.commit,
        place.date.astimezone(UTC).isoformat(timespec="seconds"),
        place.branch,
        None if kernel is None else str(kernel),
        None if run.session is None else run.session.name,
        __version__,
        *(json.dumps(value) for value in (dict(run.fingerprint), dict(run.zeros), warnings)),
    )
    marks = ", ".join("?" * len(row))
    number = database.execute(f"INSERT INTO run VALUES (NULL, {marks})", row).lastrowid
    for metric, value in run.scalars.values():
        if value is not None and is_sane(value):
            database.execute(
                "INSERT INTO value VALUES (?, ?, ?)",
                (number, _metric_number(database, metric, run.definitions), value),
            )


def _metric_number(
    database: sqlite3.Connection, metric: Metric, definitions: Mapping[str, str]
) -> int:
    row = (
        metric.name,
        metric.unit,
        metric.better,
        metric.meaning,
        metric.source,
        metric.not_across,
        definitions.get(metric.source, ""),
    )
    database.execute("INSERT OR IGNORE INTO metric VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)
    found = database.execute(
        "SELECT id FROM metric WHERE (name, unit, better, meaning, source, not_across, definition)"
        " = (?, ?, ?, ?, ?, ?, ?)",
        row,
    )
    return int(found.fetchone()[0])


def _entries(path: Path, database: sqlite3.Connection) -> list[Entry]:
    try:
        return _read(database)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError,
            WbscopeError) as error:  # fmt: skip
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> InputError:
    told = f"is not as it was written: {error}"
    if isinstance(error, UnicodeDecodeError):
        told = f"has a text that is no UTF-8: {error.object[:40]!r}"
    return InputError("damaged-history", str(path), told, fix=_FIX)


def _read(database: sqlite3.Connection) -> list[Entry]:
    metrics = {
        number: (Metric(name, unit, better_of(better, name), *more), str(definition))
        for number, name, unit, better, *more, definition in database.execute(
            "SELECT id, name, unit, better, meaning, source, not_across, definition FROM metric"
        ).fetchall()  # a cursor that an error leaves open keeps the file locked
    }
    scalars: dict[int, Scalars] = {}
    definitions: dict[int, dict[str, str]] = {}
    for number, key, value in database.execute("SELECT run, metric, value FROM value").fetchall():
        metric, definition = metrics[key]
        if not (math.isfinite(value) and is_sane(value)):
            raise ValueError(f"{metric.name} is {value}")
        scalars.setdefault(number, Scalars()).add(metric, value)
        if definition:
            definitions.setdefault(number, {})[metric.source] = definition
    entries = []
    for number, source_id, name, commit, date, branch, session, *texts in database.execute(
        "SELECT id, source_id, name, commit_id, date, branch, session, fingerprint, zeros, warnings"
        " FROM run ORDER BY id"
    ).fetchall():
        facts, zeros, warnings = (json.loads(text) for text in texts)
        run = RunData(
            name=name,
            source_id=source_id,
            scalars=scalars.get(number, Scalars()),
            zeros={str(family): _number(none) for family, none in zeros.items()},
            fingerprint={key: _fact(fact) for key, fact in facts.items()},
            definitions=definitions.get(number, {}),
            warnings=tuple(Notice(str(slug), str(message)) for slug, message in warnings),
        )
        entries.append(Entry(run, Place(commit, parse_date("date", date), branch), session))
    return entries


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_sane(value):
        raise ValueError(f"found {value!r}, wanted a number")
    return float(value)


def _fact(value: Any) -> str | int | float | None:
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"a fact is {type(value).__name__}")
