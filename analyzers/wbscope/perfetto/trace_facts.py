# SPDX-License-Identifier: Apache-2.0
"""What a Perfetto trace holds and trace processor keeps to itself, read from its packets.

The page size of the machine, the group of each generic event, which events could not be enabled,
where a CPU's buffer overran, and where the file was cut. Protobuf gets a description with these
fields only, so it steps over the rest (protos/perfetto/trace: trace_packet, ftrace_event_bundle,
ftrace_stats, system_info).
"""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["Gap", "TraceFacts", "read_facts"]

_PACKET_TAG = 0x0A
_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGIC = b"PK\x03\x04"
_MAX_PACKET_BYTES = 256 << 20
_READ_BYTES = 1 << 20
_MAX_GROUPS = 8192
_MAX_REFUSED = 8192
_MAX_GAPS = 1 << 20

# message: (field, number, type, repeated); types of FieldDescriptorProto or a message here.
_INT64, _STRING, _BYTES = 3, 9, 12
_SCHEMA: dict[str, list[tuple[str, int, int | str, bool]]] = {
    "Packet": [
        ("ftrace_events", 1, "Bundle", False),
        ("ftrace_stats", 34, "Stats", False),
        ("system_info", 45, "SystemInfo", False),
        ("compressed_packets", 50, _BYTES, False),
        ("machine_id", 98, _INT64, False),
        ("zstd_compressed_packets", 133, _BYTES, False),
    ],
    "SystemInfo": [("page_size", 6, _INT64, False), ("num_cpus", 8, _INT64, False)],
    "Stats": [
        ("unknown_ftrace_events", 6, _BYTES, True),
        ("failed_ftrace_events", 7, _BYTES, True),
    ],
    "Bundle": [
        ("cpu", 1, _INT64, False),
        ("lost_events", 3, _INT64, False),
        ("generic_event_descriptors", 11, "Descriptor", True),
    ],
    "Descriptor": [("event_descriptor", 2, "Message", False), ("group_name", 3, _STRING, False)],
    "Message": [("name", 1, _STRING, False)],
    # The same bundle again, for the few that follow a gap.
    "LossPacket": [("ftrace_events", 1, "LossBundle", False)],
    "LossBundle": [
        ("event", 2, "Event", True),
        ("compact_sched", 4, "Compact", False),
        ("ftrace_timestamp", 6, _INT64, False),
        ("boot_timestamp", 7, _INT64, False),
    ],
    "Event": [("timestamp", 1, _INT64, False)],
    "Compact": [("switch_timestamp", 1, _INT64, True), ("waking_timestamp", 7, _INT64, True)],
}


@dataclass(frozen=True)
class Gap:
    """The kernel overwrote records of a CPU before this one was read."""

    cpu: int
    ts: int | None


@dataclass
class TraceFacts:
    """None and empty: the trace does not tell."""

    machine_id: int | None = None  # of packets; None: all of them are of one machine
    page_bytes: int | None = None
    cpus_count: int | None = None
    groups: dict[str, str] = field(default_factory=dict)  # name of a generic event: its system
    gaps: list[Gap] = field(default_factory=list)
    # What was asked for and not recorded, as "system/name": the kernel has no such event; it has
    # it, and the recorder could not enable it.
    unknown: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    has_zstd_events: bool = False  # which trace processor reads from v58 on, and skips before
    damage: str | None = None


class _Damage(Exception):
    """Where the packets end before the file does."""


def read_facts(trace: Path, machine_id: int | None = None) -> TraceFacts:
    """Go through all packets of a trace file, compressed or not; those of one machine count."""
    facts = TraceFacts(machine_id=machine_id)
    packet, loss = _messages()
    try:
        for stream in _streams(trace):
            for data in _packets(stream):
                _take(data, packet, loss, facts)
    except _Damage as damage:
        facts.damage = str(damage)
    return facts


def _take(
    data: bytes, packet: Any, loss: Any, facts: TraceFacts, *, is_inner: bool = False
) -> None:
    from google.protobuf.message import DecodeError

    try:
        told = packet.FromString(data)
        if facts.machine_id in (None, told.machine_id):
            _take_told(told, data, loss, facts)
    except DecodeError as error:
        raise _Damage(f"a packet of {len(data)} bytes is no protobuf message") from error
    unpacked: _Unpacked | None = None
    if told.compressed_packets:
        unpacked = _Inflated(told.compressed_packets)
    elif told.zstd_compressed_packets:
        unpacked = _Unzstd(told.zstd_compressed_packets)
    if unpacked is None:
        return
    if is_inner:  # which nobody writes, and trace processor does not read
        raise _Damage("a compressed packet is within another one")
    for inner in _packets(unpacked):
        _take(inner, packet, loss, facts, is_inner=True)
        facts.has_zstd_events |= isinstance(unpacked, _Unzstd) and _has_events(inner, packet)


def _has_events(data: bytes, packet: Any) -> bool:
    return bool(packet.FromString(data).HasField("ftrace_events"))


