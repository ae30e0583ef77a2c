# SPDX-License-Identifier: Apache-2.0
"""The two events of February 2011 around each wait in balance_dirty_pages().

By hand, windows of 2 s from 10 s:
  dd, tid 11: waits from 10.0 s to 10.2 s and from 11.9 s to 12.4 s: 200 + 100 ms of one window,
    400 of the next, of which the trace has 500 ms and 1 ns; the longest wait of both is 500 ms
  cp, tid 12: waits from 12.0 s; that wait's end is lost, and the next one is from 12.3 s to the
    trace's end at 12.5 s: 200 ms
  dd's two waits that ended are 700 ms; its third, of which the trace has no time, and those of cp
    did not end: pages of 4 KiB, 201 and 100 asked for
  What they dirtied is not in these events, nor why the flusher was slow: stalls of no known cause.
  A wait without its end has no length; dd's third begins at the trace's end.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000


def make(folder: Path) -> None:
    names = [f"writeback_balance_dirty_pages_{step}" for step in ("waiting", "woken")]
    trace = Trace(formats(*names), cmdlines={11: "dd", 12: "cp"}, uname="Linux test 2.6.38")

    def step(ms: int, tid: int, name: str, **values: int) -> None:
        event = {"name": "8:0", **values}
        trace.event(0, (10_000 + ms) * _MS, tid, f"writeback_balance_dirty_pages_{name}", event)

    step(0, 11, "waiting", pages=100)
    step(200, 11, "woken")
    step(1900, 11, "waiting", pages=100)
    step(2000, 12, "waiting", pages=50)
    step(2300, 12, "waiting", pages=50)
    step(2400, 11, "woken")
    step(2500, 11, "waiting", pages=1)
    trace.write(folder / "trace.dat")


def _row(start: int, tid: int, slept: int, longest: int) -> Expected:
    covered = 2000 if start == 10 else 500.000001
    return {
        "window_start_ns": start * 1000 * _MS,
        "tid": tid,
        "throttled_ratio": slept / covered,
        "slept_max_ns": longest * _MS,
        "dirtied_bytes": None,
        "dirtied_share_ratio": None,
    }


def _waits(tid: int, waits: int, slept: int | None, longest: int | None, pages: int) -> Expected:
    return {
        "tid": tid,
        "bdi": "8:0",
        "waits_count": waits,
        "unfinished_count": waits - 2 if slept else waits,
        "wait_ns": slept and slept * _MS,
        "wait_max_ns": longest and longest * _MS,
        "asked_bytes": pages * 4096,
    }


def _stall(ms: int, tid: int, dur: int | None, cut: str | None) -> Expected:
    return {
        "ts": (10_000 + ms) * _MS,
        "tid": tid,
        "dur": None if dur is None else dur * _MS,
        "kind": "throttle",
        "what": "balance_dirty_pages_waiting",
        "cause": "unknown",
        "bdi": "8:0",
        "cut": cut,
    }


CHECKS = [
    Check(
        query="stalls",
        ordered=True,
        rows=[
            _stall(0, 11, 200, None),
            _stall(1900, 11, 500, None),
            _stall(2000, 12, None, "lost"),
            _stall(2300, 12, 200, "end"),
        ],
    ),
    Check(
        query="stalls_evidence",
        options=("--tid", "12"),
        keep=lambda row: row["evidence"].endswith("waiting"),
        rows=[{"detail": "bdi=8:0 pages=50"}, {"detail": "bdi=8:0 pages=50"}],
    ),
    Check(
        query="completion_waits",
        ordered=True,
        rows=[_waits(11, 3, 700, 500, 201), _waits(12, 2, None, None, 100)],
    ),
    Check(
        query="completion_waits",
        options=("--task", "c*"),
        rows=[_waits(12, 2, None, None, 100)],
    ),
    Check(
        # From 11 s: the second and third wait of dd, 1.9 s and 2.5 s after the first event.
        query="completion_waits",
        options=("--task", "dd", "--from", "1s"),
        rows=[{"tid": 11, "waits_count": 2, "wait_ns": 500 * _MS, "asked_bytes": 101 * 4096}],
    ),
    Check(
        query="throttle_windows",
        ordered=True,
        rows=[_row(10, 11, 300, 500), _row(12, 11, 400, 500), _row(12, 12, 200, 200)],
    ),
]
