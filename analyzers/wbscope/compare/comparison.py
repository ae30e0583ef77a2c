# SPDX-License-Identifier: Apache-2.0
"""Side against side, metric by metric: what differs, how surely, and which way that is.

A side of means with s.d. and n, as papers and perf stat -r give them, is one run with a spread.
Against another one, or against runs, whose own mean, s.d. and n are taken then, the means are
tested by Welch's t.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from wbscope.base.result import Notice
from wbscope.base.units import counted
from wbscope.compare.metrics import unknown_metric
from wbscope.compare.policy import matches
from wbscope.compare.rundata import RunData
from wbscope.compare.sameness import (
    Difference,
    copies_on_both,
    copies_within,
    differences,
    is_before,
    may_be_copies,
    unknown_facts,
)
from wbscope.measure.metric import Metric, Spread, split_name
from wbscope.stats.estimates import (
    WELCH,
    Description,
    Means,
    Shift,
    describe,
    is_beyond,
    rounding_of,
    shift,
    welch,
)
from wbscope.stats.repeated import fisher
from wbscope.stats.tests import false_discovery, smallest_p


class Sampled(Protocol):
    """What is needed of a side's numbers of a metric."""

    @property
    def values(self) -> tuple[float, ...]: ...
    @property
    def spread(self) -> Spread | None: ...
    @property
    def description(self) -> Description: ...


def published_shift(mine: Sampled, theirs: Sampled, confidence: float) -> Shift | None:
    """Welch's t where a side is published means; None where it is not, or cannot be."""
    if mine.spread is None and theirs.spread is None:
        return None
    sides = _means(mine), _means(theirs)
    if sides[0] is None or sides[1] is None:
        return None
    return welch(sides[0], sides[1], confidence)


def is_published(found: Shift | None) -> bool:
    """True for a shift of published means."""
    return found is not None and found.method == WELCH


def runs_behind(sample: Sampled) -> int:
    """How many runs the numbers of a side are of."""
    return len(sample.values) if sample.spread is None else sample.spread.n


def published_notice(side: str, base: str, shifts: Sequence[Shift | None]) -> Iterator[Notice]:
    """That a comparison is not one of runs."""
    count = sum(map(is_published, shifts))
    if count:
        what = "metric is" if count == 1 else "metrics are"
        told = f"{side} against {base}: {count} {what} published means (mean, s.d., n), tested by"
        yield Notice("published-means", f"{told} Welch's t, as the single runs are not there")


def _means(sample: Sampled) -> Means | None:
    if sample.spread is not None:
        return Means(sample.values[0], sample.spread.sd, sample.spread.n)
    told = sample.description
    if told.mean is None or told.sd is None:
        return None
    return Means(told.mean, told.sd, told.n)


ALPHA = 0.05
# Surely different and still not worth a face.
MARGIN = 0.05
# Why a row is undecided whatever its numbers are.
TOO_FEW = "too few runs"

Outcome = Literal["better", "worse", "changed", "same", "undecided", "refused"]


@dataclass(frozen=True)
class Side:
    """Runs that are repetitions of one thing; the run is the unit."""

    name: str
    runs: tuple[RunData, ...]


@dataclass(frozen=True)
class Sample:
    """One metric on one side: its values in the order of runs, and runs without one.

    units   what they are in; several are nothing that can be compared
    spread  s.d. and n of what the only value is the mean of (compare/comparison.py)
    """

    values: tuple[float, ...]
    missing: tuple[str, ...]
    description: Description
    units: tuple[str, ...] = ()
    spread: Spread | None = None


@dataclass(frozen=True)
class Row:
    """One metric of one side against the base.

    outcome  better, worse; changed: surely, and neither way is better, or by
             less than the margin; same: all that the change can be is within the
             margin; undecided: not told apart from chance; refused: the two are not
             the same thing
    shift    None where nothing can be compared: refused, or not known of every run
    reason   why it is undecided or refused
    q        p among all rows that were looked through (compare/ranking.py); None =
             not looked at together, or nothing is tested
    """

    metric: Metric
    side: str
    base: str
    sample: Sample
    base_sample: Sample
    shift: Shift | None
    outcome: Outcome
    reason: str = ""
    q: float | None = None

    @property
    def is_sure(self) -> bool:
        """Told apart from chance; otherwise `~` is printed."""
        return self.outcome in ("better", "worse", "changed")

    @property
    def is_untested(self) -> bool:
        """One run each: the change can be shown, and nothing can tell it from chance."""
        single = len(self.sample.values) == len(self.base_sample.values) == 1
        return single and not is_published(self.shift)


