# SPDX-License-Identifier: Apache-2.0
"""What a figure is: one canned query, and which of its columns are drawn how.

Only words: nothing here asks, computes or draws. `paneldata.panels` makes numbers of a figure and
its query's answer, and whatever draws takes those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "COARSE",
    "FINE",
    "GAP_NS",
    "IO_WINDOW_NS",
    "NO_SAMPLES",
    "NO_SAMPLE_NS",
    "SAMPLED_WINDOW_NS",
    "Figure",
    "Kind",
    "Mark",
    "Panel",
]

_SECOND_NS = 10**9
# Nobody pauses longer than a fifth of a second at a time: when nothing comes for so long, nobody
# was throttled, and what the events tell is not known.
GAP_NS = _SECOND_NS
# Samples are a second apart as a rule.
NO_SAMPLE_NS = 5 * _SECOND_NS
# How many windows a run is cut into.
FINE, COARSE = 500, 100
# A disk's requests are few and large: shorter windows show their sizes, not a speed.
IO_WINDOW_NS = _SECOND_NS // 5
# With samples a second apart, each window has one.
SAMPLED_WINDOW_NS = 2 * _SECOND_NS
NO_SAMPLES = "the run has no samples of it, which `wbscope record` takes"

Kind = Literal[
    "line",  # a value at a time, joined to the next
    "step",  # a value that holds for a whole window
    "points",  # a value at a time, by itself
    "area",  # values that lie on each other and add up
    "limit",  # what others are held against, on their axis
    "band",  # from `y` up to `upper`, as a shade: between limits, else behind the last line
    "ecdf",  # share of all lengths that are at most so long
    "bars",  # a value under a name
    "spans",  # from a time on for `upper`, in a lane of its own
    "heat",  # how many, `upper`, of a window and a class of values
]


@dataclass(frozen=True)
class Mark:
    """What is drawn of each row: its column `y`, under a label for people.

    upper  the second column of a kind that needs two: the upper end of a band, the length of a
           span, the number in a cell of a heat map
    An ecdf without `y` counts the rows itself, by `Panel.x`.
    """

    kind: Kind
    y: str
    label: str = ""
    upper: str = ""


@dataclass(frozen=True)
class Panel:
    """One pair of axes; `unit` is that of y, as columns state theirs: bytes, bytes/s, ns, ratio.

    x          column on the x axis; of bars it is `names`
    by         columns that tell the series of one mark apart
    each       columns with a panel of their own for each of their values
    names      columns that name a bar, or the lane of a span
    only       rows that are drawn: column, and the values that it may have
    longest    column that says which names come first; those of the first rows without it
    gap_ns     values farther apart than this are not joined: in between nothing is known. What
               is not recorded for a shorter time is no gap
    zero       a window without a row is one in which nothing happened
    stacked    the bars of a name stand on each other
    log        that axis has powers of ten: "x" or "y"
    """

    title: str
    unit: str
    marks: tuple[Mark, ...]
    x: str = "window_start_ns"
    by: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    longest: str = ""
    gap_ns: int | None = None
    zero: bool = False
    stacked: bool = False
    log: str = ""


@dataclass(frozen=True)
class Figure:
    """A picture of a run: its title says what one sees.

    windows          how many windows the run is cut into, at most; 0 = the query has none
    least_window_ns  none is shorter
    no_rows          what it means when the query has answered and there is nothing to draw
    """

    name: str
    title: str
    query: str
    panels: tuple[Panel, ...]
    windows: int = 0
    least_window_ns: int = 1
    no_rows: str = "nothing of it happened in this run"
