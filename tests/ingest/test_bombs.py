# SPDX-License-Identifier: Apache-2.0
"""Small inputs that become large ones stop at a limit."""

from __future__ import annotations

import contextlib
import ctypes
import json
import lzma
import sqlite3
import struct
import tarfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.compression import Compression, compress
from support.formats import EventFormat
from support.kernel_events import formats
from support.layout import layout_of
from support.ringbuffer import Record, encode_pages
from support.tools import ingester_path, run, wbscope_path
from support.tracedat import Buffer, Trace
from wbscope.base.errors import InputError
from wbscope.source.archives import unpacked

# Small files that become large ones stop at a limit; damage that repeats is told once.

_PAGE = 4096
_MIB = 1 << 20
_CHUNK_PAGES = 15 * _MIB // _PAGE


@dataclass
class _Bomb(Trace):
    """Each CPU has one page over and over again."""

    page: bytes = b""
    pages: int = 0

    def cpu_pages(self, buffer: Buffer, cpu: int) -> bytes:
        del buffer, cpu
        return self.page * self.pages


def _page_of(trace: Trace, records: int) -> bytes:
    """The first page of small records."""
    body = trace._by_name["sys_exit_write"].encode({"ret": 1}, 11, "little")
    items = [Record(1000 + number, body[:12]) for number in range(records)]
    return encode_pages(items, trace.layout)[:_PAGE]


def _zstd(kind: Compression, data: bytes) -> bytes:
    assert kind == "zstd"
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_compress.restype = ctypes.c_size_t
    room = len(data) // 100 + 100_000
    out = ctypes.create_string_buffer(room)
    count = library.ZSTD_compress(
        out, ctypes.c_size_t(room), data, ctypes.c_size_t(len(data)), ctypes.c_int(3)
    )
    assert count <= room
    return out.raw[:count]


def _bomb(folder: Path, kind: str, mib: int) -> Path:
    bomb = _Bomb(
        formats("sys_exit_write"), compression="zstd", pages_per_chunk=_CHUNK_PAGES,
        compress=_zstd if kind == "records" else compress,
    )  # fmt: skip
    bomb.event(0, 1000, 11, "sys_exit_write", {"ret": 1})
    bomb.page = bytes(_PAGE) if kind == "empty pages" else _page_of(bomb, 400)
    bomb.pages = mib * _MIB // _PAGE
    return bomb.write(folder / "trace.dat")


# MiB of pages: each is over one of the limits.
_KINDS = {"empty pages": 300, "records": 80}


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("job", ["sqlite", "sqlite --all", "convert"])
def test_bomb(tmp_path: Path, kind: str, job: str) -> None:
    source = _bomb(tmp_path, kind, _KINDS[kind])
    name, *more = job.split()
    command = [ingester_path(), name, source, "-o", tmp_path / "out", *more, "--json-lines"]
    done = run(command)
    assert done.returncode == 3, done.stderr
    (error,) = (
        line for line in map(json.loads, done.stderr.splitlines()) if line["type"] == "error"
    )
    assert error["slug"] == "unpack-limit"
    assert error["object"] == str(source)
    assert "--no-unpack-limit" in error["fix"]
    assert [path.name for path in tmp_path.iterdir()] == ["trace.dat"]


@pytest.mark.quick("empty pages")
@pytest.mark.parametrize("kind", _KINDS)
def test_option_to_go_on(tmp_path: Path, kind: str) -> None:
    source = _bomb(tmp_path, kind, _KINDS[kind])
    for verb in ("ingest", "convert"):
        output = tmp_path / verb
        command = [wbscope_path(), verb, source, "-o", output, "--quiet"]
        assert run(command).returncode == 3
        done = run([*command, "--no-unpack-limit", "--from", "1h"])
        # It is read to its end: then ingest has nothing to load of that part.
        code, told = (2, "error[empty-range]") if verb == "ingest" else (0, "")
        assert (done.returncode, told in done.stderr) == (code, True), done.stderr
        assert output.exists() == (code == 0)


def test_idle_pages_are_no_bomb(tmp_path: Path) -> None:
    """A page for each record, as a recorder that is asked often writes them, and nothing else."""
    trace = Trace(
        formats("sys_exit_write"), compression="zstd", pages_per_chunk=2000, compress=_zstd
    )
    count = 20_000
    for number in range(count):
        trace.event(0, 10_000_000 * number, 11, "sys_exit_write", {"ret": number * 7919 % 65536})
        trace.page_break(0)
    source = trace.write(tmp_path / "trace.dat")
    assert count * _PAGE > 50 * source.stat().st_size  # it does shrink
    done = run([ingester_path(), "sqlite", source, "-o", tmp_path / "out"])
    assert done.returncode == 0, done.stderr


# --- damage that repeats


def _ingest(source: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    output = source.with_suffix(".db")
    done = run([ingester_path(), "sqlite", source, "-o", output, "--json-lines"])
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stderr.splitlines()]
    with contextlib.closing(sqlite3.connect(output)) as db:
        meta = dict(db.execute("SELECT key, value FROM meta"))
    return [line for line in said if line["type"] == "warning"], meta


