# SPDX-License-Identifier: Apache-2.0
"""Databases that somebody else made, to be named as RUN: objects, values and bytes that are wrong.

Each is made of a good database; its name tells it for ever. What a view of the file would return
holds MARK, which no text of the file has in one piece: it is seen only when the view was run.
"""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

__all__ = ["DATABASES", "MARK"]

MARK = "hostile-mark-seen"
_MARK = "'hostile' || '-mark' || '-seen'"
_ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
_WAIT = f"(SELECT count(*) FROM ({_ENDLESS} SELECT x FROM c)) > 0"
_EVENTS = "ev_balance_dirty_pages"
_HUGE = 2**63 - 1
_PAGE_HEADER_AT = 100  # of page 1; others start with theirs
_FREELIST_AT = 32  # first trunk page, then how many

Make = Callable[[Path], None]


def _sql(path: Path, *statements: str) -> None:
    """Change it, by its maker's rights."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def _schema(path: Path, *statements: str) -> None:
    """Statements on sqlite_schema itself, and a schema that SQLite reads again."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        version = db.execute("PRAGMA schema_version").fetchone()[0]
        db.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            db.execute(statement)
        db.execute(f"PRAGMA schema_version = {version + 1}")


def _bytes(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def _view(path: Path, table: str, where: str = "1") -> None:
    """The table is a view now, with the mark in each text."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        columns = db.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
        shown = ", ".join(
            f'"{name}" || {_MARK} AS "{name}"' if kind == "TEXT" else f'"{name}"'
            for name, kind in columns
        )
        db.execute(f'ALTER TABLE "{table}" RENAME TO "{table}_0"')
        db.execute(f'CREATE VIEW "{table}" AS SELECT {shown} FROM "{table}_0" WHERE {where}')


def _without_column(path: Path, table: str, column: str) -> None:
    """The table again, with one column less."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        names = [row[0] for row in db.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        kept = ", ".join(f'"{name}"' for name in names if name != column)
        db.execute(f'ALTER TABLE "{table}" RENAME TO old')
        db.execute(f'CREATE TABLE "{table}" AS SELECT {kept} FROM old')
        db.execute("DROP TABLE old")


def _generated(path: Path) -> None:
    """A column that is worked out when it is read."""
    _sql(
        path,
        "ALTER TABLE bdi RENAME TO bdi_0",
        f"CREATE TABLE bdi (bdi TEXT PRIMARY KEY, device TEXT AS ({_MARK}) VIRTUAL, mount TEXT)",
        "INSERT INTO bdi (bdi) VALUES ('8:0')",
    )


def _wal(path: Path, keep: bool) -> None:
    """In WAL mode; keep: the log of a writer that did not end well lies beside it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("UPDATE meta SET value = 'x' WHERE key = 'source_name'")
        log = path.with_name(path.name + "-wal").read_bytes()
        if keep:
            data = path.read_bytes()
    if keep:
        path.write_bytes(data)
        path.with_name(path.name + "-wal").write_bytes(log)


def _journal(path: Path) -> None:
    """A journal lies beside it that would be rolled back into it."""
    _sql(path, "PRAGMA journal_mode = DELETE")
    head = bytes.fromhex("d9d505f920a163d7")
    pages = path.stat().st_size // 4096
    journal = head + struct.pack(">IIIII", 0xFFFFFFFF, 7, pages, 512, 4096)
    page = struct.pack(">I", 2) + b"\0" * 4096 + struct.pack(">I", 7)
    path.with_name(path.name + "-journal").write_bytes(journal.ljust(512, b"\0") + page)


def _noise(path: Path, seed: int, count: int) -> None:
    """Bytes changed anywhere behind the first page."""
    chance = random.Random(f"noise in a database {seed}")
    data = bytearray(path.read_bytes())
    for _ in range(count):
        data[chance.randrange(4096, len(data))] = chance.randrange(256)
    path.write_bytes(data)


def _cut(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def _many_tables(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        for number in range(20_000):
            db.execute(f"CREATE TABLE t{number} (a)")
        db.execute("COMMIT")


def _many_formats(path: Path) -> None:
    """Events without end, each said to be in a table."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 200000)"
            " INSERT INTO event_format (event, table_name)"
            " SELECT 'writeback:e' || x, 'ev_balance_dirty_pages' FROM c"
        )


