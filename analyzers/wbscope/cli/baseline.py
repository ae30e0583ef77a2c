# SPDX-License-Identifier: Apache-2.0
"""wbscope baseline: the numbers of runs in a file to keep, instead of the runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.errors import EvidenceError
from wbscope.base.outputs import check_output, write_whole
from wbscope.base.units import counted
from wbscope.cli.formats import write_document
from wbscope.cli.options import ForceOption, JsonOption, Output, QuietOption, bound
from wbscope.cli.output import note, progress_bar, show_warnings, write_stdout
from wbscope.cli.verbs import verb_group

app = verb_group("baseline", no_args_is_help=True)

RunsArgument = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Runs, or folders of runs.")
]
FilesArgument = Annotated[list[str], typer.Argument(metavar="FILE...", help="Baselines.")]
OutArgument = Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The file.")]


@app.callback()
def baseline() -> None:
    """Keep the numbers of runs in a file, to compare with.

    \b
    Examples:
      wbscope baseline save old/run* -o baseline.json
      wbscope baseline show baseline.json
      wbscope baseline merge monday.json tuesday.json -o week.json
    """


@app.command()
def save(
    runs: RunsArgument,
    output: OutArgument,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Only this one; 'throttle*' is several."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="FILE", help="Only what it declares.")
    ] = None,
    allow_damaged: Annotated[
        bool, typer.Option("--allow-damaged", help="Also runs that were read in part.")
    ] = False,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="NAME", help="All runs were made together, then."),
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Save the numbers of runs and what they were recorded on.

    The file has one line for each metric and is made to be kept in git: some
    50 KB with all metrics, a few with those of --policy, no trace in it.

    \b
    Examples:
      wbscope baseline save old/run* -o baseline.json
      wbscope baseline save old --policy gate.toml -o baseline.json
      wbscope baseline save old --session monday -o monday.json
    """
    check_output(output, force, [Path(run) for run in runs], "baseline.json")
    from wbscope.compare.baseline import baseline_text
    from wbscope.compare.load import Loader
    from wbscope.compare.policy import Rule, read_policy, wanted_by
    from wbscope.compare.sessions import session_of
    from wbscope.render.history import saved_json

    rules = [Rule(pattern) for pattern in metric or (() if policy else ("*",))]
    checks, expected = False, None
    if policy is not None:
        chosen = read_policy(Path(policy))
        checks, expected = chosen.checks, chosen.expect_runs
        rules += chosen.rules
    loader = Loader(
        wanted=wanted_by(rules),
        watch=lambda run: progress_bar(run, hidden=quiet or as_json),
        allow_damaged=allow_damaged,
        checks=checks,
        findings=not metric and policy is None,
    )
    side = loader.side("runs", runs)
    if expected not in (None, len(side.runs)):
        raise EvidenceError(
            "number-of-runs",
            str(policy),
            f"expects {expected} runs, found {len(side.runs)}",
            have=", ".join(run.name for run in side.runs[:8]),
            fix=f"record the others, or expect_runs = {len(side.runs)}",
        )
    kept = side.runs
    if session is not None:
        named = session_of({"session": session})
        times = [None if run.session is None else run.session.unix_s for run in kept]
        kept = tuple(
            replace(run, session=named and replace(named, unix_s=when))
            for run, when in zip(kept, times, strict=True)
        )
    write_whole(Path(output), baseline_text(kept), force=force)
    if as_json:
        write_stdout(saved_json(output, kept))
        return
    show_warnings(notice for run in kept for notice in run.named_warnings)
    count = len({name for run in side.runs for name in run.scalars})
    note(f"wrote {output}: {counted(len(side.runs), 'run')}, {counted(count, 'metric')}")


@app.command()
@bound
def show(files: FilesArgument, *, out: Output) -> None:
    """Show what is in baselines.

    Runs, what they were recorded on, and medians.

    \b
    Examples:
      wbscope baseline show baseline.json
      wbscope baseline show baseline.json --json
    """
    out.check(files, noun="baseline")
    from wbscope.compare.baseline import merged, read_baseline
    from wbscope.render.history import baseline_document

    runs = merged([(file, read_baseline(Path(file))) for file in files])
    write_document(baseline_document(runs), out)


@app.command()
def merge(
    files: FilesArgument,
    output: OutArgument,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Put the runs of several baselines into one.

    \b
    Examples:
      wbscope baseline merge monday.json tuesday.json -o week.json
    """
    check_output(output, force, [Path(file) for file in files], "baseline.json")
    from wbscope.compare.baseline import baseline_text, merged, read_baseline
    from wbscope.render.history import merged_json

    runs = merged([(file, read_baseline(Path(file))) for file in files])
    write_whole(Path(output), baseline_text(runs), force=force)
    if as_json:
        write_stdout(merged_json(output, runs))
        return
    show_warnings(notice for run in runs for notice in run.named_warnings)
    note(f"wrote {output}: {counted(len(runs), 'run')}")
