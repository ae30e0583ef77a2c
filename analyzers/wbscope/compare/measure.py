# SPDX-License-Identifier: Apache-2.0
"""From a run to its numbers: only the queries that somebody asked for are run."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wbscope.base.errors import EvidenceError
from wbscope.base.result import Notice, Result
from wbscope.compare.metrics import Catalog, Declared, Row
from wbscope.compare.rundata import RunData
from wbscope.compare.sameness import fingerprint_of, fingerprint_of_folder, folder_id
from wbscope.compare.sessions import (
    SESSION_FILES,
    meta_of_folder,
    session_of,
    session_of_folder,
)
from wbscope.library.library import Library
from wbscope.measure import files_of_folder, files_of_run, measurements
from wbscope.measure.metric import BETTER, Better, Metric, Scalars, join_name, split_name
from wbscope.run.run import Run

_HASH_DIGITS = 12
_WRONG = ("severe", "warning", "note")

Wanted = Callable[[str], bool]


def measure(
    run: Run, name: str, catalog: Catalog, wanted: Wanted = lambda _family: True
) -> RunData:
    """The numbers of one run, of the families that are wanted."""
    asked = [metric for metric in catalog.metrics if wanted(metric.family)]
    answers, lacking = _answers(run, asked)
    scalars, zeros = Scalars(), {}
    for metric in asked:
        result = answers.get((metric.query, metric.window))
        if result is None:
            continue
        for found, value in _numbers(metric, result, catalog.rows):
            scalars.add(found, value)
        if metric.none is not None:
            zeros[metric.family] = metric.none
            if not metric.by and scalars[metric.family][1] is None:
                scalars[metric.family] = (scalars[metric.family][0], metric.none)
    others = measurements(files_of_run(run))
    scalars.add_all(wanted_of(others.scalars, wanted, catalog.rows))
    queries = dict.fromkeys(metric.query for metric in asked)
    return RunData(
        name=name,
        source_id=_source_id(run),
        scalars=scalars,
        zeros=zeros,
        lacking=lacking,
        fingerprint=fingerprint_of(run),
        definitions={q: definition_of(run.library, q, catalog) for q in queries},
        warnings=(*run.warnings(), *others.warnings),
        session=session_of(run.texts(SESSION_FILES)),
    )


def findings_of(run: Run) -> dict[str, str]:
    """What is wrong with a run, in a few words by rule; that nothing is wrong is none."""
    return {one.id: one.title for one in run.findings() if one.severity in _WRONG}


def measure_folder(folder: Path, catalog: Catalog, wanted: Wanted) -> RunData:
    """The numbers of a run without a trace: only those that other tools measured."""
    files = files_of_folder(folder)
    found = measurements(files)
    return RunData(
        name=str(folder),
        source_id=folder_id(folder, files.texts),
        scalars=wanted_of(found.scalars, wanted, catalog.rows),
        fingerprint=fingerprint_of_folder(folder),
        warnings=(*found.warnings, *_failures(folder)),
        session=session_of_folder(folder),
    )


def _failures(folder: Path) -> Iterator[Notice]:
    """As the view wb_warning tells it of a run with a trace."""
    meta = meta_of_folder(folder)
    for key, how in (
        ("command_exit_code", "exited with"),
        ("command_signal", "was ended by signal"),
    ):
        value = meta.get(key)
        if isinstance(value, int) and value != 0:
            told = f"the command that was recorded {how} {value}, so it may not have done its work"
            yield Notice("command-failed", told)


def pauses_of(run: Run) -> list[tuple[float, float]]:
    """Length of a pause, and the share of all that were at most so long."""
    try:
        records = run.query("pause_distribution").records()
    except EvidenceError:
        return []
    return [(float(row["pause_ns"]), float(row["at_most_ratio"])) for row in records]


def definition_of(library: Library, query: str, catalog: Catalog) -> str:
    """A hash that changes with the SQL behind a query's numbers, or with how they are taken."""
    file = library.query(query)
    parts = [library.files[name].select for name in sorted(library.closure(file.needs))]
    taken = [
        (m.name, m.column, m.take, m.weight, m.by, sorted(m.where.items()), m.window, m.none)
        + ((m.longest,) if m.longest else ())
        for m in catalog.of(query)
    ]
    text = "\n".join([*parts, file.select, repr(taken)])
    words = " ".join(re.sub(r"--[^\n]*", " ", text).split())
    return hashlib.sha256(words.encode()).hexdigest()[:_HASH_DIGITS]


