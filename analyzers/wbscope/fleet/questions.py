# SPDX-License-Identifier: Apache-2.0
"""What a report asks a dataset, and runs of it as the sides that a gate judges."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any, Literal, Protocol

from wbscope.base.errors import Argument, EvidenceError, Phrase, QueryError, UsageError
from wbscope.base.result import Notice, Result, leading_names, typed_columns, unit_of
from wbscope.base.units import seconds
from wbscope.compare.baseline import runs_of_text
from wbscope.compare.comparison import Side
from wbscope.compare.measure import Wanted
from wbscope.compare.rundata import Fact, RunData, Session
from wbscope.fleet.cluster.hadoop_files import is_uri
from wbscope.fleet.dataset import ingest_fix
from wbscope.fleet.layout import ERRORS, METRICS, RUNS, UNKNOWN, WARNINGS, table_names
from wbscope.library.database import is_damaged, is_lost
from wbscope.library.engine import Rows
from wbscope.library.library import find_sql_dir, load_library
from wbscope.library.sqlfile import SqlFile, broken_library, read_sql_file
from wbscope.measure.metric import Metric, Scalars, Spread, better_of

_FOLDER = "fleet"
# In the order in which they are told; each is a file.
SECTIONS = (
    "overview",
    "problems",
    "worst_hosts",
    "trend",
    "pause_p99",
    "stalls_by_cause",
    "findings_by_kernel",
    "findings_by_device",
    "fairness_outliers",
    "errors",
)


class Stored(Protocol):
    """A dataset as engines read it, in a folder or on a file system of Hadoop."""

    @property
    def place(self) -> str:
        """Its URI, for Spark."""
        ...

    def manifests(self) -> dict[str, dict[str, Any]]:
        """What is told of each run, by its id."""
        ...

    def errors(self) -> dict[str, int]:
        """The files of ingest_errors below the dataset, and their bytes."""
        ...

    def readable(self, name: str) -> Any:
        """A file of it for pyarrow."""
        ...


class FleetEngine(Protocol):
    """What runs SQL over a dataset's tables."""

    @property
    def losses(self) -> tuple[Notice, ...]:
        """What holds for every answer: how many runs lost events, or were read in part."""
        ...

    def select(self, sql: str, tables: Sequence[str] | None = None) -> Rows:
        """Columns and rows of one SELECT over these tables; without, over those that it names.

        Numbers are int or float, all else text; NULL is None.
        Raises: QueryError.
        """
        ...


def report_query(name: str) -> SqlFile:
    """A file of sql/fleet; `needs` are the tables that it reads.

    Raises: SetupError.
    """
    path = find_sql_dir() / _FOLDER / f"{name}.sql"
    files = read_sql_file(path)
    if [file.name for file in files] != [name]:
        raise broken_library(path, f"defines {', '.join(file.name for file in files)}")
    return files[0]


def answer(engine: FleetEngine, name: str) -> Result:
    """The rows of a section, with units and meanings."""
    file = report_query(name)
    columns, rows = engine.select(file.select, file.needs)
    units = {column: unit for column in columns if (unit := unit_of(column))}
    return Result(
        name=name,
        columns=columns,
        units=units,
        rows=rows,
        fields=typed_columns(columns, rows, file.columns),
        keys=file.keys or leading_names(columns),
        first=file.first,
    )


def tables_in(sql: str, names: Iterable[str]) -> list[str]:
    """The tables whose names stand anywhere in a statement."""
    words = set(re.findall(r"\w+", sql.lower()))
    return [name for name in names if name.lower() in words]


def contents(dataset: Stored) -> tuple[list[tuple[str, int, int, int]], tuple[Notice, ...]]:
    """Each table: its name, runs that have rows there, rows and bytes of files; and losses_of().

    Raises: InputError for a dataset that cannot be read.
    """
    totals = {name: [0, 0, 0] for name in table_names(load_library())}
    manifests = dataset.manifests().values()
    for manifest in manifests:
        for told in manifest["files"].values():
            found = totals.setdefault(told["table"], [0, 0, 0])
            for place, count in enumerate((1, told["rows"], told["bytes"])):
                found[place] += count
    bad = dataset.errors()
    totals[ERRORS] = [len(bad), len(bad), sum(bad.values())]
    rows = [(name, *counts) for name, counts in totals.items()]
    return rows, losses_of(manifests)  # type: ignore[return-value]


