# SPDX-License-Identifier: Apache-2.0
"""How long the recorder was held in balance_dirty_pages(), where it writes beside what it records.

A disk that holds it longer is in test_guest_samples.py.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.live import Recorder, problems, program_of_ours, wait_while_it_runs, watching
from support.waits import GUARD_SECONDS, wait_until
from wbscope.record.series import OwnPauses

_TRACEFS = Path("/sys/kernel/tracing")
_LOW = ("--sysctl", "vm.dirty_bytes=2M", "--sysctl", "vm.dirty_background_bytes=1M")
_MIB = 1 << 20
# One task that writes 32 MiB over and over until a file is there.
_WRITER = """
import os, sys
place, enough = sys.argv[1:]
file = os.open(place, os.O_WRONLY | os.O_CREAT)
at = 0
while not os.path.exists(enough):
    os.pwrite(file, bytes(65536), at)
    at = (at + 65536) % (32 << 20)
"""


def test_pauses_are_those_of_the_trace(recorder: Recorder, disk: Path) -> None:
    """Of one of two throttled tasks, followed as the recorder's own threads are."""
    go, enough, pid = (recorder.folder / name for name in ("go", "enough", "pid"))
    script = (
        '"$0" -c "$1" $2/other enough & echo $$ > pid.part; mv pid.part pid;'
        ' until [ -e go ]; do sleep 0.02; done; exec "$0" -c "$1" $2/followed enough'
    )
    process = recorder.start(
        *("--no-report", "-o", "run", *_LOW, "--", "sh", "-c", script, sys.executable, _WRITER),
        disk,
    )
    wait_while_it_runs(process, pid.exists, "the workload begins")
    tid = int(pid.read_text())
    pauses = OwnPauses(_TRACEFS, f"wbscope-{os.getpid()}-{'0' * 8}")
    pauses.start([tid])
    assert len(recorder.instances()) == 3  # this one, the run's, and the one beside it
    # The shell may have been held when it wrote its number.
    since = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    go.touch()
    wait_while_it_runs(process, lambda: pauses.paused_ns() > 0, "the task is throttled")
    enough.touch()
    _, said = process.communicate(timeout=GUARD_SECONDS)
    pauses.finish()
    assert process.returncode == 0, said
    (row,) = recorder.sql(
        "run",
        "SELECT COUNT(*) AS n, SUM(pause) AS ms FROM ev_balance_dirty_pages"
        f" WHERE pause > 0 AND tid = {tid} AND ts > {since}",
    )
    facts = pauses.facts()
    assert facts["recorder_throttled_ns"] == row["ms"] * 10**6 > 0
    assert facts["recorder_throttled"]["pauses_count"] == row["n"]
    assert facts["recorder_throttled"]["lost_count"] == 0
    assert not recorder.instances()


def test_not_held_on_the_disk_under_test(recorder: Recorder, disk: Path) -> None:
    """Whatever disk it is: none of its threads makes a page dirty that would be held.

    The writers go on until one is throttled, and until the recorder has written pages there.
    """
    dd, enough = program_of_ours(recorder.folder, "dd"), recorder.folder / "enough"
    writers = (
        "for i in 1 2 3; do until [ -e $2 ]; do $1 if=/dev/zero bs=64k status=none of=$0/f$i"
        " count=400 conv=notrunc; done & done; wait"
    )
    with watching("writeback:balance_dirty_pages", f'comm == "{dd.name}" && pause > 0') as seen:
        process = recorder.start(
            *("--profile", "deep", "--no-report", "-o", disk / "run", *_LOW),
            *("--", "sh", "-c", writers, disk, dd, enough),
        )
        wait_while_it_runs(process, seen, "a writer is throttled")
        wait_while_it_runs(process, lambda: _pages_bytes(disk) > _MIB, "pages are on the disk")
    enough.touch()
    _, said = process.communicate(timeout=GUARD_SECONDS)
    assert process.returncode == 0, said
    shutil.move(disk / "run", recorder.folder / "run")
    meta = recorder.meta("run")
    assert problems(meta) == []
    own = f"tid IN ({meta['recorder_pid']}, {meta['sampler_tid']})"
    device = disk.stat().st_dev
    (row,) = recorder.sql(
        "run",
        f"SELECT SUM({own}) AS own, COUNT(*) AS n FROM ev_balance_dirty_pages"
        f" WHERE pause > 0 AND bdi = '{os.major(device)}:{os.minor(device)}'",
    )
    assert row["own"] == 0
    assert row["n"] > 0


def _pages_bytes(disk: Path) -> int:
    return sum(path.stat().st_size for path in disk.glob(".run.*/trace.dat.cpu*"))


def test_cpu_time_is_told(recorder: Recorder) -> None:
    """At least what the workload reads in /proc/PID/stat, at most what the kernel bills us for.

    The workload looks at the other child of its parent until that has used some ticks more.
    """
    script = (
        "look() { for p in /proc/[0-9]*; do"
        ' if grep -qs "^PPid:.$PPID\\$" $p/status && [ $p != /proc/$$ ]; then cat $p/stat; fi;'
        " done; }; ticks() { set -- $(sed 's/.*) //' $1); echo $((${12} + ${13})); };"
        " look > before; look > after;"
        " until [ $(ticks after) -ge $(($(ticks before) + 10)) ]; do sleep 0.2; look > after; done"
    )
    billed = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = recorder.record("--no-report", "-o", "run", "--sample", "20ms", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    bill = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = []
    for name in ("before", "after"):
        (line,) = (recorder.folder / name).read_text().splitlines()
        assert int(line.split()[0]) == recorder.meta("run")["recorder_pid"]
        ticks.append(sum(map(int, line.rpartition(")")[2].split()[11:13])))
    told_s = recorder.meta("run")["recorder_cpu_ns"] / 1e9
    # Both numbers of both lines are whole ticks.
    assert told_s >= (ticks[1] - ticks[0] - 2) / os.sysconf("SC_CLK_TCK") > 0
    assert told_s <= bill.ru_utime + bill.ru_stime - billed.ru_utime - billed.ru_stime


def test_who_cannot_count_says_so(tmp_path: Path) -> None:
    pauses = OwnPauses(tmp_path, "wbscope-1-00000000")
    pauses.start([1])
    pauses.finish()
    facts = pauses.facts()
    assert facts["recorder_throttled_ns"] is None
    assert "cannot be made" in facts["recorder_throttled"]["why_not"]


@pytest.mark.parametrize("killed", ["recorder", "both"])
def test_nothing_is_left_of_it(recorder: Recorder, killed: str) -> None:
    process = recorder.start("--no-report", "-o", "run", "--", "sleep", "3600")
    wait_while_it_runs(process, lambda: recorder.tracing_is_on(process.pid), "it records")
    (beside,) = (path for path in recorder.instances() if path.name.startswith("pauses-"))
    assert (beside / "tracing_on").read_text() == "1\n"
    assert len(recorder.registered()) == 1
    assert len(recorder.left()) >= 3
    (supervisor,) = recorder.supervisors(process.pid)
    pids = [str(supervisor)] + ([str(process.pid)] if killed == "both" else [])
    subprocess.run(["kill", "-9", *pids], check=True)
    if killed == "both":
        stopped = "the kernel stops tracing"
        wait_until(lambda: (beside / "tracing_on").read_text() == "0\n", stopped)
        assert recorder.record("--recover").returncode == 0
    wait_until(recorder.nothing_is_left, "all is put back")
