# SPDX-License-Identifier: Apache-2.0
"""What Perfetto's recorders write: names, refused events, zstd, several machines; configs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.archives import unpacked
from support.cli import Wbscope, check_error
from support.pftrace import Event, PerfettoEngine, TraceBuilder, bytes_field, events_of
from support.runs import REPOSITORY, RecordedRun, example
from support.stdlib import macros, run_macro, sql_modules
from support.twins import builder_of
from wbscope.library.catalog import Profile
from wbscope.library.library import load_library
from wbscope.perfetto.facts import read_facts

# examples/perfetto-config: what Perfetto's recorder would make of them, and what that answers.

CONFIGS = REPOSITORY / "examples" / "perfetto-config"
LIBRARY = load_library(REPOSITORY / "sql")
# Perfetto has no synthetic events: what blocks tasks it records with deep.
PROFILES = {profile.name: profile for profile in LIBRARY.profiles if not profile.has_blocked}
# The smallest and the one with all events; a run that has something of them.
RUNS = {"writeback": "four-equal-writers", "deep": "deep"}
CPUS = 2
# Without them a thread that starts has no name; trace-cmd's recorder keeps names without events.
NAMES = {"task:task_newtask", "task:task_rename"}


def config(name: str) -> Any:
    from google.protobuf import text_format
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    text = (CONFIGS / f"{name}.textproto").read_text(encoding="utf-8")
    return text_format.Parse(text, protos.TraceConfig())


def source(parsed: Any, name: str) -> Any:
    (found,) = (s.config for s in parsed.data_sources if s.config.name == name)
    return found


def ftrace_events(name: str) -> list[str]:
    return list(source(config(name), "linux.ftrace").ftrace_config.ftrace_events)


def test_there_is_one_for_each_profile() -> None:
    assert {path.stem for path in CONFIGS.glob("*.textproto")} == PROFILES.keys()


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_it_asks_for_the_events_of_the_profile(profile: Profile) -> None:
    asked = ftrace_events(profile.name)
    assert all(re.fullmatch(r"[a-z0-9_]+/[a-z0-9_]+", event) for event in asked)
    assert len(set(asked)) == len(asked)
    wanted = profile.names - {*profile.probes} | NAMES
    assert {event.replace("/", ":") for event in asked} == wanted


@pytest.mark.parametrize("name", PROFILES)
def test_it_asks_for_what_else_is_read(name: str) -> None:
    parsed = config(name)
    ftrace = source(parsed, "linux.ftrace").ftrace_config
    assert not ftrace.disable_generic_events
    assert not ftrace.HasField("use_monotonic_raw_clock")
    tasks = source(parsed, "linux.process_stats").process_stats_config
    assert tasks.scan_all_processes_on_start
    assert tasks.record_thread_names
    source(parsed, "linux.system_info")
    stats = source(parsed, "linux.sys_stats").sys_stats_config
    assert stats.vmstat_period_ms >= 10_000, "each read fires global_dirty_state"
    assert stats.meminfo_period_ms >= 10_000
    assert parsed.write_into_file
    assert parsed.buffers[0].size_kb >= 2 * ftrace.buffer_size_kb


@pytest.mark.parametrize("name", PROFILES)
def test_what_its_comments_say_is_so(name: str) -> None:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    text = (CONFIGS / f"{name}.textproto").read_text(encoding="utf-8")
    found = re.search(r"no messages of its own for the events of ([\w ,#]+?):", text)
    assert found is not None
    generic = set(re.findall(r"\w+", found[1])) - {"and"}
    own = protos.FtraceEvent.DESCRIPTOR.fields_by_name
    asked = {tuple(event.split("/")) for event in ftrace_events(name)}
    assert not generic & {system for system, event in asked if event in own}
    assert "task_newtask" in own
    assert "page_size" in protos.SystemInfo.DESCRIPTOR.fields_by_name
    (about,) = re.findall(
        r"((?:# .*\n)+)data_sources \{\n  config \{\n    name: .linux.system", text
    )
    assert "The recorder itself writes page size" in about


@pytest.mark.parametrize("name", PROFILES)
def test_what_its_buffers_cost_is_told(name: str) -> None:
    parsed = config(name)
    of_each = source(parsed, "linux.ftrace").ftrace_config.buffer_size_kb
    page = (CONFIGS / "README.md").read_text(encoding="utf-8")
    cells = [(parsed.buffers[0].size_kb + cpus * of_each) // 1024 for cpus in (8, 64)]
    assert f"| {name} | {cells[0]} MiB | {cells[1]} MiB |" in page
    text = (CONFIGS / f"{name}.textproto").read_text(encoding="utf-8")
    mib = 64 * of_each // 1024
    assert re.search(rf"({mib} MiB|{mib // 1024} GiB) on 64 CPUs", text)


@pytest.fixture(scope="module", params=RUNS)
def recorded(
    request: pytest.FixtureRequest,
    engine_is_there: None,
    every_event: Callable[[RecordedRun], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path]:
    """A run of the events that the configuration names, with the configuration in it."""
    name = request.param
    asked = set(ftrace_events(name))
    database = every_event(example(RUNS[name]))
    folder = tmp_path_factory.mktemp(name)
    builder = builder_of(database, compact=True)
    builder.configured = tuple(ftrace_events(name))
    chosen = (e for e in events_of(database) if f"{e.system}/{e.name}" in asked)
    builder.write(folder / "trace.pftrace", chosen)
    return name, folder / "trace.pftrace"


def test_its_trace_answers_what_the_run_does(recorded: tuple[str, Path], wbscope: Wbscope) -> None:
    """All queries that trace-cmd's recording of the same events answers."""
    name, trace = recorded
    theirs = example(RUNS[name]).folder
    for query in ("throttle_by_task", "fairness", "bdi_bandwidth", "writeback_work"):
        ours = wbscope.query(query, trace)
        assert ours, query
        assert len(ours) == len(wbscope.query(query, theirs)), query
    counts = {row["event"]: row["count"] for row in wbscope.query("event_counts", trace)}
    recorded_counts = {row["event"]: row["count"] for row in wbscope.query("event_counts", theirs)}
    asked = {event.replace("/", ":") for event in ftrace_events(name)}
    if "sched:sched_switch" in counts:
        counts["sched:sched_switch"] += CPUS  # in the compact form, the first tells no task before
    assert counts == {event: n for event, n in recorded_counts.items() if event in asked and n}


