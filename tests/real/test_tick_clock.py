# SPDX-License-Identifier: Apache-2.0
"""A trace clock that counts ticks: no verdict, no advice, no comparison, wherever one is given."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.corpus import CORPUS, unpack
from support.timeline import packets
from support.tracedat import Trace
from support.wait_events import wait_formats

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
