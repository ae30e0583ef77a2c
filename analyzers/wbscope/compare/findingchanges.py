# SPDX-License-Identifier: Apache-2.0
"""What is told of the runs of one side and not of the other's: findings, not numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wbscope.compare.comparison import Comparison, Side
from wbscope.stats.discovery import false_discovery
from wbscope.stats.tails import fisher

__all__ = ["FindingChange", "finding_changes"]


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
