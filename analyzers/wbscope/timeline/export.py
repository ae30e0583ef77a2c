# SPDX-License-Identifier: Apache-2.0
"""A run's timeline views as a Perfetto trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wbscope.base.children import passed_text
from wbscope.base.errors import EvidenceError
from wbscope.base.outputs import check_output, private_output
from wbscope.base.result import Notice
from wbscope.ingest.program import run_ingester
from wbscope.library.evidence import require_events
from wbscope.run.run import Run
from wbscope.run.source import Kind
from wbscope.timeline.plan import plan_statements

__all__ = ["Timeline", "write_timeline"]

_THREADS = "wb_thread"


@dataclass(frozen=True)
class Timeline:
    """What was written: the views in it, and those that lack their events."""

    output: Path
    views: tuple[str, ...]
    skipped: tuple[EvidenceError, ...]
    warnings: tuple[Notice, ...]


def write_timeline(
    run: Run, output: Path, *, force: bool = False, events: Sequence[str] | None = None
) -> Timeline:
    """Export every timeline view whose events were recorded.

    From a trace.dat, recorded events ride along: those that match a pattern in
    `events`, by default those that the library reads.
    """
    check_output(output, force, [Path(run.name), run.database], "run.pftrace")
    views, skipped = _available(run)
    statements = [*run.statements([*views, _THREADS]), *plan_statements(run.library, views)]
    setup = "".join(f"{statement};\n" for statement in statements)
    with (
        private_output(output) as private,
        passed_text(setup) as (script, name),
    ):
        arguments = ["timeline", str(run.database), "--setup", name]
        for view in views:
            arguments += ["--view", view]
        arguments += _events(run, events)
        _, warnings = run_ingester([*arguments, "-o", str(private)], files=[script])
    return Timeline(
        output=output,
        views=tuple(views),
        skipped=tuple(skipped),
        warnings=(*run.warnings(), *warnings),
    )


def _events(run: Run, chosen: Sequence[str] | None) -> list[str]:
    """What tells the ingester which events ride along."""
    source = run.source
    if source.kind is not Kind.TRACE or not source.has_formats():
        return []  # nothing but a trace.dat can be written record by record
    globs = run.library.events() if chosen is None else chosen
    if not globs:
        return []
    return ["--trace", str(source.trace), *(part for glob in globs for part in ("--events", glob))]


def _available(run: Run) -> tuple[list[str], list[EvidenceError]]:
    views: list[str] = []
    skipped: list[EvidenceError] = []
    for file in run.library.timelines():
        try:
            require_events(file, run.recorded(), run.name, run.library.profiles)
        except EvidenceError as error:
            skipped.append(error)
        else:
            views.append(file.name)
    if not views and skipped:
        raise skipped[0]
    return views, skipped
