# SPDX-License-Identifier: Apache-2.0
"""Filters on a recorded run: --task and --tid leave exactly the rows of these tasks."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import wbscope
from support.runs import REPOSITORY, example
from wbscope.library.library import load_library

_QUERIES = [
    query.name
    for query in load_library(REPOSITORY / "sql").queries()
    if {"tid", "comm"} <= {column.name for column in query.columns}
]
# Its events are of patches of 2011; golden/waits_of_2011 has it.
_ANSWERED = [name for name in _QUERIES if name != "completion_waits"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[wbscope.Run]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        with wbscope.open(_deep()) as opened:
            yield opened


def _deep() -> Path:
    return example("deep").folder


def test_every_query_of_tasks_takes_both_filters() -> None:
    library = load_library(REPOSITORY / "sql")
    assert all({"tid", "task"} <= set(library.query(name).filters) for name in _QUERIES)
    assert len(_QUERIES) > 7


@pytest.mark.parametrize("name", _ANSWERED)
@pytest.mark.parametrize("pattern", ["dd", "[jk]*", "*/*"])
def test_rows_of_a_name(run: wbscope.Run, name: str, pattern: str) -> None:
    whole = run.query(name)
    wanted = [row for row in whole if fnmatchcase(row["comm"], pattern)]
    assert run.query(name, task=pattern).records() == wanted


@pytest.mark.parametrize("name", _ANSWERED)
def test_rows_of_a_thread(run: wbscope.Run, name: str) -> None:
    whole = run.query(name)
    wanted = [row for row in whole if row["tid"] == 174]
    assert run.query(name, task="174").records() == wanted
    assert run.query(name, tid=174).records() == wanted


def test_types_of_all_columns_are_those_of_the_headers(run: wbscope.Run) -> None:
    kinds = {"INTEGER": int, "REAL": float, "TEXT": str}
    checked = 0
    for query in run.library.queries():
        # Its value column is a number or a word, as the fact is; or there are no such events.
        if query.name in ("completion_waits", "run_summary", "server_latency"):
            continue
        result = run.query(query.name)
        for row in result.rows:
            for column, value in zip(result.fields, row, strict=True):
                assert value is None or type(value) is kinds[column.type], (query.name, column)
                checked += value is not None
    assert checked > 1000
