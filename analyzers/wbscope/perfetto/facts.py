# SPDX-License-Identifier: Apache-2.0
"""Facts of a Perfetto trace and of the machine that traced, and the sidecars beside it.

The page size of the machine, the group of each generic event, which events could not be enabled,
where a CPU's buffer overran, and where the file was cut. Protobuf gets a description with these
fields only, so it steps over the rest (protos/perfetto/trace: trace_packet, ftrace_event_bundle,
ftrace_stats, system_info).

Threads and CPUs of two machines have the same numbers, so only the first machine is read.

Counters of /proc that the trace itself holds (data source linux.sys_stats) are as files beside it;
a run folder's own files go before them.
"""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from wbscope.perfetto.trace_processor import Row, TraceProcessor
from wbscope.source.source import Source

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


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


_IDS = "SELECT DISTINCT COALESCE(t.machine_id, 0) AS id FROM thread AS t ORDER BY 1"
# The host has no number in some versions and 0 in others.
_EVENTS = """
SELECT COALESCE(t.machine_id, 0) AS id, COUNT(*) AS records
FROM ftrace_event AS f JOIN thread AS t USING (utid)
GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True)
class Machine:
    """The first with ftrace events."""

    id: int = 0
    raw_id: int | None = None  # machine_id of its packets; None: there is no other machine
    told: Row = field(default_factory=dict)  # its row of the table machine, if there are others
    others_count: int = 0
    others_events_count: int = 0


def first_machine(engine: TraceProcessor) -> Machine:
    """The one whose events are read, and what is left out for that.

    Raises: TraceProcessorError.
    """
    known = engine.query(_IDS)
    if len(known) < 2:  # and no need to count
        return Machine(int(known[0]["id"] or 0) if known else 0)
    counts = {int(row["id"] or 0): int(row["records"] or 0) for row in engine.query(_EVENTS)}
    if not counts:
        return Machine()
    first = min(counts)
    # Which columns there are depends on the version.
    told = engine.query(f"SELECT * FROM machine WHERE id = {first}")
    raw_id = int(told[0]["raw_id"] or 0) if told else None
    return Machine(
        first,
        raw_id,
        told[0] if told and len(counts) > 1 else {},
        len(counts) - 1,
        sum(counts.values()) - counts[first],
    )


# The first sample of each counter is of before the run, the last of after it.
_SAMPLES = """
SELECT t.name, c.value, c.ts, c.ts = s.first_ts AS is_before, c.ts = s.last_ts AS is_after
FROM counter AS c
JOIN counter_track AS t ON t.id = c.track_id
JOIN (
  SELECT track_id, MIN(ts) AS first_ts, MAX(ts) AS last_ts FROM counter GROUP BY track_id
) AS s ON s.track_id = t.id
WHERE t.type = '{type}' AND COALESCE(t.machine_id, 0) = {machine}
ORDER BY c.ts, t.name
"""
# Type of the track: line of the file, and how much of the value is 1 there.
_LINES = {"vmstat": ("{name} {value}\n", 1), "meminfo": ("{name}: {value} kB\n", 1 << 10)}


def with_sampled_files(
    engine: TraceProcessor, source: Source, private: Path, machine: Machine
) -> Path | None:
    """The folder to read the files of the run from: its own, or a private one with what the
    trace adds."""
    texts = {
        name: text for kind in _LINES for name, text in _texts(engine, kind, machine.id).items()
    }
    own = source.inputs()[1:]
    # One half of a pair would be of another time than the other.
    having = {path.name.partition(".")[0] for path in own}
    texts = {name: text for name, text in texts.items() if name.partition(".")[0] not in having}
    if not texts:
        return source.folder
    made = private / "files"
    made.mkdir()
    for path in own:
        shutil.copyfile(path, made / path.name)
    for name, text in texts.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


def _texts(engine: TraceProcessor, kind: str, machine: int) -> dict[str, str]:
    line, unit = _LINES[kind]
    texts: dict[str, list[str]] = {}
    told: dict[str, int] = {}
    for row in engine.query(_SAMPLES.format(type=kind, machine=machine)):
        when = "before" if row["is_before"] else "after" if row["is_after"] else "samples"
        lines = texts.setdefault(f"{kind}.{when}", [])
        ts = int(row["ts"] or 0)
        if told.get(when) != ts:
            told[when] = ts
            lines.append(f"# ts={ts}\n")
        value = int(row["value"] or 0) // unit
        lines.append(line.format(name=str(row["name"]), value=value))
    return {name: "".join(lines) for name, lines in texts.items()}
