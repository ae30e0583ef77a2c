# SPDX-License-Identifier: Apache-2.0
"""What a comparison says: metrics, differences of facts, findings that came or went."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import fisher_exact
from support.rundata import LEVEL, RATE, TIME, WRITES, glance_text, metric, run, side
from wbscope.base.errors import InputError, UsageError
from wbscope.compare.baseline import baseline_text, read_baseline
from wbscope.compare.comparison import (
    Comparison,
    Side,
    compare_sides,
    finding_changes,
    metrics_of,
    only,
)
from wbscope.compare.measure import stable_key
from wbscope.compare.ranking import looked_through
from wbscope.compare.rundata import Fact
from wbscope.compare.sameness import Difference, differences, is_before, unknown_facts
from wbscope.measure.metric import Metric, Scalars, better_of, join_name, split_name
from wbscope.render.changes import change_text, row_p

# What a comparison says, and when it says nothing.

OLD = [100, 101, 102, 103, 104, 105]
NEW = [80, 81, 82, 83, 84, 85]


def _row(one: Metric, a: list[float | None], b: list[float | None], **more: object):  # type: ignore[no-untyped-def]
    found = compare_sides(side("B", {one: b}, **more), [side("A", {one: a}, **more)])
    return found.rows[0]


def test_lower_and_higher() -> None:
    assert _row(TIME, NEW, OLD).outcome == "better"
    assert _row(TIME, OLD, NEW).outcome == "worse"
    assert _row(RATE, NEW, OLD).outcome == "worse"
    assert _row(RATE, OLD, NEW).outcome == "better"
    assert _row(LEVEL, NEW, OLD).outcome == "changed"


def test_sure_but_smaller_than_the_margin() -> None:
    slower = [value * 1.02 + 6 for value in OLD]
    row = _row(TIME, [value + 7 for value in OLD], OLD)
    assert row.outcome == "worse"
    tiny = compare_sides(
        side("B", {TIME: [100, 100.01, 100.02, 100.03, 100.04, 100.05]}),
        [side("A", {TIME: [100.1, 100.11, 100.12, 100.13, 100.14, 100.15]})],
    ).rows[0]
    assert tiny.outcome == "same"
    assert tiny.shift is not None
    assert tiny.shift.p < 0.01  # sure, and too small to matter
    assert slower


@pytest.mark.parametrize("unit", [1.0, 1e9])
def test_exactly_the_margin_is_the_same(unit: float) -> None:
    """105 is 5 % more than 100, though their logarithms are a little more apart."""
    for old, new in ((100, 105), (20, 21), (60, 63)):
        assert _row(TIME, [new * unit] * 6, [old * unit] * 6).outcome == "same"
        assert _row(TIME, [new * unit * 1.001] * 6, [old * unit] * 6).outcome == "worse"


def test_a_fall_to_zero() -> None:
    """The seed's nr_vmscan_write: 667839 and then 0. No per cent of nothing, and no crash."""
    row = _row(WRITES, [0, 0, 0, 0, 0, 0], [667839, 600000, 700000, 650000, 680000, 640000])
    assert row.outcome == "better"
    assert row.shift is not None
    assert row.shift.scale == "difference"
    assert row.shift.estimate < -600000


def test_negative_values() -> None:
    row = _row(TIME, [-9, -8, -7, -6, -5, -4], [1, 2, 3, 4, 5, 6])
    assert (row.outcome, row.shift and row.shift.scale) == ("better", "difference")


def test_one_run_each_shows_the_change_and_that_nothing_tests_it() -> None:
    found = compare_sides(side("B", {RATE: [3939.0]}), [side("A", {RATE: [23450.0]})])
    (row,) = found.rows
    assert (row.outcome, row.reason) == ("undecided", "no test possible with one run each")
    assert change_text(row) == "+495.3 %"  # 23450 / 3939 - 1
    assert row_p(row) == "-"
    (notice,) = found.warnings
    assert "no test possible with one run each" in notice.message


@pytest.mark.parametrize("n", [2, 3])
def test_two_and_three_runs_say_nothing(n: int) -> None:
    row = _row(TIME, [1.0] * n, [99.0 + i for i in range(n)])
    assert (row.outcome, row.reason) == ("undecided", "too few runs")
    assert row.shift is not None
    assert row.shift.low is None
    assert change_text(row) == "~"


def test_four_runs_apart_are_enough() -> None:
    assert _row(TIME, [1, 2, 3, 4], [11, 12, 13, 14]).outcome == "better"


def test_ties_everywhere() -> None:
    assert _row(TIME, [5] * 6, [5] * 6).outcome == "same"


