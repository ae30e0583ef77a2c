# SPDX-License-Identifier: Apache-2.0
"""What runs are read from in their folders: no output takes the place of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["is_read"]

# The trace, and what recorders put beside it. Other files, such as report.html, are made of it.
_TRACE = "trace.dat"
_PERFETTO = ("trace.pftrace", "trace.perfetto-trace")
# Those that are read where there is no trace.dat: beside one they may be made of it.
_OTHER_TRACES = frozenset((*_PERFETTO, *(f"{name}.gz" for name in _PERFETTO)))
_TEXTS = (
    "trace.txt",
    *(f"trace.{a}.{b}" for a in ("dat", "txt") for b in ("gz", "xz", "zst", "bz2")),
)
_STATES = ("vmstat", "meminfo", "zoneinfo", "block", "bdi", "psi", "wb", "cgroup")
_SIDECARS = (
    *(f"{name}.{when}" for name in _STATES for when in ("before", "after", "samples")),
    *("meminfo", "zoneinfo", "ls-files", "cgroups", "fio.json", "uname", "meta.json"),
    *("perf-stat.txt", "perf-stat.json", "time.txt", "ops.txt", "vmstat.txt"),
    *("bdis", "devices", "kernel-command-line", "mounts", "session", "stacks", "swaps"),
    *("sysctls", "task_io"),
)
_READ = frozenset((_TRACE, *_TEXTS, *_SIDECARS))


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
    read = _READ if _TRACE in names else _READ | _OTHER_TRACES
    has_trace = not names.isdisjoint((_TRACE, *_TEXTS, *_OTHER_TRACES))
    for path in paths:
        is_database = path.suffix == ".db" and not has_trace
        if (path.name in read or is_database) and path.is_file():
            yield path
