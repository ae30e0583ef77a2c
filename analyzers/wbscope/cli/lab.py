# SPDX-License-Identifier: Apache-2.0
"""wbscope lab: n interleaved runs of each cell of a matrix."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from wbscope.base.errors import SetupError, UsageError
from wbscope.base.outputs import (
    check_output,
    check_parent,
    give_to_caller,
    make_folder,
    private_output,
    write_whole,
)
from wbscope.base.units import counted
from wbscope.cli import lab_bisect
from wbscope.cli.formats import write_document
from wbscope.cli.options import JsonOption, Output, QuietOption, bound
from wbscope.cli.output import note, progress_bar, write_stdout
from wbscope.cli.verbs import HELP_OPTIONS, verb_group
from wbscope.library.library import load_library
from wbscope.render.blocks import TEXT
from wbscope.render.json import document, rows_body

if TYPE_CHECKING:
    from wbscope.lab.judging import Progress
    from wbscope.lab.matrix import Job
    from wbscope.lab.store import Finished
    from wbscope.lab.summary import LabReport


class LabStyle(StrEnum):
    """How the report looks."""

    text = "text"
    markdown = "markdown"
    lkml = "lkml"


@bound
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of a lab, or what --save wrote.")
    ],
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Instead of the usual ones; 'throttle*'."),
    ] = None,
    cell: Annotated[
        str | None, typer.Option("--cell", metavar="CELL", help="Compare this one cell.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="CELL", help="With this one.")
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option("--pairs", metavar="N", min=0, help="So many pairs of cells; default 12."),
    ] = None,
    style: Annotated[
        LabStyle, typer.Option(help="lkml: 72 columns for a mailing list.")
    ] = LabStyle.text,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="FILE.json", help="Keep the numbers of all runs."),
    ] = None,
    out: Output,
) -> None:
    """Report the finished runs of a lab.

    First the setup and what is missing, then the cells, then the change along
    each axis and whether it is decided. -o FOLDER has a picture of each metric.
    docs/lab.md says more.

    \b
    Examples:
      wbscope lab report lab
      wbscope lab report lab --metric 'throttle_summary*' -o pictures
      wbscope lab report lab --cell 6.1,low --against 6.1,free
      wbscope lab report lab --style lkml
      wbscope lab report lab --save results.json
      wbscope lab report results.json
    """
    if style is LabStyle.markdown:
        out = replace(out, as_markdown=True)
    folder_of_pictures = _pictures_folder(out)
    if folder_of_pictures is not None:
        out = replace(out, output="-")
    is_text = out.form == TEXT and style is not LabStyle.lkml
    if pairs is not None and not is_text:
        told = "is for the text, all pairs are in the other forms"
        raise UsageError("two-formats", f"--pairs {pairs}", told, fix="--style text")
    if out.flag and style is LabStyle.lkml:
        told = f"{out.flag} --style {style.value}"
        raise UsageError("two-formats", told, "exclude each other, wanted one", fix=out.flag)
    lab = _read(folder)
    if cell is not None or against is not None:
        wrong = "--style lkml" if style is LabStyle.lkml else "-o FOLDER"
        if style is LabStyle.lkml or folder_of_pictures is not None:
            raise UsageError(
                "whole-lab", wrong, "is for the whole lab, not for two cells",
                fix=shlex.join(["wbscope", "lab", "report", str(folder)]),
            )  # fmt: skip
        _compare(folder, _pair(folder, lab, cell, against), metric, out)
        return
    out.check([str(folder)], noun="report")
    if folder_of_pictures is not None:
        _check_folder(folder_of_pictures, out.force)
    if save is not None:
        check_output(save, out.force, [folder], "results.json", argument="save")
    from wbscope.lab.summary import kept_text, lab_report
    from wbscope.render.lab import MOST_PAIRS, lab_document
    from wbscope.render.lab_mail import lab_mail

    made = lab_report(lab, metric or (), watch=lambda run: progress_bar(run, hidden=out.hidden))
    page = lab_document(made, MOST_PAIRS if pairs is None else pairs)
    if style is LabStyle.lkml:
        page = replace(page, text=lambda _: lab_mail(made))
    if folder_of_pictures is not None:
        _write_pictures(folder_of_pictures, _pictures(made), out.force)
    if save is not None:
        write_whole(save, kept_text(made), force=out.force)
        note(f"wrote {save}")
    write_document(page, out)


def _pictures_folder(out: Output) -> Path | None:
    """A name that is that of no document is a folder for pictures."""
    return None if out.output == "-" or out.is_named else Path(out.output)


def _read(folder: Path) -> Finished:
    if folder.is_file():
        from wbscope.lab.summary import read_kept

        return read_kept(folder)
    from wbscope.lab.store import read_finished

    return read_finished(folder)


def _pair(folder: Path, lab: Finished, cell: str | None, against: str | None) -> tuple[str, str]:
    """Two cells that have runs."""
    known = [one.name for one in lab.cells if one.runs]
    words = ["wbscope", "lab", "report", str(folder), "--cell", known[-1] if known else "CELL",
             "--against", known[0] if known else "CELL"]  # fmt: skip
    for option, name in (("--cell", cell), ("--against", against)):
        if name not in known:
            told = "is no cell with finished runs" if name else "is missing, wanted a cell"
            raise UsageError(
                "no-cell", name or option, told, have=" ".join(known), fix=shlex.join(words)
            )
    return str(cell), str(against)


def _compare(folder: Path, cells: tuple[str, str], metric: list[str] | None, out: Output) -> None:
    """What `wbscope compare` prints for the folders of two cells."""
    from wbscope.cli.compare import compare_runs

    if folder.is_file():
        raise UsageError(
            "no-runs", str(folder), "has numbers of runs, wanted the folder of the lab",
            fix=shlex.join(["wbscope", "lab", "report", str(folder)]),
        )  # fmt: skip
    given = {"B": [str(folder / cells[1])], "A": [str(folder / cells[0])]}
    compare_runs(given, out, metric=metric)


def _check_folder(folder: Path, force: bool) -> None:
    """Known before any work."""
    check_parent(folder)
    if folder.exists() and not folder.is_dir():
        raise UsageError("output-exists", str(folder), "is no folder", fix="-o pictures")
    there = sorted(path.name for path in folder.glob("*.png")) if folder.is_dir() else []
    if there and not force:
        raise UsageError(
            "output-exists", str(folder), f"has pictures in it: {there[0]}",
            fix="add --force to replace those of the same names, or choose another folder with -o",
        )  # fmt: skip


def _pictures(made: LabReport) -> Iterable[tuple[str, bytes]]:
    try:
        from wbscope.render.lab import lab_plots

        return list(lab_plots(made))
    except ImportError as error:
        raise SetupError(
            "missing-package", error.name or "matplotlib", "is not installed, pictures need it",
            fix="pip install matplotlib",
        ) from error  # fmt: skip


def _write_pictures(folder: Path, pictures: Iterable[tuple[str, bytes]], force: bool) -> None:
    make_folder(folder)
    for name, content in pictures:
        with private_output(folder / name, force=force) as private:
            private.write_bytes(content)
        note(f"wrote {folder / name}")


_MINUTE = 60


class _LabGroup(TyperGroup):
    """`lab MATRIX.toml` is `lab run MATRIX.toml`, as is `lab --list MATRIX.toml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        is_tab = ctx.resilient_parsing and not args
        if not is_tab and (not args or args[0] not in (*self.commands, *HELP_OPTIONS)):
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
    from wbscope.lab.judging import make_runs
    from wbscope.lab.matrix import interleaved, read_matrix
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


app.command()(report)
app.command()(lab_bisect.bisect)
