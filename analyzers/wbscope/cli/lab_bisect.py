# SPDX-License-Identifier: Apache-2.0
"""wbscope lab bisect: the first name of an axis from which on a metric is worse."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wbscope.base.errors import EvidenceError, UsageError
from wbscope.base.outputs import write_whole
from wbscope.base.system import absolute
from wbscope.cli.options import JsonOption, QuietOption
from wbscope.cli.output import note, page_width, write_stdout
from wbscope.library.library import load_library

if TYPE_CHECKING:
    from wbscope.lab.bisect import Found, LabRunner
    from wbscope.lab.judging import Plan
    from wbscope.lab.matrix import Cell, Matrix


def bisect(
    matrix: Annotated[
        Path, typer.Argument(metavar="MATRIX.toml", help="Kernels or settings, and the workload.")
    ],
    metric: Annotated[str, typer.Option("--metric", metavar="NAME", help="What gets worse.")],
    axis: Annotated[
        str | None, typer.Option("--axis", metavar="NAME", help="Walk along this axis.")
    ] = None,
    good: Annotated[
        str | None, typer.Option("--good", metavar="CELL", help="Begin here, not at the first.")
    ] = None,
    bad: Annotated[
        str | None, typer.Option("--bad", metavar="CELL", help="End here, not at the last.")
    ] = None,
    worse_by: Annotated[
        str, typer.Option("--worse-by", metavar="SHARE", help="Less is no change.")
    ] = "10%",
    max_runs: Annotated[
        int | None, typer.Option("--max-runs", metavar="N", min=1, help="End before more.")
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="A new folder for the runs.")
    ] = Path("bisect"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on; runs that are there count.")
    ] = False,
    git: Annotated[str | None, typer.Option("--git", hidden=True)] = None,
    build: Annotated[str | None, typer.Option("--build", hidden=True)] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find from which kernel or setting on a metric is worse.

    Each point gets 6, 12 or 24 runs, until it is surely good or bad; one that
    is neither is skipped and never called bad. The border is tested again with
    fresh runs. docs/lab.md says how sure that is, and how git bisect run finds
    a commit. Exit 4: nothing was found.

    \b
    Examples:
      wbscope lab bisect matrix.toml --axis kernel --metric pause_p99_ns
      wbscope lab bisect matrix.toml --axis limit --metric pause_p99_ns \\
        --good 6.1,16M --bad 6.1,1G
    """
    from wbscope.base.units import parse_quantity
    from wbscope.lab.bisect import axis_cells
    from wbscope.lab.matrix import read_matrix

    if git is not None or build is not None:
        _refuse_git(matrix, git or "REPO", build or "make -j8 bzImage", good, bad, output)
    margin = parse_quantity("--worse-by", worse_by, "ratio")
    if not 0 <= margin < 1:
        raise UsageError(
            "bad-margin", f"--worse-by {worse_by}", "is no share from 0 to 100 %",
            fix="--worse-by 10%",
        )  # fmt: skip
    if axis is None:
        raise UsageError(
            "no-series", "lab bisect", "wants --axis",
            fix=f"wbscope lab bisect {shlex.quote(str(matrix))} --axis kernel --metric NAME",
        )  # fmt: skip
    wanted = read_matrix(matrix)
    say = (lambda _: None) if quiet or as_json else note
    ends = {"--axis": axis, "--good": good, "--bad": bad, "--worse-by": worse_by}
    # The same command for somebody else, who has the matrix as matrix.toml.
    words = ["wbscope", "lab", "bisect", "matrix.toml", "--metric", metric]
    words += [word for option, value in ends.items() if value for word in (option, value)]
    found, plan, runner = _walked(
        wanted, axis_cells(wanted, axis, good, bad), axis, metric, margin, max_runs, output,
        resume, say, words,
    )  # fmt: skip
    from wbscope.render.lab_mail import bisect_json, bisect_text

    document = bisect_json(found, runner.metric, plan)
    write_whole(output / "bisect.json", document)
    text = document if as_json else bisect_text(found, runner.metric, plan, page_width())
    write_stdout(text)
    if found.status != "found":
        raise typer.Exit(EvidenceError.exit_code)


def _refuse_git(
    matrix: Path, folder: str, build: str, good: str | None, bad: str | None, output: Path
) -> None:
    """The walk along commits was taken out: git has it, and gate the verdict that it wants."""
    runs = shlex.quote(f"{absolute(output)}-")
    judge = (
        f"{build} || exit 125; exec wbscope gate --record {shlex.quote(str(absolute(matrix)))}"
        f" --policy {shlex.quote(str(absolute(matrix.with_name('gate.toml'))))}"
        f" --runs-in {runs}$(git rev-parse --short HEAD) --exit-codes bisect"
    )
    git = f"git -C {shlex.quote(folder)} bisect"
    ends = shlex.join([bad or "BAD", good or "GOOD"])
    raise UsageError(
        "removed-option", "--git", "is gone: git bisect run walks along commits, gate judges them",
        have="it wants a matrix of two cells, the good kernel and what is built: docs/lab.md",
        fix=f"{git} start {ends} && {git} run sh -c {shlex.quote(judge)}",
    )  # fmt: skip


def _walked(
    matrix: Matrix, cells: Sequence[Cell], axis: str, metric: str, margin: float,
    max_runs: int | None, output: Path, resume: bool, say: Callable[[str], None], words: list[str],
) -> tuple[Found[str], Plan, LabRunner]:  # fmt: skip
    """How it ended, by what plan, and who made the runs."""
    from wbscope.lab.bisect import LabRunner, note_search, of_cells, planned_tests, search
    from wbscope.lab.judging import Judge, Plan
    from wbscope.lab.places import Places
    from wbscope.lab.store import opened

    places = Places(load_library(), say)
    for cell in cells:
        places.check(cell.setup)
    by_name = {cell.name: cell for cell in cells}
    points = list(by_name)
    plan = Plan(margin, planned_tests(len(points)), most_runs=max_runs)
    say(f"{len(points)} points: {plan.least_runs} runs or more")
    own = of_cells(matrix, axis, cells)
    with opened(output, own, resume) as store:
        note_search(store.folder, words)
        runner = LabRunner(own, store, places, by_name, metric, say)
        judge = Judge(points[0], points[-1], runner, plan)
        told = search(points, judge, lambda test: say(f"{test.point}: {test.verdict} ({test.why})"))
    return told, plan, runner