def test_an_interval_that_touches_no_change_has_no_face() -> None:
    """With ties the test may be sure where the interval is not: the mark agrees with both."""
    old, new = [68, 72, 72, 72, 72, 84], [72, 84, 84, 84, 88, 88]
    row = _row(TIME, new, old)
    assert row.shift is not None
    assert row.shift.p <= 0.05
    assert row.shift.low == 1
    assert (row.outcome, row.reason) == ("undecided", "not told apart from chance")


def test_the_same_is_what_the_whole_interval_says() -> None:
    close = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0]
    assert _row(TIME, [value + 0.5 for value in close], close).outcome == "same"
    wide = [80.0, 90.0, 100.0, 110.0, 120.0, 130.0]
    assert _row(TIME, wide, wide[::-1]).outcome == "undecided"
    assert _row(TIME, [100.0] * 2, [100.0] * 2).outcome == "undecided"  # no interval


@pytest.mark.parametrize(
    ("values", "base", "margin"),
    [
        (0, 0, 0.05),  # no per cent of nothing
        (5, 5, 0.0),
        (-75, -100, 0.25),
    ],
)
def test_a_change_as_large_as_the_margin_is_within_it(
    values: float, base: float, margin: float
) -> None:
    sides = [side("A", {TIME: [values] * 6}), side("B", {TIME: [base] * 6})]
    (row,) = compare_sides(sides[1], sides[:1], margin=margin).rows
    assert row.outcome == "same"


def test_a_value_that_one_run_lacks_is_not_zero() -> None:
    row = _row(TIME, [80, 81, None, 83, 84, 85], OLD)
    assert (row.outcome, row.reason) == ("undecided", "known in 11 of 12 runs")
    assert row.sample.missing == ("A2",)
    assert len(row.sample.values) == 5


def test_a_metric_that_one_side_lacks() -> None:
    base, other = side("B", {TIME: OLD}), side("A", {RATE: NEW})
    rows = {row.metric.name: row for row in compare_sides(base, [other]).rows}
    assert rows[TIME.name].reason == "only B has it"
    assert rows[RATE.name].reason == "only A has it"
    assert rows[RATE.name].shift is None


def test_what_did_not_happen_is_zero_where_the_run_answered() -> None:
    zeros = {"reclaim_writes.pages_count": 0.0}
    base = side("B", {WRITES: [9, 8, 7, 6]}, zeros=zeros)
    answered = Side("A", tuple(run(f"a{i}", {}, zeros=zeros) for i in range(4)))
    row = compare_sides(base, [answered]).rows[0]
    assert row.sample.values == (0, 0, 0, 0)
    assert row.outcome == "better"
    silent = Side("A", tuple(run(f"a{i}", {}) for i in range(4)))
    assert compare_sides(base, [silent]).rows[0].reason == "only B has it"


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("6.12.1", "7.2.3", True),
        ("6.15", "6.16-rc1", True),
        ("6.16", "7.2", False),
        ("5.4", "6.12", False),
        (None, "7.2", True),
        (None, None, True),
    ],
)
def test_reclaim_writes_are_not_compared_across_6_16(
    old: str | None, new: str | None, refused: bool
) -> None:
    base = side("B", {WRITES: OLD}, facts={"kernel": old})
    row = compare_sides(base, [side("A", {WRITES: NEW}, facts={"kernel": new})]).rows[0]
    assert (row.outcome == "refused") == refused
    if refused:
        assert "6.16" in row.reason


def test_numbers_of_other_sql_are_not_compared() -> None:
    base = side("B", {WRITES: OLD}, definitions={"reclaim_writes": "aa"})
    other = side("A", {WRITES: NEW}, definitions={"reclaim_writes": "bb"})
    row = compare_sides(base, [other]).rows[0]
    assert (row.outcome, "SQL" in row.reason) == ("refused", True)


def test_three_sides() -> None:
    sides = [side(name, {TIME: values}) for name, values in (("b", NEW), ("c", OLD))]
    found = compare_sides(side("a", {TIME: OLD}), sides)
    assert [(row.side, row.base, row.outcome) for row in found.rows] == [
        ("b", "a", "better"),
        ("c", "a", "same"),
    ]


def test_the_same_recording_on_both_sides_is_told() -> None:
    base, other = side("B", {TIME: OLD}), side("A", {TIME: NEW})
    other = Side("A", (base.runs[0], *other.runs))
    slugs = [notice.slug for notice in compare_sides(base, [other]).warnings]
    assert slugs == ["same-recording"]


def test_families_stay_together_whatever_run_they_are_first_in() -> None:
    names = ["x.a[k=1]", "x.b", "x.a[k=2]"]
    runs = [
        run("one", {metric(names[0]): 1, metric(names[1]): 1}),
        run("two", {metric(names[2]): 1}),
    ]
    assert [one.name for one in metrics_of(runs)] == ["x.a[k=1]", "x.a[k=2]", "x.b"]


