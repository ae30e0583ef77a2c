# SPDX-License-Identifier: Apache-2.0
"""Real recordings of every form, from several kernels and architectures: all that trace-cmd
reads in them is in the database, value by value."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache

import pytest
from support.archives import unpacked
from support.loaded import LoadedRun, recording, same_value
from support.once import Once
from support.report import RawReport

TRACES = unpacked("data") / "traces"
NAMES = sorted(folder.name for folder in TRACES.iterdir() if folder.is_dir())

# What the recording machine was, so that a file of another one cannot take its place.
MACHINES = {
    "amd64": ("little", 8, 4096),
    "arm64": ("little", 8, 16384),
    "armhf": ("little", 4, 4096),
    "i386": ("little", 4, 4096),
    "ppc64el": ("little", 8, 65536),
    "s390x": ("big", 8, 4096),
}


@cache
def report_of(name: str) -> RawReport:
    # Debian 12's trace-cmd is built without zlib; trace-cmd itself rewrote that file with zstd.
    twin = f"{name}-as-zstd" if name.endswith("-v7-zlib") else name
    return RawReport(TRACES / twin / "trace.dat")


@pytest.fixture(scope="session", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def report(name: str) -> RawReport:
    return report_of(name)


@pytest.fixture(scope="session")
def loaded(name: str, once: Once) -> LoadedRun:
    return recording(TRACES / name, once)


def test_the_machine_is_known(name: str, report: RawReport, loaded: LoadedRun) -> None:
    arch, form = name.split("-", 2)[1:]
    endian, long_bytes, page_bytes = MACHINES[arch]
    meta = loaded.meta
    assert (meta["endian"], meta["long_bytes"], meta["page_bytes"]) == (
        endian,
        long_bytes,
        page_bytes,
    )
    assert (report.big_endian, report.long_bytes) == (endian == "big", long_bytes)
    if "subbuf" not in name:  # there trace-cmd writes the size of a sub-buffer in its place
        assert report.page_bytes == page_bytes
    assert meta["format"] == f"trace.dat {form[:2]}"
    assert f"{form[1]}\t[Version]" in report.summary
    assert meta["compression"] == {"v6": "none", "v7-none": "none", "v7-zlib": "zlib"}.get(
        form[:2] if form[:2] == "v6" else form, "zstd"
    )
    if "[Option UNAME" in report.trace_cmd("dump", "--options"):
        assert str(meta["kernel_release"]).startswith(name.split("-")[0] + ".")
    else:
        assert form == "v7-split"  # which leaves it out
    assert (meta["damaged"], meta["damage"]) == (0, "")


def test_every_record_is_loaded(report: RawReport, loaded: LoadedRun) -> None:
    assert loaded.counts() == {event: len(records) for event, records in report.records.items()}
    assert loaded.meta["loaded_count"] == loaded.meta["events_count"] == len(report.events)
    for counter in ("unknown_events", "short_records", "bad_dynamic_fields", "bad_records"):
        assert loaded.stats[counter] == 0, counter
    assert (loaded.stats["bad_pages"], loaded.stats["time_backwards"]) == (0, 0)


def test_every_value_is_that_of_the_report(report: RawReport, loaded: LoadedRun) -> None:
    compared = 0
    for event, records in report.records.items():
        fields = [] if loaded.is_raw(event) else report.formats[event]
        rows = loaded.records(event, [field.name for field in fields])
        found = sorted(rows, key=lambda row: row[:4])
        wanted = sorted(records, key=lambda r: (r[0].ts, r[0].cpu, r[0].tid, r[0].buffer))
        assert [row[:4] for row in found] == [(r.ts, r.cpu, r.tid, r.buffer) for r, _ in wanted]
        for row, (record, values) in zip(found, wanted, strict=True):
            for field, value in zip(fields, row[4:], strict=True):
                text = values[field.name]
                if (event, field.name) == ("ftrace:kernel_stack", "caller"):
                    assert_stack(report, text, value, int(values["size"]))
                else:
                    assert same_value(report, field, text, value), (record, field, text, value)
                compared += 1
    assert compared > 0


def assert_stack(report: RawReport, text: str, value: object, size: int) -> None:
    """The format names 8 callers and the report prints 8; the record has as many as size says."""
    assert isinstance(value, str)
    callers = json.loads(value)
    assert len(callers) == size
    recorded = bytes.fromhex(text[len("ARRAY[") : -1].replace(", ", ""))
    order = "big" if report.big_endian else "little"
    width = report.long_bytes
    shown = [
        int.from_bytes(recorded[at : at + width], order)  # type: ignore[arg-type]
        for at in range(0, len(recorded), width)
    ]
    known = min(size, len(shown))
    assert callers[:known] == shown[:known]


def test_seq_is_the_order_of_time(loaded: LoadedRun) -> None:
    union = " UNION ALL ".join(
        f'SELECT seq, ts, buffer FROM "{table}"' for table in loaded.tables.values()
    )
    rows = loaded.rows(f"SELECT seq, ts FROM ({union}) ORDER BY seq")
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    times = [int(str(row[1])) for row in rows]
    assert times == sorted(times)


def test_lost_events_are_those_of_the_report(report: RawReport, loaded: LoadedRun) -> None:
    found = Counter(
        (loaded.buffers[int(str(buffer))], cpu, count)
        for buffer, cpu, count in loaded.rows("SELECT buffer, cpu, count FROM lost_events")
    )
    assert found == Counter(report.dropped)


def test_buffers_and_their_clocks(report: RawReport, loaded: LoadedRun) -> None:
    described = re.findall(r"\[buffer \"(.*?)\", \"(.*?)\" clock", report.summary)
    if not described:  # version 6 has one clock, and lists instances by name
        assert str(loaded.meta["format"]) == "trace.dat v6"
        return
    rows = loaded.rows("SELECT name, clock FROM buffer")
    assert sorted(str(row[0]) for row in rows) == sorted(name for name, _ in described)
    if (loaded.meta["clock"], loaded.meta["clock_unit"]) != ("x86-tsc", "ns"):
        assert Counter(rows) == Counter(described)


def test_tasks_have_the_names_of_the_report(report: RawReport, loaded: LoadedRun) -> None:
    comms = {int(str(tid)): comm for tid, comm in loaded.rows("SELECT tid, comm FROM task")}
    text = report.trace_cmd("report", "-t", "-R")
    named = re.findall(r"^ *(?:\S+: {2,})?(\S.*?)-(\d+) +\[\d+\]", text, re.MULTILINE)
    wanted = {int(tid): comm for comm, tid in named if comm not in ("<...>", "<idle>")}
    assert wanted
    # It tells the saved names. In 3 of these traces sched_switch saw a task under that name,
    # and later under another one.
    switched = re.findall(r"(?:prev|next)_comm=(.*?) (?:prev|next)_pid=(\d+)", text)
    for tid in wanted:
        seen = [comm for comm, of in switched if int(of) == tid]
        if wanted[tid] in seen[:-1]:
            wanted[tid] = seen[-1]
    assert {tid: comms[tid] for tid in wanted} == wanted
