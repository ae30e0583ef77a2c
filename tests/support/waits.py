# SPDX-License-Identifier: Apache-2.0
"""Waiting for what has to happen: no test knows how fast the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["GUARD_SECONDS", "wait_until"]

# Ends a test that hangs, and nothing else: what is waited for takes seconds here, on a machine that
# is ten times slower still far less than this.
GUARD_SECONDS = 300.0
_POLL_SECONDS = 0.02


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Return once the condition holds; fail with `what` only where that never happens."""
    end = time.monotonic() + GUARD_SECONDS
    while not condition():
        assert time.monotonic() < end, f"not within {GUARD_SECONDS:.0f} s: {what}"
        time.sleep(_POLL_SECONDS)
