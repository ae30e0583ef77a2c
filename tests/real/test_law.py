# SPDX-License-Identifier: Apache-2.0
"""The control law against the same law written a second time, from trace-cmd's text."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import Wbscope
from support.law_oracle import EVENTS, Replayed, replay
from support.report import parse_report, report_lines
from support.runs import REPOSITORY

# Each recorded run with balance_dirty_pages, its kernel, and how many events cannot be replayed:
# a memory cgroup threw them, whose thresholds a stock kernel does not tell.
_RUNS = {
    "examples/deep": ((6, 12), 78),
    "examples/four-equal-writers": ((6, 1), 0),
    "examples/four-equal-writers-7.2": ((7, 2), 0),
    "examples/gate/runs/before-2": ((6, 1), 0),
    "examples/gate/runs/lower-2": ((6, 1), 0),
    "examples/patched-kernel/reclaim": ((6, 1), 0),
    "examples/patched-kernel/throttle": ((6, 1), 0),
    "examples/rate-limited-writers": ((6, 12), 0),
    "examples/reclaim-writes": ((6, 1), 0),
    "tests/data/patched/7.2-throttle": ((7, 2), 0),
}
_LEAST = 0.97
_EXACT = 0.4
_EVENTS = """SELECT e.ts, e.tid, w.predicted_pages_per_s, w.recorded_pages_per_s, w.is_agreed
FROM wb_law AS w JOIN ev_balance_dirty_pages AS e ON e.seq = w.seq
ORDER BY e.ts, e.tid, e.seq"""
_TOTAL = (
    "SELECT count(*) AS events_count, sum(is_replayed) AS replayed_count,"
    " sum(is_replayed AND is_agreed) AS agreed_count FROM wb_law"
)


def _oracle(folder: Path, release: tuple[int, int]) -> list[Replayed]:
    return replay(parse_report(report_lines(folder / "trace.dat"), EVENTS), release)


def test_every_recorded_run_is_tried() -> None:
    traces = [*REPOSITORY.glob("examples/**/trace.dat"), *REPOSITORY.glob("tests/data/patched/*/")]
    folders = {(path.parent if path.is_file() else path) for path in traces}
    assert {str(folder.relative_to(REPOSITORY)) for folder in folders} == set(_RUNS)


@pytest.mark.parametrize("name", _RUNS)
def test_every_rate_is_what_the_law_gives(wbscope: Wbscope, name: str) -> None:
    folder = REPOSITORY / name
    release, missing = _RUNS[name]
    # The clock of guests stands at times: events of one task can have one time stamp.
    expected = sorted(_oracle(folder, release), key=lambda event: (event.ts, event.tid))
    rows = wbscope.sql(folder, _EVENTS)
    assert [(row["ts"], row["tid"]) for row in rows] == [(one.ts, one.tid) for one in expected]
    for row, event in zip(rows, expected, strict=True):
        assert row["predicted_pages_per_s"] == event.predicted, event
        assert row["recorded_pages_per_s"] == event.recorded, event
        assert row["is_agreed"] == (None if event.predicted is None else int(event.agrees)), event
    told = [event for event in expected if event.predicted is not None]
    assert len(expected) - len(told) == missing
    agreed = [event for event in told if event.agrees]
    assert len(agreed) >= _LEAST * len(told)
    exact = [event for event in told if event.is_exact]
    assert len(exact) > _EXACT * len(told)
    assert all(event.agrees for event in exact)
    # One that disagrees where the bandwidth is not known exactly says nothing.
    replayed = [event for event in told if event.agrees or event.is_exact]
    assert all(event.agrees for event in told if event.recorded == 0)
    assert wbscope.sql(folder, _TOTAL) == [
        {
            "events_count": len(expected),
            "replayed_count": len(replayed),
            "agreed_count": len(agreed),
        }
    ]
    off = sorted((event.ts, event.tid) for event in replayed if not event.agrees)
    assert sorted((row["ts"], row["tid"]) for row in wbscope.query("law", folder)) == off
