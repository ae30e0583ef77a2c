# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file that needs nothing else, of one run or of several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wbscope.base.version import __version__
from wbscope.render.htmlenvironment import environment_of_page
from wbscope.render.htmlfigures import figures_of
from wbscope.render.htmlsections import longest_of_page, tables_of_page
from wbscope.render.htmlverdict import verdict_of_page
from wbscope.render.pageassets import asset, json_for_script, policy
from wbscope.render.printable import printable
from wbscope.render.runpage import DRAWN_ELSEWHERE, RunPage

__all__ = ["report_html"]

_BLAME = "blame"


def report_html(pages: Sequence[RunPage], *, clock: bool = False) -> str:
    """The page; `clock`: tables with times of the trace clock.

    The same runs give the same bytes.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).with_name("templates")
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
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
    return environment.get_template("report.html.j2").render(
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
