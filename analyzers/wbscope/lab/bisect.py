# SPDX-License-Identifier: Apache-2.0
"""A bisection along an axis of a matrix: its points, its runs, and the search."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Literal, NoReturn

from wbscope.base.errors import Argument, EvidenceError, InputError, Phrase, UsageError
from wbscope.base.outputs import write_whole
from wbscope.compare.comparison import across, other_meaning
from wbscope.compare.load import Loader
from wbscope.compare.metrics import near_metrics
from wbscope.compare.policy import Rule, matches, wanted_by
from wbscope.compare.rundata import RunData
from wbscope.lab.judging import Confirmed, Judge, Point, Spent, Test, make_one
from wbscope.lab.matrix import Cell, Job, Matrix
from wbscope.lab.places import Places
from wbscope.lab.store import LAB_FILE, Store, read_lab
from wbscope.measure.metric import Metric


def axis_cells(matrix: Matrix, axis: str, good: str | None, bad: str | None) -> list[Cell]:
    """The cells from the good end to the bad one, in the order of the file or against it.

    An end that is not named is the first or the last name of the axis.
    Raises: UsageError where the two do not differ in this axis alone.
    """
    if axis not in matrix.axes:
        _refuse("no-axis", axis, "is no axis of the matrix", " ".join(matrix.axes), "axis",
                next(iter(matrix.axes), "kernel"))  # fmt: skip
    names = matrix.axes[axis]
    by_name = {cell.name: cell for cell in matrix.cells}
    for argument, name in (("good", good), ("bad", bad)):
        if name is not None and name not in by_name:
            told = "is no cell of the matrix"
            _refuse("no-cell", name, told, " ".join(by_name), argument, next(iter(by_name)))
    known = by_name.get(str(good or bad))
    others = {key: value for key, value in known.values.items() if key != axis} if known else {}
    several = [key for key, found in matrix.axes.items() if key != axis and len(found) > 1]
    if several and known is None:
        told = f"could be any name of {', '.join(several)}, wanted a cell"
        _refuse("no-end", "the good end", told, " ".join(by_name), "good", next(iter(by_name)))
    others |= {key: found[0] for key, found in matrix.axes.items() if key not in (axis, *others)}
    series = [
        cell
        for name in names
        for cell in matrix.cells
        if cell.values == {key: others.get(key, name) for key in matrix.axes}
    ]
    places = {cell.name: place for place, cell in enumerate(series)}
    first = places.get(good, -1) if good else 0
    last = places.get(bad, -1) if bad else len(series) - 1
    if min(first, last) < 0 or first == last:
        told = f"and {bad or series[-1].name} do not differ in {axis} alone"
        _refuse("no-series", str(good or series[0].name), told, " ".join(by_name), "bad",
                series[-1].name)  # fmt: skip
    return series[first : last + 1] if first < last else series[last : first + 1][::-1]


def of_cells(matrix: Matrix, axis: str, cells: Sequence[Cell]) -> Matrix:
    """A matrix of these cells, for their folder."""
    axes = {
        key: tuple(dict.fromkeys(cell.values[key] for cell in cells)) for key in cells[0].values
    }
    # The last was for other series: folders of older versions have it in their digest.
    told = json.dumps([matrix.digest, axis, [cell.name for cell in cells], ""])
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    return replace(matrix, axes=axes, cells=tuple(cells), digest=digest)


def note_search(folder: Path, command: Sequence[str]) -> None:
    """How this folder came to be: not as many runs of each cell, but as many as it took."""
    lab = read_lab(folder)
    lab["searched"] = shlex.join(command)
    write_whole(folder / LAB_FILE, json.dumps(lab, indent=1) + "\n")


def _refuse(slug: str, subject: str, told: str, have: str, argument: str, value: str) -> NoReturn:
    raise UsageError(slug, subject, told, have=have, fix=Phrase(Argument(argument, value)))


@dataclass(eq=False)
class Broken(Exception):
    """A point that cannot be measured: a run of it failed."""

    why: str


@dataclass
class LabRunner:
    """A judge's runner; points are names of cells.

    Runs that are there already, of a command that was stopped, are taken as they are: the same
    numbers lead to the same decisions.
    """

    matrix: Matrix
    store: Store
    places: Places
    cells: Mapping[str, Cell]
    metric_name: str
    told: Callable[[str], None]
    metric: Metric | None = None
    made: int = 0
    _given: dict[str, int] = field(default_factory=dict)
    _read: list[RunData] = field(default_factory=list)
    _session: str = field(default_factory=lambda: str(uuid.uuid4()))
    _loader: Loader = field(init=False)

    def __post_init__(self) -> None:
        self._loader = Loader(wanted=wanted_by([Rule(self.metric_name)]))

    def runs(self, points: Sequence[str], count: int) -> dict[str, list[float] | str]:
        """A B, B A, and so on, until they are made or one fails.

        A run that failed is tried again when more are asked for.

        Raises: SetupError where no run can be made at all; UsageError for a metric that is none;
        EvidenceError for one that is not the same thing at all points.
        """
        made: dict[str, list[float]] = {point: [] for point in points}
        for turn in range(count):
            for point in points if turn % 2 == 0 else reversed(points):
                number = self._given.get(point, 0) + 1
                try:
                    made[point].append(self._value(point, number))
                except Broken as broken:
                    return {**made, point: f"{point}: {broken.why}"}
                self._given[point] = number
        return dict(made)

    def higher_is_worse(self) -> bool | None:
        """As the metric says, once there are runs."""
        if self.metric is None or self.metric.better == "neutral":
            return None
        return self.metric.better == "lower"

    def _value(self, point: str, number: int) -> float:
        job = Job(self.cells[point], number)
        if not self.store.is_done(job):
            self._make(job)
        data = self._data(job)
        if self.metric is None:
            self.metric = self._chosen(data, self.store.path(job))
        self._read.append(data)
        if self.metric is None:
            return data.zeros[self._family]
        self._check_meaning(self.metric)
        value = data.value(self.metric.name)
        if value is None:
            raise Broken(f"run {number} has no {self.metric.name}")
        return value

    @property
    def _family(self) -> str:
        return self.metric_name.partition("[")[0]

    def _make(self, job: Job) -> None:
        self.made += 1
        about = {
            "cell": job.cell.name,
            "values": job.cell.values,
            "number": job.number,
            "place_in_order": self.made,
            "session": self._session,
            "digest": self.matrix.digest,
        }
        self.told(f"run {self.made}: {job.name}")
        why = make_one(job, self.store, self.places, self.matrix, about)
        if why is not None:
            raise Broken(f"run {job.number}: {why}")

    def _data(self, job: Job) -> RunData:
        """Of a finished run; one that cannot be read, or only in part, is no number."""
        path = str(self.store.path(job))
        try:
            return self._loader.side(job.cell.name, [path]).runs[0]
        except (EvidenceError, InputError) as error:
            raise Broken(f"run {job.number}: {error.message}") from error

    def _chosen(self, data: RunData, run: Path) -> Metric | None:
        """The one metric that is meant; None = this run has none of its kind, which is 0.

        Raises: UsageError.
        """
        names = matches(self.metric_name, data.scalars)
        if len(names) == 1:
            return data.scalars[names[0]][0]
        # Only a whole name with its keys tells which one another run will have.
        if not names and self._family in data.zeros:
            return None
        known = list(names or Loader().side("", [str(run)]).runs[0].scalars)
        close = names[:3] or near_metrics(self.metric_name, known)
        raise UsageError(
            "unknown-metric", self.metric_name,
            f"is {len(names)} metrics, wanted one" if names else "is no metric of these runs",
            have=", ".join(close) or None,
            fix=Phrase(Argument("metric", close[0] if close else "NAME")),
        )  # fmt: skip

    def _check_meaning(self, metric: Metric) -> None:
        """What other kernels count under this name may be another thing, and no change."""
        why = across(metric, self._read) or other_meaning(metric, self._read)
        if why is not None:
            raise EvidenceError(
                "not-comparable", metric.name, why,
                fix="wbscope queries    # names other metrics; or kernels on one side of it",
            )  # fmt: skip


Status = Literal["found", "nothing", "unmeasured", "range", "unconfirmed", "spent"]


@dataclass(frozen=True)
class Found(Generic[Point]):
    """How a search ended.

    status  found: the border is confirmed; nothing: the ends do not differ surely;
            unmeasured: an end has no runs, so nobody knows;
            range: what is between last_good and first_bad could not be judged;
            unconfirmed: fresh runs of the border did not show it again;
            spent: all runs that were allowed are made
    runs    that counted
    ends    against each other; None = the runs that were allowed did not do for it
    border  the fresh runs of the two, where they were made
    """

    status: Status
    last_good: Point
    first_bad: Point
    tests: tuple[Test[Point], ...]
    runs: int
    ends: Confirmed | None
    border: Confirmed | None = None
    why: str = ""


def planned_tests(points: int) -> int:
    """The ends, each halving of so many points, the border."""
    return math.ceil(math.log2(max(points - 1, 1))) + 2


def search(
    points: Sequence[Point], judge: Judge[Point], told: Callable[[Test[Point]], None]
) -> Found[Point]:
    """`points` from the good to the bad end; skipped ones are walked around."""
    low, high = 0, len(points) - 1
    tests: list[Test[Point]] = []
    ends = None

    def end(status: Status, why: str, border: Confirmed | None = None) -> Found[Point]:
        return Found(
            status, points[low], points[high], tuple(tests), judge.counted, ends, border, why
        )

    try:
        ends = judge.ends()
        if not ends.is_worse:
            return end("unmeasured" if ends.shift is None else "nothing", ends.why)
        skipped: set[int] = set()
        while left := [place for place in range(low + 1, high) if place not in skipped]:
            if not judge.may_test:
                return end("range", "too many points could not be judged")
            middle = (low + high) / 2
            place = min(left, key=lambda one: (abs(one - middle), one))
            tests.append(judge.test(points[place]))
            told(tests[-1])
            match tests[-1].verdict:
                case "good":
                    low = place
                case "bad":
                    high = place
                case "skip":
                    skipped.add(place)
        if between := high - low - 1:
            return end("range", f"{between} between them could not be judged")
        # Both with fresh runs: what chose them does not count for them.
        border = judge.confirm(points[low], points[high])
        return end("found" if border.is_worse else "unconfirmed", border.why, border)
    except Spent as spent:
        return end("spent", str(spent))
