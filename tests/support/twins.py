# SPDX-License-Identifier: Apache-2.0
"""Example runs twice: as trace-cmd recorded them, and as Perfetto's recorder would have."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cli import Wbscope
from .pftrace import TraceBuilder, bytes_field, events_of
from .runs import RecordedRun
from .sidecars import sample_packets, samples_of

__all__ = ["Twin", "add_samples", "builder_of", "make_twin", "twin_in"]

_NOT_COPIED = ("trace.dat", "README.md")


@dataclass(frozen=True)
class Twin:
    """The same run in two formats, and both as databases with every event."""

    recorded: Path
    folder: Path
    recorded_db: Path
    perfetto_db: Path

    @property
    def trace(self) -> Path:
        return self.folder / "trace.pftrace"


def builder_of(database: Path, **options: Any) -> TraceBuilder:
    """A recorder on the machine of that run, that asked for every event it has a format of."""
    with sqlite3.connect(database) as db:
        meta = dict(db.execute("SELECT key, value FROM meta"))
        formats = db.execute("SELECT replace(event, ':', '/') FROM event_format").fetchall()
        tasks = db.execute("SELECT tid, comm FROM task WHERE tid > 0 AND comm IS NOT NULL")
        threads = {tid: (9_999_999, comm) for tid, comm in tasks}
        options.setdefault("samples", samples_of(db, meta["first_ts"], meta["last_ts"]))
    return TraceBuilder(
        system_info={
            "sysname": "Linux",
            "release": meta["kernel_release"],
            "version": "#1 SMP",
            "machine": "x86_64",
            "page_size": meta["page_bytes"],
            "num_cpus": meta["cpus_count"],
            "hz": 100,  # USER_HZ, which is not the kernel's HZ
        },
        configured=tuple(name for (name,) in formats),
        threads=threads,
        **options,
    )


def make_twin(run: RecordedRun, recorded_db: Path, wbscope: Wbscope, folder: Path) -> Twin:
    """A run folder like that one, with a Perfetto trace in place of trace.dat."""
    for path in run.folder.iterdir():
        if path.name not in _NOT_COPIED:
            shutil.copy(path, folder)
    twin = twin_in(folder, run, recorded_db)
    builder_of(twin.recorded_db).write(twin.trace, events_of(twin.recorded_db))
    done = wbscope.run("ingest", twin.folder, "-o", twin.perfetto_db, "--all")
    assert done.returncode == 0, done.stderr
    return twin


def twin_in(folder: Path, run: RecordedRun, recorded_db: Path) -> Twin:
    """What make_twin has made there."""
    return Twin(run.folder, folder, recorded_db, folder / "all.db")


def add_samples(trace: Path, database: Path) -> None:
    """What Perfetto's recorder would have sampled beside the run: packets behind the others."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    with sqlite3.connect(database) as db:
        meta = dict(db.execute("SELECT key, value FROM meta"))
        samples = samples_of(db, meta["first_ts"], meta["last_ts"])
    with trace.open("ab") as out:
        for packet in sample_packets(protos, samples):
            out.write(bytes_field(1, packet))
