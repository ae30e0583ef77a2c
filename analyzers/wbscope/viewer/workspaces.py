# SPDX-License-Identifier: Apache-2.0
"""A workspace of the UI for each question that a run can answer: its tracks alone, opened.

The first view stays the UI's own workspace, which has all tracks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wbscope.viewer.commands import Command, any_of
from wbscope.viewer.waits import longest_waiters

__all__ = ["DEFAULT_WORKSPACE", "Workspace", "workspace_commands", "workspaces_of"]

DEFAULT_WORKSPACE = "Default Workspace"
"""The UI's own name of the workspace that it starts with."""

_ROOTS = ("Global Track Events", "Writeback")
_LOOK = "What to look at"
_STALLS = "Stalls"


@dataclass(frozen=True)
class Workspace:
    """`groups` are copied with all their tracks, `opened` are those of them that are open."""

    title: str
    kinds: tuple[str, ...]
    causes: tuple[str, ...]
    groups: tuple[str, ...]
    opened: tuple[str, ...]

    def has(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of stalls_by_task is what this is about."""
        return row["kind"] in self.kinds or row["cause"] in self.causes


_WORKSPACES = (
    Workspace(
        "Throttling",
        kinds=("throttle",),
        causes=(),
        groups=(
            "Dirty pages", "Bandwidth", "Throttled tasks", "Fairness", "Flusher work",
            "Memory cgroups",
        ),
        opened=(),
    ),
    Workspace(
        "Reclaim",
        kinds=("direct reclaim", "memcg reclaim", "reclaim throttle"),
        causes=(),
        groups=("Reclaim", "Zones", "Pressure", "vmstat", "Dirty pages"),
        opened=("Reclaim",),
    ),
    Workspace(
        "Sync",
        kinds=("fsync", "sync", "journal", "folio wait", "server"),
        causes=("journal commit",),
        groups=("Flusher work", "Block requests", "Disks", "Throughput"),
        opened=("Flusher work",),
    ),
)  # fmt: skip


def workspaces_of(rows: Collection[Mapping[str, Any]]) -> list[Workspace]:
    """Those that the run has waits for, by rows of stalls_by_task."""
    return [one for one in _WORKSPACES if any(one.has(row) and row["total_ns"] for row in rows)]


def workspace_commands(rows: Sequence[Mapping[str, Any]]) -> list[Command]:
    """Fill the workspaces, and return to the one that the UI starts with."""
    commands: list[Command] = []
    for one in workspaces_of(rows):
        about = [row for row in rows if one.has(row)]
        kinds = sorted({row["kind"] for row in about if row["total_ns"]})
        names = [
            _LOOK,
            *(f"tasks in {kind}" for kind in kinds),
            *(f"stalls of {task}" for task in longest_waiters(about)),
            *one.groups,
        ]
        commands += [
            # Makes the workspace; what stands above a track comes with it.
            Command("CopyTracksToWorkspaceByRegexWithAncestors", (any_of(names), one.title)),
            Command("SwitchWorkspace", (one.title,)),
            Command("ExpandTracksByRegex", (any_of([*_ROOTS, _STALLS, *one.opened]),)),
            Command("SwitchWorkspace", (DEFAULT_WORKSPACE,)),
        ]
    return commands
