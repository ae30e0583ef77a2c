# SPDX-License-Identifier: Apache-2.0
"""wbscope lab bisect: the first kernel, or commit, from which on a metric is worse."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wbscope.base.errors import EvidenceError, InputError, UsageError
from wbscope.base.outputs import write_whole
from wbscope.cli.options import JsonOption, QuietOption
from wbscope.cli.output import note, page_width, write_stdout
from wbscope.library.library import load_library

if TYPE_CHECKING:
    from wbscope.lab.bisect import Found, LabRunner
    from wbscope.lab.judging import Plan, Test
    from wbscope.lab.matrix import Cell, Matrix


def bisect(
    matrix: Annotated[
        Path, typer.Argument(metavar="MATRIX.toml", help="Kernels or commits, and the workload.")
    ],
    metric: Annotated[str, typer.Option("--metric", metavar="NAME", help="What gets worse.")],
    axis: Annotated[
        str | None, typer.Option("--axis", metavar="NAME", help="Walk along this axis.")
    ] = None,
    git: Annotated[
        Path | None, typer.Option("--git", metavar="REPO", help="Walk along commits.")
    ] = None,
    build: Annotated[
        str | None, typer.Option("--build", metavar="CMD", help="Makes the kernel, in REPO.")
    ] = None,
    good: Annotated[
        str | None, typer.Option("--good", metavar="CELL", help="Or a commit, with --git.")
    ] = None,
    bad: Annotated[
        str | None, typer.Option("--bad", metavar="CELL", help="Or a commit, with --git.")
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
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find from which kernel or commit on a metric is worse.

    Each point gets 6, 12 or 24 runs, until it is surely good or bad; one that
    is neither is skipped and never called bad. The border is tested again with
    fresh runs. docs/lab.md says how sure that is. Exit 4: nothing was found.

    \b
    Examples:
      wbscope lab bisect matrix.toml --axis kernel --metric pause_p99_ns
      wbscope lab bisect one.toml --git linux --build 'make -j8 bzImage' \\
        --good v6.1 --bad v6.12 --metric pause_p99_ns
    """
    from wbscope.base.units import parse_quantity
    from wbscope.lab.matrix import read_matrix

    margin = parse_quantity("--worse-by", worse_by, "ratio")
    if not 0 <= margin < 1:
        raise UsageError(
            "bad-margin", f"--worse-by {worse_by}", "is no share from 0 to 100 %",
            fix="--worse-by 10%",
        )  # fmt: skip
    if (axis is None) == (git is None):
        raise UsageError(
            "no-series", "lab bisect", "wants one of --axis and --git",
            fix=f"wbscope lab bisect {shlex.quote(str(matrix))} --axis kernel --metric NAME",
        )  # fmt: skip
    if git is not None and None in (build, good, bad):
        raise UsageError(
            "no-series", "--git", "wants --build, --good and --bad",
            fix="--build 'make -j2 bzImage' --good v6.1 --bad HEAD",
        )  # fmt: skip
    wanted = read_matrix(matrix)
    words = _words(metric, axis, git, build, good, bad, worse_by)
    say = (lambda _: None) if quiet or as_json else note
    walk = _Walk(wanted, metric, margin, max_runs, output, resume, say, words)
    if axis is not None:
        found, plan, runner, titles = walk.along(axis, good, bad)
    else:
        found, plan, runner, titles = walk.commits(Path(str(git)), str(build), str(good), str(bad))
    from wbscope.render.lab_mail import bisect_json, bisect_text

    document = bisect_json(found, runner.metric, plan)
    write_whole(output / "bisect.json", document)
    text = document if as_json else bisect_text(found, runner.metric, plan, titles, page_width())
    write_stdout(text)
    if found.status != "found":
        raise typer.Exit(EvidenceError.exit_code)