def _small(**settings: Any) -> Trace:
    trace = Trace(formats("sys_exit_write"), **settings)
    trace.event(0, 1000, 11, "sys_exit_write", {"ret": 1})
    return trace


def test_same_damage_is_one_warning(tmp_path: Path) -> None:
    """2,000 options that name command lines where there are none."""
    bad = [(21, struct.pack("<Q", 1 << 40)) for _ in range(2000)]
    source = _small(more_options=bad).write(tmp_path / "trace.dat")
    warnings, meta = _ingest(source)
    (warning,) = warnings
    assert warning["slug"] == "damaged-trace"
    assert warning["message"].endswith("(the first of 2000 such)")
    assert meta["damaged"] == 1
    assert len(meta["damage"]) < 1000


def test_kallsyms_that_are_too_large_are_told(tmp_path: Path) -> None:
    source = _small(kallsyms="ffffffff81000000 T _text\n").write(tmp_path / "trace.dat")
    data = bytearray(source.read_bytes())
    (section,) = (each for each in layout_of(bytes(data)).sections if each.ident == 19)
    struct.pack_into("<Q", data, section.start + 8, 1 << 40)
    source.write_bytes(data)
    warnings, meta = _ingest(source)
    (warning,) = warnings
    assert "at most" in warning["message"]
    assert "KALLSYMS" in warning["at"]
    assert meta["damaged"] == 1
    assert meta["events_count"] == 1


# --- headers of a tar, which Python's tarfile reads as a whole


def _member(
    kind: bytes, body: Iterable[bytes], size: int, name: str = "trace.dat"
) -> Iterator[bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    yield info.tobuf(tarfile.USTAR_FORMAT)
    yield from body
    yield bytes(-size % 512)


def _sparse(blocks: int) -> Iterator[bytes]:
    """An old GNU header of a file with holes, and so many blocks that go on with its map."""
    info = tarfile.TarInfo("trace.dat")
    info.type = tarfile.GNUTYPE_SPARSE
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[482] = 1  # more follow
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    yield bytes(head)
    entry = b"00000000001\0" * 2
    for number in range(blocks):
        yield entry * 21 + bytes([number + 1 < blocks]) + bytes(7)


def _map_as_text(lines: int) -> Iterator[bytes]:
    """The map of a file with holes as the newer GNU tar writes it: before the data."""
    text = b"".join(
        b"%d %s\n" % (len(line) + 4, line)
        for line in (b"GNU.sparse.major=1", b"GNU.sparse.minor=0", b"GNU.sparse.realsize=3")
    )
    yield from _member(b"x", [text], len(text))
    size = 2 * lines
    yield from _member(b"0", [b"%d\n" % lines, b"1\n" * lines], size)


_HEADERS: dict[str, Callable[[], Iterator[bytes]]] = {
    kind.decode(): partial(_member, kind, [bytes(_MIB)] * 100, 100 * _MIB)
    for kind in (b"x", b"g", b"X", b"L", b"K")
}
_HEADERS["sparse"] = partial(_sparse, 100 * _MIB // 512)
_HEADERS["sparse, as text"] = partial(_map_as_text, 50 * _MIB)


@pytest.mark.dealt
@pytest.mark.quick("x")
@pytest.mark.parametrize("kind", _HEADERS)
@pytest.mark.parametrize("first", [True, False])
def test_headers_of_a_tar(tmp_path: Path, kind: str, first: bool) -> None:
    """100 MiB of them, in an archive of some 15 KB: 1 MiB is read."""
    source = tmp_path / "bomb.tar.xz"
    with lzma.open(source, "wb", preset=0) as packed:
        for part in () if first else _member(b"0", [b"one"], 3, "uname"):
            packed.write(part)
        for part in _HEADERS[kind]():
            packed.write(part)
        for part in _member(b"0", [b"abc"], 3):
            packed.write(part)
        packed.write(bytes(1024))
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught, unpacked(source):
            pass
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    error = caught.value
    told = f"has headers of more than 1 MiB, at member {1 if first else 2}"
    assert (error.slug, error.subject) == ("too-large", str(source))
    assert error.message.startswith(told)
    assert most < 20 * _MIB


def test_long_names_in_a_tar_are_no_bomb(tmp_path: Path) -> None:
    """What GNU tar and pax write of a path with 3,900 characters, and 100 KB of attributes."""
    name = "/".join(["d" * 99] * 39)
    for format_ in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        source = tmp_path / f"{format_}.tar"
        info = tarfile.TarInfo(f"{name}/uname")
        if format_ == tarfile.PAX_FORMAT:
            info.pax_headers = {"SCHILY.xattr.user.note": "n" * 100_000}
        with tarfile.open(source, "w", format=format_) as archive:
            archive.addfile(info)
        with unpacked(source) as folder:
            assert [path.name for path in folder.iterdir()] == ["uname"]


# Short records and names that would become long rows: the output has a limit by what is read.

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
