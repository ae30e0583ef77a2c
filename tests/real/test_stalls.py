# SPDX-License-Identifier: Apache-2.0
"""Every wait of a task and what explains it, against trace-cmd's text."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter, defaultdict

import pytest
from support.cli import Document, Wbscope
from support.oracle import dirty_states, nearest_rank, requests, sleeps_by_pause
from support.report import key_values
from support.runs import RecordedRun, example
from support.stall_oracle import global_pos_ratio, own_times, reclaim_waits, waits_of_sleeps

# Every wait of a task, against what trace-cmd's text says.

_MS_NS = 1_000_000


def _totals(rows: list[Document]) -> dict[tuple[int, str], int]:
    totals: dict[tuple[int, str], int] = defaultdict(int)
    for row in rows:
        totals[row["tid"], row["kind"]] += row["dur"] or 0
    return {key: total for key, total in totals.items() if total}


def test_no_task_waits_longer_than_the_trace_lasts(wbscope: Wbscope, recorded: RecordedRun) -> None:
    meta = wbscope.sql(recorded.folder, "SELECT key, value FROM meta WHERE key LIKE '%_ts'")
    bounds = {row["key"]: int(row["value"]) for row in meta}
    by_task: Counter[int] = Counter()
    for row in wbscope.query("stalls", recorded.folder):
        assert row["cause"], row
        if row["dur"] is None:
            assert row["span_ns"] is None, row
            continue
        assert 0 < row["dur"] <= row["span_ns"], row
        assert bounds["first_ts"] <= row["ts"] <= row["ts"] + row["span_ns"] <= bounds["last_ts"]
        by_task[row["tid"]] += row["dur"]
    assert by_task
    assert max(by_task.values()) <= bounds["last_ts"] - bounds["first_ts"]


def test_pieces_of_a_task_do_not_overlap(wbscope: Wbscope, recorded: RecordedRun) -> None:
    rows = wbscope.sql(
        recorded.folder, "SELECT tid, from_ts, to_ts FROM wb_wait_piece ORDER BY tid, from_ts"
    )
    for before, row in itertools.pairwise(rows):
        assert row["from_ts"] < row["to_ts"], row
        assert before["tid"] != row["tid"] or before["to_ts"] <= row["from_ts"], (before, row)


def test_totals_of_the_deep_run(wbscope: Wbscope) -> None:
    """All waits of this run are measured by sched_switch, or lie between two events."""
    recorded = example("deep")
    expected = own_times(waits_of_sleeps(recorded.events, recorded.events[-1].ts))
    found = {
        key: total
        for key, total in _totals(wbscope.query("stalls", recorded.folder)).items()
        if key[1] != "blocked outside throttling"  # what no event explains
    }
    assert {key for key in found if key[1] in ("fsync", "folio wait", "write")}
    for key in set(found) | set(expected):
        # A wait that the end of the trace cuts ends with the last event, which may be another one.
        assert abs(found.get(key, 0) - expected.get(key, 0)) <= 3 * _MS_NS, key
    assert sum(found.values()) == pytest.approx(sum(expected.values()), rel=1e-4)


def test_throttle_waits_are_the_measured_sleeps(wbscope: Wbscope) -> None:
    recorded = example("deep")
    sleeps = sleeps_by_pause(recorded.events, recorded.events[-1].ts)
    expected = sorted((pause.tid, out, back - out) for pause, out, back in sleeps)
    rows = [row for row in wbscope.query("stalls", recorded.folder) if row["kind"] == "throttle"]
    assert sorted((row["tid"], row["ts"], row["dur"]) for row in rows) == expected


def test_reclaim_spans_of_the_text(wbscope: Wbscope) -> None:
    recorded = example("reclaim-writes")
    waits = reclaim_waits(recorded.events)
    rows = wbscope.query("stalls", recorded.folder)
    # A span that begins and ends at one time stamp is no wait.
    spans = sorted(
        (w.tid, w.start, w.end - w.start)
        for w in waits
        if w.kind == "direct reclaim" and w.end > w.start
    )
    found = [row for row in rows if row["kind"] == "direct reclaim"]
    assert sorted((row["tid"], row["ts"], row["span_ns"]) for row in found) == spans
    expected = own_times(waits)
    totals = _totals(rows)
    for (tid, kind), total in expected.items():
        if kind == "direct reclaim":
            # Lengths of throttles are told in jiffies: cut where other events of the task are.
            count = sum(w.tid == tid and w.kind == "reclaim throttle" for w in waits)
            assert abs(totals[tid, kind] - total) <= 4 * _MS_NS * count, (tid, kind)
    waited = [
        key_values(event.text)["reason"]
        for event in recorded.events
        if event.name == "mm_vmscan_throttled" and int(key_values(event.text)["usect_delayed"]) > 0
    ]
    # trace-cmd prints the bit of VMSCAN_THROTTLE_CONGESTED as a number.
    writeback = [r for r in waited if r in ("VMSCAN_THROTTLE_WRITEBACK", "0x8")]
    throttles = [row for row in rows if row["kind"] == "reclaim throttle"]
    assert len(throttles) == len(waited)
    causes = Counter(row["cause"] for row in throttles)
    assert causes["writeback behind reclaim"] == len(writeback) > 0


def test_reclaim_causes_follow_kswapd(wbscope: Wbscope) -> None:
    """kswapd sleeps once in this run: before that, every direct reclaim met it awake."""
    recorded = example("reclaim-writes")
    awake = [e.ts for e in recorded.events if e.name == "mm_vmscan_kswapd_wake"]
    (asleep,) = [e.ts for e in recorded.events if e.name == "mm_vmscan_kswapd_sleep"]
    woken = [ts for ts in awake if ts > asleep]
    for row in wbscope.query("stalls", recorded.folder):
        if row["kind"] == "direct reclaim" and row["ts"] > awake[0]:
            end = row["ts"] + row["span_ns"]
            if end < asleep or (woken and row["ts"] > woken[0]):
                assert row["cause"] == "kswapd behind", row


def test_slept_time_of_the_rate_limited_writers(wbscope: Wbscope) -> None:
    folder = example("rate-limited-writers").folder
    slept = {
        row["tid"]: row["slept_total_ns"]
        for row in wbscope.query("throttle_by_task", folder)
        if row["slept_total_ns"]
    }
    found = _totals(wbscope.query("stalls", folder))
    throttled = {tid: total for (tid, kind), total in found.items() if kind == "throttle"}
    assert set(throttled) == set(slept)
    for tid, total in throttled.items():
        # Intended sleeps end where another event shows that the task ran.
        assert 0.99 * slept[tid] <= total <= slept[tid], tid


def test_position_is_that_of_the_kernels_arithmetic(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    """And over the limit is where the kernel's factor is 0 and no rate is left."""
    pauses: dict[tuple[int, int], dict[str, str]] = {
        (event.tid, event.ts): key_values(event.text)
        for event in recorded.events
        if event.name == "balance_dirty_pages"
    }
    rows = wbscope.sql(
        recorded.folder,
        "SELECT b.tid, b.ts, c.cause, c.pos_ratio, c.global_pos_ratio FROM wb_throttle_cause AS c "
        "JOIN raw_balance_dirty_pages AS b ON b.seq = c.seq",
    )
    assert rows
    for row in rows:
        values = {key: int(value) for key, value in pauses[row["tid"], row["ts"]].items()}
        limit, setpoint, dirty = values["limit"], values["setpoint"], values["dirty"]
        kernel = global_pos_ratio(limit, setpoint, dirty)
        if row["global_pos_ratio"] is not None:
            assert row["global_pos_ratio"] == pytest.approx(kernel, abs=0.01), (row, values)
        if row["cause"] == "over the limit":
            assert kernel < 0.03, (row, values)
            assert values["task_ratelimit"] == 0, (row, values)
        elif row["cause"] == "above setpoint":
            assert dirty > setpoint, (row, values)
        elif row["cause"] in ("slow bdi bandwidth", "falling bdi bandwidth"):
            assert values["task_ratelimit"] >= 0.98 * values["dirty_ratelimit"], (row, values)
        elif row["cause"] == "memcg domain":
            assert values["cgroup_ino"] > 1, (row, values)


