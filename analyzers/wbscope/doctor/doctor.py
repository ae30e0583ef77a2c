# SPDX-License-Identifier: Apache-2.0
"""All checks, in the order of the page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from wbscope.base.errors import SetupError
from wbscope.doctor.checks import Check, Status, kernel_check, machine_checks, probe_checks
from wbscope.doctor.tracing import EventState, event_checks, event_states, tracing_checks
from wbscope.library.catalog import Profile
from wbscope.record.choose import available_events, mount_tracefs, mounted_tracefs


def examine(
    profiles: Sequence[Profile],
    tracefs: Path | None = None,
    probe: Callable[[Path], list[Check]] = probe_checks,
) -> list[Check]:
    """Tracefs is mounted, as record does; an instance and probes are made, and removed."""
    tracefs, reason = tracefs or mounted_tracefs(), None
    if tracefs is None:
        try:
            tracefs = mount_tracefs()
        except SetupError as error:
            reason = error.message
    checks = [kernel_check(), *tracing_checks(tracefs, reason)]
    if tracefs is not None:
        is_ours = os.access(tracefs / "instances", os.W_OK | os.X_OK)
        probes = probe(tracefs) if is_ours else []
        can_probe = probes[0].status is Status.ok if probes else None
        try:
            checks += event_checks(profiles, available_events(tracefs), can_probe=can_probe)
        except OSError as error:
            found = f"not known: {error.filename}: {error.strerror}"
            checks.append(Check("events", Status.fails, found, "run as root: sudo wbscope doctor"))
        checks += probes
    return checks + list(machine_checks())


def states_here(profiles: Sequence[Profile]) -> list[EventState]:
    """Every event of the profiles.

    Raises: SetupError when they cannot be seen; then none is known to be missing.
    """
    tracefs = mounted_tracefs() or mount_tracefs()
    try:
        return event_states(profiles, available_events(tracefs))
    except OSError as error:
        raise SetupError(
            "tracefs-not-readable",
            str(error.filename or tracefs),
            f"cannot be read by user {os.geteuid()}: {error.strerror}",
            fix="run it as root: sudo wbscope doctor --events",
        ) from error
