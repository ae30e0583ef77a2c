# SPDX-License-Identifier: Apache-2.0
"""Who writes to a second disk on the side, and what the kernel's account of a thread is worth then.

By hand, 4 KiB pages. Each call of balance_dirty_pages() pauses, and is charged 100 pages:
  a, tid 1: 12 calls for 8:0 and one, of its messages, for 8:16; its account grows by 2000 pages
  b, tid 2: 6 calls for 8:0 and 2 for 8:16; its account grows by 1600 pages
a writes to 8:16 on the side: one call of 13, so all 2000 pages are for 8:0. b writes to both: of
  1600 pages 6/8 are for 8:0, 1200, and 2/8 for 8:16, 400.
alone: the same events without accounts. nr_dirtied goes from 1000 to 11500: of 10500 pages 2100
  are charged, 20 %. With so little nothing is shared out by calls in free run: the bounds remain,
  12, 6 and 2 times 100 pages, and there is no index.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check
from support.wait_events import Waits

_PAGE = 4096


def make(folder: Path) -> None:
    for name in ("accounts", "alone"):
        (folder / name).mkdir()
        _write(folder / name)
    (folder / "accounts" / "task_io").write_text(_account(1, 2000) + _account(2, 1600))


def _account(tid: int, pages: int) -> str:
    lines = ((9, "start", 0), (14, "exit", pages * _PAGE))
    return "".join(
        f"{sample} ts={second}000000000 tid={tid} tgid={tid} write_bytes={count}"
        f" cancelled_write_bytes=0 comm={'ab'[tid - 1]}\n"
        for second, sample, count in lines
    )


def _write(folder: Path) -> None:
    waits = Waits(
        "global_dirty_state", "balance_dirty_pages", cmdlines={1: "a", 2: "b", 9: "flusher"}
    )
    limits = {"background_thresh": 1000, "dirty_thresh": 2000, "dirty_limit": 2000}

    def look(ms: float, tid: int, dirtied: int) -> None:
        waits.add(ms, tid, "global_dirty_state", nr_dirty=1600, nr_dirtied=dirtied, **limits)

    def call(ms: float, tid: int, bdi: str) -> None:
        look(ms, tid, 1000)
        values = {"cgroup_ino": 1, "limit": 2000, "setpoint": 1750, "dirty": 1600}
        values |= {"dirty_ratelimit": 4000, "task_ratelimit": 4000}
        values |= {"dirtied": 100, "pause": 20, "period": 20}
        waits.add(ms, tid, "balance_dirty_pages", bdi=bdi, **values)

    look(0, 9, 1000)
    for number in range(12):
        call(100 + 200 * number, 1, "8:0")
    call(2500, 1, "8:16")
    for number, bdi in enumerate(("8:0", "8:0", "8:16", "8:0", "8:0", "8:0", "8:16", "8:0")):
        call(200 + 300 * number, 2, bdi)
    # Looks of both in free run, so that pages could be shared out by them.
    for tid in (1, 2):
        look(2700 + tid, tid, 5000)
    look(3999, 9, 11_500)
    waits.write(folder)


def _task(tid: int, bdi: str, pages: int, basis: str, side: int = 0) -> dict[str, int | str]:
    return {
        "tid": tid,
        "bdi": bdi,
        "dirtied_estimate_bytes": pages * _PAGE,
        "dirtied_basis": basis,
        "is_incidental": side,
    }


CHECKS = [
    Check(
        query="throttle_by_task",
        folder="accounts",
        rows=[
            _task(1, "8:0", 2000, "proc_io"),
            _task(1, "8:16", 100, "bound", side=1),
            _task(2, "8:0", 1200, "proc_io"),
            _task(2, "8:16", 400, "proc_io"),
        ],
    ),
    Check(
        query="throttle_by_task",
        folder="alone",
        rows=[
            _task(1, "8:0", 1200, "bound"),
            _task(1, "8:16", 100, "bound", side=1),
            _task(2, "8:0", 600, "bound"),
            _task(2, "8:16", 200, "bound"),
        ],
        warning_words=("20 % of what the machine dirtied",),
    ),
    Check(
        query="fairness",
        folder="alone",
        rows=[
            {"bdi": "8:0", "tasks_count": 2, "jain_ratio": None},
            {"bdi": "8:16", "tasks_count": 1, "jain_ratio": None},
        ],
    ),
]
