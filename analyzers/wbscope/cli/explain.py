# SPDX-License-Identifier: Apache-2.0
"""wbscope explain: what is wrong, how sure that is, what to change, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import typer

from wbscope.base.errors import UsageError
from wbscope.base.span import Span
from wbscope.base.units import parse_number
from wbscope.cli.formats import write_document
from wbscope.cli.options import EngineName, EngineOption, Output, Part, RunArgument, bound
from wbscope.cli.output import option, progress_bar
from wbscope.explain.remedy import sysctl_text, tuned_text
from wbscope.explain.story import story_of
from wbscope.explain.verdict import verdict_of
from wbscope.render.blocks import CSV, DOCUMENT, HTML, MARKDOWN, PARQUET, TEXT, WITH_TABLE, Document
from wbscope.render.verdict import (
    explain_document,
    proof_document,
    story_document,
    verdict_text,
)
from wbscope.run.run import Run, open_run

# What each can be written as; a file for another program is text.
_FORMS = {"": WITH_TABLE, "--stall": DOCUMENT, "--check": (TEXT, MARKDOWN, HTML, CSV, PARQUET)}
# The last column has what --stall takes.
_STALLS = "wbscope query stalls RUN --sort=-dur --limit 10"


@bound
def explain(
    run: RunArgument,
    *,
    stall: Annotated[
        str | None, typer.Option("--stall", metavar="ID", help="Tell one wait of `query stalls`.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Ask the queries that are named, and compare.")
    ] = False,
    short: Annotated[
        bool, typer.Option("--short", help="One screen, as the report begins.")
    ] = False,
    sysctl_d: Annotated[
        bool, typer.Option("--sysctl-d", help="The advice as a file for /etc/sysctl.d.")
    ] = False,
    tuned: Annotated[
        bool, typer.Option("--tuned", help="The advice as a profile of tuned.")
    ] = False,
    part: Part,
    engine: EngineOption = EngineName.sqlite,
    out: Output,
) -> None:
    """Say what is wrong, how sure that is, and what to change.

    The costliest first; each sentence with the commands that show its numbers.
    A trace that is damaged or lost events that matter gets no advice. Rules:
    docs/findings.md.

    \b
    Examples:
      wbscope explain RUN
      wbscope explain RUN --short
      wbscope explain RUN --stall N     # stall_id of wbscope query stalls RUN
      wbscope explain RUN --check
      wbscope explain RUN --sysctl-d -o 90-wbscope.conf
    """
    forms = {
        "--stall": stall is not None,
        "--check": check,
        "--short": short,
        "--sysctl-d": sysctl_d,
        "--tuned": tuned,
    }
    given = [name for name, is_given in forms.items() if is_given]
    _check_forms(given, out)
    out.check([run], _FORMS.get(next(iter(given), ""), (TEXT,)), "explanation")
    number = None if stall is None else parse_number("stall", stall, _STALLS)
    span = part.span()
    with (
        progress_bar(run, hidden=out.hidden) as bar,
        open_run(run, observer=bar, engine=engine.value) as opened,
    ):
        if number is not None:
            made = story_document(story_of(opened, number))
        elif check:
            made = proof_document(opened, span)
        else:
            made = _document(opened, span, given)
    write_document(made, out)


def _document(run: Run, span: Span, given: list[str]) -> Document:
    verdict = verdict_of(run, span).spoken(option)
    texts: dict[str, Callable[[int], str]] = {
        "--short": lambda width: verdict_text(verdict, width),
        "--sysctl-d": lambda _: sysctl_text(verdict),
        "--tuned": lambda _: tuned_text(verdict),
    }
    text = next((texts[name] for name in given), None)
    return replace(explain_document(verdict), text=text)


def _check_forms(given: list[str], out: Output) -> None:
    """One at a time; what is a file for another program is text."""
    if len(given) > 1 or (given and given[0] not in _FORMS and out.flag):
        found = " ".join([*given, *([out.flag] if out.flag else [])])
        raise UsageError("two-formats", found, "exclude each other, wanted one", fix=given[0])
