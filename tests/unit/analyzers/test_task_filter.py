# SPDX-License-Identifier: Apache-2.0
"""--task: a tid or a pattern of names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.cli import line_of
from wbscope.base.errors import UsageError

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    ("task", "tids"),
    [
        ("dd", [11]),
        ("d*", [11]),
        ("[df]*", [11, 13]),
        ("*", [11, 13]),
        ("D*", []),
        ("13", [13]),
        (13, [13]),
        ("o'dd", []),
    ],
)
def test_choice_of_tasks(database: Path, task: str | int, tids: list[int]) -> None:
    with wbscope.open(database) as run:
        assert [row["tid"] for row in run.query("throttle_by_task", task=task)] == tids


def test_both_options_must_fit(database: Path) -> None:
    with wbscope.open(database) as run:
        assert len(run.query("throttle_by_task", tid=11, task="f*")) == 0
        assert len(run.query("throttle_by_task", tid=11, task="11")) == 1
        with pytest.raises(UsageError) as caught:
            run.query("throttle_by_task", tid=11, task="13")
    assert caught.value.slug == "two-choices"


def test_a_name_that_no_task_has_is_said(cli: Cli, database: Path) -> None:
    ran = cli("query", "throttle_by_task", database, "--task", "fo")
    assert (ran.code, ran.out) == (0, "(no rows)\n")
    line_of(ran.err, "warning[no-such-task]: --task fo ", "fio")


def test_every_filter_that_fits_nothing_is_said(cli: Cli, database: Path) -> None:
    words = ["query", "throttle_by_task", database, "--task", "dd", "--bdi", "9:9"]
    ran = cli(*words, "--json")
    assert ran.json()["rows"] == []
    (warning,) = ran.json()["warnings"][1:]
    assert warning["slug"] == "no-such-bdi"
    line_of(warning["message"], "--bdi 9:9 ", "8:0")
    tid = cli("query", "throttle_by_task", database, "--tid", "99").err
    line_of(tid, "warning[no-such-tid]: --tid 99 ", 11, 13)
    # Each fits some row, and no row fits both: there is nothing to put right.
    both = cli("query", "throttle_by_task", database, "--task", "dd", "--tid", "13").err
    assert "no-such" not in both


def test_an_empty_pattern_is_refused(cli: Cli, database: Path) -> None:
    ran = cli("query", "throttle_by_task", database, "--task", "")
    assert (ran.code, ran.err.split(":")[0]) == (2, "error[no-task]")


def test_a_query_without_tasks_says_so(cli: Cli, database: Path) -> None:
    ran = cli("query", "run_summary", database, "--task", "dd")
    assert ran.code == 2
    line_of(ran.err, "error[no-such-filter]: run_summary: ", "task")


def test_a_strange_name_is_refused(cli: Cli, database: Path) -> None:
    ran = cli("query", "throttle_by_task", database, "--task", "d\n")
    assert (ran.code, ran.err.split(":")[0]) == (2, "error[unprintable-text]")
