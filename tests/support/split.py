# SPDX-License-Identifier: Apache-2.0
"""A part of a recorded trace by time, that still says what was recorded."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from .layout import Layout, layout_of
from .tools import require_program, run

__all__ = ["cut_time"]

_TRACECLOCK, _UNAME, _VERSION, _TRACEID = 4, 5, 9, 11  # options


def cut_time(trace: Path, seconds: tuple[float, float], output: Path) -> None:
    """A part of a version 7 file, by its own time stamps, with the facts of the whole.

    trace-cmd split takes the records, but leaves out which kernel and clock they are of.
    """
    times = [f"{time:.6f}" for time in seconds]
    done = run([require_program("trace-cmd"), "split", "-i", trace, "-o", output, *times])
    if done.returncode:
        raise RuntimeError(done.stderr)
    output.with_name(output.name + ".1").rename(output)  # it numbers the parts
    whole, part = layout_of(trace.read_bytes()), layout_of(output.read_bytes())
    options = b"".join(_facts(whole)) + struct.pack(whole.order + "HIQ", 0, 8, 0)
    data = bytearray(part.data)
    last = max(section.end for section in part.sections if section.ident == 0)
    data[last - 8 : last] = struct.pack(whole.order + "Q", len(data))  # where options go on
    data += struct.pack(whole.order + "HHIQ", 0, 0, 0, len(options)) + options
    output.write_bytes(data)


def _facts(layout: Layout) -> Iterator[bytes]:
    """The options that say what was recorded, and how."""
    for section in layout.sections:
        at = section.start + 16
        while section.ident == 0 and at < section.end:
            ident, size = layout.number(at, 2), layout.number(at + 2, 4)
            if ident in (_TRACECLOCK, _UNAME, _VERSION, _TRACEID):
                yield layout.data[at : at + 6 + size]
            at += 6 + size
