# SPDX-License-Identifier: Apache-2.0
"""A btrfs on a loop device: the run says on which disk it lies, and gives it the disk's numbers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.live import Recorder

_MIB = 1 << 20
_WRITTEN = 23


@pytest.fixture
def btrfs(tmp_path: Path) -> Iterator[Path]:
    """A small one, gone afterwards with its loop device."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("no mkfs.btrfs; run: make guest-kernels")
    image, mount = tmp_path / "image", tmp_path / "mnt"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(256 * _MIB)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True, capture_output=True)
    command = ["mount", "-o", "loop", image, mount]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop mount: {done.stderr.strip()}")
    yield mount
    subprocess.run(["umount", mount], check=True)


def _loop(image: Path) -> str:
    """Number of the loop device of a file."""
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        if backing.read_text().strip() == os.path.realpath(image):
            return (backing.parents[1] / "dev").read_text().strip()
    raise AssertionError("no loop device")


def test_a_btrfs_has_the_rate_of_its_disk(recorder: Recorder, btrfs: Path, tmp_path: Path) -> None:
    disk = _loop(tmp_path / "image")
    write = ["dd", "if=/dev/zero", f"of={btrfs}/x", "bs=1M", f"count={_WRITTEN}", "conv=fsync"]
    events = ("-e", "block:block_rq_issue", "-e", "block:block_rq_complete")
    done = recorder.record(*events, "--no-report", "-o", "run", "--", *write)
    assert done.returncode == 0, done.stderr
    lines = (recorder.folder / "run/stacks").read_text().splitlines()
    (bdi,) = (line.split()[0] for line in lines if line.split()[1] == disk)
    assert bdi.startswith("btrfs-")
    assert (
        f"{bdi} {disk.replace('7:', 'loop')} {btrfs} btrfs"
        in (recorder.folder / "run/bdis").read_text()
    )
    rates = {row["bdi"]: row for row in recorder.sql("run", "SELECT * FROM wb_disk_rate")}
    # Of its own bytes it has a count (BdiWritten): the disk has metadata beside them.
    own, written = rates[bdi].pop("written_bytes"), rates[disk].pop("written_bytes")
    assert _WRITTEN * _MIB <= own <= written
    assert rates[bdi] == rates[disk] | {"bdi": bdi}
    assert rates[bdi]["basis"] == "requests"
