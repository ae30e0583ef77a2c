# SPDX-License-Identifier: Apache-2.0
"""Bytes and waits of tasks, worked out of the records of the probes one by one.

The second argument of balance_dirty_pages() is current->nr_dirtied. A call that leaves it as it
was has not charged it: the next call has it again.
Source: mm/page-writeback.c balance_dirty_pages(), kernels 5.10 to 7.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .live import Recorder

__all__ = ["ProbedTask", "probed_tasks", "walk"]

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
