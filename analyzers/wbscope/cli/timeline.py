# SPDX-License-Identifier: Apache-2.0
"""wbscope timeline: the run as tracks for the Perfetto UI."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.errors import UsageError
from wbscope.base.outputs import check_output
from wbscope.base.result import Notice
from wbscope.cli.options import ForceOption, JsonOption, Part, QuietOption, RunArgument, bound
from wbscope.cli.output import note, progress_bar, show_warnings, write_stdout
from wbscope.render.json import document, rows_body
from wbscope.run.run import open_run
from wbscope.timeline.export import Timeline, write_timeline, write_two_timelines


@bound
def timeline(
    *,
    run: RunArgument,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="X.pftrace", show_default=False),
    ],
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="RUN", help="Another run beside it, from the same 0 s."),
    ] = None,
    events: Annotated[
        list[str] | None,
        typer.Option(
            "-e",
            "--events",
            metavar="GLOB",
            help="Recorded events that ride along, e.g. 'sched:*'; repeatable."
            " By default those that queries read.",
        ),
    ] = None,
    no_events: Annotated[
        bool, typer.Option("--no-events", help="Only the tracks: a smaller file.")
    ] = False,
    part: Part,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the run as tracks for the Perfetto UI.

    Open the file at https://ui.perfetto.dev. It includes recorded events when
    RUN has a trace.dat. With --from and --to, slices that reach into the part
    are whole.

    \b
    Examples:
      wbscope timeline trace.dat -o run.pftrace
      wbscope timeline RUN -o run.pftrace --force
      wbscope timeline RUN -o run.pftrace --events '*'
      wbscope timeline RUN -o part.pftrace --from 10s --to 20s
      wbscope timeline NEW --against OLD -o both.pftrace
    """
    if events and no_events:
        raise UsageError(
            "two-choices",
            "--events --no-events",
            "are two choices, wanted one",
            fix="--no-events",
        )
    if events and against is not None:
        raise UsageError(
            "two-choices",
            "--events --against",
            "exclude each other: recorded events of two runs have the same CPUs and threads",
            fix="--against RUN",
        )
    span = part.span()
    sources = [run] if against is None else [run, against]
    check_output(output, force, [Path(text) for text in sources], "run.pftrace")
    with ExitStack() as stack:
        bar = stack.enter_context(progress_bar(run, hidden=quiet or as_json))
        opened, *others = (stack.enter_context(open_run(text, observer=bar)) for text in sources)
        if others:
            done = write_two_timelines(opened, others[0], Path(output), force=force, span=span)
        else:
            chosen = () if no_events else events
            done = write_timeline(opened, Path(output), force=force, events=chosen, span=span)
    warnings = [*done.warnings, *_skipped(done)]
    if as_json:
        row = {"output": str(done.output), "views": list(done.views)}
        asked = {"run": run} if against is None else {"run": run, "against": against}
        write_stdout(document("timeline", asked, rows_body([row], warnings)))
        return
    show_warnings(warnings)
    skipped = {error.subject for error in done.skipped}
    views = len({*done.views, *map(str, skipped)})
    note(f"wrote {done.output}: {len(done.views)} of {views} views")


def _skipped(done: Timeline) -> list[Notice]:
    return [Notice(e.slug, f"{e.subject} {e.message}; left out") for e in done.skipped]
