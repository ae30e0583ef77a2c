# SPDX-License-Identifier: Apache-2.0
"""Run.report(): the pages of `wbscope report`; how runs, results and findings show themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.runs import example
from wbscope.base.errors import QueryError, UsageError

Cli = Callable[..., Any]


@pytest.fixture
def run(database: Path) -> Iterator[wbscope.Run]:
    with wbscope.open(database) as opened:
        yield opened


def _in_python(text: str) -> str:
    """What names options names arguments there."""
    return text.replace("--full", "full=True").replace("--section NAME", "section='NAME'")


def test_it_is_what_the_command_prints(cli: Cli, run: wbscope.Run, database: Path) -> None:
    assert run.report() == _in_python(cli("report", database).out)
    assert run.report(full=True) == cli("report", database, "--full").out
    words = ("--section", "throttle_by_task", "--section", "windows", "--to", "1s", "--clock")
    assert run.report(section=["throttle_by_task", "windows"], end="1s", clock=True) == _in_python(
        cli("report", database, *words).out
    )
    assert json.loads(run.report(format="json")) == cli("report", database, "--json").json()


@pytest.mark.parametrize(("form", "end"), [("markdown", "md"), ("html", "html")])
def test_files(
    cli: Cli, run: wbscope.Run, database: Path, tmp_path: Path, form: str, end: str
) -> None:
    page = tmp_path / f"page.{end}"
    assert cli("report", database, "--section", "throttle_by_task", "-o", page).code == 0
    assert run.report(section="throttle_by_task", format=form) == page.read_text(encoding="utf-8")


def test_what_it_refuses(run: wbscope.Run) -> None:
    with pytest.raises(UsageError, match="format='pdf'") as caught:
        run.report(format="pdf")
    assert caught.value.fix == "format='text'"
    with pytest.raises(QueryError, match="throtle"):
        run.report(section="throtle")
    run.close()
    with pytest.raises(UsageError, match="is closed"):
        run.report()


def test_a_repr_is_a_line(run: wbscope.Run) -> None:
    result = run.query("throttle_by_task")
    assert repr(result) == (
        "<wbscope result 'throttle_by_task': 2 rows, 5 columns"
        " (tid, comm, bdi, pauses_count, pause_total_ns), 1 warning>"
    )
    assert repr(run) == f"<wbscope run {run.name!r}: kernel 6.1.0, 2.00 s, 3 events>"
    run.close()
    assert repr(run) == f"<wbscope run {run.name!r}: closed>"


def test_of_a_recorded_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WBSCOPE_SQL_DIR")  # the library of these tests
    with wbscope.open(example("four-equal-writers").folder) as run:
        first, *_ = run.findings()
        assert repr(first).startswith("<wbscope finding 'slow_device', warning: '4 dd waited ")
        assert first.text in " ".join(run.report().split())
        assert run.report(format="html").startswith("<!DOCTYPE html>")
