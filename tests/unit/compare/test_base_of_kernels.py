# SPDX-License-Identifier: Apache-2.0
"""A base of several kernels: judged where the policy lets kernels differ, else refused."""

from __future__ import annotations

from dataclasses import replace

from support.rundata import TIME, WRITES, run
from wbscope.compare.comparison import Side
from wbscope.compare.gate import judge
from wbscope.compare.policy import Margin, Policy, Rule

FIVE = Margin("5%", 0.05)


def _side(name: str, kernels: list[str], level: float = 100.0) -> Side:
    runs = [
        run(f"{name}{n}", {TIME: level + n}, facts={"kernel": kernel, "fields": kernel})
        for n, kernel in enumerate(kernels)
    ]
    return Side(name, tuple(runs))


NEW = _side("A", ["6.12"] * 6)
OLD = _side("B", ["6.1"] * 3 + ["6.6"] * 3)


def _refused(a: Side, b: Side, *differs: str, itself: bool = False) -> list[str]:
    policy = Policy((Rule(TIME.name, FIVE),), differs=differs)
    return [refusal.slug for refusal in judge(a, b, policy, [], itself=itself).refusals]


def test_it_is_judged_where_kernels_may_differ() -> None:
    policy = Policy((Rule(TIME.name, FIVE),), differs=("kernel",))
    assert judge(NEW, OLD, policy, []).status == "PASS"
    slow = _side("A", ["6.12"] * 6, 150.0)
    assert judge(slow, OLD, policy, []).status == "FAIL"
    assert _refused(OLD, replace(OLD, name="B"), "kernel", itself=True) == []


def test_it_is_refused_otherwise() -> None:
    assert "mixed-side" in _refused(NEW, OLD)
    assert "mixed-side" in _refused(NEW, OLD, "hz")


def test_what_is_judged_has_one_kernel() -> None:
    assert set(_refused(OLD, NEW, "kernel")) == {"mixed-side"}


def test_nothing_else_of_the_base_may_differ() -> None:
    first = replace(OLD.runs[0], fingerprint={**OLD.runs[0].fingerprint, "hz": 100})
    assert _refused(NEW, Side("B", (first, *OLD.runs[1:])), "kernel") == ["mixed-side"]


def test_what_kernels_count_differently_is_not_judged() -> None:
    """From 6.16 on reclaim writes no file pages: no base of both."""
    runs = [
        run(f"B{n}", {WRITES: 100.0 + n}, facts={"kernel": kernel})
        for n, kernel in enumerate(["6.1"] * 3 + ["6.16"] * 3)
    ]
    new = [run(f"A{n}", {WRITES: 100.0 + n}, facts={"kernel": "6.16"}) for n in range(6)]
    policy = Policy((Rule(WRITES.name, FIVE),), differs=("kernel",))
    found = judge(Side("A", tuple(new)), Side("B", tuple(runs)), policy, [])
    assert [verdict.status for verdict in found.verdicts] == ["REFUSED"]
