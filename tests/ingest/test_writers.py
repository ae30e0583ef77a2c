# SPDX-License-Identifier: Apache-2.0
"""Pages that the ingester makes itself, and a database of more than 4 GiB."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from support.archives import unpacked
from support.cli import check_error
from support.corpus import cases, unpack
from support.faults import memory_disk
from support.formats import build_format
from support.ftrace_entries import entry_formats, entry_record
from support.memory import peak_kib
from support.runs import REPOSITORY
from support.tools import ingester_path, plan_option, run
from support.tracedat import Trace

# Pages that the ingester makes itself hold what SQLite would have inserted, in a whole file.

_RUNS = sorted(path.parent for path in (REPOSITORY / "examples").rglob("trace.dat"))
_TRACES = sorted(path.parent for path in (unpacked("data") / "traces").glob("*/trace.dat"))
_PATCHED = sorted(path.parent for path in (unpacked("data") / "patched").glob("*/trace.dat"))
_KILLED = sorted(path.parent for path in (unpacked("data") / "killed").glob("*/trace.dat"))
_PLAN = {
    "writeback:balance_dirty_pages": {"previous": "tid"},
    "writeback:global_dirty_state": {
        "previous": "any",
        "repeats": ["nr_dirty", "nr_writeback"],
        "indexes": [{"columns": ["ts", "seq"], "where": "repeats_count = 0"}],
    },
    "sched:sched_switch": {"indexes": [{"columns": ["next_pid", "ts"]}]},
}
_WRITERS = ("sqlite", "pages")


def _made(writer: str, source: Path, path: Path, *options: str) -> CompletedProcess[str]:
    command = [ingester_path(), "sqlite", source, "-o", path, *plan_option(path, _PLAN)]
    return run([*command, "--writer", writer, *options])


def _databases(source: Path, folder: Path, *options: str) -> list[Path]:
    paths = [folder / f"{writer}.db" for writer in _WRITERS]
    for writer, path in zip(_WRITERS, paths, strict=True):
        done = _made(writer, source, path, *options)
        assert done.returncode == 0, done.stderr
    return paths


def _objects(database: sqlite3.Connection) -> list[tuple[str, str, str]]:
    return database.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY 1, 2").fetchall()


def _compare(paths: list[Path]) -> int:
    """The rows that both have."""
    count = 0
    connections = [sqlite3.connect(f"file:{path}?mode=ro", uri=True) for path in paths]
    with closing(connections[0]) as inserted, closing(connections[1]) as made:
        assert made.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert made.execute("PRAGMA freelist_count").fetchone() == (0,)
        pages = made.execute("PRAGMA page_count").fetchone()[0]
        assert pages * 8192 == paths[1].stat().st_size
        # Pages that nothing names would be lost room, twice named ones damage.
        assert made.execute("SELECT count(*) FROM dbstat").fetchone()[0] in (pages, pages - 1)
        assert _objects(made) == _objects(inserted)
        for kind, name, _ in _objects(inserted):
            if kind != "table":
                continue
            columns = [row[1] for row in inserted.execute(f'PRAGMA table_info("{name}")')]
            chosen = ", ".join(f'"{column}", typeof("{column}")' for column in columns)
            wanted, found = (
                each.execute(f'SELECT {chosen} FROM "{name}"') for each in (inserted, made)
            )
            for number, pair in enumerate(zip(wanted, found, strict=True)):
                assert pair[0] == pair[1], (name, number)
                count += 1
    return count


@pytest.mark.dealt
@pytest.mark.parametrize("folder", [*_RUNS, *_TRACES, *_PATCHED], ids=lambda folder: folder.name)
def test_all_events(folder: Path, tmp_path: Path) -> None:
    assert _compare(_databases(folder, tmp_path, "--all")) > 100


@pytest.mark.parametrize("folder", _KILLED, ids=lambda folder: folder.name)
def test_a_recorder_that_was_killed(folder: Path, tmp_path: Path) -> None:
    """What is there of its events, or the same error."""
    paths = [tmp_path / f"{writer}.db" for writer in _WRITERS]
    inserted, made = (
        _made(writer, folder, path, "--all") for writer, path in zip(_WRITERS, paths, strict=True)
    )
    assert inserted.returncode == made.returncode
    assert inserted.stderr.replace("sqlite.db", "pages.db") == made.stderr
    assert [path.exists() for path in paths] == [made.returncode == 0] * 2
    if made.returncode == 0:
        assert _compare(paths) > 100


@pytest.mark.dealt
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_all_events_of_the_corpus(case: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    source = unpack(case, tmp_path / "run")
    assert _compare(_databases(source, tmp_path, "--all")) > 100


@pytest.mark.parametrize(
    "options", [["--limit", "7"], ["--time-range", "+1000000000..+2000000000"], []]
)
def test_parts(options: list[str], tmp_path: Path) -> None:
    source = REPOSITORY / "examples/deep"
    assert _compare(_databases(source, tmp_path, "--events", "sched:*", *options)) > 100


@pytest.mark.parametrize("writer", _WRITERS)
@pytest.mark.parametrize("mebibytes", [3, 8, 14])
def test_a_disk_that_fills_while_rows_are_written(writer: str, mebibytes: int) -> None:
    source = REPOSITORY / "examples/reclaim-writes"  # 16 MiB
    with memory_disk(f"size={mebibytes}m,mode=0777") as disk:
        command = [ingester_path(), "sqlite", source, "--all", "-o", disk / "x.db"]
        done = run([*command, "--writer", writer])
        assert done.returncode == 5, done.stderr
        assert done.stderr.startswith("error[cannot-write-database]: "), done.stderr
        assert ("No space left on device" if writer == "pages" else "full") in done.stderr
        assert list(disk.iterdir()) == []


def test_a_writer_that_is_none(tmp_path: Path) -> None:
    source = REPOSITORY / "examples/deep"
    done = run([ingester_path(), "sqlite", source, "-o", tmp_path / "x.db", "--writer", "csv"])
    assert done.returncode == 2
    check_error(done.stderr, "usage", "--writer", '"csv"', *_WRITERS)


def test_short_records_that_become_long_rows(tmp_path: Path) -> None:
    """Each names one long text of the trace: 2,000 rows of 400 MB."""
    text = "x" * 200_000
    trace = Trace(entry_formats(), printk=f'0xffffffff80001000 : "{text}"\n')
    entry = trace.pack("QQ", 0xFFFFFFFF81000104, 0xFFFFFFFF80001000)
    for number in range(2000):
        trace.raw(0, 1000 + number, entry_record("bputs", 7, entry))
    source = trace.write(tmp_path / "trace.dat")
    database = tmp_path / "x.db"
    assert peak_kib(source, database, "--all", "--no-unpack-limit") < 120 << 10
    with closing(sqlite3.connect(database)) as made:
        (count, least, most) = made.execute(
            "SELECT count(*), min(length(text)), max(length(text)) FROM ev_bputs"
        ).fetchone()
        assert (count, least, most) == (2000, len(text), len(text))
        assert made.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_more_addresses_than_are_kept(tmp_path: Path) -> None:
    """The first of them in time get their symbols, whatever table they are in."""
    fields = tuple(f"unsigned long ip{number}" for number in range(200))
    shown = ", ".join(f"(void *)REC->ip{number}" for number in range(200))
    tables = 6
    formats = [
        build_format("x", f"ev{table}", 300 + table, fields, f'"{" %pS" * 200}", {shown}')
        for table in range(tables)
    ]
    trace = Trace(formats, kallsyms="ffffffff81000000 T _text\nffffffff8f000000 T _end\n")
    for number in range(tables * 600):
        head = trace.pack("HBBi", 300 + tables - 1 - number // 600, 0, 0, 7)
        address = 0xFFFFFFFF81000000 + 800 * number
        places = range(address, address + 800, 4)
        trace.raw(0, 1000 + number, head + trace.pack("200Q", *places))
    source = trace.write(tmp_path / "trace.dat")
    found = []
    for path in _databases(source, tmp_path, "--all"):
        with closing(sqlite3.connect(path)) as made:
            found.append(made.execute("SELECT * FROM symbol ORDER BY 1").fetchall())
    assert len(found[0]) > 1000
    assert found[0] == found[1]


# A database of more than 4 GiB, written for real: 15 s and as much disk, only if asked for.
#
# WBSCOPE_LARGE=1 pytest tests/ingest/test_writers.py -k four_gibibytes
#
# The unit tests PageFile.* cross the same border in a file with holes.

_BORDER = 1 << 32
_TEXT_BYTES = 1_000_000
_ROWS = 4_400
_NOTES_EVERY = 20
# An address of the kernel's texts, and its text: no two begin alike.
_TEXTS = {
    0xFFFFFFFF80001000 + 64 * number: f"{number}:" + (f"{number}abcdefg" * (_TEXT_BYTES // 8))
    for number in range(7)
}


def _note(number: int) -> str:
    return f"note {number} " + "n" * 3000


def _trace(path: Path) -> Path:
    """Long rows that take the room, and shorter ones of another table among them."""
    printk = "".join(f'{address:#x} : "{text}"\n' for address, text in _TEXTS.items())
    trace = Trace(entry_formats(), printk=printk)
    addresses = list(_TEXTS)
    for number in range(_ROWS):
        ip = 0xFFFFFFFF81000104
        entry = trace.pack("QQ", ip, addresses[number % len(addresses)])
        trace.raw(0, 1000 + 2 * number, entry_record("bputs", 7, entry))
        if number % _NOTES_EVERY == 0:
            entry = trace.pack("Q", ip) + _note(number).encode() + b"\0"
            trace.raw(0, 1001 + 2 * number, entry_record("print", 7, entry))
    return trace.write(path)


@pytest.mark.skipif(not os.environ.get("WBSCOPE_LARGE"), reason="only with WBSCOPE_LARGE=1")
def test_rows_on_both_sides_of_four_gibibytes(tmp_path: Path) -> None:
    wanted = _ROWS * _TEXT_BYTES + (1 << 30)
    free = shutil.disk_usage(tmp_path).free
    if free < wanted:
        pytest.skip(f"{tmp_path} has {free} bytes free, wanted {wanted}")
    output = tmp_path / "x.db"
    try:
        source = _trace(tmp_path / "trace.dat")
        # Seven texts make all rows: the limit on what one file unpacks to is not for this one.
        command = [ingester_path(), "sqlite", source, "-o", output, "--all", "--no-unpack-limit"]
        done = run(command)
        assert done.returncode == 0, done.stderr
        assert output.stat().st_size > _BORDER + (1 << 26)
        with closing(sqlite3.connect(f"file:{output}?mode=ro", uri=True)) as database:
            _check(database)
    finally:
        output.unlink(missing_ok=True)  # pytest would keep it


def _check(database: sqlite3.Connection) -> None:
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    # Pages of one small table lie below and above, and SQLite finds its rows.
    places = [
        row[0] for row in database.execute("SELECT pgoffset FROM dbstat WHERE name = 'ev_print'")
    ]
    assert min(places) < _BORDER < max(places)
    notes = [row[0] for row in database.execute("SELECT buf FROM ev_print ORDER BY seq")]
    assert notes == [_note(number) for number in range(0, _ROWS, _NOTES_EVERY)]
    # The long rows: all are there, and those at the ends and around the border are whole.
    assert database.execute("SELECT count(*), sum(ts) FROM ev_bputs").fetchone() == (
        _ROWS,
        sum(1000 + 2 * number for number in range(_ROWS)),
    )
    texts = list(_TEXTS.values())
    at_border = round(_BORDER / _TEXT_BYTES)
    for number in (*range(5), *range(at_border - 40, at_border + 5), *range(_ROWS - 5, _ROWS)):
        (found,) = database.execute(
            "SELECT text = ? FROM ev_bputs WHERE ts = ?",
            (texts[number % len(texts)], 1000 + 2 * number),
        ).fetchone()
        assert found == 1, number
