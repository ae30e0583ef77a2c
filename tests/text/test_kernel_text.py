# SPDX-License-Identifier: Apache-2.0
"""The kernel's own file trace, and perf script, as recorded on real machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.texttrace import load

_DATA = Path(__file__).parents[1] / "data" / "text"

# Names of flags that Linux 6.18 does not resolve in its formats, and what it
# does not print.
_NOT_TOLD = {"state", "flags", "ioprio", "__syscall_nr"}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_trace_file_against_the_binary_records(tmp_path: Path, line_end: str) -> None:
    """kernel-6.18.records.json was made from the same buffer by trace-cmd extract."""
    text = (_DATA / "kernel-6.18.trace.txt").read_text()
    source = tmp_path / "trace"
    source.write_bytes(text.replace("\n", line_end).encode())
    loaded = load(source, tmp_path / "run.db")
    assert loaded.meta()["format"] == "ftrace text"
    assert loaded.meta()["tracer"] == "nop"
    assert loaded.meta()["cpus_count"] == 2
    assert "text_not_understood" not in loaded.counters()
    truth = json.loads((_DATA / "kernel-6.18.records.json").read_text())
    compared = 0
    for event, records in truth.items():
        for row in loaded.rows(event):
            same = [r for r in records if all(r[k] == row[k] for k in ("ts", "cpu", "tid"))]
            assert same, (event, row)
            told = [{k: v for k, v in r.items() if k not in _NOT_TOLD} for r in same]
            assert {k: row[k] for k in told[0]} in told
            compared += 1
    assert compared == sum(count for (count,) in loaded.sql("SELECT count FROM event_counts")) - 1
    (marker,) = loaded.rows("ftrace:print")
    assert marker["buf"] == "hello marker"


def test_tasks_and_labels_of_the_trace_file(tmp_path: Path) -> None:
    loaded = load(_DATA / "kernel-6.18.trace.txt", tmp_path / "run.db")
    names = dict(loaded.sql("SELECT tid, comm FROM task"))
    assert names[22760] == "dd"
    assert any(name.startswith("kworker/") for name in names.values())
    labels = loaded.sql(
        "SELECT label FROM enum_label WHERE event = 'sched:sched_switch' AND value = 2"
    )
    assert ("D",) in labels


def test_perf_script_with_call_chains(tmp_path: Path) -> None:
    loaded = load(_DATA / "perf-6.1-callchains.txt", tmp_path / "run.db")
    assert loaded.meta()["format"] == "perf script text"
    assert loaded.counters()["text_continuations"] == 51
    assert "text_not_understood" not in loaded.counters()
    (state,) = loaded.rows("writeback:global_dirty_state")
    assert (state["ts"], state["cpu"], state["tid"]) == (14_221_446_196_000, 1, 26128)
    assert (state["nr_dirty"], state["background_thresh"], state["nr_written"]) == (
        2369,
        570181,
        16444139,
    )


def test_perf_script_in_ns(tmp_path: Path) -> None:
    loaded = load(_DATA / "perf-6.1-ns.txt", tmp_path / "run.db")
    assert [row["ts"] for row in loaded.rows("writeback:writeback_dirty_folio")][:2] == [
        14_221_445_778_376,
        14_221_446_234_302,
    ]
    assert loaded.events() == [
        "sched:sched_switch",
        "writeback:global_dirty_state",
        "writeback:writeback_dirty_folio",
    ]
