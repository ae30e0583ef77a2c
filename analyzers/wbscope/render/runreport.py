# SPDX-License-Identifier: Apache-2.0
"""Run.report(): the page of `wbscope report` as a text, for Python."""

from __future__ import annotations

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import UsageError
from wbscope.base.span import Span
from wbscope.run.joined import short_names
from wbscope.run.run import Run, reporter

__all__ = ["run_report"]

_FORMATS = ("text", "markdown", "html", "json")


@reporter
def run_report(
    run: Run,
    span: Span,
    sections: tuple[str, ...],
    form: str,
    *,
    full: bool,
    clock: bool,
    width: int,
) -> str:
    """In one of the formats. JSON and HTML have all tables, unless sections are named."""
    # Only here: who opens a run to ask a query waits for none of it.
    from wbscope.explain.report import build_report
    from wbscope.render.reporthtml import report_html
    from wbscope.render.reportmarkdown import report_markdown
    from wbscope.render.reportpage import report_json, report_text
    from wbscope.render.reportpages import page_of

    if form not in _FORMATS:
        raise UsageError(
            "unknown-format",
            Phrase(Argument("format", form)),
            "is no format of a report",
            have=", ".join(_FORMATS),
            fix=Phrase(Argument("format", _FORMATS[0])),
        )
    if form == "html":
        (name,) = short_names([run.name])
        return report_html([page_of(run, name, span, sections)], clock=clock)
    report = build_report(run, span, sections, full=full or (form == "json" and not sections))
    if form == "json":
        return report_json(report)
    if form == "markdown":
        return report_markdown(report, clock=clock)
    return report_text(report, width, clock=clock)
