# SPDX-License-Identifier: Apache-2.0
"""The verdict of a run, its longest waits, and the report with the tables behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from wbscope.base.errors import Argument, EvidenceError
from wbscope.base.result import Notice, Result
from wbscope.base.span import WHOLE, Span
from wbscope.base.system import join
from wbscope.library.finding import NO_VERDICT, Finding
from wbscope.library.sqlfile import SqlFile
from wbscope.run.filters import Filters
from wbscope.run.run import Run

# More than anybody reads; the rest is told as a number.
MOST_SENTENCES = 8
_FACT = "fact"
_SUMMARY = "run_summary"


@dataclass(frozen=True)
class Verdict:
    """What has to be told of a run, what matters most first.

    `facts` say what the run was and whether writers shared fairly; they end the story. `start_ns`
    is the run's first event on the trace clock, `part_ns` the part that this is of, from there,
    and `part` how that was written.
    """

    run: str
    findings: tuple[Finding, ...]
    facts: tuple[Finding, ...]
    warnings: tuple[Notice, ...]
    summary: tuple[tuple[str, str], ...]
    start_ns: int
    part_ns: tuple[int, int] | None = None
    part: Span = WHOLE

    @property
    def is_whole(self) -> bool:
        """Whether a verdict can be given: little is lost, and the clock tells the time."""
        return not any(one.id == NO_VERDICT for one in self.findings)

    @property
    def first(self) -> Finding | None:
        """What has to be told before anything else; None where no rule could be asked."""
        return next(iter((*self.findings, *self.facts)), None)

    @property
    def title(self) -> str:
        """That in a few words."""
        return (
            self.first.title if self.first is not None else "no verdict, for no rule could be asked"
        )

    def sentences(self) -> tuple[Finding, ...]:
        """Those that are told: of the findings so many that the facts have room."""
        room = max(MOST_SENTENCES - len(self.facts), 1)
        return (*self.findings[:room], *self.facts)[:MOST_SENTENCES]

    def command(self, verb: str, *words: str, of_part: bool = True) -> str:
        """What a user types to see more, of the same part of the time where it takes one."""
        part = [word for option in self.part.options() for word in option] if of_part else []
        return join(["wbscope", verb, *words, self.run, *part])

    def spoken(self, say: Callable[[Argument], str]) -> Verdict:
        """The same with other words for arguments: options, on a command line."""
        return replace(self, warnings=tuple(notice.spoken(say) for notice in self.warnings))

    @property
    def left_out_count(self) -> int:
        """Findings beyond those."""
        return len(self.findings) + len(self.facts) - len(self.sentences())


def verdict_of(run: Run, span: Span = WHOLE) -> Verdict:
    """Ask all rules for the whole run or a part of it.

    Raises: UsageError for a part that no event can be in.
    """
    found = run.findings(span)
    summary = run.ask(_SUMMARY, Filters())
    first, last = run.bounds()
    part = None
    if span:
        t0_ns, t1_ns = run.on_clock(span)
        start = first if t0_ns is None else t0_ns
        part = (start - first, (last + 1 if t1_ns is None else t1_ns) - first)
    return Verdict(
        run=run.name,
        findings=tuple(one for one in found if one.severity != _FACT),
        facts=tuple(one for one in found if one.severity == _FACT),
        warnings=(*run.warnings(), *run.outside(span)),
        summary=tuple((str(key), str(value)) for key, value in summary.rows),
        start_ns=first,
        part_ns=part,
        part=span,
    )


_QUERY = "stalls"
# What tells where and why; the query has what that was decided on.
_COLUMNS = (
    "ts", "dur", "tid", "comm", "kind", "cause", "bdi", "cgroup_ino", "what", "holder_bdi",
    "holder_share_ratio", "finding", "stall_id",
)  # fmt: skip


def longest_waits(run: Run, span: Span = WHOLE, most: int = 50) -> tuple[Result, int] | None:
    """The rows of `stalls` with the longest waits first, and how many there are in all.

    None where no event tells of waits.
    """
    if _QUERY not in {query.name for query in run.library.queries()}:
        return None
    try:
        found = run.ask(_QUERY, Filters(span=span))
    except EvidenceError:
        return None
    place = found.columns.index("dur")
    known = [row for row in found.rows if row[place] is not None]
    known.sort(key=lambda row: -row[place])  # those of equal length stay in the order of time
    shown = replace(found, rows=known[:most])
    return shown.only([name for name in _COLUMNS if name in shown.columns]), len(found.rows)


# Tables of the first screen and the next one.
_TABLES = 3
_USUAL = ("lost_time", "throttle_by_task", "dirty_limits", "fairness")
_SECOND_NS = 10**9
# Lengths of windows that people think in, in s; the first that fits a page is taken.
_WINDOWS = (2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 21600)
_MOST_WINDOWS = 16
_WHOLE = Notice("whole-run", "of the whole run: this question takes no part of the time")


@dataclass(frozen=True)
class Section:
    """One question: its answer, or why the run cannot answer it.

    `left_out` are rows of the answer that were not chosen.
    """

    query: SqlFile
    result: Result | None
    skipped: EvidenceError | None
    left_out: int = 0

    def spoken(self, say: Callable[[Argument], str]) -> Section:
        """The same with other words for arguments: options, on a command line."""
        return replace(
            self,
            result=None if self.result is None else self.result.spoken(say),
            skipped=None if self.skipped is None else self.skipped.spoken(say),
        )


@dataclass(frozen=True)
class Report:
    """The verdict, and the tables behind it.

    `is_full` where all of them are there; else `sections` are those that show what the first
    finding says, or (`is_named`) those that were named. `is_chosen` where somebody chose what
    their tables have, so that nothing more is left out.
    """

    run: str
    verdict: Verdict
    summary: Result
    sections: tuple[Section, ...]
    is_full: bool
    is_named: bool = False
    is_chosen: bool = False

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """What holds for the whole run: it comes before any number."""
        return self.verdict.warnings

    def command(self, query: SqlFile) -> str:
        """What a user types to see all rows of a table."""
        return self.verdict.command("query", query.name, of_part=query.takes_range())

    def choosing(self, choose: Callable[[Result], Result]) -> Report:
        """With what is chosen of each table."""
        made = []
        for section in self.sections:
            if section.result is not None:
                chosen = choose(section.result)
                left_out = len(section.result) - len(chosen)
                section = replace(section, result=chosen, left_out=left_out)
            made.append(section)
        return replace(self, sections=tuple(made), is_chosen=True)

    def spoken(self, say: Callable[[Argument], str]) -> Report:
        """The same with other words for arguments."""
        return replace(
            self,
            verdict=self.verdict.spoken(say),
            sections=tuple(section.spoken(say) for section in self.sections),
        )


def build_report(
    run: Run, span: Span = WHOLE, sections: Sequence[str] = (), *, full: bool = False
) -> Report:
    """The verdict and its three tables, those of the queries that are named, or all.

    A question that lacks its events does not stop the rest.
    Raises: UsageError for a part that no event can be in, QueryError for no query.
    """
    named = [run.library.query(name) for name in sections]
    verdict = verdict_of(run, span)
    if full:
        queries = [query for query in run.library.queries() if query.order > 0]
        queries.sort(key=lambda query: query.order)
    else:
        queries = named or _behind(verdict, run)
    start, end = verdict.part_ns or (0, run.duration_ns())
    asked = Filters(window_ns=page_window_ns(end - start), span=span)
    answers = {}
    # Those with the filters of the verdict first: a change of filters begins much anew.
    for has_windows in (False, True):
        names = [query.name for query in queries if query.is_of_windows() == has_windows]
        if full and not span:
            names = run.expect(names, asked if has_windows else None)
        for name in names:
            answers[name] = _section(run, run.library.query(name), asked)
    return Report(
        run=run.name,
        verdict=verdict,
        summary=run.ask(_SUMMARY, Filters()),
        sections=tuple(answers[query.name] for query in queries),
        is_full=full,
        is_named=bool(named) and not full,
    )


def _behind(verdict: Verdict, run: Run) -> list[SqlFile]:
    """The tables of the first finding: its evidence, then those that tell most of any run."""
    first = verdict.first
    wanted = [proof.query for proof in first.evidence] if first is not None else []
    known = {query.name: query for query in run.library.queries()}
    names = dict.fromkeys([*wanted, *_USUAL])
    return [known[name] for name in names if name in known][:_TABLES]


def page_window_ns(duration_ns: int) -> int:
    """The shortest window that cuts a run of this length into a page of rows."""
    for window in _WINDOWS:
        if duration_ns <= _MOST_WINDOWS * window * _SECOND_NS:
            return window * _SECOND_NS
    return -(-duration_ns // (_MOST_WINDOWS * _SECOND_NS)) * _SECOND_NS


def _section(run: Run, query: SqlFile, asked: Filters) -> Section:
    try:
        return Section(query, _ask(run, query, asked), None)
    except EvidenceError as error:
        return Section(query, None, error)


def _ask(run: Run, query: SqlFile, asked: Filters) -> Result:
    if not query.is_of_windows():
        asked = replace(asked, window_ns=None)
    if not asked.span or query.takes_range():
        return run.ask(query.name, asked)
    result = run.ask(query.name, replace(asked, span=WHOLE))
    return replace(result, warnings=(*result.warnings, _WHOLE))
