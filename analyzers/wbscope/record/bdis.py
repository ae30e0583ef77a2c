# SPDX-License-Identifier: Apache-2.0
"""Which backing device, as events call it, each mounted file system writes to: the file `bdis`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["bdis_text"]

_PROC = Path("/proc")
_SYS = Path("/sys")
# man 5 proc: id, parent, major:minor, root, mount point, options, "-", kind, source
_MOUNT = re.compile(r"^\d+ \d+ (\d+:\d+) \S+ (\S+) .*? - (\S+) (\S+)", re.MULTILINE)


def bdis_text(proc: Path = _PROC, sys: Path = _SYS) -> str:
    """A line for each mount: bdi, device, mount point, kind; blanks are as in mountinfo (\\040).

    A partition has the bdi of its disk, btrfs one of its own, NFS and FUSE that of the mount.
    """
    text = ""
    with contextlib.suppress(OSError):
        text = (proc / "self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    return "".join(f"{line}\n" for line in dict.fromkeys(_lines(text, sys)))


def _lines(text: str, sys: Path) -> Iterator[str]:
    for number, place, kind, source in _MOUNT.findall(text):
        if not source.startswith("/dev/"):
            if (sys / "class/bdi" / number).exists():
                yield f"{number} {source} {place} {kind}"
            continue
        name = Path(source).resolve().name
        bdi = _btrfs(sys, name) if kind == "btrfs" else _disk(sys, name)
        if bdi is not None:
            yield f"{bdi} {name} {place} {kind}"


def _disk(sys: Path, name: str) -> str | None:
    with contextlib.suppress(OSError):
        real = (sys / "class/block" / name).resolve(strict=True)
        if (real / "partition").exists():
            real = real.parent
        return (real / "dev").read_text(encoding="ascii").strip()
    return None


def _btrfs(sys: Path, name: str) -> str | None:
    for device in (sys / "fs/btrfs").glob(f"*/devices/{name}"):
        with contextlib.suppress(OSError):
            return (device.parents[1] / "bdi").resolve(strict=True).name
    return None