def losses_of(manifests: Collection[Mapping[str, Any]]) -> tuple[Notice, ...]:
    """How many of these runs have numbers that are too small, by the warnings that each has."""
    slugs = [{str(slug) for slug, _ in one.get("warnings", ())} for one in manifests]
    lossy = sum(any(map(is_lost, one)) for one in slugs)
    damaged = sum(any(map(is_damaged, one)) for one in slugs)
    of, which = (
        f"of {len(slugs)} runs",
        f'which: wbscope fleet sql DATASET "SELECT * FROM {WARNINGS}"',
    )
    told = []
    if lossy:
        message = f"{lossy} {of} lost events: their numbers are lower bounds; {which}"
        told.append(Notice("lost-events", message))
    if damaged:
        message = f"{damaged} {of} could be read in part only; {which}"
        told.append(Notice("damaged-trace", message))
    return tuple(told)


def plain_value(value: Any) -> Any:
    """int, float, text or None, as the house's results have it."""
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, int | float | str):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(value)


def not_a_select(found: str) -> QueryError:
    """What was found instead of a statement that only reads."""
    return QueryError(
        "not-a-select",
        "fleet sql",
        f"the statement {found}, wanted one SELECT: a dataset is only read",
        fix='wbscope fleet sql DATASET "SELECT host, count(*) FROM runs GROUP BY host"',
    )


def too_late(limit_ns: int | None) -> QueryError:
    """One SELECT took more than it may."""
    limit = "" if limit_ns is None else f" of {seconds(limit_ns):g} s"
    return QueryError(
        "time-limit",
        "fleet sql",
        f"the question ran into its time limit{limit} and was stopped",
        fix=Phrase("give it more time with ", Argument("timeout"), ", or ask for less"),
    )


_HEAD, _PROBLEMS, _ERRORS = "overview", "problems", "errors"


@dataclass(frozen=True)
class FleetReport:
    """The answers by section, in the order in which they are told, and their titles."""

    dataset: str
    sections: Mapping[str, Result]
    titles: Mapping[str, str]
    warnings: tuple[Notice, ...]

    @property
    def head(self) -> dict[str, Any]:
        """The row of the overview."""
        (row,) = self.sections[_HEAD].records()
        return row


def report_of(engine: FleetEngine, dataset: str, master: str | None = None) -> FleetReport:
    """Ask all sections.

    Raises: EvidenceError for a dataset without runs; QueryError.
    """
    sections = {name: answer(engine, name) for name in SECTIONS}
    sections[_PROBLEMS] = _named(engine, sections[_PROBLEMS])
    titles = {name: report_query(name).title for name in SECTIONS}
    head = sections[_HEAD].records()[0]
    if not head["runs_count"]:
        raise EvidenceError(
            "no-runs",
            dataset,
            "has no runs yet",
            have=f"{_errors(sections[_ERRORS])} sources that could not be read",
            fix=ingest_fix(dataset, master if is_uri(dataset) else None),
        )
    warnings = _warnings(head, _errors(sections[_ERRORS]))
    return FleetReport(dataset, sections, titles, (*engine.losses, *warnings))


def _named(engine: FleetEngine, problems: Result) -> Result:
    """Runs are labelled with what they are called; of no known machine also with their source."""
    listed = sorted({row["run"] for row in problems.records()})
    if not listed:
        return problems
    texts = ", ".join(f"'{run}'" for run in listed)  # hashes: of layout.RUN_ID
    sql = f"SELECT run, name, source, host FROM {RUNS} WHERE run IN ({texts})"
    _, rows = engine.select(sql, [RUNS])
    names = {}
    for run, name, source, host in rows:
        where = f" ({source})" if source and source != name and host == UNKNOWN else ""
        names[run] = f"{name or run}{where}"
    return replace(problems, labels={"run": names})


def _errors(result: Result) -> int:
    return sum(row["errors_count"] for row in result.records())


