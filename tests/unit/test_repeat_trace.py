# SPDX-License-Identifier: Apache-2.0
"""tools/repeat_trace.py: each copy has the events of the trace, later by the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.kernel_events import formats
from support.runs import REPOSITORY
from support.tracedat import Trace

_COPIES = 3
_TOOL = REPOSITORY / "tools/repeat_trace.py"
_COUNT = 400  # more than a page


def _repeat(source: Path, output: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, _TOOL, source, str(_COPIES), "-o", output]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_each_copy_is_the_trace_later(wbscope: Wbscope, tmp_path: Path, trace: Trace) -> None:
    one = trace.write(tmp_path / "one.dat")
    long = tmp_path / "long.dat"
    done = _repeat(one, long)
    assert done.returncode == 0, done.stderr
    ask = "SELECT ts, nr_dirty FROM raw_global_dirty_state ORDER BY seq"
    rows = {}
    for path in (one, long):
        done = wbscope.run("ingest", path, "-o", path.with_suffix(".db"), "--all")
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr
        rows[path] = wbscope.sql(path.with_suffix(".db"), ask)
    times = [row["ts"] for row in rows[one]]
    step = times[-1] - times[0] + 1000
    assert len(times) == 2 * _COUNT
    assert [row["ts"] for row in rows[long]] == [
        ts + copy * step for copy in range(_COPIES) for ts in times
    ]
    assert [row["nr_dirty"] for row in rows[long]] == [
        row["nr_dirty"] for row in rows[one]
    ] * _COPIES


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no trace")
    done = _repeat(tmp_path / "text", tmp_path / "long.dat")
    assert (done.returncode, str(tmp_path / "text") in done.stderr) == (3, True)
    assert not (tmp_path / "long.dat").exists()


def test_a_name_that_is_taken_stays(tmp_path: Path, trace: Trace) -> None:
    (tmp_path / "long.dat").write_text("mine")
    done = _repeat(trace.write(tmp_path / "one.dat"), tmp_path / "long.dat")
    assert (done.returncode, "File exists" in done.stderr) == (3, True)
    assert (tmp_path / "long.dat").read_text() == "mine"


@pytest.fixture
def trace() -> Trace:
    """Two CPUs; times as deltas, as extensions of them, and whole."""
    made = Trace(formats("global_dirty_state"), version=6, cpus=2, cmdlines={11: "dd"})
    stamps = ("auto", "extend", "absolute")
    for number in range(2 * _COUNT):
        values = {"nr_dirty": number}
        stamp = stamps[number % len(stamps)]
        made.event(number % 2, 10**9 + number * 1500, 11, "global_dirty_state", values, stamp=stamp)
    return made
