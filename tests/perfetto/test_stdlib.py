# SPDX-License-Identifier: Apache-2.0
"""ui/perfetto-stdlib in the real engine: modules and events, and how to send all of it."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.cli import Document, Wbscope
from support.runs import REPOSITORY, example
from support.stdlib import (
    DIFF_TESTS,
    FTRACE_EVENTS,
    HOME,
    OBJECTS,
    PUBLIC,
    SOURCES,
    STDLIB,
    TRACES,
    DataPath,
    Object,
    StdlibEngine,
    as_csv,
    code_of,
    load_file,
    trace_of,
)

# ui/perfetto-stdlib: modules for Perfetto's standard library, in the real engine.
#
# Its diff tests run here as Perfetto's own runner would run them, its modules are held to the rules
# of Perfetto's tools/check_sql_modules.py, and their numbers to those of wbscope, which reads the
# same part of the same trace.dat and has no part of Perfetto in it.

# Perfetto's rules: python/generators/sql_processing/utils.py there.
COLUMN_TYPES = {"LONG", "DOUBLE", "STRING", "BOOL", "TIMESTAMP", "DURATION", "ID", "JOINID"}
ARGUMENT_TYPES = {"Expr", "TableOrSubquery"}
BANNED = r"OR\s+REPLACE|DROP|INSERT\s+INTO|CREATE\s+(?:TABLE|VIEW|INDEX)|\w*LIKE\w*|RUN_METRIC"
CELLS: dict[str, tuple[type, ...]] = {"DOUBLE": (float,), "STRING": (str,)}
# Of a call: wbscope has the kernel's whole ms, and how late a sleep ended or may have ended.
SLACK_NS = 20_000_000


@pytest.fixture(scope="module")
def engine() -> Iterator[StdlibEngine]:
    with StdlibEngine() as started:
        yield started


# The diff tests.


@pytest.mark.parametrize("name", DIFF_TESTS)
def test_diff_test(engine: StdlibEngine, name: str, tmp_path: Path) -> None:
    blueprint = DIFF_TESTS[name]()
    engine.open(trace_of(blueprint, tmp_path))
    columns, rows = engine.table(blueprint.query)
    wanted = [line.strip() for line in blueprint.out.contents.strip().splitlines()]
    assert as_csv(columns, rows) == wanted


def test_traces_are_small_and_used() -> None:
    used = {
        blueprint.trace.filename
        for method in DIFF_TESTS.values()
        if isinstance((blueprint := method()).trace, DataPath)
    }
    files = {path.name: path.stat().st_size for path in TRACES.iterdir()}
    assert files.keys() == used
    assert max(files.values()) < 150_000


# Perfetto's rules for modules.


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_keeps_the_rules_of_perfetto(module: str) -> None:
    sql = SOURCES[module]
    lines = sql.splitlines()
    assert lines[0] == "-- SPDX-License-Identifier: Apache-2.0"
    assert f"-- @module {module}" in lines
    assert max(map(len, lines)) <= 80
    assert not re.findall(rf"\b(?:{BANNED})\b", code_of(sql), re.IGNORECASE)
    statements = [part.strip() for part in code_of(sql).split(";") if part.strip()]
    heads = r"(INCLUDE PERFETTO MODULE [\w.]+$|CREATE PERFETTO (TABLE|VIEW|FUNCTION|MACRO) )"
    assert all(re.match(heads, statement) for statement in statements)
    creates = sum(statement.startswith("CREATE") for statement in statements)
    assert creates == len(OBJECTS[module]) > 0


@pytest.mark.parametrize("made", PUBLIC, ids=lambda made: made.name)
def test_a_public_object_is_documented(made: Object) -> None:
    assert re.fullmatch(r"linux_[a-z0-9_]+", made.name)
    assert made.description
    assert made.columns, "no schema"
    known = ARGUMENT_TYPES if made.kind == "MACRO" else COLUMN_TYPES
    for name, (type_, comment) in made.columns.items():
        assert re.fullmatch(r"[a-z0-9_]+", name)
        assert comment, f"{name} has no comment"
        assert re.sub(r"\(.*", "", type_) in known, name


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_includes_what_it_uses(module: str) -> None:
    """And nothing else: check_sql_modules.py --check-includes."""
    code = code_of(SOURCES[module])
    words = set(re.findall(r"\w+", code))
    needed = {
        other
        for other, found in OBJECTS.items()
        if other != module and words & {made.name for made in found}
    }
    assert set(re.findall(r"INCLUDE PERFETTO MODULE ([\w.]+);", code)) == needed


def test_the_build_file_lists_all_modules() -> None:
    build = (STDLIB / "linux" / "writeback" / "BUILD.gn").read_text()
    listed = re.findall(r'"(\w+)\.sql"', build)
    assert [f"linux.writeback.{name}" for name in listed] == list(SOURCES)


def test_columns_are_as_documented(engine: StdlibEngine) -> None:
    engine.open(TRACES / "linux_writeback_6_1.pftrace")
    engine.include_all()
    for made in PUBLIC:
        if made.kind == "MACRO":
            continue
        columns, rows = engine.table(f"SELECT * FROM {made.name}")
        assert columns == list(made.columns)
        for place, (name, (type_, _)) in enumerate(made.columns.items()):
            kinds = {type(row[place]) for row in rows} - {type(None)}
            assert kinds <= set(CELLS.get(type_, (int,))), name


# The numbers, against those of wbscope.


@dataclass(frozen=True)
class Part:
    """A kept trace, and what of which example it is."""

    trace: str
    run: str
    range: str
    events: tuple[str, ...]

    @property
    def path(self) -> Path:
        return TRACES / f"linux_writeback_{self.trace}.pftrace"

    def __str__(self) -> str:
        return self.trace


_THROTTLING = (
    "writeback:balance_dirty_pages",
    "writeback:bdi_dirty_ratelimit",
    "writeback:global_dirty_state",
)
_RECLAIM = (
    "vmscan:mm_vmscan_write_folio",
    "vmscan:mm_vmscan_direct_reclaim_*",
    "vmscan:mm_vmscan_memcg_*",
    "vmscan:mm_vmscan_kswapd_*",
)
THROTTLED = (
    Part("6_1", "four-equal-writers", "0s..8s", _THROTTLING),
    Part("7_2", "four-equal-writers-7.2", "0s..", _THROTTLING),
    Part("cgroup", "deep", "0s..5s", _THROTTLING),
)
RECLAIM = Part("reclaim", "reclaim-writes", "3700ms..4500ms", _RECLAIM)
PARTS = (*THROTTLED, RECLAIM)


class Compared:
    """One part in both programs."""

    def __init__(self, part: Part, wbscope: Wbscope, folder: Path) -> None:
        self.part = part
        self.wbscope = wbscope
        self.folder = folder
        self.whole = self.part_of_run("ingest", "whole.db", "--all")
        self.engine = StdlibEngine()
        self.engine.open(part.path)
        self.engine.include_all()

    def part_of_run(self, verb: str, name: str, *options: str) -> Path:
        run, file = example(self.part.run), self.folder / name
        source = run.folder if verb == "ingest" else run.trace
        done = self.wbscope.run(verb, source, "-o", file, "--time-range", self.part.range, *options)
        assert done.returncode == 0, done.stderr
        return file

    def alone(self, event: str) -> Path:
        """Without other events and files, so that wbscope has nothing better to tell rates by."""
        return self.part_of_run("convert", "alone.pftrace", "--events", event)

    def query(self, name: str) -> list[Document]:
        return self.wbscope.query(name, self.whole)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return [dict(row) for row in self.engine.query(sql)]


@pytest.fixture(scope="module")
def compared(
    wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Part], Compared]]:
    made: dict[Part, Compared] = {}

    def of(part: Part) -> Compared:
        if part not in made:
            made[part] = Compared(part, wbscope, tmp_path_factory.mktemp(part.trace))
        return made[part]

    yield of
    for one in made.values():
        one.engine.close()


def each(parts: tuple[Part, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("part", parts, ids=str)


@each(PARTS)
def test_the_kept_trace_is_the_part_of_its_run(
    compared: Callable[[Part], Compared], part: Part
) -> None:
    both = compared(part)
    told = {
        row["event"].partition(":")[2]: row["count"]
        for row in both.query("event_counts")
        if any(re.fullmatch(glob.replace("*", ".*"), row["event"]) for glob in part.events)
    }
    found = both.rows("SELECT name, count() AS n FROM ftrace_event GROUP BY name")
    assert {row["name"]: row["n"] for row in found} == told
    tables = {
        "balance_dirty_pages": "linux_writeback_throttle_event",
        "global_dirty_state": "linux_writeback_dirty_state",
        "bdi_dirty_ratelimit": "linux_writeback_bdi_bandwidth",
        "mm_vmscan_write_folio": "linux_writeback_reclaim_write",
    }
    for event, table in tables.items():
        (row,) = both.rows(f"SELECT count() AS n FROM {table}")
        assert row["n"] == told.get(event, 0), table


def by_task(rows: list[Any]) -> dict[tuple[Any, ...], Any]:
    found = {(row["tid"], row["bdi"], row["cgroup_ino"]): row for row in rows}
    assert len(found) == len(rows) > 0
    return found


@each(THROTTLED)
def test_throttling_is_that_of_wbscope(compared: Callable[[Part], Compared], part: Part) -> None:
    both = compared(part)
    told = by_task(both.query("throttle_by_task"))
    found = by_task(
        both.rows("SELECT * FROM linux_writeback_throttle_by_thread JOIN thread USING (utid)")
    )
    assert found.keys() == told.keys()
    same = {
        "call_count": "calls_count",
        "pause_count": "pauses_count",
        "pause_dur": "pause_total_ns",
        "pause_max_dur": "pause_max_ns",
        "charged_bytes": "dirtied_bytes",
    }
    for key, row in found.items():
        assert {ours: row[ours] for ours in same} == {
            ours: told[key][theirs] for ours, theirs in same.items()
        }, key
        assert abs(row["call_max_dur"] - told[key]["call_max_ns"]) <= SLACK_NS, key
        assert 0 <= (row["throttled_ratio"] or 0) <= 1


@each(THROTTLED)
def test_calls_of_a_thread_do_not_overlap(compared: Callable[[Part], Compared], part: Part) -> None:
    rows = compared(part).rows("SELECT * FROM linux_writeback_throttle_call ORDER BY utid, ts")
    for row, following in itertools.pairwise(rows):
        assert row["dur"] >= 0
        if following["utid"] == row["utid"]:
            assert row["ts"] + row["dur"] <= following["ts"]


@each(THROTTLED)
def test_fairness_is_that_of_wbscope(compared: Callable[[Part], Compared], part: Part) -> None:
    both = compared(part)
    told = by_task(both.query("fairness_tasks"))
    found = by_task(
        both.rows("SELECT * FROM linux_writeback_dirtied_rate JOIN thread USING (utid)")
    )
    assert found.keys() == told.keys()
    for key, row in found.items():
        assert row["charged_bytes"] == told[key]["dirtied_bytes"]
        assert row["dur"] == told[key]["active_ns"]
        assert row["charged_bytes_per_s"] == pytest.approx(told[key]["dirtied_bytes_per_s"])
    rates: dict[tuple[str, int], list[float]] = {}
    for row in told.values():
        rates.setdefault((row["bdi"], row["cgroup_ino"]), []).append(row["dirtied_bytes_per_s"])
    indexes = both.rows("SELECT * FROM linux_writeback_fairness")
    assert {(row["bdi"], row["cgroup_ino"]) for row in indexes} == rates.keys()
    (coverage,) = {row["coverage_ratio"] for row in told.values()}
    for row in indexes:
        group = rates[row["bdi"], row["cgroup_ino"]]
        assert row["thread_count"] == len(group)
        assert row["charged_bytes_per_s"] == pytest.approx(sum(group))
        index = sum(group) ** 2 / len(group) / sum(rate**2 for rate in group)
        assert row["jain_index"] == pytest.approx(index)
        assert row["slowest_to_fastest_ratio"] == pytest.approx(min(group) / max(group))
        assert row["coverage_ratio"] == pytest.approx(coverage)


def test_the_index_is_that_of_wbscope(compared: Callable[[Part], Compared]) -> None:
    """Of balance_dirty_pages alone: with more, wbscope tells the rates by something better."""
    both = compared(THROTTLED[0])
    (told,) = both.wbscope.query("fairness", both.alone("writeback:balance_dirty_pages"))
    (found,) = both.rows("SELECT * FROM linux_writeback_fairness")
    assert told["dirtied_basis"] == "bound"
    assert found["jain_index"] == pytest.approx(told["jain_ratio"])
    assert found["slowest_to_fastest_ratio"] == pytest.approx(told["slowest_to_fastest_ratio"])


@each(THROTTLED)
def test_bandwidth_and_limits_are_those_of_wbscope(
    compared: Callable[[Part], Compared], part: Part
) -> None:
    both = compared(part)
    # Where a memory cgroup throttles wb_bandwidth leaves out the first of two updates in a row.
    wanted = both.wbscope.sql(
        both.whole,
        "SELECT ts, write_bw * 1024 AS write, avg_write_bw * 1024 AS avg, dirty_rate * 1024 AS"
        " dirty, dirty_ratelimit * 1024 AS base, balanced_dirty_ratelimit * 1024 AS balanced"
        " FROM ev_bdi_dirty_ratelimit ORDER BY ts",
    )
    found = both.rows(
        "SELECT ts, write_bytes_per_s AS write, avg_write_bytes_per_s AS avg, dirty_bytes_per_s AS"
        " dirty, dirty_ratelimit_bytes_per_s AS base, balanced_ratelimit_bytes_per_s AS balanced"
        " FROM linux_writeback_bdi_bandwidth ORDER BY ts"
    )
    assert found == wanted
    pages = "dirty_bytes / 4096 AS dirty, bg_thresh_bytes / 4096 AS bg_thresh"
    limits = "thresh_bytes / 4096 AS thresh, limit_bytes / 4096 AS hard_limit"
    derived = "freerun_bytes / 4096 AS freerun, setpoint_bytes / 4096 AS setpoint"
    assert both.rows(
        f"SELECT ts, {pages}, {limits}, {derived} FROM linux_writeback_dirty_state ORDER BY ts"
    ) == both.wbscope.sql(
        both.whole,
        "SELECT ts, dirty, bg_thresh, thresh, hard_limit, freerun, setpoint FROM _dirty_sample"
        " ORDER BY ts",
    )


def test_reclaim_writes_are_those_of_wbscope(compared: Callable[[Part], Compared]) -> None:
    both = compared(RECLAIM)
    zones = both.wbscope.sql(both.whole, "SELECT node, zone, start_pfn, spanned_count FROM zone")
    values = ", ".join(
        f"({row['node']}, '{row['zone']}', {row['start_pfn']}, {row['spanned_count']})"
        for row in zones
    )
    both.rows(
        "CREATE PERFETTO TABLE zones AS WITH data(node, zone, start_pfn, spanned) AS"
        f" (VALUES {values}) SELECT * FROM data"
    )
    key = ("node", "zone", "kind", "reclaimer")
    found = both.rows("SELECT * FROM linux_writeback_reclaim_write_by_zone!(zones)")
    told = both.query("reclaim_writes")
    assert {tuple(row[k] for k in key): row["folio_count"] for row in found} == {
        tuple(row[k] for k in key): row["events_count"] for row in told
    }
    assert {row["reclaimer"] for row in found} == {"direct", "kswapd"}


# ui/perfetto-stdlib: the events for Perfetto's list, and the page that tells how to send all.

FORMATS = REPOSITORY / "kernel-tracepoints" / "formats"
GENERATOR: Any = load_file(HOME / "gen_ftrace_protos.py")


def test_generated_files_are_current(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gen_ftrace_protos.py", "--check"])
    assert GENERATOR.main() == 0, capsys.readouterr().out


def newest_formats() -> dict[str, str]:
    """Texts of system/event of the newest kernel that has been captured."""

    def version(path: Path) -> tuple[int, ...]:
        return tuple(map(int, path.name.split("-")[0].split(".")))

    newest = max(FORMATS.glob("*-x86_64.formats"), key=version)
    assert newest.stem == GENERATOR.NEWEST
    system = ""
    found: dict[str, str] = {}
    name = ""
    for line in newest.read_text().splitlines():
        if line.startswith("# system "):
            system = line.split()[2]
        elif line.startswith("name: "):
            name = f"{system}/{line.split()[1]}"
            found[name] = ""
        elif name:
            found[name] += line + "\n"
    return found


# Gone since, and still in kernels that Perfetto records: event or event.field, and until when.
GONE = {
    "vmscan/mm_vmscan_writepage": "5.17",
    "writeback/balance_dirty_pages.bdi_setpoint": "6.14",
    "writeback/balance_dirty_pages.bdi_dirty": "6.14",
    "writeback/global_dirty_state.nr_unstable": "5.7",
    "vmscan/mm_vmscan_lru_shrink_inactive.zid": "4.7",
    "vmscan/mm_vmscan_memcg_softlimit_reclaim_begin.may_writepage": "5.1",
}
GONE_OF_ALL = {"cgroup": "4.5"}


def test_each_event_and_field_is_in_the_newest_kernel() -> None:
    """By the text of its formats, which the generator reads in another way."""
    formats = newest_formats()
    protos = "".join(path.read_text() for path in sorted((HOME / "protos").rglob("*.proto*")))
    messages = dict(re.findall(r"message (\w+)FtraceEvent \{\n(.*?)\}", protos, re.DOTALL))
    events = FTRACE_EVENTS.read_text().split()
    assert len(set(events)) == len(events) == len(messages)
    for event in events:
        title = event.partition("/")[2].title().replace("_", "")
        numbered = re.findall(r"  optional (\w+) (\w+) = (\d+);\n", messages[title])
        assert [int(number) for _, _, number in numbered] == list(range(1, len(numbered) + 1))
        if event in GONE:
            assert event not in formats
            continue
        text = formats[event]
        for kind, name, _ in numbered:
            line = re.search(rf"\tfield:(.*\b){name}(\[\d+\])?;.*size:(\d+);\tsigned:(\d)", text)
            if line is None:
                assert f"{event}.{name}" in GONE or name in GONE_OF_ALL, f"{event}.{name}"
                continue
            wanted = "string" if "char" in line[1] else f"int{64 if int(line[3]) > 4 else 32}"
            if line[1].strip() == "dev_t":
                wanted = "int64"
            assert kind.removeprefix("u") == wanted
            assert kind == "string" or kind.startswith("u") == (line[4] == "0")
        ours = set(re.findall(r"(\w+)(?:\[\d+\])?;\toffset", text))
        common = {name for name in ours if name.startswith("common_")}
        assert ours - common <= {name for _, name, _ in numbered}


def test_each_event_and_argument_that_a_module_reads_is_listed() -> None:
    """A typed event has the fields of its message alone."""
    # Perfetto has messages of these.
    there = {f"mm_vmscan_{name}" for name in (
        "kswapd_wake", "direct_reclaim_begin", "direct_reclaim_end", "memcg_reclaim_begin",
        "memcg_reclaim_end",
    )}  # fmt: skip
    listed = FTRACE_EVENTS.read_text()
    protos = "".join(path.read_text() for path in sorted((HOME / "protos").rglob("*.proto*")))
    for module, sql in SOURCES.items():
        code = code_of(sql)
        for table in re.split(r"(?=CREATE PERFETTO)", code):
            if "FROM ftrace_event" not in table:
                continue
            where = table[table.index("FROM ftrace_event") :]
            for event in re.findall(r"'(\w+)'", where):
                assert event in there or f"/{event}\n" in listed, (module, event)
        for argument in re.findall(r"extract_arg\(arg_set_id, '(\w+)'\)", code):
            assert re.search(rf"\b{argument} = \d+;", protos), (module, argument)


# The page that tells how to send it.


def test_the_page_names_every_file() -> None:
    page = (HOME / "README.md").read_text()
    for module, found in OBJECTS.items():
        if any(made.is_public for made in found):
            assert f"'{module}': ['linux', 'memory']" in page, module
        for made in found:
            assert not made.is_public or f"`{made.name}`" in page, made.name
    for path in TRACES.iterdir():
        assert path.name in page
    for name in re.findall(r"^\| `([\w./-]+)`", page, re.MULTILINE):
        assert (HOME / name).exists() or name in SOURCES, name
