# SPDX-License-Identifier: Apache-2.0
"""Pages that reclaim wrote: by kind, by zone and by who reclaimed."""

from __future__ import annotations

from collections import Counter

import pytest
from support.cli import Wbscope
from support.oracle import reclaimers
from support.runs import RecordedRun, example
from support.sidecars import vmstat_delta, zone_spans


def test_totals_of_the_reclaim_run(wbscope: Wbscope) -> None:
    recorded = example("reclaim-writes")
    rows = wbscope.query("reclaim_writes", recorded.folder)
    by_kind: Counter[str] = Counter()
    for row in rows:
        by_kind[row["kind"]] += row["pages_count"]
    assert by_kind == {"anon": 188_808, "file": 1}
    assert by_kind.total() == vmstat_delta(recorded.folder, "nr_vmscan_write") == 188_809
    assert by_kind["anon"] == vmstat_delta(recorded.folder, "pswpout")


def test_every_write_is_found_in_its_zone(wbscope: Wbscope, recorded: RecordedRun) -> None:
    if not recorded.has("zoneinfo"):
        pytest.skip("the run has no zoneinfo")
    spans = zone_spans(recorded.folder)
    expected: Counter[tuple[int, str, str, str]] = Counter()
    for pfn, kind, who in reclaimers(recorded.events):
        ((node, zone),) = [(node, zone) for node, zone, first, end in spans if first <= pfn < end]
        expected[node, zone, kind, who] += 1
    rows = wbscope.query("reclaim_writes", recorded.folder)
    assert {
        (row["node"], row["zone"], row["kind"], row["reclaimer"]): row["events_count"]
        for row in rows
    } == expected


def test_one_page_per_event_where_folios_are_single_pages(wbscope: Wbscope) -> None:
    rows = wbscope.query("reclaim_writes", example("reclaim-writes").folder)
    assert rows
    assert all(row["pages_count"] == row["events_count"] for row in rows)
