# SPDX-License-Identifier: Apache-2.0
"""What is mounted where, as a path finds it: what lies below another mount is hidden.

Source: proc_pid_mountinfo(5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from wbscope.base.procfiles import plain_path

__all__ = ["Mount", "mounted_on", "read_mounts", "visible"]

_FIRST_FIELDS = 6


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo."""

    number: int
    below: int  # the mount on which it lies
    place: str
    kind: str
    options: tuple[str, ...]  # of the file system: of cgroup 1, its controllers


def read_mounts(text: str) -> list[Mount]:
    """Those of /proc/PID/mountinfo; a line of another form is left out."""
    found = []
    for line in text.splitlines():
        first, dash, last = line.partition(" - ")
        fields, others = first.split(" "), last.split(" ")
        numbers = fields[:2]
        if not dash or len(fields) < _FIRST_FIELDS or not all(n.isdecimal() for n in numbers):
            continue
        number, below = int(numbers[0]), int(numbers[1])
        options = tuple(others[-1].split(",")) if len(others) > 1 else ()
        found.append(Mount(number, below, plain_path(fields[4]), others[0], options))
    return found


def mounted_on(mounts: Sequence[Mount], place: str) -> Mount | None:
    """The mount that a path leads to, however far above the path it was made."""
    numbers = {mount.number for mount in mounts}
    on: dict[tuple[int | None, str], Mount] = {}
    for mount in mounts:
        # What the root lies on is not told to a process that cannot reach it.
        apart = mount.below not in numbers or mount.below == mount.number
        on[None if apart else mount.below, mount.place] = mount
    here: Mount | None = None
    path = PurePosixPath(place)
    for step in (*reversed(path.parents), path):
        seen: set[int] = set()
        while over := on.get((here.number if here else None, str(step))):
            if over.number in seen:
                break
            seen.add(over.number)
            here = over
    return here


def visible(mounts: Sequence[Mount]) -> list[Mount]:
    """Without those that another one hides."""
    return [mount for mount in mounts if mounted_on(mounts, mount.place) == mount]
