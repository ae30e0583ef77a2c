# SPDX-License-Identifier: Apache-2.0
"""A disk that gets full while it is recorded to: told at once, and never called a whole run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.live import Recorder, program_of_ours, wait_while_it_runs
from support.waits import GUARD_SECONDS, wait_until
from wbscope.record.tasks import read_names

_WRITES = 20_011
_OPTIONS = ("--backend", "tracefs", "--profile", "custom", "-e", "syscalls:sys_exit_write")
# Fill the disk, write bytes one by one, and go on when the file is there.
_COMMAND = f"""
dd if=/dev/zero of=$0/fill bs=1M status=none 2>/dev/null
$2 if=/dev/zero of=/dev/null bs=131 count={_WRITES} status=none 2>/dev/null
until [ -e $1 ]; do sleep 0.05; done
"""

# The same, when pages of some writes are on the disk. Who wrote them lives on until it was named:
# the kernel's own list of names leaves one out when somebody else reads the list just then.
_WITH_PAGES = f"""
{{ head -c {_WRITES * 131} /dev/zero; until [ -e $1 ]; do sleep 0.05; done; }} |
  $2 of=/dev/null bs=131 iflag=fullblock status=none &
echo $! > $1.dd
until [ -n "$(find $0/.run.* -name 'trace.dat.cpu*' -size +64k)" ]; do sleep 0.05; done
{_COMMAND}"""


@pytest.fixture
def small(tmpfs: Callable[..., Path]) -> Path:
    """16 MiB of room."""
    return tmpfs("small", "size=16M")


@pytest.fixture
def words(recorder: Recorder, small: Path) -> tuple[Path, Path, Path]:
    """Of both commands: the disk, the file that ends them, and a dd that nobody else runs."""
    return small, recorder.folder / "go", program_of_ours(recorder.folder, "dd")


def _until_told(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("warning[record-problem]"):
            return line
        # The command would wait for us.
        assert not line.startswith("warning[recorder-"), line
    raise AssertionError("the full disk was not told")


def _writes(recorder: Recorder, run: str) -> int:
    rows = recorder.sql(
        run,
        "SELECT COUNT(*) AS n FROM ev_sys_exit_write AS w JOIN task AS t USING (tid)"
        f" WHERE t.comm = 'dd-{os.getpid()}' AND w.ret = 131",
    )
    return int(rows[0]["n"])


def test_room_again_before_the_end(recorder: Recorder, words: tuple[Path, Path, Path]) -> None:
    small, go, _ = words
    process = recorder.start(
        *(*_OPTIONS, "--no-report", "-o", small / "run", "--"), "sh", "-c", _COMMAND, *words
    )
    assert "No space left" in _until_told(process)
    assert process.poll() is None  # told while it is recorded
    (small / "fill").unlink()
    go.touch()
    process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0
    meta = json.loads((small / "run/meta.json").read_text())
    assert meta["ended"] == "complete"
    assert "No space left" in str(meta["problems"])
    assert sum(meta["lost"].values()) == 0
    assert _writes(recorder, str(small / "run")) == _WRITES


# The recorder is held up when the workload has begun.
_HELD_UP = """
import time
from wbscope.record import own_pauses
def follow(self, tids, _follow=own_pauses.OwnPauses.follow):
    time.sleep(0.5)
    _follow(self, tids)
