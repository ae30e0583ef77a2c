# SPDX-License-Identifier: Apache-2.0
"""LVM, dm-crypt, md and btrfs: what lies on disks is busy while they are; requests stay theirs.

By hand, ms from 10 s; a request is 8 sectors = 4096 bytes, the file stacks has what lies on what.
  8:0    0 to 100; 253:0 and 253:1 lie on it: 4096 bytes in 100 ms = 40960 bytes/s each
  8:16   200 to 300, 8:32 250 to 350; 9:0 lies on both, 253:2 on 9:0, 253:3 on 253:2, and btrfs-1 on
         253:3: 8192 bytes in 150 ms = 54613 1/3 bytes/s, the samples of 9:0 excepted, which say
         4096 bytes in 50 ms: a mirror writes the same twice
  252:5  400 to 450, and its path 8:48 400 to 440: it has requests of its own, so it is not told of
         those of 8:48: 81920 and 102400 bytes/s
  tid 1  fsync on 253:0, 0 to 200: the disk is busy for half of it: device latency
  tid 2  fsync on 253:1, 0 to 400: for a quarter: unknown
  tid 3  fsync on 9:0, 200 to 400: 150 ms, three quarters; 8192 bytes are written, the last at 350
  tid 4  fsync on 253:3, 250 to 450: 100 ms, half; when it begins, 8:16 has a request
  tid 5  throttled on btrfs-1, 200 to 400 (whole jiffies of HZ 100 and of 250): three quarters
  tid 6  fsync on 252:5, 400 to 500: 50 ms, half
  tid 7  throttled on 253:9, 600 to 640: nothing tells where that lies; it and 253:8 are said to lie
         on each other
  Swap is a file of 253:0, so 8:0 is the disk of swap, and 253:1 lies on it, too.
  plain  the same trace without the file: tids 1 to 5 and 7 have devices of which nothing is known.
"""

from __future__ import annotations

from pathlib import Path

from support.golden import Check, Expected
from support.wait_events import EXT4_SYNC, FSYNC, MS, Waits, at, device

_STACKS = """253:0 8:0
253:1 8:0
9:0 8:16
9:0 8:32
253:2 9:0
253:3 253:2
btrfs-1 253:3
252:5 8:48
253:8 253:9
253:9 253:8
8:0 8:0
not a pair
"""
# of /sys/block/md0/stat: fields 1, 5, 7 and 10 are reads, writes, sectors written, ms busy
_SAMPLES = (
    "# ts={}\n== md0\ndev 9:0\n 1 0 8 0 1 0 8 0 0 0 0\n"
    "# ts={}\n== md0\ndev 9:0\n 1 0 8 0 2 0 16 0 0 50 50\n"
)
_FSYNCS = (
    (1, 0, 200, (253, 0)),
    (2, 0, 400, (253, 1)),
    (3, 200, 400, (9, 0)),
    (4, 250, 450, (253, 3)),
    (6, 400, 500, (252, 5)),
)
_REQUESTS = (
    (0, 100, (8, 0)),
    (200, 300, (8, 16)),
    (250, 350, (8, 32)),
    (400, 450, (252, 5)),
    (400, 440, (8, 48)),
)


def make(folder: Path) -> None:
    for name in ("stacked", "plain"):
        (folder / name).mkdir()
        _trace(folder / name)
        (folder / name / "block.samples").write_text(_SAMPLES.format(at(100), at(500)))
    (folder / "stacked/stacks").write_text(_STACKS)
    (folder / "stacked/bdis").write_text("253:0 dm-0 / ext4\nbtrfs-1 dm-3 /data btrfs\n")
    (folder / "stacked/swaps").write_text("Filename Type Size Used Priority\n/swap file 1 0 -2\n")


def _trace(folder: Path) -> None:
    comms = {tid: f"t{tid}" for tid in range(1, 8)} | {9: "kworker/u8:2"}
    block = ("block_rq_issue", "block_rq_complete")
    waits = Waits(*FSYNC, *EXT4_SYNC, *block, "balance_dirty_pages", cmdlines=comms)
    for tid, start, end, dev in _FSYNCS:
        waits.span(start, end, tid, FSYNC)
        waits.span(start, end, tid, EXT4_SYNC, dev=device(*dev))
    for sector, (start, end, dev) in enumerate(_REQUESTS):
        waits.request(9, 64 * sector, issue=start, complete=end, dev=dev, rwbs="W")
    for tid, start, length, bdi in ((5, 200, 200, "btrfs-1"), (7, 600, 40, "253:9")):
        values = {"cgroup_ino": 1, "limit": 1000, "setpoint": 900, "dirty": 850}
        values |= {"bdi_setpoint": 800, "bdi_dirty": 800, "task_ratelimit": 1000}
        values |= {"dirty_ratelimit": 1000, "dirtied": 10, "pause": length, "period": length}
        waits.add(start, tid, "balance_dirty_pages", bdi=bdi, **values)
    waits.add(700, 7, "balance_dirty_pages", bdi="253:9", cgroup_ino=1, dirtied=1)
    waits.write(folder)


def _stall(tid: int, bdi: str, ratio: float | None, cause: str) -> Expected:
    return {"tid": tid, "bdi": bdi, "device_ratio": ratio, "cause": cause}


