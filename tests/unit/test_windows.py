# SPDX-License-Identifier: Apache-2.0
"""Windows of a run that is far too long: an error that names the record, and no endless list."""

from __future__ import annotations

from wbscope.library.library import load_library
from wbscope.library.params import DEFAULT_WINDOW_NS, MOST_WINDOWS, wide_enough, windows_in

_YEAR_NS = 365 * 86_400 * 10**9
_ROW = {"t0_ns": None, "t1_ns": None, "window_ns": DEFAULT_WINDOW_NS}


def test_the_library_has_the_same_numbers() -> None:
    files = load_library().files
    assert f"{DEFAULT_WINDOW_NS} AS window_ns" in files["wb_params"].select
    assert f"{MOST_WINDOWS} AS windows_most_count" in files["wb_rule"].select


def test_nothing_else_in_the_library_counts_on_and_on() -> None:
    """Recursion in a view goes on with time or with rows; each one is known."""
    recursive = {name for name, f in load_library().files.items() if "RECURSIVE" in f.select}
    # _dirty_step: 2,048 steps; _stack: 16 levels of devices; _pool_added: the numbers up to 16.
    known = {"wb_thread", "wb_window", "_dirty_step", "_stack", "_pool_added"}
    assert recursive == known


def test_windows_of_a_long_run_are_longer() -> None:
    meta = {"first_ts": 5, "last_ts": 5 + _YEAR_NS}
    row = wide_enough(_ROW, meta)
    assert windows_in(5, 5 + _YEAR_NS + 1, row["window_ns"]) <= MOST_WINDOWS
    assert row["window_ns"] > DEFAULT_WINDOW_NS


def test_windows_of_other_runs_stay() -> None:
    assert wide_enough(_ROW, {"first_ts": 5, "last_ts": 10**11}) == _ROW
    assert wide_enough(_ROW, {}) == _ROW
    part = _ROW | {"t0_ns": 5, "t1_ns": 10**10}
    assert wide_enough(part, {"first_ts": 5, "last_ts": 5 + _YEAR_NS}) == part


def test_count_of_windows() -> None:
    assert [windows_in(0, end, 10) for end in (0, 1, 10, 11)] == [0, 1, 1, 2]
    assert windows_in(20, 10, 10) == 0
