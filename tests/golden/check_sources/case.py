# SPDX-License-Identifier: Apache-2.0
"""A trace beside every source that it can be compared with: all agree, and some of them do not.

By hand, one CPU, pages of 4 KiB. Counters may lag by 125 pages = 512,000 bytes.
  good  global_dirty_state: nr_dirtied 1000 to 41000 = 40000 pages = 163,840,000 bytes, nr_written
      500 to 31000 = 30500 pages = 124,928,000 bytes. vmstat: nr_dirtied 900 to 42000 = 41100,
      nr_written as in the trace.
    Block events: 250,000 sectors = 128,000,000 bytes; pgpgout 130,000 KiB = 133,120,000;
      block.before and block.after: 250,000 sectors, and the same once more of dm-0 and of md127,
      which lie on that disk.
    Reclaim: 3 anon folios written, vmstat 3: 2 to the swap device, 1 zero-filled. One direct
      reclaim scans 32 and frees 30 pages, kswapd none: as vmstat has it.
    fio wrote 163,000,000 bytes, ls-files has a file of 163,840,000, write() returns 100,000,000 and
      63,840,000, and -11 once.
    Pauses of 100 and 50 ms, 104 and 54 ms in state D. Both have the rate of the law (control_law).
  bad   the same trace after 23 lost events, with other files: nr_dirtied ends below the trace's
      last value; nr_written 0 to 100,000: 69.5 % of it are not between the two events, which says
      nothing; allocstall 200 instead of 1; fio wrote 10,000,000, so most
      is of others; write() is as before. Nobody sleeps in state D. One rate of two is off.
  bare  only ls-files, and a trace with nothing but a system call: nothing to compare.
"""

from __future__ import annotations

import json
from pathlib import Path

from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
_DEV = 8 << 20
_TID = 11
_GOOD = {
    "nr_dirtied": (900, 42_000),
    "nr_written": (500, 31_000),
    "pgpgout": (1000, 131_000),
    "nr_vmscan_write": (0, 3),
    "pswpout": (0, 2),
    "swpout_zero": (0, 1),
    "pgscan_kswapd": (0, 0),
    "pgsteal_kswapd": (0, 0),
    "pgscan_direct": (0, 32),
    "pgsteal_direct": (0, 30),
    "allocstall_normal": (0, 1),
}
_BAD = _GOOD | {
    "nr_dirtied": (900, 20_000),
    "nr_written": (0, 100_000),
    "allocstall_normal": (0, 200),
}


def _trace(*, good: bool) -> Trace:
    trace = Trace(
        [
            *formats(
                "balance_dirty_pages",
                "bdi_dirty_ratelimit",
                "block_rq_complete",
                "global_dirty_state",
                "mm_vmscan_direct_reclaim_begin",
                "mm_vmscan_direct_reclaim_end",
                "mm_vmscan_write_folio",
                "sched_switch",
                "sys_exit_write",
            ),
            *formats("mm_vmscan_lru_shrink_inactive"),
        ],
        cmdlines={_TID: "dd"},
    )

    def add(ms: int, name: str, tid: int = _TID, **values: int | str) -> None:
        trace.event(0, (10_000 + ms) * _MS, tid, name, values)

    def pause(ms: int, length: int, rate: int) -> None:
        add(ms, "balance_dirty_pages", bdi="8:0", cgroup_ino=1, limit=2000, setpoint=1750,
            dirty=1750, bdi_setpoint=1749, bdi_dirty=1750, dirty_ratelimit=4000,
            task_ratelimit=rate, dirtied=8, pause=length, period=length)  # fmt: skip
        state = 2 if good else 1
        add(ms + 1, "sched_switch", prev_comm="dd", prev_pid=_TID, prev_state=state, next_comm="x")
        add(ms + 5 + length, "sched_switch", 0, prev_comm="x", next_comm="dd", next_pid=_TID)

    def state(ms: int, dirtied: int, written: int, **values: int) -> None:
        add(ms, "global_dirty_state", nr_dirty=1750, background_thresh=1000, dirty_thresh=2000,
            dirty_limit=2000, nr_dirtied=dirtied, nr_written=written, **values)  # fmt: skip

    state(0, 1000, 500)
    pause(1, 100, 3996)
    for ms, ret in ((200, 100_000_000), (201, 63_840_000), (202, -11)):
        add(ms, "sys_exit_write", ret=ret)
    for ms, sectors in ((210, 150_000), (211, 100_000)):
        add(ms, "block_rq_complete", 0, dev=_DEV, sector=ms, nr_sector=sectors, rwbs="W")
    add(212, "block_rq_complete", 0, dev=_DEV, sector=1, nr_sector=8, rwbs="R")
    add(220, "mm_vmscan_direct_reclaim_begin")
    add(221, "mm_vmscan_lru_shrink_inactive", nr_scanned=32, nr_reclaimed=30)
    for pfn in (1, 2, 3):
        add(222, "mm_vmscan_write_folio", pfn=pfn, reclaim_flags=9)
    add(223, "mm_vmscan_direct_reclaim_end")
    if not good:
        trace.lost(0, 23)
    state(300, 41_000, 31_000)
    pause(301, 50, 3996 if good else 3600)
    add(400, "bdi_dirty_ratelimit", bdi="8:0", avg_write_bw=4000, cgroup_ino=1)
    return trace


