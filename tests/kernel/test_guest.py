# SPDX-License-Identifier: Apache-2.0
"""What the three events say in a booted 6.1, against everything else that was recorded."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import statistics
import subprocess
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from support.cli import Wbscope
from support.kernelchecks import (
    Call,
    Done,
    Limits,
    Throttle,
    asleep,
    calls_of,
    domain_of_throttle,
    setpoint_of,
    unexplained_waits,
    wrong_zones,
    zones_of,
)

_ROOT = Path(__file__).parents[2]
_HERE = Path(__file__).parent
_RUNS = ("throttle", "reclaim")
# Emulated CPUs are slow, and two of them share the machine with whatever else runs.
_SLACK_NS = 20_000_000
_RECLAIMERS = {"kswapd": 0, "direct": 1, "memcg": 2, "proactive": 4, "other": 5}
_SUBMITTED, _DECLINED = 0, 1
_DIRTIER, _FLUSHER, _SAMPLER = range(3)
_FREERUN, _MIN_PAUSE, _RATELIMIT, _WB_CLEAN, _SIGNAL, _ASYNC = range(6)


@pytest.fixture(scope="session")
def runs(full: None, kernel_build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the run folders; $WBSCOPE_KERNEL_RUNS is one that was made before."""
    if made := os.environ.get("WBSCOPE_KERNEL_RUNS"):
        return Path(made)
    guest = kernel_build.build_image("6.1")
    out = _ROOT / "build/kernels/6.1/out"
    shutil.rmtree(out, ignore_errors=True)
    disks = tmp_path_factory.mktemp("disks")
    drives = []
    for name, limit in (("data", ",throttling.bps-write=4000000"), ("swap", ""), ("keep", "")):
        subprocess.run(["truncate", "-s", "1G", disks / name], check=True)
        drives.append(f"-drive file={disks / name},if=virtio,format=raw,cache=unsafe{limit}")
    env = dict(os.environ, MEM="384", LIMIT="600", QEMU_MORE=" ".join(drives),
               FILES=str(guest / "hog"))  # fmt: skip
    boot = [_ROOT / "tools/record-samples/boot", "amd64", guest, _HERE / "scenario.sh", out]
    done = subprocess.run(boot, env=env, capture_output=True, text=True, check=False)
    log = (out / "log").read_text() if (out / "log").exists() else ""
    assert "scenario rc=0" in log, f"{log}\n{(out / 'console').read_text()}\n{done.stderr}"
    return out


@pytest.fixture(scope="session")
def databases(
    runs: Path, wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, sqlite3.Connection]:
    """Every event of each run in tables; nothing was lost."""
    found = {}
    for name in _RUNS:
        path = tmp_path_factory.mktemp("db") / f"{name}.db"
        done = wbscope.run("ingest", runs / name, "-o", path, "--all")
        assert done.returncode == 0, done.stderr
        found[name] = sqlite3.connect(path)
        assert _rows(found[name], "SELECT * FROM lost_events") == []
    return found


def _rows(database: sqlite3.Connection, statement: str) -> list[tuple[int, ...]]:
    return database.execute(statement).fetchall()


def _vmstat(run: Path, counter: str) -> int:
    """How much the counter grew while the workload ran."""
    values = [
        int(line.split()[1])
        for when in ("before", "after")
        for line in (run / f"vmstat.{when}").read_text().splitlines()
        if line.startswith(f"{counter} ")
    ]
    return values[1] - values[0]


def _dones(database: sqlite3.Connection) -> list[Done]:
    columns = "ts, tid, wait_ns, total_ns, intended, loops, sleeps, domain, exit, cgroup_ino"
    return [
        Done(*row)
        for row in _rows(
            database, f"SELECT {columns} FROM ev_balance_dirty_pages_done ORDER BY ts, seq"
        )
    ]


def _calls(database: sqlite3.Connection) -> tuple[list[Call], list[Throttle]]:
    events = _rows(
        database,
        'SELECT ts, tid, pause, "limit", setpoint, dirty, cgroup_ino FROM ev_balance_dirty_pages'
        " ORDER BY ts, seq",
    )
    return calls_of((Throttle(*row) for row in events), _dones(database))


def _limits(database: sqlite3.Connection) -> list[Limits]:
    columns = "ts, tid, domain, dirty, bg_thresh, thresh, dirty_limit, cgroup_ino, caller"
    return [
        Limits(*row)
        for row in _rows(
            database, f"SELECT {columns} FROM ev_wb_domain_dirty_state ORDER BY ts, seq"
        )
    ]