def test_macros_run_on_its_trace(recorded: tuple[str, Path]) -> None:
    name, trace = recorded
    with PerfettoEngine() as engine:
        engine.load(trace)
        engine.register("wbscope", sql_modules())
        drawn = {id: run_macro(engine, macro) for id, macro in macros().items()}
    empty = {id for id, steps in drawn.items() if not any(step.rows for step in steps)}
    assert empty <= ({"wbscope.BlockRequests"} if name == "writeback" else set())
    stalls = [d for d in drawn["wbscope.WorstStalls"] if d.command.startswith("AddDebug")]
    assert all(d.rows for d in stalls), name


def test_the_page_names_every_file() -> None:
    page = (CONFIGS / "README.md").read_text(encoding="utf-8")
    assert all(f"{name}.textproto" in page for name in PROFILES)


# Names of tasks in traces whose recorder knew processes only, or nothing.


def throttled(events: list[Event], tids: dict[int, int]) -> list[Event]:
    """The events of these tasks, under other numbers; and the machine's."""
    state = "global_dirty_state"
    return [replace(e, tid=tids.get(e.tid, 1)) for e in events if e.tid in tids or e.name == state]


def two(events: list[Event]) -> list[int]:
    """Tasks that were throttled."""
    return sorted({e.tid for e in events if e.name == "balance_dirty_pages"})[:2]


