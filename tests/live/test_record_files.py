# SPDX-License-Identifier: Apache-2.0
"""Files of a recording: fio's JSON, stacked disks, owners under sudo, what threads dirtied."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.live import Recorder, problems, program_of_ours, sysctls_of_machine

# fio under record: its JSON in the run, its own output as it was asked for.

_BYTES = 37 << 12
_JOB = ("--name=j", "--rw=write", "--bs=4k", f"--size={_BYTES}", "--ioengine=psync")
_OPTIONS = ("--backend", "tracefs", "--no-report", "-o", "run", "--", "fio")


@pytest.fixture
def fio() -> None:
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")


def _record(recorder: Recorder, disk: Path, *words: str) -> str:
    done = recorder.record(*_OPTIONS, *words, *_JOB, f"--filename={disk}/fio")
    assert done.returncode == 0, done.stderr
    return done.stderr


def _check(recorder: Recorder) -> None:
    result = json.loads((recorder.folder / "run/fio.json").read_text())
    assert result["jobs"][0]["write"]["io_bytes"] == _BYTES
    rows = recorder.sql(
        "run", "SELECT value FROM sidecar_fio WHERE path LIKE '%jobs%[0]%write%io_bytes%'"
    )
    assert [int(row["value"]) for row in rows] == [_BYTES]


@pytest.mark.usefixtures("fio")
def test_text_is_printed_and_json_kept(recorder: Recorder, disk: Path) -> None:
    said = _record(recorder, disk)
    assert "j: (groupid=0" in said
    assert '"jobs"' not in said
    assert not (recorder.folder / "run/fio.out").exists()
    _check(recorder)


@pytest.mark.usefixtures("fio")
def test_json_is_the_callers_under_sudo(recorder: Recorder, disk: Path) -> None:
    recorder.env |= {"SUDO_UID": "4242", "SUDO_GID": "4343"}
    _record(recorder, disk)
    run = recorder.folder / "run"
    assert (run / "fio.json").exists()
    assert {path.stat().st_uid for path in (run, *run.rglob("*"))} == {4242}


@pytest.mark.usefixtures("fio")
@pytest.mark.parametrize(
    "words",
    [
        ("--output-format=json", "--output=mine"),
        ("--output-format", "normal,json", "--output", "mine"),
        ("--output-format=json+", "--output", "mine"),
    ],
)
def test_own_file(recorder: Recorder, disk: Path, words: tuple[str, ...]) -> None:
    said = _record(recorder, disk, *words)
    assert "no-fio-json" not in said
    mine = (recorder.folder / "mine").read_text()
    assert ("j: (groupid=0" in mine) == ("normal,json" in words)
    _check(recorder)


@pytest.mark.usefixtures("fio")
def test_own_file_of_text_is_text(recorder: Recorder, disk: Path) -> None:
    said = _record(recorder, disk, "--output", "mine")
    assert "warning[no-fio-json]" in said
    assert "j: (groupid=0" in (recorder.folder / "mine").read_text()
    assert not (recorder.folder / "run/fio.json").exists()


# A btrfs on a loop device: the run says on which disk it lies, and gives it the disk's numbers.

_MIB = 1 << 20
_WRITTEN = 23


@pytest.fixture
def btrfs(tmp_path: Path) -> Iterator[Path]:
    """A small one, gone afterwards with its loop device."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("no mkfs.btrfs; run: make guest-kernels")
    image, mount = tmp_path / "image", tmp_path / "mnt"
    mount.mkdir()
    with image.open("wb") as file:
        file.truncate(256 * _MIB)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True, capture_output=True)
    command = ["mount", "-o", "loop", image, mount]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop mount: {done.stderr.strip()}")
    yield mount
    subprocess.run(["umount", mount], check=True)


def _loop(image: Path) -> str:
    """Number of the loop device of a file."""
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        if backing.read_text().strip() == os.path.realpath(image):
            return (backing.parents[1] / "dev").read_text().strip()
    raise AssertionError("no loop device")


def test_a_btrfs_has_the_rate_of_its_disk(recorder: Recorder, btrfs: Path, tmp_path: Path) -> None:
    disk = _loop(tmp_path / "image")
    write = ["dd", "if=/dev/zero", f"of={btrfs}/x", "bs=1M", f"count={_WRITTEN}", "conv=fsync"]
    events = ("-e", "block:block_rq_issue", "-e", "block:block_rq_complete")
    done = recorder.record(*events, "--no-report", "-o", "run", "--", *write)
    assert done.returncode == 0, done.stderr
    lines = (recorder.folder / "run/stacks").read_text().splitlines()
    (bdi,) = (line.split()[0] for line in lines if line.split()[1] == disk)
    assert bdi.startswith("btrfs-")
    assert (
        f"{bdi} {disk.replace('7:', 'loop')} {btrfs} btrfs"
        in (recorder.folder / "run/bdis").read_text()
    )
    rates = {row["bdi"]: row for row in recorder.sql("run", "SELECT * FROM wb_disk_rate")}
    # Of its own bytes it has a count (BdiWritten): the disk has metadata beside them.
    own, written = rates[bdi].pop("written_bytes"), rates[disk].pop("written_bytes")
    assert _WRITTEN * _MIB <= own <= written
    assert rates[bdi] == rates[disk] | {"bdi": bdi}
    assert rates[bdi]["basis"] == "requests"


# sudo wbscope record leaves no file of root: what a CI runner could not remove.

USER, GROUP = 4242, 4343
_MATRIX = """
runs = 1
[setup]
kernel.here = true
data = "{data}"
workload = "dd if=/dev/zero of=$DATA/sudo bs=64k count=10 2> /dev/null"
"""


