# SPDX-License-Identifier: Apache-2.0
"""Numbers of other tools in a gate: each keeps its unit, and none becomes bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.opsruns import ops_runs
from support.rundata import metric, side
from wbscope.compare.comparison import Side, compare_sides
from wbscope.compare.gate import judge
from wbscope.compare.policy import Policy, budget_rule
from wbscope.render.changes import described_text, median_text
from wbscope.render.compare import compare_text
from wbscope.render.compare_html import compare_html
from wbscope.render.compare_screen import compare_markdown
from wbscope.render.gate import gate_text

Cli = Callable[..., Any]


@pytest.mark.parametrize(
    ("values", "unit", "budget", "told"),
    [
        ([28500, 28400, 28456.4], "io/s", ">= 100", "median 28,456 io/s keeps >= 100"),
        ([22720] * 3, "ops/s", ">= 23000 ops/s", "median is 22,720 ops/s, the budget is >="),
        ([0.35] * 3, "ops/s", "<= 1 ops/s", "median 0.35 ops/s keeps"),
        ([24 << 10] * 3, "frames", ">= 1", "median 24,576 frames keeps"),
    ],
)
def test_a_budget_shows_what_was_counted(
    cli: Cli, tmp_path: Path, values: list[float], unit: str, budget: str, told: str
) -> None:
    runs = ops_runs(tmp_path / "runs", values, name="x", unit=unit)
    junit = tmp_path / "gate.xml"
    ran = cli("gate", runs, "--budget", f"ops.x {budget}", "--junit", junit, "--github")
    for text in (ran.out, junit.read_text()):
        assert told.replace(">", "&gt;") in text.replace(">", "&gt;")
        assert "KiB" not in text


def test_times_and_requests_of_fio() -> None:
    time, rate = metric("x.time_ns"), metric("fio.write.iops", "higher", "1/s")
    rules = (budget_rule("x.time_ns <= 6s"), budget_rule("fio.write.iops >= 100"))
    found = gate_text(judge(side("A", {time: [5e9], rate: [28456.4]}), None, Policy(rules), []))
    assert "median 5.00 s keeps <= 6s" in found
    assert "median 28,456 1/s keeps >= 100" in found


def test_large_counts_are_written_out(cli: Cli, tmp_path: Path) -> None:
    values = [1529980, 1529984, 1529985, 1529990]  # its median is no whole number
    runs = ops_runs(tmp_path / "runs", values, name="faults", unit="count")
    ran = cli("gate", runs, "--budget", "ops.faults_count <= 2000000")
    assert "median 1529984 keeps" in ran.out


def test_sides_of_different_units_are_printed_in_their_own() -> None:
    seconds, pages = (metric("ops.x", unit=unit) for unit in ("ns", "pages"))
    found = compare_sides(side("B", {pages: [12.0] * 6}), [side("A", {seconds: [5e9] * 6})])
    for text in (compare_text(found), compare_markdown(found), compare_html(found, {}, True)):
        assert "5.00 s" in text
        assert "12 pages" in text
        assert "e+09" not in text


def test_a_side_of_several_units_has_no_median() -> None:
    seconds, pages = (metric("ops.x", unit=unit) for unit in ("ns", "pages"))
    mixed = side("A", {seconds: [5e9]}).runs + side("C", {pages: [12.0]}).runs
    base = side("B", {seconds: [5e9] * 2})
    row = compare_sides(base, [Side("A", mixed)]).rows[0]
    assert (row.outcome, row.sample.units) == ("refused", ("ns", "pages"))
    assert [median_text(row.metric, one) for one in (row.base_sample, row.sample)] == [
        "5.00 s",
        "-",
    ]
    assert described_text(row.metric, row.sample) == "-"
