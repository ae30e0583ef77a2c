# SPDX-License-Identifier: Apache-2.0
"""fio.json: what fio --output-format=json or json+ says of its jobs.

Jobs are added up as fio's group_reporting does it: bytes and requests of all over
the run time of the longest.  Jobs after a stonewall or new_group are a group of their
own, and run at another time perhaps: as with fio, only groups have rates then.
Percentiles of several jobs need the histograms of json+; without them only one job has
percentiles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wbscope.base.units import unit_of_text
from wbscope.measure.document import Node, bad, decimal, failed, load, shown
from wbscope.measure.metric import Scalars, known, metric

# Those of fio's own list that people read; a list of the user's own is taken whole.
_FIO_LIST = frozenset((1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99))
_READ = frozenset((50, 90, 95, 99, 99.9, 99.99))


def latencies(parts: Sequence[Node], kind: str) -> Iterator[tuple[str, float | None]]:
    """(clat_mean, ns), (clat_max, ns), (clat_p99, ns) ... of slat, clat or lat."""
    found = [part[f"{kind}_ns"] for part in parts if part.has(f"{kind}_ns")]
    counted = [(one, one["N"].number()) for one in found]
    counted = [(one, number) for one, number in counted if number]
    if not counted:
        return
    total = sum(number for _, number in counted)
    yield f"{kind}_mean", sum(one["mean"].number() * number for one, number in counted) / total
    yield f"{kind}_max", max(one["max"].number() for one, _ in counted)
    nodes = [one for one, _ in counted]
    if not all(one.has("percentile") for one in nodes):
        return
    wanted = _shares(nodes[0]["percentile"])
    if len(nodes) == 1:
        told = nodes[0]["percentile"]
        for text, share in wanted.items():
            yield f"{kind}_p{share:g}", told[text].number()
    elif all(one.has("bins") for one in nodes):
        bins = _merged(nodes)
        for share in wanted.values():
            yield f"{kind}_p{share:g}", _percentile(bins, share)


def _shares(percentile: Node) -> dict[str, float]:
    """fio's text of each percentile -> its number; those that are wanted."""
    listed: dict[str, float] = {}
    for text in percentile.names():
        share = decimal(text)
        if share is None or not 0 < share <= 100:
            raise percentile.wrong("percentiles from 0 to 100")
        listed[text] = share
    whole = not _FIO_LIST.issuperset(listed.values())
    return {text: share for text, share in listed.items() if whole or share in _READ}


def _merged(nodes: Sequence[Node]) -> list[tuple[float, float]]:
    """(ns, how many) of all jobs, in order; fio's bins are the same in each job."""
    bins: dict[float, float] = {}
    for one in nodes:
        inside = one["bins"]
        for text in inside.names():
            value = decimal(text)
            if value is None:
                raise inside.wrong("bins of ns")
            bins[value] = bins.get(value, 0.0) + inside[text].number()
    return sorted(bins.items())


def _percentile(bins: Sequence[tuple[float, float]], share: float) -> float:
    """The first bin with so many at or below it, as fio's own calc_clat_percentiles()."""
    wanted = share / 100 * sum(number for _, number in bins)
    seen = 0.0
    for value, number in bins:
        seen += number
        if seen >= wanted:
            return value
    return bins[-1][0]


FIO_FIX = "record it with: fio --output-format=json+ --output=fio.json JOBFILE"
_DIRECTIONS = ("read", "write", "trim", "mixed")
_MS = unit_of_text("ms")[1]
_SECOND = unit_of_text("s")[1]
_PERCENT = unit_of_text("%")[1]


def fio_document(text: str, subject: str = "fio.json") -> Any:
    """The one JSON document of fio's output; notes may stand before it.

    Raises: InputError.
    """
    starts = [match.start() for match in re.finditer(r"^\{", text, re.MULTILINE)]
    if not starts:
        raise bad(subject, "has no line that begins with {, wanted fio's JSON", FIO_FIX)
    document, end = load(text, subject, FIO_FIX, start=starts[0])
    if any(start >= end for start in starts):
        fix = f"{FIO_FIX}, without --status-interval"
        raise bad(subject, "holds several documents, wanted one", fix)
    if rest := text[end:].strip():
        at = f"line {text.count(chr(10), 0, end) + 1}"
        raise bad(subject, f"found {shown(rest)} after the document", FIO_FIX, at=at)
    return document


