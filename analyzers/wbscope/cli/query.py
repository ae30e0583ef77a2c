# SPDX-License-Identifier: Apache-2.0
"""wbscope query: one canned query on one run."""

from __future__ import annotations

from typing import Annotated

import typer

from wbscope.cli.options import CsvOption, JsonOption, QuietOption, RunArgument
from wbscope.cli.output import check_formats, progress_bar, write_result
from wbscope.engine.library import load_library
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
    """
    check_formats(as_json, as_csv)
    library = load_library()
    # What can be refused at once must not wait for an ingest.
    library.query(name)
    for option, text in (("--window", window), ("--from", start), ("--to", end)):
        if text is not None:
            parse_duration(option, text)
    tid_number = None if tid is None else parse_number("--tid", tid)
    cgroup_number = None if cgroup is None else parse_number("--cgroup", cgroup)
    with (
        progress_bar(run, hidden=quiet or as_json) as bar,
        open_run(run, library=library, observer=bar) as opened,
    ):
        result = opened.query(
            name,
            window=window,
            bdi=bdi,
            tid=tid_number,
            cgroup=cgroup_number,
            start=start,
            end=end,
        )
    write_result("query", {"query": name, "run": run}, result, as_json, as_csv)
