# SPDX-License-Identifier: Apache-2.0
"""Disks of mounts and swap, and what lies on what: partitions, device mapper and btrfs in a made-up
sysfs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import wbscope.record
from wbscope.record.machine import devices_text, stacks_text


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
    assert stacks_text(tmp_path, tmp_path) == ""


@pytest.fixture
def stacked(tmp_path: Path) -> Path:
    """/sys: dm-1 (253:1) on dm-0 (253:0), that on sda2 and sdb; one btrfs on dm-1 and sdc1, and one
    whose disk is gone."""
    sys = tmp_path / "sys"
    real, block = sys / "devices", sys / "class/block"
    block.mkdir(parents=True)
    (sys / "block").mkdir()
    for name, number in (
        ("sda", "8:0"), ("sda/sda2", "8:2"), ("sdb", "8:16"), ("sdc", "8:32"),
        ("sdc/sdc1", "8:33"), ("dm-0", "253:0"), ("dm-1", "253:1"),
    ):  # fmt: skip
        (real / name / "slaves").mkdir(parents=True)
        (real / name / "dev").write_text(f"{number}\n")
        (block / Path(name).name).symlink_to(real / name)
        if "/" in name:
            (real / name / "partition").write_text("1\n")
        else:
            (sys / "block" / name).symlink_to(real / name)
    for above, below in (("dm-0", "sda/sda2"), ("dm-0", "sdb"), ("dm-1", "dm-0")):
        (real / above / "slaves" / Path(below).name).symlink_to(real / below)
    for number, devices in ((1, ("dm-1", "sdc/sdc1")), (2, ("gone",))):
        (real / f"bdi/btrfs-{number}").mkdir(parents=True)
        (sys / f"fs/btrfs/uuid{number}/devices").mkdir(parents=True)
        (sys / f"fs/btrfs/uuid{number}/bdi").symlink_to(real / f"bdi/btrfs-{number}")
        for device in devices:
            link = sys / f"fs/btrfs/uuid{number}/devices" / Path(device).name
            link.symlink_to(real / device)
    return sys


_STACKS = "253:0 8:0\n253:0 8:16\n253:1 253:0\nbtrfs-1 253:1\nbtrfs-1 8:32\n"


def test_what_lies_on_what(stacked: Path) -> None:
    assert stacks_text(stacked / "class/block", stacked / "fs/btrfs") == _STACKS


@pytest.mark.parametrize("busybox", [False, True])
def test_the_script_for_another_machine_says_the_same(stacked: Path, busybox: bool) -> None:
    script = (Path(wbscope.record.__path__[0]) / "remote.sh").read_text()
    function = script[script.index("\nstacks() {") : script.index("\nsave() {")]
    function = function.replace("/sys/", f"{stacked}/") + "\nstacks"
    shell = ["busybox", "sh", "-c", function] if busybox else ["sh", "-c", function]
    told = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert sorted(told.stdout.splitlines()) == _STACKS.splitlines()
