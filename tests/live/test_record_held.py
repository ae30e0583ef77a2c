# SPDX-License-Identifier: Apache-2.0
"""How long the recorder was held in balance_dirty_pages(), where it writes beside what it records.

A disk that holds it longer is in test_guest_slow_disk.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from support.live import Recorder, instances, nothing_is_left, wait_until
from wbscope.record.own_pauses import OwnPauses

_TRACEFS = Path("/sys/kernel/tracing")
_LOW = ("--sysctl", "vm.dirty_bytes=2M", "--sysctl", "vm.dirty_background_bytes=1M")
_DD = "if=/dev/zero bs=64k status=none"


def test_pauses_are_those_of_the_trace(recorder: Recorder, disk: Path) -> None:
    """Of one of two throttled tasks, followed as the recorder's own threads are."""
    script = (
        f"dd {_DD} of=$0/other count=800 & echo $$ > pid.part; mv pid.part pid;"
        f" until [ -e go ]; do sleep 0.02; done; exec dd {_DD} of=$0/followed count=800"
    )
    process = recorder.start("--no-report", "-o", "run", *_LOW, "--", "sh", "-c", script, disk)
    pid = recorder.folder / "pid"
    assert wait_until(pid.exists, 60)
    tid = int(pid.read_text())
    pauses = OwnPauses(_TRACEFS, f"wbscope-{os.getpid()}-{'0' * 8}")
    pauses.start([tid])
    assert len(instances()) == 3  # this one, the run's, and the one beside it
    # The shell may have been held when it wrote its number.
    since = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    (recorder.folder / "go").touch()
    _, said = process.communicate(timeout=120)
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
    assert not instances()


def test_not_held_on_the_disk_under_test(recorder: Recorder, disk: Path) -> None:
    """Whatever disk it is: none of its threads makes a page dirty that would be held."""
    writers = f"for i in 1 2 3; do dd {_DD} of=$0/f$i count=800 & done; wait; sleep 1"
    done = recorder.record(
        *("--profile", "deep", "--no-report", "-o", disk / "run", *_LOW),
        *("--", "sh", "-c", writers, disk),
    )
    assert done.returncode == 0, done.stderr
    shutil.move(disk / "run", recorder.folder / "run")
    meta = recorder.meta("run")
    assert (meta["recorder_throttled_ns"], meta["problems"]) == (0, [])
    own = f"tid IN ({meta['recorder_pid']}, {meta['sampler_tid']})"
    (row,) = recorder.sql(
        "run",
        f"SELECT SUM({own}) AS own, COUNT(*) AS n FROM ev_balance_dirty_pages WHERE pause > 0",
    )
    assert row["own"] == 0
    assert row["n"] > 0


def test_cpu_time_is_told(recorder: Recorder) -> None:
    """As the workload reads it: of the other child of its parent, in /proc/PID/stat."""
    script = (
        "look() { for p in /proc/[0-9]*; do"
        ' if grep -qs "^PPid:.$PPID\\$" $p/status && [ $p != /proc/$$ ]; then cat $p/stat; fi;'
        " done; }; look > before; sleep 4; look > after"
    )
    done = recorder.record("--no-report", "-o", "run", "--sample", "20ms", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    ticks = []
    for name in ("before", "after"):
        (line,) = (recorder.folder / name).read_text().splitlines()
        assert int(line.split()[0]) == recorder.meta("run")["recorder_pid"]
        ticks.append(sum(map(int, line.rpartition(")")[2].split()[11:13])))
    taken_s = (ticks[1] - ticks[0]) / os.sysconf("SC_CLK_TCK")
    assert taken_s > 0.1
    # It began to count a little before, and may have been busy then.
    assert recorder.meta("run")["recorder_cpu_ns"] / 1e9 == pytest.approx(
        taken_s, rel=0.2, abs=0.03
    )


def test_who_cannot_count_says_so(tmp_path: Path) -> None:
    pauses = OwnPauses(tmp_path, "wbscope-1-00000000")
    pauses.start([1])
    pauses.finish()
    facts = pauses.facts()
    assert facts["recorder_throttled_ns"] is None
    assert "cannot be made" in facts["recorder_throttled"]["why_not"]


@pytest.mark.parametrize("killed", ["recorder", "both"])
def test_nothing_is_left_of_it(recorder: Recorder, killed: str) -> None:
    process = recorder.start("--no-report", "-o", "run", "--", "sleep", "60")
    assert wait_until(lambda: recorder.tracing_is_on(process.pid), 60)
    (beside,) = (path for path in instances() if path.name.startswith("pauses-"))
    assert (beside / "tracing_on").read_text() == "1\n"
    (supervisor,) = recorder.supervisors(process.pid)
    pids = [str(supervisor)] + ([str(process.pid)] if killed == "both" else [])
    subprocess.run(["kill", "-9", *pids], check=True)
    if killed == "both":
        assert wait_until(lambda: (beside / "tracing_on").read_text() == "0\n", 20)
        assert recorder.record("--recover").returncode == 0
    assert wait_until(nothing_is_left, 20)