@dataclass(frozen=True)
class Comparison:
    """All rows, side by side and in the order of the catalogue."""

    sides: tuple[Side, ...]  # the base first
    rows: tuple[Row, ...]
    differing: tuple[Difference, ...]
    unknown: tuple[str, ...]
    warnings: tuple[Notice, ...]
    alpha: float
    margin: float

    @property
    def base(self) -> Side:
        """What the others are compared with."""
        return self.sides[0]

    def of_side(self, name: str) -> list[Row]:
        """The rows of one side against the base."""
        return [row for row in self.rows if row.side == name]


def compare_sides(
    base: Side, others: Sequence[Side], alpha: float = ALPHA, margin: float = MARGIN
) -> Comparison:
    """Every metric that a run of any side has."""
    given = (base, *others)
    everything = [run for side in given for run in side.runs]
    copies = [copies_within(side.runs, everything) for side in given]
    sides = tuple(_without(side, of) for side, of in zip(given, copies, strict=True))
    base, *others = sides
    runs = [run for side in sides for run in side.runs]
    metrics = metrics_of(runs)
    rows = [contrast(metric, side, base, alpha, margin) for side in others for metric in metrics]
    return Comparison(
        sides=sides,
        rows=tuple(row for row in rows if row.sample.values or row.base_sample.values),
        differing=tuple(differences(told_apart(sides))),
        unknown=tuple(unknown_facts(runs)),
        warnings=(
            *_warnings(given, copies),
            *(notice for side in others for notice in _how_tested(side, base, rows, alpha)),
        ),
        alpha=alpha,
        margin=margin,
    )


def copied_folder(side: Side, base: Side) -> Iterator[Notice]:
    """What to look at where the numbers are too coarse to tell a copy by."""
    if may_be_copies(side.runs, base.runs):
        told = f"the {len(side.runs)} runs of {side.name} say what those of {base.name} say, in the"
        told += " same order and to the last digit: copies, where nothing can differ, or numbers"
        told += " too coarse to tell; name other runs, or record more digits"
        yield Notice("same-recording", told)


def _without(side: Side, copies: Sequence[Sequence[RunData]]) -> Side:
    """Copies of a recording are one run, however often they are given."""
    first = {id(run): id(group[0]) for group in copies for run in group}
    kept: dict[int, RunData] = {}
    for run in side.runs:
        kept.setdefault(first.get(id(run), id(run)), run)
    return Side(side.name, tuple(kept.values()))


def told_apart(sides: Sequence[Side]) -> list[RunData]:
    """All runs, named with their side where a name is there on two sides: "A run-1"."""
    seen = Counter(name for side in sides for name in {run.name for run in side.runs})
    return [
        replace(run, name=f"{side.name} {run.name}") if max(seen.values()) > 1 else run
        for side in sides
        for run in side.runs
    ]


def only(comparison: Comparison, patterns: Sequence[str], known: Iterable[str] = ()) -> Comparison:
    """The rows that one of these names or patterns means.

    known   other metrics that runs may have: they may not have been read

    Raises: UsageError when one of them means none.
    """
    names = [row.metric.name for row in comparison.rows]
    kept = {name for pattern in patterns for name in matches(pattern, names)}
    for pattern in patterns:
        if not matches(pattern, names):
            raise unknown_metric(pattern, [*names, *known], "these runs")
    return replace(comparison, rows=tuple(r for r in comparison.rows if r.metric.name in kept))


def metrics_of(runs: Iterable[RunData]) -> list[Metric]:
    """The metrics of all runs: families in the order of the first run that has them."""
    families: dict[str, dict[str, Metric]] = {}
    for run in runs:
        for name, (metric, _) in run.scalars.items():
            families.setdefault(split_name(name)[0], {}).setdefault(name, metric)
    return [metric for family in families.values() for metric in family.values()]


def sample_of(metric: str, side: Side) -> Sample:
    """The values of a side; a run that cannot tell is named, not taken for 0."""
    told = [(run.name, run.value(metric)) for run in side.runs]
    values = tuple(value for _, value in told if value is not None)
    missing = tuple(run.name for run in side.runs if _lacks(run, metric))
    units = dict.fromkeys(run.scalars[metric][0].unit for run in side.runs if metric in run.scalars)
    spreads = [run.scalars.spreads.get(metric) for run in side.runs]
    spread = spreads[0] if len(spreads) == 1 else None
    described = describe(values)
    if spread is not None:
        described = replace(described, n=spread.n, sd=spread.sd)
    return Sample(values, missing, described, tuple(units), spread)