# Reclaim


@pytest.mark.parametrize(
    ("outcome", "counter"),
    [(_SUBMITTED, "nr_vmscan_write"), (_DECLINED, "nr_vmscan_immediate_reclaim")],
)
def test_reclaim_pages_are_those_of_vmstat(
    outcome: int, counter: str, runs: Path, databases: dict[str, sqlite3.Connection]
) -> None:
    ((pages,),) = _rows(
        databases["reclaim"],
        f"SELECT sum(nr_pages) FROM ev_mm_vmscan_reclaim_writeback WHERE outcome = {outcome}",
    )
    assert pages == _vmstat(runs / "reclaim", counter)
    assert pages > 0


def test_reclaim_events_are_those_of_write_folio(databases: dict[str, sqlite3.Connection]) -> None:
    """One for one, in the same order, by the same thread, for the same pfn and flags."""
    old, new = (
        _rows(databases["reclaim"], f"SELECT tid, pfn, reclaim_flags FROM {table} ORDER BY seq")
        for table in (
            "ev_mm_vmscan_write_folio",
            f"ev_mm_vmscan_reclaim_writeback WHERE outcome = {_SUBMITTED}",
        )
    )
    assert len(old) > 1000
    assert Counter(new) == Counter(old)


def test_zones_are_those_of_the_pfn(runs: Path, databases: dict[str, sqlite3.Connection]) -> None:
    zones = zones_of((runs / "reclaim/zoneinfo").read_text())
    names = dict(enumerate(("DMA", "DMA32", "Normal", "Movable")))
    told = [
        (pfn, nid, names[zid])
        for pfn, nid, zid in _rows(
            databases["reclaim"], "SELECT pfn, nid, zid FROM ev_mm_vmscan_reclaim_writeback"
        )
    ]
    assert wrong_zones(told, zones) == []
    # Whether memory is so short that zone DMA is used is chance.
    assert {"DMA32"} <= {name for _, _, name in told} <= {"DMA", "DMA32"}


def test_every_reclaimer_is_told(databases: dict[str, sqlite3.Connection]) -> None:
    """kswapd is the thread of that name, memcg has an id, and the workload made each of them."""
    rows = _rows(
        databases["reclaim"],
        "SELECT reclaimer, memcg_id != 0, count(*) FROM ev_mm_vmscan_reclaim_writeback"
        " GROUP BY 1, 2",
    )
    seen = {(reclaimer, of_memcg) for reclaimer, of_memcg, _ in rows}
    assert {reclaimer for reclaimer, _ in seen} == set(_RECLAIMERS.values()), rows
    for name in ("memcg", "proactive"):
        assert (_RECLAIMERS[name], 1) in seen
        assert (_RECLAIMERS[name], 0) not in seen
    for name in ("kswapd", "direct"):
        assert (_RECLAIMERS[name], 1) not in seen
    kswapd = _rows(
        databases["reclaim"],
        "SELECT DISTINCT e.reclaimer, t.comm FROM ev_mm_vmscan_reclaim_writeback AS e"
        " JOIN task AS t USING (tid) WHERE t.comm LIKE 'kswapd%' OR e.reclaimer = 0",
    )
    assert kswapd == [(0, "kswapd0")]


def test_counters_are_the_machines(databases: dict[str, sqlite3.Connection]) -> None:
    """One node: its counters are the machine's, and no zone has more than both."""
    wrong = _rows(
        databases["reclaim"],
        "SELECT count(*) FROM ev_mm_vmscan_reclaim_writeback WHERE z_write_pending < 0"
        " OR abs(n_dirty - g_dirty) > 64 OR abs(n_writeback - g_writeback) > 64"
        " OR abs(n_inactive_file - g_inactive_file) > 64"
        " OR z_inactive_file > n_inactive_file + 512",
    )
    assert wrong == [(0,)]


def test_files_and_tmpfs_have_an_inode(databases: dict[str, sqlite3.Connection]) -> None:
    """A file has the disk's number and its own; what is anonymous has none; tmpfs has dev 0:n."""
    rows = _rows(
        databases["reclaim"],
        "SELECT DISTINCT reclaim_flags & 2, dev >> 20, ino > 0 FROM ev_mm_vmscan_reclaim_writeback",
    )
    assert {(file, major, has) for file, major, has in rows} >= {(2, 254, 1), (0, 0, 0), (0, 0, 1)}
    assert all(has for file, _, has in rows if file)


