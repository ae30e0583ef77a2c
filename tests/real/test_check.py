# SPDX-License-Identifier: Apache-2.0
"""Every comparison of `wbscope check` worked out a second time: from text, files and vmstat."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import Document, Wbscope
from support.oracle import dirty_states
from support.report import ReportEvent, key_values
from support.runs import REPOSITORY, RecordedRun, example
from support.sidecars import fio_written_bytes, ls_files_bytes, vmstat_delta

_SECTOR = 512
_ALL = 20
_THROTTLED = (("kernel", "throttle events"), ("clock", "pauses"))


def _rows(wbscope: Wbscope, folder: Path) -> dict[tuple[str, str], Document]:
    rows = wbscope.query("check", folder)
    found = {(row["source"], row["what"]): row for row in rows}
    assert len(found) == len(rows)
    assert len(found.keys() - {*_THROTTLED}) == _ALL
    return found


def _block_bytes(events: list[ReportEvent]) -> int:
    """Of "254,0 WS () 2048 + 8 [0]"; from 6.12 on a priority stands before the bracket."""
    line = re.compile(r"^\d+,\d+ (\w+) \(.*\) \d+ \+ (\d+) ")
    found = (line.match(event.text) for event in events if event.name == "block_rq_complete")
    return sum(int(m[2]) * _SECTOR for m in found if m and "W" in m[1] and "D" not in m[1])


def _expected(recorded: RecordedRun) -> Iterator[tuple[tuple[str, str], int, int]]:
    """What trace and source say, of all comparisons that this run can make."""
    events, folder = recorded.events, recorded.folder
    names = {event.name for event in events}
    states = [state for _, state in dirty_states(events)]
    dirtied, written = (states[-1][key] - states[0][key] for key in ("dirtied", "written"))
    page = recorded.page_bytes
    yield ("vmstat", "nr_dirtied"), dirtied, vmstat_delta(folder, "nr_dirtied")
    yield ("vmstat", "nr_written"), written, vmstat_delta(folder, "nr_written")
    begins = sum(event.name == "mm_vmscan_direct_reclaim_begin" for event in events)
    stalls = sum(
        vmstat_delta(folder, name) for name in _counters(folder) if name.startswith("allocstall")
    )
    yield ("vmstat", "allocstall"), begins, stalls
    writes = sum(event.name == "mm_vmscan_write_folio" for event in events)
    yield ("vmstat", "nr_vmscan_write"), writes, vmstat_delta(folder, "nr_vmscan_write")
    if "block_rq_complete" in names:
        block = _block_bytes(events)
        yield ("vmstat", "pgpgout"), block, vmstat_delta(folder, "pgpgout") * 1024
        yield ("block events", "written bytes"), written * page, block
    if recorded.has("fio.json"):
        yield ("fio.json", "dirtied bytes"), dirtied * page, sum(fio_written_bytes(folder).values())
    if recorded.has("ls-files"):
        yield ("ls-files", "dirtied bytes"), dirtied * page, sum(ls_files_bytes(folder).values())
    if "sys_exit_write" in names:
        results = (int(event.text, 16) for event in events if event.name == "sys_exit_write")
        total = sum(value for value in results if value < 1 << 63)
        yield ("system calls", "dirtied bytes"), dirtied * page, total


def _counters(folder: Path) -> list[str]:
    return [line.split()[0] for line in (folder / "vmstat.after").read_text().splitlines()]


def test_each_comparison(wbscope: Wbscope, recorded: RecordedRun) -> None:
    rows = _rows(wbscope, recorded.folder)
    for name, trace, other in _expected(recorded):
        row = rows[name]
        assert (row["trace_value"], row["other_value"]) == (trace, other), name
        residual = 0.0 if trace == other else (other - trace) / other
        assert row["residual_ratio"] == pytest.approx(residual, abs=1e-9), name


def test_waits_add_up_to_sleeps(wbscope: Wbscope) -> None:
    """As trace-cmd prints them: from a switch in state D to the task's next one, from 1 ms on."""
    deep = example("deep")
    out: dict[int, int] = {}
    slept = Counter[int]()
    for event in (event for event in deep.events if event.name == "sched_switch"):
        before, after = (int(tid) for tid in re.findall(r":(\d+) \[", event.text))
        ns = event.ts - out.pop(after, event.ts)
        slept[after] += ns * (ns >= 1_000_000)
        if "] D ==> " in event.text:
            out[before] = event.ts
    waits = sum(row["dur"] for row in wbscope.query("stalls", deep.folder) if slept[row["tid"]])
    row = _rows(wbscope, deep.folder)["stalls", "state D"]
    assert (row["trace_value"], row["other_value"]) == (slept.total(), waits)
    assert abs(row["residual_ratio"]) < 0.001 < row["bound_ratio"]


