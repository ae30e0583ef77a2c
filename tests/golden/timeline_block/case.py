# SPDX-License-Identifier: Apache-2.0
"""Tracks of block requests: the part in the queue, the part in the device, and how many are there.

By hand, ms from 10 s, disk 8:0, 8 sectors = 4096 bytes each.
  first: queued at 0, issued at 10, done at 40; second: queued at 5, issued at 20, done at 30;
  third: never queued, issued at 50 and not done at 60, where the trace ends
  in the queue: 1 at 0, 2 at 5, 1 at 10, 0 at 20
  in the device: 1 at 10, 2 at 20, 1 at 30, 0 at 40, 1 at 50, 0 at 60
  written: 2 * 4096 bytes in the only window, which is cut 1 ns after the last event:
    8192 in 60.000001 ms
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import MS, Waits, at, device


def make(folder: Path) -> None:
    names = ("block_rq_insert", "block_rq_issue", "block_rq_complete", "xfs_log_cil_wait")
    waits = Waits(*names, cmdlines={1: "dd", 3: "cp"})
    waits.request(1, 100, insert=0, issue=10, complete=40, rwbs="W")
    waits.request(3, 200, insert=5, issue=20, complete=30, rwbs="WS")
    last = {"dev": device(8, 0), "sector": 300, "nr_sector": 8}
    waits.add(50, 1, "block_rq_issue", rwbs="R", **last)
    waits.add(60, 3, "xfs_log_cil_wait", dev=device(8, 0))
    waits.write(folder)


def _part(track: str, ms: int, length: int, name: str, queue: int, in_device: int) -> Expected:
    return {
        "ts": at(ms),
        "dur": length * MS,
        "track": f"Writeback/Block requests/8:0 {track}",
        "name": name,
        "arg_bytes": 4096,
        "arg_why": f"{name}: {queue}.0 ms in the queue, {in_device}.0 ms in the device",
        "arg_queue_ns": queue * MS,
        "arg_device_ns": in_device * MS,
    }


def _samples(part: str, *points: tuple[int, int]) -> list[Expected]:
    track = f"Writeback/Block requests/8:0 requests {part}"
    return [
        {"ts": at(ms), "track": track, "value": value, "unit": "requests"} for ms, value in points
    ]


CHECKS = [
    Check(
        sql="SELECT * FROM tl_block ORDER BY ts",
        ordered=True,
        rows=[
            _part("queued", 0, 10, "write 4 KiB", 10, 30),
            _part("queued", 5, 15, "write 4 KiB", 15, 10),
            _part("in the device", 10, 30, "write 4 KiB", 10, 30),
            _part("in the device", 20, 10, "write 4 KiB", 15, 10),
            _part("in the device", 50, 10, "read 4 KiB", 0, 10),
        ],
    ),
    Check(
        sql="SELECT * FROM tl_block_depth",
        rows=[
            *_samples("queued", (0, 1), (5, 2), (10, 1), (20, 0)),
            *_samples("in the device", (10, 1), (20, 2), (30, 1), (40, 0), (50, 1), (60, 0)),
        ],
    ),
    Check(
        sql="SELECT * FROM tl_device_throughput",
        rows=[
            {"ts": at(0), "track": "Writeback/Throughput/8:0 written", "value": 8192 / 0.060000001},
            {"ts": at(0), "track": "Writeback/Throughput/8:0 read", "value": 0.0},
        ],
    ),
]
