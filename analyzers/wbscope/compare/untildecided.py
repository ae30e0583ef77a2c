# SPDX-License-Identifier: Apache-2.0
"""More and more runs of both sides until the gate decides: looks that share one alpha."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from wbscope.base.result import Notice
from wbscope.compare.comparison import Side
from wbscope.compare.declared import declared_by
from wbscope.compare.gate import GateResult, Status, judge
from wbscope.compare.policy import Policy
from wbscope.stats.spending import Spending, look_levels

__all__ = ["LEAST_RUNS", "Look", "look_sizes", "until_decided"]

# With fewer no more than one or a few metrics can fail; docs/compare.md has the table.
LEAST_RUNS = 6
# From look to look so many times as many: a look after each run would cost power for little.
_GROWTH = 1.5
_LAST_GROWTH = 1.2


@dataclass(frozen=True)
class Look:
    """One look: runs of each side, the level of the test (of all metrics), what it said."""

    runs: int
    level: float
    status: Status


def look_sizes(most: int, least: int = LEAST_RUNS) -> list[int]:
    """Runs of each side at each look, planned before the first run: 6, 9, 14, 21, 30.

    Of fewer than `least` there is one look.
    """
    sizes = []
    size = min(least, most)
    while size * _LAST_GROWTH < most:
        sizes.append(size)
        size = round(size * _GROWTH + 1e-9)
    return [*sizes, most]


def until_decided(
    make: Callable[[int], tuple[Side, Side]],
    policy: Policy,
    families: Iterable[str],
    most: int,
    told: Callable[[Look], None] = lambda _: None,
    spending: Spending = "pocock",
) -> GateResult:
    """Judge after each look until it is FAIL, PASS or REFUSED, or `most` runs of each are made.

    `make` gives the side and the base with so many runs of each, those of the look before first.
    Intervals are those of the look's level, so what they exclude at any look is excluded by
    alpha.

    Raises: as judge(), and what `make` raises.
    """
    families = list(families)
    asked = replace(policy, expect_runs=None)
    if families:  # a name that nothing can have is told before the first run
        declared_by(asked, (), families)
    sizes = look_sizes(most, max(LEAST_RUNS, policy.min_runs) + policy.drop_first)
    looks: list[Look] = []
    for place, runs in enumerate(sizes):
        sides = make(runs)
        result = judge(*sides, asked, families)
        level = policy.alpha
        if result.compared and not result.refusals:
            counted = [max(size - policy.drop_first, 1) for size in sizes]
            level = _level(policy.alpha, result.compared, counted, place, spending)
            result = judge(*sides, replace(asked, alpha=level), families)
        looks.append(Look(runs, level, result.status))
        told(looks[-1])
        if result.status in ("PASS", "FAIL", "REFUSED"):
            break
    notices = (*result.warnings, *_told(looks, sizes, policy)) if result.compared else ()
    return replace(result, policy=policy, warnings=notices or result.warnings)


def _level(
    alpha: float, compared: int, sizes: Sequence[int], place: int, spending: Spending
) -> float:
    """Of all metrics at a look: Holm gives the first one its share, which has to be spent so."""
    one = look_levels(alpha, sizes, spending=spending)[place]
    shared = look_levels(alpha / compared, sizes, spending=spending)[place]
    return min(one, compared * shared)


def _told(looks: Sequence[Look], sizes: Sequence[int], policy: Policy) -> list[Notice]:
    made = ", ".join(str(look.runs) for look in looks)
    levels = ", ".join(f"{look.level:.2g}" for look in looks)
    told = f"{len(looks)} of {len(sizes)} planned looks were made, with {made} runs of each side,"
    told += f" at the level {levels} (and intervals of it): together alpha {policy.alpha:g}"
    return [Notice("sequential", told)]
