# SPDX-License-Identifier: Apache-2.0
"""Sides that are means with s.d. and n, as papers, mails and perf stat -r give them.

Such a side is one run with a spread. Against another one, or against runs, whose own
mean, s.d. and n are taken then, the means are tested by Welch's t.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from wbscope.base.result import Notice
from wbscope.measure.metric import Spread
from wbscope.stats.describe import Description
from wbscope.stats.shift import Shift
from wbscope.stats.welch import WELCH, Means, welch

__all__ = ["is_published", "published_notice", "published_shift", "runs_behind"]


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
