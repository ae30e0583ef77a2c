# SPDX-License-Identifier: Apache-2.0
"""A part of the time that reaches behind the run, or begins before it: that of the run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.runs import example

RUN = example("four-equal-writers").folder
# Each has rates or shares of the time of interest, or windows.
_QUERIES = (
    "write_bursts",
    "block_latency",
    "throttle_windows",
    "throughput",
    "throughput_by_device",
    "fairness",
    "dirty_position",
)


@pytest.mark.parametrize("name", _QUERIES)
@pytest.mark.parametrize(
    "part", [("--to", "60s"), ("--to", "1000h"), ("--from", "@0s"), ("--time-range", "@5s..@90s")]
)
def test_rows_are_those_of_the_run(wbscope: Wbscope, name: str, part: tuple[str, ...]) -> None:
    document = wbscope.document("query", name, RUN, *part)
    assert document["rows"] == wbscope.document("query", name, RUN)["rows"]
    told = [one["message"] for one in document["warnings"] if one["slug"] == "outside-run"]
    assert len(told) == (2 if ".." in part[1] else 1)


def test_velocities_of_reclaim_are_those_of_the_run(wbscope: Wbscope) -> None:
    run = example("reclaim-writes").folder
    asked = wbscope.document("query", "reclaim_efficiency", run, "--to", "60s")["rows"]
    assert asked == wbscope.document("query", "reclaim_efficiency", run)["rows"]


def test_a_part_that_begins_in_the_run_ends_with_it(wbscope: Wbscope) -> None:
    """The windows, too: there were empty ones up to 60 s."""
    asked = wbscope.document("query", "throughput", RUN, "--from", "12s", "--to", "60s")["rows"]
    assert asked == wbscope.document("query", "throughput", RUN, "--from", "12s")["rows"]


@pytest.mark.parametrize("verb", ["explain", "report"])
def test_it_is_told_once_and_what_the_part_is(wbscope: Wbscope, verb: str, tmp_path: Path) -> None:
    text = wbscope.run(verb, RUN, "--to", "60s").stdout
    assert re.search(r"only from 0\.000000 s\s+to 17\.474001 s of the run", text)
    told = "warning[outside-run]: --to 60s is after the last event, which is 17.474001 s after the"
    assert " ".join(text.split()).count(told) == 1
    assert wbscope.document(verb, RUN, "--to", "60s")["part_ns"][1] < 17_500_000_000


def test_a_part_inside_of_the_run_has_no_such_warning(wbscope: Wbscope) -> None:
    for part in (("--from", "0s"), ("--to", "17.474s"), ("--from", "2s", "--to", "6s")):
        document = wbscope.document("query", "throughput", RUN, *part)
        assert "outside-run" not in {one["slug"] for one in document["warnings"]}
