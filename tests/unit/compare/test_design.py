# SPDX-License-Identifier: Apache-2.0
"""What the gate says of the runs themselves: how many, which stall, when to look no more."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wbscope
from support.noise import (
    IGNORE,
    POLICY,
    TIME,
    WIDE,
    Layout,
    Machine,
    Noise,
    counts,
    judged,
    real,
    sequential,
    side_of,
)
from support.opsruns import ops_runs
from support.rundata import RATE, lost, metric, run
from support.rundata import TIME as RUN_TIME
from support.rundata import side as run_side
from wbscope.base.errors import UsageError
from wbscope.ci.formats import expected_text
from wbscope.compare.comparison import Side
from wbscope.compare.gate import GateResult, Verdict, judge
from wbscope.compare.pass_rate import Look, look_sizes, pass_rate, until_decided
from wbscope.compare.policy import Budget, Margin, Policy, Rule
from wbscope.measure.metric import Metric
from wbscope.render.blocks import blocks_markdown
from wbscope.render.gate import gate_blocks, gate_text
from wbscope.stats.repeated import fisher
from wbscope.stats.tests import look_levels

# What the gate says of sessions, beyond the test: single runs, what can fail, what to plan.

Cli = Callable[..., Any]
STEPS = (0.0, 0.4, -0.3, 0.2, -0.1, 0.5)


def _at(level: float, times: int = 1) -> list[float]:
    return [level + step for step in STEPS * times]


def test_runs_that_the_design_leaves_out_fail_nothing() -> None:
    """Session "we" is of A only, and half as slow again."""
    base = side_of("B", [("mo", _at(100, 2))])
    side = side_of("A", [("mo", _at(100.02)), ("we", _at(150))])
    assert judged(side, base, IGNORE).status == "FAIL"
    found = judged(side, base)
    assert (found.status, found.verdicts[0].far_runs) == ("PASS", ())
    assert [one.slug for one in found.warnings] == ["other-session"]


def test_a_slow_session_that_one_side_has_more_runs_of() -> None:
    base = side_of("B", [("mo", _at(100, 2)), ("tu", [130.0])])
    side = side_of("A", [("mo", _at(100.02)[:4]), ("tu", _at(130.02, 2))])
    assert judged(side, base, IGNORE).status == "FAIL"
    assert judged(side, base).verdicts[0].far_runs == ()
    assert judged(side, base).status != "FAIL"


def test_a_run_that_stalls_is_seen_against_its_session() -> None:
    """30 % above the other runs of Monday is no more than what a run of Tuesday takes."""
    base = side_of("B", [("mo", _at(100)), ("tu", _at(130))])
    side = side_of("A", [("mo", [*_at(100.02)[:5], 131.0]), ("tu", _at(130.02))])
    assert judged(side, base, IGNORE).verdicts[0].far_runs == ()
    (verdict,) = judged(side, base).verdicts
    assert (verdict.status, verdict.far_runs) == ("INCONCLUSIVE", ("Amo5",))
    told = "1 of 12 runs are outliers against B in their sessions: Amo5 ("
    assert verdict.reasons[0].startswith(told)


def test_a_share_of_stalls_in_each_session_is_a_fail() -> None:
    """Fisher's test within the sessions: each has as many runs of both sides."""
    stalls = [900.0, 950.0, 990.0]
    base = side_of("B", [("mo", _at(100)), ("tu", _at(130))])
    side = side_of("A", [("mo", [*_at(99.5)[:3], *stalls]), ("tu", [*_at(129.5)[:3], *stalls])])
    (verdict,) = judged(side, base).verdicts
    assert verdict.status == "FAIL"
    told = "6 of 12 runs are outliers against most of B in their sessions, of which 0 of 12 are"
    assert any(one.startswith(told) for one in verdict.reasons)
    # 3 of 6 stalls, all on one side, twice: each by chance is fisher(3, 6, 0, 6).
    assert verdict.p_far == pytest.approx(fisher(3, 6, 0, 6) ** 2)


