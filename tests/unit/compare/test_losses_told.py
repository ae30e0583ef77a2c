# SPDX-License-Identifier: Apache-2.0
"""What keeps the numbers of a run says, before anything else, that events are missing in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden.lost_events import case as lost_events
from golden.throttle_loop import case as whole
from golden.truncated_v6 import case as truncated

Cli = Callable[..., Any]
AT = ("--commit", "c1", "--date", "2026-01-01")
KEPT = [
    ("baseline", "save", "RUN", "-o", "OUT", "--allow-damaged"),
    ("history", "add", "OUT", "RUN", *AT, "--allow-damaged"),
]


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[[Any], Path]:
    def make(case: Any) -> Path:
        folder = tmp_path / "run"
        folder.mkdir()
        case.make(folder)
        return folder

    return make


@pytest.fixture
def lost(cli: Cli, run_of: Callable[[Any], Path]) -> tuple[Path, str]:
    """A run of which the golden case counts 23 events by hand, and what a question says of it."""
    run = run_of(lost_events)
    asked = cli("query", "throttle_by_task", run, "--json").document()
    told = {one["slug"]: one["message"] for one in asked["warnings"]}["lost-events"]
    assert "23 events" in told
    return run, told


def _filled(words: tuple[str, ...], run: Path) -> list[object]:
    places = {"RUN": run, "OUT": run.parent / "out"}
    return [places.get(word, word) for word in words]


@pytest.mark.parametrize("words", KEPT, ids=lambda words: " ".join(words[:2]))
def test_lost_events_are_told(cli: Cli, lost: tuple[Path, str], words: tuple[str, ...]) -> None:
    run, told = lost
    ran = cli(*_filled(words, run))
    first, _ = ran.err.splitlines()
    assert (ran.code, ran.out, first) == (0, "", f"warning[lost-events]: run: {told}")
    (run.parent / "out").unlink()
    document = cli(*_filled(words, run), "--json").document()
    assert document["warnings"] == [{"run": "run", "slug": "lost-events", "message": told}]


@pytest.mark.parametrize("words", KEPT, ids=lambda words: " ".join(words[:2]))
def test_damage_is_told(cli: Cli, run_of: Callable[[Any], Path], words: tuple[str, ...]) -> None:
    ran = cli(*_filled(words, run_of(truncated)))
    assert (ran.code, ran.err.startswith("warning[damaged-trace]: run: ")) == (0, True)
    assert "96 of 4096 bytes" in ran.err.splitlines()[0]


def test_ingest_tells_what_questions_will(cli: Cli, lost: tuple[Path, str]) -> None:
    run, told = lost
    output = run.parent / "out.db"
    ran = cli("ingest", run, "-o", output)
    assert ran.err.splitlines()[0] == f"warning[lost-events]: {told}"
    with sqlite3.connect(output) as database:
        gaps = database.execute("SELECT count(*), sum(count) FROM lost_events").fetchone()
    assert gaps == (2, 23)
    document = cli("ingest", run, "-o", output, "--force", "--json").document()
    asked = cli("query", "throttle_by_task", output, "--json").document()
    assert document["warnings"] == [{"slug": "lost-events", "message": told}]
    assert document["warnings"][0] in asked["warnings"]


def test_ingest_tells_damage_once_and_no_part_that_was_asked_for(
    cli: Cli, run_of: Callable[[Any], Path]
) -> None:
    run = run_of(truncated)
    told = cli("ingest", run, "-o", run.parent / "out.db").err.splitlines()
    places = [line for line in told if line.startswith("warning[damaged-trace]: ")]
    # A line for each of two places, as the reader tells them.
    assert [
        (line.count("file offset 0x2000"), line.count("file offset 0x3000")) for line in places
    ] == [(1, 0), (0, 1)]
    part = cli("ingest", run, "-o", run.parent / "part.db", "--limit", "1")
    assert (part.code, "part-of-trace" in part.err) == (0, False)


def test_a_whole_run_is_kept_without_a_word(cli: Cli, run_of: Callable[[Any], Path]) -> None:
    run = run_of(whole)
    for words in KEPT:
        assert "lost-events" not in cli(*_filled(words, run)).err
        (run.parent / "out").unlink()
    assert "lost-events" not in cli("ingest", run, "-o", run.parent / "out").err


def test_a_merged_baseline_says_whose_events_are_lost(cli: Cli, lost: tuple[Path, str]) -> None:
    run, told = lost
    saved, merged = run.parent / "a.json", run.parent / "b.json"
    assert cli("baseline", "save", run, "-o", saved).code == 0
    ran = cli("baseline", "merge", saved, "-o", merged)
    first, _ = ran.err.splitlines()
    assert first == f"warning[lost-events]: run: {told}"
    document = cli("baseline", "merge", saved, "-o", merged, "--force", "--json").document()
    assert document["rows"] == [{"output": str(merged), "runs_count": 1, "metrics_count": 32}]
    assert document["warnings"] == [{"run": "run", "slug": "lost-events", "message": told}]


def test_a_history_says_what_came_of_each_run(cli: Cli, run_of: Callable[[Any], Path]) -> None:
    run = run_of(whole)
    words = ("history", "add", run.parent / "h.db", run)
    first = cli(*words, *AT, "--json").document()
    again = cli(*words, "--commit", "c2", "--date", "2026-01-02", "--json").document()
    assert [(d["added_count"], d["known_count"]) for d in (first, again)] == [(1, 0), (0, 1)]
    (row,) = again["rows"]
    assert (row["run"], row["outcome"], row["commit"]) == ("run", "known", "c1")
    assert again["commit"] == "c2"
