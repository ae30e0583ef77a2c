# SPDX-License-Identifier: Apache-2.0
"""Does the run hold the events that a question needs?"""

from __future__ import annotations

from wbscope.engine.database import Recorded
from wbscope.engine.sqlfile import SqlFile
from wbscope.errors import EvidenceError

__all__ = ["require_events"]

_SHOWN = 8


def require_events(file: SqlFile, recorded: Recorded, shown: str) -> None:
    """EvidenceError when an event was not recorded, or recorded but not loaded.

    An event that was recorded and never happened is no error: the answer is then
    an honest zero.
    """
    missing = [group for group in file.events if not any(e in recorded.tables for e in group)]
    if missing:
        raise _missing(file, missing, recorded, shown)
    for group in file.events:
        counted = [e for e in group if recorded.counts.get(e, (0, 0))[0] > 0]
        if counted and recorded.first_table(group) is None:
            raise _not_loaded(file, counted[0], recorded, shown)


def _missing(
    file: SqlFile, missing: list[tuple[str, ...]], recorded: Recorded, shown: str
) -> EvidenceError:
    wanted = ", ".join(" or ".join(group) for group in missing)
    options = " ".join(f"-e {group[0]}" for group in missing)
    return EvidenceError(
        "missing-event",
        file.name,
        f"needs {wanted}; {shown} has none",
        have=_nearest(missing[0][0], recorded),
        fix=f"trace-cmd record {options} -o trace.dat COMMAND",
    )


def _not_loaded(file: SqlFile, event: str, recorded: Recorded, shown: str) -> EvidenceError:
    count = recorded.counts[event][0]
    return EvidenceError(
        "event-not-loaded",
        file.name,
        f"needs {event}; {shown} counts {count} of them and has no table",
        effect="the trace was ingested without this event",
        fix=f"wbscope ingest {recorded.source()} -o RUN.db --events {event} --force",
    )


def _nearest(event: str, recorded: Recorded) -> str:
    """Recorded events, those of the same subsystem first."""
    system = event.split(":")[0] + ":"
    names = sorted(recorded.counts, key=lambda name: (not name.startswith(system), name))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) + more) or "no events"
