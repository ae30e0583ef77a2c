# SPDX-License-Identifier: Apache-2.0
"""Files beside a trace: /proc, series, probes, other tools."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wbscope.library.finding import Finding

from .live import Recorder

__all__ = [
    "ProbedTask",
    "Sample",
    "Samples",
    "fio_rates",
    "fio_written_bytes",
    "is_carried",
    "ls_files_bytes",
    "probed_tasks",
    "sample_packets",
    "samples_of",
    "vmstat_delta",
    "vmstat_value",
    "walk",
    "zone_spans",
]


# Reads the files beside a trace, independently of the project's own reader.


def vmstat_value(run: Path, sample: str, name: str) -> int:
    """One counter of vmstat.before or vmstat.after."""
    match = re.search(rf"^{name} (\d+)$", (run / f"vmstat.{sample}").read_text(), re.MULTILINE)
    if match is None:
        raise KeyError(name)
    return int(match[1])


def vmstat_delta(run: Path, name: str) -> int:
    """How far a counter went during the run."""
    return vmstat_value(run, "after", name) - vmstat_value(run, "before", name)


def vmstat_names(run: Path) -> list[str]:
    """The counters of vmstat.after."""
    return [line.split()[0] for line in (run / "vmstat.after").read_text().splitlines()]


def ls_files_bytes(run: Path) -> dict[str, int]:
    """File name -> size, regular files only (`ls -lin`)."""
    sizes = {}
    for line in (run / "ls-files").read_text().splitlines():
        words = line.split()
        if len(words) >= 10 and words[1].startswith("-"):
            sizes[words[-1]] = int(words[5])
    return sizes


def _fio_writes(run: Path, field: str) -> dict[str, int]:
    text = (run / "fio.json").read_text()
    jobs = json.loads(text[text.index("{") :])["jobs"]
    return {job["jobname"]: job["write"][field] for job in jobs}


def fio_written_bytes(run: Path) -> dict[str, int]:
    """fio job -> bytes written."""
    return _fio_writes(run, "io_bytes")


def fio_rates(run: Path) -> dict[str, int]:
    """fio job -> bytes/s that it wrote over its run time."""
    return _fio_writes(run, "bw_bytes")


def zone_spans(run: Path) -> list[tuple[int, str, int, int]]:
    """(node, zone, first pfn, pfn after the last) of each populated zone."""
    text = (run / "zoneinfo").read_text()
    spans = []
    for block in re.split(r"(?=^Node \d+, zone)", text, flags=re.MULTILINE):
        head = re.match(r"Node (\d+), zone\s+(\S+)", block)
        start = re.search(r"^\s*start_pfn:\s+(\d+)", block, re.MULTILINE)
        spanned = re.search(r"^\s*spanned\s+(\d+)", block, re.MULTILINE)
        if head and start and spanned and int(spanned[1]):
            spans.append((int(head[1]), head[2], int(start[1]), int(start[1]) + int(spanned[1])))
    return spans


# What recorded runs gave of each rule of sql/findings: the examples in docs/findings.md.

_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# What a recorded run got of each rule of sql/findings, for docs/findings.md. Made by
# pytest tests/real/test_verdict_corpus.py -k samples --update-docs; then run tools/gen_docs.py.
"""
_LOUD = {"severe": 4, "warning": 3, "ok": 2, "note": 1}


@dataclass
class Samples:
    """Of each rule one finding: best of the rule's own cause, severe, that says much.

    An all-clear says little.
    """

    kept: dict[str, tuple[int, str, Finding]] = field(default_factory=dict)

    def add(self, run: str, findings: Iterable[Finding], caused: str = "") -> None:
        """Those of one run, which has this rule's cause."""
        for one in findings:
            merit = 1000 * (one.id == caused) + 100 * _LOUD.get(one.severity, 0)
            merit += -len(one.text) if one.severity == "ok" else len(one.told)
            merit += 10 * (one.advice is not None)
            if one.id not in self.kept or self.kept[one.id][0] < merit:
                self.kept[one.id] = (merit, run, one)

    def toml(self) -> str:
        """The file."""
        return _HEAD + "".join(_entry(run, one) for _, (_, run, one) in sorted(self.kept.items()))


def _entry(run: str, one: Finding) -> str:
    advice = one.advice.text if one.advice is not None else ""
    settings = one.advice.settings if one.advice is not None else ()
    values = {
        "run": run,
        "confidence": one.confidence,
        "severity": one.severity,
        "text": one.text,
        "advice": advice,
        "sets": [f"{knob} = {value}" for knob, value in settings],
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    return "\n".join(["", f"[{one.id}]", *lines, ""])


# Samples of /proc as Perfetto's data source linux.sys_stats writes them.


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


# Bytes and waits of tasks, worked out of the records of the probes one by one.
#
# The second argument of balance_dirty_pages() is current->nr_dirtied. A call that leaves it as it
# was has not charged it: the next call has it again.
# Source: mm/page-writeback.c balance_dirty_pages(), kernels 5.10 to 7.2.

_TABLES = {
    "ev_balance_dirty_pages_entry": "pages",
    "ev_balance_dirty_pages": "pause, period",
    "ev_balance_dirty_pages_return": "ts",
}
_MS_PER_S = 1000


@dataclass
class ProbedTask:
    """One thread; `unpaired_count` of entries and returns without the other."""

    comm: str = ""
    pages_count: int = 0
    held_ns: int = 0
    calls_count: int = 0
    free_runs_count: int = 0
    unpaired_count: int = 0
    entry: Mapping[str, Any] | None = None  # of a call that goes on
    fired: bool = False  # in it
    resets: bool = False
    carry: int = 0


def probed_tasks(recorder: Recorder, run: str) -> list[ProbedTask]:
    """Of a run, or of a run.db."""
    records: list[dict[str, Any]] = []
    for table, columns in _TABLES.items():
        rows = recorder.sql(run, f"SELECT seq, ts, tid, {columns} FROM {table}")
        records += [{**row, "table": table} for row in rows]
    names = {row["tid"]: row["comm"] for row in recorder.sql(run, "SELECT tid, comm FROM task")}
    tasks = walk(records)
    for tid, task in tasks.items():
        task.comm = names.get(tid, "")
    return list(tasks.values())


def walk(records: Sequence[Mapping[str, Any]]) -> dict[int, ProbedTask]:
    """By tid, of records in any order."""
    tasks: dict[int, ProbedTask] = {}
    for record in sorted(records, key=lambda record: record["seq"]):
        task = tasks.setdefault(record["tid"], ProbedTask())
        if record["table"].endswith("_entry"):
            task.unpaired_count += task.entry is not None
            task.entry, task.fired, task.resets = record, False, False
            task.calls_count += 1
            task.pages_count += record["pages"] - task.carry
        elif record["table"].endswith("_return"):
            _end(task, record)
        else:
            task.fired = True
            pause, period = record["pause"], record["period"]
            task.resets |= pause > 0 or period > 0 or pause < -_MS_PER_S
    return tasks


def _end(task: ProbedTask, record: Mapping[str, Any]) -> None:
    if task.entry is None:
        task.unpaired_count += 1
        return
    task.held_ns += record["ts"] - task.entry["ts"]
    task.free_runs_count += not task.fired
    task.carry = 0 if task.resets or not task.fired else task.entry["pages"]
    task.entry = None
