# SPDX-License-Identifier: Apache-2.0
"""Which tasks waited longest: theirs are the tracks that the UI shows first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from wbscope.base.errors import EvidenceError
from wbscope.base.span import WHOLE, Span
from wbscope.base.taskname import task_words
from wbscope.run.filters import Filters
from wbscope.run.run import Run

__all__ = ["LEAST_SHARE", "QUEUE", "longest_waiters", "waits_of"]

LEAST_SHARE = 0.1
"""A kind of wait of less than this share of all is not what the run is about; nor is a task that
waited for less than this share of what the first did."""

QUEUE = "block queue"
"""Of these alone are the waits of kernel threads that write for others."""

_MOST_TASKS = 5


def waits_of(run: Run, span: Span = WHOLE) -> list[dict[str, Any]]:
    """The rows of stalls_by_task; none where no event tells of waits."""
    try:
        return run.ask("stalls_by_task", Filters(span=span)).records()
    except EvidenceError:
        return []


def longest_waiters(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The tasks that waited longest, longest first, as their tracks are called."""
    tasks: dict[str, int] = defaultdict(int)
    for row in rows:
        if row["kind"] != QUEUE:
            tasks[task_words(row["comm"], row["tid"])] += row["total_ns"] or 0
    longest = sorted(tasks, key=lambda task: -tasks[task])[:_MOST_TASKS]
    return [task for task in longest if tasks[task] >= LEAST_SHARE * tasks[longest[0]] > 0]