def test_nothing_differs_in_what_was_recorded(wbscope: Wbscope, recorded: RecordedRun) -> None:
    for row in wbscope.query("check", recorded.folder):
        assert row["verdict"] in ("agrees", "not recorded"), row
        known = row["trace_value"] is not None and row["other_value"] is not None
        assert known or row["verdict"] == "not recorded", row
        assert row["why"], row


def test_the_page_begins_with_the_verdict(wbscope: Wbscope) -> None:
    ran = wbscope.run("check", example("deep").folder)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[2] == "20 of 20 comparisons agree; 2 cannot be made."
    assert all(len(line) <= 80 for line in ran.stdout.splitlines())
    document = wbscope.document("check", example("deep").folder)
    assert document["schema"] == "wbscope.check/1"
    assert document["passed"] is True
    assert document["rows"] == wbscope.query("check", example("deep").folder)


def test_without_the_files(wbscope: Wbscope, tmp_path: Path) -> None:
    """A trace alone has its law, and what it says of itself."""
    run = tmp_path / "run"
    run.mkdir()
    shutil.copy(example("four-equal-writers").trace, run)
    rows = _rows(wbscope, run)
    compared = {name for name, row in rows.items() if row["verdict"] != "not recorded"}
    assert compared == {
        ("block events", "written bytes"),
        ("ring buffer", "events kept"),
        ("trace file", "events read"),
        ("kernel", "control law"),
        *_THROTTLED,
    }
    assert rows["vmstat", "nr_dirtied"]["other_value"] is None


