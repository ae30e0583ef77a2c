# SPDX-License-Identifier: Apache-2.0
"""What changed in a history: the series of each metric over commits, and its change points."""

from __future__ import annotations

import difflib
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import count, pairwise
from typing import Literal

import numpy as np

from wbscope.base.errors import Argument, EvidenceError, Phrase, UsageError
from wbscope.base.result import Notice
from wbscope.base.units import counted
from wbscope.compare.changepoints import (
    LEAST_VALUES,
    PERMUTATIONS,
    change_points,
    earliest_told,
)
from wbscope.compare.comparison import metrics_of
from wbscope.compare.history import Entry
from wbscope.compare.metrics import unknown_metric
from wbscope.compare.policy import matches
from wbscope.compare.rundata import RunData
from wbscope.compare.sameness import differences, is_before
from wbscope.measure.metric import Metric
from wbscope.stats.estimates import Shift
from wbscope.stats.tests import false_discovery, rank_order

# Of all changes that are told, such a share is false at most, however many metrics there are.
FDR = 0.05
# A p that so few permutations made may be chance, and more of them may lower it.
_FEW = 10
# So many are expected at the p that is wanted.
_WANTED = 5

Outcome = Literal["better", "worse", "changed", "undecided"]

# Runs that differ in one of these are of another machine, and of another series.
_MACHINE = ("machine", "cpus_count", "memory_bytes", "page_bytes", "device")
# What differs with every kernel, and explains nothing by that.
_WITH_KERNEL = ("kernel", "fields", "other_events")


@dataclass(frozen=True)
class Commit:
    """Runs of one commit, on one machine: repetitions."""

    name: str
    date: datetime
    runs: tuple[RunData, ...]

    @property
    def short(self) -> str:
        """A hash as git shortens it; other names as they are."""
        is_hash = len(self.name) >= 40 and not self.name.strip("0123456789abcdef")
        return self.name[:10] if is_hash else self.name

    @property
    def kernels(self) -> tuple[str, ...]:
        """Releases that are known of its runs."""
        told = (run.fingerprint.get("kernel") for run in self.runs)
        return tuple(dict.fromkeys(str(kernel) for kernel in told if kernel))


@dataclass(frozen=True)
class Point:
    """A metric at a commit: its value in each run that has one."""

    commit: Commit
    values: tuple[float, ...]

    @cached_property
    def median(self) -> float:
        """What stands for the commit: its runs share a build, and often a boot."""
        return float(np.median(self.values))


@dataclass(frozen=True)
class Change:
    """From the commit at `index` of its trend on, a metric is at another level.

    moved       from the median of the commits since the change before to that of those up to
                the next one
    p           of change_points(); p_adjusted: the same among all metrics, so that a share FDR of
                what is told is false at most
    evidence    the step as a multiple of how far commits of one level lie apart
    differing   facts other than the kernel that differ between the commit and the one before
    """

    metric: Metric
    index: int
    commit: Commit
    before: Commit
    level_before: float
    level: float
    moved: Shift
    p: float
    evidence: float
    differing: tuple[str, ...]
    p_adjusted: float = 1.0
    outcome: Outcome = "undecided"

    @property
    def is_sure(self) -> bool:
        """Told apart from chance."""
        return self.outcome != "undecided"


@dataclass(frozen=True)
class Trend:
    """One metric over commits; `left_out` are runs whose number counts another thing."""

    metric: Metric
    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    left_out: int = 0

    @property
    def can_change(self) -> bool:
        """False for too few commits, and where all are alike: nothing is tested."""
        return len(self.points) >= LEAST_VALUES and len({one.median for one in self.points}) > 1

    @cached_property
    def order(self) -> Hashable:
        """Equal for series whose commits are in the same order, or the reverse: one fact."""
        names = tuple(point.commit.name for point in self.points)
        return names, rank_order([point.median for point in self.points])


@dataclass(frozen=True)
class Trends:
    """All metrics that were asked for, in the order of the newest run's."""

    commits: tuple[Commit, ...]
    branch: str
    trends: tuple[Trend, ...]
    warnings: tuple[Notice, ...] = field(default=())

    @property
    def runs_count(self) -> int:
        """Runs of all commits."""
        return sum(len(commit.runs) for commit in self.commits)

    @property
    def tested_count(self) -> int:
        """Metrics that may have changed; those in one order are one."""
        return _tested_count(self.trends)

    @property
    def earliest(self) -> int | None:
        """After how many commits a new level of one metric alone can be told, if ever."""
        return _earliest(self.trends)

    def changes(self, *, sure: bool = True) -> list[Change]:
        """Those told apart from chance, or those that are not; the most evident first."""
        found = [one for trend in self.trends for one in trend.changes if one.is_sure == sure]
        return sorted(found, key=lambda one: (one.p_adjusted, -one.evidence))


