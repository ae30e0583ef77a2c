# SPDX-License-Identifier: Apache-2.0
"""Filters choose the same rows in every query that takes them."""

from __future__ import annotations

import pytest
from support.cli import Wbscope
from support.runs import example


@pytest.mark.parametrize("bdi", ["254:0", "254:32"])
def test_windows_of_one_bdi_add_up_to_its_tasks(wbscope: Wbscope, bdi: str) -> None:
    folder = example("four-equal-writers-7.2").folder
    tasks = wbscope.query("throttle_by_task", folder, "--bdi", bdi)
    windows = wbscope.query("throttle_windows", folder, "--bdi", bdi)
    assert {row["tid"] for row in windows} == {row["tid"] for row in tasks}
    for task in tasks:
        own = [row for row in windows if row["tid"] == task["tid"]]
        assert sum(row["dirtied_bytes"] for row in own) == task["dirtied_bytes"]
        slept = sum(row["throttled_ratio"] for row in own) * 2e9
        assert slept == pytest.approx(task["slept_total_ns"], rel=1e-6)


def test_a_cgroup_of_its_own(wbscope: Wbscope) -> None:
    rows = wbscope.query("throttle_windows", example("deep").folder, "--cgroup", "27")
    assert {row["tid"] for row in rows} == {173}