def test_memory_cgroup_rows_are_those_with_its_own_setpoint(wbscope: Wbscope) -> None:
    """examples/deep: 78 events of cgroup 27 carry the setpoint of its own domain."""
    folder = example("deep").folder
    own = wbscope.sql(
        folder,
        "SELECT count(*) AS count FROM wb_throttle "
        "WHERE cgroup_ino = 27 AND setpoint_bytes < 30 << 20 AND slept_ns > 0",
    )
    rows = wbscope.query("stalls", folder, "--cgroup", "27")
    assert Counter(row["cause"] for row in rows)["memcg domain"] == own[0]["count"] > 0


def test_fsync_waits_for_the_journal(wbscope: Wbscope) -> None:
    """The writer that fsyncs waits for commits of its journal, as its text shows."""
    recorded = example("deep")
    rows = [row for row in wbscope.query("stalls", recorded.folder) if row["kind"] == "fsync"]
    assert len(rows) == 12
    causes = Counter(row["cause"] for row in rows)
    assert causes["journal commit"] >= 10
    assert sum(r["dur"] for r in rows if r["cause"] == "journal commit") > 7_000 * _MS_NS


def test_summary_adds_up(wbscope: Wbscope, recorded: RecordedRun) -> None:
    groups: dict[tuple[int, str, str, str], list[int]] = defaultdict(list)
    for row in wbscope.query("stalls", recorded.folder):
        groups[row["tid"], row["comm"], row["kind"], row["cause"]].append(row["dur"])
    rows = wbscope.query("stalls_by_task", recorded.folder)
    assert len(rows) == len(groups)
    for row in rows:
        durs = [d for d in groups[row["tid"], row["comm"], row["kind"], row["cause"]] if d]
        assert row["stalls_count"] == len(durs) + row["unmeasured_count"]
        assert (row["total_ns"], row["max_ns"]) == (sum(durs), max(durs))
        assert row["p99_ns"] == nearest_rank(durs, 0.99)