def _lacks(run: RunData, metric: str) -> bool:
    """Other samples of a file were not asked for it."""
    return run.value(metric) is None and not (run.is_sample and metric not in run.scalars)


def contrast(metric: Metric, side: Side, base: Side, alpha: float, margin: float) -> Row:
    """One metric of one side against the base."""
    mine, theirs = sample_of(metric.name, side), sample_of(metric.name, base)
    if (bar := _incomparable(metric, side, base, mine, theirs)) is not None:
        return Row(metric, side.name, base.name, mine, theirs, None, *bar)
    published = published_shift(mine, theirs, 1 - alpha)
    found = published or shift(mine.values, theirs.values, 1 - alpha)
    outcome, reason = _judged(metric, mine, theirs, found, alpha, margin)
    return Row(metric, side.name, base.name, mine, theirs, found, outcome, reason)


def other_definition(metric: Metric, runs: Iterable[RunData]) -> bool:
    """True when the runs' numbers were not made by the same SQL."""
    query = metric.source
    told = {run.definitions[query] for run in runs if query in run.definitions}
    return len(told) > 1


def other_meaning(metric: Metric, runs: Iterable[RunData]) -> str | None:
    """Why numbers of one name are not the same thing: another unit, or another direction."""
    told = [run.scalars[metric.name][0] for run in runs if metric.name in run.scalars]
    units = sorted({one.unit or "no unit" for one in told})
    if len(units) > 1:
        return f"has another unit in other runs: {', '.join(units)}"
    if len({one.better for one in told}) > 1:
        return "is better when lower in some runs, and not in others"
    return None


def across(metric: Metric, runs: Sequence[RunData]) -> str | None:
    """Why kernels of these runs do not count the same thing under this name, if so."""
    if not metric.not_across:
        return None
    kernels = [str(run.fingerprint.get("kernel") or "") for run in runs]
    before = {is_before(kernel, metric.not_across) for kernel in kernels}
    if before >= {True, False}:
        return f"means another thing from Linux {metric.not_across} on"
    if None in before:
        return f"means another thing from Linux {metric.not_across} on; a run's kernel is unknown"
    return None


def _incomparable(
    metric: Metric, side: Side, base: Side, mine: Sample, theirs: Sample
) -> tuple[Outcome, str] | None:
    """Why there is nothing to test: which runs have no number is no chance."""
    runs = [*side.runs, *base.runs]
    if not mine.values or not theirs.values:
        return "undecided", f"only {side.name if mine.values else base.name} has it"
    if (why := across(metric, runs) or other_meaning(metric, runs)) is not None:
        return "refused", why
    if other_definition(metric, runs):
        return "refused", "the runs were measured with different versions of its SQL"
    if mine.missing or theirs.missing:
        known = len(mine.values) + len(theirs.values)
        return "undecided", f"known in {known} of {len(runs)} runs"
    return None


def _judged(
    metric: Metric, mine: Sample, theirs: Sample, found: Shift, alpha: float, margin: float
) -> tuple[Outcome, str]:
    if not is_published(found) and (why := _why_untested(mine, theirs, alpha)):
        return "undecided", why
    if _all_within(found, theirs, margin):
        return "same", ""
    # With ties the interval is the wider of the two.
    if found.p > alpha or _holds_no_change(found):
        return "undecided", "not told apart from chance"
    if metric.better == "neutral" or _within(found, theirs, margin):
        return "changed", ""
    lower = found.estimate < (1 if found.scale == "ratio" else 0)
    return ("better" if lower == (metric.better == "lower") else "worse"), ""


def _why_untested(mine: Sample, theirs: Sample, alpha: float) -> str:
    if len(mine.values) == len(theirs.values) == 1:
        return "no test possible with one run each"
    return TOO_FEW if smallest_p(len(mine.values), len(theirs.values)) > alpha else ""


def _within(found: Shift, base: Sample, margin: float) -> bool:
    """True when the change is smaller than this share of the base."""
    rounding = rounding_of(found.scale, base.values)
    if found.scale == "ratio":
        return not is_beyond(abs(found.estimate - 1), margin, rounding)
    largest = margin * abs(base.description.median or 0.0)
    return not is_beyond(abs(found.estimate), largest, rounding)


def _all_within(found: Shift, base: Sample, margin: float) -> bool:
    """True when no change that the interval holds is larger than this share of the base."""
    if found.low is None or found.high is None:
        return False
    ends = (replace(found, estimate=found.low), replace(found, estimate=found.high))
    return all(_within(one, base, margin) for one in ends)


