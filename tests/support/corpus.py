# SPDX-License-Identifier: Apache-2.0
"""The labelled corpus: runs of known cause, and the numbers beside each trace that prove the cause.

A proof is read from what the kernel, fio and the clock say (diskstats, vmstat, memory.events,
fio.json, stopwatches), never from the trace: it is there to judge what is made of the trace.
"""

from __future__ import annotations

import json
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .archives import unpacked

__all__ = ["ARCHIVE", "CORPUS", "Proof", "cases", "causes", "proof", "unpack"]

CORPUS = unpacked("corpus")
ARCHIVE = "run.tar.xz"
_SECTOR_BYTES = 512


@dataclass(frozen=True)
class Proof:
    """A quantity has to lie in a range; both ends belong to it."""

    quantity: str
    least: float
    most: float


def causes() -> dict[str, dict[str, Any]]:
    """Cause -> what is injected, how, and the ranges of its proofs."""
    told = tomllib.loads((CORPUS / "causes.toml").read_text())
    for entry in told.values():
        entry["proof"] = [Proof(*one) for one in entry["proof"]]
    return told


def cases() -> list[Path]:
    """The folders, one for each run."""
    return sorted(path.parent for path in CORPUS.glob("*/cause.toml"))


def unpack(case: Path, folder: Path) -> Path:
    """The run folder of a case."""
    run = folder / case.name
    run.mkdir()
    with tarfile.open(case / ARCHIVE) as archive:
        members = archive.getmembers()
        assert all(one.isfile() and "/" not in one.name for one in members), members
        archive.extractall(run)
    return run


def proof(run: Path, quantity: str) -> float:
    """The value of e.g. `disk.vdc.busy_ratio`, by the files of the run folder."""
    source, _, name = quantity.partition(".")
    return _SOURCES[source](run, name)


def _disk(run: Path, name: str) -> float:
    disk, _, what = name.partition(".")
    before, after = _disks(run / "disks.before"), _disks(run / "disks.after")
    seconds = after["uptime"][0] - before["uptime"][0]
    change = [new - old for old, new in zip(before[disk], after[disk], strict=True)]
    match what:
        case "written_bytes":
            return change[6] * _SECTOR_BYTES
        case "written_bytes_per_s":
            return change[6] * _SECTOR_BYTES / seconds
        case "writes_per_s":
            return change[4] / seconds
        case "busy_ratio":
            return change[9] / 1000 / seconds
    raise KeyError(what)


def _disks(path: Path) -> dict[str, list[float]]:
    """Documentation/admin-guide/iostats.rst: fields from the reads on."""
    found = {}
    for line in path.read_text().splitlines():
        words = line.split()
        if words[0] == "uptime":
            found["uptime"] = [float(words[1])]
        else:
            found[words[2]] = [float(word) for word in words[3:]]
    return found


def _seconds(run: Path, name: str) -> float:
    """The longest of this name; of a stopwatch alone its own."""
    if not (run / "ops.txt").exists():
        return float((run / f"{name}.seconds").read_text())
    lines = [line.split() for line in (run / "ops.txt").read_text().splitlines()]
    return max(float(value) for op, value, unit in lines if op == name and unit == "s")


def _fio(run: Path, name: str) -> float:
    jobs = json.loads((run / "fio.json").read_text())["jobs"]
    match name:
        case "write_bytes_per_s":
            return float(sum(job["write"]["bw_bytes"] for job in jobs))
        case "longest_write_seconds":
            return float(max(job["write"]["clat_ns"]["max"] for job in jobs)) / 1e9
        case "longest_read_seconds":
            return float(max(job["read"]["clat_ns"]["max"] for job in jobs)) / 1e9
        case "longest_fsync_seconds":
            return float(max(job["sync"]["lat_ns"]["max"] for job in jobs)) / 1e9
        case "reads_per_s":
            return float(sum(job["read"]["iops"] for job in jobs))
        case "mean_fsync_seconds":
            return float(jobs[0]["sync"]["lat_ns"]["mean"]) / 1e9
    raise KeyError(name)


def _vmstat(run: Path, name: str) -> float:
    before, after = (_pairs(run / f"vmstat.{when}") for when in ("before", "after"))
    return after.get(name, 0) - before.get(name, 0)


def _psi(run: Path, name: str) -> float:
    """Seconds in which some task waited for it."""
    totals = []
    for when in ("before", "after"):
        told = (run / f"psi.{when}").read_text().partition(f"{name}\n")[2]
        totals.append(float(told.partition("total=")[2].split()[0]))
    return (totals[1] - totals[0]) / 1e6


def _sysctl(run: Path, name: str) -> float:
    lines = (line.split(" = ") for line in (run / "sysctls").read_text().splitlines())
    return next(float(line[1]) for line in lines if line[0] == name)


def _memory(run: Path, name: str) -> float:
    return _pairs(run / "memory.events.small")[name]


def _io(run: Path, name: str) -> float:
    """The first line of io.stat, of the only disk with a limit."""
    words = (run / "io.capped").read_text().splitlines()[0].split()[1:]
    return float(dict(word.split("=") for word in words)[name])


def _bdi(run: Path, name: str) -> float:
    return _pairs(run / "bdi.limits")[name]


def _dirty(run: Path, name: str) -> float:
    """KiB, the most of all samples of meminfo."""
    lines = (line.split() for line in (run / "meminfo.samples").read_text().splitlines())
    return max(float(words[1]) for words in lines if words[0] == f"{name}:")


def _pairs(path: Path) -> Mapping[str, float]:
    return dict(_split(path))


def _split(path: Path) -> Iterator[tuple[str, float]]:
    for line in path.read_text().splitlines():
        name, value = line.split()
        yield name, float(value)


_SOURCES = {
    "disk": _disk,
    "seconds": _seconds,
    "fio": _fio,
    "vmstat": _vmstat,
    "psi": _psi,
    "sysctl": _sysctl,
    "memory_events": _memory,
    "io_stat": _io,
    "bdi": _bdi,
    "meminfo_kib": _dirty,
}
