# SPDX-License-Identifier: Apache-2.0
"""What is compared: one number of one run, under a name that is the same in every run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from wbscope.base.errors import InputError, UsageError

__all__ = [
    "BETTER",
    "Better",
    "Metric",
    "Scalars",
    "Spread",
    "better_of",
    "is_sane",
    "join_name",
    "split_name",
]

Better = Literal["lower", "higher", "neutral"]
BETTER: tuple[Better, ...] = ("lower", "higher", "neutral")

# What is in brackets tells the numbers of one family apart.
_NAME = re.compile(r"(?P<family>[^\[\]\s]+)(?:\[(?P<keys>[^\[\]\n]+)\])?")
# Squares of numbers up to this, and sums of them, are finite.
_MOST = 1e100
_NOT_IN_A_KEY = re.compile(r"[\[\],=\s\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Metric:
    """One number of a run: its name, its unit, and how to read it.

    name     QUERY.COLUMN, or QUERY.COLUMN[key=value,...] where a run has several;
             other measurements begin with their kind: fio.write.bw_bytes_per_s
    unit     as engine.result.unit_of() has them: ns, bytes, bytes/s, pages/s,
             count, ratio; "" when it has none
    better   which way is good; neutral = neither, it is never judged
    meaning  one plain sentence, for somebody without context
    source   where the number is from: a query, a file of the run folder
    not_across  kernel release from which on the number means another thing, such
             as 6.16 for nr_vmscan_write; runs before and after are not compared
    """

    name: str
    unit: str
    better: Better
    meaning: str
    source: str
    not_across: str = ""

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None:
            raise InputError(
                "bad-metric-name",
                repr(self.name),
                "is no name of a metric, wanted FAMILY or FAMILY[key=value,...] without spaces",
                at=self.source,
                fix="throttle_by_task.throttled_ratio[comm=dd]",
            )


@dataclass(frozen=True)
class Spread:
    """Of a number that is a mean: s.d. of what it is the mean of, and of how many.

    sd  with n - 1, in the unit of the metric; n is 2 or more
    """

    sd: float
    n: int


class Scalars(dict[str, tuple[Metric, float | None]]):
    """All numbers of one run by name; None = the run cannot tell, which is not 0.

    spreads  of numbers that whoever measured them gave as mean and s.d. of several
    """

    def __init__(self) -> None:
        super().__init__()
        self.spreads: dict[str, Spread] = {}

    def add(self, metric: Metric, value: float | None, spread: Spread | None = None) -> None:
        """Take in a number that has no name-sake; what is not finite is not known."""
        if metric.name in self:
            raise InputError(
                "same-metric-twice",
                metric.name,
                f"comes from {self[metric.name][0].source} and from {metric.source}",
                fix="leave one of the two out",
            )
        known = value is not None and math.isfinite(value)
        self[metric.name] = (metric, float(value) if known and value is not None else None)
        if spread is not None and known:
            self.spreads[metric.name] = spread

    def add_all(self, others: Scalars) -> None:
        """Take in all numbers of another source of the same run."""
        for name, (metric, value) in others.items():
            self.add(metric, value, others.spreads.get(name))


def is_sane(value: float) -> bool:
    """True for a number that can be computed with; NaN and infinity are none."""
    return abs(value) <= _MOST


def better_of(text: str, subject: str) -> Better:
    """A direction as written in a file or an option."""
    for better in BETTER:
        if text == better:
            return better
    raise UsageError(
        "bad-direction",
        subject,
        f"is better when {text!r}, wanted one of {', '.join(BETTER)}",
        fix='better = "lower"',
    )


def join_name(family: str, keys: Mapping[str, str]) -> str:
    """The metric's name; signs that would end a key or a value, or are not shown, become `_`."""
    if not keys:
        return family
    told = (f"{key}={_NOT_IN_A_KEY.sub('_', _shown(value))}" for key, value in keys.items())
    return f"{family}[{','.join(told)}]"


def _shown(value: str) -> str:
    """Without signs that cannot be shown, of which half a surrogate pair cannot even be written."""
    return "".join(char if char.isprintable() else "_" for char in value)


def split_name(name: str) -> tuple[str, dict[str, str]]:
    """Family and keys of a metric's name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return name, {}
    pairs = (match["keys"] or "").split(",")
    return match["family"], dict(pair.split("=", 1) for pair in pairs if "=" in pair)
