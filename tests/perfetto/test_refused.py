# SPDX-License-Identifier: Apache-2.0
"""Events that Perfetto's recorder was asked for and could not enable: they were not recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.pftrace import Event, TraceBuilder

pytestmark = pytest.mark.usefixtures("engine_is_there")

ASKED = (
    "writeback/balance_dirty_pages",
    "writeback/bdi_dirty_ratelimit",
    "writeback/dirty_ratelimit",
    "writeback/global_dirty_state",
    "vmscan/*",
)
Made = Callable[..., Path]


@pytest.fixture
def made(few_events: list[Event], tmp_path: Path) -> Made:
    """A trace of a recorder that was asked for ASKED and got global_dirty_state only."""

    def make(**refused: Any) -> Path:
        chosen = [e for e in few_events if e.name == "global_dirty_state"][:50]
        trace = tmp_path / "run.pftrace"
        TraceBuilder(configured=ASKED, **refused).write(trace, chosen)
        return trace

    return make


def warned(wbscope: Wbscope, trace: Path, *options: str) -> list[str]:
    document = wbscope.document("query", "dirty_position", trace, *options)
    return [w["message"] for w in document["warnings"] if w["slug"] == "events-refused"]


@pytest.mark.parametrize("engine", ["sqlite", "perfetto"])
@pytest.mark.parametrize("name", ["writeback/balance_dirty_pages", "/balance_dirty_pages"])
def test_what_failed_is_no_zero(wbscope: Wbscope, made: Made, name: str, engine: str) -> None:
    trace = made(failed=(name, "kmem/kmalloc"))
    options = ("--engine", engine)
    done = wbscope.run("query", "throttle_by_task", trace, *options)
    assert done.returncode == 4
    assert "missing-event" in done.stderr
    (message,) = warned(wbscope, trace, *options)
    assert "could not enable writeback:balance_dirty_pages:" in message  # no query wants kmalloc
    found = {row["id"] for row in wbscope.query("findings", trace, *options)}
    assert "not_recorded" in found
    assert "nothing_wrong" not in found


def test_the_report_says_so_first(wbscope: Wbscope, made: Made) -> None:
    report = wbscope.run("report", made(failed=("writeback/balance_dirty_pages",))).stdout
    first = " ".join(report.split()).partition("To do:")[0]
    assert "could not enable writeback:balance_dirty_pages" in first
    assert "Whether anybody was throttled cannot be said" in first


def test_what_the_kernel_lacks_is_not_warned_of(wbscope: Wbscope, made: Made) -> None:
    trace = made(unknown=("writeback/dirty_ratelimit", "vmscan/mm_vmscan_write_folio"))
    recorded = {r["event"] for r in wbscope.sql(trace, "SELECT event FROM raw_event_format")}
    assert {"writeback:balance_dirty_pages", "writeback:bdi_dirty_ratelimit"} <= recorded
    assert "vmscan:mm_vmscan_direct_reclaim_begin" in recorded
    assert not {"writeback:dirty_ratelimit", "vmscan:mm_vmscan_write_folio"} & recorded
    assert warned(wbscope, trace) == []
    assert wbscope.query("throttle_by_task", trace) == []


def test_a_group_that_failed(wbscope: Wbscope, made: Made) -> None:
    trace = made(failed=("vmscan/*",))
    recorded = wbscope.sql(trace, "SELECT event FROM raw_event_format")
    assert not [row for row in recorded if row["event"].startswith("vmscan:")]
    (message,) = warned(wbscope, trace)
    assert "vmscan:mm_" in message
    assert " others:" in message


def test_what_happened_all_the_same_counts(wbscope: Wbscope, made: Made) -> None:
    trace = made(failed=("writeback/global_dirty_state",))
    assert warned(wbscope, trace) == []
    assert wbscope.query("dirty_position", trace)
