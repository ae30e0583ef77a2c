#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the seeds of the fuzz targets from recorded traces and captured formats.

usage: make_seeds.py FOLDER     writes FOLDER/<target>/<name>, a few hundred small files
"""

from __future__ import annotations

import hashlib
import io
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
REPOSITORY = TESTS.parent
sys.path[:0] = [str(TESTS), str(REPOSITORY / "analyzers")]

from support.cut import cut_trace  # noqa: E402
from support.layout import layout_of  # noqa: E402
from support.mutate import small_traces  # noqa: E402
from wbscope.perfetto.stream import FieldSpec, RecordStream  # noqa: E402

Seed = tuple[str, bytes]  # target, bytes

_MOST_BYTES = 1 << 17
_SIDECARS = ("vmstat", "meminfo", "zoneinfo", "ls-files", "cgroups")
# By their places in the target, as parsed and as loaded.
_OF_MACHINE = {
    (5, 19): b"vm.dirty_bytes = 0\nvm.lowmem_reserve_ratio = 256 32\nkernel.modprobe = \n",
    (6, 20): b"25 31 8:1 / /a\\040b rw a:1 - ext4 /dev/sda1 rw\n27 25 0:36 / /t rw - tmpfs  rw\n",
    (7, 21): b"8:0 sda1 /a\\040b ext4\nbtrfs-1 vdb /b btrfs\n",
    (8, 22): b"Filename Type Size Used Priority\n/dev/vdb partition 8 0 -2\n",
    (9, 23): b"253:0 8:0\nbtrfs-1 253:0\n",
}
_LOADED = (
    "vmstat.before",
    "meminfo",
    "zoneinfo",
    "ls-files",
    "cgroups",
    "fio.json",
    "uname",
    "log",
)
# By their places in the target; no example has them.
_RECORDED = {
    11: b"# ts=7\n== vda\n 1 0 8 5 1 0 2 9 0 5 10\n# ts=8\n== vda\n 2 0 8\n",
    12: b"# ts=7\n== 254:0\nBdiWriteback: 0 kB\nBdiWriteBandwidth: 1 kBps\nstate: f\n",
    13: b"# ts=7\n== io\nsome avg10=0.00 total=7\nfull avg10=0.00 total=5\n",
    14: b"== vda\ndev 254:0\n 1 0 8 5 1 0 2 9 0 5 10\n",
    16: b"start ts=1 tid=7 tgid=7 write_bytes=0 comm=a b\nexit tid=8 write_bytes=1 comm=\\n\\\n",
    17: b"# ts=7\n== 254:0/27\nWbWriteback: 0 kB\nstate: 5\n",
    18: b"# ts=7\n== 27/io.stat\n8:0 wbytes=1 cost.vrate=1.0\n== 27/memory.max\n7\n"
    b"== 27/memory.stat\nfile_dirty 1\n== 27/io.pressure\nfull avg10=0 total=1\n",
}
_FORMATS_IN_ONE = 4


def _examples() -> Iterator[bytes]:
    for trace in sorted((REPOSITORY / "examples").glob("*/trace.dat")):
        yield cut_trace(trace)


def _of_trace(data: bytes) -> Iterator[Seed]:
    layout = layout_of(data)
    yield "whole", data
    yield "converted", bytes([len(data) % 4]) + data
    yield f"container_v{layout.version}", data[12:]
    big = layout.order == ">"
    long_is_4 = data[13] == 4
    if layout.version == 7:
        offset = _first_options(layout.data)
        end = offset + 16 + layout.number(offset + 8, 8)
        yield "options", bytes([big | long_is_4 << 1]) + data[offset + 16 : end]
    else:
        start = data.index(b"options  \0") + 10
        yield "options", bytes([big | long_is_4 << 1 | 4 | 2 << 4]) + data[start : start + 4096]
    packed = layout.compression != "none"
    kind = {"zstd": 0, "zlib": 2, "none": 6}[layout.compression]
    for region in layout.regions[:2]:
        piece = data[region.start : region.end][: 32 * 1024]
        choices = big | kind | (0 if packed else 16)
        yield "chunks", bytes([choices]) + piece
        if not packed:
            page = piece[: layout.page_bytes]
            yield "page_walk", bytes([big | long_is_4 << 1]) + page


def _first_options(data: bytes) -> int:
    at = data.index(b"\0", data.index(b"\0", 18) + 1) + 1
    return int.from_bytes(data[at : at + 8], "big" if data[12] else "little")


def _formats() -> Iterator[Seed]:
    files = sorted((REPOSITORY / "kernel-tracepoints" / "formats").glob("*.formats"))
    header = (
        b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
        b"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
        b"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n"
    )
    for path in files:
        texts = [b"name:" + text for text in path.read_bytes().split(b"\nname:")[1:]]
        for start in range(0, len(texts), 7 * _FORMATS_IN_ONE):
            some = texts[start : start + _FORMATS_IN_ONE]
            yield "format_text", b"\n\f\n".join([b"\0" + header, *some])


def _sidecars() -> Iterator[Seed]:
    for place, text in _RECORDED.items():
        yield "sidecars", bytes([0x80 | place]) + text
    for (parsed, loaded), text in _OF_MACHINE.items():
        yield "sidecars", bytes([parsed]) + text
        yield "sidecars", bytes([0x80 | loaded]) + text
    for folder in sorted((REPOSITORY / "examples").iterdir()):
        for path in sorted(folder.glob("*")):
            if not path.is_file() or path.suffix in (".dat", ".md"):
                continue
            data = path.read_bytes()
            kind = path.name.split(".")[0]
            if kind in _SIDECARS:
                yield "sidecars", bytes([_SIDECARS.index(kind)]) + data
            known = [i for i, name in enumerate(_LOADED) if name.split(".")[0] == kind]
            yield "sidecars", bytes([0x80 | (known[0] if known else 7)]) + data


def _rows() -> Iterator[Seed]:
    record = bytes(range(1, 9)) + b"\7\0\1\0" + bytes(12) + b"dd\0" + bytes(13) + bytes(12)
    dynamic = (5 << 16 | 76).to_bytes(4, "little") + (3 << 16 | 22).to_bytes(4, "little")
    arrays = (8 << 16 | 84).to_bytes(4, "little") + (4 << 16 | 0).to_bytes(4, "little")
    tail = dynamic + arrays + b"blob!\0\0\0" + b"name\0\0\0\0" + bytes(range(8)) + bytes(4)
    full = record + tail
    full += bytes(-len(full) % 4)
    for first in (b"\0", b"\1"):
        yield "rows", first + (b"\0" + bytes([len(full) // 4]) + full) * 3
        yield "rows", first + b"\1\6" + b"\2\0\0\0\7\0\0\0" + bytes(8) + b"text\n\0\xff\0"


_LINES = """\
# tracer: nop
# entries-in-buffer/entries-written: 5/9   #P:2
      dd-12    [001] d..1.  1.000001: numbers: a=1 b=-2 c=0x3
      dd-12    [001] d..1.  1.000002: numbers: a=1 b=-2 c=3
      dd-12    [001] .....  1.000003: texts: sda: /a file dev=8:1
   <...>-7     [000] .....  1.000003: texts: sda odd ==> /a (17%)
