# SPDX-License-Identifier: Apache-2.0
"""Paths as the kernel writes them in files of /proc, by all who read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from wbscope.base.system import entries_of, plain_path, text_of
from wbscope.doctor.checks import read_mounts
from wbscope.record.choose import mounted_tracefs
from wbscope.record.machine import memory_hierarchy, mount_of

# fs/proc_namespace.c escapes blank, tab, line feed, backslash and #.
_ESCAPED = r"/a\040b\011c\012d\134e\043f"
_PLAIN = "/a b\tc\nd\\e#f"


def test_a_path() -> None:
    assert plain_path(_ESCAPED) == _PLAIN
    assert plain_path("/usual") == "/usual"
    # One that was there before the kernel wrote it: a backslash, and digits behind it.
    assert plain_path(r"/a\134040b") == r"/a\040b"
    assert plain_path(r"/a\777\08") == r"/a\777\08"


def test_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\xff")
    (tmp_path / "a").mkdir()
    assert [path.name for path in entries_of(tmp_path)] == ["a", "b"]
    assert (entries_of(tmp_path / "none"), text_of(tmp_path / "none")) == ([], "")
    assert (text_of(tmp_path / "a"), text_of(tmp_path / "b")) == ("", "\udcff")


def test_where_tracefs_is_mounted(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"nodev {_ESCAPED} tracefs rw 0 0\n")
    assert mounted_tracefs(mounts) == Path(_PLAIN)


@pytest.mark.parametrize("line", ["cgroup2 {} cgroup2 rw 0 0", "cgroup {} cgroup rw,memory 0 0"])
def test_where_cgroups_are_mounted(tmp_path: Path, line: str) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mounts").write_text(line.format(_ESCAPED) + "\n")
    assert memory_hierarchy(tmp_path) == _PLAIN


def test_mountinfo(tmp_path: Path) -> None:
    text = f"31 1 254:0 / {_ESCAPED} rw - ext4 /dev/vda rw\n"
    (mount,) = read_mounts(text)
    assert mount.place == _PLAIN
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(text)
    found = mount_of(Path(_PLAIN, "file"), mountinfo)
    assert found is not None
    assert found.place == _PLAIN
