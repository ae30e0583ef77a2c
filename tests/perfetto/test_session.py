# SPDX-License-Identifier: Apache-2.0
"""`query --engine perfetto`: the answers of the engine sqlite, for the same run folder."""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope, check_error
from support.parity import assert_same
from support.runs import REPOSITORY
from support.twins import Twin
from wbscope.base.errors import InputError, UsageError, WbscopeError
from wbscope.base.result import Result
from wbscope.library.library import load_library
from wbscope.perfetto.trace_processor import wasm_engine
from wbscope.run.run import Run, open_run

EXAMPLES = sorted(path.parent.name for path in REPOSITORY.glob("examples/*/trace.dat"))
QUERIES = [query.name for query in load_library(REPOSITORY / "sql").queries()]
# Query, filters, and whether they leave any row. The run has one bdi and one cgroup.
FILTERS: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("throughput", {"window": "500ms"}, True),
    ("throttle_windows", {"window": "1s", "start": "2s", "end": "5s"}, True),
    ("throttle_by_task", {"tid": 123}, True),
    ("throttle_by_task", {"bdi": "8:0"}, False),
    ("stalls", {"tid": 123, "end": "4s"}, True),
    ("stalls", {"task": "d?"}, True),
    ("throttle_by_task", {"task": "no such"}, False),
    ("fairness", {"cgroup": 23}, False),
    ("fairness", {"window": "2s"}, True),
    ("dirty_position", {"window": "3s", "start": "1s"}, True),
    ("stalls", {"task": "[!d]*"}, True),
    ("throttle_by_task", {"task": "nobody"}, False),
    ("throttle_windows", {"task": "d[^d]"}, False),
)


