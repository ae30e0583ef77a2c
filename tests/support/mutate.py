# SPDX-License-Identifier: Apache-2.0
"""Damage for trace files: seeded, so that a number names one mutant for ever."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from .formats import EventFormat
from .kernel_events import formats
from .layout import Layout, Section, Size, layout_of
from .tracedat import Buffer, Trace

__all__ = ["Mutant", "mutants", "small_traces"]

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
