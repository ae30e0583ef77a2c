# SPDX-License-Identifier: Apache-2.0
"""What runs are read from in their folders, by name: no output takes the place of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = [
    "PACKED_NAMES",
    "PERFETTO_NAMES",
    "RECORDED_NAMES",
    "SIDECAR_NAMES",
    "TEXT_NAME",
    "TRACE_NAME",
    "is_read",
]

TRACE_NAME = "trace.dat"
TEXT_NAME = "trace.txt"
PERFETTO_NAMES = (
    "trace.pftrace",
    "trace.perfetto-trace",
    "trace.pftrace.gz",
    "trace.perfetto-trace.gz",
)
# A trace that was packed to save room, beside the files of its run.
PACKED_NAMES = tuple(
    f"{name}.{end}" for name in (TRACE_NAME, TEXT_NAME) for end in ("gz", "xz", "zst", "bz2")
)
# What is_sidecar() of ingest/src/sidecar/sidecars.cc names; a test compares the two.
_STATES = ("vmstat", "meminfo", "zoneinfo", "block", "bdi", "psi")
# Those that `record` writes; the others are put beside them by a person.
RECORDED_NAMES = (
    *(f"{name}.{when}" for name in _STATES for when in ("before", "after", "samples")),
    *("wb.samples", "cgroup.samples", "task_io", "recorder_tasks"),
    *("meminfo", "zoneinfo", "cgroups", "fio.json", "uname", "meta.json"),
    *("mounts", "bdis", "sysctls", "swaps", "devices", "stacks", "kernel-command-line"),
)
SIDECAR_NAMES = (
    *RECORDED_NAMES,
    *("ls-files", "session", "perf-stat.txt", "perf-stat.json", "time.txt", "ops.txt"),
    "vmstat.txt",
)
# Perfetto traces are read where there is no trace.dat: beside one they may be made of it.
_READ = frozenset((TRACE_NAME, TEXT_NAME, *PACKED_NAMES, *SIDECAR_NAMES))


def is_read(output: Path, given: Path) -> bool:
    """Whether this file is what was given, or what a run is read from in a folder that was given.

    Such a folder is a run, or holds runs in folders of their own.
    """
    try:
        if given.is_dir():
            return any(output.samefile(path) for path in _read_in(given))
        return given.samefile(output)
    except OSError:
        return False  # what is given and not there is told of by who reads it


def _read_in(folder: Path) -> Iterator[Path]:
    """The files that runs are read from, of a run folder or of a folder of runs."""
    inside = sorted(folder.iterdir())
    yield from _of_run(inside)
    for path in inside:
        if path.is_dir() and not path.name.startswith("."):
            with suppress(OSError):  # whoever reads it tells why it cannot
                yield from _of_run(sorted(path.iterdir()))


def _of_run(paths: Sequence[Path]) -> Iterator[Path]:
    """Databases are read where there is no trace, which they may be made of."""
    names = {path.name for path in paths}
    read = _READ if TRACE_NAME in names else _READ.union(PERFETTO_NAMES)
    has_trace = not names.isdisjoint((TRACE_NAME, TEXT_NAME, *PACKED_NAMES, *PERFETTO_NAMES))
    for path in paths:
        is_database = path.suffix == ".db" and not has_trace
        if (path.name in read or is_database) and path.is_file():
            yield path
