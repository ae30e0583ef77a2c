# SPDX-License-Identifier: Apache-2.0
"""Pages of the kernel's ring buffer, and the trace file around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .compression import version_text
from .formats import Endian

__all__ = [
    "Discarded",
    "FileV7",
    "Item",
    "LostEvents",
    "PageBreak",
    "PageLayout",
    "Record",
    "encode_pages",
    "encode_v6",
]


# Ring-buffer pages for synthetic traces.
#
# Source: include/linux/ring_buffer.h and kernel/trace/ring_buffer.c (record types, RB_MISSED_*),
# and the header_page and header_event texts of trace-cmd.dat.v7(5).

_PADDING, _TIME_EXTEND, _TIME_STAMP = 29, 30, 31
_LONGEST_SHORT = 28 * 4
_DELTA_BITS = 27
_SMALLEST_RECORD = 8
_MISSED_EVENTS, _MISSED_STORED = 1 << 31, 1 << 30
Stamp = Literal["auto", "extend", "absolute"]


@dataclass(frozen=True)
class Record:
    """One event: its time in ns, its bytes, and how its time is written.

    stamp: auto = a delta, with a time extend where 27 bits do not hold it; extend and
    absolute force a time extend (type 30) or an absolute time stamp (type 31) before the record.
    """

    ts: int
    data: bytes
    stamp: Stamp = "auto"


@dataclass(frozen=True)
class Discarded:
    """A record the kernel discarded: a padding record of its length, with a time but no event."""

    ts: int
    data_bytes: int


@dataclass(frozen=True)
class LostEvents:
    """Events lost before the next record; starts a page.

    count None = the kernel kept no number; a full page has none either, as in the kernel.
    """

    count: int | None = None


@dataclass(frozen=True)
class PageBreak:
    """Start a new page; fill_tail ends the old one as a record that did not fit does.

    Source: rb_reset_tail(): a padding record up to the page's end, or, in the last 8 bytes, an open
    one (time_delta 0) behind the committed data.
    """

    fill_tail: bool = False


Item = Record | Discarded | LostEvents | PageBreak


@dataclass(frozen=True)
class PageLayout:
    """What the bytes of a page depend on."""

    page_bytes: int
    long_bytes: int
    endian: Endian

    @property
    def header_bytes(self) -> int:
        return 8 + self.long_bytes

    def u32(self, value: int) -> bytes:
        return value.to_bytes(4, self.endian)

    def header_word(self, kind: int, delta: int) -> bytes:
        """type_len:5 and time_delta:27 in a word; type_len is the low end on little endian only."""
        word = (delta << 5) | kind if self.endian == "little" else (kind << _DELTA_BITS) | delta
        return self.u32(word)


class _Page:
    """A page being filled."""

    def __init__(self, layout: PageLayout, ts: int, lost: LostEvents | None) -> None:
        self.layout = layout
        self.start_ts = ts
        self.ts = ts
        self.lost = lost
        self.data = bytearray()
        self.tail = b""

    @property
    def room(self) -> int:
        return self.layout.page_bytes - self.layout.header_bytes - len(self.data)

    def encode(self) -> bytes:
        layout = self.layout
        commit = len(self.data)
        data = bytes(self.data) + self.tail
        if self.lost is not None:
            commit |= _MISSED_EVENTS
            if self.lost.count is not None and self.room >= layout.long_bytes:
                commit |= _MISSED_STORED
                data += self.lost.count.to_bytes(layout.long_bytes, layout.endian)
        page = (
            self.start_ts.to_bytes(8, layout.endian)
            + commit.to_bytes(layout.long_bytes, layout.endian)
            + data
        )
        return page.ljust(layout.page_bytes, b"\0")


def encode_pages(items: Iterable[Item], layout: PageLayout) -> bytes:
    """The pages of one CPU, in order.

    Raises: ValueError when time runs backwards without an absolute stamp, or a record fits no page.
    """
    pages: list[bytes] = []
    page: _Page | None = None
    lost: LostEvents | None = None
    for item in items:
        if isinstance(item, LostEvents | PageBreak):
            if page is not None:
                if isinstance(item, PageBreak) and item.fill_tail:
                    _fill_tail(page)
                pages.append(page.encode())
                page = None
            lost = item if isinstance(item, LostEvents) else None
            continue
        if page is None:
            page = _Page(layout, item.ts, lost)
        encoded = _encode_item(item, page.ts, layout)
        if (
            len(encoded) + layout.long_bytes > page.room
        ):  # the long: room for the number of lost events
            pages.append(page.encode())
            page = _Page(layout, item.ts, None)
            encoded = _encode_item(item, page.ts, layout)
            if len(encoded) > page.room:
                raise ValueError(
                    f"a page with {page.room} bytes of room cannot hold a record of {len(encoded)}"
                )
        page.data += encoded
        page.ts = item.ts
        lost = None
    if page is not None:
        pages.append(page.encode())
    return b"".join(pages)


def _encode_item(item: Record | Discarded, last_ts: int, layout: PageLayout) -> bytes:
    delta = item.ts - last_ts
    stamp: Stamp = item.stamp if isinstance(item, Record) else "auto"
    head = b""
    if stamp == "absolute":
        head = _time_record(_TIME_STAMP, item.ts, layout)
        delta = 0
    elif delta < 0:
        raise ValueError(f"time runs backwards: {item.ts} after {last_ts}")
    elif stamp == "extend" or delta >> _DELTA_BITS:
        head = _time_record(_TIME_EXTEND, delta, layout)
        delta = 0
    if isinstance(item, Discarded):
        length = -(-item.data_bytes // 4) * 4
        return (
            head
            + layout.header_word(_PADDING, max(delta, 1))
            + layout.u32(length)
            + bytes(length - 4)
        )
    data = item.data.ljust(-(-len(item.data) // 4) * 4, b"\0")
    if 0 < len(data) <= _LONGEST_SHORT:
        return head + layout.header_word(len(data) // 4, delta) + data
    return head + layout.header_word(0, delta) + layout.u32(len(data) + 4) + data


def _time_record(kind: int, ts: int, layout: PageLayout) -> bytes:
    """59 bits of a time; the reader takes higher ones from the time before."""
    high = ts >> _DELTA_BITS & 0xFFFFFFFF
    return layout.header_word(kind, ts & ((1 << _DELTA_BITS) - 1)) + layout.u32(high)


def _fill_tail(page: _Page) -> None:
    if page.room > _SMALLEST_RECORD:
        room = page.room
        page.data += (
            page.layout.header_word(_PADDING, 1) + page.layout.u32(room - 4) + bytes(room - 8)
        )
        page.ts += 1
    elif page.room >= 4:
        page.tail = page.layout.header_word(_PADDING, 0)


# Lays a Trace out as a file of version 6 or 7.
#
# Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

if TYPE_CHECKING:
    from .tracedat import Buffer, Trace
_SECTION_OPTIONS, _SECTION_BUFFER, _SECTION_STRINGS = 0, 3, 15
_SECTION_HEADERS, _SECTION_FTRACE, _SECTION_EVENTS = 16, 17, 18
_SECTION_KALLSYMS, _SECTION_PRINTK, _SECTION_CMDLINES = 19, 20, 21
_OPTION_BUFFER = 3
_SECTION_FLAG_COMPRESSED = 1


class FileV7:
    """Lays out one version 7 file: sections in the order in which trace-cmd 3.1 writes them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.out = bytearray()
        self.strings = bytearray()

    def encode(self) -> bytes:
        trace = self.trace
        self.out += trace.initial_bytes()
        self.out += (
            trace.compression.encode() + b"\0" + version_text(trace.compression).encode() + b"\0"
        )
        first_options_at = len(self.out)
        self.out += bytes(8)
        sections = (
            (_SECTION_HEADERS, "headers", trace.header_info_bytes()),
            (_SECTION_FTRACE, "ftrace events", trace.ftrace_formats_bytes()),
            (_SECTION_EVENTS, "events format", trace.event_formats_bytes()),
            (_SECTION_KALLSYMS, "kallsyms", trace.text_bytes("I", trace.kallsyms)),
            (_SECTION_PRINTK, "printk", trace.text_bytes("I", trace.printk)),
            (_SECTION_CMDLINES, "command lines", trace.cmdlines_bytes()),
        )
        options = b"".join(
            trace.option_bytes(ident, trace.pack("Q", self._section(ident, title, data)))
            for ident, title, data in sections
        )
        options += trace.common_options_bytes()
        self.out[first_options_at : first_options_at + 8] = trace.pack("Q", len(self.out))
        options += trace.option_bytes(0, trace.pack("Q", 0))
        options_at = self._section(_SECTION_OPTIONS, "options", options, compressible=False)
        buffer_options = b"".join(self._buffer(buffer) for buffer in trace.buffers)
        next_options_at = self._section(
            _SECTION_OPTIONS,
            "options",
            buffer_options + trace.option_bytes(0, trace.pack("Q", 0)),
            compressible=False,
        )
        done_at = options_at + 16 + len(options) - 8
        self.out[done_at : done_at + 8] = trace.pack("Q", next_options_at)
        self._string("strings")
        self._section(_SECTION_STRINGS, "strings", bytes(self.strings))
        return bytes(self.out)

    def _string(self, text: str) -> int:
        raw = text.encode() + b"\0"
        found = (b"\0" + self.strings).find(b"\0" + raw)
        if found >= 0:
            return found
        self.strings += raw
        return len(self.strings) - len(raw)

    def _section(self, ident: int, title: str, data: bytes, *, compressible: bool = True) -> int:
        """Append a section and return its offset."""
        at = len(self.out)
        flags = 0
        if compressible and self.trace.compression != "none":
            flags = _SECTION_FLAG_COMPRESSED
            packed = self.trace.compress(self.trace.compression, data)
            data = self.trace.pack("II", len(packed), len(data)) + packed
        self.out += self.trace.pack("HHIQ", ident, flags, self._string(title), len(data)) + data
        return at

    def _buffer(self, buffer: Buffer) -> bytes:
        """Append a buffer's section and return the BUFFER option that describes it."""
        trace = self.trace
        at = len(self.out)
        title = f"buffer flyrecord {buffer.name}"
        flags = 0 if trace.compression == "none" else _SECTION_FLAG_COMPRESSED
        self.out += trace.pack("HHIQ", _SECTION_BUFFER, flags, self._string(title), 0)
        cpus = []
        for cpu in range(trace.cpus):
            self.out += bytes(-len(self.out) % trace.page_bytes)
            data = self._cpu_data(trace.cpu_pages(buffer, cpu))
            cpus.append(trace.pack("IQQ", cpu, len(self.out), len(data)))
            self.out += data
        self.out[at + 8 : at + 16] = trace.pack("Q", len(self.out) - at - 16)
        text = buffer.name.encode() + b"\0" + trace.clock.encode() + b"\0"
        option = (
            trace.pack("Q", at)
            + text
            + trace.pack("II", trace.page_bytes, trace.cpus)
            + b"".join(cpus)
        )
        return trace.option_bytes(_OPTION_BUFFER, option)

    def _cpu_data(self, pages: bytes) -> bytes:
        trace = self.trace
        if trace.compression == "none" or not pages:
            return pages
        step = trace.pages_per_chunk * trace.page_bytes
        chunks = [pages[start : start + step] for start in range(0, len(pages), step)]
        out = trace.pack("I", len(chunks))
        for chunk in chunks:
            packed = trace.compress(trace.compression, chunk)
            out += trace.pack("II", len(packed), len(chunk)) + packed
        return out


