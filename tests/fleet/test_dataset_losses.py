# SPDX-License-Identifier: Apache-2.0
"""Numbers of a dataset with runs that lost events, or are damaged, say so first."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from golden.lost_events import case as lost_events
from golden.throttle_loop import case as whole
from golden.truncated_v6 import case as truncated
from support.cli import Wbscope
from support.kernel_events import formats
from support.tracedat import Trace

QUESTION = "SELECT tid, pause_total_ns FROM throttle_by_task"
LOSSY = "2 of 4 runs lost events: their numbers are lower bounds; which: "
DAMAGED = "1 of 4 runs could be read in part only; which: "
WHICH = 'wbscope fleet sql DATASET "SELECT * FROM run_warnings"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run, one of which 23 events and more are lost, one that lost nobody knows how many,
    and one that ends in the middle of a page."""
    path = tmp_path_factory.mktemp("runs")
    for name, case in (("whole", whole), ("lost", lost_events), ("cut", truncated)):
        (path / name).mkdir()
        case.make(path / name)
    trace = Trace(formats("sys_exit_write"), cpus=1, cmdlines={11: "dd"})
    trace.event(0, 10_000_000_000, 11, "sys_exit_write", {"ret": 1})
    trace.lost(0)
    trace.event(0, 10_001_000_000, 11, "sys_exit_write", {"ret": 2})
    (path / "unknown").mkdir()
    trace.write(path / "unknown/trace.dat")
    return path


@pytest.fixture(scope="module")
def dataset(wbscope: Wbscope, folder: Path) -> Path:
    names = [folder / name for name in ("whole", "lost", "cut", "unknown")]
    done = wbscope.run("fleet", "ingest", *names, "-o", folder / "dataset")
    assert done.returncode == 0, done.stderr
    return folder / "dataset"


@pytest.mark.parametrize("words", [("fleet", "ingest", "-o"), ("export", "--parquet")])
def test_a_run_that_is_added_says_what_it_lost(
    wbscope: Wbscope, folder: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    *verb, option = words
    names = [folder / name for name in ("whole", "lost", "cut")]
    told = wbscope.run(*verb, *names, option, tmp_path / "a").stderr.splitlines()
    where = [-1]
    where += [next(n for n, line in enumerate(told) if line == f"added: {name}") for name in names]
    before = {
        name.name: told[begin + 1 : end]
        for name, (begin, end) in zip(names, pairwise(where), strict=True)
    }
    assert before["lost"][0].startswith(
        f"warning[lost-events]: {names[1]}: the ring buffer overran 2"
    )
    assert before["cut"][0].startswith(f"warning[damaged-trace]: {names[2]}: ")
    assert [len(lines) for lines in before.values()] == [0, 1, 1]
    document = json.loads(wbscope.run(*verb, *names, option, tmp_path / "b", "--json").stdout)
    assert [(one["run"], one["slug"]) for one in document["warnings"]] == [
        (str(names[1]), "lost-events"),
        (str(names[2]), "damaged-trace"),
    ]
    assert [row["error"] for row in document["rows"]] == [None] * 3


def test_every_answer_says_how_many_runs_are_not_whole(wbscope: Wbscope, dataset: Path) -> None:
    told = [
        {"slug": "lost-events", "message": LOSSY + WHICH},
        {"slug": "damaged-trace", "message": DAMAGED + WHICH},
    ]
    assert wbscope.document("fleet", "sql", dataset, QUESTION)["warnings"] == told
    assert wbscope.document("fleet", "sql", dataset)["warnings"] == told
    report = wbscope.document("fleet", "report", dataset)
    assert [one for one in report["warnings"] if one in told] == told
    (head,) = report["rows"]
    assert (head["lossy_count"], head["damaged_count"]) == (2, 1)
    asked = wbscope.run("fleet", "sql", dataset, QUESTION)
    assert asked.stderr.splitlines() == [
        f"warning[{one['slug']}]: {one['message']}" for one in told
    ]
    page = wbscope.run("fleet", "report", dataset).stdout
    assert LOSSY + WHICH in " ".join(page.split())
    assert max(map(len, page.splitlines()[:8])) <= 80


def test_what_it_tells_to_ask_names_the_runs(wbscope: Wbscope, dataset: Path) -> None:
    rows = wbscope.document(
        "fleet",
        "sql",
        dataset,
        "SELECT r.name, w.slug FROM run_warnings AS w JOIN runs AS r ON r.run = w.run"
        " WHERE w.slug IN ('lost-events', 'damaged-trace') ORDER BY 1",
    )["rows"]
    assert [(row["name"], row["slug"]) for row in rows] == [
        ("cut", "damaged-trace"),
        ("lost", "lost-events"),
        ("unknown", "lost-events"),
    ]


def test_whole_runs_say_nothing(wbscope: Wbscope, folder: Path, tmp_path: Path) -> None:
    done = wbscope.run("fleet", "ingest", folder / "whole", "-o", tmp_path / "dataset", "--json")
    assert json.loads(done.stdout)["warnings"] == []
    for words in ((), (QUESTION,)):
        document = wbscope.document("fleet", "sql", tmp_path / "dataset", *words)
        assert document["warnings"] == []


def test_warnings_of_a_manifest_that_are_none(
    wbscope: Wbscope, folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "dataset"
    assert wbscope.run("fleet", "ingest", folder / "lost", "-o", place).returncode == 0
    (manifest,) = (place / "_manifest").iterdir()
    document = json.loads(manifest.read_text())
    for strange in (7, [3], [["lost-events"]], {"a": "b"}):
        manifest.write_text(json.dumps(document | {"warnings": strange}))
        done = wbscope.run("fleet", "sql", place, QUESTION)
        assert (done.returncode, "error[damaged-dataset]" in done.stderr) == (3, True), strange
