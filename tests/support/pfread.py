# SPDX-License-Identifier: Apache-2.0
"""Reads the ftrace bundles of a Perfetto trace without trace processor: every event, every value.

Nothing here uses the project's code: Perfetto's own messages come from the descriptor in the
package perfetto, generic events from the descriptors in the trace itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["FtraceRecord", "PerfettoTrace", "read_trace"]

_FIRST_GENERIC = 65536
_TYPE_STRING = 9
_INT64 = 1 << 63


@dataclass(frozen=True)
class FtraceRecord:
    """One event; numbers as 64-bit signed integers, repeated numbers as a list."""

    machine: int
    cpu: int
    ts: int
    tid: int
    name: str
    group: str | None  # None: Perfetto's own message, or the older form of generic events
    form: str  # own, generic, named
    values: dict[str, Any]
    lost_before: bool


@dataclass
class PerfettoTrace:
    """All records in the order of the file, and the packets that are no bundles."""

    records: list[FtraceRecord] = field(default_factory=list)
    packets: list[Any] = field(default_factory=list)
    bundles: list[Any] = field(default_factory=list)  # without their events
    symbols: dict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))


def read_trace(path: Path) -> PerfettoTrace:
    """Every packet of an uncompressed trace."""
    from google.protobuf import descriptor_pb2
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    own = {f.number: f for f in protos.FtraceEvent.DESCRIPTOR.fields if f.message_type}
    trace = PerfettoTrace()
    generic: dict[int, dict[int, tuple[str, str | None, dict[int, Any]]]] = defaultdict(dict)
    waiting: list[tuple[Any, list[bytes]]] = []
    for number, _, data in _fields(path.read_bytes()):
        assert number == 1, "a trace has packets only"
        parts = list(_fields(data))
        bundle = next((value for tag, _, value in parts if tag == 1), None)
        rest = protos.TracePacket()
        rest.ParseFromString(
            b"".join(_field(tag, kind, value) for tag, kind, value in parts if tag != 1)
        )
        for entry in rest.interned_data.kernel_symbols:
            trace.symbols[rest.machine_id][entry.iid] = entry.str.decode()
        if bundle is None:
            trace.packets.append(rest)
            continue
        inner = list(_fields(bundle))
        head = protos.FtraceEventBundle()
        head.ParseFromString(
            b"".join(_field(tag, kind, value) for tag, kind, value in inner if tag != 2)
        )
        trace.bundles.append(head)
        for told in head.generic_event_descriptors:
            message = descriptor_pb2.DescriptorProto.FromString(told.event_descriptor)
            fields = {f.number: f for f in message.field}
            known = generic[rest.machine_id].setdefault(
                told.field_id, (message.name, told.group_name, fields)
            )
            assert known[0] == message.name, "an id means one event"
        waiting.append(((rest.machine_id, head), [value for tag, _, value in inner if tag == 2]))
    for (machine, head), events in waiting:
        for i, data in enumerate(events):
            trace.records.append(
                _record(data, own, generic[machine], machine, head, head.lost_events and i == 0)
            )
    return trace


def _record(
    data: bytes, own: dict[int, Any], generic: dict[int, Any], machine: int, head: Any, lost: bool
) -> FtraceRecord:
    numbers = {1: 0, 2: 0}
    found: list[tuple[int, bytes]] = []
    for tag, kind, value in _fields(data):
        if kind == 0:
            numbers[tag] = value
        else:
            found.append((tag, value))
    assert len(found) == 1, "an event is one message"
    number, message = found[0]
    group = None
    if number >= _FIRST_GENERIC:
        form = "generic"
        name, group, fields = generic[number]
        values = {
            fields[tag].name: value.decode() if fields[tag].type == _TYPE_STRING else _signed(value)
            for tag, _, value in _fields(message)
        }
    elif own[number].name == "generic":
        form = "named"
        name, values = _named(message)
    else:
        form = "own"
        name = own[number].name
        values = _own(message, own[number].message_type)
    tid = numbers[2] - (1 << 32) if numbers[2] >= 1 << 31 else numbers[2]
    return FtraceRecord(
        machine, head.cpu, _signed(numbers[1]), tid, name, group, form, values, lost
    )


def _own(message: bytes, descriptor: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for tag, kind, value in _fields(message):
        told = descriptor.fields_by_number[tag]
        if kind == 2:
            values[told.name] = value.decode()
        elif told.is_repeated:
            values.setdefault(told.name, []).append(_signed(value))
        else:
            values[told.name] = _signed(value)
    return values


def _named(message: bytes) -> tuple[str, dict[str, Any]]:
    name = ""
    values: dict[str, Any] = {}
    for tag, _, value in _fields(message):
        if tag == 1:
            name = value.decode()
            continue
        parts = {inner: (kind, part) for inner, kind, part in _fields(value)}
        key = parts.pop(1)[1].decode()
        ((kind, part),) = parts.values()
        values[key] = part.decode() if kind == 2 else _signed(part)
    return name, values


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= _INT64 else value


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value: varints as unsigned numbers, others as bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, kind, value
            continue
        length = 8 if kind == 1 else 4
        if kind == 2:
            length, at = _varint(data, at)
        assert at + length <= len(data), "a field ends behind its message"
        yield number, kind, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _field(number: int, kind: int, value: Any) -> bytes:
    """One field again, as it was."""
    tag = _packed(number << 3 | kind)
    if kind == 0:
        return tag + _packed(value)
    return tag + (_packed(len(value)) if kind == 2 else b"") + bytes(value)


def _packed(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
