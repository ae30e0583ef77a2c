# SPDX-License-Identifier: Apache-2.0
"""WORSE: surely worse, by less or by more than the margin is not known."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from support.rundata import RATE, TIME, metric, side
from wbscope.ci.formats import junit_xml
from wbscope.cli.exitcodes import Codes, gate_code
from wbscope.compare.gate import GateResult, judge
from wbscope.compare.policy import Margin, Policy, Rule
from wbscope.measure.metric import Metric
from wbscope.render.gate import summary_text

STEADY = [100.0, 100.1, 100.2, 100.3, 100.4, 100.5]
WORSE = [value * 1.2 for value in STEADY]
NOISY = [80.0, 90.0, 100.0, 110.0, 120.0, 130.0]


def gate(values: dict[Metric, tuple[list[float], list[float]]], **more: Any) -> GateResult:
    """Values are those of A and of B; each may be 5 % worse."""
    a = side("a", {one: pair[0] for one, pair in values.items()})
    b = side("b", {one: pair[1] for one, pair in values.items()})
    rules = tuple(Rule(one.name, Margin("5%", 0.05)) for one in values)
    return judge(a, b, Policy(rules, **more), [])


# Surely worse by some per cent: 3 % as estimated, up to 6 % by the interval.
A_LITTLE = [102.0, 102.6, 103.0, 103.4, 104.0, 106.5]
# Runs of some spread, and 7 % worse as estimated, 4 to 10 % by the interval.
SPREAD = [99.0, 100.0, 101.0, 102.0, 103.0, 104.0]
A_LOT = [value * 1.07 for value in SPREAD]


def test_surely_worse_and_not_known_by_how_much() -> None:
    (found,) = gate({TIME: (A_LITTLE, STEADY)}).verdicts
    assert (found.status, found.reasons) == (
        "WORSE",
        ("surely worse; whether by less or by more than the margin is not known",),
    )
    assert found.shift is not None
    assert found.shift.low is not None
    assert found.shift.high is not None
    assert 1 < found.shift.low < found.shift.estimate < 1.05 < found.shift.high
    (higher,) = gate({RATE: ([10_000 / value for value in A_LITTLE], STEADY)}).verdicts
    assert higher.status == "WORSE"


@pytest.mark.parametrize(("worse", "code"), [("worse", 4), ("pass", 0), ("fail", 1)])
@pytest.mark.parametrize("inconclusive", ["inconclusive", "pass", "fail"])
def test_what_worse_counts_as(worse: str, code: int, inconclusive: str) -> None:
    found = gate({TIME: (A_LITTLE, STEADY)}, worse=worse, inconclusive=inconclusive)
    assert (found.status, found.exit_code()) == ("WORSE", code)
    # Each metric counts as itself, whichever leads.
    both = gate(
        {TIME: (A_LITTLE, STEADY), RATE: (NOISY, STEADY)},
        worse=worse,
        inconclusive=inconclusive,
    )
    counted = {code, {"inconclusive": 4, "pass": 0, "fail": 1}[inconclusive]}
    assert both.status == "WORSE"
    assert both.exit_code() == next(one for one in (1, 4, 0) if one in counted)


@pytest.mark.parametrize(
    ("a", "when", "status", "reason"),
    [
        (WORSE, "estimate", "FAIL", "surely worse by more than the margin"),
        (WORSE, "interval", "FAIL", "surely worse by more than the margin"),
        (
            A_LOT,
            "estimate",
            "FAIL",
            "surely worse, and the estimate is worse by more than the margin",
        ),
        (
            A_LOT,
            "interval",
            "WORSE",
            "surely worse; whether by less or by more than the margin is not known",
        ),
    ],
)
def test_what_fails(a: list[float], when: str, status: str, reason: str) -> None:
    base = SPREAD if a is A_LOT else STEADY
    (found,) = gate({TIME: (a, base)}, fail_when=when).verdicts
    assert (found.status, found.reasons[0]) == (status, reason)


@pytest.mark.parametrize(("old", "new", "percent"), [(10, 11, 10), (100, 105, 5), (20, 21, 5)])
@pytest.mark.parametrize("unit", [1.0, 1e9, 1e-3])
@pytest.mark.parametrize("when", ["estimate", "interval"])
def test_exactly_the_margin_is_within_it(
    old: int, new: int, percent: int, unit: float, when: str
) -> None:
    """The logarithms of 11 and 10 are 1.100000000000001 times apart."""
    sides = side("a", {TIME: [new * unit] * 6}), side("b", {TIME: [old * unit] * 6})
    rule = Rule(TIME.name, Margin(f"{percent}%", percent / 100))
    (found,) = judge(*sides, Policy((rule,), fail_when=when), []).verdicts  # type: ignore[arg-type]
    assert (found.status, found.reasons) == ("PASS", ("worse, by less than the margin",))
    (more,) = gate({TIME: ([new * unit * 1.001] * 6, [new * unit / 1.05] * 6)}).verdicts
    assert more.status == "FAIL"


def test_exactly_the_margin_where_values_are_0() -> None:
    """Of differences: 1.1 - 1.0 is 0.10000000000000009."""
    sides = (side(name, {TIME: [0.0, *[one] * 9]}) for name, one in (("a", 1.1), ("b", 1.0)))
    (found,) = judge(*sides, Policy((Rule(TIME.name, Margin("10%", 0.1)),)), []).verdicts
    assert (found.shift and found.shift.scale, found.status) == ("difference", "PASS")


@pytest.mark.parametrize("when", ["estimate", "interval"])
def test_surely_by_more_is_said_at_the_level_that_many_metrics_leave(when: str) -> None:
    """Alone its interval of 95 % is beyond the margin; of ten metrics one is so by chance."""
    a_lot = [value * 1.085 for value in SPREAD]
    (alone,) = gate({TIME: (a_lot, SPREAD)}, fail_when=when).verdicts
    assert alone.reasons == ("surely worse by more than the margin",)
    dull = {metric(f"x.m{i}_ns"): (STEADY, STEADY) for i in range(9)}
    found = gate({TIME: (a_lot, SPREAD), **dull}, fail_when=when).verdicts[0]
    assert alone.shift == found.shift  # what is printed is of alpha
    assert (found.status, found.reasons[0]) == (
        ("FAIL", "surely worse, and the estimate is worse by more than the margin")
        if when == "estimate"
        else ("WORSE", "surely worse; whether by less or by more than the margin is not known")
    )
    much = gate({TIME: ([value * 1.4 for value in SPREAD], SPREAD), **dull}, fail_when=when)
    assert much.verdicts[0].reasons == ("surely worse by more than the margin",)


def test_ten_metrics_that_are_worse_by_exactly_the_margin() -> None:
    """That any of them is surely beyond it is wrong in 5 of 100 gates at most; it was in 25."""
    random = np.random.default_rng(4)
    wrong = 0
    for _ in range(60):
        drawn = 100 * np.exp(0.02 * random.standard_normal((10, 40)))
        sides = {
            metric(f"x.m{i}_ns"): ((1.05 * one[:20]).tolist(), one[20:].tolist())
            for i, one in enumerate(drawn)
        }
        wrong += gate(sides, fail_when="interval").status == "FAIL"
    assert wrong <= 7  # of 3 at most; more than 7 are there once in 50 times


def test_what_leads_is_not_what_counts() -> None:
    """A metric that is worse counts as a pass, and what decides is the one that nobody knows of."""
    both = gate({TIME: (A_LITTLE, STEADY), RATE: (NOISY, STEADY)}, worse="pass")
    assert (both.status, both.counted, both.exit_code()) == ("WORSE", "INCONCLUSIVE", 4)
    head = "WORSE (counted as inconclusive): 1 WORSE, 1 INCONCLUSIVE of 2 metrics"
    assert summary_text(both) == head
    suite = ElementTree.fromstring(junit_xml(both))
    told = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert (told["verdict"], told["counted"]) == ("WORSE", "INCONCLUSIVE")
    alone = gate({TIME: (A_LITTLE, STEADY)}, worse="pass")
    assert summary_text(alone).startswith("WORSE (counted as pass): 1 WORSE of 1")
    failed = gate({TIME: (A_LITTLE, STEADY), RATE: (NOISY, STEADY)}, inconclusive="fail")
    assert summary_text(failed).startswith("WORSE (counted as fail): ")
    refused = gate({TIME: (STEADY, STEADY)}, expect_runs=9)
    assert refused.counted == "REFUSED"


@pytest.mark.parametrize(
    ("values", "more", "code"),
    [
        # What nobody knows of one metric is no good commit, though another one leads.
        ({TIME: (A_LITTLE, STEADY), RATE: (NOISY, STEADY)}, {"inconclusive": "pass"}, 125),
        ({TIME: (A_LITTLE, STEADY), RATE: (NOISY, STEADY)}, {}, 125),
        # Nor is it a bad one where CI takes it for a fail.
        ({TIME: (A_LITTLE, STEADY), RATE: (NOISY, STEADY)}, {"inconclusive": "fail"}, 125),
        ({RATE: (NOISY, STEADY)}, {"inconclusive": "fail"}, 125),
        ({TIME: (A_LITTLE, STEADY)}, {}, 0),
        ({TIME: (WORSE, STEADY), RATE: (NOISY, STEADY)}, {"inconclusive": "pass"}, 1),
        ({TIME: (A_LITTLE, STEADY), RATE: (NOISY, STEADY)}, {"worse": "fail"}, 1),
        ({TIME: (STEADY, STEADY)}, {"expect_runs": 9}, 132),
    ],
)
def test_what_git_bisect_is_told(
    values: dict[Metric, tuple[list[float], list[float]]], more: dict[str, Any], code: int
) -> None:
    assert gate_code(gate(values, **({"worse": "pass"} | more)), Codes.bisect) == code