def _take_told(told: Any, data: bytes, loss: Any, facts: TraceFacts) -> None:
    if told.ftrace_events.lost_events and len(facts.gaps) < _MAX_GAPS:
        bundle = loss.FromString(data).ftrace_events
        facts.gaps.append(Gap(told.ftrace_events.cpu, _first_ts(bundle)))
    facts.page_bytes = told.system_info.page_size or facts.page_bytes
    facts.cpus_count = told.system_info.num_cpus or facts.cpus_count
    for descriptor in told.ftrace_events.generic_event_descriptors:
        if descriptor.group_name and len(facts.groups) < _MAX_GROUPS:
            facts.groups.setdefault(descriptor.event_descriptor.name, descriptor.group_name)
    for names, refused in (
        (facts.unknown, told.ftrace_stats.unknown_ftrace_events),
        (facts.failed, told.ftrace_stats.failed_ftrace_events),
    ):
        names |= {name.decode(errors="replace") for name in refused[: _MAX_REFUSED - len(names)]}


def _first_ts(bundle: Any) -> int | None:
    """Of the records behind the gap, on the trace's clock."""
    times = [event.timestamp for event in bundle.event[:1]]
    times += bundle.compact_sched.switch_timestamp[:1]
    times += bundle.compact_sched.waking_timestamp[:1]
    if not times:
        return None
    return int(min(times) + bundle.boot_timestamp - bundle.ftrace_timestamp)


class _Unpacked(Protocol):
    """Packed packets as a file, however large it becomes."""

    def read(self, count: int) -> bytes:
        """As of a file."""


class _Inflated:
    """compressed_packets."""

    def __init__(self, data: bytes) -> None:
        self._inflate = zlib.decompressobj()
        self._rest = data

    def read(self, count: int) -> bytes:
        parts = []
        while count > 0 and not self._inflate.eof:
            try:
                part = self._inflate.decompress(self._rest, min(count, _READ_BYTES))
            except zlib.error as error:
                raise _Damage(f"a compressed packet cannot be read: {error}") from error
            self._rest = self._inflate.unconsumed_tail
            if not part and not self._rest:
                break
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class _Unzstd:
    """zstd_compressed_packets."""

    def __init__(self, data: bytes) -> None:
        self._zstd = zstd.ZstdDecompressor()
        self._rest = data

    def read(self, count: int) -> bytes:
        parts = []
        while count > 0 and not self._zstd.eof:
            try:
                part = self._zstd.decompress(self._rest, min(count, _READ_BYTES))
            except zstd.ZstdError as error:
                raise _Damage(f"a compressed packet cannot be read: {error}") from error
            self._rest = b""  # it keeps what it did not need yet
            if not part and self._zstd.needs_input and not self._zstd.eof:
                raise _Damage("a compressed packet is cut")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def _streams(trace: Path) -> Iterator[BinaryIO]:
    with trace.open("rb") as file:
        start = file.read(len(_ZIP_MAGIC))
        file.seek(0)
        if start == _ZIP_MAGIC:
            try:
                with zipfile.ZipFile(file) as archive:
                    for name in archive.namelist():
                        with archive.open(name) as member:
                            yield from _stream(member)
            except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
                raise _Damage(f"the zip archive cannot be read: {error}") from error
        else:
            yield from _stream(file)


def _stream(file: Any) -> Iterator[BinaryIO]:
    """The file if it holds packets: it may be any other trace that trace processor takes."""
    buffered = io.BufferedReader(file, _READ_BYTES)
    start = buffered.peek(2)[:2]
    if start == _GZIP_MAGIC:
        inner = io.BufferedReader(gzip.GzipFile(fileobj=buffered), _READ_BYTES)
        yield inner
    elif start[:1] == bytes([_PACKET_TAG]):
        yield buffered
    buffered.detach()


def _packets(stream: Any) -> Iterator[bytes]:
    done = 0
    try:
        while tag := stream.read(1):
            length = shift = 0
            if tag[0] != _PACKET_TAG:
                raise _Damage(f"found byte {tag[0]:#x} at {done:#x}, wanted a packet")
            head = 1
            while byte := stream.read(1):
                length |= (byte[0] & 0x7F) << shift
                shift += 7
                head += 1
                if byte[0] < 0x80 or shift > 35:
                    break
            if not byte or byte[0] >= 0x80 or length > _MAX_PACKET_BYTES:
                raise _Damage(f"the packet at {done:#x} has no length that can be")
            data = stream.read(length)
            if len(data) < length:
                raise _Damage(f"the packet at {done:#x} has {len(data)} of {length} bytes")
            done += head + length
            yield data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _Damage(f"the compressed trace is cut or broken behind {done:#x}: {error}") from error


def _messages() -> tuple[Any, Any]:
    """The message classes of _SCHEMA for a packet and for a packet behind a gap."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="wbscope/facts.proto", package="wbscope.facts", syntax="proto2"
    )
    for name, fields in _SCHEMA.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind, repeated in fields:
            added = message.field.add(name=field_name, number=number, label=3 if repeated else 1)
            if isinstance(kind, str):
                added.type, added.type_name = 11, f".wbscope.facts.{kind}"
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    packet, loss = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"wbscope.facts.{name}"))
        for name in ("Packet", "LossPacket")
    )
    return packet, loss
