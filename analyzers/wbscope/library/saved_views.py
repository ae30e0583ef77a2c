# SPDX-License-Identifier: Apache-2.0
"""The library's views saved in a run's database, for whoever reads it without wbscope.

wbscope itself reads the tables among them where its cache says that it has put them there. Of any
other file it reads none: it may come from anybody, and its own library may be newer.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.base.errors import InputError, QueryError
from wbscope.base.result import Notice
from wbscope.base.watch import default_limit_ns
from wbscope.library.database import Recorded, open_database, translate
from wbscope.library.definitions import (
    Definitions,
    index_statement,
    quoted,
    saved_table,
    table_columns,
    told,
)
from wbscope.library.engine import EVENTS, FINDINGS
from wbscope.library.finding import Finding, findings_select
from wbscope.library.guard import check_limit, stoppable
from wbscope.library.library import Library
from wbscope.library.own_sql import tables_of
from wbscope.library.params import Params
from wbscope.library.sqlfile import SqlFile
from wbscope.library.steps import Steps

# Steps become tables, else plain SQLite puts the text of a view in the place of its name, again and
# again: it prepares some for minutes, or finds no table where it has nested too many. They take
# some 2 us for each row of the library's events. That is too dear for more rows than this, and for
# a trace with more events than that of which less than this share are such rows: its ingest does
# little but count. There only steps of few rows are made.
_MOST_ROWS = 4_000_000
_MOST_EVENTS = 1 << 20
_LEAST_SHARE = 0.25
_MOST_STEP_ROWS = 1_000
# What stands in the place of a view's name is no more than so many views, or it is left out; of
# many rows fewer, as SQLite goes through all that it has no index of for each of them.
_MOST_PARTS = 100
_MOST_LONG_PARTS = 40
_LONG_ROWS = 1 << 19
_LEFT_OUT = "views_left_out"
_NEW = "new_step"
# An overflow, a number twice that is a key, a text where a number is.
_OF_THE_VALUES = ("SQLITE_ERROR", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG")
# A step that only queries read is made with each question, but for those that take long: of a
# million throttle events so many ms.
_LONG_MS = 200
_HINT = re.compile(r"\bAS (?:NOT )?MATERIALIZED \(")
_READ = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")
_SHOWN = 3

# The findings of the database whose path is given, which has these tables of the library.
Find = Callable[[Path, Collection[str]], Iterable[Finding]]


def save_views(database: Path, library: Library, shown: str, find: Find) -> list[Notice]:
    """Add the views, canned queries among them, what they are made of, and the findings.

    Where steps would be too dear, views that hang without them are left out, and the findings,
    which take longer: no wb_finding is better than one without rows. meta has their names.
    Nobody else uses the file yet. A trace whose values no question can be asked of, or would take
    too long, goes without any, or without findings. Warnings say so.
    Raises: SetupError.
    """
    try:
        return _save(database, library, shown, find)
    except (InputError, QueryError) as error:
        message = f"the library's views are not in {shown}: {error.message}"
        return [Notice("no-views-saved", message)]


def _told_left_out(names: list[str], shown: str) -> Notice:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return Notice(
        "views-left-out",
        f"views that plain SQLite would take too long for are not in {shown}:"
        f" {', '.join(names[:_SHOWN])}{more} (meta, key {_LEFT_OUT}); wbscope sql"
        f" {shlex.quote(shown)} reads them, wbscope export writes the answers of all queries",
    )


def _save(database: Path, library: Library, shown: str, find: Find) -> list[Notice]:
    reader, recorded = open_database(database, shown)
    is_large = _is_large(library, recorded)
    notices: list[Notice] = []
    with contextlib.closing(reader), contextlib.closing(_writer(database)) as writer:
        definitions = Definitions(library, recorded, Params(), shown, schema="")
        counts = {event: loaded for event, (_, loaded) in recorded.counts.items()}
        names = library.closure(_named(library))
        steps = frozenset(need for name in names for need in library.files[name].needs)
        views = (file for file in library.files.values() if file.materialize)
        steps |= {file.name for file in views if file.cost >= _LONG_MS}
        saving = _Saving(writer, definitions, counts, steps, is_large)
        answers = library.answers(tables_of(reader, shown))
        names = library.closure([*names, *answers, *library.files.keys() & {EVENTS}])
        telling = [name for name in answers if FINDINGS in library.files[name].needs]
        wanted = [n for n in names if not library.files[n].source_view and n != FINDINGS]
        try:
            made = None if is_large else Steps(database, shown, library, recorded, is_private=True)
            with stoppable(writer, default_limit_ns()), saving.of(made):
                writer.execute("BEGIN")
                for name in wanted:
                    if name not in telling:
                        saving.save(library.files[name])
                saving.put_views()
                writer.execute("COMMIT")
            if is_large:
                saving.left += [FINDINGS, *telling]
            elif FINDINGS in names:
                notices += _save_findings(saving, database, shown, find, telling)
            left = sorted(n for n in saving.left if not n.startswith("_"))
            if left:
                row = (_LEFT_OUT, ", ".join(left))
                writer.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)
            if long := [name for name in left if is_large or name != FINDINGS]:
                notices.append(_told_left_out(long, shown))
        except sqlite3.Error as error:
            raise translate(error, shown, database) from error
        finally:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
    return notices


def _save_findings(
    saving: _Saving, database: Path, shown: str, find: Find, telling: Iterable[str]
) -> list[Notice]:
    """They read the tables that are saved by now; queries tell of them."""
    try:
        found = find(database, saving.tables)
    except (InputError, QueryError) as error:
        saving.left += [FINDINGS, *telling]
        return [Notice("no-findings-saved", f"{FINDINGS} is not in {shown}: {error.message}")]
    # For a file that others get: where it lies here is not theirs to know.
    saving.definitions.texts[FINDINGS] = findings_select(found, "RUN")
    for name in (FINDINGS, *telling):
        saving.save(saving.definitions.library.files[name])
    saving.put_views()
    return []


def _is_large(library: Library, recorded: Recorded) -> bool:
    """Whether steps and findings are too dear for this trace."""
    rows = _rows(library, recorded)
    events = sum(count for count, _ in recorded.counts.values())
    return rows > _MOST_ROWS or (events > _MOST_EVENTS and rows < _LEAST_SHARE * events)


def _rows(library: Library, recorded: Recorded) -> int:
    """Those of the library's events."""
    own = {event for file in library.files.values() for event in file.source_events}
    return sum(loaded for event, (_, loaded) in recorded.counts.items() if event in own)