@pytest.mark.usefixtures("engine_is_there")
@pytest.mark.parametrize("engine", ["sqlite", "perfetto"])
def test_a_thread_has_the_name_of_its_process(
    wbscope: Wbscope, few_events: list[Event], tmp_path: Path, engine: str
) -> None:
    trace = tmp_path / "run.pftrace"
    tids = dict(zip(two(few_events), (100, 101), strict=True))
    builder = TraceBuilder(threads={100: (100, "/usr/bin/fio"), 101: (100, "")})
    builder.write(trace, throttled(few_events, tids))
    rows = wbscope.query("throttle_by_task", trace, "--engine", engine)
    assert {(row["tid"], row["comm"]) for row in rows} == {(100, "fio"), (101, "fio")}


@pytest.mark.usefixtures("engine_is_there")
def test_a_task_without_a_name_has_one_number(
    wbscope: Wbscope, few_events: list[Event], tmp_path: Path
) -> None:
    trace = tmp_path / "run.pftrace"
    (tid, _) = two(few_events)
    TraceBuilder().write(trace, throttled(few_events, {tid: 101}))
    texts = [str(row["text"]) for row in wbscope.query("findings", trace)]
    assert any("tid 101" in text for text in texts)
    assert not any("tid 101 101" in text for text in texts)
    stall = wbscope.query("stalls", trace)[0]["stall_id"]
    told = wbscope.run("explain", trace, "--stall", str(stall)).stdout
    assert "tid 101 " in told
    assert "tid 101 101" not in told


# Events that Perfetto's recorder was asked for and could not enable: they were not recorded.

ASKED = (
    "writeback/balance_dirty_pages",
    "writeback/bdi_dirty_ratelimit",
    "writeback/dirty_ratelimit",
    "writeback/global_dirty_state",
    "vmscan/*",
)
Made = Callable[..., Path]


@pytest.fixture
def made(few_events: list[Event], tmp_path: Path) -> Made:
    """A trace of a recorder that was asked for ASKED and got global_dirty_state only."""

    def make(**refused: Any) -> Path:
        chosen = [e for e in few_events if e.name == "global_dirty_state"][:50]
        trace = tmp_path / "run.pftrace"
        TraceBuilder(configured=ASKED, **refused).write(trace, chosen)
        return trace

    return make


def warned(wbscope: Wbscope, trace: Path, *options: str) -> list[str]:
    document = wbscope.document("query", "dirty_position", trace, *options)
    return [w["message"] for w in document["warnings"] if w["slug"] == "events-refused"]


@pytest.mark.usefixtures("engine_is_there")
@pytest.mark.parametrize("engine", ["sqlite", "perfetto"])
@pytest.mark.parametrize("name", ["writeback/balance_dirty_pages", "/balance_dirty_pages"])
def test_what_failed_is_no_zero(wbscope: Wbscope, made: Made, name: str, engine: str) -> None:
    trace = made(failed=(name, "kmem/kmalloc"))
    options = ("--engine", engine)
    done = wbscope.run("query", "throttle_by_task", trace, *options)
    assert done.returncode == 4
    assert "missing-event" in done.stderr
    (message,) = warned(wbscope, trace, *options)
    assert "could not enable writeback:balance_dirty_pages:" in message  # no query wants kmalloc
    found = {row["id"] for row in wbscope.query("findings", trace, *options)}
    assert "not_recorded" in found
    assert "nothing_wrong" not in found


@pytest.mark.usefixtures("engine_is_there")
def test_the_report_says_so_first(wbscope: Wbscope, made: Made) -> None:
    report = wbscope.run("report", made(failed=("writeback/balance_dirty_pages",))).stdout
    first = " ".join(report.split()).partition("To do:")[0]
    assert "could not enable writeback:balance_dirty_pages" in first
    assert "Whether tasks were throttled is unknown" in first


@pytest.mark.usefixtures("engine_is_there")
def test_what_the_kernel_lacks_is_not_warned_of(wbscope: Wbscope, made: Made) -> None:
    trace = made(unknown=("writeback/dirty_ratelimit", "vmscan/mm_vmscan_write_folio"))
    recorded = {r["event"] for r in wbscope.sql(trace, "SELECT event FROM raw_event_format")}
    assert {"writeback:balance_dirty_pages", "writeback:bdi_dirty_ratelimit"} <= recorded
    assert "vmscan:mm_vmscan_direct_reclaim_begin" in recorded
    assert not {"writeback:dirty_ratelimit", "vmscan:mm_vmscan_write_folio"} & recorded
    assert warned(wbscope, trace) == []
    assert wbscope.query("throttle_by_task", trace) == []


