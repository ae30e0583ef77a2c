# SPDX-License-Identifier: Apache-2.0
"""Runs of a dataset as the sides that a gate judges; a predicate in SQL says which."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from wbscope.base.errors import EvidenceError, UsageError
from wbscope.base.result import Notice
from wbscope.compare.baseline import runs_of_text
from wbscope.compare.comparison import Side
from wbscope.compare.measure import Wanted
from wbscope.compare.rundata import Fact, RunData, Session
from wbscope.fleet.fleetsql import FleetEngine, tables_in
from wbscope.fleet.layout import METRICS, RUNS
from wbscope.fleet.tables import table_names
from wbscope.library.library import load_library
from wbscope.measure.metric import Metric, Scalars, Spread, better_of

__all__ = ["Unit", "both_sides", "by_host"]

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
