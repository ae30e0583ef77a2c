# SPDX-License-Identifier: Apache-2.0
"""Random waits, requests, states and names of swap, and damaged files, each by hand."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import wbscope
from hypothesis import strategies as st
from support.cli import Wbscope
from support.kernel_events import formats
from support.properties import for_all
from support.stall_oracle import Wait, own_times
from support.tools import ingester_path, run
from support.tracedat import Trace
from support.wait_events import DIRECT, FSYNC, GRANT, MEMCG, MS, SYNC, Waits, at
from wbscope.library.library import find_sql_dir
from wbscope.library.statements import read_macros

# Random waits that nest and overlap in every way: each moment of a task counts once.
#
# The rows are compared with an oracle that walks over the moments of each task one by one.

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


# Requests whose end is lost, that are issued again, and those of zoned disks.

_MS = 10**6
_START = 10_000 * _MS
_DEV = 259 << 20


class _Requests:
    """Requests of one disk; times are ms from 10 s."""

    def __init__(self, uname: str = "Linux synthetic 6.1.0-test x86_64") -> None:
        self.trace = Trace(formats("block_rq_complete", "block_rq_issue"), uname=uname)

    def issue(self, ms: int, sector: int, sectors: int, rwbs: str = "W") -> None:
        values = {"dev": _DEV, "sector": sector, "nr_sector": sectors, "rwbs": rwbs}
        self.trace.event(0, _START + ms * _MS, 5, "block_rq_issue", {**values, "comm": "k"})

    def complete(self, ms: int, sector: int, sectors: int, rwbs: str = "W") -> None:
        values = {"dev": _DEV, "sector": sector, "nr_sector": sectors, "rwbs": rwbs}
        self.trace.event(0, _START + ms * _MS, 0, "block_rq_complete", values)

    def asked(self, folder: Path, query: str) -> list[Mapping[str, Any]]:
        self.trace.write(folder / "trace.dat")
        with wbscope.open(folder) as run:
            return list(run.query(query).records())


@pytest.mark.parametrize("lost", [False, True])
def test_a_lost_end_is_no_request_for_ever(tmp_path: Path, lost: bool) -> None:
    """One request of 2 ms each 100 ms: a depth of 0.02."""
    requests = _Requests()
    for number in range(100):
        requests.issue(number * 100, number * 2048, 2048)
        if lost and 10 <= number < 14:
            if number == 13:
                requests.trace.lost(0, 4)
        else:
            requests.complete(number * 100 + 2, number * 2048, 2048)
    (row,) = requests.asked(tmp_path, "block_latency")
    count = 96 if lost else 100
    assert (row["count"], row["open_count"]) == (count, 100 - count)
    assert row["depth_mean_count"] == pytest.approx(count * 2 / 9902, rel=1e-6)
    assert row["depth_max_count"] == 1


def test_a_request_that_is_issued_again_is_in_flight_once(tmp_path: Path) -> None:
    requests = _Requests()
    for ms in (0, 10, 20):
        requests.issue(ms, 0, 8)
    requests.complete(30, 0, 8)
    (row,) = requests.asked(tmp_path, "block_latency")
    assert (row["count"], row["open_count"], row["depth_max_count"]) == (1, 2, 1)


def test_zone_appends_are_written_and_resets_move_nothing(tmp_path: Path) -> None:
    """20 MiB of appends, of which only the end tells the place; then a finish beside a flush."""
    requests = _Requests("Linux synthetic 7.2.13-test x86_64")
    for number in range(20):
        requests.issue(number * 10, 0, 2048, "ZA")
        requests.complete(number * 10 + 2, number * 2048, 2048, "ZA")
    for number, rwbs in enumerate(("ZR", "ZRA", "ZO", "ZC")):
        requests.issue(200 + number * 10, number * 524_288, 0, rwbs)
        requests.complete(205 + number * 10, number * 524_288, 0, rwbs)
    requests.issue(300, 0, 0, "ZF")
    requests.issue(301, 0, 0, "FF")
    requests.complete(302, 0, 0, "ZF")
    requests.complete(309, 0, 0, "FF")
    rows = {row["op"]: row for row in requests.asked(tmp_path, "block_latency")}
    ends = {op: (row["count"], row["open_count"]) for op, row in rows.items()}
    assert ends == {"write": (20, 0), "other": (5, 0), "flush": (1, 0)}
    assert (rows["write"]["bytes"], rows["write"]["latency_max_ns"]) == (20 << 20, 2 * _MS)
    assert rows["flush"]["latency_max_ns"] == 8 * _MS
    (device,) = requests.asked(tmp_path, "throughput_by_device")
    assert (device["written_bytes"], device["read_bytes"]) == (20 << 20, 0)


_OPS = {
    "read": ("R", "RA", "RSM", "RF"),
    "write": ("W", "WS", "WFS", "FWFSM", "WSU", "ZA", "ZAS", "ZAF", "FZA"),
    "discard": ("D", "DS", "DE"),
    "other": ("N", "NS", "ZR", "ZRA", "ZF", "ZO", "ZC", "NF", ""),
}


def test_each_kind_of_request(tmp_path: Path) -> None:
    requests = _Requests()
    kinds = [(rwbs, kind) for kind, texts in _OPS.items() for rwbs in texts]
    for number, (rwbs, _) in enumerate(kinds):
        requests.issue(number, number * 8, 8, rwbs)
    for number, rwbs in enumerate(("FF", "F", "FFS", "FWS", "NF", "ZF")):
        requests.complete(100 + number, 0, 0, rwbs)
    requests.trace.write(tmp_path / "trace.dat")
    with wbscope.open(tmp_path) as run:
        issued = run.sql("SELECT rwbs, op FROM wb_block_request ORDER BY seq").records()
        assert [(row["rwbs"], row["op"]) for row in issued] == kinds
        done = run.sql("SELECT op FROM raw_block_rq_complete ORDER BY ts").records()
        assert [row["op"] for row in done] == [*["flush"] * 5, "other"]


# States of sched_switch: which bits an old kernel has for tasks that are idle, or have ended.

_NOLOAD, _PARKED_3_9, _PARKED, _IDLE = 0x400, 0x200, 0x40, 0x80


def _uname(kernel: str) -> str:
    return f"Linux synthetic {kernel}-test x86_64"


@pytest.mark.parametrize(
    ("kernel", "state", "wanted"),
    [
        ("6.1.0", 2, "D"),
        ("6.1.0", _IDLE, "I"),
        ("6.1.0", _PARKED, "I"),
        ("6.1.0", 0x20, "X"),
        ("6.1.0", 0x100, "R"),
        ("4.14.0", 0x10, "X"),
        ("4.13.0", 0x40, "X"),
        ("4.9.0", 2 | _NOLOAD, "I"),  # TASK_IDLE
        ("4.9.0", 2 | 0x80, "D"),  # TASK_KILLABLE
        ("4.9.0", 0x1000, "R"),
        ("4.4.0", _PARKED_3_9, "I"),
        ("4.1.0", 0x400, "R"),  # preempted
        ("3.8.0", 0x200, "R"),
        ("3.8.0", 0x40, "X"),
        ("4.4.0", 1, "S"),
        ("4.4.0", 4 | 0x80, "T"),
    ],
)
def test_states_by_kernel(tmp_path: Path, kernel: str, state: int, wanted: str) -> None:
    waits = Waits("sched_switch", cmdlines={11: "dd"}, uname=_uname(kernel))
    waits.sleep(10, 20, 11, state)
    waits.write(tmp_path)
    with wbscope.open(tmp_path) as run:
        rows = run.sql(f"SELECT is_on, left_state FROM {_switched()} ORDER BY seq").records()
        found = [(row["is_on"], row["left_state"]) for row in rows]
        blocked = len(run.sql("SELECT seq FROM wb_wait_end").records())
    assert found == [(0, wanted), (1, None)]
    assert blocked == (wanted == "D")


def _switched() -> str:
    macros = read_macros((find_sql_dir() / "macros.sql").read_text())
    (switched,) = (macro for macro in macros if macro.name == "switched")
    return switched.expand("switched!(k)")


def test_an_idle_thread_of_an_old_kernel_is_not_blocked(tmp_path: Path) -> None:
    waits = Waits("sched_switch", cmdlines={11: "dd", 60: "kidle"}, uname=_uname("4.9.0"))
    waits.sleep(1, 4000, 60, 2 | _NOLOAD)
    waits.sleep(10, 20, 11, 2)
    waits.write(tmp_path)
    with wbscope.open(tmp_path) as run:
        rows = run.query("blocked_coverage").records()
        told = [finding.id for finding in run.findings()]
    assert [row["blocked_ns"] for row in rows] == [10 * MS]
    assert "unexplained" not in told


@pytest.mark.parametrize(("kernel", "dead"), [("4.4.0", 64), ("4.13.16", 64), ("6.1.0", 16)])
def test_what_a_task_does_after_its_exit_is_its_own(tmp_path: Path, kernel: str, dead: int) -> None:
    """It closes its files then: one writer, not two of one name."""
    waits = Waits(
        "sched_switch",
        "sched_process_exit",
        "balance_dirty_pages",
        cmdlines={11: "dd"},
        uname=_uname(kernel),
    )
    waits.switch(0, 0, 0, 11)
    for second in (1, 2, 3, 4, 5, 6, 7):
        if second == 5:
            waits.add(4500, 11, "sched_process_exit", comm="dd", pid=11, prio=120)
        waits.add(
            second * 1000, 11, "balance_dirty_pages", bdi="8:0", limit=100_000, setpoint=80_000,
            dirty=85_000, bdi_setpoint=40_000, bdi_dirty=42_000, dirty_ratelimit=4000,
            task_ratelimit=4000, dirtied=200, dirtied_pause=32, paused=0, pause=200, period=400,
            think=200, cgroup_ino=1,
        )  # fmt: skip
    waits.switch(9000, 11, dead, 0)
    waits.write(tmp_path)
    with wbscope.open(tmp_path) as run:
        rows = run.query("throttle_by_task").records()
        names = len(run.sql("SELECT task_id FROM wb_task WHERE tid = 11").records())
    assert [(row["tid"], row["calls_count"]) for row in rows] == [(11, 7)]
    assert names == 1


# On which disk swap lies: names of disks that begin as another one's.

_STAT = " 10 0 80 5 10 0 2048 90 0 500 500\n"
_DISKS = {
    "dm-1": "253:1",
    "dm-12": "253:12",
    "md1": "9:1",
    "md12": "9:12",
    "nvme0n1": "259:0",
    "nvme0n10": "259:7",
    "sda": "8:0",
    "sdaa": "65:160",
    "mmcblk0": "179:0",
    "zram0": "252:0",
}


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/dev/dm-12", "253:12"),
        ("/dev/dm-1", "253:1"),
        ("/dev/dm-13", None),
        ("/dev/md12", "9:12"),
        ("/dev/md1p2", "9:1"),
        ("/dev/nvme0n10p2", "259:7"),
        ("/dev/nvme0n1p12", "259:0"),
        ("/dev/sda5", "8:0"),
        ("/dev/sdaa5", "65:160"),
        ("/dev/sdab", None),
        ("/dev/mmcblk0p1", "179:0"),
        ("/dev/mmcblk0boot0", None),
        ("/dev/zram0", "252:0"),
        ("/a\\040[b]/swap", "8:17"),  # a space, and no pattern
        ("/ab/swap", "8:1"),
    ],
)
def test_the_disk_of_a_path(tmp_path: Path, path: str, wanted: str | None) -> None:
    trace = Trace(formats("global_dirty_state"))
    trace.event(0, 10**9, 1, "global_dirty_state", {"nr_dirty": 1})
    trace.write(tmp_path / "trace.dat")
    disks = "".join(f"== {name}\ndev {number}\n{_STAT}" for name, number in _DISKS.items())
    (tmp_path / "block.before").write_text(disks)
    mounts = (("8:1", "sda1", "/"), ("8:17", "sdb1", "/a\\040[b]"))
    (tmp_path / "mounts").write_text(
        "".join(f"1 0 {n} / {m} rw - ext4 /dev/{d} rw\n" for n, d, m in mounts)
    )
    head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
    (tmp_path / "swaps").write_text(f"{head}{path}        partition\t976892\t1000\t-2\n")
    with wbscope.open(tmp_path) as run:
        (row,) = run.sql("SELECT bdi FROM _swap_area").records()
    assert row["bdi"] == wanted


# Damaged files: whatever is cut or overwritten, the end is an answer or one clear error.

_FORMS: dict[str, dict[str, Any]] = {
    "v6": {"version": 6},
    "v7": {},
    "v7-zlib": {"compression": "zlib"},
    "v7-zstd": {"compression": "zstd"},
}
_SEED = 23
_CUTS = 97
_SPOILED = 97
_GOOD_ENDS = (0, 3)


def _file(kind: str) -> bytes:
    trace = Trace(formats("sys_exit_write"), cpus=2, cmdlines={11: "dd"}, **_FORMS[kind])
    for number in range(8):
        cpu = number % 2
        trace.event(cpu, (10_000 + number) * 1_000_000, 11, "sys_exit_write", {"ret": number})
        if number in (2, 3):
            trace.page_break(cpu)
    return trace.encode()


def _ingest(data: bytes, folder: Path, what: str) -> int:
    """Ingest the bytes; check that the end is one of the two that are allowed."""
    source, database = folder / "trace.dat", folder / "run.db"
    source.write_bytes(data)
    database.unlink(missing_ok=True)
    result = run([ingester_path(), "sqlite", source, "-o", database, "--all", "--json-lines"])
    assert result.returncode in _GOOD_ENDS, f"{what}: exit {result.returncode}: {result.stderr}"
    assert result.stdout == "", what
    others = sorted(path.name for path in folder.iterdir() if path != source)
    assert others == (["run.db"] if result.returncode == 0 else []), what
    last = json.loads(result.stderr.splitlines()[-1])
    assert last["type"] == ("done" if result.returncode == 0 else "error"), what
    if last["type"] == "error":
        assert last["slug"], what
        assert last["message"], what
        assert last["object"].endswith("trace.dat"), what
    return result.returncode


@pytest.mark.parametrize("kind", _FORMS)
def test_a_whole_file_is_good(kind: str, tmp_path: Path) -> None:
    assert _ingest(_file(kind), tmp_path, "whole") == 0


@pytest.mark.quick("v7-zstd")
@pytest.mark.parametrize("kind", _FORMS)
def test_a_file_cut_anywhere(kind: str, tmp_path: Path) -> None:
    data = _file(kind)
    places = {0, 1, 9, 12, 17, len(data) - 1}
    places |= set(random.Random(_SEED).sample(range(len(data)), _CUTS))
    for place in sorted(places):
        _ingest(data[:place], tmp_path, f"cut at {place} of {len(data)}")


@pytest.mark.quick("v7-zstd")
@pytest.mark.parametrize("kind", _FORMS)
def test_bytes_changed_anywhere(kind: str, tmp_path: Path) -> None:
    data = _file(kind)
    chance = random.Random(_SEED)
    filled = [place for place in range(len(data) - 4) if any(data[place : place + 4])]
    for place in chance.sample(filled, _SPOILED):
        changed = chance.choice((b"\xff" * 4, bytes(4), chance.randbytes(4)))
        spoiled = data[:place] + changed + data[place + 4 :]
        _ingest(spoiled, tmp_path, f"{changed.hex()} at {place} of {len(data)}")


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 100, b"# tracer: nop\n", b"\x17\x08\x44tracing9\0\0\x08"],
    ids=["empty", "zeros", "text", "version 9"],
)
def test_other_files_are_refused(data: bytes, tmp_path: Path) -> None:
    assert _ingest(data, tmp_path, repr(data)) == 3