def parse_fio(document: Any, subject: str = "fio.json") -> Scalars:
    """The metrics fio.*: of all jobs, and of each name and each group where there are several.

    Raises: InputError, also when a job ended with an error.
    """
    root = Node(document, "$", subject, FIO_FIX)
    _check_version(root, subject)
    jobs = _jobs(root, subject)
    scalars = Scalars()
    _add_group(scalars, jobs, subject, {})
    named: dict[str, list[Node]] = {}
    groups: dict[str, list[Node]] = {}
    for job in jobs:
        named.setdefault(job["jobname"].text(), []).append(job)
        groups.setdefault(_group(job), []).append(job)
    for key, parts in (("job", named), ("group", groups)):
        if len(parts) > 1:
            for name, part in parts.items():
                if key == "job" or part not in named.values():
                    _add_group(scalars, part, subject, {key: name})
    return scalars


def _check_version(root: Node, subject: str) -> None:
    version = root["fio version"].text()
    match = re.match(r"fio-([0-9]{1,4})\.", version)
    if match is None or int(match[1]) < 3:
        found = f"is of {shown(version)}, wanted fio-3.0 or newer"
        raise bad(subject, f"{found}: older ones count in other units", FIO_FIX)


def _jobs(root: Node, subject: str) -> list[Node]:
    if not root.has("jobs") and root.has("client_stats"):
        raise bad(subject, "is of fio's client, which has other fields", FIO_FIX)
    jobs = list(root["jobs"])
    if not jobs:
        raise bad(subject, "has no jobs", FIO_FIX, at="$.jobs")
    for job in jobs:
        if error := job["error"].number():
            raise failed(subject, f"job {shown(job['jobname'].text())} ended with error {error:g}")
    return jobs


def _group(job: Node) -> str:
    return f"{job['groupid'].number():.0f}" if job.has("groupid") else "0"


def _add_group(
    scalars: Scalars, jobs: Sequence[Node], subject: str, keys: Mapping[str, str]
) -> None:
    def add(name: str, value: float | None, prefix: str = "") -> None:
        entry = known("fio", name)
        scalars.add(metric("fio", f"{prefix}{name}", entry, subject, keys), value)

    for direction in _DIRECTIONS:
        movers = [job for job in jobs if job.has(direction)]
        movers = [job for job in movers if job[direction]["total_ios"].number()]
        together = len({_group(job) for job in movers}) == 1
        if movers:
            for name, value in _transfer([job[direction] for job in movers], together):
                add(name, value, f"{direction}.")
    syncs = [job["sync"] for job in jobs if job.has("sync")]
    syncs = [sync for sync in syncs if sync.has("total_ios") and sync["total_ios"].number()]
    if syncs:
        add("total_ios", sum(sync["total_ios"].number() for sync in syncs), "sync.")
        for name, value in latencies(syncs, "lat"):
            add(name, value, "sync.")
    for name in ("ctx", "majf", "minf"):
        add(name, sum(job[name].number() for job in jobs))
    # Each job's share is of its own run time.
    weights = [job["job_runtime"].number() if job.has("job_runtime") else 1.0 for job in jobs]
    for name in ("usr_cpu", "sys_cpu"):
        used = sum(job[name].number() * weight for job, weight in zip(jobs, weights, strict=True))
        add(name, used / sum(weights) * _PERCENT if any(weights) else None)


def _transfer(parts: Sequence[Node], together: bool) -> Iterator[tuple[str, float | None]]:
    """Bandwidth, requests and latencies of one direction.

    together  of one group; groups have no rate in common
    """
    for part in parts:
        _check_bytes(part)
    amount = sum(part["io_bytes"].number() for part in parts)
    requests = sum(part["total_ios"].number() for part in parts)
    runtime_ns = max(part["runtime"].number() for part in parts) * _MS
    seconds = runtime_ns / _SECOND
    if together:
        yield "bw", amount / seconds if seconds else None
        yield "iops", requests / seconds if seconds else None
    yield "io", amount
    yield "runtime", runtime_ns
    yield "short_ios", sum(part["short_ios"].number() for part in parts)
    for kind in ("slat", "clat", "lat"):
        yield from latencies(parts, kind)


def _check_bytes(part: Node) -> None:
    """io_bytes was in KiB once; both fields together tell."""
    size, kib = part["io_bytes"].number(), part["io_kbytes"].number()
    if size // unit_of_text("KiB")[1] != kib:
        raise part["io_bytes"].wrong(f"{kib:.0f} KiB in bytes, as io_kbytes says")