def test_files_of_another_run(wbscope: Wbscope, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(example("four-equal-writers").folder, run)
    shutil.copy(example("reclaim-writes").folder / "vmstat.after", run)
    rows = _rows(wbscope, run)
    assert rows["vmstat", "nr_dirtied"]["verdict"] == "differs"
    # This counter went on where the trace does not tell it.
    assert rows["vmstat", "nr_written"]["verdict"] == "not comparable"
    assert rows["kernel", "control law"]["verdict"] == "agrees"
    ran = wbscope.run("check", run)
    assert ran.returncode == 0
    assert "must not" in ran.stdout.splitlines()[2]


def test_a_damaged_trace(wbscope: Wbscope, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(example("four-equal-writers").folder, run)
    data = bytearray((run / "trace.dat").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 4096] = bytes(4096)
    (run / "trace.dat").write_bytes(data)
    row = _rows(wbscope, run)["trace file", "events read"]
    assert (row["verdict"], row["other_value"], row["is_binding"]) == ("differs", None, 1)


def test_a_part_of_the_trace(wbscope: Wbscope, tmp_path: Path) -> None:
    database = tmp_path / "part.db"
    source = example("four-equal-writers").folder
    assert wbscope.run("ingest", source, "-o", database, "--limit", "3000").returncode == 0
    rows = _rows(wbscope, database)
    told = {name for name, row in rows.items() if row["verdict"] != "not recorded"}
    own = {("ring buffer", "events kept"), ("trace file", "events read"), ("kernel", "control law")}
    assert told == own | {*_THROTTLED}


def test_a_database_without_events(wbscope: Wbscope, tmp_path: Path) -> None:
    database = tmp_path / "empty.db"
    source = example("four-equal-writers").trace
    assert wbscope.run("ingest", source, "-o", database).returncode == 0
    with sqlite3.connect(database) as db:
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (name,) in tables.fetchall():
            if name.startswith("ev_") or name in ("event_counts", "event_format"):
                db.execute(f'DELETE FROM "{name}"')
    ran = wbscope.run("check", database)
    assert ran.returncode == 4
    assert ran.stderr.startswith("error[nothing-to-check]")


def test_text_and_perfetto_traces(wbscope: Wbscope, tmp_path: Path) -> None:
    text = REPOSITORY / "tests/data/text/kernel-6.18.trace.txt"
    assert wbscope.run("check", text).returncode == 0
    trace = tmp_path / "trace.pftrace"
    source = example("four-equal-writers").folder
    assert wbscope.run("convert", source, "-o", trace).returncode == 0
    rows = _rows(wbscope, trace)
    assert rows["kernel", "control law"] == _rows(wbscope, source)["kernel", "control law"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ev_global_dirty_state SET dirty_thresh = 4611686018427387904",
        "UPDATE ev_balance_dirty_pages SET setpoint = 0",
        "UPDATE ev_balance_dirty_pages SET bdi_setpoint = -9223372036854775808",
        "UPDATE ev_balance_dirty_pages SET task_ratelimit = 'x', dirty = NULL",
        "UPDATE ev_balance_dirty_pages SET \"limit\" = 1e300, bdi_dirty = x'00'",
        "UPDATE ev_bdi_dirty_ratelimit SET avg_write_bw = 9223372036854775807",
        "UPDATE ev_global_dirty_state SET tid = -1",
        "DELETE FROM ev_bdi_dirty_ratelimit",
        "UPDATE sidecar_vmstat SET value = 'many'",
        "UPDATE sidecar_vmstat SET name = 'nr_dirtied'",
        "UPDATE sidecar_ls_files SET bytes = 9223372036854775807",
        "UPDATE event_counts SET count = NULL",
        "DELETE FROM meta WHERE key IN ('cpus_count', 'page_bytes', 'kernel_release')",
    ],
)
def test_a_strangers_numbers(wbscope: Wbscope, tmp_path: Path, statement: str) -> None:
    """No input may crash it, nor be told as agreement where nothing was replayed."""
    database = tmp_path / "run.db"
    source = example("four-equal-writers").folder
    assert wbscope.run("ingest", source, "-o", database).returncode == 0
    with sqlite3.connect(database) as db:
        db.execute(statement)
    ran = wbscope.run("check", database, "--json")
    assert ran.returncode in (0, 3, 4), ran.stderr
    assert wbscope.run("query", "law", database, "--json").returncode in (0, 3, 4)


@pytest.mark.parametrize("name", ["four-equal-writers", "rate-limited-writers", "deep"])
@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DELETE FROM ev_balance_dirty_pages WHERE seq % 3 = 0", "throttle events"),
        ("UPDATE ev_balance_dirty_pages SET pause = pause * 10", "pauses"),
    ],
)
def test_throttle_events_that_are_missing_or_wrong(
    wbscope: Wbscope, tmp_path: Path, name: str, statement: str, what: str
) -> None:
    """A third of all, pauses times ten: nothing else in the trace tells it."""
    database = tmp_path / "run.db"
    assert wbscope.run("ingest", example(name).folder, "-o", database).returncode == 0
    assert "does not add up" not in " ".join(wbscope.run("report", database).stdout.split())
    with sqlite3.connect(database) as db:
        db.execute(statement)
    rows = {row["what"]: row for row in wbscope.query("check", database)}
    assert (rows[what]["verdict"], rows[what]["is_binding"]) == ("differs", 1)
    assert "must not" in wbscope.run("check", database).stdout
    assert "the trace does not add up" in " ".join(wbscope.run("report", database).stdout.split())


def test_fields_of_the_text(recorded: RecordedRun) -> None:
    """The oracle reads what it thinks that it reads."""
    state = next(event for event in recorded.events if event.name == "global_dirty_state")
    assert {"dirtied", "written", "thresh"} <= set(key_values(state.text))
