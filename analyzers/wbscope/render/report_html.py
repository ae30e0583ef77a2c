# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file that needs nothing else, of one run or of several."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from wbscope.base.errors import Argument
from wbscope.base.span import Span
from wbscope.base.units import format_value
from wbscope.base.version import __version__
from wbscope.explain.remedy import trial_of, undo_of
from wbscope.explain.story import environment_of
from wbscope.explain.verdict import Verdict, build_report, longest_waits
from wbscope.library.finding import Advice, Finding
from wbscope.plot.figures import find_figures
from wbscope.plot.panels import Asked, Lacking, ask_figures
from wbscope.render.figures import DRAWN_ELSEWHERE, FIGURES_OF_PAGE, RunPage, figures_of
from wbscope.render.sections import (
    asset,
    environment_of_page,
    json_for_script,
    longest_of_page,
    open_command,
    policy,
    tables_of_page,
    template,
)
from wbscope.render.text import printable, warning_text
from wbscope.render.verdict import commands_of, head_line
from wbscope.run.run import Run


def page_of(
    run: Run,
    name: str,
    span: Span,
    sections: Sequence[str],
    say: Callable[[Argument], str] = str,
) -> RunPage:
    """The run as `name`; all tables, or those of the queries that are named.

    `say` has the words for arguments: options, for somebody at a command line.

    Raises: as build_report().
    """
    report = build_report(run, span, sections, full=not sections)
    known = {query.name for query in run.library.queries()}
    figures = [one for one in find_figures(FIGURES_OF_PAGE) if one.query in known]
    longest = longest_waits(run, span)
    return RunPage(
        name=name,
        report=report.spoken(say),
        figures=tuple(_spoken(asked, say) for asked in ask_figures(run, figures, span)),
        longest=None if longest is None else (longest[0].spoken(say), longest[1]),
        environment=environment_of(run),
    )


def _spoken(asked: Asked | Lacking, say: Callable[[Argument], str]) -> Asked | Lacking:
    return replace(asked, error=asked.error.spoken(say)) if isinstance(asked, Lacking) else asked


# Severity is told by a word and a shape; colour comes on top.
_SHAPES = {
    "severe": "M5 0h6l5 5v6l-5 5H5l-5-5V5z",
    "warning": "M8 1l8 14H0z",
    "note": "M8 1a7 7 0 1 0 0 14A7 7 0 1 0 8 1z",
    "ok": "M1 9l3-3 3 3 6-7 3 2.5L7 15z",
}
_SURE = {
    "measured": "measured",
    "inferred": "inferred: the events do not show the cause itself",
    "cannot tell": "cannot tell: what would show the cause was not recorded",
}
# A page has room for more than a terminal; nobody reads hundreds.
_MOST = 30


def verdict_of_page(page: RunPage) -> dict[str, Any]:
    """Texts for the template."""
    verdict = page.report.verdict
    told = (*verdict.findings[:_MOST], *verdict.facts)
    left_out = len(verdict.findings) + len(verdict.facts) - len(told)
    return {
        "name": printable(page.name),
        "path": printable(verdict.run),
        "title": printable(verdict.title),
        # No line ends between a number and its unit.
        "facts": re.sub(r"(?<=\d) (?=\w)", "\N{NO-BREAK SPACE}", printable(head_line(verdict))),
        "part": _part(verdict),
        "doubts": [warning_text(notice) for notice in verdict.warnings],
        "findings": [_finding(one, verdict, one is verdict.first) for one in told],
        "left_out": f"{left_out} more findings:" if left_out else "",
        "all": printable(verdict.command("query", "findings")),
    }


def _part(verdict: Verdict) -> str:
    if verdict.part_ns is None:
        return ""
    start, end = (format_value("ts", "ns", ns) for ns in verdict.part_ns)
    return f"Only from {start} to {end} of the run."


def _finding(one: Finding, verdict: Verdict, is_first: bool) -> dict[str, Any]:
    is_fact = one.severity == "fact"
    span = None
    if one.first_ts is not None and one.last_ts is not None:
        span = (one.first_ts - verdict.start_ns, one.last_ts - verdict.start_ns)
    about = "" if is_fact else _SURE.get(one.confidence, one.confidence)
    if one.cost_task_ns:
        about += f" | {format_value('dur', 'ns', one.cost_task_ns)} of tasks' time"
    if not is_fact:
        about += f" | rule {one.id}"
    return {
        "severity": one.severity,
        "shape": _SHAPES.get(one.severity, ""),
        "text": printable(one.text),
        "about": printable(about),
        "is_first": is_first,
        "span": span,
        "when": "" if span is None else _when(span),
        "open": "" if span is None else printable(open_command(verdict.run, *span)),
        "commands": [printable(text) for text in commands_of(one, verdict)],
        "advice": None if one.advice is None else _advice(one, one.advice, verdict),
    }


def _when(span: tuple[int, int]) -> str:
    start, end = (format_value("dur", "ns", ns) for ns in span)
    return f"{start} to {end}"


def _advice(one: Finding, advice: Advice, verdict: Verdict) -> dict[str, Any]:
    return {
        "text": printable(advice.text),
        "settings": [printable(f"{knob} = {value}") for knob, value in advice.settings],
        "now": [printable(text) for text in advice.now],
        "costs": printable(advice.costs),
        "expect": printable(advice.expect or "not predicted"),
        "trial": [printable(text) for text in trial_of(one, verdict.run)],
        "undo": [printable(text) for text in undo_of(one)],
    }


_BLAME = "blame"


def report_html(pages: Sequence[RunPage], *, clock: bool = False) -> str:
    """The page; `clock`: tables with times of the trace clock.

    The same runs give the same bytes.
    """
    scripts = [asset("uPlot.iife.min.js"), asset("report.js")]
    style = f"{asset('uPlot.min.css')}\n{asset('report.css')}"
    figures = figures_of(pages)
    tables = tables_of_page(pages, clock=clock)
    first = pages[0].report
    title = (
        f"{pages[0].name}: {first.verdict.title}"
        if len(pages) == 1
        else f"{len(pages)} runs: {', '.join(page.name for page in pages)}"
    )
    return template("report.html.j2").render(
        title=printable(title),
        policy=policy(scripts, [style]),
        style=style,
        licence=asset("uPlot.LICENSE"),
        scripts=scripts,
        runs=[verdict_of_page(page) for page in pages],
        figures=figures,
        elsewhere=", ".join(DRAWN_ELSEWHERE),
        pictures=[printable(f"{page.report.verdict.command('plot')} -o DIR") for page in pages],
        blame=tables.pop(_BLAME, None),
        longest=longest_of_page(pages, clock=clock),
        tables=list(tables.values()),
        environment=environment_of_page(pages),
        data=json_for_script({"runs": [page.name for page in pages], **figures.data}),
        clock=clock,
        version=__version__,
    )
