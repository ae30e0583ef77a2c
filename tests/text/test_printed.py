# SPDX-License-Identifier: Apache-2.0
"""What kernels, perf, trace-cmd and BPF scripts print: read, and answered."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.runs import RecordedRun, all_runs
from support.texttrace import Loaded, load, load_binary
from support.tools import require_program, run
from wbscope.ingest.program import captured
from wbscope.library.library import load_library

# The kernel's own file trace, and perf script, as recorded on real machines.

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


# What trace-cmd report prints, against the trace.dat that it printed.

# Fields that the print format leaves out, or prints so that they cannot be
# told: a symbol instead of an address, ms instead of jiffies, R for a task that
# was preempted. Raw output (-R) has them all.
_NOT_PRINTED = {
    "vmscan:mm_shrink_slab_start": {"shrink"},
    "vmscan:mm_shrink_slab_end": {"shrink"},
    "vmscan:mm_vmscan_kswapd_wake": {"zid"},
    "vmscan:mm_vmscan_wakeup_kswapd": {"zid"},
    "sched:sched_switch": {"prev_state"},
    "jbd2:jbd2_run_stats": {
        "wait",
        "request_delay",
        "running",
        "locked",
        "flushing",
        "logging",
    },
}
_SHOWN_STATE = 0xFF  # bits of prev_state that have a letter
_QUERIES = (
    "throttle_by_task",
    "fairness_tasks",
    "bdi_bandwidth",
    "dirty_position",
    "throughput",
    "event_counts",
)
_ROUNDED_NS = {"-t": 1, "": 1000, "-R": 1000, "-l": 1000}
_runs = pytest.mark.parametrize("run_", all_runs(), ids=str)


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str | None], Loaded]:
    return {}


def _loaded(
    made: dict[tuple[str, str | None], Loaded], of: RecordedRun, option: str | None, folder: Path
) -> Loaded:
    """The database of the trace itself (None) or of its report."""
    key = (str(of), option)
    if key not in made:
        database = folder / "run.db"
        if option is None:
            made[key] = load_binary(of.trace, database)
        else:
            report = [require_program("trace-cmd"), "report", *option.split(), of.trace]
            text = folder / "report.txt"
            text.write_text(run(report).stdout, encoding="utf-8")
            made[key] = load(text, database)
            text.unlink()
    return made[key]


def _rounded(row: dict[str, Any], unit: int) -> dict[str, Any]:
    return {**row, "ts": (row["ts"] + unit // 2) // unit * unit}


@_runs
@pytest.mark.parametrize("option", ["", "-t", "-R", "-l"])
def test_same_records(
    databases: dict[tuple[str, str | None], Loaded],
    tmp_path_factory: pytest.TempPathFactory,
    run_: RecordedRun,
    option: str,
) -> None:
    truth = _loaded(databases, run_, None, tmp_path_factory.mktemp("dat"))
    text = _loaded(databases, run_, option, tmp_path_factory.mktemp("text"))
    assert text.meta()["format"] == "trace-cmd report text"
    assert "text_not_understood" not in text.counters()
    assert text.events() == truth.events()
    for event in sorted(set(load_library().events()) & set(truth.events())):
        left_out = set() if option == "-R" else _NOT_PRINTED.get(event, set())
        if event.startswith("syscalls:") and option != "-R":
            left_out = {"__syscall_nr"}
        # -R of trace-cmd 3.1.6 cuts addresses to 32 bits where it cannot print.
        if event.startswith("vmscan:mm_shrink_slab"):
            left_out = {"shrink"}
        if option != "-l":
            left_out = left_out | {"common_flags"}
        expected = truth.rows(event)
        found = text.rows(event)
        assert len(found) == len(expected), event
        wrong = [
            (want, got)
            for want, got in zip(expected, found, strict=True)
            if _comparable(_rounded(_told(want), _ROUNDED_NS[option]), left_out)
            != _comparable(got, left_out)
        ]
        assert not wrong, f"{event}: {len(wrong)} of {len(found)} differ, first {wrong[0]}"


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Of the flags text tells interrupts only."""
    flags = row.get("common_flags")
    return row if flags is None else row | {"common_flags": flags & 24}


def _comparable(row: dict[str, Any], left_out: set[str]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in {*left_out, "seq"}}
    if "prev_state" in left_out:
        kept["prev_state"] = row["prev_state"] & _SHOWN_STATE
    return kept


@_runs
@pytest.mark.parametrize("query", _QUERIES)
def test_same_answers(
    databases: dict[tuple[str, str | None], Loaded],
    tmp_path_factory: pytest.TempPathFactory,
    wbscope: Wbscope,
    run_: RecordedRun,
    query: str,
) -> None:
    truth = _loaded(databases, run_, None, tmp_path_factory.mktemp("dat"))
    text = _loaded(databases, run_, "-t", tmp_path_factory.mktemp("text"))
    assert wbscope.query(query, text.path) == wbscope.query(query, truth.path)


