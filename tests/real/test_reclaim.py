# SPDX-License-Identifier: Apache-2.0
"""Pages that reclaim wrote: by kind, by zone and by who reclaimed."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from support.cli import Wbscope
from support.more_oracle import scans
from support.oracle import dirty_states, reclaimers
from support.runs import RecordedRun, example
from support.sidecars import vmstat_delta, zone_spans

pytestmark = pytest.mark.quick("reclaim-writes")


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


def test_scans_by_who_reclaimed(wbscope: Wbscope, recorded: RecordedRun) -> None:
    expected = scans(recorded.events)
    rows = wbscope.query("reclaim_efficiency", recorded.folder)
    found = {
        row["reclaimer"]: (row["scanned_count"], row["reclaimed_count"])
        for row in rows
        if row["scanned_count"]
    }
    assert found == expected
    both = sum(expected.get(who, (0, 0))[0] for who in ("kswapd", "direct"))
    for row in rows:
        if both:
            share = expected.get("direct", (0, 0))[0] / both
            assert row["direct_scan_ratio"] == pytest.approx(share)
        else:
            assert row["direct_scan_ratio"] is None


def test_scans_agree_with_vmstat(wbscope: Wbscope, recorded: RecordedRun) -> None:
    """The events lie between both samples: never more than the counters gained."""
    if not recorded.has("vmstat.before", "vmstat.after"):
        pytest.skip("the run has no vmstat samples")
    rows = wbscope.query("reclaim_efficiency", recorded.folder)
    for row in rows:
        if row["reclaimer"] in ("kswapd", "direct"):
            scanned = vmstat_delta(recorded.folder, f"pgscan_{row['reclaimer']}")
            freed = vmstat_delta(recorded.folder, f"pgsteal_{row['reclaimer']}")
            assert (row["vmstat_scanned_count"], row["vmstat_reclaimed_count"]) == (scanned, freed)
            assert row["scanned_count"] <= scanned
            assert row["reclaimed_count"] <= freed


def test_events_and_vmstat_agree_to_the_page_in_the_reclaim_run(wbscope: Wbscope) -> None:
    recorded = example("reclaim-writes")
    for row in wbscope.query("reclaim_efficiency", recorded.folder):
        if row["vmstat_scanned_count"] is not None:
            assert row["scanned_count"] == row["vmstat_scanned_count"]
            assert row["reclaimed_count"] == row["vmstat_reclaimed_count"]
    lines = {row["name"]: row for row in wbscope.query("mmtests_vmstat", recorded.folder)}
    for name in ("Allocation stalls", "Page writes by reclaim", "Page writes file"):
        assert lines[name]["value"] == lines[name]["events"] is not None, name
    for name, counter in (("Swap Ins", "pswpin"), ("Major Faults", "pgmajfault")):
        assert lines[name]["value"] == vmstat_delta(recorded.folder, counter)
    minor = vmstat_delta(recorded.folder, "pgfault") - vmstat_delta(recorded.folder, "pgmajfault")
    assert lines["Minor Faults"]["value"] == minor


@pytest.mark.parametrize("name", ["reclaim-writes", "patched-kernel/reclaim"])
def test_where_the_pages_went(wbscope: Wbscope, name: str) -> None:
    """6.1 writes zeros like other pages; what did not reach the swap had its slot freed before."""
    recorded = example(name)
    rows = {r["destination"]: r for r in wbscope.query("reclaim_destinations", recorded.folder)}
    gained = vmstat_delta(recorded.folder, "nr_vmscan_write")
    swapped = vmstat_delta(recorded.folder, "pswpout")
    file = sum(1 for _, kind, _ in reclaimers(recorded.events) if kind == "file")
    assert rows["swap device"]["pages_count"] == swapped
    assert rows["file"]["pages_count"] == file
    assert rows["zero-filled"]["pages_count"] == 0
    assert rows["rest"]["pages_count"] == gained - swapped - file
    assert math.fsum(row["share_ratio"] or 0 for row in rows.values()) == pytest.approx(1)
    lines = {row["name"]: row for row in wbscope.query("mmtests_vmstat", recorded.folder)}
    assert lines["Page writes file"]["value"] == lines["Page writes file"]["events"] == file
    assert lines["Page writes anon"]["value"] == lines["Page writes anon"]["events"]
    for row in wbscope.query("reclaim_writes", recorded.folder):
        ratio = swapped / (gained - file) if row["kind"] == "anon" else None
        assert row["swap_device_ratio"] == ratio, row


def test_each_reclaim_that_wrote_has_a_row(wbscope: Wbscope) -> None:
    """Once for each invocation, as the printk of 2011: fewer rows than writes, and none lost."""
    recorded = example("reclaim-writes")
    rows = wbscope.query("reclaim_dirty_state", recorded.folder)
    writes = reclaimers(recorded.events)
    assert sum(row["events_count"] for row in rows) == len(writes)
    assert len(rows) < len(writes) / 100
    by_kind = Counter(kind for _, kind, _ in writes)
    assert sum(row["events_count"] for row in rows if row["kind"] == "file") == by_kind["file"]
    states = dirty_states(recorded.events)
    for row in rows[:: max(1, len(rows) // 23)]:
        at = [v for ts, v in states if ts == row["ts"] - row["state_age_ns"]]
        assert row["dirty_bytes"] in [v["dirty"] * recorded.page_bytes for v in at], row
        assert not [ts for ts, _ in states if row["ts"] - row["state_age_ns"] < ts < row["ts"]]
