# SPDX-License-Identifier: Apache-2.0
"""Reads the files beside a trace, independently of the project's own reader."""

from __future__ import annotations

import json
import re
from pathlib import Path

__all__ = [
    "fio_rates",
    "fio_written_bytes",
    "ls_files_bytes",
    "vmstat_delta",
    "vmstat_value",
    "zone_spans",
]


def vmstat_value(run: Path, sample: str, name: str) -> int:
    """One counter of vmstat.before or vmstat.after."""
    match = re.search(rf"^{name} (\d+)$", (run / f"vmstat.{sample}").read_text(), re.MULTILINE)
    if match is None:
        raise KeyError(name)
    return int(match[1])


def vmstat_delta(run: Path, name: str) -> int:
    """How far a counter went during the run."""
    return vmstat_value(run, "after", name) - vmstat_value(run, "before", name)


def vmstat_names(run: Path) -> list[str]:
    """The counters of vmstat.after."""
    return [line.split()[0] for line in (run / "vmstat.after").read_text().splitlines()]


def ls_files_bytes(run: Path) -> dict[str, int]:
    """File name -> size, regular files only (`ls -lin`)."""
    sizes = {}
    for line in (run / "ls-files").read_text().splitlines():
        words = line.split()
        if len(words) >= 10 and words[1].startswith("-"):
            sizes[words[-1]] = int(words[5])
    return sizes


def _fio_writes(run: Path, field: str) -> dict[str, int]:
    text = (run / "fio.json").read_text()
    jobs = json.loads(text[text.index("{") :])["jobs"]
    return {job["jobname"]: job["write"][field] for job in jobs}


def fio_written_bytes(run: Path) -> dict[str, int]:
    """fio job -> bytes written."""
    return _fio_writes(run, "io_bytes")


def fio_rates(run: Path) -> dict[str, int]:
    """fio job -> bytes/s that it wrote over its run time."""
    return _fio_writes(run, "bw_bytes")


def zone_spans(run: Path) -> list[tuple[int, str, int, int]]:
    """(node, zone, first pfn, pfn after the last) of each populated zone."""
    text = (run / "zoneinfo").read_text()
    spans = []
    for block in re.split(r"(?=^Node \d+, zone)", text, flags=re.MULTILINE):
        head = re.match(r"Node (\d+), zone\s+(\S+)", block)
        start = re.search(r"^\s*start_pfn:\s+(\d+)", block, re.MULTILINE)
        spanned = re.search(r"^\s*spanned\s+(\d+)", block, re.MULTILINE)
        if head and start and spanned and int(spanned[1]):
            spans.append((int(head[1]), head[2], int(start[1]), int(start[1]) + int(spanned[1])))
    return spans
