# SPDX-License-Identifier: Apache-2.0
"""What the UI tells and arranges at start: the verdict, who was throttled, workspaces."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.cli import Wbscope
from support.perfetto_engine import PerfettoEngine
from support.runs import REPOSITORY, example
from wbscope.base.span import parse_span
from wbscope.explain.verdict import verdict_of
from wbscope.run.run import Run, open_run
from wbscope.viewer.link import Command, find_ui
from wbscope.viewer.startup import (
    DEFAULT_WORKSPACE,
    file_summary,
    literals,
    shortened,
    startup_commands,
    summary_commands,
    workspace_commands,
    workspaces_of,
)

EXAMPLES = sorted(path.parent.name for path in REPOSITORY.glob("examples/*/trace.dat"))
MOST_BYTES = 10_000
"""Of a link: browsers and servers between take 8 KiB at least in one line, and it is none there."""


@pytest.fixture(params=EXAMPLES)
def run(request: pytest.FixtureRequest, wbscope: Wbscope, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", wbscope.env["WBSCOPE_CACHE_DIR"])
    with open_run(example(request.param).folder) as opened:
        yield opened


def rows_of(command: Command) -> list[dict[str, str]]:
    """What a table command gives, by another engine of SQLite."""
    connection = sqlite3.connect(":memory:")
    cursor = connection.execute(command.arguments[0])
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    connection.close()
    return rows


def test_the_verdict_is_that_of_explain(run: Run) -> None:
    verdict = verdict_of(run)
    *_, last = summary_commands(run)
    rows = rows_of(last)
    assert list(rows[0]) == ["severity", "lost", "verdict"]
    assert rows[0]["verdict"].startswith(verdict.title)
    texts = [row["verdict"].removesuffix(" (inferred)") for row in rows]
    told = [one.text for one in verdict.sentences()]
    assert sorted(text for text in texts if text in told) == sorted(told)
    advice = verdict.first.advice if verdict.first else None
    to_do = [row["verdict"] for row in rows if row["severity"] == "to do"]
    assert [text[: len(advice.text)] for text in to_do] == [advice.text] if advice else not to_do
    # What is wrong stands above what is so.
    severities = [row["severity"] for row in rows]
    assert severities == sorted(severities, key=lambda s: (s == "", s == "fact"))


def test_who_was_throttled(run: Run) -> None:
    asked = run.query("throttle_by_task").records()
    first, *rest = summary_commands(run)
    assert len(rest) == (1 if asked else 0)
    if not asked:
        return
    rows = rows_of(first)
    assert {row["tid"] for row in rows} <= {str(row["tid"]) for row in asked}
    assert not any("_ns" in name or "_bytes" in name for name in rows[0])
    assert rows[0]["slept total"].endswith(("ms", "us", " s"))


def test_a_part_of_the_time_has_its_own_verdict() -> None:
    with open_run(example("four-equal-writers").folder) as run:
        part = parse_span("1s", "2s", None)
        whole, piece = (rows_of(summary_commands(run, span)[-1]) for span in (parse_span(), part))
    assert whole != piece


def test_a_link_stays_short(run: Run) -> None:
    link = find_ui().link("http://127.0.0.1:9001/" + "x" * 60, startup_commands(run))
    assert len(link) < MOST_BYTES


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "it's",
        "'; DROP TABLE x; --",
        "/* */ --",
        'a "b" %_',
        "ä\u2028",
        "\x00\x1b[31m",
        "\ud800",
    ],
)
def test_texts_are_what_they_were(cell: str) -> None:
    command = Command("RunQueryAndShowTab", (literals(('a"b', "c"), [(cell, cell)]), "T"))
    assert rows_of(command) == [{'a"b': shortened(cell), "c": shortened(cell)}]
    assert find_ui().link("http://h/t", [command]).isascii()


def test_a_long_text_is_cut() -> None:
    assert len(shortened("x" * 10_000)) < 500


def waits(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
    return [
        {"comm": "dd", "tid": 10 + i, "kind": kind, "cause": cause, "total_ns": 10**9}
        for i, (kind, cause) in enumerate(pairs)
    ]


@pytest.mark.parametrize(
    ("rows", "titles"),
    [
        ([], []),
        (waits(("throttle", "over the limit")), ["Throttling"]),
        (waits(("memcg reclaim", "unknown")), ["Reclaim"]),
        (waits(("blocked outside throttling", "journal commit")), ["Sync"]),
        (waits(("blocked outside throttling", "unknown")), []),
        (waits(("block queue", "device latency")), []),
        (waits(("fsync", "unknown"), ("throttle", "x")), ["Throttling", "Sync"]),
        ([{**row, "total_ns": 0} for row in waits(("throttle", "x"))], []),
    ],
)
def test_workspaces_are_those_the_run_has_waits_for(
    rows: list[dict[str, Any]], titles: list[str]
) -> None:
    assert [one.title for one in workspaces_of(rows)] == titles
    commands = workspace_commands(rows)
    switched = [command.arguments[0] for command in commands if command.name == "SwitchWorkspace"]
    assert switched == [title for one in titles for title in (one, DEFAULT_WORKSPACE)]
    copied = [command for command in commands if command.name.startswith("CopyTracks")]
    assert [command.arguments[1] for command in copied] == titles


def test_a_file_tells_its_own_verdict(wbscope: Wbscope, tmp_path: Path) -> None:
    """Opened without its run: from the slices in it."""
    folder = example("four-equal-writers").folder
    done = wbscope.run("timeline", folder, "-o", tmp_path / "x.pftrace", "--no-events")
    assert done.returncode == 0, done.stderr
    findings = wbscope.query("findings", folder)
    slept = wbscope.query("stalls_by_task", folder)
    with PerfettoEngine() as engine:
        engine.load(tmp_path / "x.pftrace")
        columns, rows = engine.table(file_summary().arguments[0])
    assert columns == ["severity", "lost", "verdict"]
    told = [row for row in rows if row[0] == "warning"]
    assert told
    assert [row[2] for row in told] == [row["text"] for row in findings][: len(told)]
    tasks = [row[2] for row in rows if row[0] == "task"]
    throttled = {row["tid"] for row in slept if row["kind"] == "throttle"}
    assert {int(text.split(" was ")[0].split()[-1]) for text in tasks} == throttled


def test_a_file_of_somebody_else(wbscope: Wbscope, tmp_path: Path) -> None:
    trace = example("four-equal-writers").folder / "trace.dat"
    done = wbscope.run("convert", trace, "-o", tmp_path / "x.pftrace")
    assert done.returncode == 0, done.stderr
    with PerfettoEngine() as engine:
        engine.load(tmp_path / "x.pftrace")
        _, rows = engine.table(file_summary().arguments[0])
    assert rows == [("", "", "this file has no verdict: open its run with wbscope open")]
