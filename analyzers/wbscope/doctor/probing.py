# SPDX-License-Identifier: Apache-2.0
"""By what a recording here tells the bytes that a task dirties, and how long it is held."""

from __future__ import annotations

import os
from pathlib import Path

from wbscope.base.errors import SetupError
from wbscope.doctor.check import Check, Status
from wbscope.record.probes import make_probes, remove_probes
from wbscope.record.tracefs import INSTANCE_PREFIX, Instance

__all__ = ["probe_check"]

_NAME = "bytes and waits"


def probe_check(tracefs: Path) -> Check:
    """The probes are made, enabled and removed, as record does."""
    instance = Instance(tracefs, f"{INSTANCE_PREFIX}{os.getpid()}-doctor")
    try:
        made = make_probes(instance)
    except SetupError as error:
        return Check(_NAME, Status.missing, f"not known: {error.message}", error.fix)
    finally:
        instance.remove()
        remove_probes(tracefs, instance.name)
    if made.kind is None:
        found = f"by events only, at least so much: {made.why}"
        return Check(_NAME, Status.missing, found, made.fix)
    return Check(_NAME, Status.ok, f"exact, by {made.kind} (arguments {made.arguments})")
