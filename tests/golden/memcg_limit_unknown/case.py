# SPDX-License-Identifier: Apache-2.0
"""A memory cgroup that throttles: 6.12 records the machine's limit, so its position is unknown.

By hand, 4 KiB pages. The machine: thresh 1000, bg_thresh 500, limit 1000: setpoint 875.
  tid 11, cgroup 27, at 0 ms: dirty 900 and setpoint 875, those of the machine, position
    (900 - 750) / (1000 - 750) = 0.6 (freerun = 2 * 875 - 1000 = 750)
  tid 11 at 100 ms: dirty 90, setpoint 80: the cgroup's own. limit 1000 is not of this domain.
  tid 12, cgroup 28, no global_dirty_state before: which limits is not known.
  tid 13 in the root cgroup: dirty 950: position 0.8
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_PAGE = 4096


def make(folder: Path) -> None:
    trace = Trace(
        formats("balance_dirty_pages", "global_dirty_state"),
        cmdlines={11: "dd", 12: "cp", 13: "tar"},
        uname="Linux guest 6.12.1-amd64 x86_64",
    )

    def state(ms: int, tid: int, dirty: int) -> None:
        values = {"nr_dirty": dirty, "background_thresh": 500, "dirty_thresh": 1000}
        trace.event(
            0, (10_000 + ms) * _MS, tid, "global_dirty_state", {**values, "dirty_limit": 1000}
        )

    def pause(ms: int, tid: int, cgroup: int, dirty: int, setpoint: int) -> None:
        values = {"bdi": "8:0", "cgroup_ino": cgroup, "dirty": dirty, "setpoint": setpoint}
        values |= {"limit": 1000, "bdi_dirty": dirty, "bdi_setpoint": setpoint, "pause": 10}
        event = {**values, "period": 10, "dirtied": 8, "task_ratelimit": 400}
        trace.event(0, (10_000 + ms) * _MS, tid, "balance_dirty_pages", event)

    state(0, 11, 900)
    pause(0, 11, 27, 900, 875)
    state(100, 11, 900)
    pause(100, 11, 27, 90, 80)
    pause(150, 12, 28, 90, 80)
    state(200, 13, 950)
    pause(200, 13, 1, 950, 875)
    trace.write(folder / "trace.dat")


def _row(cgroup: int, position: float | None, limit: int | None, memcg: float | None) -> Expected:
    size = None if limit is None else limit * _PAGE
    return {
        "cgroup_ino": cgroup,
        "position_ratio": position,
        "limit_bytes": size,
        "memcg_ratio": memcg,
    }


CHECKS = [
    Check(
        query="bdi_dirty",
        ordered=True,
        rows=[
            _row(1, 0.8, 1000, 0.0),
            _row(27, 0.6, 1000, 0.5),
            _row(28, None, None, None),
        ],
    ),
    Check(
        sql="SELECT tid, domain, limit_bytes FROM wb_throttle ORDER BY seq",
        ordered=True,
        rows=[
            {"tid": 11, "domain": "global", "limit_bytes": 1000 * _PAGE},
            {"tid": 11, "domain": "memcg", "limit_bytes": None},
            {"tid": 12, "domain": None, "limit_bytes": None},
            {"tid": 13, "domain": "global", "limit_bytes": 1000 * _PAGE},
        ],
    ),
]
