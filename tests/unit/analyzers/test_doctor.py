# SPDX-License-Identifier: Apache-2.0
"""wbscope doctor: the memory controller's owner, and what it prints."""

from __future__ import annotations

import re

import pytest
from wbscope.doctor.checks import (
    Check,
    Status,
    cgroup_check,
    cgroup_check_here,
    mounted_on,
    read_mounts,
    visible,
)
from wbscope.render.catalogue import checks_text

# Who owns the memory controller, and that no mount is advised over another.

_BOOT = "systemd.unified_cgroup_hierarchy=1"
_HEAD = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
_ALL_SECOND = _HEAD + "cpu\t0\t90\t1\nblkio\t0\t90\t1\nmemory\t0\t90\t1\n"
_ALL_FIRST = _HEAD + "cpu\t1\t1\t1\nblkio\t7\t1\t1\nmemory\t4\t22\t1\n"
_BASE = """\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
22 27 0:21 / /proc rw,relatime - proc proc rw
23 27 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw
"""
_SECOND = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
_TMPFS = "31 23 0:28 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n"
_FIRST = (
    _TMPFS
    + """\
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
37 31 0:34 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio
"""
)
_UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"


def _check(mounts: str, cgroups: str | None, **controllers: str) -> Check:
    """`controllers`: by the last part of the place."""
    return cgroup_check(mounts, cgroups, lambda place: controllers.get(place.rpartition("/")[2]))


def _advised_place(check: Check) -> str | None:
    found = re.search(r"mount -t cgroup2 none (/\S+)", check.fix or "")
    return found[1] if found else None


def test_version_2_alone() -> None:
    check = _check(_BASE + _SECOND, _ALL_SECOND, cgroup="cpuset cpu io memory pids")
    assert (check.status, check.fix) == (Status.ok, None)
    assert check.found == "/sys/fs/cgroup, which has memory and io"


def test_version_1_alone() -> None:
    check = _check(_BASE + _FIRST, _ALL_FIRST)
    assert check.status is Status.missing
    assert (
        "memory controller is on cgroup version 1, mounted on /sys/fs/cgroup/memory" in check.found
    )
    assert "no dirty throttling by cgroup" in check.found
    assert "version 2" not in check.found
    assert _BOOT in (check.fix or "")


def test_version_2_beside_version_1_without_memory() -> None:
    check = _check(_BASE + _FIRST + _UNIFIED, _ALL_FIRST, unified="")
    assert "version 2, on /sys/fs/cgroup/unified, is without it" in check.found
    assert _BOOT in (check.fix or "")


def test_version_1_has_memory_and_nobody_mounted_it() -> None:
    check = _check(_BASE, _ALL_FIRST)
    assert "on cgroup version 1, mounted nowhere here" in check.found
    assert _BOOT in (check.fix or "")


def test_version_1_seen_in_mounts_only() -> None:
    """A container may hide /proc/cgroups."""
    check = _check(_BASE + _FIRST, None)
    assert "on cgroup version 1, mounted on /sys/fs/cgroup/memory" in check.found


def test_version_2_has_memory_and_is_mounted_elsewhere() -> None:
    mounts = _BASE + "50 27 0:40 / /mnt/second rw - cgroup2 none rw\n"
    check = _check(mounts, _ALL_SECOND, second="io memory")
    assert (check.status, check.found) == (Status.ok, "/mnt/second, which has memory and io")


def test_version_1_has_only_others() -> None:
    """cpu on version 1, memory and io on version 2: writers are throttled by cgroup."""
    cpu = "37 31 0:34 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    cgroups = _ALL_SECOND.replace("cpu\t0", "cpu\t3")
    check = _check(_BASE + _TMPFS + cpu + _UNIFIED, cgroups, unified="io memory")
    assert check.status is Status.ok


def test_version_1_has_io() -> None:
    blkio = "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
    cgroups = _ALL_SECOND.replace("blkio\t0", "blkio\t2")
    check = _check(_BASE + _TMPFS + blkio + _UNIFIED, cgroups, unified="memory")
    assert "the io controller is on cgroup version 1" in check.found
    assert "no dirty throttling by cgroup" in check.found


def test_a_place_that_was_given_no_controllers() -> None:
    check = _check(_BASE + _SECOND, _ALL_SECOND, cgroup="cpu pids")
    assert check.status is Status.missing
    assert "/sys/fs/cgroup, without memory and io" in check.found
    assert "mount" not in (check.fix or "")


def test_controllers_that_cannot_be_read() -> None:
    check = _check(_BASE + _SECOND, _ALL_SECOND)
    assert check.found == "not known: /sys/fs/cgroup/cgroup.controllers cannot be read"


def test_memory_that_is_turned_off() -> None:
    cgroups = _ALL_SECOND.replace("memory\t0\t90\t1", "memory\t0\t1\t0")
    check = _check(_BASE + _SECOND, cgroups, cgroup="cpu io")
    assert check.fix == "boot without cgroup_disable=memory"


def test_a_kernel_without_cgroups() -> None:
    check = _check(_BASE, None)
    assert check.fix == "a kernel with CONFIG_CGROUPS and CONFIG_MEMCG"


def test_nothing_mounted() -> None:
    check = _check(_BASE, _ALL_SECOND)
    assert check.fix == "mount -t cgroup2 none /sys/fs/cgroup"