def test_every_stall_has_evidence(wbscope: Wbscope, recorded: RecordedRun) -> None:
    """Or the longest 10000 have, where there are more."""
    rows = wbscope.query("stalls", recorded.folder)
    evidence = wbscope.query("stalls_evidence", recorded.folder)
    found = {(row["stall_ts"], row["tid"], row["kind"]) for row in evidence}
    shortest = sorted((row["dur"] or 0 for row in rows), reverse=True)[:10_000][-1]
    for row in rows:
        if len(rows) <= 10_000 or (row["dur"] or 0) > shortest:
            assert (row["ts"], row["tid"], row["kind"]) in found, row


def test_explain_prints_both(wbscope: Wbscope) -> None:
    folder = example("deep").folder
    document = wbscope.document("query", "stalls", folder, "--tid", "178", "--explain")
    assert len(document["rows"]) == 2
    assert document["explain"]["query"] == "stalls_evidence"
    assert document["explain"]["rows"] == wbscope.query("stalls_evidence", folder, "--tid", "178")


# What stalls are explained with is what trace-cmd prints of the same events.

# Fields under the names of the newest kernel.
_NAMES = {"bdi_setpoint": "wb_setpoint", "bdi_dirty": "wb_dirty"}


def test_events_are_quoted_as_they_are(wbscope: Wbscope, recorded: RecordedRun) -> None:
    pauses: dict[tuple[int, int], dict[str, str]] = {}
    for event in recorded.events:
        if event.name == "balance_dirty_pages":
            values = key_values(event.text)
            values.pop("bdi", None)
            values.pop("dirtied_pause", None)
            named = {_NAMES.get(key, key): value for key, value in values.items()}
            pauses[event.tid, event.ts] = named
    rows = wbscope.query("stalls_evidence", recorded.folder)
    quoted = 0
    for row in rows:
        if row["evidence"] == "balance_dirty_pages":
            at = row["stall_ts"] - row["before_ns"]
            assert key_values(row["detail"]) == pauses[row["tid"], at], row
            quoted += 1
    assert quoted


