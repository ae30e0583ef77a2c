# SPDX-License-Identifier: Apache-2.0
"""Reclaim's pages, block requests, vmstat and the files beside a trace."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict

import pytest
from support.cli import Wbscope
from support.oracle import (
    Request,
    dirty_states,
    flusher_pages,
    nearest_rank,
    reclaimers,
    requests,
    scans,
)
from support.report import parse_report, report_lines
from support.runs import RecordedRun, example
from support.sidecars import (
    fio_written_bytes,
    ls_files_bytes,
    vmstat_delta,
    vmstat_names,
    vmstat_value,
    zone_spans,
)

# Pages that reclaim wrote: by kind, by zone and by who reclaimed.


@pytest.mark.quick("reclaim-writes")
def test_totals_of_the_reclaim_run(wbscope: Wbscope) -> None:
    recorded = example("reclaim-writes")
    rows = wbscope.query("reclaim_writes", recorded.folder)
    by_kind: Counter[str] = Counter()
    for row in rows:
        by_kind[row["kind"]] += row["pages_count"]
    assert by_kind == {"anon": 188_808, "file": 1}
    assert by_kind.total() == vmstat_delta(recorded.folder, "nr_vmscan_write") == 188_809
    assert by_kind["anon"] == vmstat_delta(recorded.folder, "pswpout")


@pytest.mark.quick("reclaim-writes")
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


@pytest.mark.quick("reclaim-writes")
def test_one_page_per_event_where_folios_are_single_pages(wbscope: Wbscope) -> None:
    rows = wbscope.query("reclaim_writes", example("reclaim-writes").folder)
    assert rows
    assert all(row["pages_count"] == row["events_count"] for row in rows)


@pytest.mark.quick("reclaim-writes")
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


@pytest.mark.quick("reclaim-writes")
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


@pytest.mark.quick("reclaim-writes")
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


@pytest.mark.quick("reclaim-writes")
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


@pytest.mark.quick("reclaim-writes")
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


# Block requests and the flushers' work, against the lines that trace-cmd prints.


def _deepest(found: list[Request]) -> int:
    """Most requests in flight at once; one that ends when another begins is counted first."""
    steps = [(r.issued, 1) for r in found]
    steps += [(r.completed, -1) for r in found if r.completed is not None]
    depth = most = 0
    for _, change in sorted(steps):
        depth += change
        most = max(most, depth)
    return most


def test_latency_of_each_device_and_kind(wbscope: Wbscope, recorded: RecordedRun) -> None:
    expected: dict[tuple[str, str], list[Request]] = defaultdict(list)
    for found in requests(recorded.events):
        expected[found.device, found.op].append(found)
    rows = wbscope.query("block_latency", recorded.folder)
    assert {(row["device"], row["op"]) for row in rows} == set(expected) != set()
    for row in rows:
        group = expected[row["device"], row["op"]]
        ended = [r for r in group if r.completed is not None]
        times = [r.completed - r.issued for r in ended if r.completed is not None]
        assert row["count"] == len(ended), row
        assert row["open_count"] == len(group) - len(ended), row
        assert row["bytes"] == sum(r.bytes for r in ended), row
        assert row["latency_max_ns"] == (max(times) if times else None), row
        for name, share in (("p50", 0.50), ("p95", 0.95), ("p99", 0.99)):
            assert row[f"latency_{name}_ns"] == nearest_rank(times, share), (name, row)
        assert row["depth_max_count"] == _deepest(group), row


def test_requests_and_completions_have_the_same_bytes(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    """Bytes of whole requests, and of completions, differ only by what is cut off at both ends."""
    whole: dict[str, int] = defaultdict(int)
    for row in wbscope.query("block_latency", recorded.folder):
        if row["op"] == "write":
            whole[row["device"]] += row["bytes"]
    parts: dict[str, int] = defaultdict(int)
    for row in wbscope.query("throughput_by_device", recorded.folder):
        parts[row["device"]] += row["written_bytes"]
    assert set(whole) == {device for device, size in parts.items() if size}
    for device, size in whole.items():
        assert size == pytest.approx(parts[device], rel=0.01), device


def test_pages_of_the_flushers_work(wbscope: Wbscope, recorded: RecordedRun) -> None:
    totals: dict[tuple[str, str], int] = defaultdict(int)
    rows = wbscope.query("writeback_work", recorded.folder)
    for row in rows:
        totals[row["bdi"], row["reason"]] += row["pages_count"]
        assert row["bytes"] == row["pages_count"] * recorded.page_bytes
        if row["finished_ts"] is not None:
            assert row["dur"] == row["finished_ts"] - row["started_ts"] >= 0, row
    assert totals == flusher_pages(recorded.events)
    chunks = sum(event.name == "writeback_start" for event in recorded.events)
    assert sum(row["chunks_count"] for row in rows) == chunks


def test_runs_of_the_flusher_wrote_what_its_work_did(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    """writeback_pages_written is counted by the kernel, run by run, apart from the chunks."""
    told = [int(e.text) for e in recorded.events if e.name == "writeback_pages_written"]
    if not told:
        pytest.skip("the run has no writeback_pages_written")
    rows = wbscope.query("writeback_work", recorded.folder)
    assert sum(row["pages_count"] for row in rows) == pytest.approx(sum(told), rel=0.02)


def test_work_is_of_the_part_that_it_began_in(wbscope: Wbscope, recorded: RecordedRun) -> None:
    """So that parts add up to the run; work that went on in the second was in both."""
    whole = wbscope.query("writeback_work", recorded.folder)
    length = recorded.events[-1].ts - recorded.events[0].ts
    for share in (3, 5, 7):
        border = f"{length * share // 10}ns"
        before = wbscope.query("writeback_work", recorded.folder, "--to", border)
        after = wbscope.query("writeback_work", recorded.folder, "--from", border)
        assert before + after == whole


# The files beside a trace arrive in the database as they are.


def test_zones_are_those_of_zoneinfo(wbscope: Wbscope, recorded: RecordedRun) -> None:
    if not recorded.has("zoneinfo"):
        pytest.skip("the run has no zoneinfo")
    rows = wbscope.sql(
        recorded.folder,
        "SELECT node, zone, start_pfn, spanned_count FROM zone WHERE spanned_count > 0",
    )
    found = {
        (row["node"], row["zone"], row["start_pfn"], row["start_pfn"] + row["spanned_count"])
        for row in rows
    }
    assert found == set(zone_spans(recorded.folder))


@pytest.mark.parametrize("sample", ["before", "after"])
def test_vmstat_samples_are_whole(wbscope: Wbscope, recorded: RecordedRun, sample: str) -> None:
    if not recorded.has(f"vmstat.{sample}"):
        pytest.skip(f"the run has no vmstat.{sample}")
    rows = wbscope.sql(
        recorded.folder, f"SELECT name, value FROM sidecar_vmstat WHERE sample = '{sample}'"
    )
    lines = (recorded.folder / f"vmstat.{sample}").read_text().splitlines()
    names = [line.split()[0] for line in lines if re.fullmatch(r"\w+ \d+", line)]
    assert {row["name"]: row["value"] for row in rows} == {
        name: vmstat_value(recorded.folder, sample, name) for name in names
    }


def test_file_sizes_and_fio_totals(wbscope: Wbscope) -> None:
    deep = example("deep")
    rows = wbscope.sql(deep.folder, "SELECT name, bytes FROM sidecar_ls_files")
    sizes = {row["name"]: row["bytes"] for row in rows}
    for name, size in ls_files_bytes(deep.folder).items():
        assert sizes[name] == size
    rates = example("rate-limited-writers")
    values = {
        str(row["value"]) for row in wbscope.sql(rates.folder, "SELECT value FROM sidecar_fio")
    }
    assert {str(size) for size in fio_written_bytes(rates.folder).values()} <= values


def test_memory_cgroup_has_its_path(wbscope: Wbscope) -> None:
    rows = wbscope.sql(example("deep").folder, "SELECT cgroup_ino, path FROM cgroup")
    assert {row["cgroup_ino"]: row["path"] for row in rows}[27].endswith("/small")


@pytest.mark.parametrize("query", ["bdi_samples", "block_samples", "cgroup_samples", "pressure"])
def test_a_run_without_samples_says_so(wbscope: Wbscope, query: str) -> None:
    answer = wbscope.document("query", query, example("deep").folder)
    assert answer["rows"] == []
    assert [w["slug"] for w in answer["warnings"] if w["slug"] == "no-samples"] == ["no-samples"]


def test_kernel_release_and_clock(wbscope: Wbscope, recorded: RecordedRun) -> None:
    meta = {
        row["key"]: row["value"]
        for row in wbscope.sql(recorded.folder, "SELECT key, value FROM meta")
    }
    if recorded.has("uname"):
        words = (recorded.folder / "uname").read_text().split()
        assert meta["kernel_release"] == words[2]
    assert meta["clock"] == recorded.clock
    assert meta["endian"] == "little"
    assert int(meta["long_bytes"]) == 8


# The table of mmtests and the facts of a run, against the files beside the trace.

# Line of the table -> counters that are added up.
_SUMS = {
    "Major Faults": ("pgmajfault",),
    "Page Ins": ("pgpgin",),
    "Page Outs": ("pgpgout",),
    "Swap Ins": ("pswpin",),
    "Swap Outs": ("pswpout",),
    "Swap total": ("pswpin", "pswpout"),
    "Direct pages scanned": ("pgscan_direct",),
    "Kswapd pages scanned": ("pgscan_kswapd",),
    "Kswapd pages reclaimed": ("pgsteal_kswapd",),
    "Direct pages reclaimed": ("pgsteal_direct",),
    "Page writes by reclaim": ("nr_vmscan_write",),
    "Page writes anon": ("pswpout",),
    "Page reclaim immediate": ("nr_vmscan_immediate_reclaim",),
    "Slabs scanned": ("slabs_scanned",),
    "Direct inode steals": ("pginodesteal",),
    "Kswapd inode steals": ("kswapd_inodesteal",),
}


def test_every_line_of_the_mmtests_table(wbscope: Wbscope, recorded: RecordedRun) -> None:
    if not recorded.has("vmstat.before", "vmstat.after"):
        pytest.skip("the run has no vmstat samples")

    def delta(*names: str) -> int:
        return sum(vmstat_delta(recorded.folder, name) for name in names)

    expected: dict[str, float | None] = {name: delta(*c) for name, c in _SUMS.items()}
    stalls = [name for name in vmstat_names(recorded.folder) if name.startswith("allocstall")]
    assert stalls
    expected["Allocation stalls"] = delta(*stalls)
    expected["Minor Faults"] = delta("pgfault") - delta("pgmajfault")
    expected["Page writes file"] = delta("nr_vmscan_write") - delta("pswpout")
    ends = [event.ts for event in parse_report(report_lines(recorded.trace))]
    seconds = (max(ends) - min(ends)) / 1e9
    scanned = delta("pgscan_kswapd"), delta("pgscan_direct")
    for who, count in (("Kswapd", scanned[0]), ("Direct", scanned[1])):
        freed = delta(f"pgsteal_{who.lower()}")
        expected[f"{who} efficiency"] = 100 * freed / count if count else None
        expected[f"{who} velocity"] = count / seconds
    both = sum(scanned)
    expected["Percentage direct scans"] = 100 * scanned[1] / both if both else None
    rows = wbscope.query("mmtests_vmstat", recorded.folder)
    found = {row["name"]: row["value"] for row in rows}
    wanted = {name: value for name, value in expected.items() if value is not None}
    assert {name: value for name, value in found.items() if value is not None} == {
        name: pytest.approx(value, rel=1e-9) for name, value in wanted.items()
    }


def test_facts_of_the_run(wbscope: Wbscope, recorded: RecordedRun) -> None:
    facts = {row["key"]: row["value"] for row in wbscope.query("run_summary", recorded.folder)}
    events = list(parse_report(report_lines(recorded.trace)))
    ends = [event.ts for event in events]
    assert facts["events_count"] == len(events)
    assert facts["tasks_count"] == len({event.tid for event in events})
    assert facts["duration_ns"] == max(ends) - min(ends)
    assert facts["page_bytes"] == recorded.page_bytes
    assert facts["clock"] == recorded.clock
    # Debian's kernels have HZ = 250.
    assert facts["hz"] == "250"
    if recorded.has("uname"):
        assert facts["kernel"] in (recorded.folder / "uname").read_text().split()
    if recorded.has("meminfo"):
        words = (recorded.folder / "meminfo").read_text().split()
        assert facts["memory_bytes"] == int(words[words.index("MemTotal:") + 1]) * 1024
