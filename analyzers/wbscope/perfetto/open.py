# SPDX-License-Identifier: Apache-2.0
"""Opens a run in trace processor, or says which engine can read it."""

from __future__ import annotations

import shlex

from wbscope.engine.library import Library
from wbscope.errors import UsageError
from wbscope.ingester import Observer
from wbscope.perfetto.adapters import perfetto_library
from wbscope.perfetto.session import PerfettoSessions
from wbscope.sources import Kind, find_source

__all__ = ["open_sessions"]


def open_sessions(run: str, observer: Observer | None = None) -> tuple[PerfettoSessions, Library]:
    """The run's trace in an engine, and the library whose adapters fit.

    Raises: UsageError when the run is no Perfetto trace.
    """
    source = find_source(run)
    if source.kind is not Kind.PERFETTO:
        kind = "a run database" if source.kind is Kind.DATABASE else "no Perfetto trace"
        raise UsageError(
            "not-for-engine",
            run,
            f"is {kind}, and the engine perfetto reads Perfetto traces only",
            fix=f"wbscope query NAME {shlex.quote(run)}    # without --engine perfetto",
        )
    library = perfetto_library()
    return PerfettoSessions(source, library, observer), library
