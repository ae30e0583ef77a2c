# SPDX-License-Identifier: Apache-2.0
"""Lays a Trace out as a file of version 6 or 7.

Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .compression import version_text

if TYPE_CHECKING:
    from .tracedat import Buffer, Trace

__all__ = ["FileV7", "encode_v6"]

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