# The scripts in kernel-tracepoints/bpf/, and their output on stock kernels: read, and answered.
#
# What is right is read from the lines themselves, key by key. That the scripts still print such
# lines is seen in their text: no kernel runs here.

_KERNEL = Path(__file__).parents[2] / "kernel-tracepoints"
_SCRIPTS = sorted((_KERNEL / "bpf").glob("*.bt"))
# What the lines of each script are, and the format that reads them.
_PRINTED = {
    ("domains.bt", "wb_domain_dirty_state"): ("text-formats", "bpftrace", "writeback"),
    ("reclaim.bt", "mm_vmscan_reclaim_writeback"): ("text-formats", "bpftrace", "vmscan"),
    ("reclaim-6.12.bt", "mm_vmscan_reclaim_writeback"): ("text-formats", "bpftrace-2", "vmscan"),
    ("waits.bt", "balance_dirty_pages"): ("formats", "6.1.192-x86_64", "writeback"),
    ("waits.bt", "balance_dirty_pages_done"): ("text-formats", "bpftrace", "writeback"),
}
_PRINTF = re.compile(
    r'printf\("%16s-%-7d \[%03d\] %d\.%09d: (?P<event>\w+): (?P<text>.*)\\n",'
    r"\s+comm, tid, cpu, nsecs / 1000000000, nsecs % 1000000000,(?P<values>[^;]*)\);"
)
_NUMBER = re.compile(r"%l*[du]")
_LINE = re.compile(r"^ *(?P<comm>.+)-(?P<tid>\d+) +\[\d+\] [\d.]+: (?P<event>\w+): (?P<text>.*)$")
_PAIR = re.compile(r"(\w+)=(\S+)")


def _lines(name: str, event: str) -> list[dict[str, str]]:
    """The keys and values of each line of events that a pattern names, and its tid."""
    found = []
    for line in (_DATA / name).read_text().splitlines():
        match = _LINE.match(line)
        if match and re.fullmatch(event, match["event"]):
            found.append({"tid": match["tid"], **dict(_PAIR.findall(match["text"]))})
    assert found
    return found


def _printed(script: Path) -> dict[str, re.Match[str]]:
    """The lines that a script prints, by event."""
    return {match["event"]: match for match in _PRINTF.finditer(script.read_text())}


def _format(place: tuple[str, str, str], event: str) -> tuple[str, list[str], list[str]]:
    """The text of a format's lines, what it prints there, and its fields."""
    part, *where = place
    (text,) = (f.text for f in captured(part) if [f.kernel, f.system, f.name] == [*where, event])
    fields = re.findall(r"field:[^;]*?(\w+)(?:\[\d+\])?;", text)
    _, words, values = text.partition("print fmt: ")[2].split('"', 2)
    return (
        words,
        re.findall(r"REC->(\w+)", values),
        [field for field in fields if not field.startswith("common_")],
    )


def test_each_script_prints_the_lines_of_its_formats() -> None:
    printed = {(script.name, event) for script in _SCRIPTS for event in _printed(script)}
    assert printed == set(_PRINTED)
    for (name, event), place in _PRINTED.items():
        line = _printed(_KERNEL / "bpf" / name)[event]
        words, values, fields = _format(place, event)
        text, constants = re.subn(r"=\d+(?= |$)", "=%d", line["text"])
        # Signs and sizes of numbers do not show in a line.
        assert _NUMBER.sub("%d", text) == _NUMBER.sub("%d", words), (name, event)
        assert sorted(values) == sorted(fields), (name, event)
        assert len(line["values"].split(",")) + constants == len(values), (name, event)


def test_waits_script_can_be_made_to_fit_newer_kernels() -> None:
    """By the command that the README has."""
    readme = (_KERNEL / "bpf" / "README.md").read_text()
    assert r"sed -E 's/bdi_(setpoint|dirty)\b/wb_\1/g' waits.bt" in readme
    text = re.sub(r"bdi_(setpoint|dirty)\b", r"wb_\1", (_KERNEL / "bpf" / "waits.bt").read_text())
    match = next(m for m in _PRINTF.finditer(text) if m["event"] == "balance_dirty_pages")
    for kernel in ("6.18.44-x86_64", "7.2.13-x86_64"):
        words, values, _ = _format(("formats", kernel, "writeback"), match["event"])
        assert _NUMBER.sub("%d", match["text"]) == _NUMBER.sub("%d", words)
        assert set(re.findall(r"args->(\w+)", match["values"])) == set(values)


