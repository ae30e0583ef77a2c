# SPDX-License-Identifier: Apache-2.0
"""wbscope query: one canned query on one run."""

from __future__ import annotations

from typing import Annotated

import typer

from wbscope.cli.options import (
    CsvOption,
    EngineName,
    EngineOption,
    JsonOption,
    QuietOption,
    RunArgument,
)
from wbscope.cli.output import check_formats, progress_bar, write_result
from wbscope.engine.library import Library, load_library
from wbscope.engine.sqlfile import SqlFile
from wbscope.errors import UsageError
from wbscope.render.units import parse_duration, parse_number
from wbscope.run import open_run

__all__ = ["query"]


def query(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A name from `wbscope queries`.", show_default=False),
    ],
    run: RunArgument,
    window: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Length of a window.")
    ] = None,
    bdi: Annotated[
        str | None, typer.Option(metavar="BDI", help="Only this device, e.g. 8:0.")
    ] = None,
    tid: Annotated[str | None, typer.Option(metavar="TID", help="Only this thread.")] = None,
    cgroup: Annotated[str | None, typer.Option(metavar="INO", help="Only this cgroup_ino.")] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="DURATION", help="Start, from the first event."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="DURATION", help="End, from the first event."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also what the rows were decided on.")
    ] = False,
    engine: EngineOption = EngineName.sqlite,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    quiet: QuietOption = False,
) -> None:
    """Answer a canned query.

    Durations are a number with ns, us, ms, s, m or h.

    \b
    Examples:
      wbscope query throttle_by_task trace.dat
      wbscope query throttle_windows RUN --window 500ms --tid 123
      wbscope query fairness RUN --from 2s --to 10s --json
      wbscope query stalls RUN --tid 123 --explain
      wbscope query fairness trace.pftrace --engine perfetto
    """
    check_formats(as_json, as_csv)
    library = load_library()
    # What can be refused at once must not wait for an ingest.
    file = library.query(name)
    if explain:
        _check_explain(library, file, as_csv)
    for option, text in (("--window", window), ("--from", start), ("--to", end)):
        if text is not None:
            parse_duration(option, text)
    tid_number = None if tid is None else parse_number("--tid", tid)
    cgroup_number = None if cgroup is None else parse_number("--cgroup", cgroup)
    with (
        progress_bar(run, hidden=quiet or as_json) as bar,
        open_run(run, library=library, observer=bar, engine=engine.value) as opened,
    ):
        results = [
            opened.query(
                asked,
                window=window,
                bdi=bdi,
                tid=tid_number,
                cgroup=cgroup_number,
                start=start,
                end=end,
            )
            for asked in ([name, file.explain] if explain else [name])
        ]
    explained = (library.query(file.explain).title, results[1]) if explain else None
    write_result("query", {"query": name, "run": run}, results[0], as_json, as_csv, explained)


def _check_explain(library: Library, file: SqlFile, as_csv: bool) -> None:
    """Only some queries have evidence to show, and CSV holds one table."""
    if not file.explain:
        having = ", ".join(query.name for query in library.queries() if query.explain)
        raise UsageError(
            "no-explanation",
            file.name,
            "has no evidence to show with --explain",
            have=f"queries that do: {having or 'none'}",
            fix=f"wbscope query {file.name} RUN",
        )
    if as_csv:
        raise UsageError(
            "two-tables",
            "--csv --explain",
            "is two tables, and CSV holds one",
            fix=f"wbscope query {file.explain} RUN --csv",
        )
