# SPDX-License-Identifier: Apache-2.0
"""wbscope gate --record: the runs are made until the gate decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wbscope.base.arguments import Argument
from wbscope.base.errors import UsageError, WbscopeError
from wbscope.cli.wording import option
from wbscope.library.library import load_library

if TYPE_CHECKING:
    from wbscope.compare.gate import GateResult
    from wbscope.compare.policy import Policy
    from wbscope.compare.untildecided import Look
    from wbscope.lab.execute import Progress

__all__ = [
    "MaxRunsOption",
    "RecordOption",
    "ResumeOption",
    "RunsInOption",
    "check_words",
    "recorded",
]

RecordOption = Annotated[
    Path | None,
    typer.Option("--record", metavar="MATRIX.toml", help="Make runs of two cells, in turns."),
]
MaxRunsOption = Annotated[
    int, typer.Option("--max-runs", help="With --record: so many runs of each side at most.")
]
RunsInOption = Annotated[
    Path, typer.Option("--runs-in", metavar="DIR", help="With --record: where the runs go.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="With --record: go on with the runs that are there.")
]


def check_words(
    runs: Sequence[str], against: Sequence[str], baseline: Sequence[str], self_check: bool,
    policy: Path | None,
) -> None:  # fmt: skip
    """Raises: UsageError for words that mean runs which are there already."""
    given = [*runs, *(["--baseline", *baseline] if baseline else [])]
    given += ["--self-check"] if self_check else []
    if given or len(against) > 1:
        raise UsageError(
            "two-ways", "--record", "makes the runs of both sides, so there is no place for others",
            have=" ".join(given or against),
            fix="wbscope gate --policy gate.toml --record MATRIX.toml --against CELL",
        )  # fmt: skip
    if policy is None:
        raise UsageError(
            "no-policy", "--record", "makes runs until a policy decides, and there is none",
            fix="wbscope gate --policy gate.toml --record MATRIX.toml",
        )  # fmt: skip


def recorded(
    matrix_file: Path, policy: Policy, base: str | None, most: int, folder: Path, resume: bool,
    say: Callable[[str], None],
) -> GateResult:  # fmt: skip
    """The verdict of the last look.

    Raises: as `wbscope lab` and the gate do.
    """
    from wbscope.compare.load import Loader
    from wbscope.compare.untildecided import look_sizes, until_decided
    from wbscope.lab.gateruns import GateRuns, two_cells
    from wbscope.lab.matrix import MOST_RUNS, read_matrix
    from wbscope.lab.places import Places
    from wbscope.lab.store import opened

    if not 1 <= most <= MOST_RUNS:
        raise UsageError(
            "bad-count", f"--max-runs {most}", f"wanted 1 to {MOST_RUNS}", fix="--max-runs 24"
        )
    matrix = read_matrix(matrix_file)
    side, first = two_cells(matrix, base)
    planned = ", ".join(map(str, look_sizes(most)))
    say(f"{side.name} against {first.name}: a look after {planned} runs of each at most")
    places = Places(load_library(), say)
    for cell in matrix.cells:
        places.check(cell.setup)
    loader = Loader(wanted=policy.wants, allow_damaged=True, checks=policy.checks)
    families = [metric.family for metric in loader.catalog.metrics]
    try:
        with opened(folder, matrix, resume) as store:
            make = GateRuns(matrix, store, places, loader, lambda one: say(_run_line(one)), base)
            return until_decided(make, policy, families, most, lambda one: say(_look_line(one)))
    except WbscopeError as error:
        raise error.spoken(_in_gate) from error


def _in_gate(argument: Argument) -> str:
    """The lab's folder is no output here."""
    if argument.name == "output":
        return option(Argument("runs_in", argument.value))
    return option(argument)


def _run_line(progress: Progress) -> str:
    told = f": {progress.why}" if progress.why else ""
    return f"{progress.job.name}: {progress.seconds:.0f} s{told}"


def _look_line(look: Look) -> str:
    return f"look after {look.runs} + {look.runs} runs: {look.status} (level {look.level:.2g})"
