# SPDX-License-Identifier: Apache-2.0
"""The recorded runs that tests work on: examples/, and the folder that $WBSCOPE_RUNS names."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .report import ReportEvent, parse_report, report_lines
from .split import cut_time
from .tools import missing, require_program, run

__all__ = ["REPOSITORY", "RecordedRun", "all_runs", "drawn_runs", "example", "part_of"]

REPOSITORY = Path(__file__).parents[2]
_ORACLE_EVENTS = (
    "balance_dirty_pages",
    "bdi_dirty_ratelimit",
    "block_bio_queue",
    "block_rq_complete",
    "block_rq_insert",
    "block_rq_issue",
    "folio_wait_writeback",
    "global_dirty_state",
    "jbd2_end_commit",
    "jbd2_start_commit",
    "mm_vmscan_direct_reclaim_begin",
    "mm_vmscan_direct_reclaim_end",
    "mm_vmscan_kswapd_sleep",
    "mm_vmscan_kswapd_wake",
    "mm_vmscan_lru_isolate",
    "mm_vmscan_lru_shrink_inactive",
    "mm_vmscan_memcg_reclaim_begin",
    "mm_vmscan_memcg_reclaim_end",
    "mm_vmscan_throttled",
    "mm_vmscan_write_folio",
    "mm_vmscan_writepage",
    "sched_switch",
    "sys_enter_fsync",
    "sys_enter_write",
    "sys_exit_fsync",
    "sys_exit_write",
    "writeback_pages_written",
    "writeback_start",
    "writeback_written",
)


@dataclass(frozen=True)
class RecordedRun:
    """A run folder; what trace-cmd says of it is read once and kept."""

    folder: Path

    @property
    def trace(self) -> Path:
        return self.folder / "trace.dat"

    @property
    def events(self) -> list[ReportEvent]:
        """The events that the oracles use, in the order of trace-cmd's text."""
        return _events(self.trace)

    @property
    def page_bytes(self) -> int:
        """The recording machine's page size, from the file's header as trace-cmd shows it."""
        return int(self._summary(r"(\d+)\s+\[Page size, bytes\]"))

    @property
    def clock(self) -> str:
        """The trace clock of the top buffer, as trace-cmd shows it."""
        return self._summary(r"\[buffer \"\", \"(\w+)\" clock")

    def _summary(self, pattern: str) -> str:
        text = _summary(self.trace)
        match = re.search(pattern, text)
        assert match is not None, text
        return match[1]

    def has(self, *names: str) -> bool:
        """Whether the folder holds these sidecar files."""
        return all((self.folder / name).is_file() for name in names)

    def __str__(self) -> str:
        return self.folder.name


@cache
def _events(trace: Path) -> list[ReportEvent]:
    return list(parse_report(report_lines(trace), _ORACLE_EVENTS))


@cache
def _summary(trace: Path) -> str:
    return run([require_program("trace-cmd"), "dump", "--summary", trace]).stdout


@cache
def all_runs() -> tuple[RecordedRun, ...]:
    """Every run folder there is."""
    roots = [REPOSITORY / "examples"]
    if more := os.environ.get("WBSCOPE_RUNS"):
        roots.append(Path(more))
    return tuple(
        RecordedRun(trace.parent) for root in roots for trace in sorted(root.glob("*/trace.dat"))
    )


@cache
def drawn_runs() -> tuple[RecordedRun, ...]:
    """Every run folder there is, and those of the patched kernel."""
    patched = sorted(REPOSITORY.glob("examples/patched-kernel/*/trace.dat"))
    return (*all_runs(), *(RecordedRun(trace.parent) for trace in patched))


def example(name: str) -> RecordedRun:
    """The example of that name, or the end of the test."""
    found = RecordedRun(REPOSITORY / "examples" / name)
    if not found.trace.is_file():
        missing(f"examples/{name} has no trace.dat")
    return found


def part_of(whole: RecordedRun, seconds: tuple[int, int], folder: Path) -> RecordedRun:
    """A copy of the run with a part of its trace, in seconds from its start."""
    shutil.copytree(whole.folder, folder, ignore=shutil.ignore_patterns("trace.dat"))
    part = RecordedRun(folder)
    first_ns = next(parse_report(report_lines(whole.trace))).ts
    start, end = (first_ns / 10**9 + after for after in seconds)
    cut_time(whole.trace, (start, end), part.trace)
    return part
