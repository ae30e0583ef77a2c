# SPDX-License-Identifier: Apache-2.0
"""Writes a trace.dat of version 6 from tracefs and the pages of each CPU.

Source: trace-cmd.dat.v6(5).  The first part is saved when a recording starts, so that
whatever ends it, the pages that were copied can still be read.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.base.version import __version__
from wbscope.record.pages import page_bytes
from wbscope.record.past_cache import DirectFile
from wbscope.record.tracefs import Instance

__all__ = ["Machine", "Tail", "head_of", "write_trace"]

_MAGIC = b"\x17\x08\x44tracing6\0"
_OPTIONS, _FLYRECORD = b"options  \0", b"flyrecord\0"
_CPUSTAT, _CLOCK, _UNAME, _CPUCOUNT, _VERSION, _TRACEID = 2, 4, 5, 8, 9, 11
# Print formats that name symbols: only they need the table of all of them.
_SYMBOLS = re.compile(r"%-?\d*p[sSfFB]|__print_symbolic_sym|%pS")
_KALLSYMS = Path("/proc/kallsyms")


@dataclass(frozen=True)
class Machine:
    """Of the machine that recorded: byte order as struct has it, and size of a long."""

    order: str = "<" if sys.byteorder == "little" else ">"
    long_bytes: int = struct.calcsize("l")
    kallsyms: Path = _KALLSYMS


@dataclass
class Tail:
    """What is known only when a recording ends."""

    clock: str
    uname: str
    trace_id: int
    cmdlines: Mapping[int, str] = field(default_factory=dict)
    cpu_stats: Mapping[int, str] = field(default_factory=dict)


def head_of(instance: Instance, events: Iterable[str], machine: Machine | None = None) -> bytes:
    """Everything before the names of tasks: formats, symbols, printk formats."""
    machine = machine or Machine()
    pack = _Packer(machine.order)
    events_dir = instance.tracefs / "events"
    head = [_MAGIC, bytes([machine.order == ">", machine.long_bytes])]
    head += [pack.number(page_bytes(instance))]
    for name in ("header_page", "header_event"):
        head += [name.encode() + b"\0", pack.sized(_read(events_dir / name))]
    head.append(pack.files(sorted((events_dir / "ftrace").glob("*/format"))))
    systems: dict[str, list[Path]] = {}
    for event in sorted(events):
        system, _, name = event.partition(":")
        systems.setdefault(system, []).append(events_dir / system / name / "format")
    head.append(pack.number(len(systems)))
    wants_symbols = False
    for system, paths in systems.items():
        wants_symbols |= any(_SYMBOLS.search(path.read_text(errors="replace")) for path in paths)
        head += [system.encode() + b"\0", pack.files(paths)]
    kallsyms = _read(machine.kallsyms) if wants_symbols else b""
    head += [pack.sized(kallsyms, "I"), pack.sized(_read(instance.tracefs / "printk_formats"), "I")]
    return b"".join(head)


def write_trace(output: Path, head: bytes, tail: Tail, cpu_files: Mapping[int, Path]) -> int:
    """Put the parts together; returns the bytes of pages. `output` is replaced when whole."""
    pack = _Packer(">" if head[len(_MAGIC)] else "<")
    page = struct.unpack_from(f"{pack.order}I", head, len(_MAGIC) + 2)[0]
    cpus = max(cpu_files, default=-1) + 1
    before = head + _cmdlines(pack, tail.cmdlines) + pack.number(cpus) + _options(pack, tail, cpus)
    sizes = {cpu: path.stat().st_size // page * page for cpu, path in cpu_files.items()}
    at = _aligned(len(before) + len(_FLYRECORD) + 16 * cpus, page)
    table = []
    for cpu in range(cpus):
        table.append(pack.number(at, "Q") + pack.number(sizes.get(cpu, 0), "Q"))
        at += sizes.get(cpu, 0)
    before += _FLYRECORD + b"".join(table)
    part = output.with_name(f".{output.name}.part")
    with DirectFile(part) as out:
        out.append(before + bytes(-len(before) % page))
        for cpu in sorted(cpu_files):
            out.append_file(cpu_files[cpu], sizes[cpu])
    os.replace(part, output)
    return sum(sizes.values())


def _options(pack: _Packer, tail: Tail, cpus: int) -> bytes:
    options = [
        (_CLOCK, tail.clock.encode() + b"\0"),
        (_UNAME, tail.uname.encode() + b"\0"),
        (_VERSION, f"wbscope {__version__}".encode() + b"\0"),
        (_TRACEID, pack.number(tail.trace_id, "Q")),
        (_CPUCOUNT, pack.number(cpus)),
        *(
            (_CPUSTAT, f"CPU: {cpu}\n{text}".encode() + b"\0")
            for cpu, text in sorted(tail.cpu_stats.items())
        ),
    ]
    packed = (pack.number(number, "H") + pack.sized(data, "I") for number, data in options)
    return _OPTIONS + b"".join(packed) + pack.number(0, "H")


def _cmdlines(pack: _Packer, names: Mapping[int, str]) -> bytes:
    lines = "".join(f"{tid} {comm}\n" for tid, comm in sorted(names.items()))
    return pack.sized(lines.encode(errors="surrogateescape"))


@dataclass(frozen=True)
class _Packer:
    """Numbers in the byte order of the recording machine."""

    order: str

    def number(self, value: int, size: str = "I") -> bytes:
        return struct.pack(f"{self.order}{size}", value)

    def sized(self, data: bytes, size: str = "Q") -> bytes:
        return self.number(len(data), size) + data

    def files(self, paths: list[Path]) -> bytes:
        return self.number(len(paths)) + b"".join(self.sized(_read(path)) for path in paths)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _aligned(at: int, page: int) -> int:
    return -(-at // page) * page