@pytest.mark.parametrize("script", _SCRIPTS, ids=lambda script: script.name)
def test_nothing_is_kept_of_a_thread(script: Path) -> None:
    text = script.read_text()
    kept = set(re.findall(r"@(\w+)\[tid\] = ", text))
    assert kept
    assert set(re.findall(r"\bdelete\(@(\w+)\[tid\]\);", text)) == kept
    assert set(re.findall(r"\bclear\(@(\w+)\);", text)) == kept


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("bpf-waits-6.1.txt", ("balance_dirty_pages", "balance_dirty_pages_done")),
        ("bpf-domains-6.1.txt", ("wb_domain_dirty_state",)),
        ("bpf-reclaim-6.1.txt", ("mm_vmscan_reclaim_writeback",)),
        ("bpf-reclaim-6.12.txt", ("mm_vmscan_reclaim_writeback",)),
    ],
)
def test_every_line_is_a_record(wbscope: Wbscope, name: str, events: tuple[str, ...]) -> None:
    counts = wbscope.document("query", "event_counts", _DATA / name)
    assert not [w for w in counts["warnings"] if w["slug"] == "lines-not-understood"]
    assert {row["event"].partition(":")[2]: row["loaded_count"] for row in counts["rows"]} == {
        event: len(_lines(name, event)) for event in events
    }


def test_waits_are_those_that_were_measured(wbscope: Wbscope) -> None:
    name = "bpf-waits-6.1.txt"
    done = _lines(name, "balance_dirty_pages_done")
    assert sum(int(line["sleeps"]) for line in done) > 10
    assert max(int(line["loops"]) for line in done) > 2
    sql = (
        "SELECT t.tid, sum(t.slept_ns) AS slept_ns FROM wb_throttle AS t"
        " WHERE t.slept_basis = 'measured' GROUP BY t.tid"
    )
    slept = {row["tid"]: row["slept_ns"] for row in wbscope.sql(_DATA / name, sql)}
    told: dict[int, int] = defaultdict(int)
    # Of calls that were under way when the probes were attached there are events, and no return.
    events: Counter[str] = Counter()
    unfinished = 0
    for line in _lines(name, "balance_dirty_pages.*"):
        if "loops" not in line:
            events[line["tid"]] += 1
            continue
        unfinished += events.pop(line["tid"]) - int(line["loops"])
        told[int(line["tid"])] += int(line["wait_ns"])
        assert int(line["wait_ns"]) <= int(line["total_ns"])
    assert unfinished > 0
    assert slept == told


def test_domains_are_those_that_were_seen(wbscope: Wbscope) -> None:
    name = "bpf-domains-6.1.txt"
    rows = wbscope.document("query", "dirty_domains", _DATA / name)["rows"]
    lines = _lines(name, "wb_domain_dirty_state")
    assert {(row["domain"], row["cgroup_ino"]) for row in rows} == {
        ("memcg" if line["domain"] == "1" else "global", int(line["cgroup_ino"])) for line in lines
    }
    assert len(rows) == 2
    for row in rows:
        own = [line for line in lines if int(line["cgroup_ino"]) == row["cgroup_ino"]]
        # Flushers leave out pages under writeback; real-time callers have other thresholds.
        levels = [int(line["dirty"]) for line in own if line["caller"] != "1"]
        thresh = [int(line["thresh"]) for line in own if line["rt_boost"] == "0"]
        assert row["basis"] == "domain_dirty_state"
        assert row["events_count"] == len(own)
        assert row["dirty_max_bytes"] == 4096 * max(levels)
        assert row["dirty_bytes"] == 4096 * sum(levels) // len(levels)
        assert row["thresh_min_bytes"] == 4096 * min(thresh)
        assert row["boosted_count"] == len(own) - len(thresh)
        assert row["by_dirtier_count"] == sum(line["caller"] == "0" for line in own)
        assert row["by_flusher_count"] == sum(line["caller"] == "1" for line in own) > 0
        assert row["by_sampler_count"] == sum(line["caller"] == "2" for line in own)


def test_who_looked_and_what_it_was_told() -> None:
    """The guest had dirty_bytes, so that every plain task has the same limits."""
    lines = [
        {key: int(value) for key, value in line.items()}
        for line in _lines("bpf-domains-6.1.txt", "wb_domain_dirty_state")
        if line["domain"] == "0"
    ]
    samplers = [line for line in lines if line["caller"] == 2]
    assert samplers
    assert all(line["dirty"] > 0 for line in samplers)
    plain = {line["thresh"] for line in lines if line["rt_boost"] == 0}
    assert plain == {4096}
    boosted = [line for line in lines if line["rt_boost"] == 1]
    assert boosted
    for line in boosted:
        assert line["thresh"] == 4096 + 4096 // 4 + line["limit"] // 32


@pytest.mark.parametrize("name", ["bpf-reclaim-6.1.txt", "bpf-reclaim-6.12.txt"])
def test_writes_are_exact(wbscope: Wbscope, name: str) -> None:
    rows = wbscope.document("query", "reclaim_writes", _DATA / name)["rows"]
    pages: Counter[tuple[int, str, str]] = Counter()
    who = ("kswapd", "direct", "memcg", "node", "proactive", "other")
    for line in _lines(name, "mm_vmscan_reclaim_writeback"):
        pages[int(line["nid"]), line["zone"], who[int(line["reclaimer"])]] += int(line["nr_pages"])
    assert {row["basis"] for row in rows} == {"reclaim_writeback"}
    assert {
        (row["node"], row["zone"], row["reclaimer"]): row["pages_count"] for row in rows
    } == pages
