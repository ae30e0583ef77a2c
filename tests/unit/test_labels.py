# SPDX-License-Identifier: Apache-2.0
"""Names and paths of /proc and /sys: backing devices, cgroups, words as the kernel writes them."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, cast

import pytest
import wbscope as library
from support.cli import Wbscope
from wbscope.base.errors import EvidenceError, UsageError
from wbscope.base.result import Result
from wbscope.base.system import entries_of, plain_path, text_of
from wbscope.doctor.checks import read_mounts
from wbscope.library.engine import Engine
from wbscope.record.choose import mounted_tracefs
from wbscope.record.machine import bdis_text, memory_hierarchy, mount_of
from wbscope.run import labels
from wbscope.run.filters import Filters
from wbscope.run.labels import Names, has_named, joined

# Names of backing devices and cgroups: where they come from, and what they stand for.

_ROOT = Path(__file__).resolve().parents[2]
_DEEP = _ROOT / "examples/deep"
_GATE = _ROOT / "examples/gate/runs/before-2"
_NAMES = Names(
    devices={
        "8:0": ("sda1",),
        "254:0": ("vda",),
        "btrfs-1": ("vdb", "vdc"),
        "0:45": ("server:/export",),
        "259:0": ("nvme0n1p1", "nvme0n1p12"),
    },
    mounts={
        "8:0": ("/", "/home"),
        "254:0": ("/data",),
        "btrfs-1": ("/b",),
        "0:45": ("/net",),
        "259:0": ("/boot", "/usr"),
    },
    cgroups={1: "/", 27: "/small", 28: "/a/job", 29: "/b/job"},
)


def test_labels_say_device_and_mount_point() -> None:
    labels = _NAMES.labels()
    assert labels["bdi"]["8:0"] == "sda1 (/, ...)"
    assert labels["device"]["254:0"] == "vda (/data)"
    assert labels["cgroup_ino"][27] == "/small"
    assert has_named(["victim_tid", "holder_bdi"])
    assert not has_named(["tid", "comm", "swap_device_ratio"])


@pytest.mark.parametrize(
    ("names", "disk"),
    [
        (("sda1", "sda12"), "sda"),
        (("nvme0n1p1", "nvme0n1p2"), "nvme0n1"),
        (("md127p1", "md127p10"), "md127"),
        (("sda2",), "sda2"),
        (("nvme0n1",), "nvme0n1"),
        (("sda", "sdb"), "sda"),  # of a btrfs
        (("sda1", "sdb1"), "sda1"),
        (("dm-1", "sda1"), "dm-1"),
        (("sda1", "sda"), "sda"),
        (("nvme0n1", "nvme0n1p1"), "nvme0n1"),
    ],
)
def test_a_disk_with_several_partitions(names: tuple[str, ...], disk: str, tmp_path: Path) -> None:
    """Two are the disk, in tables and in SQL; one is itself."""
    assert _device_of("8:0", names, tmp_path) == disk


@pytest.mark.parametrize(
    ("bdi", "names"),
    [("0:45", ("nas:/home/user1", "nas:/home/user2")), ("btrfs-1", ("sda1", "sda2"))],
)
def test_no_partitions(bdi: str, names: tuple[str, ...], tmp_path: Path) -> None:
    assert _device_of(bdi, names, tmp_path) == names[0]


def _device_of(bdi: str, names: tuple[str, ...], folder: Path) -> str:
    """Told by tables and by SQL alike."""
    shutil.copytree(_ROOT / "examples/four-equal-writers", folder / "run")
    lines = "".join(f"{bdi} {name} /{number} ext4\n" for number, name in enumerate(names))
    (folder / "run/bdis").write_text(lines)
    with library.open(folder / "run") as run:
        sql = f"SELECT device, mount FROM wb_device WHERE bdi = '{bdi}'"
        ((device, mount),) = (tuple(row) for row in run.sql(sql).rows)
    assert mount == "/0"
    assert Names(devices={bdi: names}).label("bdi", bdi) == device
    return str(device)


@pytest.mark.parametrize(
    ("text", "bdi"),
    [
        ("8:0", "8:0"),
        ("/home", "8:0"),
        ("vda", "254:0"),
        ("/dev/vda", "254:0"),
        ("/b", "btrfs-1"),
        ("vdc", "btrfs-1"),
        ("nvme0n1p12", "259:0"),
        ("/dev/nvme0n1", "259:0"),
        ("/usr", "259:0"),
        ("/net", "0:45"),
        ("(unknown)", "(unknown)"),
        ("9:9", "9:9"),
    ],
)
def test_a_bdi_by_any_name(text: str, bdi: str) -> None:
    assert _NAMES.bdi(text) == bdi


class _Counted(str):
    """A place that counts how often it is compared with another one."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def _most_bytes_of_a_step(work: Callable[[], object]) -> list[int]:
    """What each line of Python that is run takes of memory, given back or not."""
    steps: list[int] = []
    before = 0

    def step(_frame: FrameType, event: str, _more: object) -> Any:
        nonlocal before
        now, most = tracemalloc.get_traced_memory()
        steps.append(most - before)
        tracemalloc.reset_peak()
        before = now
        return step

    tracemalloc.start()
    traced = sys.gettrace()
    sys.settrace(step)
    try:
        work()
    finally:
        sys.settrace(traced)
        tracemalloc.stop()
    return steps