def owners(folder: Path) -> set[tuple[int, int]]:
    found = [folder, *folder.rglob("*")]
    return {(status.st_uid, status.st_gid) for status in (path.lstat() for path in found)}


@pytest.fixture
def called_with_sudo(recorder: Recorder) -> Recorder:
    """sudo(8) tells who called it in the environment."""
    recorder.env |= {"SUDO_UID": str(USER), "SUDO_GID": str(GROUP)}
    return recorder


def test_a_run_is_the_callers(called_with_sudo: Recorder, tmp_path: Path) -> None:
    done = called_with_sudo.record("--no-report", "-q", "-o", "run", "--", "true")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run/trace.dat").stat().st_size > 0
    assert owners(tmp_path / "run") == {(USER, GROUP)}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".run")]


def test_a_lab_is_the_callers(called_with_sudo: Recorder, tmp_path: Path, disk: Path) -> None:
    (tmp_path / "matrix.toml").write_text(_MATRIX.format(data=disk))
    done = called_with_sudo.wbscope("lab", "matrix.toml", "-q", "-o", "lab")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "lab/all/run-1/trace.dat").exists()
    assert owners(tmp_path / "lab") == {(USER, GROUP)}


def test_without_sudo_nothing_changes_hands(recorder: Recorder, tmp_path: Path) -> None:
    for name in ("SUDO_UID", "SUDO_GID"):
        recorder.env.pop(name, None)
    assert recorder.record("--no-report", "-q", "-o", "run", "--", "true").returncode == 0
    assert (USER, GROUP) not in owners(tmp_path / "run")


# What threads dirtied, by the kernel's count, against the sizes of files that are known.

_PAGE = 4096
_COUNTS = (37, 101)
_BLOCK = 64 << 10
# The kernel tells of every thread of the machine, and dd and sleep run elsewhere, too.
_DD = f"dd-{os.getpid()}"
_SLEEP = f"sleep-{os.getpid()}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, disk: Path) -> Recorder:
    """Two dd that end, and one child that the recording outlives."""
    if not Path("/proc/self/io").exists():
        pytest.skip("this kernel counts no I/O of tasks")
    recorder = Recorder(tmp_path_factory.mktemp("task-io"))
    dd, sleep = (program_of_ours(recorder.folder, name) for name in ("dd", "sleep"))
    assert (dd.name, sleep.name) == (_DD, _SLEEP)
    script = recorder.folder / "workload"
    script.write_text(
        "".join(
            f"{dd} if=/dev/zero of=$1/copy-{count} bs={_BLOCK} count={count} 2>/dev/null\n"
            for count in _COUNTS
        )
        + "(i=0; while [ $i -lt 19 ]; do printf %4096s; i=$((i + 1)); done > $1/left;"
        + f" exec {sleep} 3600)"
        + " >/dev/null 2>&1 &\n"
        + "echo $! > left\n"
        + 'until [ "$(stat -c %s $1/left)" = 77824 ]; do sleep 0.1; done\n'
    )
    before = sysctls_of_machine()
    try:
        done = recorder.record("--no-report", "-o", "run", "--", "sh", script, disk)
    finally:
        if (pid := recorder.folder / "left").exists():
            os.kill(int(pid.read_text()), signal.SIGKILL)
    assert done.returncode == 0, done.stderr
    assert (recorder.left(), sysctls_of_machine()) == ([], before)
    return recorder


def _lines(recorder: Recorder) -> list[dict[str, str]]:
    text = (recorder.folder / "run/task_io").read_text(errors="replace")
    found = re.findall(r"^(start|exit|end) (.*) comm=(.*)$", text, re.MULTILINE)
    assert len(found) == len(text.splitlines())
    return [
        {"when": when, "comm": comm, **dict(pair.split("=") for pair in pairs.split())}
        for when, pairs, comm in found
    ]


def test_exits_tell_the_size_of_the_file(recorded: Recorder) -> None:
    facts = recorded.meta("run")["task_io"]
    if facts["exits"] is None:
        pytest.skip(facts["why_not"])
    written = sorted(
        int(line["write_bytes"])
        for line in _lines(recorded)
        if line["when"] == "exit" and line["comm"] == _DD
    )
    assert len(written) == len(_COUNTS)
    for bytes_, count in zip(written, _COUNTS, strict=True):
        assert 0 <= bytes_ - count * _BLOCK <= _PAGE  # the page of the folder
    assert (facts["exits_lost"], facts["left_out_count"]) == (False, 0)
    assert problems(recorded.meta("run")) == []


def test_every_line_is_a_row(recorded: Recorder) -> None:
    keys = ("tid", "tgid", "write_bytes", "cancelled_write_bytes", "write_char_bytes")
    names = ", ".join(("sample", "comm", *keys))
    rows = recorded.sql("run", f"SELECT {names} FROM sidecar_task_io")
    told = [
        (line["when"], line["comm"], *(int(line[key]) for key in keys)) for line in _lines(recorded)
    ]
    assert sorted(tuple(row.values()) for row in rows) == sorted(told)


def test_those_that_live_are_told_of_once(recorded: Recorder) -> None:
    lines = _lines(recorded)
    for when in ("start", "end"):
        tids = [line["tid"] for line in lines if line["when"] == when]
        assert len(tids) == len(set(tids)) == recorded.meta("run")["task_io"][f"{when}_count"]
    ended = {line["tid"] for line in lines if line["when"] == "exit"}
    assert not ended & {line["tid"] for line in lines if line["when"] == "end"}
    began = {line["tid"] for line in lines if line["when"] == "start"}
    (left,) = (
        int(line["write_bytes"])
        for line in lines
        if (line["when"], line["comm"]) == ("end", _SLEEP) and line["tid"] not in began
    )
    assert 0 <= left - 19 * _PAGE <= _PAGE
