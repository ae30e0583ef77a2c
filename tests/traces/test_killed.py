# SPDX-License-Identifier: Apache-2.0
"""What is left of recordings that were killed or met a full disk: never a quiet half answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.archives import unpacked
from support.cli import Wbscope, check_error
from support.loaded import LoadedRun
from support.raw_report import RawReport
from support.tools import ingester_path, run

KILLED = unpacked("data") / "killed"


@pytest.mark.parametrize(
    ("name", "slug", "fix"),
    [
        ("v7-killed-late", "no-options", "trace-cmd restore"),
        ("v6-full-24k", "truncated-section", ""),
        ("v6-full-28k", "unfinished-trace", "trace-cmd restore"),
        ("v7-full-8k", "unfinished-trace", "trace-cmd restore"),
    ],
)
def test_when_nothing_can_be_read_the_error_says_why(
    name: str, slug: str, fix: str, tmp_path: Path
) -> None:
    database = tmp_path / "run.db"
    result = run([ingester_path(), "sqlite", KILLED / name / "trace.dat", "--all", "-o", database])
    assert result.returncode == 3, result.stderr
    check_error(result.stderr, slug, "fix: ", fix)
    assert list(tmp_path.iterdir()) == []


def read(name: str, tmp_path: Path) -> LoadedRun:
    """The database of a file that is good in parts."""
    database = tmp_path / "run.db"
    trace = KILLED / name / "trace.dat"
    result = run([ingester_path(), "sqlite", trace, "--all", "-o", database])
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("warning[damaged-trace]: ")
    loaded = LoadedRun(database)
    assert loaded.meta["damaged"] == 1
    assert "did not finish" in str(loaded.meta["damage"])
    return loaded


def test_a_cpu_that_was_never_written_is_damage(tmp_path: Path) -> None:
    counts = read("v6-full-32k", tmp_path).counts()
    report = RawReport(KILLED / "v6-full-32k" / "trace.dat")
    assert sum(counts.values()) == len(report.events) == 60


def test_what_was_written_of_a_version_7_file_is_read(tmp_path: Path) -> None:
    loaded = read("v7-full-12k", tmp_path)
    # The report has no line of it: trace-cmd stops at the CPU that is missing. What CPU 0 had
    # recorded, the kernel told in cpu_stat.
    ((entries,),) = loaded.rows("SELECT value FROM cpu_stat WHERE cpu = 0 AND key = 'entries'")
    assert sum(loaded.counts().values()) == entries == 53


def test_a_recorder_killed_in_the_middle_leaves_no_trace_dat(
    wbscope: Wbscope, tmp_path: Path
) -> None:
    result = wbscope.run("ingest", KILLED / "v7-killed", "-o", tmp_path / "run.db")
    assert result.returncode == 3
    parts = ("trace.dat.cpu0", "trace.dat.cpu1")
    check_error(result.stderr, "no-trace", *parts, "trace-cmd restore")
    assert list(tmp_path.iterdir()) == []
