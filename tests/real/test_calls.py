# SPDX-License-Identifier: Apache-2.0
"""Calls of balance_dirty_pages() are found in a stock kernel's events as the kernel made them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.cli import Wbscope
from support.patched import calls_by_the_rule, dones_in, told_calls, without_returns
from support.runs import REPOSITORY

_WB_CLEAN = 3
_RUNS = {
    "6.1": REPOSITORY / "examples/patched-kernel/throttle",
    "7.2": REPOSITORY / "tests/data/patched/7.2-throttle",
}


@pytest.mark.parametrize("kernel", _RUNS)
def test_the_rule_finds_the_calls_that_the_kernel_tells(
    kernel: str, wbscope: Wbscope, tmp_path: Path
) -> None:
    done = wbscope.run("ingest", _RUNS[kernel], "-o", tmp_path / "run.db", "--all")
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(tmp_path / "run.db")) as database:
        told = told_calls(database)
        stock = without_returns(database, tmp_path / "stock.db")
        exits = {one.exit for one in dones_in(database)}
    assert sum(loops > 1 for _, _, loops in told) > 10
    # Of 7.2 some calls left at task_ratelimit 0, and another followed at once.
    assert (_WB_CLEAN in exits) == (kernel == "7.2")
    assert calls_by_the_rule(wbscope, stock) == told
