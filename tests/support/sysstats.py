# SPDX-License-Identifier: Apache-2.0
"""Samples of /proc as Perfetto's data source linux.sys_stats writes them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Sample", "is_carried", "sample_packets", "samples_of"]


@dataclass(frozen=True)
class Sample:
    """What /proc/vmstat and /proc/meminfo (KiB) said at a time."""

    ts: int
    vmstat: Mapping[str, int]
    meminfo: Mapping[str, int]


def samples_of(db: sqlite3.Connection, first_ts: int, last_ts: int) -> list[Sample]:
    """The files beside a run's trace, as samples at its first and at its last event."""
    samples = []
    for name, ts in (("before", first_ts), ("after", last_ts)):
        values = [
            dict(db.execute(f"SELECT name, value FROM {table} WHERE sample = ?", (name,)))
            for table in ("sidecar_vmstat", "sidecar_meminfo")
        ]
        samples.append(Sample(ts, *values))
    return samples


def sample_packets(protos: Any, samples: list[Sample]) -> Iterator[bytes]:
    """A packet each. The recorder skips counters that its enums have not: so does this."""
    for sample in samples:
        packet = protos.TracePacket(trusted_packet_sequence_id=2, timestamp=sample.ts)
        stats = packet.sys_stats
        for name, value in sample.vmstat.items():
            key = f"VMSTAT_{name.upper()}"
            if key in protos.VmstatCounters.keys():  # noqa: SIM118 - an enum is no mapping
                stats.vmstat.add(key=protos.VmstatCounters.Value(key), value=value)
        for name, value in sample.meminfo.items():
            key = f"MEMINFO_{_snake(name)}"
            if key in protos.MeminfoCounters.keys():  # noqa: SIM118
                stats.meminfo.add(key=protos.MeminfoCounters.Value(key), value=value)
        yield packet.SerializeToString()


def is_carried(source: str, name: str) -> bool:
    """Whether the recorder has a number for this counter."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    if source == "vmstat":
        return f"VMSTAT_{name.upper()}" in protos.VmstatCounters.keys()  # noqa: SIM118
    return f"MEMINFO_{_snake(name)}" in protos.MeminfoCounters.keys()  # noqa: SIM118


def _snake(name: str) -> str:
    """MemTotal is MEM_TOTAL in the enum."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    return "_".join(words).upper()
