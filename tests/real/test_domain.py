# SPDX-License-Identifier: Apache-2.0
"""The machine's row of dirty_domains, against every sample added up one by one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import wbscope
from support.runs import REPOSITORY
from wbscope.library.library import load_library
from wbscope.run.ingested import ingest
from wbscope.source.source import find_source

PAGE = 4096
PATCHED = "examples/patched-kernel/throttle"
SAMPLES = (
    "SELECT seq, ts, nr_dirty + nr_writeback, background_thresh, dirty_thresh,"
    " max(dirty_thresh, dirty_limit) FROM ev_global_dirty_state ORDER BY seq"
)
FIND = "SELECT ts FROM ev_global_dirty_state WHERE repeats_count {} ORDER BY seq LIMIT 1 OFFSET {}"


def _parts(database: sqlite3.Connection) -> Iterator[tuple[int | None, int | None]]:
    """The whole, and parts whose ends are within samples that say the same, or between these."""
    yield None, None
    times = [
        database.execute(FIND.format(which, offset)).fetchone()[0]
        for which in ("= 0", "= 1", "> 1")
        for offset in (9, 10, 50)
    ]
    for first in times:
        yield from ((first, first + 1), (None, first), (first, None))
        yield from ((first, last) for last in times if first < last)


@pytest.mark.parametrize("name", ["examples/rate-limited-writers", "examples/deep", PATCHED])
def test_each_sample_counts_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / "run.db"
    ingest(find_source(str(REPOSITORY / name)), path, load_library())
    if name == PATCHED:  # as a stock kernel tells it, with real-time tasks
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DELETE FROM ev_wb_domain_dirty_state")
    with sqlite3.connect(path) as database, wbscope.open(path) as run:
        boosted = {seq for (seq,) in run.sql("SELECT seq FROM _dirty_boost").rows}
        assert bool(boosted) == (name == PATCHED)
        samples = database.execute(SAMPLES).fetchall()
        for first, last in _parts(database):
            chosen = [s for s in samples if (first or 0) <= s[1] < (last or 1 << 62)]
            plain = [s for s in chosen if s[0] not in boosted]
            answer = run.query(
                "dirty_domains",
                start=f"@{first}" if first else None,
                end=f"@{last}" if last else None,
            )
            row = dict(zip(answer.columns, answer.rows[0], strict=True))
            assert row["domain"] == "global"
            assert row["events_count"] == len(chosen)
            assert row["boosted_count"] == len(chosen) - len(plain)
            assert row["dirty_max_bytes"] == PAGE * max(s[2] for s in chosen)
            assert row["above_thresh_count"] == sum(s[2] > s[4] for s in plain)
            if not plain:
                assert row["thresh_bytes"] is row["dirty_thresh_ratio"] is None
                continue
            assert row["thresh_min_bytes"] == PAGE * min(s[4] for s in plain)
            ratios = [s[2] / s[4] for s in plain]
            assert row["dirty_thresh_max_ratio"] == max(ratios)
            assert row["dirty_thresh_ratio"] == pytest.approx(sum(ratios) / len(ratios), rel=1e-12)
            for column, wanted in (
                ("dirty_bytes", [s[2] for s in chosen]),
                ("bg_thresh_bytes", [s[3] for s in plain]),
                ("thresh_bytes", [s[4] for s in plain]),
                ("limit_bytes", [s[5] for s in plain]),
            ):
                mean = PAGE * sum(wanted) / len(wanted)
                assert row[column] == pytest.approx(mean, abs=1), (column, first, last)
