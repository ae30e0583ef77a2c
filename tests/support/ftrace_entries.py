# SPDX-License-Identifier: Apache-2.0
"""Formats of the kernel's own entries (system ftrace), and records of them.

Source: kernel/trace/trace_entries.h.
"""

from __future__ import annotations

from .formats import Endian, EventFormat, parse_format

__all__ = ["entry_format", "entry_formats", "entry_record"]

_COMMON = (
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
)
_IP = ("unsigned long ip", 8, 8, 0)
_ENTRIES: dict[str, tuple[int, tuple[tuple[str, int, int, int], ...], str]] = {
    "function": (
        1,
        (_IP, ("unsigned long parent_ip", 16, 8, 0)),
        '" %ps <-- %ps", (void *)REC->ip, (void *)REC->parent_ip',
    ),
    "kernel_stack": (
        4,
        (("int size", 8, 4, 1), ("unsigned long caller[8]", 16, 64, 0)),
        '"\\t=> %ps\\n", (void *)REC->caller[0]',
    ),
    "print": (5, (_IP, ("char buf[]", 16, 0, 1)), '"%ps: %s", (void *)REC->ip, REC->buf'),
    "bprint": (
        6,
        (_IP, ("const char * fmt", 16, 8, 0), ("u32 buf[]", 24, 0, 0)),
        '"%ps: %s", (void *)REC->ip, REC->fmt',
    ),
    "bputs": (
        14,
        (_IP, ("const char * str", 16, 8, 0)),
        '"%ps: %s", (void *)REC->ip, REC->str',
    ),
    "raw_data": (
        18,
        (("unsigned int id", 8, 4, 0), ("char buf[]", 12, 0, 1)),
        '"id:%04x %08x", REC->id, (int)REC->buf[0]',
    ),
}


def entry_format(name: str) -> EventFormat:
    """The format of an entry on a 64-bit kernel."""
    ident, fields, text = _ENTRIES[name]
    lines = "".join(
        f"\tfield:{decl};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
        for decl, offset, size, signed in fields
    )
    head = f"name: {name}\nID: {ident}\nformat:\n"
    return parse_format("ftrace", f"{head}{_COMMON}{lines}\nprint fmt: {text}\n")


def entry_formats() -> list[EventFormat]:
    return [entry_format(name) for name in _ENTRIES]


def entry_record(name: str, tid: int, body: bytes, endian: Endian = "little") -> bytes:
    """A record: the common fields, then body."""
    ident = _ENTRIES[name][0]
    return ident.to_bytes(2, endian) + b"\0\0" + tid.to_bytes(4, endian) + body
