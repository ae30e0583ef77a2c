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

from wbscope.record.pages import page_bytes
from wbscope.record.tracefs import Instance
from wbscope.version import __version__

__all__ = ["Tail", "head_of", "write_trace"]

_MAGIC = b"\x17\x08\x44tracing6\0"
_OPTIONS, _FLYRECORD = b"options  \0", b"flyrecord\0"
_CPUSTAT, _CLOCK, _UNAME, _CPUCOUNT, _VERSION, _TRACEID = 2, 4, 5, 8, 9, 11
_COPY_BYTES = 1 << 24
# Print formats that name symbols: only they need the table of all of them.
_SYMBOLS = re.compile(r"%-?\d*p[sSfFB]|__print_symbolic_sym|%pS")
_KALLSYMS = Path("/proc/kallsyms")


@dataclass
class Tail:
    """What is known only when a recording ends."""

    clock: str
    uname: str
    trace_id: int
    cmdlines: Mapping[int, str] = field(default_factory=dict)
    cpu_stats: Mapping[int, str] = field(default_factory=dict)


def head_of(instance: Instance, events: Iterable[str]) -> bytes:
    """Everything before the names of tasks: formats, symbols, printk formats."""
    events_dir = instance.tracefs / "events"
    long_bytes = struct.calcsize("l")
    head = [_MAGIC, bytes([sys.byteorder == "big", long_bytes])]
    head += [struct.pack("=I", page_bytes(instance))]
    for name in ("header_page", "header_event"):
        head += [name.encode() + b"\0", _sized(_read(events_dir / name))]
    head.append(_formats(sorted((events_dir / "ftrace").glob("*/format"))))
    systems: dict[str, list[Path]] = {}
    for event in sorted(events):
        system, _, name = event.partition(":")
        systems.setdefault(system, []).append(events_dir / system / name / "format")
    head.append(struct.pack("=I", len(systems)))
    wants_symbols = False
    for system, paths in systems.items():
        wants_symbols |= any(_SYMBOLS.search(path.read_text(errors="replace")) for path in paths)
        head += [system.encode() + b"\0", _formats(paths)]
    kallsyms = _read(_KALLSYMS) if wants_symbols else b""
    head += [_sized(kallsyms, "I"), _sized(_read(instance.tracefs / "printk_formats"), "I")]
    return b"".join(head)


def write_trace(output: Path, head: bytes, tail: Tail, cpu_files: Mapping[int, Path]) -> int:
    """Put the parts together; returns the bytes of pages. `output` is replaced when whole."""
    page = struct.unpack_from("=I", head, len(_MAGIC) + 2)[0]
    cpus = max(cpu_files, default=-1) + 1
    before = head + _cmdlines(tail.cmdlines) + struct.pack("=I", cpus) + _options(tail, cpus)
    sizes = {cpu: path.stat().st_size // page * page for cpu, path in cpu_files.items()}
    at = _aligned(len(before) + len(_FLYRECORD) + 16 * cpus, page)
    table = b""
    for cpu in range(cpus):
        table += struct.pack("=QQ", at, sizes.get(cpu, 0))
        at += sizes.get(cpu, 0)
    part = output.with_name(f".{output.name}.part")
    with part.open("wb") as out:
        out.write(before + _FLYRECORD + table)
        out.write(bytes(-out.tell() % page))
        out.flush()
        for cpu in sorted(cpu_files):
            _append(cpu_files[cpu], out.fileno(), sizes[cpu])
    os.replace(part, output)
    return sum(sizes.values())


def _append(source: Path, target: int, count: int) -> None:
    """The kernel copies, or shares the blocks where the file system can."""
    with source.open("rb") as file:
        done = 0
        while done < count:
            wanted = min(_COPY_BYTES, count - done)
            try:
                moved = os.copy_file_range(file.fileno(), target, wanted, done)
            except OSError:
                moved = os.sendfile(target, file.fileno(), done, wanted)
            if moved == 0:
                raise OSError(None, f"{source} is shorter than it was")
            done += moved


def _options(tail: Tail, cpus: int) -> bytes:
    options = [
        (_CLOCK, tail.clock.encode() + b"\0"),
        (_UNAME, tail.uname.encode() + b"\0"),
        (_VERSION, f"wbscope {__version__}".encode() + b"\0"),
        (_TRACEID, struct.pack("=Q", tail.trace_id)),
        (_CPUCOUNT, struct.pack("=I", cpus)),
        *(
            (_CPUSTAT, f"CPU: {cpu}\n{text}".encode() + b"\0")
            for cpu, text in sorted(tail.cpu_stats.items())
        ),
    ]
    packed = (struct.pack("=HI", number, len(data)) + data for number, data in options)
    return _OPTIONS + b"".join(packed) + struct.pack("=H", 0)


def _cmdlines(names: Mapping[int, str]) -> bytes:
    lines = "".join(f"{tid} {comm}\n" for tid, comm in sorted(names.items()))
    return _sized(lines.encode(errors="surrogateescape"))


def _formats(paths: list[Path]) -> bytes:
    return struct.pack("=I", len(paths)) + b"".join(_sized(_read(path)) for path in paths)


def _sized(data: bytes, size: str = "Q") -> bytes:
    return struct.pack(f"={size}", len(data)) + data


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _aligned(at: int, page: int) -> int:
    return -(-at // page) * page
