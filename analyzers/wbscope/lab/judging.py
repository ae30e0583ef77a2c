# SPDX-License-Identifier: Apache-2.0
"""Runs of a lab before the gate: made, judged, carried out.

Pure: whoever makes the runs is a Runner, and tests simulate one.

A point is looked at after 6 and, where that does not decide, after 12 and 24 runs.  It is bad when
it is significantly worse than the good end, good when the bad end is significantly worse than it,
both by more than the margin, by the exact Mann-Whitney test at alpha / (looks * planned tests):
with twice the planned tests, a wrong verdict is still made in at most alpha of all searches, as
each test can err in one direction only.  Neither, or both (half of the change), is skip: no point
is called bad because nobody knows.
"""

from __future__ import annotations

import math
import shutil
import time
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar

from wbscope.base.errors import Argument, Phrase, SetupError, UsageError
from wbscope.base.units import counted
from wbscope.compare.comparison import Side
from wbscope.compare.load import Loader
from wbscope.lab.matrix import Cell, Job, Matrix, interleaved
from wbscope.lab.places import Failure, Places
from wbscope.lab.store import Store
from wbscope.stats.estimates import Shift, shift

Point = TypeVar("Point", bound=Hashable)
Verdict = Literal["good", "bad", "skip"]

LOOKS = (6, 12, 24)


class Runner(Protocol[Point]):
    """Makes runs; its points are whatever names them."""

    def runs(self, points: Sequence[Point], count: int) -> Mapping[Point, Sequence[float] | str]:
        """The values of `count` more runs of each, made in turns.

        A text is why there are none of one; the others may have fewer then.
        """

    def higher_is_worse(self) -> bool | None:
        """Asked after runs; None = neither way, so the ends tell."""


class Spent(Exception):
    """The next runs would be more than were allowed."""

    def __str__(self) -> str:
        return "the runs that were allowed are made"


@dataclass(frozen=True)
class Plan:
    """How sure, how much, how many.

    margin  the share by which something must be worse to count
    tests   planned: the ends, the points, the border again; up to twice as many are made
    """

    margin: float
    tests: int
    alpha: float = 0.05
    looks: tuple[int, ...] = LOOKS
    most_runs: int | None = None

    @property
    def level(self) -> float:
        """Of a single comparison."""
        return self.alpha / (len(self.looks) * self.tests)

    @property
    def least_runs(self) -> int:
        """Of a search in which the first look at each decides; the ends and the border are two."""
        return self.looks[0] * (self.tests + 2)


@dataclass(frozen=True)
class Test(Generic[Point]):
    """One point that was looked at, and why the verdict is so."""

    __test__ = False  # not one of pytest's

    point: Point
    verdict: Verdict
    why: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Confirmed:
    """Two sides with runs of their own: significantly worse or not."""

    is_worse: bool
    why: str
    shift: Shift | None
    runs: int


