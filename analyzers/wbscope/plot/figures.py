# SPDX-License-Identifier: Apache-2.0
"""What a figure is, and all figures of a run.

Only words: nothing here asks, computes or draws. `paneldata.panels` makes numbers of a figure and
its query's answer, and whatever draws takes those.

balance_dirty_pages-* and global_* are called as Wu Fengguang's scripts called them;
bdi_dirty_state and task-wait are the two graphs that Jan Kara plotted for each test.

iostat-* and vmstat are called as Wu Fengguang's scripts called theirs.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from wbscope.base.errors import UsageError

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


_BDI = ("bdi", "cgroup_ino")
_TASK = ("comm", "tid")
_KARA_WINDOW_NS = 2 * GAP_NS
_NOBODY = "no task was throttled in this run"

THROTTLE_FIGURES: tuple[Figure, ...] = (
    Figure(
        "balance_dirty_pages-bandwidth",
        "Device bandwidth and dirty rate limits",
        "bdi_control",
        (
            Panel(
                "rates",
                "bytes/s",
                (
                    Mark("line", "write_bw_bytes_per_s", "write_bw, estimated"),
                    Mark("line", "avg_write_bw_bytes_per_s", "avg_write_bw, smoothed"),
                    Mark("line", "dirty_ratelimit_bytes_per_s", "dirty_ratelimit, the base"),
                    Mark("line", "task_ratelimit_bytes_per_s", "task_ratelimit, mean"),
                    Mark("band", "task_ratelimit_least_bytes_per_s",
                         "task_ratelimit, all of them", "task_ratelimit_most_bytes_per_s"),
                ),
                each=_BDI,
                gap_ns=GAP_NS,
            ),
        ),
        windows=FINE,
        no_rows=_NOBODY,
    ),
    Figure(
        "balance_dirty_pages-pages",
        "Dirty pages against their setpoints, and the resulting rates",
        "bdi_control",
        (
            Panel(
                "dirty and writeback pages",
                "bytes",
                (
                    Mark("line", "dirty_bytes", "dirty, of the machine"),
                    Mark("line", "wb_dirty_bytes", "wb_dirty, of this device"),
                    Mark("limit", "limit_bytes", "limit"),
                    Mark("limit", "setpoint_bytes", "setpoint"),
                    Mark("limit", "freerun_bytes", "freerun"),
                    Mark("limit", "wb_setpoint_bytes", "wb_setpoint"),
                    Mark("band", "freerun_bytes", "control range", "limit_bytes"),
                ),
                each=_BDI,
                gap_ns=GAP_NS,
            ),
            Panel(
                "against the limits of its memory cgroup",
                "bytes",
                (
                    Mark("line", "memcg_dirty_bytes", "dirty, of the memory cgroup"),
                    Mark("limit", "memcg_limit_bytes", "limit"),
                    Mark("limit", "memcg_setpoint_bytes", "setpoint"),
                    Mark("limit", "memcg_wb_setpoint_bytes", "wb_setpoint"),
                ),
                each=_BDI,
                gap_ns=GAP_NS,
            ),
            Panel(
                "rates",
                "bytes/s",
                (
                    Mark("line", "task_ratelimit_bytes_per_s", "task_ratelimit, mean"),
                    Mark("line", "dirty_ratelimit_bytes_per_s", "dirty_ratelimit, the base"),
                ),
                each=_BDI,
                gap_ns=GAP_NS,
            ),
        ),
        windows=FINE,
        no_rows=_NOBODY,
    ),
    Figure(
        "balance_dirty_pages-pause",
        "Pauses of each task, and its charged pages",
        "task_pauses",
        (
            Panel("pause ordered; below 0: was late, did not pause", "ns",
                  (Mark("points", "pause_max_ns"),), by=_TASK),
            Panel("paused: time in the call before that pause", "ns",
                  (Mark("points", "paused_max_ns"),), by=_TASK),
            Panel("dirtied since the call before", "bytes",
                  (Mark("points", "charged_mean_bytes"),), by=_TASK),
        ),
        windows=FINE,
        no_rows=_NOBODY,
    ),
    Figure(
        "balance_dirty_pages-task-bw",
        "How much each task has dirtied: equal slopes are equal speeds",
        "task_progress",
        (
            Panel("dirtied so far", "bytes", (Mark("step", "dirtied_so_far_bytes"),),
                  x="window_end_ts", by=(*_TASK, "dirtied_basis")),
        ),
        windows=FINE,
        no_rows=_NOBODY,
    ),
    Figure(
        "global_dirty_state",
        "Dirty pages of the machine against its limits",
        "dirty_pages",
        (
            Panel(
                "dirty and writeback pages",
                "bytes",
                (
                    Mark("line", "dirty_bytes", "dirty, mean"),
                    Mark("line", "dirty_max_bytes", "dirty, largest"),
                    Mark("limit", "limit_bytes", "limit"),
                    Mark("limit", "thresh_bytes", "thresh"),
                    Mark("limit", "setpoint_bytes", "setpoint"),
                    Mark("limit", "freerun_bytes", "freerun"),
                    Mark("limit", "bg_thresh_bytes", "bg_thresh"),
                    Mark("band", "freerun_bytes", "control range", "limit_bytes"),
                ),
                gap_ns=GAP_NS,
            ),
            Panel(
                "what they are",
                "bytes",
                (
                    Mark("area", "nr_writeback_bytes", "nr_writeback"),
                    Mark("area", "nr_dirty_bytes", "nr_dirty"),
                ),
                gap_ns=GAP_NS,
            ),
        ),
        windows=FINE,
    ),
    Figure(
        "global_dirtied_written",
        "Pages dirtied and pages written since the start, and the gap between",
        "redirty_gap",
        (
            Panel(
                "since the start",
                "bytes",
                (
                    Mark("line", "dirtied_so_far_bytes", "dirtied"),
                    Mark("line", "written_so_far_bytes", "written"),
                ),
            ),
            Panel(
                "dirtied - written",
                "bytes",
                (
                    Mark("line", "gap_bytes", "gap"),
                    Mark("line", "dirty_growth_bytes", "growth of dirty pages"),
                    Mark("line", "unexplained_gap_bytes", "rest: dirtied again, or deleted"),
                ),
            ),
        ),
        windows=FINE,
    ),
    Figure(
        "pool-by-holder",
        "Whose dirty pages filled the machine's pool",
        "pool",
        (
            Panel("dirty and writeback pages", "bytes", (Mark("area", "held_bytes"),),
                  by=_BDI, gap_ns=GAP_NS),
        ),
        windows=COARSE,
        no_rows="no task was throttled in this run, so nothing tells who held what",
    ),
    Figure(
        "bdi_dirty_state",
        "Dirty pages of each device against its threshold, and its real and estimated speed",
        "bdi_samples",
        (
            Panel(
                "pages",
                "bytes",
                (
                    Mark("area", "writeback_bytes", "writeback"),
                    Mark("area", "dirty_bytes", "dirty"),
                    Mark("limit", "wb_thresh_bytes", "wb_thresh"),
                ),
                each=_BDI,
                gap_ns=NO_SAMPLE_NS,
            ),
            Panel(
                "throughput",
                "bytes/s",
                (
                    Mark("line", "written_bytes_per_s", "written, real"),
                    Mark("line", "write_bw_bytes_per_s", "write_bw, estimated"),
                    Mark("line", "dirtied_bytes_per_s", "dirtied"),
                ),
                each=_BDI,
                gap_ns=NO_SAMPLE_NS,
            ),
        ),
        windows=FINE,
        no_rows=NO_SAMPLES,
    ),
    Figure(
        "task-wait",
        "Share of each window that each task waited in balance_dirty_pages()",
        "throttle_windows",
        (
            Panel("share of the window", "ratio", (Mark("step", "throttled_ratio"),), by=_TASK),
            Panel("longest single wait", "ns", (Mark("step", "slept_max_ns"),), by=_TASK),
        ),
        windows=COARSE,
        least_window_ns=_KARA_WINDOW_NS,
        no_rows=_NOBODY,
    ),
    Figure(
        "pauses-ecdf",
        "How long pauses were: share of them that were at most so long",
        "pause_distribution",
        (Panel("share of pauses", "ratio", (Mark("ecdf", "at_most_ratio", "all pauses"),),
               x="pause_ns"),),
        no_rows="no task paused in this run",
    ),
)  # fmt: skip


MACHINE_FIGURES: tuple[Figure, ...] = (
    Figure(
        "iostat-bw",
        "What each disk wrote and read",
        "throughput_by_device",
        (
            Panel("written", "bytes/s", (Mark("step", "written_bytes_per_s"),),
                  by=("device",), zero=True),
            Panel("read", "bytes/s", (Mark("step", "read_bytes_per_s"),),
                  by=("device",), zero=True),
            Panel("mean size of a request", "bytes", (Mark("points", "mean_request_bytes"),),
                  by=("device",)),
        ),
        windows=COARSE,
        least_window_ns=IO_WINDOW_NS,
    ),
    Figure(
        "iostat-util",
        "Share of the time in which each disk had a request",
        "throughput_by_device",
        (
            Panel("utilisation", "ratio", (Mark("step", "utilisation_ratio"),),
                  by=("device",), zero=True),
        ),
        windows=COARSE,
        least_window_ns=IO_WINDOW_NS,
    ),
    Figure(
        "vmstat",
        "Counters of writeback and reclaim, sampled",
        "vmstat_samples",
        tuple(
            Panel(title, unit, (Mark("line", column),), by=("name",), gap_ns=NO_SAMPLE_NS,
                  only=(("name", names),))
            for title, unit, column, names in (
                ("dirty and writeback pages", "bytes", "level_bytes",
                 ("nr_dirty", "nr_writeback", "nr_unstable", "nr_dirty_threshold",
                  "nr_dirty_background_threshold", "Dirty", "Writeback")),
                ("dirtied and written", "bytes/s", "gained_bytes_per_s",
                 ("nr_dirtied", "nr_written")),
                ("scanned and freed by reclaim", "pages/s", "gained_pages_per_s",
                 ("pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct")),
                ("written by reclaim, and swap", "pages/s", "gained_pages_per_s",
                 ("nr_vmscan_write", "pswpin", "pswpout")),
                ("memory", "bytes", "level_bytes",
                 ("nr_free_pages", "nr_inactive_file", "nr_active_file", "MemFree")),
            )
        ),
        windows=FINE,
        no_rows=NO_SAMPLES,
    ),
    Figure(
        "reclaim-zones",
        "Pages that reclaim wrote, by zone",
        "reclaim_writes",
        (
            Panel("nr_vmscan_write, by kind of page and who reclaimed", "pages",
                  (Mark("bars", "pages_count"),), names=("node", "zone"),
                  by=("kind", "reclaimer"), stacked=True),
        ),
        no_rows="reclaim wrote no page",
    ),
    Figure(
        "copy-and-sync",
        "When each task wrote and synced, and how much was dirty then",
        "copy_and_sync",
        (
            Panel("from the first call to the last", "", (Mark("spans", "phase", "", "dur"),),
                  x="ts", names=_TASK, by=("phase",), longest="dur"),
            Panel(
                "dirty pages of the machine",
                "bytes",
                (
                    Mark("bars", "dirty_start_bytes", "when it began"),
                    Mark("bars", "dirty_max_bytes", "most in between"),
                    Mark("bars", "dirty_end_bytes", "when it ended"),
                ),
                names=(*_TASK, "phase"),
                longest="dur",
            ),
        ),
        no_rows="no task wrote or synced in this run",
    ),
    Figure(
        "stalls-ecdf",
        "How long waits of each kind were: share of them that took at most so long",
        "stalls",
        (Panel("share of waits", "ratio", (Mark("ecdf", ""),), x="dur", by=("kind",), log="x"),),
        no_rows="no task waited in this run",
    ),
    Figure(
        "latency-heatmap",
        "How long requests of each disk took, over time",
        "block_latency_map",
        (
            Panel("time that requests took", "ns",
                  (Mark("heat", "at_least_ns", "", "requests_count"),),
                  each=("device", "op"), only=(("op", ("read", "write")),), log="y"),
        ),
        windows=COARSE,
        no_rows="no disk read or wrote in this run",
    ),
    Figure(
        "pressure",
        "Share of the time in which tasks waited for a resource (PSI)",
        "pressure",
        (
            Panel("share of the time", "ratio",
                  (Mark("step", "some_ratio", "some task waited"),
                   Mark("step", "full_ratio", "all tasks waited")),
                  each=("resource",), gap_ns=NO_SAMPLE_NS),
        ),
        windows=FINE,
        least_window_ns=SAMPLED_WINDOW_NS,
        no_rows=NO_SAMPLES,
    ),
    Figure(
        "cgroup_dirty_state",
        "Dirty pages and memory of each cgroup that writes",
        "cgroup_samples",
        (
            Panel("pages", "bytes",
                  (Mark("area", "writeback_bytes", "writeback"),
                   Mark("area", "dirty_bytes", "dirty")),
                  each=("cgroup_ino",), gap_ns=NO_SAMPLE_NS),
            Panel("all its memory", "bytes",
                  (Mark("line", "memory_bytes", "memory"),
                   Mark("limit", "memory_max_bytes", "memory.max")),
                  each=("cgroup_ino",), gap_ns=NO_SAMPLE_NS),
            Panel("written", "bytes/s", (Mark("line", "written_bytes_per_s", "written"),),
                  each=("cgroup_ino",), gap_ns=NO_SAMPLE_NS),
        ),
        windows=FINE,
        no_rows=NO_SAMPLES,
    ),
)  # fmt: skip


FIGURES: tuple[Figure, ...] = (*THROTTLE_FIGURES, *MACHINE_FIGURES)


def find_figures(names: Sequence[str]) -> tuple[Figure, ...]:
    """The figures of these names, each once; all of them without names.

    Raises: UsageError with the closest names.
    """
    known = {figure.name: figure for figure in FIGURES}
    for name in names:
        if name in known:
            continue
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
        close = close or [one for one in known if name.lower() in one][:3]
        raise UsageError(
            "unknown-figure",
            name,
            f"is none of the {len(known)} figures",
            have=f"did you mean {' or '.join(close)}?" if close else ", ".join(known),
            fix=f"wbscope plot RUN {close[0]} -o DIR" if close else "wbscope plot --list",
        )
    return tuple(known[name] for name in dict.fromkeys(names or known))