def _holds_no_change(found: Shift) -> bool:
    none = 1.0 if found.scale == "ratio" else 0.0
    return found.low is not None and found.high is not None and found.low <= none <= found.high


def _how_tested(side: Side, base: Side, rows: Sequence[Row], alpha: float) -> Iterable[Notice]:
    shifts = [row.shift for row in rows if row.side == side.name]
    told = list(published_notice(side.name, base.name, shifts))
    return told or _too_few(base, [side], alpha)


def _too_few(base: Side, others: Sequence[Side], alpha: float) -> Iterable[Notice]:
    """Nothing can be told apart, which is not that nothing differs."""
    for side in others:
        n, m = len(side.runs), len(base.runs)
        if n == m == 1:
            told = f"{side.name} and {base.name}: no test possible with one run each; changes are"
            yield Notice("too-few-runs", f"{told} shown as they are: make 6 or more of each")
        elif (least := smallest_p(n, m)) > alpha:
            told = f"{side.name} has {counted(n, 'run')} and {base.name} {m}, so no change,"
            told += f" however large, reaches p {alpha:g} (least possible {least:.2g}): make 6 or"
            told += " more of each"
            yield Notice("too-few-runs", told)


def _warnings(
    sides: Sequence[Side], copies: Sequence[Sequence[Sequence[RunData]]]
) -> Iterable[Notice]:
    for side in sides:
        for run in side.runs:
            for notice in run.warnings:
                yield Notice(notice.slug, notice.message, f"{side.name} {run.name}")
    for number, (side, groups) in enumerate(zip(sides, copies, strict=True)):
        for first, *others in groups:
            for run in others:
                told = f"is the same recording as {first.name}: left out, as both are one run"
                yield Notice("same-recording", told, f"{side.name} {run.name}")
        for other in sides[:number]:
            for name, _ in copies_on_both(side.runs, other.runs):
                told = f"is the same recording as one of {other.name}: nothing can differ"
                yield Notice("same-recording", told, f"{side.name} {name}")
            yield from copied_folder(side, other)


@dataclass(frozen=True)
class FindingChange:
    """A finding of more runs of one side than of the other's.

    runs, of    runs of the side that it is told of, and all of them; base_runs, base_of likewise
    q           of Fisher's exact test (two-sided) among all findings; None = one run each, so
                that nothing tests it
    """

    id: str
    title: str
    runs: int
    of: int
    base_runs: int
    base_of: int
    q: float | None

    @property
    def is_new(self) -> bool:
        """It came, or is told more often; else it went."""
        return self.runs * self.base_of > self.base_runs * self.of


def finding_changes(comparison: Comparison, side: str) -> list[FindingChange]:
    """Those that are more than chance, what came first; of one run each all that differ.

    Nothing where the findings of a run are not known: of files, or of an older baseline.
    """
    mine = next(one for one in comparison.sides if one.name == side)
    told, there = _counted(mine), _counted(comparison.base)
    if told is None or there is None:
        return []
    n, m = len(mine.runs), len(comparison.base.runs)
    titles = {id_: title for run in (*comparison.base.runs, *mine.runs)
              for id_, title in (run.findings or {}).items()}  # fmt: skip
    pairs = {id_: (told.get(id_, 0), there.get(id_, 0)) for id_ in titles}
    q_values = false_discovery([_p(x, n, y, m) for x, y in pairs.values()])
    is_tested = n > 1 or m > 1
    found = [
        FindingChange(id_, titles[id_], x, n, y, m, q if is_tested else None)
        for (id_, (x, y)), q in zip(pairs.items(), q_values, strict=True)
        if x * m != y * n and (not is_tested or q <= comparison.alpha)
    ]
    return sorted(found, key=lambda one: (not one.is_new, one.q or 0.0, one.id))


def _counted(side: Side) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for run in side.runs:
        if run.findings is None:
            return None
        for id_ in run.findings:
            found[id_] = found.get(id_, 0) + 1
    return found


def _p(x: int, n: int, y: int, m: int) -> float:
    """Two-sided, by doubling the smaller tail."""
    return min(1.0, 2 * min(_tails(x, n, y, m)))


def _tails(x: int, n: int, y: int, m: int) -> Iterable[float]:
    # As many of this side or more, and as many that lack it or more.
    yield fisher(x, n, y, m)
    yield fisher(n - x, n, m - y, m)
