# SPDX-License-Identifier: Apache-2.0
"""wbscope plot: figures of a run as pictures."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from wbscope.base.errors import EvidenceError, UsageError, WbscopeError
from wbscope.base.outputs import (
    check_folder,
    check_output,
    check_parent,
    make_folder,
    private_output,
)
from wbscope.base.result import Notice
from wbscope.base.span import Span
from wbscope.base.units import counted
from wbscope.cli.options import RUN_HELP, ForceOption, JsonOption, Part, QuietOption, bound
from wbscope.cli.output import (
    error_in_options,
    note,
    option,
    page_width,
    progress_bar,
    show_warnings,
    warnings_in_options,
    write_stdout,
)
from wbscope.plot.figures import Figure, find_figures
from wbscope.plot.panels import Asked, Lacking, ask_figures, why_not
from wbscope.render.catalogue import figure_list
from wbscope.render.json import document, rows_body
from wbscope.run.run import Run, open_run

_PICTURES = "pictures"
# Of a kernel's release, which is as long as a RUN.db has it; uname(2) has 64.
_MOST_RELEASE = 80


class PictureFormat(StrEnum):
    """What kind of file a figure becomes."""

    png = "png"
    svg = "svg"
    pdf = "pdf"


@bound
def plot(
    *,
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help=RUN_HELP, show_default=False),
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIGURE", help="Only these figures.", show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder for the pictures; of one figure also NAME.png.",
        ),
    ] = None,
    formats: Annotated[
        list[PictureFormat] | None,
        typer.Option("--format", help="Kind of picture; repeatable. png by default."),
    ] = None,
    as_list: Annotated[
        bool, typer.Option("--list", help="Print the figures, and those that RUN can have.")
    ] = False,
    part: Part,
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Draw figures of the run as PNG, SVG or PDF.

    Each figure is one query, and a picture in the folder: NAME.png. A figure whose
    events RUN lacks is left out. Without -o, the figures are listed.

    \b
    Examples:
      wbscope plot --list
      wbscope plot RUN -o pictures
      wbscope plot RUN task-wait -o waits.png
      wbscope plot RUN global_dirty_state task-wait -o pictures --format svg
      wbscope plot RUN -o pictures --from 10s --to 20s --force
    """
    chosen = find_figures(figures or [])
    span = part.span()
    if as_list or output is None:
        if as_list and output is not None:
            raise UsageError(
                "two-choices", "--list -o", "are two choices, wanted one", fix="--list"
            )
        if not as_list and run is None:
            raise UsageError(
                "usage", "wbscope plot", "has no RUN to draw", fix="wbscope plot RUN -o DIR"
            )
        _print_list(run, chosen, as_json=as_json, quiet=quiet)
        return
    files = _files(output, chosen, formats or [])
    if run is None:
        fix = f"wbscope plot RUN -o {shlex.quote(output)}"
        raise UsageError("usage", f"-o {output}", "has no RUN to draw", fix=fix)
    for file in files.values():  # all in one folder
        if file.parent.is_dir():
            check_output(file, force, [Path(run)], file.name)
    check_folder(file.parent)
    with (
        progress_bar(run, hidden=quiet or as_json) as bar,
        open_run(run, observer=bar) as opened,
    ):
        asked = ask_figures(opened, chosen, span)
        _write(opened, asked, files, span, force=force, as_json=as_json)


def _print_list(run: str | None, chosen: Sequence[Figure], *, as_json: bool, quiet: bool) -> None:
    reasons: list[WbscopeError | None] | None = None
    if run is not None:
        with (
            progress_bar(run, hidden=quiet or as_json) as bar,
            open_run(run, observer=bar) as opened,
        ):
            show_warnings(() if as_json else opened.warnings())
            found = [why_not(opened, figure) for figure in chosen]
            reasons = [None if error is None else error_in_options(error) for error in found]
    if not as_json:
        write_stdout(figure_list(chosen, reasons, page_width()))
        return
    rows: list[dict[str, Any]] = []
    for number, figure in enumerate(chosen):
        row: dict[str, Any] = {"name": figure.name, "title": figure.title, "query": figure.query}
        if reasons is not None:
            error = reasons[number]
            row["is_there"] = error is None
            row["why_not"] = None if error is None else error.message
        rows.append(row)
    write_stdout(document("figures", {} if run is None else {"run": run}, rows_body(rows, [])))