def test_state_before_is_the_last_one_that_the_task_fired(
    wbscope: Wbscope, recorded: RecordedRun
) -> None:
    by_tid: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for event in recorded.events:
        if event.name == "global_dirty_state":
            by_tid[event.tid].append((event.ts, event.text))
    checked = 0
    rows = wbscope.query("stalls_evidence", recorded.folder)
    events = {
        (row["stall_ts"], row["tid"]): row["stall_ts"] - row["before_ns"]
        for row in rows
        if row["evidence"] == "balance_dirty_pages"
    }
    for row in rows:
        if row["evidence"] == "global_dirty_state before":
            fired = events[row["stall_ts"], row["tid"]]
            states = by_tid[row["tid"]]
            last = bisect_right(states, fired, key=lambda state: state[0]) - 1
            assert last >= 0
            values = key_values(states[last][1])
            told = key_values(row["detail"])
            assert told == {key: values[key] for key in told}, row
            assert row["stall_ts"] - row["before_ns"] <= fired
            checked += 1
    assert checked
    assert dirty_states(recorded.events)


def test_requests_in_flight(wbscope: Wbscope, recorded: RecordedRun) -> None:
    """Requests issued and not done when a stall begins, of its device or of all."""
    found = requests(recorded.events)
    evidence = wbscope.query("stalls_evidence", recorded.folder)
    rows = [row for row in evidence if row["evidence"] == "requests in flight"]
    step = max(1, len(rows) // 97)
    for row in rows[::step]:
        count, _, device = row["detail"].partition(" on ")
        flying = sum(
            device in (request.device, "all devices")
            and request.issued <= row["stall_ts"]
            and (request.completed is None or request.completed > row["stall_ts"])
            for request in found
        )
        # One that is issued or done at the very time of the stall counts either way.
        at = sum(row["stall_ts"] in (request.issued, request.completed) for request in found)
        assert abs(int(count) - flying) <= at, row


Span = tuple[int, int]


def _without(span: Span, inner: list[Span]) -> list[Span]:
    """A span without those inside it."""
    left = []
    begin = span[0]
    for start, end in sorted(inner):
        if start < span[1] and end > begin:
            left.append((begin, min(start, span[1])))
            begin = max(begin, end)
    return [(a, b) for a, b in [*left, (begin, span[1])] if a < b]


def test_journal_covers_as_much_as_its_commits(wbscope: Wbscope) -> None:
    """Of each fsync: what the waits inside leave of it, and the commits of its journal."""
    recorded = example("deep")
    begun: dict[str, int] = {}
    commits: dict[str, list[Span]] = defaultdict(list)
    for event in recorded.events:
        if event.name in ("jbd2_start_commit", "jbd2_end_commit"):
            device = event.text.split()[1].replace(",", ":")
            if event.name == "jbd2_start_commit":
                begun[device] = event.ts
            elif device in begun:
                commits[device].append((begun.pop(device), event.ts))
    rows = wbscope.query("stalls", recorded.folder)
    inside: dict[int, list[Span]] = defaultdict(list)
    for row in rows:
        if row["kind"] != "fsync":
            inside[row["tid"]].append((row["ts"], row["ts"] + row["span_ns"]))
    checked = 0
    for row in rows:
        if row["kind"] != "fsync":
            continue
        own = _without((row["ts"], row["ts"] + row["span_ns"]), inside[row["tid"]])
        assert row["dur"] == sum(end - start for start, end in own), row
        covered = sum(
            max(0, min(end, b) - max(start, a))
            for start, end in own
            for a, b in commits[row["bdi"]]
        )
        assert row["journal_ratio"] == pytest.approx(covered / row["dur"], abs=1e-6), row
        assert (row["cause"] == "journal commit") == (covered >= row["dur"] / 2), row
        checked += 1
    assert checked == 12
