# SPDX-License-Identifier: Apache-2.0
"""ingest --time-range and --limit: the same rows as a cut through the whole database."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.kernel_events import formats
from support.runs import example
from support.tools import ingester_path, run
from support.tracedat import Trace

_RUN = example("four-equal-writers").trace


def _ingest(source: Path, database: Path, *options: str) -> sqlite3.Connection:
    done = run([ingester_path(), "sqlite", source, "-o", database, "--all", *options])
    assert done.returncode == 0, done.stderr
    return sqlite3.connect(database)


def _tables(db: sqlite3.Connection) -> list[str]:
    rows = db.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'ev_*' ORDER BY name")
    return [name for (name,) in rows]


def _rows(db: sqlite3.Connection, where: str = "1") -> dict[str, list[Any]]:
    """The rows of each event table but for seq, which counts from the first loaded one."""
    found = {}
    for table in _tables(db):
        columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
        wanted = ", ".join(f'"{name}"' for name in columns if name != "seq")
        rows = db.execute(f'SELECT {wanted} FROM "{table}" WHERE {where} ORDER BY seq').fetchall()
        if rows:
            found[table] = rows
    return found


def _meta(db: sqlite3.Connection) -> dict[str, Any]:
    return dict(db.execute("SELECT key, value FROM meta"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    return _ingest(_RUN, tmp_path_factory.mktemp("whole") / "run.db")


# Parts of the run in thousandths of its duration.
@pytest.mark.parametrize(("start", "end"), [(0, 1), (250, 300), (500, 1000), (999, 2000)])
def test_range_is_a_cut_through_the_whole(
    whole: sqlite3.Connection, tmp_path: Path, start: int, end: int
) -> None:
    meta = _meta(whole)
    duration = meta["last_ts"] - meta["first_ts"]
    t0, t1 = (meta["first_ts"] + duration * part // 1000 for part in (start, end))
    wanted = _rows(whole, f"ts >= {t0} AND ts < {t1}")
    assert wanted
    for text in (f"{t0}..{t1}", f"+{t0 - meta['first_ts']}..+{t1 - meta['first_ts']}"):
        with contextlib.closing(
            _ingest(_RUN, tmp_path / "part.db", "--force", "--time-range", text)
        ) as part:
            assert _rows(part) == wanted
            (counted,) = part.execute("SELECT sum(count) FROM event_counts").fetchone()
            assert counted == sum(map(len, wanted.values()))
            assert _meta(part)["partial"] == 1


def test_an_open_end(whole: sqlite3.Connection, tmp_path: Path) -> None:
    middle = (_meta(whole)["first_ts"] + _meta(whole)["last_ts"]) // 2
    for text, where in ((f"{middle}..", f"ts >= {middle}"), (f"..{middle}", f"ts < {middle}")):
        with contextlib.closing(
            _ingest(_RUN, tmp_path / "part.db", "--force", "--time-range", text)
        ) as part:
            assert _rows(part) == _rows(whole, where)


@pytest.mark.parametrize("limit", [1, 2, 1000, 12_000])
def test_limit_loads_the_first_rows(whole: sqlite3.Connection, tmp_path: Path, limit: int) -> None:
    with contextlib.closing(_ingest(_RUN, tmp_path / "part.db", "--limit", str(limit))) as part:
        assert _rows(part) == _rows(whole, f"seq <= {limit}")
        meta = _meta(part)
        assert (meta["loaded_count"], meta["loaded_limit"], meta["partial"]) == (limit, limit, 1)
        counted = sum(map(len, _rows(whole, f"ts < {meta['range_end_ts']}").values()))
        assert meta["events_count"] == counted
        assert "source_hash" not in meta  # it would take a read of the whole file


def test_a_limit_that_is_not_reached_reads_all(whole: sqlite3.Connection, tmp_path: Path) -> None:
    count = _meta(whole)["events_count"]
    with contextlib.closing(_ingest(_RUN, tmp_path / "part.db", "--limit", str(count))) as part:
        assert _meta(part)["partial"] == 0
        assert _rows(part) == _rows(whole)


@pytest.mark.parametrize("kind", [{"version": 6}, {}, {"compression": "zlib"}, {"endian": "big"}])
def test_every_form_of_file(kind: dict[str, Any], tmp_path: Path) -> None:
    trace = Trace(formats("sys_exit_write"), cpus=2, cmdlines={11: "dd"}, **kind)
    for number in range(200):
        trace.event(number % 2, 1_000 + number, 11, "sys_exit_write", {"ret": number})
        if number % 5 == 0:
            trace.page_break(number % 2)
    source = trace.write(tmp_path / "trace.dat")
    with contextlib.closing(
        _ingest(source, tmp_path / "part.db", "--time-range", "1042..1137")
    ) as part:
        rets = part.execute("SELECT ret FROM ev_sys_exit_write ORDER BY seq").fetchall()
    assert rets == [(ret,) for ret in range(42, 137)]


def test_answers_say_that_it_is_a_part(wbscope: Wbscope, tmp_path: Path) -> None:
    database = tmp_path / "part.db"
    done = wbscope.run("ingest", str(_RUN), "-o", str(database), "--time-range", "1s..2s")
    assert done.returncode == 0, done.stderr
    document = wbscope.document("query", "throttle_by_task", database)
    assert "part-of-trace" in [warning["slug"] for warning in document["warnings"]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time-range", "2s"], "is not a range"),
        (["--time-range", ".."], "is not a range"),
        (["--time-range", "2..3s"], "has no unit"),
        (["--time-range", "3s..2s"], "wanted its end after its start"),
    ],
)
def test_wrong_values(wbscope: Wbscope, tmp_path: Path, options: list[str], words: str) -> None:
    done = wbscope.run("ingest", str(_RUN), "-o", str(tmp_path / "part.db"), *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []
