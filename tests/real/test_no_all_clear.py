# SPDX-License-Identifier: Apache-2.0
"""No all-clear where the trace cannot tell: clocks of ticks, unread or missing records."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.cli import Wbscope, check_error
from support.corpus import CORPUS, unpack
from support.kernel_events import formats
from support.timeline import packets
from support.tracedat import Trace
from support.wait_events import FSYNC, WRITE, Waits, wait_formats

# A trace clock that counts ticks: no verdict, no advice, no comparison, wherever one is given.

_TOLD = "the trace has no times: its clock ({}) counts ticks, not ns"
_CLOCKS = ("counter", "uptime", "x86-tsc", "ppc-tb")


@pytest.fixture
def ticks(wbscope: Wbscope, tmp_path: Path) -> Path:
    """A run of the corpus that has findings with advice, as if another clock had been set."""
    database = tmp_path / "ticks.db"
    run = unpack(CORPUS / "6.1-low-limits", tmp_path)
    done = wbscope.run("ingest", run, "-o", database)
    assert done.returncode == 0, done.stderr
    assert any(row["advice"] for row in wbscope.query("findings", database))
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE meta SET value = 'x86-tsc' WHERE key = 'clock'")
        db.execute("UPDATE meta SET value = 'ticks' WHERE key = 'clock_unit'")
    return database


def test_nothing_else_is_told(wbscope: Wbscope, ticks: Path) -> None:
    document = wbscope.document("explain", ticks)
    (row,) = document["rows"]
    assert (row["id"], row["severity"], document["is_whole"]) == ("no_verdict", "severe", False)
    assert _TOLD.format("x86-tsc") in row["text"]
    assert row["advice"]["settings"] == []
    assert "trace-cmd record -C mono" in row["advice"]["text"]
    refused = wbscope.run("explain", ticks, "--sysctl-d")
    assert (refused.returncode, "error[no-advice]" in refused.stderr) == (4, True)


def test_every_verdict_is_that_one(wbscope: Wbscope, ticks: Path, tmp_path: Path) -> None:
    page, timeline = tmp_path / "page.html", tmp_path / "run.pftrace"
    assert wbscope.run("report", ticks, "-o", page).returncode == 0
    assert wbscope.run("timeline", ticks, "-o", timeline).returncode == 0
    texts = {
        "report": wbscope.run("report", ticks).stdout,
        "page": page.read_text(encoding="utf-8"),
        "timeline": "\n".join(str(packet) for packet in packets(timeline)),
    }
    for name, text in texts.items():
        words = " ".join(text.split())
        assert _TOLD.format("x86-tsc") in words, name
        assert "-C mono" in words, name
        assert "vm.dirty_bytes =" not in words, name


def test_counts_stay_and_lengths_do_not(wbscope: Wbscope, ticks: Path) -> None:
    (state,) = wbscope.query("trace_state", ticks)
    assert (state["ticks_clock"], state["matters"], state["duration_ns"]) == ("x86-tsc", 1, None)
    keys = {row["key"] for row in wbscope.query("run_summary", ticks)}
    assert ("events_count" in keys, "duration_ns" in keys) == (True, False)
    assert sum(row["count"] for row in wbscope.query("event_counts", ticks)) > 0


@pytest.mark.parametrize("side", ["first", "base"])
def test_it_is_comparable_with_nothing(
    wbscope: Wbscope, ticks: Path, side: str, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.db"
    shutil.copy(ticks, whole)
    with closing(sqlite3.connect(whole)) as db, db:
        db.execute("UPDATE meta SET value = 'ns' WHERE key = 'clock_unit'")
    policy = tmp_path / "gate.toml"
    policy.write_text('[metrics."throttle_summary.calls_count"]\nmargin = "5%"\n')
    runs = (ticks, whole) if side == "first" else (whole, ticks)
    for words in (
        ("compare", runs[0], "--against", runs[1]),
        ("compare", runs[0], "--against", runs[1], "--allow-damaged"),
        ("gate", "--policy", policy, runs[0], "--against", runs[1]),
        ("baseline", "save", *runs, "-o", tmp_path / "base.json"),
    ):
        done = wbscope.run(*words)
        assert done.returncode == 4, (words, done.stderr)
        assert done.stderr.startswith("error[run-without-times]: "), done.stderr
        assert "trace-cmd record -C mono" in done.stderr


@pytest.mark.parametrize("clock", _CLOCKS)
def test_each_clock_of_ticks(wbscope: Wbscope, clock: str, tmp_path: Path) -> None:
    """Of a trace, not of a database that was changed; `uptime` counts 1/USER_HZ s, by machine."""
    trace = Trace(wait_formats("balance_dirty_pages"), cmdlines={7: "dd"}, clock=clock)
    for ts in range(1_000, 5_000, 10):
        values = {"bdi": "8:0", "cgroup_ino": 1, "pause": 200, "period": 200, "dirtied": 32}
        trace.event(0, ts, 7, "balance_dirty_pages", values)
    trace.write(tmp_path / "trace.dat")
    (row,) = wbscope.query("findings", tmp_path / "trace.dat")
    assert (row["id"], _TOLD.format(clock) in row["text"]) == ("no_verdict", True)


# Records and fields that cannot be read: no all-clear, and no budget that holds.
#
# One run of 50 pauses of 200 ms, 100 ms apart, so 10 s in all; some of its bytes are changed.

_EVENT = "balance_dirty_pages"
_PAUSE = {
    **{"bdi": "8:0", "cgroup_ino": 1, "limit": 100_000, "setpoint": 80_000, "dirty": 85_000},
    **{"bdi_setpoint": 40_000, "bdi_dirty": 42_000, "dirty_ratelimit": 4_000},
    **{"task_ratelimit": 4_000, "dirtied": 200, "dirtied_pause": 200, "paused": 0, "pause": 200},
    **{"period": 200, "think": 0},
}
Payload = Callable[[int, bytes], bytes]


def _trace(payload: Payload) -> bytes:
    known = formats(_EVENT)
    trace = Trace(known, cmdlines={11: "dd"}, uname="Linux test 8.0.0 x86_64")
    for number in range(50):
        whole = known[0].encode(_PAUSE, 11, "little")
        trace.raw(0, (10_000 + 100 * number) * 10**6, payload(number, whole))
    return trace.encode()


@dataclass(frozen=True)
class Case:
    """How it is changed, and what is then told."""

    slug: str
    sentence: str
    payload: Payload = lambda _, whole: whole
    replaced: tuple[bytes, bytes] = (b"", b"")

    def write(self, run: Path) -> Path:
        old, new = self.replaced
        run.mkdir()
        content = _trace(self.payload)
        assert len(old) == len(new)
        assert old in content
        (run / "trace.dat").write_bytes(content.replace(old, new) if old else content)
        return run


def _short(number: int, whole: bytes) -> bytes:
    return whole[:60] if number % 2 else whole


def _unknown(number: int, whole: bytes) -> bytes:
    return (9_999).to_bytes(2, "little") + whole[2:] if number % 2 else whole


_LACKS = "No verdict, the trace cannot be read in full: no record has the field"
_CASES = {
    "short records": Case(
        "records-not-read",
        "No verdict, the trace is not whole: 25 records could not be read; the numbers",
        _short,
    ),
    "an event without a format": Case(
        "records-not-read",
        "No verdict, the trace is not whole: 25 records could not be read; the numbers",
        _unknown,
    ),
    "none has one": Case(
        "records-not-read",
        "No verdict, the trace is not whole: 50 records could not be read; the numbers",
        lambda _, whole: (9_999).to_bytes(2, "little") + whole[2:],
    ),
    "a field of another name": Case(
        "missing-field",
        f"{_LACKS} pause of {_EVENT}; the numbers",
        replaced=(b"field:long pause;", b"field:long sleep;"),
    ),
    "a format that is not understood": Case(
        "missing-field",
        f"{_LACKS} bdi of {_EVENT}, pause of {_EVENT}, dirtied of {_EVENT}, task_ratelimit of",
        replaced=(b"field:unsigned long limit;", b"field:unsigned(long limit;"),
    ),
}


@pytest.fixture(params=_CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return _CASES[request.param]


def test_it_is_no_all_clear(wbscope: Wbscope, case: Case, tmp_path: Path) -> None:
    document = wbscope.document("explain", case.write(tmp_path / "run"))
    row = document["rows"][0]
    assert (row["id"], row["severity"], document["is_whole"]) == ("no_verdict", "severe", False)
    assert row["text"].startswith(case.sentence)
    assert "nothing_wrong" not in [one["id"] for one in document["rows"]]
    assert case.slug in [one["slug"] for one in document["warnings"]]


def test_no_budget_holds(wbscope: Wbscope, case: Case, tmp_path: Path) -> None:
    whole = Case("", "").write(tmp_path / "whole")
    budget = ("--budget", "throttle_summary.pause_total_ns <= 6s")
    assert wbscope.run("gate", whole, *budget).returncode == 1
    done = wbscope.run("gate", case.write(tmp_path / "run"), *budget)
    assert done.returncode == 4, done.stdout + done.stderr


def test_check_says_so(wbscope: Wbscope, tmp_path: Path) -> None:
    run = _CASES["short records"].write(tmp_path / "run")
    (row,) = [row for row in wbscope.query("check", run) if row["what"] == "events read"]
    assert row["verdict"] == "differs"
    assert "short_records is not 0" in row["why"]


def test_each_event_tells_its_own(wbscope: Wbscope, tmp_path: Path) -> None:
    """A field that another event lacks is told of that one."""
    known = formats("global_dirty_state")
    trace = Trace(known, cmdlines={11: "dd"})
    trace.event(0, 10**9, 11, "global_dirty_state", {"nr_dirty": 7, "dirty_limit": 9})
    run = tmp_path / "run"
    run.mkdir()
    content = trace.encode()
    assert b"nr_dirty;" in content
    (run / "trace.dat").write_bytes(content.replace(b"nr_dirty;", b"nr_soily;"))
    warnings = wbscope.document("query", "event_counts", run)["warnings"]
    assert [one["message"] for one in warnings if one["slug"] == "missing-field"] == [
        "global_dirty_state has no field nr_dirty that wbscope knows, so values derived from it are"
        " missing (the kernel is 6.1.0-test)"
    ]


# Where syncs were recorded and writes were not, nobody says that no task wrote.

_SLUG = "writes-not-recorded"


@pytest.mark.parametrize("has_writes", [False, True])
def test_copies(wbscope: Wbscope, tmp_path: Path, has_writes: bool) -> None:
    names = (*FSYNC, *(WRITE if has_writes else ()), "balance_dirty_pages")
    made = Waits(*names, cmdlines={7: "dd"})
    for ms in (1, 2):
        made.add(
            ms, 7, "balance_dirty_pages", bdi="8:0", cgroup_ino=1, pause=0, period=1, dirtied=32
        )
    made.write(tmp_path)
    trace = tmp_path / "trace.dat"
    document = wbscope.document("query", "copy_and_sync", trace)
    slugs = [one["slug"] for one in document["warnings"]]
    assert (document["rows"], _SLUG in slugs) == ([], not has_writes)
    done = wbscope.run("plot", trace, "copy-and-sync", "-o", tmp_path / "figures")
    assert done.returncode == 4
    told = " ".join(done.stderr.split())
    check_error(done.stderr, "nothing-to-draw", "copy-and-sync")
    assert ("-e syscalls:sys_enter_write" in told) != has_writes, told
