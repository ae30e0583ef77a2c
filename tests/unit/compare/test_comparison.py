# SPDX-License-Identifier: Apache-2.0
"""What a comparison says, and when it says nothing."""

from __future__ import annotations

import pytest
from support.rundata import LEVEL, RATE, TIME, WRITES, metric, run, side
from wbscope.base.errors import UsageError
from wbscope.compare.comparison import Side, compare_sides, metrics_of, only
from wbscope.measure.metric import Metric
from wbscope.render.changes import change_text, row_p

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
