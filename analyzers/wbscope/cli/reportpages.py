# SPDX-License-Identifier: Apache-2.0
"""What the HTML page of a report asks a run for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wbscope.base.span import Span
from wbscope.cli.wording import answer_in_options, option, warnings_in_options
from wbscope.explain.environment import environment_of
from wbscope.explain.longest import longest_waits
from wbscope.explain.report import Report, Section, build_report
from wbscope.plot.asked import Asked, Lacking, ask_figure
from wbscope.plot.figures import find_figures
from wbscope.render.runpage import FIGURES_OF_PAGE, RunPage
from wbscope.run.run import Run

__all__ = ["page_of"]


def page_of(run: Run, name: str, span: Span, sections: Sequence[str]) -> RunPage:
    """The run as `name`; all tables, or those of the queries that are named.

    Raises: as build_report().
    """
    report = build_report(run, span, sections, full=not sections)
    known = {query.name for query in run.library.queries()}
    figures = [one for one in find_figures(FIGURES_OF_PAGE) if one.query in known]
    longest = longest_waits(run, span)
    return RunPage(
        name=name,
        report=_in_options(report),
        figures=tuple(_figure_in_options(ask_figure(run, figure, span)) for figure in figures),
        longest=None if longest is None else (answer_in_options(longest[0]), longest[1]),
        environment=environment_of(run),
    )


def _in_options(report: Report) -> Report:
    """With texts that name options, not arguments."""
    verdict = replace(report.verdict, warnings=warnings_in_options(report.verdict.warnings))
    sections = tuple(
        Section(
            one.query,
            None if one.result is None else answer_in_options(one.result),
            None if one.skipped is None else one.skipped.spoken(option),
        )
        for one in report.sections
    )
    return replace(report, verdict=verdict, sections=sections)


def _figure_in_options(asked: Asked | Lacking) -> Asked | Lacking:
    if isinstance(asked, Lacking):
        return replace(asked, error=asked.error.spoken(option))
    return asked
