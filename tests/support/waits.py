# SPDX-License-Identifier: Apache-2.0
"""Waiting for what has to happen: no test knows how fast the machine is."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

import pexpect

__all__ = ["GUARD_SECONDS", "close", "spawn", "wait_until"]

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


def close(process: pexpect.spawn[str], *, kill: bool = False) -> None:
    """Of a program that ends or is killed; pexpect itself gives it a tenth of a second."""
    if kill and process.isalive():
        process.kill(signal.SIGKILL)
    wait_until(lambda: not process.isalive(), "the end of the program")
    process.close()


def spawn(*words: str, env: Mapping[str, str], size: tuple[int, int], **more: Any) -> Any:
    """A program on a terminal of its own, of so many lines and columns."""
    more |= {"timeout": GUARD_SECONDS, "use_poll": True}  # select() has none above 1023
    return pexpect.spawn(
        words[0], list(words[1:]), env=env, encoding="utf-8", dimensions=size, **more
    )