def _warnings(head: Mapping[str, Any], errors: int) -> Iterator[Notice]:
    """What holds for all numbers, besides what runs lost."""
    of = f"of {head['runs_count']} runs"
    if count := head["faulty_count"]:
        yield Notice("checks-differ", f"{count} {of} disagree with independent counters")
    if errors:
        yield Notice("ingest-errors", f"{errors} sources could not be read; see the last table")
    if count := head["unnamed_count"]:
        yield Notice("unknown-host", f"{count} {of} have no host name; counted as one machine")
    if (count := head["versions_count"]) > 1:
        yield Notice("several-versions", f"{count} versions of wbscope asked these runs")


Unit = Literal["run", "host"]

_METRIC_COLUMNS = (
    "run, metric, unit, better, meaning, source, not_across, value, sd, n"  # as read below
)
_HASH_DIGITS = 12
# What was recorded, and how: without that, numbers mean different things.
_SAME_FOR_ALL = ("clock", "events", "format")
_SEVERAL = "several"
_SHOWN_DIGITS = 8


def both_sides(
    engine: FleetEngine, cohort: str, against: str, unit: Unit, wanted: Wanted
) -> tuple[Side, Side, tuple[Notice, ...]]:
    """The sides A and B: runs for which a predicate over `runs` holds, or their machines.

    Also what differs among the runs of a side: machines are what a fleet is a sample of, so that
    is told and not refused. What all runs of a side share has to be the same on the other.

    Raises: UsageError for a run on both sides, EvidenceError for a side without any, QueryError
    for what is no predicate.
    """
    sides = [_runs_where(engine, name, text) for name, text in (("A", cohort), ("B", against))]
    if shared := {run for run, _, _ in sides[0]} & {run for run, _, _ in sides[1]}:
        raise UsageError(
            "run-on-both-sides",
            f"{len(shared)} runs",
            f"are in both cohorts: {', '.join(sorted(shared)[:3])}",
            fix="predicates that exclude each other: \"kernel = 'A'\" and \"kernel = 'B'\"",
        )
    measured = [_measured(engine, rows, wanted) for rows in sides]
    mixed, told = _mixed(measured)
    made = []
    for name, rows, runs in zip("AB", sides, measured, strict=True):
        settled = [replace(run, fingerprint={**run.fingerprint, **mixed}) for run in runs]
        hosts = [host for _, host, _ in rows]
        made.append(Side(name, tuple(by_host(settled, hosts) if unit == "host" else settled)))
    return made[0], made[1], told


def by_host(runs: Sequence[RunData], hosts: Sequence[str]) -> list[RunData]:
    """One for each machine: the median over its runs; a fact that differs between them is unknown.

    A machine is a session of its own: one that is on both sides is compared with itself.

    Shape:  runs (n,), hosts (n,).
    """
    groups: dict[str, list[RunData]] = {}
    for run, host in zip(runs, hosts, strict=True):
        groups.setdefault(host, []).append(run)
    return [_machine(host, group) for host, group in sorted(groups.items())]


def _mixed(sides: Sequence[Sequence[RunData]]) -> tuple[dict[str, Fact], tuple[Notice, ...]]:
    """Facts that differ within a side, each as one for all, and how they differ."""
    mixed: dict[str, Fact] = {}
    told = []
    for name in dict.fromkeys(n for runs in sides for run in runs for n in run.fingerprint):
        known = [{run.fingerprint.get(name) for run in runs} - {None} for runs in sides]
        if name in _SAME_FOR_ALL or max(map(len, known)) < 2:
            continue
        mixed[name] = _SEVERAL
        told.append(f"{name} ({len(known[0])} values in A, {len(known[1])} in B)")
    if not told:
        return mixed, ()
    return mixed, (Notice("mixed-cohort", f"runs of a cohort differ in {', '.join(told)}"),)