@pytest.mark.usefixtures("engine_is_there")
def test_a_group_that_failed(wbscope: Wbscope, made: Made) -> None:
    trace = made(failed=("vmscan/*",))
    recorded = wbscope.sql(trace, "SELECT event FROM raw_event_format")
    assert not [row for row in recorded if row["event"].startswith("vmscan:")]
    (message,) = warned(wbscope, trace)
    assert "vmscan:mm_" in message
    assert " others:" in message


@pytest.mark.usefixtures("engine_is_there")
def test_what_happened_all_the_same_counts(wbscope: Wbscope, made: Made) -> None:
    trace = made(failed=("writeback/global_dirty_state",))
    assert warned(wbscope, trace) == []
    assert wbscope.query("dirty_position", trace)


# Packets packed with zstd, which recorders write and engines read from Perfetto v58 on.

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd
KNOWN = {
    "system_info": {"page_size": 16384, "num_cpus": 7},
    "failed": ("writeback/balance_dirty_pages",),
    "lost_before": {(0, 0)},
}


@pytest.mark.usefixtures("engine_is_there")
def test_facts_are_read(few_events: list[Event], tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    TraceBuilder(**KNOWN).write(plain, few_events[:600])
    TraceBuilder(zstd=True, **KNOWN).write(packed, few_events[:600])
    assert packed.stat().st_size < plain.stat().st_size / 2
    facts, wanted = read_facts(packed), read_facts(plain)
    assert facts.has_zstd_events
    assert not wanted.has_zstd_events
    assert (facts.page_bytes, facts.cpus_count, len(facts.gaps)) == (16384, 7, 1)
    wanted.has_zstd_events = True
    assert facts == wanted


@pytest.mark.usefixtures("engine_is_there")
def test_what_is_larger_than_a_read(tmp_path: Path) -> None:
    """Unpacked step by step: a part of a packet is no end."""
    trace = tmp_path / "run.pftrace"
    page_size = bytes_field(45, bytes([6 << 3, 64]))
    large = bytes_field(1, bytes_field(900, bytes(5 << 20))) + bytes_field(1, page_size)
    trace.write_bytes(bytes_field(1, bytes_field(133, zstd.compress(large))))
    facts = read_facts(trace)
    assert (facts.page_bytes, facts.damage) == (64, None)


@pytest.mark.usefixtures("engine_is_there")
@pytest.mark.parametrize("cut", [0, 3, 40])
def test_damage(few_events: list[Event], tmp_path: Path, cut: int) -> None:
    whole = tmp_path / "whole"
    TraceBuilder().write(whole, few_events[:600])
    data = zstd.compress(whole.read_bytes())
    trace = tmp_path / "run.pftrace"
    for broken in (data[: len(data) // 2], data[:cut] + b"\xff" * 9 + data[cut + 9 :]):
        trace.write_bytes(bytes_field(1, bytes_field(133, broken)))
        assert read_facts(trace).damage is not None


@pytest.mark.usefixtures("engine_is_there")
def test_one_within_another(tmp_path: Path) -> None:
    inner = bytes_field(1, bytes_field(133, zstd.compress(b"")))
    trace = tmp_path / "run.pftrace"
    trace.write_bytes(bytes_field(1, bytes_field(133, zstd.compress(inner))))
    assert read_facts(trace).damage == "a compressed packet is within another one"


@pytest.mark.usefixtures("engine_is_there")
def test_an_older_engine_is_told_of(
    wbscope: Wbscope, few_events: list[Event], tmp_path: Path
) -> None:
    trace = tmp_path / "run.pftrace"
    TraceBuilder(zstd=True).write(trace, few_events[:600])
    done = wbscope.run("query", "event_counts", trace)
    if done.returncode == 0:
        pytest.skip("this engine reads it")
    check_error(done.stderr, "packed-with-zstd", "v58", "WBSCOPE_TRACE_PROCESSOR")


# A trace with two machines, or of two tracing instances: the first is read, and that is said.

SAMPLES = unpacked("data") / "traces"
ENGINES = pytest.mark.parametrize("engine", ["sqlite", "perfetto"])


@pytest.fixture(scope="module")
def host(
    few_events: list[Event],
    every_event: Callable[[RecordedRun], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    trace = tmp_path_factory.mktemp("host") / "run.pftrace"
    builder_of(every_event(example("four-equal-writers"))).write(trace, few_events[:3000])
    return trace


@pytest.fixture(scope="module")
def both(host: Path, few_events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host's trace, and behind it a guest's with threads and CPUs of the same numbers."""
    guest = TraceBuilder(
        machine_id=1234,
        system_info={
            "sysname": "Linux",
            "release": "5.10.0",
            "version": "#2",
            "machine": "aarch64",
            "page_size": 16384,
            "num_cpus": 64,
        },
        configured=("writeback/*", "vmscan/*"),
        failed=("writeback/global_dirty_state",),
        threads={few_events[0].tid: (few_events[0].tid, "guest")},
    )
    folder = tmp_path_factory.mktemp("both")
    moved = (replace(event, ts=event.ts + 777) for event in few_events[:2000])
    guest.write(folder / "guest", moved)
    trace = folder / "run.pftrace"
    trace.write_bytes(host.read_bytes() + (folder / "guest").read_bytes())
    (folder / "guest").unlink()
    return trace


@pytest.mark.usefixtures("engine_is_there")
@ENGINES
@pytest.mark.parametrize(
    "query",
    ["dirty_position", "throttle_by_task", "fairness", "event_counts", "bdi_bandwidth"],
)
def test_answers_are_those_of_the_host(
    wbscope: Wbscope, host: Path, both: Path, query: str, engine: str
) -> None:
    alone = wbscope.query(query, host, "--engine", engine)
    assert alone
    assert wbscope.query(query, both, "--engine", engine) == alone


@pytest.mark.usefixtures("engine_is_there")
def test_what_is_left_out_is_told(wbscope: Wbscope, host: Path, both: Path) -> None:
    for trace, told in ((both, True), (host, False)):
        report = wbscope.run("report", trace)
        assert report.returncode == 0, report.stderr
        text = " ".join(report.stdout.split())
        words = "events of 2 machines or tracing instances; only the first was read, without 2000"
        assert (words in text.partition("To do:")[0]) is told


@pytest.mark.usefixtures("engine_is_there")
def test_what_the_host_lacks_is_missing(wbscope: Wbscope, both: Path) -> None:
    """The configuration of vmscan was the guest's."""
    done = wbscope.run("query", "reclaim_writes", both)
    assert done.returncode == 4
    assert "missing-event" in done.stderr
    facts = {r["key"]: r["value"] for r in wbscope.sql(both, "SELECT key, value FROM raw_meta")}
    assert facts["page_bytes"] == 4096
    assert facts["kernel_release"].startswith("6.")
    assert "refused_events" not in facts


@pytest.mark.usefixtures("engine_is_there")
def test_two_traces_in_one(wbscope: Wbscope, tmp_path: Path) -> None:
    """As convert writes a host and its guest."""
    trace = tmp_path / "trace.pftrace"
    pair = [SAMPLES / f"6.1-amd64-v7-{name}/trace.dat" for name in ("host", "guest")]
    assert wbscope.run("convert", *pair, "-o", trace).returncode == 0
    document = wbscope.document("query", "event_counts", trace)
    (message,) = (w["message"] for w in document["warnings"] if w["slug"] == "other-machines")
    ours = {row["event"]: row["count"] for row in document["rows"]}
    theirs = {row["event"]: row["count"] for row in wbscope.query("event_counts", pair[0])}
    assert ours.items() <= theirs.items()
    assert "of 2 machines" in message