CPU:1 [LOST 12 EVENTS]
      dd-12    (     12) [001] ..... 1.000004: words: r=xy f=A|AB|0x8+
      dd-12    [001] .....  1.000005: words: ABA sda u
 => schedule
      dd-12    [001] .....  1.000006: skip_this: a=1
      dd-12    [001] .....  1.000007: unknown: bdi 8:0: a=1 b: 2, c=3(4) d=some text
      dd-12    [001] .....  1.000008: numbers: [FAILED TO PARSE] a=1 b=0xff name=x
      dd-12    [001] .....  1.000009: print: func: some words
      dd-12    [001] .....  1.000010: tracing_mark_write: some words
      dd-12    [001] .....  1.000011: schedule <-do_nanosleep
      dd-12    [001] .....  1.000012: sys_write(fd: 1, buf: 7ffe, count: 10)
      dd-12    [001] .....  1.000012: sys_write -> 0x10
      dd-12      1d..2.   12us+: numbers: a=1 b=2 c=3
cpus=2
dd    12/13   [001]  1.000013:          1 fuzz:numbers: a=1 b=2 c=3
dd    12  1.000014: fuzz:texts: sda: /a dev=8:1
"""
_LOG = """\
Nov  1 12:00:00 host kernel: [   12.345678] log: sda a=1(2)
<6>[   12.345679] [  T12] log: sda a=3(4)
[   12.345680] usb 1-1: new device
"""
_TEXT_BYTES = 6000


def _texts() -> Iterator[Seed]:
    texts = [path.read_bytes() for path in sorted((TESTS / "data" / "text").glob("*.txt"))]
    for text in (_LINES.encode(), _LOG.encode(), *(text[:_TEXT_BYTES] for text in texts)):
        for choices in (b"\0", b"\1", b"\3", b"\5"):
            yield "ftrace_text", choices + text


def _part(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def _cells(first_seq: int) -> bytes:
    """A batch of two rows: seq, ts, cpu, tid, then an integer, NULL or real, text, blob."""
    types = b"\2\2\2\2" + b"\2\1\4\5" + b"\2\2\2\2" + b"\2\3\4\5"
    numbers = bytes([first_seq, 10, 0, 7, 9, first_seq + 1, 0x80, 1, 1, 8, 9])
    parts = [(1, types), (2, numbers), (3, bytes(8)), (4, b"one"), (4, b"two"), (5, b"a\0b\0")]
    return b"\x30\1" + b"".join(_part(number, data) for number, data in parts)


def _records() -> Iterator[Seed]:
    for events in (1, 2):
        out = io.BytesIO()
        stream = RecordStream(out)
        stream.meta("clock", "boot")
        stream.meta("format_count", 3)
        for number in range(events):
            fields = [
                FieldSpec("dev", "dev_t", True),
                FieldSpec("count", "int"),
                FieldSpec("name", "char[16]"),
                FieldSpec("rest", ""),
            ]
            event = stream.event("fuzz", f"event_{number}", 4, fields)
            stream.label(event, "count", 1, "one", False)
            stream.rows(event, _cells(1 + 4 * number))
            stream.rows(event, _cells(3 + 4 * number))
        stream.task(7, "dd", 10, 20, 4)
        stream.task(7, "dd", 5, 30, 1)
        stream.lost(12, None, None)
        stream.lost(13, 1, 5)
        stream.stat("a", "data_loss", 1, "b")
        stream.cpu_stat(0, "overrun", 2)
        yield "records", out.getvalue() + b"\x0a\0\0\0\0"
        stream.damage("a hole")
        stream.end()
        yield "records", out.getvalue()


# Values of page_writer: NULL, integers of each width and beside powers of two, a real, texts and
# blobs, two of them longer than a page.
_VALUES = [
    b"\0",
    *(bytes([1 | width << 3]) + b"\x80" + bytes(width) for width in range(8)),
    *(bytes([2 | half << 3, step]) for half in range(32) for step in (1, 2, 0x81, 0x82, 0xC1)),
    b"\3\x3f\xf0" + bytes(6),
    b"\3\x7f\xf8" + bytes(6),
    *(bytes([kind | size << 3]) + b"a" for kind in (4, 5) for size in (0, 1, 31)),
    b"\6\0\x3aa",
    b"\x0e\x20\0b",
    b"\7\x02\x10c",
]


def _written() -> Iterator[Seed]:
    for size in range(8):
        # Reserved bytes, a page of the lock, small batches, changes: some of each.
        for choices in (0, 32, 8 | 64, 16, 16 | 32, 8 | 16 | 32 | 64):
            head = bytes([size | choices])
            head += b"\x0c" * bool(choices & 8) + b"\2" * bool(choices & 16)
            head += b"\2" * bool(choices & 32) + bytes([2, 4])
            rows = bytearray()
            values = itertools.cycle(_VALUES)
            for number in range(90):
                table = number % 3 % 2
                rows += bytes([table | number % 8 << 1])
                rows += b"".join(itertools.islice(values, 5 if table else 3))
            yield "page_writer", head + rows
        # One text, of about what a leaf takes, or that and some pages more.
        page = 512 << size
        rows = bytearray()
        for pages in range(4 if size < 6 else 1):
            for more in range(-12, 4):
                text = page - 35 + pages * (page - 4) + more
                rows += b"\0\6" + min(text, 65535).to_bytes(2, "big") + bytes([more & 255])
        yield "page_writer", bytes([size, 0, 0]) + rows
    # Numbers of rows that take 1 to 9 bytes; as many columns as a table can have.
    steps = b"".join(bytes([0x40, bits]) + b"\x0c\7a" for bits in range(58))
    yield "page_writer", b"\0\0\0" + steps
    yield "page_writer", b"\3\x1f\x07\xce\0" + (b"\0" + b"\2\1" * 1999) * 2


def seeds() -> Iterator[Seed]:
    """Every seed."""
    for data in (*_examples(), *small_traces().values()):
        yield from _of_trace(data)
    yield from _formats()
    yield from _sidecars()
    yield from _rows()
    yield from _texts()
    yield from _records()
    yield from _written()


def main() -> int:
    folder = Path(sys.argv[1])
    for target, data in seeds():
        if len(data) <= _MOST_BYTES:
            place = folder / target / hashlib.sha256(data).hexdigest()[:16]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
