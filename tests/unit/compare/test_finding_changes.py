# SPDX-License-Identifier: Apache-2.0
"""Findings that came or went between the sides, with the test that says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import fisher_exact
from support.rundata import TIME, side
from wbscope.compare.baseline import baseline_text, read_baseline
from wbscope.compare.comparison import Comparison, Side, compare_sides, finding_changes
from wbscope.compare.ranking import looked_through
from wbscope.render.compare_screen import glance_text

SLOW = {"slow_device": "A device is slower than its writers"}


def told(name: str, findings: list[dict[str, str] | None]) -> Side:
    """A side whose runs have these findings."""
    runs = side(name, {TIME: [100.0 + i for i in range(len(findings))]}).runs
    pairs = zip(runs, findings, strict=True)
    return Side(name, tuple(replace(run, findings=found) for run, found in pairs))


def compared(a: list[dict[str, str] | None], b: list[dict[str, str] | None]) -> Comparison:
    return looked_through(compare_sides(told("B", b), [told("A", a)]))


def test_what_came_and_what_went() -> None:
    more = {"journal_commit": "The journal holds writers up"}
    found = finding_changes(compared([SLOW] * 6, [more] * 6), "A")
    assert [(one.id, one.is_new, one.runs, one.base_runs) for one in found] == [
        ("slow_device", True, 6, 0),
        ("journal_commit", False, 0, 6),
    ]
    assert all(one.q is not None and one.q < 0.01 for one in found)


def test_the_test_is_fishers() -> None:
    (one,) = finding_changes(compared([SLOW] * 6 + [{}], [{}] * 6 + [SLOW]), "A")
    # The two tails are alike here, so that doubling one is what SciPy adds up.
    assert one.q == pytest.approx(fisher_exact([[6, 1], [1, 6]]).pvalue)


@pytest.mark.parametrize("there", [0, 2, 3])
def test_what_may_be_chance_is_not_told(there: int) -> None:
    some: list[dict[str, str] | None] = [SLOW] * 3 + [{}] * 3
    base: list[dict[str, str] | None] = [SLOW] * there + [{}] * (6 - there)
    assert finding_changes(compared(some, base), "A") == []


def test_one_run_each_is_told_and_said_to_be_untested() -> None:
    found = compared([SLOW], [{}])
    (one,) = finding_changes(found, "A")
    assert one.q is None
    text = " ".join(glance_text(found).split())
    assert "no test is possible with one run each" in text
    assert (
        "new: A device is slower than its writers (1 of 1 runs of A, 0 of 1 of B; one run each, so"
        " nothing tests it)" in text
    )


def test_nothing_is_said_where_nobody_asked() -> None:
    """A baseline of an older version: no finding is not the same as none known."""
    assert finding_changes(compared([SLOW] * 6, [*[{}] * 5, None]), "A") == []


def test_a_finding_comes_before_the_numbers() -> None:
    text = glance_text(compared([SLOW] * 6, [{}] * 6))
    verdict, runs, new, counts = text.splitlines()[:4]
    assert verdict.startswith("A against B: ")
    assert runs.startswith("A: 6 runs, B: 6 runs")
    assert new.startswith("new: A device is slower than its writers (6 of 6 runs of A, 0 of")
    assert "same" in f"{counts}{text.splitlines()[6]}"


def test_a_baseline_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    file.write_text(baseline_text(told("B", [SLOW, {}, None]).runs))
    assert [run.findings for run in read_baseline(file)] == [SLOW, {}, None]
