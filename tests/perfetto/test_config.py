# SPDX-License-Identifier: Apache-2.0
"""examples/perfetto-config: what Perfetto's recorder would make of them, and what that answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.macros import macros, run_macro, sql_modules
from support.perfetto_engine import PerfettoEngine
from support.pftrace import events_of
from support.runs import REPOSITORY, RecordedRun, example
from support.twins import builder_of
from wbscope.library.catalog import Profile
from wbscope.library.library import load_library

CONFIGS = REPOSITORY / "examples" / "perfetto-config"
LIBRARY = load_library(REPOSITORY / "sql")
PROFILES = {profile.name: profile for profile in LIBRARY.profiles}
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
