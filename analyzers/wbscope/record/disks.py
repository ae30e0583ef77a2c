# SPDX-License-Identifier: Apache-2.0
"""Is the run written to the disk that is under test? Then its writes take a share of it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.procfiles import plain_path

__all__ = ["Mount", "mount_of", "shared_disks"]

_DEVICES = Path("/sys/dev/block")
_MOUNTS = Path("/proc/self/mountinfo")
# A path alone, or the value of an option: of=/mnt/x, --directory=/mnt.
_PATH = re.compile(r"^(?:[\w-]+=)?(\.{0,2}/.*|[\w.-]+/.*)$")
# dd of=x, fio --filename=x: in the folder where it runs.
_NAME = re.compile(r"^(?:of|-{1,2}(?:filename|directory|output))=[^/]+$")
_NO_DISKS = ("/dev/", "/proc/", "/sys/")
# Of anonymous devices, those whose files are in memory or on another machine.
_ELSEWHERE = re.compile(r"tmpfs|ramfs|devtmpfs|nfs\d?|cifs|smb3|9p|virtiofs|ceph|afs|fuse\.sshfs|"
                        r"proc|sysfs|cgroup2?|tracefs|debugfs|devpts|mqueue|hugetlbfs")  # fmt: skip
_DEEPEST = 8


@dataclass(frozen=True)
class Mount:
    """What is mounted where, of a line of mountinfo."""

    place: str
    kind: str
    source: str
    options: str


def shared_disks(
    output: Path, command: Sequence[str], cwd: Path, mounts: Path = _MOUNTS
) -> tuple[str, ...]:
    """Disks of the output folder that the command can write to too.

    It is taken to write to every path on its command line; where none says where else, to
    where it runs.  Without a command, anything may write anywhere.
    """
    own = _disks(output, mounts, 0)
    if not command:
        return tuple(sorted(own))
    places = [place for word in command[1:] for place in _places(word)]
    if not any(place.is_absolute() for place in places) or _runs_in(command, cwd):
        places.append(cwd)
    return tuple(sorted(own & set().union(*(_disks(cwd / place, mounts, 0) for place in places))))


def _places(word: str) -> list[Path]:
    """Files that a word of the command line names."""
    found = []
    for part in re.split(r"[\s;|&<>'\"]+", word):
        match = _PATH.match(part)
        if match is None:
            continue
        # /dev/zero is no disk, /dev/sdb is one.
        if not match[1].startswith(_NO_DISKS) or Path(match[1]).is_block_device():
            found.append(Path(match[1]))
    return found


def _runs_in(command: Sequence[str], cwd: Path) -> bool:
    """It names a file that is where it runs."""
    parts = [part for word in command[1:] for part in re.split(r"[\s;|&<>'\"]+", word)]
    return any(_NAME.match(part) or (part and (cwd / part).is_file() and "/" not in part)
               for part in parts)  # fmt: skip


def _disks(path: Path, mounts: Path, depth: int) -> set[str]:
    """The disks below the file system of a path; none for one without (tmpfs, NFS)."""
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        told = path.stat()
    except OSError:
        return set()
    number = told.st_rdev if stat.S_ISBLK(told.st_mode) else told.st_dev
    if os.major(number):
        return _below(_DEVICES / f"{os.major(number)}:{os.minor(number)}", mounts, depth)
    return _of_mount(mount_of(path, mounts), mounts, depth)


def _of_mount(mount: Mount | None, mounts: Path, depth: int) -> set[str]:
    """An anonymous device: btrfs names its disk, overlayfs the folder that takes the writes."""
    if mount is None or depth > _DEEPEST or _ELSEWHERE.fullmatch(mount.kind):
        return set()
    if mount.source.startswith("/"):
        return _device_of(mount.source, mounts, depth + 1)
    # The upper folder may be out of sight in a container; the mount is then all there is to tell.
    found = {f"{mount.kind} {mount.place}"}
    if (upper := re.search(r"\bupperdir=([^,]+)", mount.options)) and Path(upper[1]).exists():
        found |= _disks(Path(upper[1]), mounts, depth + 1)
    return found


def _device_of(source: str, mounts: Path, depth: int) -> set[str]:
    try:
        number = os.stat(source).st_rdev
    except OSError:
        return {source}
    return _below(_DEVICES / f"{os.major(number)}:{os.minor(number)}", mounts, depth)


def mount_of(path: Path, mounts: Path = _MOUNTS) -> Mount | None:
    """The last one whose place the path is below."""
    real = os.path.realpath(path)
    best: Mount | None = None
    for line in mounts.read_text(encoding="utf-8", errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if len(left) < 6 or len(right) < 3:
            continue
        place = plain_path(left[4])
        if not (real == place or real.startswith(place.rstrip("/") + "/")):
            continue
        if best is None or len(place) >= len(best.place):
            best = Mount(place, right[0], right[1], right[2])
    return best


def _below(device: Path, mounts: Path, depth: int) -> set[str]:
    try:
        real = device.resolve(strict=True)
    except OSError:
        return set()
    if depth > _DEEPEST:
        return {real.name}
    if (real / "partition").exists():
        real = real.parent
    if (backing := real / "loop/backing_file").exists():
        return _disks(Path(backing.read_text().strip()), mounts, depth + 1) | {real.name}
    slaves = list((real / "slaves").glob("*"))
    if slaves:  # device mapper, md
        return set().union(*(_below(slave, mounts, depth + 1) for slave in slaves))
    return {real.name}
