# SPDX-License-Identifier: Apache-2.0
"""What a trace does not have: because it did not happen, or because it was not recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.archives import unpacked
from support.cli import Wbscope
from support.report import report_lines
from support.runs import REPOSITORY

_SAMPLES = unpacked("data") / "traces"
_RUN = REPOSITORY / "examples/four-equal-writers/trace.dat"


def _ids(wbscope: Wbscope, source: Path) -> set[str]:
    return {str(row["id"]) for row in wbscope.query("findings", source)}


@pytest.mark.parametrize(
    "name",
    [
        "6.1-amd64-v7-extract",
        "6.1-amd64-v7-function",
        "6.1-amd64-v7-graph",
        "7.2-amd64-v7-function-args",
        "6.1-s390x-v7-graph",
    ],
)
def test_formats_of_all_events_tell_nothing(wbscope: Wbscope, name: str) -> None:
    """trace-cmd writes them where it records none by name."""
    found = wbscope.run("query", "throttle_by_task", _SAMPLES / name)
    assert found.returncode == 4
    assert "missing-event" in found.stderr
    ids = _ids(wbscope, _SAMPLES / name)
    assert "not_recorded" in ids
    assert "nothing_wrong" not in ids


@pytest.mark.parametrize("name", ["6.1-amd64-v7-all", "7.2-amd64-v7-all"])
def test_all_events_were_on(wbscope: Wbscope, name: str) -> None:
    """trace-cmd record -e all: throttling would be there."""
    lines = report_lines(_SAMPLES / name / "trace.dat")
    assert not any("balance_dirty_pages" in line for line in lines)
    assert wbscope.query("throttle_by_task", _SAMPLES / name) == []
    ids = _ids(wbscope, _SAMPLES / name)
    assert "not_recorded" not in ids
    assert "nothing_wrong" in ids


def test_events_left_out_were_not_recorded(wbscope: Wbscope, tmp_path: Path) -> None:
    """Of what convert writes: else 53 s of waits were none."""
    for name, made in {
        "convert.pftrace": ("convert", _RUN, "-e", "block:*"),
        "timeline.pftrace": ("timeline", _RUN, "--events", "block:*"),
    }.items():
        part = tmp_path / name
        assert wbscope.run(*made, "-o", part).returncode == 0
        ids = _ids(wbscope, part)
        assert "not_recorded" in ids
        assert "nothing_wrong" not in ids
        budget = "throttle_summary.slept_total_ns <= 1ms"
        assert wbscope.run("gate", part, "--budget", budget).returncode == 4


def test_a_part_says_that_it_is_one(wbscope: Wbscope, tmp_path: Path) -> None:
    for name, options in {"part": ("--time-range", "0s..300ms"), "whole": ()}.items():
        made = tmp_path / f"{name}.pftrace"
        assert wbscope.run("convert", _RUN, *options, "-o", made).returncode == 0
        document = wbscope.document("query", "event_counts", made)
        slugs = {warning["slug"] for warning in document["warnings"]}
        assert ("part-of-trace" in slugs) == (name == "part")


def test_a_text_does_not_tell_what_was_on(wbscope: Wbscope, tmp_path: Path) -> None:
    text = tmp_path / "trace.txt"
    text.write_text("dd-1 [000] 8.000001: mm_vmscan_kswapd_sleep: nid=0\n")
    (one,) = (row for row in wbscope.query("findings", text) if row["id"] == "not_recorded")
    assert one["confidence"] == "inferred"
    assert "or nobody was" in str(one["text"])


def test_a_moment_does_not_tell_much(wbscope: Wbscope) -> None:
    rows = wbscope.query("findings", _SAMPLES / "7.2-amd64-v7-all")
    (one,) = (row for row in rows if row["id"] == "nothing_wrong")
    assert (one["severity"], one["confidence"]) == ("note", "cannot tell")
    assert str(one["text"]).startswith("No all-clear in so short a time: ")
    assert "; the trace is shorter than 2 s" in str(one["text"])
