# SPDX-License-Identifier: Apache-2.0
"""Random waits that nest and overlap in every way: each moment of a task counts once.

The rows are compared with an oracle that walks over the moments of each task one by one.
"""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.stall_oracle import Wait, own_times
from support.wait_events import DIRECT, FSYNC, GRANT, MEMCG, SYNC, Waits, at

_KINDS = {
    "journal": GRANT,
    "direct reclaim": DIRECT,
    "memcg reclaim": MEMCG,
    "fsync": FSYNC,
    "sync": SYNC,
}
_END = 1000.0


def _random_waits(folder: Path, seed: int) -> list[Wait]:
    """Spans of one kind never overlap within a task, those of different kinds do as they like."""
    chance = random.Random(seed)
    block = ("block_rq_insert", "block_rq_issue", "block_rq_complete")
    names = [name for pair in _KINDS.values() for name in pair]
    waits = Waits(*names, *block, cmdlines={tid: f"task{tid}" for tid in range(1, 5)})
    expected = []
    for tid in range(1, 5):
        for kind, pair in _KINDS.items():
            borders = sorted(round(chance.uniform(0, _END), 3) for _ in range(8))
            for start, end in zip(borders[::2], borders[1::2], strict=True):
                waits.span(start, end, tid, pair)
                expected.append(Wait(tid, kind, at(start), at(end)))
        for number in range(6):
            start, end = sorted(round(chance.uniform(0, _END), 3) for _ in range(2))
            waits.request(tid, 1000 * tid + number, issue=start, complete=end, rwbs="R")
            expected.append(Wait(tid, "block queue", at(start), at(end)))
    waits.write(folder)
    return expected


@pytest.mark.parametrize("seed", [3, 23, 2011])
def test_each_moment_counts_once(wbscope: Wbscope, tmp_path: Path, seed: int) -> None:
    expected = _random_waits(tmp_path, seed)
    totals: dict[tuple[int, str], int] = defaultdict(int)
    by_task: dict[int, int] = defaultdict(int)
    for row in wbscope.query("stalls", tmp_path):
        assert 0 < row["dur"] <= row["span_ns"], row
        totals[row["tid"], row["kind"]] += row["dur"]
        by_task[row["tid"]] += row["dur"]
    assert dict(totals) == own_times(expected)
    assert max(by_task.values()) <= at(_END) - at(0)
