# SPDX-License-Identifier: Apache-2.0
"""A few runs that stall: no PASS, and the gate says which they are."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.opsruns import ops_runs
from support.rundata import RATE, TIME, metric, side
from wbscope.compare.gate import Verdict, judge
from wbscope.compare.policy import Margin, Policy, Rule
from wbscope.measure.metric import Metric
from wbscope.render.gate import gate_markdown, gate_text

Cli = Callable[..., Any]


def steady(seed: int, n: int = 20) -> list[float]:
    chosen = random.Random(seed)
    return [chosen.gauss(10, 0.1) for _ in range(n)]


def stalled(seed: int, *runs: int, by: float = 10) -> list[float]:
    """These runs, counted from 1, take ten times as long."""
    return [value * by if place in runs else value for place, value in enumerate(steady(seed), 1)]


def verdict(now: list[float], then: list[float], one: Metric = TIME, **more: Any) -> Verdict:
    policy = Policy((Rule(one.name, Margin("5%", 0.05)),), **more)
    return judge(side("A", {one: now}), side("B", {one: then}), policy, []).verdicts[0]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The case of the review: 20 runs of 10 s, and 20 of which 3 take 100 s."""
    monkeypatch.chdir(tmp_path)
    ops_runs(tmp_path / "old", steady(1))
    ops_runs(tmp_path / "new", stalled(2, 8, 16, 19), later=100)
    (tmp_path / "p.toml").write_text('[metrics."ops.stall_ns"]\nmargin = "5%"\n')
    return tmp_path


def test_three_of_twenty_runs_stall(cli: Cli, folders: Path) -> None:
    words = ["gate", "--policy", "p.toml", "new", "--against", "old"]
    ran = cli(*words, "--junit", "gate.xml")
    text = " ".join(ran.out.split())
    assert ran.code == 4
    assert "3 of 20 runs are far outside of what B has (at worst 10." in text
    assert "new/8 (" in text
    assert "new/16 (" in text
    assert "new/19 (" in text
    assert "look first at the runs that are far outside" in text
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert "new/8 (" in (folders / "gate.xml").read_text()
    (row,) = json.loads(cli(*words, "--json").out)["rows"]
    assert (row["status"], row["far_runs"]) == ("INCONCLUSIVE", ["new/8", "new/16", "new/19"])
    assert row["p_far"] == pytest.approx(0.115, abs=0.001)
    assert cli("gate", "--policy", "p.toml", "old", "--against", "new").code == 0


def test_a_share_that_is_no_chance_is_a_fail() -> None:
    found = verdict(stalled(2, 1, 5, 8, 16, 19), steady(1))
    assert found.status == "FAIL"
    told = "5 of 20 runs are far outside of most of B, of which 0 of 20 are"
    assert found.reasons[0].startswith(f"{told} (Fisher's exact test, p 0.024): A0 (")
    assert len(found.far_runs) == 5
    assert verdict(stalled(2, 1, 5, 8, 16), steady(1)).status == "INCONCLUSIVE"


def test_a_base_that_stalls_as_often_passes() -> None:
    assert verdict(stalled(2, 8, 16, 19), stalled(1, 3, 4, by=11)).status == "PASS"
    assert verdict(stalled(2, 8, by=20), stalled(1, 3, 4)).status == "INCONCLUSIVE"


def test_a_rate_that_breaks_down() -> None:
    then = steady(1)
    for by, status in ((0.1, "INCONCLUSIVE"), (10, "PASS")):  # ten times faster is no fault
        found = verdict(stalled(2, 8, by=by), then, RATE)
        assert (found.status, bool(found.far_runs)) == (status, status != "PASS")


def test_on_the_scale_of_differences() -> None:
    """Values of 0 have no ratio; 70 % of the runs wait for nothing."""
    then = [0.0, 0, 0, 0, 0, 0, 0, 1, 2, 3]
    assert verdict(then[::-1], then).far_runs == ()
    found = verdict([*then[:-1], 300.0], then)
    assert (found.status, found.far_runs) == ("INCONCLUSIVE", ("A9",))


def test_a_regression_of_all_runs_names_none() -> None:
    found = verdict([value * 1.5 for value in steady(2)], steady(1))
    assert (found.status, found.reasons) == ("FAIL", ("surely worse by more than the margin",))


def test_runs_within_the_margin_are_not_far() -> None:
    quiet = [10 + place / 1000 for place in range(20)]  # 40 spreads are less than the margin
    assert verdict([value * 1.04 for value in quiet], quiet).status == "PASS"


def test_one_tick_of_a_coarse_clock_is_not_far() -> None:
    """Whole seconds: 12.4 and 12.6 s are 12 and 13. 20 gates of 100 lost their PASS by that."""
    clock = [12e9] * 20
    assert verdict([*clock[:-1], 13e9], clock).status == "PASS"
    assert verdict([*clock[:-1], 11e9], clock, RATE).status == "PASS"
    for worse, one in ((14e9, TIME), (24e9, TIME), (10e9, RATE), (1e9, RATE)):
        found = verdict([*clock[:-1], worse], clock, one)
        assert (found.status, found.far_runs) == ("INCONCLUSIVE", ("A19",))
    # Also where values are 0, and where a tick is 4 ms.
    zeros = [0.0] * 12
    assert verdict([*zeros[:-2], 4.0, 8.0], zeros).far_runs == ("A11",)
    assert verdict([*zeros[:-1], 1.0], zeros).far_runs == ()
    # What is counted has no ticks but 1.
    assert verdict([*zeros[:-1], 100.0], zeros, metric("x.late_count", unit="count")).far_runs


def test_many_runs_are_named_in_part() -> None:
    now = [value * 10 if place < 12 else value for place, value in enumerate(steady(2, 60))]
    found = verdict(now, steady(1, 60))
    assert found.status == "FAIL"
    assert found.reasons[0].endswith("and 2 more")
    assert len(found.far_runs) == 12


def test_few_runs_decide_nothing() -> None:
    assert verdict([100.0, 10, 10], [10.0, 10, 10]).far_runs == ()


def test_every_page_has_them() -> None:
    policy = Policy((Rule(TIME.name, Margin("5%", 0.05)),))
    sides = side("A", {TIME: stalled(2, 8)}), side("B", {TIME: steady(1)})
    result = judge(*sides, policy, [])
    for text in (gate_text(result), gate_markdown(result)):
        assert "A7 (" in text
