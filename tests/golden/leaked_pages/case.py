# SPDX-License-Identifier: Apache-2.0
"""Bytes of each task, where it is charged for pages that others left behind.

By hand, 4 KiB pages; each task writes all of its pages by write(2) and is charged by two events.
  .     a (11) wrote 1000 pages and is charged 600; b (12) wrote 500 and is charged 560: 60 pages of
        tasks that exited, 3 % of the 1900 that were written. c (13) wrote 300 under the name "c"
        and 100 as "d"; it is charged 0 and 400: under one name what it wrote under the other.
        The bytes are those of the calls: 1000, 500, 300 and 100 pages.
  mmap  the same, but b is charged 700 pages: 200 more than it wrote, 800 KiB. Nobody leaves so
        much: it dirties pages by mmap, too, and the calls tell nothing. The bounds remain.
  many  the same, but b wrote 400 and is charged 500, and e (14) wrote 100 and is charged 200: each
        may be charged 400 KiB more, but all is 200 of 1900 pages, more than a tenth.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import WRITE, Waits

_PAGE = 4096
# case: tid -> pages written, charged
_CASES = {
    "": {11: (1000, 600), 12: (500, 560)},
    "mmap": {11: (1000, 600), 12: (500, 700)},
    "many": {11: (1000, 600), 12: (400, 500), 14: (100, 200)},
}
# pages of a call of balance_dirty_pages(), and nr_dirtied in it
_CALLS = ((32, 1000), (32, 1010), (32, 1020), (16, 1036), (100, 1140))


def make(folder: Path) -> None:
    for name, tasks in _CASES.items():
        (folder / name).mkdir(exist_ok=True)
        _write(folder / name, tasks)
    (folder / "probes").mkdir()
    _write_probes(folder / "probes")


def _write_probes(folder: Path) -> None:
    entry, back = "balance_dirty_pages_entry", "balance_dirty_pages_return"
    waits = Waits(entry, back, "global_dirty_state", "balance_dirty_pages", cmdlines={21: "x"})
    for ms, (pages, dirtied) in enumerate(_CALLS):
        waits.add(ms, 21, entry, wb=0xA, pages=pages)
        waits.add(ms + 0.01, 21, "global_dirty_state", nr_dirtied=dirtied)
        if pages == 100:
            values = {"cgroup_ino": 1, "dirtied": pages, "pause": 8, "period": 8}
            waits.add(ms + 0.02, 21, "balance_dirty_pages", bdi="8:0", **values)
            waits.add(ms + 8, 21, back, ret=0)
        else:
            waits.add(ms + 0.1, 21, back, ret=0)
    waits.write(folder)
    (folder / "meminfo").write_text("MemTotal: 262144 kB\n")


def _write(folder: Path, tasks: dict[int, tuple[int, int]]) -> None:
    names = {11: "a", 12: "b", 13: "c", 14: "e"}
    waits = Waits("balance_dirty_pages", "sched_switch", *WRITE, cmdlines=names)

    def call(ms: int, tid: int, pages: int, charged: int = 0) -> None:
        waits.add(ms, tid, WRITE[0], fd=3, count=pages * _PAGE)
        if charged:
            values = {"cgroup_ino": 1, "task_ratelimit": 4000, "dirty_ratelimit": 4000}
            values |= {"dirtied": charged, "pause": 20, "period": 20}
            waits.add(ms + 1, tid, "balance_dirty_pages", bdi="8:0", **values)
            waits.sleep(ms + 2, ms + 22, tid)
        waits.add(ms + 30, tid, WRITE[1], ret=pages * _PAGE)

    for tid, (pages, charged) in tasks.items():
        for ms in (0, 2000):
            call(ms + 50 * (tid - 11), tid, pages // 2, charged // 2)
    call(300, 13, 300)
    waits.switch(400, 13, 0, 0)
    waits.name(13, "d")
    waits.switch(900, 13, 0, 0)
    call(1000, 13, 50, 200)
    call(1500, 13, 50, 200)
    waits.write(folder)


def _rows(basis: str, pages: dict[str, int]) -> list[Expected]:
    return [
        {"comm": comm, "dirtied_estimate_bytes": count * _PAGE, "dirtied_basis": basis}
        for comm, count in pages.items()
    ]


CHECKS = [
    Check(query="throttle_by_task", rows=_rows("syscalls", {"a": 1000, "b": 500, "d": 100})),
    Check(
        query="throttle_by_task",
        folder="mmap",
        rows=_rows("bound", {"a": 600, "b": 700, "d": 400}),
    ),
    Check(
        query="throttle_by_task",
        folder="many",
        rows=_rows("bound", {"a": 600, "b": 500, "d": 400, "e": 200}),
    ),
    Check(query="throttle_by_task", folder="probes", rows=_rows("probe", {"x": 177})),
    # 212 pages of calls, of which 32 are older than the first look at nr_dirtied.
    Check(
        query="check",
        folder="probes",
        keep=lambda row: row["source"] == "probes",
        rows=[
            {
                "trace_value": 140 * _PAGE,
                "other_value": 212 * _PAGE,
                "residual_ratio": None,
                "verdict": "not comparable",
                "why": "there is too little of it: counters lag by as much",
            }
        ],
    ),
]
