# SPDX-License-Identifier: Apache-2.0
"""The runs of a lab, and the places where they are made."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.runs import REPOSITORY
from support.waits import GUARD_SECONDS, wait_until
from wbscope.base.errors import InputError, SetupError, UsageError
from wbscope.lab import emulator, guest, places
from wbscope.lab.judging import Progress, Summary, make_runs
from wbscope.lab.kernels import Setup
from wbscope.lab.matrix import Matrix, read_matrix
from wbscope.lab.places import Failure, Places
from wbscope.lab.store import opened, read_finished, read_lab
from wbscope.library.library import load_library

# The runs of a lab: finished ones stay, failed ones are told, files of others are left alone.

_MATRIX = """
runs = 2
[setup]
kernel.folder = "."
workload = "true"
[axis.kind]
a = {}
b = { cpus = 1 }
"""


class _Places:
    """Instead of guests: `fail` and `kill` name the runs, by their place in the order of asking."""

    def __init__(self, fail: tuple[int, ...] = (), kill: int | None = None) -> None:
        self.asked = 0
        self._fail, self._kill = fail, kill

    def check(self, setup: object) -> None:
        del setup

    def make(self, setup: object, work: Path, limit_s: float, boots: int) -> Path:
        del setup, limit_s, boots
        self.asked += 1
        run = work / "run"
        run.mkdir()
        (run / "trace.dat").write_text("events")
        if self.asked == self._kill:
            os._exit(9)
        if self.asked in self._fail:
            raise Failure("the workload exited with 3: no space", {"said": "no space\n"})
        (run / "meta.json").write_text(json.dumps({"ended": "complete"}))
        return run


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    path = tmp_path / "matrix.toml"
    path.write_text(_MATRIX)
    return read_matrix(path)


def _make(matrix: Matrix, folder: Path, places: Any, resume: bool = False) -> Summary:
    told: list[Progress] = []
    with opened(folder, matrix, resume) as store:
        summary = make_runs(matrix, store, places, told.append)
    assert len(told) == places.asked
    return summary


def _whole(folder: Path) -> list[str]:
    return sorted(str(path.parent.relative_to(folder)) for path in folder.glob("*/*/meta.json"))


def test_every_run_knows_its_cell(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    summary = _make(matrix, lab, _Places())
    assert (summary.made, summary.kept, summary.failed) == (4, 0, {})
    assert _whole(lab) == ["a/run-1", "a/run-2", "b/run-1", "b/run-2"]
    metas = [json.loads((lab / name / "meta.json").read_text())["lab"] for name in _whole(lab)]
    assert [(meta["cell"], meta["number"]) for meta in metas] == [
        ("a", 1), ("a", 2), ("b", 1), ("b", 2),
    ]  # fmt: skip
    assert len({meta["session"] for meta in metas}) == 1
    assert sorted(meta["place_in_order"] for meta in metas) == [1, 2, 3, 4]
    assert [cell["name"] for cell in read_lab(lab)["cells"]] == ["a", "b"]


def test_a_failed_run_is_one_row(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    summary = _make(matrix, lab, _Places(fail=(2,)))
    assert (summary.made, len(summary.failed)) == (3, 1)
    ((name, why),) = summary.failed.items()
    assert why == "the workload exited with 3: no space"
    assert (lab / f"{name}.failed/said").read_text() == "no space\n"
    again = _make(matrix, lab, _Places(), resume=True)
    assert (again.made, again.kept, again.failed) == (1, 3, {})
    assert not list(lab.glob("*/*.failed"))


@pytest.mark.parametrize("fails_again", [True, False])
def test_a_kill_while_an_old_failure_is_cleared(
    matrix: Matrix, tmp_path: Path, fails_again: bool
) -> None:
    """What is left of it has no reason any more; the next try goes on."""
    folder = tmp_path / "lab"
    _make(matrix, folder, _Places(fail=(2,)))
    (failed,) = folder.glob("*/*.failed")
    (failed / "why.json").unlink()
    assert list(failed.iterdir())
    summary = _make(matrix, folder, _Places(fail=(1,) if fails_again else ()), resume=True)
    assert len(summary.failed) == fails_again
    assert len(_whole(folder)) == 4 - fails_again
    assert [path.is_dir() for path in folder.glob("*/*.failed")] == [True] * fails_again
    assert (failed / "why.json").exists() == fails_again
    assert not list(folder.glob("*/.*"))


def test_a_kill_loses_no_finished_run(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    child = multiprocessing.get_context("fork").Process(
        target=_make, args=(matrix, lab, _Places(kill=3))
    )
    child.start()
    child.join()
    assert child.exitcode == 9
    finished = {name: (lab / name / "meta.json").stat().st_mtime_ns for name in _whole(lab)}
    assert len(finished) == 2
    places = _Places()
    summary = _make(matrix, lab, places, resume=True)
    assert (places.asked, summary.made, summary.kept) == (2, 2, 2)
    assert len(_whole(lab)) == 4
    for name, changed in finished.items():
        assert (lab / name / "meta.json").stat().st_mtime_ns == changed
    assert not list(lab.glob("*/.*"))  # what the killed one left


def test_more_runs_of_the_same_cells(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    _make(matrix, lab, _Places())
    matrix.path.write_text(matrix.path.read_text().replace("runs = 2", "runs = 3"))
    summary = _make(read_matrix(matrix.path), lab, _Places(), resume=True)
    assert (summary.made, summary.kept) == (2, 4)
    assert read_finished(lab).wanted == 3


class _FullDisk(_Places):
    """The second run finds no room."""

    def make(self, setup: object, work: Path, limit_s: float, boots: int) -> Path:
        if self.asked == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().make(setup, work, limit_s, boots)


def test_a_full_disk_ends_the_matrix(matrix: Matrix, tmp_path: Path) -> None:
    """One error, not a failed run for each that is left; what is made stays."""
    lab = tmp_path / "lab"
    told: list[Progress] = []
    with pytest.raises(SetupError) as caught, opened(lab, matrix, False) as store:
        make_runs(matrix, store, _FullDisk(), told.append)  # type: ignore[arg-type]
    assert caught.value.slug == "cannot-write"
    assert caught.value.message == "a run cannot be made there: No space left on device"
    assert caught.value.fix == "make room, then go on with resume=True"
    assert len(_whole(lab)) == 1
    assert not list(lab.glob("*/*.failed"))
    assert _make(matrix, lab, _Places(), resume=True).made == 3


def test_no_room_is_seen_before_a_run(
    matrix: Matrix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=3 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    places = _Places()
    with pytest.raises(SetupError, match="3 MiB are free, wanted 256 MiB"):
        _make(matrix, tmp_path / "lab", places)
    assert places.asked == 0


def test_other_folders_are_refused(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    (lab / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="files in it that no lab wrote"):
        _make(matrix, lab, _Places())
    assert [path.name for path in lab.iterdir()] == ["thesis.txt"]
    with pytest.raises(InputError, match="is no folder of a lab"):
        read_lab(lab)
    _make(matrix, tmp_path / "mine", _Places())
    with pytest.raises(UsageError) as caught:
        _make(matrix, tmp_path / "mine", _Places())
    assert caught.value.fix == "go on with resume=True"
    matrix.path.write_text(_MATRIX.replace("cpus = 1", "cpus = 3"))
    with pytest.raises(UsageError, match="runs of another matrix"):
        _make(read_matrix(matrix.path), tmp_path / "mine", _Places(), resume=True)


def test_files_of_others_beside_the_runs_stay(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    _make(matrix, lab, _Places(fail=(1,)))
    (failed,) = lab.glob("*/*.failed")
    notes = [lab / "notes.txt", failed.parent / "notes.txt"]
    for path in notes:
        path.write_text("mine")
    # No failure of ours: it has no why.json.
    theirs = failed.with_name("run-2.failed")
    theirs.mkdir()
    (theirs / "keep").write_text("mine")
    _make(matrix, lab, _Places(), resume=True)
    assert not failed.exists()
    assert all(path.exists() for path in (*notes, theirs / "keep"))


def test_two_commands_do_not_write_to_one_lab(matrix: Matrix, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    with opened(lab, matrix, False):
        with pytest.raises(SetupError) as caught, opened(lab, matrix, True):
            pass
        assert caught.value.slug == "lab-in-use"


# Where runs are made: what is missing is said first, and nothing runs on afterwards.

_SHELL = Path(guest.__file__).with_name("workload.sh")


def _setup(folder: Path, text: str) -> Setup:
    path = folder / "matrix.toml"
    path.write_text(f'[setup]\nworkload = "true"\n{text}')
    return read_matrix(path).cells[0].setup


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """An image that nothing boots: everything but virtio_blk is a module that it lacks."""
    modules = tmp_path / "kernel/lib/modules/6.1"
    modules.mkdir(parents=True)
    (tmp_path / "kernel/vmlinuz").touch()
    (modules / "modules.dep").write_text("kernel/none.ko:\n")
    (modules / "modules.builtin").write_text(
        "kernel/virtio_pci.ko\nkernel/virtio_blk.ko\nkernel/ext4.ko\n"
    )
    return tmp_path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of programs that are missing; others have nothing to say, such as ldd of a library."""
    missing: set[str] = set()
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    def which(name: str, path: str | None = None) -> str | None:
        del path
        return None if name in missing else str(program)

    monkeypatch.setattr(shutil, "which", which)
    return missing


