# SPDX-License-Identifier: Apache-2.0
"""The disks that file systems and swap are on: the files `devices` and `stacks`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from wbscope.base.procfiles import plain_path, text_of

__all__ = ["devices_text", "stacks_text"]

_CLASS = Path("/sys/class/block")
_BTRFS = Path("/sys/fs/btrfs")
_PROC = Path("/proc")
# What a disk is, and the settings that change how it writes; under /sys/block/NAME.
_FACTS = (
    "size",
    "device/vendor",
    "device/model",
    "queue/rotational",
    "queue/write_cache",
    "queue/logical_block_size",
    "queue/scheduler",
    "queue/nr_requests",
    "queue/max_sectors_kb",
    "queue/read_ahead_kb",
    "queue/wbt_lat_usec",
)
_MOST_DEPTH = 8


def devices_text(proc: Path = _PROC, block: Path = _CLASS) -> str:
    """`== NAME` and a line for each fact, as sysfs prints it; size is in sectors of 512 bytes.

    Loop devices are what their name says, wherever their file lies: its path changes.
    """
    disks: set[str] = set()
    for source in _sources(proc):
        disks |= _disks(block, source, 0)
    return "".join(f"== {name}\n{_facts(block / name)}" for name in sorted(disks))


def stacks_text(block: Path = _CLASS, btrfs: Path = _BTRFS) -> str:
    """A line for each device that lies on another one: its number, that of the disk below.

    Of a partition below, its disk: requests are on that. A btrfs has the name of its bdi.
    """
    lines = [*_slaves(block), *_btrfs_devices(block, btrfs)]
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


def _slaves(block: Path) -> Iterator[str]:
    """Of device mapper and md."""
    for path in sorted(block.glob("*/slaves/*")):
        yield from _pair(text_of(path.parents[1] / "dev"), _disk(block / path.name))


def _btrfs_devices(block: Path, btrfs: Path) -> Iterator[str]:
    for path in sorted(btrfs.glob("*/devices/*")):
        with contextlib.suppress(OSError):
            bdi = (path.parents[1] / "bdi").resolve(strict=True).name
            yield from _pair(bdi, _disk(block / path.name))


def _pair(above: str, disk: Path | None) -> Iterator[str]:
    below = text_of(disk / "dev").strip() if disk else ""
    if above.strip() and below:
        yield f"{above.strip()} {below}"


def _disk(device: Path) -> Path | None:
    """The disk of a partition, else the device itself; None where it is not there."""
    with contextlib.suppress(OSError):
        real = device.resolve(strict=True)
        return real.parent if (real / "partition").exists() else real
    return None


def _sources(proc: Path) -> Iterator[str]:
    """Names of the devices of mounts and swap areas."""
    text = text_of(proc / "self/mountinfo")
    for source in re.findall(r" - \S+ (/dev/\S+) ", text) + re.findall(
        r"^(/dev/\S+)", text_of(proc / "swaps"), re.MULTILINE
    ):
        yield Path(plain_path(source)).resolve().name


def _disks(block: Path, name: str, depth: int) -> set[str]:
    real = _disk(block / name)
    if real is None:
        return set()
    slaves = [path.name for path in sorted(real.glob("slaves/*"))]
    below: set[str] = set()
    if depth < _MOST_DEPTH:  # device mapper, md
        for slave in slaves:
            below |= _disks(block, slave, depth + 1)
    return below | {real.name}


def _facts(disk: Path) -> str:
    found = ((name, " ".join(text_of(disk / name).split())) for name in _FACTS)
    return "".join(f"{name} {value}\n" for name, value in found if value)