# Throttling


def test_each_event_is_in_one_call(databases: dict[str, sqlite3.Connection]) -> None:
    """loops is the number of balance_dirty_pages events of the call."""
    calls, left = _calls(databases["throttle"])
    assert len(calls) > 300
    assert left == []
    for call in calls:
        assert call.events[0].ts >= call.done.start - _SLACK_NS
    assert [(c.done.loops, c.done) for c in calls] == [(len(c.events), c.done) for c in calls]
    assert max(call.done.loops for call in calls) > 1


def test_grouping_of_the_old_event_is_right(
    runs: Path, wbscope: Wbscope, databases: dict[str, sqlite3.Connection]
) -> None:
    """The rule by which wbscope makes calls of balance_dirty_pages events, against the kernel."""
    calls, _ = _calls(databases["throttle"])
    told = sorted((call.done.tid, call.events[0].ts, call.done.loops) for call in calls)
    rows = wbscope.sql(
        runs / "throttle", "SELECT tid, ts, is_first FROM wb_throttle ORDER BY tid, ts"
    )
    ruled: list[tuple[int, int, int]] = []
    for row in rows:
        if row["is_first"]:
            ruled.append((row["tid"], row["ts"], 1))
        else:
            tid, ts, loops = ruled[-1]
            ruled[-1] = (tid, ts, loops + 1)
    assert ruled == told


def test_waits_are_those_of_the_scheduler(databases: dict[str, sqlite3.Connection]) -> None:
    """wait_ns against the times without a CPU, on the same clock (mono)."""
    calls, _ = _calls(databases["throttle"])
    switches = _rows(
        databases["throttle"],
        "SELECT ts, prev_pid, prev_state, next_pid FROM ev_sched_switch ORDER BY ts, seq",
    )
    off = asleep(switches)
    assert unexplained_waits(calls, off, _SLACK_NS) == []
    slept = [
        (call, sum(o.end - o.start for o in off[call.done.tid]
                   if o.asleep and call.start <= o.start and o.end <= call.done.ts))
        for call in calls if call.done.sleeps
    ]  # fmt: skip
    assert sum(call.done.sleeps for call, _ in slept) > 20
    more = [(call.done.wait_ns - ns) / call.done.sleeps for call, ns in slept]
    # The way into the scheduler and out of it is short nearly always.
    assert statistics.median(more) < 1_000_000
    total = sum(call.done.wait_ns for call in calls)
    assert total == pytest.approx(sum(ns for _, ns in slept), rel=0.05)


def test_no_sleep_is_no_wait(databases: dict[str, sqlite3.Connection]) -> None:
    for done in _dones(databases["throttle"]):
        assert (done.wait_ns > 0, done.intended_ms > 0) == (done.sleeps > 0,) * 2
        assert done.wait_ns <= done.total_ns
        assert done.sleeps <= done.loops


def test_intended_is_the_sum_of_the_pauses(databases: dict[str, sqlite3.Connection]) -> None:
    calls, _ = _calls(databases["throttle"])
    for call in calls:
        pauses = [event.pause_ms for event in call.events if event.pause_ms > 0]
        if call.done.exit != _ASYNC:
            assert call.done.intended_ms == sum(pauses)
            assert call.done.sleeps == len(pauses)


def test_exits_are_told(databases: dict[str, sqlite3.Connection]) -> None:
    """A min_pause exit ends in an event without pause, others in one with a sleep."""
    calls, _ = _calls(databases["throttle"])
    exits = Counter(call.done.exit for call in calls)
    # How many of the others there are depends on how fast the emulated CPUs write.
    assert exits[_MIN_PAUSE] > 0
    assert len(exits) > 1, exits
    assert set(exits) <= {_FREERUN, _MIN_PAUSE, _RATELIMIT, _WB_CLEAN, _SIGNAL}, exits
    for call in calls:
        if call.done.exit == _MIN_PAUSE:
            assert call.events[-1].pause_ms <= 0
        else:
            assert call.events[-1].pause_ms > 0
            assert call.done.sleeps > 0


# Domains