def test_a_session_that_is_off_fails_nothing_by_its_runs() -> None:
    """Of three sessions one is 12 % off, and runs of a session vary by some tenths."""
    base = side_of("B", [("su", _at(100, 2))])
    side = side_of("A", [("mo", _at(100, 2)), ("tu", _at(99, 2)), ("we", _at(112, 2))])
    (verdict,) = judged(side, base).verdicts
    assert verdict.status == "INCONCLUSIVE"
    assert verdict.shift is not None
    assert verdict.shift.p > 0.3
    assert len(verdict.far_runs) == 12
    assert judged(side, base, IGNORE).status == "FAIL"


@pytest.mark.parametrize("layout", [(3, 1, 10), (5, 1, 5)], ids=str)
def test_sessions_apart_stay_within_alpha_where_runs_hardly_vary(
    layout: tuple[int, int, int],
) -> None:
    """Of 80 tries with alpha 0.05, more than 10 fail once in 1,500 times; it was a third."""
    found = counts(Layout("", apart=layout), Machine(0.05, noise=0.003), POLICY, 0.0, 80)
    assert found["FAIL"] <= 10


def test_unbalanced_sessions_stay_within_alpha() -> None:
    random = np.random.default_rng(8)
    failed = 0
    for _ in range(80):
        sides = []
        for name, (few, many) in (("A", (4, 10)), ("B", (10, 1))):
            slow = 150 * (1 + 0.01 * random.standard_normal(many))
            fast = 100 * (1 + 0.01 * random.standard_normal(few))
            sides.append(side_of(name, [("mo", fast.tolist()), ("tu", slow.tolist())]))
        failed += judged(*sides).status == "FAIL"
    assert failed <= 10


def _pairs(sessions: int, change: float) -> Iterator[Side]:
    """One run of each side in each session."""
    for name, factor, seed in (("A", 1 + change, 1), ("B", 1.0, 2)):
        random = np.random.default_rng(seed)
        runs = [(f"s{n}", [factor * (100 + 9 * n + random.normal())]) for n in range(sessions)]
        yield side_of(name, runs)


def test_five_pairs_can_never_fail() -> None:
    """2^5 orders: the least p is 2 / 32, whatever 5 + 5 runs of one session could give."""
    asked = replace(POLICY, inconclusive="pass")
    found = judged(*_pairs(5, 1.0), asked)
    assert (found.status, found.exit_code()) == ("INCONCLUSIVE", 0)
    (told,) = [one.message for one in found.warnings if one.slug == "cannot-fail"]
    assert told.startswith("5 + 5 runs, compared within 5 sessions, cannot fail 1 metrics")
    (verdict,) = found.verdicts
    assert verdict.shift is not None
    assert verdict.shift.p == 0.0625
    assert verdict.detectable is None
    assert not [one for one in judged(*_pairs(6, 1.0), asked).warnings if one.slug[0] == "c"]
    assert judged(*_pairs(6, 1.0), asked).status == "FAIL"


def test_six_pairs_fail_one_metric_and_not_two() -> None:
    more = [replace(TIME, name=f"x.m{n}_ns") for n in range(2)]
    sides = []
    for side in _pairs(6, 1.0):
        runs = [
            replace(run(one.name, dict.fromkeys(more, one.value(TIME.name))), session=one.session)
            for one in side.runs
        ]
        sides.append(Side(side.name, tuple(runs)))
    rules = tuple(replace(POLICY.rules[0], pattern=one.name) for one in more)
    found = judge(*sides, replace(POLICY, rules=rules), [])
    (told,) = [one.message for one in found.warnings if one.slug == "too-many-metrics"]
    assert "compared within 6 sessions, can fail at most 1 metrics" in told


