# SPDX-License-Identifier: Apache-2.0
"""Figures of dirty throttling: the graphs of 2011 under their names, and pauses.

balance_dirty_pages-* and global_* are called as Wu Fengguang's scripts called them;
bdi_dirty_state and task-wait are the two graphs that Jan Kara plotted for each test.
"""

from __future__ import annotations

from wbscope.plot.figure import COARSE, FINE, GAP_NS, NO_SAMPLE_NS, NO_SAMPLES, Figure, Mark, Panel

__all__ = ["THROTTLE_FIGURES"]

_BDI = ("bdi", "cgroup_ino")
_TASK = ("comm", "tid")
_KARA_WINDOW_NS = 2 * GAP_NS
_NOBODY = "no task was throttled in this run"

THROTTLE_FIGURES: tuple[Figure, ...] = (
    Figure(
        "balance_dirty_pages-bandwidth",
        "Speed of each device, and the rates that its tasks may dirty pages at",
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
        "Dirty pages against their setpoints, and the rates that follow from them",
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
        "Pauses of each task, and what it was charged for",
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
