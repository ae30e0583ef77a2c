# SPDX-License-Identifier: Apache-2.0
"""Writer of tiny synthetic trace.dat files, versions 6 and 7.

A Trace is described event by event and written in either byte order, with any long and page size.
Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5); option numbers are the same in both.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .compression import Compression, compress
from .formats import Endian, EventFormat
from .ringbuffer import (
    Discarded,
    Item,
    LostEvents,
    PageBreak,
    PageLayout,
    Record,
    Stamp,
    encode_pages,
)

__all__ = ["Buffer", "Trace"]

_MAGIC = b"\x17\x08\x44tracing"
_OPTION_CPUSTAT, _OPTION_CLOCK, _OPTION_UNAME, _OPTION_OFFSET = 2, 4, 5, 7
_OPTION_CPUCOUNT, _OPTION_VERSION, _OPTION_TRACEID = 8, 9, 11
_CLOCKS = ("local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot")


@dataclass
class Buffer:
    """One trace instance: what each CPU's ring buffer holds. The top instance has the name ""."""

    name: str = ""
    items: dict[int, list[Item]] = field(default_factory=dict)

    def add(self, cpu: int, item: Item) -> None:
        self.items.setdefault(cpu, []).append(item)


@dataclass
class Trace:
    """A trace to write: formats and events first, then bytes().

    Units: ts in ns. long_bytes is the size of a kernel long; page_bytes that of a page.
    compress packs one chunk of pages.
    """

    formats: Iterable[EventFormat] = ()
    version: int = 7
    compression: Compression = "none"
    compress: Callable[[Compression, bytes], bytes] = compress
    endian: Endian = "little"
    long_bytes: int = 8
    page_bytes: int = 4096
    cpus: int = 1
    clock: str = "mono"
    uname: str = "Linux synthetic 6.1.0-test x86_64"
    ts_offset: int | None = None
    cmdlines: Mapping[int, str] = field(default_factory=dict)
    cpu_stats: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    kallsyms: str = ""
    printk: str = ""
    pages_per_chunk: int = 2
    more_options: Iterable[tuple[int, bytes]] = ()
    buffers: list[Buffer] = field(default_factory=lambda: [Buffer()])

    def __post_init__(self) -> None:
        self._by_name = {fmt.name: fmt for fmt in self.formats}

    def event(
        self,
        cpu: int,
        ts: int,
        tid: int,
        name: str,
        values: Mapping[str, object] | None = None,
        *,
        stamp: Stamp = "auto",
        buffer: int = 0,
    ) -> None:
        """Add an event. Events of one CPU and buffer are added in time order."""
        data = self._by_name[name].encode(values or {}, tid, self.endian)
        self.buffers[buffer].add(cpu, Record(ts, data, stamp))

    def raw(self, cpu: int, ts: int, data: bytes, *, buffer: int = 0) -> None:
        """Add a record of any bytes, with its common fields."""
        self.buffers[buffer].add(cpu, Record(ts, data))

    def lost(self, cpu: int, count: int | None = None, *, buffer: int = 0) -> None:
        """Events lost on the CPU before the next event added to it."""
        self.buffers[buffer].add(cpu, LostEvents(count))

    def discarded(self, cpu: int, ts: int, data_bytes: int = 64, *, buffer: int = 0) -> None:
        self.buffers[buffer].add(cpu, Discarded(ts, data_bytes))

    def page_break(self, cpu: int, *, fill_tail: bool = False, buffer: int = 0) -> None:
        self.buffers[buffer].add(cpu, PageBreak(fill_tail))

    def write(self, path: Path) -> Path:
        path.write_bytes(self.encode())
        return path

    def encode(self) -> bytes:
        """The file's bytes.

        Raises: ValueError for a version other than 6 and 7, or compression in version 6.
        """
        from .ringbuffer import FileV7, encode_v6

        if self.version == 7:
            return FileV7(self).encode()
        if self.version == 6 and self.compression == "none":
            return encode_v6(self)
        raise ValueError(f"cannot write version {self.version} with compression {self.compression}")

    @property
    def layout(self) -> PageLayout:
        return PageLayout(self.page_bytes, self.long_bytes, self.endian)

    def pack(self, spec: str, *values: int | bytes) -> bytes:
        return struct.pack(("<" if self.endian == "little" else ">") + spec, *values)

    def initial_bytes(self) -> bytes:
        head = _MAGIC + f"{self.version}".encode() + b"\0"
        return (
            head + bytes([self.endian == "big", self.long_bytes]) + self.pack("I", self.page_bytes)
        )

    def header_info_bytes(self) -> bytes:
        data_bytes = self.page_bytes - self.layout.header_bytes
        page = (
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
            f"\tfield: local_t commit;\toffset:8;\tsize:{self.long_bytes};\tsigned:1;\n"
            "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
            f"\tfield: char data;\toffset:{8 + self.long_bytes};\tsize:{data_bytes};\tsigned:0;\n"
        ).encode()
        event = (
            b"# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
            b"\tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n"
            b"\ttime_stamp : type == 31\n\tdata max type_len  == 28\n"
        )
        head = b"header_page\0" + self.pack("Q", len(page)) + page
        return head + b"header_event\0" + self.pack("Q", len(event)) + event

    def event_formats_bytes(self) -> bytes:
        systems: dict[str, list[EventFormat]] = {}
        for fmt in self._by_name.values():
            if fmt.system == "ftrace":
                continue
            systems.setdefault(fmt.system, []).append(fmt)
        out = self.pack("I", len(systems))
        for system, formats in systems.items():
            out += system.encode() + b"\0" + self.pack("I", len(formats))
            for fmt in formats:
                text = fmt.text.encode()
                out += self.pack("Q", len(text)) + text
        return out

    def ftrace_formats_bytes(self) -> bytes:
        texts = [fmt.text for fmt in self._by_name.values() if fmt.system == "ftrace"]
        return self.pack("I", len(texts)) + b"".join(self.text_bytes("Q", text) for text in texts)

    def text_bytes(self, size_spec: str, text: str) -> bytes:
        data = text.encode()
        return self.pack(size_spec, len(data)) + data

    def cmdlines_bytes(self) -> bytes:
        return self.text_bytes(
            "Q", "".join(f"{tid} {comm}\n" for tid, comm in self.cmdlines.items())
        )

    def option_bytes(self, ident: int, data: bytes) -> bytes:
        return self.pack("HI", ident, len(data)) + data

    def common_options_bytes(self) -> bytes:
        known = _CLOCKS if self.clock in _CLOCKS else (*_CLOCKS, self.clock)
        clocks = " ".join(f"[{name}]" if name == self.clock else name for name in known)
        out = self.option_bytes(_OPTION_CLOCK, clocks.encode() + b"\n\0")
        out += self.option_bytes(_OPTION_UNAME, self.uname.encode() + b"\0")
        out += self.option_bytes(_OPTION_VERSION, b"3.1.6 synthetic\0")
        out += self.option_bytes(_OPTION_TRACEID, self.pack("Q", 23))
        out += self.option_bytes(_OPTION_CPUCOUNT, self.pack("I", self.cpus))
        if self.ts_offset is not None:
            out += self.option_bytes(_OPTION_OFFSET, f"{self.ts_offset}".encode() + b"\0")
        for cpu, stats in self.cpu_stats.items():
            text = f"CPU: {cpu}\n" + "".join(f"{key}: {value}\n" for key, value in stats.items())
            out += self.option_bytes(_OPTION_CPUSTAT, text.encode() + b"\0")
        for ident, data in self.more_options:
            out += self.option_bytes(ident, data)
        return out

    def cpu_pages(self, buffer: Buffer, cpu: int) -> bytes:
        return encode_pages(buffer.items.get(cpu, []), self.layout)
