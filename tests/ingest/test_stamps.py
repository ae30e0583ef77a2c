# SPDX-License-Identifier: Apache-2.0
"""Records whose time stamp is wrong, and traces of times that no question can be asked of."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope, check_error
from support.formats import build_format
from support.kernel_events import formats
from support.layout import layout_of
from support.pftrace import Event, TraceBuilder
from support.runs import example
from support.tools import ingester_path, require_program, run
from support.tracedat import Trace

# Records whose time stamp is wrong are told and counted, and do not stretch the run.

_MS = 1_000_000
_SECOND = 1000 * _MS
_HOUR = 3600 * _SECOND
_YEAR = 365 * 24 * _HOUR
_START = 100 * 24 * _HOUR  # of the clock: a machine that runs for a while
_PAGE = 512
_CPUS = 3
_EVENTS = 300  # of each CPU


def _trace(**settings: Any) -> Trace:
    return Trace(formats("sys_exit_write"), cpus=_CPUS, page_bytes=_PAGE, **settings)


def _usual() -> Trace:
    trace = _trace()
    for number in range(_EVENTS):
        for cpu in range(_CPUS):
            ts = _START + number * _MS + cpu
            trace.event(cpu, ts, 10 + cpu, "sys_exit_write", {"ret": number})
    return trace


class _Run:
    """A database, and what was said when it was made."""

    def __init__(self, source: Path, *options: str) -> None:
        database = source.with_suffix(".db")
        choice = options or ("--all",)
        done = run(
            [ingester_path(), "sqlite", source, "-o", database, *choice, "--force", "--json-lines"]
        )
        assert done.returncode == 0, done.stderr
        said = [json.loads(line) for line in done.stderr.splitlines()]
        self.warnings = [line for line in said if line["type"] == "warning"]
        with contextlib.closing(sqlite3.connect(database)) as db:
            self.meta = dict(db.execute("SELECT key, value FROM meta"))
            self.counts = db.execute(
                "SELECT event, count, loaded_count FROM event_counts"
            ).fetchall()
            self.stats = dict(db.execute("SELECT name, value FROM ingest_stats"))
            self.bad = db.execute("SELECT * FROM bad_stamp").fetchall()
            tasks = "SELECT min(first_ts), max(last_ts), sum(events_count) FROM task"
            self.tasks = db.execute(tasks).fetchone()
            tables = db.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'ev_*'").fetchall()
            self.rows = {
                table: db.execute(f"SELECT min(ts), max(ts), count(*) FROM {table}").fetchone()
                for (table,) in tables
            }

    def is_good(self) -> bool:
        slugs = [warning["slug"] for warning in self.warnings]
        return not self.bad and self.stats["bad_stamps"] == 0 and "bad-stamps" not in slugs

    def spans_as(self, other: _Run) -> bool:
        """Everything is there, and no time lies outside of the other's."""
        first, last = other.meta["first_ts"], other.meta["last_ts"]
        times = [self.meta["first_ts"], self.meta["last_ts"], *self.tasks[:2]]
        times += [ts for row in self.rows.values() if row[2] for ts in row[:2]]
        return (
            self.counts == other.counts
            and self.tasks[2] == other.tasks[2]
            and self.meta["events_count"] == other.meta["events_count"]
            and {name: row[2] for name, row in self.rows.items()}
            == {name: row[2] for name, row in other.rows.items()}
            and all(first <= ts <= last for ts in times)
        )


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> _Run:
    made = _Run(_usual().write(tmp_path_factory.mktemp("usual") / "trace.dat"))
    assert made.is_good()
    return made


def _moved(data: bytes, cpu: int, pages: Iterable[int], by: int) -> tuple[bytes, int]:
    """The file with the stamps of some pages of a CPU moved, and how many pages the CPU has."""
    layout = layout_of(data)
    region = next(each for each in layout.regions if each.cpu == cpu)
    count = (region.end - region.start) // _PAGE
    out = bytearray(data)
    for page in pages:
        at = region.start + page % count * _PAGE
        struct.pack_into("<Q", out, at, (layout.number(at, 8) + by) & (2**64 - 1))
    return bytes(out), count