def _words(
    metric: str, axis: str | None, git: Path | None, build: str | None, good: str | None,
    bad: str | None, worse_by: str,
) -> list[str]:  # fmt: skip
    """The same command for somebody else, who has the matrix as matrix.toml."""
    given = {"--axis": axis, "--git": git and git.name, "--build": build, "--good": good,
             "--bad": bad, "--worse-by": worse_by}  # fmt: skip
    words = ["wbscope", "lab", "bisect", "matrix.toml", "--metric", metric]
    return words + [word for option, value in given.items() if value
                    for word in (option, str(value))]  # fmt: skip


Ended = tuple["Found[str]", "Plan", "LabRunner", dict[str, str]]


class _Walk:
    """What both kinds of series share."""

    def __init__(
        self, matrix: Matrix, metric: str, margin: float, most_runs: int | None, output: Path,
        resume: bool, say: Callable[[str], None], words: list[str],
    ) -> None:  # fmt: skip
        from wbscope.lab.places import Places

        self._matrix, self._metric, self._margin = matrix, metric, margin
        self._most_runs, self._output, self._resume, self._say = most_runs, output, resume, say
        self._places, self._words = Places(load_library(), say), words

    def along(self, axis: str, good: str | None, bad: str | None) -> Ended:
        """Names of an axis."""
        from wbscope.lab.bisect import LabRunner, axis_cells, note_search, of_cells, search
        from wbscope.lab.judging import Judge
        from wbscope.lab.store import opened

        cells = axis_cells(self._matrix, axis, good, bad)
        for cell in cells:
            self._places.check(cell.setup)
        by_name = {cell.name: cell for cell in cells}
        points = list(by_name)
        plan = self._plan(len(points))
        own = of_cells(self._matrix, axis, cells)
        with opened(self._output, own, self._resume) as store:
            note_search(store.folder, self._words)
            runner = LabRunner(
                own, store, self._places, by_name.__getitem__, self._metric, self._say
            )
            judge = Judge(points[0], points[-1], runner, plan)
            return search(points, judge, self._told), plan, runner, {}

    def commits(self, folder: Path, build: str, good: str, bad: str) -> Ended:
        """Commits that git chooses."""
        from wbscope.lab.bisect import (
            Broken,
            LabRunner,
            add_cell,
            commit_cell,
            note_search,
            of_cells,
            only_cell,
        )
        from wbscope.lab.gitsteps import Builds, Repository, git_search
        from wbscope.lab.judging import Judge
        from wbscope.lab.store import opened

        cell = only_cell(self._matrix)
        self._places.check(cell.setup)
        repository = Repository(folder)
        repository.require()
        first, last = repository.commit(good), repository.commit(bad)
        plan = self._plan(repository.check(first, last) + 1)
        ends = [commit_cell(cell, one, cell.setup.kernel) for one in (first, last)]
        own = of_cells(self._matrix, "commit", ends, build)
        with opened(self._output, own, self._resume) as store, repository.as_it_was():
            note_search(store.folder, self._words)
            builds = Builds(
                repository, build, cell.setup.kernel, store.folder / "builds", self._say
            )

            @cache
            def of(commit: str) -> Cell:
                made = commit_cell(cell, commit, builds.of(commit))
                try:
                    self._places.check(made.setup)
                except InputError as error:
                    raise Broken(f"its kernel: {error.message}") from error
                add_cell(store.folder, made)
                return made

            runner = LabRunner(own, store, self._places, of, self._metric, self._say)
            judge = Judge(first, last, runner, plan)
            found = git_search(repository, judge, self._told)
            seen = [found.last_good, found.first_bad, *(test.point for test in found.tests)]
            return found, plan, runner, {one: repository.title(one) for one in seen}

    def _plan(self, points: int) -> Plan:
        from wbscope.lab.bisect import planned_tests
        from wbscope.lab.judging import Plan

        plan = Plan(self._margin, planned_tests(points), most_runs=self._most_runs)
        self._say(f"{points} points: {plan.least_runs} runs or more")
        return plan

    def _told(self, test: Test[str]) -> None:
        self._say(f"{test.point}: {test.verdict} ({test.why})")
