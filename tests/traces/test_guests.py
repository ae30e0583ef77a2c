# SPDX-License-Identifier: Apache-2.0
"""Pairs of a host's and a guest's file (`trace-cmd record -A`): the guest's clock is corrected.

That every time stamp is the one that `trace-cmd report` prints, test_forms.py tests for all files.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.archives import unpacked
from support.loaded import LoadedRun
from support.raw_report import RawReport
from support.tools import ingester_path, run

TRACES = unpacked("data") / "traces"
PAIRS = [
    ("6.1-amd64-v7-host", "6.1-amd64-v7-guest"),
    ("6.1-amd64-v6-host", "6.1-amd64-v7-guest-of-v6"),
    ("7.2-amd64-v7-host", "7.2-amd64-v7-guest"),
]


@pytest.mark.parametrize(("host", "guest"), PAIRS)
def test_the_files_know_each_other(host: str, guest: str) -> None:
    host_options = RawReport(TRACES / host / "trace.dat").trace_cmd("dump", "--options")
    guest_options = RawReport(TRACES / guest / "trace.dat").trace_cmd("dump", "--options")
    named = re.search(r"Option GUEST.*\n.*\n(0x\w+) \[trace id\]", host_options)
    own = re.search(r"Option TRACEID.*\n(0x\w+)", guest_options)
    assert named is not None
    assert own is not None
    assert named[1] == own[1]


@pytest.mark.parametrize(
    ("guest", "samples"),
    [
        ("6.1-amd64-v7-guest", 2),
        ("6.1-amd64-v7-guest-interval", 3),
        ("6.1-amd64-v7-guest-of-v6", 2),
        ("7.2-amd64-v7-guest", 2),
    ],
)
def test_the_guests_clock_is_corrected(guest: str, samples: int, tmp_path: Path) -> None:
    trace = TRACES / guest / "trace.dat"
    report = RawReport(trace)
    options = report.trace_cmd("dump", "--options")
    shifts = [int(s) for s in re.findall(r"^\s*(-?\d+) 1 0 \d+\[offset \*", options, re.MULTILINE)]
    assert len(shifts) == samples * 2  # of each CPU
    database = tmp_path / "run.db"
    result = run([ingester_path(), "sqlite", trace, "--all", "-o", database])
    assert result.returncode == 0, result.stderr
    meta = LoadedRun(database).meta
    corrected = sorted(report.time_stamps())
    assert meta["first_ts"] == min(ts for _, ts in corrected)
    assert meta["last_ts"] == max(ts for _, ts in corrected)
    recorded = sorted(report.time_stamps("--raw-ts"))
    moves = {after[1] - before[1] for after, before in zip(corrected, recorded, strict=True)}
    assert moves - {0}, "the correction moves nothing: the test proves nothing"
    assert min(shifts) <= min(moves) <= max(moves) <= max(shifts)
