# SPDX-License-Identifier: Apache-2.0
"""The first bad one of a series whose first is good and whose last is bad."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal

from wbscope.lab.judging import Confirmed, Judge, Point, Spent, Test

__all__ = ["Found", "Status", "ending", "no_series", "planned_tests", "search"]

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
            return end(no_series(ends), ends.why)
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
        return end(*ending(judge, points[low], points[high], high - low - 1))
    except Spent as spent:
        return end("spent", str(spent))


def no_series(ends: Confirmed) -> Status:
    """What ends are that are not surely different."""
    return "unmeasured" if ends.shift is None else "nothing"


def ending(
    judge: Judge[Point], last_good: Point, first_bad: Point, between: int
) -> tuple[Status, str, Confirmed | None]:
    """Status, why, border: tested again where nothing is between the two.  Raises: Spent."""
    if between:
        return "range", f"{between} between them could not be judged", None
    border = judge.confirm(last_good, first_bad)
    return ("found", "", border) if border.is_worse else ("unconfirmed", border.why, border)
