# SPDX-License-Identifier: Apache-2.0
"""The verdict of a part of the time: no all-clear where waits go on that began before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import wbscope as package
from support.cli import Document, Wbscope
from support.runs import RecordedRun, example
from wbscope.base.span import parse_span
from wbscope.explain.remedy import prove
from wbscope.run.filters import Filters

_SECOND = 10**9
# Kernel threads wait for nobody.
_THREADS = ("kworker/", "jbd2/", "kswapd")
_JOURNAL = ("journal commit", "journal full")


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))


def journal_waits(rows: list[Document]) -> Iterator[tuple[int, int]]:
    """Start and end of the waits of tasks for a journal."""
    for row in rows:
        if row["cause"] in _JOURNAL and not row["comm"].startswith(_THREADS):
            yield row["ts"], row["ts"] + row["span_ns"]


def test_tasks_in_a_wait_from_before_are_told(wbscope: Wbscope) -> None:
    """Three dd wait from 12.9 s to 15.6 s: for all of the part."""
    run, part = example("four-equal-writers").folder, ("--from", "13s", "--to", "15.4s")
    first = wbscope.document("query", "stalls", run)["rows"]
    (start,) = wbscope.sql(run, "SELECT value + 13000000000 AS ns FROM meta WHERE key = 'first_ts'")
    t0, t1 = int(start["ns"]), int(start["ns"]) + 2_400_000_000
    inside = [min(b, t1) - max(a, t0) for a, b in journal_waits(first) if a < t0 < b]
    assert len(inside) == 3
    rows = wbscope.document("explain", run, *part)["rows"]
    assert "nothing_wrong" not in {row["id"] for row in rows}
    assert (rows[0]["id"], rows[0]["severity"]) == ("began_before", "warning")
    assert rows[0]["cost_task_ns"] == sum(inside)
    assert rows[0]["text"].startswith("3 dd waited 7.20 s of this part of the trace")
    assert "journal commit" in rows[0]["text"]
    told = wbscope.run("explain", run, *part)
    assert (told.returncode, told.stderr) == (0, "")
    assert "Nothing is wrong" not in told.stdout


@pytest.mark.parametrize("name", ["four-equal-writers", "deep", "rate-limited-writers"])
def test_no_part_of_a_long_wait_is_clear(name: str) -> None:
    """Parts of half a second, from the first to the last event."""
    checked = 0
    with package.open(example(name).folder) as run:
        first, last = run.bounds()
        waits = list(journal_waits(run.query("stalls").records()))
        assert run.query("stalls_before").rows == []
        for t0 in range(first + _SECOND, last, _SECOND):
            t1 = t0 + _SECOND // 2
            # Long enough that its rule would tell of one alone.
            if any(a < t0 and b > t1 and b - a >= _SECOND // 2 for a, b in waits):
                found = run.findings(parse_span(f"@{t0}", f"@{t1}"))
                assert all(one.severity != "ok" for one in found), (t0 - first, found)
                checked += 1
    assert checked


# Shares of the run.
_PARTS = ((0.0, 0.3), (0.1, 0.35), (0.5, 0.52), (0.5, 0.8), (0.75, 1.1))


def test_every_number_of_a_part_is_that_of_its_evidence(recorded: RecordedRun) -> None:
    """As `explain --check` does it."""
    with package.open(recorded.folder) as run:
        length = run.duration_ns()
        for part in _PARTS:
            span = parse_span(*(f"{int(share * length)}ns" for share in part))
            for one in run.findings(span):
                proven = prove(run, one, Filters(span=span))
                assert all(fact.holds for fact in proven), (part, one, proven)


def test_the_belief_about_a_new_device_is_that_of_the_run(wbscope: Wbscope) -> None:
    """The kernel began at 100 MiB/s; in the part it was down at 81.5 MiB/s."""
    run = example("four-equal-writers").folder
    rows = wbscope.document("explain", run, "--from", "2s", "--to", "6s")["rows"]
    (one,) = (row for row in rows if row["id"] == "new_bdi_bandwidth")
    assert one["facts"]["believed_bytes_per_s"] == 100 << 20


def test_no_index_is_told_of_rates_that_are_no_shares(wbscope: Wbscope) -> None:
    """Events charge a part of what was dirtied: `fairness` has no index there."""
    run, part = example("patched-kernel/throttle").folder, ("--from", "25.6s", "--to", "40.9s")
    indices = [
        row["jain_weighted_ratio"]
        for row in wbscope.document("query", "fairness", run, *part)["rows"]
        if row["bdi"] == "254:16"
    ]
    assert None in indices
    told = wbscope.document("explain", run, *part)["rows"]
    assert [row["facts"]["jain_ratio"] for row in told if row["id"] == "unfair"] == [
        index for index in indices if index is not None and index < 0.8
    ]


def test_a_piece_of_a_long_write_is_no_all_clear(wbscope: Wbscope) -> None:
    """A write of a dd is held from 3.93 s to 4.58 s, by five sleeps."""
    run = example("four-equal-writers").folder
    rows = wbscope.document("explain", run, "--from", "4s", "--to", "4.2s")["rows"]
    (one,) = (row for row in rows if row["id"] == "nothing_wrong")
    assert (one["severity"], one["title"]) == ("note", "A part with a piece of a long write")
    assert one["text"].startswith("No all-clear with a piece of a long write in this part")
    assert all(row["severity"] != "ok" for row in rows)


def test_what_began_before_is_told_beside_what_began_in_the_part(wbscope: Wbscope) -> None:
    """dd 176 waits for the journal, and others are in writes of two seconds."""
    run, part = example("deep").folder, ("--from", "3.231s", "--to", "3.281s")
    rows = wbscope.document("explain", run, *part)["rows"]
    assert [row["id"] for row in rows][:2] == ["began_before", "nothing_wrong"]
    assert [row["severity"] for row in rows][:2] == ["warning", "note"]


def test_the_file_of_a_part_does_not_know_what_began_before(
    wbscope: Wbscope, tmp_path: Path
) -> None:
    run, part = example("four-equal-writers").folder, ("--from", "13s", "--to", "15.4s")
    database = tmp_path / "cut.db"
    done = wbscope.run("ingest", run, "-o", database, *part)
    assert done.returncode == 0, done.stderr
    (one,) = (
        row for row in wbscope.document("explain", database)["rows"] if row["id"] == "nothing_wrong"
    )
    assert (one["severity"], one["confidence"]) == ("note", "cannot tell")
    assert one["text"] == (
        "No all-clear in this part of the trace: no write was held up by dirty throttling that was"
        " not before; whether anything else held a task up was not recorded."
    )
