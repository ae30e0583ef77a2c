# SPDX-License-Identifier: Apache-2.0
"""A database of more than 4 GiB, written for real: 15 s and as much disk, only if asked for.

WBSCOPE_LARGE=1 pytest tests/ingest/test_large_database.py

The unit tests PageFile.* cross the same border in a file with holes.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.ftrace_entries import entry_formats, entry_record
from support.tools import ingester_path, run
from support.tracedat import Trace

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