def _named(library: Library) -> Iterable[str]:
    """Views for everybody, and steps that several subjects share: warnings are one."""
    return (f.name for f in library.files.values() if f.kind == "view" and not f.is_private())


def _writer(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, isolation_level=None)
    # A file that is thrown away if this does not end well.
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -65536")  # KiB
    return connection


@dataclass
class _Saving:
    connection: sqlite3.Connection
    definitions: Definitions
    counts: dict[str, int]
    # What other views read, and what takes long: the rest is made with a question anyway.
    steps: frozenset[str]
    is_large: bool = False
    # Rows that a reader of each object goes through.
    rows: dict[str, int] = field(default_factory=dict)
    grounds: dict[str, bool] = field(default_factory=dict)
    # How many views SQLite puts in the place of the name of each that is no table.
    parts: dict[str, int] = field(default_factory=dict)
    # Views that are not in the file yet, and what makes them.
    views: dict[str, str] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    made: Steps | None = None
    attached: set[str] = field(default_factory=set)

    @contextlib.contextmanager
    def of(self, made: Steps | None) -> Iterator[None]:
        """Within, workers make the steps, if it is worth it: here they are copied."""
        if made is None:
            yield
            return
        self.made = made
        try:
            steps = filter(made.is_step, self.definitions.library.closure(self.steps))
            for name in made.want(steps):
                made.wait(name, lambda: check_limit(self.connection))
            made.stop()  # before the file that they read is written to
            yield
        finally:
            for schema in self.attached:
                with contextlib.suppress(sqlite3.Error):  # in a transaction that has failed
                    self.connection.execute(f"DETACH {schema}")
            made.close()
            self.made = None

    def save(self, file: SqlFile) -> None:
        # SQLite before 3.35 knows no such word, and could not read the file at all.
        select = _HINT.sub("AS (", self.definitions.select(self.connection, file.name))
        read = sum(self._rows(need) for need in file.needs)
        self.rows[file.name] = read
        is_small = not self.is_large or read <= _MOST_STEP_ROWS
        is_step = (file.materialize and is_small) or self._is_ground(file.name)
        # As often as it is named: what stands on a view that is left out has more, and is, too.
        parts = 1 + sum(self.parts.get(name, 0) for name in _READ.findall(select))
        most = _MOST_LONG_PARTS if read > _LONG_ROWS else _MOST_PARTS
        is_read = file.name in self.steps or parts > most // 2
        if is_step and is_read and self._table(file, select):
            count = f"SELECT count(*) FROM {file.name}"
            self.rows[file.name] = self.connection.execute(count).fetchone()[0]
            return
        self.parts[file.name] = parts
        if parts > most:
            self.left.append(file.name)
            return
        create = f"CREATE VIEW {quoted(file.name)} AS\n-- {told(file)}\n{select}"
        if file.name in self.definitions.texts:
            self.connection.execute(create)  # names of the trace are in it: SQLite checks it
        else:
            self.views[file.name] = create

    def put_views(self) -> None:
        """What no table was made of: rows of the schema, as CREATE VIEW would leave them.

        SQLite parses each of its statements twice, which took a tenth of a large trace's ingest.
        """
        try:
            self.connection.execute("PRAGMA writable_schema = ON")
            self.connection.executemany(
                "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql)"
                " VALUES ('view', ?1, ?1, 0, ?2)",
                self.views.items(),
            )
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_ERROR":
                raise
            # An SQLite that is built to defend its schema.
            for create in self.views.values():
                self.connection.execute(create)
        finally:
            self.views.clear()
            self.connection.execute("PRAGMA writable_schema = OFF")

    def _put(self, names: Iterable[str]) -> None:
        """Make the views among these, for a table that is made of them."""
        for name in self.definitions.library.closure(names):
            if create := self.views.pop(name, None):
                self.connection.execute(create)

    def _is_ground(self, name: str) -> bool:
        """What stands on no event is read by all, and SQLite would plan it again and again."""
        if name not in self.grounds:
            file = self.definitions.library.files[name]
            self.grounds[name] = not file.source_events and all(map(self._is_ground, file.needs))
        return self.grounds[name]

    def _rows(self, name: str) -> int:
        if name not in self.rows:
            self.rows[name] = self._raw_rows(self.definitions.library.files[name])
        return self.rows[name]

    def _raw_rows(self, file: SqlFile) -> int:
        if file.source_events:
            return sum(self.counts.get(event, 0) for event in file.source_events)
        find = "SELECT 1 FROM sqlite_schema WHERE name = ?"
        if self.connection.execute(find, (file.source_table,)).fetchone() is None:
            return 0
        found = self.connection.execute(f"SELECT count(*) FROM {file.source_table}").fetchone()
        return int(found[0])

    def _made(self, file: SqlFile, select: str) -> str:
        """The table with its rows, of a worker or made here.

        Both are copied: in the order of the key, and so files of one trace are the same.
        """
        schema = None if self.made is None else self.made.wait(file.name)
        if self.made is not None and schema is not None:
            self.made.attach(self.connection, schema)
            self.attached.add(schema)
            return f"{schema}.{file.name}"
        self.connection.execute(f"CREATE TEMP TABLE {_NEW} ({', '.join(table_columns(file))})")
        self.connection.execute(f"INSERT INTO temp.{_NEW}\n{select}")
        return f"temp.{_NEW}"

    def _table(self, file: SqlFile, select: str) -> bool:
        """Whether it could be made of what this trace holds; if not, a view says why when asked."""
        if not file.columns:
            return False
        self._put(file.needs)
        self.connection.execute(saved_table(file))
        try:
            rows = f"SELECT * FROM {self._made(file, select)}"
            self.connection.execute(f"INSERT INTO {file.name} {rows}")
            for indexed in file.indexes:
                self.connection.execute(index_statement(file, indexed))
        except sqlite3.Error as error:
            if not error.sqlite_errorname.startswith(_OF_THE_VALUES):
                raise
            self.connection.execute(f"DROP TABLE {file.name}")
            return False
        finally:
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{_NEW}")
        self.tables.append(file.name)
        return True
