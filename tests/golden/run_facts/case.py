# SPDX-License-Identifier: Apache-2.0
"""What run_summary says of a run, and the HZ that it takes from the times.

By hand: 4 events of 2 tasks (the idle task is one) on a machine with 2 CPUs, from 10.000 s to
10.300 s. The times 12, 20 and 28 ms are whole jiffies of HZ 250 and not of 100. meminfo has 524288
kB = 536870912 bytes. 23 events are lost in one gap.
In the run named short there are two times only, too few to tell HZ. In the run named recorded
meta.json has HZ 300, which goes before the times.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000


def _write(folder: Path, pauses: tuple[int, ...]) -> None:
    folder.mkdir(exist_ok=True)
    trace = Trace(formats("balance_dirty_pages", "sched_waking"), cpus=2, cmdlines={11: "dd"})
    for index, pause in enumerate(pauses):
        values = {"bdi": "8:0", "cgroup_ino": 1, "pause": pause, "period": pause, "dirtied": 8}
        trace.event(0, (10_000 + 100 * index) * _MS, 11, "balance_dirty_pages", values)
    trace.lost(0, 23)
    trace.event(0, 10_300 * _MS, 0, "sched_waking", {"comm": "dd", "pid": 11})
    trace.write(folder / "trace.dat")
    (folder / "meminfo").write_text("MemTotal:         524288 kB\nMemFree:           1000 kB\n")


def make(folder: Path) -> None:
    _write(folder, (12, 20, 28))
    _write(folder / "short", (12, 20))
    _write(folder / "recorded", (12, 20, 28))
    meta = '{"schema": "wbscope.record/1", "ended": "complete", "machine": {"hz": 300}}'
    (folder / "recorded/meta.json").write_text(meta)


def _facts(hz: str, events: int) -> list[Expected]:
    facts: dict[str, int | str] = {
        "kernel": "6.1.0-test",
        "source": "trace.dat",
        "format": "trace.dat v7",
        "clock": "mono",
        "cpus": 2,
        "page_bytes": 4096,
        "hz": hz,
        "memory_bytes": 536_870_912,
        "duration_ns": 300 * _MS,
        "events_count": events,
        "tasks_count": 2,
        "lost_gaps_count": 1,
    }
    return [{"key": key, "value": value} for key, value in facts.items()]


CHECKS = [
    Check(
        query="run_summary",
        ordered=True,
        rows=_facts("250", 4),
        warning_words=("23 events are lost",),
    ),
    Check(query="run_summary", ordered=True, rows=_facts("unknown", 3), folder="short"),
    Check(query="run_summary", ordered=True, rows=_facts("300", 4), folder="recorded"),
]
