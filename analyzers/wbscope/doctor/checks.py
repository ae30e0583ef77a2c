# SPDX-License-Identifier: Apache-2.0
"""What of this machine matters for a recording: HZ, BTF, PSI, cgroups, mounts, probes.

Nothing is ever advised to be mounted over something: a mount over /sys/fs/cgroup hides every
controller of version 1 from whoever uses it.
Sources: include/linux/backing-dev.h, inode_cgwb_enabled(): memory and io on version 2;
proc_pid_mountinfo(5).
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath

from wbscope.base.errors import SetupError
from wbscope.base.system import plain_path
from wbscope.record.choose import INSTANCE_PREFIX, Instance
from wbscope.record.machine import kernel_hz
from wbscope.record.probes import Probes, make_probes, make_waits, remove_probes


class Status(StrEnum):
    """`missing` means that something cannot be recorded, `fails` that nothing can."""

    ok = "ok"
    missing = "missing"
    fails = "fails"


@dataclass(frozen=True)
class Check:
    """What was looked at, what was found, and the command that helps."""

    name: str
    status: Status
    found: str
    fix: str | None = None


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


def probe_checks(tracefs: Path) -> list[Check]:
    """The probes and the event of blocked tasks are made and removed, as record does."""
    instance, name = Instance(tracefs, f"{INSTANCE_PREFIX}{os.getpid()}-doctor"), "bytes and waits"
    try:
        made, waits = make_probes(instance), make_waits(instance)
    except SetupError as error:
        return [Check(name, Status.missing, f"not known: {error.message}", error.fix)]
    finally:
        instance.remove()
        remove_probes(tracefs, instance.name)
    exact = f"exact, by {made.kind} (arguments {made.arguments})"
    ended = "each sleep with who ended it, by a synthetic event"
    return [
        _made(made, name, exact, "by events only, at least so much"),
        _made(waits, "blocked tasks", ended, "only by profile deep"),
    ]


def _made(made: Probes, name: str, found: str, without: str) -> Check:
    if made.kind:
        return Check(name, Status.ok, found)
    return Check(name, Status.missing, f"{without}: {made.why}", made.fix)


_CGROUPS_NAME = "cgroup 2"
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
        return Check(_CGROUPS_NAME, Status.missing, found, "sudo wbscope doctor")
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
    return Check(_CGROUPS_NAME, Status.missing, found, fix)


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
    return Check(_CGROUPS_NAME, Status.ok, f"{place}, which has memory and io")


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


_BTF = Path("/sys/kernel/btf/vmlinux")
_BDI = Path("/sys/kernel/debug/bdi")
_PSI = Path("/proc/pressure/io")
_MS_PER_S = 1000


def kernel_check() -> Check:
    return Check("kernel", Status.ok, f"{platform.release()}, {platform.machine()}")


def machine_checks() -> Iterator[Check]:
    """None of these stops a recording."""
    yield _hz()
    yield _exists(_BTF, "BTF", "for BPF programs", "a kernel with CONFIG_DEBUG_INFO_BTF")
    yield _exists(_BDI, "bdi statistics", "debugfs", "mount -t debugfs nodev /sys/kernel/debug")
    yield _exists(_PSI, "pressure (PSI)", "", "boot with psi=1, a kernel with CONFIG_PSI")
    yield cgroup_check_here()
    readable = os.access("/proc/kallsyms", os.R_OK)
    yield Check(
        "kallsyms",
        Status.ok if readable else Status.missing,
        "readable" if readable else "not there: no names of functions",
        None if readable else "a kernel with CONFIG_KALLSYMS",
    )


def _hz() -> Check:
    hz = kernel_hz()
    if hz is None:
        fix = f"copy the kernel's configuration to /boot/config-{platform.release()}"
        return Check("HZ", Status.missing, "not known before a run: it is told from pauses", fix)
    step = f"{_MS_PER_S / hz:g}"
    return Check("HZ", Status.ok, f"{hz}: pauses are multiples of {step} ms")


def _exists(path: Path, name: str, use: str, fix: str) -> Check:
    try:
        path.stat()
    except PermissionError:
        return Check(
            name, Status.missing, f"not known: {path} cannot be seen", "sudo wbscope doctor"
        )
    except OSError:
        pass
    else:
        return Check(name, Status.ok, str(path))
    return Check(name, Status.missing, f"no {path}{f' ({use})' if use else ''}", fix)
