# SPDX-License-Identifier: Apache-2.0
"""Which times of a Perfetto trace a reader can place, by the rules of trace processor v58.

The engine that tests run is older. Since v58 (its commit c075ca324b) a clock belongs to a machine;
the rules are in src/trace_processor/importers/common/clock_tracker.cc and
src/trace_processor/importers/proto/proto_trace_reader.cc. Nothing here uses the project's code.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["ClockGraph", "read_clocks"]

_BOOTTIME = 6
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
