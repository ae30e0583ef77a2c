# SPDX-License-Identifier: Apache-2.0
"""What the script for another machine notes of its own tasks, and of cgroups."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import wbscope.record
from wbscope.record.machine import bdis_text
from wbscope.record.what import WHAT, script_text

_SCRIPT = (Path(wbscope.record.__path__[0]) / "remote.sh").read_text()


_SHELLS = pytest.mark.parametrize("busybox", [False, True])


def _said(busybox: bool, folder: Path, text: str) -> str:
    """By the functions of the script that sample."""
    functions = _SCRIPT[_SCRIPT.index("\ndisks() {") : _SCRIPT.index("\nentries() {")]
    head = f"set -u\nend='\n'\nrun={folder} tasks={folder}/recorder_tasks ts=7\n"
    script = f"{head}{functions}\n{text}\n"
    shell = ["busybox", "sh", "-c", script] if busybox else ["sh", "-c", script]
    return subprocess.run(shell, capture_output=True, text=True, check=True).stdout


@_SHELLS
def test_files_are_read_by_no_other_task(busybox: bool, tmp_path: Path) -> None:
    """As by cat, whatever stands in them."""
    for name, text in {"sda": "   1  2\n", "dm-0": "a\\tb * \n\n  c\n", "loop0": ""}.items():
        (tmp_path / "block" / name).mkdir(parents=True)
        (tmp_path / "block" / name / "stat").write_text(text)
    place = tmp_path / "block/*/stat"
    depth = len(place.parts) - 2
    cut = f"/{'*/' * (depth - 1)}"
    told = _said(busybox, tmp_path, f"objects '{place}' {depth + 1}")
    assert told.count("\n") == 7
    # Its pattern is of paths with two folders, as /sys/block.
    ours = _SCRIPT.replace("${path#/*/*/}", f"${{path#{cut}}}")
    function = ours[ours.index("\nread_objects() {") : ours.index("\nby_own() {")]
    text = f"{function}\ntext=\nread_objects '{place}'\nprintf '%s' \"$text\""
    assert _said(busybox, tmp_path, text) == told


@_SHELLS
def test_disks_have_their_numbers(busybox: bool, tmp_path: Path) -> None:
    for name, text in {"sda": "   1  2\n", "loop0": " 0 0\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_text(text)
        (tmp_path / name / "dev").write_text(f"{len(name)}:0\n")
    (tmp_path / "vanished").mkdir()
    told = _said(busybox, tmp_path, f"disks '{tmp_path}/*'")
    assert told == "== loop0\ndev 5:0\n 0 0\n== sda\ndev 3:0\n   1  2\n"


@_SHELLS
def test_bdis_as_the_recorder_notes_them(busybox: bool, tmp_path: Path) -> None:
    """And its variables are its own: the script has others of these names."""
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    (proc / "self").mkdir(parents=True)
    (proc / "self/mountinfo").write_text(
        "1 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
        "2 1 0:31 / /my\\040data rw - btrfs /dev/vdb rw,space_cache=v2\n"
        "3 1 0:45 / /net rw - nfs4 server:/export rw\n"
        "4 1 0:5 / /proc rw - proc proc rw\n"
        "5 1 9:9 / /gone rw - ext4 /dev/gone rw\n"
        "6 1 8:0 / /whole rw shared:2 master:1 - xfs /dev/sda rw\n"
    )
    (sys / "devices/sda/sda1").mkdir(parents=True)
    for path, number in (("sda", "8:0"), ("sda/sda1", "8:1")):
        (sys / "devices" / path / "dev").write_text(f"{number}\n")
        for folder, name in (("dev/block", number), ("class/block", Path(path).name)):
            (sys / folder).mkdir(parents=True, exist_ok=True)
            (sys / folder / name).symlink_to(sys / "devices" / path)
    (sys / "devices/sda/sda1/partition").write_text("1\n")
    for name in ("0:45", "btrfs-1"):
        (sys / "class/bdi" / name).mkdir(parents=True)
    (sys / "fs/btrfs/uuid/devices/vdb").mkdir(parents=True)
    (sys / "fs/btrfs/uuid/bdi").symlink_to(sys / "class/bdi/btrfs-1")
    function = _SCRIPT[_SCRIPT.index("\nbdis() (") : _SCRIPT.index("\nsave() {")]
    function = function.replace("/sys/", f"{sys}/").replace("/proc/self", f"{proc}/self")
    told = _said(busybox, tmp_path, f"root=kept\n{function}\nbdis\necho $root")
    assert told == f"{bdis_text(proc, sys)}kept\n"
    assert told.splitlines()[:2] == ["8:0 sda1 / ext4", "btrfs-1 vdb /my\\040data btrfs"]


@_SHELLS
def test_its_children_are_listed(busybox: bool, tmp_path: Path) -> None:
    """And their exit code is that of the command, which ends the sampler."""
    told = _said(
        busybox,
        tmp_path,
        "by_own sh -c 'echo $$'\nby_own sh -c 'echo $$; exit 3' || echo $?\n",
    )
    first, second, code = told.split()
    assert code == "3"
    assert (tmp_path / "recorder_tasks").read_text().split() == [first, second]


@_SHELLS
def test_limits_of_cgroups(busybox: bool, tmp_path: Path) -> None:
    """Of those that have one, by files with a number; the root has no such files."""
    limits = {"a b": ("16777216", "max"), "none": ("max", "max"), "both": ("5", "7")}
    lines = [f"      1 {tmp_path}\n"]
    for number, (name, (high, most)) in enumerate(limits.items(), 20):
        folder = tmp_path / name
        folder.mkdir()
        for file, value in (("current", "4096"), ("high", high), ("max", most)):
            (folder / f"memory.{file}").write_text(f"{value}\n")
        lines.append(f"     {number} {folder}\n")
    (tmp_path / "cgroups").write_text("".join(lines))
    assert _said(busybox, tmp_path, "limits 2> /dev/null") == (
        "# ts=7\n"
        "== 20/memory.current\n4096\n== 20/memory.high\n16777216\n"
        "== 22/memory.current\n4096\n== 22/memory.high\n5\n== 22/memory.max\n7\n"
    )
    (tmp_path / "cgroups").write_text(lines[0])
    assert _said(busybox, tmp_path, "limits 2> /dev/null || :") == ""


@_SHELLS
def test_it_has_the_table(busybox: bool) -> None:
    """Pairs of sysctls, kinds of probes, and files that are copied are the recorder's."""
    pairs = WHAT["sysctls"]["pairs"]
    path = "/proc/sys/{}".format
    asked = {size.replace(".", "/"): ratio.replace(".", "/") for size, ratio in pairs.items()}
    asked |= {ratio: size for size, ratio in asked.items()} | {"vm/swappiness": ""}
    lines = [script_text(), "save() { echo $2 $1; }", "run=run"]
    lines += [f"find_partner {path(name)}\necho $other" for name in asked]
    lines += [f"probe_kind {kind}\necho $enter $leave $suffix" for kind in WHAT["probe"]["kinds"]]
    script = "\n".join([*lines, "copy_after"])
    shell = ["busybox", "sh", "-c", script] if busybox else ["sh", "-c", script]
    told = subprocess.run(shell, capture_output=True, text=True, check=True).stdout
    wanted = [path(name) if name else "" for name in asked.values()]
    wanted += [" ".join(words).strip() for words in WHAT["probe"]["kinds"].values()]
    wanted += [f"run/{name} {copied}" for name, copied in WHAT["after"].items()]
    assert told.splitlines() == wanted
