# SPDX-License-Identifier: Apache-2.0
"""Disks of mounts and swap, found through partitions and device mapper in a made-up sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest
from wbscope.record.devices import devices_text


@pytest.fixture
def sysfs(tmp_path: Path) -> tuple[Path, Path]:
    """dm-0 on a partition of sda; vda with no partition; sdb that nothing is on."""
    proc, devices, block = tmp_path / "proc", tmp_path / "devices", tmp_path / "block"
    (proc / "self").mkdir(parents=True)
    block.mkdir()
    for name, size in (("sda", 100), ("sdb", 200), ("vda", 300), ("dm-0", 90)):
        (devices / name / "queue").mkdir(parents=True)
        (devices / name / "size").write_text(f"{size}\n")
        (devices / name / "queue/scheduler").write_text("[none]  bfq\n")
        (block / name).symlink_to(devices / name)
    (devices / "sda/sda1").mkdir()
    (devices / "sda/sda1/partition").write_text("1\n")
    (devices / "sda/device").mkdir()
    (devices / "sda/device/model").write_text("DISK 9000   \n")
    (block / "sda1").symlink_to(devices / "sda/sda1")
    (devices / "dm-0/slaves").mkdir()
    (devices / "dm-0/slaves/sda1").symlink_to(devices / "sda/sda1")
    (proc / "self/mountinfo").write_text(
        "25 1 253:0 / / rw - ext4 /dev/dm-0 rw\n30 25 0:5 / /proc rw - proc proc rw\n"
    )
    (proc / "swaps").write_text("Filename Type Size Used Priority\n/dev/vda partition 1 0 -2\n")
    return proc, block


def test_whole_disks_of_mounts_and_swap(sysfs: tuple[Path, Path]) -> None:
    assert devices_text(*sysfs) == (
        "== dm-0\nsize 90\nqueue/scheduler [none] bfq\n"
        "== sda\nsize 100\ndevice/model DISK 9000\nqueue/scheduler [none] bfq\n"
        "== vda\nsize 300\nqueue/scheduler [none] bfq\n"
    )


def test_machine_without_disks(tmp_path: Path) -> None:
    assert devices_text(tmp_path, tmp_path) == ""