def test_a_bdi_that_is_mounted_often() -> None:
    """Each place is looked at once, and not each time that another one is met.

    Counted: comparisons of places, and bytes. A copy of all places that are known by then takes
    16,000 of them for each line.
    """
    count = 4_000
    rows = [("8:0", "sda1", _Counted(f"/a {number}")) for number in range(count)]
    engine = cast(Engine, SimpleNamespace(facts=sqlite3.connect(":memory:"), shown="run"))
    found: list[Names] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "mounted_devices", lambda *_: rows)
        patch.setattr(_Counted, "compared", 0)
        steps = _most_bytes_of_a_step(lambda: found.append(labels.names_of(engine)))
        compared = _Counted.compared
    (names,) = found
    assert names.mounts["8:0"][:2] == ("/a 0", "/a 1")
    assert len(names.mounts["8:0"]) == count
    assert compared <= count
    assert sum(steps) < 8_000 * count  # 3,600; of copies 20,500


@pytest.mark.parametrize("has_bdis", [False, True])
def test_devices_behind_the_mounts_of_pods(tmp_path: Path, has_bdis: bool) -> None:
    """Lines of 2,100 pods come first, as on a Kubernetes node: tables and SQL know both disks."""
    shutil.copytree(_GATE, tmp_path / "run")
    pods = "".join(
        f"{1000 + i} 31 0:{300 + i} / /var/lib/kubelet/pods/p{i} rw,relatime - tmpfs tmpfs rw\n"
        for i in range(2100)
    )
    mounts = tmp_path / "run/mounts"
    mounts.write_text(pods + mounts.read_text())
    if has_bdis:
        pods = "".join(f"0:{300 + i} server:/p{i} /pods/p{i} nfs4\n" for i in range(2100))
        (tmp_path / "run/bdis").write_text(f"{pods}254:0 vda /data ext4\n254:32 vdc /out ext4\n")
    with library.open(tmp_path / "run") as run:
        rows = run.sql("SELECT bdi, device, mount FROM wb_device WHERE bdi NOT GLOB '0:*'").rows
        names = run.names()
    assert {tuple(row) for row in rows} == {("254:0", "vda", "/data"), ("254:32", "vdc", "/out")}
    assert names.label("bdi", "254:0") == "vda (/data)"
    assert names.label("bdi", "254:32") == "vdc (/out)"


def test_a_mount_point_that_is_none() -> None:
    with pytest.raises(UsageError) as caught:
        _NAMES.bdi("/nowhere")
    assert caught.value.slug == "unknown-bdi"
    assert "vda (/data) = 254:0" in str(caught.value.have)


@pytest.mark.parametrize(
    ("text", "ino"),
    [("/small", 27), ("small", 27), ("/sys/fs/cgroup/small", 27), ("/", 1), ("a/job", 28)],
)
def test_a_cgroup_by_its_path(text: str, ino: int) -> None:
    assert _NAMES.cgroup(text) == ino