def _rate(bdi: str, ms: int, size: int, basis: str = "requests") -> Expected:
    return {
        "bdi": bdi,
        "disk_bytes_per_s": size * 1000 / ms,
        "written_bytes": size,
        "busy_ns": ms * MS,
        "basis": basis,
    }


_DISKS = ("252:5", "8:0", "8:16", "8:32", "8:48")
_OWN_RATES = (
    _rate("252:5", 50, 4096),
    _rate("8:0", 100, 4096),
    _rate("8:16", 100, 4096),
    _rate("8:32", 100, 4096),
    _rate("8:48", 40, 4096),
    _rate("9:0", 50, 4096, "block samples"),
)
_UNKNOWN = (
    "disk-unknown",
    "whether the disk of 253:9 was busy is unknown",
    "252:5, 8:0 and 3 more",
)

CHECKS = [
    Check(
        folder="stacked",
        query="stalls",
        keep=lambda row: row["kind"] == "fsync",
        rows=[
            _stall(1, "253:0", 0.5, "device latency"),
            _stall(2, "253:1", 0.25, "unknown"),
            _stall(3, "9:0", 0.75, "device latency"),
            _stall(4, "253:3", 0.5, "device latency"),
            _stall(6, "252:5", 0.5, "device latency"),
        ],
    ),
    Check(
        folder="plain",
        query="stalls",
        keep=lambda row: row["kind"] == "fsync" and row["tid"] != 6,
        rows=[
            _stall(1, "253:0", None, "unknown"),
            _stall(2, "253:1", None, "unknown"),
            _stall(3, "9:0", None, "unknown"),
            _stall(4, "253:3", None, "unknown"),
        ],
    ),
    Check(
        folder="stacked",
        query="lost_time",
        keep=lambda row: row["kind"] == "throttle",
        rows=[
            {"tid": 5, "bdi": "btrfs-1", "device_ratio": 0.75, "finding": "slow_device"},
            {"tid": 7, "bdi": "253:9", "device_ratio": None, "finding": "disk_unknown"},
        ],
        warning_words=_UNKNOWN,
    ),
    Check(
        folder="plain",
        query="lost_time",
        keep=lambda row: row["kind"] == "throttle",
        rows=[
            {"tid": 5, "bdi": "btrfs-1", "device_ratio": None, "finding": "disk_unknown"},
            {"tid": 7, "bdi": "253:9", "device_ratio": None, "finding": "disk_unknown"},
        ],
        warning_words=(*_UNKNOWN, "whether the disk of btrfs-1 was busy is unknown"),
    ),
    Check(
        folder="stacked",
        query="disk_rates",
        rows=[
            *_OWN_RATES,
            _rate("253:0", 100, 4096),
            _rate("253:1", 100, 4096),
            _rate("253:2", 150, 8192),
            _rate("253:3", 150, 8192),
            _rate("btrfs-1", 150, 8192),
        ],
    ),
    Check(folder="plain", query="disk_rates", rows=_OWN_RATES),
    # Each disk once, under its own name.
    Check(
        folder="stacked",
        query="throughput_by_device",
        rows=[{"device": disk, "written_bytes": 4096} for disk in _DISKS],
    ),
    Check(
        folder="stacked",
        query="block_latency",
        rows=[{"device": disk, "bytes": 4096} for disk in _DISKS],
    ),
    Check(
        folder="stacked",
        query="throughput_by_device",
        options=("--bdi", "btrfs-1"),
        rows=[{"device": disk, "written_bytes": 4096} for disk in ("8:16", "8:32")],
    ),
    Check(
        folder="stacked",
        query="block_latency",
        options=("--bdi", "253:1"),
        rows=[{"device": "8:0", "bytes": 4096}],
    ),
    Check(
        folder="stacked",
        query="stalls_evidence",
        keep=lambda row: row["evidence"] == "requests in flight" and row["tid"] == 4,
        rows=[{"detail": "1 on 253:3"}],
    ),
    Check(
        folder="stacked",
        query="stall_facts",
        keep=lambda row: row["tid"] == 3,
        rows=[{"bdi": "9:0", "written_bytes": 8192}],
    ),
    # What ended the wait.
    Check(
        folder="stacked",
        sql="SELECT s.tid, r.source, r.source_ts FROM wb_release AS r"
        " JOIN wb_stall AS s ON s.wait_id = r.wait_id WHERE s.tid IN (1, 3)",
        rows=[
            {"tid": 1, "source": "request", "source_ts": at(100)},
            {"tid": 3, "source": "request", "source_ts": at(350)},
        ],
    ),
    Check(
        folder="stacked",
        sql="SELECT bdi, device, mount FROM wb_device",
        rows=[
            {"bdi": "253:0", "device": "dm-0", "mount": "/"},
            {"bdi": "btrfs-1", "device": "dm-3", "mount": "/data"},
        ],
    ),
    Check(
        folder="stacked",
        sql="SELECT bdi FROM _swap_disk",
        rows=[{"bdi": "253:0"}, {"bdi": "253:1"}, {"bdi": "8:0"}],
    ),
]