@pytest.fixture(scope="session", autouse=True)
def the_engine_of_the_tests(engine_is_there: None) -> Iterator[None]:
    """Every machine tests with the same engine, whatever else is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wbscope.perfetto.trace_processor.find_engine", wasm_engine)
        yield


@dataclass(frozen=True)
class Both:
    """A run folder with a Perfetto trace, open in both engines."""

    twin: Twin
    perfetto: Run
    sqlite: Run


@pytest.fixture(scope="module", params=EXAMPLES)
def both(request: pytest.FixtureRequest, twin_of: Callable[[str], Twin]) -> Iterator[Both]:
    twin = twin_of(request.param)
    with open_run(twin.folder, engine="perfetto") as ours, open_run(twin.perfetto_db) as theirs:
        yield Both(twin, ours, theirs)


@pytest.fixture(scope="module")
def few(twin_of: Callable[[str], Twin]) -> Iterator[Both]:
    twin = twin_of("four-equal-writers")
    with open_run(twin.folder, engine="perfetto") as ours, open_run(twin.perfetto_db) as theirs:
        yield Both(twin, ours, theirs)


def told(error: WbscopeError, run: Run) -> tuple[Any, ...]:
    """All that an error says, without the name of the run."""
    texts = (error.subject, error.message, error.have, error.fix)
    return (error.slug, *(text and text.replace(run.name, "RUN") for text in texts))


def answer(run: Run, name: str, **filters: Any) -> Result | tuple[Any, ...]:
    try:
        return run.query(name, **filters)
    except WbscopeError as error:
        return told(error, run)


def assert_equal(ours: Result | tuple[Any, ...], theirs: Result | tuple[Any, ...]) -> None:
    if isinstance(ours, tuple) or isinstance(theirs, tuple):
        assert ours == theirs
        return
    assert ours.columns == theirs.columns
    assert ours.units == theirs.units
    assert ours.warnings == theirs.warnings
    assert_same(ours.columns, ours.rows, theirs.rows)


@pytest.mark.parametrize("name", QUERIES)
def test_query(both: Both, name: str) -> None:
    ours, theirs = answer(both.perfetto, name), answer(both.sqlite, name)
    if name == "findings":  # with commands that name the run
        assert isinstance(ours, Result)
        assert isinstance(theirs, Result)
        assert ours.rows
        ours, theirs = without_name(ours, both.perfetto), without_name(theirs, both.sqlite)
    assert_equal(ours, theirs)


def without_name(result: Result, run: Run) -> Result:
    place = result.columns.index("evidence")
    rows = [
        (*row[:place], row[place] and row[place].replace(run.name, "RUN"), *row[place + 1 :])
        for row in result.rows
    ]
    return replace(result, rows=rows)


@pytest.mark.parametrize(("name", "filters", "any_row"), FILTERS)
def test_filters(few: Both, name: str, filters: dict[str, Any], any_row: bool) -> None:
    ours = few.perfetto.query(name, **filters)
    assert_equal(ours, few.sqlite.query(name, **filters))
    assert bool(ours.rows) == any_row
    assert ours.rows != few.perfetto.query(name).rows


def test_a_filter_that_does_not_fit(few: Both) -> None:
    ours = answer(few.perfetto, "throughput", tid=1)
    assert isinstance(ours, tuple)
    assert ours[0] == "no-such-filter"
    assert ours == answer(few.sqlite, "throughput", tid=1)


def test_the_command(few: Both, wbscope: Wbscope) -> None:
    """The whole document, but for the name that the command was given."""
    words = ("throttle_by_task", "--from", "1s", "--to", "6s")
    ours = wbscope.document("query", *words, few.twin.folder, "--engine", "perfetto")
    theirs = wbscope.document("query", *words, few.twin.perfetto_db)
    ours.pop("run"), theirs.pop("run")
    assert ours == theirs
    assert len(ours["rows"]) == 4


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_other_runs_are_refused(few: Both, wbscope: Wbscope, kind: str) -> None:
    run = few.twin.recorded if kind == "folder" else few.twin.recorded_db
    done = wbscope.run("query", "fairness", run, "--engine", "perfetto")
    assert done.returncode == 2
    assert done.stdout == ""
    check_error(done.stderr, "not-for-engine", run, fix=f"wbscope report {run}")


def test_a_packed_trace_is_asked_without_the_engine(
    few: Both, wbscope: Wbscope, tmp_path: Path
) -> None:
    """Trace processor unpacks gz and zip; the fix reads any other."""
    trace = few.twin.trace
    packed = tmp_path / "run.pftrace.xz"
    packed.write_bytes(lzma.compress(trace.read_bytes(), preset=0))
    done = wbscope.run("query", "fairness", packed, "--engine", "perfetto")
    assert (done.returncode, done.stdout) == (2, "")
    check_error(done.stderr, "not-for-engine", packed, fix=f"wbscope report {packed} ")
    assert wbscope.run("report", packed).returncode == 0
    packed.with_suffix(".gz").write_bytes(gzip.compress(trace.read_bytes(), 1))
    words = ("query", "fairness", packed.with_suffix(".gz"), "--engine", "perfetto")
    assert wbscope.run(*words).returncode == 0


def test_what_is_no_trace(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pftrace"
    wrong.write_bytes(b"\n\0\1\2 no packet" * 30)
    with pytest.raises(InputError) as told:
        open_run(wrong, engine="perfetto")
    assert told.value.slug == "perfetto-refused"
    assert os.listdir(tmp_path) == ["wrong.pftrace"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("sql", ("SELECT 1",)),
        ("tables", ()),
        ("columns", ("meta",)),
        ("texts", (["fio.json"],)),
    ],
)
def test_what_only_a_database_can_answer(few: Both, what: str, words: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError) as told:
        getattr(few.perfetto, what)(*words)
    assert (told.value.slug, told.value.subject) == ("sqlite-only", what)
    assert getattr(few.sqlite, what)(*words) is not None


def test_a_cut_trace_is_said_to_be_damaged(few: Both, tmp_path: Path) -> None:
    trace = tmp_path / "cut.pftrace"
    shutil.copy(few.twin.trace, trace)
    os.truncate(trace, trace.stat().st_size - 5)
    with open_run(trace, engine="perfetto") as run:
        assert "damaged-trace" in {notice.slug for notice in run.query("fairness").warnings}
