# SPDX-License-Identifier: Apache-2.0
"""From what the user calls a run to a database: folder, trace or .db."""

from __future__ import annotations

from pathlib import Path

from wbscope.cache import CACHE_FIX, cache_entry, trim_cache, used
from wbscope.engine.database import SCHEMA_VERSION
from wbscope.engine.library import Library
from wbscope.errors import SetupError
from wbscope.ingest import ingest
from wbscope.ingester import Observer, find_ingester
from wbscope.sources import Kind, Source, find_source
from wbscope.version import __version__

__all__ = ["database_of"]


def database_of(text: str, library: Library, observer: Observer | None = None) -> Path:
    """The database of a run; a trace is ingested into the cache when needed."""
    source = find_source(text)
    if source.kind is Kind.DATABASE:
        return source.trace
    return _cached(source, library, observer)


def _cached(source: Source, library: Library, observer: Observer | None) -> Path:
    versions = [__version__, str(SCHEMA_VERSION), *library.events(), *library.table_options()]
    # The program is an input too: a new one may read more of the same trace.
    entry = cache_entry([find_ingester(), *source.inputs()], versions)
    if not used(entry):
        try:
            ingest(source.path, entry, library, force=True, observer=observer)
        except SetupError as error:
            if error.slug == "cannot-write":
                error.fix = CACHE_FIX  # the user gave no -o
            raise
        trim_cache(keep=entry)
    return entry
