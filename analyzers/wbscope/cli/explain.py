# SPDX-License-Identifier: Apache-2.0
"""wbscope explain: what is wrong, how sure that is, what to change, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wbscope.base.errors import UsageError
from wbscope.base.outputs import check_output, write_whole
from wbscope.base.span import Span, parse_span
from wbscope.base.units import parse_number
from wbscope.cli.options import (
    EngineName,
    EngineOption,
    ForceOption,
    FromOption,
    JsonOption,
    NoPagerOption,
    OutputOption,
    QuietOption,
    RunArgument,
    TimeRangeOption,
    ToOption,
)
from wbscope.cli.output import note, option, page, page_width, progress_bar
from wbscope.explain.remedy import sysctl_text, tuned_text
from wbscope.explain.story import story_of
from wbscope.explain.verdict import verdict_of
from wbscope.render.text import PAGE_WIDTH
from wbscope.render.verdict import (
    explain_json,
    explain_markdown,
    explain_text,
    proof_text,
    story_json,
    story_text,
    verdict_text,
)
from wbscope.run.run import Run, open_run

# The last column has what --stall takes.
_STALLS = "wbscope query stalls RUN --sort=-dur --limit 10"


def explain(
    run: RunArgument,
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
    as_markdown: Annotated[bool, typer.Option("--markdown", help="For a bug report.")] = False,
    start: FromOption = None,
    end: ToOption = None,
    time_range: TimeRangeOption = None,
    engine: EngineOption = EngineName.sqlite,
    output: OutputOption = "-",
    force: ForceOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    no_pager: NoPagerOption = False,
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
        "--markdown": as_markdown,
        "--json": as_json and stall is None,
    }
    _check_forms([name for name, given in forms.items() if given])
    number = None if stall is None else parse_number("stall", stall, _STALLS)
    span = parse_span(start, end, time_range)
    to_stdout = output == "-"
    if not to_stdout:
        check_output(output, force, [Path(run)], "explain.txt")
    with (
        progress_bar(run, hidden=quiet or as_json) as bar,
        open_run(run, observer=bar, engine=engine.value) as opened,
    ):
        width = page_width() if to_stdout else PAGE_WIDTH
        if number is not None:
            told = story_of(opened, number)
            text = story_json(told) if as_json else story_text(told, width)
        elif check:
            text = proof_text(opened, span, width)
        else:
            text = _text(opened, span, width, [name for name, given in forms.items() if given])
    if to_stdout:
        page(text, pager=not no_pager and not as_json)
        return
    write_whole(Path(output), text, force=force)
    if not as_json:
        note(f"wrote {output}")


def _text(run: Run, span: Span, width: int, forms: list[str]) -> str:
    verdict = verdict_of(run, span).spoken(option)
    if "--json" in forms:
        return explain_json(verdict)
    if "--markdown" in forms:
        return explain_markdown(verdict)
    if "--sysctl-d" in forms:
        return sysctl_text(verdict)
    if "--tuned" in forms:
        return tuned_text(verdict)
    return verdict_text(verdict, width) if "--short" in forms else explain_text(verdict, width)


def _check_forms(given: list[str]) -> None:
    if len(given) > 1:
        raise UsageError(
            "two-formats", " ".join(given), "exclude each other, wanted one", fix=given[0]
        )
