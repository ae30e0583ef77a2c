# SPDX-License-Identifier: Apache-2.0
"""Short records and names that would become long rows: the output has a limit by what is read."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest
from support.formats import EventFormat
from support.tools import ingester_path, run, wbscope_path
from support.tracedat import Trace

_MIB = 1 << 20
_ID = 300
_COMMON = (
    ("unsigned short common_type", 0, 2),
    ("unsigned char common_flags", 2, 1),
    ("unsigned char common_preempt_count", 3, 1),
    ("int common_pid", 4, 4),
)


def _event(*fields: tuple[str, int, int]) -> EventFormat:
    """An event of the library, with these fields: declaration, offset and bytes."""
    lines = [
        f"\tfield:{what};\toffset:{offset};\tsize:{size};\tsigned:0;"
        for what, offset, size in (*_COMMON, *fields)
    ]
    name = "balance_dirty_pages"
    text = "\n".join(
        [f"name: {name}", f"ID: {_ID}", "format:", *lines[:4], "", *lines[4:], "", 'print fmt: "x"']
    )
    return EventFormat("writeback", name, _ID, f"{text}\n", ())


def _trace(path: Path, event: EventFormat, data: bytes, records: int) -> Path:
    trace = Trace([event], compression="zlib", pages_per_chunk=500)
    head = struct.pack("<HBBi", _ID, 0, 0, 77)
    for number in range(records):
        trace.raw(0, 1000 * (1 + number), head + data)
    return trace.write(path)


def _with_links(path: Path, records: int) -> Path:
    """Each record has 400 fields that point to one text of 2,000 letters: 800 KB of row."""
    count, letters = 400, 2000
    fields = [(f"__data_loc char[] f{i}", 8 + 4 * i, 4) for i in range(count)]
    place = letters << 16 | (8 + 4 * count)
    data = struct.pack(f"<{count}I", *[place] * count) + b"A" * letters
    return _trace(path, _event(*fields), data, records)


def _meta(database: Path, sql: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(database)) as db:
        return db.execute(sql).fetchall()


@pytest.mark.quick("sqlite")
@pytest.mark.parametrize(
    "job", ["sqlite", "sqlite --all", "sqlite --all --writer sqlite", "convert"]
)
def test_many_fields_of_one_text(tmp_path: Path, job: str) -> None:
    source = _with_links(tmp_path / "trace.dat", 400)
    assert source.stat().st_size < 100_000
    words = [*job.split(), *(["--events", "balance_dirty_pages"] if job == "sqlite" else [])]
    command = [ingester_path(), words[0], source, "-o", tmp_path / "out", *words[1:]]
    done = run([*command, "--json-lines"])
    assert done.returncode == 3, done.stderr
    told = map(json.loads, done.stderr.splitlines())
    (error,) = (line for line in told if line["type"] == "error")
    assert (error["slug"], error["object"]) == ("unpack-limit", str(source))
    assert "--no-unpack-limit" in error["fix"]
    assert [path.name for path in tmp_path.iterdir()] == ["trace.dat"]
    done = run([*command, "--no-unpack-limit"])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").stat().st_size > 256 * _MIB


def test_commands_tell_the_trace_and_the_option(tmp_path: Path) -> None:
    source = _with_links(tmp_path / "trace.dat", 400)
    done = run([wbscope_path(), "report", source])
    assert done.returncode == 3, done.stderr
    assert f"error[unpack-limit]: {source}: " in done.stderr
    assert f"wbscope ingest --no-unpack-limit {source}" in done.stderr


def test_few_such_records_are_no_matter(tmp_path: Path) -> None:
    source = _with_links(tmp_path / "trace.dat", 20)
    done = run([ingester_path(), "sqlite", source, "--all", "-o", tmp_path / "out"])
    assert done.returncode == 0, done.stderr
    lengths = "SELECT DISTINCT length(f0), length(f399) FROM ev_balance_dirty_pages"
    assert _meta(tmp_path / "out", lengths) == [(2000, 2000)]


def test_fields_on_the_same_bytes(tmp_path: Path) -> None:
    """500 fields of 3,900 bytes: a row would have 500 times its record's."""
    fields = [(f"char f{i}[3900]", 8, 3900) for i in range(500)]
    source = _trace(tmp_path / "trace.dat", _event(*fields), b"A" * 3900, 1000)
    for job in (["sqlite", "--all"], ["convert"]):
        output = tmp_path / job[0]
        done = run([ingester_path(), job[0], source, "-o", output, *job[1:]])
        assert done.returncode == 0, done.stderr
        assert output.stat().st_size < 10 * _MIB
    database = tmp_path / "sqlite"
    assert _meta(database, "SELECT status FROM event_format") == [("raw",)]
    assert _meta(database, "SELECT DISTINCT length(payload) FROM ev_balance_dirty_pages") == [
        (3900,)
    ]


# --- files beside the trace


def _fio_keys(levels: int) -> str:
    keys = "".join('{"%s":' % ("k" * 100) for _ in range(levels))
    return keys + json.dumps([1] * 2000) + "}" * levels


_LONG = "A" * 300
_FILES = {
    "bdi.samples": f"# ts=1\n== {_LONG}\n" + "a: 1\n" * 2000,
    "block.samples": f"# ts=1\n== {_LONG}\n" + "1 2 3\n" * 2000,
    "cgroup.samples": f"# ts=1\n== 1/io.stat\n{_LONG} " + "a=1 " * 2000 + "\n",
    "zoneinfo": f"Node 0, zone {_LONG}\n" + "  min 5\n" * 2000,
    "fio.json": _fio_keys(11),
}


@pytest.mark.quick("bdi.samples")
@pytest.mark.parametrize("name", _FILES)
def test_long_names_of_files_beside_the_trace(tmp_path: Path, name: str) -> None:
    """They would stand in each row."""
    folder = tmp_path / "run"
    folder.mkdir()
    _with_links(folder / "trace.dat", 1)
    (folder / name).write_text(_FILES[name])
    output = tmp_path / "out"
    done = run([ingester_path(), "sqlite", folder, "-o", output, "--json-lines"])
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines()]
    (warning,) = (line for line in told if line["type"] == "warning")
    assert (warning["slug"], warning["object"]) == ("sidecar-partial", name)
    assert "not understood" in warning["message"]
    tables = ("sidecar_sample", "sidecar_zoneinfo", "sidecar_fio")
    assert [_meta(output, f"SELECT count(*) FROM {table}")[0][0] for table in tables] == [0, 0, 0]


def test_names_of_usual_length_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    _with_links(folder / "trace.dat", 1)
    (folder / "bdi.samples").write_text(_FILES["bdi.samples"].replace(_LONG, "A" * 255))
    (folder / "fio.json").write_text(_fio_keys(9))
    done = run([ingester_path(), "sqlite", folder, "-o", tmp_path / "out"])
    assert done.returncode == 0, done.stderr
    assert _meta(tmp_path / "out", "SELECT count(*) FROM sidecar_fio") == [(2000,)]
    assert _meta(tmp_path / "out", "SELECT count(*) FROM sidecar_sample") == [(2000,)]
