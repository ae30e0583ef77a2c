# SPDX-License-Identifier: Apache-2.0
"""Names of metrics and the numbers of a run."""

from __future__ import annotations

import math

import pytest
from support.rundata import metric
from wbscope.base.errors import InputError, UsageError
from wbscope.compare.measure import stable_key
from wbscope.compare.sameness import is_before
from wbscope.measure.metric import Scalars, better_of, join_name, split_name


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