def _machine(host: str, runs: Sequence[RunData]) -> RunData:
    scalars = Scalars()
    for name, metric in {n: m for run in runs for n, (m, _) in run.scalars.items()}.items():
        values = [value for run in runs if (value := run.value(name)) is not None]
        scalars.add(metric, median(values) if values else None)
    facts: dict[str, Fact] = {}
    for name in dict.fromkeys(name for run in runs for name in run.fingerprint):
        found = {run.fingerprint.get(name) for run in runs}
        facts[name] = found.pop() if len(found) == 1 else None
    checked = [run.checked for run in runs]
    told = hashlib.sha256("".join(sorted(run.source_id for run in runs)).encode()).hexdigest()
    everywhere = set.intersection(*(set(run.lacking) for run in runs))
    return RunData(
        name=host,
        source_id=told[:_HASH_DIGITS],
        scalars=scalars,
        zeros={name: value for run in runs for name, value in run.zeros.items()},
        lacking={name: runs[0].lacking[name] for name in sorted(everywhere)},
        fingerprint=facts,
        definitions={name: one for run in runs for name, one in run.definitions.items()},
        warnings=tuple(dict.fromkeys(notice for run in runs for notice in run.warnings)),
        checked=None if None in checked else tuple(t for one in checked if one for t in one),
        session=Session(f"host:{host}"),
    )


def _runs_where(engine: FleetEngine, side: str, predicate: str) -> list[tuple[str, str, str]]:
    """Run, host and what is told of it, in the order in which they were recorded."""
    if not predicate.strip() or predicate.count("(") != predicate.count(")"):
        raise UsageError(
            "bad-predicate",
            predicate or "''",
            "is no predicate over the columns of `runs`",
            fix="\"kernel = '6.12.1' AND host LIKE 'db%'\"",
        )
    _, rows = engine.select(
        f"SELECT run, host, about FROM {RUNS} WHERE ({predicate}\n)"
        " ORDER BY recorded_unix_s NULLS LAST, name, run",
        sorted({RUNS, *tables_in(predicate, table_names(load_library()))}),
    )
    if not rows:
        raise EvidenceError(
            "empty-cohort",
            f"{side}: {predicate}",
            "holds for no run of the dataset",
            fix='wbscope fleet sql DATASET "SELECT host, kernel, count(*) FROM runs GROUP BY 1, 2"',
        )
    return [(str(run), str(host), str(about)) for run, host, about in rows]


def _measured(
    engine: FleetEngine, rows: Sequence[tuple[str, str, str]], wanted: Wanted
) -> list[RunData]:
    """The runs with the metrics that are wanted."""
    _, families = engine.select(f"SELECT DISTINCT family FROM {METRICS} ORDER BY family", [METRICS])
    named = [str(family) for (family,) in families if wanted(str(family))]
    metrics = _metrics(engine, [run for run, _, _ in rows], named)
    runs = []
    for run, host, about in rows:
        told = runs_of_text(about, Path(f"runs.about of {run}"))[0]
        scalars = metrics.get(run, Scalars())
        zeros = {name: zero for name, zero in told.zeros.items() if wanted(name)}
        queries = {name.partition(".")[0] for name in (*scalars, *zeros)}
        kept = {name: one for name, one in told.definitions.items() if name in queries}
        runs.append(
            replace(
                told,
                name=f"{host}/{run[:_SHOWN_DIGITS]}",
                scalars=scalars,
                zeros=zeros,
                definitions=kept,
            )
        )
    return runs


def _metrics(
    engine: FleetEngine, runs: Iterable[str], families: Sequence[str]
) -> dict[str, Scalars]:
    if not families:
        return {}
    _, rows = engine.select(
        f"SELECT {_METRIC_COLUMNS} FROM {METRICS}"
        f" WHERE family IN ({_texts(families)}) AND run IN ({_texts(runs)})"
        " ORDER BY run, place",
        [METRICS],
    )
    found: dict[str, Scalars] = {}
    for run, name, unit, better, meaning, source, border, value, sd, n in rows:
        metric = Metric(name, unit, better_of(better, name), meaning, source, border or "")
        spread = None if sd is None or n is None else Spread(sd, n)
        found.setdefault(run, Scalars()).add(metric, value, spread)
    return found


def _texts(values: Iterable[Any]) -> str:
    return ", ".join("'" + str(value).replace("'", "''") + "'" for value in values)