def encode_v6(trace: Trace) -> bytes:
    """A version 6 file: one fixed sequence, then the CPU data of each instance."""
    out = bytearray(
        trace.initial_bytes() + trace.header_info_bytes() + trace.ftrace_formats_bytes()
    )
    out += trace.event_formats_bytes() + trace.text_bytes("I", trace.kallsyms)
    out += (
        trace.text_bytes("I", trace.printk) + trace.cmdlines_bytes() + trace.pack("I", trace.cpus)
    )
    out += b"options  \0" + trace.common_options_bytes()
    instance_slots = []
    for buffer in trace.buffers[1:]:
        instance_slots.append(len(out) + 6)
        out += trace.option_bytes(_OPTION_BUFFER, bytes(8) + buffer.name.encode() + b"\0")
    out += trace.pack("H", 0)
    _append_cpus_v6(out, trace, trace.buffers[0])
    for slot, buffer in zip(instance_slots, trace.buffers[1:], strict=True):
        out[slot : slot + 8] = trace.pack("Q", len(out))
        _append_cpus_v6(out, trace, buffer)
    return bytes(out)


def _append_cpus_v6(out: bytearray, trace: Trace, buffer: Buffer) -> None:
    out += b"flyrecord\0"
    table_at = len(out)
    out += bytes(16 * trace.cpus)
    table = b""
    for cpu in range(trace.cpus):
        out += bytes(-len(out) % trace.page_bytes)
        pages = trace.cpu_pages(buffer, cpu)
        table += trace.pack("QQ", len(out), len(pages))
        out += pages
    out[table_at : table_at + len(table)] = table
