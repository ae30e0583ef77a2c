# SPDX-License-Identifier: Apache-2.0
"""Ask a run for its figures: one query each, in windows that suit the length of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Result
from wbscope.base.span import WHOLE, Span
from wbscope.base.units import duration_argument, round_window_ns
from wbscope.library.evidence import require_events
from wbscope.plot.figure import Figure
from wbscope.plot.paneldata import Grid, PanelData, panels
from wbscope.run.filters import Filters
from wbscope.run.run import Run

__all__ = ["Asked", "Lacking", "ask_figure", "ask_figures", "why_not"]

_NOT_RECORDED = "-not-recorded"  # how the slugs of such warnings end


@dataclass(frozen=True)
class Asked:
    """A figure with its numbers; `window` as the command line takes it, None without windows.

    `part` is the part of the time that they are of.
    """

    figure: Figure
    result: Result
    grid: Grid
    panels: tuple[PanelData, ...]
    window: str | None
    part: Span = WHOLE


@dataclass(frozen=True)
class Lacking:
    """Why a figure cannot be drawn of this run, in one line."""

    figure: Figure
    error: EvidenceError


def ask_figure(run: Run, figure: Figure, span: Span = WHOLE) -> Asked | Lacking:
    """The numbers of a figure, for a part of the run.

    Raises: as ask_figures().
    """
    return ask_figures(run, [figure], span)[0]


def ask_figures(run: Run, figures: Sequence[Figure], span: Span = WHOLE) -> list[Asked | Lacking]:
    """The numbers of these figures, for a part of the run; what several show is asked once.

    Raises: UsageError for a part that no event can be in.
    """
    grids = [_grid(run, figure, span) for figure in figures]
    questions = [
        (_filters(run, figure, grid, span), figure.query)
        for figure, grid in zip(figures, grids, strict=True)
    ]
    # What has the same filters stands together: a session keeps what it makes with them.
    names: dict[Filters, list[str]] = {}
    for filters, name in dict.fromkeys(questions):
        names.setdefault(filters, []).append(name)
    answers = {}
    for filters in sorted(names, key=lambda filters: filters.window_ns or 0):
        for name in run.expect(names[filters], filters):
            answers[filters, name] = _answer(run, name, filters)
    return [
        _with_numbers(run, figure, grid, answers[question], question[0].span)
        for figure, grid, question in zip(figures, grids, questions, strict=True)
    ]


def _grid(run: Run, figure: Figure, span: Span) -> Grid:
    first, last = run.bounds()
    t0_ns, t1_ns = run.on_clock(span)
    from_ns = 0 if t0_ns is None else t0_ns - first
    to_ns = (last + 1 if t1_ns is None else t1_ns) - first
    window_ns = None
    if figure.windows:
        window_ns = round_window_ns(max(figure.least_window_ns, (to_ns - from_ns) / figure.windows))
    return Grid(from_ns, to_ns, window_ns)


def _filters(run: Run, figure: Figure, grid: Grid, span: Span) -> Filters:
    # A query that takes no part of the time is of the whole run, and says so in its warnings.
    part = span if run.library.query(figure.query).takes_range() else WHOLE
    return Filters(window_ns=grid.window_ns, span=part)


def _answer(run: Run, name: str, filters: Filters) -> Result | EvidenceError:
    try:
        return run.ask(name, filters)
    except EvidenceError as error:
        return error


def _with_numbers(
    run: Run, figure: Figure, grid: Grid, answer: Result | EvidenceError, part: Span
) -> Asked | Lacking:
    if isinstance(answer, EvidenceError):
        return Lacking(figure, answer)
    made = panels(figure, answer, grid)
    if not made:
        return Lacking(figure, _nothing(run, figure, answer))
    window = None if grid.window_ns is None else duration_argument(grid.window_ns)
    return Asked(figure, answer, grid, made, window, part)


def why_not(run: Run, figure: Figure) -> EvidenceError | None:
    """Why the run cannot have this figure, without asking where its events tell."""
    query = run.library.query(figure.query)
    try:
        require_events(query, run.recorded(), run.name, run.library.profiles)
    except EvidenceError as error:
        return error
    if query.events:
        return None
    # Only its rows tell whether samples were taken.
    asked = ask_figure(run, figure)
    return asked.error if isinstance(asked, Lacking) else None


def _nothing(run: Run, figure: Figure, answer: Result) -> EvidenceError:
    """What was not recorded may have happened."""
    lacking = (one.message for one in answer.warnings if one.slug.endswith(_NOT_RECORDED))
    return EvidenceError(
        "nothing-to-draw",
        figure.name,
        f"has nothing to draw: {next(lacking, figure.no_rows)}",
        fix=f"wbscope query {figure.query} {run.name}",
    )
