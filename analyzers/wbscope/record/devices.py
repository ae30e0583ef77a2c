# SPDX-License-Identifier: Apache-2.0
"""The disks that file systems and swap are on, and how they are set: the file `devices`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["devices_text"]

_CLASS = Path("/sys/class/block")
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


def _sources(proc: Path) -> Iterator[str]:
    """Names of the devices of mounts and swap areas."""
    text = _text(proc / "self/mountinfo")
    for source in re.findall(r" - \S+ (/dev/\S+) ", text) + re.findall(
        r"^(/dev/\S+)", _text(proc / "swaps"), re.MULTILINE
    ):
        yield Path(source).resolve().name


def _disks(block: Path, name: str, depth: int) -> set[str]:
    device = block / name
    try:
        real = device.resolve(strict=True)
    except OSError:
        return set()
    if (real / "partition").exists():
        real = real.parent
    slaves = [path.name for path in sorted(real.glob("slaves/*"))]
    below: set[str] = set()
    if depth < _MOST_DEPTH:  # device mapper, md
        for slave in slaves:
            below |= _disks(block, slave, depth + 1)
    return below | {real.name}


def _facts(disk: Path) -> str:
    found = ((name, " ".join(_text(disk / name).split())) for name in _FACTS)
    return "".join(f"{name} {value}\n" for name, value in found if value)


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    return ""
