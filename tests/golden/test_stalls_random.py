# SPDX-License-Identifier: Apache-2.0
"""Random waits that nest and overlap in every way: each moment of a task counts once.

The rows are compared with an oracle that walks over the moments of each task one by one.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import strategies as st
from support.cli import Wbscope
from support.properties import for_all
from support.stall_oracle import Wait, own_times
from support.wait_events import DIRECT, FSYNC, GRANT, MEMCG, SYNC, Waits, at

_KINDS = {
    "journal": GRANT,
    "direct reclaim": DIRECT,
    "memcg reclaim": MEMCG,
    "fsync": FSYNC,
    "sync": SYNC,
}
_END = 1000.0  # ms
_TIDS = range(1, 5)

Spans = list[tuple[float, float]]


def _spans(most: int, apart: bool) -> st.SearchStrategy[Spans]:
    """In ms, of whole us; apart: no one begins before the one before has ended."""
    us = st.integers(0, round(_END * 1000)) | st.integers(0, 20)
    borders = st.lists(us, max_size=2 * most, unique=apart)

    def paired(borders: list[int]) -> Spans:
        times = [us / 1000 for us in (sorted(borders) if apart else borders)]
        return [(min(pair), max(pair)) for pair in zip(times[::2], times[1::2], strict=False)]

    return borders.map(paired)


# Spans of one kind never overlap within a task, those of different kinds do as they like.
_WAITS = st.fixed_dictionaries({kind: _spans(4, apart=True) for kind in _KINDS})


def _written(
    folder: Path, waits_of: dict[int, dict[str, Spans]], requests: dict[int, Spans]
) -> list[Wait]:
    block = ("block_rq_insert", "block_rq_issue", "block_rq_complete")
    names = [name for pair in _KINDS.values() for name in pair]
    waits = Waits(*names, *block, cmdlines={tid: f"task{tid}" for tid in _TIDS})
    expected = []
    for tid in _TIDS:
        for kind, spans in waits_of[tid].items():
            for start, end in spans:
                waits.span(start, end, tid, _KINDS[kind])
                expected.append(Wait(tid, kind, at(start), at(end)))
        for number, (start, end) in enumerate(requests[tid]):
            waits.request(tid, 1000 * tid + number, issue=start, complete=end, rwbs="R")
            expected.append(Wait(tid, "block queue", at(start), at(end)))
    waits.write(folder)
    return expected


@for_all(
    12,
    waits=st.fixed_dictionaries(dict.fromkeys(_TIDS, _WAITS)),
    requests=st.fixed_dictionaries(dict.fromkeys(_TIDS, _spans(6, apart=False))),
)
def test_each_moment_counts_once(
    wbscope: Wbscope,
    tmp_path_factory: pytest.TempPathFactory,
    waits: dict[int, dict[str, Spans]],
    requests: dict[int, Spans],
) -> None:
    folder = tmp_path_factory.mktemp("waits")
    expected = _written(folder, waits, requests)
    totals: dict[tuple[int, str], int] = defaultdict(int)
    by_task: dict[int, int] = defaultdict(int)
    for row in wbscope.query("stalls", folder):
        assert 0 < row["dur"] <= row["span_ns"], row
        totals[row["tid"], row["kind"]] += row["dur"]
        by_task[row["tid"]] += row["dur"]
    assert dict(totals) == own_times(expected)
    assert max(by_task.values(), default=0) <= at(_END) - at(0)
