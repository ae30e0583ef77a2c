# SPDX-License-Identifier: Apache-2.0
"""Work items: queued, taken and done in chunks; background work; what the trace cuts off.

By hand, 4 KiB pages. Flusher tid 50, bdi 8:0; dd, tid 11, queues.
  exec of a sync work at 0 ms that was queued before the trace; one chunk 1 -> 11 ms, 100 -> 60: 40
  queued at 5 ms and taken at 20 ms (15 ms in the queue), the same sizes as the one before: two
    chunks, 25 -> 30 ms, 100 -> 70, and 30 -> 40 ms, 70 -> 70: 30 pages = 122880 bytes in 20 ms
  queued at 45 ms and not taken
  background: 50 -> 60 ms, 1000 -> 900, and on: 60 -> 70 ms, 900 -> 850: 150 pages, one item; then
    the run ends and the next run starts anew from 1000: 80 -> 90 ms, 20 pages: another item
  periodic after it without an end of the run: another reason, another item: 91 -> 92 ms, 5 pages
  at 95 ms a chunk starts and does not end: no finished_ts, 0 pages
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_START = 10_000 * _MS
_BACKGROUND, _SYNC, _PERIODIC = 0, 2, 3
_EVENTS = (
    (0, 50, "exec", _SYNC, 100),
    (1, 50, "start", _SYNC, 100),
    (5, 11, "queue", _SYNC, 100),
    (11, 50, "written", _SYNC, 60),
    (20, 50, "exec", _SYNC, 100),
    (25, 50, "start", _SYNC, 100),
    (30, 50, "written", _SYNC, 70),
    (30, 50, "start", _SYNC, 70),
    (40, 50, "written", _SYNC, 70),
    (45, 11, "queue", _SYNC, 100),
    (50, 50, "start", _BACKGROUND, 1000),
    (60, 50, "written", _BACKGROUND, 900),
    (60, 50, "start", _BACKGROUND, 900),
    (70, 50, "written", _BACKGROUND, 850),
    (71, 50, "pages_written", 0, 150),
    (80, 50, "start", _BACKGROUND, 1000),
    (90, 50, "written", _BACKGROUND, 980),
    (91, 50, "start", _PERIODIC, 7),
    (92, 50, "written", _PERIODIC, 2),
    (95, 50, "start", _BACKGROUND, 1000),
)


def make(folder: Path) -> None:
    steps = ("queue", "exec", "start", "written", "pages_written")
    names = [f"writeback_{step}" for step in steps]
    trace = Trace(formats(*names), cmdlines={11: "dd", 50: "kworker/u4:1"})
    for ms, tid, step, reason, pages in _EVENTS:
        values: dict[str, int | str] = {"name": "8:0", "nr_pages": pages, "reason": reason}
        values |= {"cgroup_ino": 1, "for_background": int(reason == _BACKGROUND)}
        if step == "pages_written":
            values = {"pages": pages}
        trace.event(0, _START + ms * _MS, tid, f"writeback_{step}", values)
    trace.write(folder / "trace.dat")


def _row(
    reason: str,
    queued: int | None,
    started: int | None,
    finished: int | None,
    chunks: int,
    pages: int,
) -> Expected:
    def at(ms: int | None) -> int | None:
        return None if ms is None else _START + ms * _MS

    whole = None if started is None or finished is None else (finished - started) * _MS
    return {
        "bdi": "8:0",
        "reason": reason,
        "queued_ts": at(queued),
        "started_ts": at(started),
        "finished_ts": at(finished),
        "queue_wait_ns": None if queued is None or started is None else (started - queued) * _MS,
        "dur": whole,
        "chunks_count": chunks,
        "pages_count": pages,
        "bytes": pages * 4096,
    }


CHECKS = [
    Check(
        query="writeback_work",
        ordered=True,
        rows=[
            _row("sync", None, 0, 11, 1, 40),
            _row("sync", 5, 20, 40, 2, 30),
            _row("sync", 45, None, None, 0, 0),
            _row("background", None, 50, 70, 2, 150),
            _row("background", None, 80, 90, 1, 20),
            _row("periodic", None, 91, 92, 1, 5),
            _row("background", None, 95, None, 1, 0),
        ],
    ),
]
