# SPDX-License-Identifier: Apache-2.0
"""Prints of kernels and patches of 2010 to 2016, values read by eye."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope, check_error
from support.runs import REPOSITORY
from support.texttrace import load_lines

# Prints of kernels and patches of 2010 to 2016: one line each, values read by eye.

_BDP = "writeback:balance_dirty_pages"
_GLOBAL = "writeback:global_dirty_state"
# (event, payload, fields that the line tells)
_LINES: list[tuple[str, str, str, dict[str, Any]]] = [
    (
        "T1",
        _BDP,
        "bdi=btrfs-2 weight=15% thresh=130876 gap=5340 dirtied=192 pause=20 bw=34855512",
        {"bdi": "btrfs-2", "weight": 15, "thresh": 130876, "gap": 5340, "bw": 34855512},
    ),
    (
        "T2",
        _BDP,
        "bdi=btrfs-2 weight=15% limit=130876 gap=5340 dirtied=192 pause=20",
        {"bdi": "btrfs-2", "weight": 15, "limit": 130876, "gap": 5340, "dirtied": 192, "pause": 20},
    ),
    (
        "T3",
        _BDP,
        "bdi=8:0 bdi_dirty=1200 bdi_limit=1500 task_limit=1400 task_weight=12% task_gap=-3%"
        " bdi_gap=4% pages_dirtied=33 pause=12",
        {"bdi": "8:0", "bdi_dirty": 1200, "task_weight": 12, "task_gap": -3, "pages_dirtied": 33},
    ),
    (
        "T4",
        _BDP,
        "bdi 8:0: bdi_limit=1500 task_limit=1400 bdi_dirty=1200 avg_dirty=1190 bdi_gap=4%"
        " task_gap=3% task_weight=12% bdi_bw=31000 base_bw=7900 task_bw=7800 dirtied=32 period=16"
        " think=4 pause=12",
        {"bdi": "8:0", "avg_dirty": 1190, "bdi_bw": 31000, "base_bw": 7900, "pause": 12},
    ),
    (
        "T5",
        _BDP,
        "bdi 8:0: bdi_weight=998 task_weight=120 limit=32000 goal=28000 dirty=27500 bdi_goal=27900"
        " bdi_dirty=27400 avg_dirty=27300 base_bw=7900 task_bw=7800 dirtied=32 period=16 think=-1"
        " pause=12 paused=0",
        {"goal": 28000, "bdi_goal": 27900, "task_bw": 7800, "think": -1, "paused": 0},
    ),
    (
        "T6",
        _BDP,
        "bdi 8:0: limit=32000 goal=28000 dirty=27500 bdi_goal=27900 bdi_dirty=27400"
        " avg_dirty=27300 base_bw=7900 task_bw=7800 dirtied=32 dirtied_pause=64 period=16 think=4"
        " pause=12 paused=0",
        {"goal": 28000, "dirtied_pause": 64, "base_bw": 7900},
    ),
    (
        "T7",
        _BDP,
        "bdi 8:0: limit=32000 goal=28000 dirty=27500 bdi_goal=27900 bdi_dirty=27400 base_rate=7900"
        " task_ratelimit=7800 dirtied=32 dirtied_pause=64 period=16 think=4 pause=12 paused=0",
        {"goal": 28000, "base_rate": 7900, "task_ratelimit": 7800},
    ),
    (
        "T8",
        _BDP,
        "bdi 8:0: limit=32000 setpoint=28000 dirty=27500 bdi_setpoint=27900 bdi_dirty=27400"
        " dirty_ratelimit=7900 task_ratelimit=7800 dirtied=32 dirtied_pause=64 period=16 think=4"
        " pause=12 paused=0",
        {"setpoint": 28000, "bdi_setpoint": 27900, "period": 16, "paused": 0},
    ),
    (
        "T9-3.2",
        _BDP,
        "bdi 8:0: limit=32000 setpoint=28000 dirty=27500 bdi_setpoint=27900 bdi_dirty=27400"
        " dirty_ratelimit=7900 task_ratelimit=7800 dirtied=32 dirtied_pause=64 paused=0 pause=12",
        {"setpoint": 28000, "pause": 12},
    ),
    (
        "T9-3.3",
        _BDP,
        "bdi 8:0: limit=32000 setpoint=28000 dirty=27500 bdi_setpoint=27900 bdi_dirty=27400"
        " dirty_ratelimit=7900 task_ratelimit=7800 dirtied=32 dirtied_pause=64 paused=0 pause=12"
        " period=16 think=4",
        {"bdi_setpoint": 27900, "period": 16, "think": 4},
    ),
    (
        "T9-4.3",
        _BDP,
        "bdi 8:0: limit=32000 setpoint=28000 dirty=27500 bdi_setpoint=27900 bdi_dirty=27400"
        " dirty_ratelimit=7900 task_ratelimit=7800 dirtied=32 dirtied_pause=64 paused=0 pause=12"
        " period=16 think=4 cgroup=/user.slice",
        {"bdi_dirty": 27400, "cgroup": "/user.slice"},
    ),
    (
        "T9-6.15",
        _BDP,
        "bdi 8:0: limit=32000 setpoint=28000 dirty=27500 wb_setpoint=27900 wb_dirty=27400"
        " dirty_ratelimit=7900 task_ratelimit=7800 dirtied=32 dirtied_pause=64 paused=0 pause=12"
        " period=16 think=4 cgroup_ino=1",
        {"wb_setpoint": 27900, "wb_dirty": 27400, "cgroup_ino": 1},
    ),
    (
        "R1",
        "writeback:dirty_throttle_bandwidth",
        "bdi 8:0: write_bw=31000 avg_bw=30500 dirty_bw=29000 base_bw=8000000 pos_bw=7900000"
        " ref_bw=7800000 aref_bw=7700000",
        {"avg_bw": 30500, "base_bw": 8000000, "aref_bw": 7700000},
    ),
    (
        "R2",
        "writeback:dirty_ratelimit",
        "bdi 8:0: write_bw=31000 awrite_bw=30500 dirty_bw=29000 base_bw=7900 pos_bw=7800"
        " ref_bw=7700 aref_bw=7600",
        {"awrite_bw": 30500, "dirty_bw": 29000, "base_bw": 7900},
    ),
    (
        "R3",
        "writeback:dirty_ratelimit",
        "bdi 8:0: write_bw=31000 awrite_bw=30500 dirty_rate=29000 dirty_ratelimit=7900"
        " task_ratelimit=7800 balanced_dirty_ratelimit=7700",
        {"avg_write_bw": 30500, "dirty_rate": 29000, "balanced_dirty_ratelimit": 7700},
    ),
    (
        "G1",
        "writeback:balance_dirty_state",
        "bdi 8:0: dirty=900 wb=80 unstable=7 bg_thresh=1000 thresh=2000 gap=-13 poll_thresh=16"
        " ino=131",
        {"bdi": "8:0", "nr_dirty": 900, "nr_writeback": 80, "nr_unstable": 7, "gap": -13},
    ),
    (
        "G2",
        _GLOBAL,
        "dirty=900 writeback=80 unstable=7 bg_thresh=1000 thresh=2000 gap=13",
        {"nr_dirty": 900, "background_thresh": 1000, "dirty_thresh": 2000, "gap": 13},
    ),
    (
        "G3",
        _GLOBAL,
        "dirty=900 writeback=80 unstable=7 bg_thresh=1000 thresh=2000 limit=2100 gap=13"
        " dirtied=5000 written=4000",
        {"nr_dirty": 900, "dirty_limit": 2100, "nr_dirtied": 5000, "nr_written": 4000},
    ),
    (
        "G4",
        _GLOBAL,
        "dirty=900 writeback=80 unstable=7 bg_thresh=1000 thresh=2000",
        {"nr_unstable": 7, "dirty_thresh": 2000},
    ),
    (
        "G5",
        _GLOBAL,
        "dirty=900 writeback=80 bg_thresh=1000 thresh=2000 limit=2100 dirtied=5000 written=4000",
        {"nr_dirty": 900, "nr_writeback": 80, "dirty_limit": 2100, "nr_written": 4000},
    ),
    (
        "G5-2016",
        _GLOBAL,
        "dirty=900 writeback=80 unstable=0 bg_thresh=1000 thresh=2000 limit=2100 dirtied=5000"
        " written=4000 metadata_dirty=11",
        {"metadata_dirty": 11, "thresh": 2000},
    ),
    (
        "V1",
        "vmscan:mm_vmscan_direct_reclaim_begin",
        "order=2 may_writepage=1 gfp_flags=GFP_HIGHUSER_MOVABLE|__GFP_ZERO",
        {"order": 2, "may_writepage": 1},
    ),
    (
        "V1-4.8",
        "vmscan:mm_vmscan_direct_reclaim_begin",
        "order=2 may_writepage=1 gfp_flags=GFP_NOFS classzone_idx=3",
        {"order": 2, "may_writepage": 1, "classzone_idx": 3},
    ),
    (
        "V2",
        "vmscan:mm_vmscan_writepage",
        "page=ffffea0000a1b2c0 pfn=165579 flags=RECLAIM_WB_FILE|RECLAIM_WB_ASYNC",
        {"pfn": 165579, "reclaim_flags": 10},
    ),
    (
        "V2-hex",
        "vmscan:mm_vmscan_write_folio",
        "page=0xffffea0000a1b2c0 pfn=0x286cb flags=RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
        {"pfn": 0x286CB, "reclaim_flags": 9},
    ),
    (
        "V3-3.4",
        "vmscan:mm_vmscan_lru_isolate",
        "isolate_mode=1 order=0 nr_requested=32 nr_scanned=40 nr_taken=31 contig_taken=3"
        " contig_dirty=2 contig_failed=1 file=1",
        {"nr_scanned": 40, "nr_taken": 31, "nr_lumpy_dirty": 2, "file": 1},
    ),
    (
        "V3-3.10",
        "vmscan:mm_vmscan_lru_isolate",
        "isolate_mode=1 order=0 nr_requested=32 nr_scanned=40 nr_taken=31 file=1",
        {"nr_requested": 32, "nr_taken": 31},
    ),
    (
        "V3-4.11",
        "vmscan:mm_vmscan_lru_isolate",
        "isolate_mode=0 classzone=2 order=0 nr_requested=32 nr_scanned=40 nr_skipped=5 nr_taken=31"
        " lru=inactive_file",
        {"nr_skipped": 5, "nr_taken": 31, "lru": 2},
    ),
    (
        "V3-6.7",
        "vmscan:mm_vmscan_lru_isolate",
        "classzone=2 order=0 nr_requested=32 nr_scanned=40 nr_skipped=5 nr_taken=31"
        " lru=active_anon",
        {"nr_skipped": 5, "lru": 1},
    ),
]


@pytest.mark.parametrize(
    "prefix",
    ["{:>16}-2951  [001]  101.250000: {}: {}", "{:>16}-2951  [001] d..1   101.250000: {}: {}"],
)
@pytest.mark.parametrize(
    ("event", "payload", "told"), [pytest.param(*line[1:], id=line[0]) for line in _LINES]
)
def test_one_line(
    tmp_path: Path, prefix: str, event: str, payload: str, told: dict[str, Any]
) -> None:
    loaded = load_lines([prefix.format("dd", event.partition(":")[2], payload)], tmp_path)
    (row,) = loaded.rows(event)
    assert (row["ts"], row["cpu"], row["tid"]) == (101_250_000_000, 1, 2951)
    assert {name: row[name] for name in told} == told
    assert loaded.said.count("warning") == 0


def test_goal_is_read_as_setpoint_and_said(wbscope: Wbscope, tmp_path: Path) -> None:
    payload = next(x[2] for x in _LINES if x[0] == "T6")
    lines = [f"dd-7  [000]  1{i}.5: balance_dirty_pages: {payload}" for i in range(3)]
    loaded = load_lines(lines, tmp_path)
    rows = wbscope.sql(
        loaded.path,
        "SELECT setpoint, goal, wb_setpoint, dirty_ratelimit, task_ratelimit"
        " FROM raw_balance_dirty_pages LIMIT 1",
    )
    assert rows == [
        {
            "setpoint": 28000,
            "goal": 28000,
            "wb_setpoint": 27900,
            "dirty_ratelimit": 7900,
            "task_ratelimit": 7800,
        }
    ]
    answer = wbscope.document("query", "throttle_by_task", loaded.path)
    slugs = {warning["slug"] for warning in answer["warnings"]}
    assert {"goal-is-no-setpoint", "page-size-assumed"} <= slugs


def test_rates_in_bytes_stay_bytes(wbscope: Wbscope, tmp_path: Path) -> None:
    by_id = {x[0]: x for x in _LINES}
    lines = [
        f"flush-1  [000]  {ts}.0: {by_id[name][1].partition(':')[2]}: {by_id[name][2]}"
        for ts, name in ((1, "R1"), (2, "R2"))
    ]
    loaded = load_lines(lines, tmp_path)
    rows = wbscope.sql(
        loaded.path,
        "SELECT dirty_ratelimit_bytes_per_s AS base, avg_write_bw_bytes_per_s AS bw"
        " FROM wb_bandwidth ORDER BY ts",
    )
    assert rows == [
        {"base": 8_000_000, "bw": 30500 * 1024},
        {"base": 7900 * 1024, "bw": 30500 * 1024},
    ]


def test_bandwidth_of_the_patches_of_march_2011(wbscope: Wbscope, tmp_path: Path) -> None:
    """Their event answers alone; it has no balanced rate."""
    payload = "bdi 8:0: write_bw={} avg_bw={} dirty_bw=29000 base_bw=8000000 pos_bw=1 ref_bw=1"
    lines = [
        f"flush-1  [000]  {ts}.0: dirty_throttle_bandwidth: {payload.format(*bw)} aref_bw=1"
        for ts, bw in ((1, (31000, 30500)), (2, (33000, 31500)))
    ]
    loaded = load_lines(lines, tmp_path)
    assert wbscope.query("bdi_bandwidth", loaded.path) == [
        {
            "window_start_ns": 1_000_000_000,
            "bdi": "8:0",
            "cgroup_ino": None,
            "updates_count": 2,
            "write_bw_bytes_per_s": 32000 * 1024,
            "avg_write_bw_bytes_per_s": 31000 * 1024,
            "dirty_rate_bytes_per_s": 29000 * 1024,
            "dirty_ratelimit_bytes_per_s": 8_000_000,
            "balanced_dirty_ratelimit_bytes_per_s": None,
            "lost_gaps_count": 0,
        }
    ]


def test_waiting_and_woken(wbscope: Wbscope, tmp_path: Path) -> None:
    waiting = "writeback_balance_dirty_pages_waiting"
    woken = "writeback_balance_dirty_pages_woken"
    lines = [
        f"dd-7  [000]  1.000000: {waiting}: bdi=8:0, pages=1536",
        f"cp-8  [001]  1.500000: {waiting}: bdi=8:16 pages=10",
        f"dd-7  [001]  1.250000: {woken}: bdi=8:0",
        f"dd-7  [000]  2.000000: {waiting}: bdi=8:0, pages=1536",
        f"dd-7  [000]  2.125000: {woken}: bdi=8:0",
    ]
    loaded = load_lines(lines, tmp_path)
    assert wbscope.query("completion_waits", loaded.path) == [
        {
            "tid": 7,
            "comm": "dd",
            "bdi": "8:0",
            "waits_count": 2,
            "unfinished_count": 0,
            "wait_ns": 375_000_000,
            "wait_max_ns": 250_000_000,
            "asked_bytes": 2 * 1536 * 4096,
        },
        {
            "tid": 8,
            "comm": "cp",
            "bdi": "8:16",
            "waits_count": 1,
            "unfinished_count": 1,
            "wait_ns": None,
            "wait_max_ns": None,
            "asked_bytes": 10 * 4096,
        },
    ]
    for name in ("throttle_by_task", "throttle_summary"):
        refused = wbscope.run("query", name, loaded.path)
        assert refused.returncode == 4
        fix = f"wbscope query completion_waits {loaded.path}"
        check_error(refused.stderr, "missing-event", "writeback:balance_dirty_pages", fix=fix)


def test_no_other_query_is_named_that_cannot_answer(wbscope: Wbscope, tmp_path: Path) -> None:
    payload = next(x[2] for x in _LINES if x[0] == "R2")
    loaded = load_lines([f"flush-1  [000]  1.0: dirty_ratelimit: {payload}"], tmp_path)
    refused = wbscope.run("query", "throttle_by_task", loaded.path)
    assert refused.returncode == 4
    assert "completion_waits" not in refused.stderr
    assert "fix: trace-cmd record " in refused.stderr


# The reclaim lines of July 2011, all of them, with and without the stamps that dmesg adds.

_LOG = REPOSITORY / "tests" / "data" / "text" / "kernel-log-2011-07.txt"
_LINE = re.compile(
    r"zone=(\w+) .*inactive=(\d+)\((\d+)\) .*dirty=(\d+)\((\d+)\) writeback=(\d+)\((\d+)\)"
)
_PAGE = 4096


@pytest.mark.parametrize("stamped", [False, True])
def test_zones_when_reclaim_wrote(wbscope: Wbscope, tmp_path: Path, stamped: bool) -> None:
    lines = _LOG.read_text().splitlines()
    wanted = []
    for line in lines:
        match = _LINE.search(line)
        assert match is not None, line
        wanted.append((match[1], *(int(number) for number in match.groups()[1:])))
    log = tmp_path / "log.txt"
    front = "[ {:5}.000001] " if stamped else ""
    log.write_text("".join(front.format(10 + i) + line + "\n" for i, line in enumerate(lines)))

    rows = wbscope.query("reclaim_dirty_state", log)
    assert [
        (
            row["zone"],
            *(
                row[f"{name}_bytes"] / _PAGE
                for counter in ("inactive", "dirty", "writeback")
                for name in (f"zone_{counter}", counter)
            ),
        )
        for row in rows
    ] == wanted
    for row, (_, inactive, _, dirty, _, writeback, _) in zip(rows, wanted, strict=True):
        assert row["zone_pending_ratio"] == pytest.approx((dirty + writeback) / inactive)
    times = [row["ts"] for row in wbscope.sql(log, "SELECT ts FROM raw_reclaim ORDER BY seq")]
    stamps = [(10 + i) * 10**9 + 1000 for i in range(len(lines))] if stamped else [0] * len(lines)
    assert times == stamps
