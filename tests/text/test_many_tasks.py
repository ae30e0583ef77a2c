# SPDX-License-Identifier: Apache-2.0
"""When each of many tasks looked at the machine's dirty pages, found without a scan for each."""

from __future__ import annotations

from pathlib import Path

import pytest
import wbscope
from hypothesis import strategies as st
from support.properties import for_all
from support.texttrace import load_lines

_STATE = "dirty=4042 writeback=10 bg_thresh=2000 thresh=4000 limit=4096 dirtied={} written=16"
_THROTTLED = (
    "bdi 254:16: limit=4096 setpoint=3584 dirty=4042 bdi_setpoint=3314 bdi_dirty=3856"
    " dirty_ratelimit=18724 task_ratelimit=5264 dirtied=36 dirtied_pause=36 paused=0 pause=24"
    " period=24 think=0 cgroup_ino=1"
)


def _lines(order: list[int]) -> list[str]:
    """Each task of the order looks and is throttled."""
    lines = []
    for place, tid in enumerate(order):
        front = f"dd-{tid} [000] 10.{place:06d}"
        lines += [
            f"{front}001: global_dirty_state: {_STATE.format(place)}",
            f"{front}002: balance_dirty_pages: {_THROTTLED}",
        ]
    return lines


_MANY = list(range(100, 600))


@pytest.mark.parametrize(
    "order",
    [
        pytest.param([100, 100, 101, 101, 101], id="next"),
        pytest.param([*_MANY, *_MANY, *_MANY], id="far"),
        pytest.param([*_MANY, 100, 101, *_MANY[50:], 100], id="some-once"),
    ],
)
def test_second_looks(tmp_path: Path, order: list[int]) -> None:
    _looked(tmp_path, order)


# Few that are shown; and many, of which some look again after more than 200 others.
_ORDERS = (st.integers(1, 30) | st.integers(400, 900)).flatmap(
    lambda n: st.lists(st.integers(100, 100 + n), min_size=n, max_size=n)
)


@for_all(20, order=_ORDERS)
def test_second_looks_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    _looked(tmp_path_factory.mktemp("looks"), order)


def _looked(folder: Path, order: list[int]) -> None:
    loaded = load_lines(_lines(order), folder)
    looks: dict[int, list[int]] = {}
    for seq, tid in loaded.sql("SELECT seq, tid FROM ev_global_dirty_state ORDER BY seq"):
        looks.setdefault(tid, []).append(seq)
    with wbscope.open(loaded.path) as run:
        rows = run.sql(
            "SELECT t.tid, l.looks_count, l.first_seq, l.second_seq"
            " FROM _dirtied_look AS l JOIN wb_task AS t USING (task_id)"
        ).rows
    found = {tid: tuple(rest) for tid, *rest in rows}
    assert found == {
        tid: (len(seqs), seqs[0], seqs[1] if len(seqs) > 1 else None) for tid, seqs in looks.items()
    }
    assert len(found) == len(set(order))
