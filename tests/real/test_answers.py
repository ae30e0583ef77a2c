# SPDX-License-Identifier: Apache-2.0
"""Every answer on every run: whole, one document, readable in blocks, with each event counted."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import wbscope
import wbscope as library
from support.cli import Wbscope
from support.oracle import read_pauses
from support.report import count_events, event_systems, key_values, report_lines
from support.runs import REPOSITORY, RecordedRun, example
from support.tools import ingester_path, plan_option, run
from support.tracedat import Trace
from support.wait_events import wait_formats
from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.compare.sameness import fingerprint_of
from wbscope.library.library import load_library
from wbscope.render.text import arranged, column_texts, headings, main_rows, table_text
from wbscope.run.filters import Filters

# Wide tables go on below in blocks: each of every query on every run can be read on its own.

# Of a query that lists events one by one; the keys of all rows are looked at as values.
_MOST_ROWS = 500
_WIDTHS = (80, 60)
# Reclaims of one task may begin at the same time: the rows are numbered.
_NUMBERED = {"reclaim_dirty_state"}


@pytest.fixture(scope="module")
def answers(
    recorded: RecordedRun, wbscope: Wbscope, tmp_path_factory: pytest.TempPathFactory
) -> list[Result]:
    """What every query says of the run that it can answer."""
    database = tmp_path_factory.mktemp("blocks") / "run.db"
    made = wbscope.run("ingest", recorded.folder, "-o", database)
    assert made.returncode == 0, made.stderr
    found = []
    with library.open(database) as run:
        for query in run.library.queries():
            try:
                found.append(run.ask(query.name, Filters()).from_start())
            except EvidenceError:
                continue
    assert len(found) > 10
    return found


def test_keys_tell_rows_apart(answers: list[Result]) -> None:
    for answer in answers:
        assert answer.keys, answer.name
        if answer.name not in _NUMBERED:
            keys = set(answer.only(answer.keys).rows)
            assert len(keys) == len(set(answer.rows)), f"@keys of {answer.name}"


@pytest.mark.parametrize("width", _WIDTHS)
def test_each_block_tells_rows_apart(answers: list[Result], width: int) -> None:
    for answer in answers:
        short = replace(answer, rows=answer.rows[:_MOST_ROWS])
        made = arranged(main_rows(short)[0])
        columns = [column_texts(made, index) for index in range(len(made.columns))]
        names = headings(made)
        rows = list(zip(*columns, strict=True))
        rest = names[len(made.keys) :]
        blocks = _blocks(table_text(short, width)) if rows else []
        for block in blocks:
            heading, spans = block.heading, block.spans
            numbered = heading[0] == "#"
            keys = heading[numbered : numbered + len(made.keys)]
            assert keys == names[: len(made.keys)], f"{answer.name}: not all keys in {heading}"
            values = heading[numbered + len(made.keys) :]
            assert values == rest[: len(values)], answer.name
            place = len(names) - len(rest)
            shown = [*range(len(made.keys)), *range(place, place + len(values))]
            rest = rest[len(values) :]
            wanted = [
                (*([str(number)] if numbered else []), *(row[i] for i in shown))
                for number, row in enumerate(rows, 1)
            ]
            block.check(wanted, answer.name)
            if len(blocks) > 1:
                known = {row[: numbered + len(made.keys)] for row in wanted}
                assert len(known) >= len(set(rows)), f"{answer.name}: {heading}"
            assert spans[-1][1] <= width, f"{answer.name}: a block is {spans[-1][1]} wide"
        assert not rest or not rows, f"{answer.name}: {rest} are in no block"


class _Block:
    """One block of a table, as it was printed."""

    def __init__(self, lines: list[str]) -> None:
        ruler = next(i for i, line in enumerate(lines) if re.fullmatch(r"-+(?:  -+)*", line))
        self.spans = [match.span() for match in re.finditer("-+", lines[ruler])]
        self.heading = [
            " ".join(words) for words in zip(*map(self._cells, lines[:ruler]), strict=True)
        ]
        self.heading = [" ".join(words.split()) for words in self.heading]
        self._lines = lines[ruler + 1 :]

    def check(self, rows: list[tuple[str, ...]], name: str) -> None:
        """The rows are there with all of their texts, folded or not."""
        lines = iter(self._lines)
        for row in rows:
            wanted = [_squeezed(text) for text in row]
            found = [""] * len(row)
            while found != wanted:
                line = next(lines, None)
                assert line is not None, f"{name}: {found} of {wanted}"
                cells = self._cells(line)
                found = [
                    before + _squeezed(cell) for before, cell in zip(found, cells, strict=True)
                ]
                assert all(w.startswith(f) for w, f in zip(wanted, found, strict=True)), (
                    f"{name}: {found}"
                )
        assert next(lines, None) is None, name

    def _cells(self, line: str) -> list[str]:
        return [line[start:end].strip() for start, end in self.spans]


def _blocks(text: str) -> list[_Block]:
    footer = re.compile(r"^\d+ more rows? (?:is|are) about .*\n", re.MULTILINE)
    return [_Block(part.rstrip("\n").split("\n")) for part in footer.sub("", text).split("\n\n")]


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


# Every event of every run is counted, as many times as trace-cmd prints it.


def _expected(recorded: RecordedRun) -> tuple[Counter[str], dict[str, set[str]]]:
    return count_events(report_lines(recorded.trace)), event_systems(recorded.trace)


def test_counts_equal_the_lines_of_the_report(wbscope: Wbscope, recorded: RecordedRun) -> None:
    lines, systems = _expected(recorded)
    rows = wbscope.query("event_counts", recorded.folder)
    counted: Counter[str] = Counter()
    for row in rows:
        system, _, name = row["event"].partition(":")
        assert system in systems[name], row
        assert 0 <= row["loaded_count"] <= row["count"], row
        counted[name] += row["count"]
    assert counted == lines
    assert len({row["event"] for row in rows}) == len(rows)


def test_all_events_are_loaded_when_asked_for(
    wbscope: Wbscope, recorded: RecordedRun, tmp_path: Path
) -> None:
    database = tmp_path / "run.db"
    result = wbscope.run("ingest", recorded.folder, "--all", "-o", database)
    assert result.returncode == 0, result.stderr
    lines = count_events(report_lines(recorded.trace))
    rows = wbscope.query("event_counts", database)
    assert {row["event"]: row["loaded_count"] for row in rows} == {
        row["event"]: row["count"] for row in rows
    }
    tables = wbscope.sql(database, "SELECT event, count, table_name FROM event_counts")
    held = wbscope.sql(
        database,
        " UNION ALL ".join(
            f"SELECT '{row['event']}' AS event, COUNT(*) AS count FROM \"{row['table_name']}\""
            for row in tables
        ),
    )
    assert {row["event"]: row["count"] for row in held} == {
        row["event"]: row["count"] for row in tables
    }
    assert sum(row["count"] for row in tables) == lines.total()


def test_meta_totals_agree_with_the_counts(wbscope: Wbscope, recorded: RecordedRun) -> None:
    meta = {
        row["key"]: row["value"]
        for row in wbscope.sql(recorded.folder, "SELECT key, value FROM meta")
    }
    rows = wbscope.query("event_counts", recorded.folder)
    assert int(meta["events_count"]) == sum(row["count"] for row in rows)
    assert int(meta["loaded_count"]) == sum(row["loaded_count"] for row in rows)
    assert int(meta["page_bytes"]) == recorded.page_bytes
    assert (int(meta["damaged"]), int(meta["lost_events_count"] or 0)) == (0, 0)
    first, last = recorded.events[0].ts, recorded.events[-1].ts
    assert int(meta["first_ts"]) <= first <= last <= int(meta["last_ts"])


# The fact `fields` of a run is about its kernel, not about the wbscope that read it.


def test_fields_are_those_of_an_older_ingest(tmp_path: Path) -> None:
    """A baseline that was kept is not another because ingest tells more of a record."""
    given = json.loads(load_library().load_plan())
    newer = {"repeats", "context"}
    assert newer <= set().union(*given.values())
    older = {
        event: {key: value for key, value in told.items() if key not in newer}
        for event, told in given.items()
    }
    facts = []
    for number, plan in enumerate((given, older)):
        database = tmp_path / f"{number}.db"
        trace = example("four-equal-writers").trace
        command = [ingester_path(), "sqlite", trace, "-o", database, "--events", "*"]
        done = run([*command, *plan_option(database, plan)])
        assert done.returncode == 0, done.stderr
        with wbscope.open(database) as opened:
            facts.append(fingerprint_of(opened)["fields"])
    assert facts[0] == facts[1] is not None


# With --json, stdout is one document, and stderr has nothing that is in it.

_RUN = REPOSITORY / "examples/gate/runs/before-2"
_POLICY = '[metrics."throttle_summary.pauses_count"]\nmargin = "5%"\n'


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("explain", "RUN", "-o", "FILE"), True),
        (("report", "RUN", "-o", "FILE"), True),
        (("check", "RUN", "-o", "FILE"), True),
        (("gate", "RUN", "--policy", "POLICY", "--self-check", "-o", "FILE"), True),
        (("gate", "RUN", "--policy", "POLICY", "--self-check"), False),
        (("export", "RUN", "--parquet", "FOLDER"), False),
        (("fleet", "ingest", "RUN", "-o", "FOLDER"), False),
    ],
    ids=lambda one: " ".join(one[:2]) if isinstance(one, tuple) else "",
)
def test_nothing_else_is_said(
    wbscope: Wbscope, tmp_path: Path, words: tuple[str, ...], file: bool
) -> None:
    policy, written = tmp_path / "gate.toml", tmp_path / "out.json"
    policy.write_text(_POLICY)
    places = {"RUN": _RUN, "POLICY": policy, "FILE": written, "FOLDER": tmp_path / "dataset"}
    done = wbscope.run(*(places.get(word, word) for word in words), "--json")
    assert done.stderr == ""
    text = written.read_text() if file else done.stdout
    assert json.loads(text)["schema"].startswith("wbscope.")
    assert done.stdout == ("" if file else text)


# Kernel 7.2 records wb_setpoint and wb_dirty in another order; the answers have the same shape.


def test_raw_columns_keep_the_kernel_s_names(wbscope: Wbscope) -> None:
    for name, present, absent in (
        ("four-equal-writers", "bdi_dirty", "wb_dirty"),
        ("four-equal-writers-7.2", "wb_dirty", "bdi_dirty"),
    ):
        folder = example(name).folder
        rows = wbscope.sql(
            folder, "SELECT field FROM event_field WHERE event = 'writeback:balance_dirty_pages'"
        )
        fields = {row["field"] for row in rows}
        assert present in fields
        assert absent not in fields


def test_both_kernels_answer_with_the_same_columns(wbscope: Wbscope) -> None:
    old, new = example("four-equal-writers").folder, example("four-equal-writers-7.2").folder
    for query in (
        "throttle_by_task",
        "throttle_windows",
        "fairness",
        "dirty_position",
        "bdi_bandwidth",
        "throughput",
    ):
        first, second = wbscope.query(query, old), wbscope.query(query, new)
        assert first
        assert second
        assert list(first[0]) == list(second[0])


def test_values_of_the_renamed_fields(wbscope: Wbscope) -> None:
    recorded = example("four-equal-writers-7.2")
    texts = [
        key_values(event.text) for event in recorded.events if event.name == "balance_dirty_pages"
    ]
    rows = wbscope.sql(
        recorded.folder,
        "SELECT wb_setpoint, wb_dirty, pause FROM ev_balance_dirty_pages ORDER BY ts",
    )
    assert len(rows) == len(texts) == len(read_pauses(recorded.events))
    names = ("wb_setpoint", "wb_dirty", "pause")
    assert sorted([row[name] for name in names] for row in rows) == sorted(
        [int(text[name]) for name in names] for text in texts
    )


# A recording without an event: no all-clear, no comparison, and no budget that holds.


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Its formats say that throttling was recorded, and nothing happened."""
    run = tmp_path / "empty"
    run.mkdir()
    Trace(wait_formats("balance_dirty_pages"), cmdlines={7: "dd"}).write(run / "trace.dat")
    return run


