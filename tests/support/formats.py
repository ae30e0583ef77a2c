# SPDX-License-Identifier: Apache-2.0
"""Event formats for synthetic traces: build the kernel's format text and encode records with it.

Source: the layout is the one of <tracefs>/events/<system>/<event>/format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["Endian", "EventFormat", "Field", "Value", "build_format", "parse_format"]

Endian = Literal["little", "big"]
Value = int | str | bytes

_FIELD = re.compile(
    r"field:(?P<decl>[^;]+);\s*offset:(?P<offset>\d+);\s*size:(?P<size>\d+);(?:\s*signed:(?P<signed>[01]);)?"
)
_COMMON = (
    ("unsigned short", "common_type", 2, False),
    ("unsigned char", "common_flags", 1, False),
    ("unsigned char", "common_preempt_count", 1, False),
    ("int", "common_pid", 4, True),
)


@dataclass(frozen=True)
class Field:
    """One field of a record; decl is its C declaration as the format text spells it."""

    decl: str
    name: str
    offset: int
    size: int
    signed: bool

    @property
    def kind(self) -> Literal["number", "chars", "data_loc", "rel_loc"]:
        if "__data_loc" in self.decl:
            return "data_loc"
        if "__rel_loc" in self.decl:
            return "rel_loc"
        return "chars" if self.decl.startswith("char ") and "[" in self.decl else "number"


@dataclass(frozen=True)
class EventFormat:
    """An event's format: its text as stored in a trace, and the fields read from that text."""

    system: str
    name: str
    id: int
    text: str
    fields: tuple[Field, ...]

    def encode(
        self, values: Mapping[str, object], tid: int, endian: Endian, flags: int = 0
    ) -> bytes:
        """The record's bytes; fields that are not given are 0 or empty.

        Raises: ValueError when values name a field that the format lacks.
        """
        unknown = set(values) - {field.name for field in self.fields}
        if unknown:
            raise ValueError(f"{self.system}:{self.name} has no field {', '.join(sorted(unknown))}")
        size = max(field.offset + field.size for field in self.fields)
        record = bytearray(size)
        common: dict[str, object] = {
            "common_type": self.id,
            "common_pid": tid,
            "common_flags": values.get("common_flags", flags),
        }
        for field in self.fields:
            value = common.get(field.name, values.get(field.name, 0))
            record[field.offset : field.offset + field.size] = self._encode_field(
                field, value, record, endian
            )
        return bytes(record)

    def _encode_field(
        self, field: Field, value: object, record: bytearray, endian: Endian
    ) -> bytes:
        if field.kind == "number":
            if not isinstance(value, int):
                raise ValueError(f"{self.name}.{field.name} needs a number, got {value!r}")
            return value.to_bytes(field.size, endian, signed=value < 0)
        raw = _text_bytes(value)
        if field.kind == "chars":
            if len(raw) > field.size:
                raise ValueError(
                    f"{self.name}.{field.name} holds {field.size} bytes, got {len(raw)}"
                )
            return raw.ljust(field.size, b"\0")
        raw += b"\0" if not isinstance(value, bytes) else b""
        base = field.offset + field.size if field.kind == "rel_loc" else 0
        location = (len(raw) << 16) | (len(record) - base)
        record.extend(raw)
        return location.to_bytes(field.size, endian)


def parse_format(system: str, text: str) -> EventFormat:
    """Read a format text as the kernel writes it.

    Raises: ValueError when the text has no name, ID or field.
    """
    name = re.search(r"^name: (\S+)$", text, re.MULTILINE)
    ident = re.search(r"^ID: (\d+)$", text, re.MULTILINE)
    fields = tuple(
        Field(
            decl=match["decl"],
            name=re.sub(r"\[.*\]$", "", match["decl"].split()[-1]),
            offset=int(match["offset"]),
            size=int(match["size"]),
            signed=match["signed"] == "1",
        )
        for match in _FIELD.finditer(text)
    )
    if name is None or ident is None or not fields:
        raise ValueError(f"no name, ID or field in the format text of system {system}")
    return EventFormat(system, name[1], int(ident[1]), text, fields)


def build_format(
    system: str,
    name: str,
    ident: int,
    fields: tuple[str, ...],
    print_fmt: str,
    *,
    long_bytes: int = 8,
) -> EventFormat:
    """Lay fields out as the C compiler would and write the kernel's format text.

    Args: fields as C declarations ("unsigned long limit", "char bdi[32]",
    "__data_loc char[] path");
    an "@8" at the end gives the slot's size where it is not the type's (system call arguments).
    """
    lines = [f"name: {name}", f"ID: {ident}", "format:"]
    offset = 0
    for c_type, field_name, size, signed in _COMMON:
        lines.append(_field_line(f"{c_type} {field_name}", offset, size, signed))
        offset += size
    lines.append("")
    for spec in fields:
        decl, _, slot = spec.partition(" @")
        size, alignment, signed = _c_layout(decl, long_bytes)
        if slot:
            size = alignment = int(slot)
        offset = -(-offset // alignment) * alignment
        lines.append(_field_line(decl, offset, size, signed))
        offset += size
    lines += ["", f"print fmt: {print_fmt}", ""]
    return parse_format(system, "\n".join(lines))


def _field_line(decl: str, offset: int, size: int, signed: bool) -> str:
    return f"\tfield:{decl};\toffset:{offset};\tsize:{size};\tsigned:{int(signed)};"


def _c_layout(decl: str, long_bytes: int) -> tuple[int, int, bool]:
    """Size, alignment and signedness of a C declaration."""
    if decl.startswith(("__data_loc", "__rel_loc")):
        return 4, 4, True
    array = re.search(r"\[(\d+)\]$", decl)
    if array and decl.startswith("char "):
        return int(array[1]), 1, True
    c_type = decl.rsplit(" ", 1)[0]
    if "*" in decl:
        return long_bytes, long_bytes, False
    sizes = {
        "int": 4,
        "unsigned int": 4,
        "u64": 8,
        "s64": 8,
        "pid_t": 4,
        "dev_t": 4,
        "sector_t": 8,
        "u32": 4,
    }
    sizes |= {"unsigned short": 2, "u16": 2, "unsigned char": 1, "u8": 1, "long long": 8}
    sizes |= {
        "long": long_bytes,
        "unsigned long": long_bytes,
        "ino_t": long_bytes,
        "size_t": long_bytes,
    }
    if c_type not in sizes:
        raise ValueError(f"no size known for the type of {decl!r}")
    return sizes[c_type], sizes[c_type], c_type in ("int", "long", "s64", "pid_t", "long long")


def _text_bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else b""
