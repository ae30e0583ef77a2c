# SPDX-License-Identifier: Apache-2.0
"""The runs of a lab in numbers: each cell's medians, and what a step along one axis changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import EvidenceError, InputError, UsageError
from wbscope.base.result import Notice
from wbscope.compare.comparison import ALPHA, Row, Sample, Side, contrast, metrics_of, sample_of
from wbscope.compare.differences import differences, facts_text
from wbscope.compare.load import Loader
from wbscope.compare.nearmetrics import unknown_metric
from wbscope.compare.policy import Rule, matches, wanted_by
from wbscope.compare.rundata import Fact, RunData
from wbscope.ingest.program import Observer
from wbscope.lab.finished import CellRuns, Finished
from wbscope.measure.metric import Metric
from wbscope.stats.center import median_interval
from wbscope.stats.planning import pooled_sd
from wbscope.stats.ranktest import smallest_p

__all__ = ["DEFAULT_METRICS", "CellNumbers", "Change", "LabReport", "Pair", "lab_report"]

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
