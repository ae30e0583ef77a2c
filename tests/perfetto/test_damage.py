# SPDX-License-Identifier: Apache-2.0
"""Perfetto traces with a fault, and machines without an engine: what the user is told."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.pftrace import Event, TraceBuilder
from support.runs import example
from support.tools import require_program, wbscope_path
from support.twins import Twin, builder_of
from wbscope.perfetto.facts import read_facts
from wbscope.perfetto.trace_processor import VARIABLE, wasm_engine

pytestmark = pytest.mark.usefixtures("engine_is_there")


@pytest.fixture
def small(few_events: list[Event], tmp_path: Path) -> Path:
    """A trace of 600 events."""
    trace = tmp_path / "small.pftrace"
    TraceBuilder().write(trace, few_events[:600])
    return trace


def ingest(wbscope: Wbscope, trace: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return wbscope.run("ingest", trace, "-o", trace.parent / "run.db", "--all", *options)


def only_error(done: subprocess.CompletedProcess[str], code: int, slug: str, folder: Path) -> str:
    """The one error there is; nothing was left behind."""
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(f"error[{slug}]: ")
    assert done.stderr.count("error[") == 1
    assert "Traceback" not in done.stderr
    assert not (folder / "run.db").exists()
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    return done.stderr


@pytest.mark.parametrize("form", ["gz", "zip"])
def test_compressed(wbscope: Wbscope, four_writers: Twin, tmp_path: Path, form: str) -> None:
    packed = tmp_path / f"trace.pftrace.{form}"
    if form == "gz":
        packed.write_bytes(gzip.compress(four_writers.trace.read_bytes()))
    else:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(four_writers.trace, "trace.pftrace")
    for query in ("event_counts", "throttle_by_task"):
        assert wbscope.query(query, packed) == wbscope.query(query, four_writers.trace)
    meta = wbscope.sql(packed, "SELECT value FROM meta WHERE key = 'page_bytes'")
    assert meta == [{"value": 4096}]


def test_compressed_packets(
    wbscope: Wbscope, small: Path, few_events: list[Event], tmp_path: Path
) -> None:
    packed = tmp_path / "packed.pftrace"
    TraceBuilder(compressed=True, system_info={"page_size": 16384}).write(packed, few_events[:600])
    assert packed.stat().st_size < small.stat().st_size / 2
    assert wbscope.query("event_counts", packed) == wbscope.query("event_counts", small)
    meta = wbscope.sql(packed, "SELECT value FROM meta WHERE key = 'page_bytes'")
    assert meta == [{"value": 16384}]


def test_lost_data_is_told_with_every_answer(
    wbscope: Wbscope, few_events: list[Event], tmp_path: Path
) -> None:
    trace = tmp_path / "lost.pftrace"
    counted = {"cpu": 0, "entries": 10, "overrun": 23}, {"cpu": 0, "entries": 10, "overrun": 40}
    TraceBuilder(lost_before={(0, 1), (1, 0), (1, 1)}, cpu_stats=[counted]).write(trace, few_events)
    first = {cpu: [e.ts for e in few_events if e.cpu == cpu] for cpu in (0, 1)}
    lost = wbscope.sql(trace, "SELECT ts, cpu, count FROM lost_events ORDER BY cpu, ts")
    assert lost == [
        {"ts": first[0][256], "cpu": 0, "count": 40 - 23},
        {"ts": first[1][0], "cpu": 1, "count": None},
        {"ts": first[1][256], "cpu": 1, "count": None},
    ]
    document = wbscope.document("query", "throttle_by_task", trace)
    told = {warning["slug"]: warning["message"] for warning in document["warnings"]}
    assert "at least 17 events are lost" in told["lost-events"]
    stats = wbscope.sql(
        trace,
        "SELECT name, severity, value FROM ingest_stats WHERE value > 0 ORDER BY name",
    )
    assert {"name": "lost_gaps", "severity": "data_loss", "value": 3} in stats
    loss = {"name": "perfetto_ftrace_cpu_has_data_loss", "severity": "data_loss", "value": 2}
    assert loss in stats
    overrun = wbscope.sql(trace, "SELECT value FROM cpu_stat WHERE cpu = 0 AND key = 'overrun'")
    assert overrun == [{"value": 40}]


def test_another_ftrace_clock_is_put_on_the_trace_s_clock(
    wbscope: Wbscope, few_events: list[Event], tmp_path: Path
) -> None:
    trace = tmp_path / "clock.pftrace"
    offset = 5_000_000_000
    builder = TraceBuilder(clock=(3, offset), lost_before={(0, 1)})  # FTRACE_CLOCK_LOCAL
    builder.write(trace, few_events[:1200])
    bounds = wbscope.sql(
        trace, "SELECT key, value FROM meta WHERE key IN ('clock', 'first_ts', 'last_ts')"
    )
    assert bounds == [
        {"key": "clock", "value": "boot"},
        {"key": "first_ts", "value": few_events[0].ts + offset},
        {"key": "last_ts", "value": few_events[1199].ts + offset},
    ]
    after = [e.ts for e in few_events[:1200] if e.cpu == 0][256]
    assert wbscope.sql(trace, "SELECT ts FROM lost_events") == [{"ts": after + offset}]


def test_an_assumed_page_size_is_told(wbscope: Wbscope, small: Path) -> None:
    assert wbscope.sql(small, "SELECT page_bytes FROM wb_units") == [{"page_bytes": 4096}]
    document = wbscope.document("query", "dirty_position", small)
    assert "page-size-assumed" in {warning["slug"] for warning in document["warnings"]}


@pytest.mark.parametrize("option", [("--limit", "5"), ("--time-range", "1s..")])
def test_a_part_of_a_trace_is_refused(
    wbscope: Wbscope, small: Path, option: tuple[str, str]
) -> None:
    only_error(ingest(wbscope, small, *option), 2, "whole-trace-only", small.parent)


def test_what_was_not_asked_for_is_missing_and_what_did_not_happen_is_zero(
    wbscope: Wbscope, few_events: list[Event], every_event: Any, tmp_path: Path
) -> None:
    wanted = [e for e in few_events if e.name != "balance_dirty_pages"][:300]
    unasked, asked = tmp_path / "unasked.pftrace", tmp_path / "asked.pftrace"
    TraceBuilder().write(unasked, wanted)
    done = wbscope.run("query", "throttle_by_task", unasked)
    assert done.returncode == 4
    assert "missing-event" in done.stderr
    for configured in (("writeback/*",), ("writeback/balance_dirty_pages",)):
        TraceBuilder(configured=configured).write(asked, wanted)
        assert wbscope.query("throttle_by_task", asked) == []
        asked.unlink()
    builder_of(every_event(example("four-equal-writers"))).write(asked, wanted)
    assert wbscope.query("fairness", asked) == []


def test_a_trace_that_was_cut(wbscope: Wbscope, small: Path) -> None:
    whole = small.read_bytes()
    small.write_bytes(whole[: len(whole) * 2 // 3])
    done = ingest(wbscope, small)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("warning[damaged-trace]: ")
    database = small.parent / "run.db"
    [meta] = wbscope.sql(database, "SELECT value FROM meta WHERE key = 'damaged'")
    assert meta == {"value": 1}
    [count] = wbscope.sql(database, "SELECT sum(count) AS n FROM event_counts")
    assert 0 < count["n"] < 600
    document = wbscope.document("query", "event_counts", database)
    assert "damaged-trace" in {warning["slug"] for warning in document["warnings"]}


def test_noise_behind_good_packets(wbscope: Wbscope, small: Path) -> None:
    small.write_bytes(small.read_bytes() + b"\xff" * 100)
    done = ingest(wbscope, small)
    assert "Failed to parse tag" in only_error(done, 3, "perfetto-refused", small.parent)


def test_no_trace(wbscope: Wbscope, tmp_path: Path) -> None:
    trace = tmp_path / "noise.pftrace"
    trace.write_bytes(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff" + bytes(range(256)))
    done = ingest(wbscope, trace)
    assert "noise.pftrace" in only_error(done, 3, "nothing-readable", tmp_path)


def test_no_ftrace_events(wbscope: Wbscope, four_writers: Twin, tmp_path: Path) -> None:
    """Our own timeline is a Perfetto trace too."""
    trace = tmp_path / "timeline.pftrace"
    done = wbscope.run("timeline", four_writers.recorded, "-o", trace, "--no-events")
    assert done.returncode == 0, done.stderr
    message = only_error(ingest(wbscope, trace), 3, "no-ftrace-events", tmp_path)
    assert "slices" in message


def _nested(depth: int) -> bytes:
    """A packet of ftrace events in a packet of compressed packets, and so on."""
    data = _packet(b"\x0a\x00")
    for _ in range(depth):
        packed = zlib.compress(data)
        data = _packet(_varint(50 << 3 | 2) + _varint(len(packed)) + packed)
    return data


def _packet(body: bytes) -> bytes:
    return b"\x0a" + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])


def test_packets_that_are_packed_again_and_again(wbscope: Wbscope, tmp_path: Path) -> None:
    """The engine ends itself; what it found is told, and none of the bundle that Node.js prints."""
    trace = tmp_path / "nested.pftrace"
    trace.write_bytes(_nested(1500))
    assert trace.stat().st_size < 40_000
    message = only_error(ingest(wbscope, trace), 3, "perfetto-refused", tmp_path)
    assert "cannot read it: PERFETTO_CHECK(!decoder.has_compressed_packets())\n" in message
    assert len(message) < 500


@pytest.mark.parametrize(("depth", "damage"), [(0, False), (1, False), (2, True), (1500, True)])
def test_facts_of_packets_within_packets(tmp_path: Path, depth: int, damage: bool) -> None:
    trace = tmp_path / "nested.pftrace"
    trace.write_bytes(_nested(depth))
    found = read_facts(trace).damage
    assert found == ("a compressed packet is within another one" if damage else None)


def program(folder: Path, text: str) -> str:
    path = folder / "engine"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def with_engine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wbscope: Wbscope
) -> Callable[[str], Wbscope]:
    """The command with $WBSCOPE_TRACE_PROCESSOR set to a shell script."""

    def make(text: str) -> Wbscope:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        monkeypatch.setenv(VARIABLE, program(folder, text))
        return Wbscope(tmp_path / "cache")

    return make


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no memory >&2; exit 23", "exit code 23: no memory"),
        ("kill -9 $$", "signal 9"),
        # A check that is not of the trace.
        ("echo 'x.cc:7 PERFETTO_CHECK(ptr != MAP_FAILED) (errno: 12)' >&2; exit 6", "code 6: x"),
        ("head -c 2000 >/dev/null; exit 0", "exit code 0"),
        ("echo this is no answer; cat >/dev/null", "no trace processor's answer"),
        ("printf '\\012\\377\\377\\377\\377\\377\\377\\377\\377\\1'; cat >/dev/null", "sent"),
        ("printf '\\012\\004\\377\\377\\377\\377'; cat >/dev/null", "no trace processor's answer"),
    ],
)
def test_an_engine_that_dies(
    with_engine: Callable[[str], Wbscope], small: Path, script: str, words: str
) -> None:
    message = only_error(
        ingest(with_engine(script), small), 5, "trace-processor-died", small.parent
    )
    assert words in message


def test_an_engine_that_dies_while_rows_come(
    with_engine: Callable[[str], Wbscope], four_writers: Twin, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.pftrace"
    trace.write_bytes(four_writers.trace.read_bytes())
    proxy = tmp_path / "proxy.py"
    proxy.write_text(_DIES_AFTER)
    command = wasm_engine()
    assert command is not None
    words = " ".join(f"'{word}'" for word in (sys.executable, str(proxy), *command.arguments))
    done = ingest(with_engine(f"exec {words}"), trace)
    assert "exit code 7" in only_error(done, 5, "trace-processor-died", tmp_path)


# The real engine, until it has sent 200 000 bytes: in the midst of the rows.
_DIES_AFTER = """
import os, subprocess, sys
engine = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
left = 200_000
while left > 0:
    data = os.read(engine.stdout.fileno(), left)
    if not data:
        sys.exit(0)
    os.write(1, data)
    left -= len(data)