def test_the_plan_of_pairs_knows_of_no_drift() -> None:
    """Sessions are 9 % apart, runs of a session vary by 1 %: that is what pairs need to beat."""
    (paired,) = judged(*_pairs(8, 0.04)).verdicts
    (mixed,) = judged(*_pairs(8, 0.04), IGNORE).verdicts
    assert paired.detectable is not None
    assert paired.runs_needed is not None
    assert paired.detectable < 0.09
    assert mixed.detectable is None or mixed.detectable > 0.2
    assert paired.runs_needed <= 8
    assert mixed.runs_needed is None or mixed.runs_needed > 50


def test_no_number_of_runs_makes_up_for_sessions(cli: Cli, tmp_path: Path) -> None:
    levels = {"mo": 100.0, "tu": 107.0, "we": 96.0}
    base = side_of("B", [(name, _at(level)) for name, level in levels.items()])
    side = side_of("A", [("fr", _at(104))])
    found = judged(side, base)
    (verdict,) = found.verdicts
    assert (verdict.status, verdict.runs_needed, verdict.detectable) == ("INCONCLUSIVE", None, None)
    assert "more sessions decide, not more runs" in gate_text(found)
    told = expected_text(found)
    assert told is not None
    assert told.endswith("; more sessions decide, not more runs: or record both sides in turns")
    assert "runs a side" not in told
    (tmp_path / "p.toml").write_text('[metrics."ops.stall_ns"]\nmargin = "5%"\n')
    words: list[object] = ["gate", "--policy", tmp_path / "p.toml", tmp_path / "fr", "--against"]
    for name, level in {**levels, "fr": 104.0}.items():
        ops_runs(tmp_path / name, _at(level), later=round(level) * 60)
        for folder in (tmp_path / name).iterdir():
            (folder / "session").write_text(f"{name}\n")
        words += [] if name == "fr" else [tmp_path / name]
    ran = cli(*words, "--github")
    assert ran.code == 4
    hint = told.rpartition("; ")[2]
    assert hint in ran.err
    assert "runs a side" not in ran.err


def _hyperfine(path: Path, commands: dict[str, Sequence[float]]) -> Path:
    results = [{"command": name, "times": list(times)} for name, times in commands.items()]
    path.write_text(json.dumps({"results": results}))
    return path


def test_each_command_of_a_file_has_its_own_runs_and_sessions(cli: Cli, tmp_path: Path) -> None:
    """Other numbers of runs in each session, and a command that one session does not have."""
    for day, level in (("mo", 1.0), ("tu", 1.05), ("we", 1.02)):
        commands = {"a": _at(level * 100), "b": _at(level * 200, 2)}
        if day == "tu":
            commands["c"] = commands.pop("b")
        file = _hyperfine(tmp_path / f"{day}.json", commands)
        saved = tmp_path / f"{day}.base.json"
        assert cli("baseline", "save", file, "-o", saved, "--session", day).code == 0
    merged = tmp_path / "all.json"
    cli("baseline", "merge", tmp_path / "mo.base.json", tmp_path / "tu.base.json", "-o", merged)
    policy = tmp_path / "p.toml"
    policy.write_text(
        "".join(f'[metrics."hyperfine.time_ns[command={c}]"]\nmargin = "10%"\n' for c in "ab")
    )
    words = ("gate", "--policy", policy, tmp_path / "we.base.json", "--baseline", merged)
    assert cli(*words).code in (0, 4)
    found = wbscope.gate(tmp_path / "we.base.json", merged, policy=policy)
    methods = [one.shift.method for one in found.verdicts if one.shift is not None]
    # Of a: three sessions.  Of b: one on each side, so its runs are what is tested.
    assert methods == ["sessions", "exact-ties"]


