# SPDX-License-Identifier: Apache-2.0
"""What the UI does at start: what matters for this run is opened, pinned and told.

Only names can be given to a UI of v52; so these are names that no other track has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from wbscope.base.span import WHOLE, Span
from wbscope.run.run import Run
from wbscope.timeline.two_runs import LETTERS
from wbscope.viewer.commands import Command, any_of
from wbscope.viewer.starttabs import summaries_of_two, summary_commands
from wbscope.viewer.waits import LEAST_SHARE, QUEUE, longest_waiters, waits_of
from wbscope.viewer.workspaces import workspace_commands

__all__ = ["startup_commands", "startup_commands_of_two"]

# More leave no room for what scrolls below them on a screen of 800 lines.
_MOST_PINNED = 4

# What a UI puts tracks of nobody's into, the verdict of a run among them.
_OUTER = "Global Track Events"

_RECLAIM = ("direct reclaim", "memcg reclaim", "reclaim throttle")
_DISK = (QUEUE, "folio wait", "fsync", "journal", "sync", "write")


def startup_commands(run: Run, span: Span = WHOLE) -> list[Command]:
    """A workspace for each question, the view at start, and the verdict in a tab."""
    rows = waits_of(run, span)
    return [*workspace_commands(rows), *_first_view(rows), *summary_commands(run, span)]


def startup_commands_of_two(runs: Mapping[str, Run], span: Span = WHOLE) -> list[Command]:
    """Both groups opened, those of their groups that tell most one below the other, and verdicts.

    runs  by the names of their groups
    """
    return [
        Command("ExpandTracksByRegex", (any_of(list(runs)),)),
        *(
            Command("PinTracksByRegex", (any_of([f"{letter} {name}"]),))
            for name in ("Stalls", "Dirty pages")
            for letter in LETTERS
        ),
        *summaries_of_two(runs, span),
    ]


def _first_view(rows: list[dict[str, Any]]) -> list[Command]:
    """Pin the tasks that waited longest; open the groups that say why.

    Closed, "Stalls", "Dirty pages" and "Fairness" show a curve that says most of what is in them.
    """
    kinds = _kinds(rows)
    pinned = [f"stalls of {task}" for task in longest_waiters(rows)[:_MOST_PINNED]]
    groups = [_OUTER, "Writeback"]
    if kinds & {*_RECLAIM}:
        groups.append("Reclaim")
    if kinds & {*_DISK}:
        groups.append("Flusher work")
    return [
        Command("ExpandTracksByRegex", (any_of(groups),)),
        *(Command("PinTracksByRegex", (any_of([name]),)) for name in pinned),
    ]


def _kinds(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The kinds of wait that count."""
    kinds: dict[str, int] = defaultdict(int)
    for row in rows:
        kinds[row["kind"]] += row["total_ns"] or 0
    least = LEAST_SHARE * sum(kinds.values())
    return {kind for kind, total in kinds.items() if total >= least > 0}