_GUEST = 'kernel.folder = "kernel"\nprograms = ["memcached"]\n'


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("busybox", "busybox-static"),
        ("cpio", "cpio"),
        ("mkfs.ext4", "e2fsprogs"),
        ("memcached", "memcached"),
    ],
)
def test_missing_programs(
    kernel: Path, machine: set[str], monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    where = Places(load_library(REPOSITORY / "sql"), print)
    where.check(_setup(kernel, _GUEST))
    machine.add(name)
    with pytest.raises(SetupError) as caught:
        Places(load_library(REPOSITORY / "sql"), print).check(_setup(kernel, _GUEST))
    assert (caught.value.slug, caught.value.subject) == ("missing-program", name)
    assert caught.value.fix == f"apt install {package}"


def test_a_kernel_without_the_file_system(kernel: Path, machine: set[str]) -> None:
    assert not machine
    text = 'kernel.folder = "kernel"\ndisk = [{ filesystem = "btrfs" }]\n'
    with pytest.raises(InputError, match="has no module btrfs") as caught:
        Places(load_library(REPOSITORY / "sql"), print).check(_setup(kernel, text))
    assert caught.value.slug == "no-module"
    # Debian's packages of 7.2 do not list what is built in: only a boot can tell.
    (kernel / "kernel/lib/modules/6.1/modules.builtin").unlink()
    Places(load_library(REPOSITORY / "sql"), print).check(_setup(kernel, text))


def test_an_image_that_is_not_built(tmp_path: Path, machine: set[str]) -> None:
    del machine
    setup = _setup(tmp_path, 'kernel.image = "bzImage"\n')
    with pytest.raises(InputError, match="does not exist") as error:
        Places(load_library(REPOSITORY / "sql"), lambda _: None).check(setup)
    assert error.value.subject == str(tmp_path / "bzImage")


def test_a_profile_that_is_none(kernel: Path, machine: set[str]) -> None:
    assert not machine
    with pytest.raises(UsageError, match="profile"):
        Places(load_library(REPOSITORY / "sql"), print).check(
            _setup(kernel, f'{_GUEST}profile = "nothing"\n')
        )


def test_here_needs_a_folder(tmp_path: Path) -> None:
    text = f'kernel.here = true\ndata = "{tmp_path}/nowhere"\n'
    with pytest.raises(SetupError, match="cannot be written on this machine") as caught:
        Places(load_library(REPOSITORY / "sql"), print).check(_setup(tmp_path, text))
    assert caught.value.slug == "no-place"


@pytest.mark.parametrize("answer", ["/", "/etc", "", "/tmp/x y/wbscope-lab.123456", "../.."])
def test_only_a_new_folder_is_removed(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host may answer anything, such as what its profile prints."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\ncat >> {tmp_path}/asked\necho {shlex.quote(answer)}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(Failure), places._folder_there("host"):
        pytest.fail("not reached")
    asked = (tmp_path / "asked").read_text()
    assert "mktemp" in asked
    assert "rm " not in asked


def test_a_new_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "mine").touch()
    with places._folder_there(None) as folder:
        assert sorted(os.listdir(folder)) == ["lab", "out"]
        assert Path(folder).parent == tmp_path
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.parametrize("shell", [("sh",), ("busybox", "sh")])
@pytest.mark.parametrize("end", ["exit 3", "kill -9 $$"])
def test_samples_end_with_the_workload(tmp_path: Path, shell: tuple[str, ...], end: str) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip("no busybox")
    (tmp_path / "out").mkdir()
    sampling = "sample 0.1 /proc/loadavg\nsample 0.11 /proc/uptime"
    begun = '[ -s "$OUT/proc_loadavg.samples" ] && [ -s "$OUT/proc_uptime.samples" ]'
    counted = 'sleep() { echo "$1" >> "$OUT/sleeps"; command sleep "$1"; }'
    parts = [_SHELL.read_text(), counted, sampling, f"until {begun}; do sleep 0.02; done", "wait"]
    text = "\n".join([*parts, end, ""])
    env = dict(os.environ, OUT=str(tmp_path / "out"), WBSCOPE_MARK=str(tmp_path))
    done = subprocess.run(
        [*shell, "-s"],
        input=text,
        env=env,
        text=True,
        capture_output=True,
        check=False,
        timeout=GUARD_SECONDS,
    )
    assert done.returncode == (3 if end == "exit 3" else -9), done.stderr
    sampled = (tmp_path / "out/proc_loadavg.samples").read_text()
    wait_until(lambda: not _running(tmp_path), "the end of the samplers")
    slept = (tmp_path / "out/sleeps").read_text().splitlines().count("0.1")
    assert 1 <= sampled.count("# uptime=") <= slept


def _running(mark: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"WBSCOPE_MARK={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("console", "told"),
    [
        ("[1] Initramfs unpacking failed: write error\n[2] Kernel panic", "memory is too small"),
        ("[1] Kernel panic - not syncing: x\n[2] Kernel Offset: 0", "last line: [1] Kernel panic"),
        ("[1] booting\n\n", "last line: [1] booting"),
        ("", "last line: nothing"),
    ],
)
def test_why_a_guest_stopped(console: str, told: str) -> None:
    assert told in guest._last_words(console)


@pytest.mark.parametrize(
    ("qemu", "works"),
    [("exit 0", True), ("exit 1", False), (f"exec sleep {GUARD_SECONDS}", False)],
)
def test_kvm_has_to_bring_a_kernel_to_its_end(
    qemu: str, works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "qemu"
    program.write_text(f"#!/bin/sh\n{qemu}\n")
    program.chmod(0o755)
    monkeypatch.setattr(os, "access", lambda *_: True)
    seconds = 0.1 if "sleep" in qemu else GUARD_SECONDS
    assert emulator._has_kvm(str(program), "q35", tmp_path / "vmlinuz", seconds) is works
