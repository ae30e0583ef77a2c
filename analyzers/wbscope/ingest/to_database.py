# SPDX-License-Identifier: Apache-2.0
"""A trace.dat or the text of a trace to a database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wbscope.base.children import file_word, passed_text
from wbscope.base.result import Notice
from wbscope.ingest.formats import reference_formats
from wbscope.ingest.program import Observer, run_ingester
from wbscope.ingest.selection import Choice
from wbscope.library.library import Library
from wbscope.run.source import Source

__all__ = ["trace_to_database"]


def trace_to_database(
    run: Source, output: Path, library: Library, choice: Choice, observer: Observer | None
) -> tuple[dict[str, Any], list[Notice]]:
    """As run_ingester: its `done` message and its warnings."""
    # Formats are a megabyte to read, and for text only.
    texts = [] if run.has_formats() else reference_formats()
    with (
        passed_text("".join(f"{event}\n" for event in library.events())) as (listed, events_name),
        passed_text("".join(texts)) as (formats, formats_name),
        passed_text(library.load_plan()) as (plan, plan_name),
    ):
        options = ["--all"] if choice.load_all else ["--events-file", events_name]
        for event in choice.events:
            options += ["--events", event]
        if choice.time_range is not None:
            options += ["--time-range", choice.time_range]
        if choice.limit is not None:
            options += ["--limit", str(choice.limit)]
        if not choice.unpack_limit:
            options += ["--no-unpack-limit"]
        return run_ingester(
            [
                "sqlite",
                file_word(run.given),
                "-o",
                str(output),
                "--formats",
                formats_name,
                "--plan",
                plan_name,
                *options,
            ],
            observer,
            files=[listed, formats, plan],
        )
