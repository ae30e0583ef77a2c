# SPDX-License-Identifier: Apache-2.0
"""What a recording is at work on is its own: its folder, and the settings of the machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.live import Recorder, problems, program_of_ours, wait_while_it_runs
from support.waits import GUARD_SECONDS
from wbscope.record.settings import restore, saved_values

_OPTIONS = ("--backend", "tracefs", "--no-report", "-o", "run", "--")
_WRITES = 23
_VM = Path("/proc/sys/vm")
_NAMES = ("ratio", "bytes", "background_ratio", "background_bytes")
_COMMAND = (
    f"for i in $(seq {_WRITES}); do echo > $0/f$i; done;"
    " : > $1; until [ -e $2 ]; do sleep 0.05; done"
)
# Of tracefs nothing can be written but instances and the list of probes.
_OTHERS_READ_ONLY = """
T=/sys/kernel/tracing; mount --make-rprivate / && mount --bind $T $T && mount -o remount,bind,ro $T
for name in instances dynamic_events; do
  [ ! -e $T/$name ] || { mount --bind $T/$name $T/$name && mount -o remount,bind,rw $T/$name; }
done
! true 2> /dev/null >> $T/tracing_on || exit 99"""


@pytest.fixture
def paths(recorder: Recorder) -> tuple[Path, Path, Path]:
    """Where the command writes, what it makes when it has, and what ends it."""
    files = recorder.folder / "files"
    files.mkdir()
    return files, recorder.folder / "written", recorder.folder / "go"


def test_recording_that_goes_on_is_not_recovered(
    recorder: Recorder, paths: tuple[Path, Path, Path]
) -> None:
    """Its pages and its folder would be gone when it ends."""
    shell = program_of_ours(recorder.folder, "sh")
    process = recorder.start(
        *("--profile", "custom", "-e", "syscalls:sys_exit_write"),
        *(*_OPTIONS, shell, "-c", _COMMAND, *paths),
    )
    wait_while_it_runs(process, paths[1].exists, "the command has written")
    (folder,) = recorder.folder.glob(".run.*")
    refused = recorder.record("--recover", folder)
    paths[2].touch()
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert refused.returncode == 5, refused.stderr
    assert f"error[recording-in-use]: {folder}: " in refused.stderr
    assert process.returncode == 0, said
    assert recorder.meta("run")["ended"] == "complete"
    (row,) = recorder.sql(
        "run", "SELECT COUNT(*) AS n FROM ev_sys_exit_write AS w JOIN task AS t USING (tid)"
        f" WHERE t.comm = '{shell.name}' AND w.ret = 1",
    )  # fmt: skip
    assert row["n"] == _WRITES


def test_folder_that_somebody_puts_another_in_the_place_of(
    recorder: Recorder, paths: tuple[Path, Path, Path]
) -> None:
    """As who may write to the folder above it can: theirs is not written to, ours is not lost."""
    victim = recorder.folder / "victim"
    victim.mkdir()
    (victim / ".bashrc").write_text("precious")
    process = recorder.start(
        *("--profile", "custom", "-e", "syscalls:sys_exit_write"),
        *(*_OPTIONS, "sh", "-c", _COMMAND, *paths),
    )
    wait_while_it_runs(process, paths[1].exists, "the command has written")
    (folder,) = recorder.folder.glob(".run.*")
    aside = folder.rename(recorder.folder / "aside")
    folder.symlink_to(victim)
    paths[2].touch()
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 5, said
    assert "another program has put something in the place of its folder" in said
    assert {path.name: path.read_text() for path in victim.iterdir()} == {".bashrc": "precious"}
    assert not (recorder.folder / "run").exists()
    folder.unlink()
    aside.rename(folder)
    done = recorder.record("--recover", folder)
    assert done.returncode == 0, done.stderr
    assert recorder.meta("run")["ended"] == "complete"
    assert recorder.counts("run")["syscalls:sys_exit_write"] >= _WRITES


def test_killed_recording_is_recovered_by_its_folder(
    recorder: Recorder, paths: tuple[Path, Path, Path]
) -> None:
    """Also under another name: what is in the kernel's buffers comes into that folder."""
    before = saved_values(["vm.dirty_bytes"])
    process = recorder.start(
        *("--profile", "custom", "-e", "syscalls:sys_exit_write"),
        *("--sysctl", "vm.dirty_bytes=33M", *_OPTIONS, "sh", "-c", _COMMAND, *paths),
    )
    try:
        wait_while_it_runs(process, paths[1].exists, "the command has written")
        for pid in [process.pid, *recorder.supervisors(process.pid)]:
            os.kill(pid, signal.SIGKILL)
        process.wait(GUARD_SECONDS)
        (folder,) = recorder.folder.glob(".run.*")
        moved = folder.rename(recorder.folder / "moved")
        done = recorder.record("--recover", moved)
        assert done.returncode == 0, done.stderr
        (name,) = before
        assert f"{name} = {before[name]} put back" in done.stderr
        assert saved_values(["vm.dirty_bytes"]) == before
        assert f"wrote {recorder.folder / 'run'}" in done.stderr
        assert recorder.meta("run")["ended"] == "recorder killed"
        assert not moved.exists()
    finally:
        paths[2].touch()
        restore(before)


def test_tracing_of_others_is_never_written_to(recorder: Recorder) -> None:
    """Who traces without an instance, by trace-cmd or by hand, sees nothing of a recording."""
    done = recorder.apart(_OTHERS_READ_ONLY, "record", "--profile", "deep", *_OPTIONS, "true")
    assert done.returncode == 0, done.stderr
    meta = recorder.meta("run")
    assert (meta["ended"], problems(meta)) == ("complete", [])


@pytest.fixture
def dirty() -> Iterator[None]:
    """vm.dirty_* are afterwards as they were."""
    before = saved_values(["vm.dirty_bytes", "vm.dirty_background_bytes"])
    yield
    assert restore(before) == []


@pytest.mark.usefixtures("dirty")
@pytest.mark.parametrize("which", ["dirty", "dirty_background"])
@pytest.mark.parametrize("value", ["0", "7"])
def test_ratio_of_zero_is_put_back(recorder: Recorder, which: str, value: str) -> None:
    """Both of the pair read 0 then: the bytes of the run have to go."""
    before = {name: (_VM / f"dirty_{name}").read_text() for name in _NAMES}
    ratio, size = _VM / f"{which}_ratio", _VM / f"{which}_bytes"
    try:
        size.write_text("16777216")  # a ratio that is not changed leaves them
        ratio.write_text("9")
        ratio.write_text(value)
        assert (ratio.read_text(), size.read_text()) == (f"{value}\n", "0\n")
        done = recorder.record("--sysctl", f"vm.{which}_bytes=33M", *_OPTIONS, "true")
        assert done.returncode == 0, done.stderr
        assert (ratio.read_text(), size.read_text()) == (f"{value}\n", "0\n")
        assert problems(recorder.meta("run")) == []
    finally:
        for name, old in before.items():
            if old.strip() != "0":
                (_VM / f"dirty_{name}").write_text(old)
