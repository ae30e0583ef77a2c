# SPDX-License-Identifier: Apache-2.0
"""Dirty pages of each domain: with a patched kernel's event, and what a stock one tells.

By hand, 4 KiB pages, pages in brackets:
  .      the machine: a dirtier sees (100) of thresh (200), a flusher (150) of (200), a real-time
    dirtier (150) of (260): boosted, its thresholds do not count. What the flusher saw has no pages
    under writeback in it: mean dirty 250 / 2 pages = 512000 bytes, largest 614400; ratio 0.5.
    cgroup 27, /app: a dirtier sees (30) of (40), limit (44); a sampler (50) of (40): mean 40
    pages = 163840 bytes, ratios 0.75 and 1.25, mean 1; once above; limit (44 + 40) / 2 = 42 pages
    = 172032 bytes.
    The events of tid 12, whose wb is the cgroup's: the return of the call says memcg, then global.
  stock  the same as a kernel of 6.1 has it: the machine twice by global_dirty_state, whose ratios
    are 0.5 and 0.75, mean 0.625, and two pauses
    of tid 12: one with 30 dirty pages where the machine has 100: memcg; one with 150, as it has.
    The limit of the cgroup is not known. Nobody tells who asked.
"""

from __future__ import annotations

from pathlib import Path

from support.formats import Value
from support.golden import Check, Expected
from support.kernel_events import formats
from support.tracedat import Trace

_MS = 1_000_000
# ms, cgroup, dirty, bg_thresh, thresh, dirty_limit, domain, boost, caller
_STATES = [
    (1, 0, 100, 100, 200, 200, 0, 0, 0),
    (2, 27, 30, 20, 40, 44, 1, 0, 0),
    (5, 0, 150, 100, 200, 200, 0, 0, 1),
    (6, 27, 50, 20, 40, 40, 1, 0, 2),
    (7, 0, 150, 130, 260, 200, 0, 1, 0),
]
# ms, dirty pages that the event has, domain that the return tells
_PAUSES = [(3, 30, 1), (8, 150, 0)]
_SETPOINT = 175


def _make(folder: Path, *, patched: bool) -> None:
    folder.mkdir(exist_ok=True)
    known = formats("balance_dirty_pages", "global_dirty_state")
    if patched:
        known += formats("balance_dirty_pages_done", "wb_domain_dirty_state")
    trace = Trace(known, cmdlines={12: "dd"})

    def add(ms: int, name: str, **values: Value) -> None:
        trace.event(0, (10_000 + ms) * _MS, 12, name, values)

    for ms, cgroup, dirty, background, thresh, limit, domain, boost, caller in _STATES:
        if patched:
            add(
                ms,
                "wb_domain_dirty_state",
                cgroup_ino=cgroup,
                avail=1000,
                dirty=dirty,
                bg_thresh=background,
                thresh=thresh,
                dirty_limit=limit,
                domain=domain,
                rt_boost=boost,
                caller=caller,
            )
        if not domain and not boost:
            state: dict[str, Value] = {"nr_dirty": dirty, "background_thresh": background}
            state |= {"dirty_thresh": thresh, "dirty_limit": limit}
            add(ms, "global_dirty_state", **state)
        for at, pages, told in _PAUSES:
            if at == ms + 1:
                values: dict[str, Value] = {"bdi": "8:0", "cgroup_ino": 27, "limit": 200}
                values |= {"dirty": pages, "setpoint": _SETPOINT, "dirtied": 1}
                add(at, "balance_dirty_pages", pause=4, period=4, **values)
                if patched:
                    done: dict[str, Value] = {"bdi": "8:0", "cgroup_ino": 27, "loops": 1}
                    add(at + 1, "balance_dirty_pages_done", domain=told, exit=2, **done)
    trace.write(folder / "trace.dat")
    (folder / "uname").write_text("Linux guest 6.1.0 #1 SMP x86_64 GNU/Linux\n")
    (folder / "cgroups").write_text("27 /sys/fs/cgroup/app\n")


def make(folder: Path) -> None:
    _make(folder, patched=True)
    _make(folder / "stock", patched=False)


def _global(
    basis: str, count: int, ratios: tuple[float, float], boosted: int, asked: bool
) -> Expected:
    return {
        "domain": "global",
        "cgroup_ino": 0,
        "cgroup_path": None,
        "events_count": count,
        "dirty_bytes": 512_000,
        "dirty_max_bytes": 614_400,
        "thresh_bytes": 819_200,
        "dirty_thresh_ratio": ratios[0],
        "dirty_thresh_max_ratio": ratios[1],
        "above_thresh_count": 0,
        "by_dirtier_count": 2 if asked else None,
        "by_flusher_count": 1 if asked else None,
        "by_sampler_count": 0 if asked else None,
        "boosted_count": boosted,
        "limit_bytes": 819_200,
        "basis": basis,
    }


CHECKS = [
    Check(
        query="dirty_domains",
        ordered=True,
        rows=[
            _global("domain_dirty_state", 3, (0.5, 0.5), 1, asked=True),
            {
                "domain": "memcg",
                "cgroup_ino": 27,
                "cgroup_path": "/sys/fs/cgroup/app",
                "events_count": 2,
                "dirty_bytes": 163_840,
                "dirty_max_bytes": 204_800,
                "thresh_bytes": 163_840,
                "dirty_thresh_ratio": 1.0,
                "dirty_thresh_max_ratio": 1.25,
                "above_thresh_count": 1,
                "by_dirtier_count": 1,
                "by_flusher_count": 0,
                "by_sampler_count": 1,
                "boosted_count": 0,
                "limit_bytes": 172_032,
                "basis": "domain_dirty_state",
            },
        ],
    ),
    Check(
        query="dirty_domains",
        folder="stock",
        ordered=True,
        rows=[
            _global("global_dirty_state", 2, (0.625, 0.75), 0, asked=False),
            {
                "domain": "memcg",
                "cgroup_ino": 27,
                "cgroup_path": "/sys/fs/cgroup/app",
                "events_count": 1,
                "dirty_bytes": 122_880,
                "dirty_max_bytes": 122_880,
                "thresh_bytes": None,
                "dirty_thresh_ratio": None,
                "dirty_thresh_max_ratio": None,
                "above_thresh_count": None,
                "by_dirtier_count": 1,
                "by_flusher_count": 0,
                "by_sampler_count": 0,
                "boosted_count": 0,
                "limit_bytes": None,
                "basis": "balance_dirty_pages",
            },
        ],
    ),
    *(
        Check(
            sql="SELECT t.domain, t.limit_bytes FROM wb_throttle AS t ORDER BY t.seq",
            folder=folder,
            ordered=True,
            rows=[
                {"domain": "memcg", "limit_bytes": None},
                {"domain": "global", "limit_bytes": 819_200},
            ],
        )
        for folder in ("", "stock")
    ),
]
