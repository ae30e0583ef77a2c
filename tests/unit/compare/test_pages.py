# SPDX-License-Identifier: Apache-2.0
"""Every way to print a comparison says what must be known before its numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from support.rundata import LEVEL, RATE, TIME, WRITES, damaged, lost, metric, side
from wbscope.compare.comparison import Comparison, Side, compare_sides
from wbscope.compare.gate import judge
from wbscope.compare.policy import Margin, Policy, Rule
from wbscope.compare.sameness import facts_text
from wbscope.render.changes import described_text, mean_text
from wbscope.render.compare import compare_text, mmtests_text
from wbscope.render.compare_html import compare_html
from wbscope.render.compare_screen import compare_json, compare_markdown
from wbscope.render.gate import evidence_text

OLD = [100e6 + 1e5 * i for i in range(6)]
SLOW = [value * 1.3 for value in OLD]
WRITTEN = [667839.0 + i for i in range(6)]


def _html(comparison: Comparison) -> str:
    return compare_html(comparison, {})


def _markdown(comparison: Comparison) -> str:
    return compare_markdown(comparison).replace("\\", "")


PAGES: list[Callable[[Comparison], str]] = [compare_text, _markdown, _html, mmtests_text]
every_page = pytest.mark.parametrize("page", PAGES)


def _across() -> Comparison:
    """nr_vmscan_write on both sides of 6.16, a run that lacks a number, one-sided metrics."""
    base = side("B", {WRITES: WRITTEN, TIME: OLD, LEVEL: [0.5] * 6}, facts={"kernel": "6.1"})
    other = side(
        "A", {WRITES: [0.0] * 6, TIME: [*SLOW[:5], None], RATE: OLD}, facts={"kernel": "7.2"}
    )
    return compare_sides(base, [other])


@every_page
def test_what_is_refused_or_incomplete_has_a_reason_and_no_p(
    page: Callable[[Comparison], str],
) -> None:
    text = " ".join(page(_across()).split())
    assert f"means another thing from Linux 6.16 on: {WRITES.name}" in text
    assert f"known in 11 of 12 runs: {TIME.name}" in text
    assert f"only A has it: {RATE.name}" in text
    assert f"only B has it: {LEVEL.name}" in text
    assert "100.00%" not in text
    assert "0.0022" not in text  # what the test would say of the refused row


def test_json_of_what_is_refused_or_incomplete_has_no_shift_and_no_p() -> None:
    rows = {row["metric"]: row for row in json.loads(compare_json(_across()))["rows"]}
    for refused in (WRITES, TIME, RATE, LEVEL):
        row = rows[refused.name]
        assert row["reason"]
        assert (row["shift"], row["p"], row["p_method"]) == (None, None, None)
    assert rows[TIME.name]["of_base"]["values"] == OLD


@every_page
def test_what_makes_numbers_doubtful_is_above_them(page: Callable[[Comparison], str]) -> None:
    base = side("B", {TIME: OLD}, **lost("7 events are lost"))
    other = side("A", {TIME: SLOW}, facts={"hz": 100}, **damaged("read up to 5"))
    other = Side("A", (base.runs[0], *other.runs[1:]))
    text = page(compare_sides(base, [other]))
    table = re.search(r"^(time\n----|### time|<table>|time\.elapsed_ns )", text, re.MULTILINE)
    assert table is not None
    first = table.start()
    for told in ("7 events are lost", "read up to 5", "is the same recording", "hz: 250"):
        assert 0 <= text.find(told) < first, told
    if page is not mmtests_text:  # which has no verdict
        counts, warnings = text.index("worse 0"), text.index("7 events are lost")
        assert text.index("A against B: ") < counts < warnings
        assert text.index("7 x lost-events") < counts


def test_mmtests_gives_no_per_cent_to_what_is_not_judged() -> None:
    lines = mmtests_text(_across()).splitlines()
    (writes,) = [line for line in lines if line.startswith("reclaim_writes")]
    assert writes.split("]")[1].split() == ["667842", "(", "0.00%)", "0", "(", "---)"]
    (elapsed,) = [line for line in lines if line.startswith("time.elapsed_ns ")]
    assert elapsed.endswith("(    ---)")


def test_mmtests_has_no_sign_where_neither_way_is_better() -> None:
    level = metric("dirty.pages_count", "neutral", "count")
    base, other = side("B", {level: WRITTEN}), side("A", {level: [v / 2 for v in WRITTEN]})
    text = mmtests_text(compare_sides(base, [other]))
    assert "* 50.00%*" in text
    assert "without a sign where neither way is better" in " ".join(text.split())
    assert "without a sign" not in mmtests_text(
        compare_sides(side("B", {TIME: OLD}), [side("A", {TIME: SLOW})])
    )


@pytest.mark.parametrize(
    ("name", "values", "printed"),
    [
        ("ops.time_ns", (68e6, 22e6), ["68.0 ms", "22.0 ms"]),
        ("ops.time_ns", (912.6e9, 605.9e9), ["912.60", "605.90"]),
        ("ops.time_ns", (31.953e9, 0.427e9), ["31.95", "0.43"]),
        ("ops.time_ns", (31.953e9, 4.27e6), ["32.0 s", "4.27 ms"]),
        ("ops.time_ns", (31.953e9, 0.0), ["31.95", "0.00"]),
        ("ops.time_ns", (0.0, 0.0), ["0.00", "0.00"]),
        ("time.elapsed_ns", (912.6e9, 605.9e9), ["913 s", "606 s"]),
    ],
)
def test_mmtests_prints_seconds_where_their_decimals_say_something(
    name: str, values: tuple[float, float], printed: list[str]
) -> None:
    base, other = (side(n, {metric(name): [v]}) for n, v in zip("BA", values, strict=True))
    text = mmtests_text(compare_sides(base, [other]))
    (line,) = [line for line in text.splitlines() if "0.00%)" in line]
    assert re.findall(r"([\d.]+(?: m?s)?) [(*]", line) == printed


@every_page
def test_shares_differ_by_points(page: Callable[[Comparison], str]) -> None:
    """-51.6 % to -34.2 % is not +17 % of anything."""
    share = metric("rates.range_error_ratio", "lower", "ratio")
    base = side("B", {share: [-0.516 + i / 1000 for i in range(6)]})
    other = side("A", {share: [-0.342 + i / 1000 for i in range(6)]})
    text = page(compare_sides(base, [other]))
    if page is not mmtests_text:
        assert "+17.4 points" in text
        assert "+17.1 to +17.7 points" in text
        assert "+17.4 %" not in text


def test_shares_differ_by_points_in_the_gate_too() -> None:
    share = metric("rates.range_error_ratio", "lower", "ratio")
    values = [-0.516, 0.1, -0.2, 0.3, -0.4, 0.25]
    base, other = side("B", {share: values}), side("A", {share: [v + 0.05 for v in values]})
    (verdict,) = judge(other, base, Policy((Rule(share.name, Margin("5%", 0.05)),)), []).verdicts
    told, plan = evidence_text(verdict)
    assert "change +5.0 points (-" in told
    assert re.search(r"would find: \+\d+\.\d points", plan)


def test_means_have_three_digits() -> None:
    rate = metric("perf.x_per_s", "higher", "1/s")
    for value, printed in (
        (353.072, "353 1/s"),
        (41.2641, "41.3 1/s"),
        (667839.5, "667,840 1/s"),
        (1.5, "1.50 1/s"),
        (0.0, "0 1/s"),
        (0.00012345, "0.000123 1/s"),
        (-41.2641, "-41.3 1/s"),
        (1.234e18, "1.23e+18 1/s"),
    ):
        assert mean_text(rate, value) == printed
    row = compare_sides(
        side("B", {rate: [353.072, 394.3361]}), [side("A", {rate: [353.072, 394.3361]})]
    ).rows[0]
    assert described_text(rate, row.sample) == "374 1/s ± 29.2 1/s"


def test_many_unknown_settings_are_one_fact() -> None:
    assert facts_text(["hz", "sysctl.vm.a", "command", "sysctl.vm.b"]) == (
        "hz, command, sysctl (2 settings)"
    )
    assert facts_text(["hz", "sysctl.vm.a"]) == "hz, sysctl.vm.a"


def test_a_face_says_what_is_sure_and_what_is_not() -> None:
    found = compare_sides(side("B", {TIME: OLD}), [side("A", {TIME: SLOW})], margin=0.075)
    text = " ".join(compare_text(found).split())
    assert "the estimate, which is not tested, is more than 7.5 %" in text