@pytest.mark.parametrize(
    "by", [_YEAR, -_YEAR, 2**62, 2**63], ids=["later", "earlier", "2^62", "2^63"]
)
@pytest.mark.parametrize(
    "pages", [(0,), (1,), (5,), (-1,), (5, 6)], ids=["first", "second", "middle", "last", "two"]
)
def test_page_of_another_time(usual: _Run, tmp_path: Path, pages: tuple[int, ...], by: int) -> None:
    data, count = _moved(_usual().encode(), 1, pages, by)
    (tmp_path / "trace.dat").write_bytes(data)
    found = _Run(tmp_path / "trace.dat")
    assert found.spans_as(usual)
    assert found.meta["damaged"] == 1
    assert [warning["slug"] for warning in found.warnings] == ["bad-stamps"]
    (warning,) = found.warnings
    assert "cpu 1" in warning["at"]
    assert "stamp " in warning["have"]
    ((ts_found, ts, cpu, buffer, records, place),) = found.bad
    assert (cpu, buffer, records) == (1, 0, found.stats["bad_stamps"])
    assert abs(records - _EVENTS * len(pages) / count) < 6
    assert usual.meta["first_ts"] <= ts <= usual.meta["last_ts"]
    assert not (usual.meta["first_ts"] <= ts_found <= usual.meta["last_ts"])
    assert place == warning["at"]


@pytest.mark.parametrize("bounds", ["+50000000..+100000000", "..+100000000", "+50000000.."])
@pytest.mark.parametrize("by", [_YEAR, -_YEAR], ids=["later", "earlier"])
@pytest.mark.parametrize("page", [0, 2, 5, 8, -1])
def test_range(usual: _Run, tmp_path: Path, page: int, by: int, bounds: str) -> None:
    """A part has what it has in the whole file, but for records whose own time is not known."""
    (tmp_path / "good.dat").write_bytes(_usual().encode())
    good = _Run(tmp_path / "good.dat", "--all", "--time-range", bounds)
    data, count = _moved(_usual().encode(), 1, [page], by)
    (tmp_path / "bad.dat").write_bytes(data)
    found = _Run(tmp_path / "bad.dat", "--all", "--time-range", bounds)
    assert abs(found.meta["events_count"] - good.meta["events_count"]) <= _EVENTS / count + 5
    assert good.meta["first_ts"] <= found.meta["first_ts"] + 60 * _MS
    assert found.meta["last_ts"] <= good.meta["last_ts"] + 60 * _MS
    for key in ("range_first_ts", "range_end_ts"):
        if key in good.meta:
            assert abs(found.meta[key] - good.meta[key]) < 60 * _MS


@pytest.mark.parametrize("where", ["start", "middle", "end"])
def test_time_extend_of_a_year(usual: _Run, tmp_path: Path, where: str) -> None:
    """From one record on the rest of its page is a year late."""
    trace = _trace()
    late = {"start": 1, "middle": 150, "end": _EVENTS - 3}[where]
    for number in range(_EVENTS):
        for cpu in range(_CPUS):
            ts = _START + number * _MS + cpu
            wrong = cpu == 1 and late <= number < late + 3
            if cpu == 1 and number == late + 3:
                trace.page_break(1)  # a page has a stamp of its own
            at = ts + _YEAR if wrong else ts
            trace.event(cpu, at, 10 + cpu, "sys_exit_write", {"ret": number})
    found = _Run(trace.write(tmp_path / "trace.dat"))
    assert found.spans_as(usual)
    assert found.stats["bad_stamps"] == 3


def test_two_places_are_one_warning(usual: _Run, tmp_path: Path) -> None:
    data, _ = _moved(_usual().encode(), 1, [3], _YEAR)
    data, _ = _moved(data, 2, [0], -_YEAR)
    (tmp_path / "trace.dat").write_bytes(data)
    found = _Run(tmp_path / "trace.dat")
    assert found.spans_as(usual)
    assert len(found.bad) == 2
    (warning,) = found.warnings
    assert warning["message"].endswith(", in 2 places")


def test_limit(tmp_path: Path) -> None:
    data, _ = _moved(_usual().encode(), 1, [3], _YEAR)
    (tmp_path / "trace.dat").write_bytes(data)
    found = _Run(tmp_path / "trace.dat", "--all", "--limit", "700")
    assert found.meta["loaded_count"] == 700
    assert found.meta["last_ts"] < _START + _SECOND


def test_every_page_of_another_time(tmp_path: Path) -> None:
    """Nothing tells which one is right: all records are there, and nothing hangs."""
    data = _usual().encode()
    for page in range(12):
        for cpu in range(_CPUS):
            data, _ = _moved(data, cpu, [page], (page * 7 + cpu) * _YEAR)
    (tmp_path / "trace.dat").write_bytes(data)
    assert _Run(tmp_path / "trace.dat").meta["events_count"] == _CPUS * _EVENTS


