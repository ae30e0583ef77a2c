# SPDX-License-Identifier: Apache-2.0
"""wbscope compare: runs against runs, metric by metric."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from wbscope.base.errors import InputError, UsageError
from wbscope.cli.formats import write_document
from wbscope.cli.options import Output, bound
from wbscope.cli.output import progress_bar
from wbscope.render.blocks import HTML

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


@bound
def compare(
    runs: RunsOption = None,
    *,
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
    out: Output,
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
    if out.flag and style is not Style.table:
        both = f"{out.flag} --style {style.value}"
        raise UsageError("two-formats", both, "exclude each other, wanted one", fix=out.flag)
    given = named_sides(runs or [], against, baseline, side, "compare")
    if len(given) < 2:
        raise UsageError(
            "no-base",
            "compare",
            "has nothing to compare with",
            fix=_with_base(given["A"]),
        )
    compare_runs(
        given,
        out,
        metric=metric,
        margin=margin,
        style=style,
        full=full,
        describe=describe,
        faces=not no_faces,
        allow_damaged=allow_damaged,
    )


def compare_runs(
    given: Mapping[str, Sequence[str]],
    out: Output,
    *,
    metric: Sequence[str] | None = None,
    margin: str = "5%",
    style: Style = Style.table,
    full: bool = False,
    describe: bool = False,
    faces: bool = True,
    allow_damaged: bool = False,
) -> None:
    """What the verb does with the runs of each side, the base first."""
    inputs = [run for names in given.values() for run in names]
    out.check(inputs, noun="comparison")
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
        watch=lambda run: progress_bar(run, hidden=out.hidden),
        allow_damaged=allow_damaged,
        findings=metric is None,
        each=None
        if out.form != HTML
        else lambda run, data: curves.update({data.source_id: pauses_of(run)}),
    )
    base, *others = [loader.side(name, texts) for name, texts in given.items()]
    families = [one.family for one in loader.catalog.metrics]
    found = looked_through(only(compare_sides(base, others, margin=share), patterns, families))

    def page() -> str:
        from wbscope.render.compare_html import compare_html

        pauses = {
            one.name: [curves[run.source_id] for run in one.runs if curves.get(run.source_id)]
            for one in found.sides
        }
        return compare_html(found, pauses, faces)

    from wbscope.render.compare import compare_document, is_short, mmtests_text

    whole = full or describe or metric is not None or is_short(found)
    made = compare_document(found, faces, whole, describe, page)
    if style is Style.mmtests:
        made = replace(made, text=lambda _: mmtests_text(found))
    write_document(made, out)


def _with_base(runs: Sequence[str]) -> str:
    """Of several, the last is what the others are compared with."""
    *others, last = runs
    if not others:
        return f"wbscope compare {shlex.quote(last)} --against RUN..."
    return shlex.join(["wbscope", "compare", *others, "--against", last])