def _files(folder: Path, counters: dict[str, tuple[int, int]], fio_bytes: int) -> None:
    for place, when in enumerate(("before", "after")):
        lines = [f"{name} {values[place]}\n" for name, values in counters.items()]
        (folder / f"vmstat.{when}").write_text("".join(lines))
    jobs = [{"jobname": "one", "write": {"io_bytes": fio_bytes}, "read": {"io_bytes": 5}}]
    (folder / "fio.json").write_text(json.dumps({"fio version": "fio-3.33", "jobs": jobs}))


def make(folder: Path) -> None:
    for name in ("good", "bad", "bare"):
        (folder / name).mkdir()
    _trace(good=True).write(folder / "good" / "trace.dat")
    _files(folder / "good", _GOOD, 163_000_000)
    ls = "total 1\n12 -rw-r--r-- 1 0 0 163840000 Nov 23 08:00 zero-1\n"
    (folder / "good" / "ls-files").write_text(ls)
    for when, sectors in (("before", 1000), ("after", 251_000)):
        disks = ("dm-0", "md127", "sda")
        text = "".join(f"== {disk}\n 1 2 3 4 5 6 {sectors} 8 9 10 11\n" for disk in disks)
        (folder / "good" / f"block.{when}").write_text(text)
    _trace(good=False).write(folder / "bad" / "trace.dat")
    _files(folder / "bad", _BAD, 10_000_000)
    bare = Trace(formats("sys_exit_write"), cmdlines={_TID: "dd"})
    bare.event(0, 10_000 * _MS, _TID, "sys_exit_write", {"ret": 1})
    bare.write(folder / "bare" / "trace.dat")
    (folder / "bare" / "ls-files").write_text(ls)


def _row(
    source: str,
    what: str,
    trace: int | None,
    other: int | None,
    verdict: str = "agrees",
    residual: float | None = None,
) -> Expected:
    if residual is None and trace is not None and other:
        residual = (other - trace) / other
    elif trace == other == 0:
        residual = 0.0
    if verdict == "not comparable":
        residual = None
    return {
        "source": source,
        "what": what,
        "trace_value": trace,
        "other_value": other,
        "residual_ratio": residual,
        "verdict": verdict,
    }


_DIRTIED = 163_840_000
_WRITTEN = 124_928_000
_EVENTS = 21
_RECLAIM = [
    _row("vmstat", "nr_vmscan_write", 3, 3),
    _row("vmstat", "swap and files", 3, 3),
    _row("vmstat", "pgscan_kswapd", 0, 0),
    _row("vmstat", "pgsteal_kswapd", 0, 0),
    _row("vmstat", "pgscan_direct", 32, 32),
    _row("vmstat", "pgsteal_direct", 30, 30),
]
CHECKS = [
    Check(
        query="check",
        folder="good",
        ordered=True,
        rows=[
            _row("vmstat", "nr_dirtied", 40_000, 41_100),
            _row("vmstat", "nr_written", 30_500, 30_500),
            _row("vmstat", "pgpgout", 128_000_000, 133_120_000),
            _row("block stat", "write_sectors", 128_000_000, 128_000_000),
            *_RECLAIM,
            _row("vmstat", "allocstall", 1, 1),
            _row("fio.json", "dirtied bytes", _DIRTIED, 163_000_000),
            _row("ls-files", "dirtied bytes", _DIRTIED, 163_840_000),
            _row("system calls", "dirtied bytes", _DIRTIED, 163_840_000),
            _row("block events", "written bytes", _WRITTEN, 128_000_000),
            _row("sched_switch", "throttle sleeps", 150 * _MS, 158 * _MS),
            _row("ring buffer", "events kept", _EVENTS, _EVENTS),
            _row("trace file", "events read", _EVENTS, _EVENTS),
            _row("kernel", "control law", 2, 2),
            _row("stalls", "state D", 158 * _MS, 161 * _MS),  # and reclaim, which ran
        ],
    ),
    Check(
        query="check",
        folder="bad",
        ordered=True,
        rows=[
            _row("vmstat", "nr_dirtied", 40_000, 19_100, "differs"),
            _row("vmstat", "nr_written", 30_500, 100_000, "not comparable"),
            _row("vmstat", "pgpgout", 128_000_000, 133_120_000),
            _row("block stat", "write_sectors", 128_000_000, None, "not recorded"),
            *_RECLAIM,
            _row("vmstat", "allocstall", 1, 200, "differs"),
            _row("fio.json", "dirtied bytes", _DIRTIED, 10_000_000, "not comparable"),
            _row("ls-files", "dirtied bytes", _DIRTIED, None, "not recorded"),
            _row("system calls", "dirtied bytes", _DIRTIED, 163_840_000),
            _row("block events", "written bytes", _WRITTEN, 128_000_000),
            _row("sched_switch", "throttle sleeps", 150 * _MS, 0, "differs"),
            _row("ring buffer", "events kept", _EVENTS, _EVENTS + 23, "differs"),
            _row("trace file", "events read", _EVENTS, _EVENTS),
            _row("kernel", "control law", 2, 1, "differs", 0.5),
            _row("stalls", "state D", None, None, "not recorded"),
        ],
        warning_words=("lost-events",),
    ),
]
