# SPDX-License-Identifier: Apache-2.0
"""The longest waits of a run: those that are worth a look on the timeline."""

from __future__ import annotations

from dataclasses import replace

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.base.span import WHOLE, Span
from wbscope.run.filters import Filters
from wbscope.run.run import Run

__all__ = ["longest_waits"]

_QUERY = "stalls"
# What tells where and why; the query has what that was decided on.
_COLUMNS = (
    "ts", "dur", "tid", "comm", "kind", "cause", "bdi", "cgroup_ino", "what", "holder_bdi",
    "holder_share_ratio", "finding", "stall_id",
)  # fmt: skip


def longest_waits(run: Run, span: Span = WHOLE, most: int = 50) -> tuple[Result, int] | None:
    """The rows of `stalls` with the longest waits first, and how many there are in all.

    None where no event tells of waits.
    """
    if _QUERY not in {query.name for query in run.library.queries()}:
        return None
    try:
        found = run.ask(_QUERY, Filters(span=span))
    except EvidenceError:
        return None
    place = found.columns.index("dur")
    known = [row for row in found.rows if row[place] is not None]
    known.sort(key=lambda row: -row[place])  # those of equal length stay in the order of time
    shown = replace(found, rows=known[:most])
    return shown.only([name for name in _COLUMNS if name in shown.columns]), len(found.rows)
