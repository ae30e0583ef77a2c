# SPDX-License-Identifier: Apache-2.0
"""Results of a lab by cell, and what a step of the matrix changes.

The file of results is a baseline, so compare reads it, too, with one more entry: what the folder of
the lab told.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wbscope.base.errors import (
    Argument,
    EvidenceError,
    InputError,
    Phrase,
    UsageError,
    WbscopeError,
)
from wbscope.base.result import Notice
from wbscope.compare.baseline import baseline_text, read_baseline
from wbscope.compare.comparison import ALPHA, Row, Sample, Side, contrast, metrics_of, sample_of
from wbscope.compare.load import Loader
from wbscope.compare.metrics import unknown_metric
from wbscope.compare.policy import Rule, matches, wanted_by
from wbscope.compare.rundata import Fact, RunData
from wbscope.compare.sameness import differences, facts_text
from wbscope.ingest.program import Observer
from wbscope.lab.store import CellRuns, Finished
from wbscope.measure.metric import Metric, Scalars, split_name
from wbscope.stats.estimates import median_interval
from wbscope.stats.planning import pooled_sd
from wbscope.stats.tests import smallest_p

# Throughput, what writers pay for it, how equally, how long at once, reclaim, and what the
# workload measured itself.
DEFAULT_METRICS = (
    "throughput.written_bytes_per_s",
    "throttle_summary.throttled_ratio",
    "fairness.jain_ratio",
    "throttle_summary.pause_p99_ns",
    "vmstat.nr_vmscan_write_count",
    "ops.*",
)


@dataclass(frozen=True)
class CellNumbers:
    """One metric of one cell.

    interval  of the median, with the confidence of the report; else None
    """

    sample: Sample
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Change:
    """One metric from cell to cell.

    over_noise  the change by the spread within the cells; None where there is no spread to
                be had, or nothing was compared
    """

    row: Row
    over_noise: float | None

    @property
    def is_decided(self) -> bool:
        """Told apart from chance, whichever way is better."""
        return self.row.is_sure

    @property
    def size(self) -> float:
        """What changes are sorted by; without noise any change is large."""
        if self.over_noise is not None:
            return abs(self.over_noise)
        return 0.0 if self.row.shift is None or _moved(self.row) == 0 else math.inf


@dataclass(frozen=True)
class Pair:
    """Two cells that differ in one axis; `facts` is what differs in the recordings."""

    axis: str
    cell: str
    base: str
    changes: tuple[Change, ...]
    facts: str

    @property
    def size(self) -> float:
        """Of its largest change."""
        return max((change.size for change in self.changes), default=0.0)


@dataclass(frozen=True)
class LabReport:
    """Everything that is told; no run that is not finished is in it.

    facts   of each cell's runs: fact -> its values
    """

    lab: Finished
    metrics: tuple[Metric, ...]
    sides: Mapping[str, Side]
    numbers: Mapping[tuple[str, str], CellNumbers]
    pairs: tuple[Pair, ...]
    warnings: tuple[Notice, ...]
    alpha: float

    def of(self, cell: str, metric: Metric) -> CellNumbers:
        """What is known of this metric there."""
        return self.numbers[cell, metric.name]

    def facts(self, name: str) -> dict[str, dict[Fact, None]]:
        """Cell -> the values of this fact among its runs, in their order."""
        return {
            cell: dict.fromkeys(run.fingerprint.get(name) for run in side.runs)
            for cell, side in self.sides.items()
        }

    @property
    def undecidable(self) -> str | None:
        """Why no pair, however different, can be decided; None = some can."""
        sizes = sorted((len(side.runs) for side in self.sides.values()), reverse=True)[:2]
        if len(sizes) < 2:
            return "there is one cell with runs, and nothing to compare it with"
        least = smallest_p(*sizes)
        if least <= self.alpha:
            return None
        many = "1 run" if sizes[0] == 1 else f"{sizes[0]} runs"
        return (
            f"nothing can be decided: with {many} of a cell at most, no p is below {least:.2g},"
            f" wanted {self.alpha:g}; make 6 of each"
        )


def lab_report(
    lab: Finished,
    metrics: Sequence[str] = (),
    watch: Callable[[str], AbstractContextManager[Observer | None]] = lambda _: nullcontext(),
    alpha: float = ALPHA,
) -> LabReport:
    """`metrics` are names or patterns; those of the matrix, or the usual ones, when there are none.

    Raises: EvidenceError where no run is finished, UsageError for a metric that no run has.
    """
    if not lab.made:
        raise EvidenceError(
            "no-runs", str(lab.folder), "has no finished run",
            fix=Phrase("make them: wbscope lab MATRIX.toml with ", Argument("resume", True)),
        )  # fmt: skip
    patterns = list(metrics or lab.metrics or DEFAULT_METRICS)
    wanted = wanted_by([Rule(pattern) for pattern in patterns])
    loader = Loader(wanted=wanted, watch=watch, allow_damaged=True)
    warnings: list[Notice] = []
    sides = {cell.name: _side(loader, cell, warnings) for cell in lab.cells if cell.runs}
    if not any(side.runs for side in sides.values()):
        raise EvidenceError(
            "no-runs", str(lab.folder), "has no finished run that can be compared",
            have=f"{warnings[0].run} {warnings[0].message}" if warnings else None,
            fix=Phrase("take these away, and make them: wbscope lab MATRIX.toml with ",
                       Argument("resume", True)),
        )  # fmt: skip
    known = {m.name: m for m in metrics_of(run for side in sides.values() for run in side.runs)}
    names: dict[str, None] = {}
    for pattern in patterns:
        found = matches(pattern, known)
        if not found and metrics:
            raise _unknown(pattern, lab, sides)
        names |= dict.fromkeys(found)
    chosen = tuple(known[name] for name in names)
    return LabReport(
        lab=lab,
        metrics=chosen,
        sides=sides,
        numbers={
            (name, metric.name): _numbers(metric, side, alpha)
            for name, side in sides.items()
            for metric in chosen
        },
        pairs=tuple(_pairs(lab, sides, chosen, alpha)),
        warnings=tuple(warnings),
        alpha=alpha,
    )


def _side(loader: Loader, cell: CellRuns, warnings: list[Notice]) -> Side:
    """The cell's runs, without those that cannot be read, or in part only."""
    if cell.kept:
        side = Side(cell.name, tuple(loader.chosen(run) for run in cell.kept))
    else:
        side = Side(cell.name, tuple(_readable(loader, cell, warnings)))
    for run in side.runs:
        warnings += [Notice(n.slug, n.message, f"{cell.name} {run.name}") for n in run.warnings]
        if run.damaged:
            told = "is left out: a part of a run is not comparable with a whole one"
            warnings.append(Notice("damaged-run", told, f"{cell.name} {run.name}"))
    return Side(cell.name, tuple(run for run in side.runs if not run.damaged))


