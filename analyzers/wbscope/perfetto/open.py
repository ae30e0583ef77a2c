# SPDX-License-Identifier: Apache-2.0
"""Opens a run in trace processor, or says which engine can read it."""

from __future__ import annotations

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import UsageError
from wbscope.ingest.program import Observer
from wbscope.library.library import Library
from wbscope.perfetto.perfetto_engine import PerfettoEngine
from wbscope.perfetto.perfetto_library import perfetto_library
from wbscope.run.offered import report_of
from wbscope.run.source import Kind, Source

__all__ = ["open_engine"]


def open_engine(source: Source, observer: Observer | None = None) -> tuple[PerfettoEngine, Library]:
    """The run's trace in an engine, and the library whose adapters fit.

    Raises: UsageError when the run is no Perfetto trace.
    """
    if source.kind is not Kind.PERFETTO:
        shown = str(source.path)
        kinds = {Kind.DATABASE: "a run database", Kind.PACKED: "an archive, or packed"}
        kind = kinds.get(source.kind, "no Perfetto trace")
        raise UsageError(
            "not-for-engine",
            shown,
            f"is {kind}; the engine perfetto reads Perfetto traces as they are, in gz or in zip",
            fix=Phrase(
                f"{report_of(source.path)}    # without ",
                Argument("engine", "perfetto"),
            ),
        )
    library = perfetto_library()
    return PerfettoEngine(source, library, observer), library
