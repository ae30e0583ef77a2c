# SPDX-License-Identifier: Apache-2.0
"""wbscope lab: n interleaved runs of each cell of a matrix."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from wbscope.base.errors import SetupError
from wbscope.base.sudo_caller import give_to_caller
from wbscope.base.units import counted
from wbscope.cli import labbisect, labreport
from wbscope.cli.group import HELP_OPTIONS, verb_group
from wbscope.cli.options import JsonOption, QuietOption
from wbscope.cli.output import note, write_stdout
from wbscope.library.library import load_library
from wbscope.render.jsondoc import document, rows_body

if TYPE_CHECKING:
    from wbscope.lab.execute import Progress
    from wbscope.lab.order import Job

__all__ = ["app", "run"]

_MINUTE = 60


class _LabGroup(TyperGroup):
    """`lab MATRIX.toml` is `lab run MATRIX.toml`, as is `lab --list MATRIX.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in HELP_OPTIONS):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = verb_group("lab", cls=_LabGroup)


@app.callback()
def lab() -> None:
    """Record runs of a matrix in turns, and tell what they show.

    A first word that is no command is the matrix of a run.

    \b
    Examples:
      wbscope lab examples/lab/lower-limit/matrix.toml -o lab
      wbscope lab report lab
      wbscope lab bisect matrix.toml --axis kernel --metric pause_p99_ns
    """


@app.command()
def run(
    matrix: Annotated[
        Path, typer.Argument(metavar="MATRIX.toml", help="Kernels, settings, disks, workload.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="A new folder for the runs.")
    ] = Path("lab"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Make what is missing; finished runs stay.")
    ] = False,
    list_runs: Annotated[
        bool, typer.Option("--list", help="Print the runs in their order, and end.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check all, fetch kernels, make no run.")
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Record n runs of each cell of a matrix, in turns.

    Guests are booted in QEMU with or without KVM.  A run that fails is told and
    kept in CELL/run-N.failed; the others follow.  docs/lab.md has every key.

    \b
    Examples:
      wbscope lab run examples/lab/lower-limit/matrix.toml -o lab
      wbscope lab matrix.toml -o lab --resume
      wbscope lab matrix.toml --list
      wbscope compare lab/low --against lab/free
    """
    # Inside, so that no other verb waits for these modules.
    from wbscope.lab.execute import make_runs
    from wbscope.lab.matrix import read_matrix
    from wbscope.lab.order import interleaved
    from wbscope.lab.places import Places
    from wbscope.lab.store import opened

    wanted = read_matrix(matrix)
    jobs = list(interleaved(wanted))
    if list_runs:
        _show(jobs, as_json)
        return
    say = (lambda _: None) if quiet or as_json else note
    places = Places(load_library(), say)
    if dry_run:
        for cell in wanted.cells:
            places.check(cell.setup)
        _show_dry(jobs, len(wanted.cells), wanted.runs, as_json)
        return
    with opened(output, wanted, resume) as store:
        try:
            summary = make_runs(wanted, store, places, lambda progress: say(_line(progress)))
        finally:
            with contextlib.suppress(OSError):  # a file system without owners
                give_to_caller(output)
    if as_json:
        rows = [
            {"run": str(store.path(job)), "cell": job.cell.name, "values": job.cell.values,
             "number": job.number, "failed": summary.failed.get(job.name)}
            for job in jobs
        ]  # fmt: skip
        write_stdout(document("lab", {}, rows_body(rows, ())))
    made = f"{counted(summary.made, 'run')} made"
    say(f"{made}, {summary.kept} were there, {len(summary.failed)} failed")
    if summary.failed:
        name, why = next(iter(summary.failed.items()))
        raise SetupError(
            "runs-failed",
            str(output),
            f"{len(summary.failed)} of {len(jobs)} runs are missing; {name}: {why}",
            fix=shlex.join(["wbscope", "lab", str(matrix), "-o", str(output), "--resume"])
            + f"    # makes them again; {output}/{name}.failed has what is left of one",
        )


def _show_dry(jobs: list[Job], cells: int, runs: int, as_json: bool) -> None:
    """All was checked; with JSON, the runs that would be made, as --list has them."""
    if as_json:
        _show(jobs, as_json)
        return
    each = f"{counted(runs, 'run')} of each"
    write_stdout(f"{counted(cells, 'cell')}, {each}: nothing is missing\n")


def _show(jobs: list[Job], as_json: bool) -> None:
    rows = [
        {
            "place": place,
            "run": job.name,
            "values": job.cell.values,
            "kernel_source": str(job.cell.setup.kernel),
        }
        for place, job in enumerate(jobs, 1)
    ]
    if as_json:
        write_stdout(document("lab", {}, rows_body(rows, ())))
        return
    write_stdout(
        "".join(f"{row['place']:4d}  {row['run']}  ({row['kernel_source']})\n" for row in rows)
    )


def _line(progress: Progress) -> str:
    ended = f"failed: {progress.why}" if progress.why else "done"
    left = f", about {_time(progress.left_s)} left" if progress.number < progress.of else ""
    return (
        f"{progress.number} of {progress.of}: {progress.job.name} {ended}"
        f" ({_time(progress.seconds)}{left})"
    )


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 2 * _MINUTE else f"{seconds / _MINUTE:.0f} min"


app.command()(labreport.report)
app.command()(labbisect.bisect)