own_pauses.OwnPauses.follow = follow
"""


def test_nothing_has_to_be_written_when_the_workload_begins(
    recorder: Recorder, small: Path
) -> None:
    """It may fill the disk at once, and then the recording ended: its own tasks were not noted."""
    (recorder.folder / "sitecustomize.py").write_text(_HELD_UP)
    recorder.env["PYTHONPATH"] = str(recorder.folder)
    begin = "for folder in $0/.run.*; do [ -e $folder/recorder_tasks ] || exit 9; done"
    words = ("--no-report", "-o", small / "run", "--", "sh", "-c", begin, small)
    done = recorder.record(*_OPTIONS, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads((small / "run/meta.json").read_text())["command_exit_code"] == 0


def test_full_to_the_end(recorder: Recorder, words: tuple[Path, Path, Path]) -> None:
    small, go, _ = words
    process = recorder.start(
        *(*_OPTIONS, "--no-report", "-o", small / "run", "--"), "sh", "-c", _COMMAND, *words
    )
    _until_told(process)
    go.touch()
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 5, said
    assert "make room, then: wbscope record --recover" in said
    assert not (small / "run").exists()
    (small / "fill").unlink()
    (folder,) = small.glob(".run.*")
    done = recorder.record("--recover", folder)
    assert done.returncode == 0, done.stderr
    assert json.loads((small / "run/meta.json").read_text())["ended"] == "recorder failed"
    report = recorder.wbscope("report", small / "run")
    assert "warning[recording-cut-short]" in report.stderr + report.stdout
    refused = recorder.wbscope("compare", small / "run", "--against", small / "run")
    assert refused.returncode == 4
    assert "error[damaged-run]" in refused.stderr


def test_recorder_killed_while_the_disk_is_full(
    recorder: Recorder, words: tuple[Path, Path, Path]
) -> None:
    """Its pages stay; who finds it dead, and --recover later, say where."""
    small, go, program = words
    process = recorder.start(
        *(*_OPTIONS, "--no-report", "-o", small / "run", "--"), "sh", "-c", _WITH_PAGES, *words
    )
    _until_told(process)
    (folder,) = small.glob(".run.*")
    # Names are saved with the samples: those of the last second would go with the recorder.
    dd = int(go.with_suffix(".dd").read_text())
    wait_while_it_runs(
        process, lambda: read_names(folder).get(dd) == program.name, "the name of dd is saved"
    )
    (supervisor,) = recorder.supervisors(process.pid)
    os.kill(supervisor, signal.SIGKILL)
    go.touch()
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 5, said
    assert "warning[recorder-killed]" in said
    assert f"fix: make room, then: wbscope record --recover {folder}" in said
    (small / "fill").unlink()
    told = recorder.apart(f"cd {small}", "record", "--recover")
    assert f"wbscope record --recover {folder.name}" in told.stderr
    done = recorder.record("--recover", folder)
    assert done.returncode == 0, done.stderr
    assert json.loads((small / "run/meta.json").read_text())["ended"] == "recorder failed"
    assert 0 < _writes(recorder, str(small / "run")) <= 2 * _WRITES
    assert not list(small.glob(".run.*"))


def test_mounted_on_while_it_records(recorder: Recorder) -> None:
    """The name cannot be had any more: the run is beside it."""
    place = recorder.folder / "run"
    place.mkdir()
    mount = f"mount -t tmpfs none {place}"
    tried = ["mount", "-t", "tmpfs", "none", place]
    if subprocess.run(tried, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a tmpfs here")
    subprocess.run(["umount", place], check=True)
    try:
        done = recorder.record(
            *("--backend", "tracefs", "--no-report", "-o", "run", "--", "sh", "-c", mount)
        )
        assert done.returncode == 0, done.stderr
        refused = recorder.record("--backend", "tracefs", "-o", "run", "--", "true")
    finally:
        subprocess.run(["umount", place], check=True)
    assert refused.returncode == 2
    assert "error[output-exists]: run: " in refused.stderr
    assert "fix: -o run/run" in refused.stderr
    assert recorder.meta("run-2")["ended"] == "complete"
    assert recorder.counts("run-2") is not None
    assert not list(recorder.folder.glob(".run*"))


def test_no_room_for_the_head(recorder: Recorder, tmpfs: Callable[..., Path]) -> None:
    """It says what helps, also when nothing was recorded."""
    small = tmpfs("tiny", "size=48k")
    done = recorder.record(*_OPTIONS, "-o", small / "run", "--", "true")
    assert done.returncode == 5, done.stderr
    wait_until(lambda: not list(small.iterdir()), "nothing is left there")
    assert "error[record-failed]: " in done.stderr
