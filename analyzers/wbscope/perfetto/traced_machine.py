# SPDX-License-Identifier: Apache-2.0
"""Whose events are read: a trace can hold those of a host and of its guests, or of instances.

Threads and CPUs of two machines have the same numbers, so only the first machine is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wbscope.perfetto.trace_processor import Row, TraceProcessor

__all__ = ["Machine", "first_machine"]

_IDS = "SELECT DISTINCT COALESCE(t.machine_id, 0) AS id FROM thread AS t ORDER BY 1"
# The host has no number in some versions and 0 in others.
_EVENTS = """
SELECT COALESCE(t.machine_id, 0) AS id, COUNT(*) AS records
FROM ftrace_event AS f JOIN thread AS t USING (utid)
GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True)
class Machine:
    """The first with ftrace events."""

    id: int = 0
    raw_id: int | None = None  # machine_id of its packets; None: there is no other machine
    told: Row = field(default_factory=dict)  # its row of the table machine, if there are others
    others_count: int = 0
    others_events_count: int = 0


def first_machine(engine: TraceProcessor) -> Machine:
    """The one whose events are read, and what is left out for that.

    Raises: TraceProcessorError.
    """
    known = engine.query(_IDS)
    if len(known) < 2:  # and no need to count
        return Machine(int(known[0]["id"] or 0) if known else 0)
    counts = {int(row["id"] or 0): int(row["records"] or 0) for row in engine.query(_EVENTS)}
    if not counts:
        return Machine()
    first = min(counts)
    # Which columns there are depends on the version.
    told = engine.query(f"SELECT * FROM machine WHERE id = {first}")
    raw_id = int(told[0]["raw_id"] or 0) if told else None
    return Machine(
        first,
        raw_id,
        told[0] if told and len(counts) > 1 else {},
        len(counts) - 1,
        sum(counts.values()) - counts[first],
    )
