# SPDX-License-Identifier: Apache-2.0
"""Which cgroup hierarchy owns the memory controller: only version 2 throttles writers by cgroup.

Nothing is ever advised to be mounted over something: a mount over /sys/fs/cgroup hides every
controller of version 1 from whoever uses it.
Source: include/linux/backing-dev.h, inode_cgwb_enabled(): memory and io on version 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from wbscope.doctor.check import Check, Status
from wbscope.doctor.mounts import Mount, mounted_on, read_mounts, visible

__all__ = ["cgroup_check", "cgroup_check_here"]

_NAME = "cgroup 2"
_PLACES = ("/sys/fs/cgroup", "/run/cgroup2")  # the usual one, and one that nobody else uses
_BOOT = "boot with systemd.unified_cgroup_hierarchy=1, or cgroup_no_v1=all without systemd"
_NO_THROTTLING = "no dirty throttling by cgroup"
# Their names in version 2, and in /proc/cgroups and version 1.
_NEEDED = {"memory": "memory", "io": "blkio"}

Controllers = Callable[[str], str | None]


def cgroup_check_here() -> Check:
    """Of this process."""
    mountinfo, cgroups = _text("/proc/self/mountinfo"), _text("/proc/cgroups")
    if mountinfo is None:
        found = "not known: /proc/self/mountinfo cannot be read"
        return Check(_NAME, Status.missing, found, "sudo wbscope doctor")
    return cgroup_check(mountinfo, cgroups, lambda place: _text(f"{place}/cgroup.controllers"))


def cgroup_check(mountinfo: str, cgroups: str | None, controllers: Controllers) -> Check:
    """From the texts of /proc/self/mountinfo and /proc/cgroups (None: there is none).

    `controllers` reads cgroup.controllers of a version 2 hierarchy that is mounted there.
    """
    mounts = read_mounts(mountinfo)
    seen = visible(mounts)
    first = {name: _first_version(seen, old) for name, old in _NEEDED.items()}
    second = [mount.place for mount in seen if mount.kind == "cgroup2"]
    if cgroups is None and not second and not any(first.values()):
        fix = "a kernel with CONFIG_CGROUPS and CONFIG_MEMCG"
        return _missing("this kernel has no cgroups", fix)
    hierarchies = _hierarchies(cgroups or "")
    if hierarchies.get(_NEEDED["memory"], (0, True))[1] is False:
        found = f"the memory controller is turned off: {_NO_THROTTLING}"
        return _missing(found, "boot without cgroup_disable=memory")
    for name, old in _NEEDED.items():
        if first[name] or hierarchies.get(old, (0, True))[0] != 0:
            return _owned_by_first(name, first[name], second)
    if not second:
        return _not_mounted(mounts, hidden=any(mount.kind == "cgroup2" for mount in mounts))
    return _owned_by_second(second[0], controllers(second[0]))


def _missing(found: str, fix: str) -> Check:
    return Check(_NAME, Status.missing, found, fix)


def _owned_by_first(name: str, place: str | None, second: Sequence[str]) -> Check:
    where = f"mounted on {place}" if place else "mounted nowhere here"
    other = f"; version 2, on {second[0]}, is without it" if second else ""
    found = f"the {name} controller is on cgroup version 1, {where}{other}: {_NO_THROTTLING}"
    return _missing(found, _BOOT)


def _owned_by_second(place: str, controllers: str | None) -> Check:
    if controllers is None:
        found = f"{place}/cgroup.controllers cannot be read"
        return _missing(f"not known: {found}", "sudo wbscope doctor")
    absent = [name for name in _NEEDED if name not in controllers.split()]
    if absent:
        found = f"{place}, without {' and '.join(absent)}: {_NO_THROTTLING} can be seen here"
        fix = "a kernel with CONFIG_MEMCG and CONFIG_BLK_CGROUP; a container's host has to delegate"
        return _missing(found, f"{fix} {' and '.join(absent)}")
    return Check(_NAME, Status.ok, f"{place}, which has memory and io")


def _not_mounted(mounts: Sequence[Mount], hidden: bool) -> Check:
    """A mount where none is, else none is advised."""
    found = "mounted, but hidden by another mount" if hidden else "not mounted"
    found += ": no names for cgroup_ino"
    for place in _PLACES:
        over = mounted_on(mounts, place)
        if over is not None and over.place == place:
            continue
        make = "" if place == _PLACES[0] else f"mkdir -p {place} && "
        return _missing(found, f"{make}mount -t cgroup2 none {place}")
    return _missing(found, "mount -t cgroup2 none on an empty folder of your own")


def _first_version(seen: Sequence[Mount], controller: str) -> str | None:
    """Where version 1 has it."""
    places = (m.place for m in seen if m.kind == "cgroup" and controller in m.options)
    return next(places, None)


def _hierarchies(text: str) -> dict[str, tuple[int, bool]]:
    """Of /proc/cgroups: 0 is version 2, or none; and whether it is enabled."""
    found = {}
    for line in text.splitlines():
        name, *numbers = line.split()
        if len(numbers) == 3 and all(number.isdecimal() for number in numbers):
            found[name] = (int(numbers[0]), numbers[2] != "0")
    return found


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