def test_many_jumps_and_many_formats(tmp_path: Path) -> None:
    """Of all formats at once: none of the records before a jump is counted twice."""
    many = [
        build_format("many", f"e{n}", 1000 + n, ("int x",), '"%d", REC->x') for n in range(4000)
    ]
    trace = Trace(many)
    for number in range(20_000):
        ts = _START + number * _MS + (_YEAR if number % 2 else 0)
        trace.event(0, ts, 11, f"e{number % 4000}", {"x": 1}, stamp="absolute")
    found = _Run(trace.write(tmp_path / "trace.dat"), "--events-file", "/dev/null")
    assert found.meta["events_count"] == 20_000


@pytest.mark.parametrize("clock", ["mono", "x86-tsc", "counter"])
def test_long_pause_is_none(tmp_path: Path, clock: str) -> None:
    trace = _trace(clock=clock)
    for number in range(_EVENTS):
        for cpu in range(_CPUS):
            pause = 30 * _HOUR if number >= 200 else 0
            ts = _START + number * _MS + cpu + pause
            trace.event(cpu, ts, 10 + cpu, "sys_exit_write", {"ret": number})
    found = _Run(trace.write(tmp_path / "trace.dat"))
    assert found.is_good()
    assert found.meta["damaged"] == 0
    assert found.meta["last_ts"] - found.meta["first_ts"] > 30 * _HOUR


def test_ticks_may_jump(tmp_path: Path) -> None:
    trace = _trace(clock="counter")
    for number in range(_EVENTS):
        ts = number + (_YEAR if number == _EVENTS - 1 else 0)
        trace.event(0, ts, 10, "sys_exit_write", {"ret": number})
    assert _Run(trace.write(tmp_path / "trace.dat")).is_good()


def test_old_page_of_a_quiet_cpu_is_none(tmp_path: Path) -> None:
    """A flight recorder: the busy CPUs have the last second, a quiet one has days."""
    trace = _trace(cpu_stats={0: {"overrun": 100_000}, 1: {"overrun": 0}})
    for day in range(3):
        trace.event(1, _START - (3 - day) * 26 * _HOUR, 11, "sys_exit_write", {"ret": day})
    for number in range(_EVENTS):
        for cpu in (0, 2):
            ts = _START + number * _MS + cpu
            trace.event(cpu, ts, 10 + cpu, "sys_exit_write", {"ret": number})
    trace.event(1, _START + _EVENTS * _MS, 11, "sys_exit_write", {"ret": 9})
    found = _Run(trace.write(tmp_path / "trace.dat"))
    assert found.is_good()