@dataclass
class Judge(Generic[Point]):
    """Knows the ends; asks for runs as long as they are allowed.

    asked, counted  runs; those of a point whose runs fail do not count
    """

    good: Point
    bad: Point
    runner: Runner[Point]
    plan: Plan
    asked: int = 0
    counted: int = 0
    tests: int = 0
    values: dict[Point, list[float]] = field(default_factory=dict)
    _worse_is_higher: bool = True

    @property
    def may_test(self) -> bool:
        """The border, too, has to be tested in the end."""
        return self.tests + 1 < 2 * self.plan.tests

    def ends(self) -> Confirmed:
        """Whether there is anything to look for; asked first."""
        broken = self._until(self.plan.looks[0], (self.good, self.bad))
        if broken is None:
            known = self.runner.higher_is_worse()
            if known is None:
                moved = shift(self.values[self.bad], self.values[self.good])
                known = moved.estimate > (1 if moved.scale == "ratio" else 0)
            self._worse_is_higher = known
        return self._compared(self.good, self.bad, "the good end", "the bad end", broken)

    def test(self, point: Point) -> Test[Point]:
        """Raises: Spent."""
        self.tests += 1
        for runs in self.plan.looks:
            # The ends go on with it, so that they are compared at the same size.
            wanted = (point,) if runs == self.plan.looks[0] else (point, self.good, self.bad)
            if (broken := self._until(runs, wanted)) is not None:
                return Test(point, "skip", broken, tuple(self.values.get(point, ())))
            mine = self.values[point]
            is_bad = self._is_worse(mine, self.values[self.good])
            is_good = self._is_worse(self.values[self.bad], mine)
            if is_bad or is_good:
                break
        if is_bad and is_good:
            return Test(point, "skip", "between the good and the bad end", tuple(mine))
        if is_bad:
            return Test(point, "bad", "worse than the good end", tuple(mine))
        if is_good:
            return Test(point, "good", "better than the bad end", tuple(mine))
        return Test(point, "skip", f"not decided after {len(mine)} runs", tuple(mine))

    def confirm(self, good: Point, bad: Point) -> Confirmed:
        """Neighbours against each other, with fresh runs only.  Raises: Spent."""
        for point in (good, bad):
            self.values[point] = []
        return self._compared(good, bad, "the last good one", "the first bad one", None)

    def _compared(
        self, good: Point, bad: Point, good_name: str, bad_name: str, broken: str | None
    ) -> Confirmed:
        self.tests += 1
        found = None
        for runs in self.plan.looks:
            broken = broken or self._until(runs, (good, bad))
            if broken is not None:
                return Confirmed(False, broken, None, 0)
            mine, base = self.values[bad], self.values[good]
            found = shift(mine, base, 1 - self.plan.alpha)
            if self._is_worse(mine, base):
                return Confirmed(True, "", found, runs)
        why = f"{bad_name} is not significantly worse than {good_name} after {runs} runs of each"
        return Confirmed(False, why, found, runs)

    def _is_worse(self, side: Sequence[float], base: Sequence[float]) -> bool:
        found = shift(side, base)
        return found.p <= self.plan.level and (
            worse_by(found, base, self._worse_is_higher) > self.plan.margin
        )

    def _until(self, count: int, points: Sequence[Point]) -> str | None:
        """So many values of each, or why there are not."""
        missing = {point: count - len(self.values.get(point, ())) for point in points}
        for many in sorted({many for many in missing.values() if many > 0}):
            wanted = [point for point in points if missing[point] == many]
            runs = many * len(wanted)
            if self.plan.most_runs is not None and self.asked + runs > self.plan.most_runs:
                raise Spent
            self.asked += runs
            broken = None
            for point, found in self.runner.runs(wanted, many).items():
                if isinstance(found, str):
                    broken = broken or found
                    continue
                self.counted += len(found)
                self.values.setdefault(point, []).extend(found)
            if broken is not None:
                return broken
        return None