@pytest.mark.parametrize("text", ["/job", "/mall", "/nowhere"])
def test_a_path_of_no_cgroup_or_of_two(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        _NAMES.cgroup(text)
    assert caught.value.slug == "unknown-cgroup"


def test_bdis_of_partitions_btrfs_and_the_net(tmp_path: Path) -> None:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    (proc / "self").mkdir(parents=True)
    (proc / "self/mountinfo").write_text(
        "1 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
        "2 1 0:31 / /my\\040data rw - btrfs /dev/vdb rw\n"
        "3 1 0:45 / /net rw - nfs4 server:/export rw\n"
        "4 1 0:5 / /proc rw - proc proc rw\n"
        "5 1 9:9 / /gone rw - ext4 /dev/gone rw\n"
        "not a mount\n"
    )
    disk = sys / "devices/sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "dev").write_text("8:0\n")
    (disk / "sda1/partition").write_text("1\n")
    (disk / "sda1/dev").write_text("8:1\n")
    (sys / "class/block").mkdir(parents=True)
    (sys / "class/block/sda1").symlink_to(disk / "sda1")
    (sys / "class/bdi/0:45").mkdir(parents=True)
    (sys / "class/bdi/btrfs-1").mkdir()
    (sys / "fs/btrfs/uuid/devices/vdb").mkdir(parents=True)
    (sys / "fs/btrfs/uuid/bdi").symlink_to(sys / "class/bdi/btrfs-1")
    assert bdis_text(proc, sys).splitlines() == [
        "8:0 sda1 / ext4",
        "btrfs-1 vdb /my\\040data btrfs",
        "0:45 server:/export /net nfs4",
    ]
    assert bdis_text(tmp_path / "nowhere", sys) == ""


def test_tables_have_names_and_json_has_numbers(wbscope: Wbscope) -> None:
    assert "  /small  " in wbscope.run("query", "throttle_by_task", _DEEP).stdout
    rows = wbscope.document("query", "throttle_by_task", str(_DEEP), "--cgroup", "small")["rows"]
    assert [(row["tid"], row["cgroup_ino"]) for row in rows] == [(173, 27)]
    assert "vda (/data)" in wbscope.run("query", "throttle_by_task", _GATE).stdout
    rows = wbscope.document("query", "fairness", str(_GATE), "--bdi", "/data")["rows"]
    assert {row["bdi"] for row in rows} == {"254:0"}


def test_names_of_another_machine_are_refused(wbscope: Wbscope) -> None:
    result = wbscope.run("query", "fairness", _GATE, "--bdi", "/nowhere")
    assert result.returncode == 2
    assert "vda (/data) = 254:0" in result.stderr


def test_names_of_several_runs_are_those_that_all_of_them_mean() -> None:
    def answer(bdis: dict[str | int, str], *rows: tuple[str, int]) -> Result:
        return Result("q", ("holder_bdi", "cgroup_ino"), {}, list(rows), labels={"bdi": bdis})

    first = answer({"8:0": "sda (/)", "8:16": "sdb", "8:32": "sdc"}, ("8:0", 1), ("8:16", 1))
    second = answer({"8:0": "sda (/)", "8:16": "sdb (/mnt)"}, ("8:0", 1), ("8:16", 1))
    third = answer({}, ("8:48", 1))
    labels = joined([("a", first), ("b", second), ("c", third)]).labels
    assert labels == {"bdi": {"8:0": "sda (/)"}}
    assert joined([("a", first), ("c", answer({}, ("8:0", 1)))]).labels == {"bdi": {"8:16": "sdb"}}
    assert joined([("a", first), ("b", second)]).label("holder_bdi", "8:0") == "sda (/)"


def _named(folder: Path) -> set[str]:
    """Columns of all answers in which a device or a cgroup that has a name is shown by it."""
    named = set()
    with library.open(folder) as run:
        names = run.names()
        for query in run.library.queries():
            try:
                answer = run.ask(query.name, Filters())
            except EvidenceError:
                continue
            for column in answer.columns:
                known = names.cgroups if column.endswith("cgroup_ino") else names.devices
                values = {row[0] for row in answer.only([column]).rows} & set(known)
                if values and column.endswith(("bdi", "device", "cgroup_ino")):
                    assert all(answer.label(column, value) for value in values), query.name
                    named.add(column)
    return named


def test_every_column_of_devices_and_cgroups_has_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path))
    assert {"bdi", "device", "victim_bdi", "holder_bdi"} <= _named(_GATE)
    assert {"cgroup_ino", "victim_cgroup_ino", "holder_cgroup_ino"} <= _named(_DEEP)


# Paths as the kernel writes them in files of /proc, by all who read them.

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
