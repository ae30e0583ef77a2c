# SPDX-License-Identifier: Apache-2.0
"""Figures of what stands around throttling: disks, reclaim, waits, memory and cgroups.

iostat-* and vmstat are called as Wu Fengguang's scripts called theirs.
"""

from __future__ import annotations

from wbscope.plot.figure import (
    COARSE,
    FINE,
    IO_WINDOW_NS,
    NO_SAMPLE_NS,
    NO_SAMPLES,
    SAMPLED_WINDOW_NS,
    Figure,
    Mark,
    Panel,
)

__all__ = ["MACHINE_FIGURES"]

_TASK = ("comm", "tid")

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
        "Pages that reclaim gave away to be written, by zone",
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
