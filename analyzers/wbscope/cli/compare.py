# SPDX-License-Identifier: Apache-2.0
"""wbscope compare: runs against runs, metric by metric."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wbscope.base.errors import InputError, UsageError
from wbscope.base.outputs import check_output, write_whole
from wbscope.cli.formats import Format
from wbscope.cli.options import ForceOption, JsonOption, MarkdownOption, OutputOption, QuietOption
from wbscope.cli.output import note, page_width, progress_bar, write_stdout

# They take every word up to the next option.
_GREEDY = ("--against", "--baseline")

AgainstOption = Annotated[
    list[str] | None,
    typer.Option("--against", metavar="RUN...", help="Runs to compare with."),
]
BaselineOption = Annotated[
    list[str] | None,
    typer.Option("--baseline", metavar="FILE...", help="Baselines to compare with."),
]
SideOption = Annotated[
    list[str] | None,
    typer.Option("--side", metavar="NAME=RUN", help="A run of a named side; the first is base."),
]
FacesOption = Annotated[bool, typer.Option("--no-faces", help="No :) :( :| in front.")]


class SidesCommand(TyperCommand):
    """Lets --against and --baseline take several runs, as the shell expands them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _spread(args))


def named_sides(
    runs: Sequence[str],
    against: Sequence[str] | None,
    baselines: Sequence[str] | None,
    sides: Sequence[str] | None,
    command: str,
) -> dict[str, list[str]]:
    """Side -> its runs, the base first.

    Raises: UsageError when there is nothing to compare; InputError without a baseline's file.
    """
    base = [*(against or ()), *(baselines or ())]
    _check_baselines(runs, baselines or ())
    if sides:
        if runs or base:
            raise UsageError(
                "two-ways",
                "--side",
                "names all runs, so there is no place for others",
                have=" ".join([*runs, *base]),
                fix=f"wbscope {command} --side old=RUN1 --side new=RUN2",
            )
        return _by_name(sides, command)
    if not runs:
        raise UsageError(
            "no-runs",
            command,
            "has no runs",
            fix=f"wbscope {command} RUN... --against {shlex.join(base) or 'RUN...'}",
        )
    return {"B": base, "A": list(runs)} if base else {"A": list(runs)}


def _check_baselines(runs: Sequence[str], baselines: Sequence[str]) -> None:
    """The first job of a CI has none: what makes one is told."""
    for name in baselines:
        if not os.path.exists(name):
            save = shlex.join(["wbscope", "baseline", "save", *runs, "-o", name])
            raise InputError(
                "no-baseline",
                name,
                "does not exist",
                effect="nothing was judged",
                fix=f"{save}    # accepts these runs as the base",
            )


def _by_name(sides: Sequence[str], command: str) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for text in sides:
        name, equals, run = text.partition("=")
        if not equals or not run or re.fullmatch(r"\S{1,40}", name) is None:
            raise UsageError(
                "bad-side",
                f"--side {text}",
                "is no NAME=RUN",
                fix=f"wbscope {command} --side old=RUN1 --side new=RUN2",
            )
        named.setdefault(name, []).append(run)
    if len(named) < 2:
        raise UsageError(
            "one-side",
            "--side",
            f"names one side, {next(iter(named))}, wanted two or more",
            fix=f"wbscope {command} --side old=RUN1 --side new=RUN2",
        )
    return named


def _spread(args: Sequence[str]) -> list[str]:
    """--against a b c as --against a --against b --against c."""
    spread: list[str] = []
    option: str | None = None
    for index, word in enumerate(args):
        if word == "--":
            return [*spread, *args[index:]]
        if word in _GREEDY:
            option = word
            if index + 1 == len(args) or _is_option(args[index + 1]):
                raise UsageError(
                    "usage", word, "has no runs behind it, wanted one or more", fix=f"{word} RUN"
                )
        elif _is_option(word):
            option = None
            spread.append(word)
        elif option is not None:
            spread += [option, word]
        else:
            spread.append(word)
    return spread


def _is_option(word: str) -> bool:
    """`-` is none: it is the run on stdin."""
    return word.startswith("-") and word != "-"


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
    from wbscope.compare.measure import pauses_of
    from wbscope.compare.policy import Rule, wanted_by
    from wbscope.compare.ranking import looked_through
    from wbscope.plot.dots import Curve

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
        from wbscope.render.compare_html import compare_html

        pauses = {
            one.name: [curves[run.source_id] for run in one.runs if curves.get(run.source_id)]
            for one in found.sides
        }
        text = compare_html(found, pauses, faces)
    elif as_json:
        from wbscope.render.compare_screen import compare_json

        text = compare_json(found)
    elif as_markdown:
        from wbscope.render.compare_screen import compare_markdown, is_short

        whole = full or metric is not None or is_short(found)
        text = compare_markdown(found, faces, full=whole)
    elif style is Style.mmtests:
        from wbscope.render.compare import mmtests_text

        text = mmtests_text(found)
    else:
        from wbscope.render.compare import compare_text
        from wbscope.render.compare_screen import glance_text, is_short
        from wbscope.render.text import PAGE_WIDTH

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
