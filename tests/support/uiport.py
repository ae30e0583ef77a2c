# SPDX-License-Identifier: Apache-2.0
"""The one port from which a UI elsewhere loads traces: for one test at a time."""

from __future__ import annotations

import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wbscope.viewer.link import PORT

from .tools import missing

__all__ = ["free_ui_port"]


@contextmanager
def free_ui_port() -> Iterator[None]:
    """It is free, and no test that runs beside this one uses it meanwhile."""
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", PORT))
            except OSError:
                missing(f"port {PORT}, the only one that a UI loads from, is in use")
        yield