def test_a_choice_of_metrics() -> None:
    found = compare_sides(side("B", {TIME: OLD, RATE: OLD}), [side("A", {TIME: NEW, RATE: NEW})])
    assert [row.metric for row in only(found, ["time*"]).rows] == [TIME]
    assert [row.metric for row in only(found, ["elapsed_ns"]).rows] == [TIME]
    with pytest.raises(UsageError) as caught:
        only(found, ["time.elapst_ns"])
    assert (caught.value.slug, caught.value.have) == ("unknown-metric", "time.elapsed_ns")


def test_copies_on_a_side_are_one_run() -> None:
    """Two runs, three times each, are no six runs."""
    twice = [run(f"b{i}", {TIME: OLD[i % 2]}, source_id=f"s{i % 2}") for i in range(6)]
    found = compare_sides(Side("B", tuple(twice)), [side("A", {TIME: NEW})])
    (row,) = found.rows
    assert row.base_sample.values == tuple(OLD[:2])
    slugs = [notice.slug for notice in found.warnings]
    assert slugs == ["same-recording"] * 4 + ["too-few-runs"]
    assert "left out" in found.warnings[0].message
    same = run("b", {TIME: OLD[0]}, source_id="s")
    told, few = compare_sides(Side("B", (same, same)), [side("A", {TIME: NEW})]).warnings
    assert "left out" in told.message
    assert "A has 6 runs and B 1," in few.message


def test_another_unit_or_direction_is_another_thing() -> None:
    bytes_of = Metric(TIME.name, "bytes", "lower", "another", "ops.txt")
    found = compare_sides(side("B", {TIME: OLD}), [side("A", {bytes_of: NEW})])
    (row,) = found.rows
    assert (row.outcome, row.reason) == ("refused", "has another unit in other runs: bytes, ns")


def test_too_few_runs_are_told_before_any_number() -> None:
    found = compare_sides(side("B", {TIME: [100, 101, 102]}), [side("A", {TIME: [1, 2, 3]})])
    (told,) = [notice for notice in found.warnings if notice.slug == "too-few-runs"]
    assert "A has 3 runs and B 3" in told.message
    assert "least possible 0.1)" in told.message
    enough = [100.0, 101.0, 102.0, 103.0]
    found = compare_sides(side("B", {TIME: enough}), [side("A", {TIME: enough[::-1]})])
    assert found.warnings == ()


# Which facts differ, which are allowed to, and which nobody knows.


def _differing(first: dict[str, Fact], second: dict[str, Fact], *allowed: str) -> list[str]:
    runs = [run("a", {}, facts=first), run("b", {}, facts=second)]
    return [difference.fact for difference in differences(runs, allowed)]


@pytest.mark.parametrize(
    ("fact", "first", "second", "differ"),
    [
        ("hz", 250, 1000, True),
        ("hz", 250, None, False),
        ("hz", None, None, False),
        ("kernel", "6.1", "6.12", True),
        ("page_bytes", 4 << 10, 64 << 10, True),
        ("memory_bytes", 491_524_096, 486_105_088, False),
        ("memory_bytes", 512 << 20, 1024 << 20, True),
        ("swap_bytes", 0, 1 << 30, True),
        ("dirty_thresh_bytes", 71_421_952, 68_489_216, False),
        ("dirty_thresh_bytes", 71_421_952, 16 << 20, True),
        ("filesystem", "/data ext4 rw", "/data xfs rw", True),
        ("sysctl.vm.dirty_ratio", "20", "10", True),
    ],
)
def test_facts(fact: str, first: Fact, second: Fact, differ: bool) -> None:
    assert _differing({fact: first}, {fact: second}) == ([fact] if differ else [])
    assert _differing({fact: first}, {fact: second}, fact) == []


def test_one_sysctl_or_all_of_them() -> None:
    first = {"sysctl.vm.dirty_ratio": "20", "sysctl.vm.swappiness": "60"}
    second = {"sysctl.vm.dirty_ratio": "10", "sysctl.vm.swappiness": "1"}
    assert _differing(first, second, "sysctl") == []
    assert _differing(first, second, "sysctl.vm.swappiness") == ["sysctl.vm.dirty_ratio"]


def test_another_kernel_has_other_fields() -> None:
    first = {"kernel": "6.1", "fields": "aa", "other_events": "kmem:x"}
    second = {"kernel": "7.2", "fields": "bb", "other_events": ""}
    assert _differing(first, second, "kernel") == []
    assert _differing(first, second) == ["kernel", "fields", "other_events"]


def test_a_list_tells_only_what_is_not_common() -> None:
    runs = [
        run("a", {}, facts={"events": "block:x sched:y"}),
        run("b", {}, facts={"events": "block:x"}),
        run("c", {}, facts={"events": "block:x"}),
    ]
    (found,) = differences(runs)
    assert found.text() == "events: sched:y (a), no other (b, c)"


