#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make a longer trace of one that is there: its pages again and again, each time later.

usage: repeat_trace.py TRACE.dat COPIES -o LONG.dat

TRACE.dat is of version 6, not compressed, from a 64-bit little-endian machine:
    trace-cmd convert -i RECORDED.dat -o TRACE.dat --file-version 6 --compression none
The events, their order and their times within a copy stay as the kernel wrote them; a copy begins
a microsecond after the one before it ended. For measurements only.
"""

from __future__ import annotations

import argparse
import mmap
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAGE = 4096
_MAGIC = b"\x17\x08\x44tracing6\0"
_TABLE = b"flyrecord\0"
_HEAD = 16  # of a page: time stamp and commit
_COMMIT = 0xFFFFF
_PADDING, _EXTEND, _STAMP = 29, 30, 31
_GAP_NS = 1000
_STAMP_BITS = 59


class RepeatError(Exception):
    """The file cannot be repeated."""


def table(data: mmap.mmap) -> tuple[int, list[tuple[int, int]]]:
    """Where the places of the CPUs' pages stand, and those: offset and bytes."""
    at = data.find(_TABLE)
    if data[: len(_MAGIC)] != _MAGIC or at < 0:
        raise RepeatError("is no trace.dat of version 6 with pages")
    at += len(_TABLE)
    places: list[tuple[int, int]] = []
    while True:
        offset, size = struct.unpack_from("<QQ", data, at + 16 * len(places))
        if not at < offset <= len(data) or offset + size > len(data) or size % PAGE:
            break
        places.append((offset, size))
    if not places:
        raise RepeatError("has no pages")
    return at, places


def entries(page: bytes) -> Iterator[tuple[int, int, int]]:
    """Place, kind and time of all that stands behind a page's head; of padding the time before."""
    now, commit = struct.unpack_from("<QQ", page)
    at, end = _HEAD, min(_HEAD + (commit & _COMMIT), PAGE)
    while at + 4 <= end:
        (word,) = struct.unpack_from("<I", page, at)
        kind, delta = word & 31, word >> 5
        if kind == _PADDING and delta == 0:
            return  # up to the end of the page
        has_more = kind == 0 or kind >= _PADDING
        more = struct.unpack_from("<I", page, at + 4)[0] if has_more else 4 * kind
        if kind == _STAMP:
            now = (now >> _STAMP_BITS << _STAMP_BITS) | (delta + (more << 27))
        else:
            now += delta + (more << 27 if kind == _EXTEND else 0)
        yield at, kind, now
        at += 8 if kind >= _EXTEND else 4 + (more + 3) // 4 * 4


def stamps(page: bytes) -> Iterator[tuple[int, int]]:
    """Where whole time stamps stand in a page, and what they say; the page's own first."""
    yield 0, struct.unpack_from("<Q", page)[0]
    yield from ((at, now) for at, kind, now in entries(page) if kind == _STAMP)


def last_time(page: bytes) -> int:
    """Of the last event of a page, or later."""
    begin: int = struct.unpack_from("<Q", page)[0]
    return [begin, *(now for _, _, now in entries(page))][-1]


@contextmanager
def removed_unless_whole(output: Path) -> Iterator[None]:
    """What this program made, and only that: it refuses a name that is taken."""
    try:
        yield
    except BaseException:
        output.unlink()
        raise


def repeat(source: Path, copies: int, output: Path) -> None:
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at, places = table(data)
        found = [
            [(page, *one) for page in range(offset, offset + size, PAGE)
             for one in stamps(data[page : page + PAGE])]
            for offset, size in places
        ]  # fmt: skip
        first = min(one[0][2] for one in found if one)
        last = max(last_time(data[o + s - PAGE : o + s]) for o, s in places if s)
        step = last - first + _GAP_NS
        start = places[0][0]
        with output.open("xb") as out, removed_unless_whole(output):
            out.write(data[:start])
            new = []
            for (offset, size), whole in zip(places, found, strict=True):
                new.append((out.tell(), size * copies))
                for copy in range(copies):
                    out.write(_shifted(data[offset : offset + size], offset, whole, copy * step))
            out.seek(at)
            out.write(b"".join(struct.pack("<QQ", *place) for place in new))


def _shifted(pages: bytes, offset: int, whole: list[tuple[int, int, int]], shift: int) -> bytearray:
    made = bytearray(pages)
    for page, place, now in whole:
        later, target = now + shift, page - offset + place
        if place == 0:
            struct.pack_into("<Q", made, target, later)
        else:
            low = (later & ((1 << 27) - 1)) << 5 | _STAMP
            struct.pack_into("<II", made, target, low, (later >> 27) & 0xFFFFFFFF)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("copies", type=int)
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.copies < 1:
        parser.error(f"COPIES is {arguments.copies}, wanted 1 or more")
    try:
        repeat(arguments.trace, arguments.copies, arguments.output)
    except (RepeatError, OSError, ValueError, struct.error) as error:
        print(f"repeat_trace: {arguments.trace}: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