def _readable(loader: Loader, cell: CellRuns, warnings: list[Notice]) -> Iterator[RunData]:
    """One run that is spoilt does not hide all others."""
    for path in cell.runs:
        try:
            yield loader.side(cell.name, [str(path)]).runs[0]
        except InputError as error:
            told = f"is left out: {error.message}"
            warnings.append(Notice("unreadable-run", told, f"{cell.name} {path.name}"))


def _unknown(pattern: str, lab: Finished, sides: Mapping[str, Side]) -> UsageError:
    """With names like it among all that a run has."""
    cell, run = next((cell, run) for cell in lab.cells if cell.name in sides
                     for run in sides[cell.name].runs)  # fmt: skip
    if not cell.kept:
        path = next(path for path in cell.runs if path.name == run.name)
        (run,) = Loader(allow_damaged=True).side("", [str(path)]).runs
    return unknown_metric(pattern, run.scalars, "these runs")


def _numbers(metric: Metric, side: Side, alpha: float) -> CellNumbers:
    sample = sample_of(metric.name, side)
    return CellNumbers(sample, median_interval(sample.values, 1 - alpha))


def _pairs(
    lab: Finished, sides: Mapping[str, Side], metrics: Sequence[Metric], alpha: float
) -> list[Pair]:
    """The largest change first; equal ones as the matrix has the cells."""
    pairs = []
    for axis, cell, base in lab.neighbours():
        if cell.name not in sides or base.name not in sides:
            continue
        one, other = sides[cell.name], sides[base.name]
        rows = [contrast(metric, one, other, alpha, 0.0) for metric in metrics]
        changes = [Change(row, _over_noise(row)) for row in rows]
        changes.sort(key=lambda change: -change.size)
        facts = [found.fact for found in differences([*one.runs, *other.runs])]
        pairs.append(Pair(axis, cell.name, base.name, tuple(changes), facts_text(facts)))
    return sorted(pairs, key=lambda pair: -pair.size)


