# SPDX-License-Identifier: Apache-2.0
"""The runs of a bisection: made in turns, kept as those of a lab, read as one metric."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wbscope.base.arguments import Argument, Phrase
from wbscope.base.errors import EvidenceError, InputError, UsageError
from wbscope.compare.comparison import across, other_meaning
from wbscope.compare.load import Loader
from wbscope.compare.nearmetrics import near_metrics
from wbscope.compare.policy import Rule, matches, wanted_by
from wbscope.compare.rundata import RunData
from wbscope.lab.execute import make_one
from wbscope.lab.matrix import Cell, Matrix
from wbscope.lab.order import Job
from wbscope.lab.places import Places
from wbscope.lab.store import Store
from wbscope.measure.metric import Metric

__all__ = ["Broken", "LabRunner"]


@dataclass(eq=False)
class Broken(Exception):
    """A point that cannot be measured: its build failed, a run did."""

    why: str


@dataclass
class LabRunner:
    """A judge's runner; points are names of cells, and `cell_of` makes their kernels.

    Runs that are there already, of a command that was stopped, are taken as they are: the same
    numbers lead to the same decisions.
    """

    matrix: Matrix
    store: Store
    places: Places
    cell_of: Callable[[str], Cell]
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
        job = Job(self.cell_of(point), number)
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
