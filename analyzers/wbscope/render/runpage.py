# SPDX-License-Identifier: Apache-2.0
"""What a page of a run is made of, and which figures it has."""

from __future__ import annotations

from dataclasses import dataclass

from wbscope.base.result import Result
from wbscope.explain.environment import Environment
from wbscope.explain.report import Report
from wbscope.plot.asked import Asked, Lacking
from wbscope.plot.paneldata import PanelData

__all__ = ["DRAWN_ELSEWHERE", "FIGURES_OF_PAGE", "RunPage", "is_main", "is_of_time"]

# What stands open, by the places of panels in their figure; the rest is folded.
_MAIN: dict[str, tuple[int, ...]] = {
    "global_dirty_state": (0,),
    "pool-by-holder": (0,),
    "task-wait": (0,),
    "balance_dirty_pages-pause": (0,),
    "iostat-bw": (0,),
    "iostat-util": (0,),
    "global_dirtied_written": (0,),
    "vmstat": (1, 2, 3),
}
FIGURES_OF_PAGE: tuple[str, ...] = (
    *_MAIN,
    "balance_dirty_pages-bandwidth",
    "balance_dirty_pages-pages",
    "balance_dirty_pages-task-bw",
    "bdi_dirty_state",
    "cgroup_dirty_state",
    "pressure",
)
# No curves over time: `wbscope plot` makes pictures of them.
DRAWN_ELSEWHERE: tuple[str, ...] = (
    "pauses-ecdf",
    "stalls-ecdf",
    "latency-heatmap",
    "copy-and-sync",
    "reclaim-zones",
)
_CURVES = ("line", "step", "points", "area", "limit", "band")


@dataclass(frozen=True)
class RunPage:
    """One run of a page.

    name     what tells it from the others of the page
    figures  those of FIGURES_OF_PAGE, in this order
    longest  its longest waits and how many there are in all, if any event tells of waits
    """

    name: str
    report: Report
    figures: tuple[Asked | Lacking, ...]
    longest: tuple[Result, int] | None
    environment: Environment


def is_of_time(panel: PanelData) -> bool:
    """Whether it has curves over time, which the page draws."""
    return panel.x_axis == "time" and all(one.kind in _CURVES for one in panel.series)


def is_main(asked: Asked, panel: PanelData) -> bool:
    """Whether a panel stands open."""
    titles = [one.title for one in asked.figure.panels]
    return titles.index(panel.title) in _MAIN.get(asked.figure.name, ())
