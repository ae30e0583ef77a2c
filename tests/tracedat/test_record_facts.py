# SPDX-License-Identifier: Apache-2.0
"""What wbscope record says of a run in meta.json: rows of table meta, and a warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import wbscope
from support.ingested import Ingested
from support.kernel_events import formats
from support.tracedat import Trace

_WHOLE = {
    "schema": "wbscope.record/1",
    "ended": "complete",
    "problems": [],
    "command_exit_code": 0,
    "command_signal": None,
    "machine": {"hz": 250},
}
_KEYS = ("record_ended", "record_problems", "command_exit_code", "command_signal", "hz")


def _run(folder: Path, text: str) -> Path:
    trace = Trace(formats("sys_exit_write"), cpus=1)
    trace.event(0, 1_000, 7, "sys_exit_write", {"ret": 1})
    run = folder / "run"
    run.mkdir()
    trace.write(run / "trace.dat")
    (run / "meta.json").write_text(text)
    return run


def _facts(ingested: Ingested) -> list[Any]:
    return [ingested.meta(key) for key in _KEYS]


def test_facts_of_a_whole_run(tmp_path: Path) -> None:
    assert _facts(Ingested(_run(tmp_path, json.dumps(_WHOLE)), tmp_path)) == [
        "complete", None, 0, None, 250,
    ]  # fmt: skip


def test_facts_of_a_run_cut_short(tmp_path: Path) -> None:
    cut = {
        "ended": "recorder killed",
        "problems": ["cpu 0: No space left", "b"],
        "command_exit_code": None,
        "command_signal": 9,
    }
    assert _facts(Ingested(_run(tmp_path, json.dumps(_WHOLE | cut)), tmp_path)) == [
        "recorder killed", "cpu 0: No space left; b", None, 9, 250,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        json.dumps(_WHOLE | {"schema": "another/1"}),
        json.dumps(
            {
                "schema": "wbscope.record/1",
                "ended": 5,
                "problems": "none",
                "command_exit_code": "0",
                "command_signal": [9],
                "machine": [250],
            }
        ),
    ],
)
def test_what_is_no_such_fact_is_left_out(tmp_path: Path, text: str) -> None:
    assert _facts(Ingested(_run(tmp_path, text), tmp_path)) == [None] * len(_KEYS)


def test_no_json_is_told(tmp_path: Path) -> None:
    ingested = Ingested(_run(tmp_path, '{"ended": '), tmp_path)
    assert _facts(ingested) == [None] * len(_KEYS)
    assert ingested.rows("SELECT status FROM sidecar_file WHERE name = 'meta.json'") == [
        ("partial",)
    ]


@pytest.mark.parametrize(
    ("facts", "slugs"),
    [
        ({}, set()),
        ({"ended": "wbscope record killed"}, {"recording-cut-short"}),
        ({"ended": "interrupted", "problems": ["x"]}, {"recording-cut-short"}),
        ({"problems": ["vm.x is not as it was"]}, {"recording-problems"}),
        ({"command_exit_code": 3}, {"command-failed"}),
        ({"command_exit_code": None, "command_signal": 11}, {"command-failed"}),
    ],
)
def test_answers_have_the_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: dict[str, Any], slugs: set[str]
) -> None:
    monkeypatch.setenv("WBSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    with wbscope.open(str(_run(tmp_path, json.dumps(_WHOLE | facts)))) as run:
        found = {notice.slug: notice.message for notice in run.query("event_counts").warnings}
    told = {"recording-cut-short", "recording-problems", "command-failed"}
    assert found.keys() & told == slugs
    for problem in facts.get("problems", []):
        assert any(problem in message for message in found.values())
