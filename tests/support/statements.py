# SPDX-License-Identifier: Apache-2.0
"""A statement without an end, and whether it runs."""

from __future__ import annotations

import os
from contextlib import suppress

__all__ = ["ENDLESS", "runs_a_statement"]

# UNION knows all rows so far: after the first some ten thousand SQLite writes them to a file.
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n) SELECT max(i) FROM n"


def runs_a_statement(pid: int) -> bool:
    """Whether a process is so far in that statement that SQLite has such a file."""
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder):
        with suppress(OSError):  # a file that was closed meanwhile
            if "etilqs_" in os.readlink(f"{folder}/{name}"):
                return True
    return False
