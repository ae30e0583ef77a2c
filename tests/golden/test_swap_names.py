# SPDX-License-Identifier: Apache-2.0
"""On which disk swap lies: names of disks that begin as another one's."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from support.kernel_events import formats
from support.tracedat import Trace

_STAT = " 10 0 80 5 10 0 2048 90 0 500 500\n"
_DISKS = {
    "dm-1": "253:1",
    "dm-12": "253:12",
    "md1": "9:1",
    "md12": "9:12",
    "nvme0n1": "259:0",
    "nvme0n10": "259:7",
    "sda": "8:0",
    "sdaa": "65:160",
    "mmcblk0": "179:0",
    "zram0": "252:0",
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/dev/dm-12", "253:12"),
        ("/dev/dm-1", "253:1"),
        ("/dev/dm-13", None),
        ("/dev/md12", "9:12"),
        ("/dev/md1p2", "9:1"),
        ("/dev/nvme0n10p2", "259:7"),
        ("/dev/nvme0n1p12", "259:0"),
        ("/dev/sda5", "8:0"),
        ("/dev/sdaa5", "65:160"),
        ("/dev/sdab", None),
        ("/dev/mmcblk0p1", "179:0"),
        ("/dev/mmcblk0boot0", None),
        ("/dev/zram0", "252:0"),
        ("/a\\040[b]/swap", "8:17"),  # a space, and no pattern
        ("/ab/swap", "8:1"),
    ],
)
def test_the_disk_of_a_path(tmp_path: Path, path: str, wanted: str | None) -> None:
    trace = Trace(formats("global_dirty_state"))
    trace.event(0, 10**9, 1, "global_dirty_state", {"nr_dirty": 1})
    trace.write(tmp_path / "trace.dat")
    disks = "".join(f"== {name}\ndev {number}\n{_STAT}" for name, number in _DISKS.items())
    (tmp_path / "block.before").write_text(disks)
    mounts = (("8:1", "sda1", "/"), ("8:17", "sdb1", "/a\\040[b]"))
    (tmp_path / "mounts").write_text(
        "".join(f"1 0 {n} / {m} rw - ext4 /dev/{d} rw\n" for n, d, m in mounts)
    )
    head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    (tmp_path / "swaps").write_text(f"{head}{path}        partition\t976892\t1000\t-2\n")
    with wbscope.open(tmp_path) as run:
        (row,) = run.sql("SELECT bdi FROM _swap_area").records()
    assert row["bdi"] == wanted