engine.kill()
engine.wait()
sys.exit(7)
"""


def test_a_native_engine_is_taken_from_the_variable(
    with_engine: Callable[[str], Wbscope], small: Path
) -> None:
    """A stand-in: no native build is to be had on every machine, but all speak --stdiod."""
    command = wasm_engine()
    assert command is not None
    node = " ".join(f"'{word}'" for word in command.arguments)
    done = ingest(with_engine(f'[ "$*" = --stdiod ] && exec {node}; exit 1'), small)
    assert done.returncode == 0, done.stderr


def test_a_variable_that_names_no_program(
    monkeypatch: pytest.MonkeyPatch, small: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    message = only_error(
        ingest(Wbscope(tmp_path / "cache"), small),
        5,
        "no-trace-processor",
        small.parent,
    )
    assert VARIABLE in message


def test_no_engine_at_all(small: Path, tmp_path: Path) -> None:
    """Neither on the PATH, nor fetched before, nor node; and no curl to fetch one with."""
    env = {
        name: value
        for name, value in os.environ.items()
        if name in ("WBSCOPE_INGEST", "LANG", "LC_ALL")
    }
    env |= {"PATH": str(tmp_path / "nothing"), "HOME": str(tmp_path / "home")}
    env |= {"WBSCOPE_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "home").mkdir()
    done = subprocess.run(
        [sys.executable, wbscope_path(), "ingest", small, "-o", small.parent / "run.db"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    message = only_error(done, 5, "no-trace-processor", small.parent)
    for words in (VARIABLE, "pip install", "node", "trace_processor_shell"):
        assert words in message


def test_the_one_that_was_fetched_before_is_found(
    small: Path, tmp_path: Path, wbscope: Wbscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the package perfetto keeps it; node is the stand-in again."""
    command = wasm_engine()
    assert command is not None
    node = " ".join(f"'{word}'" for word in command.arguments)
    home = tmp_path / "home"
    home.mkdir()
    asked = subprocess.run(
        [sys.executable, "-c", _PLACE],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    place = Path(asked.stdout.strip())
    place.parent.mkdir(parents=True)
    require_program("node")
    place.write_text(f'#!/bin/sh\necho "$@" > "{home}/arguments"\nexec {node}\n')
    place.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    done = ingest(Wbscope(tmp_path / "cache", process=True), small)
    assert done.returncode == 0, done.stderr
    assert (home / "arguments").read_text() == "--stdiod\n"


_PLACE = """
import perfetto.prebuilts.perfetto_prebuilts as p, os, platform, sys
from perfetto.prebuilts.manifests.trace_processor_shell import TRACE_PROCESSOR_SHELL_MANIFEST as all
[e] = [e for e in all if e.get('platform') == sys.platform
       and platform.machine().lower() in e.get('machine', [])]
root, ext = os.path.splitext(e['file_name'])
print(os.path.expanduser(f"~/.local/share/perfetto/prebuilts/{root}-{e['sha256'][:16]}{ext}"))
"""


def test_events_that_match_nothing(wbscope: Wbscope, small: Path) -> None:
    output = small.parent / "run.db"
    done = wbscope.run("ingest", small, "-o", output, "--events", "writebak:*")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("error[no-such-event]: --events 'writebak:*': ") == 1, done.stderr
    assert "have: writeback:*" in done.stderr
