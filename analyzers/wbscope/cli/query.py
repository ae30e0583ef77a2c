# SPDX-License-Identifier: Apache-2.0
"""wbscope query: one canned query on one run, or on several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from wbscope.base.errors import EvidenceError, UsageError
from wbscope.base.result import Notice, Result
from wbscope.base.units import parse_number
from wbscope.cli.formats import Explained, write_result
from wbscope.cli.options import (
    ClockOption,
    EngineName,
    EngineOption,
    Output,
    Part,
    Rows,
    RunsArgument,
    bound,
)
from wbscope.cli.output import progress_bar
from wbscope.library.library import Library, load_library
from wbscope.library.params import check_filters
from wbscope.library.sqlfile import SqlFile
from wbscope.run.filters import Filters, parse_filters
from wbscope.run.labels import joined, short_names
from wbscope.run.run import open_run
from wbscope.source.source import Source, find_source


@dataclass(frozen=True)
class _Answer:
    """What one run says to each of the queries, or why it cannot."""

    run: str
    results: list[Result]
    lacks: EvidenceError | None

    def from_start(self) -> _Answer:
        """With times that count from the run's first event."""
        return replace(self, results=[result.from_start() for result in self.results])


@bound
def query(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A name from `wbscope queries`.", show_default=False),
    ],
    runs: RunsArgument,
    *,
    window: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Length of a window.")
    ] = None,
    bdi: Annotated[
        str | None, typer.Option(metavar="BDI", help="Only this device: 8:0, sda or /home.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="NAME|TID", help="Only tasks of this name, e.g. 'dd*', or thread."),
    ] = None,
    tid: Annotated[str | None, typer.Option(metavar="TID", help="Only this thread.")] = None,
    cgroup: Annotated[
        str | None,
        typer.Option(metavar="INO|PATH", help="Only the wbs of this cgroup: inode or path."),
    ] = None,
    part: Part,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also what the rows were decided on.")
    ] = False,
    clock: ClockOption = False,
    rows: Rows,
    engine: EngineOption = EngineName.sqlite,
    out: Output,
) -> None:
    """Answer a canned query, of one run or of several.

    Durations are a number with ns, us, ms, s, m or h. Times count from the
    first event; --json, --csv and --parquet have those of the trace clock, in
    ns. With several runs, the first column says which one; a run without the
    events ends with exit code 4 after the others were answered.

    \b
    Examples:
      wbscope query throttle_by_task trace.dat
      wbscope query throttle_windows RUN --window 500ms --task 'dd*'
      wbscope query fairness RUN --from 2s --to 10s --json
      wbscope query stalls RUN --time-range @5712.3s..@5714s --clock
      wbscope query fairness before.db after.db --markdown
      wbscope query stalls RUN --task 123 --explain
      wbscope query stalls RUN --sort=-dur --limit 10 --columns ts,dur,comm,cause
      wbscope query throughput RUN --parquet throughput.parquet
      wbscope query fairness trace.pftrace --engine perfetto
    """
    choice = rows.choice()
    out.check(runs)
    rows.page_width(out)
    library = load_library()
    # What can be refused at once must not wait for an ingest.
    file = library.query(name)
    several = len(runs) > 1
    known = [*(["run"] if several else []), *(column.name for column in file.columns)]
    if file.columns:
        choice.check(name, known, f"wbscope query {name} RUN")
    if explain:
        _check_explain(library, file, out)
    filters = parse_filters(
        window,
        bdi,
        None if tid is None else parse_number("tid", tid, "--task NAME"),
        task,
        cgroup,
        part.start,
        part.end,
        part.time_range,
    )
    check_filters(file, filters.names())
    names = short_names(runs)
    sources = [find_source(run) for run in runs]  # one that is not there must not wait for others
    asked = [name, file.explain] if explain else [name]
    answers = []
    for source, shown in zip(sources, names, strict=True):
        try:
            answer = _ask(library, source, engine.value, shown, asked, filters, out.hidden)
            answers.append(answer if clock or out.is_raw else answer.from_start())
        except UsageError as error:  # such as --from after its end: other runs may be longer
            error.at = f"run {shown}" if several else error.at
            raise
    lacking = [answer.lacks for answer in answers if answer.lacks is not None]
    if len(lacking) == len(answers):
        raise lacking[0]
    results = [_put_together(answers, index, several) for index in range(len(asked))]
    explained = Explained(library.query(file.explain).title, results[1]) if explain else None
    head: dict[str, Any] = {"query": name, **({"runs": names} if several else {"run": runs[0]})}
    write_result("query", head, results[0], out, rows, explained)
    if lacking:
        raise _partly(name, answers)


def _ask(
    library: Library,
    source: Source,
    engine: str,
    shown: str,
    names: Sequence[str],
    filters: Filters,
    hidden: bool,
) -> _Answer:
    with (
        progress_bar(str(source.path), hidden=hidden) as bar,
        open_run(source, library=library, observer=bar, engine=engine) as opened,
    ):
        try:
            return _Answer(shown, [opened.ask(name, filters) for name in names], None)
        except EvidenceError as error:
            return _Answer(shown, [], error)


def _partly(name: str, answers: Sequence[_Answer]) -> EvidenceError:
    """The rows are there and not of all runs, which the exit code has to say."""
    without = [answer for answer in answers if answer.lacks is not None]
    first = next(answer.lacks for answer in without if answer.lacks is not None)
    return EvidenceError(
        first.slug,
        name,
        f"was answered for {len(answers) - len(without)} of {len(answers)} runs",
        have=f"no answer for {', '.join(answer.run for answer in without)}",
        fix=first.fix,
    )


def _put_together(answers: Sequence[_Answer], index: int, several: bool) -> Result:
    """The answers to one of the queries; a run without one is a warning."""
    given = [(answer.run, answer.results[index]) for answer in answers if answer.lacks is None]
    if not several:
        return given[0][1]
    whole = joined(given)
    missing = tuple(
        Notice(answer.lacks.slug, f"not in the rows: {answer.lacks.message}", answer.run)
        for answer in answers
        if answer.lacks is not None
    )
    return replace(whole, warnings=whole.warnings + missing)


def _check_explain(library: Library, file: SqlFile, out: Output) -> None:
    """Only some queries have evidence to show, and some formats hold one table."""
    if not file.explain:
        having = ", ".join(query.name for query in library.queries() if query.explain)
        raise UsageError(
            "no-explanation",
            file.name,
            "has no evidence to show with --explain",
            have=f"queries that do: {having or 'none'}",
            fix=f"wbscope query {file.name} RUN",
        )
    if out.one_table is not None:
        option, noun = out.one_table
        raise UsageError(
            "two-tables",
            f"{option} --explain",
            f"is two tables, and {noun} holds one",
            fix=f"wbscope query {file.explain} RUN {option}",
        )