def _files(
    output: str, chosen: Sequence[Figure], formats: Sequence[PictureFormat]
) -> dict[tuple[str, str], Path]:
    """By figure and format."""
    kinds = [kind.value for kind in dict.fromkeys(formats or [PictureFormat.png])]
    path = Path(output)
    ending = path.suffix.removeprefix(".").lower()
    if ending in set(PictureFormat) and not path.is_dir():  # as people name one picture
        if len(chosen) == 1 and (kinds == [ending] or not formats):
            return {(chosen[0].name, ending): path}
        pictures = counted(len(chosen) * len(kinds), "picture")
        problem = f"is the name of one {ending.upper()}, wanted a folder for {pictures}"
        raise UsageError("output-is-picture", f"-o {output}", problem, fix=f"-o {_PICTURES}")
    folder = _folder(output)
    return {
        (figure.name, kind): folder / f"{figure.name}.{kind}" for figure in chosen for kind in kinds
    }


def _folder(output: str) -> Path:
    """Where pictures go: a folder, or a name where there is room for one."""
    fix = f"-o {_PICTURES}"
    if not output:
        raise UsageError("no-output", "-o ''", "is empty, wanted a folder", fix=fix)
    if output == "-":
        raise UsageError("output-is-stdout", "-o -", "is stdout, wanted a folder", fix=fix)
    folder = Path(output)
    check_parent(folder)
    if not folder.is_dir() and os.path.lexists(folder):
        raise UsageError("output-is-file", output, "is a file, wanted a folder", fix=fix)
    return folder


def _write(
    run: Run,
    asked: Sequence[Asked | Lacking],
    files: Mapping[tuple[str, str], Path],
    span: Span,
    *,
    force: bool,
    as_json: bool,
) -> None:
    from wbscope.plot.picture import picture

    drawn = [one for one in asked if isinstance(one, Asked)]
    lacking = [one for one in asked if isinstance(one, Lacking)]
    warnings = list(dict.fromkeys(n for one in drawn for n in one.result.warnings))
    if not as_json:
        show_warnings(warnings or run.warnings())
    skipped = [_skipped(one) for one in lacking]
    if not as_json:
        show_warnings(skipped)
    if not drawn:
        raise _nothing(run, lacking)
    folder = next(iter(files.values())).parent
    make_folder(folder)
    kinds = list(dict.fromkeys(kind for _, kind in files))
    rows = []
    for one in drawn:
        made = picture(
            one.panels, one.grid, one.figure.title, _small_print(run, one, span),
            [n.message for n in warnings_in_options(one.result.warnings)], kinds,
        )  # fmt: skip
        for kind, content in made.items():
            file = files[one.figure.name, kind]
            with private_output(file, force=force) as private:
                private.write_bytes(content)
            rows.append(
                {"figure": one.figure.name, "query": one.figure.query, "window": one.window,
                 "rows": len(one.result), "output": str(file)}
            )  # fmt: skip
    if as_json:
        body = rows_body(rows, [*warnings, *skipped])
        write_stdout(document("plot", {"run": run.name}, body))
        return
    pictures, figures = counted(len(rows), "picture"), counted(len(drawn), "figure")
    place = next(iter(files.values())) if len(files) == 1 else folder
    note(f"wrote {pictures} of {figures} to {place}")


def _small_print(run: Run, one: Asked, span: Span) -> list[str]:
    """The run, and what prints the numbers; a path would be another one elsewhere."""
    name = Path(run.name).resolve().name
    if name == "trace.dat":
        name = Path(run.name).resolve().parent.name
    words = f"wbscope query {one.figure.query} RUN"
    if one.window is not None:
        words += f" --window {one.window}"
    if span:
        words += f" {span.words().spoken(option)}"
    kernel = str(run.recorded().meta.get("kernel_release") or "")[:_MOST_RELEASE]
    return [f"{name}{f', Linux {kernel}' if kernel else ''}; numbers: {words}"]


def _skipped(one: Lacking) -> Notice:
    error = error_in_options(one.error)
    return Notice(error.slug, f"{one.figure.name} left out: {error.message}")


def _nothing(run: Run, lacking: Sequence[Lacking]) -> EvidenceError:
    if len(lacking) == 1:
        return lacking[0].error
    return EvidenceError(
        "nothing-to-draw",
        run.name,
        f"has nothing for any of {len(lacking)} figures",
        fix=f"wbscope plot {shlex.quote(run.name)} --list",
    )
