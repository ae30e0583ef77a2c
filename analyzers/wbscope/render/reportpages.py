# SPDX-License-Identifier: Apache-2.0
"""What the HTML page of a report asks a run for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from wbscope.base.arguments import Argument
from wbscope.base.span import Span
from wbscope.explain.environment import environment_of
from wbscope.explain.longest import longest_waits
from wbscope.explain.report import build_report
from wbscope.plot.asked import Asked, Lacking, ask_figures
from wbscope.plot.figures import find_figures
from wbscope.render.runpage import FIGURES_OF_PAGE, RunPage
from wbscope.run.run import Run

__all__ = ["page_of"]


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
