# SPDX-License-Identifier: Apache-2.0
"""wbscope lab with guests that are really booted, by a kernel of build/guests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.guest import guest_kernel
from support.live import Recorder
from support.tools import wbscope_path
from support.waits import wait_until

_KERNEL = "6.1"
_MIB = 20
_MATRIX = """
runs = 1
limit = "1h"
[setup]
kernel.folder = "{kernel}"
cpus = 1
files = ["note.txt"]
sysctl = {{ "vm.dirty_bytes" = "8M", "vm.dirty_background_bytes" = "4M" }}
cgroup.slow = {{ "memory.high" = "64M" }}
disk = [{{ bytes_per_s = "4M" }}, {{ filesystem = "xfs", size = "512M", at = "logs" }}]
prepare = "cp $LAB/note.txt $DATA/note"
workload = '''
cat $DATA/note > $OUT/note
df -T /logs > $OUT/df
within slow dd if=/dev/zero of=$DATA/file bs=64k count={blocks} 2> /dev/null
cat $CGROUPS/slow/memory.high > $OUT/high
ls -ln $DATA/file > $OUT/ls-files
'''
[axis.kind]
good = {{}}
bad = {{ workload = "echo no luck >&2; exit 3" }}
"""

_HERE = """
runs = 2
[setup]
kernel.here = true
data = "{data}"
prepare = "echo ready > $DATA/prepared"
workload = '''
cp $DATA/prepared $OUT
dd if=/dev/zero of=$DATA/file bs=64k count=100 2> /dev/null
ls -ln $DATA/file > $OUT/ls-files
'''
[axis.limit]
low = {{ sysctl = {{ "vm.dirty_bytes" = "64M" }} }}
bad = {{ workload = "exit 4" }}
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    kernel = guest_kernel(_KERNEL)
    for program in ("cpio", "modprobe", "mkfs.xfs"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    (tmp_path / "note.txt").write_text("from outside\n")
    path = tmp_path / "matrix.toml"
    path.write_text(_MATRIX.format(kernel=kernel / "kernel", blocks=_MIB * 16))
    return path


def test_guests_of_a_matrix(wbscope: Wbscope, matrix: Path, tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    done = wbscope.run("lab", matrix, "-o", lab)
    assert done.returncode == 5, done.stderr
    assert "bad/run-1: the workload exited with 3: " in done.stderr
    assert "no luck" in (lab / "bad/run-1.failed/said").read_text()
    run = lab / "good/run-1"
    assert (run / "note").read_text() == "from outside\n"
    assert " xfs " in (run / "df").read_text()
    assert (run / "high").read_text() == f"{64 << 20}\n"
    assert f"vm.dirty_bytes = {8 << 20}\n" in (run / "sysctls").read_text()
    assert int((run / "ls-files").read_text().split()[4]) == _MIB << 20
    meta = json.loads((run / "meta.json").read_text())
    assert meta["lab"]["cell"] == "good"
    assert meta["ended"] == "complete"
    rows = json.loads(wbscope.run("query", "fairness_tasks", run, "--json").stdout)["rows"]
    (writer,) = (row for row in rows if row["comm"] == "dd")
    assert writer["dirtied_basis"] == "probe"
    # What it wrote after its last call of balance_dirty_pages() is in none: up to 64 pages.
    assert writer["dirtied_estimate_bytes"] == pytest.approx(_MIB << 20, rel=0.013)
    assert writer["dirtied_estimate_bytes"] <= (_MIB << 20) * 1.01


def test_on_this_machine(wbscope: Wbscope, recorder: Recorder, tmp_path: Path) -> None:
    """Sysctls are in force for the run only; runs of one cell have the same command."""
    data, matrix = tmp_path / "data", tmp_path / "matrix.toml"
    data.mkdir()
    matrix.write_text(_HERE.format(data=data))
    before = Path("/proc/sys/vm/dirty_bytes").read_text()
    temporary = recorder.folder / "tmp"
    temporary.mkdir()
    done = recorder.run(
        *(wbscope_path(), "lab", matrix, "-o", tmp_path / "lab"),
        env=recorder.env | {"TMPDIR": str(temporary)},
    )
    assert done.returncode == 5, done.stderr
    assert "bad/run-1: the workload exited with 4" in done.stderr
    runs = sorted((tmp_path / "lab/low").iterdir())
    assert [run.name for run in runs] == ["run-1", "run-2"]
    metas = [json.loads((run / "meta.json").read_text()) for run in runs]
    assert metas[0]["command"] == metas[1]["command"]
    for run, meta in zip(runs, metas, strict=True):
        assert meta["sysctls_for_the_run"] == {"vm.dirty_bytes": str(64 << 20)}
        assert f"vm.dirty_bytes = {64 << 20}\n" in (run / "sysctls").read_text()
        assert int((run / "ls-files").read_text().split()[4]) == 100 << 16
        assert (run / "prepared").read_text() == "ready\n"
    assert Path("/proc/sys/vm/dirty_bytes").read_text() == before
    assert not list(temporary.iterdir())


def test_killed_and_resumed(wbscope: Wbscope, matrix: Path, tmp_path: Path) -> None:
    """kill -9 leaves no guest and loses no finished run."""
    lab = tmp_path / "lab"
    matrix.write_text(
        matrix.read_text().replace("runs = 1", "runs = 2").replace("exit 3", "exit 0")
    )
    mark = f"WBSCOPE_MARK={tmp_path}"
    env = dict(os.environ, WBSCOPE_MARK=str(tmp_path))
    process = subprocess.Popen(
        [wbscope_path(), "lab", matrix, "-o", lab], env=env, stderr=subprocess.DEVNULL
    )
    first = [lab / cell / "run-1/meta.json" for cell in ("good", "bad")]  # no glob: it would
    # list folders of half-made files that are gone by then
    wait_until(lambda: any(path.exists() for path in first), "the first run is there")
    wait_until(
        lambda: any(name.startswith("qemu") for name in _marked(mark)), "a guest of the next"
    )
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {path: path.stat().st_mtime_ns for path in lab.glob("*/run-*/meta.json")}
    assert 1 <= len(finished) < 4
    wait_until(lambda: not _marked(mark), "the guest ends with it")
    refused = wbscope.run("lab", matrix, "-o", lab)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    done = wbscope.run("lab", matrix, "-o", lab, "--resume")
    assert done.returncode == 0, done.stderr
    assert len(list(lab.glob("*/run-*/meta.json"))) == 4
    assert all(path.stat().st_mtime_ns == changed for path, changed in finished.items())
    assert not [path for path in lab.glob("*/.*") if path.is_dir()]


def _marked(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append((path.parent / "comm").read_text())
        except OSError:
            continue
    return found
