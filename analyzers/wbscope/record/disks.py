# SPDX-License-Identifier: Apache-2.0
"""Is the run written to the disk that is under test? Then the recorder throttles itself."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["shared_disks"]

_DEVICES = Path("/sys/dev/block")
# A path alone, or the value of an option: of=/mnt/x, --directory=/mnt.
_PATH = re.compile(r"^(?:[\w-]+=)?(\.{0,2}/.*|[\w.-]+/.*)$")


def shared_disks(output: Path, command: Sequence[str], cwd: Path) -> tuple[str, ...]:
    """Disks of the output folder that the command can write to too.

    It is taken to write where it runs and to every path on its command line.
    """
    own = _disks(output)
    places = [cwd]
    for word in command[1:]:
        for part in re.split(r"[\s;|&<>'\"]+", word):
            if match := _PATH.match(part):
                places.append(cwd / match[1])
    tested = set().union(*(_disks(place) for place in places)) if command else set()
    return tuple(sorted(own & tested))


def _disks(path: Path) -> set[str]:
    """The disks below the file system of a path; none for one without (tmpfs, NFS)."""
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        number = path.stat().st_dev
    except OSError:
        return set()
    return _below(_DEVICES / f"{os.major(number)}:{os.minor(number)}", 0)


def _below(device: Path, depth: int) -> set[str]:
    try:
        real = device.resolve(strict=True)
    except OSError:
        return set()
    if depth > 8:
        return {real.name}
    if (real / "partition").exists():
        real = real.parent
    if (backing := real / "loop/backing_file").exists():
        return _disks(Path(backing.read_text().strip())) | {real.name}
    slaves = list((real / "slaves").glob("*"))
    if slaves:  # device mapper, md
        return set().union(*(_below(slave, depth + 1) for slave in slaves))
    return {real.name}
