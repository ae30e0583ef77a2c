# SPDX-License-Identifier: Apache-2.0
"""Traces whose structure is whole and whose values are not: words of records, times, page stamps.

Seeded: a base's name and a number name one mutant for ever.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .cut import OTHER_KEPT, cut_trace
from .cut import _unpack as unpack
from .layout import Layout, Region, layout_of

__all__ = ["INTERESTING", "YEAR_NS", "part_of_trace", "value_mutant"]

INTERESTING = (
    *(0, 1, 7, 8, 0x7F, 0x80, 0xFFFF, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**40),
    *(2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 8, 2**64 - 4096),
)
YEAR_NS = 365 * 24 * 3600 * 10**9
_HOUR_NS = 3600 * 10**9
_COUNTS = (1, 5, 30)
_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_LONGEST_SHORT = 28 * 4
_COMMON_BYTES = 8  # common_type, _flags, _preempt_count, _pid
_SECTION_HEADER_BYTES = 16
_SIZE_OF_COMMIT = 0x0FFFFFFF


def part_of_trace(trace: Path, first: int, count: int) -> bytes:
    """Some chunks of each CPU of a compressed file with one buffer, not compressed any more."""
    layout = layout_of(cut_trace(trace, first + count, OTHER_KEPT))
    data = bytearray(layout.data)
    buffer = next(section for section in layout.sections if section.ident == 3)
    options = layout.data[buffer.end :]
    out = data[: buffer.start + _SECTION_HEADER_BYTES]
    shift = []
    for region in layout.regions:
        out += bytes(-len(out) % layout.page_bytes)
        pages = b"".join(list(_chunks(layout, region))[first:])
        shift.append((region, len(out), len(pages)))
        out += pages
    struct.pack_into(
        f"{layout.order}HHIQ",
        out,
        buffer.start,
        *(3, 0, 0, len(out) - buffer.start - _SECTION_HEADER_BYTES),
    )
    moved = len(out) - buffer.end
    out += options
    rows = [size for size in layout.sizes if size.what == "offset of CPU data"]
    full = [size for size in rows if layout.number(size.at + 8, 8)]
    for size, (region, start, length) in zip(full, shift, strict=True):
        if layout.number(size.at, 8) != region.start:
            raise ValueError("rows of another order than their regions")
        struct.pack_into(f"{layout.order}QQ", out, size.at + moved, start, length)
    slot = next(size for size in layout.sizes if size.what == "offset of the options")
    struct.pack_into(f"{layout.order}Q", out, slot.at, layout.number(slot.at, 8) + moved)
    return bytes(out)


def _chunks(layout: Layout, region: Region) -> Iterator[bytes]:
    at = region.start + 4
    for _ in range(layout.number(region.start, 4)):
        packed, unpacked = layout.number(at, 4), layout.number(at + 4, 4)
        yield unpack(layout.compression, layout.data[at + 8 : at + 8 + packed], unpacked)
        at += 8 + packed


@dataclass
class _Places:
    """What a value mutant may change: offsets in the file."""

    order: str
    pages: list[int] = field(default_factory=list)  # u64
    heads: list[int] = field(default_factory=list)  # u32 before a record: type and time
    extends: list[int] = field(default_factory=list)  # u32, u32: a time extend or time stamp
    words: list[int] = field(default_factory=list)  # u32 of a record, without its common fields
    commons: list[int] = field(default_factory=list)  # u32 of the common fields


@cache
def _places(data: bytes) -> _Places:
    """Of a file that is not compressed."""
    layout = layout_of(data)
    places = _Places(layout.order)
    long_bytes = data[13]
    for region in layout.regions:
        for page in range(region.start, region.end - layout.page_bytes + 1, layout.page_bytes):
            places.pages.append(page)
            commit = layout.number(page + 8, long_bytes) & _SIZE_OF_COMMIT
            start = page + 8 + long_bytes
            _walk(layout, places, start, min(start + commit, page + layout.page_bytes))
    return places


def _walk(layout: Layout, places: _Places, at: int, end: int) -> None:
    while at + 8 <= end:
        head = layout.number(at, 4)
        kind = head & 31 if layout.order == "<" else head >> 27
        if kind in (_TIME_EXTEND, _TIME_STAMP):
            places.extends.append(at)
            at += 8
            continue
        if kind == _PADDING or kind == 0:
            length, body = layout.number(at + 4, 4) - 4, at + 8
        else:
            length, body = kind * 4, at + 4
        if kind != _PADDING:
            places.heads.append(at)
            places.commons += range(body, min(body + _COMMON_BYTES, end - 3), 4)
            places.words += range(body + _COMMON_BYTES, min(body + length, end - 3), 4)
        at = body + length


def value_mutant(base: str, data: bytes, number: int) -> tuple[str, bytes]:
    """What was done, and the file; data is not compressed."""
    chance = random.Random(f"values of {base} {number}")
    places = _places(data)
    out = bytearray(data)
    kinds = ["words", "words", "page stamps", "page stamps", "times", "common fields"]
    kind = chance.choice(kinds)
    if kind == "page stamps":
        return _stamps(places, out, chance), bytes(out)
    if kind == "times":
        return _times(places, out, chance), bytes(out)
    count = chance.choice(_COUNTS)
    where = places.words if kind == "words" else places.commons
    done = []
    for _ in range(count):
        at = chance.choice(where)
        width = chance.choice((4, 4, 8))
        value = chance.choice((chance.choice(INTERESTING), chance.getrandbits(64)))
        value &= (1 << 8 * width) - 1
        if at + width <= len(out):
            struct.pack_into(places.order + ("I" if width == 4 else "Q"), out, at, value)
            done.append(f"{at}={value:#x}")
    return f"{count} {kind}: {' '.join(done[:6])}", bytes(out)


def _stamps(places: _Places, out: bytearray, chance: random.Random) -> str:
    """Stamps of one page, or of some."""
    done = []
    for _ in range(chance.choice((1, 1, 1, 3))):
        at = chance.choice(places.pages)
        now = int(struct.unpack_from(places.order + "Q", out, at)[0])
        value = chance.choice(
            (
                *(0, 1, 2**62, 2**63, 2**63 - 1, 2**64 - 1, chance.getrandbits(60)),
                *(now + YEAR_NS, now - YEAR_NS, now + _HOUR_NS, now - _HOUR_NS, now - 10**6),
            )
        ) % (1 << 64)
        struct.pack_into(places.order + "Q", out, at, value)
        done.append(f"{at}={value}")
    return f"page stamps {' '.join(done)}"


def _times(places: _Places, out: bytearray, chance: random.Random) -> str:
    """Time extends and absolute stamps, the one made the other, and deltas of records."""
    little = places.order == "<"
    done = []
    for _ in range(chance.choice(_COUNTS)):
        if places.extends and chance.random() < 0.7:
            at = chance.choice(places.extends)
            kind = chance.choice((_TIME_EXTEND, _TIME_EXTEND, _TIME_STAMP))
            value = chance.choice(
                (*(0, 1, 2**58, 2**59 - 1, YEAR_NS, _HOUR_NS), chance.getrandbits(59))
            )
            low, high = value & (2**27 - 1), value >> 27
            struct.pack_into(places.order + "I", out, at + 4, high)
        else:
            at = chance.choice(places.heads)
            head = int(struct.unpack_from(places.order + "I", out, at)[0])
            kind = head & 31 if little else head >> 27
            low = chance.choice((0, 1, 2**27 - 1, chance.getrandbits(27)))
        head = low << 5 | kind if little else kind << 27 | low
        struct.pack_into(places.order + "I", out, at, head)
        done.append(f"{at}:{kind}")
    return f"times at {' '.join(done[:6])}"