def test_unknown_is_said_and_not_taken_for_equal() -> None:
    runs = [run("a", {}, facts={"device": None, "hz": 250}), run("b", {}, facts={"device": "x"})]
    assert unknown_facts(runs) == ["device", "sysctl"]
    known = [run("a", {}, facts={"sysctl.vm.swappiness": "60"})]
    assert unknown_facts(known) == []
    half = [*known, run("b", {})]
    assert unknown_facts(half) == ["sysctl"]
    newer = [*known, run("c", {}, facts={"sysctl.vm.swappiness": "60", "sysctl.vm.new": "1"})]
    assert unknown_facts(newer) == []  # the other kernel has no vm.new


def test_an_event_that_one_kernel_lacks() -> None:
    old = run("a", {}, facts={"kernel": "6.1", "events": "x y", "absent_events": "z"})
    new = run("b", {}, facts={"kernel": "7.2", "events": "x y z", "absent_events": None})
    less = run("c", {}, facts={"kernel": "7.2", "events": "x z", "absent_events": None})
    assert [d.fact for d in differences([old, new])] == ["kernel", "events"]
    assert differences([old, new], ["kernel"]) == []
    (found,) = differences([old, less], ["kernel"])
    assert found.text() == "events: y (a), no other (c)"


def test_a_list_is_cut_short() -> None:
    words = " ".join(f"block:{number}" for number in range(20))
    found = Difference("events", {words: ("a",), "block:0": ("b",)})
    assert found.text() == "events: block:1 block:2 block:3 and 16 more (a), no other (b)"


# Findings that came or went between the sides, with the test that says so.

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
    verdict, runs, new, _, counts = text.splitlines()[:5]
    assert verdict.startswith("A against B: ")
    assert runs.startswith("A: 6 runs, B: 6 runs")
    assert new.startswith("new: A device is slower than its writers (6 of 6 runs of A, 0 of")
    assert re.match(r"worse \d+, better \d+, same \d+, undecided \d+; of 1 metric", counts)


def test_a_baseline_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    file.write_text(baseline_text(told("B", [SLOW, {}, None]).runs))
    assert [run.findings for run in read_baseline(file)] == [SLOW, {}, None]


# Names of metrics and the numbers of a run.


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({}, "q.c"),
        ({"comm": "dd"}, "q.c[comm=dd]"),
        ({"comm": "dd", "kind": "x"}, "q.c[comm=dd,kind=x]"),
        ({"kind": "direct reclaim"}, "q.c[kind=direct_reclaim]"),
        ({"comm": "a]b[c,d=e\n\x1b"}, "q.c[comm=a_b_c_d_e__]"),
        ({"comm": "a\u202eb\ud800"}, "q.c[comm=a_b_]"),
    ],
)
def test_names(keys: dict[str, str], name: str) -> None:
    assert join_name("q.c", keys) == name
    assert metric(name).name == name
    assert split_name(name)[0] == "q.c"


@pytest.mark.parametrize("name", ["", "a b", "a[", "a[]", "a[x]b", "a]"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(InputError) as caught:
        metric(name)
    assert caught.value.slug == "bad-metric-name"


@pytest.mark.parametrize(
    ("comm", "key"),
    [
        ("dd", "dd"),
        ("kworker/u4:2-flush-254:0", "kworker"),
        ("kworker/u8:1", "kworker"),
        ("jbd2/vda-8", "jbd2"),
        ("jbd2/sda1-8", "jbd2"),
        ("kswapd0", "kswapd0"),
        (None, "none"),
        ("", "none"),
        ("/x", "none"),
    ],
)
def test_tasks_have_the_same_key_in_each_run(comm: str | None, key: str) -> None:
    assert stable_key("comm", comm) == key


def test_a_number_that_is_not_finite_is_not_known() -> None:
    scalars = Scalars()
    for index, value in enumerate([1, None, math.nan, math.inf]):
        scalars.add(metric(f"m{index}"), value)
    assert [value for _, value in scalars.values()] == [1.0, None, None, None]
    with pytest.raises(InputError) as caught:
        scalars.add(metric("m0"), 2)
    assert caught.value.slug == "same-metric-twice"


def test_directions() -> None:
    assert better_of("lower", "x") == "lower"
    with pytest.raises(UsageError):
        better_of("smaller", "x")


@pytest.mark.parametrize(
    ("release", "answer"),
    [("6.15.9-arch", True), ("6.16.0", False), ("6.9", True), ("7.0", False), ("", None)],
)
def test_releases(release: str, answer: bool | None) -> None:
    assert is_before(release, "6.16") is answer
