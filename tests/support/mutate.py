# SPDX-License-Identifier: Apache-2.0
"""Damage for traces, of Perfetto too, and for values in them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .cut import OTHER_KEPT, cut_trace
from .cut import _unpack as unpack
from .formats import EventFormat
from .kernel_events import formats
from .layout import Layout, Region, Section, Size, layout_of
from .tracedat import Buffer, Trace

__all__ = [
    "INTERESTING",
    "YEAR_NS",
    "Mutant",
    "mutants",
    "packets_of",
    "part_of_trace",
    "perfetto_mutant",
    "small_traces",
    "value_mutant",
]


# Damage for trace files: seeded, so that a number names one mutant for ever.

_KINDS: dict[str, dict[str, Any]] = {
    "v6": {"version": 6},
    "v6-arm32": {"version": 6, "long_bytes": 4},
    "v7-none": {},
    "v7-zlib": {"compression": "zlib"},
    "v7-zstd": {"compression": "zstd"},
    "v7-big-endian": {"endian": "big", "long_bytes": 4},
    "v7-64k-pages": {"page_bytes": 65536, "compression": "zlib"},
}
_EVENTS = ("balance_dirty_pages", "global_dirty_state", "sched_switch", "sys_exit_write")
_FLIPPED_SHARE = 0.4
_BITS = (1, 1, 1, 2, 8)


@cache
def small_traces() -> dict[str, bytes]:
    """Traces of the test writer in every shape: two CPUs, two buffers, lost and discarded."""
    return {name: _small_trace(**options) for name, options in _KINDS.items()}


def _small_trace(**options: Any) -> bytes:
    chosen: list[EventFormat] = list(formats(*_EVENTS))
    trace = Trace(
        chosen,
        cpus=2,
        cmdlines={11: "dd", 13: "fio"},
        cpu_stats={0: {"entries": 3, "overrun": 0}, 1: {"entries": 4}},
        ts_offset=5,
        kallsyms="ffffffff81000000 T _stext\n",
        printk='0xffffffff82000000 : "text"\n',
        buffers=[Buffer(), Buffer("second")],
        **options,
    )
    ts = 1_000_000
    for number in range(48):
        for cpu in (0, 1):
            ts += 1000 if number % 7 else 1 << 28
            name = chosen[number % len(chosen)].name
            trace.event(cpu, ts, 11 + 2 * cpu, name, {}, buffer=number % 2)
            if number == 20:
                trace.discarded(cpu, ts + 1, buffer=number % 2)
            if number in (30, 31):
                trace.page_break(cpu, fill_tail=True, buffer=number % 2)
    return trace.encode()


@dataclass(frozen=True)
class Mutant:
    """A damaged file: what was done, and whether only contents were changed."""

    what: str
    data: bytes
    only_contents: bool


def mutants(data: bytes, count: int, seed: int) -> Iterator[Mutant]:
    """All cuts, swaps and sizes that fit in count, shuffled, then flips to make it count."""
    layout = layout_of(data)
    chance = random.Random(seed)
    shaped = [*_cuts(layout), *_swaps(layout), *_sizes(layout)]
    chance.shuffle(shaped)
    shaped = shaped[: round(count * (1 - _FLIPPED_SHARE))]
    yield from shaped
    for _ in range(count - len(shaped)):
        yield _flip(layout, chance)


def _cuts(layout: Layout) -> Iterator[Mutant]:
    for border in layout.borders():
        for place in (border - 1, border, border + 1):
            if 0 <= place < len(layout.data):
                yield Mutant(f"cut at {place}", layout.data[:place], False)


def _swaps(layout: Layout) -> Iterator[Mutant]:
    parts = [*layout.sections]
    parts += [Section(f"data of cpu {r.cpu}", -1, r.start, r.end) for r in layout.regions]
    for number, first in enumerate(parts):
        for second in parts[number + 1 :]:
            if first.end <= second.start and layout.data[first.start : first.end]:
                yield Mutant(
                    f"swap {first.name} and {second.name}", _swapped(layout, first, second), False
                )


def _swapped(layout: Layout, first: Section, second: Section) -> bytes:
    data = layout.data
    middle = data[first.end : second.start]
    return (
        data[: first.start]
        + data[second.start : second.end]
        + middle
        + data[first.start : first.end]
        + data[second.end :]
    )


def _sizes(layout: Layout) -> Iterator[Mutant]:
    for size in layout.sizes:
        most = (1 << 8 * size.width) - 1
        now = layout.number(size.at, size.width)
        values = {0, 1, now - 1, now + 1, most // 2, most - 15, most, len(layout.data)}
        for value in sorted(values - {now}):
            if 0 <= value <= most:
                what = f"{size.what} at {size.at} = {value}"
                yield Mutant(what, _put(layout, size, value), False)


def _put(layout: Layout, size: Size, value: int) -> bytes:
    raw = value.to_bytes(size.width, "big" if layout.order == ">" else "little")
    return layout.data[: size.at] + raw + layout.data[size.at + size.width :]


def _flip(layout: Layout, chance: random.Random) -> Mutant:
    data = bytearray(layout.data)
    filled = [part for part in (*layout.sections, *layout.regions) if part.end > part.start]
    places = []
    for _ in range(chance.choice(_BITS)):
        part = chance.choice(filled)
        near = min(part.end, part.start + chance.choice((16, 256, len(data))), len(data))
        place = chance.randrange(part.start, near)
        data[place] ^= 1 << chance.randrange(8)
        places.append(place)
    contents = all(layout.is_content(place, place + 1) for place in places)
    return Mutant(f"flip a bit at {places}", bytes(data), contents)


# Perfetto traces with other bytes, other lengths and parts that are missing.
#
# Seeded: a base's name and a number name one mutant for ever.

_PACKET_TAG = 0x0A
_LENGTHS = (0, 1, 127, 128, 2**14, 2**21, 2**28, 2**31, 2**32, 2**63, 2**64 - 1)
_BYTES = (0x00, 0x01, 0x0A, 0x12, 0x7F, 0x80, 0xFF)
_Change = Callable[[bytearray, random.Random, list[tuple[int, int]]], str]


def perfetto_mutant(base: str, data: bytes, number: int) -> tuple[str, bytes]:
    """What was done, and the file: one to three changes."""
    chance = random.Random(f"Perfetto trace {base} {number}")
    out = bytearray(data)
    packets = packets_of(data)
    changes: tuple[_Change, ...] = (*(_byte,) * 5, *(_length,) * 3, _cut, _delete, _double, _swap)
    done = [
        chance.choice(changes)(out, chance, packets) for _ in range(chance.choice((1, 1, 2, 3)))
    ]
    return "; ".join(done), bytes(out)


@cache
def packets_of(data: bytes) -> list[tuple[int, int]]:
    """Start and end of each packet of a good trace.

    Raises: ValueError when it is none.
    """
    return list(_read_packets(data))


def _read_packets(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(data):
        start, length, shift = at, 0, 0
        if data[at] != _PACKET_TAG:
            raise ValueError(f"no packet at {at}")
        at += 1
        while at < len(data):
            byte = data[at]
            length |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if byte < 0x80:
                break
        at += length
        if at > len(data):
            raise ValueError(f"the packet at {start} ends behind the file")
        yield start, at


def _place(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> int:
    """In any packet, near its start more often than not: there are the lengths and ids."""
    start, end = chance.choice(packets)
    end = min(end, start + chance.choice((8, 40, end - start)))
    return min(chance.randrange(start, end), max(len(out) - 1, 0))


def _byte(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    if not out:
        return "nothing"
    done = []
    for _ in range(chance.choice((1, 1, 1, 5, 30))):
        at = _place(out, chance, packets)
        out[at] = chance.choice((out[at] ^ 1 << chance.randrange(8), chance.choice(_BYTES)))
        done.append(f"{at}={out[at]:#x}")
    return f"bytes {' '.join(done[:6])}"


def _length(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    at, length = _place(out, chance, packets), chance.choice(_LENGTHS)
    tag = bytes([chance.randrange(1, 16) << 3 | 2]) if chance.random() < 0.5 else b""
    out[at:at] = tag + _varint(length)
    return f"length {length} put in at {at}"


def _cut(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    at = _place(out, chance, packets)
    del out[at:]
    return f"cut at {at}"


def _delete(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    at, count = _place(out, chance, packets), chance.choice((1, 2, 8, 100, 5000))
    del out[at : at + count]
    return f"{count} bytes deleted at {at}"


def _double(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    start, end = chance.choice(packets)
    out[start:start] = out[start:end] * chance.choice((1, 3))
    return f"packet at {start} again"


def _swap(out: bytearray, chance: random.Random, packets: list[tuple[int, int]]) -> str:
    """A packet moves to another place: what it refers to comes after it."""
    start, end = chance.choice(packets)
    packet = bytes(out[start:end])
    del out[start:end]
    at = min(chance.choice(packets)[0], len(out))
    out[at:at] = packet
    return f"packet at {start} moved to {at}"


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


# Traces whose structure is whole and whose values are not: words of records, times, page stamps.
#
# Seeded: a base's name and a number name one mutant for ever.

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
