# SPDX-License-Identifier: Apache-2.0
"""Which tracks of a run's timeline the UI opens and pins at start: what matters for this run.

Only names can be given to a UI of v52; so these are names that no other track has.
"""

from __future__ import annotations

from collections import defaultdict

from wbscope.base.errors import EvidenceError
from wbscope.base.span import WHOLE, Span
from wbscope.run.filters import Filters
from wbscope.run.run import Run
from wbscope.viewer.commands import Command, any_of

__all__ = ["startup_commands"]

_MOST_TASKS = 5
# A kind of wait of less than this share of all is not what the run is about; nor is a task that
# waited for less than this share of what the first did.
_LEAST_SHARE = 0.1

_THROTTLE = "throttle"
_RECLAIM = ("direct reclaim", "memcg reclaim", "reclaim throttle")
# Of these alone are the waits of kernel threads that write for others.
_QUEUE = "block queue"
_DISK = (_QUEUE, "folio wait", "fsync", "journal", "sync", "write")


def startup_commands(run: Run, span: Span = WHOLE) -> list[Command]:
    """Pin the tasks that waited longest; open the groups that say why."""
    tasks, kinds = _waits(run, span)
    pinned = [f"stalls of {task}" for task in tasks]
    groups = ["Writeback"]
    if _THROTTLE in kinds or not kinds:
        pinned += ["tasks in throttle", "dirty + writeback"]
        groups += ["Dirty pages", "Fairness"]
    if kinds & {*_RECLAIM}:
        groups.append("Reclaim")
    if kinds & {*_DISK}:
        groups += ["Flusher work", "Block requests"]
    return [
        Command("ExpandTracksByRegex", (any_of(groups),)),
        *(Command("PinTracksByRegex", (any_of([name]),)) for name in pinned),
    ]


def _waits(run: Run, span: Span) -> tuple[list[str], set[str]]:
    """The tasks that waited longest, longest first, and the kinds of wait that count."""
    try:
        rows = run.ask("stalls_by_task", Filters(span=span)).records()
    except EvidenceError:
        return [], set()
    tasks: dict[str, int] = defaultdict(int)
    kinds: dict[str, int] = defaultdict(int)
    for row in rows:
        kinds[row["kind"]] += row["total_ns"] or 0
        if row["kind"] != _QUEUE:
            tasks[f"{row['comm']} {row['tid']}"] += row["total_ns"] or 0
    least = _LEAST_SHARE * sum(kinds.values())
    longest = sorted(tasks, key=lambda task: -tasks[task])[:_MOST_TASKS]
    longest = [task for task in longest if tasks[task] >= _LEAST_SHARE * tasks[longest[0]] > 0]
    return longest, {kind for kind, total in kinds.items() if total >= least > 0}