def test_what_is_expected_of_runs_in_turns() -> None:
    """Sessions are 30 % apart: that falls out, so unchanged code passes as if they were not."""
    layout, machine = Layout("", together=(2, 6)), Machine(0.3, noise=0.04)
    random = np.random.default_rng(21)
    rates, apart = [], []
    for _ in range(5):
        base = layout.sides(random, machine, 0.0)[1]
        found = pass_rate(base, POLICY, [], in_turns=True)
        assert found is not None
        rates.append(found.passed / found.trials)
        other = pass_rate(base, POLICY, [])
        apart.append(other.passed / other.trials if other else 1.0)
    assert found.told().endswith("(two sides of 12 runs, in turns in 2 sessions)")
    assert np.mean(rates) == pytest.approx(real(machine, layout, 100), abs=0.2)
    assert max(apart) < 0.2
    # Of one run a session nobody knows what runs differ by.
    assert pass_rate(next(_pairs(8, 0.0)), POLICY, [], in_turns=True) is None


def test_an_open_job_of_runs_in_turns_is_told_of_such_runs() -> None:
    """The first seed of which the verdict is open."""
    layout, machine = Layout("", together=(2, 5)), Machine(0.3, noise=0.05)
    results = (
        judged(*layout.sides(np.random.default_rng(seed), machine, 0.0)) for seed in range(50)
    )
    found = next(one for one in results if one.status == "INCONCLUSIVE")
    told = expected_text(found)
    assert told is not None
    assert "two sides of 10 runs, in turns in 2 sessions" in told
    (verdict,) = found.verdicts
    needed = verdict.runs_needed
    assert needed is not None
    assert 10 < needed < 60
    assert needed % 5 == 0
    assert told.endswith(f"; with {needed} runs a side each metric would pass 8 of 10 times")
    assert f"with {needed} runs a side in sessions like these" in " ".join(gate_text(found).split())


# A few runs that stall: no PASS, and the gate says which they are.


def steady(seed: int, n: int = 20) -> list[float]:
    chosen = random.Random(seed)
    return [chosen.gauss(10, 0.1) for _ in range(n)]


def stalled(seed: int, *runs: int, by: float = 10) -> list[float]:
    """These runs, counted from 1, take ten times as long."""
    return [value * by if place in runs else value for place, value in enumerate(steady(seed), 1)]


def verdict(now: list[float], then: list[float], one: Metric = RUN_TIME, **more: Any) -> Verdict:
    policy = Policy((Rule(one.name, Margin("5%", 0.05)),), **more)
    return judge(run_side("A", {one: now}), run_side("B", {one: then}), policy, []).verdicts[0]


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
    assert "3 of 20 runs are outliers against B (at worst 10." in text
    assert "new/8 (" in text
    assert "new/16 (" in text
    assert "new/19 (" in text
    assert "look at the outlier runs first" in text
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert "new/8 (" in (folders / "gate.xml").read_text()
    (row,) = json.loads(cli(*words, "--json").out)["rows"]
    assert (row["status"], row["far_runs"]) == ("INCONCLUSIVE", ["new/8", "new/16", "new/19"])
    assert row["p_far"] == pytest.approx(0.115, abs=0.001)
    assert cli("gate", "--policy", "p.toml", "old", "--against", "new").code == 0


def test_a_share_that_is_no_chance_is_a_fail() -> None:
    found = verdict(stalled(2, 1, 5, 8, 16, 19), steady(1))
    assert found.status == "FAIL"
    told = "5 of 20 runs are outliers against most of B, of which 0 of 20 are"
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
    assert (found.status, found.reasons) == (
        "FAIL",
        ("significantly worse by more than the margin",),
    )


def test_runs_within_the_margin_are_not_far() -> None:
    quiet = [10 + place / 1000 for place in range(20)]  # 40 spreads are less than the margin
    assert verdict([value * 1.04 for value in quiet], quiet).status == "PASS"


def test_one_tick_of_a_coarse_clock_is_not_far() -> None:
    """Whole seconds: 12.4 and 12.6 s are 12 and 13. 20 gates of 100 lost their PASS by that."""
    clock = [12e9] * 20
    assert verdict([*clock[:-1], 13e9], clock).status == "PASS"
    assert verdict([*clock[:-1], 11e9], clock, RATE).status == "PASS"
    for worse, one in ((14e9, RUN_TIME), (24e9, RUN_TIME), (10e9, RATE), (1e9, RATE)):
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
    policy = Policy((Rule(RUN_TIME.name, Margin("5%", 0.05)),))
    sides = run_side("A", {RUN_TIME: stalled(2, 8)}), run_side("B", {RUN_TIME: steady(1)})
    result = judge(*sides, policy, [])
    for text in (gate_text(result), blocks_markdown(gate_blocks(result))):
        assert "A7 (" in text


