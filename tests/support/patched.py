# SPDX-License-Identifier: Apache-2.0
"""Calls of balance_dirty_pages() of a patched kernel: as it tells, and as the rule has them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from .cli import Wbscope
from .kernelchecks import Call, Done, Throttle, calls_of, fetched, runs_of_calls

__all__ = ["calls_by_the_rule", "calls_in", "dones_in", "told_calls", "without_returns"]

Told = list[tuple[int, int, int]]
"""tid, time of the first event, number of events"""


def dones_in(database: sqlite3.Connection) -> list[Done]:
    columns = "ts, tid, wait_ns, total_ns, intended, loops, sleeps, domain, exit, cgroup_ino"
    return [
        Done(*row)
        for row in fetched(
            database, f"SELECT {columns} FROM ev_balance_dirty_pages_done ORDER BY ts, seq"
        )
    ]


def calls_in(database: sqlite3.Connection) -> tuple[list[Call], list[Throttle]]:
    """Each call with its events; events of none."""
    events = fetched(
        database,
        'SELECT ts, tid, pause, "limit", setpoint, dirty, cgroup_ino, task_ratelimit'
        " FROM ev_balance_dirty_pages ORDER BY ts, seq",
    )
    return calls_of((Throttle(*row) for row in events), dones_in(database))


def told_calls(database: sqlite3.Connection) -> Told:
    """As balance_dirty_pages_done has them."""
    calls, _ = calls_in(database)
    return sorted((call.done.tid, call.events[0].ts, call.done.loops) for call in calls)


def without_returns(database: sqlite3.Connection, path: Path) -> Path:
    """The run as a kernel without the patches has it."""
    with sqlite3.connect(path) as copy:
        database.backup(copy)
        copy.execute("DELETE FROM ev_balance_dirty_pages_done")
    return path


def calls_by_the_rule(wbscope: Wbscope, stock: Path) -> Told:
    """As wbscope groups the events of a stock kernel."""
    rows = wbscope.sql(stock, "SELECT tid, ts, is_first, slept_basis FROM wb_throttle")
    # It was the rule: nothing that balance_dirty_pages_done tells.
    assert "measured" not in {row["slept_basis"] for row in rows}
    return runs_of_calls(sorted((row["tid"], row["ts"], row["is_first"]) for row in rows))
