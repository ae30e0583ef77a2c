# SPDX-License-Identifier: Apache-2.0
"""wbscope compare: runs against runs, metric by metric."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.errors import UsageError
from wbscope.base.outputs import check_output, write_whole
from wbscope.cli.formats import Format
from wbscope.cli.options import (
    ForceOption,
    JsonOption,
    MarkdownOption,
    OutputOption,
    QuietOption,
)
from wbscope.cli.output import note, page_width, progress_bar, write_stdout
from wbscope.cli.sides import AgainstOption, BaselineOption, FacesOption, SideOption, named_sides

__all__ = ["RunsOption", "compare"]

RunsOption = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN...]", help="Runs, folders or files of runs, archives, baselines."),
]


class Style(StrEnum):
    """How the table looks."""

    table = "table"
    mmtests = "mmtests"


def compare(
    runs: RunsOption = None,
    against: AgainstOption = None,
    baseline: BaselineOption = None,
    side: SideOption = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME", help="Only this one; 'throttle*' is several."),
    ] = None,
    margin: Annotated[
        str, typer.Option(metavar="SHARE", help="A change up to this share gets no face.")
    ] = "5%",
    style: Annotated[Style, typer.Option(help="mmtests: as that suite prints it.")] = Style.table,
    full: Annotated[bool, typer.Option("--full", help="All metrics, not the ten first.")] = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="Also means and s.d., trimmed and not.")
    ] = False,
    no_faces: FacesOption = False,
    allow_damaged: Annotated[
        bool, typer.Option("--allow-damaged", help="Also runs that were read in part.")
    ] = False,
    as_json: JsonOption = False,
    as_markdown: MarkdownOption = False,
    html: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="One HTML page with plots.")
    ] = None,
    output: OutputOption = "-",
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare runs with others: what differs, and how surely.

    First how many metrics are worse, better and the same, and the ten that matter
    most. The run is the unit: make 6 or more of each, in turns. docs/compare.md
    says how to read it. It tells and does not judge: that is wbscope gate.

    \b
    Examples:
      wbscope compare new/run* --against old/run*
      wbscope compare new --against old --full
      wbscope compare new --against old --metric 'throttle*'
      wbscope compare new/run* --baseline old.json --html compare.html
      wbscope compare --side off=runs/0 --side strict=runs/1 --side all=runs/2
      wbscope compare new --against old --style mmtests
    """
    form = _format(as_json, as_markdown, html, style, output, force)
    given = named_sides(runs or [], against, baseline, side, "compare")
    if len(given) < 2:
        raise UsageError(
            "no-base",
            "compare",
            "has nothing to compare with",
            fix=_with_base(given["A"]),
        )
    inputs = [run for names in given.values() for run in names]
    form.check(inputs)
    if html is not None and html != "-":
        check_output(html, force, [Path(run) for run in inputs], "compare.html", "html")
    from wbscope.base.units import parse_quantity
    from wbscope.compare.comparison import compare_sides, only
    from wbscope.compare.load import Loader
    from wbscope.compare.marks import looked_through
    from wbscope.compare.measure import pauses_of
    from wbscope.compare.policy import Rule, wanted_by
    from wbscope.plot.ecdf import Curve

    share = parse_quantity("--margin", margin, "ratio")
    if not 0 <= share < 1:
        raise UsageError(
            "bad-margin", f"--margin {margin}", "is no share from 0 to 100 %", fix="--margin 5%"
        )
    patterns = metric or ["*"]
    curves: dict[str, Curve] = {}
    loader = Loader(
        wanted=wanted_by([Rule(pattern) for pattern in patterns]),
        watch=lambda run: progress_bar(run, hidden=quiet or as_json),
        allow_damaged=allow_damaged,
        findings=metric is None,
        each=None
        if html is None
        else lambda run, data: curves.update({data.source_id: pauses_of(run)}),
    )
    base, *others = [loader.side(name, texts) for name, texts in given.items()]
    families = [one.family for one in loader.catalog.metrics]
    found = looked_through(only(compare_sides(base, others, margin=share), patterns, families))
    faces = not no_faces
    if html is not None:
        from wbscope.render.comparehtml import compare_html

        pauses = {
            one.name: [curves[run.source_id] for run in one.runs if curves.get(run.source_id)]
            for one in found.sides
        }
        text = compare_html(found, pauses, faces)
    elif as_json:
        from wbscope.render.comparejson import compare_json

        text = compare_json(found)
    elif as_markdown:
        from wbscope.render.comparemarkdown import compare_markdown
        from wbscope.render.comparescreen import is_short

        whole = full or metric is not None or is_short(found)
        text = compare_markdown(found, faces, full=whole)
    elif style is Style.mmtests:
        from wbscope.render.mmtestspage import mmtests_text

        text = mmtests_text(found)
    else:
        from wbscope.render.comparepage import compare_text
        from wbscope.render.comparescreen import glance_text, is_short
        from wbscope.render.table import PAGE_WIDTH

        width = PAGE_WIDTH if form.file is not None else page_width()
        if full or describe or metric is not None or is_short(found):
            text = compare_text(found, width, faces, describe)
        else:
            text = glance_text(found, width, faces)
    _write(text, form.file if html in (None, "-") else Path(str(html)), force)


def _with_base(runs: Sequence[str]) -> str:
    """Of several, the last is what the others are compared with."""
    *others, last = runs
    if not others:
        return f"wbscope compare {shlex.quote(last)} --against RUN..."
    return shlex.join(["wbscope", "compare", *others, "--against", last])


def _format(
    as_json: bool, as_markdown: bool, html: str | None, style: Style, output: str, force: bool
) -> Format:
    """Refuse two formats at once."""
    chosen = [
        option
        for option, is_given in (
            ("--json", as_json),
            ("--markdown", as_markdown),
            ("--html", html is not None),
            (f"--style {style.value}", style is not Style.table),
        )
        if is_given
    ]
    if len(chosen) > 1:
        found = " ".join(chosen)
        raise UsageError("two-formats", found, "exclude each other, wanted one", fix=chosen[0])
    if html is not None and output != "-":
        raise UsageError(
            "two-outputs",
            f"--html {html} -o {output}",
            "are two files, wanted one",
            fix=f"--html {output}",
        )
    return Format(as_json=as_json, as_markdown=as_markdown, output=output, force=force)


def _write(text: str, file: Path | None, force: bool) -> None:
    if file is None:
        write_stdout(text, colours=True)
        return
    write_whole(file, text, force=force)
    note(f"wrote {file}")