def test_thresholds_are_inputs_of_the_setpoint(databases: dict[str, sqlite3.Connection]) -> None:
    """setpoint and dirty of each event follow from the limits of the domain that decided."""
    calls, _ = _calls(databases["throttle"])
    pairs = domain_of_throttle(calls, _limits(databases["throttle"]))
    assert len(pairs) == len(calls)
    seen = Counter()
    for event, limits in pairs:
        assert limits is not None
        assert event.dirty == limits.dirty
        assert event.setpoint == setpoint_of(event.limit, limits.thresh, limits.bg_thresh)
        seen[limits.domain] += 1
        if limits.domain:
            assert limits.cgroup_ino == event.cgroup_ino != 1
        else:
            assert limits.cgroup_ino == 0
            # The smoothed limit is updated between the two every 200 ms.
            seen["same limit"] += event.limit == limits.dirty_limit
    assert seen[0] > 50
    assert seen[1] > 20
    assert seen["same limit"] > 0.8 * seen[0]


def test_the_global_domain_is_that_of_global_dirty_state(
    databases: dict[str, sqlite3.Connection],
) -> None:
    """One for one: the same thread at the same place, with the same limits."""
    for database in databases.values():
        old = _rows(
            database,
            "SELECT tid, background_thresh, dirty_thresh, dirty_limit FROM ev_global_dirty_state"
            " ORDER BY tid, ts, seq",
        )
        new = _rows(
            database,
            "SELECT tid, bg_thresh, thresh, dirty_limit FROM ev_wb_domain_dirty_state"
            " WHERE domain = 0 ORDER BY tid, ts, seq",
        )
        assert len(old) > 500
        differ = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
        # dirty_limit alone can change between the two reads.
        assert [pair for pair in differ if pair[0][:3] != pair[1][:3]] == []
        assert len(differ) < 0.01 * len(old)


def test_callers_and_boosts_are_told(runs: Path, databases: dict[str, sqlite3.Connection]) -> None:
    """The flusher is a kworker, `cat /proc/vmstat` a sampler, and chrt -f is boosted."""
    rows = _rows(
        databases["throttle"],
        "SELECT DISTINCT caller, domain, rt_boost, t.comm FROM ev_wb_domain_dirty_state AS e"
        " JOIN task AS t USING (tid)",
    )
    callers = {caller for caller, _, _, _ in rows}
    assert callers == {_DIRTIER, _FLUSHER, _SAMPLER}
    assert all(str(comm).startswith("kworker/") for caller, _, _, comm in rows if caller == 1)
    assert {comm for caller, _, _, comm in rows if caller == _SAMPLER} <= {"cat", "sh"}
    assert {domain for caller, domain, _, _ in rows if caller == _DIRTIER} == {0, 1}
    boosted = _rows(
        databases["throttle"],
        "SELECT DISTINCT tid FROM ev_wb_domain_dirty_state WHERE rt_boost = 1",
    )
    assert len(boosted) == 1
    small = int((runs / "throttle/cgroups").read_text().splitlines()[1].split()[0])
    inodes = _rows(
        databases["throttle"],
        "SELECT DISTINCT cgroup_ino FROM ev_wb_domain_dirty_state WHERE domain = 1",
    )
    assert inodes == [(small,)]


# Tools


@pytest.mark.parametrize("run", _RUNS)
def test_trace_cmd_prints_every_field(
    run: str, runs: Path, databases: dict[str, sqlite3.Connection]
) -> None:
    """trace-cmd report reads the print formats: no event fails, numbers are those of the tables."""
    program = shutil.which("trace-cmd")
    assert program is not None
    text = subprocess.run(
        [program, "report", "-i", runs / run / "trace.dat"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for event, fields in {
        "balance_dirty_pages_done": ("wait_ns", "total_ns", "pages_dirtied", "loops"),
        "wb_domain_dirty_state": ("avail", "dirty", "bg_thresh", "thresh"),
        "mm_vmscan_reclaim_writeback": ("nr_pages", "priority", "ino", "write_pending"),
    }.items():
        if run == "throttle" and event.startswith("mm_"):
            continue
        lines = [line for line in text.splitlines() if f" {event}: " in line]
        assert lines
        assert not any("FAILED TO PARSE" in line for line in lines)
        told = Counter(tuple(int(_value(line, field)) for field in fields) for line in lines)
        columns = ["z_write_pending" if f == "write_pending" else f for f in fields]
        stored = Counter(_rows(databases[run], f"SELECT {', '.join(columns)} FROM ev_{event}"))
        assert told == stored


def _value(line: str, field: str) -> str:
    match = re.search(rf"(?<=[ :]){field}=(\S+)", line)
    assert match is not None, line
    return match[1]
