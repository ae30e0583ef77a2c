# SPDX-License-Identifier: Apache-2.0
"""Where the parts of a trace.dat lie: borders, sizes and contents, for tests that damage it.

Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

__all__ = ["Layout", "Region", "Section", "Size", "layout_of"]

_HEAD_BYTES = 18  # magic, version, endian, long size, page size
_SECTION_HEADER_BYTES = 16
_OPTION_DONE, _OPTION_BUFFER, _OPTION_CPUCOUNT = 0, 3, 8
_SECTION_OPTIONS, _SECTION_BUFFER, _SECTION_FTRACE, _SECTION_EVENTS = 0, 3, 17, 18


@dataclass(frozen=True)
class Size:
    """A number that says how much there is of something, or where it is."""

    at: int
    width: int
    what: str


@dataclass(frozen=True)
class Section:
    """A run of bytes with one job; ident is that of version 7, -1 where there is none."""

    name: str
    ident: int
    start: int
    end: int


@dataclass(frozen=True)
class Region:
    """The data of one CPU."""

    cpu: int
    start: int
    end: int


@dataclass
class Layout:
    """What layout_of() finds. Contents are bytes whose change is a change of data, not of shape."""

    data: bytes
    version: int
    order: str
    compression: str = "none"
    page_bytes: int = 4096
    sections: list[Section] = field(default_factory=list)
    sizes: list[Size] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    contents: list[tuple[int, int]] = field(default_factory=list)

    def number(self, at: int, width: int) -> int:
        spec = {1: "B", 2: "H", 4: "I", 8: "Q"}[width]
        return int(struct.unpack_from(self.order + spec, self.data, at)[0])

    def size(self, at: int, width: int, what: str) -> int:
        """Note a size and return it."""
        self.sizes.append(Size(at, width, what))
        return self.number(at, width)

    def text_end(self, at: int) -> int:
        return self.data.index(b"\0", at) + 1

    def borders(self) -> list[int]:
        """Where sections, options, chunks and CPU data start and end, and sizes stand."""
        places = {0, len(self.data), *(size.at for size in self.sizes)}
        for part in (*self.sections, *self.regions):
            places |= {part.start, part.end}
        return sorted(place for place in places if place <= len(self.data))

    def is_content(self, start: int, end: int) -> bool:
        """Whether all these bytes are contents."""
        return any(first <= start and end <= last for first, last in self.contents)


def layout_of(data: bytes) -> Layout:
    """Read an undamaged file.

    Raises: ValueError or struct.error when it is not one.
    """
    if data[:10] != b"\x17\x08\x44tracing" or data[10:12] not in (b"6\0", b"7\0"):
        raise ValueError("no trace.dat of version 6 or 7")
    layout = Layout(data, data[10] - ord("0"), ">" if data[12] else "<")
    layout.page_bytes = layout.size(14, 4, "page size")
    if layout.version == 6:
        _read_v6(layout)
    else:
        _read_v7(layout)
    layout.sections.sort(key=lambda section: section.start)
    return layout


def _read_v7(layout: Layout) -> None:
    name_end = layout.text_end(_HEAD_BYTES)
    layout.compression = layout.data[_HEAD_BYTES : name_end - 1].decode()
    options_at = layout.text_end(name_end)
    at = options_at + 8
    while at + _SECTION_HEADER_BYTES <= len(layout.data):
        ident, flags = layout.number(at, 2), layout.number(at + 2, 2)
        end = at + _SECTION_HEADER_BYTES + layout.size(at + 8, 8, "section size")
        layout.sections.append(Section(f"section {ident}", ident, at, end))
        start = at + _SECTION_HEADER_BYTES
        if flags & 1 and ident not in (_SECTION_BUFFER, _SECTION_OPTIONS):
            layout.size(start, 4, "packed size")
            layout.size(start + 4, 4, "unpacked size")
            layout.contents.append((start + 8, end))
        elif ident in (_SECTION_FTRACE, _SECTION_EVENTS):
            _read_formats(layout, start, ident == _SECTION_EVENTS)
        elif ident != _SECTION_OPTIONS and ident != _SECTION_BUFFER:
            layout.contents.append((start, end))
        at = end
    offset = layout.size(options_at, 8, "offset of the options")
    while offset:
        offset = _read_options_v7(layout, offset)


def _read_options_v7(layout: Layout, offset: int) -> int:
    """Returns the offset of the next section of options."""
    at = offset + _SECTION_HEADER_BYTES
    end = at + layout.number(offset + 8, 8)
    if layout.number(offset + 2, 2) & 1:
        raise ValueError("compressed options")
    while at < end:
        ident, count = layout.number(at, 2), layout.size(at + 2, 4, "option size")
        body = at + 6
        if ident == _OPTION_DONE:
            return layout.size(body, 8, "offset of the next options")
        if ident == _OPTION_BUFFER:
            _read_buffer_v7(layout, body)
        elif ident >= 16:
            layout.size(body, 8, "offset of a section")
        elif ident != _OPTION_CPUCOUNT:
            layout.contents.append((body, body + count))
        at = body + count
    return 0


def _read_buffer_v7(layout: Layout, body: int) -> None:
    section = layout.size(body, 8, "offset of a buffer")
    name_end = layout.text_end(body + 8)
    at = layout.text_end(name_end)
    layout.contents.append((body + 8, at - 1))
    layout.size(at, 4, "page size of a buffer")
    cpus = layout.size(at + 4, 4, "count of CPUs")
    packed = bool(layout.number(section + 2, 2) & 1)
    section_end = section + _SECTION_HEADER_BYTES + layout.number(section + 8, 8)
    for row in range(at + 8, at + 8 + cpus * 20, 20):
        layout.sizes.append(Size(row, 4, "CPU number"))
        start = layout.size(row + 4, 8, "offset of CPU data")
        count = layout.size(row + 12, 8, "size of CPU data")
        if count == 0:
            continue
        end = _read_chunks(layout, start) if packed else start + count
        if not packed:
            layout.contents.append((start, end))
        layout.regions.append(Region(layout.number(row, 4), start, min(end, section_end)))


def _read_chunks(layout: Layout, start: int) -> int:
    at = start + 4
    for _ in range(layout.size(start, 4, "count of chunks")):
        packed = layout.size(at, 4, "packed size of a chunk")
        layout.size(at + 4, 4, "unpacked size of a chunk")
        layout.contents.append((at + 8, at + 8 + packed))
        at += 8 + packed
    return at


def _read_formats(layout: Layout, at: int, has_systems: bool) -> int:
    systems = layout.size(at, 4, "count of systems") if has_systems else 1
    at += 4 if has_systems else 0
    for _ in range(systems):
        if has_systems:
            end = layout.text_end(at)
            layout.contents.append((at, end - 1))
            at = end
        count = layout.size(at, 4, "count of formats")
        at += 4
        for _ in range(count):
            at = _read_sized(layout, at, 8, "format size")
    return at


def _read_sized(layout: Layout, at: int, width: int, what: str) -> int:
    end = at + width + layout.size(at, width, what)
    layout.contents.append((at + width, end))
    return end


def _read_v6(layout: Layout) -> None:
    def part(name: str, start: int, end: int) -> int:
        layout.sections.append(Section(name, -1, start, end))
        return end

    at = _read_sized(layout, _HEAD_BYTES + 12, 8, "header_page size")
    at = part("header info", _HEAD_BYTES, _read_sized(layout, at + 13, 8, "header_event size"))
    at = part("ftrace formats", at, _read_formats(layout, at, False))
    at = part("event formats", at, _read_formats(layout, at, True))
    at = part("kallsyms", at, _read_sized(layout, at, 4, "kallsyms size"))
    at = part("printk formats", at, _read_sized(layout, at, 4, "printk size"))
    at = part("command lines", at, _read_sized(layout, at, 8, "command lines size"))
    cpus = layout.size(at, 4, "count of CPUs")
    at += 4
    tables = []
    if layout.data[at : at + 10] == b"options  \0":
        start, at = at, at + 10
        while layout.number(at, 2) != _OPTION_DONE:
            ident, count = layout.number(at, 2), layout.size(at + 2, 4, "option size")
            if ident == _OPTION_BUFFER:
                tables.append(layout.size(at + 6, 8, "offset of a buffer"))
            elif ident != _OPTION_CPUCOUNT:
                layout.contents.append((at + 6, at + 6 + count))
            at += 6 + count
        at = part("options", start, at + 2)
    for table in [at, *tables]:
        for row in range(table + 10, table + 10 + cpus * 16, 16):
            start = layout.size(row, 8, "offset of CPU data")
            end = start + layout.size(row + 8, 8, "size of CPU data")
            if end > start:
                layout.regions.append(Region((row - table) // 16, start, end))
                layout.contents.append((start, end))
        part("CPU table", table, table + 10 + cpus * 16)