def stable_key(column: str, value: Any) -> str:
    """A key that the next run has, too: without numbers of CPUs, workers and devices."""
    text = "none" if value is None else str(value)
    if column == "comm":  # kworker/u4:2-flush-254:0, jbd2/vda-8
        text = text.split("/", 1)[0]
    return text or "none"


def _answers(
    run: Run, asked: Iterable[Declared]
) -> tuple[dict[tuple[str, str], Result], dict[str, str]]:
    """Each query once a window; those without one first, as they share what is made for them."""
    answers: dict[tuple[str, str], Result] = {}
    lacking: dict[str, str] = {}
    pairs = dict.fromkeys((metric.window, metric.query) for metric in asked)
    whole = f"{run.duration_ns() + 1}ns"
    for window, query in sorted(pairs):
        try:
            answers[query, window] = run.query(query, window=whole if window else None)
        except EvidenceError as error:
            lacking[query] = error.message
    return answers, lacking


def _numbers(
    metric: Declared, result: Result, rows: Mapping[str, Row]
) -> Iterable[tuple[Metric, float | None]]:
    """One number for each combination of keys; without keys, exactly one."""
    groups: dict[str, list[dict[str, Any]]] = {} if metric.by else {metric.family: []}
    for record in _long_enough(metric, result.records()):
        if any(record[column] != value for column, value in metric.where.items()):
            continue
        keys = {column: stable_key(column, record[column]) for column in metric.by}
        groups.setdefault(join_name(metric.family, keys), []).append(record)
    # Rows that tell their own unit are a list in an order of its own, such as that of mmtests.
    named = groups.items() if metric.unit_in else sorted(groups.items())
    for name, records in named:
        row = rows.get(name, Row())
        told = Metric(
            name=name,
            unit=_told(records, metric.unit_in, metric.unit),
            better=_better(records, metric),
            meaning=row.meaning or metric.meaning,
            source=metric.query,
            not_across=row.border(metric.not_across),
        )
        yield told, _taken(metric, records)


def _long_enough(metric: Declared, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not metric.longest:
        return records
    most = max((record[metric.longest] or 0 for record in records), default=0)
    return [record for record in records if 2 * (record[metric.longest] or 0) >= most]


def _told(records: list[dict[str, Any]], column: str, otherwise: str) -> str:
    found = records[0][column] if column and records else None
    return otherwise if found is None else str(found)


def _better(records: list[dict[str, Any]], metric: Declared) -> Better:
    told = _told(records, metric.better_in, metric.better)
    return next((better for better in BETTER if better == told), "neutral")


def _taken(metric: Declared, records: list[dict[str, Any]]) -> float | None:
    """The rows as one number; values that are not known are left out, as SQL does."""
    known = [record for record in records if record[metric.column] is not None]
    if metric.weight:
        known = [record for record in known if (record[metric.weight] or 0) > 0]
    values = np.array([float(record[metric.column]) for record in known])
    if values.size == 0:
        return None
    match metric.take:
        case "only":
            return float(values[0]) if values.size == 1 else None
        case "sum":
            return float(values.sum())
        case "min":
            return float(values.min())
        case "max":
            return float(values.max())
        case "median":
            return float(np.median(values))
    weights = [float(record[metric.weight]) for record in known] if metric.weight else None
    return float(np.average(values, weights=weights))


def wanted_of(scalars: Scalars, wanted: Wanted, rows: Mapping[str, Row]) -> Scalars:
    """Those asked for; a file is named without the folder, which is another in each run."""
    kept = Scalars()
    for name, (metric, value) in scalars.items():
        if wanted(split_name(name)[0]):
            border = rows.get(name, Row()).border(metric.not_across)
            told = replace(metric, source=Path(metric.source).name, not_across=border)
            kept.add(told, value, scalars.spreads.get(name))
    return kept


def _source_id(run: Run) -> str:
    """What tells that two runs are the same recording."""
    meta = run.recorded().meta
    known = [meta.get(key) for key in ("source_hash", "source_bytes", "first_ts", "last_ts")]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:_HASH_DIGITS]