def _wrong_root(path: Path) -> None:
    """Two tables in one place."""
    _schema(
        path,
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema"
        f" WHERE name = 'task') WHERE name = '{_EVENTS}'",
    )


def _corrupt_index(path: Path) -> None:
    """An index with no entry for what is there."""
    _schema(
        path,
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema"
        f" WHERE name = 'ix_{_EVENTS}__prev_seq')"
        f" WHERE name = 'ix_{_EVENTS}__tid__bdi__cgroup_ino'",
    )


def _meta(path: Path, key: str, value: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))


def _text_bytes(path: Path, table: str, column: str, data: bytes) -> None:
    """Text that is no UTF-8, or has a NUL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT)", (data,))


def _instead(table: str, body: str) -> Make:
    """The table is a view over something else."""
    return partial(_replaced, table=table, create=f'CREATE VIEW "{table}" AS {body}')


def _replaced(path: Path, table: str, create: str) -> None:
    _sql(path, f'ALTER TABLE "{table}" RENAME TO "{table}_0"', create)


def _statements(*statements: str) -> Make:
    return lambda path: _sql(path, *statements)


def _edits(*statements: str) -> Make:
    return lambda path: _schema(path, *statements)


def _all() -> Iterator[tuple[str, Make]]:
    for table in ("meta", "event_format", "event_counts", _EVENTS, "ingest_stats", "task"):
        yield f"endless view {table}", partial(_view, table=table, where=_WAIT)
    for table in ("event_counts", _EVENTS, "bdi", "lost_events"):
        yield f"view {table}", partial(_view, table=table)
    rows = f"{_ENDLESS} SELECT 'writeback:e' || x AS event, NULL AS id"
    yield (
        "rows without end",
        _instead(
            "event_counts", f"{rows}, 1 AS count, 1 AS loaded_count, NULL AS table_name FROM c"
        ),
    )
    yield (
        "formats without end",
        _instead("event_format", f"{rows}, NULL AS table_name, '' AS status, '' AS format FROM c"),
    )
    yield "view of itself", _instead(_EVENTS, f"SELECT * FROM {_EVENTS}")
    yield "view of a file", _instead("task", "SELECT * FROM fsdir('.')")
    yield (
        "endless view wb_throttle",
        _statements(
            "DROP VIEW IF EXISTS wb_throttle",  # the library's, saved by ingest
            f"CREATE VIEW wb_throttle AS {_ENDLESS} SELECT {_MARK} AS comm, x AS ts FROM c",
        ),
    )
    yield (
        "table wb_throttle",
        _statements(
            "DROP VIEW IF EXISTS wb_throttle",
            "CREATE TABLE wb_throttle (ts, dur, tid)",
            "INSERT INTO wb_throttle VALUES (1, 2, 3)",
        ),
    )
    yield (
        "table sqlite_stat1",
        _statements("ANALYZE", "UPDATE sqlite_stat1 SET stat = '9223372036854775807 0 0 -1'"),
    )
    yield (
        "trigger",
        _statements(
            f"CREATE TRIGGER t AFTER UPDATE ON meta BEGIN INSERT INTO meta VALUES ({_MARK}, 1); END"
        ),
    )
    yield (
        "trigger on a view",
        _statements(
            f"CREATE VIEW v AS SELECT {_MARK} AS a",
            "CREATE TRIGGER t INSTEAD OF INSERT ON v BEGIN DELETE FROM meta; END",
        ),
    )
    yield (
        "virtual table",
        partial(
            _replaced,
            table="task",
            create="CREATE VIRTUAL TABLE task USING fts5(tid, comm, first_ts, last_ts, n)",
        ),
    )
    yield (
        "virtual table of an unknown module",
        _edits(
            "INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql)"
            " VALUES ('table', 'x', 'x', 0, 'CREATE VIRTUAL TABLE x USING nothing(a)')"
        ),
    )
    yield "generated column", _generated
    yield (
        "index on an expression",
        _statements(
            f"CREATE INDEX i ON {_EVENTS} (abs(pause) + length(bdi)) WHERE tid IS NOT NULL"
        ),
    )
    yield (
        "check and default",
        partial(
            _replaced,
            table="lost_events",
            create=f"CREATE TABLE lost_events (ts INTEGER DEFAULT ({_MARK}),"
            " cpu INTEGER CHECK (cpu < 0), buffer INTEGER, count INTEGER)",
        ),
    )
    for key, value in (
        *(("first_ts", "abc"), ("first_ts", b"\xff\0"), ("first_ts", None), ("first_ts", 1.5)),
        *(("first_ts", -_HUGE - 1), ("last_ts", _HUGE), ("last_ts", "1e999"), ("page_size", 0)),
        *(("page_size", "x"), ("page_size", _HUGE), ("hz", "0"), ("hz", -1), ("clock", b"\xff")),
        *(("schema_version", None), ("schema_version", b"7"), ("schema_version", 7.0)),
        *(("schema_version", "7 "), ("schema_version", _HUGE), ("kernel_release", "9" * 1_000_000)),
        *(("source_name", "\0\x1b[2J"), ("damaged", "yes"), ("damaged", -1)),
    ):
        yield f"meta {key} {str(value)[:24]!r}", partial(_meta, key=key, value=value)
    for name, statement in (
        ("vmstat of text", "UPDATE sidecar_vmstat SET value = 'many'"),
        ("vmstat of NULL", "UPDATE sidecar_vmstat SET value = NULL"),
        ("vmstat of bytes", "UPDATE sidecar_vmstat SET name = x'ff00', ts = 'now'"),
        ("text of bytes", "UPDATE sidecar_text SET text = x'ff00'"),
        (
            "mounts of bytes",
            "INSERT INTO sidecar_mounts VALUES (-1, x'ff00', x'ff', 7, '/dev/', 1)",
        ),
        ("bdis of NULL", "INSERT INTO sidecar_bdis VALUES (NULL, NULL, x'ff', NULL, 1.5)"),
        ("bdis of numbers", "INSERT INTO sidecar_bdis VALUES (1e9, 8, 0, -1, 'x')"),
        ("swaps of NULL", "INSERT INTO sidecar_swaps VALUES (NULL, x'00', 'many', '', 1e999)"),
        ("stacks in a ring", "INSERT INTO sidecar_stacks VALUES ('8:0', '8:1'), ('8:1', '8:0')"),
        ("settings of text", "INSERT INTO sidecar_sysctls VALUES ('vm.dirty_bytes', 7, 'x')"),
        (
            "text of another file",
            "INSERT OR REPLACE INTO sidecar_text VALUES ('perf-stat.txt', 'x')",
        ),
        ("file status", "UPDATE sidecar_file SET status = NULL, message = x'00'"),
        ("fio of NULL", "INSERT INTO sidecar_fio VALUES (NULL, NULL)"),
        ("fio below a value", "INSERT INTO sidecar_fio VALUES ('$.a', 1), ('$.a.b', 2)"),
        ("fio of bytes", "INSERT INTO sidecar_fio VALUES ('$.jobs[0].jobname', x'ff')"),
        ("fio without end", "INSERT INTO sidecar_fio VALUES ('$' || hex(zeroblob(9)), 1)"),
        (
            "fio far in",
            "INSERT INTO sidecar_fio SELECT replace(hex(zeroblob(50000)), '0', '.a'), 1",
        ),
        ("zone of text", "UPDATE zone SET spanned_count = 'x', start_pfn = -1"),
        ("zoneinfo of text", "UPDATE sidecar_zoneinfo SET value = 'x', node = x'00'"),
        ("meminfo of text", "UPDATE sidecar_meminfo SET value = '1e999', unit = 7"),
    ):
        yield name, _statements(statement)
    yield "no meta rows", _statements("DELETE FROM meta")
    for column, value in (
        *(("pause", _HUGE), ("ts", _HUGE), ("period", -_HUGE - 1), ("dirtied", _HUGE)),
        *(("ts", "'abc'"), ("pause", "'9e999'"), ("tid", "x'ff00'"), ("bdi", "x'ff00'")),
        *(("task_ratelimit", 9e307), ("pause", "NULL"), ("cpu", _HUGE), ("tid", -_HUGE - 1)),
    ):
        yield f"{column} {value}", _statements(f"UPDATE {_EVENTS} SET {column} = {value}")
    yield (
        "one ts a year off",
        _statements(
            f"UPDATE {_EVENTS} SET ts = ts + 31536000000000000"
            f" WHERE seq = (SELECT max(seq) FROM {_EVENTS})"
        ),
    )
    yield (
        "negative counts",
        _statements("UPDATE event_counts SET count = -count, loaded_count = -9"),
    )
    yield "text counts", _statements("UPDATE event_counts SET count = 'many', loaded_count = x'00'")
    for table, column in (
        *((_EVENTS, "pause"), (_EVENTS, "ts"), ("event_counts", "count"), ("meta", "value")),
        *(("event_format", "table_name"), ("task", "comm"), ("buffer", "subbuf_bytes")),
    ):
        yield f"no column {table}.{column}", partial(_without_column, table=table, column=column)
    for table in (
        *(_EVENTS, "event_counts", "event_format", "buffer", "task", "ingest_stats"),
        *("lost_events", "sidecar_text", "sidecar_mounts", "bdi", "zone", "enum_label", "cgroup"),
    ):
        yield f"no table {table}", _statements(f"DROP TABLE {table}")
    for name, data in (("NUL", b"a\0b"), ("no UTF-8", b"\xff\xfe\xc3"), ("long", b"x" * 3_000_000)):
        yield f"comm {name}", partial(_text_bytes, table="task", column="comm", data=data)
        yield f"bdi {name}", partial(_text_bytes, table=_EVENTS, column="bdi", data=data)
    yield (
        "table name with a quote",
        _statements(
            "UPDATE event_format SET table_name = 'ev_\"; DROP TABLE meta; --'"
            f" WHERE table_name = '{_EVENTS}'"
        ),
    )
    yield (
        "table name of another kind",
        _statements(
            f"UPDATE event_format SET table_name = 'sqlite_schema' WHERE table_name = '{_EVENTS}'"
        ),
    )
    yield (
        "table name of bytes",
        _statements(f"UPDATE event_format SET table_name = x'ff00' WHERE table_name = '{_EVENTS}'"),
    )
    yield (
        "one table for every event",
        _statements(f"UPDATE event_format SET table_name = '{_EVENTS}'"),
    )
    for share in (0.001, 0.1, 0.5, 0.99):
        yield f"cut at {share}", partial(_cut, share=share)
    for seed, count in ((1, 1), (2, 10), (3, 100), (4, 1000), (5, 20_000)):
        yield f"noise {seed}", partial(_noise, seed=seed, count=count)
    yield "free list of nothing", lambda path: _bytes(path, _FREELIST_AT, struct.pack(">II", 0, 9))
    yield "free list of itself", lambda path: _bytes(path, _FREELIST_AT, struct.pack(">II", 1, 9))
    yield "page size 0", lambda path: _bytes(path, 16, b"\0\0")
    yield "text of UTF-16", lambda path: _bytes(path, 56, struct.pack(">I", 2))
    yield "read version 9", lambda path: _bytes(path, 18, b"\x09\x09")
    yield (
        "page 1 points to itself",
        lambda path: _bytes(path, _PAGE_HEADER_AT, struct.pack(">BHHHBI", 5, 0, 0, 0, 0, 1)),
    )
    yield "WAL without its log", partial(_wal, keep=False)
    yield "WAL with its log", partial(_wal, keep=True)
    yield "hot journal", _journal
    yield "20,000 tables", _many_tables
    yield "200,000 formats", _many_formats
    yield "two tables in one place", _wrong_root
    yield "index of another table", _corrupt_index
    yield (
        "schema without SQL",
        _edits(f"UPDATE sqlite_schema SET sql = NULL WHERE name = '{_EVENTS}'"),
    )
    yield (
        "schema with other SQL",
        _edits(
            f"UPDATE sqlite_schema SET sql = 'CREATE TABLE {_EVENTS} (ts PRIMARY KEY)"
            f" WITHOUT ROWID' WHERE name = '{_EVENTS}'"
        ),
    )
    yield (
        "schema says view",
        _edits(
            f"UPDATE sqlite_schema SET type = 'view', rootpage = 0, sql = 'CREATE VIEW {_EVENTS} AS"
            f" SELECT 1' WHERE name = '{_EVENTS}'"
        ),
    )
    yield "root page 0", _edits(f"UPDATE sqlite_schema SET rootpage = 0 WHERE name = '{_EVENTS}'")
    yield (
        "root page far away",
        _edits("UPDATE sqlite_schema SET rootpage = 99999999 WHERE name = 'event_counts'"),
    )
    yield (
        "name with a NUL",
        _edits("UPDATE sqlite_schema SET name = CAST(x'6d65746100' AS TEXT) WHERE name = 'meta'"),
    )


DATABASES: dict[str, Make] = dict(_all())