def trends(
    entries: Sequence[Entry],
    patterns: Sequence[str] = ("*",),
    since: datetime | None = None,
    branch: str | None = None,
) -> Trends:
    """The series of one branch and one machine: those of the newest run, unless asked otherwise.

    entries  by the date of their commits

    Raises: EvidenceError when no run is left, UsageError for a pattern that no metric has.
    """
    chosen, branch, warnings = _of_branch(entries, branch)
    chosen = [one for one in chosen if since is None or one.place.date >= since]
    if not chosen:
        told = "has no run" + (f" of branch {branch}" if branch else "")
        told += "" if since is None else f" since {since.isoformat()}"
        raise EvidenceError("no-runs", "history", told, fix="wbscope history add FILE.db RUN...")
    chosen, others = _of_machine(chosen)
    commits = _commits(chosen)
    metrics = _asked_for([one.run for one in chosen], patterns)
    found = _adjusted(_permuted_on(_adjusted([_trend(metric, commits) for metric in metrics])))
    warnings = (*warnings, *others, *_told(commits), *_never_told(found))
    return Trends(commits, branch, found, warnings)


def _of_branch(
    entries: Sequence[Entry], branch: str | None
) -> tuple[list[Entry], str, tuple[Notice, ...]]:
    names = list(dict.fromkeys(one.place.branch for one in entries))
    if branch is not None and branch not in names:
        close = difflib.get_close_matches(branch, names, n=1, cutoff=0.4) or names[:1]
        fix = Phrase(Argument("branch", *close)) if close else None
        raise UsageError("no-branch", branch, "is no branch of this history", fix=fix,
                         have=", ".join(names) or None)  # fmt: skip
    if branch is not None or not entries:
        return [one for one in entries if one.place.branch == branch], branch or "", ()
    newest = entries[-1].place.branch
    chosen = [one for one in entries if one.place.branch == newest]
    left = [name or "no branch" for name in names if name != newest]
    if not left:
        return chosen, newest, ()
    told = f"{len(entries) - len(chosen)} runs of other branches are left out: {', '.join(left)}"
    return chosen, newest, (Notice("other-branches", told),)


def _of_machine(entries: list[Entry]) -> tuple[list[Entry], tuple[Notice, ...]]:
    newest = _machine(entries[-1].run, "this")
    apart = [differences([_machine(one.run, "other"), newest]) for one in entries]
    chosen = [one for one, facts in zip(entries, apart, strict=True) if not facts]
    if len(chosen) == len(entries):
        return chosen, ()
    names = dict.fromkeys(fact.fact for facts in apart for fact in facts)
    told = f"{len(entries) - len(chosen)} runs of another machine than the newest are left out,"
    return chosen, (Notice("other-machines", f"{told} by {', '.join(names)}"),)


def _machine(run: RunData, name: str) -> RunData:
    facts = {fact: run.fingerprint.get(fact) for fact in _MACHINE}
    return replace(run, name=name, fingerprint=facts)


def _commits(entries: Sequence[Entry]) -> tuple[Commit, ...]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.place.commit, []).append(entry)
    return tuple(
        Commit(name, members[0].place.date, tuple(one.run for one in members))
        for name, members in groups.items()
    )


def _told(commits: Sequence[Commit]) -> tuple[Notice, ...]:
    """What makes all numbers doubtful."""
    found = []
    if len(commits) < LEAST_VALUES:
        told = f"{counted(len(commits), 'commit')}, and with fewer than {LEAST_VALUES} no change"
        told += " can be told from chance; wbscope compare judges two of them, with 6 runs each or"
        told += " more"
        found.append(Notice("too-few-commits", told))
    doubtful = [
        f"{run.name} of {commit.short}"
        for commit in commits
        for run in commit.runs
        if run.lost or run.damaged or run.failed
    ]
    if doubtful:
        more = f" and {len(doubtful) - 3} more" if len(doubtful) > 3 else ""
        told = f"lost events, read in part or failed: {', '.join(doubtful[:3])}{more}"
        found.append(Notice("doubtful-runs", told))
    return tuple(found)


def _never_told(found: Sequence[Trend]) -> Iterator[Notice]:
    """More metrics than so few commits can tell apart: one that changed alone is not found."""
    tested = _tested_count(found)
    if not tested or _earliest(found) is not None:
        return
    longest = _longest(found)
    enough = next(n for n in count(longest) if earliest_told(n, FDR / tested))
    told = f"{counted(longest, 'commit')} cannot tell from chance that one metric of {tested}"
    told += f" changed, by however much: it takes {enough} commits, or fewer metrics"
    yield Notice("too-many-metrics", told)


def _asked_for(runs: Sequence[RunData], patterns: Sequence[str]) -> list[Metric]:
    """As the newest run has them, which is listed first; then those that only older ones have."""
    metrics = metrics_of(list(reversed(runs)))
    names = [metric.name for metric in metrics]
    kept: set[str] = set()
    for pattern in patterns:
        found = matches(pattern, names)
        if not found:
            raise unknown_metric(pattern, names, "this history")
        kept |= set(found)
    return [metric for metric in metrics if metric.name in kept]