def worse_by(found: Shift, base: Sequence[float], higher_is_worse: bool) -> float:
    """The share of the base; below 0 = better."""
    if found.scale == "ratio":
        return found.estimate - 1 if higher_is_worse else 1 - found.estimate
    moved = found.estimate if higher_is_worse else -found.estimate
    size = abs(sorted(base)[len(base) // 2])
    return moved / size if size else math.copysign(math.inf, moved) if moved else 0.0


# A trace of seconds and what a guest writes to its disks in them.
_LEAST_ROOM_BYTES = 256 << 20


@dataclass(frozen=True)
class Progress:
    """One run ended.

    left_s  about so long for those that are left; by those that were made
    """

    job: Job
    number: int
    of: int
    seconds: float
    left_s: float
    why: str | None


@dataclass
class Summary:
    """What this command did; `failed` has the reason for each run that is missing."""

    made: int = 0
    kept: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def make_runs(
    matrix: Matrix,
    store: Store,
    places: Places,
    told: Callable[[Progress], None],
    session: str | None = None,
) -> Summary:
    """In their interleaved order; a failed run is one row, and the next one follows.

    session  of runs that a call before this one began; None = a new one

    Raises: SetupError, InputError, UsageError before the first run for what is missing;
    SetupError where the disk is full.
    """
    jobs = list(interleaved(matrix))
    summary = Summary(kept=sum(store.is_done(job) for job in jobs))
    todo = [(place, job) for place, job in enumerate(jobs, 1) if not store.is_done(job)]
    for _, job in todo:
        places.check(job.cell.setup)
    session = session or str(uuid.uuid4())
    spent: list[float] = []
    for number, (place, job) in enumerate(todo, 1):
        began = time.monotonic()
        about = {
            "cell": job.cell.name,
            "values": job.cell.values,
            "number": job.number,
            "place_in_order": place,
            "session": session,
            "digest": matrix.digest,
            "seed": matrix.seed,
        }
        why = make_one(job, store, places, matrix, about)
        if why is None:
            summary.made += 1
        else:
            summary.failed[job.name] = why
        spent.append(time.monotonic() - began)
        left = sum(spent) / len(spent) * (len(todo) - number)
        told(Progress(job, number, len(todo), spent[-1], left, why))
    return summary


def make_one(
    job: Job, store: Store, places: Places, matrix: Matrix, about: Mapping[str, object]
) -> str | None:
    """Why it failed; None = the run is there.

    Raises: SetupError where the disk is full.
    """
    _check_room(store.folder)
    try:
        with store.place(job) as work:
            try:
                run = places.make(job.cell.setup, work, matrix.limit_s, matrix.boots)
                store.keep(job, run, about)
                return None
            except Failure as failure:
                # On a full disk every run would fail, each with another last word.
                _check_room(store.folder)
                store.keep_failure(job, failure.why, _left(failure, work))
                return failure.why
    except OSError as error:
        raise _no_room(store.folder, str(error.strerror or error)) from error


def _check_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _LEAST_ROOM_BYTES:
        raise _no_room(folder, f"{free >> 20} MiB are free, wanted {_LEAST_ROOM_BYTES >> 20} MiB")


def _no_room(folder: Path, why: str) -> SetupError:
    return SetupError(
        "cannot-write", str(folder), f"a run cannot be made there: {why}",
        fix=Phrase("make room, then go on with ", Argument("resume", True)),
    )  # fmt: skip


def _left(failure: Failure, work: Path) -> Path:
    """A folder with the texts that the failed run left."""
    folder = work / "left-behind"
    folder.mkdir()
    for name, text in failure.left.items():
        if text:
            (folder / name).write_text(text, encoding="utf-8", errors="replace")
    return folder


def two_cells(matrix: Matrix, base: str | None) -> tuple[Cell, Cell]:
    """The cell that is judged, and the base: the first one, unless it is named.

    Raises: UsageError.
    """
    names = [cell.name for cell in matrix.cells]
    if len(names) != 2:
        raise UsageError(
            "not-two-cells", str(matrix.path),
            f"has {len(names)} cells, wanted two: the base and what is judged",
            have=", ".join(names[:8]), fix="[axis.kernel]    # with two names, in the matrix",
        )  # fmt: skip
    if base not in (None, *names):
        raise UsageError(
            "unknown-cell", str(matrix.path), f"has no cell {base}", have=", ".join(names),
            fix=Phrase(Argument("against", names[0])),
        )  # fmt: skip
    first, second = matrix.cells
    return (first, second) if base == second.name else (second, first)


@dataclass
class GateRuns:
    """Makes what is missing of so many runs of each cell; finished runs are taken as they are."""

    matrix: Matrix
    store: Store
    places: Places
    loader: Loader
    told: Callable[[Progress], None]
    base: str | None = None
    _session: str = field(default_factory=lambda: str(uuid.uuid4()))

    def __call__(self, runs: int) -> tuple[Side, Side]:
        """The side that is judged, and the base.

        Raises: SetupError for a run that failed: fewer runs would be other evidence.
        """
        matrix = replace(self.matrix, runs=runs)
        made = make_runs(matrix, self.store, self.places, self.told, self._session)
        if made.failed:
            name, why = next(iter(made.failed.items()))
            raise SetupError(
                "runs-failed", str(self.store.folder),
                f"{counted(len(made.failed), 'run')} failed, so nothing is judged; {name}: {why}",
                fix=Phrase("make them again with ", Argument("resume", True)),
            )  # fmt: skip
        side, base = two_cells(self.matrix, self.base)
        return self._side(side, runs), self._side(base, runs)

    def _side(self, cell: Cell, runs: int) -> Side:
        paths = [self.store.folder / cell.name / f"run-{n}" for n in range(1, runs + 1)]
        return self.loader.side(cell.name, [str(path) for path in paths])
