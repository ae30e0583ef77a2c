# SPDX-License-Identifier: Apache-2.0
"""After a raise dirty_limit follows thresh in steps; up to 6.14.1 events are made of it alone.

By hand, 4 KiB pages. The machine: bg_thresh 500, thresh 1000, so free run ends at 750, and
dirty_limit is still 800. The limit in force is max(1000, 800) = 1000 and the setpoint
(1000 + 750) / 2 = 875; 6.12 records limit 800 and (800 + 750) / 2 = 775, which is 100 of 875 below:
more than a sixteenth. cp, tid 11, in cgroup 27, each time after a state of (900) dirty pages:
  at   0 ms dirty 900, setpoint 775: the machine's, as recorded
  at 100 ms dirty 900, setpoint 875: the machine's, when dirty_limit reached thresh in the call
  at 200 ms dirty 700, setpoint 775: 200 pages fewer, the cgroup's own
  at 300 ms dirty 900, setpoint 700: neither of both (75 of 775 are more than a sixteenth)
7.2 records the limit in force: there 775 is no setpoint of the machine.
Each is slept after for 60 ms: the cgroup's limits cost 120 ms of the one run and 180 ms of the
other, which is worth no more than a note.
"""

from __future__ import annotations

from pathlib import Path

from support.formats import Value
from support.golden import Check, Expected
from support.kernel_events import formats, new_balance_dirty_pages
from support.tracedat import Trace

_MS = 1_000_000
_PAUSES = ((0, 900, 775), (100, 900, 875), (200, 700, 775), (300, 900, 700))


def _run(folder: Path, release: str) -> None:
    folder.mkdir(exist_ok=True)
    is_new = release.startswith("7")
    events = (
        [new_balance_dirty_pages(), *formats("global_dirty_state")]
        if is_new
        else formats("balance_dirty_pages", "global_dirty_state")
    )
    trace = Trace(events, cmdlines={11: "cp"}, uname=f"Linux guest {release} x86_64")
    name = "wb" if is_new else "bdi"
    state: dict[str, Value] = {"nr_dirty": 900, "background_thresh": 500}
    state |= {"dirty_thresh": 1000, "dirty_limit": 800}
    for ms, dirty, setpoint in _PAUSES:
        ts = (10_000 + ms) * _MS
        trace.event(0, ts, 11, "global_dirty_state", state)
        values: dict[str, Value] = {"bdi": "8:0", "cgroup_ino": 27, "dirty": dirty, "limit": 800}
        values |= {"setpoint": setpoint, f"{name}_dirty": 100, f"{name}_setpoint": 100}
        values |= {"pause": 60, "period": 60, "dirtied": 8, "task_ratelimit": 400}
        values |= {"dirty_ratelimit": 1000}
        trace.event(0, ts, 11, "balance_dirty_pages", values)
    trace.event(0, 10_400 * _MS, 11, "global_dirty_state", state)
    trace.write(folder / "trace.dat")


def make(folder: Path) -> None:
    _run(folder, "6.12.1-amd64")
    _run(folder / "new", "7.2.13-amd64")


def _domains(folder: str, *domains: str) -> Check:
    rows: list[Expected] = [{"domain": domain} for domain in domains]
    select = "SELECT domain FROM wb_throttle ORDER BY seq"
    return Check(sql=select, folder=folder, ordered=True, rows=rows)


def _told(folder: str, cost_ms: int) -> Check:
    return Check(
        query="findings",
        folder=folder,
        rows=[{"severity": "note", "cost_task_ns": cost_ms * _MS}],
        keep=lambda row: row["id"] == "small_memcg_limit",
    )


CHECKS = [
    _domains("", "global", "global", "memcg", "memcg"),
    _domains("new", "memcg", "global", "memcg", "memcg"),
    _told("", 120),
    _told("new", 180),
]
