# SPDX-License-Identifier: Apache-2.0
"""All checks, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence

from wbscope.doctor.check import Check
from wbscope.doctor.events import EventState, event_checks, event_states
from wbscope.doctor.machine import kernel_check, machine_checks
from wbscope.doctor.tracing import tracing_checks
from wbscope.engine.profiles import Profile
from wbscope.record.choose import available_events
from wbscope.record.tracefs import mounted_tracefs

__all__ = ["examine", "states_here"]


def examine(profiles: Sequence[Profile]) -> list[Check]:
    """Nothing is changed but a trace instance made and removed."""
    checks = [kernel_check(), *tracing_checks()]
    available = _available()
    if available is not None:
        checks += event_checks(profiles, available)
    return checks + list(machine_checks())


def states_here(profiles: Sequence[Profile]) -> list[EventState]:
    """Every event of the profiles, none of them there when they cannot be seen."""
    return event_states(profiles, _available() or frozenset())


def _available() -> frozenset[str] | None:
    tracefs = mounted_tracefs()
    if tracefs is None:
        return None
    try:
        return available_events(tracefs)
    except OSError:
        return None
