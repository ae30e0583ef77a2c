# SPDX-License-Identifier: Apache-2.0
"""Names of tasks in traces whose recorder knew processes only, or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.pftrace import Event, TraceBuilder

pytestmark = pytest.mark.usefixtures("engine_is_there")


def throttled(events: list[Event], tids: dict[int, int]) -> list[Event]:
    """The events of these tasks, under other numbers; and the machine's."""
    state = "global_dirty_state"
    return [replace(e, tid=tids.get(e.tid, 1)) for e in events if e.tid in tids or e.name == state]


def two(events: list[Event]) -> list[int]:
    """Tasks that were throttled."""
    return sorted({e.tid for e in events if e.name == "balance_dirty_pages"})[:2]


@pytest.mark.parametrize("engine", ["sqlite", "perfetto"])
def test_a_thread_has_the_name_of_its_process(
    wbscope: Wbscope, few_events: list[Event], tmp_path: Path, engine: str
) -> None:
    trace = tmp_path / "run.pftrace"
    tids = dict(zip(two(few_events), (100, 101), strict=True))
    builder = TraceBuilder(threads={100: (100, "/usr/bin/fio"), 101: (100, "")})
    builder.write(trace, throttled(few_events, tids))
    rows = wbscope.query("throttle_by_task", trace, "--engine", engine)
    assert {(row["tid"], row["comm"]) for row in rows} == {(100, "fio"), (101, "fio")}


def test_a_task_without_a_name_has_one_number(
    wbscope: Wbscope, few_events: list[Event], tmp_path: Path
) -> None:
    trace = tmp_path / "run.pftrace"
    (tid, _) = two(few_events)
    TraceBuilder().write(trace, throttled(few_events, {tid: 101}))
    texts = [str(row["text"]) for row in wbscope.query("findings", trace)]
    assert any("tid 101" in text for text in texts)
    assert not any("tid 101 101" in text for text in texts)
    stall = wbscope.query("stalls", trace)[0]["stall_id"]
    told = wbscope.run("explain", trace, "--stall", str(stall)).stdout
    assert "tid 101 " in told
    assert "tid 101 101" not in told
