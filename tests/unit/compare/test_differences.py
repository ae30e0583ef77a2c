# SPDX-License-Identifier: Apache-2.0
"""Which facts differ, which are allowed to, and which nobody knows."""

from __future__ import annotations

import pytest
from support.rundata import run
from wbscope.compare.rundata import Fact
from wbscope.compare.sameness import Difference, differences, unknown_facts


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