# Looks at more and more runs: when they end, and that they err in alpha together.


def _decided(
    a: Sequence[float], b: Sequence[float], most: int, policy: Policy = POLICY, **more: object
) -> tuple[GateResult, list[Look]]:
    asked: list[int] = []
    looks: list[Look] = []

    def make(runs: int) -> tuple[Side, Side]:
        asked.append(runs)
        return run_side("A", {TIME: a[:runs]}, **more), run_side("B", {TIME: b[:runs]})

    found = until_decided(make, policy, [], most, looks.append)
    assert asked == [look.runs for look in looks]
    return found, looks


def test_sizes_of_looks() -> None:
    assert look_sizes(24) == [6, 9, 14, 24]
    assert look_sizes(30) == [6, 9, 14, 21, 30]
    assert look_sizes(6) == [6]
    assert look_sizes(7) == [7]
    assert look_sizes(3) == [3]


def test_a_clear_case_ends_at_the_first_look() -> None:
    near = [100 + step / 10 for step in range(30)]
    found, looks = _decided([value * 1.5 for value in near], near, 24)
    assert (found.status, [look.runs for look in looks]) == ("FAIL", [6])
    found, looks = _decided([value + 0.05 for value in near], near, 24)
    assert (found.status, [look.runs for look in looks]) == ("PASS", [6])
    assert looks[0].level == pytest.approx(look_levels(0.05, [6, 9, 14, 24])[0])
    assert found.policy == POLICY
    (told,) = [one.message for one in found.warnings if one.slug == "sequential"]
    assert told.startswith("1 of 4 planned looks were made, with 6 runs of each side, at the level")
    assert told.endswith("together alpha 0.05")


def test_what_nobody_knows_goes_on_to_the_end() -> None:
    wild = [100.0, 180, 60, 140, 90, 200, 70, 110] * 3
    found, looks = _decided(wild, wild[::-1], 24)
    assert (found.status, [look.runs for look in looks]) == ("INCONCLUSIVE", [6, 9, 14, 24])


def test_a_wrong_name_is_told_before_the_first_run() -> None:
    def make(runs: int) -> tuple[Side, Side]:
        raise AssertionError(runs)

    wrong = Policy((Rule("throughput.no_such_ns", budget=Budget("<=", "1s")),))
    with pytest.raises(UsageError, match=r"throughput\.no_such_ns: is no metric"):
        until_decided(make, wrong, [TIME.name, "throughput.written_bytes_per_s"], 24)


def test_what_is_refused_and_budgets_need_no_second_look() -> None:
    near = [100.0 + step for step in range(24)]
    found, looks = _decided(near, near, 24, **lost())
    assert (found.status, len(looks)) == ("REFUSED", 1)
    found, looks = _decided(near, near, 24, Policy((Rule(TIME.name, budget=Budget("<=", "1s")),)))
    assert (found.status, len(looks), found.warnings) == ("PASS", 1, ())
    # So many runs are what the looks are for, not what the policy expects of a baseline.
    found, looks = _decided([1.01 * one for one in near], near, 6, replace(POLICY, expect_runs=10))
    assert found.status != "REFUSED"


def test_alpha_is_kept() -> None:
    """Of 300 unchanged pairs more than 26 fail once in 1,000 times at 5 %."""
    found, _ = sequential(WIDE, 0.0, 24, 300)
    assert found["FAIL"] <= 26


def test_a_change_takes_fewer_runs_than_all() -> None:
    found, runs = sequential(Noise("normal", 0.04), 0.12, 24, 100)
    assert found["FAIL"] >= 95
    assert runs < 12
