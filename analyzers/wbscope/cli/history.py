# SPDX-License-Identifier: Apache-2.0
"""wbscope history: results of runs by commit in a file, and what changed in them."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wbscope.base.errors import EvidenceError, UsageError
from wbscope.base.system import as_utf8
from wbscope.base.units import counted
from wbscope.cli.formats import write_document
from wbscope.cli.options import JsonOption, Output, QuietOption, bound
from wbscope.cli.output import note, progress_bar, show_warnings, write_stdout
from wbscope.cli.verbs import verb_group

if TYPE_CHECKING:
    from wbscope.compare.history import Place


app = verb_group("history", no_args_is_help=True)

FileArgument = Annotated[
    str, typer.Argument(metavar="FILE.db", help="The history.", show_default=False)
]


@app.callback()
def history() -> None:
    """Keep results of runs by commit, and tell what changed when.

    \b
    Examples:
      wbscope history add history.db RUN
      wbscope history show history.db
      wbscope history show history.db -o trend.html
    """


@app.command()
def add(
    file: FileArgument,
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Runs, folders of runs, or baselines.")
    ],
    commit: Annotated[
        str | None, typer.Option(metavar="SHA", help="What was measured; else git's HEAD here.")
    ] = None,
    date: Annotated[
        str | None, typer.Option(metavar="DATE", help="Of the commit; else as git has it.")
    ] = None,
    branch: Annotated[
        str | None, typer.Option(metavar="NAME", help="Else the branch that git is on.")
    ] = None,
    allow_damaged: Annotated[
        bool, typer.Option("--allow-damaged", help="Also runs that were read in part.")
    ] = False,
    allow_failed: Annotated[
        bool, typer.Option("--allow-failed", help="Also runs whose command failed.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Store all numbers of runs under their commit.

    All runs are stored, or none when something is wrong. The file is made where
    there is none. A run that it has already, by its content and not by its name,
    is reported and not stored again.

    \b
    Examples:
      wbscope history add history.db RUN
      wbscope history add history.db runs/ --commit v6.12-rc1 --date 2026-11-03
    """
    place = _place(file, runs, commit, date, branch)
    from wbscope.compare.history import add_runs
    from wbscope.compare.load import Loader
    from wbscope.render.history import added_runs_json

    loader = Loader(
        watch=lambda run: progress_bar(run, hidden=quiet or as_json), allow_damaged=allow_damaged
    )
    side = loader.side("runs", runs)
    for run in side.runs:
        if run.failed and not allow_failed:
            raise EvidenceError(
                "command-failed",
                run.name,
                run.failed[0].message,
                effect="what it measured is no result of this commit",
                fix="record it again, or allow it: --allow-failed",
            )
    named = [replace(run, name=as_utf8(run.name)) for run in side.runs]
    new, known = add_runs(Path(file), named, place)
    if as_json:
        write_stdout(added_runs_json(file, place, new, known))
        return
    show_warnings(notice for run in named for notice in run.named_warnings)
    for run, where in known:
        note(f"{run.name} is there already, at {where}: left as it is")
    names = {name for run in new for name in run.scalars}
    counts = f"{counted(len(new), 'run')}, {counted(len(names), 'metric')}"
    told = f"added to {file}: {counts}" if new else "nothing added"
    note(f"{told}, at {place.commit} ({place.date.date().isoformat()})" if new else told)


@app.command()
@bound
def show(
    file: FileArgument,
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Only this one; 'throttle*' is several."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only commits of this date or later.")
    ] = None,
    branch: Annotated[
        str | None, typer.Option(metavar="NAME", help="Else that of the newest run.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All changes, not the first ten.")] = False,
    out: Output,
) -> None:
    """Show what changed, at which commit and how surely.

    The most evident change comes first. Runs are those of one branch and one
    machine, which the newest run is of; kernels may differ. With -o trend.html,
    one page with a plot of each metric.

    \b
    Examples:
      wbscope history show history.db
      wbscope history show history.db --metric 'fio.*' --since 2026-10-01
      wbscope history show history.db -o trend.html
      wbscope history show history.db --json
    """
    out.check([file], noun="trend")
    from wbscope.compare.history import parse_date, read_history
    from wbscope.compare.trend import trends
    from wbscope.render.history import history_document

    start = None if since is None else parse_date("--since", since)
    found = trends(read_history(Path(file)), metric or ["*"], start, branch)
    write_document(history_document(found, file, full), out)


def _place(
    file: str, runs: Sequence[str], commit: str | None, date: str | None, branch: str | None
) -> Place:
    """What was given, the rest from the git repository of the current folder."""
    from wbscope.compare.history import Place, parse_date

    told = None if date is None else parse_date("--date", date)
    if commit is not None and told is not None:
        return Place(commit, told, branch or "")
    found = _of_git(commit or "HEAD")
    if found is None:
        missing = "date" if commit else "commit" if told else "commit and date"
        words = ["wbscope", "history", "add", file, *runs]
        words += ["--commit", commit or "abc1234", "--date", date or "2026-11-03"]
        raise UsageError(
            "no-commit",
            "history add",
            f"knows no {missing}: git has no {commit or 'HEAD'} in this folder",
            fix=shlex.join([*words, *([] if branch is None else ["--branch", branch])]),
        )
    return replace(
        found,
        date=told or found.date,
        # Whatever is checked out here is no word on another commit.
        branch=branch if branch is not None else "" if commit else found.branch,
    )


def _of_git(commit: str) -> Place | None:
    """None where git, a repository or the commit is missing."""
    from wbscope.compare.history import Place

    try:
        shown = _git("show", "-s", "--format=%H %cI", "--end-of-options", f"{commit}^{{commit}}")
        name, when = shown.split()
        return Place(name, datetime.fromisoformat(when), _git("branch", "--show-current").strip())
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", check=True,
    )  # fmt: skip
    return done.stdout