def _trend(metric: Metric, commits: Sequence[Commit]) -> Trend:
    points, left_out = [], 0
    newest = next(run for c in reversed(commits) for run in c.runs if metric.name in run.scalars)
    for commit in commits:
        known = [run for run in commit.runs if run.value(metric.name) is not None]
        alike = [run for run in known if _counts_the_same(metric, run, newest)]
        left_out += len(known) - len(alike)
        values = tuple(v for run in alike if (v := run.value(metric.name)) is not None)
        if values:
            points.append(Point(commit, values))
    return Trend(metric, tuple(points), _changes(metric, points), left_out)


def _counts_the_same(metric: Metric, run: RunData, newest: RunData) -> bool:
    """The same unit, direction and SQL, and a kernel on the same side of a border."""
    if metric.name in run.scalars:
        own = run.scalars[metric.name][0]
        if (own.unit, own.better) != (metric.unit, metric.better):
            return False
    told = {one.definitions.get(metric.source) for one in (run, newest)} - {None}
    if len(told) > 1:
        return False
    if not metric.not_across:
        return True
    sides = [
        is_before(str(one.fingerprint.get("kernel") or ""), metric.not_across)
        for one in (run, newest)
    ]
    return sides[0] == sides[1]


def _changes(
    metric: Metric, points: Sequence[Point], permutations: int = PERMUTATIONS
) -> tuple[Change, ...]:
    medians = [point.median for point in points]
    found = change_points(medians, permutations)
    borders = [0, *(one.index for one in found), len(medians)]
    parts = [medians[a:b] for a, b in pairwise(borders)]
    levels = [float(np.median(part)) for part in parts]
    noise = _noise(parts, levels)
    changes = []
    for number, one in enumerate(found):
        before, level = levels[number], levels[number + 1]
        at, last = points[one.index].commit, points[one.index - 1].commit
        apart = differences([*last.runs, *at.runs])
        step = abs(level - before)
        changes.append(
            Change(
                metric=metric,
                index=one.index,
                commit=at,
                before=last,
                level_before=before,
                level=level,
                moved=_moved(before, level, one.p),
                p=one.p,
                evidence=step / noise if noise else math.inf,
                differing=tuple(d.fact for d in apart if d.fact not in _WITH_KERNEL),
            )
        )
    return tuple(changes)


def _noise(parts: Sequence[Sequence[float]], levels: Sequence[float]) -> float:
    """The median distance of a commit from its level."""
    apart = [abs(v - level) for part, level in zip(parts, levels, strict=True) for v in part]
    return float(np.median(apart)) if apart else 0.0


def _moved(before: float, level: float, p: float) -> Shift:
    if before > 0 and level > 0:
        return Shift("ratio", level / before, None, None, p, "permutations")
    return Shift("difference", level - before, None, None, p, "permutations")


def _tests(found: Sequence[Trend]) -> dict[Hashable, float]:
    """p of each change, and 1 of a series without one; of series in one order the largest."""
    tests: dict[Hashable, float] = {}
    for trend in found:
        if not trend.can_change:
            continue
        for change in trend.changes:
            key = (trend.order, change.index)
            tests[key] = max(tests.get(key, 0.0), change.p)
        if not trend.changes:
            tests[trend.order, None] = 1.0
    return tests


def _tested_count(found: Sequence[Trend]) -> int:
    return len({trend.order for trend in found if trend.can_change})


def _longest(found: Sequence[Trend]) -> int:
    return max(len(trend.points) for trend in found if trend.can_change)


def _earliest(found: Sequence[Trend]) -> int | None:
    tested = _tested_count(found)
    return earliest_told(_longest(found), FDR / tested) if tested else None


def _adjusted(found: Sequence[Trend]) -> tuple[Trend, ...]:
    """Benjamini and Hochberg's p over all tests."""
    tests = _tests(found)
    told = dict(zip(tests, false_discovery(list(tests.values())), strict=True))
    return tuple(
        replace(
            trend,
            changes=tuple(
                replace(one, p_adjusted=p, outcome=_outcome(one, p))
                for one in trend.changes
                for p in [told[trend.order, one.index]]
            ),
        )
        for trend in found
    )


def _permuted_on(found: Sequence[Trend]) -> tuple[Trend, ...]:
    """With so many permutations that one metric of all can be told, where that may decide.

    Most metrics have no change, and what many have in common needs no p so small.
    """
    permutations = math.ceil(_WANTED * len(_tests(found)) / FDR) - 1
    if permutations <= PERMUTATIONS:
        return tuple(found)
    return tuple(
        replace(trend, changes=_changes(trend.metric, trend.points, permutations))
        if any(not one.is_sure and one.p * PERMUTATIONS <= _FEW for one in trend.changes)
        else trend
        for trend in found
    )


def _outcome(change: Change, p_adjusted: float) -> Outcome:
    if p_adjusted > FDR:
        return "undecided"
    if change.metric.better == "neutral":
        return "changed"
    lower = change.level < change.level_before
    return "better" if lower == (change.metric.better == "lower") else "worse"