def _moved(row: Row) -> float:
    """The shift as a number that is 0 when nothing moved."""
    assert row.shift is not None
    estimate = row.shift.estimate
    return math.log(estimate) if row.shift.scale == "ratio" else estimate


def _over_noise(row: Row) -> float | None:
    """On the scale of the shift: a ratio is compared with the spread of logarithms."""
    if row.shift is None:
        return None
    sides = [np.array(row.sample.values), np.array(row.base_sample.values)]
    spread = pooled_sd(*(np.log(s) if row.shift.scale == "ratio" else s for s in sides))
    return _moved(row) / spread if spread else None


_KEY = "lab"


def kept_text(report: LabReport) -> str:
    """The file: the metrics of the report, of every run in it.

    Raises: UsageError where runs measure one metric in two ways.
    """
    lab = report.lab
    wanted = {metric.name for metric in report.metrics}
    about = {
        "title": lab.title,
        "digest": lab.digest,
        "wbscope_version": lab.version,
        "axes": {axis: list(names) for axis, names in lab.axes.items()},
        "wanted": lab.wanted,
        "seed": lab.seed,
        "metrics": list(lab.metrics),
        "matrix": lab.matrix,
        "searched": lab.searched,
        "cells": [
            {
                "name": cell.name,
                "values": dict(cell.values),
                "runs": len(report.sides[cell.name].runs) if cell.name in report.sides else 0,
                "failed": {str(number): why for number, why in cell.failed.items()},
                "missing": list(cell.missing),
            }
            for cell in lab.cells
        ],
    }
    runs = [
        _only(replace(run, name=f"{cell}/{run.name}"), wanted)
        for cell, side in report.sides.items()
        for run in side.runs
    ]
    return baseline_text(runs, {_KEY: about})


def _only(run: RunData, wanted: set[str]) -> RunData:
    """Without the metrics that the report does not tell."""
    scalars = Scalars()
    for name, (metric, value) in run.scalars.items():
        if name in wanted:
            scalars.add(metric, value)
    families = {split_name(name)[0] for name in wanted}
    queries = {name.partition(".")[0] for name in wanted}
    return replace(
        run,
        scalars=scalars,
        zeros={name: value for name, value in run.zeros.items() if name in families},
        lacking={query: why for query, why in run.lacking.items() if query in queries},
        definitions={query: text for query, text in run.definitions.items() if query in queries},
    )


def read_kept(path: Path) -> Finished:
    """Raises: InputError where it is no such file."""
    runs = list(read_baseline(path))
    document = json.loads(path.read_text(encoding="utf-8"))
    try:
        return _finished(path, document[_KEY], runs)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, WbscopeError) as error:
        raise InputError(
            "no-lab", str(path), f"has no numbers of a lab: {error!r}",
            fix="wbscope lab report DIR --save results.json",
        ) from error  # fmt: skip


def _finished(path: Path, lab: Mapping[str, Any], runs: list[RunData]) -> Finished:
    if sum(cell["runs"] for cell in lab["cells"]) != len(runs):
        raise ValueError(f"{len(runs)} runs are not those of the cells")
    cells = []
    for cell in lab["cells"]:
        mine, runs = runs[: cell["runs"]], runs[cell["runs"] :]
        names = [run.name.removeprefix(f"{cell['name']}/") for run in mine]
        cells.append(
            CellRuns(
                name=str(cell["name"]),
                values={str(axis): str(value) for axis, value in cell["values"].items()},
                runs=tuple(Path(name) for name in names),
                failed={int(number): str(why) for number, why in cell["failed"].items()},
                missing=tuple(int(number) for number in cell["missing"]),
                kept=tuple(replace(run, name=name) for run, name in zip(mine, names, strict=True)),
            )
        )
    return Finished(
        folder=path,
        title=str(lab["title"]),
        digest=str(lab["digest"]),
        version=str(lab["wbscope_version"]),
        axes={str(axis): tuple(map(str, names)) for axis, names in lab["axes"].items()},
        wanted=int(lab["wanted"]),
        seed=int(lab["seed"]),
        matrix=str(lab["matrix"]),
        metrics=tuple(map(str, lab["metrics"])),
        cells=tuple(cells),
        searched=str(lab.get("searched", "")),
    )
