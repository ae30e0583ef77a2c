# SPDX-License-Identifier: Apache-2.0
"""Small traces cut from recorded ones: a few events' formats, the first chunks.

make_seeds.py imports this where nothing but Python is installed.
"""

from __future__ import annotations

import ctypes
import re
import struct
import zlib
from functools import cache
from pathlib import Path

from .layout import Layout, Section, layout_of

__all__ = ["OTHER_KEPT", "cut_trace", "event_formats"]

_KEPT = ("writeback:", "vmscan:", "sched:sched_switch", "ftrace:print")
# Events that the recorded traces of examples have besides.
OTHER_KEPT = (
    *("block:", "ext4:", "jbd2:", "sched:sched_process_exit", "sched:sched_waking"),
    *("syscalls:sys_enter_write", "syscalls:sys_exit_write"),
    *("syscalls:sys_enter_fsync", "syscalls:sys_exit_fsync"),
)
_HEADERS, _FTRACE, _EVENTS, _KALLSYMS, _PRINTK, _CMDLINES = range(16, 22)


@cache
def _zstd() -> ctypes.CDLL:
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_decompress.argtypes = [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    return library


def _unpack(kind: str, data: bytes, unpacked: int) -> bytes:
    if kind == "zlib":
        return zlib.decompress(data)
    out = ctypes.create_string_buffer(unpacked)
    got = _zstd().ZSTD_decompress(out, unpacked, data, len(data))
    if got != unpacked:
        raise ValueError(f"zstd gave {got}, wanted {unpacked} bytes")
    return out.raw


def _contents(layout: Layout, section: Section) -> bytes:
    start = section.start + 16
    if not layout.number(section.start + 2, 2) & 1:
        return layout.data[start : section.end]
    packed, unpacked = layout.number(start, 4), layout.number(start + 4, 4)
    return _unpack(layout.compression, layout.data[start + 8 : start + 8 + packed], unpacked)


def event_formats(layout: Layout) -> list[tuple[str, bytes]]:
    """(system, format text) of every event of a version 7 file."""
    found = []
    for ident, has_systems in ((_FTRACE, False), (_EVENTS, True)):
        section = next(item for item in layout.sections if item.ident == ident)
        data, at = _contents(layout, section), 0
        systems = 1
        if has_systems:
            systems, at = struct.unpack_from(layout.order + "I", data)[0], 4
        for _ in range(systems):
            system = "ftrace"
            if has_systems:
                end = data.index(b"\0", at)
                system, at = data[at:end].decode(), end + 1
            count, at = struct.unpack_from(layout.order + "I", data, at)[0], at + 4
            for _ in range(count):
                size, at = struct.unpack_from(layout.order + "Q", data, at)[0], at + 8
                found.append((system, data[at : at + size]))
                at += size
    return found


def _kept(system: str, text: bytes, names: tuple[str, ...]) -> bool:
    match = re.search(rb"^name: (\S+)", text)
    name = f"{system}:{match[1].decode() if match else ''}"
    return name.startswith(names)


class _Writer:
    def __init__(self, layout: Layout) -> None:
        self.order = layout.order
        self.out = bytearray(layout.data[: layout.text_end(layout.text_end(18))])
        self.out += bytes(8)
        self.options_slot = len(self.out) - 8
        self.options = b""

    def pack(self, spec: str, *values: int) -> bytes:
        return struct.pack(self.order + spec, *values)

    def section(self, ident: int, flags: int, data: bytes) -> int:
        at = len(self.out)
        self.out += self.pack("HHIQ", ident, flags, 0, len(data)) + data
        return at

    def named(self, ident: int, flags: int, data: bytes) -> None:
        at = self.section(ident, flags, data)
        self.options += self.pack("HIQ", ident, 8, at)

    def formats(self, formats: list[tuple[str, bytes]]) -> None:
        systems: dict[str, list[bytes]] = {}
        for system, text in formats:
            systems.setdefault(system, []).append(text)
        for ident in (_FTRACE, _EVENTS):
            chosen = {s: t for s, t in systems.items() if (s == "ftrace") == (ident == _FTRACE)}
            data = self.pack("I", len(chosen)) if ident == _EVENTS else b""
            for system, texts in chosen.items():
                data += (system.encode() + b"\0") if ident == _EVENTS else b""
                data += self.pack("I", len(texts))
                data += b"".join(self.pack("Q", len(text)) + text for text in texts)
            self.named(ident, 0, data or self.pack("I", 0))


def cut_trace(trace: Path, chunks: int = 1, more: tuple[str, ...] = ()) -> bytes:
    """A whole small file made of a compressed version 7 file with one buffer.

    `more`: names of events, or how they begin, whose formats it has, too; records of others are
    of unknown events.
    """
    layout = layout_of(trace.read_bytes())
    by_ident = {section.ident: section for section in layout.sections}
    writer = _Writer(layout)
    raw = {ident: _raw(layout, by_ident[ident]) for ident in (_HEADERS, _CMDLINES)}
    writer.named(_HEADERS, 1, raw[_HEADERS])
    writer.formats([item for item in event_formats(layout) if _kept(*item, _KEPT + more)])
    writer.named(_KALLSYMS, 0, writer.pack("I", 0))
    writer.named(_PRINTK, 0, writer.pack("I", 0))
    writer.named(_CMDLINES, 1, raw[_CMDLINES])

    at = len(writer.out)
    writer.out += bytes(16)
    rows = b""
    for region in layout.regions:
        writer.out += bytes(-len(writer.out) % layout.page_bytes)
        count = min(chunks, layout.number(region.start, 4))
        end = region.start + 4
        for _ in range(count):
            end += 8 + layout.number(end, 4)
        data = writer.pack("I", count) + layout.data[region.start + 4 : end]
        rows += writer.pack("IQQ", region.cpu, len(writer.out), len(data))
        writer.out += data
    writer.out[at : at + 16] = writer.pack("HHIQ", 3, 1, 0, len(writer.out) - at - 16)

    text = b"\0local global [mono]\0"
    body = writer.pack("Q", at) + text + writer.pack("II", layout.page_bytes, len(layout.regions))
    clock = b"local global [mono]\0"
    options = writer.options + writer.pack("HI", 4, len(clock)) + clock
    options += writer.pack("HI", 3, len(body) + len(rows)) + body + rows
    options += writer.pack("HIQ", 0, 8, 0)
    options_at = writer.section(0, 0, options)
    writer.out[writer.options_slot : writer.options_slot + 8] = writer.pack("Q", options_at)
    return bytes(writer.out)


def _raw(layout: Layout, section: Section) -> bytes:
    return layout.data[section.start + 16 : section.end]
