# SPDX-License-Identifier: Apache-2.0
"""How SQLite works in a process that is wbscope's own."""

from __future__ import annotations

import contextlib
import importlib.util
import sys

__all__ = ["leave_memory_uncounted"]

_SQLITE_CONFIG_MEMSTATUS = 9


def leave_memory_uncounted() -> None:
    """Two threads need not wait for each other at each piece of memory (docs/benchmarks.md).

    SQLite counts what it allocates under a lock of the process, for limits that wbscope does not
    use. It can be told so only before its first use, and only by whom the process belongs to: not
    by a library that somebody imports. Where it cannot be told, it counts.
    Source: sqlite.org/c3ref/c_config_covering_index_scan.html, SQLITE_CONFIG_MEMSTATUS.
    """
    if "sqlite3" in sys.modules:
        return
    # A small Python may lack ctypes.
    with contextlib.suppress(ImportError, OSError, AttributeError, ValueError):
        import ctypes  # takes as long as the list of verbs

        # The library that Python itself will use, linked in or shared.
        module = importlib.util.find_spec("_sqlite3")
        if module is not None and module.origin is not None:
            ctypes.CDLL(module.origin).sqlite3_config(_SQLITE_CONFIG_MEMSTATUS, 0)
