# SPDX-License-Identifier: Apache-2.0
"""Which cgroups are sampled, and what of their files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from wbscope.record.series import CgroupFiles, WbStats

_WB = """\
WbCgIno:          {:8}
WbWriteback:      {:8} kB
WbReclaimable:    {:8} kB
WbDirtyThresh:      526128 kB
WbDirtied:        {:8} kB
WbWritten:               0 kB
WbWriteBandwidth:   102400 kBps
b_dirty:                 0
state:                   5
"""


def _wb_stats(folder: Path, bdi: str, *blocks: tuple[int, int, int, int]) -> None:
    (folder / bdi).mkdir(exist_ok=True)
    (folder / bdi / "wb_stats").write_text("".join(_WB.format(*block) for block in blocks))


def _heads(text: str) -> list[str]:
    return [line.removeprefix("== ") for line in text.splitlines() if line.startswith("== ")]


def test_bdis_that_only_the_root_writes_to_are_left_out(tmp_path: Path) -> None:
    _wb_stats(tmp_path, "8:0", (1, 4, 8, 12))
    _wb_stats(tmp_path, "254:0", (1, 0, 0, 0), (27, 0, 0, 900))
    (tmp_path / "253:0").mkdir()  # before 6.10
    assert WbStats(tmp_path).read() == ""


def test_cgroups_that_write_and_the_root_beside_them(tmp_path: Path) -> None:
    stats = WbStats(tmp_path)
    _wb_stats(tmp_path, "254:0", (1, 0, 0, 0), (27, 0, 0, 900), (31, 0, 0, 500))
    assert stats.read() == ""  # what was dirtied before is no writing now
    _wb_stats(tmp_path, "254:0", (1, 0, 0, 0), (27, 0, 0, 904), (31, 0, 0, 500), (40, 0, 0, 4))
    text = stats.read()
    assert _heads(text) == ["254:0/1", "254:0/27", "254:0/40"]
    assert text.split("== ")[2].startswith("254:0/27\nWbWriteback:             0 kB\n")
    assert text.endswith("state:                   5\n")
    assert stats.inodes == {27, 40}


def test_dirty_pages_are_writing_also_when_nothing_is_added(tmp_path: Path) -> None:
    stats = WbStats(tmp_path)
    _wb_stats(tmp_path, "254:0", (1, 0, 0, 0), (27, 0, 4, 900), (31, 8, 0, 900))
    assert _heads(stats.read()) == ["254:0/1", "254:0/27", "254:0/31"]


def test_the_cgroups_that_write_most(tmp_path: Path) -> None:
    stats = WbStats(tmp_path)
    _wb_stats(tmp_path, "254:0", (1, 0, 0, 0))
    stats.read()
    _wb_stats(tmp_path, "254:0", (1, 0, 0, 0), *((100 + i, 0, 0, i) for i in range(40)))
    assert stats.read()
    assert stats.inodes == {100 + i for i in range(24, 40)}


@pytest.mark.parametrize(
    "text",
    ["", "WbCgIno", "WbCgIno: x\n", "WbCgIno: 27", "WbCgIno: 27\nWbDirtied: lots kB\n",
     "WbCgIno: 27\n\n\nWbDirtied:\n", "\0\xff\n" * 9],
)  # fmt: skip
def test_texts_of_no_kernel(tmp_path: Path, text: str) -> None:
    (tmp_path / "8:0").mkdir()
    (tmp_path / "8:0/wb_stats").write_text(text)
    assert WbStats(tmp_path).read() == ""


@pytest.fixture
def hierarchy(tmp_path: Path) -> Path:
    top = tmp_path / "cgroup"
    for name, dirty in (("", 1), ("a", 0), ("b", 4096), ("b/c", 0)):
        (top / name).mkdir(exist_ok=True)
        (top / name / "memory.stat").write_text(
            f"anon 7\nfile 9\nkernel 1\nfile_dirty {dirty}\nfile_writeback 0\nfile_dirty_x 3\n"
        )
        (top / name / "memory.max").write_text("max\n")
        (top / name / "memory.high").write_text("65536\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(f"cgroup2 {top} cgroup2 rw 0 0\n")
    return top


def _paths(top: Path) -> dict[int, str]:
    return {path.stat().st_ino: str(path) for path in [top, *top.rglob("*")] if path.is_dir()}


def _proc(tmp_path: Path, places: dict[int, str]) -> Path:
    proc = tmp_path / "proc"
    for pid, place in places.items():
        (proc / str(pid)).mkdir(parents=True)
        (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {pid - 1} {'0 ' * 17}7 0\n")
        (proc / str(pid) / "cgroup").write_text(f"9:pids:/x\n4:memory,x:{place}\n0::{place}\n")
    return proc


def _chosen(files: CgroupFiles, top: Path) -> set[str]:
    names = {str(inode): path.removeprefix(str(top)) for inode, path in _paths(top).items()}
    return {names[head.split("/")[0]] for head in _heads(files.read())}


def test_where_the_workload_is_what_is_dirty_and_what_wb_stats_tells(
    tmp_path: Path, hierarchy: Path
) -> None:
    proc = _proc(tmp_path, {50: "/", 51: "/a", 52: "/gone", 60: "/b"})
    files = CgroupFiles(50, proc)
    inodes = {path: inode for inode, path in _paths(hierarchy).items()}
    files.choose(_paths(hierarchy), [inodes[str(hierarchy / "b/c")], 1, 12345])
    assert _chosen(files, hierarchy) == {"/a", "/b", "/b/c"}
    text = files.read()
    inode = inodes[str(hierarchy / "b")]
    part = text[text.index(f"== {inode}/memory.stat\n") :]
    assert part.startswith(
        f"== {inode}/memory.stat\nanon 7\nfile 9\nfile_dirty 4096\nfile_writeback 0\n"
        f"== {inode}/memory.high\n65536\n"
    )
    assert "memory.max" not in text


def test_one_that_is_removed_makes_room(tmp_path: Path, hierarchy: Path) -> None:
    used = {f"/w{number}" for number in range(8)}  # as many as are sampled
    for place in used:
        (hierarchy / place[1:]).mkdir()
        (hierarchy / place[1:] / "memory.high").write_text("65536\n")
    proc = _proc(tmp_path, {51 + number: place for number, place in enumerate(sorted(used))})
    files = CgroupFiles(50, proc)
    files.choose(_paths(hierarchy), [])
    assert _chosen(files, hierarchy) == used
    shutil.rmtree(hierarchy / "w3")
    files.read()
    files.choose(_paths(hierarchy), [])
    assert _chosen(files, hierarchy) == used - {"/w3"} | {"/b"}


def test_many_cgroups_are_not_all_looked_at(tmp_path: Path, hierarchy: Path) -> None:
    """Of a machine with hundreds, only where the workload is."""
    for number in range(300):
        (hierarchy / f"w{number}").mkdir()
    files = CgroupFiles(50, _proc(tmp_path, {51: "/a"}))
    files.choose(_paths(hierarchy), [])
    assert _chosen(files, hierarchy) == {"/a"}