def test_lost_events_of_a_bad_page(tmp_path: Path) -> None:
    trace = _trace()
    for number in range(_EVENTS):
        if number == 150:
            trace.lost(0, 23)
        trace.event(0, _START + number * _MS, 10, "sys_exit_write", {"ret": number})
    data = trace.encode()
    layout = layout_of(data)
    (region,) = (each for each in layout.regions if each.cpu == 0)
    lost = [
        page
        for page in range((region.end - region.start) // _PAGE)
        if layout.number(region.start + page * _PAGE + 8, 8) >> 31
    ]
    data, _ = _moved(data, 0, lost, _YEAR)
    (tmp_path / "trace.dat").write_bytes(data)
    found = _Run(tmp_path / "trace.dat")
    assert found.stats["bad_stamps"] > 0
    with contextlib.closing(sqlite3.connect(tmp_path / "trace.db")) as db:
        ((ts, count),) = db.execute("SELECT ts, count FROM lost_events").fetchall()
    assert count == 23
    assert _START <= ts <= _START + _SECOND


@pytest.mark.parametrize("by", [_YEAR, -_YEAR], ids=["later", "earlier"])
def test_convert(tmp_path: Path, by: int) -> None:
    """No packet has a time outside of the run's."""
    data, _ = _moved(_usual().encode(), 1, [4], by)
    (tmp_path / "trace.dat").write_bytes(data)
    for name, content in (("bad", data), ("good", _usual().encode())):
        (tmp_path / f"{name}.dat").write_bytes(content)
        source, output = tmp_path / f"{name}.dat", tmp_path / f"{name}.pf"
        done = run([ingester_path(), "convert", source, "-o", output, "--json-lines"])
        assert done.returncode == 0, done.stderr
        said = [json.loads(line) for line in done.stderr.splitlines()]
        slugs = [line["slug"] for line in said if line["type"] == "warning"]
        assert slugs == (["bad-stamps"] if name == "bad" else [])
        assert said[-1]["loaded_count"] == _CPUS * _EVENTS
    # Times are varints of the same length when they are of the same day.
    good, bad = (tmp_path / f"{name}.pf" for name in ("good", "bad"))
    assert good.stat().st_size == bad.stat().st_size


# --- text


@pytest.fixture(scope="module")
def text() -> list[str]:
    trace_cmd = require_program("trace-cmd")
    done = run([trace_cmd, "report", "-t", example("four-equal-writers").trace])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(keepends=True)


def _stamp_of(line: str) -> str:
    return next(word for word in line.split() if word.endswith(":") and word[0].isdigit())[:-1]


@pytest.mark.parametrize("stamp", ["31536000.967463027", "9000000000.000000001"])
@pytest.mark.parametrize("place", [1, 2, 6000, -2, -1])
def test_line_of_another_time(text: list[str], tmp_path: Path, place: int, stamp: str) -> None:
    (tmp_path / "good.txt").write_text("".join(text))
    lines = list(text)
    lines[place] = lines[place].replace(_stamp_of(lines[place]), stamp, 1)
    (tmp_path / "bad.txt").write_text("".join(lines))
    good, found = _Run(tmp_path / "good.txt"), _Run(tmp_path / "bad.txt")
    assert good.is_good()
    assert found.spans_as(good)
    assert found.stats["bad_stamps"] == 1
    assert [warning["slug"] for warning in found.warnings] == ["bad-stamps"]
    assert found.warnings[0]["at"] == f"line {place % len(text) + 1}"
    assert found.meta["damaged"] == 1


def test_text_with_one_cpu_after_the_other(tmp_path: Path) -> None:
    """As the files per_cpu/cpu*/trace give it: between two of them time goes back for a day."""
    out = []
    for cpu in range(2):
        for number in range(100):
            ts = 1000 + number * 900 + (30 * 3600 if number >= 50 else 0)
            head = f"              dd-122   [00{cpu}] .....  {ts}.000001:"
            out.append(f"{head} sys_exit_write: ret={number}\n")
    (tmp_path / "trace.txt").write_text("# tracer: nop\n#\n" + "".join(out))
    found = _Run(tmp_path / "trace.txt")
    assert found.is_good()
    assert found.meta["events_count"] == 200


# Traces of times that no question can be asked of: refused, of every kind of trace.

# Sums of two are 64-bit numbers up to here: 146 years.
_MOST_NS = 2**62
_SEC = 10**9


def _trace_dat(folder: Path, ts: int) -> Path:
    trace = Trace(formats("sys_exit_write"))
    for number in range(3):
        trace.event(0, ts + number, 11, "sys_exit_write", {"ret": number})
    return trace.write(folder / "trace.dat")


def _text(folder: Path, ts: int) -> Path:
    path = folder / "trace.txt"
    path.write_text(
        "".join(
            f"  dd-1 [000] ..... {at // _SEC}.{at % _SEC:09}: mm_vmscan_kswapd_sleep: nid=0\n"
            for at in range(ts, ts + 3)
        )
    )
    return path


def _perfetto(folder: Path, ts: int) -> Path:
    path = folder / "trace.pftrace"
    event = ("vmscan", "mm_vmscan_kswapd_sleep", (), ())
    TraceBuilder().write(path, [Event(at, 0, 11, *event) for at in range(ts, ts + 3)])
    return path


_KINDS: dict[str, Callable[[Path, int], Path]] = {
    "trace.dat": _trace_dat,
    "text": _text,
    "perfetto": _perfetto,
}


@pytest.mark.parametrize("kind", _KINDS)
def test_one_that_is_too_far(wbscope: Wbscope, tmp_path: Path, kind: str) -> None:
    source = _KINDS[kind](tmp_path, _MOST_NS - 1)
    output = tmp_path / "run.db"
    for command in (["ingest", source, "-o", output, "--all"], ["query", "event_counts", source]):
        done = wbscope.run(*command)
        assert done.returncode == 3, done.stderr
        check_error(done.stderr, "bad-stamps", source, "4611686018 s")
    assert not output.exists()


@pytest.mark.parametrize("kind", _KINDS)
def test_the_farthest(wbscope: Wbscope, tmp_path: Path, kind: str) -> None:
    source = _KINDS[kind](tmp_path, _MOST_NS - 2)
    output = tmp_path / "run.db"
    done = wbscope.run("ingest", source, "-o", output, "--all")
    assert done.returncode == 0, done.stderr
    assert wbscope.sql(output, "SELECT value FROM meta WHERE key = 'last_ts'") == [
        {"value": _MOST_NS}
    ]
