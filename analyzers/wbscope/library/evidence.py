# SPDX-License-Identifier: Apache-2.0
"""Does the run hold the events that a question needs?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from wbscope.base.errors import EvidenceError
from wbscope.library.database import Recorded
from wbscope.library.profiles import Profile, event_options, pattern_options, profile_of
from wbscope.library.sqlfile import SqlFile

__all__ = ["any_of", "is_recorded", "require_events"]

_SHOWN = 8
# More alternatives than this are for `wbscope queries NAME`.
_NAMED = 5


def require_events(
    file: SqlFile,
    recorded: Recorded,
    shown: str,
    profiles: Sequence[Profile],
    instead: Sequence[SqlFile] = (),
) -> None:
    """EvidenceError when an event was not recorded, or recorded but not loaded.

    An event that was recorded and never happened is no error: the answer is then
    an honest zero. The error names the first query of `instead` that the run can answer.
    """
    missing = [group for group in file.events if not any(e in recorded.tables for e in group)]
    if missing:
        other = next((other for other in instead if is_recorded(other, recorded)), None)
        raise _missing(file, missing, recorded, shown, profiles, other)
    for group in file.events:
        counted = [e for e in group if recorded.counts.get(e, (0, 0))[0] > 0]
        if counted and recorded.first_table(group) is None:
            raise _not_loaded(file, counted[0], recorded, shown)


def is_recorded(file: SqlFile, recorded: Recorded) -> bool:
    """Whether require_events() has nothing to say."""
    try:
        require_events(file, recorded, "", ())
    except EvidenceError:
        return False
    return True


def any_of(group: Sequence[str]) -> str:
    """Events of which one is enough; of many, the first."""
    if len(group) <= _NAMED:
        return " or ".join(group)
    first = " or ".join(group[: _NAMED - 1])
    return f"{first} or one of {len(group) - _NAMED + 1} more"


def _missing(
    file: SqlFile,
    missing: list[tuple[str, ...]],
    recorded: Recorded,
    shown: str,
    profiles: Sequence[Profile],
    other: SqlFile | None,
) -> EvidenceError:
    profile = profile_of(missing, profiles)
    if profile is not None:
        records = f" (record profile {profile.name})"
    else:
        records = " (in no record profile)" if profiles else ""
    if other is not None:
        fix = f"wbscope query {other.name} {shlex.quote(shown)}"
    elif profile or not profiles:
        # Recorded anew, the run must have all that the question needs.
        fix = f"trace-cmd record {_options(file, profiles)} -o trace.dat COMMAND"
    else:
        fix = f"wbscope queries {file.name}"
    return EvidenceError(
        "missing-event",
        file.name,
        f"needs {', '.join(any_of(group) for group in missing)}{records}; {shown} has none",
        have=_nearest(missing[0][0], recorded),
        fix=fix,
    )


def _options(file: SqlFile, profiles: Sequence[Profile]) -> str:
    """For one event of each group; for all of them where each tells of something else."""
    profile = profile_of(file.events, profiles)
    if profile is not None:
        for group in file.events:
            if sum(not set(names).isdisjoint(group) for names in profile.events) > 1:
                events = [name for group in file.events for name in group]
                alternatives = (name for group in file.optional for name in group.split("|"))
                return pattern_options(profile, [*events, *alternatives])
    return event_options(file.events, profiles)


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
