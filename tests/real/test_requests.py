# SPDX-License-Identifier: Apache-2.0
"""Block requests and the flushers' work, against the lines that trace-cmd prints."""

from __future__ import annotations

from collections import defaultdict

import pytest
from support.cli import Wbscope
from support.more_oracle import Request, flusher_pages, requests
from support.oracle import nearest_rank
from support.runs import RecordedRun


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