@pytest.fixture
def some(tmp_path: Path) -> Path:
    run = tmp_path / "some"
    run.mkdir()
    trace = Trace(wait_formats("balance_dirty_pages"), cmdlines={7: "dd"})
    values = {"bdi": "8:0", "cgroup_ino": 1, "pause": 0, "period": 1, "dirtied": 32}
    trace.event(0, 1_000, 7, "balance_dirty_pages", values)
    trace.write(run / "trace.dat")
    return run


def test_it_is_no_all_clear(wbscope: Wbscope, empty: Path, some: Path) -> None:
    document = wbscope.document("explain", empty)
    (row,) = document["rows"]
    assert (row["id"], row["severity"], document["is_whole"]) == ("no_verdict", "severe", False)
    assert row["text"] == "No verdict, no event was recorded: there is nothing to judge."
    assert row["title"] == "No event was recorded"
    assert row["advice"]["settings"] == []
    assert [one["slug"] for one in document["warnings"]].count("no-events") == 1
    (state,) = wbscope.query("trace_state", empty)
    assert state["matters"] == 1
    one_event = wbscope.document("explain", some)
    assert one_event["is_whole"]
    assert "no-events" not in [one["slug"] for one in one_event["warnings"]]


def test_a_database_of_an_empty_part_is_none_either(wbscope: Wbscope, some: Path) -> None:
    """Such as an earlier wbscope made of `ingest --from 500s`."""
    database = some / "run.db"
    assert wbscope.run("ingest", some, "-o", database).returncode == 0
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE meta SET value = 0 WHERE key = 'events_count'")
    assert wbscope.query("findings", database)[0]["id"] == "no_verdict"


@pytest.mark.parametrize("side", ["first", "base"])
def test_it_is_comparable_with_nothing(
    wbscope: Wbscope, empty: Path, some: Path, side: str, tmp_path: Path
) -> None:
    runs = (empty, some) if side == "first" else (some, empty)
    policy = tmp_path / "gate.toml"
    policy.write_text('[metrics."throttle_summary.pauses_count"]\nmargin = "5%"\n')
    for words in (
        ("compare", runs[0], "--against", runs[1]),
        ("compare", runs[0], "--against", runs[1], "--allow-damaged"),
        ("gate", "--policy", policy, runs[0], "--against", runs[1]),
        ("gate", *runs, "--budget", "throttle_summary.pause_p99_ns <= 100ms"),
        ("gate", empty, "--budget", "throttle_summary.pause_p99_ns <= 100ms"),
        ("baseline", "save", *runs, "-o", tmp_path / "base.json"),
    ):
        done = wbscope.run(*words)
        assert done.returncode == 4, (words, done.stdout, done.stderr)
        assert done.stderr.startswith("error[run-without-events]: "), done.stderr
    assert not (tmp_path / "base.json").exists()