def test_nothing_is_mounted_over_a_tmpfs() -> None:
    check = _check(_BASE + _TMPFS, _ALL_SECOND)
    assert check.fix == "mkdir -p /run/cgroup2 && mount -t cgroup2 none /run/cgroup2"


def test_nothing_is_mounted_over_what_hides_it() -> None:
    """Version 2 below a tmpfs, and that below another one."""
    over = "60 30 0:50 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    again = "61 60 0:51 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    check = _check(_BASE + _SECOND + over + again, _ALL_SECOND, cgroup="io memory")
    assert "mounted, but hidden by another mount" in check.found
    assert _advised_place(check) == "/run/cgroup2"


def test_no_place_is_free() -> None:
    own = "62 27 0:52 / /run/cgroup2 rw - tmpfs tmpfs rw\n"
    check = _check(_BASE + _TMPFS + own, _ALL_SECOND)
    assert check.status is Status.missing
    assert _advised_place(check) is None


def test_a_hidden_version_1_owns_memory_all_the_same() -> None:
    """What was mounted over it took nothing from it: /proc/cgroups tells."""
    over = "70 31 0:60 / /sys/fs/cgroup rw - cgroup2 none rw\n"
    check = _check(_BASE + _FIRST + over, _ALL_FIRST, cgroup="")
    assert "mounted nowhere here; version 2, on /sys/fs/cgroup, is without it" in check.found
    assert _BOOT in (check.fix or "")


@pytest.mark.parametrize("cgroups", [None, _HEAD, _ALL_FIRST, _ALL_SECOND, "memory x\n"])
@pytest.mark.parametrize("second", ["", _UNIFIED, _SECOND])
@pytest.mark.parametrize("first", ["", _TMPFS, _FIRST])
def test_no_advice_hides_anything(first: str, second: str, cgroups: str | None) -> None:
    mounts = _BASE + first + second
    for controllers in ({}, {"cgroup": "memory io"}, {"unified": ""}):
        check = _check(mounts, cgroups, **controllers)
        assert (check.fix is None) == (check.status is Status.ok)
        place = _advised_place(check)
        assert place is None or place not in {m.place for m in read_mounts(mounts)}


def test_places_with_spaces() -> None:
    mounts = _BASE + "50 27 0:40 / /mnt/my\\040cgroups\\134x rw - cgroup2 none rw\n"
    check = cgroup_check(mounts, _ALL_SECOND, {"/mnt/my cgroups\\x": "io memory"}.get)
    assert check.found == "/mnt/my cgroups\\x, which has memory and io"


def test_mounts_over_each_other() -> None:
    text = _BASE + (
        "50 27 0:40 / /mnt rw - tmpfs a rw\n"
        "51 50 0:41 / /mnt/in rw - tmpfs b rw\n"
        "52 50 0:42 / /mnt rw - tmpfs c rw\n"  # hides both
        "not a mount\n"
        "53 27 0:43\n"
    )
    mounts = read_mounts(text)
    assert [mount.number for mount in mounts] == [27, 22, 23, 50, 51, 52]
    assert [mount.number for mount in visible(mounts)] == [27, 22, 23, 52]
    there = mounted_on(mounts, "/mnt/in/deeper")
    assert there is not None
    assert there.number == 52


def test_a_root_whose_parent_is_not_told() -> None:
    """As in a container, and in a folder that a process was changed to as its root."""
    for text in (_SECOND.replace("30 23", "30 999"), _BASE.replace("27 1 ", "27 26 ") + _SECOND):
        check = _check(text, _ALL_SECOND, cgroup="io memory")
        assert check.status is Status.ok


def test_a_mount_below_itself_ends() -> None:
    loop = (
        "1 1 0:1 / / rw - rootfs none rw\n"
        "2 3 0:2 / /a rw - tmpfs a rw\n"
        "3 2 0:3 / /a rw - tmpfs b rw\n"
    )
    assert visible(read_mounts(loop))


def test_this_machine() -> None:
    """Whatever it has: a fix where it is not ok, and none that hides a mount."""
    check = cgroup_check_here()
    assert (check.fix is None) == (check.status is Status.ok)
    assert _advised_place(check) != "/sys/fs/cgroup" or "not mounted" in check.found


# What `wbscope doctor` prints: whether it works, then what was looked at.

_KERNEL = Check("kernel", Status.ok, "6.1.0, x86_64")
_USER = Check("user", Status.fails, "nobody", "sudo wbscope doctor")
_TRACEFS = Check("tracefs", Status.fails, "cannot be read", "mount -t tracefs none /sys/...")
_PRESSURE = Check("pressure (PSI)", Status.missing, "not there", "boot with psi=1")


def test_the_verdict_is_first() -> None:
    lines = checks_text([_KERNEL], 80).splitlines()
    assert lines[:2] == ["wbscope record works here.", ""]
    assert lines[2].split() == ["ok", "kernel", "6.1.0,", "x86_64"]
    assert len(lines) == 3


def test_what_is_not_there_is_named_with_it() -> None:
    text = checks_text([_KERNEL, _PRESSURE], 80)
    assert text.startswith(
        "wbscope record works here. Missing, with fixes below: pressure (PSI).\n\n"
    )


def test_what_helps_first_is_told_with_a_failure() -> None:
    lines = checks_text([_KERNEL, _USER, _TRACEFS, _PRESSURE], 80).splitlines()
    assert lines[:3] == [
        "wbscope record does not work here: user, tracefs.",
        "To do: sudo wbscope doctor",
        "",
    ]
    assert lines[-1].strip() == "fix: boot with psi=1"
